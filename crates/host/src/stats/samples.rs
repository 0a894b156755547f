//! Samples that are counted together.

use super::Moments;

/// Some samples, and what can be said of them.
#[derive(Clone, Debug)]
pub struct Samples {
    all: [u64; Self::MOST],
    count: usize,
    moments: Moments,
}

impl Samples {
    /// As many there can be.
    pub const MOST: usize = 64;

    /// The first [`Self::MOST`] of some samples.
    #[inline]
    #[must_use]
    pub fn of(samples: impl Iterator<Item = u64>) -> Self {
        let mut all = [0; Self::MOST];
        let mut count = 0;
        for (place, sample) in all.iter_mut().zip(samples) {
            *place = sample;
            count += 1;
        }
        Self {
            moments: Moments::of(&all[..count]),
            all,
            count,
        }
    }

    /// So many zeros, at most [`Self::MOST`].
    #[must_use]
    pub fn zeros(count: usize) -> Self {
        let count = count.min(Self::MOST);
        Self {
            all: [0; Self::MOST],
            count,
            moments: Moments::of_zeros(count as u64),
        }
    }

    /// The samples, in their order.
    #[must_use]
    pub fn all(&self) -> &[u64] {
        &self.all[..self.count]
    }

    /// What can be said of them.
    #[must_use]
    pub const fn moments(&self) -> &Moments {
        &self.moments
    }
}
