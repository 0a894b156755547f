//! The drive: commands in, completions out, in virtual time.

mod accept;
mod allocate;
mod control;
mod fork;
mod policies;
mod step;
mod thin;

pub use control::{Control, ControlError};

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, NamespaceId, NamespaceInfo, Nanos, Op, QueueId,
    RejectReason, Rejected, Tag, ZonedInfo, ZrwaInfo,
};
use zonelab_nvme::Status;

use crate::account::Totals;
use crate::background::Background;
use crate::buffer::WriteBuffer;
use crate::changed::ChangedZones;
use crate::config::{DataStore, DriveConfig, NamespaceKind};
use crate::contents::Data;
use crate::conventional::{Conventional, Role};
use crate::copy::Copies;
use crate::counterfactual::{Absence, Watch};
use crate::data::SparseData;
use crate::event::{Event, EventQueue};
use crate::flash::{Flash, Target};
use crate::front::FrontEnd;
use crate::mapping::Mapping;
use crate::mapping::prepared::Prepared;
use crate::record::{Recorder, ZoneLog};
use crate::slab::Slab;
use crate::zones::{Change, Zones};
use policies::Policies;

/// Most commands that can be in flight at once.
const MAX_IN_FLIGHT: usize = 1 << 24;

/// A command between its submission and its completion.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) queue: QueueId,
    pub(crate) tag: Tag,
    pub(crate) nsid: NamespaceId,
    /// With its address counted over the drive, if there is such a namespace.
    pub(crate) op: Op,
    /// Whose work it is.
    pub(crate) role: Role,
    pub(crate) status: Status,
    pub(crate) result: u64,
    pub(crate) data: Option<Buf>,
    pub(crate) stage: Stage,
    /// Groups of flash operations and background tasks that it waits for.
    pub(crate) pending: u32,
    /// Where a write goes.
    pub(crate) target: Target,
    /// Generation of the zone that a write goes to ([`Zones::generation`]).
    pub(crate) generation: u32,
}

impl Request {
    /// A request of the drive itself, on its way to the flash.
    pub(crate) fn internal(nsid: NamespaceId, op: Op, role: Role) -> Self {
        Self {
            queue: QueueId::default(),
            tag: Tag::default(),
            nsid,
            op,
            role,
            status: Status::SUCCESS,
            result: 0,
            data: None,
            stage: Stage::Flash,
            pending: 0,
            target: Target::NONE,
            generation: 0,
        }
    }
}

/// What a request waits for when its own event is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The front end lets it through to the flash.
    Admission,
    /// Flash reads of the sources of a copy.
    Sources,
    /// Flash work, its own or that of background tasks.
    Flash,
    /// The link, or nothing more.
    Completion,
}

/// Who waits for a group of flash operations: the token of [`crate::media`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A request, by slot.
    Request(u32),
    /// A background task, by slot.
    Task(u32),
    /// A program of the write buffer, by slot.
    Program(u32),
}

impl Owner {
    #[inline]
    pub(crate) const fn token(self) -> u32 {
        match self {
            Self::Request(i) => i << 1,
            Self::Task(i) => i << 2 | 1,
            Self::Program(i) => i << 2 | 3,
        }
    }

    #[inline]
    const fn of(token: u32) -> Self {
        if token & 1 == 0 {
            Self::Request(token >> 1)
        } else if token & 2 == 0 {
            Self::Task(token >> 2)
        } else {
            Self::Program(token >> 2)
        }
    }
}

/// The emulated drive: a state machine without threads, clock or I/O.
///
/// Whoever drives it says what time it is: [`Drive::submit`] and
/// [`Drive::advance`] take `now`, which never goes back, and
/// [`Drive::next_event`] says when something will happen next. With a clock
/// that jumps from event to event it is a simulator; with the monotonic clock
/// it is a live device.
#[derive(Debug)]
pub struct Drive {
    config: DriveConfig,
    info: DeviceInfo,
    pub(crate) now: Nanos,
    pub(crate) zones: Zones,
    /// Allocations made in idle time, if there are any.
    pub(crate) prepared: Option<Prepared>,
    pub(crate) flash: Flash,
    pub(crate) front: FrontEnd,
    pub(crate) data: Option<Data>,
    /// A flush completed since the contents were last kept.
    pub(crate) is_sync_wanted: bool,
    /// Resets when wear and totals were last kept.
    pub(crate) resets_kept: u64,
    pub(crate) events: EventQueue,
    pub(crate) requests: Slab<Request>,
    pub(crate) background: Background,
    /// The write-back buffer, if there is one.
    pub(crate) buffer: Option<Box<WriteBuffer>>,
    /// Copies whose sources are being read, and what waits for them.
    pub(crate) copies: Copies,
    /// Conventional namespaces.
    pub(crate) conventional: Vec<Conventional>,
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

impl Drive {
    /// A fresh drive: all zones empty, all flash erased.
    #[must_use]
    pub fn new(config: &DriveConfig) -> Self {
        let flash = Flash::new(config);
        let front = FrontEnd::new(&config.front_end, config.lba_bytes);
        let delays = front.delays() || config.allocation.time_ns > Nanos::ZERO;
        let delayed_zones = if delays { config.zones.count } else { 0 };
        let groups = flash.layout().groups();
        let page_lbas = flash.layout().page_lbas();
        let zones = Zones::with_namespaces(&config.zones, &config.namespaces());
        let buffer = |buffer| Box::new(WriteBuffer::new(buffer, config, page_lbas));
        Self {
            info: Self::info_of(config),
            now: Nanos::ZERO,
            conventional: Conventional::all(config, &zones),
            internal_requests: 0,
            zones,
            prepared: Prepared::new(&config.allocation, Nanos::ZERO),
            front,
            zone_starts: vec![Nanos::ZERO; delayed_zones as usize],
            data: (config.data == DataStore::Memory)
                .then(|| Data::Memory(SparseData::new(config.zones.count))),
            is_sync_wanted: false,
            resets_kept: 0,
            events: EventQueue::default(),
            requests: Slab::default(),
            background: Background::new(config.finish, config.reset, groups),
            buffer: config.write_buffer.as_ref().map(buffer),
            copies: Copies::default(),
            totals: Totals::default(),
            host_in_flight: vec![0; groups as usize],
            ready_at: Nanos::ZERO,
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

    /// What a host learns when it identifies the drive.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// What a host will learn of a drive of that configuration.
    #[must_use]
    pub fn info_of(config: &DriveConfig) -> DeviceInfo {
        let zones = &config.zones;
        let max_transfer_bytes = config.front_end.max_transfer_bytes.unwrap_or(u32::MAX);
        DeviceInfo {
            model: config.name.clone(),
            namespaces: config
                .namespaces()
                .iter()
                .map(|namespace| NamespaceInfo {
                    lba_bytes: config.lba_bytes,
                    size_lbas: namespace.size_lbas(zones),
                    zoned: (namespace.kind == NamespaceKind::Zoned).then_some(ZonedInfo {
                        zones: namespace.zones,
                        zone_size_lbas: zones.size_lbas,
                        zone_capacity_lbas: zones.capacity_lbas,
                        max_active: namespace.max_active,
                        max_open: namespace.max_open,
                        read_across_zones: zones.read_across,
                        descriptor_extension_bytes: zones.descriptor_extension_bytes,
                        zrwa: zones.zrwa.map(|zrwa| ZrwaInfo {
                            size_lbas: zrwa.size_lbas,
                            flush_granularity_lbas: zrwa.flush_granularity_lbas,
                            max_areas: zrwa.max_areas,
                            explicit_flush: zrwa.explicit_flush,
                        }),
                    }),
                    // Not modelled in a log.
                    copy: config
                        .copy
                        .filter(|_| namespace.kind == NamespaceKind::Zoned),
                })
                .collect(),
            max_transfer_bytes,
            max_append_bytes: config
                .front_end
                .max_append_bytes
                .unwrap_or(max_transfer_bytes),
        }
    }

    /// The configuration it was made with.
    #[must_use]
    pub fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// The time that the drive has reached.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// Zone states and write pointers.
    #[must_use]
    pub fn zones(&self) -> &Zones {
        &self.zones
    }

    /// The flash: layout, busy times, erase counts.
    #[must_use]
    pub fn flash(&self) -> &Flash {
        &self.flash
    }

    /// The zone mapping.
    #[must_use]
    pub fn mapping(&self) -> &Mapping {
        self.flash.mapping()
    }

    /// Bytes and operations since the drive was made.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let (erased_blocks, programmed) = self.flash.totals();
        let fill_program_bytes = self.totals.fill_program_bytes;
        Totals {
            erased_blocks,
            host_program_bytes: programmed - fill_program_bytes - self.totals.collect_program_bytes,
            ..self.totals
        }
    }

    /// Events that the drive has handled since it was made.
    #[must_use]
    pub fn events_handled(&self) -> u64 {
        self.events.handled()
    }

    /// Commands submitted and not yet completed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.requests.len() - self.internal_requests
    }

    /// When something happens next; `None`: nothing will until a command comes.
    /// Never late. It can name a time at which nothing shows from outside:
    /// the deadline of a background task that went on before it.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        if self.backlog.is_empty() {
            self.events.next_at()
        } else {
            Some(self.now)
        }
    }

    /// Hands a command over. Its completion comes from [`Drive::advance`],
    /// also if the command is refused: nothing completes in here. Events due
    /// by `now` run first.
    ///
    /// # Errors
    /// [`Rejected`] with the buffer if more commands are in flight than the
    /// drive can tell apart (2^24), or if it has no power or is starting
    /// ([`Drive::power_cut`]).
    ///
    /// # Panics
    /// If `now` goes back.
    pub fn submit(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected> {
        if self.watch.is_some() {
            self.watch_time(now);
        }
        self.catch_up(now);
        if self.requests.len() >= MAX_IN_FLIGHT {
            let reason = RejectReason::QueueFull {
                queue,
                depth: MAX_IN_FLIGHT as u32,
            };
            return Err(Rejected { reason, data });
        }
        if now < self.ready_at {
            let reason = RejectReason::Disconnected;
            return Err(Rejected { reason, data });
        }
        if self.watch.is_some() {
            self.watch_command(now, (queue, tag), command, data.as_ref());
        }
        if let Some(pool) = &mut self.prepared {
            pool.wakes(now);
        }
        let namespace = self.zones.namespace(command.nsid);
        let op = namespace.map_or(command.op, |namespace| namespace.on_drive(command.op));
        let role = match namespace.and_then(|namespace| namespace.conventional()) {
            None => Role::Zoned,
            Some(which) => Role::Conventional(which),
        };
        let is_known = namespace.is_some();
        let request = self.requests.insert(Request {
            queue,
            tag,
            nsid: command.nsid,
            op,
            role,
            status: Status::SUCCESS,
            result: 0,
            data,
            stage: Stage::Admission,
            pending: 0,
            target: Target::NONE,
            generation: 0,
        });
        if self.is_tracked() {
            self.mark_command(request);
            self.watch_slot(request);
        }
        if self.recorder.is_some() {
            let on_drive = Command { op, ..command };
            self.record_submission(request, (queue, tag, on_drive));
        }
        let processed = self.front.process(now, &op);
        let accepted = if let Role::Conventional(which) = role {
            self.accept_conventional(which, op, request, processed)
        } else if is_known {
            self.accept(command.nsid, op, request, processed)
        } else {
            Err(Status::INVALID_NAMESPACE_OR_FORMAT)
        };
        if self.zones.has_journal() {
            self.record_zone_changes();
        }
        if let (true, Ok(start)) = (self.recorder.is_some(), accepted) {
            self.record_start(request, start);
        }
        if self.erases_by_thresholds() && accepted.is_ok() {
            self.host_begins(op, processed);
        }
        match accepted {
            Ok(start) if start == now => self.step(request),
            Ok(start) => self.events.push(start, Event::Request(request)),
            Err(status) => {
                let refused = self.requests.at(request);
                refused.status = status;
                refused.stage = Stage::Completion;
                self.events.push(processed, Event::Request(request));
            }
        }
        Ok(())
    }

    /// Runs everything that is due by `to` and appends what completed to
    /// `done`, in order of time, then of the order in which it came about.
    ///
    /// # Panics
    /// If `to` lies before the time of an earlier call.
    pub fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        assert!(to >= self.now, "time goes back from {} to {to}", self.now);
        done.append(&mut self.backlog);
        core::mem::swap(&mut self.backlog, done);
        while let Some((at, event)) = self.events.pop_due(to) {
            self.now = at;
            self.run(event);
        }
        core::mem::swap(&mut self.backlog, done);
        self.now = to;
    }

    pub(crate) fn catch_up(&mut self, now: Nanos) {
        assert!(now >= self.now, "time goes back from {} to {now}", self.now);
        while let Some((at, event)) = self.events.pop_due(now) {
            self.now = at;
            self.run(event);
        }
        self.now = now;
    }

    fn run(&mut self, event: Event) {
        match event {
            Event::GroupDone(token) => {
                self.flash.group_done(token);
                match Owner::of(token) {
                    Owner::Request(request) => self.part_done(request),
                    Owner::Task(task) => self.task_group_done(task),
                    Owner::Program(program) => self.program_group_done(program),
                }
            }
            Event::Unit(_) | Event::Channel(_) => {
                self.flash
                    .media_mut()
                    .handle(self.now, event, &mut self.events);
            }
            Event::Task(wakeup) => self.task_wakes(wakeup),
            Event::Request(request) => self.step(request),
            Event::Drain => self.drain_on(),
            Event::Quiet => self.media_is_quiet(),
            Event::Loaded(token) => {
                if let Owner::Program(program) = Owner::of(token) {
                    self.program_loaded(program);
                }
            }
        }
    }
}
