//! The text of a job file: sections, options, includes, comments, variables.

use zonelab_config::{Place, Problem};

/// Files within files, at most.
const INCLUDE_DEPTH: u32 = 16;
/// Options and sections of a job file with its includes, at most: a file that
/// includes another twice, which includes another twice, ends somewhere.
const MAX_LINES: usize = 100_000;

/// How a job file reaches what is outside of it.
pub struct Outside<'a> {
    /// The value of an environment variable, or of fio's keyword `$ncpus`.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of an included file, by the name in the `include` line.
    pub include: &'a dyn Fn(&str) -> Result<String, String>,
}

/// What fio puts in for a property of the host: the number of its processors.
const NCPUS: &str = "$ncpus";
/// And the bytes of a page of its memory: here those of nearly all hosts, so that a job is the
/// same on each.
const PAGESIZE: (&str, &str) = ("$pagesize", "4096");

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In a file.
    Line {
        /// The job file or an included one.
        file: String,
        /// Line, from 1.
        line: usize,
    },
    /// On the command line: the option, and the job that it is of, as in `--bs of
    /// job a`.
    Argument(String),
}

impl Origin {
    /// A problem at this place.
    #[must_use]
    pub fn problem(&self, key: &str, what: impl Into<String>, valid: impl Into<String>) -> Problem {
        let (file, place, key) = match self {
            Self::Line { file, line } => {
                let (line, column) = (*line, 1);
                (file.clone(), Place::Line { line, column }, key)
            }
            // It names the key.
            Self::Argument(option) => (String::new(), Place::Override(option.clone()), ""),
        };
        Problem {
            file,
            place,
            key: key.to_owned(),
            what: what.into(),
            valid: valid.into(),
        }
    }
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) key: String,
    /// What follows `=`, with variables put in; `None` without `=`.
    pub(super) value: Option<String>,
    pub(super) origin: Origin,
}

/// A section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) origin: Origin,
    pub(super) settings: Vec<Setting>,
}

impl Section {
    /// Whether it is for the jobs that follow, as fio decides it.
    pub(super) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// What a text holds.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) sections: Vec<Section>,
    pub(super) errors: Vec<Problem>,
    /// Variables that the environment does not have.
    pub(super) unset: Vec<Problem>,
    lines: usize,
}

/// Reads a job file and what it includes.
pub(super) fn read(file: &str, text: &str, outside: &Outside<'_>) -> Read {
    let mut read = Read::default();
    read.file(file, text, outside, 0);
    read
}

impl Read {
    fn file(&mut self, file: &str, text: &str, outside: &Outside<'_>, depth: u32) {
        for (line, text) in (1..).zip(text.lines()) {
            let origin = Origin::Line {
                file: file.to_owned(),
                line,
            };
            let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            if text.is_empty() || text.starts_with(['#', ';']) {
                continue;
            }
            self.lines += 1;
            if self.lines > MAX_LINES {
                let what = format!("more than {MAX_LINES} lines with the included files");
                self.errors.push(origin.problem("", what, ""));
                return;
            }
            if let Some(rest) = text.strip_prefix('[') {
                self.section(rest, origin);
            } else if let Some(name) = included(text) {
                self.include(name, origin, outside, depth);
            } else {
                self.setting(text, origin, outside);
            }
        }
    }

    fn section(&mut self, rest: &str, origin: Origin) {
        let Some((name, _)) = rest.split_once(']') else {
            let valid = "write for example [job]";
            self.errors
                .push(origin.problem("", "a section without its `]`", valid));
            return;
        };
        self.sections.push(Section {
            name: name.to_owned(),
            origin,
            settings: Vec::new(),
        });
    }

    fn include(&mut self, name: &str, origin: Origin, outside: &Outside<'_>, depth: u32) {
        if depth == INCLUDE_DEPTH {
            let what = format!("more than {INCLUDE_DEPTH} files include each other");
            self.errors.push(origin.problem("include", what, ""));
            return;
        }
        let name = self.expand(name, &origin, outside);
        match (outside.include)(&name) {
            Ok(text) => self.file(&name, &text, outside, depth + 1),
            Err(error) => {
                let what = format!("{name}: {error}");
                self.errors.push(origin.problem("include", what, ""));
            }
        }
    }

    fn setting(&mut self, text: &str, origin: Origin, outside: &Outside<'_>) {
        let text = text.split(['#', ';']).next().unwrap_or_default().trim_end();
        let text = self.expand(text, &origin, outside);
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key.trim(), Some(with_keywords(value.trim(), outside))),
            None => (text.trim(), None),
        };
        let Some(section) = self.sections.last_mut() else {
            let valid = "begin with [global] or the name of a job, [job]";
            self.errors
                .push(origin.problem(key, "stands before the first section", valid));
            return;
        };
        section.settings.push(Setting {
            key: key.to_owned(),
            value,
            origin,
        });
    }

    /// Puts in environment variables: `${NAME}`. One that is not set is empty, as in fio.
    fn expand(&mut self, text: &str, origin: &Origin, outside: &Outside<'_>) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                out.push_str("${");
                rest = after;
                continue;
            };
            match (outside.variable)(name) {
                Some(value) => out.push_str(&value),
                None => {
                    let what = format!("the environment has no variable {name}: taken as empty");
                    self.unset.push(origin.problem("", what, ""));
                }
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

/// A value with the numbers that keywords stand for.
fn with_keywords(value: &str, outside: &Outside<'_>) -> String {
    let value = value.replace(PAGESIZE.0, PAGESIZE.1);
    match value.contains(NCPUS).then(|| (outside.variable)(NCPUS)) {
        Some(Some(number)) => value.replace(NCPUS, &number),
        _ => value,
    }
}

/// The file that an `include` line names.
fn included(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("include")?;
    let name = rest.trim_start();
    (rest.len() > name.len() && !name.is_empty() && !name.starts_with('=')).then_some(name)
}
