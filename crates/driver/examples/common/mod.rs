//! Where an example runs: on the drive that its arguments name, or on an emulated one.
//!
//! ```text
//! EXAMPLE [ADDRESS [ZONE]] [--overwrite]
//! ```

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use zonelab_device::{Buf, NamespaceId, QueuePair, ZoneId};
use zonelab_driver::linux::LinuxOptions;

use zonelab_driver::pcie::{Function as _, LocalOptions, PcieController, PcieOptions};
use zonelab_driver::url::Address;
use zonelab_driver::zones::{
    AnyZone, Empty, Pause, Settings, Zone, ZoneError, ZonedNamespace, driving,
};
use zonelab_driver::{AnyController, AnyOptions, Controller as _, DriverDevice, Options};
use zonelab_endpoint::{Endpoint, EndpointSettings};
use zonelab_nvme::zns::ReportFilter;
use zonelab_ssd::config::DataStore;
use zonelab_ssd::{Drive as Emulated, profile};

/// A queue pair of any kind: which, the arguments say.
pub(crate) type Queue = Box<dyn QueuePair>;

/// What an example has to say if it fails.
pub(crate) struct Failure(String);

impl<E: fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The drive that an example runs on.
pub(crate) struct Drive {
    /// Its zones.
    pub(crate) namespace: ZonedNamespace<Queue>,
    /// The zone that was named.
    zone: Option<ZoneId>,
    /// Whether zones with data may be reset.
    may_overwrite: bool,
    /// What lets time pass, for those who poll the queue pair themselves.
    pauses: Box<dyn Fn() -> Pause>,
}

/// Runs `example` on the drive that the arguments of the program name.
pub(crate) fn run(example: impl FnOnce(Drive) -> Result<(), Failure>) -> Result<(), Failure> {
    let arguments = std::env::args().skip(1);
    let (options, places): (Vec<_>, Vec<_>) = arguments.partition(|text| text.starts_with("--"));
    if let Some(option) = options.iter().find(|option| *option != "--overwrite") {
        return Err(format!("there is no option {option}: --overwrite there is").into());
    }
    let may_overwrite = !options.is_empty();
    let zone = match places.get(1) {
        Some(number) => {
            Some(ZoneId(number.parse().map_err(|_| {
                format!("\"{number}\" is no number of a zone")
            })?))
        }
        None => None,
    };
    match places.first() {
        None => on_emulated(example),
        Some(address) => on_real(address, (zone, may_overwrite), example),
    }
}

/// Runs `example` on an emulated drive of six small zones, in virtual time. The driver is the one for
/// PCIe; only registers and memory are not real.
pub(crate) fn on_emulated(
    example: impl FnOnce(Drive) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut config = profile::builtin("confznspp")
        .ok_or("no such profile")?
        .config;
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 64;
    config.zones.count = 6;
    config.zones.capacity_lbas = 128;
    config.zones.size_lbas = 160;
    config.data = DataStore::Memory;
    let endpoint = Endpoint::new(Emulated::new(&config), EndpointSettings::default())?;
    let mut controller = PcieController::connect(endpoint.clone(), PcieOptions::default())?;
    let queue = Box::new(controller.open_queue()?);
    let pauses = move || -> Pause {
        let endpoint = endpoint.clone();
        // Time goes on when somebody says so: to what happens next.
        Box::new(move |left| endpoint.pause(left))
    };
    let drive = Drive::new(queue, NamespaceId::FIRST, Box::new(pauses), (None, true))?;
    example(drive)?;
    Ok(controller.shut_down()?)
}

/// Runs `example` on the drive at an address.
pub(crate) fn on_real(
    address: &str,
    (zone, may_overwrite): (Option<ZoneId>, bool),
    example: impl FnOnce(Drive) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let options = match Address::parse(address)? {
        Address::Tcp(address) => AnyOptions::Tcp(Box::new(Options::new(address))),
        Address::Linux(address) => AnyOptions::Linux(LinuxOptions::new(address)),
        Address::Pcie(address) => AnyOptions::Pcie(Box::new(LocalOptions::new(address))),
    };
    let mut controller = AnyController::connect(options)?;
    let nsid = controller.open_namespace()?;
    let mut device = DriverDevice::new(controller)?;
    let (queue, clock) = (Box::new(device.open_queue()?), device.clock());
    let device = Rc::new(RefCell::new(device));
    let shared = Rc::clone(&device);
    let pauses = move || driving(Rc::clone(&shared), clock);
    let drive = Drive::new(queue, nsid, Box::new(pauses), (zone, may_overwrite))?;
    example(drive)?;
    let device = Rc::into_inner(device).ok_or("the example has kept its drive")?;
    Ok(device.into_inner().close()?.disconnect()?)
}

impl Drive {
    fn new(
        queue: Queue,
        nsid: NamespaceId,
        pauses: Box<dyn Fn() -> Pause>,
        (zone, may_overwrite): (Option<ZoneId>, bool),
    ) -> Result<Self, Failure> {
        let settings = Settings {
            pause: pauses(),
            ..Settings::default()
        };
        Ok(Self {
            namespace: ZonedNamespace::open(queue, nsid, settings)?,
            zone,
            may_overwrite,
            pauses,
        })
    }

    /// What to call while nothing has completed.
    pub(crate) fn pause(&self) -> Pause {
        (self.pauses)()
    }

    /// A block that begins with a text.
    pub(crate) fn block(&self, text: &str) -> Buf {
        let mut block = Buf::zeroed(self.namespace.lba_bytes() as usize);
        block[..text.len()].copy_from_slice(text.as_bytes());
        block
    }

    /// An empty zone: one that is empty already, else one that is reset, if that is allowed.
    pub(crate) fn empty_zone(&self) -> Result<Zone<'_, Queue, Empty>, Failure> {
        for info in self.namespace.report_from(ZoneId(0), ReportFilter::EMPTY) {
            match self.namespace.zone(info?.zone) {
                Ok(AnyZone::Empty(zone)) => return Ok(zone),
                Ok(_) | Err(ZoneError::Taken { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !self.may_overwrite {
            let why = "no zone is empty; say --overwrite if what one of them holds may be lost";
            return Err(why.into());
        }
        for number in 0..self.namespace.zones() {
            match self.namespace.zone(ZoneId(number)) {
                Ok(AnyZone::ReadOnly(_) | AnyZone::Offline(_)) | Err(ZoneError::Taken { .. }) => {}
                Ok(zone) => return Ok(zone.reset()?),
                Err(error) => return Err(error.into()),
            }
        }
        Err("no zone can be written".into())
    }

    /// The zone that was named, or else one that is written full for the purpose.
    pub(crate) fn zone_with_data(&self) -> Result<AnyZone<'_, Queue>, Failure> {
        if let Some(zone) = self.zone {
            return Ok(self.namespace.zone(zone)?);
        }
        let mut zone = self.empty_zone()?.open()?;
        while zone.room_lbas() > 0 {
            let lba = zone.write_pointer();
            zone.write(self.block(&format!("block {}", lba.0)))?;
        }
        zone.seal()
            .map(AnyZone::Full)
            .map_err(|_| "a zone without room is full".into())
    }
}
