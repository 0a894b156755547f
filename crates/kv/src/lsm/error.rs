//! What can go wrong in a store.

use crate::files::FilesError;

/// Why the store did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DbError {
    /// The files below it.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A file does not hold what was written.
    #[error("{file} is damaged at byte {offset}: {what}")]
    Corrupt {
        /// Its name.
        file: String,
        /// Where.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A table is named by the manifest, and nobody remembers what it holds: the
    /// device keeps no data and the store was opened without the shadow of the
    /// one that wrote it.
    #[error(
        "{file} was written to a device that keeps no data, and its contents are not in memory"
    )]
    Forgotten {
        /// Its name.
        file: String,
    },
    /// A key that cannot be stored.
    #[error("a key of {len} bytes: at most {max} are valid")]
    KeyTooLong {
        /// Its length.
        len: usize,
        /// The longest.
        max: usize,
    },
    /// A value that cannot be stored.
    #[error("a value of {len} bytes: at most {max} are valid")]
    ValueTooLong {
        /// Its length.
        len: usize,
        /// The longest.
        max: usize,
    },
    /// A value without bytes for a store that keeps them.
    #[error("a value is only a size, and the store keeps data: give its bytes")]
    NoBytes,
    /// An option with an impossible value.
    #[error("option {name} = {value}: {valid}")]
    Option {
        /// Its name.
        name: &'static str,
        /// What it was.
        value: u64,
        /// What it may be.
        valid: &'static str,
    },
    /// Writes are refused since something failed in the background; reads go on.
    #[error("no writes since {when}: {cause}")]
    ReadOnly {
        /// What the store was doing.
        when: &'static str,
        /// Why it failed.
        cause: Box<DbError>,
    },
    /// It has been closed.
    #[error("the store is closed")]
    Closed,
}
