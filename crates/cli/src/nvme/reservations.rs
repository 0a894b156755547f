//! `zonelab nvme resv-register`, `resv-acquire`, `resv-release`, `resv-report`.

use serde_json::{Value, json};
use zonelab_device::Buf;
use zonelab_driver::Controller as _;
use zonelab_driver::tcp::Transfer;
use zonelab_nvme::command::{
    ReservationAcquire, ReservationRegister, ReservationRelease, ReservationReport,
};
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::reservation::{
    AcquireAction, AcquireData, ChangePersistence, RegisterAction, RegisterData, Registrant,
    RegistrantExtended, ReleaseAction, ReleaseData, ReservationStatus, ReservationStatusExtended,
    ReservationType,
};
use zonelab_nvme::zerocopy::{FromBytes, IntoBytes};

use super::fields::{Fields, pretty};
use super::{Session, number, number8, number32, out_of_range, refused};
use crate::exit::Failure;

/// Most dwords of a report: 1 MiB.
const MOST_DWORDS: u32 = 1 << 18;

/// Options of `nvme resv-register`.
#[derive(clap::Args)]
pub(super) struct RegisterArgs {
    /// Current key of this host, to unregister or replace it
    #[arg(long, short = 'c', value_parser = number, default_value = "0")]
    crkey: u64,
    /// New key of this host, to register it or replace the current one
    #[arg(long, short = 'k', value_parser = number, default_value = "0")]
    nrkey: u64,
    /// 0 register, 1 unregister, 2 replace
    #[arg(long, short = 'r', value_parser = clap::value_parser!(u8).range(0..=7), default_value = "0")]
    rrega: u8,
    /// What outlives a loss of power: 0 no change, 2 nothing, 3 registrations and reservation
    #[arg(long, short = 'p', value_parser = clap::value_parser!(u8).range(0..=3), default_value = "0")]
    cptpl: u8,
    /// The current key need not be right
    #[arg(long, short = 'i')]
    iekey: bool,
}

/// Options of `nvme resv-acquire`.
#[derive(clap::Args)]
pub(super) struct AcquireArgs {
    /// Current key of this host
    #[arg(long, short = 'c', value_parser = number, default_value = "0")]
    crkey: u64,
    /// Key of the hosts to preempt
    #[arg(long, short = 'p', value_parser = number, default_value = "0")]
    prkey: u64,
    /// 1 write exclusive, 2 exclusive access, 3 and 4 the same of registrants only, 5 and 6 of
    /// all registrants
    #[arg(long, short = 't', value_parser = number8, default_value = "0")]
    rtype: u8,
    /// 0 acquire, 1 preempt, 2 preempt and abort
    #[arg(long, short = 'a', value_parser = clap::value_parser!(u8).range(0..=7), default_value = "0")]
    racqa: u8,
    /// The current key need not be right; drives since NVMe 1.3 refuse that
    #[arg(long, short = 'i')]
    iekey: bool,
}

/// Options of `nvme resv-release`.
#[derive(clap::Args)]
pub(super) struct ReleaseArgs {
    /// Current key of this host
    #[arg(long, short = 'c', value_parser = number, default_value = "0")]
    crkey: u64,
    /// Type of the reservation to release
    #[arg(long, short = 't', value_parser = number8, default_value = "0")]
    rtype: u8,
    /// 0 release, 1 clear: end the reservation and all registrations
    #[arg(long, short = 'a', value_parser = clap::value_parser!(u8).range(0..=7), default_value = "0")]
    rrela: u8,
    /// The current key need not be right; drives since NVMe 1.3 refuse that
    #[arg(long, short = 'i')]
    iekey: bool,
}

/// Options of `nvme resv-report`.
#[derive(clap::Args)]
pub(super) struct ReportArgs {
    /// Dwords to transfer
    #[arg(long, value_parser = number32, default_value = "1024")]
    numd: u32,
    /// With host identifiers of 128 bits; a drive that has them is asked for them in any case
    #[arg(long, short = 'e')]
    eds: bool,
}

pub(super) fn register(session: &mut Session, args: &RegisterArgs) -> Result<String, Failure> {
    let command = ReservationRegister {
        nsid: session.nsid()?,
        rrega: RegisterAction(args.rrega),
        iekey: args.iekey,
        cptpl: ChangePersistence(args.cptpl),
    };
    let data = RegisterData {
        crkey: args.crkey.into(),
        nrkey: args.nrkey.into(),
    };
    let entry = command.to_entry().map_err(out_of_range)?;
    send(
        session,
        ("Reservation Register", "resv-register"),
        entry,
        data.as_bytes(),
    )
}

pub(super) fn acquire(session: &mut Session, args: &AcquireArgs) -> Result<String, Failure> {
    let command = ReservationAcquire {
        nsid: session.nsid()?,
        racqa: AcquireAction(args.racqa),
        iekey: args.iekey,
        rtype: ReservationType(args.rtype),
    };
    let data = AcquireData {
        crkey: args.crkey.into(),
        prkey: args.prkey.into(),
    };
    let entry = command.to_entry().map_err(out_of_range)?;
    send(
        session,
        ("Reservation Acquire", "resv-acquire"),
        entry,
        data.as_bytes(),
    )
}

pub(super) fn release(session: &mut Session, args: &ReleaseArgs) -> Result<String, Failure> {
    let command = ReservationRelease {
        nsid: session.nsid()?,
        rrela: ReleaseAction(args.rrela),
        iekey: args.iekey,
        rtype: ReservationType(args.rtype),
    };
    let data = ReleaseData {
        crkey: args.crkey.into(),
    };
    let entry = command.to_entry().map_err(out_of_range)?;
    send(
        session,
        ("Reservation Release", "resv-release"),
        entry,
        data.as_bytes(),
    )
}

fn send(
    session: &mut Session,
    (what, command): (&'static str, &'static str),
    entry: SubmissionEntry,
    data: &[u8],
) -> Result<String, Failure> {
    let nsid = entry.nsid.get();
    let data = Transfer::ToController(Buf::from(data.to_vec()));
    session.io(what, entry, data)?;
    Ok(match session.json {
        true => pretty(&json!({ "command": command, "nsid": nsid })),
        false => format!("NVME {what} success\n"),
    })
}

pub(super) fn report(session: &mut Session, args: &ReportArgs) -> Result<String, Failure> {
    if !(1..=MOST_DWORDS).contains(&args.numd) {
        let numd = args.numd;
        let message = format!("--numd {numd} is not possible: 1 to {MOST_DWORDS} is valid");
        return Err(Failure::usage(message));
    }
    let controller = &session.controller.identity().controller;
    let eds = args.eds || controller.ctratt.host_id_128();
    let command = ReservationReport {
        nsid: session.nsid()?,
        numd: args.numd.into(),
        eds,
    };
    let entry = command.to_entry().map_err(out_of_range)?;
    let room = Transfer::ToHost(Buf::zeroed(args.numd as usize * 4));
    let reply = session.io("Reservation Report", entry, room)?;
    let data = reply.data.map_or(Vec::new(), |buf| buf.to_vec());
    let report = Report::read(&data, eds)?;
    Ok(match session.json {
        true => pretty(&report.to_json()),
        false => report.to_text(),
    })
}

/// A registrant as nvme-cli shows it.
struct Row {
    cntlid: u16,
    rcsts: u8,
    /// In the order of the bytes if it has 16.
    hostid: HostId,
    rkey: u64,
}

enum HostId {
    Short(u64),
    Extended(String),
}

struct Report {
    status: ReservationStatus,
    is_extended: bool,
    rows: Vec<Row>,
}

impl Report {
    /// The report in so many bytes, which may end before the registrants do.
    fn read(data: &[u8], is_extended: bool) -> Result<Self, Failure> {
        let short = || refused("--numd is less than the header of the report".to_owned());
        let (status, rest) = if is_extended {
            let (head, rest) =
                ReservationStatusExtended::read_from_prefix(data).map_err(|_| short())?;
            (head.status, rest)
        } else {
            ReservationStatus::read_from_prefix(data).map_err(|_| short())?
        };
        let count = usize::from(status.regstrnt.get());
        let rows = if is_extended {
            let entries = rest.chunks_exact(size_of::<RegistrantExtended>());
            let entries =
                entries.filter_map(|bytes| RegistrantExtended::read_from_bytes(bytes).ok());
            let row = |of: RegistrantExtended| Row {
                cntlid: of.cntlid.get(),
                rcsts: of.rcsts.bits(),
                hostid: HostId::Extended(of.hostid.iter().map(|b| format!("{b:02x}")).collect()),
                rkey: of.rkey.get(),
            };
            entries.take(count).map(row).collect()
        } else {
            let entries = rest.chunks_exact(size_of::<Registrant>());
            let entries = entries.filter_map(|bytes| Registrant::read_from_bytes(bytes).ok());
            let row = |of: Registrant| Row {
                cntlid: of.cntlid.get(),
                rcsts: of.rcsts.bits(),
                hostid: HostId::Short(of.hostid.get()),
                rkey: of.rkey.get(),
            };
            entries.take(count).map(row).collect()
        };
        Ok(Self {
            status,
            is_extended,
            rows,
        })
    }

    fn to_json(&self) -> Value {
        let row = |row: &Row| {
            let hostid: Value = match &row.hostid {
                HostId::Short(id) => (*id).into(),
                HostId::Extended(id) => id.as_str().into(),
            };
            json!({
                "cntlid": row.cntlid, "rcsts": row.rcsts, "hostid": hostid, "rkey": row.rkey,
            })
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        let name = match self.is_extended {
            true => "regctlext",
            false => "regctls",
        };
        let mut value = json!({
            "gen": self.status.generation.get(),
            "rtype": self.status.rtype.0,
            "regctl": self.status.regstrnt.get(),
            "ptpls": self.status.ptpls,
        });
        value[name] = rows.into();
        value
    }

    fn to_text(&self) -> String {
        let mut fields = Fields::default();
        fields
            .number("gen", self.status.generation.get())
            .number("rtype", self.status.rtype.0)
            .number("regctl", self.status.regstrnt.get())
            .number("ptpls", self.status.ptpls);
        let mut text = format!("NVME Reservation status:\n\n{}", fields.to_text());
        for (index, row) in self.rows.iter().enumerate() {
            let name = match self.is_extended {
                true => "regctlext",
                false => "regctl",
            };
            let hostid = match &row.hostid {
                HostId::Short(id) => format!("{id:x}"),
                HostId::Extended(id) => id.clone(),
            };
            text.push_str(&format!(
                "{name}[{index}] :\n  cntlid  : {:x}\n  rcsts   : {:x}\n  rkey    : {:x}\n  \
                 hostid  : {hostid}\n",
                row.cntlid, row.rcsts, row.rkey,
            ));
        }
        text
    }
}
