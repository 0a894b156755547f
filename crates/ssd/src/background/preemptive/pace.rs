//! When rows wait for better times: thresholds that adapt to the load (beyond
//! the paper, which leaves them to the user).
//!
//! The paper's S1 erases a row in any pause of the host, and a command that
//! comes meanwhile waits for the rest of it. Two things decide here whether a row
//! may begin, both about what has been seen lately:
//!
//! * *Is it urgent?* Until one zone more than `T_free` is left, so many are still
//!   to be given flash as are free beyond `T_free`, but one. Those who are given
//!   flash come at a rate, and pauses have room for rows at a rate. If the pauses
//!   until then have no room for the rows of one zone, any pause will do:
//!
//!   ```text
//!   (Z_free - T_free - 1) * rows that pauses had room for < rows of a zone * zones given flash
//!   ```
//!
//! * If not, *does it fit?* A row begins at an age of the pause at which most
//!   pauses so far that got as old went on for another row. That is asked at the
//!   start, after an eighth of a row (a host that has sent one command often sends
//!   the next at once), and after one row; pauses that last for two are long.
//!
//! So `T_invalid` is, in effect, higher the more zones are free, the fewer are
//! needed and the more pauses there are, and as stated when time runs out.
//!
//! All counts lose half of their weight in a stated time, so that only their
//! proportions matter. They are lost with the power.

use zonelab_device::Nanos;

/// The weight of what has just been seen: counts are halved 16 times before it is gone.
const ONE: u64 = 1 << 16;
/// No count gets higher. It would take more than 2^24 in a half-life.
const COUNT_MAX: u64 = 1 << 40;

/// Ages of a pause at which a row may begin, in eighths of the time that it takes.
const AGES: [u64; 3] = [0, 1, 8];
/// From this age on it may in any case.
const LONG: u64 = 16;

/// What a group of zones has seen of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    half_life: Nanos,
    /// Counts have been halved up to then.
    halved: Nanos,
    /// Zones that were given flash.
    allocated: u64,
    /// Rows that could have begun in pauses.
    room: u64,
    /// Pauses that got as old as each of [`AGES`], and those that then lasted for a row.
    pauses: [(u64, u64); AGES.len()],
    /// Since when nothing is pending.
    since: Option<Nanos>,
}

impl Pace {
    /// Nothing has been seen.
    pub(super) fn new(half_life: Nanos) -> Self {
        Self {
            half_life,
            halved: Nanos::ZERO,
            allocated: 0,
            room: 0,
            pauses: [(0, 0); AGES.len()],
            since: None,
        }
    }

    /// Something is pending from `now` on, where a row takes `row`.
    pub(super) fn pause_ends(&mut self, now: Nanos, row: Nanos) {
        let Some(since) = self.since.take() else {
            return;
        };
        self.decay(now);
        let (length, row) = (now.0.saturating_sub(since.0), row.0.max(1));
        // Of what is longer ago than a half-life, less than half counts.
        let rows = length.min(self.half_life.0) / row;
        add(&mut self.room, ONE.saturating_mul(rows + 1));
        for (age, (reached, lasted)) in AGES.into_iter().zip(&mut self.pauses) {
            if length >= eighths(row, age) {
                add(reached, ONE);
            }
            if length >= eighths(row, age + 8) {
                add(lasted, ONE);
            }
        }
    }

    /// Nothing is pending from `now` on.
    pub(super) fn pause_begins(&mut self, now: Nanos) {
        self.since = Some(now);
    }

    /// A zone was given flash.
    pub(super) fn allocates(&mut self, now: Nanos) {
        self.decay(now);
        add(&mut self.allocated, ONE);
    }

    fn decay(&mut self, now: Nanos) {
        let passed = now.0.saturating_sub(self.halved.0) / self.half_life.0.max(1);
        if passed > 0 {
            let times = u32::try_from(passed).unwrap_or(u32::MAX);
            let pauses = self.pauses.iter_mut().flat_map(|(a, b)| [a, b]);
            for count in [&mut self.allocated, &mut self.room]
                .into_iter()
                .chain(pauses)
            {
                *count = count.checked_shr(times).unwrap_or(0);
            }
            self.halved = Nanos(self.halved.0 + passed * self.half_life.0);
        }
    }

    /// Whether a row has to be erased in any pause, with `spare` zones more free
    /// than the threshold, and a zone of `rows`.
    fn is_urgent(&self, spare: u32, rows: u32) -> bool {
        let room = u128::from(self.room) * u128::from(spare.saturating_sub(1));
        room < u128::from(self.allocated) * u128::from(rows)
    }

    /// When the next row can begin, now that nothing is pending: `now`, or when it
    /// is to be asked again.
    pub(super) fn next_row(&mut self, now: Nanos, row: Nanos, (spare, rows): (u32, u32)) -> Nanos {
        self.decay(now);
        let since = *self.since.get_or_insert(now);
        if self.is_urgent(spare, rows) {
            return now;
        }
        let (row, age) = (row.0.max(1), now.0.saturating_sub(since.0));
        let rules = (0..AGES.len()).map(|at| {
            let (reached, lasted) = self.pauses[at];
            let next = *AGES.get(at + 1).unwrap_or(&LONG);
            // Where nothing is known, a pause that has lasted for a row is good enough.
            let fits = match AGES[at] < 8 {
                true => 2 * lasted > reached,
                false => 2 * lasted >= reached,
            };
            (fits, eighths(row, next))
        });
        match rules.into_iter().find(|(_, end)| age < *end) {
            Some((false, end)) => since.saturating_add(Nanos(end)),
            _ => now,
        }
    }
}

/// So many eighths of the time of a row.
fn eighths(row: u64, count: u64) -> u64 {
    // Divided last, so that none is lost; fits if a row takes less than an hour.
    row.saturating_mul(count) / 8
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more).min(COUNT_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Nanos = Nanos::from_us(5_000);
    const LIFE: Nanos = Nanos::from_us(10_000_000);

    fn seen(pauses_us: &[u64], zones: u32) -> (Pace, Nanos) {
        let mut pace = Pace::new(LIFE);
        let mut now = Nanos::ZERO;
        for pause in pauses_us {
            pace.pause_begins(now);
            now += Nanos::from_us(*pause);
            pace.pause_ends(now, ROW);
        }
        for _ in 0..zones {
            pace.allocates(now);
        }
        pace.pause_begins(now);
        (pace, now)
    }

    #[test]
    fn a_row_begins_where_most_pauses_have_room_for_it() {
        for (pauses_us, wait_us) in [
            (&[6_000, 7_000, 100][..], 0),
            // As many do not, but all of those that get older than 0.625 ms.
            (&[6_000, 100], 625),
            (&[20_000, 100, 100], 625),
            (&[20_000, 1_000, 1_000, 100], 5_000),
            // Only those that got as old last one row, and no more.
            (&[6_000, 1_000, 1_000], 10_000),
            (&[100, 100], 5_000),
            (&[], 5_000),
        ] {
            let (mut pace, mut now) = seen(pauses_us, 0);
            let start = now;
            loop {
                let at = pace.next_row(now, ROW, (3, 4));
                if at == now {
                    break;
                }
                assert!(at > now);
                now = at;
            }
            assert_eq!(now, start + Nanos::from_us(wait_us), "{pauses_us:?}");
        }
    }

    #[test]
    fn it_is_urgent_where_pauses_have_no_room_for_a_zone_until_it_is_needed() {
        // 40 short pauses for each of 2 zones: 20 rows each.
        let (pace, _) = seen(&[100; 40], 2);
        for (spare, rows, expected) in
            [(2, 20, false), (2, 21, true), (3, 40, false), (3, 41, true)]
        {
            assert_eq!(pace.is_urgent(spare, rows), expected, "{spare} {rows}");
        }
        // One zone is a reserve.
        assert!(pace.is_urgent(1, 1) && pace.is_urgent(0, 1));
        // Nothing is needed.
        let (pace, _) = seen(&[], 0);
        assert!(!pace.is_urgent(0, 100));
        // Long pauses have more room.
        let (pace, _) = seen(&[96_000; 2], 2);
        assert!(!pace.is_urgent(2, 20) && pace.is_urgent(2, 21));
    }

    #[test]
    fn what_was_seen_is_forgotten() {
        let (mut pace, now) = seen(&[100; 40], 1 << 10);
        assert!(pace.is_urgent(2, 1));
        let far = now + Nanos(LIFE.0 * 40);
        pace.decay(far);
        assert_eq!(
            (pace.room, pace.allocated, pace.pauses),
            (0, 0, [(0, 0); 3])
        );
        assert!(!pace.is_urgent(0, 100));
        // Nothing overflows.
        pace.pause_begins(Nanos::ZERO);
        pace.pause_ends(Nanos(u64::MAX), Nanos(1));
        let at = pace.next_row(Nanos(u64::MAX), Nanos(u64::MAX), (u32::MAX, u32::MAX));
        assert_eq!(at, Nanos(u64::MAX));
    }
}
