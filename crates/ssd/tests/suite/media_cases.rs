//! Flash timing on examples that are computed by hand.

use crate::media_support::{CONFZNSPP, Rig, cause_of, erase, program, read, ready};
use zonelab_device::Nanos;
use zonelab_ssd::account::{BusyByCause, Cause, Resource};
use zonelab_ssd::config::{DiePolicy, MediaConfig, PageRegister, Suspend};
use zonelab_ssd::event::Event;
use zonelab_ssd::media::{FlashKind, FlashOp};
use zonelab_ssd::record::Span;

const HOLD: MediaConfig = MediaConfig {
    page_register: PageRegister::Hold,
    ..CONFZNSPP
};

fn suspending(policy: DiePolicy, max_per_operation: u32) -> MediaConfig {
    MediaConfig {
        suspend: Suspend {
            program: true,
            erase: true,
            overhead_ns: Nanos::from_us(5),
            max_per_operation,
            interval_ns: Nanos::ZERO,
        },
        ..ready(policy)
    }
}

#[test]
fn one_page_takes_transfer_and_program() {
    for config in [CONFZNSPP, HOLD, ready(DiePolicy::ReadFirst)] {
        let mut rig = Rig::new(4, &config);
        rig.submit(0, 0, &[program(0)]);
        assert_eq!(rig.ends_us(), [725]);
    }
}

#[test]
fn sixteen_pages_on_four_channels_overlap_all_transfers_but_the_first() {
    let pages: Vec<FlashOp> = (0..16).map(|page| program(page % 4)).collect();
    let mut rig = Rig::new(4, &CONFZNSPP);
    rig.submit(0, 0, &pages);
    assert_eq!(rig.ends_us(), [25 + 4 * 700]);

    let mut rig = Rig::new(4, &HOLD);
    rig.submit(0, 0, &pages);
    assert_eq!(rig.ends_us(), [4 * (25 + 700)]);
}

#[test]
fn a_read_takes_array_and_transfer() {
    for config in [CONFZNSPP, HOLD, ready(DiePolicy::Weighted { reads: 1 })] {
        let mut rig = Rig::new(1, &config);
        rig.submit(7, 0, &[read(0)]);
        assert_eq!(rig.ends_us(), [7 + 60 + 25]);
    }
}

#[test]
fn reads_of_one_unit_overlap_their_transfers_unless_it_is_held() {
    let mut rig = Rig::new(1, &CONFZNSPP);
    rig.submit(0, 0, &[read(0)]);
    rig.submit(0, 1, &[read(0)]);
    assert_eq!(rig.ends_us(), [85, 145]);

    let mut rig = Rig::new(1, &HOLD);
    rig.submit(0, 0, &[read(0)]);
    rig.submit(0, 1, &[read(0)]);
    assert_eq!(rig.ends_us(), [85, 170]);
}

#[test]
fn a_full_zone_erases_in_77_ms() {
    let blocks: Vec<FlashOp> = (0..88).map(|block| erase(block % 4)).collect();
    let mut rig = Rig::new(4, &CONFZNSPP);
    rig.submit(0, 0, &blocks);
    assert_eq!(rig.ends_us(), [77_000]);
}

#[test]
fn a_read_waits_for_an_erase_that_runs_and_overtakes_one_that_waits() {
    for (config, expected) in [
        (CONFZNSPP, [7_000, 7_085]),
        (ready(DiePolicy::Fifo), [7_000, 7_085]),
        (ready(DiePolicy::ReadFirst), [7_060, 3_585]),
    ] {
        let mut rig = Rig::new(1, &config);
        rig.submit(0, 0, &[erase(0), erase(0)]);
        rig.submit(100, 1, &[read(0)]);
        assert_eq!(rig.ends_us(), expected, "{config:?}");
    }
}

#[test]
fn an_empty_group_ends_at_once() {
    for config in [CONFZNSPP, ready(DiePolicy::Fifo)] {
        let mut rig = Rig::new(1, &config);
        rig.submit(3, 0, &[]);
        assert_eq!(rig.ends_us(), [3]);
    }
}

#[test]
fn a_token_in_use_twice_ends_twice() {
    for config in [CONFZNSPP, ready(DiePolicy::Fifo)] {
        let mut rig = Rig::new(1, &config);
        rig.submit(0, 9, &[erase(0)]);
        rig.submit(0, 9, &[program(0)]);
        assert_eq!(rig.ends_us(), [3_500, 4_200]);
    }
}

/// Two units on one channel: a slow read of one has reserved the channel.
#[test]
fn a_ticket_holds_the_channel_for_a_page_that_is_not_ready() {
    for (config, expected) in [
        (CONFZNSPP, [85, 25 + 60 + 25 + 700]),
        (ready(DiePolicy::Fifo), [85, 25 + 700]),
    ] {
        let mut rig = Rig::shared_channel(&config);
        rig.submit(0, 0, &[read(0)]);
        rig.submit(0, 1, &[program(1)]);
        assert_eq!(rig.ends_us(), expected, "{config:?}");
    }
}

#[test]
fn a_page_without_transfer_time_needs_no_channel() {
    let quick = FlashOp {
        transfer_ns: 0,
        ..read(1)
    };
    for config in [CONFZNSPP, HOLD, ready(DiePolicy::Fifo)] {
        let mut rig = Rig::shared_channel(&config);
        rig.submit(0, 0, &[read(0)]);
        rig.submit(0, 1, &[quick]);
        assert_eq!(rig.ends_us(), [85, 60], "{config:?}");
    }
}

#[test]
fn a_held_unit_waits_with_its_page_for_the_channel() {
    // Both reads sense until 60; the second page leaves from 85 to 110, and
    // only then can its unit sense again.
    let hold = MediaConfig {
        page_register: PageRegister::Hold,
        ..ready(DiePolicy::Fifo)
    };
    for config in [HOLD, hold] {
        let mut rig = Rig::shared_channel(&config);
        rig.submit(0, 0, &[read(0)]);
        rig.submit(0, 1, &[read(1)]);
        rig.submit(0, 2, &[read(1)]);
        assert_eq!(rig.ends_us(), [85, 110, 195], "{config:?}");
        let busy = &rig.media.ledger().units;
        assert_eq!(
            busy[1][Cause::HostRead as usize],
            2 * 85_000,
            "waiting is not work"
        );
    }
}

#[test]
fn a_program_that_waits_for_the_channel_lets_a_read_go_first() {
    let config = MediaConfig {
        page_register: PageRegister::Hold,
        ..ready(DiePolicy::ReadFirst)
    };
    let mut rig = Rig::shared_channel(&config);
    // Unit 0 takes the channel to 25. Unit 1 waits for it, but starts to sense
    // at 10; its page leaves from 70 to 95, and the program follows.
    rig.submit(0, 0, &[program(0)]);
    rig.submit(0, 1, &[program(1)]);
    rig.submit(10, 2, &[read(1)]);
    assert_eq!(rig.ends_us(), [725, 95 + 25 + 700, 95]);
}

#[test]
fn weights_share_a_unit() {
    let config = ready(DiePolicy::Weighted { reads: 2 });
    let mut rig = Rig::new(1, &config);
    // An erase runs when everything else arrives: two reads, an erase, two
    // reads, an erase, the last read.
    rig.submit(0, 0, &[erase(0)]);
    for token in 1..6 {
        rig.submit(1, token, &[read(0)]);
    }
    rig.submit(1, 6, &[erase(0)]);
    rig.submit(1, 7, &[erase(0)]);
    assert_eq!(
        rig.ends_us(),
        [
            3_500,
            3_585,
            3_645,
            7_120 + 85,
            7_120 + 145,
            10_740 + 85,
            7_120,
            10_740
        ]
    );
}

#[test]
fn a_read_suspends_an_erase() {
    let mut rig = Rig::new(1, &suspending(DiePolicy::ReadFirst, 8));
    rig.submit(0, 0, &[erase(0)]);
    rig.submit(1_000, 1, &[read(0)]);
    // Stop to 1005, sense to 1065, resume to 1070, 2500 of 3500 are left.
    assert_eq!(rig.ends_us(), [1_070 + 2_500, 1_065 + 25]);
    let us = Nanos::from_us;
    let span = |resource, kind, ready, start, end| Span {
        resource,
        cause: cause_of(kind),
        kind,
        served: None,
        ready: us(ready),
        start: us(start),
        end: us(end),
        suspends: 0,
    };
    let (unit, channel) = (Resource::Unit(0), Resource::Channel(0));
    assert_eq!(
        rig.spans(),
        [
            span(unit, FlashKind::Erase, 0, 0, 1_005),
            span(unit, FlashKind::Read, 1_000, 1_005, 1_065),
            span(channel, FlashKind::Read, 1_065, 1_065, 1_090),
            Span {
                suspends: 1,
                ..span(unit, FlashKind::Erase, 1_005, 1_065, 3_570)
            },
        ]
    );
}

#[test]
fn an_operation_is_suspended_only_so_often() {
    let mut rig = Rig::new(1, &suspending(DiePolicy::ReadFirst, 1));
    rig.submit(0, 0, &[program(0)]);
    rig.submit(125, 1, &[read(0)]);
    rig.submit(300, 2, &[read(0)]);
    // Stop to 130, sense to 190, resume to 195, 600 of 700 left, to 795.
    assert_eq!(rig.ends_us(), [795, 190 + 25, 795 + 60 + 25]);
}

#[test]
fn an_operation_about_to_end_is_not_suspended() {
    let mut rig = Rig::new(1, &suspending(DiePolicy::ReadFirst, 8));
    rig.submit(0, 0, &[erase(0)]);
    rig.submit(3_495, 1, &[read(0)]);
    assert_eq!(rig.ends_us(), [3_500, 3_585]);

    let mut rig = Rig::new(1, &suspending(DiePolicy::ReadFirst, 8));
    rig.submit(0, 0, &[erase(0)]);
    rig.submit(3_494, 1, &[read(0)]);
    assert_eq!(rig.ends_us(), [3_499 + 60 + 5 + 6, 3_499 + 85]);
}

#[test]
fn a_read_during_a_resume_stops_it_when_it_is_done() {
    let mut rig = Rig::new(1, &suspending(DiePolicy::ReadFirst, 8));
    rig.submit(0, 0, &[erase(0)]);
    rig.submit(1_000, 1, &[read(0)]);
    rig.submit(1_067, 2, &[read(0)]);
    // Resumed at 1070, stopped at 1075 without any progress, sensed to 1135,
    // resumed at 1140.
    assert_eq!(rig.ends_us(), [1_140 + 2_500, 1_090, 1_135 + 25]);
}

#[test]
fn weights_bound_a_suspend() {
    let mut rig = Rig::new(1, &suspending(DiePolicy::Weighted { reads: 1 }, 8));
    rig.submit(0, 0, &[erase(0)]);
    rig.submit(1_000, 1, &[read(0)]);
    rig.submit(1_000, 2, &[read(0)]);
    // One read to 1065, resumed at 1070, 2500 left, then the other read.
    assert_eq!(rig.ends_us(), [3_570, 1_090, 3_570 + 85]);
}

#[test]
fn the_ledger_says_who_was_busy_with_what() {
    for config in [CONFZNSPP, ready(DiePolicy::ReadFirst)] {
        let mut rig = Rig::new(2, &config);
        rig.submit(0, 0, &[program(0), program(1)]);
        rig.submit(0, 1, &[read(0)]);
        rig.submit(0, 2, &[erase(1)]);
        rig.run_to(Nanos::MAX);
        let ledger = rig.media.ledger();
        let row = |times: &[(Cause, u64)]| {
            let mut row = BusyByCause::default();
            for (cause, ns) in times {
                row[*cause as usize] = *ns;
            }
            row
        };
        let (reads, writes) = (Cause::HostRead, Cause::HostWrite);
        let of_units = [
            row(&[(reads, 60_000), (writes, 700_000)]),
            row(&[(writes, 700_000), (Cause::ResetErase, 3_500_000)]),
        ];
        assert_eq!(ledger.units, of_units);
        let of_channels = [
            row(&[(reads, 25_000), (writes, 25_000)]),
            row(&[(writes, 25_000)]),
        ];
        assert_eq!(ledger.channels, of_channels);
    }
}

#[test]
fn the_backlog_is_the_work_ahead() {
    for config in [CONFZNSPP, ready(DiePolicy::Fifo)] {
        let mut rig = Rig::new(1, &config);
        rig.submit(0, 0, &[erase(0), erase(0), read(0)]);
        rig.run_to(Nanos::from_us(500));
        let backlog = rig.media.backlog(Nanos::from_us(500), 0);
        assert_eq!(backlog, Nanos::from_us(7_060 - 500));
        rig.run_to(Nanos::MAX);
        assert_eq!(rig.media.backlog(Nanos::from_us(9_000), 0), Nanos::ZERO);
    }
}

#[test]
fn on_events_an_operation_costs_at_most_two_of_them() {
    let mut rig = Rig::new(4, &ready(DiePolicy::ReadFirst));
    let pages: Vec<FlashOp> = (0..64).map(|page| program(page % 4)).collect();
    rig.submit(0, 0, &pages);
    rig.run_to(Nanos::MAX);
    assert!(
        rig.internal <= 2 * 64,
        "{} events for 64 programs",
        rig.internal
    );

    let mut rig = Rig::new(4, &ready(DiePolicy::ReadFirst));
    rig.submit(0, 0, &[erase(0)]);
    rig.run_to(Nanos::MAX);
    assert_eq!(rig.internal, 0, "nobody waits for the unit");
}

#[test]
fn events_of_others_are_ignored() {
    for config in [CONFZNSPP, ready(DiePolicy::Fifo)] {
        let mut rig = Rig::new(1, &config);
        rig.submit(0, 0, &[read(0)]);
        let before = rig.events.len();
        for event in [Event::GroupDone(0), Event::Task(7), Event::Request(3)] {
            rig.media.handle(Nanos::ZERO, event, &mut rig.events);
        }
        assert_eq!(rig.events.len(), before);
        assert_eq!(rig.ends_us(), [85]);
    }
}

#[test]
#[should_panic(expected = "order of arrival")]
fn tickets_and_reads_that_overtake_do_not_go_together() {
    let config = MediaConfig {
        policy: DiePolicy::ReadFirst,
        ..CONFZNSPP
    };
    let _ = Rig::new(1, &config);
}
