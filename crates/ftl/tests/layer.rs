//! The layer as programs see it: blocks that hold what was written to them.

#[path = "support/layer.rs"]
mod layer;

use std::cell::RefCell;
use std::rc::Rc;

use layer::{Fuse, Machine, Running, Shadow, Worker, each_seed};
use zonelab_host::Rng;
use zonelab_host::tasks::Io;

#[test]
fn blocks_hold_what_was_written() {
    each_seed("--test layer blocks_hold_what_was_written", 60, |seed| {
        let mut rng = Rng::new(seed, 0);
        let config = layer::any_drive(&mut rng);
        let settings = layer::any_settings(&mut rng);
        let mut machine = Machine::new(&config);
        let spare = [0.07, 0.15, 0.28][rng.below(3) as usize];
        let ftl = machine.mount(layer::format(spare), &settings);
        let blocks = ftl.shape().logical_blocks;
        let shadow: Shadow = Rc::new(RefCell::new(vec![layer::Block::default(); blocks as usize]));
        let fuse = Fuse::after(u64::MAX, 0);
        let (programs, workers) = (1 + rng.below(2) as u32, 1 + rng.below(6) as u32);
        let ftl = machine.run(ftl, &fuse, clients(&shadow, blocks, programs, workers, 300, &mut rng));
        let check = Rc::clone(&shadow);
        let check: Box<dyn FnOnce(Io) -> Running> =
            Box::new(move |io| Box::pin(layer::check_all(io, check)));
        for block in shadow.borrow_mut().iter_mut() {
            block.floor = block.ended;
        }
        machine.run(ftl, &fuse, vec![check]);
    });
}

/// Programs of several workers each, with blocks of their own.
fn clients(
    shadow: &Shadow,
    blocks: u32,
    programs: u32,
    workers: u32,
    operations: u32,
    rng: &mut Rng,
) -> Vec<Box<dyn FnOnce(Io) -> Running>> {
    let all = programs * workers;
    let is_striped = rng.below(2) == 0;
    let mut clients: Vec<Box<dyn FnOnce(Io) -> Running>> = Vec::new();
    for program in 0..programs {
        let shadow = Rc::clone(shadow);
        let seed = rng.next_u64();
        clients.push(Box::new(move |io| {
            Box::pin(async move {
                let tasks = (0..workers).map(|worker| {
                    let index = program * workers + worker;
                    let own = blocks / all;
                    let (first, step) = match is_striped {
                        true => (index, all),
                        false => (index * own, 1),
                    };
                    let worker = Worker {
                        first,
                        step,
                        own,
                        operations,
                    };
                    let rng = Rng::new(seed, index.into());
                    io.spawn(worker.run(io.clone(), Rc::clone(&shadow), rng))
                });
                futures_util::future::join_all(tasks.collect::<Vec<_>>()).await;
            })
        }));
    }
    clients
}
