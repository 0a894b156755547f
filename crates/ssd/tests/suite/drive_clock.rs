//! Time as the owner of a drive gives it: exact, forwards only, and the same
//! every time.

use crate::drive_support::random::{Step, drives, front_ends, streams};
use crate::drive_support::{Done, PAGE, Rig, WRITE, small, us};
use proptest::prelude::*;
use zonelab_device::{Command, Nanos, Op, QueueId, Tag};
use zonelab_ssd::{Control, Drive, DriveModel};

const fn send<T: Send>() {}

/// One owner at a time, on any thread.
const _: () = send::<Drive>();

/// How far a host lets the drive run at a time.
#[derive(Clone, Copy, Debug)]
enum Stride {
    Event,
    Fixed(u64),
}

fn advance(rig: &mut Rig, to: Nanos, stride: Stride) {
    while rig.now < to {
        let next = match stride {
            Stride::Event => rig.drive.next_event().unwrap_or(to),
            Stride::Fixed(ns) => rig.now + Nanos(ns),
        };
        rig.run_to(next.min(to));
        if rig.now == next && next == to {
            break;
        }
    }
}

fn completions(
    config: &zonelab_ssd::config::DriveConfig,
    stream: &[Step],
    stride: Stride,
) -> (Vec<usize>, Vec<Done>, zonelab_ssd::account::Totals) {
    let mut rig = Rig::new(config);
    for step in stream {
        match (*step, step.op(&rig)) {
            (_, Some(op)) => {
                rig.submit(op);
            }
            (Step::Pause(ns), None) => {
                let to = rig.now + Nanos(ns);
                advance(&mut rig, to, stride);
            }
            (_, None) => {
                let to = rig.now + us(2_000);
                advance(&mut rig, to, stride);
            }
        }
    }
    rig.settle();
    let done = rig.done.into_iter().flatten().collect();
    (rig.order, done, rig.drive.totals())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn the_same_stream_gives_the_same_completions(
        mut config in drives(),
        front_end in proptest::option::of(front_ends()),
        stream in streams(1..60),
    ) {
        config.front_end = front_end.unwrap_or(config.front_end);
        let first = completions(&config, &stream, Stride::Event);
        prop_assert_eq!(&first, &completions(&config, &stream, Stride::Event));
        // And it does not matter how often the owner looks.
        for ns in [30_011, 10_000_000_000] {
            prop_assert_eq!(&first, &completions(&config, &stream, Stride::Fixed(ns)));
        }
    }

    /// Nothing happens before the next event.
    #[test]
    fn next_event_is_never_late(config in drives(), stream in streams(1..60)) {
        let mut rig = Rig::new(&config);
        for step in &stream {
            match step.op(&rig) {
                Some(op) => { rig.submit(op); }
                None => rig.run_for(us(10)),
            }
            let Some(next) = rig.drive.next_event() else { continue };
            prop_assert!(next >= rig.now);
            if next > rig.now {
                let seen = (rig.order.len(), rig.drive.totals(), rig.busy());
                rig.run_to(Nanos(next.0 - 1));
                prop_assert_eq!(rig.drive.next_event(), Some(next));
                prop_assert_eq!(seen, (rig.order.len(), rig.drive.totals(), rig.busy()));
            }
        }
    }
}

#[test]
fn next_event_is_the_time_of_the_completion() {
    let mut rig = Rig::new(&small());
    assert_eq!(rig.drive.next_event(), None);
    let op = rig.write(0, PAGE);
    rig.submit(op);
    assert_eq!(rig.drive.next_event(), Some(WRITE));
    rig.run_to(Nanos(WRITE.0 - 1));
    assert_eq!(rig.drive.in_flight(), 1);
    rig.run_to(WRITE);
    assert_eq!((rig.drive.in_flight(), rig.drive.next_event()), (0, None));
}

/// What is due when a command arrives comes first, and waits to be collected.
#[test]
fn events_due_at_a_submission_run_first() {
    let mut rig = Rig::new(&small());
    let op = rig.write(0, PAGE);
    rig.submit(op);
    rig.now = WRITE + us(100);
    let op = rig.write(0, PAGE);
    let second = rig.submit(op);
    assert_eq!(rig.drive.in_flight(), 1, "the first is done");
    assert_eq!(
        rig.drive.next_event(),
        Some(rig.now),
        "but was not handed out"
    );
    let now = rig.now;
    rig.run_to(now);
    assert_eq!(rig.wait(0).at, WRITE);
    assert_eq!(rig.wait(second).at, now + WRITE);
}

/// Even what takes no time comes out of `advance`. (The command before it has
/// completed by then: it was due.)
#[test]
fn nothing_completes_inside_submit() {
    let mut rig = Rig::new(&small());
    for op in [
        Op::Flush,
        rig.read(0, 0, 1),
        rig.reset(0),
        rig.write_at(0, 7, 1),
    ] {
        rig.submit(op);
        assert_eq!(rig.drive.in_flight(), 1);
        assert_eq!(rig.drive.next_event(), Some(Nanos::ZERO));
    }
    rig.run_to(Nanos::ZERO);
    assert_eq!(rig.order, [0, 1, 2, 3]);
}

#[test]
fn completions_are_added_to_what_the_owner_has() {
    let mut drive = Drive::new(&small());
    let mut done = Vec::new();
    for tag in 0..3 {
        let command = Command::new(Op::Flush);
        let now = us(u64::from(tag));
        drive
            .submit(now, QueueId(9), Tag(tag), command, None)
            .unwrap();
        drive.advance(now, &mut done);
        assert_eq!(done.len(), tag as usize + 1);
    }
    let tags: Vec<u32> = done.iter().map(|c| c.tag.0).collect();
    assert_eq!(tags, [0, 1, 2]);
    assert!(done.iter().all(|c| c.queue == QueueId(9)));
}

#[test]
#[should_panic(expected = "time goes back from 5 us to 4.999 us")]
fn advance_does_not_go_back() {
    let mut drive = Drive::new(&small());
    drive.advance(us(5), &mut Vec::new());
    drive.advance(Nanos(4_999), &mut Vec::new());
}

#[test]
#[should_panic(expected = "time goes back")]
fn submit_does_not_go_back() {
    let mut drive = Drive::new(&small());
    drive.advance(us(5), &mut Vec::new());
    let _ = drive.submit(us(4), QueueId(0), Tag(0), Command::new(Op::Flush), None);
}

#[test]
#[should_panic(expected = "time goes back")]
fn control_does_not_go_back() {
    let mut drive = Drive::new(&small());
    drive.advance(us(5), &mut Vec::new());
    let _ = drive.control(us(4), &Control::PreconditionFull { zones: 0..1 });
}
