//! The speed of zonelab itself: simulated operations, end to end.
//!
//! A [`Case`] is a drive and a workload; running it goes through everything
//! that an experiment goes through: job, queue pair, reactor, zone states,
//! mapping, flash timing, events, statistics. The [`yardstick`] does the bare
//! minimum that any simulator of this kind must do, so that the ratio of the
//! two means the same on every machine. A [`SchedulerCase`] is one scheduler by
//! itself, an [`AllocationCase`] the allocation of storage elements to zones, a [`RingCase`] the
//! driver for PCIe.

mod allocation;
mod rings;
mod schedulers;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hdrhistogram::Histogram;
use zonelab_device::Nanos;
use zonelab_host::stats::Moments;
use zonelab_host::workload::{Fill, JobSpec, ReadWork, Stop, Work, WorkloadJob, WriteWork};
use zonelab_host::{CoreId, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_sim::stack::Stack;
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::config::{ChannelArbitration, DriveConfig};
use zonelab_ssd::profile::Profile;
use zonelab_ssd::{Control, Drive};

pub use allocation::{AllocationCase, DriveWear, PreparedAllocation, allocation_cases};
pub use rings::{RingCase, RingLoad, RingMemory, RingRig, ring_cases};
pub use schedulers::{
    PreparedScheduler, SchedulerCase, SchedulerLoad, scheduler_cases, scheduler_specs,
};

/// The drives of the cases: the small one is that of the ConfZNS++ emulator,
/// and of the figures that peers are measured with.
const SMALL: &str = r#"
schema = 1
name = "bench-small"
[geometry]
channels = 4
pages_per_block = 768
page_size = "16KiB"
[namespace]
lba_size = "4KiB"
[zones]
count = 48
size = "2GiB"
capacity = "1056MiB"
[media]
read = "60us"
program = "700us"
erase = "3.5ms"
transfer = "25us"
page_register = "overlap"
channel_arbitration = "arrival"
[finish]
design = "fill"
granularity = "256KiB"
[reset]
timing = "synchronous"
"#;

/// 128 dies and 100,000 zones.
const LARGE: &str = r#"
schema = 1
name = "bench-large"
[geometry]
channels = 16
ways = 8
pages_per_block = 64
page_size = "16KiB"
[namespace]
lba_size = "4KiB"
[zones]
count = 100000
size = "128MiB"
[media]
read = "60us"
program = "700us"
erase = "3.5ms"
transfer = "25us"
page_register = "overlap"
channel_arbitration = "arrival"
[finish]
design = "fill"
granularity = "2MiB"
[reset]
timing = "synchronous"
"#;

/// What a case does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    RandomRead,
    SequentialWrite,
    Append,
    /// Writes beside finishes and resets of other zones.
    Mix,
}

/// What a case has that makes an operation dearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    /// The job's commands take time in the host, with jitter, as in experiments.
    HostCosts,
    /// The order in which channels serve depends on what becomes ready first, so that
    /// flash is timed by events.
    EventDriven,
}

/// A drive and a workload.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name in output: `random-read/16KiB/qd32/4-dies-48-zones`, and what is extra.
    pub name: String,
    load: Load,
    block_bytes: u32,
    queue_depth: u32,
    large: bool,
    extra: Option<Extra>,
}

/// What a run of a case did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Operations completed.
    pub operations: u64,
    /// Events that the drive handled.
    pub events: u64,
}

/// All cases, in order of output.
#[must_use]
pub fn cases() -> Vec<Case> {
    let loads = [
        ("random-read", Load::RandomRead),
        ("sequential-write", Load::SequentialWrite),
        ("append", Load::Append),
        ("finish-reset-mix", Load::Mix),
    ];
    let mut cases = Vec::new();
    for (load_name, load) in loads {
        for kib in [4, 16] {
            for queue_depth in [1, 32, 128] {
                for (geometry, large) in [("4-dies-48-zones", false), ("128-dies-100k-zones", true)]
                {
                    cases.push(Case {
                        name: format!("{load_name}/{kib}KiB/qd{queue_depth}/{geometry}"),
                        load,
                        block_bytes: kib << 10,
                        queue_depth,
                        large,
                        extra: None,
                    });
                }
            }
        }
    }
    let is_compared = |case: &&Case| {
        let has_load = [Load::RandomRead, Load::SequentialWrite].contains(&case.load);
        has_load && case.queue_depth == 32 && !case.large
    };
    let plain: Vec<Case> = cases.iter().filter(is_compared).cloned().collect();
    for (name, extra) in [
        ("host-costs", Extra::HostCosts),
        ("event-driven", Extra::EventDriven),
    ] {
        cases.extend(plain.iter().map(|case| Case {
            name: format!("{}/{name}", case.name),
            extra: Some(extra),
            ..case.clone()
        }));
    }
    cases
}

/// A case that is ready to run: making the drive is not part of what is measured.
pub struct Prepared {
    device: Emulated,
    jobs: Vec<WorkloadJob>,
    costs: HostCosts,
    stop: StopSignal,
}

impl Case {
    /// The same work without what is extra; `None`: there is nothing extra.
    #[must_use]
    pub fn plain(&self) -> Option<Self> {
        self.extra.map(|_| Self {
            extra: None,
            ..self.clone()
        })
    }

    /// Makes the drive and the jobs, for about `operations` operations.
    #[must_use]
    pub fn prepare(&self, operations: u64) -> Prepared {
        let text = if self.large { LARGE } else { SMALL };
        let mut profile = Profile::parse("bench", text, &[]).expect("a test reads both");
        if self.extra == Some(Extra::EventDriven) {
            profile.config.media.arbitration = ChannelArbitration::Ready;
        }
        let config = &profile.config;
        let device = Emulated::new(Drive::new(config));
        let quarter = config.zones.count / 4;
        let full = Control::PreconditionFull { zones: 0..quarter };
        device
            .with_drive(|drive| drive.control(Nanos::ZERO, &full))
            .expect("the drive is fresh and keeps no data");
        let stop = StopSignal::default();
        let jobs = self
            .specs(config, quarter, operations)
            .into_iter()
            .enumerate()
            .map(|(i, spec)| {
                WorkloadJob::new(spec, device.info(), Rng::new(1, i as u64), stop.clone())
            })
            .collect();
        let costs = match self.extra {
            Some(Extra::HostCosts) => host_costs(),
            _ => HostCosts::FREE,
        };
        Prepared {
            device,
            jobs,
            costs,
            stop,
        }
    }

    fn specs(&self, config: &DriveConfig, quarter: u32, operations: u64) -> Vec<JobSpec> {
        let block_lbas = self.block_bytes / config.lba_bytes;
        let write = |append| {
            Work::Write(WriteWork {
                zones: quarter..2 * quarter,
                block_lbas,
                append,
                open_zones: 1,
                repeat: true,
                reset_first: false,
                open_first: false,
                command_lbas: None,
            })
        };
        let work = match self.load {
            Load::RandomRead => Work::Read(ReadWork {
                zones: 0..quarter,
                block_lbas,
                random: true,
            }),
            Load::SequentialWrite | Load::Mix => write(false),
            Load::Append => write(true),
        };
        let spec = |name: &str, work| JobSpec {
            queue_depth: self.queue_depth,
            stop: Stop {
                operations: Some(operations),
                ..Stop::default()
            },
            ends_run: true,
            ..JobSpec::new(name, work)
        };
        let mut specs = vec![spec("foreground", work)];
        if self.load == Load::Mix {
            let unlimited = |work| JobSpec {
                stop: Stop::default(),
                ends_run: false,
                ..spec("management", work)
            };
            let fill = Fill {
                lbas: u64::from(block_lbas),
                block_lbas,
                ..Fill::default()
            };
            specs.push(unlimited(Work::Finish {
                zones: 2 * quarter..3 * quarter,
                fill,
                soft: None,
            }));
            let zones = 0..quarter;
            specs.push(unlimited(Work::Reset {
                zones,
                shuffled: true,
                fill: Fill::default(),
            }));
        }
        specs
    }
}

impl Prepared {
    /// Runs it.
    #[must_use]
    pub fn run(mut self) -> Ran {
        let mut reactor = Reactor::new(
            VirtualClock::default(),
            self.device.clone(),
            self.stop.clone(),
        );
        for (i, job) in self.jobs.iter_mut().enumerate() {
            let queue = self
                .device
                .open_queue(job.depth(), self.costs, Rng::new(2, i as u64));
            reactor.add(job, queue, CoreId(i as u32), Nanos::ZERO);
        }
        let end = reactor.run();
        assert_eq!(end.stuck_jobs, 0, "every job ends");
        let operations = self
            .jobs
            .into_iter()
            .map(|job| job.into_result().operations)
            .sum();
        Ran {
            operations,
            events: self.device.with_drive(|drive| drive.events_handled()),
        }
    }
}

/// Those of a storage stack of the kernel, with jitter.
fn host_costs() -> HostCosts {
    let stack = Stack::named("io_uring").expect("a test runs all cases");
    HostCosts {
        jitter_ns: Nanos(300),
        ..stack.costs
    }
}

/// The least that a simulator of this kind does: a random address, a die and a
/// channel with a time at which each is free, a heap of completions with
/// `depth` entries, a histogram. No commands, no zones, no checks, no jobs.
/// Returns a checksum, so that nothing is optimised away.
#[must_use]
pub fn yardstick(operations: u64, depth: u32) -> u64 {
    const DIES: usize = 4;
    let mut rng = Rng::new(1, 0);
    let (mut dies, mut channels) = ([0u64; DIES], [0u64; DIES]);
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    // What it measures must not depend on what is measured with it.
    let mut latencies = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3)
        .expect("1 ns to 1 h with three digits is a valid range");
    let mut moments = Moments::default();
    let mut end = 0;
    let mut issue = |now: u64, rng: &mut Rng| {
        let die = rng.below(DIES as u64) as usize;
        let array = now.max(dies[die]) + 60_000;
        dies[die] = array;
        let done = array.max(channels[die]) + 25_000;
        channels[die] = done;
        Reverse((done, now))
    };
    for _ in 0..depth {
        heap.push(issue(0, &mut rng));
    }
    for _ in 0..operations {
        let Some(Reverse((now, submitted))) = heap.pop() else {
            break;
        };
        latencies.saturating_record(now - submitted);
        moments.add(now - submitted);
        heap.push(issue(now, &mut rng));
        end = now;
    }
    end ^ latencies.len() ^ moments.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_does_what_it_says() {
        for case in cases() {
            let ran = case.prepare(500).run();
            assert!(
                ran.operations >= 500,
                "{}: {} operations",
                case.name,
                ran.operations
            );
            assert!(
                ran.events >= ran.operations,
                "{}: {} events",
                case.name,
                ran.events
            );
        }
    }

    #[test]
    fn the_yardstick_runs() {
        assert_ne!(yardstick(1000, 32), 0);
    }
}
