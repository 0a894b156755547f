//! The process or the machine ends at any moment: what POSIX allows to be left of a file then.
//!
//! A medium logs every write, punch and synchronisation of the store, below its last line. After
//! drawn steps of it, what is left is drawn: all of it if the process ended; if the machine did,
//! everything up to the last synchronisation that completed, and of what came later any sectors
//! (512 bytes or 4 KiB) of any writes and punches. It is opened by the code that `serve` uses and
//! compared with what a host knows: what was told must be there, or after an end of the machine
//! what a completed Flush covers; and a zone or block is nothing that it was not since then.
//!
//! `ZONELAB_POWER_CUTS=N` looks at N states that machines left instead of 10,000, and at as many
//! of processes; `ZONELAB_POWER_CUT_SEED=SEED` starts with another history.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

mod at_work;

use std::sync::Mutex;

use zonelab_device::{CopyLimits, Lba, Nanos, Op, ZoneId};
use zonelab_ssd::config::{
    BufferRelease, DataStore, DriveConfig, FillExtent, FinishConfig, LogConfig, MappingConfig,
    NamespaceConfig, NamespaceKind, Placement, WriteBufferConfig, ZrwaConfig,
};
use zonelab_ssd::{Drive, profile};
use zonelab_store::{Options, create, open};

use at_work::{Host, Known, Met, look, marked, run};
use zonelab_oracle::disk::{Disk, Numbers};
use zonelab_oracle::ends::{End, Start, Work, number, session};

/// Points of a session at which everything ends.
const POINTS: u64 = 25;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Zoned,
    Conventional,
    /// The same, mapped by several blocks.
    Units,
    RandomWriteAreas,
    Thin,
}

fn config(kind: Kind, is_timed: bool) -> DriveConfig {
    let mut config = profile::builtin("small-zones").unwrap().config;
    if !is_timed {
        config = profile::untimed(&config);
    }
    config.copy = Some(CopyLimits {
        max_ranges: 1,
        max_range_lbas: 8,
        max_lbas: 8,
    });
    config.data = DataStore::Memory;
    config.zones.count = 16;
    config.zones.max_active = Some(6);
    config.zones.max_open = Some(6);
    match kind {
        // Longer than a sector: a slot can be torn.
        Kind::Zoned => config.zones.descriptor_extension_bytes = 1024,
        Kind::Conventional | Kind::Units => {
            let whole = NamespaceConfig::whole(&config.zones);
            let zoned = NamespaceConfig { zones: 9, ..whole };
            let log = NamespaceConfig {
                kind: NamespaceKind::Conventional(LogConfig {
                    mapping_unit_lbas: if kind == Kind::Units { 4 } else { 1 },
                    ..LogConfig::new(3)
                }),
                zones: 7,
                max_active: None,
                max_open: None,
            };
            config.namespaces = vec![zoned, log];
            // Small, so that they are collected.
            config.zones.capacity_lbas = 32;
        }
        Kind::RandomWriteAreas => {
            config.write_buffer = Some(WriteBufferConfig {
                size_bytes: 4 << 20,
                power_loss_protection: true,
                release: BufferRelease::Program,
                drain_bytes_per_s: None,
                turn_bytes: None,
                placement: Placement::LeastWork,
            });
            config.zones.zrwa = Some(ZrwaConfig {
                size_lbas: 16,
                flush_granularity_lbas: 4,
                max_areas: None,
                explicit_flush: true,
            });
        }
        Kind::Thin => {
            config.geometry.pages_per_block = 32;
            config.mapping = MappingConfig::Chunk {
                chunk_blocks: 2,
                physical_zones: 8,
            };
            config.allocation.thin = true;
            config.zones.max_active = None;
            config.zones.max_open = None;
            config.finish = FinishConfig::Fill {
                granularity_bytes: 256 << 10,
                pause_ns: Nanos::ZERO,
                yield_ns: None,
                buffered: false,
                takes_core: false,
                extent: FillExtent::Elements,
            };
        }
    }
    profile::check(&config).unwrap();
    config
}

fn drive_on(disk: &Disk, config: &DriveConfig) -> (Drive, bool) {
    let (store, found) = open(disk.clone(), config).unwrap_or_else(|error| panic!("{error}"));
    let drive = Drive::stored(config, &found.kept, Box::new(store));
    let mut drive = drive.unwrap_or_else(|error| panic!("{error}"));
    drive.keep().unwrap();
    (drive, found.is_rolled_back)
}

/// A drive of some kind, and a host that works on it.
struct Case {
    config: DriveConfig,
    turns: u64,
}

impl Work for Case {
    type Host = Host;
    type Known = Known;

    fn work(&self, disk: &Disk, start: &Start<Self>, look: &mut dyn FnMut(&Host)) -> Host {
        let mut numbers = Numbers(start.seed);
        let mut host = Host::new(drive_on(disk, &self.config).0, start.before.as_ref());
        look(&host);
        for _ in 0..self.turns {
            for _ in 0..numbers.below(4) {
                host.ask(&mut numbers);
            }
            // A turn of the server can be long: much happens in it one after the other.
            let span = [5_000, 200_000, 4_000_000][numbers.below(3) as usize];
            host.turn(Nanos(numbers.below(span)));
            look(&host);
            host.land();
        }
        host
    }

    fn known(&self, host: &Host) -> Known {
        host.known()
    }

    fn check(&self, disk: &Disk, end: End, known: &Known) {
        let (mut drive, _) = drive_on(disk, &self.config);
        drive.assert_invariants();
        known.check(end, &look(&mut drive));
    }
}

/// One history, ends of it, and another history on what one of them left. Returns how many
/// ends were looked at, and what the hosts met.
fn history(kind: Kind, seed: u64) -> (u64, Met) {
    let mut numbers = Numbers(seed);
    let case = Case {
        config: config(kind, numbers.one_in(2)),
        turns: 40 + numbers.below(60),
    };
    let mut disk = Disk::default();
    let options = Options {
        has_checksums: !numbers.one_in(4),
    };
    create(&mut disk, &case.config, options).unwrap();
    let start = Start {
        image: disk.inner().now.clone(),
        boot: 1,
        before: None,
        seed,
    };
    let points = number("ZONELAB_KILL_POINTS").unwrap_or(POINTS);
    let first = session(&case, &start, points);
    let second = session(&case, &first.left, points);
    let met = first.host.met().and(second.host.met());
    (first.ends + second.ends, met)
}

/// The next history, and the ends of all before with what their hosts met.
#[derive(Default)]
struct Progress {
    next: u64,
    ends: u64,
    met: Met,
}

#[test]
fn zones_and_blocks_survive_every_end_of_their_server() {
    let kinds = [
        Kind::Zoned,
        Kind::Conventional,
        Kind::Units,
        Kind::RandomWriteAreas,
        Kind::Thin,
    ];
    let kind_of = |seed: u64| kinds[(seed % kinds.len() as u64) as usize];
    let first = number("ZONELAB_POWER_CUT_SEED").unwrap_or(0);
    let wanted = 2 * number("ZONELAB_POWER_CUTS").unwrap_or(10_000);
    let progress = Mutex::new(Progress::default());
    let work = || {
        loop {
            let seed = {
                let mut progress = progress.lock().unwrap();
                if progress.ends >= wanted {
                    return;
                }
                progress.next += 1;
                first + progress.next - 1
            };
            match std::panic::catch_unwind(|| history(kind_of(seed), seed)) {
                Ok((ends, met)) => {
                    let mut progress = progress.lock().unwrap();
                    progress.ends += ends;
                    progress.met = progress.met.and(met);
                }
                Err(why) => {
                    eprintln!(
                        "replay: ZONELAB_POWER_CUT_SEED={seed} ZONELAB_POWER_CUTS=1 cargo test -p zonelab-store \
                         zones_and_blocks_survive_every_end_of_their_server"
                    );
                    progress.lock().unwrap().ends = wanted;
                    std::panic::resume_unwind(why);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        // A replay is one history.
        (0..wanted.min(4) / 2).for_each(|_| _ = scope.spawn(work));
    });
    let progress = progress.into_inner().unwrap();
    let met = progress.met;
    eprintln!("{} ends of processes and machines; {met:?}", progress.ends);
    let is_all = met.copies > 0 && met.commits > 0 && met.collected_bytes > 0;
    assert!(
        is_all || first > 0,
        "hosts and drives did not do all that there is"
    );
}

/// What a kill leaves counts; what was not synchronised before another start of
/// the machine does not, even if all of it is there.
#[test]
fn only_another_start_of_the_machine_gives_up_what_no_flush_covers() {
    let config = config(Kind::Zoned, false);
    let mut disk = Disk::default();
    create(&mut disk, &config, Options::default()).unwrap();
    let disk = Disk::of(disk.inner().now.clone(), 1);
    let (mut drive, _) = drive_on(&disk, &config);
    for (stamp, covered) in [(1, true), (2, false)] {
        let slba = Lba(2 * u64::from(stamp) - 2);
        let (data, _) = marked(stamp, slba.0, 2, config.lba_bytes);
        let op = Op::Write { slba, nlb: 2 };
        assert!(run(&mut drive, 1, op, Some(data)).0.is_success());
        if covered {
            assert!(run(&mut drive, 1, Op::Flush, None).0.is_success());
        }
    }
    drop(drive);
    let image = disk.inner().now.clone();
    for (boot, host_lbas, expected) in [(1, 4, [1, 1, 2, 2]), (2, 2, [1, 1, 0, 0])] {
        let (mut drive, is_rolled_back) = drive_on(&Disk::of(image.clone(), boot), &config);
        assert_eq!(is_rolled_back, boot == 2);
        assert_eq!(drive.zones().host_lbas(ZoneId(0)), host_lbas);
        let (zones, _) = look(&mut drive);
        let stamps = zones[0].marks[..4].iter().map(|(stamp, _)| *stamp);
        assert_eq!(stamps.collect::<Vec<_>>(), expected);
    }
}
