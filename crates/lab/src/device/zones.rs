//! What the zones of a device hold, before jobs and after them.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::AtomicBool;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Lba, NamespaceId, Nanos, Op, QueuePair, Tag, ZoneId,
    ZonedInfo,
};
pub use zonelab_host::workload::zone_table::ReportedZone;
use zonelab_host::workload::zone_table::ZoneTable;
use zonelab_host::{Job, NextWake};
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::{ReportFilter, ReportHeader, ZoneDescriptor, ZoneState};
use zonelab_ssd::Drive;

use super::alone::run_alone;
use super::site::Site;

/// Bytes of one zone report at most: longer ones come in pieces.
const REPORT_BYTES: u32 = 64 << 10;

/// The zones `mine` of an emulated drive.
#[must_use]
pub fn zones_of(drive: &Drive, mine: Range<u32>) -> Vec<ReportedZone> {
    let zones = drive.zones();
    let zone = |zone| ReportedZone {
        state: zones.state(zone),
        written_lbas: match zones.state(zone) {
            ZoneState::FULL | ZoneState::READ_ONLY | ZoneState::OFFLINE => {
                drive.config().zones.capacity_lbas
            }
            _ => zones.written_lbas(zone),
        },
    };
    mine.map(ZoneId).map(zone).collect()
}

/// Asks a device for the zones of a namespace.
///
/// # Errors
/// The namespace has no zones, or the device does not report them: a text that
/// says so.
pub fn report_zones<S: Site>(
    site: &mut S,
    namespace: NamespaceId,
) -> Result<Vec<ReportedZone>, String> {
    let mut job = ReportJob::new(site.info(), namespace)?;
    let zoned = job.zoned;
    run_alone(site, 1, &mut job, &AtomicBool::new(false))?;
    let zones = job.into_zones()?;
    let zones = zones.iter().map(|zone| ReportedZone::new(zone, zoned));
    Ok(zones.collect())
}

/// Reads the report of all zones, piece by piece.
pub(crate) struct ReportJob {
    namespace: NamespaceId,
    zoned: ZonedInfo,
    /// Zones of one piece.
    most: u32,
    is_under_way: bool,
    zones: Vec<ZoneDescriptor>,
    failure: Option<String>,
}

impl ReportJob {
    /// Of the zones of a namespace.
    ///
    /// # Errors
    /// The namespace has no zones: a text that says so.
    pub(crate) fn new(info: &DeviceInfo, namespace: NamespaceId) -> Result<Self, String> {
        let zoned = info.namespace(namespace).and_then(|of| of.zoned);
        let zoned = zoned.ok_or_else(|| format!("namespace {} has no zones", namespace.0))?;
        let entry = size_of::<ZoneDescriptor>() as u32;
        let bytes = info.max_transfer_bytes.min(REPORT_BYTES);
        Ok(Self {
            namespace,
            zoned,
            most: (bytes.saturating_sub(size_of::<ReportHeader>() as u32) / entry).max(1),
            is_under_way: false,
            zones: Vec::new(),
            failure: None,
        })
    }

    /// The zones, once it has run.
    ///
    /// # Errors
    /// The device does not report them: a text that says so.
    pub(crate) fn into_zones(self) -> Result<Vec<ZoneDescriptor>, String> {
        match self.failure {
            Some(failure) => Err(format!("the report of zones failed: {failure}")),
            None if (self.zones.len() as u64) < u64::from(self.zoned.zones) => {
                Err("the report of zones never ended".to_owned())
            }
            None => Ok(self.zones),
        }
    }

    /// Takes what there is. Whether there may be more.
    fn take(&mut self, completion: &Completion) -> bool {
        self.is_under_way = false;
        if !completion.status.is_success() {
            self.failure = Some(completion.status.to_string());
            return false;
        }
        let bytes = completion.data.as_deref().unwrap_or_default();
        let header = ReportHeader::ref_from_prefix(bytes);
        let count = header.map_or(0, |(header, _)| header.nr_zones.get());
        let before = self.zones.len();
        let rest = bytes.get(size_of::<ReportHeader>()..).unwrap_or_default();
        let wanted = (self.zoned.zones as usize).saturating_sub(before);
        let entries = rest.chunks_exact(size_of::<ZoneDescriptor>()).take(wanted);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let zones = entries
            .take(count)
            .filter_map(|bytes| ZoneDescriptor::read_from_bytes(bytes).ok());
        self.zones.extend(zones);
        if self.zones.len() == before {
            self.failure = Some(format!("there is no zone {before} in it"));
            return false;
        }
        self.zones.len() < self.zoned.zones as usize
    }
}

impl Job for ReportJob {
    fn step(
        &mut self,
        _now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        if let Some(completion) = done.first()
            && !self.take(completion)
        {
            return NextWake::Finished;
        }
        if self.is_under_way {
            return NextWake::Completion;
        }
        let next = self.zones.len() as u32;
        let count = self.most.min(self.zoned.zones - next) as usize;
        let bytes = size_of::<ReportHeader>() + count * size_of::<ZoneDescriptor>();
        let op = Op::ZoneReceive {
            slba: Lba(u64::from(next) * self.zoned.zone_size_lbas),
            filter: ReportFilter::ALL,
            partial: true,
            extended: false,
        };
        let nsid = self.namespace;
        let buffer = Some(Buf::zeroed(bytes));
        if let Err(refused) = queue.submit(Command::on(nsid, op), Tag(0), buffer) {
            self.failure = Some(refused.reason.to_string());
            return NextWake::Finished;
        }
        self.is_under_way = true;
        queue.ring();
        NextWake::Completion
    }
}

/// The table of zones that a device reported; at most `max_open` are open at a time,
/// besides what the device allows.
pub fn table_of(zoned: ZonedInfo, max_open: Option<u32>, zones: &[ReportedZone]) -> ZoneTable {
    let mut table = ZoneTable::new(zoned, max_open);
    for (index, zone) in (0..zoned.zones).zip(zones) {
        table.declare(index, *zone);
    }
    table
}

/// Tells the table of zones what the zones `mine` of a drive hold that was restored.
pub fn declare(drive: &Drive, mine: Range<u32>, table: &mut ZoneTable) {
    for (index, zone) in (0..).zip(zones_of(drive, mine)) {
        table.declare(index, zone);
    }
}

/// Ascending numbers as ranges, whose ends are among them.
#[must_use]
pub fn runs_of(numbers: &[u32]) -> Vec<RangeInclusive<u32>> {
    let follows = |a: &u32, b: &u32| a.checked_add(1) == Some(*b);
    let runs = numbers.chunk_by(follows);
    runs.map(|run| run[0]..=run[run.len() - 1]).collect()
}

#[cfg(test)]
mod tests {
    use super::runs_of;

    #[test]
    fn ascending_numbers_are_ranges() {
        assert!(runs_of(&[]).is_empty());
        assert_eq!(runs_of(&[u32::MAX]), [u32::MAX..=u32::MAX]);
        assert_eq!(runs_of(&[3, 5]), [3..=3, 5..=5]);
        assert_eq!(runs_of(&[0, 1, 2, 5, 7, 8]), [0..=2, 5..=5, 7..=8]);
    }
}
