//! Where what is in the file, and the bytes of each record.
//!
//! ```text
//! header            magic, version, checksum; what the data depends on
//! reservations      two slots, in the second half of the header if it does not take that
//! state             two slots: epoch, size of blocks, whether it was closed in good order
//! durable           two slots: the last record that a Flush covers
//! redo              the last writes in place: where they go, and their bytes
//! checkpoint        two slots: wear and totals
//! notes             two slots for each zone: the record of it that a Flush covers
//! zones             three slots for each zone
//! forgotten blocks  of conventional namespaces: by block, when it was forgotten last
//! placed blocks     of conventional namespaces: by place, which block, and since when
//! checksums         of blocks, zone by zone
//! data              zone by zone
//! ```
//!
//! Integers are little-endian. A checksum (CRC-32C) begins every record and
//! covers the rest of it and its place, so that none is taken for another. A
//! format begins a new epoch, in which nothing of earlier ones counts.

use serde::{Deserialize, Serialize};
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::config::{DriveConfig, NamespaceKind};
use zonelab_ssd::contents::ZoneRecord;
use zonelab_ssd::stored;

pub(crate) const MAGIC: &[u8; 8] = b"ZLSTORE\0";
pub(crate) const VERSION: u32 = 2;
/// What begins the header: magic, version, checksum, length of what follows.
pub(crate) const PREFIX_BYTES: usize = 8 + 4 + 4 + 4;
/// All of the header.
pub(crate) const HEADER_BYTES: u64 = 64 << 10;
/// Alignment of sections, and the bytes of a slot of the state.
const SECTION: u64 = 4096;
/// Reservations have the rest of the header, if its description leaves them that.
pub(crate) const RESERVATIONS_AT: u64 = HEADER_BYTES / 2;
/// A slot of reservations.
pub(crate) const RESERVATIONS_SLOT_BYTES: usize = 16 << 10;
const STATE_AT: u64 = HEADER_BYTES;
pub(crate) const STATE_BYTES: usize = 48;
const DURABLE_AT: u64 = STATE_AT + 2 * SECTION;
/// Of a slot of what is durable, and of a note.
pub(crate) const NOTE_BYTES: usize = 16;
const REDO_AT: u64 = DURABLE_AT + 2 * SECTION;
pub(crate) const REDO_HEADER_BYTES: usize = 64;
/// Most bytes of one write in place; a multiple of any size of blocks.
pub(crate) const REDO_BYTES_MAX: usize = 256 << 10;
/// A slot: header, bytes, and checksums of blocks.
const REDO_SLOT_BYTES: u64 = SECTION + REDO_BYTES_MAX as u64 + REDO_BYTES_MAX as u64 / 128;
/// One of tables, and two of data.
pub(crate) const REDO_SLOTS: u64 = 3;
const CHECKPOINTS_AT: u64 = REDO_AT + REDO_SLOTS * REDO_SLOT_BYTES;
/// Slots of the records of a zone: the one that the last Flush covers stays
/// until the next, and the others are written in turn.
pub(crate) const RECORD_SLOTS: u64 = 3;
/// Bytes of the checksum of a block.
pub(crate) const SUM_BYTES: u64 = 4;
pub(crate) const CHECKPOINT_HEADER_BYTES: usize = 32;
/// Without its descriptor extension.
const RECORD_BYTES: usize = 40;
/// An entry about a block of a conventional namespace.
pub(crate) const ENTRY_BYTES: u64 = 16;
/// The smallest block that a drive can be formatted to.
const LBA_BYTES_MIN: u64 = 512;
/// "None" of an end of a random write area.
const NONE: u64 = u64::MAX;

/// A conventional namespace in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogLayout {
    /// Its zones, counted over the drive.
    pub(crate) zones: std::ops::Range<u32>,
    pub(crate) capacity_bytes: u64,
    /// What hosts can address.
    pub(crate) size_bytes: u64,
    forgotten_at: u64,
    placed_at: u64,
}

impl LogLayout {
    /// Where it stands when a block was forgotten.
    pub(crate) fn forgotten_at(&self, block: u32) -> u64 {
        self.forgotten_at + u64::from(block) * ENTRY_BYTES
    }

    /// Where it stands what a place in a zone holds. The zone is one of the log's.
    pub(crate) fn placed_at(&self, zone: u32, offset_lbas: u32) -> u64 {
        let per_zone = self.capacity_bytes / LBA_BYTES_MIN;
        let place = u64::from(zone - self.zones.start) * per_zone + u64::from(offset_lbas);
        self.placed_at + place * ENTRY_BYTES
    }
}

/// Where what is in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layout {
    pub(crate) zones: u32,
    pub(crate) zone_bytes: u64,
    pub(crate) extension_bytes: usize,
    pub(crate) logs: Vec<LogLayout>,
    pub(crate) checkpoint_bytes_max: u64,
    slot_bytes: u64,
    notes_at: u64,
    records_at: u64,
    /// End of the records: from here on, things are written in place.
    pub(crate) tables_at: u64,
    /// Where checksums are, if blocks have any.
    sums_at: Option<u64>,
    data_at: u64,
}

impl Layout {
    /// That of a drive. It does not depend on what the drive is formatted to.
    pub(crate) fn new(config: &DriveConfig, has_sums: bool) -> Self {
        let lba_bytes = u64::from(config.lba_bytes);
        let extension_bytes = config.zones.descriptor_extension_bytes as usize;
        let slot_bytes = (RECORD_BYTES + extension_bytes).next_power_of_two() as u64;
        let checkpoint_bytes_max = stored::checkpoint_bytes_max(config);
        let zones = config.zones.count;
        let notes_at = CHECKPOINTS_AT + 2 * checkpoint_slot_bytes(checkpoint_bytes_max);
        let records_at = aligned(notes_at + 2 * NOTE_BYTES as u64 * u64::from(zones));
        let tables_at = aligned(records_at + RECORD_SLOTS * slot_bytes * u64::from(zones));
        let mut next = tables_at;
        let mut first = 0;
        let mut logs = Vec::new();
        for namespace in config.namespaces() {
            let range = first..first + namespace.zones;
            first = range.end;
            if namespace.kind == NamespaceKind::Zoned {
                continue;
            }
            let capacity_bytes = config.zones.capacity_lbas * lba_bytes;
            let size_bytes = namespace.size_lbas(&config.zones) * lba_bytes;
            let forgotten_at = next;
            let entries = |bytes: u64| aligned(bytes / LBA_BYTES_MIN * ENTRY_BYTES);
            let placed_at = forgotten_at + entries(size_bytes);
            next = placed_at + entries(capacity_bytes * u64::from(namespace.zones));
            logs.push(LogLayout {
                zones: range,
                capacity_bytes,
                size_bytes,
                forgotten_at,
                placed_at,
            });
        }
        let zone_bytes = config.zones.size_lbas * lba_bytes;
        let sums_at = has_sums.then_some(next);
        if has_sums {
            next += sums_bytes(zone_bytes) * u64::from(zones);
        }
        Self {
            zones,
            zone_bytes,
            extension_bytes,
            logs,
            checkpoint_bytes_max,
            slot_bytes,
            notes_at,
            records_at,
            tables_at,
            sums_at,
            data_at: next,
        }
    }

    /// Length of the file, most of which is holes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.data_at + self.zone_bytes * u64::from(self.zones)
    }

    pub(crate) fn state_at(slot: u64) -> u64 {
        STATE_AT + slot % 2 * SECTION
    }

    pub(crate) fn reservations_at(slot: u64) -> u64 {
        RESERVATIONS_AT + slot % 2 * RESERVATIONS_SLOT_BYTES as u64
    }

    pub(crate) fn durable_at(slot: u64) -> u64 {
        DURABLE_AT + slot % 2 * SECTION
    }

    /// Slot 0 is of tables; 1 and 2 of data.
    pub(crate) fn redo_at(slot: u64) -> u64 {
        REDO_AT + slot * REDO_SLOT_BYTES
    }

    pub(crate) fn note_at(&self, zone: u32, slot: u64) -> u64 {
        self.notes_at + (u64::from(zone) * 2 + slot) * NOTE_BYTES as u64
    }

    /// What is written whatever the drive holds: its space is taken at once, so
    /// that it does not fail later.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.tables_at
    }

    pub(crate) const fn has_sums(&self) -> bool {
        self.sums_at.is_some()
    }

    /// Where the checksum of a block is.
    pub(crate) fn sum_at(&self, zone: u32, block: u64) -> Option<u64> {
        let first = self.sums_at? + u64::from(zone) * sums_bytes(self.zone_bytes);
        Some(first + block * SUM_BYTES)
    }

    /// The zone and byte of it that are at a place of the file, if it is data.
    pub(crate) fn zone_of_data(&self, at: u64) -> Option<(u32, u64)> {
        let within = at.checked_sub(self.data_at)?;
        let zone = u32::try_from(within / self.zone_bytes).ok()?;
        (zone < self.zones).then_some((zone, within % self.zone_bytes))
    }

    pub(crate) fn checkpoint_at(&self, slot: u64) -> u64 {
        CHECKPOINTS_AT + slot % 2 * checkpoint_slot_bytes(self.checkpoint_bytes_max)
    }

    pub(crate) fn record_at(&self, zone: u32, slot: u64) -> u64 {
        self.records_at + (u64::from(zone) * RECORD_SLOTS + slot) * self.slot_bytes
    }

    pub(crate) fn record_bytes(&self) -> usize {
        RECORD_BYTES + self.extension_bytes
    }

    pub(crate) fn data_at(&self, zone: u32, offset: u64) -> u64 {
        self.data_at + u64::from(zone) * self.zone_bytes + offset
    }

    /// The log that a zone is of.
    pub(crate) fn log_of(&self, zone: u32) -> Option<&LogLayout> {
        self.logs.iter().find(|log| log.zones.contains(&zone))
    }
}

const fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(SECTION)
}

/// Bytes of the checksums of a zone.
const fn sums_bytes(zone_bytes: u64) -> u64 {
    aligned(zone_bytes / LBA_BYTES_MIN * SUM_BYTES)
}

fn checkpoint_slot_bytes(bytes_max: u64) -> u64 {
    aligned(CHECKPOINT_HEADER_BYTES as u64 + bytes_max)
}

/// Puts the checksum of a record that is going to be at `at` in front of it.
pub(crate) fn seal(at: u64, bytes: &mut [u8]) {
    let checksum = checksum(at, &bytes[4..]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
}

/// Whether a record at `at` is whole.
pub(crate) fn is_whole(at: u64, bytes: &[u8]) -> bool {
    bytes[..4] == checksum(at, &bytes[4..]).to_le_bytes()
}

fn checksum(at: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&at.to_le_bytes()), bytes)
}

pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// What is true of all of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) sequence: u64,
    pub(crate) epoch: u32,
    pub(crate) lba_bytes: u32,
    /// It was closed in good order, and not opened since.
    pub(crate) is_clean: bool,
    /// When the machine was started that wrote it ([`crate::Medium::boot`]).
    pub(crate) boot: [u8; 16],
}

/// A number that is durable: of the last record that a Flush covers, of all
/// zones (with the number of synchronisations) or of one (with the zone).
pub(crate) fn encode_note(at: u64, of: u32, number: u64) -> [u8; NOTE_BYTES] {
    let mut bytes = [0; NOTE_BYTES];
    bytes[4..8].copy_from_slice(&of.to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    seal(at, &mut bytes);
    bytes
}

/// `None`: it is torn or damaged.
pub(crate) fn decode_note(at: u64, bytes: &[u8; NOTE_BYTES]) -> Option<(u32, u64)> {
    if is_zero(bytes) {
        Some((0, 0))
    } else {
        is_whole(at, bytes).then(|| (u32_at(bytes, 4), u64_at(bytes, 8)))
    }
}

impl State {
    pub(crate) fn encode(&self) -> [u8; STATE_BYTES] {
        let mut bytes = [0; STATE_BYTES];
        bytes[4..8].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.lba_bytes.to_le_bytes());
        bytes[20] = u8::from(self.is_clean);
        bytes[32..].copy_from_slice(&self.boot);
        seal(Layout::state_at(self.sequence), &mut bytes);
        bytes
    }

    /// Of a whole slot.
    pub(crate) fn decode(bytes: &[u8; STATE_BYTES]) -> Self {
        Self {
            epoch: u32_at(bytes, 4),
            sequence: u64_at(bytes, 8),
            lba_bytes: u32_at(bytes, 16),
            is_clean: bytes[20] != 0,
            boot: std::array::from_fn(|index| bytes[32 + index]),
        }
    }
}

/// What is kept of a zone, and when it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) epoch: u32,
    pub(crate) sequence: u64,
    /// How often data of the zone was taken away: a redo of another life is void.
    pub(crate) life: u32,
    pub(crate) record: ZoneRecord,
}

impl Slot {
    /// Its bytes, for a slot that is at `at`.
    pub(crate) fn encode(&self, layout: &Layout, at: u64, bytes: &mut Vec<u8>) {
        let record = &self.record;
        bytes.clear();
        bytes.resize(layout.record_bytes(), 0);
        bytes[4..8].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&record.host_lbas.to_le_bytes());
        bytes[24..32].copy_from_slice(&record.zrwa_end_lbas.unwrap_or(NONE).to_le_bytes());
        bytes[32..36].copy_from_slice(&self.life.to_le_bytes());
        bytes[36] = record.state.0;
        let flags = [
            record.is_finished,
            record.by_controller,
            record.extension.is_some(),
        ];
        bytes[37] = (0..).zip(flags).map(|(bit, is)| u8::from(is) << bit).sum();
        if let Some(extension) = &record.extension {
            let len = extension.len().min(layout.extension_bytes);
            bytes[RECORD_BYTES..RECORD_BYTES + len].copy_from_slice(&extension[..len]);
        }
        seal(at, bytes);
    }

    /// Of a whole slot.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let flag = |bit: u8| bytes[37] >> bit & 1 != 0;
        Self {
            epoch: u32_at(bytes, 4),
            sequence: u64_at(bytes, 8),
            life: u32_at(bytes, 32),
            record: ZoneRecord {
                state: ZoneState(bytes[36]),
                host_lbas: u64_at(bytes, 16),
                is_finished: flag(0),
                by_controller: flag(1),
                zrwa_end_lbas: Some(u64_at(bytes, 24)).filter(|end| *end != NONE),
                extension: flag(2).then(|| bytes[RECORD_BYTES..].into()),
            },
        }
    }
}

/// A write in place: what is at `at` becomes other bytes, or zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redo {
    pub(crate) epoch: u32,
    /// The higher, the later.
    pub(crate) sequence: u64,
    /// Synchronisations before it.
    pub(crate) syncs: u32,
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// Bytes of checksums of its blocks that follow its own.
    pub(crate) sums_len: u32,
    /// Zone and life that it is of, if it is data.
    pub(crate) of: Option<(u32, u32)>,
}

impl Redo {
    /// Its header, to which the bytes are added before it is sealed.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.resize(REDO_HEADER_BYTES, 0);
        let (zone, life) = self.of.unwrap_or_default();
        bytes[4..8].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.at.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.len.to_le_bytes());
        bytes[24..28].copy_from_slice(&zone.to_le_bytes());
        bytes[28..32].copy_from_slice(&life.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.sums_len.to_le_bytes());
        bytes[44] = u8::from(self.of.is_some());
        bytes[48..52].copy_from_slice(&self.syncs.to_le_bytes());
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        Self {
            epoch: u32_at(bytes, 4),
            at: u64_at(bytes, 8),
            len: u64_at(bytes, 16),
            sequence: u64_at(bytes, 32),
            syncs: u32_at(bytes, 48),
            sums_len: u32_at(bytes, 40),
            of: (bytes[44] != 0).then(|| (u32_at(bytes, 24), u32_at(bytes, 28))),
        }
    }
}
