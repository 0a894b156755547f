//! Random commands beside an oracle: what each block holds, which handle wrote it, and how
//! far each handle has written its reclaim unit.

use super::*;
use crate::drive_support::{lazy, us};
use proptest::collection::vec;
use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::{DriveModel, FaultTarget, snapshot};

const HANDLES: u16 = 3;
/// Blocks of the namespace.
const BLOCKS: u64 = 4 * UNIT;

#[derive(Clone, Debug)]
enum Step {
    /// Handle, first block, number of blocks.
    Write(u16, u64, u64),
    Deallocate(u64, u64),
    Update(Vec<u16>),
    Flush,
    Pass(u64),
    Settle,
    PowerCut(u64),
    Restore,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = || {
        (0..BLOCKS, prop_oneof![6 => 1..9_u64, 1 => 1..BLOCKS])
            .prop_map(|(slba, nlb)| (slba, nlb.min(BLOCKS - slba)))
    };
    let step = prop_oneof![
        // One of them is no handle.
        16 => (0..=HANDLES, range()).prop_map(|(of, (slba, nlb))| Step::Write(of, slba, nlb)),
        1 => range().prop_map(|(slba, nlb)| Step::Deallocate(slba, nlb)),
        2 => vec(0..HANDLES, 1..=usize::from(HANDLES)).prop_map(Step::Update),
        1 => Just(Step::Flush),
        6 => (0..4_000_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Settle),
        1 => any::<u64>().prop_map(Step::PowerCut),
        1 => Just(Step::Restore),
    ];
    vec(step, 1..160)
}

fn drives() -> impl Strategy<Value = DriveConfig> {
    let isolation = prop_oneof![Just(Isolation::Initially), Just(Isolation::Persistently)];
    (isolation, any::<bool>(), any::<bool>()).prop_map(|(isolation, is_buffered, is_lazy)| {
        let mut config = placed(HANDLES.into(), isolation);
        if is_buffered {
            config = buffered(config);
        }
        if is_lazy {
            let zones = config.zones.count + 2;
            config = lazy(config, zones);
        }
        config
    })
}

/// What the drive has to have done.
struct Oracle {
    /// Byte of each block, and the handle that wrote it; `None`: it holds nothing.
    blocks: Vec<Option<(u8, u16)>>,
    /// Blocks that each handle has written to its reclaim unit, at most all.
    filled: [u64; HANDLES as usize],
    host_blocks: u64,
    /// Reclaim units that were left before they were full.
    left: usize,
    /// Writes without a handle that there is.
    invalid: usize,
    /// Ranges of writes that may be in flight.
    open: Vec<(u64, u64)>,
}

impl Oracle {
    fn new() -> Self {
        Self {
            blocks: vec![None; BLOCKS as usize],
            filled: [0; HANDLES as usize],
            host_blocks: 0,
            left: 0,
            invalid: 0,
            open: Vec::new(),
        }
    }

    /// Whether a command on these blocks would have no order with another.
    fn overlaps(&self, slba: u64, nlb: u64) -> bool {
        let meets = |(from, count): &(u64, u64)| slba < from + count && *from < slba + nlb;
        self.open.iter().any(meets)
    }

    fn write(&mut self, placement: u16, (slba, nlb): (u64, u64), byte: u8) {
        let is_handle = placement < HANDLES;
        self.invalid += usize::from(!is_handle);
        let handle = if is_handle { placement } else { 0 };
        self.blocks[slba as usize..(slba + nlb) as usize].fill(Some((byte, handle)));
        let filled = &mut self.filled[usize::from(handle)];
        *filled = match (*filled + nlb) % UNIT {
            0 => UNIT,
            part => part,
        };
        self.host_blocks += nlb;
        self.open.push((slba, nlb));
    }

    fn update(&mut self, placements: &[u16]) {
        for of in placements {
            let filled = std::mem::take(&mut self.filled[usize::from(*of)]);
            self.left += usize::from(filled > 0 && filled < UNIT);
        }
    }

    /// Compares a drive that has nothing to do.
    fn check(&self, rig: &mut Rig, isolation: Isolation) {
        let expected: Vec<_> = (0..HANDLES)
            .zip(self.filled)
            .map(|(of, filled)| (of, of, if filled == UNIT { UNIT } else { UNIT - filled }))
            .collect();
        assert_eq!(status(rig, NSID), expected);
        let command = Op::Read {
            slba: Lba(0),
            nlb: BLOCKS as u32,
        };
        let (read, data) = exec(rig, Command::on(NSID, command), blocks(0xa5, BLOCKS));
        assert_eq!(read, Status::SUCCESS);
        let data = data.expect("the buffer comes back");
        let mut writers = std::collections::BTreeMap::new();
        for ((at, block), bytes) in (0..).zip(&self.blocks).zip(data.chunks(LBA)) {
            let byte = block.map_or(0, |(byte, _)| byte);
            assert!(bytes.iter().all(|of| *of == byte), "block {at}");
            let unit = unit_of(rig, at);
            assert_eq!(unit.is_some(), block.is_some(), "block {at}");
            if let (Some(unit), Some((_, handle))) = (unit, block) {
                let writer = *writers.entry(unit).or_insert(*handle);
                let is_apart = isolation == Isolation::Persistently;
                assert!(!is_apart || writer == *handle, "unit {unit} is shared");
            }
        }
        let statistics = rig.drive.placement().statistics();
        let host_bytes = u128::from(self.host_blocks) * LBA as u128;
        assert_eq!(statistics.host_write_bytes, host_bytes);
        let totals = rig.drive.totals();
        let programmed =
            totals.host_program_bytes + totals.collect_program_bytes + totals.fill_program_bytes;
        assert_eq!(statistics.media_write_bytes, u128::from(programmed));
        let events = rig.drive.placement().events(true);
        let expected = (self.left + self.invalid).min(PLACEMENT_EVENTS);
        assert_eq!(events.len(), expected, "{} {}", self.left, self.invalid);
    }
}

fn enable_all(rig: &mut Rig) {
    for placement in 0..HANDLES {
        for of in zonelab_ssd::PLACEMENT_EVENT_TYPES {
            assert!(rig.drive.enable_placement_event(NSID, placement, of, true));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn handles_do_what_the_oracle_says(config in drives(), steps in steps()) {
        let isolation = match config.namespaces[0].kind {
            NamespaceKind::Conventional(log) => {
                log.handles.map_or(Isolation::Initially, |of| of.isolation)
            }
            NamespaceKind::Zoned => Isolation::Initially,
        };
        let mut rig = Rig::new(&config);
        enable_all(&mut rig);
        let mut oracle = Oracle::new();
        let mut byte = 0_u8;
        for step in steps {
            match step {
                Step::Write(placement, slba, nlb) => {
                    if oracle.overlaps(slba, nlb) {
                        rig.settle();
                        oracle.open.clear();
                    }
                    byte = byte % 250 + 1;
                    rig.submit_command(write(placement, slba, nlb), blocks(byte, nlb));
                    oracle.write(placement, (slba, nlb), byte);
                }
                Step::Deallocate(slba, nlb) => {
                    rig.settle();
                    oracle.open.clear();
                    let mut range = vec![0; 16];
                    range[4..8].copy_from_slice(&(nlb as u32).to_le_bytes());
                    range[8..].copy_from_slice(&slba.to_le_bytes());
                    let op = Op::Deallocate { ranges: 1 };
                    let (status, _) = exec(&mut rig, Command::on(NSID, op), Some(Buf::from(range)));
                    prop_assert_eq!(status, Status::SUCCESS);
                    oracle.blocks[slba as usize..(slba + nlb) as usize].fill(None);
                }
                Step::Update(placements) => {
                    // Commands in flight have no order.
                    rig.settle();
                    oracle.open.clear();
                    prop_assert_eq!(update(&mut rig, &placements), Status::SUCCESS);
                    oracle.update(&placements);
                }
                Step::Flush => {
                    rig.submit_command(Command::on(NSID, Op::Flush), None);
                }
                Step::Pass(ns) => rig.run_for(Nanos(ns)),
                Step::Settle => {
                    rig.settle();
                    oracle.open.clear();
                    oracle.check(&mut rig, isolation);
                }
                Step::PowerCut(seed) => {
                    rig.settle();
                    // Without the flush, what is lost is anybody's guess: `conventional` has that.
                    exec(&mut rig, Command::on(NSID, Op::Flush), None);
                    oracle.open.clear();
                    rig.drive.power_cut(rig.now, us(1), seed);
                    rig.run_to(rig.drive.ready_at());
                    oracle.check(&mut rig, isolation);
                }
                Step::Restore => {
                    rig.settle();
                    oracle.open.clear();
                    let saved = snapshot::save(&rig.drive).expect("it is idle");
                    let drive = snapshot::restore(&config, &saved).expect("it is of this drive");
                    let again = snapshot::save(&drive).expect("it is idle");
                    prop_assert!(again == saved, "nothing is lost on the way");
                    rig.restart(drive);
                    oracle.check(&mut rig, isolation);
                }
            }
            rig.drive.assert_invariants();
        }
        rig.settle();
        oracle.check(&mut rig, isolation);
    }
}
