//! The connection: its phases, what arrives, what completes.

use std::io::{IoSlice, IoSliceMut};

use zonelab_device::Buf;
use zonelab_nvme::fabrics::{Connect, ConnectData};
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};
use zonelab_nvme::tcp::{FatalErrorStatus, Framing};

use super::Violation;
use super::allowance::{Allowance, Fit};
use super::arriving::Step;
use super::receive::Receiver;
use super::send::Output;
use super::settings::{Settings, SettingsError, Terms};
use super::slots::{SlotId, Slots, State};
use crate::Buffers;
use crate::controller::Connected;

/// What a host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Make a queue of this connection: answer with [`Connection::connected`] or
    /// [`Connection::refused`] before anything else.
    Connect {
        /// Its entry.
        entry: SubmissionEntry,
        /// The same, parsed.
        command: Connect,
        /// Its data.
        data: Box<ConnectData>,
    },
    /// A command has more data than came with it: answer with
    /// [`Connection::accept`] or [`Connection::decline`] before anything else.
    /// Nothing has been set aside for it yet.
    Announced {
        /// Its entry.
        entry: SubmissionEntry,
        /// Bytes of its data.
        data_len: u32,
    },
    /// Any other, whole: answer with [`Connection::complete`].
    Command {
        /// Its entry.
        entry: SubmissionEntry,
        /// What the host sent with it.
        data: Option<Buf>,
        /// How much data the host has room for, in bytes.
        data_len: u32,
    },
}

/// Why a connection is over.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The host broke the protocol.
    Violation(Violation),
    /// The host says that the controller did: status and information.
    HostTerminated(FatalErrorStatus, u32),
    /// Its Connect command was refused.
    Refused,
    /// Its owner closed it: controller reset, shutdown, Disconnect.
    Closed,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing but ICReq may come.
    Initializing,
    /// ICReq came; nothing but Connect succeeds.
    Connecting,
    /// It is a queue.
    Live,
    /// What is queued goes out; what comes is dropped.
    Ending(End),
}

/// One connection of a controller.
///
/// Its owner reads from the socket into [`receive_slices`](Self::receive_slices),
/// says how much with [`received`](Self::received), takes every
/// [`next_event`](Self::next_event), and writes [`send_slices`](Self::send_slices),
/// of which [`sent`](Self::sent) says how much went out.
#[derive(Debug)]
pub struct Connection {
    pub(super) settings: Settings,
    pub(super) phase: Phase,
    pub(super) receiver: Receiver,
    pub(super) output: Output,
    pub(super) slots: Slots,
    pub(super) to_host: Framing,
    pub(super) to_controller: Framing,
    pub(super) is_admin: bool,
    /// Number of entries of the submission queue.
    pub(super) depth: u32,
    /// Entries that were consumed, modulo depth (SQHD).
    pub(super) head: u16,
    pub(super) has_flow_control: bool,
    pub(super) allowance: Allowance,
    /// Bytes that the host was asked for and has not sent.
    pub(super) asked_bytes: u64,
}

impl Connection {
    /// A connection of which nothing has arrived yet.
    ///
    /// # Errors
    /// A setting is outside what the protocol has room for.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        Self::on(settings, Terms::unbounded(&settings))
    }

    /// The same, for a peer that may hold no more than `terms` say.
    ///
    /// # Errors
    /// As [`Connection::new`].
    pub fn on(settings: Settings, terms: Terms) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self {
            settings,
            phase: Phase::Initializing,
            receiver: Receiver::new(terms.receive_bytes.max(1024) as usize),
            output: Output::new(1),
            // The one for Connect.
            slots: Slots::new(1),
            to_host: Framing::default(),
            to_controller: Framing::default(),
            is_admin: true,
            depth: 1,
            head: 0,
            has_flow_control: true,
            allowance: Allowance::new(terms),
            asked_bytes: 0,
        })
    }

    /// Why it is over; `None`: it is not.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        match self.phase {
            Phase::Ending(end) => Some(end),
            _ => None,
        }
    }

    /// True once a Connect command succeeded, until the end.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.phase == Phase::Live
    }

    /// True if the host has begun a PDU and owes the rest, or was asked for data
    /// that it has not sent.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        let is_in_pdu = self.receiver.is_in_pdu() && !self.is_paused();
        is_in_pdu || self.asked_bytes > 0
    }

    /// Says what the peer may hold from now on, at least as much as before.
    pub fn set_terms(&mut self, terms: Terms) {
        self.receiver.grow(terms.receive_bytes as usize);
        self.allowance.set_terms(terms);
        if self.is_live() {
            self.make_slots();
        }
    }

    /// Says how many bytes of data the connection may take on beyond its own.
    /// It takes them in [`next_event`](Self::next_event).
    pub fn set_room(&mut self, bytes: u64) {
        self.allowance.set_room(bytes);
    }

    /// Bytes of data of its commands beyond its own.
    #[must_use]
    pub fn shared_bytes(&self) -> u64 {
        self.allowance.shared_bytes()
    }

    /// True if nothing is to be read for it: what has arrived has no room.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.allowance.paused_for.is_some()
    }

    /// Whether a command waits for room, and if so for how many bytes of that
    /// which the owner gives: 0 if its own commands have to end first, or if it
    /// can go on.
    #[must_use]
    pub fn wanted_room(&self) -> Option<u64> {
        let len = self.next_wanted()?;
        Some(self.allowance.growth(len))
    }

    /// Bytes of the command that is the next to get room.
    fn next_wanted(&self) -> Option<u32> {
        let first = self.allowance.waiting.front();
        let waiting = first.and_then(|id| self.slots.get(*id));
        waiting
            .map(|slot| slot.data_len)
            .or(self.allowance.paused_for)
    }

    /// True if [`next_event`](Self::next_event) may have something though
    /// nothing arrives: a command that waited has room now.
    #[must_use]
    pub fn can_go_on(&self) -> bool {
        let wanted = self.next_wanted();
        wanted.is_some_and(|len| self.allowance.fit(len) == Fit::Now)
    }

    /// Where to put what arrives next. Empty only if events are left to be taken.
    pub fn receive_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        self.receiver.slices(&mut self.slots)
    }

    /// The first `len` bytes of [`receive_slices`](Self::receive_slices) arrived.
    pub fn received(&mut self, len: usize) {
        self.receiver.filled(len, &mut self.slots);
    }

    /// The next command that is whole. `None`: more must arrive first.
    pub fn next_event(&mut self, buffers: &mut Buffers) -> Option<Event> {
        loop {
            if self.end().is_some() {
                self.receiver.discard();
                return None;
            }
            if let Some(step) = self.waiting_step(buffers) {
                match step {
                    Step::Event(event) => return Some(event),
                    _ => continue,
                }
            }
            let step = if self.receiver.is_in_data() {
                self.data_step()
            } else {
                self.header_step(buffers)
            };
            match step {
                Step::Again => (),
                Step::Starved => return None,
                Step::Event(event) => return Some(event),
            }
        }
    }

    /// A Connect command succeeded: this is a queue.
    pub fn connected(&mut self, connected: &Connected) {
        let Some(id) = self.held(connected.completion.cid.get()) else {
            return;
        };
        self.phase = Phase::Live;
        self.is_admin = connected.is_admin;
        self.depth = connected.depth.max(1);
        self.make_slots();
        let attributes = Connect::parse(&self.slots.slot(id).entry).map(|command| command.cattr);
        let is_disabled = attributes.is_ok_and(|cattr| cattr.disable_sq_flow_control());
        self.has_flow_control = !is_disabled;
        self.respond(id, connected.completion, None);
    }

    /// As many slots as the queue is deep, and the terms allow.
    fn make_slots(&mut self) {
        let slots = u16::try_from(self.depth).unwrap_or(u16::MAX);
        let most = self.allowance.terms().commands.max(1);
        let slots = slots.min(self.settings.queue_depth).min(most);
        if usize::from(slots) > self.slots.len() {
            self.slots.grow(slots);
            self.output.reserve(self.slots.len());
        }
    }

    /// A Connect command was refused: the connection ends with its completion.
    pub fn refused(&mut self, completion: CompletionEntry) {
        if let Some(id) = self.held(completion.cid.get()) {
            self.respond(id, completion, None);
        }
        self.close(End::Refused);
    }

    /// No more commands; what is queued goes out first.
    pub fn close(&mut self, end: End) {
        if self.end().is_none() {
            self.phase = Phase::Ending(end);
            self.forget_collected();
        }
    }

    /// Gives up the data of commands that will never be whole.
    pub(super) fn forget_collected(&mut self) {
        self.asked_bytes = 0;
        self.allowance.waiting.clear();
        self.allowance.paused_for = None;
        for index in 0..self.slots.len() as u16 {
            let slot = self.slots.slot(SlotId(index));
            if matches!(slot.state, State::Collecting | State::Asking) {
                slot.data = None;
                self.allowance.release(std::mem::take(&mut slot.charged));
            }
        }
    }

    /// Whether there is something to send.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Puts what is to be sent into `slices`, as much as fits; returns how many
    /// of them are used.
    #[must_use]
    pub fn send_slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.output.slices(&self.slots, slices)
    }
}
