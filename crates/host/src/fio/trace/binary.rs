//! Binary traces of blktrace: one file, as `blktrace -o - DEVICE` or `blkparse -i FILE -d MERGED`
//! writes it.
//!
//! An event is 48 bytes and its data: magic number and version, sequence, time (ns), sector, bytes,
//! action (the event in the low half, letters in the high), process, device, processor, error,
//! length of the data. Events count as in the text of `blkparse`: D, or Q of a trace without any.

use std::io::BufRead;

use zonelab_device::Nanos;

use super::{Wrong, another, push};
use crate::fio::value::wrong;
use crate::workload::replay::{Action, Operation, Trace};

/// Bytes of an event without its data.
const EVENT_BYTES: usize = 48;
/// The magic number; the version is in its low byte.
const MAGIC: u32 = 0x6561_7400;
const SECTOR_BYTES: u64 = 512;

const QUEUED: u32 = 1;
const ISSUED: u32 = 7;
const READ: u32 = 1;
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;

/// Whether bytes begin such a trace, and whether its numbers are in this order.
pub(super) fn begins(bytes: &[u8]) -> Option<bool> {
    let number = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    let is = |number: u32| number & !0xFF == MAGIC;
    match (is(number), is(number.swap_bytes())) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// Whether an event begins with this word.
fn known(magic: u32) -> Result<(), Wrong> {
    if magic & !0xFF != MAGIC {
        let what = "no event of blktrace: another magic number";
        return Err(wrong(what, "binary traces of one file, unchanged"));
    }
    if magic & 0xFF != 7 {
        let what = format!("version {} of blktrace", magic & 0xFF);
        return Err(wrong(what, "version 7, or the text of `blkparse -i FILE`"));
    }
    Ok(())
}

/// Reads all events.
///
/// # Errors
/// What is wrong, and at which event, from 1.
pub(super) fn read(
    mut input: impl BufRead,
    is_little: bool,
    joins_devices: bool,
    trace: &mut Trace,
) -> Result<(), (u64, Wrong)> {
    let mut device = None;
    let mut has_issues = false;
    let mut event = [0; EVENT_BYTES];
    let mut data = Vec::new();
    for number in 1.. {
        let failed = |error: std::io::Error| (number, wrong(error.to_string(), ""));
        if input.fill_buf().map_err(failed)?.is_empty() {
            break;
        }
        let cut = |_| {
            (
                number,
                wrong("the file ends within an event", "a whole trace"),
            )
        };
        input.read_exact(&mut event).map_err(cut)?;
        let word = |at: usize| {
            let bytes = [event[at], event[at + 1], event[at + 2], event[at + 3]];
            match is_little {
                true => u32::from_le_bytes(bytes),
                false => u32::from_be_bytes(bytes),
            }
        };
        let long = |at: usize| {
            let (first, second) = (u64::from(word(at)), u64::from(word(at + 4)));
            match is_little {
                true => second << 32 | first,
                false => first << 32 | second,
            }
        };
        known(word(0)).map_err(|wrong| (number, wrong))?;
        // The length of the data is the last half word.
        let last = word(44);
        data.resize(
            if is_little { last >> 16 } else { last & 0xFFFF } as usize,
            0,
        );
        input.read_exact(&mut data).map_err(cut)?;
        let (event, letters) = (word(28) & 0xFFFF, word(28) >> 16);
        let is_issue = event == ISSUED;
        if letters & NOTIFY > 0 || !is_issue && (event != QUEUED || has_issues) {
            continue;
        }
        match device {
            Some(first) if first != word(36) && !joins_devices => {
                let name = |id: u32| format!("{},{}", id >> 20, id & 0xF_FFFF);
                return Err((number, another(&name(word(36)), &name(first))));
            }
            _ => device = device.or(Some(word(36))),
        }
        if is_issue && !has_issues {
            has_issues = true;
            trace.clear();
        }
        let bytes = u64::from(word(24));
        let action = match letters {
            of if of & DISCARD > 0 => Action::Trim,
            of if of & FLUSH > 0 && bytes == 0 => Action::Sync,
            of if of & WRITE > 0 => Action::Write,
            of if of & READ > 0 => Action::Read,
            _ => continue,
        };
        if bytes == 0 && action != Action::Sync {
            continue;
        }
        let operation = Operation {
            at: Nanos(long(8)),
            action,
            offset: long(16).saturating_mul(SECTOR_BYTES),
            bytes,
        };
        push(trace, operation, number).map_err(|wrong| (number, wrong))?;
    }
    Ok(())
}
