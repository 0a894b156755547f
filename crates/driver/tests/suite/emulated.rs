//! The initiator against zonelab's own target, through the loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use zonelab_device::{Buf, Command, Completion, DeviceInfo, Lba, Nanos, Op, QueuePair, Tag};
use zonelab_driver::Controller as _;
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{Options, TcpController, TcpQueue};
use zonelab_nvme::Status;
use zonelab_nvme::log::{LogPageId, SmartLog};
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction};
use zonelab_ssd::Drive;
use zonelab_ssd::config::DataStore;
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_ssd::profile;
use zonelab_target::controller::{Subsystem, SubsystemSettings};
use zonelab_target::server::{Server, ServerSettings};

use crate::bytes::pattern;

const NQN: &str = "nqn.2024-01.org.example:emulated";

/// A drive of six zones behind a server of its own thread.
pub(crate) struct Target {
    pub(crate) port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Target {
    pub(crate) fn start() -> Self {
        Self::serving(|_| {})
    }

    /// One whose subsystem is changed before it serves.
    pub(crate) fn serving(change: impl FnOnce(&mut Subsystem)) -> Self {
        let mut config = profile::builtin("confznspp").unwrap().config;
        config.geometry.pages_per_block = 4;
        config.geometry.blocks_per_plane = 64;
        config.zones.count = 6;
        config.zones.capacity_lbas = 128;
        config.zones.size_lbas = 160;
        config.zones.max_open = Some(3);
        config.zones.max_active = Some(4);
        config.data = DataStore::Memory;
        let drive = FaultyDrive::new(Drive::new(&config), FaultPlan::default());
        let mut subsystem = Subsystem::new(drive, SubsystemSettings::new(NQN)).unwrap();
        change(&mut subsystem);
        let any_port = "127.0.0.1:0".parse().unwrap();
        let mut server = Server::bind(any_port, ServerSettings::default()).unwrap();
        let port = server.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.run(&mut subsystem, &flag).unwrap());
        Self {
            port,
            stop,
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("tcp://127.0.0.1:{}/{NQN}", self.port)
    }

    pub(crate) fn options(&self, query: &str) -> Options {
        let url = self.url() + query;
        Options::new(TcpAddress::parse(&url).unwrap())
    }

    pub(crate) fn connect(&self, query: &str) -> TcpController {
        TcpController::connect(self.options(query)).unwrap()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn one(queue: &mut TcpQueue, op: Op, data: Option<Buf>) -> Completion {
    queue.submit(Command::new(op), Tag(0), data).unwrap();
    queue.ring();
    let mut done = Vec::new();
    while queue.poll(&mut done) == 0 {
        let until = queue.now().saturating_add(Nanos::from_secs(10));
        queue.wait(until).unwrap();
    }
    done.remove(0)
}

fn bytes(info: &DeviceInfo, blocks: u32) -> usize {
    (info.namespaces[0].lba_bytes * blocks) as usize
}

#[test]
fn our_own_target_is_a_drive_like_any_other() {
    for query in ["", "?hdgst=1&ddgst=1"] {
        let target = Target::start();
        let mut controller = target.connect(query);
        let info = Arc::clone(controller.info());
        let zoned = info.namespaces[0].zoned.unwrap();
        assert_eq!((zoned.zones, zoned.zone_capacity_lbas), (6, 128));
        assert_eq!((zoned.max_open, zoned.max_active), (Some(3), Some(4)));
        let mut queue = controller.open_queue().unwrap();
        // One block in the capsule, then many by R2T, then an append.
        let data = pattern(bytes(&info, 65));
        let (head, tail) = data.split_at(bytes(&info, 1));
        let (slba, nlb) = (Lba(0), 1);
        let done = one(
            &mut queue,
            Op::Write { slba, nlb },
            Some(Buf::from(head.to_vec())),
        );
        assert_eq!(done.status, Status::SUCCESS);
        let (slba, nlb) = (Lba(1), 64);
        let done = one(
            &mut queue,
            Op::Write { slba, nlb },
            Some(Buf::from(tail.to_vec())),
        );
        assert_eq!(done.status, Status::SUCCESS);
        let zslba = Lba(0);
        let done = one(&mut queue, Op::Append { zslba, nlb: 1 }, None);
        assert_eq!((done.status, done.result), (Status::SUCCESS, 65));
        let buf = Some(Buf::zeroed(data.len()));
        let done = one(
            &mut queue,
            Op::Read {
                slba: Lba(0),
                nlb: 65,
            },
            buf,
        );
        assert_eq!(done.status, Status::SUCCESS);
        assert!(
            done.data.unwrap()[..] == data[..],
            "{query}: data came back changed"
        );
        // The wrong place, and its exact status.
        let done = one(
            &mut queue,
            Op::Write {
                slba: Lba(5),
                nlb: 1,
            },
            None,
        );
        assert_eq!(done.status, Status::ZONE_INVALID_WRITE);
        let report = Op::ZoneReceive {
            slba: Lba(0),
            filter: ReportFilter::IMPLICITLY_OPENED,
            partial: false,
            extended: false,
        };
        let done = one(&mut queue, report, Some(Buf::zeroed(4096)));
        assert_eq!(done.data.unwrap()[0], 1);
        let reset = Op::ZoneSend {
            slba: Lba(0),
            action: ZoneSendAction::RESET,
            select_all: false,
        };
        assert_eq!(one(&mut queue, reset, None).status, Status::SUCCESS);
        assert_eq!(one(&mut queue, Op::Flush, None).status, Status::SUCCESS);
        controller.keep_alive().unwrap();
        let smart = size_of::<SmartLog>();
        let page = controller
            .log_page(u32::MAX, LogPageId::SMART, 0, smart)
            .unwrap();
        assert_eq!(page.len(), 512);
        controller.disconnect().unwrap();
    }
}
