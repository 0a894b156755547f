//! The rules of the paper, as a [`ResetPolicy`].

use super::pace::Pace;
use crate::background::ResetState;
use crate::config::{Evaluate, Thresholds};
use crate::policy::{PolicyError, ResetEvent, ResetEvents, ResetPolicy, ResetStep, ResetView};

/// Erasure by thresholds.
#[derive(Clone, Debug)]
pub(super) struct ThresholdPolicy {
    thresholds: Thresholds,
    /// What rows wait for, by group, if thresholds adapt to the load.
    paces: Vec<Pace>,
}

impl ThresholdPolicy {
    pub(super) fn new(thresholds: Thresholds, groups: u32) -> Self {
        let paces = thresholds.adapt.into_iter();
        let paces = paces.flat_map(|adapt| (0..groups).map(move |_| Pace::new(adapt)));
        Self {
            thresholds,
            paces: paces.collect(),
        }
    }

    /// What has been seen of the load of a group, if anything is to be.
    fn pace(&mut self, group: &ResetView<'_>) -> Option<&mut Pace> {
        self.paces.get_mut(group.group() as usize)
    }

    /// S0 or S1, by how many zones are invalid.
    fn by_invalid(&self, group: &ResetView<'_>) -> ResetState {
        match self.thresholds.invalid_zones {
            Some(threshold) if group.invalid() >= threshold => ResetState::Partial,
            _ => ResetState::Serving,
        }
    }

    /// Whether the number of free zones is compared with its threshold.
    fn compares(&self, event: ResetEvent) -> bool {
        match self.thresholds.evaluate {
            Evaluate::Allocation => event == ResetEvent::BeforeAllocation,
            Evaluate::Command => event == ResetEvent::CommandBegins,
            Evaluate::Change => {
                matches!(event, ResetEvent::Allocated | ResetEvent::Released)
            }
        }
    }
}

impl ResetPolicy for ThresholdPolicy {
    fn name(&self) -> &str {
        "thresholds"
    }

    fn events(&self) -> ResetEvents {
        let of_load = match self.paces.is_empty() {
            true => ResetEvents::NONE,
            false => ResetEvents::ALL,
        };
        let wanted = ResetEvent::ALL.into_iter();
        wanted.fold(ResetEvents::COUNTS, |events, event| {
            match self.compares(event) || of_load.has(event) {
                true => events.with(event),
                false => events,
            }
        })
    }

    fn state_after(
        &mut self,
        event: ResetEvent,
        group: &ResetView<'_>,
    ) -> Result<ResetState, PolicyError> {
        let (now, is_pending) = (group.now(), group.pending() > 0);
        if let Some(pace) = self.pace(group) {
            match event {
                ResetEvent::Allocated => pace.allocates(now),
                ResetEvent::CommandBegins => pace.pause_ends(now, group.row_ns()),
                ResetEvent::CommandEnds if !is_pending => pace.pause_begins(now),
                _ => {}
            }
        }
        if self.compares(event) && group.free() <= self.thresholds.free_zones && group.has_victim()
        {
            return Ok(ResetState::Full);
        }
        Ok(match event.changes_counts() {
            true => self.by_invalid(group),
            false => group.state(),
        })
    }

    /// S1: a row whenever nothing of the host is pending, or at a better time.
    fn step(&mut self, group: &ResetView<'_>) -> Result<ResetStep, PolicyError> {
        if !group.is_quiet() {
            return Ok(ResetStep::Wait);
        }
        let (now, least) = (group.now(), self.thresholds.free_zones);
        let Some(pace) = self.pace(group) else {
            return Ok(ResetStep::Row);
        };
        let demand = (group.free().saturating_sub(least), group.rows_of_next());
        let at = pace.next_row(now, group.row_ns(), demand);
        Ok(match at > now {
            true => ResetStep::LookAt(at),
            false => ResetStep::Row,
        })
    }

    /// S2: until enough are free, or as many have been erased as may be at once.
    fn erases_more(&mut self, group: &ResetView<'_>) -> Result<bool, PolicyError> {
        let of = &self.thresholds;
        // Before the allocation that has brought this about, there was one more.
        let is_enough = match of.evaluate {
            Evaluate::Allocation => group.free() >= of.free_zones,
            Evaluate::Command | Evaluate::Change => group.free() > of.free_zones,
        };
        let most = of
            .zones_at_once
            .map(|zones| zones.saturating_mul(group.parts_of_zone()));
        let has_done_its_part = most.is_some_and(|most| group.erased_whole() >= most);
        Ok(!is_enough && !has_done_its_part)
    }
}
