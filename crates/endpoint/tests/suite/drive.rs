//! Drives and controllers for the tests.

use zonelab_device::{Buf, Command, Completion, Lba, Nanos, Op, QueuePair, Tag};
use zonelab_driver::pcie::{Function, PcieController, PcieOptions, PcieQueue};
use zonelab_endpoint::{Endpoint, EndpointSettings};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::Drive;
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::profile;

/// Bytes of a block.
pub(crate) const LBA: usize = 4096;
/// Blocks from one zone to the next.
pub(crate) const ZONE: u64 = 160;
/// Blocks of a zone that can be written.
pub(crate) const CAPACITY: u64 = 128;

/// Six small zones.
pub(crate) fn config() -> DriveConfig {
    let mut config = profile::builtin("confznspp").unwrap().config;
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 64;
    config.zones.count = 6;
    config.zones.capacity_lbas = CAPACITY;
    config.zones.size_lbas = ZONE;
    config.zones.max_open = Some(3);
    config.zones.max_active = Some(4);
    config.data = DataStore::Memory;
    config
}

pub(crate) fn endpoint(settings: EndpointSettings) -> Endpoint {
    Endpoint::new(Drive::new(&config()), settings).unwrap()
}

pub(crate) fn connect(endpoint: &Endpoint, options: PcieOptions) -> PcieController<Endpoint> {
    PcieController::connect(endpoint.clone(), options).unwrap()
}

pub(crate) fn command(op: Op) -> Command {
    Command::new(op)
}

pub(crate) fn write(slba: u64, nlb: u32) -> Command {
    let slba = Lba(slba);
    command(Op::Write { slba, nlb })
}

pub(crate) fn read(slba: u64, nlb: u32) -> Command {
    let slba = Lba(slba);
    command(Op::Read { slba, nlb })
}

fn send(zone: u64, action: ZoneSendAction) -> Command {
    command(Op::ZoneSend {
        slba: Lba(zone * ZONE),
        action,
        select_all: false,
    })
}

pub(crate) fn reset(zone: u64) -> Command {
    send(zone, ZoneSendAction::RESET)
}

pub(crate) fn close(zone: u64) -> Command {
    send(zone, ZoneSendAction::CLOSE)
}

pub(crate) fn reset_all() -> Command {
    command(Op::ZoneSend {
        slba: Lba(0),
        action: ZoneSendAction::RESET,
        select_all: true,
    })
}

/// Blocks that tell where they belong.
pub(crate) fn pattern(slba: u64, nlb: u32) -> Buf {
    let mut buf = Buf::zeroed(nlb as usize * LBA);
    fill(slba, &mut buf);
    buf
}

pub(crate) fn fill(slba: u64, bytes: &mut [u8]) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        let lba = slba + (at / LBA) as u64;
        *byte = (lba as u8).wrapping_mul(31) ^ (at as u8) ^ ((at >> 8) as u8);
    }
}

/// Submits a command and waits until it is over: a minute at most.
pub(crate) fn run(
    queue: &mut PcieQueue<Endpoint>,
    endpoint: &Endpoint,
    command: Command,
    data: Option<Buf>,
) -> Completion {
    queue.submit(command, Tag(7), data).unwrap();
    queue.ring();
    let mut done = Vec::new();
    let end = endpoint.now() + Nanos::from_secs(60);
    while done.is_empty() {
        assert!(endpoint.now() < end, "{command:?} does not end");
        endpoint.pause(Nanos::from_ms(1));
        queue.poll(&mut done);
    }
    let completion = done.pop().unwrap();
    assert_eq!((done.len(), completion.tag), (0, Tag(7)));
    completion
}
