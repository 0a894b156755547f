//! Reservations of hosts: bytes that outlive a loss of power.
//!
//! They have two slots that are written in turn, each at once durable. A slot is torn
//! if the process or the machine ends while it is written, and then the other one
//! counts. Stores that are older than reservations have zeros there.

use std::io;

use crate::check::Reservations;
use crate::layout::{
    Layout, RESERVATIONS_AT, RESERVATIONS_SLOT_BYTES, is_whole, is_zero, seal, u32_at, u64_at,
};
use crate::medium::Medium;
use crate::open::{OpenError, SEQUENCE_MAX};
use crate::store::Store;

/// Checksum, length and number.
const HEADER_BYTES: usize = 16;

/// Most bytes of reservations.
pub(crate) const BYTES_MAX: usize = RESERVATIONS_SLOT_BYTES - HEADER_BYTES;

/// What the slots hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slots {
    /// The header leaves room for them.
    pub(crate) has_room: bool,
    /// Number of the newest that is whole; 0: none.
    pub(crate) sequence: u64,
    /// The slot that it is in.
    slot: u64,
    /// The slots that are not whole.
    torn: Vec<u64>,
    /// The newest bytes.
    pub(crate) bytes: Vec<u8>,
}

impl Slots {
    /// Those of a store whose description takes so many bytes of the header.
    pub(crate) fn read(medium: &impl Medium, described_bytes: usize) -> Result<Self, OpenError> {
        let has_room = described_bytes as u64 <= RESERVATIONS_AT;
        let mut slots = Self {
            has_room,
            ..Self::default()
        };
        let count = if has_room { 2 } else { 0 };
        for slot in 0..count {
            let at = Layout::reservations_at(slot);
            let mut bytes = vec![0; RESERVATIONS_SLOT_BYTES];
            medium.read(at, &mut bytes).map_err(OpenError::System)?;
            let len = u32_at(&bytes, 4) as usize;
            let sequence = u64_at(&bytes, 8);
            if is_zero(&bytes[..HEADER_BYTES]) {
                continue;
            }
            let is_possible = len <= BYTES_MAX && (1..SEQUENCE_MAX).contains(&sequence);
            if !is_possible || !is_whole(at, &bytes[..HEADER_BYTES + len]) {
                slots.torn.push(slot);
            } else if sequence > slots.sequence {
                slots.sequence = sequence;
                slots.slot = slot;
                slots.bytes = bytes[HEADER_BYTES..HEADER_BYTES + len].to_vec();
            }
        }
        Ok(slots)
    }

    /// A write that is cut short leaves one slot torn, and none when the drive was switched
    /// off in good order.
    pub(crate) fn check(&self, is_clean: bool) -> Result<(), OpenError> {
        match self.found(is_clean).is_lost {
            true => Err(OpenError::Damaged {
                what: "reservations of hosts".to_owned(),
            }),
            false => Ok(()),
        }
    }

    /// What there is to say of them.
    pub(crate) fn found(&self, is_clean: bool) -> Reservations {
        let most = usize::from(!is_clean);
        Reservations {
            damaged_slots: self.torn.clone(),
            newest: (self.sequence > 0).then_some((self.slot, self.sequence)),
            is_lost: self.torn.len() > most,
        }
    }
}

/// Makes torn slots empty.
pub(crate) fn repair(medium: &mut impl Medium, described_bytes: usize) -> Result<(), OpenError> {
    for slot in Slots::read(medium, described_bytes)?.torn {
        wipe(medium, slot).map_err(OpenError::System)?;
    }
    Ok(())
}

fn wipe(medium: &mut impl Medium, slot: u64) -> io::Result<()> {
    medium.write(Layout::reservations_at(slot), &[0; HEADER_BYTES])
}

impl<M: Medium> Store<M> {
    pub(crate) fn write_reservations(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.reservations.has_room || bytes.len() > BYTES_MAX {
            let what = format!("{} bytes of reservations have no room", bytes.len());
            return Err(io::Error::other(what));
        }
        let sequence = self.reservations.sequence + 1;
        let at = Layout::reservations_at(sequence);
        let mut slot = vec![0; HEADER_BYTES];
        // Fits: it is below the length of a slot.
        slot[4..8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        slot[8..16].copy_from_slice(&sequence.to_le_bytes());
        slot.extend_from_slice(bytes);
        seal(at, &mut slot);
        self.medium.write_durably(at, &slot)?;
        self.reservations.sequence = sequence;
        Ok(())
    }

    /// After a loss of power: a slot that was torn is empty.
    pub(crate) fn void_reservations(&mut self) -> io::Result<()> {
        for slot in std::mem::take(&mut self.reservations.torn) {
            wipe(&mut self.medium, slot)?;
        }
        Ok(())
    }
}
