//! An emulated drive that several threads use in real time.
//!
//! [`SharedDrive`] owns the drive behind a lock. Each thread has a [`Port`]: one
//! queue pair, and a device that a reactor drives. Whichever thread is awake when
//! something is due advances the drive, and wakes those whose commands completed
//! with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Monotonic, Nanos, QueueId,
    QueuePair, RejectReason, Rejected, Tag,
};
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::{Drive, DriveModel};

/// An emulated drive in real time, for several threads.
#[derive(Clone)]
pub struct SharedDrive {
    inner: Arc<Mutex<Inner>>,
    info: Arc<DeviceInfo>,
    clock: Monotonic,
}

struct Inner {
    drive: FaultyDrive,
    lanes: Vec<Lane>,
    scratch: Vec<Completion>,
}

/// A queue pair from the side of the drive.
struct Lane {
    inbox: Vec<Completion>,
    in_flight: u32,
    depth: u32,
    bell: Arc<LaneBell>,
}

/// Wakes the thread of a lane.
#[derive(Debug, Default)]
struct LaneBell {
    /// It was rung since its thread last looked.
    has_rung: AtomicBool,
    /// `None`: no thread has the lane yet.
    thread: Mutex<Option<Thread>>,
}

impl LaneBell {
    fn thread(&self) -> MutexGuard<'_, Option<Thread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        self.has_rung.store(true, Ordering::Release);
        if let Some(thread) = &*self.thread() {
            thread.unpark();
        }
    }
}

impl Wake for LaneBell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

impl SharedDrive {
    /// Takes a drive over, whose time is that of `clock`.
    #[must_use]
    pub fn new(drive: impl Into<FaultyDrive>, clock: Monotonic) -> Self {
        let drive = drive.into();
        Self {
            info: Arc::new(drive.drive().info().clone()),
            inner: Arc::new(Mutex::new(Inner {
                drive,
                lanes: Vec::new(),
                scratch: Vec::new(),
            })),
            clock,
        }
    }

    /// What the drive is.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The clock of the drive.
    #[must_use]
    pub fn clock(&self) -> Monotonic {
        self.clock
    }

    /// A queue pair that holds `depth` commands, for a thread.
    ///
    /// # Panics
    /// If 65,536 are open already.
    #[must_use]
    pub fn port(&self, depth: u32) -> Port {
        let mut inner = locked(&self.inner);
        let id = u16::try_from(inner.lanes.len()).expect("fewer than 2^16 jobs use one drive");
        let bell = Arc::<LaneBell>::default();
        inner.lanes.push(Lane {
            inbox: Vec::with_capacity(depth as usize),
            in_flight: 0,
            depth,
            bell: Arc::clone(&bell),
        });
        Port {
            drive: self.clone(),
            id: QueueId(id),
            bell,
        }
    }

    /// Lets `f` look at the drive, or do something to it.
    pub fn with_drive<T>(&self, f: impl FnOnce(&mut Drive) -> T) -> T {
        f(locked(&self.inner).drive.drive_mut())
    }

    /// Lets `f` look at the faults of the drive, or change them.
    pub fn with_faults<T>(&self, f: impl FnOnce(&mut FaultyDrive) -> T) -> T {
        f(&mut locked(&self.inner).drive)
    }
}

/// A thread that panics in the model ends the run with it.
fn locked(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// Does what is due until `now`. The time of the drive never goes back: another
    /// thread may have come first.
    fn advance(&mut self, now: Nanos) {
        let now = now.max(self.drive.drive().now());
        self.drive.advance(now, &mut self.scratch);
        for completion in self.scratch.drain(..) {
            let lane = &mut self.lanes[usize::from(completion.queue.0)];
            let was_empty = lane.inbox.is_empty();
            lane.inbox.push(completion);
            if was_empty {
                lane.bell.ring();
            }
        }
    }
}

/// A place at the drive for one thread. It can be sent there, and is made a device
/// there ([`Port::open`]).
pub struct Port {
    drive: SharedDrive,
    id: QueueId,
    bell: Arc<LaneBell>,
}

impl Port {
    /// The drive as a device of this thread, and its queue pair for a program.
    #[must_use]
    pub fn open(self) -> (PortDevice, PortQueue) {
        *self.bell.thread() = Some(std::thread::current());
        let queue = PortQueue {
            drive: self.drive.clone(),
            id: self.id,
        };
        (PortDevice { port: self }, queue)
    }
}

/// An emulated drive as one thread drives it.
pub struct PortDevice {
    port: Port,
}

impl PortDevice {
    /// Ends a wait of this device from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.port.bell))
    }
}

impl Device for PortDevice {
    type Queue = PortQueue;

    fn next_event(&self) -> Option<Nanos> {
        let inner = locked(&self.port.drive.inner);
        let lane = &inner.lanes[usize::from(self.port.id.0)];
        match lane.inbox.is_empty() {
            // Another thread has brought it already.
            false => Some(self.port.drive.clock.now()),
            true => inner.drive.next_event(),
        }
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        let mut inner = locked(&self.port.drive.inner);
        inner.advance(now);
        if !inner.lanes[usize::from(self.port.id.0)].inbox.is_empty() {
            ready.push(self.port.id);
        }
    }

    fn wait(&mut self, span: Nanos) -> bool {
        let has_rung = || self.port.bell.has_rung.swap(false, Ordering::Acquire);
        if has_rung() {
            return true;
        }
        if span > Nanos::ZERO {
            std::thread::park_timeout(Duration::from_nanos(span.0));
        }
        has_rung()
    }
}

/// A queue pair of an emulated drive that several threads use.
pub struct PortQueue {
    drive: SharedDrive,
    id: QueueId,
}

impl DeviceQueue for PortQueue {
    fn id(&self) -> QueueId {
        self.id
    }

    /// Its time goes on by itself.
    fn enter(&mut self, _now: Nanos) {}
}

impl QueuePair for PortQueue {
    fn info(&self) -> &DeviceInfo {
        &self.drive.info
    }

    fn now(&self) -> Nanos {
        self.drive.clock.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        let mut inner = locked(&self.drive.inner);
        let lane = &mut inner.lanes[usize::from(self.id.0)];
        if lane.in_flight == lane.depth {
            let reason = RejectReason::QueueFull {
                queue: self.id,
                depth: lane.depth,
            };
            return Err(Rejected { reason, data });
        }
        lane.in_flight += 1;
        // Read with the lock held: what others do meanwhile is not later.
        let now = self.drive.clock.now().max(inner.drive.drive().now());
        inner.advance(now);
        inner
            .drive
            .submit(now, self.id, tag, command, data)
            .expect("queue depths keep the drive below what it can hold");
        Ok(())
    }

    fn ring(&mut self) {
        // The drive has a command when it is submitted.
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let mut inner = locked(&self.drive.inner);
        let at = self.drive.clock.now();
        let lane = &mut inner.lanes[usize::from(self.id.0)];
        let count = lane.inbox.len();
        lane.in_flight -= count as u32;
        done.extend(
            lane.inbox
                .drain(..)
                .map(|completion| Completion { at, ..completion }),
        );
        count
    }
}
