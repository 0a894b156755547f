//! What a sweep or a search may change: a key, and which values it may have.

use serde::{Deserialize, Serialize};
use zonelab_config::Override;

use super::quantity::{Quantity, Span};

/// Values of a key: of each, a position in its list, or a number in base units.
pub type Values = Vec<u64>;

/// Values that bounds are split into where a list is needed.
pub const STEPS: u64 = 5;
/// Most values of a list.
const LONGEST: usize = 1000;
/// Bounds further apart than this factor are sampled on a logarithmic scale.
const LINEAR: u64 = 10;

/// A key with the values it may have: `KEY=V1,V2,V3` or `KEY=LOW..HIGH`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Knob {
    /// The key, as after `--set`.
    pub key: String,
    domain: Domain,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Domain {
    /// As written.
    List(Vec<String>),
    /// Everything between two values.
    Bounds(Quantity, Span),
}

/// What is wrong with a text, and what would be valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {valid}")]
pub struct Wrong {
    /// What is wrong.
    pub what: String,
    /// What would be valid.
    pub valid: String,
}

impl Wrong {
    /// What is wrong, and what would be valid.
    pub fn new(what: impl Into<String>, valid: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            valid: valid.into(),
        }
    }
}

impl Knob {
    /// Reads `KEY=V1,V2,...`, `KEY=LOW..HIGH`, or `KEY=LOW..HIGH/N`: a list of N
    /// values from LOW to HIGH, evenly on their scale. Commas within quotes and
    /// brackets are part of a value.
    ///
    /// # Errors
    /// No key, no values, values twice, bounds that are none.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let example = "write for example drive.finish.granularity=16KiB,64KiB,256KiB or \
                       drive.finish.pause=100us..10ms";
        let (key, values) = text
            .split_once('=')
            .ok_or_else(|| Wrong::new(format!("\"{text}\" has no `=`"), example))?;
        let key = key.trim().to_owned();
        Override::parse(&format!("{key}=1"))
            .map_err(|problem| Wrong::new(problem.what, "keys are joined by dots"))?;
        let items = split(values);
        if items.iter().any(String::is_empty) {
            let what = format!("there is an empty value in \"{values}\"");
            return Err(Wrong::new(what, example));
        }
        let domain = match items.as_slice() {
            [only] => match bounds(only)? {
                Some(domain) => domain,
                None => {
                    return Err(Wrong::new(
                        format!("{only} is a single value: there is nothing to choose"),
                        format!("give several, or bounds; or say it with --set {key}={only}"),
                    ));
                }
            },
            _ => Domain::List(items),
        };
        let knob = Self { key, domain };
        knob.check_list()?;
        Ok(knob)
    }

    /// A key with a list of values, as they stand after `--set KEY=`.
    ///
    /// # Errors
    /// No key, no values, values twice or too many.
    pub fn list(key: &str, items: Vec<String>) -> Result<Self, Wrong> {
        if items.is_empty() || items.iter().any(String::is_empty) {
            let what = if items.is_empty() {
                "there are no values"
            } else {
                "there is an empty value"
            };
            return Err(Wrong::new(what, "give one at least, and no empty ones"));
        }
        let knob = Self {
            key: key.to_owned(),
            domain: Domain::List(items),
        };
        knob.check_list()?;
        Ok(knob)
    }

    /// A key with bounds. `is_log` is found from the bounds if it is not said; `values`
    /// makes a list of the bounds.
    ///
    /// # Errors
    /// The bounds are none, or do not go with the rest.
    pub fn between(
        key: &str,
        (low, high): (&str, &str),
        is_log: Option<bool>,
        values: &InSteps,
    ) -> Result<Self, Wrong> {
        let (quantity, mut span) = ends(low, high)?;
        match is_log {
            Some(true) if span.low == 0 => {
                return Err(Wrong::new(
                    format!("{low} has no logarithm"),
                    "a logarithmic scale begins above zero; or scale = \"linear\"",
                ));
            }
            Some(is_log) => span.is_log = is_log,
            None => {}
        }
        let domain = match values {
            InSteps::No => Domain::Bounds(quantity, span),
            InSteps::Count(count) => in_list(quantity, &steps(&span, *count)),
            InSteps::Of(step) => in_list(quantity, &multiples(quantity, &span, step)?),
        };
        Ok(Self {
            key: key.to_owned(),
            domain,
        })
    }

    fn check_list(&self) -> Result<(), Wrong> {
        let Domain::List(items) = &self.domain else {
            return Ok(());
        };
        let mut sorted: Vec<&String> = items.iter().collect();
        sorted.sort();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let what = format!("the value {} is there twice", pair[0]);
            return Err(Wrong::new(what, "values must differ"));
        }
        if items.len() > LONGEST {
            let what = format!("there are {} values", items.len());
            return Err(Wrong::new(
                what,
                format!("at most {LONGEST}; or give bounds"),
            ));
        }
        Ok(())
    }

    /// Whether it has bounds rather than a list.
    #[must_use]
    pub const fn has_bounds(&self) -> bool {
        matches!(self.domain, Domain::Bounds(..))
    }

    /// Whether it has any value: each that was read from text has.
    pub fn has_values(&self) -> bool {
        match &self.domain {
            Domain::List(items) => !items.is_empty(),
            Domain::Bounds(_, span) => span.is_sound(),
        }
    }

    /// The values of a list; none of bounds.
    pub fn listed(&self) -> Vec<String> {
        match &self.domain {
            Domain::List(items) => items.clone(),
            Domain::Bounds(..) => Vec::new(),
        }
    }

    /// Values of a point as they are written.
    pub fn texts(knobs: &[Self], values: &Values) -> Vec<String> {
        let pairs = knobs.iter().zip(values);
        pairs.map(|(knob, value)| knob.text(*value)).collect()
    }

    /// The point whose values are written so, if there is one.
    pub fn values_of(knobs: &[Self], texts: &[String]) -> Option<Values> {
        if texts.len() != knobs.len() {
            return None;
        }
        let pairs = knobs.iter().zip(texts);
        pairs.map(|(knob, text)| knob.value_of(text)).collect()
    }

    /// Number of different values; of bounds, at most so many.
    #[must_use]
    pub fn count(&self) -> u64 {
        match &self.domain {
            Domain::List(items) => items.len() as u64,
            Domain::Bounds(_, span) => ((span.high - span.low) / span.grain).saturating_add(1),
        }
    }

    /// A value as it is written in a file.
    #[must_use]
    pub fn text(&self, value: u64) -> String {
        match &self.domain {
            Domain::List(items) => {
                let item = usize::try_from(value)
                    .ok()
                    .and_then(|value| items.get(value));
                item.cloned().unwrap_or_default()
            }
            Domain::Bounds(quantity, _) => quantity.print(value),
        }
    }

    /// The value that is written so, if it is one of these.
    #[must_use]
    pub fn value_of(&self, text: &str) -> Option<u64> {
        match &self.domain {
            Domain::List(items) => {
                let found = items.iter().position(|item| item == text)?;
                Some(found as u64)
            }
            Domain::Bounds(quantity, span) => {
                let value = quantity.parse(text).ok()?;
                (span.low..=span.high).contains(&value).then_some(value)
            }
        }
    }

    /// `KEY=VALUE`, as after `--set`.
    #[must_use]
    pub fn setting(&self, value: u64) -> String {
        format!("{}={}", self.key, self.text(value))
    }

    /// The values that a grid looks at: all of a list; bounds in [`STEPS`].
    #[must_use]
    pub fn grid(&self) -> Values {
        match &self.domain {
            Domain::List(items) => (0..items.len() as u64).collect(),
            Domain::Bounds(_, span) => steps(span, STEPS),
        }
    }

    /// The values that must be possible: all of a list, both bounds.
    #[must_use]
    pub fn to_check(&self) -> Values {
        match &self.domain {
            Domain::List(items) => (0..items.len() as u64).collect(),
            Domain::Bounds(_, span) => vec![span.low, span.high],
        }
    }

    /// The value for a number that is drawn from 0 to 1, without 1: each of a list, and
    /// each between linear bounds, is as likely as the others.
    pub fn draw(&self, share: f64) -> u64 {
        let share = share.clamp(0.0, 1.0);
        match &self.domain {
            Domain::List(items) => {
                let last = items.len() - 1;
                ((share * items.len() as f64) as u64).min(last as u64)
            }
            Domain::Bounds(_, span) => span.draw(share),
        }
    }

    /// What its values count, if all of them count the same; `None`: they are words, or
    /// numbers with a point.
    pub fn quantity(&self) -> Option<Quantity> {
        match &self.domain {
            Domain::Bounds(quantity, _) => Some(*quantity),
            Domain::List(items) => {
                let (quantity, _) = Quantity::of(items.first()?)?;
                let mut items = items.iter();
                items
                    .all(|item| quantity.parse(item).is_ok())
                    .then_some(quantity)
            }
        }
    }

    /// Where a value lies, from 0 to 1.
    pub fn position(&self, value: u64) -> f64 {
        match &self.domain {
            Domain::List(items) => value as f64 / (items.len() - 1).max(1) as f64,
            Domain::Bounds(_, span) => span.position(value),
        }
    }

    /// The value at a position.
    pub fn value(&self, position: f64) -> u64 {
        match &self.domain {
            Domain::List(items) => {
                let last = items.len() - 1;
                (position.clamp(0.0, 1.0) * last as f64).round() as u64
            }
            Domain::Bounds(_, span) => span.value(position),
        }
    }

    /// The nearest value above (`up`) or below `value`, for steps that are too
    /// small to get anywhere; itself at the end.
    pub fn next(&self, value: u64, up: bool) -> u64 {
        let (low, high, grain) = match &self.domain {
            Domain::List(items) => (0, items.len() as u64 - 1, 1),
            Domain::Bounds(_, span) => (span.low, span.high, span.grain),
        };
        let next = if up {
            value.saturating_add(grain)
        } else {
            value.saturating_sub(grain)
        };
        next.clamp(low, high)
    }

    /// Whether `value` is the least or the greatest between bounds.
    #[must_use]
    pub fn is_at_bound(&self, value: u64) -> bool {
        match &self.domain {
            Domain::List(_) => false,
            Domain::Bounds(_, span) => value == span.low || value == span.high,
        }
    }

    /// The values in words: `16KiB, 64KiB` or `100us..10ms`.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.domain {
            Domain::List(items) => items.join(","),
            Domain::Bounds(quantity, span) => {
                format!(
                    "{}..{}",
                    quantity.print(span.low),
                    quantity.print(span.high)
                )
            }
        }
    }
}

/// Parts between commas that are not within quotes or brackets.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut quote) = (0_u32, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

/// `LOW..HIGH` or `LOW..HIGH/N`. `None`: the text has no bounds, `0..=9` among
/// others, which is a range of zones.
fn bounds(text: &str) -> Result<Option<Domain>, Wrong> {
    let Some((low, high)) = text.split_once("..") else {
        return Ok(None);
    };
    if high.starts_with(['=', '<']) || text.starts_with(['"', '\'', '[', '{']) {
        return Ok(None);
    }
    // The `/s` of a rate is no number of values.
    let (high, steps_asked) = match high.rsplit_once('/') {
        Some((high, steps)) if steps.trim().bytes().all(|b| b.is_ascii_digit()) => {
            (high, Some(steps.trim()))
        }
        _ => (high, None),
    };
    let (low, high) = (low.trim(), high.trim());
    let (quantity, span) = ends(low, high)?;
    let Some(steps_asked) = steps_asked else {
        return Ok(Some(Domain::Bounds(quantity, span)));
    };
    match steps_asked.parse() {
        Ok(count) if (2..=LONGEST as u64).contains(&count) => {
            Ok(Some(in_list(quantity, &steps(&span, count))))
        }
        _ => Err(Wrong::new(
            format!("{text} asks for {steps_asked} values"),
            format!("2 to {LONGEST}"),
        )),
    }
}

/// How the values between bounds become a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InSteps {
    /// They do not: every value between them is one.
    No,
    /// So many values, evenly on their scale.
    Count(u64),
    /// From the lower bound in steps of this.
    Of(String),
}

/// What two bounds count, and the span between them.
fn ends(low: &str, high: &str) -> Result<(Quantity, Span), Wrong> {
    let no_number = |end: &str| {
        Wrong::new(
            format!("{end} in {low}..{high} is no whole number, size, time, rate or share"),
            "bounds have units and a lower end: 100us..10ms",
        )
    };
    let (quantity, high_value) = Quantity::of(high).ok_or_else(|| no_number(high))?;
    let low_value = match quantity.parse(low) {
        Ok(value) => value,
        Err(_) if Quantity::of(low).is_some() => {
            return Err(Wrong::new(
                format!("{low} and {high} are not of the same kind"),
                "give both the same kind of unit",
            ));
        }
        Err(_) => return Err(no_number(low)),
    };
    if low_value >= high_value {
        return Err(Wrong::new(
            format!("the bounds {low}..{high} are empty"),
            "the lower comes first",
        ));
    }
    Ok((quantity, span(quantity, low_value, high_value)))
}

/// The values from the lower bound in steps of `step`.
fn multiples(quantity: Quantity, span: &Span, step: &str) -> Result<Values, Wrong> {
    let by = quantity.parse(step).ok().filter(|by| *by > 0);
    let by = by.ok_or_else(|| {
        Wrong::new(
            format!("a step of {step} leads nowhere"),
            "a step is of the kind of the bounds, and above zero",
        )
    })?;
    let count = (span.high - span.low) / by + 1;
    if !(2..=LONGEST as u64).contains(&count) {
        return Err(Wrong::new(
            format!("steps of {step} make {count} values"),
            format!("2 to {LONGEST}; or leave out `step`"),
        ));
    }
    Ok((0..count).map(|n| span.low + n * by).collect())
}

fn in_list(quantity: Quantity, values: &[u64]) -> Domain {
    Domain::List(values.iter().map(|value| quantity.print(*value)).collect())
}

/// Sizes and rates stay multiples of the power of two that both bounds are
/// multiples of.
const fn span(quantity: Quantity, low: u64, high: u64) -> Span {
    let grain = match quantity {
        Quantity::Size | Quantity::Rate => 1 << (low | high).trailing_zeros(),
        _ => 1,
    };
    Span {
        low,
        high,
        grain,
        is_log: low > 0 && high / low > LINEAR,
    }
}

/// Evenly spread values, without those that rounding makes equal.
fn steps(span: &Span, count: u64) -> Values {
    let position = |step: u64| step as f64 / (count - 1) as f64;
    let mut values: Values = (0..count).map(|step| span.value(position(step))).collect();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let knob = Knob::parse(text).unwrap();
        knob.grid().iter().map(|value| knob.text(*value)).collect()
    }

    #[test]
    fn lists_are_split_at_commas_between_values() {
        assert_eq!(texts("a.b=16ms, 32ms ,64ms"), ["16ms", "32ms", "64ms"]);
        let arrays = texts("x.jobs=[\"a\", \"b\"],[\"c,d\"]");
        assert_eq!(arrays, ["[\"a\", \"b\"]", "[\"c,d\"]"]);
        // A value may hold `=`, and ranges of zones are values.
        let nested = texts("series.1.drive.0=finish.pause=1ms,finish.pause=2ms");
        assert_eq!(nested, ["finish.pause=1ms", "finish.pause=2ms"]);
        assert_eq!(texts("job.0.zones=0..=9,0..<5"), ["0..=9", "0..<5"]);
    }

    #[test]
    fn bounds_have_a_scale_and_a_grain() {
        assert_eq!(texts("a=10..20/3"), ["10", "15", "20"]);
        assert_eq!(texts("a=1ms..1s/4"), ["1ms", "10ms", "100ms", "1s"]);
        assert_eq!(texts("a=0us..100us/3"), ["0ns", "50us", "100us"]);
        assert_eq!(
            texts("a=1MiB/s..1000MiB/s/4"),
            ["1MiB/s", "10MiB/s", "100MiB/s", "1000MiB/s"]
        );
        // Rounding makes steps equal.
        assert_eq!(texts("a=1..3/9"), ["1", "2", "3"]);
        let pages = Knob::parse("a=16KiB..4MiB").unwrap();
        assert!(pages.has_bounds());
        for step in 0..=100 {
            let value = pages.value(f64::from(step) / 100.0);
            assert_eq!(value % (16 << 10), 0);
            assert!((pages.value(pages.position(value)) as f64 / value as f64 - 1.0).abs() < 1e-3);
            assert_eq!(pages.value_of(&pages.text(value)), Some(value));
        }
        assert_eq!(pages.next(32 << 10, false), 16 << 10);
        assert_eq!(pages.next(16 << 10, false), 16 << 10);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        for (text, message) in [
            ("a", "has no `=`"),
            ("a..b=1,2", "keys are joined by dots"),
            ("=1,2", "keys are joined by dots"),
            ("a=", "empty value"),
            ("a=1,,2", "empty value"),
            (
                "a=64KiB",
                "nothing to choose; give several, or bounds; or say it with --set a=64KiB",
            ),
            ("a=1,2,1", "1 is there twice"),
            ("a=5ms..1ms", "5ms..1ms are empty; the lower comes first"),
            ("a=5..5", "are empty"),
            ("a=1ms..1MiB", "not of the same kind"),
            ("a=x..y", "y in x..y is no whole number"),
            ("a=..5", "is no whole number"),
            ("a=1.5..2.5", "is no whole number"),
            ("a=1..9/1", "asks for 1 values; 2 to 1000"),
            ("a=1..9/99999999999999999999", "2 to 1000"),
        ] {
            let error = Knob::parse(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
