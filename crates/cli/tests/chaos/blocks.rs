//! A host that writes blocks of a conventional namespace in any order, reads them back and
//! compares.

use std::collections::BTreeSet;

use zonelab_device::{Buf, Completion, Lba, Op};
use zonelab_nvme::Status;

use super::cell::{Cell, Serial};
use super::counts::{add, count};
use super::dice::Dice;
use super::events::Known;
use super::host::{Around, DEPTH, Next, Work, is_too_late, settle};
use super::link::{Link, Lost};
use super::pattern::{BLOCK, Block, Found};

/// Blocks of a host.
pub(crate) const BLOCKS: u32 = 4096;
/// Most blocks of a command.
const MOST_LBAS: u64 = 48;
const READ_LBAS: u32 = 64;

/// A command in flight.
#[derive(Debug)]
enum Pending {
    /// `serial` is 0 if the blocks are zeroed.
    Write {
        serial: Serial,
        at: u32,
        blocks: u32,
    },
    Read {
        at: u32,
        blocks: u32,
    },
    /// Blocks that it covers, and how far.
    Flush(Vec<(u32, usize)>),
}

pub(crate) struct BlockHost {
    host: u32,
    first: u32,
    cells: Vec<Cell>,
    /// Blocks that commands in flight are about.
    busy: Vec<bool>,
    /// Blocks that a flush has something to do for.
    dirty: BTreeSet<u32>,
    pending: Vec<Option<Pending>>,
    serial: Serial,
    known: Option<Known>,
}

impl BlockHost {
    /// Host `number` of the namespace, from 0 on, called `host`.
    pub(crate) fn new(host: u32, number: u32) -> Self {
        Self {
            host,
            first: number * BLOCKS,
            cells: vec![Cell::new(); BLOCKS as usize],
            busy: vec![false; BLOCKS as usize],
            dirty: BTreeSet::new(),
            pending: (0..DEPTH).map(|_| None).collect(),
            serial: 0,
            known: None,
        }
    }

    fn lba(&self, at: u32) -> Lba {
        Lba((self.first + at).into())
    }

    fn block(&self, serial: Serial, at: u32, index: u32) -> Block {
        Block {
            host: self.host,
            serial,
            zone: 0,
            generation: 0,
            offset: self.first + at + index,
            index,
        }
    }

    fn send(
        &mut self,
        link: &mut Link,
        (op, data): (Op, Option<Buf>),
        pending: Pending,
    ) -> Result<(), Lost> {
        let slot = self.pending.iter().position(Option::is_none);
        let slot = slot.expect("no more are in flight than there are slots");
        self.mark(&pending, true);
        self.pending[slot] = Some(pending);
        link.submit(op, slot as u32, data)
    }

    fn mark(&mut self, pending: &Pending, is_busy: bool) {
        if let Pending::Write { at, blocks, .. } | Pending::Read { at, blocks } = *pending {
            self.busy[at as usize..][..blocks as usize].fill(is_busy);
        }
    }

    fn take(&mut self, slot: usize) -> Pending {
        let pending = self.pending[slot].take().expect("it was in flight");
        self.mark(&pending, false);
        pending
    }

    fn write(&mut self, link: &mut Link, at: u32, blocks: u32) -> Result<(), Lost> {
        self.serial += 1;
        let serial = self.serial;
        let mut data = Buf::zeroed(blocks as usize * BLOCK);
        for (index, bytes) in (0..).zip(data.chunks_exact_mut(BLOCK)) {
            self.block(serial, at, index).write(bytes);
        }
        let op = Op::Write {
            slba: self.lba(at),
            nlb: blocks,
        };
        self.send(
            link,
            (op, Some(data)),
            Pending::Write { serial, at, blocks },
        )
    }

    fn read(&mut self, link: &mut Link, at: u32, blocks: u32) -> Result<(), Lost> {
        let op = Op::Read {
            slba: self.lba(at),
            nlb: blocks,
        };
        let data = Buf::zeroed(blocks as usize * BLOCK);
        self.send(link, (op, Some(data)), Pending::Read { at, blocks })
    }

    fn flush(&mut self, link: &mut Link) -> Result<(), Lost> {
        let cells = &self.cells;
        self.dirty.retain(|at| cells[*at as usize].is_dirty());
        let covered = self.dirty.iter().filter_map(|at| {
            let position = cells[*at as usize].position()?;
            Some((*at, position))
        });
        let covered = covered.collect();
        self.send(link, (Op::Flush, None), Pending::Flush(covered))
    }

    fn compare(&mut self, at: u32, data: &[u8], around: &Around<'_>) {
        let counts = &around.stage.counts;
        for (at, bytes) in (at..).zip(data.chunks_exact(BLOCK)) {
            let found = Block::read(bytes);
            let serial = match found {
                Found::Nothing => Some(0),
                Found::Written(block) => {
                    let expected = self.block(block.serial, at - block.index.min(at), block.index);
                    (block == expected).then_some(block.serial)
                }
                Found::Torn(_) => None,
            };
            let lba = self.lba(at);
            let serial = serial.unwrap_or_else(|| panic!("{lba:?} is {found:?}"));
            match self.cells[at as usize].check(serial) {
                Ok(is_lost) => add(&counts.lost_blocks, is_lost.into()),
                Err(violation) => panic!("{lba:?} {violation}"),
            }
        }
        add(&counts.verified_bytes, data.len() as u64);
    }
}

impl Work for BlockHost {
    fn look(&mut self, link: &mut Link, _: &Around<'_>) -> Result<(), Lost> {
        let end = u64::from(self.first + BLOCKS);
        assert!(
            end <= link.size_lbas(),
            "the namespace has {} blocks",
            link.size_lbas()
        );
        let between = self.known.unwrap_or(link.known).between(link.known);
        for cell in &mut self.cells {
            cell.connected(between);
        }
        self.known = Some(link.known);
        Ok(())
    }

    fn submit(&mut self, link: &mut Link, dice: &mut Dice) -> Result<(), Lost> {
        let (at, action) = (dice.below(BLOCKS.into()) as u32, dice.below(100));
        let most = dice.within(1, MOST_LBAS) as usize;
        let free = self.busy[at as usize..].iter().take(most);
        let blocks = free.take_while(|busy| !**busy).count() as u32;
        match action {
            97.. => self.flush(link),
            _ if blocks == 0 => Ok(()),
            0..55 => self.write(link, at, blocks),
            55..60 => {
                let op = Op::WriteZeroes {
                    slba: self.lba(at),
                    nlb: blocks,
                };
                let serial = 0;
                self.send(link, (op, None), Pending::Write { serial, at, blocks })
            }
            _ => self.read(link, at, blocks),
        }
    }

    fn ended(&mut self, completion: Completion, around: &Around<'_>) -> Next {
        let pending = self.take(completion.tag.0 as usize);
        if is_too_late(&completion, around) {
            return Next::GoOn;
        }
        let status = completion.status;
        assert_eq!(status, Status::SUCCESS, "{pending:?} of host {}", self.host);
        let counts = &around.stage.counts;
        match pending {
            Pending::Write { serial, at, blocks } => {
                for at in at..at + blocks {
                    self.cells[at as usize].written(serial);
                    self.dirty.insert(at);
                }
                add(&counts.written_bytes, u64::from(blocks) * BLOCK as u64);
            }
            Pending::Read { at, .. } => {
                let data = completion.data.expect("a read brings its buffer back");
                self.compare(at, &data, around);
            }
            Pending::Flush(covered) => {
                for (at, position) in covered {
                    self.cells[at as usize].flushed(position);
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
            if let Pending::Write { serial, at, blocks } = self.take(slot) {
                for at in at..at + blocks {
                    self.cells[at as usize].write_lost(serial);
                    self.dirty.insert(at);
                }
            }
        }
    }

    fn verify(&mut self, link: &mut Link, around: &Around<'_>) -> Result<(), Lost> {
        let mut done = Vec::new();
        for at in (0..BLOCKS).step_by(READ_LBAS as usize) {
            self.read(link, at, READ_LBAS)?;
            settle(self, link, &mut done, around)?;
        }
        Ok(())
    }
}
