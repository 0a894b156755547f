//! The commands of the documents: each `$ zonelab ...` in a block `console` is run, in the
//! order of its page, or stands below with the reason why it is not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::scratch::{Scratch, stderr};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const PEER: &str = "needs a drive over NVMe/TCP at an address that the reader has to put in";
const PORT: &str = "takes a port of the machine, and goes on until it is interrupted; \
                    `tests/suite/fault.rs` and others serve drives on ports that are free";
const NAMES: &str = "has words that stand for the reader's own";
const MINUTES: &str = "takes minutes where nothing is optimised";
const WHOLE: &str = "takes minutes: the tier `verdicts` runs all published results";
const MEASURES: &str = "measures how fast the machine is, for minutes; `tests/suite/bench.rs` \
                        has it for less work";
const DEVICE: &str = "needs a drive of the machine, which it overwrites";

/// Commands that are not run: the page, how the command begins behind `zonelab`, and why.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "serve docs/examples/live.toml", PORT),
    ("docs/calibration.md", "calibrate --data measured", NAMES),
    ("docs/calibration.md", "calibrate --data data", MINUTES),
    (
        "docs/characterize.md",
        "characterize --device zn540",
        MINUTES,
    ),
    (
        "docs/characterize.md",
        "characterize --device linux:",
        DEVICE,
    ),
    ("docs/characterize.md", "characterize --device 'tcp:", PEER),
    ("docs/fit.md", "fit --device linux:", DEVICE),
    ("docs/fit.md", "fit --device my-drive.toml", NAMES),
    ("docs/driver.md", "run V1 ", MINUTES),
    ("docs/driver.md", "bench", MEASURES),
    (
        "docs/experiments.md",
        "run my-experiment.toml --device tcp:",
        PEER,
    ),
    ("docs/fio.md", "fio JOB.fio --device \"tcp:", PEER),
    ("docs/fio.md", "serve", PORT),
    (
        "docs/fio.md",
        "fio JOB.fio --device zn540 --against \"tcp:",
        PEER,
    ),
    (
        "docs/fio.md",
        "fio --name=a --rw=randwrite --size=1g --device 'PROFILE?nsid=2'",
        NAMES,
    ),
    ("docs/models/zn540.md", "reproduce", WHOLE),
    ("docs/models/zn540.md", "calibrate", MINUTES),
    ("docs/nvme.md", "nvme discover", PEER),
    ("docs/nvme.md", "nvme list", PEER),
    ("docs/nvme.md", "nvme zns", PEER),
    ("docs/nvme.md", "nvme read", PEER),
    ("docs/performance.md", "bench", MEASURES),
    ("docs/search.md", "search", MINUTES),
    ("docs/traces.md", "trace P6", MINUTES),
];

/// Other programs on these pages: what has them is somewhere else.
const OTHERS: &[(&str, &str)] = &[
    ("blkparse", "records what a machine does, as root"),
    ("cargo", "builds; continuous integration runs its tiers"),
    ("git", "needs the network"),
    ("kill", "ends a server that is not run here"),
    ("pip", "installs; the tier `python` does it"),
    ("python", "is the package's; the tier `python` runs it"),
    ("python3", "serves pages that the tier `web` opens"),
];

/// A command: where it is, and its words as they are typed.
#[derive(Clone, Debug)]
struct Typed {
    page: String,
    line: usize,
    words: String,
}

impl Typed {
    /// The program that it starts: of a pipe, `zonelab` if that is one of them.
    fn program(&self) -> &str {
        let mut words = self.words.split_whitespace();
        match self.words.contains("| zonelab ") {
            true => "zonelab",
            false => words.next().unwrap_or_default(),
        }
    }

    /// Why it is not run, with the line of the table that says so.
    fn excuse(&self) -> Option<usize> {
        let arguments = self.words.strip_prefix("zonelab ")?;
        NOT_RUN
            .iter()
            .position(|(page, start, _)| self.page == *page && arguments.starts_with(start))
    }
}

/// The documents with commands, from the root.
fn pages() -> Vec<String> {
    let mut found = vec!["README.md".to_owned()];
    let mut open = vec![PathBuf::from("docs")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(Path::new(ROOT).join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = directory.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path.display().to_string());
            }
        }
    }
    found.sort();
    found
}

fn read(page: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(page)).unwrap()
}

/// The blocks of code of a page: language, first line, and text.
fn blocks(text: &str) -> Vec<(&str, usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language, number + 2, String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, _, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The commands of a block `console`: lines that begin with `$`, with those that they go on
/// in. Other lines are what they print, or what root types.
fn commands(page: &str, first: usize, block: &str) -> Vec<Typed> {
    let mut commands: Vec<Typed> = Vec::new();
    let mut goes_on = false;
    for (number, line) in block.lines().enumerate() {
        let (part, more) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        if let Some(words) = part.strip_prefix("$ ") {
            commands.push(Typed {
                page: page.to_owned(),
                line: first + number,
                words: words.to_owned(),
            });
        } else if let Some(last) = commands.last_mut().filter(|_| goes_on) {
            last.words.push_str(part);
        }
        goes_on = more;
    }
    commands
}

/// What the pages take for granted that the reader has.
const FILES: &[(&str, &str)] = &[
    ("JOB.fio", "[job]\nrw=write\nbs=64k\nsize=2z\n"),
    ("job.fio", "[job]\nrw=write\nbs=64k\nsize=1z\n"),
    ("fill.fio", "[fill]\nrw=write\nbs=256k\nsize=2z\n"),
    (
        "TRACE",
        "fio version 3 iolog\n0 /dev/sda add\n1 /dev/sda open\n2 /dev/sda write 0 4096\n\
         3 /dev/sda write 4096 4096\n4 /dev/sda close\n",
    ),
    (
        "faults.toml",
        "[[fault]]\non = \"write\"\nskip = 100\ncount = 1\neffect = \"delay\"\n\
         delay = \"1ms\"\n",
    ),
    ("my-experiment.toml", EXPERIMENT),
    ("EXPERIMENT.toml", EXPERIMENT),
];

/// An experiment of somebody.
const EXPERIMENT: &str = r#"
schema = 1
id = "mine"
title = "Reads, alone and beside a reset"
profile = "confznspp"
[axis]
name = "depth"
values = [1, 8]
[[job]]
name = "read"
work = "read"
zones = "8..=9"
block = "16KiB"
queue_depth = "$x"
runtime = "20ms"
ends_run = true
[[job]]
name = "reset"
work = "reset"
zones = "0..=7"
[[series]]
name = "alone"
full_zones = "8..=9"
jobs = ["read"]
[[series]]
name = "reset"
full_zones = "0..=9"
jobs = ["read", "reset"]
"#;

/// A directory as the reader of a page has it.
fn prepared(page: &str) -> Scratch {
    let name = page.replace(['/', '.'], "-");
    let scratch = Scratch::new(&format!("page-{name}"));
    for (name, text) in FILES {
        scratch.write(name, text);
    }
    if page != "docs/profiles.md" && page != "README.md" {
        scratch.write("my.toml", EXPERIMENT);
    }
    let examples = scratch.0.join("docs/examples");
    fs::create_dir_all(&examples).unwrap();
    for entry in fs::read_dir(Path::new(ROOT).join("docs/examples")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), examples.join(entry.file_name())).unwrap();
        }
    }
    let example = examples.join("finish-on-read.toml");
    fs::copy(example, scratch.0.join("finish-on-read.toml")).unwrap();
    fs::create_dir(scratch.0.join("bin")).unwrap();
    let program = scratch.0.join("bin/zonelab");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_zonelab"), program).unwrap();
    scratch.write("bin/generate-jobs", "#!/bin/sh\nexec cat JOB.fio\n");
    let made = Command::new("chmod")
        .args(["+x", "bin/generate-jobs"])
        .current_dir(&scratch.0)
        .status();
    assert!(made.unwrap().success());
    scratch
}

/// A file of the tutorial, whose first line names it: `# NAME`, or `# NAME, at its end`.
fn put(scratch: &Scratch, block: &str) {
    let (head, text) = block.split_once('\n').unwrap();
    let head = head.strip_prefix("# ").expect(head);
    match head.split_once(',') {
        None => drop(scratch.write(head, text)),
        Some((name, _)) => drop(scratch.write(name, &format!("{}\n{text}", scratch.read(name)))),
    }
}

/// What is wrong with a command, if anything is.
fn run(scratch: &Scratch, typed: &Typed) -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-ec", &typed.words])
        .current_dir(&scratch.0)
        .env("PATH", format!("{}/bin:{path}", scratch.0.display()))
        .output()
        .unwrap();
    let Typed { page, line, words } = typed;
    let (status, said) = (output.status, stderr(&output));
    (!status.success()).then(|| format!("{page}:{line}: {words}: {status}: {said}"))
}

/// Runs a page; gives the commands that were left out, by their excuses, and adds what failed.
fn follow(page: &str, failed: &mut Vec<String>) -> BTreeSet<usize> {
    let text = read(page);
    let mut excuses = BTreeSet::new();
    let mut scratch = None;
    for (language, first, block) in blocks(&text) {
        if page == "docs/tutorial.md" && (language == "toml" || language == "csv") {
            put(scratch.get_or_insert_with(|| prepared(page)), &block);
        }
        if language != "console" {
            continue;
        }
        for typed in commands(page, first, &block) {
            let program = typed.program();
            if program == "zonelab" {
                match typed.excuse() {
                    Some(excuse) => drop(excuses.insert(excuse)),
                    None => {
                        failed.extend(run(scratch.get_or_insert_with(|| prepared(page)), &typed))
                    }
                }
                continue;
            }
            let is_shell = program == "cp" || program == "cd" || program.contains('=');
            let is_known = OTHERS.iter().any(|(known, _)| *known == program);
            let Typed { page, line, words } = &typed;
            assert!(
                is_shell || is_known,
                "{page}:{line}: {words}: not a program we know"
            );
        }
    }
    excuses
}

#[test]
fn commands_of_the_documents_do_what_they_say() {
    let pages = Mutex::new(pages());
    let found = Mutex::new((BTreeSet::new(), Vec::new()));
    let next = || pages.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(page) = next() {
                    let mut failed = Vec::new();
                    let mut excuses = follow(&page, &mut failed);
                    let mut found = found.lock().unwrap();
                    found.0.append(&mut excuses);
                    found.1.append(&mut failed);
                }
            });
        }
    });
    let (excuses, failed) = found.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    for (n, (page, start, why)) in NOT_RUN.iter().enumerate() {
        assert!(
            excuses.contains(&n),
            "{page} has no command `zonelab {start}`, which is not run since it {why}"
        );
    }
}

#[test]
fn commands_go_on_behind_a_backslash_and_end_with_what_they_print() {
    let block = "$ zonelab a \\\n    --b\n# as root\nwhat it says\n$ x | zonelab c\n";
    let found = commands("p", 5, block);
    let words: Vec<_> = found
        .iter()
        .map(|one| (one.line, one.words.as_str()))
        .collect();
    assert_eq!(words, [(5, "zonelab a     --b"), (9, "x | zonelab c")]);
    assert!(found.iter().all(|one| one.program() == "zonelab"));
}
