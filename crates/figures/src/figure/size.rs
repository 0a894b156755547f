//! How wide a picture is to be.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Pixels of an inch, as CSS has them.
const PX_PER_INCH: f64 = 96.0;
/// Units with their sizes in pixels.
const UNITS: [(&str, f64); 5] = [
    ("mm", PX_PER_INCH / 25.4),
    ("cm", PX_PER_INCH / 2.54),
    ("in", PX_PER_INCH),
    ("pt", PX_PER_INCH / 72.0),
    ("px", 1.0),
];
/// Narrower pictures have no room for axes.
const LEAST_MM: f64 = 60.0;
/// Wider than any page.
const MOST_MM: f64 = 1200.0;

/// The width of a picture: `85mm`, the width of a column of a paper, or `640px`.
///
/// Text keeps its size (12 pixels are 9 points), so a figure is drawn for its width and not
/// scaled to it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Width {
    number: f64,
    unit: &'static str,
    pixels_per_unit: f64,
}

/// A text is no width of a picture.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{text}\" is no width of a figure: a number with mm, cm, in, pt or px, from 60mm to 1200mm, \
     as \"85mm\" or \"640px\""
)]
pub struct WidthError {
    /// The text.
    pub text: String,
}

impl Width {
    /// In pixels.
    #[must_use]
    pub fn pixels(&self) -> f64 {
        self.number * self.pixels_per_unit
    }

    /// `pixels` in the unit of this width, as an attribute of an SVG document.
    pub(super) fn length(&self, pixels: f64) -> String {
        let number = super::text::pixels(pixels / self.pixels_per_unit);
        format!("{}{}", super::text::trim_zeros(&number), self.unit)
    }
}

impl FromStr for Width {
    type Err = WidthError;

    fn from_str(text: &str) -> Result<Self, WidthError> {
        let error = || WidthError {
            text: text.to_owned(),
        };
        let trimmed = text.trim();
        let known = UNITS.into_iter().find_map(|(unit, size)| {
            let number = trimmed.strip_suffix(unit)?.trim_end();
            Some((number, unit, size))
        });
        let (number, unit, pixels_per_unit) = known.ok_or_else(error)?;
        let is_plain = |c: char| c.is_ascii_digit() || c == '.';
        let number: f64 = match number.parse() {
            Ok(value) if number.chars().all(is_plain) => value,
            _ => return Err(error()),
        };
        let width = Self {
            number,
            unit,
            pixels_per_unit,
        };
        let mm = width.pixels() * 25.4 / PX_PER_INCH;
        // A little less for what is 60 mm in other units.
        if (LEAST_MM - 0.01..=MOST_MM).contains(&mm) {
            Ok(width)
        } else {
            Err(error())
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_have_units_and_bounds() {
        for (text, pixels) in [
            ("85mm", 321.26),
            ("8.5 cm", 321.26),
            ("3.5in", 336.0),
            ("252pt", 336.0),
            (" 640px", 640.0),
        ] {
            let width: Width = text.parse().unwrap();
            assert!((width.pixels() - pixels).abs() < 0.01, "{text}");
            assert_eq!(width.to_string().parse(), Ok(width));
        }
        for text in [
            "", "85", "mm", "59mm", "1201mm", "-85mm", "1e2mm", "infmm", "NaNpx", "8 5mm", "85em",
        ] {
            assert!(text.parse::<Width>().is_err(), "{text}");
        }
        let width: Width = "85mm".parse().unwrap();
        assert_eq!(width.length(width.pixels()), "85mm");
    }
}
