//! The experiments and misfits that come with zonelab.

use std::collections::BTreeMap;

use zonelab_lab::experiment::Experiment;
use zonelab_lab::library;
use zonelab_lab::rows::Misfits;
use zonelab_lab::run;

use super::support::Tiny;

const IDS: [&str; 8] = ["CM", "C9a", "C9b", "C10a", "C10b", "C11a", "C11b", "C12"];

fn experiment(id: &str) -> Experiment {
    let text = library::text(id).expect("it is built in");
    Experiment::parse(&format!("{id}.toml"), text, &[], None).expect("it is sound")
}

#[test]
fn they_are_all_there_under_their_ids() {
    assert_eq!(library::ids().collect::<Vec<_>>(), IDS);
    for id in IDS {
        let experiment = experiment(id);
        assert_eq!(
            (experiment.id.as_str(), experiment.kind.as_str()),
            (id, "E")
        );
        assert!(!experiment.title.is_empty() && !experiment.source.is_empty());
    }
    assert_eq!(library::text("C10"), None);
}

#[test]
fn words_select_them() {
    assert_eq!(library::select("C"), IDS);
    assert_eq!(library::select("C10a"), ["C10a"]);
    assert_eq!(library::select("C10"), ["C10a", "C10b"]);
    for word in ["", "c", "C1", "Z", "C10A", "CC"] {
        assert!(library::select(word).is_empty(), "{word}");
    }
}

/// Every point, plain and quick, fits its drive.
#[test]
fn every_point_can_be_run() {
    let mut points_by_id = BTreeMap::new();
    for id in IDS {
        let text = library::text(id).unwrap();
        for settings in [Vec::new(), experiment(id).quick] {
            let points = run::points(id, text, &settings).expect("it is sound");
            for point in &points {
                point.check(&Tiny).unwrap_or_else(|error| panic!("{error}"));
            }
            points_by_id.insert(id, points.len());
        }
    }
    assert_eq!(points_by_id["CM"], 0);
    assert_eq!(points_by_id["C10a"], 49);
}

/// A quick run has the points of the plain one: it is shorter, not smaller.
#[test]
fn quick_runs_have_the_same_points() {
    for id in IDS {
        let text = library::text(id).unwrap();
        let names = |settings: &[zonelab_config::Override]| -> Vec<_> {
            let points = run::points(id, text, settings).expect("it is sound");
            points
                .iter()
                .map(|point| (point.series().to_owned(), point.x().text.clone()))
                .collect()
        };
        assert_eq!(names(&[]), names(&experiment(id).quick), "{id}");
    }
}

/// One drive and one host for all of them: nothing is fitted to one experiment.
#[test]
fn all_have_the_same_drive_and_host() {
    let first = experiment("C9a");
    for id in &IDS[2..] {
        let other = experiment(id);
        assert_eq!(other.profile, first.profile, "{id}");
        assert_eq!(other.host, first.host, "{id}");
    }
    // Settings choose a design. No time of the flash or the host is among them.
    for id in IDS {
        let experiment = experiment(id);
        let series = experiment.series.iter().flat_map(|series| &series.drive);
        for setting in experiment.drive.iter().chain(series) {
            let section = setting
                .key()
                .split('.')
                .next()
                .unwrap_or_default()
                .to_owned();
            let is_design = ["finish", "reset", "mapping"].contains(&section.as_str());
            assert!(is_design, "{id}: {}", setting.text());
        }
    }
}

/// Every entry names a row that there is, and says why in more than a word.
#[test]
fn misfits_name_rows_that_exist() {
    let misfits = Misfits::parse(library::MISFITS_FILE, library::MISFITS).expect("it is sound");
    assert!(!misfits.entries().is_empty());
    for entry in misfits.entries() {
        assert!(IDS.contains(&entry.id.as_str()), "{}", entry.id);
        let experiment = experiment(&entry.id);
        let name = format!(
            "{} {} {:?} {}",
            entry.id, entry.series, entry.x, entry.metric
        );
        // Rows of several jobs in a series are named after both.
        let series = experiment.series.iter().find(|series| {
            entry.series == series.name || entry.series.starts_with(&format!("{}: ", series.name))
        });
        assert!(series.is_some(), "{name}: no such series");
        if entry.metric == "m_inter" {
            let pairs = &experiment.interference;
            assert!(
                pairs.iter().any(|pair| pair.series == entry.series),
                "{name}"
            );
            continue;
        }
        let compared = experiment
            .compare
            .iter()
            .any(|c| c.metrics.contains(&entry.metric));
        assert!(compared, "{name}: not compared");
        if let Some(x) = entry.x {
            let values = &experiment.axis.values;
            assert!(
                values
                    .iter()
                    .any(|value| value.number.to_bits() == x.to_bits()),
                "{name}"
            );
        }
        assert!(
            entry.cause.len() > 20 && entry.evidence.len() > 20,
            "{name}"
        );
    }
}

/// A point that is only shown has a published value and a reason.
#[test]
fn informative_points_say_why() {
    for id in IDS {
        for compare in experiment(id).compare {
            for informative in compare.informative {
                assert!(informative.reason.len() > 20, "{id}");
            }
        }
    }
}
