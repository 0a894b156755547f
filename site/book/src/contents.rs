//! What has a place in the contents of the book.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

/// Pages in `docs` that `SUMMARY.md` does not name, from which no reader would come to them.
pub(crate) fn strays(docs: &Path) -> Result<Vec<String>> {
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).context("no docs/SUMMARY.md")?;
    let named: BTreeSet<&str> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
        .collect();
    let mut strays = Vec::new();
    let mut directories = vec![docs.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).context("docs cannot be listed")? {
            let path = entry.context("docs cannot be listed")?.path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let relative = path.strip_prefix(docs).context("a page of docs")?;
            let name = relative.to_string_lossy().replace('\\', "/");
            let is_page = name.ends_with(".md") && name != "SUMMARY.md";
            if is_page && !named.contains(name.as_str()) {
                strays.push(name);
            }
        }
    }
    strays.sort();
    Ok(strays)
}
