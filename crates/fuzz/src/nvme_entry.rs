//! Submission queue entries.

use zonelab_nvme::Status;
use zonelab_nvme::command::{Identify, IoCommand};
use zonelab_nvme::queue::{AdminOpcode, IoOpcode, SubmissionEntry};
use zonelab_nvme::zerocopy::FromBytes;

use crate::draw::Draw;

/// Opcodes that have a parsed form.
const PARSED: &[u8] = &[
    IoOpcode::FLUSH.0,
    IoOpcode::READ.0,
    IoOpcode::WRITE.0,
    IoOpcode::ZONE_APPEND.0,
    IoOpcode::ZONE_MANAGEMENT_SEND.0,
    IoOpcode::ZONE_MANAGEMENT_RECEIVE.0,
    AdminOpcode::IDENTIFY.0,
];

/// The target: an entry is parsed or refused, and what is parsed can be
/// written, and says the same then.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let mut draw = Draw::new(data);
    // Any opcode would nearly always be one without a parsed form.
    let opcode = draw.maybe(|draw| draw.pick(PARSED));
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
    if let Ok(identify) = Identify::parse(&entry) {
        let written = identify
            .to_entry()
            .expect("what came from an entry has a place in one");
        assert_eq!(Identify::parse(&written), Ok(identify));
    }
}
