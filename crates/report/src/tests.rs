use serde_json::Value;
use zonelab_device::{Lba, NamespaceId, Nanos, Op, QueueId, Tag};
use zonelab_host::stats::{OpKind, Slot};
use zonelab_lab::compare;
use zonelab_lab::detail::{JobDetail, PointDetail, quantiles};
use zonelab_lab::experiment::Experiment;
use zonelab_lab::metrics::Metrics;
use zonelab_lab::published::References;
use zonelab_lab::rows::{Scope, Summary};
use zonelab_lab::run::{DriveMeasured, JobMeasured, ZoneHistory};
use zonelab_lab::trace::{Explanation, Waits};
use zonelab_ssd::account::{BusyByCause, Cause, Totals};
use zonelab_ssd::record::CommandRecord;

use super::*;

const EXPERIMENT: &str = r#"# What it is
# about.
schema = 1
id = "made"
title = "Made </script> up"
kind = "E"
profile = "confznspp"
[axis]
name = "depth"
values = [1, 2]
[[job]]
name = "job"
work = "read"
zones = "0..=1"
block = "16KiB"
runtime = "1s"
[[series]]
name = "a"
jobs = ["job"]
  [[series.point]]
  x = 1
  metric = "kiops"
  value = 10
  [[series.point]]
  x = 2
  metric = "kiops"
  value = 10
[[compare]]
job = "job"
metrics = ["kiops"]
[figure]
job = "job"
x = "axis"
y = "kiops"
"#;

/// Busy for so many nanoseconds with reads of hosts, and with nothing else.
fn reading(ns: u64) -> BusyByCause {
    let mut busy = BusyByCause::default();
    busy[Cause::HostRead as usize] = ns;
    busy
}

/// A read that took 7 us, of which it waited 4 for a finish.
fn slow_read() -> Explanation {
    let read = Op::Read {
        slba: Lba(8),
        nlb: 1,
    };
    Explanation {
        record: CommandRecord {
            number: 5,
            queue: QueueId(0),
            tag: Tag(0),
            nsid: NamespaceId::FIRST,
            op: read,
            submitted: Nanos(90),
            started: None,
            completed: None,
        },
        name: "read 4 KiB".to_owned(),
        job: "job".to_owned(),
        latency: Nanos(7_000),
        waits: Some(Waits {
            flash: Nanos(3_000),
            blocked_by: vec![("program (finish of zone 0)".to_owned(), Nanos(4_000))],
            ..Waits::default()
        }),
        otherwise: None,
    }
}

fn result(x: usize, kiops: f64, experiment: &Experiment) -> PointResult {
    let mut metrics = Metrics::default();
    metrics.values.insert("kiops", kiops);
    let slot = |from, operations| Slot {
        from: Nanos(from),
        to: Nanos(from + 500),
        operations,
    };
    PointResult {
        series: "a".to_owned(),
        x: experiment.axis.values[x].clone(),
        jobs: vec![JobMeasured {
            name: "job".to_owned(),
            kind: OpKind::Read,
            metrics,
            spread: None,
            detail: JobDetail {
                measured: None,
                behind: Nanos::ZERO,
                is_uncertain: false,
                operations: 10,
                latencies: vec![Nanos(5); 11],
                throughput: vec![slot(0, 4), slot(500, 6)],
            },
        }],
        drive: Some(DriveMeasured {
            totals: Totals::default(),
            busy_ns: Default::default(),
            resources: (1, 2),
            owed: Default::default(),
            detail: PointDetail {
                channels: vec![reading(1)],
                units: vec![reading(2); 2],
                erasures: [(0, 8)].into(),
                wear_map: None,
            },
            zone_history: ZoneHistory::default(),
        }),
        took: Nanos(1_000),
        lateness: None,
        operations: 12,
        failures: Vec::new(),
        ended_early: Vec::new(),
        faults_struck: Vec::new(),
        zones: None,
        slowest: vec![slow_read()],
        trace: None,
    }
}

/// The report of the made-up experiment, and the data in it.
fn html(misfits: &Misfits) -> (String, Value) {
    let experiment = Experiment::parse("made.toml", EXPERIMENT, &[], None).unwrap();
    let results = [result(0, 10.1, &experiment), result(1, 12.0, &experiment)];
    let references = References::builtin().unwrap();
    let figure = compare::figure(&experiment, &results, &references).unwrap();
    let mut rows = compare::rows(&experiment, &results, &references).unwrap();
    let _ = misfits.apply(&mut rows, Scope::PART);
    let summary = Summary::of(&rows, Scope::PART, misfits);
    assert_eq!(summary.kinds[0].1.count, 2);
    let point = |result| PointSection {
        result,
        drive: "drive = 1\n",
        command: "again".to_owned(),
    };
    let report = Report {
        title: "A <title> & more".to_owned(),
        tool: "tool",
        command: "command".to_owned(),
        seed: 3,
        notices: Vec::new(),
        sections: vec![Section {
            experiment: &experiment,
            text: EXPERIMENT,
            command: "one".to_owned(),
            figure: figure.as_ref(),
            matrix: None,
            differences: Vec::new(),
            points: results.iter().map(point).collect(),
        }],
        rows: &rows,
        summary: &summary,
        misfits,
    };
    let html = report.to_html();
    assert_eq!(html, report.to_html());
    let (_, rest) = html.split_once("type=\"application/json\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let data = serde_json::from_str(data).unwrap();
    (html, data)
}

#[test]
fn the_page_is_one_document_that_names_cannot_break() {
    let (html, data) = html(&Misfits::default());
    assert_eq!(
        html.matches("</script>").count(),
        2,
        "of the data and the script"
    );
    assert!(html.contains("<title>A &lt;title&gt; &amp; more</title>"));
    assert_eq!(
        html.matches("<svg ").count(),
        1,
        "the figure, without a script"
    );
    assert_eq!(data["experiments"][0]["title"], "Made </script> up");
    for reference in ["http:", "https:", "src=", "@import", "url("] {
        let is_foreign =
            |line: &&str| line.contains(reference) && !line.contains("www.w3.org/2000/svg");
        assert_eq!(html.lines().find(is_foreign), None, "{reference}");
    }
}

#[test]
fn figures_know_their_points_and_rows() {
    let (_, data) = html(&Misfits::default());
    let marks = &data["experiments"][0]["figure"][0]["series"][0]["points"];
    assert_eq!(marks[0]["p"], 0);
    assert_eq!(marks[1]["ours"], serde_json::json!([2.0, 12.0]));
    assert_eq!(marks[1]["published"], serde_json::json!([2.0, 10.0]));
    assert_eq!(
        marks[1]["rows"],
        serde_json::json!([null, 1]),
        "x is the axis: not compared"
    );
    assert_eq!(data["rows"][1]["status"], "fail");
    assert_eq!(data["rows"][1]["error"], 0.2);
    assert_eq!(data["rows"][0]["status"], "ok");
}

#[test]
fn misfits_come_with_cause_and_evidence() {
    let list = "schema = 2\n[[misfit]]\nid = \"made\"\nseries = \"a\"\nx = 2\nmetric = \"kiops\"\n\
                cause = \"A cause.\"\nevidence = \"Some evidence.\"\n";
    let (_, data) = html(&Misfits::parse("list", list).unwrap());
    assert_eq!(data["rows"][1]["status"], "misfit");
    let notes = serde_json::json!([["Cause", "A cause."], ["Evidence", "Some evidence."]]);
    assert_eq!(data["rows"][1]["notes"], notes);
    assert!(
        data["rows"][0].get("notes").is_none(),
        "the row that passes needs no excuse"
    );
    assert_eq!(data["experiments"][0]["stats"]["verdicts"]["misfit"], 1);
}

#[test]
fn points_carry_what_was_measured() {
    let (_, data) = html(&Misfits::default());
    let experiment = &data["experiments"][0];
    assert_eq!(experiment["about"], "What it is about.");
    let point = &experiment["points"][1];
    assert_eq!(point["x"], "2");
    assert_eq!(
        point["units"]["busy_ns"],
        serde_json::json!([reading(2), reading(2)])
    );
    assert_eq!(
        point["jobs"][0]["throughput"]["operations"],
        serde_json::json!([4, 6])
    );
    assert_eq!(point["jobs"][0]["throughput"]["to_ns"], 1_000);
    assert_eq!(
        point["jobs"][0]["metrics"],
        serde_json::json!([["kiops", "KIOPS", 12.0]])
    );
    assert_eq!(point["wear"], serde_json::json!([[0, 0, 8]]));
    let went = "program (finish of zone 0) 4.000 us; own flash 3.000 us";
    let slowest = serde_json::json!([["read 4 KiB", "job", 90, 7_000, went]]);
    assert_eq!(point["slowest"], slowest);
    assert_eq!(point["wear_map"], Value::Null);
    assert_eq!(point["zones"], Value::Null);
    assert_eq!(
        data["drives"],
        serde_json::json!(["drive = 1\n"]),
        "each drive once"
    );
    assert_eq!(
        data["quantiles"].as_array().map(Vec::len),
        Some(quantiles().len())
    );
    assert_eq!(data["causes"][2], "finish-fill");
}

#[test]
fn the_page_uses_the_colours_of_the_figures() {
    let style = zonelab_page::STYLE;
    let sheet = zonelab_lab::figure::style_sheet();
    let mut colours = 0;
    for line in sheet.lines().filter(|line| line.starts_with(".zl .s")) {
        let Some((class, colour)) = line.trim_end_matches('}').split_once("{color:") else {
            continue;
        };
        let number = class.trim_start_matches(".zl .s");
        if number.parse::<u32>().is_ok() {
            assert!(style.contains(&format!("--s{number}: {colour};")), "{line}");
            colours += 1;
        }
    }
    assert_eq!(colours, 16, "eight on light pages, eight on dark ones");
}

#[test]
fn every_state_and_cause_has_a_colour() {
    let style = zonelab_page::STYLE;
    for cause in 0..Cause::ALL.len() {
        assert!(style.contains(&format!(".c{cause} {{")), "{cause}");
        assert_eq!(
            style.matches(&format!("--c{cause}: #")).count(),
            2,
            "{cause}: light and dark"
        );
    }
    for level in 0..=7 {
        assert!(style.contains(&format!(".w{level} {{")), "{level}");
        assert_eq!(
            style.matches(&format!("--w{level}: #")).count(),
            2,
            "{level}"
        );
    }
    assert!(include_str!("page/wear.js").contains("WEAR_LEVELS = 7;"));
    for (letter, _) in zones::STATES {
        assert!(style.contains(&format!(".z{letter} {{")), "{letter}");
        assert_eq!(
            style.matches(&format!("--z{letter}: #")).count(),
            2,
            "{letter}"
        );
        assert!(
            zonelab_page::BASE.contains(&format!("{letter}: '")),
            "{letter}"
        );
    }
}
