//! Text inside HTML.

/// `text` as the text of an element, or the value of an attribute in quotes.
#[must_use]
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON as the text of a `script` element, in which nothing is unescaped and
/// `</script>` or `<!--` would end or change it. Outside of strings, JSON has
/// none of these characters; inside, the escapes mean the same.
pub(crate) fn json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            // Ends of lines for JavaScript of old, not for JSON.
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// Puts each of `parts` in the place `@NAME@` of `page`. What stands in a part
/// is not searched for further places.
#[must_use]
pub fn fill(page: &str, parts: &[(&str, String)]) -> String {
    let mut out = String::new();
    let mut pieces = page.split('@');
    out.push_str(pieces.next().unwrap_or_default());
    // Every other piece is a name.
    while let Some(name) = pieces.next() {
        let part = parts.iter().find(|(known, _)| *known == name);
        debug_assert!(part.is_some(), "the page has a place for {name}");
        out.push_str(part.map_or("", |(_, text)| text));
        out.push_str(pieces.next().unwrap_or_default());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out() {
        assert_eq!(html("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
        let name = "</script><!--\u{2028}&";
        let text = serde_json::to_string(name).unwrap();
        let safe = json(&text);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), name);
    }

    #[test]
    fn parts_are_not_searched_for_places() {
        let parts = [("A", "@B@".to_owned()), ("B", "b".to_owned())];
        assert_eq!(fill("1 @A@ 2 @B@ 3", &parts), "1 @B@ 2 b 3");
    }
}
