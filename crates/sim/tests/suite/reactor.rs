//! Times, wakes, the stop signal, and runs that end badly, in virtual time.

use zonelab_device::{Nanos, Tag};
use zonelab_host::{CoreId, Job, NextWake, Reactor, Rng, StopSignal, VirtualClock};

use super::support::{FREE, Log, WRITE, first_write, run_alone, run_on_cores, script, tiny};

const US: fn(u64) -> Nanos = Nanos::from_us;

#[test]
fn a_run_without_jobs_ends_where_its_clock_stood() {
    let clock = VirtualClock::starting_at(US(7));
    let end = Reactor::new(clock, tiny(&[]), StopSignal::default()).run();
    assert_eq!(
        (end.at, end.stuck_jobs, end.lateness_max),
        (US(7), 0, Nanos::ZERO)
    );
}

#[test]
fn a_write_completes_to_the_nanosecond() {
    let device = tiny(&[]);
    let mut steps = Vec::new();
    let mut job = script(|now, done, queue| {
        steps.push((
            now,
            done.first().map(|c| (c.tag, c.at, c.status.is_success())),
        ));
        if done.is_empty() {
            queue.submit(first_write(0), Tag(9), None).unwrap();
            queue.ring();
            return NextWake::Completion;
        }
        NextWake::Finished
    });
    let end = run_alone(&device, &mut job);
    assert_eq!(
        steps,
        [(US(0), None), (US(725), Some((Tag(9), US(725), true)))]
    );
    assert_eq!(
        (end.at, end.stuck_jobs, end.lateness_max),
        (US(725), 0, Nanos::ZERO)
    );
}

/// Both pages start on the first channel: 25 us each, then 700 us, on one die.
#[test]
fn writes_of_two_jobs_meet_on_the_die() {
    let device = tiny(&[]);
    let ends: Log<Nanos> = Log::default();
    let write = |zone: u64| {
        let ends = ends.clone();
        script(move |now, done, queue| {
            if done.is_empty() {
                queue.submit(first_write(zone), Tag(0), None).unwrap();
                return NextWake::Completion;
            }
            ends.borrow_mut().push(now);
            NextWake::Finished
        })
    };
    run_on_cores(&device, FREE, &mut [(&mut write(0), 0), (&mut write(1), 1)]);
    assert_eq!(*ends.borrow(), [US(725), US(1425)]);
}

#[test]
fn a_job_runs_at_the_time_that_it_asked_for() {
    let mut steps = Vec::new();
    let mut job = script(|now, _, _| {
        steps.push(now);
        match steps.len() {
            1 => NextWake::At(US(100)),
            2 => NextWake::At(US(101)),
            // A time that has passed: at once, and no step back.
            3 => NextWake::At(US(5)),
            _ => NextWake::Finished,
        }
    });
    let end = run_alone(&tiny(&[]), &mut job);
    assert_eq!(steps, [US(0), US(100), US(101), US(101)]);
    assert_eq!(end.at, US(101));
}

#[test]
fn a_completion_comes_before_a_later_time() {
    let mut steps = Vec::new();
    let mut job = script(|now, done, queue| {
        steps.push((now, done.len()));
        match steps.len() {
            1 => {
                queue.submit(first_write(0), Tag(0), None).unwrap();
                NextWake::At(US(2_000))
            }
            2 => {
                queue.submit(first_write(1), Tag(1), None).unwrap();
                NextWake::Completion
            }
            3 => NextWake::At(US(3_000)),
            _ => NextWake::Finished,
        }
    });
    run_alone(&tiny(&[]), &mut job);
    // Not at 2 ms: that wish was overtaken at 725 us, and again at 1,450 us.
    assert_eq!(
        steps,
        [(US(0), 0), (US(725), 1), (US(1_450), 1), (US(3_000), 0)]
    );
}

#[test]
fn a_wish_for_an_earlier_time_counts() {
    let mut steps = Vec::new();
    let mut job = script(|now, _, queue| {
        steps.push(now);
        match steps.len() {
            1 => {
                queue.submit(first_write(0), Tag(0), None).unwrap();
                NextWake::At(US(2_000))
            }
            2 => NextWake::At(US(1_000)),
            _ => NextWake::Finished,
        }
    });
    let end = run_alone(&tiny(&[]), &mut job);
    assert_eq!(steps, [US(0), US(725), US(1_000)]);
    assert_eq!(
        end.at,
        US(1_000),
        "the clock does not run on to the first wish"
    );
}

#[test]
fn jobs_due_together_run_in_the_order_in_which_they_were_added() {
    let order: Log<u32> = Log::default();
    let turn = |number: u32| {
        let order = order.clone();
        script(move |now, _, _| {
            order.borrow_mut().push(number);
            if now == Nanos::ZERO {
                NextWake::At(US(10))
            } else {
                NextWake::Finished
            }
        })
    };
    let (mut a, mut b, mut c) = (turn(0), turn(1), turn(2));
    run_on_cores(
        &tiny(&[]),
        FREE,
        &mut [(&mut a, 2), (&mut b, 0), (&mut c, 1)],
    );
    assert_eq!(*order.borrow(), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn jobs_start_when_they_are_told_to() {
    let device = tiny(&[]);
    let starts: Log<Nanos> = Log::default();
    let job = || {
        let starts = starts.clone();
        script(move |now, _, _| {
            starts.borrow_mut().push(now);
            NextWake::Finished
        })
    };
    let (mut late, mut early) = (job(), job());
    let mut reactor = Reactor::new(
        VirtualClock::default(),
        device.clone(),
        StopSignal::default(),
    );
    let queue = |n| device.open_queue(1, FREE, Rng::new(n, 0));
    reactor.add(&mut late, queue(0), CoreId(0), US(50));
    reactor.add(&mut early, queue(1), CoreId(0), US(20));
    assert_eq!(reactor.run().at, US(50));
    assert_eq!(*starts.borrow(), [US(20), US(50)]);
}

/// A job that waits for a completion that cannot come does not hang the run.
#[test]
fn stuck_jobs_are_counted() {
    let mut forgetful = script(|_, _, _| NextWake::Completion);
    let mut too = script(|_, _, _| NextWake::Completion);
    let mut steps = 0;
    let mut sound = script(|_, _, queue| {
        steps += 1;
        if steps == 1 {
            queue.submit(first_write(0), Tag(0), None).unwrap();
            return NextWake::Completion;
        }
        NextWake::Finished
    });
    let end = run_on_cores(
        &tiny(&[]),
        FREE,
        &mut [(&mut forgetful, 0), (&mut sound, 1), (&mut too, 2)],
    );
    assert_eq!((end.stuck_jobs, end.at), (2, WRITE));
    assert_eq!(steps, 2, "the others run to their end");
}

/// A job that finishes with commands in flight: its completions have nobody to
/// go to, in this run and in the next one on the same drive.
#[test]
fn what_a_finished_job_left_in_flight_disturbs_nobody() {
    let device = tiny(&[]);
    let mut hasty = script(|_, _, queue| {
        queue.submit(first_write(0), Tag(0), None).unwrap();
        NextWake::Finished
    });
    let end = run_alone(&device, &mut hasty);
    assert_eq!((end.at, end.stuck_jobs), (Nanos::ZERO, 0));

    let mut seen = Vec::new();
    let mut next = script(|now, done, queue| {
        seen.extend(done.iter().map(|c| (now, c.tag)));
        if done.is_empty() {
            queue.submit(first_write(1), Tag(1), None).unwrap();
            return NextWake::Completion;
        }
        NextWake::Finished
    });
    let end = run_alone(&device, &mut next);
    assert_eq!(end.stuck_jobs, 0);
    // Behind the other write on the same die.
    assert_eq!(seen, [(US(1_425), Tag(1))]);
}

#[test]
fn a_run_goes_on_where_another_ended() {
    let device = tiny(&[]);
    let write = |zone| {
        script(move |_, done, queue| {
            if done.is_empty() {
                queue.submit(first_write(zone), Tag(0), None).unwrap();
                return NextWake::Completion;
            }
            NextWake::Finished
        })
    };
    let first = run_alone(&device, &mut write(0));
    let clock = VirtualClock::starting_at(first.at);
    let mut job = write(1);
    let mut reactor = Reactor::new(clock, device.clone(), StopSignal::default());
    let queue = device.open_queue(1, FREE, Rng::new(1, 1));
    reactor.add(&mut job, queue, CoreId(0), first.at);
    assert_eq!(reactor.run().at, US(1_450));
}

/// A job that sleeps for an hour, one that waits for a write, and one that has
/// not begun: all hear of the stop when it is given, not when they would run.
#[test]
fn a_stop_wakes_everybody_at_once() {
    let stop = StopSignal::default();
    let heard: Log<(&str, Nanos)> = Log::default();
    let listener = |name: &'static str, with_command: bool| {
        let (heard, stop) = (heard.clone(), stop.clone());
        let mut begun = false;
        script(move |now, done, queue| {
            if stop.is_stopped() {
                if heard.borrow().iter().all(|(known, _)| *known != name) {
                    heard.borrow_mut().push((name, now));
                }
                let waits = with_command && done.is_empty();
                return if waits {
                    NextWake::Completion
                } else {
                    NextWake::Finished
                };
            }
            if with_command && !begun {
                begun = true;
                queue.submit(first_write(0), Tag(0), None).unwrap();
                return NextWake::Completion;
            }
            NextWake::At(Nanos::from_secs(3600))
        })
    };
    let mut stopper = script(|now, _, _| {
        if now < US(100) {
            return NextWake::At(US(100));
        }
        stop.stop();
        NextWake::Finished
    });
    let (mut sleeping, mut busy, mut unborn) = (
        listener("sleeping", false),
        listener("busy", true),
        listener("unborn", false),
    );
    let device = tiny(&[]);
    let mut reactor = Reactor::new(VirtualClock::default(), device.clone(), stop.clone());
    let jobs: [(&mut dyn Job, Nanos); 4] = [
        (&mut sleeping, US(0)),
        (&mut busy, US(0)),
        (&mut stopper, US(0)),
        (&mut unborn, Nanos::from_secs(10)),
    ];
    for (index, (job, start)) in jobs.into_iter().enumerate() {
        let queue = device.open_queue(1, FREE, Rng::new(1, 1));
        reactor.add(job, queue, CoreId(index as u32), start);
    }
    let end = reactor.run();
    assert_eq!(
        *heard.borrow(),
        [
            ("sleeping", US(100)),
            ("busy", US(100)),
            ("unborn", US(100))
        ]
    );
    assert_eq!(
        (end.at, end.stuck_jobs),
        (US(725), 0),
        "the write in flight is waited for"
    );
}

#[test]
fn a_stop_before_the_run_is_seen() {
    let stop = StopSignal::default();
    assert!(!stop.is_stopped());
    stop.clone().stop();
    assert!(stop.is_stopped());
    let mut steps = Vec::new();
    let mut job = script(|now, _, _| {
        steps.push(now);
        if stop.is_stopped() {
            NextWake::Finished
        } else {
            NextWake::At(US(10))
        }
    });
    let device = tiny(&[]);
    let mut reactor = Reactor::new(VirtualClock::default(), device.clone(), stop.clone());
    reactor.add(
        &mut job,
        device.open_queue(1, FREE, Rng::new(1, 1)),
        CoreId(0),
        US(3),
    );
    reactor.run();
    assert_eq!(steps, [US(3)]);
}
