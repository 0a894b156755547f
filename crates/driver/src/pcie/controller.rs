//! A controller on PCIe: bring-up, its admin queue, and the way to its I/O queues.

use std::sync::Arc;

use zonelab_device::{Buf, DeviceInfo, NamespaceId};
use zonelab_nvme::command::{
    CreateIoCompletionQueue, CreateIoSubmissionQueue, DeleteIoQueue, DoorbellBufferConfig,
    Identify, SetFeatures,
};
use zonelab_nvme::feature::{
    AsyncEventConfiguration, CommandSetProfile, FeatureId, NumberOfQueues,
};
use zonelab_nvme::identify::{
    Cns, CommandSet, CommandSetCombinations, ControllerType, IdentifyController,
};
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::zerocopy::FromBytes;

use super::admin::{self, Admin, Event};
use super::bringup::Bringup;
use super::bus::Function;
use super::dma::{DmaBuf, DmaRegion, PAGE_BYTES};
use super::doorbell::ShadowBuffers;
use super::error::PcieError;
use super::ids::MAX_SLOTS;
use super::interrupt::Interrupt;
use super::options::{Access, PcieOptions};
use super::pair::{PairSettings, RingPair};
use super::queue::PcieQueue;
use crate::error::DriverError;
use crate::identity::Identity;
use crate::inquiry::{Asks, IDENTIFY_BYTES, identity, zone_capacity};
use crate::socket::Reply;
use crate::tcp::Transfer;

/// Event requests that are kept outstanding, if the controller takes so many.
const EVENT_REQUESTS: u8 = 4;

/// A controller on PCIe with its admin queue.
///
/// The calls wait for their ends. When it is dropped it is disabled, so that it does
/// not access memory that is used for something else by then.
#[derive(Debug)]
pub struct PcieController<F: Function> {
    bringup: Bringup<F>,
    options: PcieOptions,
    admin: Admin<F>,
    shadows: Option<ShadowBuffers>,
    identity: Identity,
    info: Arc<DeviceInfo>,
    /// The queue on which zone capacities were read, until it is asked for.
    first_queue: Option<PcieQueue<F>>,
    granted: u16,
    opened: u16,
    /// Numbers of queues that were opened and closed.
    closed: Vec<u16>,
    access: Access,
    /// By queue; none, if queues are polled.
    interrupts: Vec<Option<Interrupt>>,
}

/// The admin queue while the controller is not known yet.
struct Starting<'a, F: Function> {
    admin: &'a mut Admin<F>,
    options: &'a PcieOptions,
}

impl<F: Function> Starting<'_, F> {
    fn call(
        &mut self,
        what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        let timeout = self.options.command_timeout;
        self.admin.call(entry, transfer, timeout)?.ok(what)
    }

    fn set_feature(
        &mut self,
        what: &'static str,
        fid: FeatureId,
        value: u32,
    ) -> Result<u32, DriverError> {
        let entry = SetFeatures::new(0, fid, value).to_entry()?;
        Ok(self.call(what, entry, Transfer::None)?.entry.dw0.get())
    }

    /// Lets the controller use the NVM command set, and the zoned one with it if that
    /// goes together.
    fn select_command_sets(&mut self) -> Result<(), DriverError> {
        let every = u16::MAX;
        let identify = Identify {
            cntid: every,
            ..Identify::new(0, Cns::COMMAND_SETS, CommandSet::NVM)
        };
        let transfer = Transfer::ToHost(Buf::zeroed(IDENTIFY_BYTES));
        let reply = self.call("Identify, command sets", identify.to_entry()?, transfer)?;
        let buf = reply.data.unwrap_or_else(|| Buf::zeroed(IDENTIFY_BYTES));
        let Ok(combinations) = CommandSetCombinations::read_from_bytes(&buf) else {
            return Ok(());
        };
        let position = |zns: bool| {
            let mut vectors = combinations.vectors.iter();
            vectors.position(|vector| vector.nvm() && vector.zns() == zns)
        };
        let Some(index) = position(true).or_else(|| position(false)) else {
            return Err(DriverError::Unusable {
                field: "in its combinations of command sets the number with NVM",
                value: 0,
                needs: "at least 1",
            });
        };
        // Fits: there are 512.
        let profile = CommandSetProfile::default().with_iocsci(index as u16);
        let fid = FeatureId::COMMAND_SET_PROFILE;
        self.set_feature("Set Features, command set profile", fid, profile.bits())?;
        Ok(())
    }

    /// Asks for I/O queues, and returns how many there are.
    fn queues(&mut self, wanted: u16) -> Result<u16, DriverError> {
        let wanted = wanted.clamp(1, u16::MAX - 1);
        let value = NumberOfQueues::default()
            .with_nsq_z(wanted - 1)
            .with_ncq_z(wanted - 1);
        let fid = FeatureId::NUMBER_OF_QUEUES;
        let granted = self.set_feature("Set Features, number of queues", fid, value.bits())?;
        let granted = NumberOfQueues::from_bits(granted);
        let granted = granted.nsq_z().min(granted.ncq_z());
        Ok(granted.saturating_add(1).min(wanted))
    }

    /// Asks to be told of what the controller has to tell.
    fn watch(&mut self, controller: &IdentifyController) -> Result<(), DriverError> {
        let events = AsyncEventConfiguration::default()
            .with_smart(0x1f)
            .with_optional(controller.oaes);
        let fid = FeatureId::ASYNC_EVENT_CONFIGURATION;
        self.set_feature("Set Features, events", fid, events.bits())?;
        for _ in 0..controller.aerl_z.saturating_add(1).min(EVENT_REQUESTS) {
            self.admin.request_event();
        }
        Ok(())
    }
}

impl<F: Function> Asks for Starting<'_, F> {
    fn ask(
        &mut self,
        _: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        self.admin
            .call(entry, transfer, self.options.command_timeout)
    }
}

impl<F: Function> PcieController<F> {
    /// Resets the controller of a function, enables it, and asks it what it is.
    ///
    /// A controller with zoned namespaces gets its first I/O queue here, since only a
    /// zone report says what the capacity of a zone is.
    ///
    /// # Errors
    /// [`DriverError`]: it is gone, does not start, or is not what it should be.
    pub fn connect(function: F, options: PcieOptions) -> Result<Self, DriverError> {
        let access = Access::none();
        let bringup = Bringup::new(function.clone(), access.clone())?;
        // It may be in use from before, by memory that is nobody's any more.
        bringup.disable()?;
        bringup.function.let_access_memory()?;
        let settings = admin_settings(&bringup, &options, None);
        let admin = Admin::new(function, &settings, access.clone()).map_err(PcieError::from)?;
        let mut starting = Unfinished { bringup, admin };
        let started = starting.start(&options)?;
        let Unfinished { bringup, admin } = starting;
        let mut controller = Self {
            granted: started.granted.min(bringup.last_queue()),
            interrupts: Vec::new(),
            bringup,
            options,
            admin,
            shadows: started.shadows,
            identity: started.identity,
            info: Arc::new(started.info),
            first_queue: None,
            opened: 0,
            closed: Vec::new(),
            access,
        };
        if controller.options.has_interrupts {
            controller.connect_interrupts()?;
        }
        controller.read_zone_capacities()?;
        Ok(controller)
    }

    /// Gives each I/O queue an interrupt vector. There are at most as many queues then as
    /// there are vectors besides the admin queue's, which whoever waits for it polls.
    fn connect_interrupts(&mut self) -> Result<(), DriverError> {
        let function = &self.bringup.function;
        let vectors = function.interrupt_vectors();
        if vectors < 2 {
            return Err(PcieError::NoInterrupts { vectors }.into());
        }
        self.granted = self.granted.min(vectors - 1);
        let mut interrupts = vec![None];
        for _ in 0..self.granted {
            interrupts.push(Some(Interrupt::new()?));
        }
        let connected = function.connect_interrupts(&interrupts);
        connected.map_err(PcieError::Interrupts)?;
        self.interrupts = interrupts;
        Ok(())
    }

    /// Asks for the capacity of a zone of each zoned namespace.
    fn read_zone_capacities(&mut self) -> Result<(), DriverError> {
        let is_zoned = |ns: &crate::Namespace| ns.zns.is_some();
        if !self.identity.namespaces.iter().any(is_zoned) {
            return Ok(());
        }
        let mut queue = self.make_queue(1)?;
        for namespace in self
            .identity
            .namespaces
            .iter_mut()
            .filter(|ns| is_zoned(ns))
        {
            namespace.zone_capacity_lbas = zone_capacity(&mut queue, namespace.nsid)?;
        }
        let mut info = self.identity.device_info()?;
        limit_transfers(&mut info, &self.options);
        self.info = Arc::new(info);
        queue.set_info(Arc::clone(&self.info));
        self.first_queue = Some(queue);
        Ok(())
    }

    /// Queues that are opened from now on are for this namespace alone: they show no other,
    /// and take commands for no other.
    pub fn confine(&mut self, nsid: NamespaceId) {
        self.info = Arc::new(self.info.only(nsid));
        if let Some(queue) = &mut self.first_queue {
            queue.set_info(Arc::clone(&self.info));
        }
    }

    /// What workloads plan with.
    #[must_use]
    pub const fn info(&self) -> &Arc<DeviceInfo> {
        &self.info
    }

    /// What the controller says of itself.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The function that it is on.
    #[must_use]
    pub const fn function(&self) -> &F {
        &self.bringup.function
    }

    /// How it is used.
    #[must_use]
    pub const fn options(&self) -> &PcieOptions {
        &self.options
    }

    /// I/O queues that the controller grants.
    #[must_use]
    pub const fn granted_queues(&self) -> u16 {
        self.granted
    }

    /// Whether doorbells have shadows in memory.
    #[must_use]
    pub const fn has_shadow_doorbells(&self) -> bool {
        self.shadows.is_some()
    }

    /// A buffer of `bytes` zeros that the device accesses itself: its queues need not
    /// copy it.
    ///
    /// # Errors
    /// No memory.
    pub fn buffer(&self, bytes: usize) -> Result<Buf, PcieError> {
        let region = self.bringup.function.allocate(bytes)?;
        Ok(DmaBuf::new(region, bytes).into_buf())
    }

    /// Sends any admin command and waits for its end. Its identifier is filled in, and
    /// its data pointer if it has data. The status is the caller's to look at.
    ///
    /// # Errors
    /// The command is not over in time, or the device is gone.
    pub fn admin(
        &mut self,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        let timeout = self.options.command_timeout;
        self.admin.call(entry, transfer, timeout)
    }

    /// The oldest asynchronous event that was not taken.
    pub fn take_event(&mut self) -> Option<Event> {
        self.admin.take_event()
    }

    /// Looks at the admin queue. Does not wait.
    pub(crate) fn pump(&mut self) -> Result<(), PcieError> {
        self.admin.pump(None).map(drop)
    }

    /// Asks for a command to be aborted.
    pub(crate) fn abort(&mut self, sqid: u16, cid: u16) {
        self.admin.abort(sqid, cid);
    }

    /// Whether the controller is there and works.
    ///
    /// # Errors
    /// It is gone, or reports a fatal error.
    pub fn check(&self) -> Result<(), DriverError> {
        match self.bringup.status()?.cfs() {
            true => Err(DriverError::ControllerFatal),
            false => Ok(()),
        }
    }

    /// Opens the next I/O queue.
    ///
    /// # Errors
    /// The controller grants no more, or refuses.
    pub fn open_queue(&mut self) -> Result<PcieQueue<F>, DriverError> {
        if let Some(qid) = self.closed.pop() {
            return self.make_queue(qid).inspect_err(|_| self.closed.push(qid));
        }
        if self.opened >= self.granted {
            return Err(DriverError::Unusable {
                field: "the number of I/O queues",
                value: self.granted.into(),
                needs: "one more",
            });
        }
        let qid = self.opened + 1;
        let queue = match self.first_queue.take() {
            Some(queue) => queue,
            None => self.make_queue(qid)?,
        };
        self.opened = qid;
        Ok(queue)
    }

    /// Deletes an I/O queue. Commands that are in flight end unseen.
    ///
    /// # Errors
    /// The controller refuses, or is gone. The queue's memory is not used again then.
    pub fn close_queue(&mut self, mut queue: PcieQueue<F>) -> Result<(), DriverError> {
        self.delete_queue(&queue)?;
        queue.is_deleted();
        self.closed.push(queue.id().0);
        Ok(())
    }

    fn make_queue(&mut self, qid: u16) -> Result<PcieQueue<F>, DriverError> {
        let pair = self.make_rings(qid)?;
        let function = self.bringup.function.clone();
        let (info, access) = (Arc::clone(&self.info), self.access.clone());
        let timeout = self.options.command_timeout;
        let interrupt = self.interrupts.get(usize::from(qid)).cloned().flatten();
        let has_sgls = self.options.has_sgls && self.identity.controller.sgls.support() != 0;
        let ways = (interrupt, has_sgls);
        let queue = PcieQueue::new(function, pair, info, (qid, timeout), access, ways);
        Ok(queue.map_err(PcieError::from)?)
    }

    /// Rings that the controller knows as queue `qid`.
    pub(crate) fn make_rings(&mut self, qid: u16) -> Result<RingPair, DriverError> {
        let most = u32::from(self.bringup.cap.mqes_z()) + 1;
        let most = most.min(u32::from(MAX_SLOTS) + 1);
        let settings = PairSettings {
            qid,
            entries: self.options.queue_entries.clamp(2, most),
            has_generations: self.options.has_generations,
            stride: self.bringup.stride(),
            shadows: self.shadows.clone(),
        };
        let pair = RingPair::new(&self.bringup.function, &settings).map_err(PcieError::from)?;
        let (submission, completion) = pair.iovas();
        let create = CreateIoCompletionQueue {
            qid,
            entries: pair.entries(),
            prp1: completion,
            contiguous: true,
            // The vector of a queue has its number: 0 is the admin queue's.
            vector: (!self.interrupts.is_empty()).then_some(qid),
        };
        let made = self.create("Create I/O Completion Queue", create.to_entry()?);
        made.inspect_err(|error| self.keep_if_known(error, &pair))?;
        let create = CreateIoSubmissionQueue {
            qid,
            entries: pair.entries(),
            prp1: submission,
            contiguous: true,
            priority: 0,
            cqid: qid,
        };
        let made = self.create("Create I/O Submission Queue", create.to_entry()?);
        // The completion queue is there already.
        made.inspect_err(|_| pair.leak())?;
        Ok(pair)
    }

    fn create(&mut self, what: &'static str, entry: SubmissionEntry) -> Result<(), DriverError> {
        self.admin(entry, Transfer::None)?.ok(what).map(drop)
    }

    /// A command that was not refused may have been carried out.
    fn keep_if_known(&self, error: &DriverError, pair: &RingPair) {
        if !matches!(error, DriverError::Command { .. }) {
            pair.leak();
        }
    }

    /// Deletes the rings of a queue.
    fn delete_queue(&mut self, queue: &PcieQueue<F>) -> Result<(), DriverError> {
        let qid = queue.id().0;
        for is_submission in [true, false] {
            let what = match is_submission {
                true => "Delete I/O Submission Queue",
                false => "Delete I/O Completion Queue",
            };
            let delete = DeleteIoQueue { qid, is_submission };
            self.create(what, delete.to_entry())?;
        }
        Ok(())
    }

    /// Disables the controller: from then on it accesses no memory, and its I/O queues
    /// are not there any more.
    ///
    /// # Errors
    /// It does not stop, or is gone.
    pub(crate) fn stop(&mut self) -> Result<(), DriverError> {
        self.bringup.disable().map_err(|error| match error {
            DriverError::Pcie(PcieError::Gone) => error,
            error => PcieError::NotQuiet(Box::new(error)).into(),
        })
    }

    /// Enables the controller after [`Self::stop`]. It has no I/O queues.
    ///
    /// # Errors
    /// It does not start, or is gone.
    pub(crate) fn start_again(&mut self) -> Result<(), DriverError> {
        self.shadows = None;
        let settings = admin_settings(&self.bringup, &self.options, None);
        self.admin.restart(&settings).map_err(PcieError::from)?;
        let (rings, entries) = self.admin.place();
        self.bringup.enable(rings, entries)?;
        let mut starting = Starting {
            admin: &mut self.admin,
            options: &self.options,
        };
        if self.bringup.cap.css_io() {
            starting.select_command_sets()?;
        }
        let wanted = self.granted;
        starting.queues(wanted)?;
        starting.watch(&self.identity.controller)?;
        let controller = &self.identity.controller;
        self.shadows = shadow_doorbells(&self.bringup, &mut self.admin, &self.options, controller)?;
        // One that nobody has asked for is not there any more either.
        self.first_queue = None;
        Ok(())
    }

    /// Tells the controller that it will not be used any more, and disables it. All
    /// queues must be idle.
    ///
    /// # Errors
    /// It takes too long, or is gone.
    pub fn shut_down(self) -> Result<(), DriverError> {
        self.bringup.shut_down(self.options.shutdown_timeout)
        // Dropping it disables it.
    }
}

impl<F: Function> Drop for PcieController<F> {
    fn drop(&mut self) {
        if self.access.is_possible() {
            // If that fails, the memory that it knows of is kept.
            let _failed = self.bringup.disable();
        }
    }
}

/// What starting a controller brings.
struct Started {
    identity: Identity,
    info: DeviceInfo,
    shadows: Option<ShadowBuffers>,
    granted: u16,
}

/// A controller that is being started: disabled if that fails half-way.
struct Unfinished<F: Function> {
    bringup: Bringup<F>,
    admin: Admin<F>,
}

impl<F: Function> Unfinished<F> {
    fn start(&mut self, options: &PcieOptions) -> Result<Started, DriverError> {
        let started = self.try_start(options);
        if started.is_err() {
            // Why it failed says more than that this did, too.
            let _failed = self.bringup.disable();
        }
        started
    }

    fn try_start(&mut self, options: &PcieOptions) -> Result<Started, DriverError> {
        let (rings, entries) = self.admin.place();
        self.bringup.enable(rings, entries)?;
        let cap = self.bringup.cap;
        let admin = &mut self.admin;
        let mut starting = Starting { admin, options };
        if cap.css_io() {
            starting.select_command_sets()?;
        }
        let identity = identity(&mut starting, cap)?;
        let cntrltype = identity.controller.cntrltype;
        if cntrltype == ControllerType::DISCOVERY {
            return Err(DriverError::Unusable {
                field: "CNTRLTYPE",
                value: cntrltype.0.into(),
                needs: "1: an I/O controller",
            });
        }
        let granted = starting.queues(options.queues)?;
        starting.watch(&identity.controller)?;
        let controller = &identity.controller;
        let shadows = shadow_doorbells(&self.bringup, &mut self.admin, options, controller)?;
        let mut info = identity.device_info()?;
        limit_transfers(&mut info, options);
        Ok(Started {
            identity,
            info,
            shadows,
            granted,
        })
    }
}

/// How the admin queue is made.
fn admin_settings<F: Function>(
    bringup: &Bringup<F>,
    options: &PcieOptions,
    shadows: Option<ShadowBuffers>,
) -> PairSettings {
    let most = u32::from(bringup.cap.mqes_z()) + 1;
    PairSettings {
        qid: 0,
        entries: admin::ENTRIES.min(most),
        has_generations: options.has_generations,
        stride: bringup.stride(),
        shadows,
    }
}

/// Places the doorbells of I/O queues in memory, if that is wanted and possible. No I/O
/// queue is there yet; the admin queue keeps its registers.
fn shadow_doorbells<F: Function>(
    bringup: &Bringup<F>,
    admin: &mut Admin<F>,
    options: &PcieOptions,
    controller: &IdentifyController,
) -> Result<Option<ShadowBuffers>, DriverError> {
    if !options.has_shadow_doorbells || !controller.oacs.doorbell_buffer() {
        return Ok(None);
    }
    let page = || bringup.function.allocate(PAGE_BYTES);
    let shadow: DmaRegion = page().map_err(PcieError::from)?;
    let event_index = page().map_err(PcieError::from)?;
    let config = DoorbellBufferConfig {
        shadow: shadow.iova(),
        event_index: event_index.iova(),
    };
    let timeout = options.command_timeout;
    let reply = admin.call(config.to_entry(), Transfer::None, timeout)?;
    let buffers = ShadowBuffers {
        shadow: Arc::new(shadow),
        event_index: Arc::new(event_index),
    };
    // Whoever announces it and refuses it has registers all the same.
    Ok(reply.ok("Doorbell Buffer Config").ok().map(|_| buffers))
}

/// The smaller of the controller's limits and the driver's.
fn limit_transfers(info: &mut DeviceInfo, options: &PcieOptions) {
    let most = options.max_transfer_bytes.max(PAGE_BYTES as u32);
    info.max_transfer_bytes = info.max_transfer_bytes.min(most);
    info.max_append_bytes = info.max_append_bytes.min(info.max_transfer_bytes);
}
