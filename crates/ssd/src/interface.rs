//! What takes commands at a time, and gives completions in virtual time.
//!
//! [`DriveModel`] is how an owner runs a drive: [`Drive`](crate::Drive) is one,
//! and a [`FaultyDrive`](crate::faults::FaultyDrive), which has another behind it,
//! is one too. An owner that is generic over it is compiled for each, so that no
//! command goes through a table of functions.
//!
//! [`FaultTarget`] is what the injection of faults asks of the one behind it
//! beyond that: an owner does not need it to run a drive, and uses it to cut the
//! power of one that has no faults in front.

use zonelab_device::{Buf, Command, Completion, Nanos, QueueId, Rejected, Tag, ZoneId};
use zonelab_nvme::zns::ZoneState;

use crate::drive::ControlError;
use crate::power::PowerLoss;
use crate::zones::Zones;

/// A drive as a model in virtual time: it does nothing by itself, and knows no
/// time but the one that its owner says.
///
/// All times are nanoseconds on the clock of the owner, which is at 0 when the drive
/// is made. The owner asks [`DriveModel::next_event`], lets its clock get there, by a
/// jump or by waiting, and calls [`DriveModel::advance`]; between two events it hands
/// over commands by [`DriveModel::submit`]. The times of these calls never go back.
pub trait DriveModel {
    /// The time that has been reached: the latest that a call named.
    fn now(&self) -> Nanos;

    /// From when on commands are taken: later than now after a loss of power,
    /// until the drive has started again.
    fn ready_at(&self) -> Nanos;

    /// When something happens next; `None`: nothing will until a command comes.
    /// Never late. It can name a time at which nothing shows from outside:
    /// the deadline of a background task that went on before it.
    fn next_event(&self) -> Option<Nanos>;

    /// Hands a command over. Its completion comes from [`DriveModel::advance`],
    /// also if the command is refused: nothing completes in here. Events due
    /// by `now` run first.
    ///
    /// The completion has `queue` and `tag` as they are here. Faults tell commands
    /// apart by the two, so no two in flight should have the same.
    ///
    /// # Errors
    /// [`Rejected`] with the buffer if more commands are in flight than the
    /// drive can tell apart (2^24), or if it has no power or is starting
    /// ([`FaultTarget::power_cut`]). A drive with faults keeps commands that come
    /// while it starts instead, and takes them once it is ready.
    ///
    /// # Panics
    /// If `now` goes back.
    fn submit(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected>;

    /// Runs everything that is due by `to` and appends what completed to
    /// `done`, in order of time, then of the order in which it came about.
    ///
    /// # Panics
    /// If `to` lies before the time of an earlier call.
    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>);
}

/// What faults are injected into: its zones can fail, and it can lose power.
///
/// Zones and blocks are counted over the drive here, whose namespaces lie side by
/// side.
pub trait FaultTarget: DriveModel {
    /// Namespaces, zone states and write pointers: which zones and blocks a command
    /// is about.
    fn zones(&self) -> &Zones;

    /// Whether a zone can become `to`, or is so already.
    ///
    /// # Errors
    /// As [`FaultTarget::fail_zone`].
    fn check_failure(&self, zone: ZoneId, to: ZoneState) -> Result<(), ControlError>;

    /// A zone becomes [`ZoneState::READ_ONLY`] or [`ZoneState::OFFLINE`] at `now`,
    /// after what is due by then.
    ///
    /// # Errors
    /// [`ControlError::NoSuchZone`]; [`ControlError::Conventional`]: a conventional
    /// namespace has no zones that could fail; [`ControlError::CannotFail`]: from
    /// offline to read-only, or `to` is another state. Nothing else, and the zone
    /// stays as it is.
    ///
    /// # Panics
    /// If `now` goes back.
    fn fail_zone(&mut self, now: Nanos, zone: ZoneId, to: ZoneState) -> Result<(), ControlError>;

    /// Power is lost at `now`, after what is due by then, and comes back; the
    /// drive takes commands again after `off`, at the earliest (and when what
    /// had been booked on its flash would have ended). `seed` decides how much
    /// of unacknowledged writes is left.
    ///
    /// Completions that were posted by `now` still come from [`DriveModel::advance`];
    /// commands in flight never complete, and are in the result with their buffers.
    ///
    /// # Panics
    /// If `now` goes back.
    fn power_cut(&mut self, now: Nanos, off: Nanos, seed: u64) -> PowerLoss;
}
