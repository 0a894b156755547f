//! The free parameters of a profile: their values, bounds and units.

use zonelab_config::{Override, nearest};
use zonelab_lab::space::{Quantity, Span};
use zonelab_ssd::profile::{Profile, describe};

use super::CalibrateError;
use super::profile_text::ProfileText;

/// A key that may be changed, as it is named on the command line: `KEY` or
/// `KEY=LOW..HIGH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeKey {
    /// Path of the key, `media.read`; a number selects an element of a list.
    pub key: String,
    /// Bounds as written; without them half to twice the start value.
    pub bounds: Option<(String, String)>,
}

impl FreeKey {
    /// Reads `KEY` or `KEY=LOW..HIGH`.
    ///
    /// # Errors
    /// Bounds that are not two values with `..` between them.
    pub fn parse(text: &str) -> Result<Self, CalibrateError> {
        let (key, bounds) = match text.split_once('=') {
            None => (text, None),
            Some((key, range)) => {
                let bounds = range.split_once("..").filter(|(low, high)| {
                    !low.trim().is_empty() && !high.trim_start_matches('=').trim().is_empty()
                });
                let Some((low, high)) = bounds else {
                    return Err(CalibrateError::Key {
                        key: key.trim().to_owned(),
                        what: format!(
                            "\"{range}\" is no range: write for example {}=40us..90us",
                            key.trim()
                        ),
                    });
                };
                let high = high.strip_prefix('=').unwrap_or(high);
                (key, Some((low.trim().to_owned(), high.trim().to_owned())))
            }
        };
        Ok(Self {
            key: key.trim().to_owned(),
            bounds,
        })
    }
}

/// A free parameter. Values are in base units: nanoseconds, bytes, ...
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Path of the key.
    pub key: String,
    pub(super) quantity: Quantity,
    /// Value in the start profile.
    pub start: u64,
    /// Least value that is tried.
    pub low: u64,
    /// Greatest value that is tried.
    pub high: u64,
    /// Values are multiples of this.
    grain: u64,
}

impl Parameter {
    /// Finds a key in the start profile.
    ///
    /// # Errors
    /// There is no such key, it is no number, or its bounds make no sense.
    pub(super) fn new(
        free: &FreeKey,
        text: &ProfileText,
        profile: &Profile,
    ) -> Result<Self, CalibrateError> {
        let wrong = |what: String| CalibrateError::Key {
            key: free.key.clone(),
            what,
        };
        let value = match text.value(&free.key) {
            Some(value) => value,
            None => default_value(&free.key, profile).map_err(wrong)?,
        };
        let Some((quantity, start)) = Quantity::of(&value) else {
            return Err(wrong(format!(
                "its value is {value}, which is no number that could be fitted"
            )));
        };
        let (low, high) = match &free.bounds {
            Some((low, high)) => {
                let low = quantity.parse(low).map_err(wrong)?;
                let high = quantity.parse(high).map_err(wrong)?;
                (low, high)
            }
            None if start == 0 => {
                return Err(wrong(format!(
                    "its value is {value}, so there is no half and no double of it: say \
                     between which values it lies, {}=LOW..HIGH",
                    free.key
                )));
            }
            None => (start.div_ceil(2), start.saturating_mul(2)),
        };
        let print = |value| quantity.print(value);
        if low >= high {
            return Err(wrong(format!(
                "bounds {}..{} are empty: the lower comes first",
                print(low),
                print(high)
            )));
        }
        if !(low..=high).contains(&start) {
            return Err(wrong(format!(
                "its start value {} is not within {}..{}",
                print(start),
                print(low),
                print(high)
            )));
        }
        Ok(Self {
            key: free.key.clone(),
            quantity,
            start,
            low,
            high,
            grain: grain(quantity, start, profile),
        })
    }

    /// A value as a profile says it.
    #[must_use]
    pub fn print(&self, value: u64) -> String {
        self.quantity.print(value)
    }

    /// The setting that gives the parameter this value.
    pub(super) fn setting(&self, value: u64) -> Override {
        let text = format!("{}={}", self.key, self.print(value));
        // The path was found in the profile, and the value is one of a profile.
        Override::parse(&text).expect("a key that was found is a path")
    }

    /// Where between its bounds a value lies, from 0 to 1: on a logarithmic
    /// scale unless the lower bound is zero.
    pub(super) fn position(&self, value: u64) -> f64 {
        self.span().position(value)
    }

    /// The value at a position, rounded to what can be written in four digits.
    pub(super) fn value(&self, position: f64) -> u64 {
        self.span().value(position)
    }

    const fn span(&self) -> Span {
        Span {
            low: self.low,
            high: self.high,
            grain: self.grain,
            is_log: self.low > 0,
        }
    }
}

/// The value of a key that the file does not state.
fn default_value(key: &str, profile: &Profile) -> Result<String, String> {
    let rows = describe(profile);
    let of_file = |section: &str| !matches!(section, "derived" | "expected" | "advice");
    let path = |section: &str, key: &str| match section {
        "" => key.to_owned(),
        _ => format!("{section}.{key}"),
    };
    let keys: Vec<(String, &str)> = rows
        .iter()
        .filter(|row| of_file(row.section))
        .map(|row| (path(row.section, row.key), row.value.as_str()))
        .collect();
    if let Some((_, value)) = keys.iter().find(|(known, _)| known == key) {
        return Ok((*value).to_owned());
    }
    let near = nearest(key, keys.iter().map(|(known, _)| known.as_str()));
    let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Err(format!(
        "the profile has no such key, or it has no effect in it{hint}"
    ))
}

/// What values must be a multiple of: sizes stay whole pages, or whole logical
/// blocks, if the start value is.
fn grain(quantity: Quantity, start: u64, profile: &Profile) -> u64 {
    if quantity != Quantity::Size {
        return 1;
    }
    let config = &profile.config;
    [config.geometry.page_bytes, config.lba_bytes, 512]
        .into_iter()
        .map(u64::from)
        .find(|grain| start.is_multiple_of(*grain))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(key: &str) -> Result<Parameter, String> {
        let name = "confznspp";
        let text = zonelab_ssd::profile::builtin_text(name).unwrap();
        let profile = zonelab_ssd::profile::builtin(name).unwrap();
        let text = ProfileText::parse("confznspp.toml", text).unwrap();
        FreeKey::parse(key)
            .and_then(|free| Parameter::new(&free, &text, &profile))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn bounds_are_half_and_double_unless_stated() {
        let read = parameter("media.read").unwrap();
        assert_eq!((read.start, read.low, read.high), (60_000, 30_000, 120_000));
        let read = parameter("media.read=50us..=80us").unwrap();
        assert_eq!((read.low, read.high), (50_000, 80_000));
        // Nothing in the file says so: a default.
        let hold = parameter("front_end.read=0us..10us").unwrap();
        assert_eq!((hold.start, hold.high), (0, 10_000));
    }

    #[test]
    fn keys_that_cannot_be_fitted_are_refused() {
        let error = |key: &str| parameter(key).unwrap_err();
        assert!(error("media.raed").contains("did you mean media.read?"));
        assert!(error("media.planes").contains("independent"));
        assert!(error("finish.pause").contains("finish.pause=LOW..HIGH"));
        assert!(error("media.read=80us..50us").contains("80us..50us are empty"));
        assert!(error("media.read=70us..90us").contains("60us is not within"));
        assert!(error("media.read=1..2").contains("no unit"));
        assert!(error("media.read=50us").contains("is no range"));
        assert!(error("media.read=..50us").contains("is no range"));
        assert!(error("").contains("no such key"));
    }

    #[test]
    fn values_have_four_digits_and_whole_pages() {
        let read = parameter("media.read").unwrap();
        assert_eq!(read.value(0.5), 60_000);
        assert_eq!(read.value(read.position(60_000)), 60_000);
        for step in 0..=1_000 {
            let value = read.value(f64::from(step) / 1_000.0);
            assert_eq!(value % 10, 0, "{value} has more than four digits");
            assert!((read.low..=read.high).contains(&value));
        }
        let granularity = parameter("finish.granularity").unwrap();
        for step in 0..=100 {
            let value = granularity.value(f64::from(step) / 100.0);
            assert_eq!(value % (16 << 10), 0, "{value}");
        }
        let pause = parameter("finish.pause=0us..1ms").unwrap();
        assert_eq!((pause.value(0.0), pause.value(0.25)), (0, 250_000));
    }
}
