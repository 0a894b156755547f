//! What a thread does and what is kept of it: sizes, rates, style, end, logs.

use std::num::NonZeroU64;

use zonelab_config::Problem;
use zonelab_device::Nanos;

use super::{IssueLog, Log, Logs, Planner};
use crate::fio::file::Section;
use crate::fio::job::JobOptions;
use crate::softfinish::SoftFinish;
use crate::workload::directed::{Direction, EarlyReset, Flow, Sizes, WriteStyle};
use crate::workload::record::{DirectionRecording, Recording};

impl Planner<'_> {
    /// When zones are reset before they are full.
    pub(super) fn early_reset(&self, section: &Section, zones: u64) -> Option<EarlyReset> {
        let options = &section.options;
        let (threshold, frequency) = (options.zone_reset_threshold, options.zone_reset_frequency);
        if frequency <= 0.0 {
            return None;
        }
        // fio counts a threshold in shares of the size of the job, which has the
        // gaps behind the capacities of zones in it.
        let lbas = zones * self.device.zoned.zone_size_lbas;
        Some(EarlyReset {
            threshold_lbas: (lbas as f64 * threshold) as u64,
            every_writes: (1.0 / frequency) as u64,
        })
    }

    pub(super) fn style(&self, section: &Section) -> Result<WriteStyle, Problem> {
        let options = &section.options;
        let [reads, writes, trims] = options.rw.directions;
        let styles = [
            ("finish", options.finish),
            ("softfinish", options.softfinish),
            ("reset", options.reset && !trims),
        ];
        let mut chosen = styles
            .into_iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| name);
        let Some(name) = chosen.next() else {
            if trims && writes && options.append {
                let origin = options.place(&["zone_append"], &section.origin);
                let what = "is for jobs that write without trims";
                return Err(origin.problem("zone_append", what, "rw=write"));
            }
            return Ok(if options.append {
                WriteStyle::Append
            } else {
                WriteStyle::Write
            });
        };
        if !writes {
            return Ok(WriteStyle::Write);
        }
        let origin = options.place(&[name], &section.origin);
        if let Some(other) = chosen.next() {
            let what = format!("and {other}: one job does one of them");
            return Err(origin.problem(name, what, ""));
        }
        if reads || trims || options.append {
            let what = "is for jobs that only write, without append";
            return Err(origin.problem(name, what, "rw=write or rw=randwrite"));
        }
        Ok(match name {
            "finish" => WriteStyle::Finish,
            "reset" => WriteStyle::Reset,
            _ => {
                let bytes = options.softfinish_granularity;
                let max = self.device.max_transfer;
                let names = ["softfinish_granularity", "softfinish"];
                let lbas = self.lbas(section, &names, bytes, max)?;
                let max_lbas = u32::try_from(max / self.device.lba_bytes).unwrap_or(u32::MAX);
                let how = SoftFinish::new(lbas, Nanos(options.softfinish_pause), max_lbas)
                    .map_err(|error| origin.problem(name, error.to_string(), ""))?;
                WriteStyle::SoftFinish(how)
            }
        })
    }

    /// What a job does by direction; `of_zones`: on zones, as this thread.
    pub(super) fn flows(
        &mut self,
        section: &Section,
        style: WriteStyle,
        of_zones: Option<u32>,
    ) -> Result<[Option<Flow>; 3], Problem> {
        let options = &section.options;
        let mut flows = [None, None, None];
        for direction in Direction::ALL {
            let index = direction as usize;
            if !options.rw.directions[index] {
                continue;
            }
            let sizes = match of_zones {
                Some(thread) if direction == Direction::Trim => {
                    self.check_trim_size(section, thread);
                    Sizes::fixed(1)
                }
                _ => self.sizes(section, direction, style)?,
            };
            flows[index] = Some(Flow {
                sizes,
                bytes_per_second: NonZeroU64::new(options.rate[index]),
                ops_per_second: NonZeroU64::new(options.rate_iops[index]),
                poisson: options.poisson,
            });
        }
        Ok(flows)
    }

    /// A depth above 1 that the engine does not keep. Known once all options of a
    /// job have been read: the engine can be named after the depth.
    pub(super) fn check_depth(&mut self, section: &Section, thread: u32) {
        let options = &section.options;
        if thread > 0 || options.iodepth <= 1 || !options.is_synchronous() {
            return;
        }
        let origin = options.place(&["iodepth"], &section.origin);
        let what = "has no meaning with a synchronous ioengine: one operation at a time";
        let warning = origin.problem("iodepth", what, "");
        if !self.plan.warnings.contains(&warning) {
            self.plan.warnings.push(warning);
        }
    }

    /// A trim is a reset: of another size it does something else than it says.
    fn check_trim_size(&mut self, section: &Section, thread: u32) {
        let options = &section.options;
        let zone = self.device.zone_bytes();
        let is_stated = options.places.iter().any(|(name, _)| *name == "bs");
        let is_alone = !options.rw.directions[1];
        if thread == 0 && is_alone && is_stated && options.bs[2] != (zone, zone) {
            let origin = options.place(&["bs"], &section.origin);
            let what = format!("trims are resets of whole zones and count as {zone} bytes");
            self.plan.warnings.push(origin.problem("bs", what, ""));
        }
    }

    fn sizes(
        &self,
        section: &Section,
        direction: Direction,
        style: WriteStyle,
    ) -> Result<Sizes, Problem> {
        let options = &section.options;
        let index = direction as usize;
        let max = match (direction, style) {
            (Direction::Write, WriteStyle::Append) => self.device.max_append,
            // A range of Dataset Management is as long as its number of blocks says.
            (Direction::Trim, _) if !options.rw.directions[1] => {
                u64::from(u32::MAX) * self.device.lba_bytes
            }
            _ if options.has_block_layer() => u64::MAX,
            _ => self.device.max_transfer,
        };
        let max = max.min(self.device.zoned.zone_capacity_lbas * self.device.lba_bytes);
        let names = ["bs", "bsrange", "bssplit"];
        let mut split = Vec::new();
        for &(bytes, percent) in &options.bssplit[index] {
            split.push((self.lbas(section, &names, bytes, max)?, percent));
        }
        if let (Some(low), Some(high)) = (
            split.iter().map(|(lbas, _)| *lbas).min(),
            split.iter().map(|(lbas, _)| *lbas).max(),
        ) {
            return Ok(Sizes {
                // Positions are aligned to it, whatever the sizes have in common.
                min: low,
                max: high,
                split,
            });
        }
        let (low, high) = options.bs[index];
        Ok(Sizes {
            min: self.lbas(section, &names, low, max)?,
            max: self.lbas(section, &names, high, max)?,
            split,
        })
    }

    /// A size in logical blocks.
    fn lbas(
        &self,
        section: &Section,
        names: &[&str],
        bytes: u64,
        max: u64,
    ) -> Result<u32, Problem> {
        let origin = section.options.place(names, &section.origin);
        let key = names.first().copied().unwrap_or_default();
        let lba = self.device.lba_bytes;
        if bytes == 0 || !bytes.is_multiple_of(lba) {
            let what = format!("{bytes} bytes are no multiple of the logical block of {lba}");
            let valid = "in fio, k is 1024 and kib is 1000 (see kb_base)";
            return Err(origin.problem(key, what, valid));
        }
        if bytes > max {
            let what = match max == self.device.zoned.zone_capacity_lbas * lba {
                true => "more than a zone holds",
                false => "more than one command moves on this device",
            };
            let valid = match section.options.has_block_layer() {
                true => format!("{lba} to {max}"),
                false => format!("{lba} to {max}; engines of the block layer send more in parts"),
            };
            return Err(origin.problem(key, format!("{bytes} bytes are {what}"), valid));
        }
        u32::try_from(bytes / lba)
            .map_err(|_| origin.problem(key, format!("{bytes} bytes are too many"), ""))
    }
}

pub(super) fn recording(options: &JobOptions) -> Recording {
    let log = [&options.lat_log, &options.bw_log, &options.iops_log];
    let directions = DirectionRecording {
        submission_percentiles: options.slat_percentiles,
        completion_percentiles: options.clat_percentiles,
        total_percentiles: options.lat_percentiles,
        bandwidth_interval: Nanos(options.bwavgtime),
        iops_interval: Nanos(options.iopsavgtime),
        confidence: false,
        log: log.iter().any(|log| log.is_some()),
        log_window: Nanos(options.log_avg_msec),
    };
    Recording {
        kinds: false,
        directions: Some(directions),
        issued: None,
    }
}

pub(super) fn logs(section: &Section) -> Logs {
    let options = &section.options;
    let log = |prefix: &Option<String>| {
        let prefix = prefix.as_ref()?;
        let is_unnamed = prefix.is_empty();
        Some(Log {
            prefix: if is_unnamed { &section.name } else { prefix }.clone(),
        })
    };
    Logs {
        latency: log(&options.lat_log),
        bandwidth: log(&options.bw_log),
        iops: log(&options.iops_log),
        issued: options.replay.write_iolog.as_ref().map(|file| IssueLog {
            file: file.clone(),
            device: options
                .filename
                .clone()
                .unwrap_or_else(|| "zonelab".to_owned()),
        }),
        offset: options.log_offset,
        window: Nanos(options.log_avg_msec),
    }
}
