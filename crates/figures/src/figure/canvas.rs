//! The few SVG elements that charts need, in a growing string.

use super::text::{Face, Lines, escape, pixels};

/// Where a text is held.
#[derive(Copy, Clone)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// SVG elements in drawing order.
#[derive(Default)]
pub(super) struct Canvas {
    out: String,
}

impl Canvas {
    /// The elements so far.
    pub(super) fn into_body(self) -> String {
        self.out
    }

    /// Opens a group of `class`; [`Canvas::close`] ends it.
    pub(super) fn open(&mut self, class: &str) {
        self.out.push_str(&format!("<g class=\"{class}\">\n"));
    }

    /// Ends the innermost group.
    pub(super) fn close(&mut self) {
        self.out.push_str("</g>\n");
    }

    /// A rectangle.
    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.out.push_str(&format!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
            pixels(x),
            pixels(y),
            pixels(width),
            pixels(height)
        ));
    }

    /// An open path through `points`; nothing for fewer than two.
    pub(super) fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() < 2 {
            return;
        }
        self.out.push_str(&format!("<path class=\"{class}\" d=\""));
        for (n, (x, y)) in points.iter().enumerate() {
            let step = if n == 0 { 'M' } else { 'L' };
            self.out
                .push_str(&format!("{step}{} {}", pixels(*x), pixels(*y)));
        }
        self.out.push_str("\"/>\n");
    }

    /// A filled area within `corners`, through which what is behind can be seen.
    pub(super) fn area(&mut self, class: &str, corners: &[(f64, f64)]) {
        let mut path = String::new();
        for (n, (x, y)) in corners.iter().enumerate() {
            path.push(if n == 0 { 'M' } else { 'L' });
            path.push_str(&format!("{} {}", pixels(*x), pixels(*y)));
        }
        self.out.push_str(&format!(
            "<path class=\"{class}\" fill=\"currentColor\" fill-opacity=\"0.18\" d=\"{path}Z\"/>\n"
        ));
    }

    /// A `shape` (path data around the origin) at `(x, y)` with a tooltip.
    pub(super) fn marker(&mut self, class: &str, shape: &str, (x, y): (f64, f64), tooltip: &str) {
        let place = format!("translate({} {})", pixels(x), pixels(y));
        self.out.push_str(&format!(
            "<path class=\"{class}\" transform=\"{place}\" d=\"{shape}\""
        ));
        if tooltip.is_empty() {
            self.out.push_str("/>\n");
        } else {
            self.out
                .push_str(&format!("><title>{}</title></path>\n", escape(tooltip)));
        }
    }

    /// Lines of text, the baseline of the first at `y`.
    pub(super) fn lines(&mut self, face: Face, (x, y): (f64, f64), anchor: Anchor, lines: &Lines) {
        for (index, line) in lines.lines.iter().enumerate() {
            let y = y + index as f64 * face.line_height();
            let place = format!("x=\"{}\" y=\"{}\"", pixels(x), pixels(y));
            self.line_of(face, &place, anchor, line, lines);
        }
    }

    /// Lines of text that read upwards, the baseline of the first at `x`.
    pub(super) fn upward_lines(
        &mut self,
        face: Face,
        (x, y): (f64, f64),
        anchor: Anchor,
        lines: &Lines,
    ) {
        for (index, line) in lines.lines.iter().enumerate() {
            let x = x + index as f64 * face.line_height();
            let place = format!(
                "transform=\"translate({} {}) rotate(-90)\"",
                pixels(x),
                pixels(y)
            );
            self.line_of(face, &place, anchor, line, lines);
        }
    }

    fn line_of(&mut self, face: Face, place: &str, anchor: Anchor, line: &str, all: &Lines) {
        let (class, anchor) = (face.classes(), anchor_attribute(anchor));
        self.out
            .push_str(&format!("<text class=\"{class}\" {place}{anchor}>"));
        // What is cut can be read in full where the pointer is.
        if let Some(whole) = &all.whole {
            self.out
                .push_str(&format!("<title>{}</title>", escape(whole)));
        }
        self.out.push_str(&format!("{}</text>\n", escape(line)));
    }
}

fn anchor_attribute(anchor: Anchor) -> &'static str {
    match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    }
}
