//! A zoned namespace on a queue pair.

use core::cell::{RefCell, RefMut};
use std::collections::BTreeSet;
use std::rc::Rc;

use zonelab_device::{Device, Lba, Monotonic, NamespaceId, Nanos, QueuePair, ZoneId, ZrwaInfo};
use zonelab_nvme::zns::ReportFilter;

use super::engine::Engine;
use super::error::{MoveFailed, ZoneError};
use super::report::{Report, ZoneInfo};
use super::state::AnyZone;
use super::zone::Core;

/// What a call does each time it has looked for the end of its command in vain.
///
/// It is given the time that is left, and returns when something may have happened, or earlier.
/// It must not use the namespace.
pub type Pause = Box<dyn FnMut(Nanos)>;

/// How commands are sent and waited for.
pub struct Settings {
    /// Longest time of a call, on the clock of the queue pair.
    pub deadline: Nanos,
    /// Commands in flight at most, of all zones together; at least 1. More than the queue
    /// pair takes is no error: it says so itself.
    pub in_flight: u16,
    /// What to do while nothing happens. The time of a model goes on only if this lets it: with
    /// the default a call on one would wait forever.
    pub pause: Pause,
}

impl Default for Settings {
    /// A minute, 64 commands; other threads may run while a call waits.
    fn default() -> Self {
        Self {
            deadline: Nanos::from_secs(60),
            in_flight: 64,
            pause: Box::new(|_| std::thread::yield_now()),
        }
    }
}

/// A pause that drives a device in real time: it sleeps until the device has something, and keeps
/// its connection alive. For queues of a [`DriverDevice`](crate::DriverDevice), with its
/// [clock](crate::DriverDevice::clock).
pub fn driving<D: Device + 'static>(device: Rc<RefCell<D>>, clock: Monotonic) -> Pause {
    let mut ready = Vec::new();
    Box::new(move |left| {
        let mut device = device.borrow_mut();
        let next = device.next_event().unwrap_or(Nanos::MAX);
        device.wait(next.saturating_sub(clock.now()).min(left));
        device.advance(clock.now(), &mut ready);
        ready.clear();
    })
}

/// What is fixed of a namespace.
#[derive(Copy, Clone, Debug)]
pub(super) struct Facts {
    pub(super) nsid: NamespaceId,
    pub(super) lba_bytes: u32,
    pub(super) zones: u32,
    pub(super) zone_size_lbas: u64,
    pub(super) max_transfer_bytes: u32,
    pub(super) max_append_bytes: u32,
    /// Random write areas, if zones can have them.
    pub(super) zrwa: Option<ZrwaInfo>,
}

/// A zoned namespace on a queue pair, which hands out its zones.
///
/// Handles borrow it, so that a program has many of them at a time, each of another zone. It is
/// for one thread, as its queue pair is; several threads have a queue pair each, and share the
/// zones out among themselves.
///
/// ```compile_fail,E0505
/// # use zonelab_device::{QueuePair, ZoneId};
/// # use zonelab_driver::zones::{ZoneError, ZonedNamespace};
/// # fn f<Q: QueuePair>(namespace: ZonedNamespace<Q>) -> Result<(), ZoneError> {
/// let zone = namespace.zone(ZoneId(0))?;
/// drop(namespace.into_queue()); // the handle uses it
/// drop(zone);
/// # Ok(())
/// # }
/// ```
pub struct ZonedNamespace<Q: QueuePair> {
    facts: Facts,
    engine: RefCell<Engine<Q>>,
    taken: RefCell<BTreeSet<ZoneId>>,
}

impl<Q: QueuePair> ZonedNamespace<Q> {
    /// Takes a queue pair over for the zones of namespace `nsid`. Nothing is sent.
    ///
    /// No command may be in flight on the queue pair.
    ///
    /// # Errors
    /// [`ZoneError::NotZoned`].
    pub fn open(queue: Q, nsid: NamespaceId, settings: Settings) -> Result<Self, ZoneError> {
        let info = queue.info();
        let not_zoned = ZoneError::NotZoned { nsid };
        let namespace = info.namespace(nsid).ok_or(not_zoned)?;
        let zoned = namespace.zoned.ok_or(not_zoned)?;
        let zone_size_lbas = zoned.zone_size_lbas.max(1);
        // Zones beyond the last possible address are none.
        let most = u32::try_from(u64::MAX / zone_size_lbas).unwrap_or(u32::MAX);
        let facts = Facts {
            nsid,
            lba_bytes: namespace.lba_bytes.max(1),
            zones: zoned.zones.min(most),
            zone_size_lbas,
            max_transfer_bytes: info.max_transfer_bytes,
            max_append_bytes: info.max_append_bytes,
            zrwa: zoned.zrwa,
        };
        Ok(Self {
            facts,
            engine: RefCell::new(Engine::new(queue, nsid, settings)),
            taken: RefCell::default(),
        })
    }

    /// Its identifier.
    #[must_use]
    pub const fn nsid(&self) -> NamespaceId {
        self.facts.nsid
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn lba_bytes(&self) -> u32 {
        self.facts.lba_bytes
    }

    /// Number of zones.
    #[must_use]
    pub const fn zones(&self) -> u32 {
        self.facts.zones
    }

    /// The zone that `lba` is in, whether it can be written there or not; `None`: beyond the
    /// last.
    #[must_use]
    pub fn zone_of(&self, lba: Lba) -> Option<ZoneId> {
        let index = u32::try_from(lba.0 / self.facts.zone_size_lbas).ok()?;
        (index < self.facts.zones).then_some(ZoneId(index))
    }

    /// The handle of a zone, in the state that the drive reports.
    ///
    /// # Errors
    /// There is no such zone, its handle is taken, or the report fails.
    pub fn zone(&self, zone: ZoneId) -> Result<AnyZone<'_, Q>, ZoneError> {
        let zones = self.facts.zones;
        if zone.0 >= zones {
            return Err(ZoneError::NoSuchZone { zone, zones });
        }
        if !self.taken.borrow_mut().insert(zone) {
            return Err(ZoneError::Taken { zone });
        }
        // From here on, dropping the core gives the zone back.
        let core = Core::new(self, zone);
        core.refresh()
            .map_err(|failed: MoveFailed<'_, Q>| failed.error)
    }

    /// Reports all zones, page by page. Handles do not change by it.
    #[must_use]
    pub fn report(&self) -> Report<'_, Q> {
        self.report_from(ZoneId(0), ReportFilter::ALL)
    }

    /// Reports the zones from `first` on that `filter` selects.
    #[must_use]
    pub fn report_from(&self, first: ZoneId, filter: ReportFilter) -> Report<'_, Q> {
        Report::new(self, first, filter, self.facts.zones)
    }

    /// Gives the queue pair back. Commands that were given up may still be in flight on it.
    #[must_use]
    pub fn into_queue(self) -> Q {
        self.engine.into_inner().into_queue()
    }

    /// What the drive reports of one zone.
    pub(super) fn look(&self, zone: ZoneId) -> Result<ZoneInfo, ZoneError> {
        self.engine().settle(zone)?;
        let missing = ZoneError::BadReport {
            field: "number of zones",
            value: 0,
            valid: "1: the zone exists",
        };
        let found = Report::new(self, zone, ReportFilter::ALL, 1).next();
        found.ok_or(missing)?.and_then(|info| match info.zone {
            of if of == zone => Ok(info),
            _ => Err(ZoneError::BadReport {
                field: "ZSLBA",
                value: info.start.0,
                valid: "that of the zone asked for",
            }),
        })
    }

    pub(super) const fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn engine(&self) -> RefMut<'_, Engine<Q>> {
        // No borrow lasts longer than a call of the engine, and that calls nothing of ours
        // but the pause, which is told not to.
        self.engine.borrow_mut()
    }

    /// The handle of a zone is gone.
    pub(super) fn release(&self, zone: ZoneId) {
        self.taken.borrow_mut().remove(&zone);
    }
}
