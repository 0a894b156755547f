//! The zone state machine as a table.
//!
//! Each row of [`ROWS`] says what happens to one zone: in which states, upon
//! which event and under which condition; then the next state, the status of
//! the command, and what that does to the numbers of open and active zones.
//! The table is the implementation: it is expanded into a dense array at
//! compile time, which fails to compile unless exactly one row matches every
//! combination. The page `docs/models/zone-states.md` is generated from it.
//!
//! Source: ZNS command set 1.1, sections 2.1.1.2 and 2.1.1.3 (states and
//! transitions) and 3.4.3 (Zone Management Send). Events that are no commands
//! are of this drive, and for them the rows say what it does.
//!
//! A zone with a random write area (ZRWA) is active; its writes, appends and
//! commits are events of their own.

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
    const COUNT: usize = Placement::ALL.len() * 8;

    /// Conditions of writes that go well are near each other.
    const fn index(self) -> usize {
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

/// Writes rows in columns; `any` and `stay` stand for every placement and for
/// no change of state. Rows that ask nothing of ZRWA resources leave them out.
macro_rules! rows {
    ($( [$($from:ident)+] $event:ident [$($placement:ident)+] $active:ident $open:ident
        $($zrwa:ident)? => $next:ident $status:ident $open_delta:literal $active_delta:literal; )+) => {
        &[$( Row {
            from: &[$(State::$from),+],
            event: Event::$event,
            placement: rows!(@placement $($placement)+),
            active: Resource::$active,
            open: Resource::$open,
            zrwa: rows!(@zrwa $($zrwa)?),
            next: rows!(@next $next),
            status: Status::$status,
            open_delta: $open_delta,
            active_delta: $active_delta,
        } ),+]
    };
    (@placement any) => { &Placement::ALL };
    (@placement $($placement:ident)+) => { &[$(Placement::$placement),+] };
    (@zrwa) => { Resource::Any };
    (@zrwa $zrwa:ident) => { Resource::$zrwa };
    (@next stay) => { None };
    (@next $next:ident) => { Some(State::$next) };
}

/// The table.
///
/// Columns: states, event, placement, active, open and ZRWA resources; next
/// state, status, change of open zones, change of active zones. Every
/// combination matches exactly one row, so the order of rows means nothing.
pub const ROWS: &[Row] = rows! {
    // A write or append: first what the state forbids, then where the blocks go, then resources.
    [Full]                              Write [any]            Any Any       => stay ZONE_IS_FULL 0 0;
    [ReadOnly]                          Write [any]            Any Any       => stay ZONE_IS_READ_ONLY 0 0;
    [Offline]                           Write [any]            Any Any       => stay ZONE_IS_OFFLINE 0 0;
    [Empty ImplicitlyOpened ExplicitlyOpened Closed]
                                        Write [Elsewhere]      Any Any       => stay ZONE_INVALID_WRITE 0 0;
    [Empty ImplicitlyOpened ExplicitlyOpened Closed]
                                        Write [Beyond]         Any Any       => stay ZONE_BOUNDARY_ERROR 0 0;
    [Empty]                             Write [Within Filling] Exhausted Any => stay TOO_MANY_ACTIVE_ZONES 0 0;
    [Empty]                             Write [Within Filling] Free Exhausted => stay TOO_MANY_OPEN_ZONES 0 0;
    [Empty]                             Write [Within]         Free Free     => ImplicitlyOpened SUCCESS 1 1;
    [Empty]                             Write [Filling]        Free Free     => Full SUCCESS 0 0;
    [Closed]                            Write [Within Filling] Any Exhausted => stay TOO_MANY_OPEN_ZONES 0 0;
    [Closed]                            Write [Within]         Any Free      => ImplicitlyOpened SUCCESS 1 0;
    [Closed]                            Write [Filling]        Any Free      => Full SUCCESS 0 -1;
    [ImplicitlyOpened ExplicitlyOpened] Write [Within]         Any Any       => stay SUCCESS 0 0;
    [ImplicitlyOpened ExplicitlyOpened] Write [Filling]        Any Any       => Full SUCCESS -1 -1;

    [Empty]                             Open [any] Exhausted Any  => stay TOO_MANY_ACTIVE_ZONES 0 0;
    [Empty]                             Open [any] Free Exhausted => stay TOO_MANY_OPEN_ZONES 0 0;
    [Empty]                             Open [any] Free Free      => ExplicitlyOpened SUCCESS 1 1;
    [Closed]                            Open [any] Any Exhausted  => stay TOO_MANY_OPEN_ZONES 0 0;
    [Closed]                            Open [any] Any Free       => ExplicitlyOpened SUCCESS 1 0;
    [ImplicitlyOpened]                  Open [any] Any Any        => ExplicitlyOpened SUCCESS 0 0;
    [ExplicitlyOpened]                  Open [any] Any Any        => stay SUCCESS 0 0;
    [Full ReadOnly Offline]             Open [any] Any Any        => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    // Closed even if nothing was written: only ZAC and ZBC go back to empty.
    [ImplicitlyOpened ExplicitlyOpened] Close [any] Any Any => Closed SUCCESS -1 0;
    [Closed]                            Close [any] Any Any => stay SUCCESS 0 0;
    [Empty Full ReadOnly Offline]       Close [any] Any Any => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    [Empty]                             Finish [any] Any Any => Full SUCCESS 0 0;
    [ImplicitlyOpened ExplicitlyOpened] Finish [any] Any Any => Full SUCCESS -1 -1;
    [Closed]                            Finish [any] Any Any => Full SUCCESS 0 -1;
    [Full]                              Finish [any] Any Any => stay SUCCESS 0 0;
    [ReadOnly Offline]                  Finish [any] Any Any => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    [Empty]                             Reset [any] Any Any => stay SUCCESS 0 0;
    [ImplicitlyOpened ExplicitlyOpened] Reset [any] Any Any => Empty SUCCESS -1 -1;
    [Closed]                            Reset [any] Any Any => Empty SUCCESS 0 -1;
    [Full]                              Reset [any] Any Any => Empty SUCCESS 0 0;
    [ReadOnly Offline]                  Reset [any] Any Any => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    [ReadOnly]                          Offline [any] Any Any => Offline SUCCESS 0 0;
    [Offline]                           Offline [any] Any Any => stay SUCCESS 0 0;
    [Empty ImplicitlyOpened ExplicitlyOpened Closed Full]
                                        Offline [any] Any Any => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    [Empty]                             SetExtension [any] Exhausted Any => stay TOO_MANY_ACTIVE_ZONES 0 0;
    [Empty]                             SetExtension [any] Free Any      => Closed SUCCESS 0 1;
    [ImplicitlyOpened ExplicitlyOpened Closed Full ReadOnly Offline]
                                        SetExtension [any] Any Any       => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    // Zones with a random write area. Such zones are active, so the rows of writes
    // and appends for other states are never asked.
    [Empty Full ReadOnly Offline]       WriteZrwa [any]              Any Any       => stay INVALID_ZONE_OPERATION_REQUEST 0 0;
    [ImplicitlyOpened ExplicitlyOpened Closed]
                                        WriteZrwa [Elsewhere Beyond] Any Any       => stay ZONE_INVALID_WRITE 0 0;
    [Closed]                            WriteZrwa [Within Filling]   Any Exhausted => stay TOO_MANY_OPEN_ZONES 0 0;
    [Closed]                            WriteZrwa [Within]           Any Free      => ImplicitlyOpened SUCCESS 1 0;
    [Closed]                            WriteZrwa [Filling]          Any Free      => Full SUCCESS 0 -1;
    [ImplicitlyOpened ExplicitlyOpened] WriteZrwa [Within]           Any Any       => stay SUCCESS 0 0;
    [ImplicitlyOpened ExplicitlyOpened] WriteZrwa [Filling]          Any Any       => Full SUCCESS -1 -1;
    // The blocks of an append would have no place of their own.
    [Empty ImplicitlyOpened ExplicitlyOpened Closed Full ReadOnly Offline]
                                        AppendZrwa [any] Any Any => stay INVALID_ZONE_OPERATION_REQUEST 0 0;

    // Only an empty zone can get a random write area.
    [Empty]                             OpenZrwa [any] Exhausted Any       => stay TOO_MANY_ACTIVE_ZONES 0 0;
    [Empty]                             OpenZrwa [any] Free Exhausted      => stay TOO_MANY_OPEN_ZONES 0 0;
    [Empty]                             OpenZrwa [any] Free Free Exhausted => stay ZRWA_RESOURCES_UNAVAILABLE 0 0;
    [Empty]                             OpenZrwa [any] Free Free Free      => ExplicitlyOpened SUCCESS 1 1;
    [ImplicitlyOpened ExplicitlyOpened Closed]
                                        OpenZrwa [any] Any Any             => stay INVALID_ZONE_OPERATION_REQUEST 0 0;
    [Full ReadOnly Offline]             OpenZrwa [any] Any Any             => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    [Empty]                             SetExtensionZrwa [any] Exhausted Any      => stay TOO_MANY_ACTIVE_ZONES 0 0;
    [Empty]                             SetExtensionZrwa [any] Free Any Exhausted => stay ZRWA_RESOURCES_UNAVAILABLE 0 0;
    [Empty]                             SetExtensionZrwa [any] Free Any Free      => Closed SUCCESS 0 1;
    [ImplicitlyOpened ExplicitlyOpened Closed Full ReadOnly Offline]
                            SetExtensionZrwa [any] Any Any => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    [Empty Full ReadOnly Offline]       CommitZrwa [any]              Any Any       => stay INVALID_ZONE_OPERATION_REQUEST 0 0;
    [ImplicitlyOpened ExplicitlyOpened Closed]
                            CommitZrwa [Elsewhere Beyond] Any Any => stay INVALID_ZONE_OPERATION_REQUEST 0 0;
    [Closed]                            CommitZrwa [Within Filling]   Any Exhausted => stay TOO_MANY_OPEN_ZONES 0 0;
    [Closed]                            CommitZrwa [Within]           Any Free      => ImplicitlyOpened SUCCESS 1 0;
    [Closed]                            CommitZrwa [Filling]          Any Free      => Full SUCCESS 0 -1;
    [ImplicitlyOpened ExplicitlyOpened] CommitZrwa [Within]           Any Any       => stay SUCCESS 0 0;
    [ImplicitlyOpened ExplicitlyOpened] CommitZrwa [Filling]          Any Any       => Full SUCCESS -1 -1;

    [ImplicitlyOpened]                  ImplicitClose [any] Any Any => Closed SUCCESS -1 0;
    [Empty ExplicitlyOpened Closed Full ReadOnly Offline]
                                        ImplicitClose [any] Any Any => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    [Empty Full]                        FailReadOnly [any] Any Any => ReadOnly SUCCESS 0 0;
    [ImplicitlyOpened ExplicitlyOpened] FailReadOnly [any] Any Any => ReadOnly SUCCESS -1 -1;
    [Closed]                            FailReadOnly [any] Any Any => ReadOnly SUCCESS 0 -1;
    [ReadOnly]                          FailReadOnly [any] Any Any => stay SUCCESS 0 0;
    [Offline]                           FailReadOnly [any] Any Any => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    [Empty Full ReadOnly]               FailOffline [any] Any Any => Offline SUCCESS 0 0;
    [ImplicitlyOpened ExplicitlyOpened] FailOffline [any] Any Any => Offline SUCCESS -1 -1;
    [Closed]                            FailOffline [any] Any Any => Offline SUCCESS 0 -1;
    [Offline]                           FailOffline [any] Any Any => stay SUCCESS 0 0;

    [Empty]                             Precondition [any] Any Any => Full SUCCESS 0 0;
    [ImplicitlyOpened ExplicitlyOpened Closed Full ReadOnly Offline]
                                        Precondition [any] Any Any => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    [Empty]                             PowerCycleEmpty [any] Any Any => stay SUCCESS 0 0;
    [ImplicitlyOpened ExplicitlyOpened] PowerCycleEmpty [any] Any Any => Empty SUCCESS -1 -1;
    [Closed]                            PowerCycleEmpty [any] Any Any => Empty SUCCESS 0 -1;
    [Full]                              PowerCycleEmpty [any] Any Any => Empty SUCCESS 0 0;
    [ReadOnly Offline]                  PowerCycleEmpty [any] Any Any => stay INVALID_ZONE_STATE_TRANSITION 0 0;

    [ImplicitlyOpened ExplicitlyOpened] PowerCyclePartial [any] Any Any => Closed SUCCESS -1 0;
    [Closed]                            PowerCyclePartial [any] Any Any => stay SUCCESS 0 0;
    // Its last write was lost, so it is active again, if it can be.
    [Full]                              PowerCyclePartial [any] Free Any => Closed SUCCESS 0 1;
    [Full]                              PowerCyclePartial [any] Exhausted Any => stay TOO_MANY_ACTIVE_ZONES 0 0;
    [Empty ReadOnly Offline]            PowerCyclePartial [any] Any Any => stay INVALID_ZONE_STATE_TRANSITION 0 0;
};

/// What a row says about one state, ready to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the command completes. Unless it is success, nothing changes.
    pub status: Status,
    /// The state of the zone from now on.
    pub next: State,
    /// Change of the number of open zones.
    pub open_delta: i8,
    /// Change of the number of active zones.
    pub active_delta: i8,
    /// The zone takes an open resource, if only until the command ends: if none
    /// is left, the oldest implicitly opened zone is closed first.
    pub takes_open: bool,
    /// The zone gets a random write area.
    pub takes_zrwa: bool,
}

/// Outcomes by state, event and condition.
type Dense = [[[Outcome; Condition::COUNT]; Event::ALL.len()]; State::ALL.len()];

static DENSE: Dense = expand(ROWS);

/// What `event` does to a zone in `state` under `condition`.
#[inline]
#[must_use]
pub fn outcome(state: State, event: Event, condition: Condition) -> Outcome {
    DENSE[state as usize][event as usize][condition.index()]
}

/// Expands rows into the dense array. Evaluated at compile time, where a
/// failed assertion is an error: two rows for one combination, or none.
const fn expand(rows: &[Row]) -> Dense {
    const UNSET: Outcome = Outcome {
        status: Status::INTERNAL_ERROR,
        next: State::Offline,
        open_delta: 0,
        active_delta: 0,
        takes_open: false,
        takes_zrwa: false,
    };
    let mut dense = [[[UNSET; Condition::COUNT]; Event::ALL.len()]; State::ALL.len()];
    let mut cells = 0;
    let mut r = 0;
    while r < rows.len() {
        let row = &rows[r];
        let mut s = 0;
        while s < row.from.len() {
            let state = row.from[s];
            let cell = &mut dense[state as usize][row.event as usize];
            cells += fill(cell, row, state);
            s += 1;
        }
        r += 1;
    }
    assert!(
        cells == Condition::COUNT * Event::ALL.len() * State::ALL.len(),
        "a combination matches no row"
    );
    dense
}

/// Sets the outcome of every condition that `row` matches; returns their number.
const fn fill(cell: &mut [Outcome; Condition::COUNT], row: &Row, state: State) -> usize {
    let mut filled = 0;
    let mut p = 0;
    while p < row.placement.len() {
        let mut bits = 0;
        while bits < 8 {
            let condition = Condition {
                placement: row.placement[p],
                active_free: bits & 2 != 0,
                open_free: bits & 1 != 0,
                zrwa_free: bits & 4 != 0,
            };
            if row.active.matches(condition.active_free)
                && row.open.matches(condition.open_free)
                && row.zrwa.matches(condition.zrwa_free)
            {
                let slot = &mut cell[condition.index()];
                assert!(
                    slot.status.0 == Status::INTERNAL_ERROR.0,
                    "a combination matches two rows"
                );
                *slot = row_outcome(row, state);
                filled += 1;
            }
            bits += 1;
        }
        p += 1;
    }
    filled
}

const fn row_outcome(row: &Row, state: State) -> Outcome {
    let next = match row.next {
        Some(next) => next,
        None => state,
    };
    Outcome {
        status: row.status,
        next,
        open_delta: row.open_delta,
        active_delta: row.active_delta,
        takes_open: row.status.is_success() && matches!(row.open, Resource::Free),
        takes_zrwa: row.status.is_success() && matches!(row.zrwa, Resource::Free),
    }
}
