//! Job files: some that are always run, and some that are drawn from a seed.

use super::Outcome;

/// How much of a result follows from the job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exact {
    /// All of it.
    Yes,
    /// Only sums: the rest depends on what is drawn in the run.
    Total,
}

/// A job file, and what is known of its results beforehand.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The file.
    pub(super) text: String,
    /// Operations and bytes: by direction, or in all.
    pub(super) amounts: Exact,
    /// Resets and zones.
    pub(super) zones: Exact,
    /// Zones are reset by chance (`zone_reset_frequency`).
    pub(super) resets_are_drawn: bool,
    /// Zones are ended before they are full: less is written than they then hold.
    pub(super) ends_zones: bool,
    /// Zones that may be written in part.
    pub(super) max_open: u64,
}

impl Job {
    /// Blocks that a full zone holds.
    pub(super) fn capacity_lbas(&self, outcome: &Outcome) -> u64 {
        let zones = outcome.zones.iter();
        zones
            .map(|(_, written)| *written)
            .max()
            .unwrap_or(0)
            .max(2048)
    }
}

/// What all job files begin with.
const GLOBAL: &str = "[global]\nzonemode=zbd\ndirect=1\nioengine=libaio\n";
/// Most zones written in part that the drive allows.
const MAX_OPEN: u64 = 10;

/// Job files that are always run: each a rule of its own.
const FIXED: &[(&str, Exact, Exact)] = &[
    // A zone after the other, and no reset.
    (
        "[a]\nrw=write\nbs=64k\nsize=3z\niodepth=4\n",
        Exact::Yes,
        Exact::Yes,
    ),
    // Over and over: full zones are reset.
    (
        "[a]\nrw=write\nbs=128k\nsize=2z\nio_size=28m\niodepth=4\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=write\nbs=256k\nsize=2z\nloops=2\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=write\nbs=64k\noffset=5z\nsize=2z\nnumber_ios=70\n",
        Exact::Yes,
        Exact::Yes,
    ),
    // What is left of a zone is smaller than a block.
    (
        "[a]\nrw=write\nbs=48k\nsize=2z\niodepth=2\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=write\nbs=256k\nsize=1z\nnumjobs=3\noffset_increment=2z\ngroup_reporting\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=write\nbs=128k\nsize=2z\n[b]\nstonewall\nrw=read\nbs=64k\nsize=2z\niodepth=8\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=write\nbs=128k\nsize=2z\nnumber_ios=90\n[b]\nstonewall\nrw=read\nbs=64k\nsize=4z\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=write\nbs=256k\nsize=3z\n[b]\nstonewall\nrw=trim\nbs=8m\nsize=3z\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=write\nbs=256k\nsize=2z\n[b]\nstonewall\nrw=write\nbs=64k\nsize=3z\noffset=1z\nnumber_ios=100\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=write\nbs=64k\nsize=2z\nfsync=16\nend_fsync=1\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=write\nbs=256k\nsize=4z\n[b]\nstonewall\nrw=randread\nbs=4k\nsize=4z\nnumber_ios=500\niodepth=16\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=randwrite\nbs=64k\nsize=8z\nio_size=32m\nmax_open_zones=3\n",
        Exact::Yes,
        Exact::Total,
    ),
    (
        "[a]\nrw=randwrite\nbs=128k\nsize=2z\nio_size=40m\niodepth=4\n",
        Exact::Yes,
        Exact::Total,
    ),
];

/// The job files for a seed.
pub(super) fn all(seed: u64, drawn: u64) -> Vec<Job> {
    let fixed = FIXED.iter().map(|&(text, amounts, zones)| Job {
        text: format!("{GLOBAL}{text}"),
        amounts,
        zones,
        resets_are_drawn: false,
        ends_zones: text.contains("bs=48k"),
        max_open: MAX_OPEN,
    });
    let mut draw = Draw(seed);
    fixed.chain((0..drawn).map(|_| job(&mut draw))).collect()
}

/// A job file of one to three jobs, one after the other.
fn job(draw: &mut Draw) -> Job {
    let mut job = Job {
        text: GLOBAL.to_owned(),
        amounts: Exact::Yes,
        zones: Exact::Yes,
        resets_are_drawn: false,
        ends_zones: false,
        max_open: MAX_OPEN,
    };
    // Later jobs mostly work where the first one wrote.
    let (offset, zones) = (draw.below(8), 1 + draw.below(4));
    let place = format!("offset={offset}z\nsize={zones}z\n");
    for number in 0..1 + draw.below(3) {
        job.text += &format!("[j{number}]\n{place}");
        if number > 0 {
            job.text += "stonewall\n";
        }
        let depth = [1, 2, 4, 8][draw.below(4) as usize];
        let bs = [16, 32, 64, 128, 256][draw.below(5) as usize];
        job.text += &format!("iodepth={depth}\n");
        match if number == 0 {
            draw.below(6)
        } else {
            draw.below(10)
        } {
            0 | 1 => job.text += &format!("rw=write\nbs={bs}k\n"),
            2 => {
                let count = 1 + draw.below(150);
                job.text += &format!("rw=write\nbs={bs}k\nnumber_ios={count}\n");
            }
            3 => {
                let mib = 1 + draw.below(30);
                job.text += &format!("rw=write\nbs={bs}k\nio_size={mib}m\n");
            }
            4 => {
                let (mib, open) = (1 + draw.below(24), 1 + draw.below(4));
                job.zones = Exact::Total;
                // The limit is one for all jobs of a device.
                job.text += &format!("rw=randwrite\nbs={bs}k\nio_size={mib}m\n");
                if !job.text.contains("max_open_zones") && number == 0 {
                    job.text = job
                        .text
                        .replace("[j0]", &format!("max_open_zones={open}\n[j0]"));
                }
            }
            5 => {
                let (mib, percent) = (4 + draw.below(20), 10 + draw.below(80));
                job.amounts = Exact::Total;
                job.zones = Exact::Total;
                // Reads need something to read.
                job.text += &format!("rw=randrw\nrwmixread={percent}\nbs={bs}k\nio_size={mib}m\n");
                if number == 0 {
                    job.text = job.text.replace(
                        "[j0]",
                        &format!("[fill]\nrw=write\nbs=256k\n{place}[j0]\nstonewall"),
                    );
                }
            }
            6 => job.text += &format!("rw=read\nbs={bs}k\n"),
            7 => {
                let count = 1 + draw.below(300);
                job.text += &format!("rw=randread\nbs={bs}k\nnumber_ios={count}\n");
            }
            8 => job.text += "rw=trim\nbs=8m\n",
            _ => {
                let count = 1 + draw.below(100);
                job.resets_are_drawn = true;
                job.zones = Exact::Total;
                job.text += &format!(
                    "rw=randwrite\nbs={bs}k\nnumber_ios={count}\nzone_reset_threshold=0.2\n\
                     zone_reset_frequency=0.1\n"
                );
            }
        }
    }
    // How many reads there are to be had depends on which zones hold how much.
    if job.zones == Exact::Total && job.text.contains("rw=read\n") {
        job.amounts = Exact::Total;
    }
    job
}

/// Numbers from a seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
