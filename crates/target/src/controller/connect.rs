//! Connect, and the end of queues and controllers.

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::fabrics::{
    AuthenticationRequirements, CNTLID_DYNAMIC, Connect, ConnectData, ConnectResponse,
    DISCOVERY_NQN, InvalidParameter,
};
use zonelab_nvme::identify::Nqn;
use zonelab_nvme::property::{Configuration, ControllerStatus};
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};
use zonelab_nvme::status::FabricsStatus;

use super::events::Events;
use super::failure::do_not_retry;
use super::features::Features;
use super::reserve::host_of;
use super::settings::ADMIN_QUEUE_ENTRIES;
use super::state::{Controller, Kind, Life, Queue};
use super::{Connected, Layer, QueueHandle, Subsystem};

/// Offsets of the parameters of Connect, for Invalid Parameter Offset.
mod offset {
    /// In the command.
    pub(super) const QID: u16 = 42;
    pub(super) const SQSIZE: u16 = 44;
    /// In the data.
    pub(super) const HOSTID: u16 = 0;
    pub(super) const CNTLID: u16 = 16;
    pub(super) const SUBNQN: u16 = 256;
    pub(super) const HOSTNQN: u16 = 512;
}

/// Why a Connect is refused.
struct Refusal {
    status: Status,
    parameter: InvalidParameter,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self {
            status,
            parameter: InvalidParameter::default(),
        }
    }
}

impl From<FabricsStatus> for Refusal {
    fn from(status: FabricsStatus) -> Self {
        Self::from(status.status())
    }
}

impl Refusal {
    /// A parameter of the command is not valid.
    fn command(offset: u16) -> Self {
        Self {
            parameter: InvalidParameter::default().with_ipo(offset),
            ..Self::from(FabricsStatus::CONNECT_INVALID_PARAMETERS)
        }
    }

    /// A parameter in the data is not valid.
    fn data(offset: u16) -> Self {
        let refusal = Self::command(offset);
        Self {
            parameter: refusal.parameter.with_in_data(true),
            ..refusal
        }
    }

    fn completion(&self, cid: u16) -> CompletionEntry {
        // The controllers of others may go away.
        let is_busy = self.status == FabricsStatus::CONNECT_CONTROLLER_BUSY.status();
        CompletionEntry::new(cid, self.status)
            .with_result(self.parameter.bits().into())
            .with_dnr(!is_busy && do_not_retry(self.status))
    }
}

impl<L: Layer> Subsystem<L> {
    /// Makes a queue, and with an admin queue its controller.
    ///
    /// # Errors
    /// The completion that refuses it; the connection then ends.
    pub fn connect(
        &mut self,
        now: Nanos,
        (entry, connect): (&SubmissionEntry, &Connect),
        data: &ConnectData,
    ) -> Result<Connected, CompletionEntry> {
        self.now = self.now.max(now);
        let cid = entry.cdw0.cid();
        if self.is_off_until(self.now).is_some() {
            let busy = FabricsStatus::CONNECT_CONTROLLER_BUSY;
            return Err(Refusal::from(busy).completion(cid));
        }
        let (kind, queue) = self
            .check_connect(connect, data)
            .and_then(|kind| {
                let queue = match connect.qid {
                    0 => self.connect_admin(kind, connect, data),
                    _ => self.connect_io(kind, connect, data),
                };
                Ok((kind, queue?))
            })
            .map_err(|refusal| refusal.completion(cid))?;
        let is_shut = kind == Kind::Io && self.shut(queue);
        // Fits: there are fewer controllers than identifiers.
        let cntlid = (self.queues.at(queue).controller + 1) as u16;
        let response = ConnectResponse {
            cntlid: cntlid.into(),
            authreq: AuthenticationRequirements::default().with_atr(is_shut),
        };
        Ok(Connected {
            queue: QueueHandle(queue),
            depth: connect.sqsize,
            is_admin: connect.qid == 0,
            completion: CompletionEntry {
                dw0: response.to_dword0(),
                ..CompletionEntry::new(cid, Status::SUCCESS)
            },
        })
    }

    /// What holds for queues of both kinds. Returns whom the host wants.
    fn check_connect(&self, connect: &Connect, data: &ConnectData) -> Result<Kind, Refusal> {
        if connect.recfmt != 0 {
            return Err(FabricsStatus::CONNECT_INCOMPATIBLE_FORMAT.into());
        }
        let kind = match data.subnqn.as_str() {
            Some(DISCOVERY_NQN) => Kind::Discovery,
            Some(nqn) if nqn == self.settings.nqn => Kind::Io,
            _ => return Err(Refusal::data(offset::SUBNQN)),
        };
        // A name is padded with zero bytes: what else stands behind its end is no part of
        // it, and the same host would have many names.
        if !data.subnqn.is_padded() {
            return Err(Refusal::data(offset::SUBNQN));
        }
        let hostnqn = data
            .hostnqn
            .as_str()
            .filter(|name| Nqn::is_well_formed(name) && data.hostnqn.is_padded());
        let hostnqn = hostnqn.ok_or(Refusal::data(offset::HOSTNQN))?;
        // Whoever may not connect may still learn that there is nothing for it.
        if kind == Kind::Io && !self.lets_in(hostnqn) {
            return Err(FabricsStatus::CONNECT_INVALID_HOST.into());
        }
        let most = match connect.qid {
            0 => self.settings.limits.queue_depth.max(ADMIN_QUEUE_ENTRIES),
            _ => self.settings.limits.queue_depth,
        };
        if connect.sqsize < 2 || connect.sqsize > most.into() {
            return Err(Refusal::command(offset::SQSIZE));
        }
        Ok(kind)
    }

    fn connect_admin(
        &mut self,
        kind: Kind,
        connect: &Connect,
        data: &ConnectData,
    ) -> Result<u32, Refusal> {
        if data.cntlid.get() != CNTLID_DYNAMIC {
            return Err(Refusal::data(offset::CNTLID));
        }
        let most = match kind {
            Kind::Io => self.settings.controllers,
            Kind::Discovery => self.settings.discovery_controllers,
        };
        let same = self.controllers.iter().filter(|(_, of)| of.kind == kind);
        if same.count() >= usize::from(most) {
            return Err(FabricsStatus::CONNECT_CONTROLLER_BUSY.into());
        }
        let io_queues = match kind {
            Kind::Io => self.settings.io_queues,
            Kind::Discovery => 0,
        };
        let host = data.hostnqn.as_str().zip(self.hosts.as_ref());
        let slot = self.controllers.insert(Controller {
            kind,
            hostnqn: data.hostnqn,
            hostid: data.hostid,
            identifier: host_of(data.hostid),
            host: host.and_then(|(name, hosts)| hosts.find(name)),
            admin: 0,
            io: vec![None; io_queues.into()],
            cc: Configuration::default(),
            csts: ControllerStatus::default(),
            shutdown_flushes: 0,
            heard: self.now,
            keep_alive_at: None,
            ends_at: None,
            features: Features::new(kind, self.namespaces.len(), connect.kato),
            events: Events::default(),
        });
        let queue = self.queues.insert(Queue::new(slot, 0));
        let controller = self.controllers.at(slot);
        let changed = self.pasts.zones(controller);
        controller.events.begin(changed);
        controller.admin = queue;
        controller.arm_keep_alive(self.now);
        self.find_alarm();
        Ok(queue)
    }

    fn connect_io(
        &mut self,
        kind: Kind,
        connect: &Connect,
        data: &ConnectData,
    ) -> Result<u32, Refusal> {
        let slot = u32::from(data.cntlid.get()).wrapping_sub(1);
        // Who has not authenticated itself has no place with a controller of somebody who has.
        let is_stranger = kind == Kind::Io && self.requires_authentication();
        let controller = self
            .controllers
            .get_mut(slot)
            .ok_or(Refusal::data(offset::CNTLID))?;
        // All queues of an association have the names of the first.
        if controller.kind != kind {
            return Err(Refusal::data(offset::SUBNQN));
        }
        if controller.hostnqn != data.hostnqn {
            return Err(Refusal::data(offset::HOSTNQN));
        }
        if controller.hostid != data.hostid {
            return Err(Refusal::data(offset::HOSTID));
        }
        let is_ready = controller.is_ready();
        let place = controller
            .io
            .get_mut(usize::from(connect.qid) - 1)
            .ok_or(Refusal::command(offset::QID))?;
        if !is_ready || place.is_some() {
            return Err(Status::COMMAND_SEQUENCE_ERROR.into());
        }
        let queue = self.queues.insert(Queue::new(slot, connect.qid));
        if !is_stranger {
            *place = Some(queue);
            controller.heard = self.now;
        }
        Ok(queue)
    }

    /// The connection of a queue is gone. What is in flight comes to an end
    /// unseen; with the admin queue goes its controller.
    pub fn disconnect(&mut self, now: Nanos, queue: QueueHandle) {
        self.now = self.now.max(now);
        let Some(of) = self.queues.get_mut(queue.0) else {
            return;
        };
        let (slot, qid, life) = (of.controller, of.qid, of.life);
        if life != Life::Closed {
            // Nobody counts it any more but here.
            self.orphaned_bytes += of.drive_bytes;
        }
        of.life = Life::Closed;
        self.forget_turns(|of| of == queue.0);
        if life == Life::Open {
            if qid == 0 {
                self.drop_controller(slot);
            } else {
                self.controllers.at(slot).leave_place(qid, queue.0);
            }
        }
        self.closing.retain(|closing| *closing != queue);
        self.ready.retain(|done| done.queue != queue);
        self.free_if_over(queue.0);
    }

    /// Ends a controller and the queues that it still has.
    pub(super) fn drop_controller(&mut self, slot: u32) {
        let controller = self.controllers.remove(slot);
        for queue in controller.queues() {
            self.close(queue);
        }
        self.close_strangers(slot);
        self.forget_shutdown(slot);
        self.find_alarm();
    }

    /// Ends a queue, unless its connection is gone already.
    pub(super) fn close(&mut self, queue: u32) {
        let of = self.queues.at(queue);
        if of.life == Life::Open {
            of.life = Life::Closing;
            self.forget_turns(|of| of == queue);
            self.closing.push(QueueHandle(queue));
        }
    }

    /// After a message of a transaction: ends a queue whose gate will not open, and gives one
    /// of I/O whose gate has opened its place with the controller. If another one has that by
    /// now, it ends.
    pub(super) fn end_or_take_place(&mut self, queue: u32) {
        self.end_if_refused(queue);
        let now = self.now;
        let of = self.queues.at(queue);
        let is_open = of.gate.as_ref().is_some_and(|gate| gate.is_open());
        if !is_open || of.qid == 0 || of.life != Life::Open {
            return;
        }
        let controller = self.controllers.at(of.controller);
        let place = controller.io.get_mut(usize::from(of.qid) - 1);
        if place.is_some_and(|place| *place.get_or_insert(queue) == queue) {
            controller.heard = now;
        } else {
            self.close(queue);
        }
    }

    /// Ends the queues of a controller that have no place with it yet.
    pub(super) fn close_strangers(&mut self, slot: u32) {
        let is_one = |of: &Queue| of.controller == slot && of.qid > 0 && of.life == Life::Open;
        let all = self.queues.iter().filter(|(_, of)| is_one(of));
        let all: Vec<u32> = all.map(|(queue, _)| queue).collect();
        for queue in all {
            self.close(queue);
        }
    }

    /// Forgets a queue that is closed and of which nothing is in flight.
    pub(super) fn free_if_over(&mut self, queue: u32) {
        let of = self.queues.at(queue);
        if of.life == Life::Closed && of.in_drive == 0 {
            self.queues.free(queue);
        }
    }
}
