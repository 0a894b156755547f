//! Renderings of a made-up snapshot: many of everything, and no drive.

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use zonelab_device::Nanos;
use zonelab_live::metrics::{self, DIES, NAMESPACES, QUEUES};
use zonelab_live::snapshot::{Load, Namespace, Snapshot, Wear, Zone, ZoneKind, Zones};
use zonelab_live::state;
use zonelab_ssd::account::{BusyByCause, Cause};
use zonelab_target::controller::activity::{Operation, Tallies};

use super::exposition::read;

/// 100 dies, 20 namespaces of 2 zones, 30 queues; each counted once.
fn many() -> Snapshot {
    let mut once = Histogram::new(2).expect("two digits");
    once.record(1_500_000).expect("it grows");
    let mut tallies = Tallies::default();
    tallies[Operation::Read as usize].commands = 1;
    let namespace = |index: u32| Namespace {
        zones: 2 * index..2 * index + 2,
        is_zoned: index != 1,
        max_open: (index == 0).then_some(7),
        max_active: None,
        tallies,
    };
    let zone = |index: u32| Zone {
        kind: match index {
            2 | 3 => ZoneKind::Conventional,
            _ if index.is_multiple_of(2) => ZoneKind::Full,
            _ => ZoneKind::Empty,
        },
        written_lbas: u64::from(index.is_multiple_of(2)) * 10,
        erases: (index > 0).then_some((3, 2)),
    };
    let mut busy = BusyByCause::default();
    busy[Cause::HostRead as usize] = 1_500_000_000;
    busy[Cause::WriteErase as usize] = 1;
    Snapshot {
        profile: "a\"b\\c\nd".to_owned(),
        nqn: "nqn.x".to_owned(),
        uptime: Nanos(1_000_000_001),
        connections: Default::default(),
        controllers: 0,
        in_flight: 0,
        faults: 0,
        admin_commands: 0,
        namespaces: (0..20).map(namespace).collect(),
        elsewhere: Tallies::default(),
        latencies: vec![(Operation::ZoneReset, once.clone())],
        lateness: (0..30).map(|qid| (qid, once.clone())).collect(),
        totals: Default::default(),
        buffer: None,
        dies: vec![
            Load {
                busy_ns: busy,
                operations: [1; Cause::ALL.len()],
            };
            100
        ],
        channels: vec![busy; 2],
        zones: Zones {
            lba_bytes: 4096,
            size_lbas: 16,
            capacity_lbas: 10,
            erase_blocks: 2,
            all: (0..40).map(zone).collect(),
        },
        wear: Wear::of(&[0, 1, 2, 3]),
        layer: None,
    }
}

#[test]
fn series_beyond_the_stated_numbers_are_summed_up() {
    let (snapshot, samples) = (many(), read(&metrics::render(&many())));
    let labels = |name: &str, label: &str| -> Vec<String> {
        let own = samples.values.keys().filter(|(of, _)| of == name);
        let mut values: Vec<_> = own.map(|(_, labels)| labels[label].clone()).collect();
        values.dedup();
        values
    };
    assert_eq!(labels("zonelab_die_busy_seconds_total", "die"), ["all"]);
    let all = [("die", "all"), ("cause", "host-read")];
    let busy = samples.get("zonelab_die_busy_seconds_total", &all);
    assert_eq!(busy, Some(150.0));
    let one = [("channel", "1"), ("cause", "write-erase")];
    let busy = samples.get("zonelab_channel_busy_seconds_total", &one);
    assert_eq!(busy, Some(1e-9), "exact to the nanosecond");
    let rest = |name: &str, label, labels: &[(&str, &str)]| {
        let labels = [&[(label, "other")], labels].concat();
        samples.get(name, &labels)
    };
    let beyond = (snapshot.namespaces.len() - NAMESPACES) as f64;
    let reads = rest(
        "zonelab_commands_total",
        "namespace",
        &[("operation", "read")],
    );
    assert_eq!(reads, Some(beyond));
    let full = rest("zonelab_zones", "namespace", &[("state", "full")]);
    assert_eq!(full, Some(beyond));
    let late = rest("zonelab_response_lateness_seconds_count", "queue", &[]);
    assert_eq!(late, Some((snapshot.lateness.len() - QUEUES) as f64));
    assert!(snapshot.dies.len() > DIES);
}

#[test]
fn values_are_those_of_the_snapshot() {
    let samples = read(&metrics::render(&many()));
    let named = [("profile", "a\"b\\c\nd"), ("nqn", "nqn.x")];
    assert_eq!(samples.get("zonelab_drive_info", &named), Some(1.0));
    assert_eq!(
        samples.get("zonelab_uptime_seconds", &[]),
        Some(1.000_000_001)
    );
    let limits = |nsid| samples.get("zonelab_open_zones_limit", &[("namespace", nsid)]);
    assert_eq!(
        (limits("1"), limits("3")),
        (Some(7.0), None),
        "unlimited has no sample"
    );
    let open = |nsid| samples.get("zonelab_open_zones", &[("namespace", nsid)]);
    assert_eq!(
        (open("1"), open("2")),
        (Some(0.0), None),
        "a conventional one has none"
    );
    let bucket = |le| {
        let labels = [("operation", "zone_reset"), ("le", le)];
        samples.get("zonelab_command_duration_seconds_bucket", &labels)
    };
    assert_eq!((bucket("0.001"), bucket("0.002")), (Some(0.0), Some(1.0)));
    let wear =
        ["min", "mean", "max"].map(|of| samples.get(&format!("zonelab_block_erases_{of}"), &[]));
    assert_eq!(wear, [Some(0.0), Some(1.5), Some(3.0)]);
}

#[test]
fn the_state_has_runs_of_zones() {
    let state: Value = serde_json::from_str(&state::render(&many())).expect("JSON");
    assert_eq!(state["profile"], "a\"b\\c\nd");
    let states = state["zones"]["states"].as_str().expect("runs");
    assert!(states.starts_with("F1E1V2F1E1"), "{states}");
    assert_eq!(state["zones"]["erases"], json!([null, 1, 3, 39]));
    assert_eq!(state["zones"]["max_erases"], json!([null, 1, 2, 39]));
    assert_eq!(state["namespaces"][1]["is_zoned"], false);
    assert_eq!(
        state["namespaces"][0]["operations"],
        json!({ "read": { "commands": 1, "errors": 0, "bytes": 0 } })
    );
}
