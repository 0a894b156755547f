//! Times: of the flash, of firmware cores, of a host link.

use super::*;

pub(super) fn media() -> impl Strategy<Value = MediaConfig> {
    let time = || (1..5_000_000_u64).prop_map(Nanos);
    let times = (time(), time(), time(), (0..100_000_u64).prop_map(Nanos));
    let planes = prop_oneof![
        Just(PlaneMode::Independent),
        Just(PlaneMode::MultiPlane),
        Just(PlaneMode::Single)
    ];
    let policy = prop_oneof![
        Just(DiePolicy::Fifo),
        Just(DiePolicy::ReadFirst),
        (1..u32::MAX).prop_map(|reads| DiePolicy::Weighted { reads }),
    ];
    let suspend = prop_oneof![
        Just(Suspend::NONE),
        (any::<bool>(), time(), 1..u32::MAX).prop_map(|(both, overhead_ns, most)| Suspend {
            program: both,
            erase: true,
            overhead_ns,
            max_per_operation: most,
            interval_ns: Nanos::ZERO,
        }),
    ];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (times, planes, policy, suspend, flags).prop_map(|(times, planes, policy, suspend, flags)| {
        let (partial_transfer, hold, arrival) = flags;
        let may_reserve = policy == DiePolicy::Fifo && suspend == Suspend::NONE;
        MediaConfig {
            read_ns: times.0,
            program_ns: times.1,
            erase_ns: times.2,
            transfer_ns: times.3,
            partial_transfer,
            page_register: if hold {
                PageRegister::Hold
            } else {
                PageRegister::Overlap
            },
            planes,
            policy,
            arbitration: if arrival && may_reserve {
                ChannelArbitration::Arrival
            } else {
                ChannelArbitration::Ready
            },
            suspend,
            details: MediaDetails::NONE,
        }
    })
}

pub(super) fn front_end() -> impl Strategy<Value = FrontEndConfig> {
    let limits = (of(1_000_000..u64::MAX), of(12..32_u32), of(12..32_u32));
    (0..4_u32, vec(0..1_000_000_u64, 4), limits).prop_map(|(cores, times, limits)| {
        let time = |index: usize| Nanos(if cores == 0 { 0 } else { times[index] });
        let (link_bytes_per_s, transfer, append) = limits;
        let append = append.map(|append| append.min(transfer.unwrap_or(31)));
        FrontEndConfig {
            cores,
            read_ns: time(0),
            write_ns: time(1),
            append_ns: time(2),
            management_ns: time(3),
            link_bytes_per_s,
            max_transfer_bytes: transfer.map(|shift| 1 << shift),
            max_append_bytes: append.map(|shift| 1 << shift),
            max_in_flight_bytes: append.map(|shift| 3 << shift),
            appends_per_zone: append,
            costs: CommandCosts::default(),
        }
    })
}
