//! Reservation Register, Report, Acquire and Release (base specification 2.0,
//! sections 7.3 to 7.6).

use super::dwords::numd_z;
use super::{OutOfRange, expect_opcode};
use crate::Status;
use crate::queue::{IoOpcode, SubmissionEntry};
use crate::reservation::{
    AcquireAction, ChangePersistence, RegisterAction, ReleaseAction, ReservationType,
};
use zerocopy::little_endian::U32;

bits! {
    /// Dword 10 of Reservation Register.
    struct RegisterDword10(U32: u32) {
        /// Reservation register action (RREGA).
        [2:0] rrega / with_rrega: RegisterAction,
        /// Ignore existing key (IEKEY).
        [3:3] iekey / with_iekey: bool,
        /// Change persist through power loss state (CPTPL).
        [31:30] cptpl / with_cptpl: ChangePersistence,
    }
}

bits! {
    /// Dword 10 of Reservation Acquire.
    struct AcquireDword10(U32: u32) {
        /// Reservation acquire action (RACQA).
        [2:0] racqa / with_racqa: AcquireAction,
        /// Ignore existing key (IEKEY).
        [3:3] iekey / with_iekey: bool,
        /// Reservation type (RTYPE).
        [15:8] rtype / with_rtype: ReservationType,
    }
}

bits! {
    /// Dword 10 of Reservation Release.
    struct ReleaseDword10(U32: u32) {
        /// Reservation release action (RRELA).
        [2:0] rrela / with_rrela: ReleaseAction,
        /// Ignore existing key (IEKEY).
        [3:3] iekey / with_iekey: bool,
        /// Reservation type (RTYPE).
        [15:8] rtype / with_rtype: ReservationType,
    }
}

bits! {
    /// Dword 11 of Reservation Report.
    struct ReportDword11(U32: u32) {
        /// Extended data structure (EDS).
        [0:0] eds / with_eds: bool,
    }
}

/// Reservation Register: register, unregister or replace the key of a host. Its data are
/// [`RegisterData`](crate::reservation::RegisterData).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ReservationRegister {
    /// Namespace.
    pub nsid: u32,
    /// Reservation register action; 3 bits.
    pub rrega: RegisterAction,
    /// Ignore existing key: the current key need not be right.
    pub iekey: bool,
    /// Change persist through power loss state; 2 bits.
    pub cptpl: ChangePersistence,
}

impl ReservationRegister {
    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `rrega` exceeds 7, or `cptpl` 3.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        OutOfRange::check("rrega", self.rrega.0.into(), 0, 7)?;
        OutOfRange::check("cptpl", self.cptpl.0.into(), 0, 3)?;
        let dword10 = RegisterDword10::default()
            .with_rrega(self.rrega)
            .with_iekey(self.iekey)
            .with_cptpl(self.cptpl);
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            ..SubmissionEntry::new(IoOpcode::RESERVATION_REGISTER.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::RESERVATION_REGISTER.0)?;
        let dword10 = RegisterDword10::from_bits(entry.cdw10.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            rrega: dword10.rrega(),
            iekey: dword10.iekey(),
            cptpl: dword10.cptpl(),
        })
    }
}

/// Reservation Acquire: take a reservation, or preempt that of others. Its data are
/// [`AcquireData`](crate::reservation::AcquireData).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ReservationAcquire {
    /// Namespace.
    pub nsid: u32,
    /// Reservation acquire action; 3 bits.
    pub racqa: AcquireAction,
    /// Ignore existing key. Revision 1.3 and later refuse it.
    pub iekey: bool,
    /// Reservation type.
    pub rtype: ReservationType,
}

impl ReservationAcquire {
    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `racqa` exceeds 7.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        OutOfRange::check("racqa", self.racqa.0.into(), 0, 7)?;
        let dword10 = AcquireDword10::default()
            .with_racqa(self.racqa)
            .with_iekey(self.iekey)
            .with_rtype(self.rtype);
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            ..SubmissionEntry::new(IoOpcode::RESERVATION_ACQUIRE.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::RESERVATION_ACQUIRE.0)?;
        let dword10 = AcquireDword10::from_bits(entry.cdw10.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            racqa: dword10.racqa(),
            iekey: dword10.iekey(),
            rtype: dword10.rtype(),
        })
    }
}

/// Reservation Release: give a reservation back, or clear all. Its data are
/// [`ReleaseData`](crate::reservation::ReleaseData).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ReservationRelease {
    /// Namespace.
    pub nsid: u32,
    /// Reservation release action; 3 bits.
    pub rrela: ReleaseAction,
    /// Ignore existing key. Revision 1.3 and later refuse it.
    pub iekey: bool,
    /// Reservation type.
    pub rtype: ReservationType,
}

impl ReservationRelease {
    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `rrela` exceeds 7.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        OutOfRange::check("rrela", self.rrela.0.into(), 0, 7)?;
        let dword10 = ReleaseDword10::default()
            .with_rrela(self.rrela)
            .with_iekey(self.iekey)
            .with_rtype(self.rtype);
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            ..SubmissionEntry::new(IoOpcode::RESERVATION_RELEASE.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::RESERVATION_RELEASE.0)?;
        let dword10 = ReleaseDword10::from_bits(entry.cdw10.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            rrela: dword10.rrela(),
            iekey: dword10.iekey(),
            rtype: dword10.rtype(),
        })
    }
}

/// Reservation Report: who is registered, and who holds the reservation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ReservationReport {
    /// Namespace.
    pub nsid: u32,
    /// Length of the data buffer in dwords, 1 to 2^32.
    pub numd: u64,
    /// Extended data structure: 128-bit host identifiers.
    pub eds: bool,
}

impl ReservationReport {
    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `numd` is not one of 1 to 2^32.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let entry = SubmissionEntry {
            cdw10: numd_z(self.numd)?.into(),
            cdw11: ReportDword11::default().with_eds(self.eds).bits().into(),
            ..SubmissionEntry::new(IoOpcode::RESERVATION_REPORT.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::RESERVATION_REPORT.0)?;
        Ok(Self {
            nsid: entry.nsid.get(),
            numd: u64::from(entry.cdw10.get()) + 1,
            eds: ReportDword11::from_bits(entry.cdw11.get()).eds(),
        })
    }
}
