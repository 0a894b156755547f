//! Why the slowest commands were slow, and what they would have taken without what they waited
//! for.
//!
//! What they waited for is worked out from what was recorded of their lives: of a trace, if all of
//! them are in it, otherwise of a run that records nothing else ([`RecordLimits::lives`]), so that
//! it does not depend on how much of a trace is kept. What they would have taken needs one more
//! run, in which the drive watches them ([`zonelab_ssd::counterfactual`]): the model is
//! deterministic, so the same commands come at the same times.

use serde_json::{Value, json};
use zonelab_device::Nanos;
use zonelab_figures::table::{Cell, Column, Style, Table, time};
use zonelab_ssd::counterfactual::{Counterfactual, Factor, Factors, Unwatched, WatchPlan};
use zonelab_ssd::record::{CommandRecord, SlowestOf};

use super::PointTrace;
use super::waits::{Index, Waits};

/// What is asked about the slowest commands of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// How many commands.
    pub slowest: SlowestOf,
    /// What is left out of those that move or look at blocks, each by itself and then all
    /// together; none: nothing is tried.
    pub without: Factors,
    /// How long before the submission of a command that is gone.
    pub ahead: Nanos,
}

impl Question {
    /// What the drive watches in a run that is known to have these slowest commands; `None`:
    /// nothing.
    #[must_use]
    pub fn plan(&self, slowest: &[Explanation]) -> Option<WatchPlan> {
        let data = slowest.iter().filter(|one| one.is_data());
        let commands: Vec<_> = data
            .map(|one| (one.record.number, one.record.submitted))
            .collect();
        (!self.without.is_empty() && !commands.is_empty()).then_some(WatchPlan {
            commands,
            ahead: self.ahead,
            without: self.without,
        })
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
    /// Where its time went. `None`: not all that happened in its time was recorded.
    pub waits: Option<Waits>,
    /// What it would have taken, if that was asked.
    pub otherwise: Option<Result<Counterfactual, Unwatched>>,
}

impl PointTrace {
    /// The slowest commands, with what was recorded of their lives: those that move or look at
    /// blocks, the slowest first, then the others.
    #[must_use]
    pub fn explain(&self) -> Vec<Explanation> {
        let (names, index) = (self.names(), Index::new(&self.record, self.covered()));
        let explain = |record: &CommandRecord| {
            let watched = self.watched.iter().find(|(of, _)| *of == record.number);
            let completed = record.completed.map_or(record.submitted, |(at, _)| at);
            Explanation {
                record: *record,
                name: names.command_name(&record.op),
                job: self.queue_name(record.queue.0),
                latency: completed.saturating_sub(record.submitted),
                waits: index.waits(&names, record),
                otherwise: watched.map(|(_, result)| result.clone()),
            }
        };
        self.record.slowest.iter().map(explain).collect()
    }
}

impl Explanation {
    /// Whether the command moves or looks at blocks.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.record.op.nlb() > 0
    }

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
        Column::number("waited"),
        Column::number("it takes"),
        Column::number("difference"),
    ]);
    for one in all {
        let number = one.record.number.to_string();
        let mut row = |without: &str, waited: &str, took: Nanos| {
            let cells = [
                one.name.clone(),
                number.clone(),
                without.to_owned(),
                waited.to_owned(),
                time(took.0),
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
                    row(factor.name(), &time(waited.0), took);
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
        std::cmp::Ordering::Less => format!("-{}", time((latency - took).0)),
        std::cmp::Ordering::Greater => format!("+{}", time((took - latency).0)),
    }
}
