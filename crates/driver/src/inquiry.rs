//! What a controller says of itself and its namespaces, whatever the transport.

use zonelab_device::Buf;
use zonelab_nvme::Status;
use zonelab_nvme::command::{Identify, ZoneManagementReceive};
use zonelab_nvme::identify::{
    Cns, CommandSet, ControllerType, IdentifyController, IdentifyControllerZns, IdentifyNamespace,
    IdentifyNamespaceZns, NamespaceList,
};
use zonelab_nvme::property::Capabilities;
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use zonelab_nvme::zns::{ReportHeader, ZoneDescriptor};

use crate::error::DriverError;
use crate::identity::{Identity, Namespace, command_set};
use crate::socket::Reply;
use crate::tcp::Transfer;

/// Bytes of every structure that Identify returns.
pub(crate) const IDENTIFY_BYTES: usize = 4096;

/// Most namespaces of a controller: each is asked for what it is.
const MAX_NAMESPACES: usize = 4096;

/// A queue that takes one command and waits for its end.
pub(crate) trait Asks {
    /// Sends a command, whose identifier and data pointer are filled in, and waits
    /// for its end. `what` is what messages call it. The status is the caller's to
    /// look at.
    fn ask(
        &mut self,
        what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError>;
}

/// One structure of Identify.
pub(crate) fn identify<T>(
    drive: &mut impl Asks,
    nsid: u32,
    cns: Cns,
    csi: CommandSet,
) -> Result<Box<T>, DriverError>
where
    T: FromBytes + IntoBytes + KnownLayout + Immutable,
{
    let entry = Identify::new(nsid, cns, csi).to_entry()?;
    let buf = Buf::zeroed(IDENTIFY_BYTES);
    let reply = drive.ask("Identify", entry, Transfer::ToHost(buf))?;
    let buf = whole("Identify", reply.ok("Identify")?)?;
    T::read_from_bytes(&buf)
        .map(Box::new)
        .map_err(|_| DriverError::Unusable {
            field: "an Identify structure of bytes:",
            value: buf.len() as u64,
            needs: "4096",
        })
}

/// Controller, namespaces, and what is zoned of them.
pub(crate) fn identity(drive: &mut impl Asks, cap: Capabilities) -> Result<Identity, DriverError> {
    let (nvm, zns) = (CommandSet::NVM, CommandSet::ZNS);
    let controller: Box<IdentifyController> = identify(drive, 0, Cns::CONTROLLER, nvm)?;
    let mut identity = Identity {
        cap,
        controller,
        zoned: None,
        namespaces: Vec::new(),
    };
    if identity.controller.cntrltype == ControllerType::DISCOVERY {
        return Ok(identity);
    }
    let mut after = 0;
    loop {
        let list: Box<NamespaceList> = identify(drive, after, Cns::ACTIVE_NAMESPACES, nvm)?;
        let mut found = 0;
        for nsid in list.iter() {
            if nsid <= after {
                return Err(DriverError::Unusable {
                    field: "in its list of namespaces NSID",
                    value: nsid.into(),
                    needs: "rising ones",
                });
            }
            if identity.namespaces.len() == MAX_NAMESPACES {
                return Err(DriverError::Unusable {
                    field: "behind 4096 namespaces NSID",
                    value: nsid.into(),
                    needs: "at most as many",
                });
            }
            let namespace = identify_namespace(drive, nsid, cap)?;
            identity.namespaces.push(namespace);
            after = nsid;
            found += 1;
        }
        if found < list.nsid.len() {
            break;
        }
    }
    if identity
        .namespaces
        .iter()
        .any(|namespace| namespace.zns.is_some())
    {
        identity.zoned = Some(identify::<IdentifyControllerZns>(
            drive,
            0,
            Cns::COMMAND_SET_CONTROLLER,
            zns,
        )?);
    }
    Ok(identity)
}

/// One namespace.
pub(crate) fn identify_namespace(
    drive: &mut impl Asks,
    nsid: u32,
    cap: Capabilities,
) -> Result<Namespace, DriverError> {
    let nvm: Box<IdentifyNamespace> = identify(drive, nsid, Cns::NAMESPACE, CommandSet::NVM)?;
    let mut csi = CommandSet::NVM;
    if cap.css_io() {
        let cns = Cns::NAMESPACE_ID_DESCRIPTORS;
        let bytes = identify::<[u8; IDENTIFY_BYTES]>(drive, nsid, cns, CommandSet::NVM)?;
        csi = command_set(&bytes[..]);
    }
    let zns = match csi {
        CommandSet::ZNS => Some(identify::<IdentifyNamespaceZns>(
            drive,
            nsid,
            Cns::COMMAND_SET_NAMESPACE,
            csi,
        )?),
        _ => None,
    };
    Ok(Namespace {
        nsid,
        csi,
        nvm,
        zns,
        zone_capacity_lbas: None,
    })
}

/// The buffer of a reply that moved all of it.
pub(crate) fn whole(what: &'static str, reply: Reply) -> Result<Buf, DriverError> {
    let buf = reply.data.unwrap_or_else(|| Buf::zeroed(0));
    if reply.transferred as usize == buf.len() {
        return Ok(buf);
    }
    Err(DriverError::Unusable {
        field: match what {
            "Identify" => "in answer to Identify bytes of data:",
            "Zone Management Receive" => "in answer to Zone Management Receive bytes of data:",
            _ => "in answer to Get Log Page bytes of data:",
        },
        value: reply.transferred.into(),
        needs: "as many as it asked for",
    })
}

/// Capacity of the first zone in blocks; `None` if there is no zone, or another host has
/// reserved them: a host that may not look at zones may still see who that is.
pub(crate) fn zone_capacity(queue: &mut impl Asks, nsid: u32) -> Result<Option<u64>, DriverError> {
    let bytes = size_of::<ReportHeader>() + size_of::<ZoneDescriptor>();
    let report = ZoneManagementReceive {
        partial: true,
        ..ZoneManagementReceive::new(nsid, 0, bytes as u64 / 4)
    };
    let what = "Zone Management Receive";
    let transfer = Transfer::ToHost(Buf::zeroed(bytes));
    let reply = queue.ask(what, report.to_entry()?, transfer)?;
    if reply.entry.status.status() == Status::RESERVATION_CONFLICT {
        return Ok(None);
    }
    let buf = whole(what, reply.ok(what)?)?;
    let Ok((header, rest)) = ReportHeader::read_from_prefix(&buf) else {
        return Ok(None);
    };
    let zone = ZoneDescriptor::read_from_prefix(rest).ok();
    Ok(zone
        .filter(|_| header.nr_zones.get() > 0)
        .map(|(zone, _)| zone.zcap.get()))
}

#[cfg(test)]
mod tests {
    use zonelab_nvme::queue::CompletionEntry;
    use zonelab_nvme::zerocopy::FromZeros;

    use super::*;

    /// A controller whose list of namespaces rises by so much, and never ends.
    struct Endless {
        step: u32,
        asked: u32,
    }

    impl Asks for Endless {
        fn ask(
            &mut self,
            _what: &'static str,
            entry: SubmissionEntry,
            transfer: Transfer,
        ) -> Result<Reply, DriverError> {
            self.asked += 1;
            let Transfer::ToHost(mut buf) = transfer else {
                panic!("an inquiry reads");
            };
            let cns = Cns(entry.cdw10.get() as u8);
            if cns == Cns::ACTIVE_NAMESPACES {
                for (place, nsid) in buf.chunks_exact_mut(4).zip(1..) {
                    let nsid = entry.nsid.get().saturating_add(nsid * self.step);
                    place.copy_from_slice(&nsid.to_le_bytes());
                }
            }
            Ok(Reply {
                entry: CompletionEntry::new_zeroed(),
                transferred: buf.len() as u32,
                data: Some(buf),
            })
        }
    }

    #[test]
    fn a_list_of_namespaces_without_end_is_given_up() {
        for (step, says) in [(1, "behind 4096 namespaces"), (1 << 20, "rising ones")] {
            let mut drive = Endless { step, asked: 0 };
            let cap = Capabilities::new_zeroed();
            let error = identity(&mut drive, cap).expect_err("it has no end");
            assert!(error.to_string().contains(says), "{error}");
            assert!(drive.asked < 10_000, "{} commands", drive.asked);
        }
    }
}
