//! The calculations of a Diffie-Hellman exchange, to be done elsewhere.

use core::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};
use zonelab_nvme::auth::DhGroup;

use crate::group::{self, NotInGroup};

/// A power in a Diffie-Hellman group. It belongs to nobody and takes
/// milliseconds, so that it can be done in any thread.
pub struct Calculation {
    group: DhGroup,
    /// The other end's value; empty: the generator.
    base: Vec<u8>,
    exponent: [u8; 64],
}

impl Calculation {
    pub(crate) fn public_value(group: DhGroup, exponent: &[u8; 64]) -> Self {
        Self::shared_secret(group, &[], exponent)
    }

    pub(crate) fn shared_secret(group: DhGroup, base: &[u8], exponent: &[u8; 64]) -> Self {
        Self {
            group,
            base: base.to_vec(),
            exponent: *exponent,
        }
    }

    /// Does it.
    #[must_use]
    pub fn run(&self) -> Outcome {
        Outcome(if self.base.is_empty() {
            let value = group::public_value(self.group, &self.exponent);
            value.map(Zeroizing::new).ok_or(NotInGroup)
        } else {
            group::shared_secret(self.group, &self.base, &self.exponent)
        })
    }
}

impl Drop for Calculation {
    fn drop(&mut self) {
        self.exponent.zeroize();
    }
}

impl ZeroizeOnDrop for Calculation {}

impl Clone for Calculation {
    fn clone(&self) -> Self {
        Self::shared_secret(self.group, &self.base, &self.exponent)
    }
}

impl fmt::Debug for Calculation {
    /// Not the exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calculation")
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// What came of a [`Calculation`].
pub struct Outcome(pub(crate) Result<Zeroizing<Vec<u8>>, NotInGroup>);

impl fmt::Debug for Outcome {
    /// Not the value: it may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("is_sound", &self.0.is_ok())
            .finish_non_exhaustive()
    }
}
