//! The library of probes: small workloads that each tell something about a drive.

use zonelab_config::Errors;

use super::design::topic::{APPEND, FINISH, MIXED, OPEN, READ, RESET, REWRITE, WRITE};
use super::known::Known;
use crate::characterize::{Effort, Job, range, series};
use zonelab_lab::run::{self, Point};

/// A small workload, and what of it is compared.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Its name, which nothing else has.
    pub id: String,
    /// The experiment.
    pub text: String,
    /// The same to run.
    pub point: Point,
    /// What is compared, of the job that is called as the probe.
    pub metrics: &'static [&'static str],
    /// About how long a drive takes, in milliseconds: what an answer costs.
    pub cost_ms: f64,
    /// What it is about.
    pub(super) topic: u8,
    /// Whether a fit begins with it.
    pub(super) is_first: bool,
}

/// Of work that goes on: typical and slow operations.
const STEADY: &[&str] = &["lat_mean_us", "lat_p95_us"];
/// Of work that is over soon: every operation counts.
const BRIEF: &[&str] = &["lat_mean_us", "lat_max_us"];
/// Of zone management: the same for every zone.
const EACH: &[&str] = &["lat_mean_us"];

/// Zones that a probe works in at most, one after another.
const ZONES_MOST: u32 = 8;
/// What bursts write, in KiB.
const BURSTS: [u64; 6] = [256, 1024, 4096, 8192, 16_384, 32_768];

/// Every probe that a drive can be asked with.
///
/// # Errors
/// None is expected: what is said of a drive is checked before.
pub fn probes(known: &Known, effort: Effort) -> Result<Vec<Probe>, Errors> {
    let operations = match effort {
        Effort::Quick => 800,
        Effort::Full => 4000,
    };
    probes_of(known, operations)
}

/// The same with so many operations in a probe at most. Values differ the more from run to run
/// the fewer there are.
pub(super) fn probes_of(known: &Known, operations: u64) -> Result<Vec<Probe>, Errors> {
    let mut library = Library {
        known,
        operations,
        probes: Vec::new(),
    };
    library.reads()?;
    library.writes()?;
    library.appends()?;
    library.bursts()?;
    library.mixed()?;
    library.management()?;
    Ok(library.probes)
}

struct Library<'a> {
    known: &'a Known,
    /// Operations of one probe.
    operations: u64,
    probes: Vec<Probe>,
}

/// What one probe is, besides its jobs.
struct Kind {
    topic: u8,
    metrics: &'static [&'static str],
    is_first: bool,
    cost_ms: f64,
    full: Option<u32>,
}

impl Kind {
    const fn of(topic: u8, metrics: &'static [&'static str]) -> Self {
        Self {
            topic,
            metrics,
            is_first: false,
            cost_ms: 50.0,
            full: None,
        }
    }

    const fn first(mut self, is_first: bool) -> Self {
        self.is_first = is_first;
        self
    }

    const fn full(mut self, zones: u32) -> Self {
        self.full = Some(zones);
        self
    }

    const fn costs(mut self, ms: f64) -> Self {
        self.cost_ms = ms;
        self
    }
}

impl Library<'_> {
    fn push(&mut self, id: &str, kind: &Kind, jobs: Vec<Job>) -> Result<(), Errors> {
        let names: Vec<String> = match jobs.len() {
            1 => vec![id.to_owned()],
            _ => vec![id.to_owned(), "beside".to_owned()],
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let full = kind.full.map_or_else(String::new, |zones| {
            format!("full_zones = \"{}\"\n", range(0, zones))
        });
        let jobs: Vec<String> = jobs.into_iter().map(|job| job.0).collect();
        // A real host takes the time that it takes, whatever is said here.
        let text = format!(
            "schema = 1\nid = \"fit\"\ntitle = \"{id}\"\nprofile = \"confznspp\"\n\
             [host]\nsubmit = \"0us\"\ncomplete = \"0us\"\n\n{}\n{}",
            jobs.join("\n"),
            series(id, &names, &full)
        );
        let points = run::points("fit.toml", &text, &[])?;
        self.probes.extend(points.into_iter().map(|point| Probe {
            id: id.to_owned(),
            text: text.clone(),
            point,
            metrics: kind.metrics,
            cost_ms: kind.cost_ms,
            topic: kind.topic,
            is_first: kind.is_first,
        }));
        Ok(())
    }

    /// Depths that the drive grants, of those wished for.
    fn depths(&self, wished: &[u32]) -> Vec<u32> {
        let most = self.known.facts.depth;
        wished
            .iter()
            .copied()
            .filter(|depth| *depth <= most)
            .collect()
    }

    /// Sizes of requests that the drive takes, in KiB.
    fn sizes(&self, most_bytes: u32) -> Vec<u32> {
        let facts = &self.known.facts;
        let zone = facts.zone_bytes();
        let fits = |kib: &u32| {
            let bytes = kib << 10;
            bytes <= most_bytes
                && u64::from(bytes) * 4 <= zone
                && bytes.is_multiple_of(facts.lba_bytes)
        };
        let all = [4, 8, 16, 32, 64, 128, 256, 512];
        all.into_iter().filter(fits).collect()
    }

    /// How many operations of this size are enough, with so many in flight: larger ones
    /// differ less from each other.
    fn operations(&self, kib: u32, depth: u32) -> u64 {
        let of_bytes = (self.operations << 4) / u64::from(kib.max(1));
        of_bytes
            .clamp(32, self.operations)
            .max(u64::from(depth) * 4)
    }

    /// Zones that last as many operations of this size.
    fn zones_for(&self, operations: u64, kib: u32) -> u32 {
        let bytes = operations.saturating_mul(u64::from(kib) << 10);
        let zones = bytes.div_ceil(self.known.facts.zone_bytes().max(1)) + 1;
        let most = ZONES_MOST.min(self.known.facts.zones);
        u32::try_from(zones).unwrap_or(most).min(most)
    }

    fn reads(&mut self) -> Result<(), Errors> {
        let zones = 4.min(self.known.facts.zones);
        let mut shapes: Vec<(u32, u32)> = Vec::new();
        shapes.extend(
            self.depths(&[1, 2, 4, 8, 16, 32, 64, 128])
                .iter()
                .map(|n| (4, *n)),
        );
        let sizes = self.sizes(self.known.facts.max_write_bytes);
        shapes.extend(sizes.iter().skip(1).map(|kib| (*kib, 1)));
        for depth in self.depths(&[8, 32]) {
            let larger = sizes.iter().filter(|kib| matches!(kib, 16 | 64 | 128));
            shapes.extend(larger.map(|kib| (*kib, depth)));
        }
        let deepest = self.depths(&[32]).last().copied().unwrap_or(1);
        let first = [
            (4, 1),
            (4, 8),
            (4, deepest),
            (16, 1),
            (64, 1),
            (128, 1),
            (64, 32),
        ];
        for (kib, depth) in shapes {
            let id = format!("read {kib} KiB, {depth} in flight");
            let many = self.operations(kib, depth);
            let job = Job::new(&id, "read", &range(0, zones))
                .text("block", format!("{kib}KiB"))
                .plain("queue_depth", depth)
                .plain("operations", many);
            let kind = Kind::of(READ, STEADY)
                .full(zones)
                .first(first.contains(&(kib, depth)));
            self.push(&id, &kind, vec![job])?;
        }
        Ok(())
    }

    fn writes(&mut self) -> Result<(), Errors> {
        for kib in self.sizes(self.known.facts.max_write_bytes) {
            let operations = self.operations(kib, 1);
            let id = format!("write {kib} KiB");
            let job = Job::new(&id, "write", &range(0, self.zones_for(operations, kib)))
                .text("block", format!("{kib}KiB"))
                .plain("operations", operations);
            let kind = Kind::of(WRITE, STEADY).first(matches!(kib, 4 | 16 | 64));
            self.push(&id, &kind, vec![job])?;
        }
        let open = self.known.facts.open_zones;
        let mut widths = vec![2, 4, 7];
        widths.retain(|width| *width <= open);
        for width in widths {
            for kib in [4_u32, 16, 64] {
                if u64::from(kib) << 12 > self.known.facts.zone_bytes() {
                    continue;
                }
                let id = format!("write {kib} KiB in {width} zones");
                let operations = self.operations(kib, width);
                let job = Job::new(&id, "write", &range(0, width))
                    .plain("threads", width)
                    .plain("zones_per_thread", 1)
                    .text("block", format!("{kib}KiB"))
                    .plain("operations", operations);
                let kind = Kind::of(WRITE, STEADY).first(width == 4);
                self.push(&id, &kind, vec![job])?;
            }
        }
        Ok(())
    }

    fn appends(&mut self) -> Result<(), Errors> {
        let mut shapes: Vec<(u32, u32)> = Vec::new();
        shapes.extend(
            self.depths(&[1, 2, 4, 8, 32])
                .iter()
                .map(|depth| (4, *depth)),
        );
        let larger = self.sizes(self.known.facts.max_append_bytes);
        for kib in larger.into_iter().filter(|kib| matches!(kib, 16 | 64)) {
            shapes.extend([(kib, 1), (kib, 4)]);
        }
        for (kib, depth) in shapes {
            let id = format!("append {kib} KiB, {depth} in flight");
            let operations = self.operations(kib, depth);
            let job = Job::new(&id, "append", &range(0, self.zones_for(operations, kib)))
                .text("block", format!("{kib}KiB"))
                .plain("queue_depth", depth)
                .plain("operations", operations);
            let kind = Kind::of(APPEND, STEADY).first(kib == 4 && matches!(depth, 1 | 8));
            self.push(&id, &kind, vec![job])?;
        }
        Ok(())
    }

    /// How much a drive takes at once before writes wait for the flash.
    fn bursts(&mut self) -> Result<(), Errors> {
        let block = 64.min(self.known.facts.max_write_bytes >> 10).max(4);
        let zone_kib = self.known.facts.zone_bytes() >> 10;
        for kib in BURSTS {
            let zones = kib.div_ceil(zone_kib.max(1)).max(1);
            let most = u64::from(ZONES_MOST.min(self.known.facts.zones));
            if zones > most {
                continue;
            }
            let id = format!("burst of {kib} KiB");
            let zones = u32::try_from(zones).unwrap_or(1);
            let job = Job::new(&id, "write", &range(0, zones))
                .text("block", format!("{block}KiB"))
                .plain("operations", kib.div_ceil(block.into()));
            let is_first = matches!(kib, 1024 | 8192);
            let kind = Kind::of(WRITE, BRIEF).first(is_first).costs(200.0);
            self.push(&id, &kind, vec![job])?;
        }
        Ok(())
    }

    /// Reads beside writes, from which the order on a die shows.
    fn mixed(&mut self) -> Result<(), Errors> {
        let zones = 2.min(self.known.facts.zones);
        let operations = self.operations;
        for (kib, depth) in [(16, 1), (64, 8)] {
            let id = format!("read 4 KiB, {depth} in flight, beside writes of {kib} KiB");
            let read = Job::new(&id, "read", &range(0, zones))
                .text("block", "4KiB")
                .plain("queue_depth", depth.min(self.known.facts.depth))
                .plain("operations", operations)
                .plain("ends_run", true);
            let write = Job::new("beside", "write", &range(zones, 2))
                .text("block", format!("{kib}KiB"))
                .plain("repeat", true);
            let kind = Kind::of(MIXED, STEADY)
                .full(zones)
                .first(depth == 1)
                .costs(200.0);
            self.push(&id, &kind, vec![read, write])?;
        }
        Ok(())
    }

    fn management(&mut self) -> Result<(), Errors> {
        let capacity = self.known.facts.zone_capacity_lbas;
        let zones = 2.min(self.known.facts.zones);
        let open = Job::new("open", "open", &range(0, zones));
        self.push(
            "open",
            &Kind::of(OPEN, EACH).first(true).costs(5.0),
            vec![open],
        )?;
        let close = Job::new("close", "close", &range(0, zones)).text("fill", "64KiB");
        self.push("close", &Kind::of(OPEN, EACH).costs(5.0), vec![close])?;
        for (work, topic, last) in [
            ("reset", RESET, capacity),
            ("finish", FINISH, capacity.saturating_sub(1)),
        ] {
            let levels = [1, capacity / 4, capacity / 2, last];
            let mut levels: Vec<u64> = levels.into_iter().filter(|level| *level > 0).collect();
            levels.dedup();
            for level in &levels {
                let id = format!("{work} of {level} blocks");
                let job = Job::new(&id, work, &range(0, zones))
                    .plain("fill", level)
                    .text("settle", "2s");
                let is_first = [levels.first(), levels.last()].contains(&Some(level))
                    || *level == capacity / 2;
                let kind = Kind::of(topic, EACH).first(is_first).costs(6000.0);
                self.push(&id, &kind, vec![job])?;
            }
        }
        let id = "write to a zone that was reset";
        let write = Job::new(id, "write", &range(0, zones))
            .text("block", "64KiB")
            .plain("operations", 4)
            .plain("reset_first", true);
        let kind = Kind::of(REWRITE, BRIEF)
            .full(zones)
            .first(true)
            .costs(500.0);
        self.push(id, &kind, vec![write])
    }
}
