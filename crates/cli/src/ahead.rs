//! How long runs in real time take.

use zonelab_device::{DeviceInfo, Nanos};
use zonelab_lab::run::{Point, Prepared, Preparing};

/// How long runs in real time take, as far as that is known before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// What is measured takes so long at most.
    measured: Nanos,
    /// Runs besides that end when they have done something.
    open: usize,
    /// What is done to zones before.
    preparing: Preparing,
}

impl Ahead {
    /// What each of `points` takes when they run one after another. On a device from
    /// outside, which `info` is about, zones are prepared before.
    pub(crate) fn of_each(points: &[&Point], info: Option<&DeviceInfo>) -> Vec<Self> {
        let preparing = match info {
            Some(info) => Preparing::before_each(points.iter().copied(), info),
            None => vec![Preparing::default(); points.len()],
        };
        let each = points.iter().zip(preparing);
        each.map(|(point, preparing)| {
            let longest = point.longest();
            Self {
                measured: longest.unwrap_or(Nanos::ZERO),
                open: usize::from(longest.is_none()),
                preparing,
            }
        })
        .collect()
    }

    /// What is left when `done` is done.
    pub(crate) fn without(&self, done: &Self) -> Self {
        let (all, less) = (self.preparing, done.preparing);
        Self {
            measured: self.measured.saturating_sub(done.measured),
            open: self.open.saturating_sub(done.open),
            preparing: Preparing {
                resets: all.resets.saturating_sub(less.resets),
                fill_bytes: all.fill_bytes.saturating_sub(less.fill_bytes),
            },
        }
    }

    /// How long all of it takes but for runs that end with their work, by what preparing zones
    /// took so far; before any was filled, as if the drive filled them at [`GUESSED_FILL`].
    fn total(&self, so_far: &Prepared) -> Nanos {
        let guess = || self.preparing.fill_bytes.saturating_mul(1_000_000_000) / GUESSED_FILL;
        let preparing = so_far.estimate(self.preparing);
        let preparing = preparing.unwrap_or_else(|| Nanos(guess()));
        self.measured.saturating_add(preparing)
    }

    /// How long one of so many like it takes, and `left` of them, in words.
    pub(crate) fn to_go(self, (left, of): (usize, usize), so_far: &Prepared) -> String {
        let total = u128::from(self.total(so_far).0) * left as u128 / of.max(1) as u128;
        let besides = match self.open {
            0 => "",
            _ => ", and runs that end with their work",
        };
        format!("about {} s to go{besides}", total.div_ceil(1_000_000_000))
    }

    /// In words, by what preparing zones took so far.
    pub(crate) fn words(&self, so_far: &Prepared) -> String {
        let seconds = |time: Nanos| time.0.div_ceil(1_000_000_000);
        let Preparing { resets, fill_bytes } = self.preparing;
        let mut parts = Vec::new();
        if self.measured > Nanos::ZERO || self.open == 0 {
            let what = if resets > 0 { " for measuring" } else { "" };
            parts.push(format!("at most {} s to go{what}", seconds(self.measured)));
        }
        if self.open > 0 {
            parts.push(format!("runs that end with their work: {}", self.open));
        }
        if resets > 0 {
            let gib = fill_bytes as f64 / (1_u64 << 30) as f64;
            let of = format!("up to {resets} resets, and {gib:.1} GiB that fill zones");
            let known = so_far.estimate(self.preparing);
            parts.push(match known {
                Some(time) => format!("about {} s for preparing zones ({of})", seconds(time)),
                // Nobody knows the drive: the first zones will tell.
                None => format!("and preparing zones ({of}: {gib:.0} s at 1 GiB/s)"),
            });
            let as_if = if known.is_none() { " at that rate" } else { "" };
            let besides = match self.open {
                0 => "",
                _ => " besides the runs that end with their work",
            };
            let total = seconds(self.total(so_far));
            parts.push(format!("{total} s in all{as_if}{besides}"));
        }
        parts.join(", ")
    }
}

/// Bytes a second at which a drive is taken to fill zones before it has filled any.
const GUESSED_FILL: u64 = 1 << 30;

impl std::iter::Sum for Ahead {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |sum, one| Self {
            measured: sum.measured.saturating_add(one.measured),
            open: sum.open + one.open,
            preparing: [sum.preparing, one.preparing].into_iter().sum(),
        })
    }
}
