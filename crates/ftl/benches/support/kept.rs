//! A drive that keeps what is written to the layer's metadata, and nothing else: so that a
//! drive of any size can be mounted again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Modelled, Nanos, Op, QueueId,
    QueuePair, Rejected, Tag,
};
use zonelab_ftl::Shape;
use zonelab_host::Rng;
use zonelab_sim::{Emulated, EmulatedQueue, HostCosts};

/// Blocks that are kept, in pieces as they were written.
#[derive(Default)]
struct Content {
    blocks: HashMap<u64, Rc<[u8]>>,
    read_bytes: u64,
}

/// The drive.
#[derive(Clone)]
pub(crate) struct Kept {
    drive: Emulated,
    content: Rc<RefCell<Content>>,
    shape: Rc<Shape>,
}

impl Kept {
    pub(crate) fn new(drive: Emulated, shape: &Shape) -> Self {
        Self {
            drive,
            content: Rc::default(),
            shape: Rc::new(shape.clone()),
        }
    }

    /// Whether a block is metadata: of a zone for that, or of the footer of another.
    fn keeps(&self, slba: u64) -> bool {
        let zone_lbas = self.shape.zone_size_lbas;
        let is_data = slba / zone_lbas >= u64::from(self.shape.first_data_zone());
        !is_data || slba % zone_lbas >= u64::from(self.shape.data_blocks())
    }

    pub(crate) fn open(&self) -> KeptQueue {
        KeptQueue {
            queue: self.drive.open_queue(256, HostCosts::FREE, Rng::new(1, 0)),
            kept: self.clone(),
            reads: HashMap::new(),
        }
    }

    /// Bytes that were read of what is kept.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.content.borrow().read_bytes
    }
}

impl Device for Kept {
    type Queue = KeptQueue;

    fn next_event(&self) -> Option<Nanos> {
        self.drive.next_event()
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.drive.advance(now, ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.drive.wait(span)
    }
}

impl Modelled for Kept {}

/// A queue pair of it.
pub(crate) struct KeptQueue {
    queue: EmulatedQueue,
    kept: Kept,
    /// First blocks of reads, by tag.
    reads: HashMap<u32, u64>,
}

impl DeviceQueue for KeptQueue {
    fn id(&self) -> QueueId {
        self.queue.id()
    }

    fn enter(&mut self, now: Nanos) {
        self.queue.enter(now);
    }
}

impl QueuePair for KeptQueue {
    fn info(&self) -> &DeviceInfo {
        self.queue.info()
    }

    fn now(&self) -> Nanos {
        self.queue.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        match (command.op, &data) {
            (Op::Write { slba, .. }, Some(data)) if self.kept.keeps(slba.0) => {
                let content = &mut *self.kept.content.borrow_mut();
                for (at, block) in (slba.0..).zip(data.chunks(self.kept.shape.block_bytes as usize))
                {
                    content.blocks.insert(at, block.into());
                }
            }
            (Op::Read { slba, .. }, Some(_)) if self.kept.keeps(slba.0) => {
                self.reads.insert(tag.0, slba.0);
            }
            _ => {}
        }
        self.queue.submit(command, tag, data)
    }

    fn ring(&mut self) {
        self.queue.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        let count = self.queue.poll(done);
        for completion in &mut done[before..] {
            let (Some(slba), Some(data)) =
                (self.reads.remove(&completion.tag.0), &mut completion.data)
            else {
                continue;
            };
            let content = &mut *self.kept.content.borrow_mut();
            content.read_bytes += data.len() as u64;
            for (at, block) in (slba..).zip(data.chunks_mut(self.kept.shape.block_bytes as usize)) {
                match content.blocks.get(&at) {
                    Some(kept) => block.copy_from_slice(kept),
                    None => block.fill(0),
                }
            }
        }
        count
    }
}
