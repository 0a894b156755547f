//! From a configuration to its keys, and to TOML.

use std::fmt::Write as _;

use zonelab_config::units::quote;

use super::key::Key;
use super::keys;
use crate::config::DriveConfig;

/// A value as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// A string of TOML, without its quotes.
    Quoted(String),
    /// A number, a truth value or an array of TOML.
    Bare(String),
}

impl Text {
    fn toml(self) -> String {
        match self {
            Self::Quoted(text) => quote(&text),
            Self::Bare(text) => text,
        }
    }
}

/// A key that has an effect in a configuration.
pub(super) struct Effective {
    /// Section; empty: top level.
    pub(super) section: &'static str,
    pub(super) key: &'static Key,
    /// The value, or what it means that there is none.
    pub(super) value: Result<Text, &'static str>,
}

/// Writes a configuration as TOML: every key that has an effect, with its
/// value, so that the text does not depend on defaults.
///
/// [`Profile::parse`](super::Profile::parse) of the text gives the same
/// configuration, provided that it is one that [`check`](super::check) accepts.
#[must_use]
pub fn to_toml(config: &DriveConfig) -> String {
    let mut text = format!("schema = {}\n", keys::SCHEMA);
    let mut line = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line)
            .expect("writing to a string does not fail");
    };
    let mut section = "";
    for of in effective(config) {
        let Ok(value) = of.value else { continue };
        if of.section != section {
            section = of.section;
            line(format_args!("\n[{section}]\n"));
        }
        line(format_args!("{} = {}\n", of.key.name(), value.toml()));
    }
    let of_namespace = keys::namespaces();
    for namespace in &config.namespaces {
        line(format_args!("\n[[{}]]\n", of_namespace.path));
        for key in &of_namespace.keys {
            // A limit that is none has no spelling: the drive has none either, then.
            if let Some(value) = value_of(key, namespace, config.lba_bytes) {
                line(format_args!("{} = {}\n", key.name(), value.toml()));
            }
        }
    }
    text
}

/// The value of a key, unless it has no effect, or is left out because it is as usual.
fn value_of<C>(key: &Key<C>, config: &C, lba_bytes: u32) -> Option<Text> {
    let left_out = key.rare && key.value.is_usual(config);
    (key.applies(config) && !left_out)
        .then(|| key.value.text(config, lba_bytes))
        .flatten()
}

/// Every key of the drive that has an effect, in the order of a file.
pub(super) fn effective(config: &DriveConfig) -> Vec<Effective> {
    let mut all = Vec::new();
    for section in keys::sections() {
        if section.rare && section.keys.iter().all(|key| key.value.is_usual(config)) {
            continue;
        }
        for key in &section.keys {
            let absent = || {
                key.value
                    .absent()
                    .filter(|_| !key.rare && key.applies(config))
            };
            let value = match value_of(key, config, config.lba_bytes) {
                Some(value) => Ok(value),
                None => match absent() {
                    Some(meaning) => Err(meaning),
                    None => continue,
                },
            };
            all.push(Effective {
                section: section.path,
                key,
                value,
            });
        }
    }
    all
}
