//! Whether links between the pages of a book lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use crate::contents::files_below;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) pages: usize,
    pub(crate) links: usize,
    /// Links that lead nowhere, with their pages.
    pub(crate) broken: Vec<String>,
}

/// A page that was built.
#[derive(Debug, Default)]
struct Page {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

/// Checks all pages below a directory.
pub(crate) fn check(built: &Path) -> Result<Checked> {
    let mut pages = BTreeMap::new();
    for path in files_below(built)? {
        if path.extension().is_some_and(|of| of == "html") {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            pages.insert(path, read(&text));
        }
    }
    let mut checked = Checked {
        pages: pages.len(),
        ..Checked::default()
    };
    for (path, page) in &pages {
        // The page that prints all has the links of the others, and one that is shown for
        // an address that is none has its own.
        let is_made = ["print.html", "404.html", "toc.html"]
            .iter()
            .any(|name| path.ends_with(name));
        for link in page.links.iter().filter(|_| !is_made) {
            checked.links += 1;
            if !leads_somewhere(link, path, &pages) {
                let page = path.strip_prefix(built).unwrap_or(path);
                checked.broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    Ok(checked)
}

/// The headings and links of a page.
fn read(text: &str) -> Page {
    let values = |name: &str| -> Vec<String> {
        text.split(name)
            .skip(1)
            .filter_map(|rest| rest.split_once('"'))
            .map(|(value, _)| value.replace("&amp;", "&"))
            .collect()
    };
    let mut links = values(" href=\"");
    links.extend(values(" src=\""));
    links.retain(|link| {
        !link.contains("://") && !link.starts_with("mailto:") && !link.starts_with("data:")
    });
    Page {
        anchors: values(" id=\"").into_iter().collect(),
        links,
    }
}

fn leads_somewhere(link: &str, from: &Path, pages: &BTreeMap<PathBuf, Page>) -> bool {
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = target.split('?').next().unwrap_or_default();
    let mut path = match target {
        "" => from.to_path_buf(),
        _ => joined(from, target),
    };
    if path.is_dir() {
        path.push("index.html");
    }
    match pages.get(&path) {
        Some(page) => anchor.is_empty() || page.anchors.contains(anchor),
        None => path.exists(),
    }
}

/// The path of a link from a page.
fn joined(from: &Path, target: &str) -> PathBuf {
    let mut path = from.parent().unwrap_or(from).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}
