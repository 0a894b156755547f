//! Which flash a zone stands on, and whether data is kept.

use zonelab_device::Nanos;

use super::super::key::{At, Key, Only, Section, at, choice, flag, number, time};
use super::{limits, names};
use crate::config::{DataStore, DriveConfig, MappingConfig};

const DESIGN: &[&str] = &["mapping.design"];

const NOT_DIRECT: Only = Only::without("design = \"direct\"", DESIGN, |config| {
    config.mapping != MappingConfig::Direct
});

const CHUNKS: Only = Only::with("design = \"chunk\"", DESIGN, |config| {
    matches!(config.mapping, MappingConfig::Chunk { .. })
});

const ELEMENTS: Only = Only::with("design = \"chunk\" or \"stripe\"", DESIGN, |config| {
    config.mapping.has_elements()
});

/// Zones for which there is flash, where that is a number of its own.
fn physical_zones(config: &DriveConfig) -> Option<u32> {
    match config.mapping {
        MappingConfig::Direct => None,
        MappingConfig::Lazy { physical_zones }
        | MappingConfig::Chunk { physical_zones, .. }
        | MappingConfig::Stripe { physical_zones } => Some(physical_zones),
    }
}

/// Sets that number.
pub(in crate::profile) fn set_physical_zones(config: &mut DriveConfig, zones: u32) {
    match &mut config.mapping {
        MappingConfig::Direct => {}
        MappingConfig::Lazy { physical_zones }
        | MappingConfig::Chunk { physical_zones, .. }
        | MappingConfig::Stripe { physical_zones } => *physical_zones = zones,
    }
}

pub(super) fn mapping() -> Section {
    let mut keys = vec![
        design(),
        number(
            "mapping.chunk_blocks",
            at!(mapping, MappingConfig::Chunk { chunk_blocks }),
        )
        .or(1)
        .within(1, limits::BLOCKS)
        .only(CHUNKS)
        .says(
            "Blocks of a chunk, which divide the blocks that a zone has on each plane. \
                 `zonelab check` lists elements and their sizes.",
        ),
        number(
            "mapping.physical_zones",
            At {
                get: physical_zones,
                set: set_physical_zones,
            },
        )
        .derived("as many as the flash holds")
        .within(1, limits::ZONES)
        .only(NOT_DIRECT)
        .says(
            "Physical zones, or zones for which there are storage elements: at least \
             `zones.count`, unless `thin`.",
        ),
    ];
    keys.extend(allocation());
    Section {
        path: "mapping",
        title: "which flash a zone stands on",
        text: "The designs are explained in [models/mapping.md](models/mapping.md), how zones \
             come by their flash in [models/allocation.md](models/allocation.md).",
        rare: false,
        keys,
    }
}

fn design() -> Key {
    choice(
        "mapping.design",
        names::MAPPING,
        At {
            get: |of: &DriveConfig| {
                Some(match of.mapping {
                    MappingConfig::Direct => names::Mapping::Direct,
                    MappingConfig::Lazy { .. } => names::Mapping::Lazy,
                    MappingConfig::Chunk { .. } => names::Mapping::Chunk,
                    MappingConfig::Stripe { .. } => names::Mapping::Stripe,
                })
            },
            set: |of, design| {
                let physical_zones = 0;
                of.mapping = match design {
                    names::Mapping::Direct => MappingConfig::Direct,
                    names::Mapping::Lazy => MappingConfig::Lazy { physical_zones },
                    names::Mapping::Chunk => MappingConfig::Chunk {
                        chunk_blocks: 1,
                        physical_zones,
                    },
                    names::Mapping::Stripe => MappingConfig::Stripe { physical_zones },
                }
            },
        },
    )
    .or(names::Mapping::Direct)
    .says(
        "`direct`: zone n is on physical zone n for ever. `lazy`: a zone is given a physical \
         zone at its first write. `chunk`, `stripe`: one is assembled then, from storage \
         elements of least wear (SilentZNS), which are blocks in a row on one plane, or one \
         block on each plane of the zone.",
    )
}

fn allocation() -> [Key; 5] {
    [
        time("mapping.allocation", at!(allocation.time_ns))
            .or(Nanos::ZERO)
            .within(Nanos::ZERO, limits::TIME)
            .only(NOT_DIRECT)
            .says(
                "The time that the firmware takes to choose the flash of a zone. It is part of \
                 the command that needs it, and takes a core for as long.",
            ),
        choice(
            "mapping.allocate_at",
            names::ALLOCATE_AT,
            at!(allocation.at_open),
        )
        .or(false)
        .only(NOT_DIRECT)
        .says(
            "When a zone gets its flash. `write`: at its first write. `open`: at an \
                 explicit open, or the first write.",
        ),
        number("mapping.pool", at!(allocation.pool_zones))
            .or(0)
            .within(0, limits::ZONES)
            .only(NOT_DIRECT)
            .says(
                "Zones, at most, for which the choice is made while no command is in flight. \
                 It needs `allocation`.",
            ),
        number("mapping.depth_weight", at!(allocation.depth_weight))
            .absent("none")
            .related("0 or more")
            .only(NOT_DIRECT)
            .only(CHUNKS)
            .rare()
            .says(
                "LUNs need not give a zone equally many elements: this is the total wear, in \
                 erasures, that each more on the LUN with most of them has to save.",
            ),
        flag("mapping.thin", at!(allocation.thin))
            .or(false)
            .only(NOT_DIRECT)
            .only(ELEMENTS)
            .says(
                "`physical_zones` may be fewer than `zones.count`; what a finish gives back is \
                 for further zones ([decision 20](decisions/0020-variable-zones.md)). It needs \
                 `finish.extent = \"elements\"`.",
            ),
    ]
}

pub(super) fn data() -> Section {
    Section {
        path: "data",
        title: "whether data is kept",
        text: "",
        rare: false,
        keys: vec![
            choice("data.store", names::STORE, at!(data))
                .or(DataStore::None)
                .says(
                    "`none`: there is timing only, and a drive of any size costs little \
                     memory. `memory`: data is kept, of which zeros cost nothing.",
                ),
        ],
    }
}
