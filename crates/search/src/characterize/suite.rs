//! The experiments of the study, for a drive of any geometry.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::facts::Facts;

/// What a drive might write in a second, in bytes: for zones that suffice.
const BYTES_PER_SECOND: u64 = 4 << 30;
/// What is written at least while it is looked at how steady a drive is: some seconds of a fast
/// one.
const STEADY_BYTES: u64 = 6 << 30;
/// Id of the part that formats the drive in another way, which not every one takes.
pub const FORMATS: &str = "formats";
/// Id of the part with a host whose threads share a core.
const SHARED_CORE: &str = "shared-core";
/// Series of reads beside zones that are reset, written again, and reset again.
pub(super) const REWRITES: &str = "read beside rewrites";
/// Zones that are written beside resets.
const BESIDE: u32 = 6;

/// How much is measured.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// Some seconds of a fast drive's time for each observation.
    Quick,
    /// Ten times as long, and more points.
    Full,
}

impl Effort {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    /// How often everything is run, unless it is said.
    #[must_use]
    pub const fn repeats(self) -> u32 {
        match self {
            Self::Quick => 3,
            Self::Full => 5,
        }
    }

    const fn runtime_ms(self) -> u64 {
        match self {
            Self::Quick => 200,
            Self::Full => 2000,
        }
    }

    const fn ramp_ms(self) -> u64 {
        match self {
            Self::Quick => 5,
            Self::Full => 200,
        }
    }
}

/// A part of the suite: an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its id, also that of the experiment.
    pub id: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// The observations that look at it.
    pub observations: &'static [u8],
    /// The experiment file.
    pub text: String,
}

/// Every part that a drive can be measured by, those first that leave it as they find it.
///
/// What compares storage stacks or formats is left out in real time: the host is what it is,
/// and another format would destroy the drive's contents as a whole.
#[must_use]
pub fn suite(facts: &Facts, effort: Effort, repeats: u32) -> Vec<Part> {
    let write = Writer {
        facts,
        effort,
        repeats,
    };
    let mut parts = Vec::new();
    if !facts.reach.is_real() {
        parts.push(write.formats());
        parts.push(write.stacks());
        parts.push(write.shared_core());
    }
    parts.extend([
        write.sizes(),
        write.scaling(),
        write.bandwidth(),
        write.opening(),
        write.resets(),
        write.finishes(),
        write.stability(),
        write.beside_resets(),
    ]);
    parts
}

/// Sizes of requests in bytes that a drive takes, of 4 KiB and more.
pub(super) fn sizes(facts: &Facts, effort: Effort) -> Vec<u32> {
    let all: &[u32] = match effort {
        Effort::Quick => &[4, 8, 32, 128],
        Effort::Full => &[4, 8, 16, 32, 64, 128],
    };
    let most = facts.max_write_bytes.min(facts.max_append_bytes);
    let bytes = all.iter().map(|kib| kib << 10);
    bytes
        .filter(|bytes| *bytes <= most && *bytes % facts.lba_bytes == 0)
        .collect()
}

/// Operations in flight in one zone.
pub(super) fn depths(facts: &Facts, effort: Effort) -> Vec<u32> {
    let all: &[u32] = match effort {
        Effort::Quick => &[1, 4, 8, 32, 128],
        Effort::Full => &[1, 2, 4, 8, 16, 32, 64, 128],
    };
    all.iter().copied().filter(|n| *n <= facts.depth).collect()
}

/// Zones that are used side by side.
pub(super) fn widths(facts: &Facts, effort: Effort) -> Vec<u32> {
    let all: &[u32] = match effort {
        Effort::Quick => &[1, 4, 8],
        Effort::Full => &[1, 2, 4, 8],
    };
    let mut widths: Vec<u32> = all.to_vec();
    widths.retain(|n| *n < facts.open_zones);
    widths.push(facts.open_zones);
    widths
}

/// Writes experiments.
struct Writer<'a> {
    facts: &'a Facts,
    effort: Effort,
    repeats: u32,
}

/// A job, key by key.
pub(crate) struct Job(pub(crate) String);

impl Job {
    /// A job of this name that does this work in these zones.
    pub(crate) fn new(name: &str, work: &str, zones: &str) -> Self {
        Self(format!(
            "[[job]]\nname = \"{name}\"\nwork = \"{work}\"\nzones = \"{zones}\"\n"
        ))
    }

    /// A key with a text.
    pub(crate) fn text(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{key} = \"{value}\"");
        self
    }

    /// A key with a number or a flag.
    pub(crate) fn plain(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        let _ = writeln!(self.0, "{key} = {value}");
        self
    }
}

/// A series of jobs.
pub(crate) fn series(name: &str, jobs: &[&str], more: &str) -> String {
    format!("[[series]]\nname = \"{name}\"\njobs = {jobs:?}\n{more}\n")
}

/// A range of zones.
pub(crate) fn range(first: u32, count: u32) -> String {
    format!("{first}..={}", first + count.max(1) - 1)
}

/// The axis of curves in one zone and in many, each of which has some of its values.
fn in_flight(depths: &[u32], widths: &[u32]) -> String {
    let mut values = [depths, widths].concat();
    values.sort_unstable();
    values.dedup();
    format!("[axis]\nname = \"operations in flight\"\nvalues = {values:?}\n")
}

impl Writer<'_> {
    fn part(
        &self,
        (id, title): (&'static str, &'static str),
        observations: &'static [u8],
        axis: &str,
        (jobs, series): (Vec<Job>, Vec<String>),
    ) -> Part {
        // What a host would take is left out: on a drive in virtual time it is the drive that
        // is asked for, and in real time it is there anyway.
        let mut host = match self.facts.reach.is_real() {
            true => String::new(),
            false => "[host]\nsubmit = \"0us\"\ncomplete = \"0us\"\n".to_owned(),
        };
        if id == SHARED_CORE {
            host.push_str("cores = 1\nslice = \"16ms\"\n");
        }
        let jobs: Vec<String> = jobs.into_iter().map(|job| job.0).collect();
        // Whoever runs it puts the drive in place of the profile, which a file has to name.
        let text = format!(
            "schema = 1\nid = \"{id}\"\ntitle = \"{title}\"\nprofile = \"confznspp\"\n\
             repeats = {}\n{axis}\n{host}\n{}\n{}",
            self.repeats,
            jobs.join("\n"),
            series.concat()
        );
        Part {
            id,
            title,
            observations,
            text,
        }
    }

    fn timed(&self, job: Job) -> Job {
        job.text("ramp", format!("{}ms", self.effort.ramp_ms()))
            .text("runtime", format!("{}ms", self.effort.runtime_ms()))
            .plain("ends_run", true)
    }

    /// Zones that last a job for its time, of at most `most`.
    fn enough(&self, most: u32) -> u32 {
        let ms = self.effort.ramp_ms() + self.effort.runtime_ms();
        let bytes = BYTES_PER_SECOND / 1000 * ms;
        let zones = bytes.div_ceil(self.facts.zone_bytes().max(1)) + 1;
        u32::try_from(zones).unwrap_or(u32::MAX).min(most)
    }

    /// A job with `$x` operations in flight, or as many as said, in one zone after another.
    fn deep(&self, name: &str, work: &str, block: &str, depth: &str) -> Job {
        let zones = range(0, self.enough(self.facts.zones));
        let job = Job::new(name, work, &zones).text("block", block);
        self.timed(job.plain("queue_depth", depth))
    }

    /// A job of `$x` threads with a zone each.
    fn wide(&self, name: &str, work: &str, block: &str) -> Job {
        let open = self.facts.open_zones;
        let each = match work {
            "read" => 1,
            _ => self.enough(self.facts.zones / open),
        };
        let job = Job::new(name, work, &range(0, each * open))
            .text("threads", "$x")
            .plain("zones_per_thread", each)
            .text("block", block);
        self.timed(job)
    }

    fn formats(&self) -> Part {
        let own = self.facts.lba_bytes;
        let other = if own == 512 { 4096 } else { 512 };
        let block = |bytes: u32| format!("{bytes}B");
        let mut jobs = Vec::new();
        let mut all = Vec::new();
        for work in ["write", "append"] {
            for bytes in [own, other] {
                let name = format!("{work} {bytes} B");
                jobs.push(self.deep(&name, work, &block(bytes), "1"));
                let drive = match bytes == own {
                    true => String::new(),
                    false => format!("drive = [\"namespace.lba_size={bytes}B\"]\n"),
                };
                all.push(series(&name, &[&name], &drive));
            }
        }
        let title = (FORMATS, "Logical block formats");
        self.part(title, &[1], "", (jobs, all))
    }

    fn stacks(&self) -> Part {
        let stack = |name: &str, stack: &str| {
            let job = self.deep(name, "write", "4KiB", "1");
            Job(format!("{}\n  [job.host]\n  stack = \"{stack}\"\n", job.0))
        };
        let jobs = vec![stack("SPDK", "spdk"), stack("io_uring", "io_uring-sqpoll")];
        let all = vec![
            series("SPDK", &["SPDK"], ""),
            series("io_uring, none", &["io_uring"], "scheduler = \"none\"\n"),
            series(
                "io_uring, mq-deadline",
                &["io_uring"],
                "scheduler = \"mq-deadline\"\n",
            ),
        ];
        let title = ("stacks", "Storage stacks");
        self.part(title, &[2], "", (jobs, all))
    }

    fn sizes(&self) -> Part {
        let sizes = sizes(self.facts, self.effort);
        let texts: Vec<String> = sizes
            .iter()
            .map(|bytes| format!("{}KiB", bytes >> 10))
            .collect();
        let axis = format!("[axis]\nname = \"request\"\nunit = \"B\"\nvalues = {texts:?}\n");
        let works = ["write", "append"];
        let jobs = works.map(|work| self.deep(work, work, "$x", "1"));
        let all = works.map(|work| series(work, &[work], ""));
        let title = ("sizes", "Request size");
        self.part(title, &[3, 4], &axis, (jobs.into(), all.into()))
    }

    fn scaling(&self) -> Part {
        let depths = depths(self.facts, self.effort);
        let widths = widths(self.facts, self.effort);
        let axis = in_flight(&depths, &widths);
        let mut jobs = Vec::new();
        let mut all = Vec::new();
        for work in ["read", "write", "append"] {
            let wide = format!("{work} wide");
            jobs.push(self.wide(&wide, work, "4KiB"));
            let full = match work {
                "read" => format!("full_zones = \"{}\"\n", range(0, self.facts.open_zones)),
                _ => String::new(),
            };
            all.push(series(&wide, &[&wide], &format!("x = {widths:?}\n{full}")));
        }
        let read = Job::new("read deep", "read", "0..=0").text("block", "4KiB");
        jobs.push(self.timed(read.plain("queue_depth", "\"$x\"")));
        let full = format!("x = {depths:?}\nfull_zones = \"0..=0\"\n");
        all.push(series("read deep", &["read deep"], &full));
        jobs.push(self.deep("append deep", "append", "4KiB", "\"$x\""));
        let deep = format!("x = {depths:?}\n");
        all.push(series("append deep", &["append deep"], &deep));
        if !self.facts.reach.is_real() {
            // One job with many writes in flight to a zone: the scheduler lets one of them go
            // and merges the others meanwhile. Without it a zone takes one write at a time.
            let merged = self.deep("write merged", "write", "4KiB", "\"$x\"");
            jobs.push(Job(format!(
                "{}\n  [job.host]\n  stack = \"io_uring-sqpoll\"\n",
                merged.0
            )));
            let more = format!("{deep}scheduler = \"mq-deadline\"\n");
            all.push(series("write merged", &["write merged"], &more));
        }
        let title = ("scaling", "In one zone and in many");
        self.part(title, &[5, 6, 7], &axis, (jobs, all))
    }

    fn bandwidth(&self) -> Part {
        let mut depths = depths(self.facts, self.effort);
        depths.retain(|depth| *depth <= 32);
        let widths = widths(self.facts, self.effort);
        let axis = in_flight(&depths, &widths);
        let mut jobs = Vec::new();
        let mut all = Vec::new();
        for kib in [8, 16] {
            let block = format!("{kib}KiB");
            let (write, append) = (format!("write {kib} KiB"), format!("append {kib} KiB"));
            jobs.push(self.wide(&write, "write", &block));
            all.push(series(&write, &[&write], &format!("x = {widths:?}\n")));
            jobs.push(self.deep(&append, "append", &block, "\"$x\""));
            all.push(series(&append, &[&append], &format!("x = {depths:?}\n")));
        }
        let title = ("bandwidth", "Bandwidth of larger requests");
        self.part(title, &[8], &axis, (jobs, all))
    }

    fn opening(&self) -> Part {
        let mut jobs = Vec::new();
        let mut all = Vec::new();
        for work in ["write", "append"] {
            for (how, is_explicit) in [("implicit", false), ("explicit", true)] {
                let name = format!("{work}, {how}");
                let job = self.deep(&name, work, "4KiB", "1");
                jobs.push(job.plain("open_first", is_explicit));
                all.push(series(&name, &[&name], ""));
            }
        }
        let zones = range(0, self.facts.zones.min(32));
        jobs.push(Job::new("open", "open", &zones));
        all.push(series("open", &["open"], ""));
        // A zone in which nothing was written is empty again when it is closed.
        jobs.push(Job::new("close", "close", &zones).text("fill", "64KiB"));
        all.push(series("close", &["close"], ""));
        let title = ("opening", "Opening and closing zones");
        self.part(title, &[9], "", (jobs, all))
    }

    /// Levels of occupancy, in logical blocks: the least is one block.
    fn levels(&self, last: u64) -> Vec<u64> {
        let capacity = self.facts.zone_capacity_lbas;
        let mut levels = match self.effort {
            Effort::Quick => vec![1, capacity / 2, last],
            Effort::Full => vec![
                1,
                capacity / 16,
                capacity / 8,
                capacity / 4,
                capacity / 2,
                last,
            ],
        };
        levels.retain(|level| *level > 0);
        levels.dedup();
        levels
    }

    fn occupied(&self, work: &str, last: u64) -> (Job, String) {
        let levels = self.levels(last);
        let axis = format!("[axis]\nname = \"logical blocks written\"\nvalues = {levels:?}\n");
        let (zones, settle) = match self.effort {
            Effort::Quick => (4, "100ms"),
            Effort::Full => (16, "1s"),
        };
        let job = Job::new(work, work, &range(0, zones.min(self.facts.zones)))
            .plain("open_first", true)
            .text("fill", "$x")
            .text("settle", settle);
        (job, axis)
    }

    fn resets(&self) -> Part {
        let (job, axis) = self.occupied("reset", self.facts.zone_capacity_lbas);
        let all = vec![series("reset", &["reset"], "")];
        let title = ("resets", "Reset against occupancy");
        self.part(title, &[10], &axis, (vec![job], all))
    }

    fn finishes(&self) -> Part {
        let last = self.facts.zone_capacity_lbas.saturating_sub(1);
        let (job, axis) = self.occupied("finish", last);
        let all = vec![series("finish", &["finish"], "")];
        let title = ("finishes", "Finish against occupancy");
        self.part(title, &[10], &axis, (vec![job], all))
    }

    fn stability(&self) -> Part {
        let times = match self.effort {
            Effort::Quick => 1,
            Effort::Full => 10,
        };
        let kib = (self.facts.max_append_bytes >> 10).min(128);
        let threads = self.facts.open_zones.min(4);
        // Each zone is reset and written again within the run: before, a drive whose resets are
        // in the way looks stable.
        let capacity = self.facts.zone_capacity_lbas * u64::from(self.facts.lba_bytes);
        let bytes = (2 * capacity).max(STEADY_BYTES / u64::from(threads)) * times;
        let jobs = vec![
            Job::new("read", "read", "0..=3")
                .text("block", "4KiB")
                .plain("queue_depth", 32.min(self.facts.depth))
                .text("ramp", "1s"),
            Job::new("append", "append", &range(4, threads))
                .plain("threads", threads)
                .plain("zones_per_thread", 1)
                .text("block", format!("{kib}KiB"))
                .plain("queue_depth", 8.min(self.facts.depth))
                .text("ramp", "1s")
                .text("bytes", format!("{bytes}B"))
                .plain("ends_run", true)
                .plain("repeat", true),
        ];
        let full = "full_zones = \"0..=3\"\n";
        let all = vec![series("beside", &["read", "append"], full)];
        let title = ("stability", "Stability under write load");
        self.part(title, &[11], "", (jobs, all))
    }

    /// Zones that are reset.
    fn reset_zones(&self) -> u32 {
        let wanted = match self.effort {
            Effort::Quick => 10,
            Effort::Full => 100,
        };
        // Two more are read, and some written.
        wanted.min(self.facts.zones - BESIDE - 2)
    }

    /// Resets beside reads by two threads that poll on one core, as on the study's host.
    fn shared_core(&self) -> Part {
        let count = self.reset_zones();
        let jobs = vec![
            Job::new("reset", "reset", &range(0, count)).plain("ends_run", true),
            Job::new("read", "read", &range(count, 2)).text("block", "4KiB"),
        ];
        let full = |zones: u32| format!("full_zones = \"{}\"\n", range(0, zones));
        let all = vec![
            series("reset alone", &["reset"], &full(count)),
            series("read beside", &["read", "reset"], &full(count + 2)),
        ];
        let title = (SHARED_CORE, "Resets beside reads on one core");
        self.part(title, &[13], "", (jobs, all))
    }

    fn beside_resets(&self) -> Part {
        let count = self.reset_zones();
        let beside = BESIDE.min(self.facts.zones - count - 2);
        let written = range(count + 2, beside);
        let read = range(count, 2);
        let mut jobs = vec![Job::new("reset", "reset", &range(0, count)).plain("ends_run", true)];
        let full = |zones: u32| format!("full_zones = \"{}\"\n", range(0, zones));
        let mut all = vec![series("reset alone", &["reset"], &full(count))];
        for (work, zones) in [("read", &read), ("write", &written), ("append", &written)] {
            let alone = format!("{work} alone");
            jobs.push(self.timed(Job::new(&alone, work, zones).text("block", "4KiB")));
            let of = match work {
                "read" => full(count + 2),
                _ => String::new(),
            };
            all.push(series(&alone, &[&alone], &of));
            // As long as there is something to reset.
            let beside = format!("{work} beside");
            let job = Job::new(&beside, work, zones).text("block", "4KiB");
            jobs.push(match work {
                "read" => job,
                _ => job.plain("repeat", true),
            });
            let of = full(if work == "read" { count + 2 } else { count });
            all.push(series(&beside, &[&beside, "reset"], &of));
        }
        // What a drive leaves to the next write of a zone is paid there.
        let rewrite = Job::new("rewrite", "reset", &range(0, count));
        let rewrite = rewrite.text("fill", "64KiB").plain("repeat", true);
        jobs.push(rewrite);
        let of = format!("full_zones = \"{read}\"\n");
        all.push(series(REWRITES, &["read alone", "rewrite"], &of));
        let title = ("beside-resets", "Resets beside I/O");
        self.part(title, &[12, 13], "", (jobs, all))
    }
}
