//! A job whose blocks are verified: its writes carry contents that say which
//! write they are of, and are read back.
//!
//! What was written is remembered by zone, with the number of resets that the
//! zone has had: blocks of zones that were reset since, by this job or another,
//! are not there any more and are not looked for. Blocks without zones stay where they
//! are: whoever makes the job sees to it that it writes each of them once in a pass.

mod result;
mod steps;

use std::collections::VecDeque;
use std::ops::Range;

use zonelab_device::{Buf, Lba, NamespaceInfo, Nanos, Op, ZonedInfo};
use zonelab_nvme::zns::ZoneSendAction;

use super::JobSpec;
use super::between::Sync;
use crate::rng::Rng;
use crate::stats::OpKind;
use crate::verify::{Mismatch, Verify, Written, mix};
use crate::workload::Work;
use crate::workload::directed::Direction;
use crate::workload::source::{Role, Step};
use crate::workload::zone_table::{JobId, SharedZones, ZoneTable};

pub use result::{Verified, WrongBlock};

/// What the job is doing about its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Zones that hold something are reset before the first write, as by fio: a
    /// reset in between would destroy what is to be verified.
    Clearing,
    /// What it is there for.
    Writing,
    /// The same, but nothing more is issued: it will check.
    Draining,
    /// Reading back.
    Checking,
    /// All of it is over.
    Over,
}

/// A write that has completed.
#[derive(Clone, Copy, Debug)]
struct Record {
    slba: u64,
    nlb: u32,
    written: Written,
    zone: u32,
    /// Resets that the zone had had.
    resets: u32,
}

/// What a slot has in flight.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Nothing,
    /// A write of these.
    Write(Op, Written),
    /// A read of the job itself.
    Read(Op),
    /// A read of what was written.
    Check(Record),
}

/// What is known of the writes of a job.
pub(super) struct Verifying {
    how: Verify,
    table: SharedZones,
    id: JobId,
    /// `None`: blocks without zones, all of which count as one zone.
    zoned: Option<ZonedInfo>,
    lba_bytes: u64,
    /// The job writes; otherwise its reads are checked as they come.
    writes: bool,
    phase: Phase,
    to_clear: Range<u32>,
    /// What all its seeds come from.
    base: u64,
    issued: u64,
    since_check: u32,
    /// By slot.
    pending: Vec<Pending>,
    /// Buffers that came back.
    pool: Vec<Buf>,
    first_zone: u32,
    /// By zone, from the first of the job: writes since its last reset.
    records: Vec<Vec<Record>>,
    to_check: VecDeque<Record>,
    checking_from: Nanos,
    /// The work of the job is done: what is read back now is all of it.
    is_last: bool,
    /// A block was wrong, and that was enough; or the job is told to end.
    is_given_up: bool,
    /// A command failed, which ended the job.
    pub(super) has_failed: bool,
    /// Passes that are to follow, each of so many bytes and operations.
    passes_left: u64,
    pass: (Option<u64>, Option<u64>),
    issued_at_pass: u64,
    verified: Verified,
}

impl Verifying {
    /// That of a job that verifies; it gets a table of zones then if it has none.
    pub(super) fn of(
        spec: &JobSpec,
        namespace: &NamespaceInfo,
        zones: &mut Option<(SharedZones, JobId)>,
        mut rng: Rng,
    ) -> Option<Box<Self>> {
        let how = spec.verify.as_deref()?.clone();
        let Work::Directed(work) = &spec.work else {
            return None;
        };
        let zoned = namespace.zoned;
        let table = || zoned.map_or_else(ZoneTable::of_none, |zoned| ZoneTable::new(zoned, None));
        let shared = zones.get_or_insert_with(|| (SharedZones::new(table()), 0));
        let writes = work.flow(Direction::Write).is_some();
        Some(Box::new(Self {
            table: shared.0.clone(),
            id: shared.1,
            zoned,
            lba_bytes: u64::from(namespace.lba_bytes),
            writes,
            phase: if writes {
                Phase::Clearing
            } else {
                Phase::Writing
            },
            to_clear: work.zones.clone(),
            base: rng.next_u64(),
            issued: 0,
            since_check: 0,
            pending: Vec::new(),
            pool: Vec::new(),
            first_zone: match zoned {
                Some(_) => work.zones.start,
                None => 0,
            },
            records: vec![Vec::new(); work.zones.len().max(1)],
            to_check: VecDeque::new(),
            checking_from: Nanos::ZERO,
            is_last: false,
            is_given_up: false,
            has_failed: false,
            passes_left: how.passes.saturating_sub(1),
            pass: (spec.stop.bytes, spec.stop.operations),
            issued_at_pass: 0,
            verified: Verified::default(),
            how,
        }))
    }

    /// Whether the job does what it would do without verification.
    #[inline]
    pub(super) fn is_writing(&self) -> bool {
        self.phase == Phase::Writing
    }

    pub(super) fn into_result(self) -> Verified {
        self.verified
    }

    /// A job has read all that is there, or so many bytes when its first error ended it.
    /// Whether what it should have found is.
    fn found_all(&mut self, tried_bytes: u64) -> bool {
        let Verified { bytes, .. } = self.verified;
        let expected = self.how.expected_bytes.unwrap_or(0);
        let tried = match self.has_failed {
            true => tried_bytes.min(expected),
            false => expected,
        };
        self.verified.missing_bytes = tried.saturating_sub(bytes);
        self.verified.untried_bytes = expected.saturating_sub(tried.max(bytes));
        self.verified.found_nothing = u32::from(bytes == 0);
        if let (Some(whole), false) = (self.how.whole_bytes, self.has_failed) {
            self.verified.unwritten_bytes = whole.saturating_sub(bytes);
        }
        bytes > 0 && bytes >= expected
    }

    /// The buffer that goes with a command.
    pub(super) fn data_of(&mut self, slot: u32, step: &Step, sync: &mut Sync) -> Option<Buf> {
        let slot = slot as usize;
        if self.pending.len() <= slot {
            self.pending.resize(slot + 1, Pending::Nothing);
        }
        self.pending[slot] = Pending::Nothing;
        let len = u64::from(step.op.nlb()) * self.lba_bytes;
        // Fits: at most what one command moves, which is less than 4 GiB.
        let len = len as usize;
        match step.op {
            Op::Read { slba, nlb } => {
                self.pending[slot] = match step.role {
                    Role::Check => self.check_of(slba, nlb),
                    _ => Pending::Read(step.op),
                };
                let mut data = self.buffer(len);
                // What was in it before must not be taken for what was read.
                data.fill(0);
                Some(data)
            }
            Op::Write { .. } | Op::Append { .. } => {
                let written = Written {
                    offset: step.op.first_block() * self.lba_bytes,
                    is_append: matches!(step.op, Op::Append { .. }),
                    number: self.issued,
                    seed: mix(self.base.wrapping_add(self.issued)),
                };
                self.issued += 1;
                self.since_check += 1;
                if self
                    .how
                    .backlog
                    .is_some_and(|limit| self.since_check >= limit)
                {
                    // Nothing more is issued before all of it has been read back.
                    self.phase = Phase::Draining;
                    if *sync == Sync::None {
                        *sync = Sync::Held;
                    }
                }
                self.pending[slot] = Pending::Write(step.op, written);
                let mut data = self.buffer(len);
                self.how.fill(&mut data, &written);
                Some(data)
            }
            _ => None,
        }
    }

    /// The record that a read of these blocks is for: the next one.
    fn check_of(&self, slba: Lba, nlb: u32) -> Pending {
        let next = self.to_check.front();
        let is_it = |record: &&Record| (record.slba, record.nlb) == (slba.0, nlb);
        next.filter(is_it)
            .map_or(Pending::Nothing, |record| Pending::Check(*record))
    }

    fn buffer(&mut self, len: usize) -> Buf {
        let at = self.pool.iter().position(|buf| buf.len() == len);
        match at {
            Some(at) => self.pool.swap_remove(at),
            None => Buf::zeroed(len),
        }
    }

    /// A buffer is not needed any more.
    pub(super) fn take_back(&mut self, data: Option<Buf>) {
        if self.pool.len() < 2 * self.pending.len() {
            self.pool.extend(data);
        }
    }

    /// A write has completed, at `result` if it was an append.
    fn has_written(&mut self, zone: u32, (op, written): (Op, Written), result: u64) {
        let slba = match op {
            Op::Append { .. } => result,
            op => op.first_block(),
        };
        let (zone, resets) = match self.zoned {
            Some(_) => (zone, self.table.borrow().resets(zone)),
            None => (0, 0),
        };
        let records = &mut self.records[(zone - self.first_zone) as usize];
        if records.last().is_some_and(|record| record.resets != resets) {
            records.clear();
        }
        records.push(Record {
            slba,
            nlb: op.nlb(),
            written,
            zone,
            resets,
        });
    }

    /// Everything that is there is to be read back, in the order in which it was
    /// written.
    fn begin_check(&mut self, now: Nanos) {
        let mut all: Vec<Record> = self.records.iter_mut().flat_map(std::mem::take).collect();
        all.sort_unstable_by_key(|record| record.written.number);
        self.to_check = all.into();
        self.since_check = 0;
        self.checking_from = now;
        self.phase = Phase::Checking;
    }

    /// Nothing more is cleared, read back or written.
    fn give_up(&mut self) {
        self.to_check.clear();
        self.to_clear.start = self.to_clear.end;
        (self.passes_left, self.is_last, self.is_given_up) = (0, true, true);
    }

    /// The next command of verification, if any is left of its phase.
    fn next(&mut self) -> Option<Step> {
        match self.phase {
            Phase::Clearing => self.next_to_clear(),
            _ => self.next_check(),
        }
    }

    /// One was not taken by the device.
    fn is_not_taken(&mut self, step: &Step) {
        if step.kind == OpKind::Reset {
            let zone = step.stream;
            let mut table = self.table.borrow_mut();
            let written = table.written(zone);
            table.end_managing(zone, written);
            self.to_clear.start = zone;
        }
    }

    /// The next block to read, of those that are still there.
    fn next_check(&mut self) -> Option<Step> {
        while let Some(record) = self.to_check.front() {
            if self.is_there(record) {
                return Some(Step {
                    op: Op::Read {
                        slba: Lba(record.slba),
                        nlb: record.nlb,
                    },
                    kind: OpKind::Read,
                    direction: Direction::Read,
                    lbas: u64::from(record.nlb),
                    stream: record.zone,
                    role: Role::Check,
                });
            }
            self.to_check.pop_front();
        }
        None
    }

    /// Whether the zone was not reset since, and is not being reset.
    fn is_there(&self, record: &Record) -> bool {
        if self.zoned.is_none() {
            return true;
        }
        let table = self.table.borrow();
        table.resets(record.zone) == record.resets && table.readable(record.zone) > 0
    }

    /// The next zone that is to be reset before anything is written.
    fn next_to_clear(&mut self) -> Option<Step> {
        let zone_size_lbas = self.zoned?.zone_size_lbas;
        let mut table = self.table.borrow_mut();
        let needs =
            |zone: &u32| table.written(*zone) > 0 && table.is_quiet(*zone) && !table.is_dead(*zone);
        let zone = self.to_clear.find(needs)?;
        table.begin_managing(zone, self.id);
        drop(table);
        let slba = Lba(u64::from(zone) * zone_size_lbas);
        Some(Step {
            op: Op::ZoneSend {
                slba,
                action: ZoneSendAction::RESET,
                select_all: false,
            },
            kind: OpKind::Reset,
            direction: Direction::Write,
            lbas: 0,
            stream: zone,
            role: Role::Check,
        })
    }

    /// Compares what was read; `None`: it is right, or was nothing to compare.
    fn compare(&mut self, slot: u32, data: &[u8]) -> Option<WrongBlock> {
        let bytes = self.lba_bytes;
        let (slba, result) = match self.pending[slot as usize] {
            Pending::Check(record) => {
                if !self.is_there(&record) {
                    return None;
                }
                (record.slba, self.how.check(data, &record.written))
            }
            Pending::Read(op) if !self.writes && self.how.reads_back => {
                let at = op.first_block();
                let size = self.zoned?.zone_size_lbas;
                let zone = at / size * size;
                (at, self.how.check_found(data, at * bytes, zone * bytes))
            }
            _ => return None,
        };
        self.verified.operations += 1;
        self.verified.bytes += data.len() as u64;
        let Mismatch { skipped, len, what } = result.err()?;
        let wrong = WrongBlock {
            offset: slba * bytes + skipped as u64,
            len: len as u64,
            // Fits: the device has fewer zones than 2^32.
            zone: self.zoned.map(|zoned| (slba / zoned.zone_size_lbas) as u32),
            what,
        };
        self.verified.wrong += 1;
        self.verified
            .first_wrong
            .get_or_insert_with(|| wrong.clone());
        Some(wrong)
    }
}
