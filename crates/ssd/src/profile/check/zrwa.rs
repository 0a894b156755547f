//! Rules about random write areas.

use zonelab_config::units::fmt_size;

use super::Rules;

impl Rules<'_> {
    /// Areas, granularity and capacity fit each other, and there is a buffer.
    pub(super) fn zrwa(&mut self) {
        let zones = &self.config.zones;
        let Some(zrwa) = zones.zrwa else { return };
        let bytes = |lbas: u64| fmt_size(lbas.saturating_mul(self.config.lba_bytes.into()));
        let (size, granularity) = (
            u64::from(zrwa.size_lbas),
            u64::from(zrwa.flush_granularity_lbas),
        );
        let capacity = zones.capacity_lbas;
        let multiple_of = format!("a multiple of {}", bytes(granularity));
        let mut broken = Vec::new();
        if !size.is_multiple_of(granularity) {
            let what = format!(
                "{} is not a multiple of flush_granularity = {}",
                bytes(size),
                bytes(granularity)
            );
            broken.push(("zones.zrwa.size", what, multiple_of));
        } else if size > capacity {
            let what = format!("{} are more than a zone has", bytes(size));
            let valid = format!("at most zones.capacity = {}", bytes(capacity));
            broken.push(("zones.zrwa.size", what, valid));
        }
        if !capacity.is_multiple_of(granularity) {
            let what = format!(
                "{} does not divide zones.capacity = {}",
                bytes(granularity),
                bytes(capacity)
            );
            let valid = "write pointers move by it to the end of a zone".to_owned();
            broken.push(("zones.zrwa.flush_granularity", what, valid));
        }
        if self.config.write_buffer.is_none() {
            let what = "what is committed goes through the write buffer".to_owned();
            let valid = "write_buffer.mode = \"write-back\"".to_owned();
            broken.push(("zones.zrwa.size", what, valid));
        }
        for (key, what, valid) in broken {
            self.refuse(key, what, valid);
        }
    }
}
