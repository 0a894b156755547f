//! Commands in flight on one queue pair, and who waits for which.

use zonelab_device::{Buf, Command, Completion, NamespaceId, Nanos, Op, QueuePair, Tag, ZoneId};

use super::error::{Refused, ZoneError};
use super::namespace::Settings;

/// Who waits for a command.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The zone that the command is about; `None`: a report of all.
    pub(super) zone: Option<ZoneId>,
    /// What tells owners apart.
    key: u64,
}

/// What an owner wants to know of a command when it has ended.
#[derive(Copy, Clone, Debug)]
pub(super) struct Note {
    /// The number that its owner gave it.
    pub(super) number: u64,
    /// Blocks of its data.
    pub(super) blocks: u32,
}

/// The place of one command. Its index is the tag of the command, so that a place is not
/// used again before the command of the tag has ended.
#[derive(Debug)]
enum Slot {
    Free,
    InFlight(Owner, Note),
    /// In flight, and nobody waits for it any more.
    Orphan(Option<ZoneId>),
    Done(Owner, Note, Completion),
}

/// A queue pair and the commands that are in flight on it.
pub(super) struct Engine<Q> {
    queue: Q,
    nsid: NamespaceId,
    settings: Settings,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Where completions arrive. Empty between calls; it has room for all commands.
    done: Vec<Completion>,
    next_key: u64,
}

impl<Q: QueuePair> Engine<Q> {
    pub(super) fn new(queue: Q, nsid: NamespaceId, settings: Settings) -> Self {
        let most = u32::from(settings.in_flight.max(1));
        Self {
            queue,
            nsid,
            settings,
            slots: (0..most).map(|_| Slot::Free).collect(),
            free: (0..most).rev().collect(),
            done: Vec::with_capacity(most as usize),
            next_key: 0,
        }
    }

    pub(super) fn into_queue(self) -> Q {
        self.queue
    }

    /// An owner that no other is equal to.
    pub(super) fn owner(&mut self, zone: Option<ZoneId>) -> Owner {
        self.next_key += 1;
        let key = self.next_key;
        Owner { zone, key }
    }

    /// Hands a command over. The device hears of it at the next [`Self::wait`] or
    /// [`Self::pump`].
    pub(super) fn submit(
        &mut self,
        owner: Owner,
        note: Note,
        op: Op,
        data: Option<Buf>,
    ) -> Result<(), Refused> {
        let Some(slot) = self.free.pop() else {
            let limit = self.settings.in_flight.max(1);
            let error = ZoneError::TooManyInFlight { limit };
            return Err(Refused { error, data });
        };
        let nsid = self.nsid;
        if let Err(rejected) = self.queue.submit(Command::on(nsid, op), Tag(slot), data) {
            self.free.push(slot);
            return Err(Refused {
                error: ZoneError::NotTaken(rejected.reason),
                data: rejected.data,
            });
        }
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Slot::InFlight(owner, note);
        }
        Ok(())
    }

    /// Takes what has ended off the queue. Returns whether anything had.
    pub(super) fn pump(&mut self) -> bool {
        self.queue.ring();
        self.queue.poll(&mut self.done);
        let has_some = !self.done.is_empty();
        for completion in self.done.drain(..) {
            let Tag(slot) = completion.tag;
            // One with a tag of nobody is not ours, and there is nobody to tell.
            let Some(place) = self.slots.get_mut(slot as usize) else {
                continue;
            };
            *place = match core::mem::replace(place, Slot::Free) {
                Slot::InFlight(owner, note) => Slot::Done(owner, note, completion),
                Slot::Orphan(_) => {
                    self.free.push(slot);
                    Slot::Free
                }
                other => other,
            };
        }
        has_some
    }

    /// A command of `owner` that has ended.
    pub(super) fn take(&mut self, owner: Owner) -> Option<(Note, Completion)> {
        let is_its = |slot: &Slot| matches!(slot, Slot::Done(of, ..) if *of == owner);
        let index = self.slots.iter().position(is_its)?;
        self.free.push(index as u32);
        match core::mem::replace(self.slots.get_mut(index)?, Slot::Free) {
            Slot::Done(_, note, completion) => Some((note, completion)),
            // It was one a moment ago.
            _ => None,
        }
    }

    /// Waits until `found` finds something, and at most as long as a command may take.
    fn until<T>(&mut self, mut found: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        let end = self.queue.now().saturating_add(self.settings.deadline);
        loop {
            let has_some = self.pump();
            if let Some(found) = found(self) {
                return Some(found);
            }
            let left = end.saturating_sub(self.queue.now());
            if left == Nanos::ZERO {
                return None;
            }
            if !has_some {
                (self.settings.pause)(left);
            }
        }
    }

    /// Waits until a command of `owner` has ended, and gives all of them up if none does
    /// in time.
    pub(super) fn wait(
        &mut self,
        owner: Owner,
        command: &'static str,
    ) -> Result<(Note, Completion), ZoneError> {
        self.until(|engine| engine.take(owner)).ok_or_else(|| {
            self.abandon(owner);
            let after = self.settings.deadline;
            ZoneError::TimedOut { command, after }
        })
    }

    /// Nobody waits for the commands of `owner` any more.
    pub(super) fn abandon(&mut self, owner: Owner) {
        self.abandon_all(|of| of == owner);
    }

    fn abandon_all(&mut self, is_meant: impl Fn(Owner) -> bool) {
        for (index, slot) in (0..).zip(&mut self.slots) {
            match slot {
                Slot::InFlight(of, _) if is_meant(*of) => *slot = Slot::Orphan(of.zone),
                Slot::Done(of, ..) if is_meant(*of) => {
                    *slot = Slot::Free;
                    self.free.push(index);
                }
                _ => {}
            }
        }
    }

    /// Waits until no command of a zone is in flight: a report before that may be out of date
    /// when it arrives. Nobody waits for one, since the handle is with the caller: what is in
    /// flight was given up, or its appender was forgotten.
    pub(super) fn settle(&mut self, zone: ZoneId) -> Result<(), ZoneError> {
        self.abandon_all(|of| of.zone == Some(zone));
        let is_its = |slot: &Slot| matches!(slot, Slot::Orphan(Some(of)) if *of == zone);
        let is_quiet = |engine: &mut Self| !engine.slots.iter().any(is_its);
        self.until(|engine| is_quiet(engine).then_some(()))
            .ok_or(ZoneError::TimedOut {
                command: "a command that was given up",
                after: self.settings.deadline,
            })
    }

    /// Sends a command and waits for its end. The buffer comes back, of a failed command too.
    pub(super) fn run(
        &mut self,
        zone: Option<ZoneId>,
        command: &'static str,
        op: Op,
        data: Option<Buf>,
    ) -> Result<Completion, Refused> {
        let owner = self.owner(zone);
        let note = Note {
            number: 0,
            blocks: op.nlb(),
        };
        self.submit(owner, note, op, data)?;
        let (_, completion) = self
            .wait(owner, command)
            .map_err(|error| Refused { error, data: None })?;
        let status = completion.status;
        if status.is_success() {
            return Ok(completion);
        }
        Err(Refused {
            error: ZoneError::Failed { command, status },
            data: completion.data,
        })
    }
}
