//! A profile explained: every key, where its value is from, and what follows.

use zonelab_config::Place;
use zonelab_config::units::{fmt_percent, fmt_size};
use zonelab_device::Nanos;

use super::figures::about_mib_per_s;
use super::key::Key;
use super::write::{Effective, Text, effective};
use super::{Cell, Derived, Figures, Profile, names};
use crate::config::{
    ChannelArbitration, DriveConfig, NamespaceConfig, NamespaceKind, PageRegister, PlaneMode,
    StripeOrder,
};

/// One line of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Section of the file; `namespaces`, one row each; `derived`, `expected` or `advice` for what follows
    /// from it; empty for the top level.
    pub section: &'static str,
    /// Key, or the name of what follows.
    pub key: &'static str,
    /// Value with its unit.
    pub value: String,
    /// Where a value is from (`line 14`, `--set media.read=1us`, `default`), or how
    /// it comes about.
    pub note: String,
}

/// Lists every key that has an effect, then what follows from all of them
/// (`derived`), then what the drive can be expected to do (`expected`), then
/// what its user may want to know (`advice`).
#[must_use]
pub fn describe(profile: &Profile) -> Vec<Row> {
    let mut rows = about(profile);
    rows.extend(
        effective(&profile.config)
            .into_iter()
            .map(|of| row_of(profile, of)),
    );
    rows.extend(namespaces(profile));
    rows.extend(derived(&profile.config, &profile.derived));
    rows.extend(expected(&profile.derived.figures));
    rows.extend(advice(&profile.config, &profile.derived));
    rows
}

fn row(section: &'static str, key: &'static str, value: String, note: impl Into<String>) -> Row {
    Row {
        section,
        key,
        value,
        note: note.into(),
    }
}

fn about(profile: &Profile) -> Vec<Row> {
    let texts = [
        ("description", &profile.description),
        ("source", &profile.source),
    ];
    texts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(key, text)| row("", key, text.clone(), ""))
        .collect()
}

fn row_of(profile: &Profile, of: Effective) -> Row {
    let note = match profile.stated_at(of.key.path) {
        Some(Place::Line { line, .. }) => format!("line {line}"),
        Some(Place::Override(text)) => text.clone(),
        Some(Place::Elsewhere(elsewhere)) => elsewhere.written.clone(),
        Some(Place::File) | None => default_note(profile.cell, of.key),
    };
    let value = match of.value {
        Ok(Text::Quoted(value) | Text::Bare(value)) => value,
        Err(meaning) => meaning.to_owned(),
    };
    Row {
        section: of.section,
        key: of.key.name(),
        value,
        note,
    }
}

/// The namespaces, if the drive has several.
fn namespaces(profile: &Profile) -> Vec<Row> {
    let mut next = 0;
    let namespace = |(index, of): (usize, &NamespaceConfig)| {
        let first = next;
        next += of.zones;
        let limit = |limit: Option<u32>| limit.map_or("any number".to_owned(), |n| n.to_string());
        let (active, open) = (limit(of.max_active), limit(of.max_open));
        let (nsid, last) = (index + 1, next - 1);
        let value = match of.kind {
            NamespaceKind::Zoned => format!(
                "{nsid}: {} zones (those of the drive from {first} to {last}), {active} active, {open} open",
                of.zones
            ),
            NamespaceKind::Conventional(log) => {
                let (zones, spare_zones) = (of.zones, log.spare_zones);
                let placed = log.handles.map_or(String::new(), |of| {
                    let isolated = names::name_of(names::ISOLATION, &of.isolation);
                    format!(", {} reclaim unit handles, {isolated} isolated", of.count)
                });
                let unit = match log.mapping_unit_lbas {
                    0 | 1 => String::new(),
                    lbas => {
                        let bytes = u64::from(lbas) * u64::from(profile.config.lba_bytes);
                        format!(", mapped by {}", fmt_size(bytes))
                    }
                };
                let collected = names::name_of(names::COLLECTION, &log.collection);
                format!(
                    "{nsid}: conventional, on {zones} zones (those of the drive from {first} to \
                     {last}), {spare_zones} of them spare, {collected} collection{unit}{placed}"
                )
            }
        };
        let note = match profile.stated_at(&format!("namespaces.{index}.zones")) {
            Some(Place::Line { line, .. }) => format!("line {line}"),
            Some(Place::Override(text)) => text.clone(),
            Some(Place::Elsewhere(elsewhere)) => elsewhere.written.clone(),
            Some(Place::File) | None => String::new(),
        };
        row("namespaces", "namespace", value, note)
    };
    let namespaces = profile.config.namespaces.iter().enumerate();
    namespaces.map(namespace).collect()
}

fn default_note(cell: Option<Cell>, key: &Key) -> String {
    match cell {
        Some(cell) if key.value.is_typical() => {
            format!("typical of {}", names::name_of(names::CELL, &cell))
        }
        _ => "default".to_owned(),
    }
}

fn number(key: &'static str, value: u32, note: impl Into<String>) -> Row {
    row("derived", key, value.to_string(), note)
}

fn size(key: &'static str, bytes: u64, note: impl Into<String>) -> Row {
    row("derived", key, fmt_size(bytes), note)
}

/// What follows for one zone.
fn derived_of_zone(config: &DriveConfig, derived: &Derived) -> Vec<Row> {
    let (rows, width) = (derived.zone_blocks_per_plane, derived.planes_per_zone);
    let geometry = &config.geometry;
    let block = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
    let blocks = derived.zone_blocks;
    let share = format!("{} / {}", derived.planes, derived.zone_groups);
    vec![
        number("planes of a zone", width, share),
        size(
            "block",
            block,
            format!("{} pages", geometry.pages_per_block),
        ),
        number("block rows of a zone", rows, "its blocks on each plane"),
        number("blocks of a zone", blocks, format!("{rows} x {width}")),
        number("pages of a zone", derived.zone_pages, "up to its capacity"),
        size(
            "capacity of a zone",
            derived.zone_capacity_bytes,
            "can be written",
        ),
        size(
            "flash of a zone",
            derived.zone_flash_bytes,
            format!("{blocks} blocks"),
        ),
    ]
}

/// What follows for the drive.
fn derived(config: &DriveConfig, derived: &Derived) -> Vec<Row> {
    let (luns, planes) = (derived.luns, derived.planes);
    let count = config.zones.count;
    let spare = u32::try_from(derived.over_provisioning_ppm);
    let spare = spare.map_or_else(|_| "very much".to_owned(), fmt_percent);
    let mut rows = vec![
        number("dies", luns, "channels x ways x dies"),
        number(
            "planes",
            planes,
            format!("{luns} dies x {}", config.geometry.planes),
        ),
        number(
            "zone groups",
            derived.zone_groups,
            "groups of zones that share no die",
        ),
    ];
    rows.extend(derived_of_zone(config, derived));
    rows.extend([number(
        "physical zones",
        derived.physical_zones,
        format!("for {count} zones"),
    )]);
    rows.extend(elements(derived));
    rows.extend([
        number(
            "unused blocks",
            derived.unused_blocks_per_plane,
            "on each plane",
        ),
        size("raw flash", derived.raw_bytes, format!("{planes} planes")),
        size(
            "address space",
            derived.namespace_bytes,
            format!("{count} zones x zones.size"),
        ),
        size(
            "usable",
            derived.usable_bytes,
            format!("{count} zones x zones.capacity"),
        ),
        row(
            "derived",
            "over-provisioning",
            spare,
            "flash beyond what is usable",
        ),
    ]);
    rows
}

/// What follows for storage elements, if zones are assembled from them.
fn elements(derived: &Derived) -> Vec<Row> {
    let Some(of) = derived.elements else {
        return Vec::new();
    };
    let note = format!("{} for each of {}", of.per_zone, derived.physical_zones);
    let of_zone = format!("{} on each plane of a zone", of.per_plane);
    vec![
        row("derived", "storage elements", of.count.to_string(), note),
        number("elements of a zone", of.per_zone, of_zone),
        number("blocks of an element", of.blocks, "erased together"),
    ]
}

fn expected(figures: &Figures) -> Vec<Row> {
    let Figures {
        write_bytes_per_s,
        zone_write_bytes_per_s,
        read_bytes_per_s,
        read_iops,
        bus_bytes_per_s,
        zone_bus_bytes_per_s,
        page_read_ns,
        page_write_ns,
        zone_erase_ns,
        zone_finish_ns,
    } = figures;
    let limit = |ceiling: &super::Ceiling| format!("limited by {}", ceiling.limit.name());
    let bandwidth = |key, ceiling: &super::Ceiling| {
        row(
            "expected",
            key,
            about_mib_per_s(ceiling.per_s),
            limit(ceiling),
        )
    };
    let bus = |key, rate: &Option<u64>, note: &str| {
        let rate = rate.map_or("unlimited".to_owned(), about_mib_per_s);
        row("expected", key, rate, note)
    };
    let time = |key, time: &Nanos, note: &str| row("expected", key, time.to_string(), note);
    vec![
        bandwidth("write bandwidth", write_bytes_per_s),
        bandwidth("write bandwidth of a zone", zone_write_bytes_per_s),
        bandwidth("read bandwidth", read_bytes_per_s),
        row(
            "expected",
            "random reads",
            format!("{}/s", read_iops.per_s),
            limit(read_iops),
        ),
        bus("channel bandwidth", bus_bytes_per_s, "all channels"),
        bus(
            "channel bandwidth of a zone",
            zone_bus_bytes_per_s,
            "its channels",
        ),
        time("read of a page", page_read_ns, "on an idle die"),
        time("write of a page", page_write_ns, "on an idle die"),
        time("erasure of a zone", zone_erase_ns, "all its blocks"),
        time(
            "finish of an empty zone",
            zone_finish_ns,
            "without host I/O",
        ),
    ]
}

/// Things that are allowed, but surprise.
fn advice(config: &DriveConfig, derived: &Derived) -> Vec<Row> {
    let DriveConfig {
        geometry,
        zones,
        media,
        ..
    } = config;
    let mut rows = Vec::new();
    let mut advise = |key, text: String| rows.push(row("advice", key, text, ""));
    if let Some(why) = super::refused_by_linux(config) {
        let text = format!("{why}: Linux makes no block device, user-space drivers take it");
        advise("zones.size", text);
    }
    let slack = derived.zone_flash_bytes - derived.zone_capacity_bytes;
    if slack > 0 {
        let text = format!(
            "the last blocks of a zone leave {} of flash unused",
            fmt_size(slack)
        );
        advise("zones.capacity", text);
    }
    let one_lun = derived.planes_per_zone == geometry.planes;
    if media.planes == PlaneMode::MultiPlane
        && geometry.planes > 1
        && zones.stripe == StripeOrder::ChannelFirst
        && !one_lun
    {
        let text =
            "channel-first keeps pages of one die apart, so that none are programmed together";
        advise("zones.stripe", text.to_owned());
    }
    let waits_its_turn = media.page_register == PageRegister::Hold
        && media.arbitration == ChannelArbitration::Arrival
        && media.transfer_ns > Nanos::ZERO;
    if waits_its_turn {
        let text = "a page that was read keeps its die until the channel has carried those that \
                    arrived before: random reads stay far below what is expected above";
        advise("media.channel_arbitration", text.to_owned());
    }
    if derived.unused_blocks_per_plane > 0 {
        let text = format!(
            "{} blocks of each plane carry no zone",
            derived.unused_blocks_per_plane
        );
        advise("geometry.blocks_per_plane", text);
    }
    rows
}
