//! Configurations for the tests of profiles.

mod timed;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::config::{
    AllocationConfig, Bookkeeping, BufferRelease, ChannelArbitration, CommandCosts, DataStore,
    DiePolicy, DriveConfig, EraseExtent, EraseWhen, Evaluate, FillExtent, FinishConfig,
    FrontEndConfig, Geometry, MappingConfig, MediaConfig, MediaDetails, NamespaceConfig,
    NamespaceKind, PageRegister, Placement, PlaneMode, ReadParts, ResetConfig, StripeOrder,
    Suspend, Thresholds, Victim, WriteBufferConfig, ZonesConfig, ZrwaConfig,
};

use timed::{front_end, media};

/// Configurations that the check accepts, small enough to be built.
pub(crate) fn valid_config() -> impl Strategy<Value = DriveConfig> {
    (
        geometry_and_zones(),
        media(),
        front_end(),
        (
            management(),
            write_buffer(),
            command_costs(),
            bookkeeping(),
            details(),
        ),
        data(),
    )
        .prop_map(
            |(
                (geometry, lba_bytes, zones, spare),
                media,
                front_end,
                ((finish, reset, lazy), write_buffer, costs, books, details),
                data,
            )| {
                let mut config = DriveConfig {
                    name: "drawn-1.x_Y".to_owned(),
                    geometry,
                    lba_bytes,
                    zones,
                    namespaces: Vec::new(),
                    copy: None,
                    media,
                    front_end,
                    write_buffer: write_buffer.map(|mut buffer: WriteBufferConfig| {
                        buffer.size_bytes *= u64::from(geometry.page_bytes);
                        buffer
                    }),
                    slc_cache: None,
                    finish,
                    reset,
                    mapping: MappingConfig::Direct,
                    allocation: AllocationConfig::NONE,
                    data,
                };
                config.reset.bookkeeping = books.map(|mut books: Bookkeeping| {
                    if config.write_buffer.is_none() {
                        books.drain_pause_ns = Nanos::ZERO;
                        books.slices = 1;
                    }
                    books
                });
                config.namespaces = halves(&zones);
                if config.front_end.cores > 0 {
                    config.front_end.costs = costs;
                }
                if let FinishConfig::Fill {
                    granularity_bytes, ..
                } = &mut config.finish
                {
                    *granularity_bytes *= geometry.page_bytes;
                }
                details.apply(&mut config);
                if let Some(allocation) = lazy {
                    config.mapping = MappingConfig::Lazy {
                        physical_zones: zones.count + spare,
                    };
                    config.allocation = allocation;
                }
                // Room for every physical zone in one group, which is more than enough.
                let planes = zones.channels * zones.ways * geometry.dies * geometry.planes;
                let page_lbas = u64::from(geometry.page_bytes / lba_bytes);
                let row_pages = u64::from(planes) * u64::from(geometry.pages_per_block);
                let rows = zones.capacity_lbas.div_ceil(page_lbas).div_ceil(row_pages);
                config.geometry.blocks_per_plane =
                    u32::try_from(rows * u64::from(zones.count + spare)).expect("few and small");
                config
            },
        )
}

/// What only closely modelled drives have, before it is known what goes together.
#[derive(Clone, Copy, Debug)]
struct Details {
    read_parts: Option<(bool, [u64; 4])>,
    transfer_unit_bytes: Option<u32>,
    variations_ppm: (u32, u32),
    cache: bool,
    interval_ns: u64,
    releases_early: bool,
    drain_bytes_per_s: Option<u64>,
    turn_lbas: Option<u64>,
    zrwa: Option<(u32, u32, Option<u32>, bool)>,
    completions_ns: [u64; 3],
    fills_buffer: bool,
    open_zone_ns: u64,
    quiesce: bool,
    stagger: u32,
    by_work: bool,
}

fn details() -> impl Strategy<Value = Details> {
    let media = (
        of((any::<bool>(), any::<[u16; 4]>())),
        of(512..100_000_u32),
        (0..=1_000_000_u32, 0..=1_000_000_u32),
        any::<bool>(),
        0..9_000_u64,
    );
    let buffer = (
        any::<bool>(),
        of(1_000_000..u64::MAX),
        any::<bool>(),
        of(1..9_u64),
        of((1..40_u32, 1..9_u32, of(1..9_u32), any::<bool>())),
    );
    let rest = (
        any::<[u8; 3]>(),
        0..9_000_u64,
        any::<bool>(),
        any::<u32>(),
        any::<bool>(),
    );
    (media, buffer, rest).prop_map(|(media, buffer, rest)| Details {
        read_parts: media
            .0
            .map(|(four, times)| (four, times.map(|time| u64::from(time) + 1))),
        transfer_unit_bytes: media.1,
        variations_ppm: media.2,
        cache: media.3,
        interval_ns: media.4,
        releases_early: buffer.0,
        drain_bytes_per_s: buffer.1,
        turn_lbas: buffer.3,
        zrwa: buffer.4,
        completions_ns: rest.0.map(u64::from),
        fills_buffer: buffer.2,
        open_zone_ns: rest.1,
        quiesce: rest.2,
        stagger: rest.3,
        by_work: rest.4,
    })
}

impl Details {
    /// Those that `config` may have.
    fn apply(self, config: &mut DriveConfig) {
        let in_any_order = config.media.arbitration == ChannelArbitration::Ready;
        let page_bytes = config.geometry.page_bytes;
        self.apply_to_media(&mut config.media, page_bytes, page_bytes / config.lba_bytes);
        if let Some(buffer) = &mut config.write_buffer {
            buffer.drain_bytes_per_s = self.drain_bytes_per_s;
            buffer.turn_bytes = self
                .turn_lbas
                .map(|lbas| lbas * u64::from(config.lba_bytes));
            config.zones.zrwa = self.zrwa(config.zones.capacity_lbas);
            if self.by_work {
                buffer.placement = Placement::LeastWork;
            }
            if self.releases_early && in_any_order {
                buffer.release = BufferRelease::Transfer;
            }
            if let Some(books) = &mut config.reset.bookkeeping {
                books.quiesce = self.quiesce;
            }
            let has_cores = config.front_end.cores > 0;
            if let FinishConfig::Fill {
                buffered,
                takes_core,
                ..
            } = &mut config.finish
            {
                *buffered = self.fills_buffer;
                *takes_core = self.fills_buffer && self.quiesce && has_cores;
            }
        }
        if let Some(books) = &mut config.reset.bookkeeping {
            books.open_zone_ns = Nanos(self.open_zone_ns);
        }
        if config.front_end.cores > 0 {
            let costs = &mut config.front_end.costs;
            let [read, write, append] = self.completions_ns.map(Nanos);
            costs.read_completion_ns = read;
            costs.write_completion_ns = write;
            costs.append_completion_ns = append;
            costs.variation_ppm = self.variations_ppm.0;
        }
        let (zones, geometry) = (&mut config.zones, &config.geometry);
        let dies = zones.channels * zones.ways * geometry.dies;
        // Whole dies, which multi-plane operations need.
        zones.stagger = self.stagger % dies * geometry.planes;
    }

    /// Areas of a few granularities that divide the capacity.
    fn zrwa(self, capacity_lbas: u64) -> Option<ZrwaConfig> {
        let (most, times, max_areas, explicit_flush) = self.zrwa?;
        let divides = |lbas: &u32| capacity_lbas.is_multiple_of(u64::from(*lbas));
        let flush_granularity_lbas = (1..=most).rev().find(divides)?;
        let size_lbas = flush_granularity_lbas * times;
        (u64::from(size_lbas) <= capacity_lbas).then_some(ZrwaConfig {
            size_lbas,
            flush_granularity_lbas,
            max_areas,
            explicit_flush,
        })
    }

    fn apply_to_media(self, media: &mut MediaConfig, page_bytes: u32, page_lbas: u32) {
        let details = &mut media.details;
        if let Some((four, times)) = self.read_parts {
            let times = times.map(Nanos);
            let parts = if four { &times[..] } else { &times[..2] };
            if page_lbas.is_multiple_of(parts.len() as u32) {
                details.read_parts = ReadParts::new(parts);
            }
        }
        if let Some(parts) = details.read_parts {
            media.read_ns = parts.mean();
        }
        details.program_variation_ppm = self.variations_ppm.1;
        if media.arbitration == ChannelArbitration::Ready {
            details.transfer_unit_bytes = self.transfer_unit_bytes.map(|b| b.min(page_bytes));
            if self.cache {
                media.page_register = PageRegister::Cache;
            }
        }
        if media.suspend != Suspend::NONE {
            media.suspend.interval_ns = Nanos(self.interval_ns);
        }
    }
}

/// Of a drive with a write buffer.
fn bookkeeping() -> impl Strategy<Value = Option<Bookkeeping>> {
    let books = (0..9_000_u64, 1..9_000_u64, 1..9_000_u64, 1..9_u32);
    of(
        books.prop_map(|(base, full_zone, pause, slices)| Bookkeeping {
            base_ns: Nanos(base),
            full_zone_ns: Nanos(full_zone),
            drain_pause_ns: Nanos(pause.min(full_zone)),
            slices,
            open_zone_ns: Nanos::ZERO,
            quiesce: false,
        }),
    )
}

/// Of a drive with cores.
fn command_costs() -> impl Strategy<Value = CommandCosts> {
    let time = || (0..3_u64).prop_map(|n| Nanos(n * 700));
    let per_kib = (time(), time(), time());
    let part = of((1..20_u32, 1..9_000_u64));
    let opens = (of(time()), of(time()), time());
    let latency = (time(), time(), time(), time());
    (per_kib, part, time(), opens, latency).prop_map(|(per_kib, part, small, opens, latency)| {
        CommandCosts {
            read_per_kib_ns: per_kib.0,
            write_per_kib_ns: per_kib.1,
            append_per_kib_ns: per_kib.2,
            unit_bytes: part.map(|(unit, _)| unit * 512),
            part_of_unit_ns: part.map_or(Nanos::ZERO, |(_, time)| Nanos(time)),
            small_blocks_ns: small,
            open_ns: opens.0,
            close_ns: opens.1,
            implicit_open_ns: opens.2,
            read_latency_ns: latency.0,
            write_latency_ns: latency.1,
            append_latency_ns: latency.2,
            management_latency_ns: latency.3,
            completion_latency_ns: Nanos::ZERO,
            read_completion_ns: Nanos::ZERO,
            write_completion_ns: Nanos::ZERO,
            append_completion_ns: Nanos::ZERO,
            variation_ppm: 0,
        }
    })
}

/// Sizes in pages.
fn write_buffer() -> impl Strategy<Value = Option<WriteBufferConfig>> {
    let buffer = (1..200_u64, any::<bool>());
    of(
        buffer.prop_map(|(size_bytes, protected)| WriteBufferConfig {
            size_bytes,
            power_loss_protection: protected,
            drain_bytes_per_s: None,
            turn_bytes: None,
            release: BufferRelease::Program,
            placement: Placement::InOrder,
        }),
    )
}

fn geometry_and_zones() -> impl Strategy<Value = (Geometry, u32, ZonesConfig, u32)> {
    let spans = (
        (1..4_u32, 1..4_u32),
        (1..3_u32, 1..4_u32),
        1..3_u32,
        1..4_u32,
    );
    let pages = (1..40_u32, 0..4_u32, any::<bool>());
    let sizes = (1..9_u32, 1..3_000_u64, 0..100_u64, 0..4_u32);
    let limits = (of(1..9_u32), of(1..9_u32));
    let rest = (any::<bool>(), any::<bool>(), 0..256_u32);
    (spans, pages, sizes, limits, rest).prop_map(|(spans, pages, sizes, limits, rest)| {
        let ((zone_channels, more_channels), (zone_ways, more_ways), dies, planes) = spans;
        let (pages_per_block, page_shift, small_lba) = pages;
        let (count, capacity_lbas, beyond, spare) = sizes;
        let lba_bytes = if small_lba { 512 } else { 4_096 };
        let max_active = limits.0.map(|active| active.min(count));
        let max_open = limits
            .1
            .map(|open| open.min(max_active.unwrap_or(count)))
            .or(max_active);
        let (read_across, plane_first, extension) = rest;
        let geometry = Geometry {
            channels: zone_channels * more_channels,
            ways: zone_ways * more_ways,
            dies,
            planes,
            blocks_per_plane: 1,
            pages_per_block,
            page_bytes: lba_bytes << page_shift,
        };
        let zones = ZonesConfig {
            count,
            size_lbas: capacity_lbas + beyond,
            capacity_lbas,
            max_active,
            max_open,
            channels: zone_channels,
            ways: zone_ways,
            stripe: if plane_first {
                StripeOrder::PlaneFirst
            } else {
                StripeOrder::ChannelFirst
            },
            stagger: 0,
            read_across,
            descriptor_extension_bytes: extension * 64 % (256 * 64),
            zrwa: None,
        };
        (geometry, lba_bytes, zones, spare)
    })
}

/// The granularity of the finish is still in pages; the last part: lazy
/// mapping, and when it happens.
fn management() -> impl Strategy<Value = (FinishConfig, ResetConfig, Option<AllocationConfig>)> {
    let hold = || of((0..3_600_000_000_000_u64).prop_map(Nanos));
    let finish = prop_oneof![
        Just(FinishConfig::Metadata),
        (1..50_u32, 0..1_000_000_u64, hold()).prop_map(|(pages, pause, yield_ns)| {
            FinishConfig::Fill {
                granularity_bytes: pages,
                pause_ns: Nanos(pause),
                yield_ns,
                buffered: false,
                takes_core: false,
                extent: FillExtent::Zone,
            }
        }),
    ];
    let erase = prop_oneof![
        Just(EraseWhen::Synchronous),
        Just(EraseWhen::FirstZoneWrite),
        Just(EraseWhen::FirstBlockWrite),
        Just(EraseWhen::Background),
        thresholds().prop_map(EraseWhen::Thresholds),
    ];
    let allocation = (0..3_600_000_000_000_u64, any::<bool>(), 0..4_194_305_u32).prop_map(
        |(time_ns, at_open, pool_zones)| AllocationConfig {
            time_ns: Nanos(time_ns),
            at_open,
            pool_zones: if time_ns == 0 { 0 } else { pool_zones },
            depth_weight: None,
            thin: false,
        },
    );
    (finish, erase, any::<bool>(), hold(), of(allocation)).prop_map(
        |(finish, erase, full, hold, lazy)| {
            let by_itself = matches!(erase, EraseWhen::Synchronous | EraseWhen::Background);
            let counts = matches!(erase, EraseWhen::Thresholds(_));
            let reset = ResetConfig {
                erase,
                extent: if full {
                    EraseExtent::Full
                } else {
                    EraseExtent::Partial
                },
                preempt_ns: hold.filter(|_| by_itself),
                bookkeeping: None,
            };
            (
                finish,
                reset,
                lazy.or(counts.then_some(AllocationConfig::NONE)),
            )
        },
    )
}

/// A group has one zone at least, so that any number up to that will do.
fn thresholds() -> impl Strategy<Value = Thresholds> {
    let evaluate = prop_oneof![
        Just(Evaluate::Allocation),
        Just(Evaluate::Command),
        Just(Evaluate::Change),
    ];
    let victim = prop_oneof![Just(Victim::Oldest), Just(Victim::LeastWorn)];
    let adapt = of((1..3_600_000_000_000_u64).prop_map(Nanos));
    let rules = (evaluate, victim, adapt);
    (0..2_u32, any::<bool>(), of(1..4_u32), rules).prop_map(
        |(free_zones, partial, zones_at_once, (evaluate, victim, adapt))| Thresholds {
            free_zones,
            invalid_zones: partial.then_some(1),
            evaluate,
            zones_at_once,
            victim,
            adapt: adapt.filter(|_| partial),
        },
    )
}

fn data() -> impl Strategy<Value = DataStore> {
    prop_oneof![Just(DataStore::None), Just(DataStore::Memory)]
}

/// Two namespaces if there is an even number of zones, with limits if the drive has any.
fn halves(zones: &ZonesConfig) -> Vec<NamespaceConfig> {
    if zones.count < 2 || zones.count % 2 == 1 {
        return Vec::new();
    }
    let half = |less: u32| {
        let max_active = zones.max_active.map(|most| most.min(zones.count / 2));
        let most = max_active.unwrap_or(zones.count / 2);
        NamespaceConfig {
            kind: NamespaceKind::Zoned,
            zones: zones.count / 2,
            max_active,
            max_open: zones
                .max_open
                .map(|open| open.min(most).saturating_sub(less).max(1)),
        }
    };
    vec![half(0), half(1)]
}
