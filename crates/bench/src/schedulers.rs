//! What schedulers cost, without a device: insertion, dispatch and completion.

use zonelab_device::{Command, DeviceInfo, Lba, NamespaceInfo, Nanos, Op, ZonedInfo};
use zonelab_host::Rng;
use zonelab_host::scheduler::{
    MqDeadlineSettings, RequestId, Scheduler, SchedulerSpec, ZincSettings,
};

/// Zones of the device, of 128 MiB each in blocks of 4 KiB.
const ZONES: u32 = 100_000;
const ZONE_LBAS: u64 = 32_768;
/// Zones that are written at the same time.
const WRITTEN: u64 = 32;
/// Requests that are inserted before the scheduler is asked, where they wait.
const ROUND: u64 = 128;
/// Blocks of a request.
const NLB: u32 = 2;

/// Requests for a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerLoad {
    /// Random reads, one after another.
    Reads,
    /// Sequential writes to 32 zones in turn, one after another.
    Writes,
    /// 128 random reads, then the scheduler is asked: they wait for each other.
    WaitingReads,
    /// 128 writes to 32 zones, then the scheduler is asked: those of a zone are
    /// merged, if it merges.
    WaitingWrites,
    /// The same with gaps in front of each write: nothing can be merged, and the
    /// writes of a zone go one after another.
    LockedWrites,
}

/// A load and the schedulers to compare.
#[derive(Clone, Debug)]
pub struct SchedulerCase {
    /// Name in output: `scheduler/reads`.
    pub name: &'static str,
    /// What it does.
    pub load: SchedulerLoad,
}

/// All cases, in order of output.
#[must_use]
pub fn scheduler_cases() -> [SchedulerCase; 5] {
    [
        ("scheduler/reads", SchedulerLoad::Reads),
        ("scheduler/writes", SchedulerLoad::Writes),
        ("scheduler/reads-waiting", SchedulerLoad::WaitingReads),
        ("scheduler/writes-merged", SchedulerLoad::WaitingWrites),
        ("scheduler/writes-locked", SchedulerLoad::LockedWrites),
    ]
    .map(|(name, load)| SchedulerCase { name, load })
}

/// The schedulers that are compared: none, mq-deadline, zinc.
#[must_use]
pub fn scheduler_specs() -> [SchedulerSpec; 3] {
    [
        SchedulerSpec::None,
        SchedulerSpec::MqDeadline(MqDeadlineSettings::default()),
        SchedulerSpec::Zinc(ZincSettings::default()),
    ]
}

/// A scheduler and a load. Making it is not part of what is measured.
pub struct PreparedScheduler {
    scheduler: Box<dyn Scheduler>,
    load: SchedulerLoad,
    rng: Rng,
    now: Nanos,
    /// Requests made, over which zones and blocks advance.
    made: u64,
    carried: Vec<RequestId>,
    in_flight: Vec<Command>,
}

impl SchedulerCase {
    /// Makes a scheduler of a device with 100,000 zones.
    #[must_use]
    pub fn prepare(&self, spec: &SchedulerSpec) -> PreparedScheduler {
        let zoned = ZonedInfo {
            zones: ZONES,
            zone_size_lbas: ZONE_LBAS,
            zone_capacity_lbas: ZONE_LBAS,
            max_active: None,
            max_open: None,
            read_across_zones: false,
            descriptor_extension_bytes: 0,
            zrwa: None,
        };
        let info = DeviceInfo {
            model: "bench".to_owned(),
            namespaces: vec![NamespaceInfo {
                placements: None,
                lba_bytes: 4096,
                size_lbas: u64::from(ZONES) * ZONE_LBAS,
                zoned: Some(zoned),
                copy: None,
            }],
            max_transfer_bytes: 1 << 20,
            max_append_bytes: 1 << 20,
            has_volatile_cache: false,
        };
        PreparedScheduler {
            scheduler: spec.build(&info).expect("a test builds all"),
            load: self.load,
            rng: Rng::new(1, 0),
            now: Nanos::ZERO,
            made: 0,
            carried: Vec::new(),
            in_flight: Vec::new(),
        }
    }
}

impl PreparedScheduler {
    /// Puts that many requests through, or some more to fill the last round.
    /// Returns how many, and in how many commands they went.
    pub fn run(&mut self, requests: u64) -> (u64, u64) {
        let round = match self.load {
            SchedulerLoad::Reads | SchedulerLoad::Writes => 1,
            _ => ROUND,
        };
        let (mut done, mut commands) = (0, 0);
        while done < requests {
            for id in 0..round {
                self.now += Nanos(1_000);
                let command = self.request();
                self.scheduler
                    .insert(self.now, RequestId(id as u32), command);
            }
            commands += self.serve();
            done += round;
        }
        (done, commands)
    }

    fn request(&mut self) -> Command {
        let n = self.made;
        self.made += 1;
        let nlb = NLB;
        let (zone, turn) = (n % WRITTEN, n / WRITTEN);
        let spacing = match self.load {
            SchedulerLoad::LockedWrites => 2 * u64::from(NLB),
            _ => u64::from(NLB),
        };
        let slba = Lba(zone * ZONE_LBAS + turn * spacing % ZONE_LBAS);
        Command::new(match self.load {
            SchedulerLoad::Reads | SchedulerLoad::WaitingReads => {
                let zone = self.rng.below(u64::from(ZONES));
                let slba = Lba(zone * ZONE_LBAS + u64::from(NLB) * self.rng.below(1_000));
                Op::Read { slba, nlb }
            }
            _ => Op::Write { slba, nlb },
        })
    }

    /// Takes out and completes until nothing waits.
    fn serve(&mut self) -> u64 {
        let mut commands = 0;
        loop {
            while let Some(command) = self.scheduler.dispatch(self.now, &mut self.carried) {
                self.carried.clear();
                self.in_flight.push(command);
            }
            if self.in_flight.is_empty() {
                return commands;
            }
            commands += self.in_flight.len() as u64;
            for command in self.in_flight.drain(..) {
                self.scheduler.completed(self.now, &command);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_does_what_it_says() {
        for case in scheduler_cases() {
            for spec in scheduler_specs() {
                let mut prepared = case.prepare(&spec);
                let (requests, commands) = prepared.run(1_280);
                assert_eq!(requests, 1_280);
                assert_eq!(prepared.scheduler.waiting(), 0);
                let merges = case.load == SchedulerLoad::WaitingWrites;
                let per_command = if merges && spec != SchedulerSpec::None {
                    ROUND / WRITTEN
                } else {
                    1
                };
                assert_eq!(commands, requests / per_command, "{} {spec:?}", case.name);
            }
        }
    }
}
