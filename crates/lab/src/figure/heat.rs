//! Heat maps: a matrix of numbers as coloured cells.

use super::canvas::{Anchor, Canvas};
use super::style;
use super::text::{escape, pixels, value};

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
const LEFT: f64 = 110.0;
const TOP: f64 = 74.0;
const MARGIN: f64 = 16.0;

impl HeatMap {
    /// The heat map as a self-contained SVG document: rows are what is
    /// disturbed, columns what disturbs.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut canvas = Canvas::default();
        canvas.text("title", (MARGIN, 26.0), Anchor::Start, &self.title);
        let (width, height) = CELL;
        for (index, name) in self.columns.iter().enumerate() {
            let x = LEFT + (index as f64 + 0.5) * width;
            canvas.text("tick-label", (x, TOP - 8.0), Anchor::Middle, name);
        }
        for (index, name) in self.rows.iter().enumerate() {
            let y = TOP + (index as f64 + 0.5) * height + 4.0;
            canvas.text("tick-label", (LEFT - 8.0, y), Anchor::End, name);
        }
        let mut body = canvas.into_body();
        for (row, cells) in self.cells.iter().enumerate() {
            for (column, cell) in cells.iter().enumerate() {
                let at = (LEFT + column as f64 * width, TOP + row as f64 * height);
                body.push_str(&draw(cell.as_ref(), at));
            }
        }
        let right = LEFT + self.columns.len() as f64 * width + MARGIN;
        let bottom = TOP + self.rows.len() as f64 * height + 40.0;
        body.push_str(&self.legend(bottom - 14.0));
        self.document((right.max(LEFT + 440.0), bottom), &body)
    }

    fn legend(&self, y: f64) -> String {
        let mut canvas = Canvas::default();
        let mut x = LEFT;
        for (step, from) in STEPS.iter().enumerate() {
            canvas.rect(&format!("h{step}"), (x, y - 10.0), (12.0, 12.0));
            let text = format!("{}+", value(*from));
            canvas.text("note", (x + 16.0, y), Anchor::Start, &text);
            x += 60.0;
        }
        canvas.into_body()
    }

    fn document(&self, (width, height): (f64, f64), body: &str) -> String {
        let (w, h, title) = (pixels(width), pixels(height), escape(&self.title));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"zl\" role=\"img\" \
             aria-label=\"{title}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\">\n\
             <style>\n{}{SHEET}</style>\n\
             <rect class=\"page\" width=\"{w}\" height=\"{h}\"/>\n{body}</svg>\n",
            style::SHEET
        )
    }
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
    let ink = if step < DARK { "on-light" } else { "on-dark" };
    canvas.rect(&format!("h{step}"), (x, y), (width, height));
    let middle = x + width / 2.0;
    let number = format!("{:.2}", cell.value);
    canvas.text(
        &format!("value {ink}"),
        (middle, y + 26.0),
        Anchor::Middle,
        &number,
    );
    if !cell.note.is_empty() {
        canvas.text(
            &format!("small {ink}"),
            (middle, y + 42.0),
            Anchor::Middle,
            &cell.note,
        );
    }
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
