//! Stores: a drawn drive that loses power at every kind of moment, and store
//! files that are damaged.
//!
//! The drive keeps its contents in a medium that remembers each step. After a
//! drawn sequence of commands, the medium is taken back to a drawn step, of
//! which a part was done, and a drive is made of it. What must hold: every zone
//! is in a state that it was in, not before the last that its host was told of,
//! and not after what had begun; with all data of that state and no other. In
//! some runs the medium is full for a while: writes that do not fit fail and have
//! written nothing. Then the drive goes on, and the same again; at last bits are
//! flipped, which must give an error or a drive.

mod history;
mod player;
mod tape;

use zonelab_ssd::config::{DataStore, DriveConfig, LogConfig, NamespaceConfig, NamespaceKind};
use zonelab_ssd::profile;
use zonelab_target::controller::formatted;

use crate::draw::Draw;
use crate::drive::draw_config;
use player::Player;
use tape::{Image, Tape};

/// The target.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let mut draw = Draw::new(data);
    let config = config(&mut draw);
    let mut tape = Tape::default();
    let options = zonelab_store::Options {
        has_checksums: draw.flag(),
    };
    zonelab_store::create(&mut tape, &config, options).expect("the tape takes everything");
    let mut image = tape.now();
    for _ in 0..draw.int(1..=2_u8) {
        image = session(&mut draw, &config, image);
    }
    for _ in 0..draw.int(1..=3_u8) {
        image.flip(|below| draw.int(0..=below - 1));
    }
    // What is refused has a reason; what is not is a drive.
    match zonelab_store::open(Tape::new(image), &config) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok((store, found)) => {
            if let Some(config) = formatted(&config, found.lba_bytes)
                && let Ok(drive) = zonelab_ssd::Drive::stored(&config, &found.kept, Box::new(store))
            {
                drive.assert_invariants();
            }
        }
    }
}

/// Opens the store in an image, uses it, and gives what a loss of power left.
fn session(draw: &mut Draw<'_>, config: &DriveConfig, image: Image) -> Image {
    let tape = Tape::new(image);
    let mut player = Player::open(config, &tape);
    if draw.one_in(4) {
        tape.fill_up(draw.int(0..=200), draw.int(0..=5000), draw.int(1..=40));
    }
    player.play(draw);
    let steps = if player.has_failed() || draw.one_in(4) {
        tape.len()
    } else {
        draw.int(0..=tape.len())
    };
    let left = if player.has_failed() {
        tape.now()
    } else {
        tape.at(steps, draw.int(0..=1000))
    };
    let copy = Tape::new(left);
    player.check(config, &copy, steps);
    copy.now()
}

/// A drive that keeps data, with conventional namespaces now and then.
fn config(draw: &mut Draw<'_>) -> DriveConfig {
    let mut config = draw_config(draw, true);
    config.data = DataStore::Memory;
    let log_zones = NamespaceConfig::SPARE_ZONES_MIN + draw.int(1..=2);
    if draw.flag() && config.zones.count > log_zones {
        let mut changed = config.clone();
        let whole = NamespaceConfig::whole(&config.zones);
        let zoned = NamespaceConfig {
            zones: config.zones.count - log_zones,
            max_active: None,
            max_open: None,
            ..whole
        };
        let log = NamespaceConfig {
            kind: NamespaceKind::Conventional(LogConfig::new(NamespaceConfig::SPARE_ZONES_MIN)),
            zones: log_zones,
            ..zoned
        };
        (changed.zones.max_active, changed.zones.max_open) = (None, None);
        changed.namespaces = vec![log, zoned];
        if profile::check(&changed).is_ok() {
            config = changed;
        }
    }
    config
}
