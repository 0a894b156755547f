//! Expressions between keys that points have to fulfil.
//!
//! `granularity * dies <= 4MiB && design != "none"`: names are those of the keys, numbers
//! may have units, texts are values of keys that are no numbers. The arithmetic is that of
//! exmex, with operators of our own: comparisons among them, and functions of `libm`, whose
//! results are the same on every machine.

use std::collections::BTreeMap;

use exmex::{BinOp, Express as _, FlatEx, MakeOperators, Operator};
use zonelab_config::nearest;

use super::knob::Wrong;
use super::quantity::Quantity;

/// What stands between or in front of terms.
#[derive(Clone, Debug)]
pub(crate) struct Operators;

/// An expression over numbers that have names.
pub(crate) type Expression = FlatEx<f64, Operators>;

/// True and false as numbers.
fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Whether a number stands for something true; what is not a number does not.
fn is_true(value: f64) -> bool {
    value != 0.0 && !value.is_nan()
}

impl MakeOperators<f64> for Operators {
    #[expect(clippy::float_cmp, reason = "equal is what was asked for")]
    fn make<'a>() -> Vec<Operator<'a, f64>> {
        fn bin<'a>(name: &'a str, prio: i64, apply: fn(f64, f64) -> f64) -> Operator<'a, f64> {
            let is_commutative = false;
            Operator::make_bin(
                name,
                BinOp {
                    apply,
                    prio,
                    is_commutative,
                },
            )
        }
        let minus = BinOp {
            apply: |a, b| a - b,
            prio: 3,
            is_commutative: false,
        };
        vec![
            bin("||", 0, |a, b| truth(is_true(a) || is_true(b))),
            bin("&&", 1, |a, b| truth(is_true(a) && is_true(b))),
            bin("==", 2, |a, b| truth(a == b)),
            bin("!=", 2, |a, b| truth(a != b)),
            bin("<=", 2, |a, b| truth(a <= b)),
            bin(">=", 2, |a, b| truth(a >= b)),
            bin("<", 2, |a, b| truth(a < b)),
            bin(">", 2, |a, b| truth(a > b)),
            bin("+", 3, |a, b| a + b),
            Operator::make_bin_unary("-", minus, |a| -a),
            bin("*", 4, |a, b| a * b),
            bin("/", 4, |a, b| a / b),
            bin("%", 4, |a, b| a % b),
            bin("^", 5, libm::pow),
            bin("min", 6, f64::min),
            bin("max", 6, f64::max),
            Operator::make_unary("!", |a| truth(!is_true(a))),
            Operator::make_unary("abs", f64::abs),
            Operator::make_unary("floor", f64::floor),
            Operator::make_unary("ceil", f64::ceil),
            Operator::make_unary("sqrt", f64::sqrt),
            Operator::make_unary("log2", libm::log2),
        ]
    }
}

/// Functions that expressions may use.
const FUNCTIONS: [&str; 7] = ["min", "max", "abs", "floor", "ceil", "sqrt", "log2"];

/// What expressions may speak of.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Keys by name, and their places.
    keys: BTreeMap<String, usize>,
    /// Values that are words, and the numbers that stand for them.
    words: BTreeMap<String, f64>,
}

impl Names {
    /// Of keys in their order, each with the values that it may have as far as they are
    /// listed.
    pub fn of<'a>(keys: impl Iterator<Item = (&'a str, Vec<String>)>) -> Self {
        let mut names = Self::default();
        for (place, (key, values)) in keys.enumerate() {
            names.keys.insert(key.to_owned(), place);
            for value in values {
                if number(&value).is_none() {
                    let next = names.words.len() as f64;
                    names.words.entry(value).or_insert(next);
                }
            }
        }
        names
    }

    /// The number that a value is, or that stands for it.
    pub fn number(&self, value: &str) -> f64 {
        let word = || self.words.get(value).copied();
        number(value).or_else(word).unwrap_or(f64::NAN)
    }
}

/// The number that a text says, in base units.
fn number(text: &str) -> Option<f64> {
    match text {
        "true" => return Some(1.0),
        "false" => return Some(0.0),
        _ => {}
    }
    let quantity = Quantity::of(text).map(|(_, value)| value as f64);
    let plain = || text.parse().ok().filter(|value: &f64| value.is_finite());
    quantity.or_else(plain)
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// As it stands in the file.
    pub text: String,
    expression: Expression,
    /// The keys that it speaks of, in the order of the expression's variables.
    of: Vec<usize>,
}

impl Constraint {
    /// Reads an expression.
    ///
    /// # Errors
    /// It is none, or speaks of something that is no key.
    pub fn parse(text: &str, names: &Names) -> Result<Self, Wrong> {
        const EXAMPLE: &str = "write for example `require = \"a <= 4 * b\"`";
        if !text.contains(['<', '>', '=', '!']) {
            let what = format!("\"{text}\" compares nothing");
            return Err(Wrong::new(what, EXAMPLE));
        }
        let plain = translate(text, names)?;
        let wrong = |error: exmex::ExError| {
            let what = format!("\"{text}\" is no expression: {}", error.msg());
            Wrong::new(what, EXAMPLE)
        };
        let expression = Expression::parse(&plain).map_err(wrong)?;
        let place = |name: &String| name.trim_start_matches('v').parse().ok();
        let of: Vec<usize> = expression.var_names().iter().filter_map(place).collect();
        if of.is_empty() {
            let known: Vec<&str> = names.keys.keys().map(String::as_str).collect();
            let what = format!("\"{text}\" speaks of no key");
            return Err(Wrong::new(what, format!("keys are {}", known.join(", "))));
        }
        // What is wrong with it whatever the values are shows here, not at the first point.
        expression.eval(&vec![1.0; of.len()]).map_err(wrong)?;
        Ok(Self {
            text: text.to_owned(),
            expression,
            of,
        })
    }

    /// Whether it holds for the numbers of all keys.
    pub fn holds(&self, numbers: &[f64]) -> bool {
        let values: Vec<f64> = self.of.iter().map(|place| numbers[*place]).collect();
        self.expression.eval(&values).is_ok_and(is_true)
    }
}

/// The expression with places for names and plain numbers for quantities and texts.
fn translate(text: &str, names: &Names) -> Result<String, Wrong> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_alphabetic() || first == '_' {
            let word = take(rest, |c| c.is_ascii_alphanumeric() || "_.".contains(c));
            plain.push_str(&name(word, names)?);
            word.len()
        } else if first.is_ascii_digit() {
            let number = quantity(rest);
            plain.push_str(&in_base_units(number)?);
            number.len()
        } else if first == '"' || first == '\'' {
            let inner = take(&rest[1..], |c| c != first);
            plain.push_str(&word(inner, names)?);
            // Without its end it goes to the end of the text.
            (inner.len() + 2).min(rest.len())
        } else if "+-*/%^()<>=!&|, ".contains(first) {
            plain.push(first);
            1
        } else {
            let what = format!("\"{text}\": {first} means nothing here");
            return Err(Wrong::new(
                what,
                "names, numbers with units, \"texts\", + - * / % ^, == != < <= > >=, && || !, and \
                 parentheses",
            ));
        };
        rest = &rest[length..];
    }
    Ok(plain)
}

/// The longest beginning of `text` of characters that are `wanted`.
fn take(text: &str, wanted: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !wanted(c)).unwrap_or(text.len());
    &text[..end]
}

/// The beginning of `text` that is a number and its unit.
fn quantity(text: &str) -> &str {
    let digits = take(text, |c| c.is_ascii_digit() || "._".contains(c));
    let unit = take(&text[digits.len()..], |c| {
        c.is_ascii_alphabetic() || c == '%'
    });
    let mut end = digits.len() + unit.len();
    // `4MiB/s`, but not the quotient of `4MiB` and `size`.
    let after = text[end..].strip_prefix("/s");
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if !unit.is_empty() && unit.ends_with('B') && after.is_some_and(ends) {
        end += 2;
    }
    &text[..end]
}

fn in_base_units(text: &str) -> Result<String, Wrong> {
    let value = number(text).ok_or_else(|| {
        Wrong::new(
            format!("{text} is no number, size, time, rate or share"),
            "write for example 64KiB, 1.5ms, 10MiB/s, 5%",
        )
    })?;
    Ok(format!("{value}"))
}

fn name(word: &str, names: &Names) -> Result<String, Wrong> {
    if let Some(place) = names.keys.get(word) {
        // In the order of places, which is that of variables.
        return Ok(format!("{{v{place:04}}}"));
    }
    match word {
        "true" => return Ok("1".to_owned()),
        "false" => return Ok("0".to_owned()),
        _ if FUNCTIONS.contains(&word) => return Ok(word.to_owned()),
        _ => {}
    }
    let known: Vec<&str> = names.keys.keys().map(String::as_str).collect();
    let near = nearest(word, known.iter().copied());
    let valid = near.map_or_else(
        || format!("keys are {}", known.join(", ")),
        |near| format!("did you mean {near}?"),
    );
    let what = if names.words.contains_key(word) {
        format!("{word} is a value and no key: write it in quotes")
    } else {
        format!("no key is named {word}")
    };
    Err(Wrong::new(what, valid))
}

fn word(text: &str, names: &Names) -> Result<String, Wrong> {
    let value = names.number(text);
    if !value.is_nan() {
        return Ok(format!("{value}"));
    }
    let known: Vec<&str> = names.words.keys().map(String::as_str).collect();
    let valid = match nearest(text, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if known.is_empty() => "all keys have numbers".to_owned(),
        None => format!("values that are no numbers are {}", known.join(", ")),
    };
    Err(Wrong::new(
        format!("no key has the value \"{text}\""),
        valid,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Names::of(
            [
                ("drive.finish.granularity", vec![]),
                ("dies", vec![]),
                ("design", texts(&["fill", "none", "true", "5ms"])),
            ]
            .into_iter(),
        )
    }

    fn holds(text: &str, values: [&str; 3]) -> bool {
        let names = names();
        let numbers = values.map(|value| names.number(value));
        Constraint::parse(text, &names).unwrap().holds(&numbers)
    }

    #[test]
    fn expressions_have_units_words_and_the_usual_precedence() {
        let values = ["64KiB", "7", "none"];
        for text in [
            "drive.finish.granularity == 64KiB",
            "drive.finish.granularity == 65536 && dies == 7",
            "drive.finish.granularity*dies <= 448 KiB - 1 || dies > 6"
                .replace(" KiB", "KiB")
                .as_str(),
            "design == \"none\"",
            "design != 'fill' && !(dies < 7)",
            "dies - 2 - 3 == 2",
            "dies + 2 * 3 == 13",
            "dies / 2 * 4 == 14",
            "dies * 8 % 5 == 1",
            "2 ^ dies == 128",
            "-dies < 0",
            "min(dies, 3) == 3",
            "floor(dies / 2) == 3",
            "log2(drive.finish.granularity) == 16",
            "0.5 * dies == 3.5",
            "dies <= 4MiB/s",
            "1us == 1000 * dies / 7",
        ] {
            assert!(holds(text, values), "{text}");
        }
        for text in ["dies < 7", "design == \"fill\"", "dies == 7 && dies > 7"] {
            assert!(!holds(text, values), "{text}");
        }
        // What is not a number compares with nothing.
        assert!(!holds("dies > 0", ["64KiB", "many", "none"]));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        for (text, message) in [
            ("dies", "compares nothing; write for example"),
            ("1 < 2", "speaks of no key; keys are design, dies"),
            ("die < 2", "no key is named die; did you mean dies?"),
            (
                "design == fill",
                "fill is a value and no key: write it in quotes",
            ),
            (
                "design == \"fil\"",
                "no key has the value \"fil\"; did you mean \"fill\"?",
            ),
            ("dies < 5parsec", "5parsec is no number, size"),
            ("dies < ", "is no expression"),
            ("(dies < 2", "is no expression"),
            ("dies < 2 $", "$ means nothing here"),
            ("dies ==== 2", "is no expression"),
        ] {
            let error = Constraint::parse(text, &names()).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
