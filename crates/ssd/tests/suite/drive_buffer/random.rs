//! The buffer under random commands, beside a model of what it holds.

use super::bookkeeping::with_bookkeeping;
use super::*;

/// Pages, protection, and the way out.
fn buffers() -> impl Strategy<Value = (u64, bool, WayOut)> {
    let way_out = (
        any::<bool>(),
        prop::option::of(10_000_000..4_000_000_000_u64),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    let way_out = way_out.prop_map(
        |(early, drain_bytes_per_s, fills, quiesce, by_work)| WayOut {
            early,
            drain_bytes_per_s,
            fills,
            quiesce,
            by_work,
        },
    );
    (1..40_u64, any::<bool>(), way_out)
}

/// How blocks leave a buffer.
#[derive(Clone, Copy, Debug)]
struct WayOut {
    early: bool,
    drain_bytes_per_s: Option<u64>,
    /// The buffer chooses dies.
    by_work: bool,
    /// Finishes fill through the buffer.
    fills: bool,
    /// Resets wait for programs.
    quiesce: bool,
}

impl WayOut {
    /// Of the buffer of `config`, as far as its flash allows it.
    fn apply(self, config: &mut DriveConfig) {
        if let Some(buffer) = &mut config.write_buffer {
            buffer.drain_bytes_per_s = self.drain_bytes_per_s;
            if self.by_work {
                buffer.placement = Placement::LeastWork;
            }
            if self.early && config.media.arbitration == ChannelArbitration::Ready {
                buffer.release = BufferRelease::Transfer;
            }
        }
        let has_cores = config.front_end.cores > 0;
        if let FinishConfig::Fill {
            buffered,
            takes_core,
            ..
        } = &mut config.finish
        {
            *buffered = self.fills;
            *takes_core = self.fills && has_cores && self.early;
        }
        if let Some(books) = &mut config.reset.bookkeeping {
            books.quiesce = self.quiesce;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    /// Whatever a host does, every command ends as without a buffer, the buffer
    /// never holds more than fits, and a flush brings everything to the flash.
    #[test]
    fn every_block_gets_to_the_flash(
        config in drives(),
        front_end in prop::option::of(front_ends()),
        (pages, is_protected, way_out) in buffers(),
        slices in prop::option::of(1..4_u32),
        stream in streams(1..100),
    ) {
        let mut config = config;
        if let Some(front_end) = front_end {
            config.front_end = front_end;
        }
        let mut plain = Rig::new(&config);
        let size_bytes = pages * u64::from(config.geometry.page_bytes);
        config.write_buffer = Some(WriteBufferConfig {
            size_bytes,
            power_loss_protection: is_protected,
            release: BufferRelease::Program,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Placement::InOrder,
        });
        if let Some(slices) = slices {
            config = with_bookkeeping(config, slices);
        }
        way_out.apply(&mut config);
        let mut rig = Rig::new(&config);
        for step in stream {
            match (step, step.op(&rig)) {
                (_, Some(op)) => {
                    rig.submit(op);
                    plain.submit(op);
                }
                (Step::Pause(ns), None) => {
                    let until = rig.now + Nanos(ns);
                    while let Some(at) = rig.drive.next_event().filter(|at| *at <= until) {
                        rig.run_to(at);
                        prop_assert!(rig.drive.buffered_bytes() <= size_bytes);
                    }
                    rig.run_to(until);
                    plain.run_to(until);
                }
                (_, None) => {
                    rig.settle();
                    let now = rig.now.max(plain.now);
                    rig.run_to(now);
                    plain.run_to(now);
                }
            }
            prop_assert!(rig.drive.buffered_bytes() <= size_bytes);
        }
        rig.settle();
        plain.settle();
        for (ours, theirs) in rig.done.iter().flatten().zip(plain.done.iter().flatten()) {
            prop_assert_eq!((ours.status, ours.result), (theirs.status, theirs.result));
        }
        rig.exec(Op::Flush);
        rig.settle();
        let ours = rig.drive.totals();
        prop_assert_eq!(ours.host_write_bytes, plain.drive.totals().host_write_bytes);
        let page_lbas = u64::from(config.geometry.page_bytes / config.lba_bytes);
        for zone in (0..config.zones.count).map(ZoneId) {
            let written = rig.drive.zones().host_lbas(zone).div_ceil(page_lbas);
            let physical = rig.drive.flash().mapping().physical(zone);
            let programmed = physical.map_or(0, |p| rig.drive.flash().zone_state(p).0);
            prop_assert!(is_protected || written <= u64::from(programmed), "{:?}", zone);
        }
        prop_assert!(is_protected || rig.drive.buffered_bytes() == 0);
        while rig.next() {}
    }

    /// A loss of power leaves what was flushed, or protected, and takes only
    /// from the end of zones; the drive goes on as one without losses.
    #[test]
    fn a_loss_of_power_takes_no_more_than_it_may(
        config in drives(),
        (pages, is_protected, way_out) in buffers(),
        slices in prop::option::of(1..4_u32),
        stream in streams(1..60),
        seed in any::<u64>(),
        off in 0..2_000_000_u64,
    ) {
        let mut config = config;
        config.write_buffer = Some(WriteBufferConfig {
            size_bytes: pages * u64::from(config.geometry.page_bytes),
            power_loss_protection: is_protected,
            release: BufferRelease::Program,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Placement::InOrder,
        });
        if let Some(slices) = slices {
            config = with_bookkeeping(config, slices);
        }
        way_out.apply(&mut config);
        let mut rig = Rig::new(&config);
        for step in stream {
            match step.op(&rig) {
                Some(op) => {
                    rig.submit(op);
                }
                None => rig.run_for(Nanos(400_000)),
            }
        }
        let zones = || (0..config.zones.count).map(ZoneId);
        let flushed: Vec<u64> = zones().map(|zone| acknowledged(&rig, zone)).collect();
        rig.exec(Op::Flush);
        let protected: Vec<u64> = zones().map(|zone| acknowledged(&rig, zone)).collect();
        rig.run_for(Nanos(off));
        let loss = rig.drive.power_cut(rig.now, Nanos::ZERO, seed);
        let lost: Vec<Tag> = loss.lost.iter().map(|lost| lost.tag).collect();
        let safe = if is_protected { protected } else { flushed };
        for (zone, safe) in zones().zip(safe) {
            let left = rig.drive.zones().host_lbas(zone);
            prop_assert!(left >= safe, "{:?}: {} of {}", zone, left, safe);
        }
        rig.drive.zones().assert_invariants();
        prop_assert_eq!(rig.drive.buffered_bytes(), 0);
        prop_assert_eq!(rig.drive.in_flight(), 0);
        prop_assert!(lost.len() <= rig.done.len());
        // Every zone can be used to its end.
        rig.run_to(loss.ready_at);
        let mut after = Rig::new(&config);
        after.drive = rig.drive;
        after.now = loss.ready_at;
        for zone in zones() {
            let op = after.reset(zone.0);
            after.exec(op);
        }
        for zone in zones() {
            let op = after.write(zone.0, config.zones.capacity_lbas as u32);
            after.time(op);
        }
        after.settle();
        prop_assert_eq!(after.drive.buffered_bytes(), 0);
    }
}

/// Blocks of a zone whose writes have certainly completed: all if no command is
/// in flight.
fn acknowledged(rig: &Rig, zone: ZoneId) -> u64 {
    if rig.done.iter().any(Option::is_none) {
        return 0;
    }
    rig.drive.zones().host_lbas(zone)
}
