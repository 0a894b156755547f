//! Drives that have no room for a while, whatever is written then: nothing that was flushed
//! is lost, and writes go on when there is room again.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;

use crate::support::layer::{self, Fuse, Machine, Main, Shadow, seeds::each_seed};
use zonelab_device::{Buf, Command, Lba, Nanos, Op};
use zonelab_ftl::Start;
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_nvme::Status;
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, Match, Trigger};

/// From some command on, a number of those that need room fail.
fn any_times_without_room(rng: &mut Rng) -> FaultPlan {
    let mut faults = Vec::new();
    for _ in 0..1 + rng.below(3) {
        let skip = rng.below(1200);
        for trigger in [Trigger::Write, Trigger::Append, Trigger::Copy] {
            faults.push(Fault {
                when: Match {
                    skip,
                    count: 1 + rng.below(60),
                    ..Match::every(trigger)
                },
                effect: Effect::Fail(Status::CAPACITY_EXCEEDED),
            });
        }
    }
    let seed = rng.next_u64();
    FaultPlan { seed, faults }
}

/// What one who writes has met.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    written: u32,
    without_room: u32,
    flushes_without_room: u32,
}

/// Runs a command that may find no room; whether it did.
async fn had_room(io: &Io, op: Op, data: Option<Buf>) -> bool {
    let answer = io.run(Command::new(op), data).await;
    match answer.expect("the device is there").status {
        Status::SUCCESS => true,
        Status::CAPACITY_EXCEEDED => false,
        status => panic!("{op:?}: {status}"),
    }
}

/// Writes blocks that nobody else writes, and flushes; waits a little where there is no room.
async fn work(io: Io, shadow: Shadow, (first, own): (u32, u32), mut rng: Rng) -> Met {
    let mut met = Met::default();
    for step in 0..400 {
        let pause = io.now() + Nanos::from_ms(rng.below(100));
        if rng.below(12) == 0 || step == 399 {
            let before: Vec<u32> = {
                let shadow = shadow.borrow();
                (first..first + own)
                    .map(|block| shadow[block as usize].ended)
                    .collect()
            };
            // The last one has to succeed some time.
            while !had_room(&io, Op::Flush, None).await {
                met.flushes_without_room += 1;
                io.sleep_until(io.now() + Nanos::from_ms(100)).await;
                if step < 399 {
                    break;
                }
                assert!(met.flushes_without_room < 10_000, "there is room again");
            }
            let mut shadow = shadow.borrow_mut();
            if step == 399 {
                for (block, ended) in (first..first + own).zip(before) {
                    shadow[block as usize].floor = ended;
                }
            }
            continue;
        }
        let block = first + rng.below(own.into()) as u32;
        let version = {
            let entry = &mut shadow.borrow_mut()[block as usize];
            entry.begun = (entry.begun / 2 + 1) * 2;
            entry.begun
        };
        let op = Op::Write {
            slba: Lba(block.into()),
            nlb: 1,
        };
        let data = Buf::from(layer::bytes_of(block, version));
        match had_room(&io, op, Some(data)).await {
            true => {
                shadow.borrow_mut()[block as usize].ended = version;
                met.written += 1;
            }
            false => {
                met.without_room += 1;
                io.sleep_until(pause).await;
            }
        }
    }
    met
}

#[test]
fn a_drive_that_has_no_room_for_a_while_loses_nothing() {
    let met = Mutex::new(Met::default());
    let name = "--test suite a_drive_that_has_no_room_for_a_while_loses_nothing";
    each_seed(name, 150, |seed| {
        let mut rng = Rng::new(seed, 0);
        let config = layer::any_drive(&mut rng);
        let mut machine = Machine::new(&config);
        let settings = machine.any_settings(&mut rng);
        let mut ftl = machine.mount(layer::format(0.28), &settings);
        let blocks = ftl.shape().logical_blocks;
        let shadow: Shadow = Rc::new(RefCell::new(vec![layer::Block::default(); blocks as usize]));
        let all = Rc::new(RefCell::new(Met::default()));
        for _ in 0..3 {
            let (now, plan) = (machine.now, any_times_without_room(&mut rng));
            machine
                .drive
                .with_faults(|drive| drive.add_faults(now, plan));
            let workers = 1 + rng.below(4) as u32;
            let seed = rng.next_u64();
            let (shared, sum) = (Rc::clone(&shadow), Rc::clone(&all));
            let main: Main = Box::new(move |io| {
                Box::pin(async move {
                    let own = blocks / workers;
                    let tasks = (0..workers).map(|worker| {
                        let rng = Rng::new(seed, worker.into());
                        let mine = (worker * own, own);
                        io.spawn(work(io.clone(), Rc::clone(&shared), mine, rng))
                    });
                    for met in futures_util::future::join_all(tasks.collect::<Vec<_>>()).await {
                        let mut sum = sum.borrow_mut();
                        sum.written += met.written;
                        sum.without_room += met.without_room;
                        sum.flushes_without_room += met.flushes_without_room;
                    }
                })
            });
            ftl = machine.run(ftl, &Fuse::after(u64::MAX, 0), vec![main]);
            assert_eq!(ftl.failure(), None);
            machine.drive.with_faults(|drive| drive.clear_faults());
            let fuse = Fuse::after(0, rng.next_u64());
            fuse.lose(&machine.drive, machine.now);
            machine.now = fuse.ready();
            drop(ftl);
            let mounted = machine.mount(Start::Mount, &settings);
            let check = Rc::clone(&shadow);
            let check: Main = Box::new(|io| Box::pin(layer::check_all(io, check)));
            ftl = machine.run(mounted, &Fuse::after(u64::MAX, 0), vec![check]);
        }
        let (mut met, all) = (met.lock().expect("adding cannot fail"), all.borrow());
        met.written += all.written;
        met.without_room += all.without_room;
        met.flushes_without_room += all.flushes_without_room;
    });
    let met = met.into_inner().expect("adding cannot fail");
    println!("{met:?}");
    assert!(met.without_room > 0 && met.flushes_without_room > 0);
}
