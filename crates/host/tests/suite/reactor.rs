//! The reactor over a device that is no model: completions come from outside,
//! when nothing but the device knows.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Found, Lba, Nanos, Op, QueueId,
    QueuePair, Rejected, Tag,
};
use zonelab_host::{Clock, CoreId, NextWake, Reactor, RunEnd, StopSignal, WaitsFor};
use zonelab_nvme::Status;

use super::support::{PAGE, script, tiny_info};

const US: fn(u64) -> Nanos = Nanos::from_us;

/// Time that passes only while somebody waits.
#[derive(Clone, Default)]
struct Clockwork(Rc<Cell<Nanos>>);

impl Clock for Clockwork {
    fn now(&self) -> Nanos {
        self.0.get()
    }

    fn is_real(&self) -> bool {
        true
    }
}

impl<D: Device> WaitsFor<D> for Clockwork {
    fn wait(&mut self, device: &mut D, until: Nanos) -> Nanos {
        while self.now() < until && !device.wait(until - self.now()) {}
        self.now()
    }
}

/// A device whose commands end at times that were laid down before, in order.
struct Far {
    time: Clockwork,
    shared: Rc<RefCell<Wire>>,
    /// What it was asked to wait for.
    waits: Rc<RefCell<Vec<Nanos>>>,
}

#[derive(Default)]
struct Wire {
    /// When commands end, of those that come.
    ends: VecDeque<Nanos>,
    under_way: VecDeque<(Nanos, QueueId, Tag)>,
    inboxes: Vec<Vec<Completion>>,
}

struct FarQueue {
    id: QueueId,
    info: DeviceInfo,
    now: Nanos,
    shared: Rc<RefCell<Wire>>,
}

impl Far {
    fn new(ends: impl IntoIterator<Item = Nanos>) -> Self {
        let wire = Wire {
            ends: ends.into_iter().collect(),
            ..Wire::default()
        };
        Self {
            time: Clockwork::default(),
            shared: Rc::new(RefCell::new(wire)),
            waits: Rc::default(),
        }
    }

    fn open_queue(&self) -> FarQueue {
        let mut wire = self.shared.borrow_mut();
        wire.inboxes.push(Vec::new());
        FarQueue {
            id: QueueId(wire.inboxes.len() as u16 - 1),
            info: tiny_info(),
            now: Nanos::ZERO,
            shared: Rc::clone(&self.shared),
        }
    }
}

impl Device for Far {
    type Queue = FarQueue;

    fn next_event(&self) -> Option<Nanos> {
        let is_idle = self.shared.borrow().under_way.is_empty();
        (!is_idle).then_some(Nanos::MAX)
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        let wire = &mut *self.shared.borrow_mut();
        while let Some(&(at, queue, tag)) = wire.under_way.front()
            && at <= now
        {
            wire.under_way.pop_front();
            let inbox = &mut wire.inboxes[usize::from(queue.0)];
            if inbox.is_empty() {
                ready.push(queue);
            }
            inbox.push(Completion {
                queue,
                tag,
                status: Status::SUCCESS,
                at,
                result: 0,
                found: Found::Unknown,
                data: None,
            });
        }
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.waits.borrow_mut().push(span);
        let now = self.time.now();
        let wire = self.shared.borrow();
        let arrival = wire.under_way.front().map(|(at, ..)| *at);
        match arrival {
            Some(at) if at <= now.saturating_add(span) => {
                self.time.0.set(at.max(now));
                true
            }
            _ => {
                self.time.0.set(now.saturating_add(span));
                false
            }
        }
    }
}

impl DeviceQueue for FarQueue {
    fn id(&self) -> QueueId {
        self.id
    }

    fn enter(&mut self, now: Nanos) {
        self.now = now;
    }
}

impl QueuePair for FarQueue {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, _: Command, tag: Tag, _: Option<Buf>) -> Result<(), Rejected> {
        let mut wire = self.shared.borrow_mut();
        let at = wire.ends.pop_front().expect("an end for each command");
        wire.under_way.push_back((at, self.id, tag));
        Ok(())
    }

    fn ring(&mut self) {}

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let inbox = &mut self.shared.borrow_mut().inboxes[usize::from(self.id.0)];
        let count = inbox.len();
        done.append(inbox);
        count
    }
}

const READ: Command = Command::new(Op::Read {
    slba: Lba(0),
    nlb: PAGE,
});

/// A completion that comes during a wait for somebody else's time wakes the job
/// that it is for, then and at no other time, and nobody else.
#[test]
fn completions_come_when_they_come() {
    let mut device = Far::new([US(10), US(30)]);
    let (reading, sleeping) = (device.open_queue(), device.open_queue());
    let waits = Rc::clone(&device.waits);
    let mut seen = Vec::new();
    let mut reader = script(|now, done, queue| {
        seen.push((now, done.len()));
        if seen.len() == 1 {
            for tag in 0..2 {
                queue.submit(READ, Tag(tag), None).unwrap();
            }
        }
        match seen.len() {
            3 => NextWake::Finished,
            _ => NextWake::Completion,
        }
    });
    let mut woken = Vec::new();
    let mut sleeper = script(|now, _, _| {
        woken.push(now);
        match woken.len() {
            1 => NextWake::At(US(20)),
            _ => NextWake::Finished,
        }
    });
    let clock = device.time.clone();
    let mut reactor = Reactor::new(clock, &mut device, StopSignal::default());
    reactor.add(&mut reader, reading, CoreId(0), Nanos::ZERO);
    reactor.add(&mut sleeper, sleeping, CoreId(1), Nanos::ZERO);
    let end = reactor.run();
    let expected = RunEnd {
        at: US(30),
        stuck_jobs: 0,
        lateness_max: Nanos::ZERO,
    };
    assert_eq!(end, expected);
    assert_eq!(seen, [(US(0), 0), (US(10), 1), (US(30), 1)]);
    assert_eq!(woken, [US(0), US(20)]);
    // Until the sleeper's time, the rest of that, and for ever.
    let spans = [US(20), US(10), Nanos::MAX - US(20)];
    assert_eq!(waits.borrow()[..], spans);
}

/// A device with nothing under way is not waited for: the job is stuck.
#[test]
fn nothing_under_way_is_the_end() {
    let mut device = Far::new([US(5)]);
    let queue = device.open_queue();
    let mut seen = Vec::new();
    let mut greedy = script(|now, done, queue| {
        if seen.is_empty() {
            queue.submit(READ, Tag(7), None).unwrap();
        }
        seen.push((now, done.first().map(|completion| completion.tag)));
        NextWake::Completion
    });
    let clock = device.time.clone();
    let mut reactor = Reactor::new(clock, &mut device, StopSignal::default());
    reactor.add(&mut greedy, queue, CoreId(0), Nanos::ZERO);
    let end = reactor.run();
    assert_eq!((end.at, end.stuck_jobs), (US(5), 1));
    assert_eq!(seen, [(US(0), None), (US(5), Some(Tag(7)))]);
}
