//! The front as a figure: the first two objectives as axes, the third as size.

use zonelab_lab::figure::{Axis, Figure, Panel, Point, Series};
use zonelab_lab::table::number;

use super::Row;
use crate::search::Search;
use crate::sweep::{Cost, Objective, pareto};

/// Values that differ by more than this factor have a logarithmic axis.
const LOGARITHMIC: f64 = 30.0;

pub(super) fn front(search: &Search, rows: &[Row]) -> Figure {
    let axis = |index: usize| {
        let objective = &search.objectives()[index];
        let published = search
            .published
            .iter()
            .map(|one| one.values.get(index).copied());
        let values = rows
            .iter()
            .map(|row| row.objectives[index])
            .chain(published);
        axis(objective, values.flatten())
    };
    let title = match search.objectives().get(2) {
        Some(third) => format!("larger marker: more {}", third.name()),
        None => String::new(),
    };
    let mut panel = Panel::new(title, axis(0), axis(1));
    let sizes = sizes(search, rows);
    let points = |is_shown: &dyn Fn(usize, &Row) -> bool| -> Vec<Point> {
        let rows = rows.iter().enumerate();
        rows.filter(|(index, row)| is_shown(*index, row))
            .filter_map(|(index, row)| {
                let (x, y) = (row.objectives[0]?, row.objectives[1]?);
                Some(
                    Point::new(x, y)
                        .label(label(search, row))
                        .swollen(sizes[index]),
                )
            })
            .collect()
    };
    // Of more than two objectives, the line joins what no other beats in the two shown.
    let edge = edge(search, rows);
    let series = [
        ("dominated", points(&|_, row| !row.is_on_front)),
        ("front", points(&|index, _| edge[index])),
        (
            "front, by another objective",
            points(&|index, row| row.is_on_front && !edge[index]),
        ),
        ("the file's settings", points(&|_, row| row.is_own)),
    ];
    for (name, points) in series {
        if points.is_empty() {
            continue;
        }
        let series = Series::new(name).ours(points);
        panel = panel.series(if name == "front" {
            series
        } else {
            series.scattered()
        });
    }
    let published = search.published.iter();
    let published = published.map(|one| Point::new(one.values[0], one.values[1]).label(&one.label));
    let published: Vec<Point> = published.collect();
    if !published.is_empty() {
        panel = panel.series(Series::new("published").published(published));
    }
    let experiment = search.experiment();
    Figure::new(format!("{}: {}", experiment.id, experiment.title)).panel(panel)
}

fn axis(objective: &Objective, values: impl Iterator<Item = f64>) -> Axis {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let name = format!("{} {}", objective.goal.name(), objective.name());
    if low > 0.0 && high / low > LOGARITHMIC {
        Axis::log10(name, objective.unit())
    } else {
        Axis::linear(name, objective.unit())
    }
}

/// Which rows of the front nothing beats in the first two objectives.
fn edge(search: &Search, rows: &[Row]) -> Vec<bool> {
    let cost = |row: &Row| -> Cost {
        let pairs = row.objectives.iter().zip(search.objectives()).take(2);
        let costs = pairs.map(|(value, objective)| Some(objective.goal.cost((*value)?)));
        row.is_on_front.then(|| pareto::cost(costs)).flatten()
    };
    pareto::front(&rows.iter().map(cost).collect::<Vec<_>>())
}

/// How large each marker is, by the third objective.
fn sizes(search: &Search, rows: &[Row]) -> Vec<f64> {
    let value = |row: &Row| row.objectives.get(2).copied().flatten();
    let values = || rows.iter().filter_map(value);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let share = |row: &Row| match value(row) {
        Some(value) if high > low && search.objectives().len() > 2 => (value - low) / (high - low),
        _ => 0.0,
    };
    rows.iter().map(share).collect()
}

fn label(search: &Search, row: &Row) -> String {
    let pairs = search.knobs().iter().zip(&row.values);
    let keys = pairs.filter_map(|(knob, value)| Some(format!("{}={}", knob.key, value.as_ref()?)));
    let others = search.objectives().iter().zip(&row.objectives).skip(2);
    let others = others.filter_map(|(objective, value)| {
        Some(format!("{} {}", objective.name(), number((*value)?)))
    });
    keys.chain(others).collect::<Vec<_>>().join(", ")
}
