//! What a controller says of itself and its namespaces.

use zonelab_device::{CopyLimits, DeviceInfo, NamespaceInfo, ZonedInfo, ZrwaInfo};
use zonelab_nvme::identify::{
    CommandSet, IdentifyController, IdentifyControllerZns, IdentifyNamespace, IdentifyNamespaceZns,
    NamespaceIdHeader, NamespaceIdType,
};
use zonelab_nvme::property::Capabilities;
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::zerocopy::FromBytes;

use crate::error::DriverError;

/// Namespaces that [`DeviceInfo`] lists: it lists by identifier, so that a
/// single large one would make it long.
const MAX_LISTED_NSID: u32 = 1024;

/// Most zones of a namespace: hosts keep some bytes of each.
const MAX_ZONES: u64 = 1 << 24;

/// Bytes of a queue entry in a capsule, in the unit of IOCCSZ and IORCSZ.
const CAPSULE_UNIT_BYTES: u32 = 16;

/// A namespace as Identify describes it.
#[derive(Debug, Clone)]
pub struct Namespace {
    /// Its identifier.
    pub nsid: u32,
    /// Its command set.
    pub csi: CommandSet,
    /// The structure that all namespaces of blocks have.
    pub nvm: Box<IdentifyNamespace>,
    /// What a zoned one has besides.
    pub zns: Option<Box<IdentifyNamespaceZns>>,
    /// Capacity of its first zone in blocks (ZCAP), if it is zoned.
    pub zone_capacity_lbas: Option<u64>,
}

impl Namespace {
    /// Size of a block in bytes.
    ///
    /// # Errors
    /// Its format has none that is valid.
    pub fn lba_bytes(&self) -> Result<u32, DriverError> {
        let format = self.nvm.format();
        format.block_bytes().ok_or(DriverError::Unusable {
            field: "LBADS",
            value: format.lbads().into(),
            needs: "9 to 31",
        })
    }

    /// Zone size in blocks, if it is zoned and the size is not 0.
    #[must_use]
    pub fn zone_size_lbas(&self) -> Option<u64> {
        let zns = self.zns.as_ref()?;
        let format = zns.lbafe.get(usize::from(self.format_index()))?;
        Some(format.zsze.get()).filter(|zsze| *zsze != 0)
    }

    /// Bytes of the descriptor extension of each zone (ZDES); 0: there are none.
    #[must_use]
    pub fn zone_extension_bytes(&self) -> u32 {
        let zns = self.zns.as_ref();
        let lbafe = zns.and_then(|zns| zns.lbafe.get(usize::from(self.format_index())));
        lbafe.map_or(0, |lbafe| u32::from(lbafe.zdes) * 64)
    }

    /// Which LBA format it has.
    #[must_use]
    pub fn format_index(&self) -> u8 {
        match u16::from(self.nvm.nlbaf_z) + 1 + u16::from(self.nvm.nulbaf) {
            0..=16 => self.nvm.flbas.index_low(),
            _ => self.nvm.flbas.index(),
        }
    }

    fn zoned(&self) -> Result<Option<ZonedInfo>, DriverError> {
        let Some(zns) = &self.zns else {
            return Ok(None);
        };
        let zone_size_lbas = self.zone_size_lbas().ok_or(DriverError::Unusable {
            field: "ZSZE",
            value: 0,
            needs: "at least 1",
        })?;
        let zones = self.nvm.nsze.get() / zone_size_lbas;
        let unusable = |field, value, needs| DriverError::Unusable {
            field,
            value,
            needs,
        };
        if zones == 0 {
            return Err(unusable("ZSZE", zone_size_lbas, "at most NSZE"));
        }
        let zones = u32::try_from(zones)
            .ok()
            .filter(|zones| u64::from(*zones) <= MAX_ZONES)
            .ok_or_else(|| unusable("NSZE / ZSZE", zones, "at most 16777216 zones"))?;
        let zone_capacity_lbas = self.zone_capacity_lbas.unwrap_or(zone_size_lbas);
        if !(1..=zone_size_lbas).contains(&zone_capacity_lbas) {
            return Err(unusable("ZCAP", zone_capacity_lbas, "1 to ZSZE"));
        }
        let (area, granularity) = (u32::from(zns.zrwasz.get()), u32::from(zns.zrwafg.get()));
        if zns.ozcs.zrwasup() && !(1..=zone_size_lbas).contains(&area.into()) {
            return Err(unusable("ZRWASZ", area.into(), "1 to ZSZE"));
        }
        if zns.ozcs.zrwasup() && !(1..=area).contains(&granularity) {
            return Err(unusable("ZRWAFG", granularity.into(), "1 to ZRWASZ"));
        }
        Ok(Some(ZonedInfo {
            zones,
            zone_size_lbas,
            zone_capacity_lbas,
            max_active: zns.max_active(),
            max_open: zns.max_open(),
            read_across_zones: zns.ozcs.razb(),
            descriptor_extension_bytes: self.zone_extension_bytes(),
            zrwa: zns.ozcs.zrwasup().then(|| ZrwaInfo {
                size_lbas: area,
                flush_granularity_lbas: granularity,
                max_areas: zns.max_zrwa(),
                explicit_flush: zns.zrwacap.expflushsup(),
            }),
        }))
    }

    fn copy(&self) -> Option<CopyLimits> {
        let limits = CopyLimits {
            max_ranges: u16::from(self.nvm.msrc_z) + 1,
            max_range_lbas: self.nvm.mssrl.get(),
            max_lbas: self.nvm.mcl.get(),
        };
        (limits.max_range_lbas > 0 && limits.max_lbas > 0).then_some(limits)
    }

    fn info(&self, has_copy: bool) -> Result<NamespaceInfo, DriverError> {
        let (lba_bytes, size_lbas) = (self.lba_bytes()?, self.nvm.nsze.get());
        // So that no address and no number of bytes of it is beyond what hosts count with.
        if size_lbas > i64::MAX as u64 / u64::from(lba_bytes) {
            return Err(DriverError::Unusable {
                field: "NSZE",
                value: size_lbas,
                needs: "less than 2^63 bytes",
            });
        }
        Ok(NamespaceInfo {
            placements: None,
            lba_bytes,
            size_lbas,
            zoned: self.zoned()?,
            copy: self.copy().filter(|_| has_copy),
        })
    }
}

/// A controller as it describes itself.
#[derive(Debug, Clone)]
pub struct Identity {
    /// CAP.
    pub cap: Capabilities,
    /// The controller structure.
    pub controller: Box<IdentifyController>,
    /// The zoned controller structure, if the controller has it.
    pub zoned: Option<Box<IdentifyControllerZns>>,
    /// Its active namespaces, in order.
    pub namespaces: Vec<Namespace>,
}

impl Identity {
    /// Checks what a host on a fabric depends on.
    pub(crate) fn check_fabrics(&self) -> Result<(), DriverError> {
        let icdoff = self.controller.icdoff.get();
        let unusable = |field, value: u32, needs| DriverError::Unusable {
            field,
            value: value.into(),
            needs,
        };
        let ioccsz = self.controller.ioccsz.get();
        let entry = size_of::<SubmissionEntry>() as u32 / CAPSULE_UNIT_BYTES;
        if ioccsz < entry {
            return Err(unusable("IOCCSZ", ioccsz, "at least 4"));
        }
        match icdoff {
            0 => Ok(()),
            _ => Err(unusable("ICDOFF", icdoff.into(), "0")),
        }
    }

    /// Bytes of data that an I/O command may carry in its capsule.
    #[must_use]
    pub fn in_capsule_bytes(&self) -> u32 {
        let capsule = self
            .controller
            .ioccsz
            .get()
            .saturating_mul(CAPSULE_UNIT_BYTES);
        capsule.saturating_sub(size_of::<SubmissionEntry>() as u32)
    }

    /// `2^exponent` smallest memory pages in bytes; 0 stands for no limit.
    fn transfer_limit(&self, exponent: u8) -> u32 {
        let shift = 12 + u32::from(self.cap.mpsmin()) + u32::from(exponent);
        match exponent {
            0 => u32::MAX,
            _ => 1_u32.checked_shl(shift).unwrap_or(u32::MAX),
        }
    }

    /// Largest transfer of one command in bytes (MDTS).
    #[must_use]
    pub fn max_transfer_bytes(&self) -> u32 {
        self.transfer_limit(self.controller.mdts)
    }

    /// Largest zone append in bytes (ZASL); as MDTS if it is 0.
    #[must_use]
    pub fn max_append_bytes(&self) -> u32 {
        match self.zoned.as_ref().map_or(0, |zoned| zoned.zasl) {
            0 => self.max_transfer_bytes(),
            zasl => self.transfer_limit(zasl),
        }
    }

    /// The namespace of that identifier.
    #[must_use]
    pub fn namespace(&self, nsid: u32) -> Option<&Namespace> {
        self.namespaces
            .iter()
            .find(|namespace| namespace.nsid == nsid)
    }

    /// What workloads plan with. Identifiers without a namespace are there as
    /// namespaces of no blocks; those above 1024 are left out.
    ///
    /// # Errors
    /// A namespace has no valid block or zone size.
    pub fn device_info(&self) -> Result<DeviceInfo, DriverError> {
        let listed = || {
            let low = |namespace: &&Namespace| namespace.nsid <= MAX_LISTED_NSID;
            self.namespaces.iter().filter(low)
        };
        let last = listed().map(|namespace| namespace.nsid).max().unwrap_or(0);
        let has_copy = self.controller.oncs.copy();
        let none = NamespaceInfo {
            placements: None,
            lba_bytes: 512,
            size_lbas: 0,
            zoned: None,
            copy: None,
        };
        let mut namespaces = vec![none; last as usize];
        for namespace in listed() {
            let index = (namespace.nsid as usize).checked_sub(1);
            if let Some(place) = index.and_then(|index| namespaces.get_mut(index)) {
                *place = namespace.info(has_copy)?;
            }
        }
        Ok(DeviceInfo {
            model: self.controller.mn.as_str().unwrap_or_default().to_owned(),
            namespaces,
            max_transfer_bytes: self.max_transfer_bytes(),
            max_append_bytes: self.max_append_bytes(),
            has_volatile_cache: self.controller.vwc.present(),
        })
    }
}

/// The command set that a list of namespace identification descriptors names;
/// the NVM command set if it names none.
pub(crate) fn command_set(mut descriptors: &[u8]) -> CommandSet {
    while let Ok((header, rest)) = NamespaceIdHeader::read_from_prefix(descriptors) {
        let Some(value) = rest
            .get(..usize::from(header.nidl))
            .filter(|v| !v.is_empty())
        else {
            break;
        };
        if let (NamespaceIdType::CSI, &[csi]) = (header.nidt, value) {
            return CommandSet(csi);
        }
        descriptors = rest.get(value.len()..).unwrap_or_default();
    }
    CommandSet::NVM
}
