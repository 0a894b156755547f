//! Whether values that were measured can be what they are said to be, or have another unit.

use std::collections::BTreeMap;

use super::{ReferenceError, UNITS};
use crate::metrics::{percentile_of, unit_of};
use crate::published::CellPlace;
use crate::rows::significant;

/// Means of samples and of operations differ, but not by this much.
const SLACK: f64 = 3.0;
/// Percentiles that were rounded in different ways are out of order by less than this.
const ROUNDED: f64 = 1.02;
/// Between operations of a loop that waits for each, a host takes less than this many times as
/// long as the drive takes for one.
const HOST_SLACK: f64 = 30.0;
/// Operations in flight beyond what a job keeps, by which one doubts that both values are of the
/// same run.
const DOUBTFUL: f64 = 1.3;
/// The length of a sample of throughput.
const SAMPLE_US: f64 = 500_000.0;

/// A value that was measured elsewhere.
#[derive(Clone, Debug)]
pub struct Stated<'a> {
    /// What was measured.
    pub metric: &'a str,
    /// How much as it stands there, and what turns that into the unit of the metric.
    pub written: (f64, f64),
    /// Where it stands.
    pub place: &'a CellPlace,
}

impl Stated<'_> {
    /// How much, in the unit of the metric.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.written.0 * self.written.1
    }

    /// A value of the same place, of repeats of the measurement, in the unit of the metric.
    #[must_use]
    pub fn of_repeat(&self, value: f64) -> Self {
        Self {
            metric: self.metric,
            written: (significant(value / self.written.1), self.written.1),
            place: self.place,
        }
    }

    /// The unit that it is stated in.
    fn unit(&self) -> &'static str {
        let own = unit_of(self.metric);
        let mut units = UNITS.iter().filter(|(unit, _)| *unit == own);
        let named = units.find_map(|(_, units)| {
            let is = |&&(_, size): &&(&str, f64)| size.to_bits() == self.written.1.to_bits();
            units.iter().find(is)
        });
        named.map_or(own, |(unit, _)| *unit)
    }

    /// It as it is stated: "71 ms".
    fn words(&self) -> String {
        format!("{} {}", self.written.0, self.unit())
    }

    fn error(&self, problem: String) -> ReferenceError {
        ReferenceError {
            file: self.place.file.clone(),
            line: self.place.line,
            column: Some(self.place.column.clone()),
            problem,
        }
    }
}

/// The range in which a metric lies for anything that is a drive, and its unit.
#[must_use]
pub fn possible(metric: &str) -> (f64, f64, &'static str) {
    match unit_of(metric) {
        "KIOPS" => (1e-6, 1e5, "KIOPS"),
        "MiB/s" => (1e-6, 1e6, "MiB/s"),
        _ if metric == "ops" || metric == "ops_s" => (1e-3, 1e8, "per second"),
        _ if metric.ends_with("_share") => (0.0, 1.0, ""),
        // From 10 ns to an hour.
        "us" | "" => (0.01, 3.6e9, "us"),
        unit => (0.0, f64::MAX, unit),
    }
}

/// Refuses a value that nothing on earth can have measured in this unit.
///
/// # Errors
/// It is such a value.
pub fn possibly(stated: &Stated<'_>) -> Result<(), ReferenceError> {
    let (low, high, unit) = possible(stated.metric);
    match (low..=high).contains(&stated.value()) {
        true => Ok(()),
        false => Err(stated.error(format!(
            "{} is no possible value of {}: a drive has {low} to {high} {unit}",
            match stated.unit() == unit {
                true => stated.written.0.to_string(),
                false => stated.words(),
            },
            stated.metric
        ))),
    }
}

/// The operations that a job has in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// Nobody knows: latencies count from when operations are due.
    Unknown,
    /// No more than `most`, and `least` for as long as it runs, but for what its host does
    /// between two of them.
    Within {
        /// 0: there may be times without any.
        least: u64,
        /// All that it may keep.
        most: u64,
    },
}

/// Throughput and mean latency of one point, and how many operations they say were in flight,
/// by Little's law.
fn implied<'a, 'b>(all: &'a [Stated<'b>]) -> impl Iterator<Item = [(&'a Stated<'b>, f64); 2]> {
    let find = |name: &str| all.iter().find(|stated| stated.metric == name);
    let mean = find("lat_mean_us");
    let rates = [("kiops", 1e3), ("kiops_by_count", 1e3), ("ops_s", 1.0)];
    rates.into_iter().filter_map(move |(rate, factor)| {
        let (rate, latency) = find(rate).zip(mean)?;
        let implied = rate.value() * factor * latency.value() / 1e6;
        // Of operations that take longer than a sample of throughput, samples that saw none
        // are not counted.
        let unseen = (latency.value() / SAMPLE_US).max(1.0);
        Some([(rate, implied), (latency, unseen)])
    })
}

/// What is to be doubted of values of one job at one point, and is not impossible.
#[must_use]
pub fn doubt(all: &[Stated<'_>], in_flight: InFlight) -> Option<String> {
    let InFlight::Within { most, .. } = in_flight else {
        return None;
    };
    let beyond = |[(_, implied), (_, unseen)]: &[(&Stated<'_>, f64); 2]| {
        *implied > DOUBTFUL * most as f64 * unseen
    };
    let [(rate, implied), (latency, _)] = implied(all).find(beyond)?;
    let place = format!("{}:{}", latency.place.file, latency.place.line);
    Some(format!(
        "{place}: {} at {} would be {implied:.1} operations in flight, and the experiment has \
         {most}: they are not of the same run, or counted otherwise",
        latency.words(),
        rate.words()
    ))
}

/// Refuses values of one job at one point that contradict each other, as they do if one of
/// them has another unit.
///
/// # Errors
/// Two of them contradict each other.
pub fn together(all: &[Stated<'_>], in_flight: InFlight) -> Result<(), ReferenceError> {
    let find = |name: &str| all.iter().find(|stated| stated.metric == name);
    let mean = find("lat_mean_us");
    // What is in flight cannot be more than the job keeps, and in a loop that waits not much less.
    let (least, most) = match in_flight {
        InFlight::Unknown => (0.0, f64::INFINITY),
        InFlight::Within { least, most } => (least as f64, most as f64),
    };
    for [(rate, implied), (latency, unseen)] in implied(all) {
        if implied > SLACK * most * unseen || implied < least / HOST_SLACK {
            return Err(latency.error(format!(
                "{} at {} would be {} operations in flight, and the experiment has {}: one of \
                 the two is in another unit",
                latency.words(),
                rate.words(),
                significant(implied),
                most
            )));
        }
    }
    let shares = all.iter().filter_map(|stated| {
        let percent = match stated.metric {
            "lat_min_us" => Some(0.0),
            "lat_max_us" => Some(100.0),
            metric => percentile_of(metric),
        };
        Some((percent?, stated))
    });
    let mut shares: Vec<(f64, &Stated<'_>)> = shares.collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Markov's inequality: a share of 5 % above P95 makes the mean at least 5 % of it.
    for (percent, stated) in &shares {
        let Some(mean) = mean else { break };
        let most = mean.value() / (1.0 - percent / 100.0);
        if stated.value() > SLACK * most {
            return Err(stated.error(format!(
                "{} of {} cannot be with a mean of {}: one of the two is in another unit",
                stated.metric,
                stated.words(),
                mean.words()
            )));
        }
    }
    let greatest = find("lat_max_us").zip(mean);
    let greatest = greatest.filter(|(most, mean)| mean.value() > ROUNDED * most.value());
    let pairs = shares.windows(2).map(|pair| (pair[1].1, pair[0].1));
    let in_order = |(high, low): &(&Stated<'_>, &Stated<'_>)| low.value() > ROUNDED * high.value();
    if let Some((high, low)) = pairs.chain(greatest).find(in_order) {
        return Err(high.error(format!(
            "{} of {} is less than {} of {}: one of the two is in another unit, or another column",
            high.metric,
            high.words(),
            low.metric,
            low.words()
        )));
    }
    Ok(())
}

/// A value, ours, and the unit that it seems to have.
type Suspect<'a> = (Stated<'a>, f64, &'static str);

/// Values that differ from ours as if they had another unit, in words: of each column the
/// unit that they seem to have.
#[must_use]
pub fn suspects<'a>(pairs: impl Iterator<Item = (Stated<'a>, f64)>) -> Vec<String> {
    let mut of_columns: BTreeMap<(&str, &str, &str), (usize, Vec<Suspect<'a>>)> = BTreeMap::new();
    for (stated, ours) in pairs {
        let place = stated.place;
        let key = (place.file.as_str(), place.column.as_str(), stated.metric);
        let (count, found) = of_columns.entry(key).or_default();
        *count += 1;
        if let Some(unit) = looks_like(&stated, ours) {
            found.push((stated, ours, unit));
        }
    }
    let words = |((_, column, metric), (count, found)): (
        (&str, &str, &str),
        (usize, Vec<Suspect<'a>>),
    )| {
        let (first, ours, unit) = found.first()?;
        let (own, many) = (unit_of(metric), found.len());
        let place = format!("{}:{}", first.place.file, first.place.line);
        Some(format!(
            "{place}: {many} of {count} values of `{column}` look like {unit}, and are taken for \
             {} of {metric}: here {}, and ours is {ours:.4} {own}. Correct them, or name their \
             unit (docs/experiments.md, published values)",
            first.unit(),
            first.written.0
        ))
    };
    of_columns.into_iter().filter_map(words).collect()
}

/// The unit that a value seems to have, if it is another one than that of its metric.
fn looks_like(stated: &Stated<'_>, ours: f64) -> Option<&'static str> {
    /// Units that are nearer to each other than this are not told apart.
    const APART: f64 = 100.0;
    let own = unit_of(stated.metric);
    let (_, units) = UNITS.iter().find(|(unit, _)| *unit == own)?;
    let (written, stated_in) = stated.written;
    let ratio = written / ours;
    let is = |&&(_, size): &&(&str, f64)| {
        let (off, apart) = (ratio * size, size / stated_in);
        (apart >= APART || apart <= 1.0 / APART) && (1.0 / SLACK..=SLACK).contains(&off)
    };
    (ratio.is_finite() && ratio > 0.0)
        .then(|| units.iter().find(is))
        .flatten()
        .map(|(unit, _)| *unit)
}
