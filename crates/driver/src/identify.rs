//! What there is to be asked with Identify, for every transport.

use zonelab_device::Buf;
use zonelab_nvme::identify::{
    Cns, CommandSet, ControllerType, IdentifyController, IdentifyControllerZns, IdentifyNamespace,
    IdentifyNamespaceZns, NamespaceList,
};
use zonelab_nvme::property::Capabilities;
use zonelab_nvme::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::DriverError;
use crate::identity::{Identity, Namespace, command_set};

/// Bytes of every structure that Identify returns.
pub(crate) const IDENTIFY_BYTES: usize = 4096;

/// Something that can send Identify and wait for its end.
pub(crate) trait Identifies {
    /// The structure `cns` of 4096 bytes.
    ///
    /// # Errors
    /// The command failed, or the controller is gone.
    fn identify_bytes(&mut self, nsid: u32, cns: Cns, csi: CommandSet) -> Result<Buf, DriverError>;

    /// A structure.
    ///
    /// # Errors
    /// As [`Self::identify_bytes`], or it has not the size of one.
    fn identify<T>(&mut self, nsid: u32, cns: Cns, csi: CommandSet) -> Result<Box<T>, DriverError>
    where
        T: FromBytes + IntoBytes + KnownLayout + Immutable,
    {
        let buf = self.identify_bytes(nsid, cns, csi)?;
        T::read_from_bytes(&buf)
            .map(Box::new)
            .map_err(|_| DriverError::Unusable {
                field: "an Identify structure of bytes:",
                value: buf.len() as u64,
                needs: "4096",
            })
    }

    /// Controller, namespaces, and what is zoned of them.
    ///
    /// # Errors
    /// As [`Self::identify_bytes`], or the list of namespaces does not rise.
    fn identity(&mut self, cap: Capabilities) -> Result<Identity, DriverError> {
        let (nvm, zns) = (CommandSet::NVM, CommandSet::ZNS);
        let controller: Box<IdentifyController> = self.identify(0, Cns::CONTROLLER, nvm)?;
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
            let list: Box<NamespaceList> = self.identify(after, Cns::ACTIVE_NAMESPACES, nvm)?;
            let mut found = 0;
            for nsid in list.iter() {
                if nsid <= after {
                    return Err(DriverError::Unusable {
                        field: "in its list of namespaces NSID",
                        value: nsid.into(),
                        needs: "rising ones",
                    });
                }
                let namespace = self.namespace(nsid, cap)?;
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
            identity.zoned = Some(self.identify::<IdentifyControllerZns>(
                0,
                Cns::COMMAND_SET_CONTROLLER,
                zns,
            )?);
        }
        Ok(identity)
    }

    /// A namespace, by what is said of it.
    ///
    /// # Errors
    /// As [`Self::identify_bytes`].
    fn namespace(&mut self, nsid: u32, cap: Capabilities) -> Result<Namespace, DriverError> {
        let nvm: Box<IdentifyNamespace> = self.identify(nsid, Cns::NAMESPACE, CommandSet::NVM)?;
        let mut csi = CommandSet::NVM;
        if cap.css_io() {
            let cns = Cns::NAMESPACE_ID_DESCRIPTORS;
            let bytes = self.identify::<[u8; IDENTIFY_BYTES]>(nsid, cns, CommandSet::NVM)?;
            csi = command_set(&bytes[..]);
        }
        let zns = match csi {
            CommandSet::ZNS => Some(self.identify::<IdentifyNamespaceZns>(
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
}
