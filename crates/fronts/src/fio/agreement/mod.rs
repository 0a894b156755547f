//! Whether two devices agree about a job file, metric by metric.
//!
//! Throughput and mean latency agree if they are the same within a tolerance,
//! by default 3 %. Percentiles may differ by that and by what the way to one of
//! the devices adds: what an empty command takes longer there, which is measured
//! before the first job ([`empty_commands`]). In virtual time there is no such way.
//!
//! A verdict takes into account how well a value is known. Throughput and means
//! have intervals of confidence by batch means
//! ([`Confidence`](zonelab_host::stats::Confidence)), percentiles by their
//! ranks, as much wider as the latencies depend on each other. What lies within
//! the tolerance with its whole interval agrees, what lies outside with its whole
//! interval differs, and the rest is not decided: a longer run would tell. Where the way adds
//! so much that more than [`TOLERANCE_MAX`] would be tolerated, nothing can be said.

mod empty;
mod estimate;
mod show;
#[cfg(test)]
mod tests;

use zonelab_host::stats::Latency;
use zonelab_host::workload::directed::Direction;
use zonelab_host::workload::record::DirectionStats;

use super::report::{Entry, Report};

pub use empty::{EMPTY_COMMANDS, empty_commands};
pub use estimate::Estimated;

/// The percentiles that are compared.
pub const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 99.9];

/// What an empty command takes at most, but for one in a hundred: the percentile
/// that bounds what the way to a device adds to a command.
const OF_EMPTY: f64 = 99.0;

/// Share of a value that can be tolerated at most for a verdict to say anything.
pub const TOLERANCE_MAX: f64 = 0.25;

/// Share of operations that may do nothing for a verdict to say anything.
const NOTHING_MAX: f64 = 0.5;

/// A quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// Operations per second: of a finish, bytes are what a device says it did, or what its
    /// host knows.
    Throughput,
    /// Mean of the total latency, in nanoseconds.
    MeanLatency,
    /// A percentile of the total latency, in nanoseconds.
    Percentile(f64),
}

/// Whether two values are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They are, within what is tolerated.
    Agrees,
    /// They are not.
    Differs,
    /// They are known too badly to tell.
    Undecided,
    /// The way to a device takes so long, or the host is so busy, that nearly any
    /// difference would be tolerated; or most operations did nothing, on either.
    Unjudged,
}

/// Two devices, and what they make of one metric of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name of the job.
    pub job: String,
    /// Which of its directions.
    pub direction: Direction,
    /// What is compared.
    pub metric: Metric,
    /// The value on either device; `None`: the job did nothing in this direction.
    pub values: [Option<Estimated>; 2],
    /// By how much the second is more than the first, as a share of the first,
    /// with its interval of confidence; `None` unless both have a value.
    pub difference: Option<Estimated>,
    /// What is tolerated of that: least and most.
    pub tolerated: [f64; 2],
    /// Whether they are the same.
    pub verdict: Verdict,
}

/// What is known of the way to a device.
#[derive(Clone, Debug)]
pub struct Side {
    /// Name of the device.
    pub device: String,
    /// Latencies of empty commands.
    pub empty: Latency,
    /// In real time, how late what was due was handled during the run: a host
    /// that is late measures itself.
    pub lateness: Option<Latency>,
}

/// A comparison of two devices.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The devices.
    pub sides: [Side; 2],
    /// Share of the first value by which the second may differ.
    pub tolerance: f64,
    /// What was compared, in the order of the jobs.
    pub lines: Vec<Line>,
    /// Why the host was too busy to judge either device, if it was.
    pub too_busy: Option<String>,
}

impl Agreement {
    /// Compares two runs of one job file, on the first and the second of `sides`.
    ///
    /// # Errors
    /// The runs are not of the same jobs: a text that says which.
    pub fn between(
        reports: [&Report<'_>; 2],
        sides: [Side; 2],
        tolerance: f64,
    ) -> Result<Self, String> {
        let [first, second] = reports.map(|report| &report.entries);
        let name = |entries: &[Entry<'_>], index: usize| {
            let entry = entries.get(index);
            entry.map(|entry| (entry.job.name.clone(), entry.threads))
        };
        for index in 0..first.len().max(second.len()) {
            let names = [name(first, index), name(second, index)];
            if names[0] != names[1] {
                let text = |name: &Option<(String, u32)>| match name {
                    Some((name, threads)) => format!("job {name} with {threads} threads"),
                    None => "no such job".to_owned(),
                };
                return Err(format!(
                    "the devices do not run the same jobs: {} has {}, and {} has {}",
                    sides[0].device,
                    text(&names[0]),
                    sides[1].device,
                    text(&names[1]),
                ));
            }
        }
        // In virtual time an empty command takes what the drive itself does.
        let has_way = sides.iter().any(|side| side.lateness.is_some());
        let way = match has_way {
            true => way_between([&sides[0].empty, &sides[1].empty]),
            false => [0.0; 2],
        };
        let lines = first.iter().zip(second);
        let lines = lines.flat_map(|(a, b)| lines_of([a, b], tolerance, way));
        Ok(Self {
            lines: lines.collect(),
            sides,
            tolerance,
            too_busy: None,
        })
    }

    /// Whether the devices are the same, as far as this machine can tell: something agrees,
    /// nothing differs, and nothing could not be judged.
    #[must_use]
    pub fn is_agreed(&self) -> bool {
        let not = [Verdict::Differs, Verdict::Unjudged].map(|of| self.count(of));
        self.count(Verdict::Agrees) > 0 && not == [0, 0]
    }

    /// The greatest difference that was tolerated of what agrees.
    #[must_use]
    pub fn agrees_within(&self) -> f64 {
        let agreed = self.lines.iter();
        let agreed = agreed.filter(|line| line.verdict == Verdict::Agrees);
        let shares = agreed.flat_map(|line| line.tolerated);
        shares.map(f64::abs).fold(self.tolerance, f64::max)
    }

    /// Lines of that verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        let lines = self.lines.iter();
        lines.filter(|line| line.verdict == verdict).count()
    }
}

/// Nanoseconds that the way to the second device adds to a command, against the
/// way to the first: at least, which is no more than zero, and at most, which is
/// no less.
fn way_between(empty: [&Latency; 2]) -> [f64; 2] {
    let at = |of: &Latency, percent| of.percentile(percent).map_or(0.0, |ns| ns.0 as f64);
    let [first, second] = empty;
    let longest = at(second, OF_EMPTY) - at(first, 0.0);
    let shortest = at(second, 0.0) - at(first, OF_EMPTY);
    [shortest.min(0.0), longest.max(0.0)]
}

/// What is compared of one entry of a report.
fn lines_of(entries: [&Entry<'_>; 2], tolerance: f64, way: [f64; 2]) -> Vec<Line> {
    let mut lines = Vec::new();
    for direction in Direction::ALL {
        let stats = entries.map(|entry| {
            let seconds = entry.run_time[direction as usize].as_secs_f64();
            let stats = entry.directions[direction as usize].as_ref();
            stats.map(|stats| (stats, seconds))
        });
        if stats.iter().all(Option::is_none) {
            continue;
        }
        // What agrees then is how fast the devices do nothing.
        let did_nothing = stats.iter().flatten().any(|(stats, _)| {
            stats
                .finds
                .nothing_share()
                .is_some_and(|share| share > NOTHING_MAX)
        });
        let percentiles = PERCENTILES.map(Metric::Percentile);
        let metrics = [Metric::Throughput, Metric::MeanLatency];
        for metric in metrics.into_iter().chain(percentiles) {
            let values = stats.map(|stats| {
                let (stats, seconds) = stats?;
                metric.of(stats, seconds)
            });
            if values.iter().all(Option::is_none) {
                continue;
            }
            let of = (entries[0].job.name.clone(), direction, metric);
            let mut line = Line::new(of, values, tolerance, way);
            if did_nothing {
                line.verdict = Verdict::Unjudged;
            }
            lines.push(line);
        }
    }
    lines
}

impl Metric {
    /// Its value, of a job that was measured for so many seconds. `None`: there
    /// is none, or of a percentile fewer operations beyond it than it takes.
    fn of(self, stats: &DirectionStats, seconds: f64) -> Option<Estimated> {
        match self {
            Self::Throughput => Estimated::throughput(stats, seconds),
            Self::MeanLatency => Estimated::mean_latency(stats),
            Self::Percentile(percent) => Estimated::percentile(stats, percent),
        }
    }
}

impl Line {
    fn new(
        (job, direction, metric): (String, Direction, Metric),
        values: [Option<Estimated>; 2],
        tolerance: f64,
        way: [f64; 2],
    ) -> Self {
        let mut tolerated = [-tolerance, tolerance];
        let difference = match values {
            [Some(first), Some(second)] => {
                if let Metric::Percentile(_) = metric
                    && first.value > 0.0
                {
                    tolerated[0] += way[0] / first.value;
                    tolerated[1] += way[1] / first.value;
                }
                Some(second.against(first))
            }
            _ => None,
        };
        Self {
            job,
            direction,
            metric,
            values,
            difference,
            tolerated,
            verdict: match (difference, metric) {
                // One of them had too few operations to say.
                (None, Metric::Percentile(_)) => Verdict::Undecided,
                // Only one of them did anything at all.
                (None, _) => Verdict::Differs,
                (Some(_), _) if tolerated.iter().any(|share| share.abs() > TOLERANCE_MAX) => {
                    Verdict::Unjudged
                }
                (Some(of), _) => verdict(of, tolerated),
            },
        }
    }
}

/// Whether a difference is one.
fn verdict(difference: Estimated, [least, most]: [f64; 2]) -> Verdict {
    let Estimated { value, low, high } = difference;
    let (Some(low), Some(high)) = (low, high) else {
        // How well it is known is not known: then it counts as it is.
        return match (least..=most).contains(&value) {
            true => Verdict::Undecided,
            false => Verdict::Differs,
        };
    };
    if low >= least && high <= most {
        Verdict::Agrees
    } else if low > most || high < least {
        Verdict::Differs
    } else {
        Verdict::Undecided
    }
}
