//! Packages that are unpacked into a directory.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use goblin::elf::Elf;

use super::apt::run;

/// Where packages put programs.
const PROGRAMS: [&str; 4] = ["bin", "sbin", "usr/bin", "usr/sbin"];
/// Where packages put libraries.
const LIBRARIES: [&str; 4] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/ceph",
    "usr/lib/x86_64-linux-gnu/glusterfs",
];
/// Where the guest has them all: a place that the loader knows.
pub(super) const PLACE: &str = "lib/x86_64-linux-gnu";
/// The program that loads them, and where programs look for it.
const LOADER: &str = "ld-linux-x86-64.so.2";
pub(super) const LOADER_PLACE: &str = "lib64/ld-linux-x86-64.so.2";

/// A library: where it is in the packages, and in the guest.
pub(super) struct Library {
    pub(super) source: String,
    pub(super) place: String,
}

pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// An empty one.
    pub(super) fn new(root: PathBuf) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        fs::create_dir_all(&root)?;
        Ok(Self { root })
    }

    pub(super) fn unpack(&self, package: &Path) -> Result<()> {
        run(Command::new("dpkg-deb")
            .arg("-x")
            .arg(package)
            .arg(&self.root))?;
        Ok(())
    }

    pub(super) fn remove(self) -> Result<()> {
        Ok(fs::remove_dir_all(self.root)?)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.path(name);
        fs::read(&path).with_context(|| format!("no package brought {}", path.display()))
    }

    /// The place of a program.
    pub(super) fn program(&self, name: &str) -> Result<String> {
        let mut places = PROGRAMS
            .iter()
            .map(|directory| format!("{directory}/{name}"));
        let place = places.find(|place| self.path(place).exists());
        place.with_context(|| format!("no package brought the program {name}"))
    }

    /// All libraries that programs need, directly or through others.
    pub(super) fn libraries(&self, programs: Vec<String>) -> Result<Vec<Library>> {
        let mut sources: BTreeMap<String, String> = BTreeMap::new();
        let mut queue = VecDeque::from(programs);
        while let Some(file) = queue.pop_front() {
            for name in needs(&self.read(&file)?).with_context(|| file.clone())? {
                if sources.contains_key(&name) {
                    continue;
                }
                let source = self.find_library(&name);
                let source = source
                    .with_context(|| format!("{file} needs {name}, which no package brought"))?;
                queue.push_back(source.clone());
                sources.insert(name, source);
            }
        }
        let loader = Library {
            source: self.loader()?,
            place: LOADER_PLACE.to_owned(),
        };
        let libraries = sources.into_iter().map(|(name, source)| Library {
            source,
            place: format!("{PLACE}/{name}"),
        });
        Ok(libraries.chain([loader]).collect())
    }

    /// The place of a library.
    fn find_library(&self, name: &str) -> Option<String> {
        let mut places = LIBRARIES
            .iter()
            .map(|directory| format!("{directory}/{name}"));
        places.find(|place| self.path(place).exists())
    }

    /// The place of the program that loads them.
    pub(super) fn loader(&self) -> Result<String> {
        self.find_library(LOADER)
            .context("no package brought the loader of programs")
    }

    /// What a compressed file holds.
    pub(super) fn decompress(&self, file: &Path) -> Result<Vec<u8>> {
        // This one is linked statically, and needs nothing of the packages.
        let busybox = self.path("bin/busybox");
        let output = Command::new(busybox).arg("xzcat").arg(file).output()?;
        ensure!(
            output.status.success(),
            "cannot decompress {}",
            file.display()
        );
        Ok(output.stdout)
    }

    /// A command that runs a program of the packages with their libraries,
    /// under another name.
    ///
    /// # Errors
    ///
    /// No package brought the program that loads them.
    pub(super) fn command(&self, program: &str, name: &str) -> Result<Command> {
        let libraries = LIBRARIES.map(|directory| self.path(directory).display().to_string());
        let mut command = Command::new(self.path(&self.loader()?));
        command.args(["--inhibit-cache", "--library-path"]);
        command.arg(libraries.join(":"));
        command.args(["--argv0", name]).arg(self.path(program));
        Ok(command)
    }
}

/// The libraries that an executable or a library names.
fn needs(bytes: &[u8]) -> Result<Vec<String>> {
    let elf = Elf::parse(bytes).context("not a program")?;
    Ok(elf.libraries.iter().map(|&name| name.to_owned()).collect())
}
