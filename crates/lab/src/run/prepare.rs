//! Making the zones of a device those of a new drive, for a point.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use zonelab_device::{
    Command, Completion, DeviceInfo, Lba, NamespaceId, NamespaceInfo, Nanos, Op, QueuePair, Tag,
    ZonedInfo,
};
use zonelab_host::workload::contents::Contents;
use zonelab_host::workload::{JobSpec, Shared, Work, WorkloadJob, WriteWork};
use zonelab_host::{Clock as _, Job, NextWake, Rng};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};

use super::Point;
use crate::device::{Site, report_zones, run_alone, runs_of};

/// Commands in flight while zones are filled.
const FILL_DEPTH: u32 = 8;

/// Bytes of a command that fills a zone, if the device takes as much.
const FILL_BYTES: u32 = 256 << 10;

/// What is done to zones before points, or was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preparing {
    /// Zones that are reset, at most: those that are empty already are not.
    pub resets: u64,
    /// Bytes that are written to fill zones.
    pub fill_bytes: u64,
}

impl Preparing {
    /// What is done before each of `points` when they run one after another on a device
    /// from outside.
    pub fn before_each<'p>(
        points: impl IntoIterator<Item = &'p Point>,
        info: &DeviceInfo,
    ) -> Vec<Self> {
        let zone_bytes = |nsid| {
            let namespace = info.namespace(nsid)?;
            Some(namespace.zoned?.zone_capacity_lbas * u64::from(namespace.lba_bytes))
        };
        let mut preparation = Preparation::default();
        let before = |point: &Point| {
            let full = point.full_on(info);
            let mut ahead = Self::default();
            for (nsid, zone) in point.zones_on(info) {
                let wanted_full = full.contains(&(nsid, zone));
                if wanted_full && preparation.filled.contains(&(nsid, zone)) {
                    continue;
                }
                preparation.filled.remove(&(nsid, zone));
                ahead.resets += 1;
                if wanted_full {
                    ahead.fill_bytes += zone_bytes(nsid).unwrap_or(0);
                    preparation.filled.insert((nsid, zone));
                }
            }
            preparation.changed(&point.changed_on(info));
            ahead
        };
        points.into_iter().map(before).collect()
    }
}

impl std::iter::Sum for Preparing {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |sum, one| Self {
            resets: sum.resets + one.resets,
            fill_bytes: sum.fill_bytes + one.fill_bytes,
        })
    }
}

/// How long it took to prepare zones so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// What was done.
    pub done: Preparing,
    /// How long resets took.
    pub resetting: Nanos,
    /// How long it took to fill zones.
    pub filling: Nanos,
}

impl Prepared {
    /// How long it takes to do what is ahead, by that; `None`: zones are to be filled, and
    /// none has been yet.
    #[must_use]
    pub fn estimate(&self, ahead: Preparing) -> Option<Nanos> {
        let part = |took: Nanos, done: u64, ahead: u64| match (done, ahead) {
            (_, 0) => Some(0),
            (0, _) => None,
            _ => u64::try_from(u128::from(took.0) * u128::from(ahead) / u128::from(done)).ok(),
        };
        let filling = part(self.filling, self.done.fill_bytes, ahead.fill_bytes)?;
        // Zones that are empty need none, and a few resets take no time that matters.
        let resetting = part(self.resetting, self.done.resets, ahead.resets).unwrap_or(0);
        Some(Nanos(filling.saturating_add(resetting)))
    }
}

/// What is known of the zones of a device from the points before.
#[derive(Default)]
pub(super) struct Preparation {
    /// How long it took so far.
    pub(super) prepared: Prepared,
    /// Zones that were filled for a point, and that no job has changed since.
    filled: BTreeSet<(NamespaceId, u32)>,
}

impl Preparation {
    /// Makes zones what they are on a new drive: those of `full` written to their capacity,
    /// and the others of `all` empty.
    ///
    /// # Errors
    /// A command failed, or a zone can neither be reset nor written: a text that says so.
    pub(super) fn prepare<S: Site>(
        &mut self,
        site: &mut S,
        all: &BTreeSet<(NamespaceId, u32)>,
        full: &BTreeSet<(NamespaceId, u32)>,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<(), String> {
        let mut of_namespaces: BTreeMap<NamespaceId, Vec<u32>> = BTreeMap::new();
        for &(nsid, zone) in all {
            of_namespaces.entry(nsid).or_default().push(zone);
        }
        for (nsid, zones) in of_namespaces {
            let namespace = site.info().namespace(nsid).cloned();
            let Some((namespace, zoned)) = namespace.and_then(|of| Some((of.clone(), of.zoned?)))
            else {
                continue;
            };
            let reported = report_zones(site, nsid)?;
            let (mut reset, mut fill) = (Vec::new(), Vec::new());
            for zone in zones {
                let wanted_full = full.contains(&(nsid, zone));
                let state = reported.get(zone as usize).map(|zone| zone.state);
                if matches!(state, Some(ZoneState::READ_ONLY | ZoneState::OFFLINE)) {
                    return Err(format!(
                        "zone {zone} of namespace {} is read only or offline: choose others",
                        nsid.0
                    ));
                }
                if wanted_full && self.filled.contains(&(nsid, zone)) {
                    continue;
                }
                self.filled.remove(&(nsid, zone));
                if state != Some(ZoneState::EMPTY) {
                    reset.push(zone);
                }
                if wanted_full {
                    fill.push(zone);
                }
            }
            let clock = site.real_clock();
            let (began, resets) = (clock.now(), reset.len() as u64);
            self.reset(site, nsid, zoned, reset, interrupt)?;
            let reset_at = clock.now();
            let bytes = zoned.zone_capacity_lbas * u64::from(namespace.lba_bytes);
            let fill_bytes = bytes * fill.len() as u64;
            for zones in runs_of(&fill) {
                // No zone has the highest number.
                let range = *zones.start()..zones.end() + 1;
                fill_zones(site, nsid, &namespace, range, interrupt)?;
                self.filled.extend(zones.map(|zone| (nsid, zone)));
            }
            let prepared = &mut self.prepared;
            prepared.resetting += reset_at.saturating_sub(began);
            prepared.filling += clock.now().saturating_sub(reset_at);
            let done = [prepared.done, Preparing { resets, fill_bytes }];
            prepared.done = done.into_iter().sum();
        }
        Ok(())
    }

    /// Jobs may change these zones.
    pub(super) fn changed(&mut self, zones: &BTreeSet<(NamespaceId, u32)>) {
        self.filled.retain(|zone| !zones.contains(zone));
    }

    fn reset<S: Site>(
        &self,
        site: &mut S,
        nsid: NamespaceId,
        zoned: ZonedInfo,
        zones: Vec<u32>,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<(), String> {
        if zones.is_empty() {
            return Ok(());
        }
        let mut job = Resets {
            nsid,
            zoned,
            zones,
            done: 0,
            is_under_way: false,
            failed: None,
        };
        run_alone(site, 1, &mut job, interrupt)?;
        match job.failed {
            Some((zone, status)) => Err(format!(
                "resetting zone {zone} of namespace {} failed: {status}",
                nsid.0
            )),
            None if job.done < job.zones.len() => Err("resetting zones did not end".to_owned()),
            None => Ok(()),
        }
    }
}

/// Writes zones that are empty to their capacity.
fn fill_zones<S: Site>(
    site: &mut S,
    nsid: NamespaceId,
    namespace: &NamespaceInfo,
    zones: Range<u32>,
    interrupt: &Arc<AtomicBool>,
) -> Result<(), String> {
    let info = site.info().clone();
    let most = info.max_append_bytes.min(info.max_transfer_bytes);
    let block_lbas = (FILL_BYTES.min(most) / namespace.lba_bytes).max(1);
    // Appends may arrive in any order.
    let work = Work::Write(WriteWork {
        zones: zones.clone(),
        block_lbas,
        append: true,
        open_zones: 1,
        repeat: false,
        reset_first: false,
        open_first: false,
        command_lbas: None,
    });
    let spec = JobSpec {
        namespace: nsid,
        queue_depth: FILL_DEPTH,
        contents: Some(Contents::default()),
        ..JobSpec::new("fill", work)
    };
    let shared = Shared {
        interrupt: Some(Arc::clone(interrupt)),
        ..Shared::default()
    };
    let mut job = WorkloadJob::new(spec, &info, Rng::new(0, 0), shared);
    run_alone(site, FILL_DEPTH, &mut job, interrupt)?;
    let has_ended = job.has_ended();
    let (first, last) = (zones.start, zones.end - 1);
    let of = format!("filling zones {first} to {last} of namespace {}", nsid.0);
    match job.into_result().first_error {
        Some(failed) => Err(format!("{of}: failed: {failed}")),
        None if !has_ended => Err(format!("{of} did not end")),
        None => Ok(()),
    }
}

/// Resets zones, one after another.
struct Resets {
    nsid: NamespaceId,
    zoned: ZonedInfo,
    zones: Vec<u32>,
    done: usize,
    is_under_way: bool,
    failed: Option<(u32, Status)>,
}

impl Job for Resets {
    fn step(
        &mut self,
        _now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        if let Some(completion) = done.first() {
            self.is_under_way = false;
            if !completion.status.is_success() {
                self.failed = Some((self.zones[self.done], completion.status));
                return NextWake::Finished;
            }
            self.done += 1;
        }
        if self.is_under_way {
            return NextWake::Completion;
        }
        let Some(&zone) = self.zones.get(self.done) else {
            return NextWake::Finished;
        };
        let op = Op::ZoneSend {
            slba: Lba(u64::from(zone) * self.zoned.zone_size_lbas),
            action: ZoneSendAction::RESET,
            select_all: false,
        };
        let nsid = self.nsid;
        if queue.submit(Command::on(nsid, op), Tag(0), None).is_err() {
            // It holds a command: the device is gone.
            self.failed = Some((zone, Status::HOST_PATHING_ERROR));
            return NextWake::Finished;
        }
        self.is_under_way = true;
        queue.ring();
        NextWake::Completion
    }
}
