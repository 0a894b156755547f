//! What a page asks for: an experiment, and what is changed about it.

use std::path::Path;

use serde::Deserialize;
use zonelab_lab::session::{Files, Gathered};

/// The name of an experiment that the page gives as text.
pub(crate) const EXPERIMENT: &str = "experiment.toml";
/// The name of a drive that the page gives as text; the experiment runs on it.
pub(crate) const DRIVE: &str = "drive.toml";

/// An experiment, and what is changed about it. The same as files, settings and options of
/// `zonelab run`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// The id of a built-in experiment.
    pub id: String,
    /// The text of an experiment, in place of a built-in one.
    pub experiment: Option<String>,
    /// The text of a profile, in place of that which the experiment names.
    pub drive: Option<String>,
    /// Settings, as after `--set`.
    pub set: Vec<String>,
    /// With the settings of the experiment's `[quick]`.
    pub quick: bool,
    /// Seed of all randomness; 0 stands for 1, which the command takes if none is given.
    pub seed: u64,
}

impl Request {
    /// The name under which the command would be given the experiment.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.experiment {
            Some(_) => EXPERIMENT,
            None => &self.id,
        }
    }

    /// Seed of all randomness.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        if self.seed == 0 { 1 } else { self.seed }
    }

    /// The settings, with that of the drive if there is a text of it.
    #[must_use]
    pub fn settings(&self) -> Vec<String> {
        let drive = self.drive.iter().map(|_| format!("profile={DRIVE}"));
        drive.chain(self.set.iter().cloned()).collect()
    }

    /// The files that there are.
    pub(crate) fn files(&self) -> Files {
        let named = [(EXPERIMENT, &self.experiment), (DRIVE, &self.drive)];
        let texts = named.into_iter();
        let texts = texts.filter_map(|(name, text)| Some((name.to_owned(), text.clone()?)));
        let files = Gathered {
            texts: texts.collect(),
            ..Gathered::default()
        };
        Files::packed(files, Path::new(""))
    }
}
