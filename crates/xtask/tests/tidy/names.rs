//! `docs/architecture.md` leads to the code: every path and identifier that it
//! names is there.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, files};

/// The document.
const DOCUMENT: &str = "docs/architecture.md";

/// What it names of others.
const FOREIGN: &[&str] = &["Instant::now", "libm"];

/// What begins a name that is defined behind it.
const KEYWORDS: &[&str] = &[
    "fn", "struct", "enum", "trait", "mod", "const", "type", "static",
];

/// The words of a text in backticks, with the numbers of their lines.
fn spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_block = false;
    let lines = (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.starts_with("```");
        is_block ^= fence;
        !is_block && !fence
    });
    lines.flat_map(|(number, line)| {
        let spans = line.split('`').skip(1).step_by(2);
        spans.map(move |span| (number, span))
    })
}

/// `a{b,c}d` as `abd` and `acd`; one that has no braces as it is.
fn expanded(span: &str) -> Vec<String> {
    let braces = span
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (choices, after))) = braces else {
        return vec![span.to_owned()];
    };
    let each = choices.split(',').map(str::trim);
    each.flat_map(|choice| expanded(&format!("{before}{choice}{after}")))
        .collect()
}

/// Whether it names a file or directory, and not something in the code.
fn is_path(span: &str) -> bool {
    let has_ending = |ending| span.ends_with(ending);
    span.contains('/') || [".rs", ".toml", ".md", ".fio"].into_iter().any(has_ending)
}

/// Whether a file, a module or a directory has this path, or one that ends so.
fn is_there(path: &str, files: &[File]) -> bool {
    let wanted = path.trim_end_matches('/');
    let is_directory = path.ends_with('/');
    let ends = |whole: &str, end: &str| {
        whole == end
            || whole
                .strip_suffix(end)
                .is_some_and(|rest| rest.ends_with('/'))
    };
    files.iter().any(|file| {
        let name = &file.path;
        // `a*.rs` is any file of that directory that begins and ends so.
        if let Some((start, end)) = wanted.split_once('*') {
            let begins = |at: usize| name[..at].is_empty() || name[..at].ends_with('/');
            let mut starts = name.match_indices(start).map(|(at, _)| at);
            return name.ends_with(end) && starts.any(begins);
        }
        let mut above = name.match_indices('/').map(|(at, _)| &name[..at]);
        above.any(|directory| ends(directory, wanted))
            || !is_directory
                && (ends(name, wanted)
                    || name
                        .strip_suffix(".rs")
                        .is_some_and(|name| ends(name, wanted)))
    })
}

/// Where each name of the Rust code is defined: functions, types and modules, and
/// what looks like a field or a variant; names of crates and of fuzz targets.
fn definitions(files: &[File]) -> BTreeMap<&str, BTreeSet<usize>> {
    let mut all: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (index, file) in files.iter().enumerate() {
        if let Some(rest) = file.path.strip_prefix("crates/") {
            let name = rest.split('/').next().unwrap_or_default();
            all.entry(name).or_default().insert(index);
        }
        if let Some(name) = file.path.strip_prefix("fuzz/fuzz_targets/") {
            let name = name.trim_end_matches(".rs");
            all.entry(name).or_default().insert(index);
        }
        if !file.is_rust() {
            continue;
        }
        for line in file.text.lines() {
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let words: Vec<&str> = line
                .split(|c| !is_name(c))
                .filter(|w| !w.is_empty())
                .collect();
            let pairs = words.windows(2).filter(|pair| KEYWORDS.contains(&pair[0]));
            for name in pairs.map(|pair| pair[1]) {
                all.entry(name).or_default().insert(index);
            }
            let line = line.trim_start();
            let line = line
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ");
            let end = line.find(|c| !is_name(c)).unwrap_or(line.len());
            let (name, rest) = line.split_at(end);
            if !name.is_empty() && [",", "(", " {", ":"].iter().any(|of| rest.starts_with(of)) {
                all.entry(name).or_default().insert(index);
            }
        }
    }
    all
}

/// Whether `Type::name`, `name` or `value.name()` is defined; a type in front of
/// the name stands in the same file.
fn is_defined(span: &str, files: &[File], definitions: &BTreeMap<&str, BTreeSet<usize>>) -> bool {
    let path = span.split('(').next().unwrap_or_default();
    let path = path.rsplit('.').next().unwrap_or_default();
    let mut parts = path.rsplit("::");
    let name = parts.next().unwrap_or_default();
    let places = definitions.get(name);
    match parts.next() {
        None => places.is_some(),
        // A crate or module: it is above the definition.
        Some(above) if above.starts_with(char::is_lowercase) => {
            let is_below = |&index: &usize| {
                let mut parts = files[index].path.split('/');
                parts.any(|part| part.trim_end_matches(".rs") == above)
            };
            places.is_some_and(|places| places.iter().any(is_below))
        }
        Some(of) => {
            let of_type = definitions.get(of);
            let has_type = |&index: &usize| super::has_word(&files[index].text, of);
            of_type.is_some() && places.is_some_and(|places| places.iter().any(has_type))
        }
    }
}

/// What `document` names and `files` do not have: `document:line: name`.
fn missing(document: &str, files: &[File]) -> Vec<String> {
    let Some(file) = files.iter().find(|file| file.path == document) else {
        return vec![format!("{document}: it is not there itself")];
    };
    let definitions = definitions(files);
    let is_command = |span: &str| {
        ["zonelab ", "cargo ", "--"]
            .iter()
            .any(|c| span.starts_with(c))
    };
    let named = spans(&file.text).filter(|(_, span)| !is_command(span));
    let names = named.flat_map(|(line, span)| expanded(span).into_iter().map(move |n| (line, n)));
    names
        .filter(|(_, name)| !FOREIGN.contains(&name.as_str()))
        .filter(|(_, name)| match is_path(name) {
            true => !is_there(name, files),
            false => !is_defined(name, files, &definitions),
        })
        .map(|(line, name)| format!("{document}:{line}: {name}"))
        .collect()
}

#[test]
fn paths_and_identifiers_of_the_architecture_are_there() {
    let files = files();
    let missing = missing(DOCUMENT, &files);
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    let text = &files
        .iter()
        .find(|file| file.path == DOCUMENT)
        .map(|f| &f.text);
    let count = text.map_or(0, |text| spans(text).count());
    assert!(count > 300, "{DOCUMENT} has {count} names only");
}

#[test]
fn a_name_that_is_not_there_is_found() {
    let file = |path: &str, text: &str| File {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let document = "\
`one/src/a.rs` `one/src/a` `src/{a,b}.rs` `one/src/` `one/` `a.rs` `src/a*.rs`
`Type` `Type::method` `Type::{method, field}` `value.method()` `method(x, y)` `one::Type` `one`
```
`nothing here`
```
`two/src/a.rs` `src/c.rs` `one/s` `z*.rs`
`Other` `Other::method` `Type::nothing` `two::Type` `zonelab run FILE` `--set`";
    let files = [
        file("d.md", document),
        file(
            "crates/one/src/a.rs",
            "pub struct Type {\n    field: u8,\n}\nimpl Type {\n    fn method() {}\n}",
        ),
        file("crates/one/src/b.rs", "fn elsewhere() { nothing(); }"),
    ];
    let expected = [
        "6: two/src/a.rs",
        "6: src/c.rs",
        "6: one/s",
        "6: z*.rs",
        "7: Other",
        "7: Other::method",
        "7: Type::nothing",
        "7: two::Type",
    ];
    let expected: Vec<String> = expected.iter().map(|of| format!("d.md:{of}")).collect();
    assert_eq!(missing("d.md", &files), expected);
}
