//! Asynchronous events of one controller, and the lists behind them.

use std::collections::VecDeque;

use zonelab_nvme::event::{AsyncEvent, AsyncEventType, CommandSetEvent, NoticeEvent, SmartEvent};
use zonelab_nvme::feature::AsyncEventConfiguration;
use zonelab_nvme::identify::AsyncEvents;
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::reservation::{NotificationType, ReservationNotification};
use zonelab_nvme::zerocopy::FromZeros;

use super::past::ZoneLists;

/// Most Asynchronous Event Requests in flight of a controller (AERL + 1).
pub(super) const REQUESTS: usize = 4;

/// Reservation notifications that wait to be read.
const NOTIFICATIONS: usize = 64;

/// Something that a host should know.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Identify of a namespace changed.
    Namespace,
    /// The device changed zones of this namespace.
    Zones(u32),
    /// The discovery log changed.
    Discovery,
    /// There are reservation notifications.
    Reservation,
    /// The media lost data: zones that cannot be written or read any more.
    Reliability,
}

impl Event {
    /// Dword 0 of the completion that tells it.
    pub(super) fn dword0(self) -> AsyncEvent {
        match self {
            Self::Namespace => AsyncEvent::notice(
                NoticeEvent::NAMESPACE_ATTRIBUTE_CHANGED,
                LogPageId::CHANGED_NAMESPACES.0,
            ),
            Self::Zones(_) => AsyncEvent::notice(
                NoticeEvent::ZONE_DESCRIPTOR_CHANGED,
                LogPageId::CHANGED_ZONES.0,
            ),
            Self::Discovery => {
                AsyncEvent::notice(NoticeEvent::DISCOVERY_LOG_CHANGED, LogPageId::DISCOVERY.0)
            }
            Self::Reservation => AsyncEvent::default()
                .with_event_type(AsyncEventType::COMMAND_SET)
                .with_information(CommandSetEvent::RESERVATION_LOG_PAGE_AVAILABLE.0)
                .with_lid(LogPageId::RESERVATION_NOTIFICATION.0),
            Self::Reliability => AsyncEvent::default()
                .with_event_type(AsyncEventType::SMART)
                .with_information(SmartEvent::SUBSYSTEM_RELIABILITY.0)
                .with_lid(LogPageId::SMART.0),
        }
    }

    /// Dword 1 of the completion: the namespace, of a zone event.
    pub(super) fn dword1(self) -> u32 {
        match self {
            Self::Zones(nsid) => nsid,
            _ => 0,
        }
    }

    /// Whether the host has asked for it.
    fn is_enabled(self, aec: AsyncEventConfiguration) -> bool {
        let optional = aec.optional();
        match self {
            Self::Namespace => optional.namespace_attribute(),
            Self::Zones(_) => optional.zone_descriptor_changed(),
            Self::Discovery => optional.discovery_log(),
            // It has a mask of its own.
            Self::Reservation => true,
            Self::Reliability => aec.smart() & 1 << 2 != 0,
        }
    }

    /// Whether reading this log page clears it.
    fn is_cleared_by(self, lid: LogPageId, nsid: u32) -> bool {
        let is_log = self.dword0().lid() == lid.0;
        match self {
            Self::Zones(of) => is_log && of == nsid,
            _ => is_log,
        }
    }
}

/// Events that I/O controllers report (OAES).
pub(super) fn io_events() -> AsyncEvents {
    AsyncEvents::default()
        .with_namespace_attribute(true)
        .with_zone_descriptor_changed(true)
}

/// Events that discovery controllers report.
pub(super) fn discovery_events() -> AsyncEvents {
    AsyncEvents::default().with_discovery_log(true)
}

/// What a controller has to tell, and the requests to tell it with.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Command identifiers of the requests, oldest first.
    requests: VecDeque<u16>,
    /// Not told yet, oldest first; each at most once.
    pending: VecDeque<Event>,
    /// Told, and its log page not read since.
    masked: Vec<Event>,
    /// Namespaces that changed, ascending.
    namespaces: Vec<u32>,
    /// Zones that the device changed and the host does not know of.
    zones: ZoneLists,
    /// Reservation notifications that were not read, oldest first: number, namespace, kind.
    notifications: VecDeque<(u64, u32, NotificationType)>,
    /// How many reservation notifications there were.
    notified: u64,
}

impl Events {
    /// Takes a request. False: there are as many as there may be.
    pub(super) fn request(&mut self, cid: u16) -> bool {
        if self.requests.len() == REQUESTS {
            return false;
        }
        self.requests.push_back(cid);
        true
    }

    /// Gives up the request with this identifier.
    pub(super) fn abort(&mut self, cid: u16) -> bool {
        let at = self.requests.iter().position(|request| *request == cid);
        at.is_some_and(|at| self.requests.remove(at).is_some())
    }

    /// Gives up the oldest request.
    pub(super) fn abort_any(&mut self) -> Option<u16> {
        self.requests.pop_front()
    }

    /// Notes an event, unless it is noted or the host does not want to know.
    pub(super) fn note(&mut self, event: Event, aec: AsyncEventConfiguration) {
        let is_known = self.pending.contains(&event) || self.masked.contains(&event);
        if event.is_enabled(aec) && !is_known {
            self.pending.push_back(event);
        }
    }

    /// A namespace changed.
    pub(super) fn note_namespace(&mut self, nsid: u32) {
        if let Err(at) = self.namespaces.binary_search(&nsid) {
            self.namespaces.insert(at, nsid);
        }
    }

    /// Zones that the device changed.
    pub(super) fn zones(&mut self) -> &mut ZoneLists {
        &mut self.zones
    }

    /// A host lost its registration or a reservation has ended. What finds no room is lost,
    /// and leaves a gap in the numbers.
    pub(super) fn note_reservation(&mut self, nsid: u32, what: NotificationType) {
        // 0 is of no notification.
        self.notified = self.notified.checked_add(1).unwrap_or(1);
        if self.notifications.len() < NOTIFICATIONS {
            self.notifications.push_back((self.notified, nsid, what));
        }
    }

    /// The oldest reservation notification, which is read with that.
    pub(super) fn take_notification(&mut self) -> ReservationNotification {
        let mut page = ReservationNotification::new_zeroed();
        if let Some((number, nsid, what)) = self.notifications.pop_front() {
            page.lpc = number.into();
            page.nsid = nsid.into();
            page.rnlpt = what;
            page.nalp = u8::try_from(self.notifications.len()).unwrap_or(u8::MAX);
        }
        page
    }

    /// The next event to tell, and the identifier of the request to tell it with.
    pub(super) fn take(&mut self) -> Option<(u16, Event)> {
        let event = *self.pending.front()?;
        let cid = self.requests.pop_front()?;
        self.pending.pop_front();
        self.masked.push(event);
        Some((cid, event))
    }

    /// The host has read a log page, and does not retain its event.
    pub(super) fn log_read(&mut self, lid: LogPageId, nsid: u32) {
        self.pending.retain(|event| !event.is_cleared_by(lid, nsid));
        self.masked.retain(|event| !event.is_cleared_by(lid, nsid));
        match lid {
            LogPageId::CHANGED_NAMESPACES => self.namespaces.clear(),
            LogPageId::CHANGED_ZONES => self.zones.forget(nsid),
            _ => {}
        }
    }

    /// Namespaces that changed, ascending.
    pub(super) fn changed_namespaces(&self) -> &[u32] {
        &self.namespaces
    }

    /// First blocks of the zones of a namespace that changed; `None`: too many.
    pub(super) fn changed_zones(&self, nsid: u32) -> Option<&[u64]> {
        self.zones.of(nsid)
    }

    /// A new controller, or one that is reset: all that is known is `zones`, which were changed
    /// before. Requests stay, to be given up.
    pub(super) fn begin(&mut self, zones: ZoneLists) {
        let requests = core::mem::take(&mut self.requests);
        *self = Self {
            requests,
            zones,
            ..Self::default()
        };
    }
}
