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
