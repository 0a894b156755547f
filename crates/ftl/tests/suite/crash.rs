//! Losses of power at any event: whatever was flushed is there afterwards, and every
//! other block is as it was at some moment since.

use crate::support::layer;
use std::cell::RefCell;
use std::rc::Rc;

use crate::support::layer::{Fuse, Machine, Main, Shadow, seeds::each_seed};
use crate::support::met::Met;
use zonelab_device::{Buf, Lba, Op};
use zonelab_ftl::Start;
use zonelab_host::Rng;
use zonelab_host::tasks::Io;

/// Losses of power in the life of one drive.
const CUTS: u32 = 25;

#[test]
fn what_was_flushed_survives() {
    let met = Met::default();
    each_seed("--test crash what_was_flushed_survives", 400, |seed| {
        let mut rng = Rng::new(seed, 0);
        let config = layer::any_drive(&mut rng);
        let mut machine = Machine::new(&config);
        let spare = [0.07, 0.15, 0.28][rng.below(3) as usize];
        let settings = machine.any_settings(&mut rng);
        let mut ftl = Some(machine.mount(layer::format(spare), &settings));
        let blocks = ftl.as_ref().map_or(0, |ftl| ftl.shape().logical_blocks);
        let shadow: Shadow = Rc::new(RefCell::new(vec![layer::Block::default(); blocks as usize]));
        let mut cuts = 0;
        while cuts < CUTS {
            let settings = machine.any_settings(&mut rng);
            let mounted = match ftl.take() {
                Some(ftl) => ftl,
                None => {
                    // Every third mount is cut itself.
                    let events = match rng.below(3) {
                        0 => rng.below(80),
                        _ => u64::MAX,
                    };
                    let fuse = Fuse::after(events, rng.next_u64());
                    let Some(ftl) = machine.mount_until(Start::Mount, &settings, &fuse) else {
                        cuts += 1;
                        continue;
                    };
                    let check = Rc::clone(&shadow);
                    let check: Main = Box::new(|io| Box::pin(layer::check_all(io, check)));
                    machine.run(ftl, &Fuse::after(u64::MAX, 0), vec![check])
                }
            };
            let most = mounted.most_queues();
            let programs = most.min(1 + rng.below(2) as u32);
            let workers = 1 + rng.below(8) as u32;
            let clients = layer::clients(&shadow, blocks, programs, workers, 400, &mut rng);
            let most_events = [60, 600, 6000][rng.below(3) as usize];
            let fuse = Fuse::after(rng.below(most_events), rng.next_u64());
            let before = machine_resets(&machine);
            let ended = machine.run(mounted, &fuse, clients);
            met.add(&ended.metrics(), machine_resets(&machine) - before);
            drop(ended);
            match fuse.is_lost() {
                true => cuts += 1,
                // All ended before: what was not flushed is lost with the next mount,
                // since nobody unmounts.
                false => {
                    let fuse = Fuse::after(0, rng.next_u64());
                    fuse.lose(&machine.drive, machine.now);
                    machine.now = fuse.ready();
                    cuts += 1;
                }
            }
        }
    });
    met.is_enough();
}

fn machine_resets(machine: &Machine) -> u64 {
    machine.drive.with_drive(|drive| drive.totals().resets)
}

/// Programs write the same blocks at the same time: whichever write the map shows last is
/// the one that a mount finds.
#[test]
fn contested_blocks_stay_as_they_were_seen() {
    let name = "--test crash contested_blocks_stay_as_they_were_seen";
    each_seed(name, 300, |seed| {
        let mut rng = Rng::new(seed, 0);
        let config = layer::any_drive(&mut rng);
        let mut machine = Machine::new(&config);
        let settings = machine.any_settings(&mut rng);
        let mut ftl = machine.mount(layer::format(0.28), &settings);
        let never = Fuse::after(u64::MAX, 0);
        let contested = 40;
        for _ in 0..3 {
            let programs = ftl.most_queues().min(3);
            let writers = (0..programs).map(|_| {
                let rng = Rng::new(rng.next_u64(), 0);
                let main: Main = Box::new(move |io| Box::pin(contend(io, contested, rng)));
                main
            });
            ftl = machine.run(ftl, &never, writers.collect());
            let seen = Rc::new(RefCell::new(Vec::new()));
            let to = Rc::clone(&seen);
            let main: Main = Box::new(move |io| {
                Box::pin(async move {
                    see(&io, contested, &to).await;
                    layer::good(&io, Op::Flush, None).await;
                })
            });
            ftl = machine.run(ftl, &never, vec![main]);
            drop(ftl);
            let fuse = Fuse::after(0, rng.next_u64());
            fuse.lose(&machine.drive, machine.now);
            machine.now = fuse.ready();
            let mounted = machine.mount(Start::Mount, &settings);
            let found = Rc::new(RefCell::new(Vec::new()));
            let to = Rc::clone(&found);
            let main: Main = Box::new(move |io| {
                Box::pin(async move {
                    see(&io, contested, &to).await;
                })
            });
            ftl = machine.run(mounted, &never, vec![main]);
            assert_eq!(*seen.borrow(), *found.borrow());
        }
    });
}

/// Writes blocks that others write, too: some in a row, one by one.
async fn contend(io: Io, blocks: u32, mut rng: Rng) {
    for _ in 0..40 {
        let first = rng.below(u64::from(blocks) - 4) as u32;
        let writes = (first..first + 4).map(|block| {
            let version = 2 * (1 + rng.below(1 << 30) as u32);
            let data = Buf::from(layer::bytes_of(block, version));
            let op = Op::Write {
                slba: Lba(block.into()),
                nlb: 1,
            };
            layer::good(&io, op, Some(data))
        });
        let writes: Vec<_> = writes.collect();
        futures_util::future::join_all(writes).await;
    }
}

/// The stamps of the first blocks.
async fn see(io: &Io, blocks: u32, stamps: &RefCell<Vec<u64>>) {
    for block in 0..blocks {
        let op = Op::Read {
            slba: Lba(block.into()),
            nlb: 1,
        };
        let data = layer::good(io, op, Some(Buf::zeroed(4096))).await;
        let data = data.expect("it comes back");
        let stamp = data[..8].try_into().expect("8 bytes");
        stamps.borrow_mut().push(u64::from_le_bytes(stamp));
    }
}
