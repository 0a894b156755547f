//! `zonelab nvme zns`.

use serde_json::{Value, json};
use zonelab_device::Buf;
use zonelab_driver::Controller as _;
use zonelab_driver::Namespace;
use zonelab_driver::tcp::Transfer;
use zonelab_lab::device::{state_name, zone_count_line, zone_line, zone_type_name};
use zonelab_nvme::command::{ZoneAppend, ZoneManagementReceive, ZoneManagementSend};
use zonelab_nvme::identify::IdentifyNamespaceZns;
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::{
    ChangedZoneList, ReportFilter, ReportHeader, ZoneDescriptor, ZoneSendAction,
};

use super::fields::{Fields, pretty};
use super::{Session, failure, io, number, out_of_range, refused};
use crate::exit::Failure;

/// Bytes of one zone report at most: longer ones come in pieces.
const REPORT_BYTES: u32 = 64 << 10;

/// `nvme zns`.
#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Identify Controller of the zoned command set
    IdCtrl,
    /// Identify Namespace of the zoned command set
    IdNs,
    /// The zones with state and write pointer
    ReportZones(ReportArgs),
    /// Open a zone explicitly
    OpenZone(OpenArgs),
    /// Close a zone
    CloseZone(ZoneArgs),
    /// Make a zone full
    FinishZone(ZoneArgs),
    /// Make a zone empty
    ResetZone(ZoneArgs),
    /// Take a read-only zone offline
    OfflineZone(ZoneArgs),
    /// Write at the write pointer of a zone, wherever that is
    ZoneAppend(AppendArgs),
    /// Commit blocks of a zone's random write area
    ZrwaFlushZone(FlushArgs),
    /// The zones that the drive changed by itself since this was last read
    ChangedZoneList,
}

/// Which zone.
#[derive(clap::Args)]
pub(super) struct ZoneArgs {
    #[command(flatten)]
    zone: ZonePlace,
    /// All zones in a state that the action selects
    #[arg(long, short = 'a', conflicts_with_all = ["start_lba", "zone"])]
    all: bool,
}

/// Options of `nvme zns open-zone`.
#[derive(clap::Args)]
pub(super) struct OpenArgs {
    #[command(flatten)]
    which: ZoneArgs,
    /// With a random write area (ZRWA)
    #[arg(long, conflicts_with = "all")]
    zrwaa: bool,
}

/// Options of `nvme zns zrwa-flush-zone`.
#[derive(clap::Args)]
pub(super) struct FlushArgs {
    /// Last block to commit
    #[arg(long, short = 'l', value_parser = number)]
    lba: u64,
}

/// A zone by address or by number.
#[derive(clap::Args)]
struct ZonePlace {
    /// First block of the zone
    #[arg(long, short = 's', value_parser = number)]
    start_lba: Option<u64>,
    /// Number of the zone; the first is 0
    #[arg(long, value_parser = number, conflicts_with = "start_lba")]
    zone: Option<u64>,
}

/// Options of `nvme zns report-zones`.
#[derive(clap::Args)]
pub(super) struct ReportArgs {
    #[command(flatten)]
    from: ZonePlace,
    /// Zones in the report at most
    #[arg(long, value_parser = number)]
    descs: Option<u64>,
    /// Only zones in this state
    #[arg(long, value_enum, default_value = "all")]
    state: StateFilter,
}

/// Zone states to select.
#[derive(Clone, Copy, clap::ValueEnum)]
enum StateFilter {
    All,
    Empty,
    ImplicitlyOpened,
    ExplicitlyOpened,
    Closed,
    Full,
    ReadOnly,
    Offline,
}

impl StateFilter {
    fn filter(self) -> ReportFilter {
        match self {
            Self::All => ReportFilter::ALL,
            Self::Empty => ReportFilter::EMPTY,
            Self::ImplicitlyOpened => ReportFilter::IMPLICITLY_OPENED,
            Self::ExplicitlyOpened => ReportFilter::EXPLICITLY_OPENED,
            Self::Closed => ReportFilter::CLOSED,
            Self::Full => ReportFilter::FULL,
            Self::ReadOnly => ReportFilter::READ_ONLY,
            Self::Offline => ReportFilter::OFFLINE,
        }
    }
}

/// Options of `nvme zns zone-append`.
#[derive(clap::Args)]
pub(super) struct AppendArgs {
    #[command(flatten)]
    zone: ZonePlace,
    /// The data: whole blocks; - is standard input
    #[arg(long, value_name = "FILE")]
    data: String,
}

pub(super) fn zones(session: &mut Session, command: &Command) -> Result<String, Failure> {
    let send = |session: &mut Session, args, action, name| send(session, args, action, name);
    match command {
        Command::IdCtrl => controller(session),
        Command::IdNs => namespace(session),
        Command::ReportZones(args) => report(session, args),
        Command::OpenZone(args) => {
            let (action, name) = (ZoneSendAction::OPEN, "zns-open-zone");
            send_with(session, &args.which, action, name, args.zrwaa)
        }
        Command::CloseZone(args) => send(session, args, ZoneSendAction::CLOSE, "zns-close-zone"),
        Command::FinishZone(args) => send(session, args, ZoneSendAction::FINISH, "zns-finish-zone"),
        Command::ResetZone(args) => send(session, args, ZoneSendAction::RESET, "zns-reset-zone"),
        Command::OfflineZone(args) => {
            send(session, args, ZoneSendAction::OFFLINE, "zns-offline-zone")
        }
        Command::ZoneAppend(args) => append(session, args),
        Command::ZrwaFlushZone(args) => flush(session, args),
        Command::ChangedZoneList => changed(session),
    }
}

/// The namespace with its zoned structure.
fn zoned(session: &Session) -> Result<(&Namespace, &IdentifyNamespaceZns), Failure> {
    let namespace = session.namespace()?;
    let zns = namespace.zns.as_ref();
    let message = || refused(format!("namespace {} is not zoned", namespace.nsid));
    Ok((namespace, zns.ok_or_else(message)?))
}

fn controller(session: &Session) -> Result<String, Failure> {
    let zoned = session.controller.identity().zoned.as_ref();
    let zoned = zoned.ok_or_else(|| refused("the drive has no zoned namespace".to_owned()))?;
    let mut fields = Fields::default();
    fields.number("zasl", zoned.zasl);
    Ok(fields.render(session.json, "NVMe ZNS Identify Controller"))
}

fn namespace(session: &Session) -> Result<String, Failure> {
    let (namespace, zns) = zoned(session)?;
    let mut fields = Fields::default();
    fields
        .hex("zoc", zns.zoc.bits())
        .hex("ozcs", zns.ozcs.bits())
        .hex("mar", zns.mar_z.get())
        .hex("mor", zns.mor_z.get())
        .number("rrl", zns.rrl.get())
        .number("frl", zns.frl.get())
        .number("rrl1", zns.rrl1.get())
        .number("rrl2", zns.rrl2.get())
        .number("rrl3", zns.rrl3.get())
        .number("frl1", zns.frl1.get())
        .number("frl2", zns.frl2.get())
        .number("frl3", zns.frl3.get())
        .hex("numzrwa", zns.numzrwa_z.get())
        .number("zrwafg", zns.zrwafg.get())
        .number("zrwasz", zns.zrwasz.get())
        .hex("zrwacap", zns.zrwacap.bits());
    let in_use = usize::from(namespace.format_index());
    let count = usize::from(namespace.nvm.nlbaf_z) + 1 + usize::from(namespace.nvm.nulbaf);
    let formats = || zns.lbafe.iter().enumerate().take(count);
    if session.json {
        let mut value = fields.to_json();
        let lbafe: Vec<Value> = formats()
            .map(|(_, lbafe)| json!({ "zsze": lbafe.zsze.get(), "zdes": lbafe.zdes }))
            .collect();
        if let Value::Object(object) = &mut value {
            object.insert("lbafe".to_owned(), lbafe.into());
        }
        return Ok(pretty(&value));
    }
    let title = format!("ZNS Command Set Identify Namespace {}", namespace.nsid);
    let mut text = fields.render(false, &title);
    for (index, lbafe) in formats() {
        let used = if index == in_use { " (in use)" } else { "" };
        text.push_str(&format!(
            "lbafe {index:>2}: zsze:{:#x} zdes:{}{used}\n",
            lbafe.zsze.get(),
            lbafe.zdes
        ));
    }
    Ok(text)
}

/// The first block of the zone that the command line names.
fn start_of(session: &Session, place: &ZonePlace) -> Result<Option<u64>, Failure> {
    let Some(zone) = place.zone else {
        return Ok(place.start_lba);
    };
    let (namespace, _) = zoned(session)?;
    let start = zone.checked_mul(namespace.zone_size_lbas().unwrap_or(0));
    let message = || Failure::usage(format!("--zone {zone} is beyond the end of any drive"));
    start.map(Some).ok_or_else(message)
}

fn send(
    session: &mut Session,
    args: &ZoneArgs,
    action: ZoneSendAction,
    name: &'static str,
) -> Result<String, Failure> {
    send_with(session, args, action, name, false)
}

fn send_with(
    session: &mut Session,
    args: &ZoneArgs,
    action: ZoneSendAction,
    name: &'static str,
    zsaso: bool,
) -> Result<String, Failure> {
    let start = start_of(session, &args.zone)?;
    let missing = || Failure::usage("which zone? Give --start-lba, --zone or --all".to_owned());
    let slba = match args.all {
        true => 0,
        false => start.ok_or_else(missing)?,
    };
    let entry = ZoneManagementSend {
        select_all: args.all,
        zsaso,
        ..ZoneManagementSend::new(session.nsid()?, slba, action)
    };
    session.io(name, entry.to_entry(), Transfer::None)?;
    let (nsid, all) = (session.nsid()?, args.all);
    Ok(match session.json {
        true => pretty(&json!({ "command": name, "slba": slba, "all": all, "nsid": nsid })),
        false => {
            format!(
                "{name}: Success, action:{:#x} zone:{slba:#x} all:{} nsid:{nsid}\n",
                action.0,
                u8::from(all)
            )
        }
    })
}

fn flush(session: &mut Session, args: &FlushArgs) -> Result<String, Failure> {
    let (nsid, lba, name) = (session.nsid()?, args.lba, "zns-zrwa-flush-zone");
    let entry = ZoneManagementSend::new(nsid, lba, ZoneSendAction::ZRWA_FLUSH);
    session.io(name, entry.to_entry(), Transfer::None)?;
    Ok(match session.json {
        true => pretty(&json!({ "command": name, "lba": lba, "nsid": nsid })),
        false => format!("{name}: Success, lba:{lba:#x} nsid:{nsid}\n"),
    })
}

/// Reading the page empties it.
fn changed(session: &mut Session) -> Result<String, Failure> {
    let nsid = zoned(session)?.0.nsid;
    let bytes = size_of::<ChangedZoneList>();
    let page = session
        .controller
        .log_page(nsid, LogPageId::CHANGED_ZONES, 0, bytes);
    let page = page.map_err(failure)?;
    let list = ChangedZoneList::read_from_bytes(&page);
    let list = list.map_err(|_| refused("the page is too short".to_owned()))?;
    let zones: Vec<u64> = list
        .zones()
        .unwrap_or_default()
        .iter()
        .map(|zid| zid.get())
        .collect();
    // More than the page holds.
    let has_more = list.nrzid.get() == ChangedZoneList::OVERFLOW;
    if session.json {
        return Ok(pretty(
            &json!({ "nrzid": list.nrzid.get(), "overflow": has_more, "zones": zones }),
        ));
    }
    let mut text = match has_more {
        true => "nrzid: more than the page holds; read the report of all zones\n".to_owned(),
        false => format!("nrzid: {}\n", zones.len()),
    };
    for slba in zones {
        text.push_str(&format!("SLBA: {slba:#x}\n"));
    }
    Ok(text)
}

fn append(session: &mut Session, args: &AppendArgs) -> Result<String, Failure> {
    let start = start_of(session, &args.zone)?;
    let missing = || Failure::usage("which zone? Give --start-lba or --zone".to_owned());
    let zslba = start.ok_or_else(missing)?;
    let (data, blocks) = io::blocks_of(session, &args.data)?;
    let entry = ZoneAppend::new(session.nsid()?, zslba, blocks);
    let entry = entry.to_entry().map_err(out_of_range)?;
    let reply = session.io("Zone Append", entry, Transfer::ToController(data))?;
    let lba = reply.entry.result();
    Ok(match session.json {
        true => pretty(&json!({ "command": "zone-append", "lba": lba, "blocks": blocks })),
        false => format!("Success appended data to LBA {lba:#x}\n"),
    })
}

/// All zones that are asked for, report by report.
fn report(session: &mut Session, args: &ReportArgs) -> Result<String, Failure> {
    let (namespace, _) = zoned(session)?;
    let zone_size = namespace.zone_size_lbas().unwrap_or(u64::MAX);
    let end = namespace.nvm.nsze.get();
    let mut slba = start_of(session, &args.from)?.unwrap_or(0);
    let most = args.descs.unwrap_or(u64::MAX);
    let mut zones: Vec<ZoneDescriptor> = Vec::new();
    let bytes = session
        .controller
        .info()
        .max_transfer_bytes
        .min(REPORT_BYTES) as usize;
    // The first report is made wherever it starts, so that the drive says what
    // is wrong with the start.
    loop {
        let receive = ZoneManagementReceive {
            filter: args.state.filter(),
            partial: true,
            ..ZoneManagementReceive::new(session.nsid()?, slba, bytes as u64 / 4)
        };
        let entry = receive.to_entry().map_err(out_of_range)?;
        let transfer = Transfer::ToHost(Buf::zeroed(bytes));
        let reply = session.io("Zone Management Receive", entry, transfer)?;
        let found = descriptors(&reply.data.unwrap_or_else(|| Buf::zeroed(0)));
        zones.extend(&found);
        let next = found
            .last()
            .and_then(|zone| zone.zslba.get().checked_add(zone_size));
        match next {
            Some(next) if next > slba && next < end && (zones.len() as u64) < most => slba = next,
            _ => break,
        }
    }
    zones.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    if session.json {
        let list: Vec<Value> = zones.iter().map(as_json).collect();
        return Ok(pretty(
            &json!({ "nr_zones": zones.len(), "zone_list": list }),
        ));
    }
    let lines = zones.iter().map(as_line);
    Ok(zone_count_line(zones.len()) + "\n" + &lines.collect::<String>())
}

/// The descriptors of a partial report.
fn descriptors(report: &[u8]) -> Vec<ZoneDescriptor> {
    let Ok((header, mut rest)) = ReportHeader::read_from_prefix(report) else {
        return Vec::new();
    };
    let mut zones = Vec::new();
    while (zones.len() as u64) < header.nr_zones.get()
        && let Ok((zone, later)) = ZoneDescriptor::read_from_prefix(rest)
    {
        zones.push(zone);
        rest = later;
    }
    zones
}

fn as_line(zone: &ZoneDescriptor) -> String {
    zone_line(zone) + "\n"
}

fn as_json(zone: &ZoneDescriptor) -> Value {
    json!({
        "slba": zone.zslba.get(), "wp": zone.wp.get(), "cap": zone.zcap.get(),
        "state": state_name(zone.zs.zs()), "type": zone_type_name(zone.zt.zt()), "attrs": zone.za.bits(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonelab_nvme::zerocopy::IntoBytes;
    use zonelab_nvme::zns::ZoneState;

    #[test]
    fn a_report_is_read_as_far_as_it_goes() {
        let mut report = vec![0; 64];
        report[0] = 3;
        let mut zone = ZoneDescriptor::sequential(ZoneState::IMPLICITLY_OPENED);
        zone.zslba = 0x8000.into();
        zone.wp = 0x8010.into();
        zone.zcap = 0x4000.into();
        report.extend(zone.as_bytes());
        // The count says three, the buffer has one and a half.
        report.extend([0; 32]);
        let zones = descriptors(&report);
        assert_eq!(zones, [zone]);
        let line = as_line(&zones[0]);
        assert!(
            line.starts_with("SLBA: 0x8000     WP: 0x8010     Cap: 0x4000"),
            "{line}"
        );
        assert!(
            line.contains("State: IMP_OPENED   Type: SEQWRITE_REQ"),
            "{line}"
        );
    }
}
