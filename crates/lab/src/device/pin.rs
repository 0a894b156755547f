//! On which processors a thread runs, in real time.

use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use zonelab_host::fio::{Cpus, PlannedJob};

/// Where Linux lists the processors of its NUMA nodes.
const NODES: &str = "/sys/devices/system/node";

/// The processors that the thread of a job may run on, of those that this program
/// may; `None`: any.
///
/// # Errors
/// The machine does not have one of them, or does not let this program use it: a
/// text that names the job and the processor.
pub fn processors(job: &PlannedJob) -> Result<Option<Vec<u32>>, String> {
    let Cpus {
        list,
        nodes,
        all_nodes,
        is_split,
    } = &job.cpus;
    if !job.cpus.any() {
        return Ok(None);
    }
    let wrong = |what: String| format!("job {}: {what}", job.name);
    let usable = sched_getaffinity(None)
        .map_err(|error| wrong(format!("cpus_allowed: asking which there are: {error}")))?;
    // Fits: there are at most 1024.
    let usable: Vec<u32> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| usable.is_set(*cpu))
        .map(|cpu| cpu as u32)
        .collect();
    let mut chosen = match list.iter().find(|cpu| !usable.contains(cpu)) {
        Some(cpu) => {
            let there = named(&usable);
            return Err(wrong(format!(
                "cpus_allowed: there is no processor {cpu} that this program may use; there \
                 are {there}"
            )));
        }
        None => list.clone(),
    };
    if *all_nodes && chosen.is_empty() {
        chosen.clone_from(&usable);
    }
    for node in nodes {
        let of_node = of_node(*node).map_err(|what| wrong(format!("numa_cpu_nodes: {what}")))?;
        chosen.extend(of_node.into_iter().filter(|cpu| usable.contains(cpu)));
    }
    chosen.sort_unstable();
    chosen.dedup();
    if chosen.is_empty() {
        let what = "numa_cpu_nodes: none of their processors may be used by this program";
        return Err(wrong(what.to_owned()));
    }
    if *is_split {
        // As in fio, by the number of the thread among all.
        chosen = vec![chosen[job.number as usize % chosen.len()]];
    }
    Ok(Some(chosen))
}

/// Lets this thread run on these processors only.
///
/// # Errors
/// The system refuses: a text that says so.
pub(crate) fn pin(cpus: &[u32]) -> Result<(), String> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize);
    }
    sched_setaffinity(None, &set).map_err(|error| {
        format!(
            "a thread cannot be kept to processors {}: {error}",
            named(cpus)
        )
    })
}

fn named(cpus: &[u32]) -> String {
    let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
    names.join(", ")
}

/// The processors of a NUMA node.
fn of_node(node: u32) -> Result<Vec<u32>, String> {
    let path = Path::new(NODES).join(format!("node{node}/cpulist"));
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("there is no node {node}: {}: {error}", path.display()))?;
    Cpus::parse_list(text.trim()).ok_or_else(|| format!("{}: {text:?}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_put() {
        let usable = sched_getaffinity(None).expect("Linux says so");
        let first = (0..CpuSet::MAX_CPU).find(|cpu| usable.is_set(*cpu));
        let first = first.expect("there is a processor");
        let set = std::thread::spawn(move || {
            pin(&[first as u32]).expect("it may run there");
            sched_getaffinity(None).expect("Linux says so")
        });
        let set = set.join().expect("it does not panic");
        assert_eq!(set.count(), 1);
        assert!(set.is_set(first));
        assert!(pin(&[]).is_err(), "nowhere");
    }
}
