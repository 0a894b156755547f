//! Metadata that survive a loss of power at any moment: anchors, the journal of
//! changes of the map, and images of the map.
//!
//! What is on the media, and the rules by which a mount reads it, are in
//! `docs/ftl-format.md`. In short: each [`Durable::append`] writes blocks with
//! consecutive numbers to a ring of zones; each [`Durable::checkpoint`] writes the
//! map to the image slot that does not count, and then an anchor that says that it
//! counts now, with the number of the journal block from which on changes have to be
//! repeated. Each mount begins an *epoch*, which its anchor makes durable before
//! anything else is written. A write that failed begins one too, so that what it may
//! have left is never taken for part of the journal.

mod anchors;
mod chain;
mod image;
mod journal;
pub mod look;
mod mount;
mod places;
pub(crate) mod reads;
pub mod repair;
mod replay;
mod ring;
mod survey;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use zonelab_device::NamespaceId;
use zonelab_host::tasks::Io;

use crate::blocks::MapChange;
use crate::census::Census;
use crate::error::FtlError;
use crate::format::anchor::{DEAD_ZONES, Position};
use crate::map::ForwardMap;
use crate::media::{Media, Zone};
use crate::settings::{FormatSettings, FtlSettings};
use crate::shape::{ImageSlot, Shape};
use crate::turns::Turns;
use zonelab_host::notify::Notify;

pub use look::Look;
pub use reads::BlocksRead;

use anchors::AnchorEnd;
pub(crate) use image::{block_of, read_words};
use ring::Ring;

/// What the next anchor says, as far as it is not about zones.
#[derive(Clone, Copy, Debug)]
struct Now {
    epoch: u32,
    epoch_start: u64,
    epoch_at: Position,
    /// The number of the next journal block: those below are durable.
    next: u64,
    /// Where the journal goes on behind those.
    next_at: Position,
    start: u64,
    start_at: Position,
    slot: ImageSlot,
    checkpoint: u64,
    /// Blocks of the image; 0: there is none, and nothing was anywhere.
    image_blocks: u32,
}

/// Counts, for [`Facts`].
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    anchors: u64,
    journal_blocks: u64,
    image_blocks: u64,
    takeovers: u64,
}

struct Inner {
    media: Media,
    uuid: u128,
    now: Cell<Now>,
    ring: RefCell<Ring>,
    anchors: RefCell<AnchorEnd>,
    appends: Turns,
    anchoring: Turns,
    checkpoints: Turns,
    /// There may be more room in the journal, or more of it may be used.
    room: Notify,
    /// Changes of the last block of the journal that is durable, which the next one
    /// repeats; empty if there is nothing to repeat.
    last: RefCell<Vec<MapChange>>,
    /// Nobody knows what became of a write to the journal.
    is_torn: Cell<bool>,
    /// The zone that the journal goes on in was chosen after a failure, and nothing was
    /// written to it yet that may have left something.
    is_untried: Cell<bool>,
    /// Nobody knows what became of an anchor, and so which image counts.
    is_unsure: Cell<bool>,
    /// A checkpoint is under way.
    is_running: Cell<bool>,
    /// It waits for what is pending, which may use the reserve.
    is_committing: Cell<bool>,
    /// Why the last checkpoint failed.
    failed: RefCell<Option<FtlError>>,
    counts: Cell<Counts>,
    read: BlocksRead,
}

/// Metadata of a namespace: everything that has to be found after a loss of power.
/// Clones are the same; it lives in one program of tasks.
#[derive(Clone)]
pub struct Durable {
    inner: Rc<Inner>,
}

/// What there is to tell about the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Identifies what was formatted.
    pub uuid: u128,
    /// The present epoch: mounts, and failed writes of the journal that were
    /// recovered from, since the format.
    pub epoch: u32,
    /// The number of the newest anchor.
    pub anchor_sequence: u64,
    /// The number of the newest checkpoint.
    pub checkpoint: u64,
    /// Where its image is.
    pub image_slot: ImageSlot,
    /// Blocks of that image; 0 since a format until the first checkpoint.
    pub image_blocks: u32,
    /// The journal block from which on a mount repeats changes.
    pub journal_start: u64,
    /// The number of the next journal block.
    pub journal_next: u64,
    /// Blocks that can be written to the journal until it is full.
    pub journal_room_blocks: u64,
    /// Blocks of all journal zones that can be written.
    pub journal_total_blocks: u64,
    /// Journal zones that can never be written again.
    pub dead_journal_zones: Vec<u32>,
    /// What the mount has read.
    pub read: BlocksRead,
    /// Anchors written since the mount.
    pub anchors_written: u64,
    /// Journal blocks written since the mount.
    pub journal_blocks_written: u64,
    /// Image blocks written since the mount.
    pub image_blocks_written: u64,
    /// Failed writes of the journal since the mount that were recovered from.
    pub takeovers: u64,
}

impl Durable {
    /// Zones that metadata keep active at most: one of anchors, one of the journal,
    /// and one of an image.
    pub const ACTIVE_ZONES: u32 = 3;

    /// Empties all zones of the namespace and writes the first, empty image and an
    /// anchor. Nothing that was there before can be read again.
    ///
    /// # Errors
    /// [`Shape::new`] says no, zones that metadata need are dead or too small, the
    /// drive allows too few active zones, or a command failed.
    pub async fn format(
        io: &Io,
        settings: &FormatSettings,
        keeps_data: bool,
    ) -> Result<Shape, FtlError> {
        let shape = Shape::new(io.info(), settings)?;
        let media = Media::new(io, Rc::new(shape.clone()), keeps_data);
        check_active(io, settings.nsid)?;
        let reported = media.report().await?;
        if let Some(zone) = shape
            .anchor()
            .find(|zone| reported[*zone as usize].is_dead())
        {
            let what = "it is for anchors";
            return Err(FtlError::DeadZone { zone, what });
        }
        // Anchors first: a format that is cut leaves none that points to nothing.
        for zone in shape.anchor() {
            media.reset(zone).await?;
        }
        media.flush().await?;
        media.reset_all().await?;
        let reported = media.report().await?;
        let durable = Self::fresh(media, settings.uuid, &reported)?;
        let nothing = ForwardMap::empty(0);
        durable.checkpoint(&nothing, async || Ok(())).await?;
        // Twice: one that is damaged leaves the other.
        durable.inner.write_anchor(|_| ()).await?;
        Ok(shape)
    }

    /// Finds what was durable when the namespace was used last, and the map as it was
    /// then.
    ///
    /// # Errors
    /// The namespace was not formatted, not by this version, or differs from what was
    /// formatted; metadata are damaged; the drive allows too few active zones; or a
    /// command failed.
    pub async fn open(io: &Io, nsid: NamespaceId) -> Result<(Self, ForwardMap), FtlError> {
        check_active(io, nsid)?;
        mount::open(io, nsid, |_| Ok(())).await
    }

    /// The same, if the map may take the memory that it needs.
    ///
    /// # Errors
    /// As [`Self::open`], and [`FtlError::MapMemory`].
    pub(crate) async fn open_with(
        io: &Io,
        settings: &FtlSettings,
    ) -> Result<(Self, ForwardMap), FtlError> {
        check_active(io, settings.nsid)?;
        let fits = |blocks| settings.check_map_memory(blocks);
        mount::open(io, settings.nsid, fits).await
    }

    /// The same with a map of which a share is in memory, and what it says of the data
    /// zones.
    ///
    /// # Errors
    /// As [`Self::open_with`].
    pub(crate) async fn open_in_segments(
        io: &Io,
        settings: &FtlSettings,
        share: f64,
    ) -> Result<(Self, ForwardMap, Census), FtlError> {
        check_active(io, settings.nsid)?;
        mount::open_in_segments(io, settings, share).await
    }

    /// As if just formatted, on a device that keeps no data: empties the zones of
    /// metadata. Data zones are left as they are.
    ///
    /// # Errors
    /// As [`Self::format`].
    pub async fn open_blank(io: &Io, shape: Shape) -> Result<Self, FtlError> {
        check_active(io, shape.nsid)?;
        let media = Media::new(io, Rc::new(shape), false);
        let metadata = 0..media.shape().first_data_zone();
        let reported = media.report().await?;
        for zone in metadata {
            let of = &reported[zone as usize];
            if of.written > 0 && !of.is_dead() {
                media.reset(zone).await?;
            }
        }
        let reported = media.report().await?;
        Self::fresh(media, 0, &reported)
    }

    /// With all zones of metadata empty.
    fn fresh(media: Media, uuid: u128, reported: &[Zone]) -> Result<Self, FtlError> {
        let ring = Ring::new(media.shape(), reported, &[], 0)?;
        let at = ring.position();
        let now = Now {
            epoch: 1,
            epoch_start: 0,
            epoch_at: at,
            next: 0,
            next_at: at,
            start: 0,
            start_at: at,
            // The first checkpoint goes to the other one.
            slot: ImageSlot::B,
            checkpoint: 0,
            image_blocks: 0,
        };
        let anchors = AnchorEnd::new(media.shape().anchor().start, reported);
        let read = BlocksRead::default();
        Ok(Self::with(media, uuid, now, ring, anchors, read))
    }

    fn with(
        media: Media,
        uuid: u128,
        now: Now,
        ring: Ring,
        anchors: AnchorEnd,
        read: BlocksRead,
    ) -> Self {
        let inner = Inner {
            media,
            uuid,
            now: Cell::new(now),
            ring: RefCell::new(ring),
            anchors: RefCell::new(anchors),
            appends: Turns::default(),
            anchoring: Turns::default(),
            checkpoints: Turns::default(),
            room: Notify::default(),
            last: RefCell::default(),
            is_torn: Cell::new(false),
            is_untried: Cell::new(false),
            is_unsure: Cell::new(false),
            is_running: Cell::new(false),
            is_committing: Cell::new(false),
            failed: RefCell::new(None),
            counts: Cell::default(),
            read,
        };
        Self {
            inner: Rc::new(inner),
        }
    }

    /// Which zones are for what.
    #[must_use]
    pub fn shape(&self) -> &Rc<Shape> {
        self.inner.media.shape()
    }

    /// Commands on the zones.
    #[must_use]
    pub fn media(&self) -> &Media {
        &self.inner.media
    }

    /// Identifies what was formatted.
    #[must_use]
    pub fn uuid(&self) -> u128 {
        self.inner.uuid
    }

    /// Makes durable what was written to the device before, and then these changes,
    /// behind those of earlier calls. When it returns they are durable. Calls take
    /// turns in the order in which they are first polled.
    ///
    /// It waits while the journal is full, for a [checkpoint](Self::checkpoint) that
    /// somebody else has to run. Without changes it waits for earlier calls and no
    /// more. Of a call that did not return, or failed, a mount
    /// may find some changes from its start: whole blocks of
    /// [`Self::changes_per_block`].
    ///
    /// # Errors
    /// A command failed and there was no other zone to go on in; the last checkpoint
    /// failed and the journal is full; the device is gone. A later call goes on where
    /// the last one that succeeded ended.
    ///
    /// # Panics
    /// If a change is none of the blocks that there are.
    pub async fn append(&self, changes: &[MapChange]) -> Result<(), FtlError> {
        self.inner.append(changes).await
    }

    /// More than half of what the journal can take is used since the start of the
    /// last checkpoint, or appends wait.
    #[must_use]
    pub fn wants_checkpoint(&self) -> bool {
        let ring = self.inner.ring.borrow();
        let now = self.inner.now.get();
        let usable = ring.total().saturating_sub(ring.reserve());
        let piece = u64::from(ring.piece_blocks);
        2 * (now.next - now.start) > usable || ring.room() < ring.reserve() + piece
    }

    /// Blocks that can be appended before calls wait.
    #[must_use]
    pub fn room_blocks(&self) -> u64 {
        let ring = self.inner.ring.borrow();
        ring.room().saturating_sub(ring.reserve())
    }

    /// Waits until the journal has changed: blocks were appended, or room was made.
    pub async fn changed(&self) {
        self.inner.room.next().await;
    }

    /// Most changes that may be in the map, but in no append that has returned, while
    /// a checkpoint waits for what is pending: the journal keeps room for so many.
    #[must_use]
    pub fn most_pending(&self) -> u32 {
        let piece = self.inner.ring.borrow().piece_blocks;
        2 * piece * self.inner.changes_each()
    }

    /// Most changes that a block of the journal makes.
    #[must_use]
    pub fn changes_per_block(&self) -> u32 {
        self.inner.changes_each()
    }

    /// Sees to it that every change that an append has made durable is in two blocks of
    /// the journal. To be called before anything is destroyed that the map does not need
    /// any more: a damaged block of the journal then never takes back what that relies on.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub async fn secure(&self) -> Result<(), FtlError> {
        self.inner.secure().await
    }

    /// Writes an image of the map, so that a mount need not repeat what was appended
    /// before, and frees that part of the journal. Appends go on meanwhile.
    ///
    /// Whoever changes the map changes it before the change is appended.
    /// `commit_pending` is called when the image is written: it returns when all
    /// changes that were in the map when it was called are appended. From its call until
    /// it returns, at most [`Self::most_pending`] changes may be appended: so whoever
    /// appends meanwhile must not get in before it again and again. It must fail if an
    /// append of such a change did.
    ///
    /// # Errors
    /// A command failed, `commit_pending` did, or the device is gone: what was
    /// durable still is, and the checkpoint can be tried again.
    pub async fn checkpoint(
        &self,
        map: &ForwardMap,
        commit_pending: impl AsyncFn() -> Result<(), FtlError>,
    ) -> Result<(), FtlError> {
        self.inner.checkpoint(map, commit_pending).await
    }

    /// What there is to tell.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let inner = &self.inner;
        let (now, ring, counts) = (inner.now.get(), inner.ring.borrow(), inner.counts.get());
        Facts {
            uuid: inner.uuid,
            epoch: now.epoch,
            anchor_sequence: inner.anchors.borrow().sequence(),
            checkpoint: now.checkpoint,
            image_slot: now.slot,
            image_blocks: now.image_blocks,
            journal_start: now.start,
            journal_next: now.next,
            journal_room_blocks: ring.room(),
            journal_total_blocks: ring.total(),
            dead_journal_zones: ring.dead(),
            read: inner.read,
            anchors_written: counts.anchors,
            journal_blocks_written: counts.journal_blocks,
            image_blocks_written: counts.image_blocks,
            takeovers: counts.takeovers,
        }
    }
}

impl Inner {
    fn shape(&self) -> &Shape {
        self.media.shape()
    }

    fn update(&self, f: impl FnOnce(&mut Now)) {
        let mut now = self.now.get();
        f(&mut now);
        self.now.set(now);
    }

    fn count(&self, f: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        f(&mut counts);
        self.counts.set(counts);
    }

    /// A journal zone can never be written again.
    fn bury(&self, zone: u32) -> Result<(), FtlError> {
        let mut ring = self.ring.borrow_mut();
        ring.bury(zone);
        if ring.dead().len() > DEAD_ZONES {
            let what = "too many zones of the journal are dead";
            return Err(FtlError::DeadZone { zone, what });
        }
        ring.check()
    }
}

/// Whether the drive lets metadata have their zones active.
fn check_active(io: &Io, nsid: NamespaceId) -> Result<(), FtlError> {
    let namespace = io.info().namespace(nsid);
    let zoned = namespace.and_then(|namespace| namespace.zoned.as_ref());
    let Some(limit) = zoned.and_then(|zoned| zoned.max_active) else {
        return Ok(());
    };
    if limit < Durable::ACTIVE_ZONES {
        return Err(FtlError::TooFewActive {
            limit,
            needed: Durable::ACTIVE_ZONES,
            what: "metadata",
        });
    }
    Ok(())
}
