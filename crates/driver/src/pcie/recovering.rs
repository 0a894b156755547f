//! Controllers and queues that come back after a reset.

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Nanos, QueuePair, RejectReason, Rejected, Tag,
};
use zonelab_nvme::Status;
use zonelab_nvme::queue::SubmissionEntry;

use super::bus::Function;
use super::controller::PcieController;
use super::error::PcieError;
use super::queue::PcieQueue;
use super::recovery::{Epoch, Member, Phase, Recovery};
use super::sync::Arc;
use crate::error::DriverError;
use crate::socket::Reply;
use crate::tcp::Transfer;

/// Resets without a completion in between, before a controller is given up.
const MAX_RESETS: u32 = 3;

/// A controller that is reset if it has to be, whoever drives its queues.
///
/// A command that takes too long is aborted. If that does not help, or the controller
/// reports a fatal error or breaks the protocol, the controller is reset: commands in
/// flight complete with [`Status::ABORTED_BY_HOST`], and the queues go on. When the
/// device is gone or does not come back, they complete with
/// [`Status::HOST_PATHING_ERROR`], and nothing is taken any more.
#[derive(Debug)]
pub struct RecoveringController<F: Function> {
    // First: it is dropped first, which disables the controller.
    controller: PcieController<F>,
    recovery: Arc<Recovery>,
    /// Since the last completion.
    resets: u32,
    all_resets: u64,
}

impl<F: Function> RecoveringController<F> {
    /// Takes a controller over.
    #[must_use]
    pub fn new(controller: PcieController<F>) -> Self {
        Self {
            controller,
            recovery: Arc::default(),
            resets: 0,
            all_resets: 0,
        }
    }

    /// The controller.
    #[must_use]
    pub const fn get(&self) -> &PcieController<F> {
        &self.controller
    }

    /// The controller, for admin commands and events.
    pub const fn get_mut(&mut self) -> &mut PcieController<F> {
        &mut self.controller
    }

    /// How often the controller was reset because of what it did.
    #[must_use]
    pub const fn resets(&self) -> u64 {
        self.all_resets
    }

    /// Whether it is disabled, and waits for its queues to be quiet: until then
    /// [`Self::tend`] wants to be called often.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.recovery.epoch().phase() == Phase::Stopped
    }

    /// Opens the next I/O queue.
    ///
    /// # Errors
    /// The controller grants no more, refuses, or is being reset.
    pub fn open_queue(&mut self) -> Result<RecoveringQueue<F>, DriverError> {
        match self.recovery.epoch().phase() {
            Phase::Working => {}
            Phase::Stopped => return Err(PcieError::Resetting.into()),
            Phase::Lost => return Err(PcieError::Gone.into()),
        }
        let queue = self.controller.open_queue()?;
        Ok(RecoveringQueue::new(queue, &self.recovery))
    }

    /// Looks at the admin queue, at whether the controller works if `is_due`, and at what
    /// its queues have asked for.
    ///
    /// # Errors
    /// Why the controller is given up.
    pub fn tend(&mut self, is_due: bool) -> Result<(), DriverError> {
        let tended = match self.recovery.epoch().phase() {
            Phase::Working => self.look(is_due).or_else(|error| self.stop(error)),
            Phase::Stopped => self.start(),
            Phase::Lost => Err(PcieError::Gone.into()),
        };
        tended.inspect_err(|_| self.recovery.lose())
    }

    fn look(&mut self, is_due: bool) -> Result<(), DriverError> {
        self.controller.pump()?;
        let wishes = self.recovery.take_wishes();
        if is_due || wishes.is_some() {
            // What it says of itself explains more than what is late.
            self.controller.check()?;
        }
        let Some(wishes) = wishes else {
            return Ok(());
        };
        if let Some(error) = wishes.reset {
            return Err(error.into());
        }
        for (queue, cid) in wishes.aborts {
            self.controller.abort(queue.0, cid);
        }
        Ok(())
    }

    /// Disables the controller because of `error`.
    fn stop(&mut self, error: DriverError) -> Result<(), DriverError> {
        if self.recovery.take_progress() {
            self.resets = 0;
        }
        let is_gone = matches!(error, DriverError::Pcie(PcieError::Gone));
        if is_gone || self.resets >= MAX_RESETS {
            return Err(error);
        }
        self.resets += 1;
        self.all_resets += 1;
        self.controller.stop()?;
        self.recovery.stopped();
        Ok(())
    }

    /// Enables it again if all queues are quiet.
    fn start(&mut self) -> Result<(), DriverError> {
        let Some(queues) = self.recovery.quiet_queues() else {
            return match self.controller.function().is_gone() {
                true => Err(PcieError::Gone.into()),
                false => Ok(()),
            };
        };
        self.controller.start_again()?;
        let mut rings = Vec::with_capacity(queues.len());
        for id in queues {
            rings.push((id, self.controller.make_rings(id.0)?));
        }
        self.recovery.started(rings);
        Ok(())
    }

    /// Ends the run: shuts the controller down and disables it. All queues should be
    /// idle.
    ///
    /// # Errors
    /// It takes too long, or is gone.
    pub fn shut_down(self) -> Result<(), DriverError> {
        self.controller.shut_down()
    }

    /// Gives the controller up: its queues end.
    pub fn abandon(&self) {
        self.recovery.lose();
    }
}

/// An I/O queue of a [`RecoveringController`], which any thread may drive.
///
/// What is submitted while the controller is being reset waits until it is back.
#[derive(Debug)]
pub struct RecoveringQueue<F: Function> {
    queue: PcieQueue<F>,
    recovery: Member,
    epoch: Epoch,
    /// It has asked for a reset in this epoch.
    has_asked: bool,
    /// It has had a completion in this epoch.
    has_worked: bool,
    /// It takes no commands any more, and no part in resets.
    has_ended: bool,
    /// What waits for the controller to come back.
    held: Vec<(Command, Tag, Option<Buf>)>,
}

impl<F: Function> RecoveringQueue<F> {
    fn new(queue: PcieQueue<F>, recovery: &Arc<Recovery>) -> Self {
        let epoch = recovery.join(queue.id());
        Self {
            recovery: Member::new(Arc::clone(recovery), queue.id()),
            epoch,
            has_asked: false,
            has_worked: false,
            has_ended: false,
            held: Vec::with_capacity(queue.depth().into()),
            queue,
        }
    }

    /// The queue itself.
    #[must_use]
    pub const fn get(&self) -> &PcieQueue<F> {
        &self.queue
    }

    /// When a command that is in flight is late; earlier is possible. At once, if the
    /// controller has been stopped or started; [`Nanos::MAX`], if commands wait for that.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        if !self.has_ended && self.recovery.epoch() != self.epoch {
            return Some(self.queue.last_look());
        }
        let held = (!self.held.is_empty()).then_some(Nanos::MAX);
        self.queue.next_deadline().or(held)
    }

    /// Whether it takes commands no more.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether commands are under way, or wait for the controller to come back.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.next_deadline().is_none() && self.held.is_empty()
    }

    /// Sends any command and waits for its end, as [`PcieQueue::passthrough`] does.
    ///
    /// # Errors
    /// The queue takes no commands, or the command is not over in time.
    pub fn passthrough(
        &mut self,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, PcieError> {
        match self.epoch.phase() {
            Phase::Stopped => Err(PcieError::Resetting),
            _ => self.queue.passthrough(entry, transfer),
        }
    }

    /// Ends the queue from this side: what is in flight completes with
    /// [`Status::HOST_PATHING_ERROR`].
    pub fn end(&mut self) {
        self.has_ended = true;
        self.recovery.leave(self.queue.id());
        let status = Status::HOST_PATHING_ERROR;
        self.queue.fail(PcieError::Gone);
        self.queue.give_up(status);
        for (_, tag, data) in self.held.drain(..) {
            self.queue.complete_locally(tag, status, data);
        }
    }

    /// Whether commands have to wait.
    #[inline]
    fn is_held_up(&self) -> bool {
        !self.has_ended && (self.has_asked || self.epoch.phase() == Phase::Stopped)
    }

    /// The controller was stopped or started, or is lost.
    #[cold]
    fn follow(&mut self, epoch: Epoch) {
        match epoch.phase() {
            Phase::Stopped => {
                self.queue.give_up(Status::ABORTED_BY_HOST);
                self.epoch = epoch;
                self.recovery.note_quiet(self.queue.id());
            }
            Phase::Working => {
                // Two resets at once: the next look finds the other.
                let Some(rings) = self.recovery.take_rings(self.queue.id()) else {
                    return;
                };
                self.queue.restart(rings);
                self.epoch = epoch;
                self.has_asked = false;
                self.has_worked = false;
                for (command, tag, data) in self.held.split_off(0) {
                    self.submit_anew(command, tag, data);
                }
                self.ring();
            }
            Phase::Lost => self.end(),
        }
    }

    fn submit_anew(&mut self, command: Command, tag: Tag, data: Option<Buf>) {
        if let Err(rejected) = self.queue.submit(command, tag, data) {
            // There is room for as many as were held; but who is accepted completes.
            let status = Status::HOST_PATHING_ERROR;
            self.queue.complete_locally(tag, status, rejected.data);
        }
    }

    /// Looks at what is late or broken.
    #[inline]
    fn look(&mut self) {
        if self.queue.error().is_some() {
            return self.ask_reset();
        }
        let now = self.queue.last_look();
        if let Some(late) = self.queue.late(now) {
            if late.is_aborted {
                let timeout = self.queue.timeout();
                self.queue.fail(PcieError::Late { timeout });
                return self.ask_reset();
            }
            self.recovery
                .ask_abort(self.epoch, self.queue.id(), late.cid);
            self.queue.aborting(late);
        }
    }

    #[cold]
    fn ask_reset(&mut self) {
        if self.is_held_up() {
            return;
        }
        if let Some(error) = self.queue.take_error() {
            self.has_asked = true;
            self.recovery.ask_reset(self.epoch, error);
        }
    }
}

impl<F: Function> QueuePair for RecoveringQueue<F> {
    fn info(&self) -> &DeviceInfo {
        self.queue.info()
    }

    fn now(&self) -> Nanos {
        self.queue.now()
    }

    #[inline]
    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        if !self.is_held_up() {
            return self.queue.submit(command, tag, data);
        }
        let in_flight = self.queue.in_flight() + self.held.len();
        if in_flight >= self.queue.depth().into() {
            let reason = RejectReason::QueueFull {
                queue: self.queue.id(),
                depth: self.queue.depth().into(),
            };
            return Err(Rejected { reason, data });
        }
        self.held.push((command, tag, data));
        Ok(())
    }

    #[inline]
    fn ring(&mut self) {
        // One that is disabled has no such doorbell.
        if !self.is_held_up() && self.recovery.epoch() == self.epoch {
            self.queue.ring();
        }
    }

    #[inline]
    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = self.queue.counts().completions;
        let mut found = self.queue.poll(done);
        if !self.has_worked && self.queue.counts().completions > before {
            self.has_worked = true;
            self.recovery.note_progress();
        }
        if self.has_ended {
            return found;
        }
        let epoch = self.recovery.epoch();
        if epoch == self.epoch {
            self.look();
        } else {
            self.follow(epoch);
            found += self.queue.poll(done);
        }
        found
    }
}
