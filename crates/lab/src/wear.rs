//! Where a drive wears out: its blocks or storage elements, plane by plane, by
//! how often they were erased, in a picture of bounded size.

use std::collections::BTreeMap;
use std::ops::Range;

use zonelab_ssd::Drive;

/// Cells at most: beyond, neighbours share one.
const CELLS_MAX: usize = 4_500;
/// Rows at most: beyond, neighbours share one.
const ROWS_MAX: usize = 64;

/// What is erased and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WearUnit {
    /// Blocks.
    Block,
    /// Storage elements, which zones are assembled from.
    Element,
}

impl WearUnit {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Element => "element",
        }
    }
}

/// Erasures of each block or element of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WearMap {
    /// What a cell has one or more of.
    pub unit: WearUnit,
    /// Blocks or elements in the longest row, before any share a cell.
    pub columns: usize,
    /// Neighbours in a row that share a cell.
    pub per_cell: usize,
    /// Rows, in the order of their planes.
    pub rows: Vec<WearRow>,
}

/// The blocks or elements of one plane; of several, if an element has blocks on
/// each of them, or if the drive has too many for rows of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WearRow {
    /// First and last plane of the row, counted over the drive.
    pub planes: (usize, usize),
    /// Mean erasures of what each cell has, in tenths, rounded.
    pub tenths: Vec<u64>,
}

/// Erasures of what lies on the same planes, in the order of its blocks.
struct Line {
    planes: (usize, usize),
    counts: Vec<u32>,
}

impl WearMap {
    /// The map of `drive`. `None` if it has not erased anything.
    #[must_use]
    pub fn of(drive: &Drive) -> Option<Self> {
        let counts = drive.flash().erase_counts();
        if counts.iter().all(|&count| count == 0) {
            return None;
        }
        // Never none: a drive has planes, and those have blocks.
        let per_plane = (drive.config().geometry.blocks_per_plane as usize).max(1);
        Some(match element_lines(drive, per_plane) {
            Some(lines) => Self::fit(WearUnit::Element, &lines),
            None => Self::fit(WearUnit::Block, &block_lines(&counts, per_plane)),
        })
    }

    /// Lines in as few cells as may be shown.
    fn fit(unit: WearUnit, lines: &[Line]) -> Self {
        let groups: Vec<&[Line]> = lines
            .chunks(lines.len().div_ceil(ROWS_MAX).max(1))
            .collect();
        let longest = |group: &&[Line]| group.iter().map(|line| line.counts.len()).max();
        let lengths: Vec<usize> = groups.iter().filter_map(longest).collect();
        let columns = lengths.iter().copied().max().unwrap_or(0);
        let cells = |per_cell: usize| -> usize {
            let cells = lengths.iter().map(|length| length.div_ceil(per_cell));
            cells.sum()
        };
        let per_cell = (1..columns)
            .find(|&per_cell| cells(per_cell) <= CELLS_MAX)
            .unwrap_or(columns.max(1));
        let row = |(group, length): (&&[Line], &usize)| WearRow {
            planes: (
                group.iter().map(|line| line.planes.0).min().unwrap_or(0),
                group.iter().map(|line| line.planes.1).max().unwrap_or(0),
            ),
            tenths: (0..*length)
                .step_by(per_cell)
                .map(|from| mean_tenths(group, from..from + per_cell))
                .collect(),
        };
        Self {
            unit,
            columns,
            per_cell,
            rows: groups.iter().zip(&lengths).map(row).collect(),
        }
    }
}

/// Blocks, a line for each plane.
fn block_lines(counts: &[u32], per_plane: usize) -> Vec<Line> {
    let planes = counts.chunks(per_plane).enumerate();
    planes
        .map(|(plane, counts)| Line {
            planes: (plane, plane),
            counts: counts.to_vec(),
        })
        .collect()
}

/// Elements, a line for those on the same planes. `None` if zones are not made
/// of elements, or if blocks outside of them were erased too, those of
/// conventional namespaces: a map of elements would hide them.
fn element_lines(drive: &Drive, per_plane: usize) -> Option<Vec<Line>> {
    let elements = drive.flash().elements()?;
    let mut outside = drive.flash().erase_counts();
    let mut lines: BTreeMap<(usize, usize), Vec<u32>> = BTreeMap::new();
    for info in elements.all() {
        let mut planes: Option<(usize, usize)> = None;
        for block in elements.blocks_of(info.group, info.element) {
            let plane = block / per_plane;
            planes = Some(planes.map_or((plane, plane), |(first, last)| {
                (first.min(plane), last.max(plane))
            }));
            if let Some(count) = outside.get_mut(block) {
                *count = 0;
            }
        }
        if let Some(planes) = planes {
            lines.entry(planes).or_default().push(info.wear);
        }
    }
    let is_all = outside.iter().all(|&count| count == 0);
    let line = |(planes, counts)| Line { planes, counts };
    is_all.then(|| lines.into_iter().map(line).collect())
}

/// Mean of `columns` of all lines, in tenths.
fn mean_tenths(lines: &[Line], columns: Range<usize>) -> u64 {
    let (mut sum, mut n) = (0_u64, 0_u64);
    for line in lines {
        let end = columns.end.min(line.counts.len());
        for &count in line.counts.get(columns.start..end).unwrap_or_default() {
            sum += u64::from(count);
            n += 1;
        }
    }
    (sum * 10 + n / 2) / n.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(plane: usize, counts: Vec<u32>) -> Line {
        Line {
            planes: (plane, plane),
            counts,
        }
    }

    #[test]
    fn few_blocks_have_a_cell_each() {
        let map = WearMap::fit(WearUnit::Block, &block_lines(&[0, 3, 1, 2, 2, 9], 3));
        assert_eq!((map.columns, map.per_cell), (3, 1));
        let row = |planes, tenths: &[u64]| WearRow {
            planes,
            tenths: tenths.to_vec(),
        };
        let rows = [row((0, 0), &[0, 30, 10]), row((1, 1), &[20, 20, 90])];
        assert_eq!(map.rows, rows);
    }

    #[test]
    fn many_share_cells_and_lose_no_erasure() {
        let planes = 256;
        let counts = |plane: usize| (0..1_003).map(|block| (block + plane) as u32 % 7).collect();
        let lines: Vec<Line> = (0..planes)
            .map(|plane| line(plane, counts(plane)))
            .collect();
        let map = WearMap::fit(WearUnit::Block, &lines);
        assert_eq!(map.rows.len(), ROWS_MAX);
        assert_eq!(map.rows[1].planes, (4, 7));
        let cells: usize = map.rows.iter().map(|row| row.tenths.len()).sum();
        assert!(cells <= CELLS_MAX, "{cells}");
        assert_eq!((map.columns, map.per_cell), (1_003, 15));
        // 66 cells of 15 columns and one of 13, four planes each.
        let blocks = |cell: usize| if cell == 66 { 52 } else { 60 };
        let shown: u64 = map
            .rows
            .iter()
            .flat_map(|row| row.tenths.iter().enumerate())
            .map(|(cell, tenths)| tenths * blocks(cell))
            .sum();
        let erased: u64 = lines
            .iter()
            .flat_map(|line| &line.counts)
            .map(|&count| u64::from(count))
            .sum();
        let error = (shown as f64 / 10.0 - erased as f64).abs() / erased as f64;
        assert!(error < 0.01, "{shown} tenths of {erased}");
    }

    #[test]
    fn extremes_do_not_overflow() {
        let map = WearMap::fit(WearUnit::Block, &[line(0, vec![u32::MAX; 10_000])]);
        assert_eq!(map.per_cell, 3);
        assert!(
            map.rows[0]
                .tenths
                .iter()
                .all(|&tenths| tenths == 42_949_672_950)
        );
        let uneven = [line(0, vec![4]), line(1, vec![])];
        assert!(
            WearMap::fit(WearUnit::Element, &uneven).rows[1]
                .tenths
                .is_empty()
        );
        assert!(WearMap::fit(WearUnit::Element, &[]).rows.is_empty());
    }
}
