//! A job file on a device: threads, groups and stages; zones, sizes, limits.

mod blocks;
mod end;
mod goals;
mod replay;
mod shape;
mod verify;

use std::ops::Range;

use zonelab_config::{Errors, Problem};
use zonelab_device::{DeviceInfo, NamespaceId, NamespaceInfo, Nanos, ZonedInfo};

use super::cpus::Cpus;
use super::file::{JobFile, Section};
use super::job::ExitWhat;
use super::value::Amount;
use crate::rng::Rng;
use crate::workload::directed::{DirectedWork, Pattern};
use crate::workload::record::Recording;
use crate::workload::zone_table::JobId;
use crate::workload::{Ending, JobSpec, Syncs, Think};

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
    /// What has no meaning in virtual time.
    pub in_virtual_time: Vec<Problem>,
}

impl Plan {
    /// Lets all jobs keep what a comparison with another run needs: the whole
    /// distribution of latencies, and how well means are known.
    pub fn keep_for_comparison(&mut self) {
        for job in &mut self.jobs {
            if let Some(recording) = &mut job.spec.recording.directions {
                recording.total_percentiles = true;
                recording.confidence = true;
            }
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
    /// It starts when these threads have ended, by number.
    pub waits_for: Range<JobId>,
    /// Reset all zones before its stage.
    pub resets_device: bool,
    /// Commands of the device that its longest one is: more than 1, if a block layer sends it in
    /// parts.
    pub parts: u32,
    /// Its writes complete when they can not be lost any more.
    pub writes_through: bool,
    /// Percentiles to report.
    pub percentile_list: Vec<f64>,
    /// Files to log to.
    pub logs: Logs,
    /// Seed that its options name.
    pub seed: u64,
    /// The processors that its thread may run on, in real time.
    pub cpus: Cpus,
    /// Its share of what some jobs do together.
    pub share: Option<PlannedShare>,
    /// Its number among the threads of the run, from 0.
    pub number: JobId,
    /// What it does. Its start counts from that of the stage.
    pub spec: JobSpec<DirectedWork>,
}

/// A share of what jobs do together (`flow`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedShare {
    /// The jobs: those of the same number (`flow_id`).
    pub group: i64,
    /// Weight among them, at least 1.
    pub weight: u32,
    /// How long a job sleeps that has done more (`flow_sleep`).
    pub sleep: Nanos,
}

/// A log of a thread: the file name up to `_lat.1.log` or the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Start of the file names.
    pub prefix: String,
}

/// A log of the commands of a thread, in fio's form (`write_iolog`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueLog {
    /// Name of the file.
    pub file: String,
    /// What the device is called in it.
    pub device: String,
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
    /// Commands as they were issued.
    pub issued: Option<IssueLog>,
    /// With the place on the device.
    pub offset: bool,
    /// Averages over so long; zero: each operation.
    pub window: Nanos,
}

impl Logs {
    /// Whether anything is logged.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.latency.is_some()
            || self.bandwidth.is_some()
            || self.iops.is_some()
            || self.issued.is_some()
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
    /// There is no such namespace; what does not fit it, what contradicts itself,
    /// and jobs that would never end.
    pub fn plan_on(&self, info: &DeviceInfo, nsid: NamespaceId, seed: u64) -> Result<Plan, Errors> {
        let Some(namespace) = info.namespace(nsid) else {
            let what = format!("there is no namespace {}", nsid.0);
            let valid = format!("the device has {}", info.namespaces.len());
            return Err(Problem::of_file(&self.file, what, valid).into());
        };
        let mut planner = Planner {
            device: Device {
                zoned: namespace.zoned.unwrap_or(as_one_zone(namespace)),
                is_conventional: namespace.zoned.is_none(),
                lba_bytes: u64::from(namespace.lba_bytes),
                max_transfer: u64::from(info.max_transfer_bytes),
                max_append: u64::from(info.max_append_bytes),
                placements: namespace.placements,
            },
            plan: Plan {
                namespace: nsid,
                jobs: Vec::new(),
                stages: 1,
                max_open_zones: None,
                exitall: false,
                exitall_on_error: false,
                warnings: Vec::new(),
                in_virtual_time: Vec::new(),
            },
            errors: Vec::new(),
            refused: Vec::new(),
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

/// Where operations of a job go in so many bytes.
fn pattern(section: &Section, bytes: u64) -> Pattern {
    let options = &section.options;
    match options.rw.random {
        true => Pattern::Random {
            distribution: options.random_distribution.over(bytes),
            percent: options.percentage_random,
            in_a_row: options.rw.in_a_row,
            is_identical: options.is_identical,
        },
        false => Pattern::Sequential,
    }
}

/// A conventional namespace as if all of it were one zone.
const fn as_one_zone(namespace: &NamespaceInfo) -> ZonedInfo {
    ZonedInfo {
        zones: 1,
        zone_size_lbas: namespace.size_lbas,
        zone_capacity_lbas: namespace.size_lbas,
        max_active: None,
        max_open: None,
        read_across_zones: true,
        descriptor_extension_bytes: 0,
        zrwa: None,
    }
}

/// What the jobs must fit.
struct Device {
    /// The zones; of a namespace that has none, one for all of it.
    zoned: ZonedInfo,
    /// It has none.
    is_conventional: bool,
    lba_bytes: u64,
    max_transfer: u64,
    max_append: u64,
    /// Placement identifiers, if it is known how many there are.
    placements: Option<u16>,
}

impl Device {
    /// The blocks that a job works on.
    fn within(&self, work: &DirectedWork) -> Range<u64> {
        let size = self.zoned.zone_size_lbas;
        match &work.blocks {
            Some(range) => range.first..range.first + range.lbas,
            None => u64::from(work.zones.start) * size..u64::from(work.zones.end) * size,
        }
    }

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

struct Planner<'a> {
    device: Device,
    plan: Plan,
    errors: Vec<Problem>,
    /// Names of jobs that cannot be run, which is said of them: others may wait for them.
    refused: Vec<&'a str>,
    group: u32,
    in_group: u32,
    seed: u64,
}

impl<'a> Planner<'a> {
    fn section(&mut self, index: usize, section: &'a Section) {
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
        self.note_cpus(section);
        if self.plan.jobs.len() + options.numjobs as usize > MAX_THREADS {
            let origin = options.place(&["numjobs"], &section.origin);
            let what = format!("more than {MAX_THREADS} threads in all");
            self.refuse(section, origin.problem("numjobs", what, ""));
            return;
        }
        let waits_for = match self.waits_for(section) {
            Ok(waits_for) => waits_for,
            Err(problem) => {
                self.refuse(section, problem);
                return;
            }
        };
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
                    waits_for: waits_for.clone(),
                    resets_device: options.initial_zone_reset,
                    parts: self.parts(&spec.work),
                    writes_through: options.sync || options.writefua,
                    percentile_list: options.percentile_list.clone(),
                    logs: shape::logs(section),
                    seed: options.randseed,
                    cpus: options.beside.cpus.clone(),
                    share: Self::share(section),
                    number,
                    spec,
                }),
                Err(problem) => {
                    // The other threads would say the same, or nearly.
                    self.refuse(section, problem);
                    return;
                }
            }
        }
    }

    /// Commands of the device that the longest read or write of a job takes.
    fn parts(&self, work: &DirectedWork) -> u32 {
        let [read, write, _] = &work.flows;
        let sizes = [read, write].into_iter().flatten();
        let longest = sizes.map(|flow| flow.sizes.max).max().unwrap_or(1);
        let most = (self.device.max_transfer / self.device.lba_bytes).max(1);
        longest
            .div_ceil(u32::try_from(most).unwrap_or(u32::MAX))
            .max(1)
    }

    /// Says why a job cannot be run; of an option that several jobs have from one place, once.
    fn refuse(&mut self, section: &'a Section, problem: Problem) {
        self.refused.push(&section.name);
        if !self.errors.contains(&problem) {
            self.errors.push(problem);
        }
    }

    /// The threads whose end a job waits for: those of an earlier job.
    fn waits_for(&self, section: &Section) -> Result<Range<JobId>, Problem> {
        let options = &section.options;
        let Some(name) = &options.wait_for else {
            return Ok(0..0);
        };
        let wrong = |what: String, valid: &str| {
            let origin = options.place(&["wait_for"], &section.origin);
            Err(origin.problem("wait_for", what, valid))
        };
        if *name == section.name {
            return wrong(format!("{name}: a job cannot wait for itself"), "");
        }
        let of_name = || self.plan.jobs.iter().filter(|job| job.name == *name);
        let (Some(first), Some(last)) = (of_name().next(), of_name().next_back()) else {
            if self.refused.contains(&name.as_str()) {
                return Ok(0..0);
            }
            let what = format!("no job before this one has the name {name}");
            return wrong(what, "the name of an earlier job");
        };
        if first.section != last.section {
            return wrong(
                format!("several jobs have the name {name}"),
                "a name that one job has",
            );
        }
        Ok(first.number..last.number + 1)
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
    ) -> Result<JobSpec<DirectedWork>, Problem> {
        let options = &section.options;
        let is_of_blocks = self.is_of_blocks(section)?;
        if is_of_blocks {
            self.check_blocks(section)?;
        }
        let style = self.style(section)?;
        let (zones, blocks, flows, mut stop);
        if is_of_blocks {
            flows = self.flows(section, style, None)?;
            let (range, end) = self.blocks(section, thread, &flows)?;
            (zones, blocks, stop) = (0..0, Some(range), end);
        } else {
            zones = self.zones(section, thread)?;
            flows = self.flows(section, style, Some(thread))?;
            (blocks, stop) = (None, self.end(section, &zones)?);
        }
        let zones_count = u64::from(zones.end - zones.start);
        self.check_depth(section, thread);
        self.check_latencies(section, thread);
        let lbas = match &blocks {
            Some(range) => range.lbas,
            None => zones_count * self.device.zoned.zone_size_lbas,
        };
        let pattern = pattern(section, lbas * self.device.lba_bytes);
        let (low, high) = options.startdelay;
        let spread = Rng::new(self.seed, u64::from(number) | 1 << 40).below(high - low + 1);
        let out_of_step = self.out_of_step((thread, number), &flows);
        let mut work = DirectedWork {
            zones,
            flows,
            read_percent: options.rwmixread,
            pattern,
            style,
            reads_beyond_write_pointer: options.read_beyond_wp,
            open_limit: options.job_max_open_zones,
            early_reset: self.early_reset(section, zones_count),
            repeats: Self::repeats(section),
            replay: None,
            blocks,
            hole_lbas: self.hole_lbas(section)?,
            placements: self.placements(section)?,
        };
        self.replay(section, thread, &mut work)?;
        let verify = self.verify(section, (thread, number), &mut work, &mut stop)?;
        Ok(JobSpec {
            verify,
            contents: Some(options.contents.clone()),
            namespace: self.plan.namespace,
            queue_depth: if options.is_synchronous() {
                1
            } else {
                options.iodepth
            },
            start: Nanos(low + spread).saturating_add(out_of_step),
            tolerates: options.tolerates,
            latency: Self::latency_goals(section)?,
            steady: Self::steady_goal(section)?,
            ramp: Nanos(options.ramp_time),
            stop,
            ending: Ending::AtLastCompletion,
            think: (options.thinktime > 0).then_some(Think {
                time: Nanos(options.thinktime),
                after_ops: options.thinktime_blocks,
                after_time: options.thinktime_iotime.map(Nanos),
            }),
            syncs: Syncs {
                every_writes: [options.fsync, options.fdatasync],
                at_end: options.end_fsync,
            },
            recording: Recording {
                issued: self.tracing(section)?,
                ..shape::recording(options)
            },
            ..JobSpec::new(section.name.clone(), work)
        })
    }

    /// The zones of a thread: whole ones within offset and size.
    fn zones(&mut self, section: &Section, thread: u32) -> Result<Range<u32>, Problem> {
        let options = &section.options;
        let device = &self.device;
        let (zone, all) = (device.zone_bytes(), device.bytes());
        if options.zone_skip > 0 {
            let origin = options.place(&["zoneskip"], &section.origin);
            let what = "is for zonemode=strided";
            let valid = "0 with zonemode=zbd; rw=write:N leaves out N bytes between operations";
            return Err(origin.problem("zoneskip", what, valid));
        }
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
        let size = options.size.filter(|_| !options.fill_device);
        let size = size.map_or(all - offset, |size| device.resolve(size));
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
}
