//! Drives that put work off until after the run: their numbers are those of a drive that does less.

use serde_json::{Value, json};
use zonelab_device::Nanos;
use zonelab_figures::table::time;
use zonelab_ssd::Drive;
use zonelab_ssd::account::Totals;
use zonelab_ssd::flash::Owed;

use crate::idle::grouped;
use crate::notices::Notice;
use crate::run::PointResult;

/// The least share of all that dies had to do that is worth a sentence if it was put off.
pub const LEAST_SHARE: f64 = 0.01;

/// The same, with what was under way at the end: something always is.
const LEAST_WITH_UNDER_WAY: f64 = 0.03;

/// What the drive of a point had still to do.
pub(crate) fn of_point(result: &PointResult) -> Option<Notice> {
    let drive = result.drive.as_ref()?;
    let debt = drive.debt();
    let text = debt.words(&drive.totals)?;
    Some(Notice::of_point(result, "owed", (debt.share(), text)))
}

/// What a drive owes, beside how long its dies were busy together since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Debt {
    /// What it owes.
    pub owed: Owed,
    /// Busy time of its dies.
    pub busy: Nanos,
}

impl Debt {
    /// What `drive` owes now.
    #[must_use]
    pub fn of(drive: &Drive) -> Self {
        let units = drive.flash().media().ledger().units.iter();
        Self {
            owed: drive.owed(),
            busy: Nanos(units.flatten().sum()),
        }
    }

    /// What is owed in parts of all that dies have to do: from 0, nothing, to 1, everything.
    #[must_use]
    pub fn share(&self) -> f64 {
        let done = self.owed.done(self.busy).0 as f64;
        match self.owed.die_time.0 as f64 {
            0.0 => 0.0,
            left => left / (left + done),
        }
    }

    /// Whether so little is owed that it is worth no sentence.
    fn is_little(&self) -> bool {
        let owed = Owed {
            die_time: self.owed.die_time.saturating_sub(self.owed.under_way),
            ..self.owed
        };
        let put_off = Self { owed, ..*self };
        self.share() < LEAST_WITH_UNDER_WAY && put_off.share() < LEAST_SHARE
    }

    /// What a drive had still to do that did `totals`, in words. `None`: next to nothing.
    #[must_use]
    pub fn words(&self, totals: &Totals) -> Option<String> {
        let (owed, share) = (&self.owed, self.share());
        let dlwa = in_buffer(owed, totals);
        if self.is_little() && dlwa.is_none() {
            return None;
        }
        let parts = [
            (
                owed.stale_blocks,
                format!("{} blocks to be erased", grouped(owed.stale_blocks)),
            ),
            (
                owed.buffered_bytes,
                format!("{} in its write buffer", size(owed.buffered_bytes)),
            ),
            (
                owed.cached_bytes,
                format!("{} in its cache to be folded", size(owed.cached_bytes)),
            ),
            (
                owed.unfilled_bytes,
                format!(
                    "{} of finished zones to be filled",
                    size(owed.unfilled_bytes)
                ),
            ),
            (
                owed.under_way.0,
                format!("{} of work under way", time(owed.under_way.0)),
            ),
        ];
        let parts = parts.into_iter().filter(|(amount, _)| *amount > 0);
        let parts: Vec<String> = parts.map(|(_, text)| text).collect();
        // Beside dies that did less than this, how much less says nothing.
        let compared = match share <= 0.5 {
            true => format!(", {:.0} % of what its dies had to do", share * 100.0),
            false => ", more than all that its dies did".to_owned(),
        };
        let dlwa = dlwa.map_or_else(String::new, |dlwa| format!("; {dlwa}"));
        Some(format!(
            "{} of die time was still owed at the end ({}){compared}: it is in no latency{dlwa}",
            time(owed.die_time.0),
            parts.join(", "),
        ))
    }
}

/// `owed` as it stands in JSON.
#[must_use]
pub fn to_json(owed: &Owed) -> Value {
    json!({
        "stale_blocks": owed.stale_blocks,
        "buffered_bytes": owed.buffered_bytes,
        "cached_bytes": owed.cached_bytes,
        "unfilled_bytes": owed.unfilled_bytes,
        "under_way_ns": owed.under_way.0,
        "unit_ns": owed.die_time.0,
    })
}

/// Why a write amplification below 1 is none, in words: of what was written, a hundredth or more
/// is in no flash yet.
fn in_buffer(owed: &Owed, totals: &Totals) -> Option<String> {
    let dlwa = totals.dlwa()?;
    let held = owed.buffered_bytes as f64;
    (dlwa < 1.0 && held >= LEAST_SHARE * totals.host_write_bytes as f64).then(|| {
        let held = size(owed.buffered_bytes);
        format!(
            "DLWA {dlwa:.3} is of programs until the end, at which {held} were in the write buffer"
        )
    })
}

/// A number of bytes in MiB, rounded up; fewer than ten of them in KiB, unless they are whole.
fn size(bytes: u64) -> String {
    let is_small = bytes < 10 << 20 && !bytes.is_multiple_of(1 << 20);
    match is_small {
        true => format!("{} KiB", grouped(bytes.div_ceil(1 << 10))),
        false => format!("{} MiB", grouped(bytes.div_ceil(1 << 20))),
    }
}
