//! The process, or the machine, ends after any step of the medium under a store with the
//! translation layer: the layer can be mounted, and what was flushed is there.

use zonelab_device::Nanos;
use zonelab_ftl::Placement;
use zonelab_host::Rng;
use zonelab_live::layer::LayerSettings;
use zonelab_oracle::disk::Disk;
use zonelab_oracle::ends::{End, Start, Work, number, session};
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
}

impl Work for Case {
    type Host = Host;
    type Known = Vec<Block>;

    fn work(&self, disk: &Disk, start: &Start<Self>, look: &mut dyn FnMut(&Host)) -> Host {
        let mut rng = Rng::new(start.seed, 1);
        let mut host = self.mounted(disk);
        if let Some((_, known)) = &start.before {
            host.blocks.clone_from(known);
        }
        look(&host);
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
            look(&host);
            done.drain(..).for_each(|completion| host.land(completion));
        }
        host
    }

    fn known(&self, host: &Host) -> Vec<Block> {
        known(host)
    }

    /// The layer promises the same after both ends.
    fn check(&self, disk: &Disk, _: End, known: &Vec<Block>) {
        let mut host = self.mounted(disk);
        assert_eq!(host.blocks.len(), known.len());
        host.blocks.clone_from(known);
        host.check();
    }
}

#[test]
fn the_layer_survives_every_end_of_its_server() {
    let first = number("ZONELAB_KILL_SEED").unwrap_or(1);
    let (mut ends, mut moved) = (0, 0);
    for seed in first..first + number("ZONELAB_KILL_HISTORIES").unwrap_or(HISTORIES) {
        eprintln!(
            "replay: ZONELAB_KILL_SEED={seed} ZONELAB_KILL_HISTORIES=1 cargo test -p zonelab-live \
             the_layer_survives_every_end_of_its_server"
        );
        let case = Case::drawn(&mut Rng::new(seed, 0));
        let mut disk = Disk::default();
        create(&mut disk, &case.config, Options::default()).expect("the medium takes everything");
        let start = Start {
            image: disk.inner().now.clone(),
            boot: 1,
            before: None,
            seed,
        };
        let points = number("ZONELAB_KILL_POINTS").unwrap_or(POINTS);
        let fresh = session(&case, &start, points);
        let mounted = session(&case, &fresh.left, points);
        ends += fresh.ends + mounted.ends;
        for host in [fresh.host, mounted.host] {
            moved += host.layer.state().metrics.moved_blocks;
        }
    }
    eprintln!("{ends} ends of processes and machines, {moved} blocks moved by the collector");
    assert!(moved > 0 || first > 1, "no end met the collector at work");
}
