//! Flexible data placement: log pages, features and commands. What the drive does is in
//! `zonelab-ssd`.
//!
//! All namespaces are in one endurance group, which is the drive. It has one
//! configuration, which is enabled and stays so: it could change only while there is no
//! namespace.

use zonelab_device::{Buf, NamespaceId, Op};
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    GetFeatures, GetLogPage, IoManagementReceive, IoManagementSend, SetFeatures,
};
use zonelab_nvme::feature::FeatureSelect;
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::placement::{
    ConfigurationAttributes, ConfigurationDescriptor, ConfigurationsHeader, DATA_PLACEMENT_DTYPE,
    EnduranceGroupList, EnduranceGroupLog, HandleDescriptor, HandleType, HandleUsage,
    HandleUsageHeader, HandleUse, MediaReallocated, PlacementEvent, PlacementEventFlags,
    PlacementEventType, PlacementEventsEnable, PlacementEventsHeader, PlacementEventsSelect,
    PlacementMode, PlacementStatistics, ReallocatedFlags, ReceiveOperation, SendOperation,
    SupportedEvent, SupportedEventAttributes,
};
use zonelab_nvme::zerocopy::little_endian::U128;
use zonelab_nvme::zerocopy::{FromZeros, IntoBytes};
use zonelab_ssd::config::Isolation;
use zonelab_ssd::{PLACEMENT_EVENT_TYPES, PlacementEventKind, PlacementHandle};

use super::failure::{Failure, byte};
use super::hosts::NamespaceAccess;
use super::plan::{Plan, Transfer};
use super::{Answer, Layer, Subsystem};

/// The endurance group that all namespaces are in.
pub(super) const ENDURANCE_GROUP: u16 = 1;
/// Bits of a timestamp that hold milliseconds.
const TIMESTAMP_BITS: u32 = 48;
const NS_PER_MS: u64 = 1_000_000;
/// Bytes of a unit of the endurance group information.
const ENDURANCE_UNIT_BYTES: u128 = 1_000_000_000;

/// Log pages of I/O controllers with flexible data placement.
pub(super) const PAGES: [LogPageId; 5] = [
    LogPageId::ENDURANCE_GROUP,
    LogPageId::FDP_CONFIGURATIONS,
    LogPageId::RECLAIM_UNIT_HANDLE_USAGE,
    LogPageId::FDP_STATISTICS,
    LogPageId::FDP_EVENTS,
];

impl<L: Layer> Subsystem<L> {
    /// Whether hosts have flexible data placement. A layer hides that of the drive.
    #[inline]
    pub(super) fn has_placement(&self) -> bool {
        self.layer.is_none() && self.drive.drive().config().has_handles()
    }

    /// One of [`PAGES`].
    pub(super) fn placement_page(&self, slot: u32, get: &GetLogPage) -> Result<Vec<u8>, Failure> {
        if get.lsi != ENDURANCE_GROUP {
            return Err(Failure::field(byte::CDW11 + 2));
        }
        Ok(match get.lid {
            LogPageId::ENDURANCE_GROUP => self.endurance_group(slot).as_bytes().to_vec(),
            LogPageId::FDP_CONFIGURATIONS => self.placement_configurations(slot),
            LogPageId::RECLAIM_UNIT_HANDLE_USAGE => self.handle_usage(slot),
            LogPageId::FDP_STATISTICS => self.placement_statistics(slot).as_bytes().to_vec(),
            _ => self.placement_events(slot, get.lsp & PlacementEvent::HOST_EVENTS_LSP != 0),
        })
    }

    /// What the SMART log says of the drive, of the endurance group. A host with rules finds
    /// what was done to its own namespaces; of what the media did for them there is no count.
    fn endurance_group(&self, slot: u32) -> EnduranceGroupLog {
        let smart = self.smart_log(slot);
        let units = |bytes: u128| U128::new(bytes.div_ceil(ENDURANCE_UNIT_BYTES));
        let (counters, totals) = (&self.counters, self.drive.drive().totals());
        let statistics = self.placement_statistics(slot);
        let capacity = self.capacity_bytes(slot);
        let mut out = EnduranceGroupLog::new_zeroed();
        out.avsp = smart.avsp;
        out.avspt = smart.avspt;
        let read_bytes = match self.has_rules() {
            true => self.own_use(slot).read_bytes.into(),
            false => u128::from(counters.read_bytes) + u128::from(totals.host_read_bytes),
        };
        out.dur = units(read_bytes);
        out.duw = units(statistics.hbmw.get());
        out.muw = units(statistics.mbmw.get());
        out.hrc = smart.hrc;
        out.hwc = smart.hwc;
        out.mdie = smart.mdie;
        out.neile = smart.neile;
        out.tegcap = U128::new(capacity);
        out
    }

    /// The endurance groups from `first` on: the one that there is.
    pub(super) fn list_endurance_groups(
        &self,
        first: u16,
        out: &mut EnduranceGroupList,
    ) -> Result<(), Failure> {
        if !self.has_placement() {
            return Err(Failure::field(byte::CDW10));
        }
        if first <= ENDURANCE_GROUP {
            out.numids = 1.into();
            out.endgid[0] = ENDURANCE_GROUP.into();
        }
        Ok(())
    }

    /// Whether a handle belongs to a namespace that the host of a controller has.
    fn is_own(&self, slot: u32, handle: &PlacementHandle) -> bool {
        self.rights(slot, handle.nsid.0).is_some()
    }

    /// A handle of a namespace that the host does not have keeps its place, since handles
    /// are called by their numbers, and shows nothing of itself.
    fn placement_configurations(&self, slot: u32) -> Vec<u8> {
        let handles = self.drive.drive().placement().handles();
        let config = self.drive.drive().config();
        let runs = config.zones.capacity_lbas * u64::from(config.lba_bytes);
        // Fits: handles have identifiers of 16 bits.
        let own = handles.iter().filter(|of| self.is_own(slot, of));
        let last_pid = own.map(|of| of.placement).max().unwrap_or(0);
        let size =
            size_of::<ConfigurationDescriptor>() + handles.len() * size_of::<HandleDescriptor>();
        let mut header = ConfigurationsHeader::new_zeroed();
        // Fits: there are at most 128 handles.
        header.size = ((size_of::<ConfigurationsHeader>() + size) as u32).into();
        let mut of = ConfigurationDescriptor::new_zeroed();
        of.dsze = (size as u16).into();
        of.fdpa = ConfigurationAttributes::default()
            .with_fdpvwc(self.has_volatile_cache())
            .with_fdpcv(true);
        of.nrg = 1.into();
        of.nruh = (handles.len() as u16).into();
        of.maxpids_z = last_pid.into();
        of.nnss = (self.visible(slot).count() as u32).into();
        of.runs = runs.into();
        let mut out = [header.as_bytes(), of.as_bytes()].concat();
        for handle in handles {
            let mut descriptor = HandleDescriptor::new_zeroed();
            descriptor.ruht = match handle.isolation {
                Isolation::Persistently if self.is_own(slot, &handle) => {
                    HandleType::PERSISTENTLY_ISOLATED
                }
                _ => HandleType::INITIALLY_ISOLATED,
            };
            out.extend_from_slice(descriptor.as_bytes());
        }
        out
    }

    fn handle_usage(&self, slot: u32) -> Vec<u8> {
        let handles = self.drive.drive().placement().handles();
        let mut header = HandleUsageHeader::new_zeroed();
        header.nruh = (handles.len() as u16).into();
        let mut out = header.as_bytes().to_vec();
        for handle in handles {
            let mut usage = HandleUsage::new_zeroed();
            usage.ruha = match handle.is_chosen {
                _ if !self.is_own(slot, &handle) => HandleUse::UNUSED,
                true => HandleUse::HOST_SPECIFIED,
                false => HandleUse::CONTROLLER_SPECIFIED,
            };
            out.extend_from_slice(usage.as_bytes());
        }
        out
    }

    /// What the drive has counted, and what it had before it was formatted. A host with
    /// rules finds what was written to its own namespaces, and 0 for what the media did.
    fn placement_statistics(&self, slot: u32) -> PlacementStatistics {
        let mut out = PlacementStatistics::new_zeroed();
        if self.has_rules() {
            out.hbmw = U128::new(self.own_use(slot).written_bytes.into());
            return out;
        }
        let before = self.counters.placement;
        let now = self.drive.drive().placement().statistics();
        out.hbmw = U128::new(before.host_write_bytes + now.host_write_bytes);
        out.mbmw = U128::new(before.media_write_bytes + now.media_write_bytes);
        out.mbe = U128::new(before.media_erase_bytes + now.media_erase_bytes);
        out
    }

    fn placement_events(&self, slot: u32, of_host: bool) -> Vec<u8> {
        let mut events = self.drive.drive().placement().events(of_host);
        events.retain(|event| self.rights(slot, event.nsid.0).is_some());
        let mut header = PlacementEventsHeader::new_zeroed();
        // Fits: the drive keeps 63.
        header.nfdpe = (events.len() as u32).into();
        let mut out = header.as_bytes().to_vec();
        for event in &events {
            out.extend_from_slice(as_entry(event).as_bytes());
        }
        out
    }

    /// The handle of a namespace that Get and Set Features of FDP Events is about.
    fn selected_handle(
        &self,
        (slot, nsid): (u32, u32),
        select: PlacementEventsSelect,
    ) -> Result<PlacementHandle, Failure> {
        if self.rights(slot, nsid).is_none() {
            return Err(Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID));
        }
        let handles = self.drive.drive().placement().handles();
        handles
            .into_iter()
            .find(|of| of.nsid.0 == nsid && of.placement == select.phndl())
            .ok_or(Failure::field(byte::CDW11))
    }

    /// Get Features of Flexible Data Placement.
    pub(super) fn get_placement(command: &GetFeatures) -> Result<Answer, Failure> {
        check_group(command.dword11)?;
        let mode = PlacementMode::default().with_fdpe(true);
        Ok(Answer::value(mode.bits().into()))
    }

    /// Set Features of Flexible Data Placement: there are namespaces, so it stays.
    pub(super) fn set_placement(command: &SetFeatures) -> Result<Answer, Failure> {
        check_group(command.dword11)?;
        Err(Failure::from(Status::COMMAND_SEQUENCE_ERROR))
    }

    /// Get Features of FDP Events: as many types as the host has room for.
    pub(super) fn get_placement_events(
        &mut self,
        slot: u32,
        command: &GetFeatures,
        data_len: u32,
    ) -> Result<Answer, Failure> {
        let select = PlacementEventsSelect::from_bits(command.dword11);
        let handle = self.selected_handle((slot, command.nsid), select)?;
        let room = data_len as usize / size_of::<SupportedEvent>();
        let count = room.min(select.noet().into());
        let placed = self.drive.drive().placement();
        // Nothing is logged before somebody asks for it.
        let is_current = command.sel == FeatureSelect::CURRENT;
        let event = |event_type: &PlacementEventType| {
            let placement = handle.placement;
            let enabled = placed.is_event_enabled(handle.nsid, placement, *event_type);
            SupportedEvent {
                event_type: *event_type,
                attributes: SupportedEventAttributes::default()
                    .with_fdpee(is_current && enabled == Some(true)),
            }
        };
        let events: Vec<SupportedEvent> = PLACEMENT_EVENT_TYPES
            .iter()
            .take(count)
            .map(event)
            .collect();
        if u64::from(data_len) > u64::from(self.max_transfer_bytes) {
            return Err(Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8));
        }
        let mut data: Buf = self.pool.take_zeroed(data_len as usize);
        let bytes = events.as_bytes();
        data[..bytes.len()].copy_from_slice(bytes);
        Ok(Answer::Now {
            result: events.len() as u64,
            data: Some(data),
        })
    }

    /// Set Features of FDP Events.
    pub(super) fn set_placement_events(
        &mut self,
        slot: u32,
        command: &SetFeatures,
        data: Option<&[u8]>,
    ) -> Result<Answer, Failure> {
        let select = PlacementEventsSelect::from_bits(command.dword11);
        let handle = self.selected_handle((slot, command.nsid), select)?;
        let types = data.and_then(|data| data.get(..usize::from(select.noet())));
        let types = types.ok_or(Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8))?;
        if self.rights(slot, command.nsid) == Some(NamespaceAccess::ReadOnly) {
            return Err(Failure::at(Status::NAMESPACE_WRITE_PROTECTED, byte::NSID));
        }
        let is_enabled = PlacementEventsEnable::from_bits(command.dword12).fdpee();
        let is_known = |of: &u8| PLACEMENT_EVENT_TYPES.contains(&PlacementEventType(*of));
        if !types.iter().all(is_known) {
            return Err(Failure::field(byte::DPTR));
        }
        let drive = self.drive.drive_mut();
        for event_type in types.iter().map(|of| PlacementEventType(*of)) {
            let (nsid, placement) = (handle.nsid, handle.placement);
            drive.enable_placement_event(nsid, placement, event_type, is_enabled);
        }
        Ok(Answer::value(0))
    }

    /// I/O Management Receive.
    pub(super) fn plan_io_receive(&self, receive: IoManagementReceive) -> Result<Plan, Failure> {
        let op = match receive.mo {
            ReceiveOperation::HANDLE_STATUS => Op::HandleStatus,
            // Nothing is done, and nothing is returned.
            ReceiveOperation::NONE => Op::HandleUpdate { handles: 0 },
            _ => return Err(Failure::field(byte::CDW10)),
        };
        let bytes = receive.numd * 4;
        if bytes > u64::from(self.max_transfer_bytes) {
            return Err(Failure::field(byte::CDW11));
        }
        Ok(Plan::of(op, Transfer::ToHost(bytes)))
    }

    /// I/O Management Send.
    pub(super) fn plan_io_send(send: IoManagementSend) -> Result<Plan, Failure> {
        match send.mo {
            SendOperation::HANDLE_UPDATE => {
                let handles = send.npid();
                let bytes = u64::from(handles) * size_of::<u16>() as u64;
                Ok(Plan::of(
                    Op::HandleUpdate { handles },
                    Transfer::FromHost(bytes),
                ))
            }
            SendOperation::NONE => Ok(Plan::of(
                Op::HandleUpdate { handles: 0 },
                Transfer::AtLeastFromHost(0),
            )),
            _ => Err(Failure::field(byte::CDW10)),
        }
    }
}

/// The placement identifier of a write with a directive.
pub(super) fn placement_of((dtype, dspec): (u8, u16), has_placement: bool) -> Result<u16, Failure> {
    match dtype {
        0 => Ok(0),
        DATA_PLACEMENT_DTYPE if has_placement => Ok(dspec),
        _ => Err(Failure::bit(Status::INVALID_FIELD, byte::CDW12 + 2, 4)),
    }
}

fn check_group(dword11: u32) -> Result<(), Failure> {
    // The identifier is in the lower half.
    if dword11 & u32::from(u16::MAX) != u32::from(ENDURANCE_GROUP) {
        return Err(Failure::field(byte::CDW11));
    }
    Ok(())
}

/// An event of the drive as the log has it.
fn as_entry(event: &zonelab_ssd::PlacementEvent) -> PlacementEvent {
    let NamespaceId(nsid) = event.nsid;
    let mut out = PlacementEvent::new_zeroed();
    out.event_type = event.what.code();
    out.fdpef = PlacementEventFlags::default()
        .with_piv(true)
        .with_nsidv(true)
        .with_lv(true);
    out.pid = event.placement.into();
    let ms = event.at.0 / NS_PER_MS;
    out.timestamp = (ms & ((1 << TIMESTAMP_BITS) - 1)).into();
    out.nsid = nsid.into();
    out.ruhid = event.handle;
    if let PlacementEventKind::Reallocated { lba, blocks } = event.what {
        let mut moved = MediaReallocated::new_zeroed();
        moved.flags = ReallocatedFlags::default().with_lbav(true);
        moved.nlbam = blocks.into();
        moved.lba = lba.into();
        out.specific.copy_from_slice(moved.as_bytes());
    }
    out
}
