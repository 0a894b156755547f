//! `zonelab bench`: our own speed, beside a yardstick.

mod allocation;
mod driver;
mod live;
mod schedulers;
mod served;
mod store;
mod sweep;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use zonelab_bench::{Case, Ran};
use zonelab_lab::table::{Cell, Column, Table};

use crate::console;
use crate::exit::{Exit, Failure};

/// Options of `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only cases whose name contains this
    #[arg(value_name = "NAME")]
    only: Option<String>,
    /// Operations of one run of a case (those of the live drive run for a time, and
    /// those of the store at most for a time)
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    operations: u64,
    /// Runs of each case; the fastest counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Where the cases of the store make their files, which go at the end: a directory
    /// on the disk that is to be measured [default: that of temporary files]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// One line of the result.
struct Row {
    name: String,
    ops_per_s: f64,
    events_per_op: f64,
    allocs_per_op: f64,
    peak_mib: f64,
    yardstick_ratio: f64,
    /// Of the same work without what is extra, if anything is.
    plain_ratio: Option<f64>,
}

/// Measures.
///
/// # Errors
/// No case has that name.
pub(crate) fn bench(args: &Args) -> Result<Exit, Failure> {
    let wanted = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only));
    let mut cases = zonelab_bench::cases();
    cases.retain(|case| wanted(&case.name));
    let schedulers = zonelab_bench::scheduler_cases();
    let schedulers: Vec<_> = schedulers.iter().filter(|case| wanted(case.name)).collect();
    let allocations = zonelab_bench::allocation_cases();
    let allocations: Vec<_> = allocations
        .iter()
        .filter(|case| wanted(case.name))
        .collect();
    let live = live::cases(wanted);
    let stores = store::cases(wanted);
    let drivers = driver::cases(wanted);
    let sweeps = sweep::cases(wanted);
    let virtual_cases = cases.len() + schedulers.len() + allocations.len();
    let count = virtual_cases + live.len() + stores.len() + drivers.len() + sweeps.len();
    if count == 0 {
        return Err(unknown(args.only.as_deref().unwrap_or_default()));
    }
    // Before anything is measured: what cannot be used is said at once.
    let place = match stores.is_empty() {
        true => None,
        false => Some(store::place(args.directory.as_deref())?),
    };
    let bar = console::progress(count as u64, args.json);
    let mut rows = Vec::new();
    for case in &cases {
        bar.set_message(case.name.clone());
        rows.push(measure(case, args));
        bar.inc(1);
    }
    let mut scheduler_rows = Vec::new();
    for case in schedulers {
        bar.set_message(case.name);
        scheduler_rows.push(schedulers::measure(case, args));
        bar.inc(1);
    }
    let mut allocation_rows = Vec::new();
    for case in allocations {
        bar.set_message(case.name);
        allocation_rows.push(allocation::measure(case, args));
        bar.inc(1);
    }
    let cores = live::Cores::first();
    let driver = |case| driver::measure(case, cores, args);
    let driver_rows = each(&bar, driver::DRIVER, &drivers, driver)?;
    let of_live = |case| live::measure(case, cores, args);
    let live_rows = each(&bar, live::LIVE, &live, of_live)?;
    let late = match live.is_empty() {
        true => Vec::new(),
        false => live::lateness(cores)?,
    };
    let mut store_rows = Vec::new();
    for (case, place) in stores.iter().zip(place.iter().cycle()) {
        bar.set_message(store::STORE);
        store_rows.push(store::measure(case, place, args)?);
        bar.inc(1);
    }
    let sweep_rows = each(&bar, sweep::SWEEP, &sweeps, sweep::measure)?;
    bar.finish_and_clear();
    let results = Results {
        rows,
        schedulers: scheduler_rows,
        allocations: allocation_rows,
        drivers: driver_rows,
        live: live_rows,
        late,
        stores: store_rows,
        sweeps: sweep_rows,
        place,
    };
    console::print(&match args.json {
        true => results.json(args.operations),
        false => results.text(),
    })?;
    Ok(Exit::Done)
}

/// Measures cases of one name, one after another.
fn each<'a, C, R>(
    bar: &indicatif::ProgressBar,
    name: &'static str,
    cases: &'a [C],
    mut measure: impl FnMut(&'a C) -> Result<R, Failure>,
) -> Result<Vec<R>, Failure> {
    let mut rows = Vec::new();
    for case in cases {
        bar.set_message(name);
        rows.push(measure(case)?);
        bar.inc(1);
    }
    Ok(rows)
}

/// All that was measured.
struct Results {
    rows: Vec<Row>,
    schedulers: Vec<schedulers::Row>,
    allocations: Vec<allocation::Row>,
    drivers: Vec<driver::Row>,
    live: Vec<live::Row>,
    late: Vec<live::Late>,
    stores: Vec<store::Row>,
    sweeps: Vec<sweep::Row>,
    place: Option<store::Place>,
}

impl Results {
    fn json(&self, operations: u64) -> String {
        let value = json!({
            "schema": 1,
            "operations": operations,
            "rows": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
            "schedulers": self.schedulers.iter().map(schedulers::Row::to_json).collect::<Vec<_>>(),
            "allocation": self.allocations.iter().map(allocation::Row::to_json).collect::<Vec<_>>(),
            "driver": self.drivers.iter().map(driver::Row::to_json).collect::<Vec<_>>(),
            "live": self.live.iter().map(live::Row::to_json).collect::<Vec<_>>(),
            "lateness": self.late.iter().map(live::Late::to_json).collect::<Vec<_>>(),
            "store": self.stores.iter().map(store::Row::to_json).collect::<Vec<_>>(),
            "sweep": self.sweeps.iter().map(sweep::Row::to_json).collect::<Vec<_>>(),
            "store_is_in_memory": self.place.as_ref().map(|place| place.is_in_memory),
        });
        format!(
            "{}\n",
            serde_json::to_string_pretty(&value).unwrap_or_default()
        )
    }

    fn text(&self) -> String {
        let mut tables = Vec::new();
        if !self.rows.is_empty() {
            tables.push(text(&self.rows));
        }
        if !self.schedulers.is_empty() {
            tables.push(schedulers::text(&self.schedulers));
        }
        if !self.allocations.is_empty() {
            tables.push(allocation::text(&self.allocations));
        }
        if !self.drivers.is_empty() {
            tables.push(driver::text(&self.drivers));
        }
        if !self.live.is_empty() {
            tables.push(live::text(&self.live, &self.late));
        }
        if let Some(place) = &self.place {
            tables.push(store::text(&self.stores, place.is_in_memory));
        }
        if !self.sweeps.is_empty() {
            tables.push(sweep::text(&self.sweeps));
        }
        tables.join("\n")
    }
}

fn unknown(only: &str) -> Failure {
    let cases = zonelab_bench::cases().into_iter().map(|case| case.name);
    let schedulers = zonelab_bench::scheduler_cases().map(|case| case.name.to_owned());
    let allocations = zonelab_bench::allocation_cases().map(|case| case.name.to_owned());
    let names: Vec<String> = cases
        .chain(schedulers)
        .chain(allocations)
        .chain(driver::names())
        .chain(live::names())
        .chain(store::names())
        .chain(sweep::names())
        .collect();
    Failure::usage(format!(
        "no benchmark is called \"{only}\"; there are:\n  {}",
        names.join("\n  ")
    ))
}

/// Runs a case, the same without what is extra, and the yardstick in turn, so that all see
/// the same machine.
fn measure(case: &Case, args: &Args) -> Row {
    let plain = case.plain();
    let mut best = Duration::MAX;
    let mut best_plain = Duration::MAX;
    let mut best_yardstick = Duration::MAX;
    let mut ran = Ran {
        operations: 1,
        events: 0,
    };
    for _ in 0..args.runs {
        let prepared = case.prepare(args.operations);
        let (time, result) = timed(|| prepared.run());
        best = best.min(time);
        ran = result;
        if let Some(plain) = &plain {
            let prepared = plain.prepare(args.operations);
            best_plain = best_plain.min(timed(|| prepared.run()).0);
        }
        let (time, checksum) = timed(|| zonelab_bench::yardstick(args.operations, 32));
        assert_ne!(checksum, 0, "the yardstick ran");
        best_yardstick = best_yardstick.min(time);
    }
    // Allocations are counted in runs of two lengths: what does not grow with
    // the length is set-up.
    let allocations = |operations: u64| {
        let prepared = case.prepare(operations);
        let mut done = 0;
        let info = allocation_counter::measure(|| done = prepared.run().operations);
        (info.count_total as f64, done as f64)
    };
    let (short, short_ops) = allocations(args.operations / 4);
    let (long, long_ops) = allocations(args.operations / 2);
    let peak = allocation_counter::measure(|| {
        let _ = case.prepare(args.operations / 4).run();
    });
    let ops = ran.operations as f64;
    let ops_per_s = ops / best.as_secs_f64();
    Row {
        name: case.name.clone(),
        ops_per_s,
        events_per_op: ran.events as f64 / ops,
        allocs_per_op: ((long - short) / (long_ops - short_ops)).max(0.0),
        peak_mib: peak.bytes_max as f64 / f64::from(1 << 20),
        yardstick_ratio: ops_per_s / (args.operations as f64 / best_yardstick.as_secs_f64()),
        plain_ratio: plain.map(|_| best_plain.as_secs_f64() / best.as_secs_f64()),
    }
}

/// The present.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

fn timed<T>(f: impl FnOnce() -> T) -> (Duration, T) {
    let start = now();
    let value = f();
    (start.elapsed(), value)
}

impl Row {
    fn to_json(&self) -> serde_json::Value {
        let rounded = |value: f64| zonelab_lab::rows::significant(value);
        json!({
            "name": self.name,
            "ops_per_s": rounded(self.ops_per_s),
            "events_per_op": rounded(self.events_per_op),
            "allocs_per_op": rounded(self.allocs_per_op),
            "peak_mib": rounded(self.peak_mib),
            "yardstick_ratio": rounded(self.yardstick_ratio),
            "plain_ratio": self.plain_ratio.map(rounded),
        })
    }
}

fn text(rows: &[Row]) -> String {
    let mut table = Table::new([
        Column::text("case"),
        Column::number("M ops/s"),
        Column::number("ns/op"),
        Column::number("events/op"),
        Column::number("allocs/op"),
        Column::number("peak MiB"),
        Column::number("of yardstick"),
        Column::number("of plain"),
    ]);
    for row in rows {
        table.push(
            [
                row.name.clone(),
                format!("{:.2}", row.ops_per_s / 1e6),
                format!("{:.0}", 1e9 / row.ops_per_s),
                format!("{:.2}", row.events_per_op),
                format!("{:.4}", row.allocs_per_op),
                format!("{:.1}", row.peak_mib),
                format!("{:.1} %", 100.0 * row.yardstick_ratio),
                row.plain_ratio
                    .map_or_else(String::new, |ratio| format!("{:.0} %", 100.0 * ratio)),
            ]
            .map(Cell::from),
        );
    }
    table.to_text(&console::style())
}
