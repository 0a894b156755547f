//! The metadata log on its zones.
//!
//! One zone is written at a time. When it is full, or fails, it is finished and
//! the next one begins with a snapshot of all files; when that is durable, the
//! former is reset. So at any time one zone holds all that was acknowledged, and
//! one active zone is enough.

use std::cell::{Cell, RefCell};

use futures_util::lock::Mutex;
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

use super::device::Device;
use super::records::{self, Header};
use super::table::{Record, Table};
use super::{FilesError, records::VERSION};

/// A zone of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetaZone {
    Empty,
    /// It has to be reset before it is written.
    Used,
    /// It cannot be written any more.
    Dead,
}

/// Where the log is written.
#[derive(Debug)]
struct End {
    /// `None`: nowhere yet.
    zone: Option<u32>,
    /// Blocks written there.
    lbas: u64,
    epoch: u64,
    index: u64,
    /// The last epoch that was begun. Each is used once, whatever became of it.
    last_epoch: u64,
    /// A batch was begun, and nobody knows what became of it.
    is_torn: bool,
    zones: Vec<MetaZone>,
    failed: Option<FilesError>,
}

/// Records that are in no batch yet.
#[derive(Debug, Default)]
struct Pending {
    records: Vec<u8>,
    /// The number of the last record.
    ticket: u64,
}

/// The metadata log.
pub(super) struct Log {
    device: Device,
    pending: RefCell<Pending>,
    end: Mutex<End>,
    /// The last record that is durable.
    durable: Cell<u64>,
    pub(super) written_bytes: Cell<u64>,
    pub(super) finishes: Cell<u64>,
    pub(super) resets: Cell<u64>,
}

impl Log {
    /// A log that begins with its first [snapshot](Self::begin). `zones` are in
    /// the order of their numbers; `former` is the zone in which the log was until
    /// now, with the blocks written there, and `epoch` its epoch.
    pub(super) fn new(
        device: Device,
        zones: Vec<MetaZone>,
        former: Option<(u32, u64)>,
        epoch: u64,
    ) -> Self {
        let end = End {
            zone: former.map(|(zone, _)| zone),
            lbas: former.map_or(0, |(_, lbas)| lbas),
            epoch,
            index: 0,
            last_epoch: epoch,
            is_torn: false,
            zones,
            failed: None,
        };
        Self {
            device,
            pending: RefCell::default(),
            end: Mutex::new(end),
            durable: Cell::new(0),
            written_bytes: Cell::new(0),
            finishes: Cell::new(0),
            resets: Cell::new(0),
        }
    }

    /// Adds a record, for the next commit. Whoever does has changed the table
    /// accordingly. Returns its number.
    pub(super) fn add(&self, record: &Record) -> u64 {
        let mut pending = self.pending.borrow_mut();
        records::encode(record, &mut pending.records);
        pending.ticket += 1;
        pending.ticket
    }

    /// Begins a new zone with a snapshot.
    pub(super) async fn begin(&self, table: &RefCell<Table>) -> Result<(), FilesError> {
        let mut end = self.end.lock().await;
        self.roll(&mut end, table, Status::SUCCESS).await
    }

    /// Makes all records durable up to number `ticket`. Several that come at
    /// the same time share a batch.
    pub(super) async fn commit(
        &self,
        ticket: u64,
        table: &RefCell<Table>,
    ) -> Result<(), FilesError> {
        if self.durable.get() >= ticket {
            return Ok(());
        }
        let mut end = self.end.lock().await;
        if self.durable.get() >= ticket {
            return Ok(());
        }
        if let Some(failed) = &end.failed {
            return Err(failed.clone());
        }
        match self.append(&mut end, table).await {
            Ok(Some(upto)) => {
                self.durable.set(upto);
                Ok(())
            }
            Ok(None) => self.roll(&mut end, table, Status::SUCCESS).await,
            Err(FilesError::Command { status, .. }) => self.roll(&mut end, table, status).await,
            Err(error) => Err(error),
        }
    }

    /// Writes all pending records as a batch, and returns the number of the last.
    /// `None`: they do not go into this zone.
    async fn append(
        &self,
        end: &mut End,
        table: &RefCell<Table>,
    ) -> Result<Option<u64>, FilesError> {
        let Some(zone) = end.zone.filter(|_| !end.is_torn) else {
            return Ok(None);
        };
        let (records, upto) = {
            let mut pending = self.pending.borrow_mut();
            (core::mem::take(&mut pending.records), pending.ticket)
        };
        let batch = self.batch(end.epoch, end.index, &records, table);
        let lbas = self.device.shape.lbas_of(batch.len() as u64);
        if lbas > self.device.shape.capacity_lbas - end.lbas {
            return Ok(None);
        }
        // A caller who goes away leaves it so.
        end.is_torn = true;
        self.write_durably(zone, end.lbas, &batch).await?;
        end.is_torn = false;
        end.lbas += lbas;
        end.index += 1;
        Ok(Some(upto))
    }

    fn batch(&self, epoch: u64, index: u64, records: &[u8], table: &RefCell<Table>) -> Vec<u8> {
        let shape = &self.device.shape;
        let header = Header {
            version: VERSION,
            epoch,
            index,
            next_file: table.borrow().next_id,
            shape: records::shape_of(shape),
        };
        records::batch(&header, records, shape.lba_bytes)
    }

    async fn write_durably(&self, zone: u32, block: u64, batch: &[u8]) -> Result<(), FilesError> {
        let shape = &self.device.shape;
        let aborts = self.device.aborts();
        let mut block = block;
        for piece in batch.chunks((shape.io_lbas * shape.lba_bytes) as usize) {
            let lbas = shape.lbas_of(piece.len() as u64);
            self.device.write(zone, block, piece.to_vec()).await?;
            block += lbas;
        }
        self.written_bytes
            .set(self.written_bytes.get() + batch.len() as u64);
        self.device.flush().await?;
        if self.device.aborts() == aborts {
            return Ok(());
        }
        // Power may have been lost before the flush, and the batch with it.
        let status = Status::ABORTED_BY_HOST;
        Err(self.device.failed("flush", (zone, 0), status))
    }

    /// Goes on in the next zone that can be written. `last` is why the present
    /// one cannot.
    async fn roll(
        &self,
        end: &mut End,
        table: &RefCell<Table>,
        last: Status,
    ) -> Result<(), FilesError> {
        let mut last = last;
        let first = self.device.shape.meta_zones.start;
        let former = end.zone;
        if let Some(zone) = former {
            let room = self.device.shape.capacity_lbas > end.lbas;
            let at = (zone - first) as usize;
            if room && self.insist(zone, ZoneSendAction::FINISH).await.is_ok() {
                self.finishes.set(self.finishes.get() + 1);
                end.lbas = self.device.shape.capacity_lbas;
            }
            if end.zones[at] == MetaZone::Empty {
                end.zones[at] = MetaZone::Used;
            }
        }
        let count = end.zones.len() as u32;
        let from = former.map_or(0, |zone| zone - first + 1);
        // Several tries, for failures that pass.
        for zone in (0..4 * count).map(|k| first + (from + k) % count) {
            if Some(zone) == former || end.zones[(zone - first) as usize] == MetaZone::Dead {
                continue;
            }
            match self.begin_in(zone, end, table).await {
                Ok(()) => {
                    if let Some(former) = former {
                        self.retire(former, end).await;
                    }
                    return Ok(());
                }
                Err(FilesError::Command { status, .. }) => {
                    last = status;
                    let is_dead = match self.device.report_of(zone).await {
                        Ok(of) => of.is_dead(),
                        Err(_) => true,
                    };
                    if is_dead {
                        end.zones[(zone - first) as usize] = MetaZone::Dead;
                    }
                    // Begun or not, it is not to be active beside the next one.
                    self.retire(zone, end).await;
                }
                Err(error) => return Err(error),
            }
        }
        let failed = FilesError::MetadataFailed { last };
        end.failed = Some(failed.clone());
        Err(failed)
    }

    /// Sends a zone somewhere, and again if that fails: there is no active zone
    /// to spare for one that stays.
    async fn insist(&self, zone: u32, action: ZoneSendAction) -> Result<(), FilesError> {
        let mut end = Ok(());
        for _ in 0..3 {
            end = self.device.send(zone, action).await;
            if !matches!(end, Err(FilesError::Command { .. })) {
                break;
            }
        }
        end
    }

    /// Writes a snapshot to the start of a zone.
    async fn begin_in(
        &self,
        zone: u32,
        end: &mut End,
        table: &RefCell<Table>,
    ) -> Result<(), FilesError> {
        let at = (zone - self.device.shape.meta_zones.start) as usize;
        if end.zones[at] == MetaZone::Used {
            self.insist(zone, ZoneSendAction::RESET).await?;
            self.resets.set(self.resets.get() + 1);
        }
        end.zones[at] = MetaZone::Used;
        end.last_epoch += 1;
        let (records, upto) = {
            let mut pending = self.pending.borrow_mut();
            // The table knows of them already.
            pending.records.clear();
            let mut bytes = Vec::new();
            for record in table.borrow().snapshot(self.device.shape.lba_bytes) {
                records::encode(&record, &mut bytes);
            }
            (bytes, pending.ticket)
        };
        let batch = self.batch(end.last_epoch, 0, &records, table);
        let lbas = self.device.shape.lbas_of(batch.len() as u64);
        if lbas > self.device.shape.capacity_lbas {
            return Err(FilesError::MetadataTooLarge {
                bytes: batch.len() as u64,
                zone_bytes: self.device.shape.capacity_lbas * self.device.shape.lba_bytes,
            });
        }
        self.write_durably(zone, 0, &batch).await?;
        end.zone = Some(zone);
        end.lbas = lbas;
        end.epoch = end.last_epoch;
        end.index = 1;
        end.is_torn = false;
        self.durable.set(upto);
        Ok(())
    }

    /// Resets a zone in which the log was, or began. If that does not work, it is tried
    /// again before it is written.
    async fn retire(&self, zone: u32, end: &mut End) {
        let at = (zone - self.device.shape.meta_zones.start) as usize;
        if end.zones[at] == MetaZone::Used && self.insist(zone, ZoneSendAction::RESET).await.is_ok()
        {
            self.resets.set(self.resets.get() + 1);
            end.zones[at] = MetaZone::Empty;
        }
    }
}
