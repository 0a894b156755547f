//! What a candidate would have measured, once for each that differs.

use std::collections::BTreeMap;

use rayon::prelude::*;
use zonelab_ssd::profile::Profile;

use super::design::Design;
use super::known::Known;
use super::measure::{Measured, OnProfile, Values, run_on, values_of};
use super::parameters::{self, Setting};
use super::probes::Probe;

/// Runs that say by how much a candidate's values differ from run to run.
pub(super) const DRAWS: u32 = 8;

/// Runs between two looks at whether to go on.
const LOOK: usize = 256;

/// Told how many runs of candidates were made; whether to go on. Where not, candidates have no
/// values from there on, and whatever looks for better ones ends soon.
pub(super) type Watch<'a> = &'a dyn Fn(u64) -> bool;

/// Runs probes on candidates, and remembers.
pub(super) struct Predictor<'a> {
    watch: Watch<'a>,
    known: &'a Known,
    probes: &'a [Probe],
    seed: u64,
    /// By the settings that the probe reacts to.
    done: BTreeMap<(usize, String), Option<Values>>,
    /// Standard deviations of single runs, by the same.
    spreads: BTreeMap<(usize, String), Values>,
    /// Runs that were made.
    pub(super) runs: u64,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) design: Design,
    pub(super) at: parameters::Coordinates,
}

impl<'a> Predictor<'a> {
    pub(super) fn new(
        (known, probes): (&'a Known, &'a [Probe]),
        seed: u64,
        watch: Watch<'a>,
    ) -> Self {
        Self {
            watch,
            known,
            probes,
            seed,
            done: BTreeMap::new(),
            spreads: BTreeMap::new(),
            runs: 0,
        }
    }

    pub(super) const fn probes(&self) -> &'a [Probe] {
        self.probes
    }

    /// Values of some probes, each of some candidates; `None`: there is no such drive, or it
    /// cannot run the probe.
    pub(super) fn predict(&mut self, asked: &[(usize, &Candidate)]) -> Vec<Option<Values>> {
        let keyed: Vec<(usize, String, &Candidate)> = asked
            .iter()
            .map(|(probe, candidate)| {
                let settings = parameters::settings(self.known, &candidate.design, &candidate.at);
                (
                    *probe,
                    key(&settings, self.probes[*probe].topic),
                    *candidate,
                )
            })
            .collect();
        let mut missing: BTreeMap<(usize, &str), &Candidate> = BTreeMap::new();
        for (probe, key, candidate) in &keyed {
            if !self.done.contains_key(&(*probe, key.clone())) {
                missing.insert((*probe, key), candidate);
            }
        }
        let missing: Vec<((usize, &str), &Candidate)> = missing.into_iter().collect();
        let (known, probes, seed) = (self.known, self.probes, self.seed);
        for missing in missing.chunks(LOOK) {
            if !(self.watch)(self.runs) {
                break;
            }
            self.runs += missing.len() as u64;
            let new: Vec<_> = missing
                .par_iter()
                .with_max_len(1)
                .map(|((probe, key), candidate)| {
                    let values = run(known, &probes[*probe], candidate, seed);
                    ((*probe, (*key).to_owned()), values)
                })
                .collect();
            self.done.extend(new);
        }
        let found = keyed.into_iter().map(|(probe, key, _)| {
            let found = self.done.get(&(probe, key));
            found.cloned().flatten()
        });
        found.collect()
    }

    /// By how much values of these probes differ from run to run on a candidate: standard
    /// deviations of the logarithms, from [`DRAWS`] runs with a seed of their own each; `None`
    /// where there is no value.
    pub(super) fn spreads(&mut self, asked: &[usize], candidate: &Candidate) -> Vec<Values> {
        let settings = parameters::settings(self.known, &candidate.design, &candidate.at);
        let keys = asked.iter();
        let keys: Vec<(usize, String)> = keys
            .map(|probe| (*probe, key(&settings, self.probes[*probe].topic)))
            .collect();
        let missing = keys.iter().filter(|key| !self.spreads.contains_key(key));
        let mut missing: Vec<&(usize, String)> = missing.collect();
        if !(self.watch)(self.runs) {
            missing.clear();
        }
        let (known, probes, seed) = (self.known, self.probes, self.seed);
        let new: Vec<_> = missing
            .par_iter()
            .with_max_len(1)
            .map(|key| {
                let runs = (1..=u64::from(DRAWS)).map(|draw| {
                    let seed = seed ^ (draw << 32);
                    run(known, &probes[key.0], candidate, seed).unwrap_or_default()
                });
                let measured = Measured {
                    probe: String::new(),
                    repeats: runs.collect(),
                };
                let metrics = 0..probes[key.0].metrics.len();
                let spreads = metrics.map(|metric| measured.of(metric).map(|(_, spread)| spread));
                ((*key).clone(), spreads.collect::<Values>())
            })
            .collect();
        self.runs += new.len() as u64 * u64::from(DRAWS);
        self.spreads.extend(new);
        let found = keys.iter().map(|key| self.spreads.get(key));
        found
            .map(|found| found.cloned().unwrap_or_default())
            .collect()
    }
}

/// What a candidate measures with a probe; `None`: there is no such drive, or it cannot run it.
fn run(known: &Known, probe: &Probe, candidate: &Candidate, seed: u64) -> Option<Values> {
    let text = parameters::profile_text(known, &candidate.design, &candidate.at, "fit");
    let profile = Profile::parse("fit", &text, &[]).ok()?;
    let result = run_on(&OnProfile(profile), &probe.point, seed).ok()?;
    Some(values_of(probe, &result))
}

/// The settings that probes of a topic react to.
fn key(settings: &[Setting], topic: u8) -> String {
    let seen = settings.iter().filter(|one| one.topics & topic != 0);
    let words: Vec<String> = seen
        .map(|one| format!("{}={}", one.key, one.value))
        .collect();
    words.join("\n")
}
