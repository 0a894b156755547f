//! Queue pairs: how host software talks to any device.

use crate::{Buf, Command, Found, NamespaceId, Nanos, QueueId, Tag};
use zonelab_nvme::Status;

/// A finished command.
#[derive(Debug)]
pub struct Completion {
    /// The queue it was submitted on.
    pub queue: QueueId,
    /// What the submitter called it.
    pub tag: Tag,
    /// How it ended.
    pub status: Status,
    /// When it ended: from a drive, when it posted the completion; from a
    /// [`QueuePair`], when the host's core had taken it off the queue.
    pub at: Nanos,
    /// Command-specific result. Zone Append: the LBA that was assigned.
    pub result: u64,
    /// What it found to do; of one that failed it says nothing.
    pub found: Found,
    /// The buffer that was handed over with the command.
    pub data: Option<Buf>,
}

/// Why a command was not taken, and the buffer that came with it.
///
/// A command that is taken and then fails is no rejection: it completes with
/// a [`Status`].
#[derive(Debug, thiserror::Error)]
#[error("command not taken: {reason}")]
pub struct Rejected {
    /// Why.
    pub reason: RejectReason,
    /// The buffer handed over with the command.
    pub data: Option<Buf>,
}

/// Why a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RejectReason {
    /// The queue holds as many commands as it can.
    #[error("queue {} is full ({depth} commands in flight)", queue.0)]
    QueueFull {
        /// The queue.
        queue: QueueId,
        /// Its depth.
        depth: u32,
    },
    /// There is no such queue.
    #[error("there is no queue {}", queue.0)]
    NoSuchQueue {
        /// The queue asked for.
        queue: QueueId,
    },
    /// An append is longer than the device takes, and cannot be sent in parts: other data
    /// could come between them.
    #[error(
        "an append of {bytes} bytes is longer than the device takes ({most}, ZASL), and its \
         parts would not be adjacent"
    )]
    CannotSplit {
        /// Bytes of the append.
        bytes: u64,
        /// Most bytes of one.
        most: u32,
    },
    /// The connection to the device is gone.
    #[error("the device is gone")]
    Disconnected,
}

/// What a host learns about a device before it uses it: the parts of Identify
/// that workloads and file systems plan with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name of the profile, or model number.
    pub model: String,
    /// The namespaces, NSID 1 first.
    pub namespaces: Vec<NamespaceInfo>,
    /// Largest transfer of one command in bytes (MDTS); `u32::MAX` if unlimited.
    pub max_transfer_bytes: u32,
    /// Largest zone append in bytes (ZASL).
    pub max_append_bytes: u32,
    /// What was written can be lost with power until a Flush has ended (VWC).
    pub has_volatile_cache: bool,
}

impl DeviceInfo {
    /// The namespace of that identifier, if there is one.
    #[must_use]
    pub fn namespace(&self, nsid: NamespaceId) -> Option<&NamespaceInfo> {
        let index = usize::try_from(nsid.0).ok()?.checked_sub(1)?;
        self.namespaces.get(index)
    }
}

/// One namespace of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceInfo {
    /// Size of a logical block in bytes.
    pub lba_bytes: u32,
    /// Size of the namespace in logical blocks (NSZE).
    pub size_lbas: u64,
    /// Zones, if it is a zoned namespace.
    pub zoned: Option<ZonedInfo>,
    /// What one Copy may do; `None`: the device has no Copy.
    pub copy: Option<CopyLimits>,
    /// Placement identifiers that writes may name, from 0 on ([`Command::placement`]); `None`:
    /// it has no flexible data placement, or does not tell.
    ///
    /// [`Command::placement`]: crate::Command::placement
    pub placements: Option<u16>,
}

/// What one Copy command may do (NVM command set 1.0, Identify Namespace).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyLimits {
    /// Most source ranges, 1 to 256 (MSRC + 1).
    pub max_ranges: u16,
    /// Most logical blocks of one source range (MSSRL), at least 1.
    pub max_range_lbas: u16,
    /// Most logical blocks together (MCL), at least `max_range_lbas`.
    pub max_lbas: u32,
}

/// The zones of a zoned namespace. All have the same size and capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZonedInfo {
    /// Number of zones.
    pub zones: u32,
    /// Zone size in logical blocks (ZSZE): the distance between zone starts.
    pub zone_size_lbas: u64,
    /// Zone capacity in logical blocks (ZCAP): what can be written, at most the size.
    pub zone_capacity_lbas: u64,
    /// Largest number of active zones (MAR + 1); `None`: unlimited.
    pub max_active: Option<u32>,
    /// Largest number of open zones (MOR + 1); `None`: unlimited.
    pub max_open: Option<u32>,
    /// A read may cross from one zone into the next (OZCS bit 0).
    pub read_across_zones: bool,
    /// Bytes of a zone descriptor extension; 0: none.
    pub descriptor_extension_bytes: u32,
    /// Random write areas, if zones can have them (OZCS bit 1).
    pub zrwa: Option<ZrwaInfo>,
}

/// The zone random write areas (ZRWA) of a zoned namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZrwaInfo {
    /// Blocks of an area (ZRWASZ).
    pub size_lbas: u32,
    /// Blocks by which write pointers move (ZRWAFG).
    pub flush_granularity_lbas: u32,
    /// Most zones that have an area (NUMZRWA + 1); `None`: unlimited.
    pub max_areas: Option<u32>,
    /// The host can commit blocks of an area (ZRWACAP bit 0).
    pub explicit_flush: bool,
}

/// One queue pair of any device: the emulated drive under either clock, an
/// NVMe/TCP target, a PCIe drive, a Linux device.
///
/// A queue pair is opened on the thread that uses it, so implementations need
/// be neither `Send` nor `Sync`. Nothing here blocks; only the reactor waits.
pub trait QueuePair {
    /// What the device is.
    fn info(&self) -> &DeviceInfo;

    /// The time on the core that runs the caller. In virtual time it moves on
    /// as the modelled host code of `submit` and `poll` takes its time.
    fn now(&self) -> Nanos;

    /// Hands a command (and its buffer) over.
    ///
    /// # Errors
    /// [`Rejected`] gives the buffer back: the queue is full, or gone.
    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected>;

    /// Tells the device about everything submitted since the last call: one
    /// doorbell or one system call for the batch.
    fn ring(&mut self);

    /// Moves finished commands to the end of `done` and returns their number.
    fn poll(&mut self, done: &mut Vec<Completion>) -> usize;
}

/// For programs that choose the kind of their device when they run.
impl<Q: QueuePair + ?Sized> QueuePair for Box<Q> {
    fn info(&self) -> &DeviceInfo {
        Q::info(self)
    }

    fn now(&self) -> Nanos {
        Q::now(self)
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        Q::submit(self, command, tag, data)
    }

    fn ring(&mut self) {
        Q::ring(self);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        Q::poll(self, done)
    }
}

/// For programs whose queue pair belongs to somebody else.
impl<Q: QueuePair + ?Sized> QueuePair for &mut Q {
    fn info(&self) -> &DeviceInfo {
        Q::info(self)
    }

    fn now(&self) -> Nanos {
        Q::now(self)
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        Q::submit(self, command, tag, data)
    }

    fn ring(&mut self) {
        Q::ring(self);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        Q::poll(self, done)
    }
}
