//! Jobs whose operations would take no time, so that time would never go on.
//!
//! They read what nothing has written, for as long as they have time. A drive answers that from
//! its map, and the flash translation layer from its own: the layer asks neither the drive nor
//! the storage stack below it. [`Point::check`](super::Point::check) and the run refuse such a
//! job by the same sentence.

use zonelab_host::workload::{AT_ONCE, Stop};
use zonelab_sim::HostCosts;
use zonelab_ssd::config::DriveConfig;

use super::Point;
use crate::experiment::{JobTemplate, Via, WorkTemplate};
use crate::idle;

impl Point {
    /// The first job that would go on for ever at one time, as far as the file says it, with why.
    pub(super) fn timeless(&self, config: &DriveConfig) -> Option<String> {
        let found = idle::finding_nothing(&self.experiment, &self.series, None);
        let finds_nothing = |name: &str| found.get(name).is_some_and(|of| of.least >= 1.0);
        let is_timeless = |job: &&JobTemplate| {
            let reads = match &job.work {
                WorkTemplate::Read { .. } => true,
                WorkTemplate::Blocks(blocks) => !blocks.is_write && blocks.passes.is_none(),
                _ => false,
            };
            let Stop {
                bytes, operations, ..
            } = job.stop;
            let has_end = bytes.is_some() || operations.is_some();
            let costs = job.stack.unwrap_or(self.host().stack).costs;
            let is_at_once = match self.via() {
                Via::Ftl => true,
                Via::Direct => costs == HostCosts::FREE && reads_nothing_at_once(config),
                Via::Pcie => false,
            };
            reads && !has_end && job.rate.is_none() && is_at_once
        };
        let mut jobs = self.jobs().filter(|job| finds_nothing(&job.name));
        let job = jobs.find(is_timeless)?;
        Some(self.says_timeless(&job.name))
    }

    /// Says that operations of a job take no time, and what would give them some.
    pub(super) fn says_timeless(&self, job: &str) -> String {
        let why = match self.via() {
            Via::Ftl => {
                "nothing of what it reads is written, and the layer answers that itself, without \
                 the drive and without the storage stack: let a job of an earlier phase write it \
                 (phases = [[\"fill\"], [\"read\"]]), or give the job an end that counts \
                 (operations = 1000)"
            }
            Via::Direct | Via::Pcie => {
                "nothing of what it reads is written, and the host costs nothing; fill the zones \
                 that it reads, or give the host costs"
            }
        };
        format!(
            "job \"{job}\": {AT_ONCE} operations began at one time and none of them took any, so \
             that time would never go on: {why}"
        )
    }
}

/// Whether a drive answers reads of what holds nothing when they arrive.
fn reads_nothing_at_once(config: &DriveConfig) -> bool {
    let front_end = &config.front_end;
    let costs = &front_end.costs;
    let is_free = |times: &[zonelab_device::Nanos]| times.iter().all(|time| time.0 == 0);
    let has_free_cores =
        front_end.cores == 0 || is_free(&[front_end.read_ns, costs.read_per_kib_ns]);
    has_free_cores && is_free(&[costs.read_latency_ns]) && front_end.link_bytes_per_s.is_none()
}
