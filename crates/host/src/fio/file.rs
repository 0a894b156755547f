//! A job file, read.

use std::collections::BTreeMap;

use zonelab_config::{Errors, Problem};

use super::job::JobOptions;
use super::options;
use super::text::{self, Origin, Outside};

/// Options as they were written, by name: what `job options` echoes.
pub type Echo = BTreeMap<String, String>;

/// A job file.
#[derive(Clone, Debug)]
pub struct JobFile {
    /// Name of the file.
    pub file: String,
    /// The jobs, in order.
    pub sections: Vec<Section>,
    /// What `[global]` sections set with a value.
    pub global: Echo,
    /// Options without meaning here, and the like.
    pub warnings: Vec<Problem>,
}

/// One job of a file, before `numjobs` multiplies it.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name of the job.
    pub name: String,
    /// Where it begins.
    pub origin: Origin,
    /// What the section itself sets with a value.
    pub echo: Echo,
    pub(super) options: JobOptions,
}

/// What a `filename` means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A profile, by name or path.
    Profile(String),
    /// A controller in the form of SPDK's plug-in, `trtype=... traddr=...`.
    Spdk(String),
    /// A device file.
    Device(String),
}

impl Section {
    /// The device that the job names.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        let name = self.options.filename.as_deref()?.trim();
        if name.is_empty() {
            return None;
        }
        Some(if name.contains("trtype=") || name.contains("traddr=") {
            Target::Spdk(name.to_owned())
        } else if name.starts_with("/dev/") {
            Target::Device(name.to_owned())
        } else {
            Target::Profile(name.to_owned())
        })
    }

    /// Where its device is named, or else where it begins.
    #[must_use]
    pub fn target_origin(&self) -> &Origin {
        self.options.place(&["filename"], &self.origin)
    }

    /// What the job is for, in the words of its author.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.options.description.as_deref()
    }
}

impl JobFile {
    /// Reads a job file.
    ///
    /// # Errors
    /// Every line that is wrong.
    pub fn parse(file: &str, text: &str, outside: &Outside<'_>) -> Result<Self, Errors> {
        let text::Read {
            sections,
            mut errors,
            mut warnings,
            ..
        } = text::read(file, text, outside);
        let mut defaults = JobOptions::default();
        let mut global = Echo::new();
        let mut jobs = Vec::new();
        let first = sections.first().map(|section| section.origin.clone());
        for section in sections {
            // As fio decides it.
            let is_global = section.name.starts_with("global");
            let mut options = defaults.clone();
            let mut echo = Echo::new();
            for setting in &section.settings {
                match options.apply(setting) {
                    Ok(remark) => warnings.extend(remark),
                    Err(problem) => errors.push(problem),
                }
                if let Some(value) = &setting.value {
                    // fio echoes an alias as what it stands for.
                    let known = options::find(&setting.key);
                    let name = known.map_or(setting.key.as_str(), |option| option.name);
                    echo.insert(name.to_owned(), value.clone());
                }
            }
            if is_global {
                defaults = options;
                global.extend(echo);
                continue;
            }
            let name = options.name.take().unwrap_or(section.name);
            jobs.push(Section {
                name,
                origin: section.origin,
                echo,
                options,
            });
        }
        if let Some(origin) = first.filter(|_| jobs.is_empty()) {
            let what = "only [global]: run as one job (fio would find none)";
            warnings.push(origin.problem("", what, ""));
            jobs.push(Section {
                name: stem(file),
                origin,
                echo: Echo::new(),
                options: defaults,
            });
        }
        if jobs.is_empty() && errors.is_empty() {
            errors.push(Problem::of_file(
                file,
                "no job in it",
                "a job begins with [name]",
            ));
        }
        match Errors::of(errors) {
            Some(errors) => Err(errors),
            None => Ok(Self {
                file: file.to_owned(),
                sections: jobs,
                global,
                warnings,
            }),
        }
    }
}

/// The name of a file without directories and extension.
fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    if stem.is_empty() { "job" } else { stem }.to_owned()
}
