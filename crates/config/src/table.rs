//! Tables of a document, and what they say about their keys.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::document::{Document, Reported};
use crate::error::Place;
use crate::item::Item;
use crate::node::TableNode;

/// A table of a document. One that is not there reads as an empty one.
///
/// Ask for all keys of a table before leaving with `?`: what was not asked for
/// by [`Document::finish`] is an unknown key.
#[derive(Debug)]
pub struct Table<'d> {
    document: &'d Document,
    node: Option<&'d TableNode>,
    path: String,
    /// Something else stands where the table should be, which was reported.
    broken: bool,
}

impl<'d> Table<'d> {
    pub(crate) fn new(document: &'d Document, node: Option<&'d TableNode>, path: String) -> Self {
        if let Some(node) = node {
            node.entered.set(true);
        }
        Self {
            document,
            node,
            path,
            broken: false,
        }
    }

    /// The path of the table, `media.suspend`; empty for the top level.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file of the document, and the line in it that states `key`; 0: none does.
    #[must_use]
    pub fn place_of(&self, key: &str) -> (&'d str, usize) {
        let line = match self.document.place(&self.path_of(key)) {
            Some(Place::Line { line, .. }) => line,
            _ => 0,
        };
        (self.document.file(), line)
    }

    /// Whether the table is in the document.
    #[must_use]
    pub const fn is_present(&self) -> bool {
        self.node.is_some()
    }

    /// Whether the table has the key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.node.is_some_and(|node| node.entries.contains_key(key))
    }

    /// The keys of the table, in alphabetical order, all of them now known: for
    /// tables whose keys are the user's.
    #[must_use]
    pub fn keys(&self) -> Vec<&'d str> {
        let Some(node) = self.node else {
            return Vec::new();
        };
        node.known.borrow_mut().extend(node.entries.keys().cloned());
        node.entries.keys().map(String::as_str).collect()
    }

    /// Words that other programs have for keys of the table, each with the key. They are not
    /// valid; the refusal says which key is meant.
    pub fn called_elsewhere(&self, words: &[(&str, &str)]) {
        if let Some(node) = self.node {
            let words = words
                .iter()
                .map(|(word, key)| ((*word).to_owned(), (*key).to_owned()));
            node.aliases.borrow_mut().extend(words);
        }
    }

    /// The table under `key`.
    #[must_use]
    pub fn table(&self, key: &str) -> Self {
        let path = self.path_of(key);
        match self.item(key) {
            Ok(Some(item)) => item.table().unwrap_or_else(|Reported(())| Self {
                broken: true,
                ..Self::new(self.document, None, path)
            }),
            Ok(None) => Self::new(self.document, None, path),
            Err(Reported(())) => Self {
                broken: true,
                ..Self::new(self.document, None, path)
            },
        }
    }

    /// Refuses `key` if it is stated, because of `why`: `only with design = "fill"`.
    ///
    /// # Errors
    /// The key is stated.
    pub fn refuse(&self, key: &str, why: &str) -> Result<(), Reported> {
        match self.item(key)? {
            None => Ok(()),
            Some(_) => Err(self
                .document
                .report(&self.path_of(key), "contradicts other keys", why)),
        }
    }

    /// The value of `key` as `read` sees it; what the other methods are made of.
    pub fn get<'k, T>(
        &self,
        key: &'k str,
        read: impl FnOnce(&Item<'d>) -> Result<T, Reported>,
    ) -> Field<'_, 'd, 'k, T> {
        let value = match self.item(key) {
            Ok(Some(item)) => read(&item).map(Some),
            Ok(None) => Ok(None),
            Err(reported) => Err(reported),
        };
        Field {
            table: self,
            key,
            value,
        }
    }

    /// A whole number of at most 32 bits.
    pub fn u32<'k>(&self, key: &'k str) -> Field<'_, 'd, 'k, u32> {
        self.get(key, Item::u32)
    }

    /// A whole number of at most 64 bits.
    pub fn u64<'k>(&self, key: &'k str) -> Field<'_, 'd, 'k, u64> {
        self.get(key, Item::u64)
    }

    /// `true` or `false`.
    pub fn bool<'k>(&self, key: &'k str) -> Field<'_, 'd, 'k, bool> {
        self.get(key, Item::bool)
    }

    /// Text.
    pub fn string<'k>(&self, key: &'k str) -> Field<'_, 'd, 'k, String> {
        self.get(key, |item| item.str().map(str::to_owned))
    }

    /// A size in bytes ([`crate::units::parse_size`]). A key that ends in `_bytes` may
    /// also be a bare number.
    pub fn size_bytes<'k>(&self, key: &'k str) -> Field<'_, 'd, 'k, u64> {
        self.get(key, Item::size_bytes)
    }

    /// As [`Table::size_bytes`], of at most 32 bits.
    pub fn size_bytes_u32<'k>(&self, key: &'k str) -> Field<'_, 'd, 'k, u32> {
        self.get(key, Item::size_bytes_u32)
    }

    /// A time in nanoseconds ([`crate::units::parse_duration`]).
    pub fn duration_ns<'k>(&self, key: &'k str) -> Field<'_, 'd, 'k, u64> {
        self.get(key, Item::duration_ns)
    }

    /// A rate in bytes per second ([`crate::units::parse_rate`]).
    pub fn rate_bytes_per_s<'k>(&self, key: &'k str) -> Field<'_, 'd, 'k, u64> {
        self.get(key, Item::rate_bytes_per_s)
    }

    /// A share in parts per million ([`crate::units::parse_percent`]).
    pub fn percent_ppm<'k>(&self, key: &'k str) -> Field<'_, 'd, 'k, u32> {
        self.get(key, Item::percent_ppm)
    }

    /// A range of numbers, first and last ([`Item::range`]).
    pub fn range<'k>(&self, key: &'k str) -> Field<'_, 'd, 'k, RangeInclusive<u64>> {
        self.get(key, Item::range)
    }

    /// One of several named values.
    pub fn choice<'k, T: Clone>(&self, key: &'k str, names: &[(&str, T)]) -> Field<'_, 'd, 'k, T> {
        self.get(key, |item| item.choice(names))
    }

    /// An array, each of its items as `read` sees it: `table.list("sizes", Item::size_bytes)`.
    pub fn list<'k, T>(
        &self,
        key: &'k str,
        read: impl Fn(&Item<'d>) -> Result<T, Reported>,
    ) -> Field<'_, 'd, 'k, Vec<T>> {
        self.get(key, |item| {
            // Read all before giving up, so that every item's problem is reported.
            let values: Vec<Result<T, Reported>> = item.items()?.iter().map(read).collect();
            values.into_iter().collect()
        })
    }

    /// An array of tables (`[[key]]`); empty if it is not there.
    ///
    /// # Errors
    /// Something that is not an array of tables.
    pub fn tables(&self, key: &str) -> Result<Vec<Self>, Reported> {
        self.list(key, Item::table).or(Vec::new())
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn item(&self, key: &str) -> Result<Option<Item<'d>>, Reported> {
        if self.broken {
            return Err(Reported(()));
        }
        let Some(table) = self.node else {
            return Ok(None);
        };
        table.known.borrow_mut().insert(key.to_owned());
        let entry = table.entries.get(key);
        Ok(entry.map(|entry| Item {
            document: self.document,
            node: &entry.node,
            path: self.path_of(key),
            word: None,
        }))
    }
}

/// What a table says about one key.
#[derive(Debug)]
#[must_use = "say whether the key is required"]
pub struct Field<'t, 'd, 'k, T> {
    table: &'t Table<'d>,
    key: &'k str,
    value: Result<Option<T>, Reported>,
}

impl<T> Field<'_, '_, '_, T> {
    /// The value, or `None` if the key is absent.
    ///
    /// # Errors
    /// It is there and wrong.
    pub fn optional(self) -> Result<Option<T>, Reported> {
        self.value
    }

    /// The value, or `default` if the key is absent.
    ///
    /// # Errors
    /// It is there and wrong.
    pub fn or(self, default: T) -> Result<T, Reported> {
        Ok(self.value?.unwrap_or(default))
    }

    /// The value, or what is missing is reported.
    ///
    /// # Errors
    /// It is absent or wrong.
    pub fn required(self) -> Result<T, Reported> {
        self.required_or("")
    }

    /// As [`Field::required`]; `hint` says how to do without the key.
    ///
    /// # Errors
    /// It is absent or wrong.
    pub fn required_or(self, hint: &str) -> Result<T, Reported> {
        let path = self.table.path_of(self.key);
        self.value?
            .ok_or_else(|| self.table.document.report(&path, "missing", hint))
    }

    /// Refuses a value outside `range`.
    pub fn within(self, range: RangeInclusive<T>) -> Self
    where
        T: PartialOrd + Display,
    {
        let Ok(Some(value)) = &self.value else {
            return self;
        };
        if range.contains(value) {
            return self;
        }
        let path = self.table.path_of(self.key);
        let valid = format!("at least {}, at most {}", range.start(), range.end());
        let reported = self
            .table
            .document
            .report(&path, format!("{value} is out of range"), valid);
        Self {
            value: Err(reported),
            ..self
        }
    }
}
