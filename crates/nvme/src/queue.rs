//! Queue entries: a command on its way to the controller, and its completion.
//!
//! Source: NVMe base specification 2.0, sections 3.3.3.1 (Submission Queue
//! Entry) and 3.3.3.2 (Common Completion Queue Entry).

mod opcode;
mod pointer;

pub use opcode::{AdminOpcode, IoOpcode};
pub use pointer::{DataPointer, PointerKind, SglDescriptor, SglId, SglType};

use crate::Status;
use crate::status::StatusCodeType;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bits! {
    /// Command dword 0: what every command starts with.
    pub struct Cdw0(U32: u32) {
        /// Opcode (OPC): an [`AdminOpcode`] or an [`IoOpcode`], depending on the queue.
        [7:0] opc / with_opc: u8,
        /// Fused operation (FUSE): 0 none, 1 first command, 2 second command.
        [9:8] fuse / with_fuse: u8,
        /// How the data pointer is to be read (PSDT).
        [15:14] psdt / with_psdt: PointerKind,
        /// Command identifier (CID): unique among the commands in flight of a queue.
        [31:16] cid / with_cid: u16,
    }
}

/// A submission queue entry: one command.
///
/// The dwords 10 to 15 mean what the opcode says; [`command`](crate::command)
/// reads and writes them.
#[derive(
    Copy,
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct SubmissionEntry {
    /// Opcode, fusing, kind of data pointer and identifier.
    pub cdw0: Cdw0,
    /// Namespace identifier (NSID): 0 for none, FFFFFFFFh for all.
    pub nsid: U32,
    /// Command dword 2.
    pub cdw2: U32,
    /// Command dword 3.
    pub cdw3: U32,
    /// Metadata pointer (MPTR).
    pub mptr: U64,
    /// Data pointer (DPTR).
    pub dptr: DataPointer,
    /// Command dword 10.
    pub cdw10: U32,
    /// Command dword 11.
    pub cdw11: U32,
    /// Command dword 12.
    pub cdw12: U32,
    /// Command dword 13.
    pub cdw13: U32,
    /// Command dword 14.
    pub cdw14: U32,
    /// Command dword 15.
    pub cdw15: U32,
}

const _: () = assert!(size_of::<SubmissionEntry>() == 64);

impl SubmissionEntry {
    /// An entry with opcode `opc` and everything else zero.
    #[must_use]
    pub fn new(opc: u8) -> Self {
        Self {
            cdw0: Cdw0::default().with_opc(opc),
            ..Self::default()
        }
    }

    /// The same with command identifier `cid`.
    #[must_use]
    pub fn with_cid(self, cid: u16) -> Self {
        Self {
            cdw0: self.cdw0.with_cid(cid),
            ..self
        }
    }

    /// The same for namespace `nsid`.
    #[must_use]
    pub fn with_nsid(self, nsid: u32) -> Self {
        Self {
            nsid: nsid.into(),
            ..self
        }
    }

    /// The same with its data at two PRP entries.
    #[must_use]
    pub fn with_prps(self, prp1: u64, prp2: u64) -> Self {
        Self {
            cdw0: self.cdw0.with_psdt(PointerKind::PRP),
            dptr: DataPointer::prps(prp1, prp2),
            ..self
        }
    }

    /// The same with its data where an SGL descriptor says. Metadata, if any,
    /// is one contiguous buffer.
    #[must_use]
    pub fn with_sgl(self, sgl: SglDescriptor) -> Self {
        Self {
            cdw0: self.cdw0.with_psdt(PointerKind::SGL_MPTR_BUFFER),
            dptr: DataPointer::sgl(sgl),
            ..self
        }
    }

    /// Dwords 10 and 11 as one number: the starting LBA of most I/O commands.
    #[must_use]
    pub fn slba(&self) -> u64 {
        u64::from(self.cdw11.get()) << 32 | u64::from(self.cdw10.get())
    }

    /// The same with dwords 10 and 11 set to `slba`.
    #[must_use]
    pub fn with_slba(self, slba: u64) -> Self {
        let (low, high) = halves(slba);
        Self {
            cdw10: low,
            cdw11: high,
            ..self
        }
    }
}

bits! {
    /// The status field of a completion (STATUS) with the phase tag below it:
    /// the upper half of its dword 3.
    pub struct StatusField(U16: u16) {
        /// Phase tag (P): flips each time the queue wraps, so that the host
        /// knows a new entry. On a fabric it is reserved.
        [0:0] p / with_p: bool,
        /// Status code (SC).
        [8:1] sc / with_sc: u8,
        /// Status code type (SCT).
        [11:9] sct / with_sct: StatusCodeType,
        /// Command retry delay (CRD): 0 none, else the number (1 to 3) of the
        /// CRDT field of Identify Controller that holds the delay.
        [13:12] crd / with_crd: u8,
        /// More (M): the error information log says more about it.
        [14:14] m / with_m: bool,
        /// Do not retry (DNR): the same command would fail again.
        [15:15] dnr / with_dnr: bool,
    }
}

impl StatusField {
    /// Status code type and status code together.
    #[must_use]
    pub fn status(self) -> Status {
        Status::new(self.sct(), self.sc())
    }

    /// The same with SCT and SC of `status`.
    #[must_use]
    pub fn with_status(self, status: Status) -> Self {
        self.with_sct(status.sct()).with_sc(status.sc())
    }

    /// True if the command failed and the host may send it again: DNR is clear.
    #[must_use]
    pub fn may_retry(self) -> bool {
        !self.status().is_success() && !self.dnr()
    }
}

/// A completion queue entry: how one command ended.
#[derive(
    Copy,
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct CompletionEntry {
    /// Command-specific result, low dword.
    pub dw0: U32,
    /// Command-specific result, high dword; reserved for most commands.
    pub dw1: U32,
    /// Submission queue head pointer (SQHD): entries before it are free again.
    pub sqhd: U16,
    /// Submission queue identifier (SQID). On a fabric it is reserved.
    pub sqid: U16,
    /// Command identifier (CID) of the command that ended.
    pub cid: U16,
    /// Status field and phase tag.
    pub status: StatusField,
}

const _: () = assert!(size_of::<CompletionEntry>() == 16);

impl CompletionEntry {
    /// The completion of command `cid` with `status`; DNR, more and phase clear.
    #[must_use]
    pub fn new(cid: u16, status: Status) -> Self {
        Self {
            cid: cid.into(),
            status: StatusField::default().with_status(status),
            ..Self::default()
        }
    }

    /// Dwords 0 and 1 as one number. Zone Append: the LBA that was assigned (ALBA).
    #[must_use]
    pub fn result(&self) -> u64 {
        u64::from(self.dw1.get()) << 32 | u64::from(self.dw0.get())
    }

    /// The same with dwords 0 and 1 set to `result`.
    #[must_use]
    pub fn with_result(self, result: u64) -> Self {
        let (low, high) = halves(result);
        Self {
            dw0: low,
            dw1: high,
            ..self
        }
    }

    /// The same with the do-not-retry bit set to `dnr`.
    #[must_use]
    pub fn with_dnr(self, dnr: bool) -> Self {
        Self {
            status: self.status.with_dnr(dnr),
            ..self
        }
    }
}

/// The low and the high dword of `value`.
fn halves(value: u64) -> (U32, U32) {
    let low = U32::new((value & u64::from(u32::MAX)) as u32);
    (low, U32::new((value >> 32) as u32))
}
