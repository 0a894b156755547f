//! Values of a document, read by what is expected of them.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::document::{Document, Reported};
use crate::error::{Place, Problem};
use crate::nearest::nearest;
use crate::node::{Node, Value};
use crate::overrides::Override;
use crate::table::Table;
use crate::units::{self, NotAQuantity, quote, quote_short, shorten};

/// A value of a document.
#[derive(Debug)]
pub struct Item<'d> {
    pub(crate) document: &'d Document,
    pub(crate) node: &'d Node,
    pub(crate) path: String,
    /// A word that is valid too, which refusals name.
    pub(crate) word: Option<&'static str>,
}

impl<'d> Item<'d> {
    /// Reports a problem of this value.
    pub fn fail(&self, what: impl Into<String>, valid: impl Into<String>) -> Reported {
        let mut valid = valid.into();
        if let Some(word) = self.word {
            valid = format!("{valid}, or {}", quote(word));
        }
        self.document
            .add(self.place(), &self.path, what.into(), valid);
        Reported(())
    }

    /// What `read` makes of the value; `None` if it is `word`, which refusals then name as
    /// valid too.
    ///
    /// # Errors
    /// Neither the word nor what `read` takes.
    pub fn word_or<T>(
        &self,
        word: &'static str,
        read: impl FnOnce(&Self) -> Result<T, Reported>,
    ) -> Result<Option<T>, Reported> {
        if self.is_text(word) {
            return Ok(None);
        }
        let item = Self {
            path: self.path.clone(),
            word: Some(word),
            ..*self
        };
        read(&item).map(Some)
    }

    /// A problem of this value, without reporting it: for readers that learn only
    /// later, from another input, what the value must fit.
    pub fn problem(&self, what: impl Into<String>, valid: impl Into<String>) -> Problem {
        Problem {
            file: self.document.file().to_owned(),
            place: self.place(),
            key: shorten(&self.path),
            what: what.into(),
            valid: valid.into(),
        }
    }

    /// Whether the value is this text.
    #[must_use]
    pub fn is_text(&self, text: &str) -> bool {
        matches!(&self.node.value, Value::Text(value) if value == text)
    }

    /// A whole number of at most 32 bits.
    ///
    /// # Errors
    /// Anything else.
    pub fn u32(&self) -> Result<u32, Reported> {
        self.integer(u32::MAX)
    }

    /// A whole number of at most 64 bits.
    ///
    /// # Errors
    /// Anything else.
    pub fn u64(&self) -> Result<u64, Reported> {
        self.integer(u64::MAX)
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// Anything else.
    pub fn bool(&self) -> Result<bool, Reported> {
        match &self.node.value {
            Value::Bool(flag) => Ok(*flag),
            _ => Err(self.unexpected("write true or false")),
        }
    }

    /// Text.
    ///
    /// # Errors
    /// Anything else.
    pub fn str(&self) -> Result<&'d str, Reported> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.unexpected("write a string in quotes")),
        }
    }

    /// A size in bytes ([`units::parse_size`]). A key that ends in `_bytes` may
    /// also be a bare number.
    ///
    /// # Errors
    /// Anything else.
    pub fn size_bytes(&self) -> Result<u64, Reported> {
        let is_integer = matches!(self.node.value, Value::Integer(_));
        if is_integer && self.key().ends_with("_bytes") {
            return self.u64();
        }
        self.quantity("16KiB", units::parse_size)
    }

    /// As [`Item::size_bytes`], of at most 32 bits.
    ///
    /// # Errors
    /// Anything else.
    pub fn size_bytes_u32(&self) -> Result<u32, Reported> {
        let bytes = self.size_bytes()?;
        u32::try_from(bytes).map_err(|_| {
            let what = format!("{} is too large", units::fmt_size(bytes));
            self.fail(
                what,
                format!("at most {}", units::fmt_size(u64::from(u32::MAX))),
            )
        })
    }

    /// A time in nanoseconds ([`units::parse_duration`]).
    ///
    /// # Errors
    /// Anything else.
    pub fn duration_ns(&self) -> Result<u64, Reported> {
        self.quantity("700us", units::parse_duration)
    }

    /// A rate in bytes per second ([`units::parse_rate`]).
    ///
    /// # Errors
    /// Anything else.
    pub fn rate_bytes_per_s(&self) -> Result<u64, Reported> {
        self.quantity("100MiB/s", units::parse_rate)
    }

    /// A share in parts per million ([`units::parse_percent`]).
    ///
    /// # Errors
    /// Anything else.
    pub fn percent_ppm(&self) -> Result<u32, Reported> {
        self.quantity("50%", units::parse_percent)
    }

    /// A range of numbers, first and last: `"0..=9"` is ten numbers and so is
    /// `"0..<10"`; a bare `7` is one. `"0..9"` is refused: half of its readers
    /// would include 9.
    ///
    /// # Errors
    /// Anything else, and an empty range.
    pub fn range(&self) -> Result<RangeInclusive<u64>, Reported> {
        const VALID: &str = "write \"0..=9\" or \"0..<10\" for 0 to 9";
        if let Value::Integer(_) = self.node.value {
            let only = self.u64()?;
            return Ok(only..=only);
        }
        let Value::Text(text) = &self.node.value else {
            return Err(self.unexpected(VALID));
        };
        let quoted = quote_short(text);
        let Some((first, last)) = text.split_once("..") else {
            return Err(self.fail(format!("{quoted} is not a range"), VALID));
        };
        let (last, excluded) = match (last.strip_prefix('='), last.strip_prefix('<')) {
            (Some(last), _) => (last, 0),
            (_, Some(end)) => (end, 1),
            _ => {
                let what = format!("{quoted} does not say whether it includes its end");
                return Err(self.fail(what, VALID));
            }
        };
        let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse::<u64>()) else {
            return Err(self.fail(format!("{quoted} is not a range of whole numbers"), VALID));
        };
        match last.checked_sub(excluded) {
            Some(last) if first <= last => Ok(first..=last),
            _ => Err(self.fail(format!("{quoted} is empty"), "write the lower end first")),
        }
    }

    /// One of several named values.
    ///
    /// # Errors
    /// Anything else.
    pub fn choice<T: Clone>(&self, names: &[(&str, T)]) -> Result<T, Reported> {
        let listed: Vec<String> = names.iter().map(|(name, _)| quote(name)).collect();
        let valid = match listed.split_last() {
            Some((only, [])) => format!("the only choice is {only}"),
            Some((last, others)) => format!("choose {} or {last}", others.join(", ")),
            None => String::new(),
        };
        let Value::Text(text) = &self.node.value else {
            return Err(self.unexpected(&valid));
        };
        if let Some((_, value)) = names.iter().find(|(name, _)| name == text) {
            return Ok(value.clone());
        }
        let what = format!("{} is not a choice", quote_short(text));
        match nearest(text, names.iter().map(|(name, _)| *name)) {
            Some(meant) => Err(self.fail(what, format!("did you mean \"{meant}\"? {valid}"))),
            None => Err(self.fail(what, valid)),
        }
    }

    /// The value as it would stand after `--set KEY=`: a text without its quotes, all
    /// else as TOML.
    ///
    /// # Errors
    /// A table, which cannot be written there.
    pub fn after_set(&self) -> Result<String, Reported> {
        match &self.node.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Table(_) => Err(self.unexpected("write a text, a number, or an array of them")),
            // What these are in JSON they are in TOML.
            _ => Ok(self.node.to_json().to_string()),
        }
    }

    /// A setting of another file, `"media.read=60us"`: problems of it have the line of this one.
    ///
    /// # Errors
    /// Anything else.
    pub fn setting(&self) -> Result<Override, Reported> {
        let setting = Override::parse(self.str()?);
        let setting = setting.map_err(|problem| self.fail(problem.what, problem.valid))?;
        Ok(match self.document.place_of(self.node.origin) {
            Place::Line { line, .. } => setting.stated_in(self.document.file(), line, &self.path),
            _ => setting,
        })
    }

    /// The items of an array.
    ///
    /// # Errors
    /// Not an array.
    pub fn items(&self) -> Result<Vec<Self>, Reported> {
        let Value::Array(nodes) = &self.node.value else {
            return Err(self.unexpected("write an array: [..., ...]"));
        };
        let items = nodes.iter().enumerate().map(|(index, node)| Self {
            document: self.document,
            node,
            path: format!("{}.{index}", self.path),
            word: None,
        });
        Ok(items.collect())
    }

    /// Whether it is an array, for keys that take one value or several.
    #[must_use]
    pub fn is_array(&self) -> bool {
        matches!(self.node.value, Value::Array(_))
    }

    /// A table.
    ///
    /// # Errors
    /// Not a table.
    pub fn table(&self) -> Result<Table<'d>, Reported> {
        match &self.node.value {
            Value::Table(node) => Ok(Table::new(self.document, Some(node), self.path.clone())),
            _ => Err(self.unexpected(&format!("write a table: [{}]", self.path))),
        }
    }

    /// Text that `parse` understands; its error says what is wrong and what is valid.
    ///
    /// # Errors
    /// Not text, or not what `parse` understands.
    pub fn parsed<T>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, NotAQuantity>,
    ) -> Result<T, Reported> {
        parse(self.str()?).map_err(|wrong| self.fail(wrong.what, wrong.valid))
    }

    fn quantity<T>(
        &self,
        example: &str,
        parse: fn(&str) -> Result<T, NotAQuantity>,
    ) -> Result<T, Reported> {
        let text = match &self.node.value {
            Value::Text(text) => text.clone(),
            // A bare number is a quantity without unit: the parser words that best.
            Value::Integer(Some(integer)) => integer.to_string(),
            Value::Float(digits) => digits.clone(),
            _ => return Err(self.unexpected(&format!("write for example \"{example}\""))),
        };
        parse(&text).map_err(|wrong| {
            let bare = !matches!(self.node.value, Value::Text(_));
            let what = if bare {
                wrong.what.replace('"', "")
            } else {
                wrong.what
            };
            self.fail(what, wrong.valid)
        })
    }

    fn integer<T: TryFrom<i128> + Display>(&self, max: T) -> Result<T, Reported> {
        let Value::Integer(integer) = &self.node.value else {
            return Err(self.unexpected("write a whole number without unit or quotes"));
        };
        match integer {
            Some(integer) if *integer < 0 => {
                Err(self.fail(format!("{integer} is negative"), "write 0 or more"))
            }
            Some(integer) => T::try_from(*integer).map_err(|_| {
                self.fail(format!("{integer} is too large"), format!("at most {max}"))
            }),
            None => Err(self.fail("the number is too large", format!("at most {max}"))),
        }
    }

    fn unexpected(&self, valid: &str) -> Reported {
        self.fail(
            format!("{} does not fit here", shorten(&self.node.describe())),
            valid,
        )
    }

    fn key(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    fn place(&self) -> Place {
        self.document.place_of(self.node.origin)
    }
}
