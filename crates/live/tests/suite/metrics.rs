//! `/metrics`: well formed, and what happened.

use zonelab_driver::IoQueue as _;
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

use super::drive::{BLOCK, CAPACITY, NQN, Served, ZONE, small};
use super::exposition::{Samples, read};

fn scrape(served: &Served) -> Samples {
    // A snapshot serves whoever asks within its time; what was done before is
    // in the first one that shows the commands.
    read(&served.get("/metrics"))
}

/// Scrapes until `commands` I/O commands show.
fn scrape_after(served: &Served, commands: f64) -> Samples {
    loop {
        let samples = scrape(served);
        if samples.sum("zonelab_commands_total") >= commands {
            return samples;
        }
    }
}

#[test]
fn what_hosts_do_is_counted() {
    let mut served = Served::start(&small());
    let before = scrape(&served);
    assert_eq!(
        before.get(
            "zonelab_drive_info",
            &[("profile", "confznspp"), ("nqn", NQN)]
        ),
        Some(1.0)
    );
    // The host has looked at the zones.
    let at_first = before.sum("zonelab_commands_total");
    assert_eq!(before.get("zonelab_connections", &[]), Some(2.0));
    assert_eq!(before.sum("zonelab_zones") as u64, 6);
    assert_eq!(before.get("zonelab_write_amplification_ratio", &[]), None);

    assert_eq!(served.write(0, 8), Status::SUCCESS);
    assert_eq!(served.write(8, 8), Status::SUCCESS);
    assert_eq!(served.read(0, 4), Status::SUCCESS);
    assert_eq!(served.write(3, 1), Status::ZONE_INVALID_WRITE);
    assert_eq!(served.send(ZONE, ZoneSendAction::OPEN), Status::SUCCESS);
    assert_eq!(served.write(2 * ZONE, CAPACITY), Status::SUCCESS);
    assert_eq!(served.send(0, ZoneSendAction::RESET), Status::SUCCESS);
    let after = scrape_after(&served, at_first + 7.0);
    let of =
        |name: &str, operation| after.get(name, &[("namespace", "1"), ("operation", operation)]);
    assert_eq!(of("zonelab_commands_total", "write"), Some(4.0));
    assert_eq!(of("zonelab_command_errors_total", "write"), Some(1.0));
    assert_eq!(of("zonelab_command_errors_total", "read"), Some(0.0));
    let bytes = |blocks: u32| Some(f64::from(blocks * BLOCK as u32));
    assert_eq!(
        of("zonelab_command_bytes_total", "write"),
        bytes(16 + CAPACITY)
    );
    assert_eq!(of("zonelab_command_bytes_total", "read"), bytes(4));
    assert_eq!(
        after.get("zonelab_host_written_bytes_total", &[]),
        bytes(16 + CAPACITY)
    );
    let zones = |state| after.get("zonelab_zones", &[("namespace", "1"), ("state", state)]);
    let states = ["empty", "explicitly_opened", "full", "implicitly_opened"].map(zones);
    assert_eq!(states, [Some(4.0), Some(1.0), Some(1.0), Some(0.0)]);
    let of_namespace = |name: &str| after.get(name, &[("namespace", "1")]);
    let limits = [
        "open_zones",
        "open_zones_limit",
        "active_zones",
        "active_zones_limit",
    ]
    .map(|name| of_namespace(&format!("zonelab_{name}")));
    assert_eq!(limits, [Some(1.0), Some(3.0), Some(1.0), Some(4.0)]);
    assert_eq!(after.get("zonelab_zone_resets_total", &[]), Some(1.0));
    let duration = "zonelab_command_duration_seconds";
    let count = after.get(&format!("{duration}_count"), &[("operation", "write")]);
    assert_eq!(count, Some(4.0), "with the one that the drive refused");
    assert!(after.sum("zonelab_die_busy_seconds_total") > 0.0);
    let reads = |samples: &Samples| -> f64 {
        let own = samples.values.iter().filter(|((name, labels), _)| {
            name == "zonelab_flash_operations_total" && labels["cause"] == "host-read"
        });
        own.map(|(_, value)| value).sum()
    };
    assert!(
        (1.0..=4.0).contains(&reads(&after)),
        "at most a page for each block"
    );
    for (key, value) in before.monotone() {
        assert!(after.values[key] >= value, "{key:?} went back");
    }
    assert!(after.get("zonelab_uptime_seconds", &[]) > before.get("zonelab_uptime_seconds", &[]));
}

#[test]
fn the_number_of_series_does_not_grow_with_the_drive() {
    let series = |zones: u32, channels: u32| {
        let mut config = small();
        config.zones.count = zones;
        config.geometry.channels = channels;
        config.zones.channels = channels;
        config.geometry.blocks_per_plane = 64.max(zones * 16);
        scrape(&Served::start(&config)).values.len()
    };
    let few = series(6, 8);
    assert_eq!(series(600, 8), few, "none for each zone");
    assert!(series(6, 1024) < few, "one for all dies and channels");
}

#[test]
fn bad_namespaces_are_counted_once() {
    let mut served = Served::start(&small());
    for nsid in [0, 2, 77, u32::MAX] {
        let read = zonelab_nvme::command::Read::new(nsid, 0, 1);
        let entry = zonelab_nvme::command::IoCommand::Read(read)
            .to_entry()
            .expect("it fits");
        let room = zonelab_driver::tcp::Transfer::ToHost(zonelab_device::Buf::zeroed(BLOCK));
        let reply = served
            .queue
            .passthrough(entry, room)
            .expect("it is connected");
        assert!(!reply.entry.status.status().is_success());
    }
    let samples = scrape_after(&served, 5.0);
    let labels = [("namespace", "none"), ("operation", "read")];
    assert_eq!(
        samples.get("zonelab_command_errors_total", &labels),
        Some(4.0)
    );
}

/// The dashboard in `contrib` asks for nothing that there is not.
#[test]
fn the_dashboard_shows_metrics_that_there_are() {
    const SOURCES: [&str; 2] = [
        include_str!("../../src/metrics/mod.rs"),
        include_str!("../../src/metrics/layer.rs"),
    ];
    let text = include_str!("../../../../contrib/grafana.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.len() > 10);
    for panel in panels {
        for target in panel["targets"].as_array().expect("targets") {
            let expr = target["expr"].as_str().expect("an expression");
            let names: Vec<&str> = expr
                .split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
                .filter(|word| word.starts_with("zonelab_"))
                .collect();
            assert!(!names.is_empty(), "{expr}");
            for name in names {
                let name = format!("\"{}\"", name.trim_end_matches("_bucket"));
                let is_there = SOURCES.iter().any(|source| source.contains(&name));
                assert!(is_there, "{}: there is no {name}", panel["title"]);
            }
        }
    }
}
