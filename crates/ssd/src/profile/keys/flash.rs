//! Flash: what there is of it, how long it takes, and who is next.

use zonelab_config::units::{fmt_duration, fmt_percent};
use zonelab_device::Nanos;

use super::super::key::{
    At, Broken, Key, OfFile, Only, ReadTime, ReadTimes, Section, at, choice, field, flag, number,
    share, size_32, time,
};
use super::{limits, names};
use crate::config::{ChannelArbitration, DiePolicy, DriveConfig, PageRegister, PlaneMode};

/// Reads per program or erase of a weighted queue, if the file does not say.
const READ_WEIGHT: u32 = 4;

/// Suspends of one operation, if the file does not say.
const MAX_SUSPENDS: u32 = 4;

const WEIGHTED: Only = Only::with("die_queue = \"weighted\"", &["media.die_queue"], |config| {
    matches!(config.media.policy, DiePolicy::Weighted { .. })
});

const SUSPENDS: Only = Only::with(
    "program = true or erase = true",
    &["media.suspend.program", "media.suspend.erase"],
    |config| config.media.suspend.program || config.media.suspend.erase,
);

pub(super) fn geometry() -> Section {
    Section {
        path: "geometry",
        title: "the flash",
        text: "",
        rare: false,
        keys: vec![
            number("geometry.channels", at!(geometry.channels))
                .within(1, limits::PLANES)
                .says(
                    "Buses between the controller and the flash. Channels x ways x dies x \
                     planes are at most 65,536.",
                ),
            number("geometry.ways", at!(geometry.ways))
                .or(1)
                .within(1, limits::PLANES)
                .says("Chips on each channel."),
            number("geometry.dies", at!(geometry.dies))
                .or(1)
                .within(1, limits::PLANES)
                .says(
                    "Dies in each chip. A die is what works on one thing at a time, unless its \
                     planes are independent.",
                ),
            number("geometry.planes", at!(geometry.planes))
                .or(1)
                .within(1, limits::PLANES)
                .says("Planes in each die."),
            number("geometry.blocks_per_plane", at!(geometry.blocks_per_plane))
                .derived("what the zones need")
                .within(1, limits::BLOCKS)
                .says(
                    "Erase blocks in each plane, at most 67,108,864 in the drive. More than \
                     the zones need are spares for mappings other than direct.",
                ),
            number("geometry.pages_per_block", at!(geometry.pages_per_block))
                .within(1, limits::PAGES_PER_BLOCK)
                .says("Pages in each erase block."),
            size_32("geometry.page_size", at!(geometry.page_bytes))
                .within(512, limits::PAGE_BYTES)
                .says("What one program writes on one plane, a multiple of the logical block."),
        ],
    }
}

/// A time of the flash, or of its channels, that may be none.
const fn up_to_flash_time() -> (Nanos, Nanos) {
    (Nanos::ZERO, limits::FLASH_TIME)
}

pub(super) fn media() -> Section {
    let mut keys = array_times();
    keys.extend(queues());
    keys.extend(details());
    Section {
        path: "media",
        title: "times of the flash, and who is next",
        text: "",
        rare: false,
        keys,
    }
}

fn array_times() -> Vec<Key> {
    let (none, most) = up_to_flash_time();
    vec![
        OfFile {
            unit: "`slc`, `mlc`, `tlc`, `qlc`",
            default: "none",
            required: None,
            read: |item, about| item.choice(names::CELL).map(|cell| about.cell = Some(cell)),
        }
        .says(
            "media.cell",
            "The kind of cells, which store one bit (`slc`), two (`mlc`), three (`tlc`) or four \
             (`qlc`). It gives typical values to the next three keys.",
        ),
        field(
            "media.read",
            ReadTimes,
            At {
                get: |of: &DriveConfig| {
                    Some(ReadTime {
                        time: of.media.read_ns,
                        parts: of.media.details.read_parts,
                    })
                },
                set: |of, value| {
                    of.media.read_ns = value.time;
                    of.media.details.read_parts = value.parts;
                },
            },
        )
        .typical(|cell| cell.times().read.into())
        .all_ranges("1ns to 4s each", |_, value| read_time(value))
        .says(
            "The time from the cells to the page register (tR): 25, 50, 60 or 140 us by cell. \
             With a list, a page consists of so many equal parts (the lower, middle and upper \
             page of a word line), and a read takes the sum of those that it touches; the planes \
             of a multi-plane read work together.",
        ),
        time("media.program", at!(media.program_ns))
            .typical(|cell| cell.times().program)
            .within(Nanos(1), most)
            .says(
                "The time from the page register to the cells (tPROG): 200, 600, 700 or 2,000 \
                 us by cell.",
            ),
        time("media.erase", at!(media.erase_ns))
            .typical(|cell| cell.times().erase)
            .within(Nanos(1), most)
            .says("The time to erase a block (tBERS): 1.5, 3, 3.5 or 10 ms by cell."),
        time("media.transfer", at!(media.transfer_ns))
            .within(none, most)
            .says(
                "The time that a whole page takes its channel. With `0ns` nothing ever waits \
                 for a channel.",
            ),
        flag("media.partial_transfer", at!(media.partial_transfer))
            .or(false)
            .says("Part of a page takes its share of `transfer`, instead of all of it."),
    ]
}

/// What is wrong with the read time of a page, and with those of its parts.
fn read_time(value: &ReadTime) -> Vec<Broken> {
    let parts = value.parts.iter().flat_map(|parts| parts.times());
    let times = std::iter::once(&value.time).chain(parts);
    let range = Nanos(1)..=limits::FLASH_TIME;
    let [min, max] = [range.start(), range.end()].map(|time| fmt_duration(time.0));
    times
        .filter(|time| !range.contains(time))
        .map(|time| {
            let what = format!("{} is out of range", fmt_duration(time.0));
            (what, format!("at least {min}, at most {max}"))
        })
        .collect()
}

fn queues() -> Vec<Key> {
    vec![
        choice(
            "media.page_register",
            names::PAGE_REGISTER,
            at!(media.page_register),
        )
        .or(PageRegister::Overlap)
        .says(
            "What a plane is held for. `overlap`: for its array time only, as if pages on \
                 their way waited elsewhere. `hold`: there is one register, and the plane is \
                 held during its transfers too. `cache`: there is one register more. While the \
                 plane works, the page of its next program comes, and no further one, and a read \
                 holds the plane until its page has left. `cache` needs `channel_arbitration = \
                 \"ready\"`.",
        ),
        choice("media.planes", names::PLANES, at!(media.planes))
            .or(PlaneMode::Independent)
            .says(
                "What the planes of one die may do at the same time. `independent`: each works \
                 on its own. `multi-plane`: the die does one thing at a time, and consecutive \
                 pages of one command on several of its planes are one operation. `single`: the \
                 die does one thing at a time, with one page.",
            ),
        choice(
            "media.die_queue",
            names::QUEUE,
            At {
                get: |of: &DriveConfig| {
                    Some(match of.media.policy {
                        DiePolicy::Fifo => names::Queue::Fifo,
                        DiePolicy::ReadFirst => names::Queue::ReadFirst,
                        DiePolicy::Weighted { .. } => names::Queue::Weighted,
                    })
                },
                set: |of, queue| {
                    of.media.policy = match queue {
                        names::Queue::Fifo => DiePolicy::Fifo,
                        names::Queue::ReadFirst => DiePolicy::ReadFirst,
                        names::Queue::Weighted => DiePolicy::Weighted { reads: READ_WEIGHT },
                    }
                },
            },
        )
        .or(names::Queue::Fifo)
        .says(
            "Who is next on a die. `fifo`: what came first. `read-first`: no program or erase \
             starts while a read waits. `weighted`: up to `read_weight` reads, then one program \
             or erase, if both wait.",
        ),
        number(
            "media.read_weight",
            at!(media.policy, DiePolicy::Weighted { reads }),
        )
        .or(READ_WEIGHT)
        .at_least(1, "reads would never be served")
        .only(WEIGHTED)
        .says("Reads before one program or erase, if both wait."),
        choice(
            "media.channel_arbitration",
            names::ARBITRATION,
            at!(media.arbitration),
        )
        .or(ChannelArbitration::Ready)
        .says(
            "Who is next on a channel. `ready`: the transfer that was ready first. \
                 `arrival`: a transfer keeps its place in line from the arrival of its command, \
                 as in ConfZNS++ and FEMU, which needs `die_queue = \"fifo\"` and no suspend.",
        ),
    ]
}

fn details() -> [Key; 2] {
    [
        size_32(
            "media.transfer_unit",
            at!(media.details.transfer_unit_bytes),
        )
        .absent("a whole transfer")
        .related("512B to `geometry.page_size`")
        .rare()
        .says(
            "A transfer gives way to others on its channel after so many bytes. It needs \
                 `channel_arbitration = \"ready\"`.",
        ),
        share(
            "media.program_variation",
            at!(media.details.program_variation_ppm),
        )
        .or(0)
        .ranges("up to 100%", |_, share| more_than_all(*share))
        .rare()
        .says(
            "Each program takes up to this share of `program` more or less, evenly \
                 distributed, and the same on every run.",
        ),
    ]
}

/// What is wrong with a share of more than everything.
pub(super) fn more_than_all(ppm: u32) -> Option<Broken> {
    (ppm > 1_000_000).then(|| {
        let what = format!("{} is more than all of it", fmt_percent(ppm));
        (what, "at most 100%".to_owned())
    })
}

pub(super) fn suspend() -> Section {
    let (none, most) = up_to_flash_time();
    Section {
        path: "media.suspend",
        title: "reads interrupt programs and erasures",
        text: "A read that finds its die busy interrupts what runs there.",
        rare: false,
        keys: vec![
            flag("media.suspend.program", at!(media.suspend.program))
                .or(false)
                .says("Programs can be interrupted."),
            flag("media.suspend.erase", at!(media.suspend.erase))
                .or(false)
                .says("Erasures can be interrupted."),
            time("media.suspend.overhead", at!(media.suspend.overhead_ns))
                .or(none)
                .within(none, most)
                .only(SUSPENDS)
                .says("The time that an operation takes to stop, and again to resume."),
            number(
                "media.suspend.max_per_operation",
                at!(media.suspend.max_per_operation),
            )
            .or(MAX_SUSPENDS)
            .ranges("at least 1", |_, most| {
                let what = "with 0 suspends per operation nothing is suspended".to_owned();
                let valid = "use at least 1, or program = false and erase = false".to_owned();
                (*most == 0).then_some((what, valid))
            })
            .only(SUSPENDS)
            .says("How often one operation can be interrupted; then it runs to its end."),
            time("media.suspend.interval", at!(media.suspend.interval_ns))
                .or(none)
                .within(none, most)
                .only(SUSPENDS)
                .rare()
                .says(
                    "An operation can stop only at multiples of this in its array time (between \
                     the pulses of a program); with `0ns` anywhere, for reads that arrive while \
                     it runs.",
                ),
        ],
    }
}
