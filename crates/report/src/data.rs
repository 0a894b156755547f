//! The data of a report, in the shape in which the page reads them.
//!
//! Tables with many rows are arrays of arrays, to stay small; the names of
//! their columns are in the comments here and at the reader in `page/`.

use std::collections::BTreeMap;

use serde::Serialize;
use zonelab_lab::compare::{point_label, row_series};
use zonelab_lab::detail::quantiles;
use zonelab_lab::experiment::FigureSpec;
use zonelab_lab::figure::{self, Figure, Panel};
use zonelab_lab::rows::{Misfit, Missing, Row, Standing, Stats, Verdict, X, significant};
use zonelab_lab::statistics::{Over, Statistics};
use zonelab_lab::table::{number, sized, summary_lines};
use zonelab_ssd::account::Cause;

use super::point::PointData;
use super::{Report, Section};

/// Version of the embedded data, for who reads them from the file.
const SCHEMA: u32 = 2;

/// Everything.
#[derive(Serialize)]
pub(super) struct Data<'a> {
    schema: u32,
    tool: &'a str,
    title: &'a str,
    command: &'a str,
    seed: u64,
    /// Whether anything is compared with what was published, or has to hold. If not, it is an
    /// experiment of one's own, and the page has no columns for such things.
    compared: bool,
    notices: &'a [String],
    /// What is to be said of jobs beside their numbers.
    warnings: &'a [String],
    /// Names of the causes, in the order of busy times.
    causes: Vec<&'static str>,
    /// In per cent, of all latency distributions.
    quantiles: Vec<f64>,
    /// Path data of the solid and the hollow marker of the first series, of
    /// the second, and so on.
    marks: Vec<(String, String)>,
    /// A line for each kind of result, and for each bar of a real drive.
    summary: Vec<String>,
    /// Statements and bars that do not hold, the worst first: result, sentence,
    /// published, ours, what it takes, cause, whether it is known.
    missing: Vec<(&'a str, &'a str, String, String, &'a str, &'a str, bool)>,
    experiments: Vec<ExperimentData<'a>>,
    rows: Vec<RowData<'a>>,
    /// Drives as TOML, each once.
    drives: Vec<&'a str>,
}

/// Counts and errors of rows.
#[derive(Serialize)]
struct StatsData {
    count: usize,
    /// By verdict.
    verdicts: BTreeMap<&'static str, usize>,
    median: Option<f64>,
    p90: Option<f64>,
}

/// An experiment.
#[derive(Serialize)]
struct ExperimentData<'a> {
    id: &'a str,
    title: &'a str,
    source: &'a str,
    about: String,
    command: &'a str,
    text: &'a str,
    axis: (String, &'a str),
    series: Vec<&'a str>,
    stats: StatsData,
    figure: Vec<PanelData<'a>>,
    points: Vec<PointData<'a>>,
}

/// A row of comparison.
#[derive(Serialize)]
struct RowData<'a> {
    /// Position of its experiment.
    e: usize,
    series: &'a str,
    x: Option<f64>,
    /// The same in words, if it is no number or one of a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    metric: &'a str,
    unit: &'a str,
    published: Option<f64>,
    /// None if it is not finite.
    ours: Option<f64>,
    error: Option<f64>,
    /// Half the width of the 95 % confidence interval of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    half: Option<f64>,
    /// Its verdict.
    status: &'static str,
    /// What a statement takes to hold, and both values as they read.
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<(String, String, String)>,
    /// Why it is what it is: pairs of a word and a text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<(&'static str, String)>,
    /// It passes by the neighbours of our percentile.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    bracket: bool,
}

/// A panel of a figure.
#[derive(Serialize)]
struct PanelData<'a> {
    title: &'a str,
    x: AxisData<'a>,
    y: AxisData<'a>,
    series: Vec<SeriesData<'a>>,
}

/// An axis.
#[derive(Serialize)]
struct AxisData<'a> {
    name: &'a str,
    unit: &'a str,
    log: bool,
    /// What is written at which values, if they are no numbers.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    ticks: &'a [(f64, String)],
}

/// A curve.
#[derive(Serialize)]
struct SeriesData<'a> {
    name: &'a str,
    points: Vec<MarkData<'a>>,
}

/// A point of a curve: ours, the published one, or both.
#[derive(Default, Serialize)]
struct MarkData<'a> {
    label: &'a str,
    /// Position of the point in the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ours: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<(f64, f64)>,
    /// 95 % confidence interval of y, over repeats or within the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    band: Option<(f64, f64)>,
    /// Positions of the rows that compare x and y.
    rows: (Option<usize>, Option<usize>),
}

impl<'a> Data<'a> {
    pub(super) fn of(report: &'a Report<'a>) -> Self {
        let summary = report.summary;
        let compared = report.is_compared();
        let mut drives: Vec<&str> = Vec::new();
        let mut drive = |text: &'a str| {
            drives
                .iter()
                .position(|known| *known == text)
                .unwrap_or_else(|| {
                    drives.push(text);
                    drives.len() - 1
                })
        };
        let experiments: Vec<_> = report
            .sections
            .iter()
            .map(|section| experiment(section, report.rows, &mut drive))
            .collect();
        let most = report
            .sections
            .iter()
            .map(|s| s.experiment.series.len())
            .max();
        Self {
            schema: SCHEMA,
            tool: report.tool,
            title: &report.title,
            command: &report.command,
            seed: report.seed,
            compared,
            notices: &report.notices,
            warnings: &summary.warnings,
            causes: Cause::ALL.iter().map(|cause| cause.name()).collect(),
            quantiles: quantiles(),
            marks: (0..most.unwrap_or(0).clamp(1, 24))
                .map(figure::markers)
                .collect(),
            summary: match compared {
                true => summary_lines(summary),
                false => Vec::new(),
            },
            missing: summary.missing.iter().map(missing).collect(),
            experiments,
            rows: rows(report),
            drives,
        }
    }
}

impl StatsData {
    fn of(stats: &Stats) -> Self {
        Self {
            count: stats.count,
            verdicts: Verdict::ALL
                .map(|verdict| (status(verdict), stats.of_verdict(verdict)))
                .into(),
            median: stats.median_error.map(significant),
            p90: stats.p90_error.map(significant),
        }
    }
}

fn missing(one: &Missing) -> (&str, &str, String, String, &str, &str, bool) {
    (
        &one.id,
        &one.says,
        sized(one.published, &one.unit),
        sized(one.ours, &one.unit),
        &one.needs,
        one.cause.as_deref().unwrap_or("not known"),
        one.is_known,
    )
}

fn experiment<'a>(
    section: &'a Section<'a>,
    rows: &'a [Row],
    drive: &mut impl FnMut(&'a str) -> usize,
) -> ExperimentData<'a> {
    let experiment = section.experiment;
    let own = rows.iter().filter(|row| row.id == experiment.id);
    ExperimentData {
        id: &experiment.id,
        title: &experiment.title,
        source: &experiment.source,
        about: about(section.text),
        command: &section.command,
        text: section.text,
        axis: (experiment.axis.heading(), &experiment.axis.unit),
        series: experiment
            .series
            .iter()
            .map(|series| series.name.as_str())
            .collect(),
        stats: StatsData::of(&Stats::of(own)),
        figure: section
            .figure
            .map_or_else(Vec::new, |figure| panels(figure, section, rows)),
        points: section
            .points
            .iter()
            .map(|point| PointData::of(experiment, point, drive(point.drive)))
            .collect(),
    }
}

/// The comment at the head of an experiment file, as one paragraph, without lines that are
/// indented: these are commands.
fn about(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    let lines = lines.filter(|line| !line.starts_with("  "));
    let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

fn rows<'a>(report: &'a Report<'a>) -> Vec<RowData<'a>> {
    // A row may be of a panel that another experiment shows.
    let section = |row: &Row| {
        let mut sections = report.sections.iter();
        let shows = |section: &&Section<'_>| {
            let id = &section.experiment.id;
            *id == row.id || zonelab_lab::library::select(&row.id).contains(&id.as_str())
        };
        sections.position(|section| shows(&section))
    };
    report
        .rows
        .iter()
        .filter_map(|row| {
            let e = section(row)?;
            Some(RowData {
                e,
                series: &row.series,
                x: row.x.as_ref().map(|x| x.value),
                at: row.x.as_ref().and_then(X::in_words),
                metric: &row.metric,
                unit: &row.unit,
                published: row.published,
                ours: Some(row.ours).filter(|ours| ours.is_finite()),
                error: row.rel_error.map(significant),
                half: row.statistics.and_then(|of| of.half_width).map(significant),
                status: status(row.verdict()),
                statement: row.statement.map(|bound| {
                    (
                        bound.words(&row.unit),
                        sized(row.published, &row.unit),
                        sized(Some(row.ours), &row.unit),
                    )
                }),
                notes: notes(row, report.misfits.entry(row)),
                bracket: row.passes_by_bracket(),
            })
        })
        .collect()
}

/// A verdict as the page names it.
const fn status(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Misfit => "misfit",
        Verdict::Missed => "missed",
        Verdict::Fail => "fail",
        Verdict::Joint => "joint",
        Verdict::Input => "input",
        Verdict::Info => "info",
    }
}

/// What explains a row.
fn notes(row: &Row, misfit: Option<&Misfit>) -> Vec<(&'static str, String)> {
    let mut notes = Vec::new();
    if let Some(gap) = &row.gap {
        notes.push(("Cause", gap.cause.clone()));
        notes.push(("Tried", gap.tried.clone()));
    }
    if let Some(misfit) = misfit.filter(|_| row.misfit.is_some()) {
        notes.push(("Cause", misfit.cause.clone()));
        notes.push(("Evidence", misfit.evidence.clone()));
    }
    if row.standing != Standing::Judged {
        notes.extend(row.reason().map(|reason| ("Not judged", reason)));
    }
    if let Some((least, greatest)) = row.repeat_spread {
        let text = format!(
            "The authors' own repeats of this point lie between {least} and {greatest} {}; the \
             error counts from the nearest of them.",
            row.unit
        );
        notes.push(("Repeats", text));
    }
    if let (true, Some(lower), Some(upper)) =
        (row.passes_by_bracket(), row.ours_lower, row.ours_upper)
    {
        let text = format!(
            "The distribution is steep here: the published percentile lies between ours one \
             point lower and one point higher, {lower} and {upper} {}.",
            row.unit
        );
        notes.push(("Neighbours", text));
    }
    if let Some(of) = &row.statistics {
        notes.push(("Spread", spread(row, of)));
    }
    notes
}

/// How our value varies, in a sentence.
fn spread(row: &Row, of: &Statistics) -> String {
    let unit = if row.unit == "1" {
        ""
    } else {
        row.unit.as_str()
    };
    let value = |value: f64| format!("{} {unit}", number(value)).trim_end().to_owned();
    let over = match of.over {
        Over::Repeats => format!("{} repeats", of.count),
        Over::Batches => format!("{} equally long batches of the run", of.count),
    };
    let sd = of.sd.map_or_else(|| "-".to_owned(), value);
    let interval = of.interval().map_or_else(String::new, |(low, high)| {
        format!(
            "; the 95 % confidence interval of the mean is {} to {}",
            value(low),
            value(high)
        )
    });
    format!(
        "Over {over}: standard deviation {sd}, from {} to {}{interval}.",
        value(of.min),
        value(of.max)
    )
}

fn panels<'a>(figure: &'a Figure, section: &'a Section<'a>, rows: &[Row]) -> Vec<PanelData<'a>> {
    let panel = |(panel, spec): (&'a Panel, &FigureSpec)| PanelData {
        title: &panel.title,
        x: axis(&panel.x),
        y: axis(&panel.y),
        series: panel
            .series
            .iter()
            .map(|series| curve(series, spec, section, rows))
            .collect(),
    };
    // One that draws percentiles has a panel for each that it begins at.
    let panels_of = |spec: &FigureSpec| spec.percentiles_ppm.len().max(1);
    let specs = section.experiment.figures.iter();
    let specs = specs.flat_map(|spec| std::iter::repeat_n(spec, panels_of(spec)));
    figure.panels.iter().zip(specs).map(panel).collect()
}

fn axis(axis: &figure::Axis) -> AxisData<'_> {
    AxisData {
        name: &axis.quantity,
        unit: &axis.unit,
        log: axis.scale == figure::Scale::Log10,
        ticks: &axis.labels,
    }
}

/// A curve with its points, ours and published ones of the same label together.
fn curve<'a>(
    series: &'a figure::Series,
    spec: &FigureSpec,
    section: &Section<'a>,
    rows: &[Row],
) -> SeriesData<'a> {
    let mut points: Vec<MarkData<'a>> = Vec::new();
    let place = |point: &figure::Point| (significant(point.x), significant(point.y));
    for point in &series.ours {
        points.push(MarkData {
            label: &point.label,
            ours: Some(place(point)),
            band: point
                .band
                .map(|(low, high)| (significant(low), significant(high))),
            ..mark(series, &point.label, spec, section, rows)
        });
    }
    for point in &series.published {
        let known = points
            .iter_mut()
            .find(|mark| mark.label == point.label && mark.published.is_none());
        match known {
            Some(mark) => mark.published = Some(place(point)),
            None => points.push(MarkData {
                label: &point.label,
                published: Some(place(point)),
                ..mark(series, &point.label, spec, section, rows)
            }),
        }
    }
    SeriesData {
        name: &series.name,
        points,
    }
}

/// The point of the experiment and the rows that a mark stands for.
fn mark<'a>(
    series: &figure::Series,
    label: &str,
    spec: &FigureSpec,
    section: &Section<'a>,
    rows: &[Row],
) -> MarkData<'a> {
    let experiment = section.experiment;
    let p = section.points.iter().position(|point| {
        let result = point.result;
        result.series == series.name && point_label(&experiment.axis, &result.x) == label
    });
    let result = p.map(|p| section.points[p].result);
    let row = |metric: &str| {
        let result = result?;
        let x = significant(result.x.number);
        rows.iter().position(|row| {
            let named = result
                .jobs
                .iter()
                .any(|job| row.series == row_series(experiment, &series.name, job));
            row.id == experiment.id
                && named
                && row.metric == metric
                && row
                    .x
                    .as_ref()
                    .is_some_and(|at| at.value.to_bits() == x.to_bits())
        })
    };
    MarkData {
        p,
        rows: (row(&spec.x), row(&spec.y)),
        ..MarkData::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_comment_says_what_it_is_about() {
        let text = "# Finish on read: one\n#\n#   zonelab run x\n# thread.\nschema = 1\n# more\n";
        assert_eq!(about(text), "Finish on read: one thread.");
        assert_eq!(about("schema = 1"), "");
    }
}
