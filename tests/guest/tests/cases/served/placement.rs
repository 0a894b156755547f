//! Flexible data placement as nvme-cli has it.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use zonelab_guest_tests::Guest;
use zonelab_guest_tests::drive::{namespace, refused};

use super::Served;
use crate::ServedCase;

pub(crate) const CASES: &[(&str, ServedCase)] = &[("served::placement", placement)];

/// All of the drive, with three persistently isolated handles.
const HANDLES: &str = "namespaces=[{kind=\"conventional\", zones=64, spare_zones=7, \
                       reclaim_unit_handles=3, isolation=\"persistently\"}]";
/// Blocks of a reclaim unit.
const UNIT: u64 = (16 << 20) / 4096;

/// What `nvme fdp` prints of the endurance group.
fn fdp(guest: &mut Guest, what: &str) -> Result<Value> {
    let text = guest.ok(&format!("nvme fdp {what} -o json"))?;
    serde_json::from_str(&text).with_context(|| format!("nvme fdp {what} printed\n{text}"))
}

/// Handle, identifier and room of each handle.
fn status(guest: &mut Guest, device: &str) -> Result<Vec<(u64, u64, u64)>> {
    let status = fdp(guest, &format!("status {device} -n 1"))?;
    let all = status["ruhss"].as_array().context(status.to_string())?;
    let number = |of: &Value, key: &str| of[key].as_u64().with_context(|| status.to_string());
    all.iter()
        .map(|of| {
            ensure!(of["earutr"] == 0, "{status}");
            Ok((
                number(of, "pid")?,
                number(of, "ruhid")?,
                number(of, "ruamw")?,
            ))
        })
        .collect()
}

/// Configurations, usage, statistics, events and handles; writes with a directive.
fn placement(guest: &mut Guest) -> Result<()> {
    let served = Served::start_with(&["--set", HANDLES])?;
    let controller = served.connect(guest)?;
    let name = namespace(guest, &controller, 1)?;
    let block = format!("/dev/{name}");
    let generic = block.replace("nvme", "ng");

    let configs = fdp(guest, &format!("configs {generic} -e 1"))?;
    let config = &configs["configs"][0];
    let expected = json!({
        // Valid, with a volatile write cache.
        "fdpa": 0x90,
        "vss": 0,
        "nrg": 1,
        "nruh": 3,
        "nnss": 1,
        "runs": 16 << 20,
        "erutl": 0,
    });
    for (key, value) in expected.as_object().context("an object")? {
        ensure!(config[key] == *value, "{key}: {configs}");
    }
    let ruhs = json!([{"ruht": 2}, {"ruht": 2}, {"ruht": 2}]);
    // nvme-cli 2.3 leaves them out.
    let is_right = config["ruhs"].is_null() || config["ruhs"] == ruhs;
    ensure!(is_right, "{configs}");

    let usage = fdp(guest, &format!("usage {generic} -e 1"))?;
    let ruhus = json!([{"ruha": 1}, {"ruha": 1}, {"ruha": 1}]);
    ensure!(usage["ruhus"] == ruhus, "{usage}");

    let empty = [(0, 0, UNIT), (1, 1, UNIT), (2, 2, UNIT)];
    ensure!(status(guest, &generic)? == empty, "nothing is written yet");
    guest.ok("head -c 32768 /dev/urandom > /scratch/data")?;
    let write = |slba: u64, directive: &str| {
        format!("nvme write {generic} -s {slba} -c 7 -z 32768 -d /scratch/data {directive}")
    };
    guest.ok(&write(0, "-T 2 -S 1"))?;
    guest.ok(&write(8, "-T 2 -S 2"))?;
    guest.ok(&write(16, "-T 2 -S 1"))?;
    guest.ok(&write(24, ""))?;
    let seen = status(guest, &generic)?;
    let written = [(0, 0, UNIT - 8), (1, 1, UNIT - 16), (2, 2, UNIT - 8)];
    ensure!(seen == written, "{seen:?}");
    guest.ok(&format!("nvme flush {generic} -n 1"))?;
    let statistics = fdp(guest, &format!("stats {generic} -e 1"))?;
    // A number of 128 bits may be text.
    let bytes = |key: &str| -> Result<u64> {
        let value = &statistics[key];
        let number = value
            .as_u64()
            .or(value.as_str().and_then(|of| of.parse().ok()));
        number.with_context(|| statistics.to_string())
    };
    ensure!(bytes("hbmw")? >= 4 * 32_768, "{statistics}");
    ensure!(bytes("mbmw")? >= bytes("hbmw")?, "{statistics}");
    ensure!(bytes("mbe")? == 0, "{statistics}");

    guest.ok(&format!(
        "nvme fdp set-events {generic} -n 1 -p 1 -e --event-types=0x0"
    ))?;
    guest.ok(&format!("nvme fdp update {generic} -n 1 --pids=1"))?;
    let seen = status(guest, &generic)?;
    ensure!(seen[1] == (1, 1, UNIT), "{seen:?}");
    let events = fdp(guest, &format!("events {generic} -e 1 -E"))?;
    let of = events["events"].as_array().context(events.to_string())?;
    ensure!(of.len() == 1, "{events}");
    for (key, value) in [("type", 0), ("pid", 1), ("nsid", 1)] {
        ensure!(of[0][key] == value, "{key}: {events}");
    }
    let none = fdp(guest, &format!("events {generic} -e 1"))?;
    let of = none["events"].as_array();
    ensure!(of.is_none_or(Vec::is_empty), "{none}");
    // Invalid Field.
    refused(
        guest,
        &format!("nvme fdp update {generic} -n 1 --pids=3"),
        0x002,
    )?;
    refused(guest, &format!("nvme fdp stats {generic} -e 2"), 0x002)?;
    served.disconnect(guest)
}
