//! Which zones of a drive are for what, and how blocks are counted.

use std::ops::Range;

use zonelab_device::{DeviceInfo, Lba, NamespaceId};

use crate::blocks::{DataZone, PhysicalBlock};
use crate::error::FtlError;
use crate::settings::FormatSettings;

/// Zones for anchors: two, of which one is written while the other is still whole.
const ANCHOR_ZONES: u32 = 2;
/// Fewest zones of the journal: one is written, one is full, one is being emptied.
const JOURNAL_ZONES_LEAST: u32 = 3;
/// Bytes of an entry of an image of the map.
const WORD_BYTES: u32 = 4;
/// Bytes of an entry of the journal.
const CHANGE_BYTES: u32 = 12;
/// Bytes in front of the entries of a block of metadata.
pub const HEADER_BYTES: u32 = 64;
/// Zones that are reserved if nobody says how many, unless the drive allows fewer to be
/// active: as many as can usefully be written at a time.
const RESERVED_ZONES: u32 = 16;
/// Fewest reserved zones: one that a program writes, one that the collector writes,
/// and two that are free, so that a victim can always be emptied, also after losses of
/// power.
const RESERVED_ZONES_LEAST: u32 = 4;

/// Which zones of a namespace are for what. Follows from the namespace and
/// [`FormatSettings`]; an anchor keeps what a mount cannot derive.
///
/// In order of zones: anchors, the journal, two images of the map, data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The zoned namespace.
    pub nsid: NamespaceId,
    /// Size of a block, of the drive as of programs, in bytes.
    pub block_bytes: u32,
    /// Zones of the namespace.
    pub zones: u32,
    /// Distance of zone starts in blocks.
    pub zone_size_lbas: u64,
    /// Blocks of a zone that can be written.
    pub zone_capacity_lbas: u32,
    /// Most blocks of one command.
    pub max_transfer_blocks: u32,
    /// Most blocks of one append.
    pub max_append_blocks: u32,
    /// Zones of the journal.
    pub journal_zones: u32,
    /// Zones of each of the two images.
    pub image_zones: u32,
    /// Blocks at the end of a data zone that say which logical blocks it holds.
    pub footer_blocks: u32,
    /// Data zones outside of the spare space.
    pub reserved_zones: u32,
    /// Blocks that programs see.
    pub logical_blocks: u32,
}

impl Shape {
    /// Shares out a namespace.
    ///
    /// # Errors
    /// There is no such namespace, it has no zones, too few or too many of them, or a
    /// setting is out of its range.
    pub fn new(info: &DeviceInfo, settings: &FormatSettings) -> Result<Self, FtlError> {
        let mut shape = Self::of_namespace(info, settings.nsid)?;
        let spare = settings.spare;
        if !(0.01..=10.0).contains(&spare) {
            return Err(FtlError::setting("spare", spare, "0.01 to 10"));
        }
        shape.size_metadata();
        let data_zones = shape.data_zones();
        let most = data_zones.saturating_sub(1);
        let zoned = info.namespace(settings.nsid).and_then(|namespace| namespace.zoned);
        let active = zoned.and_then(|zoned| zoned.max_active).unwrap_or(u32::MAX);
        let usual = RESERVED_ZONES.min(active).min(data_zones / 4);
        let reserved = settings
            .reserved_zones
            .unwrap_or_else(|| usual.max(RESERVED_ZONES_LEAST));
        if reserved < RESERVED_ZONES_LEAST || reserved > most {
            return Err(match settings.reserved_zones {
                Some(_) => FtlError::setting(
                    "reserved_zones",
                    reserved,
                    format!("{RESERVED_ZONES_LEAST} to {most}"),
                ),
                None => FtlError::TooFewZones {
                    zones: shape.zones,
                    least: shape.first_data_zone() + RESERVED_ZONES_LEAST + 1,
                },
            });
        }
        shape.reserved_zones = reserved;
        let blocks = f64::from(data_zones - reserved) * f64::from(shape.data_blocks());
        shape.logical_blocks = (blocks / (1.0 + spare)) as u32;
        if shape.logical_blocks == 0 {
            return Err(FtlError::setting(
                "spare",
                spare,
                "less: no block would be left",
            ));
        }
        Ok(shape)
    }

    /// What the namespace says, with nothing shared out.
    ///
    /// # Errors
    /// There is no such namespace, it has no zones, or more blocks than a map of four
    /// bytes a block can tell apart.
    pub fn of_namespace(info: &DeviceInfo, nsid: NamespaceId) -> Result<Self, FtlError> {
        let namespace = info.namespace(nsid).ok_or(FtlError::NoSuchNamespace {
            nsid: nsid.0,
            namespaces: info.namespaces.len(),
        })?;
        let Some(zoned) = &namespace.zoned else {
            return Err(FtlError::NotZoned { nsid: nsid.0 });
        };
        let block_bytes = namespace.lba_bytes;
        let written = u64::from(zoned.zones) * zoned.zone_capacity_lbas;
        if block_bytes < 512 || written >= u64::from(u32::MAX) {
            return Err(FtlError::TooLarge {
                blocks: written,
                most: u64::from(u32::MAX) - 1,
                block_bytes,
            });
        }
        let blocks_of = |bytes: u32| (bytes / block_bytes).max(1);
        Ok(Self {
            nsid,
            block_bytes,
            zones: zoned.zones,
            zone_size_lbas: zoned.zone_size_lbas,
            zone_capacity_lbas: zoned.zone_capacity_lbas as u32,
            max_transfer_blocks: blocks_of(info.max_transfer_bytes.min(1 << 20)),
            max_append_blocks: blocks_of(info.max_append_bytes.min(1 << 20)),
            journal_zones: 0,
            image_zones: 0,
            footer_blocks: 0,
            reserved_zones: 0,
            logical_blocks: 0,
        })
    }

    /// Entries of a block of metadata whose entries have so many bytes.
    const fn entries(&self, bytes: u32) -> u32 {
        (self.block_bytes - HEADER_BYTES) / bytes
    }

    /// Words of the map in a block of an image or footer.
    #[must_use]
    pub const fn words_per_block(&self) -> u32 {
        self.entries(WORD_BYTES)
    }

    /// Changes in a block of the journal.
    #[must_use]
    pub const fn changes_per_block(&self) -> u32 {
        self.entries(CHANGE_BYTES)
    }

    /// An image has room for a word of each block of the drive, and the journal for as
    /// many bytes as an image, so that mounting reads about twice as much at most.
    fn size_metadata(&mut self) {
        let capacity = self.zone_capacity_lbas;
        let words = self.words_per_block();
        self.footer_blocks = capacity.div_ceil(words + 1);
        let blocks = u64::from(self.zones) * u64::from(capacity);
        let image = blocks.div_ceil(u64::from(words));
        self.image_zones = image.div_ceil(u64::from(capacity)) as u32;
        self.journal_zones = (self.image_zones + 1).max(JOURNAL_ZONES_LEAST);
    }

    /// The zones of anchors.
    #[must_use]
    pub const fn anchor(&self) -> Range<u32> {
        0..ANCHOR_ZONES
    }

    /// The zones of the journal.
    #[must_use]
    pub const fn journal(&self) -> Range<u32> {
        ANCHOR_ZONES..ANCHOR_ZONES + self.journal_zones
    }

    /// The zones of one of the two images of the map.
    #[must_use]
    pub const fn image(&self, which: ImageSlot) -> Range<u32> {
        let first = ANCHOR_ZONES + self.journal_zones;
        match which {
            ImageSlot::A => first..first + self.image_zones,
            ImageSlot::B => first + self.image_zones..first + 2 * self.image_zones,
        }
    }

    /// The first data zone.
    #[must_use]
    pub const fn first_data_zone(&self) -> u32 {
        ANCHOR_ZONES + self.journal_zones + 2 * self.image_zones
    }

    /// Number of data zones; 0 if metadata leave none.
    #[must_use]
    pub const fn data_zones(&self) -> u32 {
        self.zones.saturating_sub(self.first_data_zone())
    }

    /// Data blocks of a zone: its capacity less its footer.
    #[must_use]
    pub const fn data_blocks(&self) -> u32 {
        self.zone_capacity_lbas - self.footer_blocks
    }

    /// The zone of the namespace that a data zone is.
    #[inline]
    #[must_use]
    pub const fn zone_of(&self, zone: DataZone) -> u32 {
        self.first_data_zone() + zone.0
    }

    /// A block of a zone of the namespace.
    #[inline]
    #[must_use]
    pub const fn lba(&self, zone: u32, offset: u32) -> Lba {
        Lba(zone as u64 * self.zone_size_lbas + offset as u64)
    }

    /// The data zone that a block is in, and where in it.
    #[inline]
    #[must_use]
    pub const fn place_of(&self, block: PhysicalBlock) -> (DataZone, u32) {
        let each = self.data_blocks();
        (DataZone(block.0 / each), block.0 % each)
    }

    /// The block of a data zone.
    #[inline]
    #[must_use]
    pub const fn block_at(&self, zone: DataZone, offset: u32) -> PhysicalBlock {
        PhysicalBlock(zone.0 * self.data_blocks() + offset)
    }

    /// Where a block is on the drive.
    #[inline]
    #[must_use]
    pub const fn lba_of(&self, block: PhysicalBlock) -> Lba {
        let (zone, offset) = self.place_of(block);
        self.lba(self.zone_of(zone), offset)
    }

    /// Bytes of so many blocks.
    #[must_use]
    pub const fn bytes(&self, blocks: u32) -> usize {
        blocks as usize * self.block_bytes as usize
    }
}

/// One of the two places for an image of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSlot {
    /// The first.
    A,
    /// The second.
    B,
}

impl ImageSlot {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}
