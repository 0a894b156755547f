//! The legend: below every plot area, so that it covers no data.

use super::canvas::{Anchor, Canvas};
use super::layout::{LINES_MAX, MARGIN};
use super::render::{DOT, RING};
use super::style;
use super::text::{CAPTION, Face, Lines, NOTE};
use super::{Figure, Series};

/// Height of an entry of one line.
const ROW: f64 = 20.0;
/// Between entries in a row.
const GAP: f64 = 18.0;
/// Width of the sample in an entry.
const SAMPLE: f64 = 26.0;
/// From the left end of an entry to its text.
const INDENT: f64 = SAMPLE + 6.0;

/// Draws the legend below `top`, in as many rows as it needs; gives its bottom.
pub(super) fn draw(
    figure: &Figure,
    names: &[&str],
    (top, page): (f64, f64),
    canvas: &mut Canvas,
) -> f64 {
    let all = || figure.panels.iter().flat_map(|p| &p.series);
    let room = page - 2.0 * MARGIN - INDENT - 2.0;
    let mut pen = Pen {
        x: MARGIN,
        y: top,
        tallest: 0.0,
        right: page - MARGIN,
    };
    if names.len() > 1 || names.iter().any(|n| !n.is_empty()) {
        for (look, name) in names.iter().enumerate() {
            let mine = || all().filter(|s| s.name == names[look]);
            let has_ours = mine().any(|s| !s.ours.is_empty());
            let show = Shown {
                line: has_ours && !mine().all(|s| s.is_scattered),
                dot: has_ours,
                ring: !has_ours,
            };
            let text = CAPTION.wrap(name, room, LINES_MAX);
            let entry = [(text, CAPTION, style::colour(look), show, look)];
            draw_entry(&mut pen, &entry, canvas);
        }
    }
    let has_published = all().any(|s: &Series| !s.published.is_empty());
    if has_published && all().any(|s| !s.ours.is_empty()) {
        // One entry, so that the two explanations stay side by side.
        let entry = [("zonelab", true), ("published", false)].map(|(text, solid)| {
            let show = Shown {
                line: solid,
                dot: solid,
                ring: !solid,
            };
            let text = NOTE.wrap(text, room, 1);
            (text, NOTE, "key".to_owned(), show, 0)
        });
        draw_entry(&mut pen, &entry, canvas);
    }
    pen.y + pen.tallest
}

/// Draws the parts of an entry side by side.
fn draw_entry(pen: &mut Pen, parts: &[(Lines, Face, String, Shown, usize)], canvas: &mut Canvas) {
    let wide =
        |(lines, face, ..): &(Lines, Face, String, Shown, usize)| INDENT + lines.width(*face);
    let gaps = 12.0 * parts.len().saturating_sub(1) as f64;
    let height = parts
        .iter()
        .map(|(lines, face, ..)| ROW + lines.extra(*face));
    let all = (
        parts.iter().map(wide).sum::<f64>() + gaps,
        height.fold(ROW, f64::max),
    );
    let mut at = pen.next(all);
    for part in parts {
        let (lines, face, class, show, look) = part;
        sample(canvas, at, class, *show, *look);
        canvas.lines(*face, (at.0 + INDENT, at.1 + 4.0), Anchor::Start, lines);
        at.0 += wide(part) + 12.0;
    }
}

/// What the sample of a legend entry shows.
#[derive(Copy, Clone)]
struct Shown {
    line: bool,
    dot: bool,
    ring: bool,
}

/// Draws the sample of a legend entry.
fn sample(canvas: &mut Canvas, at: (f64, f64), class: &str, show: Shown, look: usize) {
    let centre = (at.0 + SAMPLE / 2.0, at.1);
    canvas.open(class);
    if show.line {
        canvas.line("line", &[(at.0, at.1), (at.0 + SAMPLE, at.1)]);
    }
    if show.dot {
        canvas.marker("dot", &style::marker(look, DOT), centre, "");
    }
    if show.ring {
        canvas.marker("ring", &style::marker(look, RING), centre, "");
    }
    canvas.close();
}

/// Places legend entries from left to right, then on the next row.
struct Pen {
    x: f64,
    y: f64,
    /// Height of the tallest entry of the row.
    tallest: f64,
    right: f64,
}

impl Pen {
    /// The left end, at mid height of the first line, of an entry of that size.
    fn next(&mut self, (wide, high): (f64, f64)) -> (f64, f64) {
        if self.x > MARGIN && self.x + wide > self.right {
            self.x = MARGIN;
            self.y += self.tallest;
            self.tallest = 0.0;
        }
        let place = (self.x, self.y + ROW / 2.0);
        self.x += wide + GAP;
        self.tallest = self.tallest.max(high);
        place
    }
}
