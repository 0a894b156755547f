//! Which zone the collector empties next.
//!
//! | policy | takes | time | memory |
//! | --- | --- | --- | --- |
//! | [`Policy::Greedy`] | the zone with the fewest valid blocks | a look at each zone | none |
//! | [`Policy::CostBenefit`] | the zone with the best space gained times age, by cost | a look at each zone | none |
//! | [`Policy::Fifo`] | the zone that was closed longest ago | a look at each zone | none |
//! | [`Policy::DChoices`] | of `d` zones that are drawn, the one with the fewest valid blocks | `d` looks | one list of zones |
//! | [`Policy::WindowedGreedy`] | of the `window` zones that were closed longest ago, the one with the fewest valid blocks | sorts the zones | one list of zones |
//!
//! A look is two loads of a word each. A zone is collected once for every zone that is
//! written, so that even a look at each of 20,000 zones is nothing beside it.

use zonelab_host::Rng;

use crate::blocks::DataZone;
use crate::error::FtlError;
use crate::zones::{ZoneTable, ZoneUse};

/// How victims are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// The fewest valid blocks; of equals, the one that was closed first.
    #[default]
    Greedy,
    /// The largest `(1 - u) * age / (1 + u)`, `u` being the share of valid blocks:
    /// Rosenblum and Ousterhout's, with the number of zones closed since as age.
    CostBenefit,
    /// In the order of closing.
    Fifo,
    /// The fewest valid blocks of `d` zones that are drawn.
    DChoices {
        /// How many are drawn, at least 1.
        d: u32,
    },
    /// The fewest valid blocks of those that were closed first.
    WindowedGreedy {
        /// How many of them, at least 1.
        window: u32,
    },
}

impl Policy {
    /// Names, as settings have them.
    pub const NAMES: &str =
        "greedy, cost-benefit, fifo, d-choices:N or windowed-greedy:N (N at least 1)";

    /// Reads a name.
    ///
    /// # Errors
    /// There is no such policy, or its number is not one.
    pub fn parse(text: &str) -> Result<Self, FtlError> {
        let error = || FtlError::setting("victims", text, Self::NAMES);
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => {
                let number = number.parse().ok().filter(|number| *number >= 1);
                (name, Some(number.ok_or_else(error)?))
            }
            None => (text, None),
        };
        match (name, number) {
            ("greedy", None) => Ok(Self::Greedy),
            ("cost-benefit", None) => Ok(Self::CostBenefit),
            ("fifo", None) => Ok(Self::Fifo),
            ("d-choices", Some(d)) => Ok(Self::DChoices { d }),
            ("windowed-greedy", Some(window)) => Ok(Self::WindowedGreedy { window }),
            _ => Err(error()),
        }
    }
}

impl core::fmt::Display for Policy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Greedy => f.write_str("greedy"),
            Self::CostBenefit => f.write_str("cost-benefit"),
            Self::Fifo => f.write_str("fifo"),
            Self::DChoices { d } => write!(f, "d-choices:{d}"),
            Self::WindowedGreedy { window } => write!(f, "windowed-greedy:{window}"),
        }
    }
}

/// Chooses victims.
#[derive(Debug)]
pub struct Victims {
    policy: Policy,
    /// Data blocks of a zone.
    blocks: u32,
    rng: Rng,
    scratch: Vec<DataZone>,
}

impl Victims {
    /// Chooses among zones of `blocks` data blocks.
    #[must_use]
    pub const fn new(policy: Policy, blocks: u32, rng: Rng) -> Self {
        Self {
            policy,
            blocks,
            rng,
            scratch: Vec::new(),
        }
    }

    /// The next victim: a closed zone of which a block at least is not valid; `None`:
    /// there is none. A zone that holds nothing valid comes first, whatever the policy;
    /// and if the least possible is to be moved (`is_critical`), the one with the fewest
    /// valid blocks.
    pub fn choose(&mut self, zones: &ZoneTable, is_critical: bool) -> Option<DataZone> {
        let blocks = self.blocks;
        let candidates = zones.all().filter(|zone| {
            zones.state(*zone) == ZoneUse::Closed && zones.valid(*zone) < blocks
        });
        let greedy = |zone: &DataZone| (zones.valid(*zone), zones.closed_as(*zone));
        let is_empty = |zone: &DataZone| zones.valid(*zone) == 0;
        if let Some(empty) = candidates.clone().find(is_empty) {
            return Some(empty);
        }
        match self.policy {
            _ if is_critical => candidates.min_by_key(greedy),
            Policy::Greedy => candidates.min_by_key(greedy),
            Policy::Fifo => candidates.min_by_key(|zone| zones.closed_as(*zone)),
            Policy::CostBenefit => candidates.reduce(|best, zone| {
                match self.benefit(zones, zone) > self.benefit(zones, best) {
                    true => zone,
                    false => best,
                }
            }),
            Policy::DChoices { d } => {
                self.scratch.clear();
                self.scratch.extend(candidates);
                let count = self.scratch.len() as u64;
                if count == 0 {
                    return None;
                }
                let drawn = (0..d).map(|_| self.scratch[self.rng.below(count) as usize]);
                drawn.min_by_key(greedy)
            }
            Policy::WindowedGreedy { window } => {
                self.scratch.clear();
                self.scratch.extend(candidates);
                let oldest = |zone: &DataZone| zones.closed_as(*zone);
                self.scratch.sort_unstable_by_key(oldest);
                let window = self.scratch.iter().take(window as usize);
                window.copied().min_by_key(greedy)
            }
        }
    }

    /// What collecting a zone is worth.
    fn benefit(&self, zones: &ZoneTable, zone: DataZone) -> f64 {
        let share = f64::from(zones.valid(zone)) / f64::from(self.blocks);
        let age = (zones.closings() - zones.closed_as(zone)) as f64;
        (1.0 - share) * age / (1.0 + share)
    }
}
