//! How long flash takes from a reset until it is erased.

use zonelab_device::Nanos;

/// Physical zones that were erased after a reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// How many.
    pub zones: u64,
    /// Sum of the times from the arrival of the reset to the end of the last erasure.
    pub total: Nanos,
    /// The longest of them.
    pub longest: Nanos,
}

impl Freed {
    /// The mean time, rounded down; `None`: no zone was erased.
    #[must_use]
    pub fn mean(&self) -> Option<Nanos> {
        self.total.0.checked_div(self.zones).map(Nanos)
    }
}

/// Keeps the times of resets until flash is erased.
#[derive(Clone, Debug, Default)]
pub(super) struct Freeing {
    /// By physical zone; those behind the end were never reset.
    since: Vec<Option<Nanos>>,
    freed: Freed,
}

impl Freeing {
    /// A zone was reset whose flash `physical` was; for the second time, if that
    /// has not been erased since.
    pub(super) fn begins(&mut self, physical: u32, now: Nanos) {
        let index = physical as usize;
        if self.since.len() <= index {
            self.since.resize(index + 1, None);
        }
        self.since[index] = Some(now);
    }

    /// All of `physical` is erased.
    pub(super) fn ends(&mut self, physical: u32, now: Nanos) {
        let since = self.since.get_mut(physical as usize).and_then(Option::take);
        let Some(since) = since else { return };
        let time = now.saturating_sub(since);
        self.freed.zones += 1;
        self.freed.total += time;
        self.freed.longest = self.freed.longest.max(time);
    }

    /// Power is lost: when erasures end that were not over says nothing.
    pub(super) fn power_cut(&mut self) {
        self.since.clear();
    }

    pub(super) const fn freed(&self) -> Freed {
        self.freed
    }
}
