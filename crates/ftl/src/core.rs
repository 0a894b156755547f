//! What queues and upkeep share.

use std::sync::Arc;
use std::task::Waker;

use zonelab_device::QueueId;

use crate::FtlError;
use crate::blocks::{DataZone, MapChange};
use crate::changes::{Changes, Lane};
use crate::durable::Durable;
use crate::epochs::Epochs;
use crate::frontier::{Frontier, Writer};
use crate::map::ForwardMap;
use crate::metrics::Counters;
use crate::settings::{FtlSettings, Placement};
use crate::shape::Shape;
use crate::sync::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Mutex, Ordering, lock};
use crate::zones::{Generation, ZoneTable};

/// Most changes that wait for a commit, however many the journal has room for: these
/// hold up nothing, and a commit of them writes about 400 KiB.
const MOST_PENDING: u32 = 32 * 1024;
/// Free zones that queues leave to the collector: one into which it moves a victim, and
/// one for what losses of power make it move again.
pub(crate) const KEPT_FREE: u32 = 2;
/// Most [generations](FtlSettings::generations).
const MOST_GENERATIONS: u32 = 4;

/// Queues of one thread, as far as they wait for upkeep.
#[derive(Debug)]
pub(crate) struct Port {
    waiting: Mutex<Vec<QueueId>>,
    /// Upkeep has done something that they may wait for.
    is_released: AtomicBool,
    waker: Waker,
}

impl Port {
    /// A queue cannot go on before upkeep has done something.
    pub(crate) fn wait(&self, queue: QueueId) {
        let mut waiting = lock(&self.waiting);
        if !waiting.contains(&queue) {
            waiting.push(queue);
        }
    }

    /// Whether a queue waits.
    pub(crate) fn has_waiting(&self) -> bool {
        !lock(&self.waiting).is_empty()
    }

    /// Whether queues that wait are to look again.
    pub(crate) fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Acquire) && self.has_waiting()
    }

    /// The queues that wait, if there is a reason for them to look again.
    pub(crate) fn take_waiting(&self, ready: &mut Vec<QueueId>) {
        if self.is_released.swap(false, Ordering::AcqRel) {
            ready.append(&mut lock(&self.waiting));
        }
    }
}

/// What queues and upkeep share. Whatever is in here can be used from any thread.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) shape: Shape,
    /// Identifies what was formatted.
    pub(crate) uuid: u128,
    pub(crate) settings: FtlSettings,
    pub(crate) changes: Changes,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) zones: ZoneTable,
    pub(crate) counters: Counters,
    /// Zones that can be active for data.
    active_limit: u32,
    /// The drive has such a limit.
    has_active_limit: bool,
    /// Changes from which on queues write no more until a commit is over.
    most_pending: u32,
    /// Free zones below which the collector works.
    pub(crate) collect_below: u32,
    /// Zones to be closed: written by a queue as far as they will be.
    written: Mutex<Vec<Frontier>>,
    /// Zones that were found partly written.
    partial: Mutex<Vec<Frontier>>,
    /// The zone that queues share, if they do.
    pub(crate) shared: Mutex<Writer>,
    /// Commits that were asked for, and those that are over.
    asked: AtomicU64,
    committed: AtomicU64,
    /// Blocks that queues may write before the collector has got further.
    credit: AtomicI64,
    has_victim: AtomicBool,
    /// There is no room, and nothing under way that makes any.
    is_full: AtomicBool,
    /// The drive has no room for what upkeep has to write.
    is_starved: AtomicBool,
    /// Queues that have a zone each.
    writers: AtomicU32,
    /// Upkeep has something to do.
    attention: AtomicBool,
    /// Upkeep waits for reads to end.
    awaits_reads: AtomicBool,
    /// Wakes the thread of upkeep.
    upkeep: Mutex<Waker>,
    /// Where queues are that may wait for upkeep.
    ports: Mutex<Vec<Arc<Port>>>,
    /// Why nothing is written any more.
    failed: Mutex<Option<FtlError>>,
    has_failed: AtomicBool,
}

impl Core {
    /// # Errors
    /// The drive allows too few zones, or a setting is out of its range.
    pub(crate) fn new(
        shape: &Shape,
        settings: &FtlSettings,
        limit: Option<u32>,
        (uuid, most_pending): (u128, u32),
        map: ForwardMap,
    ) -> Result<Self, FtlError> {
        let generations = settings.generations;
        let most = MOST_GENERATIONS.min((shape.reserved_zones - 1).saturating_sub(KEPT_FREE));
        if !(1..=most).contains(&generations) {
            return Err(FtlError::setting(
                "generations",
                generations,
                format!("1 to {most} with {} reserved zones", shape.reserved_zones),
            ));
        }
        settings.check_active(limit)?;
        let limit = limit.unwrap_or(u32::MAX);
        let most = shape.reserved_zones - 1;
        let collect_below = settings
            .collect_below
            .unwrap_or((shape.reserved_zones / 2).max(KEPT_FREE + 1));
        if !(KEPT_FREE + 1..=most).contains(&collect_below) {
            return Err(FtlError::setting(
                "collect_below",
                collect_below,
                format!(
                    "{} to {most} with {} reserved zones",
                    KEPT_FREE + 1,
                    shape.reserved_zones
                ),
            ));
        }
        Ok(Self {
            shape: shape.clone(),
            uuid,
            settings: settings.clone(),
            changes: Changes::new(map, shape.data_blocks()),
            epochs: Arc::new(Epochs::new()),
            zones: ZoneTable::new(shape.data_zones()),
            counters: Counters::default(),
            active_limit: limit - Durable::ACTIVE_ZONES,
            has_active_limit: limit < u32::MAX,
            // A checkpoint may have to wait for two commits, and what is under way when
            // this is reached comes on top.
            most_pending: (most_pending / 4).clamp(1, MOST_PENDING),
            collect_below,
            written: Mutex::default(),
            partial: Mutex::default(),
            shared: Mutex::default(),
            asked: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            credit: AtomicI64::new(0),
            has_victim: AtomicBool::new(true),
            is_full: AtomicBool::new(false),
            is_starved: AtomicBool::new(false),
            writers: AtomicU32::new(0),
            attention: AtomicBool::new(false),
            awaits_reads: AtomicBool::new(false),
            upkeep: Mutex::new(Waker::noop().clone()),
            ports: Mutex::default(),
            failed: Mutex::default(),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Most queues, if each has a zone of its own: as many as the drive allows, and as
    /// the reserve has room for beside the zone that the collector writes and the free
    /// ones that it needs. (So zones that are written never hold up what the collector needs.)
    pub(crate) fn most_writers(&self) -> u32 {
        match self.settings.placement {
            Placement::SharedAppend => u32::MAX,
            _ => self.active_for_queues().min(self.reserve_for_queues()),
        }
    }

    /// Active zones that queues can have: all but those that the collector writes, and one
    /// of its own whose footer is written.
    const fn active_for_queues(&self) -> u32 {
        self.active_limit - self.settings.generations - 1
    }

    /// Reserved zones that can be partly written by queues.
    pub(crate) const fn reserve_for_queues(&self) -> u32 {
        self.shape.reserved_zones - self.settings.generations - KEPT_FREE
    }

    /// A queue more.
    ///
    /// # Errors
    /// There are as many as can be.
    pub(crate) fn join(&self) -> Result<(), FtlError> {
        let most = self.most_writers();
        let joined = self
            .writers
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |queues| {
                (queues < most).then_some(queues + 1)
            });
        joined.map(drop).map_err(|queues| FtlError::TooManyQueues {
            queues,
            most_active: match self.has_active_limit {
                true => self.active_for_queues().to_string(),
                false => "any number of".to_owned(),
            },
            reserved: self.shape.reserved_zones,
        })
    }

    /// A queue less.
    pub(crate) fn leave(&self) {
        self.writers.fetch_sub(1, Ordering::AcqRel);
    }

    // Zones to write.

    /// A zone for a queue to write; `None`: not now. The queue has to wait then.
    pub(crate) fn zone_for_queue(&self) -> Option<Frontier> {
        if let Some(partial) = lock(&self.partial).pop() {
            return Some(partial);
        }
        let limit = self.active_for_queues();
        let zone = self.zones.take_free(Generation::QUEUES, KEPT_FREE, limit)?;
        if self.is_short() {
            self.call();
        }
        Some(Frontier::new(zone, Generation::QUEUES, &self.shape))
    }

    /// So few zones are free that the collector must not waste any: what it moves has to
    /// be durable before it moves more, so that a loss of power costs little room.
    pub(crate) fn is_critical(&self) -> bool {
        self.zones.free() <= KEPT_FREE
    }

    /// A zone for the collector to write; `None`: not now.
    pub(crate) fn zone_for_collector(&self, generation: Generation) -> Option<Frontier> {
        let limit = self.settings.generations + 1;
        let zone = self.zones.take_free(generation, 0, limit)?;
        Some(Frontier::new(zone, generation, &self.shape))
    }

    /// A queue is closed before its zone is full.
    pub(crate) fn give_back(&self, frontier: Frontier) {
        lock(&self.partial).push(frontier);
    }

    /// A zone was found partly written.
    pub(crate) fn add_partial(&self, frontier: Frontier) {
        self.zones.note_open(frontier.zone, frontier.generation);
        lock(&self.partial).push(frontier);
    }

    /// Partly written zones beyond `most`, to be closed.
    pub(crate) fn partial_beyond(&self, most: usize) -> Vec<Frontier> {
        let mut partial = lock(&self.partial);
        let keep = partial.len().min(most);
        partial.split_off(keep)
    }

    /// Fewer zones are free than should be: the collector works, and queues may write
    /// what it gains.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.zones.free() < self.collect_below
    }

    /// How many of `blocks` a queue may write now: all, unless zones are short and the
    /// collector has gained less.
    #[inline]
    pub(crate) fn allowance(&self, blocks: u32) -> u32 {
        if !self.is_short() || !self.has_victim.load(Ordering::Acquire) {
            return blocks;
        }
        let credit = self.credit.load(Ordering::Acquire).max(0);
        blocks.min(u32::try_from(credit).unwrap_or(u32::MAX))
    }

    /// Whether there is anything for the collector to gain. If not, all garbage is in
    /// zones that are being written, and writing them to their ends helps.
    pub(crate) fn set_has_victim(&self, has: bool) {
        if self.has_victim.swap(has, Ordering::AcqRel) != has {
            self.release();
        }
    }

    /// There is no room, and nothing under way that makes any; or there is again. (So
    /// many zones have been lost that what is left cannot hold what programs see.)
    pub(crate) fn set_full(&self, is_full: bool) {
        if self.is_full.swap(is_full, Ordering::AcqRel) != is_full {
            self.release();
        }
    }

    /// Whether writes fail for want of room.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// Whether the drive has room for what upkeep has to write. As long as it has not,
    /// writes and flushes fail.
    pub(crate) fn set_starved(&self, is_starved: bool) {
        if self.is_starved.swap(is_starved, Ordering::AcqRel) != is_starved {
            self.release();
        }
    }

    /// Whether writes and flushes fail since upkeep cannot write.
    pub(crate) fn is_starved(&self) -> bool {
        self.is_starved.load(Ordering::Acquire)
    }

    /// A queue writes blocks.
    #[inline]
    pub(crate) fn spend(&self, blocks: u32) {
        if self.is_short() {
            self.credit.fetch_sub(i64::from(blocks), Ordering::AcqRel);
        }
    }

    /// The collector has gained blocks: space that nothing valid is in.
    pub(crate) fn earn(&self, blocks: u32) {
        self.credit.fetch_add(i64::from(blocks), Ordering::AcqRel);
        self.release();
    }

    /// The collector begins to work after a pause: queues may go on while it empties its
    /// first victim.
    pub(crate) fn start_credit(&self) {
        let blocks = i64::from(self.shape.data_blocks());
        self.credit.store(blocks, Ordering::Release);
        self.release();
    }

    // Zones that were written.

    /// A queue has written a zone as far as it will be.
    pub(crate) fn hand_in(&self, frontier: Frontier) {
        lock(&self.written).push(frontier);
        self.call();
    }

    /// Zones that queues handed in.
    pub(crate) fn take_written(&self) -> Vec<Frontier> {
        std::mem::take(&mut *lock(&self.written))
    }

    // Changes of the map.

    /// Changes the map, and counts the blocks that zones gain and lose.
    #[inline]
    pub(crate) fn put(&self, lane: &Lane, change: MapChange) {
        if let Some(to) = change.to {
            let (zone, _) = self.shape.place_of(to);
            self.zones.add_valid(zone, change.count);
        }
        self.changes.put(lane, change, |left| {
            let (zone, _) = self.shape.place_of(left);
            self.lose_valid(zone);
        });
    }

    #[inline]
    pub(crate) fn lose_valid(&self, zone: DataZone) {
        let is_empty = self.zones.lose_valid(zone);
        if (is_empty || self.is_full()) && self.is_short() {
            self.call();
        }
    }

    // Commits.

    /// Whether a commit is due although nobody has asked for one.
    #[inline]
    pub(crate) fn should_commit(&self) -> bool {
        self.changes.pending() >= self.most_pending / 2
    }

    /// Whether a commit is needed before anything more is written.
    #[inline]
    pub(crate) fn must_commit(&self) -> bool {
        self.changes.pending() >= self.most_pending
    }

    /// Asks for a commit of all changes that were made; returns the ticket to wait with.
    pub(crate) fn ask_commit(&self) -> u64 {
        let ticket = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        self.call();
        ticket
    }

    /// Whether a commit was asked for that is not over.
    #[inline]
    pub(crate) fn has_asked(&self) -> bool {
        self.asked() != self.committed()
    }

    /// The commits that were asked for.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// Whether the commit of a ticket is over.
    #[inline]
    pub(crate) fn is_committed(&self, ticket: u64) -> bool {
        self.committed() >= ticket
    }

    /// The commits that are over.
    pub(crate) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// All commits up to this ticket are over.
    pub(crate) fn set_committed(&self, ticket: u64) {
        self.committed.store(ticket, Ordering::Release);
        self.release();
    }

    // Waiting for each other.

    /// Upkeep has something to do.
    pub(crate) fn call(&self) {
        if !self.attention.swap(true, Ordering::AcqRel) {
            lock(&self.upkeep).wake_by_ref();
        }
    }

    /// What wakes the thread of upkeep.
    pub(crate) fn set_waker(&self, waker: Waker) {
        *lock(&self.upkeep) = waker;
    }

    /// Whether upkeep has something to do.
    #[inline]
    pub(crate) fn wants_attention(&self) -> bool {
        self.attention.load(Ordering::Acquire)
    }

    /// Upkeep looks at everything now.
    pub(crate) fn answer_call(&self) {
        self.attention.store(false, Ordering::Release);
    }

    /// Upkeep waits for reads to end, or does no longer.
    pub(crate) fn set_awaits_reads(&self, awaits: bool) {
        self.awaits_reads.store(awaits, Ordering::SeqCst);
    }

    /// The oldest reads of a queue have ended.
    #[inline]
    pub(crate) fn note_reads_ended(&self) {
        if self.awaits_reads.load(Ordering::SeqCst) {
            self.call();
        }
    }

    /// A place where queues are, with what wakes its thread.
    pub(crate) fn open_port(&self, waker: Waker) -> Arc<Port> {
        let port = Arc::new(Port {
            waiting: Mutex::default(),
            is_released: AtomicBool::new(false),
            waker,
        });
        lock(&self.ports).push(Arc::clone(&port));
        port
    }

    /// A place is given up.
    pub(crate) fn close_port(&self, port: &Arc<Port>) {
        lock(&self.ports).retain(|other| !Arc::ptr_eq(other, port));
    }

    /// Something has changed that queues may wait for: room, a commit, a failure.
    pub(crate) fn release(&self) {
        for port in &*lock(&self.ports) {
            if !port.is_released.swap(true, Ordering::AcqRel) {
                port.waker.wake_by_ref();
            }
        }
    }

    /// Segments of the map can be held again that could not be.
    pub(crate) fn wake_holders(&self) {
        self.release();
        self.call();
    }

    // Failure.

    /// Nothing is written any more.
    pub(crate) fn fail(&self, error: FtlError) {
        lock(&self.failed).get_or_insert(error);
        self.has_failed.store(true, Ordering::Release);
        self.release();
    }

    /// Whether nothing is written any more.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Why nothing is written any more.
    pub(crate) fn failure(&self) -> Option<FtlError> {
        lock(&self.failed).clone()
    }
}
