//! What tests of host programs need whatever they run on: jobs from closures,
//! a queue pair that records, specifications. The tests of `zonelab-sim` share it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Found, NamespaceInfo, Nanos, Op, QueueId, QueuePair,
    Rejected, Tag, ZonedInfo,
};
use zonelab_host::workload::{Fill, JobResult, JobSpec, Work, WorkloadJob, WriteWork};
use zonelab_host::{Job, NextWake, Rng};
use zonelab_nvme::Status;

/// Blocks between the starts of two zones of the tiny drive.
pub(crate) const ZONE: u64 = 64;
/// Blocks of a zone of the tiny drive that can be written.
pub(crate) const CAPACITY: u64 = 60;
/// Blocks of a page.
pub(crate) const PAGE: u32 = 4;
/// The tiny drive as its users see it: 8 zones of 64 logical blocks, of which
/// 60 can be written.
pub(crate) fn tiny_info() -> DeviceInfo {
    DeviceInfo {
        model: "tiny".to_owned(),
        namespaces: vec![NamespaceInfo {
            placements: Some(0),
            lba_bytes: 4096,
            size_lbas: 8 * ZONE,
            zoned: Some(ZonedInfo {
                zones: 8,
                zone_size_lbas: ZONE,
                zone_capacity_lbas: CAPACITY,
                max_active: None,
                max_open: None,
                read_across_zones: false,
                descriptor_extension_bytes: 0,
                zrwa: None,
            }),
            copy: None,
        }],
        max_transfer_bytes: u32::MAX,
        max_append_bytes: u32::MAX,
        has_volatile_cache: false,
    }
}

/// A job from a closure.
pub(crate) struct Script<F>(pub(crate) F);

impl<F> Job for Script<F>
where
    F: FnMut(Nanos, &mut Vec<Completion>, &mut dyn QueuePair) -> NextWake,
{
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        (self.0)(now, done, queue)
    }
}

/// A job from a closure, with its types spelled out for inference.
pub(crate) fn script<F>(step: F) -> Script<F>
where
    F: FnMut(Nanos, &mut Vec<Completion>, &mut dyn QueuePair) -> NextWake,
{
    Script(step)
}

/// What a [`Recorder`] answers to an operation: how long it takes, and its status.
pub(crate) type Answer = Box<dyn FnMut(&Op) -> (Nanos, Status)>;

/// A queue pair without a drive behind it: it records operations, and completes
/// each after the time that a closure gives.
pub(crate) struct Recorder {
    info: DeviceInfo,
    pub(crate) now: Nanos,
    answer: Answer,
    sequence: u64,
    in_flight: BinaryHeap<Reverse<(Nanos, u64, u32, u16)>>,
    /// Operations with the time of their submission.
    pub(crate) log: Vec<(Nanos, Op)>,
    /// Placement identifiers of all of them that were not 0, by their place in the log.
    pub(crate) placed: Vec<(usize, u16)>,
    /// Most operations that were in flight at once.
    pub(crate) deepest: usize,
}

impl Recorder {
    /// A device of `info` that answers by `answer`.
    pub(crate) fn new(
        info: DeviceInfo,
        answer: impl FnMut(&Op) -> (Nanos, Status) + 'static,
    ) -> Self {
        Self {
            info,
            now: Nanos::ZERO,
            answer: Box::new(answer),
            sequence: 0,
            in_flight: BinaryHeap::new(),
            log: Vec::new(),
            placed: Vec::new(),
            deepest: 0,
        }
    }

    /// A device on which everything succeeds after `latency`.
    pub(crate) fn steady(info: DeviceInfo, latency: Nanos) -> Self {
        Self::new(info, move |_| (latency, Status::SUCCESS))
    }

    /// Runs a job from time zero until it has finished, waking it when it asks
    /// for it and when something completes, and gives the time of its end.
    /// `None`: it is still at work after `steps` steps, or waits for nothing.
    pub(crate) fn run(&mut self, job: &mut dyn Job, steps: usize) -> Option<Nanos> {
        let mut done = Vec::new();
        for _ in 0..steps {
            self.poll(&mut done);
            let next = job.step(self.now, &mut done, self);
            done.clear();
            let completion = self.in_flight.peek().map(|Reverse((at, ..))| *at);
            self.now = match (next, completion) {
                (NextWake::Finished, _) => return Some(self.now),
                (NextWake::At(wish), Some(at)) => self.now.max(wish.min(at)),
                (NextWake::At(at), None) | (NextWake::Completion, Some(at)) => self.now.max(at),
                (NextWake::Completion, None) => return None,
            };
        }
        None
    }
}

impl QueuePair for Recorder {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, command: Command, tag: Tag, _data: Option<Buf>) -> Result<(), Rejected> {
        let (latency, status) = (self.answer)(&command.op);
        if command.placement > 0 {
            self.placed.push((self.log.len(), command.placement));
        }
        self.log.push((self.now, command.op));
        self.sequence += 1;
        self.in_flight.push(Reverse((
            self.now + latency,
            self.sequence,
            tag.0,
            status.0,
        )));
        self.deepest = self.deepest.max(self.in_flight.len());
        Ok(())
    }

    fn ring(&mut self) {}

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        while let Some(&Reverse((at, _, tag, status))) = self.in_flight.peek()
            && at <= self.now
        {
            self.in_flight.pop();
            done.push(Completion {
                queue: QueueId(0),
                tag: Tag(tag),
                status: Status(status),
                at,
                result: 0,
                found: Found::Unknown,
                data: None,
            });
        }
        done.len() - before
    }
}

/// A job specification with one operation in flight, no limit and no end but
/// that of its work.
pub(crate) fn spec(work: Work) -> JobSpec {
    JobSpec::new("job", work)
}

/// Plain sequential writes of `block_lbas` through `zones`.
pub(crate) fn writes(zones: std::ops::Range<u32>, block_lbas: u32) -> WriteWork {
    WriteWork {
        zones,
        block_lbas,
        append: false,
        open_zones: 1,
        repeat: false,
        reset_first: false,
        open_first: false,
        command_lbas: None,
    }
}

/// Nothing is written before a finish or reset.
pub(crate) const NO_FILL: Fill = Fill {
    lbas: 0,
    block_lbas: 0,
    open_first: false,
    finish_first: false,
    settle: Nanos::ZERO,
    repeat: false,
};

/// A job of `spec` for a namespace, with addresses of `seed`.
pub(crate) fn job(spec: JobSpec, info: &DeviceInfo, seed: u64) -> WorkloadJob {
    WorkloadJob::new(
        spec,
        info,
        Rng::new(seed, 0),
        zonelab_host::StopSignal::default(),
    )
}

/// Runs a specification on a recorder: what it measured, when it ended.
pub(crate) fn record(spec: JobSpec, queue: &mut Recorder) -> (JobResult, Nanos) {
    let info = queue.info.clone();
    let mut job = job(spec, &info, 1);
    let end = queue
        .run(&mut job, 10_000_000)
        .expect("the job comes to an end");
    (job.into_result(), end)
}
