//! Whatever a host sends as commands, with time and queues that come and go:
//! each command of an open queue completes once, with the data that it asked
//! for, and the counts of the controller hold.

use zonelab_target::controller::fuzz_command;

/// Bytes of a step: four of choices, and a submission queue entry.
const STEP_BYTES: usize = 68;
/// The choice that sends a command to the I/O queue.
const TO_IO: u8 = 1 << 1;

/// Commands of the admin queue.
///
/// # Panics
/// Something is wrong with the controller.
pub fn run_admin(data: &[u8]) {
    run(data, |choice| choice & !TO_IO);
}

/// Commands of an I/O queue.
///
/// # Panics
/// Something is wrong with the controller.
pub fn run_io(data: &[u8]) {
    run(data, |choice| choice | TO_IO);
}

fn run(data: &[u8], choose: impl Fn(u8) -> u8) {
    let mut bytes = data.to_vec();
    for step in bytes.chunks_mut(STEP_BYTES) {
        step[0] = choose(step[0]);
    }
    fuzz_command(&bytes);
}
