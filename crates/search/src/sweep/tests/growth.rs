//! Sweeps that choose their points while they run.

use super::*;

/// Two keys that only the second series sees: the first is the same at every point.
const SEARCH: &str = r#"
schema = 1
experiment = "sub/tiny.toml"
sample = "evolve"
points = 20
repeats = 2
[[vary]]
name = "granularity"
key = "drive.finish.granularity"
low = "16KiB"
high = "240KiB"
[[vary]]
name = "pause"
key = "drive.finish.pause"
low = "10us"
high = "3ms"
[[constraint]]
require = "pause <= 2ms || granularity >= 64KiB"
[[objective]]
goal = "minimize"
series = "beside, both"
job = "read"
metric = "lat_p95_us"
[[objective]]
goal = "maximize"
series = "beside, both"
job = "finish"
metric = "ops_s"
"#;

fn search() -> Pack {
    prepare(SEARCH).unwrap().into_pack()
}

fn create(scratch: &Scratch, pack: Pack) -> Store {
    Store::create(&scratch.0, pack, Existing::Keep).unwrap()
}

/// Runs it as a coordinator does whose workers are elsewhere: each batch from bytes, the last
/// first.
fn run_elsewhere(store: &mut Store) {
    loop {
        let bytes = store.pack().to_bytes();
        for batch in batches(&store.pending(), 3).into_iter().rev() {
            store.append(&run_batch(&bytes, &batch).unwrap()).unwrap();
        }
        if !store.grow().unwrap() {
            return;
        }
    }
}

#[test]
fn points_are_chosen_as_results_come_and_fulfil_constraints() {
    let scratch = Scratch::new();
    let pack = search();
    assert_eq!((pack.len(), pack.most()), (0, 40));
    let first = pack.with_first().points;
    assert!((4..=8).contains(&first.len()), "{first:?}");
    let done = run_all(create(&scratch, pack), 2);
    assert_eq!(done.lines.len(), 40);
    assert_eq!(done.pack.points[..first.len()], first);
    let distinct: BTreeSet<&Vec<String>> = done.pack.points.iter().collect();
    assert_eq!(distinct.len(), 20);
    for point in &done.pack.points {
        let (_, granularity) = zonelab_lab::space::Quantity::of(&point[0]).unwrap();
        let (_, pause_ns) = zonelab_lab::space::Quantity::of(&point[1]).unwrap();
        assert!(
            pause_ns <= 2_000_000 || granularity >= 64 << 10,
            "{point:?}"
        );
    }
    // Most of what is chosen later is near the front: more of it on it than of a sample of as
    // many points.
    let front = |pack: &Pack, lines: &[Line]| {
        let (_, standings) = pack.standings(lines).unwrap();
        standings.iter().filter(|one| one.on_front).count()
    };
    let sample = SEARCH.replace("\"evolve\"", "\"random\"");
    let sample = prepare(&sample).unwrap().into_pack();
    let of_sample = front(&sample, &all_lines(&sample));
    let of_search = front(&done.pack, &done.lines);
    assert!(of_search > of_sample, "{of_search} {of_sample}");
    // What is on disk is the sweep with every point, and a table of all of them.
    let store = Store::open(&scratch.0).unwrap();
    assert_eq!(store.pack(), &*done.pack);
    assert_eq!(store.pending(), Vec::<u64>::new());
    let table = done.pack.table(&done.lines);
    assert_eq!(table.column("granularity_bytes").unwrap().unit, "B");
    assert_eq!(table.rows, 40 * 6);
}

#[test]
fn wherever_it_runs_and_wherever_it_is_killed_the_bytes_are_the_same() {
    let (whole, other, killed) = (Scratch::new(), Scratch::new(), Scratch::new());
    run_all(create(&whole, search()), 1);
    run_all(create(&other, search()), 5);
    assert_eq!(other.files(), whole.files());
    let mut store = create(&killed, search());
    run_elsewhere(&mut store);
    store.finish().unwrap();
    assert_eq!(killed.files(), whole.files());
    // The log in the order in which it was written, cut off anywhere.
    let written = Scratch::new();
    let mut store = create(&written, search());
    run_elsewhere(&mut store);
    drop(store);
    let path = written.0.join(evaluations::FILE);
    let log = std::fs::read(&path).unwrap();
    assert_ne!(log, whole.files()[evaluations::FILE]);
    let cuts = (0..log.len()).step_by(log.len() / 7);
    for cut in cuts.chain([log.len() - 1]) {
        std::fs::write(&path, &log[..cut]).unwrap();
        let store = Store::open(&written.0).unwrap();
        assert!(store.pack().points.len() <= 20);
        run_all(store, 2);
        assert_eq!(written.files(), whole.files(), "cut at {cut}");
    }
}

#[test]
fn what_is_not_at_its_end_has_no_data_set() {
    let scratch = Scratch::new();
    let error = create(&scratch, search()).finish().unwrap_err();
    assert!(error.to_string().contains("40 tasks"), "{error}");
    let mut store = create(&scratch, search());
    assert!(store.grow().unwrap());
    let error = store.grow().unwrap_err();
    assert!(matches!(error, SweepError::Unfinished { .. }), "{error}");
}

#[test]
fn other_objectives_look_at_what_was_run() {
    let (scratch, fresh) = (Scratch::new(), Scratch::new());
    let done = run_all(create(&scratch, search()), 2);
    let other = SEARCH.replace("lat_p95_us", "lat_mean_us");
    let pack = || prepare(&other).unwrap().into_pack();
    assert_eq!(pack().digest(), done.pack.digest());
    let observer = Observer {
        on_progress: &|_| panic!("nothing is left to run"),
        interrupted: &|| false,
    };
    let mut store = create(&scratch, pack());
    run(&mut store, 2, &observer).unwrap();
    // Another directory would have other points: nobody makes these files again by this
    // sweep alone.
    assert!(!store.is_of_one_search());
    let seen = store.finish().unwrap();
    assert_eq!(seen.lines, done.lines);
    let alone = run_all(create(&fresh, pack()), 2);
    assert_ne!(alone.pack.points, seen.pack.points);
    // More points go on from what is there, and those are first.
    let more = SEARCH.replace("points = 20", "points = 26");
    let more = run_all(create(&scratch, prepare(&more).unwrap().into_pack()), 2);
    assert_eq!(more.lines.len(), 52);
    assert_eq!(more.lines[..40], done.lines);
    // The first sweep is still there.
    let mut store = create(&scratch, search());
    assert_eq!(run(&mut store, 2, &observer).unwrap(), End::Done);
    assert_eq!(store.pack().points.len(), 26);
}

#[test]
fn series_that_later_objectives_need_are_run_for_what_is_there() {
    let scratch = Scratch::new();
    let few = SEARCH
        .replace("points = 20", "points = 6")
        .replace("repeats = 2", "repeats = 1\nseries = [\"beside, both\"]");
    let done = run_all(create(&scratch, prepare(&few).unwrap().into_pack()), 2);
    assert!(done.lines.iter().all(|line| line.runs.len() == 2));
    let both = few.replace("series = [", "series = [\"alone\", ").replacen(
        "series = \"beside, both\"\njob = \"read\"",
        "series = \"alone\"",
        1,
    );
    let store = create(&scratch, prepare(&both).unwrap().into_pack());
    assert_eq!(store.pending().len(), done.lines.len());
    let seen = run_all(store, 2);
    assert_eq!(seen.pack.points, done.pack.points);
    for (now, before) in seen.lines.iter().zip(&done.lines) {
        assert_eq!(now.runs[..2], before.runs);
        assert_eq!(now.runs.len(), 4);
    }
}

/// Whether a run was found among what was run already makes no difference.
#[test]
fn what_no_key_changes_is_what_it_would_be_if_it_were_run_again() {
    let scratch = Scratch::new();
    let of_finish = SWEEP.replace("drive.finish.granularity", "job.1.zones");
    let of_finish = of_finish.replace(
        r#"["16KiB", "32KiB", "64KiB"]"#,
        r#"["4..=39", "4..=20", "4..=9"]"#,
    );
    let pack = prepare(&of_finish).unwrap().into_pack();
    let lines = all_lines(&pack);
    let one_by_one: Vec<Line> = (0..pack.len())
        .map(|index| run_batch(&pack.to_bytes(), &[index]).unwrap().remove(0))
        .collect();
    assert_eq!(lines, one_by_one);
    let alone = |line: &Line| line.runs[0].clone();
    assert_eq!(alone(&lines[0]).identity, alone(&lines[4]).identity);
    assert_eq!(alone(&lines[0]), alone(&lines[4]));
    assert_ne!(lines[0].runs[1], lines[4].runs[1]);
    assert_eq!(run_all(create(&scratch, pack), 2).lines, lines);
}

/// A pack that somebody wrote by hand, or that a disk damaged.
#[test]
fn a_pack_without_anything_to_choose_from_is_refused() {
    let bytes = search().to_bytes();
    assert!(Pack::from_bytes(&bytes).is_ok());
    let text = String::from_utf8(bytes).unwrap();
    for (from, to) in [
        (
            "\"low\":16384,\"high\":245760",
            "\"low\":245760,\"high\":245760",
        ),
        ("\"grain\":", "\"grain\":0,\"of\":"),
        ("\"low\":10000", "\"low\":0"),
        (
            "{\"key\":\"drive.finish.granularity\",\"domain\"",
            "{\"key\":\"x\",\"domian\"",
        ),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let damaged = text.replacen(from, to, 1);
        assert!(Pack::from_bytes(damaged.as_bytes()).is_err(), "{to}");
    }
    let constraint = text.replacen("pause <= 2ms", "paws <= 2ms", 1);
    assert!(Pack::from_bytes(constraint.as_bytes()).is_err());
    let mut pack = search();
    pack.objectives[1].job = Some("nothing".to_owned());
    let scratch = Scratch::new();
    let error = Store::create(&scratch.0, pack, Existing::Keep).unwrap_err();
    assert!(error.to_string().contains("1 objectives"), "{error}");
}

#[test]
fn what_a_search_needs_is_said() {
    let without = SEARCH.split("[[objective]]").next().unwrap();
    let one = SEARCH.rsplit_once("[[objective]]").unwrap().0;
    let never = SEARCH.replace("pause <= 2ms ||", "pause > 1s &&");
    for (text, message) in [
        (
            without,
            "objective: 0 objectives; sample = \"evolve\" looks where 2 to 4",
        ),
        (one, "1 objectives"),
        (&never, "there is no point that fulfils the constraints"),
    ] {
        let error = prepare(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    // Without a number there are as many as of a search.
    let usual = SEARCH.replace("points = 20\n", "");
    assert_eq!(prepare(&usual).unwrap().pack().most(), 200);
}
