//! What differs between results that were packed and results that were made again.

use std::collections::BTreeMap;
use std::fmt;

/// How many lines of a file are named.
const LINES_MAX: usize = 5;
/// How much of a line is shown.
const SHOWN_MAX: usize = 120;

/// A file that is not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub file: String,
    /// How it differs.
    pub change: Change,
}

/// How a file differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not made again.
    Missing,
    /// It is not in the bundle.
    New,
    /// Lines of a text.
    Lines {
        /// The first of them: number from 1, as packed, and as made again. Empty where one of
        /// them has no such line.
        first: Vec<(usize, String, String)>,
        /// How many there are.
        count: usize,
    },
    /// Bytes of something else than a text.
    Bytes {
        /// Position of the first, from 0.
        at: usize,
    },
}

/// Compares results byte by byte.
#[must_use]
pub fn compare(
    packed: &BTreeMap<String, Vec<u8>>,
    again: &BTreeMap<String, Vec<u8>>,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut add = |file: &str, change| {
        differences.push(Difference {
            file: file.to_owned(),
            change,
        });
    };
    for (name, bytes) in packed {
        match again.get(name) {
            None => add(name, Change::Missing),
            Some(other) if other == bytes => {}
            Some(other) => add(name, change(bytes, other)),
        }
    }
    for name in again.keys().filter(|name| !packed.contains_key(*name)) {
        add(name, Change::New);
    }
    differences
}

/// How two files that differ do so.
fn change(packed: &[u8], again: &[u8]) -> Change {
    let texts = (std::str::from_utf8(packed), std::str::from_utf8(again));
    if let (Ok(packed), Ok(again)) = texts {
        // With the ends of lines, which may differ as well.
        let mut theirs = packed.split_inclusive('\n');
        let mut ours = again.split_inclusive('\n');
        let (mut first, mut count) = (Vec::new(), 0);
        for number in 1.. {
            match (theirs.next(), ours.next()) {
                (None, None) => break,
                (a, b) if a == b => {}
                (a, b) => {
                    count += 1;
                    if first.len() < LINES_MAX {
                        let of = |line: Option<&str>| shown(line.unwrap_or_default());
                        first.push((number, of(a), of(b)));
                    }
                }
            }
        }
        return Change::Lines { first, count };
    }
    let mut pairs = packed.iter().zip(again);
    let shorter = packed.len().min(again.len());
    let at = pairs.position(|(a, b)| a != b).unwrap_or(shorter);
    Change::Bytes { at }
}

/// The beginning of a line.
fn shown(line: &str) -> String {
    let line = line.trim_end_matches(['\n', '\r']);
    let mut text: String = line.chars().take(SHOWN_MAX).collect();
    if text.len() < line.len() {
        text.push('…');
    }
    text
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        match &self.change {
            Change::Missing => write!(f, "{file}: not made again"),
            Change::New => write!(f, "{file}: not in the bundle"),
            Change::Bytes { at } => write!(f, "{file}: differs from byte {at} on"),
            Change::Lines { first, count } => {
                match count {
                    1 => write!(f, "{file}: 1 line differs")?,
                    count => write!(f, "{file}: {count} lines differ")?,
                }
                for (number, packed, again) in first {
                    write!(
                        f,
                        "\n  line {number}\n    packed: {packed}\n    again:  {again}"
                    )?;
                }
                Ok(())
            }
        }
    }
}
