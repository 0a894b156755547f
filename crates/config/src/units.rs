//! Quantities with units: `16KiB`, `3.5ms`, `43.9MiB/s`, `12.5%`.
//!
//! A number is decimal digits, optionally with a point and more digits; a unit
//! follows, with or without a space. Arithmetic is exact: `3.5ms` is 3,500,000
//! nanoseconds, and `0.5ns` is refused because it is not a whole number of
//! them. Units that mean different things to different people (`K`, `MB` in
//! the wrong case) are refused as well.
//!
//! `fmt_*` prints a value so that `parse_*` of it gives the value back.

use std::fmt;

/// Why a text is not a quantity, and what would be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAQuantity {
    /// What is wrong.
    pub what: String,
    /// What would be valid.
    pub valid: String,
}

impl fmt::Display for NotAQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.valid)
    }
}

impl std::error::Error for NotAQuantity {}

/// A kind of quantity: its units, and words for messages.
struct Kind {
    /// What it is counted in, in the plural.
    base: &'static str,
    /// Unit and its size in base units.
    units: &'static [(&'static str, u64)],
    /// The unit that a hint adds to a bare number.
    usual: &'static str,
    /// A value not whole in base units is rounded to the nearest, instead of refused.
    rounds: bool,
    /// Largest value in base units.
    max: u64,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const SIZE: Kind = Kind {
    base: "bytes",
    units: &[
        ("B", 1),
        ("KiB", KIB),
        ("MiB", MIB),
        ("GiB", GIB),
        ("TiB", TIB),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ],
    usual: "KiB",
    rounds: false,
    max: u64::MAX,
};

const RATE: Kind = Kind {
    base: "bytes per second",
    units: &[
        ("B/s", 1),
        ("KiB/s", KIB),
        ("MiB/s", MIB),
        ("GiB/s", GIB),
        ("kB/s", 1_000),
        ("MB/s", 1_000_000),
        ("GB/s", 1_000_000_000),
    ],
    usual: "MiB/s",
    rounds: true,
    max: u64::MAX,
};

const DURATION: Kind = Kind {
    base: "nanoseconds",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    usual: "us",
    rounds: false,
    max: u64::MAX,
};

const PERCENT: Kind = Kind {
    base: "parts per million",
    units: &[("%", 10_000)],
    usual: "%",
    rounds: false,
    max: 1_000_000,
};

/// Reads a size in bytes: `16KiB`, `2GiB`, `4kB`, `512B`, `1.5MiB`.
///
/// # Errors
/// No number, no unit, an unknown or ambiguous unit, not a whole number of
/// bytes, or more than 64 bits.
pub fn parse_size(text: &str) -> Result<u64, NotAQuantity> {
    SIZE.parse(text)
}

/// Reads a time in nanoseconds: `12ns`, `700us`, `3.5ms`, `1s`, `2min`, `1h`.
///
/// # Errors
/// As [`parse_size`]; parts of a nanosecond are refused.
pub fn parse_duration(text: &str) -> Result<u64, NotAQuantity> {
    DURATION.parse(text)
}

/// Reads a rate in bytes per second: `43.9MiB/s`, `3.2GB/s`, `100B/s`; rounded
/// to the nearest whole byte per second (43.9 MiB is not a whole number of bytes).
///
/// # Errors
/// As [`parse_size`].
pub fn parse_rate(text: &str) -> Result<u64, NotAQuantity> {
    RATE.parse(text)
}

/// Reads a share in parts per million: `50%` is 500,000, `12.5%` is 125,000.
///
/// # Errors
/// As [`parse_size`]; also above `100%`, or finer than a part per million.
pub fn parse_percent(text: &str) -> Result<u32, NotAQuantity> {
    let ppm = PERCENT.parse(text)?;
    Ok(u32::try_from(ppm).expect("the kind's maximum is a million"))
}

/// Prints a size in the largest unit of which it is a whole number: `16384` is
/// `16KiB`, `4000` is `4kB`, `513` is `513B`.
#[must_use]
pub fn fmt_size(bytes: u64) -> String {
    SIZE.print(bytes)
}

/// Prints a rate, as [`fmt_size`] with `/s`.
#[must_use]
pub fn fmt_rate(bytes_per_s: u64) -> String {
    RATE.print(bytes_per_s)
}

/// Prints a time in the largest of `s`, `ms`, `us`, `ns` that it fills:
/// `3500000` is `3.5ms`, `725000` is `725us`, `0` is `0ns`.
#[must_use]
pub fn fmt_duration(ns: u64) -> String {
    let (unit, size) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
        .into_iter()
        .find(|(_, size)| ns >= *size)
        .unwrap_or(("ns", 1));
    with_decimals(ns, size, unit)
}

/// Prints parts per million as a percentage: `125000` is `12.5%`.
#[must_use]
pub fn fmt_percent(ppm: u32) -> String {
    with_decimals(u64::from(ppm), 10_000, "%")
}

/// `value / size` in decimals, exactly; `size` is a power of ten.
fn with_decimals(value: u64, size: u64, unit: &str) -> String {
    let (whole, rest) = (value / size, value % size);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let digits = size.ilog10() as usize;
    let decimals = format!("{rest:0digits$}");
    format!("{whole}.{}{unit}", decimals.trim_end_matches('0'))
}

impl Kind {
    fn parse(&self, text: &str) -> Result<u64, NotAQuantity> {
        let trimmed = text.trim();
        let quoted = quote_short(text);
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = trimmed.split_at(digits.unwrap_or(trimmed.len()));
        let unit = unit.trim_start();
        if trimmed.starts_with('-') {
            return Err(self.wrong(format!("{quoted} is negative"), None));
        }
        let Some(number) = Decimal::parse(number) else {
            return Err(self.wrong(format!("{quoted} is not a number with a unit"), None));
        };
        let size = self.unit_size(&quoted, number.text, unit)?;
        self.multiply(&quoted, &number, size)
    }

    /// Size of `unit` in base units.
    fn unit_size(&self, quoted: &str, number: &str, unit: &str) -> Result<u64, NotAQuantity> {
        if unit.is_empty() {
            return Err(self.wrong(format!("{quoted} has no unit"), Some(number)));
        }
        if let Some((_, size)) = self.units.iter().find(|(name, _)| *name == unit) {
            return Ok(*size);
        }
        let meant: Vec<String> = self
            .units
            .iter()
            .filter(|(name, _)| may_mean(unit, name))
            .map(|(name, _)| format!("\"{number}{name}\""))
            .collect();
        let unit = shorten(unit);
        if meant.is_empty() {
            let known: Vec<&str> = self.units.iter().map(|(name, _)| *name).collect();
            return Err(NotAQuantity {
                what: format!("{quoted} has the unknown unit `{unit}`"),
                valid: format!("units are {}", known.join(", ")),
            });
        }
        let kind = if meant.len() > 1 {
            "ambiguous"
        } else {
            "unknown"
        };
        Err(NotAQuantity {
            what: format!("{quoted} has the {kind} unit `{unit}`"),
            valid: format!("write {}", meant.join(" or ")),
        })
    }

    /// `number` times `size`, exactly or rounded as the kind says.
    fn multiply(&self, quoted: &str, number: &Decimal<'_>, size: u64) -> Result<u64, NotAQuantity> {
        let too_large = || NotAQuantity {
            what: format!("{quoted} is too large"),
            valid: format!("at most {}", self.print(self.max)),
        };
        let scaled = number
            .mantissa
            .and_then(|m| m.checked_mul(u128::from(size)));
        let (Some(scaled), Some(scale)) = (scaled, 10_u128.checked_pow(number.decimals)) else {
            return Err(too_large());
        };
        let whole = scaled / scale;
        let rest = scaled % scale;
        let rounded = if self.rounds && rest >= scale - rest {
            whole + 1
        } else {
            whole
        };
        let value = u64::try_from(rounded)
            .ok()
            .filter(|v| *v <= self.max)
            .ok_or_else(too_large)?;
        if rest != 0 && !self.rounds {
            let (below, above) = (self.print(value), self.print(value.saturating_add(1)));
            return Err(NotAQuantity {
                what: format!("{quoted} is not a whole number of {}", self.base),
                valid: format!("write \"{below}\" or \"{above}\""),
            });
        }
        Ok(value)
    }

    /// An error that ends with an example made of `number`.
    fn wrong(&self, what: String, number: Option<&str>) -> NotAQuantity {
        let number = number.filter(|n| n.len() <= 20).unwrap_or("10");
        // A bare 4096 was meant in bytes.
        let in_base_units = self.usual == "KiB" && number.len() >= 4;
        let unit = if in_base_units {
            self.units[0].0
        } else {
            self.usual
        };
        // Times of flash and times of runs are nine orders of magnitude apart.
        let or_seconds = match unit {
            "us" => format!(" or \"{number}s\""),
            _ => String::new(),
        };
        let valid = format!("write for example \"{number}{unit}\"{or_seconds}");
        NotAQuantity { what, valid }
    }

    fn print(&self, value: u64) -> String {
        match self.base {
            "nanoseconds" => fmt_duration(value),
            "parts per million" => with_decimals(value, 10_000, "%"),
            _ => self.print_in_whole_units(value),
        }
    }

    /// In the largest unit of which `value` is a whole number.
    fn print_in_whole_units(&self, value: u64) -> String {
        let whole = |size: &u64| value != 0 && value.is_multiple_of(*size);
        let largest = self
            .units
            .iter()
            .filter(|(_, size)| whole(size))
            .max_by_key(|(_, s)| *s);
        let (unit, size) = largest.unwrap_or(&self.units[0]);
        format!("{}{unit}", value / size)
    }
}

/// Whether somebody who wrote the unit `given` may have meant the unit `name`.
fn may_mean(given: &str, name: &str) -> bool {
    if given.len() > 12 {
        return false;
    }
    let given = given.to_lowercase().replace(['\u{b5}', '\u{3bc}'], "u");
    let lower = name.to_lowercase();
    match lower.split_once('b') {
        // A size or rate. `K`, `KB`, `kb/s` may count in 1000 or 1024, `kib` and `Ki` only in 1024.
        Some((prefix, _)) => {
            let per_second = given
                .strip_suffix("/s")
                .or_else(|| given.strip_suffix("ps"));
            let amount = per_second.unwrap_or(&given);
            let amount = amount.strip_suffix('b').unwrap_or(amount);
            prefix == amount || (prefix.strip_suffix('i') == Some(amount) && !amount.is_empty())
        }
        // A time: `usec`, `sec`, `MS`, `m`.
        None => given.starts_with(&lower) || lower.starts_with(&given),
    }
}

/// A decimal number: `mantissa / 10^decimals`.
struct Decimal<'t> {
    /// As written.
    text: &'t str,
    /// All its digits; `None`: more than fit.
    mantissa: Option<u128>,
    /// How many of them are behind the point.
    decimals: u32,
}

impl<'t> Decimal<'t> {
    /// `None` if `text` is not digits, or digits, a point and digits.
    fn parse(text: &'t str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let mantissa = format!("{whole}{fraction}").parse().ok();
        let decimals = u32::try_from(fraction.len()).ok()?;
        Some(Self {
            text,
            mantissa,
            decimals,
        })
    }
}

/// `text` in quotes as TOML would write it, shortened if it is long.
pub(crate) fn quote_short(text: &str) -> String {
    quote(&shorten(text))
}

/// `text` as a TOML string, with quotes and escapes.
#[must_use]
pub fn quote(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// At most 60 characters of `text`.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
