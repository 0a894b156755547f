//! Policies of one's own: what a design decides, from outside of this crate.
//!
//! A design of the drive is a mechanism (which flash operations there are, what
//! waits for what, what must be erased before it is programmed) and decisions.
//! The mechanism is here, and is kept right whatever is decided. Decisions can
//! come from outside:
//!
//! | trait | decides | installed by | takes the place of |
//! | --- | --- | --- | --- |
//! | [`ResetPolicy`] | when how much of which reset zones is erased, and whether the host waits | [`Drive::set_reset_policy`] | the thresholds of `reset.erase_at = "thresholds"` |
//! | [`AllocationPolicy`] | which erase blocks a zone gets | [`Drive::set_allocation_policy`] | the oldest free zone, or the elements of least wear |
//!
//! What holds for all of them:
//!
//! * A policy belongs to one drive. It sees no clock but the time of the model that it
//!   is told, so that the same policy with the same commands gives the same results.
//! * It is asked at stated events, never per flash operation. A drive without one
//!   does what it did before there were any.
//! * An answer that makes no sense does no harm: it is kept as a [`PolicyError`]
//!   ([`Drive::policy_error`]), the policy is not asked again, and the drive goes on
//!   by a safe rule, so that whatever was submitted completes. Whoever runs the
//!   drive asks for the error when the run is over, or after each step.
//! * A loss of power leaves the policy in place and tells it so. A snapshot holds no
//!   policy: one that remembers something keeps a drive from being saved
//!   ([`crate::snapshot::SnapshotError::OwnPolicy`]), and others are installed again
//!   in the drive that is restored.
//!
//! The examples `own_reset` and `own_allocation` of the crate `zonelab` are a whole policy
//! each.
//!
//! [`Drive::set_reset_policy`]: crate::Drive::set_reset_policy
//! [`Drive::set_allocation_policy`]: crate::Drive::set_allocation_policy
//! [`Drive::policy_error`]: crate::Drive::policy_error

mod allocation;
mod reset;

pub use allocation::{
    AllocationPolicy, ElementCandidate, ElementsRequest, PhysicalZoneInfo, ZoneRequest,
};
pub use reset::{ResetEvent, ResetEvents, ResetPolicy, ResetStep, ResetView, ZoneToErase};

/// Why a policy was not installed, or is not asked any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The drive has a design in which the policy would have nothing to decide.
    #[error(
        "policy {policy}: {key} of the drive is {value}, which leaves it nothing to decide; it has to be {valid}"
    )]
    NothingToDecide {
        /// Name of the policy.
        policy: String,
        /// The key of the profile.
        key: &'static str,
        /// Its value.
        value: String,
        /// What would be valid.
        valid: &'static str,
    },
    /// The drive has work under way that another policy decided on.
    #[error("policy {policy}: {what} of the drive is under way; install it when the drive is idle")]
    Busy {
        /// Name of the policy.
        policy: String,
        /// What is under way.
        what: &'static str,
    },
    /// It gave an answer that is none.
    #[error("policy {policy} was asked for {question} and answered {answer}: it has to be {valid}")]
    Answer {
        /// Name of the policy.
        policy: String,
        /// What it was asked for.
        question: &'static str,
        /// What it answered.
        answer: String,
        /// What would have been valid.
        valid: String,
    },
    /// It could not answer, for a reason of its own.
    #[error("policy {policy}: {message}")]
    Failed {
        /// Name of the policy.
        policy: String,
        /// What it says.
        message: String,
    },
}
