//! The table of the zone state machine: complete, unambiguous, consistent, and documented.

use std::path::Path;

use zonelab_nvme::Status;
use zonelab_ssd::zones::table::{
    Condition, Event, Outcome, Placement, ROWS, Resource, State, outcome,
};

/// Every condition.
fn conditions() -> impl Iterator<Item = Condition> {
    Placement::ALL.into_iter().flat_map(|placement| {
        (0..8).map(move |bits| Condition {
            placement,
            active_free: bits & 1 != 0,
            open_free: bits & 2 != 0,
            zrwa_free: bits & 4 != 0,
        })
    })
}

/// Every combination of state, event and condition.
fn combinations() -> impl Iterator<Item = (State, Event, Condition)> {
    State::ALL.into_iter().flat_map(|state| {
        Event::ALL
            .into_iter()
            .flat_map(move |event| conditions().map(move |condition| (state, event, condition)))
    })
}

#[test]
fn exactly_one_row_matches_every_combination() {
    assert_eq!(combinations().count(), 7 * 18 * 32);
    for (state, event, condition) in combinations() {
        let matching: Vec<_> = ROWS
            .iter()
            .filter(|row| row.matches(state, event, condition))
            .collect();
        assert_eq!(
            matching.len(),
            1,
            "{state:?} {event:?} {condition:?}: {matching:#?}"
        );
    }
}

#[test]
fn the_expanded_table_says_what_the_rows_say() {
    for (state, event, condition) in combinations() {
        let row = ROWS
            .iter()
            .find(|row| row.matches(state, event, condition))
            .unwrap();
        let expected = Outcome {
            status: row.status,
            next: row.next.unwrap_or(state),
            open_delta: row.open_delta,
            active_delta: row.active_delta,
            takes_open: row.status.is_success() && row.open == Resource::Free,
            takes_zrwa: row.status.is_success() && row.zrwa == Resource::Free,
        };
        assert_eq!(
            outcome(state, event, condition),
            expected,
            "{state:?} {event:?} {condition:?}"
        );
    }
}

#[test]
fn resource_deltas_are_what_the_states_imply() {
    for row in ROWS {
        for &from in row.from {
            let next = row.next.unwrap_or(from);
            let open = i8::from(next.is_open()) - i8::from(from.is_open());
            let active = i8::from(next.is_active()) - i8::from(from.is_active());
            assert_eq!(
                (row.open_delta, row.active_delta),
                (open, active),
                "{row:?}"
            );
        }
    }
}

#[test]
fn failures_change_nothing() {
    for row in ROWS.iter().filter(|row| !row.status.is_success()) {
        assert_eq!(row.next, None, "{row:?}");
    }
}

#[test]
fn a_row_that_leaves_the_state_alone_says_stay() {
    for row in ROWS {
        for from in row.from {
            assert_ne!(row.next, Some(*from), "{row:?}");
        }
    }
}

/// A success takes no more than there is, and asks for nothing that it does not take.
#[test]
fn resources_are_asked_for_where_they_are_taken() {
    for row in ROWS.iter().filter(|row| row.status.is_success()) {
        for &from in row.from {
            // A write passes through an open state, even if it fills the zone at once.
            let opens = !from.is_open()
                && matches!(
                    row.event,
                    Event::Write
                        | Event::Open
                        | Event::WriteZrwa
                        | Event::OpenZrwa
                        | Event::CommitZrwa
                );
            let activates = !from.is_active()
                && matches!(
                    row.event,
                    Event::Write
                        | Event::Open
                        | Event::SetExtension
                        | Event::OpenZrwa
                        | Event::SetExtensionZrwa
                        | Event::PowerCyclePartial
                );
            let gets_area = matches!(row.event, Event::OpenZrwa | Event::SetExtensionZrwa);
            let asked = |taken| if taken { Resource::Free } else { Resource::Any };
            assert_eq!(row.zrwa, asked(gets_area), "{row:?}");
            assert_eq!(row.open, asked(opens), "{row:?}");
            assert_eq!(row.active, asked(activates), "{row:?}");
        }
    }
}

#[test]
fn placement_matters_to_writes_and_commits_only() {
    let is_placed = |event| matches!(event, Event::Write | Event::WriteZrwa | Event::CommitZrwa);
    for row in ROWS.iter().filter(|row| !is_placed(row.event)) {
        assert_eq!(row.placement, &Placement::ALL, "{row:?}");
    }
}

/// Areas are of active zones: a zone gets one on its way from empty to active,
/// and what only zones with one do leads nowhere from other states.
#[test]
fn areas_belong_to_active_zones() {
    for (state, event, condition) in combinations() {
        let outcome = outcome(state, event, condition);
        if outcome.takes_zrwa {
            assert!(
                state == State::Empty && outcome.next.is_active(),
                "{event:?}"
            );
        }
        let needs_area = matches!(
            event,
            Event::WriteZrwa | Event::AppendZrwa | Event::CommitZrwa
        );
        if needs_area && !state.is_active() {
            assert!(!outcome.status.is_success(), "{state:?} {event:?}");
        }
    }
}

/// Nothing leads out of offline, and only a fault or the host's offline leads out of read only.
#[test]
fn dead_zones_stay_dead() {
    for (state, event, condition) in combinations() {
        let next = outcome(state, event, condition).next;
        match state {
            State::Offline => assert_eq!(next, State::Offline, "{event:?}"),
            State::ReadOnly => assert!(
                matches!(next, State::ReadOnly | State::Offline),
                "{event:?}"
            ),
            _ => {}
        }
    }
}

/// What Select All selects can be done, given resources.
#[test]
fn selected_zones_have_a_transition() {
    for event in Event::ALL {
        for &state in event.select_all() {
            let outcome = outcome(state, event, PLENTY);
            assert_eq!(outcome.status, Status::SUCCESS, "{event:?} {state:?}");
            assert_ne!(outcome.next, state, "{event:?} {state:?}");
        }
    }
}

/// Resources are free, and a write goes to the write pointer and does not fill the zone.
const PLENTY: Condition = Condition {
    placement: Placement::Within,
    active_free: true,
    open_free: true,
    zrwa_free: true,
};

// The page docs/models/zone-states.md.

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/models/zone-states.md"
);
const BEGIN: &str = "<!-- generated from crates/ssd/src/zones/table.rs: begin -->\n";
const END: &str = "<!-- generated: end -->\n";
const GLANCE: &str = "\
What happens if resources are free and a write goes to the write pointer: the next
state in bold, or the status. – is Invalid Zone State Transition; *stays* is
success without a change of state.
";

/// Fails if the page differs from the table; `ZONELAB_BLESS=1` rewrites it.
#[test]
fn the_page_shows_the_table() {
    let path = Path::new(PAGE);
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a begin mark");
    let (_, after) = rest.split_once(END).expect("the page has an end mark");
    let expected = format!(
        "{before}{BEGIN}\n## At a glance\n\n{GLANCE}\n{}\n{END}{after}",
        overview()
    );
    if std::env::var_os("ZONELAB_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::write(path, expected).unwrap();
    } else {
        assert!(
            page == expected,
            "docs/models/zone-states.md is out of date: run this test with ZONELAB_BLESS=1"
        );
    }
}

/// State by event, when nothing stands in the way.
fn overview() -> String {
    let mut lines = vec![
        line(std::iter::once("").chain(State::ALL.map(abbreviation))),
        line(["---"; 1 + State::ALL.len()]),
    ];
    let mut add = |name: &str, event, condition| {
        let cells = State::ALL.map(|state| {
            let outcome = outcome(state, event, condition);
            match outcome.status {
                Status::SUCCESS if outcome.next == state => "stays".into(),
                Status::SUCCESS => format!("**{}**", abbreviation(outcome.next)),
                Status::INVALID_ZONE_STATE_TRANSITION => "–".into(),
                status => status_name(status),
            }
        });
        lines.push(line(std::iter::once(name.into()).chain(cells)));
    };
    for event in Event::ALL {
        add(event_name(event), event, PLENTY);
        if event == Event::Write {
            let filling = Condition {
                placement: Placement::Filling,
                ..PLENTY
            };
            add("write that fills the zone", event, filling);
        }
    }
    lines.concat()
}

/// One line of a table.
fn line<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let cells = cells
        .into_iter()
        .map(|cell| format!(" {} |", cell.as_ref()));
    format!("|{}\n", cells.collect::<String>())
}

fn abbreviation(state: State) -> &'static str {
    match state {
        State::Empty => "ZSE",
        State::ImplicitlyOpened => "ZSIO",
        State::ExplicitlyOpened => "ZSEO",
        State::Closed => "ZSC",
        State::Full => "ZSF",
        State::ReadOnly => "ZSRO",
        State::Offline => "ZSO",
    }
}

fn event_name(event: Event) -> &'static str {
    match event {
        Event::Write => "write",
        Event::Open => "open",
        Event::Close => "close",
        Event::Finish => "finish",
        Event::Reset => "reset",
        Event::Offline => "offline",
        Event::SetExtension => "set extension",
        Event::WriteZrwa => "write, ZRWA",
        Event::AppendZrwa => "append, ZRWA",
        Event::OpenZrwa => "open with ZRWA",
        Event::SetExtensionZrwa => "set extension with ZRWA",
        Event::CommitZrwa => "commit of ZRWA",
        Event::ImplicitClose => "implicit close",
        Event::FailReadOnly => "fails, read only",
        Event::FailOffline => "fails, offline",
        Event::Precondition => "precondition",
        Event::PowerCycleEmpty => "power cycle, nothing left",
        Event::PowerCyclePartial => "power cycle, part left",
    }
}

fn status_name(status: Status) -> String {
    if status.is_success() {
        return "Success".into();
    }
    status.name().expect("the table uses named codes").into()
}
