//! Published measurements: a reader for their CSV files.
//!
//! [`CsvTable`] reads comma-separated values after RFC 4180 with a header, and
//! gives typed fields whose errors name file, line and column.

mod csv;

pub use csv::{CsvTable, Record, ReferenceError};
