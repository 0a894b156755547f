//! Get Log Page.

use std::net::IpAddr;

use zonelab_device::{Buf, NamespaceId};
use zonelab_nvme::Status;
use zonelab_nvme::command::GetLogPage;
use zonelab_nvme::fabrics::CNTLID_DYNAMIC;
use zonelab_nvme::identify::{Ascii, CommandSet};
use zonelab_nvme::log::{
    ActiveFirmware, AddressFamily, CHANGED_NAMESPACES_OVERFLOW, CommandEffects, CommandEffectsLog,
    CriticalWarning, DiscoveryEntry, DiscoveryHeader, ErrorEntry, LogPageId, SmartLog,
    SubsystemType, SupportedLogPage, TcpSecurity, TransportRequirements, TransportType,
};
use zonelab_nvme::queue::{AdminOpcode, IoOpcode};
use zonelab_nvme::zerocopy::little_endian::U128;
use zonelab_nvme::zerocopy::{FromZeros, IntoBytes};
use zonelab_nvme::zns::{ChangedZoneList, ZoneState};

use super::activity::Operation;
use super::failure::{Failure, byte};
use super::placement::PAGES as PLACEMENT_PAGES;
use super::settings::{ADMIN_QUEUE_ENTRIES, DiscoveryAddress};
use super::state::{ERROR_ENTRIES, Kind};
use super::{Answer, Layer, Subsystem};

/// The temperature of a drive without a thermometer, in kelvins: 25 degrees.
const TEMPERATURE_K: u16 = 298;
/// Per cent of spare capacity: no block ever wears out.
const SPARE_PERCENT: u8 = 100;
const SPARE_THRESHOLD_PERCENT: u8 = 10;
/// Bytes of a data unit: thousands of 512.
const DATA_UNIT_BYTES: u64 = 512_000;
const NS_PER_MINUTE: u64 = 60_000_000_000;

/// Log pages of I/O controllers.
const IO_PAGES: [LogPageId; 8] = [
    LogPageId::SUPPORTED_LOG_PAGES,
    LogPageId::ERROR_INFORMATION,
    LogPageId::SMART,
    LogPageId::FIRMWARE_SLOTS,
    LogPageId::CHANGED_NAMESPACES,
    LogPageId::COMMAND_EFFECTS,
    LogPageId::RESERVATION_NOTIFICATION,
    LogPageId::CHANGED_ZONES,
];

/// Log pages of discovery controllers.
const DISCOVERY_PAGES: [LogPageId; 3] = [
    LogPageId::SUPPORTED_LOG_PAGES,
    LogPageId::ERROR_INFORMATION,
    LogPageId::DISCOVERY,
];

/// What hosts did to some of the namespaces.
#[derive(Copy, Clone, Debug)]
pub(super) struct OwnUse {
    reads: u64,
    pub(super) read_bytes: u64,
    writes: u64,
    pub(super) written_bytes: u64,
    media_errors: u64,
}

impl<L: Layer> Subsystem<L> {
    /// Get Log Page. The part beyond the end of a page is zero.
    pub(super) fn get_log_page(
        &mut self,
        slot: u32,
        get: GetLogPage,
        data_len: u32,
    ) -> Result<Answer, Failure> {
        if !self.pages(slot).any(|page| page == get.lid) {
            return Err(Failure::at(Status::INVALID_LOG_PAGE, byte::CDW10));
        }
        // Offsets are in bytes, of whole dwords.
        if get.ot {
            return Err(Failure::bit(Status::INVALID_FIELD, 58, 7));
        }
        if !get.lpo.is_multiple_of(4) {
            return Err(Failure::field(byte::CDW12));
        }
        let bytes = get.numd * 4;
        if bytes > u64::from(self.max_transfer_bytes) {
            return Err(Failure::bit(Status::INVALID_FIELD, byte::CDW10 + 2, 0));
        }
        if bytes != u64::from(data_len) {
            return Err(Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8));
        }
        let page = self.log_page(slot, &get)?;
        let start = usize::try_from(get.lpo).ok().filter(|at| *at <= page.len());
        let start = start.ok_or(Failure::field(byte::CDW12))?;
        // Fits: it is at most the largest transfer.
        let mut buf: Buf = self.pool.take_zeroed(bytes as usize);
        let part = &page[start..];
        let len = part.len().min(buf.len());
        buf[..len].copy_from_slice(&part[..len]);
        if !get.rae {
            let controller = self.controllers.at(slot);
            controller.events.log_read(get.lid, get.nsid);
            if get.lid == LogPageId::CHANGED_ZONES {
                self.pasts.forget_zones(controller, get.nsid);
            }
        }
        Ok(Answer::data(buf))
    }

    /// The log pages of a controller.
    fn pages(&self, slot: u32) -> impl Iterator<Item = LogPageId> + use<L> {
        let kind = self.controllers.get(slot).map(|of| of.kind);
        let pages: &[LogPageId] = match kind {
            Some(Kind::Discovery) => &DISCOVERY_PAGES,
            _ => &IO_PAGES,
        };
        let has_placement = self.has_placement() && kind == Some(Kind::Io);
        let placement = PLACEMENT_PAGES.iter().filter(move |_| has_placement);
        pages.iter().chain(placement).copied()
    }

    /// A whole log page.
    fn log_page(&mut self, slot: u32, get: &GetLogPage) -> Result<Vec<u8>, Failure> {
        let is_all = matches!(get.nsid, 0 | u32::MAX);
        match get.lid {
            LogPageId::SUPPORTED_LOG_PAGES => Ok(self.supported_pages(slot)),
            LogPageId::ERROR_INFORMATION => Ok(self.error_log(slot)),
            LogPageId::SMART if is_all => Ok(self.smart_log(slot).as_bytes().to_vec()),
            LogPageId::SMART => Err(Failure::field(byte::NSID)),
            LogPageId::FIRMWARE_SLOTS => Ok(self.firmware_slots()),
            LogPageId::CHANGED_NAMESPACES => Ok(self.changed_namespaces(slot)),
            LogPageId::COMMAND_EFFECTS => {
                let formats = self.may_format(slot).then(|| self.has_formats());
                let has = (self.has_copy(), self.has_placement());
                effects(get.csi, formats, has)
            }
            LogPageId::CHANGED_ZONES => self.changed_zones(slot, get.nsid),
            LogPageId::RESERVATION_NOTIFICATION => {
                let page = self.controllers.at(slot).events.take_notification();
                Ok(page.as_bytes().to_vec())
            }
            lid if PLACEMENT_PAGES.contains(&lid) => self.placement_page(slot, get),
            _ => Ok(self.discovery_log()),
        }
    }

    fn supported_pages(&mut self, slot: u32) -> Vec<u8> {
        let mut out = zonelab_nvme::log::SupportedLogPages::new_zeroed();
        for page in self.pages(slot) {
            out.lids[usize::from(page.0)] = SupportedLogPage::default().with_lsupp(true);
        }
        out.as_bytes().to_vec()
    }

    fn error_log(&mut self, slot: u32) -> Vec<u8> {
        let errors = self.pasts.errors(self.controllers.at(slot));
        let mut out: Vec<u8> = errors.iter().flat_map(|e| e.as_bytes().to_vec()).collect();
        out.resize(ERROR_ENTRIES * size_of::<ErrorEntry>(), 0);
        out
    }

    /// Of the conventional namespace of a host that has the least: zones of hosts have no spare.
    fn spare_percent(&self, slot: u32) -> u8 {
        let drive = self.drive.drive();
        let ids = self.visible(slot).map(|(nsid, _)| NamespaceId(nsid));
        let logs = ids.filter_map(|nsid| drive.log_health(nsid));
        let percent = logs.map(|health| health.available_percent()).min();
        percent.unwrap_or(SPARE_PERCENT)
    }

    /// Whether a host can write nothing of what it knows of, at present or any more.
    fn is_read_only(&self, slot: u32) -> bool {
        if self.counters.has_no_room || self.layer.as_ref().is_some_and(L::is_read_only) {
            return true;
        }
        let drive = self.drive.drive();
        if !self.has_rules() {
            return drive.is_read_only();
        }
        let is_lost = |zone| {
            let state = drive.zones().state(zonelab_device::ZoneId(zone));
            matches!(state, ZoneState::READ_ONLY | ZoneState::OFFLINE)
        };
        let mut ids = self.visible(slot).map(|(nsid, _)| NamespaceId(nsid));
        ids.all(|nsid| match drive.log_health(nsid) {
            Some(health) => health.is_read_only,
            None => drive
                .config()
                .zones_of(nsid)
                .is_some_and(|mut of| of.all(is_lost)),
        })
    }

    /// SMART / Health Information. A host with rules finds what became of its own
    /// namespaces; wear, time and losses of power are the drive's.
    pub(super) fn smart_log(&self, slot: u32) -> SmartLog {
        let totals = self.drive.drive().totals();
        let units = |bytes: u64| U128::new(bytes.div_ceil(DATA_UNIT_BYTES).into());
        let count = |count: u64| U128::new(count.into());
        let counters = &self.counters;
        let since = counters
            .busy_since
            .map_or(0, |at| self.now.saturating_sub(at).0);
        let zones = self.drive.drive().zones();
        let is_lost = |zone| {
            let state = zones.state(zonelab_device::ZoneId(zone));
            matches!(state, ZoneState::READ_ONLY | ZoneState::OFFLINE)
        };
        let spare_percent = self.spare_percent(slot);
        let mut out = SmartLog::new_zeroed();
        let is_own = |zone: &u32| {
            let config = self.drive.drive().config();
            let mut ids = self.visible(slot).map(|(nsid, _)| NamespaceId(nsid));
            let holds = |nsid| config.zones_of(nsid).is_some_and(|of| of.contains(zone));
            !self.has_rules() || !self.shows_zones() || ids.any(holds)
        };
        let own = || (0..zones.count()).filter(is_own);
        out.cw = CriticalWarning::default()
            .with_degraded(own().any(is_lost))
            .with_spare(spare_percent < SPARE_THRESHOLD_PERCENT)
            // It says so of all of the media that the host knows of.
            .with_read_only(self.is_read_only(slot));
        out.ctemp = TEMPERATURE_K.into();
        out.avsp = spare_percent;
        out.avspt = SPARE_THRESHOLD_PERCENT;
        out.dur = units(counters.read_bytes + totals.host_read_bytes);
        out.duw = units(counters.written_bytes + totals.host_write_bytes);
        out.hrc = count(counters.reads);
        out.hwc = count(counters.writes);
        out.cbt = count((counters.busy_ns + since) / NS_PER_MINUTE);
        // It was switched on once.
        out.pwrc = count(1 + self.power.cycles);
        out.upl = count(self.power.unsafe_shutdowns);
        out.poh = count(self.now.0 / (60 * NS_PER_MINUTE));
        out.mdie = count(counters.media_errors);
        let controller = self.controllers.get(slot);
        out.neile = count(controller.map_or(0, |of| self.pasts.errors(of).count()));
        if self.has_rules() {
            let own = self.own_use(slot);
            (out.dur, out.hrc) = (units(own.read_bytes), count(own.reads));
            (out.duw, out.hwc) = (units(own.written_bytes), count(own.writes));
            out.mdie = count(own.media_errors);
        }
        out
    }

    /// What hosts did to the namespaces that the host of a controller has.
    pub(super) fn own_use(&self, slot: u32) -> OwnUse {
        let (mut reads, mut writes, mut media_errors) = ((0, 0), (0, 0), 0);
        for (nsid, _) in self.visible(slot) {
            let row = self.activity.tallies().get(nsid as usize);
            let row = row.into_iter().flatten();
            for (operation, tally) in Operation::ALL.into_iter().zip(row) {
                let sums = match operation {
                    Operation::Read | Operation::Compare | Operation::Verify => &mut reads,
                    Operation::Write
                    | Operation::Append
                    | Operation::WriteZeroes
                    | Operation::Copy => &mut writes,
                    _ => continue,
                };
                *sums = (sums.0 + tally.commands - tally.errors, sums.1 + tally.bytes);
            }
            media_errors += self.activity.media_errors(nsid);
        }
        OwnUse {
            reads: reads.0,
            read_bytes: reads.1,
            writes: writes.0,
            written_bytes: writes.1,
            media_errors,
        }
    }

    fn firmware_slots(&self) -> Vec<u8> {
        let mut out = zonelab_nvme::log::FirmwareSlots::new_zeroed();
        out.afi = ActiveFirmware::default().with_active(1);
        out.frs[0] = self.texts.fr;
        out.as_bytes().to_vec()
    }

    fn changed_namespaces(&mut self, slot: u32) -> Vec<u8> {
        let changed = self.controllers.at(slot).events.changed_namespaces();
        let mut out = zonelab_nvme::identify::NamespaceList::new_zeroed();
        if changed.len() > out.nsid.len() {
            out.nsid[0] = CHANGED_NAMESPACES_OVERFLOW.into();
        } else {
            for (nsid, place) in changed.iter().zip(&mut out.nsid) {
                *place = (*nsid).into();
            }
        }
        out.as_bytes().to_vec()
    }

    fn changed_zones(&mut self, slot: u32, nsid: u32) -> Result<Vec<u8>, Failure> {
        let is_zoned = self.namespace(nsid).is_some_and(|of| of.zone_lbas > 0);
        if !is_zoned || self.rights(slot, nsid).is_none() {
            return Err(Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID));
        }
        let mut out = ChangedZoneList::new_zeroed();
        match self.controllers.at(slot).events.changed_zones(nsid) {
            None => out.nrzid = ChangedZoneList::OVERFLOW.into(),
            Some(zones) => {
                // Fits: the list holds 511.
                out.nrzid = (zones.len() as u16).into();
                for (zslba, place) in zones.iter().zip(&mut out.zid) {
                    *place = (*zslba).into();
                }
            }
        }
        Ok(out.as_bytes().to_vec())
    }

    fn discovery_log(&self) -> Vec<u8> {
        let mut header = DiscoveryHeader::new_zeroed();
        header.genctr = self.discovery_generation.into();
        header.numrec = (self.settings.addresses.len() as u64).into();
        let mut out = header.as_bytes().to_vec();
        for (portid, address) in (1..).zip(&self.settings.addresses) {
            out.extend_from_slice(self.discovery_entry(portid, address).as_bytes());
        }
        out
    }

    fn discovery_entry(&self, portid: u16, at: &DiscoveryAddress) -> DiscoveryEntry {
        let mut out = DiscoveryEntry::new_zeroed();
        out.trtype = TransportType::TCP;
        out.adrfam = match at.address {
            IpAddr::V4(_) => AddressFamily::IPV4,
            IpAddr::V6(_) => AddressFamily::IPV6,
        };
        out.subtype = SubsystemType::NVM;
        out.treq = TransportRequirements::default()
            .with_secure_channel(if at.has_tls { 1 } else { 2 })
            .with_disable_sq_flow_control(true);
        if at.has_tls {
            out.tsas.sectype = TcpSecurity::TLS_1_3;
        }
        out.portid = portid.into();
        out.cntlid = CNTLID_DYNAMIC.into();
        out.asqsz = self
            .settings
            .limits
            .queue_depth
            .max(ADMIN_QUEUE_ENTRIES)
            .into();
        // An address and a port are shorter than their fields.
        out.trsvcid = Ascii::new(&at.port.to_string()).unwrap_or_default();
        out.traddr = Ascii::new(&at.address.to_string()).unwrap_or_default();
        out.subnqn = self.texts.subnqn;
        out
    }

    /// Whether Format NVM can change the size of blocks.
    fn has_formats(&self) -> bool {
        let config = self.drive.drive().config();
        let others = super::format::FORMATS
            .into_iter()
            .filter(|bytes| *bytes != config.lba_bytes);
        others
            .into_iter()
            .any(|bytes| super::format::formatted(config, bytes).is_some())
    }
}

/// Commands Supported and Effects, of a command set.
///
/// `formats`: whether Format NVM can change the size of blocks, if there is such a command.
fn effects(
    csi: CommandSet,
    formats: Option<bool>,
    (has_copy, has_placement): (bool, bool),
) -> Result<Vec<u8>, Failure> {
    if !matches!(csi, CommandSet::NVM | CommandSet::ZNS) {
        return Err(Failure::field(59));
    }
    let supported = CommandEffects::default().with_csupp(true);
    let writes = supported.with_lbcc(true);
    let mut out = CommandEffectsLog::new_zeroed();
    for opcode in [
        AdminOpcode::GET_LOG_PAGE,
        AdminOpcode::IDENTIFY,
        AdminOpcode::ABORT,
        AdminOpcode::SET_FEATURES,
        AdminOpcode::GET_FEATURES,
        AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST,
        AdminOpcode::KEEP_ALIVE,
    ] {
        out.acs[usize::from(opcode.0)] = supported;
    }
    // It erases, changes the size of blocks, and is to be alone on all namespaces.
    if let Some(has_formats) = formats {
        out.acs[usize::from(AdminOpcode::FORMAT_NVM.0)] = writes.with_ncc(has_formats).with_cse(2);
    }
    let io = [
        (IoOpcode::FLUSH, supported),
        (IoOpcode::WRITE, writes),
        (IoOpcode::READ, supported),
        (IoOpcode::COMPARE, supported),
        (IoOpcode::VERIFY, supported),
        (IoOpcode::WRITE_ZEROES, writes),
        (IoOpcode::DATASET_MANAGEMENT, writes),
        (IoOpcode::RESERVATION_REGISTER, supported),
        (IoOpcode::RESERVATION_REPORT, supported),
        (IoOpcode::RESERVATION_ACQUIRE, supported),
        (IoOpcode::RESERVATION_RELEASE, supported),
    ];
    let copy = [(IoOpcode::COPY, writes)];
    let copy = copy.iter().filter(|_| has_copy);
    let placed = [
        (IoOpcode::IO_MANAGEMENT_RECEIVE, supported),
        (IoOpcode::IO_MANAGEMENT_SEND, supported),
    ];
    let placed = placed.iter().filter(|_| has_placement);
    let zoned = [
        (IoOpcode::ZONE_MANAGEMENT_SEND, writes),
        (IoOpcode::ZONE_MANAGEMENT_RECEIVE, supported),
        (IoOpcode::ZONE_APPEND, writes),
    ];
    let zoned = zoned.iter().filter(|_| csi == CommandSet::ZNS);
    for (opcode, effects) in io.iter().chain(copy).chain(placed).chain(zoned) {
        out.iocs[usize::from(opcode.0)] = *effects;
    }
    Ok(out.as_bytes().to_vec())
}
