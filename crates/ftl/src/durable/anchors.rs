//! Anchors: written one behind the other, in one of two zones.

use zonelab_nvme::Status;

use super::{Inner, Now};
use crate::error::FtlError;
use crate::format::anchor::{self, Anchor};
use crate::media::Zone;

/// Where anchors are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnchorEnd {
    zone: u32,
    /// The next block; none is left if this is not less than the capacity.
    offset: u32,
    capacities: [u32; 2],
    /// Which of the two zones can never be written again.
    are_dead: [bool; 2],
    /// The number of the last anchor that was tried.
    sequence: u64,
    /// The zone that holds the newest anchor that is known to be durable: it is not
    /// reset.
    kept: u32,
}

impl AnchorEnd {
    /// Goes on behind what is written in `zone`.
    pub(super) fn new(zone: u32, reported: &[Zone]) -> Self {
        Self {
            zone,
            offset: reported[zone as usize].written,
            capacities: [reported[0].capacity, reported[1].capacity],
            are_dead: [reported[0].is_dead(), reported[1].is_dead()],
            sequence: 0,
            kept: 1 - zone,
        }
    }

    /// Behind the anchor of that number, which is there.
    pub(super) const fn after(mut self, sequence: u64) -> Self {
        self.sequence = sequence;
        self.kept = self.zone;
        self
    }

    /// The number of the last anchor.
    pub(super) const fn sequence(&self) -> u64 {
        self.sequence
    }

    const fn is_full(&self) -> bool {
        let at = self.zone as usize;
        self.are_dead[at] || self.offset >= self.capacities[at]
    }

    const fn other(&self) -> u32 {
        1 - self.zone
    }
}

/// Tries of an anchor: in either zone, and again for failures that pass.
const TRIES: u32 = 4;

impl Inner {
    /// Writes an anchor of the present state, as `edit` changes it, and makes it
    /// durable. The state is changed when it is.
    pub(super) async fn write_anchor(&self, edit: impl Fn(&mut Now)) -> Result<(), FtlError> {
        let _turn = self.anchoring.take().await;
        // Until it is over, nobody knows which image counts.
        self.is_unsure.set(true);
        let mut end = Ok(());
        for _ in 0..TRIES {
            end = self.try_anchor(&edit).await;
            match &end {
                Ok(()) => {
                    self.is_unsure.set(false);
                    let mut end = self.anchors.borrow_mut();
                    end.kept = end.zone;
                    drop(end);
                    self.update(edit);
                    self.count(|counts| counts.anchors += 1);
                    return Ok(());
                }
                Err(FtlError::Command { .. }) => self.leave_anchor_zone().await?,
                Err(_) => return end,
            }
        }
        end
    }

    async fn try_anchor(&self, edit: &impl Fn(&mut Now)) -> Result<(), FtlError> {
        self.go_where_anchors_fit().await?;
        let (zone, offset, anchor) = {
            let mut end = self.anchors.borrow_mut();
            end.sequence += 1;
            let mut now = self.now.get();
            edit(&mut now);
            (end.zone, end.offset, self.anchor(&now, &end))
        };
        let bytes = match self.media.keeps_data() {
            true => anchor::encode(self.shape(), self.uuid, &anchor),
            false => Vec::new(),
        };
        let aborts = self.media.aborts();
        self.media.write(zone, offset, 1, &bytes).await?;
        self.anchors.borrow_mut().offset += 1;
        self.media.flush().await?;
        if self.media.aborts() == aborts {
            return Ok(());
        }
        // Power may have been lost before the flush, and the anchor with it.
        Err(FtlError::Command {
            action: "flush",
            zone,
            lba: self.shape().lba(zone, offset).0,
            status: Status::ABORTED_BY_HOST,
        })
    }

    fn anchor(&self, now: &Now, end: &AnchorEnd) -> Anchor {
        Anchor {
            sequence: end.sequence,
            is_alone: end.are_dead[end.other() as usize],
            epoch: now.epoch,
            epoch_start: now.epoch_start,
            epoch_at: now.epoch_at,
            committed: now.next,
            slot: now.slot,
            image_blocks: now.image_blocks,
            checkpoint: now.checkpoint,
            start: now.start,
            start_at: now.start_at,
            dead: self.ring.borrow().dead(),
        }
    }

    /// Sees to it that there is a block for an anchor.
    async fn go_where_anchors_fit(&self) -> Result<(), FtlError> {
        let end = *self.anchors.borrow();
        if !end.is_full() {
            return Ok(());
        }
        // The newest anchor is in the other one.
        let zone = 1 - end.kept;
        if end.are_dead[zone as usize] {
            return Err(FtlError::DeadZone {
                zone,
                what: "it is for anchors, and the other one is full or dead",
            });
        }
        self.media.reset(zone).await?;
        let mut end = self.anchors.borrow_mut();
        end.zone = zone;
        end.offset = 0;
        Ok(())
    }

    /// After a failure: goes on in the zone that does not hold the newest anchor.
    async fn leave_anchor_zone(&self) -> Result<(), FtlError> {
        let mut written = [0; 2];
        for zone in self.shape().anchor() {
            let of = self.media.report_of(zone).await?;
            self.anchors.borrow_mut().are_dead[zone as usize] = of.is_dead();
            written[zone as usize] = of.written;
        }
        let end = *self.anchors.borrow();
        let at = end.zone as usize;
        if end.are_dead[at] {
            return Ok(());
        }
        let mut offset = end.capacities[at];
        if end.kept == end.zone {
            if end.are_dead[end.other() as usize] {
                // What failed may have moved the write pointer.
                offset = written[at];
            } else if written[at] < offset {
                // Not to be active beside the other one.
                self.media.finish(end.zone).await?;
            }
        }
        self.anchors.borrow_mut().offset = offset;
        Ok(())
    }
}
