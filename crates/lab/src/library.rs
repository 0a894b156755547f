//! The experiments that are built in.

/// Every built-in experiment: id and text, in the order of REPRODUCTION.
const BUILTIN: &[(&str, &str)] = &[
    ("CM", include_str!("../../../experiments/CM.toml")),
    ("C9a", include_str!("../../../experiments/C9a.toml")),
    ("C9b", include_str!("../../../experiments/C9b.toml")),
    ("C10a", include_str!("../../../experiments/C10a.toml")),
    ("C10b", include_str!("../../../experiments/C10b.toml")),
    ("C11a", include_str!("../../../experiments/C11a.toml")),
    ("C11b", include_str!("../../../experiments/C11b.toml")),
    ("C12", include_str!("../../../experiments/C12.toml")),
];

/// The list of known misfits.
pub const MISFITS: &str = include_str!("../../../experiments/misfits.toml");

/// Name of [`MISFITS`] in messages.
pub const MISFITS_FILE: &str = "experiments/misfits.toml";

/// Ids of the built-in experiments, in order.
pub fn ids() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(id, _)| *id)
}

/// The text of a built-in experiment.
#[must_use]
pub fn text(id: &str) -> Option<&'static str> {
    BUILTIN
        .iter()
        .find(|(known, _)| *known == id)
        .map(|(_, text)| *text)
}

/// Ids that a word on the command line stands for: one experiment, or a whole
/// paper by its letter (`C`). Empty if it stands for none.
#[must_use]
pub fn select(word: &str) -> Vec<&'static str> {
    let is_paper = word.len() == 1 && word.chars().all(|c| c.is_ascii_uppercase());
    ids()
        .filter(|id| *id == word || (is_paper && id.starts_with(word)))
        .collect()
}
