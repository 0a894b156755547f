//! Builds the documentation in `docs` as a book, and checks it: every page has a place in
//! the contents, and every link between pages leads to a page, a file or a heading that is
//! there.
//!
//! ```console
//! $ cargo xtask book [--out DIR]
//! ```

mod contents;
mod links;
mod outside;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use mdbook_driver::MDBook;

use outside::Outside;

fn main() -> ExitCode {
    let out = std::env::args_os().nth(1).map(PathBuf::from);
    match build(out.as_deref()) {
        Ok(pages) => {
            println!("book: {pages}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("book: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the book and checks it. Returns what there is to say of it.
fn build(out: Option<&Path>) -> Result<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = here.join("../../docs").canonicalize().context("no docs")?;
    let strays = contents::strays(&docs)?;
    if !strays.is_empty() {
        bail!("docs/SUMMARY.md does not have {}", strays.join(", "));
    }
    let mut book = MDBook::load(here)?;
    if let Some(out) = out {
        book.config.build.build_dir = out.to_path_buf();
    }
    book.with_preprocessor(Outside);
    book.build()?;
    let built = here.join(&book.config.build.build_dir);
    let checked = links::check(&built)?;
    if !checked.broken.is_empty() {
        bail!("links that lead nowhere:\n{}", checked.broken.join("\n"));
    }
    Ok(format!(
        "{} pages, {} links between them, in {}",
        checked.pages,
        checked.links,
        built.display()
    ))
}
