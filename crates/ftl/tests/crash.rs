//! Losses of power at any event: whatever was flushed is there afterwards, and every
//! other block is as it was at some moment since.

#[path = "support/layer.rs"]
mod layer;

use std::cell::RefCell;
use std::rc::Rc;

use layer::{Fuse, Machine, Main, Shadow, each_seed};
use zonelab_ftl::Start;
use zonelab_host::Rng;

/// Losses of power in the life of one drive.
const CUTS: u32 = 25;

#[test]
fn what_was_flushed_survives() {
    each_seed("--test crash what_was_flushed_survives", 400, |seed| {
        let mut rng = Rng::new(seed, 0);
        let config = layer::any_drive(&mut rng);
        let mut machine = Machine::new(&config);
        let spare = [0.07, 0.15, 0.28][rng.below(3) as usize];
        let settings = layer::any_settings(&mut rng);
        let mut ftl = Some(machine.mount(layer::format(spare), &settings));
        let blocks = ftl.as_ref().map_or(0, |ftl| ftl.shape().logical_blocks);
        let shadow: Shadow = Rc::new(RefCell::new(vec![layer::Block::default(); blocks as usize]));
        let mut cuts = 0;
        while cuts < CUTS {
            let settings = layer::any_settings(&mut rng);
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
            machine.run(mounted, &fuse, clients);
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
}
