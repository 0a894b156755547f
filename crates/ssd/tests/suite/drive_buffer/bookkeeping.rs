//! What a reset costs, and the pause of the drain that comes with it.

use super::*;

pub(super) fn with_bookkeeping(mut config: DriveConfig, slices: u32) -> DriveConfig {
    config.reset.bookkeeping = Some(Bookkeeping {
        base_ns: us(100),
        full_zone_ns: us(3_200),
        drain_pause_ns: us(1_600),
        slices,
        open_zone_ns: Nanos::ZERO,
        quiesce: false,
    });
    config
}

/// 100 us, and 100 us for each of the 32 pages that the host wrote.
#[test]
fn a_reset_costs_bookkeeping_for_what_the_host_wrote() {
    let mut config = with_bookkeeping(buffered(small(), 64), 1);
    config.reset.erase = EraseWhen::Background;
    let mut rig = Rig::new(&config);
    for (pages, is_finished) in [(0, true), (1, true), (1, false), (16, false), (32, false)] {
        if pages > 0 {
            rig.write_pages(0, pages);
        }
        if is_finished {
            let op = rig.finish(0);
            rig.exec(op);
        }
        rig.settle();
        let op = rig.reset(0);
        assert_eq!(rig.time(op), us(100 + 100 * u64::from(pages)));
        rig.settle();
    }
    // One zone after another.
    rig.write_pages(0, 1);
    rig.write_pages(1, 1);
    rig.settle();
    let tags = [0, 1].map(|zone| rig.submit(rig.reset(zone)));
    rig.settle();
    let latency = |tag: usize| rig.done[tag].as_ref().map(|done| done.latency());
    assert_eq!(tags.map(latency), [Some(us(200)), Some(us(400))]);
}

/// A full zone takes 3,300 us, of which 1,600 in two pauses: 0 to 800 and
/// 1,650 to 2,450.
#[test]
fn bookkeeping_pauses_the_drain_in_slices() {
    let mut config = with_bookkeeping(buffered(small(), 1), 2);
    config.reset.erase = EraseWhen::FirstZoneWrite;
    let mut rig = Rig::new(&config);
    rig.precondition(0..1);
    let op = rig.reset(0);
    let reset = rig.submit(op);
    let writes: Vec<usize> = (0..4).map(|_| submit_write(&mut rig, 1, PAGE)).collect();
    rig.settle();
    let at = |tag: usize| completed_at(&rig, tag);
    assert_eq!(at(reset), us(3_300));
    // A program under way at the second pause goes on: 1,525 to 2,250.
    let times = [0, 800 + 725, 800 + 2 * 725, 2_450 + 725].map(us);
    assert_eq!(writes.iter().map(|tag| at(*tag)).collect::<Vec<_>>(), times);
}

/// What waits for the end of a pause is no more than buffered.
#[test]
fn a_reset_and_a_loss_of_power_during_a_pause() {
    for is_protected in [false, true] {
        let mut config = with_bookkeeping(buffered(keeping(small()), 8), 1);
        config.reset.erase = EraseWhen::FirstZoneWrite;
        config.write_buffer.as_mut().unwrap().power_loss_protection = is_protected;
        let mut rig = Rig::new(&config);
        rig.write_pages(0, 32);
        rig.settle();
        for op in [rig.reset(0), rig.write(1, PAGE), rig.write(2, PAGE + 1)] {
            rig.submit(op);
        }
        let op = rig.reset(1);
        rig.run_for(us(10));
        rig.submit(op);
        rig.run_for(us(10));
        let before = rig.drive.totals().host_program_bytes;
        rig.drive.power_cut(rig.now, Nanos::ZERO, 1);
        let left = if is_protected { 5 } else { 0 };
        assert_eq!(rig.drive.zones().written_lbas(ZoneId(2)), left);
        assert_eq!(rig.drive.zones().written_lbas(ZoneId(1)), 0);
        let saved = rig.drive.totals().host_program_bytes - before;
        assert_eq!(saved, if is_protected { 2 * PAGE_BYTES } else { 0 });
    }
}
