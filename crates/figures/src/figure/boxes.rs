//! Where the texts of a picture are, read back from the SVG; and that they are in it, apart.

use super::text::{CAPTION, Face, NOTE, PANEL_TITLE, SMALL, TICK, TITLE, VALUE};

/// A text of a picture.
#[derive(Clone, Debug)]
pub(super) struct TextBox {
    pub(super) text: String,
    pub(super) class: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Above and below the baseline, in ems: DejaVu Sans, which needs more than others.
const ASCENT: f64 = 0.93;
const DESCENT: f64 = 0.24;
/// Positions are rounded to two decimals.
const ROUNDING: f64 = 0.02;

fn face(class: &str) -> Face {
    let known = [TITLE, PANEL_TITLE, CAPTION, TICK, NOTE, VALUE, SMALL];
    let name = class.split(' ').next().unwrap();
    let found = known.into_iter().find(|face| face.class == name);
    found.unwrap_or_else(|| panic!("no face has the class {class}"))
}

fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = element.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

fn numbers(text: &str) -> Vec<f64> {
    let parts = text.split(|c: char| !(c.is_ascii_digit() || "-.".contains(c)));
    parts.filter_map(|part| part.parse().ok()).collect()
}

fn unescaped(text: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    pairs
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn text_box(element: &str) -> TextBox {
    let (tag, content) = element.split_once('>').unwrap();
    let content = content.strip_suffix("</text>").unwrap();
    let text = match content.split_once("</title>") {
        Some((_, shown)) => unescaped(shown),
        None => unescaped(content),
    };
    let class = attribute(tag, "class").unwrap().to_owned();
    let face = face(&class);
    let width = face.width(&text);
    let before = match attribute(tag, "text-anchor") {
        None => 0.0,
        Some("middle") => width / 2.0,
        Some("end") => width,
        Some(other) => panic!("{other}"),
    };
    let (up, down) = (ASCENT * face.size, DESCENT * face.size);
    let (left, right, top, bottom) = match attribute(tag, "transform") {
        Some(place) => {
            let of = numbers(place);
            assert_eq!(of.get(2), Some(&-90.0), "{place}");
            // Upwards: what was left is below.
            (
                of[0] - up,
                of[0] + down,
                of[1] + before - width,
                of[1] + before,
            )
        }
        None => {
            let at = |name| numbers(attribute(tag, name).unwrap())[0];
            let (x, y) = (at("x") - before, at("y"));
            (x, x + width, y - up, y + down)
        }
    };
    TextBox {
        text,
        class,
        left,
        right,
        top,
        bottom,
    }
}

/// All texts of a picture.
pub(super) fn texts(svg: &str) -> Vec<TextBox> {
    let lines = svg.lines().filter(|line| line.starts_with("<text "));
    lines.map(text_box).collect()
}

/// Width and height of the picture in its own coordinates.
pub(super) fn page(svg: &str) -> (f64, f64) {
    let view = numbers(attribute(svg.lines().next().unwrap(), "viewBox").unwrap());
    (view[2], view[3])
}

/// Checks that every text and every marker of a picture lies inside of it, and that no text
/// lies on another one.
pub(super) fn check(svg: &str) {
    let (width, height) = page(svg);
    let inside = |left: f64, right: f64, top: f64, bottom: f64| {
        left >= -ROUNDING && right <= width + ROUNDING && top >= -ROUNDING && bottom <= height
    };
    let texts = texts(svg);
    for one in &texts {
        let is_inside = inside(one.left, one.right, one.top, one.bottom);
        assert!(is_inside, "leaves {width} x {height}: {one:?}");
    }
    for (index, one) in texts.iter().enumerate() {
        for other in &texts[index + 1..] {
            let apart = one.right <= other.left + ROUNDING
                || other.right <= one.left + ROUNDING
                || one.bottom <= other.top + ROUNDING
                || other.bottom <= one.top + ROUNDING;
            assert!(apart, "one text on another: {one:?} {other:?}");
        }
    }
    for marker in svg
        .lines()
        .filter(|line| line.contains("transform=\"translate("))
    {
        if marker.starts_with("<path") {
            let at = numbers(attribute(marker, "transform").unwrap());
            let reach = 6.5;
            let (x, y) = (at[0], at[1]);
            assert!(
                inside(x - reach, x + reach, y - reach, y + reach),
                "{marker}"
            );
        }
    }
}
