//! Line and scatter charts as self-contained SVG.
//!
//! A [`Figure`] is data: panels with two axes each, and series of points.
//! [`Figure::to_svg`] draws it. Our points are small solid markers joined by a
//! line; the published ones are larger hollow markers of the same colour and
//! shape, so that agreement looks like a target that was hit. Colour and shape
//! follow the name of a series, so a series looks the same in every panel.
//!
//! The text is a pure function of the figure: the same figure gives the same
//! bytes on every machine (fixed decimals, ordered containers, logarithms from
//! `libm`). It needs no script, font or other file, and follows the reader's
//! light or dark preference. Points that cannot be drawn (not finite, or not
//! positive on a logarithmic axis) are left out and counted in a note below
//! the chart, never moved to an invented place.

mod axis;
mod canvas;
mod heat;
mod layout;
mod legend;
mod render;
mod size;
mod style;
mod text;
mod ticks;

#[cfg(test)]
mod boxes;
#[cfg(test)]
mod fitting;
#[cfg(test)]
mod tests;

pub use axis::{Axis, Scale};
pub use heat::{HeatCell, HeatMap};
pub use size::{Width, WidthError};

/// The path data of the markers of series `index`: ours, and the published one.
pub fn markers(index: usize) -> (String, String) {
    let (dot, ring) = (render::DOT, render::RING);
    (style::marker(index, dot), style::marker(index, ring))
}

/// The style sheet of figures.
pub const fn style_sheet() -> &'static str {
    style::SHEET
}

/// One chart, or several side by side with a common legend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Heading above all panels, in several lines if it is wider than the figure.
    pub title: String,
    /// The charts, from left to right; three to a row if the width allows that.
    pub panels: Vec<Panel>,
    /// Width of the picture. Without it, charts have the sizes of a page on a screen.
    pub width: Option<Width>,
}

impl Figure {
    /// A figure without panels.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            panels: Vec::new(),
            width: None,
        }
    }

    /// Draws the figure for this width.
    #[must_use]
    pub fn wide(mut self, width: Option<Width>) -> Self {
        self.width = width;
        self
    }

    /// Adds a panel to the right.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// The figure as an SVG document.
    ///
    /// Never fails: a figure without data gives empty axes that say so.
    #[must_use]
    pub fn to_svg(&self) -> String {
        render::figure(self)
    }
}

/// One pair of axes with its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Heading of this panel; empty for none.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, the first at the back.
    pub series: Vec<Series>,
}

impl Panel {
    /// A panel without series.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            series: Vec::new(),
        }
    }

    /// Adds a series in front of those already there.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }
}

/// One curve: what we measured and what was published for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend. Equal names in several panels share a colour.
    pub name: String,
    /// Our points, joined in the given order (which need not be that of x).
    pub ours: Vec<Point>,
    /// Published points, not joined.
    pub published: Vec<Point>,
    /// Our points are not joined either.
    pub is_scattered: bool,
}

impl Series {
    /// A series without points.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Sets our points.
    #[must_use]
    pub fn ours(mut self, points: impl IntoIterator<Item = Point>) -> Self {
        self.ours = points.into_iter().collect();
        self
    }

    /// Leaves our points unjoined.
    #[must_use]
    pub fn scattered(mut self) -> Self {
        self.is_scattered = true;
        self
    }

    /// Sets the published points.
    #[must_use]
    pub fn published(mut self, points: impl IntoIterator<Item = Point>) -> Self {
        self.published = points.into_iter().collect();
        self
    }
}

/// A point in the units of its axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// Range of y over repeats of the measurement, drawn as a thin bar.
    pub spread: Option<(f64, f64)>,
    /// 95 % confidence interval of y, part of a band below the line of our points.
    pub band: Option<(f64, f64)>,
    /// What the axes do not say about the point ("concurrency 7"); shown in
    /// its tooltip.
    pub label: String,
    /// What a third quantity adds to the size of the marker: 0 is the usual
    /// radius, 1 twice that.
    pub swell: f64,
}

impl Point {
    /// A point without spread or label.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            ..Self::default()
        }
    }

    /// Adds the range of y over repeats.
    #[must_use]
    pub fn spread(mut self, low: f64, high: f64) -> Self {
        self.spread = Some((low, high));
        self
    }

    /// Makes the marker larger, by 0 to 1 of its usual radius.
    #[must_use]
    pub fn swollen(mut self, share: f64) -> Self {
        self.swell = share;
        self
    }

    /// Adds a text to the tooltip.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
}
