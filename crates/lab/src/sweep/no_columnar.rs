//! In a browser there is no Parquet, whose libraries would be most of what is loaded.

use super::dataset::Table;
use super::pack::Pack;

impl Table {
    /// Refuses.
    pub(super) fn to_parquet(&self, _: &Pack) -> Result<Vec<u8>, &'static str> {
        Err("Parquet files are not written in a browser")
    }
}
