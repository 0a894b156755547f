//! `zonelab nvme discover`.

use serde_json::{Value, json};
use zonelab_driver::AnyController;
use zonelab_nvme::log::DiscoveryEntry;
use zonelab_nvme::tcp::IO_PORT;

use super::fields::{Fields, pretty};
use super::{Session, failure};
use crate::exit::Failure;

/// The discovery log.
pub(super) fn discover(session: &mut Session) -> Result<String, Failure> {
    let AnyController::Tcp(controller) = &mut session.controller else {
        return Err(Failure::usage(format!(
            "{}: discovery is for tcp://HOST:PORT; `ls /dev/ng*` lists the drives of this machine",
            session.address
        )));
    };
    let log = controller.discovery_log().map_err(failure)?;
    let entries: Vec<Fields> = log.entries.iter().map(fields).collect();
    if session.json {
        let records: Vec<Value> = entries.iter().map(Fields::to_json).collect();
        let value = json!({ "genctr": log.generation, "records": records });
        return Ok(pretty(&value));
    }
    let mut text = format!(
        "Discovery Log Number of Records {}, Generation counter {}\n",
        entries.len(),
        log.generation
    );
    for (index, (fields, entry)) in entries.iter().zip(&log.entries).enumerate() {
        text.push_str(&format!("=====Discovery Log Entry {index}======\n"));
        text.push_str(&fields.to_text());
        if let Some(url) = url(entry) {
            text.push_str(&format!("connect   : --device {url}\n"));
        }
    }
    Ok(text)
}

/// Refuses a discovery subsystem, which has no namespaces, with the names of the subsystems that
/// it knows.
///
/// # Errors
/// It is one, or does not answer.
pub(super) fn refuse(session: &mut Session) -> Result<(), Failure> {
    let AnyController::Tcp(controller) = &mut session.controller else {
        return Ok(());
    };
    if !session.address.is_discovery() {
        return Ok(());
    }
    let log = controller.discovery_log().map_err(failure)?;
    let known: Vec<String> = log.entries.iter().filter_map(url).collect();
    let there_are = match known.is_empty() {
        true => "it knows of none over TCP".to_owned(),
        false => format!("there are {}", known.join(", ")),
    };
    Err(Failure::usage(format!(
        "{} is the discovery subsystem, which has no namespaces: name a subsystem behind the \
         address; {there_are}",
        session.address
    )))
}

fn fields(entry: &DiscoveryEntry) -> Fields {
    let name = |name: Option<&'static str>, code: u8| match name {
        Some(name) => name.to_lowercase(),
        None => format!("{code:#x}"),
    };
    let mut fields = Fields::default();
    fields
        .text("trtype", name(entry.trtype.name(), entry.trtype.0))
        .text("adrfam", name(entry.adrfam.name(), entry.adrfam.0))
        .text("subtype", name(entry.subtype.name(), entry.subtype.0))
        .hex("treq", entry.treq.bits())
        .number("portid", entry.portid.get())
        .text("trsvcid", entry.trsvcid.as_str().unwrap_or_default())
        .text("subnqn", entry.subnqn.as_str().unwrap_or_default())
        .text("traddr", entry.traddr.as_str().unwrap_or_default())
        .text(
            "sectype",
            name(entry.tsas.sectype.name(), entry.tsas.sectype.0),
        );
    fields
}

/// What to give `--device` to use the subsystem, if it is one over TCP.
fn url(entry: &DiscoveryEntry) -> Option<String> {
    use zonelab_nvme::log::TransportType;
    let host = entry.traddr.as_str().filter(|host| !host.is_empty())?;
    let nqn = entry.subnqn.as_str()?;
    let port = entry.trsvcid.as_str().and_then(|port| port.parse().ok());
    let port: u16 = port.unwrap_or(IO_PORT);
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    (entry.trtype == TransportType::TCP).then(|| format!("tcp://{host}:{port}/{nqn}"))
}
