//! What `fio` and `kv` say beside their numbers: work of the drive, and of whom it is.

use serde_json::Value;

use super::idle::stdout;
use super::scratch::Scratch;

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
