//! The layer as programs see it: blocks that hold what was written to them.

#[path = "support/layer.rs"]
mod layer;

use std::cell::RefCell;
use std::rc::Rc;

use layer::{Fuse, Machine, Shadow, each_seed};
use zonelab_host::Rng;

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
        let most = ftl.most_queues();
        let (programs, workers) = (most.min(1 + rng.below(2) as u32), 1 + rng.below(6) as u32);
        let ftl = machine.run(ftl, &fuse, layer::clients(&shadow, blocks, programs, workers, 300, &mut rng));
        let check = Rc::clone(&shadow);
        let check: layer::Main =
            Box::new(move |io| Box::pin(layer::check_all(io, check)));
        for block in shadow.borrow_mut().iter_mut() {
            block.floor = block.ended;
        }
        machine.run(ftl, &fuse, vec![check]);
    });
}
