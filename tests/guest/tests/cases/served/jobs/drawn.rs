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
    // What is left of a zone of 8 MiB is smaller than a block: fio goes on from the
    // first zone on, and resets a zone more than it writes.
    (
        "[a]\nrw=write\nbs=48k\nsize=2z\niodepth=2\n",
        Exact::Yes,
        Exact::Total,
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
        "[a]\nrw=write\nbs=256k\nsize=2z\n[b]\nstonewall\n\
         rw=write\nbs=64k\nsize=3z\noffset=1z\nnumber_ios=100\n",
        Exact::Yes,
        Exact::Yes,
    ),
    (
        "[a]\nrw=write\nbs=64k\nsize=2z\nfsync=16\nnumber_ios=100\n",
        Exact::Yes,
        Exact::Yes,
    ),
    // Whether a flush follows the last write depends on what ends the job.
    (
        "[a]\nrw=write\nbs=64k\nsize=2z\nfsync=16\n",
        Exact::Yes,
        Exact::Yes,
    ),
    // fio counts neither of these.
    (
        "[a]\nrw=write\nbs=64k\nsize=2z\nfdatasync=16\nend_fsync=1\n",
        Exact::Yes,
        Exact::Yes,
    ),
    // What the first job leaves of a zone is too small for the second, which goes on
    // from its first zone on until it has done all of its size.
    (
        "[a]\nrw=write\nbs=32k\noffset=4z\nsize=3z\nnumber_ios=97\n[b]\nstonewall\n\
         rw=write\nbs=256k\noffset=4z\nsize=3z\nnumber_ios=107\niodepth=2\n",
        Exact::Yes,
        Exact::Total,
    ),
    (
        "[a]\nrw=write\nbs=256k\nsize=4z\n[b]\nstonewall\n\
         rw=randread\nbs=4k\nsize=4z\nnumber_ios=500\niodepth=16\n",
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
    // A limit of zones for each thread: over full zones each resets as many.
    (
        "[a]\nrw=write\nbs=256k\nsize=16z\n[b]\nstonewall\nrw=randwrite\nbs=4k\nsize=16z\n\
         number_ios=60\nnumjobs=4\njob_max_open_zones=2\ngroup_reporting\n",
        Exact::Yes,
        Exact::Total,
    ),
    // Reads in order with holes, and at the same place.
    (
        "[a]\nrw=write\nbs=256k\nsize=3z\n[b]\nstonewall\nrw=read:64k\nbs=64k\nsize=1z\n\
         number_ios=20\n[c]\nstonewall\nrw=randread:4\nrw_sequencer=identical\nbs=16k\n\
         size=3z\nnumber_ios=100\n",
        Exact::Yes,
        Exact::Yes,
    ),
];

/// The job files for a seed.
pub(super) fn all(seed: u64, drawn: u64) -> Vec<Job> {
    let fixed = FIXED.iter().map(|&(text, amounts, zones)| Job {
        text: format!("{GLOBAL}{text}"),
        amounts,
        zones,
        resets_are_drawn: false,
        ends_zones: text.contains("48k"),
        max_open: MAX_OPEN,
    });
    let mut draw = Draw(seed);
    fixed.chain((0..drawn).map(|_| job(&mut draw))).collect()
}

/// A job file of one to three jobs, one after the other. Once what zones hold
/// depends on chance, jobs end by what they do and not by the zones.
fn job(draw: &mut Draw) -> Job {
    let mut job = Job {
        text: GLOBAL.to_owned(),
        amounts: Exact::Yes,
        zones: Exact::Yes,
        resets_are_drawn: false,
        ends_zones: false,
        max_open: MAX_OPEN,
    };
    // Later jobs work where the first one wrote.
    let (offset, zones) = (draw.below(8), 1 + draw.below(4));
    let place = format!("offset={offset}z\nsize={zones}z\n");
    let count = 1 + draw.below(3);
    for number in 0..count {
        let depth = [1, 2, 4, 8][draw.below(4) as usize];
        let write_kib = [16, 32, 64, 128, 256][draw.below(5) as usize];
        let read_kib = [4, 16, 64, 128][draw.below(4) as usize];
        let (ops, mib) = (1 + draw.below(150), 1 + draw.below(24));
        let kind = match (number, job.zones) {
            (0, _) => draw.below(6),
            (_, Exact::Yes) => draw.below(10),
            (_, Exact::Total) => 3 + draw.below(5),
        };
        let options = match kind {
            0 | 1 => "rw=write\n".to_owned(),
            2 => format!("rw=write\nnumber_ios={ops}\n"),
            3 => format!("rw=write\nio_size={mib}m\n"),
            4 => {
                job.zones = Exact::Total;
                if number == 0 {
                    // The limit is one for all jobs of a device.
                    job.max_open = 1 + draw.below(4);
                    job.text += &format!("max_open_zones={}\n", job.max_open);
                }
                format!("rw=randwrite\nio_size={mib}m\n")
            }
            5 => {
                (job.amounts, job.zones) = (Exact::Total, Exact::Total);
                if number == 0 {
                    // Reads need something to read.
                    job.text += &format!("[fill]\nrw=write\nbs=256k\n{place}");
                }
                let percent = 10 + draw.below(80);
                format!("rw=randrw\nrwmixread={percent}\nio_size={mib}m\n")
            }
            6 => format!("rw=randread\nnumber_ios={ops}\n"),
            7 => {
                (job.resets_are_drawn, job.zones) = (true, Exact::Total);
                format!(
                    "rw=randwrite\nnumber_ios={ops}\nzone_reset_threshold=0.2\n\
                     zone_reset_frequency=0.1\n"
                )
            }
            8 => "rw=read\n".to_owned(),
            _ => "rw=trim\n".to_owned(),
        };
        job.text += &format!("[j{number}]\nstonewall\n{place}iodepth={depth}\n{options}");
        job.text += &match kind {
            9 => "bs=8m\n".to_owned(),
            6 | 8 => format!("bs={read_kib}k\n"),
            _ => format!("bs={write_kib}k\n"),
        };
    }
    // Trims take what was written.
    job.ends_zones = count > 1;
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
