//! A tiny drive, and runs on it.

#[path = "../../../host/tests/suite/support/shared.rs"]
mod shared;

use std::cell::RefCell;
use std::rc::Rc;

use zonelab_device::{Command, Lba, Nanos, Op};
use zonelab_host::{CoreId, Job, Reactor, Rng, RunEnd, StopSignal, VirtualClock};
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::Drive;
use zonelab_ssd::profile::Profile;

pub(crate) use shared::*;

/// Two channels with a die each; 8 zones of 64 logical blocks, of which 60 (15
/// pages of 4) can be written; pages of a zone alternate between the dies.
const TINY: &str = r#"
schema = 1
name = "tiny"

[geometry]
channels = 2
pages_per_block = 8
page_size = "16KiB"

[namespace]
lba_size = "4KiB"

[zones]
count = 8
size = "256KiB"
capacity = "240KiB"

[media]
read = "60us"
program = "700us"
erase = "3.5ms"
transfer = "25us"
partial_transfer = false

[finish]
design = "fill"
granularity = "32KiB"

[reset]
timing = "synchronous"
extent = "full"
"#;

/// Write of one page: 25 us on the channel, 700 us on the die.
pub(crate) const WRITE: Nanos = Nanos::from_us(725);

/// The tiny drive with settings changed, `media.read=5us`.
pub(crate) fn tiny(settings: &[&str]) -> Emulated {
    let settings: Vec<_> = settings
        .iter()
        .map(|text| text.parse().expect("a setting"))
        .collect();
    let profile = Profile::parse("tiny.toml", TINY, &settings).expect("the settings fit");
    Emulated::new(Drive::new(&profile.config))
}

/// A free host.
pub(crate) const FREE: HostCosts = HostCosts::FREE;

/// A host with fixed costs in microseconds.
pub(crate) fn costs_us(submit: u64, complete: u64) -> HostCosts {
    let (submit_ns, complete_ns) = (Nanos::from_us(submit), Nanos::from_us(complete));
    HostCosts {
        submit_ns,
        complete_ns,
        ..FREE
    }
}

/// A write of one page at the start of a zone of the tiny drive.
pub(crate) fn first_write(zone: u64) -> Command {
    Command::new(Op::Write {
        slba: Lba(zone * ZONE),
        nlb: PAGE,
    })
}

/// A read of an unwritten page of zone 0: no flash work, so that it takes no
/// time but that of the host.
pub(crate) const IDLE_READ: Command = Command::new(Op::Read {
    slba: Lba(0),
    nlb: PAGE,
});

/// Times and such that several scripts note down.
pub(crate) type Log<T> = Rc<RefCell<Vec<T>>>;

/// Runs jobs in virtual time from zero, each with a queue of depth 64 and the
/// same costs, on the cores named.
pub(crate) fn run_on_cores(
    device: &Emulated,
    costs: HostCosts,
    jobs: &mut [(&mut dyn Job, u32)],
) -> RunEnd {
    let mut reactor = Reactor::new(
        VirtualClock::default(),
        device.clone(),
        StopSignal::default(),
    );
    for (index, (job, core)) in jobs.iter_mut().enumerate() {
        let queue = device.open_queue(64, costs, Rng::new(1, index as u64));
        reactor.add(*job, queue, CoreId(*core), Nanos::ZERO);
    }
    reactor.run()
}

/// Runs one job in virtual time on a free host.
pub(crate) fn run_alone(device: &Emulated, job: &mut dyn Job) -> RunEnd {
    run_on_cores(device, FREE, &mut [(job, 0)])
}

/// Workloads are tested against what a drive says of itself, and this is it.
#[test]
fn the_tiny_drive_is_the_one_that_workloads_know() {
    assert_eq!(*tiny(&[]).info(), tiny_info());
}
