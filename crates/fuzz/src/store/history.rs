//! What a drive did to its zones and blocks, and what may be left of it.

use zonelab_nvme::zns::ZoneState;
use zonelab_oracle::ends::ZoneView;

/// In place of the content of a block: the command of that number made it zeros.
pub(super) const ZEROED: u32 = 1 << 31;

/// What is read of a block with this stamp.
const fn content(stamp: u32) -> u32 {
    if stamp & ZEROED == 0 { stamp } else { 0 }
}

/// A state that a zone was in.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// The command that led to it; 0: none.
    pub(super) tag: u32,
    /// Steps of the medium before it.
    pub(super) from: usize,
    /// Steps of the medium when the host was told.
    pub(super) told: Option<usize>,
    pub(super) view: ZoneView,
    /// Which command wrote each block; 0: none; [`ZEROED`]: zeros.
    pub(super) stamps: Vec<u32>,
}

/// All states of a zone, in order.
#[derive(Clone, Debug)]
pub(super) struct History(pub(super) Vec<Candidate>);

impl History {
    pub(super) fn last(&self) -> &Candidate {
        self.0.last().expect("there is one from the beginning")
    }

    /// A command failed: it wrote nothing.
    pub(super) fn failed(&mut self, tag: u32) {
        for index in 1..self.0.len() {
            let (before, after) = self.0.split_at_mut(index);
            let stamps = &mut after[0].stamps;
            for (stamp, older) in stamps.iter_mut().zip(&before[index - 1].stamps) {
                if *stamp & !ZEROED == tag {
                    *stamp = *older;
                }
            }
        }
    }

    pub(super) fn told(&mut self, tag: u32, at: usize) {
        for candidate in self.0.iter_mut().filter(|of| of.tag == tag) {
            candidate.told = Some(at);
        }
    }

    /// States that can be left when the medium got so many steps.
    fn possible(&self, steps: usize) -> &[Candidate] {
        let told = |of: &Candidate| of.told.is_some_and(|at| at <= steps);
        let first = self.0.iter().rposition(told).unwrap_or(0);
        let begun = self.0.iter().rposition(|of| of.from <= steps).unwrap_or(0);
        &self.0[first..=begun.max(first)]
    }

    /// Panics if what was found cannot be left after so many steps.
    pub(super) fn check(&self, steps: usize, zone: u32, view: &ZoneView, stamps: &[u32]) {
        let possible = self.possible(steps);
        let is_loose = possible.iter().any(|of| of.view.has_zrwa());
        let fits = |of: &&Candidate| of.view.after_power_loss() == *view;
        // A zone that failed has no area any more, and what was not committed of
        // it need not outlive that.
        let has_failed = matches!(view.state, ZoneState::READ_ONLY | ZoneState::OFFLINE);
        let is_void = |(index, stamp): (usize, &u32)| {
            has_failed && *stamp == 0 && index as u64 >= view.host_lbas
        };
        let is_data_left = |of: &Candidate| {
            let mut blocks = stamps.iter().enumerate().zip(&of.stamps);
            blocks.all(|(found, stamp)| *found.1 == content(*stamp) || is_void(found))
        };
        let mut fitting = possible.iter().filter(fits);
        let is_right = if is_loose {
            // Each block of an area is by itself.
            let is_of_some = |(index, stamp): (usize, &u32)| {
                is_void((index, stamp))
                    || possible
                        .iter()
                        .any(|of| content(of.stamps[index]) == *stamp)
            };
            fitting.next().is_some() && stamps.iter().enumerate().all(is_of_some)
        } else {
            fitting.any(is_data_left)
        };
        assert!(
            is_right,
            "zone {zone} after {steps} steps is {view:?} with {stamps:?}; possible: {possible:#?}"
        );
    }
}

/// A value that a block of a conventional namespace got.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) tag: u32,
    /// 0: it became zeros.
    pub(super) stamp: u32,
    /// Steps of the medium before it, and the number of the event.
    pub(super) from: (usize, u64),
    /// The same when the host was told.
    pub(super) told: Option<(usize, u64)>,
}

/// Panics if a block with these values cannot be `stamp` after so many steps.
pub(super) fn check_block(values: &[Value], steps: usize, block: usize, stamp: u32) {
    let is_told = |of: &Value| of.told.is_some_and(|(at, _)| at <= steps);
    let replaced = |of: &Value| {
        let told = of.told.filter(|_| is_told(of));
        told.is_some_and(|(_, event)| values.iter().any(|by| is_told(by) && by.from.1 > event))
    };
    let is_possible = |of: &&Value| of.stamp == stamp && of.from.0 <= steps && !replaced(of);
    assert!(
        values.iter().any(|of| is_possible(&of)),
        "block {block} after {steps} steps is of {stamp}; possible: {values:#?}"
    );
}
