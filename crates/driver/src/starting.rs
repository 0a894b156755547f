//! How a connection becomes a controller that can be used, and ends again.

use zonelab_device::{Buf, Monotonic, Nanos};
use zonelab_nvme::command::SetFeatures;
use zonelab_nvme::fabrics::{
    CNTLID_DYNAMIC, Connect, ConnectAttributes, ConnectData, ConnectResponse, InvalidParameter,
    PropertyGet, PropertySet,
};
use zonelab_nvme::feature::FeatureId;
use zonelab_nvme::identify::Nqn;
use zonelab_nvme::property::{
    Capabilities, CommandSetSelected, Configuration, ControllerStatus, Property,
    ShutdownNotification, ShutdownStatus,
};
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::status::FabricsStatus;
use zonelab_nvme::zerocopy::{FromZeros, IntoBytes};

use crate::authentication::authenticate;
use crate::clock::sleep;
use crate::controller::{Options, kato_ms};
use crate::error::DriverError;
use crate::identity::Identity;
use crate::inquiry::Asks;
use crate::socket::{Reply, Socket};
use crate::tcp::{Settings, Transfer};
use crate::url::TcpAddress;

/// A connection to a controller that is not known yet, or no longer.
pub(crate) struct Starting {
    pub(crate) admin: Socket,
    pub(crate) cntlid: u16,
    pub(crate) timeout: Nanos,
}

impl Asks for Starting {
    fn ask(
        &mut self,
        what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        self.admin.call(what, entry, transfer, self.timeout)
    }
}

impl Starting {
    pub(crate) fn open(options: &Options, clock: Monotonic) -> Result<Self, DriverError> {
        let open_by = clock.now().saturating_add(options.connect_timeout);
        let address = &options.address;
        let settings = Settings {
            hdgst: address.hdgst,
            ddgst: address.ddgst,
            ..Settings::admin(open_by)
        };
        let place = (address.host.as_str(), address.port);
        let mut admin = Socket::open(place, settings, clock, options.connect_timeout)?;
        let connect = Connect {
            kato: kato_ms(options),
            ..Connect::new(0, u32::from(settings.slots) + 1)
        };
        let cntlid = fabrics_connect(&mut admin, options, connect, CNTLID_DYNAMIC)?;
        Ok(Self {
            admin,
            cntlid,
            timeout: options.command_timeout,
        })
    }

    fn property(&mut self, property: Property) -> Result<u64, DriverError> {
        let entry = PropertyGet::new(property).to_entry()?;
        let reply = self.ask("Property Get", entry, Transfer::None)?;
        Ok(reply.fabrics_ok("Property Get")?.entry.result())
    }

    fn set_property(&mut self, property: Property, value: u64) -> Result<(), DriverError> {
        let entry = PropertySet::new(property, value).to_entry()?;
        let reply = self.ask("Property Set", entry, Transfer::None)?;
        reply.fabrics_ok("Property Set").map(drop)
    }

    fn status(&mut self) -> Result<ControllerStatus, DriverError> {
        let csts = self.property(Property::CSTS)?;
        Ok(ControllerStatus::from_bits(csts as u32))
    }

    /// Reads CSTS until `holds`.
    fn await_status(
        &mut self,
        state: &'static str,
        within: Nanos,
        holds: impl Fn(ControllerStatus) -> bool,
    ) -> Result<(), DriverError> {
        let clock = self.admin.clock;
        let end = clock.now().saturating_add(within);
        loop {
            let csts = self.status()?;
            if holds(csts) {
                return Ok(());
            }
            if csts.cfs() {
                return Err(DriverError::ControllerFatal);
            }
            if clock.now() >= end {
                return Err(DriverError::NotReady { state, within });
            }
            sleep(clock, Nanos::from_ms(5));
        }
    }

    /// Enables the controller with all its command sets, and returns CAP.
    pub(crate) fn enable(&mut self) -> Result<Capabilities, DriverError> {
        let cap = Capabilities::from_bits(self.property(Property::CAP)?);
        let css = match cap.css_io() {
            true => CommandSetSelected::ALL,
            false => CommandSetSelected::NVM,
        };
        let cc = Configuration::default()
            .with_css(css)
            .with_iosqes(6)
            .with_iocqes(4)
            .with_en(true);
        self.set_property(Property::CC, cc.bits().into())?;
        // TO counts units of 500 ms; 0 is said by some that need none.
        let within = Nanos::from_ms(500 * u64::from(cap.to().max(1)));
        self.await_status("ready", within, ControllerStatus::rdy)?;
        Ok(cap)
    }

    pub(crate) fn shut_down(&mut self, within: Nanos) -> Result<(), DriverError> {
        let cc = Configuration::from_bits(self.property(Property::CC)? as u32);
        let cc = cc.with_shn(ShutdownNotification::NORMAL);
        self.set_property(Property::CC, cc.bits().into())?;
        self.await_status("shut down", within, |csts| {
            csts.shst() == ShutdownStatus::COMPLETE
        })
    }

    /// Asks for I/O queues, and returns how many there are.
    pub(crate) fn queues(&mut self, wanted: u16) -> Result<u16, DriverError> {
        let wanted_z = u32::from(wanted.max(1) - 1);
        let fid = FeatureId::NUMBER_OF_QUEUES;
        let entry = SetFeatures::new(0, fid, wanted_z | wanted_z << 16).to_entry()?;
        let what = "Set Features, number of queues";
        let reply = self.ask(what, entry, Transfer::None)?.ok(what)?;
        let granted = reply.entry.dw0.get();
        let (submission_z, completion_z) = (granted as u16, (granted >> 16) as u16);
        Ok(submission_z
            .min(completion_z)
            .saturating_add(1)
            .min(wanted.max(1)))
    }
}

/// Makes a connection a queue: sends Connect, authenticates if the controller
/// asks for it, and returns the controller identifier.
fn fabrics_connect(
    socket: &mut Socket,
    options: &Options,
    connect: Connect,
    cntlid: u16,
) -> Result<u16, DriverError> {
    let address = &options.address;
    let mut data = ConnectData::new_zeroed();
    data.hostid = address.hostid.0;
    data.cntlid = cntlid.into();
    // The parser of addresses takes no longer names.
    data.subnqn = Nqn::new(&address.subnqn).unwrap_or(data.subnqn);
    data.hostnqn = Nqn::new(&address.hostnqn).unwrap_or(data.hostnqn);
    let connect = Connect {
        cattr: ConnectAttributes::default().with_disable_sq_flow_control(true),
        ..connect
    };
    let transfer = Transfer::ToController(Buf::from(data.as_bytes().to_vec()));
    let timeout = options.connect_timeout;
    let reply = socket.call("Connect", connect.to_entry()?, transfer, timeout)?;
    let dword0 = reply.entry.dw0;
    let reply = reply.fabrics_ok("Connect").map_err(|refusal| {
        named_wrongly(refusal, InvalidParameter::from_bits(dword0.get()), address)
    })?;
    let response = ConnectResponse::from_dword0(reply.entry.dw0);
    authenticate(socket, options, connect.qid, response.authreq)?;
    Ok(response.cntlid.get())
}

/// A refusal of Connect in words, if what is not valid is the name of the subsystem.
fn named_wrongly(
    refusal: DriverError,
    parameter: InvalidParameter,
    address: &TcpAddress,
) -> DriverError {
    let invalid = FabricsStatus::CONNECT_INVALID_PARAMETERS.status();
    let is_invalid = matches!(refusal, DriverError::Command { status, .. } if status == invalid);
    let is_name = parameter.in_data()
        && usize::from(parameter.ipo()) == core::mem::offset_of!(ConnectData, subnqn);
    if !is_invalid || !is_name {
        return refusal;
    }
    let host = match address.host.contains(':') {
        true => format!("[{}]", address.host),
        false => address.host.clone(),
    };
    DriverError::NoSubsystem {
        place: format!("{host}:{}", address.port),
        subnqn: address.subnqn.clone(),
        source: Box::new(refusal),
    }
}

/// Opens I/O queue `qid`.
pub(crate) fn open_queue(
    options: &Options,
    clock: Monotonic,
    cntlid: u16,
    identity: &Identity,
    qid: u16,
) -> Result<Socket, DriverError> {
    let address = &options.address;
    let most = u32::from(identity.cap.mqes_z()) + 1;
    // MAXCMD is 0 where it is not said.
    let maxcmd = match identity.controller.maxcmd.get() {
        0 => most,
        maxcmd => u32::from(maxcmd),
    };
    let entries = options
        .queue_entries
        .clamp(2, 1 << 16)
        .min(most)
        .min(maxcmd)
        .max(2);
    let settings = Settings {
        hdgst: address.hdgst,
        ddgst: address.ddgst,
        slots: (entries - 1) as u16,
        in_capsule_bytes: identity.in_capsule_bytes(),
        ..Settings::admin(clock.now().saturating_add(options.connect_timeout))
    };
    let place = (address.host.as_str(), address.port);
    let mut socket = Socket::open(place, settings, clock, options.connect_timeout)?;
    fabrics_connect(&mut socket, options, Connect::new(qid, entries), cntlid)?;
    Ok(socket)
}
