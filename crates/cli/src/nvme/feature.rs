//! `zonelab nvme get-feature`, `set-feature`.

use serde_json::json;
use zonelab_device::Buf;
use zonelab_driver::Controller as _;
use zonelab_driver::tcp::Transfer;
use zonelab_nvme::command::{GetFeatures, SetFeatures};
use zonelab_nvme::feature::{FeatureId, FeatureSelect};

use super::fields::{dump, pretty};
use super::{Session, failure, number8, number32, out_of_range};
use crate::exit::Failure;
use crate::files;

/// Options of `nvme get-feature`.
#[derive(clap::Args)]
pub(super) struct GetArgs {
    /// Which feature (FID)
    #[arg(long, short = 'f', value_parser = number8)]
    feature_id: u8,
    /// 0 current, 1 default, 2 saved, 3 what can be done with it
    #[arg(long, short = 's', value_parser = clap::value_parser!(u8).range(0..=3), default_value = "0")]
    sel: u8,
    /// Dword 11 of the command
    #[arg(long, value_parser = number32, default_value = "0")]
    cdw11: u32,
    /// Bytes of data that the feature has; without it, what is known of it
    #[arg(long, value_parser = number32)]
    data_len: Option<u32>,
    /// The feature is one of the namespace
    #[arg(long)]
    of_namespace: bool,
}

/// Options of `nvme set-feature`.
#[derive(clap::Args)]
pub(super) struct SetArgs {
    /// Which feature (FID)
    #[arg(long, short = 'f', value_parser = number8)]
    feature_id: u8,
    /// The value: dword 11 of the command
    #[arg(long, short = 'V', value_parser = number32, default_value = "0")]
    value: u32,
    /// Dword 12 of the command
    #[arg(long, value_parser = number32, default_value = "0")]
    cdw12: u32,
    /// Keep the value when the controller is reset
    #[arg(long)]
    save: bool,
    /// Data that goes with it
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
    /// The feature is one of the namespace
    #[arg(long)]
    of_namespace: bool,
}

/// Bytes of data that a feature has (base specification 2.0, section 5.27.1).
fn data_len(fid: FeatureId) -> u32 {
    match fid {
        FeatureId::LBA_RANGE_TYPE => 4096,
        FeatureId::AUTONOMOUS_POWER_STATE_TRANSITION => 256,
        FeatureId::TIMESTAMP => 8,
        FeatureId::HOST_BEHAVIOR_SUPPORT => 512,
        // Fabrics know only the long form.
        FeatureId::HOST_IDENTIFIER => 16,
        _ => 0,
    }
}

fn name(fid: FeatureId) -> &'static str {
    fid.name().unwrap_or("no known feature")
}

pub(super) fn get(session: &mut Session, args: &GetArgs) -> Result<String, Failure> {
    let fid = FeatureId(args.feature_id);
    let nsid = if args.of_namespace {
        session.nsid()?
    } else {
        0
    };
    // Host Identifier: the long form is the only one on a fabric (EXHID).
    let is_hostid = fid == FeatureId::HOST_IDENTIFIER;
    let command = GetFeatures {
        sel: FeatureSelect(args.sel),
        dword11: args.cdw11 | u32::from(is_hostid),
        ..GetFeatures::new(nsid, fid)
    };
    let entry = command.to_entry().map_err(out_of_range)?;
    let len = match FeatureSelect(args.sel) {
        FeatureSelect::SUPPORTED_CAPABILITIES => 0,
        _ => args.data_len.unwrap_or_else(|| data_len(fid)).min(1 << 20),
    };
    let transfer = match len {
        0 => Transfer::None,
        len => Transfer::ToHost(Buf::zeroed(len as usize)),
    };
    let what = "Get Features";
    let reply = session.controller.admin(what, entry, transfer);
    let reply = reply.and_then(|reply| reply.ok(what)).map_err(failure)?;
    let value = reply.entry.dw0.get();
    let data = reply.data.map_or(Vec::new(), |buf| buf.to_vec());
    let (code, name) = (fid.0, name(fid));
    if session.json {
        let value = json!({
            "feature": code, "name": name, "sel": args.sel, "value": value, "data": data,
        });
        return Ok(pretty(&value));
    }
    let sel = ["Current", "Default", "Saved", "Supported capabilities"];
    let sel = sel.get(usize::from(args.sel)).unwrap_or(&"Other");
    Ok(format!(
        "get-feature:{code:#04x} ({name}), {sel} value:{value:#010x}\n{}",
        dump(&data)
    ))
}

pub(super) fn set(session: &mut Session, args: &SetArgs) -> Result<String, Failure> {
    let fid = FeatureId(args.feature_id);
    let nsid = if args.of_namespace {
        session.nsid()?
    } else {
        0
    };
    let command = SetFeatures {
        sv: args.save,
        ..SetFeatures::new(nsid, fid, args.value)
    };
    let mut entry = command.to_entry().map_err(out_of_range)?;
    entry.cdw12 = args.cdw12.into();
    let transfer = match &args.data {
        Some(path) => Transfer::ToController(Buf::from(files::read_whole(path)?)),
        None => Transfer::None,
    };
    let what = "Set Features";
    let reply = session.controller.admin(what, entry, transfer);
    let reply = reply.and_then(|reply| reply.ok(what)).map_err(failure)?;
    let result = reply.entry.dw0.get();
    let (code, name, value) = (fid.0, name(fid), args.value);
    Ok(match session.json {
        true => pretty(&json!({
            "feature": code, "name": name, "value": value, "result": result, "saved": args.save,
        })),
        false => format!(
            "set-feature:{code:#04x} ({name}), value:{value:#010x}, cdw12:{:#010x}, save:{:#x}\n",
            args.cdw12,
            u8::from(args.save)
        ),
    })
}
