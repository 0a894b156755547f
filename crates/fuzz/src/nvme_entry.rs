//! Submission queue entries.

use zonelab_nvme::Status;
use zonelab_nvme::command::{AdminCommand, IoCommand};
use zonelab_nvme::fabrics::FabricsCommand;
use zonelab_nvme::queue::{AdminOpcode, IoOpcode, SubmissionEntry};
use zonelab_nvme::zerocopy::FromBytes;

use crate::draw::Draw;

/// I/O opcodes that have a parsed form.
const PARSED: &[u8] = &[
    IoOpcode::FLUSH.0,
    IoOpcode::READ.0,
    IoOpcode::WRITE.0,
    IoOpcode::COMPARE.0,
    IoOpcode::VERIFY.0,
    IoOpcode::WRITE_ZEROES.0,
    IoOpcode::DATASET_MANAGEMENT.0,
    IoOpcode::COPY.0,
    IoOpcode::ZONE_APPEND.0,
    IoOpcode::ZONE_MANAGEMENT_SEND.0,
    IoOpcode::ZONE_MANAGEMENT_RECEIVE.0,
    IoOpcode::IO_MANAGEMENT_SEND.0,
    IoOpcode::IO_MANAGEMENT_RECEIVE.0,
    IoOpcode::RESERVATION_REGISTER.0,
    IoOpcode::RESERVATION_REPORT.0,
    IoOpcode::RESERVATION_ACQUIRE.0,
    IoOpcode::RESERVATION_RELEASE.0,
];

/// Opcodes on the admin queue that have one.
const ADMIN: &[u8] = &[
    AdminOpcode::IDENTIFY.0,
    AdminOpcode::GET_LOG_PAGE.0,
    AdminOpcode::GET_FEATURES.0,
    AdminOpcode::SET_FEATURES.0,
    AdminOpcode::ABORT.0,
    AdminOpcode::FORMAT_NVM.0,
    AdminOpcode::FABRICS.0,
];

/// The target: an entry is parsed or refused, and what is parsed can be
/// written, and says the same then.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let mut draw = Draw::new(data);
    // Any opcode would nearly always be one without a parsed form.
    let opcode = draw.maybe(|draw| {
        let table = if draw.flag() { ADMIN } else { PARSED };
        draw.pick(table)
    });
    let mut bytes = [0; size_of::<SubmissionEntry>()];
    let given = draw.bytes(bytes.len());
    bytes[..given.len()].copy_from_slice(given);
    if let Some(opcode) = opcode {
        bytes[0] = opcode;
    }
    let entry = SubmissionEntry::read_from_bytes(&bytes).expect("the bytes are one entry");
    match IoCommand::parse(&entry) {
        Ok(command) => {
            assert!(
                PARSED.contains(&bytes[0]),
                "{command:?} from an unknown opcode"
            );
            let written = command
                .to_entry()
                .expect("what came from an entry has a place in one");
            assert_eq!(IoCommand::parse(&written), Ok(command));
            assert_eq!(written.nsid.get(), command.nsid());
        }
        Err(status) => assert_eq!(status, Status::INVALID_OPCODE),
    }
    if let Ok(command) = AdminCommand::parse(&entry) {
        let written = command
            .to_entry()
            .expect("what came from an entry has a place in one");
        assert_eq!(AdminCommand::parse(&written), Ok(command));
    }
    if let Ok(command) = FabricsCommand::parse(&entry) {
        let written = command
            .to_entry()
            .expect("what came from an entry has a place in one");
        assert_eq!(FabricsCommand::parse(&written), Ok(command));
    }
}
