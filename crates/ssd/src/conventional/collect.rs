//! Garbage collection of a conventional namespace.
//!
//! When the host can open no further zone, the full zone with the fewest blocks
//! that still hold something is the victim (greedy). Its blocks are read in
//! batches of a page of each plane, and written to the zone of the collection,
//! unless the host has replaced them meanwhile. When all are written, they are
//! made durable, the victim is reset, and the next follows until there is room.

use zonelab_device::{Lba, NamespaceId, Op};
use zonelab_nvme::zns::ZoneSendAction;

use super::{Role, Stream};
use crate::contents::{NotWritten, Unreadable};
use crate::drive::{Core, Drive, Request, Stage};
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
    /// Places of the blocks that are being moved.
    batch: Vec<u32>,
    /// Requests of this phase that are not over.
    outstanding: u32,
    /// Scratch: data of a block.
    bytes: Vec<u8>,
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
    /// The victim is being reset.
    Reset,
    /// What was moved is being written, and the rest cannot be.
    GivenUp,
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

impl Drive {
    /// Begins to collect, if nothing is being collected and there is need.
    pub(super) fn collect_if_needed(&mut self, which: u8) {
        if self.conventional[usize::from(which)].collection.is_idle() {
            self.collect(which);
        }
    }

    /// A request of a collection is over.
    pub(super) fn collection_goes_on(&mut self, which: u8) {
        let collection = &mut self.conventional[usize::from(which)].collection;
        collection.outstanding -= 1;
        if collection.outstanding == 0 {
            self.collect(which);
        }
    }

    /// Takes the next steps, until one takes time.
    fn collect(&mut self, which: u8) {
        loop {
            let of = &mut self.conventional[usize::from(which)];
            match of.collection.phase {
                Phase::Idle => {
                    if of.log.free_zones() >= FREE_ZONES {
                        return;
                    }
                    let Some(victim) = of.log.victim() else {
                        return;
                    };
                    of.collection.victim = victim;
                    of.collection.next = of.log.places_of(victim).start;
                    of.collection.phase = Phase::Gather;
                }
                Phase::Gather => {
                    if !self.gather(which) {
                        self.conventional[usize::from(which)].collection.phase = Phase::Flush;
                        if self.flush_collected(which) {
                            return;
                        }
                        continue;
                    }
                    self.read_batch(which);
                    return;
                }
                Phase::Read => {
                    of.collection.phase = Phase::Gather;
                    if let Err(why) = self.write_batch(which) {
                        return self.give_up_collection(which, why);
                    }
                    if self.conventional[usize::from(which)].collection.outstanding > 0 {
                        return;
                    }
                }
                Phase::Flush => return self.reset_victim(which),
                Phase::GivenUp => {
                    of.collection.phase = Phase::Idle;
                    return;
                }
                Phase::Reset => {
                    let victim = of.collection.victim;
                    of.collection.phase = Phase::Idle;
                    of.log.freed(victim);
                    self.waiting_writes_go_on(which);
                    if !self.conventional[usize::from(which)].collection.is_idle() {
                        return;
                    }
                }
            }
        }
    }

    /// Finds the next batch of the victim. Returns whether there is one.
    fn gather(&mut self, which: u8) -> bool {
        let layout = self.core.flash.layout();
        let most = (layout.width() * layout.page_lbas()) as usize;
        let of = &mut self.conventional[usize::from(which)];
        let collection = &mut of.collection;
        collection.batch.clear();
        let end = of.log.places_of(collection.victim).end;
        while collection.next < end && collection.batch.len() < most {
            if of.log.block_at(collection.next).is_some() {
                collection.batch.push(collection.next);
            }
            collection.next += 1;
        }
        !collection.batch.is_empty()
    }

    fn read_batch(&mut self, which: u8) {
        let of = &mut self.conventional[usize::from(which)];
        of.collection.phase = Phase::Read;
        of.collection.outstanding = 1;
        let batch = core::mem::take(&mut of.collection.batch);
        let nsid = of.nsid;
        let op = Op::Read {
            slba: Lba(0),
            nlb: 0,
        };
        let index = self
            .core
            .insert_internal(Request::internal(nsid, op, Role::Collection(which)));
        let mut groups = 0;
        let mut rest = &batch[..];
        while let Some(&first) = rest.first() {
            let run = rest
                .iter()
                .zip(first..)
                .take_while(|(place, at)| *place == at);
            let count = run.count();
            // Fits: a run is within a batch.
            groups += self.read_log(which, index, first, count as u32);
            rest = &rest[count..];
        }
        self.conventional[usize::from(which)].collection.batch = batch;
        self.core.internal_waits(index, groups);
    }

    /// Writes what is left of the batch that was read.
    ///
    /// # Errors
    /// A block cannot be written; those before it have been moved.
    fn write_batch(&mut self, which: u8) -> Result<(), NotWritten> {
        let batch = core::mem::take(&mut self.conventional[usize::from(which)].collection.batch);
        let mut next = 0;
        let mut moved = Ok(());
        while next < batch.len() && moved.is_ok() {
            let of = &mut self.conventional[usize::from(which)];
            let room = of.log.room(Stream::Collection);
            debug_assert!(room > 0, "a zone is left for collection");
            if room == 0 {
                break;
            }
            let (from, begin) = (of.log.next_place(Stream::Collection), next);
            let mut count = 0;
            while count < room && next < batch.len() {
                let place = batch[next];
                next += 1;
                let log = &mut self.conventional[usize::from(which)].log;
                if let Some(block) = log.block_at(place) {
                    let to = log.next_place(Stream::Collection);
                    moved = self.move_data(which, (place, to), block);
                    if moved.is_err() {
                        break;
                    }
                    let log = &mut self.conventional[usize::from(which)].log;
                    log.append(Stream::Collection, block);
                    count += 1;
                }
            }
            debug_assert!(next > begin, "a batch gets shorter");
            if count > 0 {
                self.conventional[usize::from(which)].collection.outstanding += 1;
                self.write_log(which, from, count, Role::Collection(which));
            }
        }
        self.conventional[usize::from(which)].collection.batch = batch;
        moved
    }

    /// What the collection moves cannot be written: it begins anew with the next
    /// write that needs room, and those that wait for it now fail.
    #[cold]
    fn give_up_collection(&mut self, which: u8, why: NotWritten) {
        let of = &mut self.conventional[usize::from(which)];
        let is_busy = of.collection.outstanding > 0;
        of.collection.phase = if is_busy { Phase::GivenUp } else { Phase::Idle };
        for index in core::mem::take(&mut of.waiting) {
            let nlb = self.core.requests.at(index).op.nlb();
            self.core.write_fails(index, nlb, why);
        }
    }

    /// Moves the data of a block from one place to another.
    fn move_data(
        &mut self,
        which: u8,
        (from, to): (u32, u32),
        block: u32,
    ) -> Result<(), NotWritten> {
        let lba_bytes = self.config().lba_bytes as usize;
        let of = &mut self.conventional[usize::from(which)];
        let Some(data) = &mut self.core.data else {
            return Ok(());
        };
        of.collection.bytes.resize(lba_bytes, 0);
        let bytes_of = |offset: u32| u64::from(offset) * lba_bytes as u64;
        let (zone, offset) = of.log.position(from);
        let read = data.read(zone, bytes_of(offset), &mut of.collection.bytes);
        let (zone, offset) = of.log.position(to);
        match (read, data.outside()) {
            // It must not become readable by being moved.
            (Err(Unreadable), Some(contents)) => {
                contents.write_unreadable(zone, bytes_of(offset)..bytes_of(offset + 1))?;
            }
            _ => data.write_moved(zone, bytes_of(offset), &of.collection.bytes)?,
        }
        match data.outside() {
            Some(contents) => contents.place(zone, offset, block, 1),
            None => Ok(()),
        }
    }

    /// Makes durable what has been moved. Returns whether that takes time.
    fn flush_collected(&mut self, which: u8) -> bool {
        let nsid = self.conventional[usize::from(which)].nsid;
        let index =
            self.core
                .insert_internal(Request::internal(nsid, Op::Flush, Role::Collection(which)));
        if self.flush_buffer(index) {
            self.conventional[usize::from(which)].collection.outstanding = 1;
            return true;
        }
        self.core.remove_internal(index);
        false
    }

    fn reset_victim(&mut self, which: u8) {
        let of = &mut self.conventional[usize::from(which)];
        of.collection.phase = Phase::Reset;
        of.collection.outstanding = 1;
        let nsid: NamespaceId = of.nsid;
        let place = of.log.places_of(of.collection.victim).start;
        let (zone, _) = of.log.position(place);
        let slba = self.core.zones.start(zone);
        let op = Op::ZoneSend {
            slba,
            action: ZoneSendAction::RESET,
            select_all: false,
        };
        let index = self
            .core
            .insert_internal(Request::internal(nsid, op, Role::Collection(which)));
        // The blocks are where they were moved to, before this place forgets them.
        // It does so at once as far as the end of the process is concerned; for the
        // end of the machine see `Contents::clear`.
        self.core.keep_zones();
        let mut changes = Vec::new();
        let reset = self
            .core
            .zones
            .send(slba, ZoneSendAction::RESET, &mut changes);
        debug_assert!(reset.is_ok(), "a full zone can be reset");
        for change in &changes {
            self.core.clear_data(change.zone);
            self.begin_reset(change, index, self.core.now);
        }
        self.admit_writes();
        let pending = self.core.requests.at(index).pending;
        self.core.internal_waits(index, pending);
    }
}
