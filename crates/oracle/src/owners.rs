//! Which zone has which blocks, as a drive says it, and which blocks it gave up.

use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::Drive;
use zonelab_ssd::config::MappingConfig;

/// What the block log has since the last look.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Blocks that were erased, each as often as it was.
    pub(crate) erased: Vec<usize>,
    pub(crate) was_cut: bool,
}

/// What is seen of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    physical: Option<u32>,
    state: ZoneState,
    host: u64,
}

impl Look {
    fn at(drive: &Drive, zone: ZoneId) -> Self {
        Self {
            physical: drive.flash().mapping().physical(zone),
            state: drive.zones().state(zone),
            host: drive.zones().host_lbas(zone),
        }
    }

    fn is_empty(&self) -> bool {
        self.state == ZoneState::EMPTY
    }
}

#[derive(Clone, Debug)]
struct Zone {
    look: Look,
    /// Its blocks, in ascending order.
    blocks: Vec<usize>,
    /// Blocks with data of the host when the drive was last at rest.
    held: Vec<usize>,
    /// Logical blocks from its start that may be missing: power was lost, or it failed.
    excused: u64,
    /// It changed since the drive was last at rest.
    is_changed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Owners {
    zones: Vec<Zone>,
    /// By block: how often it was given up and has not been erased for that.
    given_up: Vec<u32>,
    /// By block: the zone whose data it holds, for certain.
    held_by: Vec<Option<u32>>,
    /// By block: it is of an SLC cache, and of no zone.
    of_cache: Vec<bool>,
    resets: u64,
}

impl Owners {
    pub(crate) fn new(drive: &Drive) -> Self {
        let blocks = drive.flash().blocks().len();
        let zones = (0..drive.zones().count()).map(ZoneId);
        let zones = zones.map(|zone| Zone {
            look: Look::at(drive, zone),
            blocks: blocks_of(drive, zone),
            held: Vec::new(),
            excused: 0,
            is_changed: true,
        });
        Self {
            zones: zones.collect(),
            given_up: vec![0; blocks],
            held_by: vec![None; blocks],
            of_cache: (0..blocks)
                .map(|block| drive.flash().is_of_cache(block))
                .collect(),
            resets: drive.totals().resets,
        }
    }

    /// Which blocks may be erased, and what is missing, is not known any more: power was
    /// lost, or the drive was restored.
    pub(crate) fn forgive(&mut self, drive: &Drive) {
        self.lose_track();
        for (zone, of) in (0..).zip(&mut self.zones) {
            of.excused = drive.zones().host_lbas(ZoneId(zone));
            of.is_changed = true;
        }
    }

    /// A zone was declared full, and was being reset or written: nothing is known of its
    /// blocks, which are returned, until it is reset.
    pub(crate) fn overtaken(&mut self, drive: &Drive, zone: ZoneId) -> Vec<usize> {
        let blocks = blocks_of(drive, zone);
        for block in &blocks {
            self.given_up[*block] = u32::MAX;
            self.held_by[*block] = None;
        }
        let of = &mut self.zones[zone.0 as usize];
        of.held.clear();
        of.excused = drive.zones().host_lbas(zone);
        blocks
    }

    /// Somebody looked too late to know what belonged to which zone.
    fn lose_track(&mut self) {
        self.given_up.fill(u32::MAX);
        self.held_by.fill(None);
        for zone in &mut self.zones {
            zone.held.clear();
            zone.is_changed = true;
        }
    }

    /// Compares what was erased with what zones gave up. Returns whether a zone changed.
    pub(crate) fn look(&mut self, drive: &Drive, seen: &Seen) -> bool {
        let resets = drive.totals().resets;
        let reset = resets - std::mem::replace(&mut self.resets, resets);
        let (mut emptied, mut has_changed) = (0, false);
        let is_direct = drive.config().mapping == MappingConfig::Direct;
        // A zone that got flash since the last look and was reset does not show what it was.
        let mut is_known = true;
        let mut given_up = Vec::new();
        for index in 0..self.zones.len() {
            let zone = ZoneId(u32::try_from(index).expect("few zones"));
            let now = Look::at(drive, zone);
            let of = &mut self.zones[index];
            let before = std::mem::replace(&mut of.look, now);
            if now == before {
                continue;
            }
            (of.is_changed, has_changed) = (true, true);
            let is_emptied = now.is_empty() && !before.is_empty();
            emptied += u64::from(is_emptied);
            is_known &= !is_emptied || before.physical.is_some();
            let blocks = match is_direct {
                true => of.blocks.clone(),
                false => blocks_of(drive, zone),
            };
            let had = std::mem::replace(&mut of.blocks, blocks);
            let leaves_all = is_emptied || now.physical != before.physical;
            if leaves_all {
                of.excused = 0;
                for block in of.held.drain(..) {
                    self.held_by[block] = None;
                }
            }
            if now.state == ZoneState::READ_ONLY || now.state == ZoneState::OFFLINE {
                // What was on its way to the flash is lost.
                of.excused = now.host;
            }
            let keeps = |block: &usize| !leaves_all && of.blocks.binary_search(block).is_ok();
            given_up.extend(had.into_iter().filter(|block| !keeps(block)));
        }
        // Nor does one show that it was reset if it was written again.
        if seen.was_cut || !is_known || emptied != reset {
            self.lose_track();
        } else {
            self.judge(seen, &given_up);
        }
        has_changed
    }

    fn judge(&mut self, seen: &Seen, given_up: &[usize]) {
        // What was erased before a zone gave it up once more is not told from what was
        // erased behind that.
        for &block in given_up {
            self.given_up[block] = self.given_up[block].saturating_add(1);
        }
        // Those of a cache are erased when it likes: at rest, what zones hold is looked at.
        let of_zones = seen.erased.iter().filter(|of| !self.of_cache[**of]);
        for &block in of_zones {
            if let Some(zone) = self.held_by[block] {
                panic!("block {block} is erased with data of zone {zone}, which was not reset");
            }
            let left = self.given_up[block].checked_sub(1);
            let left = left.unwrap_or_else(|| {
                panic!("block {block} is erased, but no zone has given it up since it was last")
            });
            self.given_up[block] = left;
        }
    }

    /// The zones that changed since the drive was last at rest, which it is now.
    pub(crate) fn zones_to_check(&mut self, drive: &Drive) -> Vec<ZoneId> {
        // What was on its way has been erased: once will do.
        for given_up in &mut self.given_up {
            *given_up = (*given_up).min(1);
        }
        let zones = (0..drive.zones().count()).map(ZoneId);
        let is_changed = |zone: &ZoneId| {
            let of = &mut self.zones[zone.0 as usize];
            std::mem::replace(&mut of.is_changed, false)
        };
        zones.filter(is_changed).collect()
    }

    /// Whether a block is one of an SLC cache.
    pub(crate) fn is_of_cache(&self, block: usize) -> bool {
        self.of_cache[block]
    }

    /// A zone has data in these blocks, and nothing runs.
    pub(crate) fn holds(&mut self, zone: ZoneId, mut blocks: Vec<usize>) {
        blocks.retain(|block| !self.of_cache[*block]);
        let of = &mut self.zones[zone.0 as usize];
        for block in &of.held {
            self.held_by[*block] = None;
        }
        for block in &blocks {
            self.held_by[*block] = Some(zone.0);
        }
        of.held = blocks;
    }

    /// Logical blocks from the start of a zone that may be missing.
    pub(crate) fn excused(&self, zone: ZoneId) -> u64 {
        self.zones[zone.0 as usize].excused
    }
}

/// The blocks of a physical zone that its first `pages` pages touch.
pub(crate) fn blocks_touched(drive: &Drive, physical: u32, pages: u32) -> Vec<usize> {
    let flash = drive.flash();
    let layout = flash.layout();
    let Some(elements) = flash.elements() else {
        let blocks = 0..layout.blocks_touched(pages);
        return blocks
            .map(|block| layout.block_index(physical, block))
            .collect();
    };
    let group = physical % layout.groups();
    let touched = elements_touched(drive, pages);
    let elements_of = elements.of_zone(physical).take(touched).flatten();
    elements_of
        .flat_map(|element| elements.blocks_of(group, element))
        .collect()
}
/// The blocks of a zone, in ascending order.
fn blocks_of(drive: &Drive, zone: ZoneId) -> Vec<usize> {
    let Some(physical) = drive.flash().mapping().physical(zone) else {
        return Vec::new();
    };
    let flash = drive.flash();
    let layout = flash.layout();
    let mut blocks: Vec<usize> = match flash.elements() {
        None => (0..layout.zone_blocks())
            .map(|block| layout.block_index(physical, block))
            .collect(),
        Some(elements) => {
            let group = physical % layout.groups();
            let of_zone = elements.of_zone(physical).flatten();
            of_zone
                .flat_map(|element| elements.blocks_of(group, element))
                .collect()
        }
    };
    blocks.sort_unstable();
    blocks
}

/// How many elements of a zone its first pages touch.
fn elements_touched(drive: &Drive, pages: u32) -> usize {
    let config = drive.config();
    let width = drive.flash().layout().width();
    let row_pages = width * config.geometry.pages_per_block;
    let (line_pages, beside) = match config.mapping {
        MappingConfig::Chunk { chunk_blocks, .. } => (row_pages * chunk_blocks, width),
        _ => (row_pages, 1),
    };
    (pages / line_pages * beside + (pages % line_pages).min(beside)) as usize
}
