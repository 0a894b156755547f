//! Every result that is to be reproduced is built, or says what is missing.

use std::collections::{BTreeMap, BTreeSet};

use zonelab_lab::catalogue::{self, PublishedResult};
use zonelab_lab::experiment::Experiment;
use zonelab_lab::library;
use zonelab_lab::rows::Misfits;

/// Ids in the order of the tables of what is to be reproduced. (The list of results
/// is data that a reader edits; this copy keeps a line from being dropped there.)
const LINES: [&str; 59] = [
    "C1", "C2a", "C2b", "C3a", "C3b", "C4", "C5", "CM", "C7a", "C7b", "C7c", "C8", "C8g", "C9a",
    "C9b", "C10a", "C10b", "C11a", "C11b", "C12", "Z1", "Z2", "Z3", "Z4", "Z5", "Z6", "Z7", "Z8",
    "Z9", "Z10a", "Z10b", "Z11", "Z12", "Z13", "P2", "P6", "P7", "P8", "P9", "P9b", "P10", "P11",
    "S3a", "S1", "S3b", "S3c", "S3d", "S4a", "S4b", "S4c", "S4d", "V1", "V2", "V4", "V5", "V6-8",
    "V9", "V10", "Vg",
];

fn results() -> Vec<PublishedResult> {
    catalogue::results().expect("the list is sound")
}

fn experiments() -> impl Iterator<Item = Experiment> {
    library::ids().map(|id| {
        let text = library::text(id).expect("it is built in");
        Experiment::parse(&format!("{id}.toml"), text, &[], None).expect("it is sound")
    })
}

/// The ids that rows and statements of each experiment have.
fn rows() -> BTreeMap<String, BTreeSet<String>> {
    let mut rows = BTreeMap::new();
    for experiment in experiments() {
        let own = || experiment.id.clone();
        let compared = experiment.compare.iter();
        let compared = compared.map(|compare| compare.id.clone().unwrap_or_else(own));
        let checked = experiment.checks.iter();
        let checked = checked.map(|check| check.id.clone().unwrap_or_else(own));
        let of_itself = !experiment.interference.is_empty()
            || !experiment.worked.is_empty()
            || !experiment.listings.is_empty();
        let ids: BTreeSet<String> = compared.chain(checked).chain(of_itself.then(own)).collect();
        rows.insert(own(), ids);
    }
    rows
}

/// The line that an experiment or a row is part of: the one that it names or, if there
/// is none, the one that it names but for a letter at its end, as on the command line.
fn line_of<'r>(results: &'r [PublishedResult], id: &str) -> Option<&'r PublishedResult> {
    let named = |word: &str| results.iter().find(|line| line.is_named(word));
    let without_letter = id.strip_suffix(|c: char| c.is_ascii_lowercase());
    named(id).or_else(|| named(without_letter?))
}

#[test]
fn every_line_is_there() {
    let results = results();
    let ids: Vec<&str> = results.iter().map(|result| result.id.as_str()).collect();
    assert_eq!(ids, LINES);
}

/// A line has a row or a statement, or says what is missing, and not both.
#[test]
fn every_line_is_built_or_says_what_is_missing() {
    let results = results();
    let mut built: BTreeSet<String> = rows().into_values().flatten().collect();
    built.extend(library::panels().map(|(panel, _)| panel.to_owned()));
    let lines = built.iter().filter_map(|id| line_of(&results, id));
    let built: BTreeSet<&str> = lines.map(|line| line.id.as_str()).collect();
    let mut wrong = Vec::new();
    for line in &results {
        let has_row = built.contains(line.id.as_str());
        match (has_row, &line.not_built) {
            (true, None) | (false, Some(_)) => {}
            (false, None) => wrong.push(format!(
                "{}: neither a row nor a statement, nor `not_built`",
                line.id
            )),
            (true, Some(_)) => wrong.push(format!(
                "{}: has rows or statements, and says `not_built`",
                line.id
            )),
        }
    }
    assert!(wrong.is_empty(), "reference/results.toml: {wrong:#?}");
}

/// What a built result has elsewhere is found by a command and in a section of a document,
/// and the papers' lines that cannot be rows say so. (That the section is there is tested
/// with the documents, `cargo test -p xtask`.)
#[test]
fn what_is_no_row_says_where_it_is() {
    let results = results();
    let has = results.iter().filter(|line| line.elsewhere.is_some());
    let ids: Vec<&str> = has.clone().map(|line| line.id.as_str()).collect();
    assert_eq!(ids, ["C8", "C8g"]);
    for line in has {
        let text = line.elsewhere.as_deref().unwrap_or_default();
        let words = ["`zonelab ", "docs/", ".md#"];
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{}: {text}",
            line.id
        );
        assert_eq!(
            line.not_built, None,
            "{}: rows, and something elsewhere",
            line.id
        );
    }
}

/// What experiments, their rows and statements, and panels are called, is a line.
#[test]
fn every_experiment_is_in_a_line() {
    let results = results();
    let is_known = |id: &str| line_of(&results, id).is_some();
    for (experiment, ids) in rows() {
        assert!(is_known(&experiment), "{experiment} is in no line");
        assert!(!ids.is_empty(), "{experiment} compares with nothing");
        for id in ids {
            assert!(is_known(&id), "{experiment}: {id} is in no line");
        }
    }
    for (panel, of) in library::panels() {
        assert!(is_known(panel), "{panel}, a panel of {of}, is in no line");
    }
}

/// What is not built cannot be chosen.
#[test]
fn what_is_not_built_selects_nothing() {
    for line in results().iter().filter(|line| line.not_built.is_some()) {
        for word in std::iter::once(&line.id).chain(&line.also) {
            assert!(library::select(word).is_empty(), "{word}");
        }
    }
}

/// A cause says why ours is larger than what was published, or smaller. Where a quick run is on
/// the other side than a whole one, it has a cause of its own; nowhere else.
#[test]
fn no_cause_explains_figures_on_both_sides_of_what_was_published() {
    let known = Misfits::parse(library::MISFITS_FILE, library::MISFITS).expect("it is sound");
    let mut checked = 0;
    for experiment in experiments() {
        for check in &experiment.checks {
            let id = check.id.as_ref().unwrap_or(&experiment.id);
            let (Some(gap), Some(published)) = (known.gap(id, &check.says), check.published) else {
                continue;
            };
            checked += 1;
            assert_eq!(
                gap.is_on_both_sides(published),
                gap.quick_cause.is_some(),
                "{id}: {}: {published} published, {:?} and with --quick {:?}",
                gap.says,
                gap.today,
                gap.quick
            );
        }
    }
    assert!(checked > 100, "{checked}");
}
