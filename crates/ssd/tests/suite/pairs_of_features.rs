//! Features that are right alone, two at a time: what physics says of the drive that has both.

use crate::drive_support::Rig;
use zonelab_config::Override;
use zonelab_device::{Nanos, Op};
use zonelab_ssd::config::{DriveConfig, NamespaceKind};
use zonelab_ssd::profile::{Profile, to_toml};

const BASE: &str = r#"
schema = 1
name = "x"
[geometry]
channels = 1
planes = 4
pages_per_block = 16
page_size = "16KiB"
[zones]
count = 16
size = "1MiB"
[media]
read = "50us"
program = "1ms"
erase = "3ms"
transfer = "10us"
planes = "multi-plane"
[finish]
design = "metadata"
[reset]
timing = "synchronous"
[mapping]
design = "direct"
"#;

/// Of 16 KiB, on blocks of 4 KiB.
const PAGE: u32 = 4;

fn parse(text: &str, sets: &[&str]) -> Result<Profile, String> {
    let sets = sets
        .iter()
        .map(|set| Override::parse(set).expect("an override"));
    let sets: Vec<Override> = sets.collect();
    Profile::parse("x.toml", text, &sets).map_err(|errors| errors.to_string())
}

fn drive(sets: &[&str]) -> DriveConfig {
    parse(BASE, sets)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .config
}

#[test]
fn sizes_of_namespaces_are_in_the_blocks_of_the_drive() {
    let namespaces = r#"
[[namespaces]]
kind = "conventional"
zones = 16
spare_zones = 6
mapping_unit = "UNIT"
"#;
    let first_write = ["reset.timing=asynchronous", "reset.erase_at=first-write"];
    for lba_bytes in [512, 4096] {
        for unit_bytes in [4096, 16_384, 65_536] {
            let text = format!(
                "{BASE}{}",
                namespaces.replace("UNIT", &format!("{unit_bytes}B"))
            );
            let block = format!("namespace.lba_size={lba_bytes}B");
            let sets = [first_write[0], first_write[1], &block];
            let profile = match parse(&text, &sets) {
                Ok(profile) => profile,
                Err(refused) => {
                    assert!(
                        unit_bytes < lba_bytes,
                        "{unit_bytes} on {lba_bytes}: {refused}"
                    );
                    continue;
                }
            };
            let NamespaceKind::Conventional(log) = profile.config.namespaces[0].kind else {
                panic!("it is conventional");
            };
            assert_eq!(
                log.mapping_unit_lbas * lba_bytes,
                unit_bytes,
                "blocks of {lba_bytes} bytes"
            );
            let written = to_toml(&profile.config);
            let again = parse(&written, &[]).unwrap_or_else(|errors| panic!("{errors}\n{written}"));
            assert_eq!(again.config, profile.config, "{written}");
        }
    }
}

#[test]
fn a_buffer_takes_no_more_than_its_room_and_what_dies_program() {
    for register in ["overlap", "hold", "cache"] {
        for planes in ["multi-plane", "independent", "single"] {
            let config = drive(&[
                "write_buffer.mode=write-back",
                "write_buffer.size=256KiB",
                "write_buffer.release=transfer",
                &format!("media.page_register={register}"),
                &format!("media.planes={planes}"),
            ]);
            let mut rig = Rig::new(&config);
            let first = rig.now;
            let mut written_lbas = 0;
            'all: for zone in 0..config.zones.count {
                for page in 0..64 {
                    let write = rig.write_at(zone, page * PAGE, PAGE);
                    assert!(rig.exec(write).status.is_success());
                    written_lbas += u64::from(PAGE);
                    if rig.now - first > Nanos::from_ms(50) {
                        break 'all;
                    }
                }
            }
            let pages = written_lbas / u64::from(PAGE);
            // In the buffer, in a register of each plane and under way, and behind that what a
            // die programs in a millisecond.
            let at_once = if planes == "single" { 1 } else { 4 };
            let most = 16 + 2 * 4 + at_once * ((rig.now - first).0 / 1_000_000 + 1);
            assert!(
                pages <= most,
                "{register}, {planes}: {pages} pages, at most {most}"
            );
        }
    }
}

#[test]
fn a_finish_of_a_zone_takes_no_longer_for_pages_that_are_there() {
    for stripe in ["plane-first", "channel-first"] {
        for channels in [1, 2] {
            let config = drive(&[
                "finish.design=fill",
                "finish.granularity=128KiB",
                "zones.size=2MiB",
                &format!("zones.stripe={stripe}"),
                &format!("geometry.channels={channels}"),
            ]);
            let finish = |pages: u32| {
                let mut rig = Rig::new(&config);
                rig.write_pages(0, pages);
                rig.settle();
                rig.time(rig.finish(0))
            };
            let empty = finish(0);
            for pages in 1..64 {
                let time = finish(pages);
                assert!(
                    time <= empty + Nanos::from_ms(1),
                    "{stripe}, {channels} channels: {pages} pages written, {time} for {empty}"
                );
            }
        }
    }
}

#[test]
fn what_suspends_for_reads_changes_nothing_without_reads() {
    let run = |sets: &[&str]| {
        let base = [
            "media.die_queue=read-first",
            "finish.design=fill",
            "finish.granularity=64KiB",
            "geometry.channels=4",
            "zones.channels=4",
            "zones.size=4MiB",
            "media.page_register=hold",
        ];
        let config = drive(&[&base, sets].concat());
        let mut rig = Rig::new(&config);
        let finishes: Vec<usize> = (8..11)
            .map(|zone| {
                rig.write_pages(zone, 3);
                rig.submit(rig.finish(zone))
            })
            .collect();
        let mut ends = Vec::new();
        for page in 0..60 {
            for zone in 0..2 {
                let op: Op = rig.write_at(zone, page * PAGE, PAGE);
                let tag = rig.submit(op);
                ends.push(rig.wait(tag).at);
            }
        }
        let reset = rig.submit(rig.reset(1));
        ends.push(rig.wait(reset).at);
        ends.extend(finishes.into_iter().map(|tag| rig.wait(tag).at));
        ends
    };
    let without = run(&[]);
    for what in ["program", "erase"] {
        let suspends = format!("media.suspend.{what}=true");
        assert_eq!(run(&[&suspends]), without, "{what}");
    }
}

#[test]
fn a_finish_through_the_buffer_takes_its_pauses() {
    let config = drive(&[
        "finish.design=fill",
        "finish.granularity=128KiB",
        "finish.path=buffer",
        "finish.pause=4ms",
        "write_buffer.mode=write-back",
        "write_buffer.size=1MiB",
    ]);
    let profile = zonelab_ssd::profile::check(&config).expect("it is valid");
    let expected = profile.figures.zone_finish_ns;
    let mut rig = Rig::new(&config);
    let took = rig.time(rig.finish(0));
    let off = took.0.abs_diff(expected.0);
    assert!(off <= Nanos::from_ms(5).0, "{took}, expected {expected}");
}
