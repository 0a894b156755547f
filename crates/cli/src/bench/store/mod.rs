//! The store of `serve --store`: writes and flushes of a drive that is kept in a
//! file, with checksums of blocks and without, beside a plain file that gets the
//! same writes and is synchronised where the hosts wait for that.

mod load;
mod place;
mod served;

use std::path::Path;

use anyhow::Result;
use serde_json::json;
use zonelab_lab::table::{Cell, Column, Table};
use zonelab_ssd::config::DriveConfig;

pub(super) use place::Place;

use super::{Args, now};
use crate::console;
use crate::exit::Failure;
use load::{Plain, Stored};
use served::Served;

/// What the cases are called.
pub(super) const STORE: &str = "store";
/// Longest run, in seconds.
const RUN_S: f64 = 0.5;
/// Most data of a run: the page cache takes it without waiting for the disk.
const RUN_BYTES_MAX: u64 = 256 << 20;
/// Steps before the time counts.
const WARM_UP: usize = 16;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Writes that are kept together, as many as are in flight.
    Write,
    /// A write, and when it is answered a Flush.
    Flush,
    /// The same by each of some hosts over TCP.
    Served,
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    work: Work,
    bytes: u32,
    /// Writes that are kept together; hosts that flush.
    count: usize,
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        let case = |(work, kib, count): (Work, u32, usize)| Self {
            work,
            bytes: kib << 10,
            count,
        };
        [
            (Work::Write, 4, 1),
            (Work::Write, 4, 32),
            (Work::Write, 128, 1),
            (Work::Write, 128, 32),
            (Work::Flush, 4, 1),
            (Work::Flush, 128, 1),
            (Work::Served, 4, 1),
            (Work::Served, 4, 4),
            (Work::Served, 4, 16),
        ]
        .into_iter()
        .map(case)
    }

    fn name(&self) -> String {
        let (kib, count) = (self.bytes >> 10, self.count);
        match self.work {
            Work::Write => format!("{STORE} write {kib}k qd{count}"),
            Work::Flush => format!("{STORE} flush {kib}k"),
            Work::Served => format!("{STORE} tcp flush {kib}k x{count}"),
        }
    }

    fn hosts(&self) -> usize {
        match self.work {
            Work::Write | Work::Flush => 1,
            Work::Served => self.count,
        }
    }
}

/// Something that a case is done to.
trait Subject {
    /// A step: how many operations (writes, or flushes) were done with it. None:
    /// no more fit.
    fn step(&mut self, case: &Case) -> Result<Option<u64>>;

    /// Synchronisations so far.
    fn syncs(&self) -> u64;
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
struct Measured {
    per_s: f64,
    syncs_per_op: f64,
}

impl Measured {
    /// Nothing was measured.
    const NONE: Self = Self {
        per_s: f64::NAN,
        syncs_per_op: f64::NAN,
    };
}

/// One line of the result. Ratios are of the runs of one round each, and the
/// middle one of the rounds counts.
pub(super) struct Row {
    case: Case,
    checked: Measured,
    unchecked: Measured,
    plain: Measured,
    checked_of_plain: f64,
    unchecked_of_plain: f64,
    checked_of_unchecked: f64,
}

/// The cases that are wanted.
pub(super) fn cases(wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    Case::all().filter(|case| wanted(&case.name())).collect()
}

/// Names of the cases.
pub(super) fn names() -> impl Iterator<Item = String> {
    Case::all().map(|case| case.name())
}

/// A place for the files in `directory`, or where the system keeps temporary ones.
///
/// # Errors
/// Nothing can be written there, or too little.
pub(super) fn place(directory: Option<&Path>) -> Result<Place, Failure> {
    let temporary = std::env::temp_dir();
    Place::new(directory.unwrap_or(&temporary)).map_err(Failure::environment)
}

/// Runs a plain file, the store without checksums and that with them in turn, so
/// that all see the same machine.
///
/// # Errors
/// The system lacks space, sockets or threads, or an operation failed.
pub(super) fn measure(case: &Case, place: &Place, args: &Args) -> Result<Row, Failure> {
    rounds(case, place, &super::served::drive()?, args).map_err(Failure::environment)
}

fn rounds(case: &Case, place: &Place, config: &DriveConfig, args: &Args) -> Result<Row> {
    let stored = |has_checksums| -> Result<Box<dyn Subject>> {
        Ok(match case.work {
            Work::Served => Box::new(Served::new(place, config, case, has_checksums)?),
            Work::Write | Work::Flush => Box::new(Stored::new(place, config, case, has_checksums)?),
        })
    };
    let mut runs = Vec::new();
    for round in 0..args.runs as usize {
        let mut measured = [Measured::NONE; 3];
        // Each goes first in turn: what a run leaves to the disk is the next one's.
        for turn in 0..3 {
            let which = (round + turn) % 3;
            let mut subject: Box<dyn Subject> = match which {
                0 => Box::new(Plain::new(place, config, case)?),
                1 => stored(false)?,
                _ => stored(true)?,
            };
            measured[which] = run(case, &mut *subject, args.operations)?;
        }
        runs.push(measured);
    }
    let middle = |of: usize, by: usize| {
        let ratios = runs.iter().map(|run| run[of].per_s / run[by].per_s);
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    };
    let fastest = |of: usize| {
        let runs = runs.iter().map(|run| run[of]);
        runs.max_by(|a, b| a.per_s.total_cmp(&b.per_s))
            .unwrap_or(Measured::NONE)
    };
    Ok(Row {
        case: *case,
        plain: fastest(0),
        unchecked: fastest(1),
        checked: fastest(2),
        checked_of_plain: middle(2, 0),
        unchecked_of_plain: middle(1, 0),
        checked_of_unchecked: middle(2, 1),
    })
}

/// Steps until the time, the data or the operations of a run are used up.
fn run(case: &Case, subject: &mut dyn Subject, operations_max: u64) -> Result<Measured> {
    for _ in 0..WARM_UP {
        subject.step(case)?;
    }
    let most = operations_max.min(RUN_BYTES_MAX / u64::from(case.bytes));
    let (syncs, start, mut operations) = (subject.syncs(), now(), 0);
    let elapsed = loop {
        let done = subject.step(case)?;
        operations += done.unwrap_or_default();
        let elapsed = now().duration_since(start).as_secs_f64();
        let is_late = elapsed >= RUN_S && operations > 0;
        if done.is_none() || operations >= most || is_late {
            break elapsed;
        }
    };
    Ok(Measured {
        per_s: operations as f64 / elapsed,
        syncs_per_op: (subject.syncs() - syncs) as f64 / operations as f64,
    })
}

impl Row {
    pub(super) fn to_json(&self) -> serde_json::Value {
        let rounded = zonelab_lab::rows::significant;
        let measured = |of: &Measured| {
            json!({
                "ops_per_s": rounded(of.per_s),
                "syncs_per_op": rounded(of.syncs_per_op),
            })
        };
        json!({
            "name": self.case.name(),
            "store": measured(&self.checked),
            "without_checksums": measured(&self.unchecked),
            "plain_file": measured(&self.plain),
            "of_plain_file": rounded(self.checked_of_plain),
            "without_checksums_of_plain_file": rounded(self.unchecked_of_plain),
            "of_without_checksums": rounded(self.checked_of_unchecked),
        })
    }
}

/// The table.
pub(super) fn text(rows: &[Row], is_in_memory: bool) -> String {
    let mut table = Table::new([
        Column::text("writes or flushes"),
        Column::number("K/s"),
        Column::number("us/op"),
        Column::number("syncs/op"),
        Column::number("no checksums K/s"),
        Column::number("plain file K/s"),
        Column::number("syncs/op"),
        Column::number("of plain"),
        Column::number("no checksums of plain"),
        Column::number("of no checksums"),
    ]);
    for row in rows {
        let thousands = |of: &Measured| format!("{:.2}", of.per_s / 1e3);
        let syncs = |of: &Measured| format!("{:.2}", of.syncs_per_op);
        let share = |of: f64| format!("{:.0} %", 100.0 * of);
        table.push(
            [
                row.case.name(),
                thousands(&row.checked),
                format!("{:.1}", 1e6 / row.checked.per_s),
                syncs(&row.checked),
                thousands(&row.unchecked),
                thousands(&row.plain),
                syncs(&row.plain),
                share(row.checked_of_plain),
                share(row.unchecked_of_plain),
                share(row.checked_of_unchecked),
            ]
            .map(Cell::from),
        );
    }
    let mut text = table.to_text(&console::style());
    if is_in_memory {
        text.push_str(
            "The files were in memory (tmpfs), where synchronising costs nothing: \
             --directory names a directory on a disk.\n",
        );
    }
    text
}
