//! What a profile states is what the drive has.

use zonelab_config::units;
use zonelab_ssd::profile::{Profile, to_toml};

use crate::case::{Case, DriveText, Keys, PROFILE};
use crate::relation::{Bound, Checked, Relation, Verdict, any, unless};
use crate::run::Runs;

pub(super) const ALL: &[Relation] = &[
    Relation {
        name: "stated-is-resolved",
        says: "each key that a profile states has that value in the drive, with logical blocks of \
               512 bytes and of 4 KiB",
        bound: Bound::Exact,
        shape: any,
        check: stated_is_resolved,
    },
    Relation {
        name: "restated",
        says: "a profile that states every default, too, is the same drive",
        bound: Bound::Exact,
        shape: any,
        check: restated,
    },
];

fn stated_is_resolved(case: &Case, runs: &mut Runs) -> Checked {
    for lba in ["512B", "4KiB"] {
        let mut other = case.clone();
        other.drive.set("namespace.lba_size", lba);
        runs.cases.push(("read", other.clone()));
        let broken = match other.drive.profile() {
            Ok(profile) => unresolved(&other.drive, &profile),
            // With the other blocks it may not be valid.
            Err(_) => None,
        };
        if broken.is_some() {
            return unless(broken.map(|what| format!("with blocks of {lba}: {what}")));
        }
    }
    Ok(Verdict::Holds)
}

/// The first key whose value is another than is stated.
fn unresolved(drive: &DriveText, profile: &Profile) -> Option<String> {
    let resolved = DriveText::of_toml(&to_toml(&profile.config));
    for (key, value) in &drive.keys {
        let got = resolved.get(key);
        let is_lost = || {
            let mut without = drive.clone();
            without.unset(key);
            let without = without.profile();
            without.is_ok_and(|without| without.config != profile.config)
        };
        match got {
            Some(got) if !is_same(value, got) => {
                return Some(format!("{key} = {value} becomes {got}"));
            }
            None if !is_kept_elsewhere(key) && is_lost() => {
                return Some(format!("{key} = {value} is lost"));
            }
            _ => {}
        }
    }
    let both = drive.namespaces.iter().zip(&resolved.namespaces);
    both.enumerate().find_map(|(index, (stated, got))| {
        let broken = namespace(stated, got)?;
        Some(format!("namespaces.{index}.{broken}"))
    })
}

/// Whether other keys say in the resolved profile what this one says.
fn is_kept_elsewhere(key: &str) -> bool {
    key == "media.cell"
}

fn namespace(stated: &Keys, got: &Keys) -> Option<String> {
    stated.iter().find_map(|(key, value)| {
        let got = got.get(key)?;
        (!is_same(value, got)).then(|| format!("{key} = {value} becomes {got}"))
    })
}

/// Whether two texts are the same value.
fn is_same(a: &str, b: &str) -> bool {
    let list = |text: &str| text.starts_with('[').then(|| text.replace([' ', '"'], ""));
    if let (Some(a), Some(b)) = (list(a), list(b)) {
        let parts = a.trim_matches(['[', ']']).split(',');
        return parts
            .zip(b.trim_matches(['[', ']']).split(','))
            .all(|(a, b)| is_same(a, b));
    }
    fn both<T: PartialEq, E>(read: impl Fn(&str) -> Result<T, E>, a: &str, b: &str) -> bool {
        matches!((read(a), read(b)), (Ok(a), Ok(b)) if a == b)
    }
    a == b
        || both(units::parse_size, a, b)
        || both(units::parse_duration, a, b)
        || both(units::parse_rate, a, b)
        || both(units::parse_percent, a, b)
}

fn restated(case: &Case, runs: &mut Runs) -> Checked {
    runs.cases.push(("read", case.clone()));
    let profile = case.drive.profile()?;
    let text = to_toml(&profile.config);
    let again = match Profile::parse(PROFILE, &text, &[]) {
        Ok(again) => again,
        Err(errors) => return Ok(Verdict::Broken(format!("it is refused: {errors}"))),
    };
    let difference = || {
        let lines = |profile: &Profile| format!("{:#?}", profile.config);
        let (stated, again) = (lines(&profile), lines(&again));
        let mut both = stated.lines().zip(again.lines());
        let (stated, again) = both.find(|(stated, again)| stated != again)?;
        Some(format!("{} becomes {}", stated.trim(), again.trim()))
    };
    unless((profile.config != again.config).then(|| difference().unwrap_or_default()))
}
