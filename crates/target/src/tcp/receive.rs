//! What was received and not yet understood.

use std::io::IoSliceMut;

use zonelab_nvme::tcp::DIGEST_LEN;

use super::slots::{SlotId, Slots};

/// Whose the data of a PDU is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Nobody's: it is dropped.
    Nobody,
    /// That of a command, in its capsule.
    Capsule(SlotId),
    /// That of a command, asked for by R2T.
    Transfer(SlotId),
}

impl Target {
    fn slot(self) -> Option<SlotId> {
        match self {
            Self::Nobody => None,
            Self::Capsule(id) | Self::Transfer(id) => Some(id),
        }
    }
}

/// The data of a PDU on its way: first some that is dropped, then some for the
/// target, then some that is dropped.
#[derive(Copy, Clone, Debug)]
pub(super) struct Incoming {
    pub(super) target: Target,
    pub(super) before: u32,
    pub(super) wanted: u32,
    pub(super) after: u32,
    /// Where the next byte for the target goes in its buffer.
    pub(super) at: u32,
    /// CRC32C so far, if a digest follows.
    pub(super) digest: Option<u32>,
}

impl Incoming {
    /// All of `data` bytes are dropped.
    pub(super) fn dropped(data: u32, has_digest: bool) -> Self {
        Self {
            target: Target::Nobody,
            before: data,
            wanted: 0,
            after: 0,
            at: 0,
            digest: has_digest.then_some(0),
        }
    }

    fn digested(&mut self, bytes: &[u8]) {
        if let Some(crc) = &mut self.digest {
            *crc = crc32c::crc32c_append(*crc, bytes);
        }
    }

    /// The part of its target's buffer that the next bytes belong in.
    fn place<'a>(&self, slots: &'a mut Slots) -> Option<&'a mut [u8]> {
        let id = self.target.slot().filter(|_| self.before == 0)?;
        let data = slots.slot(id).data.as_deref_mut()?;
        let at = self.at as usize;
        data.get_mut(at..at + self.wanted as usize)
            .filter(|place| !place.is_empty())
    }

    /// Takes what it can of `bytes`; returns how much.
    fn take(&mut self, bytes: &[u8], slots: &mut Slots) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &bytes[taken..];
            let (left, is_wanted) = match (self.before, self.wanted, self.after) {
                (0, 0, 0) => break,
                (0, 0, _) => (&mut self.after, false),
                (0, _, _) => (&mut self.wanted, true),
                _ => (&mut self.before, false),
            };
            let len = rest.len().min(*left as usize);
            if is_wanted {
                if let Some(place) = self.place(slots) {
                    place[..len].copy_from_slice(&rest[..len]);
                }
                self.arrived(len);
            } else {
                *left -= len as u32;
            }
            self.digested(&rest[..len]);
            taken += len;
        }
        taken
    }

    /// `len` bytes are in the buffer of the target.
    fn arrived(&mut self, len: usize) {
        self.at += len as u32;
        self.wanted -= len as u32;
    }

    fn is_complete(&self) -> bool {
        (self.before, self.wanted, self.after) == (0, 0, 0)
    }
}

/// How the data of a PDU ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) target: Target,
    /// The data digest, if there is one, is that of the data.
    pub(super) is_intact: bool,
}

/// The receive buffer, and the data on its way past it.
#[derive(Debug)]
pub(super) struct Receiver {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    incoming: Option<Incoming>,
}

impl Receiver {
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            buffer: vec![0; bytes].into_boxed_slice(),
            start: 0,
            end: 0,
            incoming: None,
        }
    }

    /// Makes the buffer longer.
    pub(super) fn grow(&mut self, bytes: usize) {
        if bytes > self.buffer.len() {
            let mut longer = vec![0; bytes].into_boxed_slice();
            longer[..self.buffer.len()].copy_from_slice(&self.buffer);
            self.buffer = longer;
        }
    }

    /// Bytes that wait to be understood.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn consume(&mut self, len: usize) {
        self.start = self.end.min(self.start + len);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    pub(super) fn discard(&mut self) {
        (self.start, self.end) = (0, 0);
        self.incoming = None;
    }

    pub(super) fn expect(&mut self, incoming: Incoming) {
        self.incoming = Some(incoming);
    }

    /// Whether data of a PDU is on its way.
    pub(super) fn is_in_data(&self) -> bool {
        self.incoming.is_some()
    }

    /// Whether a PDU has begun and not ended.
    pub(super) fn is_in_pdu(&self) -> bool {
        self.incoming.is_some() || self.start != self.end
    }

    /// Where to put the next bytes: data of a command in its buffer, what
    /// follows in the receive buffer.
    pub(super) fn slices<'a>(&'a mut self, slots: &'a mut Slots) -> [IoSliceMut<'a>; 2] {
        if self.start > 0 {
            // Less than a header is left once all that was there is understood.
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let incoming = self.incoming.as_ref().filter(|_| self.end == 0);
        let place = incoming.and_then(|incoming| incoming.place(slots));
        [
            IoSliceMut::new(place.unwrap_or_default()),
            IoSliceMut::new(&mut self.buffer[self.end..]),
        ]
    }

    /// `len` bytes are in [`slices`](Self::slices).
    pub(super) fn filled(&mut self, len: usize, slots: &mut Slots) {
        let mut rest = len;
        if let Some(incoming) = self.incoming.as_mut().filter(|_| self.end == 0)
            && let Some(place) = incoming.place(slots)
        {
            let direct = rest.min(place.len());
            let place = &place[..direct];
            if let Some(crc) = &mut incoming.digest {
                *crc = crc32c::crc32c_append(*crc, place);
            }
            incoming.arrived(direct);
            rest -= direct;
        }
        self.end = self.buffer.len().min(self.end + rest);
    }

    /// Moves data to where it belongs; gives how it ended once it is all there.
    pub(super) fn data(&mut self, slots: &mut Slots) -> Option<Received> {
        let incoming = self.incoming.as_mut()?;
        let taken = incoming.take(&self.buffer[self.start..self.end], slots);
        let incoming = *incoming;
        self.consume(taken);
        if !incoming.is_complete() {
            return None;
        }
        let is_intact = match incoming.digest {
            None => true,
            Some(crc) => {
                let digest = *self.bytes().first_chunk::<{ DIGEST_LEN as usize }>()?;
                self.consume(digest.len());
                crc == u32::from_le_bytes(digest)
            }
        };
        self.incoming = None;
        Some(Received {
            target: incoming.target,
            is_intact,
        })
    }
}
