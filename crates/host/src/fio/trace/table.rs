//! Traces as tables: public ones by the form of their lines, and any other by the names of its
//! columns, in its first line or in `replay_columns`.
//!
//! | collection | a line |
//! | --- | --- |
//! | MSR Cambridge | time (100 ns), host, disk, `Read` or `Write`, offset (bytes), bytes, response time |
//! | Alibaba Cloud | device, `R` or `W`, offset (bytes), bytes, time (us) |
//! | Tencent CBS | time (s), offset (sectors), sectors, 0 (read) or 1 (write), volume |
//! | SPC (UMass) | unit, address (sectors), bytes, `r` or `w`, time (s) |
//! | MQSim | time (ns), device, address (sectors), sectors, 0 (write) or 1 (read); blanks between |
//!
//! Sectors have 512 bytes. Times count from the first line.

use zonelab_device::Nanos;

use super::{Wrong, another, push};
use crate::fio::value::{shorten, wrong};
use crate::workload::replay::{Action, Operation, Trace};

/// What a column says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    /// When, in units of so many nanoseconds.
    Time(u64),
    /// What is done.
    Op,
    /// Where, in units of so many bytes.
    Offset(u64),
    /// How much, in units of so many bytes.
    Size(u64),
    /// To which of several devices.
    Device,
    /// Nothing that matters.
    Other,
}

/// How numbers say what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbered {
    /// 0 reads, 1 writes.
    ReadIsZero,
    /// 1 reads, 0 writes.
    ReadIsOne,
}

/// The columns of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    columns: Vec<Column>,
    numbered: Numbered,
    /// Between columns stands a comma, or else blanks.
    has_commas: bool,
}

/// Names of columns: time, op, offset, size, device, and `-` for what does not matter.
const NAMES: &str = "time_ns, time_us, time_ms, time_s or time_100ns; op (read, write, trim, flush; \
                     R, W; 0 reads, 1 writes); offset_bytes or offset_sectors (of 512); size_bytes \
                     or size_sectors; device; - for others";

impl Columns {
    /// The columns that `replay_columns` names.
    ///
    /// # Errors
    /// A name is none, or one that is needed is missing.
    pub fn stated(text: &str) -> Result<Self, (String, String)> {
        let named = |name: &str| {
            let what = || wrong(format!("\"{}\" is no column", shorten(name)), NAMES);
            column(name).ok_or_else(what)
        };
        let words: Vec<&str> = text.split([',', ':']).map(str::trim).collect();
        let columns: Result<Vec<Column>, Wrong> = words.into_iter().map(named).collect();
        let columns = Self {
            columns: columns?,
            numbered: Numbered::ReadIsZero,
            has_commas: true,
        };
        columns.complete()
    }

    /// The columns that a first line names, if it does.
    fn of_header(text: &str) -> Option<Self> {
        let has_commas = text.contains(',');
        let words = split(text, has_commas);
        let columns: Vec<Column> = words
            .iter()
            .map(|name| column(name).unwrap_or(Column::Other))
            .collect();
        let columns = Self {
            columns,
            numbered: Numbered::ReadIsZero,
            has_commas,
        };
        columns.complete().ok()
    }

    /// Itself, if it has what an operation needs.
    fn complete(self) -> Result<Self, Wrong> {
        let has = |is: fn(&Column) -> bool| self.columns.iter().filter(|of| is(of)).count() == 1;
        let missing = [
            ("op", has(|of| *of == Column::Op)),
            ("offset_bytes", has(|of| matches!(of, Column::Offset(_)))),
            ("size_bytes", has(|of| matches!(of, Column::Size(_)))),
            ("time_us", has(|of| matches!(of, Column::Time(_)))),
        ];
        match missing.into_iter().find(|(_, has)| !has) {
            Some((name, _)) => Err(wrong(format!("there is not one column {name}"), NAMES)),
            None => Ok(self),
        }
    }

    /// The columns of a public collection whose lines look like this one.
    fn of_line(text: &str) -> Option<Self> {
        use Column::{Device, Offset, Op, Other, Size, Time};
        let is_whole = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        let is_letter = |word: &str| matches!(word, "R" | "W" | "r" | "w");
        let is_bit = |word: &str| matches!(word, "0" | "1");
        let is_number = |word: &str| word.parse::<f64>().is_ok();
        let has_commas = text.contains(',');
        let words = split(text, has_commas);
        let whole = |places: &[usize]| places.iter().all(|&place| is_whole(words[place]));
        let (columns, numbered) = match (words.len(), has_commas) {
            (7, true) if words[3] == "Read" || words[3] == "Write" => (
                vec![Time(100), Device, Device, Op, Offset(1), Size(1), Other],
                Numbered::ReadIsZero,
            ),
            (5, true) if is_letter(words[1]) && whole(&[2, 3, 4]) => (
                vec![Device, Op, Offset(1), Size(1), Time(1_000)],
                Numbered::ReadIsZero,
            ),
            (5.., true) if is_letter(words[3]) && whole(&[0, 1, 2]) && is_number(words[4]) => {
                let mut columns = vec![Device, Offset(512), Size(1), Op, Time(1_000_000_000)];
                columns.resize(words.len(), Other);
                (columns, Numbered::ReadIsZero)
            }
            (5, true) if whole(&[0, 1, 2]) && is_bit(words[3]) => (
                vec![Time(1_000_000_000), Offset(512), Size(512), Op, Device],
                Numbered::ReadIsZero,
            ),
            (5, false) if whole(&[0, 1, 2, 3]) && is_bit(words[4]) => (
                vec![Time(1), Device, Offset(512), Size(512), Op],
                Numbered::ReadIsOne,
            ),
            _ => return None,
        };
        Some(Self {
            columns,
            numbered,
            has_commas,
        })
    }
}

/// The column of a name.
fn column(name: &str) -> Option<Column> {
    let name = name.trim().to_ascii_lowercase();
    Some(match name.as_str() {
        "time_ns" | "timestamp_ns" => Column::Time(1),
        "time_100ns" => Column::Time(100),
        "time_us" | "timestamp_us" => Column::Time(1_000),
        "time_ms" | "timestamp_ms" => Column::Time(1_000_000),
        "time_s" | "timestamp_s" => Column::Time(1_000_000_000),
        "op" | "opcode" | "type" => Column::Op,
        "offset_bytes" => Column::Offset(1),
        "offset_sectors" => Column::Offset(512),
        "size_bytes" | "length_bytes" => Column::Size(1),
        "size_sectors" | "length_sectors" => Column::Size(512),
        "device" => Column::Device,
        "-" | "_" => Column::Other,
        _ => return None,
    })
}

fn split(text: &str, has_commas: bool) -> Vec<&str> {
    match has_commas {
        true => text.split(',').map(str::trim).collect(),
        false => text.split_whitespace().collect(),
    }
}

/// Reads the lines.
pub(super) struct Rows {
    columns: Columns,
    joins_devices: bool,
    device: Option<String>,
}

impl Rows {
    /// Those of a table that begins with this line, and whether it is a header.
    pub(super) fn of_first(
        text: &str,
        stated: Option<&Columns>,
        joins_devices: bool,
    ) -> Option<(Self, bool)> {
        let (columns, is_header) = match stated {
            Some(columns) => {
                let has_commas = text.contains(',');
                let columns = Columns {
                    has_commas,
                    ..columns.clone()
                };
                // Words where numbers belong are a header.
                let is_header = !text.bytes().any(|b| b.is_ascii_digit());
                (columns, is_header)
            }
            None => match Columns::of_line(text) {
                Some(columns) => (columns, false),
                None => (Columns::of_header(text)?, true),
            },
        };
        let rows = Self {
            columns,
            joins_devices,
            device: None,
        };
        Some((rows, is_header))
    }

    pub(super) fn line(&mut self, text: &str, line: u64, trace: &mut Trace) -> Result<(), Wrong> {
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let words = split(text, self.columns.has_commas);
        if words.len() < self.columns.columns.len() {
            let (has, needs) = (words.len(), self.columns.columns.len());
            return Err(wrong(
                format!("{has} columns in \"{}\"", shorten(text)),
                format!("{needs} columns"),
            ));
        }
        let mut operation = Operation {
            at: Nanos::ZERO,
            action: Action::Sync,
            offset: 0,
            bytes: 0,
        };
        let mut device = String::new();
        for (index, word) in words.iter().enumerate().take(self.columns.columns.len()) {
            match self.columns.columns[index] {
                Column::Time(unit) => operation.at = time(word, unit)?,
                Column::Op => operation.action = self.action(word)?,
                Column::Offset(unit) => operation.offset = amount(word, "offset", unit)?,
                Column::Size(unit) => operation.bytes = amount(word, "length", unit)?,
                Column::Device => {
                    let dot = if device.is_empty() { "" } else { "." };
                    device = format!("{device}{dot}{word}");
                }
                Column::Other => {}
            }
        }
        match &self.device {
            Some(first) if *first != device && !self.joins_devices => {
                return Err(another(&device, first));
            }
            Some(_) => {}
            None => self.device = Some(device),
        }
        if operation.bytes == 0 && operation.action != Action::Sync {
            return Err(wrong("nothing: 0 bytes", "at least 1"));
        }
        push(trace, operation, line)
    }

    fn action(&self, word: &str) -> Result<Action, Wrong> {
        let word_lower = word.to_ascii_lowercase();
        Ok(match (word_lower.as_str(), self.columns.numbered) {
            ("r" | "read" | "rs", _) | ("0", Numbered::ReadIsZero) | ("1", Numbered::ReadIsOne) => {
                Action::Read
            }
            ("w" | "write" | "ws", _)
            | ("1", Numbered::ReadIsZero)
            | ("0", Numbered::ReadIsOne) => Action::Write,
            ("d" | "t" | "trim" | "discard" | "unmap", _) => Action::Trim,
            ("f" | "flush" | "sync", _) => Action::Sync,
            _ => {
                let what = format!("\"{}\" is no operation", shorten(word));
                return Err(wrong(what, "R, W, read, write, trim or flush"));
            }
        })
    }
}

/// A time in units of so many nanoseconds, with or without a decimal point.
fn time(word: &str, unit: u64) -> Result<Nanos, Wrong> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = whole.parse::<u64>().ok();
    let number = number.filter(|_| is_digits(whole) && is_digits(fraction));
    let number = number.ok_or_else(|| {
        let what = format!("\"{}\" is no time", shorten(word));
        wrong(what, "a number")
    })?;
    // Nobody measures beyond nanoseconds.
    let mut digits = fraction.bytes().chain(std::iter::repeat(b'0'));
    let billionths = (0..9).fold(0_u64, |sum, _| {
        sum * 10 + u64::from(digits.next().unwrap_or(b'0') - b'0')
    });
    let part = u128::from(billionths) * u128::from(unit) / 1_000_000_000;
    let all = u128::from(number) * u128::from(unit) + part;
    Ok(Nanos(u64::try_from(all).unwrap_or(u64::MAX)))
}

/// A number of units, in bytes.
fn amount(word: &str, what: &str, unit: u64) -> Result<u64, Wrong> {
    let number = super::number(word, what)?;
    number.checked_mul(unit).ok_or_else(|| {
        wrong(
            format!("{what} {number} is too large"),
            "less than 2^64 bytes",
        )
    })
}
