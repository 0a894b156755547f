//! Where jobs come from: job files, standard input, and the command line.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::thread;

use clap::{Args as _, Command};
use zonelab_host::fio::{CommandLine, JobFile, JobText, Outside};

use super::Args;
use crate::exit::Failure;
use crate::files;

/// The name of a job file that is standard input.
const STDIN: &str = "-";
/// The same in messages.
const STDIN_NAME: &str = "stdin";

/// Options of the program fio that change nothing here, and why; each has a value.
const WITHOUT_MEANING: &[(&str, &str)] = &[
    ("eta", "nothing is printed before the end"),
    ("eta-interval", "nothing is printed before the end"),
    ("eta-newline", "nothing is printed before the end"),
    ("alloc-size", "memory is taken as it is needed"),
    ("max-jobs", "there may be 4096 threads"),
];

/// Options of the program fio that are not there, and what is instead.
const REFUSED: &[(&str, &str)] = &[
    ("append-terse", "write --output-format=normal,terse"),
    (
        "status-interval",
        "results come at the end; logs of the jobs (write_bw_log) have the times",
    ),
    ("bandwidth-log", "write_bw_log of the jobs writes logs"),
    ("showcmd", "--parse-only checks jobs"),
    ("cmdhelp", "docs/fio.md lists the options of jobs"),
    ("enghelp", "docs/fio.md lists the options of jobs"),
    ("debug", "--trace FILE shows what happens"),
    ("warnings-fatal", "--parse-only prints the warnings"),
    ("server", "zonelab serve serves a drive"),
    (
        "client",
        "--device tcp://HOST:PORT/NQN runs the jobs on a drive elsewhere",
    ),
    (
        "remote-config",
        "--device tcp://HOST:PORT/NQN runs the jobs on a drive elsewhere",
    ),
    ("idle-prof", "--trace FILE shows the threads of the jobs"),
    ("aux-path", "--out DIR says where files go"),
    ("merge-blktrace-only", "job files do not replay traces"),
];

/// Puts the words of a `zonelab fio` command line in order: first the options of
/// this program, then, behind `--`, files and options of jobs. Other command lines
/// stay as they are.
pub(crate) fn arrange(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let all: Vec<OsString> = words.collect();
    if all.get(1).is_none_or(|word| word != "fio") {
        return all;
    }
    let own = own_options();
    let mut words = all.into_iter();
    let mut mine: Vec<OsString> = words.by_ref().take(2).collect();
    let mut jobs: Vec<OsString> = Vec::new();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if text == "--" {
            jobs.extend(words.by_ref());
            break;
        }
        let (key, has_value) = match text.split_once('=') {
            Some((key, _)) => (key, true),
            None => (&*text, false),
        };
        let long = key.strip_prefix("--");
        let option = own.iter().find(|(name, _)| Some(&**name) == long);
        match option {
            // `overwrite=1` is also an option of jobs.
            Some((_, takes_value)) if *takes_value || !has_value => {
                let value = (*takes_value && !has_value).then(|| words.next()).flatten();
                mine.push(word);
                mine.extend(value);
            }
            _ if key == "-h" => mine.push(word),
            _ => jobs.push(word),
        }
    }
    if !jobs.is_empty() {
        mine.push("--".into());
        mine.extend(jobs);
    }
    mine
}

/// The options of this program, and whether they take a value.
fn own_options() -> Vec<(String, bool)> {
    let command = Args::augment_args(Command::new("fio"));
    let options = command.get_arguments().filter_map(|argument| {
        let name = argument.get_long()?.to_owned();
        Some((name, argument.get_action().takes_values()))
    });
    options.chain([("help".to_owned(), false)]).collect()
}

/// The jobs to be run.
pub(super) struct Input {
    pub(super) file: JobFile,
    /// What it is called in messages.
    pub(super) name: String,
    /// What results are called after it.
    pub(super) stem: String,
    /// The job files as they were read, one behind the other.
    pub(super) text: String,
    /// Options of jobs on the command line.
    pub(super) words: Vec<String>,
}

impl Input {
    /// Reads the job files, and those that they include.
    ///
    /// # Errors
    /// Files that cannot be read, and everything that is wrong with the jobs.
    pub(super) fn read(args: &Args) -> Result<Self, Failure> {
        let words = without_fio_options(&args.jobs)?;
        let own = own_options();
        let own: Vec<&str> = own.iter().map(|(name, _)| &**name).collect();
        let line = CommandLine::parse(&words, &own);
        let line = line.map_err(|errors| Failure::usage(errors.to_string()))?;
        if line.files.iter().filter(|name| *name == STDIN).count() > 1 {
            let what = "-: standard input can be read once".to_owned();
            return Err(Failure::usage(what));
        }
        let mut read = Vec::new();
        for name in &line.files {
            read.push(match name.as_str() {
                STDIN => (STDIN_NAME.to_owned(), standard_input()?),
                name => (name.to_owned(), files::read(name)?),
            });
        }
        let variable = |name: &str| match name {
            "$ncpus" => Some(
                thread::available_parallelism()
                    .map_or(1, usize::from)
                    .to_string(),
            ),
            name => std::env::var(name).ok(),
        };
        let includes: Vec<_> = read.iter().map(|(name, _)| included_by(name)).collect();
        let outsides: Vec<Outside<'_>> = includes
            .iter()
            .map(|include| Outside {
                variable: &variable,
                include,
            })
            .collect();
        let texts: Vec<JobText<'_>> = read
            .iter()
            .zip(&outsides)
            .map(|((file, text), outside)| JobText {
                file,
                text,
                outside,
            })
            .collect();
        let mut file = JobFile::gather(&line, &texts, &args.section).map_err(Failure::input)?;
        file.read_traces(&open_trace).map_err(Failure::input)?;
        let first = read.first().map(|(name, _)| name.as_str());
        let name = first.or(line.first_job()).unwrap_or_default();
        let stem = match first {
            Some(name) => Path::new(name).file_stem().unwrap_or_default(),
            None => name.as_ref(),
        };
        let files = &line.files;
        Ok(Self {
            file,
            name: name.to_owned(),
            stem: stem.to_string_lossy().into_owned(),
            text: read.iter().map(|(_, text)| text.as_str()).collect(),
            words: words
                .into_iter()
                .filter(|word| !files.contains(word))
                .collect(),
        })
    }
}

/// Takes out options that change nothing here.
fn without_fio_options(words: &[String]) -> Result<Vec<String>, Failure> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--").unwrap_or_default();
        let (key, has_value) = match option.split_once('=') {
            Some((key, _)) => (key, true),
            None => (option, false),
        };
        if let Some((_, instead)) = REFUSED.iter().find(|(name, _)| *name == key) {
            return Err(Failure::usage(format!(
                "--{key}: an option of the program fio that is not supported; {instead}"
            )));
        }
        match WITHOUT_MEANING.iter().find(|(name, _)| *name == key) {
            None => kept.push(word.clone()),
            Some((_, why)) => {
                tell!("zonelab: warning: --{key}: has no meaning here: {why}");
                if !has_value {
                    words.next();
                }
            }
        }
    }
    Ok(kept)
}

/// How the files that a job file includes are read.
fn included_by(name: &str) -> impl Fn(&str) -> Result<String, String> {
    let base = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
    move |name: &str| {
        // Relative to the job file, or, as in fio, to the current directory.
        let beside = base.join(name);
        let path = match beside.exists() {
            true => beside,
            false => PathBuf::from(name),
        };
        files::read_bounded(&path).map_err(|error| error.to_string())
    }
}

/// Opens a trace that a job replays, by its name from the current directory, as
/// fio does. It is read once, a piece at a time, however large it is.
fn open_trace(name: &str) -> Result<Box<dyn BufRead>, String> {
    if name == STDIN {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = files::open_ordinary(Path::new(name));
    let file = file.map_err(|error| format!("{error} (and {STDIN} for standard input)"))?;
    Ok(Box::new(BufReader::new(file)))
}

fn standard_input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let limit = files::MAX_BYTES;
    let failed = |what: String| Failure::input(anyhow::anyhow!("{STDIN_NAME}: {what}"));
    let read = std::io::stdin().take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > limit {
        return Err(failed(format!("more than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| failed("this is no text (not UTF-8)".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(line: &str) -> String {
        let words = line.split(' ').map(OsString::from);
        let all: Vec<String> = arrange(words)
            .into_iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        all.join(" ")
    }

    #[test]
    fn own_options_come_first_wherever_they_stand() {
        for (line, expected) in [
            ("zonelab fio", "zonelab fio"),
            ("zonelab fio a.fio --json", "zonelab fio --json -- a.fio"),
            (
                "zonelab fio --name=a --device x --bs 4k --seed=3 -rw=read b.fio --output f",
                "zonelab fio --device x --seed=3 --output f -- --name=a --bs 4k -rw=read b.fio",
            ),
            // The second is an option of jobs.
            (
                "zonelab fio a.fio --overwrite --overwrite=1",
                "zonelab fio --overwrite -- a.fio --overwrite=1",
            ),
            (
                "zonelab fio --set a=b -- --device.fio --json",
                "zonelab fio --set a=b -- --device.fio --json",
            ),
            ("zonelab fio --help", "zonelab fio --help"),
            (
                "zonelab fio a.fio --device",
                "zonelab fio --device -- a.fio",
            ),
            ("zonelab run --name=a x", "zonelab run --name=a x"),
        ] {
            assert_eq!(arranged(line), expected, "{line}");
        }
    }

    /// Options that are both would never reach the jobs.
    #[test]
    fn own_options_are_none_of_jobs() {
        let both: Vec<String> = own_options()
            .into_iter()
            .filter(|(name, _)| zonelab_host::fio::options::find(name).is_some())
            .map(|(name, _)| name)
            .collect();
        assert_eq!(both, ["overwrite"]);
    }
}
