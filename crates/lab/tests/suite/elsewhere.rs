//! ZINC and softfinish on drives that they were not published on: what the
//! documentation says of the examples holds.

use rayon::ThreadPoolBuilder;
use zonelab_lab::compare;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::library;
use zonelab_lab::published::References;
use zonelab_lab::rows::Verdict;
use zonelab_lab::run::{self, RunOptions};

use super::support::Tiny;

/// Runs an example as `--quick` does: all its checks hold, and there are as
/// many of them as that.
fn checks_hold(id: &str, checks: usize) {
    let text = library::example(id).expect("it is built in");
    let quick = Experiment::parse(id, text, &[], None)
        .expect("it is sound")
        .quick
        .set;
    assert!(!quick.is_empty(), "it is run by a test");
    let experiment = Experiment::parse(id, text, &quick, None).expect("it is sound");
    assert_eq!(
        (experiment.id.as_str(), experiment.kind.as_str()),
        (id, "S")
    );
    let points = run::points(id, text, &quick).expect("it is sound");
    let options = RunOptions {
        conditions: &Conditions::default(),
        seed: 1,
        profiles: &Tiny,
        on_point: &|_, _| (),
        interrupted: &|| false,
        abandoned: &|| false,
    };
    let pool = ThreadPoolBuilder::new().num_threads(2).build();
    let results = pool
        .expect("threads")
        .install(|| run::run(&points, &options));
    let results: Vec<_> = results.expect("it runs").into_iter().flatten().collect();
    assert_eq!(results.len(), points.len());
    let references = References::builtin().expect("sound tables");
    let rows = compare::rows(&experiment, &results, &references).expect("sound look-ups");
    let judged: Vec<_> = rows
        .iter()
        .filter(|row| row.verdict() != Verdict::Info)
        .collect();
    assert_eq!((experiment.checks.len(), judged.len()), (checks, checks));
    for row in judged {
        assert_eq!(row.verdict(), Verdict::Ok, "{}: {}", row.series, row.ours);
    }
    let measured = rows.iter().filter(|row| row.verdict() == Verdict::Info);
    for row in measured {
        assert!(row.ours.is_finite(), "{} {}", row.series, row.metric);
    }
}

#[test]
fn zinc_with_synchronous_resets() {
    checks_hold("zinc-elsewhere-confznspp", 6);
}

#[test]
fn zinc_with_asynchronous_resets_of_small_zones() {
    checks_hold("zinc-elsewhere-small-zones", 9);
}

#[test]
fn softfinish_where_the_drive_fills() {
    checks_hold("softfinish-elsewhere-confznspp", 6);
}

#[test]
fn softfinish_where_the_drive_writes_nothing() {
    checks_hold("softfinish-elsewhere-small-zones", 5);
}
