//! Where a drive wears out, as data of a point.

use serde::Serialize;
use zonelab_lab::detail::PointDetail;
use zonelab_lab::kv::Wear;
use zonelab_lab::rows::significant;
use zonelab_lab::wear::{WearMap, WearRow};

/// A map of wear, and what it amounts to.
#[derive(Debug, Serialize)]
pub(super) struct WearData {
    unit: &'static str,
    columns: usize,
    per_cell: usize,
    rows: Vec<RowData>,
    /// Of all blocks of the drive.
    median: u32,
    mean: f64,
    deviation: f64,
    max: u32,
}

/// A row of the map.
#[derive(Debug, Serialize)]
struct RowData {
    planes: (usize, usize),
    /// Cells from left to right, see [`cells`].
    cells: String,
}

impl WearData {
    pub(super) fn of(detail: &PointDetail) -> Option<Self> {
        let map: &WearMap = detail.wear_map.as_ref()?;
        let wear = Wear::of_histogram(&detail.erasures);
        let row = |row: &WearRow| RowData {
            planes: row.planes,
            cells: cells(&row.tenths),
        };
        Some(Self {
            unit: map.unit.name(),
            columns: map.columns,
            per_cell: map.per_cell,
            rows: map.rows.iter().map(row).collect(),
            median: wear.median,
            mean: significant(wear.mean),
            deviation: significant(wear.deviation),
            max: wear.max,
        })
    }
}

/// Erasures of cells, with a decimal where they are not whole; `*n` behind what
/// comes n times in a row.
fn cells(tenths: &[u64]) -> String {
    let run = |run: &[u64]| {
        let tenths = run.first().copied().unwrap_or(0);
        let decimal = match tenths % 10 {
            0 => String::new(),
            decimal => format!(".{decimal}"),
        };
        let times = match run.len() {
            1 => String::new(),
            times => format!("*{times}"),
        };
        format!("{}{decimal}{times}", tenths / 10)
    };
    let runs: Vec<String> = tenths.chunk_by(u64::eq).map(run).collect();
    runs.join(" ")
}

#[cfg(test)]
mod tests {
    use zonelab_lab::wear::WearUnit;

    use super::*;

    #[test]
    fn equal_neighbours_are_written_once() {
        assert_eq!(cells(&[0, 0, 0, 25, 130, 130]), "0*3 2.5 13*2");
        assert_eq!(cells(&[]), "");
    }

    #[test]
    fn a_map_comes_with_what_it_amounts_to() {
        let map = WearMap {
            unit: WearUnit::Element,
            columns: 3,
            per_cell: 1,
            rows: vec![WearRow {
                planes: (0, 3),
                tenths: vec![20, 20, 50],
            }],
        };
        let detail = PointDetail {
            erasures: [(2, 6), (5, 6)].into(),
            wear_map: Some(map),
            ..PointDetail::default()
        };
        let data = serde_json::to_value(WearData::of(&detail)).unwrap();
        let expected = serde_json::json!({
            "unit": "element", "columns": 3, "per_cell": 1,
            "rows": [{ "planes": [0, 3], "cells": "2*2 5" }],
            "median": 2, "mean": 3.5, "deviation": 1.5, "max": 5,
        });
        assert_eq!(data, expected);
        assert!(WearData::of(&PointDetail::default()).is_none());
    }
}
