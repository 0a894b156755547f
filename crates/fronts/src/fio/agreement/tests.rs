use zonelab_device::Nanos;
use zonelab_host::stats::Latency;

use super::*;

fn known(value: f64, low: f64, high: f64) -> Estimated {
    Estimated {
        value,
        low: Some(low),
        high: Some(high),
    }
}

fn line(values: [Option<Estimated>; 2], metric: Metric, way: [f64; 2]) -> Line {
    Line::new(
        ("job".to_owned(), Direction::Write, metric),
        values,
        0.03,
        way,
    )
}

#[test]
fn what_lies_within_the_tolerance_with_its_whole_interval_agrees() {
    let first = Some(known(100.0, 99.5, 100.5));
    let of = |second| {
        let line = line([first, Some(second)], Metric::Throughput, [0.0; 2]);
        line.verdict
    };
    assert_eq!(of(known(101.0, 100.5, 101.5)), Verdict::Agrees);
    assert_eq!(of(known(99.0, 98.5, 99.5)), Verdict::Agrees);
    assert_eq!(of(known(102.9, 102.0, 103.8)), Verdict::Undecided);
    assert_eq!(of(known(103.1, 102.0, 104.2)), Verdict::Undecided);
    assert_eq!(of(known(105.0, 104.5, 105.5)), Verdict::Differs);
    assert_eq!(of(known(95.0, 94.5, 95.5)), Verdict::Differs);
}

#[test]
fn what_is_not_known_well_enough_never_agrees() {
    let unknown = |value| {
        Some(Estimated {
            value,
            low: None,
            high: None,
        })
    };
    let of = |second| {
        let line = line([unknown(100.0), second], Metric::MeanLatency, [0.0; 2]);
        (line.verdict, line.difference.map(|of| of.low))
    };
    assert_eq!(of(unknown(100.0)), (Verdict::Undecided, Some(None)));
    assert_eq!(of(unknown(104.0)), (Verdict::Differs, Some(None)));
    assert_eq!(of(None), (Verdict::Differs, None));
    assert_eq!(of(unknown(f64::MIN_POSITIVE)).0, Verdict::Differs);
}

/// The errors of both sides count: 4 % and 3 % of two values are 5 % of their ratio.
#[test]
fn the_interval_of_a_difference_has_the_errors_of_both() {
    let first = known(200.0, 194.0, 206.0);
    let second = known(220.0, 211.2, 228.8);
    let Estimated { value, low, high } = second.against(first);
    assert!((value - 0.1).abs() < 1e-12);
    assert!((low.unwrap() - (1.1 * 0.95 - 1.0)).abs() < 1e-12, "{low:?}");
    assert!(
        (high.unwrap() - (1.1 * 1.05 - 1.0)).abs() < 1e-12,
        "{high:?}"
    );
}

fn latencies(us: impl IntoIterator<Item = u64>) -> Latency {
    let mut all = Latency::new();
    us.into_iter().for_each(|us| all.record(Nanos::from_us(us)));
    all
}

/// An empty command takes 1 us here, and there 20 us, one in a hundred 50 us: a
/// percentile of 400 us may be 49 us and 3 % later, and not earlier than 3 %.
#[test]
fn percentiles_may_differ_by_what_the_way_adds() {
    let near = latencies(vec![1; 1000]);
    let far = latencies([vec![20; 985], vec![50; 15]].concat());
    let way = way_between([&near, &far]);
    let of = |metric, second| {
        let values = [known(400e3, 400e3, 400e3), known(second, second, second)];
        line(values.map(Some), metric, way).verdict
    };
    let p99 = Metric::Percentile(99.0);
    assert_eq!(of(p99, 460e3), Verdict::Agrees);
    assert_eq!(of(p99, 462e3), Verdict::Differs);
    assert_eq!(of(p99, 387e3), Verdict::Differs);
    assert_eq!(of(Metric::MeanLatency, 413e3), Verdict::Differs);
    // The other way round they may be earlier.
    let way = way_between([&far, &near]);
    let values = [known(400e3, 400e3, 400e3), known(340e3, 340e3, 340e3)].map(Some);
    assert_eq!(line(values, p99, way).verdict, Verdict::Agrees);
}

/// A busy host: an empty command takes 50 us, and one in a hundred 120 ms, so that a P99 of
/// 100 us could be anything. Neither what is the same nor what is not is called so, and such
/// a comparison is no agreement.
#[test]
fn what_would_be_tolerated_whatever_it_is_cannot_be_judged() {
    let near = latencies(vec![1; 1000]);
    let far = latencies([vec![50; 985], vec![120_000; 15]].concat());
    let way = way_between([&near, &far]);
    let p99 = Metric::Percentile(99.0);
    let of = |second: f64| {
        let values = [known(100e3, 100e3, 100e3), known(second, second, second)];
        line(values.map(Some), p99, way)
    };
    for second in [100e3, 200e3, 1e9] {
        assert_eq!(of(second).verdict, Verdict::Unjudged, "{second}");
    }
    let throughput = [Some(known(100.0, 99.9, 100.1)); 2];
    let throughput = line(throughput, Metric::Throughput, way);
    assert_eq!(throughput.verdict, Verdict::Agrees);
    let side = |empty: Latency| Side {
        device: "a".to_owned(),
        empty,
        lateness: None,
    };
    let mut agreement = Agreement {
        sides: [side(near), side(far)],
        tolerance: 0.03,
        lines: vec![throughput],
        too_busy: None,
    };
    assert!(agreement.is_agreed());
    agreement.lines.push(of(100e3));
    assert!(!agreement.is_agreed());
    let text = agreement.to_text(&zonelab_lab::table::Style::default());
    assert!(text.contains("1 agree within 3 %, 0 differ"), "{text}");
    assert!(text.contains("1 cannot be judged here: "), "{text}");
    assert!(!text.contains("too busy"), "{text}");
    agreement.too_busy = Some("what was due was handled 4 ms late (P99)".to_owned());
    let text = agreement.to_text(&zonelab_lab::table::Style::default());
    let why = "too busy to judge: what was due was handled 4 ms late (P99). ";
    assert!(text.contains(why), "{text}");
    let json: serde_json::Value = serde_json::from_str(&agreement.to_json()).unwrap();
    assert_eq!(json["too_busy"], *agreement.too_busy.as_ref().unwrap());
    // What nobody knows well enough is no agreement either.
    agreement.lines = vec![line(
        [Some(known(100.0, 50.0, 150.0)); 2],
        Metric::Throughput,
        [0.0; 2],
    )];
    assert!(!agreement.is_agreed());
}

#[test]
fn percentiles_are_known_by_their_ranks() {
    let all = latencies(1..=10_000);
    let p50 = Estimated::of_rank(&all, 50.0, 1.0).unwrap();
    // 98 ranks to either side, and a bucket is a thousandth wide.
    let near = |value: Option<f64>, us: f64| (value.unwrap() / (us * 1e3) - 1.0).abs() < 2e-3;
    assert!(near(Some(p50.value), 5_000.0), "{p50:?}");
    assert!(near(p50.low, 4_902.0) && near(p50.high, 5_098.0), "{p50:?}");
    let wider = Estimated::of_rank(&all, 50.0, 3.0).unwrap();
    assert!(
        near(wider.low, 4_706.0) && near(wider.high, 5_294.0),
        "{wider:?}"
    );
    // Ten latencies are beyond P99.9, nine and a half beyond P99.905.
    assert!(Estimated::of_rank(&all, 99.9, 1.0).is_some());
    assert_eq!(Estimated::of_rank(&all, 99.905, 1.0), None);
    assert_eq!(Estimated::of_rank(&Latency::new(), 50.0, 1.0), None);
}

#[test]
fn what_agrees_is_said_to_do_so_within_what_was_tolerated() {
    let first = Some(known(100.0, 99.9, 100.1));
    let second = Some(known(106.0, 105.9, 106.1));
    let side = || Side {
        device: "drive".to_owned(),
        empty: latencies([1]),
        lateness: None,
    };
    let agreement = Agreement {
        sides: [side(), side()],
        tolerance: 0.03,
        lines: vec![
            line([first, second], Metric::Percentile(99.0), [-6.1, 6.1]),
            line([first, second], Metric::Percentile(99.9), [-9.0, 9.0]),
            line(
                [first, Some(known(300.0, 299.0, 301.0))],
                Metric::Percentile(50.0),
                [-20.0, 20.0],
            ),
        ],
        too_busy: None,
    };
    assert!((agreement.agrees_within() - 0.12).abs() < 1e-12);
    let text = agreement.to_text(&zonelab_lab::table::Style::default());
    assert!(text.contains("2 agree within 12 %, 1 differ"), "{text}");
}
