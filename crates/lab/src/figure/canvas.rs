//! The few SVG elements that charts need, in a growing string.

use super::text::{escape, pixels};

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

    /// A text on one line.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = anchor_attribute(anchor);
        let (x, y) = (pixels(x), pixels(y));
        self.out.push_str(&format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>"
        ));
        self.out.push_str(&format!("{}</text>\n", escape(text)));
    }

    /// A text that reads upwards, centred on `(x, y)`.
    pub(super) fn upward_text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let place = format!("translate({} {}) rotate(-90)", pixels(x), pixels(y));
        let anchor = anchor_attribute(Anchor::Middle);
        self.out.push_str(&format!(
            "<text class=\"{class}\" transform=\"{place}\"{anchor}>"
        ));
        self.out.push_str(&format!("{}</text>\n", escape(text)));
    }
}

fn anchor_attribute(anchor: Anchor) -> &'static str {
    match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    }
}
