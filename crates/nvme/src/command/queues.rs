//! Commands that make and delete I/O queues on PCIe (base specification 2.0,
//! sections 5.4, 5.5, 5.6 and 5.7), and Doorbell Buffer Config (section 5.8).

use super::{OutOfRange, expect_opcode};
use crate::Status;
use crate::queue::{AdminOpcode, SubmissionEntry};
use zerocopy::little_endian::U32;

bits! {
    /// Dword 10 of the four commands; only the identifier for deletion.
    struct QueueDword10(U32: u32) {
        /// Queue identifier (QID).
        [15:0] qid / with_qid: u16,
        /// Queue size (QSIZE) in entries, zero based.
        [31:16] qsize_z / with_qsize_z: u16,
    }
}

bits! {
    /// Dword 11 of Create I/O Completion Queue.
    struct CompletionDword11(U32: u32) {
        /// Physically contiguous (PC).
        [0:0] pc / with_pc: bool,
        /// Interrupts enabled (IEN).
        [1:1] ien / with_ien: bool,
        /// Interrupt vector (IV).
        [31:16] iv / with_iv: u16,
    }
}

bits! {
    /// Dword 11 of Create I/O Submission Queue.
    struct SubmissionDword11(U32: u32) {
        /// Physically contiguous (PC).
        [0:0] pc / with_pc: bool,
        /// Queue priority (QPRIO).
        [2:1] qprio / with_qprio: u8,
        /// Completion queue identifier (CQID).
        [31:16] cqid / with_cqid: u16,
    }
}

/// Dword 10 of a queue of `entries` entries.
fn dword10(qid: u16, entries: u32) -> Result<U32, OutOfRange> {
    let entries = OutOfRange::check("entries", entries.into(), 2, 1 << 16)?;
    let qsize_z = (entries - 1) as u16;
    let dword10 = QueueDword10::default().with_qid(qid).with_qsize_z(qsize_z);
    Ok(dword10.bits().into())
}

/// Create I/O Completion Queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CreateIoCompletionQueue {
    /// Its identifier, 1 to 65535.
    pub qid: u16,
    /// Entries, 2 to 65536.
    pub entries: u32,
    /// Where it is: one piece (`contiguous`), or a list of pages.
    pub prp1: u64,
    /// Physically contiguous (PC).
    pub contiguous: bool,
    /// The interrupt vector (IV) that tells of entries; `None`: the host polls.
    pub vector: Option<u16>,
}

impl CreateIoCompletionQueue {
    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `entries` is.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let dword11 = CompletionDword11::default()
            .with_pc(self.contiguous)
            .with_ien(self.vector.is_some())
            .with_iv(self.vector.unwrap_or(0));
        let entry = SubmissionEntry {
            cdw10: dword10(self.qid, self.entries)?,
            cdw11: dword11.bits().into(),
            ..SubmissionEntry::new(AdminOpcode::CREATE_IO_CQ.0)
        };
        Ok(entry.with_prps(self.prp1, 0))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, AdminOpcode::CREATE_IO_CQ.0)?;
        let dword10 = QueueDword10::from_bits(entry.cdw10.get());
        let dword11 = CompletionDword11::from_bits(entry.cdw11.get());
        Ok(Self {
            qid: dword10.qid(),
            entries: u32::from(dword10.qsize_z()) + 1,
            prp1: entry.dptr.prp1.get(),
            contiguous: dword11.pc(),
            vector: dword11.ien().then(|| dword11.iv()),
        })
    }
}

/// Create I/O Submission Queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CreateIoSubmissionQueue {
    /// Its identifier, 1 to 65535.
    pub qid: u16,
    /// Entries, 2 to 65536.
    pub entries: u32,
    /// Where it is: one piece (`contiguous`), or a list of pages.
    pub prp1: u64,
    /// Physically contiguous (PC).
    pub contiguous: bool,
    /// Priority (QPRIO), 0 urgent to 3 low: for weighted arbitration only.
    pub priority: u8,
    /// The completion queue of its commands.
    pub cqid: u16,
}

impl CreateIoSubmissionQueue {
    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `entries` or `priority` is.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        OutOfRange::check("priority", self.priority.into(), 0, 3)?;
        let dword11 = SubmissionDword11::default()
            .with_pc(self.contiguous)
            .with_qprio(self.priority)
            .with_cqid(self.cqid);
        let entry = SubmissionEntry {
            cdw10: dword10(self.qid, self.entries)?,
            cdw11: dword11.bits().into(),
            ..SubmissionEntry::new(AdminOpcode::CREATE_IO_SQ.0)
        };
        Ok(entry.with_prps(self.prp1, 0))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, AdminOpcode::CREATE_IO_SQ.0)?;
        let dword10 = QueueDword10::from_bits(entry.cdw10.get());
        let dword11 = SubmissionDword11::from_bits(entry.cdw11.get());
        Ok(Self {
            qid: dword10.qid(),
            entries: u32::from(dword10.qsize_z()) + 1,
            prp1: entry.dptr.prp1.get(),
            contiguous: dword11.pc(),
            priority: dword11.qprio(),
            cqid: dword11.cqid(),
        })
    }
}

/// Delete I/O Submission Queue, or Delete I/O Completion Queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DeleteIoQueue {
    /// Its identifier.
    pub qid: u16,
    /// Which of the two: the submission queue goes first.
    pub is_submission: bool,
}

impl DeleteIoQueue {
    /// The entry of the command.
    #[must_use]
    pub fn to_entry(&self) -> SubmissionEntry {
        let opcode = match self.is_submission {
            true => AdminOpcode::DELETE_IO_SQ,
            false => AdminOpcode::DELETE_IO_CQ,
        };
        let dword10 = QueueDword10::default().with_qid(self.qid);
        SubmissionEntry {
            cdw10: dword10.bits().into(),
            ..SubmissionEntry::new(opcode.0)
        }
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        let is_submission = match AdminOpcode(entry.cdw0.opc()) {
            AdminOpcode::DELETE_IO_SQ => true,
            AdminOpcode::DELETE_IO_CQ => false,
            _ => return Err(Status::INVALID_OPCODE),
        };
        let dword10 = QueueDword10::from_bits(entry.cdw10.get());
        Ok(Self {
            qid: dword10.qid(),
            is_submission,
        })
    }
}

/// Doorbell Buffer Config: doorbells are in memory from now on. The two buffers have
/// a page each.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DoorbellBufferConfig {
    /// Where the host writes doorbells (PRP1).
    pub shadow: u64,
    /// Where the controller writes event indexes (PRP2).
    pub event_index: u64,
}

impl DoorbellBufferConfig {
    /// The entry of the command.
    #[must_use]
    pub fn to_entry(&self) -> SubmissionEntry {
        let entry = SubmissionEntry::new(AdminOpcode::DOORBELL_BUFFER_CONFIG.0);
        entry.with_prps(self.shadow, self.event_index)
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, AdminOpcode::DOORBELL_BUFFER_CONFIG.0)?;
        Ok(Self {
            shadow: entry.dptr.prp1.get(),
            event_index: entry.dptr.prp2.get(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CreateIoCompletionQueue, CreateIoSubmissionQueue, DeleteIoQueue, DoorbellBufferConfig,
    };

    #[test]
    fn commands_come_back_from_their_entries() {
        let completion = CreateIoCompletionQueue {
            qid: 3,
            entries: 1 << 16,
            prp1: 0x1_2345_6000,
            contiguous: true,
            vector: Some(7),
        };
        let entry = completion.to_entry().expect("65536 entries have a place");
        assert_eq!(entry.cdw10.get(), 0xffff_0003);
        assert_eq!(entry.cdw11.get(), 0x0007_0003);
        assert_eq!(CreateIoCompletionQueue::parse(&entry), Ok(completion));

        let submission = CreateIoSubmissionQueue {
            qid: 3,
            entries: 2,
            prp1: 0x7000,
            contiguous: true,
            priority: 2,
            cqid: 5,
        };
        let entry = submission.to_entry().expect("2 entries have a place");
        assert_eq!((entry.cdw10.get(), entry.cdw11.get()), (0x1_0003, 0x5_0005));
        assert_eq!(CreateIoSubmissionQueue::parse(&entry), Ok(submission));

        for is_submission in [true, false] {
            let qid = 9;
            let delete = DeleteIoQueue { qid, is_submission };
            assert_eq!(DeleteIoQueue::parse(&delete.to_entry()), Ok(delete));
        }
        let buffers = DoorbellBufferConfig {
            shadow: 0x1000,
            event_index: 0x2000,
        };
        assert_eq!(
            DoorbellBufferConfig::parse(&buffers.to_entry()),
            Ok(buffers)
        );
    }

    #[test]
    fn a_ring_of_one_entry_is_refused() {
        let queue = CreateIoCompletionQueue {
            qid: 1,
            entries: 1,
            prp1: 0,
            contiguous: true,
            vector: None,
        };
        assert_eq!(
            queue.to_entry().map_err(|error| error.field),
            Err("entries")
        );
    }
}
