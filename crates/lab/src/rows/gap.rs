//! Known gaps: statements and bars that do not hold, with the figure of today.

use serde::{Deserialize, Serialize};

use super::{Bound, Scope};

/// By how much a figure may differ from the one in the list, which has three
/// digits or more.
const ROUNDING: f64 = 0.005;

/// A statement or a bar that is known not to hold. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// Which result: "C8", or "D" for the bars of a real drive.
    pub id: String,
    /// The sentence, as the experiment or the page at the end has it.
    pub says: String,
    /// Our figure in a whole run; without, it holds there.
    #[serde(default)]
    pub today: Option<f64>,
    /// Our figure with `--quick`; without, it holds there or is not looked at.
    #[serde(default)]
    pub quick: Option<f64>,
    /// Why, for this statement; "not known" is an answer. Not empty.
    pub cause: String,
    /// Why in a quick run, if its figure is on the other side of what was published than that of
    /// a whole one: no cause explains both.
    #[serde(default)]
    pub quick_cause: Option<String>,
    /// What was tried, or "nothing yet". Not empty. More: `docs/NAME.md#anchor`.
    pub tried: String,
}

/// What the list says of a statement that does not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnownGap {
    /// Its figure in the list.
    pub today: f64,
    /// Why it does not hold.
    pub cause: String,
    /// What was tried.
    pub tried: String,
    /// Ours is further off than that figure.
    pub is_worse: bool,
    /// Ours is nearer than that figure, which has to be stated anew.
    pub is_better: bool,
}

impl Gap {
    /// The figure that is known for a run.
    #[must_use]
    pub const fn figure(&self, scope: Scope) -> Option<f64> {
        if scope.is_quick() {
            self.quick
        } else {
            self.today
        }
    }

    /// Why there is this figure.
    fn cause(&self, scope: Scope) -> &str {
        let quick = self.quick_cause.as_ref().filter(|_| scope.is_quick());
        quick.unwrap_or(&self.cause)
    }

    /// Whether the figures of whole and quick runs are on two sides of what was published.
    #[must_use]
    pub fn is_on_both_sides(&self, published: f64) -> bool {
        let side = |figure: Option<f64>| figure.map(|figure| figure > published);
        self.today.is_some() && self.quick.is_some() && side(self.today) != side(self.quick)
    }

    /// What it says of `ours`, which does not hold under `bound`; `None` if the
    /// statement should hold in such a run.
    #[must_use]
    pub fn of(
        &self,
        scope: Scope,
        bound: Bound,
        ours: f64,
        published: Option<f64>,
    ) -> Option<KnownGap> {
        let today = self.figure(scope)?;
        let difference = bound.excess(ours, published) - bound.excess(today, published);
        let differs = (ours - today).abs() > ROUNDING * today.abs();
        // A cause says why ours is too large, or too small.
        let is_turned = published.is_some_and(|of| (ours > of) != (today > of));
        Some(KnownGap {
            today,
            cause: match is_turned {
                false => self.cause(scope).to_owned(),
                true => {
                    "not known: the cause in the list is of a figure on the other side of what \
                         was published"
                        .to_owned()
                }
            },
            tried: self.tried.clone(),
            // What was not measured is worse than anything.
            is_worse: !ours.is_finite() || (differs && difference > 0.0),
            is_better: differs && difference < 0.0,
        })
    }
}
