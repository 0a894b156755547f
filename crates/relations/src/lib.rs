//! Relations that physics demands, over random drives.
//!
//! Published rows guard the combinations that papers used; users combine everything. A relation
//! needs no oracle: with all times doubled everything takes twice as long, a drive of more ways
//! and fewer dies is as fast, what nobody uses does not matter. Each seed stands for a valid
//! random profile with a small workload, as the texts that a user would write, so that mistakes
//! in reading them are found, too. They run as `zonelab run` runs them. A case for which a
//! relation does not hold is reduced to the fewest keys, and printed with the commands that
//! replay it.
//!
//! | module | what |
//! | --- | --- |
//! | [`profile`], [`work`] | random profiles over all keys, and workloads for them |
//! | [`relations`] | the relations; [`relation`]: what one is |
//! | [`open`] | cases in which one is known not to hold, with reasons |
//! | [`case`](mod@case), [`run`] | texts, and running them |
//! | [`reduce`](mod@reduce) | the smallest case |
//! | [`report`] | failures, the list of relations, and the table of `docs/testing.md` |
//!
//! To add a relation, write a row of its module in `relations/`, with what it says, how exact it
//! is and why; its check runs variants of a case and compares them. Where random cases hardly
//! ever have what it is about, `shape` makes them so. A case in which one does not hold is a row
//! of [`open`]; `ZONELAB_BLESS=1 cargo test -p zonelab-relations` then writes the page.

pub mod case;
pub mod draw;
pub mod open;
pub mod profile;
pub mod reduce;
pub mod relation;
pub mod relations;
pub mod report;
pub mod run;
pub mod work;

use std::panic;

use rayon::prelude::*;

use case::Case;
use draw::Draw;
use relation::{Relation, Verdict};
use report::{Failure, Tally};

/// The case of a seed that a relation is asked about.
#[must_use]
pub fn case_of(seed: u64, relation: &Relation) -> Case {
    let mut case = work::case(&mut Draw::new(seed, 0));
    let shape = relation.name.bytes().fold(1, |hash: u64, byte| {
        hash.wrapping_mul(31).wrapping_add(byte.into())
    });
    (relation.shape)(&mut Draw::new(seed, shape), &mut case);
    case
}

/// Looks at all relations for a seed, or at those whose names are given.
#[must_use]
pub fn look(seed: u64, only: &[String]) -> (Tally, Vec<Failure>) {
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for relation in relations::all() {
        if !only.is_empty() && !only.iter().any(|name| name == relation.name) {
            continue;
        }
        let case = case_of(seed, relation);
        let checked = panic::catch_unwind(|| relation.check(&case).0);
        let Ok(verdict) = checked else {
            let text = format!("{}\n{}", case.drive.toml(), case.work.toml());
            panic!(
                "relation {} panics with seed {seed} and\n{text}",
                relation.name
            );
        };
        let is_open = open::is_open(relation.name, &case);
        tally.add(relation.name, &verdict, is_open);
        if let Verdict::Broken(what) = verdict
            && !is_open
        {
            failures.push(Failure {
                seed,
                relation,
                what,
                case,
            });
        }
    }
    (tally, failures)
}

/// Looks at consecutive seeds, on all cores. Failures are in the order of seeds.
#[must_use]
pub fn look_at_all(first: u64, runs: u64, only: &[String]) -> (Tally, Vec<Failure>) {
    let seeds: Vec<u64> = (first..first.saturating_add(runs)).collect();
    let each: Vec<_> = seeds.par_iter().map(|seed| look(*seed, only)).collect();
    let (mut tally, mut failures) = (Tally::default(), Vec::new());
    for (one, broken) in each {
        tally.merge(&one);
        failures.extend(broken);
    }
    (tally, failures)
}

/// The first failures of each relation, so many at most, with the smallest cases that can be
/// found. Those that come to the same keys are one.
#[must_use]
pub fn reduced(failures: Vec<Failure>, most: usize) -> Vec<Failure> {
    let mut tried: Vec<&str> = Vec::new();
    let mut chosen: Vec<Failure> = Vec::new();
    for failure in failures {
        let name = failure.relation.name;
        if tried.iter().filter(|of| **of == name).count() < most {
            tried.push(name);
            chosen.push(failure);
        }
    }
    let smallest = |failure: &Failure| {
        let what = failure.what.clone();
        let (case, what) = reduce::reduce(failure.relation, &failure.case, what);
        Failure {
            case,
            what,
            ..failure.clone()
        }
    };
    let all: Vec<Failure> = chosen.par_iter().map(smallest).collect();
    let mut kept: Vec<Failure> = Vec::new();
    for failure in all {
        let is_known = |of: &Failure| {
            of.relation.name == failure.relation.name && of.case.keys() == failure.case.keys()
        };
        if !kept.iter().any(is_known) {
            kept.push(failure);
        }
    }
    kept
}
