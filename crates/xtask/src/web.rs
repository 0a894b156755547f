//! The tier `web`: what zonelab shows, and the laboratory itself, in a browser.

use std::process::Command;

use crate::root;
use crate::steps::{Step, installing, runs};
use crate::tiers::{built, named_test, the_program};

/// Programs that are Chromium.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// What installs one, and a font, on Debian.
const INSTALL: &str = "apt-get install --no-install-recommends chromium fonts-dejavu-core";
/// The names of the tests in `tests/web`.
pub(crate) const TESTS: [&str; 5] = ["explore", "live", "made", "playground", "report"];

/// The steps; with `install`, a missing browser is installed first.
pub(crate) fn steps(install: bool) -> Vec<Step> {
    let has_browser =
        std::env::var_os("CHROMIUM").is_some() || BROWSERS.iter().any(|name| runs(name));
    plan(has_browser, install)
}

fn plan(has_browser: bool, install: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    if install && !has_browser {
        steps.extend(installing("browser", INSTALL));
    }
    let results = root().join("results/web/reproduce-quick");
    let mut report = Command::new(built());
    report
        .args(["reproduce", "--quick", "--quiet", "--force", "--out"])
        .arg(&results)
        .current_dir(root());
    let report = Step {
        name: "report",
        command: report,
        missing: None,
    };
    let page = root().join("results/web/playground");
    let mut playground = Step::cargo("playground", &["xtask", "playground", "--out"]);
    playground.command.arg(&page);
    let mut tests = named_test("tests in a browser", &TESTS);
    tests.command.env("ZONELAB", built());
    tests.command.env("ZONELAB_REPORT", &results);
    tests.command.env("ZONELAB_PLAYGROUND", &page);
    tests.missing = (!has_browser && !install).then_some(INSTALL);
    steps.extend([the_program(), report, playground, tests]);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(steps: &[Step]) -> Vec<&str> {
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn a_missing_browser_is_installed_or_named() {
        let always = ["zonelab", "report", "playground", "tests in a browser"];
        assert_eq!(names(&plan(true, true)), always);
        let here = plan(false, false);
        assert_eq!(names(&here), always);
        assert_eq!(here[3].missing, Some(INSTALL));
        let ci = plan(false, true);
        assert_eq!(names(&ci)[..2], ["package lists", "browser"]);
        assert!(ci.iter().all(|step| step.missing.is_none()));
        let args: Vec<_> = ci[1].command.get_args().collect();
        assert!(
            args.iter().any(|arg| *arg == "chromium") && args.iter().any(|arg| *arg == "--yes")
        );
    }

    #[test]
    fn all_tests_are_named() {
        let directory = root().join("tests/web/tests");
        let files = std::fs::read_dir(directory).expect("it is there");
        let paths = files.map(|file| file.expect("it can be listed").path());
        let mut names: Vec<String> = paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect();
        names.sort_unstable();
        assert_eq!(names, TESTS);
    }

    #[test]
    fn the_tests_read_the_report_that_was_made() {
        let steps = plan(true, false);
        let out = steps[1].command.get_args().last().unwrap();
        let mut variables = steps[3].command.get_envs();
        assert!(variables.any(|variable| variable == ("ZONELAB_REPORT".as_ref(), Some(out))));
    }
}
