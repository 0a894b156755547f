//! Workloads that are Python objects, on an emulated drive in virtual time.
//!
//! A workload is a generator: it yields commands and is sent what completed. It runs as a
//! job of the reactor like every other, on a core of its own, and takes no time.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use zonelab_device::{
    Command, Completion as Completed, Device, DeviceInfo, DeviceQueue, Lba, Modelled, NamespaceId,
    Nanos, QueuePair, Tag,
};
use zonelab_ftl::{FormatSettings, FtlDevice, FtlSettings, Start};
use zonelab_host::{CoreId, Job, NextWake, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_lab::policies::Policies as Makers;
use zonelab_sim::{BlockCosts, Emulated, HostCosts};
use zonelab_ssd::Drive as Model;
use zonelab_ssd::config::{DataStore, DriveConfig};

use crate::commands::{Completion, Kind, blocks};
use crate::errors;
use crate::frame::{Columns, Frame};
use crate::policies::{Policies, Raised, shown};
use crate::profile::{Profile, overrides};

/// Identity of what is formatted.
const UUID: u128 = 0x7a6f_6e65_6c61_6200_0000_0000_0000_0001;
/// Commands that the queue pair of upkeep holds.
const UPKEEP_DEPTH: u32 = 256;
/// Fewest commands that a queue pair below one of the layer holds.
const LEAST_DEPTH: u32 = 64;

/// A command of a workload that is under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    number: u64,
    kind: Kind,
    lba: u64,
    nlb: u32,
    submitted: Nanos,
}

/// What is kept of a command that has completed.
#[derive(Clone, Copy, Debug)]
struct Record {
    of: UnderWay,
    at: Nanos,
    status: u16,
}

/// A workload.
struct PyJob {
    nsid: NamespaceId,
    /// The `send` of its generator.
    send: Py<PyAny>,
    /// What it waits for; None: it has not begun.
    waits: Option<NextWake>,
    lba_bytes: u32,
    zone_lbas: u64,
    depth: usize,
    under_way: Vec<Option<UnderWay>>,
    unused: Vec<u32>,
    submitted: u64,
    records: Vec<Record>,
    raised: Raised,
}

impl Job for PyJob {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completed>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        if self.raised.is_some() {
            return NextWake::Finished;
        }
        let completed: Vec<Completion> = done
            .drain(..)
            .filter_map(|completion| self.take(completion))
            .collect();
        // Jobs may be woken for what does not concern them.
        let is_due = match self.waits {
            None => true,
            Some(NextWake::At(at)) => now >= at || !completed.is_empty(),
            Some(_) => !completed.is_empty(),
        };
        if let (Some(waits), false) = (self.waits, is_due) {
            return waits;
        }
        let next = Python::attach(|py| self.go_on(py, now, completed, queue));
        let next = next.unwrap_or_else(|error| {
            self.raised.keep(error);
            NextWake::Finished
        });
        self.waits = Some(next);
        next
    }
}

impl PyJob {
    fn take(&mut self, completion: Completed) -> Option<Completion> {
        let place = completion.tag.0;
        let of = self.under_way.get_mut(place as usize)?.take()?;
        self.unused.push(place);
        self.records.push(Record {
            of,
            at: completion.at,
            status: completion.status.0,
        });
        Some(Completion {
            tag: of.number,
            op: of.kind.name(),
            lba: of.lba,
            nbytes: u64::from(of.nlb) * u64::from(self.lba_bytes),
            submitted: of.submitted,
            at: completion.at,
            status: completion.status,
            result: completion.result,
            data: None,
        })
    }

    fn in_flight(&self) -> usize {
        self.under_way.len() - self.unused.len()
    }

    /// Lets the generator go on until it waits for something.
    fn go_on(
        &mut self,
        py: Python<'_>,
        now: Nanos,
        completed: Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> PyResult<NextWake> {
        let sent = match self.waits {
            Some(_) => PyList::new(py, completed)?.into_any(),
            // A generator that has not begun takes nothing else.
            None => py.None().into_bound(py),
        };
        let yielded = match self.send.bind(py).call1((sent,)) {
            Ok(yielded) => yielded,
            Err(end) if end.is_instance_of::<pyo3::exceptions::PyStopIteration>(py) => {
                return Ok(NextWake::Finished);
            }
            Err(error) => return Err(error),
        };
        // A time to wait for, or commands.
        if let Ok(at) = yielded.extract::<u64>() {
            let at = Nanos(at);
            if at <= now {
                return Err(errors::usage(format!(
                    "the workload waits for {}, and it is {} already",
                    at.0, now.0
                )));
            }
            return Ok(NextWake::At(at));
        }
        if yielded.is_instance_of::<PyTuple>() {
            self.submit(&yielded, queue)?;
        } else if !yielded.is_none() {
            for command in yielded.try_iter()? {
                self.submit(&command?, queue)?;
            }
        }
        queue.ring();
        match self.in_flight() {
            0 => Err(errors::usage(
                "the workload yields no command, and none is under way that it could wait for",
            )),
            _ => Ok(NextWake::Completion),
        }
    }

    /// Submits `(operation, block, bytes)`.
    fn submit(&mut self, command: &Bound<'_, PyAny>, queue: &mut dyn QueuePair) -> PyResult<()> {
        let wrong = || {
            errors::usage(format!(
                "a workload yields {}: give (\"read\", lba, nbytes), (\"reset\", lba), \
                 (\"flush\",), a list of such, or a time in nanoseconds",
                shown(command)
            ))
        };
        let tuple = command.cast::<PyTuple>().map_err(|_| wrong())?;
        let number = |at: usize| -> PyResult<u64> {
            tuple
                .get_item(at)
                .and_then(|item| item.extract())
                .map_err(|_| wrong())
        };
        let name = tuple.get_item(0).map_err(|_| wrong())?;
        let kind = Kind::named(name.cast::<PyString>().map_err(|_| wrong())?.to_str()?)?;
        let expected = match kind {
            Kind::Flush => 1,
            _ if kind.has_blocks() => 3,
            _ => 2,
        };
        if tuple.len() != expected || kind == Kind::Report {
            return Err(wrong());
        }
        let lba = match expected {
            1 => 0,
            _ => number(1)?,
        };
        // What concerns a zone as a whole may name any of its blocks.
        let lba = match kind.takes_zone_start() && self.zone_lbas > 0 {
            true => lba - lba % self.zone_lbas,
            false => lba,
        };
        let nlb = match expected {
            3 => blocks(number(2)?, self.lba_bytes)?,
            _ => 0,
        };
        if self.in_flight() >= self.depth {
            return Err(errors::usage(format!(
                "the workload has {} commands under way, which is the depth of its queue",
                self.depth
            )));
        }
        let place = self.unused.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            (self.under_way.len() - 1) as u32
        });
        let command = Command::on(self.nsid, kind.op(Lba(lba), nlb));
        let taken = queue.submit(command, Tag(place), None);
        taken.map_err(errors::device)?;
        self.under_way[place as usize] = Some(UnderWay {
            number: self.submitted,
            kind,
            lba,
            nlb,
            submitted: queue.now(),
        });
        self.submitted += 1;
        Ok(())
    }
}

/// What a run is told.
struct Setting {
    config: DriveConfig,
    makers: Makers,
    through_ftl: bool,
    seed: u64,
    depth: u32,
    full_zones: u32,
    nsid: Option<u32>,
}

/// Runs workloads on a drive until all have ended, and gives what completed.
///
/// Each of `workloads` is a generator, or a function that makes one, which is then called
/// with what is known of the drive: a dictionary with `lba_bytes`, `size_lbas`, and
/// `zones`, `zone_lbas` and `zone_capacity_lbas` where there are zones. It yields
/// commands, `(op, lba, nbytes)` or a list of them, and is sent the list of completions
/// when there are some; or a time to wait for, at most until something completes. With
/// `ftl`, workloads see blocks without zones through the flash translation layer.
/// `full_zones` zones are full before. `nsid` is the namespace that workloads see; a drive that
/// has one needs none.
///
/// Returns the completions as a table, and the totals of the drive.
#[pyfunction]
#[pyo3(signature = (
    profile, workloads, *, set = None, policies = None, ftl = false, depth = 256, seed = 1,
    full_zones = 0, nsid = None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    profile: &Bound<'py, PyAny>,
    workloads: &Bound<'py, PyAny>,
    set: Option<&Bound<'py, PyAny>>,
    policies: Option<&Bound<'py, Policies>>,
    ftl: bool,
    depth: u32,
    seed: u64,
    full_zones: u32,
    nsid: Option<u32>,
) -> PyResult<(Frame, Bound<'py, PyAny>)> {
    let profile = Profile::from_any(profile, &overrides(set)?)?;
    let raised = Raised::default();
    let makers = policies.map(|policies| policies.get().makers(py, &raised));
    let setting = Setting {
        config: profile.config,
        makers: makers.unwrap_or_default(),
        through_ftl: ftl,
        seed,
        depth: depth.max(1),
        full_zones,
        nsid,
    };
    let workloads: Vec<Py<PyAny>> = match workloads.getattr_opt("send")? {
        Some(_) => vec![workloads.clone().unbind()],
        None if workloads.is_callable() => vec![workloads.clone().unbind()],
        None => workloads
            .try_iter()?
            .map(|workload| workload.map(Bound::unbind))
            .collect::<PyResult<_>>()?,
    };
    let ran = py.detach(|| run(&setting, workloads, &raised));
    // An exception of a callback, as it is; what followed from it is of no interest.
    if let Some(error) = raised.take() {
        return Err(error);
    }
    let (records, drive) = ran?;
    let nbytes = |record: &Record| u64::from(record.of.nlb) * u64::from(setting.config.lba_bytes);
    let all = || records.iter().flat_map(|(_, records)| records);
    let numbers = records
        .iter()
        .flat_map(|(n, records)| records.iter().map(|_| *n));
    let frame = Columns::default()
        .count("workload", numbers)
        .count("tag", all().map(|record| record.of.number))
        .text("op", all().map(|record| record.of.kind.name()))
        .count("lba", all().map(|record| record.of.lba))
        .count("nbytes", all().map(nbytes))
        .count("submitted_ns", all().map(|record| record.of.submitted.0))
        .count("completed_ns", all().map(|record| record.at.0))
        .count(
            "latency_ns",
            all().map(|record| record.at.saturating_sub(record.of.submitted).0),
        )
        .count("status", all().map(|record| u64::from(record.status)))
        .frame()?;
    Ok((frame, crate::drive::totals(py, &drive)?))
}

type Ran = (Vec<(u64, Vec<Record>)>, Model);

/// Runs in this thread, without the interpreter's lock but for callbacks.
fn run(setting: &Setting, workloads: Vec<Py<PyAny>>, raised: &Raised) -> PyResult<Ran> {
    let mut drive = Model::new(&setting.config);
    setting.makers.install(&mut drive).map_err(errors::policy)?;
    if setting.full_zones > 0 {
        let zones = 0..setting.full_zones;
        let control = zonelab_ssd::Control::PreconditionFull { zones };
        drive
            .control(Nanos::ZERO, &control)
            .map_err(errors::usage)?;
    }
    let mut device = Emulated::new(drive);
    if let Some(make) = &setting.makers.scheduler {
        let scheduler = make(device.info());
        device = device.behind_own(scheduler, BlockCosts::default());
    }
    let drive = device.clone();
    let records = match setting.through_ftl {
        false => {
            let open = |_: &mut Emulated, n: u64| {
                let rng = Rng::new(setting.seed, n);
                Ok(drive.open_queue(setting.depth, HostCosts::FREE, rng))
            };
            let info = device.info().clone();
            run_on(
                device,
                (&info, Nanos::ZERO),
                open,
                setting,
                workloads,
                raised,
            )?
        }
        true => {
            let (layer, at) = mount(setting, &device)?;
            let open = |layer: &mut FtlDevice<Emulated>, n: u64| {
                let rng = Rng::new(setting.seed, n);
                let depth = setting.depth.max(LEAST_DEPTH);
                let below = drive.open_queue(depth, HostCosts::FREE, rng);
                layer.queue(below, setting.depth).map_err(errors::usage)
            };
            let info = layer.info().clone();
            run_on(layer, (&info, at), open, setting, workloads, raised)?
        }
    };
    let mut ended = Model::new(&setting.config);
    drive.with_drive(|drive| std::mem::swap(drive, &mut ended));
    if raised.is_some() {
        return Ok((records, ended));
    }
    match ended.policy_error() {
        Some(error) => Err(errors::policy(error)),
        None => Ok((records, ended)),
    }
}

/// The translation layer on a drive that it has just formatted, and when it is ready.
fn mount(setting: &Setting, device: &Emulated) -> PyResult<(FtlDevice<Emulated>, Nanos)> {
    let settings = FtlSettings {
        nsid: errors::chosen(device.info(), setting.nsid)?,
        own_victims: setting.makers.victims.clone(),
        keeps_data: setting.config.data == DataStore::Memory,
        seed: setting.seed,
        ..FtlSettings::default()
    };
    let queue = device.open_queue(UPKEEP_DEPTH, HostCosts::FREE, Rng::new(setting.seed, 0));
    let start = Start::Format(FormatSettings::new(UUID));
    let clock = VirtualClock::default();
    let started = FtlDevice::start(device.clone(), clock, queue, start, settings);
    started.map_err(errors::usage)
}

/// Runs workloads on a device, whose queues `open` opens.
fn run_on<D: Device + Modelled>(
    mut device: D,
    (info, at): (&DeviceInfo, Nanos),
    mut open: impl FnMut(&mut D, u64) -> PyResult<D::Queue>,
    setting: &Setting,
    workloads: Vec<Py<PyAny>>,
    raised: &Raised,
) -> PyResult<Vec<(u64, Vec<Record>)>>
where
    D::Queue: DeviceQueue,
{
    let mut jobs = Vec::with_capacity(workloads.len());
    let mut queues = Vec::with_capacity(workloads.len());
    for (n, workload) in (1..).zip(workloads) {
        queues.push(open(&mut device, n)?);
        jobs.push(job(&workload, info, setting, raised)?);
    }
    let clock = VirtualClock::starting_at(at);
    let mut reactor = Reactor::new(clock, device, StopSignal::default());
    for ((n, job), queue) in (0..).zip(&mut jobs).zip(queues) {
        reactor.add(job, queue, CoreId(n), at);
    }
    let end = reactor.run();
    if end.stuck_jobs > 0 && !raised.is_some() {
        return Err(errors::device(format!(
            "{} workloads wait for completions that never come",
            end.stuck_jobs
        )));
    }
    let records = jobs.into_iter().map(|job| job.records);
    Ok((0..).zip(records).collect())
}

fn job(
    workload: &Py<PyAny>,
    info: &DeviceInfo,
    setting: &Setting,
    raised: &Raised,
) -> PyResult<PyJob> {
    // The layer shows one, whatever it lies on.
    let named = setting.nsid.filter(|_| !setting.through_ftl);
    let nsid = errors::chosen(info, named)?;
    let Some(namespace) = info.namespace(nsid) else {
        return Err(errors::usage("the drive has no namespace"));
    };
    let send = Python::attach(|py| {
        let workload = workload.bind(py);
        let generator = match workload.getattr_opt("send")? {
            Some(_) => workload.clone(),
            None => {
                let about = pyo3::types::PyDict::new(py);
                about.set_item("lba_bytes", namespace.lba_bytes)?;
                about.set_item("size_lbas", namespace.size_lbas)?;
                if let Some(zoned) = &namespace.zoned {
                    about.set_item("zones", zoned.zones)?;
                    about.set_item("zone_lbas", zoned.zone_size_lbas)?;
                    about.set_item("zone_capacity_lbas", zoned.zone_capacity_lbas)?;
                }
                workload.call1((about,))?
            }
        };
        generator.getattr("send").map(Bound::unbind)
    })?;
    Ok(PyJob {
        nsid,
        send,
        waits: None,
        lba_bytes: namespace.lba_bytes,
        zone_lbas: namespace
            .zoned
            .as_ref()
            .map_or(0, |zoned| zoned.zone_size_lbas),
        depth: setting.depth as usize,
        under_way: Vec::new(),
        unused: Vec::new(),
        submitted: 0,
        records: Vec::new(),
        raised: raised.clone(),
    })
}
