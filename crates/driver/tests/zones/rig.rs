//! Drives and namespaces for the tests.

use std::cell::Cell;
use std::rc::Rc;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Lba, NamespaceId, Nanos, Op, QueuePair, Rejected, Tag,
};
use zonelab_driver::pcie::{Function as _, PcieController, PcieOptions, PcieQueue};

use zonelab_driver::zones::{Settings, ZonedNamespace};
use zonelab_endpoint::{Endpoint, EndpointSettings};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::{BufferRelease, DataStore, Placement, WriteBufferConfig, ZrwaConfig};
use zonelab_ssd::{Drive, profile};

/// Bytes of a block.
pub(crate) const LBA: usize = 4096;
/// Blocks from one zone to the next.
pub(crate) const ZONE: u64 = 160;
/// Blocks of a zone that can be written.
pub(crate) const CAPACITY: u64 = 128;
/// Zones.
pub(crate) const ZONES: u32 = 6;
/// Zones that can be open, and active.
pub(crate) const MAX_OPEN: usize = 3;
pub(crate) const MAX_ACTIVE: usize = 4;

/// What the tags of reports have besides.
const REPORT: u32 = 1 << 16;

/// Changes a report.
pub(crate) type Change = fn(&mut [u8]);

/// What may be done to completions on their way.
#[derive(Clone, Default)]
pub(crate) struct Meddling {
    /// So many completions come together, the last of them first; 0 or 1: as they are.
    pub(crate) together: Rc<Cell<usize>>,
    /// This is added to results.
    pub(crate) shift: Rc<Cell<u64>>,
    /// This is done to reports.
    pub(crate) report: Rc<Cell<Option<Change>>>,
    /// Reports that were asked for.
    pub(crate) reports: Rc<Cell<u64>>,
}

/// A queue whose completions are meddled with.
pub(crate) struct Queue {
    inner: PcieQueue<Endpoint>,
    info: DeviceInfo,
    meddling: Meddling,
    held: Vec<Completion>,
}

impl QueuePair for Queue {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        let is_report = matches!(command.op, Op::ZoneReceive { .. });
        let tag = Tag(tag.0 | if is_report { REPORT } else { 0 });
        self.inner.submit(command, tag, data)
    }

    fn ring(&mut self) {
        self.inner.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        self.inner.poll(&mut self.held);
        let count = self.held.len();
        if count < self.meddling.together.get() {
            return 0;
        }
        let meddling = &self.meddling;
        done.extend(self.held.drain(..).rev().map(|mut of| {
            of.result += meddling.shift.get();
            if of.tag.0 & REPORT != 0 {
                of.tag.0 -= REPORT;
                meddling.reports.set(meddling.reports.get() + 1);
                if let (Some(change), Some(data)) = (meddling.report.get(), &mut of.data) {
                    change(data);
                }
            }
            of
        }));
        count
    }
}

pub(crate) type Namespace = ZonedNamespace<Queue>;

/// A drive, its namespace as this host has it, and the queue of another host.
pub(crate) struct Rig {
    pub(crate) endpoint: Endpoint,
    pub(crate) namespace: Namespace,
    pub(crate) meddling: Meddling,
    other: PcieQueue<Endpoint>,
    // Last: it is dropped last, and disabled.
    _controller: PcieController<Endpoint>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    /// One whose transfers are so long at most.
    pub(crate) fn moving(max_transfer_bytes: u32) -> Self {
        Self::made(Settings::default(), max_transfer_bytes, None)
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::made(settings, 1 << 20, None)
    }

    /// One whose zones can have random write areas.
    pub(crate) fn with_areas(areas: ZrwaConfig) -> Self {
        Self::made(Settings::default(), 1 << 20, Some(areas))
    }

    /// Six small zones.
    fn made(settings: Settings, max_transfer_bytes: u32, areas: Option<ZrwaConfig>) -> Self {
        let mut config = profile::builtin("confznspp").unwrap().config;
        config.geometry.pages_per_block = 4;
        config.geometry.blocks_per_plane = 64;
        config.zones.count = ZONES;
        config.zones.capacity_lbas = CAPACITY;
        config.zones.size_lbas = ZONE;
        config.zones.max_open = Some(MAX_OPEN as u32);
        config.zones.max_active = Some(MAX_ACTIVE as u32);
        config.write_buffer = areas.as_ref().map(|_| WriteBufferConfig {
            size_bytes: 4 << 20,
            power_loss_protection: true,
            release: BufferRelease::Program,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Placement::InOrder,
        });
        config.zones.zrwa = areas;
        config.data = DataStore::Memory;
        let endpoint = Endpoint::new(Drive::new(&config), EndpointSettings::default()).unwrap();
        let options = PcieOptions {
            queues: 2,
            ..PcieOptions::default()
        };
        let mut controller = PcieController::connect(endpoint.clone(), options).unwrap();
        let meddling = Meddling::default();
        let inner = controller.open_queue().unwrap();
        let queue = Queue {
            info: DeviceInfo {
                max_transfer_bytes,
                ..inner.info().clone()
            },
            inner,
            meddling: meddling.clone(),
            held: Vec::new(),
        };
        let time = endpoint.clone();
        let settings = Settings {
            pause: Box::new(move |left| time.pause(left)),
            ..settings
        };
        Self {
            namespace: ZonedNamespace::open(queue, NamespaceId::FIRST, settings).unwrap(),
            other: controller.open_queue().unwrap(),
            endpoint,
            meddling,
            _controller: controller,
        }
    }

    /// Another host does something, of which ours does not know.
    pub(crate) fn elsewhere(
        other: &mut PcieQueue<Endpoint>,
        endpoint: &Endpoint,
        op: Op,
        data: Option<Buf>,
    ) -> Completion {
        other.submit(Command::new(op), Tag(0), data).unwrap();
        other.ring();
        let mut done = Vec::new();
        while done.is_empty() {
            endpoint.pause(Nanos::from_ms(1));
            other.poll(&mut done);
        }
        done.pop().unwrap()
    }

    /// The namespace, and what another host does.
    pub(crate) fn split(&mut self) -> (&Namespace, impl FnMut(Op, Option<Buf>) -> Completion) {
        let (other, endpoint) = (&mut self.other, &self.endpoint);
        let elsewhere = move |op, data| Self::elsewhere(other, endpoint, op, data);
        (&self.namespace, elsewhere)
    }
}

/// An action of another host.
pub(crate) fn send(zone: u32, action: ZoneSendAction) -> Op {
    Op::ZoneSend {
        slba: Lba(u64::from(zone) * ZONE),
        action,
        select_all: false,
    }
}

/// Blocks full of a byte.
pub(crate) fn blocks(count: u64, byte: u8) -> Buf {
    Buf::from(vec![byte; count as usize * LBA])
}
