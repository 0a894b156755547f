//! The state of a served drive as JSON.
//!
//! An object with `schema` 1; a change that a reader has to know of gets another
//! number. Counters begin when the server starts, so a reader takes differences.
//! Zones are arrays of runs, since most neighbours are alike:
//!
//! | key | is |
//! | --- | --- |
//! | `zones.states` | runs of states, a letter and how many zones: `"F12I1E35"` |
//! | `zones.written_lbas` | write pointers from the start of a zone: `[value, how many, ...]` |
//! | `zones.erases` | erasures of all blocks of a zone together, or null: the same |
//! | `zones.max_erases` | erasures of its block erased most often, or null: the same |
//! | `latencies.*`, `lateness.*` | histograms: `[value in ns, how many, ...]`, to 1 % |
//! | `layer` | the translation layer, or null; its counters begin with each mount |
//! | `dies.busy_ns`, `dies.operations`, `channels.busy_ns` | by resource, then by cause in the order of `causes` |

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use zonelab_ssd::account::Cause;
use zonelab_target::controller::activity::{Operation, Tallies};

use crate::layer::LayerState;
use crate::snapshot::{Snapshot, ZoneKind, Zones};

/// The version of what [`render`] gives.
pub const SCHEMA: u32 = 1;

/// The state as JSON.
#[must_use]
pub fn render(snapshot: &Snapshot) -> String {
    let of = &snapshot.connections;
    let totals = &snapshot.totals;
    let busy: Vec<_> = snapshot.dies.iter().map(|die| die.busy_ns).collect();
    let operations: Vec<_> = snapshot.dies.iter().map(|die| die.operations).collect();
    json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "profile": snapshot.profile,
        "nqn": snapshot.nqn,
        "uptime_ns": snapshot.uptime.0,
        "connections": {
            "open": of.open, "accepted": of.accepted,
            "turned_away": of.turned_away, "broken": of.broken,
        },
        "controllers": snapshot.controllers,
        "in_flight": snapshot.in_flight,
        "faults": snapshot.faults,
        "admin_commands": snapshot.admin_commands,
        "namespaces": namespaces(snapshot),
        "elsewhere": tallies(&snapshot.elsewhere),
        "latencies": histograms(snapshot.latencies.iter().map(|(of, h)| (of.name().to_owned(), h))),
        "lateness": histograms(snapshot.lateness.iter().map(|(qid, h)| (qid.to_string(), h))),
        "totals": {
            "host_read_bytes": totals.host_read_bytes,
            "host_written_bytes": totals.host_write_bytes,
            "host_programmed_bytes": totals.host_program_bytes,
            "finish_programmed_bytes": totals.fill_program_bytes,
            "collect_programmed_bytes": totals.collect_program_bytes,
            "fold_programmed_bytes": totals.fold_program_bytes,
            "write_amplification": totals.dlwa(),
            "erased_blocks": totals.erased_blocks,
            "resets": totals.resets,
            "finishes": totals.finishes,
            "implicit_closes": totals.implicit_closes,
        },
        "write_buffer": snapshot.buffer
            .map(|(fill, size)| json!({ "fill_bytes": fill, "size_bytes": size })),
        "causes": Cause::ALL.map(Cause::name),
        "dies": { "busy_ns": busy, "operations": operations },
        "channels": { "busy_ns": snapshot.channels },
        "wear": {
            "min": snapshot.wear.min, "mean": snapshot.wear.mean(),
            "max": snapshot.wear.max, "blocks": snapshot.wear.blocks,
        },
        "zones": zones(&snapshot.zones),
        "layer": snapshot.layer.as_ref().map(layer),
    })
    .to_string()
}

fn namespaces(snapshot: &Snapshot) -> Vec<Value> {
    let all = snapshot.namespaces.iter().zip(1..);
    all.map(|(namespace, nsid)| {
        json!({
            "nsid": nsid,
            "first_zone": namespace.zones.start,
            "zones": namespace.zones.len(),
            "is_zoned": namespace.is_zoned,
            "max_open": namespace.max_open,
            "max_active": namespace.max_active,
            "operations": tallies(&namespace.tallies),
        })
    })
    .collect()
}

fn layer(state: &LayerState) -> Value {
    let of = &state.metrics;
    let bytes = |blocks: u64| blocks * u64::from(state.lba_bytes);
    json!({
        "is_well": state.is_well, "failure": state.failure, "mounts": state.mounts,
        "size_bytes": bytes(state.size_lbas),
        "data_zones": state.data_zones,
        "free_zones": of.free_zones, "active_zones": of.active_zones,
        "host_bytes": bytes(of.host_blocks), "moved_bytes": bytes(of.moved_blocks),
        "footer_bytes": bytes(of.footer_blocks), "journal_bytes": bytes(of.journal_blocks),
        "image_bytes": bytes(of.image_blocks), "trimmed_bytes": bytes(of.trimmed_blocks),
        "collected_zones": of.collected_zones, "commits": of.commits, "stalls": of.stalls,
        "unreadable_blocks": of.unreadable_blocks,
        "write_amplification": of.total_write_amplification(),
        "map_bytes": of.map_bytes, "map_hit_rate": of.map_hit_rate(),
    })
}

/// Operations that were used.
fn tallies(tallies: &Tallies) -> Map<String, Value> {
    let used = Operation::ALL.into_iter().zip(tallies);
    used.filter(|(_, tally)| tally.commands > 0)
        .map(|(operation, tally)| {
            let counts = json!({
                "commands": tally.commands, "errors": tally.errors, "bytes": tally.bytes,
            });
            (operation.name().to_owned(), counts)
        })
        .collect()
}

fn histograms<'a>(all: impl Iterator<Item = (String, &'a Histogram<u64>)>) -> Map<String, Value> {
    all.map(|(name, histogram)| {
        let bins = histogram.iter_recorded();
        let bins: Vec<u64> = bins
            .flat_map(|bin| [bin.value_iterated_to(), bin.count_at_value()])
            .collect();
        (name, bins.into())
    })
    .collect()
}

fn zones(zones: &Zones) -> Value {
    let kinds = runs(zones.all.iter().map(|zone| zone.kind));
    let states: String = kinds
        .into_iter()
        .map(|(kind, many): (ZoneKind, u64)| format!("{}{many}", kind.letter()))
        .collect();
    json!({
        "count": zones.all.len(),
        "lba_bytes": zones.lba_bytes,
        "size_lbas": zones.size_lbas,
        "capacity_lbas": zones.capacity_lbas,
        "erase_blocks": zones.erase_blocks,
        "states": states,
        "written_lbas": flat(zones.all.iter().map(|zone| Some(zone.written_lbas))),
        "erases": flat(zones.all.iter().map(|zone| zone.erases.map(|(sum, _)| sum))),
        "max_erases": flat(zones.all.iter().map(|zone| zone.erases.map(|(_, most)| most.into()))),
    })
}

/// Equal neighbours together, with how many there are.
fn runs<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<(T, u64)> {
    let mut runs: Vec<(T, u64)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((last, many)) if *last == value => *many += 1,
            _ => runs.push((value, 1)),
        }
    }
    runs
}

fn flat(values: impl Iterator<Item = Option<u64>>) -> Vec<Value> {
    let runs = runs(values).into_iter();
    runs.flat_map(|(value, many)| [value.map_or(Value::Null, Value::from), many.into()])
        .collect()
}
