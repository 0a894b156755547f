//! Jobs on blocks without write pointers: `zonemode=none` and `zonemode=strided`.

use zonelab_config::Problem;
use zonelab_device::Nanos;

use super::super::file::Section;
use super::super::job::ZoneMode;
use super::super::value::Amount;
use super::Planner;
use crate::workload::Stop;
use crate::workload::blocks::{BlockRange, Stride};
use crate::workload::directed::Flow;
use crate::workload::placement::Placements;

/// Options that say what happens to zones.
const OF_ZONES: [(&str, &str); 5] = [
    ("initial_zone_reset", "rw=trim deallocates blocks"),
    ("zone_append", "rw=write"),
    ("finish", "rw=write"),
    ("softfinish", "rw=write"),
    ("reset", "rw=trim deallocates blocks"),
];

impl Planner<'_> {
    /// Whether a job works on blocks, not on zones.
    ///
    /// # Errors
    /// Its `zonemode` does not fit the namespace.
    pub(super) fn is_of_blocks(&self, section: &Section) -> Result<bool, Problem> {
        let options = &section.options;
        let origin = options.place(&["zonemode"], &section.origin);
        let is_conventional = self.device.is_conventional;
        let mode = options.zone_mode;
        match mode {
            None => return Ok(is_conventional),
            Some(ZoneMode::Zbd) if is_conventional => {
                let what = "zbd, but the namespace has no zones, and none are emulated on it";
                let valid = "zonemode=none, or leave it out";
                return Err(origin.problem("zonemode", what, valid));
            }
            Some(ZoneMode::Zbd) => return Ok(false),
            Some(ZoneMode::None | ZoneMode::Strided) => {}
        }
        let [_, writes, trims] = options.rw.directions;
        if !is_conventional && (writes || trims) {
            let what = "but the namespace is zoned, and writes go to write pointers";
            let what = format!("{}, {what}", mode.map_or("none", ZoneMode::name));
            let valid = "zonemode=zbd, or leave it out; without it jobs may read";
            return Err(origin.problem("zonemode", what, valid));
        }
        Ok(true)
    }

    /// Where the drive is asked to put what a job writes.
    pub(super) fn placements(&mut self, section: &Section) -> Result<Placements, Problem> {
        let options = &section.options.placement;
        if !options.fdp {
            self.note_placements(section);
        }
        if !(options.fdp && section.options.rw.directions[1]) {
            return Ok(Placements::default());
        }
        let wrong = |names: &[&'static str], what: &str, valid: &str| {
            let name = section.options.last_of(names).unwrap_or("fdp");
            let origin = section.options.place(&[name], &section.origin);
            Err(origin.problem(name, what, valid))
        };
        let there = self.device.placements;
        let identifiers = match (options.plids.as_slice(), there) {
            _ if !self.device.is_conventional || there == Some(0) => {
                let what = "the namespace has no flexible data placement";
                return wrong(&["fdp", "dataplacement"], what, "leave it out");
            }
            ([], None) => {
                let what = "the device was not asked which identifiers it has";
                let valid = "plids=0,1 and whatever `zonelab nvme fdp status` lists";
                return wrong(&["fdp", "dataplacement"], what, valid);
            }
            ([], Some(count)) => (0..count).collect(),
            (plids, count) => {
                let is_there = |plid: &&u16| count.is_none_or(|count| **plid < count);
                if let Some(other) = plids.iter().find(|plid| !is_there(plid)) {
                    let what = format!("there is no identifier {other}");
                    let last = count.unwrap_or_default().saturating_sub(1);
                    return wrong(&["plids"], &what, &format!("0 to {last}"));
                }
                plids.to_vec()
            }
        };
        let at_random = options.at_random;
        Ok(Placements {
            identifiers,
            at_random,
        })
    }

    /// Says of identifiers that nothing is placed by them.
    fn note_placements(&mut self, section: &Section) {
        let Some(name) = section.options.last_of(&["plids", "plid_select"]) else {
            return;
        };
        let origin = section.options.place(&[name], &section.origin);
        let warning = origin.problem(name, "has no meaning without fdp=1", "");
        if !self.plan.warnings.contains(&warning) {
            self.plan.warnings.push(warning);
        }
    }

    /// What a job on blocks cannot do.
    pub(super) fn check_blocks(&self, section: &Section) -> Result<(), Problem> {
        let options = &section.options;
        let wrong = |name: &str, what: &str, valid: &str| {
            let origin = options.place(&[name], &section.origin);
            Err(origin.problem(name, what, valid))
        };
        let given = [
            options.initial_zone_reset,
            options.append,
            options.finish,
            options.softfinish,
            options.reset && !options.rw.directions[2],
        ];
        for ((name, valid), is_given) in OF_ZONES.into_iter().zip(given) {
            if is_given {
                return wrong(name, "is for zones, on which this job does not work", valid);
            }
        }
        if !options.replay.read_iolog.is_empty() && !self.device.is_conventional {
            let what = "is replayed on the zones of a zoned namespace";
            return wrong("read_iolog", what, "zonemode=zbd, or leave zonemode out");
        }
        if options.verify.is_some() || options.verify_pattern.is_some() {
            self.check_verified_blocks(section)?;
        }
        let amounts = [
            ("size", options.size),
            ("io_size", options.io_size),
            ("offset", Some(options.offset)),
            ("offset_increment", Some(options.offset_increment)),
        ];
        let in_zones = |amount: Amount| matches!(amount, Amount::Zones(1..));
        match amounts.iter().find(|(_, of)| of.is_some_and(in_zones)) {
            Some((name, _)) if self.device.is_conventional => wrong(
                name,
                "counts in zones, of which there are none",
                "bytes, or percent",
            ),
            _ => Ok(()),
        }
    }

    /// Whether blocks without zones can be verified: by the job that writes them.
    fn check_verified_blocks(&self, section: &Section) -> Result<(), Problem> {
        let options = &section.options;
        let origin = options.place(&["verify", "verify_pattern"], &section.origin);
        let wrong = |what: &str, valid: &str| Err(origin.problem("verify", what, valid));
        let zones = "a zoned namespace, with zonemode=zbd";
        if !self.device.is_conventional || !options.rw.directions[1] || options.verify_only {
            let what = "is supported on blocks without zones for jobs that write, and no others";
            return wrong(what, zones);
        }
        if options.numjobs > 1 {
            let what = "and numjobs: on blocks without zones threads write over each other";
            return wrong(what, "a section for each, with offsets of their own");
        }
        if options.loops > 1 {
            let what = "and loops: on blocks without zones one pass is read back";
            return wrong(what, "a section for each pass, with stonewall");
        }
        Ok(())
    }

    /// The blocks of a thread, and when it ends.
    pub(super) fn blocks(
        &mut self,
        section: &Section,
        thread: u32,
        flows: &[Option<Flow>; 3],
    ) -> Result<(BlockRange, Stop), Problem> {
        let options = &section.options;
        let sizes = || flows.iter().flatten().map(|flow| &flow.sizes);
        let smallest = sizes().map(|sizes| u64::from(sizes.min)).min().unwrap_or(1);
        let (first, lbas) = self.extent_in_blocks(section, thread, smallest)?;
        if lbas < smallest {
            let origin = options.place(&["size", "offset", "bs"], &section.origin);
            let what = format!("{lbas} blocks, and operations have at least {smallest}");
            return Err(origin.problem("size", what, "a larger size, or a smaller bs"));
        }
        if !self.device.is_conventional {
            self.check_gaps(section, first, flows)?;
        }
        let stop = self.end_of_blocks(section, lbas)?;
        let range = BlockRange {
            first,
            lbas,
            namespace_lbas: self.device.bytes() / self.device.lba_bytes,
            has_map: !options.norandommap,
            passes: match (options.time_based, options.io_size) {
                (true, _) => None,
                (false, Some(_)) => Some(u64::MAX),
                (false, None) => Some(options.loops),
            },
            stride: self.stride(section, smallest)?,
        };
        Ok((range, stop))
    }

    /// First block, and number of blocks, within `offset` and `size`.
    fn extent_in_blocks(
        &mut self,
        section: &Section,
        thread: u32,
        smallest: u64,
    ) -> Result<(u64, u64), Problem> {
        let options = &section.options;
        let device = &self.device;
        let (all, lba) = (device.bytes(), device.lba_bytes);
        let origin = options.place(&["offset", "offset_increment"], &section.origin);
        let step = device.resolve(options.offset_increment);
        let mut offset = device
            .resolve(options.offset)
            .saturating_add(step.saturating_mul(u64::from(thread)));
        let has_share = |amount| matches!(amount, Amount::Percent(_));
        if has_share(options.offset) || has_share(options.offset_increment) {
            // As in fio, shares are of whole operations.
            offset = offset / (smallest * lba) * (smallest * lba);
        }
        if !offset.is_multiple_of(lba) {
            let what = format!("{offset} bytes are no multiple of the logical block of {lba}");
            return Err(origin.problem("offset", what, ""));
        }
        if offset >= all {
            let what = format!("thread {} begins at byte {offset}", thread + 1);
            let valid = format!("the namespace has {all} bytes");
            return Err(origin.problem("offset", what, valid));
        }
        let size = options.size.filter(|_| !options.fill_device);
        let size = size.map_or(all - offset, |size| device.resolve(size));
        if thread == 0 && size > all - offset {
            let origin = options.place(&["size"], &section.origin);
            let what = format!("ends beyond the namespace: {} bytes are used", all - offset);
            self.plan.warnings.push(origin.problem("size", what, ""));
        }
        Ok((offset / lba, size.min(all - offset).div_ceil(lba)))
    }

    /// Reads of blocks of zones: what lies behind the capacity of a zone has no
    /// blocks, and a read may not reach into another zone.
    fn check_gaps(
        &self,
        section: &Section,
        first: u64,
        flows: &[Option<Flow>; 3],
    ) -> Result<(), Problem> {
        let zoned = &self.device.zoned;
        let origin = section.options.place(&["zonemode"], &section.origin);
        let zone = zoned.zone_size_lbas;
        if zoned.zone_capacity_lbas < zone {
            let what = "and zones hold less than their size: what is behind cannot be read";
            return Err(origin.problem("zonemode", what, "zonemode=zbd, or leave it out"));
        }
        let hole = section.options.rw.hole_bytes / self.device.lba_bytes;
        let fits = |flow: &Flow| {
            let (size, max) = (u64::from(flow.sizes.min), u64::from(flow.sizes.max));
            size == max && [zone, first, hole].iter().all(|of| of.is_multiple_of(size))
        };
        let is_split = flows.iter().flatten().all(fits) && section.options.zone_skip == 0;
        if !zoned.read_across_zones && !is_split {
            let what = "and reads may not reach across zones: these would";
            let valid = "one bs that divides the zone size and the offset, or zonemode=zbd";
            return Err(origin.problem("zonemode", what, valid));
        }
        Ok(())
    }

    fn stride(&self, section: &Section, smallest: u64) -> Result<Option<Stride>, Problem> {
        let options = &section.options;
        let wrong = |name: &str, what: String, valid: &str| {
            let origin = options.place(&[name, "zonemode"], &section.origin);
            Err(origin.problem(name, what, valid))
        };
        let is_strided = options.zone_mode == Some(ZoneMode::Strided);
        let Some(transfer) = options.zonesize.filter(|_| is_strided) else {
            return match (is_strided, options.zonesize) {
                (true, _) => wrong(
                    "zonemode",
                    "strided, but nothing says how much is transferred in a part".to_owned(),
                    "add zonesize",
                ),
                (false, Some(_)) => wrong(
                    "zonesize",
                    "and zonemode=none".to_owned(),
                    "leave it out, or zonemode=strided",
                ),
                (false, None) => Ok(None),
            };
        };
        let lba = self.device.lba_bytes;
        let range = options.zonerange.unwrap_or(transfer);
        let bytes = [
            ("zonesize", transfer),
            ("zonerange", range),
            ("zoneskip", options.zone_skip),
        ];
        for (name, bytes) in bytes {
            if !bytes.is_multiple_of(lba) {
                let what = format!("{bytes} bytes are no multiple of the logical block of {lba}");
                return wrong(name, what, "");
            }
        }
        if range / lba < smallest {
            let what = format!("{range} bytes are less than an operation has");
            return wrong("zonerange", what, "at least bs");
        }
        Ok(Some(Stride {
            transfer_lbas: transfer / lba,
            range_lbas: range / lba,
            skip_lbas: options.zone_skip / lba,
        }))
    }

    fn end_of_blocks(&self, section: &Section, lbas: u64) -> Result<Stop, Problem> {
        let options = &section.options;
        let runtime = Self::runtime(section)?;
        let [_, writes, trims] = options.rw.directions;
        // What is trimmed is written too, and both count.
        let times = 1 + u64::from(writes && trims);
        let bytes = options.io_size.map(|size| match size {
            Amount::Percent(percent) => {
                let all = u128::from(lbas * self.device.lba_bytes);
                (all * u128::from(percent) / 100) as u64
            }
            size => self.device.resolve(size),
        });
        let operations = options.number_ios.map(|n| n.saturating_mul(options.loops));
        Ok(Stop {
            runtime: runtime.map(Nanos),
            bytes: bytes
                .filter(|_| !options.time_based)
                .map(|bytes| bytes.saturating_mul(times)),
            operations: operations.map(|n| n.saturating_mul(times)),
            ..Stop::default()
        })
    }

    /// What work on blocks leaves out between operations in order.
    pub(super) fn hole_lbas(&self, section: &Section) -> Result<u64, Problem> {
        let bytes = section.options.rw.hole_bytes;
        let lba = self.device.lba_bytes;
        if !bytes.is_multiple_of(lba) {
            let origin = section.options.place(&["rw"], &section.origin);
            let what = format!("{bytes} bytes after `:` are no multiple of the block of {lba}");
            return Err(origin.problem("rw", what, ""));
        }
        Ok(bytes / lba)
    }
}
