//! Finishes by writes of the host, as an experiment asks for them.

use std::fmt;

use zonelab_config::units::fmt_size;
use zonelab_config::{Problem, Reported, Table};
use zonelab_device::Nanos;
use zonelab_host::softfinish::{SoftFinish, SoftFinishError, max_transfer_lbas};

use super::read::time;

/// How the host finishes zones.
#[derive(Clone, PartialEq)]
pub struct SoftTemplate {
    /// Bytes of one write.
    pub granularity_bytes: u64,
    /// From the completion of a write to the next.
    pub pause: Nanos,
    /// Where the granularity is stated: whether it is right depends on the drive.
    granularity_at: Problem,
}

/// Results carry it: without lines of the file.
impl fmt::Debug for SoftTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SoftTemplate")
            .field("granularity_bytes", &self.granularity_bytes)
            .field("pause", &self.pause)
            .finish()
    }
}

impl SoftTemplate {
    /// The softfinish on a drive with logical blocks of `lba_bytes` that moves
    /// at most `max_transfer_bytes` with one command.
    ///
    /// # Errors
    /// The drive does not take writes of that size: the line that asks for it,
    /// and the range.
    pub fn resolve(&self, lba_bytes: u32, max_transfer_bytes: u32) -> Result<SoftFinish, Problem> {
        let lba = u64::from(lba_bytes);
        let max_lbas = max_transfer_lbas(max_transfer_bytes, lba_bytes);
        let granularity = self.granularity_bytes;
        let wrong = |what: &str| Problem {
            what: format!("{} {what}", fmt_size(granularity)),
            valid: format!(
                "{} to {}, in whole logical blocks of {lba_bytes} bytes",
                fmt_size(lba),
                fmt_size(u64::from(max_lbas) * lba)
            ),
            ..self.granularity_at.clone()
        };
        if !granularity.is_multiple_of(lba) {
            return Err(wrong("is no multiple of the logical block"));
        }
        let lbas = u32::try_from(granularity / lba).unwrap_or(u32::MAX);
        SoftFinish::new(lbas, self.pause, max_lbas).map_err(|error| match error {
            SoftFinishError::Granularity { .. } => wrong("is out of range"),
            SoftFinishError::Pause { .. } => wrong(&format!("with this pause: {error}")),
        })
    }
}

/// How the host does a finish, if it does: the table `soft`.
pub(super) fn soft(table: &Table<'_>) -> Result<Option<SoftTemplate>, Reported> {
    const PAUSE: (u64, &str) = (SoftFinish::PAUSE_MAX.0, "60s");
    if !table.is_present() {
        return Ok(None);
    }
    let granularity = table.get("granularity", |item| {
        Ok((item.size_bytes()?, item.problem("", "")))
    });
    let granularity = granularity.required();
    let pause = time(table, "pause", PAUSE).or(0);
    let (granularity_bytes, granularity_at) = granularity?;
    Ok(Some(SoftTemplate {
        granularity_bytes,
        pause: Nanos(pause?),
        granularity_at,
    }))
}
