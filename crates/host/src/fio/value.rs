//! Values of options, as fio writes them.

/// A size or place: in bytes, or relative to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the device, at most 100.
    Percent(u32),
    /// Zones.
    Zones(u64),
}

/// What is wrong with a value, and what would be right.
pub(super) type Wrong = (String, String);

pub(super) fn wrong(what: impl Into<String>, valid: impl Into<String>) -> Wrong {
    (what.into(), valid.into())
}

/// Multiplier of a size suffix. fio counts `k`, `kb` in 1024 and `ki`, `kib` in
/// 1000, unless `kb_base=1000` turns it round.
fn multiplier(suffix: &str, kb_base: u32) -> Option<u64> {
    let lower = suffix.to_ascii_lowercase();
    let unit = lower.strip_suffix('b').unwrap_or(&lower);
    let (unit, inverted) = match unit.strip_suffix('i') {
        Some(unit) if !unit.is_empty() => (unit, true),
        _ => (unit, false),
    };
    let base: u64 = match (kb_base == 1000) ^ inverted {
        true => 1000,
        false => 1024,
    };
    let power = match unit {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    Some(base.pow(power))
}

/// Splits a number from what follows it.
fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    text.split_at(end.unwrap_or(text.len()))
}

/// `number` times `unit`, if it is a number and the product whole.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 12 {
        return None;
    }
    let scale = 10_u128.pow(fraction.len() as u32);
    let mantissa: u128 = format!("{whole}{fraction}").parse().ok()?;
    let product = mantissa.checked_mul(u128::from(unit))?;
    product
        .is_multiple_of(scale)
        .then(|| u64::try_from(product / scale).ok())
        .flatten()
}

/// A number with a size suffix: `4k`, `0x1000`, `1.5g`.
pub(super) fn integer(text: &str, kb_base: u32) -> Result<u64, Wrong> {
    let valid = "write a number, with k, m, g, t or p if it is large";
    let no_number = || wrong(format!("\"{}\" is not a number", shorten(text)), valid);
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).map_err(|_| no_number());
    }
    let (number, suffix) = split(text);
    let unit = multiplier(suffix.trim(), kb_base).ok_or_else(no_number)?;
    scaled(number, unit).ok_or_else(no_number)
}

/// As [`integer`], with bounds.
pub(super) fn bounded(text: &str, kb_base: u32, low: u64, high: u64) -> Result<u64, Wrong> {
    let value = integer(text, kb_base)?;
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(wrong(
        format!("{value} is out of range"),
        format!("{low} to {high}"),
    ))
}

/// A size or place: also `50%` and `20z`.
pub(super) fn amount(text: &str, kb_base: u32) -> Result<Amount, Wrong> {
    if let Some(number) = text.strip_suffix('%') {
        let percent = number.trim().parse::<u32>().ok().filter(|p| *p <= 100);
        return percent.map(Amount::Percent).ok_or_else(|| {
            wrong(
                format!("\"{}\" is no percentage", shorten(text)),
                "0% to 100%",
            )
        });
    }
    if let Some(number) = text.strip_suffix(['z', 'Z']) {
        let zones = number.trim().parse::<u64>();
        return zones.map(Amount::Zones).map_err(|_| {
            wrong(
                format!("\"{}\" is no number of zones", shorten(text)),
                "as in 20z",
            )
        });
    }
    integer(text, kb_base).map(Amount::Bytes)
}

/// A time in nanoseconds; a bare number counts in `unit` nanoseconds.
pub(super) fn time(text: &str, unit: u64) -> Result<u64, Wrong> {
    let (number, suffix) = split(text);
    let factor = match suffix.trim().to_ascii_lowercase().as_str() {
        "" => unit,
        "ns" | "nsec" => 1,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => 0,
    };
    let value = (factor > 0).then(|| scaled(number, factor)).flatten();
    value.ok_or_else(|| {
        let what = format!("\"{}\" is no time", shorten(text));
        wrong(what, "a number with us, ms, s, m, h or d")
    })
}

/// A switch: on if it has no value.
pub(super) fn switch(value: Option<&str>) -> Result<bool, Wrong> {
    match value {
        None | Some("1" | "true") => Ok(true),
        Some("0" | "false") => Ok(false),
        Some(other) => Err(wrong(
            format!("\"{}\" is neither 0 nor 1", shorten(other)),
            "the name alone switches it on",
        )),
    }
}

/// A number with a decimal point.
pub(super) fn float(text: &str, low: f64, high: f64) -> Result<f64, Wrong> {
    text.parse::<f64>()
        .ok()
        .filter(|value| (low..=high).contains(value))
        .ok_or_else(|| {
            wrong(
                format!("\"{}\" is no number in range", shorten(text)),
                format!("{low} to {high}"),
            )
        })
}

/// Values by direction (read, write, trim), separated by commas: one for all;
/// of two the second is for writes and trims; an empty one leaves the default.
pub(super) fn by_direction<T: Copy>(
    text: &str,
    values: &mut [T; 3],
    read: impl Fn(&str) -> Result<T, Wrong>,
) -> Result<(), Wrong> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        let what = format!("{} values for three directions", parts.len());
        return Err(wrong(what, "read,write,trim"));
    }
    for (index, value) in values.iter_mut().enumerate() {
        let part = parts
            .get(index)
            .or(parts.last())
            .copied()
            .unwrap_or_default();
        if !part.is_empty() {
            *value = read(part)?;
        }
    }
    Ok(())
}

/// A value in a message: not more of it than anybody wants to see.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_those_of_fio() {
        for (text, base, value) in [
            ("4k", 1024, 4_096),
            ("4K", 1024, 4_096),
            ("4kb", 1024, 4_096),
            ("4kib", 1024, 4_000),
            ("4ki", 1024, 4_000),
            ("4k", 1000, 4_000),
            ("4kib", 1000, 4_096),
            ("0x1000", 1024, 4_096),
            ("1.5m", 1024, 3 << 19),
            ("512b", 1024, 512),
            ("2g", 1024, 2 << 30),
            ("1p", 1024, 1 << 50),
        ] {
            assert_eq!(integer(text, base), Ok(value), "{text}");
        }
        for text in [
            "",
            "k",
            "4x",
            "-1",
            "1.1",
            "99999999999999999999",
            "0x",
            "1e3",
            ".5k",
        ] {
            assert!(integer(text, 1024).is_err(), "{text}");
        }
    }

    #[test]
    fn places_may_count_in_zones_and_percent() {
        assert_eq!(amount("20z", 1024), Ok(Amount::Zones(20)));
        assert_eq!(amount("50%", 1024), Ok(Amount::Percent(50)));
        assert_eq!(amount("1m", 1024), Ok(Amount::Bytes(1 << 20)));
        for text in ["101%", "%", "z", "1.5z", "-1z"] {
            assert!(amount(text, 1024).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_a_unit_of_their_own_or_that_of_the_option() {
        const SECOND: u64 = 1_000_000_000;
        for (text, ns) in [
            ("30", 30 * SECOND),
            ("30s", 30 * SECOND),
            ("2m", 120 * SECOND),
            ("1.5h", 5_400 * SECOND),
            ("1d", 86_400 * SECOND),
            ("250ms", SECOND / 4),
            ("7us", 7_000),
        ] {
            assert_eq!(time(text, SECOND), Ok(ns), "{text}");
        }
        for text in ["", "s", "1 week", "99999999999999d"] {
            assert!(time(text, SECOND).is_err(), "{text}");
        }
    }

    #[test]
    fn directions_inherit_as_in_fio() {
        let read = |text: &str| integer(text, 1024);
        for (text, expected) in [
            ("8k", [8_192, 8_192, 8_192]),
            ("8k,32k", [8_192, 32_768, 32_768]),
            ("8k,32k,", [8_192, 32_768, 1]),
            (",8k", [1, 8_192, 8_192]),
            (",8k,", [1, 8_192, 1]),
            ("1k,2k,3k", [1_024, 2_048, 3_072]),
        ] {
            let mut values = [1; 3];
            by_direction(text, &mut values, read).unwrap();
            assert_eq!(values, expected, "{text}");
        }
        assert!(by_direction("1,2,3,4", &mut [0; 3], read).is_err());
    }
}
