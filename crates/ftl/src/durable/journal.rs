//! The journal: appending changes, with room that is made by checkpoints.

use zonelab_nvme::Status;

use super::Inner;
use super::ring::Ring;
use crate::blocks::MapChange;
use crate::error::FtlError;
use crate::format::anchor::Position;
use crate::format::journal::{self, JournalBlock};
use crate::media::ZoneUse;

/// Tries of a commit, each but the first in another zone.
const TRIES: u32 = 4;

impl Inner {
    pub(super) async fn append(&self, changes: &[MapChange]) -> Result<(), FtlError> {
        let possible = |change| journal::is_possible(self.shape(), change);
        assert!(
            changes.iter().all(possible),
            "changes are of blocks that there are"
        );
        let _turn = self.appends.take().await;
        let piece_blocks = self.ring.borrow().piece_blocks;
        let piece = piece_blocks * self.changes_each();
        for piece in changes.chunks(piece as usize) {
            self.append_piece(piece).await?;
        }
        Ok(())
    }

    /// Most changes that a block of the journal makes: it repeats as many of the block
    /// before.
    pub(super) fn changes_each(&self) -> u32 {
        let all = self.media.shape().changes_per_block();
        match self.media.keeps_data() {
            true => all / 2,
            false => all,
        }
    }

    /// Sees to it that every change that is durable is in two blocks of the journal, so
    /// that no block that is damaged takes back what the reset of a data zone relies on.
    pub(super) async fn secure(&self) -> Result<(), FtlError> {
        while !self.last.borrow().is_empty() {
            if self.is_committing.get() {
                // The reserve is for changes.
                self.room.next().await;
                continue;
            }
            let _turn = self.appends.take().await;
            if !self.last.borrow().is_empty() {
                self.append_piece(&[]).await?;
            }
        }
        Ok(())
    }

    async fn append_piece(&self, changes: &[MapChange]) -> Result<(), FtlError> {
        let pieces = self.pieces(changes);
        let blocks = pieces.len() as u32;
        let mut end = Ok(());
        for _ in 0..TRIES {
            if self.is_torn.get() {
                self.take_over().await?;
            }
            self.wait_until(|ring, reserve| ring.room() >= u64::from(blocks) + reserve)
                .await?;
            // What the changes refer to comes first.
            let aborts = self.media.aborts();
            self.media.flush().await?;
            end = self.commit(&pieces, aborts).await;
            match end {
                Ok(()) => {
                    if self.media.keeps_data() {
                        self.last
                            .replace(pieces.last().copied().unwrap_or_default().to_vec());
                    }
                    self.room.ring();
                    return Ok(());
                }
                Err(FtlError::Command { .. }) => {}
                Err(_) => return end,
            }
        }
        end
    }

    /// Waits until the journal has the room that is asked for: beside the reserve,
    /// or, at the end of a checkpoint, with it.
    async fn wait_until(&self, has_room: impl Fn(&Ring, u64) -> bool) -> Result<(), FtlError> {
        loop {
            let is_committing = self.is_committing.get();
            let (done, most) = {
                let ring = self.ring.borrow();
                ring.check()?;
                let reserve = if is_committing { 0 } else { ring.reserve() };
                let most = 2 * ring.piece_blocks * self.changes_each();
                (has_room(&ring, reserve), most)
            };
            if done {
                return Ok(());
            }
            if is_committing {
                return Err(FtlError::JournalFull { most });
            }
            if let Some(error) = &*self.failed.borrow() {
                return Err(error.clone());
            }
            self.room.ring();
            self.room.next().await;
        }
    }

    /// Writes a commit and makes it durable.
    async fn commit(&self, pieces: &[&[MapChange]], aborts: u64) -> Result<(), FtlError> {
        let blocks = pieces.len() as u32;
        let bytes = match self.media.keeps_data() {
            true => self.encode(pieces),
            false => Vec::new(),
        };
        // A caller who goes away leaves it so.
        self.is_torn.set(true);
        let mut done = 0;
        while done < blocks {
            if self.ring.borrow().room_here() == 0 {
                self.go_to_next_zone().await?;
            }
            let at = self.ring.borrow().position();
            let some = self.ring.borrow().room_here();
            let some = some
                .min(blocks - done)
                .min(self.shape().max_transfer_blocks);
            let piece = match self.media.keeps_data() {
                true => &bytes[self.shape().bytes(done)..self.shape().bytes(done + some)],
                false => &[],
            };
            let was_untried = self.is_untried.take();
            let written = self.media.write(at.zone, at.offset, some, piece).await;
            if done == 0 && written.as_ref().is_err_and(FtlError::is_no_room) {
                // The drive had no room, and left the zone as it was: nothing is torn.
                let left = self.media.report_of(at.zone).await?;
                let is_as_before = left.state != ZoneUse::Full && left.written == at.offset;
                self.is_torn.set(!is_as_before);
                self.is_untried.set(was_untried && is_as_before);
            }
            written?;
            self.ring.borrow_mut().wrote(some);
            done += some;
        }
        self.media.flush().await?;
        let at = self.ring.borrow().position();
        if self.media.aborts() != aborts {
            // Power may have been lost before the flush, and the commit with it.
            return Err(FtlError::Command {
                action: "flush",
                zone: at.zone,
                lba: self.shape().lba(at.zone, at.offset).0,
                status: Status::ABORTED_BY_HOST,
            });
        }
        self.update(|now| {
            now.next += u64::from(blocks);
            now.next_at = at;
        });
        self.is_torn.set(false);
        self.count(|counts| counts.journal_blocks += u64::from(blocks));
        Ok(())
    }

    /// The changes of each block: at least one.
    fn pieces<'a>(&self, changes: &'a [MapChange]) -> Vec<&'a [MapChange]> {
        let each = self.changes_each() as usize;
        // An earlier program filled blocks, and what it left has to be repeated, too.
        let room = self.shape().changes_per_block() as usize - self.last.borrow().len();
        let (first, rest) = changes.split_at(each.min(room).min(changes.len()));
        [first].into_iter().chain(rest.chunks(each)).collect()
    }

    fn encode(&self, pieces: &[&[MapChange]]) -> Vec<u8> {
        let now = self.now.get();
        let mut bytes = Vec::new();
        let mut before = self.last.borrow().clone();
        for (changes, sequence) in pieces.iter().zip(now.next..) {
            let block = JournalBlock {
                sequence,
                commit: now.next,
                epoch: now.epoch,
                changes: changes.to_vec(),
                before: Some(before),
            };
            bytes.extend(journal::encode(self.shape(), self.uuid, &block));
            before = block.changes;
        }
        bytes
    }

    /// After a write whose end nobody knows: leaves its zone and begins an epoch, so
    /// that what it may have left is no part of the journal.
    async fn take_over(&self) -> Result<(), FtlError> {
        // If power was lost, each of its zones may have less than was written, and a
        // mount takes one that is not full for the last.
        if self.is_untried.get() {
            // The anchor that was to say where the journal goes on could not be written.
            self.write_anchor(|_| ()).await?;
            self.is_torn.set(false);
            self.count(|counts| counts.takeovers += 1);
            return Ok(());
        }
        let Position { zone, .. } = self.now.get().next_at;
        let touched = self.ring.borrow().live_from(zone);
        for zone in touched {
            let of = self.media.report_of(zone).await?;
            if of.is_dead() {
                self.bury(zone)?;
            } else if of.state != ZoneUse::Full {
                self.media.finish(zone).await?;
            }
        }
        self.ring.borrow_mut().close();
        self.wait_until(|ring, _| ring.next().is_some()).await?;
        self.go_to_next_zone().await?;
        let at = self.ring.borrow().position();
        // Whatever becomes of the anchor, this epoch is not begun again.
        self.update(|now| {
            now.epoch += 1;
            now.epoch_start = now.next;
            now.epoch_at = at;
            now.next_at = at;
        });
        self.is_untried.set(true);
        self.write_anchor(|_| ()).await?;
        self.is_torn.set(false);
        self.count(|counts| counts.takeovers += 1);
        Ok(())
    }

    /// Goes on at the start of the next zone that can be written.
    async fn go_to_next_zone(&self) -> Result<(), FtlError> {
        loop {
            let next = self.ring.borrow().next();
            let Some((zone, is_stale)) = next else {
                let most = 2 * self.ring.borrow().piece_blocks * self.changes_each();
                return Err(FtlError::JournalFull { most });
            };
            if is_stale {
                match self.empty_journal_zone(zone).await {
                    Ok(()) => {}
                    Err(FtlError::Command { .. }) if self.ring.borrow().is_dead(zone) => continue,
                    Err(error) => return Err(error),
                }
            }
            self.ring.borrow_mut().advance(zone);
            return Ok(());
        }
    }

    /// Resets a journal zone that holds nothing that is needed.
    pub(super) async fn empty_journal_zone(&self, zone: u32) -> Result<(), FtlError> {
        let end = self.media.reset(zone).await;
        match &end {
            Ok(()) => self.ring.borrow_mut().emptied(zone),
            Err(FtlError::Command { .. }) => {
                if self.media.report_of(zone).await?.is_dead() {
                    self.bury(zone)?;
                }
            }
            Err(_) => {}
        }
        end
    }
}
