//! Drives that put work off until after the run: their numbers are those of a drive that does less.

use zonelab_device::Nanos;
use zonelab_figures::table::time;
use zonelab_ssd::flash::Owed;

use crate::idle::grouped;
use crate::notices::Notice;
use crate::run::PointResult;

/// The least share of what dies did in a run that is worth a sentence if it was put off.
pub const LEAST_SHARE: f64 = 0.01;

/// What the drive of a point had still to do.
pub(crate) fn of_point(result: &PointResult) -> Option<Notice> {
    let drive = result.drive.as_ref()?;
    let (share, text) = words(&drive.owed, Nanos(drive.busy_ns.1.values().sum()))?;
    Some(Notice::of_point(result, "owed", (share, text)))
}

/// What a drive had still to do, whose dies worked for `done` together: in parts of that, and in
/// words. `None`: next to nothing.
#[must_use]
pub fn words(owed: &Owed, done: Nanos) -> Option<(f64, String)> {
    // Of dies that did nothing it is all.
    let share = match (owed.die_time, done) {
        (Nanos::ZERO, _) => 0.0,
        (_, Nanos::ZERO) => f64::MAX,
        (owed, done) => owed.0 as f64 / done.0 as f64,
    };
    if share < LEAST_SHARE {
        return None;
    }
    let mib = |bytes: u64| format!("{} MiB", grouped(bytes.div_ceil(1 << 20)));
    let parts = [
        (
            owed.stale_blocks,
            format!("{} blocks to be erased", grouped(owed.stale_blocks)),
        ),
        (
            owed.cached_bytes,
            format!("{} in its cache to be folded", mib(owed.cached_bytes)),
        ),
        (
            owed.unfilled_bytes,
            format!(
                "{} of finished zones to be filled",
                mib(owed.unfilled_bytes)
            ),
        ),
    ];
    let parts = parts.into_iter().filter(|(amount, _)| *amount > 0);
    let parts: Vec<String> = parts.map(|(_, text)| text).collect();
    // Of dies that did next to nothing, a multiple says nothing.
    let compared = match share < 2.0 {
        true => format!(", {:.0} % of what its dies did", share * 100.0),
        false => ", more than all that its dies did".to_owned(),
    };
    let text = format!(
        "{} of die time was still owed at the end ({}){compared}: it is in no latency",
        time(owed.die_time.0),
        parts.join(", "),
    );
    Some((share, text))
}
