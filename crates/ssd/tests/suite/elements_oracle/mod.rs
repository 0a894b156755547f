//! Storage elements as sets, run beside a drive.

mod seen;
mod zones;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use zonelab_device::{Nanos, Op, ZoneId};
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_oracle::blocks::Blocks;
use zonelab_ssd::FaultTarget;
use zonelab_ssd::config::{
    BufferRelease, DriveConfig, EraseExtent, EraseWhen, FillExtent, FinishConfig, MappingConfig,
    Placement, WriteBufferConfig,
};
use zonelab_ssd::mapping::allocator::Availability;
use zonelab_ssd::mapping::elements::ElementInfo;
use zonelab_ssd::snapshot;

use crate::drive_support::Rig;
use crate::drive_support::random::{Step, width};
use seen::{Infos, all, elements_of, seen};

/// What happens to a drive that no command does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shock {
    Power(u64),
    Snapshot,
}

impl Arbitrary for Shock {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        prop_oneof![
            2 => any::<u64>().prop_map(Self::Power),
            1 => Just(Self::Snapshot),
        ]
        .boxed()
    }
}

fn rows(config: &DriveConfig) -> u32 {
    let page_lbas = u64::from(config.geometry.page_bytes / config.lba_bytes);
    let pages = config.zones.capacity_lbas.div_ceil(page_lbas) as u32;
    pages.div_ceil(width(config) * config.geometry.pages_per_block)
}

/// The drive with elements instead of its mapping.
pub(crate) fn with_elements(
    mut config: DriveConfig,
    (kind, by_elements, has_buffer): (u32, bool, bool),
    spare: u32,
) -> DriveConfig {
    let rows = rows(&config);
    let physical_zones = config.zones.count + spare;
    let divisors: Vec<u32> = (1..=rows).filter(|c| rows.is_multiple_of(*c)).collect();
    config.mapping = if kind.is_multiple_of(3) {
        MappingConfig::Stripe { physical_zones }
    } else {
        MappingConfig::Chunk {
            chunk_blocks: divisors[kind as usize / 3 % divisors.len()],
            physical_zones,
        }
    };
    let groups = config.geometry.planes_total() / width(&config);
    config.geometry.blocks_per_plane = rows * physical_zones.div_ceil(groups);
    if has_buffer {
        config.write_buffer = Some(WriteBufferConfig {
            size_bytes: 8 * u64::from(width(&config) * config.geometry.page_bytes),
            power_loss_protection: kind % 2 == 0,
            release: BufferRelease::Program,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Placement::InOrder,
        });
    }
    if let FinishConfig::Fill {
        extent, buffered, ..
    } = &mut config.finish
        && by_elements
    {
        *extent = FillExtent::Elements;
        *buffered = has_buffer && kind % 5 == 0;
    }
    config
}

/// Elements of a zone, as the oracle sees them.
#[derive(Clone, Debug, Default)]
struct Zone {
    /// By place; places that are gone are missing.
    elements: BTreeMap<u32, (u32, u32)>,
    touched: BTreeSet<u32>,
}

pub(crate) struct Oracle {
    config: DriveConfig,
    width: u32,
    zone_pages: u32,
    page_lbas: u64,
    /// Group and number of elements by zone.
    zones: BTreeMap<u32, Zone>,
    /// Erasures of the blocks of elements when they were last given back with something
    /// written.
    dirty: BTreeMap<(u32, u32), u64>,
    fill_pages: u64,
    /// Fills were not cut short.
    fills_are_exact: bool,
    power_was_lost: bool,
    /// How often each element has begun to be written, and whether it is now.
    uses: BTreeMap<(u32, u32), (u32, bool)>,
}

impl Oracle {
    pub(crate) fn new(config: &DriveConfig) -> Self {
        let page_lbas = u64::from(config.geometry.page_bytes / config.lba_bytes);
        Self {
            config: config.clone(),
            width: width(config),
            zone_pages: config.zones.capacity_lbas.div_ceil(page_lbas) as u32,
            page_lbas,
            zones: BTreeMap::new(),
            dirty: BTreeMap::new(),
            fill_pages: 0,
            fills_are_exact: true,
            power_was_lost: false,
            uses: BTreeMap::new(),
        }
    }

    /// The place of the element that a page of a zone lies in, from the picture in
    /// the paper: pages go over the planes, elements hold some rows of blocks.
    fn place(&self, page: u32) -> u32 {
        let row = page / (self.width * self.config.geometry.pages_per_block);
        match self.config.mapping {
            MappingConfig::Chunk { chunk_blocks, .. } => {
                row / chunk_blocks * self.width + page % self.width
            }
            _ => row,
        }
    }

    fn per_lun(&self) -> u32 {
        match self.config.mapping {
            MappingConfig::Chunk { chunk_blocks, .. } => rows(&self.config) / chunk_blocks,
            _ => rows(&self.config),
        }
    }

    pub(crate) fn run(&mut self, rig: &mut Rig, steps: &[Step], shocks: &[(usize, Shock)]) {
        let mut blocks = Blocks::watch(&mut rig.drive);
        for (at, step) in steps.iter().enumerate() {
            for (_, shock) in shocks.iter().filter(|(when, _)| *when == at) {
                self.shock(rig, *shock);
                match shock {
                    Shock::Power(_) => blocks.look(&mut rig.drive),
                    Shock::Snapshot => blocks.restored(&mut rig.drive),
                }
            }
            match (*step, step.op(rig)) {
                (_, Some(op)) => self.submit(rig, op),
                (Step::Pause(ns), None) => rig.run_for(Nanos(ns)),
                (_, None) => self.settle(rig),
            }
            self.check(rig);
            blocks.look(&mut rig.drive);
        }
        self.settle(rig);
        self.check(rig);
        blocks.look(&mut rig.drive);
    }

    fn submit(&mut self, rig: &mut Rig, op: Op) {
        rig.run_to(rig.now);
        let mut before = all(rig);
        self.check_zones(rig, &before);
        let zones: Vec<(ZoneState, u64)> = (0..self.config.zones.count)
            .map(|zone| seen(rig, zone))
            .collect();
        let is_busy = rig.drive.in_flight() + rig.drive.background_tasks() > 0;
        rig.submit(op);
        for (zone, (state, written)) in (0..).zip(zones) {
            let (state_after, written_after) = seen(rig, zone);
            let action = match op {
                Op::ZoneSend { action, .. } => Some(action),
                _ => None,
            };
            if state_after == ZoneState::EMPTY && action == Some(ZoneSendAction::RESET) {
                self.fills_are_exact &= !is_busy;
                self.reset(&before, zone);
            } else if written_after > written {
                self.write(rig, &mut before, zone, written_after);
            } else if state_after != state && action == Some(ZoneSendAction::FINISH) {
                self.finish(rig, &mut before, zone, written);
            }
        }
    }

    fn write(&mut self, rig: &Rig, before: &mut Infos, zone: u32, written: u64) {
        if !self.zones.contains_key(&zone) {
            self.assemble(rig, before, zone);
        }
        let pages = written.div_ceil(self.page_lbas) as u32;
        let touched: BTreeSet<u32> = (0..pages).map(|page| self.place(page)).collect();
        let zone = self.zones.get_mut(&zone).expect("it has elements");
        assert!(
            touched
                .iter()
                .all(|place| zone.elements.contains_key(place))
        );
        zone.touched = touched;
    }

    /// The zone got elements that were available, as many of each LUN, and no
    /// choice has less wear; by thresholds, of those that are erased first.
    fn assemble(&mut self, rig: &Rig, before: &mut Infos, zone: u32) {
        let elements = elements_of(rig, zone);
        let is_chunk = matches!(self.config.mapping, MappingConfig::Chunk { .. });
        let groups = self.config.geometry.planes_total() / self.width;
        let luns = if is_chunk { self.width } else { 1 };
        let in_group = before.keys().filter(|(group, _)| *group == zone % groups);
        let per_lun = in_group.count() as u32 / luns;
        for lun in 0..luns {
            let is_here = |name: &(u32, u32)| name.0 == zone % groups && name.1 / per_lun == lun;
            let by_thresholds = matches!(self.config.reset.erase, EraseWhen::Thresholds(_));
            let rank = |of: &ElementInfo| (by_thresholds && of.is_stale, of.wear);
            let mut available: Vec<(bool, u32)> = before
                .iter()
                .filter(|(name, of)| is_here(name) && of.availability.is_available())
                .map(|(_, of)| rank(of))
                .collect();
            available.sort_unstable();
            available.truncate(self.per_lun() as usize);
            let chosen: BTreeSet<(u32, u32)> = elements
                .values()
                .copied()
                .filter(|name| is_here(name))
                .collect();
            assert_eq!(chosen.len(), self.per_lun() as usize, "LUN {lun}");
            assert!(chosen.iter().all(|e| before[e].availability.is_available()));
            let mut found: Vec<(bool, u32)> = chosen.iter().map(|e| rank(&before[e])).collect();
            found.sort_unstable();
            assert_eq!(found, available, "least wear of LUN {lun} for zone {zone}");
        }
        // One command can make several zones.
        for name in elements.values() {
            before.get_mut(name).expect("it was there").availability = Availability::Allocated;
        }
        let touched = BTreeSet::new();
        self.zones.insert(zone, Zone { elements, touched });
    }

    fn finish(&mut self, rig: &Rig, before: &mut Infos, zone: u32, written: u64) {
        let FinishConfig::Fill {
            extent, buffered, ..
        } = self.config.finish
        else {
            return;
        };
        // Less than was touched, if power took some of it.
        let pages = written.div_ceil(self.page_lbas) as u32;
        let last = (0..pages).map(|page| self.place(page)).max();
        if extent == FillExtent::Zone {
            if !self.zones.contains_key(&zone) && written < self.config.zones.capacity_lbas {
                self.assemble(rig, before, zone);
            }
        } else if let Some(zone) = self.zones.get_mut(&zone) {
            // Through the buffer goes what is contiguous: whole lines of elements.
            let line = if buffered { self.width } else { 1 };
            let is_chunk = matches!(self.config.mapping, MappingConfig::Chunk { .. });
            let kept = match last {
                Some(last) if is_chunk => (last / line + 1) * line,
                Some(last) => last + 1,
                None => 0,
            };
            for name in zone.elements.range(kept..).map(|(_, name)| *name) {
                // Only a loss of power makes it forget what it wrote.
                if before[&name].availability == Availability::Valid {
                    self.dirty.insert(name, before[&name].erasures);
                }
            }
            zone.elements.retain(|place, _| *place < kept);
            zone.touched.retain(|place| *place < kept);
        }
        let Some(state) = self.zones.get(&zone) else {
            return;
        };
        let filled = (pages..self.zone_pages)
            .filter(|page| state.elements.contains_key(&self.place(*page)))
            .count();
        self.fill_pages += filled as u64;
    }

    fn reset(&mut self, before: &Infos, zone: u32) {
        for name in self
            .zones
            .remove(&zone)
            .unwrap_or_default()
            .elements
            .into_values()
        {
            let of = &before[&name];
            if of.availability == Availability::Valid {
                self.dirty.insert(name, of.erasures);
            }
        }
    }

    fn settle(&mut self, rig: &mut Rig) {
        if self.power_was_lost {
            while rig.drive.in_flight() + rig.drive.background_tasks() > 0 {
                assert!(rig.next(), "something is under way");
            }
            // What completed before the power went may not have been taken yet.
            rig.run_to(rig.now);
        } else {
            rig.settle();
        }
        self.check_zones_at_rest(rig);
        let now = all(rig);
        for (name, of) in &now {
            let Some(&erasures) = self.dirty.get(name) else {
                continue;
            };
            // Power can take what was written to a zone that was finished then.
            let is_lost = self.power_was_lost && of.is_stale;
            if of.availability == Availability::Valid && !is_lost {
                assert!(
                    of.erasures > erasures,
                    "{name:?} was programmed twice: {of:?}"
                );
            }
        }
        for (zone, state) in &self.zones {
            for (place, name) in &state.elements {
                let is_valid = now[name].availability == Availability::Valid;
                let is_touched = state.touched.contains(place);
                let is_buffered = self.config.write_buffer.is_some();
                assert!(is_valid || !is_touched || is_buffered, "{name:?} of {zone}");
            }
        }
        // A buffer programs what the host began and what fills it together.
        let is_exact = self.fills_are_exact && self.config.write_buffer.is_none();
        if is_exact && !self.power_was_lost {
            let bytes = self.fill_pages * u64::from(self.config.geometry.page_bytes);
            assert_eq!(rig.drive.totals().fill_program_bytes, bytes);
        }
        let at_reset = matches!(
            self.config.reset.erase,
            EraseWhen::Synchronous | EraseWhen::Background
        );
        // What a synchronous reset had not erased is erased by a write.
        let goes_on = self.config.reset.erase == EraseWhen::Background;
        if goes_on || at_reset && !self.power_was_lost {
            let invalid = now.values().find(|of| of.is_stale);
            assert!(invalid.is_none(), "all erasures are over: {invalid:?}");
        }
    }

    /// What holds whenever one looks.
    fn check(&mut self, rig: &Rig) {
        let now = all(rig);
        self.check_zones(rig, &now);
        let mut seen = BTreeMap::new();
        for (zone, state) in &self.zones {
            assert_eq!(elements_of(rig, *zone), state.elements, "zone {zone}");
            for name in state.elements.values() {
                assert_eq!(seen.insert(*name, *zone), None, "{name:?} in two zones");
            }
        }
        for (name, of) in &now {
            assert_eq!(
                of.zone.map(|zone| zone.0),
                seen.get(name).copied(),
                "{of:?}"
            );
            assert_eq!(of.availability.is_available(), of.zone.is_none(), "{of:?}");
            self.check_wear(rig, *name, of);
            if let Some(erasures) = self.dirty.get(name)
                && !of.is_stale
                && of.availability != Availability::Valid
            {
                assert!(
                    of.erasures > *erasures,
                    "{of:?} is clean without an erasure"
                );
            }
        }
    }

    fn check_wear(&self, rig: &Rig, (group, _): (u32, u32), of: &ElementInfo) {
        let elements = rig.drive.flash().elements().expect("it has some");
        let counts = rig.drive.flash().erase_counts();
        let blocks: Vec<u32> = elements
            .blocks_of(group, of.element)
            .map(|block| counts[block])
            .collect();
        let (least, most) = (blocks.iter().min(), blocks.iter().max());
        let (least, most) = least.zip(most).expect("an element has blocks");
        let is_half_erased = of.is_stale && *most == of.wear + 1;
        assert!(*most == of.wear || is_half_erased, "{of:?}: {blocks:?}");
        if !self.power_was_lost && !of.is_stale {
            assert_eq!(least, most, "{of:?}");
        }
        // A design that erases all never leaves some of an element.
        let is_full = self.config.reset.extent == EraseExtent::Full;
        assert!(!is_full || blocks.len() as u32 == elements_blocks(&self.config, self.width));
    }

    fn shock(&mut self, rig: &mut Rig, shock: Shock) {
        match shock {
            Shock::Power(seed) => {
                let before = all(rig);
                let loss = rig.drive.power_cut(rig.now, Nanos::from_ms(1), seed);
                rig.now = loss.ready_at;
                for lost in &loss.lost {
                    rig.forget(lost.tag.0 as usize);
                }
                self.power_was_lost = true;
                let zones: Vec<u32> = self.zones.keys().copied().collect();
                for zone in zones {
                    if rig.drive.flash().mapping().physical(ZoneId(zone)).is_none() {
                        self.reset(&before, zone);
                        continue;
                    }
                    // Writes that waited have touched nothing.
                    let pages = seen(rig, zone).1.div_ceil(self.page_lbas) as u32;
                    let kept: BTreeSet<u32> = (0..pages).map(|page| self.place(page)).collect();
                    if let Some(zone) = self.zones.get_mut(&zone) {
                        zone.touched.retain(|place| kept.contains(place));
                    }
                }
                self.check(rig);
            }
            Shock::Snapshot => {
                self.settle(rig);
                let bytes = snapshot::save(&rig.drive).expect("it is idle");
                let drive = snapshot::restore(&self.config, &bytes).expect("it is the same");
                // Unless it goes on with erasures that a loss of power left to do.
                let is_idle = drive.background_tasks() == 0;
                assert!(is_idle || self.power_was_lost);
                assert!(!is_idle || snapshot::save(&drive) == Ok(bytes));
                rig.restart(drive);
                self.check(rig);
            }
        }
    }
}

fn elements_blocks(config: &DriveConfig, width: u32) -> u32 {
    match config.mapping {
        MappingConfig::Chunk { chunk_blocks, .. } => chunk_blocks,
        _ => width,
    }
}
