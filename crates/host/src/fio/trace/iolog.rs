//! Logs of fio, versions 2 and 3 ("TRACE FILE FORMAT" in fio's manual).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use zonelab_device::Nanos;

use super::{Wrong, another, number, push};
use crate::fio::value::shorten;
use crate::workload::replay::{Action, Operation, Trace};

/// Waits that are shorter have no effect, in microseconds, as in fio.
const SHORTEST_WAIT_US: u64 = 100;

/// Reads a log behind its first line.
pub(super) struct Iolog {
    version: u32,
    joins_devices: bool,
    files: BTreeSet<String>,
    /// When the next operation comes, in version 2.
    now: Nanos,
}

impl Iolog {
    pub(super) fn new(version: u32, joins_devices: bool) -> Self {
        Self {
            version,
            joins_devices,
            files: BTreeSet::new(),
            now: Nanos::ZERO,
        }
    }

    pub(super) fn line(&mut self, text: &str, line: u64, trace: &mut Trace) -> Result<(), Wrong> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            return Ok(());
        }
        let (at, words) = match self.version {
            2 => (self.now, &words[..]),
            _ => {
                let us = number(words[0], "time")?;
                (Nanos(us.saturating_mul(1_000)), &words[1..])
            }
        };
        match words {
            [file, action @ ("add" | "open" | "close")] => self.manage(file, action),
            [file, "wait", time, ..] if self.version == 2 => {
                self.is_known(file)?;
                let us = number(time, "time")?;
                if us >= SHORTEST_WAIT_US {
                    self.now = self.now.saturating_add(Nanos(us.saturating_mul(1_000)));
                }
                Ok(())
            }
            [file, action, offset, bytes] => {
                let action = Self::action(action)?;
                self.is_known(file)?;
                let operation = Operation {
                    at,
                    action,
                    offset: number(offset, "offset")?,
                    bytes: number(bytes, "length")?,
                };
                if operation.bytes == 0 && action != Action::Sync {
                    return Err(("nothing: 0 bytes".to_owned(), "at least 1".to_owned()));
                }
                push(trace, operation, line)
            }
            _ => Err((
                format!("\"{}\" is no action", shorten(text)),
                self.valid().to_owned(),
            )),
        }
    }

    const fn valid(&self) -> &'static str {
        match self.version {
            2 => "FILE add|open|close, or FILE read|write|trim|sync|datasync|wait OFFSET BYTES",
            _ => {
                "MICROSECONDS FILE add|open|close, or MICROSECONDS FILE \
                 read|write|trim|sync|datasync OFFSET BYTES"
            }
        }
    }

    fn action(text: &str) -> Result<Action, Wrong> {
        match text {
            "read" => Ok(Action::Read),
            "write" => Ok(Action::Write),
            "trim" => Ok(Action::Trim),
            "sync" | "datasync" => Ok(Action::Sync),
            "wait" => Err((
                "wait is an action of version 2".to_owned(),
                "in version 3, times say when".to_owned(),
            )),
            _ => Err((
                format!("\"{}\" is no action", shorten(text)),
                "read, write, trim, sync, datasync".to_owned(),
            )),
        }
    }

    fn manage(&mut self, file: &str, action: &str) -> Result<(), Wrong> {
        if action != "add" {
            return self.is_known(file);
        }
        let first = self.files.first().filter(|first| *first != file);
        if let (Some(first), false) = (first, self.joins_devices) {
            return Err(another(file, first));
        }
        self.files.insert(file.to_owned());
        Ok(())
    }

    fn is_known(&self, file: &str) -> Result<(), Wrong> {
        match self.files.contains(file) {
            true => Ok(()),
            false => Err((
                format!("the file \"{}\" has not been added", shorten(file)),
                "a line with the action add before".to_owned(),
            )),
        }
    }
}

/// A trace as version 3 of a log, of a device of that name. Times are rounded
/// down to microseconds. Appends, finishes and resets of all zones, for which
/// there is no action, are left out.
#[must_use]
pub fn to_iolog(trace: &Trace, device: &str) -> String {
    // Blanks end a name.
    let device: String = device
        .chars()
        .map(|c| if c.is_whitespace() { '_' } else { c })
        .collect();
    let mut text = format!("fio version 3 iolog\n0 {device} add\n0 {device} open\n");
    let mut last_us = 0;
    for operation in trace.iter() {
        let action = match operation.action {
            Action::Read => "read",
            Action::Write => "write",
            Action::Trim => "trim",
            Action::Sync => "sync",
            Action::Append | Action::ResetAll | Action::Finish => continue,
        };
        last_us = operation.at.0 / 1_000;
        let (offset, bytes) = (operation.offset, operation.bytes);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{last_us} {device} {action} {offset} {bytes}");
    }
    let _ = writeln!(text, "{last_us} {device} close");
    text
}
