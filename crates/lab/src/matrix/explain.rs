//! Why two operations interfere: the parts of the foreground's latency, alone
//! and beside the background, from runs that are recorded for a short time.
//!
//! The recorder takes the latency of each command apart ([`crate::trace::Waits`]).
//! What a buffered write waited for between the front end and its completion is
//! room in the write buffer; it is divided by what the dies were busy with
//! meanwhile, since room comes from programs. The difference of the mean parts
//! is what the cell is about.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;
use zonelab_device::{Nanos, Op};
use zonelab_host::stats::OpKind;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::account::{Cause, Resource};
use zonelab_ssd::record::{CommandRecord, RecordLimits};

use crate::experiment::MatrixSpec;
use crate::rows::significant;
use crate::run::{Point, RunError, RunOptions, run_point};
use crate::trace::{Contention, PointTrace, Waits};

/// Most records of a kind in a run that is recorded to explain a cell.
const RECORDS: usize = 400_000;
/// A change of the mean latency by less than this share of it is none.
const NOTHING: f64 = 0.01;
/// Parts that a sentence names.
const NAMED: usize = 2;

/// Over what two operations fought, at one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The series of the cell.
    pub series: String,
    /// The axis value.
    pub x: String,
    /// Operations of the foreground that were taken apart, alone and beside.
    pub operations: (u64, u64),
    /// Their mean latency alone, in microseconds.
    pub alone_us: f64,
    /// Their mean latency beside the background operation.
    pub beside_us: f64,
    /// By how much each part of the mean latency changed, the largest growth first.
    pub parts: Vec<Grown>,
    /// The same in a sentence.
    pub text: String,
}

/// A part of a latency, and by how much it grew.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grown {
    /// What was waited for.
    pub part: String,
    /// Microseconds more than alone.
    pub by_us: f64,
}

/// A part of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// From submission to the first flash operation, or to the line for the buffer.
    FrontEnd,
    /// Room in the write buffer while dies did this (a position in
    /// [`Cause::ALL`]), or were idle.
    Room(Option<usize>),
    /// A channel or die that somebody else had.
    Contention(Contention),
    /// Its own flash operations at work.
    Flash,
    /// Its own flash operations waiting for each other.
    OwnLine,
    /// Resources that were held, pauses of a background operation.
    Idle,
    /// The link, at the end.
    Link,
}

impl Part {
    /// What was waited for, in words.
    fn name(self) -> String {
        let busy = |cause: usize| match Cause::ALL[cause] {
            Cause::HostRead => "reads",
            Cause::HostWrite => "programs of writes",
            Cause::FinishFill => "programs of finish fills",
            Cause::ResetErase => "erasures of resets",
            Cause::WriteErase => "erasures before writes",
            Cause::CollectRead => "reads of collection",
            Cause::CollectWrite => "programs of collection",
            Cause::CollectErase => "erasures of collection",
            Cause::ModifyRead => "reads of units that are written in part",
            Cause::Fold => "folds of the SLC cache",
        };
        match self {
            Self::FrontEnd => "firmware cores and link".to_owned(),
            Self::Room(Some(cause)) => {
                format!("room in the write buffer, dies busy with {}", busy(cause))
            }
            Self::Room(None) => "room in the write buffer, dies idle".to_owned(),
            Self::Contention(Contention { is_channel, cause }) => {
                let resource = if is_channel { "channels" } else { "dies" };
                format!("{resource}: {}", busy(cause))
            }
            Self::Flash => "its own flash operations".to_owned(),
            Self::OwnLine => "its own operations in line".to_owned(),
            Self::Idle => "resources held for others".to_owned(),
            Self::Link => "host link".to_owned(),
        }
    }
}

/// Mean parts of the latency of an operation.
#[derive(Debug, Default)]
struct Profile {
    operations: u64,
    parts: BTreeMap<Part, u64>,
}

impl Profile {
    fn add(&mut self, part: Part, time: Nanos) {
        if time > Nanos::ZERO {
            *self.parts.entry(part).or_default() += time.0;
        }
    }

    /// A part of the mean latency, in microseconds.
    fn mean_us(&self, part: Part) -> f64 {
        let sum = self.parts.get(&part).copied().unwrap_or(0);
        sum as f64 / self.operations.max(1) as f64 / 1e3
    }

    fn total_us(&self) -> f64 {
        let sum: u64 = self.parts.values().sum();
        sum as f64 / self.operations.max(1) as f64 / 1e3
    }
}

/// Explains the cells of the matrix that `points` are of: runs each of them,
/// and each foreground operation alone, once more at one level, recorded. In
/// the order of the matrix; a cell of which nothing was recorded is left out.
///
/// # Errors
/// A point cannot be run.
pub fn explain(points: &[Point], options: &RunOptions<'_>) -> Result<Vec<Explanation>, RunError> {
    let Some(spec) = points
        .first()
        .and_then(|point| point.experiment().matrix.clone())
    else {
        return Ok(Vec::new());
    };
    let chosen: Vec<&Point> = spec
        .foreground
        .iter()
        .flat_map(|front| {
            let cells = spec
                .background
                .iter()
                .map(|back| MatrixSpec::cell(front, back));
            std::iter::once(MatrixSpec::alone(front)).chain(cells)
        })
        .filter_map(|series| point_of(&spec, points, &series))
        .collect();
    let profiles: Vec<Option<Profile>> = chosen
        .par_iter()
        .with_max_len(1)
        .map(|point| {
            if (options.interrupted)() {
                return Ok(None);
            }
            recorded(&spec, point, options)
        })
        .collect::<Result<_, RunError>>()?;
    let profile = |series: &str| {
        let at = chosen.iter().position(|point| point.series() == series)?;
        profiles[at].as_ref().filter(|of| of.operations > 0)
    };
    let mut explanations = Vec::new();
    for front in &spec.foreground {
        for back in &spec.background {
            let series = MatrixSpec::cell(front, back);
            let point = chosen.iter().find(|point| point.series() == series);
            let both = (profile(&MatrixSpec::alone(front)), profile(&series));
            if let (Some(point), (Some(alone), Some(beside))) = (point, both) {
                explanations.push(compare(series, &point.x().text, alone, beside));
            }
        }
    }
    Ok(explanations)
}

/// The point of a series that explains it: at the level that the file names, or
/// the last.
fn point_of<'a>(spec: &MatrixSpec, points: &'a [Point], series: &str) -> Option<&'a Point> {
    let mut of_series = points.iter().filter(|point| point.series() == series);
    let named = spec.explain.at.as_ref();
    let is_named = |point: &&Point| named.is_some_and(|at| point.x().text == *at);
    of_series
        .clone()
        .find(is_named)
        .or_else(|| of_series.next_back())
}

/// Runs a point for as long as it takes to record it. `None`: nothing was recorded.
fn recorded(
    spec: &MatrixSpec,
    point: &Point,
    options: &RunOptions<'_>,
) -> Result<Option<Profile>, RunError> {
    let until = spec.explain.from.saturating_add(spec.explain.length);
    let mut short = point.clone();
    short.end_by(until);
    short.trace(RecordLimits {
        zone_changes: 0,
        from: spec.explain.from,
        until,
        ..RecordLimits::everything(RECORDS)
    });
    let result = run_point(&short, options)?;
    let job = result.jobs.first().map(|job| (job.name.as_str(), job.kind));
    Ok(match (&result.trace, job) {
        (Some(trace), Some((name, kind))) => Some(profile(trace, name, kind)),
        _ => None,
    })
}

/// The latencies of the operations of a job in a trace, taken apart.
fn profile(trace: &PointTrace, job: &str, kind: OpKind) -> Profile {
    let is_buffered = trace.config.write_buffer.is_some();
    let timeline = is_buffered.then(|| Timeline::of(trace));
    let mut profile = Profile::default();
    for (command, waits) in trace.waits() {
        let queue = trace.queues.get(usize::from(command.queue.0));
        let is_mine = queue.is_some_and(|queue| is_thread_of(queue, job));
        let (Some(waits), true) = (waits, is_mine && kind_of(&command.op) == Some(kind)) else {
            continue;
        };
        profile.operations += 1;
        match (&timeline, command.op) {
            (Some(timeline), Op::Write { .. } | Op::Append { .. }) => {
                buffered(&mut profile, timeline, command);
            }
            _ => unbuffered(&mut profile, &waits),
        }
    }
    profile
}

/// Whether a queue is that of a thread of a job: `write`, `write 1`, `write 2`.
fn is_thread_of(queue: &str, job: &str) -> bool {
    let Some(rest) = queue.strip_prefix(job) else {
        return false;
    };
    let number = rest.strip_prefix(' ').map(str::parse::<u32>);
    rest.is_empty() || matches!(number, Some(Ok(_)))
}

/// The kind of operation that a command is, as workloads count them.
const fn kind_of(op: &Op) -> Option<OpKind> {
    Some(match op {
        Op::Read { .. } => OpKind::Read,
        Op::Write { .. } => OpKind::Write,
        Op::Append { .. } => OpKind::Append,
        Op::ZoneSend {
            action: ZoneSendAction::FINISH,
            ..
        } => OpKind::Finish,
        Op::ZoneSend {
            action: ZoneSendAction::RESET,
            ..
        } => OpKind::Reset,
        _ => return None,
    })
}

fn unbuffered(profile: &mut Profile, waits: &Waits) {
    profile.add(Part::FrontEnd, waits.front_end);
    profile.add(Part::Flash, waits.flash);
    profile.add(Part::OwnLine, waits.own_line);
    profile.add(Part::Idle, waits.idle);
    profile.add(Part::Link, waits.link);
    for (contention, time) in &waits.contention {
        profile.add(Part::Contention(*contention), *time);
    }
}

/// A write to a write-back buffer: the front end, then room.
fn buffered(profile: &mut Profile, timeline: &Timeline, command: &CommandRecord) {
    let Some((completed, _)) = command.completed else {
        return;
    };
    let started = command.started.unwrap_or(completed).min(completed);
    profile.add(Part::FrontEnd, started.saturating_sub(command.submitted));
    let wait = completed.saturating_sub(started);
    let busy = timeline.busy(started, completed);
    let capacity = u128::from(wait.0) * u128::from(timeline.units);
    let mut rest = wait;
    for (cause, time) in busy.into_iter().enumerate() {
        let share = u128::from(wait.0) * u128::from(time) / capacity.max(1);
        let share = Nanos(u64::try_from(share).unwrap_or(u64::MAX)).min(rest);
        rest = rest.saturating_sub(share);
        profile.add(Part::Room(Some(cause)), share);
    }
    profile.add(Part::Room(None), rest);
}

/// Busy time of all dies together by cause, as a function of time.
struct Timeline {
    units: u32,
    /// Times at which the number of busy dies changes.
    at: Vec<u64>,
    /// Busy time until each of these times, and the number of busy dies from then on.
    until: Vec<[(u64, i64); Cause::ALL.len()]>,
}

impl Timeline {
    fn of(trace: &PointTrace) -> Self {
        let mut changes: Vec<(u64, usize, i64)> = Vec::new();
        let mut units = 0;
        for span in &trace.record.spans.records {
            if let Resource::Unit(unit) = span.resource {
                units = units.max(unit + 1);
                changes.push((span.start.0, span.cause as usize, 1));
                changes.push((span.end.0, span.cause as usize, -1));
            }
        }
        changes.sort_unstable();
        let (mut at, mut until) = (Vec::new(), Vec::new());
        let mut state = [(0_u64, 0_i64); Cause::ALL.len()];
        let mut reached = 0;
        for (time, cause, change) in changes {
            for (busy, dies) in &mut state {
                *busy += dies.unsigned_abs() * (time - reached);
            }
            reached = time;
            state[cause].1 += change;
            if at.last() == Some(&time) {
                until.pop();
            } else {
                at.push(time);
            }
            until.push(state);
        }
        let all = &trace.config;
        let all = match all.media.planes {
            zonelab_ssd::config::PlaneMode::Independent => all.geometry.planes_total(),
            _ => all.geometry.luns(),
        };
        Self {
            units: all.max(units).max(1),
            at,
            until,
        }
    }

    /// Busy time of all dies between two times.
    fn busy(&self, from: Nanos, to: Nanos) -> [u64; Cause::ALL.len()] {
        let (start, end) = (self.busy_until(from), self.busy_until(to));
        std::array::from_fn(|cause| end[cause].saturating_sub(start[cause]))
    }

    fn busy_until(&self, time: Nanos) -> [u64; Cause::ALL.len()] {
        let behind = self.at.partition_point(|at| *at <= time.0);
        let Some(index) = behind.checked_sub(1) else {
            return [0; Cause::ALL.len()];
        };
        let since = time.0 - self.at[index];
        self.until[index].map(|(busy, dies)| busy + dies.unsigned_abs() * since)
    }
}

fn compare(series: String, x: &str, alone: &Profile, beside: &Profile) -> Explanation {
    let mut all: Vec<Part> = alone
        .parts
        .keys()
        .chain(beside.parts.keys())
        .copied()
        .collect();
    all.sort_unstable();
    all.dedup();
    let mut parts: Vec<Grown> = all
        .into_iter()
        .map(|part| Grown {
            part: part.name(),
            by_us: significant(beside.mean_us(part) - alone.mean_us(part)),
        })
        .collect();
    // Stable: equals stay in the order of the parts of a command.
    parts.sort_by(|a, b| b.by_us.total_cmp(&a.by_us));
    let (alone_us, beside_us) = (alone.total_us(), beside.total_us());
    Explanation {
        series,
        x: x.to_owned(),
        operations: (alone.operations, beside.operations),
        alone_us: significant(alone_us),
        beside_us: significant(beside_us),
        text: sentence(&parts, alone_us, beside_us),
        parts,
    }
}

/// `waits for dies: programs of finish fills, +151 us, of +160 us in all`.
fn sentence(parts: &[Grown], alone_us: f64, beside_us: f64) -> String {
    let change = beside_us - alone_us;
    let signed = |us: f64| {
        format!(
            "{}{} us",
            if us < 0.0 { "-" } else { "+" },
            digits(us.abs())
        )
    };
    if change.abs() <= NOTHING * alone_us {
        return format!(
            "no wait grows: {} on {} us",
            signed(change),
            digits(alone_us)
        );
    }
    if change < 0.0 {
        return format!("waits less: {} on {} us", signed(change), digits(alone_us));
    }
    let named: Vec<String> = parts
        .iter()
        .take(NAMED)
        .enumerate()
        .filter(|(index, grown)| *index == 0 || grown.by_us >= 0.1 * change)
        .map(|(_, grown)| format!("{}, {}", grown.part, signed(grown.by_us)))
        .collect();
    // What it waits for less, if that is much: it waits elsewhere now.
    let shrunk = parts.last().filter(|part| part.by_us <= -0.1 * change);
    let less = shrunk.map_or(String::new(), |part| {
        format!("; {}, {}", part.part, signed(part.by_us))
    });
    format!(
        "waits for {}{less}, of {} in all",
        named.join("; "),
        signed(change)
    )
}

/// Three significant digits.
fn digits(value: f64) -> String {
    let decimals = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_belong_to_their_job_alone() {
        assert!(is_thread_of("write", "write"));
        assert!(is_thread_of("write 2", "write"));
        assert!(!is_thread_of("write (background)", "write"));
        assert!(!is_thread_of("writer", "write"));
        assert!(is_thread_of("write (background) 3", "write (background)"));
    }

    #[test]
    fn sentences_name_what_grew() {
        let grown = |part: &str, by_us| Grown {
            part: part.to_owned(),
            by_us,
        };
        let parts = [
            grown("dies: programs of finish fills", 151.2),
            grown("host link", 8.8),
        ];
        assert_eq!(
            sentence(&parts, 95.7, 255.7),
            "waits for dies: programs of finish fills, +151 us, of +160 us in all"
        );
        let parts = [grown("channels: reads", 6.0), grown("dies: reads", 4.0)];
        assert_eq!(
            sentence(&parts, 100.0, 110.0),
            "waits for channels: reads, +6.00 us; dies: reads, +4.00 us, of +10.0 us in all"
        );
        let parts = [grown("channels: reads", 30.0), grown("dies: writes", -20.0)];
        assert_eq!(
            sentence(&parts, 100.0, 110.0),
            "waits for channels: reads, +30.0 us; dies: writes, -20.0 us, of +10.0 us in all"
        );
        assert_eq!(
            sentence(&parts, 100.0, 100.1),
            "no wait grows: +0.10 us on 100 us"
        );
        assert_eq!(
            sentence(&parts, 100.0, 90.0),
            "waits less: -10.0 us on 100 us"
        );
    }
}
