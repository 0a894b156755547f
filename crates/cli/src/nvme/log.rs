//! `zonelab nvme get-log`, `smart-log`, `error-log`.

use std::fs::File;
use std::io::Write as _;

use serde_json::{Value, json};
use zonelab_device::Buf;
use zonelab_driver::Controller as _;
use zonelab_driver::tcp::Transfer;
use zonelab_nvme::command::GetLogPage;
use zonelab_nvme::identify::CommandSet;
use zonelab_nvme::log::{ErrorEntry, LogPageId, SmartLog};
use zonelab_nvme::zerocopy::FromBytes;

use super::fields::{Fields, dump, pretty};
use super::{
    ALL_NAMESPACES, Session, failure, number, number8, number16, number32, out_of_range, refused,
    status_name,
};
use crate::exit::Failure;

/// Options of `nvme get-log`.
#[derive(clap::Args)]
pub(super) struct GetArgs {
    /// Which log page (LID)
    #[arg(long, short = 'i', value_parser = number8)]
    log_id: u8,
    /// Bytes: a multiple of 4, at most 1 MiB
    #[arg(long, short = 'l', value_parser = number32)]
    log_len: u32,
    /// Start at this byte: a multiple of 4
    #[arg(long, short = 'L', value_parser = number, default_value = "0")]
    lpo: u64,
    /// Log specific parameter (LSP)
    #[arg(long, short = 's', value_parser = number8, default_value = "0", hide_default_value = true)]
    lsp: u8,
    /// Log specific identifier (LSI), such as an endurance group
    #[arg(long, short = 'S', value_parser = number16, default_value = "0", hide_default_value = true)]
    lsi: u16,
    /// Command set (CSI): 0 NVM, 2 zoned
    #[arg(long, short = 'y', value_parser = number8, default_value = "0", hide_default_value = true)]
    csi: u8,
    /// Keep the event and what the page lists (RAE)
    #[arg(long, short = 'r')]
    rae: bool,
    /// Write the page to this file rather than show it
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
}

/// Options of `nvme error-log`.
#[derive(clap::Args)]
pub(super) struct ErrorArgs {
    /// Entries at most
    #[arg(long, short = 'e', value_parser = number8, default_value = "64")]
    log_entries: u8,
}

pub(super) fn get(session: &mut Session, args: &GetArgs) -> Result<String, Failure> {
    let len = args.log_len;
    if len == 0 || !len.is_multiple_of(4) || len > 1 << 20 || !args.lpo.is_multiple_of(4) {
        return Err(Failure::usage(format!(
            "--log-len {len} from {}: both are multiples of 4, the length 4 to 1048576",
            args.lpo
        )));
    }
    let lid = LogPageId(args.log_id);
    let get = GetLogPage {
        lpo: args.lpo,
        lsp: args.lsp,
        lsi: args.lsi,
        rae: args.rae,
        csi: CommandSet(args.csi),
        ..GetLogPage::new(
            session.stated.unwrap_or(ALL_NAMESPACES),
            lid,
            u64::from(len) / 4,
        )
    };
    let page = page(session, &get)?;
    if let Some(path) = &args.data {
        File::create(path)
            .and_then(|mut file| file.write_all(&page))
            .map_err(|e| Failure::environment(anyhow::anyhow!("{path}: {e}")))?;
        return Ok(String::new());
    }
    Ok(match session.json {
        true => pretty(&json!({ "lid": args.log_id, "data": page.to_vec() })),
        false => format!("Log page {lid}, {len} bytes:\n{}", dump(&page)),
    })
}

/// A part of a log page.
pub(super) fn page(session: &mut Session, get: &GetLogPage) -> Result<Buf, Failure> {
    let (what, bytes) = ("Get Log Page", get.numd as usize * 4);
    let entry = get.to_entry().map_err(out_of_range)?;
    let transfer = Transfer::ToHost(Buf::zeroed(bytes));
    let reply = session.controller.admin(what, entry, transfer);
    let reply = reply.and_then(|reply| reply.ok(what)).map_err(failure)?;
    let data = reply.data.filter(|data| data.len() == bytes);
    data.ok_or_else(|| refused("the page is too short".to_owned()))
}

pub(super) fn smart(session: &mut Session) -> Result<String, Failure> {
    let page =
        session
            .controller
            .log_page(ALL_NAMESPACES, LogPageId::SMART, 0, size_of::<SmartLog>());
    let page = page.map_err(failure)?;
    let log = SmartLog::read_from_bytes(&page);
    let log = log.map_err(|_| refused("the page is too short".to_owned()))?;
    let kelvin = log.ctemp.get();
    let mut fields = Fields::default();
    fields.hex("critical_warning", log.cw.bits());
    match session.json {
        true => fields.number("temperature", kelvin),
        false => {
            let celsius = i32::from(kelvin) - 273;
            fields.text("temperature", format!("{celsius} C ({kelvin} Kelvin)"))
        }
    };
    fields
        .number("available_spare", log.avsp)
        .number("available_spare_threshold", log.avspt)
        .number("percentage_used", log.pused)
        .hex("endurance_group_critical_warning_summary", log.egcws)
        .number("data_units_read", log.dur.get())
        .number("data_units_written", log.duw.get())
        .number("host_read_commands", log.hrc.get())
        .number("host_write_commands", log.hwc.get())
        .number("controller_busy_time", log.cbt.get())
        .number("power_cycles", log.pwrc.get())
        .number("power_on_hours", log.poh.get())
        .number("unsafe_shutdowns", log.upl.get())
        .number("media_errors", log.mdie.get())
        .number("num_err_log_entries", log.neile.get())
        .number("warning_temp_time", log.wctt.get())
        .number("critical_comp_time", log.cctt.get());
    for (sensor, kelvin) in (1..).zip(&log.tsen).filter(|(_, kelvin)| kelvin.get() != 0) {
        fields.number(&format!("temperature_sensor_{sensor}"), kelvin.get());
    }
    Ok(fields.render(session.json, "Smart Log for NVME device"))
}

pub(super) fn errors(session: &mut Session, args: &ErrorArgs) -> Result<String, Failure> {
    // ELPE is zero based.
    let most = u16::from(session.controller.identity().controller.elpe_z) + 1;
    let count = usize::from(most.min(u16::from(args.log_entries.max(1))));
    let bytes = count * size_of::<ErrorEntry>();
    let page = session
        .controller
        .log_page(ALL_NAMESPACES, LogPageId::ERROR_INFORMATION, 0, bytes);
    let page = page.map_err(failure)?;
    let entries = page
        .chunks_exact(size_of::<ErrorEntry>())
        .filter_map(|bytes| ErrorEntry::read_from_bytes(bytes).ok());
    let entries: Vec<Fields> = entries.map(|entry| fields(&entry)).collect();
    if session.json {
        let errors: Vec<Value> = entries.iter().map(Fields::to_json).collect();
        return Ok(pretty(&json!({ "errors": errors })));
    }
    let mut text = format!("Error Log Entries for device, entries:{count}\n");
    for (index, entry) in entries.iter().enumerate() {
        text.push_str(&format!(
            ".................\n Entry[{index:>2}]\n.................\n"
        ));
        text.push_str(&entry.to_text());
    }
    Ok(text)
}

fn fields(entry: &ErrorEntry) -> Fields {
    let status = entry.status;
    let mut fields = Fields::default();
    fields
        .number("error_count", entry.errcnt.get())
        .number("sqid", entry.sqid.get())
        .hex("cmdid", entry.cid.get())
        .text(
            "status_field",
            format!(
                "{:#x} ({})",
                status.bits() >> 1,
                status_name(status.status())
            ),
        )
        .number("phase_tag", u8::from(status.p()))
        .hex("parm_err_loc", entry.pel.bits())
        .hex("lba", entry.lba.get())
        .hex("nsid", entry.nsid.get())
        .number("vs", entry.vsia)
        .number("trtype", entry.trtype)
        .number("cs", entry.csinfo.get())
        .hex("trtype_spec_info", entry.ttsi.get());
    fields
}
