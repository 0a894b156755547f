//! Random drives, and random command streams for them.

use proptest::collection::vec;
use proptest::prelude::*;
use zonelab_device::{Lba, Nanos, Op, ZoneId};
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction, ZoneState};
use zonelab_ssd::config::{
    AllocationConfig, ChannelArbitration, CommandCosts, DataStore, DiePolicy, DriveConfig,
    EraseExtent, EraseWhen, FillExtent, FinishConfig, FrontEndConfig, Geometry, MappingConfig,
    MediaConfig, MediaDetails, PageRegister, PlaneMode, ReadParts, ResetConfig, StripeOrder,
    Suspend, ZonesConfig,
};

use super::Rig;

/// Commands cost no more than the core time of their kind.
const NO_COSTS: CommandCosts = CommandCosts {
    read_per_kib_ns: Nanos::ZERO,
    write_per_kib_ns: Nanos::ZERO,
    append_per_kib_ns: Nanos::ZERO,
    unit_bytes: None,
    part_of_unit_ns: Nanos::ZERO,
    small_blocks_ns: Nanos::ZERO,
    open_ns: None,
    close_ns: None,
    implicit_open_ns: Nanos::ZERO,
    read_latency_ns: Nanos::ZERO,
    write_latency_ns: Nanos::ZERO,
    append_latency_ns: Nanos::ZERO,
    management_latency_ns: Nanos::ZERO,
    completion_latency_ns: Nanos::ZERO,
    read_completion_ns: Nanos::ZERO,
    write_completion_ns: Nanos::ZERO,
    append_completion_ns: Nanos::ZERO,
    variation_ppm: 0,
};

/// Commands cost nothing, and the link is not modelled.
pub(crate) const NO_FRONT_END: FrontEndConfig = FrontEndConfig {
    cores: 0,
    read_ns: Nanos::ZERO,
    write_ns: Nanos::ZERO,
    append_ns: Nanos::ZERO,
    management_ns: Nanos::ZERO,
    link_bytes_per_s: None,
    max_transfer_bytes: None,
    max_append_bytes: None,
    max_in_flight_bytes: None,
    appends_per_zone: None,
    costs: NO_COSTS,
};

/// The designs of a drive: what it does, apart from how large and how fast it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Designs {
    /// The granularity is in pages here.
    pub(crate) finish: FinishConfig,
    pub(crate) reset: ResetConfig,
    pub(crate) lazy: bool,
    pub(crate) service: (DiePolicy, ChannelArbitration, Suspend),
    pub(crate) planes: PlaneMode,
}

const HOLD: Nanos = Nanos::from_us(3_000);

pub(crate) fn finishes() -> Vec<FinishConfig> {
    let mut all = vec![FinishConfig::Metadata];
    for granularity_bytes in [1, 5] {
        for pause_ns in [Nanos::ZERO, Nanos::from_us(50)] {
            for yield_ns in [None, Some(HOLD)] {
                all.push(FinishConfig::Fill {
                    granularity_bytes,
                    pause_ns,
                    yield_ns,
                    buffered: false,
                    takes_core: false,
                    extent: FillExtent::Zone,
                });
            }
        }
    }
    all
}

pub(crate) fn resets() -> Vec<ResetConfig> {
    let mut all = Vec::new();
    for extent in [EraseExtent::Full, EraseExtent::Partial] {
        for (erase, preempt_ns) in [
            (EraseWhen::Synchronous, None),
            (EraseWhen::Synchronous, Some(HOLD)),
            (EraseWhen::FirstZoneWrite, None),
            (EraseWhen::FirstBlockWrite, None),
            (EraseWhen::Background, None),
            (EraseWhen::Background, Some(HOLD)),
        ] {
            all.push(ResetConfig {
                erase,
                extent,
                preempt_ns,
                bookkeeping: None,
            });
        }
    }
    all
}

pub(crate) fn services() -> Vec<(DiePolicy, ChannelArbitration, Suspend)> {
    let suspend = Suspend {
        program: true,
        erase: true,
        overhead_ns: Nanos::from_us(5),
        max_per_operation: 3,
        interval_ns: Nanos::ZERO,
    };
    let weighted = DiePolicy::Weighted { reads: 2 };
    vec![
        (DiePolicy::Fifo, ChannelArbitration::Arrival, Suspend::NONE),
        (DiePolicy::Fifo, ChannelArbitration::Ready, Suspend::NONE),
        (
            DiePolicy::ReadFirst,
            ChannelArbitration::Ready,
            Suspend::NONE,
        ),
        (weighted, ChannelArbitration::Ready, Suspend::NONE),
        (DiePolicy::ReadFirst, ChannelArbitration::Ready, suspend),
        (weighted, ChannelArbitration::Ready, suspend),
    ]
}

pub(crate) const PLANES: [PlaneMode; 3] = [
    PlaneMode::Independent,
    PlaneMode::MultiPlane,
    PlaneMode::Single,
];

/// Every combination of designs.
pub(crate) fn every_combination() -> Vec<Designs> {
    let mut all = Vec::new();
    for finish in finishes() {
        for reset in resets() {
            for lazy in [false, true] {
                for service in services() {
                    for planes in PLANES {
                        all.push(Designs {
                            finish,
                            reset,
                            lazy,
                            service,
                            planes,
                        });
                    }
                }
            }
        }
    }
    all
}

pub(crate) fn designs() -> impl Strategy<Value = Designs> {
    prop::sample::select(every_combination())
}

/// Everything about a small drive but its designs.
pub(crate) fn bodies() -> impl Strategy<Value = DriveConfig> {
    (shapes(), times()).prop_map(|((geometry, zones), media)| DriveConfig {
        name: "drawn".to_owned(),
        geometry,
        lba_bytes: 4_096,
        zones,
        namespaces: Vec::new(),
        copy: None,
        media,
        front_end: NO_FRONT_END,
        write_buffer: None,
        slc_cache: None,
        finish: FinishConfig::Metadata,
        reset: ResetConfig {
            erase: EraseWhen::Synchronous,
            extent: EraseExtent::Full,
            preempt_ns: None,
            bookkeeping: None,
        },
        mapping: MappingConfig::Direct,
        allocation: AllocationConfig::NONE,
        data: DataStore::None,
    })
}

/// Geometry and zones. Blocks per plane are for [`drive`] to work out.
fn shapes() -> impl Strategy<Value = (Geometry, ZonesConfig)> {
    let spans = (
        (1..3_u32, 1..3_u32),
        (1..3_u32, 1..3_u32),
        1..3_u32,
        1..3_u32,
    );
    let pages = (1..5_u32, 0..3_u32);
    let zones = (1..6_u32, 1..90_u64, 0..9_u64);
    let flags = (any::<bool>(), any::<bool>(), 0..3_u32);
    (spans, pages, zones, flags).prop_map(|(spans, pages, sizes, (across, plane_first, limit))| {
        let ((zone_channels, more_channels), (zone_ways, more_ways), dies, planes) = spans;
        let (count, capacity_lbas, beyond) = sizes;
        let geometry = Geometry {
            channels: zone_channels * more_channels,
            ways: zone_ways * more_ways,
            dies,
            planes,
            blocks_per_plane: 0,
            pages_per_block: pages.0,
            page_bytes: 4_096 << pages.1,
        };
        let limit = (limit > 0).then(|| limit.min(count));
        let zones = ZonesConfig {
            count,
            size_lbas: capacity_lbas + beyond,
            capacity_lbas,
            max_active: limit.map(|limit| (limit + 1).min(count)),
            max_open: limit,
            channels: zone_channels,
            ways: zone_ways,
            stripe: if plane_first {
                StripeOrder::PlaneFirst
            } else {
                StripeOrder::ChannelFirst
            },
            stagger: 0,
            read_across: across,
            descriptor_extension_bytes: 0,
            zrwa: None,
        };
        (geometry, zones)
    })
}

fn times() -> impl Strategy<Value = MediaConfig> {
    let ns = |max: u64| (1..max).prop_map(Nanos);
    let times = (ns(100_000), ns(1_000_000), ns(4_000_000), ns(50_000));
    (times, any::<bool>(), any::<bool>()).prop_map(|(times, partial_transfer, hold)| MediaConfig {
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
        planes: PlaneMode::Independent,
        policy: DiePolicy::Fifo,
        arbitration: ChannelArbitration::Arrival,
        suspend: Suspend::NONE,
        details: MediaDetails::NONE,
    })
}

/// A body with designs, and just enough flash for it.
pub(crate) fn drive(mut config: DriveConfig, designs: Designs, spare: u32) -> DriveConfig {
    config.finish = designs.finish;
    if let FinishConfig::Fill {
        granularity_bytes, ..
    } = &mut config.finish
    {
        *granularity_bytes *= config.geometry.page_bytes;
    }
    config.reset = designs.reset;
    (
        config.media.policy,
        config.media.arbitration,
        config.media.suspend,
    ) = designs.service;
    config.media.planes = designs.planes;
    let mut physical_zones = config.zones.count;
    if designs.lazy {
        physical_zones += spare;
        config.mapping = MappingConfig::Lazy { physical_zones };
    }
    let width = width(&config);
    let groups = config.geometry.planes_total() / width;
    let page_lbas = u64::from(config.geometry.page_bytes / config.lba_bytes);
    let pages = config.zones.capacity_lbas.div_ceil(page_lbas) as u32;
    let rows = pages.div_ceil(width * config.geometry.pages_per_block);
    config.geometry.blocks_per_plane = rows * physical_zones.div_ceil(groups);
    config
}

/// Planes that a zone stripes over.
pub(crate) fn width(config: &DriveConfig) -> u32 {
    let (zones, geometry) = (&config.zones, &config.geometry);
    zones.channels * zones.ways * geometry.dies * geometry.planes
}

/// Any drive without a front end.
pub(crate) fn drives() -> impl Strategy<Value = DriveConfig> {
    (bodies(), designs(), 0..4_u32, details()).prop_map(|(body, designs, spare, details)| {
        let mut config = drive(body, designs, spare);
        if let Some(details) = details {
            details.apply(&mut config);
        }
        config
    })
}

/// What only closely modelled drives have; not the variation of times, which no
/// two drives share.
#[derive(Clone, Copy, Debug)]
struct Details {
    parts_ns: Option<[u64; 2]>,
    transfer_unit_bytes: Option<u32>,
    cache: bool,
    interval_ns: u64,
}

fn details() -> impl Strategy<Value = Option<Details>> {
    let parts = prop::option::of([1..100_000_u64, 1..100_000_u64]);
    let unit = prop::option::of(512..20_000_u32);
    let details = (parts, unit, any::<bool>(), 0..60_000_u64);
    prop::option::of(
        details.prop_map(
            |(parts_ns, transfer_unit_bytes, cache, interval_ns)| Details {
                parts_ns,
                transfer_unit_bytes,
                cache,
                interval_ns,
            },
        ),
    )
}

impl Details {
    /// Those that `config` may have.
    fn apply(self, config: &mut DriveConfig) {
        let page_bytes = config.geometry.page_bytes;
        let media = &mut config.media;
        if let Some(parts) = self.parts_ns
            && page_bytes > config.lba_bytes
        {
            let parts = ReadParts::new(&parts.map(Nanos)).expect("there are two");
            media.read_ns = parts.mean();
            media.details.read_parts = Some(parts);
        }
        if media.arbitration == ChannelArbitration::Ready {
            media.details.transfer_unit_bytes = self.transfer_unit_bytes.map(|b| b.min(page_bytes));
            if self.cache {
                media.page_register = PageRegister::Cache;
            }
        }
        if media.suspend != Suspend::NONE {
            media.suspend.interval_ns = Nanos(self.interval_ns);
        }
    }
}

pub(crate) fn front_ends() -> impl Strategy<Value = FrontEndConfig> {
    let cost = || (0..20_000_u64).prop_map(Nanos);
    let costs = (cost(), cost(), cost(), cost());
    let link = prop::option::of(10_000_000..4_000_000_000_u64);
    // From one page of a host, which is little, to more than is ever in flight.
    let window = prop::option::of((0..12_u32).prop_map(|shift| 4_096 << shift));
    let limits = (link, window);
    (1..4_u32, costs, limits).prop_map(|(cores, costs, (link_bytes_per_s, window))| {
        FrontEndConfig {
            cores,
            read_ns: costs.0,
            write_ns: costs.1,
            append_ns: costs.2,
            management_ns: costs.3,
            link_bytes_per_s,
            max_transfer_bytes: None,
            max_append_bytes: None,
            max_in_flight_bytes: window,
            appends_per_zone: None,
            costs: NO_COSTS,
        }
    })
}

/// One thing that a host does. Numbers are reduced to what the drive has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Lets time pass.
    Pause(u64),
    /// Lets the drive come to rest.
    Settle,
    Write {
        zone: u32,
        nlb: u32,
    },
    WriteElsewhere {
        zone: u32,
        offset: u32,
        nlb: u32,
    },
    Append {
        zone: u32,
        nlb: u32,
    },
    Read {
        zone: u32,
        offset: u32,
        nlb: u32,
    },
    Manage {
        zone: u32,
        action: ZoneSendAction,
    },
    ManageAll {
        action: ZoneSendAction,
    },
    Report,
    Flush,
}

fn steps_of_any_kind() -> impl Strategy<Value = Step> {
    let actions = prop::sample::select(vec![
        ZoneSendAction::OPEN,
        ZoneSendAction::CLOSE,
        ZoneSendAction::FINISH,
        ZoneSendAction::FINISH,
        ZoneSendAction::RESET,
        ZoneSendAction::RESET,
        ZoneSendAction::OFFLINE,
    ]);
    let all = prop::sample::select(vec![ZoneSendAction::FINISH, ZoneSendAction::RESET]);
    let zone = || 0..6_u32;
    let nlb = || prop_oneof![1..6_u32, 1..60_u32];
    prop_oneof![
        3 => (0..30_000_u64).prop_map(Step::Pause),
        3 => (0..5_000_000_u64).prop_map(Step::Pause),
        1 => Just(Step::Settle),
        9 => (zone(), nlb()).prop_map(|(zone, nlb)| Step::Write { zone, nlb }),
        1 => (zone(), 0..90_u32, nlb())
            .prop_map(|(zone, offset, nlb)| Step::WriteElsewhere { zone, offset, nlb }),
        3 => (zone(), nlb()).prop_map(|(zone, nlb)| Step::Append { zone, nlb }),
        5 => (zone(), 0..90_u32, nlb())
            .prop_map(|(zone, offset, nlb)| Step::Read { zone, offset, nlb }),
        7 => (zone(), actions).prop_map(|(zone, action)| Step::Manage { zone, action }),
        1 => all.prop_map(|action| Step::ManageAll { action }),
        1 => Just(Step::Report),
        1 => Just(Step::Flush),
    ]
}

pub(crate) fn streams(steps: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    vec(steps_of_any_kind(), steps)
}

impl Step {
    /// The command, for the drive as it is now; `None`: it is about time.
    pub(crate) fn op(self, rig: &Rig) -> Option<Op> {
        let zones = &rig.drive.config().zones;
        let (count, size) = (zones.count, zones.size_lbas as u32);
        let address = |zone: u32, offset: u32| rig.lba(zone % count, offset % size);
        Some(match self {
            Self::Pause(_) | Self::Settle => return None,
            Self::Write { zone, nlb } => {
                let zone = zone % count;
                // As much as fits, so that zones get full; a full zone says so.
                let room = match rig.drive.zones().state(ZoneId(zone)) {
                    ZoneState::FULL => nlb,
                    _ => {
                        (zones.capacity_lbas - rig.drive.zones().written_lbas(ZoneId(zone))) as u32
                    }
                };
                rig.write(zone, nlb.min(room))
            }
            Self::WriteElsewhere { zone, offset, nlb } => Op::Write {
                slba: address(zone, offset),
                nlb,
            },
            Self::Append { zone, nlb } => rig.append(zone % count, nlb),
            Self::Read { zone, offset, nlb } => Op::Read {
                slba: address(zone, offset),
                nlb,
            },
            Self::Manage { zone, action } => rig.send(zone % count, action),
            Self::ManageAll { action } => Op::ZoneSend {
                slba: Lba(0),
                action,
                select_all: true,
            },
            Self::Report => Op::ZoneReceive {
                slba: Lba(0),
                filter: ReportFilter::ALL,
                partial: false,
                extended: false,
            },
            Self::Flush => Op::Flush,
        })
    }
}
