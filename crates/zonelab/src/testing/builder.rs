//! What a test drive is like.

use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::profile::Profile;

use super::{TestDrive, TestDriveSettingError};

/// Dies of a drive that is made from settings: a zone is on all of them.
const DIES: u64 = 2;
/// Bytes of a page of its flash.
const PAGE_BYTES: u64 = 16 << 10;
/// Bytes of a page on each die: the step of the capacity of zones.
const UNIT_BYTES: u64 = DIES * PAGE_BYTES;
/// Pages of an erase block, at most.
const PAGES_MAX: u64 = 4_096;
/// Zones that can be open and active, if nothing else is stated.
const LIMIT: u32 = 14;
/// Zones that a conventional drive has beyond what hosts see.
const SPARE_ZONES: u32 = 4;

/// The settings of a [`TestDrive`]. Those that are not stated are as they stand in the
/// description of each.
#[derive(Clone, Debug)]
pub struct TestDriveBuilder {
    is_conventional: bool,
    zones: u32,
    zone_capacity_bytes: u64,
    zone_size_bytes: Option<u64>,
    block_bytes: u32,
    limits: Option<(u32, u32)>,
    buffer_bytes: u64,
    is_protected: bool,
    pub(super) seed: u64,
}

impl Default for TestDriveBuilder {
    fn default() -> Self {
        Self {
            is_conventional: false,
            zones: 64,
            zone_capacity_bytes: 1 << 20,
            zone_size_bytes: None,
            block_bytes: 4_096,
            limits: None,
            buffer_bytes: 256 << 10,
            is_protected: false,
            seed: 1,
        }
    }
}

impl TestDriveBuilder {
    /// A drive without zones, as large as the zones together: blocks can be written in
    /// any order, and again. The drive collects garbage below.
    #[must_use]
    pub const fn conventional(mut self) -> Self {
        self.is_conventional = true;
        self
    }

    /// Number of zones; 64 if not stated.
    #[must_use]
    pub const fn zones(mut self, zones: u32) -> Self {
        self.zones = zones;
        self
    }

    /// Bytes of a zone that can be written (ZCAP), a multiple of 32 KiB; 1 MiB if not
    /// stated.
    #[must_use]
    pub const fn zone_capacity_bytes(mut self, bytes: u64) -> Self {
        self.zone_capacity_bytes = bytes;
        self
    }

    /// Bytes from the start of a zone to that of the next (ZSZE), at least its capacity;
    /// the capacity if not stated.
    #[must_use]
    pub const fn zone_size_bytes(mut self, bytes: u64) -> Self {
        self.zone_size_bytes = Some(bytes);
        self
    }

    /// Bytes of a logical block: 512 or 4,096, which is what it is if not stated.
    #[must_use]
    pub const fn block_bytes(mut self, bytes: u32) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// Zones that can be open and active at the same time (MOR + 1, MAR + 1), at most as
    /// many as there are; 14 of each, or all zones if those are fewer, if not stated.
    #[must_use]
    pub const fn limits(mut self, max_open: u32, max_active: u32) -> Self {
        self.limits = Some((max_open, max_active));
        self
    }

    /// Bytes of the volatile write buffer: a write is done when it is in there, and gone
    /// with the power if it was not flushed or programmed. 256 KiB if not stated.
    #[must_use]
    pub const fn write_buffer_bytes(mut self, bytes: u64) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// Stored energy saves the write buffer when power is lost, so that what was
    /// acknowledged is there afterwards.
    #[must_use]
    pub const fn power_loss_protection(mut self) -> Self {
        self.is_protected = true;
        self
    }

    /// The seed of everything that is drawn: how far commands got that were under way
    /// when power was lost, and faults with a probability. The same seed and the same
    /// commands give the same drive, bit for bit. 1 if not stated.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The profile that these settings are, as TOML.
    fn profile(&self) -> Result<String, TestDriveSettingError> {
        let capacity = self.zone_capacity_bytes;
        let pages = capacity / UNIT_BYTES;
        if !capacity.is_multiple_of(UNIT_BYTES) || !(1..=PAGES_MAX).contains(&pages) {
            return Err(TestDriveSettingError::ZoneCapacity {
                bytes: capacity,
                unit: UNIT_BYTES,
                most: UNIT_BYTES * PAGES_MAX,
            });
        }
        if ![512, 4_096].contains(&self.block_bytes) {
            let bytes = self.block_bytes;
            return Err(TestDriveSettingError::BlockBytes { bytes });
        }
        let spare = match self.is_conventional {
            true => SPARE_ZONES,
            false => 0,
        };
        let zones = self.zones.saturating_add(spare);
        let size = self.zone_size_bytes.unwrap_or(capacity);
        let few = self.zones.min(LIMIT);
        let (max_open, max_active) = self.limits.unwrap_or((few, few));
        let limits = format!("max_open = {max_open}\nmax_active = {max_active}\n");
        let (zone_limits, namespaces) = match self.is_conventional {
            true => (
                String::new(),
                format!(
                    "[[namespaces]]\nkind = \"conventional\"\nzones = {zones}\nspare_zones = {spare}\n"
                ),
            ),
            false => (limits, String::new()),
        };
        Ok(format!(
            "schema = 1\nname = \"test-drive\"\n\
             [geometry]\nchannels = {DIES}\nways = 1\ndies = 1\nplanes = 1\n\
             blocks_per_plane = {zones}\npages_per_block = {pages}\npage_size = \"{PAGE_BYTES}B\"\n\
             [namespace]\nlba_size = \"{}B\"\n\
             [zones]\ncount = {zones}\nsize = \"{size}B\"\ncapacity = \"{capacity}B\"\n{zone_limits}\
             [media]\nread = \"60us\"\nprogram = \"700us\"\nerase = \"3.5ms\"\ntransfer = \"13us\"\n\
             [front_end]\ncores = 1\nread = \"2us\"\nwrite = \"2us\"\nappend = \"3us\"\nmanagement = \"5us\"\n\
             [write_buffer]\nmode = \"write-back\"\nsize = \"{}B\"\npower_loss_protection = {}\n\
             [finish]\ndesign = \"fill\"\ngranularity = \"64KiB\"\n\
             [reset]\ntiming = \"asynchronous\"\n{namespaces}",
            self.block_bytes, self.buffer_bytes, self.is_protected,
        ))
    }

    /// The configuration that these settings are.
    ///
    /// # Errors
    /// Settings that are no drive, with the key and what would fit.
    pub fn config(&self) -> Result<DriveConfig, TestDriveSettingError> {
        let text = self.profile()?;
        let profile = Profile::parse("test drive", &text, &[])
            .map_err(|error| TestDriveSettingError::Profile(error.to_string()))?;
        let mut config = profile.config;
        config.data = DataStore::Memory;
        Ok(config)
    }

    /// A fresh drive.
    ///
    /// # Errors
    /// As [`Self::config`].
    pub fn build(&self) -> Result<TestDrive, TestDriveSettingError> {
        Ok(TestDrive::of_config(&self.config()?, self.seed))
    }
}
