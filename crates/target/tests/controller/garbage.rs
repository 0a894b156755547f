//! Whatever a host sends.

use proptest::prelude::*;
use zonelab_target::controller::fuzz_command;

proptest! {
    /// Each command completes once, and counts hold, whatever the bytes are.
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..68 * 60)) {
        fuzz_command(&bytes);
    }
}

#[test]
fn nothing_and_half_a_step_are_survived() {
    fuzz_command(&[]);
    fuzz_command(&[1; 67]);
    fuzz_command(&[0xff; 68 * 8]);
}
