//! Heat maps: a matrix of numbers as coloured cells.

use super::canvas::{Anchor, Canvas};
use super::text::{Ink, Lines, NOTE, SMALL, TICK, TITLE, VALUE, escape, pixels, value};
use super::{Width, style};

/// A matrix of numbers from 0 up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// Heading.
    pub title: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Row by row; `None`: there is nothing to show.
    pub cells: Vec<Vec<Option<HeatCell>>>,
    /// Width of the picture. The matrix is scaled to it.
    pub width: Option<Width>,
}

/// One number of a heat map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatCell {
    /// The number.
    pub value: f64,
    /// A few words below it.
    pub note: String,
    /// What a reader sees who points at it.
    pub tooltip: String,
}

/// Lower bounds of the colours: M doubles from one to the next.
const STEPS: [f64; 7] = [0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6];
/// The colours, from light to dark (ColorBrewer's Oranges), and those of text on them.
const SHEET: &str = "\
.zl .h0{fill:#fff5eb}
.zl .h1{fill:#fee6ce}
.zl .h2{fill:#fdd0a2}
.zl .h3{fill:#fdae6b}
.zl .h4{fill:#f16913}
.zl .h5{fill:#d94801}
.zl .h6{fill:#8c2d04}
.zl .none{fill:#dddddd}
.zl text.on-light{fill:#222222}
.zl text.on-dark{fill:#ffffff}
.zl text.value{font-size:15px;font-weight:600}
.zl text.small{font-size:10px}
";
/// The first colour that takes light text.
const DARK: usize = 4;

/// Width and height of a cell in pixels.
const CELL: (f64, f64) = (104.0, 56.0);
/// Least and most room for the names of rows.
const LEFT: (f64, f64) = (110.0, 220.0);
const MARGIN: f64 = 16.0;
/// Width of the legend.
const LEGEND: f64 = 440.0;
/// Most lines of a name of a row or a column.
const LINES_MAX: usize = 4;

/// Where the cells are, and names in lines.
struct Layout {
    /// The upper left corner of the first cell.
    origin: (f64, f64),
    width: f64,
    title: Lines,
    rows: Vec<Lines>,
    columns: Vec<Lines>,
}

impl Layout {
    fn of(map: &HeatMap) -> Self {
        let room = LEFT.1 - MARGIN - 8.0;
        let names = map.rows.iter().map(|name| TICK.wrap(name, room, LINES_MAX));
        let rows: Vec<Lines> = names.collect();
        let widest = rows.iter().map(|name| name.width(TICK)).fold(0.0, f64::max);
        let left = (widest + MARGIN + 8.0).max(LEFT.0);
        let columns = map
            .columns
            .len()
            .max(map.cells.iter().map(Vec::len).max().unwrap_or(0));
        let width = (left + columns as f64 * CELL.0 + MARGIN).max(left + LEGEND);
        let title = TITLE.wrap(&map.title, width - 2.0 * MARGIN, LINES_MAX);
        let names = map.columns.iter();
        let columns: Vec<Lines> = names
            .map(|name| TICK.wrap(name, CELL.0 - 6.0, LINES_MAX))
            .collect();
        let tallest = columns
            .iter()
            .map(|name| name.extra(TICK))
            .fold(0.0, f64::max);
        Self {
            origin: (left, 74.0 + title.extra(TITLE) + tallest),
            width,
            title,
            rows,
            columns,
        }
    }
}

impl HeatMap {
    /// Draws the heat map for this width.
    #[must_use]
    pub fn wide(mut self, width: Option<Width>) -> Self {
        self.width = width;
        self
    }

    /// The heat map as a self-contained SVG document: rows are what is
    /// disturbed, columns what disturbs.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let layout = Layout::of(self);
        let (left, top) = layout.origin;
        let mut canvas = Canvas::default();
        canvas.lines(TITLE, (MARGIN, 26.0), Anchor::Start, &layout.title);
        let (width, height) = CELL;
        for (index, name) in layout.columns.iter().enumerate() {
            let x = left + (index as f64 + 0.5) * width;
            let at = (x, top - 8.0 - name.extra(TICK));
            canvas.lines(TICK, at, Anchor::Middle, name);
        }
        for (index, name) in layout.rows.iter().enumerate() {
            let y = top + (index as f64 + 0.5) * height + 4.0 - name.extra(TICK) / 2.0;
            canvas.lines(TICK, (left - 8.0, y), Anchor::End, name);
        }
        let mut body = canvas.into_body();
        for (row, cells) in self.cells.iter().enumerate() {
            for (column, cell) in cells.iter().enumerate() {
                let at = (left + column as f64 * width, top + row as f64 * height);
                body.push_str(&draw(cell.as_ref(), at));
            }
        }
        let rows = self.rows.len().max(self.cells.len());
        let bottom = top + rows as f64 * height + 40.0;
        body.push_str(&legend((left, bottom - 14.0)));
        self.document((layout.width, bottom), &body)
    }

    fn document(&self, (width, height): (f64, f64), body: &str) -> String {
        let (w, h, title) = (pixels(width), pixels(height), escape(&self.title));
        let (wide, high) = match self.width {
            Some(unit) => {
                let scale = unit.pixels() / width;
                (unit.length(unit.pixels()), unit.length(height * scale))
            }
            None => (w.clone(), h.clone()),
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"zl\" role=\"img\" \
             aria-label=\"{title}\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {w} {h}\">\n\
             <style>\n{}{SHEET}</style>\n\
             <rect class=\"page\" width=\"{w}\" height=\"{h}\"/>\n{body}</svg>\n",
            style::SHEET
        )
    }
}

/// The colours with what they stand for, the first at `(x, y)`.
fn legend((mut x, y): (f64, f64)) -> String {
    let mut canvas = Canvas::default();
    for (step, from) in STEPS.iter().enumerate() {
        canvas.rect(&format!("h{step}"), (x, y - 10.0), (12.0, 12.0));
        let text = NOTE.wrap(&format!("{}+", value(*from)), f64::INFINITY, 1);
        canvas.lines(NOTE, (x + 16.0, y), Anchor::Start, &text);
        x += 60.0;
    }
    canvas.into_body()
}

fn draw(cell: Option<&HeatCell>, (x, y): (f64, f64)) -> String {
    let (width, height) = (CELL.0 - 3.0, CELL.1 - 3.0);
    let mut canvas = Canvas::default();
    let Some(cell) = cell.filter(|cell| cell.value.is_finite()) else {
        canvas.rect("none", (x, y), (width, height));
        return canvas.into_body();
    };
    let above = STEPS.iter().filter(|from| **from <= cell.value).count();
    let step = above.saturating_sub(1);
    let ink = if step < DARK { Ink::Dark } else { Ink::Light };
    canvas.rect(&format!("h{step}"), (x, y), (width, height));
    let middle = x + width / 2.0;
    // With two decimals, unless that is too long for the cell.
    let number = format!("{:.2}", cell.value);
    let number = match VALUE.width(&number) <= width - 4.0 {
        true => number,
        false => format!("{:.1e}", cell.value),
    };
    let face = VALUE.with_ink(ink);
    let number = face.wrap(&number, width - 4.0, 1);
    canvas.lines(face, (middle, y + 26.0), Anchor::Middle, &number);
    let face = SMALL.with_ink(ink);
    let note = face.wrap(&cell.note, width - 4.0, 1);
    canvas.lines(face, (middle, y + 42.0), Anchor::Middle, &note);
    let tooltip = escape(&cell.tooltip);
    format!("<g><title>{tooltip}</title>\n{}</g>\n", canvas.into_body())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_drawn_with_the_colour_of_its_size() {
        let cell = |value: f64| {
            Some(HeatCell {
                value,
                note: "paper <1>".to_owned(),
                tooltip: "waits & waits".to_owned(),
            })
        };
        let map = HeatMap {
            title: "A < B".to_owned(),
            rows: vec!["read".to_owned(), "write".to_owned()],
            columns: vec!["finish".to_owned(), "reset".to_owned()],
            cells: vec![vec![cell(0.049), cell(1.17)], vec![None, cell(f64::NAN)]],
            width: None,
        };
        let svg = map.to_svg();
        assert_eq!(svg, map.to_svg());
        // One of each in the legend.
        let drawn = |class: &str| svg.matches(&format!("<rect class=\"{class}\"")).count();
        assert_eq!([drawn("h0"), drawn("h5"), drawn("none")], [2, 2, 2]);
        assert!(svg.contains("aria-label=\"A &lt; B\""));
        assert!(svg.contains("waits &amp; waits") && svg.contains("paper &lt;1&gt;"));
        assert!(svg.contains(">1.17<") && svg.contains(">0.05<"));
    }
}
