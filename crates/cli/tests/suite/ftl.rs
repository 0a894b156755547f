//! `zonelab ftl` on a drive in a file, served and in this process, and what it refuses.

use std::process::{Command, Stdio};

use super::scratch::{Scratch, stderr};
use super::store::Served;

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/live.toml");

/// The drive in the file `drive`, in this process.
const HERE: [&str; 4] = ["--device", PROFILE, "--store", "drive"];

fn serve(scratch: &Scratch) -> Served {
    let listen = ["--listen", "127.0.0.1:0", "--json", "--store", "drive"];
    Served::start(scratch.command(&[&["serve", PROFILE, "--no-timing"], &listen[..]].concat()))
}

/// Switches a served drive off in good order.
fn interrupt(mut served: Served) {
    let pid = served.process.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    served.process.wait().unwrap();
}

/// Runs `zonelab ARGS...`: exit code, output and errors.
fn run(scratch: &Scratch, args: &[&[&str]]) -> (i32, String, String) {
    let output = scratch.zonelab(&args.concat());
    let said = stderr(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), text, said)
}

fn ok(scratch: &Scratch, args: &[&[&str]]) -> String {
    let (code, text, said) = run(scratch, args);
    assert_eq!(code, 0, "{args:?}: {text}{said}");
    text
}

fn json(scratch: &Scratch, args: &[&[&str]]) -> serde_json::Value {
    let args = [args, &[&["--json"][..]]].concat();
    serde_json::from_str(&ok(scratch, &args)).unwrap()
}

fn refused(scratch: &Scratch, args: &[&[&str]], code: i32, words: &str) {
    let (ended, text, said) = run(scratch, args);
    assert_eq!(ended, code, "{args:?}: {text}{said}");
    assert!(said.contains(words), "{args:?}: {said}");
}

/// A file of so many blocks, each with its own bytes.
fn blocks(scratch: &Scratch, name: &str, count: u32, seed: u32) {
    let word = |at: u32| (at / 1024 * 7919 + seed).to_le_bytes();
    let bytes: Vec<u8> = (0..count * 1024).flat_map(word).collect();
    std::fs::write(scratch.0.join(name), bytes).unwrap();
}

fn is_same(scratch: &Scratch, one: &str, other: &str) -> bool {
    let read = |name: &str| std::fs::read(scratch.0.join(name)).unwrap();
    read(one) == read(other)
}

#[test]
fn what_was_written_outlives_sigkill_and_is_sound() {
    let scratch = Scratch::new("ftl-killed");
    blocks(&scratch, "one", 5000, 1);
    blocks(&scratch, "two", 5000, 2);
    let mut served = serve(&scratch);
    let url = served.url();
    let there: &[&str] = &["--device", &url];
    let formatted = json(&scratch, &[&["ftl", "format", "--spare", "28%"], there]);
    let spare = formatted["spare"].as_f64().unwrap();
    assert!((spare - 0.28).abs() < 0.001, "{spare}");
    for file in ["one", "two", "one", "two"] {
        let write = ["ftl", "write", "--slba", "100", "--data", file];
        ok(&scratch, &[&write, there]);
    }
    let info = json(&scratch, &[&["ftl", "info"], there]);
    assert_eq!(info["uuid"], formatted["uuid"]);
    // Each write mounts, and a format does not.
    assert_eq!(info["epoch"], 5);
    assert_eq!(info["valid_blocks"], 5000);
    assert_eq!(info["written_blocks"], 20_000);
    assert_eq!(info["garbage"], 0.75);
    served.process.kill().unwrap();
    served.process.wait().unwrap();
    let served = serve(&scratch);
    let url = served.url();
    let there: &[&str] = &["--device", &url];
    let text = ok(&scratch, &[&["ftl", "check"], there]);
    assert!(text.ends_with("It is sound.\n"), "{text}");
    let read = [
        "ftl", "read", "-s", "100", "--nlb", "5000", "--data", "back",
    ];
    ok(&scratch, &[&read, there]);
    assert!(is_same(&scratch, "two", "back"));
    interrupt(served);
    // The same drive in this process.
    std::fs::remove_file(scratch.0.join("back")).unwrap();
    ok(&scratch, &[&read, &HERE]);
    assert!(is_same(&scratch, "two", "back"));
    let checked = json(&scratch, &[&["ftl", "check"], &HERE]);
    assert_eq!(checked["is_sound"], true);
    assert_eq!(checked["mapped_blocks"], 5000);
    assert_eq!(checked["footers"], 4);
    assert_eq!(json(&scratch, &[&["ftl", "info"], &HERE])["epoch"], 7);
}

#[test]
fn a_drive_in_a_file_is_formatted_shown_and_dumped() {
    let scratch = Scratch::new("ftl-here");
    blocks(&scratch, "two", 2, 3);
    let uuid_is = |text: &str| {
        let at = text.find("uuid ").unwrap() + 5;
        text.replace(&text[at..at + 36], "UUID")
    };
    let text = ok(&scratch, &[&["ftl", "format"], &HERE]);
    insta::assert_snapshot!("ftl_format", uuid_is(&text));
    let text = ok(&scratch, &[&["ftl", "info"], &HERE]);
    insta::assert_snapshot!("ftl_info", uuid_is(&text));
    ok(
        &scratch,
        &[&["ftl", "write", "--slba", "7", "--data", "two"], &HERE],
    );
    ok(
        &scratch,
        &[&["ftl", "write", "--slba", "8", "--data", "two"], &HERE],
    );
    let parts = ["ftl", "dump", "--map", "--journal"];
    insta::assert_snapshot!("ftl_dump", ok(&scratch, &[&parts, &HERE]));
    let zones = json(&scratch, &[&["ftl", "dump", "--zones"], &HERE]);
    let zones = zones["zones"].as_array().unwrap();
    assert_eq!(zones.len(), 64);
    let valid: u64 = zones.iter().filter_map(|zone| zone["valid"].as_u64()).sum();
    assert_eq!(valid, 3);
    let cut = ok(
        &scratch,
        &[&["ftl", "dump", "--zones", "--limit", "2"], &HERE],
    );
    assert_eq!(cut.lines().count(), 4, "{cut}");
    // Shown as text, and through a pipe.
    let shown = ok(&scratch, &[&["ftl", "read", "--slba", "9"], &HERE]);
    assert!(shown.starts_with("0000: f2 1e 00 00"), "{shown}");
    let write = ["ftl", "write", "--slba", "1", "--nlb", "2", "--data", "-"];
    let file = std::fs::File::open(scratch.0.join("two")).unwrap();
    let mut piped = scratch.command(&[&write, &HERE[..]].concat());
    let status = piped.stdin(file).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    let read = ["ftl", "read", "--slba", "1", "--nlb", "2", "--data", "-"];
    let output = scratch.zonelab(&[&read, &HERE[..]].concat());
    std::fs::write(scratch.0.join("back"), output.stdout).unwrap();
    assert!(is_same(&scratch, "two", "back"));
}

#[test]
fn damage_is_named_with_its_zone() {
    let scratch = Scratch::new("ftl-damage");
    blocks(&scratch, "data", 5000, 4);
    let served = serve(&scratch);
    let url = served.url();
    let there: &[&str] = &["--device", &url];
    ok(&scratch, &[&["ftl", "format"], there]);
    // What the second mount has seen must be there at the third.
    for _ in 0..2 {
        ok(&scratch, &[&["ftl", "write", "--data", "data"], there]);
    }
    let map = json(&scratch, &[&["ftl", "dump", "--map"], there]);
    let extent = &map["map"][0];
    let reset = |zone: &str| {
        let reset = ["nvme", "zns", "reset-zone", "--zone", zone];
        ok(&scratch, &[&reset, there]);
    };
    let found = |zone: u64| {
        let args: [&[&str]; 3] = [&["ftl", "check"], there, &["--json"]];
        let (code, text, said) = run(&scratch, &args);
        assert_eq!(code, 3, "{text}{said}");
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["is_sound"], false);
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 1, "{text}");
        assert_eq!(findings[0]["zone"], zone, "{text}");
        findings[0].clone()
    };
    let zone = extent["zone"].as_u64().unwrap();
    reset(&zone.to_string());
    let finding = found(zone);
    assert_eq!(finding["lba"], extent["lba"]);
    let what = finding["what"].as_str().unwrap();
    let says = "the map has logical block 0 here, and nothing is written here";
    assert!(what.contains(says), "{what}");
    let read = ["ftl", "read", "--slba", "0"];
    refused(&scratch, &[&read, there], 3, &format!("zone {zone}, block"));
    // Zone 2 is the first of the journal.
    reset("2");
    let what = found(2)["what"].to_string();
    assert!(what.contains("a block of the journal"), "{what}");
    let (code, text, _) = run(&scratch, &[&["ftl", "check"], there]);
    assert_eq!(code, 3);
    assert!(
        text.contains("so the map was not checked\n  zone 2, block"),
        "{text}"
    );
    refused(&scratch, &[&["ftl", "info"], there], 3, "zone 2, block");
}

/// Every byte counts, also that the file was not written with what it held: after a kill a
/// drive that is opened has much to clear.
#[test]
fn what_only_looks_leaves_the_file_of_a_drive_as_it_is() {
    use std::os::unix::fs::MetadataExt as _;
    let scratch = Scratch::new("ftl-looks");
    blocks(&scratch, "data", 5000, 6);
    ok(&scratch, &[&["ftl", "format"], &HERE]);
    let mut served = serve(&scratch);
    let url = served.url();
    let write = ["ftl", "write", "--data", "data", "--device", &url];
    ok(&scratch, &[&write]);
    served.process.kill().unwrap();
    served.process.wait().unwrap();
    let path = scratch.0.join("drive");
    let state = || {
        let of = std::fs::metadata(&path).unwrap();
        (of.len(), of.blocks(), of.mtime(), of.mtime_nsec())
    };
    let bytes = std::fs::read(&path).unwrap();
    let before = state();
    for words in [
        &["info"][..],
        &["check"],
        &["dump"],
        &["repair"],
        &["repair", "--dry-run"],
    ] {
        ok(&scratch, &[&["ftl"], words, &HERE]);
        assert_eq!(state(), before, "{words:?}");
    }
    assert!(std::fs::read(&path).unwrap() == bytes);
    let text = ok(&scratch, &[&["ftl", "check"], &HERE]);
    assert!(text.contains("blocks in the map: 5000"), "{text}");
    let read = ["ftl", "read", "--nlb", "5000", "--data", "back"];
    ok(&scratch, &[&read, &HERE]);
    assert!(is_same(&scratch, "data", "back"));
    assert_ne!(state(), before);
}

/// Flips a bit of the first metadata block of that kind in the file `drive`, which the server
/// knows by its checksum.
fn damage_block(scratch: &Scratch, is_it: impl Fn(&[u8]) -> bool) {
    use std::os::unix::fs::FileExt as _;
    let mut options = std::fs::File::options();
    options.read(true).write(true);
    let file = options.open(scratch.0.join("drive")).unwrap();
    let mut piece = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let length = file.read_at(&mut piece, at).unwrap();
        assert_ne!(length, 0, "the file has no such block");
        let mut blocks = piece[..length].chunks(4096);
        if let Some(block) = blocks.position(&is_it) {
            let byte = at + 4096 * block as u64 + 70;
            let mut bytes = [0];
            file.read_exact_at(&mut bytes, byte).unwrap();
            file.write_all_at(&[bytes[0] ^ 1], byte).unwrap();
            return;
        }
        at += length as u64;
    }
}

/// Damages the journal block with that number.
fn damage_journal_block(scratch: &Scratch, number: u64) {
    damage_block(scratch, |block| {
        block.starts_with(b"ZLFTLJRN") && block[32..40] == number.to_le_bytes()
    });
}

/// A mount needs no footers, and a repair leaves them: what `ftl check` finds then, `ftl
/// repair` says too, also after it has mended something else.
#[test]
fn a_repair_says_what_a_check_still_finds() {
    let scratch = Scratch::new("ftl-footer");
    blocks(&scratch, "data", 5000, 7);
    ok(&scratch, &[&["ftl", "format"], &HERE]);
    for _ in 0..2 {
        ok(&scratch, &[&["ftl", "write", "--data", "data"], &HERE]);
    }
    damage_block(&scratch, |block| block.starts_with(b"ZLFTLFTR"));
    let report = |words: &[&str]| {
        let (code, text, said) = run(&scratch, &[&["ftl"], words, &["--json"], &HERE]);
        assert_eq!(code, 3, "{words:?}: {text}{said}");
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let found = report(&["check"])["findings"].clone();
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert!(found.to_string().contains("a block of the footer"));
    for force in [&[][..], &["--force"]] {
        let said = report(&[&["repair"], force].concat());
        assert_eq!(said["findings"], found, "{said}");
        assert!(
            said["damage"].is_null() && said["is_sound"] == false,
            "{said}"
        );
    }
    let (code, text, _) = run(&scratch, &[&["ftl", "repair"], &HERE]);
    let place = format!("zone {}, block {}:", found[0]["zone"], found[0]["lba"]);
    assert_eq!(code, 3);
    assert!(
        text.contains(": it can be mounted\n") && text.contains(&place),
        "{text}"
    );
    assert!(text.contains("a damaged one loses nothing"), "{text}");
    damage_journal_block(&scratch, 0);
    let done = report(&["repair", "--force"]);
    assert_eq!(
        (&done["is_done"], &done["findings"]),
        (&true.into(), &found),
        "{done}"
    );
    ok(
        &scratch,
        &[&["ftl", "read", "--nlb", "5000", "--data", "back"], &HERE],
    );
    assert!(is_same(&scratch, "data", "back"));
}

#[test]
fn a_damaged_journal_is_repaired_and_what_is_cut_back_is_said() {
    let scratch = Scratch::new("ftl-repair");
    for (name, seed) in [("one", 1), ("two", 2), ("three", 3)] {
        blocks(&scratch, name, 50, seed);
    }
    ok(&scratch, &[&["ftl", "format"], &HERE]);
    let write = |file: &str| {
        ok(&scratch, &[&["ftl", "write", "--data", file], &HERE]);
    };
    let reads = |file: &str| {
        let _ = std::fs::remove_file(scratch.0.join("back"));
        let read = ["ftl", "read", "--nlb", "50", "--data", "back"];
        ok(&scratch, &[&read, &HERE]);
        is_same(&scratch, file, "back")
    };
    let repaired = |force: &[&str], code: i32| {
        let (ended, text, said) = run(&scratch, &[&["ftl", "repair", "--json"], force, &HERE]);
        assert_eq!(ended, code, "{text}{said}");
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    write("one");
    write("two");
    let sound = repaired(&[], 0);
    assert_eq!([&sound["is_sound"], &sound["is_done"]], [true, false]);
    // The first is repeated by the second.
    damage_journal_block(&scratch, 0);
    let read = ["ftl", "read", "--nlb", "50"];
    refused(&scratch, &[&read, &HERE], 5, "`zonelab ftl repair` says");
    let (code, text, _) = run(&scratch, &[&["ftl", "repair"], &HERE]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("Nothing is cut back") && text.contains("Nothing was changed"));
    let dry = repaired(&["--dry-run"], 3);
    assert_eq!(dry["restored_journal_blocks"], 1, "{dry}");
    let done = repaired(&["--force"], 0);
    assert_eq!(done["cut_back"], serde_json::json!([]));
    assert!(reads("two"));
    write("three");
    let info = json(&scratch, &[&["ftl", "info"], &HERE]);
    let last = info["journal"]["next"].as_u64().unwrap() - 1;
    damage_journal_block(&scratch, last);
    let done = repaired(&["--force"], 1);
    let cut = &done["cut_back"][0];
    assert_eq!(
        (&cut["kind"], &cut["first"]),
        (&"journal".into(), &last.into())
    );
    assert!(reads("two"));
    assert!(repaired(&[], 0)["damage"].is_null());
    let checked = json(&scratch, &[&["ftl", "check"], &HERE]);
    assert_eq!(checked["is_sound"], true);
    write("three");
    assert!(reads("three"));
}

#[test]
fn what_cannot_be_done_is_refused() {
    let scratch = Scratch::new("ftl-refused");
    blocks(&scratch, "data", 1, 5);
    for command in ["info", "check", "dump", "repair", "read"] {
        let none = "drive: there is no such store";
        refused(&scratch, &[&["ftl", command], &HERE], 3, none);
    }
    let forced = ["ftl", "repair", "--force"];
    refused(&scratch, &[&forced, &HERE], 3, "there is no such store");
    assert!(!scratch.0.join("drive").exists());
    interrupt(serve(&scratch));
    let formatted = "zones 0 and 1 hold no anchor: format the drive first";
    for command in ["info", "check", "dump", "read"] {
        refused(&scratch, &[&["ftl", command], &HERE], 3, formatted);
    }
    for (options, words) in [
        (["--spare", "7"], "a share is 1% to 1000%"),
        (["--spare", "0%"], "a share is 1% to 1000%"),
        (
            ["--reserved-zones", "3"],
            "--reserved-zones 3: valid: 4 to 56",
        ),
        (
            ["--reserved-zones", "57"],
            "--reserved-zones 57: valid: 4 to 56",
        ),
    ] {
        refused(&scratch, &[&["ftl", "format"], &options, &HERE], 2, words);
    }
    ok(&scratch, &[&["ftl", "format"], &HERE]);
    let holds = "zone 0 of namespace 1: 1 of 64 zones are not empty";
    refused(&scratch, &[&["ftl", "format"], &HERE], 2, holds);
    let info = || json(&scratch, &[&["ftl", "info"], &HERE])["uuid"].clone();
    let before = info();
    ok(&scratch, &[&["ftl", "format", "--overwrite"], &HERE]);
    assert_ne!(info(), before);
    let write = ["ftl", "write", "--data", "data"];
    for (options, code, words) in [
        (&["--nlb", "0"][..], 2, "--nlb 0: valid: 1 or more"),
        (&["--nlb", "2"], 3, "fewer bytes than the 8192 of --nlb 2"),
        (
            &["--slba", "172051"],
            2,
            "the layer has 172051 blocks, from 0 on",
        ),
        (&["--slba", "0xffffffffffffffff"], 2, "from 0 on"),
    ] {
        refused(&scratch, &[&write, options, &HERE], code, words);
    }
    scratch.write("odd", "odd");
    let odd = ["ftl", "write", "--data", "odd"];
    refused(
        &scratch,
        &[&odd, &HERE],
        3,
        "3 bytes are not a whole number of blocks",
    );
    refused(
        &scratch,
        &[&["ftl", "read", "--nlb", "0"], &HERE],
        2,
        "--nlb 0: valid: 1 to 262144",
    );
    let both = ["ftl", "read", "--data", "-", "--json"];
    refused(
        &scratch,
        &[&both, &HERE],
        2,
        "both write to standard output",
    );
    refused(&scratch, &[&["ftl", "info"]], 2, "--device is missing");
    let memory = ["ftl", "info", "--device", "zn540"];
    refused(&scratch, &[&memory], 2, "say --store FILE");
    let pcie = ["ftl", "info", "--device", "zn540?via=pcie"];
    refused(&scratch, &[&pcie], 2, "leave it out");
    let conventional = [
        "--set",
        "namespaces=[{kind=\"conventional\", zones=64, spare_zones=3}]",
    ];
    let other = ["--device", PROFILE, "--store", "other"];
    refused(
        &scratch,
        &[&["ftl", "format"], &other, &conventional],
        3,
        "namespace 1 is not zoned",
    );
    let second = format!("{PROFILE}?nsid=2");
    let second = ["ftl", "info", "--store", "drive", "--device", &second];
    refused(&scratch, &[&second], 2, "there is no namespace 2");
}

const JOBS: &str = "
[global]
ioengine=libaio
bs=4k
size=8m
iodepth=16
[random]
rw=randwrite
verify=crc32c
[mixed]
stonewall
rw=randrw
bsrange=4k-64k
io_size=16m
";

#[test]
fn fio_jobs_with_verification_run_on_the_layer() {
    let scratch = Scratch::new("ftl-fio");
    scratch.write("job.fio", JOBS);
    let served = serve(&scratch);
    let url = served.url();
    let there: &[&str] = &["--device", &url];
    let fio = ["fio", "job.fio", "--ftl"];
    let formatted = "format the drive first";
    refused(&scratch, &[&fio, there], 3, formatted);
    ok(&scratch, &[&["ftl", "format"], there]);
    refused(&scratch, &[&fio, there], 2, "say --overwrite");
    let result = json(&scratch, &[&fio, &["--overwrite"], there]);
    let jobs = result["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    for job in jobs {
        assert_eq!(job["error"], 0, "{job}");
    }
    assert_eq!(jobs[0]["write"]["total_ios"], 2048);
    let verified = &jobs[0]["zonelab"]["verify"];
    assert_eq!([&verified["total_ios"], &verified["wrong"]], [2048, 0]);
    let checked = json(&scratch, &[&["ftl", "check"], there]);
    assert_eq!(checked["is_sound"], true);
    assert_eq!(checked["mapped_blocks"], 2048);
    scratch.write("two.fio", &JOBS.replace("stonewall\n", ""));
    let two = ["fio", "two.fio", "--ftl", "--overwrite"];
    refused(
        &scratch,
        &[&two, there],
        3,
        "2 threads run at the same time",
    );
    let memory = ["fio", "job.fio", "--ftl", "--device", "zn540"];
    refused(&scratch, &[&memory], 2, "--ftl is for drives that");
}
