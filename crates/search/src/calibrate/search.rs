//! The search for the best candidate.
//!
//! Percentiles of short runs are a little noisy and jump, so nothing here
//! relies on true derivatives. The search first changes one parameter at a
//! time by a step far above that noise; the secants say which parameters the
//! data determine at all. It then takes damped least-squares steps on these
//! secants (each evaluation gives an error for every measurement, which is much
//! more than one number), corrected after each evaluation in the way of
//! Broyden. BOBYQA goes on from there: it makes quadratic models from points
//! around, in a region that shrinks, and trusts no secant. Then it all begins
//! again with other steps, until there is no more progress or no candidate left
//! to look at.

use std::cell::RefCell;

use basin::{
    Bobyqa, BoxBounds, ConstraintDescription, ConstraintSet, Constraints, CostFunction, Executor,
    PointState,
};

use super::Stop;
use super::data::Data;
use super::evaluate::{Evaluator, Ours, Values};
use super::objective::{Objective, curvature};
use super::parameters::Parameter;
use super::solve::damped_step;

/// Steps of the secants, as shares of a range, round by round: at first 15 % of
/// a value within the usual bounds, later less, up and down.
const STEPS: [f64; 4] = [0.10, 0.03, -0.06, -0.015];
/// First radius of BOBYQA after the second and the fourth round.
const REGIONS: [f64; 2] = [0.04, 0.12];
/// Rounds of everything, at most.
const CYCLES: u32 = 4;
/// The loss of a fit that cannot be improved: errors of 0.01 %.
const PERFECT: f64 = 1e-8;
/// Widest step of a parameter at once.
const RADIUS: f64 = 0.35;
/// Below this change of every one of our values, relative, a parameter has no effect.
pub(super) const REACTION: f64 = 1e-3;
/// Steps that fail before secants are taken anew, or given up.
const FAILURES: u32 = 3;
/// A whole cycle that improves less than this share of the loss is the last.
const CYCLE_PROGRESS: f64 = 0.02;
/// An improvement below this share of the loss is none.
const PROGRESS: f64 = 1e-3;
/// Radius at which BOBYQA ends: about a thousandth of a value.
const FINEST: f64 = 7e-4;

/// What is told about the search while it goes on.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// What is being fitted: `fit`, `fold 1 of 2`, `sensitivity`.
    pub stage: &'a str,
    /// Candidates looked at in this stage.
    pub evaluations: u32,
    /// At most so many in this stage.
    pub most: u32,
    /// The best loss so far; its square root is a typical relative error.
    pub best: f64,
}

/// Told about each candidate.
pub type OnProgress<'a> = dyn Fn(&Progress<'_>) + Sync + 'a;

/// What a search found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) values: Values,
    pub(super) loss: f64,
    /// Candidates looked at.
    pub(super) evaluations: u32,
}

/// A candidate that was looked at.
#[derive(Clone)]
struct Seen {
    values: Values,
    errors: Vec<f64>,
    loss: f64,
}

/// Columns of secants, by parameter; `None`: nothing reacts to it.
type Secants = Vec<Option<Vec<f64>>>;

pub(super) struct Search<'s, 'e> {
    pub(super) evaluator: &'s mut Evaluator<'e>,
    pub(super) data: &'s Data,
    pub(super) parameters: &'s [Parameter],
    /// What is fitted.
    pub(super) cases: Vec<usize>,
    pub(super) objective: Objective,
    /// Candidates to look at, at most.
    pub(super) most: u32,
    pub(super) stage: String,
    pub(super) on_progress: &'s OnProgress<'s>,
    looked_at: u32,
    best: Option<Seen>,
}

impl<'s, 'e> Search<'s, 'e> {
    /// A search that fits `cases` with at most `most` candidates.
    pub(super) fn new(
        evaluator: &'s mut Evaluator<'e>,
        (data, parameters): (&'s Data, &'s [Parameter]),
        cases: Vec<usize>,
        most: u32,
        (stage, on_progress): (&str, &'s OnProgress<'s>),
    ) -> Self {
        Self {
            evaluator,
            objective: Objective::new(data, &cases),
            data,
            parameters,
            cases,
            most,
            stage: stage.to_owned(),
            on_progress,
            looked_at: 0,
            best: None,
        }
    }

    /// Searches from the best of some candidates.
    ///
    /// # Errors
    /// Interrupted, or the file of evaluations cannot be written.
    pub(super) fn run(mut self, starts: &[Values]) -> Result<Found, Stop> {
        for values in starts {
            self.look(values)?;
        }
        for cycle in 0..CYCLES {
            let before = self.best_loss();
            let mut is_active = vec![false; self.parameters.len()];
            for (round, step) in STEPS.into_iter().enumerate() {
                let Some(at) = self.best.clone().filter(|_| !self.is_done()) else {
                    break;
                };
                let step = step / f64::from(1 << cycle);
                let secants = self.secants(&at, step)?;
                for (active, secant) in is_active.iter_mut().zip(&secants) {
                    *active |= secant.is_some();
                }
                self.least_squares(at, secants, step)?;
                if round % 2 == 1 {
                    self.quadratic_models(&is_active, REGIONS[round / 2])?;
                }
            }
            if self.is_done() || self.best_loss() > before * (1.0 - CYCLE_PROGRESS) {
                break;
            }
        }
        let best = self.best.expect("the first start was looked at");
        Ok(Found {
            values: best.values,
            loss: best.loss,
            evaluations: self.looked_at,
        })
    }

    fn best_loss(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.loss)
    }

    /// Nothing is left to look at, or to improve.
    fn is_done(&self) -> bool {
        self.room() == 0 || self.best_loss() < PERFECT
    }

    /// Candidates that may still be looked at.
    const fn room(&self) -> u32 {
        self.most.saturating_sub(self.looked_at)
    }

    /// Looks at a candidate.
    fn look(&mut self, values: &Values) -> Result<Seen, Stop> {
        let ours = self.evaluator.evaluate(values, &self.cases)?;
        self.looked_at += 1;
        let seen = match ours {
            Some(ours) => {
                let errors = self.objective.errors(self.data, &ours);
                let loss = self.objective.loss(&errors);
                Seen {
                    values: values.clone(),
                    errors,
                    loss,
                }
            }
            None => Seen {
                values: values.clone(),
                errors: Vec::new(),
                loss: Objective::worst(),
            },
        };
        if self.best.as_ref().is_none_or(|best| seen.loss < best.loss) {
            self.best = Some(seen.clone());
        }
        (self.on_progress)(&Progress {
            stage: &self.stage,
            evaluations: self.looked_at,
            most: self.most,
            best: self.best.as_ref().map_or(seen.loss, |best| best.loss),
        });
        Ok(seen)
    }

    /// Secants at a candidate, by a step of each parameter on its own.
    fn secants(&mut self, at: &Seen, step: f64) -> Result<Secants, Stop> {
        let mut secants = Vec::new();
        for index in 0..self.parameters.len() {
            let mut column = None;
            for values in steps(self.parameters, &at.values, index, step) {
                if self.room() == 0 {
                    break;
                }
                let seen = self.look(&values)?;
                let moved = moved(self.parameters, &at.values, &values, index);
                column = secant(at, &seen, moved);
                if column.is_some() {
                    break;
                }
            }
            secants.push(column);
        }
        Ok(secants)
    }

    /// Damped least-squares steps until they lead nowhere.
    fn least_squares(&mut self, mut at: Seen, mut secants: Secants, step: f64) -> Result<(), Stop> {
        // Where one step of the secants was better, go on from there.
        if let Some(best) = self.best.clone().filter(|best| best.loss < at.loss) {
            at = best;
        }
        let mut damping = 1e-3;
        let widest = f64::min(RADIUS, 4.0 * step.abs());
        let mut radius: f64 = widest;
        let mut failures = 0;
        while failures < FAILURES && !self.is_done() {
            let Some(values) = self.step(&at, &secants, damping, radius) else {
                break;
            };
            if values == at.values {
                break;
            }
            let seen = self.look(&values)?;
            if !seen.errors.is_empty() {
                correct(&mut secants, self.parameters, &at, &seen);
            }
            if seen.loss < at.loss * (1.0 - PROGRESS) {
                at = seen;
                damping = f64::max(damping / 4.0, 1e-6);
                radius = f64::min(radius * 1.5, widest);
                failures = 0;
            } else {
                damping *= 10.0;
                radius /= 2.5;
                failures += 1;
            }
        }
        Ok(())
    }

    /// The next candidate by least squares; parameters that would leave their
    /// bounds stay there, and the others are solved for again.
    fn step(&self, at: &Seen, secants: &Secants, damping: f64, radius: f64) -> Option<Values> {
        let weights: Vec<f64> = self
            .objective
            .weights()
            .zip(&at.errors)
            .map(|(weight, error)| weight * curvature(*error))
            .collect();
        let here = positions(self.parameters, &at.values);
        let mut free: Vec<usize> = (0..secants.len())
            .filter(|i| secants[*i].is_some())
            .collect();
        loop {
            let columns: Vec<&[f64]> = free.iter().filter_map(|i| secants[*i].as_deref()).collect();
            let step = damped_step(&columns, &at.errors, &weights, damping)?;
            let outward = |(slot, index): (usize, &usize)| {
                let here = here[*index];
                let there = here + step[slot];
                ((here <= 0.0 && there < 0.0) || (here >= 1.0 && there > 1.0)).then_some(slot)
            };
            let stuck: Vec<usize> = free.iter().enumerate().filter_map(outward).collect();
            if stuck.is_empty() {
                let mut values = at.values.clone();
                for (slot, index) in free.iter().enumerate() {
                    let there = here[*index] + step[slot].clamp(-radius, radius);
                    values[*index] = self.parameters[*index].value(there);
                }
                return Some(values);
            }
            for slot in stuck.into_iter().rev() {
                free.remove(slot);
            }
        }
    }

    /// BOBYQA from the best candidate, over the parameters that have an effect.
    fn quadratic_models(&mut self, is_active: &[bool], radius: f64) -> Result<(), Stop> {
        let free: Vec<usize> = (0..is_active.len()).filter(|i| is_active[*i]).collect();
        let count = free.len() as u32;
        // More than this is better spent on other secants; fewer than a model
        // takes, and a few steps, tell nothing.
        let room = self.room().min(4 * count + 15);
        let Some(best) = self.best.clone().filter(|_| count > 0 && !self.is_done()) else {
            return Ok(());
        };
        if room < 2 * count + 6 {
            return Ok(());
        }
        let here = positions(self.parameters, &best.values);
        let first: Vec<f64> = free.iter().map(|i| here[*i]).collect();
        let problem = Region {
            parameters: self.parameters,
            best: best.values,
            bounds: (vec![0.0; free.len()], vec![1.0; free.len()]),
            free,
            state: RefCell::new((self, None)),
        };
        let solver = Bobyqa::new()
            .with_initial_radius(radius)
            .with_final_radius(FINEST);
        let executor = Executor::new(&problem, solver, PointState::new(first));
        // However it ends, the best candidate that was looked at counts.
        let _ = executor.max_cost_evals(u64::from(room)).run();
        match problem.state.into_inner().1 {
            Some(stop) => Err(stop),
            None => Ok(()),
        }
    }
}

/// The loss around a candidate, over the free parameters, as BOBYQA sees it.
struct Region<'r, 's, 'e> {
    parameters: &'r [Parameter],
    best: Values,
    free: Vec<usize>,
    bounds: (Vec<f64>, Vec<f64>),
    /// The search, and why it stopped.
    state: RefCell<(&'r mut Search<'s, 'e>, Option<Stop>)>,
}

/// The search has stopped, for a reason that is kept elsewhere.
#[derive(Debug, thiserror::Error)]
#[error("the search has stopped")]
struct Stopped;

impl Constraints for &Region<'_, '_, '_> {
    type Set = ConstraintSet<BoxBounds<Vec<f64>>>;

    fn constraints(&self) -> <Self::Set as ConstraintDescription>::Borrowed<'_> {
        let (low, high) = &self.bounds;
        ConstraintSet::new().with_bounds(BoxBounds::new(Some(low), Some(high)))
    }
}

impl CostFunction for &Region<'_, '_, '_> {
    type Param = Vec<f64>;
    type Output = f64;
    type Error = Stopped;

    fn cost(&self, x: &Vec<f64>) -> Result<f64, Stopped> {
        let mut values = self.best.clone();
        for (index, position) in self.free.iter().zip(x) {
            values[*index] = self.parameters[*index].value(*position);
        }
        let mut state = self.state.borrow_mut();
        match state.0.look(&values) {
            Ok(seen) => Ok(seen.loss),
            Err(stop) => {
                state.1 = Some(stop);
                Err(Stopped)
            }
        }
    }
}

/// Candidates a step up and a step down of one parameter, as far as bounds and
/// rounding allow.
pub(super) fn steps(
    parameters: &[Parameter],
    values: &Values,
    index: usize,
    step: f64,
) -> Vec<Values> {
    let parameter = &parameters[index];
    let here = parameter.position(values[index]);
    let both = [here + step, here - step];
    let inside = both.into_iter().filter(|there| (0.0..=1.0).contains(there));
    let changed = inside.map(|there| {
        let mut changed = values.clone();
        changed[index] = parameter.value(there);
        changed
    });
    changed.filter(|changed| changed != values).collect()
}

fn positions(parameters: &[Parameter], values: &Values) -> Vec<f64> {
    let pairs = parameters.iter().zip(values);
    pairs
        .map(|(parameter, value)| parameter.position(*value))
        .collect()
}

fn moved(parameters: &[Parameter], from: &Values, to: &Values, index: usize) -> f64 {
    parameters[index].position(to[index]) - parameters[index].position(from[index])
}

/// The secant of every error over one parameter; `None` if nothing reacts.
fn secant(from: &Seen, to: &Seen, moved: f64) -> Option<Vec<f64>> {
    let pairs = from.errors.iter().zip(&to.errors);
    let differences: Vec<f64> = pairs.map(|(a, b)| b - a).collect();
    let reacts = differences
        .iter()
        .any(|difference| difference.abs() > REACTION);
    (reacts && moved != 0.0).then(|| differences.iter().map(|d| d / moved).collect())
}

/// Broyden's correction: the secants agree with the step just made.
fn correct(secants: &mut Secants, parameters: &[Parameter], from: &Seen, to: &Seen) {
    let step: Vec<f64> = (0..parameters.len())
        .map(|index| moved(parameters, &from.values, &to.values, index))
        .collect();
    let active = |index: usize, secants: &Secants| secants[index].is_some();
    let length: f64 = (0..step.len())
        .filter(|index| active(*index, secants))
        .map(|index| step[index] * step[index])
        .sum();
    if length <= 0.0 {
        return;
    }
    for row in 0..from.errors.len() {
        let expected: f64 = secants
            .iter()
            .zip(&step)
            .filter_map(|(column, step)| Some(column.as_ref()?[row] * step))
            .sum();
        let surprise = to.errors[row] - from.errors[row] - expected;
        for (column, step) in secants.iter_mut().zip(&step) {
            if let Some(column) = column {
                column[row] += surprise * step / length;
            }
        }
    }
}

/// How strongly our values react to a parameter: the logarithm of the change of
/// each value over that of the parameter.
pub(super) fn elasticity(from: &Ours, to: &Ours, (before, after): (u64, u64)) -> Vec<Option<f64>> {
    // A parameter that starts at zero has no logarithm: over a doubling, then.
    let change = match before.min(after) {
        0 => std::f64::consts::LN_2,
        _ => libm::log(after as f64 / before as f64),
    };
    let one = |(from, to): (&Option<f64>, &Option<f64>)| match (from, to) {
        (Some(from), Some(to)) if *from > 0.0 && *to > 0.0 => Some(libm::log(to / from) / change),
        _ => None,
    };
    from.iter().zip(to).map(one).collect()
}
