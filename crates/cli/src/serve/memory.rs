//! How much memory this process may have: what the machine has left, what its control groups
//! allow, and its own limit.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Most bytes of a file of the kernel that is read for this.
const MOST: usize = 1 << 16;

/// What this process may have. It is asked for in the sandbox too, where no file of the kernel
/// can be opened any more.
pub(super) struct Measure {
    /// What the machine and the control groups had left when this was made.
    left_then: Option<u64>,
    /// What was in memory of this process then.
    resident_then: u64,
    /// Limits of address space and of data.
    limits: [Option<u64>; 2],
    /// `/proc/self/status`.
    status: Option<File>,
}

impl Measure {
    /// Looks at all there is to see.
    pub(super) fn new() -> Self {
        Self::below(Path::new("/"))
    }

    /// By the files below `root`.
    fn below(root: &Path) -> Self {
        let machine = available_of_machine(root);
        let limits = read(&root.join("proc/self/limits")).unwrap_or_default();
        let limit = |name| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let mut measure = Self {
            left_then: groups(root).into_iter().chain(machine).min(),
            resident_then: 0,
            limits: ["Max address space", "Max data size"].map(limit),
            status: File::open(root.join("proc/self/status")).ok(),
        };
        measure.resident_then = measure.used(RESIDENT);
        measure
    }

    /// A size in `/proc/self/status`; 0 if it cannot be read.
    fn used(&self, name: &str) -> u64 {
        let mut text = [0; 1 << 13];
        let read = self.status.as_ref().map(|file| file.read_at(&mut text, 0));
        let length = read.and_then(Result::ok).unwrap_or(0);
        kib_of(&String::from_utf8_lossy(&text[..length]), name).unwrap_or(0)
    }

    /// Memory that it can have without anybody being ended for it: the least of all that say
    /// something; `None`: nothing does.
    pub(super) fn available_bytes(&self) -> Option<u64> {
        let grown = self.used(RESIDENT).saturating_sub(self.resident_then);
        let left = self.left_then.map(|left| left.saturating_sub(grown));
        left.into_iter().chain(self.left_to_reserve_bytes()).min()
    }

    /// What is left of its limits of address space and of data, which count what is set aside
    /// whether it is used or not; `None`: it has none.
    pub(super) fn left_to_reserve_bytes(&self) -> Option<u64> {
        let limits = self.limits.iter().zip(["VmSize:", "VmData:"]);
        let left = limits.filter_map(|(most, used)| Some((*most)?.saturating_sub(self.used(used))));
        left.min()
    }
}

/// What is in memory of a process and in no file.
const RESIDENT: &str = "RssAnon:";

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
        let found = Measure::below(&root).available_bytes();
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
                "data",
                vec![
                    machine,
                    limits("Max data size             3145728   unlimited  bytes\n"),
                    ("proc/self/status", "VmSize: 9000 kB\nVmData: 2048 kB\n"),
                ],
                Some(mib),
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
