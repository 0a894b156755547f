//! Workloads and schedulers from outside of the crates: the example does what it says.

#[expect(dead_code, reason = "its main function is for the command line")]
#[path = "../../examples/own_workload.rs"]
mod own_workload;

use own_workload::{ReadsFirst, run};

#[test]
fn reads_pass_in_the_scheduler_of_the_example() {
    let (without, _) = run(None);
    let (with, _) = run(Some(Box::new(ReadsFirst::default())));
    assert!(with < without, "{with} {without}");
    assert_eq!(run(None), run(None));
}
