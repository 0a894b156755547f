//! A document: text, overrides, and the problems that reading it met.

mod put_in;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use toml::de::DeTable;

use crate::error::{Errors, Place, Problem};
use crate::nearest::nearest;
use crate::node::{Node, Origin, TableNode, Value};
use crate::overrides::Override;
use crate::table::Table;
use crate::units::shorten;

pub use put_in::{PutIn, PutInAt, is_placeholder_name};
pub(crate) use put_in::{Unnamed, put_into};

/// Proof that a problem was reported to the document, so that there is nothing
/// more to say about a value that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported(pub(crate) ());

/// A TOML document that is being read.
///
/// Parse it, ask its [`Table`]s for values, then [`Document::finish`].
#[derive(Debug)]
pub struct Document {
    file: String,
    /// Byte offsets at which lines begin.
    line_starts: Vec<usize>,
    text: String,
    overrides: Vec<Place>,
    root: TableNode,
    problems: RefCell<Vec<Problem>>,
    unlisted: Cell<usize>,
}

impl Document {
    /// Longest text in bytes. Files are written by people.
    pub const TEXT_MAX: usize = 4 << 20;
    /// Problems that are kept; those after are only counted.
    const PROBLEMS_MAX: usize = 50;

    /// Reads TOML and applies overrides in their order. `file` is the name that
    /// messages give.
    ///
    /// # Errors
    /// What is not TOML, and overrides that do not fit.
    pub fn parse(file: &str, text: &str, overrides: &[Override]) -> Result<Self, Errors> {
        let mut document = Self {
            file: file.to_owned(),
            line_starts: line_starts(text),
            text: text.to_owned(),
            overrides: overrides.iter().map(Override::place).collect(),
            root: TableNode::default(),
            problems: RefCell::default(),
            unlisted: Cell::new(0),
        };
        if text.len() > Self::TEXT_MAX {
            let what = format!("the file has {} bytes", text.len());
            let valid = format!("at most {} are read", Self::TEXT_MAX);
            return Err(Problem::of_file(file, what, valid).into());
        }
        let (parsed, syntax) = DeTable::parse_recoverable(text);
        for error in &syntax {
            let place = error
                .span()
                .map_or(Place::File, |span| document.line_of(span.start));
            document.add(place, "", syntax_message(error.message()), String::new());
        }
        document.stop_at_problems()?;
        let mut root = TableNode::new(parsed.get_ref(), &Origin::Text);
        for (index, change) in overrides.iter().enumerate() {
            if let Err(refusal) = change.apply(&mut root, index) {
                let place = document.place_of(Origin::Override(index));
                document.add(place, "", refusal.what, refusal.valid);
            }
        }
        document.stop_at_problems()?;
        document.root = root;
        Ok(document)
    }

    /// The name of the file, as given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The whole document with its overrides as JSON, for results that say what
    /// they are results of. Sizes and times stay as they were written.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        self.root.to_json()
    }

    /// The top-level table.
    #[must_use]
    pub fn root(&self) -> Table<'_> {
        Table::new(self, Some(&self.root), String::new())
    }

    /// Where the document states the key `path`: a line, or an override; `None`: nowhere.
    #[must_use]
    pub fn place(&self, path: &str) -> Option<Place> {
        let (origin, stated) = self.find(path);
        origin
            .filter(|_| stated)
            .map(|origin| self.place_of(origin))
    }

    /// Reports a problem of the key `path`, at its line, or at the line of the
    /// table that it would be in. For what a reader finds out by itself: that two
    /// keys do not go together, that a number does not fit another.
    pub fn report(
        &self,
        path: &str,
        what: impl Into<String>,
        valid: impl Into<String>,
    ) -> Reported {
        let place = self
            .find(path)
            .0
            .map_or(Place::File, |origin| self.place_of(origin));
        self.add(place, path, what.into(), valid.into());
        Reported(())
    }

    /// Ends the reading: `value`, if nothing at all was wrong.
    ///
    /// # Errors
    /// Every problem that was reported, and every key of a table that was looked
    /// into that nobody asked for.
    pub fn finish<T>(self, value: Result<T, Reported>) -> Result<T, Errors> {
        self.report_unknown(&self.root, "");
        self.stop_at_problems()?;
        // `Reported` may come from another document only by mistake; there is no value then.
        value.map_err(|Reported(())| Problem::of_file(&self.file, "a value is missing", "").into())
    }

    fn stop_at_problems(&self) -> Result<(), Errors> {
        let problems = self.problems.take();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Errors::new(problems, self.unlisted.get()))
        }
    }

    /// The origin of `path` or of its nearest stated ancestor, and whether it was found itself.
    fn find(&self, path: &str) -> (Option<Origin>, bool) {
        let mut table = &self.root;
        let mut nearest = None;
        let mut keys = path.split('.').peekable();
        while let Some(key) = keys.next() {
            let Some(entry) = table.entries.get(key) else {
                return (nearest, false);
            };
            nearest = Some(entry.origin);
            let mut value = &entry.node.value;
            // Items of arrays are keys too: `job.1.zones`.
            while let (Value::Array(items), Some(key)) = (value, keys.peek()) {
                let Some(item) = key.parse().ok().and_then(|index: usize| items.get(index)) else {
                    return (nearest, false);
                };
                keys.next();
                nearest = Some(item.origin);
                value = &item.value;
            }
            match value {
                Value::Table(inner) => table = inner,
                _ => return (nearest, keys.peek().is_none()),
            }
        }
        (nearest, true)
    }

    pub(crate) fn add(&self, place: Place, key: &str, what: String, valid: String) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() == Self::PROBLEMS_MAX {
            self.unlisted.set(self.unlisted.get() + 1);
            return;
        }
        let file = match &place {
            Place::Elsewhere(elsewhere) => &elsewhere.file,
            _ => &self.file,
        };
        problems.push(Problem {
            file: file.clone(),
            place,
            key: shorten(key),
            what,
            valid,
        });
    }

    pub(crate) fn place_of(&self, origin: Origin) -> Place {
        match origin {
            Origin::Text(offset) => self.line_of(offset),
            Origin::Override(index) => self.overrides[index].clone(),
        }
    }

    fn line_of(&self, offset: usize) -> Place {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        let before = self.text.as_bytes().get(start..offset).unwrap_or_default();
        let column = before
            .iter()
            .filter(|byte| !is_utf8_continuation(**byte))
            .count()
            + 1;
        Place::Line { line, column }
    }

    fn report_unknown(&self, table: &TableNode, path: &str) {
        let known = table.known.borrow();
        for (key, entry) in &table.entries {
            let full = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            if !known.contains(key) {
                if table.entered.get() {
                    self.report_unknown_key(
                        (&known, &table.aliases.borrow()),
                        key,
                        &full,
                        entry.origin,
                    );
                }
                continue;
            }
            self.report_unknown_in(&entry.node, &full);
        }
    }

    fn report_unknown_in(&self, node: &Node, path: &str) {
        match &node.value {
            Value::Table(inner) => self.report_unknown(inner, path),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.report_unknown_in(item, &format!("{path}.{index}"));
                }
            }
            _ => {}
        }
    }

    fn report_unknown_key(
        &self,
        (known, aliases): (&BTreeSet<String>, &BTreeMap<String, String>),
        key: &str,
        full: &str,
        origin: Origin,
    ) {
        let known = || known.iter().map(String::as_str);
        let meant = (aliases.get(key).map(String::as_str))
            .filter(|meant| known().any(|known| known == *meant))
            .or_else(|| nearest(key, known()));
        let valid = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known().next().is_none() => String::new(),
            None => format!("known here: {}", known().collect::<Vec<_>>().join(", ")),
        };
        let what = format!("unknown key `{}`", shorten(key));
        self.add(self.place_of(origin), full, what, valid);
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    let after_newlines = text
        .bytes()
        .enumerate()
        .filter(|(_, b)| *b == b'\n')
        .map(|(i, _)| i + 1);
    std::iter::once(0).chain(after_newlines).collect()
}

const fn is_utf8_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// The parser's message, with a hint where the usual mistake is a missing quote.
fn syntax_message(message: &str) -> String {
    if message.contains("string values must be quoted") {
        "this is not a TOML value; a value with a unit is a string: write \"700us\", not 700us"
            .to_owned()
    } else if message.contains("recurs") {
        "tables or arrays are nested too deeply".to_owned()
    } else {
        format!("not TOML: {message}")
    }
}
