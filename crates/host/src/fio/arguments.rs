//! Jobs and job files on the command line, in fio's form:
//! `--name=a --rw=read --name=b ... more.fio`.

use zonelab_config::{Errors, Problem};

use super::options::{self, OptionInfo};
use super::text::{Origin, Section, Setting};
use super::value::shorten;

/// Options and words of a command line, at most.
const MAX_WORDS: usize = 100_000;

/// What a command line says about jobs.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// The job files, in order.
    pub files: Vec<String>,
    /// The jobs, each behind what it begins with: options before the first
    /// `--name` are a global section.
    pub(super) sections: Vec<Section>,
}

impl CommandLine {
    /// Reads the words of a command line: options of jobs, `--bs=4k`, `--bs 4k` or
    /// `-bs=4k`, and names of job files.
    ///
    /// `--name` begins a job, whose options follow it. What stands before the first
    /// is for all jobs, those of the files too. Options that need no value, like
    /// `--group_reporting`, take one only behind `=`.
    ///
    /// `others` are options that the caller takes besides: a name that is none of
    /// either may be meant to be one of them.
    ///
    /// # Errors
    /// Options that do not exist, and options without the value that they need.
    pub fn parse(words: &[String], others: &[&str]) -> Result<Self, Errors> {
        let mut line = Self::default();
        let mut errors = Vec::new();
        if words.len() > MAX_WORDS {
            let what = format!("more than {MAX_WORDS} words on the command line");
            return Err(Problem::of_file("", what, "put the jobs in a file").into());
        }
        let mut words = words.iter().peekable();
        let mut is_over = false;
        while let Some(word) = words.next() {
            let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
            let Some(option) = option.filter(|option| !option.is_empty() && !is_over) else {
                match word.as_str() {
                    "--" => is_over = true,
                    file => line.files.push(file.to_owned()),
                }
                continue;
            };
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key, Some(value.trim().to_owned())),
                None => (option, None),
            };
            let known = match meant(key, others) {
                Ok(known) => known,
                Err(problem) => {
                    errors.push(problem);
                    continue;
                }
            };
            let key = match options::find(key) {
                Some(_) => key,
                None => known.name,
            };
            let value = match value {
                None if !known.may_lack_value() => {
                    let next = words.next_if(|next| !next.starts_with("--"));
                    let Some(next) = next else {
                        let origin = line.origin(key);
                        errors.push(origin.problem(key, "needs a value", format!("--{key}=...")));
                        continue;
                    };
                    Some(next.trim().to_owned())
                }
                value => value,
            };
            line.push(key, value);
        }
        match Errors::of(errors) {
            Some(errors) => Err(errors),
            None => Ok(line),
        }
    }

    /// Whether it has jobs of its own.
    #[must_use]
    pub fn has_jobs(&self) -> bool {
        self.sections.iter().any(|section| !section.is_global())
    }

    /// Name of its first job.
    #[must_use]
    pub fn first_job(&self) -> Option<&str> {
        let mut jobs = self.sections.iter().filter(|section| !section.is_global());
        jobs.next().map(|section| section.name.as_str())
    }

    /// The first option that is for all jobs.
    pub(super) fn first_global(&self) -> Option<&Setting> {
        let globals = self.sections.iter().filter(|section| section.is_global());
        let mut settings = globals.flat_map(|section| &section.settings);
        settings.find(|setting| setting.key != "name")
    }

    /// Where an option stands: named after the job that it would belong to.
    fn origin(&self, key: &str) -> Origin {
        let job = self.sections.last().filter(|job| !job.is_global());
        Origin::Argument(match job {
            Some(job) if key != "name" => format!("--{key} of job {}", shorten(&job.name)),
            _ => format!("--{key}"),
        })
    }

    fn push(&mut self, key: &str, value: Option<String>) {
        let name = match key {
            "name" => value.clone(),
            _ if self.sections.is_empty() => Some("global".to_owned()),
            _ => None,
        };
        if let Some(name) = name {
            self.sections.push(Section {
                origin: Origin::Argument(format!("--name={}", shorten(&name))),
                name,
                settings: Vec::new(),
            });
        }
        let origin = self.origin(key);
        let setting = Setting {
            key: key.to_owned(),
            value,
            origin,
        };
        // There is one: the first option begins the global section.
        if let Some(section) = self.sections.last_mut() {
            section.settings.push(setting);
        }
    }
}

/// The option that a word of the command line means: by its name, or by a beginning that only it
/// has, as `getopt_long` takes it.
fn meant(key: &str, others: &[&str]) -> Result<&'static OptionInfo, Problem> {
    if let Some(known) = options::find(key) {
        return Ok(known);
    }
    let begins = others.iter().filter(|other| other.starts_with(key));
    match (options::beginning(key).as_slice(), begins.count()) {
        ([only], 0) if !key.is_empty() => Ok(only),
        ([], _) => Err(unknown(key, others)),
        (several, _) => {
            let others = others
                .iter()
                .copied()
                .filter(|other| other.starts_with(key));
            let names = several.iter().map(|option| option.name).chain(others);
            let names: Vec<String> = names.take(8).map(|name| format!("--{name}")).collect();
            let origin = Origin::Argument(format!("--{}", shorten(key)));
            Err(origin.problem("", "is the beginning of several options", names.join(", ")))
        }
    }
}

/// An option that there is not.
fn unknown(key: &str, others: &[&str]) -> Problem {
    let names = options::all().map(|option| option.name);
    let near = zonelab_config::nearest(key, names.chain(others.iter().copied()));
    let valid = near.map_or_else(
        || "docs/fio.md lists the options of jobs".to_owned(),
        |near| format!("did you mean `--{near}`?"),
    );
    Origin::Argument(format!("--{}", shorten(key))).problem("", "is unknown", valid)
}
