//! Everything that a run depends on, in one value that can be sent elsewhere.
//!
//! An [`Inputs`] holds the experiment file and every file that it names as text, the
//! settings, and the seed. Who has it needs no file system to run the experiment: a
//! thread, a process on another machine, or somebody who wants the same bytes years
//! later with the same version of zonelab. As JSON it is stable: the same inputs are
//! the same bytes.
//!
//! ```
//! use zonelab_lab::inputs::Inputs;
//! use zonelab_lab::library;
//!
//! let text = library::text("C10a").expect("it is built in");
//! let mut inputs = Inputs::new("C10a.toml", text);
//! inputs.quick = true;
//! inputs.gather(&|path| Err(std::io::Error::other(path.to_owned()))).expect("no other file");
//! let sent = inputs.to_json();
//! let there = Inputs::from_json(&sent).expect("it was written by us");
//! assert_eq!(there, inputs);
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::{Deserialize, Serialize};
use zonelab_config::{Errors, Override, Problem};
use zonelab_ssd::faults::FaultPlan;
use zonelab_ssd::profile::{self, Profile};

use crate::conditions::Conditions;
use crate::experiment::{Experiment, Quick};
use crate::run::{Point, Profiles};
use crate::settings::Settings;

/// Version of the format.
const SCHEMA: u32 = 1;

/// The version of zonelab that this is: results are the same for the same version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A file by name and text.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct NamedText {
    /// Its name, as messages give it and as other files name it.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Everything that a run depends on.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Inputs {
    schema: u32,
    /// The version of zonelab that the inputs were gathered with.
    pub version: String,
    /// The experiment file.
    pub experiment: NamedText,
    /// Settings in place of those of the file, as after `--set`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// With the settings and the series of the file's `[quick]`.
    #[serde(default)]
    pub quick: bool,
    /// Seed of all randomness.
    pub seed: u64,
    /// How often everything is run, with a seed of its own each time
    /// ([`crate::run::repeat_seed`]).
    pub repeats: u32,
    /// The text of each profile, by the name that the experiment gives it; built-in ones
    /// as well, so that what they were is known.
    #[serde(default)]
    pub profiles: BTreeMap<String, String>,
    /// The table of published results that the experiment names, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<NamedText>,
    /// The plan of faults, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<NamedText>,
    /// The snapshot that every drive starts from, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_hex: Option<String>,
}

/// Why bytes are no inputs that can be used.
#[derive(Debug, thiserror::Error)]
pub enum InputsError {
    /// They are no JSON of this form.
    #[error("these are no inputs of a run: {0}")]
    Form(#[from] serde_json::Error),
    /// They are of another format.
    #[error("inputs of schema {theirs}: this version of zonelab reads schema {SCHEMA}")]
    Schema {
        /// The schema that they say.
        theirs: u32,
    },
}

impl Inputs {
    /// The inputs of an experiment file without any settings, with seed 1, run once.
    /// [`Self::gather`] adds the files that it names.
    #[must_use]
    pub fn new(file: &str, text: &str) -> Self {
        Self {
            schema: SCHEMA,
            version: VERSION.to_owned(),
            experiment: NamedText {
                name: file.to_owned(),
                text: text.to_owned(),
            },
            settings: Vec::new(),
            quick: false,
            seed: 1,
            repeats: 1,
            profiles: BTreeMap::new(),
            reference: None,
            faults: None,
            restore_hex: None,
        }
    }

    /// Adds the text of every profile that a point of the experiment runs on, whatever
    /// varies it, and the table of published results that it names. `read` is given
    /// paths as they stand in the experiment file, relative to its directory.
    ///
    /// # Errors
    /// The experiment is wrong, or a file that it names cannot be read.
    pub fn gather(&mut self, read: &dyn Fn(&str) -> io::Result<String>) -> Result<(), Errors> {
        self.gather_with(&Settings::default(), read)?;
        let parsed = self.parse(&Settings::default())?;
        if let Some(reference) = &parsed.reference {
            let text = read(&reference.file)
                .map_err(|error| Problem::of_file(&reference.file, error.to_string(), ""))?;
            self.reference = Some(NamedText {
                name: reference.file.clone(),
                text,
            });
        }
        Ok(())
    }

    /// Adds the profiles of the points that there are with more `settings`.
    ///
    /// # Errors
    /// As [`Self::gather`].
    pub fn gather_with(
        &mut self,
        settings: &Settings,
        read: &dyn Fn(&str) -> io::Result<String>,
    ) -> Result<(), Errors> {
        let points = self.points_with(settings)?;
        let names: BTreeSet<&str> = points
            .iter()
            .map(|point| point.experiment().profile.as_str())
            .collect();
        for name in names {
            if !self.profiles.contains_key(name) {
                let text = profile::text_of(name, read)?;
                self.profiles.insert(name.to_owned(), text);
            }
        }
        Ok(())
    }

    /// The points of the experiment.
    ///
    /// # Errors
    /// What is wrong with the file or with a setting of it.
    pub fn points(&self) -> Result<Vec<Point>, Errors> {
        self.points_with(&Settings::default())
    }

    /// The points of the experiment with more settings, over those that are here.
    ///
    /// # Errors
    /// What is wrong with the file or with a setting of it. Settings of the drive are
    /// looked at with the drive ([`Point::check`]).
    pub fn points_with(&self, settings: &Settings) -> Result<Vec<Point>, Errors> {
        let quick = self.quick_of_file()?;
        let all = self.settings_with(&quick, settings)?;
        let mut points = all.points(&self.experiment.name, &self.experiment.text)?;
        points.retain(|point| quick.runs(point.series()));
        Ok(points)
    }

    /// The experiment with more settings, over those that are here, without any value of
    /// its axis put in.
    ///
    /// # Errors
    /// What is wrong with the file or with a setting of it.
    pub fn parse(&self, settings: &Settings) -> Result<Experiment, Errors> {
        let quick = self.quick_of_file()?;
        let all = self.settings_with(&quick, settings)?;
        let NamedText { name, text } = &self.experiment;
        let mut experiment = Experiment::parse(name, text, &all.file, None)?;
        experiment.series.retain(|series| quick.runs(&series.name));
        Ok(experiment)
    }

    /// Faults, and the state that drives start from.
    ///
    /// # Errors
    /// They are wrong.
    pub fn conditions(&self) -> Result<Conditions, Errors> {
        let faults = self.faults.as_ref();
        let faults = faults.map(|file| FaultPlan::parse(&file.name, &file.text, &[]));
        let restore = self.restore_hex.as_deref().map(from_hex).transpose();
        let restore = restore
            .map_err(|what| Problem::of_file(&self.experiment.name, what, "as it was packed"))?;
        Ok(Conditions {
            faults: faults.transpose()?,
            restore,
            ..Conditions::default()
        })
    }

    /// Lets every drive start from a snapshot.
    pub fn set_restore(&mut self, snapshot: &[u8]) {
        self.restore_hex = Some(to_hex(snapshot));
    }

    /// As JSON, on one line, the same for the same inputs.
    ///
    /// # Panics
    /// Never: there is nothing that JSON cannot say.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON")
    }

    /// Reads what [`Self::to_json`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn from_json(text: &str) -> Result<Self, InputsError> {
        let inputs: Self = serde_json::from_str(text)?;
        if inputs.schema == SCHEMA {
            Ok(inputs)
        } else {
            Err(InputsError::Schema {
                theirs: inputs.schema,
            })
        }
    }

    fn quick_of_file(&self) -> Result<Quick, Errors> {
        if !self.quick {
            return Ok(Quick::default());
        }
        let NamedText { name, text } = &self.experiment;
        Ok(Experiment::parse(name, text, &[], None)?.quick)
    }

    /// The settings of `[quick]`, then those that are here, then more.
    fn settings_with(&self, quick: &Quick, more: &Settings) -> Result<Settings, Errors> {
        let own = Settings::parse(&self.settings)?;
        let quick = Settings {
            file: quick.set.clone(),
            drive: Vec::new(),
        };
        Ok(quick.and(&own).and(more))
    }
}

impl Profiles for Inputs {
    /// The profile of that name from the texts that are here.
    fn load(&self, name: &str, overrides: &[Override]) -> Result<Profile, Errors> {
        if let Some(text) = self.profiles.get(name) {
            return Profile::parse(&profile::file_of(name), text, overrides);
        }
        Profile::load(name, overrides, |_| {
            Err("it is not among the inputs of this run")
        })
    }
}

/// Bytes in hexadecimal.
fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    let both = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    both.map(digit).collect()
}

/// The bytes that a text says in hexadecimal.
fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || "the snapshot is not in hexadecimal".to_owned();
    let digit = |c: u8| {
        let digit = char::from(c).to_digit(16).ok_or_else(wrong)?;
        u8::try_from(digit).map_err(|_| wrong())
    };
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Ok(digit(*high)? << 4 | digit(*low)?),
            _ => Err(wrong()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;
    use crate::run::{RunOptions, run_point};

    const DRIVE: &str = r#"
schema = 1
name = "tiny"
[geometry]
channels = 2
pages_per_block = 8
page_size = "16KiB"
[zones]
count = 40
size = "256KiB"
capacity = "240KiB"
[media]
read = "60us"
program = "700us"
erase = "3.5ms"
transfer = "25us"
"#;

    /// Two profiles by an axis, one of them in a file.
    const EXPERIMENT: &str = r#"
schema = 1
id = "two"
title = "Two drives"
profile = "$x"
[axis]
name = "drive"
values = ["./tiny.toml", "confznspp"]
[[job]]
name = "write"
work = "write"
zones = "0..=3"
block = "16KiB"
runtime = "20ms"
[[series]]
name = "alone"
jobs = ["write"]
[[series]]
name = "long"
jobs = ["write"]
[quick]
set = ["job.0.runtime=10ms"]
series = ["alone"]
"#;

    fn read(path: &str) -> io::Result<String> {
        match path {
            "./tiny.toml" => Ok(DRIVE.to_owned()),
            _ => Err(io::Error::other("there is no such file")),
        }
    }

    #[test]
    fn a_run_from_a_pack_needs_no_file_and_measures_the_same() {
        let mut inputs = Inputs::new("two.toml", EXPERIMENT);
        inputs.quick = true;
        inputs.settings = vec!["job.0.block=32KiB".to_owned()];
        inputs.gather(&read).unwrap();
        let names: Vec<&String> = inputs.profiles.keys().collect();
        assert_eq!(names, ["./tiny.toml", "confznspp"]);
        let there = Inputs::from_json(&inputs.to_json()).unwrap();
        assert_eq!(there, inputs);
        let points = there.points().unwrap();
        // The quick part has one series.
        assert_eq!(points.len(), 2);
        let conditions = there.conditions().unwrap();
        let options = RunOptions {
            seed: there.seed,
            profiles: &there,
            conditions: &conditions,
            on_point: &|_, _| (),
            interrupted: &|| false,
            abandoned: &|| false,
        };
        let result = run_point(&points[0], &options).unwrap();
        // Of 700 us and the transfer of two pages each, on two dies.
        let writes = result.jobs[0].metrics.get("ops").unwrap();
        assert!((10.0..30.0).contains(&writes), "{writes}");
        // The settings of the drive reach a drive from the pack.
        let slow = Settings::parse(["drive.media.program=2ms"]).unwrap();
        let slow = run_point(&there.points_with(&slow).unwrap()[0], &options).unwrap();
        assert!(slow.jobs[0].metrics.get("ops").unwrap() < writes);
    }

    #[test]
    fn what_cannot_be_gathered_is_named() {
        let mut inputs = Inputs::new("two.toml", &EXPERIMENT.replace("tiny", "other"));
        let error = inputs.gather(&read).unwrap_err().to_string();
        assert!(
            error.contains("./other.toml: there is no such file"),
            "{error}"
        );
        let mut inputs = Inputs::new("two.toml", &EXPERIMENT.replace("confznspp", "confznsp"));
        let error = inputs.gather(&read).unwrap_err().to_string();
        assert!(error.contains("did you mean"), "{error}");
        // Nor does a pack look anywhere else for what it lacks.
        let error = inputs.load("./none.toml", &[]).unwrap_err().to_string();
        assert!(error.contains("not among the inputs"), "{error}");
    }

    #[test]
    fn every_experiment_that_is_built_in_can_be_packed() {
        for id in library::ids() {
            let (file, text) = (format!("{id}.toml"), library::text(id).unwrap());
            let mut inputs = Inputs::new(&file, text);
            let none = |path: &str| Err(io::Error::other(path.to_owned()));
            inputs.gather(&none).unwrap();
            // One that only calculates needs no drive.
            let runs = !crate::run::points(&file, text, &[]).unwrap().is_empty();
            assert_eq!(!inputs.profiles.is_empty(), runs, "{id}");
        }
    }

    #[test]
    fn other_formats_are_refused_and_snapshots_survive() {
        let mut inputs = Inputs::new("two.toml", EXPERIMENT);
        let snapshot: Vec<u8> = (0..=255).collect();
        inputs.set_restore(&snapshot);
        assert_eq!(inputs.conditions().unwrap().restore, Some(snapshot));
        inputs.restore_hex = Some("0g".to_owned());
        assert!(inputs.conditions().is_err());
        let other = inputs.to_json().replace("\"schema\":1", "\"schema\":2");
        let error = Inputs::from_json(&other).unwrap_err().to_string();
        assert!(error.contains("schema 2"), "{error}");
        assert!(Inputs::from_json("[]").is_err());
    }
}
