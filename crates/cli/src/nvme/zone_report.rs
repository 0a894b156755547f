//! `zonelab nvme zns report-zones`, `zone-mgmt-recv`.

use serde_json::{Value, json};
use zonelab_device::Buf;
use zonelab_driver::Controller as _;
use zonelab_driver::tcp::Transfer;
use zonelab_lab::device::{state_name, zone_count_line, zone_line, zone_type_name};
use zonelab_nvme::command::ZoneManagementReceive;
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::{ReportFilter, ReportHeader, ZoneDescriptor, ZoneReceiveAction};

use super::fields::{dump, pretty};
use super::zones::{ZonePlace, start_of, zoned};
use super::{Session, number, number8, number32, out_of_range};
use crate::exit::Failure;

/// Bytes of one zone report at most: longer ones come in pieces.
const REPORT_BYTES: u32 = 64 << 10;

/// Options of `nvme zns report-zones`.
#[derive(clap::Args)]
pub(super) struct ReportArgs {
    #[command(flatten)]
    from: ZonePlace,
    /// Zones in the report at most
    #[arg(long, value_parser = number)]
    descs: Option<u64>,
    /// Only zones in this state, by name or by the number of nvme-cli
    #[arg(long, short = 'S', value_enum, default_value = "all")]
    state: StateFilter,
    /// With the descriptor extensions of zones
    #[arg(long, short = 'e')]
    extended: bool,
    /// Count the zones that are shown, rather than all that the drive has in the state
    #[arg(long, short = 'p')]
    partial: bool,
}

/// Zone states to select.
#[derive(Clone, Copy, clap::ValueEnum)]
enum StateFilter {
    #[value(aliases = ["0", "0x0"])]
    All,
    #[value(aliases = ["1", "0x1"])]
    Empty,
    #[value(aliases = ["2", "0x2"])]
    ImplicitlyOpened,
    #[value(aliases = ["3", "0x3"])]
    ExplicitlyOpened,
    #[value(aliases = ["4", "0x4"])]
    Closed,
    #[value(aliases = ["5", "0x5"])]
    Full,
    #[value(aliases = ["6", "0x6"])]
    ReadOnly,
    #[value(aliases = ["7", "0x7"])]
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

/// Options of `nvme zns zone-mgmt-recv`.
#[derive(clap::Args)]
pub(super) struct ReceiveArgs {
    #[command(flatten)]
    from: ZonePlace,
    /// Zone receive action: 0 a report, 1 one with descriptor extensions
    #[arg(long, short = 'z', value_parser = number8, default_value = "0")]
    zra: u8,
    /// Action specific field: which zones, as for --state
    #[arg(long, short = 'S', value_parser = number8, default_value = "0")]
    zrasf: u8,
    /// Count only the zones that fit into the data
    #[arg(long, short = 'p')]
    partial: bool,
    /// Bytes that the drive returns: a multiple of 4
    #[arg(long, short = 'l', value_parser = number32)]
    data_len: u32,
}

/// A zone of a report, and its descriptor extension if it is an extended one.
type Zone = (ZoneDescriptor, Vec<u8>);

/// Sends a Zone Management Receive that must succeed, and returns its data.
fn receive(
    session: &mut Session,
    command: &ZoneManagementReceive,
    bytes: usize,
) -> Result<Buf, Failure> {
    let entry = command.to_entry().map_err(out_of_range)?;
    let transfer = Transfer::ToHost(Buf::zeroed(bytes));
    let reply = session.io("Zone Management Receive", entry, transfer)?;
    Ok(reply.data.unwrap_or_else(|| Buf::zeroed(0)))
}

/// All zones that are asked for, report by report.
pub(super) fn report(session: &mut Session, args: &ReportArgs) -> Result<String, Failure> {
    let (namespace, _) = zoned(session)?;
    let nsid = namespace.nsid;
    let zone_size = namespace.zone_size_lbas().unwrap_or(u64::MAX);
    let end = namespace.nvm.nsze.get();
    let (zra, extension_bytes) = match args.extended {
        true => (
            ZoneReceiveAction::EXTENDED_REPORT_ZONES,
            namespace.zone_extension_bytes() as usize,
        ),
        false => (ZoneReceiveAction::REPORT_ZONES, 0),
    };
    let mut slba = start_of(session, &args.from)?.unwrap_or(0);
    let most = args.descs.unwrap_or(u64::MAX);
    let mut zones: Vec<Zone> = Vec::new();
    let most_bytes = session.controller.info().max_transfer_bytes;
    let bytes = most_bytes.min(REPORT_BYTES) as usize;
    let of = |slba, bytes: usize| ZoneManagementReceive {
        filter: args.state.filter(),
        ..ZoneManagementReceive::new(nsid, slba, bytes as u64 / 4)
    };
    // The first report is made wherever it starts, so that the drive says what
    // is wrong with the start.
    loop {
        let command = ZoneManagementReceive {
            zra,
            partial: true,
            ..of(slba, bytes)
        };
        let found = descriptors(&receive(session, &command, bytes)?, extension_bytes);
        let last = found.last().map(|(zone, _)| zone.zslba.get());
        zones.extend(found);
        let next = last.and_then(|last| last.checked_add(zone_size));
        match next {
            Some(next) if next > slba && next < end && (zones.len() as u64) < most => slba = next,
            _ => break,
        }
    }
    zones.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let count = match args.partial {
        true => zones.len() as u64,
        // All zones of the namespace in the state, wherever the report starts.
        false => {
            let bytes = size_of::<ReportHeader>();
            let data = receive(session, &of(0, bytes), bytes)?;
            ReportHeader::read_from_prefix(&data).map_or(0, |(header, _)| header.nr_zones.get())
        }
    };
    if session.json {
        let list: Vec<Value> = zones.iter().map(|zone| as_json(zone, args)).collect();
        return Ok(pretty(&json!({ "nr_zones": count, "zone_list": list })));
    }
    let lines = zones.iter().map(|zone| as_text(zone, args));
    Ok(zone_count_line(count) + "\n" + &lines.collect::<String>())
}

/// The descriptors of a partial report, with `extension_bytes` behind each.
fn descriptors(report: &[u8], extension_bytes: usize) -> Vec<Zone> {
    let Ok((header, mut rest)) = ReportHeader::read_from_prefix(report) else {
        return Vec::new();
    };
    let mut zones = Vec::new();
    while (zones.len() as u64) < header.nr_zones.get()
        && let Ok((zone, later)) = ZoneDescriptor::read_from_prefix(rest)
        && let Some((extension, later)) = later.split_at_checked(extension_bytes)
    {
        zones.push((zone, extension.to_vec()));
        rest = later;
    }
    zones
}

fn as_text((zone, extension): &Zone, args: &ReportArgs) -> String {
    let line = zone_line(zone) + "\n";
    match (args.extended, zone.za.zdev()) {
        (false, _) => line,
        (true, false) => line + "Extension Data: N/A\n",
        (true, true) => line + "Extension Data:\n" + &dump(extension),
    }
}

fn as_json((zone, extension): &Zone, args: &ReportArgs) -> Value {
    let mut of = json!({
        "slba": zone.zslba.get(), "wp": zone.wp.get(), "cap": zone.zcap.get(),
        "state": state_name(zone.zs.zs()), "type": zone_type_name(zone.zt.zt()),
        "attrs": zone.za.bits(),
    });
    if args.extended {
        of["ext_data"] = zone.za.zdev().then_some(extension.as_slice()).into();
    }
    of
}

/// Any zone management receive, with what the drive returned.
pub(super) fn any(session: &mut Session, args: &ReceiveArgs) -> Result<String, Failure> {
    let name = "zns-zone-mgmt-recv";
    let (nsid, _) = (zoned(session)?.0.nsid, ());
    let slba = start_of(session, &args.from)?.unwrap_or(0);
    let most = session.controller.info().max_transfer_bytes;
    let len = args.data_len;
    if len == 0 || !len.is_multiple_of(4) || len > most {
        return Err(Failure::usage(format!(
            "--data-len {len}: a multiple of 4, up to {most} (MDTS)"
        )));
    }
    let command = ZoneManagementReceive {
        zra: ZoneReceiveAction(args.zra),
        filter: ReportFilter(args.zrasf),
        partial: args.partial,
        ..ZoneManagementReceive::new(nsid, slba, u64::from(len) / 4)
    };
    let data = receive(session, &command, len as usize)?;
    let (zra, zrasf) = (args.zra, args.zrasf);
    Ok(match session.json {
        true => pretty(&json!({
            "command": name, "zra": zra, "zrasf": zrasf, "slba": slba, "nsid": nsid,
            "data": data.to_vec(),
        })),
        false => format!(
            "{name}: Success, action:{zra:#x} zone:{slba:#x} nsid:{nsid}\n{}",
            dump(&data)
        ),
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
        report.extend([7; 32]);
        assert_eq!(descriptors(&report, 0), [(zone, Vec::new())]);
        // Half an extension is none.
        assert_eq!(descriptors(&report, 64), []);
        assert_eq!(descriptors(&report, 32), [(zone, vec![7; 32])]);
        let line = zone_line(&zone);
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
