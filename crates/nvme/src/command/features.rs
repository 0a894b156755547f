//! Get Features and Set Features (base specification 2.0, sections 5.15 and
//! 5.27).

use super::dwords::UuidDword14;
use super::{OutOfRange, expect_opcode};
use crate::Status;
use crate::feature::{FeatureId, FeatureSelect};
use crate::queue::{AdminOpcode, SubmissionEntry};
use zerocopy::little_endian::U32;

bits! {
    /// Dword 10 of Get Features and Set Features.
    struct FeatureDword10(U32: u32) {
        /// Feature identifier (FID).
        [7:0] fid / with_fid: FeatureId,
        /// Select (SEL). Get Features only.
        [10:8] sel / with_sel: FeatureSelect,
        /// Save (SV). Set Features only.
        [31:31] sv / with_sv: bool,
    }
}

/// Get Features: the value of a feature, in the completion or the data buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GetFeatures {
    /// Namespace, for features that have a value for each.
    pub nsid: u32,
    /// Which feature.
    pub fid: FeatureId,
    /// Which of its values; 3 bits.
    pub sel: FeatureSelect,
    /// Dword 11, for features that select by it.
    pub dword11: u32,
    /// UUID index, 0 to 127; 0 is none.
    pub uuid_index: u8,
}

impl GetFeatures {
    /// The value of `fid` in effect.
    #[must_use]
    pub fn new(nsid: u32, fid: FeatureId) -> Self {
        Self {
            nsid,
            fid,
            sel: FeatureSelect::CURRENT,
            dword11: 0,
            uuid_index: 0,
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `sel` exceeds 7 or `uuid_index` 127.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        OutOfRange::check("sel", self.sel.0.into(), 0, 7)?;
        let dword10 = FeatureDword10::default()
            .with_fid(self.fid)
            .with_sel(self.sel);
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            cdw11: self.dword11.into(),
            cdw14: UuidDword14::of(self.uuid_index)?.bits().into(),
            ..SubmissionEntry::new(AdminOpcode::GET_FEATURES.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, AdminOpcode::GET_FEATURES.0)?;
        let dword10 = FeatureDword10::from_bits(entry.cdw10.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            fid: dword10.fid(),
            sel: dword10.sel(),
            dword11: entry.cdw11.get(),
            uuid_index: UuidDword14::from_bits(entry.cdw14.get()).uuid_index(),
        })
    }
}

/// Set Features: a new value of a feature, from dword 11 or the data buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SetFeatures {
    /// Namespace, for features that have a value for each.
    pub nsid: u32,
    /// Which feature.
    pub fid: FeatureId,
    /// Save (SV): the value survives power loss and reset.
    pub sv: bool,
    /// The value, as [`feature`](crate::feature) lays it out.
    pub dword11: u32,
    /// Dword 12, for features that have more to say.
    pub dword12: u32,
    /// UUID index, 0 to 127; 0 is none.
    pub uuid_index: u8,
}

impl SetFeatures {
    /// `dword11` for feature `fid`.
    #[must_use]
    pub fn new(nsid: u32, fid: FeatureId, dword11: u32) -> Self {
        Self {
            nsid,
            fid,
            sv: false,
            dword11,
            dword12: 0,
            uuid_index: 0,
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `uuid_index` exceeds 127.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let dword10 = FeatureDword10::default()
            .with_fid(self.fid)
            .with_sv(self.sv);
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            cdw11: self.dword11.into(),
            cdw12: self.dword12.into(),
            cdw14: UuidDword14::of(self.uuid_index)?.bits().into(),
            ..SubmissionEntry::new(AdminOpcode::SET_FEATURES.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, AdminOpcode::SET_FEATURES.0)?;
        let dword10 = FeatureDword10::from_bits(entry.cdw10.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            fid: dword10.fid(),
            sv: dword10.sv(),
            dword11: entry.cdw11.get(),
            dword12: entry.cdw12.get(),
            uuid_index: UuidDword14::from_bits(entry.cdw14.get()).uuid_index(),
        })
    }
}
