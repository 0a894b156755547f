//! `zonelab search`: the front of a small experiment, what is refused, and the
//! same bytes however they come about.

use std::collections::BTreeMap;
use std::process::Output;

use serde_json::Value;

use super::scratch::{Scratch, stderr};

/// Zones of 15 pages on two dies: a finish takes milliseconds.
const DRIVE: &str = r#"
schema = 1
name = "tiny"
[geometry]
channels = 2
pages_per_block = 8
page_size = "16KiB"
[namespace]
lba_size = "4KiB"
[zones]
count = 40
size = "256KiB"
capacity = "240KiB"
[media]
read = "60us"
program = "700us"
erase = "3.5ms"
transfer = "25us"
[finish]
design = "fill"
granularity = "32KiB"
"#;

/// Reads beside finishes.
const EXPERIMENT: &str = r#"
schema = 1
id = "tiny"
title = "Reads <beside> finishes"
profile = "./drive.toml"
[axis]
name = "depth"
values = [1, 4]
[host]
submit = "2us"
jitter = "1us"
[[job]]
name = "read"
work = "read"
zones = "0..=3"
block = "16KiB"
queue_depth = "$x"
runtime = "50ms"
ends_run = true
[[job]]
name = "finish"
work = "finish"
zones = "4..=39"
fill = "16KiB"
fill_block = "16KiB"
[[series]]
name = "alone"
full_zones = "0..=3"
jobs = ["read"]
[[series]]
name = "beside"
full_zones = "0..=3"
jobs = ["read", "finish"]
[[series]]
name = "other"
full_zones = "0..=3"
jobs = ["read", "finish"]
[[interference]]
series = "beside"
isolated = "alone"
job = "read"
"#;

const SEARCH: &str = r#"
[search]
over = ["drive.finish.granularity=16KiB,32KiB,64KiB", "drive.finish.pause=0us,500us,3ms"]
[[search.objective]]
goal = "minimize"
metric = "m_inter"
[[search.objective]]
goal = "maximize"
series = "beside"
job = "finish"
metric = "ops_s"
[[search.published]]
label = "the authors'"
values = [0.5, 40.0]
"#;

/// Bounds instead of lists.
const BOUNDS: [&str; 3] = [
    "--over",
    "drive.finish.granularity=16KiB..240KiB",
    "drive.finish.pause=10us..3ms",
];

impl Scratch {
    fn of_search(name: &str) -> Self {
        let scratch = Self::new(&format!("search-{name}"));
        scratch.write("drive.toml", DRIVE);
        scratch.write("tiny.toml", &format!("{EXPERIMENT}{SEARCH}"));
        scratch
    }

    fn search(&self, out: &str, args: &[&str]) -> Output {
        let command = ["search", "tiny.toml", "--quiet", "--out", out];
        self.zonelab(&[&command[..], args].concat())
    }

    /// Every file of a search.
    fn found(&self, out: &str) -> BTreeMap<String, String> {
        let entries = std::fs::read_dir(self.0.join(out)).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .map(|name| {
                let bytes = std::fs::read(self.0.join(out).join(&name)).unwrap();
                // Also of what is no text, where a byte that differs still shows.
                let text = bytes.iter().copied().map(char::from).collect();
                (name, String::from_utf8(bytes).unwrap_or(text))
            })
            .collect()
    }
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    super::schemas::valid("search", &output.stdout);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn objectives(one: &Value) -> Option<(f64, f64)> {
    Some((
        one["objectives"][0].as_f64()?,
        one["objectives"][1].as_f64()?,
    ))
}

/// Whether nothing else has less interference and more finishes.
fn is_best(one: &Value, all: &[Value]) -> bool {
    let Some((m, rate)) = objectives(one) else {
        return false;
    };
    let others = all.iter().filter_map(objectives);
    !others
        .into_iter()
        .any(|(other_m, other)| other_m <= m && other >= rate && (other_m < m || other > rate))
}

#[test]
fn a_grid_is_run_whole_and_its_front_marked() {
    let scratch = Scratch::of_search("grid");
    let output = scratch.search("out", &["--json"]);
    let found = json(&output);
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    assert_eq!(found["method"], "grid");
    let all = found["evaluations"].as_array().unwrap();
    // Nine candidates, and the file's own settings, which one of them is.
    assert_eq!(all.len(), 10);
    let count = |key: &str| all.iter().filter(|one| one[key] == true).count();
    assert_eq!((count("is_candidate"), count("own")), (9, 2));
    for one in all {
        assert_eq!(one["front"], is_best(one, all), "{one}");
        // What no objective looks at is not run.
        assert_eq!(one["points"].as_array().unwrap().len(), 4);
        assert!(one["points"][0]["jobs"]["read"]["lat_p99_us"].is_number());
    }
    assert!((2..9).contains(&count("front")));
    let files = scratch.found("out");
    assert_eq!(
        files.keys().map(String::as_str).collect::<Vec<_>>(),
        [
            "evaluations.jsonl",
            "front.svg",
            "inputs.json",
            "manifest.json",
            "search.csv",
            "search.html",
            "search.json",
            "sweep-pack.json",
            "sweep.csv",
            "sweep.jsonl"
        ]
    );
    assert_eq!(files["search.json"].as_bytes(), output.stdout);
    assert!(files["front.svg"].contains("the authors&#39;"));
    assert!(files["search.html"].contains("Reads &lt;beside&gt; finishes"));
    let csv = &files["search.csv"];
    assert!(csv.starts_with(
        "front,own,drive.finish.granularity,drive.finish.pause,beside/read/m_inter,\
         beside/finish/ops_s,refused\n"
    ));
    assert_eq!(csv.lines().count(), 10);
    // The same again runs nothing, and says it to a reader.
    let text = scratch.search("out", &[]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("of 9 settings found that no other of them beats"),
        "{text}"
    );
    assert_eq!(text.matches("the file's settings").count(), 1, "{text}");
    assert!(text.contains("published: the authors'"), "{text}");
    assert_eq!(scratch.found("out"), files);
    let all = scratch.search("out", &["--all"]);
    let all = String::from_utf8(all.stdout).unwrap();
    // The heading, nine settings and what was published.
    let table = |text: &str| {
        let lines = text.split("\n\n").next().unwrap().lines();
        lines.filter(|line| !line.starts_with("note: ")).count()
    };
    assert_eq!(table(&all), 1 + 1 + 9 + 1, "{all}");
    assert!(table(&text) < table(&all));
}

#[test]
fn other_weights_and_objectives_look_at_what_was_run() {
    let scratch = Scratch::of_search("weights");
    let both = json(&scratch.search("out", &["--json"]));
    let evaluations = scratch.read("out/evaluations.jsonl");
    let latency = json(&scratch.search("out", &["--json", "--weights", "0,1"]));
    assert_eq!(scratch.read("out/evaluations.jsonl"), evaluations);
    assert_eq!(latency["weights"], serde_json::json!([0.0, 1.0]));
    let value = |found: &Value, index: usize| objectives(&found["evaluations"][index]).unwrap();
    for index in 0..10 {
        assert!(value(&both, index).0 > 0.0);
        assert!((value(&both, index).0 - value(&latency, index).0).abs() > 1e-9);
        assert!((value(&both, index).1 - value(&latency, index).1).abs() < 1e-9);
    }
    // By hand, from what the points measured.
    let one = &latency["evaluations"][3];
    let p95 = |point: usize| {
        let metrics = &one["points"][point]["jobs"]["read"];
        metrics["lat_p95_us"].as_f64().unwrap()
    };
    let points = one["points"].as_array().unwrap();
    assert_eq!(points[0]["series"], "alone");
    assert_eq!(
        (&points[1]["series"], &points[2]["x"]),
        (&"beside".into(), &"4".into())
    );
    let shift = |alone: usize, beside: usize| (p95(beside) / p95(alone) - 1.0).abs();
    let m = f64::midpoint(shift(0, 1), shift(2, 3));
    assert!((value(&latency, 3).0 / m - 1.0).abs() < 1e-4, "{m}");
    // Other objectives of the same series, some of them at one depth.
    let args = [
        "--json",
        "--minimize",
        "beside/read/lat_p99_us@4",
        "finish/lat_mean_us",
        "--maximize",
        "beside/read/kiops",
    ];
    let args = args.map(|arg| arg.replace("finish/lat", "beside/finish/lat"));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let third = json(&scratch.search("out", &args));
    assert_eq!(scratch.read("out/evaluations.jsonl"), evaluations);
    assert_eq!(third["objectives"][0]["name"], "beside/read/lat_p99_us@4");
    assert_eq!(third["objectives"][2]["goal"], "maximize");
    // Of another series, what is missing is run, for the same candidates.
    let other = [
        "--json",
        "--minimize",
        "other/read/lat_p99_us",
        "--maximize",
        "other/finish/ops_s",
    ];
    let fourth = json(&scratch.search("out", &other));
    assert_ne!(scratch.read("out/evaluations.jsonl"), evaluations);
    let all = fourth["evaluations"].as_array().unwrap();
    assert_eq!(all.len(), 10);
    for one in all {
        assert_eq!(one["points"].as_array().unwrap().len(), 6);
        assert!(objectives(one).is_some());
    }
    // After which the first are there as they were.
    let again = json(&scratch.search("out", &["--json"]));
    for index in 0..10 {
        assert_eq!(
            objectives(&both["evaluations"][index]),
            objectives(&again["evaluations"][index])
        );
    }
    // Other values are another configuration.
    let refused = scratch.search("out", &BOUNDS);
    assert_eq!(refused.status.code(), Some(4));
    assert!(stderr(&refused).contains("another configuration"));
    let forced = scratch.search("out", &[&BOUNDS[..], &["--force", "--budget=3"]].concat());
    assert!(forced.status.success(), "{}", stderr(&forced));
}

#[test]
fn the_same_bytes_whether_interrupted_or_not_on_any_number_of_threads() {
    let scratch = Scratch::of_search("bytes");
    let search = |out: &str, threads: &str| {
        let args = [
            &BOUNDS[..],
            &["--budget=30", "--threads", threads, "--json"],
        ]
        .concat();
        let output = scratch.search(out, &args);
        assert_eq!(json(&output)["method"], "evolve");
        scratch.found(out)
    };
    let one = search("one", "1");
    assert_eq!(search("two", "2"), one);
    assert_eq!(search("two", "2"), one);
    // What an interruption leaves: some evaluations, the last cut off.
    let evaluations = &one["evaluations.jsonl"];
    assert!(evaluations.lines().count() > 20);
    std::fs::create_dir(scratch.0.join("three")).unwrap();
    scratch.write(
        "three/evaluations.jsonl",
        &evaluations[..evaluations.len() / 2],
    );
    let manifest = one["manifest.json"].replace("\"complete\": true", "\"complete\": false");
    scratch.write("three/manifest.json", &manifest);
    assert_eq!(search("three", "2"), one);
    // Another seed looks elsewhere; a larger budget goes on.
    let args = [&BOUNDS[..], &["--budget=36", "--json"]].concat();
    let more = json(&scratch.search("one", &args));
    assert!(more["evaluations"].as_array().unwrap().len() > 31);
    assert!(
        scratch
            .read("one/evaluations.jsonl")
            .starts_with(evaluations.as_str())
    );
    let args = [&BOUNDS[..], &["--budget=30", "--seed=2"]].concat();
    assert!(scratch.search("seed", &args).status.success());
    assert_ne!(scratch.found("seed")["search.csv"], one["search.csv"]);
}

#[cfg(unix)]
#[test]
fn an_interruption_can_be_gone_on_from() {
    let scratch = Scratch::of_search("interrupt");
    let args = [
        &["search", "tiny.toml", "--quiet", "--out=out"][..],
        &BOUNDS,
    ]
    .concat();
    if scratch.interrupted(&args, "out/evaluations.jsonl", 8) == 130 {
        assert!(!scratch.0.join("out/search.json").exists());
        assert!(scratch.zonelab(&args).status.success());
    }
    assert!(scratch.search("other", &BOUNDS).status.success());
    assert_eq!(scratch.found("out"), scratch.found("other"));
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let scratch = Scratch::of_search("refused");
    let cases: &[(&[&str], &str)] = &[
        (
            &["--over", "drive.finish.granlarity=1,2"],
            "did you mean `granularity`?",
        ),
        (&["--over", "job.0.blok=1,2"], "did you mean `block`?"),
        (
            &["--over", "drive.finish.granularity=16KiB..17KiB"],
            "--over drive.finish.granularity: 17KiB is refused: ",
        ),
        (
            &["--over", "job.0.queue_depth=1,100000"],
            "--over job.0.queue_depth: 100000 is refused: 100000 is out of range; at least 1, at \
             most 65536",
        ),
        (
            &["--over", "job.0.zones=0..=3,0..=99"],
            "0..=99 is refused: ",
        ),
        (
            &["--over", "drive.finish.pause=5ms..1ms"],
            "the lower comes first",
        ),
        (&["--over", "drive.finish.pause=5ms"], "nothing to choose"),
        (&["--over", "drive.finish.pause=5,6"], "has no unit"),
        (
            &["--over", "axis.values=[1],[2]"],
            "no setting of what is run",
        ),
        (&["--over", "figure.log_y=true,false"], "is refused"),
        (
            &["--over", "title=a,b"],
            "none of its values changes what is run; the series that objectives look at are \
             alone, beside",
        ),
        (
            &["--over", "job.0.block=4KiB,8KiB", "job.0.block=4KiB,16KiB"],
            "named twice",
        ),
        (
            &["--minimize", "read/lat_p95_u"],
            "did you mean lat_p95_us?",
        ),
        (
            &["--minimize", "m_inter", "--maximize", "finish/ops_s"],
            "could be that of several jobs; there are: alone/read/ops_s, beside/read/ops_s, \
             beside/finish/ops_s",
        ),
        (
            &["--minimize", "reads/ops_s"],
            "ops_s is not measured as \"reads\"",
        ),
        (&["--minimize", "beside/read/kiops@3"], "it runs at 1, 4"),
        (
            &["--minimize", "m_inter"],
            "1 objectives; 2 to 4 can be traded",
        ),
        (&["--weights", "0.5"], "not two numbers"),
        (&["--weights", "0.5,0.6"], "do not add up to 1"),
        (
            &["--method", "grid", "--budget", "8"],
            "the grid has 9 combinations",
        ),
        (&["--method", "random"], "grid, evolve"),
        (&["--budget", "0"], "1..=100000"),
    ];
    for (args, message) in cases {
        let output = scratch.search("out", args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(message), "{args:?}: {said}");
        assert!(output.stdout.is_empty());
        assert!(!scratch.0.join("out").exists());
    }
}

#[test]
fn a_file_that_makes_no_sense_is_refused_with_its_line() {
    let scratch = Scratch::of_search("file");
    for (from, to, message) in [
        (
            "16KiB,32KiB",
            "16KiB,16KiB",
            "search.over.0: the value 16KiB is there twice",
        ),
        (
            "metric = \"m_inter\"",
            "metric = \"m_iner\"",
            "did you mean \"m_inter\"?",
        ),
        (
            "goal = \"minimize\"",
            "goal = \"least\"",
            "search.objective.0.goal: ",
        ),
        (
            "job = \"finish\"\nmetric",
            "job = \"finsh\"\nmetric",
            "is not measured as",
        ),
        (
            "[0.5, 40.0]",
            "[0.5]",
            "search.published.0.values: 1 values for 2 objectives",
        ),
        (
            "[search]",
            "[search]\nweights = [0.5, 0.1]",
            "do not add up to 1",
        ),
        ("[search]", "[search]\nbuget = 5", "did you mean `budget`?"),
    ] {
        let text = format!("{EXPERIMENT}{SEARCH}");
        assert!(text.contains(from), "{from}");
        scratch.write("tiny.toml", &text.replace(from, to));
        let output = scratch.search("out", &[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{to}: {said}");
        assert!(said.contains(message), "{to}: {said}");
        assert!(said.contains("tiny.toml:"), "{to}: {said}");
    }
    // Without the table, the command line must say it all.
    scratch.write("tiny.toml", EXPERIMENT);
    let said = |args: &[&str]| {
        let output = scratch.search("out", args);
        assert_eq!(output.status.code(), Some(2));
        stderr(&output)
    };
    assert!(said(&[]).contains("there is nothing to change"));
    assert!(said(&BOUNDS).contains("0 objectives"));
}

/// Values that are possible alone need not be so together.
#[test]
fn combinations_that_are_refused_are_kept_off_the_front() {
    let scratch = Scratch::of_search("combined");
    let over = [
        "--over",
        "job.1.zones=4..=39,4..=5",
        "job.1.threads=1,3",
        "--json",
    ];
    let found = json(&scratch.search("out", &over));
    let all = found["evaluations"].as_array().unwrap();
    let refused: Vec<&Value> = all
        .iter()
        .filter(|one| one.get("refused").is_some())
        .collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["front"], false);
    assert_eq!(refused[0]["values"]["job.1.threads"], "3");
    assert!(refused[0]["points"].as_array().unwrap().is_empty());
    // What no key changes ran once, for all.
    let alone = |one: &Value| one["points"][0]["identity"].clone();
    let run = || all.iter().filter(|one| one.get("refused").is_none());
    assert!(run().all(|one| alone(one) == alone(&all[0])));
    assert!(run().any(|one| one["points"][1] != all[0]["points"][1]));
    let text = scratch.search("out", &[&over[..3], &["--all"]].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("1 of them refused") && text.contains("refused: "),
        "{text}"
    );
}

#[test]
fn help_and_the_example_of_the_documentation_work() {
    let scratch = Scratch::new("search-help");
    let help = scratch.zonelab(&["search", "--help"]);
    assert!(help.status.success());
    let help = String::from_utf8(help.stdout).unwrap();
    for word in [
        "--over",
        "--minimize",
        "--maximize",
        "--weights",
        "--budget",
        "m_inter",
    ] {
        assert!(help.contains(word), "{word}");
    }
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let example = docs.join("finish-tradeoff.toml");
    let example = example.to_str().unwrap();
    let args = [
        "search",
        example,
        "--out=out",
        "--budget=6",
        "--json",
        "--set=job.0.runtime=100ms",
    ];
    let found = json(&scratch.zonelab(&args));
    assert_eq!(found["evaluations"].as_array().unwrap().len(), 7);
}
