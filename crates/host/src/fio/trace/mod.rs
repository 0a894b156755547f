//! Traces that jobs replay: fio's own logs (`read_iolog`, `write_iolog`), those of blktrace,
//! binary or as the text of `blkparse`, and tables.
//!
//! A trace is read line by line and kept as a [`Trace`], 24 bytes for each
//! operation, however large its file is. Files come from outside, as those of
//! `include` do.

mod binary;
mod blkparse;
mod iolog;
mod options;
mod table;

use std::io::{BufRead, Read as _};

use zonelab_config::{Place, Problem};

use super::value::shorten;
use crate::workload::replay::{Operation, Trace, TraceFull};
use blkparse::Blkparse;
use iolog::Iolog;

pub use iolog::to_iolog;
pub(super) use options::ReplayOptions;
pub use table::Columns;
use table::Rows;

/// Bytes of a line at most: longer ones are of no trace.
const MAX_LINE_BYTES: u64 = 4_096;

/// What is wrong with a line, and what would be right.
type Wrong = super::value::Wrong;

/// Reads a trace, in any of the forms.
///
/// `joins_devices`: operations on several devices (or files) are all for one, as
/// with `replay_redirect`; otherwise they are refused. `columns`: those of a table that does not
/// name them.
///
/// # Errors
/// The first line that is wrong, or the file cannot be read.
pub fn read_trace(
    file: &str,
    mut input: impl BufRead,
    joins_devices: bool,
    columns: Option<&Columns>,
) -> Result<Trace, Problem> {
    let mut reader = Reader {
        trace: Trace::new(file),
        form: Form::Unknown,
        joins_devices,
        columns,
    };
    let start = input
        .fill_buf()
        .map_err(|error| Problem::of_file(file, error.to_string(), ""))?;
    if let Some((name, tool)) = compressed(start) {
        let valid = format!("{tool} {file} | zonelab fio ... --read_iolog=-");
        let what = format!("this is compressed by {name}");
        return Err(Problem::of_file(file, what, valid));
    }
    if let Some(is_little) = binary::begins(start) {
        let read = binary::read(input, is_little, joins_devices, &mut reader.trace);
        return match read {
            Ok(()) => {
                reader.trace.begin_at_first();
                reader.whole(file)
            }
            Err((event, (what, valid))) => {
                let what = format!("event {event}: {what}");
                Err(Problem::of_file(file, what, valid))
            }
        };
    }
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

const FORMS: &str = "a log of fio (\"fio version 2 iolog\" or 3), a trace of blktrace or the text of \
                     `blkparse -i FILE`, a line as MSR Cambridge, Alibaba, Tencent, SPC or MQSim have \
                     it, or a table whose columns its first line or replay_columns names \
                     (docs/fio.md, traces)";

/// What a file is compressed by, and what reads it, by its first bytes.
fn compressed(start: &[u8]) -> Option<(&'static str, &'static str)> {
    const ALL: [(&[u8], &str, &str); 4] = [
        (&[0x1F, 0x8B], "gzip", "zcat"),
        (&[0x28, 0xB5, 0x2F, 0xFD], "zstd", "zstdcat"),
        (&[0xFD, 0x37, 0x7A, 0x58, 0x5A], "xz", "xzcat"),
        (b"BZh", "bzip2", "bzcat"),
    ];
    let of = ALL.iter().find(|(magic, ..)| start.starts_with(magic));
    of.map(|(_, name, tool)| (*name, *tool))
}

/// The form of a trace, and where its reader is.
enum Form {
    Unknown,
    Iolog(Iolog),
    Blkparse(Blkparse),
    Table(Rows),
}

struct Reader<'a> {
    trace: Trace,
    form: Form,
    joins_devices: bool,
    columns: Option<&'a Columns>,
}

impl Reader<'_> {
    fn line(&mut self, text: &str, line: u64) -> Result<(), Wrong> {
        match &mut self.form {
            Form::Iolog(iolog) => iolog.line(text, line, &mut self.trace),
            Form::Blkparse(blkparse) => blkparse.line(text, line, &mut self.trace),
            Form::Table(rows) => rows.line(text, line, &mut self.trace),
            Form::Unknown if text.is_empty() => Ok(()),
            Form::Unknown => {
                let (form, is_header) = self.form_of(text)?;
                self.form = form;
                match is_header {
                    true => Ok(()),
                    false => self.line(text, line),
                }
            }
        }
    }

    /// The form of a file that begins with this line, and whether the line is no operation.
    fn form_of(&self, text: &str) -> Result<(Form, bool), Wrong> {
        if let Some(rest) = text.strip_prefix("fio version ") {
            let iolog = |version| (Form::Iolog(Iolog::new(version, self.joins_devices)), true);
            return match rest.split_whitespace().collect::<Vec<_>>()[..] {
                ["2", "iolog"] => Ok(iolog(2)),
                ["3", "iolog"] => Ok(iolog(3)),
                _ => Err((
                    format!("\"{}\" is not supported", shorten(text)),
                    "versions 2 and 3 of iolog".to_owned(),
                )),
            };
        }
        if self.columns.is_none() && blkparse::is_line(text) {
            return Ok((Form::Blkparse(Blkparse::new(self.joins_devices)), false));
        }
        let rows = Rows::of_first(text, self.columns, self.joins_devices);
        if let Some((rows, is_header)) = rows {
            return Ok((Form::Table(rows), is_header));
        }
        let what = format!("\"{}\" begins no trace", shorten(text).escape_debug());
        Err((what, FORMS.to_owned()))
    }

    fn finish(mut self, file: &str) -> Result<Trace, Problem> {
        match self.form {
            Form::Unknown => return Err(Problem::of_file(file, "an empty file", FORMS)),
            Form::Iolog(_) => {}
            Form::Blkparse(_) | Form::Table(_) => self.trace.begin_at_first(),
        }
        self.whole(file)
    }

    /// The trace, if anything is done in it.
    fn whole(self, file: &str) -> Result<Trace, Problem> {
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
