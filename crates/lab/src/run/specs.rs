//! The jobs of an experiment file as jobs for a drive.

use zonelab_config::Problem;
use zonelab_device::{DeviceInfo, Nanos, ZonedInfo};
use zonelab_host::workload::{JobSpec, ReadWork, Stop, Work, WriteWork, slice_of};
use zonelab_ssd::Drive;
use zonelab_ssd::config::{DataStore, DriveConfig};

use crate::experiment::{JobTemplate, StackModel, WorkTemplate};
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

/// The jobs of a phase, thread by thread.
pub(super) fn specs(templates: &[&JobTemplate], shape: &Shape) -> Result<Vec<Thread>, String> {
    check_ends(templates)?;
    let mut specs = Vec::new();
    for template in templates {
        if matches!(template.work, WorkTemplate::Kv(_)) {
            continue;
        }
        for thread in 0..template.threads {
            specs.push(Thread {
                spec: spec(template, thread, shape)?,
                delay: template.start,
                stack: template.stack,
                shares_zones: template.shares_zones(),
            });
        }
    }
    Ok(specs)
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
        let is_endless = matches!(
            job.work,
            WorkTemplate::Read { .. } | WorkTemplate::Write { repeat: true, .. }
        );
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
    let nsid = template.namespace;
    let have = shape.info.namespaces.len();
    let Some(namespace) = shape.info.namespace(nsid) else {
        return Err(format!(
            "job \"{name}\": there is no namespace {}: the drive has {have}",
            nsid.0
        ));
    };
    let Some(zoned) = namespace.zoned else {
        return Err(format!(
            "job \"{name}\": namespace {} is conventional, and jobs are for zones",
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
        counting: template.counting,
        ramp: template.ramp,
        stop: Stop { ..template.stop },
        ends_run: template.ends_run,
        ..JobSpec::new(name.clone(), work)
    })
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
            fill: fill.resolve(capacity_lbas, lba_bytes, page_bytes),
            soft: None,
        },
        WorkTemplate::SoftFinish { fill, ref soft } => Work::Finish {
            zones,
            fill: fill.resolve(capacity_lbas, lba_bytes, page_bytes),
            soft: Some(soft.resolve(lba_bytes, max_transfer)?),
        },
        WorkTemplate::Reset { shuffled, fill } => Work::Reset {
            zones,
            shuffled,
            fill: fill.resolve(capacity_lbas, lba_bytes, page_bytes),
        },
        WorkTemplate::Open { fill } => Work::Open {
            zones,
            fill: fill.resolve(capacity_lbas, lba_bytes, page_bytes),
        },
        WorkTemplate::Kv(_) => {
            unreachable!("key-value workloads are jobs of another sort, and were left out")
        }
        WorkTemplate::Close { fill } => Work::Close {
            zones,
            fill: fill.resolve(capacity_lbas, lba_bytes, page_bytes),
        },
    })
}
