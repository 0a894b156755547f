//! A failing case made as small as it can be.

use crate::case::{Case, Keys};
use crate::relation::{Relation, Verdict};

/// Values that a key is tried with before it stays as it was drawn.
const SIMPLE: &[(&str, &[&str])] = &[
    ("geometry.channels", &["1", "2"]),
    ("geometry.planes", &["2"]),
    ("geometry.pages_per_block", &["4", "16"]),
    ("geometry.page_size", &["16KiB"]),
    ("zones.count", &["4", "8"]),
    ("media.read", &["50us"]),
    ("media.program", &["1ms"]),
    ("media.erase", &["3ms"]),
    ("media.transfer", &["0ns", "10us"]),
    ("write_buffer.size", &["64KiB", "1MiB"]),
    ("finish.granularity", &["16KiB", "64KiB"]),
    ("threads", &["2"]),
    ("queue_depth", &["2"]),
    ("operations", &["1", "5", "20"]),
    ("block", &["16KiB", "4KiB"]),
    ("zones", &["0..=0", "0..=1"]),
];

/// Checks that a reduction may take.
const CHECKS: u32 = 400;

struct Reducer<'r> {
    relation: &'r Relation,
    case: Case,
    what: String,
    left: u32,
}

/// The smallest case that can be found of which the relation still does not hold, and how.
#[must_use]
pub fn reduce(relation: &Relation, case: &Case, what: String) -> (Case, String) {
    let mut reducer = Reducer {
        relation,
        case: case.clone(),
        what,
        left: CHECKS,
    };
    while reducer.round() {}
    (reducer.case, reducer.what)
}

impl Reducer<'_> {
    /// Takes a change if the relation still does not hold; whether it did.
    fn try_one(&mut self, change: impl FnOnce(&mut Case)) -> bool {
        let mut other = self.case.clone();
        change(&mut other);
        if other == self.case || self.left == 0 {
            return false;
        }
        self.left -= 1;
        match self.relation.check(&other).0 {
            Verdict::Broken(what) => {
                (self.case, self.what) = (other, what);
                true
            }
            Verdict::Skipped | Verdict::Holds => false,
        }
    }

    /// Tries everything once; whether something was taken.
    fn round(&mut self) -> bool {
        let mut taken = self.jobs();
        let keys: Vec<String> = self.case.drive.keys.keys().cloned().collect();
        let mut sections: Vec<String> = keys
            .iter()
            .filter_map(|key| {
                key.rsplit_once('.')
                    .map(|(section, _)| format!("{section}."))
            })
            .collect();
        sections.dedup();
        for section in sections {
            taken |= self.try_one(|case| case.drive.unset(&section));
        }
        for _ in 0..self.case.drive.namespaces.len() {
            taken |= self.try_one(|case| drop(case.drive.namespaces.pop()));
        }
        for key in &keys {
            taken |= self.try_one(|case| case.drive.unset(key));
        }
        for key in &keys {
            taken |= self.simplify(key, |case| Some(&mut case.drive.keys));
        }
        for index in 0..self.case.drive.namespaces.len() {
            let names: Vec<String> = self.case.drive.namespaces[index].keys().cloned().collect();
            for name in names {
                taken |= self.try_one(|case| drop(case.drive.namespaces[index].remove(&name)));
            }
        }
        taken
    }

    fn jobs(&mut self) -> bool {
        let mut taken = false;
        for phase in (0..self.case.work.phases.len()).rev() {
            for job in (0..self.case.work.phases[phase].len()).rev() {
                taken |= self.try_one(|case| {
                    case.work.phases[phase].remove(job);
                    case.work.phases.retain(|phase| !phase.is_empty());
                });
                let keys = self
                    .case
                    .work
                    .phases
                    .get(phase)
                    .and_then(|phase| phase.get(job));
                let Some(keys) = keys.map(|job| job.keys.clone()) else {
                    continue;
                };
                for key in keys.keys() {
                    taken |= self.try_one(|case| {
                        drop(case.work.phases[phase][job].keys.remove(key));
                    });
                    taken |= self.simplify(key, |case| {
                        let job = case.work.phases.get_mut(phase)?.get_mut(job)?;
                        Some(&mut job.keys)
                    });
                }
            }
        }
        let series: Vec<String> = self.case.work.series.keys().cloned().collect();
        for key in series {
            taken |= self.try_one(|case| drop(case.work.series.remove(&key)));
        }
        taken | self.try_one(|case| case.work.host.clear())
    }

    /// Tries simpler values of a key.
    fn simplify(&mut self, key: &str, of: impl Fn(&mut Case) -> Option<&mut Keys>) -> bool {
        let Some((_, values)) = SIMPLE.iter().find(|(known, _)| *known == key) else {
            return false;
        };
        let now = of(&mut self.case).and_then(|keys| keys.get(key).cloned());
        let Some(now) = now else { return false };
        // What is simple already stays.
        let simpler = values.iter().take_while(|value| **value != now);
        for value in simpler {
            let is_taken = self.try_one(|case| {
                if let Some(keys) = of(case) {
                    keys.insert(key.to_owned(), (*value).to_owned());
                }
            });
            if is_taken {
                return true;
            }
        }
        false
    }
}
