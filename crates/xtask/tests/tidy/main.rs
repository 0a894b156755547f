//! House rules that no lint knows, as an ordinary test.
//!
//! Each rule says why it is one. A violation is printed as `file:line: rule`.

mod names;
mod patches;
mod promises;
mod source;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use source::{code, functions, has_word};

/// Longest Rust file, in lines: beyond, it holds more than one thing.
const FILE_LINES: usize = 900;
/// Longest line of Rust. rustfmt keeps code below 100, but leaves what it
/// cannot break.
const LINE_CHARS: usize = 110;
/// Longest function, in lines.
const FUNCTION_LINES: usize = 90;

/// Functions that were longer when the rule came, with their lines. They may
/// only become shorter; one that is short enough leaves the list.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[
    // A table: one line for each field of a structure.
    (
        "crates/nvme/tests/suite/golden_offsets.rs",
        "identify_controller_offsets",
        96,
    ),
];

/// Files that may read a clock, from the root.
const CLOCKS: &[&str] = &[
    "crates/device/src/clock.rs",
    "crates/target/src/server/clock.rs",
    "crates/cli/src/bench",
    "crates/live/src/http/deadline.rs",
    "crates/xtask/src/steps.rs",
    "tests/guest/tests/cases/crew.rs",
];

/// Modules of the drive that decide: times and counts there are integers.
const INTEGER_MODULES: &[&str] = &[
    "media",
    "zones",
    "drive",
    "background",
    "flash",
    "front",
    "mapping",
    "layout",
    "event",
];

/// A file of the repository.
struct File {
    /// From the root, with slashes.
    path: String,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether this is `directory/MODULE.rs`, or below `directory/MODULE`.
    fn is_module(&self, directory: &str, modules: &[&str]) -> bool {
        self.path.strip_prefix(directory).is_some_and(|rest| {
            modules.iter().any(|module| {
                rest.strip_prefix(module)
                    .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            })
        })
    }
}

/// What is wrong, where: `file:line: rule`.
type Violations = Vec<String>;

/// Adds a violation.
fn report(violations: &mut Violations, file: &File, line: usize, rule: &str) {
    violations.push(format!("{}:{line}: {rule}", file.path));
}

/// Adds a violation for each line of `text` in which `is_wrong`.
fn each_line(
    violations: &mut Violations,
    file: &File,
    text: &str,
    rule: &str,
    is_wrong: impl Fn(&str) -> bool,
) {
    for (line, _) in (1..).zip(text.lines()).filter(|(_, line)| is_wrong(line)) {
        report(violations, file, line, rule);
    }
}

/// The rules for what stands in a Rust file.
fn check_rust(violations: &mut Violations, file: &File) {
    let code = code(&file.text);
    if file.path.starts_with("crates/ssd/src/") {
        let rule = "no hash tables in the drive: their order differs from run to run, and hashing \
                    has no place on the hot path; use a vector, a slab or a BTreeMap";
        each_line(violations, file, &code, rule, |line| {
            has_word(line, "HashMap") || has_word(line, "HashSet")
        });
    }
    if !CLOCKS.iter().any(|allowed| file.path.starts_with(allowed)) {
        let rule = "no clock outside device/src/clock.rs: take the time as an argument, or \
                    results depend on the machine";
        each_line(violations, file, &code, rule, |line| {
            has_word(line, "Instant") || has_word(line, "SystemTime")
        });
    }
    if file.is_module("crates/ssd/src/", INTEGER_MODULES) {
        let rule = "no floating point where the drive decides: sums of them depend on their order; \
                    count in integers";
        each_line(violations, file, &code, rule, |line| {
            has_word(line, "f32") || has_word(line, "f64")
        });
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES {
        let rule = format!("{lines} lines, at most {FILE_LINES}: it holds more than one thing");
        report(violations, file, FILE_LINES + 1, &rule);
    }
    let rule =
        format!("a line is at most {LINE_CHARS} characters long: two files fit side by side");
    for (number, (line, code)) in (1..).zip(file.text.lines().zip(code.lines())) {
        if line.chars().count() > LINE_CHARS && breakable_chars(line, code) > LINE_CHARS {
            report(violations, file, number, &rule);
        }
    }
    let rule = "a doc comment stands alone: it does not go on from the one before";
    each_line(violations, file, &file.text, rule, |line| {
        let line = line.trim_start();
        line.starts_with(concat!("/// ", "...")) || line.starts_with(concat!("//! ", "..."))
    });
    let crate_root = file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs");
    if crate_root && !file.text.starts_with("//!") {
        report(
            violations,
            file,
            1,
            "a crate begins with what it is for: `//!`",
        );
    }
    let rule =
        "nothing is left for later: do it, or write down in the documentation what is missing";
    each_line(violations, file, &code, rule, |line| {
        line.contains(concat!("todo", "!(")) || line.contains(concat!("unimplemented", "!("))
    });
}

/// The length of a line without what cannot be broken: strings, columns of
/// tables in code, and rows of tables in comments.
fn breakable_chars(line: &str, code: &str) -> usize {
    let text = line.trim_start();
    if text.starts_with("//") {
        let row = text.trim_start_matches(['/', '!', ' ']).starts_with('|');
        return if row { 0 } else { line.chars().count() };
    }
    let indentation = line.len() - text.len();
    let words = code.split_whitespace().map(|word| word.chars().count() + 1);
    indentation + words.sum::<usize>().saturating_sub(1)
}

/// The rules for text of any kind.
fn check_text(violations: &mut Violations, file: &File) {
    let rule =
        "nothing is left for later: do it, or write down in the documentation what is missing";
    each_line(violations, file, &file.text, rule, |line| {
        has_word(line, concat!("FIX", "ME")) || has_word(line, concat!("XX", "X"))
    });
    let rule = "no paths of one machine: they exist nowhere else";
    each_line(violations, file, &file.text, rule, |line| {
        [
            concat!("/wo", "rk"),
            concat!("/ro", "ot"),
            concat!("/tm", "p"),
        ]
        .iter()
        .any(|path| has_absolute_path(line, path))
    });
}

/// Whether `line` names the directory `path`, rather than one that ends so or
/// has a longer name.
fn has_absolute_path(line: &str, path: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    line.match_indices(path).any(|(at, _)| {
        let ends_one = line[..at].ends_with(|c: char| in_name(c) || matches!(c, '}' | ')' | '*'));
        !ends_one && !line[at + path.len()..].starts_with(in_name)
    })
}

/// The rule for the length of functions, ratcheted by `known`.
fn check_functions(violations: &mut Violations, file: &File, known: &[(&str, &str, usize)]) {
    let all = functions(&code(&file.text));
    for function in all
        .iter()
        .filter(|function| function.lines > FUNCTION_LINES)
    {
        let limit = known
            .iter()
            .find(|(path, name, _)| *path == file.path && *name == function.name)
            .map_or(FUNCTION_LINES, |(.., lines)| *lines);
        if function.lines > limit {
            let (name, lines) = (&function.name, function.lines);
            let rule = format!(
                "`{name}` has {lines} lines, at most {limit}: what it does in steps, functions do \
                 with names"
            );
            report(violations, file, function.line, &rule);
        }
    }
    for (_, name, lines) in known.iter().filter(|(path, ..)| *path == file.path) {
        let longest = all
            .iter()
            .filter(|function| function.name == *name)
            .map(|f| f.lines)
            .max();
        if longest.is_none_or(|longest| longest <= FUNCTION_LINES || longest < *lines) {
            let rule = format!(
                "`{name}` is listed in LONG_FUNCTIONS with {lines} lines, but has {}: keep the gain",
                longest.unwrap_or(0)
            );
            report(violations, file, 1, &rule);
        }
    }
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .expect("this crate lies two levels down")
        .to_path_buf()
}

/// Every text file of the repository that people write.
fn files() -> Vec<File> {
    let root = root();
    let mut files = Vec::new();
    let mut directories = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("it can be listed") {
            let path = entry.expect("it can be listed").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let generated = [
                "target",
                "results",
                ".git",
                "corpus",
                "artifacts",
                "coverage",
            ];
            // In a worktree, `.git` is a file; and a crate is called `target`.
            if generated.contains(&&*name) && !path.join("Cargo.toml").exists() {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if name != "Cargo.lock"
                && let Ok(text) = fs::read_to_string(&path)
            {
                let path = path.strip_prefix(&root).expect("it is below the root");
                let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
                files.push(File {
                    path: parts.join("/"),
                    text,
                });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

#[test]
fn the_repository_is_tidy() {
    let files = files();
    assert!(
        files.iter().filter(|file| file.is_rust()).count() > 20,
        "this is not the repository"
    );
    let is_in_target = |file: &File| file.path.starts_with("crates/target/src/");
    assert!(files.iter().any(is_in_target), "a crate is left out");
    let mut violations = Violations::new();
    for file in &files {
        check_text(&mut violations, file);
        if file.is_rust() {
            check_rust(&mut violations, file);
            check_functions(&mut violations, file, LONG_FUNCTIONS);
        }
    }
    for (path, name, _) in LONG_FUNCTIONS {
        if !files.iter().any(|file| file.path == *path) {
            violations.push(format!(
                "{path}: `{name}` is listed in LONG_FUNCTIONS, but is gone"
            ));
        }
    }
    let text = violations
        .iter()
        .fold(String::new(), |mut text, violation| {
            let _ = writeln!(text, "{violation}");
            text
        });
    assert!(
        violations.is_empty(),
        "{} violations\n{text}",
        violations.len()
    );
}

mod planted {
    //! A rule that finds nothing might look for nothing.

    use super::*;

    fn violations(path: &str, text: &str) -> Violations {
        let file = File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let mut violations = Violations::new();
        check_text(&mut violations, &file);
        if file.is_rust() {
            check_rust(&mut violations, &file);
            check_functions(&mut violations, &file, LONG_FUNCTIONS);
        }
        violations
    }

    /// `text` in the file `path` breaks one rule, in its last line, which says `why`.
    fn breaks(path: &str, text: &str, why: &str) {
        let found = violations(path, text);
        let line = text.lines().count();
        let start = format!("{path}:{line}: ");
        assert_eq!(found.len(), 1, "{path}: {text:?}: {found:?}");
        assert!(
            found[0].starts_with(&start) && found[0].contains(why),
            "{found:?}"
        );
    }

    #[test]
    fn each_rule_finds_its_violation() {
        breaks(
            "crates/ssd/src/mapping.rs",
            "\nuse std::collections::HashMap;",
            "hash tables",
        );
        breaks(
            "crates/ssd/src/zones/mod.rs",
            "type A = HashSet<u32>;",
            "hash tables",
        );
        breaks(
            "crates/host/src/reactor.rs",
            "let a = Instant::now();",
            "no clock",
        );
        breaks(
            "crates/lab/tests/run.rs",
            "use std::time::SystemTime;",
            "no clock",
        );
        breaks(
            "crates/ssd/src/media/unit.rs",
            "let a = b as f64;",
            "floating point",
        );
        breaks(
            "crates/ssd/src/front.rs",
            "fn a() -> f32;",
            "floating point",
        );
        breaks("crates/a/src/b.rs", &"x\n".repeat(901), "901 lines");
        breaks("crates/a/src/b.rs", &"x".repeat(111), "110 characters");
        breaks(
            "crates/a/src/b.rs",
            &format!("// {}", "x ".repeat(54)),
            "110 characters",
        );
        breaks(
            "crates/a/src/b.rs",
            concat!("    /// ", "... and b."),
            "stands alone",
        );
        breaks("crates/a/src/lib.rs", "mod a;", "what it is for");
        breaks(
            "crates/a/src/b.rs",
            concat!("// a\nto", "do!()"),
            "left for later",
        );
        breaks("docs/a.md", concat!("a\nFIX", "ME: b"), "left for later");
        breaks("docs/a.md", concat!("see /wo", "rk/a"), "one machine");
        breaks("a.toml", concat!("a = \"/tm", "p/b\""), "one machine");
        breaks("a.sh", concat!("cd /ro", "ot"), "one machine");
    }

    #[test]
    fn what_is_allowed_is_not_found() {
        for (path, text) in [
            (
                "crates/ssd/src/mapping.rs",
                "// no HashMap here\nlet a = \"HashSet\";",
            ),
            ("crates/device/src/clock.rs", "use std::time::Instant;"),
            ("crates/host/src/a.rs", "let instant = InstantReplay;"),
            ("crates/ssd/src/account.rs", "fn dlwa() -> f64 { 1.0 }"),
            ("crates/ssd/src/profile/figures.rs", "let a: f64;"),
            ("crates/a/src/b.rs", &"x\n".repeat(900)),
            (
                "docs/a.md",
                concat!("a/wo", "rk b/ro", "ot /wo", "rkload.rs $dir/tm", "p.b"),
            ),
            (
                "crates/a/src/b.rs",
                &format!("let a = \"{}\";", "x ".repeat(80)),
            ),
            (
                "crates/a/src/b.rs",
                &format!("    //! | {} |", "x ".repeat(80)),
            ),
            ("docs/a.md", concat!("XX", "XX")),
        ] {
            assert_eq!(violations(path, text), Violations::new(), "{path}: {text}");
        }
    }

    #[test]
    fn functions_are_measured_and_ratcheted() {
        let body = |lines: usize| format!("fn a(b: [u8; 3]) {{\n{}}}", "c;\n".repeat(lines - 2));
        let check = |lines: usize, known: &[(&str, &str, usize)]| {
            let file = File {
                path: "a.rs".to_owned(),
                text: format!("\n{}", body(lines)),
            };
            let mut violations = Violations::new();
            check_functions(&mut violations, &file, known);
            violations
        };
        assert_eq!(check(90, &[]), Violations::new());
        assert_eq!(check(91, &[]).len(), 1);
        assert!(check(91, &[])[0].starts_with("a.rs:2: `a` has 91 lines"));
        let known = [("a.rs", "a", 100)];
        assert_eq!(check(100, &known), Violations::new());
        assert!(check(101, &known)[0].contains("101 lines, at most 100"));
        assert!(check(99, &known)[0].contains("keep the gain"));
        assert!(check(80, &known)[0].contains("keep the gain"));
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        let text = r####"a // b "c
            d /* e /* f */ " */ g "h \" // i" j 'k' l '\'' m '\u{1}' n r#"o " p"# q br"s" t<'u> v"####;
        let code = code(text);
        let words: String = code.split_whitespace().collect();
        assert_eq!(words, "adgjlmnqbt<'u>v");
        assert_eq!(code.lines().count(), text.lines().count());
        assert!(
            code.lines()
                .zip(text.lines())
                .all(|(a, b)| a.len() == b.len())
        );
    }

    #[test]
    fn functions_are_found_with_their_lines() {
        let text = "trait A { fn a(&self); fn b(&self) {} }\nfn c<const N: usize>() -> [u8; 4]\n\
                    where\n{\n    fn d() {\n    }\n}\nlet e: fn (u8) = f;";
        let found: Vec<_> = functions(text)
            .into_iter()
            .map(|f| (f.name, f.line, f.lines))
            .collect();
        let expected = [("b", 1, 1), ("c", 2, 6), ("d", 5, 2)];
        assert_eq!(
            found,
            expected.map(|(name, line, lines)| (name.to_owned(), line, lines))
        );
    }
}
