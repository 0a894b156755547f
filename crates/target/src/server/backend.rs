//! What a server serves.

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::fabrics::{Connect, ConnectData};
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};
use zonelab_ssd::stored::NotKept;

use crate::controller::{Connected, Done, QueueHandle, Subsystem};

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

impl Backend for Subsystem {
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
