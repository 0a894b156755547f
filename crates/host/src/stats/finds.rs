//! Operations that had nothing to do.

use core::ops::AddAssign;

use zonelab_device::Found;

/// What operations found, as far as their device or their host knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finds {
    /// Operations of which it is known.
    pub known: u64,
    /// Those of which the device tells it: of these it is known whether a buffer answered.
    pub told: u64,
    /// Those that found nothing to do ([`Found::Nothing`]).
    pub nothing: u64,
    /// Those that found everything in a buffer ([`Found::Buffered`]).
    pub buffered: u64,
}

impl Finds {
    /// Counts an operation.
    #[inline]
    pub fn record(&mut self, found: Found) {
        let (told, nothing) = match found {
            Found::Unknown => return,
            Found::Presumed { nothing } => (false, nothing),
            Found::Work(_) | Found::Buffered => (true, false),
            Found::Nothing => (true, true),
        };
        self.known += 1;
        self.told += u64::from(told);
        self.nothing += u64::from(nothing);
        self.buffered += u64::from(found == Found::Buffered);
    }

    /// The share that found nothing to do. `None`: of no operation it is known.
    #[must_use]
    pub fn nothing_share(&self) -> Option<f64> {
        share(self.nothing, self.known)
    }

    /// The share that found everything in a buffer. `None`: of no operation the device tells it.
    #[must_use]
    pub fn buffered_share(&self) -> Option<f64> {
        share(self.buffered, self.told)
    }
}

impl FromIterator<Found> for Finds {
    fn from_iter<I: IntoIterator<Item = Found>>(all: I) -> Self {
        let mut finds = Self::default();
        all.into_iter().for_each(|found| finds.record(found));
        finds
    }
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

impl AddAssign for Finds {
    fn add_assign(&mut self, other: Self) {
        self.known += other.known;
        self.told += other.told;
        self.nothing += other.nothing;
        self.buffered += other.buffered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_is_known() {
        let mut finds = Finds::default();
        assert_eq!(finds.nothing_share(), None);
        finds.record(Found::Unknown);
        assert_eq!(
            finds.nothing_share(),
            None,
            "no claim of a device that does not tell"
        );
        for found in [
            Found::Nothing,
            Found::Work(3),
            Found::Buffered,
            Found::Work(0),
        ] {
            finds.record(found);
        }
        let mut all = finds;
        all += finds;
        assert_eq!((all.known, all.nothing, all.buffered), (8, 2, 2));
        assert_eq!(
            (all.nothing_share(), all.buffered_share()),
            (Some(0.25), Some(0.25))
        );
        all.record(Found::Presumed { nothing: true });
        all.record(Found::Presumed { nothing: false });
        assert_eq!((all.known, all.told, all.nothing), (10, 8, 3));
    }
}
