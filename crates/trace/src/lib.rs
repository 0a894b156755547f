//! Traces: what every channel, die and job of a run did, and why, on a
//! timeline that Perfetto shows.
//!
//! A [`PointTrace`] is the record of one point. [`PointTrace::perfetto`] is the
//! file for <https://ui.perfetto.dev>, [`PointTrace::zone_history_csv`] the
//! changes of zone states, and [`PointTrace::summary`] says in words which
//! resources were busiest and what the slowest commands waited for. All three
//! depend on nothing but the run. `docs/traces.md` shows how to use them;
//! `docs/decisions/0009-trace-format.md` says why the format is what it is.

mod explain;
mod names;
mod packets;
mod perfetto;
mod proto;
mod summary;
mod waits;

use std::fmt::Write as _;

use zonelab_device::Nanos;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::account::Resource;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::counterfactual::Watched;
use zonelab_ssd::record::{CommandRecord, Record, RecordLimits, Span};

pub use explain::{Explanation, Question, alternatives};
use names::Names;
use waits::Index;
pub use waits::{Contention, Waits};

/// The record of one point of an experiment.
#[derive(Clone, Debug)]
pub struct PointTrace {
    /// Which point it is, in words.
    pub title: String,
    /// The drive.
    pub config: DriveConfig,
    /// What was to be recorded.
    pub limits: RecordLimits,
    /// What was.
    pub record: Record,
    /// By queue, the job thread that used it.
    pub queues: Vec<String>,
    /// What became of commands that were watched.
    pub watched: Watched,
    /// When the run ended.
    pub end: Nanos,
}

impl PointTrace {
    /// The trace as a file of the Perfetto format.
    #[must_use]
    pub fn perfetto(&self) -> Vec<u8> {
        perfetto::file(self)
    }

    /// A short text: the busiest resources, and the slowest commands as they have been explained
    /// ([`PointTrace::explain`]).
    #[must_use]
    pub fn summary(
        &self,
        slowest: &[Explanation],
        style: &zonelab_figures::table::Style,
    ) -> String {
        summary::text(self, slowest, style)
    }

    /// The trace as a file of the Perfetto format, compressed with gzip. Nothing in it depends on
    /// when or where it was made.
    #[must_use]
    pub fn perfetto_gz(&self) -> Vec<u8> {
        use std::io::Write as _;
        let mut out = flate2::GzBuilder::new()
            .mtime(0)
            .operating_system(255)
            .write(Vec::new(), flate2::Compression::default());
        let written = out.write_all(&self.perfetto());
        written
            .and_then(|()| out.finish())
            .expect("writing to memory does not fail")
    }

    /// The commands of the record, by number, and where their time went;
    /// `None`: the command has not completed, or not all that happened in its
    /// time was recorded.
    #[must_use]
    pub fn waits(&self) -> Vec<(&CommandRecord, Option<Waits>)> {
        let names = self.names();
        let index = self.index();
        let of = |command| (command, index.waits(&names, command));
        self.record.commands.records.iter().map(of).collect()
    }

    /// The name of a channel or unit: `channel 0 way 1 die 0 plane 1`.
    #[must_use]
    pub fn resource_name(&self, resource: Resource) -> String {
        self.names().resource(resource)
    }

    /// What a busy time was for: `erase (reset of zone 3)`.
    #[must_use]
    pub fn span_name(&self, span: &Span) -> String {
        self.names().span_name(span)
    }

    fn index(&self) -> Index<'_> {
        Index::new(&self.record, self.covered())
    }

    /// The changes of zone states as CSV, in order of time. The last line is a
    /// comment if there were more changes than were kept.
    #[must_use]
    pub fn zone_history_csv(&self) -> String {
        let mut csv = String::from("time_ns,zone,from,to,written_lbas\n");
        for record in &self.record.zones.records {
            // Writing to a string does not fail.
            let _ = writeln!(
                csv,
                "{},{},{},{},{}",
                record.at.0,
                record.zone.0,
                state_name(record.from),
                state_name(record.to),
                record.written_lbas
            );
        }
        let dropped = self.record.zones.dropped;
        if dropped > 0 {
            let _ = writeln!(
                csv,
                "# {dropped} later changes were dropped (--trace-limit)"
            );
        }
        csv
    }

    /// What was dropped, in words; `None`: nothing.
    #[must_use]
    pub fn dropped(&self) -> Option<String> {
        let record = &self.record;
        let kinds = [
            (record.spans.dropped, "busy times of channels and dies"),
            (record.commands.dropped, "commands"),
            (record.background.dropped, "background operations"),
            (record.counters.dropped, "counter values"),
            (record.zones.dropped, "changes of zone states"),
        ];
        let kinds: Vec<String> = kinds
            .into_iter()
            .filter(|(dropped, _)| *dropped > 0)
            .map(|(dropped, what)| format!("{dropped} {what}"))
            .collect();
        (!kinds.is_empty()).then(|| kinds.join(", "))
    }

    fn names(&self) -> Names<'_> {
        Names::new(&self.config, &self.record)
    }

    /// The job thread behind a queue.
    fn queue_name(&self, queue: u16) -> String {
        let name = self.queues.get(usize::from(queue)).cloned();
        name.unwrap_or_else(|| format!("queue {queue}"))
    }

    /// The time that the record covers without gaps.
    fn covered(&self) -> (Nanos, Nanos) {
        let until = self.limits.until.min(self.end);
        let until = self.record.complete_until.map_or(until, |at| at.min(until));
        (self.limits.from.min(until), until)
    }
}

/// A zone state as output names it: `implicitly-opened`.
#[must_use]
pub fn state_name(state: ZoneState) -> String {
    match state.name() {
        Some(name) => name.to_ascii_lowercase().replace('_', "-"),
        None => format!("{:#x}", state.0),
    }
}
