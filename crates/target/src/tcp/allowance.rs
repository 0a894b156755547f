//! How much data of its commands a connection may hold.

use std::collections::VecDeque;

use super::settings::Terms;
use super::slots::SlotId;

/// Whether the data of a command can be taken on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It can.
    Now,
    /// Others have to be answered first, or the owner has to give room.
    Later,
    /// It is more than the terms allow a command.
    Never,
}

/// The books of one connection.
#[derive(Debug)]
pub(super) struct Allowance {
    terms: Terms,
    /// Bytes of data of all its commands.
    held_bytes: u64,
    /// Bytes that may be held beyond its own.
    room_bytes: u64,
    /// Commands that wait for room, the first one first.
    pub(super) waiting: VecDeque<SlotId>,
    /// Data of the next command, which lies in its capsule, has no room.
    pub(super) paused_for: Option<u32>,
}

impl Allowance {
    pub(super) fn new(terms: Terms) -> Self {
        Self {
            terms,
            held_bytes: 0,
            room_bytes: u64::MAX,
            waiting: VecDeque::new(),
            paused_for: None,
        }
    }

    pub(super) const fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(super) const fn set_terms(&mut self, terms: Terms) {
        self.terms = terms;
    }

    pub(super) const fn set_room(&mut self, bytes: u64) {
        self.room_bytes = bytes;
    }

    /// Bytes beyond its own, if it holds `held_bytes`.
    const fn shared(&self, held_bytes: u64) -> u64 {
        held_bytes.saturating_sub(self.terms.own_bytes)
    }

    /// Bytes that it holds beyond its own.
    pub(super) const fn shared_bytes(&self) -> u64 {
        self.shared(self.held_bytes)
    }

    /// Bytes of room that `len` bytes more would take.
    pub(super) const fn growth(&self, len: u32) -> u64 {
        self.shared(self.held_bytes.saturating_add(len as u64)) - self.shared_bytes()
    }

    /// Whether there is a place for `len` bytes of a command.
    pub(super) fn fit(&self, len: u32) -> Fit {
        if u64::from(len) > self.terms.bytes {
            return Fit::Never;
        }
        let is_within = self.held_bytes + u64::from(len) <= self.terms.bytes;
        match is_within && self.growth(len) <= self.room_bytes {
            true => Fit::Now,
            false => Fit::Later,
        }
    }

    /// Takes `len` bytes on.
    pub(super) fn charge(&mut self, len: u32) {
        self.room_bytes = self.room_bytes.saturating_sub(self.growth(len));
        self.held_bytes += u64::from(len);
    }

    /// `len` bytes are gone.
    pub(super) fn release(&mut self, len: u32) {
        self.held_bytes -= u64::from(len);
    }
}
