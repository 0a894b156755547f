//! Keys with a value in the configuration.

use zonelab_config::{Reported, Table};
use zonelab_device::Nanos;

use super::super::Cell;
use super::super::write::Text;
use super::unit::{Bytes, Bytes32, Choice, Flag, Number, Rate, Share, Time, Unit};
use super::{At, Broken, Key, Need, Only, Reading, Value};

/// A key that is being declared: its methods say what its constructor did not, and
/// [`Field::says`] ends the declaration.
pub(in crate::profile) struct Field<C, U: Unit> {
    path: &'static str,
    unit: U,
    at: At<C, U::Value>,
    default: Usual<C, U::Value>,
    absent: Option<&'static str>,
    range: Option<Range<C, U::Value>>,
    only: Vec<Only<C>>,
    needs: Option<Need<C>>,
    rare: bool,
}

/// The value of a key that is not stated.
enum Usual<C, T> {
    /// There is none: it has to be stated.
    Required,
    /// This one.
    Value(T),
    /// None in the configuration either.
    Nothing,
    /// What follows from the kind of cell; without one it has to be stated.
    Typical(fn(Cell) -> T),
    /// What follows from other keys.
    Follows(&'static str, fn(&C) -> Option<T>),
    /// What follows from all keys together: code of its own fills it in.
    Derived(&'static str),
}

/// Which values are valid by themselves.
struct Range<C, T> {
    /// For the page.
    words: String,
    broken: Box<Rule<C, T>>,
}

/// What is wrong with a value.
type Rule<C, T> = dyn Fn(&C, &T) -> Vec<Broken> + Send + Sync;

/// A key of any unit.
pub(in crate::profile) fn field<C, U: Unit>(
    path: &'static str,
    unit: U,
    at: At<C, U::Value>,
) -> Field<C, U> {
    Field {
        path,
        unit,
        at,
        default: Usual::Required,
        absent: None,
        range: None,
        only: Vec::new(),
        needs: None,
        rare: false,
    }
}

/// A number that counts something.
pub(in crate::profile) fn number<C>(path: &'static str, at: At<C, u32>) -> Field<C, Number> {
    field(path, Number, at)
}

/// A size in bytes.
pub(in crate::profile) fn size<C>(path: &'static str, at: At<C, u64>) -> Field<C, Bytes> {
    field(path, Bytes, at)
}

/// A size in bytes of which the configuration keeps 32 bits.
pub(in crate::profile) fn size_32<C>(path: &'static str, at: At<C, u32>) -> Field<C, Bytes32> {
    field(path, Bytes32, at)
}

/// A time.
pub(in crate::profile) fn time<C>(path: &'static str, at: At<C, Nanos>) -> Field<C, Time> {
    field(path, Time, at)
}

/// Bytes per second.
pub(in crate::profile) fn rate<C>(path: &'static str, at: At<C, u64>) -> Field<C, Rate> {
    field(path, Rate, at)
}

/// A share in parts per million, at most all.
pub(in crate::profile) fn share<C>(path: &'static str, at: At<C, u32>) -> Field<C, Share> {
    field(path, Share, at)
}

/// True or false.
pub(in crate::profile) fn flag<C>(path: &'static str, at: At<C, bool>) -> Field<C, Flag> {
    field(path, Flag, at)
}

/// One of several values that have names.
pub(in crate::profile) fn choice<C, T>(
    path: &'static str,
    names: &'static [(&'static str, T)],
    at: At<C, T>,
) -> Field<C, Choice<T>>
where
    T: Copy + PartialEq + Send + Sync + 'static,
{
    field(path, Choice(names), at)
}

impl<C: 'static, U: Unit> Field<C, U> {
    /// What it is if it is not stated. Without any of these methods it is required.
    pub(in crate::profile) fn or(mut self, value: U::Value) -> Self {
        self.default = Usual::Value(value);
        self
    }

    /// There is none if it is not stated, which means `meaning`.
    pub(in crate::profile) fn absent(mut self, meaning: &'static str) -> Self {
        self.default = Usual::Nothing;
        self.none_means(meaning)
    }

    /// What follows from other keys if it is not stated.
    pub(in crate::profile) fn follows(
        mut self,
        words: &'static str,
        rule: fn(&C) -> Option<U::Value>,
    ) -> Self {
        self.default = Usual::Follows(words, rule);
        self
    }

    /// Code of its own works it out if it is not stated.
    pub(in crate::profile) fn derived(mut self, words: &'static str) -> Self {
        self.default = Usual::Derived(words);
        self
    }

    /// What is typical of a kind of cell if it is not stated.
    pub(in crate::profile) fn typical(mut self, of: fn(Cell) -> U::Value) -> Self {
        self.default = Usual::Typical(of);
        self
    }

    /// What it means that a configuration has no value. A file may say so in these words,
    /// which are as good as leaving the key out.
    pub(in crate::profile) fn none_means(mut self, meaning: &'static str) -> Self {
        self.absent = Some(meaning);
        self
    }

    /// From `min` to `max`.
    pub(in crate::profile) fn within(self, min: U::Value, max: U::Value) -> Self
    where
        U::Value: PartialOrd,
    {
        let [low, high] = [&min, &max].map(|value| self.unit.plain(value));
        let valid = format!("at least {low}, at most {high}");
        let unit = self.unit.clone();
        let words = format!("{low} to {high}{}", self.unit.counted());
        self.ranges(words, move |_, value| {
            let what = || (unit.out_of_range(value), valid.clone());
            (!(&min..=&max).contains(&value)).then(what)
        })
    }

    /// Up to `max`.
    pub(in crate::profile) fn at_most(self, max: U::Value) -> Self
    where
        U::Value: PartialOrd,
    {
        let valid = format!("at most {}", self.unit.plain(&max));
        let unit = self.unit.clone();
        self.ranges(valid.clone(), move |_, value| {
            (*value > max).then(|| (unit.out_of_range(value), valid.clone()))
        })
    }

    /// From `min`; less than that is wrong because of `what`.
    pub(in crate::profile) fn at_least(self, min: U::Value, what: &'static str) -> Self
    where
        U::Value: PartialOrd,
    {
        let valid = format!("at least {}", self.unit.plain(&min));
        self.ranges(valid.clone(), move |_, value| {
            (*value < min).then(|| (what.to_owned(), valid.clone()))
        })
    }

    /// What `broken` has nothing against; `words` say so on the page.
    pub(in crate::profile) fn ranges(
        self,
        words: impl Into<String>,
        broken: impl Fn(&C, &U::Value) -> Option<Broken> + Send + Sync + 'static,
    ) -> Self {
        self.all_ranges(words, move |config, value| {
            broken(config, value).into_iter().collect()
        })
    }

    /// What rules between keys allow, which [`super::super::check`] has; `words` say so on the page.
    pub(in crate::profile) fn related(self, words: &'static str) -> Self {
        self.ranges(words, |_, _| None)
    }

    /// As [`Field::ranges`], for values of which several things may be wrong.
    pub(in crate::profile) fn all_ranges(
        mut self,
        words: impl Into<String>,
        broken: impl Fn(&C, &U::Value) -> Vec<Broken> + Send + Sync + 'static,
    ) -> Self {
        self.range = Some(Range {
            words: words.into(),
            broken: Box::new(broken),
        });
        self
    }

    /// It has an effect only under this condition, beside those said before.
    pub(in crate::profile) fn only(mut self, only: Only<C>) -> Self {
        self.only.push(only);
        self
    }

    /// A value other than nothing has an effect only with this.
    pub(in crate::profile) fn needs(mut self, needs: Need<C>) -> Self {
        self.needs = Some(needs);
        self
    }

    /// It is left out of files and descriptions where it has its default.
    pub(in crate::profile) fn rare(mut self) -> Self {
        self.rare = true;
        self
    }

    /// Ends the declaration with the text for the page.
    pub(in crate::profile) fn says(mut self, text: &'static str) -> Key<C> {
        Key {
            path: self.path,
            text,
            only: std::mem::take(&mut self.only),
            needs: self.needs.take(),
            rare: self.rare,
            value: Box::new(self),
        }
    }
}

impl<C: 'static, U: Unit> Value<C> for Field<C, U> {
    fn read(
        &self,
        table: &Table<'_>,
        name: &str,
        certain: bool,
        reading: &mut Reading<C>,
    ) -> Result<bool, Reported> {
        let lba_bytes = reading.lba_bytes;
        let stated = table.get(name, |item| match self.absent {
            Some(word) => item.word_or(word, |item| self.unit.read(item, lba_bytes)),
            None => self.unit.read(item, lba_bytes).map(Some),
        });
        let hint = match (&self.default, reading.about.cell) {
            _ if !certain => None,
            (Usual::Required, _) => Some(""),
            // Whatever a cell that is wrong should be, it would give a value.
            (Usual::Typical(_), None) if !reading.has_failed("media.cell") => {
                Some("state it, or media.cell for a typical one")
            }
            _ => None,
        };
        let value = match hint {
            Some(hint) => stated.required_or(hint)?,
            None => stated.optional()?.flatten(),
        };
        let is_stated = value.is_some();
        let default = match (&self.default, reading.about.cell) {
            _ if !certain => None,
            (Usual::Value(value), _) => Some(value.clone()),
            (Usual::Typical(of), Some(cell)) => Some(of(cell)),
            _ => None,
        };
        if let Some(value) = value.or(default) {
            (self.at.set)(&mut reading.config, value);
        }
        Ok(is_stated)
    }

    fn follow(&self, config: &mut C) {
        if let Usual::Follows(_, rule) = self.default
            && let Some(value) = rule(config)
        {
            (self.at.set)(config, value);
        }
    }

    fn text(&self, config: &C, lba_bytes: u32) -> Option<Text> {
        (self.at.get)(config).map(|value| self.unit.text(&value, lba_bytes))
    }

    fn absent(&self) -> Option<&'static str> {
        self.absent
    }

    fn is_usual(&self, config: &C) -> bool {
        match (&self.default, (self.at.get)(config)) {
            (Usual::Value(usual), Some(value)) => *usual == value,
            (_, value) => value.is_none(),
        }
    }

    fn is_typical(&self) -> bool {
        matches!(self.default, Usual::Typical(_))
    }

    fn is_nothing(&self, config: &C) -> bool {
        (self.at.get)(config).is_none_or(|value| self.unit.is_nothing(&value))
    }

    fn broken(&self, config: &C) -> Vec<Broken> {
        match (&self.range, (self.at.get)(config)) {
            (Some(range), Some(value)) => (range.broken)(config, &value),
            _ => Vec::new(),
        }
    }

    fn page_value(&self) -> String {
        match (&self.range, self.unit.words()) {
            (Some(range), words) => format!("{words}, {}", range.words),
            (None, words) => words,
        }
    }

    fn page_default(&self) -> String {
        match &self.default {
            Usual::Required => "required".to_owned(),
            Usual::Value(value) => format!("`{}`", self.unit.plain(value)),
            Usual::Nothing => self.absent.unwrap_or("none").to_owned(),
            Usual::Typical(_) => "required, or that of `media.cell`".to_owned(),
            Usual::Follows(words, _) | Usual::Derived(words) => format!("({words})"),
        }
    }
}
