//! Result files: what the points of experiments measured, how it compares, and what it
//! depends on.
//!
//! Everything here is a function of the results. The command writes these texts to a
//! directory, and the playground in a browser offers the same bytes.
//!
//! * `exports`: points and their repeats as tables.
//! * `points`: `points.json`.

mod exports;
mod points;

use std::rc::Rc;

use serde_json::{Value, json};
use zonelab_config::{Document, Errors};
use zonelab_ssd::profile::to_toml;

use crate::compare;
use crate::difference::{self, Difference};
use crate::experiment::{Experiment, FtlTemplate, Via};
use crate::figure::{Figure, Width};
use crate::matrix::Matrix;
use crate::output::file_name;
use crate::published::{LookupError, References};
use crate::rows::{self, Row, Summary, significant};
use crate::run::{Point, PointResult, Profiles};
use crate::session::Loaded;
use crate::table;
pub use points::point_json;

/// An experiment and what its points measured.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The file, as it is.
    pub text: String,
    /// What it says.
    pub experiment: Experiment,
    /// Its points.
    pub points: Vec<Point>,
    /// What they measured, of those that were run.
    pub results: Vec<PointResult>,
    /// Its matrix of interference, if it has one.
    pub matrix: Option<Matrix>,
}

/// What is written of results.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The experiments.
    pub finished: &'a [Finished],
    /// Their rows, judged.
    pub rows: &'a [Row],
    /// What the rows come to.
    pub summary: &'a Summary,
    /// Differences between series, of all experiments.
    pub differences: &'a [Difference],
    /// Published values.
    pub references: &'a References,
    /// All that the results depend on, besides the seed.
    pub configuration: &'a Value,
    /// Seed of the run.
    pub seed: u64,
    /// What failed on the device, after which no point was run.
    pub lost: Option<&'a str>,
    /// How wide figures are, if not as their experiments say.
    pub figure_width: Option<Width>,
}

/// Result files.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// By name, in the order in which they are written.
    pub files: Vec<(String, String)>,
    /// The figure of each experiment, if it has one; its file is among the others.
    pub figures: Vec<Option<Figure>>,
    /// Names of the files that are figures.
    pub figure_names: Vec<String>,
}

impl Written<'_> {
    /// Rows, points, differences and figures as files.
    ///
    /// # Errors
    /// A published value is not where an experiment says.
    pub fn texts(&self) -> Result<Texts, LookupError> {
        let mut texts = Texts {
            files: self.tables(),
            ..Texts::default()
        };
        for one in self.finished {
            let figure = compare::figure(&one.experiment, &one.results, self.references)?;
            let width = self.figure_width.or(one.experiment.figure_width());
            let figure = figure.map(|figure| figure.wide(width));
            let name = file_name(&one.experiment.id);
            if let Some(figure) = &figure {
                texts.picture(format!("{name}.svg"), figure.to_svg());
            }
            texts.figures.push(figure);
            if let Some(matrix) = &one.matrix {
                let table = |end: &str, text| (format!("{name}-matrix.{end}"), text);
                texts.files.push(table("json", matrix.to_json()));
                texts.files.push(table("csv", matrix.to_csv()));
                let svg = matrix.heat_map().wide(width).to_svg();
                texts.picture(format!("{name}-matrix.svg"), svg);
            }
        }
        Ok(texts)
    }

    /// All but what each experiment has of its own.
    fn tables(&self) -> Vec<(String, String)> {
        let (rows, seed) = (self.rows, self.seed);
        let json = rows::to_json_with(rows, self.summary, seed, self.differences);
        let points = points::points_json(self.finished, (self.configuration, seed), self.lost);
        let mut files = vec![
            ("rows.json", json),
            ("summary.md", table::markdown(self.summary)),
            ("rows.csv", rows::to_csv(rows)),
            ("points.json", points),
            ("points.csv", exports::points_csv(self.finished)),
        ];
        let repeats = exports::repeats_csv(self.finished, seed);
        files.extend(repeats.map(|csv| ("repeats.csv", csv)));
        if !self.differences.is_empty() {
            files.push(("differences.csv", difference::to_csv(self.differences)));
        }
        let named = files.into_iter();
        named.map(|(name, text)| (name.to_owned(), text)).collect()
    }
}

impl Texts {
    fn picture(&mut self, name: String, svg: String) {
        self.figure_names.push(name.clone());
        self.files.push((name, svg));
    }
}

/// What results depend on, resolved.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// As data, for results: each experiment's file with its settings changed,
    /// and the drives that its points run on.
    pub value: Value,
    /// The drive of each point of each experiment, as TOML.
    pub drives: Vec<Vec<Rc<str>>>,
}

/// What the results of experiments depend on. Jobs and hosts are those of the
/// experiment files; a drive stands there once for all points that run on it. A device
/// from outside is said by `device`, and then no point has a drive of its own.
///
/// # Errors
/// A drive's profile is wrong.
pub fn configuration(
    loaded: &[Loaded],
    profiles: &dyn Profiles,
    device: Option<Rc<str>>,
) -> Result<Configuration, Errors> {
    let mut experiments = Vec::new();
    let mut drives = Vec::new();
    for one in loaded {
        let mut texts: Vec<Rc<str>> = Vec::new();
        let mut of_points = Vec::new();
        let mut points = Vec::new();
        for point in &one.points {
            let text = match &device {
                Some(device) => Rc::clone(device),
                None => {
                    let profile = point.drive(profiles)?;
                    to_toml(&profile.config).into()
                }
            };
            let known = texts.iter().position(|known| **known == *text);
            let drive = known.unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            });
            of_points.push(texts[drive].clone());
            let mut entry = json!({
                "series": point.series(),
                "x": significant(point.x().number),
                "x_label": point.x().text,
                "drive": drive,
            });
            // Of a device from outside it says nothing.
            if device.is_none() && point.via() != Via::Direct {
                entry["via"] = json!(point.via().name());
            }
            if let Some(ftl) = point.ftl().filter(|_| device.is_none()) {
                entry["ftl"] = settings_of(&ftl);
            }
            points.push(entry);
        }
        let as_data = texts.iter().map(|text| drive_data(text));
        let mut entry = json!({
            "id": one.experiment.id,
            "file": one.resolved,
            "drives": as_data.collect::<Result<Vec<_>, _>>()?,
            "points": points,
        });
        if let Some(reference) = &one.reference {
            entry["reference"] = json!({ "digest": format!("{:016x}", reference.digest) });
        }
        experiments.push(entry);
        drives.push(of_points);
    }
    Ok(Configuration {
        value: Value::Array(experiments),
        drives,
    })
}

/// The settings of the flash translation layer that a file says; the others are the
/// layer's defaults.
fn settings_of(ftl: &FtlTemplate) -> Value {
    let mut settings = serde_json::Map::new();
    for (key, value) in ftl.settings_said() {
        settings.insert(key.to_owned(), value.into());
    }
    settings.into()
}

/// The profile of a drive as data.
///
/// # Errors
/// It is no TOML.
pub fn drive_data(toml: &str) -> Result<Value, Errors> {
    let document = Document::parse("drive", toml, &[])?;
    Ok(document.to_json())
}
