//! The tier `guest`: Linux kernels and their tools, in an emulated machine.

use crate::made;
use crate::steps::{Step, installing, runs};
use crate::tiers::{built, the_program};

/// The emulator.
const EMULATOR: &str = "qemu-system-x86_64";
/// What makes a guest: it, and the programs that unpack and watch it, and that
/// read what it says to the network.
const PROGRAMS: [&str; 5] = [EMULATOR, "apt-get", "dpkg-deb", "setpriv", "tshark"];
/// What installs them, on Debian.
const INSTALL: &str = "apt-get install --no-install-recommends \
                       qemu-system-x86 debian-archive-keyring util-linux tshark";

/// The steps; with `install`, a missing emulator is installed first.
pub(crate) fn steps(install: bool) -> Vec<Step> {
    plan(PROGRAMS.iter().all(|program| runs(program)), install)
}

/// What has both kernels run every case that they can, where otherwise a case has one of them.
const EVERY: &str = "ZONELAB_GUEST_EVERY";

/// The steps with every case in both kernels.
pub(crate) fn long(install: bool) -> Vec<Step> {
    let mut steps = steps(install);
    let tests = steps.last_mut().expect("the tests are the last step");
    tests.command.env(EVERY, "1");
    steps
}

fn plan(has_programs: bool, install: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    if install && !has_programs {
        steps.extend(installing("emulator", INSTALL));
    }
    let manifest = ["--manifest-path", "tests/guest/Cargo.toml"];
    let lints = ["--all-targets", "--", "-D", "warnings"];
    let format = Step::cargo(
        "formatting",
        &[&["fmt"], &manifest[..], &["--check"]].concat(),
    );
    let lints = Step::cargo("lints", &[&["clippy"], &manifest[..], &lints].concat());
    let image = [
        &["run"],
        &manifest[..],
        &["--quiet", "--bin", "guest-image"],
    ]
    .concat();
    let mut image = Step::cargo("guest", &image);
    let mut tests = Step::cargo(
        "tests with Linux kernels",
        &[&["test"], &manifest[..]].concat(),
    );
    let directory = made().join("guest");
    tests.command.env("ZONELAB", built());
    for step in [&mut image, &mut tests] {
        if std::env::var_os("ZONELAB_GUEST").is_none() {
            step.command.env("ZONELAB_GUEST", &directory);
        }
        step.missing = (!has_programs && !install).then_some(INSTALL);
    }
    steps.extend([format, lints, the_program(), image, tests]);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_emulator_is_installed_or_named() {
        let names = |steps: &[Step]| -> Vec<&str> { steps.iter().map(|step| step.name).collect() };
        let always = [
            "formatting",
            "lints",
            "zonelab",
            "guest",
            "tests with Linux kernels",
        ];
        assert_eq!(names(&plan(true, true)), always);
        let here = plan(false, false);
        assert_eq!(names(&here), always);
        let missing: Vec<_> = here.iter().map(|step| step.missing).collect();
        assert_eq!(missing, [None, None, None, Some(INSTALL), Some(INSTALL)]);
        let ci = plan(false, true);
        assert_eq!(names(&ci)[..2], ["package lists", "emulator"]);
        assert_eq!(names(&ci)[2..], always);
        let every = |steps: &[Step]| -> Vec<bool> {
            let says_so = |step: &Step| step.command.get_envs().any(|(name, _)| name == EVERY);
            steps.iter().map(says_so).collect()
        };
        assert!(!every(&ci).contains(&true));
        assert_eq!(every(&long(false)), [false, false, false, false, true]);
        assert!(ci.iter().all(|step| step.missing.is_none()));
    }
}
