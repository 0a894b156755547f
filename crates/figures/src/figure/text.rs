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

/// A kind of text: its class in the style sheet, with what that says of its size.
#[derive(Copy, Clone)]
pub(super) struct Face {
    pub(super) class: &'static str,
    /// Height of a letter with ascender and descender, pixels.
    pub(super) size: f64,
    is_bold: bool,
    ink: Ink,
}

/// What a text is written with.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Ink {
    /// What is read on the page.
    Page,
    /// On a light colour, in light and dark pages.
    Dark,
    /// On a dark colour.
    Light,
}

/// The faces of the style sheet. A test compares them with it.
pub(super) const TITLE: Face = Face::new("title", 16.0, true);
pub(super) const PANEL_TITLE: Face = Face::new("panel-title", 13.0, true);
pub(super) const CAPTION: Face = Face::new("caption", 12.0, false);
pub(super) const TICK: Face = Face::new("tick-label", 11.0, false);
pub(super) const NOTE: Face = Face::new("note", 11.0, false);
pub(super) const VALUE: Face = Face::new("value", 15.0, true);
pub(super) const SMALL: Face = Face::new("small", 10.0, false);

/// Text that was laid out in lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) lines: Vec<String>,
    /// The whole text, if the lines do not have all of it.
    pub(super) whole: Option<String>,
}

impl Face {
    const fn new(class: &'static str, size: f64, is_bold: bool) -> Self {
        Self {
            class,
            size,
            is_bold,
            ink: Ink::Page,
        }
    }

    /// The same in another ink.
    pub(super) const fn with_ink(self, ink: Ink) -> Self {
        Self { ink, ..self }
    }

    /// The classes of such a text.
    pub(super) fn classes(self) -> String {
        match self.ink {
            Ink::Page => self.class.to_owned(),
            Ink::Dark => format!("{} on-light", self.class),
            Ink::Light => format!("{} on-dark", self.class),
        }
    }

    /// From one line to the next, pixels.
    pub(super) fn line_height(self) -> f64 {
        (self.size * 1.25).round()
    }

    /// Width in pixels that `text` has at most, in any of the families of the style sheet.
    pub(super) fn width(self, text: &str) -> f64 {
        text.chars().map(|c| self.advance(c)).sum()
    }

    fn advance(self, c: char) -> f64 {
        let em = if self.is_bold { em(c) * BOLD } else { em(c) };
        em * self.size
    }

    /// `text` in as many lines as it needs, at most `most` (and at least one), none wider than
    /// `room` pixels. Lines end between words; a word wider than a line is broken. What does
    /// not fit into the last line is cut, and "…" says so.
    pub(super) fn wrap(self, text: &str, room: f64, most: usize) -> Lines {
        let mut out = Lines::default();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = self.line_end(rest, room);
            let (line, after) = rest.split_at(end);
            if after.trim().is_empty() || out.lines.len() + 1 < most {
                out.lines.push(line.trim_end().to_owned());
                rest = after.trim_start();
            } else {
                out.lines.push(self.cut(rest, room));
                out.whole = Some(text.to_owned());
                break;
            }
        }
        out
    }

    /// Where the first line of `text` ends: after the last word that fits, or within the first
    /// word if that does not. At least one character.
    fn line_end(self, text: &str, room: f64) -> usize {
        let mut used = 0.0;
        let mut space = None;
        for (at, c) in text.char_indices() {
            if c.is_whitespace() {
                space = Some(at);
            }
            used += self.advance(c);
            if used > room && !c.is_whitespace() {
                return space.unwrap_or(at).max(first_length(text));
            }
        }
        text.len()
    }

    /// The beginning of `text` with "…", at most `room` pixels wide.
    fn cut(self, text: &str, room: f64) -> String {
        let mut out = String::new();
        let mut used = self.advance('…');
        for c in text.chars() {
            used += self.advance(c);
            if used > room {
                break;
            }
            out.push(c);
        }
        out.truncate(out.trim_end().len());
        out.push('…');
        out
    }
}

impl Lines {
    /// Width of the widest line.
    pub(super) fn width(&self, face: Face) -> f64 {
        let widths = self.lines.iter().map(|line| face.width(line));
        widths.fold(0.0, f64::max)
    }

    /// How much taller than a text of one line.
    pub(super) fn extra(&self, face: Face) -> f64 {
        self.lines.len().saturating_sub(1) as f64 * face.line_height()
    }
}

fn first_length(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Advances of ASCII from space on in thousandths of an em: the wider of DejaVu Sans, which is
/// what most Linux machines without other fonts show, and Liberation Sans, which has the widths
/// of Arial and Helvetica. System fonts of other platforms are narrower than DejaVu Sans.
const ADVANCES: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 556, 1015, 684, 686, 722, 770, 667,
    611, 778, 752, 295, 500, 667, 557, 863, 748, 787, 667, 787, 722, 667, 611, 732, 684, 989, 685,
    667, 685, 390, 337, 390, 838, 556, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// Bold letters of these families are wider by at most this.
const BOLD: f64 = 1.27;

/// The widest advance of a character, in ems.
fn em(c: char) -> f64 {
    let ascii = (c as usize).checked_sub(' ' as usize);
    if let Some(advance) = ascii.and_then(|index| ADVANCES.get(index)) {
        return f64::from(*advance) / 1e3;
    }
    match c {
        '⁰' | '¹' | '²' | '³' | '⁴'..='⁹' => 0.45,
        '⁻' => 0.53,
        'µ' => 0.74,
        '×' => 0.84,
        '–' => 0.56,
        // What stands for characters that XML forbids, too.
        c if u32::from(c) < 0x2E80 || c == '\u{fffd}' => 1.1,
        // Pictures are wider than ideographs.
        _ => 1.4,
    }
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
    fn long_text_goes_on_in_further_lines() {
        let text = "finish on write at 16, 32, 64 and 256 KiB";
        let lines = CAPTION.wrap(text, 100.0, 9);
        assert_eq!(lines.lines.join(" "), text);
        assert!(lines.lines.len() > 2 && lines.width(CAPTION) <= 100.0 && lines.whole.is_none());
        let cut = CAPTION.wrap(text, 100.0, 2);
        assert_eq!((cut.lines.len(), cut.whole.as_deref()), (2, Some(text)));
        assert!(
            cut.lines[1].ends_with('…') && cut.width(CAPTION) <= 100.0,
            "{cut:?}"
        );
        assert_eq!(CAPTION.wrap("short", 100.0, 1).lines, ["short"]);
        assert_eq!(CAPTION.wrap(" ", 100.0, 1), Lines::default());
    }

    #[test]
    fn a_word_that_is_wider_than_a_line_is_broken_and_keeps_its_letters() {
        for (text, room) in [
            ("Donaudampfschifffahrt", 40.0),
            ("µ漢字×⁻¹", 1.0),
            ("a bcdefghijkl", 20.0),
        ] {
            let lines = TITLE.wrap(text, room, 99).lines;
            assert_eq!(lines.concat(), text.replace(' ', ""), "{lines:?}");
        }
    }

    #[test]
    fn faces_are_those_of_the_style_sheet() {
        for face in [TITLE, PANEL_TITLE, TICK, NOTE] {
            let rule = format!(".zl .{}{{font-size:{}px", face.class, face.size);
            assert!(super::super::style::SHEET.contains(&rule), "{rule}");
        }
    }

    #[test]
    fn exponents_are_raised() {
        assert_eq!(scientific("1", 6), "10⁶");
        assert_eq!(scientific("2.5", -12), "2.5×10⁻¹²");
    }
}
