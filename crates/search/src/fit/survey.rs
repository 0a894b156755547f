//! Every design that reads can tell apart, before anything else is looked at.
//!
//! There are some hundred of them, and few probes. A search that changes one thing after another
//! can end at a geometry that nothing next to it betters; here each has its chance, and most of
//! them lose it soon.

use super::design::topic::READ;
use super::design::{CHANNELS, CORES, Design, FACTORS, PAGE, PARTIAL, WAYS};
use super::designs::carried_over;
use super::parameters::{PARAMETERS, free, start};
use super::predict::{Candidate, Predictor};
use super::solve::{Fitted, Target, improve, judge};

/// What reads see.
const READS: [usize; 5] = [CHANNELS, WAYS, PAGE, PARTIAL, CORES];
/// How many geometries go on after each round, and how many steps each of them is then given.
const GEOMETRIES: [(usize, u32); 4] = [(usize::MAX, 1), (64, 1), (32, 2), (12, 2)];
/// Steps of each geometry with every count of cores.
const CORES_STEPS: u32 = 2;
/// Geometries that are left at last, and their steps with the count of cores that fits best.
const LAST: [(usize, u32); 1] = [(8, 8)];

/// Designs that differ in what reads see, fitted to `targets`, of probes that read: the best of
/// all geometries, each once, best first.
pub(super) fn survey(predictor: &mut Predictor<'_>, targets: &[Target]) -> Vec<Fitted> {
    let start = Candidate {
        design: Design::start(),
        at: start(),
    };
    let geometries = READS.into_iter().filter(|factor| *factor != CORES);
    let mut designs = combined(vec![Design::start()], geometries);
    // No part of a page is read where a page is a block.
    designs.retain(|design| design.number(PAGE) > 4 || design.0[PARTIAL] == 0);
    let candidates = designs.into_iter().map(|design| carried(&start, design));
    let geometries = judge(predictor, targets, candidates.collect());
    let geometries = rounds(predictor, targets, geometries, &GEOMETRIES);
    // With other cores the same geometries act much alike.
    let mut all = Vec::new();
    for one in geometries {
        let designs = combined(vec![one.candidate.design.clone()], [CORES].into_iter());
        let others = designs
            .into_iter()
            .map(|design| carried(&one.candidate, design));
        let others = judge(predictor, targets, others.collect());
        let of_cores = rounds(predictor, targets, others, &[(usize::MAX, CORES_STEPS)]);
        all.extend(of_cores.into_iter().next());
    }
    rounds(predictor, targets, all, &LAST)
}

/// The same candidate with another design.
fn carried(here: &Candidate, design: Design) -> Candidate {
    Candidate {
        at: carried_over(here, &design).unwrap_or_else(|| here.at.clone()),
        design,
    }
}

/// The best after these rounds, best first.
fn rounds(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    mut all: Vec<Fitted>,
    rounds: &[(usize, u32)],
) -> Vec<Fitted> {
    for (many, steps) in rounds {
        all.sort_by(|a, b| a.criterion().total_cmp(&b.criterion()));
        all.truncate(*many);
        let stepped = all.into_iter().map(|one| {
            let mut keys = free(&one.candidate.design);
            keys.retain(|key| PARAMETERS[*key].topics & READ != 0);
            improve(predictor, targets, one, (&keys, *steps))
        });
        all = stepped.collect();
    }
    all.sort_by(|a, b| a.criterion().total_cmp(&b.criterion()));
    all
}

/// Every combination of the alternatives of these factors with what `all` have else.
fn combined(mut all: Vec<Design>, factors: impl Iterator<Item = usize>) -> Vec<Design> {
    for factor in factors {
        let with = |design: &Design| -> Vec<Design> {
            let choices = 0..FACTORS[factor].choices.len();
            let choices = choices.filter_map(|choice| u8::try_from(choice).ok());
            let with = choices.map(|choice| design.with(factor, choice));
            with.collect()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}
