//! Commands of the NVM command set beyond Read and Write, and the ranges that go
//! with them, byte by byte.

use zonelab_nvme::command::{
    Compare, CopyCommand, CopyRange, CopyReadProtection, DatasetManagement, DatasetRange,
    IoCommand, Protection, RangeContext, Verify, WriteZeroes,
};
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::zerocopy::{FromBytes, IntoBytes};

const ZERO: [u8; 4] = [0; 4];

/// An entry with namespace 1, SLBA 8 and these dwords 12 to 15.
fn of_blocks(opcode: u8, dwords: [[u8; 4]; 4]) -> SubmissionEntry {
    let mut bytes = [0; 64];
    (bytes[0], bytes[4], bytes[40]) = (opcode, 1, 8);
    bytes[48..].copy_from_slice(dwords.as_flattened());
    SubmissionEntry::read_from_bytes(&bytes).expect("64 bytes are an entry")
}

#[test]
fn compare_and_verify() {
    // NLB 16, guard and reference tag, FUA and LR.
    let dwords = [[0x0f, 0, 0, 0xd4], ZERO, [0x78, 0x56, 0x34, 0x12], ZERO];
    let protection = Protection {
        check_guard: true,
        check_reference_tag: true,
        ilbrt: 0x1234_5678,
        ..Protection::default()
    };
    let compare = Compare {
        lr: true,
        fua: true,
        protection,
        ..Compare::new(1, 8, 16)
    };
    let golden = of_blocks(0x05, dwords);
    assert_eq!(compare.to_entry(), Ok(golden));
    assert_eq!(IoCommand::parse(&golden), Ok(IoCommand::Compare(compare)));
    let verify = Verify {
        lr: true,
        fua: true,
        protection,
        ..Verify::new(1, 8, 16)
    };
    let golden = of_blocks(0x0c, dwords);
    assert_eq!(verify.to_entry(), Ok(golden));
    assert_eq!(IoCommand::parse(&golden), Ok(IoCommand::Verify(verify)));
}

#[test]
fn write_zeroes_that_deallocates() {
    // NLB 65536, DEAC in bit 25, FUA.
    let tags = [0x34, 0x12, 0x78, 0x56];
    let golden = of_blocks(0x08, [[0xff, 0xff, 0, 0x42], ZERO, ZERO, tags]);
    let zeroes = WriteZeroes {
        deac: true,
        fua: true,
        protection: Protection {
            lbat: 0x1234,
            lbatm: 0x5678,
            ..Protection::default()
        },
        ..WriteZeroes::new(1, 8, 65_536)
    };
    assert_eq!(zeroes.to_entry(), Ok(golden));
    assert_eq!(
        IoCommand::parse(&golden),
        Ok(IoCommand::WriteZeroes(zeroes))
    );
}

#[test]
fn dataset_management_and_its_ranges() {
    let mut golden = SubmissionEntry::new(0x09).with_nsid(1);
    golden.cdw10 = 255.into(); // 256 ranges
    golden.cdw11 = 0x04.into(); // AD
    let deallocate = DatasetManagement::deallocate(1, 256);
    assert_eq!(deallocate.to_entry(), Ok(golden));
    assert_eq!(
        IoCommand::parse(&golden),
        Ok(IoCommand::DatasetManagement(deallocate))
    );
    let hints = DatasetManagement {
        idr: true,
        idw: true,
        ad: false,
        ..deallocate
    };
    assert_eq!(hints.to_entry().unwrap().cdw11.get(), 0x03);
    assert_eq!(
        DatasetManagement::deallocate(1, 0)
            .to_entry()
            .unwrap_err()
            .field,
        "nr"
    );

    let range = DatasetRange {
        cattr: RangeContext::default()
            .with_af(3)
            .with_al(2)
            .with_sw(true)
            .with_access_size(8),
        nlb: 0x1_0000.into(),
        slba: 0x5_0008_0000.into(),
    };
    let golden = [
        0x23, 0x02, 0x00, 0x08, // context attributes
        0x00, 0x00, 0x01, 0x00, // blocks, not zero based
        0x00, 0x00, 0x08, 0x00, 0x05, 0x00, 0x00, 0x00,
    ];
    assert_eq!(range.as_bytes(), golden);
}

#[test]
fn copy_and_its_ranges() {
    // NR 3, format 1, PRINFOR guard; DTYPE 1; STCW, STCR; PRINFOW PRACT; LR.
    let dword12 = [0x02, 0x41, 0x10, 0xa3];
    let golden = of_blocks(0x19, [dword12, [0, 0, 0x02, 0x01], [1, 0, 0, 0], ZERO]);
    let copy = CopyCommand {
        desfmt: 1,
        lr: true,
        dtype: 1,
        dspec: 0x102,
        read_protection: CopyReadProtection {
            check_guard: true,
            stc: true,
            ..CopyReadProtection::default()
        },
        protection: Protection {
            pract: true,
            stc: true,
            ilbrt: 1,
            ..Protection::default()
        },
        ..CopyCommand::new(1, 8, 3)
    };
    assert_eq!(copy.to_entry(), Ok(golden));
    assert_eq!(IoCommand::parse(&golden), Ok(IoCommand::Copy(copy)));
    let odd = CopyCommand { desfmt: 16, ..copy };
    assert_eq!(odd.to_entry().unwrap_err().field, "desfmt");

    let mut golden = [0_u8; 32];
    golden[8..16].copy_from_slice(&[0, 0, 8, 0, 5, 0, 0, 0]); // SLBA
    golden[16..18].copy_from_slice(&[0x1f, 0]); // 32 blocks
    golden[24..28].copy_from_slice(&[0xdd, 0xcc, 0xbb, 0xaa]); // EILBRT
    golden[28..32].copy_from_slice(&[0x34, 0x12, 0x78, 0x56]); // ELBAT, ELBATM
    let range = CopyRange {
        slba: 0x5_0008_0000.into(),
        nlb_z: 31.into(),
        eilbrt: 0xaabb_ccdd.into(),
        elbat: 0x1234.into(),
        elbatm: 0x5678.into(),
        ..CopyRange::default()
    };
    assert_eq!(range.as_bytes(), golden);
}
