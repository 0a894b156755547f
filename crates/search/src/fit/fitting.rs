//! Measuring and fitting in turn, until nothing more is learnt.

use std::collections::BTreeSet;

use serde::Serialize;

use super::choose;
use super::design::Design;
use super::design::topic::READ;
use super::designs::{RIVAL, Ranking, UNEXPLAINED, search, settle};
use super::found::{Combination, Findings, Found, Mechanism, findings};
use super::known::Known;
use super::measure::{Measured, Store, StoreError, Subject, Values, measure};
use super::parameters::{self, free};
use super::predict::{Candidate, Predictor};
use super::probes::Probe;
use super::solve::{Fitted, Target, columns, improve, judge, targets};
use super::survey::survey;

/// Probes that are run before the next fit.
const BATCH: usize = 8;
/// A check that is missed by more than so many standard deviations goes into the fit.
const SURPRISE: f64 = 3.0;
/// Checks of each round.
const CHECKS: usize = 4;
/// Rounds of checks.
const CHECK_ROUNDS: u32 = 3;
/// Variance of errors, in those of repeats, up to which a design explains what was measured. A
/// fit that ends above it looks at all geometries once more.
const EXPLAINED: f64 = 1.25;

/// How to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Seed of what is measured; candidates have one that follows from it.
    pub seed: u64,
    /// Runs of each probe.
    pub repeats: u32,
    /// Most probes that are run.
    pub most_probes: usize,
}

/// What a fit is doing.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A probe is measured: which, and how many were before.
    Measuring(&'a str, usize),
    /// Candidates are compared with so many values.
    Fitting(usize),
    /// So many runs of candidates were made.
    Running(u64),
    /// The mean error of the best candidate, as a share.
    Fitted(f64),
}

/// Why a fit ended early.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The drive failed.
    #[error("probe \"{probe}\": {what}")]
    Subject {
        /// The probe.
        probe: String,
        /// What failed.
        what: String,
    },
    /// What was measured cannot be kept.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// It was interrupted; what was measured is kept.
    #[error("interrupted")]
    Interrupted,
}

/// Why no more probes were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// No probe would narrow any interval by a tenth, and checks came out.
    NothingMoreToLearn,
    /// Every probe was run.
    NoMoreProbes,
    /// As many as allowed were run.
    MostProbes,
}

/// What a fit came to.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The mechanisms.
    pub design: Design,
    /// Coordinates of the numbers, as `profile_text` takes them.
    pub at: Vec<f64>,
    /// Numbers with intervals.
    pub numbers: Vec<Found>,
    /// Mechanisms with their rivals.
    pub mechanisms: Vec<Mechanism>,
    /// Combinations that are known where their parts are not.
    pub combinations: Vec<Combination>,
    /// Every value: probe, metric, measured, ours.
    pub values: Vec<Compared>,
    /// Probes that were run, in order.
    pub asked: Vec<String>,
    /// Why it stopped.
    pub stopped: Stopped,
    /// How many times greater errors are than what repeats differ by.
    pub misfit: f64,
    /// Runs of candidates.
    pub runs: u64,
}

/// A value that was measured, beside that of the profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The probe.
    pub probe: String,
    /// The metric.
    pub metric: &'static str,
    /// What was measured.
    pub measured: f64,
    /// What the profile gives; `None`: nothing.
    pub ours: Option<f64>,
}

/// The state of a fit.
struct Fitting<'a, 'b> {
    predictor: Predictor<'a>,
    subject: &'b mut dyn Subject,
    store: &'b mut Store,
    settings: Settings,
    measured: Vec<(usize, Measured)>,
    /// By how much the values of each of them differ from run to run, on the best candidate.
    spreads: Vec<Values>,
    /// Designs that are out of the question.
    out: BTreeSet<Design>,
    on_progress: &'b dyn Fn(&Progress<'_>),
    interrupted: &'b dyn Fn() -> bool,
}

/// The seed of candidates. They draw other addresses than the drive: what is the same by chance
/// counts not.
pub(super) const fn candidate_seed(seed: u64) -> u64 {
    seed ^ 0x5eed_f17d
}

/// Measures a drive and fits a profile to it.
///
/// # Errors
/// The drive failed, what was measured cannot be kept, or the work was interrupted.
pub fn fit(
    (known, probes): (&Known, &[Probe]),
    (subject, store): (&mut dyn Subject, &mut Store),
    settings: Settings,
    on_progress: &dyn Fn(&Progress<'_>),
    interrupted: &dyn Fn() -> bool,
) -> Result<Fit, FitError> {
    let watch = |runs| {
        on_progress(&Progress::Running(runs));
        !interrupted()
    };
    let mut fitting = Fitting {
        predictor: Predictor::new((known, probes), candidate_seed(settings.seed), &watch),
        subject,
        store,
        settings,
        measured: Vec::new(),
        spreads: Vec::new(),
        out: BTreeSet::new(),
        on_progress,
        interrupted,
    };
    match fitting.run() {
        // Whatever came of it, it was not looked for to the end.
        Ok(_) if interrupted() => Err(FitError::Interrupted),
        ended => ended,
    }
}

impl Fitting<'_, '_> {
    fn run(&mut self) -> Result<Fit, FitError> {
        let probes = self.predictor.probes();
        let first = probes
            .iter()
            .enumerate()
            .filter(|(_, probe)| probe.is_first);
        for (probe, _) in first.take(self.settings.most_probes) {
            self.ask(probe)?;
        }
        let start = Candidate {
            design: Design::start(),
            at: parameters::start(),
        };
        let begins = self.begin(&start)?;
        let ranking = self.first_ranking(begins)?;
        let (ranking, stopped) = self.learn(ranking)?;
        if ranking.best.scale() <= EXPLAINED {
            return Ok(self.finish(&ranking, stopped));
        }
        // What was measured since tells more geometries apart than the first probes did.
        self.out.clear();
        let begins = self.begin(&ranking.best.candidate)?;
        let before = ranking.best.candidate.design.clone();
        let here = self.rank_from(ranking.best.candidate)?;
        let ranking = self.best_of(begins, (here, EXPLAINED))?;
        let (ranking, stopped) = match ranking.best.candidate.design == before {
            true => (ranking, stopped),
            false => self.learn(ranking)?,
        };
        Ok(self.finish(&ranking, stopped))
    }

    /// Measures and fits in turn, until nothing more is learnt.
    fn learn(&mut self, mut ranking: Ranking) -> Result<(Ranking, Stopped), FitError> {
        let probes = self.predictor.probes();
        let mut checks = 0;
        loop {
            let open = self.open();
            if open.is_empty() {
                return Ok((ranking, Stopped::NoMoreProbes));
            }
            let left = self
                .settings
                .most_probes
                .saturating_sub(self.measured.len());
            if left == 0 {
                return Ok((ranking, Stopped::MostProbes));
            }
            let targets = targets(probes, &self.measured, &self.spreads);
            let keys = free(&ranking.best.candidate.design);
            let around = columns(&mut self.predictor, &targets, &ranking.best, &keys);
            let many = BATCH.min(left);
            let next = choose::next(&mut self.predictor, &ranking, (&around, &open), many);
            if !next.is_empty() {
                for (probe, _) in next {
                    self.ask(probe)?;
                }
                ranking = self.rank(ranking.best.candidate)?;
                continue;
            }
            // What it should know already is looked at, too.
            if checks == CHECK_ROUNDS || !self.check(&ranking, &open, left)? {
                return Ok((ranking, Stopped::NothingMoreToLearn));
            }
            ranking = self.rank(ranking.best.candidate)?;
            checks += 1;
        }
    }

    /// Where to begin: the best of all geometries under reads, which nothing else can be
    /// mistaken for. After it come those with the most and the fewest dies that reads cannot tell
    /// from it, and then the others of these.
    ///
    /// How much values differ from run to run is taken from `like`.
    fn begin(&mut self, like: &Candidate) -> Result<Vec<Candidate>, FitError> {
        let probes = self.predictor.probes();
        self.spread(like);
        let mut targets = targets(probes, &self.measured, &self.spreads);
        targets.retain(|target| probes[target.probe].topic == READ);
        (self.on_progress)(&Progress::Fitting(targets.len()));
        let mut found = survey(&mut self.predictor, &targets);
        if (self.interrupted)() {
            return Err(FitError::Interrupted);
        }
        let least = found.first().map_or(0.0, Fitted::criterion);
        found.retain(|one| one.criterion() < least + RIVAL);
        let dies = |one: &&Fitted| one.candidate.design.dies();
        let best_and_ends = [
            found.first(),
            found.iter().max_by_key(dies),
            found.iter().min_by_key(dies),
        ];
        let mut begins: Vec<Candidate> = Vec::new();
        for one in best_and_ends.into_iter().flatten().chain(&found) {
            let one = &one.candidate;
            if !begins.iter().any(|other| other.design == one.design) {
                begins.push(one.clone());
            }
        }
        Ok(begins)
    }

    /// The best design for all that was measured, from the first of `begins`; from the others as
    /// well, as long as what comes of it does not explain what was measured.
    fn first_ranking(&mut self, begins: Vec<Candidate>) -> Result<Ranking, FitError> {
        let mut begins = begins.into_iter();
        let first = begins.next().unwrap_or_else(|| Candidate {
            design: Design::start(),
            at: parameters::start(),
        });
        let best = self.rank(first)?;
        self.best_of(begins, (best, UNEXPLAINED))
    }

    /// The best of a ranking and of those from `begins`, which are looked at until the variance
    /// of errors is not above `enough`.
    fn best_of(
        &mut self,
        begins: impl IntoIterator<Item = Candidate>,
        (mut best, enough): (Ranking, f64),
    ) -> Result<Ranking, FitError> {
        for begin in begins {
            if best.best.scale() <= enough {
                break;
            }
            let other = self.rank_from(begin)?;
            if other.best.criterion() < best.best.criterion() {
                best = other;
            }
        }
        Ok(best)
    }

    fn open(&self) -> Vec<usize> {
        let is_open = |probe: &usize| !self.measured.iter().any(|(asked, _)| asked == probe);
        (0..self.predictor.probes().len()).filter(is_open).collect()
    }

    fn ask(&mut self, probe: usize) -> Result<(), FitError> {
        if (self.interrupted)() {
            return Err(FitError::Interrupted);
        }
        let of = &self.predictor.probes()[probe];
        if let Some(known) = self.store.get(&of.id) {
            self.measured.push((probe, known.clone()));
            return Ok(());
        }
        (self.on_progress)(&Progress::Measuring(&of.id, self.measured.len()));
        let how = (self.settings.seed, self.settings.repeats);
        let measured = measure(self.subject, of, how);
        if (self.interrupted)() {
            return Err(FitError::Interrupted);
        }
        let measured = measured.map_err(|what| FitError::Subject {
            probe: of.id.clone(),
            what,
        })?;
        self.store.keep(measured.clone())?;
        self.measured.push((probe, measured));
        Ok(())
    }

    fn rank(&mut self, begin: Candidate) -> Result<Ranking, FitError> {
        self.spread(&begin);
        self.rank_from(begin)
    }

    /// The same, with what values are known to differ by already.
    fn rank_from(&mut self, begin: Candidate) -> Result<Ranking, FitError> {
        let targets = targets(self.predictor.probes(), &self.measured, &self.spreads);
        (self.on_progress)(&Progress::Fitting(targets.len()));
        let ranking = search(&mut self.predictor, &targets, begin, &mut self.out);
        if (self.interrupted)() {
            return Err(FitError::Interrupted);
        }
        let errors = ranking.best.counted().zip(&targets);
        let shares: f64 = errors.map(|(error, of)| (error * of.sigma).abs()).sum();
        (self.on_progress)(&Progress::Fitted(shares / targets.len().max(1) as f64));
        Ok(ranking)
    }

    /// Takes how much values differ from run to run from this candidate.
    fn spread(&mut self, candidate: &Candidate) {
        let asked: Vec<usize> = self.measured.iter().map(|(probe, _)| *probe).collect();
        self.spreads = self.predictor.spreads(&asked, candidate);
    }

    /// Runs some probes that should say nothing new, spread over the library; whether one of
    /// them did.
    fn check(&mut self, ranking: &Ranking, open: &[usize], left: usize) -> Result<bool, FitError> {
        let many = CHECKS.min(left).min(open.len()).max(1);
        let before = self.measured.len();
        for n in 0..many {
            self.ask(open[n * open.len() / many])?;
        }
        let new = self.measured[before..].to_vec();
        let asked: Vec<usize> = new.iter().map(|(probe, _)| *probe).collect();
        let spreads = self.predictor.spreads(&asked, &ranking.best.candidate);
        let targets = targets(self.predictor.probes(), &new, &spreads);
        let candidates = vec![ranking.best.candidate.clone()];
        let judged = judge(&mut self.predictor, &targets, candidates);
        let errors = judged.iter().flat_map(Fitted::counted);
        Ok(errors.into_iter().any(|error| error.abs() > SURPRISE))
    }

    fn finish(&mut self, ranking: &Ranking, stopped: Stopped) -> Fit {
        let probes = self.predictor.probes();
        self.spread(&ranking.best.candidate);
        let targets = targets(probes, &self.measured, &self.spreads);
        // Probes of a last check count too.
        let ranking = Ranking {
            rivals: ranking
                .rivals
                .iter()
                .map(|one| self.again(&targets, one))
                .collect(),
            best: self.again(&targets, &ranking.best),
        };
        let ranking = settle(&mut self.predictor, &targets, ranking);
        let (found, best) = findings(&mut self.predictor, &targets, &ranking);
        let Findings {
            numbers,
            mechanisms,
            combinations,
        } = found;
        let values = targets.iter().zip(&best.errors).map(|(target, error)| {
            let ours = error.map(|error| libm::exp(target.log + error * target.sigma));
            let probe = &probes[target.probe];
            Compared {
                probe: probe.id.clone(),
                metric: probe.metrics[target.metric],
                measured: zonelab_lab::rows::significant(libm::exp(target.log)),
                ours: ours.map(zonelab_lab::rows::significant),
            }
        });
        let asked = self
            .measured
            .iter()
            .map(|(probe, _)| probes[*probe].id.clone());
        Fit {
            design: best.candidate.design.clone(),
            at: best.candidate.at.clone(),
            numbers,
            mechanisms,
            combinations,
            values: values.collect(),
            asked: asked.collect(),
            stopped,
            misfit: best.scale().sqrt(),
            runs: self.predictor.runs,
        }
    }

    fn again(&mut self, targets: &[Target], one: &Fitted) -> Fitted {
        let judged = judge(&mut self.predictor, targets, vec![one.candidate.clone()]);
        let here = judged.into_iter().next().unwrap_or_else(|| one.clone());
        let keys = free(&here.candidate.design);
        improve(&mut self.predictor, targets, here, (&keys, 4))
    }
}
