//! A host that writes zones of its own, reads them back and compares.

use zonelab_device::{Buf, Completion, Lba, Op};
use zonelab_nvme::Status;
use zonelab_nvme::zerocopy::FromBytes as _;
use zonelab_nvme::zns::{ReportFilter, ReportHeader, ZoneDescriptor, ZoneSendAction};

use super::counts::{add, count};
use super::dice::Dice;
use super::events::Known;
use super::host::{Around, DEPTH, Next, Work, is_too_late, settle};
use super::link::{Link, Lost};
use super::pattern::{BLOCK, Block};
use super::zone::{Doubt, Zone};

/// Zones of a host.
pub(crate) const ZONES: u32 = 8;
/// From the start of a zone to that of the next, and what can be written, in blocks, as the
/// profile says.
const SIZE_LBAS: u64 = 1024;
const CAPACITY_LBAS: u32 = 512;
/// Most blocks of a write: more than come with their command, so that the server has to ask for
/// the data of some.
const MOST_LBAS: u64 = 64;
/// Blocks that are read at a time when everything is.
const READ_LBAS: u32 = 64;
/// Appends of a zone in flight at most.
const APPENDS: u32 = 4;

/// A command in flight. Zones are meant by their index among those of the host.
#[derive(Debug)]
enum Pending {
    Write {
        zone: usize,
        serial: u32,
        /// Appends have none.
        at: Option<u32>,
        blocks: u32,
    },
    Read {
        zone: usize,
        at: u32,
    },
    Reset {
        zone: usize,
        has_appends: bool,
    },
    Finish {
        zone: usize,
    },
    /// Generation of each zone, and what of it was acknowledged before.
    Flush(Vec<(u32, u32)>),
}

/// What is in flight of a zone.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    commands: u32,
    /// Blocks that are being written.
    blocks: u32,
    writes: u32,
}

pub(crate) struct ZonedHost {
    zones: Vec<Zone>,
    busy: Vec<Busy>,
    pending: Vec<Option<Pending>>,
    serial: u32,
    known: Option<Known>,
}

impl ZonedHost {
    /// Host `number` of the zoned drive, from 0 on, called `host`.
    pub(crate) fn new(host: u32, number: u32) -> Self {
        let zones = (number * ZONES..(number + 1) * ZONES)
            .map(|zone| Zone::new(host, zone, CAPACITY_LBAS, zone % 2 == 1));
        Self {
            zones: zones.collect(),
            busy: vec![Busy::default(); ZONES as usize],
            pending: (0..DEPTH).map(|_| None).collect(),
            serial: 0,
            known: None,
        }
    }

    fn start(&self, zone: usize) -> u64 {
        u64::from(self.zones[zone].number) * SIZE_LBAS
    }

    /// Submits a command and remembers it.
    fn send(
        &mut self,
        link: &mut Link,
        (op, data): (Op, Option<Buf>),
        pending: Pending,
    ) -> Result<(), Lost> {
        let slot = self.pending.iter().position(Option::is_none);
        let slot = slot.expect("no more are in flight than there are slots");
        if let Some((zone, blocks)) = pending.concerns() {
            self.busy[zone].commands += 1;
            self.busy[zone].blocks += blocks;
            self.busy[zone].writes += u32::from(blocks > 0);
        }
        self.pending[slot] = Some(pending);
        // One that is not taken since the connection is gone gets no answer either.
        link.submit(op, slot as u32, data)
    }

    /// Takes a command out of those in flight.
    fn take(&mut self, slot: usize) -> Pending {
        let pending = self.pending[slot].take().expect("it was in flight");
        if let Some((zone, blocks)) = pending.concerns() {
            self.busy[zone].commands -= 1;
            self.busy[zone].blocks -= blocks;
            self.busy[zone].writes -= u32::from(blocks > 0);
        }
        pending
    }

    fn write(&mut self, link: &mut Link, index: usize, dice: &mut Dice) -> Result<(), Lost> {
        let (zone, busy) = (&self.zones[index], self.busy[index]);
        let most = if zone.has_appends { APPENDS } else { 1 };
        let room = zone.capacity() - zone.end.min(zone.capacity());
        let room = room.saturating_sub(busy.blocks);
        if zone.is_full || room == 0 || busy.writes >= most {
            return Ok(());
        }
        let blocks = (dice.within(1, MOST_LBAS) as u32).min(room);
        self.serial += 1;
        let (serial, at) = (self.serial, (!zone.has_appends).then_some(zone.end));
        let mut data = Buf::zeroed(blocks as usize * BLOCK);
        for (number, bytes) in (0..).zip(data.chunks_exact_mut(BLOCK)) {
            zone.block(serial, at, number).write(bytes);
        }
        let start = self.start(index);
        let op = match at {
            Some(at) => Op::Write {
                slba: Lba(start + u64::from(at)),
                nlb: blocks,
            },
            None => Op::Append {
                zslba: Lba(start),
                nlb: blocks,
            },
        };
        let pending = Pending::Write {
            zone: index,
            serial,
            at,
            blocks,
        };
        self.send(link, (op, Some(data)), pending)
    }

    /// Reads acknowledged blocks that lie side by side.
    fn read(&mut self, link: &mut Link, index: usize, dice: &mut Dice) -> Result<(), Lost> {
        let zone = &self.zones[index];
        if zone.acked() == 0 {
            return Ok(());
        }
        let at = dice.below(zone.acked().into()) as u32;
        let last = dice.within(
            at.into(),
            (u64::from(at) + MOST_LBAS).min(u64::from(zone.acked()) - 1),
        );
        let blocks = (at..=last as u32).take_while(|offset| zone.is_known(*offset));
        let blocks = blocks.count() as u32;
        match blocks {
            0 => Ok(()),
            _ => self.read_of(link, index, at, blocks),
        }
    }

    fn read_of(&mut self, link: &mut Link, zone: usize, at: u32, blocks: u32) -> Result<(), Lost> {
        let op = Op::Read {
            slba: Lba(self.start(zone) + u64::from(at)),
            nlb: blocks,
        };
        let data = Buf::zeroed(blocks as usize * BLOCK);
        self.send(link, (op, Some(data)), Pending::Read { zone, at })
    }

    /// Resets or finishes a zone of which nothing is in flight.
    fn manage(&mut self, link: &mut Link, zone: usize, dice: &mut Dice) -> Result<(), Lost> {
        let of = &self.zones[zone];
        // Most zones are filled first.
        let is_time = of.is_full || of.end > 0 && dice.percent(5);
        if self.busy[zone].commands > 0 || !is_time {
            return Ok(());
        }
        let (action, pending) = match !of.is_full && dice.percent(50) {
            true => (ZoneSendAction::FINISH, Pending::Finish { zone }),
            false => {
                let has_appends = dice.percent(50);
                (ZoneSendAction::RESET, Pending::Reset { zone, has_appends })
            }
        };
        let op = Op::ZoneSend {
            slba: Lba(self.start(zone)),
            action,
            select_all: false,
        };
        self.send(link, (op, None), pending)
    }

    fn compare(&mut self, (zone, at): (usize, u32), data: &[u8], around: &Around<'_>) {
        let counts = &around.stage.counts;
        let zone = &mut self.zones[zone];
        for (offset, bytes) in (at..).zip(data.chunks_exact(BLOCK)) {
            match zone.check(offset, Block::read(bytes)) {
                Ok(is_lost) => add(&counts.lost_blocks, is_lost.into()),
                Err(violation) => panic!("{violation}"),
            }
        }
        add(&counts.verified_bytes, data.len() as u64);
    }

    /// A command that failed: is there a reason why it may?
    fn failed(&mut self, status: Status, pending: &Pending) -> Next {
        let excuse = match pending {
            // Writes that got no answer came first.
            Pending::Write { zone, .. } => {
                let is_possible = matches!(
                    status,
                    Status::ZONE_INVALID_WRITE | Status::ZONE_IS_FULL | Status::ZONE_BOUNDARY_ERROR
                );
                is_possible && self.zones[*zone].has_rivals()
            }
            _ => false,
        };
        let zone = pending
            .concerns()
            .map(|(zone, _)| self.zones[zone].to_string());
        assert!(
            excuse,
            "{pending:?} ends with {status}: {}",
            zone.unwrap_or_default()
        );
        Next::Look
    }
}

impl Pending {
    /// The zone, and how many blocks of it are written.
    fn concerns(&self) -> Option<(usize, u32)> {
        match *self {
            Self::Write { zone, blocks, .. } => Some((zone, blocks)),
            Self::Read { zone, .. } | Self::Reset { zone, .. } | Self::Finish { zone } => {
                Some((zone, 0))
            }
            Self::Flush(_) => None,
        }
    }
}

impl Work for ZonedHost {
    fn look(&mut self, link: &mut Link, around: &Around<'_>) -> Result<(), Lost> {
        let first = Lba(self.start(0));
        let op = Op::ZoneReceive {
            slba: first,
            filter: ReportFilter::ALL,
            partial: true,
            extended: false,
        };
        let bytes = size_of::<ReportHeader>() + ZONES as usize * size_of::<ZoneDescriptor>();
        let reported = link.run(op, Some(Buf::zeroed(bytes)), around.both())?;
        assert_eq!(reported.status, Status::SUCCESS, "a zone report");
        let report = reported.data.expect("a report comes in the buffer for it");
        // Before anything was known, nothing could be lost.
        let between = self.known.unwrap_or(link.known).between(link.known);
        let (_, descriptors) = report.split_at(size_of::<ReportHeader>());
        let descriptors = descriptors.chunks_exact(size_of::<ZoneDescriptor>());
        for (zone, bytes) in self.zones.iter_mut().zip(descriptors) {
            let of = ZoneDescriptor::read_from_bytes(bytes).expect("it is as long as one");
            assert_eq!(of.zslba.get(), u64::from(zone.number) * SIZE_LBAS);
            let written = of.wp.get().wrapping_sub(of.zslba.get()) as u32;
            match zone.found(of.zs.zs(), written, between) {
                Ok(lost) => add(&around.stage.counts.lost_blocks, lost.into()),
                Err(violation) => panic!("{violation}"),
            }
        }
        self.known = Some(link.known);
        // Whatever may have been lost is looked at at once.
        match between.may_be_event {
            true => self.verify(link, around),
            false => Ok(()),
        }
    }

    fn submit(&mut self, link: &mut Link, dice: &mut Dice) -> Result<(), Lost> {
        let (zone, action) = (dice.below(ZONES.into()) as usize, dice.below(100));
        if action >= 97 {
            let zones = self.zones.iter();
            let now = zones.map(|zone| (zone.generation, zone.acked())).collect();
            return self.send(link, (Op::Flush, None), Pending::Flush(now));
        }
        let is_managed = self.pending.iter().flatten().any(|pending| {
            let (Pending::Reset { zone: of, .. } | Pending::Finish { zone: of }) = pending else {
                return false;
            };
            *of == zone
        });
        if self.zones[zone].is_in_doubt() || is_managed {
            return Ok(());
        }
        match action {
            0..55 => self.write(link, zone, dice),
            55..85 => self.read(link, zone, dice),
            _ => self.manage(link, zone, dice),
        }
    }

    fn ended(&mut self, completion: Completion, around: &Around<'_>) -> Next {
        let pending = self.take(completion.tag.0 as usize);
        if is_too_late(&completion, around) {
            return Next::GoOn;
        }
        if !completion.status.is_success() {
            return self.failed(completion.status, &pending);
        }
        let counts = &around.stage.counts;
        match pending {
            Pending::Write {
                zone,
                serial,
                at,
                blocks,
            } => {
                let start = self.start(zone);
                let at = at.unwrap_or_else(|| completion.result.wrapping_sub(start) as u32);
                let end = at.checked_add(blocks);
                let fits = end.is_some_and(|end| end <= CAPACITY_LBAS);
                assert!(fits, "an append of zone {zone} says {}", completion.result);
                self.zones[zone].written(serial, at, blocks);
                add(&counts.written_bytes, u64::from(blocks) * BLOCK as u64);
            }
            Pending::Read { zone, at } => {
                let data = completion.data.expect("a read brings its buffer back");
                self.compare((zone, at), &data, around);
            }
            Pending::Reset { zone, has_appends } => {
                self.zones[zone].was_reset(has_appends);
                count(&counts.zone_resets);
            }
            Pending::Finish { zone } => {
                self.zones[zone].was_finished();
                count(&counts.zone_finishes);
            }
            Pending::Flush(before) => {
                for (zone, (generation, acked)) in self.zones.iter_mut().zip(before) {
                    zone.flushed(generation, acked);
                }
                count(&counts.flushes);
            }
        }
        Next::GoOn
    }

    fn lost(&mut self) {
        for slot in 0..self.pending.len() {
            if self.pending[slot].is_none() {
                continue;
            }
            match self.take(slot) {
                Pending::Write {
                    zone,
                    serial,
                    at,
                    blocks,
                } => self.zones[zone].write_lost(serial, at, blocks),
                Pending::Reset { zone, .. } => self.zones[zone].doubt(Doubt::Reset),
                Pending::Finish { zone } => self.zones[zone].doubt(Doubt::Finish),
                Pending::Read { .. } | Pending::Flush(_) => (),
            }
        }
    }

    fn verify(&mut self, link: &mut Link, around: &Around<'_>) -> Result<(), Lost> {
        let mut done = Vec::new();
        for zone in 0..self.zones.len() {
            if self.zones[zone].is_in_doubt() {
                continue;
            }
            // In order: where a full zone begins to be empty, it is so to its end.
            let capacity = self.zones[zone].capacity();
            for at in (0..capacity).step_by(READ_LBAS as usize) {
                self.read_of(link, zone, at, READ_LBAS.min(capacity - at))?;
                settle(self, link, &mut done, around)?;
            }
        }
        Ok(())
    }
}
