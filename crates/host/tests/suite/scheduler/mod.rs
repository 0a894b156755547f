//! Schedulers, each driven without a device: what goes in, what comes out, when.
//!
//! | module | what |
//! | --- | --- |
//! | `world` | random hosts and a random device, and what must hold of every scheduler |
//! | `random` | scripts of that world |
//! | `mq_deadline` | the order of reads and writes, case by case |
//! | `zinc` | when resets and finishes go |
//! | `settings` | ranges |

mod mq_deadline;
mod random;
mod settings;
mod world;
mod zinc;

use std::sync::LazyLock;

use zonelab_device::{Command, DeviceInfo, Lba, NamespaceId, NamespaceInfo, Nanos, Op, ZonedInfo};
use zonelab_host::scheduler::{RequestId, Scheduler, SchedulerSpec};
use zonelab_nvme::zns::ZoneSendAction;

/// Blocks between the starts of two zones of namespace 1, and of a zone's
/// capacity. The blocks have 4 KiB, and there are 8 zones.
const ZONE: u64 = 64;
const CAPACITY: u64 = 60;

/// A zoned namespace, one without zones, and a zoned one with other zones.
static INFO: LazyLock<DeviceInfo> = LazyLock::new(|| {
    let zoned = |zones, size, capacity| ZonedInfo {
        zones,
        zone_size_lbas: size,
        zone_capacity_lbas: capacity,
        max_active: None,
        max_open: None,
        read_across_zones: true,
        descriptor_extension_bytes: 0,
        zrwa: None,
    };
    let namespace = |lba_bytes, size_lbas, zoned| NamespaceInfo {
        placements: None,
        lba_bytes,
        size_lbas,
        zoned,
        copy: None,
    };
    DeviceInfo {
        model: "none".to_owned(),
        namespaces: vec![
            namespace(4096, 8 * ZONE, Some(zoned(8, ZONE, CAPACITY))),
            namespace(512, 500, None),
            namespace(512, 5 * 100, Some(zoned(5, 100, 100))),
        ],
        max_transfer_bytes: 128 << 10,
        max_append_bytes: 64 << 10,
        has_volatile_cache: false,
    }
});

const NS: fn(u32) -> NamespaceId = NamespaceId;

fn read(slba: u64, nlb: u32) -> Command {
    let slba = Lba(slba);
    Command::new(Op::Read { slba, nlb })
}

fn write(slba: u64, nlb: u32) -> Command {
    let slba = Lba(slba);
    Command::new(Op::Write { slba, nlb })
}

fn append(zslba: u64, nlb: u32) -> Command {
    let zslba = Lba(zslba);
    Command::new(Op::Append { zslba, nlb })
}

fn send(action: ZoneSendAction, slba: u64) -> Command {
    Command::new(Op::ZoneSend {
        slba: Lba(slba),
        action,
        select_all: false,
    })
}

fn reset(zone: u64) -> Command {
    send(ZoneSendAction::RESET, zone * ZONE)
}

fn finish(zone: u64) -> Command {
    send(ZoneSendAction::FINISH, zone * ZONE)
}

/// A scheduler, with requests numbered in the order of insertion.
struct Bench {
    scheduler: Box<dyn Scheduler>,
    inserted: u32,
}

impl Bench {
    fn new(spec: &SchedulerSpec) -> Self {
        Self {
            scheduler: spec.build(&INFO).expect("the settings are in range"),
            inserted: 0,
        }
    }

    fn insert(&mut self, now: Nanos, command: Command) -> u32 {
        let id = self.inserted;
        self.inserted += 1;
        self.scheduler.insert(now, RequestId(id), command);
        id
    }

    fn insert_all<const N: usize>(&mut self, now: Nanos, commands: [Command; N]) {
        for command in commands {
            self.insert(now, command);
        }
    }

    /// What goes next, with the numbers of its requests.
    fn next(&mut self, now: Nanos) -> Option<(Command, Vec<u32>)> {
        let mut carried = Vec::new();
        let command = self.scheduler.dispatch(now, &mut carried)?;
        Some((command, carried.into_iter().map(|id| id.0).collect()))
    }

    /// Numbers of the requests of each command that goes now.
    fn go(&mut self, now: Nanos) -> Vec<Vec<u32>> {
        std::iter::from_fn(|| self.next(now))
            .map(|(_, carried)| carried)
            .collect()
    }

    fn completed(&mut self, now: Nanos, command: Command) {
        self.scheduler.completed(now, &command);
    }

    fn drain(&mut self) -> Vec<(RequestId, Command)> {
        let mut waiting = Vec::new();
        self.scheduler.drain(&mut waiting);
        waiting
    }
}
