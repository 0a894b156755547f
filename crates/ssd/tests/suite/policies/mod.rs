//! Policies from outside of the crate: the built-in rules written again over the public
//! interface give the same drive to the nanosecond, answers that make no sense are typed
//! errors that harm nothing, and the examples do what they say.

#[expect(dead_code, reason = "its main function is for the command line")]
#[path = "../../../examples/own_allocation.rs"]
mod own_allocation;
#[expect(dead_code, reason = "its main function is for the command line")]
#[path = "../../../examples/own_reset.rs"]
mod own_reset;

mod allocation;
mod nonsense;
mod paper;

use zonelab_device::Nanos;

#[test]
fn the_patient_reset_of_the_example_trades_time_to_erase_for_quiet_reads() {
    let [built_in, own] = own_reset::compare().expect("both make sense");
    // Reads never meet an erasure that could have waited.
    assert!(own.slowest_read < Nanos::from_us(1_000), "{own:?}");
    assert!(built_in.slowest_read > own.slowest_read, "{built_in:?}");
    assert!(own.mean_freed > built_in.mean_freed, "{built_in:?} {own:?}");
}

#[test]
fn the_allocation_of_the_example_leaves_spare_flash_alone() {
    // Zones of 8 blocks: those that two zones move over, with the three spare ones.
    assert_eq!(own_allocation::compare(), Ok([5 * 8, 2 * 8]));
}
