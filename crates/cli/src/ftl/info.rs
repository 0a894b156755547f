//! `zonelab ftl info`.

use serde_json::{Value, json};
use zonelab_config::units::fmt_size;
use zonelab_ftl::format::VERSION;
use zonelab_ftl::media::ZoneUse;
use zonelab_ftl::{Durable, ImageSlot, Look};

use super::ground::Ground;
use super::{Said, bytes_of, purposes_json, purposes_text, spare, uuid_text};
use crate::exit::Failure;

pub(super) fn info(mut ground: Ground) -> Result<Said, Failure> {
    let nsid = ground.nsid;
    let look = ground.ask(async move |io| Durable::look(&io, nsid).await);
    let look = ground.end(look)?;
    let data = DataZones::of(&look);
    Ok(Said::done(text(&look, &data), as_json(&look, &data)))
}

/// Data zones, counted by what they are to the layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DataZones {
    free: u32,
    open: u32,
    closed: u32,
    retired: u32,
    /// Blocks that the map knows.
    valid: u64,
    /// Data blocks that are written.
    written: u64,
}

impl DataZones {
    fn of(look: &Look) -> Self {
        let first = look.shape.first_data_zone() as usize;
        let mut counted = Self::default();
        for (zone, valid) in look.reported.iter().skip(first).zip(look.valid_blocks()) {
            let count = match zone.state {
                ZoneUse::Empty => &mut counted.free,
                ZoneUse::Open | ZoneUse::Closed => &mut counted.open,
                ZoneUse::Full => &mut counted.closed,
                ZoneUse::ReadOnly | ZoneUse::Offline => &mut counted.retired,
            };
            *count += 1;
            counted.valid += u64::from(valid);
            counted.written += u64::from(zone.written.min(look.shape.data_blocks()));
        }
        counted
    }

    /// Written blocks that hold nothing any more, as a share of those written.
    fn garbage(&self) -> f64 {
        match self.written {
            0 => 0.0,
            written => 1.0 - (self.valid as f64 / written as f64).min(1.0),
        }
    }
}

pub(super) const fn slot_name(slot: ImageSlot) -> &'static str {
    match slot {
        ImageSlot::A => "A",
        ImageSlot::B => "B",
    }
}

fn text(look: &Look, data: &DataZones) -> String {
    let (shape, facts) = (&look.shape, &look.facts);
    let used = facts.journal_total_blocks - facts.journal_room_blocks;
    let read = facts.read;
    let percent = |share: f64| 100.0 * share;
    format!(
        "\
version     {VERSION}, uuid {uuid}
size        {blocks} blocks of {block_bytes} bytes ({size})
spare       {spare:.1} %, and {reserved} reserved zones
epoch       {epoch}: mounts since the format, and failed writes of the journal
anchor      {anchor}, in zone {anchor_zone}
checkpoint  {checkpoint}, image {slot} of {image} blocks
journal     {used} of {total} blocks used; changes from block {start} to {next} are repeated
data zones  {free} free, {open} open, {closed} closed, {retired} retired
blocks      {valid} valid, {written} written: {garbage:.1} % garbage
recovery    a mount reads {reads} blocks: {anchors} of anchors, {of_image} of the image, {of_journal} of the journal
{zones}",
        uuid = uuid_text(facts.uuid),
        blocks = shape.logical_blocks,
        block_bytes = shape.block_bytes,
        size = fmt_size(bytes_of(shape, shape.logical_blocks.into())),
        spare = percent(spare(shape)),
        reserved = shape.reserved_zones,
        epoch = facts.epoch,
        anchor = facts.anchor_sequence,
        anchor_zone = look.anchor_zone,
        checkpoint = facts.checkpoint,
        slot = slot_name(facts.image_slot),
        image = facts.image_blocks,
        total = facts.journal_total_blocks,
        start = facts.journal_start,
        next = facts.journal_next,
        free = data.free,
        open = data.open,
        closed = data.closed,
        retired = data.retired,
        valid = data.valid,
        written = data.written,
        garbage = percent(data.garbage()),
        reads = read.anchors + read.image + read.journal,
        anchors = read.anchors,
        of_image = read.image,
        of_journal = read.journal,
        zones = purposes_text(shape),
    )
}

fn as_json(look: &Look, data: &DataZones) -> Value {
    let (shape, facts) = (&look.shape, &look.facts);
    json!({
        "schema": 1, "version": VERSION, "uuid": uuid_text(facts.uuid),
        "blocks": shape.logical_blocks, "block_bytes": shape.block_bytes,
        "bytes": bytes_of(shape, shape.logical_blocks.into()),
        "spare": spare(shape), "reserved_zones": shape.reserved_zones,
        "epoch": facts.epoch,
        "anchor": { "sequence": facts.anchor_sequence, "zone": look.anchor_zone },
        "checkpoint": {
            "number": facts.checkpoint, "image": slot_name(facts.image_slot),
            "blocks": facts.image_blocks,
        },
        "journal": {
            "start": facts.journal_start, "next": facts.journal_next,
            "room_blocks": facts.journal_room_blocks,
            "total_blocks": facts.journal_total_blocks,
            "dead_zones": facts.dead_journal_zones,
        },
        "data_zones": {
            "free": data.free, "open": data.open, "closed": data.closed,
            "retired": data.retired,
        },
        "valid_blocks": data.valid, "written_blocks": data.written,
        "garbage": data.garbage(),
        "recovery_reads": {
            "anchors": facts.read.anchors, "image": facts.read.image,
            "journal": facts.read.journal,
        },
        "zones": purposes_json(shape),
    })
}
