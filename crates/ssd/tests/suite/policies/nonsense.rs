//! Answers that make no sense, and policies where none has a place.

use zonelab_device::Nanos;
use zonelab_ssd::ResetState;
use zonelab_ssd::config::{DriveConfig, EraseExtent, EraseWhen};
use zonelab_ssd::policy::{
    PolicyError, ResetEvent, ResetEvents, ResetPolicy, ResetStep, ResetView, ZoneToErase,
};
use zonelab_ssd::snapshot::{self, SnapshotError};

use super::paper::Paper;
use crate::drive_support::thresholds::thresholds;
use crate::drive_support::{Rig, lazy, reset, small};

/// Gives the answers that it is made of.
#[derive(Clone, Copy, Debug)]
struct Given {
    state: ResetState,
    served: ResetState,
    step: Option<ResetStep>,
    more: bool,
    victim: usize,
}

const SOUND: Given = Given {
    state: ResetState::Partial,
    served: ResetState::Partial,
    step: Some(ResetStep::Row),
    more: true,
    victim: 0,
};

impl ResetPolicy for Given {
    fn name(&self) -> &str {
        "given"
    }

    fn events(&self) -> ResetEvents {
        ResetEvents::ALL
    }

    fn state_after(
        &mut self,
        event: ResetEvent,
        _: &ResetView<'_>,
    ) -> Result<ResetState, PolicyError> {
        Ok(match event {
            ResetEvent::Served => self.served,
            _ => self.state,
        })
    }

    fn step(&mut self, _: &ResetView<'_>) -> Result<ResetStep, PolicyError> {
        self.step.ok_or_else(|| PolicyError::Failed {
            policy: "given".to_owned(),
            message: "it has no answer".to_owned(),
        })
    }

    fn erases_more(&mut self, _: &ResetView<'_>) -> Result<bool, PolicyError> {
        Ok(self.more)
    }

    fn victim(&mut self, _: &ResetView<'_>, _: &[ZoneToErase]) -> Result<usize, PolicyError> {
        Ok(self.victim)
    }
}

fn config() -> DriveConfig {
    let mut config = lazy(small(), 8);
    config.reset = reset(
        EraseWhen::Thresholds(thresholds(0, Some(1))),
        EraseExtent::Full,
    );
    config
}

/// Zones are written, reset and written again, more than there are.
fn run(policy: Given) -> (Rig, Option<PolicyError>) {
    let mut rig = Rig::new(&config());
    rig.drive
        .set_reset_policy(Box::new(policy))
        .expect("it is by thresholds");
    for _ in 0..3 {
        for zone in 0..6 {
            rig.write_pages(zone, 32);
        }
        for zone in 0..6 {
            let reset = rig.reset(zone);
            rig.submit(reset);
        }
        rig.run_for(Nanos(100));
    }
    rig.settle();
    let error = rig.drive.policy_error().cloned();
    (rig, error)
}

#[test]
fn sound_answers_of_any_kind_are_taken() {
    for policy in [
        SOUND,
        Given {
            more: false,
            ..SOUND
        },
        Given {
            step: Some(ResetStep::Zone),
            ..SOUND
        },
        Given {
            step: Some(ResetStep::Wait),
            ..SOUND
        },
        Given {
            state: ResetState::Serving,
            ..SOUND
        },
        Given {
            state: ResetState::Full,
            ..SOUND
        },
        Given {
            state: ResetState::Full,
            more: false,
            ..SOUND
        },
    ] {
        let (rig, error) = run(policy);
        assert_eq!(error, None, "{policy:?}");
        // Flash is erased when it is needed, whatever a policy leaves undone.
        assert!(rig.drive.totals().erased_blocks > 0, "{policy:?}");
    }
}

#[test]
fn other_answers_are_named_and_harm_nothing() {
    for (policy, question) in [
        (
            Given {
                victim: 17,
                ..SOUND
            },
            "the zone to erase",
        ),
        (
            Given {
                step: Some(ResetStep::LookAt(Nanos::ZERO)),
                ..SOUND
            },
            "the step of a group",
        ),
        (
            Given {
                state: ResetState::Full,
                served: ResetState::Full,
                ..SOUND
            },
            "the state after Served",
        ),
    ] {
        let (_, error) = run(policy);
        match error {
            Some(PolicyError::Answer {
                policy: name,
                question: asked,
                valid,
                ..
            }) => {
                assert_eq!((name.as_str(), asked), ("given", question), "{policy:?}");
                assert!(!valid.is_empty());
            }
            other => panic!("{policy:?}: {other:?}"),
        }
    }
    let (_, error) = run(Given {
        step: None,
        ..SOUND
    });
    let text = error.expect("it failed").to_string();
    assert_eq!(text, "policy given: it has no answer");
}

#[test]
fn where_there_is_nothing_to_decide_a_policy_is_refused() {
    let mut rig = Rig::new(&small());
    let refused = rig.drive.set_reset_policy(Box::new(SOUND));
    let text = refused
        .expect_err("resets are another design's")
        .to_string();
    assert!(
        text.contains("reset.erase_at") && text.contains("thresholds"),
        "{text}"
    );
}

/// A snapshot holds no policy. One without a memory loses nothing by that.
#[test]
fn snapshots_are_taken_of_policies_without_a_memory() {
    let config = config();
    let mut rig = Rig::new(&config);
    rig.drive
        .set_reset_policy(Box::new(SOUND))
        .expect("it fits");
    assert_eq!(
        snapshot::save(&rig.drive),
        Err(SnapshotError::OwnPolicy {
            policy: "given".to_owned()
        })
    );
    let paper = || Box::new(Paper(thresholds(0, Some(1))));
    rig.drive.set_reset_policy(paper()).expect("it fits");
    rig.write_pages(0, 32);
    let reset = rig.reset(0);
    rig.time(reset);
    rig.settle();
    let bytes = snapshot::save(&rig.drive).expect("it is idle");
    let mut restored = snapshot::restore(&config, &bytes).expect("it is of this drive");
    restored.set_reset_policy(paper()).expect("it fits");
}
