//! `cargo xtask package`: the packages as a registry would get them, and whether they
//! compile from nothing else, with the oldest Rust that they claim.
//!
//! `cargo package` would verify each package by itself, and compile those below it again
//! for each. Here all of them are unpacked side by side and checked at once.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, root, target};

/// A package that is published.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Package {
    name: String,
    /// Its manifest, from the root.
    manifest: String,
    /// What its manifest says of itself, for those who look for it.
    missing: Vec<&'static str>,
}

/// What a manifest has to have beside what cargo wants.
const WANTED: [&str; 4] = ["description", "readme", "keywords", "categories"];

/// Makes all packages, and checks them.
pub(crate) fn chore() -> Result<u8> {
    let manifests = manifests()?;
    let (published, private): (Vec<_>, Vec<_>) = manifests
        .into_iter()
        .partition(|(_, is_published)| *is_published);
    let mut package = cargo();
    package.args(["package", "--workspace", "--no-verify", "--allow-dirty"]);
    for (of, _) in &private {
        package.args(["--exclude", &of.name]);
    }
    run(package.arg("--target-dir").arg(target()))?;
    for (of, _) in &published {
        ensure!(
            of.missing.is_empty(),
            "the manifest of {} lacks {}",
            of.name,
            of.missing.join(", ")
        );
    }
    let place = unpack(&published.iter().map(|(of, _)| of).collect::<Vec<_>>())?;
    let rust = rust_version()?;
    let mut check = Command::new("cargo");
    check.arg(format!("+{rust}")).args(["check", "--workspace"]);
    // Below the directory of packages, so that nothing of the workspace is rebuilt for it.
    check.arg("--target-dir").arg(place.join("target"));
    // Another toolchain than that of this program.
    check.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC");
    run(check.current_dir(&place))?;
    println!(
        "{} packages compile from what is published of them, with Rust {rust}",
        published.len()
    );
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

/// The version of Rust that the workspace claims to need.
pub(crate) fn rust_version() -> Result<String> {
    let manifest = read(&root().join("Cargo.toml"))?;
    let version = manifest["workspace"]["package"]["rust-version"].as_str();
    Ok(version
        .context("the workspace states no rust-version")?
        .to_owned())
}

/// What each published package does not say of itself.
pub(crate) fn undescribed() -> Result<Vec<(String, Vec<&'static str>)>> {
    let all = manifests()?.into_iter();
    let published = all.filter(|(_, is_published)| *is_published);
    Ok(published.map(|(of, _)| (of.name, of.missing)).collect())
}

/// Manifests of the packages that are published, from the root.
pub(crate) fn published() -> Result<Vec<String>> {
    let all = manifests()?.into_iter();
    let published = all.filter(|(_, is_published)| *is_published);
    Ok(published.map(|(of, _)| of.manifest).collect())
}

fn read(path: &Path) -> Result<toml::Table> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let table = text.parse();
    table.with_context(|| format!("{} is no manifest", path.display()))
}

/// The packages of the workspace, and whether each is published.
fn manifests() -> Result<Vec<(Package, bool)>> {
    let mut directories: Vec<PathBuf> = std::fs::read_dir(root().join("crates"))
        .context("cannot list the crates")?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .context("cannot list the crates")?;
    directories.extend([root().join("python"), root().join("tests/web")]);
    directories.sort();
    let mut packages = Vec::new();
    for directory in directories {
        let manifest = read(&directory.join("Cargo.toml"))?;
        let package = manifest.get("package").and_then(toml::Value::as_table);
        let package = package.with_context(|| format!("{} is no package", directory.display()))?;
        let name = package.get("name").and_then(toml::Value::as_str);
        let missing = WANTED.into_iter().filter(|key| !package.contains_key(*key));
        let path = directory.join("Cargo.toml");
        let path = path.strip_prefix(root()).unwrap_or(&path);
        let of = Package {
            manifest: path.display().to_string(),
            name: name.context("a package has a name")?.to_owned(),
            missing: missing.collect(),
        };
        let is_private = package.get("publish") == Some(&toml::Value::Boolean(false));
        packages.push((of, !is_private));
    }
    Ok(packages)
}

/// Unpacks the packages beside each other, as members of a workspace whose packages need
/// each other by version. Returns where.
fn unpack(packages: &[&Package]) -> Result<PathBuf> {
    let made = target().join("package");
    let place = made.join("unpacked");
    let (mut members, mut patches) = (String::new(), String::new());
    std::fs::create_dir_all(&place).context("cannot make a directory for the packages")?;
    for Package { name, .. } in packages {
        let directory = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
        let old = place.join(&directory);
        if old.exists() {
            std::fs::remove_dir_all(&old).context("cannot remove an earlier package")?;
        }
        let file = made.join(format!("{directory}.crate"));
        // Files in packages are all as old as each other: cargo goes by when they were written.
        run(Command::new("tar")
            .arg("xzmf")
            .arg(&file)
            .arg("-C")
            .arg(&place))?;
        members += &format!("    \"{directory}\",\n");
        patches += &format!("{name} = {{ path = \"{directory}\" }}\n");
    }
    let workspace = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\n{members}]\n\n[patch.crates-io]\n{patches}"
    );
    std::fs::write(place.join("Cargo.toml"), workspace).context("cannot write a workspace")?;
    // The same versions of everything else.
    std::fs::copy(root().join("Cargo.lock"), place.join("Cargo.lock"))
        .context("cannot copy the lock file")?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_can_be_found() {
        let manifests = manifests().expect("they can be read");
        let published = manifests.iter().filter(|(_, is_published)| *is_published);
        let published: Vec<&Package> = published.map(|(of, _)| of).collect();
        assert!(published.len() >= 16, "{published:?}");
        assert!(published.iter().any(|of| of.name == "zonelab"));
        for of in published {
            assert!(of.missing.is_empty(), "{of:?}");
        }
    }
}
