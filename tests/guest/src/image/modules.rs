//! Modules of a kernel, with those that they depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::apt::run;
use super::tree::Tree;

/// Directories that hold nothing the guest uses, and most of the modules:
/// reading these takes longest.
const UNUSED: [&str; 9] = [
    "drivers/gpu",
    "drivers/media",
    "drivers/net/ethernet",
    "drivers/net/wireless",
    "drivers/iio",
    "drivers/scsi",
    "drivers/usb",
    "drivers/staging",
    "sound",
];

/// End of the names of compressed modules.
const COMPRESSED: &str = ".xz";

/// What goes into the guest.
pub(super) struct Modules {
    /// The kernel's release.
    pub(super) release: String,
    /// Places in the guest, and contents.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

/// Collects `wanted` from an unpacked kernel; `scratch` is emptied and used.
pub(super) fn collect(
    tools: &Tree,
    kernel: &Tree,
    wanted: &[&str],
    scratch: &Path,
) -> Result<Modules> {
    let all = kernel.path("lib/modules");
    let release = only_entry(&all)?;
    let from = all.join(&release);
    for directory in UNUSED {
        let directory = from.join("kernel").join(directory);
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
    }
    index(tools, &kernel.path(""), &release)?;
    let dependencies = Dependencies::parse(&fs::read_to_string(from.join("modules.dep"))?);
    let builtin = fs::read_to_string(from.join("modules.builtin"))?;
    let builtin: BTreeSet<String> = builtin.lines().map(module).collect();

    if scratch.exists() {
        fs::remove_dir_all(scratch)?;
    }
    let to = scratch.join("lib/modules").join(&release);
    for file in dependencies.of(wanted, &builtin)? {
        let plain = to.join(file.trim_end_matches(COMPRESSED));
        copy(&from.join(&file), &plain)?;
        if file.ends_with(COMPRESSED) {
            // An emulated processor takes long for this.
            let content = tools.decompress(&plain)?;
            fs::write(plain, content)?;
        }
    }
    for file in [
        "modules.order",
        "modules.builtin",
        "modules.builtin.modinfo",
    ] {
        copy(&from.join(file), &to.join(file))?;
    }
    index(tools, scratch, &release)?;
    let mut files = Vec::new();
    read_all(scratch, scratch, &mut files)?;
    fs::remove_dir_all(scratch)?;
    Ok(Modules { release, files })
}

/// Which module needs which.
struct Dependencies {
    /// For each module its file and the files that it needs, all of them.
    modules: BTreeMap<String, (String, Vec<String>)>,
}

impl Dependencies {
    /// Reads `modules.dep`: `FILE: FILE ...` on each line.
    fn parse(text: &str) -> Self {
        let modules = text.lines().filter_map(|line| {
            let (file, needs) = line.split_once(':')?;
            let needs = needs.split_whitespace().map(str::to_owned).collect();
            Some((module(file), (file.to_owned(), needs)))
        });
        Self {
            modules: modules.collect(),
        }
    }

    /// The files of modules and of those that they need.
    fn of(&self, wanted: &[&str], builtin: &BTreeSet<String>) -> Result<BTreeSet<String>> {
        let mut files = BTreeSet::new();
        let mut unknown = Vec::new();
        for &name in wanted {
            match self.modules.get(name) {
                Some((file, needs)) => {
                    files.insert(file.clone());
                    files.extend(needs.iter().cloned());
                }
                None if builtin.contains(name) => {}
                None => unknown.push(name),
            }
        }
        ensure!(
            unknown.is_empty(),
            "the kernel has no {}",
            unknown.join(", ")
        );
        Ok(files)
    }
}

/// The name of the module in a file: dashes and underscores are the same.
fn module(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    let name = name.split('.').next().unwrap_or(name);
    name.replace('-', "_")
}

/// Writes the indexes that `modprobe` reads.
fn index(tools: &Tree, root: &Path, release: &str) -> Result<()> {
    let mut command = tools.command("bin/kmod", "depmod")?;
    run(command.arg("-b").arg(root).arg(release))?;
    Ok(())
}

fn only_entry(directory: &Path) -> Result<String> {
    let entry = fs::read_dir(directory)
        .with_context(|| format!("no {}", directory.display()))?
        .next()
        .context("the kernel has no modules")??;
    Ok(entry.file_name().to_string_lossy().into_owned())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file is in a directory")?)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// Reads all files below a directory; their places are from `root`.
fn read_all(directory: &Path, root: &Path, files: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let entries: Result<Vec<PathBuf>, std::io::Error> = fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut entries = entries?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            read_all(&path, root, files)?;
        } else {
            let place = path.strip_prefix(root)?.display().to_string();
            files.push((place, fs::read(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_with_what_they_need_and_unknown_ones_are_named() {
        let text = "kernel/a/nvme-tcp.ko.xz: kernel/b/core.ko.xz kernel/c/fab.ko\n\
                    kernel/b/core.ko.xz:\nkernel/d/other.ko:\n";
        let dependencies = Dependencies::parse(text);
        let builtin = BTreeSet::from([module("kernel/e/virtio-pci.ko")]);
        let files = dependencies
            .of(&["nvme_tcp", "virtio_pci"], &builtin)
            .unwrap();
        let expected = [
            "kernel/a/nvme-tcp.ko.xz",
            "kernel/b/core.ko.xz",
            "kernel/c/fab.ko",
        ];
        assert!(files.iter().eq(expected));
        let error = dependencies
            .of(&["zonefs", "other", "f2fs"], &builtin)
            .unwrap_err();
        assert_eq!(error.to_string(), "the kernel has no zonefs, f2fs");
    }
}
