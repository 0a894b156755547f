//! Why the slowest commands were slow, and what they would have taken otherwise.

use std::io::Read as _;

use zonelab_device::Nanos;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::library;
use zonelab_lab::run::{self, Point, RunOptions, run_point};
use zonelab_lab::trace::{Explanation, PointTrace, Question, explain, explain_traced};
use zonelab_ssd::counterfactual::{Factor, Factors};
use zonelab_ssd::record::{RecordLimits, SlowestOf};

use super::support::{Tiny, overrides};

/// Read and transfer of a page.
const READ: Nanos = Nanos::from_us(85);

const QUESTION: Question = Question {
    slowest: SlowestOf {
        data: 5,
        management: 3,
    },
    without: Factors::ALL,
    ahead: Nanos::ZERO,
};

/// Lets `f` have what points are run with.
fn with_options<T>(f: impl FnOnce(&RunOptions<'_>) -> T) -> T {
    f(&RunOptions {
        conditions: &Conditions::default(),
        seed: 1,
        profiles: &Tiny,
        on_point: &|_, _| (),
        interrupted: &|| false,
        abandoned: &|| false,
    })
}

/// The points of the example, by series.
fn example() -> Vec<Point> {
    let text = library::example("reset-under-reads").expect("it is built in");
    run::points("reset-under-reads.toml", text, &[]).expect("it is sound")
}

fn traced(point: &Point, limit: usize) -> PointTrace {
    let mut point = point.clone();
    point.trace(RecordLimits {
        slowest: QUESTION.slowest,
        ..RecordLimits::everything(limit)
    });
    let result = with_options(|options| run_point(&point, options)).expect("it runs");
    *result.trace.expect("it was asked for")
}

fn accounts(all: &[Explanation]) -> Vec<(u64, Nanos, Option<u64>)> {
    let of = |one: &Explanation| {
        let total = one.waits.as_ref().map(|waits| waits.total().0);
        (one.record.number, one.latency, total)
    };
    all.iter().map(of).collect()
}

/// What a command waited for is the same whether all of the run is kept, or next to nothing; and
/// it adds up to what the command took.
#[test]
fn the_account_of_a_wait_does_not_depend_on_how_much_of_a_trace_is_kept() {
    for point in example() {
        let whole = traced(&point, 1 << 20);
        let kept = whole.explain();
        assert_eq!(kept.iter().filter(|one| one.is_data()).count(), 5);
        // The reset.
        assert_eq!(kept.len(), 6);
        for limit in [1, 30, 1 << 20] {
            let trace = traced(&point, limit);
            let again = with_options(|options| explain_traced(&point, &trace, &QUESTION, options));
            let again = again.expect("it runs");
            assert_eq!(again.len(), kept.len());
            for (again, kept) in again.iter().zip(&kept) {
                assert_eq!(again.waits, kept.waits, "{}: {}", point.title(), again.name);
            }
            assert_eq!(accounts(&again), accounts(&kept));
        }
        for (_, latency, total) in accounts(&kept) {
            assert_eq!(total, Some(latency.0));
        }
    }
}

/// Without a trace the lives of the slowest commands are kept alone, and what touches none of them
/// is dropped while the point runs. What they waited for is what a whole trace says, and what is
/// measured does not change.
#[test]
fn the_slowest_are_explained_without_a_trace() {
    let text = library::example("finish-on-read").expect("it is built in");
    let set = overrides(&["job.0.runtime=1s", "axis.values=[16]"]);
    let points = run::points("finish-on-read.toml", text, &set).expect("it is sound");
    for point in points {
        let run = |point: &Point| with_options(|options| run_point(point, options));
        let whole = traced(&point, 1 << 22);
        // So many that they are pruned.
        assert!(whole.dropped().is_none() && whole.record.spans.records.len() > 1 << 13);
        let of_trace = whole.explain();
        let mut lean = point.clone();
        lean.explain_slowest(QUESTION.slowest.data);
        let mut result = run(&lean).expect("it runs");
        let slowest = std::mem::take(&mut result.slowest);
        assert_eq!(slowest.len(), QUESTION.slowest.data);
        for (one, other) in slowest.iter().zip(&of_trace) {
            assert_eq!((&one.name, &one.job), (&other.name, &other.job));
            assert_eq!(one.waits, other.waits, "{}", one.name);
        }
        assert_eq!(accounts(&slowest), accounts(&of_trace)[..slowest.len()]);
        let plain = run(&point).expect("it runs");
        assert_eq!(format!("{plain:?}"), format!("{result:?}"));
        // Those that manage zones as well, in a run for them alone.
        let question = Question {
            without: Factors::NONE,
            ..QUESTION
        };
        let all = with_options(|options| explain(&point, &question, options)).expect("it runs");
        assert_eq!(accounts(&all), accounts(&of_trace));
        for (number, latency, total) in accounts(&all) {
            assert_eq!(total, Some(latency.0), "{number}");
        }
    }
}

/// At depth 1 a read waits for nothing but erasures: without them it takes its own time.
#[test]
fn without_the_reset_the_slowest_read_takes_its_own_time() {
    let point = &example()[0];
    let all = with_options(|options| explain(point, &QUESTION, options)).expect("it runs");
    let slowest = &all[0];
    assert!(slowest.latency > Nanos::from_us(1_000));
    let otherwise = slowest.otherwise.clone().expect("it was asked");
    let otherwise = otherwise.expect("the run can be repeated");
    assert_eq!(otherwise.latency, slowest.latency);
    assert_eq!(otherwise.without_all, READ);
    let waited = slowest.latency - READ;
    assert_eq!(slowest.alternatives(), [(Factor::ResetErase, waited, READ)]);
}

#[test]
fn a_compressed_trace_is_the_trace_and_the_same_each_time() {
    let point = &example()[0];
    let trace = traced(point, 1 << 20);
    let bytes = trace.perfetto_gz();
    assert_eq!(bytes, traced(point, 1 << 20).perfetto_gz());
    // No flags, no time, a fixed system: RFC 1952.
    assert_eq!(bytes[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    let mut plain = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(&bytes[..]);
    reader.read_to_end(&mut plain).expect("it is gzip");
    assert!(plain == trace.perfetto());
    assert!(bytes.len() * 2 < plain.len());
}
