//! Layout and drawing of a figure.

use super::axis::{Axis, Fitted, Tick};
use super::canvas::{Anchor, Canvas};
use super::text::{escape, fit, pixels, value, width};
use super::{Figure, Panel, Point, Series, style};

/// Panels in one row of the figure.
const PANELS_PER_ROW: usize = 3;
/// Space around the whole figure, pixels.
const MARGIN: f64 = 16.0;
/// Height of the figure title with the space below it.
const TITLE: f64 = 30.0;
/// Height of a panel title with the space below it.
const PANEL_TITLE: f64 = 24.0;
/// Space below the plot area: tick labels and the axis caption.
const BELOW: f64 = 46.0;
/// Space right of the plot area: half a tick label.
const RIGHT: f64 = 28.0;
/// Height of one row of the legend or one note.
const LEGEND_ROW: f64 = 20.0;
/// Width of the sample in a legend entry.
const SAMPLE: f64 = 26.0;
/// Radius of our solid markers.
pub(super) const DOT: f64 = 2.6;
/// Radius of the hollow published markers.
pub(super) const RING: f64 = 4.8;
/// With more points than this a line has no markers: they would hide it.
const MARKED_POINTS: usize = 80;

/// The whole document.
pub(super) fn figure(figure: &Figure) -> String {
    let names = names(figure);
    let mut canvas = Canvas::default();
    let top = MARGIN + if figure.title.is_empty() { 0.0 } else { TITLE };
    let (charts, (right, mut bottom)) = lay_out(figure, top);
    let missing: usize = charts
        .iter()
        .map(|chart| chart.draw(&names, &mut canvas))
        .sum();
    if !figure.title.is_empty() {
        let title = fit(&figure.title, 16.0, right - 2.0 * MARGIN);
        canvas.text("title", (MARGIN, MARGIN + 14.0), Anchor::Start, &title);
    }
    bottom = legend(figure, &names, (bottom, right), &mut canvas);
    if missing > 0 {
        let note = format!("{missing} points not drawn: the axis has no place for their value");
        canvas.text("note", (MARGIN, bottom + 12.0), Anchor::Start, &note);
        bottom += LEGEND_ROW;
    }
    document(
        &figure.title,
        (right, bottom + MARGIN - 6.0),
        &canvas.into_body(),
    )
}

/// Places the panels in rows with aligned columns, the first row at `top`;
/// gives them with the right edge of the page and their bottom.
fn lay_out(figure: &Figure, top: f64) -> (Vec<Chart<'_>>, (f64, f64)) {
    let size = plot_size(figure.panels.len());
    let mut charts: Vec<_> = figure.panels.iter().map(|p| Chart::new(p, size)).collect();
    let columns = charts.len().min(PANELS_PER_ROW);
    let mut lefts = Vec::with_capacity(columns);
    let mut right = MARGIN;
    for column in 0..columns {
        let gutters = charts
            .iter()
            .skip(column)
            .step_by(PANELS_PER_ROW)
            .map(Chart::gutter);
        let left = right + gutters.fold(0.0, f64::max);
        lefts.push(left);
        right = left + size.0 + RIGHT;
    }
    let mut bottom = top;
    for row in charts.chunks_mut(PANELS_PER_ROW) {
        let titled = row.iter().any(|c| !c.panel.title.is_empty());
        bottom += if titled { PANEL_TITLE } else { 0.0 };
        for (chart, left) in row.iter_mut().zip(&lefts) {
            chart.origin = (*left, bottom);
        }
        bottom += size.1 + BELOW + 10.0;
    }
    (
        charts,
        (right.max(MARGIN + 320.0) + MARGIN - RIGHT / 2.0, bottom),
    )
}

fn document(title: &str, (width, height): (f64, f64), body: &str) -> String {
    let (w, h, title) = (pixels(width), pixels(height), escape(title));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"zl\" role=\"img\" \
         aria-label=\"{title}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\">\n"
    );
    out.push_str(&format!("<style>\n{}</style>\n", style::SHEET));
    out.push_str(&format!(
        "<rect class=\"page\" width=\"{w}\" height=\"{h}\"/>\n"
    ));
    out.push_str(body);
    out.push_str("</svg>\n");
    out
}

/// The names of all series in order of appearance: a position is a look.
fn names(figure: &Figure) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for series in figure.panels.iter().flat_map(|p| &p.series) {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    names
}

/// Size of each plot area when there are `panels` of them.
fn plot_size(panels: usize) -> (f64, f64) {
    match panels {
        0 | 1 => (540.0, 320.0),
        2 => (390.0, 280.0),
        _ => (300.0, 240.0),
    }
}

/// A panel with its place on the page.
struct Chart<'a> {
    panel: &'a Panel,
    x: Fitted,
    y: Fitted,
    /// Upper left corner of the plot area.
    origin: (f64, f64),
    size: (f64, f64),
    /// Width of the widest label of the y axis.
    label_width: f64,
}

impl<'a> Chart<'a> {
    /// Fits the axes. The place on the page is for the caller to set.
    fn new(panel: &'a Panel, size: (f64, f64)) -> Self {
        let points = || {
            panel
                .series
                .iter()
                .flat_map(|s| s.ours.iter().chain(&s.published))
        };
        let drawn = || points().filter(|p| has_place(panel, p));
        let x = Fitted::new(&panel.x, drawn().map(|p| p.x));
        let ys = drawn().flat_map(|p| {
            let (low, high) = spread(&panel.y, p).unwrap_or((p.y, p.y));
            [p.y, low, high]
        });
        let y = Fitted::new(&panel.y, ys);
        let label_width = y
            .ticks
            .iter()
            .map(|t| width(&t.label, 11.0))
            .fold(0.0, f64::max);
        Self {
            panel,
            x,
            y,
            origin: (0.0, 0.0),
            size,
            label_width,
        }
    }

    /// Room left of the plot area: caption, gap, labels, gap.
    fn gutter(&self) -> f64 {
        16.0 + 6.0 + self.label_width + 8.0
    }

    fn at_x(&self, value: f64) -> f64 {
        self.origin.0 + self.x.share(value) * self.size.0
    }

    fn at_y(&self, value: f64) -> f64 {
        self.origin.1 + (1.0 - self.y.share(value)) * self.size.1
    }

    fn at(&self, point: &Point) -> (f64, f64) {
        (self.at_x(point.x), self.at_y(point.y))
    }

    /// Draws everything; gives the number of points without a place.
    fn draw(&self, names: &[&str], canvas: &mut Canvas) -> usize {
        canvas.rect("frame", self.origin, self.size);
        self.draw_grid(canvas);
        self.draw_x_axis(canvas);
        self.draw_y_axis(canvas);
        self.draw_titles(canvas);
        let look = |s: &Series| names.iter().position(|n| *n == s.name).unwrap_or(0);
        for series in &self.panel.series {
            self.draw_ours(series, look(series), canvas);
        }
        for series in &self.panel.series {
            self.draw_published(series, look(series), canvas);
        }
        let points = || {
            self.panel
                .series
                .iter()
                .flat_map(|s| s.ours.iter().chain(&s.published))
        };
        if !points().any(|p| has_place(self.panel, p)) {
            let centre = (
                self.origin.0 + self.size.0 / 2.0,
                self.origin.1 + self.size.1 / 2.0,
            );
            canvas.text("note", centre, Anchor::Middle, "no data");
        }
        points().filter(|p| !has_place(self.panel, p)).count()
    }

    fn draw_grid(&self, canvas: &mut Canvas) {
        let (left, top) = self.origin;
        let (right, bottom) = (left + self.size.0, top + self.size.1);
        for tick in self.x.ticks.iter().filter(|t| !t.label.is_empty()) {
            let x = self.at_x(tick.value);
            canvas.line("grid", &[(x, top), (x, bottom)]);
        }
        for tick in self.y.ticks.iter().filter(|t| !t.label.is_empty()) {
            let y = self.at_y(tick.value);
            canvas.line("grid", &[(left, y), (right, y)]);
        }
    }

    fn draw_x_axis(&self, canvas: &mut Canvas) {
        let bottom = self.origin.1 + self.size.1;
        let mut taken = f64::NEG_INFINITY;
        for Tick { value, label } in &self.x.ticks {
            let x = self.at_x(*value);
            if label.is_empty() {
                canvas.line("axis", &[(x, bottom), (x, bottom + 2.5)]);
                continue;
            }
            canvas.line("axis", &[(x, bottom), (x, bottom + 4.5)]);
            // A label that would touch the one before is left out.
            let half = width(label, 11.0) / 2.0;
            if x - half > taken + 3.0 {
                canvas.text("tick-label", (x, bottom + 17.0), Anchor::Middle, label);
                taken = x + half;
            }
        }
        canvas.line(
            "axis",
            &[
                (self.origin.0, bottom),
                (self.origin.0 + self.size.0, bottom),
            ],
        );
    }

    fn draw_y_axis(&self, canvas: &mut Canvas) {
        let left = self.origin.0;
        let mut taken = f64::INFINITY;
        for Tick { value, label } in &self.y.ticks {
            let y = self.at_y(*value);
            if label.is_empty() {
                canvas.line("axis", &[(left - 2.5, y), (left, y)]);
                continue;
            }
            canvas.line("axis", &[(left - 4.5, y), (left, y)]);
            if taken - y > 11.0 {
                canvas.text("tick-label", (left - 8.0, y + 4.0), Anchor::End, label);
                taken = y;
            }
        }
        canvas.line(
            "axis",
            &[(left, self.origin.1), (left, self.origin.1 + self.size.1)],
        );
    }

    fn draw_titles(&self, canvas: &mut Canvas) {
        let (left, top) = self.origin;
        let (wide, high) = self.size;
        let title = fit(&self.panel.title, 13.0, wide);
        if !title.is_empty() {
            canvas.text("panel-title", (left, top - 11.0), Anchor::Start, &title);
        }
        let below = (left + wide / 2.0, top + high + 38.0);
        canvas.text(
            "caption",
            below,
            Anchor::Middle,
            &fit(&self.panel.x.caption(), 12.0, wide),
        );
        let beside = (left - 8.0 - self.label_width - 10.0, top + high / 2.0);
        canvas.upward_text("caption", beside, &fit(&self.panel.y.caption(), 12.0, high));
    }

    fn draw_ours(&self, series: &Series, look: usize, canvas: &mut Canvas) {
        if series.ours.is_empty() {
            return;
        }
        canvas.open(&style::colour(look));
        // A point without a place breaks the line: a bridge would invent one.
        let runs = series.ours.split(|p| !has_place(self.panel, p));
        for run in runs.filter(|_| !series.is_scattered) {
            let places: Vec<_> = run.iter().map(|p| self.at(p)).collect();
            canvas.line("line", &places);
        }
        let marked = series.is_scattered || series.ours.len() <= MARKED_POINTS;
        for point in series
            .ours
            .iter()
            .filter(|p| marked && has_place(self.panel, p))
        {
            self.draw_spread(point, canvas);
            let tooltip = self.tooltip(series, "zonelab", point);
            let radius = DOT * (1.0 + point.swell.clamp(0.0, 1.0));
            canvas.marker(
                "dot",
                &style::marker(look, radius),
                self.at(point),
                &tooltip,
            );
        }
        canvas.close();
    }

    fn draw_published(&self, series: &Series, look: usize, canvas: &mut Canvas) {
        if series.published.is_empty() {
            return;
        }
        canvas.open(&style::colour(look));
        for point in series.published.iter().filter(|p| has_place(self.panel, p)) {
            self.draw_spread(point, canvas);
            let tooltip = self.tooltip(series, "published", point);
            canvas.marker("ring", &style::marker(look, RING), self.at(point), &tooltip);
        }
        canvas.close();
    }

    fn draw_spread(&self, point: &Point, canvas: &mut Canvas) {
        let Some((low, high)) = spread(&self.panel.y, point) else {
            return;
        };
        let (x, low, high) = (self.at_x(point.x), self.at_y(low), self.at_y(high));
        canvas.line("spread", &[(x, low), (x, high)]);
        canvas.line("spread", &[(x - 3.0, low), (x + 3.0, low)]);
        canvas.line("spread", &[(x - 3.0, high), (x + 3.0, high)]);
    }

    fn tooltip(&self, series: &Series, source: &str, point: &Point) -> String {
        let mut out = format!("{} ({source}): ", series.name);
        out.push_str(&quantity(&self.panel.x, point.x));
        out.push_str(", ");
        out.push_str(&quantity(&self.panel.y, point.y));
        if let Some((low, high)) = spread(&self.panel.y, point) {
            out.push_str(&format!(" (repeats {} to {})", value(low), value(high)));
        }
        if !point.label.is_empty() {
            out.push_str(&format!(", {}", point.label));
        }
        out
    }
}

fn quantity(axis: &Axis, number: f64) -> String {
    format!("{} {} {}", axis.quantity, value(number), axis.unit)
        .trim()
        .to_owned()
}

/// Whether both axes of `panel` can place `point`.
fn has_place(panel: &Panel, point: &Point) -> bool {
    panel.x.places(point.x) && panel.y.places(point.y)
}

/// The spread of `point` if it is an interval that `axis` can place.
fn spread(axis: &Axis, point: &Point) -> Option<(f64, f64)> {
    point
        .spread
        .filter(|(low, high)| axis.places(*low) && axis.places(*high) && low <= high)
}

/// Draws the legend below `top`, in as many rows as it needs; gives its bottom.
///
/// It stands outside every plot area, so it covers no data.
fn legend(figure: &Figure, names: &[&str], (top, page): (f64, f64), canvas: &mut Canvas) -> f64 {
    let all = || figure.panels.iter().flat_map(|p| &p.series);
    let has_published = all().any(|s| !s.published.is_empty());
    let has_ours = all().any(|s| !s.ours.is_empty());
    let room = page - 2.0 * MARGIN - SAMPLE - 8.0;
    let mut pen = Pen {
        x: MARGIN,
        y: top,
        right: page - MARGIN,
    };
    if names.len() > 1 || names.iter().any(|n| !n.is_empty()) {
        for (look, name) in names.iter().enumerate() {
            let name = fit(name, 12.0, room);
            let at = pen.next(SAMPLE + 6.0 + width(&name, 12.0));
            let mine = || all().filter(|s| s.name == names[look]);
            let has_ours = mine().any(|s| !s.ours.is_empty());
            let show = Shown {
                line: has_ours && !mine().all(|s| s.is_scattered),
                dot: has_ours,
                ring: !has_ours,
            };
            sample(canvas, at, &style::colour(look), show, look);
            canvas.text(
                "caption",
                (at.0 + SAMPLE + 6.0, at.1 + 4.0),
                Anchor::Start,
                &name,
            );
        }
    }
    if has_published && has_ours {
        // One entry, so that the two explanations stay side by side.
        let texts = [("zonelab", true), ("published", false)];
        let widths = texts.map(|(text, _)| SAMPLE + 6.0 + width(text, 12.0) + 12.0);
        let mut at = pen.next(widths.iter().sum());
        for ((text, solid), wide) in texts.into_iter().zip(widths) {
            let show = Shown {
                line: solid,
                dot: solid,
                ring: !solid,
            };
            sample(canvas, at, "key", show, 0);
            canvas.text(
                "note",
                (at.0 + SAMPLE + 6.0, at.1 + 4.0),
                Anchor::Start,
                text,
            );
            at.0 += wide;
        }
    }
    if pen.x > MARGIN {
        pen.y + LEGEND_ROW
    } else {
        pen.y
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
    right: f64,
}

impl Pen {
    /// The left end, at mid height, of an entry that is `wide`.
    fn next(&mut self, wide: f64) -> (f64, f64) {
        if self.x > MARGIN && self.x + wide > self.right {
            self.x = MARGIN;
            self.y += LEGEND_ROW;
        }
        let place = (self.x, self.y + LEGEND_ROW / 2.0);
        self.x += wide + 18.0;
        place
    }
}
