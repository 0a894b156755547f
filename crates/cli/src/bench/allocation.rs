//! What it takes to choose the storage elements of a zone, beside the times of
//! SilentZNS's solver (row S4d).

use std::time::Duration;

use serde_json::json;
use zonelab_bench::{AllocationCase, DriveWear, PreparedAllocation};
use zonelab_lab::table::{Cell, Column, Table};

use super::{Args, timed};
use crate::console;

/// Elements of a large drive, and of one with 48 zones of 88.
const LARGE: u32 = 100_000;
const SMALL: u32 = 48 * 88;
/// Wear that an element of depth is worth where parallelism is relaxed: enough
/// for some zones to be uneven.
const WEIGHT: u32 = 1_000;

/// One line of the result. Times are for a zone.
pub(super) struct Row {
    name: &'static str,
    zone_elements: u32,
    small_us: f64,
    fresh_us: f64,
    worn_us: f64,
    relaxed_us: f64,
    reuse_us: f64,
    allocs_per_zone: f64,
    published_ms: f64,
}

/// Measures; the fastest of the runs counts.
pub(super) fn measure(case: &AllocationCase, args: &Args) -> Row {
    let fastest = |elements, wear, weight, time: &dyn Fn(PreparedAllocation) -> f64| {
        let prepared = case.prepare(elements, wear, weight);
        (0..args.runs)
            .map(|_| time(prepared.clone()))
            .fold(f64::INFINITY, f64::min)
    };
    let half = |mut prepared: PreparedAllocation| {
        let (time, zones) = timed(|| prepared.allocate_half());
        per_zone_us(time, zones)
    };
    let reuse = |mut prepared: PreparedAllocation| {
        let zones = 4 * prepared.allocate_half();
        let (time, ()) = timed(|| prepared.reuse(zones));
        per_zone_us(time, zones)
    };
    let mut prepared = case.prepare(LARGE, DriveWear::Skewed, None);
    let zones = prepared.allocate_half();
    let counted = allocation_counter::measure(|| prepared.reuse(zones));
    Row {
        name: case.name,
        zone_elements: case.zone_elements(),
        small_us: fastest(SMALL, DriveWear::Fresh, None, &half),
        fresh_us: fastest(LARGE, DriveWear::Fresh, None, &half),
        worn_us: fastest(LARGE, DriveWear::Skewed, None, &half),
        relaxed_us: fastest(LARGE, DriveWear::Skewed, Some(WEIGHT), &half),
        reuse_us: fastest(LARGE, DriveWear::Skewed, None, &reuse),
        allocs_per_zone: counted.count_total as f64 / zones as f64,
        published_ms: case.published_ms,
    }
}

fn per_zone_us(time: Duration, zones: u64) -> f64 {
    time.as_nanos() as f64 / 1e3 / zones as f64
}

impl Row {
    pub(super) fn to_json(&self) -> serde_json::Value {
        let rounded = |value: f64| zonelab_lab::rows::significant(value);
        json!({
            "name": self.name,
            "zone_elements": self.zone_elements,
            "small_us": rounded(self.small_us),
            "fresh_us": rounded(self.fresh_us),
            "worn_us": rounded(self.worn_us),
            "relaxed_us": rounded(self.relaxed_us),
            "reuse_us": rounded(self.reuse_us),
            "allocs_per_zone": rounded(self.allocs_per_zone),
            "published_ms": self.published_ms,
        })
    }
}

pub(super) fn text(rows: &[Row]) -> String {
    let mut table = Table::new([
        Column::text("us/zone"),
        Column::number("elements/zone"),
        Column::number("48 zones"),
        Column::number("100,000 elements"),
        Column::number("worn"),
        Column::number("relaxed"),
        Column::number("reset to written"),
        Column::number("allocs/zone"),
        Column::number("published"),
    ]);
    for row in rows {
        table.push(
            [
                row.name.to_owned(),
                row.zone_elements.to_string(),
                format!("{:.2}", row.small_us),
                format!("{:.2}", row.fresh_us),
                format!("{:.2}", row.worn_us),
                format!("{:.2}", row.relaxed_us),
                format!("{:.2}", row.reuse_us),
                format!("{:.4}", row.allocs_per_zone),
                format!("{:.1} ms", row.published_ms),
            ]
            .map(Cell::from),
        );
    }
    table.to_text(&console::style())
}
