//! Which design a drive has, and which others cannot be told apart from it.

use std::collections::{BTreeMap, BTreeSet};

use super::design::topic::READ;
use super::design::{CHANNELS, CORES, Design, PAGE, ROWS, WAYS};
use super::parameters::{
    ERASE, MEDIA_READ, PARAMETERS, PROGRAM, TRANSFER, coordinates, cores_and_rests, free, values,
};
use super::predict::{Candidate, Predictor};
use super::solve::{Columns, Fitted, Target, columns, improve, judge, step};

/// A design is another one's rival if the criterion says no more than this for it.
pub(super) const RIVAL: f64 = 6.0;
/// A design is out of the question from so much on.
const OUT: f64 = 60.0;
/// A design is better than another if the criterion says at least this for it.
const CLEARLY: f64 = 0.5;
/// Variance of errors, in those of repeats, from which on a design does not explain them, and
/// two changes of it are tried at once.
pub(super) const UNEXPLAINED: f64 = 4.0;
/// Designs that are looked at in each round after a first step, of those which the same probes
/// would see.
const MORE_THAN_ONCE: usize = 10;
/// Designs that are looked at closely in each round, of the same.
const CLOSELY: usize = 3;
/// Rounds of changes of a design.
const ROUNDS: u32 = 12;
/// The same in the end, when all are fitted.
const ROUNDS_LAST: u32 = 3;

/// The best design, and those that cannot be told apart from it.
#[derive(Clone, Debug)]
pub(super) struct Ranking {
    pub(super) best: Fitted,
    pub(super) rivals: Vec<Fitted>,
}

/// Looks for a better design, one change after another, until none is better.
pub(super) fn search(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    begin: Candidate,
    out: &mut BTreeSet<Design>,
) -> Ranking {
    let mut judged = judge(predictor, targets, vec![begin]);
    let Some(first) = judged.pop() else {
        unreachable!("one candidate was judged");
    };
    let keys = free(&first.candidate.design);
    let mut best = improve(predictor, targets, first, (&keys, 12));
    let mut seen: Vec<Fitted> = Vec::new();
    for _ in 0..ROUNDS {
        let (tried, far) = neighbours(predictor, targets, &best, out);
        let mut better = better_than(&best, &tried);
        if better.is_none() && best.scale() > UNEXPLAINED {
            // Two mechanisms may fit together alone.
            for one in tried.iter().take(CLOSELY) {
                let (further, _) = neighbours(predictor, targets, one, out);
                better = better_than(better.as_ref().unwrap_or(&best), &further).or(better);
                seen.extend(further);
            }
        }
        seen.extend(tried);
        let Some(better) = better else {
            // Beside a design that explains what was measured, they were given their chance.
            if best.scale() <= UNEXPLAINED {
                out.extend(far);
            }
            break;
        };
        let keys = free(&better.candidate.design);
        seen.push(best);
        best = improve(predictor, targets, better, (&keys, 6));
    }
    ranked(best, seen)
}

/// The best of some designs, if the criterion is clearly for it.
fn better_than(best: &Fitted, tried: &[Fitted]) -> Option<Fitted> {
    let least = tried
        .iter()
        .min_by(|a, b| a.criterion().total_cmp(&b.criterion()));
    least
        .filter(|other| other.criterion() < best.criterion() - CLEARLY)
        .cloned()
}

/// The best design beside those of `seen` that are its rivals, each once.
fn ranked(best: Fitted, mut seen: Vec<Fitted>) -> Ranking {
    let bound = best.criterion() + RIVAL;
    seen.retain(|one| one.criterion() < bound && one.candidate.design != best.candidate.design);
    seen.sort_by(|a, b| {
        let designs = (&a.candidate.design, &b.candidate.design);
        let order = designs.0.cmp(designs.1);
        order.then(a.criterion().total_cmp(&b.criterion()))
    });
    seen.dedup_by(|later, first| later.candidate.design == first.candidate.design);
    Ranking { best, rivals: seen }
}

/// Fits every neighbour of the best design that is not out of the question with all its
/// numbers, in the end: what of them is a rival widens intervals, and one that is better after
/// all is the best.
pub(super) fn settle(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    mut ranking: Ranking,
) -> Ranking {
    for _ in 0..ROUNDS_LAST {
        let here = &ranking.best;
        let before = here.candidate.design.clone();
        let keys = free(&before);
        let secants = columns(predictor, targets, here, &keys);
        let others = here.candidate.design.neighbours();
        let mut judged = in_place(predictor, targets, here, others);
        for _ in 0..2 {
            judged = borrowed(predictor, targets, judged, (&keys, &secants));
        }
        let bound = here.criterion() + OUT;
        let mut close: Vec<Fitted> = Vec::new();
        for (one, topics) in judged {
            close.push(match topics & READ {
                0 => by_reacting(predictor, targets, one, topics),
                _ => one,
            });
        }
        close.retain(|one| one.criterion() < bound);
        let mut all: Vec<Fitted> = Vec::new();
        for one in close {
            let keys = free(&one.candidate.design);
            all.push(improve(predictor, targets, one, (&keys, 5)));
        }
        all.append(&mut ranking.rivals);
        all.push(ranking.best);
        all.sort_by(|a, b| a.criterion().total_cmp(&b.criterion()));
        let rest = all.split_off(1);
        let Some(best) = all.pop() else {
            unreachable!("the best was put there");
        };
        let is_same = best.candidate.design == before;
        ranking = ranked(best, rest);
        if is_same {
            break;
        }
    }
    ranking
}

/// The neighbours of a design that come closest to what was measured, and those that are far
/// from it.
fn neighbours(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    here: &Fitted,
    out: &BTreeSet<Design>,
) -> (Vec<Fitted>, Vec<Design>) {
    let keys = free(&here.candidate.design);
    let secants = columns(predictor, targets, here, &keys);
    let mut others = here.candidate.design.neighbours();
    let probes = predictor.probes();
    let asked = targets.iter().map(|of| probes[of.probe].topic);
    let asked = asked.fold(0, |all, topic| all | topic);
    others.retain(|(design, topics)| topics & asked != 0 && !out.contains(design));
    // Two steps on the secants that are there anyway say which are worth more.
    let mut judged = in_place(predictor, targets, here, others);
    let mut far = Vec::new();
    let bound = here.criterion() + OUT;
    for most in [MORE_THAN_ONCE, CLOSELY] {
        judged = borrowed(predictor, targets, judged, (&keys, &secants));
        judged.sort_by(|(a, _), (b, _)| a.criterion().total_cmp(&b.criterion()));
        let mut kept: BTreeMap<u8, usize> = BTreeMap::new();
        let (closer, dropped): (Vec<_>, Vec<_>) = judged.into_iter().partition(|(_, topics)| {
            let kept = kept.entry(*topics).or_default();
            *kept += 1;
            // Few probes say what has nothing to do with reads, and so it costs little to fit
            // all of it. A step on the secants of another mechanism could lead anywhere.
            *kept <= most || topics & READ == 0
        });
        judged = closer;
        let dropped = dropped.into_iter().map(|(one, _)| one);
        let dropped = dropped.filter(|one| one.criterion() > bound);
        far.extend(dropped.map(|one| one.candidate.design));
    }
    let mut close = Vec::new();
    for (one, topics) in judged {
        close.push(by_reacting(predictor, targets, one, topics));
    }
    close.sort_by(|a, b| a.criterion().total_cmp(&b.criterion()));
    let is_far = |one: &&Fitted| one.criterion() > bound;
    far.extend(
        close
            .iter()
            .filter(is_far)
            .map(|one| one.candidate.design.clone()),
    );
    (close, far)
}

/// Improves the numbers that have to do with a mechanism that probes of `topics` see. If there
/// are numbers that no other probes see, it is these: nothing else has to be run again.
fn by_reacting(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    one: Fitted,
    topics: u8,
) -> Fitted {
    let free = free(&one.candidate.design);
    let keys = |is_in: fn(u8, u8) -> bool| -> Vec<usize> {
        let keys = free.iter().copied();
        keys.filter(|key| is_in(PARAMETERS[*key].topics, topics))
            .collect()
    };
    let mut reacting = keys(|key, topics| key & !topics == 0);
    if reacting.is_empty() || topics & READ != 0 {
        reacting = keys(|key, topics| key & topics != 0);
    }
    improve(predictor, targets, one, (&reacting, 3))
}

/// The coordinates at which a drive of `other` behaves most as `here` does: all cores together
/// handle as many commands per second, all channels move as many bytes and all dies program as
/// many, a zone is erased in the same time, and a single command takes as long. `None`: they do
/// so at the same coordinates.
///
/// A drive with half of the cores, each twice as fast, behaves so much alike that a search which
/// changes the number of cores alone would find the errors grow, and never arrive at the times
/// that go with that number. With channels, dies and the size of a page it is the same.
pub(super) fn carried_over(here: &Candidate, other: &Design) -> Option<Vec<f64>> {
    let counts = [CHANNELS, WAYS, PAGE, ROWS, CORES];
    let is_same = |factor: usize| other.0[factor] == here.design.0[factor];
    if counts.into_iter().all(is_same) {
        return None;
    }
    let ratio = |factors: &[usize]| {
        let of = |design: &Design| -> f64 {
            let numbers = factors.iter().map(|factor| design.number(*factor) as f64);
            numbers.product()
        };
        of(other) / of(&here.design)
    };
    let cores = ratio(&[CORES]);
    let rows = ratio(&[ROWS]);
    let bytes = [ratio(&[CHANNELS, PAGE]), ratio(&[CHANNELS, WAYS, PAGE])];
    let mut all = values(&here.at);
    let changed = |all: &mut [u64], key: usize, to: f64| {
        let (low, high) = PARAMETERS[key].bounds;
        all[key] = to.clamp(low as f64, high as f64).round() as u64;
    };
    let program = all[PROGRAM] as f64 * bytes[1];
    changed(&mut all, PROGRAM, program);
    // A die erases the blocks of a zone one after another.
    let erase = all[ERASE] as f64 / rows;
    changed(&mut all, ERASE, erase);
    // What a page takes more on a channel, the flash takes less.
    let read_and_transfer = (all[MEDIA_READ] + all[TRANSFER]) as f64;
    let transfer = all[TRANSFER] as f64 * bytes[0];
    changed(&mut all, TRANSFER, transfer);
    let read = read_and_transfer - all[TRANSFER] as f64;
    changed(&mut all, MEDIA_READ, read);
    // What a command takes a core more, it takes less besides.
    for (core, rest) in cores_and_rests() {
        let whole = (all[core] + all[rest]) as f64;
        let time = all[core] as f64 * cores;
        changed(&mut all, core, time);
        let rest_of_it = whole - all[core] as f64;
        changed(&mut all, rest, rest_of_it);
    }
    Some(coordinates(&all))
}

/// Judges other designs: each with the coordinates of `here`, and each that has other counts of
/// something also with the coordinates of [`carried_over`]. Of the two the one that fits
/// better is kept, with the topics that came with the design.
fn in_place(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    here: &Fitted,
    others: Vec<(Design, u8)>,
) -> Vec<(Fitted, u8)> {
    let at = here.candidate.at.clone();
    let as_they_are = others.iter().map(|(design, topics)| {
        let (design, at) = (design.clone(), at.clone());
        (Candidate { design, at }, *topics)
    });
    let carried = others.iter().filter_map(|(design, topics)| {
        let at = carried_over(&here.candidate, design)?;
        let design = design.clone();
        Some((Candidate { design, at }, *topics))
    });
    let (candidates, topics): (Vec<_>, Vec<u8>) = as_they_are.chain(carried).unzip();
    let judged = judge(predictor, targets, candidates);
    let mut all: Vec<(Fitted, u8)> = judged.into_iter().zip(topics).collect();
    all.sort_by(|(a, _), (b, _)| {
        let order = a.candidate.design.cmp(&b.candidate.design);
        order.then(a.loss.total_cmp(&b.loss))
    });
    all.dedup_by(|(later, _), (first, _)| later.candidate.design == first.candidate.design);
    all
}

/// A step of each on the secants of another design, where it is one forward.
fn borrowed(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    judged: Vec<(Fitted, u8)>,
    (keys, secants): (&[usize], &Columns),
) -> Vec<(Fitted, u8)> {
    const DAMPINGS: [f64; 2] = [1e-2, 0.5];
    let mut tries = Vec::new();
    for (one, _) in &judged {
        for damping in DAMPINGS {
            let next = step(one, keys, secants, damping);
            tries.push(next.unwrap_or_else(|| one.candidate.clone()));
        }
    }
    let next = judge(predictor, targets, tries);
    let mut next = next.into_iter();
    let mut after = Vec::new();
    for (one, topics) in judged {
        let best = next.by_ref().take(DAMPINGS.len()).chain([one]);
        let best = best.min_by(|a, b| a.loss.total_cmp(&b.loss));
        after.extend(best.map(|best| (best, topics)));
    }
    after
}
