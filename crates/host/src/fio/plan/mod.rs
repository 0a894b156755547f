//! A job file on a device: threads, groups and stages; zones, sizes, limits.

mod end;

use std::num::NonZeroU64;
use std::ops::Range;

use zonelab_config::{Errors, Problem};
use zonelab_device::{DeviceInfo, NamespaceId, Nanos, ZonedInfo};

use super::file::{JobFile, Section};
use super::job::{ExitWhat, JobOptions};
use super::value::Amount;
use crate::rng::Rng;
use crate::softfinish::SoftFinish;
use crate::workload::directed::{
    DirectedSpec, Direction, EarlyReset, Flow, Pattern, Recording, Sizes, Syncs, Think, WriteStyle,
};

/// Threads of all jobs, at most: each has a queue pair of its own.
const MAX_THREADS: usize = 4_096;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The namespace that all jobs work on.
    pub namespace: NamespaceId,
    /// The threads, in the order of their numbers.
    pub jobs: Vec<PlannedJob>,
    /// Number of stages: a `stonewall` begins one.
    pub stages: u32,
    /// Zones written in part at a time.
    pub max_open_zones: Option<u32>,
    /// A job that ends ends others.
    pub exitall: bool,
    /// A job that fails ends others.
    pub exitall_on_error: bool,
    /// What the device changes about the jobs.
    pub warnings: Vec<Problem>,
}

impl Plan {
    /// Lets all jobs keep what a comparison with another run needs: the whole
    /// distribution of latencies, and how well means are known.
    pub fn keep_for_comparison(&mut self) {
        for job in &mut self.jobs {
            job.spec.recording.total_percentiles = true;
            job.spec.recording.confidence = true;
        }
    }
}

/// One thread.
#[derive(Clone, Debug)]
pub struct PlannedJob {
    /// Name of its job.
    pub name: String,
    /// Its section, by position in [`JobFile::sections`].
    pub section: usize,
    /// Group of reporting and of `exitall`.
    pub group: u32,
    /// Stage: those of a stage start together, when those before have ended.
    pub stage: u32,
    /// Report it together with the others of its group.
    pub group_reporting: bool,
    /// Whom it ends under `exitall`.
    pub exit_what: ExitWhat,
    /// Reset all zones before its stage.
    pub resets_device: bool,
    /// Percentiles to report.
    pub percentile_list: Vec<f64>,
    /// Files to log to.
    pub logs: Logs,
    /// Seed that its options name.
    pub seed: u64,
    /// What it does. Its start counts from that of the stage.
    pub spec: DirectedSpec,
}

/// A log of a thread: the file name up to `_lat.1.log` or the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Start of the file names.
    pub prefix: String,
}

/// The logs of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// Latencies: total, submission and completion.
    pub latency: Option<Log>,
    /// Bandwidth.
    pub bandwidth: Option<Log>,
    /// Operations per second.
    pub iops: Option<Log>,
    /// With the place on the device.
    pub offset: bool,
    /// Averages over so long; zero: each operation.
    pub window: Nanos,
}

impl Logs {
    /// Whether anything is logged.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.latency.is_some() || self.bandwidth.is_some() || self.iops.is_some()
    }
}

impl JobFile {
    /// Puts the jobs on the first namespace of a device of `info`.
    ///
    /// # Errors
    /// As [`JobFile::plan_on`].
    pub fn plan(&self, info: &DeviceInfo, seed: u64) -> Result<Plan, Errors> {
        self.plan_on(info, NamespaceId::FIRST, seed)
    }

    /// Puts the jobs on a namespace of a device of `info`. `seed` draws start
    /// delays that are ranges.
    ///
    /// # Errors
    /// There is no such namespace, or it has no zones; what does not fit it,
    /// what contradicts itself, and jobs that would never end.
    pub fn plan_on(&self, info: &DeviceInfo, nsid: NamespaceId, seed: u64) -> Result<Plan, Errors> {
        let Some(namespace) = info.namespace(nsid) else {
            let what = format!("there is no namespace {}", nsid.0);
            let valid = format!("the device has {}", info.namespaces.len());
            return Err(Problem::of_file(&self.file, what, valid).into());
        };
        let Some(zoned) = namespace.zoned else {
            let what = format!("namespace {} has no zones", nsid.0);
            let valid = "jobs run on zoned namespaces: name one, as in confznspp?nsid=1";
            return Err(Problem::of_file(&self.file, what, valid).into());
        };
        let mut planner = Planner {
            device: Device {
                zoned,
                lba_bytes: u64::from(namespace.lba_bytes),
                max_transfer: u64::from(info.max_transfer_bytes),
                max_append: u64::from(info.max_append_bytes),
            },
            plan: Plan {
                namespace: nsid,
                jobs: Vec::new(),
                stages: 1,
                max_open_zones: None,
                exitall: false,
                exitall_on_error: false,
                warnings: Vec::new(),
            },
            errors: Vec::new(),
            group: 0,
            in_group: 0,
            seed,
        };
        for (index, section) in self.sections.iter().enumerate() {
            planner.section(index, section);
        }
        match Errors::of(planner.errors) {
            Some(errors) => Err(errors),
            None => Ok(planner.plan),
        }
    }
}

/// What the jobs must fit.
struct Device {
    zoned: ZonedInfo,
    lba_bytes: u64,
    max_transfer: u64,
    max_append: u64,
}

impl Device {
    fn zone_bytes(&self) -> u64 {
        self.zoned.zone_size_lbas * self.lba_bytes
    }

    fn bytes(&self) -> u64 {
        self.zone_bytes() * u64::from(self.zoned.zones)
    }

    fn resolve(&self, amount: Amount) -> u64 {
        match amount {
            Amount::Bytes(bytes) => bytes,
            Amount::Zones(zones) => zones.saturating_mul(self.zone_bytes()),
            // Exact enough: a zone has more than a hundred blocks or is rounded to.
            Amount::Percent(percent) => {
                (u128::from(self.bytes()) * u128::from(percent) / 100) as u64
            }
        }
    }
}

struct Planner {
    device: Device,
    plan: Plan,
    errors: Vec<Problem>,
    group: u32,
    in_group: u32,
    seed: u64,
}

impl Planner {
    fn section(&mut self, index: usize, section: &Section) {
        let options = &section.options;
        if self.in_group > 0 && (options.stonewall || options.new_group) {
            self.group += 1;
            self.in_group = 0;
        }
        if options.stonewall && !self.plan.jobs.is_empty() {
            self.plan.stages += 1;
        }
        self.in_group += options.numjobs;
        self.plan.exitall |= options.exitall;
        self.plan.exitall_on_error |= options.exitall_on_error;
        self.open_zones(section);
        if !options.is_zoned {
            let origin = options.place(&["zonemode"], &section.origin);
            let what = "none, but the namespace is zoned, and writes go to write pointers";
            let valid = "zonemode=zbd, or leave it out";
            self.errors.push(origin.problem("zonemode", what, valid));
            return;
        }
        if self.plan.jobs.len() + options.numjobs as usize > MAX_THREADS {
            let origin = options.place(&["numjobs"], &section.origin);
            let what = format!("more than {MAX_THREADS} threads in all");
            self.errors.push(origin.problem("numjobs", what, ""));
            return;
        }
        for thread in 0..options.numjobs {
            let number = self.plan.jobs.len() as u32;
            match self.spec(section, thread, number) {
                Ok(spec) => self.plan.jobs.push(PlannedJob {
                    name: section.name.clone(),
                    section: index,
                    group: self.group,
                    stage: self.plan.stages - 1,
                    group_reporting: options.group_reporting,
                    exit_what: options.exit_what,
                    resets_device: options.initial_zone_reset,
                    percentile_list: options.percentile_list.clone(),
                    logs: logs(section),
                    seed: options.randseed,
                    spec,
                }),
                Err(problem) => {
                    // The other threads would say the same, or nearly.
                    self.errors.push(problem);
                    return;
                }
            }
        }
    }

    /// The limit of zones written in part, which is one for all jobs.
    fn open_zones(&mut self, section: &Section) {
        let Some(limit) = section.options.max_open_zones else {
            return;
        };
        let origin = section.options.place(&["max_open_zones"], &section.origin);
        if self.plan.max_open_zones.is_some_and(|other| other != limit) {
            let what = "jobs on one device have different limits";
            let valid = "set it once, in [global]; job_max_open_zones is for each job";
            self.errors
                .push(origin.problem("max_open_zones", what, valid));
            return;
        }
        let zoned = &self.device.zoned;
        let device = zoned.max_open.into_iter().chain(zoned.max_active).min();
        if let Some(device) = device.filter(|device| *device < limit)
            && self.plan.max_open_zones.is_none()
        {
            let what = format!("the device allows {device}: they are the limit");
            self.plan
                .warnings
                .push(origin.problem("max_open_zones", what, ""));
        }
        self.plan.max_open_zones = Some(limit);
    }

    fn spec(
        &mut self,
        section: &Section,
        thread: u32,
        number: u32,
    ) -> Result<DirectedSpec, Problem> {
        let options = &section.options;
        let zones = self.zones(section, thread)?;
        let style = self.style(section)?;
        let flows = self.flows(section, style, thread)?;
        let end = self.end(section, &zones)?;
        let zones_count = u64::from(zones.end - zones.start);
        self.check_depth(section, thread);
        let pattern = if options.rw.random {
            Pattern::Random {
                distribution: options.random_distribution,
                percent: options.percentage_random,
            }
        } else {
            Pattern::Sequential
        };
        let (low, high) = options.startdelay;
        let spread = Rng::new(self.seed, u64::from(number) | 1 << 40).below(high - low + 1);
        Ok(DirectedSpec {
            id: number,
            namespace: self.plan.namespace,
            zones,
            flows,
            read_percent: options.rwmixread,
            pattern,
            style,
            reads_beyond_write_pointer: options.read_beyond_wp,
            open_limit: options.job_max_open_zones,
            early_reset: self.early_reset(section, zones_count),
            syncs: Syncs {
                every_writes: [options.fsync, options.fdatasync],
                at_end: options.end_fsync,
            },
            queue_depth: if options.is_synchronous() {
                1
            } else {
                options.iodepth
            },
            start: Nanos(low + spread),
            ramp: Nanos(options.ramp_time),
            end,
            think: (options.thinktime > 0).then_some(Think {
                time: Nanos(options.thinktime),
                after_ops: options.thinktime_blocks,
                after_time: options.thinktime_iotime.map(Nanos),
            }),
            recording: recording(options),
        })
    }

    /// The zones of a thread: whole ones within offset and size.
    fn zones(&mut self, section: &Section, thread: u32) -> Result<Range<u32>, Problem> {
        let options = &section.options;
        let device = &self.device;
        let (zone, all) = (device.zone_bytes(), device.bytes());
        // fio wants both to be the same with `zonemode=zbd`.
        for (key, bytes) in [
            ("zonesize", options.zonesize),
            ("zonerange", options.zonerange),
        ] {
            if let Some(bytes) = bytes.filter(|bytes| *bytes != zone) {
                let origin = options.place(&[key], &section.origin);
                let what = format!("{bytes} bytes, but zones of the device have {zone}");
                return Err(origin.problem(key, what, "leave it out"));
            }
        }
        let capacity = device.zoned.zone_capacity_lbas * device.lba_bytes;
        if let Some(bytes) = options.zonecapacity.filter(|bytes| *bytes != capacity) {
            let origin = options.place(&["zonecapacity"], &section.origin);
            let what = format!("{bytes} bytes, but zones of the device hold {capacity}");
            return Err(origin.problem("zonecapacity", what, "leave it out"));
        }
        let places = ["offset", "offset_increment", "size"];
        let origin = options.place(&places, &section.origin);
        let step = device.resolve(options.offset_increment);
        let offset = device
            .resolve(options.offset)
            .saturating_add(step.saturating_mul(u64::from(thread)));
        if offset >= all {
            let what = format!("thread {} begins at byte {offset}", thread + 1);
            let valid = format!("the device has {} zones, {all} bytes", device.zoned.zones);
            return Err(origin.problem("offset", what, valid));
        }
        let size = options
            .size
            .map_or(all - offset, |size| device.resolve(size));
        let end = offset.saturating_add(size);
        let first = offset.div_ceil(zone);
        let last = end.min(all) / zone;
        if first >= last {
            let what = format!("no whole zone of {zone} bytes in {size} bytes from {offset} on");
            let valid = "give size in zones (1z), and io_size for less";
            return Err(origin.problem("size", what, valid));
        }
        if thread == 0 && end > all {
            let what = format!(
                "ends beyond the device: zones {first} to {} are used",
                last - 1
            );
            self.plan.warnings.push(origin.problem("size", what, ""));
        } else if thread == 0 && (first * zone != offset || last * zone != end) {
            let what = format!("no whole zones: {first} to {} are used", last - 1);
            self.plan.warnings.push(origin.problem("size", what, ""));
        }
        // Both fit: the device has fewer zones than 2^32.
        Ok(first as u32..last as u32)
    }

    /// When zones are reset before they are full.
    fn early_reset(&self, section: &Section, zones: u64) -> Option<EarlyReset> {
        let options = &section.options;
        let (threshold, frequency) = (options.zone_reset_threshold, options.zone_reset_frequency);
        if frequency <= 0.0 {
            return None;
        }
        // fio counts a threshold in shares of the size of the job, which has the
        // gaps behind the capacities of zones in it.
        let lbas = zones * self.device.zoned.zone_size_lbas;
        Some(EarlyReset {
            threshold_lbas: (lbas as f64 * threshold) as u64,
            every_writes: (1.0 / frequency) as u64,
        })
    }

    fn style(&self, section: &Section) -> Result<WriteStyle, Problem> {
        let options = &section.options;
        let [reads, writes, trims] = options.rw.directions;
        let styles = [
            ("finish", options.finish),
            ("softfinish", options.softfinish),
            ("reset", options.reset && !trims),
        ];
        let mut chosen = styles
            .into_iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| name);
        let Some(name) = chosen.next() else {
            return Ok(if options.append {
                WriteStyle::Append
            } else {
                WriteStyle::Write
            });
        };
        if !writes {
            return Ok(WriteStyle::Write);
        }
        let origin = options.place(&[name], &section.origin);
        if let Some(other) = chosen.next() {
            let what = format!("and {other}: one job does one of them");
            return Err(origin.problem(name, what, ""));
        }
        if reads || options.append {
            let what = "is for jobs that only write, without append";
            return Err(origin.problem(name, what, "rw=write or rw=randwrite"));
        }
        Ok(match name {
            "finish" => WriteStyle::Finish,
            "reset" => WriteStyle::Reset,
            _ => {
                let bytes = options.softfinish_granularity;
                let max = self.device.max_transfer;
                let names = ["softfinish_granularity", "softfinish"];
                let lbas = self.lbas(section, &names, bytes, max)?;
                let max_lbas = u32::try_from(max / self.device.lba_bytes).unwrap_or(u32::MAX);
                let how = SoftFinish::new(lbas, Nanos(options.softfinish_pause), max_lbas)
                    .map_err(|error| origin.problem(name, error.to_string(), ""))?;
                WriteStyle::SoftFinish(how)
            }
        })
    }

    fn flows(
        &mut self,
        section: &Section,
        style: WriteStyle,
        thread: u32,
    ) -> Result<[Option<Flow>; 3], Problem> {
        let options = &section.options;
        let mut flows = [None, None, None];
        for direction in Direction::ALL {
            let index = direction as usize;
            if !options.rw.directions[index] {
                continue;
            }
            let sizes = if direction == Direction::Trim {
                self.check_trim_size(section, thread);
                Sizes::fixed(1)
            } else {
                self.sizes(section, direction, style)?
            };
            flows[index] = Some(Flow {
                sizes,
                bytes_per_second: NonZeroU64::new(options.rate[index]),
                ops_per_second: NonZeroU64::new(options.rate_iops[index]),
                poisson: options.poisson,
            });
        }
        Ok(flows)
    }

    /// A depth above 1 that the engine does not keep. Known once all options of a
    /// job have been read: the engine can be named after the depth.
    fn check_depth(&mut self, section: &Section, thread: u32) {
        let options = &section.options;
        if thread > 0 || options.iodepth <= 1 || !options.is_synchronous() {
            return;
        }
        let origin = options.place(&["iodepth"], &section.origin);
        let what = "has no meaning with a synchronous ioengine: one operation at a time";
        let warning = origin.problem("iodepth", what, "");
        if !self.plan.warnings.contains(&warning) {
            self.plan.warnings.push(warning);
        }
    }

    /// A trim is a reset: of another size it does something else than it says.
    fn check_trim_size(&mut self, section: &Section, thread: u32) {
        let options = &section.options;
        let zone = self.device.zone_bytes();
        let is_stated = options.places.iter().any(|(name, _)| *name == "bs");
        if thread == 0 && is_stated && options.bs[2] != (zone, zone) {
            let origin = options.place(&["bs"], &section.origin);
            let what = format!("trims are resets of whole zones and count as {zone} bytes");
            self.plan.warnings.push(origin.problem("bs", what, ""));
        }
    }

    fn sizes(
        &self,
        section: &Section,
        direction: Direction,
        style: WriteStyle,
    ) -> Result<Sizes, Problem> {
        let options = &section.options;
        let index = direction as usize;
        let max = match (direction, style) {
            (Direction::Write, WriteStyle::Append) => self.device.max_append,
            _ => self.device.max_transfer,
        };
        let max = max.min(self.device.zoned.zone_capacity_lbas * self.device.lba_bytes);
        let names = ["bs", "bsrange", "bssplit"];
        let mut split = Vec::new();
        for &(bytes, percent) in &options.bssplit[index] {
            split.push((self.lbas(section, &names, bytes, max)?, percent));
        }
        if let (Some(low), Some(high)) = (
            split.iter().map(|(lbas, _)| *lbas).min(),
            split.iter().map(|(lbas, _)| *lbas).max(),
        ) {
            return Ok(Sizes {
                // Positions are aligned to it, whatever the sizes have in common.
                min: low,
                max: high,
                split,
            });
        }
        let (low, high) = options.bs[index];
        Ok(Sizes {
            min: self.lbas(section, &names, low, max)?,
            max: self.lbas(section, &names, high, max)?,
            split,
        })
    }

    /// A size in logical blocks.
    fn lbas(
        &self,
        section: &Section,
        names: &[&str],
        bytes: u64,
        max: u64,
    ) -> Result<u32, Problem> {
        let origin = section.options.place(names, &section.origin);
        let key = names.first().copied().unwrap_or_default();
        let lba = self.device.lba_bytes;
        if bytes == 0 || !bytes.is_multiple_of(lba) {
            let what = format!("{bytes} bytes are no multiple of the logical block of {lba}");
            let valid = "in fio, k is 1024 and kib is 1000 (see kb_base)";
            return Err(origin.problem(key, what, valid));
        }
        if bytes > max {
            let what = format!("{bytes} bytes are more than one command moves on this device");
            return Err(origin.problem(key, what, format!("{lba} to {max}")));
        }
        u32::try_from(bytes / lba)
            .map_err(|_| origin.problem(key, format!("{bytes} bytes are too many"), ""))
    }
}

fn recording(options: &JobOptions) -> Recording {
    let log = [&options.lat_log, &options.bw_log, &options.iops_log];
    Recording {
        submission_percentiles: options.slat_percentiles,
        completion_percentiles: options.clat_percentiles,
        total_percentiles: options.lat_percentiles,
        bandwidth_interval: Nanos(options.bwavgtime),
        iops_interval: Nanos(options.iopsavgtime),
        confidence: false,
        log: log.iter().any(|log| log.is_some()),
        log_window: Nanos(options.log_avg_msec),
    }
}

fn logs(section: &Section) -> Logs {
    let options = &section.options;
    let log = |prefix: &Option<String>| {
        let prefix = prefix.as_ref()?;
        let is_unnamed = prefix.is_empty();
        Some(Log {
            prefix: if is_unnamed { &section.name } else { prefix }.clone(),
        })
    };
    Logs {
        latency: log(&options.lat_log),
        bandwidth: log(&options.bw_log),
        iops: log(&options.iops_log),
        offset: options.log_offset,
        window: Nanos(options.log_avg_msec),
    }
}
