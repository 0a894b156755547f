//! What a relation is.

use crate::case::Case;
use crate::draw::Draw;
use crate::run::{Refused, Runs};

/// How far two sides of a relation may be apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Both sides are the same, or one side is never beyond the other.
    Exact,
    /// They may differ: by how much, and why.
    Within(&'static str),
}

/// Whether a relation holds for a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The case has nothing of what it is about.
    Skipped,
    /// It holds.
    Holds,
    /// It does not: expected and got.
    Broken(String),
}

/// What a check returns; a case that is refused on the way counts as skipped.
pub type Checked = Result<Verdict, Refused>;

/// Something that holds for every drive, without an oracle.
#[derive(Clone, Copy, Debug)]
pub struct Relation {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
    /// How exactly.
    pub bound: Bound,
    /// Makes a drawn case one that the relation is about, as far as it takes little.
    pub shape: fn(&mut Draw, &mut Case),
    /// Whether it holds.
    pub check: fn(&Case, &mut Runs) -> Checked,
}

impl Relation {
    /// Whether it holds for a case, and the runs that were made to find out.
    #[must_use]
    pub fn check(&self, case: &Case) -> (Verdict, Runs) {
        let mut runs = Runs::default();
        let mut verdict = (self.check)(case, &mut runs).unwrap_or(Verdict::Skipped);
        if runs.is_endless {
            verdict = Verdict::Broken("its last run does not come to an end".to_owned());
        }
        (verdict, runs)
    }
}

/// Takes a case as it is.
pub(crate) const fn any(_: &mut Draw, _: &mut Case) {}

/// Broken if there is a difference.
pub(crate) fn unless(difference: Option<String>) -> Checked {
    Ok(difference.map_or(Verdict::Holds, Verdict::Broken))
}

/// Broken if a condition does not hold.
pub(crate) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    Ok(match holds {
        true => Verdict::Holds,
        false => Verdict::Broken(what()),
    })
}
