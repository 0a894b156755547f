//! What rows of the table of states are about: states, events, places and resources.

use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction, ZoneState};

/// The state of a zone.
///
/// [`ZoneState`] is the same thing on the wire, where unknown values exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// ZSE: nothing written, no resources.
    Empty,
    /// ZSIO: opened by a write; the drive may close it when it needs the resource.
    ImplicitlyOpened,
    /// ZSEO: opened by the host; stays open until the host ends that.
    ExplicitlyOpened,
    /// ZSC: active, but not open.
    Closed,
    /// ZSF: nothing more can be written.
    Full,
    /// ZSRO: can be read, and never written again.
    ReadOnly,
    /// ZSO: can be neither read nor written.
    Offline,
}

impl State {
    /// All states.
    pub const ALL: [Self; 7] = [
        Self::Empty,
        Self::ImplicitlyOpened,
        Self::ExplicitlyOpened,
        Self::Closed,
        Self::Full,
        Self::ReadOnly,
        Self::Offline,
    ];

    /// The value that a zone descriptor carries.
    #[must_use]
    pub const fn code(self) -> ZoneState {
        match self {
            Self::Empty => ZoneState::EMPTY,
            Self::ImplicitlyOpened => ZoneState::IMPLICITLY_OPENED,
            Self::ExplicitlyOpened => ZoneState::EXPLICITLY_OPENED,
            Self::Closed => ZoneState::CLOSED,
            Self::Full => ZoneState::FULL,
            Self::ReadOnly => ZoneState::READ_ONLY,
            Self::Offline => ZoneState::OFFLINE,
        }
    }

    /// The state that a filter of a zone report asks for: `Ok(None)` if it asks
    /// for all.
    ///
    /// # Errors
    /// Invalid Field in Command: the specification has no such filter.
    pub const fn of_filter(filter: ReportFilter) -> Result<Option<Self>, Status> {
        Ok(Some(match filter {
            ReportFilter::ALL => return Ok(None),
            ReportFilter::EMPTY => Self::Empty,
            ReportFilter::IMPLICITLY_OPENED => Self::ImplicitlyOpened,
            ReportFilter::EXPLICITLY_OPENED => Self::ExplicitlyOpened,
            ReportFilter::CLOSED => Self::Closed,
            ReportFilter::FULL => Self::Full,
            ReportFilter::READ_ONLY => Self::ReadOnly,
            ReportFilter::OFFLINE => Self::Offline,
            _ => return Err(Status::INVALID_FIELD),
        }))
    }

    /// True if a zone in this state holds an open resource.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpened | Self::ExplicitlyOpened)
    }

    /// True if a zone in this state holds an active resource.
    #[must_use]
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Self::Closed)
    }

    /// True if a zone in this state has a write pointer that means something
    /// (ZNS command set 1.1, figure of the zone descriptor, field WP).
    #[must_use]
    pub const fn has_write_pointer(self) -> bool {
        self.is_active() || matches!(self, Self::Empty)
    }
}

/// What can happen to a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Event {
    /// A write or append that is well formed: within one zone and its capacity.
    Write,
    /// Zone Send Action Open Zone.
    Open,
    /// Zone Send Action Close Zone.
    Close,
    /// Zone Send Action Finish Zone.
    Finish,
    /// Zone Send Action Reset Zone.
    Reset,
    /// Zone Send Action Offline Zone.
    Offline,
    /// Zone Send Action Set Zone Descriptor Extension.
    SetExtension,
    /// A well-formed write to a zone that has a random write area.
    WriteZrwa,
    /// An append to a zone that has a random write area.
    AppendZrwa,
    /// Zone Send Action Open Zone with ZRWA Allocation (ZRWAA).
    OpenZrwa,
    /// Zone Send Action Set Zone Descriptor Extension with ZRWA Allocation.
    SetExtensionZrwa,
    /// Zone Send Action Flush Explicit ZRWA.
    CommitZrwa,
    /// The drive takes the open resource away for another zone.
    ImplicitClose,
    /// A fault: the zone can no longer be written.
    FailReadOnly,
    /// A fault: the zone is lost.
    FailOffline,
    /// Control of an experiment: the zone is full from now on, as if written.
    Precondition,
    /// Power was lost, and nothing that was written to the zone is left.
    PowerCycleEmpty,
    /// Power was lost, and something of the zone is left, but not its capacity.
    PowerCyclePartial,
}

impl Event {
    /// All events.
    pub const ALL: [Self; 18] = [
        Self::Write,
        Self::Open,
        Self::Close,
        Self::Finish,
        Self::Reset,
        Self::Offline,
        Self::SetExtension,
        Self::WriteZrwa,
        Self::AppendZrwa,
        Self::OpenZrwa,
        Self::SetExtensionZrwa,
        Self::CommitZrwa,
        Self::ImplicitClose,
        Self::FailReadOnly,
        Self::FailOffline,
        Self::Precondition,
        Self::PowerCycleEmpty,
        Self::PowerCyclePartial,
    ];

    /// The event that an action without data stands for; `None` if the action
    /// is unknown, concerns an address within a zone (Flush Explicit ZRWA), or
    /// carries data (descriptor extension).
    #[must_use]
    pub const fn of_action(action: ZoneSendAction) -> Option<Self> {
        Some(match action {
            ZoneSendAction::OPEN => Self::Open,
            ZoneSendAction::CLOSE => Self::Close,
            ZoneSendAction::FINISH => Self::Finish,
            ZoneSendAction::RESET => Self::Reset,
            ZoneSendAction::OFFLINE => Self::Offline,
            _ => return None,
        })
    }

    /// The states of the zones that the action selects when Select All is set
    /// (ZNS command set 1.1, section 3.4.3); empty for other events.
    #[must_use]
    pub const fn select_all(self) -> &'static [State] {
        use State::{Closed, ExplicitlyOpened, Full, ImplicitlyOpened, ReadOnly};
        match self {
            Self::Open => &[Closed],
            Self::Close => &[ImplicitlyOpened, ExplicitlyOpened],
            Self::Finish => &[ImplicitlyOpened, ExplicitlyOpened, Closed],
            Self::Reset => &[ImplicitlyOpened, ExplicitlyOpened, Closed, Full],
            Self::Offline => &[ReadOnly],
            _ => &[],
        }
    }
}

/// Where the blocks of a write or append would go.
///
/// For a zone with a random write area, where the write pointer would go: by a
/// write beyond the area, which commits what is before it (implicit commit), or
/// by an explicit commit. [`Placement::Within`] then also stands for a write
/// that does not move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Placement {
    /// They do not start at the write pointer (writes only). With a random write
    /// area: they are not in it and the implicit commit region, or, for an
    /// explicit commit, the block is not in the area, is not the last one of a
    /// flush granularity, or the zone has no area.
    Elsewhere,
    /// They start at the write pointer and run beyond the capacity (appends only:
    /// a write of that kind is refused by its addresses alone, before the table).
    Beyond,
    /// They start at the write pointer, and the zone has room after them.
    Within,
    /// They start at the write pointer and end exactly at the capacity.
    Filling,
}

impl Placement {
    /// All placements.
    pub const ALL: [Self; 4] = [Self::Elsewhere, Self::Beyond, Self::Within, Self::Filling];
}

/// What a row asks of the open, active or ZRWA resources of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Nothing: it matches in any case.
    Any,
    /// One is free. A successful row that asks for it takes it, if only until
    /// the command ends.
    Free,
    /// None is free.
    Exhausted,
}

impl Resource {
    /// True if a row that asks this matches when a resource is `free`.
    #[must_use]
    pub const fn matches(self, free: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Free => free,
            Self::Exhausted => !free,
        }
    }
}

/// The circumstances of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Where the blocks would go; without meaning, and ignored, unless the
    /// event is [`Event::Write`], [`Event::WriteZrwa`] or [`Event::CommitZrwa`].
    pub placement: Placement,
    /// Fewer zones are active than may be.
    pub active_free: bool,
    /// Fewer zones are open than may be, or one of them is implicitly opened:
    /// it is closed for the benefit of this zone.
    pub open_free: bool,
    /// Fewer zones have a random write area than may.
    pub zrwa_free: bool,
}

impl Condition {
    /// Number of different conditions.
    pub(super) const COUNT: usize = Placement::ALL.len() * 8;

    /// Conditions of writes that go well are near each other.
    pub(super) const fn index(self) -> usize {
        (self.zrwa_free as usize) << 4
            | (self.placement as usize) << 2
            | (self.active_free as usize) << 1
            | self.open_free as usize
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The zone is in one of these states.
    pub from: &'static [State],
    /// This happens.
    pub event: Event,
    /// The blocks would go to one of these places.
    pub placement: &'static [Placement],
    /// State of the active resources.
    pub active: Resource,
    /// State of the open resources.
    pub open: Resource,
    /// State of the ZRWA resources: a row that takes one gives the zone a
    /// random write area.
    pub zrwa: Resource,
    /// Then the zone is in this state; `None`: it stays as it is.
    pub next: Option<State>,
    /// And the command completes so.
    pub status: Status,
    /// Change of the number of open zones.
    pub open_delta: i8,
    /// Change of the number of active zones.
    pub active_delta: i8,
}

impl Row {
    /// True if the row says what `event` does to a zone in `state` under `condition`.
    #[must_use]
    pub fn matches(&self, state: State, event: Event, condition: Condition) -> bool {
        self.from.contains(&state)
            && self.event == event
            && self.placement.contains(&condition.placement)
            && self.active.matches(condition.active_free)
            && self.open.matches(condition.open_free)
            && self.zrwa.matches(condition.zrwa_free)
    }
}
