//! From what is on the drive to what is in memory.

use std::rc::Rc;
use std::sync::Arc;

use zonelab_host::notify::Notify;
use zonelab_host::tasks::Io;

use crate::FtlError;
use crate::blocks::{DataZone, LogicalBlock, PhysicalBlock};
use crate::core::Core;
use crate::durable::Durable;
use crate::frontier::Frontier;
use crate::map::ForwardMap;
use crate::media;
use crate::settings::{FormatSettings, FtlSettings};
use crate::shape::Shape;
use crate::upkeep::Upkeep;
use crate::zones::{Generation, ZoneUse};

/// What to begin with.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// With what is on the drive.
    Mount,
    /// With nothing: whatever is on the drive is gone.
    Format(FormatSettings),
}

/// Gets everything ready.
pub(crate) async fn mount(
    io: &Io,
    start: &Start,
    settings: &FtlSettings,
    bell: &Rc<Notify>,
) -> Result<(Arc<Core>, Rc<Upkeep>), FtlError> {
    let keeps_data = settings.keeps_data;
    let formatted = match start {
        Start::Mount => None,
        Start::Format(format) => Some(Durable::format(io, format, keeps_data).await?),
    };
    let (durable, map) = match formatted {
        Some(shape) if !keeps_data => {
            let map = ForwardMap::empty(shape.logical_blocks);
            (Durable::open_blank(io, shape).await?, map)
        }
        _ => Durable::open(io, settings.nsid).await?,
    };
    let shape = Shape::clone(durable.shape());
    let most_pending = durable.most_pending();
    let core = Arc::new(Core::new(
        &shape,
        settings,
        active_limit(io, &shape),
        most_pending,
        map,
    )?);
    let upkeep = Upkeep::new(io, &core, durable.clone(), Rc::clone(bell));
    let zones = durable.media().report().await?;
    upkeep.adopt(take_over(&core, &zones)?);
    Ok((core, upkeep))
}

/// Zones of the namespace that may be written at a time.
fn active_limit(io: &Io, shape: &Shape) -> Option<u32> {
    let zoned = io.info().namespace(shape.nsid)?.zoned?;
    match (zoned.max_active, zoned.max_open) {
        (Some(active), Some(open)) => Some(active.min(open)),
        (active, open) => active.or(open),
    }
}

/// What the collector finds to begin with.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Zones that can be read only.
    pub(crate) to_evacuate: Vec<DataZone>,
    /// A zone that is partly written.
    pub(crate) frontier: Option<Frontier>,
}

/// Says of each data zone what it is, from the report and the map.
fn take_over(core: &Core, zones: &[media::Zone]) -> Result<Found, FtlError> {
    let shape = &core.shape;
    let mut partial = partial_zones(shape, zones);
    let mut found: Vec<Option<&mut Frontier>> = Vec::new();
    found.resize_with(shape.data_zones() as usize, || None);
    for frontier in &mut partial {
        let index = frontier.zone.0 as usize;
        found[index] = Some(frontier);
    }
    for block in (0..shape.logical_blocks).map(LogicalBlock) {
        let Some(at) = core.changes.map.get(block) else {
            continue;
        };
        let (zone, offset) = shape.place_of(at);
        check_place(shape, zones, at)?;
        core.zones.add_valid(zone, 1);
        if let Some(frontier) = &mut found[zone.0 as usize] {
            frontier.holds[offset as usize] = block.0;
        }
    }
    let mut to_evacuate = Vec::new();
    for zone in core.zones.all() {
        match zones[shape.zone_of(zone) as usize].state {
            media::ZoneUse::Empty => core.zones.add_free(zone),
            media::ZoneUse::Full => core.zones.note_found_closed(zone),
            media::ZoneUse::Open | media::ZoneUse::Closed => {}
            media::ZoneUse::ReadOnly => {
                core.zones.set_state(zone, ZoneUse::Retired);
                to_evacuate.push(zone);
            }
            media::ZoneUse::Offline => core.zones.set_state(zone, ZoneUse::Retired),
        }
    }
    // The collector goes on where it has most room, so that it has as much as before.
    partial.sort_by_key(Frontier::left);
    let collectors = partial.pop().map(|mut frontier| {
        frontier.generation = Generation::MOVED;
        core.zones.note_open(frontier.zone, frontier.generation);
        frontier
    });
    for frontier in partial {
        core.add_partial(frontier);
    }
    // More than are written again are closed.
    let most = core.most_writers().min(core.reserve_for_queues());
    for mut frontier in core.partial_beyond(most as usize) {
        frontier.has_failed |= frontier.left() > 0;
        core.hand_in(frontier);
    }
    Ok(Found {
        to_evacuate,
        frontier: collectors,
    })
}

/// Data zones that are partly written, with nothing in them yet.
fn partial_zones(shape: &Shape, zones: &[media::Zone]) -> Vec<Frontier> {
    let data = (0..shape.data_zones()).map(DataZone);
    let partial = data.filter_map(|zone| {
        let reported = &zones[shape.zone_of(zone) as usize];
        reported.is_active().then(|| {
            let mut frontier = Frontier::new(zone, Generation::QUEUES, shape);
            frontier.next = reported.written.min(shape.data_blocks());
            frontier.footer_written = reported.written - frontier.next;
            frontier
        })
    });
    partial.collect()
}

/// Blocks are only where something has been written.
fn check_place(shape: &Shape, zones: &[media::Zone], at: PhysicalBlock) -> Result<(), FtlError> {
    let (zone, offset) = shape.place_of(at);
    let corrupt = |zone: u32| FtlError::Corrupt {
        zone,
        lba: shape.lba(zone, offset).0,
        what: "the map has a block here, and nothing is written",
    };
    if zone.0 >= shape.data_zones() {
        return Err(corrupt(shape.zones));
    }
    let on_drive = shape.zone_of(zone);
    let reported = zones
        .get(on_drive as usize)
        .ok_or_else(|| corrupt(on_drive))?;
    let is_offline = reported.state == media::ZoneUse::Offline;
    match offset < reported.written || is_offline {
        true => Ok(()),
        false => Err(corrupt(on_drive)),
    }
}
