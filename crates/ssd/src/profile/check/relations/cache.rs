//! Rules about the SLC cache.

use zonelab_config::units::fmt_size;

use super::{Rules, multiples, not_a_multiple, size};
use crate::config::{EraseWhen, FinishConfig, NamespaceConfig, NamespaceKind, SlcCacheConfig};

impl Rules<'_> {
    pub(super) fn slc_cache(&mut self) {
        let Some(cache) = self.config.slc_cache else {
            if self.config.finish == FinishConfig::AtFold {
                let what = "there is no SLC cache to fold from";
                let valid = "set slc_cache.mode = \"static\", or design = \"fill\"";
                self.refuse("finish.design", what, valid);
            }
            return;
        };
        self.beside_cache();
        if self.cache_pages(&cache) {
            self.cache_size(&cache);
        }
    }

    /// What a drive with a cache has to have, and what it cannot have.
    fn beside_cache(&mut self) {
        let key = "slc_cache.mode";
        if self.config.write_buffer.is_none() {
            let what = "it takes what leaves a write buffer, and there is none";
            let valid = "set write_buffer.mode = \"write-back\", or mode = \"none\"";
            self.refuse(key, what, valid);
        }
        if self.config.mapping.has_elements() {
            let what = "it is not modelled in front of zones that consist of storage elements";
            let valid = "set mapping.design = \"direct\" or \"lazy\", or mode = \"none\"";
            self.refuse(key, what, valid);
        }
        if self.config.zones.zrwa.is_some() {
            let what = "it is not modelled beside random write areas";
            self.refuse(key, what, "leave zones.zrwa out, or set mode = \"none\"");
        }
        if matches!(self.config.reset.erase, EraseWhen::Thresholds(_)) {
            let what = "it is not modelled with erasure by thresholds";
            let valid = "use another reset.erase_at, or mode = \"none\"";
            self.refuse(key, what, valid);
        }
        let is_log = |of: &NamespaceConfig| of.kind != NamespaceKind::Zoned;
        if self.config.namespaces.iter().any(is_log) {
            let what = "it is not modelled in front of conventional namespaces";
            self.refuse(key, what, "zoned namespaces only, or mode = \"none\"");
        }
        if matches!(self.config.finish, FinishConfig::Fill { .. }) {
            let what = "a fill would program the end of a zone before what is in the SLC cache";
            let valid = "use design = \"at-fold\" or \"metadata\"";
            self.refuse("finish.design", what, valid);
        }
    }

    /// Whether blocks of the cache have whole pages.
    fn cache_pages(&mut self, cache: &SlcCacheConfig) -> bool {
        let page = self.config.geometry.page_bytes;
        let (bytes, lba) = (cache.page_bytes, self.config.lba_bytes);
        if bytes == 0 || !bytes.is_multiple_of(lba) {
            let what = not_a_multiple(bytes, "the logical block", lba);
            self.refuse("slc_cache.page_size", what, multiples(bytes, lba));
            return false;
        }
        if !page.is_multiple_of(bytes) {
            let what = format!("{} does not divide the page ({})", size(bytes), size(page));
            self.refuse("slc_cache.page_size", what, format!("use {}", size(page)));
            return false;
        }
        let (block, is_whole) = cache.block_bytes(&self.config.geometry);
        if !is_whole {
            let what = format!(
                "with {} bits per cell, a block of {} has no whole number of pages of {}",
                cache.bits_per_cell,
                fmt_size(u64::from(self.config.geometry.pages_per_block) * u64::from(page)),
                size(bytes)
            );
            let valid = "a number by which the pages of a block can be divided";
            self.refuse("slc_cache.bits_per_cell", what, valid);
        }
        debug_assert!(!is_whole || block > 0, "a block has pages");
        is_whole
    }

    fn cache_size(&mut self, cache: &SlcCacheConfig) {
        let key = "slc_cache.size";
        let row = cache.row_bytes(&self.config.geometry);
        let rows = cache.size_bytes / row;
        if !cache.size_bytes.is_multiple_of(row) || rows < 2 {
            let what = format!(
                "{} is not two or more rows of its blocks, which hold {} on all planes",
                fmt_size(cache.size_bytes),
                fmt_size(row)
            );
            let below = (rows >= 2).then(|| fmt_size(rows * row));
            let above = rows
                .max(1)
                .checked_add(1)
                .and_then(|rows| rows.checked_mul(row));
            let near: Vec<String> = below.into_iter().chain(above.map(fmt_size)).collect();
            return self.refuse(key, what, format!("use {}", near.join(" or ")));
        }
        if rows > u64::from(u32::MAX) {
            let what = format!("{rows} rows are more than a plane has blocks");
            return self.refuse(key, what, "fewer than 2^32 rows");
        }
        let unit =
            u64::from(self.config.geometry.page_bytes) * u64::from(self.config.pages_per_program());
        // The row that is being filled, what power may need, and what comes next.
        let reserve = self.config.cache_reserve_bytes();
        let least = reserve.saturating_add(unit).saturating_add(row);
        if cache.size_bytes < least {
            let what = format!(
                "{} leaves nothing beside a row of blocks and {} for what the write buffer holds \
                 when power is lost",
                fmt_size(cache.size_bytes),
                fmt_size(reserve)
            );
            let valid = format!(
                "at least {}",
                fmt_size(least.div_ceil(row).saturating_mul(row))
            );
            self.refuse(key, what, valid);
        }
        if cache.fold_bytes < unit {
            let what = format!(
                "{} is less than one program takes",
                fmt_size(cache.fold_bytes)
            );
            self.refuse(
                "slc_cache.fold_size",
                what,
                format!("at least {}", fmt_size(unit)),
            );
        }
    }
}
