//! Admin commands: Identify, Abort and Format NVM (base specification 2.0,
//! sections 5.17, 5.1 and 5.14), and what all of them have in common.

use super::dwords::{IdentifyDword10, IdentifyDword11, UuidDword14};
use super::{GetFeatures, GetLogPage, OutOfRange, SetFeatures, expect_opcode};
use crate::Status;
use crate::identify::{Cns, CommandSet};
use crate::queue::{AdminOpcode, SubmissionEntry};
use zerocopy::little_endian::U32;

/// Identify: a 4096-byte structure that describes controller or namespace.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Identify {
    /// Namespace, for structures of one. For a list, the identifier that it
    /// starts after.
    pub nsid: u32,
    /// Which structure.
    pub cns: Cns,
    /// Controller identifier (CNTID), for structures that ask for one.
    pub cntid: u16,
    /// Command set, for structures that are specific to one.
    pub csi: CommandSet,
    /// CNS specific identifier, such as an NVM set.
    pub cns_specific_id: u16,
    /// UUID index, 0 to 127; 0 is none.
    pub uuid_index: u8,
}

impl Identify {
    /// The structure `cns`, of command set `csi` if it is specific to one.
    #[must_use]
    pub fn new(nsid: u32, cns: Cns, csi: CommandSet) -> Self {
        Self {
            nsid,
            cns,
            cntid: 0,
            csi,
            cns_specific_id: 0,
            uuid_index: 0,
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `uuid_index` exceeds 127.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let dword10 = IdentifyDword10::default()
            .with_cns(self.cns)
            .with_cntid(self.cntid);
        let dword11 = IdentifyDword11::default()
            .with_cns_specific_id(self.cns_specific_id)
            .with_csi(self.csi);
        let dword14 = UuidDword14::of(self.uuid_index)?;
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            cdw11: dword11.bits().into(),
            cdw14: dword14.bits().into(),
            ..SubmissionEntry::new(AdminOpcode::IDENTIFY.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, AdminOpcode::IDENTIFY.0)?;
        let dword10 = IdentifyDword10::from_bits(entry.cdw10.get());
        let dword11 = IdentifyDword11::from_bits(entry.cdw11.get());
        let dword14 = UuidDword14::from_bits(entry.cdw14.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            cns: dword10.cns(),
            cntid: dword10.cntid(),
            csi: dword11.csi(),
            cns_specific_id: dword11.cns_specific_id(),
            uuid_index: dword14.uuid_index(),
        })
    }
}

bits! {
    /// Dword 10 of Abort.
    struct AbortDword10(U32: u32) {
        /// Submission queue identifier (SQID).
        [15:0] sqid / with_sqid: u16,
        /// Command identifier (CID).
        [31:16] cid / with_cid: u16,
    }
}

/// Abort: give up a command. Bit 0 of dword 0 of the completion is
/// [`Abort::NOT_ABORTED`] if that did not happen.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// Submission queue of the command to abort.
    pub sqid: u16,
    /// Its identifier.
    pub cid: u16,
}

impl Abort {
    /// Dword 0 of the completion if the command was not aborted.
    pub const NOT_ABORTED: u32 = 1;

    /// The entry of the command.
    #[must_use]
    pub fn to_entry(&self) -> SubmissionEntry {
        let dword10 = AbortDword10::default()
            .with_sqid(self.sqid)
            .with_cid(self.cid);
        SubmissionEntry {
            cdw10: dword10.bits().into(),
            ..SubmissionEntry::new(AdminOpcode::ABORT.0)
        }
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, AdminOpcode::ABORT.0)?;
        let dword10 = AbortDword10::from_bits(entry.cdw10.get());
        Ok(Self {
            sqid: dword10.sqid(),
            cid: dword10.cid(),
        })
    }
}

bits! {
    /// Dword 10 of Format NVM.
    struct FormatDword10(U32: u32) {
        /// LBA format lower (LBAFL).
        [3:0] lbafl / with_lbafl: u8,
        /// Metadata settings (MSET).
        [4:4] mset / with_mset: bool,
        /// Protection information (PI).
        [7:5] pi / with_pi: u8,
        /// Protection information location (PIL).
        [8:8] pil / with_pil: bool,
        /// Secure erase settings (SES).
        [11:9] ses / with_ses: SecureErase,
        /// LBA format upper (LBAFU).
        [13:12] lbafu / with_lbafu: u8,
    }
}

crate::open_enum! {
    /// Secure Erase Settings (SES) of Format NVM: 3 bits.
    pub enum SecureErase: u8 {
        /// No secure erase.
        NONE = 0x0,
        /// All user data is erased.
        USER_DATA = 0x1,
        /// User data is erased by deleting its key.
        CRYPTOGRAPHIC = 0x2,
    }
}

enum_fields!(SecureErase: u8);

/// Format NVM: give a namespace another format. Its data is lost.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FormatNvm {
    /// Namespace; FFFFFFFFh for all of them.
    pub nsid: u32,
    /// Index of the LBA format (LBAFU and LBAFL), 0 to 63.
    pub lbaf: u8,
    /// Metadata settings (MSET): metadata follows each block (set) or lies in a
    /// buffer of its own.
    pub mset: bool,
    /// Protection information (PI), 0 to 7: 0 none, 1 to 3 the type.
    pub pi: u8,
    /// Protection information location (PIL): in the first bytes of the
    /// metadata (set) or in the last.
    pub pil: bool,
    /// Secure erase settings; 3 bits.
    pub ses: SecureErase,
}

impl FormatNvm {
    /// Format namespace `nsid` with format `lbaf`, without metadata options.
    #[must_use]
    pub fn new(nsid: u32, lbaf: u8) -> Self {
        Self {
            nsid,
            lbaf,
            mset: false,
            pi: 0,
            pil: false,
            ses: SecureErase::NONE,
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `lbaf` exceeds 63, or `pi` or `ses` 7.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        OutOfRange::check("lbaf", self.lbaf.into(), 0, 0x3f)?;
        OutOfRange::check("pi", self.pi.into(), 0, 7)?;
        OutOfRange::check("ses", self.ses.0.into(), 0, 7)?;
        let dword10 = FormatDword10::default()
            .with_lbafl(self.lbaf)
            .with_lbafu(self.lbaf >> 4)
            .with_mset(self.mset)
            .with_pi(self.pi)
            .with_pil(self.pil)
            .with_ses(self.ses);
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            ..SubmissionEntry::new(AdminOpcode::FORMAT_NVM.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, AdminOpcode::FORMAT_NVM.0)?;
        let dword10 = FormatDword10::from_bits(entry.cdw10.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            lbaf: dword10.lbafu() << 4 | dword10.lbafl(),
            mset: dword10.mset(),
            pi: dword10.pi(),
            pil: dword10.pil(),
            ses: dword10.ses(),
        })
    }
}

/// An admin command, parsed. Fabrics commands, which share the queue, are
/// [`FabricsCommand`](crate::fabrics::FabricsCommand)s.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// Read a data structure that describes controller or namespace.
    Identify(Identify),
    /// Read a log page.
    GetLogPage(GetLogPage),
    /// Read the value of a feature.
    GetFeatures(GetFeatures),
    /// Set the value of a feature.
    SetFeatures(SetFeatures),
    /// Give up a command.
    Abort(Abort),
    /// Completes when something happens that the host should know. It has no
    /// fields; its completion is an [`AsyncEvent`](crate::event::AsyncEvent).
    AsynchronousEventRequest,
    /// Restart the keep alive timer. It has no fields.
    KeepAlive,
    /// Format a namespace.
    FormatNvm(FormatNvm),
}

impl AdminCommand {
    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if the opcode has no parsed form here.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        match AdminOpcode(entry.cdw0.opc()) {
            AdminOpcode::IDENTIFY => Identify::parse(entry).map(Self::Identify),
            AdminOpcode::GET_LOG_PAGE => GetLogPage::parse(entry).map(Self::GetLogPage),
            AdminOpcode::GET_FEATURES => GetFeatures::parse(entry).map(Self::GetFeatures),
            AdminOpcode::SET_FEATURES => SetFeatures::parse(entry).map(Self::SetFeatures),
            AdminOpcode::ABORT => Abort::parse(entry).map(Self::Abort),
            AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST => Ok(Self::AsynchronousEventRequest),
            AdminOpcode::KEEP_ALIVE => Ok(Self::KeepAlive),
            AdminOpcode::FORMAT_NVM => FormatNvm::parse(entry).map(Self::FormatNvm),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if a value has no place in it.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let bare = |opcode: AdminOpcode| Ok(SubmissionEntry::new(opcode.0));
        match self {
            Self::Identify(command) => command.to_entry(),
            Self::GetLogPage(command) => command.to_entry(),
            Self::GetFeatures(command) => command.to_entry(),
            Self::SetFeatures(command) => command.to_entry(),
            Self::Abort(command) => Ok(command.to_entry()),
            Self::AsynchronousEventRequest => bare(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST),
            Self::KeepAlive => bare(AdminOpcode::KEEP_ALIVE),
            Self::FormatNvm(command) => command.to_entry(),
        }
    }
}
