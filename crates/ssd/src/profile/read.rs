//! From TOML to a configuration: keys, defaults, and which keys go together.
//!
//! Every function asks for all keys of its section before it leaves with `?`:
//! the document reports what nobody asked for as unknown. Rules that also hold
//! for configurations made by hand are in [`super::check`].

use zonelab_config::units::fmt_size;
use zonelab_config::{Document, Item, Reported, Table};
use zonelab_device::{CopyLimits, Nanos};

use super::derived::Needs;
use super::names::{self, Buffer, EraseAt, Finish, Kind, Mapping, Queue, Timing};
use super::write::keys;
use super::{Cell, Profile, Violation, check, limits};
use crate::config::{
    AllocationConfig, Bookkeeping, BufferRelease, ChannelArbitration, CommandCosts, DataStore,
    DiePolicy, DriveConfig, EraseExtent, EraseWhen, Evaluate, FillExtent, FinishConfig,
    FrontEndConfig, Geometry, MappingConfig, MediaConfig, MediaDetails, NamespaceConfig,
    NamespaceKind, PageRegister, Placement, PlaneMode, ReadParts, ResetConfig, StripeOrder,
    Suspend, Thresholds, Victim, WriteBufferConfig, ZonesConfig, ZrwaConfig,
};

/// The version of the format, stated by every file.
const SCHEMA: u32 = 1;

/// How long fills and erasures wait for host I/O, if the file does not say.
const MAX_HOLD: Nanos = Nanos::from_ms(10);

/// Reads per program or erase of a weighted queue, if the file does not say.
const READ_WEIGHT: u32 = 4;

/// Suspends of one operation, if the file does not say.
const MAX_SUSPENDS: u32 = 4;

pub(super) fn profile(document: &Document) -> Result<Profile, Reported> {
    let root = document.root();
    let schema = schema(&root);
    let description = root.string("description").or(String::new());
    let source = root.string("source").or(String::new());
    let drive = drive(document, &root);
    let (description, source) = (description?, source?);
    schema?;
    let (config, cell) = drive?;
    let derived = check(&config).map_err(|violations| report_all(document, violations))?;
    let stated = keys(&config)
        .into_iter()
        .map(|key| key.path())
        .chain((0..config.namespaces.len()).map(|index| format!("namespaces.{index}.zones")))
        .filter_map(|path| document.place(&path).map(|place| (path, place)))
        .collect();
    Ok(Profile {
        config,
        derived,
        description,
        source,
        cell,
        stated,
    })
}

fn schema(root: &Table<'_>) -> Result<u32, Reported> {
    let known = |item: &Item<'_>| match item.u32()? {
        SCHEMA => Ok(SCHEMA),
        other => {
            let what = format!("profiles of schema {other} are unknown here");
            Err(item.fail(what, format!("this version reads schema = {SCHEMA}")))
        }
    };
    root.get("schema", known).required_or("write schema = 1")
}

fn report_all(document: &Document, violations: Vec<Violation>) -> Reported {
    let reported = violations
        .into_iter()
        .map(|Violation { key, what, valid }| document.report(key, what, valid));
    reported.last().expect("a refusal has a reason")
}

fn drive(document: &Document, root: &Table<'_>) -> Result<(DriveConfig, Option<Cell>), Reported> {
    let name = root.string("name").required();
    let geometry = geometry(&root.table("geometry"));
    let lba_bytes = root.table("namespace").size_bytes_u32("lba_size").or(4_096);
    let media = media(&root.table("media"));
    let defaults = ZoneDefaults {
        // If one of these is wrong, there will be no configuration, and any value will do.
        lba_bytes: lba_bytes.unwrap_or(1),
        channels: geometry.as_ref().map_or(1, |g| g.geometry.channels),
        ways: geometry.as_ref().map_or(1, |g| g.geometry.ways),
        planes: media
            .as_ref()
            .map_or(PlaneMode::Single, |(media, _)| media.planes),
    };
    let zones = zones(document, &root.table("zones"), &defaults);
    let namespaces = namespaces(root, zones.as_ref().ok());
    let copy = copy(document, &root.table("copy"), defaults.lba_bytes);
    let front_end = front_end(&root.table("front_end"));
    let finish = finish(&root.table("finish"), stripe_bytes(&geometry, &zones));
    let reset = reset(&root.table("reset"));
    let mapping = mapping(&root.table("mapping"));
    let placement = usual_placement(mapping.as_ref().ok());
    let write_buffer = write_buffer(&root.table("write_buffer"), placement);
    let data = root
        .table("data")
        .choice("store", names::STORE)
        .or(DataStore::None);
    let (geometry, mapping, (media, cell)) = (geometry?, mapping?, media?);
    let mut config = DriveConfig {
        name: name?,
        geometry: geometry.geometry,
        lba_bytes: lba_bytes?,
        zones: zones?,
        namespaces: namespaces?,
        copy: copy?,
        media,
        front_end: front_end?,
        write_buffer: write_buffer?,
        finish: finish?,
        reset: reset?,
        mapping: MappingConfig::Direct,
        allocation: mapping.allocation,
        data: data?,
    };
    fit_flash(&mut config, geometry.blocks_per_plane, mapping);
    Ok((config, cell))
}

/// Geometry as stated: the number of blocks may depend on the zones.
struct StatedGeometry {
    geometry: Geometry,
    blocks_per_plane: Option<u32>,
}

fn geometry(table: &Table<'_>) -> Result<StatedGeometry, Reported> {
    let channels = table.u32("channels").required();
    let ways = table.u32("ways").or(1);
    let dies = table.u32("dies").or(1);
    let planes = table.u32("planes").or(1);
    let blocks_per_plane = table.u32("blocks_per_plane").optional();
    let pages_per_block = table.u32("pages_per_block").required();
    let page_bytes = table.size_bytes_u32("page_size").required();
    let blocks_per_plane = blocks_per_plane?;
    let geometry = Geometry {
        channels: channels?,
        ways: ways?,
        dies: dies?,
        planes: planes?,
        blocks_per_plane: blocks_per_plane.unwrap_or(1),
        pages_per_block: pages_per_block?,
        page_bytes: page_bytes?,
    };
    Ok(StatedGeometry {
        geometry,
        blocks_per_plane,
    })
}

/// What zones are like where the file does not say.
struct ZoneDefaults {
    lba_bytes: u32,
    channels: u32,
    ways: u32,
    planes: PlaneMode,
}

fn zones(
    document: &Document,
    table: &Table<'_>,
    defaults: &ZoneDefaults,
) -> Result<ZonesConfig, Reported> {
    let count = table.u32("count").required();
    let size = table.size_bytes("size").required();
    let capacity = table.size_bytes("capacity").optional();
    let max_active = table.u32("max_active").optional();
    let max_open = table.u32("max_open").optional();
    let channels = table.u32("channels").or(defaults.channels);
    let ways = table.u32("ways").or(defaults.ways);
    let stripe = table
        .choice("stripe", names::STRIPE)
        .or(default_stripe(defaults.planes));
    let stagger = table.u32("stagger").or(0);
    let read_across = table.bool("read_across").or(false);
    let extension = table.size_bytes_u32("descriptor_extension").or(0);
    let zrwa = zrwa(document, &table.table("zrwa"), defaults.lba_bytes);
    let size_bytes = size?;
    let size_lbas = lbas(document, "zones.size", size_bytes, defaults.lba_bytes);
    let capacity_lbas = match capacity? {
        Some(bytes) => lbas(document, "zones.capacity", bytes, defaults.lba_bytes),
        None => size_lbas,
    };
    let max_active = max_active?;
    Ok(ZonesConfig {
        count: count?,
        size_lbas: size_lbas?,
        capacity_lbas: capacity_lbas?,
        max_active,
        // Open zones are active, so the limit of those is the widest possible.
        max_open: max_open?.or(max_active),
        channels: channels?,
        ways: ways?,
        stripe: stripe?,
        stagger: stagger?,
        read_across: read_across?,
        descriptor_extension_bytes: extension?,
        zrwa: zrwa?,
    })
}

/// Random write areas, if the file states their size.
fn zrwa(
    document: &Document,
    table: &Table<'_>,
    lba_bytes: u32,
) -> Result<Option<ZrwaConfig>, Reported> {
    let size = table.size_bytes("size").optional();
    if matches!(size, Ok(None)) {
        let keys = ["flush_granularity", "count", "explicit_flush"];
        let why = "it only has an effect with a size of areas";
        return refuse_all(table, &keys, why).map(|()| None);
    }
    let granularity = table.size_bytes("flush_granularity").required();
    let max_areas = table.u32("count").optional();
    let explicit_flush = table.bool("explicit_flush").or(true);
    let blocks = |key: &'static str, bytes| {
        let lbas = lbas(document, key, bytes, lba_bytes)?;
        // Far out of range, which the check refuses.
        Ok(u32::try_from(lbas).unwrap_or(u32::MAX))
    };
    // That there is one was asked before.
    let size_lbas = blocks("zones.zrwa.size", size?.unwrap_or_default());
    let granularity_lbas = blocks("zones.zrwa.flush_granularity", granularity?);
    Ok(Some(ZrwaConfig {
        size_lbas: size_lbas?,
        flush_granularity_lbas: granularity_lbas?,
        max_areas: max_areas?,
        explicit_flush: explicit_flush?,
    }))
}

/// The namespaces that the file states, with the limits of the drive where it
/// states none. One stated limit of active zones bounds the open ones too.
fn namespaces(
    root: &Table<'_>,
    zones: Option<&ZonesConfig>,
) -> Result<Vec<NamespaceConfig>, Reported> {
    let of_drive = |limit: fn(&ZonesConfig) -> Option<u32>| zones.and_then(limit);
    let namespace = |table: &Table<'_>| {
        let zones = table.u32("zones").required();
        let kind = table.choice("kind", names::NAMESPACE_KIND).or(Kind::Zoned);
        if kind == Ok(Kind::Conventional) {
            let spare_zones = table.u32("spare_zones").required();
            let why = "a conventional namespace shows no zones";
            refuse_all(table, &["max_active", "max_open"], why)?;
            return Ok(NamespaceConfig {
                kind: NamespaceKind::Conventional {
                    spare_zones: spare_zones?,
                },
                zones: zones?,
                max_active: None,
                max_open: None,
            });
        }
        let why = "it only has an effect with kind = \"conventional\"";
        let spare_zones = refuse_all(table, &["spare_zones"], why);
        let max_active = table.u32("max_active").optional();
        let max_open = table.u32("max_open").optional();
        kind?;
        spare_zones?;
        let (zones, max_active, max_open) = (zones?, max_active?, max_open?);
        let default_active = of_drive(|zones| zones.max_active).map(|most| most.min(zones));
        let default_open = of_drive(|zones| zones.max_open).map(|most| most.min(zones));
        let max_active = max_active.or(default_active);
        let bounded = |open: u32| max_active.map_or(open, |active| open.min(active));
        Ok(NamespaceConfig {
            kind: NamespaceKind::Zoned,
            zones,
            max_active,
            max_open: max_open.or(default_open.map(bounded)).or(max_active),
        })
    };
    let tables = root.tables("namespaces")?;
    let namespaces: Vec<_> = tables.iter().map(namespace).collect();
    namespaces.into_iter().collect()
}

/// What one Copy may do, if `max_ranges` says that there is one. Sizes in
/// blocks are within the fields of Identify Namespace.
fn copy(
    document: &Document,
    table: &Table<'_>,
    lba_bytes: u32,
) -> Result<Option<CopyLimits>, Reported> {
    let max_ranges = table.u32("max_ranges").within(1..=256).optional();
    if max_ranges == Ok(None) {
        let why = "it only has an effect with max_ranges";
        return refuse_all(table, &["max_range", "max_length"], why).map(|()| None);
    }
    let max_range = table.size_bytes("max_range").required();
    let max_length = table.size_bytes("max_length").required();
    let (Some(max_ranges), max_range, max_length) = (max_ranges?, max_range?, max_length?) else {
        return Ok(None);
    };
    let range_lbas = lbas(document, "copy.max_range", max_range, lba_bytes);
    let all_lbas = lbas(document, "copy.max_length", max_length, lba_bytes);
    let (range_lbas, all_lbas) = (range_lbas?, all_lbas?);
    let too_large = |key: &str, bytes, most: u64| {
        let what = format!("{} is too large", fmt_size(bytes));
        let most = most.saturating_mul(u64::from(lba_bytes));
        document.report(key, what, format!("at most {}", fmt_size(most)))
    };
    let most = u64::from(u16::MAX);
    let max_range_lbas =
        u16::try_from(range_lbas).map_err(|_| too_large("copy.max_range", max_range, most))?;
    let most = u64::from(u32::MAX);
    let max_lbas =
        u32::try_from(all_lbas).map_err(|_| too_large("copy.max_length", max_length, most))?;
    Ok(Some(CopyLimits {
        // Within 256, as was asked for.
        max_ranges: max_ranges as u16,
        max_range_lbas,
        max_lbas,
    }))
}

/// Multi-plane operations take consecutive pages, so those lie on one die.
const fn default_stripe(planes: PlaneMode) -> StripeOrder {
    match planes {
        PlaneMode::MultiPlane => StripeOrder::PlaneFirst,
        PlaneMode::Independent | PlaneMode::Single => StripeOrder::ChannelFirst,
    }
}

fn lbas(document: &Document, key: &str, bytes: u64, lba_bytes: u32) -> Result<u64, Reported> {
    // A block size that is no size at all is refused by the check.
    let lba_bytes = u64::from(lba_bytes).max(1);
    if bytes.is_multiple_of(lba_bytes) {
        return Ok(bytes / lba_bytes);
    }
    let below = bytes / lba_bytes * lba_bytes;
    let what = format!(
        "{} is not a multiple of the logical block ({})",
        fmt_size(bytes),
        fmt_size(lba_bytes)
    );
    let above = fmt_size(below.saturating_add(lba_bytes));
    let valid = match below {
        0 => format!("use {above}"),
        _ => format!("use {} or {above}", fmt_size(below)),
    };
    Err(document.report(key, what, valid))
}

fn media(table: &Table<'_>) -> Result<(MediaConfig, Option<Cell>), Reported> {
    let cell = table.choice("cell", names::CELL).optional();
    let array_time = |key: &str, typical: fn(Cell) -> Nanos| match cell {
        Ok(Some(cell)) => table.duration_ns(key).or(typical(cell).0),
        Ok(None) => table
            .duration_ns(key)
            .required_or("state it, or media.cell for a typical one"),
        // Whatever the cell should be, it would give a time.
        Err(_) => table.duration_ns(key).or(0),
    };
    let parts = table.get("read", read_parts).optional();
    let read_ns = match &parts {
        Ok(Some(Some(parts))) => Ok(parts.mean().0),
        Ok(_) => array_time("read", |cell| cell.times().read),
        Err(reported) => Err(*reported),
    };
    let program_ns = array_time("program", |cell| cell.times().program);
    let erase_ns = array_time("erase", |cell| cell.times().erase);
    let transfer_ns = table.duration_ns("transfer").required();
    let partial_transfer = table.bool("partial_transfer").or(false);
    let page_register = table
        .choice("page_register", names::PAGE_REGISTER)
        .or(PageRegister::Overlap);
    let planes = table
        .choice("planes", names::PLANES)
        .or(PlaneMode::Independent);
    let policy = die_policy(table);
    let suspend = suspend(&table.table("suspend"));
    let arbitration = table
        .choice("channel_arbitration", names::ARBITRATION)
        .or(ChannelArbitration::Ready);
    let transfer_unit_bytes = table.size_bytes_u32("transfer_unit").optional();
    let program_variation_ppm = table.percent_ppm("program_variation").or(0);
    let details = MediaDetails {
        read_parts: parts?.flatten(),
        transfer_unit_bytes: transfer_unit_bytes?,
        program_variation_ppm: program_variation_ppm?,
    };
    let config = MediaConfig {
        read_ns: Nanos(read_ns?),
        program_ns: Nanos(program_ns?),
        erase_ns: Nanos(erase_ns?),
        transfer_ns: Nanos(transfer_ns?),
        partial_transfer: partial_transfer?,
        page_register: page_register?,
        planes: planes?,
        policy: policy?,
        arbitration: arbitration?,
        suspend: suspend?,
        details,
    };
    Ok((config, cell?))
}

/// A list of read times; `None`: the key is a single time.
fn read_parts(item: &Item<'_>) -> Result<Option<ReadParts>, Reported> {
    if !item.is_array() {
        return Ok(None);
    }
    let times: Result<Vec<Nanos>, Reported> = item
        .items()?
        .iter()
        .map(|item| item.duration_ns().map(Nanos))
        .collect();
    let times = times?;
    let parts = ReadParts::new(&times);
    if parts.is_none() {
        let what = format!("{} parts of a page", times.len());
        let valid = format!("write a time, or 2 to {} times", ReadParts::MAX);
        return Err(item.fail(what, valid));
    }
    Ok(parts)
}

fn die_policy(table: &Table<'_>) -> Result<DiePolicy, Reported> {
    let queue = table.choice("die_queue", names::QUEUE).or(Queue::Fifo);
    match queue {
        Ok(Queue::Weighted) => {
            let reads = table.u32("read_weight").or(READ_WEIGHT)?;
            Ok(DiePolicy::Weighted { reads })
        }
        Ok(queue) => {
            table.refuse(
                "read_weight",
                "it only has an effect with die_queue = \"weighted\"",
            )?;
            Ok(if queue == Queue::Fifo {
                DiePolicy::Fifo
            } else {
                DiePolicy::ReadFirst
            })
        }
        Err(reported) => {
            let _ = table.u32("read_weight").optional();
            Err(reported)
        }
    }
}

fn suspend(table: &Table<'_>) -> Result<Suspend, Reported> {
    let program = table.bool("program").or(false);
    let erase = table.bool("erase").or(false);
    if (program, erase) == (Ok(false), Ok(false)) {
        let why = "it only has an effect with program = true or erase = true";
        let overhead = table.refuse("overhead", why);
        let most = table.refuse("max_per_operation", why);
        let interval = table.refuse("interval", why);
        return overhead.and(most).and(interval).map(|()| Suspend::NONE);
    }
    let overhead = table.duration_ns("overhead").or(0);
    let most = table.u32("max_per_operation").or(MAX_SUSPENDS);
    let interval = table.duration_ns("interval").or(0);
    Ok(Suspend {
        program: program?,
        erase: erase?,
        overhead_ns: Nanos(overhead?),
        max_per_operation: most?,
        interval_ns: Nanos(interval?),
    })
}

fn front_end(table: &Table<'_>) -> Result<FrontEndConfig, Reported> {
    let cores = table.u32("cores").or(0);
    let read_ns = table.duration_ns("read").or(0);
    let write_ns = table.duration_ns("write").or(0);
    let append_ns = table.duration_ns("append").or(0);
    let management_ns = table.duration_ns("management").or(0);
    let link_bytes_per_s = table.rate_bytes_per_s("link").optional();
    let max_transfer_bytes = table.size_bytes_u32("max_transfer").optional();
    let max_append_bytes = table.size_bytes_u32("max_append").optional();
    let costs = command_costs(&table.table("costs"), &table.table("latency"));
    Ok(FrontEndConfig {
        cores: cores?,
        read_ns: Nanos(read_ns?),
        write_ns: Nanos(write_ns?),
        append_ns: Nanos(append_ns?),
        management_ns: Nanos(management_ns?),
        link_bytes_per_s: link_bytes_per_s?,
        max_transfer_bytes: max_transfer_bytes?,
        max_append_bytes: max_append_bytes?,
        costs: costs?,
    })
}

fn command_costs(costs: &Table<'_>, latency: &Table<'_>) -> Result<CommandCosts, Reported> {
    let time = |table: &Table<'_>, key: &str| table.duration_ns(key).or(0).map(Nanos);
    let read_per_kib_ns = time(costs, "read_per_kib");
    let write_per_kib_ns = time(costs, "write_per_kib");
    let append_per_kib_ns = time(costs, "append_per_kib");
    let unit_bytes = costs.size_bytes_u32("unit").optional();
    let part_of_unit_ns = time(costs, "part_of_unit");
    let small_blocks_ns = time(costs, "small_blocks");
    let open_ns = costs.duration_ns("open").optional();
    let close_ns = costs.duration_ns("close").optional();
    let implicit_open_ns = time(costs, "implicit_open");
    let read_completion_ns = time(costs, "read_completion");
    let write_completion_ns = time(costs, "write_completion");
    let append_completion_ns = time(costs, "append_completion");
    let variation_ppm = costs.percent_ppm("variation").or(0);
    let read_latency_ns = time(latency, "read");
    let write_latency_ns = time(latency, "write");
    let append_latency_ns = time(latency, "append");
    let management_latency_ns = time(latency, "management");
    let completion_latency_ns = time(latency, "completion");
    Ok(CommandCosts {
        read_per_kib_ns: read_per_kib_ns?,
        write_per_kib_ns: write_per_kib_ns?,
        append_per_kib_ns: append_per_kib_ns?,
        unit_bytes: unit_bytes?,
        part_of_unit_ns: part_of_unit_ns?,
        small_blocks_ns: small_blocks_ns?,
        open_ns: open_ns?.map(Nanos),
        close_ns: close_ns?.map(Nanos),
        implicit_open_ns: implicit_open_ns?,
        read_latency_ns: read_latency_ns?,
        write_latency_ns: write_latency_ns?,
        append_latency_ns: append_latency_ns?,
        management_latency_ns: management_latency_ns?,
        completion_latency_ns: completion_latency_ns?,
        read_completion_ns: read_completion_ns?,
        write_completion_ns: write_completion_ns?,
        append_completion_ns: append_completion_ns?,
        variation_ppm: variation_ppm?,
    })
}

/// `write_buffer.placement` where it is not stated.
fn usual_placement(mapping: Option<&StatedMapping>) -> Placement {
    match mapping.map(|mapping| mapping.design) {
        Some(Mapping::Chunk | Mapping::Stripe) => Placement::InOrder,
        Some(Mapping::Direct | Mapping::Lazy) | None => Placement::LeastWork,
    }
}

fn write_buffer(
    table: &Table<'_>,
    usual_placement: Placement,
) -> Result<Option<WriteBufferConfig>, Reported> {
    let mode = table.choice("mode", names::WRITE_BUFFER).or(Buffer::None);
    if mode == Ok(Buffer::None) {
        let keys = [
            "size",
            "appends_per_zone",
            "power_loss_protection",
            "release",
            "drain",
            "turn",
            "placement",
        ];
        let why = "it only has an effect with mode = \"write-back\"";
        return refuse_all(table, &keys, why).map(|()| None);
    }
    let size_bytes = match mode {
        Ok(_) => table.size_bytes("size").required(),
        // Whatever the mode should be, it may have no size.
        Err(_) => table.size_bytes("size").or(0),
    };
    let appends_per_zone = table.u32("appends_per_zone").optional();
    let power_loss_protection = table.bool("power_loss_protection").or(false);
    let release = table
        .choice("release", names::RELEASE)
        .or(BufferRelease::Program);
    let drain_bytes_per_s = table.rate_bytes_per_s("drain").optional();
    let turn_bytes = table.size_bytes("turn").optional();
    let placement = table
        .choice("placement", names::PLACEMENT)
        .or(usual_placement);
    mode?;
    Ok(Some(WriteBufferConfig {
        size_bytes: size_bytes?,
        appends_per_zone: appends_per_zone?,
        power_loss_protection: power_loss_protection?,
        release: release?,
        drain_bytes_per_s: drain_bytes_per_s?,
        turn_bytes: turn_bytes?,
        placement: placement?,
    }))
}

/// One page on each plane of a zone: the default granularity of a finish.
fn stripe_bytes(
    geometry: &Result<StatedGeometry, Reported>,
    zones: &Result<ZonesConfig, Reported>,
) -> u32 {
    let (Ok(StatedGeometry { geometry, .. }), Ok(zones)) = (geometry, zones) else {
        return 1;
    };
    [zones.channels, zones.ways, geometry.dies, geometry.planes]
        .into_iter()
        .try_fold(geometry.page_bytes, u32::checked_mul)
        // Too large for one device write: then it is one page after the other.
        .unwrap_or(geometry.page_bytes)
}

fn finish(table: &Table<'_>, stripe_bytes: u32) -> Result<FinishConfig, Reported> {
    let design = table.choice("design", names::FINISH).or(Finish::Fill);
    if design == Ok(Finish::Metadata) {
        let keys = [
            "granularity",
            "pause",
            "yield_to_host",
            "max_hold",
            "path",
            "extent",
        ];
        let why = "it only has an effect with design = \"fill\"";
        refuse_all(table, &keys, why)?;
        return Ok(FinishConfig::Metadata);
    }
    let granularity = table.size_bytes_u32("granularity").or(stripe_bytes);
    let pause = table.duration_ns("pause").or(0);
    let yields = table.bool("yield_to_host").or(false);
    let hold = max_hold(
        table,
        yields,
        "it only has an effect with yield_to_host = true",
    );
    let buffered = table.choice("path", names::PATH).or(false);
    let extent = table
        .choice("extent", names::FILL_EXTENT)
        .or(FillExtent::Zone);
    design?;
    Ok(FinishConfig::Fill {
        granularity_bytes: granularity?,
        pause_ns: Nanos(pause?),
        yield_ns: hold?,
        buffered: buffered?,
        extent: extent?,
    })
}

/// `max_hold`, which only means something where `holds` is true.
fn max_hold(
    table: &Table<'_>,
    holds: Result<bool, Reported>,
    why_not: &str,
) -> Result<Option<Nanos>, Reported> {
    if holds == Ok(false) {
        return table.refuse("max_hold", why_not).map(|()| None);
    }
    let hold = table.duration_ns("max_hold").or(MAX_HOLD.0);
    holds?;
    Ok(Some(Nanos(hold?)))
}

fn reset(table: &Table<'_>) -> Result<ResetConfig, Reported> {
    let thresholds = table.table("thresholds");
    let timing = table
        .choice("timing", names::TIMING)
        .or(Timing::Synchronous);
    let at = match timing {
        Ok(Timing::Synchronous) => {
            let why = "it only has an effect with timing = \"asynchronous\"";
            table.refuse("erase_at", why).map(|()| None)
        }
        _ => {
            let at = table.choice("erase_at", names::ERASE_AT);
            at.or(EraseAt::FirstWrite).map(Some)
        }
    };
    let counted = match at {
        Ok(Some(EraseAt::Thresholds)) | Err(_) => thresholds_of(&thresholds).map(Some),
        Ok(_) => {
            let why = "it only has an effect with erase_at = \"thresholds\"";
            refuse_all(&thresholds, THRESHOLDS, why).map(|()| None)
        }
    };
    let extent = table
        .choice("extent", names::EXTENT)
        .or(EraseExtent::Partial);
    let preemptive = table.bool("preemptive").or(false);
    let hold = max_hold(
        table,
        preemptive,
        "it only has an effect with preemptive = true",
    );
    let bookkeeping = bookkeeping(&table.table("bookkeeping"));
    timing?;
    let erase = match (at?, counted?) {
        (None, _) => EraseWhen::Synchronous,
        (Some(EraseAt::FirstBlockWrite), _) => EraseWhen::FirstBlockWrite,
        (Some(EraseAt::Background), _) => EraseWhen::Background,
        (Some(EraseAt::Thresholds), Some(thresholds)) => EraseWhen::Thresholds(thresholds),
        (Some(EraseAt::FirstWrite | EraseAt::Thresholds), _) => EraseWhen::FirstZoneWrite,
    };
    Ok(ResetConfig {
        erase,
        extent: extent?,
        preempt_ns: hold?,
        bookkeeping: bookkeeping?,
    })
}

/// Keys of `reset.thresholds`.
const THRESHOLDS: &[&str] = &[
    "free_zones",
    "invalid_zones",
    "evaluate",
    "zones_at_once",
    "victim",
    "adapt",
];

fn thresholds_of(table: &Table<'_>) -> Result<Thresholds, Reported> {
    let free_zones = table.u32("free_zones").or(0);
    let invalid_zones = table.u32("invalid_zones").optional();
    let evaluate = table.choice("evaluate", names::EVALUATE);
    let evaluate = evaluate.or(Evaluate::Allocation);
    let zones_at_once = table.u32("zones_at_once").optional();
    let victim = table.choice("victim", names::VICTIM).or(Victim::Oldest);
    let adapt = table.duration_ns("adapt").optional();
    Ok(Thresholds {
        free_zones: free_zones?,
        invalid_zones: invalid_zones?,
        evaluate: evaluate?,
        zones_at_once: zones_at_once?,
        victim: victim?,
        adapt: adapt?.map(Nanos),
    })
}

/// None of it if nothing is stated.
fn bookkeeping(table: &Table<'_>) -> Result<Option<Bookkeeping>, Reported> {
    let base_ns = table.duration_ns("base").or(0);
    let full_zone_ns = table.duration_ns("full_zone").or(0);
    let drain_pause_ns = table.duration_ns("drain_pause").or(0);
    let slices = table.u32("slices").or(1);
    let open_zone_ns = table.duration_ns("open_zone").or(0);
    let quiesce = table.bool("quiesce").or(false);
    let books = Bookkeeping {
        base_ns: Nanos(base_ns?),
        full_zone_ns: Nanos(full_zone_ns?),
        drain_pause_ns: Nanos(drain_pause_ns?),
        slices: slices?,
        open_zone_ns: Nanos(open_zone_ns?),
        quiesce: quiesce?,
    };
    let nothing = Bookkeeping {
        base_ns: Nanos::ZERO,
        full_zone_ns: Nanos::ZERO,
        drain_pause_ns: Nanos::ZERO,
        slices: 1,
        open_zone_ns: Nanos::ZERO,
        quiesce: false,
    };
    Ok((books != nothing).then_some(books))
}

/// Mapping as stated: the number of physical zones may depend on the flash.
struct StatedMapping {
    design: Mapping,
    chunk_blocks: u32,
    physical_zones: Option<u32>,
    allocation: AllocationConfig,
}

impl StatedMapping {
    fn with(&self, physical_zones: u32) -> MappingConfig {
        match self.design {
            Mapping::Direct => MappingConfig::Direct,
            Mapping::Lazy => MappingConfig::Lazy { physical_zones },
            Mapping::Chunk => MappingConfig::Chunk {
                chunk_blocks: self.chunk_blocks,
                physical_zones,
            },
            Mapping::Stripe => MappingConfig::Stripe { physical_zones },
        }
    }
}

fn mapping(table: &Table<'_>) -> Result<StatedMapping, Reported> {
    let design = table.choice("design", names::MAPPING).or(Mapping::Direct);
    let physical_zones = if design == Ok(Mapping::Direct) {
        let why = "it has no effect with design = \"direct\"";
        table.refuse("physical_zones", why).map(|()| None)
    } else {
        table.u32("physical_zones").optional()
    };
    let chunk_blocks = if matches!(design, Ok(Mapping::Chunk) | Err(_)) {
        table.u32("chunk_blocks").or(1)
    } else {
        let why = "it only has an effect with design = \"chunk\"";
        table.refuse("chunk_blocks", why).map(|()| 1)
    };
    let allocation = allocation(table, design.as_ref().ok().copied());
    Ok(StatedMapping {
        design: design?,
        chunk_blocks: chunk_blocks?,
        physical_zones: physical_zones?,
        allocation: allocation?,
    })
}

/// `design`: none if it is not known, and its keys may be there.
fn allocation(table: &Table<'_>, design: Option<Mapping>) -> Result<AllocationConfig, Reported> {
    if design == Some(Mapping::Direct) {
        let why = "it has no effect with design = \"direct\"";
        let keys = ["allocation", "allocate_at", "pool", "depth_weight", "thin"];
        return refuse_all(table, &keys, why).map(|()| AllocationConfig::NONE);
    }
    let time_ns = table.duration_ns("allocation").or(0).map(Nanos);
    let at_open = table.choice("allocate_at", names::ALLOCATE_AT).or(false);
    let pool_zones = table.u32("pool").or(0);
    let depth_weight = if matches!(design, Some(Mapping::Chunk) | None) {
        table.u32("depth_weight").optional()
    } else {
        let why = "it only has an effect with design = \"chunk\"";
        table.refuse("depth_weight", why).map(|()| None)
    };
    let thin = if matches!(design, Some(Mapping::Chunk | Mapping::Stripe) | None) {
        table.bool("thin").or(false)
    } else {
        let why = "it only has an effect with design = \"chunk\" or \"stripe\"";
        table.refuse("thin", why).map(|()| false)
    };
    Ok(AllocationConfig {
        thin: thin?,
        time_ns: time_ns?,
        at_open: at_open?,
        pool_zones: pool_zones?,
        depth_weight: depth_weight?,
    })
}

fn refuse_all(table: &Table<'_>, keys: &[&str], why: &str) -> Result<(), Reported> {
    let refused: Vec<Result<(), Reported>> =
        keys.iter().map(|key| table.refuse(key, why)).collect();
    refused.into_iter().collect()
}

/// Fills in the number of blocks and of physical zones where they follow from
/// each other. Values that cannot be are left for the check to refuse.
fn fit_flash(config: &mut DriveConfig, blocks_per_plane: Option<u32>, mapping: StatedMapping) {
    config.mapping = mapping.with(mapping.physical_zones.unwrap_or(config.zones.count));
    let Some(needs) = Needs::of(config) else {
        return;
    };
    // At least one: that zones are missing is a rule of its own.
    let needed = || {
        u32::try_from(needs.blocks_per_plane())
            .unwrap_or(u32::MAX)
            .max(1)
    };
    config.geometry.blocks_per_plane = blocks_per_plane.unwrap_or_else(needed);
    if mapping.physical_zones.is_none() {
        // As many as the flash holds, but not fewer than zones: too little
        // flash is then refused in terms of what the file states.
        let blocks = u64::from(config.geometry.blocks_per_plane);
        let held = blocks / needs.rows.max(1) * u64::from(needs.groups);
        let held = u32::try_from(held).unwrap_or(u32::MAX).min(limits::ZONES);
        let thin = config.allocation.thin && held > 0;
        let least = if thin { 1 } else { config.zones.count };
        config.mapping = mapping.with(held.max(least));
    }
}
