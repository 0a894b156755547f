//! Published measurements: a reader for their CSV files.
//!
//! [`CsvTable`] reads comma-separated values after RFC 4180 with a header, and
//! gives typed fields whose errors name file, line and column. An [`Account`] says what of
//! a table was not used, [`plausible`] what cannot be in the unit that it is said to be in.

mod account;
mod csv;
pub mod plausible;

pub use account::Account;
pub use csv::{CsvTable, Record, ReferenceError};

/// Units of columns, by the unit of the metric: names with their sizes.
pub(crate) const UNITS: [(&str, &[(&str, f64)]); 4] = [
    ("us", &[("ns", 1e-3), ("us", 1.0), ("ms", 1e3), ("s", 1e6)]),
    ("KIOPS", &[("IOPS", 1e-3), ("KIOPS", 1.0), ("MIOPS", 1e3)]),
    (
        "1/s",
        &[("1/s", 1.0), ("IOPS", 1.0), ("KIOPS", 1e3), ("MIOPS", 1e6)],
    ),
    (
        "MiB/s",
        &[
            ("B/s", 1.0 / 1_048_576.0),
            ("KiB/s", 1.0 / 1024.0),
            ("MiB/s", 1.0),
            ("GiB/s", 1024.0),
            ("kB/s", 1e3 / 1_048_576.0),
            ("MB/s", 1e6 / 1_048_576.0),
            ("GB/s", 1e9 / 1_048_576.0),
        ],
    ),
];
