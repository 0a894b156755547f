//! Why the slowest commands were slow, and what they would have taken without what they waited
//! for: a second look at a run that is known.
//!
//! The first run says which commands these are ([`RecordLimits::slowest`]). The same point is
//! then run again: the model is deterministic, so the same commands come at the same times. This
//! time everything that happened in their lives is recorded, and nothing else, so that what they
//! waited for does not depend on how much of a trace is kept. In the same run the drive
//! watches them ([`zonelab_ssd::counterfactual`]).

use serde_json::{Value, json};
use zonelab_device::Nanos;
use zonelab_figures::table::{Cell, Column, Style, Table};
use zonelab_ssd::counterfactual::{Counterfactual, Factor, Factors, Unwatched, WatchPlan};
use zonelab_ssd::record::{CommandRecord, RecordLimits};

use super::{PointTrace, Waits};

/// Most records of each kind of a second look: some 1.5 GB. The lives of the commands that one
/// asks about are nearly always a thousandth of that.
const RECORDS: usize = 20_000_000;

/// What is asked about the slowest commands of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// How many commands, of those that move or look at blocks.
    pub slowest: usize,
    /// What is left out, each by itself and then all together; none: nothing is tried.
    pub without: Factors,
    /// How long before the submission of a command that is gone.
    pub ahead: Nanos,
}

/// The commands that a point is run again for.
#[derive(Clone, Debug)]
pub struct Look {
    /// Their lives.
    pub ranges: Vec<(Nanos, Nanos)>,
    /// What the drive watches; `None`: nothing.
    pub plan: Option<WatchPlan>,
}

impl Look {
    /// Most records of each kind.
    pub const RECORDS: usize = RECORDS;

    /// A look at the lives of commands, as a question asks for it.
    #[must_use]
    pub fn at(commands: &[&CommandRecord], question: &Question) -> Self {
        let life = |command: &&CommandRecord| Some((command.submitted, command.completed?.0));
        let number = |command: &&CommandRecord| (command.number, command.submitted);
        Self {
            ranges: commands.iter().filter_map(life).collect(),
            plan: (!question.without.is_empty()).then(|| WatchPlan {
                commands: commands.iter().map(number).collect(),
                ahead: question.ahead,
                without: question.without,
            }),
        }
    }

    /// The times that the look covers.
    #[must_use]
    pub fn limits(&self) -> RecordLimits {
        let from = self.ranges.iter().map(|(from, _)| *from).min();
        let until = self.ranges.iter().map(|(_, until)| *until).max();
        RecordLimits {
            zone_changes: 0,
            from: from.unwrap_or(Nanos::ZERO),
            until: until.unwrap_or(Nanos::ZERO).saturating_add(Nanos(1)),
            ..RecordLimits::everything(RECORDS)
        }
    }
}

/// Why one command was slow.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The command.
    pub record: CommandRecord,
    /// What it is, as `read 16 KiB zone 0 @1024`.
    pub name: String,
    /// Its job.
    pub job: String,
    /// What it took.
    pub latency: Nanos,
    /// Where its time went. `None`: more happened in its time than a second look records.
    pub waits: Option<Waits>,
    /// What it would have taken, if that was asked.
    pub otherwise: Option<Result<Counterfactual, Unwatched>>,
}

/// The slowest commands that move or look at blocks.
pub fn slowest_data(trace: &PointTrace) -> impl Iterator<Item = &CommandRecord> {
    let all = trace.record.slowest.iter();
    all.filter(|command| command.op.nlb() > 0)
}

impl PointTrace {
    /// Explanations of commands from what was recorded of their lives.
    #[must_use]
    pub fn explanations(&self, commands: &[&CommandRecord]) -> Vec<Explanation> {
        let (names, index) = (self.names(), self.index());
        let explain = |command: &&CommandRecord| {
            let number = command.number;
            let found = names.command(number);
            let watched = self.watched.iter().find(|(of, _)| *of == number);
            let completed = command.completed.map_or(command.submitted, |(at, _)| at);
            Explanation {
                record: **command,
                name: names.command_name(&command.op),
                job: self.queue_name(command.queue.0),
                latency: completed.saturating_sub(command.submitted),
                waits: found.and_then(|command| index.waits(&names, command)),
                otherwise: watched.map(|(_, result)| result.clone()),
            }
        };
        commands.iter().map(explain).collect()
    }

    /// Explanations of the slowest commands from this trace alone, if all of their lives are in
    /// it.
    #[must_use]
    pub fn explain_kept(&self) -> Option<Vec<Explanation>> {
        let commands: Vec<&CommandRecord> = slowest_data(self).collect();
        let all = self.explanations(&commands);
        all.iter().all(|one| one.waits.is_some()).then_some(all)
    }
}

impl Explanation {
    /// Rows of what it would have taken: the factor, how long the command waited for it, and what
    /// it would have taken without it. Only factors that make a difference, or that it waited for.
    #[must_use]
    pub fn alternatives(&self) -> Vec<(Factor, Nanos, Nanos)> {
        let Some(Ok(otherwise)) = &self.otherwise else {
            return Vec::new();
        };
        let waited = |factor| {
            let time = self.waits.as_ref()?.factors.get(&factor);
            time.copied()
        };
        let row = |&(factor, took): &(Factor, Nanos)| {
            let waited = waited(factor).unwrap_or_default();
            (took != self.latency || waited > Nanos::ZERO).then_some((factor, waited, took))
        };
        otherwise.without.iter().filter_map(row).collect()
    }

    /// All of it, as data.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let account = self.waits.as_ref().map(|waits| {
            let blocked = waits.blocked_by.iter();
            let blocked: Vec<Value> = blocked
                .map(|(what, time)| json!({ "what": what, "ns": time.0 }))
                .collect();
            let causes = waits.factors.iter();
            let causes: serde_json::Map<String, Value> = causes
                .map(|(factor, time)| (factor.name().to_owned(), json!(time.0)))
                .collect();
            json!({
                "front_end_ns": waits.front_end.0,
                "flash_ns": waits.flash.0,
                "own_line_ns": waits.own_line.0,
                "idle_ns": waits.idle.0,
                "buffer_ns": waits.buffer.0,
                "link_ns": waits.link.0,
                "blocked_by": blocked,
                "by_cause_ns": causes,
            })
        });
        let mut value = json!({
            "number": self.record.number,
            "command": self.name,
            "job": self.job,
            "submitted_ns": self.record.submitted.0,
            "latency_ns": self.latency.0,
            "account": account,
        });
        match &self.otherwise {
            None => {}
            Some(Ok(otherwise)) => {
                let without = otherwise.without.iter();
                let without: serde_json::Map<String, Value> = without
                    .map(|(factor, took)| (factor.name().to_owned(), json!(took.0)))
                    .collect();
                value["without_ns"] = Value::Object(without);
                value["without_all_ns"] = json!(otherwise.without_all.0);
            }
            Some(Err(why)) => value["not_tried"] = json!(why.to_string()),
        }
        value
    }
}

/// What the slowest commands would have taken, as a table; empty if that was not asked.
#[must_use]
pub fn alternatives(all: &[Explanation], style: &Style) -> String {
    if all.iter().all(|one| one.otherwise.is_none()) {
        return String::new();
    }
    let mut table = Table::new([
        Column::text("command"),
        Column::number("number"),
        Column::text("without"),
        Column::number("waited us"),
        Column::number("it takes us"),
        Column::number("difference us"),
    ]);
    for one in all {
        let number = one.record.number.to_string();
        let mut row = |without: &str, waited: &str, took: Nanos| {
            let cells = [
                one.name.clone(),
                number.clone(),
                without.to_owned(),
                waited.to_owned(),
                super::summary::micros(took),
                difference(one.latency, took),
            ];
            table.push(cells.map(Cell::from));
        };
        match &one.otherwise {
            None => {}
            Some(Err(why)) => row(&format!("not tried: {why}"), "", one.latency),
            Some(Ok(otherwise)) => {
                row("nothing", "", one.latency);
                for (factor, waited, took) in one.alternatives() {
                    row(factor.name(), &super::summary::micros(waited), took);
                }
                row("all that was tried", "", otherwise.without_all);
            }
        }
    }
    format!(
        "\nwhat they would have taken (waits overlap, so that differences do not add up)\n{}",
        table.to_text(style)
    )
}

fn difference(latency: Nanos, took: Nanos) -> String {
    match took.cmp(&latency) {
        std::cmp::Ordering::Equal => String::new(),
        std::cmp::Ordering::Less => format!("-{}", super::summary::micros(latency - took)),
        std::cmp::Ordering::Greater => format!("+{}", super::summary::micros(took - latency)),
    }
}
