//! A small drive, drawn: every design, every combination.

use zonelab_device::{CopyLimits, Nanos};
use zonelab_ssd::config::{
    AllocationConfig, Bookkeeping, BufferRelease, ChannelArbitration, CommandCosts, DataStore,
    DiePolicy, DriveConfig, EraseExtent, EraseWhen, Evaluate, FillExtent, FinishConfig,
    FrontEndConfig, Geometry, MappingConfig, MediaConfig, MediaDetails, NamespaceConfig,
    NamespaceKind, PageRegister, Placement, PlaneMode, ReadParts, ResetConfig, StripeOrder,
    Suspend, Thresholds, Victim, WriteBufferConfig, ZonesConfig, ZrwaConfig,
};

use crate::draw::Draw;

/// Pages of a zone, at most: enough for several rows of blocks.
const ZONE_PAGES: u32 = 64;

/// Draws a configuration that [`zonelab_ssd::profile::check`] accepts, with flash
/// for all zones unless it `may_be_thin`.
pub(crate) fn draw(draw: &mut Draw<'_>, may_be_thin: bool) -> DriveConfig {
    let spare = draw.maybe(|draw| draw.int(0..=3_u32));
    let finish = draw.int(0..=3_u8);
    let mut reset = reset(draw);
    let data = draw.pick(&[DataStore::None, DataStore::Memory]);
    let (mut geometry, lba_bytes) = geometry(draw);
    let mut finish = first_finish(draw, finish, geometry.page_bytes);
    let mut zones = zones(draw, &geometry, lba_bytes);
    let width = zones.channels * zones.ways * geometry.dies * geometry.planes;
    let groups = geometry.luns() * geometry.planes / width;
    zones.stagger = match zones.stripe {
        // Whole dies, which multi-plane operations need.
        StripeOrder::PlaneFirst => geometry.planes * draw.int(0..=width / geometry.planes - 1),
        StripeOrder::ChannelFirst => draw.int(0..=width - 1),
    };
    let page_lbas = geometry.page_bytes / lba_bytes;
    let pages = zones.capacity_lbas.div_ceil(u64::from(page_lbas));
    let rows = pages.div_ceil(u64::from(width * geometry.pages_per_block));
    let rows = u32::try_from(rows).expect("zones are small");
    let may_be_thin = may_be_thin && finish != FinishConfig::Metadata;
    let (mapping, thin) = mapping(draw, spare, (zones.count, rows, groups), may_be_thin);
    let physical_zones = mapping.physical_zones(zones.count);
    geometry.blocks_per_plane = physical_zones.div_ceil(groups) * rows + draw.int(0..=2);
    let mut front_end = front_end(draw);
    let media = media(draw, &geometry, page_lbas);
    let mut write_buffer = draw.maybe(|draw| buffer(draw, &geometry, media.arbitration));
    if let Some(buffer) = &mut write_buffer
        && !mapping.has_elements()
        && draw.flag()
    {
        buffer.placement = Placement::LeastWork;
    }
    if let FinishConfig::Fill {
        granularity_bytes,
        buffered,
        takes_core,
        extent,
        ..
    } = &mut finish
    {
        if write_buffer.is_some() && draw.flag() {
            *buffered = true;
            *granularity_bytes = lba_bytes * draw.int(1..=20);
            *takes_core = front_end.cores > 0 && draw.flag();
        }
        if mapping.has_elements() && (thin || !draw.one_in(4)) {
            *extent = FillExtent::Elements;
        }
    }
    reset.bookkeeping = draw.maybe(|draw| bookkeeping(draw, write_buffer.is_some()));
    let namespaces = namespaces(draw, &zones);
    if write_buffer.is_some() {
        zones.zrwa = draw.maybe(|draw| zrwa(draw, zones.capacity_lbas));
    }
    let copy = draw.maybe(copy);
    if mapping != MappingConfig::Direct && draw.one_in(3) {
        reset.erase = EraseWhen::Thresholds(thresholds(draw, physical_zones.div_ceil(groups)));
        reset.preempt_ns = None;
    }
    if !thin {
        // What flash there is when a command has waited for its turn cannot be told before.
        front_end.max_in_flight_bytes = draw.maybe(|draw| 4_096 << draw.int(0..=8_u32));
        front_end.appends_per_zone = draw.maybe(|draw| draw.int(1..=4));
    }
    DriveConfig {
        name: "drawn".to_owned(),
        geometry,
        lba_bytes,
        zones,
        namespaces,
        copy,
        media,
        front_end,
        write_buffer,
        slc_cache: None,
        finish,
        reset,
        mapping,
        allocation: AllocationConfig {
            depth_weight: depth_weight(draw, mapping, media.planes),
            thin,
            ..allocation(draw, mapping != MappingConfig::Direct)
        },
        data,
    }
}

/// A finish that programs nothing, or one that fills; kind 1 never gives way.
fn first_finish(draw: &mut Draw<'_>, kind: u8, page_bytes: u32) -> FinishConfig {
    match kind {
        0 => FinishConfig::Metadata,
        _ => FinishConfig::Fill {
            granularity_bytes: page_bytes * draw.int(1..=9),
            pause_ns: draw.maybe(time).unwrap_or(Nanos::ZERO),
            yield_ns: if kind == 1 { None } else { Some(time(draw)) },
            buffered: false,
            takes_core: false,
            extent: FillExtent::Zone,
        },
    }
}

/// What zones stand on, and whether there may be more of them than flash: `spare`
/// zones more than there are (`None`: direct), of so many rows of blocks, in groups.
fn mapping(
    draw: &mut Draw<'_>,
    spare: Option<u32>,
    (zones, rows, groups): (u32, u32, u32),
    may_be_thin: bool,
) -> (MappingConfig, bool) {
    let Some(spare) = spare else {
        return (MappingConfig::Direct, false);
    };
    let physical_zones = zones + spare;
    let kind = draw.int(0..=3_u8);
    if kind == 0 {
        return (MappingConfig::Lazy { physical_zones }, false);
    }
    let thin = draw.one_in(3) && may_be_thin;
    let physical_zones = match thin {
        true => draw.int(groups..=groups.max(physical_zones)),
        false => physical_zones,
    };
    let mapping = match kind {
        1 => MappingConfig::Stripe { physical_zones },
        _ => MappingConfig::Chunk {
            chunk_blocks: divisor(draw, rows),
            physical_zones,
        },
    };
    (mapping, thin)
}

/// What an element of depth is worth, where LUNs may give different numbers.
fn depth_weight(draw: &mut Draw<'_>, mapping: MappingConfig, planes: PlaneMode) -> Option<u32> {
    let may_differ =
        matches!(mapping, MappingConfig::Chunk { .. }) && planes != PlaneMode::MultiPlane;
    draw.maybe(|draw| draw.pick(&[0, 1, 3, u32::MAX]))
        .filter(|_| may_differ)
}

/// When zones get their flash.
fn allocation(draw: &mut Draw<'_>, is_mapped: bool) -> AllocationConfig {
    let time_ns = draw
        .maybe(time)
        .filter(|_| is_mapped)
        .unwrap_or(Nanos::ZERO);
    AllocationConfig {
        time_ns,
        at_open: is_mapped && draw.flag(),
        pool_zones: match time_ns {
            Nanos::ZERO => 0,
            _ => draw.int(0..=2),
        },
        ..AllocationConfig::NONE
    }
}

/// A time: a few nanoseconds, so that things coincide, or up to a millisecond.
pub(super) fn time(draw: &mut Draw<'_>) -> Nanos {
    Nanos(match draw.int(0..=2_u8) {
        0 => draw.int(1..=4),
        1 => draw.pick(&[10, 100, 1_000, 10_000]),
        _ => draw.int(1..=1_000_000),
    })
}

fn geometry(draw: &mut Draw<'_>) -> (Geometry, u32) {
    let lba_bytes = draw.pick(&[512, 4_096]);
    let geometry = Geometry {
        channels: draw.pick(&[1, 2, 4, 3]),
        ways: draw.pick(&[1, 2, 3]),
        dies: draw.int(1..=2),
        planes: draw.pick(&[1, 2, 4]),
        blocks_per_plane: 0,
        pages_per_block: draw.int(1..=6),
        page_bytes: lba_bytes * draw.pick(&[1, 4, 2, 3]),
    };
    (geometry, lba_bytes)
}

fn zones(draw: &mut Draw<'_>, geometry: &Geometry, lba_bytes: u32) -> ZonesConfig {
    let count = draw.int(1..=10_u32);
    let page_lbas = u64::from(geometry.page_bytes / lba_bytes);
    let pages = u64::from(draw.int(1..=ZONE_PAGES));
    // Any capacity: the last page may be used in part.
    let capacity_lbas = pages * page_lbas - draw.int(0..=page_lbas - 1);
    let size_lbas = match draw.int(0..=2_u8) {
        0 => capacity_lbas,
        1 => capacity_lbas.next_power_of_two(),
        _ => capacity_lbas + draw.int(0..=17),
    };
    let max_active = draw.maybe(|draw| draw.int(1..=count));
    let max_open = match max_active {
        Some(active) => Some(draw.int(1..=active)),
        None => draw.maybe(|draw| draw.int(1..=count)),
    };
    ZonesConfig {
        count,
        size_lbas,
        capacity_lbas,
        max_active,
        max_open,
        channels: divisor(draw, geometry.channels),
        ways: divisor(draw, geometry.ways),
        stripe: draw.pick(&[StripeOrder::ChannelFirst, StripeOrder::PlaneFirst]),
        stagger: 0,
        read_across: draw.flag(),
        descriptor_extension_bytes: draw.pick(&[64, 0, 192]),
        zrwa: None,
    }
}

/// None, or two to four that divide the zones, with limits of their own.
fn namespaces(draw: &mut Draw<'_>, zones: &ZonesConfig) -> Vec<NamespaceConfig> {
    let count = draw.pick(&[1, 1, 2, 3, 4]).min(zones.count);
    if count < 2 {
        return Vec::new();
    }
    let mut left = zones.count;
    let namespace = |index: u32| {
        let behind = count - 1 - index;
        let mine = match behind {
            0 => left,
            behind => draw.int(1..=left - behind),
        };
        left -= mine;
        // A drive with limits has namespaces with limits.
        let mut limit = |of_drive: Option<u32>, most: u32| match of_drive {
            Some(_) => Some(draw.int(1..=most)),
            None => draw.maybe(|draw| draw.int(1..=most)),
        };
        let max_active = limit(zones.max_active, mine);
        let max_open = limit(zones.max_open.or(max_active), max_active.unwrap_or(mine));
        NamespaceConfig {
            kind: NamespaceKind::Zoned,
            zones: mine,
            max_active,
            max_open,
        }
    };
    (0..count).map(namespace).collect()
}

/// Areas of a few granularities, one of which divides the capacity.
fn zrwa(draw: &mut Draw<'_>, capacity_lbas: u64) -> ZrwaConfig {
    let granularities: Vec<u32> = (1..=16)
        .filter(|lbas| capacity_lbas.is_multiple_of((*lbas).into()))
        .collect();
    let flush_granularity_lbas = draw.pick(&granularities);
    let most = capacity_lbas / u64::from(flush_granularity_lbas);
    let times = u32::try_from(most.min(8)).expect("it is a small number");
    ZrwaConfig {
        size_lbas: flush_granularity_lbas * draw.int(1..=times),
        flush_granularity_lbas,
        max_areas: draw.maybe(|draw| draw.int(1..=4)),
        explicit_flush: !draw.one_in(4),
    }
}

/// Any limits: a range may be longer than a drawn drive.
fn copy(draw: &mut Draw<'_>) -> CopyLimits {
    let max_range_lbas = draw.pick(&[8, 1, 64, u16::MAX]);
    CopyLimits {
        max_ranges: draw.pick(&[4, 1, 2, 256]),
        max_range_lbas,
        max_lbas: u32::from(max_range_lbas) * draw.int(1..=3_u32) + draw.int(0..=9),
    }
}

fn divisor(draw: &mut Draw<'_>, of: u32) -> u32 {
    let divisors: Vec<u32> = (1..=of).filter(|d| of.is_multiple_of(*d)).collect();
    draw.pick(&divisors)
}

fn media(draw: &mut Draw<'_>, geometry: &Geometry, page_lbas: u32) -> MediaConfig {
    let (program, erase) = draw.pick(&[(false, false), (true, true), (true, false), (false, true)]);
    let suspend = if program || erase {
        Suspend {
            program,
            erase,
            overhead_ns: draw.maybe(time).unwrap_or(Nanos::ZERO),
            max_per_operation: draw.int(1..=3),
            interval_ns: draw.maybe(time).unwrap_or(Nanos::ZERO),
        }
    } else {
        Suspend::NONE
    };
    let policy = match draw.int(0..=3_u8) {
        0 | 1 => DiePolicy::Fifo,
        2 => DiePolicy::ReadFirst,
        _ => DiePolicy::Weighted {
            reads: draw.int(1..=3),
        },
    };
    let page_register = draw.pick(&[
        PageRegister::Overlap,
        PageRegister::Hold,
        PageRegister::Cache,
    ]);
    let details = draw
        .maybe(|draw| details(draw, geometry, page_lbas))
        .unwrap_or_default();
    let in_order = policy == DiePolicy::Fifo
        && suspend == Suspend::NONE
        && page_register != PageRegister::Cache
        && details.transfer_unit_bytes.is_none();
    let read_ns = match details.read_parts {
        Some(parts) => parts.mean(),
        None => time(draw),
    };
    MediaConfig {
        read_ns,
        program_ns: time(draw),
        erase_ns: time(draw),
        transfer_ns: draw.maybe(time).unwrap_or(Nanos::ZERO),
        partial_transfer: draw.flag(),
        page_register,
        planes: draw.pick(&[
            PlaneMode::Independent,
            PlaneMode::MultiPlane,
            PlaneMode::Single,
        ]),
        policy,
        arbitration: if in_order && draw.flag() {
            ChannelArbitration::Arrival
        } else {
            ChannelArbitration::Ready
        },
        suspend,
        details,
    }
}

fn details(draw: &mut Draw<'_>, geometry: &Geometry, page_lbas: u32) -> MediaDetails {
    let counts: Vec<u32> = (2..=ReadParts::MAX as u32)
        .filter(|count| page_lbas.is_multiple_of(*count))
        .collect();
    let times = |draw: &mut Draw<'_>| {
        let count = draw.pick(&counts);
        let times: Vec<Nanos> = (0..count).map(|_| time(draw)).collect();
        ReadParts::new(&times)
    };
    MediaDetails {
        read_parts: if counts.is_empty() { None } else { times(draw) },
        transfer_unit_bytes: draw.maybe(|draw| draw.int(512..=geometry.page_bytes)),
        program_variation_ppm: draw.pick(&[0, 100_000, 1_000_000]),
    }
}

fn front_end(draw: &mut Draw<'_>) -> FrontEndConfig {
    let cores = draw.pick(&[0, 1, 2, 3]);
    let mut cost = || {
        if cores > 0 {
            draw.maybe(time).unwrap_or(Nanos::ZERO)
        } else {
            Nanos::ZERO
        }
    };
    let [read_ns, write_ns, append_ns, management_ns] = [cost(), cost(), cost(), cost()];
    let max_transfer_bytes = draw.maybe(|draw| 4_096 << draw.int(0..=4_u32));
    let max_append_bytes = draw.maybe(|draw| {
        let bytes = 4_096 << draw.int(0..=4_u32);
        max_transfer_bytes.map_or(bytes, |most| bytes.min(most))
    });
    FrontEndConfig {
        cores,
        read_ns,
        write_ns,
        append_ns,
        management_ns,
        link_bytes_per_s: draw.maybe(|draw| draw.pick(&[1_000_000_000, 3_200_000_000, 1_000_000])),
        max_transfer_bytes,
        max_append_bytes,
        max_in_flight_bytes: None,
        appends_per_zone: None,
        costs: draw
            .maybe(|draw| command_costs(draw, cores))
            .unwrap_or_default(),
    }
}

/// From one page, which is far too little, to more than the drive holds.
fn buffer(
    draw: &mut Draw<'_>,
    geometry: &Geometry,
    arbitration: ChannelArbitration,
) -> WriteBufferConfig {
    let pages = match draw.int(0..=2_u8) {
        0 => draw.int(1..=4_u64),
        1 => draw.int(1..=40),
        _ => 4_096,
    };
    WriteBufferConfig {
        placement: Placement::InOrder,
        size_bytes: pages * u64::from(geometry.page_bytes),
        power_loss_protection: draw.flag(),
        drain_bytes_per_s: draw.maybe(|draw| draw.pick(&[1_000_000, 100_000_000, 3_000_000_000])),
        turn_bytes: draw.maybe(|draw| draw.int(1..=3_u64) * u64::from(geometry.page_bytes)),
        release: if arbitration == ChannelArbitration::Ready && draw.flag() {
            BufferRelease::Transfer
        } else {
            BufferRelease::Program
        },
    }
}

fn bookkeeping(draw: &mut Draw<'_>, has_buffer: bool) -> Bookkeeping {
    let full_zone_ns = time(draw);
    let (pause, slices) = (time(draw), draw.int(1..=5));
    Bookkeeping {
        base_ns: time(draw),
        full_zone_ns,
        drain_pause_ns: if has_buffer {
            pause.min(full_zone_ns)
        } else {
            Nanos::ZERO
        },
        slices: if has_buffer { slices } else { 1 },
        quiesce: has_buffer && draw.flag(),
        open_zone_ns: draw.maybe(time).unwrap_or(Nanos::ZERO),
    }
}

/// `cores` of them work.
fn command_costs(draw: &mut Draw<'_>, cores: u32) -> CommandCosts {
    let mut costs = CommandCosts {
        read_latency_ns: time(draw),
        write_latency_ns: time(draw),
        append_latency_ns: time(draw),
        management_latency_ns: time(draw),
        completion_latency_ns: draw.maybe(time).unwrap_or(Nanos::ZERO),
        ..CommandCosts::default()
    };
    if cores > 0 {
        costs.read_per_kib_ns = Nanos(draw.int(0..=1_000));
        costs.write_per_kib_ns = Nanos(draw.int(0..=1_000));
        costs.append_per_kib_ns = Nanos(draw.int(0..=1_000));
        costs.unit_bytes = draw.maybe(|draw| 512 * draw.int(1..=40));
        costs.part_of_unit_ns = costs.unit_bytes.map_or(Nanos::ZERO, |_| time(draw));
        costs.small_blocks_ns = time(draw);
        costs.open_ns = draw.maybe(time);
        costs.close_ns = draw.maybe(time);
        costs.implicit_open_ns = time(draw);
        costs.read_completion_ns = draw.maybe(time).unwrap_or(Nanos::ZERO);
        costs.write_completion_ns = draw.maybe(time).unwrap_or(Nanos::ZERO);
        costs.append_completion_ns = draw.maybe(time).unwrap_or(Nanos::ZERO);
        costs.variation_ppm = draw.pick(&[0, 500_000, 1_000_000]);
    }
    costs
}

fn reset(draw: &mut Draw<'_>) -> ResetConfig {
    let erase = draw.pick(&[
        EraseWhen::Synchronous,
        EraseWhen::FirstZoneWrite,
        EraseWhen::FirstBlockWrite,
        EraseWhen::Background,
    ]);
    let may_preempt = matches!(erase, EraseWhen::Synchronous | EraseWhen::Background);
    ResetConfig {
        erase,
        extent: draw.pick(&[EraseExtent::Full, EraseExtent::Partial]),
        preempt_ns: if may_preempt { draw.maybe(time) } else { None },
        bookkeeping: None,
    }
}

/// Thresholds of groups with up to so many physical zones.
fn thresholds(draw: &mut Draw<'_>, zones: u32) -> Thresholds {
    let invalid_zones = draw.maybe(|draw| draw.int(1..=zones.min(4)));
    Thresholds {
        free_zones: draw.int(0..=zones.min(4)),
        invalid_zones,
        evaluate: draw.pick(&[Evaluate::Allocation, Evaluate::Command, Evaluate::Change]),
        zones_at_once: draw.maybe(|draw| draw.int(1..=4)),
        victim: draw.pick(&[Victim::Oldest, Victim::LeastWorn]),
        adapt: invalid_zones.and_then(|_| draw.maybe(|draw| Nanos(draw.int(1..=20_000_000)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::seeded;

    #[test]
    fn every_drawn_configuration_is_a_valid_one_and_every_design_is_drawn() {
        let target = crate::target("drive").unwrap();
        let mut designs = std::collections::BTreeSet::new();
        for seed in 0..3_000 {
            let data = seeded(target, seed);
            let config = draw(&mut Draw::new(&data), seed % 2 == 0);
            if let Err(broken) = zonelab_ssd::profile::check(&config) {
                panic!("seed {seed}: {broken:?}\n{config:#?}");
            }
            let fill = match config.finish {
                FinishConfig::Metadata => "metadata",
                FinishConfig::AtFold => "at-fold",
                FinishConfig::Fill { yield_ns: None, .. } => "fill",
                FinishConfig::Fill {
                    yield_ns: Some(_), ..
                } => "dynamic",
            };
            let lazy = config.mapping != MappingConfig::Direct;
            let ResetConfig {
                erase,
                extent,
                preempt_ns,
                ..
            } = config.reset;
            let erase = match erase {
                EraseWhen::Thresholds(of) => format!("thresholds {:?}", of.evaluate),
                other => format!("{other:?}"),
            };
            designs.insert(format!(
                "{fill} {lazy} {erase} {extent:?} {}",
                preempt_ns.is_some()
            ));
        }
        // 3 finishes x 2 mappings x 2 extents x (2 plain and 2 x 2 preemptible timings)
        // and 3 finishes x 2 extents x 3 ways to count, lazy alone.
        assert_eq!(designs.len(), 3 * 2 * 2 * 6 + 3 * 2 * 3);
    }
}
