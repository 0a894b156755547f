//! Commands longer than the controller takes, in parts.

use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};
use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Lba, NamespaceId, Nanos, Op, QueueId, QueuePair,
    RejectReason, Rejected, Tag, ZoneId,
};
use zonelab_driver::pcie::{Function, PcieController, PcieOptions, PcieQueue};
use zonelab_driver::zones::{Settings, ZonedNamespace};
use zonelab_endpoint::{Endpoint, EndpointSettings, Fault};
use zonelab_host::block::split::Splitting;
use zonelab_nvme::Status;
use zonelab_ssd::Drive;

use crate::drive::{CAPACITY, LBA, ZONE, command, config, fill, pattern, read, reset_all, write};

/// Most blocks of one command.
const MOST: u32 = 4;

/// A queue whose device takes commands in any order, as drives may.
struct AnyOrder {
    inner: PcieQueue<Endpoint>,
    waiting: Vec<(Command, Tag, Option<Buf>)>,
    /// What decides the order; 0: as they come.
    seed: u64,
    /// Most commands that wait.
    depth: usize,
    /// Writes to a zone that were sent while another was under way.
    overtaking: Rc<Cell<u64>>,
    /// Zones and tags of writes under way.
    writes: Vec<(u64, Tag)>,
}

impl AnyOrder {
    fn draw(&mut self, below: usize) -> usize {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.seed >> 33) as usize % below
    }
}

impl QueuePair for AnyOrder {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        if self.waiting.len() >= self.depth {
            let (queue, depth) = (QueueId(1), self.depth as u32);
            let reason = RejectReason::QueueFull { queue, depth };
            return Err(Rejected { reason, data });
        }
        if let Op::Write { slba, .. } = command.op {
            let zone = slba.0 / ZONE;
            let is_there = self.writes.iter().any(|(of, _)| *of == zone);
            self.overtaking
                .set(self.overtaking.get() + u64::from(is_there));
            self.writes.push((zone, tag));
        }
        self.waiting.push((command, tag, data));
        Ok(())
    }

    fn ring(&mut self) {
        while !self.waiting.is_empty() {
            let next = match self.seed {
                0 => 0,
                _ => self.draw(self.waiting.len()),
            };
            let (command, tag, data) = self.waiting.remove(next);
            if let Err(rejected) = self.inner.submit(command, tag, data) {
                self.waiting.push((command, tag, rejected.data));
                break;
            }
        }
        self.inner.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        let found = self.inner.poll(done);
        for completion in &done[before..] {
            self.writes.retain(|(_, tag)| *tag != completion.tag);
        }
        if !self.waiting.is_empty() {
            self.ring();
        }
        found
    }
}

struct Rig {
    endpoint: Endpoint,
    queue: Splitting<AnyOrder>,
    overtaking: Rc<Cell<u64>>,
    // Last: it is dropped last, and disabled.
    _controller: PcieController<Endpoint>,
}

impl Rig {
    fn new(seed: u64) -> Self {
        Self::with((seed, false), (32, 128))
    }

    /// `depth` commands below the adaptor, and ring entries of the queue.
    fn with((seed, read_across): (u64, bool), (depth, queue_entries): (usize, u32)) -> Self {
        let mut config = config();
        config.zones.read_across = read_across;
        let settings = EndpointSettings {
            max_transfer_bytes: MOST * LBA as u32,
            ..EndpointSettings::default()
        };
        let endpoint = Endpoint::new(Drive::new(&config), settings).unwrap();
        let options = PcieOptions {
            queue_entries,
            ..PcieOptions::default()
        };
        let mut controller = PcieController::connect(endpoint.clone(), options).unwrap();
        let overtaking = Rc::new(Cell::new(0));
        let below = AnyOrder {
            inner: controller.open_queue().unwrap(),
            waiting: Vec::new(),
            seed,
            depth,
            overtaking: Rc::clone(&overtaking),
            writes: Vec::new(),
        };
        Self {
            endpoint,
            queue: Splitting::new(below, QueueId(1), 16),
            overtaking,
            _controller: controller,
        }
    }

    fn submit(&mut self, command: Command, tag: u32, data: Option<Buf>) {
        self.queue.submit(command, Tag(tag), data).unwrap();
    }

    /// Waits until `count` commands are over, in the order of their tags.
    fn wait(&mut self, count: usize) -> Vec<Completion> {
        self.queue.ring();
        let mut done = Vec::new();
        for _ in 0..100_000 {
            self.queue.poll(&mut done);
            if done.len() >= count {
                assert_eq!(done.len(), count, "each completes once");
                done.sort_by_key(|completion| completion.tag.0);
                return done;
            }
            self.endpoint.pause(Nanos::from_ms(1));
        }
        panic!("{} of {count} commands complete", done.len());
    }

    fn run(&mut self, command: Command, data: Option<Buf>) -> Completion {
        self.submit(command, 9, data);
        let completion = self.wait(1).pop().unwrap();
        assert_eq!(completion.tag, Tag(9));
        completion
    }

    /// What the drive reports as the write pointer of a zone, in blocks from its start.
    fn written(&mut self, zone: u64) -> u64 {
        let slba = Lba(zone * ZONE);
        let (filter, partial, extended) = (zonelab_nvme::zns::ReportFilter::ALL, true, false);
        let op = Op::ZoneReceive {
            slba,
            filter,
            partial,
            extended,
        };
        let report = self.run(command(op), Some(Buf::zeroed(128))).data.unwrap();
        let wp = u64::from_le_bytes(report[64 + 24..64 + 32].try_into().unwrap());
        wp - slba.0
    }
}

/// What a program does.
#[derive(Clone, Debug)]
enum Step {
    /// A write at the end of what is written, of any length, and commands behind it that
    /// come before it is over.
    Write { zone: u64, nlb: u32, then: Then },
    /// A read of any blocks, in as many zones as there are.
    Read { slba: u64, nlb: u32 },
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Write(u32),
    Append(u32),
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let then = prop_oneof![
        Just(Then::Nothing),
        (1_u32..20).prop_map(Then::Write),
        (1_u32..=MOST).prop_map(Then::Append),
        Just(Then::Reset),
    ];
    let step = prop_oneof![
        3 => (0_u64..6, 1_u32..70, then).prop_map(|(zone, nlb, then)| Step::Write { zone, nlb, then }),
        2 => (0..6 * ZONE, 1_u32..400).prop_map(|(slba, nlb)| Step::Read { slba, nlb }),
    ];
    proptest::collection::vec(step, 1..30)
}

/// What the zones hold: blocks that were never written, or not since a reset, are zeros.
struct Shadow {
    zones: Vec<Vec<u8>>,
}

impl Shadow {
    fn extend(&mut self, zone: u64, nlb: u32) -> (u64, Buf) {
        let bytes = &mut self.zones[zone as usize];
        let slba = zone * ZONE + (bytes.len() / LBA) as u64;
        let mut data = Buf::zeroed(nlb as usize * LBA);
        // Blocks differ, whichever part they are of.
        for (at, block) in data.chunks_mut(LBA).enumerate() {
            fill(slba + at as u64, block);
        }
        bytes.extend_from_slice(&data);
        (slba, data)
    }

    fn room(&self, zone: u64) -> u64 {
        CAPACITY - (self.zones[zone as usize].len() / LBA) as u64
    }

    fn read(&self, slba: u64, nlb: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for lba in slba..slba + u64::from(nlb) {
            let at = (lba % ZONE) as usize * LBA;
            let block = self.zones[(lba / ZONE) as usize].get(at..at + LBA);
            bytes.extend_from_slice(block.unwrap_or(&[0; LBA]));
        }
        bytes
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the order in which the device takes commands, what programs write is where
    /// they mean it to be, and reads find it.
    #[test]
    fn data_is_where_it_should_be(
        steps in steps(),
        seed in 1_u64..u64::MAX,
        read_across in proptest::bool::ANY,
        depth in 1_usize..8,
        queue_entries in 2_u32..8,
    ) {
        let mut rig = Rig::with((seed, read_across), (depth, queue_entries));
        let mut shadow = Shadow { zones: vec![Vec::new(); 6] };
        for step in steps {
            match step {
                Step::Write { zone, nlb, then } => {
                    // As much as there is room for, and drives have few zones open.
                    let nlb = u64::from(nlb).min(shadow.room(zone)) as u32;
                    if nlb <= MOST {
                        continue;
                    }
                    let (slba, data) = shadow.extend(zone, nlb);
                    rig.submit(write(slba, nlb), 0, Some(data));
                    let room = shadow.room(zone) as u32;
                    let count = match then {
                        Then::Write(nlb) if nlb <= room => {
                            let (slba, data) = shadow.extend(zone, nlb);
                            rig.submit(write(slba, nlb), 1, Some(data));
                            2
                        }
                        Then::Append(nlb) if nlb <= room => {
                            let (_, data) = shadow.extend(zone, nlb);
                            let zslba = Lba(zone * ZONE);
                            rig.submit(command(Op::Append { zslba, nlb }), 1, Some(data));
                            2
                        }
                        Then::Reset => {
                            shadow.zones[zone as usize].clear();
                            rig.submit(crate::drive::reset(zone), 1, None);
                            2
                        }
                        _ => 1,
                    };
                    for completion in rig.wait(count) {
                        assert_eq!(completion.status, Status::SUCCESS, "{step:?}");
                    }
                    // Room for the next: the drive has as many as it can.
                    if !matches!(then, Then::Reset) {
                        let _closed = rig.run(crate::drive::close(zone), None);
                    }
                    let active = shadow.zones.iter().filter(|zone| {
                        !zone.is_empty() && zone.len() < CAPACITY as usize * LBA
                    });
                    if active.count() == 4 {
                        assert!(rig.run(reset_all(), None).status.is_success());
                        shadow.zones.iter_mut().for_each(Vec::clear);
                    }
                }
                Step::Read { slba, nlb } => {
                    let nlb = u64::from(nlb).min(6 * ZONE - slba) as u32;
                    let data = Buf::zeroed(nlb as usize * LBA);
                    let done = rig.run(read(slba, nlb), Some(data));
                    assert_eq!(done.status, Status::SUCCESS, "{step:?}");
                    assert!(done.data.unwrap()[..] == shadow.read(slba, nlb)[..], "{step:?}");
                }
            }
        }
        assert_eq!(rig.overtaking.get(), 0, "writes of a zone under way at once");
        assert_eq!(rig.endpoint.memory().faults(), 0);
    }
}

/// The first error is what a program hears of, with the blocks before it, and nothing is
/// begun after it.
#[test]
fn the_first_error_is_reported() {
    let mut rig = Rig::new(0);
    // The third of ten parts. What the endpoint calls a failure was carried out.
    rig.endpoint.inject(2, Fault::Status(Status::WRITE_FAULT));
    let done = rig.run(write(0, 40), Some(pattern(0, 40)));
    let moved = u64::from(2 * MOST);
    assert_eq!((done.status, done.result), (Status::WRITE_FAULT, moved));
    assert_eq!(done.data.unwrap().len(), 40 * LBA);
    assert_eq!(rig.written(0), u64::from(3 * MOST));
    // What was waiting for it goes on, and the drive says what is wrong with it.
    let at = u64::from(3 * MOST);
    let done = rig.run(write(at, 28), Some(pattern(at, 28)));
    assert_eq!(done.status, Status::SUCCESS);
    // Of a read, the first by address, whichever fails first.
    rig.endpoint
        .inject(3, Fault::Status(Status::UNRECOVERED_READ_ERROR));
    rig.endpoint
        .inject(5, Fault::Status(Status::DATA_TRANSFER_ERROR));
    let done = rig.run(read(0, 40), Some(Buf::zeroed(40 * LBA)));
    assert!([Status::UNRECOVERED_READ_ERROR, Status::DATA_TRANSFER_ERROR].contains(&done.status));
    assert_eq!(done.result % u64::from(MOST), 0);
    let moved = done.result as usize * LBA;
    let data = done.data.unwrap();
    let part = MOST as usize * LBA;
    assert!(data[..moved.min(2 * part)] == pattern(0, 40)[..moved.min(2 * part)]);
    assert!(
        data[moved..moved + part].iter().all(|byte| *byte == 0),
        "what failed moved nothing"
    );
}

/// What cannot be sent in parts, and what no drive would do.
#[test]
fn what_cannot_be_split_is_refused() {
    let mut rig = Rig::new(0);
    let append = |nlb| command(Op::Append { zslba: Lba(0), nlb });
    let rejected = rig
        .queue
        .submit(append(5), Tag(0), Some(pattern(0, 5)))
        .unwrap_err();
    let (bytes, most) = (5 * LBA as u64, MOST * LBA as u32);
    assert_eq!(rejected.reason, RejectReason::CannotSplit { bytes, most });
    assert!(rejected.data.unwrap() == pattern(0, 5));
    assert_eq!(
        rig.run(append(4), Some(pattern(0, 4))).status,
        Status::SUCCESS
    );
    // A long write across the end of a zone, of which the first parts would fit.
    let done = rig.run(write(4, 200), Some(Buf::zeroed(200 * LBA)));
    assert_eq!((done.status, done.result), (Status::ZONE_BOUNDARY_ERROR, 0));
    assert_eq!(rig.written(0), 4);
    let done = rig.run(write(4, 20), Some(Buf::zeroed(LBA)));
    assert_eq!(done.status, Status::INVALID_FIELD);
    // Beyond the last block; and where addresses end.
    let done = rig.run(read(6 * ZONE - 10, 20), Some(Buf::zeroed(20 * LBA)));
    assert_eq!((done.status, done.result), (Status::LBA_OUT_OF_RANGE, 10));
    let done = rig.run(read(u64::MAX - 3, 20), Some(Buf::zeroed(20 * LBA)));
    assert_eq!(done.status, Status::INVALID_FIELD);
}

/// A short read across the end of a zone is what a drive refuses, and the adaptor divides.
#[test]
fn reads_across_zones_are_divided_where_they_must_be() {
    for read_across in [false, true] {
        let mut rig = Rig::with((0, read_across), (32, 128));
        let before = rig.queue.get().inner.counts().completions;
        let done = rig.run(read(ZONE - 1, 2), Some(Buf::zeroed(2 * LBA)));
        assert_eq!(done.status, Status::SUCCESS);
        let commands = rig.queue.get().inner.counts().completions - before;
        assert_eq!(commands, if read_across { 1 } else { 2 });
    }
}

/// As many commands as it was told, and no more; all of them complete.
#[test]
fn its_depth_is_kept() {
    let mut rig = Rig::with((0, false), (1, 2));
    for tag in 0..16 {
        rig.submit(read(0, 40), tag, None);
    }
    let rejected = rig.queue.submit(read(0, 1), Tag(16), None).unwrap_err();
    assert!(matches!(
        rejected.reason,
        RejectReason::QueueFull { depth: 16, .. }
    ));
    assert_eq!(rig.wait(16).len(), 16);
    assert_eq!(rig.run(read(0, 40), None).status, Status::SUCCESS);
}

/// Handles of zones write and read any length over it.
#[test]
fn zones_take_writes_of_any_length() {
    let rig = Rig::new(7);
    let time = rig.endpoint.clone();
    let settings = Settings {
        pause: Box::new(move |left| time.pause(left)),
        ..Settings::default()
    };
    let namespace = ZonedNamespace::open(rig.queue, NamespaceId::FIRST, settings).unwrap();
    let zone = namespace.zone(ZoneId(2)).unwrap();
    let mut zone = zone.open().unwrap();
    let written = zone.write(pattern(0, 100)).unwrap();
    assert_eq!(written.lba, Lba(2 * ZONE));
    let read = zone.read(written.lba, Buf::zeroed(100 * LBA)).unwrap();
    assert!(read == pattern(0, 100));
    assert!(zone.append(pattern(0, 5)).is_err());
    assert_eq!(zone.write_pointer(), Lba(2 * ZONE + 100));
}
