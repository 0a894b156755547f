//! Identify: what a controller says about itself and its namespaces.

use zonelab_device::{Buf, NamespaceId, NamespaceInfo, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::command::Identify;
use zonelab_nvme::identify::{
    Cns, CommandSet, CommandSetCombinations, CommandSetVector, ControllerAttributes,
    ControllerList, ControllerType, EntrySizes, FirmwareUpdates, FormatAttributes, FormattedLba,
    IdentifyController, IdentifyControllerNvm, IdentifyControllerZns, IdentifyNamespace,
    IdentifyNamespaceIndependent, IdentifyNamespaceZns, LbaFormat, LogPageAttributes, MultiPath,
    NamespaceIdHeader, NamespaceIdType, NamespaceList, NamespaceStatus, NvmOptions, OptionalAdmin,
    SglSupport, VolatileWriteCache, ZonedOptions, ZrwaCapability,
};
use zonelab_nvme::zerocopy::little_endian::U128;
use zonelab_nvme::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use zonelab_nvme::zns::ZoneState;

use super::events::REQUESTS;
use super::failure::{Failure, byte};
use super::features::{KEEP_ALIVE_GRANULARITY_MS, supported_events};
use super::format::{FORMATS, formatted};
use super::hosts::NamespaceAccess;
use super::names::OUI;
use super::placement::ENDURANCE_GROUP;
use super::plan::DEALLOCATED_RANGES;
use super::properties::version;
use super::settings::{ADMIN_QUEUE_ENTRIES, DISCOVERY_TRANSFER_BYTES, PAGE_BYTES};
use super::state::{ERROR_ENTRIES, Kind};
use super::{Answer, Layer, Subsystem};

/// Bytes of every structure.
const BYTES: usize = 4096;
/// Most Abort commands at a time, zero based. None ever waits.
const ABORT_LIMIT_Z: u8 = 3;
/// The granularity of KAS.
const KAS_UNIT_MS: u32 = 100;

/// NMIC: the namespace may be attached to several controllers.
const SHARED: u8 = 1 << 0;
/// NSATTR: the namespace is write protected.
const WRITE_PROTECTED: u8 = 1 << 0;
/// OCFS: source ranges in descriptor format 0.
const COPY_FORMAT_0: u16 = 1 << 0;
/// DLFEAT: all bytes of a deallocated block read as zero.
const READS_ZERO: u8 = 0b001;
/// DLFEAT: Write Zeroes with DEAC deallocates.
const WRITE_ZEROES_DEALLOCATES: u8 = 1 << 3;

/// Base-2 logarithm of a limit in units of the smallest page, rounded down.
fn page_power(bytes: u32) -> u8 {
    // Fits: it is less than 32.
    (bytes / PAGE_BYTES).checked_ilog2().unwrap_or(0) as u8
}

/// `buf` as the structure that it is to hold.
fn structure<T: FromBytes + IntoBytes + KnownLayout + Immutable>(buf: &mut Buf) -> &mut T {
    T::mut_from_bytes(buf).expect("all structures have one size and no alignment")
}

impl<L: Layer> Subsystem<L> {
    /// Identify.
    pub(super) fn identify(
        &mut self,
        slot: u32,
        command: Identify,
        data_len: u32,
    ) -> Result<Answer, Failure> {
        if data_len as usize != BYTES {
            return Err(Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8));
        }
        let mut buf = self.pool.take_zeroed(BYTES);
        let filled = match self.controllers.at(slot).kind {
            Kind::Io => self.identify_io(slot, command, &mut buf),
            Kind::Discovery if command.cns == Cns::CONTROLLER => {
                self.identify_controller(slot, structure(&mut buf));
                Ok(())
            }
            Kind::Discovery => Err(Failure::field(byte::CDW10)),
        };
        match filled {
            Ok(()) => Ok(Answer::data(buf)),
            Err(failure) => {
                self.pool.give(buf);
                Err(failure)
            }
        }
    }

    fn identify_io(&mut self, slot: u32, command: Identify, buf: &mut Buf) -> Result<(), Failure> {
        let nsid = command.nsid;
        match command.cns {
            // One that this host has not is inactive, and then all is zero.
            Cns::NAMESPACE | Cns::ALLOCATED_NAMESPACE
                if (1..=self.last_nsid(slot)).contains(&nsid)
                    && self.rights(slot, nsid).is_none() =>
            {
                Ok(())
            }
            Cns::NAMESPACE | Cns::ALLOCATED_NAMESPACE => {
                self.identify_namespace((slot, nsid), structure(buf))
            }
            Cns::CONTROLLER => {
                self.identify_controller(slot, structure(buf));
                Ok(())
            }
            Cns::ACTIVE_NAMESPACES | Cns::ALLOCATED_NAMESPACES => {
                self.list_namespaces((slot, nsid), |_| true, structure(buf))
            }
            Cns::NAMESPACE_ID_DESCRIPTORS => self.namespace_identifiers((slot, nsid), buf),
            Cns::COMMAND_SET_NAMESPACE | Cns::COMMAND_SET_ALLOCATED_NAMESPACE => {
                self.identify_namespace_of((slot, nsid), command.csi, buf)
            }
            Cns::COMMAND_SET_CONTROLLER => self.identify_controller_of(command.csi, buf),
            Cns::COMMAND_SET_ACTIVE_NAMESPACES | Cns::COMMAND_SET_ALLOCATED_NAMESPACES => {
                let csi = command.csi;
                check_command_set(csi)?;
                self.list_namespaces((slot, nsid), |of| command_set(of) == csi, structure(buf))
            }
            Cns::COMMAND_SET_INDEPENDENT_NAMESPACE => {
                self.info((slot, nsid))?;
                let out: &mut IdentifyNamespaceIndependent = structure(buf);
                out.nstat = NamespaceStatus::default().with_nrdy(true);
                out.nsattr = self.attributes((slot, nsid));
                out.nmic = self.sharing();
                out.rescap = self.reservation_capabilities(nsid);
                if self.has_placement() {
                    out.endgid = ENDURANCE_GROUP.into();
                }
                Ok(())
            }
            Cns::ATTACHED_CONTROLLERS => {
                self.info((slot, nsid))?;
                self.list_controllers((slot, command.cntid), structure(buf));
                Ok(())
            }
            Cns::CONTROLLERS => {
                self.list_controllers((slot, command.cntid), structure(buf));
                Ok(())
            }
            Cns::ENDURANCE_GROUPS => {
                self.list_endurance_groups(command.cns_specific_id, structure(buf))
            }
            Cns::COMMAND_SETS => {
                if command.cntid != u16::MAX && u32::from(command.cntid) != slot + 1 {
                    return Err(Failure::field(byte::CDW10 + 2));
                }
                let out: &mut CommandSetCombinations = structure(buf);
                out.vectors[0] = CommandSetVector::default().with_nvm(true).with_zns(true);
                Ok(())
            }
            _ => Err(Failure::field(byte::CDW10)),
        }
    }

    /// What the drive says of a namespace that the host of a controller has.
    fn info(&self, (slot, nsid): (u32, u32)) -> Result<&NamespaceInfo, Failure> {
        let index = nsid.wrapping_sub(1) as usize;
        let info = self.shown().namespaces.get(index);
        let info = info.filter(|_| self.rights(slot, nsid).is_some());
        info.ok_or(Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID))
    }

    /// NMIC: whether namespaces may be attached to several controllers.
    const fn sharing(&self) -> u8 {
        match self.settings.is_shared {
            true => SHARED,
            false => 0,
        }
    }

    /// NSATTR: whether the host of a controller may write.
    fn attributes(&self, (slot, nsid): (u32, u32)) -> u8 {
        match self.rights(slot, nsid) {
            Some(NamespaceAccess::ReadOnly) => WRITE_PROTECTED,
            _ => 0,
        }
    }

    fn identify_controller(&mut self, slot: u32, out: &mut IdentifyController) {
        let controller = self.controllers.at(slot);
        let kind = controller.kind;
        out.sn = self.texts.sn;
        out.mn = self.texts.mn;
        out.fr = self.texts.fr;
        out.ieee = [OUI[2], OUI[1], OUI[0]];
        // Fits: there are fewer controllers than identifiers.
        out.cntlid = ((slot + 1) as u16).into();
        out.ver = version();
        out.oaes = supported_events(kind);
        out.ctratt = ControllerAttributes::default()
            .with_host_id_128(true)
            .with_tbkas(true)
            .with_rhii(kind == Kind::Io)
            .with_endurance_groups(kind == Kind::Io && self.has_placement())
            .with_fdps(kind == Kind::Io && self.has_placement());
        out.mdts = page_power(match kind {
            Kind::Io => self.max_transfer_bytes,
            Kind::Discovery => self.max_transfer_bytes.min(DISCOVERY_TRANSFER_BYTES),
        });
        out.aerl_z = REQUESTS as u8 - 1;
        out.elpe_z = ERROR_ENTRIES as u8 - 1;
        out.kas = ((KEEP_ALIVE_GRANULARITY_MS / KAS_UNIT_MS) as u16).into();
        out.lpa = LogPageAttributes::default()
            .with_command_effects(kind == Kind::Io)
            .with_extended(true);
        // A transport data block, or an offset into the capsule; any alignment.
        out.sgls = SglSupport::default()
            .with_support(1)
            .with_offset(true)
            .with_transport(true);
        out.msdbd = 1;
        match kind {
            Kind::Io => self.identify_io_controller(slot, out),
            Kind::Discovery => {
                out.cntrltype = ControllerType::DISCOVERY;
                out.subnqn = zonelab_nvme::identify::Nqn::new(zonelab_nvme::fabrics::DISCOVERY_NQN)
                    .unwrap_or(self.texts.subnqn);
                out.maxcmd = ADMIN_QUEUE_ENTRIES.into();
            }
        }
    }

    /// What only a controller with namespaces has.
    fn identify_io_controller(&self, slot: u32, out: &mut IdentifyController) {
        let bytes = self.capacity_bytes(slot);
        let limits = self.settings.limits;
        out.cntrltype = ControllerType::IO;
        out.cmic = MultiPath::default().with_controllers(self.settings.is_shared);
        out.oacs = OptionalAdmin::default().with_format_nvm(self.may_format(slot));
        out.acl_z = ABORT_LIMIT_Z;
        out.frmw = FirmwareUpdates::default()
            .with_slot_1_read_only(true)
            .with_slots(1);
        out.wctemp = 343.into();
        out.cctemp = 353.into();
        out.tnvmcap = U128::new(bytes);
        out.sqes = EntrySizes::default().with_min(6).with_max(6);
        out.cqes = EntrySizes::default().with_min(4).with_max(4);
        out.maxcmd = limits.queue_depth.into();
        out.nn = self.last_nsid(slot).into();
        out.mnan = out.nn;
        out.oncs = NvmOptions::default()
            .with_compare(true)
            .with_dataset_management(true)
            .with_write_zeroes(true)
            .with_save_select(true)
            .with_reservations(true)
            .with_verify(true)
            .with_copy(self.has_copy());
        if self.has_copy() {
            out.ocfs = COPY_FORMAT_0.into();
        }
        out.fna = FormatAttributes::default()
            .with_format_all(true)
            .with_erase_all(true);
        out.vwc = VolatileWriteCache::default()
            .with_present(self.has_volatile_cache())
            .with_flush_all(3);
        if self.has_placement() {
            out.endgidmax = ENDURANCE_GROUP.into();
            out.megcap = U128::new(bytes);
        }
        out.subnqn = self.texts.subnqn;
        out.ioccsz = ((64 + limits.in_capsule_bytes) / 16).into();
        out.iorcsz = 1.into();
    }

    /// What can be written of all namespaces that a host has, in bytes.
    pub(super) fn capacity_bytes(&self, slot: u32) -> u128 {
        let capacity =
            |of: &NamespaceInfo| u128::from(capacity_lbas(of)) * u128::from(of.lba_bytes);
        self.visible(slot).map(|(_, of)| capacity(of)).sum()
    }

    /// Whether a namespace has Copy.
    pub(super) fn has_copy(&self) -> bool {
        self.namespaces.iter().any(|of| of.has_copy)
    }

    /// What of a namespace of `size_lbas` blocks has flash at a time (NCAP), and what
    /// of that is in use (NUSE): the rest is for whole zones that are empty. All namespaces
    /// share the flash; to a host with rules a namespace shows its own zones alone.
    fn thin_lbas(&self, nsid: u32, size_lbas: u64) -> (u64, u64) {
        let drive = self.drive.drive();
        let (config, zone_lbas) = (drive.config(), drive.config().zones.size_lbas);
        if !config.allocation.thin || !self.shows_zones() {
            return (size_lbas, size_lbas);
        }
        let backed = u64::from(config.mapping.physical_zones(config.zones.count));
        let capacity_lbas = size_lbas.min(backed * zone_lbas);
        if self.has_rules() {
            let zones = config.zones_of(NamespaceId(nsid)).unwrap_or_default();
            let is_used = |zone: &u32| drive.zones().state(ZoneId(*zone)) != ZoneState::EMPTY;
            let used_lbas = zones.filter(is_used).count() as u64 * zone_lbas;
            return (capacity_lbas, used_lbas.min(capacity_lbas));
        }
        let left_lbas = u64::from(drive.zones_left()) * zone_lbas;
        (capacity_lbas, capacity_lbas.saturating_sub(left_lbas))
    }

    fn identify_namespace(
        &self,
        (slot, nsid): (u32, u32),
        out: &mut IdentifyNamespace,
    ) -> Result<(), Failure> {
        let info = self.info((slot, nsid))?;
        out.nsattr = self.attributes((slot, nsid));
        out.nmic = self.sharing();
        out.rescap = self.reservation_capabilities(nsid);
        let names = self.namespaces[nsid as usize - 1].names;
        let config = self.drive.drive().config();
        out.nsze = info.size_lbas.into();
        let (backed_lbas, used_lbas) = self.thin_lbas(nsid, info.size_lbas);
        out.ncap = backed_lbas.into();
        out.nuse = used_lbas.into();
        out.nsfeat = out
            .nsfeat
            .with_thinp(config.allocation.thin && self.shows_zones());
        out.nvmcap = U128::new(u128::from(capacity_lbas(info)) * u128::from(info.lba_bytes));
        // Blocks that are deallocated read as zero. In a zone nothing is.
        out.dlfeat = match info.zoned {
            Some(_) => READS_ZERO,
            None => READS_ZERO | WRITE_ZEROES_DEALLOCATES,
        };
        if let Some(copy) = info.copy {
            out.mssrl = copy.max_range_lbas.into();
            out.mcl = copy.max_lbas.into();
            // Fits: at most 256 less one.
            out.msrc_z = (copy.max_ranges - 1) as u8;
        }
        if self.has_placement() {
            out.endgid = ENDURANCE_GROUP.into();
        }
        out.nguid = names.nguid;
        out.eui64 = names.eui64;
        out.nlbaf_z = FORMATS.len() as u8 - 1;
        for ((index, lba_bytes), lbaf) in (0..).zip(FORMATS).zip(&mut out.lbaf) {
            if lba_bytes == info.lba_bytes {
                out.flbas = FormattedLba::default().with_index(index);
            }
            let is_possible = self.may_format(slot) && formatted(config, lba_bytes).is_some();
            if lba_bytes == info.lba_bytes || is_possible {
                *lbaf = LbaFormat::default().with_lbads(lba_bytes.ilog2() as u8);
            }
        }
        Ok(())
    }

    fn identify_namespace_of(
        &self,
        (slot, nsid): (u32, u32),
        csi: CommandSet,
        buf: &mut Buf,
    ) -> Result<(), Failure> {
        check_command_set(csi)?;
        let info = self.info((slot, nsid))?;
        let zoned = match (csi, info.zoned) {
            // Nothing beyond blocks of data: all zero.
            (CommandSet::NVM, _) => return Ok(()),
            (_, Some(zoned)) => zoned,
            (_, None) => return Err(Failure::bit(Status::INVALID_FIELD, byte::CDW11 + 3, 0)),
        };
        let config = self.drive.drive().config();
        let out: &mut IdentifyNamespaceZns = structure(buf);
        let limit = |most: Option<u32>| most.map_or(IdentifyNamespaceZns::NO_LIMIT, |n| n - 1);
        out.ozcs = ZonedOptions::default()
            .with_razb(zoned.read_across_zones)
            .with_zrwasup(zoned.zrwa.is_some());
        if let Some(zrwa) = zoned.zrwa {
            out.numzrwa_z = limit(zrwa.max_areas).into();
            // Fit: a profile with larger areas is refused.
            out.zrwafg = (zrwa.flush_granularity_lbas as u16).into();
            out.zrwasz = (zrwa.size_lbas as u16).into();
            out.zrwacap = ZrwaCapability::default().with_expflushsup(zrwa.explicit_flush);
        }
        out.mar_z = limit(zoned.max_active).into();
        out.mor_z = limit(zoned.max_open).into();
        for (lba_bytes, lbafe) in FORMATS.into_iter().zip(&mut out.lbafe) {
            let zone_lbas = if lba_bytes == info.lba_bytes {
                zoned.zone_size_lbas
            } else if let Some(config) = formatted(config, lba_bytes) {
                config.zones.size_lbas
            } else {
                continue;
            };
            lbafe.zsze = zone_lbas.into();
            lbafe.zdes = (zoned.descriptor_extension_bytes / 64) as u8;
        }
        Ok(())
    }

    fn identify_controller_of(&self, csi: CommandSet, buf: &mut Buf) -> Result<(), Failure> {
        check_command_set(csi)?;
        if csi == CommandSet::NVM {
            let out: &mut IdentifyControllerNvm = structure(buf);
            out.vsl = page_power(self.work_bytes());
            out.wzsl = out.vsl;
            let most = self.deallocation_lbas();
            out.dmrl = DEALLOCATED_RANGES;
            out.dmrsl = u32::try_from(most).unwrap_or(u32::MAX).into();
            out.dmsl = most.into();
        } else {
            let out: &mut IdentifyControllerZns = structure(buf);
            // 0 says that it is as MDTS.
            if self.max_append_bytes < self.max_transfer_bytes {
                out.zasl = page_power(self.max_append_bytes);
            }
        }
        Ok(())
    }

    /// The namespaces after `nsid`.
    fn list_namespaces(
        &self,
        (slot, nsid): (u32, u32),
        is_listed: impl Fn(&NamespaceInfo) -> bool,
        out: &mut NamespaceList,
    ) -> Result<(), Failure> {
        if nsid >= u32::MAX - 1 {
            return Err(Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID));
        }
        let listed = self
            .visible(slot)
            .filter(|(of, info)| *of > nsid && is_listed(info));
        for ((of, _), place) in listed.zip(&mut out.nsid) {
            *place = of.into();
        }
        Ok(())
    }

    /// The controllers from `cntid` on; those of its own, if hosts have rules.
    fn list_controllers(&self, (slot, cntid): (u32, u16), out: &mut ControllerList) {
        let own = self.controllers.get(slot).and_then(|of| of.host);
        let is_own = |host| own.is_some() && host == own;
        let io = self
            .controllers
            .iter()
            .filter(|(_, of)| of.kind == Kind::Io && (!self.has_rules() || is_own(of.host)));
        // Fits: there are fewer controllers than identifiers.
        let listed = io
            .map(|(slot, _)| (slot + 1) as u16)
            .filter(|cntlid| *cntlid >= cntid);
        let mut count = 0;
        for (cntlid, place) in listed.zip(&mut out.cntlid) {
            *place = cntlid.into();
            count += 1;
        }
        out.numids = count.into();
    }

    fn namespace_identifiers(
        &self,
        (slot, nsid): (u32, u32),
        buf: &mut Buf,
    ) -> Result<(), Failure> {
        let info = self.info((slot, nsid))?;
        let names = self.namespaces[nsid as usize - 1].names;
        let csi = [command_set(info).0];
        let descriptors: [(NamespaceIdType, &[u8]); 4] = [
            (NamespaceIdType::EUI64, &names.eui64),
            (NamespaceIdType::NGUID, &names.nguid),
            (NamespaceIdType::UUID, &names.uuid),
            (NamespaceIdType::CSI, &csi),
        ];
        let mut at = 0;
        for (nidt, nid) in descriptors {
            let header = NamespaceIdHeader::new(nidt, nid.len() as u8);
            for part in [header.as_bytes(), nid] {
                buf[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
        }
        Ok(())
    }
}

/// Blocks that can be written.
fn capacity_lbas(info: &NamespaceInfo) -> u64 {
    info.zoned.map_or(info.size_lbas, |zoned| {
        u64::from(zoned.zones) * zoned.zone_capacity_lbas
    })
}

/// The command set of a namespace.
fn command_set(info: &NamespaceInfo) -> CommandSet {
    match info.zoned {
        Some(_) => CommandSet::ZNS,
        None => CommandSet::NVM,
    }
}

/// Whether controllers have the command set.
fn check_command_set(csi: CommandSet) -> Result<(), Failure> {
    if matches!(csi, CommandSet::NVM | CommandSet::ZNS) {
        return Ok(());
    }
    Err(Failure::field(byte::CDW11 + 3))
}
