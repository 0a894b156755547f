//! What becomes of commands when they have ended.

use zonelab_device::{Buf, Completion, DeviceQueue};
use zonelab_nvme::Status;

use super::FtlQueue;
use super::operation::{Flight, Kind, Part};
use crate::blocks::{DataZone, LogicalBlock, MapChange, PhysicalBlock};
use crate::metrics::Counters;
use crate::segments::{Holder, Segments};

/// Zones that may fail under one operation before it fails.
const MOST_FAILURES: u32 = 4;

impl FtlQueue<dyn DeviceQueue + '_> {
    /// A command has ended.
    pub(super) fn land(&mut self, completion: Completion) {
        let Completion {
            tag,
            status,
            result,
            found,
            data,
            ..
        } = completion;
        // A device that answers what nobody asked is not listened to.
        let Some(flight) = self.flights.try_remove(tag.0 as usize) else {
            return;
        };
        match flight {
            Flight::Load { load, part, want } => self.land_load((load, part, want), status, data),
            Flight::Read { part, is_whole } => {
                let operation = &mut self.operations[part.operation];
                operation.found = operation.found.with(found);
                self.land_read(part, is_whole, status, data);
            }
            Flight::Write {
                zone,
                offset,
                parts,
                is_whole,
            } => {
                self.give_data_back(&parts, is_whole, data);
                let (place, status) = match status.is_success() {
                    true => self.place_of(zone, offset, result, &parts),
                    false => (None, status),
                };
                match place {
                    Some(offset) => self.land_write(zone, offset, &parts),
                    None => self.land_failure(zone, &parts, status),
                }
                self.spare.keep_parts(parts);
            }
        }
    }

    fn land_read(&mut self, part: Part, is_whole: bool, status: Status, data: Option<Buf>) {
        let bytes = self.bytes_of(part);
        let operation = &mut self.operations[part.operation];
        let mut status = status;
        match data {
            data if is_whole => operation.data = data,
            Some(buffer) => {
                if let Some(own) = &mut operation.data
                    && status.is_success()
                {
                    let own = &mut own[bytes];
                    match operation.kind {
                        Kind::Read => own.copy_from_slice(&buffer),
                        Kind::Compare if *own != *buffer => status = Status::COMPARE_FAILURE,
                        Kind::Compare | Kind::Verify => {}
                    }
                }
                self.spare.keep_buffer(buffer);
            }
            None => {}
        }
        self.end_part(part, Holder::Read, status);
    }

    /// Where in its zone a command has written; of an append, what the drive says, if
    /// that can be.
    fn place_of(
        &self,
        zone: DataZone,
        offset: Option<u32>,
        result: u64,
        parts: &[Part],
    ) -> (Option<u32>, Status) {
        if let Some(offset) = offset {
            return (Some(offset), Status::SUCCESS);
        }
        let shape = &self.core.shape;
        let blocks: u32 = parts.iter().map(|part| part.count).sum();
        let start = shape.lba(shape.zone_of(zone), 0).0;
        let offset = result.checked_sub(start);
        let most = u64::from(shape.data_blocks() - blocks);
        match offset.filter(|offset| *offset <= most) {
            Some(offset) => (Some(offset as u32), Status::SUCCESS),
            None => (None, Status::INTERNAL_ERROR),
        }
    }

    fn land_write(&mut self, zone: DataZone, offset: u32, parts: &[Part]) {
        let mut at = offset;
        for part in parts {
            let first = LogicalBlock(self.operations[part.operation].first + part.at);
            let to = self.core.shape.block_at(zone, at);
            self.with_writer(|writer| writer.zone(zone).note(at, first, part.count));
            let change = MapChange {
                first,
                count: part.count,
                to: Some(PhysicalBlock(to.0)),
            };
            self.core.put(&self.lane, change);
            at += part.count;
        }
        let blocks = at - offset;
        Counters::add(&self.core.counters.host_written, blocks.into());
        self.end_command(zone, false);
        for part in parts {
            self.end_part(*part, Holder::Write, Status::SUCCESS);
        }
        if self.core.should_commit() && !self.core.has_asked() {
            self.core.ask_commit();
        }
        let segments = self.core.changes.map.segments();
        if segments.is_some_and(Segments::wants_checkpoint) {
            self.core.call();
        }
    }

    /// A write failed: its zone is written no more, and its blocks go to another one if
    /// it was the zone's fault.
    fn land_failure(&mut self, zone: DataZone, parts: &[Part], status: Status) {
        if status == Status::CAPACITY_EXCEEDED {
            // The drive has no room, and nothing is wrong with the zone: it is as it was.
            let blocks = parts.iter().map(|part| part.count).sum();
            self.with_writer(|writer| writer.give_back(zone, blocks));
            self.end_command(zone, false);
            for part in parts {
                self.end_part(*part, Holder::Write, status);
            }
            return;
        }
        self.end_command(zone, true);
        for part in parts.iter().rev() {
            let operation = &mut self.operations[part.operation];
            operation.failures += 1;
            if is_of_the_zone(status) && operation.failures <= MOST_FAILURES {
                self.to_write.push_front(*part);
            } else {
                self.end_part(*part, Holder::Write, status);
            }
        }
    }
}

/// Whether a write that ended so may well succeed in another zone.
const fn is_of_the_zone(status: Status) -> bool {
    matches!(
        status,
        Status::WRITE_FAULT
            | Status::ZONE_IS_FULL
            | Status::ZONE_IS_READ_ONLY
            | Status::ZONE_IS_OFFLINE
            | Status::ZONE_INVALID_WRITE
            | Status::ZONE_BOUNDARY_ERROR
    )
}
