//! What points need of a device that is not emulated here, and what they ask for in vain.

use std::collections::BTreeSet;
use std::ops::Range;

use zonelab_device::{DeviceInfo, NamespaceId, Nanos};
use zonelab_ssd::config::DriveConfig;

use super::specs::Shape;
use super::{Point, RunError};
use crate::experiment::{JobTemplate, StackModel, Via, WorkTemplate};

impl Point {
    /// Whether its jobs fit a device that is not emulated here.
    ///
    /// # Errors
    /// What does not fit: a job, by its name.
    pub fn check_on(&self, info: &DeviceInfo) -> Result<(), RunError> {
        let zoned = info.present().filter(|(nsid, _)| self.is_about(*nsid));
        let zoned = zoned.filter_map(|(_, of)| of.zoned);
        self.has_full_zones(zoned.map(|zoned| u64::from(zoned.zones)).sum())?;
        self.fits(&Shape::of_device(info))
    }

    /// Whether there are the zones that are full at the start, of so many.
    fn has_full_zones(&self, have: u64) -> Result<(), RunError> {
        let full = self.series.full_zones.iter();
        match full.max_by_key(|of| of.end) {
            Some(full) if u64::from(full.end) > have => {
                let last = full.end.saturating_sub(1);
                let of = match self.namespace {
                    Some(nsid) => format!("namespace {}", nsid.0),
                    None => "the drive".to_owned(),
                };
                Err(self.unfit(format!(
                    "full_zones: there is no zone {last}: {of} has {have}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The zones that are full at the start, as an emulated drive counts them: over all
    /// namespaces.
    pub(super) fn full_zones_of(&self, config: &DriveConfig) -> Result<Vec<Range<u32>>, RunError> {
        let full = &self.series.full_zones;
        let Some(nsid) = self.namespace.filter(|_| !full.is_empty()) else {
            return Ok(full.clone());
        };
        let mine = config.zones_of(nsid).unwrap_or_default();
        self.has_full_zones(mine.len() as u64)?;
        let shift = |zones: &Range<u32>| mine.start + zones.start..mine.start + zones.end;
        Ok(full.iter().map(shift).collect())
    }

    /// Lets the point work in this namespace of its device: jobs that name none work there,
    /// and `full_zones` counts its zones.
    ///
    /// # Errors
    /// A job names another.
    pub fn set_namespace(&mut self, nsid: NamespaceId) -> Result<(), RunError> {
        let other = |job: &&JobTemplate| job.namespace.is_some_and(|own| own != nsid);
        if let Some(job) = self.jobs().find(other) {
            let (name, own) = (&job.name, job.nsid().0);
            return Err(self.unfit(format!(
                "job \"{name}\" names namespace {own}, and the run is in namespace {}: leave out \
                 `namespace` of the job, or nsid= of the device",
                nsid.0
            )));
        }
        self.namespace = Some(nsid);
        // Through the flash translation layer jobs see one namespace, whatever it lies on.
        if self.via() != Via::Ftl {
            for job in &mut self.experiment.jobs {
                job.set_namespace(nsid);
            }
        }
        Ok(())
    }

    /// The first of its jobs that names no namespace.
    #[must_use]
    pub fn unnamed_job(&self) -> Option<&str> {
        let mut jobs = self.jobs();
        let unnamed = jobs.find(|job| job.namespace.is_none());
        unnamed.map(|job| job.name.as_str())
    }

    /// Whether the point may be about this namespace.
    fn is_about(&self, nsid: NamespaceId) -> bool {
        self.namespace.is_none_or(|own| own == nsid)
    }

    /// Runs the point on a drive of another profile.
    pub fn set_profile(&mut self, profile: &str) {
        profile.clone_into(&mut self.experiment.profile);
    }

    /// The settings of an emulated drive that the point asks for, `key=value`.
    pub fn drive_settings(&self) -> impl Iterator<Item = String> + '_ {
        let all = self.experiment.drive.iter().chain(&self.series.drive);
        all.map(|set| set.text().to_owned())
    }

    /// What of the modelled host has no meaning in real time, by the keys of the file.
    #[must_use]
    pub fn modelled_costs(&self) -> Vec<String> {
        let host = self.host();
        let mut keys = Vec::new();
        if host.stack != StackModel::default() {
            keys.push("the costs in [host]".to_owned());
        }
        if host.cores.is_some() {
            keys.push("host.cores".to_owned());
        }
        if self.via() != Via::Direct {
            keys.push("host.via".to_owned());
        }
        let own = self.jobs().filter(|job| job.stack.is_some());
        keys.extend(own.map(|job| format!("[job.host] of \"{}\"", job.name)));
        keys
    }

    /// The most threads that run side by side in one of its phases, each of which needs a
    /// queue, and the last job of them.
    #[must_use]
    pub fn threads(&self) -> (u32, &str) {
        let threads = |phase: &Vec<String>| -> u32 {
            let templates = self.templates(phase).into_iter();
            templates.map(|job| job.threads).sum()
        };
        let phases = self.series.phases.iter();
        let most = phases.max_by_key(|phase| threads(phase));
        most.map_or((0, ""), |phase| {
            (threads(phase), phase.last().map_or("", String::as_str))
        })
    }

    /// The greatest queue depth of its jobs, and the job that has it.
    #[must_use]
    pub fn deepest(&self) -> (u32, &str) {
        // Key-value stores take what they get.
        let is_kv = |job: &&JobTemplate| matches!(job.work, WorkTemplate::Kv(_));
        let jobs = self.jobs().filter(|job| !is_kv(job));
        let deepest = jobs.max_by_key(|job| job.queue_depth);
        deepest.map_or((0, ""), |job| (job.queue_depth, &job.name))
    }

    /// The longest that its jobs may take; `None`: that is not known before.
    #[must_use]
    pub fn longest(&self) -> Option<Nanos> {
        let job = |job: &JobTemplate| {
            let measured = job.stop.runtime?;
            Some(job.start.saturating_add(job.ramp).saturating_add(measured))
        };
        let phase = |names: &Vec<String>| {
            let jobs = self.templates(names);
            // One that ends the run bounds the others.
            let enders = jobs.iter().filter(|job| job.ends_run);
            let ended = enders.filter_map(|of| job(of)).min();
            ended.or_else(|| {
                let each: Option<Vec<Nanos>> = jobs.iter().map(|of| job(of)).collect();
                each?.into_iter().max()
            })
        };
        let phases: Option<Vec<Nanos>> = self.series.phases.iter().map(phase).collect();
        Some(phases?.into_iter().fold(Nanos::ZERO, Nanos::saturating_add))
    }

    /// The zones of a device that the point needs as those of a new drive are: those of
    /// its jobs, and those that are full at the start.
    #[must_use]
    pub fn zones_on(&self, info: &DeviceInfo) -> BTreeSet<(NamespaceId, u32)> {
        let mut all = self.full_on(info);
        for job in self.jobs() {
            all.extend(zones_of(job, info));
        }
        all
    }

    /// The bytes of namespaces without zones that its jobs may write.
    #[must_use]
    pub fn bytes_on(&self, info: &DeviceInfo) -> Vec<(NamespaceId, Range<u64>)> {
        let written = |job: &JobTemplate| {
            let WorkTemplate::Blocks(blocks) = &job.work else {
                return None;
            };
            let namespace = info.namespace(job.nsid())?;
            let lba_bytes = u64::from(namespace.lba_bytes);
            let at = |ppm: u32| {
                let lbas = u128::from(namespace.size_lbas) * u128::from(ppm) / 1_000_000;
                u64::try_from(lbas).map_or(u64::MAX, |lbas| lbas.saturating_mul(lba_bytes))
            };
            let bytes = at(blocks.part_ppm.start)..at(blocks.part_ppm.end);
            (blocks.is_write && namespace.zoned.is_none()).then_some((job.nsid(), bytes))
        };
        self.jobs().filter_map(written).collect()
    }

    /// Those that its jobs may change.
    pub(super) fn changed_on(&self, info: &DeviceInfo) -> BTreeSet<(NamespaceId, u32)> {
        let changes = |job: &&JobTemplate| !matches!(job.work, WorkTemplate::Read { .. });
        let jobs = self.jobs().filter(changes);
        jobs.flat_map(|job| zones_of(job, info)).collect()
    }

    /// Those that are full at the start; the file counts them over all zoned namespaces, or in
    /// that of the device.
    pub(super) fn full_on(&self, info: &DeviceInfo) -> BTreeSet<(NamespaceId, u32)> {
        let about = info.present().filter(|(nsid, _)| self.is_about(*nsid));
        let all = about.flat_map(|(nsid, namespace)| {
            let zones = namespace.zoned.map_or(0, |zoned| zoned.zones);
            (0..zones).map(move |zone| (nsid, zone))
        });
        let is_full = |number: u32| self.series.full_zones.iter().any(|of| of.contains(&number));
        let all = (0..).zip(all).filter(|(number, _)| is_full(*number));
        all.map(|(_, zone)| zone).collect()
    }
}

/// The zones that a job works on.
fn zones_of(
    job: &JobTemplate,
    info: &DeviceInfo,
) -> impl Iterator<Item = (NamespaceId, u32)> + use<> {
    let (nsid, zones) = match &job.work {
        WorkTemplate::Kv(kv) => {
            let files = &kv.setup.files;
            (files.namespace, files.zones.clone().unwrap_or(0..u32::MAX))
        }
        _ => (job.nsid(), job.zones.clone()),
    };
    let zoned = info.namespace(nsid).and_then(|of| of.zoned);
    let end = zones.end.min(zoned.map_or(0, |zoned| zoned.zones));
    (zones.start..end).map(move |zone| (nsid, zone))
}
