//! `zonelab nvme list`, `id-ctrl`, `id-ns`.

use serde_json::{Value, json};
use zonelab_driver::Controller as _;
use zonelab_driver::Namespace;
use zonelab_lab::table::{Cell, Column, Table};
use zonelab_nvme::identify::{CommandSet, Version};

use super::fields::{Fields, pretty};
use super::{Session, failure, human};
use crate::console;
use crate::exit::Failure;

/// Options of `nvme id-ns`.
#[derive(clap::Args)]
pub(super) struct NamespaceArgs {
    /// Say what the bits of a field mean
    #[arg(long, short = 'H')]
    human_readable: bool,
}

/// One line for each namespace.
pub(super) fn list(session: &Session) -> Result<String, Failure> {
    let identity = session.controller.identity();
    let controller = &identity.controller;
    let word = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let (sn, mn, fr) = (
        word(controller.sn.as_str()),
        word(controller.mn.as_str()),
        word(controller.fr.as_str()),
    );
    let mut table = Table::new([
        Column::word("Node"),
        Column::word("SN"),
        Column::text("Model"),
        Column::number("Namespace"),
        Column::word("Type"),
        Column::number("Usage"),
        Column::number("Format"),
        Column::word("FW Rev"),
    ]);
    let mut devices: Vec<Value> = Vec::new();
    for namespace in &identity.namespaces {
        let lba_bytes = u64::from(namespace.lba_bytes().map_err(failure)?);
        let bytes = |lbas: u64| lbas.saturating_mul(lba_bytes);
        let (used, size) = (
            bytes(namespace.nvm.nuse.get()),
            bytes(namespace.nvm.nsze.get()),
        );
        let kind = kind(namespace);
        devices.push(json!({
            "Address": session.address.to_string(), "NameSpace": namespace.nsid,
            "SerialNumber": sn, "ModelNumber": mn, "Firmware": fr, "CommandSet": kind,
            "UsedBytes": used, "PhysicalSize": size, "SectorSize": lba_bytes,
            "MaximumLBA": namespace.nvm.nsze.get(),
        }));
        let usage = [used, size].map(zonelab_config::units::fmt_size);
        table.push(
            [
                session.address.to_string(),
                sn.clone(),
                mn.clone(),
                format!("{:#x}", namespace.nsid),
                kind.to_owned(),
                usage.join(" / "),
                format!("{lba_bytes} B"),
                fr.clone(),
            ]
            .map(Cell::from),
        );
    }
    Ok(match session.json {
        true => pretty(&json!({ "Devices": devices })),
        false => table.to_text(&console::style()),
    })
}

fn kind(namespace: &Namespace) -> &'static str {
    match namespace.csi {
        CommandSet::NVM => "nvm",
        CommandSet::ZNS => "zns",
        CommandSet::KEY_VALUE => "kv",
        _ => "other",
    }
}

fn version(version: Version) -> u32 {
    version.bits()
}

/// The controller structure, in the order of the specification.
pub(super) fn controller(session: &Session) -> String {
    let id = &session.controller.identity().controller;
    let mut fields = Fields::default();
    let [low, middle, high] = id.ieee;
    fields
        .hex("vid", id.vid.get())
        .hex("ssvid", id.ssvid.get())
        .text("sn", id.sn.as_str().unwrap_or_default())
        .text("mn", id.mn.as_str().unwrap_or_default())
        .text("fr", id.fr.as_str().unwrap_or_default())
        .number("rab", id.rab)
        .text("ieee", format!("{high:02x}{middle:02x}{low:02x}"))
        .hex("cmic", id.cmic.bits())
        .number("mdts", id.mdts)
        .hex("cntlid", id.cntlid.get())
        .hex("ver", version(id.ver))
        .hex("rtd3r", id.rtd3r.get())
        .hex("rtd3e", id.rtd3e.get())
        .hex("oaes", id.oaes.bits())
        .hex("ctratt", id.ctratt.bits())
        .hex("rrls", id.rrls.get())
        .number("cntrltype", id.cntrltype.0)
        .number("crdt1", id.crdt1.get())
        .number("crdt2", id.crdt2.get())
        .number("crdt3", id.crdt3.get())
        .hex("oacs", id.oacs.bits())
        .number("acl", id.acl_z)
        .number("aerl", id.aerl_z)
        .hex("frmw", id.frmw.bits())
        .hex("lpa", id.lpa.bits())
        .number("elpe", id.elpe_z)
        .number("npss", id.npss_z)
        .hex("avscc", id.avscc)
        .hex("apsta", id.apsta)
        .number("wctemp", id.wctemp.get())
        .number("cctemp", id.cctemp.get())
        .number("mtfa", id.mtfa.get())
        .number("tnvmcap", id.tnvmcap.get())
        .number("unvmcap", id.unvmcap.get())
        .hex("rpmbs", id.rpmbs.get())
        .number("edstt", id.edstt.get())
        .number("dsto", id.dsto)
        .number("fwug", id.fwug)
        .number("kas", id.kas.get())
        .hex("hctma", id.hctma.get())
        .hex("sanicap", id.sanicap.get())
        .number("nsetidmax", id.nsetidmax.get())
        .number("endgidmax", id.endgidmax.get())
        .number("anatt", id.anatt)
        .number("anacap", id.anacap)
        .number("anagrpmax", id.anagrpmax.get())
        .number("nanagrpid", id.nanagrpid.get())
        .hex("sqes", id.sqes.max() << 4 | id.sqes.min())
        .hex("cqes", id.cqes.max() << 4 | id.cqes.min())
        .number("maxcmd", id.maxcmd.get())
        .number("nn", id.nn.get())
        .hex("oncs", id.oncs.bits())
        .hex("fuses", id.fuses.bits())
        .hex("fna", id.fna.bits())
        .hex("vwc", id.vwc.bits())
        .number("awun", id.awun_z.get())
        .number("awupf", id.awupf_z.get())
        .number("icsvscc", id.icsvscc)
        .number("nwpc", id.nwpc)
        .number("acwu", id.acwu_z.get())
        .hex("ocfs", id.ocfs.get())
        .hex("sgls", id.sgls.bits())
        .number("mnan", id.mnan.get())
        .text("subnqn", id.subnqn.as_str().unwrap_or_default())
        .number("ioccsz", id.ioccsz.get())
        .number("iorcsz", id.iorcsz.get())
        .number("icdoff", id.icdoff.get())
        .hex("fcatt", id.fcatt.bits())
        .number("msdbd", id.msdbd)
        .hex("ofcs", id.ofcs.bits());
    fields.render(session.json, "NVME Identify Controller")
}

/// The namespace structure, in the order of the specification.
pub(super) fn namespace(session: &Session, args: &NamespaceArgs) -> Result<String, Failure> {
    let namespace = session.namespace()?;
    let id = &namespace.nvm;
    let mut fields = Fields::default();
    fields
        .hex("nsze", id.nsze.get())
        .hex("ncap", id.ncap.get())
        .hex("nuse", id.nuse.get())
        .hex("nsfeat", id.nsfeat.bits())
        .number("nlbaf", id.nlbaf_z)
        .hex("flbas", id.flbas.bits())
        .hex("mc", id.mc)
        .hex("dpc", id.dpc)
        .hex("dps", id.dps)
        .hex("nmic", id.nmic)
        .hex("rescap", id.rescap.bits())
        .hex("fpi", id.fpi)
        .number("dlfeat", id.dlfeat)
        .number("nawun", id.nawun_z.get())
        .number("nawupf", id.nawupf_z.get())
        .number("nacwu", id.nacwu_z.get())
        .number("nabsn", id.nabsn_z.get())
        .number("nabo", id.nabo.get())
        .number("nabspf", id.nabspf_z.get())
        .number("noiob", id.noiob.get())
        .number("nvmcap", id.nvmcap.get())
        .number("npwg", id.npwg_z.get())
        .number("npwa", id.npwa_z.get())
        .number("npdg", id.npdg_z.get())
        .number("npda", id.npda_z.get())
        .number("nows", id.nows_z.get())
        .number("mssrl", id.mssrl.get())
        .number("mcl", id.mcl.get())
        .number("msrc", id.msrc_z)
        .number("anagrpid", id.anagrpid.get())
        .hex("nsattr", id.nsattr)
        .number("nvmsetid", id.nvmsetid.get())
        .number("endgid", id.endgid.get())
        .text("nguid", hex(&id.nguid))
        .text("eui64", hex(&id.eui64));
    if session.json {
        let mut value = fields.to_json();
        let lbafs: Vec<Value> = formats(namespace)
            .map(
                |(_, format)| json!({ "ms": format.ms(), "ds": format.lbads(), "rp": format.rp() }),
            )
            .collect();
        if let Value::Object(object) = &mut value {
            object.insert("lbafs".to_owned(), lbafs.into());
        }
        return Ok(pretty(&value));
    }
    let title = format!("NVME Identify Namespace {}", session.nsid()?);
    if args.human_readable {
        return Ok(format!(
            "{title}:\n{}",
            human::namespace(&fields, namespace)
        ));
    }
    let mut text = fields.render(false, &title);
    for (index, format) in formats(namespace) {
        let in_use = match index == usize::from(namespace.format_index()) {
            true => " (in use)",
            false => "",
        };
        text.push_str(&format!(
            "lbaf {index:>2} : ms:{:<3} lbads:{:<2} rp:{:#x}{in_use}\n",
            format.ms(),
            format.lbads(),
            format.rp()
        ));
    }
    Ok(text)
}

/// The formats that the namespace can have, with their indices.
pub(super) fn formats(
    namespace: &Namespace,
) -> impl Iterator<Item = (usize, &zonelab_nvme::identify::LbaFormat)> {
    let count = usize::from(namespace.nvm.nlbaf_z) + 1 + usize::from(namespace.nvm.nulbaf);
    namespace.nvm.lbaf.iter().enumerate().take(count)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
