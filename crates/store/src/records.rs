//! Records of zones as they are in a file, and which of them count.

use crate::layout::{
    Layout, NOTE_BYTES, RECORD_SLOTS, STATE_BYTES, Slot, State, decode_note, is_whole, is_zero,
};
use crate::medium::Medium;
use crate::open::{LostRecord, OpenError, SEQUENCE_MAX};
use crate::store::OfZone;
use zonelab_ssd::contents::ZoneRecord;

/// What is known of all zones.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) state: State,
    /// The machine has ended since the store was written last: records that no
    /// Flush covers are void.
    pub(crate) is_rolled_back: bool,
    /// Number of the last record that a Flush covers, and of synchronisations.
    pub(crate) durable: u64,
    pub(crate) syncs: u32,
    /// The highest number of any record.
    pub(crate) sequence: u64,
    pub(crate) zones: Vec<OfZone>,
    pub(crate) records: Vec<ZoneRecord>,
    /// Zones whose records no Flush covers.
    pub(crate) changed: Vec<u32>,
    /// Slots that are not whole: zone, slot, place.
    pub(crate) torn: Vec<(u32, u64, u64)>,
    /// Places of records that are void.
    void: Vec<u64>,
    /// Places of notes that no synchronisation covers.
    pub(crate) void_notes: Vec<u64>,
    pub(crate) lost: Vec<LostRecord>,
    /// Zones with a note that is not whole.
    damaged_notes: Vec<u32>,
    are_durable_whole: bool,
}

impl Records {
    pub(crate) fn read(medium: &impl Medium, layout: &Layout) -> Result<Self, OpenError> {
        let (state, is_state_whole) = read_state(medium)?;
        let (syncs, durable, are_durable_whole) = read_durable(medium)?;
        let state = State {
            is_clean: state.is_clean && is_state_whole,
            ..state
        };
        let mut records = Self {
            state,
            // What cannot be told is taken for the end of the process.
            is_rolled_back: !state.is_clean && is_state_whole && state.boot != medium.boot(),
            durable,
            syncs,
            sequence: durable,
            zones: Vec::new(),
            records: Vec::new(),
            changed: Vec::new(),
            torn: Vec::new(),
            void: Vec::new(),
            void_notes: Vec::new(),
            lost: Vec::new(),
            damaged_notes: Vec::new(),
            are_durable_whole,
        };
        for zone in 0..layout.zones {
            records.read_zone(medium, layout, zone)?;
        }
        Ok(records)
    }

    fn read_zone(
        &mut self,
        medium: &impl Medium,
        layout: &Layout,
        zone: u32,
    ) -> Result<(), OpenError> {
        let (note_slot, expected) = self.read_note(medium, layout, zone)?;
        let mut newest: Option<(u64, Slot)> = None;
        let mut damaged_slots = Vec::new();
        let mut durable_slot = None;
        let mut bytes = vec![0; layout.record_bytes()];
        for number in 0..RECORD_SLOTS {
            let at = layout.record_at(zone, number);
            medium.read(at, &mut bytes).map_err(OpenError::System)?;
            if is_zero(&bytes) {
                continue;
            }
            if !is_whole(at, &bytes) {
                self.torn.push((zone, number, at));
                damaged_slots.push(number);
                continue;
            }
            let slot = Slot::decode(&bytes);
            if slot.sequence >= SEQUENCE_MAX {
                let what = format!("the record of zone {zone}");
                return Err(OpenError::Damaged { what });
            }
            self.sequence = self.sequence.max(slot.sequence);
            if self.is_rolled_back && slot.sequence > self.durable {
                self.void.push(at);
                continue;
            }
            if slot.sequence == expected {
                durable_slot = Some(number);
            }
            let is_newer = |(_, newest): &(u64, Slot)| slot.sequence > newest.sequence;
            if newest.as_ref().is_none_or(is_newer) {
                newest = Some((number, slot));
            }
        }
        let found = newest.as_ref().map(|(_, slot)| slot.sequence);
        if found.unwrap_or(0) < expected {
            self.lost.push(LostRecord {
                zone,
                damaged_slots,
                found,
                expected,
            });
        }
        self.take(layout, zone, newest, (note_slot, durable_slot));
        Ok(())
    }

    fn take(
        &mut self,
        layout: &Layout,
        zone: u32,
        newest: Option<(u64, Slot)>,
        (note_slot, durable_slot): (u64, Option<u64>),
    ) {
        let mut of = OfZone {
            note_slot,
            durable_slot,
            ..OfZone::default()
        };
        let mut record = ZoneRecord::EMPTY;
        if let Some((number, slot)) = newest {
            (of.sequence, of.slot, of.life) = (slot.sequence, number, slot.life);
            if slot.epoch == self.state.epoch {
                record = slot.record;
            }
            if slot.sequence > self.durable {
                of.is_changed = true;
                self.changed.push(zone);
            }
        }
        let end = record.data_end_lbas();
        let end = end.saturating_mul(u64::from(self.state.lba_bytes));
        of.end = end.min(layout.zone_bytes);
        // When a drive begins, all of it becomes durable.
        of.has_durable_data = of.end > 0;
        self.zones.push(of);
        self.records.push(record);
    }

    /// The slot of the note of a zone that counts, and the record that it names:
    /// of those that the last synchronisation covers, the newest.
    fn read_note(
        &mut self,
        medium: &impl Medium,
        layout: &Layout,
        zone: u32,
    ) -> Result<(u64, u64), OpenError> {
        let mut newest = (0, 0);
        for slot in 0..2 {
            let at = layout.note_at(zone, slot);
            let mut bytes = [0; NOTE_BYTES];
            medium.read(at, &mut bytes).map_err(OpenError::System)?;
            let Some((of, number)) = decode_note(at, &bytes) else {
                self.damaged_notes.push(zone);
                self.void_notes.push(at);
                continue;
            };
            debug_assert!(of == zone || number == 0, "its place is in its checksum");
            if number > self.durable {
                // Were it to stay, it would count when numbers get there.
                self.void_notes.push(at);
            } else if number > newest.1 {
                newest = (slot, number);
            }
        }
        Ok(newest)
    }

    /// The process ends in the middle of one write at most and none was under way
    /// when the drive was switched off.
    pub(crate) fn check_torn(&self) -> Result<(), OpenError> {
        let possible = match (self.state.is_clean, self.is_rolled_back) {
            (true, _) => 0,
            (false, true) => usize::MAX,
            (false, false) => 1,
        };
        // The end of the machine tears none that is as small as these.
        let small = match (self.state.is_clean, self.is_rolled_back) {
            (false, false) => 1,
            _ => 0,
        };
        let not_whole = self.damaged_notes.len() + usize::from(!self.are_durable_whole);
        if not_whole > small {
            let notes = &self.damaged_notes;
            let what = format!("what says how much a Flush covers, or that of zones {notes:?}");
            return Err(OpenError::Damaged { what });
        }
        if self.torn.len() <= possible {
            return Ok(());
        }
        let mut torn: Vec<u32> = self.torn.iter().map(|(zone, ..)| *zone).collect();
        torn.dedup();
        let what = format!("records of zones {torn:?}");
        Err(OpenError::Damaged { what })
    }

    /// Places of records that are torn or void.
    pub(crate) fn void_at(&self) -> Vec<u64> {
        let torn = self.torn.iter().map(|(.., at)| *at);
        torn.chain(self.void.iter().copied()).collect()
    }
}

/// The newest state, and whether both slots are whole.
fn read_state(medium: &impl Medium) -> Result<(State, bool), OpenError> {
    let mut newest: Option<State> = None;
    let mut whole = 0;
    for slot in 0..2 {
        let mut bytes = [0; STATE_BYTES];
        let at = Layout::state_at(slot);
        medium.read(at, &mut bytes).map_err(OpenError::System)?;
        if is_whole(at, &bytes) {
            whole += 1;
            let state = State::decode(&bytes);
            if newest.is_none_or(|newest| state.sequence > newest.sequence) {
                newest = Some(state);
            }
        }
    }
    let state = newest
        .filter(|state| state.lba_bytes >= 512 && state.sequence < SEQUENCE_MAX)
        .ok_or_else(|| OpenError::Damaged {
            what: "both slots of its state".to_owned(),
        })?;
    Ok((state, whole == 2))
}

/// How many synchronisations there were, and the last record that they cover.
fn read_durable(medium: &impl Medium) -> Result<(u32, u64, bool), OpenError> {
    let mut newest: Option<(u32, u64)> = None;
    let mut are_whole = true;
    for slot in 0..2 {
        let at = Layout::durable_at(slot);
        let mut bytes = [0; NOTE_BYTES];
        medium.read(at, &mut bytes).map_err(OpenError::System)?;
        let Some((syncs, number)) = decode_note(at, &bytes) else {
            are_whole = false;
            continue;
        };
        let is_newer = |newest: (u32, u64)| syncs.wrapping_sub(newest.0) < 1 << 31;
        if number < SEQUENCE_MAX && newest.is_none_or(is_newer) {
            newest = Some((syncs, number));
        }
    }
    let (syncs, number) = newest.ok_or_else(|| OpenError::Damaged {
        what: "both slots of what is durable".to_owned(),
    })?;
    Ok((syncs, number, are_whole))
}
