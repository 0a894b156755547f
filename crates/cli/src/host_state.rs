//! The state of the host, beside results in real time.
//!
//! How fast a processor runs, whether a drive sleeps between commands and what else the
//! machine does move such results by a tenth. They are facts of the host and no results:
//! they stand in a file of their own, and nothing of a run in virtual time depends on them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use zonelab_device::Nanos;
use zonelab_host::stats::Latency;

use crate::devices::Named;

/// Name of the file among the results.
pub(crate) const FILE: &str = "host.json";
/// Version of the format.
const SCHEMA: u32 = 1;
/// Who is so late once in a hundred times has no processor of its own.
const LATE: Nanos = Nanos::from_us(1_000);

/// What can be seen of a host, before and after a run.
pub(crate) struct HostState {
    facts: Value,
}

impl HostState {
    /// Looks at this machine, if work on `device` is in real time.
    pub(crate) fn of_real(device: &str) -> Option<Self> {
        let is_real = match Named::parse(device) {
            Ok(Named::Emulated { is_real, .. }) => is_real,
            Ok(Named::Real(_)) => true,
            Err(_) => false,
        };
        is_real.then(|| Self::before(device))
    }

    /// Looks at this machine, before anything runs on `device`.
    pub(crate) fn before(device: &str) -> Self {
        Self::at(Path::new("/"), device)
    }

    /// The same of the tree at `root`, which is `/` but for tests.
    fn at(root: &Path, device: &str) -> Self {
        let huge = |file: &str| {
            let pages = "sys/kernel/mm/hugepages/hugepages-2048kB";
            number(root, &format!("{pages}/{file}"))
        };
        let facts = json!({
            "schema": SCHEMA,
            "kernel": line(root, "proc/sys/kernel/osrelease"),
            "cpu": cpu(root),
            "memory": {
                "huge_pages_2mib": huge("nr_hugepages"),
                "huge_pages_2mib_free": huge("free_hugepages"),
                "transparent_huge_pages": chosen(root, "sys/kernel/mm/transparent_hugepage/enabled"),
            },
            "clock_source": line(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
            "load_before": load(root),
            "device": of_device(root, device),
        });
        Self { facts }
    }

    /// Adds what the load is when all has been run, in which what was due was handled so
    /// `late`, and warns of a host that was too busy to measure.
    pub(crate) fn after(&mut self, late: Option<&Latency>) {
        self.after_at(Path::new("/"));
        let why = self.too_busy(late);
        self.facts["too_busy"] = json!(why);
        if let Some(why) = why {
            tell!(
                "zonelab: warning: this host was too busy to measure: {why}. What was measured is \
                 the host as much as the drive: again, when it has nothing else to do"
            );
        }
    }

    /// What [`Self::after`] has warned of, if it did.
    pub(crate) fn was_too_busy(&self) -> Option<&str> {
        self.facts.get("too_busy")?.as_str()
    }

    /// Why what was measured says little about a drive, if it does.
    fn too_busy(&self, late: Option<&Latency>) -> Option<String> {
        let late = late.and_then(|late| late.percentile(99.0));
        if let Some(late) = late.filter(|late| *late >= LATE) {
            return Some(format!("what was due was handled {late} late (P99)"));
        }
        let load = self.facts.pointer("/load_before/0")?.as_f64()?;
        let cores = self.facts.pointer("/cpu/count")?.as_u64()?;
        (load >= cores.max(1) as f64).then(|| {
            format!("the load was {load} on {cores} processors before anything was measured")
        })
    }

    fn after_at(&mut self, root: &Path) {
        self.facts["load_after"] = json!(load(root));
    }

    /// As it is written.
    pub(crate) fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(&self.facts).unwrap_or_default();
        text.push('\n');
        text
    }

    /// In a sentence, for the report.
    pub(crate) fn words(&self) -> String {
        let of = |pointer: &str| {
            let value = self
                .facts
                .pointer(pointer)
                .filter(|value| !value.is_null())?;
            Some(match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
        };
        let governors = self
            .facts
            .pointer("/cpu/governors")
            .and_then(Value::as_object);
        let governors = governors.filter(|of| !of.is_empty()).map(|of| {
            let names: Vec<&str> = of.keys().map(String::as_str).collect();
            names.join(", ")
        });
        let load = |when: &str| {
            let load = self.facts.pointer(&format!("/load_{when}/0"));
            load.map(|load| format!("load {load} {when}"))
        };
        let said = |name: &str, value: Option<String>| value.map(|value| format!("{name} {value}"));
        let parts = [
            said("Linux", of("/kernel")),
            of("/cpu/model"),
            said("governor", governors),
            said("boost", of("/cpu/boost")),
            said("huge pages of 2 MiB:", of("/memory/huge_pages_2mib")),
            said("I/O scheduler", of("/device/scheduler")),
            said(
                "power states up to a latency in us of",
                of("/device/power_latency_tolerance_us"),
            ),
            said("PCI power state", of("/device/power_state")),
            load("before"),
            load("after"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!(
            "The host, whose state real time depends on: {}.",
            parts.join("; ")
        )
    }
}

/// What decides how fast processors run.
fn cpu(root: &Path) -> Value {
    let info = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let model = info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    let mut governors: BTreeMap<String, u32> = BTreeMap::new();
    let mut count = 0_u32;
    let cpus = fs::read_dir(root.join("sys/devices/system/cpu")).into_iter();
    for entry in cpus.flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let digits = name.strip_prefix("cpu").unwrap_or_default();
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        count += 1;
        let governor = format!("sys/devices/system/cpu/{name}/cpufreq/scaling_governor");
        if let Some(governor) = line(root, &governor) {
            *governors.entry(governor).or_default() += 1;
        }
    }
    let boost = number(root, "sys/devices/system/cpu/cpufreq/boost").map(|on| on != 0);
    let no_turbo = number(root, "sys/devices/system/cpu/intel_pstate/no_turbo");
    json!({
        "model": model,
        "count": count,
        "governors": governors,
        "frequency_driver": line(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
        "idle_driver": line(root, "sys/devices/system/cpu/cpuidle/current_driver"),
        "boost": boost.or(no_turbo.map(|off| off == 0)),
        "smt": line(root, "sys/devices/system/cpu/smt/control"),
    })
}

/// What the kernel says of the device, as far as it has it.
fn of_device(root: &Path, device: &str) -> Value {
    let mut facts = json!({ "address": device });
    let plain = device.split('?').next().unwrap_or_default();
    if let Some(path) = plain.strip_prefix("linux://") {
        let name = path.rsplit('/').next().unwrap_or_default();
        // `ng0n1` and `nvme0n1` are of the controller `nvme0`.
        let behind = name
            .strip_prefix("nvme")
            .or_else(|| name.strip_prefix("ng"));
        let Some((controller, _)) = behind.and_then(|of| of.split_once('n')) else {
            return facts;
        };
        if !controller.bytes().all(|b| b.is_ascii_digit()) {
            return facts;
        }
        let class = format!("sys/class/nvme/nvme{controller}");
        let block = format!("sys/block/nvme{}/queue", behind.unwrap_or_default());
        facts["model"] = json!(line(root, &format!("{class}/model")));
        facts["firmware"] = json!(line(root, &format!("{class}/firmware_rev")));
        facts["scheduler"] = json!(chosen(root, &format!("{block}/scheduler")));
        // Autonomous power state transitions: to states that take no longer to leave.
        let tolerance = format!("{class}/power/pm_qos_latency_tolerance_us");
        facts["power_latency_tolerance_us"] = json!(line(root, &tolerance));
        let all = "sys/module/nvme_core/parameters/default_ps_max_latency_us";
        facts["default_power_latency_us"] = json!(number(root, all));
        of_pci(root, &format!("{class}/device"), &mut facts);
    } else if let Some(address) = plain.strip_prefix("pcie://") {
        let is_address = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
        let address = address.trim_end_matches('/');
        if !address.is_empty() && address.chars().all(is_address) && !address.contains("..") {
            of_pci(root, &format!("sys/bus/pci/devices/{address}"), &mut facts);
        }
    }
    facts
}

fn of_pci(root: &Path, function: &str, facts: &mut Value) {
    for (name, file) in [
        ("power_state", "power_state"),
        ("runtime_power", "power/control"),
        ("link_speed", "current_link_speed"),
        ("link_width", "current_link_width"),
        ("numa_node", "numa_node"),
    ] {
        facts[name] = json!(line(root, &format!("{function}/{file}")));
    }
}

/// The means of runnable threads over 1, 5 and 15 minutes.
fn load(root: &Path) -> Option<Vec<f64>> {
    let text = line(root, "proc/loadavg")?;
    let means = text.split(' ').take(3).map(|word| word.parse().ok());
    means.collect()
}

/// The first line of a file, if it is there and says something.
fn line(root: &Path, file: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(file)).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

fn number(root: &Path, file: &str) -> Option<u64> {
    line(root, file)?.parse().ok()
}

/// The choice that is in brackets: `none [mq-deadline]`.
fn chosen(root: &Path, file: &str) -> Option<String> {
    let line = line(root, file)?;
    let chosen = line.split_once('[').and_then(|(_, of)| of.split_once(']'));
    Some(chosen.map_or(line.clone(), |(name, _)| name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of its own, removed at the end.
    struct Tree(std::path::PathBuf);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let path = std::env::temp_dir().join(format!("zonelab-host-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            for (name, text) in files {
                let file = path.join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Self(path)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_moves_results_is_recorded_and_what_is_not_there_is_null() {
        let tree = Tree::new(&[
            ("proc/sys/kernel/osrelease", "6.12.1\n"),
            ("proc/cpuinfo", "processor : 0\nmodel name\t: A CPU\n"),
            ("proc/loadavg", "0.50 0.25 0.10 1/100 4242\n"),
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "performance\n",
            ),
            (
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
                "powersave\n",
            ),
            ("sys/devices/system/cpu/cpufreq/boost", "0\n"),
            (
                "sys/block/nvme3n1/queue/scheduler",
                "none [mq-deadline] kyber\n",
            ),
            (
                "sys/class/nvme/nvme3/power/pm_qos_latency_tolerance_us",
                "100000\n",
            ),
            ("sys/class/nvme/nvme3/device/power_state", "D0\n"),
        ]);
        let mut state = HostState::at(&tree.0, "linux:///dev/ng3n1");
        state.after_at(&tree.0);
        let facts: Value = serde_json::from_str(&state.to_json()).unwrap();
        let at = |pointer: &str| facts.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(at("/kernel"), "6.12.1");
        assert_eq!(
            at("/cpu/governors"),
            json!({ "performance": 1, "powersave": 1 })
        );
        assert_eq!(
            (at("/cpu/count"), at("/cpu/boost")),
            (json!(2), json!(false))
        );
        assert_eq!(at("/device/scheduler"), "mq-deadline");
        assert_eq!(at("/device/power_latency_tolerance_us"), "100000");
        assert_eq!(at("/device/power_state"), "D0");
        assert_eq!(at("/load_after"), json!([0.5, 0.25, 0.1]));
        assert_eq!(at("/memory/huge_pages_2mib"), Value::Null);
        let words = state.words();
        assert!(words.contains("governor performance, powersave"), "{words}");
        assert!(words.contains("load 0.5 before") && words.contains("scheduler mq-deadline"));
        // Half a runnable thread on two processors leaves one for who measures; three do not.
        assert_eq!(state.too_busy(None), None);
        let mut late = Latency::new();
        (0..90).for_each(|_| late.record(Nanos::from_us(20)));
        assert_eq!(state.too_busy(Some(&late)), None);
        (0..10).for_each(|_| late.record(Nanos::from_us(4_000)));
        let why = state.too_busy(Some(&late)).unwrap();
        assert!(why.starts_with("what was due was handled ") && why.ends_with(" late (P99)"));
        state.facts["load_before"] = json!([3.2, 1.0, 0.5]);
        let why = state.too_busy(None).unwrap();
        assert!(why.starts_with("the load was 3.2 on 2 processors"), "{why}");
        // A device that the kernel does not have, and names that lead elsewhere.
        for device in [
            "tcp://192.0.2.7:4420/nqn",
            "pcie://../../x",
            "linux:///dev/ng..n1",
        ] {
            let state = HostState::at(&tree.0, device);
            assert_eq!(state.facts["device"], json!({ "address": device }));
        }
    }
}
