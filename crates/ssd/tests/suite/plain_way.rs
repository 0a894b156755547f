//! Commands that take the plain way come to the same as by the general way, which all of a drive
//! take whose blocks are watched.

use crate::drive_support::Rig;
use crate::drive_support::random::{Step, drives, streams};
use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::{Drive, DriveModel, FaultTarget};

/// Everything about two drives that they have in common if they did the same.
fn assert_same(rig: &Rig, twin: &Rig) -> Result<(), TestCaseError> {
    prop_assert_eq!(&rig.order, &twin.order);
    prop_assert_eq!(&rig.done, &twin.done);
    let (ours, theirs): (&Drive, &Drive) = (&rig.drive, &twin.drive);
    prop_assert_eq!(ours.next_event(), theirs.next_event());
    prop_assert_eq!(ours.events_handled(), theirs.events_handled());
    prop_assert_eq!(ours.totals(), theirs.totals());
    prop_assert_eq!(
        ours.flash().media().ledger(),
        theirs.flash().media().ledger()
    );
    prop_assert_eq!(ours.flash().erase_counts(), theirs.flash().erase_counts());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn both_ways_come_to_the_same(
        config in drives(),
        stream in streams(1..150),
        // Where the plain drive is watched, too, with requests of the plain way in flight.
        switch in 0..300_usize,
        off_ns in 1..10_000_000_u64,
        is_cut in any::<bool>(),
    ) {
        let (mut rig, mut twin) = (Rig::new(&config), Rig::new(&config));
        twin.drive.watch_blocks();
        for (number, step) in stream.iter().enumerate() {
            if number == switch {
                rig.drive.watch_blocks();
            }
            match (step, step.op(&rig)) {
                (Step::Settle, _) => {
                    rig.settle();
                    twin.settle();
                }
                (_, Some(op)) => {
                    rig.submit(op);
                    twin.submit(op);
                }
                (Step::Pause(ns), None) => {
                    rig.run_for(Nanos(*ns));
                    twin.run_for(Nanos(*ns));
                }
                (_, None) => {}
            }
            assert_same(&rig, &twin)?;
        }
        if is_cut {
            let cut = |rig: &mut Rig| {
                let loss = rig.drive.power_cut(rig.now, Nanos(off_ns), off_ns);
                format!("{loss:?}")
            };
            prop_assert_eq!(cut(&mut rig), cut(&mut twin));
        } else {
            rig.settle();
            twin.settle();
        }
        assert_same(&rig, &twin)?;
    }
}
