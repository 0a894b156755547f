//! Conventional namespaces against a plain array.

mod amplification;
mod causes;
mod failures;
mod policies;
mod profile_file;
mod units;

use crate::drive_support;
use crate::drive_support::{PAGE, READ, Rig, WRITE, lazy, reset, small, us};
use proptest::collection::vec;
use proptest::prelude::*;
use zonelab_device::{Buf, Command, Lba, NamespaceId, Nanos, Op};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction};
use zonelab_ssd::config::{
    BufferRelease, CollectionPolicy, DataStore, DriveConfig, EraseExtent, EraseWhen, Isolation,
    LogConfig, NamespaceConfig, NamespaceKind, Placement, ReclaimUnitHandles, WriteBufferConfig,
};
use zonelab_ssd::profile::{self, Profile, to_toml};
use zonelab_ssd::{Control, ControlError, DriveModel, FaultTarget, snapshot};

const ZONED: NamespaceId = NamespaceId(1);
const FLAT: NamespaceId = NamespaceId(2);
const LBA: usize = 4_096;
/// Zones of the log of [`config`], and those of them that are spare.
const LOG: u32 = 7;
const SPARE: u32 = 3;
/// Blocks of a zone of [`config`].
const ZONE: u64 = 16 * PAGE as u64;
/// Blocks of the conventional namespace of [`config`].
const BLOCKS: u64 = (LOG - SPARE) as u64 * ZONE;

fn conventional(zones: u32, spare_zones: u32) -> NamespaceConfig {
    NamespaceConfig {
        kind: NamespaceKind::Conventional(LogConfig::new(spare_zones)),
        zones,
        max_active: None,
        max_open: None,
    }
}

/// Two zones of 16 pages, and a log over seven, of which four can be addressed.
fn config() -> DriveConfig {
    let mut config = small();
    config.data = DataStore::Memory;
    config.zones.capacity_lbas = ZONE;
    config.zones.size_lbas = ZONE + 8;
    config.zones.count = 2 + LOG;
    let zoned = NamespaceConfig {
        kind: NamespaceKind::Zoned,
        zones: 2,
        max_active: None,
        max_open: None,
    };
    config.namespaces = vec![zoned, conventional(LOG, SPARE)];
    config
}

/// Handles of [`placed`].
const HANDLES: u32 = 2;

/// The same blocks with reclaim unit handles, beside another such namespace: a drive with
/// handles has no zones for hosts.
fn placed(isolation: Isolation) -> DriveConfig {
    let handles = ReclaimUnitHandles {
        count: HANDLES,
        isolation,
    };
    let spare_zones = NamespaceConfig::spare_zones_min(Some(handles));
    let zones = LOG - SPARE + spare_zones;
    let mut config = config();
    let mut with_handles = conventional(zones, spare_zones);
    with_handles.kind = NamespaceKind::Conventional(LogConfig {
        handles: Some(handles),
        ..LogConfig::new(spare_zones)
    });
    config.namespaces = vec![conventional(SPARE + 1, SPARE), with_handles];
    config.zones.count = SPARE + 1 + zones;
    config
}

fn buffered(is_protected: bool) -> DriveConfig {
    with_buffer(config(), is_protected)
}

fn with_buffer(mut config: DriveConfig, is_protected: bool) -> DriveConfig {
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: 128 << 10,
        power_loss_protection: is_protected,
        release: BufferRelease::Program,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::InOrder,
    });
    config
}

fn submit(rig: &mut Rig, op: Op, data: Option<Buf>) -> usize {
    rig.submit_command(Command::on(FLAT, op), data)
}

fn exec(rig: &mut Rig, op: Op, data: Option<Buf>) -> drive_support::Done {
    let tag = submit(rig, op, data);
    rig.wait(tag).clone()
}

/// `nlb` blocks of a byte.
fn blocks(byte: u8, nlb: u64) -> Option<Buf> {
    Some(Buf::from(vec![byte; nlb as usize * LBA]))
}

fn write(slba: u64, nlb: u64) -> Op {
    let (slba, nlb) = (Lba(slba), nlb as u32);
    Op::Write { slba, nlb }
}

fn read(slba: u64, nlb: u64) -> Op {
    let (slba, nlb) = (Lba(slba), nlb as u32);
    Op::Read { slba, nlb }
}

/// The byte of each block.
fn bytes(rig: &mut Rig, slba: u64, nlb: u64) -> Vec<u8> {
    let done = exec(rig, read(slba, nlb), blocks(0xa5, nlb));
    assert_eq!(done.status, Status::SUCCESS);
    let data = done.data.expect("the buffer comes back");
    let byte = |block: &[u8]| {
        assert!(block.iter().all(|byte| *byte == block[0]), "a torn block");
        block[0]
    };
    data.chunks(LBA).map(byte).collect()
}

#[test]
fn hosts_see_blocks_and_no_zones() {
    let mut rig = Rig::new(&config());
    let info = rig.drive.info().namespaces[1].clone();
    assert_eq!(
        (info.zoned, info.size_lbas, info.copy),
        (None, BLOCKS, None)
    );
    assert!(rig.drive.info().namespaces[0].zoned.is_some());
    let slba = Lba(0);
    for op in [
        Op::Append {
            zslba: slba,
            nlb: 1,
        },
        Op::ZoneSend {
            slba,
            action: ZoneSendAction::RESET,
            select_all: true,
        },
        Op::ZoneReceive {
            slba,
            filter: ReportFilter::ALL,
            partial: false,
            extended: false,
        },
        Op::Copy {
            sdlba: slba,
            ranges: 1,
        },
    ] {
        assert_eq!(exec(&mut rig, op, None).status, Status::INVALID_OPCODE);
    }
    for (slba, nlb, status) in [
        (BLOCKS - 1, 1, Status::SUCCESS),
        (BLOCKS - 1, 2, Status::LBA_OUT_OF_RANGE),
        (BLOCKS, 1, Status::LBA_OUT_OF_RANGE),
        (u64::MAX, 1, Status::LBA_OUT_OF_RANGE),
        (0, 0, Status::INVALID_FIELD),
    ] {
        assert_eq!(exec(&mut rig, write(slba, nlb), None).status, status);
        assert_eq!(exec(&mut rig, read(slba, nlb), None).status, status);
    }
    for action in [
        Control::PreconditionFull { zones: 2..3 },
        Control::FailZone {
            zone: zonelab_device::ZoneId(4),
            to: zonelab_nvme::zns::ZoneState::OFFLINE,
        },
    ] {
        let mut config = config();
        config.data = DataStore::None;
        let mut rig = Rig::new(&config);
        let refused = rig.drive.control(rig.now, &action);
        assert!(matches!(refused, Err(ControlError::Conventional { .. })));
    }
}

#[test]
fn blocks_can_be_written_again_and_in_any_order() {
    let mut rig = Rig::new(&config());
    let done = exec(&mut rig, write(100, 4), blocks(1, 4));
    assert_eq!(
        (done.status, done.latency(), done.result),
        (Status::SUCCESS, WRITE, 0)
    );
    exec(&mut rig, write(3, 2), blocks(2, 2));
    exec(&mut rig, write(101, 1), blocks(3, 1));
    assert_eq!(bytes(&mut rig, 99, 6), [0, 1, 3, 1, 1, 0]);
    assert_eq!(bytes(&mut rig, 2, 4), [0, 2, 2, 0]);
    // Two of the blocks are on a page of their own by now.
    let done = exec(&mut rig, read(100, 1), None);
    assert_eq!(done.latency(), READ);
    // What was never written costs no flash.
    assert_eq!(exec(&mut rig, read(50, 4), None).latency(), Nanos::ZERO);

    let compare = |nlb| Op::Compare {
        slba: Lba(100),
        nlb,
    };
    assert_eq!(
        exec(&mut rig, compare(1), blocks(1, 1)).status,
        Status::SUCCESS
    );
    assert_eq!(
        exec(&mut rig, compare(2), blocks(1, 2)).status,
        Status::COMPARE_FAILURE
    );
    let slba = Lba(100);
    let verified = exec(&mut rig, Op::Verify { slba, nlb: 4 }, None);
    assert_eq!(verified.status, Status::SUCCESS);
    let zeroes = Op::WriteZeroes { slba, nlb: 1 };
    assert_eq!(exec(&mut rig, zeroes, None).status, Status::SUCCESS);
    let mut range = [0; 16];
    range[4] = 1;
    range[8] = 3;
    let data = Some(Buf::from(range.to_vec()));
    let done = exec(&mut rig, Op::Deallocate { ranges: 1 }, data);
    assert_eq!(done.status, Status::SUCCESS);
    assert_eq!(bytes(&mut rig, 100, 2), [0, 3]);
    assert_eq!(bytes(&mut rig, 3, 2), [0, 2]);
    assert_eq!(exec(&mut rig, Op::Flush, None).status, Status::SUCCESS);
}

#[test]
fn sequential_overwrites_amplify_nothing_and_random_ones_do() {
    let mut config = config();
    config.data = DataStore::None;
    let dlwa = |next: &mut dyn FnMut(u64) -> u64| {
        let mut rig = Rig::new(&config);
        for page in 0..40 * BLOCKS / 4 {
            let slba = next(page) * 4;
            assert_eq!(exec(&mut rig, write(slba, 4), None).status, Status::SUCCESS);
        }
        rig.settle();
        rig.drive.assert_invariants();
        let totals = rig.drive.totals();
        assert_eq!(totals.host_program_bytes, totals.host_write_bytes);
        assert_eq!(totals.resets, 0, "no host reset a zone");
        totals.dlwa().expect("something was written")
    };
    let pages = BLOCKS / 4;
    let sequential = dlwa(&mut |page| page % pages);
    assert!((sequential - 1.0).abs() < 1e-9, "{sequential}");
    let mut x = 1_u64;
    let random = dlwa(&mut |_| {
        x = x
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (x >> 33) % pages
    });
    // Of seven zones, three are spare, of which one is kept empty and two are being filled.
    assert!((1.2..4.0).contains(&random), "{random}");
}

#[test]
fn writes_to_the_log_share_dies_with_zones() {
    let mut rig = Rig::new(&config());
    let zoned = rig.write(0, PAGE);
    let first = rig.submit(zoned);
    let second = submit(&mut rig, write(0, 4), None);
    assert_eq!(rig.wait(first).latency(), WRITE);
    // The same die and channel: the transfer overlaps with the program.
    assert!(rig.wait(second).latency() > WRITE + us(600));
}

/// What a block holds after `old` was written and flushed, `new` was written over it, and
/// power was lost as soon as that was acknowledged.
fn after_a_loss(config: &DriveConfig, flushes_new: bool, seed: u64) -> u8 {
    let mut rig = Rig::new(config);
    exec(&mut rig, write(7, 1), blocks(1, 1));
    exec(&mut rig, Op::Flush, None);
    exec(&mut rig, write(7, 1), blocks(2, 1));
    if flushes_new {
        exec(&mut rig, Op::Flush, None);
    }
    rig.drive.power_cut(rig.now, us(1), seed);
    rig.run_to(rig.drive.ready_at());
    rig.drive.assert_invariants();
    bytes(&mut rig, 7, 1)[0]
}

#[test]
fn what_was_not_flushed_is_lost_if_the_buffer_is_not_protected() {
    for seed in 0..16 {
        assert_eq!(after_a_loss(&buffered(false), false, seed), 1);
        assert_eq!(after_a_loss(&buffered(false), true, seed), 2);
        assert_eq!(after_a_loss(&buffered(true), false, seed), 2);
        // Without a buffer, what was acknowledged is on the flash.
        assert_eq!(after_a_loss(&config(), false, seed), 2);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64),
    Read(u64, u64),
    Zeroes(u64, u64),
    Deallocate(u64, u64),
    Flush,
    /// A write to the other namespace, which is reset when it is full.
    Zoned(u32),
    Pass(u64),
    Settle,
    PowerCut(u64),
    Restore,
    /// The flash of a zone of the log fails.
    Fail(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = || {
        (0..BLOCKS, prop_oneof![4 => 1..9_u64, 1 => 1..BLOCKS])
            .prop_map(|(slba, nlb)| (slba, nlb.min(BLOCKS - slba)))
    };
    let step = prop_oneof![
        12 => range().prop_map(|(slba, nlb)| Step::Write(slba, nlb)),
        3 => range().prop_map(|(slba, nlb)| Step::Read(slba, nlb)),
        1 => range().prop_map(|(slba, nlb)| Step::Zeroes(slba, nlb)),
        1 => range().prop_map(|(slba, nlb)| Step::Deallocate(slba, nlb)),
        1 => Just(Step::Flush),
        2 => (1..9_u32).prop_map(Step::Zoned),
        6 => (0..4_000_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Settle),
        1 => any::<u64>().prop_map(Step::PowerCut),
        1 => Just(Step::Restore),
        1 => any::<u32>().prop_map(Step::Fail),
    ];
    vec(step, 1..160)
}

fn drives() -> impl Strategy<Value = DriveConfig> {
    let erase = prop_oneof![
        Just(EraseWhen::Synchronous),
        Just(EraseWhen::FirstZoneWrite),
        Just(EraseWhen::FirstBlockWrite),
        Just(EraseWhen::Background),
    ];
    let base = prop_oneof![
        3 => Just(config()),
        2 => Just(failures::with_more_spare()),
        1 => Just(placed(Isolation::Initially)),
        1 => Just(placed(Isolation::Persistently)),
    ];
    let buffer = prop_oneof![Just(None), Just(Some(false)), Just(Some(true))];
    let policy = prop_oneof![
        Just(CollectionPolicy::Greedy),
        Just(CollectionPolicy::CostBenefit)
    ];
    let unit_lbas = prop_oneof![3 => Just(1), 1 => Just(2), 1 => Just(4), 1 => Just(32)];
    let drawn = (base, buffer, erase, policy, unit_lbas, any::<bool>());
    drawn.prop_map(|(mut config, buffer, erase, policy, unit_lbas, is_lazy)| {
        for namespace in &mut config.namespaces {
            if let NamespaceKind::Conventional(log) = &mut namespace.kind {
                log.collection = policy;
                log.mapping_unit_lbas = unit_lbas;
            }
        }
        if let Some(is_protected) = buffer {
            config = with_buffer(config, is_protected);
        }
        config.reset = reset(erase, EraseExtent::Partial);
        if is_lazy {
            let zones = config.zones.count + 2;
            config = lazy(config, zones);
        }
        config
    })
}

/// Blocks of a mapping unit of the conventional namespace.
fn unit_of(config: &DriveConfig) -> u64 {
    match config.namespaces[1].kind {
        NamespaceKind::Conventional(log) => log.mapping_unit_lbas.into(),
        NamespaceKind::Zoned => unreachable!("the second namespace is conventional"),
    }
}

/// A write in flight.
#[derive(Clone, Copy)]
struct Open {
    tag: usize,
    slba: u64,
    nlb: u64,
    byte: u8,
    /// No other write to one of its blocks was in flight with it, whose order is anybody's.
    is_alone: bool,
}

/// What each block may hold: the byte that it holds for sure, and those of
/// commands that have not completed.
#[derive(Default)]
struct Model {
    blocks: Vec<Vec<u8>>,
    /// What each block may hold after a loss of power, in a buffer without protection: what
    /// it may have held at the last flush, and all that was written since.
    since_flush: Vec<Vec<u8>>,
    /// Flushes in flight: tag, and what each block may hold once it is over.
    flushes: Vec<(usize, Vec<Vec<u8>>)>,
    open: Vec<Open>,
    /// Tag, first block, number, and what each may hold.
    reads: Vec<(usize, u64, u64, Vec<Vec<u8>>)>,
}

impl Model {
    fn new() -> Self {
        Self {
            blocks: vec![vec![0]; BLOCKS as usize],
            since_flush: vec![vec![0]; BLOCKS as usize],
            ..Self::default()
        }
    }

    fn range(slba: u64, nlb: u64) -> std::ops::Range<usize> {
        slba as usize..(slba + nlb) as usize
    }

    /// A write has been submitted: its blocks may hold it from now on.
    fn written(&mut self, tag: usize, slba: u64, nlb: u64, byte: u8) {
        let flushes = self.flushes.iter_mut().map(|(_, of)| of);
        for all in flushes.chain([&mut self.blocks, &mut self.since_flush]) {
            for block in &mut all[Self::range(slba, nlb)] {
                block.push(byte);
            }
        }
        for (_, from, count, possible) in &mut self.reads {
            for (block, possible) in (*from..*from + *count).zip(possible) {
                if (slba..slba + nlb).contains(&block) {
                    possible.push(byte);
                }
            }
        }
        let mut is_alone = true;
        for open in &mut self.open {
            if slba < open.slba + open.nlb && open.slba < slba + nlb {
                (open.is_alone, is_alone) = (false, false);
            }
        }
        self.open.push(Open {
            tag,
            slba,
            nlb,
            byte,
            is_alone,
        });
    }

    /// A flush has been submitted: what completed before it is safe once it is over.
    fn flushed(&mut self, tag: usize) {
        self.flushes.push((tag, self.blocks.clone()));
    }

    /// Power is lost. What was in flight is in doubt, and with it, if the buffer `loses`
    /// what was not flushed, all since the last flush.
    fn power_lost(&mut self, loses: bool) {
        self.open.clear();
        self.reads.clear();
        self.flushes.clear();
        match loses {
            true => self.blocks.clone_from(&self.since_flush),
            false => self.since_flush.clone_from(&self.blocks),
        }
    }

    /// Looks at what has completed.
    fn completed(&mut self, rig: &Rig) {
        let blocks = &mut self.blocks;
        self.open.retain(|write| {
            let done = rig.done[write.tag].as_ref();
            let is_over = done.is_some();
            // One that fails may have been written in part.
            if write.is_alone && done.is_some_and(|done| done.status.is_success()) {
                blocks[Self::range(write.slba, write.nlb)].fill(vec![write.byte]);
            }
            !is_over
        });
        let since_flush = &mut self.since_flush;
        self.flushes.retain_mut(|(tag, after)| {
            let is_over = rig.done[*tag].is_some();
            if is_over {
                since_flush.clone_from(after);
            }
            !is_over
        });
        self.reads.retain(|(tag, slba, _, possible)| {
            let Some(done) = &rig.done[*tag] else {
                return true;
            };
            let data = done.data.as_deref().expect("the buffer comes back");
            for ((at, block), possible) in (*slba..).zip(data.chunks(LBA)).zip(possible) {
                assert!(
                    block.iter().all(|byte| *byte == block[0]),
                    "block {at} is torn"
                );
                assert!(
                    possible.contains(&block[0]),
                    "block {at}: {} of {possible:?}",
                    block[0]
                );
            }
            false
        });
    }
}

/// Nothing that was submitted and did not complete ever will.
fn lose_power(rig: &mut Rig, seed: u64) {
    rig.drive.power_cut(rig.now, us(1), seed);
    rig.run_to(rig.drive.ready_at());
    for tag in 0..rig.done.len() {
        if rig.done[tag].is_none() {
            rig.forget(tag);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_log_holds_what_an_array_would(config in drives(), steps in steps()) {
        let mut rig = Rig::new(&config);
        let mut model = Model::new();
        let mut byte = 0_u8;
        for step in steps {
            match step {
                Step::Write(slba, nlb) => {
                    byte = byte % 250 + 1;
                    // Without handles it says nothing.
                    let placement = u16::from(byte) % HANDLES as u16;
                    let command = Command::on(FLAT, write(slba, nlb)).placed(placement);
                    let tag = rig.submit_command(command, blocks(byte, nlb));
                    model.written(tag, slba, nlb, byte);
                }
                Step::Zeroes(slba, nlb) => {
                    let op = Op::WriteZeroes { slba: Lba(slba), nlb: nlb as u32 };
                    let tag = submit(&mut rig, op, None);
                    model.written(tag, slba, nlb, 0);
                }
                Step::Deallocate(slba, nlb) => {
                    let mut range = vec![0; 16];
                    range[4..8].copy_from_slice(&(nlb as u32).to_le_bytes());
                    range[8..].copy_from_slice(&slba.to_le_bytes());
                    let op = Op::Deallocate { ranges: 1 };
                    let tag = submit(&mut rig, op, Some(Buf::from(range)));
                    // Units of which it names a part stay as they are.
                    let unit = unit_of(&config);
                    let (first, behind) = (slba.div_ceil(unit) * unit, (slba + nlb) / unit * unit);
                    if first < behind {
                        model.written(tag, first, behind - first, 0);
                    }
                }
                Step::Read(slba, nlb) => {
                    let tag = submit(&mut rig, read(slba, nlb), blocks(0xee, nlb));
                    let possible = model.blocks[Model::range(slba, nlb)].to_vec();
                    model.reads.push((tag, slba, nlb, possible));
                }
                Step::Flush => {
                    let tag = submit(&mut rig, Op::Flush, None);
                    model.flushed(tag);
                }
                Step::Zoned(_) if rig.drive.info().namespaces[0].zoned.is_none() => {}
                Step::Zoned(nlb) => {
                    let left = ZONE - rig.drive.zones().written_lbas(zonelab_device::ZoneId(0));
                    let op = match left {
                        0 => rig.reset(0),
                        left => rig.write(0, nlb.min(left as u32)),
                    };
                    rig.submit_command(Command::on(ZONED, op), None);
                }
                Step::Pass(ns) => rig.run_for(Nanos(ns)),
                Step::Settle => {
                    rig.settle();
                    model.completed(&rig);
                    // Without writes in flight, the last of each block counts, or
                    // one that was in flight with it.
                    prop_assert!(model.open.is_empty() && model.reads.is_empty());
                }
                Step::PowerCut(seed) => {
                    model.completed(&rig);
                    lose_power(&mut rig, seed);
                    let buffer = config.write_buffer.as_ref();
                    model.power_lost(buffer.is_some_and(|of| !of.power_loss_protection));
                }
                Step::Fail(zone) => failures::fail(&mut rig, zone),
                Step::Restore => {
                    rig.settle();
                    model.completed(&rig);
                    // A snapshot has what is in the buffer as if it had been flushed.
                    model.power_lost(false);
                    let saved = snapshot::save(&rig.drive).expect("it is idle");
                    let drive = snapshot::restore(&config, &saved).expect("it is of this drive");
                    // What was in the buffer counts as programmed there.
                    let (before, after) = (rig.drive.totals(), drive.totals());
                    prop_assert_eq!(after.host_write_bytes, before.host_write_bytes);
                    prop_assert_eq!(after.collect_program_bytes, before.collect_program_bytes);
                    rig.restart(drive);
                }
            }
            model.completed(&rig);
            rig.drive.assert_invariants();
            rig.drive.zones().assert_invariants();
        }
        rig.settle();
        model.completed(&rig);
        let data = bytes(&mut rig, 0, BLOCKS);
        for (at, (byte, possible)) in data.iter().zip(&model.blocks).enumerate() {
            prop_assert!(possible.contains(byte), "block {}: {} of {:?}", at, byte, possible);
        }
    }
}
