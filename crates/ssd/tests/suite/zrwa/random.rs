//! Random write areas under random commands, block by block.

use super::*;

/// What is done to zone 0 in a random run.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write { offset: u32, nlb: u32 },
    Commit { steps: u32 },
    Finish,
    Reset,
    Open,
    Pass { us: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..2 * AREA, 1..AREA).prop_map(|(offset, nlb)| Step::Write { offset, nlb }),
        3 => (1..=AREA / STEP).prop_map(|steps| Step::Commit { steps }),
        1 => Just(Step::Finish),
        1 => Just(Step::Reset),
        2 => Just(Step::Open),
        6 => (0..2_000_u64).prop_map(|us| Step::Pass { us }),
    ]
}

/// A block: what it held when the host last knew, and what may be there instead.
#[derive(Clone, Debug, Default)]
struct Block {
    writes: Vec<(usize, u8)>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever happens to a drive with protection, a block holds the last data
    /// that was acknowledged, or data that came after that.
    #[test]
    fn protected_blocks_that_were_acknowledged_outlive_a_loss_of_power(
        steps in proptest::collection::vec(step(), 1..60),
        pages in 1..20_u64,
        seed in any::<u64>(),
        is_lazy in any::<bool>(),
        fills in any::<bool>(),
    ) {
        let mut config = config(true);
        if is_lazy {
            config = lazy(config, 8);
        }
        if fills {
            config.finish = fill(64);
        }
        let page_bytes = u64::from(config.geometry.page_bytes);
        if let Some(buffer) = &mut config.write_buffer {
            buffer.size_bytes = pages * page_bytes;
        }
        let capacity = u32::try_from(config.zones.capacity_lbas).expect("zones are small");
        let mut rig = with_area(&config);
        let mut blocks = vec![Block::default(); capacity as usize];
        for (step, byte) in steps.iter().zip(1..) {
            let pointer = u32::try_from(pointer(&rig)).expect("zones are small");
            match *step {
                Step::Write { offset, nlb } => {
                    let offset = pointer + offset;
                    let op = rig.write_at(0, offset, nlb);
                    let has_area = rig.drive.zones().has_zrwa(ZoneId(0));
                    let reach = if has_area { pointer + 2 * AREA } else { capacity };
                    let is_placed = has_area || offset == pointer;
                    let tag = rig.submit_with(op, filled(nlb, byte));
                    if is_placed && offset + nlb <= reach.min(capacity) {
                        for block in &mut blocks[offset as usize..][..nlb as usize] {
                            block.writes.push((tag, byte));
                        }
                    }
                }
                Step::Commit { steps } => {
                    let op = commit(&rig, 0, pointer + steps * STEP);
                    rig.submit(op);
                }
                Step::Finish => {
                    let op = rig.finish(0);
                    rig.submit(op);
                }
                Step::Reset => {
                    let op = rig.reset(0);
                    rig.submit(op);
                    blocks.fill(Block::default());
                }
                Step::Open => {
                    let op = open(&rig, 0);
                    rig.submit(op);
                }
                Step::Pass { us } => rig.run_for(Nanos::from_us(us)),
            }
        }
        let state = rig.drive.zones().state(ZoneId(0));
        let loss = rig.drive.power_cut(rig.now, Nanos::ZERO, seed);
        rig.run_to(loss.ready_at);
        rig.drive.zones().assert_invariants();
        if state == ZoneState::FULL {
            prop_assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::FULL);
        }
        let held = read(&mut rig, 0, capacity);
        for (index, (block, held)) in blocks.iter().zip(held).enumerate() {
            let is_known = |(tag, _): &&(usize, u8)| rig.done[*tag].is_some();
            let known = block.writes.iter().rposition(|write| is_known(&write));
            let possible = match known {
                Some(last) => block.writes[last..].iter().any(|(_, byte)| *byte == held),
                None => held == 0 || block.writes.iter().any(|(_, byte)| *byte == held),
            };
            prop_assert!(possible, "block {index} holds {held}, not one of {block:?}");
        }
        // The drive still works: flash and zone agree.
        let reset = rig.reset(0);
        prop_assert_eq!(rig.exec(reset).status, Status::SUCCESS);
        let op = open(&rig, 0);
        prop_assert_eq!(rig.exec(op).status, Status::SUCCESS);
        prop_assert_eq!(write(&mut rig, 1, 2 * AREA - 1, 1).status, Status::SUCCESS);
        while rig.next() {}
        prop_assert_eq!(rig.drive.background_tasks(), 0);
    }
}
