//! A hostile device on PCIe: an endpoint whose registers lie now and then, and that
//! writes anything anywhere in the memory that the driver has mapped for it, at any time.
//! Completions, Identify data, zone reports, and even the lists and rings of the driver:
//! whatever is in them, nothing panics, and each command that was taken ends once.

use std::cell::RefCell;
use std::rc::Rc;

use zonelab_device::{Buf, Command, Completion, Device, Lba, Nanos, Op, QueuePair, Tag};
use zonelab_driver::pcie::{
    DmaError, DmaMemory, DmaRegion, Function, PcieController, PcieDevice, PcieOptions, Registers,
};
use zonelab_endpoint::{Endpoint, EndpointSettings, Fault};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ReportFilter;
use zonelab_ssd::config::DataStore;
use zonelab_ssd::{Drive, profile};

use crate::draw::Draw;

/// Commands of an input at most: those in flight when it ends come to an end by resets.
const MAX_COMMANDS: u32 = 64;

/// What the device does, and what it knows.
struct Malice<'d> {
    draw: Draw<'d>,
    /// Regions that the driver has allocated: address and bytes.
    regions: Vec<(u64, usize)>,
    /// Whether registers lie.
    lies: bool,
}

/// The function of a hostile device.
#[derive(Clone)]
struct Hostile<'d> {
    endpoint: Endpoint,
    malice: Rc<RefCell<Malice<'d>>>,
}

impl Hostile<'_> {
    /// Writes something somewhere, perhaps. What is not mapped any more is refused.
    fn scribble(&self) {
        let malice = &mut *self.malice.borrow_mut();
        if malice.draw.is_empty() || malice.regions.is_empty() || !malice.draw.one_in(4) {
            return;
        }
        let last = malice.regions.len() - 1;
        // Mostly what was made last, or the first: the rings of the admin queue.
        let index = last - malice.draw.int(0..=last.min(12));
        let (iova, bytes) = malice.regions[index];
        let offset = malice.draw.int(0..=(bytes as u64 - 1).min(512)) & !3;
        let count = malice.draw.int(1..=32_usize);
        let from = malice.draw.bytes(count);
        let _refused = self.endpoint.memory().write(iova + offset, from);
    }
}

impl Registers for Hostile<'_> {
    fn bar_bytes(&self) -> u64 {
        self.endpoint.bar_bytes()
    }

    fn read32(&self, offset: u64) -> u32 {
        let value = self.endpoint.read32(offset);
        let malice = &mut *self.malice.borrow_mut();
        match malice.lies && malice.draw.one_in(16) {
            true => malice.draw.wide() as u32,
            false => value,
        }
    }

    fn write32(&self, offset: u64, value: u32) {
        self.endpoint.write32(offset, value);
    }
}

impl DmaMemory for Hostile<'_> {
    fn allocate(&self, bytes: usize) -> Result<DmaRegion, DmaError> {
        let region = self.endpoint.allocate(bytes)?;
        let place = (region.iova(), region.bytes());
        self.malice.borrow_mut().regions.push(place);
        Ok(region)
    }
}

impl Function for Hostile<'_> {
    fn now(&self) -> Nanos {
        self.endpoint.now()
    }

    fn pause(&self, span: Nanos) {
        self.scribble();
        self.endpoint.pause(span);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.endpoint.next_event()
    }

    fn advance(&self, now: Nanos) {
        self.endpoint.advance(now);
        self.scribble();
    }
}

fn drive() -> Drive {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 64;
    config.zones.count = 6;
    config.zones.capacity_lbas = 128;
    config.zones.size_lbas = 160;
    config.data = DataStore::Memory;
    Drive::new(&config)
}

/// Drives commands through a hostile device that `data` draws.
///
/// # Panics
/// Something is wrong with the driver.
pub fn run(data: &[u8]) {
    let mut draw = Draw::new(data);
    let settings = EndpointSettings {
        has_shadow_doorbells: draw.flag(),
        ..EndpointSettings::default()
    };
    let endpoint = Endpoint::new(drive(), settings).expect("the settings are in range");
    let options = PcieOptions {
        command_timeout: Nanos::from_us(500),
        queue_entries: draw.int(2..=16),
        has_generations: draw.flag(),
        ..PcieOptions::default()
    };
    let lies = draw.one_in(4);
    for _ in 0..draw.int(0..=3_u8) {
        endpoint.inject(draw.int(0..=20), fault(&mut draw));
    }
    let malice = Malice {
        draw,
        regions: Vec::new(),
        lies,
    };
    let hostile = Hostile {
        endpoint,
        malice: Rc::new(RefCell::new(malice)),
    };
    if let Ok(controller) = PcieController::connect(hostile.clone(), options) {
        commands(&hostile, controller);
    }
}

fn fault(draw: &mut Draw<'_>) -> Fault {
    let value = draw.wide() as u16;
    draw.pick(&[
        Fault::Status(Status::UNRECOVERED_READ_ERROR),
        Fault::Lost,
        Fault::WrongPhase,
        Fault::Command(value),
        Fault::Repeated,
        Fault::Head(value),
        Fault::Queue(value),
        Fault::Fatal,
        Fault::Removed,
    ])
}

/// Submits commands, and counts their ends.
fn commands<'d>(hostile: &Hostile<'d>, controller: PcieController<Hostile<'d>>) {
    let mut device = PcieDevice::new(controller);
    let Ok(mut queue) = device.open_queue() else {
        return;
    };
    let mut ended = [0_u8; MAX_COMMANDS as usize];
    let (mut done, mut ready) = (Vec::new(), Vec::new());
    let mut taken = 0;
    for tag in 0..MAX_COMMANDS {
        let (command, data) = {
            let draw = &mut hostile.malice.borrow_mut().draw;
            if draw.is_empty() {
                break;
            }
            let (op, bytes) = op(draw);
            (Command::new(op), draw.flag().then_some(bytes))
        };
        let data = data.map(|bytes| match bytes % 3 {
            0 => Buf::zeroed(bytes),
            _ => device
                .controller()
                .buffer(bytes)
                .unwrap_or_else(|_| Buf::zeroed(bytes)),
        });
        if queue.submit(command, Tag(tag), data).is_err() {
            // Not taken: it never ends.
            ended[tag as usize] = 1;
        }
        taken = tag + 1;
        queue.ring();
        device.advance(hostile.now(), &mut ready);
        queue.poll(&mut done);
        count(&mut done, &mut ended);
    }
    // All that is late comes to its end by an Abort and resets.
    for _ in 0..100_000 {
        let Some(at) = device.next_event() else {
            break;
        };
        device.advance(at.max(hostile.now()), &mut ready);
        queue.poll(&mut done);
        count(&mut done, &mut ended);
    }
    queue.poll(&mut done);
    count(&mut done, &mut ended);
    let all = &ended[..taken as usize];
    assert!(
        all.iter().all(|ends| *ends == 1),
        "each command ends once: {all:?}"
    );
}

fn count(done: &mut Vec<Completion>, ended: &mut [u8]) {
    for done in done.drain(..) {
        ended[done.tag.0 as usize] += 1;
    }
}

/// An operation, and the bytes of its buffer.
fn op(draw: &mut Draw<'_>) -> (Op, usize) {
    let slba = Lba(draw.int(0..=960));
    let nlb = draw.int(1..=16);
    let bytes = nlb as usize * 4096;
    match draw.int(0..=3_u8) {
        0 => (Op::Read { slba, nlb }, bytes),
        1 => (Op::Write { slba, nlb }, bytes),
        2 => {
            let zslba = Lba(slba.0 / 160 * 160);
            (Op::Append { zslba, nlb }, bytes)
        }
        _ => {
            let (filter, partial, extended) = (ReportFilter::ALL, draw.flag(), false);
            let op = Op::ZoneReceive {
                slba,
                filter,
                partial,
                extended,
            };
            (op, 64 + 64 * nlb as usize)
        }
    }
}
