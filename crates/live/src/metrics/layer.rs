//! Metrics of the translation layer, of a server that has one.

use zonelab_ftl::Metrics;

use super::exposition::{Exposition, Kind};
use crate::layer::LayerState;

pub(super) fn layer(out: &mut Exposition, state: &LayerState) {
    let of = &state.metrics;
    map(out, of);
    let bytes = |blocks: u64| blocks * u64::from(state.lba_bytes);
    let mut single = |name, kind, help, value: u64| out.single(name, kind, help, value);
    single(
        "zonelab_ftl_up",
        Kind::Gauge,
        "1: the layer takes commands; 0: it is being mounted, or has failed.",
        state.is_well.into(),
    );
    single(
        "zonelab_ftl_size_bytes",
        Kind::Gauge,
        "Size of the conventional namespace.",
        bytes(state.size_lbas),
    );
    single(
        "zonelab_ftl_mounts_total",
        Kind::Counter,
        "Mounts: one, and one after each loss of power. The other counters begin with each.",
        state.mounts,
    );
    single(
        "zonelab_ftl_data_zones",
        Kind::Gauge,
        "Zones for data.",
        state.data_zones.into(),
    );
    single(
        "zonelab_ftl_free_zones",
        Kind::Gauge,
        "Zones for data that are free.",
        of.free_zones.into(),
    );
    single(
        "zonelab_ftl_active_zones",
        Kind::Gauge,
        "Zones for data that are being written.",
        of.active_zones.into(),
    );
    single(
        "zonelab_ftl_collected_zones_total",
        Kind::Counter,
        "Zones that the collector emptied.",
        of.collected_zones,
    );
    single(
        "zonelab_ftl_trimmed_bytes_total",
        Kind::Counter,
        "Bytes of blocks that hosts deallocated or wrote with zeroes.",
        bytes(of.trimmed_blocks),
    );
    single(
        "zonelab_ftl_commits_total",
        Kind::Counter,
        "Commits of the journal.",
        of.commits,
    );
    single(
        "zonelab_ftl_stalls_total",
        Kind::Counter,
        "Times that a queue waited for the collector.",
        of.stalls,
    );
    single(
        "zonelab_ftl_unreadable_blocks_total",
        Kind::Counter,
        "Blocks that the collector could not read, and left where they are.",
        of.unreadable_blocks,
    );
    let help = "Bytes that the layer wrote to the drive, by what they are.";
    let mut family = out.family("zonelab_ftl_written_bytes_total", Kind::Counter, help);
    for (purpose, blocks) in [
        ("host", of.host_blocks),
        ("collector", of.moved_blocks),
        ("footer", of.footer_blocks),
        ("journal", of.journal_blocks),
        ("image", of.image_blocks),
    ] {
        family.sample(&[("purpose", purpose)], bytes(blocks));
    }
    let help = "Bytes that the layer wrote per byte that hosts did; no sample before the first.";
    let mut family = out.family("zonelab_ftl_write_amplification_ratio", Kind::Gauge, help);
    if let Some(ratio) = of.total_write_amplification() {
        family.sample(&[], ratio);
    }
}

/// What the map takes, and how well that serves.
fn map(out: &mut Exposition, of: &Metrics) {
    out.single(
        "zonelab_ftl_map_memory_bytes",
        Kind::Gauge,
        "Memory that the map takes, with what changed since the last checkpoint if only a share \
         of it is in memory.",
        of.map_bytes,
    );
    let help = "Times that a piece of the map was needed, by whether it was in memory; none if \
                all of it is.";
    let mut family = out.family("zonelab_ftl_map_lookups_total", Kind::Counter, help);
    if of.map_hit_rate().is_some() {
        family.sample(&[("found", "memory")], of.map_hits);
        family.sample(&[("found", "drive")], of.map_misses);
    }
}
