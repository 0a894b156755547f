//! Commands in flight of one connection.

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::queue::SubmissionEntry;

/// The longest header with digest and padding: data is aligned to 128 bytes at most.
const MAX_HEAD: usize = 128;
/// A data digest, and a response capsule with its header digest.
const MAX_TAIL: usize = 32;

/// A slot, by number: it is also the transfer tag of its R2T.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotId(pub(super) u16);

impl SlotId {
    /// No slot.
    const NONE: Self = Self(u16::MAX);

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// How far a command is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There is none.
    Free,
    /// The owner of the connection is asked whether its data may come.
    Announced,
    /// It waits until there is room for its data.
    Waiting,
    /// Its data is on the way, asked for if need be.
    Collecting,
    /// An R2T waits to be sent.
    Asking,
    /// The owner of the connection has it.
    Held,
    /// Its response waits to be sent.
    Responding,
}

/// Bytes that wait to be sent, in an array that never moves.
#[derive(Clone, Debug)]
pub(super) struct Piece<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Piece<N> {
    const EMPTY: Self = Self {
        bytes: [0; N],
        len: 0,
    };

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds what there is room for. Callers make sure that it is all.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = &mut self.bytes[self.len..];
        let len = bytes.len().min(room.len());
        debug_assert_eq!(len, bytes.len());
        room[..len].copy_from_slice(&bytes[..len]);
        self.len += len;
    }

    /// Adds zeros up to `len` bytes in all.
    pub(super) fn pad_to(&mut self, len: usize) {
        let len = len.clamp(self.len, N);
        self.bytes[self.len..len].fill(0);
        self.len = len;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<const N: usize> Default for Piece<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// One command.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) entry: SubmissionEntry,
    /// The next slot of the same bucket of identifiers, or the next free one.
    next: SlotId,
    /// Whether it can be found by its command identifier.
    is_listed: bool,
    /// Data of the command while it arrives, or of its completion.
    pub(super) data: Option<Buf>,
    /// Bytes of data from the host, or room for data to it.
    pub(super) data_len: u32,
    /// Bytes of data that arrived.
    pub(super) received: u32,
    /// Whether the data comes from the host.
    pub(super) is_from_host: bool,
    /// Bytes that count as held for it.
    pub(super) charged: u32,
    /// How the command fails once all its data is here.
    pub(super) failure: Option<Status>,
    /// When the response was due; `None` if the connection itself made it.
    pub(super) due: Option<Nanos>,
    /// What goes out before the data: a header, its digest, padding.
    pub(super) head: Piece<MAX_HEAD>,
    /// Bytes of the data that go out.
    pub(super) sent_len: usize,
    /// What goes out after the data: its digest, a response capsule.
    pub(super) tail: Piece<MAX_TAIL>,
}

impl Slot {
    fn new(next: SlotId) -> Self {
        Self {
            state: State::Free,
            entry: SubmissionEntry::default(),
            next,
            is_listed: false,
            data: None,
            data_len: 0,
            received: 0,
            is_from_host: false,
            charged: 0,
            failure: None,
            due: None,
            head: Piece::default(),
            sent_len: 0,
            tail: Piece::default(),
        }
    }

    pub(super) fn cid(&self) -> u16 {
        self.entry.cdw0.cid()
    }
}

/// As many commands as the queue is deep. Found by command identifier through
/// buckets of its low bits, chained through the slots.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: SlotId,
    buckets: Vec<SlotId>,
}

impl Slots {
    /// `depth` slots, all free.
    pub(super) fn new(depth: u16) -> Self {
        let mut slots = Self {
            slots: Vec::new(),
            free: SlotId::NONE,
            buckets: vec![SlotId::NONE],
        };
        slots.grow(depth);
        slots
    }

    /// At least `depth` slots. Those in use stay where they are.
    pub(super) fn grow(&mut self, depth: u16) {
        // The last number stands for no slot.
        for index in self.slots.len()..usize::from(depth.min(u16::MAX - 1)) {
            self.slots.push(Slot::new(self.free));
            self.free = SlotId(index as u16);
        }
        let listed: Vec<SlotId> = (0..self.slots.len() as u16)
            .map(SlotId)
            .filter(|id| self.slots[id.index()].is_listed)
            .collect();
        self.buckets = vec![SlotId::NONE; self.slots.len().next_power_of_two()];
        for id in listed {
            self.list(id);
        }
    }

    /// Takes a slot for a command. The flag says whether its identifier is
    /// free; if not, it cannot be found by it. `None`: all are in use.
    pub(super) fn take(&mut self, entry: &SubmissionEntry) -> Option<(SlotId, bool)> {
        let id = self.free;
        let is_unique = self.find(entry.cdw0.cid()).is_none();
        let slot = self.slots.get_mut(id.index())?;
        self.free = slot.next;
        slot.state = State::Collecting;
        slot.entry = *entry;
        slot.received = 0;
        slot.data_len = 0;
        slot.is_from_host = false;
        slot.charged = 0;
        slot.failure = None;
        if is_unique {
            self.list(id);
        }
        Some((id, is_unique))
    }

    /// Gives a slot back, and what data it still has.
    pub(super) fn release(&mut self, id: SlotId) -> Option<Buf> {
        self.unlist(id);
        let slot = &mut self.slots[id.index()];
        slot.state = State::Free;
        slot.next = self.free;
        self.free = id;
        slot.data.take()
    }

    /// The slot of the command with that identifier.
    pub(super) fn find(&self, cid: u16) -> Option<SlotId> {
        let mut id = self.buckets[self.bucket(cid)];
        while let Some(slot) = self.slots.get(id.index()) {
            if slot.cid() == cid {
                return Some(id);
            }
            id = slot.next;
        }
        None
    }

    pub(super) fn get(&self, id: SlotId) -> Option<&Slot> {
        self.slots.get(id.index())
    }

    /// A slot that was taken.
    pub(super) fn slot(&mut self, id: SlotId) -> &mut Slot {
        &mut self.slots[id.index()]
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    fn bucket(&self, cid: u16) -> usize {
        // Their number is a power of two.
        usize::from(cid) & (self.buckets.len() - 1)
    }

    fn list(&mut self, id: SlotId) {
        let bucket = self.bucket(self.slots[id.index()].cid());
        let slot = &mut self.slots[id.index()];
        slot.next = std::mem::replace(&mut self.buckets[bucket], id);
        slot.is_listed = true;
    }

    fn unlist(&mut self, id: SlotId) {
        if !std::mem::take(&mut self.slots[id.index()].is_listed) {
            return;
        }
        let (bucket, next) = (
            self.bucket(self.slots[id.index()].cid()),
            self.slots[id.index()].next,
        );
        let mut at = self.buckets[bucket];
        if at == id {
            self.buckets[bucket] = next;
            return;
        }
        while at != SlotId::NONE {
            let slot = &mut self.slots[at.index()];
            if slot.next == id {
                slot.next = next;
                return;
            }
            at = slot.next;
        }
    }
}
