//! Writes of threads that share their zones.

use zonelab_device::ZonedInfo;

use super::targets::{Pick, Role, Targets};
use super::{DirectedSpec, End, Flow, Pattern, Recording, Sizes, Syncs, WriteStyle};
use crate::rng::Rng;
use crate::stats::Intervals;
use crate::workload::WriteWork;
use crate::workload::zone_table::{JobId, SharedZones};
use zonelab_device::{NamespaceId, Nanos, Op};

/// What a thread that shares its zones does next.
#[derive(Clone, Copy, Debug)]
pub(in crate::workload) enum SharedNext {
    /// Writes.
    Write(Op, u64, u32),
    /// Resets the zone, which is full, to write it again; or finishes it, since
    /// what is left of it is too small for a write.
    Manage(Op, u32),
    /// Waits until somebody else gives a zone back.
    Wait,
    /// Has come to the end of the zones.
    Exhausted,
}

/// Sequential writes by several threads to the same zones, as fio does them
/// (`zonemode=zbd`, no offset of each thread): all begin at the first zone; one
/// write at a time is in a zone, and who wants to write there waits. Whoever
/// fills a zone goes on to the next; others that come back to it reset it.
pub(in crate::workload) struct SharedWrites {
    spec: DirectedSpec,
    targets: Targets,
    table: SharedZones,
}

impl SharedWrites {
    /// The writes of thread `id`.
    pub(in crate::workload) fn new(
        work: &WriteWork,
        zoned: ZonedInfo,
        table: SharedZones,
        id: JobId,
    ) -> Self {
        let spec = spec(work, id);
        Self {
            targets: Targets::new(&spec, zoned, table.clone()),
            table,
            spec,
        }
    }

    #[inline]
    pub(in crate::workload) fn next(&mut self, block_lbas: u32, rng: &mut Rng) -> SharedNext {
        match self.targets.write(&self.spec, block_lbas, rng) {
            Pick::Issue(step) if step.role == Role::Transfer => {
                SharedNext::Write(step.op, step.lbas, step.zone)
            }
            Pick::Issue(step) => SharedNext::Manage(step.op, step.zone),
            Pick::Wait => SharedNext::Wait,
            Pick::Exhausted => SharedNext::Exhausted,
        }
    }

    /// A write of `lbas` blocks to a zone has completed.
    #[inline]
    pub(in crate::workload) fn written(&mut self, zone: u32, lbas: u64) {
        self.table.borrow_mut().end_write(zone, lbas);
    }

    /// A zone has been reset.
    pub(in crate::workload) fn reset(&mut self, zone: u32) {
        self.table.borrow_mut().end_clearing(zone);
    }

    /// A zone has been finished.
    pub(in crate::workload) fn finished(&mut self, zone: u32) {
        self.table.borrow_mut().end_finishing(zone);
    }

    /// The thread has come to its end.
    pub(in crate::workload) fn ended(&mut self) {
        self.table.borrow_mut().job_ended();
    }
}

/// What a directed job that does the same is told.
fn spec(work: &WriteWork, id: JobId) -> DirectedSpec {
    let flow = Flow {
        sizes: Sizes::fixed(work.block_lbas),
        bytes_per_second: None,
        ops_per_second: None,
        poisson: false,
    };
    DirectedSpec {
        id,
        namespace: NamespaceId::FIRST,
        zones: work.zones.clone(),
        flows: [None, Some(flow), None],
        read_percent: 0,
        pattern: Pattern::Sequential,
        style: if work.append {
            WriteStyle::Append
        } else {
            WriteStyle::Write
        },
        reads_beyond_write_pointer: false,
        open_limit: None,
        early_reset: None,
        syncs: Syncs::default(),
        queue_depth: 1,
        start: Nanos::ZERO,
        ramp: Nanos::ZERO,
        end: End {
            repeats: work.repeat,
            ..End::default()
        },
        think: None,
        recording: Recording {
            submission_percentiles: false,
            completion_percentiles: false,
            total_percentiles: false,
            bandwidth_interval: Intervals::DEFAULT_LENGTH,
            iops_interval: Intervals::DEFAULT_LENGTH,
            confidence: false,
            log: false,
            log_window: Nanos::ZERO,
        },
    }
}
