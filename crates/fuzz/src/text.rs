//! Texts that a parser half understands.

use crate::draw::Draw;

/// Most edits of one text.
const EDITS: usize = 8;

/// Values that are at the edge of something, or not values at all.
const PIECES: &[&str] = &[
    "0",
    "1",
    "-1",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999999999",
    "1e400",
    "nan",
    "true",
    "\"\"",
    "\"0B\"",
    "\"1ns\"",
    "\"4s\"",
    "\"16EiB\"",
    "\"0.0001%\"",
    "\"$x\"",
    "[]",
    "{}",
    "[[1]]",
    "\"",
    "'''",
    "=",
    "\n",
    "\r\n",
    "#",
    "[",
    "]",
    ".",
    "\u{0}",
    "\u{feff}",
    "é",
    "x = 1\n",
    "[media.suspend]\n",
    "[[job]]\n",
];

/// The text that an input holds as it is, for corpus files that people can
/// read: what follows the line `text`.
#[must_use]
pub fn verbatim(data: &[u8]) -> Option<String> {
    data.strip_prefix(b"text\n")
        .map(|text| String::from_utf8_lossy(text).into_owned())
}

/// Any text, or one of `bases` with some edits.
pub fn draw(draw: &mut Draw<'_>, bases: &[&str]) -> String {
    if draw.one_in(8) {
        return String::from_utf8_lossy(draw.bytes(usize::MAX)).into_owned();
    }
    let mut lines: Vec<String> = draw
        .pick(bases)
        .split_inclusive('\n')
        .map(str::to_owned)
        .collect();
    for _ in 0..draw.int(0..=EDITS) {
        if lines.is_empty() {
            break;
        }
        edit(draw, &mut lines);
    }
    lines.concat()
}

/// One edit.
fn edit(draw: &mut Draw<'_>, lines: &mut Vec<String>) {
    let at = draw.int(0..=lines.len() - 1);
    let other = draw.int(0..=lines.len() - 1);
    match draw.int(0..=7_u8) {
        0 => drop(lines.remove(at)),
        1 => {
            let line = lines[at].clone();
            lines.insert(other, line);
        }
        2 => lines.swap(at, other),
        3 => lines.truncate(at),
        // The value of another key of the same text.
        4 => {
            if let (Some((key, _)), Some((_, value))) =
                (lines[at].split_once('='), lines[other].split_once('='))
            {
                lines[at] = format!("{key}={value}");
            }
        }
        5 => {
            if let Some((key, _)) = lines[at].split_once('=') {
                let value = match draw.flag() {
                    true => draw.pick(PIECES).to_owned(),
                    false => draw.wide().to_string(),
                };
                lines[at] = format!("{key}= {value}\n");
            }
        }
        6 => digit(draw, &mut lines[at]),
        _ => splice(draw, &mut lines[at]),
    }
}

/// Changes one digit: often another valid value.
fn digit(draw: &mut Draw<'_>, line: &mut String) {
    let digits: Vec<usize> = line
        .char_indices()
        .filter(|(_, c)| c.is_ascii_digit())
        .map(|(at, _)| at)
        .collect();
    if digits.is_empty() {
        return;
    }
    let at = draw.pick(&digits);
    line.replace_range(at..=at, &draw.int(0..=9_u8).to_string());
}

/// Replaces a few characters by a piece.
fn splice(draw: &mut Draw<'_>, line: &mut String) {
    let mut chars: Vec<char> = line.chars().collect();
    let start = draw.int(0..=chars.len());
    let end = draw.int(start..=chars.len().min(start + 6));
    let piece = draw.pick(PIECES);
    chars.splice(start..end, piece.chars());
    *line = chars.into_iter().collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_input_is_the_first_base() {
        assert_eq!(draw(&mut Draw::new(&[]), &["a = 1\n", "b"]), "a = 1\n");
    }

    #[test]
    fn an_input_can_hold_its_text() {
        assert_eq!(verbatim(b"text\na = 1\n").as_deref(), Some("a = 1\n"));
        assert_eq!(verbatim(b"texta = 1\n"), None);
    }

    #[test]
    fn any_bytes_make_some_text() {
        for first in 0..=255 {
            let data: Vec<u8> = (0..64_u8).map(|i| i.wrapping_mul(first)).collect();
            draw(&mut Draw::new(&data), &["a = 1\nb = \"16KiB\"\n", ""]);
        }
    }
}
