//! `zonelab ftl format`.

use std::rc::Rc;

use serde_json::json;
use zonelab_config::units::fmt_size;
use zonelab_ftl::media::{Media, Zone, ZoneUse};
use zonelab_ftl::{Durable, FormatSettings, FtlSettings, Shape};
use zonelab_lab::device::ReportedZone;
use zonelab_nvme::zns::ZoneState;

use super::ground::Ground;
use super::{Said, bytes_of, failure, purposes_json, purposes_text, spare, uuid_text};
use crate::exit::Failure;
use crate::namespace::{self, Loss};

/// Options of `ftl format`.
#[derive(clap::Args)]
pub(super) struct FormatArgs {
    /// Data blocks beyond those that programs see, as a share of the latter: the more, the
    /// less has to be moved when blocks are written again. 1% to 1000%
    #[arg(long, value_name = "PERCENT", default_value = "7%", value_parser = share)]
    spare: f64,
    /// Zones that are kept out of that count: open ones, and those that must be free
    /// [default: as many as may be active, up to 16 and up to a quarter of the data zones]
    #[arg(long, value_name = "N")]
    reserved_zones: Option<u32>,
    /// Zones hold data, which may be lost
    #[arg(long)]
    overwrite: bool,
}

/// A share, as in 7%.
///
/// # Errors
/// It is none, or out of its range.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.parse().ok());
    number
        .filter(|percent: &f64| (1.0..=1000.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "a share is 1% to 1000%".to_owned())
}

pub(super) fn format(mut ground: Ground, args: &FormatArgs) -> Result<Said, Failure> {
    let end = run(&mut ground, args);
    ground.end(end)
}

fn run(ground: &mut Ground, args: &FormatArgs) -> Result<Said, Failure> {
    let mut uuid = [0; 16];
    getrandom::fill(&mut uuid).map_err(Failure::environment)?;
    let settings = FormatSettings {
        nsid: ground.nsid,
        spare: args.spare,
        reserved_zones: args.reserved_zones,
        uuid: u128::from_le_bytes(uuid),
    };
    let shape = Shape::new(ground.info(), &settings);
    let shape = shape.map_err(|error| failure(&ground.name, &error))?;
    // What could not be used afterwards is not emptied.
    let namespace = ground.info().namespace(ground.nsid);
    let limit = namespace.and_then(|of| of.zoned.as_ref()?.max_active);
    let usable = FtlSettings::default().check_active(limit);
    usable.map_err(|error| failure(&ground.name, &error))?;
    may_destroy(ground, &shape, args.overwrite)?;
    let uuid = settings.uuid;
    let shape = ground.ask(async move |io| Durable::format(&io, &settings, true).await)?;
    Ok(said(&shape, uuid))
}

/// Says what zones hold that are about to be reset.
///
/// # Errors
/// There is something, and nothing says that it may be lost.
fn may_destroy(ground: &mut Ground, shape: &Shape, overwrite: bool) -> Result<(), Failure> {
    let of_zones = shape.clone();
    let zones =
        ground.ask(async move |io| Media::new(&io, Rc::new(of_zones), true).report().await)?;
    let reported = |zone: &Zone| ReportedZone {
        state: match zone.state {
            // There is nothing in it that could be lost.
            ZoneUse::Empty | ZoneUse::Offline => ZoneState::EMPTY,
            ZoneUse::Open => ZoneState::IMPLICITLY_OPENED,
            ZoneUse::Closed => ZoneState::CLOSED,
            ZoneUse::Full => ZoneState::FULL,
            ZoneUse::ReadOnly => ZoneState::READ_ONLY,
        },
        written_lbas: zone.written.into(),
    };
    let reported: Vec<ReportedZone> = zones.iter().map(reported).collect();
    let nsid = ground.nsid;
    let namespace = ground.info().namespace(nsid);
    let loss = namespace.and_then(|of| Loss::of_zones(nsid, of, &reported, 0..shape.zones));
    namespace::may_lose(&ground.name, loss, overwrite)
}

fn said(shape: &Shape, uuid: u128) -> Said {
    let bytes = bytes_of(shape, shape.logical_blocks.into());
    let text = format!(
        "formatted: {blocks} blocks of {block_bytes} bytes ({size}), uuid {uuid}\n\
         spare: {spare:.1} %, and {reserved} reserved zones\n{zones}",
        blocks = shape.logical_blocks,
        block_bytes = shape.block_bytes,
        size = fmt_size(bytes),
        uuid = uuid_text(uuid),
        spare = 100.0 * spare(shape),
        reserved = shape.reserved_zones,
        zones = purposes_text(shape),
    );
    let json = json!({
        "schema": 1, "uuid": uuid_text(uuid), "blocks": shape.logical_blocks,
        "block_bytes": shape.block_bytes, "bytes": bytes, "spare": spare(shape),
        "reserved_zones": shape.reserved_zones, "zones": purposes_json(shape),
    });
    Said::done(text, json)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_in_percent() {
        assert_eq!(share("7%"), Ok(0.07));
        assert_eq!(share("28%"), Ok(0.28));
        assert_eq!(share("1000%"), Ok(10.0));
        for wrong in [
            "7", "0.07", "0%", "0.5%", "%", "", "NaN%", "-7%", "inf%", "1001%",
        ] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
