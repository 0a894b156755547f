//! What a drive for Python is made of.

use pyo3::prelude::*;
use zonelab_device::{
    Buf, Command, Completion as Completed, Lba, NamespaceId, Nanos, QueueId, Tag, ZoneId,
};
use zonelab_nvme::Status;
use zonelab_ssd::Drive as Model;
use zonelab_ssd::config::DataStore;
use zonelab_ssd::{DriveModel, FaultTarget};

use crate::commands::{Completion, Kind};
use crate::errors;
use crate::frame::{Columns, Frame};
use crate::policies::Raised;

/// A command that was submitted and has not completed.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    tag: u64,
    kind: Kind,
    lba: u64,
    nlb: u32,
    submitted: Nanos,
}

/// A command that has completed.
#[derive(Debug)]
pub(super) struct Done {
    of: InFlight,
    at: Nanos,
    status: Status,
    result: u64,
    data: Option<Buf>,
}

/// Where a command goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) nsid: u32,
    pub(super) lba: Option<u64>,
    pub(super) zone: Option<u32>,
    pub(super) offset: Option<u64>,
}

/// The drive, what is under way, and what has completed.
pub(super) struct State {
    pub(super) drive: Model,
    /// By what commands are called on the drive.
    commands: Vec<Option<InFlight>>,
    unused: Vec<u32>,
    /// What has completed and has not been collected.
    pub(super) done: Vec<Done>,
    next_tag: u64,
    raised: Raised,
    has_policies: bool,
    /// The error of a policy has been raised.
    is_told: bool,
    scratch: Vec<Completed>,
}

impl State {
    pub(super) fn new(drive: Model, raised: Raised, has_policies: bool) -> Self {
        Self {
            drive,
            commands: Vec::new(),
            unused: Vec::new(),
            done: Vec::new(),
            next_tag: 0,
            raised,
            has_policies,
            is_told: false,
            scratch: Vec::new(),
        }
    }

    pub(super) fn lba_bytes(&self) -> u32 {
        self.drive.config().lba_bytes
    }

    pub(super) fn in_flight(&self) -> usize {
        self.commands.len() - self.unused.len()
    }

    /// What the next command without a tag is called.
    pub(super) const fn next_tag(&self) -> u64 {
        self.next_tag
    }

    pub(super) fn take_done(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }

    /// What a policy has raised, or gave as an answer that is none.
    pub(super) fn check_policies(&mut self) -> PyResult<()> {
        if !self.has_policies {
            return Ok(());
        }
        if let Some(error) = self.raised.take() {
            self.is_told = true;
            return Err(error);
        }
        match self.drive.policy_error() {
            Some(error) if !self.is_told => {
                self.is_told = true;
                Err(errors::policy(error))
            }
            _ => Ok(()),
        }
    }

    /// Moves on to a time, or not.
    pub(super) fn go_to(&mut self, at: Option<Nanos>) -> PyResult<()> {
        match at {
            Some(at) => self.advance(Some(at)),
            None => Ok(()),
        }
    }

    /// Runs what is due by `to`, or everything. With policies it stops where one fails.
    pub(super) fn advance(&mut self, to: Option<Nanos>) -> PyResult<()> {
        let now = self.drive.now();
        if let Some(to) = to
            && to < now
        {
            return Err(errors::usage(format!(
                "time does not go back from {now} to {to}"
            )));
        }
        match to {
            Some(to) if !self.has_policies => self.step(to),
            _ => {
                while let Some(at) = self.drive.next_event() {
                    if to.is_some_and(|to| at > to) {
                        break;
                    }
                    self.step(at);
                    self.check_policies()?;
                }
                if let Some(to) = to {
                    self.step(to);
                }
            }
        }
        self.check_policies()
    }

    fn step(&mut self, to: Nanos) {
        let mut completed = std::mem::take(&mut self.scratch);
        self.drive.advance(to, &mut completed);
        for completion in completed.drain(..) {
            let place = completion.tag.0;
            let of = self.commands.get_mut(place as usize).and_then(Option::take);
            if let Some(of) = of {
                self.unused.push(place);
                self.done.push(Done {
                    of,
                    at: completion.at,
                    status: completion.status,
                    result: completion.result,
                    data: completion.data,
                });
            }
        }
        self.scratch = completed;
    }

    /// Runs until one thing more has completed, or nothing will.
    pub(super) fn run_to_completion(&mut self) -> PyResult<bool> {
        let before = self.done.len();
        while self.done.len() == before {
            let Some(at) = self.drive.next_event() else {
                return Ok(false);
            };
            self.step(at);
            self.check_policies()?;
        }
        Ok(true)
    }

    /// Runs until a command has completed.
    pub(super) fn wait_for(&mut self, tag: u64) -> PyResult<Done> {
        loop {
            let found = self.done.iter().position(|done| done.of.tag == tag);
            if let Some(at) = found {
                return Ok(self.done.remove(at));
            }
            if !self.run_to_completion()? {
                return Err(errors::device(format!("command {tag} never completes")));
            }
        }
    }

    /// The block that a command goes to.
    fn address(&self, kind: Kind, target: &Target) -> PyResult<u64> {
        let Target {
            nsid,
            lba,
            zone,
            offset,
        } = *target;
        match (lba, zone) {
            (Some(_), Some(_)) => Err(errors::usage("give lba or zone, not both")),
            (Some(_), None) if offset.is_some() => Err(errors::usage(
                "offset is counted from the start of a zone: give zone",
            )),
            (Some(lba), None) => Ok(lba),
            (None, None) if matches!(kind, Kind::Flush | Kind::Report) => Ok(0),
            (None, None) => {
                let name = kind.name();
                Err(errors::usage(format!(
                    "{name}: give where it goes, lba or zone"
                )))
            }
            (None, Some(zone)) => {
                let (name, zones) = (kind.name(), self.zones_of(nsid)?);
                if zone >= zones {
                    return Err(errors::usage(format!(
                        "{name}: zone {zone}: there are {zones}, from 0"
                    )));
                }
                let start = u64::from(zone) * self.drive.config().zones.size_lbas;
                if kind.takes_zone_start() {
                    return match offset {
                        None => Ok(start),
                        Some(_) => Err(errors::usage(format!(
                            "{name} concerns the zone as a whole: it has no offset"
                        ))),
                    };
                }
                let is_written = matches!(kind, Kind::Write | Kind::WriteZeroes);
                let offset = match offset {
                    Some(offset) => offset,
                    None if is_written && nsid == 1 => {
                        self.drive.zones().written_lbas(ZoneId(zone))
                    }
                    None if is_written => {
                        return Err(errors::usage(
                            "a write without offset goes to a write pointer of namespace 1: \
                             give lba or offset",
                        ));
                    }
                    None => 0,
                };
                Ok(start.saturating_add(offset))
            }
        }
    }

    fn zones_of(&self, nsid: u32) -> PyResult<u32> {
        let namespace = self.drive.info().namespace(NamespaceId(nsid));
        let Some(namespace) = namespace else {
            let count = self.drive.info().namespaces.len();
            return Err(errors::usage(format!(
                "namespace {nsid}: there are {count}, from 1"
            )));
        };
        let zoned = namespace.zoned.as_ref();
        zoned
            .map(|zoned| zoned.zones)
            .ok_or_else(|| errors::usage(format!("namespace {nsid} has no zones")))
    }

    /// Submits a command now.
    pub(super) fn submit(
        &mut self,
        kind: Kind,
        target: &Target,
        (nlb, report_bytes): (u32, Option<u64>),
        data: Option<Buf>,
        tag: Option<u64>,
    ) -> PyResult<u64> {
        let lba = self.address(kind, target)?;
        let tag = tag.unwrap_or(self.next_tag);
        self.next_tag = self.next_tag.max(tag.saturating_add(1));
        let data = data.or_else(|| self.own_buffer(kind, nlb, report_bytes));
        let now = self.drive.now();
        let command = Command::on(NamespaceId(target.nsid), kind.op(Lba(lba), nlb));
        let place = self.unused.pop().unwrap_or_else(|| {
            self.commands.push(None);
            (self.commands.len() - 1) as u32
        });
        let taken = self
            .drive
            .submit(now, QueueId(0), Tag(place), command, data);
        if let Err(rejected) = taken {
            self.unused.push(place);
            return Err(errors::device(rejected));
        }
        self.commands[place as usize] = Some(InFlight {
            tag,
            kind,
            lba,
            nlb,
            submitted: now,
        });
        self.check_policies()?;
        Ok(tag)
    }

    /// A buffer for what the drive gives.
    fn own_buffer(&self, kind: Kind, nlb: u32, report_bytes: Option<u64>) -> Option<Buf> {
        let config = self.drive.config();
        let bytes = match kind {
            Kind::Read if config.data == DataStore::Memory => {
                u64::from(nlb) * u64::from(config.lba_bytes)
            }
            Kind::Report => {
                let all = 64 * (u64::from(self.drive.zones().count()) + 1);
                report_bytes.unwrap_or(all).min(all)
            }
            _ => return None,
        };
        // No more than a command can move; the drive says so of more.
        let most = u64::from(self.drive.info().max_transfer_bytes).min(1 << 30);
        Some(Buf::zeroed(bytes.min(most) as usize))
    }

    /// Power is lost now.
    pub(super) fn power_cut(&mut self, off: Nanos, seed: u64) -> PyResult<(Vec<u64>, u64)> {
        let now = self.drive.now();
        let loss = self.drive.power_cut(now, off, seed);
        // What was posted before is still there.
        self.step(now);
        let places = 0..self.commands.len() as u32;
        let lost: Vec<u64> = places
            .filter_map(|place| {
                let of = self.commands[place as usize].take()?;
                self.unused.push(place);
                Some(of.tag)
            })
            .collect();
        self.check_policies()?;
        Ok((lost, loss.ready_at.0))
    }
}

impl Done {
    pub(super) fn completion(self, lba_bytes: u32) -> Completion {
        Completion {
            tag: self.of.tag,
            op: self.of.kind.name(),
            lba: self.of.lba,
            nbytes: u64::from(self.of.nlb) * u64::from(lba_bytes),
            submitted: self.of.submitted,
            at: self.at,
            status: self.status,
            result: self.result,
            data: self.data,
        }
    }

    /// Completions as a table.
    pub(super) fn frame(done: &[Self], lba_bytes: u32) -> PyResult<Frame> {
        let nbytes = |done: &Self| u64::from(done.of.nlb) * u64::from(lba_bytes);
        // An append says where its data went.
        let lba = |done: &Self| match done.of.kind == Kind::Append && done.status.is_success() {
            true => done.result,
            false => done.of.lba,
        };
        let latency = |done: &Self| done.at.saturating_sub(done.of.submitted).0;
        Columns::default()
            .count("tag", done.iter().map(|done| done.of.tag))
            .text("op", done.iter().map(|done| done.of.kind.name()))
            .count("lba", done.iter().map(lba))
            .count("nbytes", done.iter().map(nbytes))
            .count("submitted_ns", done.iter().map(|done| done.of.submitted.0))
            .count("completed_ns", done.iter().map(|done| done.at.0))
            .count("latency_ns", done.iter().map(latency))
            .count("status", done.iter().map(|done| u64::from(done.status.0)))
            .frame()
    }
}
