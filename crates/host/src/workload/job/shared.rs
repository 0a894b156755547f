//! What a job shares with others, and what it hands over in the end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use zonelab_device::Nanos;

use super::failed::FailedCommand;
use super::verify::Verified;
use crate::block::MergeCount;
use crate::reactor::StopSignal;
use crate::workload::JobSpec;
use crate::workload::latency::TooLate;
use crate::workload::record::Recorder;
use crate::workload::replay::Replayed;
use crate::workload::share::Share;
use crate::workload::steady::Steadiness;
use crate::workload::zone_table::{JobId, SharedZones};

/// Operations that a job without a bound on their number or bytes may begin at one
/// time. One that goes on, on a host without costs with reads of what was never
/// written, would keep virtual time from ever going on: it ends with an error.
pub const AT_ONCE: u32 = 1 << 17;

/// What a job shares with others.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// Tells this job to end.
    pub stop: StopSignal,
    /// What is known of the zones, and the number of the job among those that
    /// know it. Writes through a range of zones then go to zones that others
    /// write to as well; work in directions is always of such a table, and has
    /// one of empty zones for itself if none is given.
    pub zones: Option<(SharedZones, JobId)>,
    /// Blocks that each zone of its namespace holds when the job begins, if that is known and
    /// the device does not tell what resets and finishes of listed zones find
    /// ([`Found::Unknown`](zonelab_device::Found::Unknown)).
    pub held_lbas: Option<Arc<[u64]>>,
    /// It starts when these have all been rung: those whose end it waits for. Its
    /// start, [`JobSpec::start`], is not before that.
    pub starts_after: Vec<StopSignal>,
    /// What this job tells to end when it has ended, besides
    /// [`JobSpec::ends_run`].
    pub ends: Vec<StopSignal>,
    /// The same, if an operation of it failed.
    pub ends_on_error: Vec<StopSignal>,
    /// What it may do beside others.
    pub share: Option<Share>,
    /// Tells every job to end, from another thread.
    pub interrupt: Option<Arc<AtomicBool>>,
}

impl From<StopSignal> for Shared {
    fn from(stop: StopSignal) -> Self {
        Self {
            stop,
            ..Self::default()
        }
    }
}

/// What a job measured.
#[derive(Clone, Debug)]
pub struct JobResult {
    /// Name of the job.
    pub name: String,
    /// Latencies and throughput.
    pub recorder: Recorder,
    /// When it started.
    pub started: Nanos,
    /// When measuring began: after the ramp.
    pub measured_from: Nanos,
    /// When its last operation had completed.
    pub ended: Nanos,
    /// For how long the next operation had been due when others told it to end: those that were
    /// due in this time were never issued. Of jobs whose operations are due at times of their own.
    pub behind: Nanos,
    /// Operations issued and completed, measured or not.
    pub operations: u64,
    /// Zones reset because they were full and to be written again.
    pub cleared_zones: u64,
    /// Zones finished because what was left of them was too small for a write.
    pub ended_zones: u64,
    /// Zones that reads in order left out in their first pass, since nothing is written there.
    pub empty_zones: u64,
    /// Of its zones, those that are read only or offline.
    pub dead_zones: u64,
    /// What became of the operations of a trace that it replayed.
    pub replayed: Option<Box<Replayed>>,
    /// What the block layer merged of its requests, the ramp included; set by
    /// who ran it, nothing without a block layer.
    pub merges: MergeCount,
    /// Failed commands.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<FailedCommand>,
    /// The latency that ended it, if it was longer than it may be.
    pub too_late: Option<TooLate>,
    /// It was ended since its operations took no time ([`AT_ONCE`]).
    pub is_timeless: bool,
    /// It had more to do when its device was gone.
    pub is_cut_off: bool,
    /// The depth that a search for a latency came to.
    pub depth_found: Option<u32>,
    /// It ended before its figures were as well known as they were to be.
    pub is_uncertain: bool,
    /// How steady it became, if that was to end it.
    pub steadiness: Option<Box<Steadiness>>,
    /// What became of blocks that were verified, if any were.
    pub verified: Option<Box<Verified>>,
}

impl JobResult {
    /// Of a job that has done nothing yet.
    pub(super) fn new(spec: &JobSpec, lba_bytes: u64) -> Self {
        Self {
            name: spec.name.clone(),
            recorder: Recorder::new(spec.recording, spec.arrival.is_open(), lba_bytes),
            started: spec.start,
            measured_from: spec.start,
            ended: spec.start,
            behind: Nanos::ZERO,
            operations: 0,
            cleared_zones: 0,
            ended_zones: 0,
            empty_zones: 0,
            dead_zones: 0,
            replayed: None,
            merges: MergeCount::default(),
            errors: 0,
            first_error: None,
            too_late: None,
            is_timeless: false,
            is_cut_off: false,
            depth_found: None,
            is_uncertain: false,
            steadiness: None,
            verified: None,
        }
    }
}
