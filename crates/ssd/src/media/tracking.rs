//! What a drive that is watched has to know of the groups of its flash: whose they are, and
//! which of them take no time ([`crate::counterfactual`]).

use std::collections::BTreeSet;

use crate::account::Cause;
use crate::counterfactual::{Factor, Factors};

/// Whose groups are, by token, and what is absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracking {
    /// Factors whose groups take no time.
    absent: Factors,
    /// Tokens of groups that take their time all the same.
    spared: BTreeSet<u32>,
    /// Factors of the groups that came, and of those that were there, spared ones apart.
    seen: Factors,
}

impl Tracking {
    /// Says whether groups with a token are spared from now on.
    pub(crate) fn mark(&mut self, token: u32, is_spared: bool) {
        if is_spared {
            self.spared.insert(token);
        } else {
            self.spared.remove(&token);
        }
    }

    /// The factor of a group; `None`: it is spared.
    pub(super) fn factor(&self, token: u32, cause: Cause) -> Option<Factor> {
        (!self.spared.contains(&token)).then(|| Factor::of(cause))
    }

    /// Whether a group takes no time.
    pub(crate) fn is_absent(&self, token: u32, cause: Cause) -> bool {
        let factor = self.factor(token, cause);
        factor.is_some_and(|factor| self.absent.contains(factor))
    }

    /// A group comes. Returns whether it takes no time.
    pub(super) fn comes(&mut self, token: u32, cause: Cause) -> bool {
        if let Some(factor) = self.factor(token, cause) {
            self.seen.insert(factor);
            return self.absent.contains(factor);
        }
        false
    }

    /// Factors seen since [`Self::begin`].
    pub(crate) const fn seen(&self) -> Factors {
        self.seen
    }

    /// From now on these factors are absent; `present` groups have not ended.
    pub(super) fn begin(&mut self, absent: Factors, present: impl Iterator<Item = (u32, Cause)>) {
        self.absent = absent;
        self.spared.clear();
        self.seen = Factors::NONE;
        for (token, cause) in present {
            let _ = self.comes(token, cause);
        }
    }
}
