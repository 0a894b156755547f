//! Where the labels of a horizontal axis go.

use super::axis::{Fitted, Tick};
use super::text::{Lines, TICK};

/// Space between labels side by side, pixels.
const GAP: f64 = 4.0;
/// Most lines of a label that stands level.
const LINES_MAX: usize = 3;
/// Longest label that reads upwards, pixels.
const UPWARD_MAX: f64 = 120.0;

/// The labels of a horizontal axis.
#[derive(Debug, Default)]
pub(super) struct TickLabels {
    /// Each with the horizontal position of its middle, from the left end of the axis.
    pub(super) labels: Vec<(f64, Lines)>,
    /// They read upwards.
    pub(super) upward: bool,
    /// Their height.
    pub(super) height: f64,
}

impl TickLabels {
    /// Places the labels of `axis`, which is `length` long, between `room.0` pixels left of it
    /// and `room.1` pixels right of it.
    ///
    /// Labels of a scale stand level, and those that would touch the one before are left out.
    /// Labels that were chosen one by one are all needed: if they have no room in up to three
    /// lines each, they read upwards.
    pub(super) fn place(axis: &Fitted, length: f64, room: (f64, f64)) -> Self {
        let labelled = axis.ticks.iter().filter(|tick| !tick.label.is_empty());
        let ticks: Vec<(f64, &Tick)> = labelled
            .map(|tick| (axis.share(tick.value) * length, tick))
            .collect();
        let ends = (-room.0, length + room.1);
        if axis.is_chosen {
            Self::all_level(&ticks, ends).unwrap_or_else(|| Self::all_upward(&ticks))
        } else {
            Self::some_level(&ticks, ends)
        }
    }

    fn some_level(ticks: &[(f64, &Tick)], ends: (f64, f64)) -> Self {
        let mut labels = Vec::new();
        let mut taken = ends.0 - GAP;
        for (at, tick) in ticks {
            let half = TICK.width(&tick.label) / 2.0;
            let at = at.min(ends.1 - half).max(ends.0 + half);
            if at - half >= taken + GAP {
                labels.push((at, TICK.wrap(&tick.label, f64::INFINITY, 1)));
                taken = at + half;
            }
        }
        Self {
            labels,
            upward: false,
            height: TICK.line_height(),
        }
    }

    /// All labels level, each between the middles to its neighbours; `None` if a word of them
    /// is too long for that.
    fn all_level(ticks: &[(f64, &Tick)], ends: (f64, f64)) -> Option<Self> {
        let mut labels = Vec::new();
        for (index, (at, tick)) in ticks.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|index| ticks.get(index));
            let left = before.map_or(ends.0, |(other, _)| (at + other + GAP) / 2.0);
            let after = ticks.get(index + 1);
            let right = after.map_or(ends.1, |(other, _)| (at + other - GAP) / 2.0);
            let half = (at - left).min(right - at);
            let words = tick.label.split_whitespace().map(|word| TICK.width(word));
            if words.fold(0.0, f64::max) > 2.0 * half {
                return None;
            }
            let lines = TICK.wrap(&tick.label, 2.0 * half, LINES_MAX);
            if lines.whole.is_some() {
                return None;
            }
            labels.push((*at, lines));
        }
        let most = labels.iter().map(|(_, lines)| lines.extra(TICK));
        Some(Self {
            height: TICK.line_height() + most.fold(0.0, f64::max),
            labels,
            upward: false,
        })
    }

    fn all_upward(ticks: &[(f64, &Tick)]) -> Self {
        let mut labels: Vec<(f64, Lines)> = Vec::new();
        for (at, tick) in ticks {
            // Of labels closer than a line, there is room for one.
            let has_room = labels
                .last()
                .is_none_or(|(other, _)| at - other >= TICK.line_height());
            if has_room {
                labels.push((*at, TICK.wrap(&tick.label, UPWARD_MAX, 1)));
            }
        }
        let longest = labels.iter().map(|(_, lines)| lines.width(TICK));
        Self {
            height: longest.fold(TICK.line_height(), f64::max),
            labels,
            upward: true,
        }
    }
}
