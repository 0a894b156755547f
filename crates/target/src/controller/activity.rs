//! What hosts asked for: commands, errors, bytes and latencies by operation.
//!
//! Counted where a command ends, in flat arrays: an increment and one in a
//! histogram, which is next to nothing beside its sockets.

use hdrhistogram::Histogram;
use zonelab_device::{Nanos, Op};
use zonelab_nvme::queue::{IoOpcode, SubmissionEntry};
use zonelab_nvme::zns::ZoneSendAction;

/// Latencies beyond this are recorded as this.
const MOST_NS: u64 = 100_000_000_000;

macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// An operation of I/O queues: an opcode, and of Zone Management Send
        /// also the action.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Operation {
            $($(#[$doc])* $variant,)*
        }

        impl Operation {
            /// All of them, in the order of the rows of [`Activity`].
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Name in output.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

operations! {
    /// Read.
    Read = "read",
    /// Write.
    Write = "write",
    /// Zone Append.
    Append = "append",
    /// Write Zeroes.
    WriteZeroes = "write_zeroes",
    /// Compare.
    Compare = "compare",
    /// Verify.
    Verify = "verify",
    /// Dataset Management, with or without deallocation.
    DatasetManagement = "dataset_management",
    /// Copy.
    Copy = "copy",
    /// Flush.
    Flush = "flush",
    /// Zone Management Send: Open Zone.
    ZoneOpen = "zone_open",
    /// Zone Management Send: Close Zone.
    ZoneClose = "zone_close",
    /// Zone Management Send: Finish Zone.
    ZoneFinish = "zone_finish",
    /// Zone Management Send: Reset Zone.
    ZoneReset = "zone_reset",
    /// Zone Management Send: Offline Zone.
    ZoneOffline = "zone_offline",
    /// Zone Management Send with any other action.
    ZoneSend = "zone_send",
    /// Zone Management Receive.
    ZoneReport = "zone_report",
    /// I/O Management Receive.
    IoManagementReceive = "io_management_receive",
    /// I/O Management Send.
    IoManagementSend = "io_management_send",
    /// Reservation Register, Report, Acquire or Release.
    Reservation = "reservation",
    /// An opcode that the controller does not have.
    Unknown = "unknown",
}

impl Operation {
    /// The operation that a command to the drive came from.
    #[must_use]
    pub const fn of(op: &Op) -> Self {
        match op {
            Op::Read { .. } => Self::Read,
            Op::Write { .. } => Self::Write,
            Op::Append { .. } => Self::Append,
            Op::WriteZeroes { .. } => Self::WriteZeroes,
            Op::Compare { .. } => Self::Compare,
            Op::Verify { .. } => Self::Verify,
            Op::Deallocate { .. } => Self::DatasetManagement,
            Op::Copy { .. } => Self::Copy,
            Op::Flush => Self::Flush,
            Op::ZoneSend { action, .. } | Op::ZrwaSend { action, .. } => Self::of_action(*action),
            Op::ZoneReceive { .. } => Self::ZoneReport,
            Op::HandleStatus => Self::IoManagementReceive,
            Op::HandleUpdate { .. } => Self::IoManagementSend,
        }
    }

    const fn of_action(action: ZoneSendAction) -> Self {
        match action {
            ZoneSendAction::OPEN => Self::ZoneOpen,
            ZoneSendAction::CLOSE => Self::ZoneClose,
            ZoneSendAction::FINISH => Self::ZoneFinish,
            ZoneSendAction::RESET => Self::ZoneReset,
            ZoneSendAction::OFFLINE => Self::ZoneOffline,
            _ => Self::ZoneSend,
        }
    }

    /// What a submission queue entry of an I/O queue asks for.
    #[must_use]
    pub fn of_entry(entry: &SubmissionEntry) -> Self {
        match IoOpcode(entry.cdw0.opc()) {
            IoOpcode::READ => Self::Read,
            IoOpcode::WRITE => Self::Write,
            IoOpcode::ZONE_APPEND => Self::Append,
            IoOpcode::WRITE_ZEROES => Self::WriteZeroes,
            IoOpcode::COMPARE => Self::Compare,
            IoOpcode::VERIFY => Self::Verify,
            IoOpcode::DATASET_MANAGEMENT => Self::DatasetManagement,
            IoOpcode::COPY => Self::Copy,
            IoOpcode::FLUSH => Self::Flush,
            // The action is in the lowest byte of dword 13.
            IoOpcode::ZONE_MANAGEMENT_SEND => {
                Self::of_action(ZoneSendAction(entry.cdw13.get() as u8))
            }
            IoOpcode::ZONE_MANAGEMENT_RECEIVE => Self::ZoneReport,
            IoOpcode::IO_MANAGEMENT_RECEIVE => Self::IoManagementReceive,
            IoOpcode::IO_MANAGEMENT_SEND => Self::IoManagementSend,
            IoOpcode::RESERVATION_REGISTER
            | IoOpcode::RESERVATION_REPORT
            | IoOpcode::RESERVATION_ACQUIRE
            | IoOpcode::RESERVATION_RELEASE => Self::Reservation,
            _ => Self::Unknown,
        }
    }
}

/// Commands of one operation in one namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Commands that ended.
    pub commands: u64,
    /// Those of them that failed.
    pub errors: u64,
    /// Bytes of the logical blocks that those with success named; 0 for
    /// operations that name none, or ranges.
    pub bytes: u64,
}

/// Tallies of all operations, in the order of [`Operation::ALL`].
pub type Tallies = [Tally; Operation::ALL.len()];

/// Counts and latencies of I/O commands, and the number of admin commands.
#[derive(Clone, Debug)]
pub struct Activity {
    /// By namespace identifier; the first row is of no namespace.
    tallies: Vec<Tallies>,
    /// From submission until the model is done, over all namespaces.
    latencies: Vec<Histogram<u64>>,
    /// Commands that failed by the media, by namespace identifier.
    media_errors: Vec<u64>,
    admin_commands: u64,
}

impl Activity {
    pub(super) fn new() -> Self {
        // Two digits: 1 % of a value, in tens of kilobytes.
        let histogram = Histogram::new_with_bounds(1, MOST_NS, 2)
            .expect("the bounds are more than a factor of two apart");
        Self {
            tallies: vec![Tallies::default()],
            latencies: vec![histogram; Operation::ALL.len()],
            media_errors: vec![0],
            admin_commands: 0,
        }
    }

    /// Makes room for namespaces from 1 to `namespaces`.
    pub(super) fn make_room(&mut self, namespaces: usize) {
        let rows = self.tallies.len().max(namespaces + 1);
        self.tallies.resize(rows, Tallies::default());
        self.media_errors.resize(rows, 0);
    }

    /// By namespace identifier. What the first row counts named a namespace
    /// that there is not.
    #[must_use]
    pub fn tallies(&self) -> &[Tallies] {
        &self.tallies
    }

    /// Latencies in nanoseconds, to 1 %: from when a command was there as a
    /// whole until the model had it done. Of commands that the drive has seen.
    #[must_use]
    pub fn latency(&self, operation: Operation) -> &Histogram<u64> {
        &self.latencies[operation as usize]
    }

    /// Admin and fabrics commands that came on admin queues.
    #[must_use]
    pub const fn admin_commands(&self) -> u64 {
        self.admin_commands
    }

    /// Commands on a namespace that failed by the media.
    pub(super) fn media_errors(&self, nsid: u32) -> u64 {
        self.media_errors.get(nsid as usize).copied().unwrap_or(0)
    }

    pub(super) fn media_error(&mut self, nsid: u32) {
        if let Some(count) = self.media_errors.get_mut(nsid as usize) {
            *count += 1;
        }
    }

    pub(super) const fn admin(&mut self) {
        self.admin_commands += 1;
    }

    /// An I/O command that the drive has not seen.
    #[cold]
    pub(super) fn refused(&mut self, entry: &SubmissionEntry) {
        self.without_drive(entry, true);
    }

    /// An I/O command that ended without the drive.
    pub(super) fn without_drive(&mut self, entry: &SubmissionEntry, is_error: bool) {
        let nsid = entry.nsid.get() as usize;
        let row = if nsid < self.tallies.len() { nsid } else { 0 };
        let tally = &mut self.tallies[row][Operation::of_entry(entry) as usize];
        tally.commands += 1;
        tally.errors += u64::from(is_error);
    }

    /// An I/O command that the drive is done with.
    #[inline]
    pub(super) fn done(&mut self, nsid: u32, op: &Op, lba_bytes: u32, failed: bool, took: Nanos) {
        let operation = Operation::of(op) as usize;
        if let Some(row) = self.tallies.get_mut(nsid as usize) {
            let tally = &mut row[operation];
            tally.commands += 1;
            tally.errors += u64::from(failed);
            if !failed {
                tally.bytes += u64::from(op.nlb()) * u64::from(lba_bytes);
            }
        }
        self.latencies[operation].saturating_record(took.0);
    }
}
