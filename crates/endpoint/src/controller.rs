//! The controller behind the registers: `target`'s subsystem, and rings in memory.
//!
//! The subsystem knows fabrics: queues are made by Connect, properties are got and set
//! by commands, data has SGLs. What differs on PCIe is here: registers become those
//! commands, commands that make queues become Connect, and PRPs and SGLs are followed.

mod admin;
mod io;

use zonelab_device::Nanos;
use zonelab_driver::pcie::memory::Window;
use zonelab_driver::pcie::{HostMemory, Interrupt};
use zonelab_nvme::fabrics::{
    CNTLID_DYNAMIC, Connect, ConnectData, ConnectResponse, PropertyGet, PropertySet,
};
use zonelab_nvme::identify::Nqn;
use zonelab_nvme::property::{
    AdminQueueAttributes, Capabilities, Configuration, ControllerStatus, Property, ReadyTimeouts,
};
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};
use zonelab_nvme::zerocopy::FromZeros;
use zonelab_target::controller::{Done, QueueHandle, Subsystem};

use crate::endpoint::EndpointSettings;
use crate::fault::{Faults, Stuck};
use crate::queues::{CompletionQueue, SubmissionQueue};
use crate::registers::{Doorbell, Registers, doorbell, half, with_half};

/// Identifier of commands that the endpoint sends for itself: hosts may not use it.
const OWN_CID: u16 = 0xffff;

/// Who the host is, for the subsystem. It may say its identifier with a feature.
const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001";

/// Words of shadow doorbells and event indexes.
#[derive(Debug)]
pub(super) struct Shadows {
    shadow: Window,
    event_index: Window,
}

/// A controller with its registers and queues.
#[derive(Debug)]
pub(crate) struct Controller {
    subsystem: Subsystem,
    settings: EndpointSettings,
    memory: HostMemory,
    registers: Registers,
    /// By queue identifier; 0 is the admin queue.
    submission: Vec<Option<SubmissionQueue>>,
    completion: Vec<Option<CompletionQueue>>,
    shadows: Option<Shadows>,
    cntlid: u16,
    /// When RDY has its value.
    settled_at: Nanos,
    is_fatal: bool,
    is_removed: bool,
    pub(crate) stuck: Option<Stuck>,
    pub(crate) faults: Faults,
    pub(crate) bad_doorbells: u64,
    pub(crate) sgl_commands: u64,
    /// Submission queues whose doorbells were rung since it last looked, in that order.
    rung: Vec<u16>,
    /// Submission queues of what was completed since somebody last asked, in that order.
    served: Vec<u16>,
    /// What its vectors signal.
    pub(crate) interrupts: Vec<Option<Interrupt>>,
    /// Scratch for what the subsystem completes.
    done: Vec<Done>,
    closed: Vec<QueueHandle>,
}

impl Controller {
    pub(crate) fn new(
        subsystem: Subsystem,
        settings: EndpointSettings,
        memory: HostMemory,
    ) -> Self {
        let queues = usize::from(settings.io_queues) + 1;
        Self {
            subsystem,
            settings,
            memory,
            registers: Registers::default(),
            submission: (0..queues).map(|_| None).collect(),
            completion: (0..queues).map(|_| None).collect(),
            shadows: None,
            cntlid: 0,
            settled_at: Nanos::ZERO,
            is_fatal: false,
            is_removed: false,
            stuck: None,
            faults: Faults::default(),
            bad_doorbells: 0,
            sgl_commands: 0,
            rung: Vec::new(),
            served: Vec::new(),
            interrupts: Vec::new(),
            done: Vec::new(),
            closed: Vec::new(),
        }
    }

    pub(crate) const fn settings(&self) -> &EndpointSettings {
        &self.settings
    }

    pub(crate) const fn subsystem_mut(&mut self) -> &mut Subsystem {
        &mut self.subsystem
    }

    /// The device is pulled out: what it has begun ends unseen.
    pub(crate) fn remove(&mut self) {
        self.is_removed = true;
        self.submission.fill_with(|| None);
        self.completion.fill_with(|| None);
        self.shadows = None;
    }

    /// The controller gives up until it is reset.
    pub(crate) fn fail(&mut self) {
        self.is_fatal = true;
    }

    /// Where the rings of queue `qid` are, and their entries.
    pub(crate) fn rings(&self, qid: u16) -> Option<[(Window, u32); 2]> {
        let place = usize::from(qid);
        let submission = self.submission.get(place)?.as_ref()?;
        let completion = self.completion.get(place)?.as_ref()?;
        Some([submission.place(), completion.place()])
    }

    /// Whether it takes and completes commands.
    fn works(&self) -> bool {
        !self.is_removed && !self.is_fatal && self.submission[0].is_some()
    }

    /// Loads a register. Bytes that are no register are zero.
    pub(crate) fn read(&mut self, now: Nanos, offset: u64) -> u32 {
        if self.is_removed {
            return u32::MAX;
        }
        let part = offset % 8;
        let property = |property: Property| u64::from(property.0);
        match offset & !7 {
            base if base == property(Property::CAP) => half(self.capabilities().bits(), part),
            base if base == property(Property::ASQ) => half(self.registers.asq, part),
            base if base == property(Property::ACQ) => half(self.registers.acq, part),
            _ => self.read_short(now, offset),
        }
    }

    fn read_short(&mut self, now: Nanos, offset: u64) -> u32 {
        match u32::try_from(offset).map(Property) {
            Ok(Property::VS) => 0x0002_0000,
            Ok(Property::CC) => self.registers.cc.bits(),
            Ok(Property::CSTS) => self.status(now).bits(),
            Ok(Property::AQA) => self.registers.aqa.bits(),
            Ok(Property::CRTO) => {
                let crwmt = self.settings.crto.unwrap_or(0);
                ReadyTimeouts::default().with_crwmt(crwmt).bits()
            }
            _ => 0,
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
            .with_mqes_z(self.settings.queue_entries - 1)
            .with_cqr(true)
            .with_to(self.settings.cap_to)
            .with_dstrd(self.settings.dstrd)
            .with_css_nvm(true)
            .with_css_io(true)
            .with_crwms(self.settings.crto.is_some())
    }

    fn status(&mut self, now: Nanos) -> ControllerStatus {
        let is_settled = now >= self.settled_at;
        let csts = match self.submission[0].is_some() {
            true => {
                let value = self.property(now, Property::CSTS);
                ControllerStatus::from_bits(value as u32)
            }
            false => ControllerStatus::default(),
        };
        let rdy = match self.stuck {
            Some(Stuck::NotReady) => false,
            Some(Stuck::Ready) => true,
            None if is_settled => csts.rdy(),
            // On its way to the other value.
            None => !self.registers.cc.en(),
        };
        csts.with_rdy(rdy).with_cfs(csts.cfs() || self.is_fatal)
    }

    /// Stores to a register or doorbell.
    pub(crate) fn write(&mut self, now: Nanos, offset: u64, value: u32) {
        if self.is_removed {
            return;
        }
        if let Some(doorbell) = doorbell(offset, self.settings.dstrd) {
            return self.ring(doorbell, value);
        }
        let registers = &mut self.registers;
        let part = offset % 8;
        match u32::try_from(offset & !3).map(Property) {
            Ok(Property::CC) => self.configure(now, Configuration::from_bits(value)),
            Ok(Property::AQA) => registers.aqa = AdminQueueAttributes::from_bits(value),
            Ok(Property(at)) if at & !7 == Property::ASQ.0 => {
                registers.asq = with_half(registers.asq, part, value);
            }
            Ok(Property(at)) if at & !7 == Property::ACQ.0 => {
                registers.acq = with_half(registers.acq, part, value);
            }
            _ => {}
        }
    }

    fn ring(&mut self, doorbell: Doorbell, value: u32) {
        let is_valid = match doorbell {
            Doorbell::SubmissionTail(qid) => {
                let queue = self.submission.get_mut(usize::from(qid));
                let queue = queue.and_then(Option::as_mut);
                let is_valid = queue.is_some_and(|queue| queue.ring(value));
                if is_valid && !self.rung.contains(&qid) {
                    self.rung.push(qid);
                }
                is_valid
            }
            Doorbell::CompletionHead(qid) => self.ring_completion(qid.into(), value),
        };
        self.bad_doorbells += u64::from(!is_valid);
    }

    /// The head of a completion queue moves. False: there is no such queue or entry.
    fn ring_completion(&mut self, qid: usize, head: u32) -> bool {
        let Some(queue) = self.completion.get_mut(qid).and_then(Option::as_mut) else {
            return false;
        };
        let before = queue.posted();
        let is_valid = queue.ring(head);
        self.signal(qid, before);
        is_valid
    }

    /// Signals the vector of a completion queue, if more was posted to it than `before`.
    fn signal(&self, cqid: usize, before: u64) {
        let queue = self.completion.get(cqid).and_then(Option::as_ref);
        let vector = queue
            .filter(|queue| queue.posted() > before)
            .and_then(CompletionQueue::vector);
        let interrupt = vector.and_then(|vector| self.interrupts.get(usize::from(vector)));
        if let Some(Some(interrupt)) = interrupt {
            interrupt.signal();
        }
    }

    /// CC was written.
    fn configure(&mut self, now: Nanos, cc: Configuration) {
        let old = core::mem::replace(&mut self.registers.cc, cc);
        if old.en() && !cc.en() {
            self.disable(now);
        } else if !old.en() && cc.en() {
            self.enable(now);
        } else if self.submission[0].is_some() {
            self.set_configuration(now, cc);
        }
    }

    /// All queues end, and nothing accesses memory any more.
    fn disable(&mut self, now: Nanos) {
        if let Some(admin) = &self.submission[0] {
            self.subsystem.disconnect(now, admin.handle);
        }
        self.submission.fill_with(|| None);
        self.completion.fill_with(|| None);
        self.shadows = None;
        self.is_fatal = false;
        self.settled_at = now.saturating_add(self.settings.ready_after);
        self.collect(now);
    }

    fn enable(&mut self, now: Nanos) {
        self.settled_at = now.saturating_add(self.settings.ready_after);
        if self.start(now).is_none() {
            self.is_fatal = true;
        }
    }

    /// Makes the admin queue; `None`: what the host has written makes none.
    fn start(&mut self, now: Nanos) -> Option<()> {
        let Registers { aqa, asq, acq, cc } = self.registers;
        let entries = u32::from(aqa.asqs_z()) + 1;
        let submission = self.ring_window(asq, entries, size_of::<SubmissionEntry>())?;
        let completions = u32::from(aqa.acqs_z()) + 1;
        let completion = self.ring_window(acq, completions, size_of::<CompletionEntry>())?;
        let (handle, cntlid) = self.connect(now, 0, entries).ok()?;
        self.cntlid = cntlid;
        self.submission[0] = Some(SubmissionQueue::new((0, 0), handle, submission, entries));
        let vector = Some(0);
        self.completion[0] = Some(CompletionQueue::new(completion, completions, vector));
        self.set_configuration(now, cc);
        Some(())
    }

    /// Memory of a ring, if it begins a page and is mapped.
    fn ring_window(&self, iova: u64, entries: u32, entry_bytes: usize) -> Option<Window> {
        let is_aligned = iova.is_multiple_of(crate::prp::PAGE_BYTES);
        let bytes = entries as usize * entry_bytes;
        self.memory.window(iova, bytes).ok().filter(|_| is_aligned)
    }

    /// Makes a queue of the subsystem. The queue, and the controller that it is of.
    fn connect(
        &mut self,
        now: Nanos,
        qid: u16,
        entries: u32,
    ) -> Result<(QueueHandle, u16), CompletionEntry> {
        let mut data = ConnectData::new_zeroed();
        data.cntlid = if qid == 0 {
            CNTLID_DYNAMIC
        } else {
            self.cntlid
        }
        .into();
        data.subnqn = Nqn::new(&self.subsystem.settings().nqn).unwrap_or(data.subnqn);
        data.hostnqn = Nqn::new(HOST_NQN).unwrap_or(data.hostnqn);
        let connect = Connect::new(qid, entries);
        let entry = connect.to_entry().unwrap_or_default();
        let made = self.subsystem.connect(now, (&entry, &connect), &data)?;
        let response = ConnectResponse::from_dword0(made.completion.dw0);
        Ok((made.queue, response.cntlid.get()))
    }

    fn set_configuration(&mut self, now: Nanos, cc: Configuration) {
        let set = PropertySet::new(Property::CC, cc.bits().into());
        if let Ok(entry) = set.to_entry() {
            self.own_command(now, entry);
        }
    }

    fn property(&mut self, now: Nanos, property: Property) -> u64 {
        let entry = PropertyGet::new(property).to_entry();
        let answer = entry.ok().and_then(|entry| self.own_command(now, entry));
        answer.map_or(0, |entry| entry.result())
    }

    /// A command of the endpoint itself, which ends at once.
    fn own_command(&mut self, now: Nanos, entry: SubmissionEntry) -> Option<CompletionEntry> {
        let handle = self.submission[0].as_ref()?.handle;
        let entry = entry.with_cid(OWN_CID);
        self.subsystem.submit(now, handle, &entry, None, 0);
        self.collect(now)
    }

    /// When something happens next.
    pub(crate) fn next_event(&self, now: Nanos) -> Option<Nanos> {
        if self.is_removed {
            return None;
        }
        let has_work = self.works()
            && (self.submission.iter().flatten())
                .any(|queue| queue.has_work() || self.is_rung(queue));
        if has_work {
            return Some(now);
        }
        let settles = (now < self.settled_at).then_some(self.settled_at);
        [self.subsystem.next_event(), settles]
            .into_iter()
            .flatten()
            .min()
    }

    /// Brings everything to `now`.
    pub(crate) fn advance(&mut self, now: Nanos) {
        if self.is_removed {
            return;
        }
        self.collect(now);
        if !self.works() {
            return;
        }
        // Those that rang first are served first, and then those with shadow doorbells.
        let mut rung = core::mem::take(&mut self.rung);
        let in_order = rung.drain(..).map(usize::from);
        for qid in in_order.chain(0..self.submission.len()) {
            self.look_at_shadow(qid);
            while let Some(entry) = self.fetch(qid) {
                self.command(now, qid, entry);
            }
        }
        self.rung = rung;
        self.collect(now);
    }

    /// The submission queues of what was completed since the last call, in that order.
    pub(crate) fn take_served(&mut self, served: &mut Vec<u16>) {
        served.append(&mut self.served);
    }

    fn fetch(&mut self, qid: usize) -> Option<SubmissionEntry> {
        let works = self.works();
        let queue = self.submission.get_mut(qid).and_then(Option::as_mut);
        queue.filter(|_| works)?.fetch()
    }

    /// Takes from the subsystem what it has done by `now`. Returns the completion of
    /// the endpoint's own command, if one ended.
    fn collect(&mut self, now: Nanos) -> Option<CompletionEntry> {
        let mut own = None;
        let mut done = core::mem::take(&mut self.done);
        let mut closed = core::mem::take(&mut self.closed);
        self.subsystem.advance(now, &mut done, &mut closed);
        for done in done.drain(..) {
            if let Some(buf) = done.spent {
                self.subsystem.recycle(buf);
            }
            let queue = self
                .submission
                .iter()
                .flatten()
                .find(|of| of.handle == done.queue);
            let qid = queue.map(|queue| usize::from(queue.qid));
            match qid {
                Some(0) if done.entry.cid.get() == OWN_CID => own = Some(done.entry),
                Some(qid) => self.complete(qid, done.entry, done.data),
                None => {}
            }
        }
        for handle in closed.drain(..) {
            self.closed_by_subsystem(now, handle);
        }
        self.done = done;
        self.closed = closed;
        own
    }

    /// The subsystem has ended a queue: its admin queue by a loss of power, others when
    /// it gave up or was shut down.
    fn closed_by_subsystem(&mut self, now: Nanos, handle: QueueHandle) {
        self.subsystem.disconnect(now, handle);
        let is_admin = self.submission[0]
            .as_ref()
            .is_some_and(|of| of.handle == handle);
        if is_admin {
            self.is_fatal = true;
            self.submission.fill_with(|| None);
        }
    }
}
