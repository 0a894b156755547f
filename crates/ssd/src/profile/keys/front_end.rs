//! Before and after the flash: command processing, and the write buffer.

use zonelab_config::units::fmt_size;
use zonelab_device::Nanos;

use super::super::key::{
    At, Field, Key, Need, Only, Section, Time, at, choice, flag, number, rate, share, size,
    size_32, time,
};
use super::flash::more_than_all;
use super::{limits, names};
use crate::config::{BufferRelease, DriveConfig, MappingConfig, Placement, WriteBufferConfig};

const LEAVE_OUT: &str = "set front_end.cores, or leave this key out";

/// Of core times: there are none without cores.
pub(super) const CORES: Need = Need {
    holds: |config| config.front_end.cores > 0,
    what: "without cores, processing takes no time",
    valid: LEAVE_OUT,
    page: "`front_end.cores`",
};

const WRITE_BACK: Only = Only::with("mode = \"write-back\"", &["write_buffer.mode"], |config| {
    config.write_buffer.is_some()
});

pub(super) fn front_end() -> Section {
    let core_time = |path, at| {
        time(path, at)
            .or(Nanos::ZERO)
            .within(Nanos::ZERO, limits::TIME)
            .needs(CORES)
    };
    Section {
        path: "front_end",
        title: "before and after the flash",
        text: "",
        rare: false,
        keys: vec![
            number("front_end.cores", at!(front_end.cores))
                .or(0)
                .within(0, limits::CORES)
                .says(
                    "Firmware cores, each of which processes one command at a time. With 0 \
                     processing takes no time.",
                ),
            core_time("front_end.read", at!(front_end.read_ns))
                .says("The time that a read takes a core."),
            core_time("front_end.write", at!(front_end.write_ns))
                .says("The time that a write takes a core."),
            core_time("front_end.append", at!(front_end.append_ns))
                .says("The time that a zone append takes a core."),
            core_time("front_end.management", at!(front_end.management_ns))
                .says("The time that zone management, a report or a flush takes a core."),
            rate("front_end.link", at!(front_end.link_bytes_per_s))
                .absent("not modelled")
                .at_least(limits::LINK_BYTES_PER_S_MIN, "the link is too slow")
                .says("The bandwidth of the host link, in each direction."),
            size_32("front_end.max_transfer", at!(front_end.max_transfer_bytes))
                .absent("unlimited")
                .related("4KiB times a power of two")
                .says("The largest transfer of one command (MDTS)."),
            size_32("front_end.max_append", at!(front_end.max_append_bytes))
                .absent("as max_transfer")
                .related("4KiB times a power of two, up to `max_transfer`")
                .says("The largest zone append (ZASL)."),
            size_32(
                "front_end.max_in_flight",
                at!(front_end.max_in_flight_bytes),
            )
            .absent("unlimited")
            .related("at least 4KiB")
            .says(
                "Data of commands that the drive works on at the same time. Behind them, \
                     commands of all kinds wait in order of arrival.",
            ),
            number(
                "front_end.appends_per_zone",
                at!(front_end.appends_per_zone),
            )
            .absent("unlimited")
            .at_least(1, "no append would ever be admitted")
            .says(
                "Appends of one zone that the drive works on at the same time. Others wait aside, \
                     in order with what changes the zone behind them, and hold back no other \
                     command but by `max_in_flight`.",
            ),
        ],
    }
}

/// A cost of firmware cores.
fn cost(path: &'static str, at: At<DriveConfig, Nanos>) -> Field<DriveConfig, Time> {
    time(path, at)
        .or(Nanos::ZERO)
        .within(Nanos::ZERO, limits::FLASH_TIME)
        .needs(CORES)
}

pub(super) fn costs() -> Section {
    let mut keys = vec![
        size_32("front_end.costs.unit", at!(front_end.costs.unit_bytes))
            .absent("none")
            .related("at least 1B")
            .says(
                "Writes and appends that are not whole units of this size cost `part_of_unit` \
                 more. One key needs the other.",
            ),
    ];
    keys.extend(sizes());
    keys.extend(opens());
    keys.extend(completions());
    Section {
        path: "front_end.costs",
        title: "more core time",
        text: "What depends on the size of a transfer, and opening a zone by writing to it, is \
             charged when a command is accepted: one that is refused does not cost it.",
        rare: true,
        keys,
    }
}

fn sizes() -> [Key; 5] {
    [
        cost(
            "front_end.costs.read_per_kib",
            at!(front_end.costs.read_per_kib_ns),
        )
        .says("Core time per KiB of a read."),
        cost(
            "front_end.costs.write_per_kib",
            at!(front_end.costs.write_per_kib_ns),
        )
        .says("Core time per KiB of a write."),
        cost(
            "front_end.costs.append_per_kib",
            at!(front_end.costs.append_per_kib_ns),
        )
        .says("Core time per KiB of a zone append."),
        cost(
            "front_end.costs.part_of_unit",
            at!(front_end.costs.part_of_unit_ns),
        )
        .says("What a write or append costs more that is not whole units."),
        cost(
            "front_end.costs.small_blocks",
            at!(front_end.costs.small_blocks_ns),
        )
        .says("What a write or append costs more with logical blocks of 512 bytes."),
    ]
}

fn opens() -> [Key; 3] {
    [
        time("front_end.costs.open", at!(front_end.costs.open_ns))
            .absent("as management")
            .within(Nanos::ZERO, limits::FLASH_TIME)
            .needs(CORES)
            .says("Core time of an explicit open."),
        time("front_end.costs.close", at!(front_end.costs.close_ns))
            .absent("as management")
            .within(Nanos::ZERO, limits::FLASH_TIME)
            .needs(CORES)
            .says("Core time of a close."),
        cost(
            "front_end.costs.implicit_open",
            at!(front_end.costs.implicit_open_ns),
        )
        .says("What a write or append costs more that opens its zone."),
    ]
}

fn completions() -> [Key; 4] {
    [
        cost(
            "front_end.costs.read_completion",
            at!(front_end.costs.read_completion_ns),
        )
        .says(
            "Core time when the flash is done with a read, before its data goes over the \
                 link.",
        ),
        cost(
            "front_end.costs.write_completion",
            at!(front_end.costs.write_completion_ns),
        )
        .says(
            "Core time when the flash or buffer is done with a write, before the host is \
                 told.",
        ),
        cost(
            "front_end.costs.append_completion",
            at!(front_end.costs.append_completion_ns),
        )
        .says(
            "Core time when the flash or buffer is done with an append, before the host is \
                 told.",
        ),
        share(
            "front_end.costs.variation",
            at!(front_end.costs.variation_ppm),
        )
        .or(0)
        .ranges("up to 100%", |_, share| more_than_all(*share))
        .needs(Need {
            what: "without cores, there are no times that vary",
            ..CORES
        })
        .rare()
        .says(
            "The core time of each command and completion is up to this share more or less, \
                 evenly distributed.",
        ),
    ]
}

pub(super) fn latency() -> Section {
    let latency = |path, at| {
        time(path, at)
            .or(Nanos::ZERO)
            .within(Nanos::ZERO, limits::FLASH_TIME)
    };
    Section {
        path: "front_end.latency",
        title: "time on the way",
        text: "This time occupies nothing: any number of commands may be on their way.",
        rare: true,
        keys: vec![
            latency(
                "front_end.latency.read",
                at!(front_end.costs.read_latency_ns),
            )
            .says("The time of a read between the core and the flash or buffer."),
            latency(
                "front_end.latency.write",
                at!(front_end.costs.write_latency_ns),
            )
            .says("The same of a write."),
            latency(
                "front_end.latency.append",
                at!(front_end.costs.append_latency_ns),
            )
            .says("The same of a zone append."),
            latency(
                "front_end.latency.management",
                at!(front_end.costs.management_latency_ns),
            )
            .says("The same of everything else."),
            latency(
                "front_end.latency.completion",
                at!(front_end.costs.completion_latency_ns),
            )
            .says("The time from the core to the host of what reads, writes and appends answer."),
        ],
    }
}

pub(super) fn write_buffer() -> Section {
    let mut keys = vec![
        choice(
            "write_buffer.mode",
            names::WRITE_BUFFER,
            At {
                get: |of: &DriveConfig| {
                    Some(match of.write_buffer {
                        None => names::Buffer::None,
                        Some(_) => names::Buffer::WriteBack,
                    })
                },
                set: |of, mode| {
                    of.write_buffer = match mode {
                        names::Buffer::None => None,
                        names::Buffer::WriteBack => Some(BUFFER),
                    }
                },
            },
        )
        .or(names::Buffer::None)
        .says(
            "When a write completes. `none`: when its pages are programmed. `write-back`: when \
             its blocks are in the buffer ([decision 11](decisions/0011-write-buffer.md)).",
        ),
    ];
    keys.extend(buffer());
    keys.extend(drain());
    Section {
        path: "write_buffer",
        title: "where writes wait for the flash",
        text: "",
        rare: false,
        keys,
    }
}

/// A buffer of which no key is read yet.
const BUFFER: WriteBufferConfig = WriteBufferConfig {
    size_bytes: 0,
    power_loss_protection: false,
    release: BufferRelease::Program,
    drain_bytes_per_s: None,
    turn_bytes: None,
    placement: Placement::LeastWork,
};

fn buffer() -> [Key; 3] {
    [
        size("write_buffer.size", at!(write_buffer, Some => size_bytes))
            .at_most(limits::BUFFER_BYTES)
            .only(WRITE_BACK)
            .says("How much fits: whole logical blocks, and at least a page."),
        flag(
            "write_buffer.power_loss_protection",
            at!(write_buffer, Some => power_loss_protection),
        )
        .or(false)
        .only(WRITE_BACK)
        .says("What is in the buffer outlives a loss of power, and a flush has nothing to do."),
        choice(
            "write_buffer.release",
            names::RELEASE,
            at!(write_buffer, Some => release),
        )
        .or(BufferRelease::Program)
        .only(WRITE_BACK)
        .says(
            "When the room of a block is free again. `program`: when it is programmed. \
                 `transfer`: when the transfer (or each piece of `media.transfer_unit`) has \
                 taken it to its die, which needs `channel_arbitration = \"ready\"`; with \
                 `page_register = \"overlap\"`, when its program begins.",
        ),
    ]
}

fn drain() -> [Key; 3] {
    [
        rate(
            "write_buffer.drain",
            at!(write_buffer, Some => drain_bytes_per_s),
        )
        .absent("as fast as the dies")
        .at_least(limits::LINK_BYTES_PER_S_MIN, "the drain is too slow")
        .only(WRITE_BACK)
        .says(
            "The bandwidth from the buffer to all dies together. Units leave it one after \
                 another.",
        ),
        size("write_buffer.turn", at!(write_buffer, Some => turn_bytes))
            .absent("one write after another")
            .ranges("whole logical blocks", |config: &DriveConfig, bytes| {
                let lba_bytes = u64::from(config.lba_bytes);
                (*bytes == 0 || !bytes.is_multiple_of(lba_bytes)).then(|| {
                    let what = format!("{} are no whole logical blocks", fmt_size(*bytes));
                    (what, format!("a multiple of {}", fmt_size(lba_bytes)))
                })
            })
            .only(WRITE_BACK)
            .says(
                "How much of a write is let in at a time while others wait; then it is their \
                 turn. Writes and appends of one zone keep their order.",
            ),
        choice(
            "write_buffer.placement",
            names::PLACEMENT,
            at!(write_buffer, Some => placement),
        )
        .follows(
            "`in-order` with `mapping.design` `chunk` or `stripe`, else `least-work`",
            |config| {
                Some(match config.mapping {
                    MappingConfig::Chunk { .. } | MappingConfig::Stripe { .. } => {
                        Placement::InOrder
                    }
                    MappingConfig::Direct | MappingConfig::Lazy { .. } => Placement::LeastWork,
                })
            },
        )
        .only(WRITE_BACK)
        .says(
            "Which die takes the next program of a zone. `least-work`: of those that have none \
                 of its row of the stripe yet, the one with the least work ahead ([decision \
                 23](decisions/0023-placement.md)). `in-order`: the next in the order of the \
                 stripe.",
        ),
    ]
}
