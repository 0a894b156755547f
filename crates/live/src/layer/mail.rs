//! The drive as the translation layer sees it: letters to it, and answers.
//!
//! Whoever serves a drive owns it, and lends it to the layer now and then. So the queue
//! pairs of the layer only collect commands, until [`Mail::post`] hands them over.

use std::cell::RefCell;
use std::rc::Rc;

use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Found, Modelled, Nanos, QueueId,
    QueuePair, Rejected, Tag,
};
use zonelab_nvme::Status;
use zonelab_ssd::DriveModel;
use zonelab_ssd::faults::FaultyDrive;

/// A command that the drive has not got yet.
struct Letter {
    queue: QueueId,
    tag: Tag,
    command: Command,
    data: Option<Buf>,
}

/// What is under way between the queue pairs of one mount and the drive.
#[derive(Default)]
struct Boxes {
    /// The queue with the lowest identifier. Those of a later mount are others, so that
    /// it does not get what the drive still owes to an earlier one.
    first: u16,
    outbox: Vec<Letter>,
    /// By queue.
    inboxes: Vec<Vec<Completion>>,
    /// Queues whose inboxes were empty, and are not.
    ready: Vec<QueueId>,
}

/// Commands to the drive and completions from it, of all queue pairs of one mount.
#[derive(Clone, Default)]
pub(super) struct Mail {
    boxes: Rc<RefCell<Boxes>>,
}

impl Mail {
    /// The mail of another mount, whose queues are none of the earlier ones.
    pub(super) fn anew(&self) -> Self {
        let old = self.boxes.borrow();
        // Fits: as many queues as the drive has active zones.
        let first = old.first.wrapping_add(old.inboxes.len() as u16);
        let boxes = Boxes {
            first,
            ..Boxes::default()
        };
        Self {
            boxes: Rc::new(RefCell::new(boxes)),
        }
    }

    /// The device that these queue pairs are of.
    pub(super) fn device(&self) -> Below {
        Below { mail: self.clone() }
    }

    /// One queue pair more.
    pub(super) fn open(&self, info: &Rc<DeviceInfo>) -> BelowQueue {
        let mut boxes = self.boxes.borrow_mut();
        let id = QueueId(boxes.first.wrapping_add(boxes.inboxes.len() as u16));
        boxes.inboxes.push(Vec::new());
        BelowQueue {
            mail: self.clone(),
            info: Rc::clone(info),
            id,
            now: Nanos::ZERO,
        }
    }

    /// Which of the queue pairs that were opened this is, counted from 0.
    pub(super) fn place(&self, id: QueueId) -> usize {
        usize::from(id.0.wrapping_sub(self.boxes.borrow().first))
    }

    /// Whether commands wait to be handed over.
    pub(super) fn is_waiting(&self) -> bool {
        !self.boxes.borrow().outbox.is_empty()
    }

    /// Hands over the commands. One that the drive does not take ends as Namespace Not
    /// Ready.
    pub(super) fn post(&self, now: Nanos, drive: &mut FaultyDrive) {
        let boxes = &mut *self.boxes.borrow_mut();
        let now = now.max(drive.drive().now());
        let Boxes {
            outbox,
            inboxes,
            ready,
            first,
        } = boxes;
        for letter in outbox.drain(..) {
            let Letter { queue, tag, .. } = letter;
            let taken = drive.submit(now, queue, tag, letter.command, letter.data);
            if let Err(rejected) = taken {
                let completion = Completion {
                    queue,
                    tag,
                    status: Status::NAMESPACE_NOT_READY,
                    at: now,
                    result: 0,
                    found: Found::Unknown,
                    data: rejected.data,
                };
                put(inboxes, ready, *first, completion);
            }
        }
    }

    /// Puts completions of the drive into the inboxes of their queues. Those for queues of
    /// an earlier mount nobody waits for.
    pub(super) fn deliver(&self, completions: &mut Vec<Completion>) {
        let boxes = &mut *self.boxes.borrow_mut();
        for completion in completions.drain(..) {
            put(
                &mut boxes.inboxes,
                &mut boxes.ready,
                boxes.first,
                completion,
            );
        }
    }
}

fn put(
    inboxes: &mut [Vec<Completion>],
    ready: &mut Vec<QueueId>,
    first: u16,
    completion: Completion,
) {
    let id = completion.queue;
    if let Some(inbox) = inboxes.get_mut(usize::from(id.0.wrapping_sub(first))) {
        if inbox.is_empty() {
            ready.push(id);
        }
        inbox.push(completion);
    }
}

/// The drive as a device of the layer.
pub(super) struct Below {
    mail: Mail,
}

impl Device for Below {
    type Queue = BelowQueue;

    /// Completions were delivered. (What the drive does next, its owner knows.)
    fn next_event(&self) -> Option<Nanos> {
        let is_ready = !self.mail.boxes.borrow().ready.is_empty();
        is_ready.then_some(Nanos::ZERO)
    }

    fn advance(&mut self, _now: Nanos, ready: &mut Vec<QueueId>) {
        ready.append(&mut self.mail.boxes.borrow_mut().ready);
    }

    /// Nothing comes from outside.
    fn wait(&mut self, _span: Nanos) -> bool {
        false
    }
}

impl Modelled for Below {}

/// A queue pair of the layer on the drive.
pub(super) struct BelowQueue {
    mail: Mail,
    info: Rc<DeviceInfo>,
    id: QueueId,
    now: Nanos,
}

impl DeviceQueue for BelowQueue {
    fn id(&self) -> QueueId {
        self.id
    }

    fn enter(&mut self, now: Nanos) {
        self.now = now;
    }
}

impl QueuePair for BelowQueue {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        self.mail.boxes.borrow_mut().outbox.push(Letter {
            queue: self.id,
            tag,
            command,
            data,
        });
        Ok(())
    }

    fn ring(&mut self) {
        // Letters are collected by whoever has the drive.
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let place = self.mail.place(self.id);
        let inbox = &mut self.mail.boxes.borrow_mut().inboxes[place];
        let count = inbox.len();
        done.extend(inbox.drain(..).map(|completion| Completion {
            at: self.now,
            ..completion
        }));
        count
    }
}
