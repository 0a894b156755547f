//! What all rows come to, for documents.

use std::fmt::Write as _;

use super::page::lines;
use super::{missed, sized};
use crate::rows::{Missing, Summary};

/// The lines of [`super::page()`] as a list, and the known gaps as a table, in
/// Markdown.
#[must_use]
pub fn markdown(summary: &Summary) -> String {
    let mut out = String::new();
    for line in lines(summary) {
        // Writing to a string does not fail.
        let _ = writeln!(out, "* {}", escaped(&line));
    }
    for warning in &summary.warnings {
        let _ = writeln!(out, "* Warning: {}", escaped(warning));
    }
    if summary.missing.is_empty() {
        return out;
    }
    out.push_str("\n| result | what does not hold | published | ours | it takes |\n");
    out.push_str("| --- | --- | --- | --- | --- |\n");
    for Missing {
        id,
        says,
        published,
        ours,
        unit,
        needs,
        miss,
        ..
    } in &summary.missing
    {
        let (published, ours) = (sized(*published, unit), missed(*ours, unit, *miss));
        let says = escaped(says);
        let _ = writeln!(out, "| {id} | {says} | {published} | {ours} | {needs} |");
    }
    out
}

/// `text` without what ends a cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}
