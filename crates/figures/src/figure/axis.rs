//! Axes: range, ticks and the place of a value.

use super::text;

/// How values are spread along an axis.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances are equal differences.
    Linear,
    /// Equal distances are equal ratios; only positive values have a place.
    Log10,
}

/// What an axis shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity ("throughput").
    pub quantity: String,
    /// Its unit ("KIOPS"); empty for pure numbers. Constructors turn "us" into "µs".
    pub unit: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Range that the axis covers at least; it grows if the data need it.
    pub span: Option<(f64, f64)>,
    /// Labelled values, for quantities with natural steps (concurrency 1, 2,
    /// 4, ...); empty to choose them from the range.
    pub ticks: Vec<f64>,
    /// Values with what is written at them, for those that are no numbers; empty for
    /// others.
    pub labels: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis. It starts at zero unless the data lie far from it.
    #[must_use]
    pub fn linear(quantity: impl Into<String>, unit: impl Into<String>) -> Self {
        Self::new(quantity.into(), unit.into(), Scale::Linear)
    }

    /// A logarithmic axis, base 10.
    #[must_use]
    pub fn log10(quantity: impl Into<String>, unit: impl Into<String>) -> Self {
        Self::new(quantity.into(), unit.into(), Scale::Log10)
    }

    fn new(quantity: String, unit: String, scale: Scale) -> Self {
        // Files and columns spell it in ASCII.
        let unit = if unit == "us" { "µs".to_owned() } else { unit };
        Self {
            quantity,
            unit,
            scale,
            span: None,
            ticks: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Makes the axis cover at least `low` to `high`.
    #[must_use]
    pub fn spanning(mut self, low: f64, high: f64) -> Self {
        self.span = Some((low, high));
        self
    }

    /// Labels exactly these values (those that are in range).
    #[must_use]
    pub fn with_ticks(mut self, ticks: impl IntoIterator<Item = f64>) -> Self {
        self.ticks = ticks.into_iter().collect();
        self
    }

    /// Writes these texts at these values (those that are in range), and nothing else.
    #[must_use]
    pub fn with_labels(mut self, labels: impl IntoIterator<Item = (f64, String)>) -> Self {
        self.labels = labels.into_iter().collect();
        self
    }

    /// "quantity (unit)".
    pub(super) fn caption(&self) -> String {
        if self.unit.is_empty() {
            self.quantity.clone()
        } else {
            format!("{} ({})", self.quantity, self.unit)
        }
    }

    /// Whether `value` has a place on this axis. The magnitude is bounded so
    /// that no sum or ratio of two values overflows.
    pub(super) fn places(&self, value: f64) -> bool {
        match self.scale {
            Scale::Linear => value.is_finite() && value.abs() <= 1e100,
            Scale::Log10 => (1e-100..=1e100).contains(&value),
        }
    }
}

/// A mark on an axis. Minor ticks have no label and no grid line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// An axis with its final range and ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fitted {
    scale: Scale,
    low: f64,
    high: f64,
    pub(super) ticks: Vec<Tick>,
    /// The ticks were chosen by whoever made the axis, so that each of them counts.
    pub(super) is_chosen: bool,
}

impl Fitted {
    /// Fits `axis` to those of `values` that it can place.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let extent = values.filter(|v| axis.places(*v)).fold(None, widen);
        let span = axis
            .span
            .filter(|s| axis.places(s.0) && axis.places(s.1) && s.0 < s.1);
        let mut fitted = match axis.scale {
            Scale::Linear => linear(extent, span),
            Scale::Log10 => logarithmic(extent, span),
        };
        if !axis.ticks.is_empty() {
            fitted.is_chosen = true;
            let inside = axis
                .ticks
                .iter()
                .filter(|v| axis.places(**v) && fitted.covers(**v));
            fitted.ticks = inside
                .map(|v| Tick {
                    value: *v,
                    label: label(*v, None),
                })
                .collect();
        }
        if !axis.labels.is_empty() {
            fitted.is_chosen = true;
            let inside = |v: f64| axis.places(v) && fitted.covers(v);
            let labels = axis.labels.iter().filter(|(value, _)| inside(*value));
            let ticks = labels.map(|(value, label)| Tick {
                value: *value,
                label: label.clone(),
            });
            fitted.ticks = ticks.collect();
        }
        fitted
    }

    fn covers(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The place of `value` as a share of the axis, 0 to 1; values outside the
    /// range go to its ends.
    pub(super) fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log10 => {
                let value = libm::log10(value.max(self.low));
                let (low, high) = (libm::log10(self.low), libm::log10(self.high));
                (value - low) / (high - low)
            }
        };
        share.clamp(0.0, 1.0)
    }
}

fn widen(extent: Option<(f64, f64)>, value: f64) -> Option<(f64, f64)> {
    let (low, high) = extent.unwrap_or((value, value));
    Some((low.min(value), high.max(value)))
}

/// `10^exponent`. Negative powers go through a division, which rounds once.
fn power_of_ten(exponent: i32) -> f64 {
    let power = libm::pow(10.0, f64::from(exponent.abs()));
    if exponent < 0 { 1.0 / power } else { power }
}

/// `mantissa`×10^`exponent`, rounded once for the exponents that occur.
fn scaled(mantissa: f64, exponent: i32) -> f64 {
    let power = libm::pow(10.0, f64::from(exponent.abs()));
    if exponent < 0 {
        mantissa / power
    } else {
        mantissa * power
    }
}

/// The decade of `value`: the largest `k` with 10^k <= value (within rounding).
fn decade(value: f64) -> i32 {
    // In range: callers pass magnitudes between 1e-110 and 1e110.
    libm::floor(libm::log10(value) + 1e-9) as i32
}

/// A step of 1, 2, 2.5 or 5 times a power of ten, at least about `raw`.
fn nice_step(raw: f64) -> f64 {
    let exponent = decade(raw);
    let mantissa = raw / power_of_ten(exponent);
    let nice = [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|m| mantissa <= m * 1.000_001);
    scaled(nice.unwrap_or(10.0), exponent)
}

/// Multiples of `step` within `low` to `high`.
fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let tolerance = 1e-6;
    // The quotients are small: a range has at least 1e-9 of its magnitude, and
    // a step a twentieth of the range.
    let first = libm::ceil(low / step - tolerance) as i64;
    let last = libm::floor(high / step + tolerance) as i64;
    let last = last.min(first.saturating_add(50));
    (first..=last).map(|n| n as f64 * step).collect()
}

fn linear(extent: Option<(f64, f64)>, span: Option<(f64, f64)>) -> Fitted {
    let (data_low, data_high) = extent.or(span).unwrap_or((0.0, 1.0));
    let (mut low, mut high) = (data_low, data_high);
    if let Some((at_least, at_most)) = span {
        low = low.min(at_least);
        high = high.max(at_most);
    }
    let magnitude = low.abs().max(high.abs());
    if high - low <= magnitude * 1e-9 || high - low < 1e-100 {
        let pad = if magnitude < 1e-90 {
            1.0
        } else {
            magnitude * 0.5
        };
        (low, high) = (low - pad, high + pad);
    }
    if low > 0.0 && low <= high * 0.5 {
        low = 0.0;
    }
    let step = nice_step((high - low) / 6.0);
    // Ends that were asked for stay as they are; ends that come from the data
    // move out to a tick, with a little room for the marker.
    let room = (high - low) * 0.015;
    if span.is_none_or(|s| low < s.0) && low != 0.0 {
        low = libm::floor((low - room) / step) * step;
    }
    if span.is_none_or(|s| high > s.1) && high != 0.0 {
        high = libm::ceil((high + room) / step) * step;
    }
    let ticks = multiples(low, high, step);
    let ticks = ticks
        .into_iter()
        .map(|v| Tick {
            value: v,
            label: label(v, Some(step)),
        })
        .collect();
    Fitted {
        scale: Scale::Linear,
        low,
        high,
        ticks,
        is_chosen: false,
    }
}

/// The nearest end of a logarithmic axis outside `value`: the largest of the
/// `mantissas`×10^k that is at most `value`, or the smallest at least `value`.
fn outer(value: f64, mantissas: &[f64], up: bool) -> f64 {
    let exponent = decade(value);
    let candidates = (exponent - 1..=exponent + 1)
        .flat_map(|k| mantissas.iter().map(move |m| scaled(*m, k)))
        .filter(|c| if up { *c >= value } else { *c <= value });
    if up {
        candidates.fold(f64::INFINITY, f64::min)
    } else {
        candidates.fold(0.0, f64::max)
    }
}

fn logarithmic(extent: Option<(f64, f64)>, span: Option<(f64, f64)>) -> Fitted {
    let (mut low, mut high) = extent.or(span).unwrap_or((1.0, 10.0));
    if let Some((at_least, at_most)) = span {
        low = low.min(at_least);
        high = high.max(at_most);
    }
    if high / low < 1.05 {
        // A range of one value: room on both sides, as on a linear axis.
        (low, high) = (low * 0.8, high * 1.2);
    }
    let mantissas: &[f64] = if high / low > 1e4 {
        &[1.0]
    } else if high / low > 2.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
    };
    if span.is_none_or(|s| low < s.0) {
        low = outer(low, mantissas, false);
    }
    if span.is_none_or(|s| high > s.1) {
        high = outer(high, mantissas, true);
    }
    Fitted {
        scale: Scale::Log10,
        low,
        high,
        ticks: log_ticks(low, high),
        is_chosen: false,
    }
}

fn log_ticks(low: f64, high: f64) -> Vec<Tick> {
    let decades = libm::log10(high / low);
    if decades <= 0.9 {
        let step = nice_step((high - low) / 6.0);
        let values = multiples(low, high, step).into_iter();
        return values
            .map(|v| Tick {
                value: v,
                label: label(v, Some(step)),
            })
            .collect();
    }
    // Labels on every decade, or on every n-th if there are many.
    let stride = 1 + libm::floor(decades / 8.0) as i32;
    let labelled: &[i32] = if decades <= 2.5 { &[1, 2, 5] } else { &[1] };
    let mut ticks = Vec::new();
    for exponent in decade(low)..=decade(high) {
        for mantissa in 1..=9 {
            let value = scaled(f64::from(mantissa), exponent);
            // The ends of the range are ticks computed in the same way.
            if value < low * 0.999_999 || value > high * 1.000_001 {
                continue;
            }
            let has_label = labelled.contains(&mantissa) && exponent % stride == 0;
            let label = if has_label {
                label(value, None)
            } else {
                String::new()
            };
            if has_label || stride == 1 {
                ticks.push(Tick { value, label });
            }
        }
    }
    ticks
}

/// A tick label. With a `step`, all labels of an axis get the same decimals.
fn label(value: f64, step: Option<f64>) -> String {
    let magnitude = value.abs();
    // A linear axis stays plain a decade longer, so that its labels look alike.
    let plain_below = if step.is_some() { 1e6 } else { 1e5 };
    let noise = step.is_some_and(|s| magnitude < s * 1e-6);
    if magnitude >= plain_below || (magnitude > 0.0 && magnitude < 1e-3 && !noise) {
        let exponent = decade(magnitude);
        let mantissa = format!("{:.3}", value / power_of_ten(exponent));
        return text::scientific(&text::trim_zeros(&mantissa), exponent);
    }
    let Some(step) = step else {
        return text::trim_zeros(&format!("{value:.6}"));
    };
    let exponent = decade(step);
    let quarter = (step / power_of_ten(exponent) - 2.5).abs() < 1e-6;
    let decimals = (i32::from(quarter) - exponent).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    // A multiple of the step that rounds to zero is zero.
    if text
        .trim_start_matches('-')
        .chars()
        .all(|c| c == '0' || c == '.')
    {
        return "0".to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let ticks = Fitted::new(axis, values.iter().copied()).ticks;
        ticks
            .into_iter()
            .map(|t| t.label)
            .filter(|l| !l.is_empty())
            .collect()
    }

    #[test]
    fn linear_ticks_are_round_and_start_at_zero() {
        let axis = Axis::linear("throughput", "KIOPS");
        assert_eq!(
            labels(&axis, &[1.36, 5.7]),
            ["0", "1", "2", "3", "4", "5", "6"]
        );
        assert_eq!(
            labels(&axis, &[0.0, 0.6]),
            ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"]
        );
        assert_eq!(
            labels(&axis, &[-1.0, 1.0]),
            ["-1.5", "-1.0", "-0.5", "0", "0.5", "1.0", "1.5"]
        );
    }

    #[test]
    fn an_asked_for_range_is_kept_exactly() {
        let axis = Axis::linear("occupancy", "%").spanning(0.0, 100.0);
        let fitted = Fitted::new(&axis, [3.0, 97.0].into_iter());
        assert_eq!((fitted.low, fitted.high), (0.0, 100.0));
        assert_eq!(labels(&axis, &[3.0]), ["0", "20", "40", "60", "80", "100"]);
    }

    #[test]
    fn a_range_grows_with_the_data() {
        let axis = Axis::linear("occupancy", "%").spanning(0.0, 100.0);
        let fitted = Fitted::new(&axis, [120.0].into_iter());
        assert!(fitted.high >= 120.0 && fitted.low == 0.0);
    }

    #[test]
    fn log_axes_label_one_two_five() {
        let axis = Axis::log10("latency", "us");
        assert_eq!(
            labels(&axis, &[733.0, 4620.0]),
            ["500", "1000", "2000", "5000"]
        );
        assert_eq!(
            labels(&axis, &[1.0, 9e5]),
            ["1", "10", "100", "1000", "10000", "10⁵", "10⁶"]
        );
    }

    #[test]
    fn a_narrow_log_range_has_at_least_three_labels() {
        let axis = Axis::log10("latency", "us");
        assert!(labels(&axis, &[733.0, 760.0]).len() >= 3);
        assert!(labels(&axis, &[733.0]).len() >= 3);
        assert!(labels(&axis, &[700.0, 1900.0]).len() >= 3);
    }

    #[test]
    fn chosen_ticks_are_used_as_they_are() {
        let axis = Axis::log10("concurrency", "").with_ticks([1.0, 2.0, 4.0, 64.0, 1e9, -1.0]);
        assert_eq!(labels(&axis, &[1.0, 64.0]), ["1", "2", "4", "64"]);
    }

    #[test]
    fn words_stand_at_their_values() {
        let words = [(1.0, "spdk"), (2.0, "psync"), (9.0, "none")];
        let words = words.map(|(value, word)| (value, word.to_owned()));
        let axis = Axis::linear("stack", "").with_labels(words);
        assert_eq!(labels(&axis, &[1.0, 2.0]), ["spdk", "psync"]);
    }

    #[test]
    fn shares_are_within_the_axis_whatever_the_values() {
        let extremes = [
            0.0,
            -0.0,
            1e-320,
            1e-99,
            1e99,
            -1e99,
            1e100,
            1e308,
            f64::NAN,
            f64::INFINITY,
        ];
        for axis in [Axis::linear("", ""), Axis::log10("", "")] {
            for a in extremes {
                for b in extremes {
                    let fitted = Fitted::new(&axis, [a, b].into_iter());
                    assert!(fitted.low < fitted.high, "{a} {b}: {fitted:?}");
                    assert!(fitted.ticks.len() <= 1000);
                    for value in [a, b].into_iter().filter(|v| axis.places(*v)) {
                        assert!((0.0..=1.0).contains(&fitted.share(value)), "{a} {b}");
                        assert!(fitted.covers(value), "{a} {b} {fitted:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn equal_ratios_are_equal_distances_on_a_log_axis() {
        let fitted = Fitted::new(&Axis::log10("", ""), [1.0, 1000.0].into_iter());
        let steps = [1.0, 10.0, 100.0].map(|v| fitted.share(v * 10.0) - fitted.share(v));
        assert!(
            steps.iter().all(|s| (s - steps[0]).abs() < 1e-12),
            "{steps:?}"
        );
    }
}
