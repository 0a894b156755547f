//! A picture of zone states: zones by time.

use std::collections::BTreeMap;

use serde::Serialize;
use zonelab_device::Nanos;
use zonelab_lab::run::ZoneHistory;
use zonelab_nvme::zns::ZoneState;

/// Rows at most: beyond, neighbouring zones share one.
const ROWS_MAX: usize = 96;
/// Columns at most, and at least.
const COLUMNS: (u64, u64) = (240, 30);
/// Bytes of the rows, beyond which columns are halved.
const BYTES_MAX: usize = 6_000;
/// The letters of [`ZoneMap::rows`], and what they stand for.
pub(super) const STATES: [(char, ZoneState); 7] = [
    ('E', ZoneState::EMPTY),
    ('I', ZoneState::IMPLICITLY_OPENED),
    ('X', ZoneState::EXPLICITLY_OPENED),
    ('C', ZoneState::CLOSED),
    ('F', ZoneState::FULL),
    ('R', ZoneState::READ_ONLY),
    ('O', ZoneState::OFFLINE),
];

/// Zones by time, of the zones whose state changed.
#[derive(Debug, Serialize)]
pub(super) struct ZoneMap {
    /// Simulated time that the columns share equally.
    to_ns: u64,
    columns: u64,
    /// Zones whose state changed.
    zones: usize,
    /// Changes shown, and changes that were not kept.
    records: usize,
    dropped: u64,
    /// First and last zone of each row.
    labels: Vec<(u32, u32)>,
    /// Each row from left to right: a letter and the number of columns, and so
    /// on. A cell has the state that its zones were in for most of its time.
    rows: Vec<String>,
}

/// The states of a zone: what it was before the first change, and each change.
struct Track {
    zone: u32,
    before: ZoneState,
    changes: Vec<(u64, ZoneState)>,
}

impl ZoneMap {
    /// The picture of a run that took `simulated`. `None` if no state changed,
    /// or in no time.
    pub(super) fn of(history: &ZoneHistory, simulated: Nanos) -> Option<Self> {
        let last = history.records.iter().map(|record| record.at).max();
        let to = simulated.max(last.unwrap_or_default());
        let tracks = tracks(history);
        if tracks.is_empty() || to == Nanos::ZERO {
            return None;
        }
        let groups: Vec<&[Track]> = tracks.chunks(tracks.len().div_ceil(ROWS_MAX)).collect();
        let (mut columns, least) = COLUMNS;
        let rows = loop {
            let rows: Vec<_> = groups
                .iter()
                .map(|group| row(group, to.0, columns))
                .collect();
            let bytes: usize = rows.iter().map(String::len).sum();
            if bytes <= BYTES_MAX || columns / 2 < least {
                break rows;
            }
            columns /= 2;
        };
        let ends = |group: &&[Track]| Some((group.first()?.zone, group.last()?.zone));
        Some(Self {
            to_ns: to.0,
            columns,
            zones: tracks.len(),
            records: history.records.len(),
            dropped: history.dropped,
            labels: groups.iter().filter_map(ends).collect(),
            rows,
        })
    }
}

fn tracks(history: &ZoneHistory) -> Vec<Track> {
    let mut tracks: BTreeMap<u32, Track> = BTreeMap::new();
    for record in &history.records {
        let track = tracks.entry(record.zone.0).or_insert_with(|| Track {
            zone: record.zone.0,
            before: record.from,
            changes: Vec::new(),
        });
        track.changes.push((record.at.0, record.to));
    }
    tracks.into_values().collect()
}

/// One row: `group` from time 0 to `to`.
fn row(group: &[Track], to: u64, columns: u64) -> String {
    let mut cells = vec![[0_u64; STATES.len()]; columns as usize];
    for track in group {
        let (mut since, mut state) = (0, track.before);
        for &(at, next) in &track.changes {
            spend(&mut cells, to, (since, at), state);
            (since, state) = (at.max(since), next);
        }
        spend(&mut cells, to, (since, to), state);
    }
    let letters = cells.iter().map(|cell| {
        // The first of equals, for a stable picture.
        let most = (0..STATES.len()).rev().max_by_key(|&state| cell[state]);
        STATES[most.unwrap_or(0)].0
    });
    runs(letters)
}

/// Adds the time from `from` to `until` in `state` to the cells it lies in.
fn spend(cells: &mut [[u64; STATES.len()]], to: u64, (from, until): (u64, u64), state: ZoneState) {
    let Some(index) = STATES.iter().position(|(_, known)| *known == state) else {
        return;
    };
    let columns = cells.len() as u128;
    // Column c begins at c * to / columns: in between, nothing is lost to rounding.
    let start = |column: u128| (column * u128::from(to) / columns) as u64;
    let mut column = u128::from(from) * columns / u128::from(to);
    while column < columns && start(column) < until {
        let begin = start(column).max(from);
        let end = start(column + 1).min(until);
        cells[column as usize][index] += end.saturating_sub(begin);
        column += 1;
    }
}

/// Letters as pairs of a letter and how often it comes in a row.
fn runs(letters: impl Iterator<Item = char>) -> String {
    let mut runs: Vec<(char, u32)> = Vec::new();
    for letter in letters {
        match runs.last_mut().filter(|run| run.0 == letter) {
            Some(run) => run.1 += 1,
            None => runs.push((letter, 1)),
        }
    }
    runs.iter()
        .map(|(letter, count)| format!("{letter}{count}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use zonelab_device::ZoneId;
    use zonelab_ssd::record::ZoneRecord;

    use super::*;

    fn record(at: u64, zone: u32, from: ZoneState, to: ZoneState) -> ZoneRecord {
        ZoneRecord {
            at: Nanos(at),
            zone: ZoneId(zone),
            from,
            to,
            written_lbas: 0,
        }
    }

    fn history(records: Vec<ZoneRecord>) -> ZoneHistory {
        ZoneHistory {
            records,
            dropped: 0,
        }
    }

    const EMPTY: ZoneState = ZoneState::EMPTY;
    const OPEN: ZoneState = ZoneState::IMPLICITLY_OPENED;
    const FULL: ZoneState = ZoneState::FULL;

    #[test]
    fn a_zone_is_in_its_state_until_the_next_change() {
        let map = ZoneMap::of(
            &history(vec![
                record(60, 5, EMPTY, OPEN),
                record(120, 9, FULL, EMPTY),
                record(180, 5, OPEN, FULL),
            ]),
            Nanos(240),
        )
        .unwrap();
        assert_eq!((map.columns, map.zones, map.records), (240, 2, 3));
        assert_eq!(map.labels, [(5, 5), (9, 9)]);
        assert_eq!(map.rows, ["E60I120F60", "F120E120"]);
    }

    #[test]
    fn a_cell_shows_what_lasted_longest() {
        // Column of 100 ns: open for 70 of them.
        let map = ZoneMap::of(
            &history(vec![
                record(120, 0, EMPTY, OPEN),
                record(190, 0, OPEN, FULL),
            ]),
            Nanos(24_000),
        )
        .unwrap();
        assert_eq!(map.rows, ["E1I1F238"]);
    }

    #[test]
    fn nothing_to_show_is_no_picture() {
        assert!(ZoneMap::of(&history(vec![]), Nanos(10)).is_none());
        let at_once = history(vec![record(0, 0, EMPTY, OPEN)]);
        assert!(ZoneMap::of(&at_once, Nanos::ZERO).is_none());
        let late = history(vec![record(u64::MAX, 0, EMPTY, OPEN)]);
        assert_eq!(ZoneMap::of(&late, Nanos(5)).unwrap().rows, ["E240"]);
    }

    #[test]
    fn many_zones_and_changes_stay_small() {
        let mut records = Vec::new();
        for at in 0..100_000_u64 {
            let zone = (at % 1_000) as u32;
            let is_open = at / 1_000 % 2 == 0;
            let (from, to) = if is_open {
                (EMPTY, OPEN)
            } else {
                (OPEN, EMPTY)
            };
            records.push(record(at * 7, zone, from, to));
        }
        let mut all = history(records);
        all.dropped = 12;
        let map = ZoneMap::of(&all, Nanos(700_000)).unwrap();
        assert_eq!((map.zones, map.dropped, map.columns), (1_000, 12, 60));
        assert!(map.rows.len() <= ROWS_MAX, "{}", map.rows.len());
        assert_eq!(map.labels[0], (0, 10));
        for row in &map.rows {
            let counts = row.split(|c: char| c.is_ascii_alphabetic());
            let total: u64 = counts.filter_map(|count| count.parse::<u64>().ok()).sum();
            assert_eq!(total, map.columns);
        }
    }
}
