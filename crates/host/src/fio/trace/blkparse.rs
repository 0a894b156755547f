//! The text of `blkparse` in its default form:
//!
//! ```text
//! DEVICE CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR + SECTORS [PROCESS]
//!   8,0    3     1    0.000000000   697  D   W  223490 + 8 [kjournald]
//! ```
//!
//! Operations are the events D (issued to the driver), or, of a trace without
//! any, Q (queued). Sectors have 512 bytes.

use zonelab_device::Nanos;

use super::{Wrong, another, number, push};
use crate::fio::value::shorten;
use crate::workload::replay::{Action, Operation, Trace};

const SECTOR_BYTES: u64 = 512;

/// Reads the lines.
pub(super) struct Blkparse {
    joins_devices: bool,
    device: Option<String>,
    /// There was a D: Q does not count.
    has_issues: bool,
    /// The summary behind the events has begun.
    is_over: bool,
}

/// Whether a line is an event: it begins with the numbers of a device.
pub(super) fn is_line(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = first.split_once(',');
    numbers.is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

impl Blkparse {
    pub(super) const fn new(joins_devices: bool) -> Self {
        Self {
            joins_devices,
            device: None,
            has_issues: false,
            is_over: false,
        }
    }

    pub(super) fn line(&mut self, text: &str, line: u64, trace: &mut Trace) -> Result<(), Wrong> {
        if self.is_over || text.is_empty() {
            return Ok(());
        }
        if !is_line(text) {
            // `CPU0 (sda):` or `Total (sda):`.
            self.is_over = text.starts_with("CPU") || text.starts_with("Total");
            let is_note = self.is_over || text.starts_with("Input file");
            return if is_note { Ok(()) } else { Err(no_event(text)) };
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let [device, _, _, time, _, action, rwbs, place @ ..] = &words[..] else {
            return match words.get(5) {
                // Some events have nothing behind their action.
                Some(action) if !matches!(*action, "D" | "Q") => Ok(()),
                _ => Err(no_event(text)),
            };
        };
        let is_issue = *action == "D";
        if !is_issue && (*action != "Q" || self.has_issues) {
            return Ok(());
        }
        match &self.device {
            Some(first) if first != device && !self.joins_devices => {
                return Err(another(device, first));
            }
            Some(_) => {}
            None => self.device = Some((*device).to_owned()),
        }
        if is_issue && !self.has_issues {
            self.has_issues = true;
            trace.clear();
        }
        let Some(rwbs) = Rwbs::read(rwbs)? else {
            return Ok(());
        };
        let at = seconds(time)?;
        let (offset, bytes) = match place {
            [sector, "+", sectors, ..] => {
                let too_far = || {
                    (
                        format!("sector {sector} + {sectors} is too far"),
                        String::new(),
                    )
                };
                let [sector, sectors] = [number(sector, "sector")?, number(sectors, "count")?];
                let bytes = |sectors: u64| sectors.checked_mul(SECTOR_BYTES).ok_or_else(too_far);
                (bytes(sector)?, bytes(sectors)?)
            }
            _ => (0, 0),
        };
        if rwbs.flushes_first {
            let sync = Operation {
                at,
                action: Action::Sync,
                offset,
                bytes: 0,
            };
            push(trace, sync, line)?;
        }
        let needs_bytes = matches!(
            rwbs.action,
            Some(Action::Read | Action::Write | Action::Append | Action::Trim)
        );
        match rwbs.action {
            // Commands of the driver, and flushes written as writes of nothing.
            Some(_) if needs_bytes && bytes == 0 => Ok(()),
            Some(action) => {
                let operation = Operation {
                    at,
                    action,
                    offset,
                    bytes,
                };
                push(trace, operation, line)
            }
            None => Ok(()),
        }
    }
}

/// What the letters of an event say.
struct Rwbs {
    action: Option<Action>,
    flushes_first: bool,
}

impl Rwbs {
    /// `None`: nothing that is replayed.
    fn read(text: &str) -> Result<Option<Self>, Wrong> {
        let (flushes_first, rest) = match text.strip_prefix('F') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut letters = rest.chars();
        let action = match letters.next() {
            Some('R') => Action::Read,
            Some('W') => Action::Write,
            Some('D') => Action::Trim,
            // Zone operations: ZA append, ZR reset, ZRA reset all, ZF finish; of
            // the others (ZO open, ZC close) nothing remains to be done.
            Some('Z') => match letters.as_str() {
                more if more.starts_with('A') => Action::Append,
                more if more.starts_with("RA") => Action::ResetAll,
                more if more.starts_with('R') => Action::Trim,
                more if more.starts_with('F') => Action::Finish,
                _ => return Ok(None),
            },
            // F alone, or in front of nothing (N), of another F, or of flags.
            Some('F' | 'N' | 'S' | 'M' | 'A') | None if flushes_first => {
                return Ok(Some(Self {
                    action: None,
                    flushes_first,
                }));
            }
            Some('N') => return Ok(None),
            _ => {
                let what = format!("\"{}\" is no operation", shorten(text));
                return Err((what, "letters as in R, WS, FWFS, D, F, ZR".to_owned()));
            }
        };
        Ok(Some(Self {
            action: Some(action),
            flushes_first,
        }))
    }
}

/// `12.345678901` in nanoseconds.
fn seconds(text: &str) -> Result<Nanos, Wrong> {
    let wrong = || {
        let what = format!("\"{}\" is no time", shorten(text));
        (
            what,
            "seconds with nanoseconds, as in 0.000001234".to_owned(),
        )
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 {
        return Err(wrong());
    }
    let whole = number(whole, "time")?;
    let nanos = match fraction {
        "" => 0,
        digits => number(digits, "time")? * 10_u64.pow(9 - digits.len() as u32),
    };
    let total = whole.checked_mul(1_000_000_000);
    let total = total.and_then(|ns| ns.checked_add(nanos));
    total.map(Nanos).ok_or_else(wrong)
}

fn no_event(text: &str) -> Wrong {
    (
        format!("\"{}\" is no event of blkparse", shorten(text)),
        "DEVICE CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR + SECTORS, its default form".to_owned(),
    )
}
