//! The drive: commands in, completions out, in virtual time.

mod accept;
mod allocate;
mod back_end;
mod command;
mod control;
mod data;
mod effect;
mod fork;
mod plain;
mod policies;
mod request;
mod shared;
mod thin;
mod view;

pub use control::{Control, ControlError};

use zonelab_device::{Buf, Command, Completion, Nanos, QueueId, RejectReason, Rejected, Tag};

use self::plain::PlainWay;
use crate::background::Background;
use crate::buffer::WriteBuffer;
use crate::config::DriveConfig;
use crate::conventional::Conventional;
use crate::copy::Copies;
use crate::event::Event;
use crate::interface::DriveModel;

pub(crate) use accept::Acceptance;
pub(crate) use back_end::{BackEnd, Below};
pub(crate) use effect::Effect;
pub(crate) use request::{Owner, Request, Stage};
pub(crate) use shared::Core;

/// Most commands that can be in flight at once.
const MAX_IN_FLIGHT: usize = 1 << 24;

/// The emulated drive: a state machine without threads, clock or I/O.
///
/// Whoever drives it says what time it is: [`DriveModel::submit`] and
/// [`DriveModel::advance`] take `now`, which never goes back, and
/// [`DriveModel::next_event`] says when something will happen next. With a clock
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
    /// Whether commands can take the plain way.
    pub(crate) plain: PlainWay,
}

impl Drive {
    /// A fresh drive: all zones empty, all flash erased.
    #[must_use]
    pub fn new(config: &DriveConfig) -> Self {
        let core = Core::new(config);
        let layout = core.flash.layout();
        let buffer = |buffer| Box::new(WriteBuffer::new(buffer, config, layout.page_lbas()));
        let mut drive = Self {
            conventional: Conventional::all(config, &core.zones),
            background: Background::new(config.finish, config.reset, layout.groups()),
            buffer: config.write_buffer.as_ref().map(buffer),
            copies: Copies::default(),
            core,
            plain: PlainWay::default(),
        };
        drive
            .background
            .resume_folding(&mut drive.core, Nanos::ZERO);
        drive
            .plain
            .look(&drive.core, &drive.background, drive.buffer.is_some());
        drive
    }
}

impl DriveModel for Drive {
    fn now(&self) -> Nanos {
        self.core.now
    }

    fn ready_at(&self) -> Nanos {
        self.core.ready_at
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.core.backlog.is_empty() {
            self.core.events.next_at()
        } else {
            Some(self.core.now)
        }
    }

    #[inline]
    fn submit(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected> {
        debug_assert!(
            self.plain
                .is_as(&self.core, &self.background, self.buffer.is_some())
        );
        let is_plain = self.plain.is_open() && data.is_none() && self.copies.is_empty();
        if is_plain && self.core.submit_plainly(now, (queue, tag), &command) {
            return Ok(());
        }
        self.submit_any(now, (queue, tag), command, data)
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        assert!(
            to >= self.core.now,
            "time goes back from {} to {to}",
            self.core.now
        );
        while let Some((at, event)) = self.core.events.pop_due(to) {
            self.core.now = at;
            self.run(event);
        }
        self.core.now = to;
        if !self.core.backlog.is_empty() {
            match done.is_empty() {
                true => core::mem::swap(done, &mut self.core.backlog),
                false => done.append(&mut self.core.backlog),
            }
            // Whoever gets these may ask at once for what undoes what they stand for, the reset
            // of an older copy, whose record must not be there without theirs. If it fails,
            // nothing is kept from now on, and `Drive::keep` says so.
            let _ = self.core.keep();
        }
    }
}

impl Drive {
    /// [`DriveModel::submit`] by the general way.
    #[cold]
    #[inline(never)]
    fn submit_any(
        &mut self,
        now: Nanos,
        (queue, tag): (QueueId, Tag),
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
        self.arrive(now, (queue, tag), command, data);
        Ok(())
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
        let ended = self.buffer.as_mut().and_then(|of| of.group_done(program));
        let Some((physical, is_of_host)) = ended else {
            return;
        };
        if is_of_host {
            self.host_io_done(self.core.flash.layout().group_of(physical));
        }
        if let Some((buffer, mut below)) = self.back_end().with_buffer() {
            buffer.program_over(&mut below, program);
        }
    }

    fn run(&mut self, event: Event) {
        match event {
            Event::GroupDone(token) => {
                self.core.flash.group_done(token);
                match Owner::of(token) {
                    Owner::Request(request)
                        if self.plain.is_open()
                            && self.core.end_plainly(request, &self.background) =>
                    {
                        return;
                    }
                    Owner::Request(request) => self.part_done(request),
                    Owner::Task(task) => self.task_group_done(task),
                    Owner::Program(program) => self.program_group_done(program),
                }
            }
            Event::Unit(_) | Event::Ended(_) | Event::Idle(_) | Event::Channel(_) => {
                self.core
                    .flash
                    .media_mut()
                    .handle(self.core.now, event, &mut self.core.events);
            }
            Event::Task(wakeup) => self.task_wakes(wakeup),
            Event::Request(request) => self.step(request),
            Event::Line => self.go_on_in_line(),
            Event::Drain => {
                if let Some((buffer, mut below)) = self.back_end().with_buffer() {
                    buffer.drain_on(&mut below);
                }
            }
            // After each event, whether something is to be folded is asked anyway.
            Event::Fold => {}
            Event::Quiet => {
                if let Some(buffer) = &self.buffer {
                    buffer.media_is_quiet(&mut self.core);
                }
            }
            Event::Loaded(token) => {
                if let (Owner::Program(program), Some((buffer, mut below))) =
                    (Owner::of(token), self.back_end().with_buffer())
                {
                    buffer.program_loaded(&mut below, program);
                }
            }
        }
        self.settle();
        if let Some(watch) = &mut self.core.watch {
            watch.judge();
        }
    }
}
