//! Admin commands: dispatch, and the small ones.

use zonelab_device::Buf;
use zonelab_nvme::Status;
use zonelab_nvme::command::{Abort, AdminCommand};
use zonelab_nvme::queue::{AdminOpcode, CompletionEntry, SubmissionEntry};

use super::events::Event;
use super::failure::{Failure, byte};
use super::plan::check_flags;
use super::state::Kind;
use super::{Answer, DiscoveryAddress, Layer, Subsystem};

/// The data of a command, if it has that length.
pub(super) fn expect_length(data: Option<&[u8]>, bytes: usize) -> Result<&[u8], Failure> {
    data.filter(|data| data.len() == bytes)
        .ok_or_else(|| Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8))
}

impl<L: Layer> Subsystem<L> {
    /// A command on an admin queue.
    pub(super) fn admin(
        &mut self,
        (queue, slot): (u32, u32),
        entry: &SubmissionEntry,
        data: Option<&[u8]>,
        data_len: u32,
    ) -> Result<Answer, Failure> {
        let opcode = AdminOpcode(entry.cdw0.opc());
        if entry.cdw0.fuse() != 0 {
            return Err(Failure::field(byte::FLAGS));
        }
        if opcode == AdminOpcode::FABRICS {
            return self.fabrics(slot, entry);
        }
        check_flags(entry)?;
        let controller = self.controllers.at(slot);
        let kind = controller.kind;
        // A host may show that it is there before it enables the controller.
        if !controller.is_ready() && opcode != AdminOpcode::KEEP_ALIVE {
            return Err(Failure::from(Status::COMMAND_SEQUENCE_ERROR));
        }
        let command =
            AdminCommand::parse(entry).map_err(|status| Failure::at(status, byte::OPC))?;
        match command {
            AdminCommand::Identify(identify) => self.identify(slot, identify, data_len),
            AdminCommand::GetLogPage(get) => self.get_log_page(slot, get, data_len),
            AdminCommand::GetFeatures(get) => self.get_features(slot, get, data_len),
            AdminCommand::SetFeatures(set) => self.set_features(slot, set, data),
            AdminCommand::Abort(abort) if kind == Kind::Io => Ok(self.abort(slot, abort)),
            AdminCommand::AsynchronousEventRequest => self.request_event(slot, entry.cdw0.cid()),
            AdminCommand::KeepAlive => {
                let now = self.now;
                self.controllers.at(slot).arm_keep_alive(now);
                self.find_alarm();
                Ok(Answer::value(0))
            }
            AdminCommand::FormatNvm(format) if kind == Kind::Io && self.may_format(slot) => {
                self.format_nvm((queue, slot), entry.cdw0.cid(), format)
            }
            AdminCommand::Abort(_) | AdminCommand::FormatNvm(_) => {
                Err(Failure::at(Status::INVALID_OPCODE, byte::OPC))
            }
        }
    }

    /// Abort. Only event requests wait where they can be taken from; what the
    /// drive has comes to its end.
    fn abort(&mut self, slot: u32, abort: Abort) -> Answer {
        let controller = self.controllers.at(slot);
        if abort.sqid == 0 && controller.events.abort(abort.cid) {
            self.give_up(slot, abort.cid);
            return Answer::value(0);
        }
        Answer::value(Abort::NOT_ABORTED.into())
    }

    fn request_event(&mut self, slot: u32, cid: u16) -> Result<Answer, Failure> {
        let controller = self.controllers.at(slot);
        if !controller.events.request(cid) {
            return Err(Failure::from(Status::AER_LIMIT_EXCEEDED));
        }
        self.tell_events(slot);
        Ok(Answer::Later)
    }

    /// Completes event requests of a controller as long as there are events.
    pub(super) fn tell_events(&mut self, slot: u32) {
        while let Some((cid, event)) = self.controllers.at(slot).events.take() {
            let queue = self.controllers.at(slot).admin;
            self.queues.at(queue).end(cid);
            let result = u64::from(event.dword1()) << 32 | u64::from(event.dword0().bits());
            let entry = CompletionEntry::new(cid, Status::SUCCESS).with_result(result);
            self.post(queue, entry, None, None);
        }
    }

    /// Notes an event with every controller that has such events, but `except`,
    /// and tells it; of a namespace, with those whose hosts have it.
    pub(super) fn notify(
        &mut self,
        (event, nsid): (Event, Option<u32>),
        except: Option<u32>,
        note: impl Fn(&mut super::events::Events),
    ) {
        let kind = match event {
            Event::Discovery => Kind::Discovery,
            _ => Kind::Io,
        };
        let slots: Vec<u32> = self
            .controllers
            .iter()
            .filter(|(slot, of)| of.kind == kind && Some(*slot) != except)
            .map(|(slot, _)| slot)
            .collect();
        for slot in slots {
            let is_its = nsid.is_none_or(|nsid| self.rights(slot, nsid).is_some());
            let controller = self.controllers.at(slot);
            if !controller.is_ready() || !is_its {
                continue;
            }
            note(&mut controller.events);
            controller.events.note(event, controller.features.events);
            self.tell_events(slot);
        }
    }

    /// Passes on to the controllers what zones the drive changed by itself.
    pub(super) fn tell_zone_changes(&mut self) {
        if !self.shows_zones() {
            return;
        }
        for nsid in self.namespace_ids() {
            if !self.drive.drive().has_zone_event(nsid) {
                continue;
            }
            let list = self.drive.drive_mut().take_changed_zones(nsid);
            let Some(list) = list else {
                continue;
            };
            match list.zones() {
                Some(zones) => zones
                    .iter()
                    .for_each(|zone| self.zone_changed(nsid.0, zone.get())),
                None => {
                    let nsid = nsid.0;
                    self.pasts.note_zones(|zones| zones.note_overflow(nsid));
                    self.notify((Event::Zones(nsid), Some(nsid)), None, |events| {
                        events.zones().note_overflow(nsid);
                    });
                }
            }
        }
    }

    /// The device has changed a zone by itself: hosts that want to know are
    /// told, and find it in the Changed Zone List. `zslba` counts from the start
    /// of the namespace.
    pub fn zone_changed(&mut self, nsid: u32, zslba: u64) {
        self.pasts.note_zones(|zones| zones.note(nsid, zslba));
        self.notify((Event::Zones(nsid), Some(nsid)), None, |events| {
            events.zones().note(nsid, zslba);
        });
        self.notify((Event::Reliability, Some(nsid)), None, |_| {});
    }

    /// The server listens elsewhere: hosts that stay connected to the discovery
    /// controller are told.
    pub fn set_addresses(&mut self, addresses: Vec<DiscoveryAddress>) {
        self.settings.addresses = addresses;
        self.discovery_generation += 1;
        self.notify((Event::Discovery, None), None, |_| {});
    }

    /// A structure as the answer of a command that has room for all of it.
    pub(super) fn structure(&mut self, bytes: &[u8], data_len: u32) -> Result<Answer, Failure> {
        if bytes.len() as u64 != u64::from(data_len) {
            return Err(Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8));
        }
        let mut buf: Buf = self.pool.take(bytes.len());
        buf.copy_from_slice(bytes);
        Ok(Answer::data(buf))
    }
}
