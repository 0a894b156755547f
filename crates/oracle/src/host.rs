//! What a host can know about a drive: how each command must end, and what the blocks of
//! its zones hold.

use std::ops::Range;

use zonelab_device::{Command, NamespaceId, Op};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{DataStore, DriveConfig};

use crate::zones::{Effect, Zones};

/// What one logical block holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The command that wrote it; 0: it reads as zeros.
    pub tag: u32,
    /// The block of the drive that it wrote; a copy takes the data elsewhere.
    pub lba: u64,
    /// How often it changed.
    pub changes: u32,
}

/// How a command must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status; of a successful Compare, the data decides.
    pub status: Status,
    /// Its result: of an append, where it went.
    pub result: u64,
    /// Content of the buffer of a successful report.
    pub report: Option<Vec<u8>>,
    /// What happened to zones.
    pub effects: Vec<Effect>,
}

/// A drive as its host knows it. Commands take effect in the order in which they are
/// submitted.
#[derive(Clone, Debug)]
pub struct Host {
    config: DriveConfig,
    zones: Zones,
    /// By zone, by block of the zone up to its size; empty unless the drive keeps data.
    contents: Vec<Vec<Content>>,
}

impl Host {
    /// All zones empty.
    ///
    /// # Panics
    /// Zones are larger than memory.
    #[must_use]
    pub fn new(config: &DriveConfig) -> Self {
        let kept = match config.data {
            DataStore::Memory => config.zones.size_lbas,
            _ => 0,
        };
        let kept = usize::try_from(kept).expect("zones are small");
        Self {
            config: config.clone(),
            zones: Zones::new(&config.zones, &config.namespaces),
            contents: vec![vec![Content::default(); kept]; config.zones.count as usize],
        }
    }

    /// The zones.
    #[must_use]
    pub const fn zones(&self) -> &Zones {
        &self.zones
    }

    /// For how many more zones of each group of dies there is flash, if not for all.
    pub fn set_flash_left(&mut self, left: Option<Vec<u32>>) {
        self.zones.flash_left = left;
    }

    /// First block of a namespace on the drive; that of the first if there is
    /// no such namespace.
    #[must_use]
    pub fn first_lba(&self, nsid: NamespaceId) -> u64 {
        self.zones.first_lba(nsid)
    }

    /// What blocks of the drive hold.
    ///
    /// # Panics
    /// There are no such blocks.
    #[must_use]
    pub fn content(&self, slba: u64, nlb: u32) -> Vec<Content> {
        let size = self.config.zones.size_lbas;
        (slba..slba + u64::from(nlb))
            .map(|lba| {
                let zone = &self.contents[usize::try_from(lba / size).expect("few zones")];
                let offset = usize::try_from(lba % size).expect("zones are small");
                // Empty if the drive keeps no data.
                zone.get(offset).copied().unwrap_or_default()
            })
            .collect()
    }

    /// Declares empty zones full; whether that was possible.
    pub fn precondition(&mut self, zones: Range<u32>) -> bool {
        let zones = zones.start as usize..zones.end as usize;
        self.config.data == DataStore::None
            && zones.start <= zones.end
            && zones.end <= self.zones.all().len()
            && self.zones.have_flash(zones.clone())
            && self.zones.precondition_full(zones).is_ok()
    }

    /// Applies a command that has just been submitted under the name `tag`.
    pub fn apply(&mut self, command: &Command, data: Option<&[u8]>, tag: u32) -> Answer {
        let mut report = None;
        let result = if self.zones.select(command.nsid) {
            self.carry_out(command.op, data, tag, &mut report)
        } else {
            Err(Status::INVALID_NAMESPACE_OR_FORMAT)
        };
        let effects = self.zones.take_effects();
        for effect in &effects {
            if let Effect::Reset { zone } = *effect {
                self.forget(zone);
            }
        }
        Answer {
            status: result.err().unwrap_or(Status::SUCCESS),
            result: result.unwrap_or(0),
            report: report.filter(|_| result.is_ok()),
            effects,
        }
    }

    fn carry_out(
        &mut self,
        op: Op,
        data: Option<&[u8]>,
        tag: u32,
        report: &mut Option<Vec<u8>>,
    ) -> Result<u64, Status> {
        let most = self.config.front_end.max_transfer_bytes;
        match op {
            Op::Flush => Ok(0),
            // Whether a compare finds a difference is a matter of its data.
            Op::Read { slba, nlb } | Op::Compare { slba, nlb } => {
                self.transfer(nlb, most, data)?;
                self.zones.read(slba.0, nlb).map(|()| 0)
            }
            // No data goes to the host, so that its size has no limit.
            Op::Verify { slba, nlb } => {
                self.transfer(nlb, None, data)?;
                self.zones.read(slba.0, nlb).map(|()| 0)
            }
            Op::Write { slba, nlb } => {
                self.transfer(nlb, most, data)?;
                self.zones.write(slba.0, nlb)?;
                self.stamp(slba.0, nlb, data, tag);
                Ok(0)
            }
            Op::Append { zslba, nlb } => {
                let most = self.config.front_end.max_append_bytes.or(most);
                self.transfer(nlb, most, data)?;
                let slba = self.zones.append(zslba.0, nlb)?;
                self.stamp(slba, nlb, data, tag);
                Ok(slba)
            }
            Op::WriteZeroes { slba, nlb } => {
                self.transfer(nlb, None, data)?;
                self.zones.write(slba.0, nlb)?;
                self.put(slba.0, vec![Content::default(); nlb as usize]);
                Ok(0)
            }
            // Zones have no reclaim unit handles.
            Op::HandleStatus | Op::HandleUpdate { .. } => Err(Status::INVALID_OPCODE),
            Op::Deallocate { ranges } => self.deallocate(ranges, data),
            Op::Copy { sdlba, ranges } => self.copy(sdlba.0, ranges, data),
            Op::ZoneSend {
                slba,
                action,
                select_all,
            } => self.send(slba.0, action, select_all, data),
            Op::ZrwaSend { slba, action } => self.send_with_area(slba.0, action, data),
            Op::ZoneReceive {
                slba,
                filter,
                partial,
                extended,
            } => {
                let length = data.ok_or(Status::INVALID_FIELD)?.len();
                let zones = &self.zones;
                let (bytes, _) = zones.report(slba.0, filter, partial, extended, length)?;
                *report = Some(bytes);
                Ok(0)
            }
        }
    }

    /// The rules of every transfer: some blocks, at most the limit, and a
    /// buffer of their length if there is one.
    fn transfer(&self, nlb: u32, limit: Option<u32>, data: Option<&[u8]>) -> Result<(), Status> {
        let bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
        let right = data.is_none_or(|data| data.len() as u64 == bytes);
        let allowed = limit.is_none_or(|limit| bytes <= u64::from(limit));
        if nlb > 0 && right && allowed {
            Ok(())
        } else {
            Err(Status::INVALID_FIELD)
        }
    }

    /// In zones, ranges are checked, and that is all.
    fn deallocate(&self, ranges: u16, data: Option<&[u8]>) -> Result<u64, Status> {
        let data = entries(data, ranges, 16)?;
        for entry in data.chunks_exact(16) {
            let nlb = number(&entry[4..8]) as u32;
            self.zones.locate(number(&entry[8..]), nlb)?;
        }
        Ok(0)
    }

    fn copy(&mut self, sdlba: u64, ranges: u16, data: Option<&[u8]>) -> Result<u64, Status> {
        let limits = self.config.copy.ok_or(Status::INVALID_OPCODE)?;
        if ranges > limits.max_ranges {
            return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
        }
        let sources = sources(data, ranges)?;
        let mut nlb = 0;
        for (_, blocks) in &sources {
            nlb += blocks;
            if *blocks > u32::from(limits.max_range_lbas) || nlb > limits.max_lbas {
                return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
            }
        }
        let base = self.zones.start(self.zones.space.first);
        let mut copied = Vec::new();
        for (slba, blocks) in sources {
            self.zones.read(slba, blocks)?;
            copied.extend(self.content(base + slba, blocks));
        }
        self.zones.write(sdlba, nlb)?;
        self.put(sdlba, copied);
        Ok(0)
    }

    /// What a write `tag` with data puts at an address; without data, what is there stays.
    fn stamp(&mut self, slba: u64, nlb: u32, data: Option<&[u8]>, tag: u32) {
        if data.is_some() {
            let first = self.zones.start(self.zones.space.first) + slba;
            let written = (first..first + u64::from(nlb)).map(|lba| Content {
                tag,
                lba,
                changes: 0,
            });
            self.put(slba, written.collect());
        }
    }

    /// Blocks of one zone get new content.
    fn put(&mut self, slba: u64, written: Vec<Content>) {
        let (zone, offset) = self.zones.locate(slba, 1).expect("it was written");
        let content = &mut self.contents[zone];
        let first = usize::try_from(offset).expect("zones are small");
        // Empty if the drive keeps no data.
        for (block, written) in content.iter_mut().skip(first).zip(written) {
            *block = Content {
                changes: block.changes + 1,
                ..written
            };
        }
    }

    /// A zone was reset: it reads as zeros.
    fn forget(&mut self, zone: u32) {
        let blocks = self.contents[zone as usize].iter_mut();
        for block in blocks.filter(|block| block.tag != 0) {
            *block = Content {
                tag: 0,
                lba: 0,
                changes: block.changes + 1,
            };
        }
    }

    fn send(
        &mut self,
        slba: u64,
        action: ZoneSendAction,
        select_all: bool,
        data: Option<&[u8]>,
    ) -> Result<u64, Status> {
        if action == ZoneSendAction::SET_DESCRIPTOR_EXTENSION {
            // ZNS command set 1.1, section 3.4.3: the action has no Select All.
            let data = data.filter(|_| !select_all).ok_or(Status::INVALID_FIELD)?;
            self.zones.set_extension(slba, data)?;
        } else if action == ZoneSendAction::ZRWA_FLUSH && !select_all {
            self.zones.commit(slba)?;
        } else if select_all {
            self.zones.send_all(action)?;
        } else {
            self.zones.send(slba, action)?;
        }
        Ok(0)
    }

    /// Zone management that gives a zone an area too.
    fn send_with_area(
        &mut self,
        slba: u64,
        action: ZoneSendAction,
        data: Option<&[u8]>,
    ) -> Result<u64, Status> {
        match action {
            ZoneSendAction::OPEN => self.zones.open_with_area(slba)?,
            ZoneSendAction::SET_DESCRIPTOR_EXTENSION => {
                let data = data.ok_or(Status::INVALID_FIELD)?;
                self.zones.set_extension_with_area(slba, data)?;
            }
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(0)
    }

    /// Compares with what a drive says of its zones.
    ///
    /// # Panics
    /// It says something else.
    pub fn check(&self, zones: &zonelab_ssd::zones::Zones) {
        zones.assert_invariants();
        for (index, expected) in (0..).zip(self.zones.all()) {
            let zone = zonelab_device::ZoneId(index);
            let state: ZoneState = zones.state(zone);
            assert_eq!(state, expected.state, "state of zone {index}");
            assert_eq!(
                zones.written_lbas(zone),
                expected.pointer,
                "write pointer of zone {index}"
            );
            assert_eq!(
                zones.host_lbas(zone),
                expected.host,
                "blocks of the host in zone {index}"
            );
            assert_eq!(
                zones.zrwa_end_lbas(zone),
                expected.area.map(|end| end.max(expected.pointer)),
                "random write area of zone {index}"
            );
        }
        let namespaces = zones.namespaces().iter();
        let resources: Vec<(u32, u32)> = namespaces
            .map(|namespace| (namespace.open_count(), namespace.active_count()))
            .collect();
        assert_eq!(resources, self.zones.resources(), "open and active zones");
    }
}

/// The first `count` entries of `bytes` bytes each; there has to be one.
fn entries(data: Option<&[u8]>, count: u16, bytes: usize) -> Result<&[u8], Status> {
    let data = data.filter(|_| count > 0).ok_or(Status::INVALID_FIELD)?;
    data.get(..usize::from(count) * bytes)
        .ok_or(Status::INVALID_FIELD)
}

/// Source ranges of a copy: first block and number of blocks.
///
/// # Errors
/// The description of the ranges is too short, or of none.
pub fn sources(data: Option<&[u8]>, ranges: u16) -> Result<Vec<(u64, u32)>, Status> {
    let data = entries(data, ranges, 32)?;
    let source = |entry: &[u8]| (number(&entry[8..16]), number(&entry[16..18]) as u32 + 1);
    Ok(data.chunks_exact(32).map(source).collect())
}

/// A little-endian number of at most 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    bytes.iter().rev().fold(0, add)
}
