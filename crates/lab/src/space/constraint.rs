//! Expressions between keys that points have to fulfil.
//!
//! `granularity * dies <= 4MiB && design != "none"`: names are those of the keys, numbers
//! may have units, texts are values of keys that are no numbers.

use std::collections::BTreeMap;

use zonelab_config::nearest;

use super::expression::{Expression, Meaning, Word, is_true, number};
use super::knob::Wrong;

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

/// An expression between keys.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// As it stands in the file.
    pub text: String,
    expression: Expression,
}

impl Constraint {
    /// Reads an expression.
    ///
    /// # Errors
    /// It is none, or speaks of something that is no key.
    pub fn parse(text: &str, names: &Names) -> Result<Self, Wrong> {
        if !text.contains(['<', '>', '=', '!']) {
            let what = format!("\"{text}\" compares nothing");
            return Err(Wrong::new(
                what,
                "write for example `require = \"a <= 4 * b\"`",
            ));
        }
        let mut speaks_of_key = false;
        let expression = Expression::parse(text, &mut |word| match word {
            Word::Name(name) => {
                let meaning = names.meaning(name)?;
                speaks_of_key |= matches!(meaning, Meaning::Variable(_));
                Ok(meaning)
            }
            Word::Text(text) => names.word(text).map(Meaning::Number),
        })?;
        if !speaks_of_key {
            let what = format!("\"{text}\" speaks of no key");
            let valid = format!("keys are {}", list(names.keys.keys()));
            return Err(Wrong::new(what, valid));
        }
        Ok(Self {
            text: text.to_owned(),
            expression,
        })
    }

    /// Whether it holds for the numbers of all keys.
    pub fn holds(&self, numbers: &[f64]) -> bool {
        is_true(self.expression.value(numbers))
    }
}

impl Names {
    /// What a name stands for.
    fn meaning(&self, name: &str) -> Result<Meaning, Wrong> {
        if let Some(place) = self.keys.get(name) {
            return Ok(Meaning::Variable(*place));
        }
        match name {
            "true" => return Ok(Meaning::Number(1.0)),
            "false" => return Ok(Meaning::Number(0.0)),
            _ => {}
        }
        let valid = match nearest(name, self.keys.keys().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("keys are {}", list(self.keys.keys())),
        };
        let what = if self.words.contains_key(name) {
            format!("{name} is a value and no key: write it in quotes")
        } else {
            format!("no key is named {name}")
        };
        Err(Wrong::new(what, valid))
    }

    /// The number that stands for a value in quotes.
    fn word(&self, text: &str) -> Result<f64, Wrong> {
        let value = self.number(text);
        if !value.is_nan() {
            return Ok(value);
        }
        let valid = match nearest(text, self.words.keys().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if self.words.is_empty() => "all keys have numbers".to_owned(),
            None => format!("values that are no numbers are {}", list(self.words.keys())),
        };
        Err(Wrong::new(
            format!("no key has the value \"{text}\""),
            valid,
        ))
    }
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    names.join(", ")
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
