//! What Zone Finish and Zone Reset do to the flash.

use zonelab_device::Nanos;

use super::super::key::{At, Key, Need, Only, Section, at, choice, flag, number, size_32, time};
use super::front_end::CORES;
use super::{MAX_HOLD, limits, names};
use crate::config::{
    DriveConfig, EraseExtent, EraseWhen, Evaluate, FillExtent, FinishConfig, Thresholds, Victim,
};

/// A fill of which no key is read yet.
pub(super) const FILL: FinishConfig = FinishConfig::Fill {
    granularity_bytes: 0,
    pause_ns: Nanos::ZERO,
    yield_ns: None,
    buffered: false,
    takes_core: false,
    extent: FillExtent::Zone,
};

const FILLS: Only = Only::with("design = \"fill\"", &["finish.design"], |config| {
    matches!(config.finish, FinishConfig::Fill { .. })
});

const BUFFERED: Only = Only::with("path = \"buffer\"", &["finish.path"], |config| {
    config.finish.is_buffered()
});

const HAS_CORES: Need = Need {
    what: "without firmware cores there are none to take",
    ..CORES
};

const YIELDS: Only = Only::with(
    "yield_to_host = true",
    &["finish.yield_to_host"],
    |config| {
        matches!(
            config.finish,
            FinishConfig::Fill {
                yield_ns: Some(_),
                ..
            }
        )
    },
);

const ASYNCHRONOUS: Only = Only::with("timing = \"asynchronous\"", &["reset.timing"], |config| {
    config.reset.erase != EraseWhen::Synchronous
});

const PREEMPTS: Only = Only::with("preemptive = true", &["reset.preemptive"], |config| {
    config.reset.preempt_ns.is_some()
});

const COUNTS: Only = Only::with("erase_at = \"thresholds\"", &["reset.erase_at"], |config| {
    matches!(config.reset.erase, EraseWhen::Thresholds(_))
});

const HAS_BUFFER: Need = Need {
    holds: |config| config.write_buffer.is_some(),
    what: "without a write buffer there is no drain to pause",
    valid: "set write_buffer.mode = \"write-back\", or leave this key out",
    page: "a write buffer",
};

pub(super) fn finish() -> Section {
    let mut keys = vec![
        choice(
            "finish.design",
            names::FINISH,
            At {
                get: |of: &DriveConfig| {
                    Some(match of.finish {
                        FinishConfig::Fill { .. } => names::Finish::Fill,
                        FinishConfig::Metadata => names::Finish::Metadata,
                        FinishConfig::AtFold => names::Finish::AtFold,
                    })
                },
                set: |of, design| {
                    of.finish = match design {
                        names::Finish::Fill => FILL,
                        names::Finish::Metadata => FinishConfig::Metadata,
                        names::Finish::AtFold => FinishConfig::AtFold,
                    }
                },
            },
        )
        .or(names::Finish::Fill)
        .says(
            "What a finish does. `fill`: the rest of the zone is programmed. `metadata`: only \
             its state changes. `at-fold`: the rest of the zone is programmed when the zone is \
             folded from the SLC cache, and the finish completes when all that the host wrote is \
             in that cache, or in a protected write buffer ([models/slc-cache.md](models/slc-cache.md)).",
        ),
        size_32(
            "finish.granularity",
            at!(finish, FinishConfig::Fill { granularity_bytes }),
        )
        .follows("a page on each plane of a zone", |config| {
            Some(stripe_bytes(config))
        })
        .related("a multiple of the page; with `path = \"buffer\"`, of the logical block")
        .only(FILLS)
        .says("The size of one device write."),
        time("finish.pause", at!(finish, FinishConfig::Fill { pause_ns }))
            .or(Nanos::ZERO)
            .within(Nanos::ZERO, limits::TIME)
            .only(FILLS)
            .says("The time between one device write and the next."),
    ];
    keys.extend(yielding());
    Section {
        path: "finish",
        title: "what Zone Finish does to the flash",
        text: "The designs are explained in [models/finish.md](models/finish.md).",
        rare: false,
        keys,
    }
}

/// One page on each plane of a zone.
fn stripe_bytes(config: &DriveConfig) -> u32 {
    let (geometry, zones) = (&config.geometry, &config.zones);
    [zones.channels, zones.ways, geometry.dies, geometry.planes]
        .into_iter()
        .try_fold(geometry.page_bytes, u32::checked_mul)
        // Too large for one device write: then it is one page after the other.
        .unwrap_or(geometry.page_bytes)
}

fn yielding() -> [Key; 5] {
    [
        flag(
            "finish.yield_to_host",
            At {
                get: |of: &DriveConfig| match of.finish {
                    FinishConfig::Fill { yield_ns, .. } => Some(yield_ns.is_some()),
                    FinishConfig::Metadata | FinishConfig::AtFold => None,
                },
                set: |of, yields| {
                    if let FinishConfig::Fill { yield_ns, .. } = &mut of.finish {
                        *yield_ns = yields.then_some(MAX_HOLD);
                    }
                },
            },
        )
        .or(false)
        .only(FILLS)
        .says(
            "A device write waits while host I/O is in flight in the group of the zone; with \
             `path = \"buffer\"`, while data of the host is being programmed or is on its way to \
             it.",
        ),
        time(
            "finish.max_hold",
            at!(finish, FinishConfig::Fill { yield_ns }),
        )
        .or(MAX_HOLD)
        .within(Nanos::ZERO, limits::TIME)
        .only(FILLS)
        .only(YIELDS)
        .says(
            "A device write waits at most this long, so that a busy host cannot keep a finish from \
                 its end.",
        ),
        choice(
            "finish.path",
            names::PATH,
            at!(finish, FinishConfig::Fill { buffered }),
        )
        .or(false)
        .only(FILLS)
        .rare()
        .says(
            "Which way device writes take. `flash`: to the dies, when the buffer has \
                 nothing of the zone any more. `buffer`: they join the admission queue of \
                 the write buffer, behind what waits there, and the finish completes when all of the zone is \
                 programmed; this needs a write buffer.",
        ),
        flag(
            "finish.takes_core",
            at!(finish, FinishConfig::Fill { takes_core }),
        )
        .or(false)
        .only(FILLS)
        .only(BUFFERED)
        .needs(HAS_CORES)
        .rare()
        .says(
            "A device write takes a firmware core for as long as a write of the host of that \
             size does; the next begins after it.",
        ),
        choice(
            "finish.extent",
            names::FILL_EXTENT,
            at!(finish, FinishConfig::Fill { extent }),
        )
        .or(FillExtent::Zone)
        .only(FILLS)
        .rare()
        .says(
            "How much is filled. `zone`: all of the zone that was not written. `elements`: \
                 storage elements that were written in part; the zone gives back the others, and \
                 has no flash there until it is reset. This needs `mapping.design` `chunk` or \
                 `stripe`.",
        ),
    ]
}

pub(super) fn reset() -> Section {
    let mut keys = erasing();
    keys.extend([
        flag(
            "reset.preemptive",
            At {
                get: |of: &DriveConfig| Some(of.reset.preempt_ns.is_some()),
                set: |of, holds| of.reset.preempt_ns = holds.then_some(MAX_HOLD),
            },
        )
        .or(false)
        .says(
            "Blocks are erased one by one, and each waits until the host wants nothing of its \
             plane. It is not for erasure at a write.",
        ),
        time("reset.max_hold", at!(reset.preempt_ns))
            .or(MAX_HOLD)
            .within(Nanos::ZERO, limits::TIME)
            .only(PREEMPTS)
            .says("The erasure of a block waits at most this long."),
    ]);
    Section {
        path: "reset",
        title: "what Zone Reset does to the flash",
        text: "The designs are explained in [models/reset.md](models/reset.md).",
        rare: false,
        keys,
    }
}

fn erasing() -> Vec<Key> {
    vec![
        choice(
            "reset.timing",
            names::TIMING,
            At {
                get: |of: &DriveConfig| {
                    Some(match of.reset.erase {
                        EraseWhen::Synchronous => names::Timing::Synchronous,
                        _ => names::Timing::Asynchronous,
                    })
                },
                set: |of, timing| {
                    of.reset.erase = match timing {
                        names::Timing::Synchronous => EraseWhen::Synchronous,
                        names::Timing::Asynchronous => EraseWhen::FirstZoneWrite,
                    }
                },
            },
        )
        .or(names::Timing::Synchronous)
        .says(
            "When a reset completes. `synchronous`: when the blocks are erased. \
             `asynchronous`: at once.",
        ),
        choice(
            "reset.erase_at",
            names::ERASE_AT,
            At {
                get: |of: &DriveConfig| match of.reset.erase {
                    EraseWhen::Synchronous => None,
                    EraseWhen::FirstZoneWrite => Some(names::EraseAt::FirstWrite),
                    EraseWhen::FirstBlockWrite => Some(names::EraseAt::FirstBlockWrite),
                    EraseWhen::Background => Some(names::EraseAt::Background),
                    EraseWhen::Thresholds(_) => Some(names::EraseAt::Thresholds),
                },
                set: |of, at| {
                    of.reset.erase = match at {
                        names::EraseAt::FirstWrite => EraseWhen::FirstZoneWrite,
                        names::EraseAt::FirstBlockWrite => EraseWhen::FirstBlockWrite,
                        names::EraseAt::Background => EraseWhen::Background,
                        names::EraseAt::Thresholds => EraseWhen::Thresholds(THRESHOLDS),
                    }
                },
            },
        )
        .or(names::EraseAt::FirstWrite)
        .only(ASYNCHRONOUS)
        .says(
            "When the blocks are erased. `first-write`: at the first write to the zone, all \
             its blocks. `first-block-write`: at the first write to each block, or storage \
             element. `background`: now, beside host I/O. `thresholds`: as the numbers of free \
             and invalid zones say; not with direct mapping, nor with conventional namespaces.",
        ),
        choice("reset.extent", names::EXTENT, at!(reset.extent))
            .or(EraseExtent::Partial)
            .says(
                "Which blocks are erased. `partial`: those with at least one programmed page; \
                 of storage elements, all blocks of those that were written. `full`: all of the \
                 zone.",
            ),
    ]
}

/// Thresholds of which no key is read yet.
const THRESHOLDS: Thresholds = Thresholds {
    free_zones: 0,
    invalid_zones: None,
    evaluate: Evaluate::Allocation,
    zones_at_once: None,
    victim: Victim::Oldest,
    adapt: None,
};

pub(super) fn thresholds() -> Section {
    Section {
        path: "reset.thresholds",
        title: "the zone mapping method and preemptive zone reset",
        text: "",
        rare: false,
        keys: vec![
            number(
                "reset.thresholds.free_zones",
                at!(reset.erase, EraseWhen::Thresholds => free_zones),
            )
            .or(0)
            .within(0, limits::ZONES)
            .only(COUNTS)
            .says(
                "With as many free physical zones or fewer, invalid ones are erased whole \
                     and the host waits. It is at most the physical zones of a group.",
            ),
            number(
                "reset.thresholds.invalid_zones",
                at!(reset.erase, EraseWhen::Thresholds => invalid_zones),
            )
            .absent("never")
            .within(1, limits::ZONES)
            .only(COUNTS)
            .rare()
            .says(
                "With as many invalid physical zones or more, rows of their blocks are \
                     erased while nothing of the host is pending.",
            ),
            choice(
                "reset.thresholds.evaluate",
                names::EVALUATE,
                at!(reset.erase, EraseWhen::Thresholds => evaluate),
            )
            .or(Evaluate::Allocation)
            .only(COUNTS)
            .says(
                "When free zones are counted. `allocation`: before a zone gets flash. \
                     `command`: at each read and write. `change`: whenever the numbers change.",
            ),
            number(
                "reset.thresholds.zones_at_once",
                at!(reset.erase, EraseWhen::Thresholds => zones_at_once),
            )
            .absent("until more than `free_zones` are free")
            .within(1, limits::ZONES)
            .only(COUNTS)
            .rare()
            .says("How many invalid zones are erased whole before the host goes on."),
            choice(
                "reset.thresholds.victim",
                names::VICTIM,
                at!(reset.erase, EraseWhen::Thresholds => victim),
            )
            .or(Victim::Oldest)
            .only(COUNTS)
            .says(
                "Which invalid zone is erased first. `oldest`: the one that was reset \
                     first. `least-worn`: the one whose blocks were erased least.",
            ),
            time(
                "reset.thresholds.adapt",
                at!(reset.erase, EraseWhen::Thresholds => adapt),
            )
            .absent("off")
            .within(Nanos(1), limits::TIME)
            .only(COUNTS)
            .rare()
            .says(
                "Rows wait for pauses of the host that they fit in, as long as enough \
                     zones are free for the rate at which zones get flash; what was seen of both \
                     loses half its weight in this time \
                     ([reset](models/reset.md#adaptive-thresholds)). It needs `invalid_zones`.",
            ),
        ],
    }
}

pub(super) fn bookkeeping() -> Section {
    let none = Nanos::ZERO;
    Section {
        path: "reset.bookkeeping",
        title: "what a reset costs the firmware",
        text: "",
        rare: false,
        keys: vec![
            time(
                "reset.bookkeeping.base",
                at!(reset.bookkeeping, Some => base_ns),
            )
            .or(none)
            .within(none, limits::TIME)
            .says(
                "The time for any zone. Zones follow one another, and the reset completes \
                     when it is done.",
            ),
            time(
                "reset.bookkeeping.full_zone",
                at!(reset.bookkeeping, Some => full_zone_ns),
            )
            .or(none)
            .within(none, limits::TIME)
            .says(
                "More time for a zone that the host wrote to its capacity, and in \
                     proportion for others.",
            ),
            time(
                "reset.bookkeeping.drain_pause",
                at!(reset.bookkeeping, Some => drain_pause_ns),
            )
            .or(none)
            .within(none, limits::TIME)
            .needs(HAS_BUFFER)
            .says(
                "How much of this time the write buffer starts no programs, in proportion. \
                     It is at most `full_zone`.",
            ),
            number(
                "reset.bookkeeping.slices",
                at!(reset.bookkeeping, Some => slices),
            )
            .or(1)
            .within(1, limits::SLICES)
            .says("Into how many parts that pause is divided, evenly spaced."),
            time(
                "reset.bookkeeping.open_zone",
                at!(reset.bookkeeping, Some => open_zone_ns),
            )
            .or(none)
            .within(none, limits::TIME)
            .says(
                "More time for a zone that is not full and of which something has been \
                     programmed: what was begun on the flash is closed.",
            ),
            flag(
                "reset.bookkeeping.quiesce",
                at!(reset.bookkeeping, Some => quiesce),
            )
            .or(false)
            .needs(Need {
                what: "without a write buffer there is no drain to wait for",
                ..HAS_BUFFER
            })
            .says(
                "It begins when the programs of the write buffer that run have ended, and \
                     none begins meanwhile.",
            ),
        ],
    }
}
