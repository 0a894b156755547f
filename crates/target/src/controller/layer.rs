//! A layer between hosts and the drive.
//!
//! With a layer, hosts see its namespaces in place of those of the drive, and it gets
//! their I/O commands. It has the drive to itself: what reaches the drive are the
//! commands of the layer, with queues and tags of its own. What hosts cannot do through a
//! layer is Format NVM, since it would take the blocks from under the layer.

use zonelab_device::{Buf, Command, Completion, DeviceInfo, Nanos, QueueId, Rejected, Tag};
use zonelab_ssd::DriveModel;
use zonelab_ssd::faults::FaultyDrive;

use super::Subsystem;

/// What stands between hosts and the drive.
///
/// A layer has no time of its own: it does what it has to do in [`Self::advance`], where
/// it is lent the drive, and takes it along.
pub trait Layer: std::fmt::Debug {
    /// What hosts see.
    fn info(&self) -> &DeviceInfo;

    /// Takes a command of a host. Nothing completes in here, and nothing reaches the drive.
    ///
    /// # Errors
    /// There is no room for it, or the layer is at its end.
    fn submit(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected>;

    /// When something happens next that the drive does not announce.
    fn next_event(&self) -> Option<Nanos>;

    /// Goes on to `to`, and takes the drive there, at most: when the drive loses power, the
    /// layer stops at that moment. Puts what hosts get to the end of `done`.
    fn advance(&mut self, drive: &mut FaultyDrive, to: Nanos, done: &mut Vec<Completion>);

    /// The drive has lost power, and with it all that the layer had in memory. Every command
    /// that hosts gave it ends in `done`, with a status that nobody will see.
    fn power_lost(&mut self, drive: &FaultyDrive, done: &mut Vec<Completion>);

    /// Makes durable what hosts wrote, before the drive is switched off in good order.
    fn switch_off(&mut self, drive: &mut FaultyDrive);

    /// Whether nothing can be written at present.
    fn is_read_only(&self) -> bool;
}

/// No layer: hosts use the drive itself.
#[derive(Clone, Copy, Debug)]
pub enum NoLayer {}

impl Layer for NoLayer {
    fn info(&self) -> &DeviceInfo {
        match *self {}
    }

    fn submit(
        &mut self,
        _now: Nanos,
        _queue: QueueId,
        _tag: Tag,
        _command: Command,
        _data: Option<Buf>,
    ) -> Result<(), Rejected> {
        match *self {}
    }

    fn next_event(&self) -> Option<Nanos> {
        match *self {}
    }

    fn is_read_only(&self) -> bool {
        match *self {}
    }

    fn advance(&mut self, _drive: &mut FaultyDrive, _to: Nanos, _done: &mut Vec<Completion>) {
        match *self {}
    }

    fn power_lost(&mut self, _drive: &FaultyDrive, _done: &mut Vec<Completion>) {
        match *self {}
    }

    fn switch_off(&mut self, _drive: &mut FaultyDrive) {
        match *self {}
    }
}

impl<L: Layer> Subsystem<L> {
    /// The layer, if there is one.
    #[must_use]
    pub const fn layer(&self) -> Option<&L> {
        self.layer.as_ref()
    }

    /// What hosts see: the namespaces of the layer or of the drive.
    pub(super) fn shown(&self) -> &DeviceInfo {
        match &self.layer {
            Some(layer) => layer.info(),
            None => self.drive.drive().info(),
        }
    }

    /// Whether hosts use zones of the drive, and have to hear what becomes of them.
    pub(super) const fn shows_zones(&self) -> bool {
        self.layer.is_none()
    }

    /// Whether there is Format NVM.
    pub(super) const fn can_format(&self) -> bool {
        self.layer.is_none()
    }

    /// Hands a command to the layer, or to the drive if there is none.
    #[inline]
    pub(super) fn give(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected> {
        match &mut self.layer {
            Some(layer) => layer.submit(now, queue, tag, command, data),
            None => self.drive.submit(now, queue, tag, command, data),
        }
    }

    /// Takes the drive, and the layer on it, to `until`.
    #[inline]
    pub(super) fn run(&mut self, until: Nanos, done: &mut Vec<Completion>) {
        match &mut self.layer {
            Some(layer) => layer.advance(&mut self.drive, until, done),
            None => self.drive.advance(until, done),
        }
    }

    /// When the drive, or the layer on it, does something next.
    #[inline]
    pub(super) fn next_step(&self) -> Option<Nanos> {
        let drive = self.drive.next_event();
        match &self.layer {
            Some(layer) => [drive, layer.next_event()].into_iter().flatten().min(),
            None => drive,
        }
    }
}
