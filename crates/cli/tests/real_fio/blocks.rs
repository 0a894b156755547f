//! Jobs on blocks without zones: of fio on a file, and ours on a namespace of the same
//! size. Both write what they did to a log.

use std::path::Path;
use std::process::Command;

use super::{text, zonelab};

/// The namespace: 45 zones of 16 MiB, and three that are spare.
const BYTES: u64 = 45 << 24;
const DRIVE: [&str; 8] = [
    "--device",
    "confznspp",
    "--set",
    "zones.capacity=16MiB",
    "--set",
    "zones.size=16MiB",
    "--set",
    "namespaces=[{kind=\"conventional\", zones=48, spare_zones=3}]",
];

/// Jobs whose operations follow from their options, in order.
const IN_ORDER: &[&str] = &[
    "--rw=write --bs=4k --size=64k",
    "--rw=write --bs=12k --size=64k",
    "--rw=write --bs=12k --offset=737248k",
    "--rw=write --bs=4k --size=64k --io_size=100k",
    "--rw=write --bs=4k --size=64k --loops=2",
    "--rw=write --bs=4k --size=30k",
    "--rw=write --bs=4k --size=64k --number_ios=40",
    "--rw=read --bs=1m --offset=50% --size=25%",
    "--rw=write:4k --bs=4k --size=128k",
    "--rw=write:12k --bs=4k --size=64k --loops=2",
    "--rw=write:4k --bs=4k --offset=64k --size=64k",
    "--rw=read:7m --bs=1m",
    "--rw=read:80m --bs=1m",
    "--rw=read:4k --bs=4k --rw_sequencer=identical --number_ios=8",
    "--rw=write --bs=4k --zonemode=strided --zonesize=8k --zoneskip=8k --size=64k",
    "--rw=write --bs=4k --zonemode=strided --zonesize=8k --zonerange=16k --zoneskip=8k --size=64k",
    "--rw=write --bs=4k --zonemode=strided --zonesize=32k --zonerange=16k --zoneskip=8k --size=128k",
    "--rw=read --bs=1m --zonemode=strided --zonesize=2m --zoneskip=40m --io_size=60m",
];

/// Jobs whose places are drawn, and whether each block is had as often by both.
const DRAWN: &[(&str, bool)] = &[
    ("--rw=randwrite --bs=4k --size=256k", true),
    (
        "--rw=randwrite --bs=4k --size=64k --offset=128k --io_size=192k",
        true,
    ),
    ("--rw=randread --bs=4k --size=64k --loops=3", true),
    ("--rw=randwrite --bs=12k --size=64k", true),
    ("--rw=randwrite --bsrange=4k-16k --size=256k", true),
    ("--rw=randwrite --bs=4k --size=64k --norandommap", false),
    (
        "--rw=randread:4 --rw_sequencer=identical --bs=4k --size=64k --norandommap",
        false,
    ),
    (
        "--rw=randread --random_distribution=zipf:1.2 --bs=4k --size=256k",
        false,
    ),
    (
        "--rw=randwrite --bs=4k --zonemode=strided --zonesize=16k --zonerange=32k --size=64k",
        false,
    ),
];

/// One operation of a log: what, where and how much.
type Logged = (String, u64, u64);

fn logged(path: &Path) -> Vec<Logged> {
    let text = std::fs::read_to_string(path).unwrap();
    let operation = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let &[_, _, action, offset, bytes] = &fields[..] else {
            return None;
        };
        Some((action.to_owned(), offset.parse().ok()?, bytes.parse().ok()?))
    };
    text.lines().filter_map(operation).collect()
}

/// What both do for these options, theirs first.
fn both(scratch: &Path, options: &str) -> [Vec<Logged>; 2] {
    let words: Vec<&str> = options.split(' ').collect();
    let job = ["--name=a", "--ioengine=psync", "--write_iolog=a.log"];
    // fio goes on with a log that is there.
    let _ = std::fs::remove_file(scratch.join("a.log"));
    let theirs = Command::new("fio")
        .current_dir(scratch)
        .args([&job[..], &["--filename=file"], &words].concat())
        .output()
        .expect("fio is installed: this tier needs it");
    assert!(
        theirs.status.success(),
        "{options}: {}",
        text(&theirs.stderr)
    );
    let theirs = logged(&scratch.join("a.log"));
    let out = scratch.join("ours");
    let _ = std::fs::remove_dir_all(&out);
    let to = format!("--out={}", out.display());
    let ours = zonelab(&[&["fio", &to], &DRIVE[..], &job, &words].concat());
    assert!(ours.status.success(), "{options}: {}", text(&ours.stderr));
    [theirs, logged(&out.join("a.log"))]
}

/// How often each logical block was had.
fn counts(operations: &[Logged]) -> Vec<(u64, u32)> {
    let mut counts = std::collections::BTreeMap::new();
    for (_, offset, bytes) in operations {
        for block in offset / 4096..(offset + bytes) / 4096 {
            *counts.entry(block).or_default() += 1;
        }
    }
    counts.into_iter().collect()
}

#[test]
fn both_go_to_the_same_blocks() {
    let scratch = std::env::temp_dir().join(format!("zonelab-blocks-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let file = std::fs::File::create(scratch.join("file")).unwrap();
    file.set_len(BYTES).unwrap();
    for options in IN_ORDER {
        let [theirs, ours] = both(&scratch, options);
        assert!(!theirs.is_empty(), "{options}");
        assert_eq!(ours, theirs, "{options}");
    }
    for (options, is_exact) in DRAWN {
        let [theirs, ours] = both(&scratch, options);
        let bytes = |of: &[Logged]| of.iter().map(|(_, _, bytes)| bytes).sum::<u64>();
        assert_eq!(bytes(&ours), bytes(&theirs), "{options}");
        let [they, we] = [counts(&theirs), counts(&ours)];
        if *is_exact {
            assert_eq!(we, they, "{options}");
        } else {
            assert_eq!(ours.len(), theirs.len(), "{options}");
            let has_repeats = |of: &[(u64, u32)]| of.iter().any(|(_, count)| *count > 1);
            assert_eq!(has_repeats(&we), has_repeats(&they), "{options}");
        }
    }
    std::fs::remove_dir_all(&scratch).unwrap();
}
