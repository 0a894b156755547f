//! Drives drawn at random, and how well a fit that knows nothing of them recovers them.

use serde::Serialize;
use zonelab_device::NamespaceId;
use zonelab_host::rng::Rng;
use zonelab_ssd::profile::Profile;

use super::design::{Design, FACTORS};
use super::fitting::{Fit, FitError, Settings, candidate_seed, fit};
use super::found::Known as KnownShare;
use super::known::Known;
use super::measure::{OnProfile, Store, run_on};
use super::parameters::{self, Coordinates, PARAMETERS, free};
use super::predict::{Candidate, Predictor};
use super::probes::{Probe, probes};
use super::solve::{improve, judge, targets};
use crate::characterize::{Effort, Facts, Job, Reach, range, series};
use zonelab_lab::run;

/// What a drive is drawn from: the least and greatest value of each number.
const DRAWN: &[(&str, u64, u64)] = &[
    ("media.read", 20_000, 100_000),
    ("media.program", 150_000, 1_200_000),
    ("media.erase", 1_000_000, 8_000_000),
    ("media.transfer", 4_000, 40_000),
    ("front_end.link", 1_000_000_000, 7_000_000_000),
    ("front_end.read", 800, 6_000),
    ("front_end.write", 1_000, 10_000),
    ("front_end.append", 1_500, 15_000),
    ("front_end.management", 2_000, 50_000),
    ("front_end.latency.read", 0, 8_000),
    ("front_end.latency.write", 0, 8_000),
    ("front_end.latency.append", 0, 8_000),
    ("write_buffer.size", 512 << 10, 24 << 20),
    ("finish.pause", 0, 200_000),
    ("reset.bookkeeping.base", 0, 400_000),
    ("reset.bookkeeping.full_zone", 0, 2_000_000),
    ("media.program_variation", 0, 50_000),
    ("front_end.costs.variation", 0, 50_000),
];

/// A drive that was drawn.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Its mechanisms.
    pub design: Design,
    /// Its numbers.
    pub(super) at: Coordinates,
    /// The drive.
    pub profile: Profile,
    /// Its file.
    pub text: String,
}

/// Draws the drive of a seed, mechanisms and numbers.
///
/// # Panics
/// A drive that is drawn is one that there can be.
#[must_use]
pub fn draw(seed: u64) -> Truth {
    let mut rng = Rng::new(seed, 0xf17);
    loop {
        let design = Design(
            FACTORS
                .iter()
                .map(|factor| u8::try_from(rng.below(factor.choices.len() as u64)).unwrap_or(0))
                .collect(),
        );
        let values: Vec<u64> = PARAMETERS
            .iter()
            .map(|one| {
                let (_, low, high) = DRAWN
                    .iter()
                    .find(|(key, ..)| *key == one.key)
                    .unwrap_or(&("", 1, 2));
                let (low, high) = (one.coordinate(*low), one.coordinate(*high));
                one.value(low + (high - low) * rng.unit())
            })
            .collect();
        let at = parameters::coordinates(&values);
        let zone_mib = [8_u64, 16, 32][rng.below(3) as usize];
        let facts = Facts {
            model: "drawn".to_owned(),
            reach: Reach::Virtual,
            zones: 32,
            zone_capacity_lbas: zone_mib << 8,
            lba_bytes: 4096,
            open_zones: 14,
            depth: 128,
            max_write_bytes: 256 << 10,
            max_append_bytes: 128 << 10,
            cores: None,
        };
        let known = Known {
            facts,
            zone_size_lbas: zone_mib << 8,
            max_active: Some(14),
            max_open: Some(14),
            max_transfer_bytes: Some(256 << 10),
            max_append_bytes: Some(128 << 10),
            read_across_zones: false,
        };
        let settings = parameters::settings(&known, &design, &at);
        let text = parameters::written("drawn", &settings);
        // A buffer smaller than a page on every die is refused, and so on: another, then.
        if let Ok(profile) = Profile::parse("drawn", &text, &[]) {
            return Truth {
                design,
                at,
                profile,
                text,
            };
        }
    }
}

/// How well a drive was recovered.
#[derive(Clone, Debug, Serialize)]
pub struct Recovered {
    /// The seed of the drive.
    pub seed: u64,
    /// Of each number that the drive has: key, truth, interval, whether it is determined.
    pub numbers: Vec<Checked>,
    /// Mechanisms that are not what the drive has, nor have it among their rivals.
    pub wrong: Vec<String>,
    /// Mechanisms that have the truth among their rivals only.
    pub undecided: Vec<String>,
    /// Predictions of workloads that no probe is: name, measured, ours.
    pub predictions: Vec<(String, f64, f64)>,
    /// Probes that were run.
    pub probes: usize,
    /// Runs of candidates.
    pub runs: u64,
    /// See [`Fit::misfit`].
    pub misfit: f64,
    /// By how much the criterion is for the drive as it is, and against what was found. Above 0,
    /// the search did not come to the truth; below, what was measured speaks against it.
    pub missed_by: f64,
}

/// A number beside the truth.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Its key.
    pub key: &'static str,
    /// What the drive has.
    pub truth: u64,
    /// What the fit found; `None`: it found a design without it.
    pub value: Option<u64>,
    /// The interval; all values, if the fit has none.
    pub interval: Option<(u64, u64)>,
    /// Whether the fit says that it is determined.
    pub is_determined: bool,
    /// Whether the truth is in the interval, to the rounding of both.
    pub is_inside: bool,
}

/// Fits a profile to the drive of a seed, seen only through its queue, and compares.
///
/// # Errors
/// A probe failed.
pub fn recover(seed: u64, (effort, repeats): (Effort, u32)) -> Result<(Recovered, Fit), FitError> {
    let truth = draw(seed);
    let info = zonelab_ssd::Drive::info_of(&truth.profile.config);
    let failed = |what: String| FitError::Subject {
        probe: String::new(),
        what,
    };
    let known = Known::of(&info, NamespaceId::FIRST, Reach::Virtual, None)
        .map_err(|error| failed(error.to_string()))?;
    let library = probes(&known, effort).map_err(|error| failed(error.to_string()))?;
    let mut subject = OnProfile(truth.profile.clone());
    let settings = Settings {
        seed: seed.wrapping_add(1),
        repeats,
        most_probes: library.len(),
    };
    let mut store = Store::default();
    let of = (&known, library.as_slice());
    let fit = fit(of, (&mut subject, &mut store), settings, &|_| (), &|| false)?;
    let numbers = checked(&truth, &fit);
    let (mut wrong, mut undecided) = (Vec::new(), Vec::new());
    for (factor, found) in fit.mechanisms.iter().enumerate() {
        let true_one = truth.design.choice(factor).0;
        if found.choice != true_one {
            let says = format!("{}: {} for {true_one}", found.name, found.choice);
            match found.rivals.contains(&true_one) {
                true => undecided.push(says),
                false => wrong.push(says),
            }
        }
    }
    let missed_by = missed_by((&known, &library), &truth, (&fit, &store), settings.seed);
    let predictions = predictions(&known, &truth, &fit, seed);
    Ok((
        Recovered {
            seed,
            numbers,
            wrong,
            undecided,
            predictions,
            probes: fit.asked.len(),
            runs: fit.runs,
            misfit: fit.misfit,
            missed_by,
        },
        fit,
    ))
}

/// [`Recovered::missed_by`]: both are fitted once more to all that was measured.
fn missed_by(
    (known, library): (&Known, &[Probe]),
    truth: &Truth,
    (fit, store): (&Fit, &Store),
    seed: u64,
) -> f64 {
    let asked = fit.asked.iter().filter_map(|id| {
        let probe = library.iter().position(|probe| probe.id == *id)?;
        Some((probe, store.get(id)?.clone()))
    });
    let asked: Vec<_> = asked.collect();
    let mut predictor = Predictor::new((known, library), candidate_seed(seed), &|_| true);
    let found = Candidate {
        design: fit.design.clone(),
        at: fit.at.clone(),
    };
    let probes: Vec<usize> = asked.iter().map(|(probe, _)| *probe).collect();
    let spreads = predictor.spreads(&probes, &found);
    let targets = targets(library, &asked, &spreads);
    let mut criterion = |design: &Design, at: &[f64]| {
        let candidate = Candidate {
            design: design.clone(),
            at: at.to_vec(),
        };
        let judged = judge(&mut predictor, &targets, vec![candidate]);
        let keys = free(design);
        let fitted = judged
            .into_iter()
            .map(|here| improve(&mut predictor, &targets, here, (&keys, 4)));
        fitted.map(|one| one.criterion()).sum::<f64>()
    };
    criterion(&fit.design, &fit.at) - criterion(&truth.design, &truth.at)
}

fn checked(truth: &Truth, fit: &Fit) -> Vec<Checked> {
    let values = parameters::values(&truth.at);
    let one = |index: usize| {
        let declared = &PARAMETERS[index];
        let value = values[index];
        let found = fit.numbers.iter().find(|found| found.key == declared.key);
        let interval = found.map(|found| found.interval);
        Checked {
            key: declared.key,
            truth: value,
            value: found.map(|found| found.value),
            interval,
            is_determined: found.is_some_and(|found| found.known == KnownShare::Determined),
            is_inside: interval.is_some_and(|(low, high)| (low..=high).contains(&value)),
        }
    };
    free(&truth.design).into_iter().map(one).collect()
}

/// Workloads that no probe is: name, jobs, zones that are full before.
fn unseen() -> Vec<(&'static str, Vec<Job>, u32)> {
    let job =
        |work: &str, zones: &str, block: &str| Job::new(work, work, zones).text("block", block);
    let timed = |job: Job| job.text("runtime", "20ms").plain("ends_run", true);
    let beside = |block: &str| job("write", "8..=9", block).plain("repeat", true);
    vec![
        (
            "reads of 24 KiB, 6 in flight",
            vec![timed(job("read", "0..=3", "24KiB").plain("queue_depth", 6))],
            4,
        ),
        (
            "reads of 4 KiB, 48 in flight",
            vec![timed(job("read", "0..=3", "4KiB").plain("queue_depth", 48))],
            4,
        ),
        (
            "sequential reads of 96 KiB",
            vec![timed(job("read", "0..=3", "96KiB").plain("random", false))],
            4,
        ),
        (
            "writes of 24 KiB in 3 zones",
            vec![
                job("write", "0..=2", "24KiB")
                    .plain("threads", 3)
                    .plain("operations", 600),
            ],
            0,
        ),
        (
            "writes of 96 KiB",
            vec![job("write", "0..=7", "96KiB").plain("operations", 300)],
            0,
        ),
        (
            "writes of 12 KiB in 6 zones",
            vec![
                job("write", "0..=5", "12KiB")
                    .plain("threads", 6)
                    .plain("operations", 900),
            ],
            0,
        ),
        (
            "appends of 8 KiB, 3 in flight",
            vec![
                job("append", "0..=3", "8KiB")
                    .plain("queue_depth", 3)
                    .plain("operations", 600),
            ],
            0,
        ),
        (
            "appends of 32 KiB, 6 in flight",
            vec![
                job("append", "0..=7", "32KiB")
                    .plain("queue_depth", 6)
                    .plain("operations", 400),
            ],
            0,
        ),
        (
            "reads of 8 KiB beside writes of 32 KiB",
            vec![
                timed(job("read", "0..=3", "8KiB").plain("queue_depth", 4)),
                beside("32KiB"),
            ],
            4,
        ),
        (
            "resets of a third",
            vec![
                Job::new("reset", "reset", "0..=3")
                    .text("fill", "33%")
                    .text("settle", "2s"),
            ],
            0,
        ),
        (
            "finishes of two thirds",
            vec![
                Job::new("finish", "finish", "0..=3")
                    .text("fill", "66%")
                    .text("settle", "2s"),
            ],
            0,
        ),
    ]
}

/// What the drive does under workloads that it was not fitted to, and what the profile says.
fn predictions(known: &Known, truth: &Truth, fit: &Fit, seed: u64) -> Vec<(String, f64, f64)> {
    let text = parameters::profile_text(known, &fit.design, &fit.at, "fitted");
    let Ok(ours) = Profile::parse("fitted", &text, &[]) else {
        return Vec::new();
    };
    let (ours, theirs) = (OnProfile(ours), OnProfile(truth.profile.clone()));
    let mut all = Vec::new();
    for (name, jobs, full) in unseen() {
        let full = match full {
            0 => String::new(),
            zones => format!("full_zones = \"{}\"\n", range(0, zones)),
        };
        let works: Vec<&str> = match jobs.len() {
            1 => vec![name],
            _ => vec![name, "write"],
        };
        let mut texts: Vec<String> = jobs.into_iter().map(|job| job.0).collect();
        if let Some(first) = texts.first_mut() {
            let end = first
                .find('\n')
                .and_then(|at| Some(at + 1 + first[at + 1..].find('\n')?));
            first.replace_range(..end.unwrap_or(0), &format!("[[job]]\nname = \"{name}\""));
        }
        let text = format!(
            "schema = 1\nid = \"unseen\"\ntitle = \"{name}\"\nprofile = \"confznspp\"\n[host]\n\
             submit = \"0us\"\ncomplete = \"0us\"\n{}\n{}",
            texts.join("\n"),
            series(name, &works, &full)
        );
        let point = run::points("unseen.toml", &text, &[])
            .ok()
            .and_then(|mut points| points.pop());
        let Some(point) = point else { continue };
        let value = |drive: &OnProfile, seed| {
            let result = run_on(drive, &point, seed).ok()?;
            let job = result.jobs.iter().find(|job| job.name == name)?;
            job.metrics.get("lat_mean_us")
        };
        if let (Some(measured), Some(ours)) = (value(&theirs, seed ^ 7), value(&ours, seed ^ 11)) {
            all.push((name.to_owned(), measured, ours));
        }
    }
    all
}

/// What many recoveries come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Totals {
    /// Drives.
    pub drives: usize,
    /// Share of numbers whose interval has the truth.
    pub inside: f64,
    /// The same of those that are said to be determined.
    pub determined_inside: f64,
    /// Share of numbers that are said to be determined.
    pub determined: f64,
    /// Share of mechanisms that are found, or not told apart from what was found.
    pub mechanisms: f64,
    /// Median error of predictions, as a share.
    pub prediction_median: f64,
    /// The error that nine of ten predictions do not exceed.
    pub prediction_p90: f64,
}

impl Totals {
    /// Of recoveries.
    #[must_use]
    pub fn of(all: &[Recovered]) -> Self {
        let numbers: Vec<&Checked> = all.iter().flat_map(|one| &one.numbers).collect();
        let determined: Vec<&&Checked> = numbers.iter().filter(|one| one.is_determined).collect();
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        let predictions = all.iter().flat_map(|one| &one.predictions);
        let error = |(_, measured, ours): &(String, f64, f64)| (ours / measured - 1.0).abs();
        let mut errors: Vec<f64> = predictions.map(error).collect();
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let index = (errors.len() as f64 * share) as usize;
            errors.get(index).copied().unwrap_or(f64::NAN)
        };
        let wrong: usize = all.iter().map(|one| one.wrong.len()).sum();
        let inside = numbers.iter().filter(|one| one.is_inside).count();
        let inside_determined = determined.iter().filter(|one| one.is_inside).count();
        Self {
            drives: all.len(),
            inside: share(inside, numbers.len()),
            determined_inside: share(inside_determined, determined.len()),
            determined: share(determined.len(), numbers.len()),
            mechanisms: 1.0 - share(wrong, all.len() * FACTORS.len()),
            prediction_median: at(0.5),
            prediction_p90: at(0.9),
        }
    }
}
