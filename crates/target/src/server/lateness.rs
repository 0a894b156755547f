//! How much later than the model had them done responses went out.

use hdrhistogram::Histogram;
use zonelab_device::Nanos;

/// The lateness of the responses of the queues of one number, over all
/// controllers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct QueueLateness {
    /// Queue identifier; 0 is the admin queue.
    pub qid: u16,
    /// Commands that were answered.
    pub commands: u64,
    /// Half of the responses were at most this late.
    pub p50: Nanos,
    /// 99 of 100 responses were at most this late.
    pub p99: Nanos,
    /// 999 of 1000 responses were at most this late.
    pub p999: Nanos,
    /// The latest response.
    pub max: Nanos,
}

/// One histogram for each queue identifier that was used.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    queues: Vec<Option<Histogram<u64>>>,
}

/// Lateness beyond this is recorded as this.
const MOST_NS: u64 = 100_000_000_000;

impl Lateness {
    /// Makes room for a queue, so that recording allocates nothing.
    pub(super) fn add_queue(&mut self, qid: u16) {
        let index = usize::from(qid);
        if index >= self.queues.len() {
            self.queues.resize_with(index + 1, || None);
        }
        if self.queues[index].is_none() {
            // Two digits: 1 % of a value, in tens of kilobytes.
            self.queues[index] = Histogram::new_with_bounds(1, MOST_NS, 2).ok();
        }
    }

    pub(super) fn record(&mut self, qid: u16, late: Nanos) {
        if let Some(Some(histogram)) = self.queues.get_mut(usize::from(qid)) {
            histogram.saturating_record(late.0.max(1));
        }
    }

    /// The histograms of queues that were used.
    pub(super) fn histograms(&self) -> impl Iterator<Item = (u16, &Histogram<u64>)> {
        let all = self.queues.iter().enumerate();
        // Queues are added by an identifier of 16 bits.
        all.filter_map(|(qid, histogram)| Some((qid as u16, histogram.as_ref()?)))
    }

    pub(super) fn report(&self) -> Vec<QueueLateness> {
        self.histograms()
            .map(|(qid, histogram)| QueueLateness {
                qid,
                commands: histogram.len(),
                p50: Nanos(histogram.value_at_quantile(0.5)),
                p99: Nanos(histogram.value_at_quantile(0.99)),
                p999: Nanos(histogram.value_at_quantile(0.999)),
                max: Nanos(histogram.max()),
            })
            .collect()
    }
}
