//! Snapshots: damaged, forged, foreign.

use zonelab_device::{Buf, Command, Lba, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::{Drive, DriveModel, snapshot};

use crate::draw::Draw;
use crate::drive::draw_config;

/// Where the body of a snapshot begins: part of the format.
const BODY: usize = 24;

/// The target: a snapshot of a drawn drive with drawn edits is refused with a
/// reason, or is a drive that works; without edits, it is the same drive.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let mut draw = Draw::new(data);
    let config = draw_config(&mut draw, true);
    let mut drive = Drive::new(&config);
    use_drive(&mut drive, &mut draw, 12);
    let original = snapshot::save(&drive).expect("nothing is in flight");
    let mut bytes = original.clone();
    edit(&mut bytes, &mut draw);
    match snapshot::restore(&config, &bytes) {
        Err(error) => {
            assert_ne!(bytes, original, "its own snapshot was refused: {error}");
            assert!(!error.to_string().is_empty(), "refused without a reason");
        }
        Ok(mut copy) => {
            copy.zones().assert_invariants();
            let again = snapshot::save(&copy);
            if let Ok(again) = again {
                let back = snapshot::restore(&config, &again).expect("what was saved is a drive");
                assert_eq!(back.totals(), copy.totals());
            }
            use_drive(&mut copy, &mut draw, 30);
            copy.zones().assert_invariants();
        }
    }
}

/// Commands on a drive, one after another, until it is idle.
fn use_drive(drive: &mut Drive, draw: &mut Draw<'_>, commands: u32) {
    let zones = &drive.config().zones;
    let (count, size) = (zones.count, zones.size_lbas);
    let lba_bytes = drive.config().lba_bytes as usize;
    let mut now = Nanos::ZERO;
    let mut done = Vec::new();
    for tag in 0..draw.int(0..=commands) {
        let (nsid, zone) = drive.zones().in_namespace(ZoneId(draw.int(0..=count - 1)));
        let start = Lba(u64::from(zone.0) * size);
        let nlb = draw.int(1..=20);
        let op = match draw.int(0..=4_u8) {
            0 | 1 => Op::Append { zslba: start, nlb },
            2 => Op::Read { slba: start, nlb },
            _ => Op::ZoneSend {
                slba: start,
                action: draw.pick(&[
                    ZoneSendAction::RESET,
                    ZoneSendAction::FINISH,
                    ZoneSendAction::OPEN,
                    ZoneSendAction::CLOSE,
                ]),
                select_all: false,
            },
        };
        let data = matches!(op, Op::Append { .. }).then(|| {
            let mut data = Buf::zeroed(nlb as usize * lba_bytes);
            data.fill(draw.int(0..=255));
            data
        });
        drive
            .submit(now, QueueId(0), Tag(tag), Command::on(nsid, op), data)
            .expect("few are in flight");
        if draw.flag() {
            now = settle(drive, now, &mut done);
        }
    }
    settle(drive, now, &mut done);
}

fn settle(drive: &mut Drive, mut now: Nanos, done: &mut Vec<zonelab_device::Completion>) -> Nanos {
    let mut steps = 0_u32;
    while let Some(at) = drive.next_event() {
        now = now.max(at);
        drive.advance(now, done);
        steps += 1;
        assert!(steps < 1 << 20, "the drive goes round in circles");
    }
    done.clear();
    now
}

/// Damages bytes; in most cases so that the checksum fits, or nothing behind it
/// would ever be looked at.
fn edit(bytes: &mut Vec<u8>, draw: &mut Draw<'_>) {
    for _ in 0..draw.int(0..=4_u8) {
        let at = draw.int(0..=bytes.len() - 1);
        match draw.int(0..=4_u8) {
            0 => bytes[at] ^= 1 << draw.int(0..=7_u8),
            1 => bytes[at] = draw.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            2 => bytes.truncate(at.max(1)),
            3 => bytes.insert(at, draw.int(0..=255)),
            _ => drop(bytes.remove(at.min(bytes.len() - 1))),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    if draw.one_in(4) || bytes.len() < BODY {
        return;
    }
    let length = (bytes.len() - BODY) as u64;
    let checksum = crc32c::crc32c(&bytes[BODY..]);
    bytes[12..20].copy_from_slice(&length.to_le_bytes());
    bytes[20..24].copy_from_slice(&checksum.to_le_bytes());
}
