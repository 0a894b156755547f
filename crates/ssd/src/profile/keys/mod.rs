//! The keys of a profile, each declared once: [`super::key`] says what a declaration is
//! and what follows from it.
//!
//! To add a key, declare it here, in the section that it belongs to and at the place where
//! files shall have it; use its field in the model; and state a value for it in
//! `tests/samples.rs`. The compiler points out a field of the configuration that has no key
//! (`blank` and `tests/fields.rs`), and the tests a key without a value or a row of the page.
//! `ZONELAB_BLESS=1 cargo test -p zonelab-ssd the_page_has_every_key` writes the page.

mod finish_and_reset;
mod flash;
mod front_end;
mod mapping;
mod slc_cache;
#[cfg(test)]
mod tests;
mod zones;

use std::sync::LazyLock;

use zonelab_config::Item;
use zonelab_device::Nanos;

use super::key::{About, At, Key, Name, OfFile, Section, field};
use super::{limits, names};
use crate::config::{
    AllocationConfig, Bookkeeping, ChannelArbitration, CommandCosts, DataStore, DiePolicy,
    DriveConfig, EraseExtent, EraseWhen, FrontEndConfig, Geometry, MappingConfig, MediaConfig,
    MediaDetails, NamespaceConfig, NamespaceKind, PageRegister, PlaneMode, ResetConfig,
    StripeOrder, Suspend, ZonesConfig,
};

pub(super) use mapping::set_physical_zones;

/// The version of the format, stated by every file.
pub(super) const SCHEMA: u32 = 1;

/// What fills of a zone and erasures wait for the host at most, if a file does not say.
const MAX_HOLD: Nanos = Nanos::from_ms(10);

/// Bookkeeping that takes no time, which is none.
pub(super) const NO_BOOKKEEPING: Bookkeeping = Bookkeeping {
    base_ns: Nanos::ZERO,
    full_zone_ns: Nanos::ZERO,
    drain_pause_ns: Nanos::ZERO,
    slices: 1,
    open_zone_ns: Nanos::ZERO,
    quiesce: false,
};

/// All sections but the namespaces, in the order of a file.
pub(super) fn sections() -> &'static [Section] {
    static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
        vec![
            top(),
            flash::geometry(),
            zones::namespace(),
            zones::zones(),
            zones::zrwa(),
            zones::copy(),
            flash::media(),
            flash::suspend(),
            front_end::front_end(),
            front_end::costs(),
            front_end::latency(),
            front_end::write_buffer(),
            slc_cache::slc_cache(),
            finish_and_reset::finish(),
            finish_and_reset::reset(),
            finish_and_reset::thresholds(),
            finish_and_reset::bookkeeping(),
            mapping::mapping(),
            mapping::data(),
        ]
    });
    &SECTIONS
}

/// The keys of a namespace: an array of tables, behind everything else.
pub(super) fn namespaces() -> &'static Section<NamespaceConfig> {
    static SECTION: LazyLock<Section<NamespaceConfig>> = LazyLock::new(zones::namespaces);
    &SECTION
}

/// Every key of a drive.
pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    sections().iter().flat_map(|section| &section.keys)
}

fn top() -> Section {
    Section {
        path: "",
        title: "Top level",
        text: "",
        rare: false,
        keys: vec![
            OfFile {
                unit: "number",
                default: "required",
                required: Some("write schema = 1"),
                read: schema,
            }
            .says("schema", "The version of the format, which is 1."),
            field(
                "name",
                Name,
                At {
                    get: |of: &DriveConfig| Some(of.name.clone()),
                    set: |of, value| of.name = value,
                },
            )
            .ranges(
                "up to 64 letters, digits, `-`, `_` and `.`, of which `.` is not the first",
                |_, name| {
                    let in_name =
                        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
                    let good =
                        !name.is_empty() && !name.starts_with('.') && name.chars().all(in_name);
                    let valid =
                        "use up to 64 letters, digits, `-`, `_` and `.`: it names files too";
                    let broken = || ("this is not a name".to_owned(), valid.to_owned());
                    (!good || name.len() > limits::NAME).then(broken)
                },
            )
            .says("The name of the drive. Results and files are called by it."),
            OfFile {
                unit: "text",
                default: "empty",
                required: None,
                read: |item, about| item.str().map(|text| about.description = text.to_owned()),
            }
            .says("description", "What the drive is, for people."),
            OfFile {
                unit: "text",
                default: "empty",
                required: None,
                read: |item, about| item.str().map(|text| about.source = text.to_owned()),
            }
            .says(
                "source",
                "Where the numbers come from: a paper, a data sheet, measurements.",
            ),
        ],
    }
}

fn schema(item: &Item<'_>, _about: &mut About) -> Result<(), zonelab_config::Reported> {
    match item.u32()? {
        SCHEMA => Ok(()),
        other => {
            let what = format!("profiles of schema {other} are unknown here");
            Err(item.fail(what, format!("this version reads schema = {SCHEMA}")))
        }
    }
}

/// A configuration in which no key is read yet. Variants that have keys of their own are
/// those that the defaults select.
pub(super) fn blank() -> DriveConfig {
    DriveConfig {
        name: String::new(),
        geometry: Geometry {
            channels: 0,
            ways: 0,
            dies: 0,
            planes: 0,
            blocks_per_plane: 1,
            pages_per_block: 0,
            page_bytes: 0,
        },
        lba_bytes: 0,
        zones: ZonesConfig {
            count: 0,
            size_lbas: 0,
            capacity_lbas: 0,
            max_active: None,
            max_open: None,
            channels: 0,
            ways: 0,
            stripe: StripeOrder::ChannelFirst,
            read_across: false,
            stagger: 0,
            descriptor_extension_bytes: 0,
            zrwa: None,
        },
        namespaces: Vec::new(),
        copy: None,
        media: MediaConfig {
            read_ns: Nanos::ZERO,
            program_ns: Nanos::ZERO,
            erase_ns: Nanos::ZERO,
            transfer_ns: Nanos::ZERO,
            partial_transfer: false,
            page_register: PageRegister::Overlap,
            planes: PlaneMode::Independent,
            policy: DiePolicy::Fifo,
            arbitration: ChannelArbitration::Ready,
            suspend: Suspend::NONE,
            details: MediaDetails::NONE,
        },
        front_end: FrontEndConfig {
            cores: 0,
            read_ns: Nanos::ZERO,
            write_ns: Nanos::ZERO,
            append_ns: Nanos::ZERO,
            management_ns: Nanos::ZERO,
            link_bytes_per_s: None,
            max_transfer_bytes: None,
            max_append_bytes: None,
            max_in_flight_bytes: None,
            appends_per_zone: None,
            costs: CommandCosts::default(),
        },
        write_buffer: None,
        slc_cache: None,
        finish: finish_and_reset::FILL,
        reset: ResetConfig {
            erase: EraseWhen::Synchronous,
            extent: EraseExtent::Partial,
            preempt_ns: None,
            bookkeeping: Some(NO_BOOKKEEPING),
        },
        mapping: MappingConfig::Direct,
        allocation: AllocationConfig::NONE,
        data: DataStore::None,
    }
}

/// A namespace of which no key is read yet.
pub(super) const fn blank_namespace() -> NamespaceConfig {
    NamespaceConfig {
        kind: NamespaceKind::Zoned,
        zones: 0,
        max_active: None,
        max_open: None,
    }
}
