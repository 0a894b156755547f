//! What can go wrong with a controller on PCIe.

use super::bus::DmaError;

/// Something that a controller must not do. Nothing that it says is believed
/// without a check: a violation is an error, and never a panic or a wrong access.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A completion of a command identifier that the driver never gave out.
    #[error("it completed command {cid:#06x}, and the queue has slots 0 to {last}")]
    NoSuchCommand {
        /// The identifier.
        cid: u16,
        /// The last slot of the queue.
        last: u16,
    },
    /// A completion of a command that is not in flight: a second one, or one that
    /// comes after the command was given up.
    #[error("it completed command {cid:#06x}, which is not in flight")]
    NotInFlight {
        /// The identifier.
        cid: u16,
    },
    /// A completion in one queue of a command from another.
    #[error("a completion names submission queue {sqid}, in the queue of {expected}")]
    WrongQueue {
        /// What the completion says.
        sqid: u16,
        /// Whose completions come there.
        expected: u16,
    },
    /// A submission queue head that is not between the last one and the tail.
    #[error(
        "it reports submission queue head {head}: only {from} to {to} of {entries} are possible"
    )]
    BadHead {
        /// What it reports.
        head: u16,
        /// The last one.
        from: u16,
        /// The tail.
        to: u16,
        /// Entries of the ring.
        entries: u32,
    },
}

/// What is wrong with a controller on PCIe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PcieError {
    /// Registers read as all ones.
    #[error("the device is gone: its registers read as all ones")]
    Gone,
    /// The host wants it back.
    #[error("the host asks for the device back: it is to be removed, or bound to another driver")]
    AskedFor,
    /// No memory.
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// Interrupts were asked for, and there are too few vectors.
    #[error(
        "interrupts need 2 vectors of MSI-X, for the admin queue and an I/O queue, and \
         {vectors} can be used here (uio_pci_generic has none): without interrupts queues \
         are polled"
    )]
    NoInterrupts {
        /// Vectors that there are.
        vectors: u16,
    },
    /// The system does not connect the vectors.
    #[error("interrupt vectors of the device cannot be connected")]
    Interrupts(#[source] std::io::Error),
    /// The controller broke the protocol.
    #[error("the controller broke the protocol: {0}")]
    Violation(#[from] Violation),
    /// A command took longer than it may, and so did its end.
    #[error("a command is not over after {timeout}, and could not be aborted")]
    Late {
        /// How long it may take.
        timeout: zonelab_device::Nanos,
    },
    /// The controller is disabled, and not enabled again yet.
    #[error("the controller is being reset")]
    Resetting,
    /// The controller cannot be disabled, so that it may still access memory.
    #[error(
        "the controller did not become disabled; memory of commands in flight is not used again"
    )]
    NotQuiet(#[source] Box<crate::DriverError>),
}
