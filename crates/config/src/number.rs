//! Numbers that measure rather than count: published values in experiment files.

use crate::document::Reported;
use crate::item::Item;
use crate::node::Value;

impl Item<'_> {
    /// Whether the value is written as a whole number.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        matches!(self.node.value, Value::Integer(_))
    }

    /// Whether the value is a string, for keys that take a name or a table.
    #[must_use]
    pub fn is_string(&self) -> bool {
        matches!(self.node.value, Value::Text(_))
    }

    /// The text of a value that stands without quotes: a number, or `true` or `false`.
    /// `None` for strings, and for what is more than one value.
    #[must_use]
    pub fn bare(&self) -> Option<String> {
        match &self.node.value {
            Value::Integer(integer) => integer.map(|integer| integer.to_string()),
            Value::Float(digits) => Some(digits.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// A finite number, with or without a fraction.
    ///
    /// # Errors
    /// Anything else.
    pub fn f64(&self) -> Result<f64, Reported> {
        const VALID: &str = "write a number, such as 48.6";
        let number = match &self.node.value {
            Value::Integer(Some(integer)) => Some(*integer as f64),
            Value::Float(digits) => digits.replace('_', "").parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if f64::is_finite(number) => Ok(number),
            _ => Err(self.fail("this is not a number", VALID)),
        }
    }
}
