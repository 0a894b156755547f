//! Drawing of a figure.

use super::axis::{Axis, Fitted};
use super::canvas::{Anchor, Canvas};
use super::layout::{self, Chart, MARGIN, Page};
use super::text::{CAPTION, NOTE, PANEL_TITLE, TICK, TITLE, escape, pixels, value};
use super::{Figure, Panel, Point, Series, legend, style};

/// Radius of our solid markers.
pub(super) const DOT: f64 = 2.6;
/// Radius of the hollow published markers.
pub(super) const RING: f64 = 4.8;
/// With more points than this a line has no markers: they would hide it.
const MARKED_POINTS: usize = 80;

/// The whole document.
pub(super) fn figure(figure: &Figure) -> String {
    let names = names(figure);
    let page = Page::of(figure);
    let mut canvas = Canvas::default();
    let missing: usize = page
        .charts
        .iter()
        .map(|chart| chart.draw(&names, &mut canvas))
        .sum();
    canvas.lines(TITLE, (MARGIN, MARGIN + 14.0), Anchor::Start, &page.title);
    let mut bottom = legend::draw(figure, &names, (page.bottom, page.width), &mut canvas);
    if has_bands(figure) {
        let note = "bands: 95 % confidence intervals of means";
        let note = NOTE.wrap(note, page.width - 2.0 * MARGIN, layout::LINES_MAX);
        canvas.lines(NOTE, (MARGIN, bottom + 12.0), Anchor::Start, &note);
        bottom += 20.0 + note.extra(NOTE);
    }
    if missing > 0 {
        let note = format!("{missing} points not drawn: the axis has no place for their value");
        let note = NOTE.wrap(&note, page.width - 2.0 * MARGIN, layout::LINES_MAX);
        canvas.lines(NOTE, (MARGIN, bottom + 12.0), Anchor::Start, &note);
        bottom += 20.0 + note.extra(NOTE);
    }
    let size = (page.width, bottom + MARGIN - 6.0);
    document(figure, size, &canvas.into_body())
}

fn document(figure: &Figure, (width, height): (f64, f64), body: &str) -> String {
    let (w, h, title) = (pixels(width), pixels(height), escape(&figure.title));
    let (wide, high) = match figure.width {
        Some(unit) => (unit.length(width), unit.length(height)),
        None => (w.clone(), h.clone()),
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"zl\" role=\"img\" \
         aria-label=\"{title}\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {w} {h}\">\n"
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

/// The axes of a panel, fitted to what it shows.
pub(super) fn fitted(panel: &Panel) -> (Fitted, Fitted) {
    let points = || {
        let series = panel.series.iter();
        series.flat_map(|s| s.ours.iter().chain(&s.published))
    };
    let drawn = || points().filter(|p| has_place(panel, p));
    let ys = drawn().flat_map(|p| {
        let of_repeats = spread(&panel.y, p).or(band(&panel.y, p));
        let (low, high) = of_repeats.unwrap_or((p.y, p.y));
        [p.y, low, high]
    });
    (
        Fitted::new(&panel.x, drawn().map(|p| p.x)),
        Fitted::new(&panel.y, ys),
    )
}

impl Chart<'_> {
    /// Draws everything; gives the number of points without a place.
    fn draw(&self, names: &[&str], canvas: &mut Canvas) -> usize {
        canvas.rect("frame", self.origin, self.size);
        self.draw_grid(canvas);
        self.draw_x_axis(canvas);
        self.draw_y_axis(canvas);
        self.draw_titles(canvas);
        let look = |s: &Series| names.iter().position(|n| *n == s.name).unwrap_or(0);
        // Below all lines, so that no band hides one.
        for series in &self.panel.series {
            self.draw_bands(series, look(series), canvas);
        }
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
            let note = NOTE.wrap("no data", self.size.0, 1);
            canvas.lines(NOTE, centre, Anchor::Middle, &note);
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
        for tick in &self.x.ticks {
            let x = self.at_x(tick.value);
            let length = if tick.label.is_empty() { 2.5 } else { 4.5 };
            canvas.line("axis", &[(x, bottom), (x, bottom + length)]);
        }
        let (_, baseline, _) = self.baselines();
        for (x, label) in &self.x_labels.labels {
            let x = self.origin.0 + x;
            if self.x_labels.upward {
                let top = bottom + layout::TO_LABELS;
                canvas.upward_lines(TICK, (x + 4.0, top), Anchor::End, label);
            } else {
                canvas.lines(TICK, (x, baseline), Anchor::Middle, label);
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
        for tick in &self.y.ticks {
            let y = self.at_y(tick.value);
            if tick.label.is_empty() {
                canvas.line("axis", &[(left - 2.5, y), (left, y)]);
                continue;
            }
            canvas.line("axis", &[(left - 4.5, y), (left, y)]);
            // A label that would touch the one below is left out.
            if taken - y >= TICK.line_height() {
                let label = layout::y_label(tick);
                canvas.lines(TICK, (left - 8.0, y + 4.0), Anchor::End, &label);
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
        let (title, _, below) = self.baselines();
        canvas.lines(PANEL_TITLE, (left, title), Anchor::Start, &self.title);
        let middle = left + self.size.0 / 2.0;
        canvas.lines(CAPTION, (middle, below), Anchor::Middle, &self.captions.0);
        let caption = &self.captions.1;
        let beside = left - 8.0 - self.label_width - 10.0 - caption.extra(CAPTION);
        let at = (beside, top + self.size.1 / 2.0);
        canvas.upward_lines(CAPTION, at, Anchor::Middle, caption);
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

    /// The confidence intervals of neighbours as a band, that of a point alone as a bar.
    fn draw_bands(&self, series: &Series, look: usize, canvas: &mut Canvas) {
        let known = |p: &Point| band(&self.panel.y, p).filter(|_| has_place(self.panel, p));
        if !series.ours.iter().any(|p| known(p).is_some()) {
            return;
        }
        canvas.open(&style::colour(look));
        for run in series.ours.split(|p| known(p).is_none()) {
            let ends: Vec<_> = run.iter().filter_map(|p| Some((p, known(p)?))).collect();
            if series.is_scattered || ends.len() == 1 {
                for (p, interval) in ends {
                    self.draw_bar(self.at_x(p.x), interval, canvas);
                }
            } else if !ends.is_empty() {
                let above = ends.iter().map(|(p, (_, high))| (p.x, *high));
                let below = ends.iter().rev().map(|(p, (low, _))| (p.x, *low));
                let corners = above.chain(below);
                let corners: Vec<_> = corners.map(|(x, y)| (self.at_x(x), self.at_y(y))).collect();
                canvas.area("band", &corners);
            }
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
        if let Some(range) = spread(&self.panel.y, point) {
            self.draw_bar(self.at_x(point.x), range, canvas);
        }
    }

    fn draw_bar(&self, x: f64, (low, high): (f64, f64), canvas: &mut Canvas) {
        let (low, high) = (self.at_y(low), self.at_y(high));
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
        if let Some((low, high)) = band(&self.panel.y, point) {
            out.push_str(&format!(" (95 %: {} to {})", value(low), value(high)));
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

/// Whether a series of `figure` has confidence intervals, which are drawn as bands.
fn has_bands(figure: &Figure) -> bool {
    let series = figure.panels.iter().flat_map(|panel| &panel.series);
    let mut points = series.flat_map(|of| &of.ours);
    points.any(|point| point.band.is_some())
}

/// The confidence interval of `point` where `axis` can place it: on a logarithmic axis an
/// end that is not positive is where the point is.
fn band(axis: &Axis, point: &Point) -> Option<(f64, f64)> {
    let (low, high) = point.band?;
    let place = |end: f64| if axis.places(end) { end } else { point.y };
    (low <= high).then(|| (place(low), place(high)))
}
