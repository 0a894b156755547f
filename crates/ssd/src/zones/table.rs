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

pub use super::conditions::*;

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
