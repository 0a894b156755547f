//! NVMe controllers over a drive, without a transport.
//!
//! A [`Subsystem`] is what a host connects to: a drive with its namespaces, and
//! a controller for each association. A transport turns what it receives into
//! submission queue entries and buffers, calls [`Subsystem::connect`] for the
//! Connect command of a new queue and [`Subsystem::submit`] for every other,
//! and sends what [`Subsystem::advance`] gives.
//!
//! # Life of a queue
//!
//! `connect` makes it. It ends when the transport says so with
//! [`Subsystem::disconnect`], or when the subsystem does, by naming it in
//! `closed`; the transport then closes the connection and calls `disconnect`
//! too. In between, commands on it are ignored and nothing completes. Its
//! number is used again only after `disconnect`, once nothing of it is in flight.
//!
//! # What is where
//!
//! | module | what |
//! | --- | --- |
//! | `settings`, `names` | what a subsystem is called; identifiers of namespaces |
//! | `authentication` | secrets of hosts, and the gate that they open |
//! | `connect` | the checks of Connect; disconnection |
//! | `properties` | CAP, CC, CSTS; enable, reset, shutdown, keep alive timer |
//! | `admission` | what a command must be before its data is asked for |
//! | `admin` | admin commands: dispatch, Abort, event requests, Keep Alive |
//! | `identify`, `logs`, `features`, `format` | the larger admin commands |
//! | `events` | what a controller has to tell its host |
//! | `hosts` | which host finds which namespaces, and may do what |
//! | `quality`, `turns` | how much of the drive a host gets; commands beyond that wait |
//! | [`activity`] | counts and latencies of I/O commands |
//! | `placement` | flexible data placement |
//! | `reserve` | reservation commands, and what a reservation lets others do |
//! | `plan` | what an I/O command asks for, and whether it may |
//! | `moves` | how much data a command moves, for transports with PRPs |
//! | `io` | I/O commands, to the drive and back |
//! | `layer` | what may stand between hosts and the drive |
//! | `faults` | what no host asked for: faults, loss of power, a controller that gives up |
//! | `fuzz` | any bytes as commands, for fuzzing |
//! | [`coverage`] | what of the protocol there is, and which test shows it |

pub mod activity;
mod admin;
mod admission;
mod authentication;
mod connect;
pub mod coverage;
mod events;
mod failure;
mod faults;
mod features;
mod format;
mod fuzz;
mod hosts;
mod identify;
mod io;
mod layer;
mod logs;
mod moves;
mod names;
mod past;
mod placement;
mod plan;
mod properties;
mod quality;
mod reserve;
mod settings;
mod state;
mod turns;

use std::collections::VecDeque;

use zonelab_device::{Buf, Completion, NamespaceId, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::log::ErrorEntry;
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::slab::Slab;
use zonelab_ssd::stored::NotKept;
use zonelab_ssd::{DriveModel, PlacementStatistics};

pub use authentication::{
    Access, Authentication, Calculated, Calculation, HostSecret, NotAuthenticated, RandomSource,
};
pub use faults::NoSuchController;
pub use format::formatted;
pub use fuzz::fuzz_command;
pub use hosts::{HostRules, NamespaceAccess, Permissions};
pub use layer::{Layer, NoLayer};
pub use moves::Moves;
pub use quality::{BURST, Quality};
pub use settings::{
    DISCOVERY_TRANSFER_BYTES, DiscoveryAddress, SettingsError, SubsystemSettings, TransportLimits,
};

use crate::Buffers;
use crate::reservations::Reservations;
use activity::Activity;
use failure::{Failure, do_not_retry};
use faults::Power;
use format::PendingFormat;
use hosts::Hosts;
use io::Flight;
use names::NamespaceNames;
use past::Pasts;
use reserve::{Preemption, is_reservation};
use settings::Texts;
use state::{Controller, Life, Queue};

/// How long an association stays after a reset or shutdown, for the host to
/// read the status (base specification 2.0, section 3.6.2).
const ASSOCIATION_LINGERS: Nanos = Nanos::from_secs(120);

/// A queue that a host has made, by number. Numbers are used again once the
/// queue is gone and nothing of it is in flight.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueHandle(pub u32);

/// A queue that was made, and the completion of the Connect command that made it.
#[derive(Clone, Debug)]
pub struct Connected {
    /// The queue: the admin queue of a new controller, or an I/O queue of the
    /// controller that the host named.
    pub queue: QueueHandle,
    /// Number of commands that it holds (SQSIZE + 1).
    pub depth: u32,
    /// Whether it is an admin queue: its capsules may have more data.
    pub is_admin: bool,
    /// To be sent to the host.
    pub completion: CompletionEntry,
}

/// A completion, and what goes to the host with it.
#[derive(Debug)]
pub struct Done {
    /// The queue of the command.
    pub queue: QueueHandle,
    /// The entry: command identifier, status and result. The transport puts in
    /// the submission queue head.
    pub entry: CompletionEntry,
    /// Data for the host; with success it has the length that the command
    /// asked for. [`Subsystem::recycle`] takes it when it is sent.
    pub data: Option<Buf>,
    /// The data that came with a command to the drive, to be used again.
    pub spent: Option<Buf>,
    /// When the model had it done: what is later than that is the transport's.
    pub due: Nanos,
}

/// What the controller keeps of a namespace, besides what the drive says.
#[derive(Clone, Debug)]
struct Namespace {
    names: NamespaceNames,
    lba_bytes: u32,
    /// Zone size in blocks; 0: not zoned.
    zone_lbas: u64,
    /// Bytes of a zone descriptor extension; 0: none.
    extension_bytes: u32,
    /// Zones can have random write areas.
    has_zrwa: bool,
    has_copy: bool,
    /// It has reclaim unit handles.
    has_placement: bool,
}

/// What the SMART log counts.
#[derive(Clone, Debug, Default)]
struct Counters {
    reads: u64,
    writes: u64,
    media_errors: u64,
    /// The last write found no room: a disk with the drive that is full, mostly.
    has_no_room: bool,
    /// Bytes read and written before the last format.
    read_bytes: u64,
    written_bytes: u64,
    /// The same of FDP Statistics.
    placement: PlacementStatistics,
    /// Time with commands in the drive.
    busy_ns: u64,
    busy_since: Option<Nanos>,
}

/// How an admin command ends.
#[derive(Debug)]
enum Answer {
    /// At once, with success.
    Now { result: u64, data: Option<Buf> },
    /// Something later ends it.
    Later,
}

impl Answer {
    /// Success with a value in dwords 0 and 1 of the completion.
    const fn value(result: u64) -> Self {
        Self::Now { result, data: None }
    }

    /// Success with data for the host.
    const fn data(data: Buf) -> Self {
        Self::Now {
            result: 0,
            data: Some(data),
        }
    }
}

/// A drive, and the controllers through which hosts use it.
#[derive(Debug)]
pub struct Subsystem<L: Layer = NoLayer> {
    drive: FaultyDrive,
    /// Nobody is heard any more: what the drive has is done, and nothing else.
    is_ending: bool,
    /// `None`: hosts use the drive itself.
    layer: Option<L>,
    settings: SubsystemSettings,
    /// `None`: every host is who it says it is.
    authentication: Option<Authentication>,
    /// `None`: every host may do everything.
    hosts: Option<Hosts>,
    texts: Texts,
    /// NSID 1 first.
    namespaces: Vec<Namespace>,
    /// That of NSID 1 first; those of namespaces that a layer hides are behind the others.
    reservations: Vec<Reservations>,
    /// Acquisitions that wait for commands of others to end.
    preemptions: Vec<Preemption>,
    /// Most data of a command in bytes.
    max_transfer_bytes: u32,
    /// Most data of a zone append in bytes.
    max_append_bytes: u32,
    now: Nanos,
    /// By controller identifier less 1.
    controllers: Slab<Controller>,
    /// By [`QueueHandle`].
    queues: Slab<Queue>,
    /// Commands in the drive; the slot is their tag there.
    flights: Slab<Flight>,
    /// A format that waits for the drive to be idle.
    format: Option<PendingFormat>,
    /// Completions that the drive has no part in, in order of time.
    ready: VecDeque<Done>,
    /// Queues that the transport has to close.
    closing: Vec<QueueHandle>,
    /// When the first controller has to be looked at.
    alarm: Option<Nanos>,
    /// Generation counter of the discovery log.
    discovery_generation: u64,
    /// Calculations that nobody has taken yet.
    calculations: VecDeque<Calculation>,
    /// Bytes of data in the drive of commands whose queues are gone.
    orphaned_bytes: u64,
    pool: Buffers,
    counters: Counters,
    pasts: Pasts,
    activity: Activity,
    power: Power,
    /// Scratch for what the drive completes.
    completions: Vec<Completion>,
    /// Commands that the drive did not take.
    turned_away: Vec<Completion>,
}

impl Subsystem {
    /// A subsystem with the drive's namespaces and no controller yet.
    ///
    /// # Errors
    /// [`SettingsError`]: a setting is not possible.
    pub fn new(drive: FaultyDrive, settings: SubsystemSettings) -> Result<Self, SettingsError> {
        Self::with_layer(drive, None, settings)
    }
}

impl<L: Layer> Subsystem<L> {
    /// A subsystem with the namespaces of a layer over the drive, or of the drive itself, and
    /// no controller yet.
    ///
    /// # Errors
    /// [`SettingsError`]: a setting is not possible.
    pub fn with_layer(
        mut drive: FaultyDrive,
        layer: Option<L>,
        settings: SubsystemSettings,
    ) -> Result<Self, SettingsError> {
        let texts = settings.texts()?;
        // A layer is the drive's host then, and has none.
        if layer.is_none() {
            drive.leave_timeouts_to_host();
        }
        let now = drive.drive().now();
        let mut subsystem = Self {
            drive,
            is_ending: false,
            layer,
            settings,
            authentication: None,
            hosts: None,
            texts,
            namespaces: Vec::new(),
            reservations: Vec::new(),
            preemptions: Vec::new(),
            max_transfer_bytes: 0,
            max_append_bytes: 0,
            now,
            controllers: Slab::default(),
            queues: Slab::default(),
            flights: Slab::default(),
            format: None,
            ready: VecDeque::new(),
            closing: Vec::new(),
            alarm: None,
            discovery_generation: 1,
            calculations: VecDeque::new(),
            orphaned_bytes: 0,
            pool: Buffers::default(),
            counters: Counters::default(),
            pasts: Pasts::default(),
            activity: Activity::new(),
            power: Power::default(),
            completions: Vec::new(),
            turned_away: Vec::new(),
        };
        subsystem.learn_drive();
        subsystem.learn_reservations()?;
        Ok(subsystem)
    }

    /// The drive.
    #[must_use]
    pub const fn drive(&self) -> &FaultyDrive {
        &self.drive
    }

    /// The drive, to do something to it that no host could. Commands must not
    /// be handed to it: they would meet tags of this subsystem.
    pub const fn drive_mut(&mut self) -> &mut FaultyDrive {
        &mut self.drive
    }

    /// The settings it was made with.
    #[must_use]
    pub const fn settings(&self) -> &SubsystemSettings {
        &self.settings
    }

    /// Number of controllers that hosts have.
    #[must_use]
    pub fn controllers(&self) -> usize {
        self.controllers.len()
    }

    /// What hosts asked for since it was made.
    #[must_use]
    pub const fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Keeps no more than so many bytes of buffers for commands to come (as it is made: 64 MiB).
    pub fn limit_buffers(&mut self, bytes: usize) {
        self.pool.limit(bytes);
    }

    /// Takes a buffer whose data has been sent, for commands to come.
    pub fn recycle(&mut self, buf: Buf) {
        self.pool.give(buf);
    }

    /// Takes a command. `data` is what the host sends with it, whole; for a
    /// command with data to the host, `data_len` is how much it has room for.
    /// Nothing completes in here.
    pub fn submit(
        &mut self,
        now: Nanos,
        queue: QueueHandle,
        entry: &SubmissionEntry,
        mut data: Option<Buf>,
        data_len: u32,
    ) {
        self.now = self.now.max(now);
        let Some(of) = self
            .queues
            .get_mut(queue.0)
            .filter(|q| q.life == Life::Open)
        else {
            return;
        };
        let (slot, is_admin, cid) = (of.controller, of.qid == 0, entry.cdw0.cid());
        let has_gate = of.gate.is_some();
        let is_stranger = of.gate.as_ref().is_some_and(|gate| !gate.is_open());
        if !of.begin(cid) {
            let failure = Failure::at(Status::COMMAND_ID_CONFLICT, failure::byte::OPC + 2);
            return self.refuse(queue.0, entry, failure, data);
        }
        if is_admin || !is_stranger {
            self.controllers.at(slot).heard = self.now;
        }
        if has_gate && let Some(answer) = self.at_gate(queue.0, entry, data.as_deref(), data_len) {
            self.answer(queue.0, entry, answer, data);
            return self.end_or_take_place(queue.0);
        }
        if is_admin {
            self.activity.admin();
            if self.hold_admin((queue.0, slot), entry, &mut data, data_len) {
                return;
            }
            let answer = self.admin((queue.0, slot), entry, data.as_deref(), data_len);
            self.answer(queue.0, entry, answer, data);
        } else if is_reservation(entry) {
            if self.hold_unplanned((queue.0, slot), (entry, false), &mut data, data_len) {
                return;
            }
            let answer = self.reserve((queue.0, slot), entry, data.as_deref(), data_len);
            self.answer(queue.0, entry, answer, data);
        } else if let Err(failure) = self.io((queue.0, slot), entry, &mut data, data_len) {
            self.activity.refused(entry);
            self.answer(queue.0, entry, Err(failure), data);
        }
    }

    /// When something happens next; `None`: nothing will until a command comes.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        let at_once = !self.closing.is_empty()
            || !self.turned_away.is_empty()
            || self.untold_power_loss().is_some();
        let ready = self.ready.front().map(|done| done.due);
        [
            self.next_step(),
            ready,
            self.next_alarm(),
            self.next_turn(),
            at_once.then_some(self.now),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// When the time of a controller runs out. It does not while nobody is heard.
    fn next_alarm(&self) -> Option<Nanos> {
        self.alarm.filter(|_| !self.is_ending)
    }

    /// Says that no command will come any more. Those that wait for their host's turn end
    /// unseen, and no controller ends because its host is not heard.
    pub fn begin_to_end(&mut self) {
        self.is_ending = true;
        self.forget_turns(|_| true);
    }

    /// Goes on to `to`: completions to the end of `done`, and the queues whose
    /// connections must end (controller reset or shut down, keep alive expired,
    /// not authenticated) to the end of `closed`.
    pub fn advance(&mut self, to: Nanos, done: &mut Vec<Done>, closed: &mut Vec<QueueHandle>) {
        let to = to.max(self.now);
        loop {
            let alarm = [self.next_alarm(), self.next_turn()];
            let alarm = alarm.into_iter().flatten().min();
            let alarm = alarm.filter(|at| *at <= to);
            let until = alarm.map_or(to, |at| at.max(self.now));
            self.run_drive(until, done);
            self.now = until;
            if alarm.is_none() {
                break;
            }
            self.ring_alarms();
            self.take_turns();
        }
        self.release(to, done);
        closed.append(&mut self.closing);
    }

    /// Keeps what must outlive the subsystem: before what [`Subsystem::advance`]
    /// gave leaves.
    ///
    /// # Errors
    /// It cannot be kept, and nothing may leave any more.
    pub fn keep(&mut self) -> Result<(), NotKept> {
        self.drive.drive_mut().keep()
    }

    /// The drive is switched off in good order. Nothing may be asked of the
    /// subsystem after that.
    ///
    /// # Errors
    /// What is to outlive it cannot be kept.
    pub fn switch_off(&mut self) -> Result<(), NotKept> {
        if let Some(layer) = &mut self.layer {
            layer.switch_off(&mut self.drive);
        }
        self.drive.drive_mut().switch_off()
    }

    /// Runs the drive to `until`.
    fn run_drive(&mut self, until: Nanos, done: &mut Vec<Done>) {
        loop {
            let mut completions = core::mem::take(&mut self.completions);
            completions.append(&mut self.turned_away);
            self.run(until, &mut completions);
            let is_idle = completions.is_empty();
            for completion in completions.drain(..) {
                // What comes after the loss of power ends unseen.
                if self
                    .untold_power_loss()
                    .is_some_and(|at| at <= completion.at)
                {
                    self.power_lost();
                }
                self.release(completion.at, done);
                self.completed(completion, until, done);
            }
            self.completions = completions;
            if self.untold_power_loss().is_some() {
                self.power_lost();
            }
            if self.layer.is_none() {
                self.forget_swallowed();
            }
            // A command with two steps has gone back to the drive.
            let goes_on = self.next_step().is_some_and(|at| at <= until);
            if self.turned_away.is_empty() && (is_idle || !goes_on) {
                break;
            }
        }
        self.now = until;
        self.tell_zone_changes();
        self.release(until, done);
    }

    /// Hands out the completions that are due by `until`.
    fn release(&mut self, until: Nanos, done: &mut Vec<Done>) {
        while self.ready.front().is_some_and(|next| next.due <= until) {
            done.extend(self.ready.pop_front());
        }
    }

    /// Ends an admin command, or an I/O command that the drive has not seen.
    fn answer(
        &mut self,
        queue: u32,
        entry: &SubmissionEntry,
        answer: Result<Answer, Failure>,
        spent: Option<Buf>,
    ) {
        let cid = entry.cdw0.cid();
        match answer {
            Ok(Answer::Later) => {}
            Ok(Answer::Now { result, data }) => {
                self.queues.at(queue).end(cid);
                let entry = CompletionEntry::new(cid, Status::SUCCESS).with_result(result);
                self.post(queue, entry, data, spent);
            }
            Err(failure) => {
                self.queues.at(queue).end(cid);
                self.refuse(queue, entry, failure, spent);
            }
        }
    }

    /// Completes a command as failed, without touching its identifier.
    fn refuse(
        &mut self,
        queue: u32,
        entry: &SubmissionEntry,
        failure: Failure,
        spent: Option<Buf>,
    ) {
        let about = ErrorEntry {
            nsid: entry.nsid,
            ..ErrorEntry::default()
        };
        let entry = self.failed(queue, entry.cdw0.cid(), failure, about);
        self.post(queue, entry, None, spent);
    }

    /// The completion of a failed command of an open queue, which goes into the
    /// error log with what is known `about` it.
    fn failed(
        &mut self,
        queue: u32,
        cid: u16,
        failure: Failure,
        about: ErrorEntry,
    ) -> CompletionEntry {
        let entry = CompletionEntry::new(cid, failure.status)
            .with_result(failure.dw0.into())
            .with_dnr(do_not_retry(failure.status));
        let entry = CompletionEntry {
            status: entry.status.with_m(true),
            ..entry
        };
        let of = self.queues.at(queue);
        let (slot, sqid) = (of.controller, of.qid);
        let about = ErrorEntry {
            sqid: sqid.into(),
            cid: cid.into(),
            status: entry.status,
            pel: failure.pel,
            ..about
        };
        self.pasts.note_error(self.controllers.at(slot), about);
        entry
    }

    /// Puts a completion among those that are ready.
    fn post(&mut self, queue: u32, entry: CompletionEntry, data: Option<Buf>, spent: Option<Buf>) {
        let last = self.ready.back().map_or(Nanos::ZERO, |done| done.due);
        self.ready.push_back(Done {
            queue: QueueHandle(queue),
            entry,
            data,
            spent,
            due: self.now.max(last),
        });
    }

    /// Reads the shape of the namespaces off the drive.
    fn learn_drive(&mut self) {
        let info = match &self.layer {
            Some(layer) => layer.info(),
            None => self.drive.drive().info(),
        };
        self.max_transfer_bytes = info
            .max_transfer_bytes
            .min(self.settings.max_transfer_bytes);
        self.max_append_bytes = info.max_append_bytes.min(self.max_transfer_bytes);
        let has_placement = self.layer.is_none() && self.drive.drive().config().has_handles();
        let namespaces = info
            .namespaces
            .iter()
            .zip(1..)
            .map(|(info, nsid)| Namespace {
                names: NamespaceNames::new(&self.settings.nqn, nsid),
                lba_bytes: info.lba_bytes,
                zone_lbas: info.zoned.map_or(0, |zoned| zoned.zone_size_lbas),
                extension_bytes: info
                    .zoned
                    .map_or(0, |zoned| zoned.descriptor_extension_bytes),
                has_zrwa: info.zoned.is_some_and(|zoned| zoned.zrwa.is_some()),
                has_copy: info.copy.is_some(),
                has_placement,
            });
        self.namespaces = namespaces.collect();
        self.activity.make_room(self.namespaces.len());
    }

    /// The namespace of that identifier.
    #[inline]
    fn namespace(&self, nsid: u32) -> Option<&Namespace> {
        // Identifiers begin at 1, so that of 0 becomes one that no drive has.
        self.namespaces.get(nsid.wrapping_sub(1) as usize)
    }

    /// Identifiers of all namespaces.
    fn namespace_ids(&self) -> impl Iterator<Item = NamespaceId> + use<L> {
        (1..).map(NamespaceId).take(self.namespaces.len())
    }

    /// Whether a write may be lost after it has completed.
    #[inline]
    fn has_volatile_cache(&self) -> bool {
        // What a layer holds in memory is lost with power.
        if self.layer.is_some() {
            return true;
        }
        let buffer = &self.drive.drive().config().write_buffer;
        buffer.is_some_and(|buffer| !buffer.power_loss_protection)
    }

    /// Finds the time at which the first controller has to be looked at.
    fn find_alarm(&mut self) {
        let alarms = self.controllers.iter().filter_map(|(_, of)| of.alarm());
        let open = self.queues.iter().filter(|(_, of)| of.life == Life::Open);
        let gates = open.filter_map(|(_, of)| of.gate.as_ref()?.due);
        self.alarm = alarms.chain(gates).min();
    }
}
