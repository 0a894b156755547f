//! Commands from rings to the subsystem, and completions back.

use core::sync::atomic::{Ordering, fence};

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::command::Identify;
use zonelab_nvme::identify::{Cns, IdentifyController, SglSupport};
use zonelab_nvme::queue::{CompletionEntry, SglDescriptor, SubmissionEntry};
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_target::controller::Moves;

use super::Controller;
use crate::fault::Fault;
use crate::prp::{self, Piece, PrpFault};
use crate::queues::{Pending, Place, SubmissionQueue};
use crate::sgl::{self, SglFault};

impl From<PrpFault> for Failed {
    fn from(fault: PrpFault) -> Self {
        Self(match fault {
            PrpFault::Offset { .. } => Status::PRP_OFFSET_INVALID,
            PrpFault::Access(_) => Status::DATA_TRANSFER_ERROR,
        })
    }
}

impl From<SglFault> for Failed {
    fn from(fault: SglFault) -> Self {
        Self(fault.status())
    }
}

/// A command that the subsystem never sees, or whose data does not arrive.
pub(super) struct Failed(pub(super) Status);

impl Controller {
    /// A command that was fetched from queue `qid`.
    pub(super) fn command(&mut self, now: Nanos, qid: usize, entry: SubmissionEntry) {
        let cid = entry.cdw0.cid();
        let place = self.place(qid, &entry);
        if let Some(queue) = &mut self.submission[qid] {
            let is_identify =
                qid == 0 && Identify::parse(&entry).is_ok_and(|of| of.cns == Cns::CONTROLLER);
            queue.begin(Pending {
                cid,
                place: place.unwrap_or(Place::Prps(0, 0)),
                is_identify,
            });
        }
        let handled = match (place, qid) {
            (None, _) => Err(Failed(Status::INVALID_FIELD)),
            (Some(_), 0) => self.admin_command(now, &entry),
            _ => Ok(None),
        };
        let failed = match (handled, place) {
            (Ok(Some(entry)), _) => return self.complete(qid, entry, None),
            (Ok(None), Some(place)) => self.pass_on(now, qid, (&entry, place)).err(),
            (Ok(None), None) => None,
            (Err(failed), _) => Some(failed),
        };
        if let Some(Failed(status)) = failed {
            self.complete(qid, CompletionEntry::new(cid, status), None);
        }
    }

    /// Where the data of a command is. `None`: not where the controller has said that it
    /// may be. Admin commands have PRPs.
    fn place(&mut self, qid: usize, entry: &SubmissionEntry) -> Option<Place> {
        let place = Place::of(entry)?;
        if let Place::Sgl(_) = place {
            if qid == 0 || !self.settings.has_sgls {
                return None;
            }
            self.sgl_commands += 1;
        }
        Some(place)
    }

    /// Hands a command to the subsystem, with its data.
    fn pass_on(
        &mut self,
        now: Nanos,
        qid: usize,
        (entry, place): (&SubmissionEntry, Place),
    ) -> Result<(), Failed> {
        let Some(handle) = self.submission[qid].as_ref().map(|queue| queue.handle) else {
            return Ok(());
        };
        let entry = entry.with_sgl(SglDescriptor::transport(0));
        let (data, room) = match self.subsystem.moves(handle, &entry) {
            Moves::Nothing => (None, 0),
            Moves::FromHost(bytes) => (Some(self.read_data(place, bytes)?), bytes),
            Moves::ToHost(bytes) => {
                // An SGL is wrong whatever the drive finds. PRPs are followed at the end.
                if let Place::Sgl(_) = place {
                    self.pieces(place, bytes as usize)?;
                }
                (None, bytes)
            }
        };
        self.subsystem.submit(now, handle, &entry, data, room);
        Ok(())
    }

    /// Where the pieces of the data are.
    fn pieces(&self, place: Place, bytes: usize) -> Result<Vec<Piece>, Failed> {
        Ok(match place {
            Place::Prps(prp1, prp2) => prp::pieces(&self.memory, (prp1, prp2), bytes)?,
            Place::Sgl(first) => sgl::pieces(&self.memory, first, bytes)?,
        })
    }

    fn read_data(&self, place: Place, bytes: u32) -> Result<Buf, Failed> {
        let mut buf = Buf::zeroed(bytes as usize);
        let mut rest = &mut buf[..];
        for (iova, bytes) in self.pieces(place, bytes as usize)? {
            let (piece, after) = rest.split_at_mut(bytes);
            self.memory.read(iova, piece).map_err(PrpFault::from)?;
            rest = after;
        }
        Ok(buf)
    }

    fn write_data(&self, place: Place, data: &[u8]) -> Result<(), Failed> {
        let mut rest = data;
        for (iova, bytes) in self.pieces(place, data.len())? {
            let (piece, after) = rest.split_at(bytes);
            self.memory.write(iova, piece).map_err(PrpFault::from)?;
            rest = after;
        }
        Ok(())
    }

    /// A command of queue `qid` is over.
    pub(super) fn complete(&mut self, qid: usize, entry: CompletionEntry, data: Option<Buf>) {
        if self.is_removed || self.is_fatal {
            return;
        }
        let cid = entry.cid.get();
        let Some(queue) = &mut self.submission[qid] else {
            return;
        };
        let Some(pending) = queue.end(cid) else {
            return;
        };
        let mut entry = CompletionEntry {
            sqhd: queue.head.into(),
            sqid: queue.qid.into(),
            ..entry
        };
        let cqid = usize::from(queue.cqid);
        if !self.served.contains(&queue.qid) {
            self.served.push(queue.qid);
        }
        if let Some(mut data) = data {
            if pending.is_identify {
                self.identify_on_pcie(&mut data);
            }
            if entry.status.status().is_success()
                && let Err(Failed(status)) = self.write_data(pending.place, &data)
            {
                entry = entry_with(entry, status);
            }
            self.subsystem.recycle(data);
        }
        let fault = match qid {
            0 => None,
            _ => self.faults.next(),
        };
        self.post(cqid, entry, fault);
    }

    /// What a controller says of itself on PCIe, where the subsystem has said what it
    /// says on a fabric.
    fn identify_on_pcie(&self, data: &mut [u8]) {
        let Ok(controller) = IdentifyController::mut_from_bytes(data) else {
            return;
        };
        let has_shadows = self.settings.has_shadow_doorbells;
        controller.oacs = controller.oacs.with_doorbell_buffer(has_shadows);
        // Data blocks of any alignment, and nothing of what fabrics have.
        let support = u8::from(self.settings.has_sgls);
        controller.sgls = SglSupport::default().with_support(support);
    }

    /// Posts a completion, or what a fault makes of it.
    fn post(&mut self, cqid: usize, entry: CompletionEntry, fault: Option<Fault>) {
        match fault {
            Some(Fault::Fatal) => return self.fail(),
            Some(Fault::Removed) => return self.remove(),
            Some(Fault::Lost) => return,
            _ => {}
        }
        let Some(queue) = self.completion.get_mut(cqid).and_then(Option::as_mut) else {
            return;
        };
        let entry = match fault {
            Some(Fault::Status(status)) => entry_with(entry, status),
            Some(Fault::Command(cid)) => CompletionEntry {
                cid: cid.into(),
                ..entry
            },
            Some(Fault::Head(head)) => CompletionEntry {
                sqhd: head.into(),
                ..entry
            },
            Some(Fault::Queue(sqid)) => CompletionEntry {
                sqid: sqid.into(),
                ..entry
            },
            Some(Fault::WrongPhase) => return queue.post_stale(entry),
            _ => entry,
        };
        let before = queue.posted();
        queue.post(entry);
        if fault == Some(Fault::Repeated) {
            queue.post(entry);
        }
        self.signal(cqid, before);
    }

    /// Whether the shadow doorbell of a queue says more than its register did.
    pub(super) fn is_rung(&self, queue: &SubmissionQueue) -> bool {
        let tail = self.shadow_tail(queue.qid);
        tail.is_some_and(|tail| tail != u32::from(queue.tail))
    }

    fn shadow_tail(&self, qid: u16) -> Option<u32> {
        let shadows = self.shadows.as_ref().filter(|_| qid > 0)?;
        // Both doorbells of a queue are in one word if the stride is 4 bytes.
        let index = usize::from(2 * qid) << self.settings.dstrd;
        Some(shadows.shadow.dword(index)?.load(Ordering::Acquire))
    }

    /// Goes on to what the shadow doorbells of a queue say, and says how far it has
    /// seen them.
    pub(super) fn look_at_shadow(&mut self, qid: usize) {
        let Some(of) = self.submission[qid].as_ref().map(|of| of.qid) else {
            return;
        };
        while let Some(tail) = self.shadow_tail(of) {
            let Some(queue) = self.submission[qid].as_mut() else {
                return;
            };
            if tail == u32::from(queue.tail) {
                break;
            }
            if !queue.ring(tail) {
                self.bad_doorbells += 1;
                // It would be looked at for ever.
                return self.fail();
            }
            self.publish_event_index(of, tail);
        }
        self.look_at_completion_shadow(of);
    }

    fn publish_event_index(&self, qid: u16, tail: u32) {
        let index = usize::from(2 * qid) << self.settings.dstrd;
        let slot = self
            .shadows
            .as_ref()
            .and_then(|of| of.event_index.dword(index));
        if let Some(slot) = slot {
            slot.store(tail, Ordering::Release);
            // The host stores its tail and then loads this; one of us sees the other.
            fence(Ordering::SeqCst);
        }
    }

    fn look_at_completion_shadow(&mut self, qid: u16) {
        let Some(shadows) = self.shadows.as_ref().filter(|_| qid > 0) else {
            return;
        };
        let index = usize::from(2 * qid + 1) << self.settings.dstrd;
        let head = shadows
            .shadow
            .dword(index)
            .map(|of| of.load(Ordering::Acquire));
        if let Some(head) = head {
            self.ring_completion(qid.into(), head);
        }
    }
}

fn entry_with(entry: CompletionEntry, status: Status) -> CompletionEntry {
    CompletionEntry {
        status: entry.status.with_status(status),
        ..entry
    }
}
