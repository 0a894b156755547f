//! The live drive: our initiator and our target over the loopback, beside
//! programs that exchange as many bytes and do nothing else.

mod echo;
mod load;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::json;
use zonelab_device::Nanos;
use zonelab_lab::table::{Cell, Column, Table};
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_target::server::QueueLateness;

use super::{Args, served};
use crate::console;
use crate::exit::Failure;
use crate::profiles;
use echo::Echo;
use load::{Load, Served};

/// What the cases are called.
pub(super) const LIVE: &str = "live";
/// How long one run of a case takes, in seconds.
const RUN_S: f64 = 0.4;

/// What is exchanged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    is_read: bool,
    bytes: u32,
    depth: usize,
    connections: usize,
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        [true, false].into_iter().flat_map(|is_read| {
            [4 << 10, 128 << 10].into_iter().flat_map(move |bytes| {
                [(1, 1), (32, 1), (32, 4)].map(|(depth, connections)| Self {
                    is_read,
                    bytes,
                    depth,
                    connections,
                })
            })
        })
    }

    fn name(&self) -> String {
        let what = if self.is_read { "read" } else { "write" };
        let (kib, depth, connections) = (self.bytes >> 10, self.depth, self.connections);
        format!("{LIVE} {what} {kib}k qd{depth} x{connections}")
    }
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    per_s: f64,
    /// Of the server, for each operation.
    cpu_ns: f64,
    /// Of the server, for each operation.
    allocations: f64,
}

impl Measured {
    /// So many operations in `seconds`, of which the server had a core for `cpu_s`.
    fn new(operations: u64, seconds: f64, cpu_s: f64) -> Self {
        Self {
            per_s: operations as f64 / seconds,
            cpu_ns: cpu_s * 1e9 / operations as f64,
            allocations: 0.0,
        }
    }
}

/// One line of the result.
pub(super) struct Row {
    case: Case,
    ours: Measured,
    floor: Measured,
    /// Of the runs of each pair, ours by the floor: the middle one.
    ratio: f64,
    /// The same by a reactor, of what the loop does; `None`: several connections.
    by_reactor: Option<f64>,
}

/// One line about responses at the drive's times.
pub(super) struct Late {
    profile: &'static str,
    depth: usize,
    per_s: f64,
    lateness: QueueLateness,
}

/// The cases that are wanted.
pub(super) fn cases(wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    Case::all().filter(|case| wanted(&case.name())).collect()
}

/// Names of the cases.
pub(super) fn names() -> impl Iterator<Item = String> {
    Case::all().map(|case| case.name())
}

/// Runs the floor and a case in turn, so that both see the same machine.
///
/// # Errors
/// The system lacks sockets or threads, or an operation failed.
pub(super) fn measure(case: &Case, cores: Cores, args: &Args) -> Result<Row, Failure> {
    run((case, cores), &served::drive()?, args.runs).map_err(Failure::environment)
}

fn run((case, cores): (&Case, Cores), config: &DriveConfig, runs: u32) -> anyhow::Result<Row> {
    let served = Served::start(cores, config, false)?;
    cores.pin_client();
    let mut load = Load::connect(&served, config, case, false)?;
    load.measure(&served, RUN_S / 4.0)?;
    let (mut ours, mut floors, mut reactors) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        floors.push(Echo::start(case, cores)?.measure(case, RUN_S)?);
        ours.push(load.measure(&served, RUN_S)?);
        if case.connections == 1 {
            reactors.push(load.measure_reactor(&served, RUN_S)?);
        }
    }
    drop(load);
    let (_, allocations) = served.end()?;
    let done = |runs: &[Measured]| runs.iter().map(|run| run.per_s * RUN_S).sum::<f64>();
    let operations = done(&ours) + done(&reactors);
    Ok(Row {
        case: *case,
        ours: Measured {
            allocations: allocations as f64 / operations,
            ..best(&ours)
        },
        floor: best(&floors),
        ratio: middle(&ours, &floors),
        by_reactor: (!reactors.is_empty()).then(|| middle(&reactors, &ours)),
    })
}

/// The middle one of the ratios of pairs of runs, of which there is one at least.
fn middle(these: &[Measured], those: &[Measured]) -> f64 {
    let pairs = these.iter().zip(those);
    let mut ratios: Vec<f64> = pairs.map(|(a, b)| a.per_s / b.per_s).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// The fastest of some runs, of which there is one at least.
fn best(runs: &[Measured]) -> Measured {
    let fastest = runs.iter().max_by(|a, b| a.per_s.total_cmp(&b.per_s));
    *fastest.unwrap_or(&Measured {
        per_s: f64::NAN,
        cpu_ns: f64::NAN,
        allocations: f64::NAN,
    })
}

/// How late responses are when the drive has its times: reads of 4 KiB.
///
/// # Errors
/// As [`measure`].
pub(super) fn lateness(cores: Cores) -> Result<Vec<Late>, Failure> {
    let profile = "zn540";
    let sets = [
        "zones.count=8".to_owned(),
        "zones.max_active=8".to_owned(),
        "zones.max_open=8".to_owned(),
    ];
    let mut config = profiles::load(profile, &sets)?.config;
    config.data = DataStore::None;
    let mut rows = Vec::new();
    for depth in [1, 8, 32] {
        rows.push(late(profile, cores, &config, depth).map_err(Failure::environment)?);
    }
    Ok(rows)
}

fn late(
    profile: &'static str,
    cores: Cores,
    config: &DriveConfig,
    depth: usize,
) -> anyhow::Result<Late> {
    let case = Case {
        is_read: true,
        bytes: 4 << 10,
        depth,
        connections: 1,
    };
    let served = Served::start(cores, config, true)?;
    cores.pin_client();
    let mut load = Load::connect(&served, config, &case, true)?;
    let measured = load.measure(&served, 5.0 * RUN_S)?;
    drop(load);
    let (report, _) = served.end()?;
    let lateness = report.lateness.iter().find(|queue| queue.qid == 1);
    Ok(Late {
        profile,
        depth,
        per_s: measured.per_s,
        lateness: *lateness.ok_or_else(|| anyhow::anyhow!("queue 1 had no command"))?,
    })
}

/// The cores of the two ends, if the process may use so many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cores(Option<[usize; 2]>);

impl Cores {
    /// The first two that there are. Asked before any thread is pinned.
    pub(super) fn first() -> Self {
        let Ok(allowed) = sched_getaffinity(None) else {
            return Self(None);
        };
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        Self(cores.next().zip(cores.next()).map(Into::into))
    }

    /// Keeps this thread on that of the server.
    fn pin_server(self) {
        self.pin(0);
    }

    /// Keeps this thread on that of the client.
    fn pin_client(self) {
        self.pin(1);
    }

    /// Keeps this thread on the first (0) or second (1) of them.
    pub(super) fn pin(self, end: usize) {
        if let Self(Some(cores)) = self {
            let mut one = CpuSet::new();
            one.set(cores[end]);
            // Without it the figures are less steady, and still right.
            let _ = sched_setaffinity(None, &one);
        }
    }
}

/// Processor time of this thread in seconds.
fn cpu_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Row {
    pub(super) fn to_json(&self) -> serde_json::Value {
        let rounded = zonelab_lab::rows::significant;
        let measured = |of: &Measured| {
            json!({
                "ops_per_s": rounded(of.per_s),
                "server_cpu_ns_per_op": rounded(of.cpu_ns),
                "server_allocs_per_op": rounded(of.allocations),
            })
        };
        json!({
            "name": self.case.name(),
            "target": measured(&self.ours),
            "echo": measured(&self.floor),
            "of_echo": rounded(self.ratio),
            "reactor_of_loop": self.by_reactor.map(rounded),
        })
    }
}

impl Late {
    pub(super) fn to_json(&self) -> serde_json::Value {
        json!({
            "profile": self.profile,
            "depth": self.depth,
            "ops_per_s": zonelab_lab::rows::significant(self.per_s),
            "lateness_ns": {
                "p50": self.lateness.p50.0, "p99": self.lateness.p99.0,
                "p99_9": self.lateness.p999.0, "max": self.lateness.max.0,
            },
        })
    }
}

/// The tables.
pub(super) fn text(rows: &[Row], late: &[Late]) -> String {
    let mut table = Table::new([
        Column::text("case"),
        Column::number("K ops/s"),
        Column::number("us/op"),
        Column::number("server us/op"),
        Column::number("allocs/op"),
        Column::number("echo K/s"),
        Column::number("echo us"),
        Column::number("server us"),
        Column::number("of echo"),
        Column::number("reactor"),
    ]);
    for Row {
        case,
        ours,
        floor,
        ratio,
        by_reactor,
    } in rows
    {
        let in_flight = (case.depth * case.connections) as f64;
        let us = |of: &Measured| format!("{:.1}", 1e6 * in_flight / of.per_s);
        table.push(
            [
                case.name(),
                format!("{:.1}", ours.per_s / 1e3),
                us(ours),
                format!("{:.2}", ours.cpu_ns / 1e3),
                format!("{:.4}", ours.allocations),
                format!("{:.1}", floor.per_s / 1e3),
                us(floor),
                format!("{:.2}", floor.cpu_ns / 1e3),
                format!("{:.0} %", 100.0 * ratio),
                by_reactor.map_or("-".to_owned(), |of| format!("{:.0} %", 100.0 * of)),
            ]
            .map(Cell::from),
        );
    }
    let mut text = table.to_text(&console::style());
    if late.is_empty() {
        return text;
    }
    let mut table = Table::new([
        Column::text("at the drive's times"),
        Column::number("reads/s"),
        Column::number("late P50"),
        Column::number("P99"),
        Column::number("P99.9"),
        Column::number("most"),
    ]);
    for row in late {
        let of = &row.lateness;
        let name = format!("{} read 4k qd{}", row.profile, row.depth);
        let times = [of.p50, of.p99, of.p999, of.max].map(|time: Nanos| time.to_string());
        let row = [name, format!("{:.0}", row.per_s)].into_iter().chain(times);
        table.push(row.map(Cell::from));
    }
    text.push('\n');
    text.push_str(&table.to_text(&console::style()));
    text
}
