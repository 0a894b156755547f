//! `cargo xtask dist`: what is given away: a static binary with its pages and licences.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::steps::runs;
use crate::{ENVIRONMENT, USAGE, cargo, made, root, target, tiers};

/// What it is compiled for. No package that the command needs has code in C, so that the
/// linker that Rust needs anyway is enough.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-musl";
/// How to get the standard library for that.
pub(crate) const INSTALL: &str = "rustup target add x86_64-unknown-linux-musl";
/// The directory in `target/dist`, and in the archive.
const DIRECTORY: &str = "zonelab-x86_64-linux";
/// What is in it: files, and directories with a slash.
const CONTENTS: [&str; 8] = [
    "zonelab",
    "man/",
    "completions/",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "THIRD-PARTY.txt",
    "README.md",
    "CHANGELOG.md",
];
/// Of these, those that are files of the repository.
const COPIED: [&str; 4] = ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"];
/// Shells, and what their files are called.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "zonelab.bash"),
    ("fish", "zonelab.fish"),
    ("zsh", "_zonelab"),
];
const SUMS: &str = "SHA256SUMS";
const CONTAINERFILE: &str = "contrib/Containerfile";

/// Makes it.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let container = match args {
        [] => false,
        [option] if option == "--container" => true,
        _ => {
            eprintln!("cargo xtask dist: takes --container, to build a container of it too");
            return Ok(USAGE);
        }
    };
    if !has_target() {
        if !tiers::is_ci() {
            eprintln!("a static binary is compiled for {TARGET}: install that with {INSTALL}");
            return Ok(ENVIRONMENT);
        }
        let mut words = INSTALL.split_whitespace();
        run(Command::new(words.next().unwrap_or_default()).args(words))?;
    }
    let build = ["build", "--release", "--package", "zonelab-cli"];
    run(cargo()
        .args(build)
        .args(["--features", "parquet", "--target", TARGET]))?;
    let dist = made().join("dist");
    let place = dist.join(DIRECTORY);
    if place.exists() {
        fs::remove_dir_all(&place).context("cannot remove what was there")?;
    }
    fs::create_dir_all(place.join("completions")).context("cannot make a directory")?;
    fill(&place)?;
    let archive = pack(&dist)?;
    sum(&dist, &archive)?;
    println!(
        "{}: {} bytes",
        dist.join(&archive).display(),
        size(&dist.join(&archive))?
    );
    if container {
        return build_container(&dist);
    }
    Ok(0)
}

fn run(command: &mut Command) -> Result<()> {
    if command.get_current_dir().is_none() {
        command.current_dir(root());
    }
    let status = command.status();
    let status = status.with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

pub(crate) fn has_target() -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output();
    output.is_ok_and(|output| {
        let path = String::from_utf8_lossy(&output.stdout);
        output.status.success() && Path::new(path.trim()).is_dir()
    })
}

/// Puts everything into the directory.
fn fill(place: &Path) -> Result<()> {
    let program = place.join("zonelab");
    let built = target().join(TARGET).join("release/zonelab");
    fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    let bytes = fs::read(&program).context("cannot read the program")?;
    ensure!(
        is_static(&bytes),
        "{} needs a dynamic linker",
        built.display()
    );
    run(Command::new(&program)
        .arg("man")
        .arg(place.join("man"))
        .stdout(std::process::Stdio::null()))?;
    for (shell, name) in SHELLS {
        let output = Command::new(&program).args(["completions", shell]).output();
        let output = output.context("the program does not start")?;
        ensure!(output.status.success(), "no completions for {shell}");
        fs::write(place.join("completions").join(name), output.stdout)
            .with_context(|| format!("cannot write {name}"))?;
    }
    for name in COPIED {
        fs::copy(root().join(name), place.join(name))
            .with_context(|| format!("cannot copy {name}"))?;
    }
    fs::write(place.join("THIRD-PARTY.txt"), third_party()?)
        .context("cannot write the licences")?;
    let made: BTreeSet<String> = contents(place)?;
    let wanted: BTreeSet<String> = CONTENTS.iter().map(|name| (*name).to_owned()).collect();
    ensure!(made == wanted, "made is {made:?}, and not {wanted:?}");
    Ok(())
}

/// The names in a directory, those of directories with a slash.
fn contents(place: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(place).context("cannot list what was made")?;
    entries
        .map(|entry| {
            let entry = entry?;
            let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
            Ok(format!("{}{slash}", entry.file_name().to_string_lossy()))
        })
        .collect()
}

/// Whether an ELF file for 64 bits needs no other file to run: no program header names an
/// interpreter.
fn is_static(elf: &[u8]) -> bool {
    const INTERPRETER: u32 = 3;
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let bytes = elf.get(at..at + bytes)?.iter().rev();
        Some(bytes.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let headers = || {
        let (first, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        (0..count)
            .map(|index| number(first + index * size, 4))
            .collect::<Option<Vec<usize>>>()
    };
    let is_elf = elf.starts_with(b"\x7fELF\x02\x01");
    is_elf && headers().is_some_and(|kinds| !kinds.contains(&(INTERPRETER as usize)))
}

/// What the binary has of others, each with the licences that its authors ask to be kept.
fn third_party() -> Result<String> {
    let output = cargo()
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            TARGET,
        ])
        .current_dir(root())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo metadata failed");
    let metadata: Value = serde_json::from_slice(&output.stdout).context("metadata are JSON")?;
    let mut packages = packages(&metadata)?;
    packages.sort_by_key(|package| [&package["name"], &package["version"]].map(Value::to_string));
    let word = |value: &Value| value.as_str().unwrap_or("not stated").to_owned();
    let mut text = "What the program zonelab has of others, and its licences.\n".to_owned();
    for package in packages {
        let [name, version, licence] =
            ["name", "version", "license"].map(|key| word(&package[key]));
        text += &format!("\n{}\n{name} {version}: {licence}\n\n", "=".repeat(78));
        let manifest = PathBuf::from(word(&package["manifest_path"]));
        let directory = manifest.parent().context("a manifest is in a directory")?;
        for file in licences(directory)? {
            text += &fs::read_to_string(&file).with_context(|| format!("{}", file.display()))?;
            text.push('\n');
        }
    }
    Ok(text)
}

/// The packages of a registry that are compiled into the program.
fn packages(metadata: &Value) -> Result<Vec<&Value>> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let nodes = list(&metadata["resolve"]["nodes"]);
    let all = metadata["packages"]
        .as_array()
        .context("there are packages")?;
    let start = all.iter().find(|package| package["name"] == "zonelab-cli");
    let mut open = vec![start.context("zonelab-cli is there")?["id"].clone()];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id.to_string()) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == id);
        for dependency in list(&node.context("every package is resolved")?["deps"]) {
            let kinds = list(&dependency["dep_kinds"]);
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                open.push(dependency["pkg"].clone());
            }
        }
    }
    let is_of_others = |package: &&Value| {
        seen.contains(&package["id"].to_string()) && !package["source"].is_null()
    };
    Ok(all.iter().filter(is_of_others).collect())
}

/// Files of a package that are licences or notices.
fn licences(directory: &Path) -> Result<Vec<PathBuf>> {
    let names = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"];
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("{}", directory.display()))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        if path.is_file() && names.iter().any(|start| name.starts_with(start)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Makes the archive, whose bytes depend on nothing but what is in it; its name.
fn pack(dist: &Path) -> Result<String> {
    let archive = format!("zonelab-{}-{TARGET}.tar.gz", env!("CARGO_PKG_VERSION"));
    let same = [
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=@0",
    ];
    let mut tar = Command::new("tar");
    tar.args(same).args([
        "--use-compress-program=gzip -n9",
        "-cf",
        &archive,
        DIRECTORY,
    ]);
    run(tar.current_dir(dist))?;
    Ok(archive)
}

/// Writes the checksums of the archive and of the program.
fn sum(dist: &Path, archive: &str) -> Result<()> {
    let program = format!("{DIRECTORY}/zonelab");
    let mut sums = Command::new("sha256sum");
    let output = sums.args([archive, &program]).current_dir(dist).output();
    let output = output.context("cannot start sha256sum")?;
    ensure!(output.status.success(), "{sums:?} failed");
    fs::write(dist.join(SUMS), output.stdout).context("cannot write the checksums")
}

fn size(path: &Path) -> Result<u64> {
    let metadata = fs::metadata(path);
    Ok(metadata
        .with_context(|| format!("{}", path.display()))?
        .len())
}

/// Lints the Containerfile where there is what does, and builds the container.
fn build_container(dist: &Path) -> Result<u8> {
    match runs("hadolint") {
        true => run(Command::new("hadolint").arg(CONTAINERFILE))?,
        false => eprintln!("SKIPPED: lints of {CONTAINERFILE}: hadolint is not there"),
    }
    let works = |program: &&str| {
        let output = Command::new(program).arg("info").output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(program) = ["podman", "docker"].into_iter().find(works) else {
        eprintln!("neither podman nor docker works here (`podman info`, `docker info`)");
        return Ok(ENVIRONMENT);
    };
    let mut build = Command::new(program);
    build
        .args(["build", "--tag", "zonelab", "--file", CONTAINERFILE])
        .arg(dist);
    run(&mut build)?;
    let mut version = Command::new(program);
    let output = version
        .args(["run", "--rm", "zonelab", "--version"])
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !said.contains(env!("CARGO_PKG_VERSION")) {
        bail!("the container says {said:?}, and not its version");
    }
    println!("container `zonelab`: {}", said.trim());
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sources of `COPY` in a Containerfile.
    fn copied(text: &str) -> Vec<&str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("COPY "));
        lines
            .flat_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words[..words.len() - 1].to_vec()
            })
            .collect()
    }

    #[test]
    fn the_container_has_only_what_is_made() {
        let text = fs::read_to_string(root().join(CONTAINERFILE)).expect("it is there");
        let sources = copied(&text);
        assert!(sources.len() >= 4, "{sources:?}");
        for source in sources {
            let name = source
                .strip_prefix(DIRECTORY)
                .and_then(|rest| rest.strip_prefix('/'));
            let name = name.unwrap_or_else(|| panic!("{source} is not in {DIRECTORY}"));
            assert!(CONTENTS.contains(&name), "{source} is not made");
        }
        for kept in ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"] {
            assert!(text.contains(kept), "{kept} has to go with the program");
        }
    }

    #[test]
    fn what_is_copied_is_there() {
        for name in COPIED {
            assert!(
                CONTENTS.contains(&name) && root().join(name).is_file(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_program_with_an_interpreter_is_not_static() {
        // This one has been linked for the machine that runs it.
        let own = std::env::current_exe()
            .and_then(fs::read)
            .expect("it can be read");
        assert!(!is_static(&own));
        let mut elf = vec![0; 64 + 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[32], elf[54], elf[56]) = (64, 56, 1);
        elf[64] = 1;
        assert!(is_static(&elf));
        elf[64] = 3;
        assert!(!is_static(&elf));
        assert!(!is_static(b"#!/bin/sh"));
    }
}
