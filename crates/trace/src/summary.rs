//! A trace in words: the busiest resources, the slowest commands.

use std::fmt::Write as _;

use zonelab_device::Nanos;
use zonelab_figures::table::{Cell, Column, Style, Table, time};
use zonelab_ssd::account::{Cause, Resource};

use super::{Explanation, PointTrace, Waits};

/// Resources that are listed.
const RESOURCES: usize = 6;
/// Parts of a latency that are named.
const PARTS: usize = 4;

/// The summary of a trace.
pub(super) fn text(trace: &PointTrace, slowest: &[Explanation], style: &Style) -> String {
    let (from, until) = trace.covered();
    let mut text = format!("{}\n", trace.title);
    let commands = trace.record.commands.records.len();
    let spans = trace.record.spans.records.len();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{from} to {until}: {commands} commands, {spans} busy times of channels and dies, {} background operations",
        trace.record.background.records.len(),
    );
    if let Some(dropped) = trace.dropped() {
        let _ = writeln!(text, "dropped: {dropped}");
    }
    text.push('\n');
    if from > Nanos::ZERO || until < trace.end {
        let (from, until, end) = (time(from.0), time(until.0), time(trace.end.0));
        let _ = writeln!(
            text,
            "of {from} to {until}, which is what the trace holds of {end}:"
        );
    }
    text.push_str(&busiest(trace, style));
    for (what, is_data) in [
        ("reads, writes and appends", true),
        ("zone management commands", false),
    ] {
        let list = slowest.iter().filter(|one| one.is_data() == is_data);
        let list: Vec<_> = list.collect();
        if !list.is_empty() {
            let list = table_of(&list, style);
            let _ = write!(text, "\nslowest {what}\n{list}");
        }
    }
    text
}

fn busiest(trace: &PointTrace, style: &Style) -> String {
    let (from, until) = trace.covered();
    let window = until.saturating_sub(from).0.max(1) as f64;
    let mut rows: Vec<(u64, Resource, [u64; Cause::ALL.len()])> = Vec::new();
    for (resource, spans) in trace.index().lines() {
        let mut busy = [0; Cause::ALL.len()];
        for span in spans {
            let time = span.end.min(until).saturating_sub(span.start.max(from));
            busy[span.cause as usize] += time.0;
        }
        rows.push((busy.iter().sum(), resource, busy));
    }
    // Stable: equals stay in the order of their numbers.
    rows.sort_by_key(|(busy, ..)| std::cmp::Reverse(*busy));
    rows.truncate(RESOURCES);
    let is_met = |cause: &Cause| rows.iter().any(|(.., busy)| busy[*cause as usize] > 0);
    let causes: Vec<Cause> = Cause::ALL.into_iter().filter(is_met).collect();
    let names_of: Vec<String> = causes.iter().map(|of| format!("{} %", of.name())).collect();
    let mut columns = vec![Column::text("busiest resource"), Column::number("busy %")];
    columns.extend(names_of.iter().map(|name| Column::number(name)));
    let mut table = Table::new(columns);
    let names = trace.names();
    for (busy, resource, by_cause) in rows {
        let share = |time: u64| Cell::from(format!("{:.1}", 100.0 * time as f64 / window));
        let mut cells = vec![Cell::from(names.resource(resource)), share(busy)];
        cells.extend(causes.iter().map(|&cause| share(by_cause[cause as usize])));
        table.push(cells);
    }
    table.to_text(style)
}

fn table_of(list: &[&Explanation], style: &Style) -> String {
    let mut table = Table::new([
        Column::text("command"),
        Column::number("number"),
        Column::text("job"),
        Column::number("submitted"),
        Column::number("latency"),
        Column::text("where the time went"),
    ]);
    for one in list {
        table.push(
            [
                one.name.clone(),
                one.record.number.to_string(),
                one.job.clone(),
                one.record.submitted.to_string(),
                time(one.latency.0),
                one.where_the_time_went(),
            ]
            .map(Cell::from),
        );
    }
    table.to_text(style)
}

impl Explanation {
    /// The parts of the latency in words, the longest first.
    #[must_use]
    pub fn where_the_time_went(&self) -> String {
        match &self.waits {
            Some(waits) => parts(self.is_data(), waits),
            None => "more happened in its time than is recorded".to_owned(),
        }
    }
}

/// The parts of a latency, the longest wait first.
fn parts(is_data: bool, waits: &Waits) -> String {
    let mut parts: Vec<(Nanos, String)> = waits
        .blocked_by
        .iter()
        .map(|(by, of)| (*of, format!("{by} {}", time(of.0))))
        .collect();
    let own = if is_data { "own flash" } else { "flash" };
    for (of, what) in [
        (waits.flash, own),
        (waits.own_line, "behind own operations"),
        (waits.front_end, "front end"),
        (waits.idle, "idle or holding back"),
        (waits.buffer, "room in the write buffer"),
        (waits.link, "link"),
    ] {
        if of > Nanos::ZERO {
            parts.push((of, format!("{what} {}", time(of.0))));
        }
    }
    parts.sort_by_key(|(of, _)| std::cmp::Reverse(*of));
    let rest = parts.split_off(parts.len().min(PARTS));
    let mut shown: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    if !rest.is_empty() {
        let together: u64 = rest.iter().map(|(of, _)| of.0).sum();
        shown.push(format!("{} more, {}", rest.len(), time(together)));
    }
    shown.join("; ")
}
