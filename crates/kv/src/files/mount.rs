//! Files after a crash, or after a clean end: there is no difference.
//!
//! The newest zone of the metadata log that begins with a whole snapshot says
//! what files there are. A batch that was being written when power was lost is
//! not whole, and the last one; whatever it said was not acknowledged. The same
//! goes for one that made its zone read-only. Then the
//! data zones are compared with what the device reports: what no file has is
//! reset, or counts as invalid until it can be.

use futures_util::future::join_all;
use zonelab_device::Nanos;
use zonelab_host::tasks::Io;
use zonelab_nvme::zns::ZoneSendAction;

use super::device::{Device, Reported};
use super::log::{Log, MetaZone};
use super::records::{self, Header, NUMBER_MAX, VERSION};
use super::table::{Record, Table};
use super::usage::ZoneUseState;
use super::zones::{Manage, Zones};
use super::{Files, FilesConfig, FilesError};

/// What a zone of the log says.
struct Found {
    zone: u32,
    epoch: u64,
    table: Table,
    /// What could not be read behind the last batch.
    failed: Option<FilesError>,
}

impl Files {
    /// Opens what [`format`](Self::format) made, as it was last synced.
    ///
    /// # Errors
    /// The configuration does not fit the device or what was formatted, there is
    /// no complete metadata, or a command failed.
    pub async fn mount(io: &Io, config: FilesConfig) -> Result<Self, FilesError> {
        if !config.keeps_data {
            return Err(FilesError::KeepsNothing);
        }
        let device = Device::new(io, &config)?;
        let reported = device.report().await?;
        let (meta, data) = reported.split_at(device.shape.meta_zones.len());
        let found = newest(&device, meta).await?;
        let meta_zones = clear_others(&device, meta, found.zone).await?;
        let zones = zones_of(&device, &config, data, &found.table, io.now())?;

        let written = meta[(found.zone - device.shape.meta_zones.start) as usize].written_lbas;
        let former = Some((found.zone, written));
        let log = Log::new(device.clone(), meta_zones, former, found.epoch);
        let files = Self::new(device, config, zones, found.table, log);
        files.settle_device(data).await?;
        files.inner.log.begin(&files.inner.table).await?;
        Ok(files)
    }

    /// Resets what holds nothing, and closes what is open.
    async fn settle_device(&self, reported: &[Reported]) -> Result<(), FilesError> {
        let garbage = self.inner.zones.borrow_mut().claim_all_garbage();
        let resets = garbage.iter().map(|zone| self.manage(*zone, Manage::Reset));
        join_all(resets)
            .await
            .into_iter()
            .collect::<Result<(), _>>()?;
        let device = &self.inner.device;
        for (zone, of) in device.shape.data_zones.clone().zip(reported) {
            self.tidy(zone).await?;
            let state = self.inner.zones.borrow().get(zone).state;
            if state == ZoneUseState::Finished && of.state == ZoneUseState::Closed {
                // It ends before its files do: nothing is to be written there.
                // Refused, it stays active, and that is all.
                match device.send(zone, ZoneSendAction::FINISH).await {
                    Ok(()) | Err(FilesError::Command { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// The zone of the log that holds the newest whole snapshot, and what it says.
/// A zone whose snapshot cannot be read counts only if there is no other: while
/// there are two, the log had not yet gone on in the newer one.
async fn newest(device: &Device, meta: &[Reported]) -> Result<Found, FilesError> {
    let mut newest: Option<Found> = None;
    let mut unreadable = None;
    for (zone, of) in device.shape.meta_zones.clone().zip(meta) {
        if matches!(of.state, ZoneUseState::Empty | ZoneUseState::Offline) {
            continue;
        }
        match scan(device, zone, *of).await {
            Ok(Some(found)) if newest.as_ref().is_none_or(|of| found.epoch > of.epoch) => {
                newest = Some(found);
            }
            Ok(_) => {}
            Err(error @ FilesError::Command { .. }) => unreadable = Some(error),
            Err(error) => return Err(error),
        }
    }
    match (newest, unreadable) {
        (
            Some(Found {
                failed: Some(error),
                ..
            }),
            _,
        )
        | (None, Some(error)) => Err(error),
        (Some(found), _) => Ok(found),
        (None, None) => Err(FilesError::NotFormatted {
            first: device.shape.meta_zones.start,
            last: device.shape.meta_zones.end - 1,
        }),
    }
}

/// Resets the zones of the log but one.
async fn clear_others(
    device: &Device,
    meta: &[Reported],
    but: u32,
) -> Result<Vec<MetaZone>, FilesError> {
    let mut zones = Vec::new();
    for (zone, of) in device.shape.meta_zones.clone().zip(meta) {
        zones.push(match of.state {
            _ if of.is_dead() => MetaZone::Dead,
            _ if zone == but => MetaZone::Used,
            ZoneUseState::Empty => MetaZone::Empty,
            _ => match device.send(zone, ZoneSendAction::RESET).await {
                Ok(()) => MetaZone::Empty,
                Err(FilesError::Command { .. }) => MetaZone::Used,
                Err(error) => return Err(error),
            },
        });
    }
    Ok(zones)
}

/// The blocks of a zone of the log, read as far as they are wanted.
struct Blocks<'a> {
    device: &'a Device,
    zone: u32,
    /// Blocks below the write pointer.
    written: u64,
    bytes: Vec<u8>,
}

impl Blocks<'_> {
    /// Reads up to block `end`, if there is so much.
    async fn want(&mut self, end: u64) -> Result<(), FilesError> {
        let lba_bytes = self.device.shape.lba_bytes;
        let have = self.bytes.len() as u64 / lba_bytes;
        let end = end.min(self.written);
        if end <= have {
            return Ok(());
        }
        // Small batches come by the dozen.
        let far = (have + self.device.shape.io_lbas).min(self.written);
        if far > end
            && let Ok(more) = self.device.read_all(self.zone, have, far - have).await
        {
            self.bytes.extend(more);
            return Ok(());
        }
        let more = self.device.read_all(self.zone, have, end - have).await?;
        self.bytes.extend(more);
        Ok(())
    }

    /// What has been read from a block on.
    fn from(&self, block: u64) -> &[u8] {
        let at = (block * self.device.shape.lba_bytes) as usize;
        self.bytes.get(at..).unwrap_or_default()
    }

    /// Blocks of the batch that seems to begin here; at least 1.
    async fn extent_of_batch(&mut self, block: u64) -> Result<u64, FilesError> {
        self.want(block + 1).await?;
        let lbas = records::lbas_of_batch(self.from(block), self.device.shape.lba_bytes);
        let lbas = lbas.map_or(1, |lbas| lbas.min(self.written - block));
        self.want(block + lbas).await?;
        Ok(lbas)
    }
}

/// Reads a zone of the log. `None`: it does not begin with a whole snapshot.
async fn scan(device: &Device, zone: u32, of: Reported) -> Result<Option<Found>, FilesError> {
    let written = of.written_lbas;
    let mut blocks = Blocks {
        device,
        zone,
        written,
        bytes: Vec::new(),
    };
    let corrupt = |block: u64, what| FilesError::Corrupt {
        zone,
        lba: device.shape.start_of(zone) + block,
        what,
    };
    let mut table = Table::default();
    let (mut block, mut index, mut epoch, mut torn) = (0, 0, 0, 0);
    let mut failed = None;
    while block < written {
        let lbas = match blocks.extent_of_batch(block).await {
            Ok(lbas) => lbas,
            Err(error) if index == 0 => return Err(error),
            Err(error) => {
                failed = (of.state != ZoneUseState::ReadOnly).then_some(error);
                break;
            }
        };
        let Some((header, records)) = records::open_batch(blocks.from(block)) else {
            torn = lbas;
            break;
        };
        if index == 0 {
            check_shape(device, &header)?;
            epoch = header.epoch;
        }
        if (header.epoch, header.index) != (epoch, index) {
            return Err(corrupt(block, "a batch is not in its place"));
        }
        if header.next_file.max(header.epoch) > NUMBER_MAX {
            return Err(corrupt(block, "no file or epoch has so high a number"));
        }
        replay(device, &mut table, records).map_err(|what| corrupt(block, what))?;
        table.next_id = table.next_id.max(header.next_file);
        block += lbas;
        index += 1;
    }
    // Only the last batch can be torn. Another one would begin right behind it.
    let end = written.min(block + torn + device.shape.io_lbas);
    // What cannot be read there may never have been written.
    let _ = blocks.want(end).await;
    for at in block..end {
        if records::open_batch(blocks.from(at)).is_some() {
            return Err(corrupt(at, "a batch follows one that is not whole"));
        }
    }
    Ok((index > 0).then_some(Found {
        zone,
        epoch,
        table,
        failed,
    }))
}

/// Repeats the records of a batch.
fn replay(device: &Device, table: &mut Table, records: &[u8]) -> Result<(), &'static str> {
    for record in records::decode(records).ok_or("a record cannot be read")? {
        if !is_possible(device, &record) {
            return Err("an extent is outside of its zone");
        }
        table
            .replay(record, device.shape.lba_bytes)
            .ok_or("a record is about a file that cannot be")?;
    }
    Ok(())
}

fn check_shape(device: &Device, header: &Header) -> Result<(), FilesError> {
    let differs = |what, found: u64, expected: u64| match found == expected {
        true => Ok(()),
        false => Err(FilesError::Mismatch {
            what,
            found,
            expected,
        }),
    };
    differs("format version", header.version.into(), VERSION.into())?;
    let names = [
        "bytes of a block",
        "zone size",
        "first zone",
        "end of zones",
    ];
    let expected = records::shape_of(&device.shape);
    for ((what, found), expected) in names.into_iter().zip(header.shape).zip(expected) {
        differs(what, found, expected)?;
    }
    Ok(())
}

/// Whether the extents of a record are in data zones.
fn is_possible(device: &Device, record: &Record) -> bool {
    let shape = &device.shape;
    let Record::Extend { extents, .. } = record else {
        return true;
    };
    extents.iter().all(|extent| {
        let end = extent.block.checked_add(shape.lbas_of(extent.bytes));
        shape.data_zones.contains(&extent.zone)
            && extent.bytes > 0
            && end.is_some_and(|end| end <= shape.capacity_lbas)
    })
}

/// The table of zones that goes with files and with what the device reports.
fn zones_of(
    device: &Device,
    config: &FilesConfig,
    reported: &[Reported],
    table: &Table,
    now: Nanos,
) -> Result<Zones, FilesError> {
    let shape = &device.shape;
    let first = shape.data_zones.start;
    let mut ends = vec![0; reported.len()];
    let extents = |each: &mut dyn FnMut(usize, u64, u64, super::Lifetime)| {
        for file in table.by_name.values() {
            for extent in file.state.borrow().extents.iter() {
                let lbas = shape.lbas_of(extent.bytes);
                let end = extent.block + lbas;
                each((extent.zone - first) as usize, lbas, end, file.lifetime);
            }
        }
    };
    extents(&mut |at, _, end, _| ends[at] = end.max(ends[at]));
    let mut places = Vec::new();
    extents(&mut |at, lbas, end, _| places.push((at, end - lbas, end)));
    places.sort_unstable();
    let overlap = |pair: &&[(usize, u64, u64)]| pair[0].0 == pair[1].0 && pair[0].2 > pair[1].1;
    if let Some(pair) = places.windows(2).find(overlap) {
        let (at, block, _) = pair[1];
        let zone = first + at as u32;
        return Err(FilesError::Corrupt {
            zone,
            lba: shape.start_of(zone) + block,
            what: "two files have the same block",
        });
    }
    let mut zones = Zones::new(shape, config, now);
    for (at, of) in reported.iter().enumerate() {
        let zone = first + at as u32;
        use ZoneUseState::{Closed, Empty, Finished, Full, Offline, Open, ReadOnly};
        match of.state {
            // Their write pointers say nothing.
            ReadOnly | Offline => zones.settle(zone, of.state, ends[at], now),
            Empty | Closed | Full if of.written_lbas < ends[at] => {
                zones.settle(zone, Finished, ends[at], now);
                zones.limit_reads(zone, of.written_lbas);
            }
            Closed if of.is_open => zones.settle(zone, Open, of.written_lbas, now),
            _ => zones.settle(zone, of.state, of.written_lbas, now),
        }
    }
    extents(&mut |at, lbas, _, lifetime| zones.adopt(first + at as u32, lbas, lifetime));
    Ok(zones)
}
