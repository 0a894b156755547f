//! Command dwords that several commands share, and those of Identify and of zone
//! management, bit by bit.

use super::OutOfRange;
use crate::identify::{Cns, CommandSet};
use crate::zns::{ReportFilter, ZoneReceiveAction, ZoneSendAction};
use zerocopy::little_endian::U32;

bits! {
    /// Dword 12 of commands that name blocks. Copy has other fields in place of
    /// NLB.
    pub(super) struct TransferDword12(U32: u32) {
        /// Number of logical blocks (NLB), zero based.
        [15:0] nlb_z / with_nlb_z: u16,
        /// Directive type (DTYPE). Reserved in Read.
        [23:20] dtype / with_dtype: u8,
        /// Storage tag check (STC).
        [24:24] stc / with_stc: bool,
        /// Zone Append: protection information remap (PIREMAP). Write Zeroes:
        /// deallocate (DEAC). Copy: storage tag check read (STCR).
        [25:25] bit_25 / with_bit_25: bool,
        /// PRINFO: check the reference tag (PRCHK bit 0).
        [26:26] check_reference_tag / with_check_reference_tag: bool,
        /// PRINFO: check the application tag (PRCHK bit 1).
        [27:27] check_application_tag / with_check_application_tag: bool,
        /// PRINFO: check the guard (PRCHK bit 2).
        [28:28] check_guard / with_check_guard: bool,
        /// PRINFO: protection information action (PRACT).
        [29:29] pract / with_pract: bool,
        /// Force unit access (FUA).
        [30:30] fua / with_fua: bool,
        /// Limited retry (LR).
        [31:31] lr / with_lr: bool,
    }
}

bits! {
    /// Dword 13 of Read, Write, Zone Append and Copy.
    pub(super) struct TransferDword13(U32: u32) {
        /// Dataset management hints (DSM). Reserved in Zone Append and Copy.
        [7:0] dsm / with_dsm: u8,
        /// Directive specific (DSPEC). Reserved in Read.
        [31:16] dspec / with_dspec: u16,
    }
}

bits! {
    /// Dword 15 of commands that name blocks.
    pub(super) struct TransferDword15(U32: u32) {
        /// Logical block application tag (LBAT), expected (ELBAT) in Read.
        [15:0] lbat / with_lbat: u16,
        /// Its mask (LBATM, ELBATM).
        [31:16] lbatm / with_lbatm: u16,
    }
}

bits! {
    /// What the host knows about the blocks of a Read or a Write: the DSM field.
    pub struct DatasetHints(u8: u8) {
        /// Access frequency: 0 says nothing; the NVM command set lists the others.
        [3:0] access_frequency / with_access_frequency: u8,
        /// Access latency: 0 none, 1 idle, 2 normal, 3 low.
        [5:4] access_latency / with_access_latency: u8,
        /// Part of a sequential run of commands.
        [6:6] sequential_request / with_sequential_request: bool,
        /// The data does not compress.
        [7:7] incompressible / with_incompressible: bool,
    }
}

bits! {
    /// Dword 13 of Zone Management Send.
    pub(super) struct ZoneSendDword13(U32: u32) {
        /// Zone send action (ZSA).
        [7:0] zsa / with_zsa: ZoneSendAction,
        /// Select all zones.
        [8:8] select_all / with_select_all: bool,
        /// Zone send action specific option (ZSASO).
        [9:9] zsaso / with_zsaso: bool,
    }
}

bits! {
    /// Dword 13 of Zone Management Receive.
    pub(super) struct ZoneReceiveDword13(U32: u32) {
        /// Zone receive action (ZRA).
        [7:0] zra / with_zra: ZoneReceiveAction,
        /// Zone receive action specific field: the reporting option.
        [15:8] filter / with_filter: ReportFilter,
        /// Partial report.
        [16:16] partial / with_partial: bool,
    }
}

bits! {
    /// Dword 10 of Identify.
    pub(super) struct IdentifyDword10(U32: u32) {
        /// Controller or namespace structure (CNS).
        [7:0] cns / with_cns: Cns,
        /// Controller identifier (CNTID).
        [31:16] cntid / with_cntid: u16,
    }
}

bits! {
    /// Dword 11 of Identify.
    pub(super) struct IdentifyDword11(U32: u32) {
        /// CNS specific identifier.
        [15:0] cns_specific_id / with_cns_specific_id: u16,
        /// Command set identifier (CSI).
        [31:24] csi / with_csi: CommandSet,
    }
}

bits! {
    /// Dword 14 of Identify, Get Features and Set Features.
    pub(super) struct UuidDword14(U32: u32) {
        /// UUID index.
        [6:0] uuid_index / with_uuid_index: u8,
    }
}

impl UuidDword14 {
    /// The dword with index `uuid_index`.
    pub(super) fn of(uuid_index: u8) -> Result<Self, OutOfRange> {
        OutOfRange::check("uuid_index", uuid_index.into(), 0, 0x7f)?;
        Ok(Self::default().with_uuid_index(uuid_index))
    }
}

/// The zero-based NLB field for `nlb` blocks.
pub(super) fn nlb_z(nlb: u32) -> Result<u16, OutOfRange> {
    let nlb = OutOfRange::check("nlb", nlb.into(), 1, 1 << 16)?;
    Ok((nlb - 1) as u16)
}

/// The zero-based NUMD field for `numd` dwords.
pub(super) fn numd_z(numd: u64) -> Result<u32, OutOfRange> {
    let numd = OutOfRange::check("numd", numd, 1, 1 << 32)?;
    Ok((numd - 1) as u32)
}

/// The DTYPE field, 4 bits.
pub(super) fn dtype(dtype: u8) -> Result<u8, OutOfRange> {
    OutOfRange::check("dtype", dtype.into(), 0, 0xf)?;
    Ok(dtype)
}
