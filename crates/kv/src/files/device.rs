//! The device as files use it: commands on zones, and how they end.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::future::join_all;
use zerocopy::FromBytes;
use zonelab_device::{Buf, Command, Lba, NamespaceId, Op};
use zonelab_host::tasks::{Answer, InFlight, Io};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ReportHeader, ZoneDescriptor, ZoneSendAction, ZoneState};

use super::config::Shape;
use super::usage::ZoneUseState;
use super::{FilesConfig, FilesError};

/// Descriptors of one report.
const ZONES_PER_REPORT: u32 = 63;

/// What a report says of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) state: ZoneUseState,
    /// It is open, explicitly or not.
    pub(super) is_open: bool,
    /// Blocks below the write pointer; of a full or read-only zone, all.
    pub(super) written_lbas: u64,
}

impl Reported {
    /// Blocks from the start that can be read.
    pub(super) fn readable_lbas(&self) -> u64 {
        match self.state {
            ZoneUseState::Offline => 0,
            _ => self.written_lbas,
        }
    }

    /// It can never be written again.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.state, ZoneUseState::ReadOnly | ZoneUseState::Offline)
    }
}

/// The namespace, and how files share it out.
#[derive(Clone)]
pub(super) struct Device {
    pub(super) io: Io,
    pub(super) shape: Shape,
    nsid: NamespaceId,
    keeps_data: bool,
    aborts: Rc<Cell<u64>>,
}

impl Device {
    pub(super) fn new(io: &Io, config: &FilesConfig) -> Result<Self, FilesError> {
        Ok(Self {
            io: io.clone(),
            shape: Shape::new(io.info(), config)?,
            nsid: config.namespace,
            keeps_data: config.keeps_data,
            aborts: Rc::default(),
        })
    }

    fn command(&self, op: Op) -> Command {
        Command::on(self.nsid, op)
    }

    fn lba_of(&self, zone: u32, block: u64) -> u64 {
        self.shape.start_of(zone) + block
    }

    /// Puts a write on its way. `bytes` are those of its blocks; a device that
    /// keeps none gets none.
    pub(super) fn begin_write(
        &self,
        zone: u32,
        block: u64,
        lbas: u64,
        bytes: Option<Vec<u8>>,
    ) -> InFlight {
        let op = Op::Write {
            slba: Lba(self.lba_of(zone, block)),
            nlb: lbas as u32,
        };
        self.io.begin(self.command(op), bytes.map(Buf::from))
    }

    /// Writes blocks that are whole.
    pub(super) async fn write(
        &self,
        zone: u32,
        block: u64,
        bytes: Vec<u8>,
    ) -> Result<(), FilesError> {
        let lbas = self.shape.lbas_of(bytes.len() as u64);
        let bytes = self.keeps_data.then_some(bytes);
        let flight = self.begin_write(zone, block, lbas, bytes);
        self.end(flight, "write", zone, block).await.map(drop)
    }

    /// Puts a read on its way.
    pub(super) fn begin_read(&self, zone: u32, block: u64, lbas: u64) -> InFlight {
        let op = Op::Read {
            slba: Lba(self.lba_of(zone, block)),
            nlb: lbas as u32,
        };
        let bytes = (lbas * self.shape.lba_bytes) as usize;
        let buffer = self.keeps_data.then(|| Buf::zeroed(bytes));
        self.io.begin(self.command(op), buffer)
    }

    /// Reads blocks, by as many commands as it takes.
    pub(super) async fn read_all(
        &self,
        zone: u32,
        block: u64,
        lbas: u64,
    ) -> Result<Vec<u8>, FilesError> {
        let end = block + lbas;
        let mut bytes = Vec::with_capacity((lbas * self.shape.lba_bytes) as usize);
        let mut next = block;
        while next < end {
            let some = (end - next).min(self.shape.io_lbas);
            let flight = self.begin_read(zone, next, some);
            let answer = self.end(flight, "read", zone, next).await?;
            bytes.extend_from_slice(answer.data.as_deref().unwrap_or_default());
            next += some;
        }
        Ok(bytes)
    }

    /// Signs of a loss of power: commands that the host has given up, and write
    /// pointers that have gone back. What was not flushed may be gone then.
    pub(super) fn aborts(&self) -> u64 {
        self.aborts.get()
    }

    /// A command ended so.
    pub(super) fn note(&self, status: Status) {
        if status == Status::ABORTED_BY_HOST {
            self.note_power_loss();
        }
    }

    /// Power must have been lost.
    pub(super) fn note_power_loss(&self) {
        self.aborts.set(self.aborts.get() + 1);
    }

    /// Waits for a command, and says what it was if it failed.
    pub(super) async fn end(
        &self,
        flight: InFlight,
        action: &'static str,
        zone: u32,
        block: u64,
    ) -> Result<Answer, FilesError> {
        let answer = flight.await.map_err(FilesError::Gone)?;
        self.note(answer.status);
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(self.failed(action, (zone, block), answer.status))
    }

    /// A command failed at a block of a zone.
    pub(super) fn failed(
        &self,
        action: &'static str,
        (zone, block): (u32, u64),
        status: Status,
    ) -> FilesError {
        FilesError::Command {
            action,
            namespace: self.nsid.0,
            zone,
            lba: self.lba_of(zone, block),
            status,
        }
    }

    /// Makes what was written durable.
    pub(super) async fn flush(&self) -> Result<(), FilesError> {
        let flight = self.io.begin(self.command(Op::Flush), None);
        self.end(flight, "flush", 0, 0).await?;
        // Others may just learn that their commands were aborted before.
        self.io.yield_now().await;
        Ok(())
    }

    /// Sends a zone somewhere.
    pub(super) async fn send(&self, zone: u32, action: ZoneSendAction) -> Result<(), FilesError> {
        let op = Op::ZoneSend {
            slba: Lba(self.lba_of(zone, 0)),
            action,
            select_all: false,
        };
        let name = match action {
            ZoneSendAction::OPEN => "open",
            ZoneSendAction::CLOSE => "close",
            ZoneSendAction::FINISH => "finish",
            _ => "reset",
        };
        let flight = self.io.begin(self.command(op), None);
        self.end(flight, name, zone, 0).await.map(drop)
    }

    /// Resets zones, all at a time.
    pub(super) async fn reset_all(&self, zones: &[u32]) -> Result<(), FilesError> {
        let resets = zones
            .iter()
            .map(|zone| self.send(*zone, ZoneSendAction::RESET));
        join_all(resets).await.into_iter().collect()
    }

    /// What the device says of a zone.
    pub(super) async fn report_of(&self, zone: u32) -> Result<Reported, FilesError> {
        let mut reported = self.report_from(zone, 1).await?;
        reported.pop().ok_or(FilesError::Corrupt {
            zone,
            lba: self.lba_of(zone, 0),
            what: "the device reports no such zone",
        })
    }

    /// What the device says of all zones of the configuration, in order.
    pub(super) async fn report(&self) -> Result<Vec<Reported>, FilesError> {
        let mut all = Vec::new();
        let mut next = self.shape.zones.start;
        while next < self.shape.zones.end {
            let most = (self.shape.zones.end - next).min(ZONES_PER_REPORT);
            let some = self.report_from(next, most).await?;
            if some.is_empty() {
                return Err(FilesError::Corrupt {
                    zone: next,
                    lba: self.lba_of(next, 0),
                    what: "the device reports no such zone",
                });
            }
            next += some.len() as u32;
            all.extend(some);
        }
        Ok(all)
    }

    async fn report_from(&self, zone: u32, count: u32) -> Result<Vec<Reported>, FilesError> {
        let (header, entry) = (size_of::<ReportHeader>(), size_of::<ZoneDescriptor>());
        let op = Op::ZoneReceive {
            slba: Lba(self.lba_of(zone, 0)),
            filter: ReportFilter::ALL,
            partial: true,
            extended: false,
        };
        let buffer = Buf::zeroed(header + entry * count as usize);
        let flight = self.io.begin(self.command(op), Some(buffer));
        let answer = self.end(flight, "report", zone, 0).await?;
        let bytes = answer.data.unwrap_or(Buf::zeroed(0));
        let zones =
            ReportHeader::ref_from_prefix(&bytes).map_or(0, |(head, _)| head.nr_zones.get());
        let entries = bytes.get(header..).unwrap_or_default().chunks_exact(entry);
        Ok(entries
            .take(zones as usize)
            .filter_map(|bytes| ZoneDescriptor::read_from_bytes(bytes).ok())
            .map(|descriptor| self.reported(&descriptor))
            .collect())
    }

    fn reported(&self, descriptor: &ZoneDescriptor) -> Reported {
        let zs = descriptor.zs.zs();
        let state = match zs {
            ZoneState::EMPTY => ZoneUseState::Empty,
            ZoneState::FULL => ZoneUseState::Full,
            ZoneState::READ_ONLY => ZoneUseState::ReadOnly,
            ZoneState::OFFLINE => ZoneUseState::Offline,
            _ => ZoneUseState::Closed,
        };
        let capacity = self.shape.capacity_lbas;
        let written_lbas = match state {
            ZoneUseState::Empty => 0,
            ZoneUseState::Closed => {
                let pointer = descriptor.wp.get().saturating_sub(descriptor.zslba.get());
                pointer.min(capacity)
            }
            _ => capacity,
        };
        Reported {
            state,
            is_open: matches!(
                zs,
                ZoneState::IMPLICITLY_OPENED | ZoneState::EXPLICITLY_OPENED
            ),
            written_lbas,
        }
    }
}
