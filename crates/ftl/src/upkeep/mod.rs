//! What takes the drive as a whole: commits, closing zones, collecting, checkpoints.
//!
//! Upkeep is one program of [tasks](zonelab_host::tasks) with a queue pair of its own.

mod close;
mod collect;
mod moves;
mod segments;

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::select;
use zonelab_device::Nanos;
use zonelab_host::Rng;
use zonelab_host::notify::Notify;
use zonelab_host::tasks::Io;

use crate::FtlError;
use crate::blocks::DataZone;
use crate::changes::Lane;
use crate::core::Core;
use crate::durable::Durable;
use crate::frontier::Frontier;
use crate::media::Media;
use crate::metrics::Counters;
use crate::mount::Found;
use crate::segments::Segments;
use crate::victims::{OwnVictims, Victims};

/// How long upkeep waits before it tries again what the drive had no room for.
const RETRY_AFTER: Nanos = Nanos::from_ms(500);

/// The tasks of upkeep, and what they share.
pub(crate) struct Upkeep {
    io: Io,
    core: Arc<Core>,
    durable: Durable,
    /// Rings when something has changed that a task may wait for.
    bell: Rc<Notify>,
    lane: Arc<Lane>,
    victims: RefCell<Victims>,
    /// The zones that the collector writes, one of each generation at most.
    frontiers: RefCell<Vec<Frontier>>,
    /// Zones that are empty of valid blocks, and are being reset.
    recycling: Cell<u32>,
    /// Zones that are being closed.
    closing: Cell<u32>,
    /// Zones that wait for reads to end.
    awaiting: Cell<i32>,
    /// Zones that can be written and reset no more, with blocks to be moved.
    to_evacuate: RefCell<Vec<DataZone>>,
    /// Zones that could not be emptied, since blocks cannot be read: reset when nothing
    /// in them is valid any more.
    stuck: RefCell<Vec<DataZone>>,
    /// What footers would say, by data zone, if the device keeps no data.
    footers: RefCell<Vec<Option<Vec<u32>>>>,
    /// The drive can copy, as far as is known.
    copies: Cell<bool>,
    /// Tasks that wait until the drive has room.
    starving: Cell<u32>,
}

/// Upkeep has something to write that the drive has no room for.
struct Starving<'a>(&'a Upkeep);

impl<'a> Starving<'a> {
    fn new(upkeep: &'a Upkeep) -> Self {
        upkeep.starving.set(upkeep.starving.get() + 1);
        upkeep.core.set_starved(true);
        Self(upkeep)
    }
}

impl Drop for Starving<'_> {
    fn drop(&mut self) {
        let left = self.0.starving.get() - 1;
        self.0.starving.set(left);
        self.0.core.set_starved(left > 0);
        self.0.bell.ring();
    }
}

impl Upkeep {
    pub(crate) fn new(io: &Io, core: &Arc<Core>, durable: Durable, bell: Rc<Notify>) -> Rc<Self> {
        let settings = &core.settings;
        let rng = Rng::new(settings.seed, 0);
        let shape = &core.shape;
        let namespace = io.info().namespace(shape.nsid);
        let can_copy = namespace.is_some_and(|namespace| namespace.copy.is_some());
        let victims = Victims::new(settings.victims, shape.data_blocks(), rng);
        let own = settings.own_victims.as_ref().map(OwnVictims::make);
        Rc::new(Self {
            io: io.clone(),
            core: Arc::clone(core),
            durable,
            bell,
            lane: core.changes.join(),
            victims: RefCell::new(victims.by(own)),
            frontiers: RefCell::default(),
            recycling: Cell::new(0),
            closing: Cell::new(0),
            awaiting: Cell::new(0),
            to_evacuate: RefCell::default(),
            stuck: RefCell::default(),
            footers: RefCell::new(vec![None; shape.data_zones() as usize]),
            copies: Cell::new(settings.device_copy && can_copy),
            starving: Cell::new(0),
        })
    }

    fn media(&self) -> &Media {
        self.durable.media()
    }

    /// Zones that a mount found in need of something.
    pub(crate) fn adopt(self: &Rc<Self>, found: Found) {
        *self.to_evacuate.borrow_mut() = found.to_evacuate;
        match found.frontier {
            Some(full) if full.left() == 0 => self.core.hand_in(full),
            frontier => self.frontiers.borrow_mut().extend(frontier),
        }
    }

    /// Starts the tasks. They end with their program.
    pub(crate) fn start(self: &Rc<Self>) {
        self.spawn(async |upkeep| upkeep.commits().await);
        self.spawn(async |upkeep| upkeep.closes().await);
        self.spawn(async |upkeep| upkeep.collects().await);
        self.spawn(async |upkeep| upkeep.checkpoints().await);
    }

    /// Starts a task beside the others. If it fails, nothing is written any more.
    fn spawn<F: Future<Output = Result<(), FtlError>> + 'static>(
        self: &Rc<Self>,
        task: impl FnOnce(Rc<Self>) -> F,
    ) {
        let upkeep = Rc::clone(self);
        let task = task(Rc::clone(self));
        let task = async move {
            if let Err(error) = task.await {
                upkeep.core.fail(error);
                upkeep.bell.ring();
            }
        };
        self.io.spawn(task).forget();
    }

    /// Tries again and again as long as the drive has no room for it; writes and flushes fail
    /// meanwhile.
    async fn with_room(
        &self,
        tries: impl AsyncFn() -> Result<(), FtlError>,
    ) -> Result<(), FtlError> {
        let mut starving = None;
        loop {
            let end = tries().await;
            if !end.as_ref().is_err_and(FtlError::is_no_room) {
                return end;
            }
            self.starve(&mut starving).await;
        }
    }

    /// The drive has no room for something that has to be written: waits before the next try.
    /// Writes and flushes fail until `starving` is gone.
    async fn starve<'a>(&'a self, starving: &mut Option<Starving<'a>>) {
        starving.get_or_insert_with(|| Starving::new(self));
        self.io.sleep_until(self.io.now() + RETRY_AFTER).await;
    }

    /// Commits changes whenever somebody asks.
    async fn commits(&self) -> Result<(), FtlError> {
        let mut changes = Vec::new();
        loop {
            let seen = self.bell.changes();
            let ticket = self.core.asked();
            if ticket == self.core.committed() {
                self.bell.after(seen).await;
                continue;
            }
            changes.clear();
            self.core.changes.take(&mut changes);
            if !changes.is_empty() {
                self.with_room(async || self.durable.append(&changes).await)
                    .await?;
                let blocks = changes.len() as u64;
                let each = u64::from(self.durable.changes_per_block());
                Counters::add(&self.core.counters.journal, blocks.div_ceil(each));
                Counters::add(&self.core.counters.commits, 1);
            }
            self.core.set_committed(ticket);
            self.bell.ring();
        }
    }

    /// Returns when all changes that have been made are durable.
    async fn commit(&self) -> Result<(), FtlError> {
        let ticket = self.core.ask_commit();
        self.bell.ring();
        loop {
            let seen = self.bell.changes();
            if self.core.is_committed(ticket) {
                return Ok(());
            }
            if let Some(error) = self.core.failure() {
                return Err(error);
            }
            self.bell.after(seen).await;
        }
    }

    /// Writes the map whenever the journal has grown long.
    async fn checkpoints(&self) -> Result<(), FtlError> {
        loop {
            let map = &self.core.changes.map;
            let seen = self.bell.changes();
            let has_changed = map.segments().is_some_and(Segments::wants_checkpoint);
            if !self.durable.wants_checkpoint() && !has_changed {
                match map.segments() {
                    None => self.durable.changed().await,
                    Some(_) => {
                        let changed = pin!(self.durable.changed());
                        let rings = pin!(self.bell.after(seen));
                        select(changed, rings).await;
                    }
                }
                continue;
            }
            let commit = async || self.commit().await;
            self.with_room(async || self.durable.checkpoint(map, commit).await)
                .await?;
            self.wake_holders();
            let words = u64::from(self.core.shape.words_per_block());
            let blocks = u64::from(map.blocks()).div_ceil(words);
            Counters::add(&self.core.counters.images, blocks);
            self.bell.ring();
        }
    }
}
