//! Reading when the operations of a job are due.

use zonelab_config::{Reported, Table};
use zonelab_host::workload::Arrival;

/// Operations in flight of a job that says nothing else.
pub(super) const fn usual_depth(arrival: &Result<Arrival, Reported>) -> u32 {
    match arrival {
        Ok(Arrival::Closed) | Err(_) => 1,
        // More wait in the host, and their waiting counts as well.
        Ok(Arrival::Fixed | Arrival::Poisson) => 512,
    }
}

/// Whether the operations of a job are due at times of their own: `arrival`.
pub(super) fn arrival(table: &Table<'_>) -> Result<Arrival, Reported> {
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
