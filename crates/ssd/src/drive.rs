//! The drive: commands in, completions out, in virtual time.

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Lba, NamespaceId, NamespaceInfo, Nanos, Op, QueueId,
    RejectReason, Rejected, Tag, ZoneId, ZonedInfo,
};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};

use crate::account::{Cause, Totals};
use crate::background::Background;
use crate::buffer::WriteBuffer;
use crate::config::{DataStore, DriveConfig, MappingConfig};
use crate::data::SparseData;
use crate::event::{Event, EventQueue};
use crate::flash::{BlockRange, Claim, Flash};
use crate::front::FrontEnd;
use crate::mapping::Mapping;
use crate::record::{Recorder, ZoneLog};
use crate::slab::Slab;
use crate::zones::{Change, Zones};

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
    status: Status,
    pub(crate) result: u64,
    pub(crate) data: Option<Buf>,
    pub(crate) stage: Stage,
    /// Groups of flash operations and background tasks that it waits for.
    pub(crate) pending: u32,
    /// Where a write goes.
    pub(crate) claim: Claim,
    /// Generation of the zone that a write goes to ([`Zones::generation`]).
    pub(crate) generation: u32,
}

/// What a request waits for when its own event is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The front end lets it through to the flash.
    Admission,
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

/// An action on a drive that no command of a host could do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Declares a range of empty zones full, as if they had been written from
    /// start to end by now. Takes time proportional to the number of zones.
    PreconditionFull {
        /// The zones, counted over the drive.
        zones: core::ops::Range<u32>,
    },
    /// A fault: a zone becomes read-only or offline.
    FailZone {
        /// The zone, counted over the drive.
        zone: ZoneId,
        /// [`ZoneState::READ_ONLY`] or [`ZoneState::OFFLINE`].
        to: ZoneState,
    },
}

/// Why a control action was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The range leaves the drive.
    #[error("zones {}..{} are not all on the drive, which has {zones}", range.start, range.end)]
    NoSuchZone {
        /// The range asked for.
        range: core::ops::Range<u32>,
        /// Zones of the drive.
        zones: u32,
    },
    /// A zone of the range is not empty.
    #[error("zone {} is not empty: only empty zones can be declared full", zone.0)]
    NotEmpty {
        /// The first such zone.
        zone: ZoneId,
    },
    /// A drive that keeps data cannot have written zones without data.
    #[error("the drive keeps data (data.store = \"memory\"), so zones cannot be declared written")]
    KeepsData,
    /// There is no way from the state of the zone to the one asked for.
    #[error("zone {} cannot go from {from} to {to}: a zone fails to read-only or offline", zone.0)]
    CannotFail {
        /// The zone.
        zone: ZoneId,
        /// Its state.
        from: ZoneState,
        /// The state asked for.
        to: ZoneState,
    },
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
    pub(crate) mapping: Mapping,
    pub(crate) flash: Flash,
    pub(crate) front: FrontEnd,
    pub(crate) data: Option<SparseData>,
    pub(crate) events: EventQueue,
    pub(crate) requests: Slab<Request>,
    pub(crate) background: Background,
    /// The write-back buffer, if there is one.
    pub(crate) buffer: Option<Box<WriteBuffer>>,
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
    changes: Vec<Change>,
    /// Changes of zone states, if they are recorded.
    pub(crate) zone_log: ZoneLog,
    /// Everything else that is recorded, if it is.
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl Drive {
    /// A fresh drive: all zones empty, all flash erased.
    #[must_use]
    pub fn new(config: &DriveConfig) -> Self {
        let physical_zones = match config.mapping {
            MappingConfig::Direct => config.zones.count,
            MappingConfig::Lazy { physical_zones } => physical_zones,
        };
        let flash = Flash::new(config, physical_zones);
        let front = FrontEnd::new(&config.front_end, config.lba_bytes);
        let delayed_zones = if front.delays() {
            config.zones.count
        } else {
            0
        };
        let groups = flash.layout().groups();
        let page_lbas = flash.layout().page_lbas();
        let buffer = |buffer| Box::new(WriteBuffer::new(buffer, config, page_lbas));
        Self {
            info: device_info(config),
            now: Nanos::ZERO,
            zones: Zones::with_namespaces(&config.zones, &config.namespaces()),
            mapping: Mapping::new(config.mapping, config.zones.count, groups),
            front,
            zone_starts: vec![Nanos::ZERO; delayed_zones as usize],
            data: (config.data == DataStore::Memory).then(|| SparseData::new(config.zones.count)),
            events: EventQueue::default(),
            requests: Slab::default(),
            background: Background::new(config.finish, config.reset),
            buffer: config.write_buffer.as_ref().map(buffer),
            totals: Totals::default(),
            host_in_flight: vec![0; groups as usize],
            ready_at: Nanos::ZERO,
            backlog: Vec::new(),
            changes: Vec::new(),
            zone_log: ZoneLog::default(),
            recorder: None,
            flash,
            config: config.clone(),
        }
    }

    /// What a host learns when it identifies the drive.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.info
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
        &self.mapping
    }

    /// Bytes and operations since the drive was made.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let (erased_blocks, programmed) = self.flash.totals();
        let fill_program_bytes = self.totals.fill_program_bytes;
        Totals {
            erased_blocks,
            host_program_bytes: programmed - fill_program_bytes,
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
        self.requests.len()
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
        let namespace = self.zones.namespace(command.nsid);
        let op = namespace.map_or(command.op, |namespace| namespace.on_drive(command.op));
        let is_known = namespace.is_some();
        let request = self.requests.insert(Request {
            queue,
            tag,
            nsid: command.nsid,
            op,
            status: Status::SUCCESS,
            result: 0,
            data,
            stage: Stage::Admission,
            pending: 0,
            claim: Claim::NONE,
            generation: 0,
        });
        if self.recorder.is_some() {
            let on_drive = Command { op, ..command };
            self.record_submission(request, (queue, tag, on_drive));
        }
        let processed = self.front.process(now, &op);
        let accepted = if is_known {
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

    /// Does what no command of a host could.
    ///
    /// # Errors
    /// [`ControlError`] if the action is not possible; nothing has changed then.
    pub fn control(&mut self, now: Nanos, action: &Control) -> Result<(), ControlError> {
        self.catch_up(now);
        let result = match action {
            Control::PreconditionFull { zones } => self.precondition_full(zones.clone()),
            Control::FailZone { zone, to } => self.fail_zone(*zone, *to),
        };
        if self.zones.has_journal() {
            self.record_zone_changes();
        }
        result
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
            Event::GroupDone(token) => match Owner::of(token) {
                Owner::Request(request) => self.part_done(request),
                Owner::Task(task) => self.task_group_done(task),
                Owner::Program(program) => self.program_group_done(program),
            },
            Event::Unit(_) | Event::Channel(_) => {
                self.flash
                    .media_mut()
                    .handle(self.now, event, &mut self.events);
            }
            Event::Task(task) => self.task_wakes(task),
            Event::Request(request) => self.step(request),
            Event::Drain => self.drain_on(),
            Event::Loaded(token) => {
                if let Owner::Program(program) = Owner::of(token) {
                    self.program_loaded(program);
                }
            }
        }
    }

    /// Checks a command on a namespace that exists, with its address counted
    /// over the drive, and does everything about it that must happen in order
    /// of arrival: zone states, mapping, data. Returns when it goes on:
    /// `processed`, or when its data has arrived.
    #[inline]
    fn accept(
        &mut self,
        nsid: NamespaceId,
        op: Op,
        request: u32,
        processed: Nanos,
    ) -> Result<Nanos, Status> {
        match op {
            Op::Read { slba, nlb } => {
                self.check_transfer(nlb, self.info.max_transfer_bytes, request)?;
                self.zones.read(slba, nlb)?;
                Ok(processed.saturating_add(self.charge(&op, nlb, false)))
            }
            Op::Write { slba, nlb } => {
                self.check_transfer(nlb, self.info.max_transfer_bytes, request)?;
                let extent = self.zones.write(slba, nlb)?;
                self.totals.implicit_closes += u64::from(extent.closed.is_some());
                let processed = processed.saturating_add(self.charge(&op, nlb, extent.opened));
                Ok(self.accept_write(extent.zone, extent.offset_lbas, nlb, request, processed))
            }
            Op::Append { zslba, nlb } => {
                self.check_transfer(nlb, self.info.max_append_bytes, request)?;
                let extent = self.zones.append(zslba, nlb)?;
                self.totals.implicit_closes += u64::from(extent.closed.is_some());
                self.requests.at(request).result = zslba.0 + extent.offset_lbas;
                let processed = processed.saturating_add(self.charge(&op, nlb, extent.opened));
                Ok(self.accept_write(extent.zone, extent.offset_lbas, nlb, request, processed))
            }
            Op::Flush => Ok(processed),
            Op::ZoneSend {
                slba,
                action,
                select_all,
            } => {
                let zone = (!select_all).then_some(slba);
                self.accept_zone_send(nsid, zone, action, request, processed)?;
                Ok(processed)
            }
            Op::ZoneReceive {
                slba,
                filter,
                partial,
                extended,
            } => {
                let request = self.requests.at(request);
                let out = request.data.as_deref_mut().ok_or(Status::INVALID_FIELD)?;
                self.zones.report(slba, filter, partial, extended, out)?;
                Ok(processed)
            }
        }
    }

    /// What the front end charges for a transfer that was accepted.
    #[inline]
    fn charge(&mut self, op: &Op, nlb: u32, opened: bool) -> Nanos {
        let bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
        self.front.charge(op, bytes, opened)
    }

    /// The rules that hold for every data transfer.
    fn check_transfer(&mut self, nlb: u32, max_bytes: u32, request: u32) -> Result<(), Status> {
        let bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
        let fits = match &self.requests.at(request).data {
            Some(buf) => buf.len() as u64 == bytes,
            None => true,
        };
        if nlb == 0 || !fits || (max_bytes != u32::MAX && bytes > u64::from(max_bytes)) {
            return Err(Status::INVALID_FIELD);
        }
        Ok(())
    }

    /// Takes a write that its zone has accepted. Returns when its flash work starts.
    #[inline]
    fn accept_write(
        &mut self,
        zone: ZoneId,
        offset_lbas: u64,
        nlb: u32,
        request: u32,
        processed: Nanos,
    ) -> Nanos {
        let physical = self.mapping.map(zone);
        // Fits: a zone has fewer than 2^32 pages, and profiles keep its blocks below 2^32 too.
        let range = BlockRange {
            first: offset_lbas as u32,
            count: nlb,
        };
        let claim = if self.buffer.is_some() {
            // Whole units claim their flash when they leave the buffer.
            Claim::later(physical, range)
        } else {
            self.flash.claim(physical, range)
        };
        let lba_bytes = u64::from(self.config.lba_bytes);
        self.totals.host_write_bytes += u64::from(nlb) * lba_bytes;
        let request = self.requests.at(request);
        request.claim = claim;
        request.generation = self.zones.generation(zone);
        if let (Some(data), Some(buf)) = (&mut self.data, &request.data) {
            data.write(zone, offset_lbas * lba_bytes, buf);
        }
        let fetched = self.front.fetch(processed, u64::from(nlb) * lba_bytes);
        self.in_zone_order(zone, fetched)
    }

    /// `start`, but not before what was accepted for the zone earlier starts:
    /// a cheap command must not get to the flash before a dear one that its
    /// zone accepted first.
    #[inline]
    pub(crate) fn in_zone_order(&mut self, zone: ZoneId, start: Nanos) -> Nanos {
        match self.zone_starts.get_mut(zone.0 as usize) {
            Some(last) => {
                *last = start.max(*last);
                *last
            }
            // Without delays, the order of arrival is that of the starts.
            None => start,
        }
    }

    /// Zone management of the zone that starts at `zone`, or of all zones of a namespace.
    fn accept_zone_send(
        &mut self,
        nsid: NamespaceId,
        zone: Option<Lba>,
        action: ZoneSendAction,
        request: u32,
        start: Nanos,
    ) -> Result<(), Status> {
        if action == ZoneSendAction::SET_DESCRIPTOR_EXTENSION {
            let slba = zone.ok_or(Status::INVALID_FIELD)?;
            let data = self
                .requests
                .at(request)
                .data
                .as_deref()
                .ok_or(Status::INVALID_FIELD)?;
            return self.zones.set_extension(slba, data);
        }
        let mut changes = core::mem::take(&mut self.changes);
        changes.clear();
        let result = match zone {
            Some(slba) => self.zones.send(slba, action, &mut changes),
            None => self.zones.send_all(nsid, action, &mut changes),
        };
        for change in &changes {
            match action {
                ZoneSendAction::FINISH => self.begin_finish(change, request, start),
                ZoneSendAction::RESET => {
                    if let Some(data) = &mut self.data {
                        data.clear(change.zone);
                    }
                    self.begin_reset(change, request, start);
                }
                ZoneSendAction::OPEN => {
                    let closed = change.to == ZoneState::CLOSED;
                    self.totals.implicit_closes += u64::from(closed);
                }
                _ => {}
            }
        }
        self.changes = changes;
        if action == ZoneSendAction::RESET {
            self.admit();
        }
        result
    }

    /// Moves a request on when its own event is due.
    #[inline]
    fn step(&mut self, index: u32) {
        let request = self.requests.at(index);
        match request.stage {
            Stage::Admission => {
                request.stage = Stage::Flash;
                let op = request.op;
                match op {
                    Op::Read { slba, nlb } => self.start_read(index, slba, nlb),
                    Op::Write { .. } | Op::Append { .. } if self.buffer.is_some() => {
                        return self.buffer_write(index);
                    }
                    Op::Write { .. } | Op::Append { .. } => self.start_write(index),
                    _ => {}
                }
                if op == Op::Flush && self.buffer_flush(index) {
                    return;
                }
                let request = self.requests.at(index);
                if request.pending == 0 {
                    request.stage = Stage::Completion;
                    let bytes = match request.op {
                        Op::Read { nlb, .. } => u64::from(nlb) * u64::from(self.config.lba_bytes),
                        _ => 0,
                    };
                    // Nothing completes inside `submit`: even what needs no
                    // time takes its turn in the queue of events.
                    let (now, op) = (self.now, request.op);
                    let ready = self.front.conclude(now, &op).unwrap_or(now);
                    let at = self.front.deliver(ready, bytes).unwrap_or(ready);
                    self.events.push(at, Event::Request(index));
                }
            }
            Stage::Flash => unreachable!("a request with flash work in flight has no event"),
            Stage::Completion => self.complete(index),
        }
    }

    #[inline]
    fn start_write(&mut self, index: u32) {
        let claim = self.requests.at(index).claim;
        self.hurry_erasure(claim.physical);
        let group = self.flash.layout().group_of(claim.physical) as usize;
        self.host_in_flight[group] += 1;
        let token = Owner::Request(index).token();
        let cause = Cause::HostWrite;
        let groups = self
            .flash
            .program(self.now, claim, cause, token, &mut self.events);
        self.requests.at(index).pending = groups;
    }

    /// Reads what the host has written; the rest needs no flash.
    #[inline]
    fn start_read(&mut self, index: u32, slba: Lba, nlb: u32) {
        let size = self.config.zones.size_lbas;
        let (mut at, end) = (slba.0, slba.0 + u64::from(nlb));
        self.totals.host_read_bytes += u64::from(nlb) * u64::from(self.config.lba_bytes);
        let mut groups = 0;
        while at < end {
            let zone = self
                .zones
                .zone_of(Lba(at))
                .expect("a read that was accepted is on the drive");
            let start = u64::from(zone.0) * size;
            let written_end = start + self.zones.host_lbas(zone);
            let piece_end = end.min(start + size);
            let readable_end = piece_end.min(written_end);
            if at < readable_end
                && let Some(physical) = self.mapping.physical(zone)
            {
                let range = (at - start) as u32..(readable_end - start) as u32;
                groups += self.read_flash(index, zone, physical, range);
            }
            at = piece_end;
        }
        self.requests.at(index).pending = groups;
        if groups > 0 {
            for zone in self.zones_read(slba, nlb) {
                let group = self.flash.layout().group_of(zone) as usize;
                self.host_in_flight[group] += 1;
            }
        }
    }

    /// The zones that an accepted read touches. Their groups are those of the
    /// flash under them, with either mapping.
    #[inline]
    fn zones_read(&self, slba: Lba, nlb: u32) -> core::ops::RangeInclusive<u32> {
        let zone_of = |lba| {
            self.zones
                .zone_of(Lba(lba))
                .expect("a read that was accepted is on the drive")
                .0
        };
        let (first, last) = (slba.0, slba.0 + u64::from(nlb) - 1);
        zone_of(first)..=zone_of(last)
    }

    /// One of the things that a request waits for is done.
    #[inline]
    pub(crate) fn part_done(&mut self, index: u32) {
        let request = self.requests.at(index);
        debug_assert!(request.pending > 0, "a request is completed once");
        request.pending -= 1;
        if request.pending > 0 || request.stage == Stage::Admission {
            return;
        }
        request.stage = Stage::Completion;
        let (op, physical) = (request.op, request.claim.physical);
        let mut bytes = 0;
        match op {
            Op::Read { slba, nlb } => {
                bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
                for zone in self.zones_read(slba, nlb) {
                    self.host_io_done(self.flash.layout().group_of(zone));
                }
            }
            Op::Write { .. } | Op::Append { .. } => {
                self.host_io_done(self.flash.layout().group_of(physical));
            }
            _ => {}
        }
        let concluded = self.front.conclude(self.now, &op);
        let ready = concluded.unwrap_or(self.now);
        match self.front.deliver(ready, bytes).or(concluded) {
            Some(at) => self.events.push(at, Event::Request(index)),
            None => self.complete(index),
        }
    }

    #[inline]
    fn complete(&mut self, index: u32) {
        let request = self.requests.at(index);
        let mut completion = Completion {
            queue: request.queue,
            tag: request.tag,
            status: request.status,
            at: self.now,
            result: request.result,
            data: request.data.take(),
        };
        let (op, nsid) = (request.op, request.nsid);
        self.requests.free(index);
        if let Op::Append { .. } = op
            && completion.status.is_success()
        {
            completion.result -= self.first_lba(nsid);
        }
        if self.recorder.is_some() {
            self.record_completion(index, completion.status);
        }
        if let (Op::Read { slba, .. }, Some(data), Some(buf)) =
            (op, &self.data, &mut completion.data)
            && completion.status.is_success()
        {
            self.copy_out(data, slba, buf);
        }
        self.backlog.push(completion);
    }

    /// First block of the namespace of an accepted command, counted over the drive.
    #[inline]
    fn first_lba(&self, nsid: NamespaceId) -> u64 {
        let namespace = self.zones.namespace(nsid);
        namespace
            .expect("a command for no namespace is not accepted")
            .first_lba()
            .0
    }

    fn copy_out(&self, data: &SparseData, slba: Lba, buf: &mut [u8]) {
        let zone_bytes = self.config.zones.size_lbas * u64::from(self.config.lba_bytes);
        let mut at = slba.0 * u64::from(self.config.lba_bytes);
        let mut rest = buf;
        while !rest.is_empty() {
            let within = at % zone_bytes;
            let piece = rest
                .len()
                .min(usize::try_from(zone_bytes - within).unwrap_or(usize::MAX));
            let (head, tail) = rest.split_at_mut(piece);
            // Fits: the read was accepted, so the zone is one of the drive's.
            data.read(ZoneId((at / zone_bytes) as u32), within, head);
            at += piece as u64;
            rest = tail;
        }
    }

    fn fail_zone(&mut self, zone: ZoneId, to: ZoneState) -> Result<(), ControlError> {
        let zones = self.config.zones.count;
        if zone.0 >= zones {
            let range = zone.0..zone.0.saturating_add(1);
            return Err(ControlError::NoSuchZone { range, zones });
        }
        let from = self.zones.state(zone);
        let mut changes = core::mem::take(&mut self.changes);
        changes.clear();
        let result = self.zones.fail(zone, to, &mut changes);
        self.changes = changes;
        result.map_err(|_| ControlError::CannotFail { zone, from, to })
    }

    fn precondition_full(&mut self, zones: core::ops::Range<u32>) -> Result<(), ControlError> {
        let count = self.config.zones.count;
        if zones.start > zones.end || zones.end > count {
            return Err(ControlError::NoSuchZone {
                range: zones,
                zones: count,
            });
        }
        if self.data.is_some() {
            return Err(ControlError::KeepsData);
        }
        let is_empty = |zone: &u32| self.zones.state(ZoneId(*zone)) == ZoneState::EMPTY;
        if let Some(zone) = zones.clone().find(|zone| !is_empty(zone)) {
            return Err(ControlError::NotEmpty { zone: ZoneId(zone) });
        }
        self.zones
            .precondition_full(zones.clone())
            .expect("all of them were seen to be on the drive and empty");
        for zone in zones {
            let physical = self.mapping.map(ZoneId(zone));
            self.hurry_erasure(physical);
            let pages = self.flash.layout().zone_pages();
            self.flash.precondition(physical, pages);
            if let Some(buffer) = &mut self.buffer {
                buffer.settle_zone(ZoneId(zone), self.config.zones.capacity_lbas);
            }
        }
        Ok(())
    }
}

fn device_info(config: &DriveConfig) -> DeviceInfo {
    let zones = &config.zones;
    let max_transfer_bytes = config.front_end.max_transfer_bytes.unwrap_or(u32::MAX);
    DeviceInfo {
        model: config.name.clone(),
        namespaces: config
            .namespaces()
            .iter()
            .map(|namespace| NamespaceInfo {
                lba_bytes: config.lba_bytes,
                size_lbas: u64::from(namespace.zones) * zones.size_lbas,
                zoned: Some(ZonedInfo {
                    zones: namespace.zones,
                    zone_size_lbas: zones.size_lbas,
                    zone_capacity_lbas: zones.capacity_lbas,
                    max_active: namespace.max_active,
                    max_open: namespace.max_open,
                    read_across_zones: zones.read_across,
                    descriptor_extension_bytes: zones.descriptor_extension_bytes,
                }),
            })
            .collect(),
        max_transfer_bytes,
        max_append_bytes: config
            .front_end
            .max_append_bytes
            .unwrap_or(max_transfer_bytes),
    }
}
