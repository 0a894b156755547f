//! Rules about geometry and zones.

use zonelab_config::units::fmt_size;

use super::{Needs, Rules, fmt_size_wide, limits, multiples, not_a_multiple};
use crate::config::{DriveConfig, PlaneMode, StripeOrder};

impl Rules<'_> {
    pub(super) fn geometry(&mut self) {
        let DriveConfig {
            geometry,
            lba_bytes,
            ..
        } = self.config;
        let planes = [
            geometry.channels,
            geometry.ways,
            geometry.dies,
            geometry.planes,
        ];
        let planes: u128 = planes.into_iter().map(u128::from).product();
        if planes > u128::from(limits::PLANES) {
            let what = format!("channels x ways x dies x planes = {planes} planes");
            self.refuse(
                "geometry.channels",
                what,
                format!("at most {}", limits::PLANES),
            );
        }
        let blocks = planes * u128::from(geometry.blocks_per_plane);
        // Too many planes have too many blocks, which need not be said as well.
        if planes <= u128::from(limits::PLANES) && blocks > u128::from(limits::BLOCKS) {
            let have = u64::from(geometry.blocks_per_plane);
            let most = limits::BLOCKS;
            // What zones need is the number of blocks that a file without it gets.
            let follows = Needs::of(self.config).is_some_and(|n| n.blocks_per_plane() == have);
            let (key, what, valid) = match follows {
                true => (
                    self.zone_size_key(),
                    format!(
                        "{} zones of {} need {blocks} blocks in {planes} planes",
                        self.config.zones.count,
                        fmt_size(self.zone_bytes())
                    ),
                    format!("at most {most} blocks: make zones smaller or fewer"),
                ),
                false => (
                    "geometry.blocks_per_plane",
                    format!("{planes} planes x {have} = {blocks} blocks"),
                    format!("at most {most}"),
                ),
            };
            self.refuse(key, what, valid);
        }
        if !geometry.page_bytes.is_multiple_of(*lba_bytes) {
            let what = not_a_multiple(geometry.page_bytes, "the logical block", *lba_bytes);
            let valid = multiples(geometry.page_bytes, *lba_bytes);
            self.refuse("geometry.page_size", what, valid);
        }
    }

    /// A zone spans an equal share of the drive, so that groups of zones do not overlap.
    pub(super) fn divides(
        &mut self,
        key: &'static str,
        whole_key: &str,
        of: fn(&DriveConfig) -> (u32, u32),
    ) {
        let (part, whole) = of(self.config);
        if whole.is_multiple_of(part) {
            return;
        }
        let divisors: Vec<String> = (1..=whole)
            .filter(|d| whole.is_multiple_of(*d))
            .map(|d| d.to_string())
            .collect();
        let what = format!("{part} does not divide {whole_key} = {whole}");
        self.refuse(key, what, format!("use one of {}", divisors.join(", ")));
    }

    pub(super) fn stagger(&mut self) {
        let DriveConfig {
            geometry,
            zones,
            media,
            ..
        } = self.config;
        let width = [zones.channels, zones.ways, geometry.dies, geometry.planes]
            .into_iter()
            .try_fold(1, u32::checked_mul)
            .unwrap_or(u32::MAX);
        if zones.stagger >= width {
            let what = format!("{} planes are a turn of the stripe or more", zones.stagger);
            let valid = format!("less than the {width} planes of a zone");
            self.refuse("zones.stagger", what, valid);
        }
        let dies_whole = media.planes == PlaneMode::MultiPlane
            && zones.stripe == StripeOrder::PlaneFirst
            && !zones.stagger.is_multiple_of(geometry.planes);
        if dies_whole {
            let what = not_a_multiple_of_planes(zones.stagger, geometry.planes);
            let valid = "multi-plane operations take the planes of a die from its first";
            self.refuse("zones.stagger", what, valid);
        }
    }

    pub(super) fn zone_sizes(&mut self) {
        let DriveConfig {
            geometry,
            zones,
            lba_bytes,
            ..
        } = self.config;
        let bytes = |lbas: u64| fmt_size_wide(u128::from(lbas) * u128::from(*lba_bytes));
        let size = bytes(zones.size_lbas);
        if zones.size_lbas == 0 {
            self.refuse(
                "zones.size",
                "a zone has no blocks",
                "at least one logical block",
            );
        } else if zones.capacity_lbas > zones.size_lbas {
            let what = format!("{} does not fit in a zone", bytes(zones.capacity_lbas));
            self.refuse(
                "zones.capacity",
                what,
                format!("at most zones.size = {size}"),
            );
        } else if zones.capacity_lbas == 0 {
            let valid = format!("at least one logical block, at most zones.size = {size}");
            self.refuse("zones.capacity", "nothing could be written", valid);
        }
        // Whole pages of a zone are counted in logical blocks, in 32 bits.
        let most = u32::MAX - geometry.page_bytes / lba_bytes;
        if zones.capacity_lbas > u64::from(most) {
            let what = format!("{} is too much for a zone", bytes(zones.capacity_lbas));
            let valid = format!(
                "at most {most} logical blocks of {}",
                fmt_size(u64::from(*lba_bytes))
            );
            self.refuse("zones.capacity", what, valid);
        }
        let namespace = u128::from(zones.size_lbas) * u128::from(zones.count);
        if namespace * u128::from(*lba_bytes) > u128::from(u64::MAX) {
            let what = format!("{} zones of {size} exceed 64-bit addresses", zones.count);
            self.refuse("zones.size", what, "use smaller or fewer zones");
        }
    }

    pub(super) fn zone_limits(&mut self) {
        let zones = &self.config.zones;
        let (most, of) = match zones.max_active {
            Some(active) if active == 0 || active > zones.count => {
                let what = format!("{active} is out of range");
                let valid = format!("at least 1, at most {}", zones.count);
                return self.refuse("zones.max_active", what, valid);
            }
            Some(active) => (active, "zones.max_active"),
            None => (zones.count, "zones.count"),
        };
        match zones.max_open {
            Some(open) if open == 0 || open > most => {
                let what = format!("{open} is out of range");
                let valid = format!("at least 1, at most {of} = {most}");
                self.refuse("zones.max_open", what, valid);
            }
            None if zones.max_active.is_some() => {
                let what = "open zones are active, so they cannot be unlimited";
                self.refuse("zones.max_open", what, format!("at most {of} = {most}"));
            }
            _ => {}
        }
    }

    pub(super) fn descriptor_extension(&mut self) {
        let extension = self.config.zones.descriptor_extension_bytes;
        if !extension.is_multiple_of(64) {
            let what = not_a_multiple(extension, "its unit", 64);
            self.refuse("zones.descriptor_extension", what, multiples(extension, 64));
        }
    }
}

fn not_a_multiple_of_planes(value: u32, planes: u32) -> String {
    format!("{value} is not a multiple of geometry.planes = {planes}")
}
