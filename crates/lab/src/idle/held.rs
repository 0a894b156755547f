//! What zones hold before each phase of a series, as far as a file says it.

use std::ops::Range;

use zonelab_device::{DeviceInfo, NamespaceId};
use zonelab_host::workload::Stop;

use super::namespace_of;
use crate::experiment::{JobTemplate, WorkTemplate};

/// What a zone holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fill {
    /// The share of its capacity that has data, if that is known.
    data: Option<f64>,
    /// Whether it is known to be full: written to its capacity, or finished.
    is_full: bool,
}

impl Fill {
    const EMPTY: Self = Self::share(0.0);
    const UNKNOWN: Self = Self {
        data: None,
        is_full: false,
    };

    const fn share(data: f64) -> Self {
        Self {
            data: Some(data),
            is_full: data >= 1.0,
        }
    }

    /// The share that is known to hold nothing.
    pub(super) fn empty_share(self) -> f64 {
        self.data.map_or(0.0, |data| 1.0 - data)
    }

    /// Whether a reset finds nothing to erase.
    pub(super) fn is_empty(self) -> bool {
        self.data == Some(0.0) && !self.is_full
    }

    /// Whether a finish finds nothing to fill.
    pub(super) const fn is_full(self) -> bool {
        self.is_full
    }
}

/// The zones of one namespace: ranges that hold something or may, and nothing elsewhere.
#[derive(Clone, Debug, Default)]
struct Zones {
    /// Apart from each other.
    parts: Vec<(Range<u32>, Fill)>,
}

impl Zones {
    fn set(&mut self, zones: &Range<u32>, fill: Fill) {
        let outside = |(part, fill): (Range<u32>, Fill)| {
            let before = part.start..part.end.min(zones.start);
            let behind = part.start.max(zones.end)..part.end;
            let parts = [before, behind].into_iter().filter(|of| !of.is_empty());
            parts.map(move |of| (of, fill)).collect::<Vec<_>>()
        };
        let parts = std::mem::take(&mut self.parts);
        self.parts = parts.into_iter().flat_map(outside).collect();
        if !zones.is_empty() {
            self.parts.push((zones.clone(), fill));
        }
    }

    /// What `zones` hold, in parts.
    fn over(&self, zones: &Range<u32>) -> Vec<(Range<u32>, Fill)> {
        let mut rest = Self::default();
        rest.set(zones, Fill::EMPTY);
        for (part, fill) in &self.parts {
            let (start, end) = (part.start.max(zones.start), part.end.min(zones.end));
            if start < end {
                rest.set(&(start..end), *fill);
            }
        }
        rest.parts
    }
}

/// What the zones and blocks of a drive hold.
pub(super) struct Held<'a> {
    zones: Vec<(NamespaceId, Zones)>,
    /// Namespaces on whose blocks jobs write.
    blocks: Vec<NamespaceId>,
    /// `full_zones` counts over all namespaces: of another one than the first it is not known
    /// what of it is full.
    has_full: bool,
    /// The drive, if it is known.
    info: Option<&'a DeviceInfo>,
}

impl<'a> Held<'a> {
    /// A new drive on which `full` zones are declared full.
    pub(super) fn new(full: &[Range<u32>], info: Option<&'a DeviceInfo>) -> Self {
        let mut held = Self {
            zones: Vec::new(),
            blocks: Vec::new(),
            has_full: !full.is_empty(),
            info,
        };
        for zones in full {
            held.of(NamespaceId::FIRST).set(zones, Fill::share(1.0));
        }
        held
    }

    fn of(&mut self, nsid: NamespaceId) -> &mut Zones {
        let index = self.zones.iter().position(|(of, _)| *of == nsid);
        let index = index.unwrap_or_else(|| {
            let mut zones = Zones::default();
            if nsid != NamespaceId::FIRST && self.has_full {
                zones.set(&(0..u32::MAX), Fill::UNKNOWN);
            }
            self.zones.push((nsid, zones));
            self.zones.len() - 1
        });
        &mut self.zones[index].1
    }

    /// What the zones of a job hold, in parts, beside the other jobs of its phase.
    pub(super) fn of_job(
        &mut self,
        job: &JobTemplate,
        phase: &[&JobTemplate],
    ) -> Vec<(Range<u32>, Fill)> {
        let nsid = namespace_of(job);
        let mut zones = self.of(nsid).clone();
        for other in phase.iter().filter(|other| other.name != job.name) {
            if let Some((_, changed)) = changes(other).filter(|(of, _)| *of == nsid) {
                zones.set(&changed, Fill::UNKNOWN);
            }
        }
        zones.over(&job.zones)
    }

    /// Whether nothing is on the blocks that a job reads, beside the other jobs of its phase.
    pub(super) fn has_no_blocks(&self, job: &JobTemplate, phase: &[&JobTemplate]) -> bool {
        let writes = |other: &&JobTemplate| {
            matches!(&other.work, WorkTemplate::Blocks(blocks) if blocks.is_write)
                && namespace_of(other) == namespace_of(job)
        };
        !self.blocks.contains(&namespace_of(job)) && !phase.iter().any(writes)
    }

    /// A phase has ended.
    pub(super) fn has_run(&mut self, phase: &[&JobTemplate]) {
        for job in phase {
            if let WorkTemplate::Blocks(blocks) = &job.work {
                if blocks.is_write {
                    self.blocks.push(namespace_of(job));
                }
                continue;
            }
            let Some((nsid, zones)) = changes(job) else {
                continue;
            };
            let others = phase.iter().filter(|other| other.name != job.name);
            let is_alone = !others
                .clone()
                .filter_map(|of| changes(of))
                .any(|(of, range)| {
                    of == nsid && range.start < zones.end && zones.start < range.end
                });
            let ends_early = others.clone().any(|other| other.ends_run);
            let left = match is_alone && !ends_early {
                true => self.left_by(job),
                false => vec![(zones, Fill::UNKNOWN)],
            };
            for (zones, fill) in left {
                self.of(nsid).set(&zones, fill);
            }
        }
    }

    /// What a job leaves in its zones, on which nobody else works and which nobody ends.
    fn left_by(&mut self, job: &JobTemplate) -> Vec<(Range<u32>, Fill)> {
        let Stop {
            runtime,
            bytes,
            operations,
            periods,
            confidence,
            ..
        } = job.stop;
        let has_no_time = runtime.is_none() && periods.is_none() && confidence.is_none();
        let of_operations = operations.map(|many| many.saturating_mul(job.block_bytes));
        let bytes = bytes.into_iter().chain(of_operations).min();
        let zones = job.zones.clone();
        let all = |fill| vec![(zones.clone(), fill)];
        match (&job.work, bytes) {
            _ if !has_no_time || shares(job).is_none() => all(Fill::UNKNOWN),
            (WorkTemplate::Write { repeat: false, .. } | WorkTemplate::SoftFinish { .. }, None) => {
                all(Fill::share(1.0))
            }
            (
                WorkTemplate::Write {
                    repeat: false,
                    shared: false,
                    open_zones: 1,
                    ..
                },
                Some(bytes),
            ) => self.written_by(job, bytes),
            (_, Some(_)) => all(Fill::UNKNOWN),
            (WorkTemplate::Finish { fill }, None) => {
                let is_no_fill = fill.is_none();
                let finished = |(zones, fill): (Range<u32>, Fill)| {
                    let data = fill.data.filter(|_| is_no_fill);
                    let is_full = true;
                    (zones, Fill { data, is_full })
                };
                let before = self.of(namespace_of(job)).over(&zones);
                before.into_iter().map(finished).collect()
            }
            // Each zone is reset at the end.
            (
                WorkTemplate::Reset { .. } | WorkTemplate::Open { .. } | WorkTemplate::Close { .. },
                None,
            ) => all(Fill::EMPTY),
            _ => all(Fill::UNKNOWN),
        }
    }

    /// What threads leave that write so many bytes each, zone after zone.
    fn written_by(&self, job: &JobTemplate, bytes: u64) -> Vec<(Range<u32>, Fill)> {
        let namespace = self.info.and_then(|info| info.namespace(namespace_of(job)));
        let capacity = namespace.and_then(|of| {
            let lbas = of.zoned?.zone_capacity_lbas;
            lbas.checked_mul(u64::from(of.lba_bytes))
        });
        let (Some(capacity), Some(shares)) = (capacity.filter(|of| *of > 0), shares(job)) else {
            return vec![(job.zones.clone(), Fill::UNKNOWN)];
        };
        let of_share = |zones: Range<u32>| {
            let whole = u32::try_from(bytes / capacity).unwrap_or(u32::MAX);
            let end = zones.start.saturating_add(whole).min(zones.end);
            let part = (bytes % capacity) as f64 / capacity as f64;
            let more = end..end.saturating_add(1).min(zones.end);
            [
                (zones.start..end, Fill::share(1.0)),
                (more, Fill::share(part)),
            ]
        };
        shares.into_iter().flat_map(of_share).collect()
    }
}

/// The zones of each thread of a job, if they are all of its zones.
fn shares(job: &JobTemplate) -> Option<Vec<Range<u32>>> {
    let (Range { start, end }, threads) = (job.zones.clone(), job.threads.max(1));
    let each = (end - start) / threads;
    let is_all = each * threads == end - start && job.zones_per_thread.is_none_or(|of| of == each);
    let of_thread = |thread| start + thread * each..start + (thread + 1) * each;
    (is_all && each > 0).then(|| (0..threads).map(of_thread).collect())
}

/// The zones that a job changes, or may.
fn changes(job: &JobTemplate) -> Option<(NamespaceId, Range<u32>)> {
    match &job.work {
        WorkTemplate::Read { .. } | WorkTemplate::Blocks(_) => None,
        WorkTemplate::Kv(kv) => {
            let files = &kv.setup.files;
            let zones = files.zones.clone().unwrap_or(0..u32::MAX);
            Some((files.namespace, zones))
        }
        _ => Some((namespace_of(job), job.zones.clone())),
    }
}
