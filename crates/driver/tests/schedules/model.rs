//! A device that carries commands out when their doorbell is rung, with the types that the
//! driver's files expect of their neighbours.

use loom::sync::{Arc, Mutex, MutexGuard};
use zonelab_device::Tag;

/// What the device has.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) is_enabled: bool,
    /// The rings that it knows: their queue, and which of those that were ever made.
    pub(crate) rings: Vec<(u16, u32)>,
    made: u32,
    /// What it has completed and nobody has polled.
    completed: Vec<(u32, Tag)>,
    /// Rings on which it breaks the protocol.
    pub(crate) broken: Vec<u32>,
    violations: Vec<u32>,
}

/// A device, shared by the driver's threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model(Arc<Mutex<State>>);

impl Model {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn make(&self, qid: u16) -> pair::RingPair {
        let mut state = self.state();
        assert!(state.is_enabled, "queues are made while it is enabled");
        state.made += 1;
        let number = state.made;
        state.rings.push((qid, number));
        drop(state);
        pair::RingPair::new(self.clone(), number)
    }

    /// The doorbell of a queue, by whoever believes to have its rings.
    fn ring(&self, qid: u16, number: u32, tags: &[Tag]) {
        let mut state = self.state();
        let known = state.rings.iter().find(|(of, _)| *of == qid);
        // One that is disabled, or has no such queue, ignores it.
        let Some((_, known)) = known.copied().filter(|_| state.is_enabled) else {
            return;
        };
        assert_eq!(known, number, "the doorbell of old rings reaches new ones");
        if state.broken.contains(&number) {
            return state.violations.push(number);
        }
        state
            .completed
            .extend(tags.iter().map(|tag| (number, *tag)));
    }

    /// What has completed on some rings; `Err`: nonsense.
    fn poll(&self, number: u32) -> Result<Vec<Tag>, ()> {
        let mut state = self.state();
        if state.violations.contains(&number) {
            return Err(());
        }
        let (ours, others) = state.completed.drain(..).partition(|(of, _)| *of == number);
        let ours: Vec<(u32, Tag)> = ours;
        state.completed = others;
        Ok(ours.into_iter().map(|(_, tag)| tag).collect())
    }
}

pub(crate) mod bus {
    pub(crate) use zonelab_driver::pcie::Registers;

    /// What the files that are tried need of a function.
    pub(crate) trait Function: Clone + core::fmt::Debug {
        fn is_gone(&self) -> bool;
    }

    impl Function for super::Model {
        fn is_gone(&self) -> bool {
            false
        }
    }
}

pub(crate) mod dma {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, AtomicU64};

    /// Memory of a device, as words of either width.
    #[derive(Clone, Debug)]
    pub(crate) struct DmaRegion {
        words: Arc<Vec<AtomicU64>>,
        dwords: Arc<Vec<AtomicU32>>,
    }

    impl DmaRegion {
        pub(crate) fn of_words(count: usize) -> Self {
            Self {
                words: Arc::new((0..count).map(|_| AtomicU64::new(0)).collect()),
                dwords: Arc::new(Vec::new()),
            }
        }

        pub(crate) fn of_dwords(count: usize) -> Self {
            Self {
                words: Arc::new(Vec::new()),
                dwords: Arc::new((0..count).map(|_| AtomicU32::new(0)).collect()),
            }
        }

        pub(crate) fn words(&self) -> &[AtomicU64] {
            &self.words
        }

        pub(crate) fn dwords(&self) -> &[AtomicU32] {
            &self.dwords
        }

        pub(crate) fn bytes(&self) -> usize {
            8 * self.words.len()
        }

        pub(crate) fn leak(&self) {}
    }
}

pub(crate) mod pair {
    use core::cell::Cell;

    use super::Model;

    /// Rings, which may be freed when the device does not know them any more.
    #[derive(Debug)]
    pub(crate) struct RingPair {
        device: Model,
        pub(crate) number: u32,
        is_kept: Cell<bool>,
    }

    impl RingPair {
        pub(super) const fn new(device: Model, number: u32) -> Self {
            Self {
                device,
                number,
                is_kept: Cell::new(false),
            }
        }

        pub(crate) fn leak(&self) {
            self.is_kept.set(true);
        }
    }

    impl Drop for RingPair {
        fn drop(&mut self) {
            if self.is_kept.get() || std::thread::panicking() {
                return;
            }
            let state = self.device.state();
            let is_known = state.rings.iter().any(|(_, of)| *of == self.number);
            assert!(!is_known, "rings are freed that the device knows");
        }
    }
}

pub(crate) mod queue {
    use zonelab_device::{
        Buf, Command, Completion, DeviceInfo, Found, Nanos, QueueId, QueuePair, RejectReason,
        Rejected, Tag,
    };
    use zonelab_driver::Reply;
    use zonelab_driver::pcie::{PcieError, Violation};
    use zonelab_driver::tcp::Transfer;
    use zonelab_nvme::Status;
    use zonelab_nvme::queue::SubmissionEntry;

    use super::{Model, pair};

    const DEPTH: u16 = 4;

    /// None: the commands of the model end at once, or never.
    #[derive(Copy, Clone, Debug)]
    pub(crate) struct Late {
        pub(crate) cid: u16,
        pub(crate) is_aborted: bool,
    }

    #[derive(Copy, Clone, Debug, Default)]
    pub(crate) struct Counts {
        pub(crate) completions: u64,
    }

    /// What `PcieQueue` is to its owner, without rings of its own.
    #[derive(Debug)]
    pub(crate) struct PcieQueue<F> {
        device: Model,
        id: QueueId,
        info: DeviceInfo,
        rings: pair::RingPair,
        in_flight: Vec<(Tag, Option<Buf>)>,
        unrung: Vec<Tag>,
        local: Vec<Completion>,
        error: Option<PcieError>,
        counts: Counts,
        function: core::marker::PhantomData<F>,
    }

    impl<F> PcieQueue<F> {
        pub(super) fn new(device: Model, qid: u16) -> Self {
            Self {
                rings: device.make(qid),
                device,
                id: QueueId(qid),
                info: DeviceInfo {
                    model: String::new(),
                    namespaces: Vec::new(),
                    max_transfer_bytes: 0,
                    max_append_bytes: 0,
                    has_volatile_cache: false,
                },
                in_flight: Vec::new(),
                unrung: Vec::new(),
                local: Vec::new(),
                error: None,
                counts: Counts::default(),
                function: core::marker::PhantomData,
            }
        }

        pub(crate) const fn id(&self) -> QueueId {
            self.id
        }

        pub(crate) const fn depth(&self) -> u16 {
            DEPTH
        }

        pub(crate) fn in_flight(&self) -> usize {
            self.in_flight.len()
        }

        pub(crate) const fn counts(&self) -> Counts {
            self.counts
        }

        pub(crate) const fn error(&self) -> Option<&PcieError> {
            self.error.as_ref()
        }

        pub(crate) fn take_error(&mut self) -> Option<PcieError> {
            let error = self.error.as_mut()?;
            Some(core::mem::replace(error, PcieError::Gone))
        }

        pub(crate) fn fail(&mut self, error: PcieError) {
            self.error.get_or_insert(error);
        }

        pub(crate) const fn last_look(&self) -> Nanos {
            Nanos::ZERO
        }

        pub(crate) const fn timeout(&self) -> Nanos {
            Nanos::MAX
        }

        pub(crate) fn next_deadline(&self) -> Option<Nanos> {
            let is_idle = self.in_flight.is_empty() && self.local.is_empty();
            (!is_idle).then_some(Nanos::MAX)
        }

        pub(crate) const fn late(&mut self, _: Nanos) -> Option<Late> {
            None
        }

        pub(crate) const fn aborting(&mut self, _: Late) {}

        pub(crate) fn give_up(&mut self, status: Status) {
            self.unrung.clear();
            for (tag, data) in core::mem::take(&mut self.in_flight) {
                self.complete_locally(tag, status, data);
            }
        }

        pub(crate) fn complete_locally(&mut self, tag: Tag, status: Status, data: Option<Buf>) {
            self.local.push(Completion {
                queue: self.id,
                tag,
                status,
                at: Nanos::ZERO,
                result: 0,
                found: Found::Unknown,
                data,
            });
        }

        pub(crate) fn restart(&mut self, rings: pair::RingPair) {
            assert!(self.in_flight.is_empty(), "everything was given up");
            self.rings = rings;
            self.error = None;
        }

        pub(crate) fn passthrough(
            &mut self,
            _: SubmissionEntry,
            _: Transfer,
        ) -> Result<Reply, PcieError> {
            Err(PcieError::Gone)
        }
    }

    impl<F> QueuePair for PcieQueue<F> {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn now(&self) -> Nanos {
            Nanos::ZERO
        }

        fn submit(&mut self, _: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
            let reason = match self.error {
                Some(_) => RejectReason::Disconnected,
                None if self.in_flight.len() < DEPTH.into() => {
                    self.in_flight.push((tag, data));
                    self.unrung.push(tag);
                    return Ok(());
                }
                None => RejectReason::QueueFull {
                    queue: self.id,
                    depth: DEPTH.into(),
                },
            };
            Err(Rejected { reason, data })
        }

        fn ring(&mut self) {
            if self.error.is_none() && !self.unrung.is_empty() {
                let tags = core::mem::take(&mut self.unrung);
                self.device.ring(self.id.0, self.rings.number, &tags);
            }
        }

        fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
            let before = done.len();
            match self.device.poll(self.rings.number) {
                _ if self.error.is_some() => {}
                Err(()) => self.fail(Violation::NotInFlight { cid: 0 }.into()),
                Ok(tags) => {
                    for tag in tags {
                        let at = self.in_flight.iter().position(|(of, _)| *of == tag);
                        let (tag, data) = self.in_flight.remove(at.unwrap());
                        self.counts.completions += 1;
                        self.complete_locally(tag, Status::SUCCESS, data);
                    }
                }
            }
            done.append(&mut self.local);
            done.len() - before
        }
    }

    impl<F> Drop for PcieQueue<F> {
        fn drop(&mut self) {
            self.rings.leak();
        }
    }
}

pub(crate) mod controller {
    use zonelab_driver::DriverError;

    use super::{Model, pair, queue};

    /// What `PcieController` is to recovery.
    #[derive(Debug)]
    pub(crate) struct PcieController<F> {
        device: Model,
        function: F,
        opened: u16,
    }

    impl PcieController<Model> {
        pub(crate) fn new(device: Model) -> Self {
            device.state().is_enabled = true;
            Self {
                function: device.clone(),
                device,
                opened: 0,
            }
        }
    }

    impl<F> PcieController<F> {
        pub(crate) const fn function(&self) -> &F {
            &self.function
        }

        pub(crate) fn open_queue(&mut self) -> Result<queue::PcieQueue<F>, DriverError> {
            self.opened += 1;
            Ok(queue::PcieQueue::new(self.device.clone(), self.opened))
        }

        pub(crate) fn make_rings(&mut self, qid: u16) -> Result<pair::RingPair, DriverError> {
            Ok(self.device.make(qid))
        }

        pub(crate) fn pump(&mut self) -> Result<(), DriverError> {
            Ok(())
        }

        pub(crate) fn check(&self) -> Result<(), DriverError> {
            Ok(())
        }

        pub(crate) fn abort(&mut self, _: u16, _: u16) {}

        pub(crate) fn stop(&mut self) -> Result<(), DriverError> {
            let mut state = self.device.state();
            state.is_enabled = false;
            state.rings.clear();
            Ok(())
        }

        pub(crate) fn start_again(&mut self) -> Result<(), DriverError> {
            self.device.state().is_enabled = true;
            Ok(())
        }

        pub(crate) fn shut_down(self) -> Result<(), DriverError> {
            Ok(())
        }
    }
}
