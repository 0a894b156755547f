//! `cargo xtask call-cycle`: how the files with `impl Drive` of `crates/ssd` call each other.
//!
//! Files that call each other in a circle can only be understood, and changed, together. The
//! chore measures the largest such circle, so that a change of the structure can be judged by
//! a number. It prints; a test holds the drive to what was reached (decision 49).

mod calls;
mod components;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::root;
use calls::Source;
use components::components;

/// The type whose methods are looked at, and the sources that have it, from the root.
const TYPE: &str = "Drive";
/// Its components, which are looked at in the same way.
const COMPONENTS: [&str; 6] = [
    "Core",
    "Background",
    "WriteBuffer",
    "BackEnd",
    "Acceptance",
    "Conventional",
];
const SOURCES: &str = "crates/ssd/src";
/// Files that are listed as the longest.
const LONGEST: usize = 10;

/// Prints the measurements.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    if let Some(arg) = args.first() {
        bail!("`call-cycle` takes no arguments: `{arg}`");
    }
    print!("{}", report(&sources()?)?);
    Ok(0)
}

/// The sources of the drive, by file name.
fn sources() -> Result<BTreeMap<String, String>> {
    let directory = root().join(SOURCES);
    let mut texts = BTreeMap::new();
    for path in rust_files(&directory)? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(&directory).unwrap_or(&path);
        texts.insert(name.to_string_lossy().replace('\\', "/"), text);
    }
    Ok(texts)
}

fn rust_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|of| of == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// What is printed about sources, by file name.
fn report(texts: &BTreeMap<String, String>) -> Result<String> {
    let mut sources = Vec::new();
    for (name, text) in texts {
        sources.push(Source::parse(name, text, TYPE)?);
    }
    let homes = homes(&sources);
    let with_type: Vec<&Source> = sources.iter().filter(|of| !of.methods.is_empty()).collect();
    let mut cycles: Vec<Vec<usize>> = components(&edges(&sources, &homes));
    cycles.sort_by_key(|files| std::cmp::Reverse(files.len()));
    let largest = cycles.first().filter(|files| files.len() > 1);

    let methods: usize = with_type.iter().map(|of| of.methods.len()).sum();
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "methods of {TYPE}: {methods} in {} files",
        with_type.len()
    );
    let in_cycle = largest.map_or(0, Vec::len);
    let _ = writeln!(out, "largest cycle: {in_cycle} files");
    let _ = writeln!(
        out,
        "\nfile, methods of {TYPE}, calls to other files, in the cycle"
    );
    for (index, source) in sources.iter().enumerate() {
        let others = |call: &&String| homes.get(call.as_str()).is_some_and(|home| *home != index);
        let calls = source.calls.iter().filter(others).count();
        if source.methods.is_empty() && calls == 0 {
            continue;
        }
        let mark = match largest.is_some_and(|files| files.contains(&index)) {
            true => "  *",
            false => "",
        };
        let (name, count) = (&source.name, source.methods.len());
        let _ = writeln!(out, "{name:<40} {count:>4} {calls:>4}{mark}");
    }
    let lines: usize = sources.iter().map(|of| of.lines).sum();
    let mut longest: Vec<&Source> = sources.iter().collect();
    longest.sort_by_key(|of| (std::cmp::Reverse(of.lines), &of.name));
    let _ = writeln!(
        out,
        "\nlongest files, of {lines} lines in {}",
        sources.len()
    );
    for source in longest.iter().take(LONGEST) {
        let _ = writeln!(out, "{:<40} {:>4}", source.name, source.lines);
    }
    let assertions: usize = sources.iter().map(|of| of.assertions).sum();
    // In hundredths, without floating point.
    let density = assertions * 10_000 / lines.max(1);
    let _ = writeln!(
        out,
        "\nassertions: {assertions}, {}.{:02} per hundred lines",
        density / 100,
        density % 100
    );
    let _ = writeln!(out, "\ncomponent, methods, files, largest cycle");
    for component in COMPONENTS {
        let (methods, files, cycle) = measured(texts, component)?;
        if methods > 0 {
            let _ = writeln!(out, "{component:<40} {methods:>4} {files:>4} {cycle:>4}");
        }
    }
    Ok(out)
}

/// Methods of a type, files with them, and files of the largest circle of these.
fn measured(texts: &BTreeMap<String, String>, of_type: &str) -> Result<(usize, usize, usize)> {
    let mut sources = Vec::new();
    for (name, text) in texts {
        sources.push(Source::parse(name, text, of_type)?);
    }
    let methods = sources.iter().map(|of| of.methods.len()).sum();
    let files = sources.iter().filter(|of| !of.methods.is_empty()).count();
    let cycles = components(&edges(&sources, &homes(&sources)));
    let largest = cycles.iter().map(Vec::len).max();
    Ok((
        methods,
        files,
        largest.filter(|files| *files > 1).unwrap_or(0),
    ))
}

/// The source that defines each method; a type has no two of one name.
fn homes(sources: &[Source]) -> BTreeMap<&str, usize> {
    let of_source = |(index, source): (usize, &'_ Source)| -> Vec<(usize, usize)> {
        (0..source.methods.len())
            .map(|method| (index, method))
            .collect()
    };
    let all = sources.iter().enumerate().flat_map(of_source);
    all.map(|(index, method)| (sources[index].methods[method].as_str(), index))
        .collect()
}

/// The sources that each source calls.
fn edges(sources: &[Source], homes: &BTreeMap<&str, usize>) -> Vec<Vec<usize>> {
    let called = |source: &Source| {
        let homes = source
            .calls
            .iter()
            .filter_map(|call| homes.get(call.as_str()));
        let mut homes: Vec<usize> = homes.copied().collect();
        homes.sort_unstable();
        homes.dedup();
        homes
    };
    sources.iter().map(called).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four files, three of which call each other in a circle.
    fn fixture() -> BTreeMap<String, String> {
        let files = [
            (
                "a.rs",
                "impl Drive { fn a(&mut self) { assert!(self.b() > 0); } fn own(&self) { self.own(); } }",
            ),
            (
                "b.rs",
                "impl Drive {\n fn b(&mut self) -> u32 { Self::c(self); unreachable!() }\n}",
            ),
            (
                "c.rs",
                "impl Drive { fn c(drive: &mut Drive) { drive.a(); drive.d() } }",
            ),
            (
                "d.rs",
                "impl Drive { fn d(&self) {} }\nimpl BackEnd<'_> { fn a(&self) { self.b() } fn b(&self) {} }",
            ),
            (
                "e.rs",
                "fn e(x: &Other) { x.a() }\n#[cfg(test)]\nmod tests { impl Drive { fn t(&self) {} } }",
            ),
        ];
        let own = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        files.map(own).into_iter().collect()
    }

    #[test]
    fn a_cycle_of_files_is_found() {
        let text = report(&fixture()).unwrap();
        for line in [
            "methods of Drive: 5 in 4 files",
            "largest cycle: 3 files",
            "assertions: 2, 20.00 per hundred lines",
        ] {
            assert!(text.lines().any(|of| of == line), "{line}\n{text}");
        }
        let row = |name: &str| {
            let row = text.lines().find(|line| line.starts_with(name));
            let row = row.unwrap_or_else(|| panic!("{name}\n{text}"));
            row.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(row("a.rs"), ["a.rs", "2", "1", "*"]);
        assert_eq!(row("b.rs"), ["b.rs", "1", "1", "*"]);
        assert_eq!(row("c.rs"), ["c.rs", "1", "2", "*"]);
        assert_eq!(row("d.rs"), ["d.rs", "1", "0"]);
        assert!(text.contains("longest files, of 10 lines in 5"), "{text}");
        // What is lent something is a type as well.
        assert_eq!(row("BackEnd"), ["BackEnd", "2", "1", "0"]);
    }

    #[test]
    fn without_a_cycle_there_is_none() {
        let mut files = fixture();
        files.remove("b.rs");
        let text = report(&files).unwrap();
        assert!(text.contains("largest cycle: 0 files"), "{text}");
        files.insert("broken.rs".to_owned(), "impl {".to_owned());
        assert!(
            report(&files)
                .unwrap_err()
                .to_string()
                .contains("broken.rs")
        );
    }

    /// The crate itself can be measured.
    #[test]
    fn the_drive_is_measured() {
        assert_eq!(chore(&[]).unwrap(), 0);
        assert!(chore(&["x".to_owned()]).is_err());
    }

    /// What the drive was taken apart for: few methods that see all of it, few files that can
    /// only be understood together, and none too long to read.
    #[test]
    fn the_drive_stays_apart() {
        let sources = sources().expect("they can be read");
        let (methods, _, cycle) = measured(&sources, TYPE).expect("they can be parsed");
        assert!(methods <= 80, "{TYPE} has {methods} methods");
        assert!(cycle <= 4, "{cycle} files call each other in a circle");
        for (name, text) in &sources {
            let lines = text.lines().count();
            assert!(lines <= 500, "{name} has {lines} lines");
        }
    }
}
