//! Points that are chosen while a sweep runs, from what was measured so far.
//!
//! Such a sweep begins with few points or none, and grows: whenever every task is done,
//! the next points are chosen from the costs of those that there are. Which ones these are
//! follows from the pack and the costs alone, so that a sweep that was interrupted grows as
//! it would have without. What is better, how points are chosen and how many there may be is
//! no part of what a pack *is*: with other objectives the same points are looked at anew.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zonelab_lab::space::{Constraint, Names};
use zonelab_lab::space::{Knob, Values, Wrong};
use zonelab_lab::space::{Sample, Space};

use super::evolve::{self, Evolution};
use super::pack::{Key, Pack};
use super::pareto::Cost;

/// Points to choose, unless it is said how many.
pub const BUDGET: u32 = 100;
/// Most keys of a search: the first sample has the ends of each.
pub(crate) const MAX_KEYS: usize = 16;
/// Least and greatest number of objectives: with one there is no trade, and hypervolumes of
/// more than four take long.
pub(crate) const OBJECTIVES: (usize, usize) = (2, 4);

/// What points may be chosen, and how many.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Adaptive {
    /// The keys with what they may be, in the order of those of the pack.
    pub(crate) knobs: Vec<Knob>,
    /// What points have to fulfil.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) constraints: Vec<String>,
    /// Points to choose, at most.
    pub budget: u32,
    /// The values that the file has of the keys, if the first point is the file as it is:
    /// of each key as it is written, `None` if the file does not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Vec<Option<String>>>,
}

impl Adaptive {
    /// Whether there is something to choose for each key, in their order, and constraints
    /// are of these keys: what was read from a file need not be what was written.
    pub(super) fn is_of(&self, keys: &[Key]) -> bool {
        let is_of = self.knobs.len() == keys.len() && self.knobs.iter().all(Knob::has_values);
        is_of && self.constraints(&self.names(keys)).is_ok()
    }

    /// What constraints may speak of.
    fn names(&self, keys: &[Key]) -> Names {
        let keys = keys.iter().zip(&self.knobs);
        Names::of(keys.map(|(key, knob)| (key.name.as_str(), knob.listed())))
    }

    fn constraints(&self, names: &Names) -> Result<Vec<Constraint>, Wrong> {
        let texts = self.constraints.iter();
        texts.map(|text| Constraint::parse(text, names)).collect()
    }

    /// Points that there are from the beginning.
    pub(super) fn fixed(&self) -> usize {
        usize::from(self.own.is_some())
    }

    /// Points that are chosen, at most.
    #[must_use]
    pub fn most(&self, sample: Sample) -> usize {
        let size = match sample {
            Sample::Grid => grid_size(&self.knobs),
            _ => space_size(&self.knobs),
        };
        usize::try_from(size.min(self.budget.into())).unwrap_or(usize::MAX)
    }
}

/// Combinations of a grid.
pub(crate) fn grid_size(knobs: &[Knob]) -> u64 {
    let sizes = knobs.iter().map(|knob| knob.grid().len() as u64);
    sizes.fold(1, u64::saturating_mul)
}

/// Points that there are.
fn space_size(knobs: &[Knob]) -> u64 {
    knobs.iter().map(Knob::count).fold(1, u64::saturating_mul)
}

/// How points are chosen.
#[derive(Debug)]
enum Method {
    /// All combinations at once; `None` when they were given.
    Grid(Option<Vec<Values>>),
    /// Near the front.
    Evolve(Box<Evolution>),
}

/// Chooses the points of a sweep, round by round.
#[derive(Debug)]
pub(super) struct Chooser {
    knobs: Vec<Knob>,
    names: Names,
    constraints: Vec<Constraint>,
    method: Method,
    budget: usize,
    /// Places of points that were chosen, by any method and for any objectives.
    known: BTreeMap<Values, usize>,
    /// What the method waits for the costs of.
    asked: Vec<Values>,
    /// The points that there were, before any was chosen.
    fixed: usize,
    /// Points whose costs the method was told.
    told: usize,
    /// Whether it asked for them in the order in which they are there.
    is_in_order: bool,
}

impl Chooser {
    /// Chooses the points of a pack, of which those that it has are known.
    pub(super) fn new(pack: &Pack, adaptive: &Adaptive) -> Self {
        let knobs = adaptive.knobs.clone();
        let names = adaptive.names(&pack.keys);
        // Who made the pack, or read it, saw that they are some.
        let constraints = adaptive.constraints(&names).unwrap_or_default();
        let budget = adaptive.budget as usize;
        let method = match pack.sample {
            Sample::Grid => Method::Grid(Some(evolve::grid(&knobs))),
            _ => {
                let seed = pack.inputs.seed;
                Method::Evolve(Box::new(Evolution::new(knobs.clone(), budget, seed)))
            }
        };
        let mut chooser = Self {
            constraints,
            names,
            knobs,
            method,
            budget,
            known: BTreeMap::new(),
            asked: Vec::new(),
            fixed: adaptive.fixed(),
            told: 0,
            is_in_order: true,
        };
        for (place, texts) in pack.points.iter().enumerate() {
            chooser.add(place, texts);
        }
        chooser
    }

    /// Whether texts are the values of a point.
    pub(super) fn is_point(&self, texts: &[String]) -> bool {
        Knob::values_of(&self.knobs, texts).is_some()
    }

    /// The point at this place is one that was chosen before.
    pub(super) fn add(&mut self, place: usize, texts: &[String]) {
        if let Some(values) = Knob::values_of(&self.knobs, texts) {
            self.known.insert(values, place);
        }
    }

    /// The points to run next, as they are written; none: there are enough of them. `cost`
    /// gives the cost of the point at a place; every point that there is has been run.
    pub(super) fn next(&mut self, cost: &dyn Fn(usize) -> Cost) -> Vec<Vec<String>> {
        loop {
            if self.asked.is_empty() {
                self.asked = self.ask();
            }
            if self.asked.is_empty() {
                return Vec::new();
            }
            let unknown = |values: &&Values| !self.known.contains_key(*values);
            let missing: Vec<&Values> = self.asked.iter().filter(unknown).collect();
            if missing.is_empty() {
                let asked = std::mem::take(&mut self.asked);
                for values in &asked {
                    self.is_in_order &= self.known[values] == self.fixed + self.told;
                    self.told += 1;
                }
                let costs = asked
                    .iter()
                    .map(|values| cost(self.known[values]))
                    .collect();
                if let Method::Evolve(evolution) = &mut self.method {
                    evolution.tell(costs);
                }
                continue;
            }
            // Of more than there is room for the first are run, and after them none.
            let room = self.budget.saturating_sub(self.known.len());
            let texts = missing.into_iter().take(room);
            return texts
                .map(|values| Knob::texts(&self.knobs, values))
                .collect();
        }
    }

    /// Whether it asked for every point that there is, in their order: none is of another
    /// search. Asked when there are enough of them.
    pub(super) fn asked_for_all(&self) -> bool {
        let left = self.asked.iter().map(|values| self.known.get(values));
        let left: Vec<&usize> = left.flatten().collect();
        let places = self.fixed + self.told..;
        self.is_in_order
            && left
                .iter()
                .zip(places)
                .all(|(place, wanted)| **place == wanted)
            && self.told + left.len() == self.known.len()
    }

    /// Points on the front, as far as the method was told; `None`: it does not look at it.
    pub(super) fn on_front(&self) -> Option<usize> {
        match &self.method {
            Method::Grid(_) => None,
            Method::Evolve(evolution) => Some(evolution.on_front()),
        }
    }

    fn ask(&mut self) -> Vec<Values> {
        let space = Space {
            knobs: &self.knobs,
            names: &self.names,
            constraints: &self.constraints,
        };
        match &mut self.method {
            Method::Grid(all) => space.kept(all.take().unwrap_or_default()),
            Method::Evolve(evolution) => evolution.ask(&|values| space.holds(values)),
        }
    }
}
