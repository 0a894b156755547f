//! A tiny drive, for tests of several crates.

/// Two channels with a die each; 8 zones of 15 pages.
pub(crate) const TINY: &str = r#"
schema = 1
name = "tiny"

[geometry]
channels = 2
pages_per_block = 8
page_size = "16KiB"

[namespace]
lba_size = "4KiB"

[zones]
count = 8
size = "256KiB"
capacity = "240KiB"

[media]
read = "60us"
program = "700us"
erase = "3.5ms"
transfer = "25us"

[finish]
design = "fill"
granularity = "32KiB"
"#;
