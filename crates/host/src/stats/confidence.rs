//! When a run is long enough: confidence by batch means.

use zonelab_device::Nanos;

use super::IntervalClock;

/// Batches kept. When all are filled, neighbours are joined in pairs.
const BATCHES: usize = 64;

/// Batches needed for a verdict, which is also what joining leaves.
const BATCHES_MIN: usize = BATCHES / 2;

/// A verdict is due whenever so many batches more are complete. Looking at
/// every batch would stop at the first lucky moment; the confidence level
/// holds for a look, not for the best of many.
const BATCHES_PER_LOOK: usize = 8;

/// Correlation between neighbouring batches above which an interval of
/// confidence is not believed: the batches are still shorter than the memory
/// of the process.
const CORRELATION_MAX: f64 = 0.3;

/// What happened in an interval of time, over all jobs of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Operations that completed.
    pub ops: u64,
    /// Sum of their latencies in nanoseconds.
    pub latency_ns: u128,
}

impl Sample {
    fn add(&mut self, other: Self) {
        self.ops += other.ops;
        self.latency_ns += other.latency_ns;
    }
}

/// The means that must be known well enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Operations per interval.
    Throughput,
    /// Latency per operation.
    MeanLatency,
    /// Both.
    Both,
}

/// What is known of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Half the width of its 95 % confidence interval, as a share of the mean:
    /// 0.01 for "within 1 %".
    pub half_width: f64,
    /// Correlation of neighbouring batches, its bias removed: near 0 if they are long
    /// enough to be independent.
    pub correlation: f64,
}

impl Estimate {
    fn meets(&self, target_ppm: u32) -> bool {
        self.correlation <= CORRELATION_MAX && self.half_width * 1e6 <= f64::from(target_ppm)
    }
}

/// Decides when a steady run has lasted long enough: when the 95 % confidence
/// intervals of its mean throughput, mean latency or both are narrow enough.
///
/// The method is that of batch means. Samples of consecutive intervals are
/// joined into 32 to 64 equally long batches; the spread of the batches tells
/// how well the mean over all of them is known (Student's t). Three things
/// protect against samples that depend on each other, as those of a drive with
/// buffers and background work do:
///
/// * Batches double in length whenever 64 are full, so a long memory is in the
///   end short against a batch, in constant memory.
/// * The correlation of neighbouring batches must be below 0.3, or the run
///   goes on.
/// * What correlation remains widens the interval, by the factor
///   `sqrt((1 + r) / (1 - r))` that holds for a first-order process.
///
/// Once converged it stays converged. It cannot know about what has not
/// happened yet: a run beside a background operation must also last for some
/// periods of it, which is for the caller to see to.
///
/// ```
/// use zonelab_device::Nanos;
/// use zonelab_host::stats::{Confidence, Statistic};
///
/// // Stop when the throughput is known to 1 %, from intervals of 10 ms.
/// let mut confidence = Confidence::new(Statistic::Throughput, 10_000);
/// confidence.start(Nanos::ZERO, Nanos::from_ms(10));
/// let mut now = Nanos::ZERO;
/// while !confidence.converged() {
///     now += Nanos::from_us(500);
///     confidence.record(now, Nanos::from_us(500));
/// }
/// assert_eq!(now, Nanos::from_ms(320), "32 equal intervals");
/// ```
#[derive(Clone, Debug)]
pub struct Confidence {
    statistic: Statistic,
    target_ppm: u32,
    clock: IntervalClock,
    /// The interval that [`Self::record`] is filling.
    interval: Sample,
    /// Complete batches: the first `complete` of them.
    batches: [Sample; BATCHES],
    complete: usize,
    /// Samples that make a batch: a power of two.
    samples_per_batch: u64,
    /// The batch being filled, and the samples in it.
    batch: Sample,
    batch_samples: u64,
    converged: bool,
}

impl Confidence {
    /// A rule that is met when the half-width of the 95 % confidence interval
    /// of `statistic` is at most `target_ppm` millionths of its mean; 10,000
    /// for 1 %.
    #[must_use]
    pub fn new(statistic: Statistic, target_ppm: u32) -> Self {
        Self {
            statistic,
            target_ppm,
            clock: IntervalClock::new(Nanos::ZERO, super::Intervals::DEFAULT_LENGTH),
            interval: Sample::default(),
            batches: [Sample::default(); BATCHES],
            complete: 0,
            samples_per_batch: 1,
            batch: Sample::default(),
            batch_samples: 0,
            converged: false,
        }
    }

    /// Begins at `at` with intervals of `length` (at least 1 ns) and forgets
    /// everything before: call it when the ramp is over.
    ///
    /// 32 intervals are the shortest run. Without this call, intervals are
    /// those of [`super::Intervals::DEFAULT_LENGTH`] from time zero.
    pub fn start(&mut self, at: Nanos, length: Nanos) {
        *self = Self {
            clock: IntervalClock::new(at, length),
            ..Self::new(self.statistic, self.target_ppm)
        };
    }

    /// Counts an operation that completed at `at`, of whichever job. Times
    /// should not decrease; what comes late counts in the open interval.
    #[inline]
    pub fn record(&mut self, at: Nanos, latency: Nanos) {
        let ended = self.clock.ended_by(at);
        if ended > 0 {
            self.close(ended);
        }
        self.interval.ops += 1;
        self.interval.latency_ns += u128::from(latency.0);
    }

    #[cold]
    fn close(&mut self, ended: u64) {
        let interval = core::mem::take(&mut self.interval);
        self.push(interval);
        self.push_empty(ended - 1);
    }

    /// Adds `count` intervals in which nothing completed. Batches double on
    /// the way, so this takes a time logarithmic in `count`.
    fn push_empty(&mut self, mut count: u64) {
        while count > 0 {
            let skip = count.min(self.samples_per_batch - self.batch_samples);
            self.batch_samples += skip;
            count -= skip;
            self.close_batch_if_full();
        }
    }

    /// Adds the sample of the next interval. For callers that cut time
    /// themselves, instead of [`Self::record`].
    pub fn push(&mut self, sample: Sample) {
        self.batch.add(sample);
        self.batch_samples += 1;
        self.close_batch_if_full();
    }

    fn close_batch_if_full(&mut self) {
        if self.batch_samples < self.samples_per_batch {
            return;
        }
        self.batches[self.complete] = core::mem::take(&mut self.batch);
        self.batch_samples = 0;
        self.complete += 1;
        if self.complete >= BATCHES_MIN && self.complete.is_multiple_of(BATCHES_PER_LOOK) {
            self.converged |= self.look();
        }
        if self.complete == BATCHES {
            self.join_pairs();
        }
    }

    fn join_pairs(&mut self) {
        for i in 0..BATCHES / 2 {
            let mut joined = self.batches[2 * i];
            joined.add(self.batches[2 * i + 1]);
            self.batches[i] = joined;
        }
        self.complete = BATCHES / 2;
        self.samples_per_batch = self.samples_per_batch.saturating_mul(2);
    }

    fn look(&self) -> bool {
        let meets = |e: Option<Estimate>| e.is_some_and(|e| e.meets(self.target_ppm));
        match self.statistic {
            Statistic::Throughput => meets(self.throughput()),
            Statistic::MeanLatency => meets(self.mean_latency()),
            Statistic::Both => meets(self.throughput()) && meets(self.mean_latency()),
        }
    }

    /// True once the target was met.
    #[inline]
    #[must_use]
    pub const fn converged(&self) -> bool {
        self.converged
    }

    /// Number of samples in complete batches.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.complete as u64 * self.samples_per_batch
    }

    /// How well the mean throughput is known. `None` with fewer than 32
    /// batches, or without operations.
    #[must_use]
    pub fn throughput(&self) -> Option<Estimate> {
        let mean = self.total().ops as f64 / self.complete as f64;
        self.estimate(mean, |batch| batch.ops as f64 - mean)
    }

    /// How well the mean latency is known. `None` with fewer than 32 batches,
    /// or without operations, or if no operation took any time.
    ///
    /// It is a ratio of two sums; what counts is how far the latencies of a
    /// batch are from what the overall mean would give for its operations.
    #[must_use]
    pub fn mean_latency(&self) -> Option<Estimate> {
        let total = self.total();
        let per_op = total.latency_ns as f64 / total.ops as f64;
        let per_batch = total.latency_ns as f64 / self.complete as f64;
        self.estimate(per_batch, |batch| {
            batch.latency_ns as f64 - per_op * batch.ops as f64
        })
    }

    fn total(&self) -> Sample {
        let mut total = Sample::default();
        self.batches[..self.complete]
            .iter()
            .for_each(|&batch| total.add(batch));
        total
    }

    /// The estimate of a `mean` per batch from the deviations of the batches.
    fn estimate(&self, mean: f64, deviation: impl Fn(&Sample) -> f64) -> Option<Estimate> {
        if self.complete < BATCHES_MIN || mean <= 0.0 {
            return None;
        }
        let batches = &self.batches[..self.complete];
        let n = batches.len() as f64;
        let (mut squares, mut products, mut previous) = (0.0, 0.0, 0.0);
        for batch in batches {
            let d = deviation(batch);
            squares += d * d;
            products += d * previous;
            previous = d;
        }
        // Independent batches have a lag-1 correlation of -1/n on average,
        // because they deviate from their own mean.
        let correlation = if squares > 0.0 {
            products / squares + 1.0 / n
        } else {
            0.0
        };
        let r = correlation.clamp(0.0, 0.9);
        let variance_of_mean = squares / (n - 1.0) / n * (1.0 + r) / (1.0 - r);
        let half_width = student_t_95(batches.len() - 1) * variance_of_mean.sqrt() / mean;
        Some(Estimate {
            half_width,
            correlation,
        })
    }
}

/// The 97.5th percentile of Student's t distribution, which bounds a two-sided
/// interval of 95 %.
fn student_t_95(degrees_of_freedom: usize) -> f64 {
    /// For 31 to 63 degrees of freedom.
    const T: [f64; BATCHES - BATCHES_MIN + 1] = [
        2.040, 2.037, 2.035, 2.032, 2.030, 2.028, 2.026, 2.024, 2.023, 2.021, 2.020, 2.018, 2.017,
        2.015, 2.014, 2.013, 2.012, 2.011, 2.010, 2.009, 2.008, 2.007, 2.006, 2.005, 2.004, 2.003,
        2.002, 2.002, 2.001, 2.000, 2.000, 1.999, 1.998,
    ];
    T[degrees_of_freedom.clamp(BATCHES_MIN - 1, BATCHES - 1) - (BATCHES_MIN - 1)]
}

#[cfg(test)]
mod tests;
