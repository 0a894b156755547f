//! What `fio` and `kv` say beside their numbers: work of the drive, and of whom it is.

use serde_json::Value;

use super::idle::stdout;
use super::scratch::{Scratch, stderr};

#[test]
fn fio_says_what_the_drive_did_and_put_off() {
    let scratch = Scratch::new("idle-fio-drive");
    let fio = |device: &str, more: &[&str]| {
        let job = ["--name=w", "--rw=write", "--bs=128k", "--iodepth=8"];
        let few = ["--number_ios=64", "--zonemode=zbd", "--size=100%"];
        let args = [&["fio", "--device", device][..], &job, &few, more].concat();
        stdout(&scratch.zonelab(&args))
    };
    let said = fio("qlc-cached", &[]);
    assert!(
        said.contains("drive: read=0B, written=8.00MiB, programmed=8.00MiB (DLWA 1.000)"),
        "{said}"
    );
    assert!(
        said.contains("was still owed at the end (8 MiB in its cache to be folded, "),
        "{said}"
    );
    let json: Value = serde_json::from_str(&fio("qlc-cached", &["--output-format=json"])).unwrap();
    let drive = &json["zonelab"]["drive"];
    assert_eq!(drive["host_write_bytes"], 8 << 20);
    assert_eq!(drive["owed"]["cached_bytes"], 8 << 20);
    assert!(drive["owed"]["unit_ns"].as_u64() > drive["unit_busy_ns"].as_u64());
    let said = fio("confznspp", &[]);
    assert!(
        said.contains("(DLWA 1.000)") && !said.contains("owed"),
        "{said}"
    );
}

/// Who reads while another writes has no part in what the writer did.
#[test]
fn kv_counts_what_was_asked_for() {
    let scratch = Scratch::new("idle-kv-counted");
    let kv = [
        "kv",
        "readwhilewriting",
        "--device",
        "confznspp",
        "--records=2000",
    ];
    let said = stdout(&scratch.zonelab(&[&kv[..], &["--operations=5000", "--repeats=2"]].concat()));
    let first = said.lines().next().unwrap();
    assert!(first.contains(": 10000 of 10000 operations in "), "{first}");
    assert!(
        first.contains(" beside them, of clients without a number"),
        "{first}"
    );
}

const LOSS: &str =
    "[[fault]]\non = \"time\"\nat = \"18ms\"\neffect = \"power-cut\"\noff = \"1ms\"\n";

/// A drive without protection lost a part of what was acknowledged: whoever reads it back hears of
/// it, whether it says how much there should be or not.
#[test]
fn verification_misses_what_a_loss_of_power_took() {
    let scratch = Scratch::new("counted-verify");
    scratch.write("loss.toml", LOSS);
    let drive = [
        "--device=zn540",
        "--set",
        "write_buffer.power_loss_protection=false",
    ];
    let write = [
        "fio",
        "--name=v",
        "--rw=write",
        "--bs=4k",
        "--size=1z",
        "--io_size=6m",
        "--verify=crc32c",
        "--do_verify=0",
        "--name=idle",
        "--startdelay=100ms",
        "--rw=read",
        "--size=1z",
        "--number_ios=1",
        "--faults=loss.toml",
        "--snapshot=loss.state",
    ];
    scratch.zonelab(&[&write[..], &drive].concat());
    let read = [
        "fio",
        "--name=v",
        "--rw=read",
        "--bs=4k",
        "--size=1z",
        "--verify=crc32c",
        "--restore=loss.state",
        "--output-format=json",
    ];
    let verified = |more: &[&str]| {
        let output = scratch.zonelab(&[&read[..], &drive, more].concat());
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let verify = json["jobs"][0]["zonelab"]["verify"].clone();
        (output.status.code(), stderr(&output), verify)
    };
    let (code, said, verify) = verified(&["--io_size=6m"]);
    let missing = verify["missing_bytes"].as_u64().unwrap();
    assert_eq!(code, Some(5), "{said}");
    assert!(
        missing > 0 && verify["bytes"].as_u64().unwrap() + missing == 6 << 20,
        "{verify}"
    );
    assert!(said.contains("bytes are missing"), "{said}");
    let (code, said, verify) = verified(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        verify["unwritten_bytes"].as_u64().unwrap() > 1 << 30,
        "{verify}"
    );
    assert!(said.contains("nobody said how much was written"), "{said}");
}

/// Zones that reads at random leave out are those that hold nothing, however many were drawn.
#[test]
fn zones_left_out_are_counted_by_what_they_hold() {
    let scratch = Scratch::new("counted-empty");
    for operations in ["64", "5000"] {
        let count = format!("--number_ios={operations}");
        let job = [
            "fio",
            "--name=r",
            "--rw=randread",
            "--bs=4k",
            &count,
            "--device=zn540",
        ];
        let said = stderr(&scratch.zonelab(&[&job[..], &["--full-zones=0..=3"]].concat()));
        assert!(
            said.contains("900 of 904 zones were not read"),
            "{operations}: {said}"
        );
    }
}

#[test]
fn reports_of_zones_go_with_verification_and_say_what_they_know() {
    let scratch = Scratch::new("counted-zones");
    let job = [
        "fio",
        "--name=v",
        "--rw=write",
        "--bs=64k",
        "--size=1z",
        "--device=small-zones",
    ];
    let report = ["--zone-report=z.csv"];
    stdout(&scratch.zonelab(&[&job[..], &report, &["--verify=crc32c"]].concat()));
    assert!(scratch.read("z.csv").contains("\n0,FULL,8192\n1,EMPTY,0\n"));
    let fault = "[[fault]]\non = \"write\"\nzones = \"0..=0\"\nskip = 100\ncount = 1\neffect = ";
    for (effect, expected) in [
        ("read-only", "\n0,READONLY,\n"),
        ("offline", "\n0,OFFLINE,\n"),
    ] {
        scratch.write("dead.toml", &format!("{fault}\"{effect}\"\n"));
        scratch.zonelab(&[&job[..], &report, &["--faults=dead.toml"]].concat());
        let zones = scratch.read("z.csv");
        assert!(zones.contains(expected), "{effect}: {}", &zones[..80]);
    }
}

#[test]
fn a_drive_that_a_job_names_and_that_is_not_used_is_named() {
    let scratch = Scratch::new("counted-names");
    let job = [
        "fio",
        "--name=v",
        "--rw=write",
        "--size=1z",
        "--device=small-zones",
    ];
    let said = |name: &str| stderr(&scratch.zonelab(&[&job[..], &[name]].concat()));
    let other = said("--filename=tcp://127.0.0.1:1/x?nsid=2");
    assert!(other.contains("tcp://127.0.0.1:1/x?nsid=2 is not used: --device names small-zones"));
    assert!(said("--filename=zn540").contains("zn540 is not used"));
    assert!(!said("--filename=/dev/nvme0n1").contains("not used"));
    assert!(!said("--filename=small-zones").contains("not used"));
}

/// What fio says of its drive in JSON, and in words.
fn drive_of(scratch: &Scratch, args: &[&str]) -> (Value, String) {
    let json = [&["fio"], args, &["--output-format=json"]].concat();
    let json: Value = serde_json::from_str(&stdout(&scratch.zonelab(&json))).unwrap();
    let said = stdout(&scratch.zonelab(&[&["fio"], args].concat()));
    (json["zonelab"]["drive"].clone(), said)
}

/// What a finish leaves to be filled is owed from the moment at which it completes, also while the
/// write buffer still has data of its zone; 20 ms later some of it has been filled.
#[test]
fn what_a_finish_leaves_is_owed_at_once() {
    let scratch = Scratch::new("owed-finish");
    let job = ["--name=w", "--rw=write", "--bs=64k", "--size=1z"];
    let finish = ["--finish=1", "--device", "qlc-cached"];
    let (at_once, said) = drive_of(&scratch, &[&job[..], &finish].concat());
    let later = ["--name=later", "--rw=randread", "--size=1z", "--bs=4k"];
    let beside = ["--number_ios=1", "--startdelay=20ms"];
    let all = [&job[..], &finish, &later, &beside].concat();
    let (afterwards, _) = drive_of(&scratch, &all);
    let unfilled = |of: &Value| of["owed"]["unfilled_bytes"].as_u64().unwrap();
    let filled = afterwards["fill_program_bytes"].as_u64().unwrap();
    assert!(filled > 0, "{afterwards}");
    assert_eq!(unfilled(&at_once), unfilled(&afterwards) + filled);
    assert!(
        said.contains("(64 KiB in its cache to be folded, "),
        "{said}"
    );
}

/// Erasures of 3 ms are over on no die after a third of a millisecond, whether the drive has given
/// all 256 of them to its 32 dies at once or one to each.
#[test]
fn what_has_begun_and_is_not_over_is_owed() {
    let scratch = Scratch::new("owed-under-way");
    let job = [
        "--name=t",
        "--rw=trim",
        "--size=64z",
        "--device",
        "small-zones",
    ];
    let at_once = ["reset.preemptive=false", "reset.max_hold="];
    let at_once = ["--set", at_once[0], "--set", at_once[1]];
    for (set, stale_blocks) in [(&at_once[..], 0), (&[], 448)] {
        let args = [&job[..], &["--full-zones", "0..=63"], set].concat();
        let (drive, said) = drive_of(&scratch, &args);
        let owed = |key: &str| drive["owed"][key].as_u64().unwrap();
        assert_eq!(owed("stale_blocks"), stale_blocks);
        assert_eq!(drive["erased_blocks"], 512 - stale_blocks);
        let (all_ns, done_ns) = (256 * 3_000_000, 32 * 320_000);
        let whole = all_ns - done_ns..all_ns;
        assert!(whole.contains(&owed("unit_ns")), "{drive}");
        let put_off = stale_blocks / 2 * 3_000_000;
        assert_eq!(owed("unit_ns"), owed("under_way_ns") + put_off);
        assert!(
            said.contains(" ms of work under way), more than all"),
            "{said}"
        );
    }
}

/// What was written and is neither programmed nor on its way there is in the write buffer, and
/// a write amplification below 1 is not left without that.
#[test]
fn what_is_in_the_write_buffer_is_owed() {
    let scratch = Scratch::new("owed-buffered");
    let job = ["--name=w", "--rw=randwrite", "--bs=4k", "--size=8z"];
    let few = ["--io_size=4m", "--device", "qlc-buffered"];
    let (drive, said) = drive_of(&scratch, &[&job[..], &few].concat());
    let held = drive["owed"]["buffered_bytes"].as_u64().unwrap();
    let programmed = drive["host_program_bytes"].as_u64().unwrap();
    assert_eq!(drive["host_write_bytes"], 4 << 20);
    assert_eq!(held + programmed, 4 << 20, "no page is programmed in part");
    assert!(said.contains(" KiB in its write buffer, "), "{said}");
    let of = "is of programs until the end, at which ";
    assert!(said.contains(&format!("DLWA 0.812 {of}768 KiB")), "{said}");
    let kv = ["kv", "ycsb-c", "--device", "zn540", "--records=2000"];
    let said = stdout(&scratch.zonelab(&[&kv[..], &["--operations=2000"]].concat()));
    assert!(said.contains(of), "{said}");
}

/// Finishes count the bytes that they fill: nothing, where only the state of the zone changes.
#[test]
fn finishes_count_what_they_fill() {
    let scratch = Scratch::new("finish-counts");
    let job = [
        "--name=f",
        "--rw=write",
        "--bs=64k",
        "--size=4z",
        "--finish=1",
    ];
    for (device, fills) in [("small-zones", false), ("confznspp", true)] {
        let args = [
            &["fio"],
            &job[..],
            &["--device", device, "--output-format=json"],
        ]
        .concat();
        let json: Value = serde_json::from_str(&stdout(&scratch.zonelab(&args))).unwrap();
        let drive = &json["zonelab"]["drive"];
        assert_eq!(drive["finishes"], 4, "{device}");
        assert_eq!(drive["fill_program_bytes"].as_u64() > Some(0), fills);
        let write = &json["jobs"][0]["write"];
        assert_eq!(write["io_bytes"], drive["fill_program_bytes"], "{device}");
        assert_eq!(write["total_ios"], 4, "{device}");
    }
}
