//! Rules about single values, which the declarations of keys state.

use super::super::keys;
use super::Rules;

impl Rules<'_> {
    /// Each value by itself.
    pub(super) fn ranges(&mut self) {
        for key in keys::all().filter(|key| key.applies(self.config)) {
            for (what, valid) in key.value.broken(self.config) {
                self.refuse(key.path, what, valid);
            }
        }
    }
}
