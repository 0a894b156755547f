//! Writes: to the zones of the queue, one after the other.

use std::sync::Arc;

use zonelab_device::{Buf, Command, DeviceQueue, Op, RejectReason, Tag};
use zonelab_nvme::Status;

use super::FtlQueue;
use super::operation::{Flight, Part};
use crate::blocks::DataZone;
use crate::core::Core;
use crate::frontier::Writer;
use crate::metrics::Counters;
use crate::segments::Holder;
use crate::settings::Placement;

/// Where the next command goes.
#[derive(Clone, Copy, Debug)]
struct Room {
    zone: DataZone,
    /// Where it will write.
    next: u32,
    blocks: u32,
}

/// Why nothing is written now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// A command under way has to end.
    Command,
    /// Upkeep has to do something.
    Upkeep,
}

/// Takes room for up to `wanted` blocks in the zone that is written, or in a new one.
fn reserve_in(core: &Core, writer: &mut Writer, wanted: u32) -> Result<Room, Hold> {
    if core.settings.placement == Placement::Write && writer.is_busy() {
        return Err(Hold::Command);
    }
    if writer.current().is_none() {
        writer.take(core.zone_for_queue().ok_or(Hold::Upkeep)?);
    }
    let zone = writer.current().ok_or(Hold::Upkeep)?;
    let blocks = core.allowance(wanted.min(zone.left()));
    if blocks == 0 {
        return Err(Hold::Upkeep);
    }
    let (zone, next) = (zone.zone, zone.begin(blocks));
    Ok(Room { zone, next, blocks })
}

impl FtlQueue<dyn DeviceQueue + '_> {
    /// Sends writes on their way, as many as may be.
    pub(super) fn issue_writes(&mut self) {
        while !self.to_write.is_empty() {
            if self.core.has_failed() {
                self.fail_writes(Status::WRITE_FAULT);
                return;
            }
            if self.core.is_starved() {
                self.fail_writes(Status::CAPACITY_EXCEEDED);
                return;
            }
            let room = match self.reserve() {
                Err(Hold::Upkeep) => {
                    self.stall();
                    // It may have been done in the meantime.
                    self.reserve()
                }
                reserved => reserved,
            };
            let room = match room {
                Ok(room) => room,
                Err(Hold::Upkeep) if self.core.is_full() => {
                    self.fail_writes(Status::CAPACITY_EXCEEDED);
                    return;
                }
                Err(_) => return,
            };
            let parts = self.gather(room.blocks);
            if !self.issue_write(room, parts) {
                return;
            }
        }
    }

    /// Blocks that the next command may write, whatever room there is: what waits and
    /// fits into one.
    fn wanted(&self) -> u32 {
        let shape = &self.core.shape;
        if self.core.settings.placement != Placement::Write {
            let first = self.to_write.front().map_or(0, |part| part.count);
            return first.min(shape.max_append_blocks);
        }
        let mut wanted = 0;
        for part in &self.to_write {
            wanted += part.count.min(shape.max_transfer_blocks);
            if wanted >= shape.max_transfer_blocks {
                return shape.max_transfer_blocks;
            }
        }
        wanted
    }

    /// Waits for upkeep.
    fn stall(&mut self) {
        if !self.is_waiting {
            Counters::add(&self.core.counters.stalls, 1);
        }
        self.wait();
        self.core.call();
    }

    /// Takes room in a zone for the next command.
    fn reserve(&mut self) -> Result<Room, Hold> {
        if self.core.must_commit() {
            self.core.ask_commit();
            return Err(Hold::Upkeep);
        }
        let wanted = self.wanted();
        let core = Arc::clone(&self.core);
        let (room, over) = self.with_writer(|writer| {
            let over = writer.put_away();
            (reserve_in(&core, writer, wanted), over)
        });
        if let Some(over) = over {
            self.core.hand_in(over);
        }
        room
    }

    /// Takes up to `most` blocks that are to be written: of one operation, if appended.
    fn gather(&mut self, most: u32) -> Vec<Part> {
        let mut parts = self.spare.parts();
        let mut left = most;
        while let Some(part) = self.to_write.front_mut() {
            parts.push(part.split(part.count.min(left)));
            left -= parts.last().map_or(0, |part| part.count);
            if part.count == 0 {
                self.to_write.pop_front();
            }
            if left == 0 {
                break;
            }
        }
        parts
    }

    /// Sends a write on its way. Whether the queue below took it.
    fn issue_write(&mut self, room: Room, parts: Vec<Part>) -> bool {
        let (data, is_whole) = self.data_of(&parts, room.blocks);
        let shape = &self.core.shape;
        let (zone, nlb) = (shape.zone_of(room.zone), room.blocks);
        let is_append = self.core.settings.placement != Placement::Write;
        let op = match is_append {
            true => Op::Append {
                zslba: shape.lba(zone, 0),
                nlb,
            },
            false => Op::Write {
                slba: shape.lba(zone, room.next),
                nlb,
            },
        };
        let command = Command::on(shape.nsid, op);
        let flight = self.flights.insert(Flight::Write {
            zone: room.zone,
            offset: (!is_append).then_some(room.next),
            parts,
            is_whole,
        });
        match self.inner.submit(command, Tag(flight as u32), data) {
            Ok(()) => {
                self.has_submitted = true;
                self.core.spend(nlb);
                true
            }
            Err(rejected) => {
                self.with_writer(|writer| writer.zone(room.zone).cancel(nlb));
                self.take_back(flight, rejected.data);
                if !matches!(rejected.reason, RejectReason::QueueFull { .. }) {
                    self.fail_writes(Status::HOST_PATHING_ERROR);
                }
                false
            }
        }
    }

    /// What a command writes, and whether that is its operation's own buffer.
    fn data_of(&mut self, parts: &[Part], blocks: u32) -> (Option<Buf>, bool) {
        let bytes = self.core.shape.bytes(blocks);
        if let [part] = parts {
            let data = &mut self.operations[part.operation].data;
            if data.as_ref().is_none_or(|data| data.len() == bytes) {
                let is_whole = data.is_some();
                let zeroes = !is_whole && self.core.settings.keeps_data;
                let data = match zeroes {
                    true => Some(Buf::zeroed(bytes)),
                    false => data.take(),
                };
                return (data, is_whole);
            }
        }
        if !self.core.settings.keeps_data {
            return (None, false);
        }
        let mut buffer = self.spare.buffer(blocks);
        let mut at = 0;
        for part in parts {
            let range = self.bytes_of(*part);
            let to = &mut buffer[at..at + range.len()];
            at += range.len();
            match &self.operations[part.operation].data {
                Some(data) => to.copy_from_slice(&data[range]),
                None => to.fill(0),
            }
        }
        (Some(buffer), false)
    }

    /// A command was not taken: its parts wait again, in front.
    fn take_back(&mut self, flight: usize, data: Option<Buf>) {
        let Flight::Write {
            parts, is_whole, ..
        } = self.flights.remove(flight)
        else {
            unreachable!("it was put there as a write");
        };
        self.give_data_back(&parts, is_whole, data);
        for part in parts.iter().rev() {
            self.to_write.push_front(*part);
        }
        self.spare.keep_parts(parts);
    }

    /// The buffer of a command goes back to where it came from.
    pub(super) fn give_data_back(&mut self, parts: &[Part], is_whole: bool, data: Option<Buf>) {
        match (is_whole, parts, data) {
            (true, [part], data) => self.operations[part.operation].data = data,
            (false, _, Some(buffer)) => self.spare.keep_buffer(buffer),
            _ => {}
        }
    }

    /// What waits to be written cannot be.
    fn fail_writes(&mut self, status: Status) {
        while let Some(part) = self.to_write.pop_front() {
            self.end_part(part, Holder::Write, status);
        }
    }
}
