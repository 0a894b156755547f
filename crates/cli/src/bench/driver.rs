//! What the driver for PCIe costs the core that runs it: from handing a command over to
//! having its completion, against a controller that completes at once.

use std::sync::Barrier;
use std::time::Duration;

use serde_json::json;
use zonelab_bench::{RingCase, RingLoad, RingRig, ring_cases};
use zonelab_driver::DriverError;
use zonelab_lab::table::{Cell, Column, Table};

use super::live::Cores;
use super::{Args, timed};
use crate::console;
use crate::exit::{Exit, Failure};

/// What all cases are called.
pub(super) const DRIVER: &str = "driver";

/// Nanoseconds of one operation with SPDK, submission and completion, from its
/// 10.39 million reads of 4 KiB a second on one core (spdk.io, 2019).
const SPDK_NS: f64 = 96.0;

/// The cases whose names are wanted.
pub(super) fn cases(wanted: impl Fn(&str) -> bool) -> Vec<RingCase> {
    ring_cases().filter(|case| wanted(&case.name())).collect()
}

/// The names of all cases.
pub(super) fn names() -> impl Iterator<Item = String> {
    ring_cases().map(|case| case.name())
}

/// One line of the result.
pub(super) struct Row {
    name: String,
    depth: u32,
    ns_per_op: f64,
    peer_ns_per_op: f64,
    scaling: Option<Scaling>,
    allocs_per_op: f64,
    submission_doorbells: f64,
    completion_doorbells: f64,
}

/// Lets loads run beside each other, each on a core of its own if there are so many. How
/// long the slowest took.
fn run_together<'a>(
    loads: impl Iterator<Item = &'a mut RingLoad>,
    operations: u64,
    cores: Cores,
) -> Duration {
    let loads: Vec<&mut RingLoad> = loads.collect();
    let barrier = Barrier::new(loads.len());
    std::thread::scope(|scope| {
        let running: Vec<_> = loads
            .into_iter()
            .enumerate()
            .map(|(index, load)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    cores.pin(index % 2);
                    load.run(operations / 10);
                    barrier.wait();
                    timed(|| load.run(operations)).0
                })
            })
            .collect();
        let times = running.into_iter().map(|thread| thread.join());
        // A thread that panicked has taken for ever.
        times.map(|time| time.unwrap_or(Duration::MAX)).max()
    })
    .unwrap_or(Duration::MAX)
}

/// How many times what one thread does two threads do.
#[derive(Copy, Clone, Debug)]
struct Scaling {
    /// With a queue each of one controller.
    together: f64,
    /// With a controller each: what the machine makes of two threads that share nothing.
    apart: f64,
}

impl Scaling {
    /// Measures one thread and two in turn.
    fn measure(case: &RingCase, args: &Args, cores: Cores) -> Result<Self, DriverError> {
        let operations = args.operations.next_multiple_of(case.depth.into());
        let [mut alone, mut together, mut apart] = [Duration::MAX; 3];
        for _ in 0..args.runs {
            let mut rigs = [RingRig::new(case)?, RingRig::new(case)?];
            let firsts = rigs.iter_mut().filter_map(|rig| rig.loads.first_mut());
            apart = apart.min(run_together(firsts, operations, cores));
            let loads = rigs[0].loads.iter_mut();
            together = together.min(run_together(loads, operations, cores));
            let first = rigs[0].loads.iter_mut().take(1);
            alone = alone.min(run_together(first, operations, cores));
        }
        let times = |two: Duration| 2.0 * alone.as_secs_f64() / two.as_secs_f64();
        Ok(Self {
            together: times(together),
            apart: times(apart),
        })
    }
}

/// Measures; the fastest of the runs counts.
///
/// # Errors
/// The controller in memory does not start.
pub(super) fn measure(case: &RingCase, cores: Cores, args: &Args) -> Result<Row, Failure> {
    let failed = |error| Failure::new(Exit::Device, anyhow::Error::new(error));
    let operations = args.operations.next_multiple_of(case.depth.into());
    let (mut best, mut peer) = (Duration::MAX, Duration::MAX);
    let mut counts = (0.0, 0.0);
    let mut allocations = 0;
    for _ in 0..args.runs {
        let mut rig = RingRig::new(case).map_err(failed)?;
        let load = &mut rig.loads[0];
        load.run(operations / 10);
        let before = load.doorbells();
        let (time, succeeded) = timed(|| load.run(operations));
        assert_eq!(succeeded, operations, "all commands succeed");
        best = best.min(time);
        let after = load.doorbells();
        counts = ((after.0 - before.0) as f64, (after.1 - before.1) as f64);
        let counted = allocation_counter::measure(|| {
            load.run(operations / 10);
        });
        allocations = counted.count_total;
        let (time, ()) = timed(|| rig.run_peer(operations, case.depth));
        peer = peer.min(time);
    }
    let scaling = match case.threads {
        1 => None,
        _ => Some(Scaling::measure(case, args, cores).map_err(failed)?),
    };
    let each = |total: f64| total / operations as f64;
    Ok(Row {
        name: case.name(),
        depth: case.depth,
        scaling,
        ns_per_op: each(best.as_nanos() as f64),
        peer_ns_per_op: each(peer.as_nanos() as f64),
        allocs_per_op: allocations as f64 / (operations / 10) as f64,
        submission_doorbells: each(counts.0),
        completion_doorbells: each(counts.1),
    })
}

impl Row {
    pub(super) fn to_json(&self) -> serde_json::Value {
        let rounded = |value: f64| zonelab_lab::rows::significant(value);
        json!({
            "name": self.name,
            "depth": self.depth,
            "ns_per_op": rounded(self.ns_per_op),
            "peer_ns_per_op": rounded(self.peer_ns_per_op),
            "threads_of_one": self.scaling.map(|of| rounded(of.together)),
            "threads_of_one_with_a_controller_each": self.scaling.map(|of| rounded(of.apart)),
            "allocs_per_op": rounded(self.allocs_per_op),
            "submission_doorbells_per_op": rounded(self.submission_doorbells),
            "completion_doorbells_per_op": rounded(self.completion_doorbells),
            "spdk_ns_per_op": SPDK_NS,
        })
    }
}

pub(super) fn text(rows: &[Row]) -> String {
    let mut table = Table::new([
        Column::text("4 KiB through rings"),
        Column::number("ns/op"),
        Column::number("of it the peer"),
        Column::number("driver"),
        Column::number("of SPDK's 96 ns"),
        Column::number("allocs/op"),
        Column::number("SQ doorbells/op"),
        Column::number("CQ doorbells/op"),
        Column::number("of one thread"),
        Column::number("with a controller each"),
    ]);
    for row in rows {
        let driver = (row.ns_per_op - row.peer_ns_per_op).max(0.0);
        let times = |of: fn(&Scaling) -> f64| {
            let scaling = row.scaling.as_ref();
            scaling.map_or(String::new(), |it| format!("{:.2}", of(it)))
        };
        table.push(
            [
                row.name.clone(),
                format!("{:.1}", row.ns_per_op),
                format!("{:.1}", row.peer_ns_per_op),
                format!("{driver:.1}"),
                format!("{:.2}", driver / SPDK_NS),
                format!("{:.4}", row.allocs_per_op),
                format!("{:.4}", row.submission_doorbells),
                format!("{:.4}", row.completion_doorbells),
                times(|of| of.together),
                times(|of| of.apart),
            ]
            .map(Cell::from),
        );
    }
    table.to_text(&console::style())
}
