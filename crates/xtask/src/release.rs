//! `cargo xtask release --check`: what has to be so before a version is published.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{USAGE, book, package, root, tools};

/// A version of everything: that of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What is not released says so there.
const UNRELEASED: &str = "Nothing has been released yet";

/// A point of the list: what has to be so, and what is found.
type Item = (&'static str, fn() -> Result<()>);

/// What is seen without building anything.
const QUICK: &[Item] = &[
    ("versions agree", versions_agree),
    ("CHANGELOG.md has the version", changelog),
    ("the working tree is clean", clean_tree),
    ("the version has no tag yet", no_tag),
    ("packages say what they are", described),
    ("packages need each other by version", no_path_only),
    ("README.md states the oldest Rust", oldest_rust),
];
/// What takes minutes.
const SLOW: &[Item] = &[
    (
        "packages compile by themselves",
        || passes(package::chore()),
    ),
    (
        "pages of the documents are listed, and their links lead somewhere",
        || passes(book::chore(&[])),
    ),
    ("dependencies are as deny.toml says", || {
        passes(tools::deny(&[]))
    }),
];

/// Prints the list.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let quick = match args[..] {
        ["--check"] => false,
        ["--check", "--quick"] => true,
        _ => {
            eprintln!(
                "cargo xtask release: takes --check, and --quick besides to leave out what takes \
                 minutes; it publishes nothing (docs/releasing.md)"
            );
            return Ok(USAGE);
        }
    };
    let mut lines = Vec::new();
    for (what, check) in QUICK {
        lines.push(line(what, &check()));
    }
    for (what, check) in SLOW {
        lines.push(match quick {
            true => (format!("not run  {what}"), true),
            false => line(what, &check()),
        });
    }
    println!("release of {VERSION}:");
    for (line, _) in &lines {
        println!("{line}");
    }
    Ok(u8::from(lines.iter().any(|(_, holds)| !holds)))
}

fn line(what: &str, found: &Result<()>) -> (String, bool) {
    match found {
        Ok(()) => (format!("ok       {what}"), true),
        Err(why) => (format!("missing  {what}: {why:#}"), false),
    }
}

/// A chore that ended with 0.
fn passes(code: Result<u8>) -> Result<()> {
    let code = code?;
    ensure!(code == 0, "exit code {code}");
    Ok(())
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))
}

fn manifest(path: &str) -> Result<toml::Table> {
    let text = read(path)?;
    text.parse()
        .with_context(|| format!("{path} is no manifest"))
}

fn versions_agree() -> Result<()> {
    let workspace = manifest("Cargo.toml")?;
    let dependencies = workspace["workspace"]["dependencies"].as_table();
    let own = dependencies.context("the workspace has dependencies")?;
    let own = own.iter().filter(|(name, _)| name.starts_with("zonelab"));
    for (name, dependency) in own {
        let version = dependency.get("version").and_then(toml::Value::as_str);
        ensure!(
            version.is_none_or(|version| version == VERSION),
            "Cargo.toml needs {name} {}, and the version is {VERSION}",
            version.unwrap_or_default()
        );
    }
    let citation = read("CITATION.cff")?;
    let stated = citation
        .lines()
        .find_map(|line| line.strip_prefix("version: "));
    ensure!(
        stated == Some(VERSION),
        "CITATION.cff states {}, and the version is {VERSION}",
        stated.unwrap_or("no version")
    );
    Ok(())
}

fn changelog() -> Result<()> {
    let text = read("CHANGELOG.md")?;
    ensure!(
        has_version(&text, VERSION),
        "there is no heading \"## {VERSION}\""
    );
    ensure!(
        !text.contains(UNRELEASED),
        "its introduction says \"{UNRELEASED}\""
    );
    Ok(())
}

/// Whether a changelog has a heading for a version, with or without a date behind it.
fn has_version(changelog: &str, version: &str) -> bool {
    let headings = changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## "));
    headings
        .into_iter()
        .any(|heading| heading.split_whitespace().next() == Some(version))
}

fn git(words: &[&str]) -> Result<String> {
    let output = Command::new("git").args(words).current_dir(root()).output();
    let output = output.context("cannot start git")?;
    ensure!(output.status.success(), "git {} failed", words.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn clean_tree() -> Result<()> {
    let changed = git(&["status", "--porcelain"])?;
    let first = changed.lines().next().unwrap_or_default();
    ensure!(
        changed.is_empty(),
        "{} changes, the first: {first}",
        changed.lines().count()
    );
    Ok(())
}

fn no_tag() -> Result<()> {
    let tag = format!("v{VERSION}");
    ensure!(
        git(&["tag", "--list", &tag])?.is_empty(),
        "there is a tag {tag}"
    );
    Ok(())
}

fn described() -> Result<()> {
    for (name, missing) in package::undescribed()? {
        ensure!(missing.is_empty(), "{name} lacks {}", missing.join(", "));
    }
    Ok(())
}

/// Names of dependencies that a registry could not find: those with a path and no version.
fn path_only(manifest: &toml::Table) -> Vec<&str> {
    let tables = ["dependencies", "build-dependencies"];
    let tables = tables
        .iter()
        .filter_map(|name| manifest.get(*name)?.as_table());
    let is_path_only = |dependency: &toml::Value| {
        dependency.get("path").is_some() && dependency.get("version").is_none()
            || dependency.get("git").is_some()
    };
    let found = tables.flat_map(|table| table.iter().filter(move |(_, of)| is_path_only(of)));
    found.map(|(name, _)| name.as_str()).collect()
}

fn no_path_only() -> Result<()> {
    let workspace = manifest("Cargo.toml")?;
    let shared = workspace["workspace"].as_table().context("a workspace")?;
    let private = path_only(shared);
    for path in package::published()? {
        let manifest = manifest(&path)?;
        let own = path_only(&manifest);
        ensure!(own.is_empty(), "{path}: {} by path only", own.join(", "));
        let of = manifest.get("dependencies").and_then(toml::Value::as_table);
        let names = of.into_iter().flat_map(toml::Table::keys);
        let wrong: Vec<&String> = names
            .filter(|name| private.contains(&name.as_str()))
            .collect();
        ensure!(
            wrong.is_empty(),
            "{path}: {wrong:?} of the workspace have no version"
        );
    }
    Ok(())
}

fn oldest_rust() -> Result<()> {
    let rust = package::rust_version()?;
    let stated = format!("Rust {rust}");
    ensure!(
        read("README.md")?.contains(&stated),
        "it does not say \"{stated}\""
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_between_releases_holds() {
        for (what, check) in [
            ("versions", versions_agree as fn() -> Result<()>),
            ("descriptions", described),
            ("paths", no_path_only),
            ("Rust", oldest_rust),
        ] {
            let found = check();
            assert!(found.is_ok(), "{what}: {found:?}");
        }
    }

    #[test]
    fn a_path_without_a_version_is_found() {
        let text = "[dependencies]\na = { path = \"a\" }\nb = { path = \"b\", version = \"1\" }\n\
                    c = \"1\"\n[build-dependencies]\nd = { git = \"x\" }\n\
                    [dev-dependencies]\ne = { path = \"e\" }\n";
        let manifest: toml::Table = text.parse().expect("it is TOML");
        assert_eq!(path_only(&manifest), ["a", "d"]);
    }

    #[test]
    fn a_heading_names_a_version_and_no_other() {
        let text = "# Changes\n## 1.2.0 (2026)\n## 1.1.0\ntext 1.0.0\n";
        assert!(has_version(text, "1.2.0") && has_version(text, "1.1.0"));
        assert!(!has_version(text, "1.0.0") && !has_version(text, "1.2"));
    }

    #[test]
    fn what_is_missing_says_why() {
        let found = line("a thing", &Err(anyhow::anyhow!("it is not")));
        assert_eq!(found, ("missing  a thing: it is not".to_owned(), false));
    }
}
