//! What a characterisation came to: a table, files, figures, a page.

use serde_json::{Value, json};
use zonelab_lab::figure::{Axis, Figure, Panel, Point, Series};
use zonelab_lab::output::csv_field;
use zonelab_lab::statistics::Statistics;
use zonelab_lab::table::{Cell, Column, Style, Table, measured, number};
use zonelab_page::sections::{self, Page};

use super::effect::{Effect, Verdict};
use super::facts::Facts;
use super::observations::{ALL, Evidence, Judged, Recommendation};
use super::samples::Samples;
use super::suite::Effort;

/// Version of `characterization.json`. Within a version keys are only added.
const SCHEMA: u32 = 1;

/// A drive that was characterised.
#[derive(Clone, Debug)]
pub struct Device {
    /// As the user named it.
    pub name: String,
    /// What the suite knew of it.
    pub facts: Facts,
    /// How much was measured.
    pub effort: Effort,
    /// What was measured.
    pub samples: Samples,
    /// The observations.
    pub judged: Vec<Judged>,
    /// What follows.
    pub recommendations: Vec<Recommendation>,
    /// Why the host was too busy to measure, if it was.
    pub too_busy: Option<String>,
}

impl Device {
    /// Takes back what was concluded: the host was too busy, which `why` says.
    pub fn doubt(&mut self, why: String) {
        for one in &mut self.judged {
            one.verdict = one.verdict.on_busy_host();
            for evidence in &mut one.evidence {
                evidence.verdict = evidence.verdict.on_busy_host();
            }
        }
        for one in &mut self.recommendations {
            one.verdict = one.verdict.on_busy_host();
        }
        self.too_busy = Some(why);
    }

    /// Why nothing is concluded, if so.
    fn busy(&self) -> Option<String> {
        let why = self.too_busy.as_ref()?;
        Some(format!(
            "cannot be judged here: this host was too busy to measure {}: {why}",
            self.name
        ))
    }

    /// The drive in a line.
    #[must_use]
    pub fn describe(&self) -> String {
        let facts = &self.facts;
        let runs = self.judged.iter().flat_map(|one| &one.evidence);
        let runs = runs
            .filter_map(|one| one.effect)
            .map(|effect| effect.runs)
            .max();
        let mib = facts.zone_bytes() as f64 / f64::from(1 << 20);
        format!(
            "{}: {} zones of {} MiB, blocks of {} B, {} zones side by side; {}; {}, {} runs each",
            self.name,
            facts.zones,
            number(mib),
            facts.lba_bytes,
            facts.open_zones,
            facts.reach.describe(),
            self.effort.name(),
            runs.unwrap_or(0)
        )
    }
}

/// What a terminal shows of a drive; with `all` every number and not only those that are
/// worst for their observation.
#[must_use]
pub fn text(device: &Device, all: bool, style: &Style) -> String {
    let mut table = Table::new([
        Column::number("#"),
        Column::text("observation"),
        Column::word("verdict"),
        Column::number("measured"),
        Column::word("needs"),
        Column::number("published"),
    ]);
    for one in &device.judged {
        let decides = one.evidence.iter().find(|of| of.verdict == one.verdict);
        table.push(row(one, decides.filter(|_| !all)));
        for evidence in one.evidence.iter().filter(|_| all) {
            let what = format!("  {}", evidence.what);
            let verdict = evidence.verdict.name().to_owned();
            let mut cells = vec![String::new(), what, verdict];
            cells.extend(numbers(evidence));
            table.push(cells.iter().map(|text| Cell::from(text.as_str())));
        }
    }
    let mut text = format!("{}\n\n{}", device.describe(), table.to_text(style));
    for one in &device.judged {
        if let Some(note) = &one.note {
            text.push_str(&format!("note: {}: {note}\n", one.observation.number));
        }
    }
    if let Some(busy) = device.busy() {
        text.push_str(&format!("note: {busy}\n"));
    }
    text.push_str("\nwhat follows\n");
    let mut table = Table::new([
        Column::number("#"),
        Column::text("recommendation"),
        Column::word("verdict"),
    ]);
    for one in &device.recommendations {
        let number = one.number.to_string();
        table.push([&number, one.says, follows(one.verdict)].map(Cell::from));
    }
    text.push_str(&table.to_text(style));
    text
}

/// Whether a recommendation is one for the drive.
const fn follows(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "follows",
        Verdict::NotMeasured => "not measured",
        Verdict::Unclear => "unclear",
        Verdict::CannotBeJudged => Verdict::CannotBeJudged.name(),
        Verdict::DoesNotHold => "does not follow",
    }
}

/// An observation, with the number that decides about it.
fn row(one: &Judged, evidence: Option<&Evidence>) -> Vec<Cell> {
    let number = one.observation.number.to_string();
    let mut cells = vec![
        number,
        one.observation.says.to_owned(),
        one.verdict.name().to_owned(),
    ];
    cells.extend(evidence.map(numbers).unwrap_or_default());
    cells.iter().map(|text| Cell::from(text.as_str())).collect()
}

/// What was measured, what it has to be, and what was published.
fn numbers(evidence: &Evidence) -> [String; 3] {
    [
        said(evidence.effect.as_ref()),
        evidence.bound.clone(),
        evidence.published.map_or_else(|| "-".to_owned(), number),
    ]
}

/// A number with its interval, if that says more than the number.
fn said(effect: Option<&Effect>) -> String {
    let Some(effect) = effect else {
        return "-".to_owned();
    };
    let half = (effect.interval.1 - effect.interval.0) / 2.0;
    let half = Some(half).filter(|half| *half > effect.value.abs() * 5e-4);
    measured(effect.value, half, "")
}

/// Which observations hold on which drives (section IV of the study, as a table).
#[must_use]
pub fn comparison(devices: &[Device], style: &Style) -> String {
    let mut columns = vec![Column::number("#"), Column::text("observation")];
    columns.extend(devices.iter().map(|device| Column::word(&device.name)));
    let mut table = Table::new(columns);
    for (place, one) in ALL.iter().enumerate() {
        let number = one.number.to_string();
        let mut cells = vec![Cell::from(number.as_str()), Cell::from(one.says)];
        let verdicts = devices
            .iter()
            .map(|device| device.judged[place].verdict.name());
        cells.extend(verdicts.map(Cell::from));
        table.push(cells);
    }
    let held = |device: &Device| {
        let holds = device
            .judged
            .iter()
            .filter(|one| one.verdict == Verdict::Holds);
        holds.count().to_string()
    };
    let mut cells = vec![Cell::from(""), Cell::from("hold, of 13")];
    cells.extend(
        devices
            .iter()
            .map(|device| Cell::from(held(device).as_str())),
    );
    table.push(cells);
    table.to_text(style)
}

/// The files of results: names and contents.
#[must_use]
pub fn files(devices: &[Device], tool: &str, command: &str) -> Vec<(String, String)> {
    let mut text = serde_json::to_string_pretty(&json(devices)).unwrap_or_default();
    text.push('\n');
    let figures = figures(devices);
    let mut files = vec![
        ("characterization.json".to_owned(), text),
        ("observations.csv".to_owned(), observations(devices)),
        ("measurements.csv".to_owned(), measurements(devices)),
        (
            "characterization.html".to_owned(),
            page(devices, (tool, command), &figures),
        ),
    ];
    for (name, svg) in figures {
        files.push((format!("{name}.svg"), svg));
    }
    files
}

fn json(devices: &[Device]) -> Value {
    let device = |device: &Device| {
        json!({
            "name": device.name,
            "facts": device.facts,
            "effort": device.effort,
            "observations": device.judged,
            "recommendations": device.recommendations,
            "too_busy": device.too_busy,
        })
    };
    json!({
        "schema": SCHEMA,
        "study": "Performance Characterization of NVMe Flash Devices with Zoned Namespaces, CLUSTER'23",
        "devices": devices.iter().map(device).collect::<Vec<_>>(),
    })
}

/// A line for each number that an observation is judged by.
fn observations(devices: &[Device]) -> String {
    let mut csv = "device,observation,says,verdict,evidence,value,low,high,runs,needs,published,\
                   evidence_verdict\n"
        .to_owned();
    for device in devices {
        for one in &device.judged {
            for evidence in &one.evidence {
                let effect = evidence.effect;
                let of = |value: fn(Effect) -> f64| {
                    effect.map_or_else(String::new, |effect| value(effect).to_string())
                };
                let fields = [
                    csv_field(&device.name),
                    one.observation.number.to_string(),
                    csv_field(one.observation.says),
                    one.verdict.name().to_owned(),
                    csv_field(&evidence.what),
                    of(|effect| effect.value),
                    of(|effect| effect.interval.0),
                    of(|effect| effect.interval.1),
                    of(|effect| f64::from(effect.runs)),
                    evidence.bound.clone(),
                    evidence
                        .published
                        .map_or_else(String::new, |value| value.to_string()),
                    evidence.verdict.name().to_owned(),
                ];
                csv.push_str(&fields.join(","));
                csv.push('\n');
            }
        }
    }
    csv
}

/// A line for each metric of each job at each point, of each repeat.
fn measurements(devices: &[Device]) -> String {
    let mut csv = "device,part,series,x,job,repeat,metric,value\n".to_owned();
    for device in devices {
        for (part, samples) in device.samples.parts() {
            for sample in samples {
                for (repeat, metrics) in sample.repeats.iter().enumerate() {
                    for (metric, value) in metrics {
                        let fields = [
                            csv_field(&device.name),
                            csv_field(part),
                            csv_field(&sample.series),
                            sample.x.to_string(),
                            csv_field(&sample.job),
                            repeat.to_string(),
                            metric.clone(),
                            value.to_string(),
                        ];
                        csv.push_str(&fields.join(","));
                        csv.push('\n');
                    }
                }
            }
        }
    }
    csv
}

/// A curve that is shown: its file, title, axes, part, series and metric.
struct Curve {
    name: &'static str,
    title: &'static str,
    part: &'static str,
    series: &'static [&'static str],
    x: (&'static str, &'static str),
    y: (&'static str, &'static str, &'static str),
    is_log: (bool, bool),
}

const IN_FLIGHT: (&str, &str) = ("operations in flight", "");

const CURVES: [Curve; 6] = [
    Curve {
        name: "request-size",
        title: "Request size (observations 3 and 4)",
        part: "sizes",
        series: &["write", "append"],
        x: ("request", "B"),
        y: ("mib_s", "bandwidth", "MiB/s"),
        is_log: (true, false),
    },
    Curve {
        name: "one-zone",
        title: "In one zone (observations 5 to 7)",
        part: "scaling",
        series: &["read deep", "write merged", "append deep"],
        x: IN_FLIGHT,
        y: ("kiops", "throughput", "KIOPS"),
        is_log: (true, false),
    },
    Curve {
        name: "many-zones",
        title: "A zone each (observations 5 to 7)",
        part: "scaling",
        series: &["read wide", "write wide", "append wide"],
        x: IN_FLIGHT,
        y: ("kiops", "throughput", "KIOPS"),
        is_log: (true, false),
    },
    Curve {
        name: "bandwidth",
        title: "Larger requests (observation 8)",
        part: "bandwidth",
        series: &[
            "write 8 KiB",
            "append 8 KiB",
            "write 16 KiB",
            "append 16 KiB",
        ],
        x: IN_FLIGHT,
        y: ("mib_s", "bandwidth", "MiB/s"),
        is_log: (true, false),
    },
    Curve {
        name: "reset",
        title: "Reset (observation 10)",
        part: "resets",
        series: &["reset"],
        x: ("logical blocks written", ""),
        y: ("lat_mean_us", "mean latency", "us"),
        is_log: (false, false),
    },
    Curve {
        name: "finish",
        title: "Finish (observation 10)",
        part: "finishes",
        series: &["finish"],
        x: ("logical blocks written", ""),
        y: ("lat_mean_us", "mean latency", "us"),
        is_log: (false, false),
    },
];

/// The curves: of one drive together, of several those of all drives beside each other, each
/// in a panel of its own.
fn figures(devices: &[Device]) -> Vec<(&'static str, String)> {
    let figure = |curve: &Curve| {
        let lines = |series: &&'static str| {
            let of = |device: &Device| {
                let points = device.samples.curve(curve.part, series, curve.y.0);
                let points: Vec<Point> = points.iter().filter_map(point).collect();
                (!points.is_empty()).then(|| (device.name.clone(), points))
            };
            let lines: Vec<_> = devices.iter().filter_map(of).collect();
            (!lines.is_empty()).then_some((*series, lines))
        };
        let all: Vec<_> = curve.series.iter().filter_map(lines).collect();
        if all.is_empty() {
            return None;
        }
        let figure = Figure::new(curve.title.to_owned());
        let figure = if devices.len() == 1 {
            let lines = all.into_iter().flat_map(|(series, lines)| {
                let points = lines.into_iter().map(|(_, points)| points);
                points.map(move |points| Series::new(series).ours(points))
            });
            figure.panel(lines.fold(curve.panel(""), Panel::series))
        } else {
            let panel = |(series, lines): (&'static str, Vec<(String, Vec<Point>)>)| {
                let lines = lines.into_iter();
                let lines = lines.map(|(name, points)| Series::new(name).ours(points));
                lines.fold(curve.panel(series), Panel::series)
            };
            all.into_iter().map(panel).fold(figure, Figure::panel)
        };
        Some((curve.name, figure.to_svg()))
    };
    CURVES.iter().filter_map(figure).collect()
}

impl Curve {
    /// A panel for it.
    fn panel(&self, title: &str) -> Panel {
        let axis = |(name, unit): (&str, &str), is_log| match is_log {
            true => Axis::log10(name, unit),
            false => Axis::linear(name, unit),
        };
        let (_, name, unit) = self.y;
        let (x, y) = (
            axis(self.x, self.is_log.0),
            axis((name, unit), self.is_log.1),
        );
        Panel::new(title, x, y)
    }
}

fn point((x, values): &(f64, Vec<f64>)) -> Option<Point> {
    let statistics = Statistics::of(values)?;
    let point = Point::new(*x, statistics.mean);
    Some(match statistics.interval() {
        Some((low, high)) if high > low => point.spread(low, high),
        _ => point,
    })
}

fn page(
    devices: &[Device],
    (tool, command): (&str, &str),
    figures: &[(&'static str, String)],
) -> String {
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    let mut page = Page::new("Characterization", &names.join(", "));
    for device in devices {
        page.notice(&device.describe());
        if let Some(busy) = device.busy() {
            page.notice(&busy);
        }
    }
    page.notice(&format!("{tool}: {command}"));
    if devices.len() > 1 {
        let mut header = vec!["#", "observation"];
        header.extend(&names);
        let rows = ALL.iter().enumerate().map(|(place, one)| {
            let mut cells = vec![one.number.to_string(), one.says.to_owned()];
            let verdicts = devices
                .iter()
                .map(|of| of.judged[place].verdict.name().to_owned());
            cells.extend(verdicts);
            cells
        });
        page.part(
            "drives",
            "Which observations hold where",
            sections::table(&header, rows),
        );
    }
    page.part("observations", "Observations", tables(devices));
    let mut rows = Vec::new();
    for device in devices {
        for one in &device.recommendations {
            rows.push(vec![
                device.name.clone(),
                one.number.to_string(),
                one.says.to_owned(),
                follows(one.verdict).to_owned(),
            ]);
        }
    }
    let header = ["drive", "#", "recommendation", "verdict"];
    page.part(
        "recommendations",
        "What follows",
        sections::table(&header, rows.into_iter()),
    );
    let curves = figures.iter().map(|(_, svg)| sections::figure(svg));
    page.part("curves", "Curves", curves.collect());
    page.to_html()
}

/// The observations of each drive, with their numbers.
fn tables(devices: &[Device]) -> String {
    let mut body = String::new();
    let header = [
        "#",
        "observation",
        "verdict",
        "evidence",
        "measured",
        "needs",
        "published",
    ];
    for device in devices {
        if devices.len() > 1 {
            body.push_str(&format!("<h3>{}</h3>\n", zonelab_page::html(&device.name)));
        }
        let rows = device.judged.iter().flat_map(|one| {
            let mut first = true;
            let row = move |evidence: &Evidence| {
                let is_first = std::mem::replace(&mut first, false);
                let own = |text: String| if is_first { text } else { String::new() };
                vec![
                    own(one.observation.number.to_string()),
                    own(one.observation.says.to_owned()),
                    own(one.verdict.name().to_owned()),
                    evidence.what.clone(),
                    said(evidence.effect.as_ref()),
                    evidence.bound.clone(),
                    evidence.published.map_or_else(|| "-".to_owned(), number),
                ]
            };
            let mut rows: Vec<Vec<String>> = one.evidence.iter().map(row).collect();
            if rows.is_empty() {
                let own = &one.observation;
                let verdict = one.verdict.name().to_owned();
                rows.push(vec![own.number.to_string(), own.says.to_owned(), verdict]);
            }
            if let Some(note) = &one.note {
                rows.push(vec![String::new(), format!("Note: {note}.")]);
            }
            rows
        });
        body.push_str(&sections::table(&header, rows));
    }
    body
}
