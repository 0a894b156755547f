//! Packages of Debian, without touching the packages of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// Suites of an archive that belong to one release.
pub(super) type Suites = &'static [(&'static str, &'static str)];

/// Debian 12, where most packages come from. The backports are for the second kernel.
pub(super) const BOOKWORM: Suites = &[
    ("debian", "bookworm"),
    ("debian", "bookworm-updates"),
    ("debian-security", "bookworm-security"),
    ("debian", "bookworm-backports"),
];
/// Debian 13, which has a program that Debian 12 has not.
pub(super) const TRIXIE: Suites = &[("debian", "trixie")];
/// Keys that sign them, from the package `debian-archive-keyring`.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The package that depends on the newest kernel.
const KERNEL: &str = "linux-image-amd64";

/// An apt whose lists, cache and idea of what is installed (nothing) are in a
/// directory; what the machine's configuration says of proxies still holds.
pub(super) struct Apt {
    directory: PathBuf,
}

impl Apt {
    pub(super) fn new(directory: PathBuf, suites: Suites) -> Result<Self> {
        for name in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(directory.join(name))?;
        }
        let sources = suites.iter().map(|(archive, suite)| {
            format!("deb [signed-by={KEYS}] http://deb.debian.org/{archive} {suite} main\n")
        });
        fs::write(directory.join("sources.list"), sources.collect::<String>())?;
        // Nothing is installed: every dependency is downloaded.
        fs::write(directory.join("status"), "")?;
        let directory = directory.canonicalize()?;
        Ok(Self { directory })
    }

    /// Reads the lists of packages.
    pub(super) fn update(&self) -> Result<()> {
        run(self.command("apt-get").arg("update"))?;
        Ok(())
    }

    /// Downloads packages and all that they depend on to the cache.
    pub(super) fn download_all(&self, packages: &[&str]) -> Result<()> {
        let mut command = self.command("apt-get");
        command.args(["install", "--download-only", "--no-install-recommends"]);
        run(command.arg("--yes").args(packages))?;
        // Those that newer ones replaced.
        run(self.command("apt-get").arg("autoclean"))?;
        Ok(())
    }

    /// Downloads packages alone to the cache.
    pub(super) fn download(&self, packages: &[&str]) -> Result<()> {
        for package in packages {
            self.fetch(package, &self.directory.join("archives"))?;
        }
        Ok(())
    }

    /// The packages in the cache.
    pub(super) fn archives(&self) -> Result<Vec<PathBuf>> {
        archives(&self.directory.join("archives"))
    }

    /// Downloads a package into a directory, if it is not there.
    pub(super) fn fetch(&self, package: &str, directory: &Path) -> Result<PathBuf> {
        fs::create_dir_all(directory)?;
        let mut command = self.command("apt-get");
        run(command.args(["download", package]).current_dir(directory))?;
        let prefix = format!("{package}_");
        let newest = archives(directory)?.into_iter().rfind(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.starts_with(&prefix))
        });
        newest.with_context(|| format!("apt-get downloaded no {package}"))
    }

    /// Package and version of the newest kernel whose version is wanted.
    pub(super) fn kernel(&self, is_wanted: impl Fn(&str) -> bool) -> Result<(String, String)> {
        let text = run(self.command("apt-cache").args(["show", KERNEL]))?;
        kernels(&text)
            .into_iter()
            .find(|(_, version)| is_wanted(version))
            .context("the lists have no such kernel")
    }

    fn command(&self, program: &str) -> Command {
        let at = |name: &str| self.directory.join(name).display().to_string();
        let mut command = Command::new(program);
        for (key, value) in [
            ("Dir::State", at("")),
            ("Dir::State::lists", at("lists")),
            ("Dir::State::status", at("status")),
            ("Dir::Cache", at("")),
            ("Dir::Cache::archives", at("archives")),
            ("Dir::Etc::sourcelist", at("sources.list")),
            ("Dir::Etc::sourceparts", "/dev/null".to_owned()),
            ("Dir::Etc::preferencesparts", "/dev/null".to_owned()),
            ("APT::Architecture", "amd64".to_owned()),
            ("APT::Architectures", "amd64".to_owned()),
            // The user of its own that apt downloads as cannot write here.
            ("APT::Sandbox::User", String::new()),
            // Some machines throw packages away once they are downloaded.
            (
                "Binary::apt::APT::Keep-Downloaded-Packages",
                "true".to_owned(),
            ),
            ("APT::Update::Post-Invoke", String::new()),
            ("Acquire::Retries", "3".to_owned()),
            ("Acquire::http::Timeout", "60".to_owned()),
        ] {
            command.arg("-o").arg(format!("{key}={value}"));
        }
        command.arg("-q");
        command
    }
}

/// Package and version of each kernel in the output of `apt-cache show`.
fn kernels(text: &str) -> Vec<(String, String)> {
    let field = |stanza: &str, name: &str| {
        let mut lines = stanza.lines();
        lines.find_map(|line| line.strip_prefix(name).map(|rest| rest.trim().to_owned()))
    };
    let stanzas = text.split("\n\n");
    let kernels = stanzas.filter_map(|stanza| {
        let depends = field(stanza, "Depends:")?;
        let package = depends.split([' ', ',']).next()?.to_owned();
        Some((package, field(stanza, "Version:")?))
    });
    kernels.collect()
}

/// The packages in a directory, in the order of their names.
fn archives(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Runs a command and gives what it printed.
///
/// # Errors
///
/// It does not start or fails; with the end of what it printed.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = match output {
        Ok(output) => output,
        Err(error) => bail!("cannot start {program}: {error}"),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let arguments: Vec<_> = command
        .get_args()
        .map(|arg| arg.to_string_lossy())
        .collect();
    ensure!(
        output.status.success(),
        "{program} {} failed:\n{text}{errors}",
        arguments.join(" ")
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_what_the_package_depends_on() {
        let text = "Package: linux-image-amd64\nVersion: 6.12.9-1~bpo12+1\n\
                    Depends: linux-image-6.12.9+deb12-amd64 (= 6.12.9-1~bpo12+1)\n\n\
                    Package: linux-image-amd64\nVersion: 6.1.99-2\n\
                    Depends: linux-image-6.1.0-56-amd64 (= 6.1.99-2)\n";
        let pair = |package: &str, version: &str| (package.to_owned(), version.to_owned());
        let expected = [
            pair("linux-image-6.12.9+deb12-amd64", "6.12.9-1~bpo12+1"),
            pair("linux-image-6.1.0-56-amd64", "6.1.99-2"),
        ];
        assert_eq!(kernels(text), expected);
    }
}
