//! Writes to a conventional namespace, and zeroes.
//!
//! The table maps units of `mapping_unit`. A write of a part of a unit first reads what the
//! unit holds, and then writes it whole to the end of the log (read-modify-write). What it
//! keeps is what the unit holds when it gets its new place: another write may have come
//! between.

use zonelab_device::{Lba, Op, ZoneId};
use zonelab_nvme::Status;

use super::streams::Stream;
use super::{Conventional, Role};
use crate::contents::{Data, NotWritten, Unreadable};
use crate::drive::{BackEnd, Request};
use crate::flash::{BlockRange, Target};

/// Blocks of a write that get their places together.
#[derive(Clone, Copy)]
struct Piece {
    /// The first, in the namespace.
    block: u32,
    /// How many the host writes.
    count: u32,
    /// Units that they are in.
    units: u32,
    /// Blocks of the write before them.
    done: u32,
}

impl Conventional {
    /// The front end lets a write, or zeroes, through.
    pub(super) fn start_write(&mut self, end: &mut BackEnd<'_>, index: u32) {
        let groups = self.read_rest(end, index);
        end.core.requests.at(index).pending = groups;
        if groups == 0 {
            self.rest_was_read(end, index);
        }
    }

    /// What the units hold that a write covers in part is known.
    pub(crate) fn rest_was_read(&mut self, end: &mut BackEnd<'_>, index: u32) {
        if self.waiting.is_empty() || !self.asks_for_room(end, index) {
            self.write_conventional(end, index);
        } else {
            self.waiting.push_back(index);
        }
    }

    /// Reads units that a write covers in part, and that hold something. Returns the number
    /// of groups of flash operations.
    fn read_rest(&mut self, end: &mut BackEnd<'_>, index: u32) -> u32 {
        if self.log.unit_lbas() == 1 {
            return 0;
        }
        let mut groups = 0;
        for unit in self.units_in_part(end, index).into_iter().flatten() {
            if let Some(place) = self.log.place_of(unit) {
                groups += self.read_log(end, index, place, 1);
            }
        }
        groups
    }

    /// The units that a write begins and ends in, if it does not cover them.
    fn units_in_part(&self, end: &mut BackEnd<'_>, index: u32) -> [Option<u32>; 2] {
        let unit_lbas = self.log.unit_lbas();
        let op = end.core.requests.at(index).op;
        let first = self.block_of(Lba(op.first_block()));
        let behind = first + op.nlb();
        let is_part = |unit: &u32| unit * unit_lbas < first || (unit + 1) * unit_lbas > behind;
        let (head, tail) = (first / unit_lbas, (behind - 1) / unit_lbas);
        let tail = Some(tail).filter(|tail| *tail != head);
        [Some(head).filter(is_part), tail.filter(is_part)]
    }

    /// A write takes room in the log. Zeroes do for units that they cover in part: the others
    /// hold nothing from then on.
    fn asks_for_room(&self, end: &mut BackEnd<'_>, index: u32) -> bool {
        if let Op::Write { .. } = end.core.requests.at(index).op {
            return true;
        }
        let parts = self.units_in_part(end, index).into_iter().flatten();
        let mut holding = parts.filter(|unit| self.log.place_of(*unit).is_some());
        holding.next().is_some()
    }

    /// Gives the blocks of a write their places, as far as there is room, and
    /// sends them on. What is left waits for collection. Returns whether
    /// nothing is.
    fn write_conventional(&mut self, end: &mut BackEnd<'_>, index: u32) -> bool {
        let op = end.core.requests.at(index).op;
        let (first, nlb) = (self.block_of(Lba(op.first_block())), op.nlb());
        let is_zeroes = matches!(op, Op::WriteZeroes { .. });
        let unit_lbas = self.log.unit_lbas();
        let placement = end.core.requests.at(index).placement;
        let stream = self.log.streams().of_handle(placement);
        let stream = stream.unwrap_or(Stream::DEFAULT);
        loop {
            // How far it got is in the result, which a write does not have.
            let done = end.core.requests.at(index).result as u32;
            let (block, left) = (first + done, nlb - done);
            if left == 0 {
                break;
            }
            if self.log.is_read_only() {
                let status = Status::NAMESPACE_WRITE_PROTECTED;
                return end.core.write_fails(index, nlb, status);
            }
            if is_zeroes {
                match self.zero_without_writing(end, block, left) {
                    Ok(0) => {}
                    Ok(count) => {
                        end.core.requests.at(index).result += u64::from(count);
                        continue;
                    }
                    Err(why) => return end.core.write_fails(index, nlb, why.status()),
                }
            }
            let room = self.log.room(stream);
            if room == 0 {
                self.waiting.push_front(index);
                self.collect_if_needed(end);
                return false;
            }
            let skipped = block % unit_lbas;
            let asked = match is_zeroes {
                true => 1,
                false => (skipped + left).div_ceil(unit_lbas),
            };
            let units = room.min(asked);
            let piece = Piece {
                block,
                count: (units * unit_lbas - skipped).min(left),
                units,
                done,
            };
            let from = self.log.next_place(stream);
            if let Err(why) = self.put_data(end, index, from, piece) {
                return end.core.write_fails(index, nlb, why.status());
            }
            let unit = block / unit_lbas;
            for unit in unit..unit + units {
                self.log.append(stream, unit);
            }
            let request = end.core.requests.at(index);
            request.result += u64::from(piece.count);
            request.pending += 1;
            self.write_log(end, from, units, Role::Part(index));
        }
        if end.core.requests.at(index).pending == 0 {
            end.core.conclude_conventional(index);
        }
        self.collect_if_needed(end);
        true
    }

    /// Zeroes of whole units, or of parts of one that holds nothing, take no room. Returns
    /// how many blocks are done so; 0: the first are a part of a unit that holds something.
    fn zero_without_writing(
        &mut self,
        end: &mut BackEnd<'_>,
        block: u32,
        left: u32,
    ) -> Result<u32, NotWritten> {
        let unit_lbas = self.log.unit_lbas();
        let skipped = block % unit_lbas;
        if skipped == 0 && left >= unit_lbas {
            let count = left / unit_lbas * unit_lbas;
            self.forget_blocks(end, block, count)?;
            return Ok(count);
        }
        Ok(match self.log.place_of(block / unit_lbas) {
            Some(_) => 0,
            None => (unit_lbas - skipped).min(left),
        })
    }

    /// Puts the data of a piece of a write to its places: what the host wrote, and around it
    /// what its units hold.
    fn put_data(
        &mut self,
        end: &mut BackEnd<'_>,
        index: u32,
        from: u32,
        piece: Piece,
    ) -> Result<(), NotWritten> {
        if end.core.data.is_none() {
            return Ok(());
        }
        let lba_bytes = end.core.config.lba_bytes as usize;
        let unit_lbas = self.log.unit_lbas();
        let (zone, offset) = self.log.position(from);
        let skipped = piece.block % unit_lbas;
        let first = piece.block - skipped;
        let lbas = piece.units * unit_lbas;
        for beside in (0..skipped).chain(skipped + piece.count..lbas) {
            let to = (zone, offset + beside);
            match self.log.block_position(first + beside) {
                Some(at) => self.copy_block(end, at, to)?,
                None => zero(end, to, 1)?,
            }
        }
        let written = (zone, offset + skipped);
        let request = end.core.requests.at(index);
        let is_zeroes = matches!(request.op, Op::WriteZeroes { .. });
        let Some(data) = &mut end.core.data else {
            return Ok(());
        };
        if let Some(buf) = request.data.as_deref().filter(|_| !is_zeroes) {
            let done = piece.done as usize;
            let bytes = done * lba_bytes..(done + piece.count as usize) * lba_bytes;
            data.write(zone, u64::from(written.1) * lba_bytes as u64, &buf[bytes])?;
        } else if is_zeroes {
            zero(end, written, piece.count)?;
        }
        match end.core.data.as_mut().and_then(Data::outside) {
            Some(contents) => contents.place(zone, offset, first, lbas),
            None => Ok(()),
        }
    }

    /// Copies the data of a block from one place of the log to another, each a zone and a
    /// block in it.
    pub(super) fn copy_block(
        &mut self,
        end: &mut BackEnd<'_>,
        (from, from_lba): (ZoneId, u32),
        (to, to_lba): (ZoneId, u32),
    ) -> Result<(), NotWritten> {
        let lba_bytes = u64::from(end.core.config.lba_bytes);
        let Some(data) = &mut end.core.data else {
            return Ok(());
        };
        self.bytes.resize(lba_bytes as usize, 0);
        let read = data.read(from, u64::from(from_lba) * lba_bytes, &mut self.bytes);
        let begin = u64::from(to_lba) * lba_bytes;
        match (read, data.outside()) {
            // It must not become readable by being moved.
            (Err(Unreadable), Some(contents)) => {
                contents.write_unreadable(to, begin..begin + lba_bytes)
            }
            _ => data.write_moved(to, begin, &self.bytes),
        }
    }

    /// Writes that wait for room go on, in order.
    pub(super) fn waiting_writes_go_on(&mut self, end: &mut BackEnd<'_>) {
        while let Some(index) = self.waiting.pop_front() {
            if !self.write_conventional(end, index) {
                return;
            }
        }
    }

    /// Writes `units` units of one zone, to which they have been appended,
    /// from a place on.
    pub(super) fn write_log(&mut self, end: &mut BackEnd<'_>, place: u32, units: u32, role: Role) {
        let (nsid, (zone, first)) = (self.nsid, self.log.position(place));
        let count = units * self.log.unit_lbas();
        let slba = Lba(end.core.zones.start(zone).0 + u64::from(first));
        let extent = end.core.zones.write(slba, count);
        debug_assert!(
            extent.is_ok(),
            "a log writes its zones in order: {extent:?}"
        );
        let physical = end.core.flash.map(zone);
        let range = BlockRange { first, count };
        let op = Op::Write { slba, nlb: count };
        let mut request = Request::internal(nsid, op, role);
        request.generation = end.core.zones.generation(zone);
        if first == 0 {
            let end = &*end;
            self.log.note_durable(|zone| end.durable_lbas(zone));
        }
        self.parts += u32::from(matches!(role, Role::Part(_)));
        if let Some(buffer) = &mut end.buffer {
            buffer.holds_collected(zone, matches!(role, Role::Collection(_)));
        }
        request.target = Target { physical, range };
        let index = end.core.insert_internal(request);
        end.issue_write(index);
    }
}

/// Zeros in `count` blocks of a zone, which a write that failed may have left something in.
fn zero(end: &mut BackEnd<'_>, (zone, first): (ZoneId, u32), count: u32) -> Result<(), NotWritten> {
    let lba_bytes = u64::from(end.core.config.lba_bytes);
    let range = u64::from(first) * lba_bytes..u64::from(first + count) * lba_bytes;
    match &mut end.core.data {
        None => Ok(()),
        Some(Data::Memory(data)) => {
            data.discard(zone, range);
            Ok(())
        }
        Some(Data::Outside(contents)) => contents.write_zeroes(zone, range),
    }
}
