//! What a client may believe of one of its zones.

use zonelab_nvme::zns::ZoneState;

/// A block that was written: by which command, and which block of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) tag: u32,
    pub(super) index: u32,
}

/// A command whose blocks may or may not be in the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suspect {
    pub(super) tag: u32,
    /// Where its blocks would be; unknown of an append.
    pub(super) offset: Option<u64>,
    pub(super) nlb: u32,
}

/// A zone as its only user knows it.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) id: u32,
    /// First block of the zone.
    pub(super) start: u64,
    /// Acknowledged blocks, up to the capacity.
    pub(super) cells: Vec<Option<Stamp>>,
    /// Writes in flight and of unknown fate since the last reset.
    pub(super) suspects: Vec<Suspect>,
    /// Where the next write goes if all before it succeed.
    pub(super) pointer: u64,
    /// Blocks handed over since the last reset: the write pointer is not behind.
    pub(super) handed_over: u64,
    pub(super) is_full: bool,
    pub(super) is_dead: bool,
    /// It cannot even be read.
    pub(super) is_offline: bool,
    /// A command failed: the client must ask where the write pointer is.
    pub(super) is_unsure: bool,
    /// A reset failed, and may have been carried out.
    pub(super) maybe_reset: bool,
    /// A finish failed, and may have been carried out.
    pub(super) maybe_full: bool,
    /// Commands in flight, but for reads.
    pub(super) changing: u32,
    /// Resets handed over.
    pub(super) resets: u32,
    pub(super) resets_in_flight: u32,
    /// Commands in flight.
    pub(super) in_flight: u32,
    /// Changes with every reset, twice.
    pub(super) epoch: u32,
}

impl Zone {
    pub(super) fn new(id: u32, start: u64, capacity: u64) -> Self {
        let blocks = usize::try_from(capacity).expect("zones are small");
        Self {
            id,
            start,
            cells: vec![None; blocks],
            suspects: Vec::new(),
            pointer: 0,
            handed_over: 0,
            is_full: false,
            is_dead: false,
            is_offline: false,
            is_unsure: false,
            maybe_reset: false,
            maybe_full: false,
            changing: 0,
            resets: 0,
            resets_in_flight: 0,
            in_flight: 0,
            epoch: 0,
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.cells.len() as u64
    }

    /// Blocks left behind the pointer.
    pub(super) fn room(&self) -> u64 {
        self.capacity() - self.pointer
    }

    /// A write was handed over.
    pub(super) fn hand_over(&mut self, suspect: Suspect) {
        self.suspects.push(suspect);
        self.pointer += u64::from(suspect.nlb);
        self.handed_over += u64::from(suspect.nlb);
        self.is_full |= self.pointer == self.capacity();
    }

    /// A write was acknowledged, at `offset`.
    pub(super) fn acknowledge(&mut self, tag: u32, offset: u64) {
        let at = self.suspects.iter().position(|suspect| suspect.tag == tag);
        let suspect = self.suspects.swap_remove(at.expect("it was handed over"));
        let expected = suspect.offset.unwrap_or(offset);
        assert_eq!(offset, expected, "command {tag} went elsewhere");
        for index in 0..suspect.nlb {
            let cell = self.cells.get_mut((offset + u64::from(index)) as usize);
            let cell = cell.unwrap_or_else(|| panic!("command {tag} went beyond the capacity"));
            assert!(
                cell.is_none(),
                "zone {}: block {offset} + {index} is written twice",
                self.id
            );
            *cell = Some(Stamp { tag, index });
        }
    }

    /// A reset was acknowledged.
    pub(super) fn emptied(&mut self) {
        self.cells.fill(None);
        self.suspects.clear();
        self.pointer = 0;
        self.handed_over = 0;
        self.is_full = false;
        self.is_unsure = false;
        self.maybe_reset = false;
        self.maybe_full = false;
        self.epoch += 1;
    }

    /// What the drive reports about the zone while nothing changes it.
    pub(super) fn reported(&mut self, state: ZoneState, pointer: u64, may_die: bool) {
        let id = self.id;
        let last = self.cells.iter().rposition(Option::is_some);
        let acknowledged = last.map_or(0, |last| last as u64 + 1);
        self.is_unsure = false;
        match state {
            ZoneState::READ_ONLY | ZoneState::OFFLINE => {
                assert!(may_die, "zone {id} has died of nothing");
                self.is_dead = true;
                self.is_offline = state == ZoneState::OFFLINE;
                return;
            }
            ZoneState::FULL => {
                let known = self.is_full || self.maybe_full || self.handed_over == self.capacity();
                assert!(known, "zone {id} is full of nothing");
                self.is_full = true;
                self.pointer = self.capacity();
                return;
            }
            _ => {}
        }
        let pointer = if state == ZoneState::EMPTY {
            0
        } else {
            pointer
        };
        if pointer < acknowledged {
            assert!(
                self.maybe_reset,
                "zone {id} ends at {pointer}: {acknowledged} blocks are acknowledged"
            );
            assert_eq!(pointer, 0, "zone {id} is half reset");
            self.emptied();
            return;
        }
        assert!(
            pointer <= self.handed_over,
            "zone {id} ends at {pointer}: only {} blocks were written",
            self.handed_over
        );
        // A reset that may have happened did not, or there was nothing to reset.
        self.maybe_reset = false;
        self.maybe_full = false;
        self.is_full = false;
        self.pointer = pointer;
        self.handed_over = pointer;
        // What did not get there will not get there any more.
        let reached = |suspect: &Suspect| suspect.offset.is_none_or(|offset| offset < pointer);
        self.suspects
            .retain(|suspect| pointer > 0 && reached(suspect));
    }

    /// Checks a block that was read: `then` is what was acknowledged at `offset`
    /// when the read was submitted, in the same epoch.
    pub(super) fn check(&self, offset: u64, block: &[u8], then: Option<Stamp>) {
        let found = stamp_of(block);
        let now = self.cells.get(offset as usize).copied().flatten();
        match (then, found) {
            (Some(then), found) => assert_eq!(
                found,
                Some(then),
                "zone {}: block {offset} does not hold what was acknowledged",
                self.id
            ),
            (None, None) => {}
            (None, Some(found)) => {
                let possible = now == Some(found)
                    || self
                        .suspects
                        .iter()
                        .any(|suspect| suspect.fits(found, offset));
                assert!(
                    possible,
                    "zone {}: block {offset} holds {found:?}, which was never written there",
                    self.id
                );
            }
        }
    }
}

impl Suspect {
    fn fits(&self, found: Stamp, offset: u64) -> bool {
        let place = self
            .offset
            .is_none_or(|start| start + u64::from(found.index) == offset);
        self.tag == found.tag && found.index < self.nlb && place
    }
}

/// Fills a block so that it says who wrote it.
pub(super) fn stamp(block: &mut [u8], stamp: Stamp) {
    let Stamp { tag, index } = stamp;
    block.fill((tag ^ index).to_le_bytes()[0]);
    block[..4].copy_from_slice(&tag.to_le_bytes());
    block[4..8].copy_from_slice(&index.to_le_bytes());
}

/// Who wrote a block; `None`: nobody.
///
/// # Panics
/// It is a mixture.
pub(super) fn stamp_of(block: &[u8]) -> Option<Stamp> {
    if block.iter().all(|byte| *byte == 0) {
        return None;
    }
    let word =
        |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let found = Stamp {
        tag: word(0),
        index: word(4),
    };
    let mut whole = vec![0; block.len()];
    stamp(&mut whole, found);
    assert!(block == whole, "a block is torn");
    Some(found)
}
