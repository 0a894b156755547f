//! Beside which others a job runs, on which processors, and with which latencies.

use super::cpus::{self, Cpus};
use super::job::{MICROSECOND, SECOND};
use super::setting::{number, signed, unknown};
use super::value::{self, Wrong};
use crate::workload::steady::Metric;

/// Options of a job about its surroundings. Fields are named after the options; times
/// are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Beside {
    pub(super) flow: u32,
    pub(super) flow_id: i64,
    pub(super) flow_sleep: u64,
    pub(super) latency_target: u64,
    pub(super) latency_window: u64,
    pub(super) latency_percentile: f64,
    pub(super) latency_run: bool,
    pub(super) max_latency: [u64; 3],
    pub(super) steady: Steady,
    pub(super) cpus: Cpus,
}

/// fio's `steadystate`; times in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Steady {
    /// What is to be steady, and whether by its slope.
    pub(super) metric: Option<(Metric, bool)>,
    pub(super) limit: f64,
    pub(super) is_percent: bool,
    pub(super) duration: u64,
    pub(super) ramp: u64,
    pub(super) interval: u64,
}

impl Default for Steady {
    fn default() -> Self {
        Self {
            metric: None,
            limit: 0.0,
            is_percent: false,
            duration: 0,
            ramp: 0,
            interval: SECOND,
        }
    }
}

impl Steady {
    /// `iops:0.3%` and the like.
    fn criterion(&mut self, text: &str) -> Result<(), Wrong> {
        let (name, limit) = text.split_once(':').unwrap_or((text, ""));
        let (base, is_slope) = match name.strip_suffix("_slope") {
            Some(base) => (base, true),
            None => (name, false),
        };
        let metric = match base {
            "iops" => Metric::Iops,
            "bw" => Metric::Bandwidth,
            "lat" => Metric::Latency,
            _ => {
                let valid = ["iops", "iops_slope", "bw", "bw_slope", "lat", "lat_slope"];
                return Err(unknown(name, &valid));
            }
        };
        self.is_percent = limit.ends_with('%');
        self.limit = match (metric, limit.strip_suffix('%')) {
            (_, Some(percent)) => value::float(percent, 0.0, 100.0)?,
            (Metric::Iops, None) => value::float(limit, 0.0, 1e12)?,
            (Metric::Bandwidth, None) => value::integer(limit, 1024)? as f64,
            (Metric::Latency, None) => value::time(limit, MICROSECOND)? as f64,
        };
        self.metric = Some((metric, is_slope));
        Ok(())
    }
}

impl Default for Beside {
    fn default() -> Self {
        Self {
            flow: 0,
            flow_id: 0,
            flow_sleep: 0,
            latency_target: 0,
            latency_window: 0,
            latency_percentile: 100.0,
            latency_run: false,
            max_latency: [0; 3],
            steady: Steady::default(),
            cpus: Cpus::default(),
        }
    }
}

impl Beside {
    /// Applies one of these options; `None`: it is another.
    pub(super) fn apply(&mut self, name: &str, text: &str) -> Option<Result<(), Wrong>> {
        let micros = |text: &str| value::time(text, MICROSECOND);
        let seconds = |text: &str| value::time(text, SECOND);
        Some(match name {
            "flow" => number(text, 0, 1_000).map(|n| self.flow = n as u32),
            "flow_id" => signed(text).map(|n| self.flow_id = n),
            "flow_sleep" => micros(text).map(|ns| self.flow_sleep = ns),
            "latency_target" => micros(text).map(|ns| self.latency_target = ns),
            "latency_window" => micros(text).map(|ns| self.latency_window = ns),
            "steadystate" => self.steady.criterion(text),
            "steadystate_duration" => seconds(text).map(|ns| self.steady.duration = ns),
            "steadystate_ramp_time" => seconds(text).map(|ns| self.steady.ramp = ns),
            "steadystate_check_interval" => seconds(text).map(|ns| self.steady.interval = ns),
            "latency_percentile" => {
                value::float(text, 0.0, 100.0).map(|share| self.latency_percentile = share)
            }
            "max_latency" => value::by_direction(text, &mut self.max_latency, micros),
            "cpus_allowed" => cpus::list(text).map(|list| self.cpus.list = list),
            "cpumask" => value::integer(text, 1024)
                .and_then(cpus::mask)
                .map(|list| self.cpus.list = list),
            "cpus_allowed_policy" => match text {
                "shared" | "split" => {
                    self.cpus.is_split = text == "split";
                    Ok(())
                }
                _ => Err(unknown(text, &["shared", "split"])),
            },
            "numa_cpu_nodes" if text == "all" => {
                self.cpus.all_nodes = true;
                Ok(())
            }
            "numa_cpu_nodes" => cpus::list(text).map(|nodes| self.cpus.nodes = nodes),
            _ => return None,
        })
    }
}
