//! A workload and a scheduler of one's own on an emulated drive.
//!
//! ```console
//! $ cargo run --release -p zonelab --example own_workload
//! ```
//!
//! A workload is a [`Job`]: a state machine that is told what completed and submits what
//! it likes. This one is a log with checkpoints: it appends records to one zone, one after
//! another, and reads the latest ones back every so often. A scheduler is a
//! [`Scheduler`]; this one lets reads pass everything else.

use std::collections::VecDeque;

use zonelab::device::{Command, Completion, Lba, Nanos, Op, QueuePair, Tag};
use zonelab::host::scheduler::{RequestId, Scheduler};
use zonelab::host::{CoreId, Job, NextWake, Reactor, Rng, StopSignal, VirtualClock};
use zonelab::sim::{BlockCosts, Emulated, HostCosts};
use zonelab::ssd::{Drive, profile};

/// Records of a checkpoint.
const RECORDS: u32 = 16;
/// Blocks of a record.
const RECORD_LBAS: u32 = 4;

/// Appends records, and reads the last checkpoint beside the next one.
#[derive(Debug, Default)]
pub(crate) struct Log {
    appended: u32,
    /// Commands that are under way.
    under_way: u32,
    /// Checkpoints to write.
    checkpoints: u32,
    /// Latencies of reads, all together, and how many there were.
    pub(crate) reads: (Nanos, u32),
    began: Vec<Nanos>,
}

impl Log {
    fn submit(&mut self, queue: &mut dyn QueuePair, op: Op) {
        let tag = Tag(self.began.len() as u32);
        self.began.push(queue.now());
        queue
            .submit(Command::new(op), tag, None)
            .expect("the queue is deep enough for two checkpoints");
        self.under_way += 1;
    }
}

impl Job for Log {
    fn step(
        &mut self,
        _: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        for completion in done.drain(..) {
            self.under_way -= 1;
            // Writes of a checkpoint have the first tags of their round.
            if completion.tag.0 % (2 * RECORDS) >= RECORDS {
                let latency = completion
                    .at
                    .saturating_sub(self.began[completion.tag.0 as usize]);
                self.reads = (self.reads.0 + latency, self.reads.1 + 1);
            }
        }
        if self.under_way > 0 {
            return NextWake::Completion;
        }
        if self.checkpoints == 0 {
            return NextWake::Finished;
        }
        self.checkpoints -= 1;
        let last = self.appended.saturating_sub(RECORDS);
        for _ in 0..RECORDS {
            self.appended += 1;
            let nlb = RECORD_LBAS;
            self.submit(queue, Op::Append { zslba: Lba(0), nlb });
        }
        for record in last..last + RECORDS {
            let slba = Lba(u64::from(record * RECORD_LBAS));
            self.submit(
                queue,
                Op::Read {
                    slba,
                    nlb: RECORD_LBAS,
                },
            );
        }
        queue.ring();
        NextWake::Completion
    }
}

/// Reads first, and a few commands with the device at a time.
#[derive(Debug, Default)]
pub(crate) struct ReadsFirst {
    reads: VecDeque<(u64, RequestId, Command)>,
    others: VecDeque<(u64, RequestId, Command)>,
    inserted: u64,
    in_flight: u32,
}

impl Scheduler for ReadsFirst {
    fn name(&self) -> &'static str {
        "reads-first"
    }

    fn insert(&mut self, _: Nanos, id: RequestId, command: Command) {
        self.inserted += 1;
        let line = match command.op {
            Op::Read { .. } => &mut self.reads,
            _ => &mut self.others,
        };
        line.push_back((self.inserted, id, command));
    }

    fn dispatch(&mut self, _: Nanos, carried: &mut Vec<RequestId>) -> Option<Command> {
        if self.in_flight >= 4 {
            return None;
        }
        let (_, id, command) = self.reads.pop_front().or_else(|| self.others.pop_front())?;
        carried.push(id);
        self.in_flight += 1;
        Some(command)
    }

    fn completed(&mut self, _: Nanos, _: &Command) {
        self.in_flight -= 1;
    }

    fn waiting(&self) -> usize {
        self.reads.len() + self.others.len()
    }

    fn drain(&mut self, waiting: &mut Vec<(RequestId, Command)>) {
        let mut all: Vec<_> = self.reads.drain(..).chain(self.others.drain(..)).collect();
        all.sort_unstable_by_key(|(nth, _, _)| *nth);
        waiting.extend(all.into_iter().map(|(_, id, command)| (id, command)));
    }
}

/// Mean latency of reads, and when it was over.
pub(crate) fn run(scheduler: Option<Box<dyn Scheduler>>) -> (Nanos, Nanos) {
    let config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    let mut device = Emulated::new(Drive::new(&config));
    if let Some(scheduler) = scheduler {
        device = device.behind_own(scheduler, BlockCosts::default());
    }
    let queue = device.open_queue(2 * RECORDS, HostCosts::FREE, Rng::new(1, 0));
    let mut log = Log {
        checkpoints: 20,
        ..Log::default()
    };
    let mut reactor = Reactor::new(VirtualClock::default(), device, StopSignal::default());
    reactor.add(&mut log, queue, CoreId(0), Nanos::ZERO);
    let end = reactor.run();
    let (total, count) = log.reads;
    (Nanos(total.0 / u64::from(count.max(1))), end.at)
}

fn main() {
    for (name, scheduler) in [
        ("none", None),
        (
            "reads first",
            Some(Box::new(ReadsFirst::default()) as Box<dyn Scheduler>),
        ),
    ] {
        let (mean, end) = run(scheduler);
        println!("scheduler {name:11}  a read takes {mean} on average; over after {end}");
    }
}
