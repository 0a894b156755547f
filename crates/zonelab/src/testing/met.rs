//! What losses of power met: a test that never loses power while something is moved says
//! nothing about moving it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use zonelab_ssd::faults::Trigger;

use super::TestDrive;

/// Commands that change what is on a drive: those that losses of power should meet.
const CHANGES: [&str; 7] = [
    "write",
    "append",
    "flush",
    "reset",
    "finish",
    "deallocate",
    "copy",
];

/// How many losses of power met something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetCount {
    /// Losses while one was under way.
    pub under_way: u64,
    /// Losses before which the work had brought one to its end.
    pub behind: u64,
}

/// What losses of power met, by kind: commands as faults name them (`"append"`, `"flush"`,
/// `"reset"`), and what the work itself has marked ([`TestDrive::mark`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashReport {
    /// Losses of power.
    pub losses: u64,
    /// What they met. What is not there was never met.
    pub met: BTreeMap<&'static str, MetCount>,
    /// What the work did when no power was lost.
    pub(super) done: BTreeSet<&'static str>,
}

impl CrashReport {
    /// Losses that came while one of these was under way.
    #[must_use]
    pub fn under_way(&self, kind: &str) -> u64 {
        self.met.get(kind).map_or(0, |count| count.under_way)
    }

    /// Adds a loss of power.
    pub(super) fn add(&mut self, loss: &Loss) {
        self.losses += 1;
        for kind in &loss.under_way {
            self.met.entry(kind).or_default().under_way += 1;
        }
        for kind in &loss.behind {
            self.met.entry(kind).or_default().behind += 1;
        }
    }

    /// The first that no loss met while it was under way: of `needs`, and of the changes and
    /// marks that the work makes.
    pub(super) fn missing(&self, needs: &[&'static str]) -> Option<&'static str> {
        let is_change = |kind: &&&'static str| {
            // Reads change nothing, and neither do reports.
            CHANGES.contains(kind) || Trigger::BY_NAME.iter().all(|(name, _)| name != *kind)
        };
        let wanted = needs.iter().chain(self.done.iter().filter(is_change));
        let mut missing = wanted.filter(|kind| self.under_way(kind) == 0);
        missing.next().copied()
    }
}

impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} losses of power", self.losses)?;
        for (kind, MetCount { under_way, behind }) in &self.met {
            write!(
                f,
                "; {kind}: {under_way} while one was under way, {behind} behind one"
            )?;
        }
        let is_missing = |kind: &&&str| !self.met.contains_key(**kind);
        let never: Vec<&str> = CHANGES.iter().filter(is_missing).copied().collect();
        match never.is_empty() {
            true => Ok(()),
            false => write!(f, "; NEVER MET: {}", never.join(", ")),
        }
    }
}

/// What one loss of power met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Loss {
    under_way: BTreeSet<&'static str>,
    behind: BTreeSet<&'static str>,
}

/// What is under way on a drive, and what has been, since it lost power.
#[derive(Debug, Default)]
pub(super) struct Journal {
    commands: BTreeMap<u32, &'static str>,
    marks: BTreeMap<&'static str, u32>,
    behind: BTreeSet<&'static str>,
    /// What the last loss met.
    last: Loss,
}

impl Journal {
    pub(super) fn begins(&mut self, tag: u32, kind: &'static str) {
        self.commands.insert(tag, kind);
    }

    pub(super) fn ends(&mut self, tag: u32) {
        self.behind.extend(self.commands.remove(&tag));
    }

    fn mark(&mut self, what: &'static str) {
        *self.marks.entry(what).or_default() += 1;
    }

    fn unmark(&mut self, what: &'static str, is_over: bool) {
        if let Some(count) = self.marks.get_mut(what) {
            *count = count.saturating_sub(1);
        }
        if is_over {
            self.behind.insert(what);
        }
    }

    /// Power is about to be lost.
    pub(super) fn loses(&mut self) {
        let marks = self.marks.iter().filter(|(_, count)| **count > 0);
        let commands = self.commands.values().copied();
        self.last = Loss {
            under_way: commands.chain(marks.map(|(what, _)| *what)).collect(),
            behind: std::mem::take(&mut self.behind),
        };
        self.commands.clear();
    }

    /// What the last loss of power met.
    pub(super) const fn last(&self) -> &Loss {
        &self.last
    }

    /// What comes is counted, and what was before is not.
    pub(super) fn begin(&mut self) {
        *self = Self::default();
    }

    /// What has come to its end since power was lost.
    pub(super) const fn done(&self) -> &BTreeSet<&'static str> {
        &self.behind
    }
}

/// Something that a program is doing on a drive, until this is dropped.
#[derive(Debug)]
#[must_use = "it is over when this is dropped"]
pub struct Mark {
    drive: TestDrive,
    what: &'static str,
}

impl TestDrive {
    /// From now on, until the mark is dropped, a program does what the drive cannot see by
    /// its commands: it moves live data, writes a manifest, compacts. Losses of power that
    /// meet it are counted ([`CrashReport`]).
    pub fn mark(&self, what: &'static str) -> Mark {
        self.state().journal.mark(what);
        Mark {
            drive: self.clone(),
            what,
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut state = self.drive.state();
        let is_over = state.is_on;
        state.journal.unmark(self.what, is_over);
    }
}
