//! Published measurements: a reader for their CSV files, and the files that
//! zonelab carries.
//!
//! [`CsvTable`] reads comma-separated values after RFC 4180 with a header, and
//! gives typed fields whose errors name file, line and column. [`emulator`]
//! holds the results of the ConfZNS++ emulator.

mod csv;
pub mod emulator;

pub use csv::{CsvTable, Record, ReferenceError};
