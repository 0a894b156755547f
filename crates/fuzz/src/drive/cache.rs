//! An SLC cache for a drive that was drawn without.

use zonelab_device::Nanos;
use zonelab_ssd::config::{DriveConfig, EraseWhen, FinishConfig, NamespaceKind, SlcCacheConfig};

use crate::draw::Draw;

/// Puts a cache behind the write buffer of a drive, if the drive can have one.
pub(crate) fn draw_cache(draw: &mut Draw<'_>, config: &mut DriveConfig) {
    let is_log = |kind: NamespaceKind| kind != NamespaceKind::Zoned;
    let can_have_one = config.write_buffer.is_some()
        && !config.mapping.has_elements()
        && config.zones.zrwa.is_none()
        && !matches!(config.reset.erase, EraseWhen::Thresholds(_))
        && !config.namespaces.iter().any(|of| is_log(of.kind));
    if !can_have_one {
        return;
    }
    let bits_per_cell = draw.int(2..=4);
    // Blocks of the cache have whole pages then; zones have no more rows than before.
    config.geometry.pages_per_block *= bits_per_cell;
    config.finish = draw.pick(&[
        FinishConfig::AtFold,
        FinishConfig::AtFold,
        FinishConfig::Metadata,
    ]);
    let page_bytes = config.geometry.page_bytes;
    let unit = u64::from(page_bytes) * u64::from(config.pages_per_program());
    let mut cache = SlcCacheConfig {
        size_bytes: 0,
        bits_per_cell,
        page_bytes,
        read_ns: Nanos(draw.int(1..=100_000)),
        program_ns: Nanos(draw.int(1..=500_000)),
        erase_ns: Nanos(draw.int(1..=2_000_000)),
        fold_after_idle_ns: draw.maybe(|draw| Nanos(draw.int(0..=2_000_000))),
        fold_above_ppm: draw.int(0..=1_000_000),
        fold_bytes: unit * draw.int(1..=6_u64),
    };
    config.slc_cache = Some(cache);
    let row = cache.row_bytes(&config.geometry);
    let least = (config.cache_reserve_bytes() + unit + row)
        .div_ceil(row)
        .max(2);
    let rows = least + draw.int(0..=2_u64);
    cache.size_bytes = rows * row;
    config.slc_cache = Some(cache);
    config.geometry.blocks_per_plane += u32::try_from(rows).expect("buffers are small");
}
