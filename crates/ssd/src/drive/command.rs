//! The way of a command: [`Drive::arrive`], [`Drive::take_up`], [`Drive::step`] when the front end
//! lets it through and again when it is over, [`Drive::part_done`] as the flash works on it, and
//! its completion. Whether it is accepted, and which blocks it gets, is in `accept`.

use zonelab_device::{Buf, Command, Completion, Found, Lba, NamespaceId, Nanos, Op, QueueId, Tag};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

use super::{Core, Drive, Request, Stage};
use crate::conventional::Role;
use crate::event::Event;
use crate::flash::Target;

impl Drive {
    /// A command arrives. The front end turns to it at once, or it waits in line.
    pub(super) fn arrive(
        &mut self,
        now: Nanos,
        (queue, tag): (QueueId, Tag),
        command: Command,
        data: Option<Buf>,
    ) {
        if let Some(pool) = &mut self.core.prepared {
            pool.wakes(now);
        }
        let namespace = self.core.zones.namespace(command.nsid);
        let op = namespace.map_or(command.op, |namespace| namespace.on_drive(command.op));
        let role = match namespace.and_then(|namespace| namespace.conventional()) {
            None => Role::Zoned,
            Some(which) => Role::Conventional(which),
        };
        let is_known = namespace.is_some();
        let request = self.core.requests.insert(Request {
            queue,
            tag,
            nsid: command.nsid,
            op,
            role,
            placement: command.placement,
            status: Status::SUCCESS,
            result: 0,
            found: Found::Work(op.nlb()),
            data,
            stage: Stage::Admission,
            pending: 0,
            target: Target::NONE,
            generation: 0,
        });
        if self.core.is_tracked() {
            self.core.mark_command(request);
            self.core.watch_slot(request);
        }
        if self.core.recorder.is_some() {
            let on_drive = Command { op, ..command };
            self.core.record_submission(request, (queue, tag, on_drive));
        }
        if self.core.window.admits(request, &op) {
            self.take_up(request, is_known);
        }
        self.settle();
    }

    /// The front end turns to a command that has arrived: it is refused, and completes so, or has
    /// its place from now on.
    #[inline]
    fn take_up(&mut self, request: u32, is_known: bool) {
        let now = self.core.now;
        let Request { nsid, op, role, .. } = *self.core.requests.at(request);
        let processed = self.core.front.process(now, &op);
        let accepted = if let Role::Conventional(which) = role {
            let (of, mut end) = self.conventional(which);
            of.accept_conventional(&mut end, op, request, processed)
        } else if is_known {
            self.accept(nsid, op, request, processed)
        } else {
            Err(Status::INVALID_NAMESPACE_OR_FORMAT)
        };
        if self.core.zones.has_journal() {
            self.core.record_zone_changes();
        }
        if let (true, Ok(start)) = (self.core.recorder.is_some(), accepted) {
            self.core.record_start(request, start);
        }
        if accepted.is_ok() {
            self.background.host_begins(&mut self.core, op, processed);
        }
        match accepted {
            Ok(start) if start == now => self.step(request),
            Ok(start) => self.core.events.push(start, Event::Request(request)),
            Err(status) => {
                let refused = self.core.requests.at(request);
                refused.status = status;
                refused.stage = Stage::Completion;
                self.core.events.push(processed, Event::Request(request));
            }
        }
    }

    /// The front end turns to those that wait for their turn and have it now.
    #[cold]
    pub(super) fn go_on_in_line(&mut self) {
        while let Some(request) = self.core.next_in_line() {
            let nsid = self.core.requests.at(request).nsid;
            let is_known = self.core.zones.namespace(nsid).is_some();
            self.take_up(request, is_known);
            self.settle();
        }
    }

    /// Moves a request on when its own event is due.
    #[inline]
    pub(crate) fn step(&mut self, index: u32) {
        if self.background.is_held(&mut self.core, index) {
            return;
        }
        let request = self.core.requests.at(index);
        match request.stage {
            Stage::Admission => {
                if let Role::Conventional(which) = request.role {
                    let (of, mut end) = self.conventional(which);
                    return of.start_conventional(&mut end, index);
                }
                request.stage = Stage::Flash;
                let op = request.op;
                match op {
                    Op::Read { slba, nlb }
                    | Op::Compare { slba, nlb }
                    | Op::Verify { slba, nlb } => self.back_end().start_read(index, slba, nlb),
                    Op::Write { .. }
                    | Op::Append { .. }
                    | Op::WriteZeroes { .. }
                    | Op::ZoneSend {
                        action: ZoneSendAction::ZRWA_FLUSH,
                        ..
                    } => {
                        if !self.copies.is_empty() && self.copies.holds_request(index) {
                            return self.write_behind_copies(index);
                        }
                        // What its zone stood on may be another's by now.
                        let is_void = self.buffer.is_none() && self.core.was_reset_since(index);
                        if !is_void {
                            return self.back_end().issue_write(index);
                        }
                    }
                    Op::Copy { .. } => return self.start_copy(index),
                    _ => {}
                }
                if op == Op::Flush && self.back_end().flush_buffer(index) {
                    return;
                }
                let request = self.core.requests.at(index);
                if request.pending == 0 {
                    request.stage = Stage::Completion;
                    let bytes = match request.op {
                        Op::Read { nlb, .. } => {
                            u64::from(nlb) * u64::from(self.core.config.lba_bytes)
                        }
                        _ => 0,
                    };
                    // Nothing completes inside `submit`: even what needs no
                    // time takes its turn in the queue of events.
                    let (now, op) = (self.core.now, request.op);
                    let ready = self.core.front.conclude(now, &op).unwrap_or(now);
                    let at = self.core.front.deliver(ready, bytes).unwrap_or(ready);
                    self.core.events.push(at, Event::Request(index));
                }
            }
            Stage::Flash | Stage::Sources => {
                unreachable!("a request with flash work in flight has no event")
            }
            Stage::Completion if request.role.is_internal() => self.internal_request_over(index),
            Stage::Completion => self.complete(index),
        }
    }

    /// They are over.
    #[inline]
    pub(crate) fn host_read_ends(&mut self, slba: Lba, nlb: u32) {
        for zone in self.core.zones_read(slba, nlb) {
            self.host_io_done(self.core.flash.layout().group_of(zone));
        }
    }

    /// One of the things that a request waits for is done.
    #[inline]
    pub(crate) fn part_done(&mut self, index: u32) {
        let request = self.core.requests.at(index);
        debug_assert!(request.pending > 0, "a request is completed once");
        request.pending -= 1;
        if request.pending > 0 || request.stage == Stage::Admission {
            return;
        }
        if request.stage == Stage::Sources {
            return self.copy_was_read(index);
        }
        if request.role != Role::Zoned {
            let (role, op) = (request.role, request.op);
            let group = self.core.flash.layout().group_of(request.target.physical);
            if role.is_internal() && matches!(op, Op::Write { .. }) {
                self.host_io_done(group);
            }
            // Its parts are programmed by requests of their own.
            if let (Role::Conventional(which), Op::Write { .. } | Op::WriteZeroes { .. }) =
                (role, op)
            {
                let (of, mut end) = self.conventional(which);
                return of.rest_was_read(&mut end, index);
            }
            return self.core.conventional_flash_done(index);
        }
        request.stage = Stage::Completion;
        let (op, physical) = (request.op, request.target.physical);
        let mut bytes = 0;
        match op {
            Op::Read { slba, nlb } => {
                bytes = u64::from(nlb) * u64::from(self.core.config.lba_bytes);
                self.host_read_ends(slba, nlb);
            }
            Op::Compare { slba, nlb } | Op::Verify { slba, nlb } => {
                self.host_read_ends(slba, nlb);
            }
            Op::Write { .. } | Op::Append { .. } | Op::WriteZeroes { .. } | Op::Copy { .. } => {
                self.host_io_done(self.core.flash.layout().group_of(physical));
            }
            _ => {}
        }
        let concluded = self.core.front.conclude(self.core.now, &op);
        let ready = concluded.unwrap_or(self.core.now);
        match self.core.front.deliver(ready, bytes).or(concluded) {
            Some(at) => self.core.events.push(at, Event::Request(index)),
            None => self.complete(index),
        }
    }

    /// A request of the drive itself is over.
    #[cold]
    pub(crate) fn internal_request_over(&mut self, index: u32) {
        match self.core.remove_internal(index).role {
            Role::Part(command) => {
                let which = self.core.requests.at(command).role;
                let request = self.core.requests.at(command);
                request.pending -= 1;
                let is_placed = request.result == u64::from(request.op.nlb());
                if request.pending == 0 && is_placed {
                    self.core.conclude_conventional(command);
                }
                if let Role::Conventional(which) = which {
                    let (of, mut end) = self.conventional(which);
                    of.part_over(&mut end);
                }
            }
            Role::Collection(which) => {
                let (of, mut end) = self.conventional(which);
                of.collection_goes_on(&mut end);
            }
            Role::Zoned | Role::Conventional(_) => {}
        }
    }

    #[inline]
    fn complete(&mut self, index: u32) {
        let request = self.core.requests.at(index);
        let mut completion = Completion {
            queue: request.queue,
            tag: request.tag,
            status: request.status,
            at: self.core.now,
            result: request.result,
            found: request.found,
            data: request.data.take(),
        };
        let (op, nsid, role) = (request.op, request.nsid, request.role);
        let is_accepted = request.status.is_success();
        if self.core.is_tracked() {
            self.core.watch_completion(index);
            self.core.note_over(index);
        }
        self.core.requests.free(index);
        if self.core.window.is_left_by(&op) {
            self.core.events.push(self.core.now, Event::Line);
        }
        if is_accepted {
            self.background.host_ends(&mut self.core, op);
        }
        if self.core.in_flight() == 0
            && let Some(pool) = &mut self.core.prepared
        {
            pool.idles(self.core.now);
        }
        self.core.is_sync_wanted |= matches!(op, Op::Flush);
        if let Op::Append { .. } = op
            && completion.status.is_success()
        {
            completion.result -= self.core.first_lba(nsid);
        }
        if role == Role::Zoned && completion.status.is_success() {
            completion.status = self.core.answer(op, &mut completion.data);
        }
        if self.core.recorder.is_some() {
            self.core.record_completion(index, completion.status);
        }
        self.core.backlog.push(completion);
    }
}

impl Core {
    /// Whether the zone of a write that was accepted has been reset since.
    #[inline]
    fn was_reset_since(&mut self, index: u32) -> bool {
        let request = self.requests.at(index);
        let (op, generation) = (request.op, request.generation);
        // A copy keeps its own.
        if request.role != Role::Zoned || matches!(op, Op::Copy { .. }) {
            return false;
        }
        let zone = self.zones.zone_of(Lba(op.first_block()));
        zone.is_some_and(|zone| self.zones.generation(zone) != generation)
    }

    /// Flash reads of accepted blocks are in flight.
    #[inline]
    pub(crate) fn host_read_begins(&mut self, slba: Lba, nlb: u32) {
        for zone in self.zones_read(slba, nlb) {
            let group = self.flash.layout().group_of(zone) as usize;
            self.host_in_flight[group] += 1;
        }
    }

    /// The zones that an accepted read touches. Their groups are those of the
    /// flash under them, with either mapping.
    #[inline]
    pub(crate) fn zones_read(&self, slba: Lba, nlb: u32) -> core::ops::RangeInclusive<u32> {
        let zone_of = |lba| {
            self.zones
                .zone_of(Lba(lba))
                .expect("a read that was accepted is on the drive")
                .0
        };
        let (first, last) = (slba.0, slba.0 + u64::from(nlb) - 1);
        zone_of(first)..=zone_of(last)
    }

    /// First block of the namespace of an accepted command, counted over the drive.
    #[inline]
    pub(crate) fn first_lba(&self, nsid: NamespaceId) -> u64 {
        let namespace = self.zones.namespace(nsid);
        namespace
            .expect("a command for no namespace is not accepted")
            .first_lba()
            .0
    }
}
