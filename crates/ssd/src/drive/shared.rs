//! What the components of a drive share.

use zonelab_device::{Completion, DeviceInfo, Nanos};

use super::effect::Effects;
use super::policies::Policies;
use super::{Drive, Request};
use crate::account::Totals;
use crate::changed::ChangedZones;
use crate::config::{DataStore, DriveConfig, NamespaceKind};
use crate::contents::Data;
use crate::conventional::PlacementLog;
use crate::counterfactual::{Absence, Watch};
use crate::data::SparseData;
use crate::event::EventQueue;
use crate::flash::Flash;
use crate::front::FrontEnd;
use crate::mapping::prepared::Prepared;
use crate::record::{Recorder, ZoneLog};
use crate::slab::Slab;
use crate::window::Window;
use crate::zones::{Change, Zones};

/// What the components of a drive share and are handed with each call: time, events, commands
/// in flight, zones, the flash and the front end. Nothing in it knows of a component: what it
/// does is over when its methods return.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: DriveConfig,
    pub(crate) info: DeviceInfo,
    pub(crate) now: Nanos,
    pub(crate) zones: Zones,
    /// Allocations made in idle time, if there are any.
    pub(crate) prepared: Option<Prepared>,
    pub(crate) flash: Flash,
    pub(crate) front: FrontEnd,
    /// What the front end works on at a time, and who waits for that.
    pub(crate) window: Window,
    pub(crate) data: Option<Data>,
    /// A flush completed since the contents were last kept.
    pub(crate) is_sync_wanted: bool,
    /// Reservations that were kept of an earlier drive, until somebody takes them.
    pub(crate) reservations: Vec<u8>,
    /// Resets when wear and totals were last kept.
    pub(crate) resets_kept: u64,
    pub(crate) events: EventQueue,
    pub(crate) requests: Slab<Request>,
    /// There are conventional namespaces.
    pub(crate) has_logs: bool,
    /// Events of flexible data placement, if the drive has that.
    pub(crate) placement: Option<Box<PlacementLog>>,
    /// Requests that are the drive's own.
    pub(crate) internal_requests: usize,
    pub(crate) totals: Totals,
    /// Host reads and writes with flash work in flight, by group of zones.
    pub(crate) host_in_flight: Vec<u32>,
    /// When the latest change of each zone starts on the flash; empty if the
    /// front end never delays.
    pub(crate) zone_starts: Vec<Nanos>,
    /// No commands are taken before: power was lost and the drive is starting.
    pub(crate) ready_at: Nanos,
    /// What components have done that others have not heard of yet.
    pub(crate) effects: Effects,
    /// Completions that came due inside `submit` or `control`.
    pub(crate) backlog: Vec<Completion>,
    /// Scratch for the changes of a zone management command.
    pub(crate) changes: Vec<Change>,
    /// Zones that changed by themselves.
    pub(crate) changed: ChangedZones,
    /// Policies of somebody else, and what became of them.
    pub(crate) policies: Policies,
    /// Changes of zone states, if they are recorded.
    pub(crate) zone_log: ZoneLog,
    /// Everything else that is recorded, if it is.
    pub(crate) recorder: Option<Box<Recorder>>,
    /// Commands that are watched, if there are any.
    pub(crate) watch: Option<Box<Watch>>,
    /// What the drive does without, if it does.
    pub(crate) absence: Option<Box<Absence>>,
}

impl Core {
    pub(super) fn new(config: &DriveConfig) -> Self {
        let flash = Flash::new(config);
        let front = FrontEnd::new(&config.front_end, config.lba_bytes);
        let delays = front.delays() || config.allocation.time_ns > Nanos::ZERO;
        let delayed_zones = if delays { config.zones.count } else { 0 };
        let groups = flash.layout().groups();
        let zones = Zones::with_namespaces(&config.zones, &config.namespaces());
        Self {
            info: Drive::info_of(config),
            now: Nanos::ZERO,
            has_logs: config
                .namespaces()
                .iter()
                .any(|of| of.kind != NamespaceKind::Zoned),
            placement: config.has_handles().then(Box::default),
            internal_requests: 0,
            zones,
            prepared: Prepared::new(&config.allocation, Nanos::ZERO),
            front,
            window: Window::new(config),
            zone_starts: vec![Nanos::ZERO; delayed_zones as usize],
            data: (config.data == DataStore::Memory)
                .then(|| Data::Memory(SparseData::new(config.zones.count))),
            is_sync_wanted: false,
            reservations: Vec::new(),
            resets_kept: 0,
            events: EventQueue::default(),
            requests: Slab::default(),
            totals: Totals::default(),
            host_in_flight: vec![0; groups as usize],
            ready_at: Nanos::ZERO,
            effects: Effects::default(),
            backlog: Vec::new(),
            changes: Vec::new(),
            changed: ChangedZones::new(config.namespaces().len()),
            policies: Policies::default(),
            zone_log: ZoneLog::default(),
            recorder: None,
            watch: None,
            absence: None,
            flash,
            config: config.clone(),
        }
    }
}
