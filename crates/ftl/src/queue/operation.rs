//! What programs asked for, and the commands that it takes.

use zonelab_device::{Buf, Found, Tag};
use zonelab_nvme::Status;

use super::load::Want;
use crate::blocks::DataZone;
use crate::epochs::ReadEpoch;
use crate::segments::Load;

/// What is done with blocks that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// They are the answer.
    Read,
    /// They are compared with what came with the command.
    Compare,
    /// Nothing: that they can be read is the answer.
    Verify,
}

/// An operation of a program.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) tag: Tag,
    pub(super) kind: Kind,
    /// Its first block.
    pub(super) first: u32,
    /// Blocks that have not been dealt with.
    pub(super) left: u32,
    /// Its buffer, unless a command has it.
    pub(super) data: Option<Buf>,
    pub(super) status: Status,
    /// What those that have found to do.
    pub(super) found: Found,
    /// Since when it reads.
    pub(super) epoch: Option<ReadEpoch>,
    /// Zones that failed under it.
    pub(super) failures: u32,
}

impl Operation {
    pub(super) const fn new(tag: Tag, data: Option<Buf>) -> Self {
        Self {
            tag,
            kind: Kind::Read,
            first: 0,
            left: 0,
            data,
            status: Status::SUCCESS,
            found: Found::Unknown,
            epoch: None,
            failures: 0,
        }
    }

    /// Some of its blocks ended so.
    pub(super) fn note(&mut self, blocks: u32, status: Status) {
        debug_assert!(blocks <= self.left, "each block ends once");
        self.left -= blocks;
        if self.status.is_success() {
            self.status = status;
        }
    }
}

/// Some blocks of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) operation: usize,
    /// The first of them, counted from the first of the operation.
    pub(super) at: u32,
    pub(super) count: u32,
}

impl Part {
    pub(super) const fn whole(operation: usize, count: u32) -> Self {
        Self {
            operation,
            at: 0,
            count,
        }
    }

    /// Takes the first `count` blocks of it.
    pub(super) const fn split(&mut self, count: u32) -> Self {
        let first = Self {
            operation: self.operation,
            at: self.at,
            count,
        };
        self.at += count;
        self.count -= count;
        first
    }
}

/// A command under way to the drive.
#[derive(Debug)]
pub(super) enum Flight {
    Read {
        part: Part,
        /// It has the operation's own buffer.
        is_whole: bool,
    },
    Write {
        zone: DataZone,
        /// Where it goes in the zone, of a write; of an append, the drive says.
        offset: Option<u32>,
        /// What it writes, in order.
        parts: Vec<Part>,
        /// It has the operation's own buffer.
        is_whole: bool,
    },
    /// A segment of the map that blocks wait for.
    Load { load: Load, part: Part, want: Want },
}

/// Buffers and lists for further use.
#[derive(Debug)]
pub(super) struct Spare {
    block_bytes: u32,
    /// By number of blocks, of the small ones.
    buffers: Vec<Vec<Buf>>,
    parts: Vec<Vec<Part>>,
}

/// Buffers of up to so many blocks are kept.
const KEPT_BLOCKS: u32 = 32;
/// So many are kept of each size.
const KEPT_OF_A_SIZE: usize = 64;

impl Spare {
    pub(super) fn new(block_bytes: u32) -> Self {
        Self {
            block_bytes,
            buffers: vec![Vec::new(); KEPT_BLOCKS as usize + 1],
            parts: Vec::new(),
        }
    }

    /// A buffer of so many blocks, with anything in it.
    pub(super) fn buffer(&mut self, blocks: u32) -> Buf {
        let kept = self.buffers.get_mut(blocks as usize).and_then(Vec::pop);
        kept.unwrap_or_else(|| Buf::zeroed(blocks as usize * self.block_bytes as usize))
    }

    /// Keeps a buffer.
    pub(super) fn keep_buffer(&mut self, buffer: Buf) {
        let blocks = buffer.len() / self.block_bytes as usize;
        if let Some(kept) = self.buffers.get_mut(blocks)
            && kept.len() < KEPT_OF_A_SIZE
        {
            kept.push(buffer);
        }
    }

    /// An empty list of parts.
    pub(super) fn parts(&mut self) -> Vec<Part> {
        self.parts.pop().unwrap_or_default()
    }

    /// Keeps a list of parts.
    pub(super) fn keep_parts(&mut self, mut parts: Vec<Part>) {
        parts.clear();
        self.parts.push(parts);
    }
}
