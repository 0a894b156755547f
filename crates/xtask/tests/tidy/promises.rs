//! Documents name the tests that show what they say: each of these is there.

use std::collections::BTreeSet;

use super::{File, files};

/// Documents that name tests, from the root.
const DOCUMENTS: &[&str] = &[
    "docs/operating.md",
    "docs/serve.md",
    "docs/testing.md",
    "docs/performance.md",
    "docs/decisions/0019-store.md",
];

/// What a document calls a test: words in backticks, with two underscores or more.
/// Metrics of a live drive look like that too, and have a name in common.
fn named(text: &str) -> BTreeSet<&str> {
    let is_name = |name: &&str| {
        let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.matches('_').count() >= 2 && name.chars().all(of_name) && !name.starts_with("zonelab_")
    };
    // Every other piece is between two backticks; blocks of code have none inside. A table of
    // keys has a key first.
    let spans = text.lines().flat_map(|line| {
        let keys = usize::from(line.starts_with("| `"));
        line.split('`').skip(1).step_by(2).skip(keys)
    });
    spans.filter(is_name).collect()
}

/// Names of the tests in a file of Rust: functions marked as tests, and the cases of the
/// guest, which stand in tables as a name and the function of that name.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        if let Some(name) = case(line) {
            return Some(name);
        }
        if line == "#[test]" {
            is_test = true;
        } else if !line.starts_with("#[") && !line.starts_with("//") && is_test {
            is_test = false;
            return line.strip_prefix("fn ")?.split('(').next();
        }
        None
    })
}

/// The name in a line of a table of cases: `("reads_and_writes", reads_and_writes)`. The
/// function may have a path, and leave out the first words of the name.
fn case(line: &str) -> Option<&str> {
    let (_, pair) = line.split_once("(\"")?;
    let (name, rest) = pair.split_once("\", ")?;
    let (function, _) = rest.split_once(')')?;
    let function = function.rsplit("::").next()?;
    (!function.is_empty() && name.ends_with(function)).then_some(name)
}

/// Tests that documents name and that `files` do not have: `document: name`.
fn missing(documents: &[&str], files: &[File]) -> Vec<String> {
    let rust = files.iter().filter(|file| file.is_rust());
    let known: BTreeSet<&str> = rust.flat_map(|file| tests(&file.text)).collect();
    let mut missing = Vec::new();
    for document in documents {
        let file = files.iter().find(|file| file.path == *document);
        match file.map(|file| named(&file.text)) {
            None => missing.push(format!("{document}: it is not there itself")),
            Some(names) => missing.extend(
                names
                    .difference(&known)
                    .map(|name| format!("{document}: {name}")),
            ),
        }
    }
    missing
}

#[test]
fn tests_that_documents_name_are_there() {
    let files = files();
    assert_eq!(missing(DOCUMENTS, &files), Vec::<String>::new());
    for (path, least) in [("docs/serve.md", 40), ("docs/operating.md", 30)] {
        let document = files.iter().find(|file| file.path == path);
        let count = document.map_or(0, |file| named(&file.text).len());
        assert!(count > least, "{path} names {count} tests only");
    }
}

#[test]
fn a_test_that_is_not_there_is_found() {
    let file = |path: &str, text: &str| File {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let files = [
        file(
            "a.rs",
            "#[test]\n/// It is.\n#[expect(x)]\n    fn one_two_three() {\nfn no_test_at_all() {\n\
             &[(\"four_five_six\", m::five_six)];\nok(\"no_case_this\", other)",
        ),
        file(
            "b.md",
            "`one_two_three`, `four_five_six`, `zonelab_a_b`, `a_b` and a_b_c",
        ),
        file(
            "c.md",
            "| x | `no_test_at_all`, `one_two_three`, `no_case_this` | `Not_a_name` |",
        ),
    ];
    assert_eq!(missing(&["b.md"], &files), Vec::<String>::new());
    assert_eq!(
        missing(&["c.md"], &files),
        ["c.md: no_case_this", "c.md: no_test_at_all"]
    );
    assert_eq!(missing(&["d.md"], &files), ["d.md: it is not there itself"]);
}
