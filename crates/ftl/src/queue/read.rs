//! Reads: from where the map says, in as few commands as it allows.

use zonelab_device::{Command, DeviceQueue, Op, RejectReason, Tag};
use zonelab_nvme::Status;

use super::FtlQueue;
use super::operation::{Flight, Kind, Part};
use crate::blocks::{LogicalBlock, PhysicalBlock};
use crate::segments::Holder;

impl FtlQueue<dyn DeviceQueue + '_> {
    /// Sends reads on their way, as many as the queue below takes.
    pub(super) fn issue_reads(&mut self) {
        while let Some(mut part) = self.to_read.pop_front() {
            while part.count > 0 {
                let first = LogicalBlock(self.operations[part.operation].first + part.at);
                let (at, count) = self.run_of(first, part.count);
                let rest = Part {
                    at: part.at + count,
                    count: part.count - count,
                    ..part
                };
                let run = part.split(count);
                match at {
                    None => self.read_zeroes(run),
                    Some(at) if !self.issue_read(run, at) => {
                        let back = Part {
                            count: run.count + rest.count,
                            ..run
                        };
                        self.to_read.push_front(back);
                        return;
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Where a block is, and how many from there on, up to `most`, are behind each other
    /// on the drive, in one zone and one command (or are all nowhere).
    #[inline]
    fn run_of(&self, first: LogicalBlock, most: u32) -> (Option<PhysicalBlock>, u32) {
        let (map, shape) = (&self.core.changes.map, &self.core.shape);
        let at = map.get(first);
        let most = match at {
            None => most,
            Some(at) => {
                let (_, offset) = shape.place_of(at);
                let in_zone = shape.data_blocks() - offset;
                most.min(shape.max_transfer_blocks).min(in_zone)
            }
        };
        let mut count = 1;
        while count < most {
            let next = map.get(LogicalBlock(first.0 + count));
            if next != at.map(|at| PhysicalBlock(at.0 + count)) {
                break;
            }
            count += 1;
        }
        (at, count)
    }

    /// Blocks that are nowhere read as zeroes.
    fn read_zeroes(&mut self, part: Part) {
        let bytes = self.bytes_of(part);
        let operation = &mut self.operations[part.operation];
        let mut status = Status::SUCCESS;
        if let Some(data) = &mut operation.data {
            let data = &mut data[bytes];
            match operation.kind {
                Kind::Read => data.fill(0),
                Kind::Compare if data.iter().any(|byte| *byte != 0) => {
                    status = Status::COMPARE_FAILURE;
                }
                Kind::Compare | Kind::Verify => {}
            }
        }
        self.end_part(part, Holder::Read, status);
    }

    /// Which bytes of its operation's buffer a part has.
    #[inline]
    pub(super) fn bytes_of(&self, part: Part) -> core::ops::Range<usize> {
        let shape = &self.core.shape;
        shape.bytes(part.at)..shape.bytes(part.at + part.count)
    }

    /// Sends a read on its way. Whether the queue below took it.
    fn issue_read(&mut self, part: Part, at: PhysicalBlock) -> bool {
        let operation = &mut self.operations[part.operation];
        let bytes = self.core.shape.bytes(part.count);
        let has_whole = operation
            .data
            .as_ref()
            .is_some_and(|data| data.len() == bytes);
        let is_whole = operation.kind == Kind::Read && has_whole;
        let needs_data = operation.data.is_some() || self.core.settings.keeps_data;
        let data = match is_whole {
            true => operation.data.take(),
            false => needs_data.then(|| self.spare.buffer(part.count)),
        };
        let op = Op::Read {
            slba: self.core.shape.lba_of(at),
            nlb: part.count,
        };
        let command = Command::on(self.core.shape.nsid, op);
        let flight = self.flights.insert(Flight::Read { part, is_whole });
        match self.inner.submit(command, Tag(flight as u32), data) {
            Ok(()) => {
                self.has_submitted = true;
                true
            }
            Err(rejected) => {
                self.flights.remove(flight);
                match rejected.data {
                    Some(data) if is_whole => {
                        self.operations[part.operation].data = Some(data);
                    }
                    Some(buffer) => self.spare.keep_buffer(buffer),
                    None => {}
                }
                let is_full = matches!(rejected.reason, RejectReason::QueueFull { .. });
                if !is_full {
                    self.end_part(part, Holder::Read, Status::HOST_PATHING_ERROR);
                }
                !is_full
            }
        }
    }
}
