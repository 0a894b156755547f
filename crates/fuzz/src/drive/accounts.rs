//! What a drive must have done to its flash, from the commands alone: bytes,
//! programs, erasures, busy time.

use std::collections::BTreeMap;

use zonelab_device::{Nanos, ZoneId};
use zonelab_nvme::zns::ZoneState;
use zonelab_oracle::zones::Effect;
use zonelab_ssd::Drive;
use zonelab_ssd::account::{Cause, Totals};
use zonelab_ssd::config::{
    DriveConfig, EraseExtent, EraseWhen, FinishConfig, MappingConfig, PageRegister, PlaneMode,
    StripeOrder, Suspend,
};

use super::cells::{Cells, Standing};

/// How often one erase block, or storage element, was programmed after an erasure: at least, and at
/// most, because a reset may end a finish before it has programmed everything.
#[derive(Clone, Copy, Debug, Default)]
struct Cycles {
    min: u32,
    max: u32,
    /// It holds something, since then.
    programmed_min: bool,
    programmed_max: bool,
}

/// A finish that programs the rest of its zone.
#[derive(Clone, Copy, Debug)]
struct Fill {
    tag: u32,
    zone: u32,
    first_page: u32,
    /// Pages that are programmed on its account, at least.
    pages_min: u32,
}

/// What must have happened.
#[derive(Clone, Debug)]
pub(super) struct Accounts {
    config: DriveConfig,
    host_write_lbas: u64,
    /// Blocks of the host that went to the flash, or to the write buffer.
    flash_lbas: u64,
    host_read_lbas: u64,
    host_program_pages: u64,
    /// Pages of those that may become void: while they wait for a copy, or on elements,
    /// where a reset that comes before their start leaves them no flash.
    unsure_pages: u64,
    /// Pages of the others by zone, since its last reset.
    sure_pages: Vec<u64>,
    /// Pages of units that finishes through the buffer may have made whole.
    shared_pages_max: u64,
    fill_pages_min: u64,
    fill_pages_max: u64,
    resets: u64,
    finishes: u64,
    implicit_closes: u64,
    /// Pages that reads may have had to fetch, at most.
    read_pages_max: u64,
    /// Erasures that took no time: those of a precondition.
    free_erasures: u64,
    /// Erasures of a precondition that may have been those of a reset, hurried.
    hurried_erasures: u64,
    /// By zone.
    fills: BTreeMap<u32, Fill>,
    /// By zone: pages that are programmed once nothing runs any more.
    programmed: Vec<u32>,
    cells: Cells,
    /// By cell.
    cycles: Vec<Cycles>,
    /// Resets of the zones that had it, by cell.
    resets_of: Vec<u32>,
}

impl Accounts {
    /// Those of a fresh drive.
    pub(super) fn new(drive: &Drive) -> Self {
        let config = drive.config().clone();
        let cells = Cells::new(drive);
        let count = cells.count(drive);
        Self {
            host_write_lbas: 0,
            flash_lbas: 0,
            host_read_lbas: 0,
            host_program_pages: 0,
            unsure_pages: 0,
            sure_pages: vec![0; config.zones.count as usize],
            shared_pages_max: 0,
            fill_pages_min: 0,
            fill_pages_max: 0,
            resets: 0,
            finishes: 0,
            implicit_closes: 0,
            read_pages_max: 0,
            free_erasures: 0,
            hurried_erasures: 0,
            fills: BTreeMap::new(),
            programmed: vec![0; config.zones.count as usize],
            cycles: vec![Cycles::default(); count],
            resets_of: vec![0; count],
            cells,
            config,
        }
    }

    /// What each zone stands on.
    pub(super) fn standing(&self, drive: &Drive) -> Vec<Option<Standing>> {
        self.cells.standing(drive)
    }

    /// A command was submitted under the name `tag` and had `effects`, which
    /// are certain to get to the flash or not; with no writes in flight it `is_quiet`.
    /// `before` that is what zones stood on.
    pub(super) fn submitted(
        &mut self,
        drive: &Drive,
        before: &[Option<Standing>],
        (tag, is_sure, is_quiet): (u32, bool, bool),
        effects: &[Effect],
    ) {
        let page_lbas = u64::from(drive.flash().layout().page_lbas());
        let page = |lba: u64| u32::try_from(lba / page_lbas).expect("zones are small");
        for effect in effects {
            match *effect {
                Effect::Stored { nlb, .. } => self.host_write_lbas += u64::from(nlb),
                Effect::Wrote { zone, offset, nlb } | Effect::Committed { zone, offset, nlb } => {
                    let pages = page(offset)..page(offset + u64::from(nlb) - 1) + 1;
                    if matches!(effect, Effect::Wrote { .. }) {
                        self.host_write_lbas += u64::from(nlb);
                    }
                    self.flash_lbas += u64::from(nlb);
                    self.host_program_pages += pages.len() as u64;
                    self.programmed[zone as usize] = pages.end;
                    // A reset can drop it from the buffer.
                    let is_certain = self.config.write_buffer.is_none() && is_sure;
                    if is_sure {
                        self.sure_pages[zone as usize] += pages.len() as u64;
                    } else {
                        self.unsure_pages += pages.len() as u64;
                    }
                    self.program(drive, zone, pages, is_certain);
                }
                Effect::Finished { zone, from } => {
                    self.finishes += 1;
                    let first_page = page(from + page_lbas - 1);
                    self.finished(drive, zone, tag, from, first_page);
                }
                Effect::Reset { zone } => {
                    self.resets += 1;
                    self.fills.remove(&zone);
                    self.programmed[zone as usize] = 0;
                    let pages = std::mem::take(&mut self.sure_pages[zone as usize]);
                    if !is_quiet {
                        self.unsure_pages += pages;
                    }
                    if let Some(standing) = &before[zone as usize] {
                        self.invalidate(standing, is_quiet);
                    }
                }
                Effect::ImplicitlyClosed { .. } => self.implicit_closes += 1,
            }
        }
    }

    /// The host had written a zone up to `from`; `first_page` is the first without
    /// any of it.
    fn finished(&mut self, drive: &Drive, zone: u32, tag: u32, from: u64, first_page: u32) {
        let FinishConfig::Fill { buffered, .. } = self.config.finish else {
            return;
        };
        let Some(standing) = self.cells.of_zone(drive, ZoneId(zone)) else {
            // Nothing was written, and nothing is filled.
            assert!(
                self.cells.gives_back(),
                "a zone is filled that has no flash"
            );
            return;
        };
        let page_lbas = u64::from(drive.flash().layout().page_lbas());
        let written = u32::try_from(from.div_ceil(page_lbas)).expect("zones are small");
        self.cells.check_finished(&standing, written);
        let zone_pages = drive.flash().layout().zone_pages();
        let pages = self.cells.pages(&standing, first_page..zone_pages);
        let count = u32::try_from(pages.len()).expect("zones are small");
        let end = pages.last().map_or(first_page, |last| last + 1);
        let left = (u64::from(end) * page_lbas)
            .min(self.config.zones.capacity_lbas)
            .saturating_sub(from);
        if pages.is_empty() && !(buffered && left > 0) {
            return;
        }
        let pages_min = if buffered {
            // Parts of pages may be programmed one after the other, and the rest
            // of a unit with blocks of the host counts as the host's.
            self.fill_pages_max += left;
            self.shared_pages_max += u64::from(self.unit_pages());
            count.saturating_sub(self.unit_pages())
        } else {
            self.fill_pages_max += u64::from(count);
            count
        };
        self.programmed[zone as usize] = end;
        self.program(drive, zone, first_page..end, false);
        self.fills.insert(
            zone,
            Fill {
                tag,
                zone,
                first_page,
                pages_min,
            },
        );
    }

    /// Pages that leave the write buffer together.
    fn unit_pages(&self) -> u32 {
        let whole_die = self.config.media.planes == PlaneMode::MultiPlane
            && self.config.zones.stripe == StripeOrder::PlaneFirst;
        if whole_die {
            self.config.geometry.planes
        } else {
            1
        }
    }

    /// A command completed: if it was a finish that no reset cut short, its
    /// zone has been filled.
    pub(super) fn completed(&mut self, drive: &Drive, tag: u32) {
        let done: Vec<Fill> = self
            .fills
            .values()
            .filter(|fill| fill.tag == tag)
            .copied()
            .collect();
        self.fills.retain(|_, fill| fill.tag != tag);
        let pages = drive.flash().layout().zone_pages();
        for fill in done {
            self.fill_pages_min += u64::from(fill.pages_min);
            self.program(drive, fill.zone, fill.first_page..pages, true);
        }
    }

    /// A read of `nlb` blocks succeeded.
    pub(super) fn read(&mut self, drive: &Drive, slba: u64, nlb: u32) {
        self.host_read_lbas += u64::from(nlb);
        self.copied(drive, slba, nlb);
    }

    /// A copy read `nlb` blocks, or a command of the host did.
    pub(super) fn copied(&mut self, drive: &Drive, slba: u64, nlb: u32) {
        let zone_lbas = self.config.zones.size_lbas;
        let page_lbas = u64::from(drive.flash().layout().page_lbas());
        let mut last = None;
        for lba in slba..slba + u64::from(nlb) {
            let page = (lba / zone_lbas, lba % zone_lbas / page_lbas);
            self.read_pages_max += u64::from(last.replace(page) != Some(page));
        }
    }

    /// Zones were declared full; `erased` blocks were erased on that occasion.
    pub(super) fn preconditioned(
        &mut self,
        drive: &Drive,
        zones: std::ops::Range<u32>,
        erased: u64,
        certain: bool,
    ) {
        if certain {
            self.free_erasures += erased;
        } else {
            self.hurried_erasures += erased;
        }
        let pages = drive.flash().layout().zone_pages();
        for zone in zones {
            self.programmed[zone as usize] = pages;
            self.program(drive, zone, 0..pages, true);
        }
    }

    /// Notes programs of what has flash of some pages; `certain`: they take place
    /// whatever comes.
    fn program(&mut self, drive: &Drive, zone: u32, pages: std::ops::Range<u32>, certain: bool) {
        let standing = self.cells.of_zone(drive, ZoneId(zone));
        let standing = standing.expect("a zone that is programmed has flash");
        for cell in self.cells.used(&standing, pages) {
            let cycles = &mut self.cycles[cell];
            cycles.max += u32::from(!std::mem::replace(&mut cycles.programmed_max, true));
            if certain {
                cycles.min += u32::from(!std::mem::replace(&mut cycles.programmed_min, true));
            }
        }
    }

    /// A zone is reset. What it had accepted and what starts only then leaves no
    /// trace: a use less for certain, unless it `is_quiet`.
    fn invalidate(&mut self, standing: &Standing, is_quiet: bool) {
        for cell in self.cells.all(standing) {
            let cycles = &mut self.cycles[cell];
            if !is_quiet && cycles.programmed_min {
                cycles.min -= 1;
            }
            (cycles.programmed_min, cycles.programmed_max) = (false, false);
            self.resets_of[cell] += 1;
        }
    }

    /// Compares with a drive on which nothing runs any more, at `now`.
    pub(super) fn check(&self, drive: &Drive, now: Nanos) {
        self.check_totals(&drive.totals());
        self.check_mapping(drive);
        self.check_flash(drive);
        self.check_erasures(drive);
        self.check_busy(drive, now);
    }

    fn check_totals(&self, totals: &Totals) {
        let lba_bytes = u64::from(self.config.lba_bytes);
        let page_bytes = u64::from(self.config.geometry.page_bytes);
        let Totals {
            host_write_bytes,
            host_read_bytes,
            host_program_bytes,
            fill_program_bytes,
            collect_program_bytes,
            fold_program_bytes,
            erased_blocks: _,
            resets,
            finishes,
            implicit_closes,
        } = *totals;
        assert_eq!(
            host_write_bytes,
            self.host_write_lbas * lba_bytes,
            "bytes written"
        );
        assert_eq!(
            host_read_bytes,
            self.host_read_lbas * lba_bytes,
            "bytes read"
        );
        let pages = if self.config.write_buffer.is_some() {
            // Blocks gather to pages or are dropped; each program has a new one.
            0..=self.flash_lbas + self.shared_pages_max
        } else {
            self.host_program_pages - self.unsure_pages..=self.host_program_pages
        };
        assert!(
            host_program_bytes.is_multiple_of(page_bytes)
                && pages.contains(&(host_program_bytes / page_bytes)),
            "{host_program_bytes} bytes programmed: {pages:?} pages"
        );
        let fill = self.fill_pages_min * page_bytes..=self.fill_pages_max * page_bytes;
        assert!(
            fill.contains(&fill_program_bytes),
            "{fill_program_bytes} bytes filled: {fill:?}"
        );
        assert_eq!(collect_program_bytes, 0, "nothing is collected");
        assert_eq!(fold_program_bytes, 0, "nothing is folded");
        assert_eq!(resets, self.resets, "zones reset");
        assert_eq!(finishes, self.finishes, "zones finished");
        assert_eq!(
            implicit_closes, self.implicit_closes,
            "zones closed implicitly"
        );
    }

    /// No two zones stand on the same flash, and none of it is lost.
    fn check_mapping(&self, drive: &Drive) {
        self.cells.check(drive, self.erases_by_itself());
        let groups = drive.flash().layout().groups();
        let mut taken = vec![false; drive.flash().physical_zones() as usize];
        for (zone, standing) in (0..).zip(self.standing(drive)) {
            let Some(Standing { physical, .. }) = standing else {
                continue;
            };
            let twice = std::mem::replace(&mut taken[physical as usize], true);
            assert!(!twice, "two zones stand on physical zone {physical}");
            assert_eq!(
                physical % groups,
                zone % groups,
                "zone {zone} left its dies"
            );
        }
        if matches!(self.config.mapping, MappingConfig::Lazy { .. }) {
            let (free, invalidated) = drive.flash().mapping().pool_sizes();
            let rest = taken.iter().filter(|taken| !**taken).count();
            assert_eq!(free + invalidated, rest, "physical zones in the pool");
            if self.erases_by_itself() {
                assert_eq!(invalidated, 0, "erased physical zones that are not free");
            }
        }
    }

    /// Every zone's flash is programmed as far as the zone was written, and
    /// erasures that nobody has to ask for are done.
    fn check_flash(&self, drive: &Drive) {
        let mapped: Vec<Option<u32>> = (0..drive.zones().count())
            .map(|zone| drive.flash().mapping().physical(ZoneId(zone)))
            .collect();
        for (zone, physical) in mapped.iter().enumerate() {
            let programmed = physical.map_or(0, |physical| drive.flash().zone_state(physical).0);
            let min = self.programmed_min(drive, zone);
            assert!(
                (min..=self.programmed[zone]).contains(&programmed),
                "{programmed} programmed pages of zone {zone}: {min} to {}",
                self.programmed[zone]
            );
        }
        for physical in 0..drive.flash().physical_zones() {
            let (programmed, ..) = drive.flash().zone_state(physical);
            if !mapped.contains(&Some(physical)) {
                assert_eq!(programmed, 0, "physical zone {physical} belongs to no zone");
            }
            if self.erases_by_itself() {
                let stale = drive.flash().stale_blocks(physical);
                assert_eq!(stale, 0, "blocks of physical zone {physical} left to erase");
            }
        }
    }

    /// Pages of a zone that must be programmed once nothing runs: all, but for
    /// a unit that is not whole and may be in the buffer.
    fn programmed_min(&self, drive: &Drive, zone: usize) -> u32 {
        let id = ZoneId(u32::try_from(zone).expect("few zones"));
        let is_full = drive.zones().state(id) == ZoneState::FULL;
        if self.config.write_buffer.is_none() || is_full {
            return self.programmed[zone];
        }
        let unit_pages = self.unit_pages();
        let page_lbas = u64::from(drive.flash().layout().page_lbas());
        let whole = drive.zones().host_lbas(id) / page_lbas;
        let whole = u32::try_from(whole).expect("zones are small");
        whole / unit_pages * unit_pages
    }

    /// Whether a reset sees to it that blocks are erased, rather than a write.
    fn erases_by_itself(&self) -> bool {
        matches!(
            self.config.reset.erase,
            EraseWhen::Synchronous | EraseWhen::Background
        )
    }

    /// Every block was erased between one use and the next, and not more often.
    fn check_erasures(&self, drive: &Drive) {
        let flash = drive.flash();
        let total: u64 = flash
            .erase_counts()
            .iter()
            .map(|count| u64::from(*count))
            .sum();
        assert_eq!(
            total,
            drive.totals().erased_blocks,
            "sum of the erase counts"
        );
        for (cell, cycles) in self.cycles.iter().enumerate() {
            let still_used = cycles.programmed_min || !self.erases_by_itself();
            let min = cycles.min.saturating_sub(u32::from(still_used));
            let max = match self.config.reset.extent {
                EraseExtent::Full => self.resets_of[cell],
                EraseExtent::Partial => cycles.max,
            };
            for block in self.cells.blocks(drive, cell) {
                let erased = flash.blocks().wear(block);
                assert!(
                    (min..=max).contains(&erased),
                    "block {block} was erased {erased} times; its use asks for {min} to {max}"
                );
            }
        }
    }

    /// Busy time is what the operations take, and no more than has passed.
    fn check_busy(&self, drive: &Drive, now: Nanos) {
        let ledger = drive.flash().media().ledger();
        for busy in ledger.channels.iter().chain(&ledger.units) {
            let busy: u64 = busy.iter().sum();
            assert!(busy <= now.0, "busy for {busy} ns of {now}");
        }
        let sum = |rows: &[[u64; Cause::ALL.len()]], cause: Cause| -> u64 {
            rows.iter().map(|row| row[cause as usize]).sum()
        };
        let channel = |cause| sum(&ledger.channels, cause);
        // A unit that is held through the transfer is booked for it as well.
        let held = |cause| match self.config.media.page_register {
            PageRegister::Hold => true,
            PageRegister::Cache => cause == Cause::HostRead,
            PageRegister::Overlap => false,
        };
        let unit = |cause| {
            let transfers = if held(cause) { channel(cause) } else { 0 };
            sum(&ledger.units, cause) - transfers
        };
        let media = &self.config.media;
        let page_bytes = u64::from(self.config.geometry.page_bytes);
        let totals = drive.totals();
        for (cause, bytes) in [
            (Cause::HostWrite, totals.host_program_bytes),
            (Cause::FinishFill, totals.fill_program_bytes),
        ] {
            let pages = bytes / page_bytes;
            self.check_transfer(channel(cause), pages, cause);
            let width =
                media.program_ns.0 * u64::from(media.details.program_variation_ppm) / 1_000_000;
            let each = media.program_ns.0 - width..=media.program_ns.0 + width;
            self.check_array(unit(cause), pages..=pages, each, cause.name());
        }
        let erasures = totals.erased_blocks - self.free_erasures;
        let erasures = erasures - self.hurried_erasures..=erasures;
        let erasing = unit(Cause::ResetErase) + unit(Cause::WriteErase);
        let each = media.erase_ns.0..=media.erase_ns.0;
        self.check_array(erasing, erasures, each, "erase");
        let reading = unit(Cause::HostRead);
        let page_read_ns = match &media.details.read_parts {
            Some(parts) => parts.times().iter().map(|time| time.0).sum(),
            None => media.read_ns.0,
        };
        assert!(
            reading <= self.read_pages_max * page_read_ns,
            "reading takes {reading} ns"
        );
    }

    fn check_transfer(&self, busy: u64, pages: u64, cause: Cause) {
        let all = pages * self.config.media.transfer_ns.0;
        if self.config.media.partial_transfer {
            assert!(
                busy <= all,
                "channels are busy for {busy} ns with {}",
                cause.name()
            );
        } else {
            assert_eq!(busy, all, "busy time of the channels with {}", cause.name());
        }
    }

    /// `operations` of one page or block took `busy` in all.
    fn check_array(
        &self,
        busy: u64,
        operations: std::ops::RangeInclusive<u64>,
        each: std::ops::RangeInclusive<u64>,
        what: &str,
    ) {
        let Suspend {
            overhead_ns,
            max_per_operation,
            ..
        } = self.config.media.suspend;
        let planes = match self.config.media.planes {
            PlaneMode::MultiPlane => u64::from(self.config.geometry.planes),
            PlaneMode::Independent | PlaneMode::Single => 1,
        };
        let min = operations.start().div_ceil(planes) * each.start();
        let max =
            operations.end() * (each.end() + 2 * overhead_ns.0 * u64::from(max_per_operation));
        assert!(
            (min..=max).contains(&busy),
            "{operations:?} x {what} take {busy} ns; possible are {min} to {max}"
        );
    }
}
