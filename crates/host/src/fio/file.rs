//! Job files, read, and the jobs of a command line with them.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

use zonelab_config::{Errors, Problem};

use super::arguments::CommandLine;
use super::engines;
use super::job::JobOptions;
use super::options;
use super::text::{self, Origin, Outside};
use super::trace::{Columns, read_trace};
use super::value::shorten;
use crate::workload::replay::Trace;

/// Options as they were written, by name: what `job options` echoes.
pub type Echo = BTreeMap<String, String>;

/// A job file; or several, with the jobs of the command line.
#[derive(Clone, Debug)]
pub struct JobFile {
    /// Name of the first file; empty if the jobs are those of the command line.
    pub file: String,
    /// The jobs, in order.
    pub sections: Vec<Section>,
    /// What `[global]` sections set with a value; of several files, those of the
    /// last, as fio prints it.
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
    /// The traces of `read_iolog`, once they have been read.
    pub(super) traces: Vec<Arc<Trace>>,
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

    /// The traces that it replays, in the order of its threads.
    #[must_use]
    pub fn traces(&self) -> &[Arc<Trace>] {
        &self.traces
    }

    /// What the job is for, in the words of its author.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.options.description.as_deref()
    }
}

/// Opens the file of a trace by the name that a job file gives it, or says why that
/// is not possible.
pub type OpenTrace<'a> = dyn Fn(&str) -> Result<Box<dyn BufRead>, String> + 'a;

impl JobFile {
    /// Reads a job file.
    ///
    /// # Errors
    /// Every line that is wrong.
    pub fn parse(file: &str, text: &str, outside: &Outside<'_>) -> Result<Self, Errors> {
        let text = JobText {
            file,
            text,
            outside,
        };
        Self::gather(&CommandLine::default(), &[text], &[])
    }

    /// Puts the jobs of a command line and of job files together, in the order that
    /// fio runs them: first those of the command line, then those of one file after
    /// another, each file in a stage of its own behind the one before it.
    ///
    /// Options for all jobs hold within their file. Those of the command line hold
    /// for its jobs and for the file, of which there can be only one then. `only`
    /// chooses sections of the files by name; empty: all.
    ///
    /// # Errors
    /// Every option and line that is wrong; there is no job, or none of a name in
    /// `only`.
    pub fn gather(
        line: &CommandLine,
        texts: &[JobText<'_>],
        only: &[String],
    ) -> Result<Self, Errors> {
        let mut jobs = Jobs::default();
        jobs.sections(line.sections.clone());
        if let (Some(setting), true) = (line.first_global(), texts.len() > 1) {
            let what = "is for all jobs, but there are several job files";
            let valid = "put it into their [global] sections, or behind --name=...: \
                         fio would give it to the first file only";
            jobs.errors
                .push(setting.origin.problem(&setting.key, what, valid));
        }
        for (index, text) in texts.iter().enumerate() {
            if index > 0 {
                jobs.defaults = JobOptions::default();
                jobs.global.clear();
                jobs.begins_stage = true;
            }
            jobs.file(text, only);
        }
        for name in only {
            let mut names = jobs.seen.iter();
            if !names.any(|seen| seen == name) {
                let what = format!("no job of the files has the name {}", shorten(name));
                let names: Vec<String> =
                    jobs.seen.iter().take(8).map(|name| shorten(name)).collect();
                let origin = Origin::Argument("--section".to_owned());
                jobs.errors.push(origin.problem("", what, names.join(", ")));
            }
        }
        let name = texts.first().map_or("", |text| text.file);
        if jobs.sections.is_empty() && jobs.errors.is_empty() {
            let (what, valid) = match texts.is_empty() {
                true => ("no job", "name a job file, or begin a job with --name=..."),
                false => ("no job in it", "a job begins with [name]"),
            };
            jobs.errors.push(Problem::of_file(name, what, valid));
        }
        if !jobs.errors.is_empty() {
            jobs.errors.splice(0..0, std::mem::take(&mut jobs.unset));
        }
        jobs.warnings.splice(0..0, jobs.unset);
        match Errors::of(jobs.errors) {
            Some(errors) => Err(errors),
            None => Ok(Self {
                file: name.to_owned(),
                sections: jobs.sections,
                global: jobs.global,
                warnings: jobs.warnings,
            }),
        }
    }
}

impl JobFile {
    /// Reads the traces that jobs replay, which `open` opens by their names. Each
    /// file is read once.
    ///
    /// # Errors
    /// Files that cannot be opened, and the first line of each that is wrong.
    pub fn read_traces(&mut self, open: &OpenTrace<'_>) -> Result<(), Errors> {
        let mut read: Vec<(String, bool, Option<Columns>, Arc<Trace>)> = Vec::new();
        let mut errors = Vec::new();
        for section in &mut self.sections {
            let (joins, columns) = {
                let replay = &section.options.replay;
                (replay.joins_devices, replay.columns.clone())
            };
            let mut traces = Vec::new();
            for name in &section.options.replay.read_iolog {
                let before = read
                    .iter()
                    .find(|(of, joined, named, _)| (of, *joined, named) == (name, joins, &columns));
                if let Some((.., trace)) = before {
                    traces.push(Arc::clone(trace));
                    continue;
                }
                let trace = match open(name) {
                    Ok(input) => read_trace(name, input, joins, columns.as_ref()),
                    Err(error) => {
                        let origin = section.options.place(&["read_iolog"], &section.origin);
                        Err(origin.problem("read_iolog", format!("{name}: {error}"), ""))
                    }
                };
                match trace {
                    Ok(trace) => {
                        let trace = Arc::new(trace);
                        let of = (name.clone(), joins, columns.clone(), Arc::clone(&trace));
                        read.push(of);
                        traces.push(trace);
                    }
                    Err(problem) => errors.push(problem),
                }
            }
            section.traces = traces;
        }
        Errors::of(errors).map_or(Ok(()), Err)
    }
}

/// The text of a job file.
#[derive(Clone, Copy)]
pub struct JobText<'a> {
    /// Its name in messages.
    pub file: &'a str,
    /// What it holds.
    pub text: &'a str,
    /// How it reaches what is outside of it.
    pub outside: &'a Outside<'a>,
}

/// Jobs that are gathered.
#[derive(Default)]
struct Jobs {
    defaults: JobOptions,
    sections: Vec<Section>,
    global: Echo,
    /// Names of the jobs of files, also of those that are left out.
    seen: Vec<String>,
    /// The next job waits for all before it.
    begins_stage: bool,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
    /// Variables that the environment does not have: a reason for errors if there are
    /// any, and otherwise a warning.
    unset: Vec<Problem>,
}

impl Jobs {
    fn file(&mut self, text: &JobText<'_>, only: &[String]) {
        let text::Read {
            mut sections,
            errors,
            unset,
            ..
        } = text::read(text.file, text.text, text.outside);
        self.errors.extend(errors);
        self.unset.extend(unset);
        let first = sections.first().map(|section| section.origin.clone());
        let names = sections.iter().filter(|section| !section.is_global());
        let names: Vec<String> = names.map(|section| section.name.clone()).collect();
        let has_jobs = !names.is_empty();
        self.seen.extend(names);
        sections.retain(|section| {
            section.is_global() || only.is_empty() || only.contains(&section.name)
        });
        self.sections(sections);
        if let Some(origin) = first.filter(|_| !has_jobs) {
            let what = "only [global]: run as one job (fio would find none)";
            self.warnings.push(origin.problem("", what, ""));
            let options = self.defaults.clone();
            self.job(stem(text.file), origin, Echo::new(), options);
        }
    }

    fn sections(&mut self, sections: Vec<text::Section>) {
        for section in sections {
            let mut options = self.defaults.clone();
            let mut echo = Echo::new();
            // Options that nobody knows may be those of an engine that is not supported, which is
            // all that there is to say then.
            let mut unknown = Vec::new();
            for setting in &section.settings {
                match options.apply(setting) {
                    Ok(remark) => self.warnings.extend(remark),
                    Err(problem) if options::find(&setting.key).is_none() => unknown.push(problem),
                    Err(problem) => self.errors.push(problem),
                }
                if let Some(value) = &setting.value {
                    // fio echoes an alias as what it stands for.
                    let known = options::find(&setting.key);
                    let name = known.map_or(setting.key.as_str(), |option| option.name);
                    echo.insert(name.to_owned(), value.clone());
                }
            }
            if engines::elsewhere(&options.ioengine).is_none() {
                self.errors.append(&mut unknown);
            }
            if section.is_global() {
                options.name = None;
                self.defaults = options;
                self.global.extend(echo);
                continue;
            }
            self.job(section.name, section.origin, echo, options);
        }
    }

    fn job(&mut self, name: String, origin: Origin, echo: Echo, mut options: JobOptions) {
        options.stonewall |= std::mem::take(&mut self.begins_stage);
        let name = options.name.take().unwrap_or(name);
        self.sections.push(Section {
            name,
            origin,
            echo,
            options,
            traces: Vec::new(),
        });
    }
}

/// The name of a file without directories and extension.
fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    if stem.is_empty() { "job" } else { stem }.to_owned()
}
