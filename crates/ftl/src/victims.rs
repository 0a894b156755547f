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
//! Somebody else's rule is a [`VictimPolicy`], which [`OwnVictims`] puts into the settings.
//!
//! A look is two loads of a word each. A zone is collected once for every zone that is
//! written, so that even a look at each of 20,000 zones is nothing beside it.

use std::sync::Arc;

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

/// Chooses victims by a rule of its own.
///
/// It is asked when zones are short, once for every zone that is collected, and not if
/// there is no choice: a zone that holds nothing valid comes first whatever the rule, and
/// if the least possible has to be moved, the zone with the fewest valid blocks.
pub trait VictimPolicy: core::fmt::Debug {
    /// Its name in messages.
    fn name(&self) -> &str;

    /// The next victim, by its position among the candidates, which are in the order of
    /// their numbers.
    ///
    /// # Errors
    /// What keeps it from answering ([`FtlError::Victims`]). The layer then writes nothing
    /// any more.
    fn choose(&mut self, candidates: &[VictimCandidate]) -> Result<usize, FtlError>;
}

/// A closed zone that can be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VictimCandidate {
    /// The zone.
    pub zone: DataZone,
    /// Blocks in it that hold something: at least 1.
    pub valid: u32,
    /// Blocks that it has.
    pub blocks: u32,
    /// Its place in the order of closing: the smaller, the longer ago.
    pub closed_as: u64,
    /// Zones that were closed since it was.
    pub age: u64,
}

/// Makes a [`VictimPolicy`] for each mount, in place of [`Policy`].
#[derive(Clone)]
pub struct OwnVictims(Arc<dyn Fn() -> Box<dyn VictimPolicy> + Send + Sync>);

impl OwnVictims {
    /// Each mount has a policy of its own.
    #[must_use]
    pub fn new(make: impl Fn() -> Box<dyn VictimPolicy> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// A policy.
    pub(crate) fn make(&self) -> Box<dyn VictimPolicy> {
        (self.0)()
    }
}

impl core::fmt::Debug for OwnVictims {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("OwnVictims")
    }
}

impl PartialEq for OwnVictims {
    /// Whether both are copies of one.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Chooses victims.
#[derive(Debug)]
pub struct Victims {
    policy: Policy,
    own: Option<Box<dyn VictimPolicy>>,
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
            own: None,
            blocks,
            rng,
            scratch: Vec::new(),
        }
    }

    /// The same by somebody else's rule, if there is one.
    #[must_use]
    pub fn by(mut self, own: Option<Box<dyn VictimPolicy>>) -> Self {
        self.own = own;
        self
    }

    /// The next victim: a closed zone of which a block at least is not valid; `None`:
    /// there is none. A zone that holds nothing valid comes first, whatever the policy;
    /// and if the least possible is to be moved (`is_critical`), the one with the fewest
    /// valid blocks.
    ///
    /// # Errors
    /// [`FtlError::Victims`]: somebody else's rule gave no answer.
    pub fn choose(
        &mut self,
        zones: &ZoneTable,
        is_critical: bool,
    ) -> Result<Option<DataZone>, FtlError> {
        let blocks = self.blocks;
        let candidates = zones
            .all()
            .filter(|zone| zones.state(*zone) == ZoneUse::Closed && zones.valid(*zone) < blocks);
        let greedy = |zone: &DataZone| (zones.valid(*zone), zones.closed_as(*zone));
        let is_empty = |zone: &DataZone| zones.valid(*zone) == 0;
        if let Some(empty) = candidates.clone().find(is_empty) {
            return Ok(Some(empty));
        }
        if let Some(own) = self.own.as_mut().filter(|_| !is_critical) {
            let candidates: Vec<_> = candidates
                .map(|zone| VictimCandidate {
                    zone,
                    valid: zones.valid(zone),
                    blocks,
                    closed_as: zones.closed_as(zone),
                    age: zones.closings().saturating_sub(zones.closed_as(zone)),
                })
                .collect();
            return chosen_by(own.as_mut(), &candidates);
        }
        Ok(match self.policy {
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
                    return Ok(None);
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
        })
    }

    /// What collecting a zone is worth.
    fn benefit(&self, zones: &ZoneTable, zone: DataZone) -> f64 {
        let share = f64::from(zones.valid(zone)) / f64::from(self.blocks);
        let age = (zones.closings() - zones.closed_as(zone)) as f64;
        (1.0 - share) * age / (1.0 + share)
    }
}

/// The candidate that somebody else's rule chooses; `None`: there is none.
fn chosen_by(
    own: &mut dyn VictimPolicy,
    candidates: &[VictimCandidate],
) -> Result<Option<DataZone>, FtlError> {
    if candidates.is_empty() {
        return Ok(None);
    }
    let position = own.choose(candidates)?;
    match candidates.get(position) {
        Some(chosen) => Ok(Some(chosen.zone)),
        None => Err(FtlError::Victims {
            policy: own.name().to_owned(),
            message: format!(
                "it chose candidate {position}: it has to be a position among the {} candidates",
                candidates.len()
            ),
        }),
    }
}
