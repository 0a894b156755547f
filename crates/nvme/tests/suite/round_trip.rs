//! What a command says survives its entry, for every command and every value.

use proptest::prelude::*;
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    Compare, CopyCommand, CopyReadProtection, DatasetHints, DatasetManagement, Flush, Identify,
    IoCommand, IoManagementReceive, IoManagementSend, Protection, Read, ReservationAcquire,
    ReservationRegister, ReservationRelease, ReservationReport, Verify, Write, WriteZeroes,
    ZoneAppend, ZoneManagementReceive, ZoneManagementSend,
};
use zonelab_nvme::identify::{Cns, CommandSet};
use zonelab_nvme::placement::{ReceiveOperation, SendOperation};
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};
use zonelab_nvme::reservation::{
    AcquireAction, ChangePersistence, RegisterAction, ReleaseAction, ReservationType,
};
use zonelab_nvme::zerocopy::{FromBytes, IntoBytes};
use zonelab_nvme::zns::{ReportFilter, ZoneReceiveAction, ZoneSendAction};

/// Any number, and its edges often.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        Just(u64::from(u32::MAX)),
        any::<u64>()
    ]
}

/// A block count that an entry holds.
fn nlb() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1), Just(65_536), 1..=65_536_u32]
}

prop_compose! {
    fn protection()(
        flags in any::<[bool; 5]>(),
        ilbrt in any::<u32>(),
        lbat in any::<u16>(),
        lbatm in any::<u16>(),
    ) -> Protection {
        let [pract, check_guard, check_application_tag, check_reference_tag, stc] = flags;
        Protection {
            pract, check_guard, check_application_tag, check_reference_tag, stc,
            ilbrt, lbat, lbatm,
        }
    }
}

prop_compose! {
    fn read()(
        nsid in any::<u32>(),
        slba in number(),
        nlb in nlb(),
        (lr, fua) in any::<(bool, bool)>(),
        dsm in any::<u8>().prop_map(DatasetHints::from_bits),
        protection in protection(),
    ) -> Read {
        Read { nsid, slba, nlb, lr, fua, dsm, protection }
    }
}

prop_compose! {
    fn write()(
        read in read(),
        dtype in 0..=15_u8,
        dspec in any::<u16>(),
    ) -> Write {
        let Read { nsid, slba, nlb, lr, fua, dsm, protection } = read;
        Write { nsid, slba, nlb, lr, fua, dsm, dtype, dspec, protection }
    }
}

prop_compose! {
    fn append()(write in write(), piremap in any::<bool>()) -> ZoneAppend {
        let Write { nsid, slba, nlb, lr, fua, dtype, dspec, protection, .. } = write;
        ZoneAppend { nsid, zslba: slba, nlb, lr, fua, piremap, dtype, dspec, protection }
    }
}

prop_compose! {
    fn write_zeroes()(write in write(), deac in any::<bool>()) -> WriteZeroes {
        let Write { nsid, slba, nlb, lr, fua, protection, .. } = write;
        WriteZeroes { nsid, slba, nlb, deac, lr, fua, protection }
    }
}

prop_compose! {
    fn dataset_management()(
        nsid in any::<u32>(),
        nr in 1..=256_u16,
        (idr, idw, ad) in any::<(bool, bool, bool)>(),
    ) -> DatasetManagement {
        DatasetManagement { nsid, nr, idr, idw, ad }
    }
}

prop_compose! {
    fn copy()(
        write in write(),
        nr in 1..=256_u16,
        desfmt in 0..=15_u8,
        flags in any::<[bool; 5]>(),
    ) -> CopyCommand {
        let [pract, check_guard, check_application_tag, check_reference_tag, stc] = flags;
        let read_protection = CopyReadProtection {
            pract, check_guard, check_application_tag, check_reference_tag, stc,
        };
        let Write { nsid, slba, lr, fua, dtype, dspec, protection, .. } = write;
        CopyCommand {
            nsid, sdlba: slba, nr, desfmt, lr, fua, dtype, dspec, read_protection, protection,
        }
    }
}

prop_compose! {
    fn zone_send()(
        nsid in any::<u32>(),
        slba in number(),
        zsa in any::<u8>().prop_map(ZoneSendAction),
        (select_all, zsaso) in any::<(bool, bool)>(),
    ) -> ZoneManagementSend {
        ZoneManagementSend { nsid, slba, zsa, select_all, zsaso }
    }
}

prop_compose! {
    fn zone_receive()(
        nsid in any::<u32>(),
        slba in number(),
        numd in prop_oneof![Just(1), Just(1_u64 << 32), 1..=1_u64 << 32],
        zra in any::<u8>().prop_map(ZoneReceiveAction),
        filter in any::<u8>().prop_map(ReportFilter),
        partial in any::<bool>(),
    ) -> ZoneManagementReceive {
        ZoneManagementReceive { nsid, slba, numd, zra, filter, partial }
    }
}

prop_compose! {
    fn io_receive()(
        nsid in any::<u32>(),
        mo in any::<u8>().prop_map(ReceiveOperation),
        mos in any::<u16>(),
        numd in prop_oneof![Just(1), Just(1_u64 << 32), 1..=1_u64 << 32],
    ) -> IoManagementReceive {
        IoManagementReceive { nsid, mo, mos, numd }
    }
}

prop_compose! {
    fn io_send()(
        nsid in any::<u32>(),
        mo in any::<u8>().prop_map(SendOperation),
        mos in any::<u16>(),
    ) -> IoManagementSend {
        IoManagementSend { nsid, mo, mos }
    }
}

/// A reservation command.
fn reservation() -> impl Strategy<Value = IoCommand> {
    let fields = (
        any::<u32>(),
        0..8_u8,
        any::<bool>(),
        any::<u8>(),
        1..=1_u64 << 32,
    );
    (0..4, fields).prop_map(|(which, (nsid, action, iekey, byte, numd))| {
        let rtype = ReservationType(byte);
        match which {
            0 => IoCommand::ReservationRegister(ReservationRegister {
                nsid,
                rrega: RegisterAction(action),
                iekey,
                cptpl: ChangePersistence(byte % 4),
            }),
            1 => IoCommand::ReservationAcquire(ReservationAcquire {
                nsid,
                racqa: AcquireAction(action),
                iekey,
                rtype,
            }),
            2 => IoCommand::ReservationRelease(ReservationRelease {
                nsid,
                rrela: ReleaseAction(action),
                iekey,
                rtype,
            }),
            _ => IoCommand::ReservationReport(ReservationReport {
                nsid,
                numd,
                eds: iekey,
            }),
        }
    })
}

prop_compose! {
    fn identify()(
        nsid in any::<u32>(),
        cns in any::<u8>().prop_map(Cns),
        cntid in any::<u16>(),
        csi in any::<u8>().prop_map(CommandSet),
        cns_specific_id in any::<u16>(),
        uuid_index in 0..=127_u8,
    ) -> Identify {
        Identify { nsid, cns, cntid, csi, cns_specific_id, uuid_index }
    }
}

/// The entry as a controller gets it: through bytes, with identifier and data
/// pointer set, which must not disturb the command.
fn travel(entry: SubmissionEntry) -> SubmissionEntry {
    let sent = entry.with_cid(0xffff).with_prps(u64::MAX, u64::MAX);
    SubmissionEntry::read_from_bytes(sent.as_bytes()).expect("an entry has the length of an entry")
}

proptest! {
    #[test]
    fn flush_survives(nsid in any::<u32>()) {
        let command = Flush { nsid };
        prop_assert_eq!(Flush::parse(&travel(command.to_entry())), Ok(command));
    }

    #[test]
    fn read_survives(command in read()) {
        prop_assert_eq!(Read::parse(&travel(command.to_entry().unwrap())), Ok(command));
    }

    #[test]
    fn write_survives(command in write()) {
        prop_assert_eq!(Write::parse(&travel(command.to_entry().unwrap())), Ok(command));
    }

    #[test]
    fn zone_append_survives(command in append()) {
        prop_assert_eq!(ZoneAppend::parse(&travel(command.to_entry().unwrap())), Ok(command));
    }

    #[test]
    fn zone_management_send_survives(command in zone_send()) {
        prop_assert_eq!(ZoneManagementSend::parse(&travel(command.to_entry())), Ok(command));
    }

    #[test]
    fn zone_management_receive_survives(command in zone_receive()) {
        let entry = travel(command.to_entry().unwrap());
        prop_assert_eq!(ZoneManagementReceive::parse(&entry), Ok(command));
    }

    #[test]
    fn identify_survives(command in identify()) {
        prop_assert_eq!(Identify::parse(&travel(command.to_entry().unwrap())), Ok(command));
    }

    /// The enum finds the command by its opcode, with the same result.
    #[test]
    fn an_io_command_survives(command in prop_oneof![
        any::<u32>().prop_map(|nsid| IoCommand::Flush(Flush { nsid })),
        read().prop_map(IoCommand::Read),
        write().prop_map(IoCommand::Write),
        read().prop_map(|Read { nsid, slba, nlb, lr, fua, protection, .. }| {
            IoCommand::Compare(Compare { nsid, slba, nlb, lr, fua, protection })
        }),
        read().prop_map(|Read { nsid, slba, nlb, lr, fua, protection, .. }| {
            IoCommand::Verify(Verify { nsid, slba, nlb, lr, fua, protection })
        }),
        write_zeroes().prop_map(IoCommand::WriteZeroes),
        dataset_management().prop_map(IoCommand::DatasetManagement),
        copy().prop_map(IoCommand::Copy),
        append().prop_map(IoCommand::ZoneAppend),
        zone_send().prop_map(IoCommand::ZoneManagementSend),
        zone_receive().prop_map(IoCommand::ZoneManagementReceive),
        io_receive().prop_map(IoCommand::IoManagementReceive),
        io_send().prop_map(IoCommand::IoManagementSend),
        reservation(),
    ]) {
        let entry = travel(command.to_entry().unwrap());
        prop_assert_eq!(IoCommand::parse(&entry), Ok(command));
        prop_assert_eq!(command.nsid(), entry.nsid.get());
    }

    /// Whatever a peer sends is a command or an unknown opcode, never a panic;
    /// and what was understood can be said again with the same meaning.
    #[test]
    fn any_entry_is_understood_or_refused(bytes in prop::array::uniform32(any::<[u8; 2]>())) {
        let entry = SubmissionEntry::read_from_bytes(bytes.as_flattened()).unwrap();
        for opcode in 0..=u8::MAX {
            let entry = SubmissionEntry { cdw0: entry.cdw0.with_opc(opcode), ..entry };
            match IoCommand::parse(&entry) {
                Ok(command) => {
                    let again = command.to_entry().unwrap();
                    prop_assert_eq!(IoCommand::parse(&again), Ok(command));
                }
                Err(status) => prop_assert_eq!(status, Status::INVALID_OPCODE),
            }
        }
    }

    /// A status of 11 bits survives the field of a completion, beside the others.
    #[test]
    fn a_status_survives(code in 0..1_u16 << 11, cid in any::<u16>(), flags in any::<[bool; 3]>()) {
        let [dnr, m, p] = flags;
        let mut entry = CompletionEntry::new(cid, Status(code)).with_dnr(dnr);
        entry.status = entry.status.with_m(m).with_p(p);
        prop_assert_eq!(entry.status.status(), Status(code));
        prop_assert_eq!((entry.status.dnr(), entry.status.m(), entry.status.p()), (dnr, m, p));
        prop_assert_eq!(entry.status.may_retry(), code != 0 && !dnr);
    }
}
