//! Numbers as a person reads them.

/// `value` with four significant digits, without an exponent where that is
/// readable.
#[must_use]
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        return "-".to_owned();
    }
    // Nothing has no digits: `0.000` would be something that was rounded away.
    if magnitude == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e7).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    // The exponent after rounding: 9.9996 becomes 10.00 and not 10.000.
    let rounded = format!("{value:.3e}");
    let exponent = rounded
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0_i32);
    let decimals = usize::try_from(3 - exponent).unwrap_or(0);
    let rounded: f64 = rounded.parse().unwrap_or(value);
    format!("{rounded:.decimals$}")
}

/// A time in microseconds as a person reads it: from 10 ms on in milliseconds or seconds,
/// with that unit.
#[must_use]
pub fn microseconds(us: f64) -> String {
    const MS: f64 = 1e3;
    const S: f64 = 1e6;
    match us.abs() {
        many if many >= 10.0 * S && many.is_finite() => format!("{} s", number(us / S)),
        some if some >= 10.0 * MS && some.is_finite() => format!("{} ms", number(us / MS)),
        _ => number(us),
    }
}

/// A time as a person reads it, with the unit that keeps it short: `77.07 ms`.
#[must_use]
pub fn time(ns: u64) -> String {
    let (of, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1e3, "us"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", number(ns as f64 / of))
}

/// A value in a column of values of several units.
#[must_use]
pub fn value(value: f64, unit: &str) -> String {
    match unit {
        "us" => microseconds(value),
        _ => number(value),
    }
}

/// A value and half the width of its confidence interval, if that is known, in the same
/// unit: `12.10 ± 0.31 s`.
#[must_use]
pub fn measured(of: f64, half_width: Option<f64>, unit: &str) -> String {
    let Some(half) = half_width.filter(|_| of.is_finite()) else {
        return value(of, unit);
    };
    let text = value(of, unit);
    let (digits, suffix) = text.split_once(' ').unwrap_or((&text, ""));
    let scale = match suffix {
        "s" => 1e6,
        "ms" => 1e3,
        _ => 1.0,
    };
    let gap = if suffix.is_empty() { "" } else { " " };
    format!("{digits} ± {}{gap}{suffix}", two_digits(half / scale))
}

/// `value` with two significant digits.
fn two_digits(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let rounded = format!("{value:.1e}");
    let (_, exponent) = rounded.split_once('e').unwrap_or(("", "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(1e-5..1e7).contains(&magnitude) {
        return rounded;
    }
    let decimals = usize::try_from(1 - exponent).unwrap_or(0);
    let rounded: f64 = rounded.parse().unwrap_or(value);
    format!("{rounded:.decimals$}")
}

/// A relative error in per cent with its sign: "+1.2 %".
#[must_use]
pub fn percent(error: f64) -> String {
    let percent = error * 100.0;
    let text = format!("{percent:+.1} %");
    if text == "-0.0 %" || text == "+0.0 %" {
        "0.0 %".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_and_its_interval_have_one_unit() {
        assert_eq!(measured(64.8, Some(0.2137), "KIOPS"), "64.80 ± 0.21");
        assert_eq!(measured(12.1e6, Some(31_000.0), "us"), "12.10 ± 0.031 s");
        assert_eq!(measured(45_820.0, Some(996.0), "us"), "45.82 ± 1.0 ms");
        assert_eq!(measured(733.0, Some(12.4), "us"), "733.0 ± 12");
        assert_eq!(measured(733.0, Some(0.0), "us"), "733.0 ± 0");
        assert_eq!(measured(733.0, None, "us"), "733.0");
        assert_eq!(measured(1234.0, Some(1234.0), "1"), "1234 ± 1200");
        assert_eq!(measured(1.0, Some(1e-9), "1"), "1.000 ± 1.0e-9");
        assert_eq!(measured(f64::NAN, Some(1.0), "us"), "-");
    }
}
