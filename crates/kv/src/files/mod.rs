//! Files in zones, placed by how long they will live.
//!
//! As in `ZenFS` (Bjørling et al., ATC '21), a file is a list of extents in
//! zones; it has one writer, grows at its end only, and comes with a hint how
//! long it will live. A zone is reset when nothing in it is valid any more;
//! nothing is ever moved.
//!
//! *Where a file goes.* A file gets a zone when it is first written, and another
//! when that is full. In this order:
//! 1. a partly written zone that nobody writes, whose lifetime (that of its
//!    first file) is longer than the file's; of several the one that is least so.
//!    Files without lifetime go with their like;
//! 2. a new zone, if one more may be active;
//! 3. if not: the zone with least room left is finished, if that is no more than
//!    [`FilesConfig::finish_threshold_percent`], and the file gets a new one;
//! 4. otherwise any partly written zone: first those of the same lifetime;
//! 5. the zone of a writer that has nothing on its way; or the file waits
//!    until somebody gives up a zone;
//! 6. nobody will: [`FilesError::OutOf`] names what is used up.
//!
//! Zones that a writer gave up are closed; the limits of active and open zones
//! are the device's, less one for metadata, and one open zone is kept for
//! write-ahead logs ([`Lifetime::Short`]).
//!
//! *What is durable.* What was written before [`Writer::sync`] returned, names
//! and lengths included; [`Files::delete`] and [`Files::rename`] when they
//! return. After a crash ([`Files::mount`]) files end where they were last
//! synced, and a file that never was is gone. The metadata log is in zones of
//! its own, with checksums.
//!
//! *Faults.* A write that fails is done again, in another zone if need be, as
//! long as the device takes any. Files in a zone that went offline stay listed,
//! and reads of them fail. On a full device, files can still be deleted and read.
//! If the device loses power and the host does not, what was not flushed may be
//! gone: a sync fails if commands were aborted meanwhile and its blocks are not
//! there. A loss with no command on its way goes unnoticed; and a full zone that
//! lost its end is active again, which is not accounted for before a mount.
//!
//! Calls are to be waited for: one that is dropped in the middle may have lost
//! what was appended, as if the [`Writer`] had been dropped.

mod config;
mod device;
mod error;
mod log;
mod mount;
mod reader;
mod records;
mod table;
mod usage;
mod waiting;
mod writer;
mod zones;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_util::future::join_all;
use zonelab_host::tasks::Io;
use zonelab_nvme::zns::ZoneSendAction;

pub use config::{FilesConfig, FinishWhen, Lifetime};
pub use error::{FilesError, Scarce, Shortage};
pub use reader::Reader;
pub use usage::{Placements, SpaceOverTime, Usage, ZoneCounts, ZoneUse, ZoneUseState};
pub use writer::Writer;

use device::{Device, Reported};
use log::{Log, MetaZone};
use table::{File, MAX_NAME_BYTES, Record, Table};
use zonelab_host::notify::Notify;
use zones::{Choice, Manage, WriterId, Zones};

/// A file, whatever its name. Numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

struct Inner {
    config: FilesConfig,
    device: Device,
    zones: RefCell<Zones>,
    table: RefCell<Table>,
    log: Log,
    /// Rings when a zone was given up, or its state has changed.
    changed: Notify,
    next_writer: Cell<u64>,
    finishes: Cell<u64>,
    resets: Cell<u64>,
}

/// Files on a zoned namespace. Clones are the same.
#[derive(Clone)]
pub struct Files {
    inner: Rc<Inner>,
}

impl Files {
    fn new(device: Device, config: FilesConfig, zones: Zones, table: Table, log: Log) -> Self {
        Self {
            inner: Rc::new(Inner {
                config,
                device,
                zones: RefCell::new(zones),
                table: RefCell::new(table),
                log,
                changed: Notify::default(),
                next_writer: Cell::new(0),
                finishes: Cell::new(0),
                resets: Cell::new(0),
            }),
        }
    }

    /// Makes an empty file system: resets the zones that are not empty, and
    /// begins a metadata log. Whatever they held is gone.
    ///
    /// # Errors
    /// The configuration does not fit the device, or a command failed.
    pub async fn format(io: &Io, config: FilesConfig) -> Result<Self, FilesError> {
        let device = Device::new(io, &config)?;
        let reported = device.report().await?;
        let is_used = |of: &Reported| !of.is_dead() && of.state != ZoneUseState::Empty;
        let used = |range: core::ops::Range<u32>| -> Vec<u32> {
            (device.shape.zones.clone())
                .zip(&reported)
                .filter(|(zone, of)| range.contains(zone) && is_used(of))
                .map(|(zone, _)| zone)
                .collect()
        };
        // First the metadata, so that a crash leaves nothing that looks whole.
        let meta = device.shape.meta_zones.clone();
        device.reset_all(&used(meta.clone())).await?;
        device
            .reset_all(&used(device.shape.data_zones.clone()))
            .await?;
        let now = io.now();
        let mut zones = Zones::new(&device.shape, &config, now);
        for (zone, of) in device.shape.zones.clone().zip(&reported) {
            if !meta.contains(&zone) && of.is_dead() {
                zones.settle(zone, of.state, 0, now);
            }
        }
        let meta_zones = reported[..meta.len()].iter().map(|of| match of.is_dead() {
            true => MetaZone::Dead,
            false => MetaZone::Empty,
        });
        let log = Log::new(device.clone(), meta_zones.collect(), None, 0);
        let files = Self::new(device, config, zones, Table::default(), log);
        files.inner.log.begin(&files.inner.table).await?;
        Ok(files)
    }

    /// Makes a file, and the handle that writes it. After a crash it is there
    /// if it was synced.
    ///
    /// # Errors
    /// There is one of that name, or the name is no name.
    pub async fn create(&self, name: &str, lifetime: Lifetime) -> Result<Writer, FilesError> {
        check_name(name)?;
        let mut table = self.inner.table.borrow_mut();
        if table.by_name.contains_key(name) {
            let name = name.to_owned();
            return Err(FilesError::Exists { name });
        }
        let id = FileId(table.next_id);
        let file = table.insert(id, name, lifetime);
        file.state.borrow_mut().has_writer = true;
        Ok(Writer::new(self.clone(), file))
    }

    /// A file to be read.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn open(&self, name: &str) -> Result<Reader, FilesError> {
        let file = Rc::clone(self.inner.table.borrow().get(name)?);
        Ok(Reader::new(self.clone(), file))
    }

    /// Deletes a file for good, and resets the zones in which nothing is valid
    /// any more. Reads of it fail from now on.
    ///
    /// # Errors
    /// There is none of that name, it is being written, or the metadata log
    /// cannot be written.
    pub async fn delete(&self, name: &str) -> Result<(), FilesError> {
        let (file, ticket) = {
            let mut table = self.inner.table.borrow_mut();
            let file = Rc::clone(table.get(name)?);
            refuse_if_written(&file)?;
            table.remove(&file);
            (Rc::clone(&file), self.log_deletion(&file))
        };
        self.inner.log.commit(ticket, &self.inner.table).await?;
        self.free(&file).await
    }

    /// Gives a file another name, at once for good. If another file had that, it
    /// is deleted.
    ///
    /// # Errors
    /// There is none of that name, one of the two is being written, the new name
    /// is no name, or the metadata log cannot be written.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), FilesError> {
        check_name(to)?;
        let (replaced, ticket) = {
            let mut table = self.inner.table.borrow_mut();
            let file = Rc::clone(table.get(from)?);
            refuse_if_written(&file)?;
            if from == to {
                return Ok(());
            }
            if let Ok(replaced) = table.get(to) {
                refuse_if_written(replaced)?;
            }
            let replaced = table.rename(&file, to);
            let record = Record::Rename {
                id: file.id,
                name: to.to_owned(),
            };
            let ticket = self.inner.log.add(&record);
            file.state.borrow_mut().ticket = ticket;
            (replaced, ticket)
        };
        self.inner.log.commit(ticket, &self.inner.table).await?;
        match replaced {
            Some(replaced) => self.free(&replaced).await,
            None => Ok(()),
        }
    }

    /// Names and lengths in bytes, by name. Of files being written, what is on
    /// the device.
    #[must_use]
    pub fn list(&self) -> Vec<(String, u64)> {
        let table = self.inner.table.borrow();
        let files = table.by_name.iter();
        files
            .map(|(name, file)| (name.clone(), file.state.borrow().extents.len()))
            .collect()
    }

    /// What is used, now and over time.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let Inner { device, log, .. } = &*self.inner;
        let mut zones = self.inner.zones.borrow_mut();
        let [live, invalid_bytes, unusable_bytes, free_bytes] = zones.bytes();
        let mut usage = Usage {
            invalid_bytes,
            unusable_bytes,
            free_bytes,
            zones: zones.counts(),
            written_bytes: zones.total_lbas * device.shape.lba_bytes,
            meta_bytes: log.written_bytes.get(),
            finishes: self.inner.finishes.get() + log.finishes.get(),
            resets: self.inner.resets.get() + log.resets.get(),
            placements: zones.placements,
            over_time: zones.over_time(device.io.now()),
            ..Usage::default()
        };
        let table = self.inner.table.borrow();
        usage.files = table.by_name.len();
        for file in table.by_name.values() {
            let state = file.state.borrow();
            usage.valid_bytes += state.extents.len();
            let lbas = state
                .extents
                .iter()
                .map(|of| device.shape.lbas_of(of.bytes));
            let bytes = lbas.sum::<u64>() * device.shape.lba_bytes;
            usage.valid_by_lifetime[usize::from(file.lifetime.code())] += bytes;
        }
        usage.padding_bytes = live.saturating_sub(usage.valid_bytes);
        usage
    }

    /// Every data zone, in order.
    #[must_use]
    pub fn zone_use(&self) -> Vec<ZoneUse> {
        self.inner.zones.borrow().zone_use()
    }

    /// A new name for whoever writes zones.
    fn new_writer(&self) -> WriterId {
        let id = self.inner.next_writer.get();
        self.inner.next_writer.set(id + 1);
        WriterId(id)
    }

    /// The record that a file is gone. Of one that the log never had, the last
    /// one there was.
    fn log_deletion(&self, file: &File) -> u64 {
        let state = file.state.borrow();
        match state.logged_bytes {
            Some(_) => self.inner.log.add(&Record::Delete { id: file.id }),
            None => state.ticket,
        }
    }

    /// Gives up the blocks of a file that is gone, and resets what is to be.
    async fn free(&self, file: &File) -> Result<(), FilesError> {
        let freed = {
            let lba_bytes = self.inner.device.shape.lba_bytes;
            file.state.borrow_mut().extents.truncate(0, lba_bytes)
        };
        self.invalidate(&freed);
        let mut zones: Vec<u32> = freed.into_iter().map(|(zone, _)| zone).collect();
        zones.sort_unstable();
        zones.dedup();
        zones.retain(|zone| self.inner.zones.borrow_mut().claim_garbage(*zone));
        let resets = zones.iter().map(|zone| self.manage(*zone, Manage::Reset));
        join_all(resets).await.into_iter().collect()
    }

    fn invalidate(&self, freed: &[(u32, u64)]) {
        let now = self.inner.device.io.now();
        let mut zones = self.inner.zones.borrow_mut();
        for (zone, lbas) in freed {
            zones.invalidate(*zone, *lbas, now);
        }
    }

    /// A zone for a file, which then is the writer's.
    async fn zone_for(&self, writer: WriterId, lifetime: Lifetime) -> Result<u32, FilesError> {
        loop {
            let seen = self.inner.changed.changes();
            let choice = self.inner.zones.borrow_mut().choose(writer, lifetime);
            match choice {
                Choice::Take { zone, is_new } => {
                    if is_new && self.inner.config.explicit_open {
                        // If it fails, the first write says why.
                        let _ = self.inner.device.send(zone, ZoneSendAction::OPEN).await;
                    }
                    return Ok(zone);
                }
                Choice::First(manage, zone) => self.manage(zone, manage).await?,
                Choice::Wait => self.inner.changed.after(seen).await,
                Choice::OutOf(shortage) => return Err(Box::new(shortage).into()),
            }
        }
    }

    /// Closes a zone that a writer gave up, or resets it.
    async fn tidy(&self, zone: u32) -> Result<(), FilesError> {
        let claimed = {
            let mut zones = self.inner.zones.borrow_mut();
            if zones.claim_garbage(zone) {
                Some(Manage::Reset)
            } else {
                zones.claim_released(zone).then_some(Manage::Close)
            }
        };
        match claimed {
            Some(manage) => self.manage(zone, manage).await,
            None => Ok(()),
        }
    }

    /// Makes what is in a zone durable and looks whether that is all: nobody can
    /// see it any more when the zone is full.
    async fn note_loss(&self, zone: u32) -> Result<(), FilesError> {
        let look = async {
            self.inner.device.flush().await?;
            self.inner.device.report_of(zone).await
        };
        let reported = match look.await {
            Ok(reported) => reported,
            Err(FilesError::Command { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut zones = self.inner.zones.borrow_mut();
        if reported.written_lbas < zones.get(zone).written_lbas {
            zones.limit_reads(zone, reported.written_lbas);
        }
        zones.verified(zone);
        Ok(())
    }

    /// Carries out a command on a zone that was claimed for it. If the device
    /// refuses it, the zone is not asked for it again.
    async fn manage(&self, zone: u32, manage: Manage) -> Result<(), FilesError> {
        let Inner { device, .. } = &*self.inner;
        let (action, reached) = match manage {
            Manage::Close => (ZoneSendAction::CLOSE, ZoneUseState::Closed),
            Manage::Finish => (ZoneSendAction::FINISH, ZoneUseState::Full),
            Manage::Reset => (ZoneSendAction::RESET, ZoneUseState::Empty),
        };
        let may_hold_unsynced = self.inner.zones.borrow().get(zone).may_hold_unsynced();
        if manage == Manage::Finish && (may_hold_unsynced || device.aborts() > 0) {
            self.note_loss(zone).await?;
        }
        let mut end = device.send(zone, action).await;
        let mut died = None;
        if let Err(FilesError::Command { .. }) = end
            && let Ok(reported) = device.report_of(zone).await
        {
            end = Ok(());
            match reported.state {
                dead @ (ZoneUseState::ReadOnly | ZoneUseState::Offline) => died = Some(dead),
                state if state == reached && !reported.is_open => {}
                _ => died = Some(reached),
            }
        }
        let now = device.io.now();
        let mut zones = self.inner.zones.borrow_mut();
        match died {
            Some(dead @ (ZoneUseState::ReadOnly | ZoneUseState::Offline)) => {
                let written = zones.get(zone).written_lbas;
                zones.settle(zone, dead, written, now);
            }
            Some(_) => zones.refused(zone, manage),
            None if end.is_err() => zones.refused(zone, manage),
            None => {
                zones.managed(zone, manage, now);
                match manage {
                    Manage::Finish => self.inner.finishes.set(self.inner.finishes.get() + 1),
                    Manage::Reset => self.inner.resets.set(self.inner.resets.get() + 1),
                    Manage::Close => {}
                }
            }
        }
        drop(zones);
        self.inner.changed.ring();
        end
    }
}

fn check_name(name: &str) -> Result<(), FilesError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(FilesError::Name {
            len: name.len(),
            max: MAX_NAME_BYTES,
        });
    }
    Ok(())
}

fn refuse_if_written(file: &File) -> Result<(), FilesError> {
    let state = file.state.borrow();
    if state.has_writer {
        let name = state.name.clone();
        return Err(FilesError::InUse { name });
    }
    Ok(())
}
