//! Who asks to be told when a unit is idle is told once, and in time.

use crate::media_support::random::{configs, workload};
use crate::media_support::service::Run;
use crate::media_support::{Arrival, CONFZNSPP, Rig, Shape, erase, program, read, ready};
use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::config::{ChannelArbitration, DiePolicy, MediaConfig, PageRegister, Suspend};
use zonelab_ssd::event::Event;
use zonelab_ssd::media::Media;

/// One configuration for each engine.
const ENGINES: [MediaConfig; 2] = [
    CONFZNSPP,
    MediaConfig {
        policy: DiePolicy::ReadFirst,
        arbitration: ChannelArbitration::Ready,
        ..CONFZNSPP
    },
];

fn us(us: u64) -> Nanos {
    Nanos::from_us(us)
}

#[test]
fn an_idle_unit_says_so_at_once() {
    for config in ENGINES {
        let mut rig = Rig::new(2, &config);
        rig.submit(0, 0, &[program(0)]);
        assert!(rig.when_idle(us(1), 1, 7, None));
        assert!(rig.when_idle(us(725), 0, 7, Some(us(900))));
        rig.run_to(Nanos::MAX);
        assert_eq!(rig.woken, []);
    }
}

#[test]
fn everyone_is_told_when_the_last_work_ends_in_the_order_of_asking() {
    for config in ENGINES {
        let mut rig = Rig::new(1, &config);
        rig.submit(0, 0, &[erase(0)]);
        assert!(!rig.when_idle(us(1), 0, 5, None));
        assert!(!rig.when_idle(us(2), 0, 4, Some(us(10_000))));
        rig.submit(3_000, 1, &[erase(0)]);
        assert!(!rig.when_idle(us(3_001), 0, 6, None));
        rig.run_to(Nanos::MAX);
        let end = us(7_000);
        assert_eq!(rig.woken, [(end, 5), (end, 4), (end, 6)]);
    }
}

#[test]
fn a_deadline_comes_first_or_not_at_all() {
    for config in ENGINES {
        let mut rig = Rig::new(1, &config);
        rig.submit(0, 0, &[erase(0)]);
        assert!(!rig.when_idle(us(1), 0, 1, Some(us(100))));
        assert!(!rig.when_idle(us(2), 0, 2, Some(us(3_500))));
        assert!(!rig.when_idle(us(3), 0, 3, Some(us(2))), "already over");
        rig.run_to(Nanos::MAX);
        assert_eq!(rig.woken, [(us(3), 3), (us(100), 1), (us(3_500), 2)]);
    }
}

#[test]
fn a_unit_that_waits_for_a_page_is_not_idle() {
    // The channel is taken to 25 by the page of unit 0, to 50 by that of
    // unit 1, which does nothing until then.
    for config in ENGINES {
        let mut rig = Rig::shared_channel(&config);
        rig.submit(0, 0, &[program(0), program(1)]);
        assert!(!rig.when_idle(us(10), 1, 1, None));
        rig.run_to(Nanos::MAX);
        assert_eq!(rig.woken, [(us(750), 1)]);
    }
}

#[test]
fn a_unit_is_idle_once_its_page_is_in_a_register() {
    for (page_register, idle_at) in [(PageRegister::Overlap, 60), (PageRegister::Hold, 85)] {
        for config in ENGINES {
            let config = MediaConfig {
                page_register,
                ..config
            };
            let mut rig = Rig::new(1, &config);
            rig.submit(0, 0, &[read(0)]);
            assert!(!rig.when_idle(us(0), 0, 1, None));
            rig.run_to(Nanos::MAX);
            assert_eq!(rig.woken, [(us(idle_at), 1)]);
        }
    }
}

#[test]
fn a_suspended_operation_keeps_its_unit_from_being_idle() {
    let config = MediaConfig {
        suspend: Suspend {
            program: false,
            erase: true,
            overhead_ns: us(5),
            max_per_operation: 1,
            interval_ns: Nanos::ZERO,
        },
        ..ready(DiePolicy::ReadFirst)
    };
    let mut rig = Rig::new(1, &config);
    rig.submit(0, 0, &[erase(0)]);
    rig.submit(1_000, 1, &[read(0)]);
    assert!(!rig.when_idle(us(1_010), 0, 1, None));
    rig.run_to(Nanos::MAX);
    assert_eq!(rig.woken, [(us(3_570), 1)]);
}

#[test]
fn the_next_is_told_when_the_first_leaves_the_unit_idle() {
    for config in ENGINES {
        for first_uses_it in [true, false] {
            let mut rig = Rig::new(1, &config);
            rig.submit(0, 0, &[erase(0)]);
            for task in 1..=3 {
                assert!(!rig.when_idle(us(0), 0, task, None));
            }
            // Task 1 has its turn before task 2 is told, at the same instant.
            while rig.woken.is_empty() {
                let (at, event) = rig.events.pop_due(Nanos::MAX).unwrap();
                rig.deliver(at, event);
                if event == Event::Task(1) && first_uses_it {
                    rig.submit_at_once(at, 9, &[erase(0)]);
                }
            }
            rig.run_to(Nanos::MAX);
            let next = if first_uses_it { us(7_000) } else { us(3_500) };
            assert_eq!(rig.woken, [(us(3_500), 1), (next, 2), (next, 3)]);
        }
    }
}

#[test]
fn thousands_that_wait_for_a_unit_are_told_in_as_many_events() {
    const TASKS: u32 = 2_000;
    for config in ENGINES {
        let mut rig = Rig::new(1, &config);
        rig.submit(0, 0, &[erase(0)]);
        for task in 0..TASKS {
            assert!(!rig.when_idle(us(0), 0, task, Some(us(1_000_000_000))));
        }
        // Each that is told uses the unit.
        let mut token = 1;
        while rig.woken.len() < TASKS as usize {
            let (at, event) = rig.events.pop_due(Nanos::MAX).unwrap();
            rig.deliver(at, event);
            if let Event::Task(_) = event {
                rig.submit_at_once(at, token, &[erase(0)]);
                token += 1;
            }
        }
        let order: Vec<u32> = rig.woken.iter().map(|(_, task)| *task).collect();
        assert!(order.iter().copied().eq(0..TASKS), "{order:?}");
        let events = rig.events.handled();
        assert!(events < u64::from(TASKS) * 8, "{events} events");
    }
}

/// A question: when, which unit, how long to wait at most.
#[derive(Clone, Debug)]
struct Ask {
    at: Nanos,
    unit: u32,
    patience: Option<u64>,
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (0_u64..6_000, 0_u32..6, proptest::option::of(0_u64..4_000));
    proptest::collection::vec(ask, 1..20).prop_map(|asks| {
        let mut asks: Vec<Ask> = asks
            .into_iter()
            .map(|(at, unit, patience)| Ask {
                at: Nanos(at),
                unit,
                patience,
            })
            .collect();
        asks.sort_by_key(|ask| ask.at);
        asks
    })
}

/// When a unit first has nothing to do, seen at `from` after the arrivals of
/// that instant.
fn idle_from(run: &Run, unit: u32, from: u64) -> u64 {
    let mut idle = from;
    loop {
        let known = |arrived: u64| arrived < idle || arrived == from;
        let ops = run.on_unit(unit).filter(|served| known(served.arrived));
        match ops.map(|served| served.unit_released(run)).max() {
            Some(released) if released > idle => idle = released,
            _ => return idle,
        }
    }
}

fn check(media: Media, config: MediaConfig, shape: &Shape, arrivals: &[Arrival], asks: &[Ask]) {
    let mut rig = Rig::of(media);
    let mut groups = arrivals.iter().enumerate().peekable();
    let mut told_at_once = Vec::new();
    for (task, ask) in asks.iter().enumerate() {
        while let Some((token, arrival)) = groups.next_if(|(_, arrival)| arrival.at <= ask.at) {
            rig.submit_at(arrival.at, token as u32, &arrival.ops);
        }
        let deadline = ask.patience.map(|span| ask.at + Nanos(span));
        told_at_once.push(rig.when_idle(ask.at, ask.unit, task as u32, deadline));
    }
    for (token, arrival) in groups {
        rig.submit_at(arrival.at, token as u32, &arrival.ops);
    }
    rig.run_to(Nanos::MAX);
    let spans = rig.spans();
    let run = Run::new(config, shape.clone(), arrivals, spans);
    for (task, ask) in asks.iter().enumerate() {
        let idle = idle_from(&run, ask.unit, ask.at.0);
        assert_eq!(told_at_once[task], idle == ask.at.0, "{ask:?}");
        let deadline = ask.patience.map_or(u64::MAX, |span| ask.at.0 + span);
        let events = rig.woken.iter().filter(|(_, of)| *of as usize == task);
        let times: Vec<u64> = events.map(|(at, _)| at.0).collect();
        if told_at_once[task] {
            assert_eq!(times, [0_u64; 0], "{ask:?}");
        } else {
            assert_eq!(times, [idle.min(deadline)], "{ask:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn wake_ups_are_exact(
        config in configs(),
        in_order: bool,
        (shape, arrivals) in workload(),
        mut asks in asks(),
    ) {
        let units = shape.channel_of_unit.len() as u32;
        asks.iter_mut().for_each(|ask| ask.unit %= units);
        // The order of arrival and a cache register do not go together.
        let config = if in_order && config.page_register != PageRegister::Cache {
            MediaConfig { page_register: config.page_register, ..CONFZNSPP }
        } else {
            config
        };
        let media = Media::new(&shape.channel_of_unit, shape.channels, &config);
        check(media, config, &shape, &arrivals, &asks);
    }
}
