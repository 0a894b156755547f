//! Zones of the log whose flash fails.

use super::*;
use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneState;

/// Zones that can fail before nothing can be written.
const MORE: u32 = 3;

/// The drive of [`config`] with more spare zones than collection needs.
pub(super) fn with_more_spare() -> DriveConfig {
    let mut config = config();
    config.namespaces[1] = conventional(LOG + MORE, SPARE + MORE);
    config.zones.count = 2 + LOG + MORE;
    config.geometry.blocks_per_plane = config.geometry.blocks_per_plane.max(config.zones.count + 1);
    config
}

/// The flash of one of the zones of the log fails, counted from its first on and round.
pub(super) fn fail(rig: &mut Rig, zone: u32) {
    let zones = rig.drive.config().zones_of(FLAT).expect("it is there");
    let zone = ZoneId(zones.start + zone % (zones.end - zones.start));
    let action = Control::FailZone {
        zone,
        to: ZoneState::READ_ONLY,
    };
    let failed = rig.drive.control(rig.now, &action);
    assert_eq!(failed, Ok(()), "{zone:?}");
    // What was due until then has completed in there.
    rig.run_to(rig.now);
}

fn overwrite(rig: &mut Rig, rounds: u64) -> Vec<u8> {
    let mut expected = vec![0; BLOCKS as usize];
    for round in 0..rounds * BLOCKS / 4 {
        let byte = (round % 250) as u8 + 1;
        let slba = round * 7 % (BLOCKS / 4) * 4;
        let done = exec(rig, write(slba, 4), blocks(byte, 4));
        assert_eq!(done.status, Status::SUCCESS, "round {round}");
        expected[slba as usize..][..4].fill(byte);
    }
    expected
}

#[test]
fn spare_zones_are_used_up_one_by_one() {
    let mut rig = Rig::new(&with_more_spare());
    let health = |rig: &Rig| {
        let health = rig.drive.log_health(FLAT).expect("it has a log");
        (health.spare_zones, health.spare_left, health.is_read_only)
    };
    let mut expected = overwrite(&mut rig, 1);
    for failed in 0..=MORE {
        let left = SPARE + MORE - failed;
        assert_eq!(health(&rig), (SPARE + MORE, left, false));
        let percent = rig.drive.log_health(FLAT).map(|of| of.available_percent());
        // One more than it outlives.
        assert_eq!(
            percent,
            Some((100 * (MORE + 1 - failed) / (MORE + 1)) as u8)
        );
        assert_eq!(bytes(&mut rig, 0, BLOCKS), expected);
        expected = overwrite(&mut rig, 3);
        assert_eq!(bytes(&mut rig, 0, BLOCKS), expected);
        fail(&mut rig, 4 * failed + 1);
        rig.settle();
        rig.drive.assert_invariants();
    }
    assert_eq!(health(&rig), (SPARE + MORE, SPARE - 1, true));
    assert!(!rig.drive.is_read_only(), "zones of hosts can be written");
    let slba = Lba(0);
    let protected = Status::NAMESPACE_WRITE_PROTECTED;
    assert_eq!(exec(&mut rig, write(0, 1), blocks(1, 1)).status, protected);
    let zeroes = Op::WriteZeroes { slba, nlb: 1 };
    assert_eq!(exec(&mut rig, zeroes, None).status, protected);
    assert_eq!(exec(&mut rig, Op::Flush, None).status, Status::SUCCESS);
    assert_eq!(bytes(&mut rig, 0, BLOCKS), expected, "all can be read");
    // It stays so.
    let saved = snapshot::save(&rig.drive).expect("it is idle");
    let drive = snapshot::restore(&with_more_spare(), &saved).expect("it is of this drive");
    rig.restart(drive);
    assert_eq!(health(&rig), (SPARE + MORE, SPARE - 1, true));
    assert_eq!(bytes(&mut rig, 0, BLOCKS), expected);
    assert_eq!(exec(&mut rig, write(0, 1), blocks(1, 1)).status, protected);
}

#[test]
fn what_a_zone_held_that_has_failed_is_moved() {
    let mut rig = Rig::new(&with_more_spare());
    let expected = overwrite(&mut rig, 1);
    let before = rig.drive.totals().collect_program_bytes;
    // All of the first zone holds something: nobody has overwritten it.
    fail(&mut rig, 0);
    rig.settle();
    let moved = rig.drive.totals().collect_program_bytes - before;
    assert_eq!(moved, ZONE * LBA as u64);
    assert_eq!(bytes(&mut rig, 0, BLOCKS), expected);
    // A zone fails once, and no zone of a log disappears with its data.
    fail(&mut rig, 0);
    let offline = Control::FailZone {
        zone: ZoneId(3),
        to: ZoneState::OFFLINE,
    };
    let refused = rig.drive.control(rig.now, &offline);
    assert!(matches!(refused, Err(ControlError::Conventional { .. })));
    let health = rig.drive.log_health(FLAT).expect("it has a log");
    assert_eq!(health.spare_left, SPARE + MORE - 1);
    assert_eq!(rig.drive.log_health(ZONED), None);
}
