//! What is measured without a network between: a drive with a store, and a plain
//! file.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, anyhow, ensure};
use zonelab_device::{Buf, Command, Completion, Lba, NamespaceId, Op, QueueId, Tag};
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::{Drive, DriveModel};

use super::place::{Place, Removed, Syncs};
use super::{Case, Subject, Work};

/// What blocks are filled with: not zeros, which a store does not write.
const FILL: u8 = 0xa5;

/// Data of a write.
pub(super) fn filled(bytes: u32) -> Buf {
    let mut buf = Buf::zeroed(bytes as usize);
    buf.fill(FILL);
    buf
}

/// Where the writes of one of some hosts go: through zones of its own, in order.
pub(super) struct Places {
    zone_lbas: u64,
    capacity_lbas: u64,
    zones: u64,
    nlb: u32,
    host: u64,
    hosts: u64,
    /// Blocks before the next write.
    written_lbas: u64,
}

impl Places {
    pub(super) fn new(config: &DriveConfig, bytes: u32, (host, hosts): (usize, usize)) -> Self {
        Self {
            zone_lbas: config.zones.size_lbas,
            capacity_lbas: config.zones.capacity_lbas,
            zones: u64::from(config.zones.count),
            nlb: bytes / config.lba_bytes,
            host: host as u64,
            hosts: hosts as u64,
            written_lbas: 0,
        }
    }
}

impl Iterator for Places {
    /// First block and number of blocks.
    type Item = (Lba, u32);

    fn next(&mut self) -> Option<Self::Item> {
        let turn = self.written_lbas / self.capacity_lbas;
        let offset = self.written_lbas % self.capacity_lbas;
        let zone = turn * self.hosts + self.host;
        self.written_lbas += u64::from(self.nlb);
        (zone < self.zones).then_some((Lba(zone * self.zone_lbas + offset), self.nlb))
    }
}

/// A drive with a store. Commands that are handed over together are kept together,
/// as the server does with those that it finds in one turn of its loop.
pub(super) struct Stored {
    drive: Drive,
    syncs: Syncs,
    places: Places,
    done: Vec<Completion>,
    buffers: Vec<Buf>,
    _file: Removed,
}

impl Stored {
    pub(super) fn new(
        place: &Place,
        config: &DriveConfig,
        case: &Case,
        has_checksums: bool,
    ) -> Result<Self> {
        let (file, drive, syncs) = place.drive(config, has_checksums)?;
        Ok(Self {
            drive,
            syncs,
            places: Places::new(config, case.bytes, (0, 1)),
            done: Vec::new(),
            buffers: Vec::new(),
            _file: file,
        })
    }

    fn submit(&mut self, op: Op, data: Option<Buf>) -> Result<()> {
        let nsid = NamespaceId(1);
        let command = Command::on(nsid, op);
        let now = self.drive.now();
        self.drive
            .submit(now, QueueId(0), Tag(0), command, data)
            .map_err(|rejected| anyhow!("{:?}", rejected.reason))
    }

    /// Until `count` commands are done, and kept.
    fn complete(&mut self, count: usize) -> Result<()> {
        while self.done.len() < count {
            let at = self.drive.next_event().context("the drive stands still")?;
            self.drive.advance(at, &mut self.done);
        }
        self.drive.keep()?;
        for completion in self.done.drain(..) {
            ensure!(completion.status.is_success(), "{}", completion.status);
            self.buffers.extend(completion.data);
        }
        Ok(())
    }

    fn write(&mut self, bytes: u32) -> Result<Option<()>> {
        let Some((slba, nlb)) = self.places.next() else {
            return Ok(None);
        };
        let data = self.buffers.pop().unwrap_or_else(|| filled(bytes));
        self.submit(Op::Write { slba, nlb }, Some(data))?;
        Ok(Some(()))
    }
}

impl Subject for Stored {
    fn step(&mut self, case: &Case) -> Result<Option<u64>> {
        for _ in 0..case.count {
            if self.write(case.bytes)?.is_none() {
                return Ok(None);
            }
        }
        self.complete(case.count)?;
        if case.work == Work::Flush {
            self.submit(Op::Flush, None)?;
            self.complete(1)?;
        }
        Ok(Some(case.count as u64))
    }

    fn syncs(&self) -> u64 {
        self.syncs.count()
    }
}

/// A file that gets the same writes, and is synchronised as often as hosts wait.
pub(super) struct Plain {
    file: File,
    lba_bytes: u64,
    hosts: Vec<Places>,
    data: Buf,
    syncs: u64,
    _file: Removed,
}

impl Plain {
    pub(super) fn new(place: &Place, config: &DriveConfig, case: &Case) -> Result<Self> {
        let lba_bytes = u64::from(config.lba_bytes);
        let zones = u64::from(config.zones.count);
        let (removed, file) = place.plain(zones * config.zones.size_lbas * lba_bytes)?;
        let hosts = case.hosts();
        Ok(Self {
            file,
            lba_bytes,
            hosts: (0..hosts)
                .map(|host| Places::new(config, case.bytes, (host, hosts)))
                .collect(),
            data: filled(case.bytes),
            syncs: 0,
            _file: removed,
        })
    }
}

impl Subject for Plain {
    fn step(&mut self, case: &Case) -> Result<Option<u64>> {
        let hosts = self.hosts.len();
        for nth in 0..case.count {
            let Some((slba, _)) = self.hosts[nth % hosts].next() else {
                return Ok(None);
            };
            self.file
                .write_all_at(&self.data, slba.0 * self.lba_bytes)?;
        }
        if case.work != Work::Write {
            self.file.sync_data()?;
            self.syncs += 1;
        }
        Ok(Some(case.count as u64))
    }

    fn syncs(&self) -> u64 {
        self.syncs
    }
}
