//! Traces of points.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zonelab_host::stats::OpKind;
use zonelab_lab::output;
use zonelab_lab::table::Style;
use zonelab_lab::trace::{PointTrace, state_name};

use crate::errors;
use crate::frame::{Columns, Frame};

/// What every channel, die and command of a point did.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct Trace {
    inner: PointTrace,
}

impl Trace {
    /// The trace of a point.
    pub(crate) const fn of(inner: PointTrace) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Trace {
    /// Which point it is, in words.
    #[getter]
    fn title(&self) -> &str {
        &self.inner.title
    }

    /// What was dropped since it was too much; `None`: nothing.
    #[getter]
    fn dropped(&self) -> Option<String> {
        self.inner.dropped()
    }

    /// The trace for ui.perfetto.dev.
    fn perfetto<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.inner.perfetto());
        PyBytes::new(py, &bytes)
    }

    /// Writes the trace for ui.perfetto.dev to a file.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| output::replace(&path, &self.inner.perfetto()));
        written.map_err(errors::environment)
    }

    /// The busiest resources and the slowest commands, in words.
    fn summary(&self) -> String {
        let plain = Style {
            width: None,
            colour: None,
        };
        self.inner.summary(&self.inner.explain(), &plain)
    }

    /// The changes of the states of zones.
    #[getter]
    fn zone_history(&self) -> PyResult<Frame> {
        let records = &self.inner.record.zones.records;
        Columns::default()
            .count("time_ns", records.iter().map(|record| record.at.0))
            .count("zone", records.iter().map(|record| record.zone.0.into()))
            .text("from", records.iter().map(|record| state_name(record.from)))
            .text("to", records.iter().map(|record| state_name(record.to)))
            .count(
                "written_lbas",
                records.iter().map(|record| record.written_lbas),
            )
            .frame()
    }

    /// The commands and where their time went, each part in nanoseconds; a part is missing
    /// if not all that happened in the time of the command was recorded.
    #[getter]
    fn commands(&self) -> PyResult<Frame> {
        let all = self.inner.waits();
        let latency = all.iter().map(|(command, _)| {
            let (at, _) = command.completed?;
            Some(at.saturating_sub(command.submitted).0)
        });
        let parts = || all.iter().map(|(_, waits)| waits.as_ref());
        let blocked = parts().map(|waits| {
            let blocked = waits?.blocked_by.iter();
            Some(blocked.map(|(_, time)| time.0).sum())
        });
        Columns::default()
            .count("number", all.iter().map(|(command, _)| command.number))
            .text_or_none(
                "operation",
                all.iter()
                    .map(|(command, _)| Some(OpKind::of(&command.op)?.name())),
            )
            .count(
                "submitted_ns",
                all.iter().map(|(command, _)| command.submitted.0),
            )
            .count_or_none("latency_ns", latency)
            .count_or_none(
                "front_end_ns",
                parts().map(|waits| Some(waits?.front_end.0)),
            )
            .count_or_none("flash_ns", parts().map(|waits| Some(waits?.flash.0)))
            .count_or_none("blocked_ns", blocked)
            .count_or_none("own_line_ns", parts().map(|waits| Some(waits?.own_line.0)))
            .count_or_none("idle_ns", parts().map(|waits| Some(waits?.idle.0)))
            .count_or_none("link_ns", parts().map(|waits| Some(waits?.link.0)))
            .text_or_none(
                "blocked_by",
                parts().map(|waits| Some(waits?.blocked_by.first()?.0.clone())),
            )
            .frame()
    }

    fn __repr__(&self) -> String {
        format!("<zonelab.Trace of {}>", self.inner.title)
    }
}
