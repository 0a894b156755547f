//! The experiments and misfits that come with zonelab.

use std::collections::{BTreeMap, BTreeSet};

use zonelab_device::Nanos;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::library;
use zonelab_lab::rows::Misfits;
use zonelab_lab::run::{self, Profiles as _};

use super::support::Tiny;

/// Of the ConfZNS++ emulator.
const EMULATOR: [&str; 8] = ["CM", "C9a", "C9b", "C10a", "C10b", "C11a", "C11b", "C12"];
/// Shapes that SYSTOR'24 shows of drives, without numbers.
const SHAPES: [&str; 2] = ["C1", "C1q"];
/// Of the ZN540, SYSTOR'24, by passthrough.
const DRIVE_C: [&str; 11] = [
    "C2a", "C2b", "C3a", "C3b", "C4", "C4a", "C4r", "C4w", "C5", "C7a", "C7b",
];
/// By a blocking ioctl alone.
const DRIVE_IOCTL: &str = "C7c";
/// Through the block layer.
const DRIVE_BLOCK: [&str; 2] = ["C8", "C8g"];
/// Of the ZN540, CLUSTER'23.
const DRIVE_Z: [&str; 15] = [
    "Z1", "Z2", "Z3", "Z4", "Z5", "Z6", "Z7", "Z8", "Z9", "Z10a", "Z10b", "Z11", "Z11s", "Z12",
    "Z13",
];

/// Of the Cosmos+ prototype, Electronics'23.
const COSMOS: [&str; 7] = ["P2", "P6", "P7", "P8", "P9b", "P10", "P11"];

/// Of SilentZNS, on the emulator.
const SILENT: [&str; 4] = ["S3a", "S4a", "S4b", "S4d"];

/// Key-value workloads on the ConfZNS++ emulator, SilentZNS.
const STORES: [&str; 2] = ["S3b", "S3d"];

/// Of the larger ZN540, thesis.
const DRIVE_V: [&str; 9] = ["V1", "V2", "V4", "V5", "V6", "V7", "V8", "V9", "V10"];

/// The same drive, with small zones.
const SMALL_V: [&str; 4] = ["Vga", "Vgb", "Vgc", "Vgd"];

fn all() -> impl Iterator<Item = &'static str> {
    EMULATOR
        .into_iter()
        .chain(SHAPES)
        .chain(DRIVE_C)
        .chain([DRIVE_IOCTL])
        .chain(DRIVE_BLOCK)
        .chain(DRIVE_Z)
        .chain(COSMOS)
        .chain(SILENT)
        .chain(STORES)
        .chain(DRIVE_V)
        .chain(SMALL_V)
}

fn experiment(id: &str) -> Experiment {
    let text = library::text(id).expect("it is built in");
    Experiment::parse(&format!("{id}.toml"), text, &[], None).expect("it is sound")
}

#[test]
fn they_are_all_there_under_their_ids() {
    let sorted = |ids: &mut dyn Iterator<Item = &'static str>| -> Vec<&str> {
        let mut ids: Vec<_> = ids.collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(sorted(&mut library::ids()), sorted(&mut all()));
    for id in all() {
        let experiment = experiment(id);
        let kind = match id {
            // What is published of C5 is that there is interference at all.
            "C5" | "P6" | "P7" | "P8" | "P9b" | "P10" | "S4a" | "S4d" => "S",
            "S3a" | "S4b" => "E",
            _ if SHAPES.contains(&id) => "S",
            _ if STORES.contains(&id) || DRIVE_V.contains(&id) => "S",
            _ if SMALL_V.contains(&id) => "S",
            _ if EMULATOR.contains(&id) || COSMOS.contains(&id) => "E",
            _ => "D",
        };
        assert_eq!(
            (experiment.id.as_str(), experiment.kind.as_str()),
            (id, kind)
        );
        assert!(!experiment.title.is_empty() && !experiment.source.is_empty());
    }
    assert_eq!(library::text("C10"), None);
}

#[test]
fn words_select_them() {
    let of_c = [
        &["CM"][..],
        &SHAPES,
        &DRIVE_C,
        &[DRIVE_IOCTL],
        &DRIVE_BLOCK,
        &EMULATOR[1..],
    ]
    .concat();
    assert_eq!(library::select("C"), of_c);
    assert_eq!(library::select("Z"), DRIVE_Z);
    assert_eq!(library::select("P"), COSMOS);
    assert_eq!(library::select("Z1"), ["Z1"]);
    assert_eq!(library::select("Z10"), ["Z10a", "Z10b"]);
    assert_eq!(library::select("C10a"), ["C10a"]);
    assert_eq!(library::select("C10"), ["C10a", "C10b"]);
    assert_eq!(library::select("C1"), SHAPES);
    for word in ["", "c", "K", "C10A", "CC"] {
        assert!(library::select(word).is_empty(), "{word}");
    }
}

/// Every point, plain and quick, fits its drive.
#[test]
fn every_point_can_be_run() {
    let mut points_by_id = BTreeMap::new();
    for id in all() {
        let text = library::text(id).unwrap();
        for settings in [Vec::new(), experiment(id).quick.set] {
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

/// A quick run of an emulator has the points of the plain one: it is shorter,
/// not smaller. One of a drive has fewer, and none of its own.
#[test]
fn quick_runs_have_no_other_points() {
    for id in all() {
        let text = library::text(id).unwrap();
        let names = |settings: &[zonelab_config::Override]| -> Vec<_> {
            let points = run::points(id, text, settings).expect("it is sound");
            points
                .iter()
                .map(|point| (point.series().to_owned(), point.x().text.clone()))
                .collect()
        };
        let (whole, quick) = (names(&[]), names(&experiment(id).quick.set));
        if EMULATOR.contains(&id) {
            assert_eq!(whole, quick, "{id}");
        }
        let series = |names: &[(String, String)]| -> BTreeSet<String> {
            names.iter().map(|(series, _)| series.clone()).collect()
        };
        // Those that `[quick] series` leaves out, it names.
        assert_eq!(series(&whole), series(&quick), "{id}: a series is left out");
        assert!(quick.iter().all(|point| whole.contains(point)), "{id}");
    }
}

/// One drive and one host for all of a paper: nothing is fitted to one
/// experiment. (Rows with 14 threads say how many cores there were.)
#[test]
fn all_have_the_same_drive_and_host() {
    for ids in [&EMULATOR[1..], &DRIVE_C, &DRIVE_BLOCK, &DRIVE_Z, &SILENT] {
        let first = experiment(ids[0]);
        for id in ids {
            let other = experiment(id);
            assert_eq!(other.profile, first.profile, "{id}");
            assert_eq!(other.host.stack.costs, first.host.stack.costs, "{id}");
        }
    }
    // Settings choose a design, or a format of the drive. No time of the flash
    // or the host is among them.
    for id in all() {
        if SMALL_V.contains(&id) {
            continue; // see below
        }
        let experiment = experiment(id);
        let series = experiment.series.iter().flat_map(|series| &series.drive);
        for setting in experiment.drive.iter().chain(series) {
            let section = setting
                .key()
                .split('.')
                .next()
                .unwrap_or_default()
                .to_owned();
            let designs = ["finish", "reset", "mapping", "namespace", "namespaces"];
            let limits = ["zones.max_open", "zones.max_active"];
            // The size of a zone is the choice of that prototype's owner.
            let is_size = COSMOS.contains(&id) && section == "zones";
            // A part of a drive, for a map of it that is small.
            let is_size = is_size || DRIVE_V.contains(&id) && setting.key() == "zones.count";
            // A drive without its SLC cache, of which nothing else is said then.
            let has_no_cache = section == "slc_cache"
                && (setting.text() == "slc_cache.mode=none" || setting.text().ends_with('='));
            let is_design = has_no_cache
                || designs.contains(&section.as_str())
                || limits.contains(&setting.key().as_str())
                || is_size;
            assert!(is_design, "{id}: {}", setting.text());
        }
    }
}

/// A drive with small zones takes as much less time for what it does to a zone as a whole as
/// the zone is smaller, and no time of it is another.
#[test]
fn the_drive_with_small_zones_is_the_same_in_small() {
    let whole = Tiny.load("zn540-2tb", &[]).expect("it is built in").config;
    for id in SMALL_V {
        let experiment = experiment(id);
        assert_eq!(experiment.profile, "zn540-2tb", "{id}");
        let small = Tiny.load(&experiment.profile, &experiment.drive);
        let small = small.expect("the settings fit").config;
        let factor = whole.zones.capacity_lbas as f64 / small.zones.capacity_lbas as f64;
        let is_scaled = |whole: Nanos, small: Nanos| {
            let ratio = whole.0 as f64 / small.0 as f64 / factor;
            (0.99..1.01).contains(&ratio)
        };
        assert!(
            is_scaled(whole.media.erase_ns, small.media.erase_ns),
            "{id}"
        );
        let (of_whole, of_small) = (whole.reset.bookkeeping, small.reset.bookkeeping);
        let (of_whole, of_small) = of_whole.zip(of_small).expect("both have it");
        for (whole, small) in [
            (of_whole.base_ns, of_small.base_ns),
            (of_whole.full_zone_ns, of_small.full_zone_ns),
            (of_whole.drain_pause_ns, of_small.drain_pause_ns),
            (of_whole.open_zone_ns, of_small.open_zone_ns),
        ] {
            assert!(is_scaled(whole, small), "{id}: {whole} and {small}");
        }
        // Nothing else differs but the zones and how many pages carry them.
        let mut same = small.clone();
        same.media.erase_ns = whole.media.erase_ns;
        same.reset.bookkeeping = whole.reset.bookkeeping;
        same.zones = whole.zones;
        same.geometry = whole.geometry;
        assert_eq!(same, whole, "{id}");
        assert_eq!(small.zones.max_active, whole.zones.max_active, "{id}");
        assert_eq!(
            (small.geometry.channels, small.geometry.page_bytes),
            (whole.geometry.channels, whole.geometry.page_bytes),
            "{id}"
        );
    }
}

/// Every entry names a row that there is, and says why in more than a word.
#[test]
fn misfits_name_rows_that_exist() {
    let misfits = Misfits::parse(library::MISFITS_FILE, library::MISFITS).expect("it is sound");
    assert!(!misfits.entries().is_empty());
    for entry in misfits.entries() {
        assert!(all().any(|id| id == entry.id), "{}", entry.id);
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
                    .any(|value| x.first <= value.number && value.number <= x.last),
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
    for id in all() {
        for compare in experiment(id).compare {
            for informative in compare.informative {
                assert!(informative.reason.len() > 20, "{id}");
            }
        }
    }
}
