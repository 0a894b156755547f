//! The jobs of an experiment file as jobs for a drive.

use zonelab_config::Problem;
use zonelab_device::{DeviceInfo, NamespaceInfo, Nanos, ZonedInfo};
use zonelab_host::rate::{out_of_step, phase};
use zonelab_host::workload::blocks::BlockRange;
use zonelab_host::workload::contents::Contents;
use zonelab_host::workload::directed::{DirectedWork, Direction, Pattern, Sizes};
use zonelab_host::workload::{Ending, Fill, JobSpec, ReadWork, Stop, Work, WriteWork, slice_of};
use zonelab_ssd::Drive;
use zonelab_ssd::config::{DataStore, DriveConfig};

use crate::experiment::{BlocksTemplate, FillTemplate, JobTemplate, StackModel, WorkTemplate};
use crate::kv::KvTemplate;

/// What jobs have to know of the device that they run on.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// What it is.
    pub(super) info: DeviceInfo,
    /// It keeps data.
    pub(super) keeps_data: bool,
    /// Shares of a zone's capacity are rounded up to so many bytes; `None`: to a
    /// logical block, since a device from outside does not tell the size of its pages.
    page_bytes: Option<u32>,
}

impl Shape {
    /// That of an emulated drive.
    pub(super) fn of_drive(config: &DriveConfig) -> Self {
        Self {
            info: Drive::info_of(config),
            keeps_data: config.data == DataStore::Memory,
            page_bytes: Some(config.geometry.page_bytes),
        }
    }

    /// The same drive, with something in front of it that jobs see in its place.
    pub(super) fn seen_as(self, info: DeviceInfo) -> Self {
        Self { info, ..self }
    }

    /// That of any other device, which keeps data.
    pub(super) fn of_device(info: &DeviceInfo) -> Self {
        Self {
            info: info.clone(),
            keeps_data: true,
            page_bytes: None,
        }
    }
}

/// A thread of a job.
pub(super) struct Thread {
    /// What it does.
    pub(super) spec: JobSpec,
    /// How long after the others it starts.
    pub(super) delay: Nanos,
    /// The storage stack that it uses instead of the host's.
    pub(super) stack: Option<StackModel>,
    /// It shares its zones with the other threads of its job.
    pub(super) shares_zones: bool,
}

/// The jobs of a phase, thread by thread. `seed` draws when those with a rate begin, after the
/// first of them.
pub(super) fn specs(
    templates: &[&JobTemplate],
    shape: &Shape,
    seed: u64,
) -> Result<Vec<Thread>, String> {
    check_ends(templates)?;
    let mut specs = Vec::new();
    let mut rated = 0;
    for template in templates {
        if matches!(template.work, WorkTemplate::Kv(_)) {
            continue;
        }
        for thread in 0..template.threads {
            let mut spec = spec(template, thread, shape)?;
            spec.contents = shape.keeps_data.then(Contents::default);
            let period = period(&spec, shape);
            let mut delay = out_of_step(thread, period);
            if rated > 0 {
                let drawn = phase(seed, rated, period);
                delay = Nanos(delay.saturating_add(drawn).0 % period.0.max(1));
            }
            specs.push(Thread {
                spec,
                delay: template.start.saturating_add(delay),
                stack: template.stack,
                shares_zones: template.shares_zones(),
            });
        }
        rated += u32::from(template.rate.is_some());
    }
    Ok(specs)
}

/// How often a thread that reads or writes does so at the rate that it is to keep; zero if there
/// is none.
fn period(spec: &JobSpec, shape: &Shape) -> Nanos {
    let Some(limit) = spec.rate else {
        return Nanos::ZERO;
    };
    let lbas = match &spec.work {
        Work::Write(work) => work.block_lbas,
        Work::Read(work) => work.block_lbas,
        _ => return Nanos::ZERO,
    };
    let lba_bytes = shape
        .info
        .namespace(spec.namespace)
        .map_or(0, |of| of.lba_bytes);
    limit.period(u64::from(lbas) * u64::from(lba_bytes))
}

/// The key-value workloads of a phase.
pub(super) fn stores<'a>(
    templates: &[&'a JobTemplate],
    shape: &Shape,
) -> Result<Vec<&'a JobTemplate>, String> {
    let stores = templates
        .iter()
        .filter_map(|template| match &template.work {
            WorkTemplate::Kv(kv) => Some((*template, kv)),
            _ => None,
        });
    let check = |(template, kv): (&'a JobTemplate, &KvTemplate)| {
        let ok = kv.check(&shape.info, shape.keeps_data);
        ok.map_err(|error| format!("job \"{}\": {error}", template.name))?;
        Ok(template)
    };
    stores.map(|(template, kv)| check((template, kv))).collect()
}

/// Every run ends: a job that would go on for ever must have a bound of its
/// own, or run beside one that ends the run and has.
fn check_ends(templates: &[&JobTemplate]) -> Result<(), String> {
    let is_bounded = |job: &JobTemplate| {
        let Stop {
            runtime,
            bytes,
            operations,
            periods,
            ..
        } = job.stop;
        let is_endless = match job.work {
            WorkTemplate::Read { .. } | WorkTemplate::Write { repeat: true, .. } => true,
            WorkTemplate::Blocks(BlocksTemplate { passes, .. }) => passes.is_none(),
            _ => false,
        };
        let is_endless = is_endless || job.repeat;
        let is_counted = bytes.is_some() || operations.is_some() || periods.is_some();
        !is_endless || runtime.is_some() || is_counted
    };
    if templates.iter().any(|job| job.ends_run && is_bounded(job)) {
        return Ok(());
    }
    match templates.iter().find(|job| !is_bounded(job)) {
        Some(job) => Err(format!(
            "job \"{}\" never ends: give it a runtime, bytes or operations (confidence alone \
             is no bound), or let another job end the run (ends_run = true)",
            job.name
        )),
        None => Ok(()),
    }
}

fn spec(template: &JobTemplate, thread: u32, shape: &Shape) -> Result<JobSpec, String> {
    let JobTemplate {
        name,
        zones,
        threads,
        ..
    } = template;
    if let WorkTemplate::Blocks(blocks) = &template.work {
        return blocks_spec(template, blocks, thread, shape)
            .map_err(|what| format!("job \"{name}\": {what}"));
    }
    let mine = match template.zones_per_thread {
        _ if template.shares_zones() => zones.clone(),
        Some(count) => {
            let start = zones.start.saturating_add(thread.saturating_mul(count));
            start..start.saturating_add(count)
        }
        None => slice_of(zones, thread, *threads),
    };
    if mine.is_empty() {
        let have = zones.len();
        return Err(format!(
            "job \"{name}\": {threads} threads do not find a zone each in {have}"
        ));
    }
    let nsid = template.nsid();
    let have = shape.info.namespaces.len();
    let Some(namespace) = shape.info.namespace(nsid) else {
        return Err(format!(
            "job \"{name}\": there is no namespace {}: the drive has {have}",
            nsid.0
        ));
    };
    let Some(zoned) = namespace.zoned else {
        return Err(format!(
            "job \"{name}\": namespace {} is conventional, and the job is for zones: say \
             blocks = \"0%..100%\" in place of `zones`",
            nsid.0
        ));
    };
    let count = zoned.zones;
    if mine.end > zones.end || mine.end > count {
        let whose = match have {
            1 => "the drive's".to_owned(),
            _ => format!("those of namespace {}", nsid.0),
        };
        return Err(format!(
            "job \"{name}\": thread {thread} needs zones {} to {}, but its zones end at {} and {whose} at {}",
            mine.start,
            mine.end - 1,
            zones.end - 1,
            count - 1,
        ));
    }
    let lba_bytes = u64::from(namespace.lba_bytes);
    if !template.block_bytes.is_multiple_of(lba_bytes) {
        return Err(format!(
            "job \"{name}\": block of {} bytes is no multiple of the logical block of {lba_bytes}",
            template.block_bytes
        ));
    }
    let block_lbas = u32::try_from(template.block_bytes / lba_bytes).unwrap_or(u32::MAX);
    let bytes = Bytes {
        lba: namespace.lba_bytes,
        page: shape.page_bytes.unwrap_or(namespace.lba_bytes),
        max_transfer: shape.info.max_transfer_bytes,
    };
    let work = work(template, mine, block_lbas, (zoned, bytes))
        .map_err(|problem| format!("job \"{name}\": {problem}"))?;
    Ok(JobSpec {
        namespace: nsid,
        queue_depth: template.queue_depth,
        rate: template.rate,
        arrival: template.arrival,
        ending: ending(template),
        counting: template.counting,
        ramp: template.ramp,
        stop: Stop { ..template.stop },
        ends_run: template.ends_run,
        ..JobSpec::new(name.clone(), work)
    })
}

/// A thread of a job on blocks.
fn blocks_spec(
    template: &JobTemplate,
    blocks: &BlocksTemplate,
    thread: u32,
    shape: &Shape,
) -> Result<JobSpec, String> {
    let nsid = template.nsid();
    let have = shape.info.namespaces.len();
    let Some(namespace) = shape.info.namespace(nsid) else {
        return Err(format!(
            "there is no namespace {}: the drive has {have}",
            nsid.0
        ));
    };
    if namespace.zoned.is_some() {
        return Err(format!(
            "namespace {} is zoned, and `blocks` are those of a conventional one: say `zones`, or \
             go through the flash translation layer (via = \"ftl\"), in virtual time",
            nsid.0
        ));
    }
    let lbas = lbas_of(template, namespace)?;
    let range = range_of(blocks, (thread, template.threads), namespace, lbas);
    if range.lbas == 0 {
        return Err(format!(
            "{} threads do not find {lbas} blocks each in their part of {}",
            template.threads, namespace.size_lbas
        ));
    }
    let direction = match blocks.is_write {
        true => Direction::Write,
        false => Direction::Read,
    };
    let pattern = match blocks.distribution.clone() {
        None => Pattern::Sequential,
        Some(distribution) => Pattern::Random {
            distribution,
            percent: [100; 3],
            in_a_row: 1,
            is_identical: false,
        },
    };
    // Of a share in order, each thread makes the passes itself; of a part that all have,
    // all of them together.
    let passes = blocks.passes.map(u64::from);
    let of_thread = match blocks.distribution {
        None => range.lbas,
        Some(_) => range.lbas / u64::from(template.threads),
    };
    let lba_bytes = u64::from(namespace.lba_bytes);
    let bytes = passes.map(|passes| (passes * of_thread).max(lbas.into()) * lba_bytes);
    let work = DirectedWork {
        blocks: Some(range),
        pattern,
        ..DirectedWork::through(0..0, direction, Sizes::fixed(lbas))
    };
    let stop = Stop {
        bytes: bytes.into_iter().chain(template.stop.bytes).min(),
        ..template.stop
    };
    Ok(JobSpec {
        namespace: nsid,
        queue_depth: template.queue_depth,
        rate: template.rate,
        arrival: template.arrival,
        ending: ending(template),
        counting: template.counting,
        ramp: template.ramp,
        stop,
        ends_run: template.ends_run,
        ..JobSpec::new(template.name.clone(), Work::Directed(Box::new(work)))
    })
}

/// Of operations that are due at times of their own, all count that are due before the end.
const fn ending(template: &JobTemplate) -> Ending {
    match template.arrival.is_open() {
        true => Ending::AtLastCompletion,
        false => Ending::AtDecision,
    }
}

/// Logical blocks of an operation.
fn lbas_of(template: &JobTemplate, namespace: &NamespaceInfo) -> Result<u32, String> {
    let lba_bytes = u64::from(namespace.lba_bytes);
    match template.block_bytes.is_multiple_of(lba_bytes) {
        true => Ok(u32::try_from(template.block_bytes / lba_bytes).unwrap_or(u32::MAX)),
        false => Err(format!(
            "block of {} bytes is no multiple of the logical block of {lba_bytes}",
            template.block_bytes
        )),
    }
}

/// The blocks of a thread, in whole operations: all of the job's at random, or a share of
/// them in order.
fn range_of(
    blocks: &BlocksTemplate,
    (thread, threads): (u32, u32),
    namespace: &NamespaceInfo,
    lbas: u32,
) -> BlockRange {
    let at = |ppm: u32| {
        let exact = u128::from(namespace.size_lbas) * u128::from(ppm) / 1_000_000;
        u64::try_from(exact).unwrap_or(u64::MAX) / u64::from(lbas)
    };
    let (begin, end) = (at(blocks.part_ppm.start), at(blocks.part_ppm.end));
    let (first, count) = match blocks.distribution {
        Some(_) => (begin, end - begin),
        None => {
            let share = |thread: u32| (end - begin) * u64::from(thread) / u64::from(threads);
            (begin + share(thread), share(thread + 1) - share(thread))
        }
    };
    BlockRange {
        first: first * u64::from(lbas),
        lbas: count * u64::from(lbas),
        namespace_lbas: namespace.size_lbas,
        has_map: false,
        passes: None,
        stride: None,
    }
}

/// Sizes of a device.
#[derive(Clone, Copy)]
struct Bytes {
    lba: u32,
    page: u32,
    max_transfer: u32,
}

fn work(
    template: &JobTemplate,
    zones: std::ops::Range<u32>,
    block_lbas: u32,
    (zoned, bytes): (ZonedInfo, Bytes),
) -> Result<Work, Problem> {
    let capacity_lbas = zoned.zone_capacity_lbas;
    let (lba_bytes, page_bytes, max_transfer) = (bytes.lba, bytes.page, bytes.max_transfer);
    let fill_of = |fill: FillTemplate| Fill {
        repeat: template.repeat,
        ..fill.resolve(capacity_lbas, lba_bytes, page_bytes)
    };
    Ok(match template.work {
        WorkTemplate::Write {
            append,
            open_zones,
            repeat,
            reset_first,
            open_first,
            shared: _,
        } => Work::Write(WriteWork {
            command_lbas: match &template.command {
                None => None,
                Some(command) => Some(command.resolve(lba_bytes, max_transfer)?),
            },
            zones,
            block_lbas,
            append,
            open_zones,
            repeat,
            reset_first,
            open_first,
        }),
        WorkTemplate::Read { random } => Work::Read(ReadWork {
            zones,
            block_lbas,
            random,
        }),
        WorkTemplate::Finish { fill } => Work::Finish {
            zones,
            fill: fill_of(fill),
            soft: None,
        },
        WorkTemplate::SoftFinish { fill, ref soft } => Work::Finish {
            zones,
            fill: fill_of(fill),
            soft: Some(soft.resolve(lba_bytes, max_transfer)?),
        },
        WorkTemplate::Reset { shuffled, fill } => Work::Reset {
            zones,
            shuffled,
            fill: fill_of(fill),
        },
        WorkTemplate::Open { fill } => Work::Open {
            zones,
            fill: fill_of(fill),
        },
        WorkTemplate::Blocks(_) => unreachable!("work on blocks has a specification of its own"),
        WorkTemplate::Kv(_) => {
            unreachable!("key-value workloads are jobs of another sort, and were left out")
        }
        WorkTemplate::Close { fill } => Work::Close {
            zones,
            fill: fill_of(fill),
        },
    })
}
