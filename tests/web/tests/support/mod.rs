//! The result files that a report stands beside.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use zonelab_lab::table;

/// What the name of a heat map ends in.
const MATRIX: &str = "-matrix";

/// A directory of results.
pub struct Results {
    directory: PathBuf,
    points: Value,
    rows: Value,
}

impl Results {
    /// Those that `ZONELAB_REPORT` names.
    pub fn load() -> Result<Self> {
        let directory = std::env::var_os("ZONELAB_REPORT")
            .context("ZONELAB_REPORT names no results: run `cargo xtask test web`")?;
        let directory = PathBuf::from(directory);
        let read = |name: &str| -> Result<Value> {
            let path = directory.join(name);
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Ok(serde_json::from_str(&text)?)
        };
        let (points, rows) = (read("points.json")?, read("rows.json")?);
        Ok(Self {
            directory,
            points,
            rows,
        })
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn report(&self) -> PathBuf {
        self.file("report.html")
    }

    /// Ids of the experiments that have a figure.
    pub fn figures(&self) -> Result<Vec<String>> {
        let mut ids = self.pictures()?;
        ids.retain(|id| !id.ends_with(MATRIX));
        Ok(ids)
    }

    /// Ids of the experiments that have a matrix.
    pub fn matrices(&self) -> Result<Vec<String>> {
        let ids = self.pictures()?.into_iter();
        Ok(ids
            .filter_map(|id| Some(id.strip_suffix(MATRIX)?.to_owned()))
            .collect())
    }

    /// Names of all SVG files.
    fn pictures(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if let Some(id) = Path::new(&name)
                .extension()
                .is_some_and(|e| e == "svg")
                .then(|| name.trim_end_matches(".svg"))
            {
                ids.push(id.to_owned());
            }
        }
        ids.sort();
        Ok(ids)
    }

    pub fn points(&self) -> &[Value] {
        list(&self.points["points"])
    }

    /// Ids of all experiments.
    pub fn experiments(&self) -> Vec<&str> {
        let all = list(&self.points["configuration"]);
        all.iter().filter_map(|one| one["id"].as_str()).collect()
    }

    pub fn rows(&self) -> &[Value] {
        list(&self.rows["rows"])
    }

    /// What the rows come to.
    pub fn summary(&self) -> &Value {
        &self.rows["summary"]
    }

    pub fn points_of(&self, id: &str) -> impl Iterator<Item = &Value> {
        self.points()
            .iter()
            .filter(move |point| point["experiment"] == id)
    }

    /// Names of the series of an experiment, in order.
    pub fn series_of(&self, id: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self
            .points_of(id)
            .filter_map(|point| point["series"].as_str())
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    pub fn point(&self, id: &str, series: &str, x: &str) -> &Value {
        self.points_of(id)
            .find(|point| point["series"] == series && point["x_label"] == x)
            .unwrap_or_else(|| panic!("there is no point {id}, {series}, {x}"))
    }

    pub fn row(&self, id: &str, series: &str, x: &str, metric: &str) -> &Value {
        let x: f64 = x.parse().expect("a number");
        self.rows()
            .iter()
            .find(|row| {
                row["id"] == id
                    && row["series"] == series
                    && row["x"] == x
                    && row["metric"] == metric
            })
            .unwrap_or_else(|| panic!("there is no row {id}, {series}, {x}, {metric}"))
    }
}

/// A job of a point.
pub fn job<'a>(point: &'a Value, name: &str) -> &'a Value {
    let found = list(&point["jobs"]).iter().find(|job| job["name"] == name);
    found.unwrap_or_else(|| panic!("there is no job {name} in {point}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A number as the command prints it, which the page must too.
pub fn digits(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, table::number)
}

/// A relative error as the command prints it, with a minus of the page's kind.
pub fn error(value: &Value) -> String {
    value
        .as_f64()
        .map_or_else(String::new, |error| table::percent(error).replace('-', "−"))
}

/// `text` without white space of any kind.
pub fn unspaced(text: &str) -> String {
    text.split_whitespace().collect()
}
