//! Whatever a host sends: bytes become commands, time and queues, and what
//! must always hold is checked.

use core::num::NonZeroU64;

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::fabrics::{CNTLID_DYNAMIC, Connect, ConnectData, PropertySet};
use zonelab_nvme::identify::Nqn;
use zonelab_nvme::property::{CommandSetSelected, Configuration, Property};
use zonelab_nvme::queue::{SglDescriptor, SubmissionEntry};
use zonelab_nvme::zerocopy::{FromBytes, FromZeros};
use zonelab_ssd::config::{BufferRelease, DataStore, Placement, WriteBufferConfig};
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::{Drive, profile};

use super::state::Life;
use super::{
    Done, HostRules, NamespaceAccess, Permissions, Quality, QueueHandle, Subsystem,
    SubsystemSettings,
};

/// The name of the subsystem.
const NQN: &str = "nqn.2026-01.io.zonelab:fuzz";
/// Bytes of one step: what to do, and the entry.
const STEP_BYTES: usize = 4 + 64;
/// Opcodes that are drawn more often than others.
const IO_OPCODES: [u8; 8] = [0x00, 0x01, 0x02, 0x79, 0x7a, 0x7d, 0x01, 0x7d];
const ADMIN_OPCODES: [u8; 8] = [0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x7f, 0x80];

/// Throws `bytes` at a subsystem as commands of one host: each step of 68 bytes
/// is a choice (queue, opcode, length, time) and a submission queue entry.
///
/// # Panics
/// If an invariant of the subsystem is broken: a command completes twice or
/// without having been sent, a successful read has data of another length, a
/// command of an open queue never completes (event requests aside), or a count
/// is wrong.
pub fn fuzz_command(bytes: &[u8]) {
    let Some(mut run) = Run::new(bytes.first().copied().unwrap_or(0)) else {
        return;
    };
    for step in bytes.chunks_exact(STEP_BYTES) {
        run.step(step);
    }
    run.end();
}

const HOSTNQN: &str = "nqn.2026-01.io.zonelab:fuzzer";

/// Rules with which commands wait for their turn now and then.
fn rules(is_written: bool) -> HostRules {
    let access = match is_written {
        true => NamespaceAccess::ReadWrite,
        false => NamespaceAccess::ReadOnly,
    };
    HostRules {
        hostnqn: HOSTNQN.to_owned(),
        namespaces: vec![(1, access)],
        permissions: Permissions {
            format: is_written,
            ..Permissions::default()
        },
        quality: Quality {
            operations_per_s: NonZeroU64::new(1000),
            bytes_per_s: NonZeroU64::new(1_000_000_000),
        },
    }
}

/// A host, and what it waits for.
struct Run {
    subsystem: Subsystem,
    now: Nanos,
    admin: QueueHandle,
    cntlid: u16,
    io: Option<QueueHandle>,
    /// Queue, identifier, opcode, room for data.
    waiting: Vec<(QueueHandle, u16, u8, u32)>,
}

impl Run {
    /// Bit 0 of `kind`: a write buffer. Bit 1: its host has rules, bit 2: which let it write.
    fn new(kind: u8) -> Option<Self> {
        let is_buffered = kind & 1 != 0;
        let mut config = profile::builtin("confznspp")?.config;
        config.geometry.pages_per_block = 4;
        config.geometry.blocks_per_plane = 64;
        config.zones.count = 6;
        config.zones.capacity_lbas = 128;
        config.zones.size_lbas = 160;
        config.zones.max_open = Some(3);
        config.zones.max_active = Some(4);
        config.zones.descriptor_extension_bytes = 64;
        config.data = DataStore::Memory;
        config.write_buffer = is_buffered.then_some(WriteBufferConfig {
            size_bytes: 1 << 18,
            power_loss_protection: false,
            release: BufferRelease::Program,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Placement::InOrder,
        });
        let drive = FaultyDrive::from(Drive::new(&config));
        let mut subsystem = Subsystem::new(drive, SubsystemSettings::new(NQN)).ok()?;
        if kind & 2 != 0 {
            subsystem
                .set_hosts(Nanos::ZERO, Some(vec![rules(kind & 4 != 0)]))
                .ok()?;
        }
        let mut run = Self {
            subsystem,
            now: Nanos::ZERO,
            admin: QueueHandle(0),
            cntlid: CNTLID_DYNAMIC,
            io: None,
            waiting: Vec::new(),
        };
        run.start();
        Some(run)
    }

    /// Connects, enables and connects an I/O queue.
    fn start(&mut self) {
        self.cntlid = CNTLID_DYNAMIC;
        self.io = None;
        let Some(admin) = self.connect(0) else {
            return;
        };
        self.admin = admin;
        let cc = Configuration::default()
            .with_en(true)
            .with_css(CommandSetSelected::ALL)
            .with_iosqes(6)
            .with_iocqes(4);
        if let Ok(entry) = PropertySet::new(Property::CC, cc.bits().into()).to_entry() {
            self.send(admin, entry.with_cid(0), None, 0);
        }
        self.advance(self.now);
        self.io = self.connect(1);
    }

    fn connect(&mut self, qid: u16) -> Option<QueueHandle> {
        let mut data = ConnectData::new_zeroed();
        data.cntlid = self.cntlid.into();
        data.subnqn = Nqn::new(NQN)?;
        data.hostnqn = Nqn::new(HOSTNQN)?;
        let command = Connect::new(qid, 64);
        let entry = command.to_entry().ok()?;
        let connected = self
            .subsystem
            .connect(self.now, (&entry, &command), &data)
            .ok()?;
        if qid == 0 {
            // Fits: the low half is the identifier.
            self.cntlid = connected.completion.dw0.get() as u16;
        }
        Some(connected.queue)
    }

    fn step(&mut self, step: &[u8]) {
        let (choice, entry) = step.split_at(4);
        let Ok(mut entry) = SubmissionEntry::read_from_bytes(entry) else {
            return;
        };
        let queue = match self.io {
            Some(io) if choice[0] & 2 != 0 => io,
            _ => self.admin,
        };
        if choice[0] & 4 != 0 {
            let opcodes = if queue == self.admin {
                ADMIN_OPCODES
            } else {
                IO_OPCODES
            };
            entry.cdw0 = entry
                .cdw0
                .with_opc(opcodes[usize::from(choice[1] & 7)])
                .with_fuse(0);
            entry.nsid = u32::from(choice[1] >> 3 & 1 | u8::from(choice[1] & 0x70 == 0)).into();
            // Addresses and counts near those that exist.
            entry.cdw10 = (entry.cdw10.get() & 0x3ff).into();
            entry.cdw11 = (entry.cdw11.get() & u32::from(choice[2] >> 7)).into();
            entry.cdw12 = (entry.cdw12.get() & 0xc000_001f).into();
            entry.cdw13 = (entry.cdw13.get() & 0x313).into();
        }
        let len = self.length(&entry, choice[2]);
        if choice[0] & 8 == 0 {
            entry = entry.with_sgl(SglDescriptor::transport(len));
        }
        let is_from_host = entry.cdw0.opc() & 3 == 1;
        let data = (is_from_host && len > 0).then(|| Buf::zeroed(len as usize));
        let room = if is_from_host { 0 } else { len };
        self.send(queue, entry, data, room);
        if choice[0] & 0xf0 == 0xf0 {
            self.leave(choice[1] & 1 == 0);
        } else if choice[0] & 0x10 != 0 {
            let span = Nanos(u64::from(choice[3]) << (choice[2] & 0xf));
            self.advance(self.now.saturating_add(span));
        }
    }

    /// A length of data: often the right one.
    fn length(&self, entry: &SubmissionEntry, choice: u8) -> u32 {
        let blocks = (entry.cdw12.get() & 0x1f) + 1;
        match choice & 3 {
            0 => blocks * self.subsystem.drive().drive().config().lba_bytes,
            1 => 4096,
            2 => blocks * 4,
            _ => u32::from(choice >> 2) * 16,
        }
    }

    fn send(&mut self, queue: QueueHandle, entry: SubmissionEntry, data: Option<Buf>, room: u32) {
        let of = self.subsystem.queues.get_mut(queue.0);
        if of.is_some_and(|of| of.life == Life::Open) {
            let (cid, opcode) = (entry.cdw0.cid(), entry.cdw0.opc());
            self.waiting.push((queue, cid, opcode, room));
        }
        self.subsystem.submit(self.now, queue, &entry, data, room);
    }

    /// The transport loses a connection; a host without admin queue starts anew.
    fn leave(&mut self, is_io: bool) {
        match self.io {
            Some(io) if is_io => {
                self.close(io);
                self.io = self.connect(1);
            }
            _ => {
                self.close(self.admin);
                self.advance(self.now);
            }
        }
    }

    fn close(&mut self, queue: QueueHandle) {
        self.subsystem.disconnect(self.now, queue);
        self.waiting.retain(|(of, ..)| *of != queue);
        if queue == self.admin {
            self.advance(self.now);
            self.start();
        }
    }

    fn advance(&mut self, to: Nanos) {
        self.now = to;
        let (mut done, mut closed) = (Vec::new(), Vec::new());
        self.subsystem.advance(to, &mut done, &mut closed);
        for done in done {
            self.check(done);
        }
        for queue in closed {
            if Some(queue) == self.io {
                self.io = None;
            }
            self.close(queue);
        }
        self.subsystem.assert_invariants();
    }

    fn check(&mut self, done: Done) {
        let cid = done.entry.cid.get();
        let sent =
            |(queue, of, ..): &(QueueHandle, u16, u8, u32)| *queue == done.queue && *of == cid;
        // Which of two commands of one identifier was refused for it.
        let at = match done.entry.status.status() {
            Status::COMMAND_ID_CONFLICT => self.waiting.iter().rposition(sent),
            _ => self.waiting.iter().position(sent),
        };
        let at = at.expect("a completion is that of a command in flight");
        let (.., opcode, room) = self.waiting.remove(at);
        if let Some(data) = done.data {
            assert!(done.entry.status.status().is_success());
            let same = self.waiting.iter().any(sent);
            assert!(
                same || data.len() as u64 == u64::from(room),
                "opcode {opcode:#x}"
            );
            self.subsystem.recycle(data);
        }
        assert!(done.due <= self.now);
    }

    fn end(mut self) {
        // Longer than any command, shorter than an association lingers.
        self.advance(self.now.saturating_add(Nanos::from_secs(10)));
        for (queue, cid, opcode, _) in &self.waiting {
            let is_event_request = *queue == self.admin && *opcode == 0x0c;
            assert!(
                is_event_request,
                "command {cid} with opcode {opcode:#x} is lost"
            );
        }
        assert_eq!(self.subsystem.flights.len(), 0);
    }
}

impl Subsystem {
    /// Checks counts against each other.
    fn assert_invariants(&self) {
        let in_drive: u32 = self.queues.iter().map(|(_, of)| of.in_drive).sum();
        let formats = u32::from(self.format.is_some());
        assert!(in_drive as usize <= self.flights.len() + formats as usize);
        for (slot, queue) in self.queues.iter() {
            assert!(queue.in_drive <= queue.in_flight);
            if queue.life == Life::Open {
                let has =
                    |(_, of): (u32, &super::state::Controller)| of.queues().any(|q| q == slot);
                assert!(self.controllers.iter().any(has), "queue {slot} is nobody's");
            }
        }
        self.drive.drive().zones().assert_invariants();
    }
}
