//! Logs over time, in the form of fio's: `time, value, direction, size[,
//! offset], priority`, one line for each operation or window. Times are in
//! milliseconds from the start of the job, latencies in nanoseconds, bandwidth
//! in KiB/s (of single operations in 1000 bytes per second, as fio has it).

use std::fmt::Write as _;

use zonelab_device::Nanos;
use zonelab_host::fio::trace::to_iolog;
use zonelab_host::fio::{Logs, Plan};
use zonelab_host::workload::record::{LogSample, Recorder, WindowSample};

use super::run::FioRun;

/// The log files of a run: name and contents, in the order of the threads.
#[must_use]
pub fn log_files(plan: &Plan, run: &FioRun) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for (number, (job, thread)) in (1..).zip(plan.jobs.iter().zip(&run.threads)) {
        let Some(result) = &thread.result else {
            continue;
        };
        let logs = &job.logs;
        let mut add = |prefix: &str, kind: Kind| {
            let name = format!("{prefix}_{}.{number}.log", kind.name());
            files.push((name, text(&result.recorder, logs, kind)));
        };
        if let Some(log) = &logs.latency {
            for kind in [Kind::Total, Kind::Submission, Kind::Completion] {
                add(&log.prefix, kind);
            }
        }
        if let Some(log) = &logs.bandwidth {
            add(&log.prefix, Kind::Bandwidth);
        }
        if let Some(log) = &logs.iops {
            add(&log.prefix, Kind::Iops);
        }
        if let (Some(log), Some(trace)) = (&logs.issued, &result.recorder.issued) {
            files.push((log.file.clone(), to_iolog(trace, &log.device)));
        }
    }
    files
}

/// What a log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Total,
    Submission,
    Completion,
    Bandwidth,
    Iops,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Total => "lat",
            Self::Submission => "slat",
            Self::Completion => "clat",
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
        }
    }

    fn of_operation(self, sample: &LogSample) -> u64 {
        let total = sample.submission.saturating_add(sample.completion);
        match self {
            Self::Total => total.0,
            Self::Submission => sample.submission.0,
            Self::Completion => sample.completion.0,
            Self::Bandwidth => {
                let product = u128::from(sample.bytes) * 1_000_000;
                (product / u128::from(total.0.max(1))) as u64
            }
            Self::Iops => 1,
        }
    }

    fn of_window(self, sample: &WindowSample, window: Nanos) -> u64 {
        let operations = u128::from(sample.operations.max(1));
        let window = u128::from(window.0.max(1));
        let second = 1_000_000_000_u128;
        let value = match self {
            Self::Total => (sample.submission_ns + sample.completion_ns) / operations,
            Self::Submission => sample.submission_ns / operations,
            Self::Completion => sample.completion_ns / operations,
            Self::Bandwidth => u128::from(sample.bytes) * second / window / 1024,
            Self::Iops => u128::from(sample.operations) * second / window,
        };
        u64::try_from(value).unwrap_or(u64::MAX)
    }
}

fn text(recorder: &Recorder, logs: &Logs, kind: Kind) -> String {
    let mut text = String::new();
    let mut line = |at: Nanos, value: u64, direction: usize, bytes: u64, offset: u64| {
        let ms = at.0 / 1_000_000;
        // Writing to a string does not fail.
        let _ = if logs.offset {
            writeln!(text, "{ms}, {value}, {direction}, {bytes}, {offset}, 0")
        } else {
            writeln!(text, "{ms}, {value}, {direction}, {bytes}, 0")
        };
    };
    for sample in &recorder.log {
        let value = kind.of_operation(sample);
        line(
            sample.at,
            value,
            sample.direction as usize,
            sample.bytes,
            sample.offset,
        );
    }
    for sample in &recorder.windows {
        let value = kind.of_window(sample, logs.window);
        line(sample.end, value, sample.direction as usize, 0, 0);
    }
    text
}
