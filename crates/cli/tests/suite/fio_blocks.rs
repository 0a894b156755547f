//! `zonelab fio` on a namespace without zones, and what jobs may have of latencies,
//! processors and each other.

use serde_json::Value;

use super::fio_jobs::{example, job};
use super::scratch::{Scratch, stderr};
use super::store::Served;

/// A drive without zones, of 720 MiB.
const CONVENTIONAL: [&str; 6] = [
    "--set",
    "zones.capacity=16MiB",
    "--set",
    "zones.size=16MiB",
    "--set",
    "namespaces=[{kind=\"conventional\", zones=48, spare_zones=3}]",
];

const JOBS: &str = "
[global]
ioengine=libaio
[fill]
rw=write
bs=64k
size=8m
iodepth=4
[again]
stonewall
rw=randwrite
bs=4k
size=4m
iodepth=8
[mix]
stonewall
rw=randrw
bs=16k
size=8m
[parts]
stonewall
rw=read
zonemode=strided
zonesize=64k
zoneskip=64k
bs=16k
size=4m
[trim]
stonewall
rw=trim
bs=1m
offset=4m
size=4m
[rewrite]
stonewall
rw=randtrimwrite
bs=32k
size=2m
iodepth=4
";

/// Operations of all directions that each of [`JOBS`] does.
const OPERATIONS: [(&str, u64); 6] = [
    ("fill", 128),
    ("again", 1024),
    ("mix", 512),
    ("parts", 256),
    ("trim", 4),
    ("rewrite", 128),
];

fn assert_all_done(result: &Value) {
    for (name, operations) in OPERATIONS {
        let job = job(result, name);
        let of = |direction: &str| job[direction]["total_ios"].as_u64().unwrap();
        let all: u64 = ["read", "write", "trim"].map(of).iter().sum();
        assert_eq!(
            (all, job["error"].as_u64()),
            (operations, Some(0)),
            "{name}"
        );
    }
    assert_eq!(job(result, "rewrite")["trim"]["io_bytes"], 2 << 20);
}

#[test]
fn jobs_run_on_a_namespace_without_zones() {
    let scratch = Scratch::new("fio-blocks");
    scratch.write("job.fio", JOBS);
    for device in ["confznspp", "confznspp?clock=real"] {
        let args = [&["job.fio", "--device", device], &CONVENTIONAL[..]].concat();
        assert_all_done(&scratch.json(&args));
    }
    for (option, says) in [
        (
            ["--full-zones", "all"],
            "--full-zones: namespace 1 has no zones",
        ),
        (
            ["--zone-report", "z.csv"],
            "--zone-report: namespace 1 has no zones",
        ),
    ] {
        let args = [
            &["job.fio", "--device", "confznspp"],
            &CONVENTIONAL[..],
            &option,
        ];
        let output = scratch.fio(&args.concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}

#[test]
fn a_served_namespace_without_zones_is_not_overwritten_unasked() {
    let scratch = Scratch::new("fio-blocks-tcp");
    scratch.write("job.fio", JOBS);
    let serve = ["serve", "confznspp", "--log", "warn", "--json"];
    let listen = ["--listen", "127.0.0.1:0"];
    let served = [&serve[..], &listen, &CONVENTIONAL].concat();
    let served = Served::start(scratch.command(&served));
    let url = served.url();
    let args = ["job.fio", "--device", &url];
    let output = scratch.fio(&args);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let says = "bytes 0 to 8388608 of namespace 1";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    assert_all_done(&scratch.json(&[&args[..], &["--overwrite"]].concat()));
}

#[test]
fn shares_and_latencies_are_kept_to() {
    let scratch = Scratch::new("fio-shares");
    let full = ["--device", "confznspp", "--full-zones", "0..2"];
    let shares = "[global]\nrw=randread\nsize=2z\ntime_based\nruntime=20ms\n\
                  [a]\nflow=3\n[b]\nflow=1\n[alone]\nflow=5\nflow_id=7\n";
    scratch.write("shares.fio", shares);
    let result = scratch.json(&[&["shares.fio"], &full[..]].concat());
    let reads = |name: &str| job(&result, name)["read"]["total_ios"].as_u64().unwrap();
    let (a, b) = (reads("a"), reads("b"));
    assert!(a.abs_diff(3 * b) <= 3, "{a} and {b}");
    assert!(reads("alone") > 2 * b, "it shares with nobody");

    scratch.write("late.fio", "[a]\nrw=randread\nsize=2z\nmax_latency=20\n");
    let output = scratch.fio(&[&["late.fio", "--json"], &full[..]].concat());
    assert_eq!(output.status.code(), Some(5));
    let says = "zonelab: job a: an operation took ";
    assert!(stderr(&output).starts_with(says), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(job(&result, "a")["error"], 110);
}

#[test]
fn threads_run_on_processors_that_there_are() {
    let scratch = Scratch::new("fio-cpus");
    let run = |device: &str, cpus: &str| {
        let text = format!("[a]\nrw=write\nsize=1z\nio_size=1m\nnumjobs=2\ncpus_allowed={cpus}\n");
        scratch.write("job.fio", &text);
        scratch.fio(&["job.fio", "--device", device])
    };
    let output = run("confznspp?clock=real", "1023");
    assert_eq!(output.status.code(), Some(3));
    let says = "job a: cpus_allowed: there is no processor 1023";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    let output = run("confznspp", "1023");
    assert!(output.status.success(), "{}", stderr(&output));
    let says = "cpus_allowed: has no meaning in virtual time";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
}

#[test]
fn a_job_that_takes_no_time_ends() {
    let scratch = Scratch::new("fio-timeless");
    let text = "[a]\nrw=randread\nsize=2z\nread_beyond_wp=1\ntime_based\nruntime=10ms\n";
    scratch.write("job.fio", text);
    // Its front end takes no time either.
    let output = scratch.fio(&["job.fio", "--device", "confznspp"]);
    assert_eq!(output.status.code(), Some(5));
    let says = "job a: 131072 operations began at one time and none of them took any";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    let output = scratch.fio(&[
        "job.fio",
        "--device",
        "confznspp",
        "--host-stack",
        "io_uring",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn blocks_without_zones_are_verified() {
    let scratch = Scratch::new("fio-blocks-verify");
    let jobs = "[random]\nrw=randwrite\nbs=4k\nsize=4m\niodepth=8\nioengine=libaio\nverify=crc32c\n\
                [mixed]\nstonewall\nrw=randrw\nbsrange=4k-32k\nsize=8m\nverify=sha256\n\
                verify_backlog=100\n[order]\nstonewall\nrw=write\nbs=64k\nsize=4m\nverify=md5\n";
    scratch.write("job.fio", jobs);
    let args = [&["job.fio", "--device", "confznspp"], &CONVENTIONAL[..]].concat();
    let result = scratch.json(&args);
    for (name, least) in [("random", 1024), ("mixed", 128), ("order", 64)] {
        let of = job(&result, name);
        let verified = &of["zonelab"]["verify"];
        assert_eq!(verified["wrong"], 0, "{name}: {of}");
        let writes = of["write"]["total_ios"].as_u64().unwrap();
        assert_eq!(verified["total_ios"].as_u64(), Some(writes), "{name}");
        assert!(writes >= least, "{name}: {writes}");
    }
}

/// What is longer than one command (256 KiB) is sent in parts: of a write one after the other, of
/// a read side by side; and it is counted and timed as one operation, in virtual time and in real.
#[test]
fn long_commands_are_sent_in_parts() {
    let scratch = Scratch::new("fio-parts");
    let of = |rw: &str, bs: &str| {
        let (rw, bs) = (format!("--rw={rw}"), format!("--bs={bs}"));
        let job = ["--name=p", &rw, &bs, "--size=2z", "--ioengine=libaio"];
        let drive = ["--device", "small-zones", "--full-zones=2..=3"];
        let place = ["--offset=2z"];
        let place = if rw.ends_with("read") {
            &place[..]
        } else {
            &[]
        };
        let json = scratch.json(&[&job[..], &drive, place].concat());
        let side = json["jobs"][0][&rw[5..]].clone();
        let ns = side["lat_ns"]["mean"].as_f64().unwrap();
        (side["total_ios"].as_u64().unwrap(), ns)
    };
    let (writes, write_ns) = of("write", "2m");
    let (small, small_ns) = of("write", "256k");
    assert_eq!((writes, small), (32, 256));
    assert!(
        (write_ns / small_ns - 8.0).abs() < 0.1,
        "{write_ns} {small_ns}"
    );
    let (reads, read_ns) = of("read", "2m");
    let (small, small_ns) = of("read", "256k");
    assert_eq!((reads, small), (32, 256));
    assert!(read_ns < 5.0 * small_ns, "{read_ns} {small_ns}");
    for clock in ["small-zones", "small-zones?clock=real"] {
        let job = ["--name=p", "--rw=write", "--bs=1m", "--size=1z"];
        let verified = ["--verify=crc32c", "--iodepth=4", "--ioengine=io_uring"];
        let json = scratch.json(&[&job[..], &verified, &["--device", clock]].concat());
        let job = &json["jobs"][0];
        assert_eq!(job["error"], 0, "{clock}");
        assert_eq!(job["write"]["io_bytes"], 32 << 20, "{clock}");
        assert_eq!(job["zonelab"]["verify"]["bytes"], 32 << 20, "{clock}");
    }
    // What parts find is what the whole finds: here, nothing.
    let fdp = example("fdp.toml");
    let empty = ["--name=e", "--rw=read", "--bs=1m", "--size=16m"];
    let limit = ["--set=front_end.max_transfer=128KiB"];
    let json = scratch.json(&[&empty[..], &limit, &["--device", &fdp]].concat());
    let nothing = &json["jobs"][0]["zonelab"]["nothing_ios"];
    assert_eq!(nothing["read"], 16, "{nothing}");
    let refused = scratch.fio(&[
        "--name=p",
        "--rw=write",
        "--bs=2m",
        "--size=1z",
        "--ioengine=io_uring_cmd",
        "--device=small-zones",
    ]);
    assert_eq!(refused.status.code(), Some(3));
    let said = stderr(&refused);
    assert!(
        said.contains("engines of the block layer send more in parts"),
        "{said}"
    );
}

/// Writes of two jobs go to handles of their own: each fills reclaim units of its own.
#[test]
fn jobs_say_where_a_drive_puts_their_writes() {
    let scratch = Scratch::new("fio-fdp");
    let fdp = example("fdp.toml");
    let job = ["--name=hot", "--rw=randwrite", "--bs=16k", "--size=25%"];
    let more = ["--io_size=1g", "--fdp=1", "--plids=0"];
    let cold = ["--name=cold", "--rw=write", "--bs=16k", "--offset=50%"];
    let cold_more = ["--size=40%", "--io_size=400m", "--fdp=1"];
    let dlwa = |plids: &str| {
        let drive = ["--device", &fdp];
        let args = [&job[..], &more, &cold, &cold_more, &[plids], &drive].concat();
        let json = scratch.json(&args);
        json["zonelab"]["drive"]["dlwa"].as_f64().unwrap()
    };
    let (together, apart) = (dlwa("--plids=0"), dlwa("--plids=2"));
    assert!(apart < 1.01 && together > 1.05, "{apart} {together}");
}

/// A part of a write fails: what the parts before it moved is written, and the next write goes
/// behind that, whichever job it is of.
#[test]
fn a_part_that_fails_costs_one_operation() {
    let scratch = Scratch::new("fio-parts-fail");
    let fault = "[[fault]]\non = \"write\"\nskip = 5\ncount = 1\neffect = \"fail\"\n";
    scratch.write("fault.toml", fault);
    let job = ["--rw=write", "--bs=1m", "--size=2z", "--faults=fault.toml"];
    let drive = ["--device=small-zones", "--continue_on_error=all"];
    let json = ["--output-format=json"];
    let output = scratch.fio(&[&["--name=a"], &job[..], &drive, &json].concat());
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let job_of = &json["jobs"][0];
    assert_eq!(job_of["zonelab"]["failed_ios"], 1, "{job_of}");
    assert_eq!(job_of["zonelab"]["operations"]["write"], 63, "{job_of}");
    let rewrite = ["--name=r", "--rw=trimwrite", "--bs=1m", "--size=2z"];
    let faults = ["--faults=fault.toml"];
    let said = stderr(&scratch.fio(&[&rewrite[..], &faults, &drive].concat()));
    assert!(said.contains("job r: 1 operations failed"), "{said}");
    let other = ["--name=b", "--stonewall", "--rw=write", "--bs=1m"];
    let more = ["--size=2z", "--device=small-zones"];
    let args = [&["fio", "--name=a"], &job[..], &other, &more].concat();
    let said = stderr(&scratch.zonelab(&args));
    assert!(said.contains("job a: 1 operations failed"), "{said}");
    assert!(!said.contains("job b"), "{said}");
}

/// A job that goes on after errors asks the drive what a zone holds to which a command failed: a
/// write whose completion was lost is there, and a zone that died is left alone.
#[test]
fn a_job_goes_on_from_where_the_zone_stands() {
    let scratch = Scratch::new("fio-in-doubt");
    let failed_of = |fault: &str, options: &[&str]| {
        let fault = format!("[[fault]]\n{}\n", fault.replace(", ", "\n"));
        scratch.write("fault.toml", &fault);
        let args = [
            "--name=a",
            "--bs=64k",
            "--iodepth=1",
            "--device=small-zones",
        ];
        let more = [
            "--faults=fault.toml",
            "--continue_on_error=all",
            "--output-format=json",
        ];
        let output = scratch.fio(&[&args[..], &more, options].concat());
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let job = &json["jobs"][0];
        let operations = &job["zonelab"]["operations"];
        let done = ["write", "append", "reset"].map(|kind| operations[kind].as_u64().unwrap_or(0));
        let ended = json["jobs"][0]["zonelab"]["failed_ios"].as_u64().unwrap();
        (ended, done.iter().sum::<u64>())
    };
    let lost = "on = \"write\", skip = 5, count = 3, effect = \"lose\", timeout = \"1ms\"";
    let (failed, done) = failed_of(lost, &["--rw=write", "--size=4z"]);
    let all = failed_of(
        "on = \"read\", effect = \"media-error\"",
        &["--rw=write", "--size=4z"],
    );
    assert_eq!((failed, done), (3, all.1 - 3), "{all:?}");
    let lost = lost.replace("write", "append");
    let append = ["--rw=write", "--zone_append=1", "--size=4z"];
    assert_eq!(failed_of(&lost, &append), (3, all.1 - 3));

    let dies = "on = \"write\", skip = 5, count = 1, effect = \"read-only\"";
    let while_it = ["--size=4z", "--time_based", "--runtime=2"];
    for rw in ["--rw=write", "--rw=randwrite", "--rw=trimwrite"] {
        let (failed, done) = failed_of(dies, &[&[rw][..], &while_it].concat());
        assert!(failed == 1 && done > all.1, "{rw}: {failed} of {done}");
    }
    let offline = "on = \"time\", at = \"100us\", zones = \"1..=2\", effect = \"offline\"";
    let (failed, done) = failed_of(offline, &[&["--rw=write"][..], &while_it].concat());
    assert!(failed == 2 && done > all.1, "{failed} of {done}");
    let args = [
        "--name=a",
        "--rw=write",
        "--bs=64k",
        "--size=4z",
        "--device=small-zones",
    ];
    let more = ["--faults=fault.toml", "--continue_on_error=all"];
    let said = stderr(&scratch.fio(&[&args[..], &more].concat()));
    let left_alone = "job a: 2 of 4 zones are read only or offline, and were left alone";
    assert!(said.contains(left_alone), "{said}");
    // A full zone whose reset failed takes no place from others.
    let reset = "[[fault]]\non = \"reset\"\ncount = 1\neffect = \"fail\"\n";
    scratch.write("reset.toml", reset);
    let again = [
        "--name=a",
        "--rw=write",
        "--bs=64k",
        "--size=1z",
        "--time_based",
    ];
    let until = [
        "--runtime=2",
        "--max_open_zones=1",
        "--name=b",
        "--rw=write",
        "--bs=64k",
    ];
    let beside = [
        "--size=1z",
        "--offset=2z",
        "--startdelay=3",
        "--device=small-zones",
    ];
    let faults = ["--faults=reset.toml"];
    let said = stderr(&scratch.fio(&[&again[..], &until, &beside, &faults].concat()));
    assert!(
        said.contains("job a: 1 operations failed") && !said.contains("job b"),
        "{said}"
    );
    // Of one that is left no zone at all, the job ends.
    let offline = offline.replace("1..=2", "0..=3");
    let (failed, _) = failed_of(&offline, &[&["--rw=write"][..], &while_it].concat());
    assert_eq!(failed, 4);
}

/// After failures that are tolerated, what was written is read back.
#[test]
fn what_was_written_beside_failures_is_verified() {
    let scratch = Scratch::new("fio-verified");
    let fault = "[[fault]]\non = \"write\"\nskip = 5\ncount = 3\neffect = \"fail\"\n";
    scratch.write("fault.toml", fault);
    let verified = [
        "--name=a",
        "--rw=write",
        "--bs=64k",
        "--size=4z",
        "--verify=crc32c",
    ];
    let more = [
        "--device=small-zones",
        "--faults=fault.toml",
        "--continue_on_error=all",
    ];
    let json = ["--output-format=json"];
    let output = scratch.fio(&[&verified[..], &more, &json].concat());
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_job = &json["jobs"][0]["zonelab"];
    assert_eq!(of_job["failed_ios"], 3, "{of_job}");
    assert_eq!(
        of_job["operations"]["read"], of_job["operations"]["write"],
        "{of_job}"
    );
}

/// A zone that is reset has written nothing: it counts under `trim`, within the job's rate.
#[test]
fn resets_in_the_place_of_writes_are_no_bytes_written() {
    let scratch = Scratch::new("fio-reset");
    let job = [
        "--name=a",
        "--rw=write",
        "--bs=64k",
        "--size=4z",
        "--reset=1",
    ];
    let more = [
        "--device=small-zones",
        "--rate_iops=100",
        "--output-format=json",
    ];
    let output = scratch.fio(&[&job[..], &more].concat());
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let job = &json["jobs"][0];
    assert_eq!(job["write"]["io_bytes"], 0, "{job}");
    assert_eq!(job["trim"]["total_ios"], 4, "{job}");
    assert!(job["trim"]["runtime"].as_u64() > Some(29), "{job}");
}

/// Reads of a quiet drive are all alike: their job ends with the first interval after those that
/// are looked at.
#[test]
fn a_job_ends_when_it_is_steady() {
    let scratch = Scratch::new("fio-steady");
    let of = |criterion: &str, more: &[&str]| {
        let steady = format!("--steadystate={criterion}");
        let job = [
            "--device=small-zones",
            "--full-zones=all",
            "--name=a",
            "--rw=randread",
            "--bs=4k",
            "--iodepth=4",
            "--runtime=2",
            "--time_based",
            &steady,
            "--ss_dur=100ms",
            "--ss_ramp=50ms",
            "--ss_interval=10ms",
        ];
        scratch.fio(&[&job[..], more].concat())
    };
    let json = |output: std::process::Output| -> Value {
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        json["jobs"][0].clone()
    };
    for criterion in ["iops:5%", "bw_slope:1%", "lat:5%", "iops_slope:10"] {
        let job = json(of(criterion, &["--output-format=json"]));
        assert_eq!(job["steadystate"]["attained"], 1, "{criterion}: {job}");
        assert_eq!(job["job_runtime"], 150, "{criterion}: {job}");
        let (all, mean) = (
            &job["read"]["iops"],
            &job["steadystate"]["data"]["iops_mean"],
        );
        let ratio = all.as_f64().unwrap() / mean.as_f64().unwrap();
        assert!((0.98..1.02).contains(&ratio), "{criterion}: {ratio}");
    }
    let job = json(of("iops:0%", &["--output-format=json"]));
    assert_eq!(job["steadystate"]["attained"], 0, "{job}");
    assert_eq!(job["job_runtime"], 2000, "{job}");
    let text = String::from_utf8(of("iops:5%", &[]).stdout).unwrap();
    assert!(
        text.contains("  steadystate  : attained=yes, bw="),
        "{text}"
    );
    for (more, expected) in [
        (
            "--ss_dur=15ms",
            "its intervals do not fit into its duration",
        ),
        ("--ss_dur=0", "nothing says for how long"),
        ("--steadystate=iop:1%", "iops_slope"),
        ("--steadystate=iops", "no number in range"),
    ] {
        let output = of("iops:1%", &[more]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(expected), "{more}: {error}");
        assert!(!output.status.success(), "{more}");
    }
}
