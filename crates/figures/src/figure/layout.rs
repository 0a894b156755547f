//! Where everything on a page goes.

use super::axis::{Fitted, Tick};
use super::text::{CAPTION, Face, Lines, PANEL_TITLE, TICK, TITLE};
use super::ticks::TickLabels;
use super::{Figure, Panel, Point, render};

/// Panels in one row of the figure.
const PANELS_PER_ROW: usize = 3;
/// Space around the whole figure, pixels.
pub(super) const MARGIN: f64 = 16.0;
/// Space below the title of the figure.
const BELOW_TITLE: f64 = 10.0;
/// Between the title of a panel and its plot area.
pub(super) const BELOW_PANEL_TITLE: f64 = 8.0;
/// From the plot area to the labels of its ticks.
pub(super) const TO_LABELS: f64 = 7.5;
/// From the labels of ticks to the caption of the axis.
pub(super) const TO_CAPTION: f64 = 7.0;
/// Space right of the plot area: half a tick label.
const RIGHT: f64 = 28.0;
/// Narrowest page without a width of its own: its title and legend need room.
const PAGE_LEAST: f64 = MARGIN + 320.0;
/// Narrowest plot area beside another one.
const PLOT_LEAST: f64 = 150.0;
/// Most lines of a title, a caption or an entry of the legend.
pub(super) const LINES_MAX: usize = 6;
/// Most lines of the caption beside a plot area.
const BESIDE_MAX: usize = 3;
/// Widest label of a vertical axis.
const LABEL_MAX: f64 = 150.0;

/// A figure with everything in its place.
pub(super) struct Page<'a> {
    pub(super) title: Lines,
    pub(super) charts: Vec<Chart<'a>>,
    pub(super) width: f64,
    /// Where the charts end.
    pub(super) bottom: f64,
}

impl<'a> Page<'a> {
    pub(super) fn of(figure: &'a Figure) -> Self {
        let (mut charts, columns) = match figure.width {
            None => {
                let size = plot_size(figure.panels.len());
                (
                    charts(figure, size),
                    figure.panels.len().min(PANELS_PER_ROW),
                )
            }
            Some(width) => charts_within(figure, width.pixels()),
        };
        let (lefts, right) = columns_of(&charts, columns);
        let width = match figure.width {
            Some(width) => width.pixels(),
            None => right.max(PAGE_LEAST) + MARGIN - RIGHT / 2.0,
        };
        let title = TITLE.wrap(&figure.title, width - 2.0 * MARGIN, LINES_MAX);
        let mut bottom = MARGIN;
        if !title.lines.is_empty() {
            bottom += TITLE.line_height() + title.extra(TITLE) + BELOW_TITLE;
        }
        for row in charts.chunks_mut(columns.max(1)) {
            let titles = row.iter().map(Chart::above);
            bottom += titles.fold(0.0, f64::max);
            for (chart, left) in row.iter_mut().zip(&lefts) {
                chart.origin = (*left, bottom);
            }
            let heights = row.iter().map(|chart| chart.size.1 + chart.below());
            bottom += heights.fold(0.0, f64::max) + 10.0;
        }
        Self {
            title,
            charts,
            width,
            bottom,
        }
    }
}

fn charts(figure: &Figure, size: (f64, f64)) -> Vec<Chart<'_>> {
    let panels = figure.panels.iter();
    panels.map(|panel| Chart::new(panel, size)).collect()
}

/// The charts in as many columns as there is room for in a page that is `width` wide.
fn charts_within(figure: &Figure, width: f64) -> (Vec<Chart<'_>>, usize) {
    let most = figure.panels.len().clamp(1, PANELS_PER_ROW);
    let mut columns = most;
    loop {
        // The space left of a plot area depends on its height, by the lines of a caption, and
        // the height on its width: the second round has the height of the first.
        let guess = (width - 2.0 * MARGIN) / columns as f64 - 80.0;
        let height = height_of(guess);
        let tried = charts(figure, (guess.max(1.0), height));
        let (_, right) = columns_of(&tried, columns);
        let beside = right - guess.max(1.0) * columns as f64 - RIGHT / 2.0 + MARGIN;
        let plot = (width - beside) / columns as f64;
        if plot >= PLOT_LEAST || columns == 1 {
            return (charts(figure, (plot.max(40.0), height)), columns);
        }
        columns -= 1;
    }
}

/// Left ends of the plot areas in each of the columns, and the right end of all.
fn columns_of(charts: &[Chart<'_>], columns: usize) -> (Vec<f64>, f64) {
    let mut lefts = Vec::with_capacity(columns);
    let mut right = MARGIN;
    for column in 0..columns {
        let mine = || charts.iter().skip(column).step_by(columns);
        let left = right + mine().map(Chart::gutter).fold(0.0, f64::max);
        lefts.push(left);
        right = left + mine().map(|chart| chart.size.0).fold(0.0, f64::max) + RIGHT;
    }
    (lefts, right)
}

/// Size of each plot area when there are `panels` of them.
fn plot_size(panels: usize) -> (f64, f64) {
    match panels {
        0 | 1 => (540.0, 320.0),
        2 => (390.0, 280.0),
        _ => (300.0, 240.0),
    }
}

/// The height of a plot area that is `width` wide: a little more than golden for narrow ones.
fn height_of(width: f64) -> f64 {
    (width * 0.4 + 110.0).clamp(130.0, 420.0)
}

/// A panel with its place on the page.
pub(super) struct Chart<'a> {
    pub(super) panel: &'a Panel,
    pub(super) x: Fitted,
    pub(super) y: Fitted,
    /// Upper left corner of the plot area.
    pub(super) origin: (f64, f64),
    pub(super) size: (f64, f64),
    /// Heading.
    pub(super) title: Lines,
    /// Captions of the axes: below, and left.
    pub(super) captions: (Lines, Lines),
    /// Labels of the horizontal axis.
    pub(super) x_labels: TickLabels,
    /// Width of the widest label of the y axis.
    pub(super) label_width: f64,
}

impl<'a> Chart<'a> {
    /// Fits the axes. The place on the page is for the caller to set.
    pub(super) fn new(panel: &'a Panel, size: (f64, f64)) -> Self {
        let (x, y) = render::fitted(panel);
        let labels = y.ticks.iter().map(|tick| y_label(tick).width(TICK));
        let label_width = labels.fold(0.0, f64::max);
        let captions = (
            CAPTION.wrap(&panel.x.caption(), size.0 + RIGHT, LINES_MAX),
            CAPTION.wrap(&panel.y.caption(), size.1, BESIDE_MAX),
        );
        let mut chart = Self {
            panel,
            x,
            y,
            origin: (0.0, 0.0),
            size,
            title: PANEL_TITLE.wrap(&panel.title, size.0 + RIGHT / 2.0, LINES_MAX),
            captions,
            x_labels: TickLabels::default(),
            label_width,
        };
        let room = (chart.gutter() - 2.0, RIGHT - 2.0);
        chart.x_labels = TickLabels::place(&chart.x, size.0, room);
        chart
    }

    /// Room left of the plot area: caption, gap, labels, gap.
    fn gutter(&self) -> f64 {
        16.0 + self.captions.1.extra(CAPTION) + 6.0 + self.label_width + 8.0
    }

    /// Room above the plot area.
    fn above(&self) -> f64 {
        if self.title.lines.is_empty() {
            // Half of a label at the upper end, or of a marker.
            return 6.0;
        }
        PANEL_TITLE.line_height() + self.title.extra(PANEL_TITLE) + BELOW_PANEL_TITLE
    }

    /// Room below the plot area: labels of ticks, and the caption.
    fn below(&self) -> f64 {
        let captions = CAPTION.line_height() + self.captions.0.extra(CAPTION);
        TO_LABELS + self.x_labels.height + TO_CAPTION + captions
    }

    pub(super) fn at_x(&self, value: f64) -> f64 {
        self.origin.0 + self.x.share(value) * self.size.0
    }

    pub(super) fn at_y(&self, value: f64) -> f64 {
        self.origin.1 + (1.0 - self.y.share(value)) * self.size.1
    }

    pub(super) fn at(&self, point: &Point) -> (f64, f64) {
        (self.at_x(point.x), self.at_y(point.y))
    }

    /// The first baseline of the heading, and those of labels and caption below the plot area.
    pub(super) fn baselines(&self) -> (f64, f64, f64) {
        let bottom = self.origin.1 + self.size.1;
        let title = self.origin.1 - BELOW_PANEL_TITLE - self.title.extra(PANEL_TITLE) - 3.0;
        let caption = bottom + TO_LABELS + self.x_labels.height + TO_CAPTION;
        (
            title,
            bottom + TO_LABELS + ascent(TICK),
            caption + ascent(CAPTION),
        )
    }
}

/// A label of the vertical axis.
pub(super) fn y_label(tick: &Tick) -> Lines {
    TICK.wrap(&tick.label, LABEL_MAX, 1)
}

/// From the top of a text to its baseline.
pub(super) const fn ascent(face: Face) -> f64 {
    face.size * 0.95
}
