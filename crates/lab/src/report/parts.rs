//! What other pages than the report are made of, so that they look alike.

pub use super::embed::{fill, html};

/// Colours, type, tables, charts; light and dark, narrow and printed.
pub const STYLE: &str = include_str!("page/style.css");
/// Elements, numbers with units, tooltips.
pub const BASE: &str = include_str!("page/base.js");
/// Axes. Needs [`BASE`].
pub const SCALE: &str = include_str!("page/scale.js");
/// Line charts. Needs [`SCALE`].
pub const CHART: &str = include_str!("page/chart.js");
/// Busy time by cause. Needs [`SCALE`].
pub const BARS: &str = include_str!("page/bars.js");
