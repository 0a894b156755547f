//! A drive, what its host knows of it, and what must hold between them.

use std::collections::BTreeMap;
use std::ops::Range;

use zonelab_device::{Buf, Command, Completion, Lba, Nanos, Op, QueueId, Tag};
use zonelab_nvme::Status;
use zonelab_oracle::blocks::Blocks;
use zonelab_oracle::host::{Answer, Content, Host, sources};
use zonelab_oracle::zones::Effect;
use zonelab_ssd::config::{DataStore, DriveConfig, FinishConfig};
use zonelab_ssd::{Control, Drive, DriveModel};

use super::accounts::Accounts;
use super::cells::zones_left;
use super::log::{Entry, Log};

/// Calls of `advance` until a drive is idle, at most. Far more than the events
/// of all its work; what exceeds it goes round in circles.
const STEPS: u64 = 1 << 20;

/// A command in flight.
#[derive(Debug)]
struct Pending {
    submitted: Nanos,
    earliest: Nanos,
    /// Whether what it writes is certain to get to the flash.
    is_sure: bool,
    queue: QueueId,
    command: Command,
    buffer_bytes: Option<usize>,
    answer: Answer,
    /// What the blocks of a read held when it was submitted, if data is kept.
    content: Vec<Content>,
}

/// What a completion says, but for its data.
type Outcome = (Nanos, QueueId, Tag, u16, u64);

/// A drive under test.
#[derive(Debug)]
pub(super) struct Session {
    log: Log,
    pub(super) config: DriveConfig,
    pub(super) drive: Drive,
    pub(super) host: Host,
    blocks: Blocks,
    accounts: Accounts,
    pending: BTreeMap<u32, Pending>,
    next_tag: u32,
    pub(super) now: Nanos,
    last_completion: Nanos,
    done: Vec<Completion>,
    /// Gets the same commands, and is looked at only at the end.
    twin: Option<Drive>,
    outcomes: Vec<Outcome>,
}

impl Session {
    pub(super) fn new(config: &DriveConfig, with_twin: bool) -> Self {
        let log = Log::new(config);
        if let Err(broken) = zonelab_ssd::profile::check(config) {
            panic!("the drawn configuration is not valid: {broken:?}");
        }
        let mut drive = Drive::new(config);
        Self {
            log,
            config: config.clone(),
            host: Host::new(config),
            blocks: Blocks::watch(&mut drive),
            accounts: Accounts::new(&drive),
            twin: with_twin.then(|| Drive::new(config)),
            drive,
            pending: BTreeMap::new(),
            // Not 0, which stands for "never written".
            next_tag: 1,
            now: Nanos::ZERO,
            last_completion: Nanos::ZERO,
            done: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    /// Commands in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Submits a command now; a write gets content of its own in its buffer.
    pub(super) fn submit(&mut self, command: Command, queue: QueueId, mut data: Option<Buf>) {
        let tag = self.next_tag;
        self.next_tag += 1;
        let now = self.now;
        let buffer_bytes = data.as_ref().map(|data| data.len());
        self.log.push(Entry::Submit {
            now,
            tag,
            command,
            buffer_bytes,
        });

        let base = self.host.first_lba(command.nsid);
        self.fill(&command, base, tag, data.as_deref_mut());
        self.note_flash_left();
        let answer = self.host.apply(&command, data.as_deref(), tag);
        let content = match command.op {
            Op::Copy { ranges, .. } if answer.status.is_success() => {
                for (slba, nlb) in sources(data.as_deref(), ranges).unwrap_or_default() {
                    self.accounts.copied(&self.drive, slba + base, nlb);
                }
                Vec::new()
            }
            Op::Read { slba, nlb } | Op::Compare { slba, nlb } | Op::Verify { slba, nlb }
                if answer.status.is_success() =>
            {
                let first = slba.0 + base;
                self.accounts.read(&self.drive, first, nlb);
                let keeps = self.config.data == DataStore::Memory && buffer_bytes.is_some();
                if keeps {
                    self.host.content(first, nlb)
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        };
        let standing = self.accounts.standing(&self.drive);
        let is_quiet = !self.pending.values().any(|of| is_write(&of.command.op));
        let in_flight = self.drive.in_flight();
        if let Some(twin) = &mut self.twin {
            twin.submit(now, queue, Tag(tag), command, data.clone())
                .expect("few are in flight");
        }
        self.drive
            .submit(now, queue, Tag(tag), command, data)
            .expect("few are in flight");
        self.check_submitted(in_flight);
        let done = self.wait_for_turn();
        // What is behind a copy may become void while it waits, and so may what is
        // behind that.
        let is_sure = !matches!(command.op, Op::Copy { .. })
            && self.pending.values().all(|before| before.is_sure);
        self.accounts.submitted(
            &self.drive,
            &standing,
            (tag, is_sure, is_quiet),
            &answer.effects,
        );
        self.resets_make_void(&answer.effects);
        let success = answer.status.is_success();
        let earliest = now.saturating_add(self.least(&command.op, success, is_sure));
        let pending = Pending {
            submitted: now,
            earliest,
            is_sure,
            queue,
            command,
            buffer_bytes,
            answer,
            content,
        };
        self.pending.insert(tag, pending);
        for completion in done {
            self.completed(completion);
        }
        self.check();
    }

    /// Lets time pass until the front end has turned to the command that was just submitted: what
    /// it has changed can be seen only then. Gives what completed meanwhile.
    fn wait_for_turn(&mut self) -> Vec<Completion> {
        let mut done = Vec::new();
        while self.drive.waiting() > 0 {
            let at = self.drive.next_event();
            let at = at.expect("a command waits for others, which go on");
            self.log.push(Entry::Advance { to: at });
            self.drive.advance(at, &mut done);
            self.now = at;
        }
        done
    }

    /// Writes that zones had accepted before they were reset may need no program.
    fn resets_make_void(&mut self, effects: &[Effect]) {
        for reset in effects {
            let Effect::Reset { zone } = *reset else {
                continue;
            };
            let is_of_zone =
                |effect: &Effect| matches!(effect, Effect::Wrote { zone: of, .. } if *of == zone);
            let mut pending = std::mem::take(&mut self.pending);
            for of in pending.values_mut() {
                if of.answer.effects.iter().any(is_of_zone) {
                    let success = of.answer.status.is_success();
                    let least = self.least(&of.command.op, success, false);
                    of.earliest = of.submitted.saturating_add(least);
                }
            }
            self.pending = pending;
        }
    }

    /// Puts content into the buffer of a command whose blocks are compared or
    /// written: these are stamped with `tag` and their address on the drive.
    fn fill(&self, command: &Command, base: u64, tag: u32, data: Option<&mut [u8]>) {
        let slba = match command.op {
            Op::Write { slba, .. } => Some(slba.0.wrapping_add(base)),
            Op::Compare { slba, nlb } => {
                self.fill_compared(slba.0.wrapping_add(base), nlb, data);
                return;
            }
            // Where it will go: the host knows before the drive says so.
            Op::Append { zslba, .. } => {
                let zslba = zslba.0.wrapping_add(base);
                let zone = self.drive.zones().zone_of(Lba(zslba));
                zone.map(|zone| zslba + self.host.zones().all()[zone.0 as usize].pointer)
            }
            _ => None,
        };
        if let (Some(slba), Some(data)) = (slba, data) {
            let blocks = data.chunks_mut(self.config.lba_bytes as usize);
            for (block, index) in blocks.zip(0..) {
                // Addresses that wrap are refused.
                fill_block(block, tag, slba.wrapping_add(index));
            }
        }
    }

    /// The host learns for how many more zones there is flash, if not for all.
    fn note_flash_left(&mut self) {
        if self.config.allocation.thin {
            let left = zones_left(&self.drive, &self.config);
            self.host.set_flash_left(Some(left));
        }
    }

    /// A command was just submitted, with so many in flight before.
    fn check_submitted(&self, in_flight: usize) {
        assert!(
            self.drive.in_flight() <= in_flight + 1,
            "one command became several"
        );
        assert!(
            self.drive.next_event().is_some_and(|at| at >= self.now),
            "nothing will happen to a command that was just submitted"
        );
    }

    /// The least time that a command can take: at every stage, the shortest
    /// that its time may vary to. Not every one is sure to get to the flash.
    fn least(&self, op: &Op, success: bool, is_sure: bool) -> Nanos {
        let front = &self.config.front_end;
        let costs = &front.costs;
        let media = &self.config.media;
        let (core, latency, conclusion) = match op {
            Op::Read { .. } | Op::Compare { .. } | Op::Verify { .. } => (
                front.read_ns,
                costs.read_latency_ns,
                costs.read_completion_ns,
            ),
            Op::Write { .. } | Op::WriteZeroes { .. } | Op::Copy { .. } => (
                front.write_ns,
                costs.write_latency_ns,
                costs.write_completion_ns,
            ),
            Op::Append { .. } => (
                front.append_ns,
                costs.append_latency_ns,
                costs.append_completion_ns,
            ),
            _ => {
                let core = [costs.open_ns, costs.close_ns]
                    .into_iter()
                    .flatten()
                    .fold(front.management_ns, Nanos::min);
                (core, costs.management_latency_ns, Nanos::ZERO)
            }
        };
        let mut least = shortest(core, costs.variation_ppm).saturating_add(latency);
        if success {
            least = least.saturating_add(shortest(conclusion, costs.variation_ppm));
        }
        let writes = is_write(op) && !matches!(op, Op::Copy { .. });
        if success && writes && is_sure && self.config.write_buffer.is_none() {
            let program = shortest(media.program_ns, media.details.program_variation_ppm);
            least = least.saturating_add(program);
        }
        least
    }

    /// Declares zones full.
    pub(super) fn precondition(&mut self, zones: Range<u32>) {
        self.log.push(Entry::Precondition {
            now: self.now,
            zones: zones.clone(),
        });
        let control = Control::PreconditionFull {
            zones: zones.clone(),
        };
        self.note_flash_left();
        let possible = self.host.precondition(zones.clone());
        if let Some(twin) = &mut self.twin {
            assert_eq!(twin.control(self.now, &control).is_ok(), possible);
        }
        // Whatever is due by now is not on account of the precondition.
        self.advance(self.now);
        let erased = self.drive.totals().erased_blocks;
        // A stepwise erasure of one of the zones is hurried, and that takes time.
        let certain = self.drive.background_tasks() == 0;
        let is_idle = certain && self.drive.in_flight() == 0;
        let result = self.drive.control(self.now, &control);
        assert_eq!(result.is_ok(), possible, "{result:?}");
        if possible {
            let erased = self.drive.totals().erased_blocks - erased;
            self.accounts
                .preconditioned(&self.drive, zones.clone(), erased, certain);
            if !is_idle {
                self.blocks.declared_full(&mut self.drive, zones);
            }
        }
        self.check();
    }

    /// The drive knows the same about its zones as its host, and did to its flash what
    /// may be done to flash.
    fn check(&mut self) {
        self.host.check(self.drive.zones());
        self.drive.assert_invariants();
        self.blocks.look(&mut self.drive);
    }

    /// Lets time pass, and looks at what completed.
    pub(super) fn advance(&mut self, to: Nanos) {
        self.log.push(Entry::Advance { to });
        let next = self.drive.next_event();
        let mut done = std::mem::take(&mut self.done);
        self.drive.advance(to, &mut done);
        self.now = to;
        self.check_buffer();
        self.blocks.look(&mut self.drive);
        let announced = next.is_some_and(|next| next <= to);
        assert!(
            announced || done.is_empty(),
            "a completion without an event: {done:?}"
        );
        assert!(
            self.drive.next_event().is_none_or(|next| next > to),
            "an event that was due by {to} is still waiting"
        );
        for completion in done.drain(..) {
            assert!(completion.at <= to, "{completion:?} is later than {to}");
            self.completed(completion);
        }
        self.done = done;
        assert_eq!(
            self.drive.in_flight(),
            self.pending.len(),
            "commands in flight"
        );
    }

    /// The buffer holds no more than fits, and when nothing runs, no more than
    /// parts of units.
    fn check_buffer(&self) {
        let bytes = self.drive.buffered_bytes();
        let size = self
            .config
            .write_buffer
            .map_or(0, |buffer| buffer.size_bytes);
        assert!(bytes <= size, "{bytes} bytes in a buffer of {size}");
        if self.drive.in_flight() + self.drive.background_tasks() == 0 {
            let unit =
                u64::from(self.config.geometry.page_bytes) * u64::from(self.config.geometry.planes);
            let most = u64::from(self.drive.zones().active_count()) * unit;
            assert!(bytes <= most, "{bytes} bytes wait for nothing");
        }
    }

    fn completed(&mut self, completion: Completion) {
        let Completion {
            queue,
            tag,
            status,
            at,
            result,
            data,
            found: _,
        } = completion;
        self.log.push(Entry::Complete {
            at,
            tag: tag.0,
            status,
        });
        self.outcomes.push((at, queue, tag, status.0, result));
        let pending = self.pending.remove(&tag.0);
        let pending = pending.unwrap_or_else(|| panic!("{tag:?} is not in flight"));
        let Pending {
            submitted,
            earliest,
            command,
            answer,
            ..
        } = &pending;
        assert!(
            at >= self.last_completion,
            "{tag:?} completes before the one before it"
        );
        self.last_completion = at;
        assert!(
            at >= *earliest,
            "{tag:?}: {command:?} at {submitted} cannot be done at {at}"
        );
        assert_eq!(queue, pending.queue, "queue of {tag:?}");
        match command.op {
            Op::Compare { slba, nlb } if answer.status.is_success() => {
                self.check_compare(&pending, (slba.0, nlb), status, data.as_deref());
            }
            _ => assert_eq!(status, answer.status, "status of {tag:?}: {command:?}"),
        }
        if status.is_success() {
            assert_eq!(result, answer.result, "result of {tag:?}: {command:?}");
        }
        assert_eq!(
            data.as_ref().map(|data| data.len()),
            pending.buffer_bytes,
            "its buffer"
        );
        if let Some(data) = &data {
            if let Some(report) = &answer.report {
                assert!(data[..] == report[..], "report of {tag:?}: {command:?}");
            }
            self.check_read(&pending, data);
        }
        self.accounts.completed(&self.drive, tag.0);
    }

    /// Each block of a read holds what it held at some time between the
    /// submission of the read and its end.
    fn check_read(&self, pending: &Pending, data: &[u8]) {
        let Op::Read { slba, nlb } = pending.command.op else {
            return;
        };
        if pending.content.is_empty() {
            return;
        }
        let first = slba.0 + self.host.first_lba(pending.command.nsid);
        let now = self.host.content(first, nlb);
        let blocks = data.chunks(self.config.lba_bytes as usize);
        let mut expected = vec![0; self.config.lba_bytes as usize];
        for (((lba, block), then), now) in (first..).zip(blocks).zip(&pending.content).zip(&now) {
            let tag = u32::from_le_bytes(block[..4].try_into().expect("a block is longer"));
            // A copy keeps the address that was written: its lower half is in the block.
            let written = u64::from(u16::from_le_bytes([block[4], block[5]]));
            fill_block(&mut expected, tag, written);
            assert!(block == expected, "block {lba} holds a mixture");
            let is_of = |content: &Content| {
                let is_same = content.lba & 0xffff == written || tag == 0;
                content.tag == tag && is_same
            };
            let possible = is_of(then) || is_of(now) || now.changes - then.changes > 1;
            assert!(
                possible,
                "block {lba} holds data of {tag} for {written}, not {then:?} or {now:?}"
            );
        }
    }

    /// Fills the buffer of a compare with what the blocks hold now.
    fn fill_compared(&self, first: u64, nlb: u32, data: Option<&mut [u8]>) {
        let last = first.saturating_add(u64::from(nlb));
        let zones = &self.config.zones;
        let is_there = last <= u64::from(zones.count) * zones.size_lbas;
        let (Some(data), true) = (data, is_there) else {
            return;
        };
        // A buffer that is not empty differs.
        if data.first() != Some(&0) {
            return;
        }
        let blocks = data.chunks_mut(self.config.lba_bytes as usize);
        for (block, content) in blocks.zip(self.host.content(first, nlb)) {
            fill_block(block, content.tag, content.lba);
        }
    }

    /// A compare ends as its data says, before or after what changed meanwhile.
    fn check_compare(
        &self,
        pending: &Pending,
        (slba, nlb): (u64, u32),
        status: Status,
        data: Option<&[u8]>,
    ) {
        let found = status.is_success();
        assert!(found || status == Status::COMPARE_FAILURE, "{status:?}");
        let Some(data) = data.filter(|_| !pending.content.is_empty()) else {
            assert!(found, "nothing to compare, and a difference");
            return;
        };
        let now = self
            .host
            .content(slba + self.host.first_lba(pending.command.nsid), nlb);
        let lba_bytes = self.config.lba_bytes as usize;
        let mut expected = vec![0; lba_bytes];
        let mut is_same = |content: &[Content]| {
            data.chunks(lba_bytes).zip(content).all(|(block, content)| {
                fill_block(&mut expected, content.tag, content.lba);
                block == expected
            })
        };
        let (then_same, now_same) = (is_same(&pending.content), is_same(&now));
        let is_stable = then_same == now_same
            && now
                .iter()
                .zip(&pending.content)
                .all(|(now, then)| now.changes == then.changes);
        assert!(
            !is_stable || found == now_same,
            "a compare found {found}, but its data is the same: {now_same}"
        );
    }

    /// Waits until nothing runs any more, which must not take too long, and
    /// compares everything.
    pub(super) fn idle(&mut self) {
        let deadline = self.now.saturating_add(self.patience());
        let mut steps = 0;
        while let Some(at) = self.drive.next_event() {
            assert!(
                at <= deadline,
                "not done at {at}, but everything takes until {deadline}"
            );
            steps += 1;
            assert!(steps < STEPS, "not done after {STEPS} steps, at {at}");
            self.advance(at.max(self.now));
        }
        self.log.push(Entry::Idle { now: self.now });
        assert!(self.pending.is_empty(), "lost: {:?}", self.pending);
        assert_eq!(
            self.drive.background_tasks(),
            0,
            "tasks that wait for nothing"
        );
        self.accounts.check(&self.drive, self.now);
        self.check();
    }

    /// More time than everything that is in flight can take, one by one.
    fn patience(&self) -> Nanos {
        let media = &self.config.media;
        let geometry = &self.config.geometry;
        let longest = media
            .read_ns
            .0
            .max(media.program_ns.0)
            .max(media.erase_ns.0)
            + media.transfer_ns.0 * u64::from(geometry.planes)
            + 2 * media.suspend.overhead_ns.0 * u64::from(media.suspend.max_per_operation);
        let blocks = u64::from(geometry.planes_total()) * u64::from(geometry.blocks_per_plane);
        let pages = blocks * u64::from(geometry.pages_per_block);
        let commands = self.pending.len() as u64 + self.drive.background_tasks() as u64 + 1;
        let moved: u64 = self
            .pending
            .values()
            .map(|pending| match pending.command.op {
                // Read and written, and no more than that.
                Op::Copy { .. } => u64::from(self.config.copy.map_or(0, |copy| copy.max_lbas)),
                // Descriptions of ranges, 16 bytes each.
                Op::Deallocate { ranges } => {
                    let bytes = 16 * u64::from(ranges);
                    bytes.div_ceil(u64::from(self.config.lba_bytes))
                }
                op => u64::from(op.nlb()),
            })
            .sum();
        let wait = match self.config.finish {
            FinishConfig::Fill {
                pause_ns, yield_ns, ..
            } => pause_ns.0 + yield_ns.unwrap_or(Nanos::ZERO).0,
            FinishConfig::Metadata | FinishConfig::AtFold => 0,
        };
        let hold = self.config.reset.preempt_ns.unwrap_or(Nanos::ZERO).0;
        let front = &self.config.front_end;
        let costs = [
            front.read_ns,
            front.write_ns,
            front.append_ns,
            front.management_ns,
        ];
        let more = &front.costs;
        let latencies = [
            more.read_latency_ns.0,
            more.write_latency_ns.0,
            more.append_latency_ns.0,
            more.management_latency_ns.0,
            more.part_of_unit_ns.0,
            more.small_blocks_ns.0,
            more.open_ns.map_or(0, |time| time.0),
            more.close_ns.map_or(0, |time| time.0),
            more.implicit_open_ns.0,
            more.read_completion_ns.0,
            more.write_completion_ns.0,
            more.append_completion_ns.0,
            more.completion_latency_ns.0,
        ];
        // Each of them varies to twice its time at most.
        let cost = costs.into_iter().max().unwrap_or(Nanos::ZERO).0 + latencies.iter().sum::<u64>();
        // A command can be for all zones.
        let allocation = self.config.allocation.time_ns.0 * u64::from(self.config.zones.count);
        let cost = cost + allocation;
        let per_kib = [
            more.read_per_kib_ns,
            more.write_per_kib_ns,
            more.append_per_kib_ns,
        ];
        let per_kib = per_kib.into_iter().max().unwrap_or(Nanos::ZERO).0;
        let books = self.config.reset.bookkeeping.map_or(0, |books| {
            let zone = books.base_ns.0 + books.full_zone_ns.0 + books.open_zone_ns.0;
            zone * u64::from(self.config.zones.count)
        });
        // At a megabyte per second, which is the slowest link.
        let link = moved * u64::from(self.config.lba_bytes) * (1_000 + per_kib);
        let zone_lbas = self.config.zones.capacity_lbas * u64::from(self.config.zones.count);
        let drain = self.longest_drain(zone_lbas + moved);
        // Units wait while bookkeeping holds the drain, and it waits for those that run.
        let flash = (pages + 2 * blocks) * commands + moved;
        // A finish through the buffer may go block by block.
        let waits = zone_lbas * wait + blocks * commands * hold;
        Nanos(flash * 2 * longest + waits + drain + commands * (2 * cost + books) + link)
    }

    /// The longest that so many blocks take from the write buffer to the dies.
    fn longest_drain(&self, lbas: u64) -> u64 {
        let buffer = self.config.write_buffer;
        match buffer.and_then(|buffer| buffer.drain_bytes_per_s) {
            Some(_) => {
                // A unit may be on its way whose zone has been reset, and written anew.
                let unit = self.config.pages_per_program() * self.config.geometry.page_bytes;
                (lbas * u64::from(self.config.lba_bytes) + u64::from(unit)) * 1_000
            }
            None => 0,
        }
    }

    /// The last look: everything is done, and the twin did the same.
    pub(super) fn end(mut self) {
        self.idle();
        let Some(mut twin) = self.twin.take() else {
            return;
        };
        let mut done = Vec::new();
        twin.advance(self.now, &mut done);
        let outcomes: Vec<Outcome> = done
            .iter()
            .map(|c| (c.at, c.queue, c.tag, c.status.0, c.result))
            .collect();
        assert_eq!(
            outcomes, self.outcomes,
            "looking at the drive changed what it did"
        );
        assert_eq!(twin.next_event(), None);
        assert_eq!(twin.totals(), self.drive.totals());
        assert_eq!(
            twin.flash().media().ledger(),
            self.drive.flash().media().ledger()
        );
        assert_eq!(twin.flash().mapping(), self.drive.flash().mapping());
    }
}

/// It takes blocks to a zone.
const fn is_write(op: &Op) -> bool {
    matches!(
        op,
        Op::Write { .. } | Op::Append { .. } | Op::WriteZeroes { .. } | Op::Copy { .. }
    )
}

/// The shortest that a time may be which varies by so many parts per million.
fn shortest(time: Nanos, ppm: u32) -> Nanos {
    time - Nanos(time.0 * u64::from(ppm) / 1_000_000)
}

/// The content that command `tag` writes to block `lba`; zeros for tag 0.
fn fill_block(block: &mut [u8], tag: u32, lba: u64) {
    if tag == 0 {
        block.fill(0);
        return;
    }
    let [a, b, ..] = lba.to_le_bytes();
    block.fill(a ^ tag.to_le_bytes()[0]);
    // A buffer of the wrong length may end in less than a block.
    for (to, from) in block
        .iter_mut()
        .zip(tag.to_le_bytes().into_iter().chain([a, b]))
    {
        *to = from;
    }
    if let Some(last) = block.last_mut() {
        *last = b;
    }
}
