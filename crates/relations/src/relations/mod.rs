//! The relations, by what they are about.

mod bounds;
mod expected;
mod idle;
mod more;
mod places;
mod text;
mod times;
mod unused;
mod ways;

use crate::relation::Relation;

/// All of them, in the order in which `--list` prints them.
pub const ALL: &[&[Relation]] = &[
    text::ALL,
    unused::ALL,
    times::ALL,
    places::ALL,
    idle::ALL,
    expected::ALL,
    bounds::ALL,
    more::ALL,
    ways::ALL,
];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Relation> {
    ALL.iter().copied().flatten()
}
