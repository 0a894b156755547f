//! Text in SVG: escaping, number formats and widths.

/// `text` with everything escaped that XML gives a meaning to.
///
/// Characters that XML 1.0 forbids (section 2.2) become U+FFFD, so that no
/// input makes the document malformed.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c < ' ' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate in pixels with two decimals, without a negative zero.
pub(super) fn pixels(value: f64) -> String {
    let text = format!("{value:.2}");
    if text == "-0.00" {
        "0.00".to_owned()
    } else {
        text
    }
}

/// A data value for a tooltip: at most five significant digits, no padding.
pub(super) fn value(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-3..1e7).contains(&magnitude) {
        return format!("{value:.4e}");
    }
    // Five digits in all: those before the point are spent first.
    let mut decimals = 4;
    let mut limit = 10.0;
    while decimals > 0 && magnitude >= limit {
        decimals -= 1;
        limit *= 10.0;
    }
    let small = magnitude != 0.0 && magnitude < 0.1;
    trim_zeros(&format!("{value:.*}", if small { 6 } else { decimals }))
}

/// `text` without zeros (and a point) at the end of its fraction.
pub(super) fn trim_zeros(text: &str) -> String {
    if !text.contains('.') {
        return text.to_owned();
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `mantissa`×10^`exponent` with a raised exponent; the mantissa 1 is implied.
pub(super) fn scientific(mantissa: &str, exponent: i32) -> String {
    let mut out = match mantissa {
        "1" => String::from("10"),
        "-1" => String::from("-10"),
        other => format!("{other}×10"),
    };
    for c in exponent.to_string().chars() {
        out.push(match c {
            '0' => '⁰',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4' => '⁴',
            '5' => '⁵',
            '6' => '⁶',
            '7' => '⁷',
            '8' => '⁸',
            '9' => '⁹',
            _ => '⁻',
        });
    }
    out
}

/// Estimated width in pixels of `text` set in a sans-serif face of `size`
/// pixels, on the generous side: there are no font metrics here.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let ems: f64 = text.chars().map(em).sum();
    ems * size
}

fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.32,
        ' ' | 'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.40,
        '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '×' => 0.92,
        'A'..='Z' => 0.70,
        c if u32::from(c) < 0x2E80 => 0.60,
        _ => 1.05,
    }
}

/// `text`, cut with "…" so that its estimated width is at most `room` pixels.
pub(super) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = size;
    for c in text.chars() {
        used += em(c) * size;
        if used > room {
            break;
        }
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_xml_reserves_and_forbids() {
        assert_eq!(
            escape("a<b & \"c\">'d'"),
            "a&lt;b &amp; &quot;c&quot;&gt;&#39;d&#39;"
        );
        assert_eq!(escape("x\u{0}\u{1b}[1m\ny"), "x\u{fffd}\u{fffd}[1m y");
    }

    #[test]
    fn values_have_five_digits_at_most() {
        let cases = [
            (0.0, "0"),
            (5.7, "5.7"),
            (2056.19, "2056.2"),
            (0.020328, "0.020328"),
            (1234567.0, "1234567"),
            (12_021_000.0, "1.2021e7"),
            (-0.25, "-0.25"),
        ];
        for (number, text) in cases {
            assert_eq!(value(number), text);
        }
    }

    #[test]
    fn long_text_is_cut_to_its_room() {
        let cut = fit("finish on write at 16, 32, 64 and 256 KiB", 12.0, 100.0);
        assert!(cut.ends_with('…') && cut.starts_with("finish"), "{cut}");
        assert!(width(&cut, 12.0) <= 100.0 + 12.0);
        assert_eq!(fit("short", 12.0, 100.0), "short");
    }

    #[test]
    fn exponents_are_raised() {
        assert_eq!(scientific("1", 6), "10⁶");
        assert_eq!(scientific("2.5", -12), "2.5×10⁻¹²");
    }
}
