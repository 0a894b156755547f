//! Reading how fast a job goes, and when its operations are due.

use std::num::NonZeroU64;

use zonelab_config::{Reported, Table};
use zonelab_host::rate::{Counting, Limit};
use zonelab_host::workload::Arrival;

/// How fast a job goes.
pub(super) struct Pace {
    /// Its limit.
    pub(super) limit: Option<Limit>,
    /// Whether its operations are due at times of their own.
    pub(super) arrival: Arrival,
    /// When operations count against the limit, if that is said.
    pub(super) counting: Option<Counting>,
}

/// How fast a job goes: `rate`, `rate_ops`, `rate_counts` and `arrival`.
pub(super) fn pace(table: &Table<'_>) -> Result<Pace, Reported> {
    let arrival = arrival(table);
    let rate = table.rate_bytes_per_s("rate").within(1..=u64::MAX);
    let rate = rate.optional();
    let rate_ops = table.u64("rate_ops").within(1..=u64::MAX).optional();
    let counts = [
        ("issue", Counting::AtIssue),
        ("completion", Counting::AtCompletion),
    ];
    let counting = table.choice("rate_counts", &counts).optional();
    if rate.as_ref().is_ok_and(Option::is_some) {
        table.refuse("rate_ops", "either `rate`, or `rate_ops`")?;
    }
    let per_second = |rate: Option<u64>| rate.and_then(NonZeroU64::new);
    let by_bytes = per_second(rate?).map(Limit::bytes_per_second);
    let by_ops = per_second(rate_ops?).map(Limit::ops_per_second);
    Ok(Pace {
        limit: by_bytes.or(by_ops),
        arrival: arrival?,
        counting: counting?,
    })
}

/// Operations in flight of a job that says nothing else.
pub(super) fn usual_depth(pace: &Result<Pace, Reported>) -> u32 {
    let is_open = pace.as_ref().is_ok_and(|pace| pace.arrival.is_open());
    // What the queue of any drive holds. More wait in the host, and their waiting counts as well.
    if is_open { 127 } else { 1 }
}

/// Whether the operations of a job are due at times of their own.
fn arrival(table: &Table<'_>) -> Result<Arrival, Reported> {
    let kinds = [
        ("closed", Arrival::Closed),
        ("fixed", Arrival::Fixed),
        ("poisson", Arrival::Poisson),
    ];
    let arrival = table.choice("arrival", &kinds).or(Arrival::Closed)?;
    if !arrival.is_open() {
        return Ok(arrival);
    }
    if !table.has("rate") && !table.has("rate_ops") {
        table.refuse(
            "arrival",
            "operations arrive at a rate: say `rate_ops`, or `rate`",
        )?;
    }
    let why = "an operation that is due at a time of its own counts when it is due";
    table.refuse("rate_counts", why)?;
    let transfers = |work| ["read", "write", "append"].contains(&work);
    if !table
        .get("work", |item| item.str().map(transfers))
        .or(true)?
    {
        let why = "reads, writes and appends arrive; zones are managed one after another";
        table.refuse("arrival", why)?;
    }
    Ok(arrival)
}
