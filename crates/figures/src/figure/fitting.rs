//! That nothing is clipped: every built-in figure and awkward ones, at several widths.

use std::collections::BTreeMap;

use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_host::stats::OpKind;
use zonelab_lab::compare;
use zonelab_lab::detail::{JobDetail, quantiles};
use zonelab_lab::experiment::Experiment;
use zonelab_lab::library;
use zonelab_lab::metrics::{self, Metrics};
use zonelab_lab::published::References;
use zonelab_lab::run::{self, JobMeasured, PointResult};

use super::*;

/// None, that of a column of a paper, of two, the least, and one of a slide.
const WIDTHS: [Option<&str>; 5] = [
    None,
    Some("85mm"),
    Some("178mm"),
    Some("60mm"),
    Some("1280px"),
];

fn width(text: Option<&str>) -> Option<Width> {
    text.map(|text| text.parse().unwrap())
}

fn check_all(figure: &Figure) {
    check_at_all_widths(|text| figure.clone().wide(width(text)).to_svg());
}

/// Checks a figure that is drawn at each of the widths.
fn check_at_all_widths(draw: impl Fn(Option<&str>) -> String) {
    for text in WIDTHS {
        let svg = draw(text);
        boxes::check(&svg);
        if let Some(width) = width(text) {
            let (page, _) = boxes::page(&svg);
            assert!((page - width.pixels()).abs() < 0.01, "{page} for {text:?}");
        }
    }
}

/// What a point could have measured: sizes from thousandths to millions.
fn made_up(point: &run::Point, number: usize) -> PointResult {
    let experiment = point.experiment();
    let names = experiment.result_names();
    let jobs = names.into_iter().enumerate().map(|(job, name)| {
        let value = |metric: usize| {
            let step = (number * 7 + job * 3 + metric * 11) % 90;
            libm::pow(1.3, step as f64 - 25.0)
        };
        let values = metrics::NAMES.iter().enumerate();
        let values: BTreeMap<_, _> = values.map(|(n, (name, _))| (*name, value(n))).collect();
        let latency = |share: f64| Nanos((1e4 * (1.0 + share) * (1 + number) as f64) as u64);
        JobMeasured {
            name,
            kind: OpKind::Read,
            metrics: Metrics {
                values,
                neighbours: BTreeMap::new(),
            },
            detail: JobDetail {
                measured: None,
                behind: Nanos::ZERO,
                is_uncertain: false,
                operations: 1_000_000,
                latencies: quantiles().into_iter().map(latency).collect(),
                throughput: Vec::new(),
            },
            spread: None,
        }
    });
    PointResult {
        series: point.series().to_owned(),
        x: point.x().clone(),
        jobs: jobs.collect(),
        drive: None,
        took: Nanos(1),
        lateness: None,
        operations: 1,
        failures: Vec::new(),
        ended_early: Vec::new(),
        faults_struck: Vec::new(),
        zones: None,
        slowest: Vec::new(),
        trace: None,
    }
}

#[test]
fn nothing_of_a_built_in_figure_is_clipped_at_any_width() {
    let references = References::builtin().unwrap();
    let mut drawn = 0;
    for id in library::ids() {
        let text = library::text(id).unwrap();
        let experiment = Experiment::parse(id, text, &[], None).unwrap();
        let points = run::points(id, text, &[]).unwrap();
        let results: Vec<PointResult> = points
            .iter()
            .enumerate()
            .map(|(number, point)| made_up(point, number))
            .collect();
        if let Some(figure) = compare::figure(&experiment, &results, &references).unwrap() {
            // A figure of the crate that the laboratory has, which is not this one under test.
            check_at_all_widths(|text| {
                let width = text.map(|text| text.parse().unwrap());
                figure.clone().wide(width).to_svg()
            });
            drawn += 1;
        }
    }
    assert!(drawn > 40, "{drawn} figures");
}

const LONG: &str = "random reads of 16 KiB beside finishes of nearly empty zones in device writes \
    of 256 KiB that wait until no host I/O is in flight, at most ten milliseconds each";
const WORD: &str = "Speicherplatzverwaltungsstrategieauswahlverfahren";

fn awkward(name: &str, panels: usize) -> Figure {
    let series = |n: usize| {
        let at = |x: f64| Point::new(x, 1e-3 + x * (n + 1) as f64).spread(1e-3, 1e7);
        let ours = [1.0, 10.0, 999.0].map(at);
        Series::new(format!("{name} {n}"))
            .ours(ours.clone())
            .published(ours)
    };
    let panel = |n: usize| {
        let x = Axis::linear(format!("{name} of the drive {n}"), "KIOPS");
        let y = Axis::log10(format!("P99.99 latency of {name}"), "us");
        let panel = Panel::new(format!("{name}, from P99.99"), x, y);
        (0..9).fold(panel, |panel, n| panel.series(series(n)))
    };
    (0..panels).fold(Figure::new(format!("X1: {name}")), |figure, n| {
        figure.panel(panel(n))
    })
}

#[test]
fn long_names_go_on_in_further_lines_and_are_whole() {
    for name in [LONG, WORD, "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字", "a"] {
        for panels in [1, 2, 3, 5] {
            check_all(&awkward(name, panels));
        }
    }
    // All words of a name of usual length are there, in a column as well.
    let svg = awkward(LONG, 1).wide(width(Some("85mm"))).to_svg();
    let captions = boxes::texts(&svg)
        .into_iter()
        .filter(|one| one.class == "caption");
    let all: Vec<String> = captions.map(|one| one.text).collect();
    let all = all.join(" ");
    assert!(all.contains(&format!("{LONG} 8")), "{all}");
}

#[test]
fn what_is_longer_than_several_lines_is_cut_and_whole_in_a_tooltip() {
    let name = LONG.repeat(20);
    let figure = awkward(&name, 2);
    check_all(&figure);
    assert!(
        figure
            .to_svg()
            .contains(&format!("<title>X1: {name}</title>"))
    );
}

#[test]
fn ticks_that_were_chosen_are_all_labelled() {
    // Sizes over three decades, in a column: there is no room side by side for all of them.
    let ticks: Vec<f64> = (0..12)
        .map(|n| 4096.0 * f64::from(1 << n) + 0.123_456)
        .collect();
    let x = Axis::log10("block", "B").with_ticks(ticks.iter().copied());
    let points = ticks.iter().map(|x| Point::new(*x, 1.0));
    let series = Series::new("a").ours(points);
    let panel = Panel::new("", x, Axis::linear("y", "")).series(series);
    let figure = Figure::new("").panel(panel);
    check_all(&figure);
    let svg = figure.wide(width(Some("85mm"))).to_svg();
    let ticks = boxes::texts(&svg)
        .into_iter()
        .filter(|one| one.class == "tick-label");
    let labels: Vec<String> = ticks.map(|one| one.text).collect();
    // Those of the horizontal axis come first.
    assert_eq!(labels.first().map(String::as_str), Some("4096.123456"));
    assert_eq!(
        labels.get(11).map(String::as_str),
        Some("8.389×10⁶"),
        "{labels:?}"
    );
}

#[test]
fn a_figure_has_the_width_that_it_was_asked_for_in_its_unit() {
    let svg = awkward("a", 3).wide(width(Some("85mm"))).to_svg();
    assert!(svg.starts_with("<svg ") && svg.contains(" width=\"85mm\" height=\""));
    assert!(svg.contains("viewBox=\"0 0 321.26 "));
    // Charts that have no room beside each other stand below each other.
    let frames = |svg: &str| -> Vec<String> {
        let lines = svg.lines().filter(|line| line.contains("\"frame\""));
        lines
            .map(|line| line.split(" y=").next().unwrap().to_owned())
            .collect()
    };
    let narrow = frames(&svg);
    assert_eq!(narrow.len(), 3);
    assert_eq!(narrow[0], narrow[1]);
    let wide = frames(&awkward("a", 3).wide(width(Some("1280px"))).to_svg());
    assert_ne!(wide[0], wide[1]);
}

fn heat_map(name: &str, value: f64) -> HeatMap {
    let cell = Some(HeatCell {
        value,
        note: format!("paper {name}"),
        tooltip: name.to_owned(),
    });
    HeatMap {
        title: format!("M: {name}"),
        rows: vec![name.to_owned(), "read".to_owned()],
        columns: vec!["finish".to_owned(), name.to_owned(), name.to_owned()],
        cells: vec![vec![cell.clone(), cell, None], Vec::new()],
        width: None,
    }
}

#[test]
fn nothing_of_a_heat_map_is_clipped() {
    for name in [LONG, WORD, "", &LONG.repeat(9)] {
        for value in [0.0, 0.25, 1234.5, 1e300, f64::NAN] {
            for text in WIDTHS {
                boxes::check(&heat_map(name, value).wide(width(text)).to_svg());
            }
        }
    }
    boxes::check(&HeatMap::default().to_svg());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_text_leaves_any_figure(
        points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..8),
        names in prop::collection::vec(".{0,120}", 1..5),
        panels in 1..4_usize,
        log in any::<(bool, bool)>(),
        mm in 60..400_u32,
    ) {
        let name = |n: usize| names[n % names.len()].clone();
        let axis = |log, n| if log { Axis::log10(name(n), "us") } else { Axis::linear(name(n), name(n + 1)) };
        let points: Vec<_> = points.into_iter().map(|(x, y)| Point::new(x, y)).collect();
        let mut figure = Figure::new(name(3));
        for n in 0..panels {
            let series = |n: usize| {
                Series::new(name(n)).ours(points.clone()).published(points.clone())
            };
            let panel = Panel::new(name(n), axis(log.0, n), axis(log.1, n + 2));
            figure = figure.panel(panel.series(series(n)).series(series(n + 1)));
        }
        boxes::check(&figure.to_svg());
        boxes::check(&figure.wide(format!("{mm}mm").parse().ok()).to_svg());
    }
}
