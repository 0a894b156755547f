//! What sweeps say of drives that put work off, and of jobs that completed nothing.

use super::idle::{stdout, warnings};
use super::scratch::Scratch;

/// Resets whose erasures wait for a write that never comes, and a finish without end.
const OWED: &str = r#"
schema = 1
id = "owed"
title = "Resets and a finish beside reads"
profile = "confznspp"

[[job]]
name = "read"
work = "read"
zones = "20..=23"
runtime = "100ms"
ends_run = true

[[job]]
name = "reset"
work = "reset"
zones = "24..=27"

[[job]]
name = "finish"
work = "finish"
zones = "0..=0"
fill = "100%"

[[series]]
name = "s"
full_zones = "20..=27"
jobs = ["read", "reset", "finish"]
"#;

const OWED_SWEEP: &str = r#"
schema = 1
title = "When zones are erased"
experiment = "owed.toml"

[[vary]]
name = "reset"
[[vary.case]]
name = "at once"
set = []
[[vary.case]]
name = "at the first write"
set = [
    "drive.reset.timing=asynchronous",
    "drive.reset.erase_at=first-write",
    "drive.mapping.design=lazy",
]
"#;

/// A sweep says of which drives it measured less than they have to do.
#[test]
fn a_sweep_names_drives_that_owe_and_jobs_that_completed_nothing() {
    let scratch = Scratch::new("idle-owed-sweep");
    scratch.write("owed.toml", OWED);
    scratch.write("sweep.toml", OWED_SWEEP);
    let said = stdout(&scratch.zonelab(&["sweep", "sweep.toml", "--quiet", "--out", "swept"]));
    let warned = warnings(&said);
    let owes = "series \"s\": in 1 of 2 runs the drive still owed die time at the end";
    assert!(warned.iter().any(|of| of.starts_with(owes)), "{said}");
    let nothing = "series \"s\", job \"finish\": in 2 of 2 runs it completed nothing";
    assert!(warned.iter().any(|of| of.starts_with(nothing)), "{said}");
}
