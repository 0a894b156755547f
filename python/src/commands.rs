//! Commands as Python says them: an operation by name, where it goes, and how long it is.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zonelab_device::{Buf, Lba, Nanos, Op};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction};

use crate::errors;

/// An operation without its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Append,
    WriteZeroes,
    Compare,
    Verify,
    Flush,
    Send(ZoneSendAction),
    Report,
}

/// The operations and their names.
pub(crate) const KINDS: &[(&str, Kind)] = &[
    ("read", Kind::Read),
    ("write", Kind::Write),
    ("append", Kind::Append),
    ("write-zeroes", Kind::WriteZeroes),
    ("compare", Kind::Compare),
    ("verify", Kind::Verify),
    ("flush", Kind::Flush),
    ("open", Kind::Send(ZoneSendAction::OPEN)),
    ("close", Kind::Send(ZoneSendAction::CLOSE)),
    ("finish", Kind::Send(ZoneSendAction::FINISH)),
    ("reset", Kind::Send(ZoneSendAction::RESET)),
    ("offline", Kind::Send(ZoneSendAction::OFFLINE)),
    ("report", Kind::Report),
];

impl Kind {
    /// The operation of that name.
    ///
    /// # Errors
    /// `UsageError`: there is none.
    pub(crate) fn named(name: &str) -> PyResult<Self> {
        let found = KINDS.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let names: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            errors::usage(format!("operation \"{name}\": there are {names}"))
        })
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        let found = KINDS.iter().find(|(_, kind)| *kind == self);
        found.map_or("other", |(name, _)| name)
    }

    /// It is on a number of blocks.
    pub(crate) const fn has_blocks(self) -> bool {
        !matches!(self, Self::Flush | Self::Send(_) | Self::Report)
    }

    /// It is on a zone as a whole, or on the drive.
    pub(crate) const fn takes_zone_start(self) -> bool {
        matches!(self, Self::Append | Self::Send(_) | Self::Report)
    }

    /// It brings data with it.
    pub(crate) const fn brings_data(self) -> bool {
        matches!(self, Self::Write | Self::Append | Self::Compare)
    }

    /// The command; `nlb` counts if it is on blocks.
    pub(crate) const fn op(self, slba: Lba, nlb: u32) -> Op {
        match self {
            Self::Read => Op::Read { slba, nlb },
            Self::Write => Op::Write { slba, nlb },
            Self::Append => Op::Append { zslba: slba, nlb },
            Self::WriteZeroes => Op::WriteZeroes { slba, nlb },
            Self::Compare => Op::Compare { slba, nlb },
            Self::Verify => Op::Verify { slba, nlb },
            Self::Flush => Op::Flush,
            Self::Send(action) => Op::ZoneSend {
                slba,
                action,
                select_all: false,
            },
            Self::Report => Op::ZoneReceive {
                slba,
                filter: ReportFilter::ALL,
                partial: false,
                extended: false,
            },
        }
    }
}

/// Name of the operation of a command.
pub(crate) fn kind_of(op: &Op) -> &'static str {
    match *op {
        Op::Read { .. } => "read",
        Op::Write { .. } => "write",
        Op::Append { .. } => "append",
        Op::WriteZeroes { .. } => "write-zeroes",
        Op::Compare { .. } => "compare",
        Op::Verify { .. } => "verify",
        Op::Flush => "flush",
        Op::ZoneReceive { .. } => "report",
        Op::ZoneSend { action, .. } => Kind::Send(action).name(),
        Op::Deallocate { .. }
        | Op::Copy { .. }
        | Op::ZrwaSend { .. }
        | Op::HandleStatus
        | Op::HandleUpdate { .. } => "other",
    }
}

/// Blocks of so many bytes.
///
/// # Errors
/// `UsageError`: they are no whole number of blocks, or too many.
pub(crate) fn blocks(nbytes: u64, lba_bytes: u32) -> PyResult<u32> {
    let lba_bytes = u64::from(lba_bytes);
    if nbytes == 0 || !nbytes.is_multiple_of(lba_bytes) {
        return Err(errors::usage(format!(
            "nbytes = {nbytes}: has to be a multiple of the {lba_bytes} bytes of a logical block"
        )));
    }
    u32::try_from(nbytes / lba_bytes)
        .map_err(|_| errors::usage(format!("nbytes = {nbytes}: a command is not that long")))
}

/// A command that has completed.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct Completion {
    pub(crate) tag: u64,
    pub(crate) op: &'static str,
    pub(crate) lba: u64,
    pub(crate) nbytes: u64,
    pub(crate) submitted: Nanos,
    pub(crate) at: Nanos,
    pub(crate) status: Status,
    pub(crate) result: u64,
    pub(crate) data: Option<Buf>,
}

#[pymethods]
impl Completion {
    /// What its submitter calls it.
    #[getter]
    const fn tag(&self) -> u64 {
        self.tag
    }

    /// The operation.
    #[getter]
    const fn op(&self) -> &'static str {
        self.op
    }

    /// Its first block. Of an append that succeeded, where the data went.
    #[getter]
    fn lba(&self) -> u64 {
        match self.op == "append" && self.status.is_success() {
            true => self.result,
            false => self.lba,
        }
    }

    /// Its length; 0 if it is on no blocks.
    #[getter]
    const fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// When it was submitted, in nanoseconds.
    #[getter]
    const fn submitted(&self) -> u64 {
        self.submitted.0
    }

    /// When it completed, in nanoseconds.
    #[getter]
    const fn at(&self) -> u64 {
        self.at.0
    }

    /// Nanoseconds from one to the other.
    #[getter]
    const fn latency_ns(&self) -> u64 {
        self.at.saturating_sub(self.submitted).0
    }

    /// The NVMe status: code type in bits 8 to 10, code below.
    #[getter]
    const fn status(&self) -> u16 {
        self.status.0
    }

    /// It succeeded.
    #[getter]
    const fn ok(&self) -> bool {
        self.status.is_success()
    }

    /// The status in words, with its code.
    #[getter]
    fn status_text(&self) -> String {
        self.status.to_string()
    }

    /// What was read, if the drive keeps data.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.data.as_ref().map(|data| PyBytes::new(py, data))
    }

    /// Raises `CommandFailed` if it did not succeed.
    pub(crate) fn check(slf: &Bound<'_, Self>) -> PyResult<()> {
        let of = slf.get();
        if of.ok() {
            return Ok(());
        }
        let (op, lba, status) = (of.op, of.lba, of.status_text());
        let text = format!("{op} at block {lba}: {status}");
        Err(errors::command_failed(text, of.status.0, slf))
    }

    fn __repr__(&self) -> String {
        let (tag, op, at) = (self.tag, self.op, self.at);
        format!("<zonelab.Completion {tag}: {op}, {} at {at}>", self.status)
    }
}
