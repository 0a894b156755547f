//! What can vary from point to point, along one axis or several.

use zonelab_lab::run::Point;

use super::support::{SMALL, Tiny, parse, points, problems, run, with};

/// The small experiment with other axes, and without what names values of its own.
fn with_axes(axes: &str) -> String {
    let text = with(
        SMALL,
        "[axis]\nname = \"depth\"\nvalues = [1, 2, 4]\n",
        axes,
    );
    let (before, rest) = text.split_once("[[interference]]").expect("it is there");
    let (_, figure) = rest.split_once("[figure]").expect("it is there");
    format!("{before}[figure]{figure}")
}

const TWO_AXES: &str = r#"
[[axis]]
name = "depth"
values = [1, 4]
[[axis]]
name = "block"
values = ["4KiB", "16KiB"]
"#;

fn names(points: &[Point]) -> Vec<(&str, &str)> {
    let name = |point| (Point::series(point), Point::x(point).text.as_str());
    points.iter().map(name).collect()
}

/// What the first job of each point is, with the page read time of its drive.
fn jobs(points: &[Point]) -> Vec<(u32, u64, u64)> {
    let job = |point: &Point| {
        let job = &point.experiment().jobs[0];
        let drive = point.drive(&Tiny).expect("a drive").config;
        (job.queue_depth, job.block_bytes, drive.media.read_ns.0)
    };
    points.iter().map(job).collect()
}

#[test]
fn crossed_axes_repeat_every_series() {
    let text = with_axes(TWO_AXES);
    let text = with(&text, "queue_depth = \"$x\"", "queue_depth = \"$depth\"");
    let text = with(
        &text,
        "zones = \"0..=3\"\nblock = \"16KiB\"",
        "zones = \"0..=3\"\nblock = \"$block\"",
    );
    let points = points(&text, &[]).expect("sound axes");
    let (alone, beside) = ("alone, block ", "beside resets, block ");
    let at = |x: &'static str| {
        [
            (alone, "4KiB"),
            (alone, "16KiB"),
            (beside, "4KiB"),
            (beside, "16KiB"),
        ]
        .map(|(series, block)| (format!("{series}{block}"), x.to_owned()))
    };
    let expected = [at("1"), at("4")].concat();
    let named: Vec<_> = names(&points)
        .into_iter()
        .map(|(series, x)| (series.to_owned(), x.to_owned()))
        .collect();
    assert_eq!(named, expected);
    let sizes: Vec<_> = jobs(&points).iter().map(|job| (job.0, job.1)).collect();
    let at = |depth| [4096, 16_384, 4096, 16_384].map(|block| (depth, block));
    assert_eq!(sizes, [at(1), at(4)].concat());
    // Each is measured as itself: reads of 16 KiB take longer on the link than of 4 KiB.
    let results = run(&text, 1, 1).expect("it runs");
    let bytes = |series: &str| {
        let mut results = results.iter();
        let result = results
            .find(|of| of.series == series && of.x.text == "1")
            .expect("a point");
        let of = |metric| result.jobs[0].metrics.get(metric).expect("it was measured");
        of("mib_s") / of("ops_s") * 1024.0
    };
    assert!((bytes("alone, block 4KiB") - 4.0).abs() < 1e-6);
    assert!((bytes("alone, block 16KiB") - 16.0).abs() < 1e-6);
}

/// The values of a paired axis go along; what is derived from the drive varies, too.
#[test]
fn paired_axes_move_together() {
    let text = with_axes(
        "[[axis]]\nname = \"depth\"\nvalues = [1, 2, 4]\n\
         [[axis]]\nname = \"latency\"\nzip = \"depth\"\nvalues = [10, 20, 40]\n",
    );
    let text = with(
        &text,
        "profile = \"tiny\"",
        "profile = \"tiny\"\ndrive = [\"media.read=${latency}us\"]",
    );
    let points = points(&text, &[]).expect("sound axes");
    assert_eq!(
        names(&points)[..2],
        [("alone", "1"), ("beside resets", "1")]
    );
    let expected = [(1, 10), (1, 10), (2, 20), (2, 20), (4, 40), (4, 40)];
    let expected = expected.map(|(depth, us)| (depth, 16_384, us * 1000));
    assert_eq!(jobs(&points), expected);
}

#[test]
fn a_setting_of_the_drive_of_a_series_can_vary() {
    let text = with(
        SMALL,
        "name = \"alone\"",
        "name = \"alone\"\ndrive = [\"media.read=${x}0us\"]",
    );
    let points = points(&text, &[]).expect("a sound axis");
    let read: Vec<u64> = jobs(&points).iter().map(|job| job.2 / 1000).collect();
    assert_eq!(read, [10, 60, 20, 60, 40, 60]);
}

/// Words, flags and fractions are values, too; a setting of the command line may have them.
#[test]
fn any_value_can_be_on_an_axis() {
    let text = with_axes("[[axis]]\nname = \"order\"\nvalues = [true, false]\n");
    let text = with(&text, "queue_depth = \"$x\"", "random = \"$order\"");
    let points_of = |text: &str, set: &[&str]| points(text, set).expect("a sound axis");
    let points = points_of(&text, &[]);
    assert_eq!(points[0].x().literal(), "true");
    assert_eq!(points[2].x().number.to_bits(), 2_f64.to_bits());
    let described: Vec<bool> = points
        .iter()
        .map(|point| point.describe_jobs().contains("random: true"))
        .collect();
    assert_eq!(described, [true, true, false, false]);

    let words = with(
        SMALL,
        "values = [1, 2, 4]",
        "values = [\"write\", \"append\"]",
    );
    let words = words.replace("x = 4,", "x = \"write\",");
    let words = with(&words, "queue_depth = \"$x\"", "");
    let words = with(&words, "work = \"read\"", "work = \"$x\"");
    let points = points_of(&words, &[]);
    assert!(points[0].describe_jobs().contains("append: false"));
    assert!(points[3].describe_jobs().contains("append: true"));

    let set = ["job.0.block=${x}KiB", "axis.values=[4, 8]"];
    let text = with(SMALL, "queue_depth = \"$x\"\n", "");
    assert_eq!(jobs(&points_of(&text, &set))[2].1, 8192);
}

/// The host and what is between it and the drive.
#[test]
fn the_way_to_the_drive_can_vary() {
    let text = with(
        SMALL,
        "values = [1, 2, 4]",
        "values = [\"direct\", \"pcie\"]",
    );
    let text = text.replace("x = 4,", "x = \"pcie\",");
    let text = with(&text, "queue_depth = \"$x\"", "");
    let text = with(&text, "submit = \"2us\"", "via = \"$x\"");
    let points = points(&text, &[]).expect("a sound axis");
    let ways: Vec<_> = points.iter().map(|point| point.via().name()).collect();
    assert_eq!(ways, ["direct", "direct", "pcie", "pcie"]);
}

#[test]
fn axes_that_do_not_fit_are_refused() {
    let refused = |axes: &str, says: &str| {
        let said = problems(&with_axes(axes), &[]);
        assert!(said.contains(says), "{said}\nnot\n{says}");
    };
    let depth = "[[axis]]\nname = \"depth\"\nvalues = [1, 4]\n";
    let second = |rest: &str| format!("{depth}[[axis]]\n{rest}\n");
    refused(
        &second("name = \"b\"\nvalues = [1]"),
        "axis.1: nothing depends on the axis \"b\"; write \"$b\" as a value of",
    );
    refused(
        &second("name = \"b\"\nvalues = [1]\nzip = \"depth\""),
        "axis.1.values: 1 values are paired with 2 of \"depth\"; as many of each",
    );
    refused(
        &second("name = \"b\"\nvalues = [1, 2]\nzip = \"dept\""),
        "axis.1.zip: no axis before this one that is not paired itself is called \"dept\"; \
         choose one of: depth",
    );
    refused(
        &second("name = \"b c\"\nvalues = [1]"),
        "axis.1.name: \"b c\" cannot stand",
    );
    refused(
        &second("name = \"depth\"\nvalues = [1]"),
        "axis.1.name: \"depth\" is there already",
    );
    refused(
        &second("name = \"x\"\nvalues = [1]"),
        "axis.1.name: \"$x\" is the first axis",
    );
    refused(&second("name = \"b\""), "axis.1.values: missing");
    refused(
        &second("name = \"b\"\nvalues = [1, 1]"),
        "axis.1.values.1: \"1\" is there already",
    );
    refused(
        &second("name = \"b\"\nvalues = []"),
        "axis.1.values: there are no values",
    );
    let many = (0..6000)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(", ");
    refused(
        &second(&format!("name = \"b\"\nvalues = [{many}]")),
        "axis: the axes make 12000 points of every series; at most 10000",
    );
    refused("axis = []\n", "axis: there is no axis in the list");
}

#[test]
fn a_name_that_is_no_axis_is_refused_where_it_stands() {
    let text = with(SMALL, "queue_depth = \"$x\"", "queue_depth = \"$deth\"");
    let line = 1 + text
        .lines()
        .take_while(|line| !line.contains("$deth"))
        .count();
    let says = format!(
        "small.toml:{line}: job.0.queue_depth: nothing is called \"$deth\"; \
         did you mean \"$depth\"?"
    );
    assert_eq!(problems(&text, &[]), says);
}

/// Of several axes, the value that does not fit is named where it is used.
#[test]
fn a_value_of_any_axis_that_does_not_fit_is_refused() {
    let text = with_axes(&TWO_AXES.replace("16KiB", "5s"));
    let text = with(
        &text,
        "zones = \"0..=3\"\nblock = \"16KiB\"",
        "zones = \"0..=3\"\nblock = \"$block\"",
    );
    let says = problems(&text, &[]);
    assert!(
        says.contains("job.0.block: \"5s\" has the unknown unit"),
        "{says}"
    );
}

/// Series of a check are named with the values of the crossed axes.
#[test]
fn statements_are_about_repeated_series() {
    let text = with_axes(TWO_AXES);
    let text = with(
        &text,
        "zones = \"0..=3\"\nblock = \"16KiB\"",
        "zones = \"0..=3\"\nblock = \"$block\"",
    );
    let check = |series: &str| {
        let of = format!("{{ series = \"{series}\", x = 4, job = \"read\", metric = \"kiops\" }}");
        format!("{text}\n[[check]]\nsays = \"s\"\nvalue = {of}\nat_least = 1\n")
    };
    assert_eq!(problems(&check("alone, block 16KiB"), &[]), "nothing");
    let says = problems(&check("alone"), &[]);
    assert!(
        says.contains("check.0.value.series: there is no \"alone\""),
        "{says}"
    );
    assert_eq!(parse(&text).series.len(), 4);
}

/// A published value belongs to one of the repetitions, and nothing says to which.
#[test]
fn a_series_that_is_repeated_has_no_published_values_of_its_own() {
    let text = with_axes(TWO_AXES).replace("queue_depth = \"$x\"\n", "queue_depth = \"$depth\"\n");
    let text = text.replace("fill = \"16KiB\"", "fill = \"$block\"");
    assert_eq!(problems(&text, &[]), "nothing");
    let point = "\n  [[series.point]]\n  x = 1\n  metric = \"kiops\"\n  value = 3\n";
    let text = with(&text, "[[compare]]", &format!("{point}[[compare]]"));
    let says = "series.1.point: a series that is repeated has no published values of its own";
    assert!(
        problems(&text, &[]).contains(says),
        "{}",
        problems(&text, &[])
    );
}
