//! Values of single options.

use std::sync::Arc;

use zonelab_device::Nanos;

use super::job::{MICROSECOND, MILLISECOND, ReadWrite};
use super::value::{self, Wrong, wrong};
use crate::softfinish::SoftFinish;
use crate::verify::{Method, Pattern, VALID_PATTERNS};
use crate::workload::Tolerates;
use crate::workload::contents::Filler;
use crate::workload::distribution::{Distribution, Extent, Part};

pub(super) fn number(text: &str, low: u64, high: u64) -> Result<u64, Wrong> {
    value::bounded(text, 1024, low, high)
}

/// A number that may be negative.
pub(super) fn signed(text: &str) -> Result<i64, Wrong> {
    text.parse().map_err(|_| {
        let what = format!("\"{}\" is not a number", value::shorten(text));
        wrong(what, "a whole number")
    })
}

/// A share from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, Wrong> {
    value::float(text, 0.0, 1.0)
}

/// A number of writes; 0: never.
pub(super) fn writes(text: &str) -> Result<u32, Wrong> {
    number(text, 0, u64::from(u32::MAX)).map(|n| n as u32)
}

/// Whether writes last when they have completed: `O_SYNC` and `O_DSYNC`.
pub(super) fn sync(text: &str) -> Result<bool, Wrong> {
    match text {
        "none" | "0" => Ok(false),
        "sync" | "1" | "dsync" => Ok(true),
        _ => Err(wrong(
            format!("\"{}\" is none of the values", value::shorten(text)),
            "none, sync, dsync",
        )),
    }
}

/// A method of verification; `None`: none.
pub(super) fn verify(text: &str) -> Result<Option<Method>, Wrong> {
    let valid = || Method::ALL.map(Method::name).join(", ");
    match text {
        "0" | "none" => Ok(None),
        "crc32c-intel" => Ok(Some(Method::Crc32c)),
        _ => match Method::ALL.into_iter().find(|method| method.name() == text) {
            Some(method) => Ok(Some(method)),
            None => Err(wrong(
                format!("\"{}\" is none of the values", value::shorten(text)),
                valid(),
            )),
        },
    }
}

pub(super) fn verify_pattern(text: &str) -> Result<Pattern, Wrong> {
    Pattern::parse(text).map_err(|error| wrong(error.to_string(), VALID_PATTERNS))
}

/// Zeros, or what else there is.
pub(super) fn zero_buffers(text: Option<&str>, fill: &mut Filler) -> Result<(), Wrong> {
    let is_on = value::switch(text)?;
    match (is_on, &*fill) {
        (true, _) => *fill = Filler::Zeros,
        (false, Filler::Zeros) => *fill = Filler::Random,
        (false, _) => {}
    }
    Ok(())
}

/// States of verification are neither saved nor loaded.
pub(super) fn no_verify_state(name: &str, text: Option<&str>) -> Result<(), Wrong> {
    match (value::switch(text)?, name) {
        (false, _) => Ok(()),
        (true, "verify_state_load") => Err(wrong(
            "is not supported: a job reads back what it has written itself",
            "what an earlier run has written: rw=read with the same verify, or verify_only=1",
        )),
        (true, _) => Err(wrong(
            "is not supported: a run that ends early cannot be continued",
            "0; what an early run has written is verified by rw=read with the same verify",
        )),
    }
}

/// Whether writes are zone appends.
pub(super) fn write_mode(text: &str) -> Result<bool, Wrong> {
    match text {
        "write" => Ok(false),
        "zone_append" => Ok(true),
        "uncor" | "zeroes" | "verify" => Err(wrong(
            format!("{text} is not supported: jobs write data"),
            "write, zone_append",
        )),
        _ => Err(unknown(text, &["write", "zone_append"])),
    }
}

/// A limit on open zones; 0: none.
pub(super) fn open_zones(text: &str) -> Result<Option<u32>, Wrong> {
    let limit = number(text, 0, u64::from(u32::MAX))?;
    Ok((limit > 0).then_some(limit as u32))
}

/// An interval of samples, in milliseconds without a unit; at least 1 ms.
pub(super) fn interval(text: &str) -> Result<u64, Wrong> {
    value::time(text, MILLISECOND).map(|ns| ns.max(MILLISECOND))
}

pub(super) fn softfinish_pause(text: &str) -> Result<u64, Wrong> {
    let ns = value::time(text, MICROSECOND)?;
    if Nanos(ns) <= SoftFinish::PAUSE_MAX {
        return Ok(ns);
    }
    Err(wrong(
        format!("{} is out of range", Nanos(ns)),
        format!("0 to {}", SoftFinish::PAUSE_MAX),
    ))
}

pub(super) fn percent(text: &str) -> Result<u32, Wrong> {
    value::bounded(text, 1024, 0, 100).map(|percent| percent as u32)
}

pub(super) fn unknown(text: &str, valid: &[&str]) -> Wrong {
    wrong(
        format!("\"{}\" is none of the values", value::shorten(text)),
        valid.join(", "),
    )
}

pub(super) fn read_write(text: &str, kb_base: u32) -> Result<ReadWrite, Wrong> {
    let (name, modifier) = text.split_once(':').unwrap_or((text, ""));
    let (random, directions) = match name {
        "read" => (false, [true, false, false]),
        "write" => (false, [false, true, false]),
        "trim" => (false, [false, false, true]),
        "randread" => (true, [true, false, false]),
        "randwrite" => (true, [false, true, false]),
        "randtrim" => (true, [false, false, true]),
        "rw" | "readwrite" => (false, [true, true, false]),
        "randrw" => (true, [true, true, false]),
        "trimwrite" => (false, [false, true, true]),
        "randtrimwrite" => (true, [false, true, true]),
        _ => {
            let valid = [
                "read",
                "write",
                "trim",
                "randread",
                "randwrite",
                "randtrim",
                "rw",
                "randrw",
                "trimwrite",
                "randtrimwrite",
            ];
            return Err(unknown(name, &valid));
        }
    };
    let (mut in_a_row, mut hole_bytes) = (1, 0);
    match random {
        _ if modifier.is_empty() => {}
        true => in_a_row = number(modifier, 1, u64::from(u32::MAX))? as u32,
        false if modifier.starts_with('-') => {
            let what = format!(
                "{}: going backwards is not supported",
                value::shorten(modifier)
            );
            return Err(wrong(what, "what is left out between operations: 4k"));
        }
        false => hole_bytes = value::bounded(modifier, kb_base, 0, 1 << 50)?,
    }
    Ok(ReadWrite {
        random,
        directions,
        in_a_row,
        hole_bytes,
    })
}

/// Errors that do not end a job. What is verified is compared to its end anyway.
pub(super) fn tolerates(text: &str) -> Result<Tolerates, Wrong> {
    let (reads, writes) = match text {
        "none" | "0" | "verify" => (false, false),
        "read" => (true, false),
        "write" => (false, true),
        "io" | "all" | "1" => (true, true),
        _ => {
            let valid = ["none", "read", "write", "io", "verify", "all"];
            return Err(unknown(text, &valid));
        }
    };
    Ok(Tolerates { reads, writes })
}

/// `4k/60:64k/40`, by direction. Shares left out are equal parts of the rest.
pub(super) fn split_sizes(text: &str, kb_base: u32) -> Result<[Vec<(u64, u32)>; 3], Wrong> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(wrong("more than three directions", "read,write,trim"));
    }
    let mut all: [Vec<(u64, u32)>; 3] = Default::default();
    for (index, split) in all.iter_mut().enumerate() {
        let part = parts
            .get(index)
            .or(parts.last())
            .copied()
            .unwrap_or_default();
        if !part.trim().is_empty() {
            *split = split_of(part, kb_base)?;
        }
    }
    Ok(all)
}

pub(super) fn split_of(text: &str, kb_base: u32) -> Result<Vec<(u64, u32)>, Wrong> {
    let mut sizes = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let bytes = value::bounded(size.trim(), kb_base, 1, 1 << 30)?;
        let share = share.trim();
        let share = match share {
            "" => None,
            text => Some(percent(text)?),
        };
        sizes.push((bytes, share));
    }
    let stated: u32 = sizes.iter().filter_map(|(_, share)| *share).sum();
    let open = sizes.iter().filter(|(_, share)| share.is_none()).count() as u32;
    if stated > 100 || (open == 0 && stated != 100) {
        return Err(wrong(format!("shares add up to {stated} %"), "100 %"));
    }
    // The first of those without a share take what does not divide.
    let mut rest = 100 - stated;
    let mut left = open;
    let mut shared = Vec::new();
    for (bytes, share) in sizes {
        let share = share.unwrap_or_else(|| {
            let mine = rest.div_ceil(left.max(1));
            rest -= mine;
            left -= 1;
            mine
        });
        shared.push((bytes, share));
    }
    Ok(shared)
}

pub(super) fn distribution(text: &str) -> Result<Distribution, Wrong> {
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    if matches!(name, "zoned" | "zoned_abs") {
        return parts(argument, name == "zoned_abs").map(Distribution::Parts);
    }
    if argument.contains(':') {
        return Err(wrong("a centre is not supported", "one number after `:`"));
    }
    let or = |default: f64, low: f64, high: f64| match argument {
        "" => Ok(default),
        text => value::float(text, low, high),
    };
    match name {
        "random" => Ok(Distribution::Uniform),
        // Defaults are fio's.
        "zipf" => Ok(Distribution::Zipf {
            theta: or(1.1, 0.01, 100.0)?,
        }),
        "pareto" => Ok(Distribution::Pareto {
            h: or(0.2, 0.000_1, 0.999_9)?,
        }),
        "normal" => Ok(Distribution::Normal {
            deviation: or(50.0, 0.001, 100.0)?,
        }),
        "sequence" => Err(wrong(
            "sequence is not supported",
            "random with a randseed gives the same places each time",
        )),
        _ => Err(unknown(
            name,
            &[
                "random",
                "zipf:theta",
                "pareto:h",
                "normal:deviation",
                "zoned:operations/size:...",
                "zoned_abs:operations/bytes:...",
            ],
        )),
    }
}

/// `50/5:30/15:20/80`: shares of the operations and of the range, in percent, or, with `in_bytes`,
/// bytes of it. Shares left out are equal parts of the rest.
fn parts(text: &str, in_bytes: bool) -> Result<Arc<[Part]>, Wrong> {
    const VALID: &str = "operations in percent / size, between colons: zoned:60/10:40/90";
    const MOST: usize = 256;
    if text.contains(',') {
        let what = "parts of their own for each direction are not supported";
        return Err(wrong(what, "one list for all, or a job for each direction"));
    }
    let mut pairs = Vec::new();
    for part in text.split(':') {
        let (operations, size) = part.split_once('/').unwrap_or((part, ""));
        let operations = match operations.trim() {
            "" => None,
            text => Some(f64::from(percent(text)?)),
        };
        let size = match (size.trim(), in_bytes) {
            ("", false) => None,
            ("", true) => return Err(wrong(format!("\"{}\"", value::shorten(part)), VALID)),
            (text, true) => Some(value::bounded(text, 1024, 1, 1 << 50)? as f64),
            (text, false) => Some(f64::from(percent(text.trim_end_matches('%'))?)),
        };
        pairs.push((operations, size));
    }
    if pairs.len() > MOST || text.is_empty() {
        return Err(wrong(
            format!("{} parts", pairs.len()),
            format!("1 to {MOST}"),
        ));
    }
    let operations = shares(
        pairs.iter().map(|(operations, _)| *operations),
        "operations",
    )?;
    let sizes: Vec<f64> = match in_bytes {
        true => pairs.iter().map(|(_, size)| size.unwrap_or(0.0)).collect(),
        false => shares(pairs.iter().map(|(_, size)| *size), "sizes")?,
    };
    let part = |(operations, size): (f64, f64)| Part {
        operations: operations / 100.0,
        extent: match in_bytes {
            true => Extent::Bytes(size as u64),
            false => Extent::Share(size / 100.0),
        },
    };
    Ok(operations.into_iter().zip(sizes).map(part).collect())
}

/// Shares in percent; those that are not stated are equal parts of the rest.
fn shares(
    stated: impl Iterator<Item = Option<f64>> + Clone,
    what: &str,
) -> Result<Vec<f64>, Wrong> {
    let sum: f64 = stated.clone().flatten().sum();
    let open = stated.clone().filter(Option::is_none).count();
    if sum > 100.0 || (open == 0 && sum < 100.0) {
        return Err(wrong(format!("{what} add up to {sum} %"), "100 %"));
    }
    let rest = (100.0 - sum) / open.max(1) as f64;
    Ok(stated.map(|share| share.unwrap_or(rest)).collect())
}

/// Percentiles, separated by `:`.
pub(super) fn percentiles(text: &str) -> Result<Vec<f64>, Wrong> {
    let mut list = Vec::new();
    for part in text.split(':') {
        list.push(value::float(part.trim(), 0.0, 100.0)?);
    }
    if list.len() > 20 {
        return Err(wrong(format!("{} percentiles", list.len()), "at most 20"));
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}
