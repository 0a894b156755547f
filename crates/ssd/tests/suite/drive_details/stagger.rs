//! Zones that begin on different dies, so that they are not in step.

use super::*;

fn staggered(planes: u32) -> DriveConfig {
    let mut config = small();
    config.zones.stagger = planes;
    config
}

#[test]
fn zones_that_are_written_side_by_side_begin_on_different_dies() {
    for (stagger, second) in [(0, us(25 + 2 * 700)), (1, WRITE), (3, WRITE)] {
        let mut config = staggered(stagger);
        config.media.arbitration = ChannelArbitration::Ready;
        let mut rig = Rig::new(&config);
        let tags: Vec<usize> = (0..2)
            .map(|zone| submit_write(&mut rig, zone, PAGE))
            .collect();
        rig.settle();
        assert_eq!(completed_at(&rig, tags[0]), WRITE);
        assert_eq!(completed_at(&rig, tags[1]), second, "stagger {stagger}");
        for zone in 0..6 {
            let layout = rig.drive.flash().layout();
            assert_eq!(layout.stripe(zone)[0], zone * stagger % 4);
        }
    }
}

#[test]
fn data_survives_a_stagger() {
    for planes in [1, 2] {
        let mut config = staggered(planes);
        if planes == 2 {
            config.geometry.planes = 2;
            config.media.planes = PlaneMode::MultiPlane;
            config.zones.stripe = StripeOrder::PlaneFirst;
        }
        config.data = DataStore::Memory;
        let mut rig = Rig::new(&config);
        for zone in 0..6_u8 {
            let mut data = Buf::zeroed(32 * PAGE_BYTES as usize);
            for (block, chunk) in (0..).zip(data.chunks_mut(4_096)) {
                chunk.fill(zone ^ block);
            }
            let op = rig.write(zone.into(), 32 * PAGE);
            assert_eq!(rig.exec_with(op, Some(data)).status, Status::SUCCESS);
        }
        for zone in 0..6_u8 {
            let read = rig.read(zone.into(), 0, 32 * PAGE);
            let done = rig.exec_with(read, Some(Buf::zeroed(32 * PAGE_BYTES as usize)));
            let data = done.data.expect("a buffer comes back");
            for (block, chunk) in (0..).zip(data.chunks(4_096)) {
                assert!(chunk.iter().all(|byte| *byte == zone ^ block));
            }
        }
        // A multi-plane program takes all planes of a die, as without a stagger.
        let programs: u64 = rig.busy().1.iter().sum();
        let reads = 6 * 32 * 60_000 / u64::from(planes);
        assert_eq!(programs, 6 * 32 * 700_000 / u64::from(planes) + reads);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// A stagger turns the stripe of each zone of a group, and blocks stay its own.
    #[test]
    fn a_stagger_turns_stripes(config in drives(), draw in any::<u32>()) {
        let mut config = config;
        let plain = Layout::new(&config);
        config.zones.stagger = draw % plain.width();
        let layout = Layout::new(&config);
        let mut blocks = std::collections::BTreeSet::new();
        for physical in 0..config.zones.count {
            let turns = physical / plain.groups() * config.zones.stagger % plain.width();
            let mut turned = plain.stripe(physical).to_vec();
            turned.rotate_left(turns as usize);
            prop_assert_eq!(layout.stripe(physical), &turned[..]);
            for block in 0..layout.zone_blocks() {
                prop_assert!(blocks.insert(layout.block_index(physical, block)));
            }
        }
    }
}
