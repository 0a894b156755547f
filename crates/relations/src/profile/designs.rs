//! Designs of mapping, resets, caches and namespaces.

use super::Sizes;
use crate::case::{DriveText, Keys};
use crate::draw::Draw;

pub(super) fn mapping(draw: &mut Draw, drive: &mut DriveText, of: &Sizes) {
    let design = draw.of(&[
        "direct", "direct", "direct", "lazy", "lazy", "chunk", "stripe",
    ]);
    if design != "direct" || draw.flag() {
        drive.set("mapping.design", design);
    }
    if design == "direct" {
        return;
    }
    let has_elements = matches!(design, "chunk" | "stripe");
    if has_elements && drive.is("write_buffer.placement", "least-work") {
        drive.unset("write_buffer.placement");
    }
    if draw.flag() {
        let zones = of.count + of.groups * draw.int(0, 3);
        drive.set("mapping.physical_zones", zones);
    }
    if draw.one_in(3) {
        drive.set("mapping.allocation", draw.time(1, 500));
        if draw.flag() {
            drive.set("mapping.pool", draw.int(0, 3));
        }
    }
    if draw.one_in(4) {
        drive.set("mapping.allocate_at", draw.of(&["write", "open"]));
    }
    if design == "chunk" {
        if draw.flag() {
            drive.set("mapping.chunk_blocks", draw.divisor(of.rows));
        }
        if draw.one_in(4) {
            drive.set("mapping.depth_weight", draw.int(0, 4));
        }
    }
    let fills = !drive.is("finish.design", "metadata");
    if has_elements && fills && draw.one_in(3) {
        drive.set("finish.extent", "elements");
        if draw.one_in(3) {
            drive.set("mapping.thin", "true");
        }
    } else if draw.one_in(12) && fills {
        drive.set("finish.extent", "zone");
    }
}

pub(super) fn reset(draw: &mut Draw, drive: &mut DriveText, has_buffer: bool) {
    let is_asynchronous = draw.flag();
    if is_asynchronous {
        drive.set("reset.timing", "asynchronous");
    } else if draw.one_in(4) {
        drive.set("reset.timing", "synchronous");
    }
    let can_count = drive.get("mapping.design").is_some_and(|of| of != "direct");
    let mut counts = false;
    if is_asynchronous && draw.flag() {
        let at = match can_count && draw.one_in(3) {
            true => "thresholds",
            false => draw.of(&["first-write", "first-block-write", "background"]),
        };
        counts = at == "thresholds";
        drive.set("reset.erase_at", at);
    }
    if counts {
        thresholds(draw, drive);
    }
    if draw.one_in(4) {
        drive.set("reset.extent", draw.of(&["full", "partial"]));
    }
    let can_wait = !is_asynchronous || drive.is("reset.erase_at", "background");
    if can_wait && draw.one_in(3) {
        drive.set("reset.preemptive", "true");
        if draw.flag() {
            drive.set("reset.max_hold", draw.time(0, 6_000));
        }
    }
    if draw.one_in(6) {
        bookkeeping(draw, drive, has_buffer);
    }
}

fn thresholds(draw: &mut Draw, drive: &mut DriveText) {
    let key = |key: &str| format!("reset.thresholds.{key}");
    if draw.flag() {
        drive.set(&key("free_zones"), draw.int(0, 2));
    }
    if draw.flag() {
        drive.set(&key("invalid_zones"), draw.int(1, 3));
        if draw.one_in(3) {
            drive.set(&key("adapt"), draw.time(1_000, 50_000));
        }
    }
    if draw.flag() {
        let evaluate = draw.of(&["allocation", "command", "change"]);
        drive.set(&key("evaluate"), evaluate);
    }
    if draw.one_in(3) {
        drive.set(&key("zones_at_once"), draw.int(1, 3));
    }
    if draw.one_in(3) {
        drive.set(&key("victim"), draw.of(&["oldest", "least-worn"]));
    }
}

fn bookkeeping(draw: &mut Draw, drive: &mut DriveText, has_buffer: bool) {
    let key = |key: &str| format!("reset.bookkeeping.{key}");
    if draw.flag() {
        drive.set(&key("base"), draw.time(0, 300));
    }
    if draw.flag() {
        drive.set(&key("open_zone"), draw.time(0, 300));
    }
    if draw.flag() {
        drive.set(&key("full_zone"), draw.time(1_000, 3_000));
        if has_buffer && draw.flag() {
            drive.set(&key("drain_pause"), draw.time(100, 900));
            if draw.flag() {
                drive.set(&key("slices"), draw.int(1, 4));
            }
        }
    }
    if has_buffer && draw.one_in(3) {
        drive.set(&key("quiesce"), draw.flag());
    }
}

pub(super) fn slc_cache(draw: &mut Draw, drive: &mut DriveText, of: &Sizes) {
    let key = |key: &str| format!("slc_cache.{key}");
    let bits = draw.of(&[2, 4]);
    drive.unset("finish.");
    drive.unset("geometry.blocks_per_plane");
    let design = draw.of(&["at-fold", "at-fold", "metadata"]);
    drive.set("finish.design", design);
    if draw.one_in(6) {
        return drive.set("slc_cache.mode", "none");
    }
    drive.set("slc_cache.mode", "static");
    drive.set(&key("bits_per_cell"), bits);
    let block = of.pages_per_block * of.page / bits;
    let planes = drive.profile_planes();
    let rows = draw.int(3, 8);
    drive.set(&key("size"), format!("{}B", rows * block * planes));
    if draw.flag() {
        let page = of.page / draw.of(&[1, 2, 4]);
        drive.set(&key("page_size"), format!("{page}B"));
    }
    for (name, least, most) in [
        ("read", 10, 40),
        ("program", 100, 400),
        ("erase", 500, 2_000),
    ] {
        if draw.flag() {
            drive.set(&key(name), draw.time(least, most));
        }
    }
    if draw.flag() {
        drive.set(&key("fold_after_idle"), draw.time(0, 3_000));
    }
    if draw.flag() {
        drive.set(&key("fold_above"), draw.of(&["0%", "30%", "100%"]));
    }
    if draw.one_in(3) {
        let size = of.page * of.planes * draw.int(1, 3);
        drive.set(&key("fold_size"), format!("{size}B"));
    }
}

pub(super) fn areas(draw: &mut Draw, drive: &mut DriveText, of: &Sizes) {
    let blocks = of.capacity / of.lba;
    let granularity = draw.divisor(blocks).min(32);
    let sizes = granularity * draw.int(1, 4);
    drive.set(
        "zones.zrwa.flush_granularity",
        format!("{}B", granularity * of.lba),
    );
    drive.set("zones.zrwa.size", format!("{}B", sizes * of.lba));
    if draw.flag() {
        drive.set("zones.zrwa.count", draw.int(1, 6));
    }
    if draw.flag() {
        drive.set("zones.zrwa.explicit_flush", draw.flag());
    }
}

pub(super) fn namespaces(draw: &mut Draw, drive: &mut DriveText, of: &Sizes) {
    if draw.one_in(3) && of.count >= 4 {
        let first = draw.int(2, of.count - 2);
        drive.namespaces = vec![zoned(draw, first), zoned(draw, of.count - first)];
        return;
    }
    let conventional = match draw.one_in(3) && of.count >= 10 {
        true => {
            let first = draw.int(2, 4);
            drive.namespaces = vec![zoned(draw, first)];
            of.count - first
        }
        false => of.count,
    };
    let mut namespace = Keys::new();
    let mut set = |key: &str, value: String| drop(namespace.insert(key.to_owned(), value));
    set("kind", "conventional".to_owned());
    set("zones", conventional.to_string());
    let handles = drive.namespaces.is_empty() && draw.one_in(4);
    let spare = if handles { 5 } else { draw.int(3, 4) };
    set("spare_zones", spare.to_string());
    if handles {
        set("reclaim_unit_handles", draw.int(1, 2).to_string());
        if draw.flag() {
            set(
                "isolation",
                draw.of(&["initially", "persistently"]).to_owned(),
            );
        }
    }
    if draw.flag() {
        set(
            "collection",
            draw.of(&["greedy", "cost-benefit"]).to_owned(),
        );
    }
    if draw.flag() {
        let unit = of.lba * draw.divisor(of.capacity / of.lba).min(16);
        set("mapping_unit", format!("{unit}B"));
    }
    drive.namespaces.push(namespace);
}

fn zoned(draw: &mut Draw, zones: u64) -> Keys {
    let mut namespace = Keys::new();
    let mut set = |key: &str, value: String| drop(namespace.insert(key.to_owned(), value));
    set("zones", zones.to_string());
    if draw.one_in(4) {
        set("kind", "zoned".to_owned());
    }
    if draw.one_in(3) {
        let active = draw.int(1, zones);
        set("max_active", active.to_string());
        if draw.flag() {
            set("max_open", draw.int(1, active).to_string());
        }
    }
    namespace
}
