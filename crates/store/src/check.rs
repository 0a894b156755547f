//! Looking at a store without its drive, and making the most of a damaged one.

use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::contents::ZoneRecord;

use crate::layout::{Layout, RECORD_SLOTS, Slot, State, encode_note, is_whole};
use crate::medium::Medium;
use crate::open::{LostRecord, OpenError, described_bytes, read_layout};
use crate::records::Records;
use crate::reservations::{self, Slots};
use crate::sums::{self, Salt};

/// Bytes that are read at a time; a multiple of any size of blocks.
const PIECE_BYTES: u64 = 128 << 10;

/// Blocks of a zone that are not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBlocks {
    /// Their zone, counted over the drive.
    pub zone: u32,
    /// The first, from the start of the zone.
    pub first_lba: u64,
    /// How many there are, one behind the other.
    pub count: u64,
}

/// The two slots in which a store keeps reservations of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservations {
    /// The slots that are not whole.
    pub damaged_slots: Vec<u64>,
    /// The slot that holds the newest whole record, and the number of that; `None`: there are
    /// no reservations.
    pub newest: Option<(u64, u64)>,
    /// A write that was cut short cannot have left this: a record is lost, and it may have
    /// been the newest. A repair falls back on [`Self::newest`].
    pub is_lost: bool,
}

/// What a store is found to be.
#[derive(Clone, Debug)]
pub struct Report {
    /// It was closed in good order.
    pub is_clean: bool,
    /// The machine has ended since it was written last: what no Flush covers is void.
    pub is_rolled_back: bool,
    /// Blocks have checksums.
    pub has_checksums: bool,
    /// Size of blocks in bytes.
    pub lba_bytes: u32,
    /// Zones of the drive.
    pub zones: u32,
    /// Those that hold data.
    pub zones_with_data: usize,
    /// Blocks whose checksums were compared.
    pub blocks_checked: u64,
    /// Number of the last record that a Flush covers.
    pub durable_sequence: u64,
    /// Records that a Flush covers and that are not there.
    pub lost: Vec<LostRecord>,
    /// Blocks that cannot be read.
    pub bad_blocks: Vec<BadBlocks>,
    /// What is there of the reservations of hosts.
    pub reservations: Reservations,
    /// What else is damaged.
    pub damage: Option<String>,
}

impl Report {
    /// Nothing is wrong with it.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.lost.is_empty() && self.bad_blocks.is_empty() && self.damage.is_none()
    }
}

/// Looks at all records and, if blocks have checksums, at all data. Nothing is
/// written.
///
/// # Errors
/// It is no store, or what says where everything is cannot be read.
pub fn check<M: Medium>(medium: &M) -> Result<Report, OpenError> {
    let (_, layout) = read_layout(medium)?;
    let records = Records::read(medium, &layout)?;
    let slots = Slots::read(medium, described_bytes(medium)?)?;
    let is_clean = records.state.is_clean;
    let damage = records.check_torn().and_then(|()| slots.check(is_clean));
    let damage = damage.err().map(|error| error.to_string());
    let mut report = Report {
        is_clean,
        is_rolled_back: records.is_rolled_back,
        has_checksums: layout.has_sums(),
        lba_bytes: records.state.lba_bytes,
        zones: layout.zones,
        zones_with_data: records.zones.iter().filter(|of| of.end > 0).count(),
        blocks_checked: 0,
        durable_sequence: records.durable,
        lost: records.lost.clone(),
        bad_blocks: Vec::new(),
        reservations: slots.found(is_clean),
        damage,
    };
    for zone in 0..layout.zones {
        check_zone(medium, &layout, &records, zone, &mut report)?;
    }
    Ok(report)
}

fn check_zone(
    medium: &impl Medium,
    layout: &Layout,
    records: &Records,
    zone: u32,
    report: &mut Report,
) -> Result<(), OpenError> {
    let of = records.zones[zone as usize];
    let lba_bytes = u64::from(records.state.lba_bytes);
    let salt = Salt {
        epoch: records.state.epoch,
        zone,
        life: of.life,
        lba_bytes: records.state.lba_bytes,
    };
    let mut piece = vec![0; PIECE_BYTES as usize];
    let mut at = 0;
    while at < of.end && layout.has_sums() {
        // Fits: no more than a piece.
        let bytes = &mut piece[..(of.end - at).min(PIECE_BYTES) as usize];
        medium
            .read(layout.data_at(zone, at), bytes)
            .map_err(OpenError::System)?;
        for (offset, block) in (at..)
            .step_by(lba_bytes as usize)
            .zip(bytes.chunks(lba_bytes as usize))
        {
            let lba = offset / lba_bytes;
            let Some(sum_at) = layout.sum_at(zone, lba) else {
                continue;
            };
            let is_right = sums::are_right(medium, sum_at, &salt, offset, block);
            report.blocks_checked += 1;
            if !is_right.map_err(OpenError::System)? {
                report.note_bad(zone, lba);
            }
        }
        at += bytes.len() as u64;
    }
    Ok(())
}

impl Report {
    fn note_bad(&mut self, zone: u32, lba: u64) {
        match self.bad_blocks.last_mut() {
            Some(last) if last.zone == zone && last.first_lba + last.count == lba => {
                last.count += 1;
            }
            _ => self.bad_blocks.push(BadBlocks {
                zone,
                first_lba: lba,
                count: 1,
            }),
        }
    }
}

/// What became of a zone whose record was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The zone.
    pub zone: u32,
    /// The record that it falls back on; `None`: none was left.
    pub from_sequence: Option<u64>,
    /// Its state now.
    pub state: ZoneState,
    /// Blocks that it holds now.
    pub host_lbas: u64,
}

/// Lets a store be opened again: zones whose records were lost fall back on the
/// newest that is left, and are read-only; those of which none is left are
/// offline. Zones of conventional namespaces fall back and can be written.
/// Reservations of hosts fall back as [`Report::reservations`] says. Blocks that cannot be
/// read stay so. What is lost is lost: there is no copy.
///
/// # Errors
/// As [`check`], and of the system.
pub fn repair<M: Medium>(medium: &mut M) -> Result<Vec<Repaired>, OpenError> {
    let (_, layout) = read_layout(medium)?;
    let records = Records::read(medium, &layout)?;
    reservations::repair(medium, described_bytes(medium)?)?;
    let mut steps = || {
        let mut repaired = Vec::new();
        let mut sequence = records.sequence;
        for at in records.void_at() {
            medium.write(at, &vec![0; layout.record_bytes()])?;
        }
        for lost in &records.lost {
            sequence += 1;
            repaired.push(fall_back(medium, &layout, &records, lost.zone, sequence)?);
        }
        for zone in 0..layout.zones {
            settle_notes(medium, &layout, zone, sequence)?;
        }
        unclean(medium, &records)?;
        medium.sync()?;
        for slot in 0..2 {
            // As many synchronisations as before: what is to be done once more
            // still counts.
            let at = Layout::durable_at(slot);
            let syncs = records.syncs.wrapping_sub(u32::from(
                Layout::durable_at(u64::from(records.syncs)) != at,
            ));
            medium.write_durably(at, &encode_note(at, syncs, sequence))?;
        }
        Ok(repaired)
    };
    steps().map_err(OpenError::System)
}

/// The next drive clears what lies behind the data of zones, as after a loss of
/// power: one that fell back may have less than the file holds of it.
fn unclean<M: Medium>(medium: &mut M, records: &Records) -> std::io::Result<()> {
    let state = State {
        sequence: records.state.sequence + 1,
        is_clean: false,
        boot: medium.boot(),
        ..records.state
    };
    medium.write(Layout::state_at(state.sequence), &state.encode())
}

/// Notes that are not whole are forgotten, and so are those of lost records.
fn settle_notes<M: Medium>(
    medium: &mut M,
    layout: &Layout,
    zone: u32,
    durable: u64,
) -> std::io::Result<()> {
    let mut newest = 0;
    for number in 0..RECORD_SLOTS {
        let mut bytes = vec![0; layout.record_bytes()];
        let at = layout.record_at(zone, number);
        medium.read(at, &mut bytes)?;
        if is_whole(at, &bytes) {
            newest = newest.max(Slot::decode(&bytes).sequence);
        }
    }
    for slot in 0..2 {
        let at = layout.note_at(zone, slot);
        let number = newest.min(durable);
        medium.write(at, &encode_note(at, zone, number))?;
    }
    Ok(())
}

fn fall_back<M: Medium>(
    medium: &mut M,
    layout: &Layout,
    records: &Records,
    zone: u32,
    sequence: u64,
) -> std::io::Result<Repaired> {
    let of = records.zones[zone as usize];
    let left = &records.records[zone as usize];
    let from_sequence = (of.sequence > 0).then_some(of.sequence);
    let is_of_log = layout.log_of(zone).is_some();
    let state = match from_sequence {
        _ if is_of_log => left.state,
        Some(_) => ZoneState::READ_ONLY,
        None => ZoneState::OFFLINE,
    };
    let record = ZoneRecord {
        state,
        zrwa_end_lbas: None,
        ..left.clone()
    };
    let host_lbas = record.host_lbas;
    let slot = Slot {
        epoch: records.state.epoch,
        sequence,
        life: of.life,
        record,
    };
    let number = (of.slot + 1) % RECORD_SLOTS;
    let at = layout.record_at(zone, number);
    let mut bytes = Vec::new();
    slot.encode(layout, at, &mut bytes);
    medium.write(at, &bytes)?;
    Ok(Repaired {
        zone,
        from_sequence,
        state,
        host_lbas,
    })
}
