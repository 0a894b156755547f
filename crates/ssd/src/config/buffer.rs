//! The write buffer.

/// A write-back buffer: a write completes when its blocks are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBufferConfig {
    /// Bytes that fit: whole logical blocks, at least a page.
    pub size_bytes: u64,
    /// Stored energy saves what is in it when power is lost, so that it is not
    /// volatile and a flush has nothing to do.
    pub power_loss_protection: bool,
    /// When room is free again.
    pub release: BufferRelease,
    /// Bytes per second from the buffer to all dies together; `None`: no limit
    /// but channels and dies.
    pub drain_bytes_per_s: Option<u64>,
    /// Bytes that a write is let in by at a time while others wait, then it is
    /// their turn: whole logical blocks. A larger write for which nobody waits
    /// takes half of the room at a time. `None`: one write after another.
    pub turn_bytes: Option<u64>,
    /// Which die takes the next program of a zone.
    pub placement: Placement,
}

/// Which die takes the next program of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The one that follows in the order of its stripe.
    InOrder,
    /// Of those that have none of its line yet (as many programs as the zone has
    /// dies), the one with the least work. Rows of blocks are begun and erased as a
    /// whole. Not with [`Chunk`](super::MappingConfig::Chunk) and
    /// [`Stripe`](super::MappingConfig::Stripe).
    LeastWork,
}

/// When the room of blocks in a write buffer is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferRelease {
    /// When the program of their unit is over: a program that fails can be repeated.
    Program,
    /// When they are in a register of their die; where registers have no number
    /// ([`PageRegister::Overlap`](super::PageRegister::Overlap)), when their program begins.
    Transfer,
}
