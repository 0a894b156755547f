//! Sweeps of a tiny drive, whole and in parts.

#[cfg(feature = "parquet")]
mod columnar;
mod growth;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use zonelab_lab::output::Existing;
use zonelab_lab::run::repeat_seed;

use super::*;
use crate::evaluations;

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

const EXPERIMENT: &str = r#"
schema = 1
id = "tiny"
title = "Reads beside finishes"
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
runtime = "10ms"
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
name = "beside, both"
full_zones = "0..=3"
jobs = ["read", "finish"]
[[interference]]
series = "beside, both"
isolated = "alone"
job = "read"
[quick]
set = ["job.0.runtime=5ms"]
"#;

const SWEEP: &str = r#"
schema = 1
title = "Finishes"
experiment = "sub/tiny.toml"
repeats = 2
[[vary]]
name = "granularity"
key = "drive.finish.granularity"
values = ["16KiB", "32KiB", "64KiB"]
[[vary]]
key = "drive.finish.pause"
values = ["0us", "500us"]
[[objective]]
goal = "minimize"
metric = "m_inter"
[[objective]]
goal = "maximize"
series = "beside, both"
job = "finish"
metric = "ops_s"
[quick]
points = 3
repeats = 1
"#;

fn read(path: &str) -> io::Result<String> {
    match path {
        "sub/tiny.toml" => Ok(EXPERIMENT.to_owned()),
        "sub/./drive.toml" => Ok(DRIVE.to_owned()),
        "sub/./fast.toml" => Ok(DRIVE.replace("\"tiny\"", "\"fast\"").replace("60us", "6us")),
        other => Err(io::Error::other(format!("there is no {other}"))),
    }
}

fn prepare(text: &str) -> Result<Sweep, Errors> {
    Sweep::prepare(&Source::new("dir/s.toml", text), &read)
}

fn pack() -> Pack {
    prepare(SWEEP).unwrap().into_pack()
}

/// A directory of its own for each test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(format!("zonelab-sweep-{process}-{count}")))
    }

    /// Every file by name.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        entries
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, std::fs::read(entry.path()).unwrap())
            })
            .collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs all that is left.
fn run_all(mut store: Store, threads: usize) -> Finished {
    let observer = Observer {
        on_progress: &|_| (),
        interrupted: &|| false,
    };
    assert_eq!(run(&mut store, threads, &observer).unwrap(), End::Done);
    store.finish().unwrap()
}

fn all_lines(pack: &Pack) -> Vec<Line> {
    let all: Vec<u64> = (0..pack.len()).collect();
    run_batch(&pack.to_bytes(), &all).unwrap()
}

#[test]
fn a_task_depends_on_nothing_but_its_number() {
    let pack = pack();
    assert_eq!((pack.points.len(), pack.len()), (6, 12));
    let lines = all_lines(&pack);
    let bytes = pack.to_bytes();
    assert_eq!(Pack::from_bytes(&bytes).unwrap(), pack);
    let some = run_batch(&bytes, &[7, 2, 2]).unwrap();
    assert_eq!(some, [7, 2, 2].map(|index: usize| lines[index].clone()));
    // A line survives its way as text.
    let text = serde_json::to_string(&lines[5]).unwrap();
    assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), lines[5]);
    let beyond = run_batch(&bytes, &[12]).unwrap();
    assert_eq!(beyond[0].status, Status::Failed);
    assert!(run_batch(b"{}", &[0]).is_err());
    let other = String::from_utf8(bytes).unwrap();
    let version = format!("\"version\":\"{}\"", zonelab_lab::inputs::VERSION);
    let other = other.replace(&version, "\"version\":\"0.0.0\"");
    let error = run_batch(other.as_bytes(), &[0]).unwrap_err().to_string();
    assert!(error.contains("0.0.0"), "{error}");
}

#[test]
fn repeats_have_the_seeds_of_repeats_and_points_share_them() {
    let pack = pack();
    let tasks: Vec<Task> = (0..4).map(|index| pack.task(index).unwrap()).collect();
    let expected = [(0, 0), (0, 1), (1, 0), (1, 1)];
    for (task, (point, repeat)) in tasks.iter().zip(expected) {
        assert_eq!((task.point, task.repeat), (point, repeat));
        assert_eq!(task.seed, repeat_seed(1, repeat));
    }
    assert_eq!(pack.task(12), None);
    let lines = all_lines(&pack);
    // The seed moves the host's costs, and with them everything.
    assert_ne!(lines[0].runs, lines[1].runs);
    assert_eq!(lines[0].runs[0].identity, lines[1].runs[0].identity);
    assert_ne!(lines[0].runs[0].identity, lines[2].runs[0].identity);
}

#[test]
fn the_page_has_keys_objectives_and_means_of_metrics() {
    let scratch = Scratch::new();
    let keep = Existing::Keep;
    let done = run_all(Store::create(&scratch.0, pack(), keep).unwrap(), 2);
    let page = String::from_utf8(scratch.files().remove(PAGE).unwrap()).unwrap();
    let (_, rest) = page.split_once("type=\"application/json\">").unwrap();
    let data: serde_json::Value =
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let columns = data["columns"].as_array().unwrap();
    let names: Vec<&str> = columns
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["granularity", "drive.finish.pause"]);
    assert_eq!(
        (&columns[0]["unit"], &columns[1]["unit"]),
        (&"B".into(), &"ns".into())
    );
    let roles: Vec<_> = columns.iter().map(|column| &column["role"]).collect();
    assert_eq!(roles[..4], ["input", "input", "objective", "objective"]);
    // A mean over both repeats at one value of the axis, in the unit that the page shows.
    let wanted = "beside, both/read/lat_mean_us at depth 4";
    let place = names.iter().position(|name| *name == wanted).unwrap();
    let of_run = |line: &Line| {
        let mut runs = line.runs.iter();
        let run = runs.find(|run| run.series == "beside, both" && run.x == "4");
        run.unwrap().jobs[0].metrics["lat_mean_us"]
    };
    // The last point has the last two tasks.
    let expected = (of_run(&done.lines[10]) + of_run(&done.lines[11])) / 2.0 * 1e3;
    let shown = data["rows"][5][place].as_f64().unwrap();
    assert!((shown / expected - 1.0).abs() < 1e-5, "{shown} {expected}");
    assert_eq!(
        data["commands"][5],
        "--set drive.finish.granularity=64KiB --set drive.finish.pause=500us"
    );
    let parts = serde_json::json!(["zonelab run sub/tiny.toml", "--repeats 2 --seed 1"]);
    assert_eq!(data["command_parts"], parts);
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let (one, two) = (Scratch::new(), Scratch::new());
    let keep = Existing::Keep;
    run_all(Store::create(&one.0, pack(), keep).unwrap(), 1);
    run_all(Store::create(&two.0, pack(), keep).unwrap(), 2);
    assert_eq!(one.files(), two.files());
    let names: Vec<String> = one.files().into_keys().collect();
    let expected = [
        evaluations::FILE,
        "manifest.json",
        PACK,
        CSV,
        JSON_LINES,
        SUMMARY,
        PAGE,
    ];
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(names, expected);
    // Once more runs nothing, and writes the same.
    let store = Store::open(&one.0).unwrap();
    assert_eq!(store.pending(), Vec::<u64>::new());
    store.finish().unwrap();
    assert_eq!(one.files(), two.files());
}

/// The log of a sweep that was killed, cut off anywhere in its last lines: what is whole is
/// never run again, the rest is, and the files are those of an undisturbed sweep.
#[test]
fn a_sweep_that_is_killed_goes_on_to_the_same_bytes() {
    let (whole, killed) = (Scratch::new(), Scratch::new());
    let pack = pack();
    let lines = run_all(
        Store::create(&whole.0, pack.clone(), Existing::Keep).unwrap(),
        2,
    )
    .lines;
    // Lines in the order in which tasks happened to end.
    let mut store = Store::create(&killed.0, pack, Existing::Keep).unwrap();
    let order = [3_usize, 0, 7, 1, 10, 2];
    for index in order {
        store.append(std::slice::from_ref(&lines[index])).unwrap();
    }
    drop(store);
    let path = killed.0.join(evaluations::FILE);
    let log = std::fs::read(&path).unwrap();
    let ends: Vec<usize> = (0..log.len()).filter(|at| log[*at] == b'\n').collect();
    let from = ends[ends.len() - 3];
    for cut in from..=log.len() {
        std::fs::write(&path, &log[..cut]).unwrap();
        let mut store = Store::open(&killed.0).unwrap();
        let kept = ends.iter().filter(|end| **end < cut).count() - 1;
        let done: BTreeSet<u64> = order[..kept].iter().map(|index| *index as u64).collect();
        let pending = store.pending();
        assert!(pending.iter().all(|index| !done.contains(index)));
        assert_eq!(pending.len() + done.len(), lines.len(), "cut at {cut}");
        if cut % 211 == 0 || cut == log.len() {
            // What was done is given again as well, and counts once.
            store.append(&lines).unwrap();
            store.finish().unwrap();
            assert_eq!(killed.files(), whole.files(), "cut at {cut}");
        }
    }
    // Without any line, not even the first whole.
    std::fs::write(&path, &log[..20]).unwrap();
    let store = Store::open(&killed.0).unwrap();
    assert_eq!(store.pending().len(), lines.len());
    run_all(store, 2);
    assert_eq!(killed.files(), whole.files());
}

#[test]
fn an_interruption_keeps_what_was_run() {
    let (whole, stopped) = (Scratch::new(), Scratch::new());
    run_all(Store::create(&whole.0, pack(), Existing::Keep).unwrap(), 2);
    let mut store = Store::create(&stopped.0, pack(), Existing::Keep).unwrap();
    let taken = AtomicUsize::new(0);
    let observer = Observer {
        on_progress: &|_| (),
        interrupted: &|| taken.fetch_add(1, Ordering::Relaxed) >= 5,
    };
    assert_eq!(run(&mut store, 2, &observer).unwrap(), End::Interrupted);
    assert_eq!(store.counts(), (5, 0));
    let error = store.finish().unwrap_err().to_string();
    assert!(error.contains("7 tasks are left"), "{error}");
    run_all(Store::open(&stopped.0).unwrap(), 1);
    assert_eq!(stopped.files(), whole.files());
}

#[test]
fn another_sweep_in_the_directory_is_kept_unless_it_is_to_be_replaced() {
    let scratch = Scratch::new();
    drop(Store::create(&scratch.0, pack(), Existing::Keep).unwrap());
    let other = prepare(&SWEEP.replace("500us", "600us"))
        .unwrap()
        .into_pack();
    let error = Store::create(&scratch.0, other.clone(), Existing::Keep).unwrap_err();
    assert!(error.to_string().contains("--force"), "{error}");
    let mut store = Store::create(&scratch.0, other.clone(), Existing::Replace).unwrap();
    let lines = run_batch(&other.to_bytes(), &[4]).unwrap();
    store.append(&lines).unwrap();
    let beyond = Line {
        index: 12,
        ..lines[0].clone()
    };
    assert!(matches!(
        store.append(&[beyond]),
        Err(SweepError::NoSuchTask { index: 12, .. })
    ));
    drop(store);
    // The same sweep once more goes on, even so.
    let store = Store::create(&scratch.0, other, Existing::Replace).unwrap();
    assert_eq!(store.counts().0, 1);
}

#[test]
fn what_fails_is_a_row() {
    // A granularity that is no multiple of a page, and a queue deeper than there is.
    let text = SWEEP.replace("\"64KiB\"]", "\"17KiB\"]");
    let pack = prepare(&text).unwrap().into_pack();
    let lines = all_lines(&pack);
    let failed: Vec<u64> = lines
        .iter()
        .filter(|line| line.status == Status::Failed)
        .map(|line| line.index)
        .collect();
    assert_eq!(failed, [8, 9, 10, 11]);
    let table = pack.table(&lines);
    let text = |name: &str, row: usize| table.column(name).unwrap().values.text(row);
    // Two series at two values, one of them with two jobs; of a failed one no job.
    assert_eq!(table.rows, 8 * 6 + 4 * 4);
    let row = table.rows - 1;
    assert_eq!(
        (text("status", row), text("point", row)),
        ("failed".into(), "5".into())
    );
    assert!(
        text("error", row).contains("finish.granularity"),
        "{}",
        text("error", row)
    );
    assert_eq!(text("granularity_bytes", row), "17408");
    assert_eq!(text("drive.finish.pause_ns", row), "500000");
    assert_eq!(
        (text("job", row), text("ops", row)),
        (String::new(), String::new())
    );
    assert_eq!(
        (text("status", 0), text("error", 0)),
        ("ok".into(), String::new())
    );
    let (_, standings) = pack.standings(&lines).unwrap();
    let none = &standings[5];
    assert_eq!((none.failed, none.on_front), (2, false));
    assert_eq!(none.objectives, [None, None]);
}

#[test]
fn the_front_is_what_nothing_beats_over_the_means_of_repeats() {
    let pack = pack();
    let lines = all_lines(&pack);
    let (aims, standings) = pack.standings(&lines).unwrap();
    let names: Vec<&str> = aims.iter().map(|aim| aim.name.as_str()).collect();
    assert_eq!(
        names,
        ["beside, both/read/m_inter", "beside, both/finish/ops_s"]
    );
    // The second objective by hand: mean over repeats of the mean over the axis.
    let ops = |line: &Line| {
        let runs = line.runs.iter().filter(|run| run.series == "beside, both");
        let values: Vec<f64> = runs.map(|run| run.jobs[1].metrics["ops_s"]).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    for standing in &standings {
        let of = [2 * standing.point, 2 * standing.point + 1].map(|index| ops(&lines[index]));
        let (mean, value) = (f64::midpoint(of[0], of[1]), standing.objectives[1].unwrap());
        assert!((mean / value - 1.0).abs() < 1e-5, "{mean} {value}");
        let cost = |one: &Standing| (one.objectives[0].unwrap(), -one.objectives[1].unwrap());
        let own = cost(standing);
        let beaten = standings.iter().map(cost).any(|other| {
            other.0 <= own.0 && other.1 <= own.1 && (other.0 < own.0 || other.1 < own.1)
        });
        assert_eq!(standing.on_front, !beaten);
    }
    let on_front = standings
        .iter()
        .filter(|standing| standing.on_front)
        .count();
    assert!((1..6).contains(&on_front), "{on_front}");
    let text = pack
        .text(
            &lines,
            false,
            &Style {
                width: None,
                colour: None,
            },
        )
        .unwrap();
    assert!(
        text.contains(&format!("{on_front} of 6 points on the front")),
        "{text}"
    );
}

#[test]
fn cases_profiles_and_the_quick_form_are_what_they_say() {
    let text = SWEEP.replace(
        "[quick]",
        "[[vary]]\nname = \"drive_of\"\n[[vary.case]]\nname = \
         \"slow\"\nset = []\n[[vary.case]]\nname = \"fast\"\nset = [\"profile=./fast.toml\", \
         \"drive.finish.yield_to_host=true\"]\n[quick]",
    );
    let text = text.replace("drive_of", "which");
    let pack = prepare(&text).unwrap().into_pack();
    assert_eq!(pack.points.len(), 12);
    assert!(pack.inputs.profiles.contains_key("./fast.toml"));
    let command = pack.command(&pack.task(3).unwrap()).join(" ");
    let seed = repeat_seed(1, 1);
    assert_eq!(
        command,
        format!(
            "zonelab run sub/tiny.toml --set drive.finish.granularity=16KiB --set \
             drive.finish.pause=0us --set profile=./fast.toml --set \
             drive.finish.yield_to_host=true --seed {seed}"
        )
    );
    let lines = run_batch(&pack.to_bytes(), &[0, 2]).unwrap();
    let of = |line: &Line| line.runs[0].clone();
    assert_eq!(
        (of(&lines[0]).drive, of(&lines[1]).drive),
        ("tiny".into(), "fast".into())
    );
    let latency = |line: &Line| of(line).jobs[0].metrics["lat_p50_us"];
    assert!(latency(&lines[1]) < latency(&lines[0]));
    let quick = Source {
        quick: true,
        ..Source::new("s.toml", &text)
    };
    let quick = Sweep::prepare(&quick, &read).unwrap().into_pack();
    assert_eq!((quick.points.len(), quick.len()), (3, 3));
    assert!(
        quick
            .command(&quick.task(0).unwrap())
            .join(" ")
            .contains("--quick")
    );
    let short = run_batch(&quick.to_bytes(), &[0]).unwrap();
    assert!(of(&short[0]).simulated_ns < of(&lines[0]).simulated_ns);
}

#[test]
fn what_is_wrong_is_said_with_file_and_line() {
    for (from, to, message) in [
        (
            "sub/tiny.toml",
            "sub/tin.toml",
            "dir/s.toml:4: experiment: sub/tin.toml: there is no",
        ),
        ("sub/tiny.toml", "C10b2", "there is no experiment \"C10b2\""),
        (
            "key = \"drive.finish.pause\"",
            "key = \"drive.finish.puase\"",
            "dir/s.toml:11: vary.1.key: 0us is refused",
        ),
        (
            "key = \"drive.finish.pause\"",
            "key = \"drive.finish.puase\"",
            "did you mean `pause`?",
        ),
        (
            "series = \"beside, both\"",
            "series = \"beside\"",
            "objective.1.metric",
        ),
        (
            "repeats = 2\n",
            "repeats = 2\nseries = [\"alon\"]\n",
            "dir/s.toml:6: series.0: there is no series \"alon\"; did you mean \"alone\"?",
        ),
        (
            "repeats = 2\n",
            "repeats = 2\nseries = [\"alone\"]\n",
            "it needs the series \"beside, both\", which is not run",
        ),
        (
            "\"64KiB\"]",
            "\"64KiB\"]\n[[vary]]\nkey = \"profile\"\nvalues = [\"./none.toml\"]",
            "dir/s.toml:11: vary.1.key: ./none.toml",
        ),
        (
            "repeats = 2",
            "repeats = 100000\nset = [\"job.9.block=4KiB\"]",
            "job",
        ),
    ] {
        let error = prepare(&SWEEP.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
}

#[test]
fn no_points_and_no_repeats_are_refused() {
    let whole = || Source::new("dir/s.toml", SWEEP);
    let none = Some(0);
    for (source, what) in [
        (
            Source {
                points: none,
                ..whole()
            },
            "0 points",
        ),
        (
            Source {
                repeats: none,
                ..whole()
            },
            "0 repeats",
        ),
    ] {
        let error = Sweep::prepare(&source, &read).unwrap_err().to_string();
        assert!(
            error.contains(what) && error.contains("at least 1"),
            "{error}"
        );
    }
}
