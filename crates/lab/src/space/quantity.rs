//! Values of keys as numbers: what they count, and ranges of them.

use serde::{Deserialize, Serialize};
use zonelab_config::units::{
    fmt_duration, fmt_percent, fmt_rate, fmt_size, parse_duration, parse_percent, parse_rate,
    parse_size,
};

/// Significant decimal digits of a value between bounds.
const DIGITS: u32 = 4;

/// What a value counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Size,
    /// Bytes per second.
    Rate,
    /// Parts per million.
    Share,
    /// A whole number.
    Count,
}

impl Quantity {
    /// What `text`, a value of a file, counts, and how much of it.
    pub fn of(text: &str) -> Option<(Self, u64)> {
        let tries = [Self::Count, Self::Time, Self::Size, Self::Rate, Self::Share];
        tries
            .into_iter()
            .find_map(|quantity| Some((quantity, quantity.parse(text).ok()?)))
    }

    /// What follows the name of a number of base units: `_ns`.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Time => "_ns",
            Self::Size => "_bytes",
            Self::Rate => "_bytes_per_s",
            Self::Share => "_ppm",
            Self::Count => "",
        }
    }

    /// Its base unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Time => "ns",
            Self::Size => "B",
            Self::Rate => "B/s",
            Self::Share => "ppm",
            Self::Count => "1",
        }
    }

    /// How much of it `text` says, in base units.
    pub fn parse(self, text: &str) -> Result<u64, String> {
        match self {
            Self::Time => parse_duration(text).map_err(|error| error.to_string()),
            Self::Size => parse_size(text).map_err(|error| error.to_string()),
            Self::Rate => parse_rate(text).map_err(|error| error.to_string()),
            Self::Share => parse_percent(text)
                .map(u64::from)
                .map_err(|error| error.to_string()),
            Self::Count => text
                .parse()
                .map_err(|_| format!("\"{text}\" is not a whole number")),
        }
    }

    /// As it is written in a file, without quotes.
    pub fn print(self, value: u64) -> String {
        match self {
            Self::Time => fmt_duration(value),
            Self::Size => fmt_size(value),
            Self::Rate => fmt_rate(value),
            Self::Share => fmt_percent(u32::try_from(value).unwrap_or(u32::MAX)),
            Self::Count => value.to_string(),
        }
    }
}

/// Values between bounds that can be written in four digits, with a position
/// from 0 to 1 for each.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Least value.
    pub low: u64,
    /// Greatest value; above the least.
    pub high: u64,
    /// Values are multiples of this; at least 1.
    pub grain: u64,
    /// Equal distances are equal ratios; only with a least value above zero.
    pub is_log: bool,
}

impl Span {
    /// Whether it has values, as every one does that was made of two bounds.
    pub const fn is_sound(&self) -> bool {
        self.low < self.high && self.grain > 0 && !(self.is_log && self.low == 0)
    }

    /// Where between the bounds a value lies.
    pub fn position(&self, value: u64) -> f64 {
        let (low, high, value) = (self.low as f64, self.high as f64, value as f64);
        let position = if self.is_log {
            libm::log(value / low) / libm::log(high / low)
        } else {
            (value - low) / (high - low)
        };
        position.clamp(0.0, 1.0)
    }

    /// The value at a position, rounded.
    pub fn value(&self, position: f64) -> u64 {
        let (low, high) = (self.low as f64, self.high as f64);
        let position = position.clamp(0.0, 1.0);
        self.round(if self.is_log {
            low * libm::exp(position * libm::log(high / low))
        } else {
            low + position * (high - low)
        })
    }

    /// The value for a number that is drawn from 0 to 1. On a linear scale the bounds
    /// are as likely as what is between them, which rounding would make half of it.
    pub fn draw(&self, share: f64) -> u64 {
        if self.is_log {
            return self.value(share);
        }
        let half = self.grain as f64 / 2.0;
        let (low, high) = (self.low as f64 - half, self.high as f64 + half);
        self.round(low + share * (high - low))
    }

    fn round(&self, exact: f64) -> u64 {
        let grains = (exact / self.grain as f64).round() as u64;
        let value = round_digits(grains).saturating_mul(self.grain);
        value.clamp(self.low, self.high)
    }
}

/// Rounds to [`DIGITS`] significant decimal digits.
const fn round_digits(value: u64) -> u64 {
    let Some(digits) = value.checked_ilog10() else {
        return value;
    };
    if digits < DIGITS {
        return value;
    }
    let unit = 10_u64.pow(digits + 1 - DIGITS);
    // `value` is below 10^20 and `unit` a power of ten below it.
    (value / unit + (value % unit * 2 / unit)).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_to_four_digits() {
        assert_eq!(round_digits(123_450), 123_500);
        assert_eq!(round_digits(9_999), 9_999);
        assert_eq!(round_digits(99_996), 100_000);
        assert_eq!(round_digits(u64::MAX), u64::MAX);
    }

    #[test]
    fn both_scales_reach_their_ends_and_keep_the_grain() {
        let page = 16 << 10;
        for is_log in [false, true] {
            let span = Span {
                low: page,
                high: 256 * page,
                grain: page,
                is_log,
            };
            assert_eq!((span.value(0.0), span.value(1.0)), (page, 256 * page));
            assert!(span.position(page).abs() < 1e-12);
            assert!((span.position(256 * page) - 1.0).abs() < 1e-12);
            let middle = span.value(0.5);
            assert_eq!(middle % page, 0);
            assert_eq!(middle / page, if is_log { 16 } else { 129 });
        }
    }
}
