//! `zonelab fio --against`: the same jobs on two devices.

use serde_json::Value;

use super::fio_devices::{SMALL, serve};
use super::scratch::{Scratch, stderr};

/// A job file whose jobs end by their sizes, on two devices.
const TWO: &str = "
[global]
ioengine=libaio
[write]
rw=write
bs=64k
iodepth=4
size=2z
[read]
stonewall
rw=randread
bs=16k
iodepth=8
size=2z
number_ios=20000
";

fn against(scratch: &Scratch, devices: [&str; 2], more: &[&str]) -> (Option<i32>, String, String) {
    scratch.write("two.fio", TWO);
    let [first, second] = devices;
    let args = ["fio", "two.fio", "--device", first, "--against", second];
    let output = scratch.command(&args).args(more).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output.status.code(), text, stderr(&output))
}

/// The same profile with the same seed is the same drive; another one is not.
#[test]
fn devices_are_compared_metric_by_metric() {
    let scratch = Scratch::new("fio-against");
    let (code, text, said) = against(&scratch, ["confznspp", "confznspp"], &["--json"]);
    assert_eq!(code, Some(0), "{text}{said}");
    let same: Value = serde_json::from_str(&text).unwrap();
    let metrics = same["metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), 12, "two jobs, six metrics each: {text}");
    for metric in metrics {
        assert_eq!(metric["difference"]["value"], 0.0, "{metric}");
    }
    assert_eq!(same["differ"], 0);
    let (code, text, _) = against(&scratch, ["confznspp", "zn540"], &["--out", "both"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("DIFFERS") && text.contains("an empty command takes"));
    // In virtual time there is no way that could add anything, whatever a drive does.
    let both = scratch.read("both/agreement.json");
    let both: Value = serde_json::from_str(&both).unwrap();
    for metric in both["metrics"].as_array().unwrap() {
        assert_eq!(
            metric["tolerated"],
            serde_json::json!([-0.03, 0.03]),
            "{metric}"
        );
    }
    for name in [
        "first.json",
        "second.txt",
        "agreement.json",
        "agreement.txt",
    ] {
        assert!(scratch.0.join("both").join(name).exists(), "{name}");
    }
    assert_eq!(scratch.read("both/agreement.txt"), text);
}

/// Over the network, one after the other, on one connection each.
#[test]
fn a_served_drive_is_compared_with_a_model() {
    let scratch = Scratch::new("fio-against-served");
    let served = serve(&scratch, &["--no-timing"]);
    let url = served.url();
    let devices = ["confznspp", url.as_str()];
    let (code, text, said) = against(&scratch, devices, &SMALL);
    assert_eq!(
        code,
        Some(1),
        "a drive that answers at once differs: {text}{said}"
    );
    let (code, _, said) = against(&scratch, devices, &SMALL);
    assert_eq!(code, Some(2), "its zones hold data now: {said}");
    assert!(said.contains("--overwrite"), "{said}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let scratch = Scratch::new("fio-against-refused");
    let one = ["confznspp", "confznspp"];
    for (devices, more, code, needle) in [
        (one, &["--trace", "t"][..], 2, "--trace is about one run"),
        (one, &["--snapshot", "s"], 2, "--snapshot is about one run"),
        (
            one,
            &["--zone-report", "z"],
            2,
            "--zone-report is about one run",
        ),
        (
            one,
            &["--tolerance", "most"],
            2,
            "--tolerance most: a number",
        ),
        (one, &["--tolerance=-1"], 2, "--tolerance -1: a number"),
        (["confznspp", "nonesuch"], &[], 3, "nonesuch"),
        (["confznspp", "/dev/nvme0n1"], &[], 2, "/dev/nvme0n1"),
    ] {
        let (is, _, said) = against(&scratch, devices, more);
        assert_eq!(is, Some(code), "{devices:?} {more:?}: {said}");
        assert!(said.contains(needle), "{needle}: {said}");
    }
}
