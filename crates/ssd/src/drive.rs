//! The drive: commands in, completions out, in virtual time.

mod accept;
mod allocate;
mod control;
mod effect;

mod fork;
mod policies;
mod request;
mod shared;
mod step;
mod thin;

pub use control::{Control, ControlError};

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, NamespaceInfo, Nanos, QueueId, RejectReason, Rejected,
    Tag, ZonedInfo, ZrwaInfo,
};
use zonelab_nvme::Status;

use crate::account::Totals;
use crate::background::Background;
use crate::buffer::WriteBuffer;
use crate::config::{DriveConfig, NamespaceKind};
use crate::conventional::{Conventional, Role};
use crate::copy::Copies;
use crate::event::Event;
use crate::flash::{Flash, Target};
use crate::mapping::Mapping;
use crate::zones::Zones;

pub(crate) use effect::Effect;
pub(crate) use request::{Owner, Request, Stage};
pub(crate) use shared::{Below, Core};

/// Most commands that can be in flight at once.
const MAX_IN_FLIGHT: usize = 1 << 24;

/// The emulated drive: a state machine without threads, clock or I/O.
///
/// Whoever drives it says what time it is: [`Drive::submit`] and
/// [`Drive::advance`] take `now`, which never goes back, and
/// [`Drive::next_event`] says when something will happen next. With a clock
/// that jumps from event to event it is a simulator; with the monotonic clock
/// it is a live device.
#[derive(Debug)]
pub struct Drive {
    /// What all components work on.
    pub(crate) core: Core,
    pub(crate) background: Background,
    /// The write-back buffer, if there is one.
    pub(crate) buffer: Option<Box<WriteBuffer>>,
    /// Copies whose sources are being read, and what waits for them.
    pub(crate) copies: Copies,
    /// Conventional namespaces.
    pub(crate) conventional: Vec<Conventional>,
}

impl Drive {
    /// A fresh drive: all zones empty, all flash erased.
    #[must_use]
    pub fn new(config: &DriveConfig) -> Self {
        let core = Core::new(config);
        let layout = core.flash.layout();
        let buffer = |buffer| Box::new(WriteBuffer::new(buffer, config, layout.page_lbas()));
        Self {
            conventional: Conventional::all(config, &core.zones),
            background: Background::new(config.finish, config.reset, layout.groups()),
            buffer: config.write_buffer.as_ref().map(buffer),
            copies: Copies::default(),
            core,
        }
    }

    /// What a host learns when it identifies the drive.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.core.info
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
        &self.core.config
    }

    /// The time that the drive has reached.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.core.now
    }

    /// Zone states and write pointers.
    #[must_use]
    pub fn zones(&self) -> &Zones {
        &self.core.zones
    }

    /// The flash: layout, busy times, erase counts.
    #[must_use]
    pub fn flash(&self) -> &Flash {
        &self.core.flash
    }

    /// The zone mapping.
    #[must_use]
    pub fn mapping(&self) -> &Mapping {
        self.core.flash.mapping()
    }

    /// Bytes and operations since the drive was made.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let (erased_blocks, programmed) = self.core.flash.totals();
        let fill_program_bytes = self.core.totals.fill_program_bytes;
        Totals {
            erased_blocks,
            host_program_bytes: programmed
                - fill_program_bytes
                - self.core.totals.collect_program_bytes,
            ..self.core.totals
        }
    }

    /// Events that the drive has handled since it was made.
    #[must_use]
    pub fn events_handled(&self) -> u64 {
        self.core.events.handled()
    }

    /// Commands submitted and not yet completed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.core.requests.len() - self.core.internal_requests
    }

    /// When something happens next; `None`: nothing will until a command comes.
    /// Never late. It can name a time at which nothing shows from outside:
    /// the deadline of a background task that went on before it.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        if self.core.backlog.is_empty() {
            self.core.events.next_at()
        } else {
            Some(self.core.now)
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
        if self.core.watch.is_some() {
            self.watch_time(now);
        }
        self.catch_up(now);
        if self.core.requests.len() >= MAX_IN_FLIGHT {
            let reason = RejectReason::QueueFull {
                queue,
                depth: MAX_IN_FLIGHT as u32,
            };
            return Err(Rejected { reason, data });
        }
        if now < self.core.ready_at {
            let reason = RejectReason::Disconnected;
            return Err(Rejected { reason, data });
        }
        if self.core.watch.is_some() {
            self.core
                .watch_command(now, (queue, tag), command, data.as_ref());
        }
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
            status: Status::SUCCESS,
            result: 0,
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
        let processed = self.core.front.process(now, &op);
        let accepted = if let Role::Conventional(which) = role {
            self.accept_conventional(which, op, request, processed)
        } else if is_known {
            self.accept(command.nsid, op, request, processed)
        } else {
            Err(Status::INVALID_NAMESPACE_OR_FORMAT)
        };
        if self.core.zones.has_journal() {
            self.core.record_zone_changes();
        }
        if let (true, Ok(start)) = (self.core.recorder.is_some(), accepted) {
            self.core.record_start(request, start);
        }
        if self.background.erases_by_thresholds() && accepted.is_ok() {
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
        self.settle();
        Ok(())
    }

    /// Runs everything that is due by `to` and appends what completed to
    /// `done`, in order of time, then of the order in which it came about.
    ///
    /// # Panics
    /// If `to` lies before the time of an earlier call.
    pub fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        assert!(
            to >= self.core.now,
            "time goes back from {} to {to}",
            self.core.now
        );
        done.append(&mut self.core.backlog);
        core::mem::swap(&mut self.core.backlog, done);
        while let Some((at, event)) = self.core.events.pop_due(to) {
            self.core.now = at;
            self.run(event);
        }
        core::mem::swap(&mut self.core.backlog, done);
        self.core.now = to;
    }

    pub(crate) fn catch_up(&mut self, now: Nanos) {
        assert!(
            now >= self.core.now,
            "time goes back from {} to {now}",
            self.core.now
        );
        while let Some((at, event)) = self.core.events.pop_due(now) {
            self.core.now = at;
            self.run(event);
        }
        self.core.now = now;
    }

    /// A group of flash operations of a program of the write buffer is over.
    fn program_group_done(&mut self, program: u32) {
        let Some(of_host) = self.buffer.as_mut().and_then(|of| of.group_done(program)) else {
            return;
        };
        if let Some(physical) = of_host {
            self.host_io_done(self.core.flash.layout().group_of(physical));
        }
        if let Some((buffer, mut below)) = self.with_buffer() {
            buffer.program_over(&mut below, program);
        }
    }

    fn run(&mut self, event: Event) {
        match event {
            Event::GroupDone(token) => {
                self.core.flash.group_done(token);
                match Owner::of(token) {
                    Owner::Request(request) => self.part_done(request),
                    Owner::Task(task) => self.task_group_done(task),
                    Owner::Program(program) => self.program_group_done(program),
                }
            }
            Event::Unit(_) | Event::Channel(_) => {
                self.core
                    .flash
                    .media_mut()
                    .handle(self.core.now, event, &mut self.core.events);
            }
            Event::Task(wakeup) => self.task_wakes(wakeup),
            Event::Request(request) => self.step(request),
            Event::Drain => {
                if let Some((buffer, mut below)) = self.with_buffer() {
                    buffer.drain_on(&mut below);
                }
            }
            Event::Quiet => {
                if let Some(buffer) = &self.buffer {
                    buffer.media_is_quiet(&mut self.core);
                }
            }
            Event::Loaded(token) => {
                if let (Owner::Program(program), Some((buffer, mut below))) =
                    (Owner::of(token), self.with_buffer())
                {
                    buffer.program_loaded(&mut below, program);
                }
            }
        }
        self.settle();
    }
}
