//! The tier `chaos`: everything at once against a drive that is served.

use crate::steps::Step;
use crate::tiers::named_test;

/// How long it takes, in seconds, if not as long as the tests have it.
const SECONDS: &str = "ZONELAB_CHAOS_SECONDS";
/// The seconds of a night.
const HOUR: u32 = 3_600;

/// The steps of the tier.
pub(crate) fn steps() -> Vec<Step> {
    vec![tests()]
}

/// The same for an hour, on a new seed.
pub(crate) fn long() -> Vec<Step> {
    let mut tests = tests();
    if std::env::var_os(SECONDS).is_none() {
        tests.command.env(SECONDS, HOUR.to_string());
    }
    vec![tests]
}

/// The seed and what was counted are printed, whether it passes or fails.
fn tests() -> Step {
    let mut tests = named_test("everything at once", &["chaos"]);
    tests.command.args(["--", "--nocapture"]);
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_has_an_hour_of_it_and_both_print_what_was_counted() {
        let has_output = |step: &Step| step.command.get_args().any(|arg| arg == "--nocapture");
        assert!(has_output(&steps()[0]) && has_output(&long()[0]));
        let seconds = long()[0]
            .command
            .get_envs()
            .any(|(name, _)| name == SECONDS);
        assert!(seconds || std::env::var_os(SECONDS).is_some());
        assert!(
            steps()[0]
                .command
                .get_envs()
                .all(|(name, _)| name != SECONDS)
        );
    }
}
