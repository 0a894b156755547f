//! Traces that jobs replay: fio's own logs (`read_iolog`, `write_iolog`) and the
//! text of `blkparse`.
//!
//! A trace is read line by line and kept as a [`Trace`], 24 bytes for each
//! operation, however large its file is. Files come from outside, as those of
//! `include` do.

mod blkparse;
mod iolog;
mod options;

use std::io::{BufRead, Read as _};

use zonelab_config::{Place, Problem};

use super::value::shorten;
use crate::workload::replay::{Operation, Trace, TraceFull};
use blkparse::Blkparse;
use iolog::Iolog;

pub use iolog::to_iolog;
pub(super) use options::ReplayOptions;

/// Bytes of a line at most: longer ones are of no trace.
const MAX_LINE_BYTES: u64 = 4_096;

/// What is wrong with a line, and what would be right.
type Wrong = super::value::Wrong;

/// Reads a trace, in any of the forms.
///
/// `joins_devices`: operations on several devices (or files) are all for one, as
/// with `replay_redirect`; otherwise they are refused.
///
/// # Errors
/// The first line that is wrong, or the file cannot be read.
pub fn read_trace(
    file: &str,
    mut input: impl BufRead,
    joins_devices: bool,
) -> Result<Trace, Problem> {
    let mut reader = Reader {
        trace: Trace::new(file),
        form: Form::Unknown,
        joins_devices,
    };
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let mut limited = (&mut input).take(MAX_LINE_BYTES);
        let read = limited
            .read_until(b'\n', &mut bytes)
            .map_err(|error| Problem::of_file(file, error.to_string(), ""))?;
        if read == 0 {
            break;
        }
        let is_too_long = read as u64 == MAX_LINE_BYTES && bytes.last() != Some(&b'\n');
        let done = match is_too_long {
            true => Err((
                format!("a line of more than {MAX_LINE_BYTES} bytes"),
                FORMS.to_owned(),
            )),
            // Names of processes are any bytes.
            false => reader.line(String::from_utf8_lossy(&bytes).trim(), line),
        };
        if let Err((what, valid)) = done {
            let place = Place::Line {
                line: usize::try_from(line).unwrap_or(usize::MAX),
                column: 1,
            };
            return Err(Problem {
                file: file.to_owned(),
                place,
                key: String::new(),
                what,
                valid,
            });
        }
    }
    reader.finish(file)
}

const FORMS: &str = "a log of fio begins with \"fio version 2 iolog\" or \"fio version 3 iolog\"; \
                     of blktrace, the text of `blkparse -i FILE` is read";

/// The form of a trace, and where its reader is.
enum Form {
    Unknown,
    Iolog(Iolog),
    Blkparse(Blkparse),
}

struct Reader {
    trace: Trace,
    form: Form,
    joins_devices: bool,
}

impl Reader {
    fn line(&mut self, text: &str, line: u64) -> Result<(), Wrong> {
        match &mut self.form {
            Form::Iolog(iolog) => iolog.line(text, line, &mut self.trace),
            Form::Blkparse(blkparse) => blkparse.line(text, line, &mut self.trace),
            Form::Unknown if text.is_empty() => Ok(()),
            Form::Unknown => {
                self.form = self.form_of(text)?;
                match self.form {
                    Form::Blkparse(_) => self.line(text, line),
                    _ => Ok(()),
                }
            }
        }
    }

    fn form_of(&self, text: &str) -> Result<Form, Wrong> {
        if let Some(rest) = text.strip_prefix("fio version ") {
            return match rest.split_whitespace().collect::<Vec<_>>()[..] {
                ["2", "iolog"] => Ok(Form::Iolog(Iolog::new(2, self.joins_devices))),
                ["3", "iolog"] => Ok(Form::Iolog(Iolog::new(3, self.joins_devices))),
                _ => Err((
                    format!("\"{}\" is not supported", shorten(text)),
                    "versions 2 and 3 of iolog".to_owned(),
                )),
            };
        }
        if blkparse::is_line(text) {
            return Ok(Form::Blkparse(Blkparse::new(self.joins_devices)));
        }
        // Its magic number, 0x65617400, in the byte order of most machines.
        let what = match text.get(1..4) == Some("tae") {
            true => "this is a binary trace of blktrace".to_owned(),
            false => format!("\"{}\" begins no trace", shorten(text)),
        };
        Err((what, FORMS.to_owned()))
    }

    fn finish(mut self, file: &str) -> Result<Trace, Problem> {
        match self.form {
            Form::Unknown => return Err(Problem::of_file(file, "an empty file", FORMS)),
            Form::Iolog(_) => {}
            Form::Blkparse(_) => self.trace.begin_at_first(),
        }
        if self.trace.is_empty() {
            let what = "a trace without operations";
            return Err(Problem::of_file(
                file,
                what,
                "reads, writes, trims or syncs",
            ));
        }
        Ok(self.trace)
    }
}

/// Adds an operation.
fn push(trace: &mut Trace, operation: Operation, line: u64) -> Result<(), Wrong> {
    trace.push(operation, line).map_err(|full| match full {
        TraceFull::Bytes => {
            let what = format!("{} bytes in one operation", operation.bytes);
            (what, format!("at most {}", Trace::MAX_BYTES))
        }
        TraceFull::Operations => {
            let what = format!("more than {} operations", Trace::MAX_OPERATIONS);
            (what, "split the trace".to_owned())
        }
    })
}

/// A whole number of a line.
fn number(text: &str, what: &str) -> Result<u64, Wrong> {
    // `parse` takes a sign too.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    number.ok_or_else(|| {
        let what = format!("\"{}\" is no {what}", shorten(text));
        (what, "a whole number".to_owned())
    })
}

/// The second device of a trace.
fn another(name: &str, first: &str) -> Wrong {
    (
        format!(
            "\"{}\" is another device than {}",
            shorten(name),
            shorten(first)
        ),
        "a trace of one device, or replay_redirect: all of it goes to the drive".to_owned(),
    )
}
