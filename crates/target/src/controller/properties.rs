//! Properties of a controller, and what setting them does: enable, reset,
//! shutdown. And what time does: the keep alive timer.

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::fabrics::{FabricsCommand, PropertyGet, PropertySet};
use zonelab_nvme::identify::Version;
use zonelab_nvme::property::{
    Capabilities, CommandSetSelected, Configuration, ControllerStatus, Property, ReadyTimeouts,
    ShutdownNotification, ShutdownStatus,
};
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};

use super::failure::{Failure, byte, do_not_retry};
use super::features::Features;
use super::settings::ADMIN_QUEUE_ENTRIES;
use super::state::{Kind, Life};
use super::{ASSOCIATION_LINGERS, Answer, Layer, Subsystem};

/// How long a host may take to enable and to disable, in units of 500 ms. Both
/// are done at once; it is what hosts are used to.
const READY_TIMEOUT: u8 = 15;
/// Entry sizes of I/O queues as powers of two.
const IOSQES: u8 = 6;
const IOCQES: u8 = 4;

/// The version of the specification that controllers follow.
pub(super) fn version() -> Version {
    Version::default().with_mjr(2)
}

impl<L: Layer> Subsystem<L> {
    /// A fabrics command on the admin queue.
    pub(super) fn fabrics(
        &mut self,
        slot: u32,
        entry: &SubmissionEntry,
    ) -> Result<Answer, Failure> {
        let command =
            FabricsCommand::parse(entry).map_err(|status| Failure::at(status, byte::NSID))?;
        match command {
            FabricsCommand::PropertyGet(get) => self.property_get(slot, get),
            FabricsCommand::PropertySet(set) => self.property_set(slot, set),
            // The queue is connected.
            FabricsCommand::Connect(_) => Err(Failure::from(Status::COMMAND_SEQUENCE_ERROR)),
            // Not required of this host; and queues end with their connections.
            FabricsCommand::AuthenticationSend(_)
            | FabricsCommand::AuthenticationReceive(_)
            | FabricsCommand::Disconnect(_) => Err(Failure::at(Status::INVALID_OPCODE, byte::NSID)),
        }
    }

    fn capabilities(&self, kind: Kind) -> Capabilities {
        let entries = match kind {
            Kind::Io => self.settings.limits.queue_depth,
            Kind::Discovery => ADMIN_QUEUE_ENTRIES,
        };
        Capabilities::default()
            .with_mqes_z(entries - 1)
            .with_cqr(true)
            .with_to(READY_TIMEOUT)
            .with_css_nvm(true)
            .with_css_io(kind == Kind::Io)
            .with_crwms(true)
    }

    fn property_get(&mut self, slot: u32, get: PropertyGet) -> Result<Answer, Failure> {
        let controller = self.controllers.at(slot);
        let kind = controller.kind;
        let (value, size): (u64, u8) = match get.ofst {
            Property::CAP => (self.capabilities(kind).bits(), 1),
            Property::VS => (version().bits().into(), 0),
            Property::CC => (controller.cc.bits().into(), 0),
            Property::CSTS => (controller.csts.bits().into(), 0),
            Property::CRTO => {
                let timeouts = ReadyTimeouts::default().with_crwmt(READY_TIMEOUT.into());
                (timeouts.bits().into(), 0)
            }
            _ => return Err(Failure::field(byte::CDW11)),
        };
        if get.size != size {
            return Err(Failure::field(byte::CDW10));
        }
        Ok(Answer::value(value))
    }

    fn property_set(&mut self, slot: u32, set: PropertySet) -> Result<Answer, Failure> {
        if set.ofst != Property::CC {
            return Err(Failure::field(byte::CDW11));
        }
        if set.size != 0 {
            return Err(Failure::field(byte::CDW10));
        }
        // Of 4 bytes, the low half is the value.
        let new = Configuration::from_bits(set.value as u32);
        let controller = self.controllers.at(slot);
        let old = core::mem::replace(&mut controller.cc, new);
        if old.en() && !new.en() {
            self.reset(slot);
        } else if !old.en() && new.en() {
            self.enable(slot);
        }
        if new.shn() != ShutdownNotification::NONE && old.shn() == ShutdownNotification::NONE {
            self.shut_down(slot, new.shn());
        } else if new.shn() == ShutdownNotification::NONE {
            let controller = self.controllers.at(slot);
            controller.csts = controller.csts.with_shst(ShutdownStatus::NONE);
        }
        self.find_alarm();
        Ok(Answer::value(0))
    }

    fn enable(&mut self, slot: u32) {
        let controller = self.controllers.at(slot);
        let cc = controller.cc;
        let css = [CommandSetSelected::NVM, CommandSetSelected::ALL];
        let is_possible = cc.mps() == 0
            && cc.ams() == 0
            && match controller.kind {
                Kind::Io => {
                    css.contains(&cc.css()) && cc.iosqes() == IOSQES && cc.iocqes() == IOCQES
                }
                Kind::Discovery => cc.css() == CommandSetSelected::NVM,
            };
        controller.csts = ControllerStatus::default()
            .with_rdy(is_possible)
            .with_cfs(!is_possible);
        controller.ends_at = None;
        let uses_drive = controller.kind == Kind::Io && is_possible;
        let now = self.now;
        self.controllers.at(slot).arm_keep_alive(now);
        if uses_drive {
            self.in_use();
        }
    }

    /// A controller reset: I/O queues end, event requests are given up,
    /// features have their default values.
    fn reset(&mut self, slot: u32) {
        self.close_io_queues(slot);
        self.give_up_requests(slot);
        self.forget_shutdown(slot);
        let namespaces = self.namespaces.len();
        let now = self.now;
        let controller = self.controllers.at(slot);
        let keep_alive_ms = controller.features.keep_alive_ms();
        controller.csts = ControllerStatus::default();
        controller.shutdown_flushes = 0;
        controller.features = Features::new(controller.kind, namespaces, keep_alive_ms);
        let changed = self.pasts.zones(controller);
        controller.events.begin(changed);
        controller.ends_at = Some(now.saturating_add(ASSOCIATION_LINGERS));
    }

    fn shut_down(&mut self, slot: u32, how: ShutdownNotification) {
        let flushes = match how {
            ShutdownNotification::NORMAL => self.flush_all(slot),
            _ => 0,
        };
        let now = self.now;
        let controller = self.controllers.at(slot);
        controller.shutdown_flushes = flushes;
        controller.csts = controller.csts.with_shst(ShutdownStatus::OCCURRING);
        controller.ends_at = Some(now.saturating_add(ASSOCIATION_LINGERS));
        if flushes == 0 {
            self.shut_down_is_over(slot);
        }
    }

    /// One of the flushes of a shutdown is over.
    pub(super) fn shutdown_goes_on(&mut self, slot: u32) {
        let Some(controller) = self.controllers.get_mut(slot) else {
            return;
        };
        controller.shutdown_flushes = controller.shutdown_flushes.saturating_sub(1);
        if controller.shutdown_flushes == 0 {
            self.shut_down_is_over(slot);
        }
    }

    fn shut_down_is_over(&mut self, slot: u32) {
        let controller = self.controllers.at(slot);
        controller.csts = controller.csts.with_shst(ShutdownStatus::COMPLETE);
        self.not_in_use();
        self.close_io_queues(slot);
    }

    pub(super) fn close_io_queues(&mut self, slot: u32) {
        let places = self.controllers.at(slot).io.len();
        for place in 0..places {
            if let Some(queue) = self.controllers.at(slot).io[place].take() {
                self.close(queue);
            }
        }
        self.close_strangers(slot);
    }

    /// Ends all event requests of a controller.
    fn give_up_requests(&mut self, slot: u32) {
        while let Some(cid) = self.controllers.at(slot).events.abort_any() {
            self.give_up(slot, cid);
        }
    }

    /// Ends an event request that is no longer outstanding.
    pub(super) fn give_up(&mut self, slot: u32, cid: u16) {
        let queue = self.controllers.at(slot).admin;
        let of = self.queues.at(queue);
        if of.life != Life::Open {
            return;
        }
        of.end(cid);
        let status = Status::ABORT_REQUESTED;
        let entry = CompletionEntry::new(cid, status).with_dnr(do_not_retry(status));
        self.post(queue, entry, None, None);
    }

    /// Looks at the controllers whose time has come.
    pub(super) fn ring_alarms(&mut self) {
        let now = self.now;
        let due: Vec<u32> = self
            .controllers
            .iter()
            .filter(|(_, controller)| controller.alarm().is_some_and(|at| at <= now))
            .map(|(slot, _)| slot)
            .collect();
        for slot in due {
            let controller = self.controllers.at(slot);
            let lapsed = controller.ends_at.is_some_and(|at| at <= now);
            let timeout = controller.timeout().unwrap_or(Nanos::MAX);
            // Every command restarts the timer (TBKAS), but it is only looked
            // at when it would have run out.
            let expires = controller.heard.saturating_add(timeout);
            if lapsed || expires <= now {
                self.drop_controller(slot);
            } else if controller.keep_alive_at.is_some() {
                controller.keep_alive_at = Some(expires);
            }
        }
        self.end_late_transactions();
        self.find_alarm();
    }
}
