//! What is on the media: golden bytes, every flipped bit, and the order of commands.

use std::fmt::Write;

use crate::support::{Machine, Meddling, UUID, settings, tiny};
use zonelab_device::{NamespaceId, Op};
use zonelab_ftl::format::footer;
use zonelab_ftl::{
    Durable, ForwardMap, FtlError, LogicalBlock, MapChange, Media, PhysicalBlock, Shape,
};

/// A tiny drive that was formatted, used, and closed: two commits behind the image, the
/// last of three blocks, each of which repeats the one before.
fn used() -> (Machine, Shape, Vec<Option<PhysicalBlock>>) {
    let mut machine = Machine::new(&tiny(16, 16));
    let (shape, words) = machine.run(async |io| {
        let shape = Durable::format(&io, &settings(), true)
            .await
            .expect("it can be");
        let (durable, map) = Durable::open(&io, NamespaceId::FIRST)
            .await
            .expect("it can be");
        let all = [change(0, 3, Some(5)), change(7, 1, Some(32))];
        apply(&map, &all);
        durable.append(&all).await.expect("nothing fails");
        durable
            .checkpoint(&map, async || Ok(()))
            .await
            .expect("nothing fails");
        let more = [change(1, 1, None), change(20, 2, Some(18))];
        apply(&map, &more);
        durable.append(&more).await.expect("nothing fails");
        let many: Vec<_> = (0..40)
            .map(|at| change(30 + at, 1, Some(90 + at)))
            .collect();
        apply(&map, &many);
        durable.append(&many).await.expect("nothing fails");
        (shape, words_of(&map))
    });
    (machine, shape, words)
}

fn change(first: u32, count: u32, to: Option<u32>) -> MapChange {
    MapChange {
        first: LogicalBlock(first),
        count,
        to: to.map(PhysicalBlock),
    }
}

fn apply(map: &ForwardMap, changes: &[MapChange]) {
    for change in changes {
        for step in 0..change.count {
            let to = change.to.map(|to| PhysicalBlock(to.0 + step));
            map.set(LogicalBlock(change.first.0 + step), to);
        }
    }
}

fn words_of(map: &ForwardMap) -> Vec<Option<PhysicalBlock>> {
    (0..map.blocks())
        .map(|at| map.get(LogicalBlock(at)))
        .collect()
}

/// What the zones of metadata hold, block by block.
fn blocks(machine: &mut Machine, shape: &Shape) -> Vec<(u32, u32, Vec<u8>)> {
    let shape = shape.clone();
    machine.run(async move |io| {
        let media = Media::new(&io, std::rc::Rc::new(shape.clone()), true);
        let mut all = Vec::new();
        for zone in 0..shape.first_data_zone() {
            let written = media.report_of(zone).await.expect("nothing fails").written;
            for at in 0..written {
                let block = media.read(zone, at, 1).await.expect("nothing fails");
                if block.iter().any(|byte| *byte != 0) {
                    all.push((zone, at, block));
                }
            }
        }
        all
    })
}

/// Bytes as the document has them: a line for each 16 that are not all zeros.
fn dump(block: &[u8]) -> String {
    let mut text = String::new();
    for (line, bytes) in block.chunks(16).enumerate() {
        if bytes.iter().any(|byte| *byte != 0) {
            write!(text, "{:03x}", 16 * line).expect("strings take all");
            for byte in bytes {
                write!(text, " {byte:02x}").expect("strings take all");
            }
            text.push('\n');
        }
    }
    text
}

#[test]
fn bytes_on_the_media_are_those_of_version_1() {
    let (mut machine, shape, _) = used();
    let mut text = String::new();
    for (zone, at, block) in blocks(&mut machine, &shape) {
        // The lines of an image that say "nowhere" are all alike.
        let dump = dump(&block);
        let short = dump
            .lines()
            .filter(|line| !line.ends_with(&" ff".repeat(16)));
        let short: Vec<_> = short.collect();
        writeln!(text, "zone {zone} block {at}\n{}", short.join("\n")).expect("strings take all");
    }
    let footer = footer::encode(&shape, UUID, 9, 0, &[3, 4, u32::MAX]);
    writeln!(text, "footer\n{}", dump(&footer)).expect("strings take all");
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/suite/golden/format-1.txt"
    );
    if std::env::var_os("ZONELAB_BLESS").is_some() {
        std::fs::write(golden, &text).expect("the file can be written");
    }
    let golden = std::fs::read_to_string(golden).expect("the file is there");
    assert_eq!(text, golden);
}

#[test]
fn footers_are_read_as_what_they_are_and_as_nothing_else() {
    let (_, shape, _) = used();
    let words: Vec<u32> = (0..shape.words_per_block()).collect();
    let bytes = footer::encode(&shape, UUID, 9, 1, &words);
    let read = |uuid, zone, index, bytes: &[u8]| footer::decode(&shape, uuid, zone, index, bytes);
    assert_eq!(read(UUID, 9, 1, &bytes), Some(words));
    assert_eq!(read(UUID + 1, 9, 1, &bytes), None);
    assert_eq!(read(UUID, 8, 1, &bytes), None);
    assert_eq!(read(UUID, 9, 0, &bytes), None);
    assert_eq!(read(UUID, 9, 1, &bytes[..511]), None);
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(read(UUID, 9, 1, &flipped), None, "bit {bit}");
    }
}

/// A flipped bit of a block: the map is right, or there is an error.
#[test]
fn no_flipped_bit_makes_a_wrong_map() {
    let (mut machine, shape, words) = used();
    let all = blocks(&mut machine, &shape);
    let (mut detected, mut harmless) = (0, 0);
    for (zone, at, block) in &all {
        let lba = shape.lba(*zone, *at).0;
        let before = detected;
        for bit in 0..8 * block.len() {
            machine.meddling = Meddling {
                flip: Some((lba, bit / 8, 1 << (bit % 8))),
                keeps_drive: true,
            };
            let found = machine.run(async |io| {
                let opened = Durable::open(&io, NamespaceId::FIRST).await;
                opened.map(|(_, map)| words_of(&map))
            });
            match found {
                Ok(found) => {
                    assert_eq!(found, words, "zone {zone}, block {at}, bit {bit}");
                    harmless += 1;
                }
                Err(FtlError::Corrupt { .. } | FtlError::Version { .. }) => detected += 1,
                Err(error) => panic!("zone {zone}, block {at}, bit {bit}: {error}"),
            }
        }
        let is_live = detected > before;
        assert!(
            !is_live || detected - before == 8 * block.len(),
            "zone {zone}, block {at}: some flipped bits count and some do not"
        );
    }
    println!("{detected} detected, {harmless} harmless");
    // The newest anchor, the image, and four blocks of the journal behind its start.
    let live = 1 + shape.logical_blocks.div_ceil(shape.words_per_block()) + 4;
    assert_eq!(detected, live as usize * 512 * 8);
}

/// The order of commands on which everything depends, however seldom a drive shows it.
#[test]
fn what_is_relied_on_is_flushed_before() {
    let (machine, shape, _) = used();
    let zone_of = |op: &Op| match op {
        Op::Write { slba, .. } => Some((slba.0 / shape.zone_size_lbas) as u32),
        _ => None,
    };
    let (mut is_flushed, mut is_image_flushed, mut anchors) = (false, true, 0);
    for op in machine.take_commands() {
        match (&op, zone_of(&op)) {
            (Op::Flush, _) => (is_flushed, is_image_flushed) = (true, true),
            (_, Some(zone)) if shape.journal().contains(&zone) => {
                assert!(is_flushed, "the data of a change are flushed before it");
                is_flushed = false;
            }
            (_, Some(zone)) if shape.anchor().contains(&zone) => {
                assert!(is_image_flushed, "an image is flushed before its anchor");
                anchors += 1;
            }
            (_, Some(_)) => is_image_flushed = false,
            (Op::Read { .. }, _) => {
                assert!(is_flushed, "what a mount reads is flushed before");
            }
            _ => {}
        }
    }
    assert_eq!(
        anchors, 4,
        "two of the format, one of the mount, one of the checkpoint"
    );
}
