//! Which candidates are looked at: all of a grid, or those near the front.

use std::collections::{BTreeSet, VecDeque};

use zonelab_host::Rng;
use zonelab_lab::space::{Knob, Values};

use super::pareto::{self, Cost};

/// Candidates of a round; they do not know of each other's results, so that
/// they can be evaluated side by side.
const ROUND: usize = 8;
/// Rounds without progress after which the search ends.
const IDLE: u32 = 5;
/// A hypervolume that grows by less than this share is no progress.
const PROGRESS: f64 = 1e-3;
/// Widest and smallest step of a key, as a share of its range.
const STEP: (f64, f64) = (0.2, 0.01);
/// How far a line through two candidates is followed, from 0 at one to 1 at the other.
const LINE: (f64, f64) = (-0.3, 1.3);
/// Draws for a candidate that was not looked at before.
const DRAWS: u32 = 30;

/// Every combination of the values of a grid, the last key fastest.
pub(super) fn grid(knobs: &[Knob]) -> Vec<Values> {
    let lists: Vec<Values> = knobs.iter().map(Knob::grid).collect();
    let mut digits = vec![0; lists.len()];
    let mut all = Vec::new();
    loop {
        let pairs = lists.iter().zip(&digits);
        all.push(pairs.map(|(list, at)| list[*at]).collect());
        if !advance(&mut digits, |index| lists[index].len()) {
            return all;
        }
    }
}

/// Counts on; `false` after the last number.
fn advance(digits: &mut [usize], base: impl Fn(usize) -> usize) -> bool {
    for index in (0..digits.len()).rev() {
        digits[index] += 1;
        if digits[index] < base(index) {
            return true;
        }
        digits[index] = 0;
    }
    false
}

/// Whether a candidate may be looked at: whether it fulfils the constraints.
pub(super) type Allowed<'a> = dyn Fn(&Values) -> bool + 'a;

/// Looks at up to a number of candidates: corners and a sample that is spread evenly, then
/// rounds of candidates near the front, until it stays where it is.
///
/// [`Self::ask`] gives the candidates of the next round, [`Self::tell`] takes what they
/// cost. What is asked follows from the seed and the costs alone.
#[derive(Debug)]
pub(super) struct Evolution {
    knobs: Vec<Knob>,
    /// Candidates to look at, at most.
    budget: usize,
    rng: Rng,
    spread: Spread,
    /// Candidates that were looked at.
    looked_at: usize,
    /// Those on the front with their costs, in order of the first objective.
    front: Vec<(Values, Vec<f64>)>,
    /// All that were looked at, or are about to be.
    seen: BTreeSet<Values>,
    /// What is left of the first sample; `None` before it is drawn.
    first: Option<VecDeque<Values>>,
    /// Whether what was asked for is a round near the front, and not of the first sample.
    is_in_rounds: bool,
    /// Candidates that were asked for, and whose costs are not known yet.
    asked: Vec<Values>,
    /// Step of a key, as a share of its range.
    step: f64,
    /// Rounds without progress, one after another.
    idle: u32,
}

impl Evolution {
    /// Looks at up to `budget` candidates.
    pub(super) fn new(knobs: Vec<Knob>, budget: usize, seed: u64) -> Self {
        Self {
            budget,
            rng: Rng::new(seed, 0),
            spread: Spread::new(knobs.len(), seed),
            knobs,
            looked_at: 0,
            front: Vec::new(),
            seen: BTreeSet::new(),
            first: None,
            is_in_rounds: false,
            asked: Vec::new(),
            step: STEP.0,
            idle: 0,
        }
    }

    /// The candidates of the next round; none: the search is at its end. What was asked for
    /// before has to be told first.
    pub(super) fn ask(&mut self, allowed: &Allowed<'_>) -> Vec<Values> {
        debug_assert!(
            self.asked.is_empty(),
            "the costs of a round come before the next one"
        );
        if self.first.is_none() {
            self.first = Some(self.first(allowed).into());
        }
        let first = self.first.as_mut().filter(|first| !first.is_empty());
        self.is_in_rounds = first.is_none();
        let mut round: Vec<Values> = match first {
            Some(first) => first.drain(..ROUND.min(first.len())).collect(),
            None if self.idle < IDLE => self.round(allowed),
            None => Vec::new(),
        };
        round.truncate(self.room());
        self.asked.clone_from(&round);
        round
    }

    /// What the candidates cost that were asked for, in their order.
    pub(super) fn tell(&mut self, costs: Vec<Cost>) {
        let asked = std::mem::take(&mut self.asked);
        self.looked_at += asked.len();
        let before: Vec<Vec<f64>> = self.front.iter().map(|(_, cost)| cost.clone()).collect();
        let new = asked.into_iter().zip(costs);
        self.front
            .extend(new.filter_map(|(values, cost)| Some((values, cost?))));
        let costs = self.costs().into_iter();
        let costs: Vec<Cost> = costs.map(|cost| Some(cost.to_vec())).collect();
        let mut on_front = pareto::front(&costs).into_iter();
        self.front.retain(|_| on_front.next().unwrap_or(false));
        self.front.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]));
        if self.is_in_rounds {
            let before: Vec<&[f64]> = before.iter().map(Vec::as_slice).collect();
            if pareto::gain(&before, &self.costs()) > PROGRESS {
                self.idle = 0;
            } else {
                self.idle += 1;
                self.step = f64::max(self.step / 2.0, STEP.1);
            }
        }
    }

    /// Candidates on the front.
    pub(super) fn on_front(&self) -> usize {
        self.front.len()
    }

    /// Candidates that may still be looked at.
    fn room(&self) -> usize {
        self.budget.saturating_sub(self.looked_at)
    }

    fn costs(&self) -> Vec<&[f64]> {
        self.front.iter().map(|(_, cost)| cost.as_slice()).collect()
    }

    /// Corners, if they are few, else the ends of each key alone; then a sample
    /// of the rest. Together a quarter of the budget, or ten for each key.
    fn first(&mut self, allowed: &Allowed<'_>) -> Vec<Values> {
        let keys = self.knobs.len();
        let corners = 1_usize.checked_shl(keys as u32).unwrap_or(usize::MAX);
        let mut first = Vec::new();
        let mut add = |values: Values, seen: &mut BTreeSet<Values>| {
            if allowed(&values) && seen.insert(values.clone()) {
                first.push(values);
            }
        };
        let at = |ends: &dyn Fn(usize) -> bool| -> Values {
            let end = |(index, knob): (usize, &Knob)| knob.value(f64::from(u8::from(ends(index))));
            self.knobs.iter().enumerate().map(end).collect()
        };
        if corners <= self.budget / 4 {
            for corner in 0..corners {
                add(at(&|index| corner >> index & 1 == 1), &mut self.seen);
            }
        } else {
            add(at(&|_| false), &mut self.seen);
            add(at(&|_| true), &mut self.seen);
            for key in 0..keys {
                add(at(&|index| index == key), &mut self.seen);
            }
        }
        let enough = usize::min(self.budget / 4, 10 * keys).max(2 * keys + 2);
        let mut draws = 0;
        while first.len() < enough && draws < 4 * enough {
            draws += 1;
            let values = self.spread.next(&self.knobs);
            if allowed(&values) && self.seen.insert(values.clone()) {
                first.push(values);
            }
        }
        first
    }

    /// Candidates that were not looked at before: most of them near the front,
    /// some anywhere. Empty if there are none, or no room for them.
    fn round(&mut self, allowed: &Allowed<'_>) -> Vec<Values> {
        let step = self.step;
        let parents: Vec<Values> = self
            .front
            .iter()
            .map(|(values, _)| values.clone())
            .collect();
        let crowding = crowding(&self.costs());
        let mut round = Vec::new();
        for number in 0..ROUND.min(self.room()) {
            for _ in 0..DRAWS {
                let values = match number % 4 {
                    _ if parents.is_empty() => self.spread.next(&self.knobs),
                    0 | 1 => self.between(&parents, &crowding),
                    3 if number > 4 => self.spread.next(&self.knobs),
                    _ => self.near(&parents, &crowding, step),
                };
                if allowed(&values) && self.seen.insert(values.clone()) {
                    round.push(values);
                    break;
                }
            }
        }
        round
    }

    /// The emptier part of the front of two that are drawn.
    fn parent(&mut self, crowding: &[f64]) -> usize {
        let count = crowding.len() as u64;
        let (a, b) = (
            self.rng.below(count) as usize,
            self.rng.below(count) as usize,
        );
        if crowding[a] >= crowding[b] { a } else { b }
    }

    /// On the line through two members of the front, or each key from one of
    /// the two or in between.
    fn between(&mut self, parents: &[Values], crowding: &[f64]) -> Values {
        let one = self.parent(crowding);
        // A neighbour along the first objective, or any other.
        let count = parents.len() as u64;
        let other = match self.rng.below(3) {
            0 => self.rng.below(count) as usize,
            1 => (one + 1).min(parents.len() - 1),
            _ => one.saturating_sub(1),
        };
        let (one, other) = (&parents[one], &parents[other]);
        let pairs = self.knobs.iter().zip(one.iter().zip(other));
        let rng = &mut self.rng;
        let along = |knob: &Knob, (one, other): (&u64, &u64), share: f64| {
            let (from, to) = (knob.position(*one), knob.position(*other));
            knob.value(from + (to - from) * share)
        };
        if rng.ratio(1, 2) {
            // A front often goes on in the direction of two of its members.
            let share = LINE.0 + (LINE.1 - LINE.0) * unit(rng);
            return pairs.map(|(knob, ends)| along(knob, ends, share)).collect();
        }
        let mix = |(knob, ends): (&Knob, (&u64, &u64))| match rng.below(3) {
            0 => *ends.0,
            1 => *ends.1,
            _ => along(knob, ends, unit(rng)),
        };
        pairs.map(mix).collect()
    }

    /// A member of the front with a key or two changed by up to a step.
    fn near(&mut self, parents: &[Values], crowding: &[f64], step: f64) -> Values {
        let mut values = parents[self.parent(crowding)].clone();
        let keys = values.len() as u64;
        let changes = 1 + u64::from(keys > 1 && self.rng.ratio(1, 3));
        for _ in 0..changes {
            let key = self.rng.below(keys) as usize;
            let knob = &self.knobs[key];
            let by = step * (2.0 * unit(&mut self.rng) - 1.0);
            let changed = knob.value(knob.position(values[key]) + by);
            values[key] = if changed == values[key] {
                knob.next(changed, by > 0.0)
            } else {
                changed
            };
        }
        values
    }
}

/// From 0 to 1, without 1.
fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// How far apart the neighbours of each member of a front are (as NSGA-II
/// measures it), with ends at the most that an inner member could have.
fn crowding(costs: &[&[f64]]) -> Vec<f64> {
    let mut crowding = vec![0.0; costs.len()];
    let objectives = costs.first().map_or(0, |cost| cost.len());
    for objective in 0..objectives {
        let mut order: Vec<usize> = (0..costs.len()).collect();
        order.sort_by(|a, b| costs[*a][objective].total_cmp(&costs[*b][objective]));
        let value = |place: usize| costs[order[place]][objective];
        let last = order.len() - 1;
        let range = value(last) - value(0);
        for (place, index) in order.iter().enumerate() {
            crowding[*index] += if place == 0 || place == last || range <= 0.0 {
                1.0
            } else {
                (value(place + 1) - value(place - 1)) / range
            };
        }
    }
    crowding
}

/// Points that fill a unit cube evenly however many are taken: the additive
/// recurrence of the generalised golden ratio (Roberts 2018), from a random
/// start.
#[derive(Debug)]
struct Spread {
    at: Vec<f64>,
    by: Vec<f64>,
}

impl Spread {
    fn new(dimensions: usize, seed: u64) -> Self {
        // The positive root of x^(d+1) = x + 1, by iteration.
        let exponent = 1.0 / (dimensions as f64 + 1.0);
        let root = (0..60).fold(2.0, |x, _| libm::pow(1.0 + x, exponent));
        let mut rng = Rng::new(seed, 1);
        Self {
            at: (0..dimensions).map(|_| unit(&mut rng)).collect(),
            by: (1..=dimensions)
                .map(|power| libm::pow(root, -(power as f64)))
                .collect(),
        }
    }

    /// The next point, as values of `knobs`.
    fn next(&mut self, knobs: &[Knob]) -> Values {
        for (at, by) in self.at.iter_mut().zip(&self.by) {
            *at = (*at + by) % 1.0;
        }
        let pairs = knobs.iter().zip(&self.at);
        pairs.map(|(knob, at)| knob.value(*at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Stub = fn(&[f64]) -> Cost;

    fn knobs(texts: &[&str]) -> Vec<Knob> {
        texts
            .iter()
            .map(|text| Knob::parse(text).unwrap())
            .collect()
    }

    fn cost_at(knobs: &[Knob], values: &Values, stub: Stub) -> Cost {
        let positions = knobs.iter().zip(values);
        let positions: Vec<f64> = positions
            .map(|(knob, value)| knob.position(*value))
            .collect();
        stub(&positions)
    }

    /// Everything that a search looked at, and how large its hypervolume is.
    fn evolved(knobs: &[Knob], budget: usize, seed: u64, stub: Stub) -> (Vec<Values>, f64) {
        let (mut looked, mut all) = (Vec::new(), Vec::new());
        let mut search = Evolution::new(knobs.to_vec(), budget, seed);
        loop {
            let round = search.ask(&|_| true);
            if round.is_empty() {
                return (looked, volume(&all));
            }
            let costs = round.iter().map(|values| cost_at(knobs, values, stub));
            let costs: Vec<Cost> = costs.collect();
            looked.extend(round);
            all.extend(costs.iter().cloned());
            search.tell(costs);
        }
    }

    /// Of everything there is.
    fn exhaustive(knobs: &[Knob], stub: Stub) -> (usize, f64) {
        let all = grid(knobs);
        let costs = all.iter().map(|values| cost_at(knobs, values, stub));
        (all.len(), volume(&costs.collect::<Vec<_>>()))
    }

    fn volume(costs: &[Cost]) -> f64 {
        let members = costs.iter().zip(pareto::front(costs));
        let members = members.filter(|(_, on_front)| *on_front);
        let costs: Vec<&[f64]> = members.filter_map(|(cost, _)| cost.as_deref()).collect();
        let objectives = costs.first().map_or(0, |cost| cost.len());
        pareto::hypervolume(&costs, &vec![1.1; objectives])
    }

    /// ZDT1: a convex front where all keys but the first are at their low end.
    fn convex(x: &[f64]) -> Cost {
        let rest = x[1..].iter().sum::<f64>() / (x.len() - 1) as f64;
        let g = 1.0 + 9.0 * rest;
        Some(vec![x[0], g * (1.0 - (x[0] / g).sqrt())])
    }

    /// A concave front, along which two keys must change together, and a
    /// quarter of everything is refused.
    fn concave(x: &[f64]) -> Cost {
        if x[0] > 0.5 && x[2] > 0.5 {
            return None;
        }
        let off = (x[0] - x[1]).abs() + 0.3 * (x[2] - 0.3).abs();
        let angle = std::f64::consts::FRAC_PI_2 * x[0];
        let radius = 1.0 + off;
        Some(vec![
            1.0 - libm::sin(angle) / radius,
            1.0 - libm::cos(angle) / radius,
        ])
    }

    /// Three objectives that pull three ways.
    fn three(x: &[f64]) -> Cost {
        let square = |value: f64| value * value;
        let to = |a: f64, b: f64| square(x[0] - a) + square(x[1] - b) + 0.5 * square(x[2] - 0.5);
        Some(vec![to(0.2, 0.2), to(0.8, 0.2), to(0.5, 0.8)])
    }

    /// As many candidates, spread evenly.
    fn spread(knobs: &[Knob], count: usize, seed: u64, stub: Stub) -> f64 {
        let mut spread = Spread::new(knobs.len(), seed);
        let costs = (0..count).map(|_| cost_at(knobs, &spread.next(knobs), stub));
        volume(&costs.collect::<Vec<_>>())
    }

    #[test]
    fn the_front_of_a_stub_is_found_in_a_fraction_of_its_grid() {
        let knobs = knobs(&["a=0..39/40", "b=0..39/40", "c=0..39/40"]);
        let cases: [(Stub, f64); 3] = [(convex, 0.99), (concave, 0.92), (three, 0.95)];
        for (number, (stub, share)) in cases.into_iter().enumerate() {
            let (all, best) = exhaustive(&knobs, stub);
            assert_eq!(all, 64_000);
            for seed in 0..10 {
                let (looked, found) = evolved(&knobs, 200, seed, stub);
                assert!(looked.len() <= 200);
                let sample = spread(&knobs, 200, seed, stub);
                assert!(
                    found >= share * best && found > sample,
                    "stub {number}, seed {seed}: {found} of {best}, a sample {sample}"
                );
            }
        }
    }

    #[test]
    fn bounds_are_searched_as_well_as_lists() {
        let knobs = knobs(&["a=1us..1s", "b=0..1000", "c=4KiB..64MiB"]);
        // All keys but the first at their low end.
        let front = (0..=1000).map(|n| f64::from(n) / 1000.0);
        let front: Vec<Cost> = front.map(|x| convex(&[x, 0.0, 0.0])).collect();
        let best = volume(&front);
        for seed in 0..10 {
            let (_, found) = evolved(&knobs, 150, seed, convex);
            assert!(found >= 0.95 * best, "seed {seed}: {found} of {best}");
        }
    }

    #[test]
    fn nothing_is_looked_at_twice_and_small_spaces_are_seen_whole() {
        let small = knobs(&["a=1,2,3", "b=x,y", "c=1..3"]);
        let (looked, found) = evolved(&small, 100, 7, convex);
        let unique: BTreeSet<&Values> = looked.iter().collect();
        assert_eq!(unique.len(), looked.len());
        let (all, best) = exhaustive(&small, convex);
        assert_eq!((looked.len(), all), (18, 18));
        assert!((found - best).abs() < 1e-12);
        // The same seed looks at the same, another at something else.
        let large = knobs(&["a=1..1000", "b=1..1000"]);
        let once = evolved(&large, 40, 7, convex).0;
        assert_eq!(once, evolved(&large, 40, 7, convex).0);
        assert_ne!(once, evolved(&large, 40, 8, convex).0);
        assert_eq!(once.len(), 40);
    }

    #[test]
    fn a_front_that_stays_where_it_is_ends_the_search() {
        let knobs = knobs(&["a=1..1000", "b=1..1000"]);
        let (looked, _) = evolved(&knobs, 10_000, 1, |_| Some(vec![1.0, 1.0]));
        assert!(
            (20..=20 + 9 * ROUND).contains(&looked.len()),
            "{}",
            looked.len()
        );
        // Nor does it go on for ever where nothing is possible.
        let (looked, _) = evolved(&knobs, 300, 1, |_| None);
        assert!(looked.len() <= 20 + 9 * ROUND, "{}", looked.len());
    }

    #[test]
    fn only_what_is_allowed_is_looked_at() {
        let knobs = knobs(&["a=1..100", "b=1..100"]);
        let allowed = |values: &Values| values[0] >= values[1];
        let mut search = Evolution::new(knobs.clone(), 60, 5);
        let mut looked = 0;
        loop {
            let round = search.ask(&allowed);
            if round.is_empty() {
                break;
            }
            assert!(round.iter().all(allowed));
            looked += round.len();
            let cost = |values: &Values| cost_at(&knobs, values, convex);
            search.tell(round.iter().map(cost).collect());
        }
        assert!(looked > 30, "{looked}");
        // Nor does it go on for ever where nothing is.
        assert!(Evolution::new(knobs, 60, 5).ask(&|_| false).is_empty());
    }

    #[test]
    fn tiny_budgets_are_kept() {
        let knobs = knobs(&["a=1..1000", "b=1..1000", "c=1..9"]);
        for budget in 1..12 {
            assert_eq!(evolved(&knobs, budget, 3, convex).0.len(), budget);
        }
    }
}
