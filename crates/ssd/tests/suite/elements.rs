//! Zones that are assembled from storage elements (SilentZNS, section 4).

use crate::drive_support::random::{NO_FRONT_END, Step, drives, streams};
use crate::drive_support::{ERASE, PAGE, Rig, confznspp, fill, lazy, reset, small};
use crate::elements_oracle::{Oracle, Shock, with_elements};
use proptest::prelude::*;
use zonelab_device::{Buf, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::FaultTarget;
use zonelab_ssd::account::{BusyByCause, Cause};
use zonelab_ssd::config::{
    DataStore, DriveConfig, EraseExtent, EraseWhen, FillExtent, FinishConfig, Geometry,
    MappingConfig, PageRegister, PlaneMode, StripeOrder,
};
use zonelab_ssd::mapping::allocator::Availability;
use zonelab_ssd::profile;

fn chunk(mut config: DriveConfig, chunk_blocks: u32) -> DriveConfig {
    let physical_zones = config.zones.count;
    config.mapping = MappingConfig::Chunk {
        chunk_blocks,
        physical_zones,
    };
    by_elements(config)
}

fn stripe(mut config: DriveConfig) -> DriveConfig {
    let physical_zones = config.zones.count;
    config.mapping = MappingConfig::Stripe { physical_zones };
    by_elements(config)
}

/// An element-wise finish.
fn by_elements(mut config: DriveConfig) -> DriveConfig {
    config.finish = FinishConfig::Fill {
        granularity_bytes: 256 << 10,
        pause_ns: Nanos::ZERO,
        yield_ns: None,
        buffered: false,
        takes_core: false,
        extent: FillExtent::Elements,
    };
    config.reset = reset(EraseWhen::FirstZoneWrite, EraseExtent::Partial);
    config
}

/// Free, allocated, valid and invalid elements.
fn states(rig: &Rig) -> [usize; 4] {
    let mut states = [0; 4];
    for of in rig.drive.flash().elements().expect("it has some").all() {
        states[of.availability as usize] += 1;
    }
    states
}

fn dlwa(config: &DriveConfig, percent: u64) -> f64 {
    let mut rig = Rig::new(config);
    let pages = u64::from(rig.drive.flash().layout().zone_pages()) * percent / 100;
    rig.write_pages(0, u32::try_from(pages).expect("zones are small"));
    let finish = rig.finish(0);
    rig.time(finish);
    let totals = rig.drive.totals();
    let device = totals.host_program_bytes + totals.fill_program_bytes;
    device as f64 / totals.host_write_bytes as f64
}

/// Figure 3a: by how much per cent write amplification is less than that of a
/// finish that fills the zone, at 10, 25, 50, 75 and 95 % occupancy. The text
/// gives the numbers of chunk-1, stripe and chunk-2; of chunk-11, 50 % at most
/// below 75 % and none above.
#[test]
fn write_amplification_is_that_of_the_paper() {
    let fixed = confznspp();
    let baseline = [10, 25, 50, 75, 95].map(|percent| dlwa(&fixed, percent));
    let lazy = lazy(confznspp(), 48);
    let fine = [86.36, 72.73, 50.0, 22.73, 4.55];
    for (name, config, published) in [
        ("lazy", lazy, [0.0; 5]),
        ("chunk-1", chunk(confznspp(), 1), fine),
        (
            "chunk-2",
            chunk(confznspp(), 2),
            [81.82, 72.73, 45.45, 18.18, 0.0],
        ),
        (
            "chunk-11",
            chunk(confznspp(), 11),
            [50.0, 50.0, 50.0, 0.0, 0.0],
        ),
        ("stripe", stripe(confznspp()), fine),
    ] {
        let found = [10, 25, 50, 75, 95].map(|percent| dlwa(&config, percent));
        for at in 0..5 {
            let reduction = 100.0 * (1.0 - found[at] / baseline[at]);
            let error = reduction - published[at];
            assert!(error.abs() < 0.05, "{name}: {reduction} at place {at}");
        }
        let is_half_exact = name != "lazy" && name != "chunk-2";
        let is_one = (found[2] - 1.0).abs() < 1e-12;
        assert!(!is_half_exact || is_one, "{name}: {}", found[2]);
    }
}

/// Of fewer pages than planes, chunks take as many as there are pages, and a
/// stripe all (figure 2).
#[test]
fn only_elements_that_were_written_are_filled() {
    for (config, filled, states_after) in [
        // 2 rows of 4 blocks with 4 pages.
        (chunk(small(), 1), 2 * 3, [46, 0, 2, 0]),
        (chunk(small(), 2), 2 * 7, [22, 0, 2, 0]),
        (stripe(small()), 14, [11, 0, 1, 0]),
    ] {
        let mut rig = Rig::new(&config);
        rig.write_pages(0, 2);
        let finish = rig.finish(0);
        rig.time(finish);
        let page_bytes = u64::from(config.geometry.page_bytes);
        let totals = rig.drive.totals();
        assert_eq!(totals.fill_program_bytes, filled * page_bytes);
        assert_eq!(totals.host_program_bytes, 2 * page_bytes);
        assert_eq!(states(&rig), states_after, "{:?}", config.mapping);
    }
}

/// What one zone goes through, with the availability of the paper.
#[test]
fn elements_go_through_the_states_of_the_paper() {
    let mut rig = Rig::new(&chunk(small(), 1));
    assert_eq!(states(&rig), [48, 0, 0, 0]);
    rig.write_pages(0, 17);
    assert_eq!(states(&rig), [40, 3, 5, 0], "a row and a block");
    let reset = rig.reset(0);
    rig.time(reset);
    assert_eq!(states(&rig), [43, 0, 0, 5], "nothing is erased yet");
    assert!(rig.drive.flash().erase_counts().iter().all(|n| *n == 0));
    // Free ones come first, so that the next five zones need no erasure but for what is left.
    for zone in 0..5 {
        rig.write_pages(zone, 1);
    }
    assert_eq!(states(&rig), [3, 35, 5, 5]);
    rig.write_pages(5, 1);
    assert_eq!(rig.drive.totals().erased_blocks, 5);
    assert_eq!(states(&rig), [0, 42, 6, 0]);
}

/// The first write to a zone erases the invalid elements that it got, all at
/// once; or each is erased when it is first written.
#[test]
fn elements_are_erased_when_they_are_mapped_again() {
    for (when, latency, erased) in [
        (EraseWhen::FirstZoneWrite, 2 * ERASE.0, 8),
        (EraseWhen::FirstBlockWrite, ERASE.0, 1),
    ] {
        let mut config = chunk(small(), 1);
        config.zones.count = 1;
        config.mapping = MappingConfig::Chunk {
            chunk_blocks: 1,
            physical_zones: 1,
        };
        config.reset = reset(when, EraseExtent::Partial);
        let mut rig = Rig::new(&config);
        rig.write_pages(0, 32);
        let reset = rig.reset(0);
        rig.time(reset);
        let write = rig.write(0, PAGE);
        let took = rig.time(write);
        assert_eq!(took.0, latency + 700_000, "{when:?}");
        assert_eq!(rig.drive.totals().erased_blocks, erased, "{when:?}");
    }
}

/// Erasure by the reset itself goes on with elements whoever gets them next.
#[test]
fn an_element_that_is_being_erased_is_not_erased_twice() {
    for when in [EraseWhen::Synchronous, EraseWhen::Background] {
        for preempt_ns in [None, Some(Nanos::from_ms(1))] {
            let mut config = chunk(small(), 2);
            config.zones.count = 1;
            config.mapping = MappingConfig::Chunk {
                chunk_blocks: 2,
                physical_zones: 1,
            };
            config.reset = reset(when, EraseExtent::Partial);
            config.reset.preempt_ns = preempt_ns;
            let mut rig = Rig::new(&config);
            for _ in 0..3 {
                rig.write_pages(0, 9);
                let reset = rig.reset(0);
                rig.submit(reset);
                rig.run_for(ERASE);
                let write = rig.write(0, 32 * PAGE);
                rig.submit(write);
                rig.settle();
                let reset = rig.reset(0);
                rig.submit(reset);
                rig.settle();
            }
            let counts = rig.drive.flash().erase_counts();
            let used: Vec<u32> = counts.iter().copied().filter(|count| *count > 0).collect();
            assert_eq!(used, [6; 8], "{when:?} {preempt_ns:?}");
        }
    }
}

/// Power is lost when a zone that got elements which a reset was erasing has a page,
/// and some of them are not erased. When it is finished it gives those back.
#[test]
fn background_erasure_goes_on_with_what_a_zone_has_not_written() {
    for preempt_ns in [None, Some(Nanos::from_ms(1))] {
        let mut config = chunk(small(), 1);
        config.zones.count = 2;
        config.mapping = MappingConfig::Chunk {
            chunk_blocks: 1,
            physical_zones: 2,
        };
        config.reset = reset(EraseWhen::Background, EraseExtent::Partial);
        config.reset.preempt_ns = preempt_ns;
        let mut rig = Rig::new(&config);
        rig.write_pages(0, 32);
        rig.write_pages(1, 4);
        // Reads keep the last die busy.
        for _ in 0..400 {
            let read = rig.read(1, 3 * PAGE, 1);
            rig.submit(read);
        }
        let reset = rig.reset(0);
        rig.submit(reset);
        let write = rig.write(0, PAGE);
        let write = rig.submit(write);
        let mut waited = 0;
        while rig.done[write].is_none() && waited < 100 {
            rig.run_for(Nanos::from_ms(1));
            waited += 1;
        }
        assert!(rig.done[write].is_some(), "{preempt_ns:?}");
        let loss = rig.drive.power_cut(rig.now, Nanos::ZERO, 1);
        rig.now = loss.ready_at;
        for lost in &loss.lost {
            rig.forget(lost.tag.0 as usize);
        }
        let finish = rig.finish(0);
        rig.time(finish);
        rig.run_for(Nanos::from_ms(100));
        assert_eq!(rig.drive.background_tasks(), 0);
        let [_, allocated, valid, invalid] = states(&rig);
        assert_eq!((allocated, valid, invalid), (4, 5, 0), "{preempt_ns:?}");
    }
}

/// Pages are programmed on the planes of the elements that they are in, as many
/// planes in a row as there are if LUNs give as many.
#[test]
fn pages_are_programmed_on_the_planes_of_their_elements() {
    for (depth_weight, chunk_blocks) in [(None, 1), (None, 2), (Some(0), 1), (Some(3), 2)] {
        let mut config = chunk(small(), chunk_blocks);
        config.allocation.depth_weight = depth_weight;
        let mut rig = Rig::new(&config);
        // Wear that is not the same everywhere.
        for round in 0..40 {
            rig.write_pages(round % 5, 1 + round * 7 % 32);
            let finish = rig.finish(round % 5);
            rig.time(finish);
            let reset = rig.reset(round * 3 % 5);
            rig.time(reset);
            let reset = rig.reset(round % 5);
            rig.time(reset);
        }
        let programs = |rig: &Rig| -> Vec<u64> {
            let units = &rig.drive.flash().media().ledger().units;
            let of_host = |busy: &BusyByCause| busy[Cause::HostWrite as usize];
            units.iter().map(of_host).collect()
        };
        let mut planes = Vec::new();
        for page in 0..32 {
            let before = programs(&rig);
            rig.write_pages(5, 1);
            let after = programs(&rig);
            let busy: Vec<usize> = (0..after.len()).filter(|&n| after[n] > before[n]).collect();
            let elements = rig.drive.flash().elements().expect("it has some");
            let physical = rig
                .drive
                .flash()
                .mapping()
                .physical(ZoneId(5))
                .expect("it has data");
            // Four planes, four pages a block.
            let place = page / (4 * 4 * chunk_blocks) * 4 + page % 4;
            let element = elements.of_zone(physical).nth(place as usize).flatten();
            let mut blocks = elements.blocks_of(0, element.expect("it is written"));
            let plane = blocks.next().expect("it has a block") / 64;
            assert_eq!(busy, [plane], "page {page}, {depth_weight:?}");
            planes.push(plane);
        }
        for of_row in planes.chunks(4).filter(|_| depth_weight.is_none()) {
            let mut of_row = of_row.to_vec();
            of_row.sort_unstable();
            assert_eq!(of_row, [0, 1, 2, 3]);
        }
    }
}

/// A finished zone has no flash behind what was filled; it reads as zeros.
#[test]
fn the_tail_of_a_finished_zone_reads_as_zeros() {
    let mut config = chunk(small(), 1);
    config.data = DataStore::Memory;
    let mut rig = Rig::new(&config);
    let write = rig.write(0, 3);
    rig.exec_with(write, Some(Buf::from(vec![7; 3 * 4_096])));
    let finish = rig.finish(0);
    rig.time(finish);
    let read = rig.read(0, 0, 128);
    let done = rig.exec_with(read, Some(Buf::from(vec![0xee; 128 * 4_096])));
    assert_eq!(done.status, Status::SUCCESS);
    let data = done.data.expect("the buffer comes back");
    assert!(data[..3 * 4_096].iter().all(|byte| *byte == 7));
    assert!(data[3 * 4_096..].iter().all(|byte| *byte == 0));
    let physical = rig
        .drive
        .flash()
        .mapping()
        .physical(ZoneId(0))
        .expect("it has data");
    let elements = rig.drive.flash().elements().expect("it has some");
    assert_eq!(elements.of_zone(physical).flatten().count(), 1);
}

/// Pages visit the planes as they do without elements, so that a zone is as fast.
#[test]
fn elements_do_not_change_the_time_of_reads_and_writes() {
    let times = |config: &DriveConfig| {
        let mut rig = Rig::new(config);
        let mut times = Vec::new();
        for nlb in [1, 4, 7, 30, 64, 22] {
            let write = rig.write(1, nlb);
            times.push(rig.time(write));
        }
        for (offset, nlb) in [(0, 1), (3, 40), (60, 68)] {
            let read = rig.read(1, offset, nlb);
            times.push(rig.time(read));
        }
        times
    };
    let direct = times(&small());
    for config in [chunk(small(), 1), chunk(small(), 2), stripe(small())] {
        assert_eq!(times(&config), direct, "{:?}", config.mapping);
    }
}

/// Wear levels over all elements, whatever zone is written.
#[test]
fn wear_goes_to_all_elements_alike() {
    let mut rig = Rig::new(&chunk(small(), 1));
    for _ in 0..60 {
        rig.write_pages(2, 32);
        let reset = rig.reset(2);
        rig.time(reset);
    }
    let elements = rig.drive.flash().elements().expect("it has some");
    let wear: Vec<u32> = elements.all().map(|of| of.wear).collect();
    let (least, most) = (wear.iter().min(), wear.iter().max());
    // The first 6 of 60 zones needed none, and the last is still to be erased.
    assert_eq!(least.zip(most), Some((&9, &9)), "{wear:?}");
    assert!(
        elements
            .all()
            .all(|of| of.availability != Availability::Valid)
    );
}

#[test]
fn impossible_designs_are_refused() {
    let says = |config: &DriveConfig, key: &str| {
        let broken = profile::check(config).expect_err("it is impossible");
        assert!(broken.iter().any(|of| of.key == key), "{broken:?}");
        broken[0].to_string()
    };
    let three = says(&chunk(confznspp(), 3), "mapping.chunk_blocks");
    assert_eq!(
        three,
        "mapping.chunk_blocks: chunks of 3 blocks do not divide the 22 blocks that a zone has on \
         each plane; use 2 or 11"
    );
    let mut direct = by_elements(confznspp());
    says(&direct, "finish.extent");
    direct.finish = fill(16);
    let mut few = chunk(direct, 1);
    few.mapping = MappingConfig::Chunk {
        chunk_blocks: 1,
        physical_zones: 47,
    };
    says(&few, "mapping.physical_zones");
}

/// One zone is written, finished and reset for ever: nothing is lost, and a drive
/// without spare elements always has enough.
#[test]
fn elements_are_never_lost() {
    let mut rig = Rig::new(&chunk(small(), 2));
    for round in 0..200 {
        let zone = round % 6;
        let write = rig.write(zone, 1 + round % 100);
        rig.submit(write);
        let finish = rig.finish(zone);
        rig.submit(finish);
        if round % 3 == 0 {
            rig.settle();
        }
        let reset = rig.reset(zone);
        rig.submit(reset);
    }
    rig.settle();
    let [free, allocated, valid, invalid] = states(&rig);
    assert_eq!((free + invalid, allocated, valid), (24, 0, 0));
    let read = rig.read(0, 0, 4);
    assert_eq!(rig.exec(read).status, Status::SUCCESS);
    assert!(matches!(read, Op::Read { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    /// Random commands, power cuts and snapshots, beside a model of elements as sets.
    #[test]
    fn elements_are_as_in_the_model(
        config in drives(),
        draw in any::<(u32, bool, bool)>(),
        spare in 0..3_u32,
        steps in streams(1..60),
        shocks in prop::collection::vec((0..60_usize, any::<Shock>()), 0..4),
    ) {
        let config = with_elements(config, draw, spare);
        prop_assume!(profile::check(&config).is_ok());
        let mut rig = Rig::new(&config);
        Oracle::new(&config).run(&mut rig, &steps, &shocks);
    }
}

/// What a loss of power took from a zone is erased twice if a finish gives it back while
/// it is being erased: it was programmed after its erasure had begun.
#[test]
fn what_is_given_back_during_its_erasure_is_erased_again() {
    let (mut config, _) = (small(), ());
    config.lba_bytes = 4_096;
    config.geometry = Geometry {
        channels: 2,
        ways: 2,
        dies: 1,
        planes: 2,
        blocks_per_plane: 14,
        pages_per_block: 1,
        page_bytes: 8_192,
    };
    config.zones.count = 3;
    config.zones.size_lbas = 49;
    config.zones.capacity_lbas = 49;
    config.zones.max_active = None;
    config.zones.max_open = None;
    config.zones.channels = 2;
    config.zones.ways = 1;
    config.zones.stripe = StripeOrder::ChannelFirst;
    config.zones.read_across = false;
    config.front_end = NO_FRONT_END;
    config.media.read_ns = Nanos(1);
    config.media.program_ns = Nanos(1);
    config.media.erase_ns = Nanos(940_227);
    config.media.transfer_ns = Nanos(1);
    config.media.partial_transfer = false;
    config.media.page_register = PageRegister::Overlap;
    config.media.planes = PlaneMode::Single;
    config.write_buffer = None;
    config.finish = FinishConfig::Fill {
        granularity_bytes: 8_192,
        pause_ns: Nanos::ZERO,
        yield_ns: None,
        buffered: false,
        takes_core: false,
        extent: FillExtent::Zone,
    };
    config.reset = reset(EraseWhen::Background, EraseExtent::Partial);
    let config = with_elements(config, (12_026_700, true, false), 0);
    let write = |zone, nlb| Step::Write { zone, nlb };
    let mut steps = vec![Step::Pause(0), Step::Pause(0), write(0, 17)];
    steps.push(Step::Read {
        zone: 0,
        offset: 0,
        nlb: 1,
    });
    steps.extend([Step::Pause(0), Step::Pause(0)]);
    steps.push(Step::ManageAll {
        action: ZoneSendAction::RESET,
    });
    steps.push(write(4, 1));
    steps.push(Step::WriteElsewhere {
        zone: 0,
        offset: 1,
        nlb: 1,
    });
    steps.extend([write(1, 1), write(2, 1), write(3, 1)]);
    steps.extend([write(0, 1); 5]);
    steps.extend([Step::Pause(0); 4]);
    steps.extend([write(0, 1); 3]);
    steps.push(write(0, 24));
    steps.extend([write(0, 1); 2]);
    steps.push(Step::Report);
    steps.extend([write(0, 1); 3]);
    steps.push(Step::Manage {
        zone: 0,
        action: ZoneSendAction::FINISH,
    });
    let mut rig = Rig::new(&config);
    let shocks = [(25, Shock::Power(993_070_460_852_367_426))];
    Oracle::new(&config).run(&mut rig, &steps, &shocks);
}
