//! Identify (base specification 2.0, section 5.17).

use super::dwords::{IdentifyDword10, IdentifyDword11, IdentifyDword14};
use super::{OutOfRange, expect_opcode};
use crate::Status;
use crate::identify::{Cns, CommandSet};
use crate::queue::{AdminOpcode, SubmissionEntry};

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
        OutOfRange::check("uuid_index", self.uuid_index.into(), 0, 0x7f)?;
        let dword10 = IdentifyDword10::default()
            .with_cns(self.cns)
            .with_cntid(self.cntid);
        let dword11 = IdentifyDword11::default()
            .with_cns_specific_id(self.cns_specific_id)
            .with_csi(self.csi);
        let dword14 = IdentifyDword14::default().with_uuid_index(self.uuid_index);
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
        let dword14 = IdentifyDword14::from_bits(entry.cdw14.get());
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
