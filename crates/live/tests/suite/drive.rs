//! A drive that is served in this process, and a host of ours.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use zonelab_device::Buf;
use zonelab_driver::tcp::Transfer;
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{Controller as _, IoQueue as _, Options, TcpController, TcpQueue};
use zonelab_live::http::Listener;
use zonelab_live::layer::Served as Subsystem;
use zonelab_live::web;
use zonelab_nvme::Status;
use zonelab_nvme::command::{IoCommand, Read, Write, ZoneManagementSend};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::Drive;
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_ssd::profile;
use zonelab_target::controller::SubsystemSettings;
use zonelab_target::server::{Server, ServerSettings, loop_calls};

/// A name with everything that a label has to escape and NVMe allows.
pub(crate) const NQN: &str = "nqn.2026-01.io.zonelab:te\"st\\";
/// Blocks of a zone, and how many of them can be written.
pub(crate) const ZONE: u64 = 160;
pub(crate) const CAPACITY: u32 = 128;
pub(crate) const BLOCK: usize = 4096;

/// 6 zones, at most 3 open and 4 active, that answer as soon as they can.
pub(crate) fn small() -> DriveConfig {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 64;
    config.zones.count = 6;
    config.zones.capacity_lbas = CAPACITY.into();
    config.zones.size_lbas = ZONE;
    config.zones.max_open = Some(3);
    config.zones.max_active = Some(4);
    config.data = DataStore::None;
    config
}

/// The drive and its server, which end with this value.
pub(crate) struct Served {
    pub(crate) web: Option<Listener>,
    pub(crate) queue: TcpQueue,
    _controller: TcpController,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn start(config: &DriveConfig) -> Self {
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let mut server = Server::bind(any, ServerSettings::default()).expect("a free port");
        let port = server.local_addr().expect("it listens").port();
        let drive = FaultyDrive::new(Drive::new(config), FaultPlan::default());
        let (handle, calls) = loop_calls().expect("two descriptors");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let settings = SubsystemSettings::new(NQN);
            let subsystem = Subsystem::with_layer(drive, None, settings);
            let mut subsystem = subsystem.expect("the settings are possible");
            server
                .run_with_calls(&mut subsystem, &stopped, calls)
                .expect("it serves");
        });
        let web = web::serve(any, handle).expect("a free port");
        let url = format!("tcp://127.0.0.1:{port}/nqn.2026-01.io.zonelab:te%22st%5C");
        let address = TcpAddress::parse(&url).expect("a URL");
        let mut controller = TcpController::connect(Options::new(address)).expect("it listens");
        let queue = controller.open_queue().expect("a queue");
        Self {
            web: Some(web),
            queue,
            _controller: controller,
            stop,
            thread: Some(thread),
        }
    }

    pub(crate) fn write(&mut self, slba: u64, nlb: u32) -> Status {
        let data = Buf::zeroed(nlb as usize * BLOCK);
        self.io(
            IoCommand::Write(Write::new(1, slba, nlb)),
            Transfer::ToController(data),
        )
    }

    pub(crate) fn read(&mut self, slba: u64, nlb: u32) -> Status {
        let data = Buf::zeroed(nlb as usize * BLOCK);
        self.io(
            IoCommand::Read(Read::new(1, slba, nlb)),
            Transfer::ToHost(data),
        )
    }

    pub(crate) fn send(&mut self, slba: u64, action: ZoneSendAction) -> Status {
        let send = ZoneManagementSend::new(1, slba, action);
        self.io(IoCommand::ZoneManagementSend(send), Transfer::None)
    }

    fn io(&mut self, command: IoCommand, transfer: Transfer) -> Status {
        let entry = command.to_entry().expect("it fits");
        let reply = self
            .queue
            .passthrough(entry, transfer)
            .expect("it is connected");
        reply.entry.status.status()
    }

    /// The body of an answer with success.
    pub(crate) fn get(&self, path: &str) -> String {
        let address = self.web.as_ref().expect("it listens").address();
        let answer = ask(
            address,
            &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        );
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        body.to_owned()
    }

    /// Ends the drive, but not its page.
    pub(crate) fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it does not panic");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sends bytes and reads to the end of the connection.
pub(crate) fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream
        .write_all(request.as_bytes())
        .expect("it takes bytes");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("it answers in text");
    answer
}
