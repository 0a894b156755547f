//! Plain pages: no scripts, no other files.

use std::fmt::Write as _;

/// Text as it may stand in a page.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

/// The beginning of a page with a title, which is also its heading.
pub(crate) fn begin(title: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>:root{{color-scheme:light dark}}body{{font:15px/1.5 system-ui,sans-serif;\
         max-width:70rem;margin:2rem auto;padding:0 1rem}}table{{border-collapse:collapse;\
         font-variant-numeric:tabular-nums;margin:1rem 0}}th,td{{padding:.15rem .7rem;\
         text-align:left;border-bottom:1px solid #8884}}svg{{max-width:100%;height:auto}}</style>\n\
         <h1>{title}</h1>\n"
    )
}

/// A table.
pub(crate) fn table<H: AsRef<str>>(
    header: &[H],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut text = String::from("<table><tr>");
    // Writing to a string does not fail.
    for cell in header {
        let _ = write!(text, "<th>{}</th>", escaped(cell.as_ref()));
    }
    for row in rows {
        text.push_str("</tr>\n<tr>");
        for cell in row {
            let _ = write!(text, "<td>{}</td>", escaped(&cell));
        }
    }
    text.push_str("</tr></table>\n");
    text
}
