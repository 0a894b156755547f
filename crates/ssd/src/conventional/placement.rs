//! Flexible data placement: what a host is told of reclaim unit handles, and what it tells
//! them. How the log writes through them is in `log` and `streams`.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use zonelab_device::{NamespaceId, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::placement::{HandleStatus, HandleStatusHeader, PlacementEventType};
use zonelab_nvme::zerocopy::{FromZeros, IntoBytes};

use super::Conventional;
use super::streams::Stream;
use crate::config::Isolation;
use crate::drive::{BackEnd, Core};

/// Most events of the host that are kept, and most of the controller.
pub const PLACEMENT_EVENTS: usize = 63;
/// Bytes of a placement identifier in the buffer of a handle update.
const PID_BYTES: usize = 2;

/// Types of events that a drive can log.
pub const PLACEMENT_EVENT_TYPES: [PlacementEventType; 3] = [
    PlacementEventType::NOT_FULLY_WRITTEN,
    PlacementEventType::INVALID_PLACEMENT_IDENTIFIER,
    PlacementEventType::MEDIA_REALLOCATED,
];

/// An event of flexible data placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementEvent {
    /// When it came about.
    pub at: Nanos,
    /// The namespace.
    pub nsid: NamespaceId,
    /// The placement identifier: of the handle, or one that there is not.
    pub placement: u16,
    /// The reclaim unit handle, counted over the drive.
    pub handle: u8,
    /// What came about.
    pub what: PlacementEventKind,
}

/// What came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlacementEventKind {
    /// A handle went on to another reclaim unit before its own was full.
    NotFullyWritten,
    /// A write had a placement identifier that there is not, and went through the
    /// default handle.
    InvalidIdentifier,
    /// Collection moved data of the handle.
    Reallocated {
        /// The first of the blocks, in the namespace.
        lba: u64,
        /// Number of them, at least 1.
        blocks: u16,
    },
}

impl PlacementEventKind {
    /// Its type in the log.
    #[must_use]
    pub const fn code(self) -> PlacementEventType {
        match self {
            Self::NotFullyWritten => PlacementEventType::NOT_FULLY_WRITTEN,
            Self::InvalidIdentifier => PlacementEventType::INVALID_PLACEMENT_IDENTIFIER,
            Self::Reallocated { .. } => PlacementEventType::MEDIA_REALLOCATED,
        }
    }

    const fn is_of_host(self) -> bool {
        !matches!(self, Self::Reallocated { .. })
    }
}

/// A reclaim unit handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementHandle {
    /// The namespace that it belongs to.
    pub nsid: NamespaceId,
    /// Its placement identifier there.
    pub placement: u16,
    /// Its identifier, counted over the drive (RUHID).
    pub handle: u8,
    /// Whether collection keeps its data apart.
    pub isolation: Isolation,
    /// The profile gave the namespace handles; else the drive chose this one for it.
    pub is_chosen: bool,
}

/// Bytes since the drive was made (FDP Statistics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlacementStatistics {
    /// What hosts wrote (HBMW).
    pub host_write_bytes: u128,
    /// What was programmed, for the host or by the drive itself (MBMW).
    pub media_write_bytes: u128,
    /// What was erased (MBE).
    pub media_erase_bytes: u128,
}

/// The events of a drive, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlacementLog {
    host: VecDeque<PlacementEvent>,
    controller: VecDeque<PlacementEvent>,
}

impl PlacementLog {
    /// Those of the host, or of the controller.
    pub(super) fn events(&self, of_host: bool) -> impl Iterator<Item = &PlacementEvent> {
        match of_host {
            true => self.host.iter(),
            false => self.controller.iter(),
        }
    }

    pub(super) fn note(&mut self, event: PlacementEvent) {
        let events = match event.what.is_of_host() {
            true => &mut self.host,
            false => &mut self.controller,
        };
        if events.len() == PLACEMENT_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
    }
}

/// The handles of a namespace, beyond what they write to.
#[derive(Clone, Debug)]
pub(crate) struct Handles {
    /// The first of them, counted over the drive.
    first: u8,
    /// The profile gave the namespace handles.
    are_chosen: bool,
    /// Types of events that are logged, by handle: bits in the order of
    /// [`PLACEMENT_EVENT_TYPES`].
    pub(super) enabled: Vec<u8>,
}

impl Handles {
    pub(crate) fn new(first: u8, count: u8, are_chosen: bool) -> Self {
        Self {
            first,
            are_chosen,
            enabled: vec![0; usize::from(count)],
        }
    }

    /// The first handle that the next namespace has.
    pub(crate) fn end(&self) -> u8 {
        // Fits: a profile with more than 128 is refused, if they are of use at all.
        self.first.saturating_add(self.enabled.len() as u8)
    }
}

/// The bit of a type of events; `None`: none of these events is ever logged.
pub(super) fn bit_of(event_type: PlacementEventType) -> Option<u8> {
    let position = PLACEMENT_EVENT_TYPES
        .iter()
        .position(|of| *of == event_type)?;
    Some(1 << position)
}

/// What a snapshot keeps of an event: time in nanoseconds, namespace, placement
/// identifier, handle.
type SavedEvent = (u64, u32, u16, u8, PlacementEventKind);

/// What a snapshot keeps of flexible data placement.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedPlacement {
    /// By conventional namespace.
    pub(super) logs: Vec<SavedHandles>,
    pub(super) events: Vec<SavedEvent>,
}

/// The same of a namespace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedHandles {
    /// The zone that each stream writes to.
    open: Vec<u32>,
    /// By zone, the number of the stream that wrote it.
    writers: Vec<u8>,
    enabled: Vec<u8>,
}

impl Conventional {
    /// A handle of the namespace, by its placement identifier.
    pub(super) fn handle(&self, placement: u16) -> Option<PlacementHandle> {
        let streams = self.log.streams();
        let stream = streams.of_handle(placement)?;
        Some(PlacementHandle {
            nsid: self.nsid,
            placement,
            handle: self.handles.first.saturating_add(stream.number()),
            isolation: streams.isolation(),
            is_chosen: self.handles.are_chosen,
        })
    }

    /// Logs an event, if that is enabled for the handle.
    fn note(&self, core: &mut Core, handle: u16, placement: u16, what: PlacementEventKind) {
        let at = core.now;
        let (Some(log), Some(of)) = (&mut core.placement, self.handle(handle)) else {
            return;
        };
        let enabled = self.handles.enabled.get(usize::from(handle));
        let (Some(enabled), Some(bit)) = (enabled, bit_of(what.code())) else {
            return;
        };
        if enabled & bit != 0 {
            log.note(PlacementEvent {
                at,
                nsid: self.nsid,
                placement,
                handle: of.handle,
                what,
            });
        }
    }

    /// Logs that a write names no handle that there is; it goes through the default one.
    #[inline]
    pub(super) fn check_placement(&self, core: &mut Core, index: u32) {
        let placement = core.requests.at(index).placement;
        if placement >= u16::from(self.log.streams().handles()) {
            self.note(core, 0, placement, PlacementEventKind::InvalidIdentifier);
        }
    }

    /// Logs that blocks from `block` on were moved that `stream` had written.
    pub(super) fn note_moved(&self, core: &mut Core, stream: Stream, block: u32, count: u32) {
        if core.placement.is_none() {
            return;
        }
        let Some(handle) = self.log.streams().handle_of(stream) else {
            return;
        };
        let what = PlacementEventKind::Reallocated {
            lba: block.into(),
            blocks: u16::try_from(count).unwrap_or(u16::MAX),
        };
        self.note(core, handle.into(), handle.into(), what);
    }

    /// I/O Management Receive, Reclaim Unit Handle Status: as much as fits.
    pub(super) fn handle_status(&self, core: &mut Core, index: u32) {
        let Some(out) = &mut core.requests.at(index).data else {
            return;
        };
        let streams = self.log.streams();
        let mut header = HandleStatusHeader::new_zeroed();
        header.nruhsd = u16::from(streams.handles()).into();
        let mut bytes = header.as_bytes().to_vec();
        let all = (0..u16::from(streams.handles())).filter_map(|pid| self.handle(pid));
        for of in all {
            let mut status = HandleStatus::new_zeroed();
            status.pid = of.placement.into();
            status.ruhid = u16::from(of.handle).into();
            let left = streams.of_handle(of.placement);
            let left = left.map_or(0, |stream| self.log.left(stream));
            status.ruamw = u64::from(left).into();
            bytes.extend_from_slice(status.as_bytes());
        }
        out.fill(0);
        let length = out.len().min(bytes.len());
        out[..length].copy_from_slice(&bytes[..length]);
    }

    /// Checks the placement identifiers of a Reclaim Unit Handle Update.
    ///
    /// # Errors
    /// Invalid Field: there are more than handles, the buffer is too short for so many, or
    /// one of them is of no handle.
    pub(super) fn check_update(
        &self,
        core: &mut Core,
        index: u32,
        handles: u32,
    ) -> Result<(), Status> {
        let streams = self.log.streams();
        let data = core.requests.at(index).data.as_deref().unwrap_or_default();
        let is_valid = handles <= u32::from(streams.handles())
            && identifiers(data, handles)
                .is_some_and(|mut all| all.all(|pid| streams.of_handle(pid).is_some()));
        match is_valid {
            true => Ok(()),
            false => Err(Status::INVALID_FIELD),
        }
    }

    /// I/O Management Send, Reclaim Unit Handle Update, which has been checked: each
    /// handle goes on to an empty reclaim unit with the next write.
    pub(super) fn update_handles(&mut self, end: &mut BackEnd<'_>, index: u32, handles: u32) {
        let data = end.core.requests.at(index).data.take();
        let all = data.as_deref().and_then(|data| identifiers(data, handles));
        for placement in all.into_iter().flatten() {
            let Some(stream) = self.log.streams().of_handle(placement) else {
                continue;
            };
            if self.log.leave(stream) {
                let what = PlacementEventKind::NotFullyWritten;
                self.note(end.core, placement, placement, what);
            }
        }
        end.core.requests.at(index).data = data;
    }

    pub(super) fn save_handles(&self) -> SavedHandles {
        let (open, writers) = self.log.save_streams();
        SavedHandles {
            open,
            writers,
            enabled: self.handles.enabled.clone(),
        }
    }

    /// # Errors
    /// What is impossible about what was saved.
    pub(super) fn restore_handles(&mut self, saved: &SavedHandles) -> Result<(), String> {
        let SavedHandles {
            open,
            writers,
            enabled,
        } = saved;
        let all = (1 << PLACEMENT_EVENT_TYPES.len()) - 1;
        if enabled.len() != self.handles.enabled.len() || enabled.iter().any(|of| of & !all != 0) {
            return Err("events of handles that there are not".to_owned());
        }
        self.handles.enabled.clone_from(enabled);
        self.log.restore_streams(open, writers)
    }
}

/// The placement identifiers of a handle update; `None`: the buffer is too short for so many.
fn identifiers(data: &[u8], handles: u32) -> Option<impl Iterator<Item = u16> + '_> {
    let bytes = data.get(..handles as usize * PID_BYTES)?;
    let (all, _) = bytes.as_chunks::<PID_BYTES>();
    Some(all.iter().map(|pid| u16::from_le_bytes(*pid)))
}
