//! A host in memory: it speaks submission and completion entries to a
//! subsystem under a clock that jumps.

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::command::{AdminCommand, IoCommand};
use zonelab_nvme::fabrics::{
    Connect, ConnectData, ConnectResponse, FabricsCommand, PropertyGet, PropertySet,
};
use zonelab_nvme::identify::Nqn;
use zonelab_nvme::property::{CommandSetSelected, Configuration, Property};
use zonelab_nvme::queue::{CompletionEntry, SglDescriptor, SubmissionEntry};
use zonelab_nvme::zerocopy::FromZeros;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_ssd::{Drive, profile};
use zonelab_target::controller::{Done, QueueHandle, Subsystem, SubsystemSettings};

/// The subsystem of the tests.
pub(crate) const NQN: &str = "nqn.2026-01.io.zonelab:test";
/// The host of the tests.
pub(crate) const HOST: &str = "nqn.2026-01.io.zonelab:host";

/// 6 zones of 160 blocks with 128 writable ones, 4 KiB each; at most 3 open
/// and 4 active; extensions of 64 bytes. Data is kept.
pub(crate) fn small() -> DriveConfig {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 64;
    config.zones.count = 6;
    config.zones.capacity_lbas = 128;
    config.zones.size_lbas = 160;
    config.zones.max_open = Some(3);
    config.zones.max_active = Some(4);
    config.zones.read_across = false;
    config.zones.descriptor_extension_bytes = 64;
    config.data = zonelab_ssd::config::DataStore::Memory;
    config
}

/// A subsystem on [`small`].
pub(crate) fn subsystem() -> Subsystem {
    with_faults(&small(), FaultPlan::default())
}

pub(crate) fn with_faults(config: &DriveConfig, plan: FaultPlan) -> Subsystem {
    let drive = FaultyDrive::new(Drive::new(config), plan);
    Subsystem::new(drive, SubsystemSettings::new(NQN)).expect("the settings are possible")
}

/// What a command came back with.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) entry: CompletionEntry,
    pub(crate) data: Option<Buf>,
    pub(crate) due: Nanos,
}

impl Reply {
    pub(crate) fn status(&self) -> Status {
        self.entry.status.status()
    }

    /// The data of a command that succeeded.
    pub(crate) fn data(&self) -> &[u8] {
        assert_eq!(self.status(), Status::SUCCESS);
        self.data.as_deref().expect("the command has data")
    }
}

/// A host with one association, and the subsystem that it is connected to.
pub(crate) struct Host {
    pub(crate) subsystem: Subsystem,
    pub(crate) now: Nanos,
    pub(crate) admin: QueueHandle,
    pub(crate) io: QueueHandle,
    pub(crate) cntlid: u16,
    pub(crate) closed: Vec<QueueHandle>,
    /// Completions that nobody has waited for yet.
    pub(crate) inbox: Vec<Done>,
    next_cid: u16,
}

/// Connect data of [`HOST`].
pub(crate) fn connect_data(subnqn: &str, cntlid: u16) -> ConnectData {
    let mut data = ConnectData::new_zeroed();
    data.hostid = [7; 16];
    data.cntlid = cntlid.into();
    data.subnqn = Nqn::new(subnqn).expect("it fits");
    data.hostnqn = Nqn::new(HOST).expect("it fits");
    data
}

/// Connects a queue; gives the completion of a refusal.
pub(crate) fn connect(
    subsystem: &mut Subsystem,
    now: Nanos,
    connect: Connect,
    data: &ConnectData,
) -> Result<(QueueHandle, u16), CompletionEntry> {
    let entry = connect.to_entry().expect("it fits").with_cid(9);
    let connected = subsystem.connect(now, (&entry, &connect), data)?;
    assert_eq!(connected.completion.cid.get(), 9);
    let response = ConnectResponse::from_dword0(connected.completion.dw0);
    Ok((connected.queue, response.cntlid.get()))
}

/// The value of CC that a Linux host enables with.
pub(crate) fn enabled() -> Configuration {
    Configuration::default()
        .with_en(true)
        .with_css(CommandSetSelected::ALL)
        .with_iosqes(6)
        .with_iocqes(4)
}

impl Host {
    /// Connected and enabled, with one I/O queue.
    pub(crate) fn new() -> Self {
        Self::of(subsystem())
    }

    pub(crate) fn of(subsystem: Subsystem) -> Self {
        let mut host = Self::admin_only(subsystem, Connect::new(0, 32));
        host.set_cc(enabled());
        host.connect_io(1);
        host
    }

    /// Connected and not enabled.
    pub(crate) fn admin_only(mut subsystem: Subsystem, command: Connect) -> Self {
        let data = connect_data(NQN, 0xffff);
        let (admin, cntlid) =
            connect(&mut subsystem, Nanos::ZERO, command, &data).expect("it is let in");
        Self {
            subsystem,
            now: Nanos::ZERO,
            admin,
            io: admin,
            cntlid,
            closed: Vec::new(),
            inbox: Vec::new(),
            next_cid: 0,
        }
    }

    pub(crate) fn connect_io(&mut self, qid: u16) {
        let data = connect_data(NQN, self.cntlid);
        let (io, _) = connect(&mut self.subsystem, self.now, Connect::new(qid, 64), &data)
            .expect("it is let in");
        self.io = io;
    }

    /// Submits without waiting; returns the command identifier.
    pub(crate) fn send(
        &mut self,
        queue: QueueHandle,
        entry: SubmissionEntry,
        data: Option<Vec<u8>>,
        room: usize,
    ) -> u16 {
        self.next_cid = self.next_cid.wrapping_add(1);
        let len = data.as_ref().map_or(room, Vec::len) as u32;
        let entry = entry
            .with_cid(self.next_cid)
            .with_sgl(SglDescriptor::transport(len));
        let data = data.map(Buf::from);
        self.subsystem
            .submit(self.now, queue, &entry, data, room as u32);
        while let Some(calculation) = self.subsystem.take_calculation() {
            self.subsystem.calculated(self.now, calculation.run());
        }
        self.next_cid
    }

    /// Runs until nothing happens any more, or until `to`.
    pub(crate) fn run(&mut self, to: Nanos) {
        while let Some(at) = self.subsystem.next_event().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.subsystem
                .advance(self.now, &mut self.inbox, &mut self.closed);
        }
    }

    /// The completion of a command, which has to come within a second.
    pub(crate) fn wait(&mut self, queue: QueueHandle, cid: u16) -> Reply {
        let limit = self.now.saturating_add(Nanos::from_secs(1));
        loop {
            if let Some(reply) = self.take(queue, cid) {
                return reply;
            }
            let next = self.subsystem.next_event().filter(|at| *at <= limit);
            self.run(next.expect("the command completes"));
        }
    }

    /// A completion that has come.
    pub(crate) fn take(&mut self, queue: QueueHandle, cid: u16) -> Option<Reply> {
        let is_it = |done: &Done| done.queue == queue && done.entry.cid.get() == cid;
        let at = self.inbox.iter().position(is_it)?;
        let done = self.inbox.remove(at);
        Some(Reply {
            entry: done.entry,
            data: done.data,
            due: done.due,
        })
    }

    pub(crate) fn call(
        &mut self,
        queue: QueueHandle,
        entry: SubmissionEntry,
        data: Option<Vec<u8>>,
        room: usize,
    ) -> Reply {
        let cid = self.send(queue, entry, data, room);
        self.wait(queue, cid)
    }

    /// An admin command with room for `room` bytes.
    pub(crate) fn admin(&mut self, command: AdminCommand, room: usize) -> Reply {
        let entry = command.to_entry().expect("it fits");
        self.call(self.admin, entry, None, room)
    }

    /// An I/O command with `data` for the device, or room for `room` bytes.
    pub(crate) fn io(&mut self, command: IoCommand, data: Option<Vec<u8>>, room: usize) -> Reply {
        let entry = command.to_entry().expect("it fits");
        self.call(self.io, entry, data, room)
    }

    pub(crate) fn fabrics(&mut self, command: FabricsCommand) -> Reply {
        let entry = command.to_entry().expect("it fits");
        self.call(self.admin, entry, None, 0)
    }

    pub(crate) fn property(&mut self, property: Property) -> u64 {
        let get = FabricsCommand::PropertyGet(PropertyGet::new(property));
        let reply = self.fabrics(get);
        assert_eq!(reply.status(), Status::SUCCESS);
        reply.entry.result()
    }

    pub(crate) fn set_cc(&mut self, cc: Configuration) {
        let set = PropertySet::new(Property::CC, cc.bits().into());
        let reply = self.fabrics(FabricsCommand::PropertySet(set));
        assert_eq!(reply.status(), Status::SUCCESS);
    }
}
