//! All designs in all combinations, under random command streams, against an
//! independent count of what must happen to each block of flash.

use crate::drive_support::Rig;
use crate::drive_support::random::Step;
use crate::drive_support::random::{bodies, drive, drives, every_combination, front_ends, streams};
use crate::drive_support::shadow::Shadow;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// Finish x reset x mapping x service x planes: each combination with a random
/// body and a random stream of its own.
#[test]
fn every_combination_does_what_was_asked() {
    let mut runner = TestRunner::deterministic();
    let inputs = (bodies(), 0..4_u32, streams(20..60));
    let combinations = every_combination();
    assert_eq!(combinations.len(), 9 * 12 * 2 * 6 * 3);
    for designs in combinations {
        let (body, spare, stream) = inputs.new_tree(&mut runner).unwrap().current();
        let config = drive(body, designs, spare);
        let run = std::panic::AssertUnwindSafe(|| {
            let mut rig = Rig::new(&config);
            Shadow::new(&config).run(&mut rig, &stream);
        });
        if std::panic::catch_unwind(run).is_err() {
            panic!("{config:#?}\n{stream:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    #[test]
    fn drawn_drives_do_what_was_asked(config in drives(), stream in streams(1..120)) {
        let mut rig = Rig::new(&config);
        Shadow::new(&config).run(&mut rig, &stream);
    }

    /// With a front end, flash work starts later, and not always in the order of
    /// arrival; but each command is decided on arrival, and each ends once.
    #[test]
    fn a_front_end_delays_flash_work_but_not_decisions(
        config in drives(),
        front_end in front_ends(),
        stream in streams(1..120),
    ) {
        let mut delayed = config.clone();
        delayed.front_end = front_end;
        let (mut rig, mut twin) = (Rig::new(&delayed), Rig::new(&config));
        for step in &stream {
            match step.op(&rig) {
                Some(op) => {
                    rig.submit(op);
                    twin.submit(op);
                }
                None => {
                    rig.run_for(zonelab_device::Nanos(100_000));
                    twin.run_for(zonelab_device::Nanos(100_000));
                }
            }
        }
        rig.settle();
        twin.settle();
        prop_assert_eq!(rig.drive.background_tasks(), 0);
        for (ours, theirs) in rig.done.iter().flatten().zip(twin.done.iter().flatten()) {
            prop_assert_eq!((ours.status, ours.result), (theirs.status, theirs.result));
        }
        let (ours, theirs) = (rig.drive.totals(), twin.drive.totals());
        prop_assert_eq!(ours.host_write_bytes, theirs.host_write_bytes);
        // A write whose zone is reset before it starts is void, so it is not programmed.
        prop_assert!(ours.host_program_bytes <= theirs.host_program_bytes);
        let manages = |step: &Step| matches!(step, Step::Manage { .. } | Step::ManageAll { .. });
        let resets = stream.iter().any(manages);
        prop_assert!(resets || ours.host_program_bytes == theirs.host_program_bytes);
        prop_assert_eq!((ours.resets, ours.finishes), (theirs.resets, theirs.finishes));
        let erased: u64 = rig.drive.flash().erase_counts().iter().map(|&n| u64::from(n)).sum();
        prop_assert_eq!(ours.erased_blocks, erased);
    }
}
