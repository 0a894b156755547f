//! The layer as programs see it: blocks that hold what was written to them.

use crate::support::layer;
use std::cell::RefCell;
use std::rc::Rc;

use crate::support::layer::{Fuse, Machine, Shadow, seeds::each_seed};
use zonelab_device::{Buf, Command, Lba, Op, QueuePair, Tag};
use zonelab_ftl::{FtlSettings, Placement};
use zonelab_host::Rng;

#[test]
fn blocks_hold_what_was_written() {
    each_seed("--test layer blocks_hold_what_was_written", 600, |seed| {
        let mut rng = Rng::new(seed, 0);
        let config = layer::any_drive(&mut rng);
        let mut machine = Machine::new(&config);
        let settings = machine.any_settings(&mut rng);
        let spare = [0.07, 0.15, 0.28][rng.below(3) as usize];
        let ftl = machine.mount(layer::format(spare), &settings);
        let blocks = ftl.shape().logical_blocks;
        let shadow: Shadow = Rc::new(RefCell::new(vec![layer::Block::default(); blocks as usize]));
        let fuse = Fuse::after(u64::MAX, 0);
        let most = ftl.most_queues();
        let (programs, workers) = (most.min(1 + rng.below(2) as u32), 1 + rng.below(6) as u32);
        let ftl = machine.run(
            ftl,
            &fuse,
            layer::clients(&shadow, blocks, programs, workers, 300, &mut rng),
        );
        let check = Rc::clone(&shadow);
        let check: layer::Main = Box::new(move |io| Box::pin(layer::check_all(io, check)));
        for block in shadow.borrow_mut().iter_mut() {
            block.floor = block.ended;
        }
        machine.run(ftl, &fuse, vec![check]);
    });
}

/// Programs end with writes under way, more often than there are zones: others write on, and
/// what was under way has changed nothing.
#[test]
fn queues_that_are_dropped_at_work_take_no_room() {
    for placement in [Placement::Write, Placement::Append, Placement::SharedAppend] {
        let settings = FtlSettings {
            placement,
            ..FtlSettings::default()
        };
        let mut machine = Machine::new(&layer::drive(24, 32));
        let mut ftl = machine.mount(layer::format(0.15), &settings);
        let blocks = ftl.shape().logical_blocks;
        let shadow: Shadow = Rc::new(RefCell::new(vec![layer::Block::default(); blocks as usize]));
        let fuse = Fuse::after(u64::MAX, 0);
        let mut rng = Rng::new(1, 0);
        for _ in 0..100 {
            let mut dropped = machine.open_queue(&ftl);
            for tag in 0..4 {
                let op = Op::Write {
                    slba: Lba(rng.below(blocks.into())),
                    nlb: 1,
                };
                let data = Buf::from(vec![0xdd; 4096]);
                let taken = dropped.submit(Command::new(op), Tag(tag), Some(data));
                taken.expect("the queue has room");
            }
            dropped.ring();
            drop(dropped);
            let clients = layer::clients(&shadow, blocks, 1, 2, 20, &mut rng);
            ftl = machine.run(ftl, &fuse, clients);
        }
        for block in shadow.borrow_mut().iter_mut() {
            block.floor = block.ended;
        }
        let check = Rc::clone(&shadow);
        let check: layer::Main = Box::new(move |io| Box::pin(layer::check_all(io, check)));
        machine.run(ftl, &fuse, vec![check]);
    }
}
