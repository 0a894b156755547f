//! Figures: those of the experiments, and all values at a glance.

use zonelab_lab::compare;
use zonelab_lab::figure::{Axis, Figure, Panel, Point, Series};
use zonelab_lab::run::PointResult;

use super::Residual;
use crate::calibrate::CalibrateError;
use crate::calibrate::data::Data;

/// All figures, by file name.
pub(super) fn all(
    data: &Data,
    residuals: &[Residual],
    results: &[Option<PointResult>],
) -> Result<Vec<(String, String)>, CalibrateError> {
    let mut figures = vec![("fit.svg".to_owned(), overview(data, residuals).to_svg())];
    for (index, group) in data.groups.iter().enumerate() {
        let Some(experiment) = &group.experiment else {
            continue;
        };
        let of_group = data.cases.iter().zip(results);
        let mine: Vec<PointResult> = of_group
            .filter(|(case, _)| case.group == index)
            .filter_map(|(_, result)| result.clone())
            .collect();
        if let Some(figure) = compare::figure(experiment, &mine, &data.references)? {
            figures.push((format!("{}.svg", file_name(&group.name)), figure.to_svg()));
        }
    }
    Ok(figures)
}

/// Ours over measured, of every value: a perfect fit is a diagonal of rings.
fn overview(data: &Data, residuals: &[Residual]) -> Figure {
    let mut figure = Figure::new("Calibrated values over measured ones");
    let classes = [
        (super::Class::Throughput, "throughput"),
        (super::Class::MeanLatency, "mean latency"),
        (super::Class::Percentile, "P95 latency"),
    ];
    for (class, name) in classes {
        let axis = |what: &str| Axis::log10(format!("{what} {name}"), "");
        let mut panel = Panel::new(name, axis("measured"), axis("calibrated"));
        for group in &data.groups {
            let mine = residuals
                .iter()
                .filter(|one| one.class() == class && one.experiment == group.name);
            let mut sorted: Vec<&Residual> = mine.collect();
            sorted.sort_by(|a, b| a.published.total_cmp(&b.published));
            let label = |one: &Residual| format!("{}, {} {}", one.series, one.job, one.x);
            let ours = sorted
                .iter()
                .filter_map(|one| Some(Point::new(one.published, one.ours?).label(label(one))));
            let diagonal = sorted
                .iter()
                .map(|one| Point::new(one.published, one.published).label(label(one)));
            panel = panel.series(Series::new(&group.name).ours(ours).published(diagonal));
        }
        if panel
            .series
            .iter()
            .any(|series| !series.published.is_empty())
        {
            figure = figure.panel(panel);
        }
    }
    figure
}

/// An id as a file name.
fn file_name(id: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || c == '-' => c,
        _ => '_',
    };
    format!("experiment-{}", id.chars().map(plain).collect::<String>())
}
