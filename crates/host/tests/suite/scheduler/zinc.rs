//! When resets and finishes go.

use zonelab_device::{Command, Lba, Nanos, Op};
use zonelab_host::scheduler::{SchedulerSpec, ZincSettings, ZincThrottle};
use zonelab_nvme::zns::ZoneSendAction;

use super::{Bench, ZONE, append, finish, read, reset, send, write};

const MS: fn(u64) -> Nanos = Nanos::from_ms;
const T0: Nanos = Nanos::ZERO;

/// Blocks of 8 KiB.
const UNIT: u32 = 2;

fn bench(reset: ZincThrottle, finish: ZincThrottle) -> Bench {
    let settings = ZincSettings {
        reset,
        finish,
        ..ZincSettings::default()
    };
    Bench::new(&SchedulerSpec::Zinc(settings))
}

fn both(throttle: ZincThrottle) -> Bench {
    bench(throttle, throttle)
}

/// Always throttled, tokens never enough.
fn holding(max_epoch_holds: u32) -> ZincThrottle {
    ZincThrottle {
        write_tokens: 5_000_000,
        min_concurrency: 0,
        max_epoch_holds,
        ..ZincThrottle::default()
    }
}

/// Lets timers ring when they are due until a command goes: when it was.
fn goes_at(bench: &mut Bench) -> Nanos {
    loop {
        let at = bench.scheduler.next_timer().expect("something is held");
        bench.scheduler.timer(at);
        if bench.next(at).is_some() {
            return at;
        }
    }
}

#[test]
fn below_the_concurrency_it_goes_at_once() {
    for (outstanding, blocks, waits) in [
        (2, UNIT, false),
        (3, UNIT, true),
        (4, 1, false),
        (5, 1, true),
    ] {
        let mut bench = both(ZincThrottle::default());
        for zone in 0..outstanding {
            bench.insert(T0, write(zone * ZONE, blocks));
        }
        bench.go(T0);
        bench.insert(T0, reset(7));
        assert_eq!(bench.go(T0).is_empty(), waits, "{outstanding} of {blocks}");
    }
}

#[test]
fn reads_appends_and_what_waits_are_concurrency() {
    let mut bench = both(ZincThrottle::default());
    // The second write waits for the zone of the first.
    bench.insert_all(T0, [write(0, UNIT), read(0, UNIT), write(8, UNIT)]);
    assert_eq!(bench.go(T0), [[1], [0]]);
    bench.insert(T0, reset(7));
    assert!(bench.go(T0).is_empty());
    let mut bench = both(ZincThrottle::default());
    bench.insert_all(
        T0,
        [append(0, UNIT), append(0, UNIT), read(0, UNIT), reset(7)],
    );
    assert_eq!(bench.go(T0), [[2], [0], [1]]);
}

#[test]
fn a_merged_command_takes_all_of_its_requests_along() {
    let mut bench = both(ZincThrottle {
        min_concurrency: 1,
        ..ZincThrottle::default()
    });
    bench.insert_all(T0, [read(0, 1), read(1, 1), read(2, 1)]);
    assert_eq!(bench.go(T0), [[0, 1, 2]]);
    bench.completed(T0, read(0, 3));
    bench.insert(T0, reset(0));
    assert_eq!(bench.go(T0), [[3]]);
}

#[test]
fn concurrency_is_looked_at_when_an_epoch_ends_and_not_before() {
    let mut bench = both(ZincThrottle::default());
    let writes = [write(0, UNIT), write(ZONE, UNIT), write(2 * ZONE, UNIT)];
    bench.insert_all(T0, writes);
    bench.go(T0);
    bench.insert(T0, reset(7));
    for done in writes {
        bench.completed(MS(1), done);
        assert!(bench.go(MS(1)).is_empty());
    }
    // Another queues up behind it, although nothing else is there.
    bench.insert(MS(1), reset(6));
    assert!(bench.go(MS(63)).is_empty());
    assert_eq!(goes_at(&mut bench), MS(64));
    bench.completed(MS(65), reset(7));
    assert_eq!(goes_at(&mut bench), MS(128));
    assert_eq!(bench.scheduler.next_timer(), None);
}

/// The study of holds in the artifact of the ConfZNS++ paper: two writers that
/// never pause, resets of 20 ms one after another, timers with ticks of 4 ms.
#[test]
fn a_reset_is_held_for_as_many_epochs_as_were_measured() {
    const STEP: u64 = 20_000;
    for holds in 0..=5 {
        let mut bench = both(holding(holds));
        bench.insert_all(T0, [write(0, UNIT), write(ZONE, UNIT)]);
        bench.go(T0);
        let mut reset_ends = Some(T0);
        let mut dispatched = Vec::new();
        for step in 1..200_000 {
            let now = Nanos(step * STEP);
            for zone in [0, 1] {
                bench.completed(now, write(zone * ZONE, UNIT));
                bench.insert(now, write(zone * ZONE, UNIT));
            }
            if reset_ends.is_some_and(|end| end <= now) {
                if step > 1 {
                    bench.completed(now, reset(7));
                }
                bench.insert(now, reset(7));
                reset_ends = None;
            }
            let tick = MS(4).0;
            if bench
                .scheduler
                .next_timer()
                .is_some_and(|at| (at.0 / tick + 1) * tick <= now.0)
            {
                bench.scheduler.timer(now);
            }
            while let Some((command, _)) = bench.next(now) {
                if command == reset(7) {
                    dispatched.push(now);
                    reset_ends = Some(now + MS(20));
                }
            }
        }
        let expected = MS(68 * (u64::from(holds) + 1));
        assert!(dispatched.len() >= 8, "{holds} holds");
        for pair in dispatched.windows(2) {
            assert_eq!(pair[1] - pair[0], expected, "{holds} holds");
        }
    }
}

#[test]
fn what_writes_pay_over_is_kept() {
    let mut bench = both(ZincThrottle {
        write_tokens: 10,
        max_epoch_holds: 1_000,
        ..holding(0)
    });
    let mut went = Vec::new();
    for epoch in 0..100 {
        let now = MS(64 * epoch);
        for _ in 0..7 {
            bench.insert(now, write(0, UNIT));
            bench.go(now);
            bench.completed(now, write(0, UNIT));
        }
        bench.insert(now, reset(7));
        bench.scheduler.timer(now + MS(64));
        if bench.next(now + MS(64)).is_some() {
            went.push(epoch);
            bench.completed(now + MS(64), reset(7));
        }
    }
    assert_eq!(went[..7], [1, 2, 4, 5, 7, 8, 9]);
    // 700 units pay for 70, in epochs whose number is no multiple of any.
    assert_eq!(went.len(), 70);
}

#[test]
fn a_quiet_time_pays_for_two_at_most() {
    let mut bench = both(ZincThrottle {
        write_tokens: 10,
        ..holding(3)
    });
    for _ in 0..50 {
        bench.insert(T0, append(0, 2 * UNIT));
        bench.go(T0);
        bench.completed(T0, append(0, 2 * UNIT));
    }
    for (inserted, expected) in [(0, 64), (64, 128), (128, 128 + 4 * 64)] {
        bench.insert(MS(inserted), reset(0));
        assert_eq!(goes_at(&mut bench), MS(expected));
        bench.completed(MS(expected), reset(0));
    }
}

#[test]
fn tokens_are_rounded_up_per_command_and_paid_by_all_that_go() {
    let throttle = ZincThrottle {
        write_tokens: 2,
        min_concurrency: 1,
        ..holding(9)
    };
    for (first, expected) in [(false, 64), (true, 640)] {
        let mut bench = both(throttle);
        for blocks in [1, 1] {
            bench.insert(T0, write(0, blocks));
            bench.go(T0);
            bench.completed(T0, write(0, blocks));
        }
        if first {
            // Nothing is under way: it goes at once, and pays.
            bench.insert(T0, reset(1));
            assert_eq!(bench.go(T0).len(), 1);
            bench.completed(T0, reset(1));
        }
        bench.insert(T0, read(0, 1));
        bench.go(T0);
        bench.insert(T0, reset(2));
        assert_eq!(goes_at(&mut bench), MS(expected));
    }
}

#[test]
fn epochs_go_on_while_their_timer_sleeps() {
    let mut bench = both(holding(0));
    // As if it had rung at every multiple of 64 ms.
    for (at, expected) in [(MS(63), 64), (MS(64), 128), (MS(6_401), 6_464)] {
        bench.insert(at, reset(0));
        assert_eq!(bench.scheduler.next_timer(), Some(MS(expected)));
        assert_eq!(goes_at(&mut bench), MS(expected));
        bench.completed(MS(expected), reset(0));
        assert_eq!(bench.scheduler.next_timer(), None);
    }
    // Rung late, at 6,530: the next ends are counted from there.
    bench.insert(MS(6_500), reset(0));
    bench.scheduler.timer(MS(6_530));
    assert!(bench.next(MS(6_530)).is_some());
    bench.completed(MS(6_531), reset(0));
    bench.insert(MS(6_531 + 640), reset(0));
    assert_eq!(bench.scheduler.next_timer(), Some(MS(6_530 + 11 * 64)));
}

#[test]
fn a_timer_that_rings_early_does_nothing() {
    let mut bench = both(holding(0));
    bench.scheduler.timer(T0);
    bench.insert(T0, reset(0));
    bench.scheduler.timer(Nanos(MS(64).0 - 1));
    assert!(bench.go(MS(64)).is_empty(), "no timer has rung");
    assert_eq!(bench.scheduler.next_timer(), Some(MS(64)));
}

#[test]
fn one_at_a_time_over_both_kinds_the_older_first() {
    let mut bench = both(holding(0));
    bench.insert_all(MS(1), [finish(0), reset(1), finish(2)]);
    bench.scheduler.timer(MS(64));
    assert_eq!(bench.go(MS(64)), [[0]]);
    bench.scheduler.timer(MS(128));
    assert!(bench.go(MS(128)).is_empty(), "one is in flight");
    bench.completed(MS(130), finish(0));
    assert!(bench.go(MS(130)).is_empty(), "no epoch has ended");
    bench.scheduler.timer(MS(192));
    assert_eq!(bench.go(MS(192)), [[1]]);
    bench.completed(MS(193), reset(1));
    bench.scheduler.timer(MS(256));
    assert_eq!(bench.go(MS(256)), [[2]]);
}

#[test]
fn each_kind_has_its_own_settings() {
    let fast = ZincThrottle {
        epoch: MS(10),
        ..holding(1)
    };
    let mut bench = bench(holding(0), fast);
    bench.insert(T0, reset(0));
    bench.insert(T0, finish(1));
    assert_eq!(goes_at(&mut bench), MS(20));
    bench.completed(MS(21), finish(1));
    assert_eq!(goes_at(&mut bench), MS(64));
}

/// Finishes without end, one always in flight when the epoch of resets ends.
#[test]
fn neither_kind_starves_the_other() {
    let fast = ZincThrottle {
        epoch: MS(10),
        ..holding(0)
    };
    let mut bench = bench(holding(0), fast);
    bench.insert(T0, reset(0));
    bench.insert_all(T0, [finish(1), finish(2)]);
    let mut finishes = 0;
    loop {
        let now = goes_at_any(&mut bench, &mut finishes);
        if finishes == 0 {
            // The end of resets' epoch passed while a finish was in flight.
            assert_eq!(now, MS(70));
            return;
        }
        assert!(now < MS(70), "the reset waits at {now}");
        while bench
            .scheduler
            .next_timer()
            .is_some_and(|at| at < now + MS(9))
        {
            let at = bench.scheduler.next_timer().unwrap();
            bench.scheduler.timer(at);
            assert!(bench.go(at).is_empty());
        }
        bench.completed(now + MS(9), finish(1));
        bench.insert(now + MS(9), finish(1));
    }
}

/// As `goes_at`; counts finishes, and is set to 0 by a reset.
fn goes_at_any(bench: &mut Bench, finishes: &mut u32) -> Nanos {
    loop {
        let at = bench.scheduler.next_timer().expect("something is held");
        bench.scheduler.timer(at);
        if let Some((command, _)) = bench.next(at) {
            *finishes = if command == reset(0) {
                0
            } else {
                *finishes + 1
            };
            return at;
        }
    }
}

#[test]
fn other_management_is_not_held_and_a_reset_of_all_zones_is() {
    let mut bench = both(holding(0));
    let all = Command::new(Op::ZoneSend {
        slba: Lba(0),
        action: ZoneSendAction::RESET,
        select_all: true,
    });
    bench.insert_all(
        T0,
        [
            all,
            send(ZoneSendAction::OPEN, 0),
            send(ZoneSendAction::CLOSE, 0),
            Command::new(Op::Flush),
        ],
    );
    assert_eq!(bench.go(T0), [[1], [2], [3]]);
    assert_eq!(goes_at(&mut bench), MS(64));
}

#[test]
fn draining_mixes_what_is_held_with_the_rest_as_it_came() {
    let mut bench = both(holding(3));
    bench.insert_all(
        T0,
        [write(0, UNIT), reset(1), finish(2), read(0, UNIT), reset(3)],
    );
    assert_eq!(bench.scheduler.waiting(), 5);
    let ids: Vec<_> = bench.drain().into_iter().map(|(id, _)| id.0).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    assert_eq!(bench.scheduler.waiting(), 0);
    assert_eq!(bench.scheduler.next_timer(), None);
}
