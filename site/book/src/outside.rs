//! Links from pages to files of the repository that are no pages of the book: they lead to
//! where the repository is.

use std::path::{Component, Path, PathBuf};

use mdbook_preprocessor::book::{Book, BookItem};
use mdbook_preprocessor::errors::Result;
use mdbook_preprocessor::{Preprocessor, PreprocessorContext};

/// Where the files of the repository can be read.
const FILES: &str = "https://github.com/zonelab/zonelab/blob/main/";

/// Turns links out of `docs` into links to the repository.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside;

impl Preprocessor for Outside {
    fn name(&self) -> &'static str {
        "outside"
    }

    fn run(&self, _: &PreprocessorContext, mut book: Book) -> Result<Book> {
        book.for_each_mut(|item| {
            if let BookItem::Chapter(chapter) = item
                && let Some(path) = &chapter.source_path
            {
                chapter.content = rewrite(&chapter.content, path);
            }
        });
        Ok(book)
    }
}

/// A page with its links out of the book turned; `page` is its path in `docs`.
pub(crate) fn rewrite(text: &str, page: &Path) -> String {
    let mut is_code = false;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        match is_code {
            true => out.push_str(line),
            false => rewrite_line(line, page, &mut out),
        }
    }
    out
}

fn rewrite_line(line: &str, page: &Path, out: &mut String) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, behind)) = after.split_once(')') else {
            break;
        };
        out.push_str(before);
        out.push_str("](");
        match outside(target, page) {
            Some(file) => {
                out.push_str(FILES);
                out.push_str(&file);
            }
            // What mdBook makes of such a page, and does not make of links to it.
            None => out.push_str(&target.replace("README.md", "index.md")),
        }
        out.push(')');
        rest = behind;
    }
    out.push_str(rest);
}

/// What of `docs` is in the book: pages, and what they show.
const IN_BOOK: [&str; 3] = ["md", "svg", "png"];

/// The path in the repository of what a link leads to, if that is not in the book.
fn outside(target: &str, page: &Path) -> Option<String> {
    let is_elsewhere = target.contains("://") || target.starts_with(['#', '/']);
    if is_elsewhere || target.starts_with("mailto:") {
        return None;
    }
    let mut path = PathBuf::from("docs");
    path.extend(page.parent());
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    let path = path.to_string_lossy().replace('\\', "/");
    let file = path.split('#').next().unwrap_or_default();
    let is_shown = Path::new(file)
        .extension()
        .is_some_and(|of| IN_BOOK.iter().any(|kind| of == *kind));
    (!(path.starts_with("docs/") && is_shown)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_lead_to_the_repository_and_others_stay() {
        let text = "a [b](../../README.md#x), [c](finish.md#k) and [d](../decisions/README.md)\n\
                    [l](../examples/live.toml), ![m](../images/a.svg)\n\
                    ```\n[e](../../Cargo.toml)\n```\n[f](https://g.h) [i](#j)\n";
        let expected = format!(
            "a [b]({FILES}README.md#x), [c](finish.md#k) and [d](../decisions/index.md)\n\
             [l]({FILES}docs/examples/live.toml), ![m](../images/a.svg)\n\
             ```\n[e](../../Cargo.toml)\n```\n[f](https://g.h) [i](#j)\n"
        );
        assert_eq!(rewrite(text, Path::new("models/reset.md")), expected);
    }
}
