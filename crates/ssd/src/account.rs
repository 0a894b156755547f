//! Where every nanosecond of every resource went, and every byte.

use serde::{Deserialize, Serialize};
use zonelab_device::Nanos;

use crate::record::{Kept, RecordLimits, Span, SpanLog, Work};

/// What a flash resource was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A read command.
    HostRead,
    /// A write or append command.
    HostWrite,
    /// Device writes of a zone finish.
    FinishFill,
    /// Erasure by a reset, at once or in the background.
    ResetErase,
    /// Erasure before a write can go to recycled flash.
    WriteErase,
    /// Garbage collection of a conventional namespace reads what it moves.
    CollectRead,
    /// It writes what it moves.
    CollectWrite,
    /// Erasure by the reset of a zone that it has emptied, and before what it writes.
    CollectErase,
    /// A write of a part of a mapping unit of a conventional namespace reads the unit.
    ModifyRead,
    /// Reads, programs and erasures that move data out of the SLC cache.
    Fold,
}

impl Cause {
    /// All causes, in the order of their columns in output.
    pub const ALL: [Self; 10] = [
        Self::HostRead,
        Self::HostWrite,
        Self::FinishFill,
        Self::ResetErase,
        Self::WriteErase,
        Self::CollectRead,
        Self::CollectWrite,
        Self::CollectErase,
        Self::ModifyRead,
        Self::Fold,
    ];

    /// Name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HostRead => "host-read",
            Self::HostWrite => "host-write",
            Self::FinishFill => "finish-fill",
            Self::ResetErase => "reset-erase",
            Self::WriteErase => "write-erase",
            Self::CollectRead => "collect-read",
            Self::CollectWrite => "collect-write",
            Self::CollectErase => "collect-erase",
            Self::ModifyRead => "modify-read",
            Self::Fold => "fold",
        }
    }

    /// The cause of erasures that come before programs of this one.
    #[inline]
    pub(crate) const fn of_erasure_before(self) -> Self {
        match self {
            Self::CollectWrite => Self::CollectErase,
            _ => Self::WriteErase,
        }
    }

    /// It programs.
    #[must_use]
    pub const fn is_program(self) -> bool {
        matches!(
            self,
            Self::HostWrite | Self::FinishFill | Self::CollectWrite
        )
    }

    /// It reads.
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::HostRead | Self::CollectRead | Self::ModifyRead)
    }
}

/// Busy time by cause, in nanoseconds.
pub type BusyByCause = [u64; Cause::ALL.len()];

/// Numbers of flash operations by cause.
pub type OperationsByCause = [u64; Cause::ALL.len()];

/// A resource that can be busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A channel.
    Channel(u32),
    /// A unit: a plane if planes are independent, else a die.
    Unit(u32),
}

/// Busy time of channels and units.
///
/// [`Ledger::occupy`] is the only way in, so a trace of everything that every
/// resource did has one place to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// By channel.
    pub channels: Vec<BusyByCause>,
    /// By unit.
    pub units: Vec<BusyByCause>,
    /// Operations handed to each unit.
    operations: Vec<OperationsByCause>,
    /// The end of the booking that ends last.
    booked_until: Nanos,
    /// The bookings, if they are recorded.
    log: Option<Box<SpanLog>>,
}

impl Ledger {
    /// A ledger of idle resources.
    #[must_use]
    pub fn new(channels: u32, units: u32) -> Self {
        Self {
            channels: vec![[0; Cause::ALL.len()]; channels as usize],
            units: vec![[0; Cause::ALL.len()]; units as usize],
            operations: vec![[0; Cause::ALL.len()]; units as usize],
            booked_until: Nanos::ZERO,
            log: None,
        }
    }

    /// Flash operations (reads, programs, erasures) handed to each unit. One
    /// that is suspended, or cut short by a loss of power, counts once.
    #[must_use]
    pub fn operations(&self) -> &[OperationsByCause] {
        &self.operations
    }

    /// Counts an operation that is handed to a unit.
    #[inline(always)]
    pub(crate) fn count_one(&mut self, cause: Cause, unit: u32) {
        self.operations[unit as usize][cause as usize] += 1;
    }

    /// Counts operations that are handed to units.
    #[inline]
    pub(crate) fn count(&mut self, cause: Cause, units: impl Iterator<Item = u32>) {
        for unit in units {
            self.operations[unit as usize][cause as usize] += 1;
        }
    }

    /// The end of the booking that ends last.
    #[must_use]
    pub const fn booked_until(&self) -> Nanos {
        self.booked_until
    }

    /// Starts to keep bookings, as many and of the time that `limits` say,
    /// until they are taken.
    pub fn record(&mut self, limits: &RecordLimits) {
        self.log = Some(Box::new(SpanLog::new(limits)));
    }

    /// The bookings since [`Ledger::record`], in the order in which they were
    /// made, and stops keeping them.
    #[must_use]
    pub fn take_spans(&mut self) -> Kept<Span> {
        self.log
            .take()
            .map(|log| log.into_spans())
            .unwrap_or_default()
    }

    /// Takes the log of bookings away for a while: nothing may be booked meanwhile.
    pub(crate) fn take_log(&mut self) -> Option<Box<SpanLog>> {
        self.log.take()
    }

    /// Puts it back.
    pub(crate) fn put_log(&mut self, log: Option<Box<SpanLog>>) {
        self.log = log;
    }

    /// Whether bookings are recorded.
    pub(crate) const fn is_recorded(&self) -> bool {
        self.log.is_some()
    }

    /// The log of bookings, if there is one.
    pub(crate) fn log_mut(&mut self) -> Option<&mut SpanLog> {
        self.log.as_deref_mut()
    }

    /// Books `resource` as busy from `start` to `end`.
    ///
    /// Bookings of one resource never overlap; one that is cut short by a
    /// suspend is booked in pieces. `work` is asked only if bookings are recorded.
    #[inline(always)]
    pub fn occupy(
        &mut self,
        resource: Resource,
        cause: Cause,
        start: Nanos,
        end: Nanos,
        work: impl FnOnce() -> Work,
    ) {
        debug_assert!(
            start <= end,
            "{resource:?} busy backwards: {start} to {end}"
        );
        let row = match resource {
            Resource::Channel(i) => &mut self.channels[i as usize],
            Resource::Unit(i) => &mut self.units[i as usize],
        };
        row[cause as usize] += (end - start).0;
        self.booked_until = self.booked_until.max(end);
        if let Some(log) = &mut self.log {
            log.book(resource, cause, (start, end), work());
        }
    }
}

/// Bytes and operations of a drive since it was made; a snapshot keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes that the host wrote and appended: the data that came over the link.
    /// What a zone finish fills does not.
    pub host_write_bytes: u64,
    /// Bytes that the host read.
    pub host_read_bytes: u64,
    /// Bytes programmed for the host: whole pages, also where the host wrote a part of one.
    pub host_program_bytes: u64,
    /// Bytes programmed by zone finish.
    pub fill_program_bytes: u64,
    /// Bytes programmed by garbage collection of conventional namespaces. Their
    /// part of a snapshot keeps it.
    #[serde(skip)]
    pub collect_program_bytes: u64,
    /// Bytes programmed by folds from an SLC cache. Its part of a snapshot keeps it.
    #[serde(skip)]
    pub fold_program_bytes: u64,
    /// Blocks erased.
    pub erased_blocks: u64,
    /// Zones reset.
    pub resets: u64,
    /// Zones finished.
    pub finishes: u64,
    /// Zones closed by the drive at the open limit.
    pub implicit_closes: u64,
}

impl Totals {
    /// What was added after `earlier`, which are totals of the same drive.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            host_write_bytes: self.host_write_bytes - earlier.host_write_bytes,
            host_read_bytes: self.host_read_bytes - earlier.host_read_bytes,
            host_program_bytes: self.host_program_bytes - earlier.host_program_bytes,
            fill_program_bytes: self.fill_program_bytes - earlier.fill_program_bytes,
            collect_program_bytes: self.collect_program_bytes - earlier.collect_program_bytes,
            fold_program_bytes: self.fold_program_bytes - earlier.fold_program_bytes,
            erased_blocks: self.erased_blocks - earlier.erased_blocks,
            resets: self.resets - earlier.resets,
            finishes: self.finishes - earlier.finishes,
            implicit_closes: self.implicit_closes - earlier.implicit_closes,
        }
    }

    /// The largest of them.
    pub(crate) fn largest(&self) -> u64 {
        [
            self.host_write_bytes,
            self.host_read_bytes,
            self.host_program_bytes,
            self.fill_program_bytes,
            self.collect_program_bytes,
            self.fold_program_bytes,
            self.erased_blocks,
            self.resets,
            self.finishes,
            self.implicit_closes,
        ]
        .into_iter()
        .max()
        .unwrap_or(0)
    }

    /// Device-level write amplification: bytes programmed per byte that the
    /// host wrote. `None` before the host wrote anything.
    #[must_use]
    pub fn dlwa(&self) -> Option<f64> {
        (self.host_write_bytes > 0)
            .then(|| self.programmed_bytes() as f64 / self.host_write_bytes as f64)
    }

    /// Bytes programmed, for whatever reason.
    #[must_use]
    pub const fn programmed_bytes(&self) -> u64 {
        self.host_program_bytes
            + self.fill_program_bytes
            + self.collect_program_bytes
            + self.fold_program_bytes
    }
}
