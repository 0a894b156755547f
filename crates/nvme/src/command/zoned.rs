//! Commands of the ZNS command set (1.1, section 3.4).

use super::dwords::{
    TransferDword12, TransferDword13, ZoneReceiveDword13, ZoneSendDword13, dtype, nlb_z, numd_z,
};
use super::{OutOfRange, Protection, expect_opcode};
use crate::Status;
use crate::queue::{IoOpcode, SubmissionEntry};
use crate::zns::{ReportFilter, ZoneReceiveAction, ZoneSendAction};

/// Zone Append: blocks from the data buffer to wherever the write pointer of a
/// zone is. The completion carries the LBA that was assigned.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneAppend {
    /// Namespace.
    pub nsid: u32,
    /// First block of the zone (ZSLBA).
    pub zslba: u64,
    /// Number of blocks, 1 to 65536.
    pub nlb: u32,
    /// Limited retry: give up early rather than try all means.
    pub lr: bool,
    /// Force unit access: durable before it completes.
    pub fua: bool,
    /// The controller adapts the reference tag to the LBA assigned (PIREMAP).
    pub piremap: bool,
    /// Directive type (DTYPE), 0 to 15: 0 none, 1 streams.
    pub dtype: u8,
    /// Directive specific (DSPEC): with streams, the stream.
    pub dspec: u16,
    /// End-to-end protection.
    pub protection: Protection,
}

impl ZoneAppend {
    /// Append `nlb` blocks to the zone at `zslba`, with no option set.
    #[must_use]
    pub fn new(nsid: u32, zslba: u64, nlb: u32) -> Self {
        Self {
            nsid,
            zslba,
            nlb,
            ..Self::default()
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `nlb` is not one of 1 to 65536, or `dtype` exceeds 15.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let entry = SubmissionEntry::new(IoOpcode::ZONE_APPEND.0)
            .with_nsid(self.nsid)
            .with_slba(self.zslba);
        let dword12 = TransferDword12::default()
            .with_nlb_z(nlb_z(self.nlb)?)
            .with_dtype(dtype(self.dtype)?)
            .with_bit_25(self.piremap)
            .with_lr(self.lr)
            .with_fua(self.fua);
        let (entry, dword12) = self.protection.store(entry, dword12);
        let dword13 = TransferDword13::default().with_dspec(self.dspec);
        Ok(SubmissionEntry {
            cdw12: dword12.bits().into(),
            cdw13: dword13.bits().into(),
            ..entry
        })
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::ZONE_APPEND.0)?;
        let dword12 = TransferDword12::from_bits(entry.cdw12.get());
        let dword13 = TransferDword13::from_bits(entry.cdw13.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            zslba: entry.slba(),
            nlb: u32::from(dword12.nlb_z()) + 1,
            lr: dword12.lr(),
            fua: dword12.fua(),
            piremap: dword12.bit_25(),
            dtype: dword12.dtype(),
            dspec: dword13.dspec(),
            protection: Protection::load(entry),
        })
    }
}

/// Zone Management Send: change the state of a zone, or of all zones.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ZoneManagementSend {
    /// Namespace.
    pub nsid: u32,
    /// First block of the zone; not looked at if `select_all`. With
    /// [`ZoneSendAction::ZRWA_FLUSH`], the last block to commit.
    pub slba: u64,
    /// What to do.
    pub zsa: ZoneSendAction,
    /// Every zone in a state that the action selects.
    pub select_all: bool,
    /// Zone send action specific option (ZSASO). With [`ZoneSendAction::OPEN`]
    /// and [`ZoneSendAction::SET_DESCRIPTOR_EXTENSION`]: give the zone a random
    /// write area (ZRWAA). Reserved with other actions.
    pub zsaso: bool,
}

impl ZoneManagementSend {
    /// `zsa` for the zone at `slba`, with no option set.
    #[must_use]
    pub fn new(nsid: u32, slba: u64, zsa: ZoneSendAction) -> Self {
        Self {
            nsid,
            slba,
            zsa,
            select_all: false,
            zsaso: false,
        }
    }

    /// The entry of the command.
    #[must_use]
    pub fn to_entry(&self) -> SubmissionEntry {
        let dword13 = ZoneSendDword13::default()
            .with_zsa(self.zsa)
            .with_select_all(self.select_all)
            .with_zsaso(self.zsaso);
        SubmissionEntry {
            cdw13: dword13.bits().into(),
            ..SubmissionEntry::new(IoOpcode::ZONE_MANAGEMENT_SEND.0)
        }
        .with_nsid(self.nsid)
        .with_slba(self.slba)
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::ZONE_MANAGEMENT_SEND.0)?;
        let dword13 = ZoneSendDword13::from_bits(entry.cdw13.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            slba: entry.slba(),
            zsa: dword13.zsa(),
            select_all: dword13.select_all(),
            zsaso: dword13.zsaso(),
        })
    }
}

/// Zone Management Receive: a zone report into the data buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ZoneManagementReceive {
    /// Namespace.
    pub nsid: u32,
    /// The report starts at the zone that contains this block.
    pub slba: u64,
    /// Length of the data buffer in dwords, 1 to 2^32.
    pub numd: u64,
    /// With or without descriptor extensions.
    pub zra: ZoneReceiveAction,
    /// Which zones.
    pub filter: ReportFilter,
    /// Count only the zones that fit into the buffer.
    pub partial: bool,
}

impl ZoneManagementReceive {
    /// A report of all zones from `slba` into a buffer of `numd` dwords.
    #[must_use]
    pub fn new(nsid: u32, slba: u64, numd: u64) -> Self {
        Self {
            nsid,
            slba,
            numd,
            zra: ZoneReceiveAction::REPORT_ZONES,
            filter: ReportFilter::ALL,
            partial: false,
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `numd` is not one of 1 to 2^32.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let dword13 = ZoneReceiveDword13::default()
            .with_zra(self.zra)
            .with_filter(self.filter)
            .with_partial(self.partial);
        let entry = SubmissionEntry {
            cdw12: numd_z(self.numd)?.into(),
            cdw13: dword13.bits().into(),
            ..SubmissionEntry::new(IoOpcode::ZONE_MANAGEMENT_RECEIVE.0)
        };
        Ok(entry.with_nsid(self.nsid).with_slba(self.slba))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::ZONE_MANAGEMENT_RECEIVE.0)?;
        let dword13 = ZoneReceiveDword13::from_bits(entry.cdw13.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            slba: entry.slba(),
            numd: u64::from(entry.cdw12.get()) + 1,
            zra: dword13.zra(),
            filter: dword13.filter(),
            partial: dword13.partial(),
        })
    }
}
