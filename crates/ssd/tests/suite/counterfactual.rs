//! What commands would have taken without something they waited for: cases that can be computed
//! by hand, and random drives and hosts.

use crate::drive_support::random::{Step, drives, front_ends, streams};
use crate::drive_support::thresholds::{any_thresholds, within};
use crate::drive_support::{PAGE, READ, Rig, WRITE, fill, small, us};
use crate::media_support;
use crate::media_support::random::{configs, workload};
use crate::media_support::{Arrival, CONFZNSPP, Shape};
use proptest::prelude::*;
use zonelab_device::{Command, Lba, NamespaceId, Nanos, Op};
use zonelab_ssd::config::{
    Bookkeeping, BufferRelease, ChannelArbitration, DriveConfig, FinishConfig, LogConfig,
    MappingConfig, MediaConfig, NamespaceConfig, NamespaceKind, PageRegister, Placement,
    WriteBufferConfig,
};
use zonelab_ssd::counterfactual::{Counterfactual, Factor, Factors, Unwatched, WatchPlan};
use zonelab_ssd::media::Media;

/// Commands, and when they come.
type Script = [(u64, fn(&Rig) -> Op)];

/// Runs a script on a drive that `prepare` has seen, and watches its last command.
fn last_of(
    config: &DriveConfig,
    prepare: fn(&mut Rig),
    script: &Script,
    ahead: Nanos,
) -> Counterfactual {
    // Commands of the preparation have numbers too, and times that nobody knows before.
    let mut first = Rig::new(config);
    prepare(&mut first);
    let (count, began) = (first.done.len(), first.now);
    let at = |us_after: u64| began + us(us_after);
    let number = count + script.len() - 1;
    let mut rig = Rig::new(config);
    rig.drive.watch(&WatchPlan {
        commands: vec![(number as u64, at(script[script.len() - 1].0))],
        ahead,
        without: Factors::ALL,
    });
    prepare(&mut rig);
    for (us_after, op) in script {
        rig.run_to(at(*us_after));
        let op = op(&rig);
        rig.submit(op);
    }
    let latency = rig.wait(number).latency();
    rig.settle();
    let [(of, result)] = &rig.drive.take_watched()[..] else {
        panic!("one command is watched")
    };
    assert_eq!(*of, number as u64);
    let result = result.clone().expect("it has completed");
    assert_eq!(result.latency, latency);
    result
}

fn without(of: &Counterfactual, factor: Factor) -> Nanos {
    let found = of.without.iter().find(|(other, _)| *other == factor);
    found.map_or(of.latency, |(_, took)| *took)
}

fn nothing(_: &mut Rig) {}

/// One die and one channel.
fn one_die() -> DriveConfig {
    let mut config = small();
    config.geometry.channels = 1;
    config.geometry.ways = 1;
    config.geometry.dies = 1;
    config.geometry.planes = 1;
    config.geometry.blocks_per_plane = 256;
    config.zones.channels = 1;
    config.zones.ways = 1;
    config
}

fn finishing() -> DriveConfig {
    let mut config = one_die();
    config.finish = fill(16);
    config
}

/// Zone 0 has a page, and zone 1 is full.
fn two_zones(rig: &mut Rig) {
    rig.precondition(1..2);
    rig.write_pages(0, 1);
}

#[test]
fn a_read_behind_the_program_of_a_finish_takes_its_own_time_without_it() {
    // The program of the finish has its die from 25 us to 725 us.
    let script: &Script = &[(0, |rig| rig.finish(0)), (100, |rig| rig.read(1, 0, PAGE))];
    let of = last_of(&finishing(), two_zones, script, Nanos::ZERO);
    assert_eq!(of.latency, us(625) + READ);
    assert_eq!(of.without, [(Factor::FinishFill, READ)]);
    assert_eq!(of.without_all, READ);
}

#[test]
fn what_had_begun_before_the_command_stays_begun() {
    // A read waits 625 us for the finish, and 40 us later comes the one that is watched.
    let script: &Script = &[
        (0, |rig| rig.finish(0)),
        (100, |rig| rig.read(1, 0, PAGE)),
        (140, |rig| rig.read(1, PAGE, PAGE)),
    ];
    let of = last_of(&finishing(), two_zones, script, Nanos::ZERO);
    // The program ends at 725 us; two reads of 60 us, then the page of 25.
    assert_eq!(of.latency, us(725 + 60 + 60 + 25 - 140));
    // The other read begins when ours comes.
    assert_eq!(without(&of, Factor::FinishFill), us(60 + 60 + 25));
    assert_eq!(without(&of, Factor::HostRead), us(725 + 60 + 25 - 140));
    assert_eq!(of.without_all, READ);
    // From 50 us earlier on, the other read begins when it comes, at 100 us, and has 20 us to go.
    let ahead = last_of(&finishing(), two_zones, script, us(50));
    assert_eq!(ahead.latency, of.latency);
    assert_eq!(without(&ahead, Factor::FinishFill), us(20 + 60 + 25));
}

#[test]
fn waits_overlap_so_that_differences_do_not_add_up() {
    // The read waits for a program, and its channel for the page of another one.
    let mut config = small();
    config.geometry.channels = 1;
    config.geometry.ways = 2;
    config.zones.channels = 1;
    config.zones.ways = 1;
    config.geometry.dies = 1;
    config.geometry.planes = 1;
    config.geometry.blocks_per_plane = 256;
    let script: &Script = &[
        (0, |rig| rig.write(0, PAGE)),
        (0, |rig| rig.write(1, PAGE)),
        (1, |rig| rig.read(0, 0, PAGE)),
    ];
    let of = last_of(&config, nothing, script, Nanos::ZERO);
    assert_eq!(of.without_all, READ);
    assert!(without(&of, Factor::HostWrite) < of.latency);
}

#[test]
fn a_write_that_waits_for_room_has_it_at_once_without_other_writes() {
    let mut config = small();
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: 2 * 16_384,
        power_loss_protection: false,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::InOrder,
        release: BufferRelease::Program,
    });
    let script: &Script = &[
        (0, |rig| rig.write(0, PAGE)),
        (1, |rig| rig.write(1, PAGE)),
        (2, |rig| rig.write(2, PAGE)),
    ];
    let of = last_of(&config, nothing, script, Nanos::ZERO);
    assert_eq!(of.latency, WRITE - us(2));
    assert_eq!(of.without, [(Factor::HostWrite, Nanos::ZERO)]);
    assert_eq!(of.without_all, Nanos::ZERO);
}

#[test]
fn what_a_command_did_not_meet_is_not_tried_and_changes_nothing() {
    let script: &Script = &[(0, |rig| rig.read(1, 0, PAGE))];
    let of = last_of(&finishing(), two_zones, script, Nanos::ZERO);
    assert_eq!((of.latency, of.without_all), (READ, READ));
    assert_eq!(of.without, []);
}

#[test]
fn a_finish_is_not_left_out_of_itself() {
    let script: &Script = &[(0, |rig| rig.finish(0))];
    let of = last_of(&finishing(), two_zones, script, Nanos::ZERO);
    assert_eq!(of.latency, us(31 * 725));
    assert_eq!(of.without_all, of.latency);
}

/// Random overwrites of a namespace without zones, four at a time: some wait for garbage
/// collection. Without it they take what writes took before there was any.
#[test]
fn a_write_that_waits_for_garbage_collection_has_room_without_it() {
    let mut config = small();
    config.zones.capacity_lbas = 16 * u64::from(PAGE);
    config.zones.size_lbas = 20 * u64::from(PAGE);
    config.zones.count = 7;
    config.namespaces = vec![NamespaceConfig {
        kind: NamespaceKind::Conventional(LogConfig::new(3)),
        zones: 7,
        max_active: None,
        max_open: None,
    }];
    let overwrite = |plan: Option<&WatchPlan>| {
        let mut rig = Rig::new(&config);
        if let Some(plan) = plan {
            rig.drive.watch(plan);
        }
        let pages = 4 * 16;
        for round in 0..200_u64 {
            let tags: Vec<usize> = (0..4_u64)
                .map(|n| {
                    // Drawn by a hash: in turn, zones would be stale as a whole.
                    let drawn = (round * 4 + n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let drawn = (drawn ^ drawn >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    let page = (drawn >> 32) % pages;
                    let op = Op::Write {
                        slba: Lba(page * u64::from(PAGE)),
                        nlb: PAGE,
                    };
                    let nsid = NamespaceId(1);
                    rig.submit_command(Command::on(nsid, op), None)
                })
                .collect();
            for tag in tags {
                rig.wait(tag);
            }
        }
        rig.settle();
        rig
    };
    let plain = overwrite(None);
    let times = plain.done.iter().flatten().map(|done| done.submitted);
    let mut rig = overwrite(Some(&WatchPlan {
        commands: (0_u64..).zip(times).collect(),
        ahead: Nanos::ZERO,
        without: Factors::ALL,
    }));
    assert_eq!(plain.done, rig.done);
    let mut gained = 0;
    for (_, result) in rig.drive.take_watched() {
        let of = result.expect("the same commands bring about the same");
        assert_eq!(of.without_all, WRITE, "{of:?}");
        gained += u32::from(without(&of, Factor::Collection) < of.latency);
    }
    assert!(gained > 10, "{gained}");
}

#[test]
fn a_command_that_never_comes_has_not_completed() {
    let mut rig = Rig::new(&small());
    rig.drive.watch(&WatchPlan {
        commands: vec![(7, us(3))],
        ahead: Nanos::ZERO,
        without: Factors::ALL,
    });
    assert_eq!(
        rig.drive.take_watched(),
        [(7, Err(Unwatched::NotCompleted))]
    );
}

// ---- flash alone -------------------------------------------------------------

/// When each group ends, if some factors are left out just before the arrival of one.
fn ends(
    mut media: Media,
    arrivals: &[Arrival],
    from: usize,
    without: Option<Factors>,
) -> Vec<Nanos> {
    media.track();
    let mut rig = media_support::Rig::of(media);
    for (token, arrival) in arrivals.iter().enumerate() {
        rig.run_to(arrival.at);
        if token == from
            && let Some(without) = without
        {
            rig.media.leave_out(arrival.at, without, &mut rig.events);
            rig.run_to(arrival.at);
        }
        rig.submit_at(arrival.at, token as u32, &arrival.ops);
    }
    rig.run_to(Nanos::MAX);
    rig.ended.sort_by_key(|(_, token)| *token);
    assert!(
        rig.ended
            .iter()
            .map(|(_, t)| *t as usize)
            .eq(0..arrivals.len()),
        "each group ends once"
    );
    rig.ended.iter().map(|(at, _)| *at).collect()
}

fn factors() -> impl Strategy<Value = Factors> {
    let all = vec![Factor::HostRead, Factor::HostWrite, Factor::ResetErase];
    proptest::sample::subsequence(all, 0..=3).prop_map(|some| some.into_iter().collect())
}

fn media(shape: &Shape, config: &MediaConfig) -> Media {
    Media::new(&shape.channel_of_unit, shape.channels, config)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Where service is in order of arrival, both engines give the same; nothing gets slower, and
    /// what is gone takes no time.
    #[test]
    fn engines_agree_on_what_is_left(
        (shape, arrivals) in workload(), hold: bool, from in 0..30_usize, without in factors(),
    ) {
        let page_register = if hold { PageRegister::Hold } else { PageRegister::Overlap };
        let config = MediaConfig { page_register, ..CONFZNSPP };
        let from = from % arrivals.len();
        let closed = ends(media(&shape, &config), &arrivals, from, Some(without));
        let events = Media::event_driven(&shape.channel_of_unit, shape.channels, &config);
        prop_assert_eq!(&closed, &ends(events, &arrivals, from, Some(without)));
        let plain = ends(media(&shape, &config), &arrivals, from, None);
        for (token, (now, before)) in closed.iter().zip(&plain).enumerate() {
            prop_assert!(now <= before);
            let cause = media_support::cause_of(arrivals[token].ops[0].kind);
            if without.contains(Factor::of(cause)) && *before > arrivals[from].at {
                prop_assert_eq!(*now, arrivals[token].at.max(arrivals[from].at));
            }
        }
    }

    /// Whatever the policy, each group ends once, and what is left out takes no time.
    #[test]
    fn any_policy_does_without(
        (shape, arrivals) in workload(), config in configs(), from in 0..30_usize,
        without in factors(),
    ) {
        let from = from % arrivals.len();
        let left = ends(media(&shape, &config), &arrivals, from, Some(without));
        let plain = ends(media(&shape, &config), &arrivals, from, None);
        for (token, (now, before)) in left.iter().zip(&plain).enumerate() {
            let cause = media_support::cause_of(arrivals[token].ops[0].kind);
            if without.contains(Factor::of(cause)) && *before > arrivals[from].at {
                prop_assert_eq!(*now, arrivals[token].at.max(arrivals[from].at));
            }
        }
        let nothing = ends(media(&shape, &config), &arrivals, from, Some(Factors::NONE));
        prop_assert_eq!(nothing, plain);
    }
}

// ---- random drives -----------------------------------------------------------

/// A write buffer, and how blocks get out of it.
fn buffers() -> impl Strategy<Value = (WriteBufferConfig, bool, Option<bool>)> {
    let numbers = 1..40_u64;
    let rate = prop::option::of(10_000_000..4_000_000_000_u64);
    let fills_and_books = (any::<bool>(), prop::option::of(any::<bool>()));
    let all = (numbers, rate, any::<bool>(), any::<bool>(), fills_and_books);
    all.prop_map(|(pages, rate, early, by_work, (fills, quiesce))| {
        let buffer = WriteBufferConfig {
            // Pages, until the drive is known.
            size_bytes: pages,
            power_loss_protection: false,
            drain_bytes_per_s: rate,
            turn_bytes: None,
            placement: if by_work {
                Placement::LeastWork
            } else {
                Placement::InOrder
            },
            release: if early {
                BufferRelease::Transfer
            } else {
                BufferRelease::Program
            },
        };
        (buffer, fills, quiesce)
    })
}

/// A drive of any design, with a front end and a write buffer or without.
fn any_drive() -> impl Strategy<Value = DriveConfig> {
    let buffer = prop::option::of(buffers());
    let thresholds = prop::option::of(any_thresholds());
    let parts = (drives(), prop::option::of(front_ends()), buffer, thresholds);
    parts.prop_map(|(mut config, front_end, buffer, thresholds)| {
        if let Some(front_end) = front_end {
            config.front_end = front_end;
        }
        if let Some((mut buffer, fills, quiesce)) = buffer {
            buffer.size_bytes *= u64::from(config.geometry.page_bytes);
            if config.media.arbitration != ChannelArbitration::Ready {
                buffer.release = BufferRelease::Program;
            }
            config.write_buffer = Some(buffer);
            if let FinishConfig::Fill { buffered, .. } = &mut config.finish {
                *buffered = fills;
            }
            config.reset.bookkeeping = quiesce.map(|quiesce| Bookkeeping {
                base_ns: us(100),
                full_zone_ns: us(3_200),
                drain_pause_ns: us(1_600),
                slices: 2,
                open_zone_ns: Nanos::ZERO,
                quiesce,
            });
        }
        let is_lazy = matches!(config.mapping, MappingConfig::Lazy { .. });
        if let Some((thresholds, extent)) = thresholds.filter(|_| is_lazy) {
            config.reset.preempt_ns = None;
            config.reset.extent = extent;
            config.reset.erase = within(thresholds, &config);
        }
        config
    })
}

/// Commands, when they come, and when they end.
fn run(config: &DriveConfig, stream: &[Step], plan: Option<&WatchPlan>) -> Rig {
    let mut rig = Rig::new(config);
    if let Some(plan) = plan {
        rig.drive.watch(plan);
    }
    for step in stream {
        match (step, step.op(&rig)) {
            (_, Some(op)) => {
                rig.submit(op);
            }
            (Step::Pause(ns), None) => rig.run_for(Nanos(*ns)),
            (_, None) => {}
        }
    }
    rig.settle();
    rig
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(250) })]

    /// Watching changes nothing; the same commands bring about the same again; and what was not met
    /// changes nothing.
    #[test]
    fn every_command_can_be_watched(
        config in any_drive(),
        ahead in prop_oneof![Just(0_u64), 0..2_000_000_u64],
        stream in streams(1..60),
    ) {
        let plain = run(&config, &stream, None);
        let times = plain.done.iter().flatten().map(|done| done.submitted);
        let plan = WatchPlan {
            commands: (0_u64..).zip(times).collect(),
            ahead: Nanos(ahead),
            without: Factors::ALL,
        };
        let mut rig = run(&config, &stream, Some(&plan));
        prop_assert_eq!(&plain.done, &rig.done);
        let watched = rig.drive.take_watched();
        prop_assert_eq!(watched.len(), plan.commands.len());
        for (number, result) in watched {
            let of = result.expect("the same commands bring about the same");
            prop_assert_eq!(of.number, number);
            let done = rig.done[number as usize].as_ref().expect("it has completed");
            prop_assert_eq!(of.latency, done.latency());
            let (met, took) = (of.without.len(), of.without_all);
            prop_assert!(met > 0 || took == of.latency);
        }
    }
}
