//! What is wrong with a profile: every refusal, word for word.

use zonelab_config::Override;
use zonelab_device::Nanos;
use zonelab_ssd::config::{DriveConfig, ReadParts, Suspend};
use zonelab_ssd::profile::{Profile, builtin, check};

/// A profile that says only what it has to.
const BASE: &str = r#"schema = 1
name = "base"
[geometry]
channels = 8
ways = 2
planes = 2
pages_per_block = 64
page_size = "16KiB"
[zones]
count = 48
size = "64MiB"
[media]
read = "60us"
program = "700us"
erase = "3.5ms"
transfer = "25us"
"#;

#[test]
fn the_base_is_valid() {
    assert!(Profile::parse("x.toml", BASE, &[]).is_ok());
}

/// Every case of the text file, each by itself.
#[test]
fn every_refusal_word_for_word() {
    let cases = include_str!("profile_refusals.txt")
        .split("\n$ --set ")
        .skip(1);
    let mut count = 0;
    for case in cases {
        let (sets, expected) = case.split_once('\n').expect("a case has a message");
        let expected: Vec<&str> = expected
            .lines()
            .take_while(|line| !line.is_empty())
            .collect();
        let overrides: Vec<_> = sets
            .split(" --set ")
            .map(|set| Override::parse(set).expect("an override"))
            .collect();
        let errors = Profile::parse("x.toml", BASE, &overrides)
            .expect_err(sets)
            .to_string();
        assert_eq!(errors.lines().collect::<Vec<_>>(), expected, "--set {sets}");
        count += 1;
    }
    assert_eq!(count, 161, "all cases of the file were found");
}

#[test]
fn all_mistakes_of_a_file_are_reported_with_their_lines() {
    let text = r#"schema = 1
[geometry]
channels = 4
pages_per_block = 0x300
page_size = "16K"
[zones]
count = 48
size = 2147483648
capacty = "1056MiB"
max_active = 14
[media]
read = "60us"
prgram = "700us"
erase = "3.5 ms"
transfer = "0.0250001us"
die_queue = "weigthed"
read_weight = 4
[finish]
design = "metadata"
granularity = "256KiB"
[resett]
"#;
    let errors = Profile::parse("profiles/x.toml", text, &[])
        .unwrap_err()
        .to_string();
    let expected = [
        "profiles/x.toml: name: missing",
        "profiles/x.toml:5: geometry.page_size: \"16K\" has the ambiguous unit `K`; \
         write \"16KiB\" or \"16kB\"",
        "profiles/x.toml:8: zones.size: 2147483648 has no unit; write for example \"2147483648B\"",
        "profiles/x.toml:9: zones.capacty: unknown key `capacty`; did you mean `capacity`?",
        "profiles/x.toml:11: media.program: missing; state it, or media.cell for a typical one",
        "profiles/x.toml:13: media.prgram: unknown key `prgram`; did you mean `program`?",
        "profiles/x.toml:15: media.transfer: \"0.0250001us\" is not a whole number of nanoseconds; \
         write \"25ns\" or \"26ns\"",
        "profiles/x.toml:16: media.die_queue: \"weigthed\" is not a choice; \
         did you mean \"weighted\"? choose \"fifo\", \"read-first\" or \"weighted\"",
        "profiles/x.toml:20: finish.granularity: contradicts other keys; \
         it only has an effect with design = \"fill\"; leave it out",
        "profiles/x.toml:21: resett: unknown key `resett`; did you mean `reset`?",
    ];
    assert_eq!(errors.lines().collect::<Vec<_>>(), expected);
}

/// What no file can say, but code can.
#[test]
fn configurations_made_by_hand() {
    let broken = |change: fn(&mut DriveConfig)| {
        let mut config = builtin("confznspp").expect("it is built in").config;
        change(&mut config);
        let violations = check(&config).expect_err("a rule is broken");
        violations
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        broken(|c| c.zones.max_active = Some(14)),
        [
            "zones.max_open: open zones are active, so they cannot be unlimited; \
          at most zones.max_active = 14"
        ]
    );
    assert_eq!(
        broken(|c| c.media.suspend = Suspend {
            overhead_ns: Nanos(1),
            ..Suspend::NONE
        }),
        [
            "media.suspend: nothing is suspended, so nothing else can be said about it; \
          use program = true or erase = true, or Suspend::NONE"
        ]
    );
    assert_eq!(
        broken(|c| c.geometry.blocks_per_plane = 1_000),
        [
            "zones.count: 48 zones need 48 x 22 = 1056 blocks in each plane; \
          geometry.blocks_per_plane = 1000 holds 45 zones; \
          set count = 45 or blocks_per_plane = 1056"
        ]
    );
    assert_eq!(
        broken(|c| c.media.details.program_variation_ppm = 1_000_001),
        ["media.program_variation: 100.0001% is more than all of it; at most 100%"]
    );
    assert_eq!(
        broken(|c| c.media.details.read_parts = ReadParts::new(&[Nanos(10), Nanos(21)])),
        ["media.read: the read time of a page in parts is their mean; 15ns"]
    );
    assert_eq!(
        broken(|c| c.lba_bytes = 0),
        ["namespace.lba_size: 0B is not a logical block size; write \"512B\" or \"4KiB\""]
    );
    assert_eq!(
        broken(|c| (c.zones.channels, c.zones.count) = (0, 0)),
        [
            "zones.count: 0 is out of range; at least 1, at most 4194304",
            "zones.channels: 0 is out of range; at least 1, at most 4",
        ]
    );
}

/// The nearest valid value that a message names is valid.
#[test]
fn what_a_message_suggests_works() {
    for (broken, suggested) in [
        (
            "geometry.blocks_per_plane=90",
            ["zones.count=45", "geometry.blocks_per_plane=90"],
        ),
        (
            "geometry.blocks_per_plane=90",
            ["geometry.blocks_per_plane=96", "zones.count=48"],
        ),
        (
            "finish.granularity=20KiB",
            ["finish.granularity=32KiB", "zones.count=48"],
        ),
        (
            "front_end.max_transfer=100KiB",
            ["front_end.max_transfer=64KiB", "zones.count=48"],
        ),
        ("zones.channels=3", ["zones.channels=4", "zones.count=48"]),
    ] {
        let broken = Override::parse(broken).unwrap();
        assert!(Profile::parse("x.toml", BASE, &[broken]).is_err());
        let suggested = suggested.map(|set| Override::parse(set).unwrap());
        assert!(
            Profile::parse("x.toml", BASE, &suggested).is_ok(),
            "{suggested:?}"
        );
    }
}
