//! When jobs end.

use std::ops::Range;

use zonelab_config::Problem;
use zonelab_device::Nanos;

use super::super::file::Section;
use super::super::value::Amount;
use super::Planner;
use crate::workload::Stop;
use crate::workload::directed::Direction;

impl Planner<'_> {
    /// How long a job runs at most, in nanoseconds.
    ///
    /// # Errors
    /// It would never end.
    pub(super) fn runtime(section: &Section) -> Result<Option<u64>, Problem> {
        let options = &section.options;
        let runtime = (options.runtime > 0).then_some(options.runtime);
        if options.time_based && runtime.is_none() {
            let origin = options.place(&["time_based"], &section.origin);
            let what = "without runtime, the job never ends";
            return Err(origin.problem("time_based", what, "add for example runtime=60"));
        }
        Ok(runtime)
    }

    pub(super) fn end(&self, section: &Section, zones: &Range<u32>) -> Result<Stop, Problem> {
        let options = &section.options;
        let runtime = Self::runtime(section)?.map(Nanos);
        let count = u64::from(zones.end - zones.start);
        let all = count * self.device.zone_bytes();
        let [reads, writes, trims] = options.rw.directions;
        // A pass of writes that meets a rest too small for it in a zone goes on from
        // the first, until all of the size is done. Any other pass in order ends
        // with the zones, which hold less than that.
        let trims_first = writes && trims;
        let is_one_pass = options.loops == 1 && writes && !reads;
        let once = match options.rw.random || trims || is_one_pass || self.leaves_rests(section) {
            true => all,
            false => count * self.capacity_bytes(),
        };
        // Each zone counts as it is reset, and what is written to it.
        let once = match trims_first {
            true => all + count * self.capacity_bytes(),
            false => once,
        };
        let io_size = options.io_size.map(|size| match size {
            // As in fio, of what offset and size leave of the device.
            Amount::Percent(percent) => (u128::from(all) * u128::from(percent) / 100) as u64,
            size => self.device.resolve(size),
        });
        let io_size = io_size.map(|bytes| bytes.saturating_mul(options.loops));
        // What is written counts, and each zone that it takes as it is reset.
        let io_size = match trims_first {
            true => io_size.map(|bytes| {
                let zones = bytes.div_ceil(self.capacity_bytes().max(1));
                bytes.saturating_add(zones.saturating_mul(self.device.zone_bytes()))
            }),
            false => io_size,
        };
        let operations = options.number_ios.map(|n| n.saturating_mul(options.loops));
        if !options.replay.read_iolog.is_empty() {
            // The end of a trace is that of its job.
            return Ok(Stop {
                runtime,
                bytes: io_size,
                operations,
                ..Stop::default()
            });
        }
        let bytes = io_size.unwrap_or(once.saturating_mul(options.loops));
        Ok(Stop {
            runtime,
            bytes: (!options.time_based).then_some(bytes),
            operations,
            ..Stop::default()
        })
    }

    /// Whether a job starts over at the end of its zones.
    pub(super) fn repeats(section: &Section) -> bool {
        let options = &section.options;
        options.time_based || options.io_size.is_some() || options.loops > 1
    }

    /// Whether a pass of writes in order leaves a rest of each zone that is too
    /// small for a write, so that each of several passes is of all of the size.
    fn leaves_rests(&self, section: &Section) -> bool {
        let options = &section.options;
        let [reads, writes, _] = options.rw.directions;
        let (low, high) = options.bs[Direction::Write as usize];
        let is_one_size = low == high && options.bssplit[Direction::Write as usize].is_empty();
        let is_special = options.finish || options.softfinish || options.reset;
        let is_pass = !options.rw.random && writes && !reads && !is_special;
        is_pass && is_one_size && !self.capacity_bytes().is_multiple_of(low)
    }

    fn capacity_bytes(&self) -> u64 {
        self.device.zoned.zone_capacity_lbas * self.device.lba_bytes
    }
}
