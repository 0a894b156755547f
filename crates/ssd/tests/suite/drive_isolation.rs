//! Zones on a part of the dies: what they share, and what they do not.

use crate::drive_support::{ERASE, PAGE, READ, Rig, WRITE, narrow, small, us};
use zonelab_device::Nanos;
use zonelab_ssd::config::DriveConfig;

/// One page of a full and of an empty zone of `group`, while zone 0 is reset,
/// and written, and read.
fn beside_zone_0(group: u32) -> (Nanos, Nanos) {
    let mut rig = Rig::new(&narrow());
    rig.precondition(0..16);
    rig.submit(rig.reset(0));
    for _ in 0..4 {
        let op = rig.write(0, 4 * PAGE);
        rig.submit(op);
    }
    rig.submit(rig.read(0, 0, 16 * PAGE));
    rig.run_for(us(1_000));
    let read = rig.submit(rig.read(group, 0, PAGE));
    let write = rig.submit(rig.write(16 + group, PAGE));
    rig.settle();
    (rig.wait(read).latency(), rig.wait(write).latency())
}

#[test]
fn zones_on_other_channels_do_not_notice() {
    for group in [1, 2, 3] {
        // On the channel, the page of the write waits for that of the read before it.
        assert_eq!(beside_zone_0(group), (READ, us(85 + 25 + 700)));
    }
}

#[test]
fn zones_on_the_same_die_wait() {
    let (read, write) = beside_zone_0(0);
    let busy = 8 * ERASE.0 + 16 * us(700).0;
    assert!(read.0 > busy - us(1_000).0, "{read}");
    assert!(write > read, "{write}");
}

/// Two dies of one channel share the channel and nothing else.
#[test]
fn zones_on_the_same_channel_wait_for_transfers_only() {
    let mut rig = Rig::new(&narrow());
    let first = rig.submit(rig.write(0, PAGE));
    let second = rig.submit(rig.write(4, PAGE));
    let third = rig.submit(rig.write(5, PAGE));
    rig.settle();
    assert_eq!(rig.wait(first).at, WRITE);
    assert_eq!(rig.wait(second).at, us(50 + 700));
    assert_eq!(rig.wait(third).at, WRITE);
}

#[test]
fn an_erasure_keeps_its_die_and_no_channel() {
    let mut rig = Rig::new(&narrow());
    rig.precondition(0..1);
    rig.precondition(4..5);
    let reset = rig.submit(rig.reset(0));
    let read = rig.submit(rig.read(4, 0, PAGE));
    rig.settle();
    assert_eq!(rig.wait(read).at, READ);
    assert_eq!(rig.wait(reset).at.0, 8 * ERASE.0);
}

/// `small` with 4 ways, whose zones span `channels` x `ways` dies.
fn spanning(channels: u32, ways: u32) -> DriveConfig {
    let mut config = narrow();
    config.zones.channels = channels;
    config.zones.ways = ways;
    config.zones.count = 4;
    config
}

/// Sixteen pages: how many dies and channels work for them follows from the span.
#[test]
fn a_zone_is_as_fast_as_the_dies_that_it_spans() {
    for (channels, ways, time) in [
        // One die programs them all.
        (1, 1, us(25 + 16 * 700)),
        (2, 1, us(25 + 8 * 700)),
        (4, 1, us(25 + 4 * 700)),
        // Four dies of one channel start one transfer after the other.
        (1, 4, us(4 * 25 + 4 * 700)),
        (2, 2, us(2 * 25 + 4 * 700)),
        (4, 4, us(4 * 25 + 700)),
    ] {
        let mut rig = Rig::new(&spanning(channels, ways));
        let op = rig.write(0, 16 * PAGE);
        assert_eq!(rig.time(op), time, "{channels} x {ways}");
        let layout = rig.drive.flash().layout();
        assert_eq!(layout.width(), channels * ways);
        assert_eq!(layout.groups(), 16 / (channels * ways));
    }
}

/// When writes of 16 pages to these zones end, all submitted at once.
fn side_by_side(zones: &[u32]) -> Vec<Nanos> {
    let mut config = spanning(2, 2);
    config.zones.count = 5;
    let mut rig = Rig::new(&config);
    for zone in zones {
        let op = rig.write(*zone, 16 * PAGE);
        rig.submit(op);
    }
    rig.settle();
    rig.done.iter().flatten().map(|done| done.at).collect()
}

#[test]
fn groups_work_side_by_side() {
    let alone = us(2 * 25 + 4 * 700);
    assert_eq!(side_by_side(&[0, 1]), [alone, alone]);
    // Group 2 is on other dies of the channels of group 0, each of which has
    // eight pages to move first.
    assert_eq!(side_by_side(&[0, 2]), [alone, alone + us(8 * 25)]);
    // Zone 4 is in group 0.
    assert_eq!(side_by_side(&[0, 4]), [alone, alone + us(4 * 700)]);
}

/// A whole-drive zone leaves nobody alone: the contrast.
#[test]
fn zones_that_span_the_drive_share_everything() {
    let mut rig = Rig::new(&small());
    rig.precondition(0..1);
    rig.submit(rig.reset(0));
    let write = rig.submit(rig.write(1, PAGE));
    rig.settle();
    assert_eq!(rig.wait(write).at, us(7_000 + 700));
}
