//! How many words the documentation may have: each page, and all of it.
//!
//! A page that a user reads from top to bottom is short; a reference, in which one looks up
//! a key, may be longer and has a bound of its own. Words are what `wc -w` counts. Blocks
//! that a chore or a test writes count in the whole, and not in their page.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The directory of the pages, relative to the root.
const DOCS: &str = "docs";
/// Most words of all pages together, generated blocks included.
const WHOLE: usize = 90_000;
/// Most words of a page.
const PAGE: usize = 1_200;
/// Most words of a decision.
const DECISION: usize = 400;
const DECISIONS: &str = "docs/decisions/";

/// Pages in which one looks up a key, an option or a place, with their own bounds. A bound
/// only falls: what a page gets is taken from elsewhere in it.
const REFERENCES: &[(&str, usize)] = &[
    ("docs/architecture.md", 2_600),
    ("docs/driver.md", 1_600),
    ("docs/experiments.md", 5_600),
    ("docs/fio.md", 3_200),
    ("docs/ftl-format.md", 1_700),
    ("docs/kv-workloads.md", 1_450),
    ("docs/models/reset.md", 1_600),
    ("docs/models/zn540.md", 1_800),
    ("docs/operating.md", 1_450),
    ("docs/performance.md", 1_500),
    ("docs/results.md", 3_950),
    ("docs/serve.md", 5_250),
    ("docs/sweep.md", 1_300),
    ("docs/testing.md", 1_950),
];

/// A page: its path from the root, and its text.
struct Page {
    path: String,
    text: String,
}

/// What is too long, a line each.
///
/// # Errors
/// The pages cannot be read.
pub(crate) fn violations(root: &Path) -> Result<Vec<String>> {
    let mut pages = Vec::new();
    for path in files_below(&root.join(DOCS))? {
        if path.extension().is_some_and(|extension| extension == "md") {
            let relative = path.strip_prefix(root).context("a page of docs")?;
            pages.push(Page {
                path: relative.to_string_lossy().replace('\\', "/"),
                text: std::fs::read_to_string(&path).with_context(|| path.display().to_string())?,
            });
        }
    }
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(check(&pages, REFERENCES))
}

/// All files below a directory.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
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

/// What is too long of `pages`, of which `references` have bounds of their own.
fn check(pages: &[Page], references: &[(&str, usize)]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut whole = 0;
    for Page { path, text } in pages {
        whole += text.split_whitespace().count();
        let own = written(text);
        let reference = references.iter().find(|(of, _)| of == path);
        let most = match reference {
            Some((_, most)) => *most,
            None if path.starts_with(DECISIONS) => DECISION,
            None => PAGE,
        };
        if own > most {
            violations.push(format!(
                "{path} has {own} words without what is generated, at most {most}"
            ));
        }
    }
    for (path, _) in references {
        if !pages.iter().any(|page| page.path == *path) {
            violations.push(format!("{path} is listed as a reference, and is not there"));
        }
    }
    if whole > WHOLE {
        violations.push(format!(
            "{DOCS} has {whole} words, at most {WHOLE}: what two pages say, one says"
        ));
    }
    violations
}

/// The words of a page that people write: outside of lines `<!-- ...: begin -->` and
/// `<!-- ...: end -->`.
fn written(text: &str) -> usize {
    let mut is_generated = false;
    let mut words = 0;
    for line in text.lines() {
        let mark = line.strip_prefix("<!-- ");
        let is_mark = |end: &str| mark.is_some_and(|mark| mark.ends_with(end));
        if is_mark(": begin -->") {
            is_generated = true;
        } else if is_mark(": end -->") {
            is_generated = false;
        } else if !is_generated {
            words += line.split_whitespace().count();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: String) -> Page {
        Page {
            path: path.to_owned(),
            text,
        }
    }

    #[test]
    fn pages_keep_to_their_bounds() {
        let words = |count: usize| "word ".repeat(count);
        let references = [("docs/a.md", 2_000)];
        let pages = |lengths: [usize; 3]| {
            let names = ["docs/a.md", "docs/b.md", "docs/decisions/0001-c.md"];
            let pages = names.into_iter().zip(lengths);
            let pages = pages.map(|(name, count)| page(name, words(count)));
            check(&pages.collect::<Vec<_>>(), &references)
        };
        assert_eq!(pages([2_000, PAGE, DECISION]), Vec::<String>::new());
        let found = pages([2_001, PAGE + 1, DECISION + 1]);
        assert_eq!(found.len(), 3, "{found:?}");
        for (violation, says) in found.iter().zip([
            "docs/a.md has 2001 words without what is generated, at most 2000",
            "docs/b.md has 1201 words",
            "docs/decisions/0001-c.md has 401 words",
        ]) {
            assert!(violation.starts_with(says), "{violation}");
        }
    }

    #[test]
    fn generated_words_count_in_the_whole_alone() {
        let block = |count: usize| {
            let words = "| word |\n".repeat(count);
            format!(
                "one two\n<!-- keys, generated from a: begin -->\n{words}<!-- keys: end -->\nthree\n"
            )
        };
        assert_eq!(written(&block(PAGE)), 3);
        assert_eq!(
            check(&[page("docs/a.md", block(PAGE))], &[]),
            Vec::<String>::new()
        );
        let found = check(&[page("docs/a.md", block(WHOLE))], &[]);
        assert!(
            matches!(&found[..], [one] if one.starts_with("docs has ")),
            "{found:?}"
        );
    }

    #[test]
    fn references_are_there() {
        let found = check(&[], &[("docs/none.md", 1)]);
        assert!(
            matches!(&found[..], [one] if one.starts_with("docs/none.md is listed")),
            "{found:?}"
        );
        let of_this = violations(&crate::root()).expect("the pages can be read");
        let lost: Vec<_> = of_this
            .iter()
            .filter(|one| one.contains("is not there"))
            .collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}
