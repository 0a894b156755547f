//! The tier `chaos`: everything at once against a drive that is served.

use crate::steps::Step;
use crate::tiers::named_test;

/// How long it takes, in seconds, if not as long as the tests have it.
const SECONDS: &str = "ZONELAB_CHAOS_SECONDS";
/// Servers of the layer that are killed, if not as many as the tests have it.
const KILLS: &str = "ZONELAB_KILLS";
/// The seconds, and the kills, of a night.
const LONG: [(&str, &str); 2] = [(SECONDS, "3600"), (KILLS, "300")];

/// The steps of the tier.
pub(crate) fn steps() -> Vec<Step> {
    vec![tests()]
}

/// The same for an hour, on a new seed, and with more kills.
pub(crate) fn long() -> Vec<Step> {
    let mut tests = tests();
    for (name, value) in LONG {
        if std::env::var_os(name).is_none() {
            tests.command.env(name, value);
        }
    }
    vec![tests]
}

/// One after the other: what servers take is measured. The seed and what was counted are
/// printed, whether it passes or fails.
fn tests() -> Step {
    let mut tests = named_test("everything at once", &["chaos"]);
    tests
        .command
        .args(["--", "--nocapture", "--test-threads", "1"]);
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_has_an_hour_of_it_and_both_print_what_was_counted() {
        let has_output = |step: &Step| step.command.get_args().any(|arg| arg == "--nocapture");
        assert!(has_output(&steps()[0]) && has_output(&long()[0]));
        let has = |steps: &[Step], name: &str| {
            let mut variables = steps[0].command.get_envs();
            variables.any(|(variable, _)| variable == name)
        };
        for (name, _) in LONG {
            assert!(has(&long(), name) || std::env::var_os(name).is_some());
            assert!(!has(&steps(), name));
        }
    }
}
