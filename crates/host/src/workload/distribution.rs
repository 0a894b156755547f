//! Where in a range of blocks a random operation goes.

use std::sync::Arc;

use crate::rng::Rng;

/// How random positions are distributed over a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Every position is equally likely.
    #[default]
    Uniform,
    /// Zipf's law: the position of rank `k` has a probability proportional to
    /// `k^-theta`. Ranks are scattered over the range.
    Zipf {
        /// The exponent, above 0 and not above 100.
        theta: f64,
    },
    /// Pareto's law in the form of "a share of `h` of the positions gets
    /// `1 - h` of the operations". Ranks are scattered over the range.
    Pareto {
        /// The share, between 0 and 1, both excluded.
        h: f64,
    },
    /// A share of the positions, the hot ones, gets another share of the operations;
    /// within each of the two parts every position is equally likely. Hot positions are
    /// scattered over the range.
    HotCold {
        /// The share of the positions that are hot, between 0 and 1, both excluded.
        hot: f64,
        /// The share of the operations that they get, from 0 to 1.
        operations: f64,
    },
    /// The normal distribution about the middle of the range. Positions
    /// outside are drawn again.
    Normal {
        /// The standard deviation, in percent of the range, above 0.
        deviation: f64,
    },
    /// Parts of the range, one behind the other, each with its share of the operations; within a
    /// part every position is equally likely. What lies behind the last gets none.
    Parts(Arc<[Part]>),
}

/// A part of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Its share of the operations, from 0 to 1; those of all parts add up to 1.
    pub operations: f64,
    /// How much of the range it is.
    pub extent: Extent,
}

/// How much of a range a part is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// A share, from 0 to 1.
    Share(f64),
    /// So many bytes.
    Bytes(u64),
}

impl Distribution {
    /// The same over a range of so many bytes: parts in bytes become shares.
    #[must_use]
    pub fn over(&self, bytes: u64) -> Self {
        let Self::Parts(parts) = self else {
            return self.clone();
        };
        let part = |part: &Part| Part {
            extent: Extent::Share(part.extent.of(bytes)),
            ..*part
        };
        Self::Parts(parts.iter().map(part).collect())
    }
}

impl Extent {
    /// The share that it is of so many bytes.
    fn of(self, bytes: u64) -> f64 {
        match self {
            Self::Share(share) => share,
            Self::Bytes(own) => own as f64 / bytes.max(1) as f64,
        }
    }
}

/// 2^64 divided by the golden ratio, made odd: steps of it scatter evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Draws of a normal position before the middle is taken: outside the range
/// are half of all at a deviation of about 75 %.
const NORMAL_DRAWS: u32 = 64;

/// Draws positions of a [`Distribution`] over a range of `n`.
#[derive(Clone, Debug)]
pub struct Positions {
    n: u64,
    /// What scatters ranks: see [`step_for`].
    step: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Zipf(Zipf),
    Pareto {
        exponent: f64,
    },
    /// Hot positions, and the share of operations that they get.
    HotCold {
        hot: u64,
        operations: f64,
    },
    Normal {
        deviation: f64,
    },
    /// Up to which share of the operations, and up to which position, each part goes.
    Parts(Box<[(f64, u64)]>),
}

impl Positions {
    /// Positions from 0 to `n - 1`; `n` is at least 1.
    #[must_use]
    pub fn new(distribution: &Distribution, n: u64) -> Self {
        let n = n.max(1);
        let kind = match *distribution {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Zipf { theta } => Kind::Zipf(Zipf::new(theta, n)),
            Distribution::Pareto { h } => Kind::Pareto {
                exponent: libm::log(h) / libm::log(1.0 - h),
            },
            Distribution::HotCold { hot, operations } => Kind::HotCold {
                // Of more than one position, one at least is hot and one is not.
                hot: ((n as f64 * hot) as u64).clamp(1, (n - 1).max(1)),
                operations,
            },
            Distribution::Normal { deviation } => Kind::Normal {
                deviation: deviation / 100.0 * n as f64,
            },
            Distribution::Parts(ref parts) => {
                let mut ends = (0.0, 0.0);
                let end = |part: &Part| {
                    ends.0 += part.operations;
                    ends.1 += part.extent.of(n);
                    (ends.0, ((ends.1 * n as f64).round() as u64).clamp(1, n))
                };
                Kind::Parts(parts.iter().map(end).collect())
            }
        };
        let step = step_for(n);
        Self { n, step, kind }
    }

    /// The next position.
    #[inline]
    pub fn next(&self, rng: &mut Rng) -> u64 {
        match self.kind {
            Kind::Uniform => rng.below(self.n),
            _ => self.next_of_some(rng),
        }
    }

    /// The next position where some are more likely than others.
    fn next_of_some(&self, rng: &mut Rng) -> u64 {
        match &self.kind {
            Kind::Uniform => rng.below(self.n),
            Kind::Zipf(zipf) => self.scatter(zipf.next(rng) - 1),
            Kind::Pareto { exponent } => {
                let rank = (self.n - 1) as f64 * libm::pow(rng.unit(), *exponent);
                self.scatter((rank as u64).min(self.n - 1))
            }
            Kind::HotCold { hot, operations } => {
                let is_hot = rng.unit() < *operations || *hot == self.n;
                let rank = match is_hot {
                    true => rng.below(*hot),
                    false => hot + rng.below(self.n - hot),
                };
                self.scatter(rank)
            }
            Kind::Normal { deviation } => self.normal(*deviation, rng),
            Kind::Parts(ends) => {
                let drawn = rng.unit();
                let part = ends.iter().position(|(share, _)| drawn < *share);
                let part = part.unwrap_or(ends.len().saturating_sub(1));
                let end = ends.get(part).map_or(self.n, |(_, end)| *end);
                let start = part.checked_sub(1).map_or(0, |before| ends[before].1);
                // A part may be less than a position.
                let start = start.min(end - 1);
                start + rng.below(end - start)
            }
        }
    }

    /// Spreads ranks over the range: a rank keeps its place for a given `n`,
    /// and neighbouring ranks are far apart. Every place has one rank.
    #[inline]
    fn scatter(&self, rank: u64) -> u64 {
        let n = u128::from(self.n);
        ((u128::from(rank) * u128::from(self.step) + n / 3) % n) as u64
    }

    fn normal(&self, deviation: f64, rng: &mut Rng) -> u64 {
        let middle = (self.n / 2) as f64;
        for _ in 0..NORMAL_DRAWS {
            // Box and Muller; the second value of each pair is not used, so
            // that a draw depends on nothing but the generator.
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.unit()));
            let angle = core::f64::consts::TAU * rng.unit();
            let at = middle + deviation * radius * libm::cos(angle);
            if at >= 0.0 && at < self.n as f64 {
                return (at as u64).min(self.n - 1);
            }
        }
        self.n / 2
    }
}

/// About `n` over the golden ratio, without a common divisor with `n`.
fn step_for(n: u64) -> u64 {
    let mut step = ((u128::from(GOLDEN) * u128::from(n)) >> 64) as u64 | 1;
    while gcd(step, n) != 1 {
        step += 2;
    }
    step
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Zipf's law over ranks 1 to `n` by rejection-inversion (Hörmann and
/// Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", 1996): exact, without a table, and about one draw
/// per value.
#[derive(Clone, Debug)]
pub struct Zipf {
    theta: f64,
    n: u64,
    /// Integral of the hat at the ends of its range.
    low: f64,
    high: f64,
    /// Values this close below a rank are accepted without a look.
    shortcut: f64,
}

impl Zipf {
    /// Ranks 1 to `n`, at least 1, with probabilities proportional to `k^-theta`.
    #[must_use]
    pub fn new(theta: f64, n: u64) -> Self {
        let mut zipf = Self {
            theta,
            n,
            low: 0.0,
            high: 0.0,
            shortcut: 0.0,
        };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf.resize(n);
        zipf
    }

    /// Changes the number of ranks; costs about as much as a draw.
    pub fn resize(&mut self, n: u64) {
        self.n = n.max(1);
        self.high = self.integral(self.n as f64 + 0.5);
    }

    /// Number of ranks.
    #[must_use]
    pub const fn ranks(&self) -> u64 {
        self.n
    }

    /// The next rank.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(area);
            // The cast saturates, and not-a-number becomes 0.
            let rank = ((x + 0.5) as u64).clamp(1, self.n);
            let k = rank as f64;
            if k - x <= self.shortcut || area >= self.integral(k + 0.5) - self.weight(k) {
                return rank;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// Integral of `x^-theta` from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        expm1_over((1.0 - self.theta) * log) * log
    }

    fn inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.theta)).max(-1.0);
        libm::exp(log1p_over(t) * area)
    }
}

/// `(e^x - 1) / x`, also near 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        libm::expm1(x) / x
    } else {
        1.0 + x / 2.0
    }
}

/// `ln(1 + x) / x`, also near 0.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        libm::log1p(x) / x
    } else {
        1.0 - x / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(distribution: Distribution, n: u64, draws: u32) -> Vec<u32> {
        let positions = Positions::new(&distribution, n);
        let mut rng = Rng::new(3, 0);
        let mut counts = vec![0; n as usize];
        for _ in 0..draws {
            counts[positions.next(&mut rng) as usize] += 1;
        }
        counts
    }

    #[test]
    fn zipf_has_its_probabilities() {
        // Weights 1, 1/2, 1/3, ... of theta 1 over 100 ranks: the sum is 5.18738.
        for (theta, sum) in [(1.0, 5.187_377_5), (1.2, 3.603_032_9), (0.5, 18.589_603_8)] {
            let mut counts = counts(Distribution::Zipf { theta }, 100, 200_000);
            counts.sort_unstable_by(|a, b| b.cmp(a));
            for rank in [1_u32, 2, 5] {
                let expected = 200_000.0 * libm::pow(f64::from(rank), -theta) / sum;
                let got = f64::from(counts[rank as usize - 1]);
                let sigma = expected.sqrt();
                assert!(
                    (got - expected).abs() < 5.0 * sigma + 60.0,
                    "theta {theta}, rank {rank}: {got} for {expected}"
                );
            }
        }
    }

    #[test]
    fn pareto_gives_its_share() {
        // h = 0.2: a fifth of the positions gets four fifths of the draws.
        let mut counts = counts(Distribution::Pareto { h: 0.2 }, 1_000, 100_000);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let fifth: u32 = counts[..200].iter().sum();
        assert!(fifth.abs_diff(80_000) < 1_500, "{fifth}");
    }

    #[test]
    fn hot_positions_get_their_share_evenly() {
        let (hot, operations) = (0.2, 0.8);
        let mut counts = counts(Distribution::HotCold { hot, operations }, 1_000, 100_000);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (hot, cold) = counts.split_at(200);
        let of_hot: u32 = hot.iter().sum();
        assert!(of_hot.abs_diff(80_000) < 700, "{of_hot}");
        // 400 and 25 draws each: six deviations to either side.
        assert!(hot.iter().all(|draws| draws.abs_diff(400) < 120), "{hot:?}");
        assert!(cold.iter().all(|draws| draws.abs_diff(25) < 30), "{cold:?}");
    }

    #[test]
    fn normal_is_centred_and_as_wide_as_asked() {
        let counts = counts(Distribution::Normal { deviation: 10.0 }, 1_000, 100_000);
        let within: u32 = counts[400..600].iter().sum();
        // One deviation to either side holds 68.3 %.
        assert!(within.abs_diff(68_270) < 1_500, "{within}");
    }

    #[test]
    fn every_position_can_come() {
        for n in [1, 2, 3, 7, 64] {
            for distribution in [
                Distribution::Uniform,
                Distribution::Zipf { theta: 0.3 },
                Distribution::HotCold {
                    hot: 0.3,
                    operations: 0.6,
                },
                Distribution::Normal { deviation: 40.0 },
            ] {
                let counts = counts(distribution.clone(), n, 20_000);
                assert!(counts.iter().all(|&c| c > 0), "{distribution:?} over {n}");
            }
        }
    }

    #[test]
    fn scattering_loses_no_position() {
        for n in [1, 2, 10, 97, 1_024] {
            let positions = Positions::new(&Distribution::Uniform, n);
            let mut seen: Vec<u64> = (0..n).map(|rank| positions.scatter(rank)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parts_get_their_shares_and_nothing_else_does() {
        let part = |operations, extent| Part { operations, extent };
        let shares = [(0.5, 0.05), (0.3, 0.15), (0.2, 0.8)];
        let of = |of_extent: &dyn Fn(f64) -> Extent| {
            let parts = shares
                .iter()
                .map(|(ops, size)| part(*ops, of_extent(*size)));
            Distribution::Parts(parts.collect())
        };
        let by_share = of(&Extent::Share);
        let by_bytes = of(&|size| Extent::Bytes((size * 4_096_000.0) as u64)).over(4_096_000);
        for distribution in [by_share, by_bytes] {
            let counts = counts(distribution, 1_000, 200_000);
            for (range, share) in [(0..50, 0.5), (50..200, 0.3), (200..1_000, 0.2)] {
                let got = f64::from(counts[range].iter().sum::<u32>()) / 200_000.0;
                assert!((got - share).abs() < 0.01, "{got} of {share}");
            }
        }
        // Half of a range, and the rest gets nothing; parts of less than a position are one.
        let half = Distribution::Parts([part(1.0, Extent::Bytes(500))].into()).over(1_000);
        assert!(counts(half, 10, 1_000)[5..].iter().all(|count| *count == 0));
        let thin = [part(0.5, Extent::Share(0.0)), part(0.5, Extent::Share(1.0))];
        assert_eq!(counts(Distribution::Parts(thin.into()), 1, 10), [10]);
    }
}
