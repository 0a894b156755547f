//! Garbage collection of a conventional namespace.
//!
//! When the host can open no further zone, a full zone is the victim: which one, the
//! policy says (`log/victims`); one that its handle has left
//! counts as full. Its blocks are read in
//! batches of a page of each plane, and written to the zone of the collection, or
//! to that of the collection for the handle that wrote them,
//! unless the host has replaced them meanwhile. When all are written, they are
//! made durable, the victim is reset, and the next follows until there is room.

use zonelab_device::{Lba, NamespaceId, Op};
use zonelab_nvme::zns::ZoneSendAction;

use super::{Conventional, Role};
use crate::contents::{Data, NotWritten};
use crate::drive::{BackEnd, Core, Request, Stage};
use crate::event::Event;

/// Zones that are free when nothing is to be collected: one for the host, and
/// one that is always left for the collection.
const FREE_ZONES: usize = 2;

/// What the collection of a namespace is doing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collection {
    phase: Phase,
    /// The zone that is being emptied, counted within the log.
    victim: u32,
    /// Its next place to look at.
    next: u32,
    /// Places of the units that are being moved.
    batch: Vec<u32>,
    /// Requests of this phase that are not over.
    outstanding: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    /// The next batch is to be found.
    Gather,
    /// A batch is being read.
    Read,
    /// What has been moved is being made durable.
    Flush,
    /// A write that replaced a block of the victim has to come as far as a flush reaches.
    Replacement,
    /// The victim is being reset.
    Reset,
    /// What was moved is being written, and the rest cannot be.
    GivenUp,
    /// The same, and another victim may do.
    Abandoned,
}

impl Collection {
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }
}

impl Core {
    /// A request of the drive waits for so many things; for none, its end is due.
    fn internal_waits(&mut self, index: u32, pending: u32) {
        let request = self.requests.at(index);
        request.pending = pending;
        if pending == 0 {
            request.stage = Stage::Completion;
            self.events.push(self.now, Event::Request(index));
        }
    }
}

impl Conventional {
    /// Begins to collect, if nothing is being collected and there is need.
    pub(super) fn collect_if_needed(&mut self, end: &mut BackEnd<'_>) {
        if self.collection.is_idle() {
            self.collect(end);
        }
    }

    /// A request of a collection is over.
    pub(crate) fn collection_goes_on(&mut self, end: &mut BackEnd<'_>) {
        let collection = &mut self.collection;
        collection.outstanding -= 1;
        if collection.outstanding == 0 {
            self.collect(end);
        }
    }

    /// A part of a write is over, which a collection may have waited for.
    pub(crate) fn part_over(&mut self, end: &mut BackEnd<'_>) {
        self.parts -= 1;
        if self.collection.phase == Phase::Replacement {
            self.collect(end);
        }
    }

    /// Whether a loss of power now would leave a block of the victim the last that is left:
    /// what replaced it is on no flash yet.
    fn victim_may_come_back(&self, end: &BackEnd<'_>) -> bool {
        let victim = self.collection.victim;
        self.log
            .may_come_back(victim, |zone| end.durable_lbas(zone))
    }

    /// Takes the next steps, until one takes time.
    fn collect(&mut self, end: &mut BackEnd<'_>) {
        loop {
            let phase = self.collection.phase;
            match phase {
                Phase::Idle => {
                    let Some(victim) = self.next_victim(end) else {
                        return;
                    };
                    self.log.moves_failed(self.log.has_failed(victim));
                    self.collection.victim = victim;
                    self.collection.next = self.log.places_of(victim).start;
                    self.collection.phase = Phase::Gather;
                }
                Phase::Gather if self.gather(end) => return self.read_batch(end),
                Phase::Gather | Phase::Replacement | Phase::Flush
                    if self.log.has_failed(self.collection.victim) =>
                {
                    // It is not reset, so that what it held can still come back.
                    self.collection.phase = Phase::Idle;
                    self.log.moves_failed(false);
                    self.waiting_writes_go_on(end);
                    if !self.collection.is_idle() {
                        return;
                    }
                }
                Phase::Gather | Phase::Replacement => {
                    self.collection.phase = Phase::Flush;
                    if self.flush_collected(end) {
                        return;
                    }
                }
                Phase::Read => {
                    self.collection.phase = Phase::Gather;
                    match self.write_batch(end) {
                        Ok(true) => {}
                        Ok(false) => self.collection.phase = Phase::Abandoned,
                        Err(why) => return self.give_up_collection(end, why),
                    }
                    if self.collection.outstanding > 0 {
                        return;
                    }
                }
                Phase::Flush if self.victim_may_come_back(end) => {
                    self.collection.phase = Phase::Replacement;
                    if self.parts > 0 {
                        return;
                    }
                }
                Phase::Flush => return self.reset_victim(end),
                Phase::GivenUp => {
                    self.collection.phase = Phase::Idle;
                    return;
                }
                Phase::Abandoned => {
                    self.collection.phase = Phase::Idle;
                    self.log.moves_failed(false);
                }
                Phase::Reset => {
                    let victim = self.collection.victim;
                    self.collection.phase = Phase::Idle;
                    self.log.freed(victim);
                    self.waiting_writes_go_on(end);
                    if !self.collection.is_idle() {
                        return;
                    }
                }
            }
        }
    }

    /// What is collected next, if something is to be. Zones that have failed give no room, so
    /// that what they hold is moved only when there is some.
    fn next_victim(&mut self, end: &mut BackEnd<'_>) -> Option<u32> {
        if self.log.is_read_only() {
            return None;
        }
        if self.log.free_zones() >= FREE_ZONES {
            return self.log.failed_to_move();
        }
        let victim = self.log.victim();
        if victim.is_none() && self.log.free_zones() == 0 {
            // Failures took the zones that it needs.
            self.be_read_only(end);
        }
        victim
    }

    /// Finds the next batch of the victim. Returns whether there is one.
    fn gather(&mut self, end: &mut BackEnd<'_>) -> bool {
        let layout = end.core.flash.layout();
        let most = (layout.width() * layout.page_lbas() / self.log.unit_lbas()).max(1) as usize;
        let collection = &mut self.collection;
        collection.batch.clear();
        let end = self.log.places_of(collection.victim).end;
        while collection.next < end && collection.batch.len() < most {
            if self.log.unit_at(collection.next).is_some() {
                collection.batch.push(collection.next);
            }
            collection.next += 1;
        }
        !collection.batch.is_empty()
    }

    fn read_batch(&mut self, end: &mut BackEnd<'_>) {
        self.collection.phase = Phase::Read;
        self.collection.outstanding = 1;
        let batch = core::mem::take(&mut self.collection.batch);
        let nsid = self.nsid;
        let op = Op::Read {
            slba: Lba(0),
            nlb: 0,
        };
        let index =
            end.core
                .insert_internal(Request::internal(nsid, op, Role::Collection(self.which)));
        let mut groups = 0;
        let mut rest = &batch[..];
        while let Some(&first) = rest.first() {
            let run = rest
                .iter()
                .zip(first..)
                .take_while(|(place, at)| *place == at);
            let count = run.count();
            // Fits: a run is within a batch.
            groups += self.read_log(end, index, first, count as u32);
            rest = &rest[count..];
        }
        self.collection.batch = batch;
        end.core.internal_waits(index, groups);
    }

    /// Writes what is left of the batch that was read. Returns whether there was room for all
    /// of it: there is, unless a zone has failed that it would have gone to.
    ///
    /// # Errors
    /// A block cannot be written; those before it have been moved.
    fn write_batch(&mut self, end: &mut BackEnd<'_>) -> Result<bool, NotWritten> {
        let batch = core::mem::take(&mut self.collection.batch);
        let mut next = 0;
        let mut moved = Ok(());
        let victim = self.collection.victim;
        let writer = self.log.writer(victim);
        let stream = self.log.streams().collection_of(writer);
        while next < batch.len() && moved.is_ok() {
            let room = self.log.room(stream);
            if room == 0 {
                debug_assert!(
                    self.log.spare_left() < self.log.spare_zones(),
                    "a zone is left for collection"
                );
                break;
            }
            let (from, begin) = (self.log.next_place(stream), next);
            let mut count = 0;
            let mut first = None;
            while count < room && next < batch.len() {
                let place = batch[next];
                next += 1;
                let log = &mut self.log;
                if let Some(unit) = log.unit_at(place) {
                    let to = log.next_place(stream);
                    moved = self.move_data(end, (place, to), unit);
                    if moved.is_err() {
                        break;
                    }
                    let log = &mut self.log;
                    log.append_moved(stream, unit, victim);
                    count += 1;
                    first = first.or(Some(unit));
                }
            }
            debug_assert!(next > begin, "a batch gets shorter");
            if let Some(unit) = first {
                let unit_lbas = self.log.unit_lbas();
                self.note_moved(end.core, writer, unit * unit_lbas, count * unit_lbas);
                self.collection.outstanding += 1;
                self.write_log(end, from, count, Role::Collection(self.which));
            }
        }
        let is_whole = next == batch.len();
        self.collection.batch = batch;
        moved.map(|()| is_whole)
    }

    /// What the collection moves cannot be written: it begins anew with the next
    /// write that needs room, and those that wait for it now fail.
    #[cold]
    fn give_up_collection(&mut self, end: &mut BackEnd<'_>, why: NotWritten) {
        let is_busy = self.collection.outstanding > 0;
        self.collection.phase = if is_busy { Phase::GivenUp } else { Phase::Idle };
        self.log.moves_failed(false);
        self.waiting_writes_fail(end, why.status());
    }

    /// Moves the data of a unit from one place to another.
    fn move_data(
        &mut self,
        end: &mut BackEnd<'_>,
        (from, to): (u32, u32),
        unit: u32,
    ) -> Result<(), NotWritten> {
        if end.core.data.is_none() {
            return Ok(());
        }
        let unit_lbas = self.log.unit_lbas();
        let ((from, from_lba), (to, to_lba)) = (self.log.position(from), self.log.position(to));
        for lba in 0..unit_lbas {
            self.copy_block(end, (from, from_lba + lba), (to, to_lba + lba))?;
        }
        match end.core.data.as_mut().and_then(Data::outside) {
            Some(contents) => contents.place(to, to_lba, unit * unit_lbas, unit_lbas),
            None => Ok(()),
        }
    }

    /// Makes durable what has been moved. Returns whether that takes time.
    fn flush_collected(&mut self, end: &mut BackEnd<'_>) -> bool {
        let nsid = self.nsid;
        let index = end.core.insert_internal(Request::internal(
            nsid,
            Op::Flush,
            Role::Collection(self.which),
        ));
        if end.flush_buffer(index) {
            self.collection.outstanding = 1;
            return true;
        }
        end.core.remove_internal(index);
        false
    }

    fn reset_victim(&mut self, end: &mut BackEnd<'_>) {
        self.collection.phase = Phase::Reset;
        self.collection.outstanding = 1;
        let nsid: NamespaceId = self.nsid;
        let place = self.log.places_of(self.collection.victim).start;
        let (zone, _) = self.log.position(place);
        let slba = end.core.zones.start(zone);
        let op = Op::ZoneSend {
            slba,
            action: ZoneSendAction::RESET,
            select_all: false,
        };
        let index =
            end.core
                .insert_internal(Request::internal(nsid, op, Role::Collection(self.which)));
        // The blocks are where they were moved to, before this place forgets them.
        // It does so at once as far as the end of the process is concerned; for the
        // end of the machine see `Contents::clear`.
        end.core.keep_zones();
        let mut changes = Vec::new();
        let reset = end
            .core
            .zones
            .send(slba, ZoneSendAction::RESET, &mut changes);
        debug_assert!(reset.is_ok(), "a full zone can be reset");
        for change in &changes {
            end.core.clear_data(change.zone);
            end.begin_reset(change, index, end.core.now);
        }
        end.admit_writes();
        let pending = end.core.requests.at(index).pending;
        end.core.internal_waits(index, pending);
    }
}
