//! What of a job is verified.

use zonelab_config::Problem;

use super::Planner;
use crate::fio::file::Section;
use crate::fio::job::JobOptions;
use crate::verify::{Method, Verify};
use crate::workload::Stop;
use crate::workload::blocks::BlockRange;
use crate::workload::directed::{DirectedWork, Direction, Pattern, WriteStyle};

impl Planner<'_> {
    /// How the blocks of a job are verified, if they are. One that only verifies
    /// becomes a job that reads (`work`), to the end of what is written (`stop`).
    pub(super) fn verify(
        &mut self,
        section: &Section,
        (thread, number): (u32, u32),
        work: &mut DirectedWork,
        stop: &mut Stop,
    ) -> Result<Option<Box<Verify>>, Problem> {
        let options = &section.options;
        let Some(method) = method_of(options) else {
            return Ok(None);
        };
        let origin = options.place(&["verify", "verify_pattern"], &section.origin);
        let [_, writes, trims] = options.rw.directions;
        if trims || !matches!(work.style, WriteStyle::Write | WriteStyle::Append) {
            let what = "is for jobs that read or write: this one resets or finishes zones";
            return Err(origin.problem("verify", what, "rw=write and the like"));
        }
        if work.replay.is_some() {
            let what = "and read_iolog: operations of a trace are not verified";
            return Err(origin.problem("verify", what, "leave out one of them"));
        }
        if work
            .blocks
            .as_ref()
            .is_some_and(|range| !writes_once(work, range))
        {
            let what = "on blocks without zones is for jobs that write each block once";
            let valid = "no io_size, time_based, norandommap, percentage_random, zonesize, and rw \
                         without a number behind it";
            return Err(origin.problem("verify", what, valid));
        }
        let pattern = options.verify_pattern.clone();
        if method.is_pattern() && pattern.is_none() {
            let what = "pattern, but there is none";
            return Err(origin.problem("verify", what, "add for example verify_pattern=0xabcd"));
        }
        let has_offset = pattern.as_ref().is_some_and(|pattern| pattern.has_offset());
        if has_offset && work.style == WriteStyle::Append {
            let origin = options.place(&["verify_pattern"], &section.origin);
            let what = "%o is the offset of the block, which an append does not know";
            return Err(origin.problem("verify_pattern", what, "leave out %o, or append"));
        }
        let interval_bytes = self.verify_interval(section, method, work)?;
        let (mut passes, mut expected_bytes) = (1, None);
        if options.verify_only && writes {
            expected_bytes = self.left_by(section, work, stop);
            self.only(section, thread, work, stop, expected_bytes)?;
        } else if writes && options.do_verify {
            passes = options.loops;
            self.once(section, thread, stop);
        }
        let mut whole_bytes = None;
        if !writes && work.blocks.is_none() && work.pattern == Pattern::Sequential {
            let zones = work.zones.len() as u64;
            let all = zones * self.device.zoned.zone_capacity_lbas * self.device.lba_bytes;
            whole_bytes = (!options.time_based).then_some(all);
            if let (Some(bytes), true) = (
                stop.bytes.filter(|_| options.io_size.is_some()),
                options.loops == 1,
            ) {
                // Each block once: what is read again is not what is missing.
                work.repeats = false;
                expected_bytes = stop.runtime.is_none().then_some(bytes.min(all));
            }
        }
        Ok(Some(Box::new(Verify {
            method,
            pattern,
            interval_bytes,
            reads_back: options.do_verify,
            backlog: (options.verify_backlog > 0).then_some(options.verify_backlog),
            is_fatal: options.verify_fatal,
            passes,
            // Numbers of threads are less than that of all: 4096.
            thread: number as u16,
            expected_bytes,
            whole_bytes: whole_bytes.filter(|_| expected_bytes.is_none()),
        })))
    }

    /// The bytes under one header, if those are less than a whole operation.
    fn verify_interval(
        &self,
        section: &Section,
        method: Method,
        work: &DirectedWork,
    ) -> Result<Option<u32>, Problem> {
        let options = &section.options;
        let flows = [Direction::Read, Direction::Write]
            .map(|direction| work.flows[direction as usize].as_ref());
        let sizes = flows.into_iter().flatten().map(|flow| flow.sizes.min);
        let least = u64::from(sizes.min().unwrap_or(1)) * self.device.lba_bytes;
        let bytes = options.verify_interval;
        if bytes == 0 || bytes >= least {
            return Ok(None);
        }
        let origin = options.place(&["verify_interval"], &section.origin);
        let overhead = method.overhead_bytes() as u64;
        if bytes <= overhead || !least.is_multiple_of(bytes) {
            let what = format!("{bytes} bytes do not divide the block size of {least}");
            let valid = format!("a divisor of it, and more than the {overhead} bytes of a header");
            return Err(origin.problem("verify_interval", what, valid));
        }
        Ok(u32::try_from(bytes).ok())
    }

    /// A job of `loops` is read back after each; one that its time ends is not.
    fn once(&mut self, section: &Section, thread: u32, stop: &mut Stop) {
        let options = &section.options;
        let part = |all: u64| (all / options.loops.max(1)).max(1);
        if options.io_size.is_none() {
            stop.bytes = stop.bytes.map(part);
        }
        stop.operations = stop.operations.map(part);
        if options.time_based && options.verify_backlog == 0 && thread == 0 {
            let origin = options.place(&["verify"], &section.origin);
            let what = "nothing is read back: a job that its time ends ends at once, as in fio";
            let valid = "size, io_size or number_ios instead of time_based; or verify_backlog";
            let warning = origin.problem("verify", what, valid);
            self.plan.warnings.push(warning);
        }
    }

    /// Bytes that a job which writes leaves in its zones; `None`: chance or time decides.
    fn left_by(&self, section: &Section, work: &DirectedWork, stop: &Stop) -> Option<u64> {
        let options = &section.options;
        let [None, Some(flow), None] = &work.flows else {
            return None;
        };
        let (block, lba_bytes) = (u64::from(flow.sizes.min), self.device.lba_bytes);
        let capacity = self.device.zoned.zone_capacity_lbas;
        let is_drawn = work.pattern != Pattern::Sequential || work.early_reset.is_some();
        let is_even = flow.sizes.min == flow.sizes.max && capacity.is_multiple_of(block);
        if is_drawn || !is_even || work.hole_lbas > 0 || stop.runtime.is_some() {
            return None;
        }
        let of_bytes = stop.bytes.map(|bytes| bytes.div_ceil(block * lba_bytes));
        let blocks = of_bytes.into_iter().chain(stop.operations).min()?;
        let zones = u64::from(work.zones.end - work.zones.start);
        let per_zone = capacity / block;
        let all = zones * per_zone;
        let is_shared = options.numjobs > 1 && self.device.resolve(options.offset_increment) == 0;
        let written = match is_shared {
            true => blocks.checked_mul(u64::from(options.numjobs))?,
            false => blocks,
        };
        let left = match (written / per_zone, written % per_zone) {
            _ if written <= all || !work.repeats && !is_shared => written.min(all),
            _ if is_shared => return None,
            // Zones were written again, the last of them in part.
            (_, 0) => all,
            (_, rest) => all - per_zone + rest,
        };
        Some(left * block * lba_bytes)
    }

    /// Makes a job that reads of one that writes, and that leaves `expected` bytes.
    fn only(
        &mut self,
        section: &Section,
        thread: u32,
        work: &mut DirectedWork,
        stop: &mut Stop,
        expected: Option<u64>,
    ) -> Result<(), Problem> {
        let options = &section.options;
        let origin = options.place(&["verify_only"], &section.origin);
        if expected.is_none() && thread == 0 {
            let what = "what is there is verified, and nobody knows whether that is all: chance \
                        or time decided how much the job wrote";
            let valid = "rw=write, one bs that divides the zone capacity, and no runtime";
            let warning = origin.clone().problem("verify_only", what, valid);
            self.plan.warnings.push(warning);
        }
        if options.time_based {
            let what = "and time_based: what is written is verified once";
            return Err(origin.problem("verify_only", what, "leave out time_based"));
        }
        let [_, flow, _] = &mut work.flows;
        let sizes = flow.as_ref().map(|flow| &flow.sizes);
        if sizes.is_some_and(|sizes| sizes.min != sizes.max) && options.verify_interval == 0 {
            let what = "nothing says how long blocks of several sizes are";
            return Err(origin.problem("verify_only", what, "one bs, or verify_interval"));
        }
        work.flows = [flow.take(), None, None];
        work.style = WriteStyle::Write;
        work.pattern = Pattern::Sequential;
        work.repeats = false;
        *stop = Stop {
            runtime: stop.runtime,
            ..Stop::default()
        };
        Ok(())
    }
}

/// Whether no block is written twice in a pass.
fn writes_once(work: &DirectedWork, range: &BlockRange) -> bool {
    let is_in_passes = range.passes.is_some_and(|passes| passes != u64::MAX);
    let is_plain = range.stride.is_none() && work.hole_lbas == 0;
    let is_once = match &work.pattern {
        Pattern::Random {
            percent,
            in_a_row,
            is_identical,
            ..
        } => range.has_map && percent[1] >= 100 && *in_a_row <= 1 && !is_identical,
        _ => true,
    };
    is_in_passes && is_plain && is_once
}

/// As in fio, a pattern is one to verify, unless there is another method.
fn method_of(options: &JobOptions) -> Option<Method> {
    let pattern = options.verify_pattern.as_ref();
    options.verify.or(pattern.map(|_| Method::Pattern))
}
