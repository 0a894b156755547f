//! `zonelab nvme list-ns`, `list-subsys`.

use serde_json::{Value, json};
use zonelab_device::Buf;
use zonelab_driver::Controller as _;
use zonelab_driver::tcp::Transfer;
use zonelab_driver::url::Address;
use zonelab_nvme::command::Identify;
use zonelab_nvme::identify::{Cns, CommandSet, NamespaceList};
use zonelab_nvme::zerocopy::FromBytes;

use super::fields::pretty;
use super::{Session, failure, out_of_range, refused};
use crate::exit::Failure;

/// Most namespaces that a controller is asked for.
const MOST_NAMESPACES: usize = 1 << 16;

/// Options of `nvme list-ns`.
#[derive(clap::Args)]
pub(super) struct NamespaceArgs {
    /// All that exist, not only those that are attached to the controller
    #[arg(long, short = 'a')]
    all: bool,
}

/// The namespace identifiers of the controller, or of the subsystem.
pub(super) fn namespaces(session: &mut Session, args: &NamespaceArgs) -> Result<String, Failure> {
    let cns = match args.all {
        true => Cns::ALLOCATED_NAMESPACES,
        false => Cns::ACTIVE_NAMESPACES,
    };
    let mut found: Vec<u32> = Vec::new();
    loop {
        let after = found.last().copied().unwrap_or(0);
        let entry = Identify::new(after, cns, CommandSet::NVM).to_entry();
        let entry = entry.map_err(out_of_range)?;
        let transfer = Transfer::ToHost(Buf::zeroed(size_of::<NamespaceList>()));
        let reply = session.controller.admin("Identify", entry, transfer);
        let reply = reply.and_then(|reply| reply.ok("Identify"));
        let data = reply
            .map_err(failure)?
            .data
            .unwrap_or_else(|| Buf::zeroed(0));
        let list = NamespaceList::read_from_bytes(&data);
        let list = list.map_err(|_| refused("the list is too short".to_owned()))?;
        let before = found.len();
        if before > MOST_NAMESPACES {
            let what = format!("the list has more than {MOST_NAMESPACES} namespaces");
            return Err(refused(what));
        }
        // A list that does not rise would never end.
        found.extend(list.iter().filter(|nsid| *nsid > after));
        if found.len() - before < list.nsid.len() {
            break;
        }
    }
    if session.json {
        let list: Vec<Value> = found.iter().map(|nsid| json!({ "nsid": nsid })).collect();
        return Ok(pretty(&json!({ "nsid_list": list })));
    }
    let lines = found.iter().enumerate();
    Ok(lines
        .map(|(index, nsid)| format!("[{index:>4}]:{nsid:#x}\n"))
        .collect())
}

/// The subsystem of the drive, and the path to it.
pub(super) fn subsystems(session: &Session) -> String {
    let controller = &session.controller.identity().controller;
    let nqn = controller.subnqn.as_str().unwrap_or_default();
    let cntlid = controller.cntlid.get();
    let (transport, address) = match &session.address {
        Address::Tcp(tcp) => ("tcp", format!("traddr={},trsvcid={}", tcp.host, tcp.port)),
        Address::Linux(linux) => ("linux", linux.path.clone()),
        Address::Pcie(pcie) => ("pcie", pcie.function.to_string()),
    };
    if session.json {
        let path = json!({
            "Transport": transport, "Address": address, "State": "live", "CNTLID": cntlid,
        });
        return pretty(&json!({ "Subsystems": [{ "NQN": nqn, "Paths": [path] }] }));
    }
    format!("NQN={nqn}\n\\\n +- {transport} {address} live, cntlid:{cntlid:#x}\n")
}
