//! The profiles that come with zonelab.

use zonelab_config::{Problem, nearest};

use super::Profile;

/// Name and text, in alphabetical order.
const BUILTIN: [(&str, &str); 8] = [
    ("confznspp", include_str!("../../profiles/confznspp.toml")),
    (
        "cosmos-plus",
        include_str!("../../profiles/cosmos-plus.toml"),
    ),
    (
        "qlc-buffered",
        include_str!("../../profiles/qlc-buffered.toml"),
    ),
    ("qlc-cached", include_str!("../../profiles/qlc-cached.toml")),
    ("qlc-large", include_str!("../../profiles/qlc-large.toml")),
    (
        "small-zones",
        include_str!("../../profiles/small-zones.toml"),
    ),
    ("zn540", include_str!("../../profiles/zn540.toml")),
    ("zn540-2tb", include_str!("../../profiles/zn540-2tb.toml")),
];

/// The names of the built-in profiles, in alphabetical order.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// The text of a built-in profile, comments and all; `None`: there is none of that name.
#[must_use]
pub fn builtin_text(name: &str) -> Option<&'static str> {
    BUILTIN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// A built-in profile; `None`: there is none of that name.
#[must_use]
pub fn builtin(name: &str) -> Option<Profile> {
    let text = builtin_text(name)?;
    let profile = Profile::parse(&format!("{name}.toml"), text, &[]);
    Some(profile.expect("a test reads every built-in profile"))
}

/// What to say about a name that no built-in profile has.
pub(super) fn unknown(name: &str) -> Problem {
    let names: Vec<&str> = builtin_names().collect();
    let valid = match nearest(name, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!(
            "there are {}; a file needs a slash or .toml in its name",
            names.join(", ")
        ),
    };
    Problem::of_file(name, "there is no built-in profile of this name", valid)
}
