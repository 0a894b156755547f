//! Every key is read, written and described, and every field of the configuration has one.

mod fields;
mod samples;

use std::collections::BTreeSet;

use zonelab_config::{Document, Override, Place};

use super::super::key::{Key, Reading};
use super::super::{Profile, describe, to_toml};
use super::{all, namespaces, sections};
use crate::config::{DriveConfig, LogConfig, NamespaceConfig, NamespaceKind, ReclaimUnitHandles};
use fields::{fields, fields_of_namespace};
use samples::SAMPLES;

/// A profile that says only what it has to.
const BASE: &str = r#"schema = 1
name = "base"
[geometry]
channels = 8
ways = 2
planes = 2
pages_per_block = 64
page_size = "16KiB"
[zones]
count = 48
size = "64MiB"
[media]
read = "60us"
program = "700us"
erase = "3.5ms"
transfer = "25us"
"#;

/// Keys that a configuration keeps nothing of.
const OF_FILES: [&str; 4] = ["schema", "description", "source", "media.cell"];

fn sets(words: &str) -> Vec<Override> {
    let words = words.split_whitespace();
    words
        .map(|set| Override::parse(set).expect("an override"))
        .collect()
}

/// The key alone, put into a configuration.
fn put(key: &Key, value: &str, config: &DriveConfig) -> DriveConfig {
    let set = Override::parse(&format!("{}={value}", key.path)).expect("an override");
    let document = Document::parse("x.toml", "", &[set]).expect("TOML");
    let mut words: Vec<&str> = key.path.split('.').collect();
    let name = words.pop().expect("a path has a last word");
    let table = words
        .into_iter()
        .fold(document.root(), |table, word| table.table(word));
    let mut reading = Reading::new(config.clone(), config.lba_bytes);
    assert_eq!(key.value.read(&table, name, true, &mut reading), Ok(true));
    reading.config
}

#[test]
fn every_key_sets_the_field_that_it_is_declared_for_and_no_other() {
    let base = Profile::parse("x.toml", BASE, &[])
        .expect("it is valid")
        .config;
    let mut seen = BTreeSet::new();
    for key in all().filter(|key| !OF_FILES.contains(&key.path)) {
        let path = key.path;
        let sample = SAMPLES.iter().find(|(sample, ..)| *sample == path);
        let (_, value, context) =
            sample.unwrap_or_else(|| panic!("state a value for {path} in SAMPLES"));
        // What some keys need is wrong without them; they change any configuration.
        let config = Profile::parse("x.toml", BASE, &sets(context));
        let config = config.map_or_else(|_| base.clone(), |profile| profile.config);
        let (before, after) = (fields(&config), fields(&put(key, value, &config)));
        // A choice may bring fields along, and take others away.
        let counts = |field: &str| field == path || before.contains_key(field);
        let changes = |field: &str| counts(field) && before.get(field) != after.get(field);
        let changed: Vec<&str> = after
            .keys()
            .copied()
            .filter(|field| changes(field))
            .collect();
        assert_eq!(changed, [path], "{before:?}");
        seen.extend(after.into_keys());
    }
    let declared: BTreeSet<&str> = all().map(|key| key.path).collect();
    let covered: BTreeSet<&str> = seen.iter().copied().chain(OF_FILES).collect();
    assert_eq!(
        covered, declared,
        "a field for each key, a key for each field"
    );
    assert_eq!(
        SAMPLES.len() + OF_FILES.len(),
        declared.len(),
        "a line for each key"
    );
}

#[test]
fn every_key_is_read_written_and_described() {
    for (path, value, context) in SAMPLES {
        let context = sets(context);
        let without = Profile::parse("x.toml", BASE, &context).ok();
        let mut sets = context;
        sets.push(Override::parse(&format!("{path}={value}")).expect("an override"));
        let profile = Profile::parse("x.toml", BASE, &sets);
        let profile = profile.unwrap_or_else(|errors| panic!("{errors}"));
        // What some keys need is wrong without them.
        assert_ne!(
            without.map(|without| without.config),
            Some(profile.config.clone())
        );
        let text = to_toml(&profile.config);
        let again = Profile::parse("x.toml", &text, &[]).expect(path);
        assert_eq!(again.config, profile.config, "{path}\n{text}");
        assert!(
            matches!(profile.stated_at(path), Some(Place::Override(_))),
            "{path}"
        );
        assert!(
            matches!(again.stated_at(path), Some(Place::Line { .. })),
            "{path}"
        );
        let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
        let rows = describe(&profile);
        let row = rows
            .iter()
            .find(|row| row.section == section && row.key == name);
        let row = row.unwrap_or_else(|| panic!("{path} is not described"));
        assert!(row.note.starts_with("--set "), "{path}: {}", row.note);
        assert!(!row.value.is_empty(), "{path}");
    }
}

/// A key as the page has it: path, unit and range, default, text.
fn declared<C>(keys: &[Key<C>]) -> Vec<(&'static str, String, String, &'static str)> {
    let declared = |key: &Key<C>| {
        (
            key.path,
            key.value.page_value(),
            key.value.page_default(),
            key.text,
        )
    };
    keys.iter().map(declared).collect()
}

#[test]
fn every_declaration_is_complete() {
    let mut keys = declared(&namespaces().keys);
    for section in sections() {
        let above = section.path;
        for key in &section.keys {
            let (table, _) = key.path.rsplit_once('.').unwrap_or(("", key.path));
            assert_eq!(table, above, "{} stands in another section", key.path);
        }
        keys.extend(declared(&section.keys));
    }
    let page = super::super::keys_page();
    for (path, value, default, text) in keys {
        let one_of_names = value.starts_with('`') || value.starts_with("text");
        let is_version = path == "schema";
        assert!(
            one_of_names || is_version || value.contains(", "),
            "{path} has no range: {value}"
        );
        assert!(!default.is_empty(), "{path}");
        let sentences = text.len() > 10 && text.ends_with(['.']) && !text.contains('|');
        assert!(sentences, "{path}: {text}");
        let names = value.split('`').skip(1).step_by(2);
        for name in names.filter(|_| value.starts_with('`') && !value.contains("true")) {
            assert!(
                text.contains(&format!("`{name}`")),
                "{path} does not say what `{name}` is"
            );
        }
        let (_, name) = path.rsplit_once('.').unwrap_or(("", path));
        let row = format!("* `{name}`: {value}; {default}.");
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn conditions_are_known_when_a_key_is_read() {
    let with = |(path, value, context): &(&str, &str, &str)| {
        let sets = sets(&format!("{context} {path}={value}"));
        let profile = Profile::parse("x.toml", BASE, &sets);
        profile.expect("a sample is valid").config
    };
    let configs: Vec<DriveConfig> = SAMPLES.iter().map(with).collect();
    let mut before = BTreeSet::new();
    for key in all() {
        for only in &key.only {
            assert!(only.of.iter().all(|of| before.contains(of)), "{}", key.path);
        }
        before.insert(key.path);
        // The page names the last condition, which has to say what the others say.
        if let Some(last) = key.only.last() {
            let applying: Vec<bool> = configs.iter().map(|config| key.applies(config)).collect();
            let last: Vec<bool> = configs.iter().map(last.holds).collect();
            assert_eq!(last, applying, "{}", key.path);
            assert!(
                last.contains(&true) && last.contains(&false),
                "{}",
                key.path
            );
        }
    }
}

#[test]
fn every_field_of_a_namespace_has_a_key() {
    let kinds = [
        NamespaceKind::Zoned,
        NamespaceKind::Conventional(LogConfig::new(3)),
        NamespaceKind::Conventional(LogConfig {
            handles: Some(ReclaimUnitHandles::ONE),
            ..LogConfig::new(3)
        }),
    ];
    let mut covered = BTreeSet::new();
    for kind in kinds {
        let namespace = NamespaceConfig {
            kind,
            ..super::blank_namespace()
        };
        let own: BTreeSet<&str> = fields_of_namespace(&namespace).into_iter().collect();
        let applying = namespaces()
            .keys
            .iter()
            .filter(|key| key.applies(&namespace));
        assert_eq!(own, applying.map(|key| key.path).collect());
        covered.extend(own);
    }
    assert_eq!(covered.len(), namespaces().keys.len());
}
