//! Commands on the zones of the namespace, and how they end.

use std::cell::Cell;
use std::rc::Rc;

use zerocopy::FromBytes;
use zonelab_device::{Buf, Command, Op};
use zonelab_host::tasks::{Answer, InFlight, Io};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ReportHeader, ZoneDescriptor, ZoneSendAction, ZoneState};

use crate::error::FtlError;
use crate::shape::Shape;

/// Descriptors of one report: one page of 4 KiB.
const ZONES_PER_REPORT: u32 = 63;
/// How often the reset or finish of a zone is tried.
const TRIES: u32 = 3;

/// What may be done with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneUse {
    /// Nothing is written.
    Empty,
    /// Written in part, and open, by a command or implicitly.
    Open,
    /// Written in part, and closed.
    Closed,
    /// Nothing more can be written before a reset.
    Full,
    /// It can be read and nothing else.
    ReadOnly,
    /// It can be neither read nor written.
    Offline,
}

/// What a report says of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// What may be done with it.
    pub state: ZoneUse,
    /// Blocks below the write pointer. A zone that is full or read only has no write
    /// pointer: all of its capacity, of which the end may never have been written.
    pub written: u32,
    /// Blocks that can be written.
    pub capacity: u32,
}

impl Zone {
    /// It can never be written again.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, ZoneUse::ReadOnly | ZoneUse::Offline)
    }

    /// It counts against the limit of active zones.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        matches!(self.state, ZoneUse::Open | ZoneUse::Closed)
    }
}

/// The namespace of a [`Shape`]: commands on its zones. Clones are the same.
#[derive(Clone)]
pub struct Media {
    io: Io,
    shape: Rc<Shape>,
    keeps_data: bool,
    aborts: Rc<Cell<u64>>,
}

impl Media {
    /// Commands for that namespace. A device that only models time keeps no data:
    /// it gets no buffers and returns none.
    #[must_use]
    pub fn new(io: &Io, shape: Rc<Shape>, keeps_data: bool) -> Self {
        Self {
            io: io.clone(),
            shape,
            keeps_data,
            aborts: Rc::default(),
        }
    }

    /// Time and tasks.
    #[must_use]
    pub const fn io(&self) -> &Io {
        &self.io
    }

    /// Which zones are for what.
    #[must_use]
    pub const fn shape(&self) -> &Rc<Shape> {
        &self.shape
    }

    /// Whether what is written can be read.
    #[must_use]
    pub const fn keeps_data(&self) -> bool {
        self.keeps_data
    }

    /// Commands until now that the host gave up (Command Aborted By Host): the device
    /// was reset or lost power, and what was not flushed before may be gone.
    #[must_use]
    pub fn aborts(&self) -> u64 {
        self.aborts.get()
    }

    fn command(&self, op: Op) -> Command {
        Command::on(self.shape.nsid, op)
    }

    /// Waits for a command, and says what it was if it failed.
    async fn end(
        &self,
        flight: InFlight,
        action: &'static str,
        zone: u32,
        offset: u32,
    ) -> Result<Answer, FtlError> {
        let answer = flight.await.map_err(FtlError::Gone)?;
        if answer.status == Status::ABORTED_BY_HOST {
            self.aborts.set(self.aborts.get() + 1);
        }
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(FtlError::Command {
            action,
            zone,
            lba: self.shape.lba(zone, offset).0,
            status: answer.status,
        })
    }

    /// Reads blocks of a zone, at most a transfer at a time, one command after the
    /// other. Without data, the result is empty.
    ///
    /// # Errors
    /// A command failed, or the device is gone.
    pub async fn read(&self, zone: u32, offset: u32, blocks: u32) -> Result<Vec<u8>, FtlError> {
        let mut bytes = Vec::new();
        let end = offset + blocks;
        let mut next = offset;
        while next < end {
            let some = (end - next).min(self.shape.max_transfer_blocks);
            let op = Op::Read {
                slba: self.shape.lba(zone, next),
                nlb: some,
            };
            let length = self.shape.bytes(some);
            let buffer = self.keeps_data.then(|| Buf::zeroed(length));
            let flight = self.io.begin(self.command(op), buffer);
            let answer = self.end(flight, "read", zone, next).await?;
            if let Some(data) = answer.data.as_deref() {
                bytes.extend_from_slice(data);
            }
            next += some;
        }
        Ok(bytes)
    }

    /// Writes blocks at an offset, which has to be the write pointer: at most a
    /// transfer at a time, each after the end of the one before. Without data, `bytes`
    /// are ignored and may be empty.
    ///
    /// # Errors
    /// A command failed, or the device is gone; what was behind it was not tried.
    pub async fn write(
        &self,
        zone: u32,
        offset: u32,
        blocks: u32,
        bytes: &[u8],
    ) -> Result<(), FtlError> {
        let mut done = 0;
        while done < blocks {
            let some = (blocks - done).min(self.shape.max_transfer_blocks);
            let op = Op::Write {
                slba: self.shape.lba(zone, offset + done),
                nlb: some,
            };
            let data = self.keeps_data.then(|| {
                let range = self.shape.bytes(done)..self.shape.bytes(done + some);
                Buf::from(bytes[range].to_vec())
            });
            let flight = self.io.begin(self.command(op), data);
            self.end(flight, "write", zone, offset + done).await?;
            done += some;
        }
        Ok(())
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// The command failed, or the device is gone.
    pub async fn flush(&self) -> Result<(), FtlError> {
        let flight = self.io.begin(self.command(Op::Flush), None);
        self.end(flight, "flush", 0, 0).await.map(drop)
    }

    async fn send(
        &self,
        zone: u32,
        action: ZoneSendAction,
        name: &'static str,
        select_all: bool,
    ) -> Result<(), FtlError> {
        let op = Op::ZoneSend {
            slba: self.shape.lba(zone, 0),
            action,
            select_all,
        };
        let mut end = Ok(());
        for _ in 0..TRIES {
            let flight = self.io.begin(self.command(op), None);
            end = self.end(flight, name, zone, 0).await.map(drop);
            if !matches!(end, Err(FtlError::Command { .. })) {
                break;
            }
        }
        end
    }

    /// Empties a zone. A reset that fails is tried again, twice.
    ///
    /// # Errors
    /// The last try failed, or the device is gone.
    pub async fn reset(&self, zone: u32) -> Result<(), FtlError> {
        self.send(zone, ZoneSendAction::RESET, "reset", false).await
    }

    /// Empties all zones of the namespace that can be emptied.
    ///
    /// # Errors
    /// As [`Self::reset`].
    pub async fn reset_all(&self) -> Result<(), FtlError> {
        self.send(0, ZoneSendAction::RESET, "reset", true).await
    }

    /// Makes a zone full, so that it is not active. A finish that fails is tried
    /// again, twice.
    ///
    /// # Errors
    /// The last try failed, or the device is gone.
    pub async fn finish(&self, zone: u32) -> Result<(), FtlError> {
        self.send(zone, ZoneSendAction::FINISH, "finish", false)
            .await
    }

    /// Copies blocks of the namespace to `offset` of a zone: those of `ranges`, of which
    /// there are `count`, in the layout of the specification.
    ///
    /// # Errors
    /// The command failed, or the device is gone.
    pub async fn copy(
        &self,
        zone: u32,
        offset: u32,
        count: u16,
        ranges: Buf,
    ) -> Result<(), FtlError> {
        let op = Op::Copy {
            sdlba: self.shape.lba(zone, offset),
            ranges: count,
        };
        let flight = self.io.begin(self.command(op), Some(ranges));
        self.end(flight, "copy", zone, offset).await.map(drop)
    }

    /// What the device says of all zones of the namespace, in order.
    ///
    /// # Errors
    /// A command failed, the device is gone, or it reports fewer zones than it has.
    pub async fn report(&self) -> Result<Vec<Zone>, FtlError> {
        let mut all = Vec::with_capacity(self.shape.zones as usize);
        while (all.len() as u32) < self.shape.zones {
            let next = all.len() as u32;
            let most = (self.shape.zones - next).min(ZONES_PER_REPORT);
            all.extend(self.report_from(next, most).await?);
        }
        Ok(all)
    }

    /// What the device says of a zone.
    ///
    /// # Errors
    /// As [`Self::report`].
    pub async fn report_of(&self, zone: u32) -> Result<Zone, FtlError> {
        let reported = self.report_from(zone, 1).await?;
        Ok(reported[0])
    }

    /// At least one zone.
    async fn report_from(&self, zone: u32, most: u32) -> Result<Vec<Zone>, FtlError> {
        let (header, entry) = (size_of::<ReportHeader>(), size_of::<ZoneDescriptor>());
        let op = Op::ZoneReceive {
            slba: self.shape.lba(zone, 0),
            filter: ReportFilter::ALL,
            partial: true,
            extended: false,
        };
        let buffer = Buf::zeroed(header + entry * most as usize);
        let flight = self.io.begin(self.command(op), Some(buffer));
        let answer = self.end(flight, "report", zone, 0).await?;
        let bytes = answer.data.unwrap_or_else(|| Buf::zeroed(0));
        let count =
            ReportHeader::ref_from_prefix(&bytes).map_or(0, |(head, _)| head.nr_zones.get());
        let entries = bytes.get(header..).unwrap_or_default().chunks_exact(entry);
        let zones: Vec<_> = entries
            .take(count as usize)
            .filter_map(|bytes| ZoneDescriptor::read_from_bytes(bytes).ok())
            .map(|descriptor| self.zone(&descriptor))
            .collect();
        if zones.is_empty() {
            return Err(self.corrupt(zone, 0, "the device reports no such zone"));
        }
        Ok(zones)
    }

    fn zone(&self, descriptor: &ZoneDescriptor) -> Zone {
        let state = match descriptor.zs.zs() {
            ZoneState::EMPTY => ZoneUse::Empty,
            ZoneState::FULL => ZoneUse::Full,
            ZoneState::READ_ONLY => ZoneUse::ReadOnly,
            ZoneState::OFFLINE => ZoneUse::Offline,
            ZoneState::CLOSED => ZoneUse::Closed,
            _ => ZoneUse::Open,
        };
        let most = u64::from(self.shape.zone_capacity_lbas);
        let capacity = descriptor.zcap.get().min(most);
        let written = match state {
            ZoneUse::Empty | ZoneUse::Offline => 0,
            ZoneUse::Full | ZoneUse::ReadOnly => capacity,
            ZoneUse::Open | ZoneUse::Closed => {
                let pointer = descriptor.wp.get().saturating_sub(descriptor.zslba.get());
                pointer.min(capacity)
            }
        };
        Zone {
            state,
            written: written as u32,
            capacity: capacity as u32,
        }
    }

    /// Something is wrong with a block.
    pub(crate) fn corrupt(&self, zone: u32, offset: u32, what: &'static str) -> FtlError {
        FtlError::Corrupt {
            zone,
            lba: self.shape.lba(zone, offset).0,
            what,
        }
    }
}
