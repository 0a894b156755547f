//! Relations hold for random drives, the generator draws every key, and the page has the table.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use zonelab_relations::draw::Draw;
use zonelab_relations::{look_at_all, profile, reduced, relations, report};
use zonelab_ssd::profile::keys_page;

/// Profiles that are drawn, unless `ZONELAB_RELATIONS_RUNS` says how many.
const RUNS: u64 = 500;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse().ok().filter(|number| *number > 0);
    Some(number.unwrap_or_else(|| panic!("{name}={text}: a number from 1 on is valid")))
}

#[test]
fn relations_hold() {
    let first = number("ZONELAB_RELATIONS_SEED").unwrap_or(1);
    let runs = number("ZONELAB_RELATIONS_RUNS").unwrap_or(RUNS);
    let (tally, failures) = look_at_all(first, runs, &[]);
    println!("{}", tally.text());
    let texts: Vec<String> = reduced(failures, 1)
        .iter()
        .map(report::Failure::text)
        .collect();
    assert!(texts.is_empty(), "{}\n{}", texts.join("\n\n"), tally.text());
    if runs < RUNS {
        return;
    }
    for relation in relations::all() {
        let looked = tally.looked_at(relation.name);
        let name = relation.name;
        assert!(
            looked * 50 >= runs,
            "{name} is about {looked} of {runs} cases: shape more"
        );
    }
}

/// Every key of the grammar, from the page that its declarations write.
fn grammar() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut section = String::new();
    for line in keys_page().lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.split('`').nth(1).unwrap_or_default();
            name.trim_matches(['[', ']']).clone_into(&mut section);
        } else if let Some(key) = line.strip_prefix("* `").and_then(|of| of.split('`').next()) {
            let dot = if section.is_empty() { "" } else { "." };
            keys.insert(format!("{section}{dot}{key}"));
        }
    }
    keys
}

#[test]
fn every_key_is_drawn_or_has_a_reason() {
    let mut missing = grammar();
    assert!(missing.contains("media.read") && missing.contains("namespaces.kind"));
    for (key, why) in profile::UNDRAWN {
        assert!(missing.remove(*key), "{key} is no key");
        assert!(!why.is_empty());
    }
    for seed in 0..4_000 {
        let drive = profile::draw(&mut Draw::new(seed, 0));
        for key in drive.keys.keys() {
            missing.remove(key);
        }
        for key in drive.namespaces.iter().flat_map(|of| of.keys()) {
            missing.remove(&format!("namespaces.{key}"));
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("no valid profile states {missing:?}: draw them in `profile`, or add them to UNDRAWN");
}

#[test]
fn most_draws_are_valid() {
    let valid = |seed: &u64| profile::attempt(&mut Draw::new(*seed, 0)).profile().is_ok();
    let count = (0..400).filter(valid).count();
    assert!(count > 100, "{count} of 400 are valid");
}

const BEGIN: &str = "<!-- relations, generated from crates/relations: begin -->\n\n";
const END: &str = "\n<!-- relations, generated: end -->";

#[test]
fn the_page_has_what_does_not_hold() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/testing.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the table begins");
    let (table, after) = rest.split_once(END).expect("the table ends");
    let wanted = report::open_table();
    if std::env::var_os("ZONELAB_BLESS").is_some() {
        let page = format!("{before}{BEGIN}{wanted}{END}{after}");
        return fs::write(&path, page).expect("the page can be written");
    }
    assert_eq!(
        table, wanted,
        "ZONELAB_BLESS=1 cargo test -p zonelab-relations writes it"
    );
}
