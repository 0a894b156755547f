//! The pages, followed as a reader does: each block is pasted as it stands, in the order of its
//! page, and what the page says that is printed has to be. `docs/testing.md` has the comments by
//! which the source of a page says more.

mod page;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use self::page::{Block, Mark, Part, console, is_figure, missing, parts};
use super::scratch::Scratch;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// With it blocks are run that take minutes as well.
const LONG: &str = "ZONELAB_LONG_PAGES";
/// The pages to follow, instead of all: those whose path has this in it.
const ONLY: &str = "ZONELAB_PAGES";

/// Pages on which each block is run, written or printed, or says why it is not. On others only
/// blocks of commands are.
fn is_whole(page: &str) -> bool {
    page == "README.md" || page == "docs/tutorial.md" || page.starts_with("docs/roles/")
}

/// The documents, from the root.
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

/// Files that pages take for granted, under the names that stand for the reader's own.
const FILES: &[(&str, &str)] = &[
    ("JOB.fio", "[job]\nrw=write\nbs=64k\nsize=1z\nio_size=64m\n"),
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

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Somebody who follows a page.
struct Reader<'a> {
    page: &'a str,
    /// What is found on PATH, and where they are: in an empty directory for the tutorial, in one
    /// with the examples of the repository for other pages.
    bin: Scratch,
    at: Scratch,
    /// What the last block of commands printed; `None`: it was not run.
    printed: Option<String>,
    /// What is wrong with the page.
    failed: Vec<String>,
    /// Blocks that were not run, with the reason.
    left_out: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(page: &'a str) -> Self {
        let name = page.replace(['/', '.'], "-");
        let at = Scratch::new(&format!("page-{name}"));
        let bin = Scratch::new(&format!("bin-{name}"));
        if page != "docs/tutorial.md" {
            let examples = Path::new(ROOT).join("docs/examples");
            copy(&examples, &at.0.join("docs/examples"));
        }
        if !is_whole(page) {
            for (name, text) in FILES {
                at.write(name, text);
            }
            let example = at.read("docs/examples/finish-on-read.toml");
            at.write("finish-on-read.toml", &example);
        }
        let program = bin.0.join("zonelab");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_zonelab"), program).unwrap();
        let generate = bin.write("generate-jobs", "#!/bin/sh\nexec cat JOB.fio\n");
        let made = Command::new("chmod").args(["+x", &generate]).status();
        assert!(made.unwrap().success());
        Self {
            page,
            bin,
            at,
            printed: None,
            failed: Vec::new(),
            left_out: Vec::new(),
        }
    }

    fn fail(&mut self, line: usize, problem: &str) {
        self.failed.push(format!("{}:{line}: {problem}", self.page));
    }

    /// Pastes a script; gives what it prints, or what is wrong.
    fn paste(&self, script: &str) -> Result<String, String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-ec", &format!("exec 2>&1\n{script}")])
            .current_dir(&self.at.0)
            .env("PATH", format!("{}:{path}", self.bin.0.display()))
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        match output.status.success() {
            true => Ok(printed),
            false => Err(format!("{}: {script}{printed}", output.status)),
        }
    }

    /// Writes a block to its file.
    fn put(&self, mark: &Mark, text: &str) -> Result<(), String> {
        let (name, whole) = match mark {
            Mark::File(name) => (name, text.to_owned()),
            Mark::AtTheEndOf(name) => (name, format!("{}\n{text}", self.at.read(name))),
            Mark::In(name) => (name, changed(&self.at.read(name), text)?),
            _ => return Ok(()),
        };
        self.at.write(name, &whole);
        Ok(())
    }

    /// Runs a block of commands, and looks whether what it says is printed.
    fn run(&mut self, block: &Block) -> Result<(), String> {
        let (script, says) = match block.language.as_str() {
            "console" => console(&block.text)?,
            _ => (block.text.clone(), Vec::new()),
        };
        let printed = self.paste(&script)?;
        let missing = missing(says.into_iter(), &printed);
        self.printed = Some(printed);
        let wrong = self.printed.as_deref().unwrap_or_default();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "{script}does not print\n{}\nbut\n{wrong}",
                missing.join("\n")
            )),
        }
    }

    fn meet(&mut self, block: &Block) -> Result<(), String> {
        let is_typed = ["console", "sh"].contains(&block.language.as_str());
        let is_short = std::env::var_os(LONG).is_none();
        let mut is_run = is_typed;
        for mark in &block.marks {
            match mark {
                Mark::NotRun(why) => return self.leave_out(block, "not run", why),
                Mark::Long(why) if is_short => {
                    return self.leave_out(block, "in the long form alone", why);
                }
                Mark::Long(_) => {}
                Mark::Printed(command) => {
                    is_run = false;
                    self.compare(block, command.as_deref())?;
                }
                Mark::File(_) | Mark::AtTheEndOf(_) | Mark::In(_) => {
                    is_run = false;
                    self.put(mark, &block.text)?;
                }
            }
        }
        // The tier `python` runs these.
        let is_left = block.marks.is_empty() && !is_typed && block.language != "python";
        match is_run {
            true => self.run(block),
            false if is_left && is_whole(self.page) => {
                Err("a block of which nothing is said: see docs/testing.md".to_owned())
            }
            false => Ok(()),
        }
    }

    /// Looks whether the last block of commands, or this command, prints a block.
    fn compare(&mut self, block: &Block, command: Option<&str>) -> Result<(), String> {
        if let Some(command) = command {
            self.printed = Some(self.paste(&format!("{command}\n"))?);
        }
        let Some(printed) = &self.printed else {
            return Ok(());
        };
        let missing = missing(block.text.lines(), printed);
        match missing.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "not printed:\n{}\nbut\n{printed}",
                missing.join("\n")
            )),
        }
    }

    fn leave_out(&mut self, block: &Block, how: &str, why: &str) -> Result<(), String> {
        self.printed = None;
        let line = format!("{}:{}: {how}: {why}", self.page, block.line);
        self.left_out.push(line);
        match why.is_empty() {
            true => Err("a block that is not run has a reason".to_owned()),
            false => Ok(()),
        }
    }

    fn follow(&mut self) {
        let text = fs::read_to_string(Path::new(ROOT).join(self.page)).unwrap();
        let parts = match parts(&text) {
            Ok(parts) => parts,
            Err(problem) => return self.failed.push(format!("{}:{problem}", self.page)),
        };
        for part in parts {
            let (line, problems) = match part {
                Part::Block(block) => (block.line, self.meet(&block).err().into_iter().collect()),
                Part::Claim(claim) => {
                    let printed = self.printed.as_deref();
                    (
                        claim.line,
                        printed.map_or_else(Vec::new, |of| claim.problems(of)),
                    )
                }
            };
            for problem in problems {
                self.fail(line, &problem);
            }
        }
    }
}

/// `text` with its lines changed that have the same keys as those of `lines`.
fn changed(text: &str, lines: &str) -> Result<String, String> {
    let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned());
    let mut found = BTreeSet::new();
    let mut whole = String::new();
    for line in text.lines() {
        let new = lines
            .lines()
            .find(|new| key(new).is_some() && key(new) == key(line));
        if let Some(new) = new.filter(|new| !found.insert(*new)) {
            return Err(format!("more than one line could become {new}"));
        }
        let _ = writeln!(whole, "{}", new.unwrap_or(line));
    }
    match lines.lines().find(|new| !found.contains(new)) {
        Some(new) => Err(format!("no line has the key of {new}")),
        None => Ok(whole),
    }
}

#[test]
fn pages_do_what_they_say_when_their_blocks_are_pasted() {
    let only = std::env::var(ONLY).unwrap_or_default();
    let pages: Vec<_> = pages()
        .into_iter()
        .filter(|page| page.contains(&only))
        .collect();
    let pages = Mutex::new(pages);
    let found = Mutex::new((Vec::new(), Vec::new()));
    let next = || pages.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(page) = next() {
                    let mut reader = Reader::new(&page);
                    reader.follow();
                    let mut found = found.lock().unwrap();
                    found.0.append(&mut reader.failed);
                    found.1.append(&mut reader.left_out);
                }
            });
        }
    });
    let (failed, mut left_out) = found.into_inner().unwrap();
    left_out.sort();
    println!("{}", left_out.join("\n"));
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn a_page_is_read_with_what_its_comments_say() {
    let page = "Text of 65.2 things.\n\n<!-- prints: a 64 65.2; b 2.34e3 -->\n\n\
                <!-- file: a.toml -->\n```toml\nb = 1\n```\n```console\n$ c \\\n  d\n$ e\nf\n```\n";
    let found = parts(page).unwrap();
    let [Part::Claim(claim), Part::Block(file), Part::Block(typed)] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(file.marks, [Mark::File("a.toml".to_owned())]);
    assert_eq!((file.line, file.text.as_str()), (7, "b = 1\n"));
    let script = ("c \\\n  d\ne\n".to_owned(), vec!["f"]);
    assert_eq!(console(&typed.text), Ok(script));
    assert!(console("# modprobe x\n").is_err());
    let wrong = claim.problems("a x 64 65.21 K\nb 2344\n");
    assert_eq!(wrong, ["2.34 is not in the paragraph above"]);
    assert_eq!(claim.problems("a 64 65.3\nb 2344\n").len(), 2);
    for wrong in ["<!-- fiel: a -->\n", "<!-- file: a -->\ntext\n"] {
        assert!(parts(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_a_page_states_is_what_is_printed() {
    for (claimed, printed, same) in [
        ("2.34e3", "2343.5", true),
        ("2.34e3", "2346", false),
        ("0.050", "0.0504", true),
        ("16.0", "16.04", true),
        ("a", "a", true),
        ("1", "a", false),
    ] {
        assert_eq!(is_figure(claimed, printed), same, "{claimed} {printed}");
    }
    let printed = "head  of a\nb   1\nc 2 and more\n";
    assert!(missing(["head of a", "...", "c 2 ..."].into_iter(), printed).is_empty());
    assert_eq!(missing(["c 2", "b 1"].into_iter(), printed), ["c 2", "b 1"]);
    let text = "a = 1\nb = 2 # x\n";
    assert_eq!(changed(text, "b = 3\n"), Ok("a = 1\nb = 3\n".to_owned()));
    assert!(changed(text, "c = 3\n").is_err());
    assert!(changed("a = 1\na = 2\n", "a = 3\n").is_err());
}
