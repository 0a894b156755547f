//! What writes carry where somebody keeps it: fio's buffers.

use zonelab_device::{Buf, Op};

use super::JobSpec;
use crate::rng::Rng;
use crate::verify::{Pattern, fill_random, mix};

/// What the data of a job's writes are, as the buffers of fio are filled. It matters
/// where data is kept: of a block that is zero throughout, a drive or a store may keep
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// What a buffer is filled with.
    pub fill: Filler,
    /// It is filled anew for each write; else once, and used again.
    pub refill: bool,
    /// A buffer of random bytes that is used again carries its place and the number of the
    /// write in each sector, so that no two blocks are equal.
    pub scramble: bool,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            fill: Filler::Random,
            refill: false,
            scramble: true,
        }
    }
}

/// What a buffer is filled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filler {
    /// Pseudo-random bytes that follow from the seed of the job.
    Random,
    /// Zeros.
    Zeros,
    /// A pattern, over and over.
    Pattern(Pattern),
}

/// Bytes of what is told apart by scrambling, as in fio.
const SECTOR_BYTES: usize = 512;

/// The buffers of a job's writes.
pub(super) struct Buffers {
    how: Contents,
    lba_bytes: u64,
    /// What all its bytes come from.
    base: u64,
    writes: u64,
    /// Buffers that are filled and in no write.
    pool: Vec<Buf>,
}

impl Buffers {
    /// Those of a job, if its writes carry something; not if they are verified, for then they
    /// carry what is.
    pub(super) fn of(spec: &JobSpec, lba_bytes: u64, rng: &Rng) -> Option<Box<Self>> {
        let how = spec.contents.clone().filter(|_| spec.verify.is_none())?;
        // Other choices of the job do not depend on whether its data is kept.
        let base = rng.clone().next_u64();
        Some(Box::new(Self::new(how, lba_bytes, base)))
    }

    const fn new(how: Contents, lba_bytes: u64, base: u64) -> Self {
        Self {
            how,
            lba_bytes,
            base,
            writes: 0,
            pool: Vec::new(),
        }
    }

    /// The data that goes with a write; other commands have none.
    pub(super) fn data_of(&mut self, op: &Op) -> Option<Buf> {
        let (Op::Write { nlb, .. } | Op::Append { nlb, .. }) = *op else {
            return None;
        };
        // Fits: at most what one command moves, which is less than 4 GiB.
        let len = (u64::from(nlb) * self.lba_bytes) as usize;
        let offset = op.first_block() * self.lba_bytes;
        let used = self.pool.iter().position(|buf| buf.len() == len);
        let (mut data, is_filled) = match used {
            Some(at) => (self.pool.swap_remove(at), !self.how.refill),
            None => (Buf::zeroed(len), false),
        };
        match &self.how.fill {
            Filler::Zeros => {}
            Filler::Pattern(pattern) if is_filled && !pattern.has_offset() => {}
            Filler::Pattern(pattern) => pattern.fill(&mut data, offset),
            Filler::Random if is_filled && self.how.scramble => self.scramble(&mut data, offset),
            Filler::Random if is_filled => {}
            Filler::Random => fill_random(&mut data, mix(self.base.wrapping_add(self.writes))),
        }
        self.writes += 1;
        Some(data)
    }

    /// Each sector begins with its place and ends with the number of the write.
    fn scramble(&self, data: &mut [u8], offset: u64) {
        let number = mix(self.base.wrapping_add(self.writes)).to_le_bytes();
        for (index, sector) in (0..).zip(data.chunks_exact_mut(SECTOR_BYTES)) {
            let place = offset + index * SECTOR_BYTES as u64;
            sector[..8].copy_from_slice(&mix(self.base ^ place).to_le_bytes());
            sector[SECTOR_BYTES - 8..].copy_from_slice(&number);
        }
    }

    /// A command is over, or was not taken; of writes, at most `most` buffers are kept.
    pub(super) fn take_back(&mut self, data: Option<Buf>, most: usize) {
        // Ranges of trims are data, too, and no whole blocks.
        let is_whole = |data: &Buf| (data.len() as u64).is_multiple_of(self.lba_bytes);
        if self.pool.len() < most {
            self.pool.extend(data.filter(is_whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use zonelab_device::Lba;

    use super::*;

    /// The data of the first three writes of two blocks each, of which each buffer is used
    /// again.
    fn three(how: Contents) -> Vec<Buf> {
        let mut buffers = Buffers::new(how, 512, 7);
        let write = |slba: u64| Op::Write {
            slba: Lba(slba),
            nlb: 2,
        };
        let written = [0, 2, 4].map(|slba| {
            let data = buffers.data_of(&write(slba)).expect("a write has data");
            buffers.take_back(Some(data.clone()), 8);
            data
        });
        assert!(buffers.data_of(&Op::Flush).is_none());
        written.into()
    }

    #[test]
    fn buffers_are_filled_as_fio_fills_them() {
        let random = three(Contents::default());
        assert_eq!(random, three(Contents::default()), "the seed decides");
        let sectors = || random.iter().flat_map(|data| data.chunks(512));
        let different: BTreeSet<&[u8]> = sectors().collect();
        assert_eq!(different.len(), 6, "no two blocks are equal");
        assert!(sectors().all(|sector| sector.iter().filter(|byte| **byte == 0).count() < 32));
        let plain = three(Contents {
            scramble: false,
            ..Contents::default()
        });
        assert_eq!(plain[0], plain[1], "the same buffer again");
        let refilled = three(Contents {
            refill: true,
            scramble: false,
            ..Contents::default()
        });
        assert_ne!(refilled[0], refilled[1]);
        let of = |fill: Filler| {
            three(Contents {
                fill,
                ..Contents::default()
            })
        };
        assert!(of(Filler::Zeros).iter().all(|data| **data == [0; 1024]));
        let pattern = |text: &str| Filler::Pattern(Pattern::parse(text).expect("a pattern"));
        let same = of(pattern("0xabcd"));
        assert_eq!(
            (&same[2][..4], same[2][1023]),
            (&[0xab, 0xcd, 0xab, 0xcd][..], 0xcd)
        );
        let placed = of(pattern("%o"));
        assert_eq!(placed[1][..8], 1024_u64.to_le_bytes());
    }
}
