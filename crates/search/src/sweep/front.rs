//! Objectives of a sweep: what each point comes to, and which points nothing beats.

use serde::Serialize;
use zonelab_config::Errors;
use zonelab_lab::rows::significant;
use zonelab_lab::settings::Settings;
use zonelab_lab::space::{Goal, Objective};

use super::pack::{Line, Pack, measured};
use super::pareto::{Cost, cost, front};

/// An objective, for tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Aim {
    /// `SERIES/JOB/METRIC`.
    pub name: String,
    /// Which way is better.
    pub goal: Goal,
    /// Unit of its values.
    pub unit: String,
}

/// What a point of a sweep comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// The place of the point.
    pub point: usize,
    /// Values of the keys, as they are written.
    pub values: Vec<String>,
    /// Values of the objectives: means over the repeats; `null` if one of them has none.
    pub objectives: Vec<Option<f64>>,
    /// Whether no other point beats it.
    pub on_front: bool,
    /// Tasks of it that failed.
    pub failed: u32,
}

/// The objectives of a sweep.
///
/// # Errors
/// The experiment is wrong, which it was not when the sweep was prepared.
pub(super) fn objectives(pack: &Pack) -> Result<Vec<Objective>, Errors> {
    if pack.objectives.is_empty() {
        return Ok(Vec::new());
    }
    let experiment = pack.inputs.parse(&Settings::default())?;
    let resolved = pack.objectives.iter();
    let resolved = resolved.filter_map(|spec| Objective::resolve(&experiment, spec).ok());
    Ok(resolved.collect())
}

/// The mean of what the repeats of a point came to, to six digits; `None` if one of them has
/// no value.
pub(super) fn mean(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values {
        sum += value?;
        count += 1;
    }
    (count > 0).then(|| significant(sum / f64::from(count)))
}

/// The values of a point as they are written.
fn values(pack: &Pack, point: usize) -> Vec<String> {
    let places = 0..pack.keys.len();
    let value = |place| pack.value(point, place).unwrap_or_default().to_owned();
    places.map(value).collect()
}

/// What every point comes to, in their order.
///
/// # Errors
/// As [`objectives`].
pub(super) fn standings(pack: &Pack, lines: &[Line]) -> Result<(Vec<Aim>, Vec<Standing>), Errors> {
    let objectives = objectives(pack)?;
    let mut standings: Vec<Standing> = (0..pack.points.len())
        .map(|point| Standing {
            point,
            values: values(pack, point),
            objectives: Vec::new(),
            on_front: false,
            failed: 0,
        })
        .collect();
    let mut of_repeats = vec![vec![Vec::new(); objectives.len()]; standings.len()];
    for line in lines {
        let Some(task) = pack.task(line.index) else {
            continue;
        };
        standings[task.point].failed += u32::from(line.status == super::Status::Failed);
        for (values, objective) in of_repeats[task.point].iter_mut().zip(&objectives) {
            let value = objective.value(measured(&line.runs), pack.weights);
            values.push(value);
        }
    }
    for (standing, values) in standings.iter_mut().zip(of_repeats) {
        standing.objectives = values.into_iter().map(mean).collect();
    }
    if !objectives.is_empty() {
        let of = |standing: &Standing| -> Cost {
            let pairs = standing.objectives.iter().zip(&objectives);
            cost(pairs.map(|(value, objective)| Some(objective.goal.cost((*value)?))))
        };
        let costs: Vec<Cost> = standings.iter().map(of).collect();
        for (standing, on_front) in standings.iter_mut().zip(front(&costs)) {
            standing.on_front = on_front;
        }
    }
    let aims = objectives.iter().map(|objective| Aim {
        name: objective.name(),
        goal: objective.goal,
        unit: objective.unit().to_owned(),
    });
    Ok((aims.collect(), standings))
}
