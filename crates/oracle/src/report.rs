//! Zone reports by the byte offsets of ZNS command set 1.1, section 3.4.2.

use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ZoneState};

use crate::zones::Zones;

/// Bytes of the header of a report, and of a descriptor.
const UNIT: usize = 64;

impl Zones {
    /// The report of the zones of the namespace from the one with `slba` on, in a buffer
    /// of `length` bytes, and how many of these mean something.
    ///
    /// # Errors
    /// The status that a drive says.
    pub fn report(
        &self,
        slba: u64,
        filter: ReportFilter,
        partial: bool,
        extended: bool,
        length: usize,
    ) -> Result<(Vec<u8>, usize), Status> {
        let (first, _) = self.locate(slba, 1)?;
        let extension_bytes = self.config.descriptor_extension_bytes as usize;
        if filter.0 > 7 || (extended && extension_bytes == 0) || length < UNIT {
            return Err(Status::INVALID_FIELD);
        }
        let entry_bytes = if extended {
            UNIT + extension_bytes
        } else {
            UNIT
        };
        // The state of a descriptor that each filter asks for; the first asks for all.
        let wanted = [0x0, 0x1, 0x2, 0x3, 0x4, 0xe, 0xd, 0xf][usize::from(filter.0)];
        let matching: Vec<usize> = (first..self.space.first + self.space.count)
            .filter(|zone| wanted == 0 || self.zones[*zone].state.0 == wanted)
            .collect();
        let room = (length - UNIT) / entry_bytes;
        let reported = matching.len().min(room);
        let count = if partial { reported } else { matching.len() };
        let mut out = vec![0; length];
        out[0..8].copy_from_slice(&(count as u64).to_le_bytes());
        for (&zone, entry) in matching
            .iter()
            .zip(out[UNIT..].chunks_exact_mut(entry_bytes))
        {
            self.describe(zone, &mut entry[..UNIT]);
            let extension = self.zones[zone].extension.as_deref();
            if let Some(bytes) = extension.filter(|_| extended) {
                entry[UNIT..].copy_from_slice(bytes);
            }
        }
        Ok((out, UNIT + reported * entry_bytes))
    }

    /// The descriptor of a zone.
    fn describe(&self, index: usize, entry: &mut [u8]) {
        let zone = &self.zones[index];
        let start = self.start(index) - self.start(self.space.first);
        let pointer = match zone.state {
            ZoneState::READ_ONLY | ZoneState::OFFLINE => u64::MAX,
            // The specification leaves it open; a ZN540 says the end of its capacity.
            ZoneState::FULL => start + self.config.capacity_lbas,
            _ => start + zone.pointer,
        };
        entry[0] = 2;
        entry[1] = zone.state.0 << 4;
        let has_extension = if zone.extension.is_some() { 0x80 } else { 0 };
        let has_area = if zone.area.is_some() { 0x08 } else { 0 };
        entry[2] = has_extension | has_area;
        entry[8..16].copy_from_slice(&self.config.capacity_lbas.to_le_bytes());
        entry[16..24].copy_from_slice(&start.to_le_bytes());
        entry[24..32].copy_from_slice(&pointer.to_le_bytes());
    }
}
