//! The order of reads and writes.

use zonelab_device::{Command, Lba, Nanos, Op};
use zonelab_host::scheduler::{MqDeadlineSettings, SchedulerSpec};
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction};

use super::{Bench, CAPACITY, NS, ZONE, append, read, reset, send, write};

const T0: Nanos = Nanos::ZERO;

fn bench(settings: MqDeadlineSettings) -> Bench {
    Bench::new(&SchedulerSpec::MqDeadline(settings))
}

fn default() -> Bench {
    bench(MqDeadlineSettings::default())
}

/// Blocks of 4 KiB: nothing is merged.
fn unmerged() -> MqDeadlineSettings {
    MqDeadlineSettings {
        max_request_bytes: 4096,
        ..MqDeadlineSettings::default()
    }
}

#[test]
fn one_write_of_a_zone_is_in_flight() {
    let mut bench = bench(unmerged());
    bench.insert_all(T0, [write(0, 8), write(8, 8), write(ZONE, 8)]);
    assert_eq!(bench.go(T0), [[0], [2]]);
    assert_eq!(bench.scheduler.waiting(), 1);
    bench.completed(T0, write(ZONE, 8));
    assert!(bench.go(T0).is_empty());
    bench.completed(T0, write(0, 8));
    assert_eq!(bench.go(T0), [[1]]);
}

#[test]
fn zones_of_two_namespaces_are_not_one() {
    let mut bench = default();
    let third = Command {
        nsid: NS(3),
        ..write(0, 8)
    };
    bench.insert_all(T0, [write(0, 8), third]);
    assert_eq!(bench.go(T0), [[0], [1]]);
    bench.insert_all(T0, [write(8, 8), third]);
    bench.completed(T0, third);
    assert_eq!(bench.go(T0), [[3]], "the other zone is still locked");
}

#[test]
fn without_zones_there_are_no_locks() {
    let mut bench = bench(unmerged());
    let second = |slba| Command {
        nsid: NS(2),
        ..write(slba, 8)
    };
    bench.insert_all(T0, [second(0), second(16), second(16)]);
    assert_eq!(bench.go(T0), [[0], [1], [2]]);
}

#[test]
fn appends_take_no_lock_and_heed_none() {
    let mut bench = default();
    bench.insert_all(T0, [write(0, 8), append(0, 8), append(0, 8), write(8, 8)]);
    // The write of 16 blocks stands where its first request stood.
    assert_eq!(bench.go(T0), [vec![0, 3], vec![1], vec![2]]);
}

#[test]
fn writes_of_a_zone_wait_in_the_order_of_addresses() {
    let mut bench = bench(unmerged());
    bench.insert_all(T0, [write(0, 4)]);
    assert_eq!(bench.go(T0), [[0]]);
    bench.insert_all(T0, [write(32, 4), write(8, 4), write(16, 4), write(8, 8)]);
    for (done, next) in [
        (write(0, 4), 2),
        (write(8, 4), 4),
        (write(8, 8), 3),
        (write(16, 4), 1),
    ] {
        bench.completed(T0, done);
        assert_eq!(bench.go(T0), [[next]]);
    }
}

#[test]
fn a_write_below_those_that_could_go_goes_first() {
    let mut bench = bench(unmerged());
    bench.insert_all(T0, [write(16, 4), write(8, 4)]);
    assert_eq!(bench.go(T0), [[1]]);
}

#[test]
fn what_waits_is_merged_at_both_ends() {
    let mut bench = default();
    bench.insert(T0, write(0, 8));
    assert_eq!(bench.go(T0), [[0]]);
    bench.insert_all(T0, [write(16, 8), write(24, 8), write(8, 8)]);
    bench.completed(T0, write(0, 8));
    let merged = bench.next(T0).expect("the zone is free");
    assert_eq!(merged, (write(8, 24), vec![3, 1, 2]));
    assert_eq!(bench.scheduler.waiting(), 0);
    bench.insert_all(T0, [read(16, 8), read(24, 8), read(8, 8)]);
    let merged = bench.next(T0).expect("reads have no locks");
    assert_eq!(merged, (read(8, 24), vec![6, 4, 5]));
}

#[test]
fn writes_to_different_reclaim_units_stay_apart() {
    let mut bench = default();
    let flat = |slba| Command {
        nsid: NS(2),
        ..write(slba, 8)
    };
    bench.insert_all(T0, [flat(0), flat(8).placed(1), flat(16).placed(1)]);
    assert_eq!(bench.go(T0), [vec![0], vec![1, 2]]);
}

#[test]
fn front_merges_can_be_switched_off() {
    let mut bench = bench(MqDeadlineSettings {
        front_merges: false,
        ..MqDeadlineSettings::default()
    });
    bench.insert_all(T0, [read(16, 8), read(8, 8), read(24, 8)]);
    assert_eq!(bench.go(T0), [vec![1], vec![0, 2]]);
}

#[test]
fn merging_ends_at_zones_capacities_sizes_and_kinds() {
    let mut bench = default();
    // The end of the writable part, then the end of the zone.
    bench.insert_all(
        T0,
        [read(CAPACITY - 4, 4), read(CAPACITY, 4), read(ZONE, 4)],
    );
    assert_eq!(bench.go(T0), [[0], [1], [2]]);
    // 128 KiB are 32 blocks, which is what the device takes.
    bench.insert_all(T0, [read(0, 30), read(30, 2), read(32, 1)]);
    assert_eq!(bench.go(T0), [vec![3, 4], vec![5]]);
    // A read and a write, and two namespaces.
    let other = Command {
        nsid: NS(3),
        ..read(8, 8)
    };
    bench.insert_all(T0, [read(0, 8), write(8, 8), other]);
    // The elevator is above namespace 1.
    assert_eq!(bench.go(T0), [[8], [6], [7]]);
}

#[test]
fn merging_keeps_the_order_of_a_zone() {
    let mut bench = default();
    bench.insert(T0, write(0, 4));
    assert_eq!(bench.go(T0), [[0]]);
    // Number 3 would fit behind 1, but 2 is to be written before it.
    bench.insert_all(T0, [write(4, 8), write(8, 4), write(12, 4)]);
    bench.completed(T0, write(0, 4));
    assert_eq!(bench.go(T0), [[1]]);
    bench.completed(T0, write(4, 8));
    assert_eq!(bench.go(T0), [[2, 3]]);
}

#[test]
fn reads_go_before_writes_but_not_for_ever() {
    let mut bench = bench(MqDeadlineSettings {
        fifo_batch: 2,
        ..unmerged()
    });
    for n in 0..6 {
        bench.insert(T0, read(8 * n, 4));
    }
    for zone in 0..4 {
        bench.insert(T0, write(zone * ZONE, 4));
    }
    let order: Vec<u32> = bench.go(T0).into_iter().flatten().collect();
    assert_eq!(order, [0, 1, 2, 3, 6, 7, 4, 5, 8, 9]);
}

#[test]
fn a_batch_goes_upwards_from_where_the_last_one_ended() {
    let mut bench = bench(MqDeadlineSettings {
        fifo_batch: 4,
        ..unmerged()
    });
    bench.insert(T0, read(100, 4));
    assert_eq!(bench.go(T0), [[0]]);
    bench.insert_all(T0, [read(300, 4), read(50, 4), read(200, 4)]);
    // Nothing is above 300: the oldest begins a batch, and it is 50.
    assert_eq!(bench.go(T0), [[3], [1], [2]]);
}

#[test]
fn what_has_expired_begins_the_next_batch() {
    let settings = MqDeadlineSettings {
        fifo_batch: 2,
        ..unmerged()
    };
    let late = settings.read_expire;
    let just_before = late.saturating_sub(Nanos(1));
    // One command is left of the batch that began with 100.
    for (now, expected) in [(just_before, [2, 3, 4, 5]), (late, [2, 1, 3, 4])] {
        let mut bench = bench(settings);
        bench.insert(T0, read(100, 4));
        assert_eq!(bench.go(T0), [[0]]);
        bench.insert(T0, read(0, 4));
        // Younger reads above, without end.
        for n in 1..8 {
            bench.insert(Nanos(1), read(100 + 10 * n, 4));
        }
        let order = expected.map(|_| bench.next(now).unwrap().1[0]);
        assert_eq!(order, expected, "{now}");
    }
}

#[test]
fn a_write_that_has_expired_is_passed_over_while_its_zone_is_locked() {
    let mut bench = bench(unmerged());
    bench.insert(T0, write(0, 4));
    assert_eq!(bench.go(T0), [[0]]);
    bench.insert(T0, write(4, 4));
    let late = Nanos::from_secs(6);
    bench.insert_all(late, [write(5 * ZONE, 4), write(2 * ZONE, 4)]);
    assert_eq!(bench.go(late), [[3], [2]]);
    bench.insert(late, write(6 * ZONE, 4));
    bench.insert(late, write(ZONE, 4));
    bench.completed(late, write(0, 4));
    // The batch goes on above; then the oldest has its turn.
    assert_eq!(bench.go(late), [[4], [1], [5]]);
}

#[test]
fn all_else_goes_at_once_in_the_order_of_arrival() {
    let mut bench = default();
    let report = Command::new(Op::ZoneReceive {
        slba: Lba(0),
        filter: ReportFilter::ALL,
        partial: false,
        extended: false,
    });
    bench.insert_all(
        T0,
        [
            read(0, 8),
            reset(3),
            write(0, 8),
            Command::new(Op::Flush),
            report,
            send(ZoneSendAction::OPEN, ZONE),
            // Blocks and namespaces that the device does not have.
            read(8 * ZONE, 1),
            Command {
                nsid: NS(4),
                ..write(0, 1)
            },
            Command {
                nsid: NS(0),
                ..append(0, 1)
            },
        ],
    );
    assert_eq!(bench.go(T0), [[1], [3], [4], [5], [6], [7], [8], [0], [2]]);
    // Completions of such commands unlock nothing and break nothing.
    for nsid in [0, 4, u32::MAX] {
        bench.completed(
            T0,
            Command {
                nsid: NS(nsid),
                ..write(u64::MAX, u32::MAX)
            },
        );
    }
}

#[test]
fn draining_gives_back_requests_as_they_came() {
    let mut bench = default();
    let commands = [write(8, 8), read(0, 8), write(0, 8), reset(2), read(8, 8)];
    bench.insert_all(T0, commands);
    let drained = bench.drain();
    let ids: Vec<_> = drained.iter().map(|(id, _)| id.0).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    assert!(drained.iter().zip(commands).all(|(d, c)| d.1 == c));
    assert_eq!(bench.scheduler.waiting(), 0);
    assert!(bench.go(T0).is_empty());
    bench.insert(T0, write(0, 8));
    assert_eq!(bench.go(T0), [[5]]);
}
