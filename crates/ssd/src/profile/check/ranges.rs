//! Rules about single values, which the declarations of keys state.

use super::super::keys;
use super::Rules;

impl Rules<'_> {
    /// Each value by itself.
    pub(super) fn ranges(&mut self) {
        for key in keys::all() {
            if key.applies(self.config) {
                for (what, valid) in key.value.broken(self.config) {
                    self.refuse(key.path, what, valid);
                }
            }
        }
    }

    /// A number from `min` to `max`.
    pub(super) fn number(&mut self, key: &'static str, value: u32, min: u32, max: u32) {
        if !(min..=max).contains(&value) {
            let valid = format!("at least {min}, at most {max}");
            self.refuse(key, format!("{value} is out of range"), valid);
        }
    }
}
