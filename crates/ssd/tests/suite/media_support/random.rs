//! Random configurations, and random groups whose times name each operation.

use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::config::{ChannelArbitration, DiePolicy, MediaConfig, PageRegister, Suspend};
use zonelab_ssd::media::{FlashKind, FlashOp};

use super::service::NAMES;
use super::{Arrival, CONFZNSPP, Shape, shapes};

/// Every policy, suspend and page register, with transfers in order of readiness.
pub(crate) fn configs() -> impl Strategy<Value = MediaConfig> {
    let policy = prop_oneof![
        Just(DiePolicy::Fifo),
        Just(DiePolicy::ReadFirst),
        (1_u32..4).prop_map(|reads| DiePolicy::Weighted { reads }),
    ];
    let suspend = (any::<bool>(), any::<bool>(), 0_u64..200, 0_u32..4);
    let interval = prop_oneof![Just(0_u64), 1_u64..2_000];
    let register = prop_oneof![
        Just(PageRegister::Overlap),
        Just(PageRegister::Hold),
        Just(PageRegister::Cache),
    ];
    (policy, suspend, interval, register).prop_map(|(policy, suspend, interval, page_register)| {
        let (program, erase, overhead_ns, max_per_operation) = suspend;
        MediaConfig {
            policy,
            arbitration: ChannelArbitration::Ready,
            page_register,
            suspend: Suspend {
                program,
                erase,
                overhead_ns: Nanos(overhead_ns),
                max_per_operation,
                interval_ns: Nanos(interval),
            },
            ..CONFZNSPP
        }
    })
}

/// Unit, kind, and times in steps of [`NAMES`] nanoseconds.
fn op(units: u32) -> impl Strategy<Value = FlashOp> {
    let kind = prop_oneof![
        4 => Just(FlashKind::Read),
        2 => Just(FlashKind::Program),
        1 => Just(FlashKind::Erase),
    ];
    let transfer = prop_oneof![1 => Just(0_u32), 6 => 1_u32..4];
    (0..units, kind, 1_u32..12, transfer).prop_map(|(unit, kind, array, transfer)| FlashOp {
        unit,
        kind,
        array_ns: array * NAMES,
        transfer_ns: if kind == FlashKind::Erase {
            0
        } else {
            transfer * NAMES
        },
    })
}

/// Groups of one kind, close together; each operation is given its name.
fn arrivals(units: u32) -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![2 => Just(0_u64), 3 => 1_u64..300, 1 => 1_u64..4_000];
    let group = (gap, proptest::collection::vec(op(units), 1..4));
    proptest::collection::vec(group, 1..30).prop_map(|groups| {
        let mut at = Nanos::ZERO;
        let mut name = 0;
        let mut named = |kind: FlashKind, op: FlashOp| {
            name += 1;
            assert!(name < NAMES);
            let has_page = op.transfer_ns > 0 && kind != FlashKind::Erase;
            FlashOp {
                kind,
                array_ns: op.array_ns + name,
                transfer_ns: if has_page { op.transfer_ns + name } else { 0 },
                ..op
            }
        };
        let mut arrivals = Vec::new();
        for (gap, ops) in groups {
            at += Nanos(gap);
            let kind = ops[0].kind;
            let ops = ops.into_iter().map(|op| named(kind, op)).collect();
            arrivals.push(Arrival { at, ops });
        }
        arrivals
    })
}

/// Units, and groups for them.
pub(crate) fn workload() -> impl Strategy<Value = (Shape, Vec<Arrival>)> {
    shapes().prop_flat_map(|shape| {
        let units = shape.channel_of_unit.len() as u32;
        (Just(shape), arrivals(units))
    })
}
