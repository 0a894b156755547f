//! Random write areas: handles against a shadow, and against what the drive reports.

use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};
use zonelab_device::{Buf, Lba, ZoneId};
use zonelab_driver::zones::{AnyZone, OpenRandom, Zone, ZoneError};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::ZrwaConfig;

use crate::rig::{CAPACITY, LBA, Queue, Rig, ZONE, blocks, send};

/// Blocks of an area.
const SIZE: u64 = 16;
/// Blocks by which write pointers move.
const STEP: u64 = 4;

fn areas() -> ZrwaConfig {
    ZrwaConfig {
        size_lbas: SIZE as u32,
        flush_granularity_lbas: STEP as u32,
        max_areas: Some(2),
        explicit_flush: true,
    }
}

type Random<'ns> = Zone<'ns, Queue, OpenRandom>;

/// What a program does, with blocks counted from the write pointer.
#[derive(Clone, Debug)]
enum Step {
    WriteAt { at: i64, nlb: u64 },
    Commit(i64),
    Read { at: i64, nlb: u64 },
    Close,
    Refresh,
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = -3_i64..20;
    let step = prop_oneof![
        8 => (at.clone(), 1_u64..8).prop_map(|(at, nlb)| Step::WriteAt { at, nlb }),
        5 => at.clone().prop_map(Step::Commit),
        6 => (-20_i64..18, 1_u64..12).prop_map(|(at, nlb)| Step::Read { at, nlb }),
        1 => Just(Step::Close),
        1 => Just(Step::Refresh),
        1 => Just(Step::Reset),
    ];
    proptest::collection::vec(step, 1..80)
}

/// What zone 1 should hold.
struct Shadow {
    wp: u64,
    /// What each block holds.
    blocks: Vec<u8>,
    /// The blocks behind the write pointer that the handle has written.
    written: Vec<bool>,
}

impl Shadow {
    fn new() -> Self {
        Self {
            wp: 0,
            blocks: vec![0; CAPACITY as usize],
            written: vec![false; CAPACITY as usize],
        }
    }

    fn end(&self) -> u64 {
        (self.wp + SIZE).min(CAPACITY)
    }

    fn is_readable(&self, at: u64, nlb: u64) -> bool {
        let end = at + nlb;
        end <= CAPACITY && (at..end).all(|at| at < self.wp || self.written[at as usize])
    }
}

const START: u64 = ZONE;

fn write(zone: &mut Random<'_>, shadow: &mut Shadow, (at, nlb): (u64, u64), byte: u8) {
    let result = zone.write_at(Lba(START + at), blocks(nlb, byte));
    if at >= shadow.wp && at + nlb <= shadow.end() {
        assert!(
            result.unwrap() == blocks(nlb, byte),
            "the buffer comes back"
        );
        let range = at as usize..(at + nlb) as usize;
        shadow.blocks[range.clone()].fill(byte);
        shadow.written[range].fill(true);
    } else {
        let refused = result.unwrap_err();
        assert!(
            matches!(refused.error, ZoneError::NotInArea { .. }),
            "{refused}"
        );
        assert!(refused.data.is_some());
    }
}

fn commit(zone: &mut Random<'_>, shadow: &mut Shadow, end: u64) {
    let result = zone.commit(Lba(START + end));
    let is_possible = (shadow.wp..=shadow.end()).contains(&end);
    if is_possible && (end - shadow.wp).is_multiple_of(STEP) {
        result.unwrap();
        shadow.wp = end;
    } else {
        let is_said = matches!(result, Err(ZoneError::NotCommittable { .. }));
        assert!(is_said, "{result:?}");
    }
}

fn read(zone: &Random<'_>, shadow: &Shadow, at: u64, nlb: u64) {
    let result = zone.read(Lba(START + at), Buf::zeroed(nlb as usize * LBA));
    if shadow.is_readable(at, nlb) {
        let range = at as usize..(at + nlb) as usize;
        let expected: Vec<u8> = (shadow.blocks[range].iter())
            .flat_map(|byte| vec![*byte; LBA])
            .collect();
        assert!(result.unwrap()[..] == expected[..], "{nlb} blocks at {at}");
    } else {
        let refused = result.unwrap_err();
        assert!(
            matches!(refused.error, ZoneError::NotWritten { .. }),
            "{refused}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a program does, the handle's write pointer is the drive's, it refuses what
    /// the drive would refuse or commit by itself, and data is where it was written.
    #[test]
    fn areas_are_what_the_shadow_is(steps in steps()) {
        let mut rig = Rig::with_areas(areas());
        let (namespace, _) = rig.split();
        let mut shadow = Shadow::new();
        let mut zone = namespace.zone(ZoneId(1)).unwrap().open_random().unwrap();
        for (byte, step) in (1_u8..).zip(steps) {
            let place = |at: i64| shadow.wp.saturating_add_signed(at);
            match step {
                Step::WriteAt { at, nlb } => {
                    let at = place(at);
                    write(&mut zone, &mut shadow, (at, nlb), byte);
                }
                Step::Commit(at) => {
                    let end = place(at);
                    commit(&mut zone, &mut shadow, end);
                }
                Step::Read { at, nlb } => read(&zone, &shadow, place(at), nlb),
                Step::Close if shadow.wp < CAPACITY => zone = zone.close().unwrap().open().unwrap(),
                Step::Refresh if shadow.wp < CAPACITY => {
                    zone = zone.refresh().unwrap().open_random().unwrap();
                    // Nobody knows any more which blocks of the area were written.
                    shadow.written.fill(false);
                }
                Step::Reset => {
                    zone = zone.reset().unwrap().open_random().unwrap();
                    shadow = Shadow::new();
                }
                Step::Close | Step::Refresh => {}
            }
            assert_eq!(zone.write_pointer(), Lba(START + shadow.wp));
            assert_eq!(zone.area(), Lba(START + shadow.wp)..Lba(START + shadow.end()));
            let info = namespace.report().nth(1).unwrap().unwrap();
            let expected = (shadow.wp < CAPACITY).then_some(Lba(START + shadow.wp));
            assert_eq!(info.write_pointer, expected);
            if shadow.wp == CAPACITY {
                zone = zone.seal().unwrap().reset().unwrap().open_random().unwrap();
                shadow = Shadow::new();
            }
        }
    }
}

/// A zone with an area is not taken for one whose writes move the write pointer.
#[test]
fn zones_with_areas_are_told_apart() {
    let mut rig = Rig::with_areas(areas());
    let (namespace, _) = rig.split();
    let zone = namespace.zone(ZoneId(0)).unwrap().open_random().unwrap();
    drop(zone);
    let zone = namespace.zone(ZoneId(0)).unwrap();
    assert!(matches!(zone, AnyZone::OpenRandom(_)));
    let failed = zone.open().unwrap_err();
    assert_eq!(failed.error, ZoneError::HasArea { zone: ZoneId(0) });
    let zone = failed.zone.refresh().unwrap().open_random().unwrap();
    drop(zone.close().unwrap());
    let zone = namespace.zone(ZoneId(0)).unwrap();
    assert!(matches!(zone, AnyZone::ClosedRandom(_)));
    assert_eq!(zone.state(), ZoneState::CLOSED);
    let mut zone = zone.open_random().unwrap();
    zone.write_at(Lba(2), blocks(3, 7)).unwrap();
    // A finish commits what was written.
    let full = zone.finish().unwrap();
    let read = full.read(Lba(0), Buf::zeroed(5 * LBA)).unwrap();
    assert!(read[..2 * LBA].iter().all(|byte| *byte == 0));
    assert!(read[2 * LBA..].iter().all(|byte| *byte == 7));
    let failed = AnyZone::Full(full).open_random().unwrap_err();
    assert!(matches!(failed.error, ZoneError::WrongState { .. }));
}

/// What a drive lacks or refuses has a name, and another host's commit is found out.
#[test]
fn areas_fail_with_reasons() {
    let mut without = Rig::new();
    let (namespace, _) = without.split();
    let failed = namespace
        .zone(ZoneId(0))
        .unwrap()
        .open_random()
        .unwrap_err();
    assert!(
        matches!(failed.error, ZoneError::NoArea { .. }),
        "{}",
        failed.error
    );
    assert!(failed.error.to_string().contains("OZCS"));
    let mut implicit = Rig::with_areas(ZrwaConfig {
        explicit_flush: false,
        ..areas()
    });
    let (namespace, _) = implicit.split();
    let failed = namespace
        .zone(ZoneId(0))
        .unwrap()
        .open_random()
        .unwrap_err();
    assert!(failed.error.to_string().contains("ZRWACAP"));
    let mut rig = Rig::with_areas(areas());
    let (namespace, mut elsewhere) = rig.split();
    let open = |zone| namespace.zone(ZoneId(zone)).unwrap().open_random();
    let (mut first, _second) = (open(0).unwrap(), open(1).unwrap());
    let failed = open(2).unwrap_err();
    let status = Status::ZRWA_RESOURCES_UNAVAILABLE;
    assert!(matches!(failed.error, ZoneError::Failed { status: of, .. } if of == status));
    first.write_at(Lba(0), blocks(8, 1)).unwrap();
    let done = elsewhere(send(0, ZoneSendAction::FINISH), None);
    assert!(done.status.is_success());
    assert!(matches!(
        first.commit(Lba(8)),
        Err(ZoneError::Failed { .. })
    ));
    let refused = first.write_at(Lba(8), blocks(1, 1)).unwrap_err();
    assert!(matches!(refused.error, ZoneError::NotKnown { .. }));
    assert!(matches!(first.refresh().unwrap(), AnyZone::Full(_)));
}
