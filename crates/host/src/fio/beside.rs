//! Beside which others a job runs, on which processors, and with which latencies.

use super::cpus::{self, Cpus};
use super::job::MICROSECOND;
use super::setting::{number, signed, unknown};
use super::value::{self, Wrong};

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
    pub(super) cpus: Cpus,
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
            cpus: Cpus::default(),
        }
    }
}

impl Beside {
    /// Applies one of these options; `None`: it is another.
    pub(super) fn apply(&mut self, name: &str, text: &str) -> Option<Result<(), Wrong>> {
        let micros = |text: &str| value::time(text, MICROSECOND);
        Some(match name {
            "flow" => number(text, 0, 1_000).map(|n| self.flow = n as u32),
            "flow_id" => signed(text).map(|n| self.flow_id = n),
            "flow_sleep" => micros(text).map(|ns| self.flow_sleep = ns),
            "latency_target" => micros(text).map(|ns| self.latency_target = ns),
            "latency_window" => micros(text).map(|ns| self.latency_window = ns),
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
