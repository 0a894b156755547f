//! Experiment files: what is refused, where, with which remedy.

use zonelab_lab::experiment::{AxisValue, Experiment};

use super::support::{SMALL, overrides, parse, points, problems, with};

/// Line of `needle` in the experiment, from 1.
fn line(text: &str, needle: &str) -> usize {
    let at = text.find(needle).expect("it is there");
    1 + text[..at].matches('\n').count()
}

/// One mistake: what is said of it, and at the line of its key, or of the table
/// that the key is in.
fn refused(text: &str, place: &str, key: &str, says: &str) {
    let key_line = line(text, place);
    let before: Vec<&str> = text.lines().take(key_line).collect();
    let table_line = 1 + before
        .iter()
        .rposition(|line| line.starts_with('['))
        .unwrap_or(0);
    let expected = [key_line, table_line].map(|line| format!("small.toml:{line}: {key}: {says}"));
    let said = problems(text, &[]);
    assert!(expected.contains(&said), "{said}\nnot\n{}", expected[0]);
}

#[test]
fn the_small_experiment_is_read() {
    let experiment = parse(SMALL);
    assert_eq!(
        (experiment.id.as_str(), experiment.kind.as_str()),
        ("small", "S")
    );
    assert_eq!(experiment.series.len(), 2);
    assert_eq!(experiment.series[1].phases, [["read", "reset"]]);
    let points = points(SMALL, &[]).unwrap();
    let depths: Vec<_> = points
        .iter()
        .map(|point| point.experiment().jobs[0].queue_depth)
        .collect();
    assert_eq!(depths, [1, 1, 2, 2, 4, 4]);
}

#[test]
fn axis_values_are_put_in_with_their_type() {
    let text = with(
        SMALL,
        "values = [1, 2, 4]",
        "values = [\"4KiB\", \"16KiB\"]",
    )
    .replace("x = 4,", "x = \"4KiB\",");
    let text = with(&text, "queue_depth = \"$x\"", "block = \"$x\"");
    let text = with(&text, "block = \"16KiB\"\n", "");
    let points = points(&text, &[]).unwrap();
    let blocks: Vec<_> = points
        .iter()
        .map(|point| point.experiment().jobs[0].block_bytes)
        .collect();
    assert_eq!(blocks, [4096, 4096, 16_384, 16_384]);
    assert_eq!(points[0].x().number.to_bits(), 4096_f64.to_bits());
}

#[test]
fn percentages_and_times_are_axis_values_too() {
    let axis = |values: &str| {
        let text = with(SMALL, "values = [1, 2, 4]", &format!("values = {values}"));
        Experiment::parse("small.toml", &text, &[], None)
            .map(|experiment| experiment.axis.values)
            .map_err(|errors| errors.to_string())
    };
    let value = |text: &str, number: f64| AxisValue {
        text: text.to_owned(),
        number,
        is_bare: false,
    };
    assert_eq!(
        axis("[\"0.001%\", \"50%\"]"),
        Ok(vec![value("0.001%", 0.001), value("50%", 50.0)])
    );
    assert_eq!(axis("[\"3us\"]"), Ok(vec![value("3us", 3_000.0)]));
    let says = axis("[\"4KiB\", \"many\"]").unwrap_err();
    assert!(
        says.starts_with("small.toml:8: axis.values.1: \"many\" is not a number, as others"),
        "{says}"
    );
    let says = axis(r#"["1\"2"]"#).unwrap_err();
    assert!(says.contains("cannot hold quotes"), "{says}");
}

/// A problem that only one value shows stands at the line of its key.
#[test]
fn a_value_that_does_not_fit_is_refused_where_it_is_used() {
    let text = with(SMALL, "values = [1, 2, 4]", "values = [1, 4, 70000]");
    refused(
        &text,
        "queue_depth",
        "job.0.queue_depth",
        "70000 is out of range; at least 1, at most 65536",
    );
    // Of another type than the key.
    let text =
        with(SMALL, "values = [1, 2, 4]", "values = [\"4KiB\"]").replace("x = 4,", "x = \"4KiB\",");
    let says = problems(&text, &[]);
    let place = format!(
        "small.toml:{}: job.0.queue_depth: ",
        line(&text, "queue_depth")
    );
    assert!(says.starts_with(&place), "{says}");
}

/// What names a part of the experiment does not vary.
#[test]
fn a_title_is_left_alone() {
    let text = with(
        SMALL,
        "title = \"Reads beside resets\"",
        "title = \"Reads at $x\"",
    );
    assert_eq!(
        points(&text, &[]).unwrap()[0].experiment().title,
        "Reads at $x"
    );
}

#[test]
fn names_that_are_not_there_are_refused_with_the_nearest() {
    let known = "there is no \"raed\"; did you mean \"read\"?";
    let text = with(SMALL, "jobs = [\"read\"]", "jobs = [\"raed\"]");
    refused(&text, "jobs = [\"raed\"]", "series.0.jobs", known);
    let text = with(
        SMALL,
        "[[compare]]\njob = \"read\"",
        "[[compare]]\njob = \"raed\"",
    );
    refused(&text, "job = \"raed\"", "compare.0.job", known);
    let text = with(
        SMALL,
        "[figure]\njob = \"read\"",
        "[figure]\njob = \"raed\"",
    );
    refused(&text, "job = \"raed\"", "figure.job", known);
    let text = with(SMALL, "isolated = \"alone\"", "isolated = \"allone\"");
    let says = "there is no \"allone\"; did you mean \"alone\"?";
    refused(&text, "allone", "interference.0.isolated", says);
    let text = with(
        SMALL,
        "larger = { series = \"alone\"",
        "larger = { series = \"zzz\"",
    );
    let says = "there is no \"zzz\"; choose one of: alone, beside resets";
    refused(&text, "larger", "check.0.larger.series", says);
    let text = with(SMALL, "metrics = [\"kiops\", ", "metrics = [\"kiop\", ");
    let says = problems(&text, &[]);
    assert!(
        says.contains("compare.0.metrics.0") && says.contains("kiops"),
        "{says}"
    );
}

#[test]
fn axis_values_that_are_not_there_are_refused() {
    let text = with(
        SMALL,
        "smaller = { series = \"beside resets\", x = 4",
        "smaller = { series = \"beside resets\", x = 8",
    );
    refused(
        &text,
        "smaller",
        "check.0.smaller.x",
        "there is no \"8\"; choose one of: 1, 2, 4",
    );
    let informative =
        "\n  [[compare.informative]]\n  metrics = [\"kiops\"]\n  x = [3]\n  reason = \"r\"\n";
    let text = with(
        SMALL,
        "[[interference]]",
        &format!("{informative}\n[[interference]]"),
    );
    assert!(problems(&text, &[]).contains("compare.0.informative.0.x: there is no \"3\""));
    // Who asks for fewer points on the command line may.
    assert_eq!(problems(SMALL, &["axis.values=[1]"]), "nothing");
    assert_eq!(problems(SMALL, &["axis.values.2=8"]), "nothing");
}

#[test]
fn names_are_unique() {
    let text = with(SMALL, "name = \"reset\"", "name = \"read\"");
    let says = problems(&text, &[]);
    assert!(
        says.contains("job.1.name: \"read\" is there already; names must differ"),
        "{says}"
    );
    let text = with(SMALL, "name = \"beside resets\"", "name = \"alone\"");
    let says = problems(&text, &[]);
    assert!(
        says.contains("series.1.name: \"alone\" is there already"),
        "{says}"
    );
    refused(
        &with(SMALL, "values = [1, 2, 4]", "values = [1, 4, 1]"),
        "values",
        "axis.values.2",
        "\"1\" is there already; names must differ",
    );
    let says = problems(&with(SMALL, "values = [1, 2, 4]", "values = []"), &[]);
    assert!(says.contains("axis.values: there are no values"), "{says}");
}

#[test]
fn all_problems_are_listed_at_once_by_line() {
    let text = with(
        SMALL,
        "title = \"Reads beside resets\"\n",
        "titel = \"x\"\n",
    );
    let text = with(&text, "jitter = \"1us\"", "jitter = 1");
    let says = problems(&text, &[]);
    let places: Vec<_> = says
        .lines()
        .map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        places,
        [
            "small.toml title",
            "small.toml:3 titel",
            "small.toml:13 host.jitter"
        ],
        "{says}"
    );
    assert!(says.contains("did you mean `title`?"), "{says}");
}

#[test]
fn keys_of_jobs_are_checked_once_values_are_in() {
    let text = with(SMALL, "rate_ops = 300", "rate_opps = 300");
    let says = problems(&text, &[]);
    let place = line(&text, "rate_opps");
    assert!(
        says.starts_with(&format!("small.toml:{place}: job.1.rate_opps: unknown key")),
        "{says}"
    );
    assert!(says.contains("did you mean `rate_ops`?"), "{says}");
    // A key of another kind of work has no meaning here.
    let text = with(SMALL, "shuffled = true", "open_zones = 2");
    assert!(problems(&text, &[]).contains("job.1.open_zones: unknown key"));
}

#[test]
fn settings_are_read_as_the_file_is() {
    let points = points(SMALL, &["job.0.runtime=5ms", "host.jitter=", "id=other"]).unwrap();
    let experiment = points[0].experiment();
    assert_eq!(experiment.id, "other");
    assert_eq!(
        experiment.jobs[0].stop.runtime,
        Some(zonelab_device::Nanos::from_ms(5))
    );
    assert_eq!(
        experiment.host.stack.costs.jitter_ns,
        zonelab_device::Nanos::ZERO
    );
    let says = problems(SMALL, &["job.0.runtime=5"]);
    assert!(
        says.starts_with("small.toml: --set job.0.runtime=5: "),
        "{says}"
    );
}

/// Sums of times must not leave the range of time, whatever a file says.
#[test]
fn times_have_a_limit() {
    let keys = [
        "job.0.runtime",
        "job.0.ramp",
        "job.0.start",
        "host.start_spread",
    ];
    for key in keys {
        assert_eq!(
            problems(SMALL, &[&format!("{key}=10000000s")]),
            "nothing",
            "{key}"
        );
        let says = problems(SMALL, &[&format!("{key}=10000001s")]);
        assert!(
            says.ends_with("this is too long a time; at most 10000000s"),
            "{says}"
        );
    }
    for key in [
        "host.submit",
        "host.complete",
        "host.turn",
        "host.jitter",
        "host.hiccup",
    ] {
        let says = problems(SMALL, &[&format!("{key}=1001ms")]);
        assert!(
            says.ends_with("this is too long a time; at most 1s"),
            "{says}"
        );
    }
}

/// A stack that there is not leaves the other keys of its host what they are.
#[test]
fn an_unknown_stack_is_the_only_mistake() {
    let says = problems(SMALL, &["host.stack=spkd"]);
    assert!(says.contains("did you mean \"spdk\"?"), "{says}");
    assert!(!says.contains("unknown key"), "{says}");
}

#[test]
fn phases_and_jobs_exclude_each_other() {
    let text = with(
        SMALL,
        "jobs = [\"read\"]",
        "jobs = [\"read\"]\nphases = [[\"read\"]]",
    );
    let says = problems(&text, &[]);
    assert!(
        says.contains("series.0.phases: contradicts other keys"),
        "{says}"
    );
    let text = with(SMALL, "jobs = [\"read\"]\n", "");
    assert!(problems(&text, &[]).contains("series.0.jobs: missing; name the jobs that run"));
}

#[test]
fn quick_settings_are_settings() {
    let text = format!("{SMALL}\n[quick]\nset = [\"job.0.runtime=1ms\"]\n");
    let experiment = parse(&text);
    assert_eq!(experiment.quick.set, overrides(&["job.0.runtime=1ms"]));
    assert!(experiment.quick.runs("alone") && experiment.quick.runs("beside resets"));
    let says = problems(&format!("{SMALL}\n[quick]\nset = [\"nonsense\"]\n"), &[]);
    assert!(says.contains("quick.set.0: there is no `=`"), "{says}");

    let text = format!("{SMALL}\n[quick]\nseries = [\"alone\"]\nskip = \"long\"\n");
    let quick = parse(&text).quick;
    assert!(quick.runs("alone") && !quick.runs("beside resets"));
    assert_eq!(quick.skip.as_deref(), Some("long"));
    let text = format!("{SMALL}\n[quick]\nseries = [\"allone\"]\n");
    let says = "there is no \"allone\"; did you mean \"alone\"?";
    refused(&text, "allone", "quick.series", says);
}

#[test]
fn a_file_of_another_version_is_refused() {
    let says = problems(&with(SMALL, "schema = 1", "schema = 2"), &[]);
    assert!(
        says.starts_with("small.toml:1: schema: 2 is out of range"),
        "{says}"
    );
}

/// Whatever is cut off or doubled, reading gives values or errors.
#[test]
fn no_prefix_of_a_file_makes_it_panic() {
    for end in (0..SMALL.len()).step_by(7) {
        let _ = points(&SMALL[..end], &[]);
    }
    for (n, _) in SMALL.lines().enumerate() {
        let without: String = SMALL
            .lines()
            .enumerate()
            .filter(|(m, _)| *m != n)
            .map(|(_, line)| format!("{line}\n"))
            .collect();
        let _ = points(&without, &[]);
    }
}

/// Cores and slices belong together; either can vary along the axis.
#[test]
fn shared_cores_have_slices() {
    assert!(problems(SMALL, &["host.cores=2"]).contains("host.slice: missing"));
    let says = problems(SMALL, &["host.slice=16ms"]);
    assert!(
        says.contains("contradicts other keys; only with `cores`"),
        "{says}"
    );
    let text = with(
        SMALL,
        "submit = \"2us\"",
        "cores = \"$x\"\nslice = \"16ms\"",
    );
    let points = points(&text, &[]).unwrap();
    let cores = |i: usize| points[i].host().cores.map(|(cores, _)| cores.get());
    assert_eq!((cores(0), cores(2), cores(4)), (Some(1), Some(2), Some(4)));
}

#[test]
fn a_series_can_have_fewer_points() {
    let text = with(SMALL, "name = \"alone\"", "name = \"alone\"\nx = [1, 4]");
    let of = |settings: &[&str]| -> Vec<String> {
        let points = points(&text, settings).unwrap();
        let alone = points.iter().filter(|point| point.series() == "alone");
        alone.map(|point| point.x().text.clone()).collect()
    };
    assert_eq!(of(&[]), ["1", "4"]);
    assert_eq!(of(&["axis.values=[1, 2]"]), ["1"]);
    let text = with(SMALL, "name = \"alone\"", "name = \"alone\"\nx = [3]");
    assert!(problems(&text, &[]).contains("series.0.x: there is no \"3\""));
}

#[test]
fn zones_are_prepared_as_asked() {
    let open = with(SMALL, "work = \"reset\"", "work = \"open\"");
    let says = problems(&open, &[]);
    assert!(says.contains("job.1.shuffled: unknown key"), "{says}");
    let settings = [
        "job.1.settle=1s",
        "job.1.open_first=true",
        "job.1.finish_first=true",
    ];
    assert_eq!(problems(SMALL, &settings), "nothing");
    assert_eq!(problems(SMALL, &["job.1.fill=7"]), "nothing");
    assert!(problems(SMALL, &["job.1.fill=-7"]).contains("-7 is negative"));
    assert_eq!(
        problems(SMALL, &["job.1.periods=3", "job.1.rate_counts=issue"]),
        "nothing"
    );
    assert!(problems(SMALL, &["job.1.periods=0"]).contains("out of range"));
}
