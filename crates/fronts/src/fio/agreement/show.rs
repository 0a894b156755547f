//! A comparison as a table and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use zonelab_host::stats::Latency;
use zonelab_host::workload::directed::Direction;
use zonelab_lab::table::{Column, Style, Table, number};

use super::{Agreement, Estimated, Line, Metric, Side, TOLERANCE_MAX, Verdict};

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Percentiles of empty commands and of lateness that are shown.
const SHOWN: [f64; 3] = [50.0, 99.0, 99.9];

impl Metric {
    /// Name in output.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Throughput => "throughput".to_owned(),
            Self::MeanLatency => "mean latency".to_owned(),
            Self::Percentile(percent) => format!("P{percent}"),
        }
    }

    /// Unit of what is shown, and how many of the unit of values make one.
    const fn unit(self) -> (&'static str, f64) {
        match self {
            Self::Throughput => ("/s", 1.0),
            Self::MeanLatency | Self::Percentile(_) => ("us", 1e3),
        }
    }
}

impl Verdict {
    /// Name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "DIFFERS",
            Self::Undecided => "undecided",
            Self::Unjudged => "cannot be judged here",
        }
    }
}

impl Agreement {
    /// The comparison for people: a table, what an empty command takes on either
    /// device, and a count of the verdicts.
    #[must_use]
    pub fn to_text(&self, style: &Style) -> String {
        let mut table = Table::new([
            Column::text("job"),
            Column::word("metric"),
            Column::word("unit"),
            Column::number("first"),
            Column::number("second"),
            Column::number("difference"),
            Column::number("known to lie in"),
            Column::number("tolerated"),
            Column::word("verdict"),
        ]);
        for line in &self.lines {
            table.push(line.cells().map(Into::into));
        }
        let mut text = table.to_text(style);
        // Writing to a string does not fail.
        for (name, side) in ["first", "second"].into_iter().zip(&self.sides) {
            let empty = shown(&side.empty);
            let _ = writeln!(text, "{name}: {}", side.device);
            let _ = writeln!(text, "  an empty command takes {empty}");
            if let Some(late) = &side.lateness {
                let late = shown(late);
                let _ = writeln!(text, "  what was due was late by {late}");
            }
        }
        let [agree, differ, undecided, unjudged] = [
            Verdict::Agrees,
            Verdict::Differs,
            Verdict::Undecided,
            Verdict::Unjudged,
        ]
        .map(|of| self.count(of));
        let _ = writeln!(
            text,
            "{agree} agree within {}, {differ} differ, {undecided} undecided (a longer run \
             would tell)",
            percent(self.agrees_within())
        );
        if unjudged > 0 {
            let _ = writeln!(
                text,
                "{unjudged} cannot be judged here: an empty command takes so long, or so much \
                 longer now and then, that more than {} would be tolerated (a host with nothing \
                 else to do, a shorter way, or longer commands would tell)",
                percent(TOLERANCE_MAX)
            );
        }
        if let Some(why) = &self.too_busy {
            let _ = writeln!(
                text,
                "this host was too busy to judge: {why}. What differs may be the host and not a \
                 device: again, when it has nothing else to do"
            );
        }
        text
    }

    /// The comparison for programs.
    #[must_use]
    pub fn to_json(&self) -> String {
        let value = json!({
            "schema": SCHEMA,
            "tolerance": self.tolerance,
            "devices": self.sides.iter().map(Side::to_json).collect::<Vec<_>>(),
            "metrics": self.lines.iter().map(Line::to_json).collect::<Vec<_>>(),
            "agree": self.count(Verdict::Agrees),
            "differ": self.count(Verdict::Differs),
            "undecided": self.count(Verdict::Undecided),
            "unjudged": self.count(Verdict::Unjudged),
            "too_busy": self.too_busy,
        });
        let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn shown(latency: &Latency) -> String {
    let at = |percent: f64| {
        let value = latency.percentile(percent).unwrap_or_default();
        format!("P{percent} {} us", number(value.0 as f64 / 1e3))
    };
    SHOWN.map(at).join(", ")
}

fn to_json(latency: &Latency) -> Value {
    let percentiles = SHOWN.map(|percent| {
        let value = latency.percentile(percent).unwrap_or_default();
        (format!("{percent}"), json!(value.0))
    });
    json!(serde_json::Map::from_iter(percentiles))
}

impl Side {
    fn to_json(&self) -> Value {
        json!({
            "device": self.device,
            "empty_command_ns": to_json(&self.empty),
            "lateness_ns": self.lateness.as_ref().map(to_json),
        })
    }
}

impl Line {
    fn cells(&self) -> [String; 9] {
        let (unit, size) = self.metric.unit();
        let [first, second] = self.values.map(|value| match value {
            Some(value) => number(value.value / size),
            None => "-".to_owned(),
        });
        let (difference, interval) = match self.difference {
            None => ("-".to_owned(), "-".to_owned()),
            Some(Estimated { value, low, high }) => (
                signed_percent(value),
                match (low, high) {
                    (Some(low), Some(high)) => range(low, high),
                    _ => "not known".to_owned(),
                },
            ),
        };
        let [least, most] = self.tolerated;
        [
            format!("{} ({})", self.job, self.direction.name()),
            self.metric.name(),
            unit.to_owned(),
            first,
            second,
            difference,
            interval,
            range(least, most),
            self.verdict.name().to_owned(),
        ]
    }

    fn to_json(&self) -> Value {
        let value = |of: &Option<Estimated>| {
            of.map(
                |Estimated { value, low, high }| json!({"value": value, "low": low, "high": high}),
            )
        };
        json!({
            "job": self.job,
            "direction": Direction::name(self.direction),
            "metric": self.metric.name(),
            "unit": match self.metric {
                Metric::Throughput => "operations/s",
                _ => "ns",
            },
            "first": value(&self.values[0]),
            "second": value(&self.values[1]),
            "difference": value(&self.difference),
            "tolerated": self.tolerated,
            "verdict": self.verdict.name().to_lowercase(),
        })
    }
}

fn range(low: f64, high: f64) -> String {
    format!("{} to {}", signed_percent(low), signed_percent(high))
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

/// With a sign and at most two decimals: 3 % is never shown for 3.03 %.
fn signed_percent(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() > 1e6 {
        return "-".to_owned();
    }
    match value.abs() < 100.0 {
        true => format!("{value:+.2} %"),
        false => format!("{value:+.0} %"),
    }
}
