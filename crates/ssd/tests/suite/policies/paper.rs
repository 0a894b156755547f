//! Preemptive zone reset, written from the paper over the public interface.

use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::FaultTarget;
use zonelab_ssd::ResetState;
use zonelab_ssd::config::{EraseWhen, Evaluate, Thresholds, Victim};
use zonelab_ssd::policy::{
    PolicyError, ResetEvent, ResetEvents, ResetPolicy, ResetStep, ResetView, ZoneToErase,
};
use zonelab_ssd::record::RecordLimits;

use crate::drive_support::Rig;
use crate::drive_support::random::{Step, bodies, designs, drive, front_ends, streams};
use crate::drive_support::thresholds::{any_thresholds, within};

/// The rules of Electronics 12, 798, sections 2.2.2 and 3.2, and the settings that a
/// profile has for what they leave open.
#[derive(Debug)]
pub(crate) struct Paper(pub(crate) Thresholds);

impl ResetPolicy for Paper {
    fn name(&self) -> &str {
        "paper"
    }

    fn events(&self) -> ResetEvents {
        ResetEvents::ALL
    }

    fn state_after(
        &mut self,
        event: ResetEvent,
        group: &ResetView<'_>,
    ) -> Result<ResetState, PolicyError> {
        let is_looked_at = match self.0.evaluate {
            Evaluate::Allocation => event == ResetEvent::BeforeAllocation,
            Evaluate::Command => event == ResetEvent::CommandBegins,
            Evaluate::Change => event == ResetEvent::Allocated || event == ResetEvent::Released,
        };
        if is_looked_at && group.free() <= self.0.free_zones && group.has_victim() {
            return Ok(ResetState::Full);
        }
        // S0 and S1 follow the count whenever it changes; between changes they stay.
        let partial = self.0.invalid_zones;
        Ok(
            match partial.is_some_and(|least| group.invalid() >= least) {
                true => ResetState::Partial,
                false => ResetState::Serving,
            },
        )
    }

    fn step(&mut self, group: &ResetView<'_>) -> Result<ResetStep, PolicyError> {
        let is_quiet = group.pending() + group.in_flight() + group.fills() == 0;
        Ok(match is_quiet {
            true => ResetStep::Row,
            false => ResetStep::Wait,
        })
    }

    fn erases_more(&mut self, group: &ResetView<'_>) -> Result<bool, PolicyError> {
        let needed = match self.0.evaluate {
            Evaluate::Allocation => self.0.free_zones,
            Evaluate::Command | Evaluate::Change => self.0.free_zones + 1,
        };
        let may = self
            .0
            .zones_at_once
            .map(|zones| zones * group.parts_of_zone());
        Ok(group.free() < needed && may.is_none_or(|may| group.erased_whole() < may))
    }

    fn victim(
        &mut self,
        _: &ResetView<'_>,
        candidates: &[ZoneToErase],
    ) -> Result<usize, PolicyError> {
        let by_wear = || {
            let wear = |at: &usize| candidates[*at].wear;
            (0..candidates.len())
                .min_by_key(wear)
                .expect("there are some")
        };
        Ok(match self.0.victim {
            Victim::Oldest => 0,
            Victim::LeastWorn => by_wear(),
        })
    }

    fn has_memory(&self) -> bool {
        false
    }
}

/// Everything that a run shows from outside.
fn outcome(rig: &mut Rig, stream: &[Step], cuts: &[(usize, u64)]) -> String {
    rig.drive.record(&RecordLimits::everything(1 << 14));
    for (at, step) in stream.iter().enumerate() {
        for (_, seed) in cuts.iter().filter(|(when, _)| *when == at) {
            rig.settle();
            rig.drive.power_cut(rig.now, Nanos(1_000), *seed);
            rig.run_for(Nanos::from_secs(1));
        }
        match (step, step.op(rig)) {
            (_, Some(op)) => drop(rig.submit(op)),
            (Step::Pause(span), None) => rig.run_for(Nanos(*span)),
            (_, None) => rig.settle(),
        }
    }
    rig.settle();
    assert_eq!(rig.drive.policy_error(), None);
    let record = rig.drive.take_record();
    let (totals, freed) = (rig.drive.totals(), rig.drive.freed());
    let wear = rig.drive.flash().erase_counts();
    let (done, busy) = (&rig.done, rig.busy());
    format!("{done:?} {totals:?} {freed:?} {wear:?} {busy:?} {record:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// On any drive, under any load and across losses of power: completions, wear, busy
    /// times and everything that is recorded are the same.
    #[test]
    fn the_paper_from_outside_is_the_built_in_design(
        (body, designs, spare) in (bodies(), designs(), 0..4_u32),
        (thresholds, extent) in any_thresholds(),
        front_end in prop::option::of(front_ends()),
        stream in streams(1..80),
        cuts in prop::collection::vec((0..80_usize, any::<u64>()), 0..2),
    ) {
        let mut designs = designs;
        designs.lazy = true;
        designs.reset.preempt_ns = None;
        designs.reset.extent = extent;
        let mut config = drive(body, designs, spare);
        // What adapts is not in the paper.
        config.reset.erase = within(Thresholds { adapt: None, ..thresholds }, &config);
        let EraseWhen::Thresholds(thresholds) = config.reset.erase else {
            unreachable!("that is what it says")
        };
        if let Some(front_end) = front_end {
            config.front_end = front_end;
        }
        let mut native = Rig::new(&config);
        let mut own = Rig::new(&config);
        own.drive.set_reset_policy(Box::new(Paper(thresholds))).expect("it is by thresholds");
        prop_assert_eq!(
            outcome(&mut native, &stream, &cuts),
            outcome(&mut own, &stream, &cuts)
        );
    }
}
