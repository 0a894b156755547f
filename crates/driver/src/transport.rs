//! What controllers and I/O queues of all transports have in common.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use zonelab_device::{Buf, DeviceInfo, Monotonic, Nanos, QueueId, QueuePair};
use zonelab_nvme::command::GetLogPage;
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::queue::SubmissionEntry;

use crate::error::DriverError;
use crate::identity::Identity;
use crate::inquiry::whole;
use crate::socket::Reply;
use crate::tcp::Transfer;

/// A controller with its admin queue, and the way to its I/O queues.
///
/// The admin calls wait for their ends. Whoever does I/O meanwhile calls
/// [`Controller::keep_alive`] now and then, which does not wait.
pub trait Controller {
    /// Its I/O queues.
    type Queue: IoQueue;

    /// What workloads plan with.
    fn info(&self) -> &Arc<DeviceInfo>;

    /// What the controller says of itself.
    fn identity(&self) -> &Identity;

    /// The clock of the controller and its queues.
    fn clock(&self) -> Monotonic;

    /// I/O queues that can be opened; 0 if it is a controller for discovery.
    fn granted_queues(&self) -> u16;

    /// Opens the next I/O queue.
    ///
    /// # Errors
    /// There are no more, or the controller refuses.
    fn open_queue(&mut self) -> Result<Self::Queue, DriverError>;

    /// Sends any admin command and waits for its end. Its identifier and data
    /// pointer are filled in. The status is the caller's to look at. `what` is what
    /// messages call the command.
    ///
    /// # Errors
    /// The command was not taken, or the controller is gone.
    fn admin(
        &mut self,
        what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError>;

    /// Reads a part of a log page: `bytes` from `offset`, both multiples of 4.
    ///
    /// # Errors
    /// The controller does not have it, or is gone.
    fn log_page(
        &mut self,
        nsid: u32,
        lid: LogPageId,
        offset: u64,
        bytes: usize,
    ) -> Result<Buf, DriverError> {
        let get = GetLogPage {
            lpo: offset,
            ..GetLogPage::new(nsid, lid, bytes as u64 / 4)
        };
        let transfer = Transfer::ToHost(Buf::zeroed(bytes));
        let reply = self.admin("Get Log Page", get.to_entry()?, transfer)?;
        whole("Get Log Page", reply.ok("Get Log Page")?)
    }

    /// Tells the controller that we are here, if its transport needs that and it is
    /// time to. Does not wait.
    ///
    /// # Errors
    /// The controller is gone, or has not answered for too long.
    fn keep_alive(&mut self) -> Result<(), DriverError>;

    /// When [`Self::keep_alive`] has something to do next; [`Nanos::MAX`]: never.
    fn next_keep_alive(&self) -> Nanos;

    /// What becomes readable when [`Self::keep_alive`] has something to do early.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// How often the controller had to be reset because of what it did, or did not do.
    fn resets(&self) -> u64 {
        0
    }

    /// Leaves the controller. Queues that are still open end.
    ///
    /// # Errors
    /// It could not be left in order; it is left nevertheless.
    fn disconnect(self) -> Result<(), DriverError>
    where
        Self: Sized;
}

/// How somebody who sleeps learns that an I/O queue has something.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// [`IoQueue::descriptor`] is readable as long as there is something.
    Readable,
    /// [`IoQueue::descriptor`] is signalled with each completion, and stays readable: an
    /// epoll watches it edge-triggered. That the queue is gone is not signalled.
    Interrupt,
    /// By looking only.
    Polled,
}

/// An I/O queue, and what announces its completions.
pub trait IoQueue: QueuePair {
    /// Its identifier.
    fn id(&self) -> QueueId;

    /// Commands in flight at most.
    fn depth(&self) -> u16;

    /// Why the queue is gone, if it is.
    fn error(&self) -> Option<&DriverError>;

    /// The same, to keep. The queue stays gone.
    fn take_error(&mut self) -> Option<DriverError>;

    /// Sends any I/O command and waits for its end. Its identifier and data pointer
    /// are filled in. The status is the caller's to look at.
    ///
    /// # Errors
    /// The command was not taken, or the queue is gone.
    fn passthrough(
        &mut self,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError>;

    /// When something of it is due by time alone: a completion that is not the
    /// controller's, or a command that is late. [`Nanos::MAX`]: something is under
    /// way that only the controller ends. `None`: nothing is under way.
    fn next_event(&self) -> Option<Nanos>;

    /// True if something waits for room in the descriptor.
    fn has_output(&self) -> bool;

    /// What becomes readable when something may have completed.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// What announces completions.
    fn announcement(&self) -> Announcement {
        Announcement::Readable
    }

    /// Ends the queue from this side, unless it is gone: what is in flight ends.
    fn abandon(&mut self);
}
