//! Points that run several times: means, intervals, and differences between series.

use zonelab_lab::compare;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::difference::{self, Verdict};
use zonelab_lab::published::References;
use zonelab_lab::rows;
use zonelab_lab::run::{PointResult, RunOptions, repeat_seed, run_repeated};

use super::support::{SMALL, Tiny, parse, points, problems, run as run_once, with};

/// The results of a text on that many threads, each point as often as it says.
fn repeated(text: &str, seed: u64, threads: usize) -> Vec<PointResult> {
    let points = points(text, &[]).expect("a sound experiment");
    let options = RunOptions {
        conditions: &Conditions::default(),
        seed,
        profiles: &Tiny,
        on_point: &|_, _| (),
        interrupted: &|| false,
        abandoned: &|| false,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.expect("threads");
    let results = pool.install(|| run_repeated(&points, &options, &|_| ()));
    let results = results.expect("it runs").into_iter();
    results.map(|of| of.expect("nothing interrupts")).collect()
}

fn times(repeats: u32) -> String {
    with(
        SMALL,
        "id = \"small\"\n",
        &format!("id = \"small\"\nrepeats = {repeats}\n"),
    )
}

#[test]
fn once_is_what_it_always_was() {
    let plain = run_once(SMALL, 7, 2).unwrap();
    for text in [SMALL.to_owned(), times(1)] {
        assert_eq!(format!("{:?}", repeated(&text, 7, 2)), format!("{plain:?}"));
    }
    let references = References::builtin().unwrap();
    let csv = |text: &str| {
        let rows = compare::rows(&parse(text), &repeated(text, 7, 1), &references).unwrap();
        rows::to_csv(&rows)
    };
    assert_eq!(csv(&times(1)), csv(SMALL));
    assert!(!csv(SMALL).contains("ci_low"));
}

#[test]
fn repeats_are_runs_with_their_seeds_and_means_are_those_of_them() {
    let results = repeated(&times(4), 7, 2);
    let each: Vec<Vec<PointResult>> = (0..4)
        .map(|repeat| run_once(SMALL, repeat_seed(7, repeat), 1).unwrap())
        .collect();
    for (n, result) in results.iter().enumerate() {
        for (j, job) in result.jobs.iter().enumerate() {
            let spread = job.spread.as_ref().expect("it was repeated");
            for (repeat, metrics) in &spread.repeats {
                assert_eq!(*metrics, each[*repeat as usize][n].jobs[j].metrics);
            }
            assert_eq!(spread.repeats.len(), 4);
            let values: Vec<f64> = each
                .iter()
                .filter_map(|run| run[n].jobs[j].metrics.get("kiops"))
                .collect();
            let mean = values.iter().sum::<f64>() / 4.0;
            assert!((job.metrics.get("kiops").unwrap() - mean).abs() < 1e-12 * mean);
        }
        // What happened inside is of the first.
        assert_eq!(
            format!("{:?}", result.drive),
            format!("{:?}", each[0][n].drive)
        );
        assert_eq!(result.jobs[0].detail, each[0][n].jobs[0].detail);
    }
}

#[test]
fn threads_change_nothing() {
    let one = format!("{:#?}", repeated(&times(3), 5, 1));
    for threads in [2, 5] {
        assert!(one == format!("{:#?}", repeated(&times(3), 5, threads)));
    }
}

#[test]
fn rows_have_the_means_and_their_intervals() {
    let text = times(5);
    let (experiment, results) = (parse(&text), repeated(&text, 3, 2));
    let references = References::builtin().unwrap();
    let rows = compare::rows(&experiment, &results, &references).unwrap();
    let csv = rows::to_csv(&rows);
    let head = csv.lines().next().unwrap();
    assert!(
        head.ends_with("reason,repeats,mean,ci_low,ci_high,sd,min,max,batches"),
        "{head}"
    );
    for row in &rows {
        let of = row.statistics.expect("every row was repeated");
        let (low, high) = of.interval().unwrap();
        assert!(
            low <= row.ours * 1.000_01 && row.ours <= high * 1.000_01 + 1e-9,
            "{row:?}"
        );
        assert_eq!(of.count, 5);
        // Interference is calculated: of means, and how well it is known from repeats.
        if row.metric == "m_inter" {
            assert!(of.half_width.unwrap() > 0.0 && of.min < of.max, "{row:?}");
        }
    }
    // The figure has a band for each series, below all lines.
    let figure = compare::figure(&experiment, &results, &references)
        .unwrap()
        .unwrap();
    let svg = figure.to_svg();
    assert_eq!(svg.matches("class=\"band\"").count(), 2);
    let (last_band, first_line) = (svg.rfind("class=\"band\""), svg.find("class=\"line\""));
    assert!(last_band < first_line);
}

/// Two series that are the same but for their names, and one beside resets.
fn with_differences(repeats: u32) -> String {
    format!(
        r#"{}
[[series]]
name = "alone again"
full_zones = "0..=3"
jobs = ["read"]

[[difference]]
series = "beside resets"
baseline = "alone"
job = "read"
metrics = ["kiops", "lat_mean_us"]

[[difference]]
series = "alone again"
baseline = "alone"
job = "read"
metrics = ["kiops"]
"#,
        times(repeats)
    )
}

#[test]
fn a_difference_that_is_there_is_found() {
    let text = with_differences(12);
    let differences = difference::differences(&parse(&text), &repeated(&text, 1, 2));
    let found = differences.iter().filter(|of| of.series == "beside resets");
    for of in found.clone() {
        assert_eq!(of.statistics.count, 12);
        let (verdict, is_less) = match of.metric.0.as_str() {
            "kiops" => (Verdict::Lower, true),
            _ => (Verdict::Higher, false),
        };
        assert_eq!(of.verdict, verdict, "{of:?}");
        assert_eq!(of.relative().is_some_and(|share| share < 0.0), is_less);
    }
    assert_eq!(found.count(), 6);
    let csv = difference::to_csv(&differences);
    assert_eq!(csv.lines().count(), 10);
    assert!(csv.starts_with("experiment,series,baseline,job"));
}

/// Of intervals at a level of 95 %, one in twenty misses the truth: of thirty between two
/// series that are the same, hardly ever more than six.
#[test]
fn a_difference_that_is_not_there_is_rarely_shown() {
    let text = with_differences(6);
    let experiment = parse(&text);
    let (mut shown, mut all) = (0, 0);
    for seed in 1..=10 {
        let differences = difference::differences(&experiment, &repeated(&text, seed, 2));
        for of in differences.iter().filter(|of| of.series == "alone again") {
            all += 1;
            shown += u32::from(of.verdict != Verdict::NotShown);
        }
    }
    assert_eq!(all, 30);
    assert!(shown <= 6, "{shown}");
}

#[test]
fn one_repeat_has_differences_without_a_verdict() {
    let text = with_differences(1);
    let differences = difference::differences(&parse(&text), &repeated(&text, 1, 2));
    assert!(
        differences
            .iter()
            .all(|of| of.verdict == Verdict::OneRepeat)
    );
    assert!(
        differences
            .iter()
            .all(|of| of.statistics.half_width.is_none())
    );
    assert_eq!(differences.len(), 9);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let says = problems(&times(0), &[]);
    assert!(says.contains("small.toml:3: repeats"), "{says}");
    assert!(problems(&times(1001), &[]).contains("1000"));
    let text = with_differences(2);
    let wrong = text.replace(
        "baseline = \"alone\"\njob = \"read\"\nmetrics = [\"kiops\"]",
        "baseline = \"alon\"\njob = \"read\"\nmetrics = [\"kiops\"]",
    );
    let says = problems(&wrong, &[]);
    assert!(
        says.contains("difference.1.baseline: there is no \"alon\"; did you mean \"alone\"?"),
        "{says}"
    );
    let wrong = text.replace(
        "baseline = \"alone\"\njob = \"read\"\nmetrics = [\"kiops\"]",
        "baseline = \"alone again\"\njob = \"read\"\nmetrics = [\"kiops\"]",
    );
    assert!(problems(&wrong, &[]).contains("is compared with itself"));
}

/// An interruption leaves the means of what was run.
#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let points = points(&times(3), &[]).unwrap();
    let left = std::sync::atomic::AtomicU32::new(4);
    let interrupted = || {
        let ordering = std::sync::atomic::Ordering::Relaxed;
        let update = left.fetch_update(ordering, ordering, |left| left.checked_sub(1));
        update.is_err()
    };
    let whole = std::sync::Mutex::new(Vec::new());
    let options = RunOptions {
        conditions: &Conditions::default(),
        seed: 1,
        profiles: &Tiny,
        on_point: &|index, _| whole.lock().expect("no panic").push(index),
        interrupted: &interrupted,
        abandoned: &|| false,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let results = pool
        .install(|| run_repeated(&points, &options, &|_| ()))
        .unwrap();
    let repeats: Vec<usize> = results
        .iter()
        .flatten()
        .map(|of| {
            of.jobs[0]
                .spread
                .as_ref()
                .map_or(1, |spread| spread.repeats.len())
        })
        .collect();
    assert_eq!(repeats.iter().sum::<usize>(), 4, "{repeats:?}");
    assert_eq!(
        whole.into_inner().unwrap().len(),
        1,
        "one point has all of its repeats"
    );
}
