//! A trace in words: the busiest resources, the slowest commands.

use std::fmt::Write as _;

use zonelab_device::{Nanos, Op};
use zonelab_figures::table::{Cell, Column, Style, Table};
use zonelab_ssd::account::{Cause, Resource};
use zonelab_ssd::record::CommandRecord;

use super::{Explanation, PointTrace, Waits};

/// Resources that are listed.
const RESOURCES: usize = 6;
/// Commands that are listed.
const COMMANDS: usize = 10;

/// The summary of a trace.
pub(super) fn text(trace: &PointTrace, explained: Option<&[Explanation]>, style: &Style) -> String {
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
    text.push_str(&busiest(trace, style));
    let waits = trace.waits();
    let is_data = |command: &CommandRecord| command.op.nlb() > 0;
    let (mut data, management): (Vec<_>, Vec<_>) = waits
        .into_iter()
        .filter(|(command, _)| command.completed.is_some())
        .partition(|(command, _)| is_data(command));
    let most = match explained.filter(|all| !all.is_empty()) {
        Some(all) => {
            let slow = all.iter();
            data = slow.map(|one| (&one.record, one.waits.clone())).collect();
            all.len()
        }
        None => COMMANDS,
    };
    for (what, list) in [
        ("reads, writes and appends", data),
        ("zone management commands", management),
    ] {
        if !list.is_empty() {
            let list = slowest(trace, list, most, style);
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
    // Drives without an SLC cache have nothing to fold.
    let has_folds = rows.iter().any(|(.., busy)| busy[Cause::Fold as usize] > 0);
    let causes = match has_folds {
        true => &Cause::ALL[..],
        false => &Cause::ALL[..Cause::Fold as usize],
    };
    let names_of: Vec<String> = causes.iter().map(|of| format!("{} %", of.name())).collect();
    let mut columns = vec![Column::text("busiest resource"), Column::number("busy %")];
    columns.extend(names_of.iter().map(|name| Column::number(name)));
    let mut table = Table::new(columns);
    let names = trace.names();
    for (busy, resource, by_cause) in rows.into_iter().take(RESOURCES) {
        let share = |time: u64| Cell::from(format!("{:.1}", 100.0 * time as f64 / window));
        let mut cells = vec![Cell::from(names.resource(resource)), share(busy)];
        cells.extend(by_cause.into_iter().take(causes.len()).map(share));
        table.push(cells);
    }
    table.to_text(style)
}

fn slowest(
    trace: &PointTrace,
    mut list: Vec<(&CommandRecord, Option<Waits>)>,
    most: usize,
    style: &Style,
) -> String {
    let latency = |command: &CommandRecord| {
        let end = command.completed.map_or(command.submitted, |(at, _)| at);
        end.saturating_sub(command.submitted)
    };
    // Stable: equals stay in the order of their numbers.
    list.sort_by_key(|(command, _)| std::cmp::Reverse(latency(command)));
    let mut table = Table::new([
        Column::text("command"),
        Column::number("number"),
        Column::text("job"),
        Column::number("submitted us"),
        Column::number("latency us"),
        Column::text("where the time went"),
    ]);
    let names = trace.names();
    for (command, waits) in list.into_iter().take(most) {
        table.push(
            [
                names.command_name(&command.op),
                command.number.to_string(),
                trace.queue_name(command.queue.0),
                micros(command.submitted),
                micros(latency(command)),
                waits.map_or_else(
                    || "not all of it was recorded".to_owned(),
                    |waits| parts(&command.op, &waits),
                ),
            ]
            .map(Cell::from),
        );
    }
    table.to_text(style)
}

pub(super) fn micros(time: Nanos) -> String {
    format!("{}.{:03}", time.0 / 1_000, time.0 % 1_000)
}

/// The parts of a latency, the longest wait first.
fn parts(op: &Op, waits: &Waits) -> String {
    let mut parts: Vec<(Nanos, String)> = waits
        .blocked_by
        .iter()
        .map(|(by, time)| (*time, format!("{by} {time}")))
        .collect();
    let own = if op.nlb() > 0 { "own flash" } else { "flash" };
    for (time, what) in [
        (waits.flash, own),
        (waits.own_line, "behind own operations"),
        (waits.front_end, "front end"),
        (waits.idle, "idle or holding back"),
        (waits.buffer, "room in the write buffer"),
        (waits.link, "link"),
    ] {
        if time > Nanos::ZERO {
            parts.push((time, format!("{what} {time}")));
        }
    }
    parts.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let shown: Vec<String> = parts.iter().take(4).map(|(_, part)| part.clone()).collect();
    let rest = parts.len().saturating_sub(4);
    let more = if rest > 0 {
        format!("; {rest} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join("; "))
}
