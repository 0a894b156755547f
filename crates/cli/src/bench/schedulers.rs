//! What schedulers cost for a request.

use std::time::Duration;

use serde_json::json;
use zonelab_bench::{SchedulerCase, scheduler_specs};
use zonelab_lab::table::{Cell, Column, Table};

use super::{Args, timed};
use crate::console;

/// Measured before the time counts, so that arrays have grown.
const WARM_UP: u64 = 1_280;

/// One line of the result.
pub(super) struct Row {
    name: &'static str,
    none_ns: f64,
    mq_deadline_ns: f64,
    zinc_ns: f64,
    requests_per_command: f64,
    allocs_per_request: f64,
}

/// Runs the schedulers in turn, so that all see the same machine.
pub(super) fn measure(case: &SchedulerCase, args: &Args) -> Row {
    let specs = scheduler_specs();
    let mut best = [Duration::MAX; 3];
    let mut served = (1, 1);
    for _ in 0..args.runs {
        for (spec, best) in specs.iter().zip(&mut best) {
            let mut prepared = case.prepare(spec);
            prepared.run(WARM_UP);
            let (time, result) = timed(|| prepared.run(args.operations));
            *best = time.min(*best);
            served = result;
        }
    }
    let requests = served.0 as f64;
    let allocations = specs.iter().map(|spec| {
        let mut prepared = case.prepare(spec);
        prepared.run(WARM_UP);
        let info = allocation_counter::measure(|| {
            prepared.run(args.operations);
        });
        info.count_total as f64 / requests
    });
    let [none_ns, mq_deadline_ns, zinc_ns] = best.map(|time| time.as_nanos() as f64 / requests);
    Row {
        name: case.name,
        none_ns,
        mq_deadline_ns,
        zinc_ns,
        requests_per_command: requests / served.1 as f64,
        allocs_per_request: allocations.fold(0.0, f64::max),
    }
}

impl Row {
    fn zinc_ratio(&self) -> f64 {
        self.zinc_ns / self.mq_deadline_ns
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        let rounded = |value: f64| zonelab_lab::rows::significant(value);
        json!({
            "name": self.name,
            "none_ns": rounded(self.none_ns),
            "mq_deadline_ns": rounded(self.mq_deadline_ns),
            "zinc_ns": rounded(self.zinc_ns),
            "zinc_ratio": rounded(self.zinc_ratio()),
            "requests_per_command": rounded(self.requests_per_command),
            "allocs_per_request": rounded(self.allocs_per_request),
        })
    }
}

pub(super) fn text(rows: &[Row]) -> String {
    let mut table = Table::new([
        Column::text("ns/request"),
        Column::number("none"),
        Column::number("mq-deadline"),
        Column::number("zinc"),
        Column::number("zinc of mq-deadline"),
        Column::number("requests/command"),
        Column::number("allocs/request"),
    ]);
    for row in rows {
        table.push(
            [
                row.name.to_owned(),
                format!("{:.0}", row.none_ns),
                format!("{:.0}", row.mq_deadline_ns),
                format!("{:.0}", row.zinc_ns),
                format!("{:.0} %", 100.0 * row.zinc_ratio()),
                format!("{:.1}", row.requests_per_command),
                format!("{:.4}", row.allocs_per_request),
            ]
            .map(Cell::from),
        );
    }
    table.to_text(&console::style())
}
