//! `zonelab fio` in real time: on emulated drives and over NVMe/TCP.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use zonelab_device::{Buf, Lba, Op};
use zonelab_driver::TcpQueue;
use zonelab_nvme::zns::ReportFilter;

use super::fio_jobs::{example, job};
use super::scratch::{Scratch, stderr};
use super::store::{Served, run};

/// Zones of 16 MiB.
pub(crate) const SMALL: [&str; 4] = ["--set", "zones.capacity=16MiB", "--set", "zones.size=16MiB"];

/// Zones of 32 MiB.
const LARGER: [&str; 4] = ["--set", "zones.capacity=32MiB", "--set", "zones.size=32MiB"];

fn serve_with(scratch: &Scratch, zones: &[&str], more: &[&str]) -> Served {
    let listen = ["serve", "confznspp", "--log", "warn", "--json"];
    let at = ["--listen", "127.0.0.1:0"];
    Served::start(scratch.command(&[&listen[..], &at, zones, more].concat()))
}

/// Serves the drive with small zones.
pub(crate) fn serve(scratch: &Scratch, more: &[&str]) -> Served {
    serve_with(scratch, &SMALL, more)
}

/// Every kind of operation; each job ends by its size or its number of operations.
const BOUNDED: &str = "
[global]
ioengine=libaio
bs=16k
group_reporting
[fill]
rw=write
bs=256k
iodepth=4
size=2z
[shared]
stonewall
rw=write
offset=2z
size=4z
numjobs=3
iodepth=2
number_ios=100
[finish]
new_group
rw=write
offset=8z
size=2z
finish=1
[read]
stonewall
rw=randread
size=2z
iodepth=32
number_ios=3000
[mix]
stonewall
rw=randrw
size=2z
io_size=4m
iodepth=8
[append]
stonewall
rw=write
offset=12z
size=1z
zone_append=1
io_size=2m
iodepth=4
[trim]
stonewall
rw=trim
bs=16m
offset=8z
size=1z
";

/// What a job did that does not depend on how long it took: errors, operations
/// and bytes of all directions, and those kinds that are not reads or writes.
fn amounts(result: &Value) -> Vec<(String, [u64; 6])> {
    let number = |value: &Value| value.as_u64().unwrap();
    let jobs = result["jobs"].as_array().unwrap();
    let of = |job: &Value| {
        let all = |key: &str| {
            let each = ["read", "write", "trim"];
            each.iter().map(|of| number(&job[of][key])).sum::<u64>()
        };
        let kinds = &job["zonelab"]["operations"];
        let kind = |name: &str| number(&kinds[name]);
        let name = job["jobname"].as_str().unwrap().to_owned();
        let error = number(&job["error"]);
        let amounts = [all("total_ios"), all("io_bytes")];
        let [finishes, resets, appends] = ["finish", "reset", "append"].map(kind);
        let [operations, bytes] = amounts;
        (name, [error, operations, bytes, finishes, resets, appends])
    };
    jobs.iter().map(of).collect()
}

/// State and blocks of the first zones of a served drive.
fn zones(scratch: &Scratch, served: &Served) -> Vec<(String, u64)> {
    let args = ["nvme", "zns", "report-zones", "--descs", "14", "--device"];
    let output = scratch
        .command(&args)
        .args([&served.url()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let value = |line: &str, key: &str| {
        let (_, rest) = line.split_once(key).unwrap();
        rest.split_whitespace().next().unwrap().to_owned()
    };
    let number = |line: &str, key: &str| {
        let text = value(line, key);
        u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
    };
    let lines = text.lines().filter(|line| line.contains("SLBA:"));
    lines
        .map(|line| {
            let state = value(line, "State:");
            let written = match state.as_str() {
                "FULL" => number(line, "Cap:"),
                _ => number(line, "WP:") - number(line, "SLBA:"),
            };
            (state, written)
        })
        .collect()
}

/// The same jobs do as much in virtual time, in real time, and over NVMe/TCP on
/// drives that answer at their times or at once, and leave the same zones.
#[test]
fn bounded_jobs_do_as_much_on_any_device() {
    let scratch = Scratch::new("fio-devices");
    scratch.write("job.fio", BOUNDED);
    let on = |device: &str, more: &[&str]| {
        scratch.json(&[&["job.fio", "--device", device], more].concat())
    };
    let in_virtual_time = on("confznspp", &SMALL);
    let expected = amounts(&in_virtual_time);
    assert_eq!(expected.len(), 7);
    let sum = |at: usize| expected.iter().map(|(_, of)| of[at]).sum::<u64>();
    assert_eq!(sum(0), 0, "{expected:?}");
    assert_eq!((sum(3), sum(4), sum(5)), (2, 1, 128), "{expected:?}");
    assert!(in_virtual_time["zonelab"]["clock"].is_null());
    let in_real_time = on("confznspp?clock=real", &SMALL);
    assert_eq!(amounts(&in_real_time), expected);
    let about = &in_real_time["zonelab"];
    assert_eq!(about["clock"], "real");
    let simulated_ns = in_virtual_time["zonelab"]["simulated_ns"].as_u64();
    let elapsed_ns = about["elapsed_ns"].as_u64();
    assert!(
        elapsed_ns > simulated_ns.map(|ns| ns / 2),
        "it takes its time"
    );
    let late = &about["lateness_ns"];
    assert!(late["N"].as_u64() > Some(0), "it has events");
    let [least, half, most] = [&late["min"], &late["percentile"]["50.000000"], &late["max"]];
    assert!(least.as_u64() <= half.as_u64() && half.as_u64() <= most.as_u64());
    assert!(
        most.as_u64() > Some(0),
        "no thread is on time to the nanosecond"
    );
    assert!(about["simulated_ns"].is_null());
    for more in [&[][..], &["--no-timing"]] {
        let served = serve(&scratch, more);
        assert_eq!(amounts(&on(&served.url(), &[])), expected, "{more:?}");
        let zones = zones(&scratch, &served);
        let of = |zone: usize| (zones[zone].0.as_str(), zones[zone].1);
        // Three threads wrote 100 pages each, one after the other.
        assert_eq!(of(2), ("IMP_OPENED", 1_200));
        assert_eq!(of(3), ("EMPTY", 0));
        assert_eq!(of(8), ("EMPTY", 0), "it was reset after it was finished");
        assert_eq!(of(9).0, "FULL");
        assert_eq!(of(12), ("IMP_OPENED", 512));
        for zone in [4, 5, 6, 7, 10, 11, 13] {
            assert_eq!(of(zone), ("EMPTY", 0), "zone {zone}");
        }
    }
}

/// The example, shortened: its last job reads 20,000 pages whatever the device.
#[test]
fn the_example_runs_on_any_device() {
    let scratch = Scratch::new("fio-devices-example");
    let text = std::fs::read_to_string(example("writers-and-finishes.fio")).unwrap();
    let short = text
        .replace("ramp_time=5", "ramp_time=100ms")
        .replace("runtime=60", "runtime=400ms")
        .replace("runtime=20", "runtime=400ms");
    assert_eq!(short.matches("runtime=400ms").count(), 3);
    scratch.write("job.fio", &short);
    let timed = serve_with(&scratch, &LARGER, &[]);
    let untimed = serve_with(&scratch, &LARGER, &["--no-timing"]);
    let (timed, untimed) = (timed.url(), untimed.url());
    for (device, more) in [
        ("confznspp", &LARGER[..]),
        ("confznspp?clock=real", &LARGER[..]),
        (&timed, &[]),
        (&untimed, &[]),
    ] {
        let result = scratch.json(&[&["job.fio", "--device", device], more].concat());
        let read = &job(&result, "read")["read"];
        assert_eq!(read["total_ios"], 20_000, "{device}");
        assert_eq!(read["io_bytes"], 20_000 * 16_384, "{device}");
        let jobs = result["jobs"].as_array().unwrap();
        assert!(jobs.iter().all(|job| job["error"] == 0), "{device}");
        assert_eq!(result["zonelab"]["interrupted"], false, "{device}");
    }
}

#[test]
fn what_zones_hold_is_not_overwritten_unasked() {
    let scratch = Scratch::new("fio-overwrite");
    let served = serve(&scratch, &["--no-timing"]);
    let url = served.url();
    let fio = |text: &str, more: &[&str]| {
        scratch.write("job.fio", text);
        scratch.fio(&[&["job.fio", "--device", &url], more].concat())
    };
    let succeeds = |text: &str, more: &[&str]| {
        let output = fio(text, more);
        assert!(output.status.success(), "{text}: {}", stderr(&output));
    };
    let is_refused = |text: &str| {
        let before = zones(&scratch, &served);
        let output = fio(text, &[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}: {said}");
        for part in [&url, "--overwrite", "48 zones", "of namespace 1"] {
            assert!(said.contains(part), "{text}: {part}: {said}");
        }
        assert_eq!(zones(&scratch, &served), before);
        said
    };
    let write = "[a]\nrw=write\nbs=64k\noffset=1z\nsize=2z\nio_size=17m\n";
    succeeds(write, &[]);
    assert_eq!(zones(&scratch, &served)[1], ("FULL".to_owned(), 4_096));
    assert!(is_refused(write).contains("zones 1 to 2 of namespace 1: 2 of 48 zones"));
    let wide = "[a]\nrw=write\nbs=64k\nsize=8z\nnumber_ios=1\n";
    assert!(is_refused(wide).contains("zones 1 to 2 of namespace 1: 2 of 48 zones"));
    let one = "[a]\nrw=randtrim\nsize=2z\n";
    assert!(is_refused(one).contains("zone 1 of namespace 1: 1 of 48 zones"));
    is_refused("[a]\nrw=write\nbs=64k\noffset=9z\nsize=1z\ninitial_zone_reset=1\n");
    // Neither reads nor writes elsewhere destroy anything.
    succeeds("[a]\nrw=read\nbs=64k\nsize=4z\n", &[]);
    succeeds("[a]\nrw=write\nbs=64k\noffset=4z\nsize=1z\n", &[]);
    succeeds(write, &["--overwrite"]);
    let reset = "[a]\nrw=write\nbs=64k\noffset=9z\nsize=1z\ninitial_zone_reset=1\n";
    succeeds(reset, &["--overwrite"]);
    let zones = zones(&scratch, &served);
    assert_eq!(zones[1], ("EMPTY".to_owned(), 0));
    assert_eq!(zones[9].0, "FULL");
}

/// Reads find what was there before: the drive's own report says so.
#[test]
fn zones_that_were_written_before_can_be_read() {
    let scratch = Scratch::new("fio-report");
    let served = serve(&scratch, &["--no-timing"]);
    let url = served.url();
    let run = |text: &str| {
        scratch.write("job.fio", text);
        scratch.json(&["job.fio", "--device", &url])
    };
    run("[a]\nrw=write\nbs=64k\noffset=3z\nsize=1z\nnumber_ios=10\n");
    let read = run("[a]\nrw=read\nbs=64k\nsize=6z\n");
    assert_eq!(read["jobs"][0]["read"]["total_ios"], 10);
}

/// The same operations at the same times through the driver for PCIe.
#[test]
fn the_driver_for_pcie_changes_nothing() {
    let scratch = Scratch::new("fio-over-pcie");
    scratch.write("job.fio", BOUNDED);
    let on = |device: &str, host: &[&str]| {
        let args = ["job.fio", "--device", device];
        let mut result = scratch.json(&[&args[..], &SMALL, host].concat());
        for job in result["jobs"].as_array_mut().unwrap() {
            // What commands found to do crosses no wire.
            let more = job["zonelab"].as_object_mut().unwrap();
            for count in ["nothing_ios", "buffered_reads", "warnings"] {
                more.remove(count);
            }
        }
        result["jobs"].take()
    };
    let stack = ["--host-stack", "io_uring", "--host-jitter", "300ns"];
    let [free, with_costs] = [&[][..], &stack].map(|host| {
        let (direct, over_pcie) = (on("confznspp", host), on("confznspp?via=pcie", host));
        assert!(direct.as_array().is_some_and(|jobs| jobs.len() == 7));
        assert_eq!(over_pcie, direct, "{host:?}");
        direct
    });
    assert_ne!(free, with_costs);
}

#[test]
fn what_only_emulated_drives_have_is_refused_by_name() {
    let scratch = Scratch::new("fio-refused");
    scratch.write("job.fio", "[a]\nrw=read\n");
    scratch.write("faults.toml", "");
    // Nobody listens there: these are refused before anything is connected.
    let nobody = "tcp://127.0.0.1:1/nqn.2014-08.org.x:y";
    let real = "confznspp?clock=real";
    let cases: [(&str, &[&str], i32, &str); 19] = [
        (nobody, &["--set", "zones.count=4"], 2, "serve --set"),
        (nobody, &["--faults", "faults.toml"], 2, "zonelab fault"),
        (nobody, &["--restore", "x"], 2, "rw=write"),
        (nobody, &["--snapshot", "x"], 2, "serve --store"),
        (nobody, &["--trace", "x"], 2, "write_lat_log"),
        (nobody, &["--full-zones", "all"], 2, "rw=write"),
        (nobody, &["--host-submit", "1us"], 2, "the time that"),
        (nobody, &["--host-complete", "1us"], 2, "the time that"),
        (nobody, &["--host-jitter", "1us"], 2, "the time that"),
        (real, &["--host-submit", "1us"], 2, "for virtual time"),
        (real, &["--host-jitter", "1us"], 2, "for virtual time"),
        (nobody, &[], 5, "no connection to 127.0.0.1:1"),
        (nobody, &["--parse-only"], 5, "is the drive served there?"),
        ("tcp://127.0.0.1:1", &[], 2, "zonelab nvme discover"),
        ("pcie://1:0.0", &[], 2, "written as in 0000:01:00.0"),
        (
            "pcie://0000:7f:1f.7",
            &[],
            4,
            "no PCI function 0000:7f:1f.7",
        ),
        ("spdk://0000:01:00.0", &[], 2, "tcp://HOST:PORT/NQN"),
        ("/dev/nvme0n1", &[], 2, "linux:///dev/nvme0n1"),
        ("linux:///dev/nonexistent", &[], 4, "/dev/nonexistent"),
    ];
    for (device, more, code, says) in cases {
        let output = scratch.fio(&[&["job.fio", "--device", device], more].concat());
        let said = stderr(&output);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{device} {more:?}: {said}"
        );
        assert!(said.contains(says), "{device} {more:?}: {said}");
        if let Some(option) = more.first().filter(|_| code == 2) {
            assert!(said.contains(option), "{device} {more:?}: {said}");
        }
    }
    assert!(!scratch.0.join("x").exists());
}

#[test]
fn jobs_that_do_not_fit_the_drive_are_refused() {
    let scratch = Scratch::new("fio-unfit");
    let served = serve(&scratch, &["--no-timing", "--queue-depth", "8"]);
    let url = served.url();
    let depth = "[deep]\nrw=read\nioengine=libaio\niodepth=9\n";
    for (text, device, says) in [
        (
            depth,
            url.clone(),
            "iodepth=9 of job deep: queues of the drive hold 7",
        ),
        (
            "[a]\nrw=read\nnumjobs=4000\n",
            url.clone(),
            "numjobs: 4000 threads",
        ),
        (
            "[a]\nrw=write\noffset=99z\n",
            url.clone(),
            "the device has 48 zones",
        ),
    ] {
        scratch.write("job.fio", text);
        let output = scratch.fio(&["job.fio", "--device", &device]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{text}: {said}");
        assert!(said.contains(says), "{text}: {said}");
    }
}

/// Waits until zones of the drive are in this state.
fn until_some_are(queue: &mut TcpQueue, filter: ReportFilter) {
    let report = Op::ZoneReceive {
        slba: Lba(0),
        filter,
        partial: false,
        extended: false,
    };
    loop {
        let done = run(queue, report, Some(Buf::zeroed(64)));
        assert!(done.status.is_success());
        if done.data.unwrap()[..8] != [0; 8] {
            return;
        }
    }
}

/// Jobs that pause for minutes end when there is nothing to wait for any more: the
/// user interrupts the run, or the drive goes away.
#[test]
fn pauses_end_with_the_run() {
    let scratch = Scratch::new("fio-pauses");
    scratch.write(
        "job.fio",
        "[pauses]\nrw=write\nbs=16k\nsize=1z\nthinktime=600s\n\
         [later]\nrw=write\nbs=16k\nsize=1z\noffset=2z\nstartdelay=600\n",
    );
    for is_interrupted in [true, false] {
        let mut served = serve(&scratch, &["--no-timing"]);
        let (controller, mut queue) = served.connect();
        let fio = scratch
            .command(&["fio", "job.fio", "--json"])
            .args(["--device", &served.url()])
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        until_some_are(&mut queue, ReportFilter::IMPLICITLY_OPENED);
        match is_interrupted {
            true => kill_process(Pid::from_child(&fio), Signal::INT).unwrap(),
            false => served.process.kill().unwrap(),
        }
        let output = fio.wait_with_output().unwrap();
        let said = stderr(&output);
        let code = if is_interrupted { 130 } else { 5 };
        assert_eq!(output.status.code(), Some(code), "{said}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["zonelab"]["interrupted"], true);
        assert_eq!(result["zonelab"]["lost"].is_string(), !is_interrupted);
        if is_interrupted {
            assert_eq!(job(&result, "pauses")["write"]["total_ios"], 1);
        }
        // It had nothing under way, but more to do.
        let error = if is_interrupted { 0 } else { 5 };
        assert_eq!(job(&result, "pauses")["error"], error);
        assert_eq!(job(&result, "later")["write"]["total_ios"], 0);
        drop((queue, controller));
    }
}

/// A drive that goes away in the middle of a run: what was done until then is
/// reported, the jobs that never began have nothing.
#[test]
fn a_drive_that_goes_away_ends_the_run_with_what_was_done() {
    let scratch = Scratch::new("fio-gone");
    scratch.write(
        "job.fio",
        "[writers]\nrw=write\nbs=16k\nsize=4z\nnumjobs=2\noffset_increment=4z\ntime_based\n\
         runtime=600\ngroup_reporting\n[after]\nstonewall\nrw=read\nbs=16k\n",
    );
    let mut served = serve(&scratch, &["--no-timing"]);
    let (controller, mut queue) = served.connect();
    let fio = scratch
        .command(&["fio", "job.fio", "--json", "--out", "results"])
        .args(["--device", &served.url()])
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until_some_are(&mut queue, ReportFilter::FULL);
    served.process.kill().unwrap();
    let output = fio.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("the results are those until then"), "{said}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["zonelab"]["interrupted"], true);
    assert!(result["zonelab"]["lost"].is_string());
    let writers = job(&result, "writers");
    assert_eq!(writers["error"], 5);
    // A zone of 16 MiB was full.
    assert!(writers["write"]["total_ios"].as_u64() >= Some(1_024));
    assert_eq!(job(&result, "after")["read"]["total_ios"], 0);
    let text = std::fs::read_to_string(scratch.0.join("results/fio.txt")).unwrap();
    assert!(text.contains("PARTIAL"), "{text}");
    drop((queue, controller));
}

/// The report of the zones at the end is that of the drive itself, in virtual time
/// and over NVMe/TCP.
#[test]
fn zones_are_reported_as_they_are_at_the_end() {
    let scratch = Scratch::new("fio-zones");
    scratch.write("job.fio", BOUNDED);
    let served = serve(&scratch, &["--no-timing"]);
    let reported = |device: &str, more: &[&str]| {
        let args = ["job.fio", "--device", device, "--zone-report", "zones.csv"];
        scratch.json(&[&args, more].concat());
        let text = std::fs::read_to_string(scratch.0.join("zones.csv")).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("zone,state,written_lbas"));
        let zones = lines.enumerate().map(|(index, line)| {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields[0], index.to_string());
            (fields[1].to_owned(), fields[2].parse().unwrap())
        });
        zones.collect::<Vec<(String, u64)>>()
    };
    let over_tcp = reported(&served.url(), &[]);
    assert_eq!(over_tcp.len(), 48);
    assert_eq!(over_tcp[..14], zones(&scratch, &served));
    let emulated = reported("confznspp", &SMALL);
    // What randrw wrote to its zones depends on the order of completions.
    assert_eq!(emulated[2..], over_tcp[2..]);
    assert_eq!(emulated[9], ("FULL".to_owned(), 4_096));
}

/// Blocks that a job has written to a served drive are right until somebody else
/// changes one, and then it is named; a drive that keeps nothing has none of them.
#[test]
fn a_changed_block_of_a_served_drive_is_found() {
    const LBA: usize = 4096;
    let scratch = Scratch::new("fio-verify");
    let served = serve(&scratch, &["--no-timing"]);
    let fio = |text: &str, device: &str, more: &[&str]| {
        scratch.write("job.fio", text);
        scratch.fio(&[&["job.fio", "--json", "--device", device], more].concat())
    };
    let verify = |output: &std::process::Output| {
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let job = &result["jobs"][0];
        let of = |value: &Value| value.as_u64().unwrap();
        let found = &job["zonelab"]["verify"];
        [
            of(&job["error"]),
            of(&found["total_ios"]),
            of(&found["wrong"]),
        ]
    };
    let write = "[a]\nrw=write\nverify=crc32c\nbs=64k\nsize=2z\nioengine=libaio\niodepth=8\n";
    let read = "[a]\nrw=randread\nverify=crc32c\nbs=64k\nsize=2z\nnumber_ios=500\n";
    for device in ["confznspp", &served.url()] {
        let more = if device == "confznspp" {
            &SMALL[..]
        } else {
            &[]
        };
        let output = fio(write, device, more);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(verify(&output), [0, 512, 0], "{device}");
    }
    let output = fio(read, &served.url(), &[]);
    assert_eq!(verify(&output), [0, 500, 0], "{}", stderr(&output));
    // Zone 1 is written again as it was, but for one bit of its fifth block.
    let (controller, mut queue) = served.connect();
    let zone = zonelab_device::QueuePair::info(&queue).namespaces[0]
        .zoned
        .unwrap()
        .zone_size_lbas;
    let mut kept = Vec::new();
    for block in 0..16 {
        let (slba, nlb) = (Lba(zone + block), 1);
        let done = run(&mut queue, Op::Read { slba, nlb }, Some(Buf::zeroed(LBA)));
        kept.push(done.data.unwrap());
    }
    let reset = Op::ZoneSend {
        slba: Lba(zone),
        action: zonelab_nvme::zns::ZoneSendAction::RESET,
        select_all: false,
    };
    assert!(run(&mut queue, reset, None).status.is_success());
    kept[5][100] ^= 4;
    for (block, data) in (0..).zip(kept) {
        let (slba, nlb) = (Lba(zone + block), 1);
        let done = run(&mut queue, Op::Write { slba, nlb }, Some(data));
        assert!(done.status.is_success());
    }
    drop((queue, controller));
    let only = format!("{write}verify_only\n");
    let output = fio(&only, &served.url(), &[]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert_eq!(verify(&output), [84, 257, 1], "{said}");
    let says = "job a: verify: 1 of 257 blocks are not what was written, first 65536 bytes at \
                offset 16777216 (zone 1): crc32c of the data: expected ";
    assert!(said.contains(says), "{said}");
    let says = "job a: verify: 16711680 of 33554432 bytes are missing or could not be read";
    assert!(said.contains(says), "{said}");
    let forgetful = serve(&scratch, &["--no-timing", "--data", "none"]);
    let output = fio(write, &forgetful.url(), &[]);
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(verify(&output), [84, 512, 512]);
    let says = "no header: expected magic 0xacca, found 0x0000";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
}

/// In real time each job has a thread of its own, which is named after it.
#[test]
fn jobs_run_in_threads_of_their_own() {
    let scratch = Scratch::new("fio-threads");
    let jobs = "[writer]\nrw=write\nbs=16k\nnumjobs=3\noffset_increment=2z\nsize=2z\n\
                time_based\nruntime=30\n[reader]\nrw=randread\nbs=4k\nruntime=30\ntime_based\n\
                read_beyond_wp=1\n";
    let jobs = scratch.write("threads.fio", jobs);
    let served = serve(&scratch, &[]);
    for device in ["confznspp?clock=real", &served.url()] {
        let args = ["fio", &jobs, "--device", device, "--json"];
        let mut running = scratch
            .command(&args)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let tasks = format!("/proc/{}/task", running.id());
        let names = || -> Vec<String> {
            let tasks = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
            let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
            let mut names: Vec<String> = tasks.filter_map(|task| name(task).ok()).collect();
            names.retain(|name| ["writer\n", "reader\n"].contains(&name.as_str()));
            names.sort();
            names
        };
        // They are there once the program has begun; it runs for half a minute.
        let expected = ["reader\n", "writer\n", "writer\n", "writer\n"];
        while running.try_wait().unwrap().is_none() && names() != expected {
            std::thread::yield_now();
        }
        assert!(
            running.try_wait().unwrap().is_none(),
            "{device}: no threads"
        );
        let process = Pid::from_child(&running);
        kill_process(process, Signal::INT).unwrap();
        assert_eq!(running.wait().unwrap().code(), Some(130), "{device}");
    }
}

/// Two jobs replay logs into the same zones, one behind the other and at once: on
/// any device as much comes out.
#[test]
fn traces_are_replayed_on_any_device() {
    let scratch = Scratch::new("fio-replay");
    let mut log = "fio version 3 iolog\n0 /dev/a add\n0 /dev/a open\n".to_owned();
    for nth in 0..200 {
        let (at, offset) = (nth * 100, nth * 16_384);
        log += &format!("{at} /dev/a write {offset} 16384\n");
        if nth % 4 == 3 {
            log += &format!("{at} /dev/a read {offset} 4096\n");
        }
    }
    scratch.write("a.log", &log);
    let jobs = "[global]\nioengine=libaio\niodepth=4\nread_iolog=a.log\nsize=8z\n\
                [alone]\n[again]\nstonewall\n[other]\nstonewall\nreplay_zones=append\nread_beyond_wp=1\nnumjobs=2\n\
                replay_scale=4\nreplay_align=4096\n";
    let jobs = scratch.write("replay.fio", jobs);
    let served = serve(&scratch, &["--no-timing"]);
    let url = served.url();
    let run = |device: &str, more: &[&str]| -> Vec<(String, [u64; 6])> {
        let args = ["fio", &jobs, "--device", device, "--json"];
        let output = scratch
            .command(&[&args[..], more].concat())
            .output()
            .unwrap();
        assert!(output.status.success(), "{device}: {}", stderr(&output));
        amounts(&serde_json::from_slice(&output.stdout).unwrap())
    };
    let simulated = run("confznspp", &SMALL);
    let [error, operations, bytes, ..] = simulated[0].1;
    assert_eq!(
        (error, operations, bytes),
        (0, 250, 200 * 16_384 + 50 * 4_096)
    );
    assert_eq!(run("confznspp?clock=real", &SMALL), simulated);
    assert_eq!(run(&url, &[]), simulated);
}

/// What was to be verified and is not there is an error, counted in bytes.
#[test]
fn what_is_missing_is_not_verified() {
    let scratch = Scratch::new("fio-missing");
    let served = serve(&scratch, &["--no-timing"]);
    let fio = |text: &str| {
        scratch.write("job.fio", text);
        scratch.fio(&["job.fio", "--json", "--device", &served.url()])
    };
    let missing = |output: &std::process::Output| {
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let verify = &result["jobs"][0]["zonelab"]["verify"];
        let error = result["jobs"][0]["error"].as_u64();
        (
            error,
            verify["bytes"].as_u64(),
            verify["missing_bytes"].as_u64(),
        )
    };
    const ZONE: u64 = 16 << 20;
    let write = "[a]\nrw=write\nverify=crc32c\nbs=64k\nsize=3z\nioengine=libaio\niodepth=8\n";
    let read = "[a]\nrw=read\nverify=crc32c\nbs=64k\noffset=8z\nsize=2z\n";
    let only = format!("{write}verify_only\n");
    assert!(fio(write).status.success());
    let output = fio(&only);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(missing(&output), (Some(0), Some(3 * ZONE), Some(0)));
    let (controller, mut queue) = served.connect();
    let size = zonelab_device::QueuePair::info(&queue).namespaces[0]
        .zoned
        .unwrap()
        .zone_size_lbas;
    let reset = Op::ZoneSend {
        slba: Lba(size),
        action: zonelab_nvme::zns::ZoneSendAction::RESET,
        select_all: false,
    };
    assert!(run(&mut queue, reset, None).status.is_success());
    drop((queue, controller));
    let output = fio(&only);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert_eq!(missing(&output), (Some(84), Some(2 * ZONE), Some(ZONE)));
    let says = "job a: verify: 16777216 of 50331648 bytes are missing or could not be read";
    assert!(said.contains(says), "{said}");
    // Where chance decided what was written, nobody can tell.
    let random = only.replace("rw=write", "rw=randwrite");
    let output = fio(&random);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("nobody knows whether that is all"), "{said}");
    let output = fio(read);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(
        said.contains("nothing was there that could be verified"),
        "{said}"
    );
}

/// What is behind the first error was not tried, and is not missing.
#[test]
fn what_was_not_tried_is_not_missing() {
    let scratch = Scratch::new("fio-untried");
    scratch.write(
        "faults.toml",
        "[[fault]]\non = \"read\"\nlbas = \"4352..=4367\"\neffect = \"media-error\"\n",
    );
    let served = serve(&scratch, &["--no-timing", "--faults", "faults.toml"]);
    let write = "[a]\nrw=write\nverify=crc32c\nbs=64k\nsize=3z\ndo_verify=0\n";
    let fio = |text: &str| {
        scratch.write("job.fio", text);
        scratch.fio(&["job.fio", "--json", "--device", &served.url()])
    };
    assert!(fio(write).status.success());
    let only = "[a]\nrw=write\nverify=crc32c\nbs=64k\nsize=3z\nverify_only\n";
    const ZONE: u64 = 16 << 20;
    const BLOCK: u64 = 64 << 10;
    for (more, missing, untried) in [
        // The 17th block of the second zone is the last that is tried.
        ("", BLOCK, 3 * ZONE - (ZONE + 17 * BLOCK)),
        ("continue_on_error=read\n", BLOCK, 0),
    ] {
        let output = fio(&format!("{only}{more}"));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(5), "{said}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let verify = &result["jobs"][0]["zonelab"]["verify"];
        assert_eq!(verify["missing_bytes"], missing, "{more}: {verify}");
        assert_eq!(verify["untried_bytes"], untried, "{more}: {verify}");
        let is_said = said.contains("were not looked at, since the job ended with its first error");
        assert_eq!(is_said, untried > 0, "{said}");
    }
}

/// Writes carry data where it is kept, as in fio, and the seed decides what.
#[test]
fn writes_carry_what_fio_fills_its_buffers_with() {
    const LBA: usize = 4096;
    let scratch = Scratch::new("fio-contents");
    let store = ["--no-timing", "--store", "drive"];
    let served = serve(&scratch, &store);
    // The first blocks of zone 0 after a job.
    let written = |more: &str| -> Vec<Vec<u8>> {
        scratch.write(
            "job.fio",
            &format!("[a]\nrw=write\nbs=16k\nsize=1z\nio_size=64k\n{more}"),
        );
        let output = scratch.fio(&["job.fio", "--overwrite", "--device", &served.url()]);
        assert!(output.status.success(), "{}", stderr(&output));
        let (_controller, mut queue) = served.connect();
        let read = |block| {
            let op = Op::Read {
                slba: Lba(block),
                nlb: 1,
            };
            let done = run(&mut queue, op, Some(Buf::zeroed(LBA)));
            assert!(done.status.is_success());
            done.data.unwrap().to_vec()
        };
        let blocks: Vec<Vec<u8>> = (0..16).map(read).collect();
        let reset = Op::ZoneSend {
            slba: Lba(0),
            action: zonelab_nvme::zns::ZoneSendAction::RESET,
            select_all: false,
        };
        assert!(run(&mut queue, reset, None).status.is_success());
        blocks
    };
    let random = written("");
    let zeros = random.iter().flatten().filter(|byte| **byte == 0).count();
    assert!(
        zeros < 16 * LBA / 100,
        "{zeros} bytes of {} are zero",
        16 * LBA
    );
    let different: std::collections::BTreeSet<_> = random.iter().collect();
    assert_eq!(different.len(), 16, "no two blocks are equal");
    assert_eq!(written(""), random, "the seed decides");
    assert!(
        written("zero_buffers=1\n")
            .iter()
            .flatten()
            .all(|byte| *byte == 0)
    );
    let pattern = written("buffer_pattern=0xabcd\n");
    assert!(
        pattern
            .iter()
            .all(|block| block.chunks(2).all(|pair| pair == [0xab, 0xcd]))
    );
}
