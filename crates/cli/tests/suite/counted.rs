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
        said.contains("was still owed at the end (8 MiB in its cache to be folded)"),
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
