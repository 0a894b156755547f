//! `zonelab trace` and `--trace`: files, messages, exit codes.

use std::collections::BTreeMap;
use std::path::Path;

use super::scratch::{Scratch, stderr};

impl Scratch {
    /// Every file below a directory, by its path there.
    fn files(&self, directory: &str) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.0.join(directory), "", &mut files);
        files
    }
}

fn collect(directory: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn a_newcomer_sees_what_delays_a_read_in_one_line() {
    let scratch = Scratch::new("trace");
    let output = scratch.zonelab(&["trace", "reset-under-reads"]);
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("the first of 4; choose with --point"),
        "{stderr}"
    );
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.contains("erase (reset of zone 3) 76.98 ms"),
        "{stdout}"
    );
    assert!(stdout.contains("ui.perfetto.dev"), "{stdout}");
    let files = scratch.files("results/reset-under-reads-trace/latest");
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["manifest.json", "trace.pftrace.gz", "zone-history.csv"]
    );
    let history = String::from_utf8(files["zone-history.csv"].clone()).unwrap();
    assert!(
        history.ends_with("\n5000000,3,full,empty,270336\n"),
        "{history}"
    );
}

#[test]
fn a_trace_is_of_the_point_that_is_named() {
    let scratch = Scratch::new("trace-point");
    let args = [
        "trace",
        "reset-under-reads",
        "--point",
        "preemptive,8",
        "--out",
        "a/b.pftrace",
    ];
    let output = scratch.zonelab(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.contains("series \"preemptive\", queue depth 8"),
        "{stdout}"
    );
    let files = scratch.files("a");
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["b-zone-history.csv", "b.pftrace"]
    );
}

#[test]
fn tracing_changes_no_result_and_threads_change_no_trace() {
    let scratch = Scratch::new("trace-run");
    let run = |out: &str, more: &[&str]| {
        let args = [&["run", "reset-under-reads", "--out", out], more].concat();
        let output = scratch.zonelab(&args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        scratch.files(out)
    };
    let plain = run("plain", &[]);
    let one = run("one", &["--trace", "--threads", "1"]);
    assert_eq!(one, run("two", &["--trace", "--threads", "2"]));
    for (name, bytes) in &plain {
        // The manifest lists the traces as well, and the command asks for them.
        let differs = ["manifest.json", "inputs.json"].contains(&name.as_str());
        assert!(differs || one[name] == *bytes, "{name}");
    }
    let traces: Vec<_> = one
        .keys()
        .filter(|name| name.starts_with("traces/"))
        .collect();
    assert_eq!(traces.len(), 8, "{traces:?}");
    assert!(traces.contains(&&"traces/reset-under-reads-all_at_once-8.pftrace.gz".to_owned()));
    let single = run(
        "single",
        &["--trace=my.pftrace.gz", "--trace-point", "all at once,8"],
    );
    assert_eq!(
        single.keys().collect::<Vec<_>>(),
        plain.keys().collect::<Vec<_>>()
    );
    let file = std::fs::read(scratch.0.join("my.pftrace.gz")).unwrap();
    assert!(file == one["traces/reset-under-reads-all_at_once-8.pftrace.gz"]);
}

#[test]
fn a_slow_command_is_explained_also_where_no_trace_is_kept() {
    let scratch = Scratch::new("trace-without");
    let ask = |more: &[&str]| {
        let fixed = [
            "trace",
            "reset-under-reads",
            "--slowest",
            "2",
            "--json",
            "--force",
        ];
        let output = scratch.zonelab(&[&fixed[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let value = ask(&["--without", "reset"]);
    let slowest = &value["slowest"][0];
    assert_eq!(slowest["command"], "read 16 KiB zone 7 @3900952");
    assert_eq!(slowest["latency_ns"], 77_070_000);
    assert_eq!(slowest["account"]["flash_ns"], 85_000);
    assert_eq!(slowest["account"]["by_cause_ns"]["reset-erase"], 76_985_000);
    assert_eq!(slowest["without_ns"]["reset-erase"], 85_000);
    assert_eq!(slowest["without_all_ns"], 85_000);
    assert_eq!(value["slowest"].as_array().map(Vec::len), Some(2));
    let next_to_nothing = ask(&["--without", "reset", "--trace-limit", "1"]);
    assert_eq!(next_to_nothing["slowest"], value["slowest"]);
    // Of a cause that it did not meet nothing can be said but that.
    assert_eq!(
        ask(&["--without", "finish"])["slowest"][0]["without_ns"],
        serde_json::json!({})
    );
}

/// The finish of the example `finish-on-read`: it lasts longer than what a trace keeps.
#[test]
fn what_a_finish_waited_for_does_not_depend_on_what_is_kept() {
    let scratch = Scratch::new("trace-finish");
    let text = include_str!("../../../../docs/examples/finish-on-read.toml");
    scratch.write("finish-on-read.toml", text);
    let ask = |more: &[&str]| {
        let point = ["finish-on-read.toml", "--point", "beside a finish,16"];
        let output = scratch.zonelab(&[&["trace"], &point[..], &["--force"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let set = ["--trace-limit", "1000", "--set", "drive.zones.size=64MiB"];
    let small = [&set[..], &["--set", "drive.zones.capacity=48MiB"]].concat();
    let text = ask(&small);
    let (_, management) = text.split_once("slowest zone management").unwrap();
    assert!(management.contains("; flash "), "{text}");
    assert!(management.contains("read of zone 4"), "{text}");
    assert!(!text.contains("recorded"), "{text}");
    assert!(text.contains("which is what the trace holds of"), "{text}");
    let json = ask(&[&small[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let slowest = json["slowest_management"].as_array().unwrap();
    assert!(!slowest.is_empty(), "{json}");
    for one in slowest {
        let account = one["account"].as_object().unwrap();
        let parts = account.iter().filter(|(name, _)| name.ends_with("_ns"));
        let own: u64 = parts.filter_map(|(_, ns)| ns.as_u64()).sum();
        let blocked = account["blocked_by"].as_array().unwrap().iter();
        let blocked: u64 = blocked.map(|by| by["ns"].as_u64().unwrap()).sum();
        assert_eq!(own + blocked, one["latency_ns"], "{one}");
    }
}

#[test]
fn what_is_dropped_is_said() {
    let scratch = Scratch::new("trace-limit");
    let output = scratch.zonelab(&["trace", "reset-under-reads", "--trace-limit", "100"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains("incomplete: ") && said.contains(" commands"),
        "{said}"
    );
    let window = ["--trace-from", "10ms", "--trace-for", "5ms", "--force"];
    let output = scratch.zonelab(&[&["trace", "reset-under-reads"], &window[..]].concat());
    assert!(
        !stderr(&output).contains("incomplete"),
        "{}",
        stderr(&output)
    );
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("10 ms to 15 ms"), "{stdout}");
}

#[test]
fn mistakes_are_usage_errors_that_name_the_points() {
    let scratch = Scratch::new("trace-usage");
    let cases: &[(&[&str], &str)] = &[
        (
            &["trace", "reset-under-reads", "--point", "nosuch"],
            "  preemptive,8",
        ),
        (
            &["trace", "reset-under-reads", "--point", "preemptive"],
            "more than one point",
        ),
        (&["trace", "CM"], "nothing that could be traced"),
        (
            &["run", "reset-under-reads", "--trace=x"],
            "--trace=FILE takes one point",
        ),
        (&["run", "C10a", "--trace"], "at most 16 points"),
        (&["run", "C10a", "--trace-point", "a,1"], "--trace"),
        (&["trace", "reset-under-reads", "--trace-for", "5"], "5"),
        (
            &["trace", "reset-under-reads", "--without", "weather"],
            "there is no such cause",
        ),
    ];
    for (args, says) in cases {
        let output = scratch.zonelab(args);
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(says), "{args:?}: {stderr}");
    }
    assert!(!scratch.0.join("results").exists(), "nothing is written");
}

/// The trace of one point does not take the place of another's.
#[test]
fn traces_of_two_points_stay_beside_each_other() {
    let scratch = Scratch::new("trace-again");
    let trace = |more: &[&str]| {
        let output = scratch.zonelab(&[&["trace", "reset-under-reads"], more].concat());
        output.status.code()
    };
    let other = ["--point", "preemptive,8"];
    let results = scratch.0.join("results/reset-under-reads-trace");
    let newest = || std::fs::read_link(results.join("latest")).unwrap();
    assert_eq!(trace(&[]), Some(0));
    let first = newest();
    let bytes = std::fs::read(results.join(&first).join("trace.pftrace.gz")).unwrap();
    assert_eq!(trace(&[]), Some(0), "the same again");
    assert_eq!(newest(), first);
    assert_eq!(trace(&other), Some(0));
    assert_ne!(newest(), first);
    let kept = std::fs::read(results.join(&first).join("trace.pftrace.gz")).unwrap();
    assert_eq!(kept, bytes);
    let others = std::fs::read(results.join("latest/trace.pftrace.gz")).unwrap();
    assert_ne!(others, bytes);
}

#[test]
fn a_job_file_can_be_traced_and_prints_the_same() {
    let scratch = Scratch::new("trace-fio");
    let job = "[w]\nrw=write\nbs=16k\nnumber_ios=40\nnumjobs=2\nioengine=libaio\niodepth=2\n\
               offset_increment=1z\nsize=1z\n";
    std::fs::write(scratch.0.join("w.fio"), job).unwrap();
    let fio = |more: &[&str]| {
        let fixed = ["fio", "w.fio", "--device", "confznspp", "--json"];
        scratch.zonelab(&[&fixed[..], more].concat())
    };
    let (plain, traced) = (fio(&[]), fio(&["--trace", "w.pftrace"]));
    assert_eq!(traced.status.code(), Some(0), "{}", stderr(&traced));
    assert_eq!(plain.stdout, traced.stdout);
    let trace = std::fs::read(scratch.0.join("w.pftrace")).unwrap();
    let names = |name: &[u8]| trace.windows(name.len()).any(|window| window == name);
    assert!(names(b"w 1") && names(b"w 2"), "a track for each thread");
    let history = std::fs::read_to_string(scratch.0.join("w-zone-history.csv")).unwrap();
    assert!(
        history.contains(",0,empty,implicitly-opened,0\n"),
        "{history}"
    );
}
