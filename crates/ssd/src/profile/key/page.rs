//! The page of all keys, as `docs/profiles.md` has it.

use std::fmt::Write as _;

use super::{Key, Says, Section};
use crate::profile::keys;

/// The sections of a profile as Markdown: for each its heading, what there is to say about
/// the whole of it, and a list of its keys with what they can be, what they are if they are
/// not stated, and what they do.
///
/// `docs/profiles.md` has this text; the test `the_page_has_every_key` puts it there if the
/// environment has `ZONELAB_BLESS=1`.
#[must_use]
pub fn keys_page() -> String {
    let mut page = String::new();
    for section in keys::sections() {
        let heading = match section.path {
            "" => format!("## {}", section.title),
            path => format!("## `[{path}]`: {}", section.title),
        };
        write_section(&mut page, &heading, section);
    }
    let namespaces = keys::namespaces();
    let heading = format!("## `[[{}]]`: {}", namespaces.path, namespaces.title);
    write_section(&mut page, &heading, namespaces);
    page
}

fn write_section<C>(page: &mut String, heading: &str, section: &Section<C>) {
    let mut line = |line: &str| {
        writeln!(page, "{line}").expect("writing to a string does not fail");
    };
    line(heading);
    line("");
    if !section.text.is_empty() {
        line(section.text);
        line("");
    }
    for key in &section.keys {
        line(&item(key));
    }
    line("");
}

fn item<C>(key: &Key<C>) -> String {
    let (name, value, default) = (key.name(), key.value.page_value(), key.value.page_default());
    // The last condition is the narrowest: where it holds, those before it do.
    let only = match key.only.last().map(|only| only.says) {
        Some(Says::With(what)) => format!("Only with {}. ", quoted(what)),
        Some(Says::Without(what) | Says::Because(what, _)) => {
            format!("Not with {}. ", quoted(what))
        }
        None => String::new(),
    };
    let needs = match &key.needs {
        Some(needs) if default.starts_with('`') => {
            format!(" A value other than {default} needs {}.", needs.page)
        }
        Some(needs) => format!(" It needs {}.", needs.page),
        None => String::new(),
    };
    format!("* `{name}`: {value}; {default}. {only}{}{needs}", key.text)
}

/// A condition, in backticks if it is one of keys and not of words.
fn quoted(what: &str) -> String {
    if what.contains(['=', '_']) {
        format!("`{what}`")
    } else {
        what.to_owned()
    }
}
