//! What has a place in the contents of the book.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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
    for path in files_below(docs)? {
        let relative = path.strip_prefix(docs).context("a page of docs")?;
        let name = relative.to_string_lossy().replace('\\', "/");
        let is_page = name.ends_with(".md") && name != "SUMMARY.md";
        if is_page && !named.contains(name.as_str()) {
            strays.push(name);
        }
    }
    strays.sort();
    Ok(strays)
}

/// All files below a directory.
pub(crate) fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot list {}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        match path.is_dir() {
            true => files.extend(files_below(&path)?),
            false => files.push(path),
        }
    }
    Ok(files)
}
