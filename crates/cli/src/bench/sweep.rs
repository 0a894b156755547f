//! Sweeps: how busy they keep the cores, and what a task costs besides its run.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use zonelab_lab::output::Existing;
use zonelab_lab::rows::significant;
use zonelab_lab::table::{Cell, Column, Table};
use zonelab_search::sweep::{self, Observer, Source, Store, Sweep};

use super::timed;
use crate::console;
use crate::exit::Failure;

/// Name of the cases.
pub(super) const SWEEP: &str = "sweep";

/// The example, and the experiment that it names.
const FILE: &str = include_str!("../../data/examples/sweep-interference.toml");
const EXPERIMENT: &str = include_str!("../../data/examples/finish-and-reset.toml");

/// How long each of the 2,000 points runs on the drive's clock. A microsecond is no run at
/// all: what is left is what a task costs besides.
const RUNTIMES: [&str; 2] = ["50ms", "1us"];

/// A case: a run time, and threads.
pub(super) struct Case {
    name: String,
    runtime: &'static str,
    threads: usize,
}

/// A line of the result.
pub(super) struct Row {
    name: String,
    tasks: u64,
    threads: usize,
    wall: Duration,
    busy: Duration,
}

/// The cases that are wanted.
pub(super) fn cases(wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    let mut cases = all();
    cases.retain(|case| wanted(&case.name));
    cases
}

/// Names of all cases.
pub(super) fn names() -> impl Iterator<Item = String> {
    all().into_iter().map(|case| case.name)
}

fn all() -> Vec<Case> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut cases = Vec::new();
    for runtime in RUNTIMES {
        cases.push(Case {
            name: format!("{SWEEP} of 2000 points, {runtime} each, all cores"),
            runtime,
            threads: cores,
        });
    }
    cases.push(Case {
        name: format!("{SWEEP} of 2000 points, 1us each, one thread"),
        runtime: "1us",
        threads: 1,
    });
    cases
}

/// Runs a case once: it takes seconds.
///
/// # Errors
/// Its files cannot be written.
pub(super) fn measure(case: &Case) -> Result<Row, Failure> {
    let mut source = Source::new("sweep-interference.toml", FILE);
    source.settings = vec![
        format!("job.0.runtime={}", case.runtime),
        "job.0.ramp=0us".to_owned(),
    ];
    let read = |_: &str| Ok(EXPERIMENT.to_owned());
    let sweep = Sweep::prepare(&source, &read).map_err(Failure::input)?;
    let path = std::env::temp_dir().join(format!("zonelab-bench-sweep-{}", std::process::id()));
    let row = run(case, sweep, &path);
    let _ = std::fs::remove_dir_all(&path);
    row
}

fn run(case: &Case, sweep: Sweep, path: &std::path::Path) -> Result<Row, Failure> {
    let store = Store::create(path, sweep.into_pack(), Existing::Replace);
    let mut store = store.map_err(Failure::environment)?;
    let tasks = store.pack().len();
    let observer = Observer {
        on_progress: &|_| (),
        interrupted: &|| false,
    };
    let before = processor_time();
    let (wall, end) = timed(|| sweep::run(&mut store, case.threads, &observer));
    let busy = processor_time().saturating_sub(before);
    end.map_err(Failure::environment)?;
    Ok(Row {
        name: case.name.clone(),
        tasks,
        threads: case.threads,
        wall,
        busy,
    })
}

/// Time that this process had of all cores.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

impl Row {
    /// Share of the cores that it has threads for.
    fn busy_share(&self) -> f64 {
        self.busy.as_secs_f64() / (self.wall.as_secs_f64() * self.threads as f64)
    }

    /// Time of a core that a task takes.
    fn task_us(&self) -> f64 {
        self.busy.as_secs_f64() * 1e6 / self.tasks as f64
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "tasks": self.tasks,
            "threads": self.threads,
            "seconds": significant(self.wall.as_secs_f64()),
            "busy_share": significant(self.busy_share()),
            "task_us": significant(self.task_us()),
        })
    }
}

pub(super) fn text(rows: &[Row]) -> String {
    let mut table = Table::new([
        Column::text("case"),
        Column::number("tasks/s"),
        Column::number("s"),
        Column::number("cores busy"),
        Column::number("us/task"),
    ]);
    for row in rows {
        table.push(
            [
                row.name.clone(),
                format!("{:.0}", row.tasks as f64 / row.wall.as_secs_f64()),
                format!("{:.2}", row.wall.as_secs_f64()),
                format!("{:.1} %", 100.0 * row.busy_share()),
                format!("{:.0}", row.task_us()),
            ]
            .map(Cell::from),
        );
    }
    table.to_text(&console::style())
}
