//! Tables of what was measured.

use std::collections::BTreeSet;

use zonelab_lab::difference::Difference;
use zonelab_lab::metrics::unit_of;
use zonelab_lab::rows::{Row, number, significant};
use zonelab_lab::run::{DriveMeasured, JobMeasured, PointResult, repeat_seed};
use zonelab_lab::statistics::{Over, Statistics};
use zonelab_lab::trace::state_name;
use zonelab_ssd::account::{BusyByCause, Cause};

use pyo3::prelude::*;

use crate::frame::{Columns, Frame};

/// A point that was run.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    /// Its experiment.
    pub(crate) id: &'a str,
    pub(crate) result: &'a PointResult,
}

/// Columns that say which point a row is of.
fn of_points<'a>(points: impl Iterator<Item = At<'a>> + Clone) -> Columns {
    Columns::default()
        .text("experiment", points.clone().map(|at| at.id))
        .text("series", points.clone().map(|at| &at.result.series))
        .number(
            "x",
            points.clone().map(|at| significant(at.result.x.number)),
        )
        .text("x_label", points.map(|at| &at.result.x.text))
}

/// Columns that say how values vary, if that is known of any.
fn with_statistics<'a>(
    columns: Columns,
    values: impl Iterator<Item = Option<&'a Statistics>> + Clone,
) -> Columns {
    if values.clone().all(|of| of.is_none()) {
        return columns;
    }
    let interval = |of: Option<&Statistics>| of.and_then(Statistics::interval);
    let repeats = |of: Option<&Statistics>| {
        let of = of?;
        Some(match of.over {
            Over::Repeats => u64::from(of.count),
            Over::Batches => 1,
        })
    };
    let batches = |of: Option<&Statistics>| {
        let of = of.filter(|of| of.over == Over::Batches)?;
        Some(u64::from(of.count))
    };
    columns
        .count_or_none("repeats", values.clone().map(repeats))
        .number_or_none("mean", values.clone().map(|of| Some(significant(of?.mean))))
        .number_or_none(
            "ci_low",
            values.clone().map(|of| Some(significant(interval(of)?.0))),
        )
        .number_or_none(
            "ci_high",
            values.clone().map(|of| Some(significant(interval(of)?.1))),
        )
        .number_or_none("sd", values.clone().map(|of| Some(significant(of?.sd?))))
        .number_or_none("min", values.clone().map(|of| Some(significant(of?.min))))
        .number_or_none("max", values.clone().map(|of| Some(significant(of?.max))))
        .count_or_none("batches", values.map(batches))
}

/// Every metric of each repeat of every job.
pub(crate) fn repeats(jobs: &[(At<'_>, &JobMeasured)], seed: u64) -> PyResult<Frame> {
    let values = jobs.iter().flat_map(|(at, job)| {
        let repeats = job.spread.iter().flat_map(|spread| &spread.repeats);
        repeats.flat_map(move |(repeat, metrics)| {
            let metrics = metrics.values.iter();
            metrics.map(move |(metric, value)| (*at, &job.name, *repeat, *metric, *value))
        })
    });
    of_points(values.clone().map(|(at, ..)| at))
        .text("job", values.clone().map(|(_, job, ..)| job))
        .text("metric", values.clone().map(|(.., metric, _)| metric))
        .text(
            "unit",
            values.clone().map(|(.., metric, _)| unit_of(metric)),
        )
        .count(
            "repeat",
            values.clone().map(|(_, _, repeat, ..)| repeat.into()),
        )
        .count(
            "seed",
            values
                .clone()
                .map(|(_, _, repeat, ..)| repeat_seed(seed, repeat)),
        )
        .number("value", values.map(|(.., value)| significant(value)))
        .frame()
}

/// Differences between series, in the columns of `differences.csv`.
pub(crate) fn differences(differences: &[Difference]) -> PyResult<Frame> {
    let all = || differences.iter();
    let interval = || all().map(|of| of.statistics.interval());
    Columns::default()
        .text("experiment", all().map(|of| &of.id))
        .text("series", all().map(|of| &of.series))
        .text("baseline", all().map(|of| &of.baseline))
        .text("job", all().map(|of| &of.job))
        .text("baseline_job", all().map(|of| &of.baseline_job))
        .number("x", all().map(|of| significant(of.x.0)))
        .text("x_label", all().map(|of| &of.x.1))
        .text("metric", all().map(|of| &of.metric.0))
        .text("unit", all().map(|of| of.metric.1))
        .count("repeats", all().map(|of| of.statistics.count.into()))
        .number("series_mean", all().map(|of| significant(of.ours)))
        .number("baseline_mean", all().map(|of| significant(of.of_baseline)))
        .number(
            "difference",
            all().map(|of| significant(of.statistics.mean)),
        )
        .number_or_none("ci_low", interval().map(|of| Some(significant(of?.0))))
        .number_or_none("ci_high", interval().map(|of| Some(significant(of?.1))))
        .number_or_none("sd", all().map(|of| of.statistics.sd.map(significant)))
        .number_or_none("relative", all().map(|of| of.relative().map(significant)))
        .number_or_none(
            "relative_half_width",
            all().map(|of| of.relative_half_width().map(significant)),
        )
        .text("verdict", all().map(|of| of.verdict.words()))
        .frame()
}

/// Every metric of every job.
pub(crate) fn points(jobs: &[(At<'_>, &JobMeasured)]) -> PyResult<Frame> {
    let values = jobs.iter().flat_map(|(at, job)| {
        let metrics = job.metrics.values.iter();
        metrics.map(move |(metric, value)| (*at, *job, *metric, *value))
    });
    let columns = of_points(values.clone().map(|(at, ..)| at))
        .text("job", values.clone().map(|(_, job, ..)| &job.name))
        .text("metric", values.clone().map(|(_, _, metric, _)| metric))
        .text(
            "unit",
            values.clone().map(|(_, _, metric, _)| unit_of(metric)),
        )
        .number(
            "value",
            values.clone().map(|(.., value)| significant(value)),
        );
    let statistics = values.map(|(_, job, metric, _)| job.statistics(metric));
    with_statistics(columns, statistics).frame()
}

/// A row for each job, a column for each metric.
pub(crate) fn metrics(jobs: &[(At<'_>, &JobMeasured)]) -> PyResult<Frame> {
    let names: BTreeSet<&str> = jobs
        .iter()
        .flat_map(|(_, job)| job.metrics.values.keys().copied())
        .collect();
    let columns = of_points(jobs.iter().map(|(at, _)| *at))
        .text("job", jobs.iter().map(|(_, job)| &job.name))
        .text("kind", jobs.iter().map(|(_, job)| job.kind.name()));
    let with_metric = |columns: Columns, name: &&str| {
        let values = jobs
            .iter()
            .map(|(_, job)| job.metrics.get(name).map(significant));
        columns.number_or_none(name, values)
    };
    names.iter().fold(columns, with_metric).frame()
}

/// What is compared, in the columns of `rows.csv`.
pub(crate) fn rows(rows: &[Row]) -> PyResult<Frame> {
    let x = |row: &Row| row.x.as_ref().map(|x| x.value);
    let label = |row: &Row| row.x.as_ref().map(|x| x.label.clone());
    let spread = |row: &Row| {
        let spread = row.repeat_spread;
        spread.map(|(low, high)| format!("{}..{}", number(low), number(high)))
    };
    let finite = |value: f64| value.is_finite().then_some(value);
    let columns = Columns::default()
        .text("id", rows.iter().map(|row| &row.id))
        .text("kind", rows.iter().map(|row| row.kind.letter()))
        .text("series", rows.iter().map(|row| &row.series))
        .text("job", rows.iter().map(|row| &row.job))
        .number_or_none("x", rows.iter().map(x))
        .text_or_none("x_label", rows.iter().map(label))
        .text("metric", rows.iter().map(|row| &row.metric))
        .text("unit", rows.iter().map(|row| &row.unit))
        .number_or_none("published", rows.iter().map(|row| row.published))
        .text_or_none(
            "published_in",
            rows.iter().map(|row| row.published_in.as_ref()),
        )
        .text_or_none("repeat_spread", rows.iter().map(spread))
        .number_or_none("ours", rows.iter().map(|row| finite(row.ours)))
        .number_or_none("ours_lower", rows.iter().map(|row| row.ours_lower))
        .number_or_none("ours_upper", rows.iter().map(|row| row.ours_upper))
        .number_or_none("rel_error", rows.iter().map(|row| row.rel_error))
        .number_or_none("tolerance", rows.iter().map(|row| row.tolerance))
        .text_or_none(
            "needs",
            rows.iter()
                .map(|row| row.statement.map(|bound| bound.words(&row.unit))),
        )
        .text("verdict", rows.iter().map(|row| row.verdict().word()))
        .flag_or_none("counts", rows.iter().map(|row| Some(row.counts())))
        .flag_or_none("pass", rows.iter().map(|row| row.pass))
        .text_or_none("reason", rows.iter().map(Row::reason));
    with_statistics(columns, rows.iter().map(|row| row.statistics.as_ref())).frame()
}

/// What drives did.
pub(crate) fn drives(drives: &[(At<'_>, &DriveMeasured)]) -> PyResult<Frame> {
    let totals = || drives.iter().map(|(_, drive)| &drive.totals);
    of_points(drives.iter().map(|(at, _)| *at))
        .count(
            "simulated_ns",
            drives.iter().map(|(at, _)| at.result.took.0),
        )
        .count(
            "operations",
            drives.iter().map(|(at, _)| at.result.operations),
        )
        .count("host_write_bytes", totals().map(|of| of.host_write_bytes))
        .count("host_read_bytes", totals().map(|of| of.host_read_bytes))
        .count(
            "host_program_bytes",
            totals().map(|of| of.host_program_bytes),
        )
        .count(
            "fill_program_bytes",
            totals().map(|of| of.fill_program_bytes),
        )
        .number_or_none("dlwa", totals().map(|of| of.dlwa().map(significant)))
        .count("erased_blocks", totals().map(|of| of.erased_blocks))
        .count("resets", totals().map(|of| of.resets))
        .count("finishes", totals().map(|of| of.finishes))
        .count("implicit_closes", totals().map(|of| of.implicit_closes))
        .count(
            "channels",
            drives.iter().map(|(_, drive)| drive.resources.0.into()),
        )
        .count(
            "units",
            drives.iter().map(|(_, drive)| drive.resources.1.into()),
        )
        .frame()
}

/// Busy time of channels and units by cause.
pub(crate) fn busy(drives: &[(At<'_>, &DriveMeasured)]) -> PyResult<Frame> {
    fn of_kind<'a>(
        (at, kind): (At<'a>, &'static str),
        all: &'a [BusyByCause],
    ) -> impl Iterator<Item = (At<'a>, &'static str, u64, Cause, u64)> + Clone {
        all.iter().zip(0..).flat_map(move |(busy, number)| {
            let causes = Cause::ALL.iter();
            causes.map(move |cause| (at, kind, number, *cause, busy[*cause as usize]))
        })
    }
    let rows = drives.iter().flat_map(|(at, drive)| {
        let detail = &drive.detail;
        let channels = of_kind((*at, "channel"), &detail.channels);
        channels.chain(of_kind((*at, "unit"), &detail.units))
    });
    of_points(rows.clone().map(|(at, ..)| at))
        .text("resource", rows.clone().map(|(_, kind, ..)| kind))
        .count("number", rows.clone().map(|(_, _, number, ..)| number))
        .text("cause", rows.clone().map(|(.., cause, _)| cause.name()))
        .count("busy_ns", rows.map(|(.., busy)| busy))
        .frame()
}

/// Changes of the states of zones.
pub(crate) fn zone_history(drives: &[(At<'_>, &DriveMeasured)]) -> PyResult<Frame> {
    let rows = drives.iter().flat_map(|(at, drive)| {
        let records = drive.zone_history.records.iter();
        records.map(move |record| (*at, record))
    });
    of_points(rows.clone().map(|(at, _)| at))
        .count("time_ns", rows.clone().map(|(_, record)| record.at.0))
        .count("zone", rows.clone().map(|(_, record)| record.zone.0.into()))
        .text(
            "from",
            rows.clone().map(|(_, record)| state_name(record.from)),
        )
        .text("to", rows.clone().map(|(_, record)| state_name(record.to)))
        .count("written_lbas", rows.map(|(_, record)| record.written_lbas))
        .frame()
}

/// Latencies at percentages.
pub(crate) fn latencies(jobs: &[(At<'_>, &JobMeasured)], percents: &[f64]) -> PyResult<Frame> {
    let rows = jobs.iter().flat_map(|(at, job)| {
        let latencies = job.detail.latencies.iter().zip(percents);
        latencies.map(move |(latency, percent)| (*at, &job.name, *percent, latency.0))
    });
    of_points(rows.clone().map(|(at, ..)| at))
        .text("job", rows.clone().map(|(_, job, ..)| job))
        .number("percent", rows.clone().map(|(.., percent, _)| percent))
        .count("latency_ns", rows.map(|(.., latency)| latency))
        .frame()
}

/// Operations over time.
pub(crate) fn throughput(jobs: &[(At<'_>, &JobMeasured)]) -> PyResult<Frame> {
    let rows = jobs.iter().flat_map(|(at, job)| {
        let slots = job.detail.throughput.iter();
        slots.map(move |slot| (*at, &job.name, slot))
    });
    of_points(rows.clone().map(|(at, ..)| at))
        .text("job", rows.clone().map(|(_, job, _)| job))
        .count("from_ns", rows.clone().map(|(.., slot)| slot.from.0))
        .count("to_ns", rows.clone().map(|(.., slot)| slot.to.0))
        .count("operations", rows.map(|(.., slot)| slot.operations))
        .frame()
}

/// How many blocks were erased how often.
pub(crate) fn erasures(drives: &[(At<'_>, &DriveMeasured)]) -> PyResult<Frame> {
    let rows = drives.iter().flat_map(|(at, drive)| {
        let erasures = drive.detail.erasures.iter();
        erasures.map(move |(times, blocks)| (*at, *times, *blocks))
    });
    of_points(rows.clone().map(|(at, ..)| at))
        .count("erased", rows.clone().map(|(_, times, _)| times.into()))
        .count("blocks", rows.map(|(.., blocks)| blocks))
        .frame()
}

/// Jobs that ended early.
pub(crate) fn failures(points: &[At<'_>]) -> PyResult<Frame> {
    let rows: Vec<(At<'_>, &str, String)> = points
        .iter()
        .flat_map(|at| {
            let failed = at.result.failures.iter().map(move |failure| {
                let why = format!("failed: {}", failure.failed);
                (*at, failure.job.as_str(), why)
            });
            let ended = at.result.ended_early.iter();
            failed.chain(ended.map(move |of| (*at, of.job.as_str(), of.why.clone())))
        })
        .collect();
    of_points(rows.iter().map(|(at, ..)| *at))
        .text("job", rows.iter().map(|(_, job, _)| job))
        .text("why", rows.iter().map(|(.., why)| why))
        .frame()
}
