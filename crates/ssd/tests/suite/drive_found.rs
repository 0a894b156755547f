//! What commands found to do: reads of nothing, resets of empty zones.

use crate::drive_support::{PAGE, Rig, fill, small};
use zonelab_device::Found::{self, Buffered, Nothing, Work};
use zonelab_device::{Buf, Command, Lba, NamespaceId, Op};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::Control;
use zonelab_ssd::config::{
    BufferRelease, DriveConfig, FinishConfig, LogConfig, NamespaceConfig, NamespaceKind, Placement,
    WriteBufferConfig,
};

/// Blocks of a zone.
const CAPACITY: u32 = 32 * PAGE;

fn found(rig: &mut Rig, op: Op) -> Found {
    let done = rig.exec(op);
    assert_eq!(done.status, Status::SUCCESS, "{op:?}");
    done.found
}

fn send(rig: &Rig, zone: u32, action: ZoneSendAction) -> Op {
    Op::ZoneSend {
        slba: rig.lba(zone, 0),
        action,
        select_all: false,
    }
}

fn buffered() -> DriveConfig {
    DriveConfig {
        write_buffer: Some(WriteBufferConfig {
            size_bytes: 1 << 20,
            power_loss_protection: false,
            release: BufferRelease::Program,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Placement::InOrder,
        }),
        ..small()
    }
}

#[test]
fn reads_say_whether_there_was_anything_to_read() {
    let mut rig = Rig::new(&small());
    let read = |rig: &Rig, offset, nlb| rig.read(0, offset, nlb);
    let nothing = read(&rig, 0, PAGE);
    assert_eq!(found(&mut rig, nothing), Nothing);
    let write = rig.write(0, 2 * PAGE);
    assert_eq!(found(&mut rig, write), Work(2 * PAGE));
    let all = read(&rig, PAGE, PAGE);
    assert_eq!(found(&mut rig, all), Work(PAGE));
    // A part of it is there.
    let across = read(&rig, PAGE, 2 * PAGE);
    assert_eq!(found(&mut rig, across), Work(2 * PAGE));
    let behind = read(&rig, 2 * PAGE, PAGE);
    assert_eq!(found(&mut rig, behind), Nothing);
    // What a finish fills holds nothing for a host.
    let finish = send(&rig, 0, ZoneSendAction::FINISH);
    found(&mut rig, finish);
    assert_eq!(found(&mut rig, behind), Nothing);
    let reset = send(&rig, 0, ZoneSendAction::RESET);
    found(&mut rig, reset);
    assert_eq!(found(&mut rig, all), Nothing);
    let full = Control::PreconditionFull { zones: 1..2 };
    rig.drive.control(rig.now, &full).expect("zone 1 is empty");
    let declared = rig.read(1, 0, PAGE);
    assert_eq!(found(&mut rig, declared), Work(PAGE));
}

#[test]
fn reads_from_the_write_buffer_are_told_apart() {
    let mut rig = Rig::new(&buffered());
    // Less than a page waits in the buffer for the rest of it.
    let write = rig.write(0, PAGE + 1);
    found(&mut rig, write);
    rig.settle();
    let (programmed, waiting) = (rig.read(0, 0, 1), rig.read(0, PAGE, 1));
    assert_eq!(found(&mut rig, programmed), Work(1));
    assert_eq!(found(&mut rig, waiting), Buffered);
    let both = rig.read(0, PAGE - 1, 2);
    assert_eq!(found(&mut rig, both), Work(2));
    let behind = rig.read(0, PAGE + 1, 1);
    assert_eq!(found(&mut rig, behind), Nothing);
}

#[test]
fn management_says_what_zones_held_or_lacked() {
    let mut config = small();
    config.finish = fill(256);
    let mut rig = Rig::new(&config);
    let of = |rig: &mut Rig, zone, action| {
        let op = send(rig, zone, action);
        let found = found(rig, op);
        rig.settle();
        found
    };
    assert_eq!(of(&mut rig, 0, ZoneSendAction::RESET), Nothing);
    assert_eq!(of(&mut rig, 0, ZoneSendAction::OPEN), Work(0));
    assert_eq!(of(&mut rig, 0, ZoneSendAction::OPEN), Nothing);
    assert_eq!(of(&mut rig, 0, ZoneSendAction::CLOSE), Work(0));
    assert_eq!(of(&mut rig, 0, ZoneSendAction::CLOSE), Nothing);
    // It was open, and held nothing.
    assert_eq!(of(&mut rig, 0, ZoneSendAction::RESET), Nothing);
    let write = rig.write(0, 3 * PAGE);
    found(&mut rig, write);
    assert_eq!(of(&mut rig, 0, ZoneSendAction::RESET), Work(3 * PAGE));
    let write = rig.write(0, PAGE);
    found(&mut rig, write);
    let left = Work(CAPACITY - PAGE);
    assert_eq!(of(&mut rig, 0, ZoneSendAction::FINISH), left);
    assert_eq!(of(&mut rig, 0, ZoneSendAction::FINISH), Nothing);
    // What filled it is erased with the rest.
    assert_eq!(of(&mut rig, 0, ZoneSendAction::RESET), Work(CAPACITY));
    let all = Op::ZoneSend {
        slba: Lba(0),
        action: ZoneSendAction::RESET,
        select_all: true,
    };
    assert_eq!(found(&mut rig, all), Nothing);
    for zone in 1..3 {
        let write = rig.write(zone, PAGE);
        found(&mut rig, write);
    }
    assert_eq!(found(&mut rig, all), Work(2 * PAGE));
}

/// A finish that changes only the state of its zone fills nothing, and neither does any the rest
/// of a page that the host began.
#[test]
fn a_finish_says_what_it_fills() {
    for (design, fills) in [(FinishConfig::Metadata, 0), (fill(256), CAPACITY - PAGE)] {
        let mut config = small();
        config.finish = design;
        let mut rig = Rig::new(&config);
        let write = rig.write(0, 1);
        found(&mut rig, write);
        let finish = send(&rig, 0, ZoneSendAction::FINISH);
        assert_eq!(found(&mut rig, finish), Work(fills));
        let bytes = u64::from(fills) * u64::from(config.lba_bytes);
        assert_eq!(rig.drive.totals().fill_program_bytes, bytes);
    }
}

#[test]
fn blocks_of_a_conventional_namespace_hold_what_was_written_to_them() {
    let mut config = small();
    let zones = config.zones.count;
    config.namespaces = vec![NamespaceConfig {
        kind: NamespaceKind::Conventional(LogConfig::new(3)),
        zones,
        max_active: None,
        max_open: None,
    }];
    let mut rig = Rig::new(&config);
    let slba = Lba(u64::from(8 * PAGE));
    let read = Op::Read { slba, nlb: PAGE };
    let trim = |rig: &mut Rig| {
        let range = [&[0; 4][..], &PAGE.to_le_bytes(), &slba.0.to_le_bytes()].concat();
        let op = Command::on(NamespaceId::FIRST, Op::Deallocate { ranges: 1 });
        let tag = rig.submit_command(op, Some(Buf::from(range)));
        rig.wait(tag).found
    };
    assert_eq!(found(&mut rig, read), Nothing);
    assert_eq!(trim(&mut rig), Nothing);
    let write = Op::Write { slba, nlb: PAGE };
    assert_eq!(found(&mut rig, write), Work(PAGE));
    assert_eq!(found(&mut rig, read), Work(PAGE));
    assert_eq!(trim(&mut rig), Work(PAGE));
    assert_eq!(found(&mut rig, read), Nothing);
}
