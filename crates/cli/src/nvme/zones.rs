//! `zonelab nvme zns`.

use serde_json::{Value, json};
use zonelab_device::Buf;
use zonelab_driver::Controller as _;
use zonelab_driver::Namespace;
use zonelab_driver::tcp::Transfer;
use zonelab_nvme::command::{ZoneAppend, ZoneManagementSend};
use zonelab_nvme::identify::IdentifyNamespaceZns;
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::{ChangedZoneList, ZoneSendAction};

use super::fields::{Fields, pretty};
use super::length::LengthArgs;
use super::{Session, failure, io, number, number8, number32, out_of_range, refused, zone_report};
use crate::exit::Failure;

/// `nvme zns`.
#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Identify Controller of the zoned command set
    IdCtrl,
    /// Identify Namespace of the zoned command set
    IdNs,
    /// The zones with state and write pointer
    ReportZones(zone_report::ReportArgs),
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
    /// Give a zone its descriptor extension, which closes it
    SetZoneDesc(DescriptorArgs),
    /// Send any zone management action
    ZoneMgmtSend(SendArgs),
    /// Receive what any zone management action returns
    ZoneMgmtRecv(zone_report::ReceiveArgs),
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
    #[arg(long, short = 'a', alias = "select-all", conflicts_with_all = ["start_lba", "zone"])]
    all: bool,
}

/// Options of `nvme zns open-zone`.
#[derive(clap::Args)]
pub(super) struct OpenArgs {
    #[command(flatten)]
    which: ZoneArgs,
    /// With a random write area (ZRWA)
    #[arg(long, short = 'r', conflicts_with = "all")]
    zrwaa: bool,
}

/// Options of `nvme zns set-zone-desc`.
#[derive(clap::Args)]
pub(super) struct DescriptorArgs {
    #[command(flatten)]
    zone: ZonePlace,
    /// With a random write area (ZRWA)
    #[arg(long, short = 'r')]
    zrwaa: bool,
    /// The extension, behind which there are zeroes; - is standard input
    #[arg(long, value_name = "FILE", default_value = "-")]
    data: String,
}

/// Options of `nvme zns zone-mgmt-send`.
#[derive(clap::Args)]
pub(super) struct SendArgs {
    #[command(flatten)]
    which: ZoneArgs,
    /// Zone send action: 1 close, 2 finish, 3 open, 4 reset, 5 offline, 0x10 set the descriptor
    /// extension, 0x11 flush the random write area
    #[arg(long, short = 'z', value_parser = number8)]
    zsa: u8,
    /// Action specific option, as that a zone gets a random write area
    #[arg(long)]
    zsaso: bool,
    /// Bytes of the data that go to the drive [default: all]
    #[arg(long, short = 'l', value_parser = number32, requires = "data")]
    data_len: Option<u32>,
    /// The data that goes to the drive; - is standard input
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
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
pub(super) struct ZonePlace {
    /// First block of the zone
    #[arg(long, short = 's', alias = "zslba", value_parser = number)]
    start_lba: Option<u64>,
    /// Number of the zone; the first is 0
    #[arg(long, value_parser = number, conflicts_with = "start_lba")]
    zone: Option<u64>,
}

/// Options of `nvme zns zone-append`.
#[derive(clap::Args)]
pub(super) struct AppendArgs {
    #[command(flatten)]
    zone: ZonePlace,
    /// The data: whole blocks; - is standard input
    #[arg(long, value_name = "FILE", default_value = "-")]
    data: String,
    #[command(flatten)]
    length: LengthArgs,
}

pub(super) fn zones(session: &mut Session, command: &Command) -> Result<String, Failure> {
    let send = |session: &mut Session, args, action, name| send(session, args, action, name);
    match command {
        Command::IdCtrl => controller(session),
        Command::IdNs => namespace(session),
        Command::ReportZones(args) => zone_report::report(session, args),
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
        Command::SetZoneDesc(args) => set_descriptor(session, args),
        Command::ZoneMgmtSend(args) => any(session, args),
        Command::ZoneMgmtRecv(args) => zone_report::any(session, args),
        Command::ZrwaFlushZone(args) => flush(session, args),
        Command::ChangedZoneList => changed(session),
    }
}

/// The namespace with its zoned structure.
pub(super) fn zoned(session: &Session) -> Result<(&Namespace, &IdentifyNamespaceZns), Failure> {
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
pub(super) fn start_of(session: &Session, place: &ZonePlace) -> Result<Option<u64>, Failure> {
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

/// The first block of the zone that must be named, or whatever it is of all of them.
fn slba_of(session: &Session, args: &ZoneArgs) -> Result<u64, Failure> {
    let start = start_of(session, &args.zone)?;
    let missing = || Failure::usage("which zone? Give --start-lba, --zone or --all".to_owned());
    match args.all {
        true => Ok(0),
        false => start.ok_or_else(missing),
    }
}

fn send_with(
    session: &mut Session,
    args: &ZoneArgs,
    action: ZoneSendAction,
    name: &'static str,
    zsaso: bool,
) -> Result<String, Failure> {
    let command = ZoneManagementSend {
        select_all: args.all,
        zsaso,
        ..ZoneManagementSend::new(session.nsid()?, slba_of(session, args)?, action)
    };
    carry_out(session, name, command, Transfer::None)
}

/// Sends a zone management command that must succeed, and says so.
fn carry_out(
    session: &mut Session,
    name: &'static str,
    command: ZoneManagementSend,
    transfer: Transfer,
) -> Result<String, Failure> {
    session.io(name, command.to_entry(), transfer)?;
    let (slba, all, nsid) = (command.slba, command.select_all, command.nsid);
    Ok(match session.json {
        true => pretty(&json!({ "command": name, "slba": slba, "all": all, "nsid": nsid })),
        false => {
            format!(
                "{name}: Success, action:{:#x} zone:{slba:#x} all:{} nsid:{nsid}\n",
                command.zsa.0,
                u8::from(all)
            )
        }
    })
}

fn set_descriptor(session: &mut Session, args: &DescriptorArgs) -> Result<String, Failure> {
    let (namespace, _) = zoned(session)?;
    let (nsid, bytes) = (namespace.nsid, namespace.zone_extension_bytes() as usize);
    if bytes == 0 {
        return Err(refused(format!(
            "zones of namespace {nsid} have no descriptor extensions (ZDES)"
        )));
    }
    let start = start_of(session, &args.zone)?;
    let missing = || Failure::usage("which zone? Give --start-lba or --zone".to_owned());
    let command = ZoneManagementSend {
        zsaso: args.zrwaa,
        ..ZoneManagementSend::new(
            nsid,
            start.ok_or_else(missing)?,
            ZoneSendAction::SET_DESCRIPTOR_EXTENSION,
        )
    };
    let mut data = io::bytes_of(&args.data, bytes as u64)?;
    if data.len() > bytes {
        return Err(Failure::input(anyhow::anyhow!(
            "{}: a descriptor extension of this drive has {bytes} bytes at most",
            args.data
        )));
    }
    data.resize(bytes, 0);
    let transfer = Transfer::ToController(Buf::from(data));
    carry_out(session, "zns-set-zone-desc", command, transfer)
}

/// Any zone management action.
fn any(session: &mut Session, args: &SendArgs) -> Result<String, Failure> {
    let command = ZoneManagementSend {
        select_all: args.which.all,
        zsaso: args.zsaso,
        ..ZoneManagementSend::new(
            session.nsid()?,
            slba_of(session, &args.which)?,
            ZoneSendAction(args.zsa),
        )
    };
    let transfer = match &args.data {
        None => Transfer::None,
        Some(path) => {
            let most = session.controller.info().max_transfer_bytes;
            let mut data = io::bytes_of(path, most.into())?;
            let len = args.data_len.map_or(data.len(), |len| len as usize);
            if len > most as usize {
                return Err(Failure::usage(format!(
                    "{len} bytes are more than the drive moves with one command: {most} (MDTS)"
                )));
            }
            data.resize(len, 0);
            Transfer::ToController(Buf::from(data))
        }
    };
    carry_out(session, "zns-zone-mgmt-send", command, transfer)
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
    let (data, blocks) = io::blocks_of(session, &args.data, &args.length)?;
    let entry = ZoneAppend::new(session.nsid()?, zslba, blocks);
    let entry = entry.to_entry().map_err(out_of_range)?;
    let reply = session.io("Zone Append", entry, Transfer::ToController(data))?;
    let lba = reply.entry.result();
    Ok(match session.json {
        true => pretty(&json!({ "command": "zone-append", "lba": lba, "blocks": blocks })),
        false => format!("Success appended data to LBA {lba:#x}\n"),
    })
}
