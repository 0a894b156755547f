//! When a store synchronises its medium, and what follows from it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zonelab_device::{Command, Lba, NamespaceId, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::DriveModel;
use zonelab_ssd::contents::{Contents, ZoneRecord};
use zonelab_store::{Medium, Options, create, open};

use super::promises::flush;
use super::{Memory, config, drive_in, read, run, write};

/// Memory that counts synchronisations, can fail at them, and can leave out
/// writes of data.
#[derive(Clone, Debug, Default)]
struct Counted {
    memory: Memory,
    syncs: Arc<AtomicU64>,
    /// From this synchronisation on, counted from 1, they fail. 0: none.
    fails_from: Arc<AtomicU64>,
    /// Writes longer than this are not kept. 0: all are.
    kept_bytes_max: usize,
}

impl Counted {
    fn count(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
}

impl Medium for Counted {
    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.memory.read(at, out)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if self.kept_bytes_max > 0 && bytes.len() > self.kept_bytes_max {
            return Ok(());
        }
        self.memory.write(at, bytes)
    }

    fn zero(&mut self, at: u64, len: u64) -> io::Result<()> {
        self.memory.zero(at, len)
    }

    fn sync(&mut self) -> io::Result<()> {
        let nth = self.syncs.fetch_add(1, Ordering::Relaxed) + 1;
        let fails_from = self.fails_from.load(Ordering::Relaxed);
        match fails_from > 0 && nth >= fails_from {
            true => Err(io::Error::other("the medium is gone")),
            false => Ok(()),
        }
    }

    /// One that is not counted: it comes with each of the others.
    fn write_durably(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write(at, bytes)
    }
}

fn reset(zone_start: u64) -> Op {
    Op::ZoneSend {
        slba: Lba(zone_start),
        action: ZoneSendAction::RESET,
        select_all: false,
    }
}

#[test]
fn flushes_that_complete_together_share_a_synchronisation() {
    let config = config();
    let mut medium = Counted::default();
    create(&mut medium, &config, Options::default()).unwrap();
    let (store, found) = open(medium.clone(), &config).unwrap();
    let mut drive = zonelab_ssd::Drive::stored(&config, &found.kept, Box::new(store)).unwrap();
    drive.keep().unwrap();
    for flushes in [1, 2, 16] {
        for zone in 0..3 {
            let slba = u64::from(zone) * config.zones.size_lbas;
            let written = drive.zones().written_lbas(ZoneId(zone));
            write(&mut drive, slba + written, 1, 7);
        }
        let before = medium.count();
        for tag in 0..flushes {
            let nsid = NamespaceId(1);
            let command = Command::on(nsid, Op::Flush);
            let now = drive.now();
            drive
                .submit(now, QueueId(0), Tag(tag), command, None)
                .unwrap();
        }
        let mut done = Vec::new();
        while let Some(at) = drive.next_event() {
            drive.advance(at, &mut done);
        }
        assert_eq!(done.len(), flushes as usize);
        drive.keep().unwrap();
        assert_eq!(medium.count() - before, 1, "{flushes} flushes");
    }
    // What is durable already needs none.
    let before = medium.count();
    flush(&mut drive);
    assert_eq!(medium.count(), before);
}

#[test]
fn a_store_that_cannot_be_synchronised_lets_nothing_out() {
    let config = config();
    let mut medium = Counted::default();
    create(&mut medium, &config, Options::default()).unwrap();
    let (store, found) = open(medium.clone(), &config).unwrap();
    let mut drive = zonelab_ssd::Drive::stored(&config, &found.kept, Box::new(store)).unwrap();
    drive.keep().unwrap();
    write(&mut drive, 0, 2, 0x11);
    flush(&mut drive);
    let next = medium.count() + 1;
    medium.fails_from.store(next, Ordering::Relaxed);
    write(&mut drive, 2, 2, 0x22);
    drive.keep().unwrap();
    run(&mut drive, 1, Op::Flush, None);
    // Whoever serves the drive asks here, before the answer to the Flush leaves.
    let error = drive.keep().unwrap_err();
    assert!(error.to_string().contains("synchronising"), "{error}");
    assert!(error.to_string().contains("the medium is gone"), "{error}");
    // It stays so, and nothing is written any more.
    medium.fails_from.store(0, Ordering::Relaxed);
    drive.keep().unwrap_err();
    drop(drive);
    let mut drive = drive_in(&medium.memory, &config);
    assert!(read(&mut drive, 1, 0, 2).iter().all(|byte| *byte == 0x11));
}

#[test]
fn a_reset_gives_space_back_with_the_next_flush() {
    let config = config();
    let mut memory = Memory::default();
    create(&mut memory, &config, Options::default()).unwrap();
    let mut drive = drive_in(&memory, &config);
    let pages = |with: u8| {
        let inner = memory.0.lock().unwrap();
        let pages = inner.pages.values();
        pages
            .filter(|page| page.iter().all(|byte| *byte == with))
            .count()
    };
    // No Flush covers it: nothing needs it any more.
    write(&mut drive, 0, 8, 0x5c);
    drive.keep().unwrap();
    assert!(pages(0x5c) >= 8);
    assert!(run(&mut drive, 1, reset(0), None).0.is_success());
    drive.keep().unwrap();
    assert_eq!(pages(0x5c), 0);
    // A Flush covers it: it is there until one covers the reset.
    write(&mut drive, 0, 8, 0x6d);
    flush(&mut drive);
    assert!(run(&mut drive, 1, reset(0), None).0.is_success());
    drive.keep().unwrap();
    assert!(pages(0x6d) >= 8, "a failure of the machine would lose it");
    flush(&mut drive);
    assert_eq!(pages(0x6d), 0);
    assert_eq!(drive.zones().state(ZoneId(0)), ZoneState::EMPTY);
}

#[test]
fn what_is_not_flushed_is_synchronised_after_one_gibibyte() {
    let config = config();
    let mut medium = Counted {
        kept_bytes_max: 128 << 10,
        ..Counted::default()
    };
    create(
        &mut medium,
        &config,
        Options {
            has_checksums: false,
        },
    )
    .unwrap();
    let (mut store, _) = open(medium.clone(), &config).unwrap();
    store.begin();
    let piece = vec![7; 256 << 10];
    let begun = medium.count();
    let mut written = 0_u64;
    let mut counts = Vec::new();
    while written < 3 << 29 {
        store.write(ZoneId(0), 0, &piece).unwrap();
        written += piece.len() as u64;
        if medium.count() - begun > counts.len() as u64 {
            counts.push(written);
        }
        // Reset, so that it can be written again.
        store.keep_zone(ZoneId(0), &ZoneRecord::EMPTY);
        store.clear(ZoneId(0));
    }
    assert_eq!(store.failure(), None);
    assert_eq!(counts.len(), 1, "{counts:?}");
    // Records count as well.
    let gibibyte = 1_u64 << 30;
    assert!(counts[0] <= gibibyte + piece.len() as u64, "{counts:?}");
    assert!(counts[0] > gibibyte / 10 * 9, "{counts:?}");
}
