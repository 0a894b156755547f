//! `--faults`, `--restore` and `--snapshot` as scripts see them, and an
//! interrupted run.

use serde_json::Value;

use super::scratch::{Scratch, stderr};

const READS: &str = "[global]\nioengine=libaio\nzonemode=zbd\nbs=16k\n\
                     [read]\nrw=randread\niodepth=4\nnumber_ios=2000\nsize=2z\n";
const FILL: &str = "[fill]\nioengine=libaio\nzonemode=zbd\nrw=write\nbs=256k\niodepth=4\n\
                    size=2z\nnumber_ios=600\n";

impl Scratch {
    /// The exit code of `zonelab fio`, its JSON and what it says.
    fn fio_json(&self, args: &[&str]) -> (i32, Value, String) {
        let fixed = ["fio", "--device", "confznspp", "--json"];
        let output = self.zonelab(&[&fixed[..], args].concat());
        let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let stderr = stderr(&output);
        (output.status.code().unwrap(), report, stderr)
    }
}

fn p99_us(report: &Value) -> f64 {
    let percentiles = &report["jobs"][0]["read"]["clat_ns"]["percentile"];
    percentiles["99.000000"].as_f64().unwrap() / 1e3
}

#[test]
fn a_preconditioned_drive_is_saved_once_and_used_often() {
    let scratch = Scratch::new("snapshots");
    scratch.write("fill.fio", FILL);
    scratch.write("reads.fio", READS);
    let (code, ..) = scratch.fio_json(&["fill.fio", "--snapshot", "filled.state"]);
    assert_eq!(code, 0);
    // A new drive has nothing to read.
    let (code, report, _) = scratch.fio_json(&["reads.fio"]);
    assert_eq!(
        (code, &report["jobs"][0]["read"]["total_ios"]),
        (0, &Value::from(0))
    );
    let restored = || scratch.fio_json(&["reads.fio", "--restore", "filled.state"]);
    let (code, report, stderr) = restored();
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(report["jobs"][0]["read"]["total_ios"], 2_000);
    assert_eq!(restored().1, report, "the snapshot is as it was");
    // Timing may differ, the drive may not.
    let slower = [
        "reads.fio",
        "--restore",
        "filled.state",
        "--set",
        "media.read=200us",
    ];
    assert!(p99_us(&scratch.fio_json(&slower).1) > p99_us(&report));
    let other = [
        "reads.fio",
        "--restore",
        "filled.state",
        "--set",
        "zones.max_active=3",
    ];
    let (code, _, stderr) = scratch.fio_json(&other);
    assert_eq!(code, 3);
    assert!(stderr.contains("zones.max_"), "{stderr}");

    let bytes = std::fs::read(scratch.0.join("filled.state")).unwrap();
    std::fs::write(scratch.0.join("cut.state"), &bytes[..bytes.len() - 1]).unwrap();
    let (code, _, stderr) = scratch.fio_json(&["reads.fio", "--restore", "cut.state"]);
    assert_eq!(code, 3);
    assert!(stderr.contains("truncated"), "{stderr}");
    // It has no end.
    let (code, _, stderr) = scratch.fio_json(&["reads.fio", "--restore", "/dev/zero"]);
    assert_eq!(code, 3);
    assert!(stderr.contains("no ordinary file"), "{stderr}");
}

#[test]
fn faults_show_in_latency_and_exit_code() {
    let scratch = Scratch::new("faults");
    scratch.write("reads.fio", READS);
    scratch.write(
        "slow.toml",
        "[[fault]]\non = \"read\"\nprobability = \"5%\"\neffect = \"delay\"\ndelay = \"5ms\"\n",
    );
    scratch.write(
        "weak.toml",
        "[[fault]]\non = \"read\"\nskip = 50\ncount = 1\neffect = \"media-error\"\n",
    );
    scratch.write(
        "wrong.toml",
        "[[fault]]\non = \"reed\"\neffect = \"lose\"\n",
    );
    let full = ["reads.fio", "--full-zones", "0..2"];
    let (_, clean, _) = scratch.fio_json(&full);
    let (code, slow, stderr) = scratch.fio_json(&[&full[..], &["--faults", "slow.toml"]].concat());
    assert_eq!(code, 0, "{stderr}");
    assert!(p99_us(&clean) < 1_000.0 && p99_us(&slow) > 5_000.0);
    assert!(stderr.contains("faults struck"), "{stderr}");
    let (code, weak, _) = scratch.fio_json(&[&full[..], &["--faults", "weak.toml"]].concat());
    assert_eq!(code, 5);
    assert_eq!(weak["jobs"][0]["error"], 5);
    let (code, _, stderr) = scratch.fio_json(&[&full[..], &["--faults", "wrong.toml"]].concat());
    assert_eq!(code, 3);
    assert!(
        stderr.contains("wrong.toml:2") && stderr.contains("read"),
        "{stderr}"
    );
}

/// Results under faults are another configuration than those without.
#[test]
fn experiments_run_under_faults_into_results_of_their_own() {
    let scratch = Scratch::new("conditions");
    scratch.write(
        "offline.toml",
        "[[fault]]\non = \"time\"\nat = \"1ms\"\nzones = \"0..=9\"\neffect = \"offline\"\n",
    );
    let run = |more: &[&str]| {
        let fixed = ["run", "reset-under-reads", "--quiet", "--out", "r"];
        scratch.zonelab(&[&fixed[..], more].concat())
    };
    assert_eq!(run(&[]).status.code(), Some(0));
    let refused = run(&["--faults", "offline.toml"]);
    assert_eq!(refused.status.code(), Some(4), "they are not overwritten");
    let forced = run(&["--faults", "offline.toml", "--force"]);
    let stderr = String::from_utf8_lossy(&forced.stderr);
    assert_eq!(forced.status.code(), Some(5), "{stderr}");
    assert!(
        stderr.contains(" of namespace 1: Zone Is Offline (0x1bb)"),
        "{stderr}"
    );
    let points = std::fs::read_to_string(scratch.0.join("r/points.json")).unwrap();
    let points: Value = serde_json::from_str(&points).unwrap();
    let failure = &points["points"][0]["failures"][0];
    assert_eq!(failure["status"], "Zone Is Offline (0x1bb)");
    assert_eq!(
        (&failure["kind"], &failure["namespace"]),
        (&"read".into(), &1.into())
    );
    assert!(
        failure["zone"].is_u64() && failure["lba"].is_u64(),
        "{failure}"
    );
    let report = std::fs::read_to_string(scratch.0.join("r/report.html")).unwrap();
    assert!(
        report.contains("--faults offline.toml"),
        "the command to run it again"
    );
}

/// A completion that a fault lost is what threads wait for, and not zones: of which command it
/// was is said by every verb.
#[test]
fn a_completion_that_a_fault_lost_is_named() {
    let scratch = Scratch::new("lost");
    let lose = |on: &str| {
        let plan = format!("[[fault]]\non = \"{on}\"\nskip = 10\ncount = 1\neffect = \"lose\"\n");
        scratch.write("lose.toml", &plan);
    };
    lose("write");
    scratch.write("fill.fio", FILL);
    let because = "a fault lost the completion of a write in zone 0 of namespace 1, submitted at ";
    for device in ["confznspp", "confznspp?clock=real"] {
        let args = ["fio", "fill.fio", "--json", "--faults", "lose.toml"];
        let output = scratch.zonelab(&[&args[..], &["--device", device]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(
            said.contains(&format!("threads that waited for ever: 1: {because}")),
            "{said}"
        );
        assert!(!said.contains("nobody gives back"), "{said}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let job = &report["jobs"][0];
        assert_eq!(job["error"], 5);
        let stuck = &job["zonelab"]["stuck"];
        assert_eq!(stuck["threads"], 1);
        assert!(
            stuck["waited_for"].as_str().unwrap().starts_with(because),
            "{stuck}"
        );
    }
    lose("any");
    let kv = [
        "kv",
        "fillrandom",
        "--device",
        "confznspp",
        "--operations",
        "100000",
        "--quiet",
    ];
    let output = scratch.zonelab(&[&kv[..], &["--faults", "lose.toml"]].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("the store waits for ever, since "), "{said}");
    assert!(
        said.contains(": a fault lost the completion of a"),
        "{said}"
    );
    lose("read");
    let run = [
        "run",
        "reset-under-reads",
        "--quiet",
        "--out",
        "r",
        "--faults",
        "lose.toml",
    ];
    let output = scratch.zonelab(&run);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    let because = "jobs that wait for ever: 1: a fault lost the completion of a read in zone ";
    assert!(said.contains(because), "{said}");
}
