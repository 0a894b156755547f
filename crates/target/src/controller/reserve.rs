//! Reservation commands, and what a reservation lets others do.
//!
//! A host is its Host Identifier: of Connect, or on a transport without Connect of the
//! feature. A host that has none can neither register nor hold anything (CTRATT says so),
//! and is subject to the reservations of others. A host that may only read a namespace may
//! only report its reservations.

use zonelab_device::{Buf, Op};
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    GetFeatures, IoCommand, ReservationAcquire, ReservationRegister, ReservationRelease,
    ReservationReport, SetFeatures,
};
use zonelab_nvme::feature::HostIdentifier;
use zonelab_nvme::queue::{CompletionEntry, IoOpcode, SubmissionEntry};
use zonelab_nvme::reservation::{
    AcquireAction, AcquireData, NotificationMask, NotificationType, RegisterData, RegistrantStatus,
    ReleaseData, ReservationCapabilities, ReservationPersistence, ReservationStatus,
    ReservationStatusExtended,
};
use zonelab_nvme::reservation::{Registrant, RegistrantExtended};
use zonelab_nvme::zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::admin::expect_length;
use super::events::Event;
use super::failure::{Failure, byte};
use super::hosts::NamespaceAccess;
use super::plan::{Transfer, check_flags};
use super::state::{Kind, Life};
use super::{Answer, Layer, SettingsError, Subsystem};
use crate::reservations::{
    self, Acquire, Effects, HostId, RECORD_BYTES_MAX, Refused, Register, Release, Reservations, Use,
};

/// CNTLID of a registrant without a controller.
const NO_CONTROLLER: u16 = u16::MAX;

/// An acquisition that waits until what the preempted hosts have in the drive has ended.
#[derive(Debug)]
pub(super) struct Preemption {
    queue: u32,
    cid: u16,
    /// Slots of the flights.
    flights: Vec<u32>,
}

/// Whether a command of an I/O queue is about reservations.
#[inline]
pub(super) fn is_reservation(entry: &SubmissionEntry) -> bool {
    matches!(
        IoOpcode(entry.cdw0.opc()),
        IoOpcode::RESERVATION_REGISTER
            | IoOpcode::RESERVATION_REPORT
            | IoOpcode::RESERVATION_ACQUIRE
            | IoOpcode::RESERVATION_RELEASE
    )
}

/// What an operation counts as.
const fn use_of(op: &Op) -> Use {
    match op {
        Op::Read { .. }
        | Op::Compare { .. }
        | Op::Verify { .. }
        | Op::ZoneReceive { .. }
        | Op::HandleStatus => Use::Read,
        _ => Use::Write,
    }
}

/// The failure of a reservation command. What is wrong is in dword 10 or in the data.
fn refused(why: Refused) -> Failure {
    match why {
        Refused::Conflict => Failure::from(Status::RESERVATION_CONFLICT),
        Refused::Action => Failure::field(byte::CDW10),
        Refused::IgnoredKey => Failure::bit(Status::INVALID_FIELD, byte::CDW10, 3),
        Refused::Type => Failure::field(byte::CDW10 + 1),
        Refused::Persistence => Failure::bit(Status::INVALID_FIELD, byte::CDW10 + 3, 6),
        Refused::Key => Failure::field(byte::DPTR),
        // There is no status for that, and room may come.
        Refused::Full => Failure::from(Status::INTERNAL_ERROR),
    }
}

/// The data of a command as the structure that they are.
fn data_as<T: FromBytes>(data: Option<&[u8]>) -> Result<T, Failure> {
    let data = expect_length(data, size_of::<T>())?;
    T::read_from_bytes(data)
        .map_err(|_| Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8))
}

/// The identifier in a Connect command; `None`: it names none.
pub(super) fn host_of(hostid: [u8; 16]) -> Option<HostId> {
    (hostid != [0; 16]).then_some(HostId::Extended(hostid))
}

impl<L: Layer> Subsystem<L> {
    /// Reservations of the namespaces that there are, with those that outlived a loss of power.
    pub(super) fn learn_reservations(&mut self) -> Result<(), SettingsError> {
        let drive = self.drive.drive_mut();
        let namespaces = self.namespaces.len().max(drive.info().namespaces.len());
        let most = reservations::registrants_max(namespaces);
        let mut kept = drive.kept_reservations();
        let can_persist = kept.bytes_max() >= RECORD_BYTES_MAX;
        let kept = reservations::read(&kept.take())?;
        // Without a layer the drive may have more namespaces than with it.
        let last = kept.last().map_or(0, |(nsid, _)| *nsid as usize);
        let count = namespaces.max(last.min(reservations::NAMESPACES_MAX));
        let all = (0..count).map(|index| {
            let can_persist = can_persist && index < reservations::NAMESPACES_MAX;
            Reservations::new(most, can_persist)
        });
        self.reservations = all.collect();
        for (nsid, of) in kept {
            if let Some(place) = self.reservations.get_mut(nsid as usize - 1) {
                *place = of.with_room(most);
            }
        }
        Ok(())
    }

    /// RESCAP of a namespace.
    pub(super) fn reservation_capabilities(&self, nsid: u32) -> ReservationCapabilities {
        let of = self.reservations.get(nsid.wrapping_sub(1) as usize);
        ReservationCapabilities::default()
            .with_persistence(of.is_some_and(Reservations::can_persist))
            .with_write_exclusive(true)
            .with_exclusive_access(true)
            .with_write_registrants(true)
            .with_access_registrants(true)
            .with_write_all_registrants(true)
            .with_access_all_registrants(true)
            .with_ignore_existing_key(true)
    }

    /// Whether reservations let the host of a controller do an operation.
    #[inline]
    pub(super) fn check_reserved(&self, slot: u32, nsid: u32, op: &Op) -> Result<(), Failure> {
        match self.reservations.get(nsid.wrapping_sub(1) as usize) {
            Some(of) if !of.is_free() => self.check_use(slot, of, use_of(op)),
            _ => Ok(()),
        }
    }

    /// Whether they let it format all namespaces.
    pub(super) fn check_format_reserved(&self, slot: u32) -> Result<(), Failure> {
        let mut all = self.reservations.iter();
        all.try_for_each(|of| self.check_use(slot, of, Use::Write))
    }

    fn check_use(&self, slot: u32, of: &Reservations, does: Use) -> Result<(), Failure> {
        let host = self.controllers.get(slot).and_then(|of| of.identifier);
        match of.permits(host, does) {
            true => Ok(()),
            false => Err(Failure::from(Status::RESERVATION_CONFLICT)),
        }
    }

    /// A reservation command that may be carried out as far as that can be said without
    /// its data, and those.
    pub(super) fn checked_reservation(
        &self,
        slot: u32,
        entry: &SubmissionEntry,
    ) -> Result<(IoCommand, HostId, Transfer), Failure> {
        check_flags(entry)?;
        let controller = self.controllers.get(slot);
        let controller = controller
            .filter(|of| of.is_ready())
            .ok_or(Failure::from(Status::COMMAND_SEQUENCE_ERROR))?;
        let command = IoCommand::parse(entry).map_err(|status| Failure::at(status, byte::OPC))?;
        let nsid = entry.nsid.get();
        let no_namespace = Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID);
        let access = self.rights(slot, nsid).ok_or(no_namespace)?;
        self.namespace(nsid)
            .filter(|of| controller.has_zns() || of.zone_lbas == 0)
            .ok_or(no_namespace)?;
        let is_report = matches!(command, IoCommand::ReservationReport(_));
        if access == NamespaceAccess::ReadOnly && !is_report {
            return Err(Failure::at(Status::NAMESPACE_WRITE_PROTECTED, byte::NSID));
        }
        let host = controller
            .identifier
            .ok_or(Failure::from(Status::HOST_IDENTIFIER_NOT_INITIALIZED))?;
        let transfer = match command {
            IoCommand::ReservationReport(report) => {
                let bytes = report.numd * 4;
                if bytes > u64::from(self.max_transfer_bytes) {
                    return Err(Failure::field(byte::CDW10));
                }
                Transfer::ToHost(bytes)
            }
            IoCommand::ReservationRelease(_) => Transfer::FromHost(size_of::<ReleaseData>() as u64),
            _ => Transfer::FromHost(size_of::<RegisterData>() as u64),
        };
        Ok((command, host, transfer))
    }

    /// Carries out a reservation command.
    pub(super) fn reserve(
        &mut self,
        (queue, slot): (u32, u32),
        entry: &SubmissionEntry,
        data: Option<&[u8]>,
        data_len: u32,
    ) -> Result<Answer, Failure> {
        let done = self.checked_reservation(slot, entry);
        let done = done.and_then(|(command, host, _)| match command {
            IoCommand::ReservationReport(report) => self.report(host, report, data_len),
            IoCommand::ReservationRegister(register) => self.register(host, register, data),
            IoCommand::ReservationAcquire(acquire) => {
                self.acquire((queue, entry.cdw0.cid()), host, acquire, data)
            }
            IoCommand::ReservationRelease(release) => self.release_reservation(host, release, data),
            _ => Err(Failure::at(Status::INVALID_OPCODE, byte::OPC)),
        });
        self.activity.without_drive(entry, done.is_err());
        done
    }

    fn register(
        &mut self,
        host: HostId,
        command: ReservationRegister,
        data: Option<&[u8]>,
    ) -> Result<Answer, Failure> {
        let keys: RegisterData = data_as(data)?;
        let command_of = Register {
            action: command.rrega,
            ignores_key: command.iekey,
            persistence: command.cptpl,
            key: keys.crkey.get(),
            new_key: keys.nrkey.get(),
        };
        let has_same_format = |of: &mut Reservations| {
            let mut registrants = of.registrants();
            registrants.all(|(of, _)| is_short(of.host) == is_short(host))
        };
        self.change(command.nsid, |of| match has_same_format(of) {
            true => of.register(host, &command_of).map_err(refused),
            false => Err(Failure::from(Status::HOST_ID_INCONSISTENT_FORMAT)),
        })?;
        Ok(Answer::value(0))
    }

    fn release_reservation(
        &mut self,
        host: HostId,
        command: ReservationRelease,
        data: Option<&[u8]>,
    ) -> Result<Answer, Failure> {
        let keys: ReleaseData = data_as(data)?;
        let command_of = Release {
            action: command.rrela,
            ignores_key: command.iekey,
            rtype: command.rtype,
            key: keys.crkey.get(),
        };
        self.change(command.nsid, |of| {
            of.release(host, &command_of).map_err(refused)
        })?;
        Ok(Answer::value(0))
    }

    fn acquire(
        &mut self,
        (queue, cid): (u32, u16),
        host: HostId,
        command: ReservationAcquire,
        data: Option<&[u8]>,
    ) -> Result<Answer, Failure> {
        let keys: AcquireData = data_as(data)?;
        let command_of = Acquire {
            action: command.racqa,
            ignores_key: command.iekey,
            rtype: command.rtype,
            key: keys.crkey.get(),
            preempted_key: keys.prkey.get(),
        };
        let preempted = self.change(command.nsid, |of| {
            of.acquire(host, &command_of).map_err(refused)
        })?;
        if command.racqa != AcquireAction::PREEMPT_AND_ABORT || preempted.is_empty() {
            return Ok(Answer::value(0));
        }
        self.abort_held(command.nsid, &preempted);
        let flights = self.flights_of(command.nsid, &preempted);
        if flights.is_empty() {
            return Ok(Answer::value(0));
        }
        self.queues.at(queue).in_drive += 1;
        self.preemptions.push(Preemption {
            queue,
            cid,
            flights,
        });
        Ok(Answer::Later)
    }

    /// Changes the reservations of a namespace, keeps what outlives a loss of power, and
    /// tells hosts. Returns those that were preempted.
    fn change(
        &mut self,
        nsid: u32,
        change: impl FnOnce(&mut Reservations) -> Result<Effects, Failure>,
    ) -> Result<Vec<HostId>, Failure> {
        let of = self.reservations.get_mut(nsid.wrapping_sub(1) as usize);
        let of = of.ok_or(Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID))?;
        let was_persistent = of.is_persistent();
        let effects = change(of)?;
        if was_persistent || of.is_persistent() {
            self.keep_reservations();
        }
        for (host, what) in effects.notices {
            self.notify_host(nsid, host, what);
        }
        Ok(effects.preempted)
    }

    fn keep_reservations(&mut self) {
        let bytes = reservations::write((1..).zip(&self.reservations));
        self.drive.drive_mut().kept_reservations().put(&bytes);
    }

    /// Power was lost.
    pub(super) fn reservations_lose_power(&mut self) {
        self.reservations
            .iter_mut()
            .for_each(Reservations::lose_power);
    }

    /// Tells the controllers of a host what became of its registration or the reservation.
    fn notify_host(&mut self, nsid: u32, host: HostId, what: NotificationType) {
        let is_its = |of: &super::state::Controller| of.identifier == Some(host) && of.is_ready();
        let io = self.controllers.iter().filter(|(_, of)| is_its(of));
        let slots: Vec<u32> = io.map(|(slot, _)| slot).collect();
        for slot in slots {
            if self.rights(slot, nsid).is_none() {
                continue;
            }
            let controller = self.controllers.at(slot);
            if controller.features.masks_notification(nsid, what) {
                continue;
            }
            controller.events.note_reservation(nsid, what);
            let enabled = controller.features.events;
            controller.events.note(Event::Reservation, enabled);
            self.tell_events(slot);
        }
    }

    fn report(
        &mut self,
        host: HostId,
        command: ReservationReport,
        data_len: u32,
    ) -> Result<Answer, Failure> {
        let bytes = command.numd * 4;
        if bytes != u64::from(data_len) {
            return Err(Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8));
        }
        let inconsistent = Failure::at(Status::HOST_ID_INCONSISTENT_FORMAT, byte::CDW11);
        if command.eds == is_short(host) {
            return Err(inconsistent);
        }
        let of = self.reservations.get(command.nsid.wrapping_sub(1) as usize);
        let of = of.ok_or(Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID))?;
        let mut status = ReservationStatus::new_zeroed();
        status.generation = of.generation().into();
        status.rtype = of.rtype();
        // Fits: registrants are bounded far below.
        status.regstrnt = (of.registrants().len() as u16).into();
        status.ptpls = u8::from(of.is_persistent());
        let mut out = match command.eds {
            true => {
                let mut extended = ReservationStatusExtended::new_zeroed();
                extended.status = status;
                extended.as_bytes().to_vec()
            }
            false => status.as_bytes().to_vec(),
        };
        for (registrant, is_holder) in of.registrants() {
            let cntlid = self.controller_of(registrant.host).into();
            let rcsts = RegistrantStatus::default().with_is_holder(is_holder);
            match (registrant.host, command.eds) {
                (HostId::Extended(hostid), true) => {
                    let mut entry = RegistrantExtended::new_zeroed();
                    (entry.cntlid, entry.rcsts, entry.hostid) = (cntlid, rcsts, hostid);
                    entry.rkey = registrant.key.into();
                    out.extend_from_slice(entry.as_bytes());
                }
                (HostId::Short(hostid), false) => {
                    let mut entry = Registrant::new_zeroed();
                    (entry.cntlid, entry.rcsts) = (cntlid, rcsts);
                    entry.hostid = hostid.into();
                    entry.rkey = registrant.key.into();
                    out.extend_from_slice(entry.as_bytes());
                }
                _ => return Err(inconsistent),
            }
        }
        // Fits: it is at most the largest transfer.
        let mut buf: Buf = self.pool.take_zeroed(bytes as usize);
        let len = out.len().min(buf.len());
        buf[..len].copy_from_slice(&out[..len]);
        Ok(Answer::data(buf))
    }

    /// The first controller of a host.
    fn controller_of(&self, host: HostId) -> u16 {
        let of_host =
            |of: &super::state::Controller| of.kind == Kind::Io && of.identifier == Some(host);
        let mut all = self.controllers.iter().filter(|(_, of)| of_host(of));
        // Fits: there are fewer controllers than identifiers.
        all.next()
            .map_or(NO_CONTROLLER, |(slot, _)| (slot + 1) as u16)
    }

    /// Flights in a namespace of hosts that were preempted. Whose queues are gone, nobody
    /// knows any more.
    fn flights_of(&mut self, nsid: u32, hosts: &[HostId]) -> Vec<u32> {
        let in_namespace = self.flights.iter().filter(|(_, of)| of.is_in(nsid));
        let all: Vec<(u32, u32)> = in_namespace.map(|(slot, of)| (slot, of.queue())).collect();
        let waits = |queue: u32| {
            let of = self.queues.at(queue);
            let controller = self.controllers.get(of.controller);
            let host = controller.and_then(|controller| controller.identifier);
            of.life != Life::Open || host.is_some_and(|host| hosts.contains(&host))
        };
        let mut waits = waits;
        let waiting = all.into_iter().filter(|(_, queue)| waits(*queue));
        waiting.map(|(slot, _)| slot).collect()
    }

    /// A flight has ended, and with it perhaps the wait of an acquisition.
    #[cold]
    pub(super) fn preemptions_go_on(&mut self, flight: u32) {
        for preemption in &mut self.preemptions {
            preemption.flights.retain(|of| *of != flight);
        }
        while let Some(at) = self.preemptions.iter().position(|of| of.flights.is_empty()) {
            let Preemption { queue, cid, .. } = self.preemptions.swap_remove(at);
            let of = self.queues.at(queue);
            of.in_drive -= 1;
            if of.life == Life::Open {
                of.end(cid);
                let entry = CompletionEntry::new(cid, Status::SUCCESS);
                self.post(queue, entry, None, None);
            } else {
                self.free_if_over(queue);
            }
        }
    }

    /// Set Features: Reservation Notification Mask.
    pub(super) fn set_notification_mask(
        &mut self,
        slot: u32,
        command: &SetFeatures,
    ) -> Result<Answer, Failure> {
        let mask = NotificationMask::from_bits(command.dword11);
        for nsid in self.named(slot, command.nsid)? {
            let features = &mut self.controllers.at(slot).features;
            features.set_notification_mask(nsid, mask);
        }
        Ok(Answer::value(0))
    }

    /// Set Features: Reservation Persistence.
    pub(super) fn set_persistence(
        &mut self,
        slot: u32,
        command: &SetFeatures,
    ) -> Result<Answer, Failure> {
        let ptpl = ReservationPersistence::from_bits(command.dword11).ptpl();
        let named = self.named(slot, command.nsid)?;
        let may_write = |nsid: &u32| self.rights(slot, *nsid) == Some(NamespaceAccess::ReadWrite);
        if !named.iter().all(may_write) {
            return Err(Failure::at(Status::NAMESPACE_WRITE_PROTECTED, byte::NSID));
        }
        let can = |nsid: &u32| self.reservations[*nsid as usize - 1].can_persist();
        if ptpl && !named.iter().all(can) {
            return Err(Failure::field(byte::CDW11));
        }
        for nsid in named {
            self.change(nsid, |of| {
                let set = of.set_persistent(ptpl).map_err(refused);
                set.map(|()| Effects::default())
            })?;
        }
        Ok(Answer::value(0))
    }

    /// Get Features: Reservation Persistence.
    pub(super) fn persistence(&self, slot: u32, command: &GetFeatures) -> Result<Answer, Failure> {
        let no_namespace = Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID);
        self.rights(slot, command.nsid).ok_or(no_namespace)?;
        let of = self.reservations.get(command.nsid.wrapping_sub(1) as usize);
        let ptpl = of.ok_or(no_namespace)?.is_persistent();
        let value = ReservationPersistence::default().with_ptpl(ptpl);
        Ok(Answer::value(value.bits().into()))
    }

    /// The namespaces that a command with a value for one, or for all, names.
    fn named(&self, slot: u32, nsid: u32) -> Result<Vec<u32>, Failure> {
        if nsid == u32::MAX {
            return Ok(self.visible(slot).map(|(nsid, _)| nsid).collect());
        }
        let no_namespace = Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID);
        self.rights(slot, nsid).ok_or(no_namespace)?;
        Ok(vec![nsid])
    }

    /// Set Features: Host Identifier, of a host that named none before.
    pub(super) fn set_host_identifier(
        &mut self,
        slot: u32,
        command: &SetFeatures,
        data: Option<&[u8]>,
    ) -> Result<Answer, Failure> {
        if self.controllers.at(slot).identifier.is_some() {
            return Err(Failure::from(Status::COMMAND_SEQUENCE_ERROR));
        }
        let host = match HostIdentifier::from_bits(command.dword11).exhid() {
            true => host_of(data_as(data)?),
            false => {
                let id = u64::from_le_bytes(data_as(data)?);
                (id != 0).then_some(HostId::Short(id))
            }
        };
        let differs = |host| {
            let mut others = self.controllers.iter().filter_map(|(_, of)| of.identifier);
            others.any(|of| is_short(of) != is_short(host))
        };
        if host.is_some_and(differs) {
            return Err(Failure::at(
                Status::HOST_ID_INCONSISTENT_FORMAT,
                byte::CDW11,
            ));
        }
        self.controllers.at(slot).identifier = host;
        Ok(Answer::value(0))
    }
}

const fn is_short(host: HostId) -> bool {
    matches!(host, HostId::Short(_))
}
