//! Zone Management Receive: zone reports in wire layout.

use zonelab_device::Lba;
use zonelab_nvme::Status;
use zonelab_nvme::zerocopy::IntoBytes;
use zonelab_nvme::zns::{ReportFilter, ReportHeader, ZoneAttributes, ZoneDescriptor};

use super::table::State;
use super::{Finished, Zones};

/// The write pointer of a zone that cannot be used any more. The specification leaves its
/// value open; hosts are used to this one (QEMU reports it).
const NO_WRITE_POINTER: u64 = u64::MAX;

impl Zones {
    /// Reports zones from the one that contains `slba` on (ZNS command set 1.1,
    /// section 3.4.2), up to the last of its namespace. Addresses in the report
    /// count from the start of the namespace.
    ///
    /// Fills `out` with the header, as many descriptors as fit, and zeros, and
    /// returns the number of bytes of header and descriptors. The Number of
    /// Zones counts the descriptors if `partial`, else every zone that matches
    /// `filter`. `extended` adds to each descriptor its extension: zeros if it
    /// has none.
    ///
    /// # Errors
    /// LBA Out of Range; Invalid Field (the filter is unknown, `extended` where
    /// zones have no extension, or no room for the header). `out` is as it was then.
    pub fn report(
        &self,
        slba: Lba,
        filter: ReportFilter,
        partial: bool,
        extended: bool,
        out: &mut [u8],
    ) -> Result<usize, Status> {
        let (start, _) = self.locate(slba, 1)?;
        let wanted = State::of_filter(filter)?;
        if extended && self.extension_bytes == 0 {
            return Err(Status::INVALID_FIELD);
        }
        let (header, entries) = out
            .split_at_mut_checked(size_of::<ReportHeader>())
            .ok_or(Status::INVALID_FIELD)?;
        entries.fill(0);
        let extension_bytes = if extended { self.extension_bytes } else { 0 };
        let entry_bytes = size_of::<ZoneDescriptor>() + extension_bytes;

        let namespace = self.namespace_of(start);
        let first_lba = namespace.first_lba().0;
        let mut matching = (start..namespace.zones().end as usize)
            .filter(|&index| wanted.is_none_or(|state| self.zones[index].state == state));
        let mut described = 0;
        // The room is asked first: a zone that leaves `matching` must get an entry.
        for (entry, index) in entries.chunks_exact_mut(entry_bytes).zip(&mut matching) {
            let (descriptor, extension) = entry.split_at_mut(size_of::<ZoneDescriptor>());
            descriptor.copy_from_slice(self.descriptor(index, first_lba).as_bytes());
            if let Some(bytes) = self.extensions.get(&index).filter(|_| extended) {
                extension.copy_from_slice(bytes);
            }
            described += 1;
        }
        let others = if partial { 0 } else { matching.count() };
        let nr_zones = (described + others) as u64;
        let report_header = ReportHeader {
            nr_zones: nr_zones.into(),
            ..ReportHeader::default()
        };
        header.copy_from_slice(report_header.as_bytes());
        Ok(size_of::<ReportHeader>() + described * entry_bytes)
    }

    /// The descriptor of a zone of the namespace that starts at `first_lba`.
    fn descriptor(&self, index: usize, first_lba: u64) -> ZoneDescriptor {
        let zone = &self.zones[index];
        let start = self.start_of(index).0 - first_lba;
        let pointer = if zone.state.has_write_pointer() {
            start + zone.written_lbas(self.capacity_lbas)
        } else if zone.state == State::Full {
            // The specification leaves it open, too. A ZN540 reports the end of the capacity
            // (ZNS in a user-space driver, listing 4.1).
            start + self.capacity_lbas
        } else {
            NO_WRITE_POINTER
        };
        ZoneDescriptor {
            za: ZoneAttributes::default()
                .with_zfc(zone.finished == Finished::ByController)
                .with_zrwav(self.areas.end_of(index).is_some())
                .with_zdev(zone.has_extension),
            zcap: self.capacity_lbas.into(),
            zslba: start.into(),
            wp: pointer.into(),
            ..ZoneDescriptor::sequential(zone.state.code())
        }
    }
}
