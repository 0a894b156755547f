//! What must hold for every figure, and one figure in full.

use proptest::prelude::*;

use super::*;

/// Throughput against P95 latency: the shape of the write figures of
/// ConfZNS++, with ours a little off the published points.
fn interference() -> Figure {
    let curves: [(&str, [(f64, f64); 7]); 4] = [
        (
            "alone",
            [
                (1.361, 733.2),
                (2.721, 733.2),
                (4.079, 733.2),
                (5.428, 733.2),
                (5.696, 1286.1),
                (5.705, 1433.6),
                (5.702, 2056.2),
            ],
        ),
        (
            "finish, 16 KiB",
            [
                (1.352, 733.2),
                (2.724, 733.2),
                (4.077, 741.4),
                (4.569, 1286.1),
                (4.755, 1450.0),
                (4.881, 1695.7),
                (4.991, 2146.3),
            ],
        ),
        (
            "finish, 256 KiB",
            [
                (0.691, 3489.8),
                (1.322, 3489.8),
                (1.928, 3489.8),
                (2.376, 4046.9),
                (2.441, 4145.2),
                (2.445, 4227.1),
                (2.436, 4292.6),
            ],
        ),
        (
            "reset, synchronous",
            [
                (0.670, 733.2),
                (1.351, 733.2),
                (2.026, 733.2),
                (2.688, 733.2),
                (2.825, 1220.6),
                (2.822, 1925.1),
                (2.823, 1957.9),
            ],
        ),
    ];
    let mut panel = Panel::new(
        "Writes beside management operations at 50 %",
        Axis::linear("throughput", "KIOPS"),
        Axis::log10("P95 latency", "us"),
    );
    for (name, points) in curves {
        let level = |n: usize| format!("concurrency {}", n + 1);
        let published = points.iter().enumerate().map(|(n, (x, y))| {
            let point = Point::new(*x, *y).label(level(n));
            if name == "alone" && n == 6 {
                point.spread(1581.1, 2408.5)
            } else {
                point
            }
        });
        let ours = points.iter().enumerate().map(|(n, (x, y))| {
            Point::new(x * (1.01 - 0.004 * n as f64), y * 1.012).label(level(n))
        });
        panel = panel.series(Series::new(name).ours(ours).published(published));
    }
    Figure::new("Interference with writes").panel(panel)
}

/// Finish latency against occupancy: straight lines, linear axes.
fn finish_latency() -> Panel {
    let occupancy = Axis::linear("occupancy", "%").spanning(0.0, 100.0);
    let mut panel = Panel::new("Finish", occupancy, Axis::linear("finish latency", "s"));
    for (kib, seconds) in [(16, 48.9), (32, 24.5), (64, 12.3), (256, 12.0)] {
        let ours = (0..=10).map(|n| {
            let share = f64::from(n) / 10.0;
            Point::new(share * 100.0, seconds * (1.0 - share))
        });
        let published = [Point::new(0.0, seconds * 0.99)];
        let series = Series::new(format!("{kib} KiB")).ours(ours);
        panel = panel.series(if kib == 16 {
            series.published(published)
        } else {
            series
        });
    }
    panel
}

#[test]
fn a_figure_in_full() {
    insta::assert_snapshot!("interference", interference().to_svg());
}

/// Values of `attribute="…"` in document order.
fn attributes<'a>(svg: &'a str, attribute: &str) -> Vec<&'a str> {
    let key = format!(" {attribute}=\"");
    svg.split(key.as_str())
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect()
}

fn elements<'a>(svg: &'a str, class: &str) -> Vec<&'a str> {
    let key = format!("class=\"{class}\"");
    svg.lines().filter(|line| line.contains(&key)).collect()
}

fn number(element: &str, attribute: &str) -> f64 {
    attributes(element, attribute)[0].parse().unwrap()
}

fn place(element: &str) -> (f64, f64) {
    let inside = element
        .split("translate(")
        .nth(1)
        .unwrap()
        .split(')')
        .next()
        .unwrap();
    let (x, y) = inside.split_once(' ').unwrap();
    (x.parse().unwrap(), y.parse().unwrap())
}

/// Checks what holds for every figure with one panel, and gives the places of
/// its data markers.
fn check(svg: &str) -> Vec<(f64, f64)> {
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    assert_eq!(
        svg.matches("<text ").count(),
        svg.matches("</text>").count()
    );
    let frame = elements(svg, "frame")[0];
    let (left, top) = (number(frame, "x"), number(frame, "y"));
    let (right, bottom) = (left + number(frame, "width"), top + number(frame, "height"));
    let markers = elements(svg, "dot")
        .into_iter()
        .chain(elements(svg, "ring"));
    let data = markers.filter(|m| m.contains("<title>"));
    let places: Vec<_> = data.map(place).collect();
    for (x, y) in &places {
        assert!(
            (left - 0.01..=right + 0.01).contains(x),
            "{x} of {left}..{right}"
        );
        assert!(
            (top - 0.01..=bottom + 0.01).contains(y),
            "{y} of {top}..{bottom}"
        );
    }
    // The legend is below the plot area, so it cannot cover a point.
    for sample in elements(svg, "dot")
        .into_iter()
        .chain(elements(svg, "ring"))
    {
        assert!(sample.contains("<title>") || place(sample).1 > bottom + 20.0);
    }
    places
}

#[test]
fn all_points_are_drawn_inside_the_plot_area() {
    assert_eq!(check(&interference().to_svg()).len(), 4 * 7 * 2);
    let figure = Figure::new("").panel(finish_latency());
    assert_eq!(check(&figure.to_svg()).len(), 4 * 11 + 1);
}

#[test]
fn nothing_leaves_the_page() {
    let figure = interference()
        .panel(finish_latency())
        .panel(finish_latency());
    let svg = figure.to_svg();
    let root = svg.lines().next().unwrap();
    let (width, height) = (number(root, "width"), number(root, "height"));
    assert_eq!(elements(&svg, "frame").len(), 3);
    for text in svg
        .lines()
        .filter(|l| l.starts_with("<text") && !l.contains("transform"))
    {
        assert!((0.0..=width).contains(&number(text, "x")), "{text}");
        assert!((0.0..=height).contains(&number(text, "y")), "{text}");
    }
    for frame in elements(&svg, "frame") {
        assert!(number(frame, "x") + number(frame, "width") <= width);
        assert!(number(frame, "y") + number(frame, "height") <= height);
    }
}

#[test]
fn panels_do_not_overlap() {
    let svg = Figure::new("")
        .panel(finish_latency())
        .panel(finish_latency())
        .panel(finish_latency())
        .panel(finish_latency())
        .to_svg();
    let frames = elements(&svg, "frame");
    let edge = |f: &str| number(f, "x") + number(f, "width");
    assert!(edge(frames[0]) < number(frames[1], "x") && edge(frames[1]) < number(frames[2], "x"));
    assert!(number(frames[3], "y") > number(frames[0], "y") + number(frames[0], "height"));
}

#[test]
fn a_series_looks_the_same_in_every_panel() {
    let axis = || Axis::linear("x", "");
    let point = || [Point::new(1.0, 1.0), Point::new(2.0, 2.0)];
    let figure = Figure::new("")
        .panel(
            Panel::new("", axis(), axis())
                .series(Series::new("a").ours(point()))
                .series(Series::new("b").ours(point())),
        )
        .panel(Panel::new("", axis(), axis()).series(Series::new("b").ours(point())));
    let svg = figure.to_svg();
    // One group of b in each panel, and its entry in the legend.
    assert_eq!(elements(&svg, "s1").len(), 3);
    assert_eq!(elements(&svg, "s0").len(), 2);
}

#[test]
fn text_from_outside_is_escaped() {
    let nasty = "</text><script>alert('x')</script>&\u{0}";
    let axis = || Axis::log10(nasty, nasty);
    let point = Point::new(1.0, 2.0).label(nasty);
    let series = Series::new(nasty).ours([point.clone(), point]);
    let svg = Figure::new(nasty)
        .panel(Panel::new(nasty, axis(), axis()).series(series))
        .to_svg();
    assert!(!svg.contains("<script") && !svg.contains('\u{0}'));
    assert!(svg.contains("&lt;script&gt;alert(&#39;x&#39;)"));
}

#[test]
fn points_without_a_place_are_counted_and_break_the_line() {
    let points = [
        (1.0, 1.0),
        (2.0, 2.0),
        (3.0, 0.0),
        (4.0, f64::NAN),
        (5.0, 3.0),
        (6.0, 4.0),
    ];
    let series = Series::new("").ours(points.map(|(x, y)| Point::new(x, y)));
    let panel = Panel::new("", Axis::linear("x", ""), Axis::log10("y", "")).series(series);
    let svg = Figure::new("").panel(panel).to_svg();
    assert_eq!(check(&svg).len(), 4);
    assert_eq!(elements(&svg, "line").len(), 2);
    assert!(svg.contains("2 points not drawn"));
}

#[test]
fn empty_figures_say_so() {
    assert!(Figure::default().to_svg().ends_with("</svg>\n"));
    let panel = Panel::new("", Axis::linear("x", ""), Axis::log10("y", ""));
    let svg = Figure::new("t").panel(panel).to_svg();
    assert!(svg.contains("no data"));
    assert_eq!(check(&svg).len(), 0);
}

#[test]
fn the_legend_explains_hollow_markers_only_where_there_are_both_kinds() {
    let both = interference().to_svg();
    assert!(both.contains(">published</text>") && both.contains(">zonelab</text>"));
    let series = Series::new("a").ours([Point::new(1.0, 1.0)]);
    let axis = || Axis::linear("x", "");
    let ours = Figure::new("")
        .panel(Panel::new("", axis(), axis()).series(series))
        .to_svg();
    assert!(!ours.contains(">published</text>"));
}

proptest! {
    #[test]
    fn any_values_give_a_sound_figure(
        points in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..12),
        log in any::<(bool, bool)>(),
        // Neither "NaN" nor "inf", which `check` looks for.
        text in "[^Ni]{0,40}",
    ) {
        let axis = |log| if log { Axis::log10(&text, "u") } else { Axis::linear("q", &text) };
        let points: Vec<_> =
            points.into_iter().map(|(x, y, s)| Point::new(x, y).spread(y.min(s), y.max(s))).collect();
        let series = Series::new(&text).ours(points.clone()).published(points);
        let svg = Figure::new(&text)
            .panel(Panel::new(&text, axis(log.0), axis(log.1)).series(series))
            .to_svg();
        check(&svg);
    }
}
