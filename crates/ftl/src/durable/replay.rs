//! Reading the journal: which of its blocks count.

use std::pin::pin;

use futures_util::stream::StreamExt as _;

use super::reads::{BlocksRead, ahead};
use crate::error::FtlError;
use crate::format::Found;
use crate::format::anchor::{Anchor, Position};
use crate::format::journal::{self, JournalBlock};
use crate::media::{Media, Zone, ZoneUse};

/// What the journal says.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The blocks that count, in order.
    pub(super) blocks: Vec<JournalBlock>,
    /// The number of the next one.
    pub(super) next: u64,
    /// Zones that are needed, the oldest first: the last is where the journal goes on.
    pub(super) live: Vec<u32>,
    /// Blocks written there.
    pub(super) offset: u32,
}

/// Whether to read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Continue,
    /// What follows is older than the start of the journal.
    Old,
}

/// What a zone of the journal has shown until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    /// A block that is older than the start of the journal: one more, and all of it is.
    Old(Position),
    /// Blocks of the journal.
    Some,
}

struct Scan<'a> {
    media: &'a Media,
    anchor: &'a Anchor,
    blocks: Vec<JournalBlock>,
    next: u64,
    /// The place has been passed where the epoch of the anchor begins.
    is_in_epoch: bool,
    /// The epoch and the number that the block of the next place has, if it is of that epoch:
    /// an epoch's blocks stand one behind the other. `None`: none is known of it.
    expected: Option<(u32, u64)>,
    /// A block that may be missing.
    suspect: Option<FtlError>,
}

/// Reads the journal from the start that an anchor names.
///
/// # Errors
/// A block that was durable is missing, or may be; or a command failed.
pub(super) async fn read(
    media: &Media,
    uuid: u128,
    anchor: &Anchor,
    reported: &[Zone],
    read: &mut BlocksRead,
) -> Result<Replayed, FtlError> {
    let ring = media.shape().journal();
    let count = ring.end - ring.start;
    let mut scan = Scan {
        media,
        anchor,
        blocks: Vec::new(),
        next: anchor.start,
        is_in_epoch: anchor.epoch_start < anchor.start,
        expected: (anchor.epoch_start < anchor.start).then_some((anchor.epoch, anchor.start)),
        suspect: None,
    };
    let mut live = Vec::new();
    let mut offset = 0;
    for step in 0..count {
        let zone = ring.start + (anchor.start_at.zone - ring.start + step) % count;
        let of = &reported[zone as usize];
        if step > 0 && anchor.dead.contains(&zone) && of.state == ZoneUse::Offline {
            continue;
        }
        let from = if step == 0 { anchor.start_at.offset } else { 0 };
        if scan.zone(uuid, zone, from, of, read).await? == Then::Old {
            // A dead zone keeps what is old for ever, and the journal goes on behind it.
            if of.is_dead() {
                continue;
            }
            break;
        }
        live.push(zone);
        offset = of.written;
        // The journal leaves a zone when it is full or dead, not before.
        if matches!(of.state, ZoneUse::Empty | ZoneUse::Open | ZoneUse::Closed) {
            break;
        }
    }
    scan.end()?;
    Ok(Replayed {
        blocks: scan.blocks,
        next: scan.next,
        live,
        offset,
    })
}

impl Scan<'_> {
    async fn zone(
        &mut self,
        uuid: u128,
        zone: u32,
        from: u32,
        of: &Zone,
        read: &mut BlocksRead,
    ) -> Result<Then, FtlError> {
        let shape = self.media.shape();
        if of.state == ZoneUse::Offline {
            self.suspect(
                self.media
                    .corrupt(zone, 0, "a zone of the journal is offline"),
            );
        }
        let (media, before) = (self.media, self.expected);
        let mut seen = Seen::Nothing;
        let mut pieces = pin!(ahead(media, zone, from..of.written, &mut read.journal));
        while let Some(piece) = pieces.next().await {
            let (first, blocks) = piece?;
            for (block, at) in blocks.into_iter().zip(first..) {
                let at = Position { zone, offset: at };
                self.pass(at)?;
                match block.map(|block| journal::decode(shape, uuid, &block)) {
                    // The write that made its zone read only may have left it so.
                    Err(_) if of.state == ZoneUse::ReadOnly => {}
                    Err(error) => self.suspect(error),
                    Ok(Found::Foreign) => {}
                    Ok(Found::Damaged) => {
                        let what = "a block of the journal is damaged";
                        self.suspect(self.media.corrupt(zone, at.offset, what));
                    }
                    Ok(Found::Valid(block)) => {
                        if self.take(block, (at, of), &mut seen)? == Then::Old {
                            self.expected = before;
                            return Ok(Then::Old);
                        }
                    }
                }
                self.expected = self.expected.map(|(epoch, next)| (epoch, next + 1));
            }
        }
        if matches!(seen, Seen::Old(_)) {
            self.expected = before;
            return Ok(Then::Old);
        }
        if of.is_dead() && seen == Seen::Nothing {
            // The journal never was there.
            self.expected = before;
        }
        let offset = from.max(of.written);
        if self.anchor.epoch_at.zone == zone {
            self.begin_epoch(Position { zone, offset })?;
        }
        Ok(Then::Continue)
    }

    fn suspect(&mut self, error: FtlError) {
        self.suspect.get_or_insert(error);
    }

    /// Comes to a block.
    fn pass(&mut self, at: Position) -> Result<(), FtlError> {
        if at == self.anchor.epoch_at {
            self.begin_epoch(at)?;
        }
        Ok(())
    }

    /// From here on blocks are of the epoch of the anchor. Those before that have its
    /// numbers are remains: whoever began it did not count them.
    fn begin_epoch(&mut self, at: Position) -> Result<(), FtlError> {
        if self.is_in_epoch {
            return Ok(());
        }
        self.is_in_epoch = true;
        let start = self.anchor.epoch_start;
        if self.next < start {
            return Err(self.missing(at));
        }
        self.truncate(start);
        self.expected = Some((self.anchor.epoch, start));
        self.suspect = None;
        Ok(())
    }

    fn truncate(&mut self, next: u64) {
        self.blocks.truncate((next - self.anchor.start) as usize);
        self.next = next;
    }

    fn missing(&mut self, at: Position) -> FtlError {
        let what = "a block of the journal before this one is missing";
        let missing = self.media.corrupt(at.zone, at.offset, what);
        self.suspect.take().unwrap_or(missing)
    }

    /// A block that is older than the start of the journal. Only a zone that holds nothing else,
    /// and is not written any more, is behind its end: anywhere else it was put by mistake.
    fn take_old(&mut self, (at, of): (Position, &Zone), seen: &mut Seen) -> Result<Then, FtlError> {
        let is_behind = at.zone != self.anchor.start_at.zone && !of.is_active();
        match *seen {
            Seen::Nothing if is_behind => *seen = Seen::Old(at),
            Seen::Old(_) => {
                self.suspect = None;
                return Ok(Then::Old);
            }
            Seen::Nothing | Seen::Some => return Err(self.misplaced(at)),
        }
        Ok(Then::Continue)
    }

    fn misplaced(&self, at: Position) -> FtlError {
        let what = "a block of the journal is not in its place";
        self.media.corrupt(at.zone, at.offset, what)
    }

    fn take(
        &mut self,
        block: JournalBlock,
        (at, of): (Position, &Zone),
        seen: &mut Seen,
    ) -> Result<Then, FtlError> {
        if block.sequence < self.anchor.start {
            return self.take_old((at, of), seen);
        }
        if block.epoch > self.anchor.epoch {
            let what = "a block of the journal is newer than the newest anchor";
            return Err(self.media.corrupt(at.zone, at.offset, what));
        }
        let is_elsewhere = self.is_in_epoch != (block.epoch == self.anchor.epoch);
        if let Seen::Old(first) = *seen {
            let last_epoch = self.blocks.last().map_or(0, |last| last.epoch);
            if is_elsewhere || block.epoch < last_epoch {
                // Remains, in a zone that is old.
                return self.take_old((at, of), seen);
            }
            return Err(self.misplaced(first));
        }
        let expected = self.expected.filter(|(epoch, _)| *epoch == block.epoch);
        if is_elsewhere || expected.is_some_and(|(_, number)| number != block.sequence) {
            return Err(self.misplaced(at));
        }
        *seen = Seen::Some;
        self.expected = Some((block.epoch, block.sequence));
        if block.sequence > self.next {
            // Of a commit that has no end: or else the block before was durable.
            return match block.commit <= self.next {
                true => Ok(Then::Continue),
                false => Err(self.missing(at)),
            };
        }
        let last_epoch = self.blocks.last().map_or(0, |last| last.epoch);
        if block.epoch < last_epoch || (block.epoch == last_epoch && block.sequence < self.next) {
            let what = "blocks of the journal are not in order";
            return Err(self.media.corrupt(at.zone, at.offset, what));
        }
        // A later epoch began where its mount found the end.
        self.truncate(block.sequence);
        self.suspect = None;
        self.next += 1;
        self.blocks.push(block);
        Ok(Then::Continue)
    }

    fn end(&mut self) -> Result<(), FtlError> {
        let at = self.anchor.epoch_at;
        self.begin_epoch(at)?;
        if self.next < self.anchor.committed {
            return Err(self.missing(at));
        }
        self.suspect.take().map_or(Ok(()), Err)
    }
}
