//! Reserved and vendor-specific bytes.

use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `N` bytes that the specification reserves, or leaves to the vendor.
///
/// Code can only make them zero; bytes that came from a peer are kept as they
/// are, compare, and show in the debug output if there are any set.
#[derive(Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Reserved<const N: usize>([u8; N]);

const _: () = assert!(size_of::<Reserved<3>>() == 3);

impl<const N: usize> Reserved<N> {
    /// All zero, as a sender must leave them.
    pub const ZERO: Self = Self([0; N]);

    /// True if a sender obeyed the reservation.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|byte| *byte == 0)
    }
}

impl<const N: usize> Default for Reserved<N> {
    fn default() -> Self {
        Self::ZERO
    }
}

impl<const N: usize> fmt::Debug for Reserved<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return write!(f, "[0; {N}]");
        }
        self.0.fmt(f)
    }
}
