//! The options of one job, read.

use super::beside::Beside;
use super::engines;
use super::options::{self, Treatment};
use super::placement::PlacementOptions;
use super::setting::{
    distribution, interval, no_verify_state, number, open_zones, percent, percentiles, read_write,
    share, softfinish_pause, split_sizes, sync, tolerates, unknown, verify, verify_pattern,
    write_mode, writes, zero_buffers,
};
use super::text::{Origin, Setting};
use super::trace::ReplayOptions;
use super::value::{self, Amount, Wrong, wrong};
use crate::verify::{Method, Pattern};
use crate::workload::Tolerates;
use crate::workload::contents::{Contents, Filler};
use crate::workload::distribution::Distribution;
use zonelab_config::Problem;

pub(super) const SECOND: u64 = 1_000_000_000;
pub(super) const MICROSECOND: u64 = 1_000;
pub(super) const MILLISECOND: u64 = 1_000_000;

/// Threads of one section, at most.
const MAX_NUMJOBS: u64 = 4_096;
/// Bytes of one operation, at most: what a device or a zone holds decides then.
const MAX_BYTES: u64 = 1 << 40;
/// Operations in flight of one thread, at most: what a queue can hold.
const MAX_IODEPTH: u64 = 65_535;

/// What a job does: `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadWrite {
    /// At random, instead of in order.
    pub(super) random: bool,
    /// By direction: read, write, trim.
    pub(super) directions: [bool; 3],
    /// Operations from one random position on, at least 1.
    pub(super) in_a_row: u32,
    /// What operations in order leave out between them.
    pub(super) hole_bytes: u64,
}

impl ReadWrite {
    /// What fio does if nothing is said.
    pub(super) const READ: Self = Self {
        random: false,
        directions: [true, false, false],
        in_a_row: 1,
        hole_bytes: 0,
    };
}

/// What zones are to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneMode {
    /// Nothing: it works on blocks.
    None,
    /// Parts of a range of blocks.
    Strided,
    /// Those of the device, with their write pointers.
    Zbd,
}

impl ZoneMode {
    /// The value that means it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Strided => "strided",
            Self::Zbd => "zbd",
        }
    }
}

/// Which jobs end with one that ends, under `exitall`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// Those of its group.
    #[default]
    Group,
    /// All, also those that have not begun.
    All,
    /// All that run.
    Stonewall,
}

/// The options of one job. Fields are named after the options.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JobOptions {
    pub(super) rw: ReadWrite,
    pub(super) bs: [(u64, u64); 3],
    pub(super) bssplit: [Vec<(u64, u32)>; 3],
    pub(super) iodepth: u32,
    pub(super) numjobs: u32,
    pub(super) size: Option<Amount>,
    pub(super) io_size: Option<Amount>,
    pub(super) offset: Amount,
    pub(super) offset_increment: Amount,
    pub(super) number_ios: Option<u64>,
    pub(super) loops: u64,
    pub(super) runtime: u64,
    pub(super) time_based: bool,
    pub(super) ramp_time: u64,
    pub(super) startdelay: (u64, u64),
    pub(super) stonewall: bool,
    pub(super) new_group: bool,
    pub(super) group_reporting: bool,
    pub(super) exitall: bool,
    pub(super) exitall_on_error: bool,
    pub(super) exit_what: ExitWhat,
    pub(super) thinktime: u64,
    pub(super) thinktime_blocks: u32,
    pub(super) thinktime_iotime: Option<u64>,
    pub(super) rate: [u64; 3],
    pub(super) rate_iops: [u64; 3],
    pub(super) poisson: bool,
    pub(super) rwmixread: u32,
    pub(super) percentage_random: [u32; 3],
    pub(super) random_distribution: Distribution,
    pub(super) randseed: u64,
    pub(super) percentile_list: Vec<f64>,
    pub(super) clat_percentiles: bool,
    pub(super) lat_percentiles: bool,
    pub(super) slat_percentiles: bool,
    /// `None`: what the device has.
    pub(super) zone_mode: Option<ZoneMode>,
    pub(super) zone_skip: u64,
    pub(super) norandommap: bool,
    /// `rw_sequencer=identical`.
    pub(super) is_identical: bool,
    pub(super) zonesize: Option<u64>,
    pub(super) max_open_zones: Option<u32>,
    pub(super) job_max_open_zones: Option<u32>,
    pub(super) read_beyond_wp: bool,
    pub(super) zonecapacity: Option<u64>,
    pub(super) zonerange: Option<u64>,
    /// Shares of the zones and of the writes; 0: off.
    pub(super) zone_reset_threshold: f64,
    pub(super) zone_reset_frequency: f64,
    /// `flow`, `latency_*`, `cpus_allowed` and the like.
    pub(super) beside: Beside,
    pub(super) fsync: u32,
    pub(super) fdatasync: u32,
    pub(super) end_fsync: bool,
    /// `sync` and `writefua`: writes complete when they can not be lost any more.
    pub(super) sync: bool,
    pub(super) writefua: bool,
    pub(super) wait_for: Option<String>,
    pub(super) tolerates: Tolerates,
    pub(super) fill_device: bool,
    pub(super) verify: Option<Method>,
    pub(super) verify_pattern: Option<Pattern>,
    pub(super) verify_interval: u64,
    pub(super) verify_backlog: u32,
    pub(super) verify_fatal: bool,
    pub(super) verify_only: bool,
    pub(super) do_verify: bool,
    /// `zero_buffers`, `buffer_pattern`, `refill_buffers` and `scramble_buffers`.
    pub(super) contents: Contents,
    pub(super) initial_zone_reset: bool,
    pub(super) append: bool,
    pub(super) finish: bool,
    pub(super) softfinish: bool,
    pub(super) softfinish_granularity: u64,
    pub(super) softfinish_pause: u64,
    pub(super) reset: bool,
    /// `fdp`, `plids`.
    pub(super) placement: PlacementOptions,
    /// `read_iolog`, `replay_*` and `write_iolog`.
    pub(super) replay: ReplayOptions,
    pub(super) filename: Option<String>,
    pub(super) description: Option<String>,
    pub(super) ioengine: String,
    pub(super) lat_log: Option<String>,
    pub(super) bw_log: Option<String>,
    pub(super) iops_log: Option<String>,
    pub(super) log_avg_msec: u64,
    pub(super) log_offset: bool,
    pub(super) bwavgtime: u64,
    pub(super) iopsavgtime: u64,
    pub(super) kb_base: u32,
    /// Where options were set that others are checked against.
    pub(super) places: Vec<(&'static str, Origin)>,
    /// Name that an option gave the job.
    pub(super) name: Option<String>,
}

impl JobOptions {
    /// Applies one option.
    ///
    /// # Errors
    /// It is unknown, unsupported, or its value is wrong.
    pub(super) fn apply(&mut self, setting: &Setting) -> Result<Option<Problem>, Problem> {
        let Setting { key, value, origin } = setting;
        let Some(option) = options::find(key) else {
            let what = format!("unknown option `{}`", value::shorten(key));
            let valid = options::nearest(key).map(|near| format!("did you mean `{near}`?"));
            return Err(origin.problem("", what, valid.unwrap_or_default()));
        };
        if option.treatment != Treatment::Used {
            let changes_nothing = option.changes_nothing(value.as_deref());
            let changes_nothing =
                changes_nothing.map_err(|(what, valid)| origin.problem(key, what, valid))?;
            return match option.treatment {
                _ if changes_nothing => Ok(None),
                Treatment::Unsupported(why) => {
                    Err(origin.problem(key, format!("is not supported: {why}"), ""))
                }
                Treatment::NoMeaning(why) => {
                    let what = format!("has no meaning here: {why}");
                    Ok(Some(origin.problem(key, what, "")))
                }
                Treatment::Used => Ok(None),
            };
        }
        let result = self
            .switch(option.name, value.as_deref())
            .unwrap_or_else(|| match value.as_deref() {
                None | Some("") => Err(wrong("needs a value", format!("{key}=..."))),
                Some(value) => self
                    .pattern(option.name, value)
                    .or_else(|| self.extent(option.name, value))
                    .or_else(|| self.pace(option.name, value))
                    .or_else(|| self.beside.apply(option.name, value))
                    .or_else(|| self.placement.apply(option.name, value))
                    .or_else(|| self.replay.apply(option.name, value, self.kb_base))
                    .unwrap_or_else(|| self.rest(option.name, value)),
            });
        self.places.retain(|(name, _)| *name != option.name);
        self.places.push((option.name, origin.clone()));
        match result {
            Ok(()) if option.name == "ioengine" && engines::does_nothing(&self.ioengine) => {
                let what = "does nothing in fio: here it reads and writes the drive";
                Ok(Some(origin.problem(key, what, "")))
            }
            Ok(()) => Ok(None),
            Err((what, valid)) => Err(origin.problem(key, what, valid)),
        }
    }

    /// Whether the engine waits for each operation.
    pub(super) fn is_synchronous(&self) -> bool {
        engines::is_synchronous(&self.ioengine)
    }

    /// Whether a block layer is between its engine and the device.
    pub(super) fn has_block_layer(&self) -> bool {
        engines::has_block_layer(&self.ioengine)
    }

    /// Options that are on or off.
    fn switch(&mut self, name: &str, value: Option<&str>) -> Option<Result<(), Wrong>> {
        let target = match name {
            "time_based" => &mut self.time_based,
            "stonewall" => &mut self.stonewall,
            "new_group" => &mut self.new_group,
            "group_reporting" => &mut self.group_reporting,
            "exitall" => &mut self.exitall,
            "exitall_on_error" => &mut self.exitall_on_error,
            "clat_percentiles" => &mut self.clat_percentiles,
            "lat_percentiles" => &mut self.lat_percentiles,
            "slat_percentiles" => &mut self.slat_percentiles,
            "read_beyond_wp" => &mut self.read_beyond_wp,
            "latency_run" => &mut self.beside.latency_run,
            "norandommap" => &mut self.norandommap,
            "end_fsync" => &mut self.end_fsync,
            "writefua" => &mut self.writefua,
            "fill_device" => &mut self.fill_device,
            "do_verify" => &mut self.do_verify,
            "verify_fatal" => &mut self.verify_fatal,
            "verify_only" => &mut self.verify_only,
            "refill_buffers" => &mut self.contents.refill,
            "scramble_buffers" => &mut self.contents.scramble,
            "zero_buffers" => return Some(zero_buffers(value, &mut self.contents.fill)),
            // fio saves by default, and job files for it say so or not.
            "verify_state_save" | "verify_state_load" => {
                return Some(no_verify_state(name, value));
            }
            "initial_zone_reset" => &mut self.initial_zone_reset,
            "zone_append" => &mut self.append,
            "finish" => &mut self.finish,
            "softfinish" => &mut self.softfinish,
            "reset" => &mut self.reset,
            "log_offset" => &mut self.log_offset,
            "replay_no_stall" => &mut self.replay.no_stall,
            // Without a value, logs are named after the job.
            "write_lat_log" | "write_bw_log" | "write_iops_log" => {
                let prefix = Some(value.unwrap_or_default().to_owned());
                match name {
                    "write_lat_log" => self.lat_log = prefix,
                    "write_bw_log" => self.bw_log = prefix,
                    _ => self.iops_log = prefix,
                }
                return Some(Ok(()));
            }
            _ => return None,
        };
        Some(value::switch(value).map(|on| *target = on))
    }

    /// What is done, where and how large.
    fn pattern(&mut self, name: &str, text: &str) -> Option<Result<(), Wrong>> {
        let kb_base = self.kb_base;
        let size =
            |text: &str| value::bounded(text, kb_base, 1, MAX_BYTES).map(|bytes| (bytes, bytes));
        Some(match name {
            "rw" => read_write(text, kb_base).map(|rw| self.rw = rw),
            "bs" => {
                self.bssplit = Default::default();
                value::by_direction(text, &mut self.bs, size)
            }
            "bsrange" => value::by_direction(text, &mut self.bs, |part| {
                let (low, high) = part.split_once('-').unwrap_or((part, part));
                let range = (size(low.trim())?.0, size(high.trim())?.0);
                match range.0 <= range.1 {
                    true => Ok(range),
                    false => Err(wrong(format!("{part} ends before it begins"), "low-high")),
                }
            }),
            "bssplit" => split_sizes(text, kb_base).map(|split| self.bssplit = split),
            "percentage_random" => value::by_direction(text, &mut self.percentage_random, percent),
            "random_distribution" => distribution(text).map(|d| self.random_distribution = d),
            "rwmixread" => percent(text).map(|p| self.rwmixread = p),
            "rwmixwrite" => percent(text).map(|p| self.rwmixread = 100 - p),
            "iodepth" => number(text, 1, MAX_IODEPTH).map(|n| self.iodepth = n as u32),
            "numjobs" => number(text, 1, MAX_NUMJOBS).map(|n| self.numjobs = n as u32),
            _ => return None,
        })
    }

    /// From where to where, and for how long.
    fn extent(&mut self, name: &str, text: &str) -> Option<Result<(), Wrong>> {
        let kb_base = self.kb_base;
        let amount = |text: &str| value::amount(text, kb_base);
        Some(match name {
            "size" => amount(text).map(|a| self.size = Some(a)),
            "io_size" => amount(text).map(|a| self.io_size = Some(a)),
            "offset" => amount(text).map(|a| self.offset = a),
            "offset_increment" => amount(text).map(|a| self.offset_increment = a),
            "number_ios" => number(text, 1, u64::MAX).map(|n| self.number_ios = Some(n)),
            "loops" => number(text, 1, u64::from(u32::MAX)).map(|n| self.loops = n),
            "runtime" => value::time(text, SECOND).map(|ns| self.runtime = ns),
            "ramp_time" => value::time(text, SECOND).map(|ns| self.ramp_time = ns),
            "startdelay" => {
                let (low, high) = text.split_once('-').unwrap_or((text, text));
                value::time(low.trim(), SECOND).and_then(|low| {
                    let high = value::time(high.trim(), SECOND)?;
                    self.startdelay = (low, high.max(low));
                    Ok(())
                })
            }
            "zonesize" => value::integer(text, kb_base).map(|n| {
                self.zonesize = (n > 0).then_some(n);
            }),
            "zonecapacity" => value::integer(text, kb_base).map(|n| {
                self.zonecapacity = (n > 0).then_some(n);
            }),
            "zonerange" => value::integer(text, kb_base).map(|n| {
                self.zonerange = (n > 0).then_some(n);
            }),
            "zoneskip" => value::integer(text, kb_base).map(|n| self.zone_skip = n),
            "zone_reset_threshold" => share(text).map(|x| self.zone_reset_threshold = x),
            "zone_reset_frequency" => share(text).map(|x| self.zone_reset_frequency = x),
            "fsync" => writes(text).map(|n| self.fsync = n),
            "sync" => sync(text).map(|on| self.sync = on),
            "fdatasync" => writes(text).map(|n| self.fdatasync = n),
            "verify" => verify(text).map(|method| self.verify = method),
            "verify_pattern" => verify_pattern(text).map(|p| self.verify_pattern = Some(p)),
            "verify_interval" => {
                value::bounded(text, kb_base, 0, 1 << 30).map(|n| self.verify_interval = n)
            }
            "verify_backlog" => writes(text).map(|n| self.verify_backlog = n),
            "buffer_pattern" => {
                verify_pattern(text).map(|p| self.contents.fill = Filler::Pattern(p))
            }
            "max_open_zones" => open_zones(text).map(|n| self.max_open_zones = n),
            "job_max_open_zones" => open_zones(text).map(|n| self.job_max_open_zones = n),
            _ => return None,
        })
    }

    /// How fast, and with which pauses.
    fn pace(&mut self, name: &str, text: &str) -> Option<Result<(), Wrong>> {
        let kb_base = self.kb_base;
        let count = |text: &str| value::integer(text, kb_base);
        Some(match name {
            "rate" => value::by_direction(text, &mut self.rate, count),
            "rate_iops" => value::by_direction(text, &mut self.rate_iops, count),
            "rate_process" => match text {
                "linear" => {
                    self.poisson = false;
                    Ok(())
                }
                "poisson" => {
                    self.poisson = true;
                    Ok(())
                }
                _ => Err(unknown(text, &["linear", "poisson"])),
            },
            "thinktime" => value::time(text, MICROSECOND).map(|ns| self.thinktime = ns),
            "thinktime_blocks" => {
                number(text, 1, u64::from(u32::MAX)).map(|n| self.thinktime_blocks = n as u32)
            }
            "thinktime_iotime" => value::time(text, MICROSECOND).map(|ns| {
                self.thinktime_iotime = (ns > 0).then_some(ns);
            }),
            "softfinish_granularity" => {
                value::bounded(text, kb_base, 1, 1 << 30).map(|n| self.softfinish_granularity = n)
            }
            "softfinish_pause" => softfinish_pause(text).map(|ns| self.softfinish_pause = ns),
            "bwavgtime" => interval(text).map(|ns| self.bwavgtime = ns),
            "iopsavgtime" => interval(text).map(|ns| self.iopsavgtime = ns),
            "log_avg_msec" => value::time(text, MILLISECOND).map(|ns| self.log_avg_msec = ns),
            _ => return None,
        })
    }

    fn rest(&mut self, name: &str, text: &str) -> Result<(), Wrong> {
        match name {
            "name" => self.name = Some(text.to_owned()),
            "wait_for" => self.wait_for = Some(text.to_owned()),
            "continue_on_error" => self.tolerates = tolerates(text)?,
            "rw_sequencer" => match text {
                "sequential" => self.is_identical = false,
                "identical" => self.is_identical = true,
                _ => return Err(unknown(text, &["sequential", "identical"])),
            },
            "description" => self.description = Some(text.to_owned()),
            "filename" => self.filename = Some(text.to_owned()),
            "ioengine" => {
                text.clone_into(&mut self.ioengine);
                engines::check(text)?;
            }
            "randseed" => self.randseed = value::integer(text, self.kb_base)?,
            "kb_base" => {
                self.kb_base = match text {
                    "1000" => 1000,
                    "1024" => 1024,
                    _ => return Err(unknown(text, &["1000", "1024"])),
                }
            }
            "percentile_list" => self.percentile_list = percentiles(text)?,
            "write_mode" => self.append = write_mode(text)?,
            "cmd_type" if text == "nvme" => {}
            "cmd_type" => return Err(unknown(text, &["nvme"])),
            "zonemode" => match text {
                "zbd" => self.zone_mode = Some(ZoneMode::Zbd),
                "none" => self.zone_mode = Some(ZoneMode::None),
                "strided" => self.zone_mode = Some(ZoneMode::Strided),
                _ => return Err(unknown(text, &["zbd", "none", "strided"])),
            },
            "exit_what" => {
                self.exit_what = match text {
                    "group" => ExitWhat::Group,
                    "all" => ExitWhat::All,
                    "stonewall" => ExitWhat::Stonewall,
                    _ => return Err(unknown(text, &["group", "all", "stonewall"])),
                }
            }
            // The table of options and these functions name the same ones: a test checks it.
            _ => return Err(wrong("is not understood", "")),
        }
        Ok(())
    }

    /// Which of these options was set last.
    pub(super) fn last_of(&self, names: &[&str]) -> Option<&'static str> {
        let mut set = self.places.iter().rev().map(|(name, _)| *name);
        set.find(|name| names.contains(name))
    }

    /// Where an option was set, or else where its job begins.
    pub(super) fn place<'a>(&'a self, names: &[&str], section: &'a Origin) -> &'a Origin {
        let found = self
            .places
            .iter()
            .rev()
            .find(|(name, _)| names.contains(name));
        found.map_or(section, |(_, origin)| origin)
    }
}

#[cfg(test)]
mod tests {
    use super::super::setting::split_of;
    use super::*;

    #[test]
    fn every_used_option_is_read_by_something() {
        for option in options::all().filter(|option| option.treatment == Treatment::Used) {
            let values = [
                "1",
                "read",
                "zbd",
                "linear",
                "group",
                "1024",
                "4k/50:8k/50",
                "random",
                "50",
                "nvme",
                "crc32c",
                "0",
                "sequential",
                "all",
                "strict",
                "shared",
                "zone_append",
                "none",
                "time_us,op,offset_bytes,size_bytes",
                "iops:1%",
            ];
            let read = values.iter().any(|value| {
                let setting = Setting {
                    key: option.name.to_owned(),
                    value: Some((*value).to_owned()),
                    origin: Origin::Argument(format!("--{}", option.name)),
                };
                JobOptions::default().apply(&setting).is_ok()
            });
            assert!(read, "{}", option.name);
        }
    }

    #[test]
    fn splits_share_what_is_left() {
        assert_eq!(
            split_of("4k/10:8k:16k", 1024).unwrap(),
            [(4_096, 10), (8_192, 45), (16_384, 45)]
        );
        assert_eq!(
            split_of("4k:8k:16k", 1024).unwrap(),
            [(4_096, 34), (8_192, 33), (16_384, 33)]
        );
        assert!(split_of("4k/60:8k/60", 1024).is_err());
        assert!(split_of("4k/60", 1024).is_err());
    }

    #[test]
    fn not_a_number_is_no_percentile() {
        assert!(percentiles("NaN").is_err());
        assert_eq!(percentiles("99.9:50:50").unwrap(), [50.0, 99.9]);
    }
}
