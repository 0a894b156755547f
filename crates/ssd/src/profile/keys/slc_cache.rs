//! The SLC cache.

use zonelab_device::Nanos;

use super::super::Cell;
use super::super::key::{At, Key, Only, Section, at, choice, number, share, size, size_32, time};
use super::{limits, names};
use crate::config::{DriveConfig, SlcCacheConfig};

const STATIC: Only = Only::with("mode = \"static\"", &["slc_cache.mode"], |config| {
    config.slc_cache.is_some()
});

/// A cache of which no key is read yet.
const CACHE: SlcCacheConfig = SlcCacheConfig {
    size_bytes: 0,
    bits_per_cell: 0,
    page_bytes: 0,
    read_ns: Nanos::ZERO,
    program_ns: Nanos::ZERO,
    erase_ns: Nanos::ZERO,
    fold_after_idle_ns: None,
    fold_above_ppm: 0,
    fold_bytes: 0,
};

pub(super) fn slc_cache() -> Section {
    let mut keys = vec![
        choice(
            "slc_cache.mode",
            names::SLC_CACHE,
            At {
                get: |of: &DriveConfig| {
                    Some(match of.slc_cache {
                        None => names::Cache::None,
                        Some(_) => names::Cache::Static,
                    })
                },
                set: |of, mode| {
                    of.slc_cache = match mode {
                        names::Cache::None => None,
                        names::Cache::Static => Some(CACHE),
                    }
                },
            },
        )
        .or(names::Cache::None)
        .says(
            "Where units go that leave the write buffer. `none`: to the blocks of their zones. \
             `static`: to blocks that are set apart and store one bit in each cell, from which \
             they are folded later ([decision 54](decisions/0054-slc-cache.md)).",
        ),
    ];
    keys.extend(cells());
    keys.extend(folding());
    Section {
        path: "slc_cache",
        title: "blocks of one bit per cell in front of the zones",
        text: "What it does is explained in [models/slc-cache.md](models/slc-cache.md).",
        rare: false,
        keys,
    }
}

fn cells() -> [Key; 6] {
    let times = Cell::Slc.times();
    let array = |path, at, usual, text| {
        time(path, at)
            .or(usual)
            .within(Nanos(1), limits::FLASH_TIME)
            .only(STATIC)
            .says(text)
    };
    [
        size("slc_cache.size", at!(slc_cache, Some => size_bytes))
            .related("whole rows of its blocks, one on each plane, and at least two")
            .only(STATIC)
            .says("How much fits. Its blocks are beside those of zones on each plane."),
        number(
            "slc_cache.bits_per_cell",
            at!(slc_cache, Some => bits_per_cell),
        )
        .or(4)
        .within(2, 8)
        .only(STATIC)
        .says(
            "Bits that a cell has in the blocks of zones: a block of the cache holds so much less.",
        ),
        size_32("slc_cache.page_size", at!(slc_cache, Some => page_bytes))
            .follows("as `geometry.page_size`", |config| {
                Some(config.geometry.page_bytes)
            })
            .related("whole logical blocks that divide the page")
            .only(STATIC)
            .says(
                "A page of the cache. It is smaller than `geometry.page_size` where that is a \
                 word line of several pages.",
            ),
        array(
            "slc_cache.read",
            at!(slc_cache, Some => read_ns),
            times.read,
            "The time from the cells of the cache to the page register.",
        ),
        array(
            "slc_cache.program",
            at!(slc_cache, Some => program_ns),
            times.program,
            "The time from the page register to the cells of the cache.",
        ),
        array(
            "slc_cache.erase",
            at!(slc_cache, Some => erase_ns),
            times.erase,
            "The time to erase a block of the cache.",
        ),
    ]
}

fn folding() -> [Key; 3] {
    [
        time(
            "slc_cache.fold_after_idle",
            at!(slc_cache, Some => fold_after_idle_ns),
        )
        .absent("never")
        .within(Nanos::ZERO, limits::TIME)
        .only(STATIC)
        .says(
            "Folding begins when no command has been in flight for so long, and goes on until \
             one comes.",
        ),
        share(
            "slc_cache.fold_above",
            at!(slc_cache, Some => fold_above_ppm),
        )
        .or(750_000)
        .within(0, 1_000_000)
        .only(STATIC)
        .says(
            "Folding goes on beside the host while the log of the cache, from its oldest place \
             that is still to be folded to its end, is longer than this share of the cache, and \
             whenever the write buffer waits for room in it.",
        ),
        size("slc_cache.fold_size", at!(slc_cache, Some => fold_bytes))
            .follows("a page on each plane of the drive", |config| {
                let geometry = &config.geometry;
                let luns = [
                    geometry.channels,
                    geometry.ways,
                    geometry.dies,
                    geometry.planes,
                ];
                let bytes = u64::from(geometry.page_bytes);
                luns.into_iter()
                    .try_fold(bytes, |product, factor| product.checked_mul(factor.into()))
            })
            .at_most(limits::BUFFER_BYTES)
            .related("at least what one program takes")
            .only(STATIC)
            .says("How much is read from the cache and programmed at the same time."),
    ]
}
