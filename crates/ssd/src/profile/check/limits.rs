//! Limits of single values. They are far above real drives and exist so that
//! every configuration within them can be built: nothing overflows, and the
//! counters that the model keeps per block and per zone fit in memory.

use zonelab_device::Nanos;

/// Planes of a drive; also bounds channels, ways and dies.
pub const PLANES: u32 = 1 << 16;
/// Blocks of a drive. The model keeps four bytes for each.
pub const BLOCKS: u32 = 1 << 26;
/// Pages in a block.
pub const PAGES_PER_BLOCK: u32 = 65_535;
/// Bytes in a page.
pub const PAGE_BYTES: u32 = 1 << 20;
/// Zones and physical zones of a drive.
pub const ZONES: u32 = 1 << 22;
/// One flash operation; its time is kept in 32 bits of nanoseconds.
pub const FLASH_TIME: Nanos = Nanos::from_secs(4);
/// Any other time.
pub const TIME: Nanos = Nanos::from_secs(3_600);
/// Firmware cores.
pub const CORES: u32 = 1_024;
/// The slowest host link in bytes per second.
pub const LINK_BYTES_PER_S_MIN: u64 = 1_000_000;
/// Pauses of the drain during one reset.
pub const SLICES: u32 = 1 << 20;
/// A write buffer.
pub const BUFFER_BYTES: u64 = 1 << 40;
/// A zone descriptor extension: 255 units of 64 bytes (ZNS command set 1.1, ZDES).
pub const DESCRIPTOR_EXTENSION_BYTES: u32 = 255 * 64;
/// A random write area and its flush granularity in logical blocks (ZNS command
/// set 1.1, ZRWASZ and ZRWAFG).
pub const ZRWA_LBAS: u32 = 65_535;
/// The smallest transfer limit: MDTS and ZASL count in pages of 4 KiB.
pub const TRANSFER_BYTES_MIN: u32 = 4_096;
/// Characters of a profile's name.
pub const NAME: usize = 64;
