//! The process, or the machine, ends after any step of the medium under a store with the
//! translation layer: the layer can be mounted, and what was flushed is there.

use std::panic::{AssertUnwindSafe, catch_unwind};

use zonelab_device::Nanos;
use zonelab_ftl::Placement;
use zonelab_host::Rng;
use zonelab_live::layer::LayerSettings;
use zonelab_oracle::disk::{Disk, Image};
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::{Drive, profile};
use zonelab_store::{Options, create, open};

use zonelab_target::controller::Layer as _;

use super::layer::{Asked, Block, Host, NEVER, config, settings};

/// Histories that are tried, of two sessions each.
const HISTORIES: u64 = 24;
/// Points of each session at which everything ends.
const POINTS: u64 = 40;
/// Turns of a session.
const TURNS: u32 = 150;
/// Names the start of the machine.
const BOOT: u8 = 1;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The drive of a store as `serve` opens it.
fn drive_on(disk: &Disk, config: &DriveConfig) -> FaultyDrive {
    let (store, found) = open(disk.clone(), config).expect("the store is whole");
    let drive = Drive::stored(config, &found.kept, Box::new(store));
    drive.expect("it is of this drive").into()
}

/// What a host can rely on when everything ends now: what is on its way may come about.
fn known(host: &Host) -> Vec<Block> {
    let mut blocks = host.blocks.clone();
    for asked in host.asked.values() {
        if let Asked::Write {
            first,
            count,
            value,
        } = asked
        {
            let range = *first as usize..(*first + *count) as usize;
            for block in &mut blocks[range] {
                block.values.push((*value, NEVER));
            }
        }
    }
    blocks.iter_mut().for_each(Block::open);
    blocks
}

/// A drive and its layer.
struct Case {
    config: DriveConfig,
    settings: LayerSettings,
}

/// What a session found, and left.
#[derive(Default)]
struct Session {
    /// Points that were looked at.
    points: u64,
    /// What the end of the process at one of them left, and what the host knew.
    left: Option<(Image, Vec<Block>)>,
    /// Blocks that the collector moved.
    moved: u64,
}

impl Case {
    fn drawn(rng: &mut Rng) -> Self {
        let mut config = config(24 + rng.below(8) as u32);
        if rng.below(2) == 0 {
            config = profile::untimed(&config);
        }
        let mut settings = settings();
        settings.mount.placement =
            [Placement::Write, Placement::Append, Placement::SharedAppend][rng.below(3) as usize];
        settings.mount.map_share =
            [None, Some(0.05), Some(0.1), Some(0.5), Some(0.99)][rng.below(5) as usize];
        Self { config, settings }
    }

    fn mounted(&self, disk: &Disk) -> Host {
        Host::new(drive_on(disk, &self.config), self.settings.clone())
    }

    /// A host at work on what is on a medium: after each turn `looks` gets it before completions
    /// do.
    fn work(
        &self,
        disk: &Disk,
        known: Option<&[Block]>,
        seed: u64,
        mut looks: impl FnMut(&Host),
    ) -> Host {
        let mut rng = Rng::new(seed, 1);
        let mut host = self.mounted(disk);
        if let Some(known) = known {
            host.blocks = known.to_vec();
        }
        looks(&host);
        for _ in 0..TURNS {
            for _ in 0..rng.below(8) {
                if host.asked.len() < 24 {
                    host.ask(&mut rng);
                }
            }
            // A turn of the server can be long: much happens in it one after the other.
            let span = [5_000, 200_000, 4_000_000][rng.below(3) as usize];
            let to = host.now.saturating_add(Nanos(rng.below(span)));
            let mut done = Vec::new();
            host.layer.advance(&mut host.drive, to, &mut done);
            host.now = to;
            let kept = host.drive.drive_mut().keep();
            kept.expect("the medium takes everything");
            looks(&host);
            done.drain(..).for_each(|completion| host.land(completion));
        }
        host
    }

    /// Works on what is there, and looks at what is left at points of it.
    fn session(&self, start: &Image, known_before: Option<&[Block]>, seed: u64) -> Session {
        let mut steps = None;
        let trial = Disk::of(start.clone(), BOOT);
        self.work(&trial, known_before, seed, |_| {
            // What a first format leaves is nobody's.
            let from = if known_before.is_some() {
                0
            } else {
                trial.inner().steps
            };
            steps.get_or_insert(from);
        });
        let (from, to) = (steps.unwrap_or(0), trial.inner().steps);
        let disk = Disk::of(start.clone(), BOOT);
        let mut rng = Rng::new(seed, 2);
        {
            let mut inner = disk.inner();
            inner.draw = seed;
            let all = number("ZONELAB_KILL_POINTS").is_some_and(|points| points > to - from);
            inner.cuts = match all {
                true => (from + 1..=to).collect(),
                false => {
                    let points = number("ZONELAB_KILL_POINTS").unwrap_or(POINTS);
                    (0..points)
                        .map(|_| from + 1 + rng.below(to - from))
                        .collect()
                }
            };
        }
        let mut session = Session::default();
        let host = self.work(&disk, known_before, seed, |host| {
            let seen = std::mem::take(&mut disk.inner().seen);
            for left in seen {
                let known = known(host);
                let what = format!("seed {seed}, step {} of {to}", left.step);
                self.check(
                    left.by_machine,
                    BOOT + 1,
                    &known,
                    &format!("{what}, machine"),
                );
                self.check(left.by_process.clone(), BOOT, &known, &what);
                session.points += 2;
                if rng.below(8) == 0 || session.left.is_none() {
                    session.left = Some((left.by_process, known));
                }
            }
        });
        session.moved = host.layer.state().metrics.moved_blocks;
        session
    }

    /// What is left of a store holds what the host could rely on.
    fn check(&self, image: Image, boot: u8, known: &[Block], what: &str) {
        let disk = Disk::of(image, boot);
        let looked = catch_unwind(AssertUnwindSafe(|| {
            let mut host = self.mounted(&disk);
            assert_eq!(host.blocks.len(), known.len());
            host.blocks = known.to_vec();
            host.check();
        }));
        if looked.is_err() {
            panic!("{what}: see above");
        }
    }
}

#[test]
fn the_layer_survives_every_end_of_its_server() {
    let first = number("ZONELAB_KILL_SEED").unwrap_or(1);
    let (mut points, mut moved) = (0, 0);
    for seed in first..first + number("ZONELAB_KILL_HISTORIES").unwrap_or(HISTORIES) {
        eprintln!(
            "replay: ZONELAB_KILL_SEED={seed} ZONELAB_KILL_HISTORIES=1 cargo test -p zonelab-live \
             the_layer_survives_every_end_of_its_server"
        );
        let case = Case::drawn(&mut Rng::new(seed, 0));
        let mut disk = Disk::default();
        create(&mut disk, &case.config, Options::default()).expect("the medium takes everything");
        let start = disk.inner().now.clone();
        let fresh = case.session(&start, None, seed);
        let (left, known) = fresh.left.expect("there are points");
        let mounted = case.session(&left, Some(&known), seed);
        points += fresh.points + mounted.points;
        moved += fresh.moved + mounted.moved;
    }
    eprintln!("{points} ends of processes and machines, {moved} blocks moved by the collector");
    assert!(moved > 0 || first > 1, "no end met the collector at work");
}
