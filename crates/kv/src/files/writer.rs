//! Writing a file.

use std::collections::VecDeque;
use std::rc::Rc;

use futures_util::future::RemoteHandle;
use zonelab_device::{Buf, RejectReason};
use zonelab_host::tasks::{Answer, InFlight};
use zonelab_nvme::Status;

use super::table::{Extent, File, Record};
use super::usage::ZoneUseState;
use super::waiting::Waiting;
use super::zones::WriterId;
use super::{FileId, Files, FilesError, Scarce};
use crate::Content;

/// Writes in a row that may fail before the file does.
const MOST_FAILURES: u32 = 8;
/// Writes in a row that may fail before their zone is given up.
const MOST_FAILURES_IN_ZONE: u32 = 2;

/// A write on its way.
struct Pending {
    zone: u32,
    block: u64,
    lbas: u64,
    /// Bytes of the file in it; the rest is padding.
    bytes: u64,
    end: RemoteHandle<Result<Answer, RejectReason>>,
}

/// The only one who writes a file, at its end.
///
/// A writer that is dropped has not closed its file: that ends where it was
/// last synced, and if it never was there is none.
pub struct Writer {
    files: Files,
    file: Rc<File>,
    id: WriterId,
    zone: Option<u32>,
    waiting: Waiting,
    in_flight: VecDeque<Pending>,
    /// Writes that failed in a row, all and in this zone.
    failures: (u32, u32),
    /// What cannot be put right any more.
    broken: Option<FilesError>,
    /// Aborts after which the device was found to have what it should.
    aborts_seen: u64,
}

impl Writer {
    pub(super) fn new(files: Files, file: Rc<File>) -> Self {
        let id = files.new_writer();
        let aborts_seen = files.inner.device.aborts();
        Self {
            files,
            file,
            id,
            zone: None,
            waiting: Waiting::default(),
            in_flight: VecDeque::new(),
            failures: (0, 0),
            broken: None,
            aborts_seen,
        }
    }

    /// The file.
    #[must_use]
    pub fn id(&self) -> FileId {
        self.file.id
    }

    /// Bytes that were appended.
    #[must_use]
    pub fn len(&self) -> u64 {
        let on_its_way: u64 = self.in_flight.iter().map(|write| write.bytes).sum();
        self.file.state.borrow().extents.len() + on_its_way + self.waiting.len
    }

    /// Whether nothing was appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `content` at the end. When this returns, less than
    /// [`FilesConfig::io_bytes`](super::FilesConfig::io_bytes) wait here, and at
    /// most [`FilesConfig::write_depth`](super::FilesConfig::write_depth) writes
    /// are on their way; it waits only if there would be more.
    ///
    /// # Errors
    /// The content is of the wrong kind, no zone can be had, or a write failed
    /// for good. What was appended before is not lost: a later call tries again.
    pub async fn append(&mut self, content: Content) -> Result<(), FilesError> {
        let keeps_data = self.files.inner.config.keeps_data;
        if matches!(content, Content::Bytes(_)) != keeps_data {
            return Err(FilesError::WrongContent { keeps_data });
        }
        self.waiting.put(content);
        let shape = &self.files.inner.device.shape;
        let io_bytes = shape.io_lbas * shape.lba_bytes;
        let write_depth = self.files.inner.config.write_depth as usize;
        loop {
            // A write that failed waits again.
            if self.waiting.len >= io_bytes {
                self.begin(io_bytes).await?;
            } else if self.in_flight.len() > write_depth {
                self.land().await?;
            } else {
                return Ok(());
            }
        }
    }

    /// Makes all that was appended durable, and the file with it. The last block
    /// is filled up; what is appended later begins with the next one.
    ///
    /// # Errors
    /// As [`Self::append`]; or the flush or the metadata log failed.
    pub async fn sync(&mut self) -> Result<(), FilesError> {
        loop {
            while self.waiting.len > 0 {
                self.begin(self.waiting.len).await?;
            }
            match self.in_flight.is_empty() {
                true => break,
                false => self.land().await?,
            }
        }
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let inner = Rc::clone(&self.files.inner);
        let is_new = {
            let state = self.file.state.borrow();
            state.logged_bytes != Some(state.extents.len())
        };
        if is_new {
            self.make_durable().await?;
            self.log();
        }
        let ticket = self.file.state.borrow().ticket;
        inner.log.commit(ticket, &inner.table).await
    }

    /// Makes all durable and gives up the zone.
    ///
    /// # Errors
    /// As [`Self::sync`]; the file then is as if this had been dropped.
    pub async fn close(mut self) -> Result<(), FilesError> {
        self.sync().await?;
        self.file.state.borrow_mut().has_writer = false;
        match self.zone.take() {
            Some(zone) => {
                self.files.inner.zones.borrow_mut().release(zone, self.id);
                self.files.inner.changed.ring();
                self.files.tidy(zone).await
            }
            None => Ok(()),
        }
    }

    /// Flushes, and makes sure that what is new is on the device: zones may have
    /// died, and power may have been lost, since it was written.
    async fn make_durable(&mut self) -> Result<(), FilesError> {
        let inner = Rc::clone(&self.files.inner);
        let shape = &inner.device.shape;
        loop {
            inner.device.flush().await?;
            let aborts = inner.device.aborts();
            let new = self.unlogged();
            for extent in &new {
                let name = self.file.name();
                (inner.zones.borrow()).check_readable(shape, &name, *extent)?;
            }
            if aborts == self.aborts_seen {
                return Ok(());
            }
            let mut zones: Vec<u32> = new.iter().map(|extent| extent.zone).collect();
            zones.sort_unstable();
            zones.dedup();
            for zone in zones {
                let reported = inner.device.report_of(zone).await?;
                let readable = {
                    let zones = inner.zones.borrow();
                    match zones.get(zone) {
                        of if of.state != ZoneUseState::Finished => reported.readable_lbas(),
                        of if of.is_verified => of.readable_lbas(),
                        // Its write pointer is gone: nobody can tell.
                        _ => 0,
                    }
                };
                self.break_if_lost(zone, readable)?;
            }
            self.aborts_seen = aborts;
        }
    }

    /// Where the bytes are that the log does not know of.
    fn unlogged(&self) -> Vec<Extent> {
        let lba_bytes = self.files.inner.device.shape.lba_bytes;
        let state = self.file.state.borrow();
        let (from, to) = (state.logged_bytes.unwrap_or(0), state.extents.len());
        let extents = state.extents.between(from, to, lba_bytes);
        extents.into_iter().map(|(_, extent)| extent).collect()
    }

    /// The device has only so many blocks of a zone. If that is not enough, the
    /// file cannot be made whole.
    fn break_if_lost(&mut self, zone: u32, readable_lbas: u64) -> Result<(), FilesError> {
        let shape = &self.files.inner.device.shape;
        let is_lost = |extent: &Extent| {
            extent.zone == zone && extent.block + shape.lbas_of(extent.bytes) > readable_lbas
        };
        if !self.unlogged().iter().any(is_lost) {
            return Ok(());
        }
        let lost = FilesError::Lost {
            name: self.file.name(),
            zone,
            lba: shape.start_of(zone) + readable_lbas,
        };
        self.broken = Some(lost.clone());
        Err(lost)
    }

    /// Tells the log what is new.
    fn log(&self) {
        let inner = &self.files.inner;
        let mut state = self.file.state.borrow_mut();
        let logged = match state.logged_bytes {
            Some(logged) => logged,
            None => {
                let record = Record::Create {
                    id: self.file.id,
                    lifetime: self.file.lifetime,
                    name: state.name.clone(),
                };
                state.ticket = inner.log.add(&record);
                0
            }
        };
        let len = state.extents.len();
        if len > logged {
            let lba_bytes = inner.device.shape.lba_bytes;
            let extents = state.extents.between(logged, len, lba_bytes);
            let record = Record::Extend {
                id: self.file.id,
                extents: extents.into_iter().map(|(_, extent)| extent).collect(),
            };
            state.ticket = inner.log.add(&record);
        }
        state.logged_bytes = Some(len);
    }

    /// Puts a write of at most so many bytes of those that wait on its way.
    async fn begin(&mut self, bytes: u64) -> Result<(), FilesError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let inner = Rc::clone(&self.files.inner);
        while self.in_flight.len() >= (inner.config.write_depth as usize).max(1) {
            self.land().await?;
        }
        let Some(zone) = self.zone().await? else {
            return Ok(());
        };
        let shape = &inner.device.shape;
        let mut zones = inner.zones.borrow_mut();
        // Less may wait by now, or more.
        let bytes = bytes.min(self.waiting.len);
        let lbas = shape
            .lbas_of(bytes)
            .min(shape.io_lbas)
            .min(zones.room(zone));
        let bytes = bytes.min(lbas * shape.lba_bytes);
        let data = self
            .waiting
            .take(bytes, lbas * shape.lba_bytes, inner.config.keeps_data);
        let block = zones.begin_write(zone, lbas, inner.device.io.now());
        let flight = inner.device.begin_write(zone, block, lbas, data);
        let end = inner
            .device
            .io
            .spawn(watch(self.files.clone(), zone, flight));
        self.in_flight.push_back(Pending {
            zone,
            block,
            lbas,
            bytes,
            end,
        });
        Ok(())
    }

    /// The zone to write to, which has room. `None`: writes had to be waited for,
    /// and may have failed; look again.
    async fn zone(&mut self) -> Result<Option<u32>, FilesError> {
        {
            let zones = self.files.inner.zones.borrow();
            if let Some(zone) = self.zone
                && zones.is_held(zone, self.id)
                && zones.room(zone) > 0
            {
                return Ok(Some(zone));
            }
        }
        if !self.in_flight.is_empty() {
            // The full zone counts as active until then.
            self.land_all().await?;
            return Ok(None);
        }
        self.zone = None;
        let zone = self.files.zone_for(self.id, self.file.lifetime).await?;
        self.zone = Some(zone);
        self.failures.1 = 0;
        Ok(Some(zone))
    }

    async fn land_all(&mut self) -> Result<(), FilesError> {
        while !self.in_flight.is_empty() {
            self.land().await?;
        }
        Ok(())
    }

    /// Waits for the first write on its way.
    async fn land(&mut self) -> Result<(), FilesError> {
        let Some(write) = self.in_flight.front_mut() else {
            return Ok(());
        };
        let answer = (&mut write.end).await;
        let Some(write) = self.in_flight.pop_front() else {
            return Ok(());
        };
        let inner = Rc::clone(&self.files.inner);
        match answer {
            Ok(answer) if answer.status.is_success() => {
                let extent = Extent {
                    zone: write.zone,
                    block: write.block,
                    bytes: write.bytes,
                };
                let lba_bytes = inner.device.shape.lba_bytes;
                self.file.state.borrow_mut().extents.push(extent, lba_bytes);
                self.failures = (0, 0);
                Ok(())
            }
            Ok(answer) => {
                let at = (write.zone, write.block);
                let failed = inner.device.failed("write", at, answer.status);
                self.retry(write, answer.data, failed).await
            }
            Err(reason) => {
                self.give_up(&write);
                self.broken = Some(FilesError::Gone(reason));
                Err(FilesError::Gone(reason))
            }
        }
    }

    /// Blocks of a write are not the file's.
    fn give_up(&self, write: &Pending) {
        let inner = &self.files.inner;
        let mut zones = inner.zones.borrow_mut();
        zones.invalidate(write.zone, write.lbas, inner.device.io.now());
    }

    /// A write failed: what it and those behind it held waits again, and the
    /// zone is looked at.
    async fn retry(
        &mut self,
        write: Pending,
        data: Option<Buf>,
        failed: FilesError,
    ) -> Result<(), FilesError> {
        let zone = write.zone;
        let mut writes = vec![(write, data)];
        while let Some(mut next) = self.in_flight.pop_front() {
            // Whatever became of it, it does not follow what was written before.
            let answer = (&mut next.end).await;
            writes.push((next, answer.ok().and_then(|answer| answer.data)));
        }
        let (mut bytes, mut len) = (Vec::new(), 0);
        for (write, data) in &writes {
            self.give_up(write);
            len += write.bytes;
            let data = data.as_deref().unwrap_or_default();
            bytes.extend_from_slice(data.get(..write.bytes as usize).unwrap_or_default());
        }
        self.waiting.put_back(bytes, len);
        self.failures = (self.failures.0 + 1, self.failures.1 + 1);
        let looked = self.look_at(zone, &writes[0].0).await;
        if looked.is_err() {
            self.files.inner.zones.borrow_mut().release(zone, self.id);
            self.zone = None;
        }
        self.files.inner.changed.ring();
        looked?;
        if is_over_a_limit(&failed) {
            let zones = self.files.inner.zones.borrow();
            return Err(Box::new(zones.shortage(Scarce::ActiveZones)).into());
        }
        if self.failures.0 >= MOST_FAILURES {
            self.failures = (0, 0);
            return Err(failed);
        }
        Ok(())
    }

    /// Asks the device about a zone in which a write failed.
    async fn look_at(&mut self, zone: u32, write: &Pending) -> Result<(), FilesError> {
        let inner = Rc::clone(&self.files.inner);
        let reported = inner.device.report_of(zone).await?;
        let now = inner.device.io.now();
        let mut zones = inner.zones.borrow_mut();
        match reported.state {
            // What was acknowledged ends where the first write that failed began.
            dead @ (ZoneUseState::ReadOnly | ZoneUseState::Offline) => {
                zones.settle(zone, dead, write.block, now);
                self.zone = None;
            }
            // What was acknowledged is gone. Whoever it belongs to must not take
            // other data for it: nothing is written there any more.
            _ if reported.written_lbas < write.block => {
                inner.device.note_power_loss();
                zones.settle(zone, ZoneUseState::Open, reported.written_lbas, now);
                zones.limit_reads(zone, reported.written_lbas);
                zones.suspect(zone);
                zones.release(zone, self.id);
                self.zone = None;
            }
            ZoneUseState::Empty => {
                zones.settle(zone, ZoneUseState::Empty, 0, now);
                self.zone = None;
                if self.failures.1 >= MOST_FAILURES_IN_ZONE {
                    zones.suspect(zone);
                }
            }
            ZoneUseState::Full => {
                zones.settle(zone, ZoneUseState::Full, reported.written_lbas, now);
                self.zone = None;
            }
            _ => {
                zones.settle(zone, ZoneUseState::Open, reported.written_lbas, now);
                if self.failures.1 >= MOST_FAILURES_IN_ZONE {
                    zones.suspect(zone);
                    zones.release(zone, self.id);
                    self.zone = None;
                }
            }
        }
        drop(zones);
        match reported.is_dead() {
            // A sync tells what is lost.
            true => Ok(()),
            false => self.break_if_lost(zone, reported.written_lbas),
        }
    }
}

/// Somebody else has zones of the device active, or open.
fn is_over_a_limit(error: &FilesError) -> bool {
    let FilesError::Command { status, .. } = error else {
        return false;
    };
    matches!(
        *status,
        Status::TOO_MANY_ACTIVE_ZONES | Status::TOO_MANY_OPEN_ZONES
    )
}

/// Sees to it that the end of a write is noted, even if its writer does something
/// else: others may wait for the zone.
async fn watch(files: Files, zone: u32, flight: InFlight) -> Result<Answer, RejectReason> {
    let end = flight.await;
    if let Ok(answer) = &end {
        files.inner.device.note(answer.status);
    }
    let is_written = matches!(&end, Ok(answer) if answer.status.is_success());
    {
        let mut zones = files.inner.zones.borrow_mut();
        match is_written {
            true => zones.end_write(zone),
            false => zones.fail_write(zone),
        }
    }
    files.inner.changed.ring();
    end
}

impl Drop for Writer {
    fn drop(&mut self) {
        let inner = &self.files.inner;
        for write in core::mem::take(&mut self.in_flight) {
            self.give_up(&write);
            write.end.forget();
        }
        let is_closed = !self.file.state.borrow().has_writer;
        if let Some(zone) = self.zone {
            inner.zones.borrow_mut().release(zone, self.id);
        }
        if !is_closed {
            let freed = {
                let mut state = self.file.state.borrow_mut();
                state.has_writer = false;
                let logged = state.logged_bytes.unwrap_or(0);
                state.extents.truncate(logged, inner.device.shape.lba_bytes)
            };
            self.files.invalidate(&freed);
            if self.file.state.borrow().logged_bytes.is_none() {
                inner.table.borrow_mut().remove(&self.file);
            }
        }
        inner.changed.ring();
    }
}
