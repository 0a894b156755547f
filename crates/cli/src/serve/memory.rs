//! How much memory this process may have: what the machine has left, what its control groups
//! allow, and its own limit.

use std::fs;
use std::path::{Path, PathBuf};

/// Most bytes of a file of the kernel that is read for this.
const MOST: usize = 1 << 16;

/// Memory that this process can have without anybody being ended for it; `None`: nothing says.
pub(super) fn available_bytes() -> Option<u64> {
    available_in(Path::new("/"))
}

/// The same by the files below `root`: the least of all that say something.
fn available_in(root: &Path) -> Option<u64> {
    let machine = available_of_machine(root);
    let limits = groups(root).into_iter().chain(address_space(root));
    limits.chain(machine).min()
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    (text.len() <= MOST).then_some(text)
}

/// The number of KiB behind a word of a file with lines such as `MemAvailable: 12 kB`.
fn kib_of(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// What programs can have without others being written out.
fn available_of_machine(root: &Path) -> Option<u64> {
    kib_of(&read(&root.join("proc/meminfo"))?, "MemAvailable:")
}

/// What is left of the limit of address space (`RLIMIT_AS`).
fn address_space(root: &Path) -> Option<u64> {
    let limits = read(&root.join("proc/self/limits"))?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    let status = read(&root.join("proc/self/status"));
    let used = status.and_then(|text| kib_of(&text, "VmSize:"));
    Some(most.saturating_sub(used.unwrap_or(0)))
}

/// What is left of the limits of each control group that this process is in, and of those
/// around it; version 2 and version 1.
fn groups(root: &Path) -> Vec<u64> {
    let Some(text) = read(&root.join("proc/self/cgroup")) else {
        return Vec::new();
    };
    let mut left = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (top, limit, usage) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max", "memory.current"),
            _ if controllers.split(',').any(|name| name == "memory") => (
                "sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => continue,
        };
        let top = root.join(top);
        // In a container the path may be that of the machine, and the group the top.
        let inner = top.join(path.trim_start_matches('/'));
        let around: Vec<PathBuf> = inner
            .ancestors()
            .take_while(|group| group.starts_with(&top))
            .map(Path::to_owned)
            .collect();
        let of_group = |group: &PathBuf| {
            let number = |name| read(&group.join(name))?.trim().parse::<u64>().ok();
            // "max" is no number, and no limit.
            let most = number(limit)?;
            Some(most.saturating_sub(number(usage).unwrap_or(0)))
        };
        left.extend(around.iter().filter_map(of_group));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of the kernel with this content, below a directory of their own.
    fn available(name: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = std::env::temp_dir().join(format!("zonelab-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = available_in(&root);
        let _ = fs::remove_dir_all(&root);
        found
    }

    #[test]
    fn the_least_limit_of_memory_counts() {
        let machine = (
            "proc/meminfo",
            "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n",
        );
        let limits =
            |most: &'static str| -> (&'static str, &'static str) { ("proc/self/limits", most) };
        let none = limits("Limit Soft Hard Units\nMax address space  unlimited unlimited bytes\n");
        let v2 = ("proc/self/cgroup", "0::/a/b\n");
        let v1 = ("proc/self/cgroup", "5:cpu:/x\n4:cpuset,memory:/docker/1\n");
        let mib = 1 << 20;
        for (name, files, bytes) in [
            ("nothing", vec![], None),
            ("machine", vec![machine, none], Some(4000 << 10)),
            (
                "space",
                vec![
                    machine,
                    limits("Max address space         3145728   unlimited  bytes\n"),
                    ("proc/self/status", "Name: x\nVmSize:\t    1024 kB\n"),
                ],
                Some(2 * mib),
            ),
            (
                "group",
                vec![
                    machine,
                    v2,
                    ("sys/fs/cgroup/a/b/memory.max", "3145728\n"),
                    ("sys/fs/cgroup/a/b/memory.current", "1048576\n"),
                ],
                Some(2 * mib),
            ),
            (
                "around",
                vec![
                    machine,
                    v2,
                    ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                    ("sys/fs/cgroup/a/memory.max", "1048576\n"),
                ],
                Some(mib),
            ),
            (
                // The files of a container are at the top, whatever its path is called.
                "container",
                vec![machine, v2, ("sys/fs/cgroup/memory.max", "1048576\n")],
                Some(mib),
            ),
            (
                "version 1",
                vec![
                    machine,
                    v1,
                    (
                        "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes",
                        "2097152\n",
                    ),
                    (
                        "sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes",
                        "1048576\n",
                    ),
                ],
                Some(mib),
            ),
            (
                "used up",
                vec![
                    machine,
                    v2,
                    ("sys/fs/cgroup/a/b/memory.max", "1\n"),
                    ("sys/fs/cgroup/a/b/memory.current", "5\n"),
                ],
                Some(0),
            ),
        ] {
            assert_eq!(available(name, &files), bytes, "{name}");
        }
    }
}
