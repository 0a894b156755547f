//! Admin commands that only controllers on PCIe have.

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    CreateIoCompletionQueue, CreateIoSubmissionQueue, DeleteIoQueue, DoorbellBufferConfig,
};
use zonelab_nvme::queue::{AdminOpcode, CompletionEntry, SubmissionEntry};

use super::io::Failed;
use super::{Controller, Shadows};
use crate::prp::PAGE_BYTES;
use crate::queues::{CompletionQueue, SubmissionQueue};

impl Controller {
    /// Carries out a command of the admin queue, if it is one of PCIe. `None`: it is
    /// for the subsystem.
    pub(super) fn admin_command(
        &mut self,
        now: Nanos,
        entry: &SubmissionEntry,
    ) -> Result<Option<CompletionEntry>, Failed> {
        match AdminOpcode(entry.cdw0.opc()) {
            AdminOpcode::CREATE_IO_CQ => {
                let create = CreateIoCompletionQueue::parse(entry).map_err(Failed)?;
                self.create_completion_queue(&create)?;
            }
            AdminOpcode::CREATE_IO_SQ => {
                let create = CreateIoSubmissionQueue::parse(entry).map_err(Failed)?;
                self.create_submission_queue(now, &create)?;
            }
            AdminOpcode::DELETE_IO_SQ | AdminOpcode::DELETE_IO_CQ => {
                let delete = DeleteIoQueue::parse(entry).map_err(Failed)?;
                self.delete_queue(now, delete)?;
            }
            AdminOpcode::DOORBELL_BUFFER_CONFIG if self.settings.has_shadow_doorbells => {
                let config = DoorbellBufferConfig::parse(entry).map_err(Failed)?;
                self.set_shadows(&config)?;
            }
            // Fabrics commands are none on PCIe.
            AdminOpcode::FABRICS => return Err(Failed(Status::INVALID_OPCODE)),
            _ => return Ok(None),
        }
        let cid = entry.cdw0.cid();
        Ok(Some(CompletionEntry::new(cid, Status::SUCCESS)))
    }

    /// Checks what both kinds of queues have in common.
    fn check_new(
        &self,
        (qid, entries): (u16, u32),
        (prp1, contiguous): (u64, bool),
        exists: bool,
    ) -> Result<(), Failed> {
        let is_number = (1..self.submission.len()).contains(&usize::from(qid));
        if !is_number || exists {
            return Err(Failed(Status::INVALID_QUEUE_IDENTIFIER));
        }
        if entries < 2 || entries > u32::from(self.settings.queue_entries) {
            return Err(Failed(Status::INVALID_QUEUE_SIZE));
        }
        // CAP.CQR: rings are contiguous.
        if !contiguous {
            return Err(Failed(Status::INVALID_FIELD));
        }
        match prp1.is_multiple_of(PAGE_BYTES) {
            true => Ok(()),
            false => Err(Failed(Status::PRP_OFFSET_INVALID)),
        }
    }

    fn create_completion_queue(&mut self, create: &CreateIoCompletionQueue) -> Result<(), Failed> {
        let place = usize::from(create.qid);
        let exists = self.completion.get(place).is_some_and(Option::is_some);
        let size = (create.qid, create.entries);
        self.check_new(size, (create.prp1, create.contiguous), exists)?;
        let bytes = size_of::<CompletionEntry>();
        let window = self.ring_window(create.prp1, create.entries, bytes);
        let window = window.ok_or(Failed(Status::DATA_TRANSFER_ERROR))?;
        let vectors = self.settings.interrupt_vectors;
        if create.vector.is_some_and(|vector| vector >= vectors) {
            return Err(Failed(Status::INVALID_INTERRUPT_VECTOR));
        }
        let queue = CompletionQueue::new(window, create.entries, create.vector);
        self.completion[place] = Some(queue);
        Ok(())
    }

    fn create_submission_queue(
        &mut self,
        now: Nanos,
        create: &CreateIoSubmissionQueue,
    ) -> Result<(), Failed> {
        let place = usize::from(create.qid);
        let exists = self.submission.get(place).is_some_and(Option::is_some);
        let size = (create.qid, create.entries);
        self.check_new(size, (create.prp1, create.contiguous), exists)?;
        let completion = self.completion.get(usize::from(create.cqid));
        if create.cqid == 0 || !completion.is_some_and(Option::is_some) {
            return Err(Failed(Status::CQ_INVALID));
        }
        let bytes = size_of::<SubmissionEntry>();
        let window = self.ring_window(create.prp1, create.entries, bytes);
        let window = window.ok_or(Failed(Status::DATA_TRANSFER_ERROR))?;
        let made = self.connect(now, create.qid, create.entries);
        let (handle, _) = made.map_err(|entry| Failed(entry.status.status()))?;
        let numbers = (create.qid, create.cqid);
        let queue = SubmissionQueue::new(numbers, handle, window, create.entries);
        self.submission[place] = Some(queue);
        Ok(())
    }

    fn delete_queue(&mut self, now: Nanos, delete: DeleteIoQueue) -> Result<(), Failed> {
        let place = usize::from(delete.qid);
        let invalid = || Failed(Status::INVALID_QUEUE_IDENTIFIER);
        if place == 0 {
            return Err(invalid());
        }
        if !delete.is_submission {
            let mut users = self.submission.iter().flatten();
            if users.any(|queue| queue.cqid == delete.qid) {
                return Err(Failed(Status::INVALID_QUEUE_DELETION));
            }
            let queue = self.completion.get_mut(place).and_then(Option::take);
            return queue.map(drop).ok_or_else(invalid);
        }
        let queue = self.submission.get_mut(place).and_then(Option::take);
        let mut queue = queue.ok_or_else(invalid)?;
        self.subsystem.disconnect(now, queue.handle);
        let ended = queue.end_all();
        let cqid = usize::from(queue.cqid);
        if let Some(completion) = &mut self.completion[cqid] {
            let before = completion.posted();
            for pending in ended {
                let entry = CompletionEntry::new(pending.cid, Status::ABORTED_SQ_DELETION);
                completion.post(CompletionEntry {
                    sqhd: queue.head.into(),
                    sqid: queue.qid.into(),
                    ..entry
                });
            }
            self.signal(cqid, before);
        }
        Ok(())
    }

    fn set_shadows(&mut self, config: &DoorbellBufferConfig) -> Result<(), Failed> {
        let window = |iova: u64| {
            let window = self.memory.window(iova, PAGE_BYTES as usize).ok();
            let is_page = iova.is_multiple_of(PAGE_BYTES);
            window
                .filter(|_| is_page)
                .ok_or(Failed(Status::INVALID_FIELD))
        };
        self.shadows = Some(Shadows {
            shadow: window(config.shadow)?,
            event_index: window(config.event_index)?,
        });
        Ok(())
    }
}
