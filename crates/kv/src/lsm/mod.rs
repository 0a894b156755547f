//! A log-structured merge tree over files in zones, as `RocksDB` is one.
//!
//! Writes go to a log and to a memtable. Memtables become tables of level 0; levels from 1
//! on are sorted runs, each ten times as large as the one above, and
//! compactions merge a table of a level with those that it overlaps in the
//! next. What is like `RocksDB` and what is not: `docs/kv.md`.
//!
//! | module | what |
//! | --- | --- |
//! | [`options`](Options) | settings, by `RocksDB`'s names |
//! | `db` | the store: writes, queries, flushes, compactions, recovery |
//! | `entry` | keys with their versions |
//! | `memtable` | what was written last |
//! | `log`, `manifest` | formats of the write-ahead log and of the manifest |
//! | `table` | sorted files: format, writing, reading |
//! | `bloom`, `cache` | filters, and blocks in memory |
//! | `merge` | several sequences as one |
//! | `version`, `picker` | the tables of the levels, and which to compact |
//! | `stall` | when writes wait |
//! | [`shadow`](Shadow) | contents of files on a device without data |

mod bloom;
mod cache;
mod db;
mod entry;
mod error;
mod log;
mod manifest;
mod memtable;
mod merge;
mod options;
mod picker;
mod shadow;
mod stall;
mod stats;
mod table;
mod version;

pub use cache::CacheStats;
pub use db::Db;
pub use entry::{KEY_LEN_MAX, VALUE_LEN_MAX, Value};
pub use error::DbError;
pub use options::{CpuCosts, Options, WalSync};
pub use shadow::Shadow;
pub use stats::{DbStats, LevelStats, StallCause, StallStats};
