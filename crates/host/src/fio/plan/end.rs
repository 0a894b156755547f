//! When jobs end.

use std::ops::Range;

use zonelab_config::Problem;
use zonelab_device::Nanos;

use super::super::file::Section;
use super::super::value::Amount;
use super::Planner;
use crate::workload::directed::{Direction, End};

impl Planner {
    pub(super) fn end(&self, section: &Section, zones: &Range<u32>) -> Result<End, Problem> {
        let options = &section.options;
        let runtime = (options.runtime > 0).then_some(Nanos(options.runtime));
        if options.time_based && runtime.is_none() {
            let origin = options.place(&["time_based"], &section.origin);
            let what = "without runtime, the job never ends";
            return Err(origin.problem("time_based", what, "add for example runtime=60"));
        }
        let zoned = &self.device.zoned;
        let count = u64::from(zones.end - zones.start);
        let all = count * self.device.zone_bytes();
        let [reads, writes, trims] = options.rw.directions;
        // A pass of writes goes on from the first zone on if what is left of each
        // zone is too small for a write, as in fio: until all of the size is done.
        let (low, high) = options.bs[Direction::Write as usize];
        let capacity = zoned.zone_capacity_lbas * self.device.lba_bytes;
        let is_one_size = low == high && options.bssplit[Direction::Write as usize].is_empty();
        let is_special = options.finish || options.softfinish || options.reset;
        let is_pass = !options.rw.random && writes && !reads && !is_special;
        let leaves_rests = is_pass && is_one_size && !capacity.is_multiple_of(low);
        let once = match options.rw.random || trims || leaves_rests {
            true => all,
            // A pass over the zones in order ends with them.
            false => count * capacity,
        };
        let io_size = options.io_size.map(|size| match size {
            // As in fio, of what offset and size leave of the device.
            Amount::Percent(percent) => (u128::from(all) * u128::from(percent) / 100) as u64,
            size => self.device.resolve(size),
        });
        let bytes = io_size.unwrap_or(once.saturating_mul(options.loops));
        Ok(End {
            runtime,
            bytes: (!options.time_based).then_some(bytes),
            operations: options.number_ios.map(|n| n.saturating_mul(options.loops)),
            repeats: options.time_based || io_size.is_some() || options.loops > 1 || leaves_rests,
        })
    }
}
