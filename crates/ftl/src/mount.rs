//! From what is on the drive to what is in memory.

use std::rc::Rc;
use std::sync::Arc;

use zonelab_host::notify::Notify;
use zonelab_host::tasks::Io;

use crate::FtlError;
use crate::blocks::{DataZone, LogicalBlock};
use crate::census::Census;
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
    check_share(settings)?;
    let formatted = match start {
        Start::Mount => None,
        Start::Format(format) => {
            // Before anything is lost.
            settings.check_map_memory(Shape::new(io.info(), format)?.logical_blocks)?;
            Some(Durable::format(io, format, keeps_data).await?)
        }
    };
    let (durable, map, census) = match (formatted, settings.map_share) {
        (Some(shape), _) if !keeps_data => {
            let map = ForwardMap::empty(shape.logical_blocks);
            (Durable::open_blank(io, shape).await?, map, None)
        }
        (_, None) => {
            let (durable, map) = Durable::open_with(io, settings).await?;
            (durable, map, None)
        }
        (_, Some(share)) => {
            let (durable, map, census) = Durable::open_in_segments(io, settings, share).await?;
            (durable, map, Some(census))
        }
    };
    let shape = Shape::clone(durable.shape());
    let most_pending = durable.most_pending();
    let core = Arc::new(Core::new(
        &shape,
        settings,
        active_limit(io, &shape),
        (durable.uuid(), most_pending),
        map,
    )?);
    let upkeep = Upkeep::new(io, &core, durable.clone(), Rc::clone(bell));
    let zones = durable.media().report().await?;
    let census = match census {
        Some(census) => census,
        None => census_of(&core, &zones)?,
    };
    upkeep.adopt(take_over(&core, &zones, census));
    Ok((core, upkeep))
}

/// Whether a share of the map can be what is asked for.
fn check_share(settings: &FtlSettings) -> Result<(), FtlError> {
    match settings.map_share {
        Some(share) if !(share > 0.0 && share < 1.0) => Err(FtlError::setting(
            "map_share",
            share,
            "more than 0 and less than 1; without it all of the map is in memory",
        )),
        Some(share) if !settings.keeps_data => Err(FtlError::setting(
            "map_share",
            share,
            "nothing on a device that keeps no data: the rest of the map would be lost",
        )),
        _ => Ok(()),
    }
}

/// What a map that is in memory as a whole says of the data zones.
fn census_of(core: &Core, zones: &[media::Zone]) -> Result<Census, FtlError> {
    let mut census = Census::new(&core.shape, zones);
    for block in (0..core.shape.logical_blocks).map(LogicalBlock) {
        if let Some(at) = core.changes.map.get(block) {
            census.note(block, at)?;
        }
    }
    Ok(census)
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
fn take_over(core: &Core, zones: &[media::Zone], census: Census) -> Found {
    let shape = &core.shape;
    let mut partial = census.partial;
    for (zone, valid) in core.zones.all().zip(census.valid) {
        core.zones.add_valid(zone, valid);
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
    Found {
        to_evacuate,
        frontier: collectors,
    }
}
