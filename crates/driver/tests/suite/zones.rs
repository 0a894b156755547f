//! Zone handles over NVMe/TCP, in real time.

use std::cell::RefCell;
use std::rc::Rc;

use zonelab_device::{Buf, Lba, NamespaceId, Nanos, QueuePair, ZoneId};
use zonelab_driver::zones::{Settings, ZoneError, ZonedNamespace, driving};
use zonelab_driver::{Controller as _, TcpDevice};

use crate::bytes::pattern;
use crate::emulated::Target;

fn block(len: usize) -> Buf {
    Buf::from(pattern(len))
}

/// Appends, reads, finishes and resets a zone.
fn use_a_zone<Q: QueuePair>(namespace: &ZonedNamespace<Q>) -> Result<(), ZoneError> {
    let len = namespace.lba_bytes() as usize;
    let mut zone = namespace.zone(ZoneId(4))?.open()?;
    zone.write(block(len))?;
    let mut appender = zone.appender()?;
    for _ in 0..16 {
        appender.start(block(len))?;
    }
    let mut places = Vec::new();
    while let Some(ended) = appender.next() {
        places.push(ended?.lba);
    }
    drop(appender);
    places.sort_unstable();
    let start = zone.start().0;
    assert_eq!(
        places,
        (1..17).map(|at| Lba(start + at)).collect::<Vec<_>>()
    );
    assert_eq!(zone.read(Lba(start + 16), Buf::zeroed(len))?, block(len));
    zone.finish()?.reset()?;
    Ok(())
}

#[test]
fn a_queue_of_its_own_is_polled() {
    let target = Target::start();
    let mut controller = target.connect("");
    let queue = controller.open_queue().unwrap();
    let namespace = ZonedNamespace::open(queue, NamespaceId::FIRST, Settings::default()).unwrap();
    use_a_zone(&namespace).unwrap();
    drop(namespace);
    controller.disconnect().unwrap();
}

#[test]
fn a_device_is_driven_until_its_server_ends() {
    let target = Target::start();
    let mut device = TcpDevice::new(target.connect("")).unwrap();
    let (queue, clock) = (device.open_queue().unwrap(), device.clock());
    let device = Rc::new(RefCell::new(device));
    let settings = Settings {
        pause: driving(Rc::clone(&device), clock),
        deadline: Nanos::from_secs(60),
        ..Settings::default()
    };
    let namespace = ZonedNamespace::open(queue, NamespaceId::FIRST, settings).unwrap();
    use_a_zone(&namespace).unwrap();
    let mut zone = namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    drop(target);
    let refused = zone.write(block(4096)).unwrap_err();
    assert_eq!(refused.data.unwrap(), block(4096));
    assert!(zone.refresh().is_err());
    drop(namespace);
    let device = Rc::into_inner(device).unwrap().into_inner();
    assert!(device.is_lost() && device.close().is_err());
}
