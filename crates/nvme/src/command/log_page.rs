//! Get Log Page (base specification 2.0, section 5.16).

use super::dwords::numd_z;
use super::{OutOfRange, expect_opcode};
use crate::Status;
use crate::identify::CommandSet;
use crate::log::LogPageId;
use crate::queue::{AdminOpcode, SubmissionEntry};
use zerocopy::little_endian::U32;

bits! {
    /// Dword 10 of Get Log Page.
    struct LogDword10(U32: u32) {
        /// Log page identifier (LID).
        [7:0] lid / with_lid: LogPageId,
        /// Log specific parameter (LSP).
        [14:8] lsp / with_lsp: u8,
        /// Retain asynchronous event (RAE).
        [15:15] rae / with_rae: bool,
        /// Number of dwords lower (NUMDL), zero based with NUMDU.
        [31:16] numdl / with_numdl: u16,
    }
}

bits! {
    /// Dword 11 of Get Log Page.
    struct LogDword11(U32: u32) {
        /// Number of dwords upper (NUMDU).
        [15:0] numdu / with_numdu: u16,
        /// Log specific identifier (LSI).
        [31:16] lsi / with_lsi: u16,
    }
}

bits! {
    /// Dword 14 of Get Log Page.
    struct LogDword14(U32: u32) {
        /// UUID index.
        [6:0] uuid_index / with_uuid_index: u8,
        /// Offset type (OT).
        [23:23] ot / with_ot: bool,
        /// Command set identifier (CSI).
        [31:24] csi / with_csi: CommandSet,
    }
}

/// Get Log Page: a part of a log page into the data buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GetLogPage {
    /// Namespace, for logs of one; FFFFFFFFh or 0 for those of the controller.
    pub nsid: u32,
    /// Which log page.
    pub lid: LogPageId,
    /// Log specific parameter (LSP), 0 to 127.
    pub lsp: u8,
    /// Retain asynchronous event (RAE): reading does not clear the event.
    pub rae: bool,
    /// Length of the data buffer in dwords, 1 to 2^32.
    pub numd: u64,
    /// Log specific identifier (LSI).
    pub lsi: u16,
    /// Log page offset (LPO) in bytes, or an index if `ot`.
    pub lpo: u64,
    /// Offset type (OT): `lpo` is an index into the entries of the page.
    pub ot: bool,
    /// Command set, for log pages that are specific to one.
    pub csi: CommandSet,
    /// UUID index, 0 to 127; 0 is none.
    pub uuid_index: u8,
}

impl GetLogPage {
    /// The first `numd` dwords of page `lid`, which clears its event.
    #[must_use]
    pub fn new(nsid: u32, lid: LogPageId, numd: u64) -> Self {
        Self {
            nsid,
            lid,
            lsp: 0,
            rae: false,
            numd,
            lsi: 0,
            lpo: 0,
            ot: false,
            csi: CommandSet::NVM,
            uuid_index: 0,
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `numd` is not one of 1 to 2^32, or `lsp` or
    /// `uuid_index` exceeds 127.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        OutOfRange::check("lsp", self.lsp.into(), 0, 0x7f)?;
        OutOfRange::check("uuid_index", self.uuid_index.into(), 0, 0x7f)?;
        let numd_z = numd_z(self.numd)?;
        let dword10 = LogDword10::default()
            .with_lid(self.lid)
            .with_lsp(self.lsp)
            .with_rae(self.rae)
            .with_numdl((numd_z & 0xffff) as u16);
        let dword11 = LogDword11::default()
            .with_numdu((numd_z >> 16) as u16)
            .with_lsi(self.lsi);
        let dword14 = LogDword14::default()
            .with_uuid_index(self.uuid_index)
            .with_ot(self.ot)
            .with_csi(self.csi);
        let [low, high]: [U32; 2] = zerocopy::transmute!(self.lpo.to_le_bytes());
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            cdw11: dword11.bits().into(),
            cdw12: low,
            cdw13: high,
            cdw14: dword14.bits().into(),
            ..SubmissionEntry::new(AdminOpcode::GET_LOG_PAGE.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, AdminOpcode::GET_LOG_PAGE.0)?;
        let dword10 = LogDword10::from_bits(entry.cdw10.get());
        let dword11 = LogDword11::from_bits(entry.cdw11.get());
        let dword14 = LogDword14::from_bits(entry.cdw14.get());
        let numd_z = u64::from(dword11.numdu()) << 16 | u64::from(dword10.numdl());
        let lpo = [entry.cdw12, entry.cdw13];
        Ok(Self {
            nsid: entry.nsid.get(),
            lid: dword10.lid(),
            lsp: dword10.lsp(),
            rae: dword10.rae(),
            numd: numd_z + 1,
            lsi: dword11.lsi(),
            lpo: u64::from_le_bytes(zerocopy::transmute!(lpo)),
            ot: dword14.ot(),
            csi: dword14.csi(),
            uuid_index: dword14.uuid_index(),
        })
    }
}
