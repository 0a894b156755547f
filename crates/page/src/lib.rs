//! What pages of results and of live drives are made of, so that they look alike.
//!
//! A page is one document that fetches nothing: style, data and scripts are in it. Text
//! reaches it through [`html`], and data through [`data_and_scripts`], so that neither can end
//! an element. [`sections`] has pages of tables and figures, which need no scripts at all.

mod embed;
pub mod sections;

pub use embed::{fill, html};

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

/// A page: what is in it, and what leads to its parts.
pub struct Document<'a> {
    /// What it is of, in a word: "Report".
    pub kind: &'a str,
    /// Heading.
    pub title: &'a str,
    /// Anchors of its parts with their names, for the bar on top.
    pub links: &'a [(String, String)],
    /// Rules after those of [`STYLE`].
    pub style: &'a str,
    /// What stands below the heading, as HTML.
    pub body: String,
    /// What stands after it, as HTML: data and scripts.
    pub end: String,
}

/// The page as an HTML document that fetches nothing.
#[must_use]
pub fn document(of: &Document<'_>) -> String {
    let links = of.links.iter().map(|(anchor, name)| {
        let (anchor, name) = (html(anchor), html(name));
        format!("<a href=\"#{anchor}\">{name}</a>")
    });
    let parts = [
        ("TITLE", html(of.title)),
        ("KIND", html(of.kind)),
        ("LINKS", links.collect()),
        ("STYLE", format!("{STYLE}{}", of.style)),
        ("BODY", of.body.clone()),
        ("END", of.end.clone()),
    ];
    fill(include_str!("page/page.html"), &parts)
}

/// Data and scripts at the end of a page: a block of JSON with the id `data`, in which nothing
/// can end it, and scripts that share a scope.
#[must_use]
pub fn data_and_scripts(json: &str, scripts: &[&str]) -> String {
    let (json, scripts) = (embed::json(json), scripts.concat());
    format!(
        "<script id=\"data\" type=\"application/json\">{json}</script>\n\
         <script>\n(() => {{\n'use strict';\n{scripts}}})();\n</script>\n"
    )
}
