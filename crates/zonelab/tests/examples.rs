//! The examples do what they say.

#[expect(dead_code, reason = "its main function is for the command line")]
#[path = "../examples/own_allocation.rs"]
mod own_allocation;
#[expect(dead_code, reason = "its main function is for the command line")]
#[path = "../examples/own_reset.rs"]
mod own_reset;
#[expect(dead_code, reason = "its main function is for the command line")]
#[path = "../examples/own_workload.rs"]
mod own_workload;
#[expect(dead_code, reason = "its main function is for the command line")]
#[path = "../examples/random_writes_on_zones.rs"]
mod random_writes_on_zones;
#[expect(dead_code, reason = "its main function is for the command line")]
#[path = "../examples/ten_lines.rs"]
mod ten_lines;
#[expect(dead_code, reason = "its main function is for the command line")]
#[path = "../examples/test_a_storage_engine.rs"]
mod test_a_storage_engine;

use own_workload::ReadsFirst;
use test_a_storage_engine::EngineError;
use zonelab::device::Nanos;
use zonelab::ssd::{Drive, profile};

#[test]
fn the_drive_in_ten_lines_takes_what_its_profile_says() {
    let profile = profile::builtin("confznspp").expect("it is built in");
    let times = ten_lines::times(&mut Drive::new(&profile.config));
    let times: Vec<u64> = times.iter().map(|(_, took)| took.0 / 1_000).collect();
    // 25 us on a channel and 700 us on a plane; four pages on as many channels at once; 60 us
    // on a plane and the way back.
    assert_eq!(times, [725, 725, 85]);
}

#[test]
fn the_patient_reset_trades_time_to_erase_for_quiet_reads() {
    let [built_in, own] = own_reset::compare().expect("both make sense");
    // Reads never meet an erasure that could have waited.
    assert!(own.slowest_read < Nanos::from_us(1_000), "{own:?}");
    assert!(built_in.slowest_read > own.slowest_read, "{built_in:?}");
    assert!(own.mean_freed > built_in.mean_freed, "{built_in:?} {own:?}");
}

#[test]
fn the_last_freed_allocation_leaves_spare_flash_alone() {
    // Zones of 8 blocks: those that two zones move over, with the three spare ones.
    assert_eq!(own_allocation::compare(), Ok([5 * 8, 2 * 8]));
}

#[test]
fn reads_pass_in_the_scheduler() {
    let (without, _) = own_workload::run(None);
    let (with, _) = own_workload::run(Some(Box::new(ReadsFirst::default())));
    assert!(with < without, "{with} {without}");
    assert_eq!(own_workload::run(None), own_workload::run(None));
}

#[test]
fn random_writes_go_through_the_layer_and_are_there() {
    let outcome = random_writes_on_zones::run().expect("every block is as it was written");
    assert!(outcome.write_amplification > 1.0, "{outcome:?}");
    assert!(outcome.resets > 0, "{outcome:?}");
    assert_eq!(random_writes_on_zones::run().ok(), Some(outcome));
}

#[test]
fn an_engine_that_flushes_survives_and_one_that_does_not_is_caught() {
    assert_eq!(
        test_a_storage_engine::test(true)
            .expect("it keeps its word")
            .losses,
        1_000
    );
    let failure = test_a_storage_engine::test(false).expect_err("it does not");
    assert!(
        matches!(failure.error, EngineError::Lost { kept, promised } if kept < promised),
        "{failure}"
    );
    assert!(
        failure.to_string().contains("ZONELAB_CRASH_RUN="),
        "{failure}"
    );
}
