//! Reading a workload and its store.

use zonelab_config::{Item, Reported, Table};
use zonelab_device::Nanos;
use zonelab_kv::files::{FilesConfig, FinishWhen};
use zonelab_kv::lsm::{CpuCosts, Options, WalSync};
use zonelab_kv::work::choice::KeyRanges;
use zonelab_kv::work::run::Setup;
use zonelab_kv::work::{Choice, Clients, KEY_BYTES, Kind, Mix, NAMES, Sizes, Spec, builtin};

use super::KvTemplate;
use crate::experiment::{LONGEST, time};

/// The most that a step of the store can cost: virtual time has an end.
const COST_MAX: (u64, &str) = (1_000_000_000, "1s");

/// Parts per million in a per cent.
const PPM_PER_PERCENT: u32 = 10_000;

/// The table of a workload: `[job.kv]`.
pub(crate) fn kv(table: &Table<'_>) -> Result<KvTemplate, Reported> {
    let spec = spec(table);
    with_spec(table, spec)
}

/// The same for a workload that is known, apart from what the table says of it.
pub(crate) fn of_spec(table: &Table<'_>, base: Spec) -> Result<KvTemplate, Reported> {
    let spec = changed(table, base);
    with_spec(table, spec)
}

fn with_spec(table: &Table<'_>, spec: Result<Spec, Reported>) -> Result<KvTemplate, Reported> {
    let repeats = table.u32("repeats").within(1..=1000).or(1);
    let sample = time(table, "sample", LONGEST)
        .within(1_000..=LONGEST.0)
        .or(100_000_000);
    let stops_at_errors = table.bool("stop_at_errors").or(true);
    let cores = table.u32("cores").within(0..=4096).or(0);
    let files = files(&table.table("files"));
    let name = spec.as_ref().map_or("", |spec| spec.name.as_str());
    let options = store(&table.table("store"), builtin::wal_sync(name));
    Ok(KvTemplate {
        spec: spec?,
        setup: Setup {
            files: files?,
            options: options?,
            repeats: repeats?,
            sample: Nanos(sample?),
            stops_at_errors: stops_at_errors?,
            seed: 0,
        },
        cores: cores?,
    })
}

fn spec(table: &Table<'_>) -> Result<Spec, Reported> {
    let names: Vec<(&str, &str)> = NAMES.iter().map(|(name, _)| (*name, *name)).collect();
    let name = table.choice("workload", &names).required()?;
    let spec = builtin::spec(name).ok_or_else(|| {
        let what = format!("there is no workload \"{name}\"");
        table
            .get("workload", |item| Ok(item.fail(what.clone(), "")))
            .required()
            .unwrap_or_else(|reported| reported)
    })?;
    changed(table, spec)
}

/// A workload with what the table says of it.
fn changed(table: &Table<'_>, mut spec: Spec) -> Result<Spec, Reported> {
    let operations = table.u64("operations").within(1..=1 << 31).optional();
    let records = table.u64("records").within(0..=1 << 31).optional();
    let key = table
        .size_bytes("key")
        .within(u64::from(*KEY_BYTES.start())..=u64::from(*KEY_BYTES.end()))
        .optional();
    let values = sizes(table, "value");
    let loads = table.bool("load").optional();
    let clients = table.u32("clients").within(1..=4096).optional();
    let mix = mix(&table.table("mix"));
    let choice = choice(table);
    let scans = scans(table);
    if let Some(records) = records? {
        spec.records = records;
    }
    if let Some(key) = key? {
        // In the range of keys.
        spec.key_bytes = key as u32;
    }
    spec.values = values?.unwrap_or(spec.values);
    spec.loads = loads?.unwrap_or(spec.loads);
    let (clients, mix, choice, scans) = (clients?, mix?, choice?, scans?);
    for group in &mut spec.clients {
        group.choice = choice.unwrap_or(group.choice);
        group.scans = scans.unwrap_or(group.scans);
    }
    // The first group is the one that the workload is about.
    if let Some(group) = spec.clients.first_mut() {
        let Clients {
            count, mix: own, ..
        } = group;
        *count = clients.unwrap_or(*count);
        *own = mix.unwrap_or(*own);
    }
    if let Some(operations) = operations? {
        spec.set_operations(operations);
    }
    let checked = spec.check();
    let Err(error) = checked else {
        return Ok(spec);
    };
    let fail = |item: &Item<'_>| -> Result<(), Reported> {
        Err(item.fail(error.what.clone(), error.valid.clone()))
    };
    // Where it is said, if it is.
    table.get(error.key, fail).optional()?;
    table.get("workload", fail).required()?;
    Ok(spec)
}

/// A size, or two between which all are equally likely.
fn sizes(table: &Table<'_>, key: &str) -> Result<Option<Sizes>, Reported> {
    let one = |item: &Item<'_>| item.size_bytes_u32();
    table
        .get(key, |item| {
            if !item.is_array() {
                return one(item).map(Sizes::Fixed);
            }
            match item.items()?.as_slice() {
                [min, max] => Ok(Sizes::Uniform {
                    min: one(min)?,
                    max: one(max)?,
                }),
                _ => Err(item.fail("these are not two sizes", "write [\"100B\", \"1KiB\"]")),
            }
        })
        .optional()
}

/// Entries of a range query, or two numbers between which all are equally likely.
fn scans(table: &Table<'_>) -> Result<Option<Sizes>, Reported> {
    table
        .get("scans", |item| {
            if !item.is_array() {
                return item.u32().map(Sizes::Fixed);
            }
            match item.items()?.as_slice() {
                [min, max] => Ok(Sizes::Uniform {
                    min: min.u32()?,
                    max: max.u32()?,
                }),
                _ => Err(item.fail("these are not two numbers", "write [1, 100]")),
            }
        })
        .optional()
}

fn mix(table: &Table<'_>) -> Result<Option<Mix>, Reported> {
    if !table.is_present() {
        return Ok(None);
    }
    let weights: Vec<_> = Kind::ALL
        .iter()
        .map(|kind| table.u32(kind.name()).within(0..=1_000_000).or(0))
        .collect();
    let weights: Vec<u32> = weights.into_iter().collect::<Result<_, _>>()?;
    let parts: Vec<(Kind, u32)> = Kind::ALL.into_iter().zip(weights).collect();
    Ok(Some(Mix::of(&parts)))
}

fn choice(table: &Table<'_>) -> Result<Option<Choice>, Reported> {
    #[derive(Clone, Copy)]
    enum By {
        Uniform,
        Zipfian,
        Latest,
        HotRanges,
    }
    let names = [
        ("uniform", By::Uniform),
        ("zipfian", By::Zipfian),
        ("latest", By::Latest),
        ("hot-ranges", By::HotRanges),
    ];
    let by = table.choice("keys", &names).optional();
    let theta = table.get("theta", Item::f64).or(0.99);
    let (by, theta) = (by?, theta?);
    Ok(by.map(|by| match by {
        By::Uniform => Choice::Uniform,
        By::Zipfian => Choice::Zipfian { theta },
        By::Latest => Choice::Latest { theta },
        By::HotRanges => Choice::KeyRanges(KeyRanges::ZIPPYDB),
    }))
}

/// Placement of files in zones.
fn files(table: &Table<'_>) -> Result<FilesConfig, Reported> {
    let default = FilesConfig::default();
    let threshold = table
        .percent_ppm("finish_threshold")
        .within(0..=100 * PPM_PER_PERCENT)
        .or(default.finish_threshold_percent * PPM_PER_PERCENT);
    let when = [("limit", FinishWhen::AtLimit), ("eager", FinishWhen::Eager)];
    let finish_when = table.choice("finish_when", &when).or(default.finish_when);
    let meta_zones = table.u32("meta_zones").or(default.meta_zones);
    let io_bytes = table.size_bytes_u32("io").or(default.io_bytes);
    let write_depth = table
        .u32("write_depth")
        .within(0..=1024)
        .or(default.write_depth);
    let max_active = table.u32("max_active").optional();
    let max_open = table.u32("max_open").optional();
    let wal_zones = table.u32("wal_zones").or(default.wal_zones);
    let explicit_open = table.bool("explicit_open").or(default.explicit_open);
    Ok(FilesConfig {
        finish_threshold_percent: threshold? / PPM_PER_PERCENT,
        finish_when: finish_when?,
        meta_zones: meta_zones?,
        io_bytes: io_bytes?,
        write_depth: write_depth?,
        max_active: max_active?,
        max_open: max_open?,
        wal_zones: wal_zones?,
        explicit_open: explicit_open?,
        ..default
    })
}

/// The tree, by `RocksDB`'s names.
fn store(table: &Table<'_>, synced: WalSync) -> Result<Options, Reported> {
    let default = Options::default();
    let size = |key: &str, default: u64| table.size_bytes(key).or(default);
    let small = |key: &str, default: usize| table.u32(key).or(default as u32).map(|n| n as usize);
    let write_buffer_size = size("write_buffer_size", default.write_buffer_size);
    let max_write_buffer_number = small("max_write_buffer_number", default.max_write_buffer_number);
    let trigger = small(
        "level0_file_num_compaction_trigger",
        default.level0_file_num_compaction_trigger,
    );
    let slowdown = small(
        "level0_slowdown_writes_trigger",
        default.level0_slowdown_writes_trigger,
    );
    let stop = small(
        "level0_stop_writes_trigger",
        default.level0_stop_writes_trigger,
    );
    let target_file_size_base = size("target_file_size_base", default.target_file_size_base);
    let target_file_size_multiplier = table
        .u64("target_file_size_multiplier")
        .or(default.target_file_size_multiplier);
    let max_bytes_for_level_base =
        size("max_bytes_for_level_base", default.max_bytes_for_level_base);
    let max_bytes_for_level_multiplier = table
        .u64("max_bytes_for_level_multiplier")
        .or(default.max_bytes_for_level_multiplier);
    let num_levels = small("num_levels", default.num_levels);
    let max_compaction_bytes = size("max_compaction_bytes", default.max_compaction_bytes);
    let block_size = size("block_size", default.block_size as u64);
    let compression = compression_percent(table, default.compression_percent);
    let bloom = table
        .u32("bloom_bits_per_key")
        .or(default.bloom_bits_per_key);
    let block_cache_bytes = size("block_cache", default.block_cache_bytes);
    let max_background_jobs = small("max_background_jobs", default.max_background_jobs);
    let readahead = size(
        "compaction_readahead_size",
        default.compaction_readahead_size,
    );
    let compaction_async_io = table
        .bool("compaction_async_io")
        .or(default.compaction_async_io);
    let auto_readahead = size("max_auto_readahead_size", default.max_auto_readahead_size);
    let wal_buffer_bytes = size("wal_buffer", default.wal_buffer_bytes);
    let wal_sync = table.get("wal_sync", wal_sync).or(synced);
    let delayed = table
        .rate_bytes_per_s("delayed_write_rate")
        .or(default.delayed_write_rate);
    let soft = size(
        "soft_pending_compaction_bytes_limit",
        default.soft_pending_compaction_bytes_limit,
    );
    let hard = size(
        "hard_pending_compaction_bytes_limit",
        default.hard_pending_compaction_bytes_limit,
    );
    let costs = costs(&table.table("costs"), default.costs);
    let options = Options {
        write_buffer_size: write_buffer_size?,
        max_write_buffer_number: max_write_buffer_number?,
        level0_file_num_compaction_trigger: trigger?,
        level0_slowdown_writes_trigger: slowdown?,
        level0_stop_writes_trigger: stop?,
        target_file_size_base: target_file_size_base?,
        target_file_size_multiplier: target_file_size_multiplier?,
        max_bytes_for_level_base: max_bytes_for_level_base?,
        max_bytes_for_level_multiplier: max_bytes_for_level_multiplier?,
        num_levels: num_levels?,
        max_compaction_bytes: max_compaction_bytes?,
        block_size: usize::try_from(block_size?).unwrap_or(usize::MAX),
        compression_percent: compression?,
        bloom_bits_per_key: bloom?,
        block_cache_bytes: block_cache_bytes?,
        max_background_jobs: max_background_jobs?,
        compaction_readahead_size: readahead?,
        compaction_async_io: compaction_async_io?,
        max_auto_readahead_size: auto_readahead?,
        wal_buffer_bytes: wal_buffer_bytes?,
        wal_sync: wal_sync?,
        delayed_write_rate: delayed?,
        soft_pending_compaction_bytes_limit: soft?,
        hard_pending_compaction_bytes_limit: hard?,
        costs: costs?,
        ..default
    };
    Ok(options)
}

/// What compression leaves of a block.
fn compression_percent(table: &Table<'_>, default: u32) -> Result<u32, Reported> {
    let ratio = table
        .percent_ppm("compression_ratio")
        .within(PPM_PER_PERCENT..=100 * PPM_PER_PERCENT)
        .or(default * PPM_PER_PERCENT)?;
    Ok(ratio / PPM_PER_PERCENT)
}

fn wal_sync(item: &Item<'_>) -> Result<WalSync, Reported> {
    if item.is_text("on-demand") {
        return Ok(WalSync::OnDemand);
    }
    if item.is_text("each-write") {
        return Ok(WalSync::EachWrite);
    }
    item.size_bytes().map(WalSync::EveryBytes)
}

/// Time on the cores of the host.
fn costs(table: &Table<'_>, default: CpuCosts) -> Result<CpuCosts, Reported> {
    let of = |key: &str, default: u64| time(table, key, COST_MAX).or(default);
    let put_ns = of("put", default.put_ns);
    let get_ns = of("get", default.get_ns);
    let probe_ns = of("probe", default.probe_ns);
    let block_ns = of("block", default.block_ns);
    let next_ns = of("next", default.next_ns);
    let merge_ns = of("merge", default.merge_ns);
    let merge_kib_ns = of("merge_kib", default.merge_kib_ns);
    let quantum_ns = of("quantum", default.quantum_ns);
    Ok(CpuCosts {
        put_ns: put_ns?,
        get_ns: get_ns?,
        probe_ns: probe_ns?,
        block_ns: block_ns?,
        next_ns: next_ns?,
        merge_ns: merge_ns?,
        merge_kib_ns: merge_kib_ns?,
        quantum_ns: quantum_ns?,
    })
}
