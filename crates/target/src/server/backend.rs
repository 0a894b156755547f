//! What a server serves.

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::fabrics::{Connect, ConnectData};
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};
use zonelab_ssd::stored::NotKept;

use super::Standing;
use crate::controller::{
    Access, Calculated, Calculation, Connected, Done, Layer, QueueHandle, Subsystem,
};

/// What stands behind the connections of a server: a [`Subsystem`], or
/// something small in a test. The methods are those of [`Subsystem`].
pub trait Backend {
    /// Makes a queue.
    ///
    /// # Errors
    /// The completion that refuses it.
    fn connect(
        &mut self,
        now: Nanos,
        command: (&SubmissionEntry, &Connect),
        data: &ConnectData,
    ) -> Result<Connected, CompletionEntry>;

    /// The connection of a queue is gone.
    fn disconnect(&mut self, now: Nanos, queue: QueueHandle);

    /// Whether a command that has to be asked for its data would be carried out,
    /// before anything is set aside for it.
    ///
    /// # Errors
    /// The completion with which it fails.
    fn admit(
        &mut self,
        now: Nanos,
        queue: QueueHandle,
        entry: &SubmissionEntry,
        data_len: u32,
    ) -> Result<(), CompletionEntry> {
        let _ = (now, queue, entry, data_len);
        Ok(())
    }

    /// Who is at the other end of a queue, as far as is known by now.
    fn standing(&mut self, queue: QueueHandle) -> Standing {
        let _ = queue;
        Standing::Host
    }

    /// Bytes of data of commands whose queues are gone.
    fn orphaned_bytes(&self) -> u64 {
        0
    }

    /// No command will come any more.
    fn begin_to_end(&mut self) {}

    /// Commands that it works on, whose completions will come by themselves.
    fn in_drive(&self) -> u64 {
        0
    }

    /// A calculation that the command just submitted needs.
    fn take_calculation(&mut self) -> Option<Calculation> {
        None
    }

    /// Takes the result of a calculation.
    fn calculated(&mut self, now: Nanos, result: Calculated) {
        let _ = (now, result);
    }

    /// Takes a command.
    fn submit(
        &mut self,
        now: Nanos,
        queue: QueueHandle,
        entry: &SubmissionEntry,
        data: Option<Buf>,
        data_len: u32,
    );

    /// Whether there is anybody to connect to. Connections that come while
    /// there is not are closed at once.
    fn is_on(&self, now: Nanos) -> bool {
        let _ = now;
        true
    }

    /// Takes back data of a completion that the host has got.
    fn recycle(&mut self, data: Buf);

    /// When something happens next.
    fn next_event(&self) -> Option<Nanos>;

    /// Why a queue is being closed, if the host is to blame: its connection is
    /// then counted as broken, and the reason logged.
    fn complaint(&mut self, queue: QueueHandle) -> Option<String> {
        let _ = queue;
        None
    }

    /// Goes on to `to`.
    fn advance(&mut self, to: Nanos, done: &mut Vec<Done>, closed: &mut Vec<QueueHandle>);

    /// Keeps what must outlive the server before completions leave.
    ///
    /// # Errors
    /// It cannot: no completion may leave, as if power had been lost.
    fn keep(&mut self) -> Result<(), NotKept> {
        Ok(())
    }
}

impl<L: Layer> Backend for Subsystem<L> {
    fn connect(
        &mut self,
        now: Nanos,
        command: (&SubmissionEntry, &Connect),
        data: &ConnectData,
    ) -> Result<Connected, CompletionEntry> {
        Self::connect(self, now, command, data)
    }

    fn disconnect(&mut self, now: Nanos, queue: QueueHandle) {
        Self::disconnect(self, now, queue);
    }

    fn submit(
        &mut self,
        now: Nanos,
        queue: QueueHandle,
        entry: &SubmissionEntry,
        data: Option<Buf>,
        data_len: u32,
    ) {
        Self::submit(self, now, queue, entry, data, data_len);
    }

    fn admit(
        &mut self,
        now: Nanos,
        queue: QueueHandle,
        entry: &SubmissionEntry,
        data_len: u32,
    ) -> Result<(), CompletionEntry> {
        Self::admit(self, now, queue, entry, data_len)
    }

    fn standing(&mut self, queue: QueueHandle) -> Standing {
        match self.access(queue) {
            Access::None => Standing::Stranger,
            Access::Discovery => Standing::Discovery,
            Access::Drive => Standing::Host,
        }
    }

    fn orphaned_bytes(&self) -> u64 {
        Self::orphaned_bytes(self)
    }

    fn begin_to_end(&mut self) {
        Self::begin_to_end(self);
    }

    fn in_drive(&self) -> u64 {
        Self::in_drive(self)
    }

    fn take_calculation(&mut self) -> Option<Calculation> {
        Self::take_calculation(self)
    }

    fn calculated(&mut self, now: Nanos, result: Calculated) {
        Self::calculated(self, now, result);
    }

    fn is_on(&self, now: Nanos) -> bool {
        self.is_off_until(now).is_none()
    }

    fn recycle(&mut self, data: Buf) {
        Self::recycle(self, data);
    }

    fn complaint(&mut self, queue: QueueHandle) -> Option<String> {
        self.not_authenticated(queue).map(|why| why.to_string())
    }

    fn next_event(&self) -> Option<Nanos> {
        Self::next_event(self)
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Done>, closed: &mut Vec<QueueHandle>) {
        Self::advance(self, to, done, closed);
    }

    fn keep(&mut self) -> Result<(), NotKept> {
        Self::keep(self)
    }
}
