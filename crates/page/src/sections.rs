//! Pages of results in the style of the report: one bar with the parts of the page on top, no
//! other files. Tables and figures stand in them as they are, so that they can be read without
//! scripts.

use std::fmt::Write as _;

use crate::{Document, document};

/// A page that grows part by part.
pub struct Page {
    kind: &'static str,
    title: String,
    /// What stands before the first part.
    head: String,
    /// Anchor, heading, and what is below it.
    parts: Vec<(&'static str, &'static str, String)>,
}

impl Page {
    /// A page of results of a `kind` ("Search").
    #[must_use]
    pub fn new(kind: &'static str, title: &str) -> Self {
        Self {
            kind,
            title: title.to_owned(),
            head: String::new(),
            parts: Vec::new(),
        }
    }

    /// Adds something that a reader must know to the head of the page.
    pub fn notice(&mut self, text: &str) {
        let text = crate::html(text);
        // Writing to a string does not fail.
        let _ = writeln!(self.head, "<p class=\"notice\">{text}</p>");
    }

    /// Adds a part; nothing if it is empty.
    pub fn part(&mut self, anchor: &'static str, heading: &'static str, body: String) {
        if !body.is_empty() {
            self.parts.push((anchor, heading, body));
        }
    }

    /// The document.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut body = self.head.clone();
        for (anchor, heading, part) in &self.parts {
            let _ = writeln!(
                body,
                "<section id=\"{anchor}\">\n<h2>{heading}</h2>\n{part}</section>"
            );
        }
        let links = self.parts.iter();
        let links = links.map(|(anchor, heading, _)| ((*anchor).to_owned(), (*heading).to_owned()));
        document(&Document {
            kind: self.kind,
            title: &self.title,
            links: &links.collect::<Vec<_>>(),
            style: "",
            body,
            end: String::new(),
        })
    }
}

/// A figure.
#[must_use]
pub fn figure(svg: &str) -> String {
    format!("<figure class=\"still\">\n{svg}</figure>\n")
}

/// A table; without rows, nothing. Columns of numbers are aligned as such.
#[must_use]
pub fn table<H: AsRef<str>>(header: &[H], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let numeric: Vec<bool> = (0..header.len())
        .map(|column| is_numeric(rows.iter().filter_map(|row| row.get(column))))
        .collect();
    let class = |column: usize| match numeric.get(column) {
        Some(true) => " class=\"number\"",
        _ => "",
    };
    let mut text = String::from("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
    for (column, cell) in header.iter().enumerate() {
        let (class, cell) = (class(column), crate::html(cell.as_ref()));
        let _ = write!(text, "<th scope=\"col\"{class}>{cell}</th>");
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in &rows {
        text.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let (class, cell) = (class(column), crate::html(cell));
            let _ = write!(text, "<td{class}>{cell}</td>");
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    text
}

/// Whether cells are numbers, with units or not, or dashes for none.
fn is_numeric<'a>(cells: impl Iterator<Item = &'a String>) -> bool {
    let mut some = false;
    for cell in cells {
        let first = cell.trim_start_matches(['-', '+', '−']).chars().next();
        match first {
            Some(c) if c.is_ascii_digit() => some = true,
            None => {}
            Some(_) => return false,
        }
    }
    some
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_link_to_each_part_and_no_empty_ones() {
        let mut page = Page::new("Search", "A < B & C");
        page.notice("<script>");
        let rows = [["a", "1.5 ms"], ["b", "-"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        page.part(
            "all",
            "Everything",
            table(&["key", "<value>"], rows.into_iter()),
        );
        page.part("none", "Nothing", table(&["key"], std::iter::empty()));
        let html = page.to_html();
        assert!(html.contains("<h1>A &lt; B &amp; C</h1>") && !html.contains("<script>"));
        assert!(html.contains("<a href=\"#all\">Everything</a>"), "{html}");
        assert!(html.contains("<th scope=\"col\" class=\"number\">&lt;value&gt;</th>"));
        assert!(html.contains("<td>a</td><td class=\"number\">1.5 ms</td>"));
        assert!(!html.contains("Nothing"));
    }
}
