//! Logical blocks, zones, random write areas, namespaces and Copy.

use zonelab_config::units::fmt_size;
use zonelab_device::CopyLimits;

use super::super::key::{
    At, Broken, FieldLbas, Key, Lbas, Lbas32, Only, Says, Section, SmallLbas, SourceRanges, at,
    choice, field, flag, number, size_32,
};
use super::{limits, names};
use crate::config::{
    CollectionPolicy, DriveConfig, Isolation, LogConfig, NamespaceConfig, NamespaceKind, PlaneMode,
    ReclaimUnitHandles, StripeOrder, ZrwaConfig,
};

const AREAS: Only = Only::if_stated("a size of areas", &["zones.zrwa.size"], |config| {
    config.zones.zrwa.is_some()
});

const COPIES: Only = Only::if_stated("max_ranges", &["copy.max_ranges"], |config| {
    config.copy.is_some()
});

const CONVENTIONAL: Only<NamespaceConfig> = Only::with(
    "kind = \"conventional\"",
    &["namespaces.kind"],
    |namespace| namespace.kind != NamespaceKind::Zoned,
);

const ZONED: Only<NamespaceConfig> = Only {
    says: Says::Because(
        "kind = \"conventional\"",
        "a conventional namespace shows no zones",
    ),
    ..Only::with("", &["namespaces.kind"], |namespace| {
        namespace.kind == NamespaceKind::Zoned
    })
};

const HANDLES: Only<NamespaceConfig> = Only::with(
    "reclaim_unit_handles",
    &["namespaces.reclaim_unit_handles"],
    |namespace| handles(namespace).is_some(),
);

/// The reclaim unit handles of a namespace, if it has any of its own.
fn handles(namespace: &NamespaceConfig) -> Option<ReclaimUnitHandles> {
    match namespace.kind {
        NamespaceKind::Zoned => None,
        NamespaceKind::Conventional(log) => log.handles,
    }
}

fn set_handles(namespace: &mut NamespaceConfig, set: impl FnOnce(&mut ReclaimUnitHandles)) {
    if let NamespaceKind::Conventional(log) = &mut namespace.kind {
        set(log.handles.get_or_insert(ReclaimUnitHandles::ONE));
    }
}

/// The place of a field of the log of a namespace.
macro_rules! of_log {
    ($field:ident) => {
        At {
            get: |of: &NamespaceConfig| match of.kind {
                NamespaceKind::Zoned => None,
                NamespaceKind::Conventional(log) => Some(log.$field),
            },
            set: |of: &mut NamespaceConfig, to| {
                if let NamespaceKind::Conventional(log) = &mut of.kind {
                    log.$field = to;
                }
            },
        }
    };
}

pub(super) fn namespace() -> Section {
    Section {
        path: "namespace",
        title: "what all namespaces have in common",
        text: "",
        rare: false,
        keys: vec![
            size_32("namespace.lba_size", at!(lba_bytes))
                .or(4_096)
                .ranges("`512B` or `4KiB`", |_, bytes| {
                    let size = fmt_size(u64::from(*bytes));
                    let what = format!("{size} is not a logical block size");
                    let valid = "write \"512B\" or \"4KiB\"".to_owned();
                    (!matches!(bytes, 512 | 4_096)).then_some((what, valid))
                })
                .says("The size of a logical block."),
        ],
    }
}

pub(super) fn zones() -> Section {
    let mut keys = sizes();
    keys.extend(places());
    Section {
        path: "zones",
        title: "size, number and limits of zones, and where they lie",
        text: "A zone that spans a part of the drive belongs to a group: zones of different \
             groups share no die, and neighbours are in different groups. A zone owns whole rows \
             of erase blocks, one block on each of its planes; a capacity that does not fill the \
             last row wastes what is left.",
        rare: false,
        keys,
    }
}

fn sizes() -> Vec<Key> {
    vec![
        number("zones.count", at!(zones.count))
            .within(1, limits::ZONES)
            .says("The number of zones."),
        field("zones.size", Lbas, at!(zones.size_lbas))
            .related("at least 1 block")
            .says(
                "The distance between zone starts (ZSZE). Linux wants a power of two, zonelab \
                 does not.",
            ),
        field("zones.capacity", Lbas, at!(zones.capacity_lbas))
            .follows("`size`", |config| Some(config.zones.size_lbas))
            .related("up to `size`")
            .says("What can be written of a zone (ZCAP)."),
        number("zones.max_active", at!(zones.max_active))
            .absent("unlimited")
            .related("1 to `count`")
            .says("The largest number of active zones (MAR + 1)."),
        number("zones.max_open", at!(zones.max_open))
            // Open zones are active, so the limit of those is the widest possible.
            .follows("`max_active`", |config| config.zones.max_active)
            .none_means("unlimited")
            .related("1 to `max_active`")
            .says("The largest number of open zones (MOR + 1)."),
    ]
}

fn places() -> Vec<Key> {
    vec![
        number("zones.channels", at!(zones.channels))
            .follows("all", |config| Some(config.geometry.channels))
            .ranges("1 to `geometry.channels`", |config, part| {
                part_of(*part, config.geometry.channels)
            })
            .says(
                "The channels that a zone spans, which divide those of the drive. Fewer make \
                 zones slower, and independent of each other.",
            ),
        number("zones.ways", at!(zones.ways))
            .follows("all", |config| Some(config.geometry.ways))
            .ranges("1 to `geometry.ways`", |config, part| {
                part_of(*part, config.geometry.ways)
            })
            .says(
                "The ways that a zone spans on each of its channels, which divide those of the \
                 drive.",
            ),
        choice("zones.stripe", names::STRIPE, at!(zones.stripe))
            .follows(
                "`plane-first` with multi-plane operations, else `channel-first`",
                // Multi-plane operations take consecutive pages, so those lie on one die.
                |config| {
                    Some(match config.media.planes {
                        PlaneMode::MultiPlane => StripeOrder::PlaneFirst,
                        PlaneMode::Independent | PlaneMode::Single => StripeOrder::ChannelFirst,
                    })
                },
            )
            .says(
                "Where the next page of a zone goes. `channel-first`: to the next channel, \
                 then way, die, plane. `plane-first`: to the next plane of the die, then \
                 channel, way, die.",
            ),
        number("zones.stagger", at!(zones.stagger))
            .or(0)
            .related("less than the planes of a zone")
            .says(
                "Planes of the stripe by which each zone of a group begins later than the one \
                 before it, so that zones that are written side by side meet on different dies. \
                 They are whole dies with multi-plane operations and `plane-first`. With a \
                 write buffer it counts for zones that were declared full.",
            ),
        flag("zones.read_across", at!(zones.read_across))
            .or(false)
            .says("A read may cross from one zone into the next (OZCS bit 0)."),
        size_32(
            "zones.descriptor_extension",
            at!(zones.descriptor_extension_bytes),
        )
        .or(0)
        .within(0, limits::DESCRIPTOR_EXTENSION_BYTES)
        .says(
            "Bytes of the host's own for each zone (ZDES), a multiple of 64; `0B`: there \
                 are none.",
        ),
    ]
}

/// A zone cannot span more than there is; if there is nothing, that was said.
fn part_of(part: u32, whole: u32) -> Option<Broken> {
    (whole > 0 && !(1..=whole).contains(&part)).then(|| {
        let what = format!("{part} is out of range");
        (what, format!("at least 1, at most {whole}"))
    })
}

/// An area of which no key is read yet.
const AREA: ZrwaConfig = ZrwaConfig {
    size_lbas: 0,
    flush_granularity_lbas: 0,
    max_areas: None,
    explicit_flush: true,
};

pub(super) fn zrwa() -> Section {
    Section {
        path: "zones.zrwa",
        title: "random write areas of zones",
        text: "They are explained in [models/zrwa.md](models/zrwa.md), and need a write buffer.",
        rare: false,
        keys: vec![
            field(
                "zones.zrwa.size",
                Lbas32,
                At {
                    get: |of: &DriveConfig| of.zones.zrwa.map(|zrwa| zrwa.size_lbas),
                    set: |of, size_lbas| {
                        of.zones.zrwa.get_or_insert(AREA).size_lbas = size_lbas;
                    },
                },
            )
            .absent("no areas")
            .within(1, limits::ZRWA_LBAS)
            .rare()
            .says(
                "The size of an area (ZRWASZ): a multiple of `flush_granularity`, and at most \
                 a zone capacity. Stating it gives zones areas.",
            ),
            field(
                "zones.zrwa.flush_granularity",
                Lbas32,
                at!(zones.zrwa, Some => flush_granularity_lbas),
            )
            .within(1, limits::ZRWA_LBAS)
            .only(AREAS)
            .says(
                "By how much a write pointer moves (ZRWAFG). It divides the zone capacity, so \
                 that the pointer meets its end.",
            ),
            number("zones.zrwa.count", at!(zones.zrwa, Some => max_areas))
                .absent("unlimited")
                .at_least(1, "no zone would ever have an area")
                .only(AREAS)
                .says("Zones of a namespace that have an area at the same time (NUMZRWA + 1)."),
            flag(
                "zones.zrwa.explicit_flush",
                at!(zones.zrwa, Some => explicit_flush),
            )
            .or(true)
            .only(AREAS)
            .says("The host can commit blocks of an area (ZRWACAP bit 0)."),
        ],
    }
}

/// A Copy of which no key is read yet.
const COPY: CopyLimits = CopyLimits {
    max_ranges: 0,
    max_range_lbas: 0,
    max_lbas: 0,
};

pub(super) fn copy() -> Section {
    Section {
        path: "copy",
        title: "what one Copy may do",
        text: "Without `max_ranges` the drive has no Copy command.",
        rare: false,
        keys: vec![
            field(
                "copy.max_ranges",
                SourceRanges,
                At {
                    get: |of: &DriveConfig| of.copy.map(|copy| copy.max_ranges),
                    set: |of, max_ranges| {
                        of.copy.get_or_insert(COPY).max_ranges = max_ranges;
                    },
                },
            )
            .absent("no Copy")
            .within(1, SourceRanges::MAX)
            .rare()
            .says("The source ranges of one command (MSRC + 1)."),
            field(
                "copy.max_range",
                SmallLbas,
                at!(copy, Some => max_range_lbas),
            )
            .ranges("1 to 65535 blocks", |_, lbas| {
                let broken = (
                    "it has no block".to_owned(),
                    "at least one block".to_owned(),
                );
                (*lbas == 0).then_some(broken)
            })
            .only(COPIES)
            .says("The size of one source range (MSSRL)."),
            field("copy.max_length", FieldLbas, at!(copy, Some => max_lbas))
                .related("at least `max_range`")
                .only(COPIES)
                .says("The size of all source ranges together (MCL)."),
        ],
    }
}

/// The place of a field of a namespace.
macro_rules! of {
    ($field:ident) => {
        At {
            get: |of: &NamespaceConfig| of.$field.into(),
            set: |of: &mut NamespaceConfig, value| of.$field = value.into(),
        }
    };
}

/// What hosts see of a namespace.
fn kind() -> Key<NamespaceConfig> {
    choice(
        "namespaces.kind",
        names::NAMESPACE_KIND,
        At {
            get: |of: &NamespaceConfig| {
                Some(match of.kind {
                    NamespaceKind::Zoned => names::Kind::Zoned,
                    NamespaceKind::Conventional(_) => names::Kind::Conventional,
                })
            },
            set: |of, kind| {
                of.kind = match kind {
                    names::Kind::Zoned => NamespaceKind::Zoned,
                    names::Kind::Conventional => NamespaceKind::Conventional(LogConfig::new(0)),
                }
            },
        },
    )
    .or(names::Kind::Zoned)
    .rare()
    .says(
        "What hosts see. `zoned`: the zones. `conventional`: blocks that can be \
         written in any order, on a log over the zones \
         ([models/conventional.md](models/conventional.md)).",
    )
}

/// Which zone of a log is collected next.
fn collection() -> Key<NamespaceConfig> {
    choice(
        "namespaces.collection",
        names::COLLECTION,
        of_log!(collection),
    )
    .or(CollectionPolicy::Greedy)
    .only(CONVENTIONAL)
    .rare()
    .says(
        "Which zone of the log is collected next. `greedy`: the one with the fewest blocks that \
         still hold something. `cost-benefit`: the one with the most room by the cost of \
         moving what it holds, times the age of that.",
    )
}

/// How much the table of a log maps together.
fn mapping_unit() -> Key<NamespaceConfig> {
    field(
        "namespaces.mapping_unit",
        Lbas32,
        At {
            get: |of: &NamespaceConfig| match of.kind {
                NamespaceKind::Zoned => None,
                NamespaceKind::Conventional(log) => {
                    Some(log.mapping_unit_lbas).filter(|lbas| *lbas != 1)
                }
            },
            set: |of, to| {
                if let NamespaceKind::Conventional(log) = &mut of.kind {
                    log.mapping_unit_lbas = to;
                }
            },
        },
    )
    .absent("one logical block")
    .related("a divisor of `zones.capacity`")
    .only(CONVENTIONAL)
    .rare()
    .says("What one entry of the table maps. A write of a part of it reads it and writes it whole.")
}

/// Flexible data placement: how many handles.
fn reclaim_unit_handles() -> Key<NamespaceConfig> {
    number(
        "namespaces.reclaim_unit_handles",
        At {
            get: |of: &NamespaceConfig| handles(of).map(|handles| handles.count),
            set: |of, to| set_handles(of, |handles| handles.count = to),
        },
    )
    .absent("no flexible data placement")
    .related("1 to 128, of all namespaces together")
    .only(CONVENTIONAL)
    .rare()
    .says(
        "Reclaim unit handles (NRUH): the host chooses one with each write, and each \
         writes to a zone of its own ([models/fdp.md](models/fdp.md)). Stating it gives \
         the drive flexible data placement, and then none of its namespaces is zoned.",
    )
}

/// Flexible data placement: whether collection keeps handles apart.
fn isolation() -> Key<NamespaceConfig> {
    choice(
        "namespaces.isolation",
        names::ISOLATION,
        At {
            get: |of: &NamespaceConfig| handles(of).map(|handles| handles.isolation),
            set: |of, to| set_handles(of, |handles| handles.isolation = to),
        },
    )
    .or(Isolation::Initially)
    .only(HANDLES)
    .rare()
    .says(
        "Where collection moves data of a handle (RUHT). `initially`: to one zone for \
         all handles. `persistently`: to zones of that handle alone.",
    )
}

pub(super) fn namespaces() -> Section<NamespaceConfig> {
    Section {
        path: "namespaces",
        title: "the zones of the drive, divided",
        text: "Without these tables the drive has one namespace with all zones. Two or more \
             divide the zones of the drive in their order: NSID 1 has the first ones. Addresses \
             begin at 0 in each; flash, front end and write buffer are shared ([decision \
             13](decisions/0013-namespaces.md)). A drive may have a conventional namespace \
             alone. On the command line: `--set 'namespaces=[{zones=300}, {zones=604}]'`.",
        rare: false,
        keys: vec![
            kind(),
            number("namespaces.zones", of!(zones))
                .related("at least 1")
                .says("The number of its zones. All namespaces together have `zones.count`."),
            number("namespaces.spare_zones", of_log!(spare_zones))
                .related("3, or what `reclaim_unit_handles` need, to one less than `zones`")
                .only(CONVENTIONAL)
                .says(
                    "Zones that hosts cannot address: over-provisioning, from which the log \
                 collects.",
                ),
            collection(),
            mapping_unit(),
            reclaim_unit_handles(),
            isolation(),
            number("namespaces.max_active", of!(max_active))
                .derived("`zones.max_active`, at most its zones")
                .related("1 to `zones`")
                .only(ZONED)
                .says("The largest number of active zones of this namespace."),
            number("namespaces.max_open", of!(max_open))
                .derived("`zones.max_open`, at most `max_active`")
                .related("1 to `max_active`")
                .only(ZONED)
                .says("The largest number of open zones of this namespace."),
        ],
    }
}
