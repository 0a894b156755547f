//! The cache under random commands and losses of power, beside the oracle of blocks.

use super::*;
use crate::drive_support::random::{Step, bodies, designs, drive, front_ends, streams};
use zonelab_oracle::blocks::Blocks;

/// What is drawn of a cache and of the buffer in front of it.
#[derive(Clone, Copy, Debug)]
struct Draw {
    bits: u32,
    rows: u64,
    halved: bool,
    buffer_pages: u64,
    is_protected: bool,
    by_work: bool,
    early: bool,
    at_fold: bool,
    after_idle: Option<u64>,
    above_ppm: u32,
    units: u64,
}

fn draws() -> impl Strategy<Value = Draw> {
    let cells = (2..4_u32, 0..3_u64, any::<bool>());
    let buffer = (1..12_u64, any::<bool>(), any::<bool>(), any::<bool>());
    let idle = prop::option::of(0..3_000_000_u64);
    let fold = (any::<bool>(), idle, 0..1_000_000_u32, 1..6_u64);
    (cells, buffer, fold).prop_map(|(cells, buffer, fold)| Draw {
        bits: cells.0,
        rows: cells.1,
        halved: cells.2,
        buffer_pages: buffer.0,
        is_protected: buffer.1,
        by_work: buffer.2,
        early: buffer.3,
        at_fold: fold.0,
        after_idle: fold.1,
        above_ppm: fold.2,
        units: fold.3,
    })
}

/// `body` with pages that can be divided among bits.
fn with_pages(mut body: DriveConfig, draw: Draw) -> DriveConfig {
    body.geometry.pages_per_block *= draw.bits;
    body
}

/// `config` with the cache and the buffer that were drawn.
fn with_cache(mut config: DriveConfig, draw: Draw) -> DriveConfig {
    let page_bytes = config.geometry.page_bytes;
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: draw.buffer_pages * u64::from(page_bytes),
        power_loss_protection: draw.is_protected,
        release: match draw.early && config.media.arbitration == ChannelArbitration::Ready {
            true => BufferRelease::Transfer,
            false => BufferRelease::Program,
        },
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: match draw.by_work {
            true => Placement::LeastWork,
            false => Placement::InOrder,
        },
    });
    config.finish = match draw.at_fold {
        true => FinishConfig::AtFold,
        false => FinishConfig::Metadata,
    };
    let unit = u64::from(page_bytes) * u64::from(config.pages_per_program());
    let is_halved = draw.halved && page_bytes > config.lba_bytes;
    let mut cache = SlcCacheConfig {
        size_bytes: 0,
        bits_per_cell: draw.bits,
        page_bytes: page_bytes >> u32::from(is_halved),
        read_ns: Nanos(11_000),
        program_ns: Nanos(90_000),
        erase_ns: Nanos(700_000),
        fold_after_idle_ns: draw.after_idle.map(Nanos),
        fold_above_ppm: draw.above_ppm,
        fold_bytes: draw.units * unit,
    };
    config.slc_cache = Some(cache);
    let row = cache.row_bytes(&config.geometry);
    let least = (config.cache_reserve_bytes() + unit + row)
        .div_ceil(row)
        .max(2);
    cache.size_bytes = (least + draw.rows) * row;
    config.slc_cache = Some(cache);
    config.geometry.blocks_per_plane += (least + draw.rows) as u32;
    config
}

/// Cuts the power, and lets the host know of its commands.
fn cut(rig: &mut Rig, seed: u64) {
    rig.run_to(rig.now);
    let loss = rig.drive.power_cut(rig.now, Nanos::from_ms(1), seed);
    rig.now = loss.ready_at;
    for lost in &loss.lost {
        rig.forget(lost.tag.0 as usize);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    /// Whatever a host does and whenever power is lost: nothing is programmed twice without an
    /// erasure, the pages of a block in their order, and whatever zones hold is in the cache or
    /// on the blocks of the zone.
    #[test]
    fn what_zones_hold_is_somewhere(
        (body, designs, spare, draw) in (bodies(), designs(), 0..4_u32, draws()),
        front_end in prop::option::of(front_ends()),
        stream in streams(1..120),
        cuts in prop::collection::vec((0..120_usize, any::<u64>()), 0..4),
    ) {
        let mut config = with_cache(drive(with_pages(body, draw), designs, spare), draw);
        if let Some(front_end) = front_end {
            config.front_end = front_end;
        }
        prop_assume!(profile::check(&config).is_ok());
        let mut rig = Rig::new(&config);
        let mut blocks = Blocks::watch(&mut rig.drive);
        for (at, step) in stream.iter().enumerate() {
            for (_, seed) in cuts.iter().filter(|(when, _)| *when == at) {
                cut(&mut rig, *seed);
                rig.drive.assert_invariants();
                blocks.look(&mut rig.drive);
            }
            match step.op(&rig) {
                Some(op) => {
                    rig.submit(op);
                }
                None => rig.run_for(Nanos::from_ms(1)),
            }
            rig.drive.assert_invariants();
            blocks.look(&mut rig.drive);
        }
        while rig.next() {}
        rig.drive.assert_invariants();
        blocks.look(&mut rig.drive);
        prop_assert_eq!(rig.drive.in_flight(), 0, "nobody waits for ever");
    }

    /// A drive that is saved and restored holds the same, and goes on.
    #[test]
    fn a_snapshot_keeps_what_is_cached(
        (body, designs, spare, draw) in (bodies(), designs(), 0..4_u32, draws()),
        (before, after) in (streams(1..60), streams(1..60)),
        cut_seed in prop::option::of(any::<u64>()),
    ) {
        let config = with_cache(drive(with_pages(body, draw), designs, spare), draw);
        prop_assume!(profile::check(&config).is_ok());
        let mut rig = Rig::new(&config);
        let mut blocks = Blocks::watch(&mut rig.drive);
        run(&mut rig, &before);
        match cut_seed {
            // It is saved before it is ready, unless it has begun to erase.
            Some(seed) => cut(&mut rig, seed),
            None => rig.settle(),
        }
        blocks.look(&mut rig.drive);
        let saved = match snapshot::save(&rig.drive) {
            Err(snapshot::SnapshotError::Busy { .. }) if cut_seed.is_some() => return Ok(()),
            saved => saved.expect("it is at rest"),
        };
        let restored = snapshot::restore(&config, &saved).expect("it is of this drive");
        let again = snapshot::save(&restored);
        prop_assert!(again.is_err() || again == Ok(saved), "the same, unless it has begun to fold");
        rig.restart(restored);
        blocks.restored(&mut rig.drive);
        run(&mut rig, &after);
        while rig.next() {}
        rig.drive.assert_invariants();
        blocks.look(&mut rig.drive);
    }
}

fn run(rig: &mut Rig, stream: &[Step]) {
    for step in stream {
        match step.op(rig) {
            Some(op) => {
                rig.submit(op);
            }
            None => rig.run_for(Nanos::from_ms(1)),
        }
    }
}

/// What a host does that looks at its data.
#[derive(Clone, Copy, Debug)]
enum Act {
    Write { zone: u32, nlb: u32 },
    Read { zone: u32, first: u32, nlb: u32 },
    Reset { zone: u32 },
    Finish { zone: u32 },
    Flush,
    Pause { us: u64 },
    Cut { seed: u64 },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let zone = 0..3_u32;
    let act = prop_oneof![
        12 => (zone.clone(), 1..40_u32).prop_map(|(zone, nlb)| Act::Write { zone, nlb }),
        6 => (zone.clone(), 0..512_u32, 1..40_u32)
            .prop_map(|(zone, first, nlb)| Act::Read { zone, first, nlb }),
        1 => zone.clone().prop_map(|zone| Act::Reset { zone }),
        1 => zone.prop_map(|zone| Act::Finish { zone }),
        1 => Just(Act::Flush),
        3 => (1..8_000_u64).prop_map(|us| Act::Pause { us }),
        1 => any::<u64>().prop_map(|seed| Act::Cut { seed }),
    ];
    prop::collection::vec(act, 1..160)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Every read brings what was last written, beside a plain array for each zone, whatever is
    /// folded meanwhile; power takes what was not flushed, from the end of zones, and nothing
    /// that was in the cache. Data is kept by zone, so this does not say where reads go on the
    /// flash: `what_zones_hold_is_somewhere` does.
    #[test]
    fn reads_bring_what_was_written(
        acts in acts(),
        rows in 3..6_u32,
        is_protected in any::<bool>(),
        above_ppm in 0..1_000_000_u32,
    ) {
        let mut config = folding(rows);
        config.data = DataStore::Memory;
        if let Some(cache) = &mut config.slc_cache {
            cache.fold_above_ppm = above_ppm;
        }
        if let Some(buffer) = &mut config.write_buffer {
            buffer.power_loss_protection = is_protected;
        }
        let mut rig = Rig::new(&config);
        let mut zones: Vec<Vec<u8>> = vec![Vec::new(); 3];
        // Blocks that no loss of power may take.
        let mut safe = [0; 3];
        let mut written = 0_u8;
        for act in acts {
            match act {
                Act::Write { zone, nlb } => {
                    let of = &mut zones[zone as usize];
                    let nlb = nlb.min(512 - of.len() as u32);
                    if nlb == 0 || rig.drive.zones().state(ZoneId(zone)) == ZoneState::FULL {
                        continue;
                    }
                    written = written.wrapping_add(1).max(1);
                    of.extend(std::iter::repeat_n(written, nlb as usize));
                    let data = Buf::from(vec![written; nlb as usize * 4_096]);
                    let op = rig.write(zone, nlb);
                    rig.exec_with(op, Some(data));
                }
                Act::Read { zone, first, nlb } => {
                    let nlb = nlb.min(512 - first);
                    let op = rig.read(zone, first, nlb);
                    let done = rig.exec_with(op, Some(Buf::zeroed(nlb as usize * 4_096)));
                    let data = done.data.expect("it comes back");
                    for (at, block) in data.chunks(4_096).enumerate() {
                        let of = &zones[zone as usize];
                        let expected = of.get(first as usize + at).copied().unwrap_or(0);
                        prop_assert!(block.iter().all(|byte| *byte == expected));
                    }
                }
                Act::Reset { zone } => {
                    let op = rig.reset(zone);
                    rig.exec(op);
                    zones[zone as usize].clear();
                    safe[zone as usize] = 0;
                }
                Act::Finish { zone } => {
                    let op = rig.finish(zone);
                    rig.exec(op);
                    safe[zone as usize] = zones[zone as usize].len();
                }
                Act::Flush => {
                    rig.exec(zonelab_device::Op::Flush);
                    safe = [0, 1, 2].map(|zone| zones[zone].len());
                }
                Act::Pause { us: span } => rig.run_for(us(span)),
                Act::Cut { seed } => {
                    cut(&mut rig, seed);
                    for (zone, of) in (0..).map(ZoneId).zip(&mut zones) {
                        let left = rig.drive.zones().host_lbas(zone) as usize;
                        let at = zone.0 as usize;
                        let least = if is_protected { of.len() } else { safe[at] };
                        prop_assert!((least..=of.len()).contains(&left), "{:?}", zone);
                        of.truncate(left);
                        safe[at] = left;
                    }
                }
            }
            rig.drive.assert_invariants();
        }
        while rig.next() {}
        rig.drive.assert_invariants();
    }
}
