//! What the tests of the whole drive share: configurations, and a host that
//! counts completions and moves the clock.

pub(crate) mod random;
pub(crate) mod shadow;
pub(crate) mod thresholds;

use zonelab_device::{Buf, Command, Completion, Found, Lba, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction};
use zonelab_oracle::served::Served;
use zonelab_ssd::account::BusyByCause;
use zonelab_ssd::config::{
    DriveConfig, EraseExtent, EraseWhen, FillExtent, FinishConfig, MappingConfig, ResetConfig,
};
use zonelab_ssd::{Control, Drive, DriveModel, profile};

/// Logical blocks in a page of [`confznspp`] and [`small`].
pub(crate) const PAGE: u32 = 4;

/// Program and transfer of one page in [`confznspp`] and [`small`].
pub(crate) const WRITE: Nanos = Nanos::from_us(725);
/// Read and transfer of one page.
pub(crate) const READ: Nanos = Nanos::from_us(85);
/// Erasure of one block.
pub(crate) const ERASE: Nanos = Nanos::from_us(3_500);

pub(crate) const fn us(us: u64) -> Nanos {
    Nanos::from_us(us)
}

/// The emulated drive of ConfZNS++: 48 zones of 67,584 pages on 4 planes.
pub(crate) fn confznspp() -> DriveConfig {
    profile::builtin("confznspp")
        .expect("it is built in")
        .config
}

/// The same with zones of 32 pages: 2 rows of 4 blocks with 4 pages each.
pub(crate) fn small() -> DriveConfig {
    let mut config = confznspp();
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 64;
    config.zones.count = 6;
    config.zones.capacity_lbas = 32 * u64::from(PAGE);
    config.zones.size_lbas = 40 * u64::from(PAGE);
    config
}

/// [`small`] with 4 dies on each channel, and zones on one die each: groups
/// 0 to 3 share no channel, group 4 is on the channel of group 0.
pub(crate) fn narrow() -> DriveConfig {
    let mut config = small();
    config.geometry.ways = 4;
    config.zones.channels = 1;
    config.zones.count = 32;
    // A zone of 32 pages has 8 blocks on its one plane; each group has 2 zones.
    config.geometry.blocks_per_plane = 16;
    config
}

pub(crate) fn fill(granularity_kib: u32) -> FinishConfig {
    FinishConfig::Fill {
        granularity_bytes: granularity_kib << 10,
        pause_ns: Nanos::ZERO,
        yield_ns: None,
        buffered: false,
        takes_core: false,
        extent: FillExtent::Zone,
    }
}

pub(crate) fn reset(erase: EraseWhen, extent: EraseExtent) -> ResetConfig {
    ResetConfig {
        erase,
        extent,
        preempt_ns: None,
        bookkeeping: None,
    }
}

/// `config` with as many physical zones as fit, at first writes.
pub(crate) fn lazy(mut config: DriveConfig, physical_zones: u32) -> DriveConfig {
    config.mapping = MappingConfig::Lazy { physical_zones };
    config
}

/// A command that has completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) submitted: Nanos,
    pub(crate) at: Nanos,
    pub(crate) status: Status,
    pub(crate) result: u64,
    pub(crate) found: Found,
    pub(crate) data: Option<Buf>,
}

impl Done {
    pub(crate) fn latency(&self) -> Nanos {
        self.at.saturating_sub(self.submitted)
    }
}

/// A drive and its only host. Tags count commands.
pub(crate) struct Rig {
    pub(crate) drive: Drive,
    pub(crate) now: Nanos,
    /// By tag; `None`: not completed yet.
    pub(crate) done: Vec<Option<Done>>,
    submitted: Vec<Nanos>,
    /// Tags in the order of their completions.
    pub(crate) order: Vec<usize>,
    served: Served,
}

impl Rig {
    pub(crate) fn new(config: &DriveConfig) -> Self {
        if let Err(violations) = profile::check(config) {
            panic!("the test made an impossible drive: {violations:?}");
        }
        Self {
            drive: Drive::new(config),
            now: Nanos::ZERO,
            done: Vec::new(),
            submitted: Vec::new(),
            order: Vec::new(),
            served: Served::default(),
        }
    }

    pub(crate) fn submit(&mut self, op: Op) -> usize {
        self.submit_with(op, None)
    }

    pub(crate) fn submit_with(&mut self, op: Op, data: Option<Buf>) -> usize {
        self.submit_command(Command::new(op), data)
    }

    pub(crate) fn submit_command(&mut self, command: Command, data: Option<Buf>) -> usize {
        let tag = self.submitted.len();
        self.submitted.push(self.now);
        self.done.push(None);
        let (queue, name) = (queue_of(tag), Tag(tag as u32));
        self.drive
            .submit(self.now, queue, name, command, data)
            .expect("the drive takes more commands than any test has");
        assert!(self.done[tag].is_none(), "nothing completes inside submit");
        self.served.submitted(self.now, queue, name);
        tag
    }

    /// Runs to `to`, and checks what every completion has to be.
    pub(crate) fn run_to(&mut self, to: Nanos) {
        let mut done = Vec::new();
        self.drive.advance(to, &mut done);
        self.now = to;
        for completion in done {
            self.served.completed(to, &completion);
            self.take(completion);
        }
    }

    fn take(&mut self, completion: Completion) {
        let tag = completion.tag.0 as usize;
        self.order.push(tag);
        self.done[tag] = Some(Done {
            submitted: self.submitted[tag],
            at: completion.at,
            status: completion.status,
            result: completion.result,
            found: completion.found,
            data: completion.data,
        });
    }

    /// Power took a command: it never completes.
    pub(crate) fn forget(&mut self, tag: usize) {
        self.served.lost(queue_of(tag), Tag(tag as u32));
        self.done[tag] = Some(Done {
            submitted: self.submitted[tag],
            at: self.now,
            status: Status::SUCCESS,
            result: 0,
            found: Found::Unknown,
            data: None,
        });
    }

    /// Goes on with a drive that was restored; its clock starts anew.
    pub(crate) fn restart(&mut self, drive: Drive) {
        self.drive = drive;
        self.now = Nanos::ZERO;
        self.served.clock_starts_anew();
    }

    pub(crate) fn run_for(&mut self, span: Nanos) {
        self.run_to(self.now + span);
    }

    /// Goes on to the next event; false if there is none.
    pub(crate) fn next(&mut self) -> bool {
        let next = self.drive.next_event();
        if let Some(at) = next {
            self.run_to(at);
        }
        next.is_some()
    }

    /// Runs until every command has completed and the drive has nothing to do.
    pub(crate) fn settle(&mut self) {
        while self.drive.in_flight() + self.drive.background_tasks() > 0 {
            assert!(
                self.next(),
                "something is under way, but nothing will happen"
            );
        }
        self.served.check_at_rest();
    }

    /// Runs until a command has completed.
    pub(crate) fn wait(&mut self, tag: usize) -> &Done {
        while self.done[tag].is_none() {
            assert!(self.next(), "command {tag} is lost");
        }
        self.done[tag].as_ref().expect("it has completed")
    }

    pub(crate) fn exec(&mut self, op: Op) -> Done {
        self.exec_with(op, None)
    }

    pub(crate) fn exec_with(&mut self, op: Op, data: Option<Buf>) -> Done {
        let tag = self.submit_with(op, data);
        self.wait(tag).clone()
    }

    /// Latency of a command that has to succeed, with nothing else in flight.
    pub(crate) fn time(&mut self, op: Op) -> Nanos {
        let done = self.exec(op);
        assert_eq!(done.status, Status::SUCCESS, "{op:?}");
        done.latency()
    }

    pub(crate) fn lba(&self, zone: u32, offset: u32) -> Lba {
        Lba(u64::from(zone) * self.drive.config().zones.size_lbas + u64::from(offset))
    }

    /// A write of `nlb` blocks at the write pointer.
    pub(crate) fn write(&self, zone: u32, nlb: u32) -> Op {
        let offset = self.drive.zones().written_lbas(ZoneId(zone)) as u32;
        self.write_at(zone, offset, nlb)
    }

    pub(crate) fn write_at(&self, zone: u32, offset: u32, nlb: u32) -> Op {
        Op::Write {
            slba: self.lba(zone, offset),
            nlb,
        }
    }

    pub(crate) fn append(&self, zone: u32, nlb: u32) -> Op {
        Op::Append {
            zslba: self.lba(zone, 0),
            nlb,
        }
    }

    pub(crate) fn read(&self, zone: u32, offset: u32, nlb: u32) -> Op {
        Op::Read {
            slba: self.lba(zone, offset),
            nlb,
        }
    }

    pub(crate) fn send(&self, zone: u32, action: ZoneSendAction) -> Op {
        Op::ZoneSend {
            slba: self.lba(zone, 0),
            action,
            select_all: false,
        }
    }

    pub(crate) fn finish(&self, zone: u32) -> Op {
        self.send(zone, ZoneSendAction::FINISH)
    }

    pub(crate) fn reset(&self, zone: u32) -> Op {
        self.send(zone, ZoneSendAction::RESET)
    }

    /// Writes the next `pages` pages of a zone in pieces of 256 KiB, each when
    /// the last is done.
    pub(crate) fn write_pages(&mut self, zone: u32, pages: u32) {
        let mut left = pages * PAGE;
        while left > 0 {
            let nlb = left.min(16 * PAGE);
            let op = self.write(zone, nlb);
            self.time(op);
            left -= nlb;
        }
    }

    /// Declares zones full.
    pub(crate) fn precondition(&mut self, zones: std::ops::Range<u32>) {
        self.drive
            .control(self.now, &Control::PreconditionFull { zones })
            .expect("the zones are empty");
    }

    /// A report of all zones, with the buffer as the drive filled it.
    pub(crate) fn report(&mut self) -> Vec<u8> {
        let zones = self.drive.zones().count() as usize;
        let op = Op::ZoneReceive {
            slba: Lba(0),
            filter: ReportFilter::ALL,
            partial: false,
            extended: false,
        };
        let done = self.exec_with(op, Some(Buf::zeroed(64 * (zones + 1))));
        assert_eq!(done.status, Status::SUCCESS);
        done.data.expect("a buffer comes back").to_vec()
    }

    /// Busy time of all channels and units together, by cause.
    pub(crate) fn busy(&self) -> (BusyByCause, BusyByCause) {
        let ledger = self.drive.flash().media().ledger();
        let sum = |rows: &[BusyByCause]| {
            let mut total = BusyByCause::default();
            for row in rows {
                for (total, busy) in total.iter_mut().zip(row) {
                    *total += busy;
                }
            }
            total
        };
        (sum(&ledger.channels), sum(&ledger.units))
    }
}

/// The queue that a command is submitted to.
fn queue_of(tag: usize) -> QueueId {
    QueueId((tag % 3) as u16)
}

/// Reads (or other commands) that are submitted again as soon as they complete.
pub(crate) struct Load {
    ops: Vec<Op>,
    tags: Vec<usize>,
    /// All that have completed.
    pub(crate) done: Vec<Done>,
}

impl Load {
    /// Submits `ops` one `stagger` apart, so that they do not end together.
    pub(crate) fn start(rig: &mut Rig, ops: Vec<Op>, stagger: Nanos) -> Self {
        let mut load = Self {
            tags: Vec::new(),
            done: Vec::new(),
            ops,
        };
        for index in 0..load.ops.len() {
            load.tags.push(rig.submit(load.ops[index]));
            load.run_to(rig, rig.now + stagger);
        }
        load
    }

    /// Goes on until `to`.
    pub(crate) fn run_to(&mut self, rig: &mut Rig, to: Nanos) {
        while let Some(at) = rig.drive.next_event().filter(|at| *at <= to) {
            rig.run_to(at);
            for (op, tag) in self.ops.iter().zip(&mut self.tags) {
                if let Some(done) = &rig.done[*tag] {
                    assert_eq!(done.status, Status::SUCCESS);
                    self.done.push(done.clone());
                    *tag = rig.submit(*op);
                }
            }
        }
        rig.run_to(to);
    }

    /// Goes on until a command that is not part of the load has completed.
    pub(crate) fn run_until_done(&mut self, rig: &mut Rig, tag: usize, limit: Nanos) -> Done {
        while rig.done[tag].is_none() {
            let at = rig.drive.next_event().expect("the load never ends");
            assert!(at <= limit, "not done by {limit}");
            self.run_to(rig, at);
        }
        rig.done[tag].clone().expect("it has completed")
    }

    pub(crate) fn slowest(&self) -> Nanos {
        let latencies = self.done.iter().map(Done::latency);
        latencies.max().expect("some have completed")
    }
}
