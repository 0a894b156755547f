//! From TOML to a configuration.
//!
//! What the keys are, what they mean where they are not stated, and where they have an
//! effect, their declarations say ([`super::keys`]). Here is what follows from several of
//! them together. Rules that also hold for configurations made by hand are in
//! [`super::check`].

use zonelab_config::{Document, Reported, Table};

use super::derived::Needs;
use super::key::Reading;
use super::write::effective;
use super::{Profile, Violation, check, keys, limits};
use crate::config::{DriveConfig, NamespaceConfig, NamespaceKind, ZonesConfig};

pub(super) fn profile(document: &Document) -> Result<Profile, Reported> {
    let root = document.root();
    let mut reading = Reading::new(keys::blank(), 1);
    read_sections(&root, &mut reading);
    let namespaces = namespaces(&root, reading.lba_bytes);
    reading.so_far()?;
    let namespaces = namespaces?;
    for section in keys::sections() {
        reading.follow(section);
    }
    fit_flash(&mut reading);
    let Reading {
        mut config, about, ..
    } = reading;
    let limits = namespaces
        .into_iter()
        .map(|of| with_limits(of, &config.zones));
    config.namespaces = limits.collect();
    // None of it if nothing of it takes time.
    let books = config.reset.bookkeeping;
    config.reset.bookkeeping = books.filter(|books| *books != keys::NO_BOOKKEEPING);
    let derived = check(&config).map_err(|violations| report_all(document, violations))?;
    let stated = effective(&config)
        .into_iter()
        .map(|of| of.key.path.to_owned())
        .chain((0..config.namespaces.len()).map(|index| format!("namespaces.{index}.zones")))
        .filter_map(|path| document.place(&path).map(|place| (path, place)))
        .collect();
    Ok(Profile {
        config,
        derived,
        description: about.description,
        source: about.source,
        cell: about.cell,
        stated,
    })
}

/// Reads every key but those of namespaces.
fn read_sections(root: &Table<'_>, reading: &mut Reading<DriveConfig>) {
    // Each table is looked up once, so that what is no table is reported once.
    let mut tables: Vec<(&str, Table<'_>)> = Vec::new();
    for section in keys::sections() {
        let (above, name) = section.path.rsplit_once('.').unwrap_or(("", section.path));
        let above = tables
            .iter()
            .find(|(path, _)| *path == above && !above.is_empty());
        let above = above.map_or(root, |(_, table)| table);
        if name.is_empty() {
            reading.section(section, root);
            continue;
        }
        let table = above.table(name);
        reading.section(section, &table);
        tables.push((section.path, table));
        // If it is wrong, there will be no configuration, and any size will do.
        if section.path == "namespace" && !reading.has_failed("namespace.lba_size") {
            reading.lba_bytes = reading.config.lba_bytes;
        }
    }
}

fn report_all(document: &Document, violations: Vec<Violation>) -> Reported {
    let reported = violations
        .into_iter()
        .map(|Violation { key, what, valid }| document.report(key, what, valid));
    reported.last().expect("a refusal has a reason")
}

/// The namespaces that the file states, with the limits that it states for them.
fn namespaces(root: &Table<'_>, lba_bytes: u32) -> Result<Vec<NamespaceConfig>, Reported> {
    let section = keys::namespaces();
    let namespace = |table: &Table<'_>| {
        let mut reading = Reading::new(keys::blank_namespace(), lba_bytes);
        reading.section(section, table);
        reading.so_far().map(|()| reading.config)
    };
    let tables = root.tables(section.path)?;
    let namespaces: Vec<_> = tables.iter().map(namespace).collect();
    namespaces.into_iter().collect()
}

/// A namespace with the limits of the drive where it states none. One stated limit of
/// active zones bounds the open ones too.
fn with_limits(namespace: NamespaceConfig, drive: &ZonesConfig) -> NamespaceConfig {
    if namespace.kind != NamespaceKind::Zoned {
        return namespace;
    }
    let of_drive = |limit: Option<u32>| limit.map(|most| most.min(namespace.zones));
    let max_active = namespace.max_active.or(of_drive(drive.max_active));
    let bounded = |open: u32| max_active.map_or(open, |active| open.min(active));
    let default_open = of_drive(drive.max_open).map(bounded);
    NamespaceConfig {
        max_active,
        max_open: namespace.max_open.or(default_open).or(max_active),
        ..namespace
    }
}

/// Fills in the number of blocks and of physical zones where they follow from
/// each other. Values that cannot be are left for the check to refuse.
fn fit_flash(reading: &mut Reading<DriveConfig>) {
    let blocks_are_stated = reading.is_stated("geometry.blocks_per_plane");
    let zones_are_stated = reading.is_stated("mapping.physical_zones");
    let config = &mut reading.config;
    if !zones_are_stated {
        keys::set_physical_zones(config, config.zones.count);
    }
    let Some(needs) = Needs::of(config) else {
        return;
    };
    if !blocks_are_stated {
        // At least one: that zones are missing is a rule of its own.
        let needed = u32::try_from(needs.blocks_per_plane()).unwrap_or(u32::MAX);
        config.geometry.blocks_per_plane = needed.max(1);
    }
    if !zones_are_stated {
        // As many as the flash holds, but not fewer than zones: too little
        // flash is then refused in terms of what the file states.
        let blocks = u64::from(config.geometry.blocks_per_plane);
        let blocks = blocks.saturating_sub(needs.cache_rows);
        let held = blocks / needs.rows.max(1) * u64::from(needs.groups);
        let held = u32::try_from(held).unwrap_or(u32::MAX).min(limits::ZONES);
        let thin = config.allocation.thin && held > 0;
        let least = if thin { 1 } else { config.zones.count };
        keys::set_physical_zones(config, held.max(least));
    }
}
