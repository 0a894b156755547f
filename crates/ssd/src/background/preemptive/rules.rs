//! Who decides when zones are erased, and what becomes of the answers.
//!
//! A policy is taken out of the drive while it is asked, so that it can look at the
//! drive. One that has given an answer that is none is asked no more: its group then
//! serves the host and erases what zones were reserved, nothing else.

use super::ThresholdPolicy;
use crate::background::Background;
use crate::background::ResetState;
use crate::drive::Core;
use crate::policy::{PolicyError, ResetEvent, ResetPolicy, ResetStep, ResetView, ZoneToErase};

/// Who decides.
#[derive(Debug)]
pub(super) enum Rules {
    /// The thresholds of the profile.
    Thresholds(ThresholdPolicy),
    /// Somebody else.
    Own(Box<dyn ResetPolicy>),
    /// Nobody: while a policy is asked, and after it failed.
    Nobody,
}

/// A copy of a drive that a policy of somebody else decides for has nobody: policies cannot
/// be copied, and so commands of such a drive are not watched.
impl Clone for Rules {
    fn clone(&self) -> Self {
        match self {
            Self::Thresholds(policy) => Self::Thresholds(policy.clone()),
            Self::Own(_) | Self::Nobody => Self::Nobody,
        }
    }
}

impl Rules {
    fn name(&self) -> String {
        match self {
            Self::Thresholds(policy) => policy.name().to_owned(),
            Self::Own(policy) => policy.name().to_owned(),
            Self::Nobody => String::new(),
        }
    }
}

/// Calls a method of whoever decides; `$nobody` if nobody does.
macro_rules! ask {
    ($rules:expr, $nobody:expr, $policy:ident => $call:expr) => {
        match $rules {
            Rules::Thresholds($policy) => $call,
            Rules::Own($policy) => $call,
            Rules::Nobody => Ok($nobody),
        }
    };
}

impl Background {
    /// Whether somebody else decides.
    pub(super) fn has_own_rules(&self) -> bool {
        let rules = self.preemptive.as_ref().map(|of| &of.rules);
        matches!(rules, Some(Rules::Own(_)))
    }

    /// The policy of somebody else, if one decides.
    pub(crate) fn own_reset_policy(&self) -> Option<&dyn ResetPolicy> {
        match &self.preemptive.as_ref()?.rules {
            Rules::Own(policy) => Some(&**policy),
            Rules::Thresholds(_) | Rules::Nobody => None,
        }
    }

    /// Lets somebody else decide from now on.
    pub(crate) fn install_reset_policy(
        &mut self,
        core: &mut Core,
        policy: Box<dyn ResetPolicy>,
    ) -> Result<(), PolicyError> {
        let name = policy.name().to_owned();
        let Some(preemptive) = self.preemptive.as_mut() else {
            return Err(PolicyError::NothingToDecide {
                policy: name,
                key: "reset.erase_at",
                value: super::erase_at(core.config.reset.erase).to_owned(),
                valid: "thresholds",
            });
        };
        let is_full = |of: &super::Group| of.state == ResetState::Full;
        if preemptive.groups.iter().any(is_full) {
            let what = "the erasure of zones that the host waits for";
            return Err(PolicyError::Busy { policy: name, what });
        }
        preemptive.events = policy.events();
        preemptive.rules = Rules::Own(policy);
        self.resume_thresholds(core, core.now);
        Ok(())
    }

    /// Asks whoever decides. `check` says what is wrong with an answer. `nobody` is the
    /// answer if there is none.
    fn ask<T: Copy>(
        &mut self,
        core: &mut Core,
        group: u32,
        nobody: T,
        question: impl FnOnce(&mut Rules, &ResetView<'_>) -> Result<T, PolicyError>,
        check: impl FnOnce(T) -> Result<(), Wrong>,
    ) -> T {
        let Some(of) = self.preemptive.as_mut() else {
            return nobody;
        };
        let mut rules = core::mem::replace(&mut of.rules, Rules::Nobody);
        let view = ResetView::new(self, core, group);
        let answer = question(&mut rules, &view).and_then(|answer| match check(answer) {
            Ok(()) => Ok(answer),
            Err((question, answer, valid)) => Err(PolicyError::Answer {
                policy: rules.name(),
                question,
                answer,
                valid,
            }),
        });
        match answer {
            Ok(answer) => {
                if let Some(of) = self.preemptive.as_mut() {
                    of.rules = rules;
                }
                answer
            }
            Err(error) => {
                core.policy_failed(error);
                nobody
            }
        }
    }

    /// The state of a group after something happened; `None`: as before.
    pub(super) fn ask_state(
        &mut self,
        core: &mut Core,
        event: ResetEvent,
        group: u32,
    ) -> Option<ResetState> {
        self.ask(
            core,
            group,
            None,
            |rules, view| ask!(rules, None, policy => policy.state_after(event, view).map(Some)),
            |state| match (event, state) {
                (ResetEvent::Served, Some(ResetState::Full)) => Err((
                    "the state after Served",
                    "Full".to_owned(),
                    "Serving or Partial, so that the host is served in between".to_owned(),
                )),
                _ => Ok(()),
            },
        )
    }

    /// What a group in S1 does now.
    pub(super) fn ask_step(&mut self, core: &mut Core, group: u32) -> ResetStep {
        let now = core.now;
        self.ask(
            core,
            group,
            ResetStep::Wait,
            |rules, view| ask!(rules, ResetStep::Wait, policy => policy.step(view)),
            |step| match step {
                ResetStep::LookAt(at) if at <= now => Err((
                    "the step of a group",
                    format!("LookAt({at})"),
                    format!("a time after {now}, or another step"),
                )),
                _ => Ok(()),
            },
        )
    }

    /// Whether a group in S2 erases one zone more.
    pub(super) fn ask_for_more(&mut self, core: &mut Core, group: u32) -> bool {
        self.ask(
            core,
            group,
            false,
            |rules, view| ask!(rules, false, policy => policy.erases_more(view)),
            |_| Ok(()),
        )
    }

    /// Which of some zones is erased next; `None`: there are none.
    pub(super) fn ask_victim(
        &mut self,
        core: &mut Core,
        group: u32,
        candidates: &[ZoneToErase],
    ) -> Option<u32> {
        let oldest = candidates.first()?;
        let chosen = self.ask(
            core,
            group,
            0,
            |rules, view| ask!(rules, 0, policy => policy.victim(view, candidates)),
            |chosen| match chosen < candidates.len() {
                true => Ok(()),
                false => Err((
                    "the zone to erase",
                    chosen.to_string(),
                    format!("a position among the {} candidates", candidates.len()),
                )),
            },
        );
        Some(candidates.get(chosen).unwrap_or(oldest).physical)
    }
}

/// What was asked, what the answer was, and what would have been valid.
type Wrong = (&'static str, String, String);
