//! `zonelab nvme fdp`: flexible data placement.

use serde_json::{Value, json};
use zonelab_device::Buf;
use zonelab_driver::tcp::Transfer;
use zonelab_nvme::command::{GetLogPage, IoManagementReceive, IoManagementSend};
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::placement::{
    ConfigurationDescriptor, ConfigurationsHeader, HandleDescriptor, HandleStatus,
    HandleStatusHeader, HandleType, HandleUsage, HandleUsageHeader, HandleUse, PlacementEvent,
    PlacementEventType, PlacementEventsHeader, PlacementStatistics,
};
use zonelab_nvme::zerocopy::FromBytes;

use super::fields::pretty;
use super::{ALL_NAMESPACES, Session, log, number16, out_of_range, refused};
use crate::exit::Failure;

/// Bytes of a page at most: 65536 reclaim unit handles with room to spare.
const PAGE_BYTES: usize = 1 << 20;

/// `nvme fdp`.
#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// The configurations of an endurance group: reclaim units and handles
    Configs(GroupArgs),
    /// Which reclaim unit handles are of a namespace, and who chose them
    Usage(GroupArgs),
    /// Bytes that hosts wrote, that went to the media, and that were erased
    Stats(GroupArgs),
    /// What happened, the oldest first
    Events(EventArgs),
    /// The reclaim unit handles of the namespace, and what fits into their reclaim units
    Status,
    /// Let reclaim unit handles go on to other reclaim units
    Update(UpdateArgs),
}

/// Which endurance group.
#[derive(clap::Args)]
pub(super) struct GroupArgs {
    /// Identifier of the endurance group
    #[arg(long, short = 'e', alias = "endgrp", value_parser = number16, default_value = "1")]
    endgrp_id: u16,
}

/// Options of `nvme fdp events`.
#[derive(clap::Args)]
pub(super) struct EventArgs {
    #[command(flatten)]
    group: GroupArgs,
    /// Events that hosts caused, rather than those of the controller
    #[arg(long, short = 'E')]
    host_events: bool,
}

/// Options of `nvme fdp update`.
#[derive(clap::Args)]
pub(super) struct UpdateArgs {
    /// Placement identifiers of the handles
    #[arg(long, short = 'p', value_delimiter = ',', value_parser = number16, required = true)]
    pids: Vec<u16>,
}

pub(super) fn fdp(session: &mut Session, command: &Command) -> Result<String, Failure> {
    match command {
        Command::Configs(args) => configurations(session, args),
        Command::Usage(args) => usage(session, args),
        Command::Stats(args) => statistics(session, args),
        Command::Events(args) => events(session, args),
        Command::Status => status(session),
        Command::Update(args) => update(session, args),
    }
}

/// The first bytes of a log page of an endurance group.
fn page(
    session: &mut Session,
    (group, lid): (&GroupArgs, LogPageId),
    lsp: u8,
    bytes: usize,
) -> Result<Buf, Failure> {
    let get = GetLogPage {
        lsi: group.endgrp_id,
        lsp,
        ..GetLogPage::new(ALL_NAMESPACES, lid, bytes as u64 / 4)
    };
    log::page(session, &get)
}

/// A structure that a page begins with, and what is behind it.
fn split<T: FromBytes>(page: &[u8]) -> Result<(T, &[u8]), Failure> {
    let split = T::read_from_prefix(page);
    split.map_err(|_| refused("the page is too short".to_owned()))
}

/// Bytes of a page of which its beginning says how long it is, in whole dwords.
fn bounded(bytes: usize) -> Result<usize, Failure> {
    let bytes = bytes.next_multiple_of(4);
    let what = || {
        refused(format!(
            "the page has {bytes} bytes: at most {PAGE_BYTES} are read"
        ))
    };
    (bytes <= PAGE_BYTES).then_some(bytes).ok_or_else(what)
}

fn configurations(session: &mut Session, args: &GroupArgs) -> Result<String, Failure> {
    let of = (args, LogPageId::FDP_CONFIGURATIONS);
    let head = page(session, of, 0, size_of::<ConfigurationsHeader>())?;
    let (header, _) = split::<ConfigurationsHeader>(&head)?;
    let size = bounded((header.size.get() as usize).max(head.len()))?;
    let whole = page(session, of, 0, size)?;
    let (_, mut rest) = split::<ConfigurationsHeader>(&whole)?;
    let mut found = Vec::new();
    for _ in 0..=header.numfdpc_z.get() {
        let (one, behind) = split::<ConfigurationDescriptor>(rest)?;
        let (mut handles, mut left) = (Vec::new(), behind);
        for _ in 0..one.nruh.get() {
            let (handle, behind) = split::<HandleDescriptor>(left)?;
            handles.push(handle.ruht);
            left = behind;
        }
        found.push((one, handles));
        // With what the vendor adds.
        let end = usize::from(one.dsze.get()).max(size_of::<ConfigurationDescriptor>());
        rest = rest.get(end..).unwrap_or_default();
    }
    if session.json {
        let configs: Vec<Value> = found.iter().map(configuration_json).collect();
        return Ok(pretty(&json!({ "configs": configs })));
    }
    let lines = found.iter().map(configuration_text);
    Ok(lines.collect::<String>())
}

fn configuration_json((of, handles): &(ConfigurationDescriptor, Vec<HandleType>)) -> Value {
    let handles: Vec<_> = handles
        .iter()
        .map(|ruht| json!({ "ruht": ruht.0 }))
        .collect();
    json!({
        "fdp_attributes": of.fdpa.bits(), "vendor_specific_size": of.vss,
        "nrg": of.nrg.get(), "nruh": of.nruh.get(), "maxpids": of.maxpids_z.get(),
        "nns": of.nnss.get(), "runs": of.runs.get(), "erutl": of.erutl.get(), "ruhs": handles,
    })
}

fn configuration_text((of, handles): &(ConfigurationDescriptor, Vec<HandleType>)) -> String {
    let mut text = format!(
        "FDP Attributes: {:#x}\nVendor Specific Size: {}\nNumber of Reclaim Groups: {}\n\
         Number of Reclaim Unit Handles: {}\nMax Placement Identifiers: {}\n\
         Number of Namespaces Supported: {}\nReclaim Unit Nominal Size: {}\n\
         Estimated Reclaim Unit Time Limit: {}\nReclaim Unit Handle List:\n",
        of.fdpa.bits(),
        of.vss,
        of.nrg.get(),
        of.nruh.get(),
        of.maxpids_z.get(),
        of.nnss.get(),
        of.runs.get(),
        of.erutl.get()
    );
    for (index, ruht) in handles.iter().enumerate() {
        let name = match *ruht {
            HandleType::INITIALLY_ISOLATED => "Initially Isolated",
            HandleType::PERSISTENTLY_ISOLATED => "Persistently Isolated",
            _ => "Unknown",
        };
        text.push_str(&format!("  [{index}]: {name}\n"));
    }
    text + "\n"
}

fn usage(session: &mut Session, args: &GroupArgs) -> Result<String, Failure> {
    let of = (args, LogPageId::RECLAIM_UNIT_HANDLE_USAGE);
    let head = page(session, of, 0, size_of::<HandleUsageHeader>())?;
    let (header, _) = split::<HandleUsageHeader>(&head)?;
    let count = usize::from(header.nruh.get());
    let bytes = bounded(head.len() + count * size_of::<HandleUsage>())?;
    let whole = page(session, of, 0, bytes)?;
    let (_, rest) = split::<HandleUsageHeader>(&whole)?;
    let handles = rest.chunks_exact(size_of::<HandleUsage>());
    let handles = handles.filter_map(|bytes| HandleUsage::read_from_bytes(bytes).ok());
    let handles: Vec<HandleUse> = handles.map(|usage| usage.ruha).collect();
    if session.json {
        let ruhus: Vec<_> = handles
            .iter()
            .map(|ruha| json!({ "ruha": ruha.0 }))
            .collect();
        return Ok(pretty(&json!({ "nruh": count, "ruhus": ruhus })));
    }
    let line = |(index, ruha): (usize, &HandleUse)| {
        let name = match *ruha {
            HandleUse::UNUSED => "Unused",
            HandleUse::HOST_SPECIFIED => "Host Specified",
            HandleUse::CONTROLLER_SPECIFIED => "Controller Specified",
            _ => "Unknown",
        };
        format!(
            "Reclaim Unit Handle {index} Attributes: {:#x} ({name})\n",
            ruha.0
        )
    };
    Ok(handles.iter().enumerate().map(line).collect())
}

fn statistics(session: &mut Session, args: &GroupArgs) -> Result<String, Failure> {
    let of = (args, LogPageId::FDP_STATISTICS);
    let data = page(session, of, 0, size_of::<PlacementStatistics>())?;
    let (log, _) = split::<PlacementStatistics>(&data)?;
    let (host, media, erased) = (log.hbmw.get(), log.mbmw.get(), log.mbe.get());
    Ok(match session.json {
        // As text where a number of JSON would not hold it.
        true => {
            let value = |bytes: u128| match u64::try_from(bytes) {
                Ok(bytes) => Value::from(bytes),
                Err(_) => Value::from(bytes.to_string()),
            };
            pretty(&json!({ "hbmw": value(host), "mbmw": value(media), "mbe": value(erased) }))
        }
        false => format!(
            "Host Bytes with Metadata Written (HBMW): {host}\n\
             Media Bytes with Metadata Written (MBMW): {media}\n\
             Media Bytes Erased (MBE): {erased}\n"
        ),
    })
}

fn events(session: &mut Session, args: &EventArgs) -> Result<String, Failure> {
    let of = (&args.group, LogPageId::FDP_EVENTS);
    let lsp = match args.host_events {
        true => PlacementEvent::HOST_EVENTS_LSP,
        false => 0,
    };
    let head = page(session, of, lsp, size_of::<PlacementEventsHeader>())?;
    let (header, _) = split::<PlacementEventsHeader>(&head)?;
    let count = header.nfdpe.get() as usize;
    let entries = count.saturating_mul(size_of::<PlacementEvent>());
    let bytes = bounded(head.len().saturating_add(entries).min(usize::MAX - 4))?;
    let whole = page(session, of, lsp, bytes)?;
    let (_, rest) = split::<PlacementEventsHeader>(&whole)?;
    let events = rest.chunks_exact(size_of::<PlacementEvent>());
    let events = events.filter_map(|bytes| PlacementEvent::read_from_bytes(bytes).ok());
    let events: Vec<PlacementEvent> = events.collect();
    if session.json {
        let events: Vec<Value> = events.iter().map(event_json).collect();
        return Ok(pretty(&json!({ "nevents": count, "events": events })));
    }
    let lines = events.iter().enumerate();
    Ok(lines
        .map(|(index, event)| event_text(index, event))
        .collect())
}

/// Milliseconds, of the lower 48 bits of a timestamp.
fn timestamp_ms(event: &PlacementEvent) -> u64 {
    event.timestamp.get() & ((1 << 48) - 1)
}

fn event_json(event: &PlacementEvent) -> Value {
    let flags = event.fdpef;
    json!({
        "type": event.event_type.0, "fdpef": flags.bits(),
        "pid": flags.piv().then_some(event.pid.get()),
        "timestamp_ms": timestamp_ms(event),
        "nsid": flags.nsidv().then_some(event.nsid.get()),
        "rgid": flags.lv().then_some(event.rgid.get()),
        "ruhid": flags.lv().then_some(event.ruhid),
    })
}

fn event_text(index: usize, event: &PlacementEvent) -> String {
    let name = match event.event_type {
        PlacementEventType::NOT_FULLY_WRITTEN => "Reclaim Unit Not Fully Written",
        PlacementEventType::TIME_LIMIT_EXCEEDED => "Reclaim Unit Active Time Limit Exceeded",
        PlacementEventType::RESET_MODIFIED_HANDLES => "Ctrl Reset Modified Reclaim Unit Handles",
        PlacementEventType::INVALID_PLACEMENT_IDENTIFIER => "Invalid Placement Identifier",
        PlacementEventType::MEDIA_REALLOCATED => "Media Reallocated",
        PlacementEventType::HANDLE_IMPLICITLY_MODIFIED => "Implicitly Modified Reclaim Unit Handle",
        _ => "Unknown",
    };
    let flags = event.fdpef;
    let mut text = format!(
        "Event[{index}]\n  Event Type: {:#x} ({name})\n  Event Timestamp: {} ms\n",
        event.event_type.0,
        timestamp_ms(event)
    );
    if flags.piv() {
        text.push_str(&format!(
            "  Placement Identifier (PID): {:#x}\n",
            event.pid.get()
        ));
    }
    if flags.nsidv() {
        text.push_str(&format!(
            "  Namespace Identifier (NSID): {}\n",
            event.nsid.get()
        ));
    }
    if flags.lv() {
        text.push_str(&format!(
            "  Reclaim Group Identifier: {}\n  Reclaim Unit Handle Identifier: {}\n",
            event.rgid.get(),
            event.ruhid
        ));
    }
    text + "\n"
}

fn status(session: &mut Session) -> Result<String, Failure> {
    let nsid = session.nsid()?;
    let mut receive = |bytes: usize| {
        let command = IoManagementReceive::handle_status(nsid, bytes as u64 / 4);
        let entry = command.to_entry().map_err(out_of_range)?;
        let transfer = Transfer::ToHost(Buf::zeroed(bytes));
        let reply = session.io("I/O Management Receive", entry, transfer)?;
        Ok::<Buf, Failure>(reply.data.unwrap_or_else(|| Buf::zeroed(0)))
    };
    let head = receive(size_of::<HandleStatusHeader>())?;
    let (header, _) = split::<HandleStatusHeader>(&head)?;
    let count = usize::from(header.nruhsd.get());
    let whole = receive(bounded(head.len() + count * size_of::<HandleStatus>())?)?;
    let (_, rest) = split::<HandleStatusHeader>(&whole)?;
    let handles = rest.chunks_exact(size_of::<HandleStatus>());
    let handles = handles.filter_map(|bytes| HandleStatus::read_from_bytes(bytes).ok());
    let handles: Vec<HandleStatus> = handles.collect();
    if session.json {
        let ruhss: Vec<_> = handles
            .iter()
            .map(|of| {
                json!({
                    "pid": of.pid.get(), "ruhid": of.ruhid.get(), "earutr": of.earutr.get(),
                    "ruamw": of.ruamw.get(),
                })
            })
            .collect();
        return Ok(pretty(&json!({ "nruhsd": count, "ruhss": ruhss })));
    }
    let line = |of: &HandleStatus| {
        format!(
            "Placement Identifier {}; Reclaim Unit Handle Identifier {}\n  \
             Estimated Active Reclaim Unit Time Remaining (EARUTR): {}\n  \
             Reclaim Unit Available Media Writes (RUAMW): {}\n\n",
            of.pid.get(),
            of.ruhid.get(),
            of.earutr.get(),
            of.ruamw.get()
        )
    };
    Ok(handles.iter().map(line).collect())
}

fn update(session: &mut Session, args: &UpdateArgs) -> Result<String, Failure> {
    let nsid = session.nsid()?;
    // Fits: a command line is shorter.
    let command = IoManagementSend::handle_update(nsid, args.pids.len() as u32);
    let command = command.map_err(out_of_range)?;
    let data: Vec<u8> = args.pids.iter().flat_map(|pid| pid.to_le_bytes()).collect();
    let transfer = Transfer::ToController(Buf::from(data));
    session.io("I/O Management Send", command.to_entry(), transfer)?;
    Ok(match session.json {
        true => pretty(&json!({ "command": "fdp-update", "nsid": nsid, "pids": args.pids })),
        false => "update: Success\n".to_owned(),
    })
}
