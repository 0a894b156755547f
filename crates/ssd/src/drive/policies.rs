//! Policies of somebody else: installing them, and asking which flash a zone gets.

use zonelab_device::ZoneId;

use super::{Core, Drive};
use crate::config::MappingConfig;
use crate::mapping::Choice;
use crate::mapping::allocator::ElementId;
use crate::policy::{
    AllocationPolicy, ElementCandidate, ElementsRequest, PhysicalZoneInfo, PolicyError,
    ResetPolicy, ZoneRequest,
};

/// Policies that were installed, but for that of resets, which the background has.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    allocation: Option<Box<dyn AllocationPolicy>>,
    /// Why a policy is not asked any more: the first such.
    error: Option<Box<PolicyError>>,
}

impl Core {
    /// A policy has failed, and is not asked any more.
    pub(crate) fn policy_failed(&mut self, error: PolicyError) {
        self.policies.error.get_or_insert_with(|| Box::new(error));
    }

    /// Asks the policy of allocation, if there is one, which flash a zone gets that has
    /// none and is going to be given some.
    #[inline]
    pub(crate) fn choose_flash(&mut self, zone: ZoneId) {
        if let Some(policy) = self.policies.allocation.take() {
            self.choose_flash_by(zone, policy);
        }
    }

    #[cold]
    fn choose_flash_by(&mut self, zone: ZoneId, mut policy: Box<dyn AllocationPolicy>) {
        let group = self.flash.layout().group_of(zone.0);
        let chosen = match self.flash.mapping().choice(group) {
            Choice::PhysicalZones(of) => self.choose_physical(zone, &of, policy.as_mut()),
            Choice::Elements(of, needed) => {
                self.choose_elements(zone, (&of, needed), policy.as_mut())
            }
        };
        match chosen {
            Ok(()) => self.policies.allocation = Some(policy),
            Err(error) => self.policy_failed(error),
        }
    }

    fn choose_physical(
        &mut self,
        zone: ZoneId,
        physical_zones: &[u32],
        policy: &mut dyn AllocationPolicy,
    ) -> Result<(), PolicyError> {
        let group = self.flash.layout().group_of(zone.0);
        let info = |&physical: &u32| PhysicalZoneInfo {
            physical,
            wear: self.flash.wear_of(physical),
            stale_blocks: self.flash.stale_blocks(physical),
        };
        let candidates: Vec<_> = physical_zones.iter().map(info).collect();
        if candidates.is_empty() {
            return Ok(());
        }
        let request = ZoneRequest {
            zone,
            group,
            now: self.now,
            candidates: &candidates,
        };
        let chosen = policy.physical_zone(&request)?;
        let Some(chosen) = candidates.get(chosen) else {
            let valid = format!("a position among the {} candidates", candidates.len());
            let question = "the physical zone of a zone";
            return Err(answer(policy, question, chosen.to_string(), valid));
        };
        self.flash.mapping_mut().prefer(chosen.physical);
        Ok(())
    }

    fn choose_elements(
        &mut self,
        zone: ZoneId,
        (candidates, (luns, per_lun, is_relaxed)): (&[ElementCandidate], (u32, u32, bool)),
        policy: &mut dyn AllocationPolicy,
    ) -> Result<(), PolicyError> {
        let group = self.flash.layout().group_of(zone.0);
        let request = ElementsRequest {
            zone,
            group,
            now: self.now,
            luns,
            per_lun,
            is_relaxed,
            candidates,
        };
        let mut chosen = Vec::new();
        policy.elements(&request, &mut chosen)?;
        if chosen.is_empty() {
            return Ok(());
        }
        if let Err((given, valid)) = check_elements(&request, &chosen) {
            return Err(answer(policy, "the elements of a zone", given, valid));
        }
        self.flash.mapping_mut().choose_elements(group, chosen);
        Ok(())
    }
}

impl Drive {
    /// Lets a policy decide from now on when the flash of reset zones is erased, in place
    /// of the profile's thresholds.
    ///
    /// # Errors
    /// [`PolicyError::NothingToDecide`] if the profile has another `reset.erase_at` than
    /// `thresholds`, [`PolicyError::Busy`] while the host waits for erasures.
    pub fn set_reset_policy(&mut self, policy: Box<dyn ResetPolicy>) -> Result<(), PolicyError> {
        self.background.install_reset_policy(&mut self.core, policy)
    }

    /// Lets a policy decide from now on which flash zones get.
    ///
    /// # Errors
    /// [`PolicyError::NothingToDecide`] if the mapping is direct: zones have their flash
    /// for ever.
    pub fn set_allocation_policy(
        &mut self,
        policy: Box<dyn AllocationPolicy>,
    ) -> Result<(), PolicyError> {
        if self.core.config.mapping == MappingConfig::Direct {
            return Err(PolicyError::NothingToDecide {
                policy: policy.name().to_owned(),
                key: "mapping.design",
                value: "direct".to_owned(),
                valid: "lazy, chunk or stripe",
            });
        }
        self.core.policies.allocation = Some(policy);
        Ok(())
    }

    /// Why a policy that was installed is not asked any more; `None`: all are well. The
    /// first such reason, if there were several.
    #[must_use]
    pub fn policy_error(&self) -> Option<&PolicyError> {
        self.core.policies.error.as_deref()
    }

    /// Whether a policy of somebody else decides something.
    pub(crate) fn has_policies(&self) -> bool {
        self.core.policies.allocation.is_some() || self.background.own_reset_policy().is_some()
    }

    /// The name of a policy that remembers something.
    pub(crate) fn policy_with_memory(&self) -> Option<&str> {
        let reset = self
            .background
            .own_reset_policy()
            .filter(|policy| policy.has_memory());
        let allocation = self.core.policies.allocation.as_deref();
        let allocation = allocation.filter(|policy| policy.has_memory());
        let names = [
            reset.map(ResetPolicy::name),
            allocation.map(AllocationPolicy::name),
        ];
        names.into_iter().flatten().next()
    }
}

/// An answer that is none.
fn answer(
    policy: &dyn AllocationPolicy,
    question: &'static str,
    answer: String,
    valid: String,
) -> PolicyError {
    PolicyError::Answer {
        policy: policy.name().to_owned(),
        question,
        answer,
        valid,
    }
}

/// Whether a zone can have these elements; else what is wrong with them, and what would be
/// valid.
fn check_elements(
    request: &ElementsRequest<'_>,
    chosen: &[ElementId],
) -> Result<(), (String, String)> {
    let needed = request.luns as usize * request.per_lun as usize;
    if chosen.len() != needed {
        let given = format!("{} elements", chosen.len());
        return Err((given, format!("{needed} elements, or none")));
    }
    let mut seen = vec![false; request.candidates.len()];
    let mut of_lun = vec![0; request.luns as usize];
    for element in chosen {
        let place = request
            .candidates
            .binary_search_by_key(element, |of| of.element);
        let Ok(place) = place else {
            let valid = "elements among the candidates".to_owned();
            return Err((format!("element {}", element.0), valid));
        };
        if core::mem::replace(&mut seen[place], true) {
            let valid = "each element once".to_owned();
            return Err((format!("element {} twice", element.0), valid));
        }
        of_lun[request.candidates[place].lun as usize] += 1;
    }
    let uneven = of_lun.iter().position(|count| *count != request.per_lun);
    match uneven.filter(|_| !request.is_relaxed) {
        Some(lun) => {
            let given = format!("{} elements of LUN {lun}", of_lun[lun]);
            Err((given, format!("{} of each LUN", request.per_lun)))
        }
        None => Ok(()),
    }
}
