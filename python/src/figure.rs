//! Figures: what is drawn, for whoever draws it otherwise.

use pyo3::prelude::*;
use serde_json::{Value as Json, json};
use zonelab_lab::figure::{self, Axis, Point, Scale};

use crate::convert;
use crate::frame::{Columns, Frame};

/// A figure: panels with curves of ours, and published points on them.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct Figure {
    id: String,
    inner: figure::Figure,
}

impl Figure {
    /// The figure of an experiment.
    pub(crate) const fn of(id: String, inner: figure::Figure) -> Self {
        Self { id, inner }
    }

    /// Every point: panel, series, whose it is, and the point.
    fn points(&self) -> Vec<(usize, &str, &'static str, &Point)> {
        let panels = self.inner.panels.iter().enumerate();
        panels
            .flat_map(|(n, panel)| panel.series.iter().map(move |series| (n, series)))
            .flat_map(|(n, series)| {
                let ours = series.ours.iter().map(|point| ("ours", point));
                let theirs = series.published.iter().map(|point| ("published", point));
                let name = series.name.as_str();
                ours.chain(theirs)
                    .map(move |(whose, point)| (n, name, whose, point))
            })
            .collect()
    }
}

fn axis_json(axis: &Axis) -> Json {
    json!({
        "quantity": axis.quantity,
        "unit": axis.unit,
        "scale": match axis.scale { Scale::Linear => "linear", Scale::Log10 => "log" },
        "span": axis.span.map(|(low, high)| [low, high]),
        "ticks": axis.ticks,
        "labels": axis.labels,
    })
}

/// The interval of one of our points, or the range of published repeats.
fn range(point: &Point) -> Option<(f64, f64)> {
    point.band.or(point.spread)
}

fn point_json(point: &Point) -> Json {
    json!({
        "x": point.x,
        "y": point.y,
        "low": range(point).map(|(low, _)| low),
        "high": range(point).map(|(_, high)| high),
        "label": point.label,
    })
}

#[pymethods]
impl Figure {
    /// The experiment's id.
    #[getter]
    fn id(&self) -> &str {
        &self.id
    }

    /// The heading.
    #[getter]
    fn title(&self) -> &str {
        &self.inner.title
    }

    /// The figure as the command writes it.
    fn to_svg(&self) -> String {
        self.inner.to_svg()
    }

    fn _repr_svg_(&self) -> String {
        self.to_svg()
    }

    /// What is drawn, a row for each point.
    fn to_frame(&self) -> PyResult<Frame> {
        let points = self.points();
        Columns::default()
            .count("panel", points.iter().map(|(panel, ..)| *panel as u64))
            .text("series", points.iter().map(|(_, series, ..)| series))
            .text("whose", points.iter().map(|(_, _, whose, _)| whose))
            .number("x", points.iter().map(|(.., point)| point.x))
            .number("y", points.iter().map(|(.., point)| point.y))
            .number_or_none(
                "low",
                points.iter().map(|(.., point)| Some(range(point)?.0)),
            )
            .number_or_none(
                "high",
                points.iter().map(|(.., point)| Some(range(point)?.1)),
            )
            .text("label", points.iter().map(|(.., point)| &point.label))
            .frame()
    }

    /// What is drawn, with axes: `{"title", "panels": [{"title", "x", "y", "series"}]}`.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let panels: Vec<Json> = self
            .inner
            .panels
            .iter()
            .map(|panel| {
                let series: Vec<Json> = panel
                    .series
                    .iter()
                    .map(|series| {
                        json!({
                            "name": series.name,
                            "is_scattered": series.is_scattered,
                            "ours": series.ours.iter().map(point_json).collect::<Vec<_>>(),
                            "published": series.published.iter().map(point_json).collect::<Vec<_>>(),
                        })
                    })
                    .collect();
                json!({
                    "title": panel.title,
                    "x": axis_json(&panel.x),
                    "y": axis_json(&panel.y),
                    "series": series,
                })
            })
            .collect();
        let all = json!({ "id": self.id, "title": self.inner.title, "panels": panels });
        convert::from_json(py, &all)
    }

    fn __repr__(&self) -> String {
        format!("<zonelab.Figure {}>", self.id)
    }
}
