//! What a drive without a front end must have done to its flash, worked out
//! from the commands that it accepted: an independent count, block by block.

use zonelab_device::{Buf, Command, Op, ZoneId};
use zonelab_oracle::blocks::Blocks;
use zonelab_oracle::host::{Answer, Host};
use zonelab_oracle::zones::Effect;
use zonelab_ssd::config::{DriveConfig, EraseExtent, EraseWhen, PageRegister, PlaneMode, Suspend};

use super::Rig;
use super::random::{Step, width};

/// One erase block of a physical zone.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Something was programmed on it since its last erasure.
    programmed: bool,
    /// It has to be erased before it is programmed again.
    stale: bool,
    erasures: u32,
}

/// A physical zone.
#[derive(Clone, Debug)]
struct Physical {
    /// In the order in which a zone that is written from its start touches them.
    blocks: Vec<Block>,
    /// Pages programmed since the last reset.
    pages: u32,
}

/// The flash as it must be.
pub(crate) struct Shadow {
    config: DriveConfig,
    width: u32,
    physical: Vec<Physical>,
    host_pages: u64,
    fill_pages: u64,
    read_pages: u64,
    host_write_lbas: u64,
    host_read_lbas: u64,
    resets: u64,
    finishes: u64,
    implicit_closes: u64,
    /// What the host knows.
    host: Host,
    /// How each command must end, by tag.
    expected: Vec<Answer>,
}

impl Shadow {
    pub(crate) fn new(config: &DriveConfig) -> Self {
        let width = width(config);
        let page_lbas = u64::from(config.geometry.page_bytes / config.lba_bytes);
        let pages = config.zones.capacity_lbas.div_ceil(page_lbas) as u32;
        let rows = pages.div_ceil(width * config.geometry.pages_per_block);
        let zone = Physical {
            blocks: vec![Block::default(); (rows * width) as usize],
            pages: 0,
        };
        let count = config.mapping.physical_zones(config.zones.count);
        Self {
            config: config.clone(),
            width,
            physical: vec![zone; count as usize],
            host_pages: 0,
            fill_pages: 0,
            read_pages: 0,
            host_write_lbas: 0,
            host_read_lbas: 0,
            resets: 0,
            finishes: 0,
            implicit_closes: 0,
            host: Host::new(config),
            expected: Vec::new(),
        }
    }

    /// Runs a stream, comparing on the way, and to its end.
    pub(crate) fn run(&mut self, rig: &mut Rig, stream: &[Step]) {
        let mut blocks = Blocks::watch(&mut rig.drive);
        for step in stream {
            match (*step, step.op(rig)) {
                (_, Some(op)) => self.submit(rig, op),
                (Step::Pause(ns), None) => rig.run_for(zonelab_device::Nanos(ns)),
                (_, None) => rig.settle(),
            }
            self.check_mapping(rig);
            self.host.check(rig.drive.zones());
            blocks.look(&mut rig.drive);
        }
        rig.settle();
        blocks.look(&mut rig.drive);
        self.check_end(rig);
    }

    fn submit(&mut self, rig: &mut Rig, op: Op) {
        // What was due by now is over, so that what is seen is what the command finds.
        rig.run_to(rig.now);
        self.note_fills(rig);
        let before: Vec<Option<u32>> = mapped(rig);
        let data = matches!(op, Op::ZoneReceive { .. }).then(|| Buf::zeroed(4_096));
        let tag = u32::try_from(self.expected.len()).expect("there are few");
        let answer = self.host.apply(&Command::new(op), data.as_deref(), tag);
        for effect in &answer.effects {
            match *effect {
                Effect::Reset { zone } => {
                    self.resets += 1;
                    if let Some(physical) = rig.drive.flash().mapping().physical(ZoneId(zone)) {
                        self.reset(physical);
                    }
                }
                Effect::Finished { .. } => self.finishes += 1,
                Effect::ImplicitlyClosed { .. } => self.implicit_closes += 1,
                _ => {}
            }
        }
        rig.submit_with(op, data);
        if answer.status.is_success() {
            self.apply(rig, op, &before, answer.result);
        }
        self.expected.push(answer);
    }

    /// What an accepted read or write means for flash.
    fn apply(&mut self, rig: &Rig, op: Op, before: &[Option<u32>], at: u64) {
        match op {
            Op::Write { slba, nlb } => self.write(rig, slba.0, nlb, before),
            Op::Append { nlb, .. } => self.write(rig, at, nlb, before),
            Op::Read { slba, nlb } => self.read(slba.0, nlb),
            _ => {}
        }
    }

    fn write(&mut self, rig: &Rig, slba: u64, nlb: u32, before: &[Option<u32>]) {
        let size = self.config.zones.size_lbas;
        let (zone, offset) = ((slba / size) as u32, slba % size);
        let physical = rig
            .drive
            .flash()
            .mapping()
            .physical(ZoneId(zone))
            .expect("it was written");
        if let Some(was) = before[zone as usize] {
            assert_eq!(physical, was, "a zone keeps its flash until it is reset");
        }
        let page_lbas = u64::from(self.config.geometry.page_bytes / self.config.lba_bytes);
        let end = (offset + u64::from(nlb)).div_ceil(page_lbas) as u32;
        self.host_pages += u64::from(end) - offset / page_lbas;
        self.host_write_lbas += u64::from(nlb);
        let pages = self.physical[physical as usize].pages.max(end);
        self.program_to(physical, pages);
        // Programs and erasures of a plane end in the order in which they were
        // issued, and the program has been: so must have every erasure before it.
        assert_eq!(rig.drive.flash().zone_state(physical).0, pages);
        self.check_erasures(rig, physical);
    }

    fn read(&mut self, slba: u64, nlb: u32) {
        let size = self.config.zones.size_lbas;
        let page_lbas = u64::from(self.config.geometry.page_bytes / self.config.lba_bytes);
        self.host_read_lbas += u64::from(nlb);
        let mut last_page = None;
        for lba in slba..slba + u64::from(nlb) {
            let (zone, offset) = (lba / size, lba % size);
            let page = Some((zone, offset / page_lbas));
            let host = self.host.zones().all()[zone as usize].host;
            if offset < host && last_page != page {
                last_page = page;
                self.read_pages += 1;
            }
        }
    }

    /// The blocks of the first `pages` pages have been programmed, and what
    /// had to be erased for that.
    fn program_to(&mut self, physical: u32, pages: u32) {
        let row_pages = self.width * self.config.geometry.pages_per_block;
        let zone = &mut self.physical[physical as usize];
        zone.pages = pages;
        if pages == 0 {
            return;
        }
        // The last block that any page is on; all before it are touched as well.
        let touched = (0..pages)
            .map(|page| page / row_pages * self.width + page % self.width)
            .max()
            .map_or(0, |last| last as usize + 1);
        let erased = match self.config.reset.erase {
            EraseWhen::FirstBlockWrite => touched,
            _ => zone.blocks.len(),
        };
        for block in &mut zone.blocks[..erased] {
            if block.stale {
                block.erase();
            }
        }
        for block in &mut zone.blocks[..touched] {
            assert!(!block.stale, "old data under a program");
            block.programmed = true;
        }
    }

    fn reset(&mut self, physical: u32) {
        let reset = self.config.reset;
        let zone = &mut self.physical[physical as usize];
        zone.pages = 0;
        for block in &mut zone.blocks {
            block.stale |= block.programmed || reset.extent == EraseExtent::Full;
            let now = matches!(reset.erase, EraseWhen::Synchronous | EraseWhen::Background);
            if block.stale && now {
                block.erase();
            }
        }
    }

    /// Fills go on by themselves, as far as the drive says; what that means for
    /// blocks follows.
    fn note_fills(&mut self, rig: &Rig) {
        for physical in 0..self.physical.len() as u32 {
            let before = self.physical[physical as usize].pages;
            let (pages, ..) = rig.drive.flash().zone_state(physical);
            assert!(pages >= before, "pages are not unprogrammed");
            self.fill_pages += u64::from(pages - before);
            self.program_to(physical, pages);
        }
    }

    fn check_erasures(&self, rig: &Rig, physical: u32) {
        let flash = rig.drive.flash();
        for (index, block) in self.physical[physical as usize].blocks.iter().enumerate() {
            let place = flash.layout().block_index(physical, index as u32);
            let erasures = flash.blocks().wear(place);
            assert_eq!(
                erasures, block.erasures,
                "block {index} of physical zone {physical}"
            );
        }
    }

    /// Every physical zone is under one zone or in one list.
    fn check_mapping(&self, rig: &Rig) {
        let mapping = rig.drive.flash().mapping();
        let mut seen = vec![false; self.physical.len()];
        let mut used = 0;
        for physical in mapped(rig).into_iter().flatten() {
            assert!(
                !seen[physical as usize],
                "two zones on physical zone {physical}"
            );
            seen[physical as usize] = true;
            used += 1;
        }
        let (free, invalidated) = mapping.pool_sizes();
        assert_eq!(used + free + invalidated, self.physical.len());
    }

    /// Everything that can be said when the drive has come to rest.
    fn check_end(&mut self, rig: &Rig) {
        assert_eq!(
            (rig.drive.in_flight(), rig.drive.background_tasks()),
            (0, 0)
        );
        self.note_fills(rig);
        for (tag, expected) in self.expected.iter().enumerate() {
            let done = rig.done[tag].as_ref().expect("it completed");
            let ends = (expected.status, expected.result);
            assert_eq!((done.status, done.result), ends, "command {tag}");
            let report = expected.report.as_deref();
            let is_report = |report| done.data.as_deref() == Some(report);
            assert!(report.is_none_or(is_report), "report of command {tag}");
        }
        let mut erased = 0;
        for physical in 0..self.physical.len() as u32 {
            self.check_erasures(rig, physical);
            let blocks = &self.physical[physical as usize].blocks;
            let stale = blocks.iter().filter(|block| block.stale).count();
            assert_eq!(rig.drive.flash().stale_blocks(physical) as usize, stale);
            erased += blocks
                .iter()
                .map(|block| u64::from(block.erasures))
                .sum::<u64>();
        }
        let counted: u64 = rig
            .drive
            .flash()
            .erase_counts()
            .iter()
            .map(|&n| u64::from(n))
            .sum();
        assert_eq!(counted, erased, "blocks without a zone are never erased");
        self.check_totals(rig, erased);
        self.check_ledger(rig, erased);
    }

    fn check_totals(&self, rig: &Rig, erased: u64) {
        let totals = rig.drive.totals();
        let (page, lba) = (
            u64::from(self.config.geometry.page_bytes),
            u64::from(self.config.lba_bytes),
        );
        assert_eq!(totals.erased_blocks, erased);
        assert_eq!(totals.host_write_bytes, self.host_write_lbas * lba);
        assert_eq!(totals.host_read_bytes, self.host_read_lbas * lba);
        assert_eq!(totals.host_program_bytes, self.host_pages * page);
        assert_eq!(totals.fill_program_bytes, self.fill_pages * page);
        assert_eq!(totals.resets, self.resets);
        assert_eq!(totals.finishes, self.finishes);
        assert_eq!(totals.implicit_closes, self.implicit_closes);
        let programmed = (self.host_pages + self.fill_pages) * page;
        let dlwa = (self.host_write_lbas > 0)
            .then(|| programmed as f64 / (self.host_write_lbas * lba) as f64);
        assert_eq!(totals.dlwa(), dlwa);
    }

    /// Busy time is operations times their time, unless planes share operations
    /// or suspends add to them.
    fn check_ledger(&self, rig: &Rig, erased: u64) {
        let media = &self.config.media;
        let (channels, units) = rig.busy();
        let holds = match media.page_register {
            PageRegister::Overlap => [false; 3],
            PageRegister::Hold => [true; 3],
            PageRegister::Cache => [true, false, false],
        };
        if media.planes == PlaneMode::MultiPlane || media.suspend != Suspend::NONE {
            return;
        }
        assert_eq!(units[3] + units[4], erased * media.erase_ns.0);
        if media.partial_transfer {
            return;
        }
        let pages = [self.read_pages, self.host_pages, self.fill_pages];
        let arrays = [media.read_ns.0, media.program_ns.0, media.program_ns.0];
        for cause in 0..3 {
            let kept = if holds[cause] { media.transfer_ns.0 } else { 0 };
            // Reads of parts of pages take the time of those parts.
            if cause > 0 || media.details.read_parts.is_none() {
                let expected = pages[cause] * (arrays[cause] + kept);
                assert_eq!(units[cause], expected, "cause {cause}");
            }
            assert_eq!(
                channels[cause],
                pages[cause] * media.transfer_ns.0,
                "cause {cause}"
            );
        }
    }
}

impl Block {
    fn erase(&mut self) {
        self.erasures += 1;
        (self.programmed, self.stale) = (false, false);
    }
}

/// The physical zone of each zone.
fn mapped(rig: &Rig) -> Vec<Option<u32>> {
    let zones = 0..rig.drive.zones().count();
    zones
        .map(|zone| rig.drive.flash().mapping().physical(ZoneId(zone)))
        .collect()
}
