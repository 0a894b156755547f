//! Conventional namespaces: blocks that can be written in any order, any number
//! of times (NVM command set).
//!
//! Such a namespace is a log over zones of its own, which no host sees. A write
//! goes to the end of the log, a flat table says where each block is, and
//! garbage collection moves what is left of a zone, which `collection` selects,
//! to another zone and resets it. The zones are those of the drive in every
//! respect: they stripe over its dies, go through its write buffer, and are
//! erased as its design says; so a conventional namespace shares with zoned
//! ones what they share with each other.
//!
//! `spare_zones` of the zones are over-provisioning: what a host can address
//! is that much less.
//!
//! The table has four bytes for each mapping unit, and four for each unit of the
//! log. A write of a part of a unit reads the unit and writes it whole (`write`). Programs of the
//! collection are in [`crate::account::Totals::collect_program_bytes`], and busy
//! time of what it reads, writes and erases has causes of its own.
//!
//! A zone whose flash fails is emptied and serves no more, until the spare ones are used up
//! (`failures`).
//!
//! Which zone is collected next is a policy (`log/victims`).
//!
//! With *flexible data placement* the host chooses with each write which of several
//! zones it goes to, by a reclaim unit handle: `streams` and `placement`.
//!
//! A loss of power takes what is neither on the flash nor in a protected buffer: those
//! blocks are where they were before (`replaced`), and what they were before is kept for
//! them until it cannot come back. Copy is not modelled.

mod collect;
mod drive;
mod failures;
mod log;
mod placement;
mod replaced;
mod streams;
mod view;
mod write;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use zonelab_device::{NamespaceId, Op, ZoneId};

pub(crate) use collect::Collection;
pub use failures::LogHealth;
pub(crate) use log::{Ages, Log};
pub(crate) use placement::{Handles, PlacementLog, SavedPlacement};
pub use placement::{
    PLACEMENT_EVENT_TYPES, PLACEMENT_EVENTS, PlacementEvent, PlacementEventKind, PlacementHandle,
    PlacementStatistics,
};
pub(crate) use streams::Streams;
pub use view::PlacementView;

use crate::account::Cause;
use crate::config::{DriveConfig, NamespaceKind};
use crate::zones::Zones;

/// Whose work a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A command on a zoned namespace.
    Zoned,
    /// A command on a conventional namespace, by position in the list of those.
    Conventional(u8),
    /// A part of a write to a conventional namespace: this request.
    Part(u32),
    /// Collection of a conventional namespace.
    Collection(u8),
}

impl Role {
    /// It is the drive's own, and no host waits for its completion.
    #[inline]
    pub(crate) const fn is_internal(self) -> bool {
        matches!(self, Self::Part(_) | Self::Collection(_))
    }

    /// What reads of a command of it are booked as.
    #[inline]
    pub(crate) const fn read_cause(self, op: &Op) -> Cause {
        match (self, op) {
            (Self::Collection(_), _) => Cause::CollectRead,
            (Self::Conventional(_), Op::Write { .. } | Op::WriteZeroes { .. }) => Cause::ModifyRead,
            _ => Cause::HostRead,
        }
    }

    /// What its programs are booked as.
    #[inline]
    pub(crate) const fn write_cause(self) -> Cause {
        match self {
            Self::Collection(_) => Cause::CollectWrite,
            _ => Cause::HostWrite,
        }
    }

    /// What erasures are booked as that its resets ask for.
    pub(crate) const fn erase_cause(self) -> Cause {
        match self {
            Self::Collection(_) => Cause::CollectErase,
            _ => Cause::ResetErase,
        }
    }
}

/// A conventional namespace.
#[derive(Clone, Debug)]
pub(crate) struct Conventional {
    pub(crate) nsid: NamespaceId,
    /// Its position among the conventional namespaces.
    which: u8,
    /// First block, counted over the drive.
    first_lba: u64,
    pub(crate) log: Log,
    /// Writes that wait for room, in order.
    waiting: VecDeque<u32>,
    /// Parts of writes that are under way.
    parts: u32,
    collection: Collection,
    /// Scratch: data of a block.
    bytes: Vec<u8>,
    /// Reclaim unit handles.
    handles: Handles,
}

/// What a snapshot keeps of a conventional namespace.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedLog {
    places: Vec<u32>,
    open: [u32; 2],
    free: Vec<u32>,
}

impl Conventional {
    /// The conventional namespaces of a fresh drive.
    pub(crate) fn all(config: &DriveConfig, zones: &Zones) -> Vec<Self> {
        let mut all = Vec::new();
        for (nsid, of) in (1..).map(NamespaceId).zip(config.namespaces()) {
            let NamespaceKind::Conventional(log) = of.kind else {
                continue;
            };
            let handles = log.handles;
            let (Some(namespace), Some(range)) = (zones.namespace(nsid), config.zones_of(nsid))
            else {
                continue;
            };
            // Fit: checked.
            let capacity = config.zones.capacity_lbas as u32;
            let blocks = of.size_lbas(&config.zones) as u32;
            let streams = Streams::new(handles, config.has_handles());
            let first = all.last().map_or(0, |of: &Self| of.handles.end());
            let buffer = config.write_buffer.as_ref();
            let can_lose = buffer.is_none_or(|buffer| !buffer.power_loss_protection);
            all.push(Self {
                nsid,
                // Fits: a drive has few.
                which: all.len() as u8,
                first_lba: namespace.first_lba().0,
                log: Log::new(range, (capacity, blocks), (&log, streams), can_lose),
                waiting: VecDeque::new(),
                parts: 0,
                collection: Collection::default(),
                bytes: Vec::new(),
                handles: Handles::new(first, streams.handles(), handles.is_some()),
            });
        }
        all
    }

    /// Power is lost, and what is left is in the zones: nothing waits, and nothing is being
    /// collected.
    pub(crate) fn power_cut(&mut self, zones: &Zones) {
        self.waiting.clear();
        self.parts = 0;
        self.collection = Collection::default();
        self.log.moves_failed(false);
        self.log.power_cut(|zone| zones.host_lbas(zone));
    }

    /// Nothing is being collected.
    pub(crate) fn is_idle(&self) -> bool {
        self.collection.is_idle()
    }

    /// The same from what each place of its zones holds, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about it.
    pub(crate) fn recover(&mut self, blocks: &[Option<u32>], zones: &Zones) -> Result<(), String> {
        self.find_failed(zones);
        self.log.recover(blocks, |zone| zones.host_lbas(zone))?;
        self.find_stuck();
        Ok(())
    }

    pub(crate) fn save(&self) -> SavedLog {
        let (places, open, free) = self.log.save();
        SavedLog { places, open, free }
    }

    /// # Errors
    /// What is impossible about what was saved.
    pub(crate) fn restore(&mut self, saved: SavedLog, zones: &Zones) -> Result<(), String> {
        let SavedLog { places, open, free } = saved;
        self.find_failed(zones);
        self.log
            .restore((places, open, free), |zone| zones.host_lbas(zone))?;
        self.find_stuck();
        Ok(())
    }
}

/// The conventional namespace that a zone of the drive belongs to, if one does.
pub(crate) fn log_with(logs: &[Conventional], zone: ZoneId) -> Option<&Conventional> {
    logs.iter().find(|of| of.log.zones().contains(&zone.0))
}
