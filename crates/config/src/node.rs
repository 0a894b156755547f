//! The tree of a document, with places and with marks of what was asked for.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::units::quote_short;

/// Where a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Byte offset in the text.
    Text(usize),
    /// Index of the override.
    Override(usize),
}

/// A value.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) origin: Origin,
    pub(crate) value: Value,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum Value {
    Text(String),
    /// `None`: more digits than 128 bits hold.
    Integer(Option<i128>),
    /// As written; nothing in zonelab is a float, so it is only kept for messages.
    Float(String),
    Bool(bool),
    /// As written, as floats.
    Date(String),
    Array(Vec<Node>),
    Table(TableNode),
}

/// A table, with what was asked of it.
#[derive(Debug, Default)]
pub(crate) struct TableNode {
    pub(crate) entries: BTreeMap<String, Entry>,
    /// Keys that a reader asked for, present or not.
    pub(crate) known: RefCell<BTreeSet<String>>,
    /// Words that people write for a key: `bs` for `block`.
    pub(crate) aliases: RefCell<BTreeMap<String, String>>,
    /// A reader looked into the table, so what it did not ask for is unknown.
    pub(crate) entered: Cell<bool>,
}

/// A key of a table and its value.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Where the key stands.
    pub(crate) origin: Origin,
    pub(crate) node: Node,
}

impl Node {
    /// Copies a parsed value. `origin` says where a byte offset comes from.
    pub(crate) fn new(parsed: &Spanned<DeValue<'_>>, origin: &dyn Fn(usize) -> Origin) -> Self {
        let value = match parsed.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(digits) => {
                Value::Integer(i128::from_str_radix(digits.as_str(), digits.radix()).ok())
            }
            DeValue::Float(digits) => Value::Float(digits.as_str().to_owned()),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(items) => {
                Value::Array(items.iter().map(|item| Self::new(item, origin)).collect())
            }
            DeValue::Table(table) => Value::Table(TableNode::new(table, origin)),
        };
        Self {
            origin: origin(parsed.span().start),
            value,
        }
    }

    /// The value as JSON. Integers beyond 64 bits and dates are texts, as they
    /// were written, and so are numbers that are not finite.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Text(text) | Value::Date(text) => text.as_str().into(),
            Value::Float(digits) => {
                let number: Option<f64> = digits.replace('_', "").parse().ok();
                let number = number.and_then(serde_json::Number::from_f64);
                number.map_or_else(|| digits.as_str().into(), serde_json::Value::Number)
            }
            Value::Integer(integer) => {
                let small = integer.and_then(|integer| i64::try_from(integer).ok());
                let text = || integer.map_or(serde_json::Value::Null, |n| n.to_string().into());
                small.map_or_else(text, serde_json::Value::from)
            }
            Value::Bool(flag) => (*flag).into(),
            Value::Array(items) => items.iter().map(Self::to_json).collect(),
            Value::Table(table) => table.to_json(),
        }
    }

    /// What the value is, for "expected this, found that".
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("the string {}", quote_short(text)),
            Value::Integer(Some(integer)) => format!("the integer {integer}"),
            Value::Integer(None) => "a very long integer".to_owned(),
            Value::Float(digits) => format!("the number {}", crate::units::shorten(digits)),
            Value::Bool(flag) => flag.to_string(),
            Value::Date(date) => format!("the date {date}"),
            Value::Array(_) => "an array".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

impl TableNode {
    /// The table as a JSON object.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let entries = self.entries.iter();
        let entries = entries.map(|(key, entry)| (key.clone(), entry.node.to_json()));
        serde_json::Value::Object(entries.collect())
    }

    /// Copies a parsed table.
    pub(crate) fn new(parsed: &DeTable<'_>, origin: &dyn Fn(usize) -> Origin) -> Self {
        let entries = parsed
            .iter()
            .map(|(key, value)| {
                let entry = Entry {
                    origin: origin(key.span().start),
                    node: Node::new(value, origin),
                };
                (key.get_ref().to_string(), entry)
            })
            .collect();
        Self {
            entries,
            ..Self::default()
        }
    }
}
