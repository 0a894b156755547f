//! Which points of a space are looked at.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use zonelab_host::Rng;

use super::constraint::{Constraint, Names};
use super::knob::{Knob, Values, Wrong};
use super::sobol::{self, Sobol};

/// Most points of a sweep.
pub const MAX_POINTS: u32 = 1_000_000;

/// Draws for each point that is wanted, after which constraints are said to leave too few.
const DRAWS: u64 = 1000;

/// How points are chosen.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sample {
    /// Every combination, the last key fastest.
    Grid,
    /// Rows that are written down.
    List,
    /// Independently of each other.
    Random,
    /// So that each of N equal parts of each key has one point.
    LatinHypercube,
    /// The points of Sobol, moved by the seed.
    Sobol,
    /// Near the Pareto front of what was measured so far, round by round.
    Evolve,
}

impl Sample {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Grid,
        Self::List,
        Self::Random,
        Self::LatinHypercube,
        Self::Sobol,
        Self::Evolve,
    ];

    /// Those of a search: all of a grid, or what is near the front.
    pub const OF_SEARCH: [Self; 2] = [Self::Grid, Self::Evolve];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::List => "list",
            Self::Random => "random",
            Self::LatinHypercube => "latin-hypercube",
            Self::Sobol => "sobol",
            Self::Evolve => "evolve",
        }
    }

    /// Whether it is told how many points there are to be.
    #[must_use]
    pub const fn is_counted(self) -> bool {
        matches!(self, Self::Random | Self::LatinHypercube | Self::Sobol)
    }
}

/// The space that points are chosen from.
pub struct Space<'a> {
    /// Keys that are varied.
    pub knobs: &'a [Knob],
    /// What constraints may speak of.
    pub names: &'a Names,
    /// What every point fulfils.
    pub constraints: &'a [Constraint],
}

impl Space<'_> {
    /// Whether a point fulfils every constraint.
    pub fn holds(&self, point: &Values) -> bool {
        if self.constraints.is_empty() {
            return true;
        }
        let pairs = self.knobs.iter().zip(point);
        let numbers: Vec<f64> = pairs
            .map(|(knob, value)| self.names.number(&knob.text(*value)))
            .collect();
        self.constraints.iter().all(|one| one.holds(&numbers))
    }

    /// The point at numbers from 0 to 1.
    fn at(&self, shares: impl Iterator<Item = f64>) -> Values {
        let pairs = self.knobs.iter().zip(shares);
        pairs.map(|(knob, share)| knob.draw(share)).collect()
    }

    /// Of points that are given, those that fulfil every constraint.
    pub fn kept(&self, mut points: Vec<Values>) -> Vec<Values> {
        points.retain(|point| self.holds(point));
        points
    }

    /// Every combination.
    ///
    /// # Errors
    /// There are too many.
    pub fn grid(&self) -> Result<Vec<Values>, Wrong> {
        let lists: Vec<Values> = self.knobs.iter().map(Knob::grid).collect();
        let sizes = lists.iter().map(|list| list.len() as u64);
        let size = sizes.fold(1, u64::saturating_mul);
        if size > u64::from(MAX_POINTS) {
            return Err(Wrong::new(
                format!("the grid has {size} points"),
                format!(
                    "at most {MAX_POINTS}; or draw a sample: sample = \"sobol\", points = 1000"
                ),
            ));
        }
        let point = |mut index: u64| {
            let mut values: Values = Vec::with_capacity(lists.len());
            for list in lists.iter().rev() {
                let length = list.len() as u64;
                values.push(list[(index % length) as usize]);
                index /= length;
            }
            values.reverse();
            values
        };
        Ok(self.kept((0..size).map(point).collect()))
    }

    /// `count` points that differ from each other; of a Latin hypercube, which would not be
    /// one if some were drawn again, those that fulfil the constraints.
    ///
    /// # Errors
    /// There are not so many.
    pub fn draw(&self, sample: Sample, count: u32, seed: u64) -> Result<Vec<Values>, Wrong> {
        let dimensions = self.knobs.len();
        match sample {
            // What depends on results is chosen as they come: `adaptive`.
            Sample::Grid | Sample::List | Sample::Evolve => self.grid(),
            Sample::LatinHypercube => {
                let points = latin_hypercube(dimensions, count, seed);
                let points = points.into_iter().map(|point| self.at(point.into_iter()));
                Ok(self.kept(points.collect()))
            }
            Sample::Random => {
                let mut rng = Rng::new(seed, 2);
                self.distinct(count, || (0..dimensions).map(|_| rng.unit()).collect())
            }
            Sample::Sobol if dimensions > sobol::DIMENSIONS => Err(Wrong::new(
                format!("there are {dimensions} keys"),
                format!(
                    "sobol has {} dimensions; take latin-hypercube or random",
                    sobol::DIMENSIONS
                ),
            )),
            Sample::Sobol => {
                // Moved by the same distance everywhere (Cranley and Patterson, in binary),
                // which keeps one point in each part: unmoved, the first is a corner.
                let mut rng = Rng::new(seed, 3);
                let by: Vec<u32> = (0..dimensions).map(|_| rng.next_u64() as u32).collect();
                let mut sobol = Sobol::new(dimensions);
                self.distinct(count, || {
                    let moved = sobol.next().into_iter().zip(&by).map(|(x, by)| x ^ by);
                    moved.map(|x| f64::from(x) / 4_294_967_296.0).collect()
                })
            }
        }
    }

    fn distinct(
        &self,
        count: u32,
        mut next: impl FnMut() -> Vec<f64>,
    ) -> Result<Vec<Values>, Wrong> {
        let sizes = self.knobs.iter().map(Knob::count);
        let size = sizes.fold(1, u64::saturating_mul);
        let valid = "fewer `points`, or sample = \"grid\"";
        if size < u64::from(count) {
            let what = format!("there are only {size} points that differ");
            return Err(Wrong::new(what, valid));
        }
        let (mut seen, mut points) = (BTreeSet::new(), Vec::new());
        for _ in 0..u64::from(count).saturating_mul(DRAWS) {
            if points.len() == count as usize {
                return Ok(points);
            }
            let point = self.at(next().into_iter());
            if self.holds(&point) && seen.insert(point.clone()) {
                points.push(point);
            }
        }
        if points.len() == count as usize {
            return Ok(points);
        }
        let what = format!(
            "only {} points that differ and fulfil the constraints were found",
            points.len()
        );
        Err(Wrong::new(what, valid))
    }
}

/// Points of which each has a part of every dimension to itself.
fn latin_hypercube(dimensions: usize, count: u32, seed: u64) -> Vec<Vec<f64>> {
    let mut points = vec![Vec::with_capacity(dimensions); count as usize];
    for dimension in 0..dimensions {
        let mut rng = Rng::new(seed, 16 + dimension as u64);
        let mut parts: Vec<u32> = (0..count).collect();
        rng.shuffle(&mut parts);
        for (point, part) in points.iter_mut().zip(parts) {
            point.push((f64::from(part) + rng.unit()) / f64::from(count));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knobs(texts: &[&str]) -> Vec<Knob> {
        let parse = |text: &&str| Knob::parse(text).unwrap();
        texts.iter().map(parse).collect()
    }

    fn names(knobs: &[Knob]) -> Names {
        Names::of(knobs.iter().map(|knob| (knob.key.as_str(), knob.listed())))
    }

    fn texts(knobs: &[Knob], points: &[Values]) -> Vec<String> {
        let text = |point: &Values| {
            let pairs = knobs.iter().zip(point);
            let texts: Vec<String> = pairs.map(|(knob, value)| knob.text(*value)).collect();
            texts.join(" ")
        };
        points.iter().map(text).collect()
    }

    fn drawn(knobs: &[Knob], require: &[&str], sample: Sample, count: u32) -> Vec<Values> {
        let names = names(knobs);
        let constraints: Vec<Constraint> = require
            .iter()
            .map(|text| Constraint::parse(text, &names).unwrap())
            .collect();
        let space = Space {
            knobs,
            names: &names,
            constraints: &constraints,
        };
        space.draw(sample, count, 7).unwrap()
    }

    #[test]
    fn a_grid_is_every_combination_the_last_key_fastest() {
        let knobs = knobs(&["a=1,2", "b=x,y,z"]);
        let points = drawn(&knobs, &[], Sample::Grid, 0);
        assert_eq!(
            texts(&knobs, &points),
            ["1 x", "1 y", "1 z", "2 x", "2 y", "2 z"]
        );
        let some = drawn(&knobs, &["a == 2 || b == \"y\""], Sample::Grid, 0);
        assert_eq!(texts(&knobs, &some), ["1 y", "2 x", "2 y", "2 z"]);
    }

    #[test]
    fn a_latin_hypercube_has_one_point_in_each_part_of_each_key() {
        let count = 40;
        let raw = latin_hypercube(3, count, 5);
        for dimension in 0..3 {
            let part = |point: &Vec<f64>| (point[dimension] * f64::from(count)) as u32;
            let parts: BTreeSet<u32> = raw.iter().map(part).collect();
            assert_eq!(parts.len(), count as usize);
        }
        // Keys are independent of each other: not all on a diagonal.
        let is_equal = |point: &&Vec<f64>| (point[0] - point[1]).abs() < 0.5 / f64::from(count);
        assert!(raw.iter().filter(is_equal).count() < 10);
        // Of as many values as points each comes once, of half as many twice.
        let knobs = knobs(&["a=101..140", "b=11..30/20"]);
        let points = drawn(&knobs, &[], Sample::LatinHypercube, count);
        let mut a: Vec<u64> = points.iter().map(|point| point[0]).collect();
        a.sort_unstable();
        assert_eq!(a, (101..=140).collect::<Vec<u64>>());
        for value in 0..20 {
            assert_eq!(points.iter().filter(|point| point[1] == value).count(), 2);
        }
    }

    #[test]
    fn draws_differ_fulfil_constraints_and_follow_from_the_seed() {
        let knobs = knobs(&["a=1..1000", "b=1KiB..1MiB", "c=x,y"]);
        for sample in [Sample::Random, Sample::Sobol] {
            let require = ["b <= a * 1KiB", "c == \"x\" || a > 500"];
            let points = drawn(&knobs, &require, sample, 200);
            assert_eq!(points, drawn(&knobs, &require, sample, 200));
            let distinct: BTreeSet<&Values> = points.iter().collect();
            assert_eq!(distinct.len(), 200);
            assert!(points.iter().all(|p| p[1] <= p[0] * 1024));
            assert!(points.iter().all(|p| p[2] == 0 || p[0] > 500));
            // The first of more points are the same points.
            assert_eq!(points[..50], drawn(&knobs, &require, sample, 50)[..]);
        }
    }

    /// Half of all points have each half of a key; of Sobol points exactly.
    #[test]
    fn samples_are_spread() {
        let knobs = knobs(&["a=0..1023", "b=0..1023"]);
        for (sample, off) in [(Sample::Random, 40), (Sample::Sobol, 0)] {
            let points = drawn(&knobs, &[], sample, 256);
            for key in 0..2 {
                let low = points.iter().filter(|point| point[key] < 512).count();
                assert!(low.abs_diff(128) <= off, "{sample:?}: {low}");
            }
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let knobs = knobs(&["a=1,2", "b=x,y,z"]);
        let names = names(&knobs);
        let space = |constraints| Space {
            knobs: &knobs,
            names: &names,
            constraints,
        };
        let error = space(&[]).draw(Sample::Random, 7, 1).unwrap_err();
        assert!(error.what.contains("only 6 points"), "{error}");
        let never = [Constraint::parse("a > 2", &names).unwrap()];
        let error = space(&never).draw(Sample::Sobol, 3, 1).unwrap_err();
        assert!(error.what.contains("only 0 points"), "{error}");
        assert_eq!(space(&never).grid().unwrap(), Vec::<Values>::new());
    }
}
