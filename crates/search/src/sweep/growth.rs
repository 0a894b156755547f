//! How far a sweep is that chooses its points while it runs.

use serde::{Deserialize, Serialize};
use zonelab_lab::space::Objective;
use zonelab_lab::space::Sample;

use super::adaptive::{Adaptive, Chooser, OBJECTIVES};
use super::pack::{Line, Pack, measured};
use super::pareto::{Cost, cost};
use super::{SweepError, front};

/// How points are chosen, and how many.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Limits {
    sample: Sample,
    budget: u32,
}

/// What the log of a sweep that grows has besides what tasks gave, in its order.
#[derive(Debug)]
pub(super) enum Mark {
    /// So many points were added.
    Round(usize),
    End(Limits),
}

/// A sweep that chooses its points while it runs.
#[derive(Debug)]
pub(super) struct Growth {
    pub(super) chooser: Chooser,
    pub(super) limits: Limits,
    objectives: Vec<Objective>,
    /// Of each task, what the objectives come to.
    values: Vec<Vec<Option<f64>>>,
    pub(super) marks: Vec<Mark>,
    /// Whether the log has nothing of another search: of other points or other series.
    pub(super) is_of_one: bool,
}

impl Growth {
    /// # Errors
    /// The pack has not as many objectives of its experiment as a search trades.
    pub(super) fn new(pack: &Pack, adaptive: &Adaptive) -> Result<Self, SweepError> {
        let objectives = front::objectives(pack)?;
        let (least, most) = OBJECTIVES;
        if !(least..=most).contains(&objectives.len()) {
            let what = format!(
                "it has {} objectives, not {least} to {most}",
                objectives.len()
            );
            return Err(SweepError::Pack(serde::de::Error::custom(what)));
        }
        Ok(Self {
            chooser: Chooser::new(pack, adaptive),
            limits: Limits {
                sample: pack.sample,
                budget: adaptive.budget,
            },
            objectives,
            values: Vec::new(),
            marks: Vec::new(),
            is_of_one: true,
        })
    }

    /// Adds points to a pack.
    pub(super) fn add(&mut self, pack: &mut Pack, points: &[Vec<String>]) {
        for point in points {
            self.chooser.add(pack.points.len(), point);
            pack.points.push(point.clone());
        }
        self.marks.push(Mark::Round(points.len()));
    }

    /// Keeps what the objectives come to.
    pub(super) fn evaluate(&mut self, task: usize, line: &Line, pack: &Pack) {
        if self.values.len() <= task {
            self.values.resize(task + 1, Vec::new());
        }
        let value = |objective: &Objective| objective.value(measured(&line.runs), pack.weights);
        self.values[task] = self.objectives.iter().map(value).collect();
    }

    /// Whether these limits were the last that were reached.
    pub(super) fn is_at_end(&self) -> bool {
        let mut ends = self.marks.iter().rev();
        let last = ends.find_map(|mark| match mark {
            Mark::End(limits) => Some(*limits),
            Mark::Round(_) => None,
        });
        last == Some(self.limits)
    }

    /// The next points, and whether these limits were reached before: then there are none.
    pub(super) fn next(&mut self, pack: &Pack) -> (Vec<Vec<String>>, bool) {
        let Self {
            objectives, values, ..
        } = self;
        let repeats = usize::try_from(pack.inputs.repeats).unwrap_or(usize::MAX);
        // Of the means over the repeats of a point.
        let cost = |point: usize| -> Cost {
            let tasks = values.get(point * repeats..(point + 1) * repeats)?;
            let mean = |place: usize| front::mean(tasks.iter().map(|of| *of.get(place)?));
            let objectives = objectives.iter().enumerate();
            cost(objectives.map(|(place, objective)| Some(objective.goal.cost(mean(place)?))))
        };
        let mut points = self.chooser.next(&cost);
        let at_end = self.is_at_end();
        if at_end {
            // Other objectives would look further: they see what is there.
            self.is_of_one &= points.is_empty();
            points.clear();
        }
        if points.is_empty() {
            self.is_of_one &= self.chooser.asked_for_all();
        }
        (points, at_end)
    }
}
