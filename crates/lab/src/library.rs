//! The experiments that are built in.

/// Every built-in experiment: id and text, in the order of REPRODUCTION.
const BUILTIN: &[(&str, &str)] = &[
    ("CM", include_str!("../data/experiments/CM.toml")),
    ("C1", include_str!("../data/experiments/C1.toml")),
    ("C1q", include_str!("../data/experiments/C1q.toml")),
    ("C2a", include_str!("../data/experiments/C2a.toml")),
    ("C2b", include_str!("../data/experiments/C2b.toml")),
    ("C3a", include_str!("../data/experiments/C3a.toml")),
    ("C3b", include_str!("../data/experiments/C3b.toml")),
    ("C4", include_str!("../data/experiments/C4.toml")),
    ("C4a", include_str!("../data/experiments/C4a.toml")),
    ("C4r", include_str!("../data/experiments/C4r.toml")),
    ("C4w", include_str!("../data/experiments/C4w.toml")),
    ("C5", include_str!("../data/experiments/C5.toml")),
    ("C7a", include_str!("../data/experiments/C7a.toml")),
    ("C7b", include_str!("../data/experiments/C7b.toml")),
    ("C7c", include_str!("../data/experiments/C7c.toml")),
    ("C8", include_str!("../data/experiments/C8.toml")),
    ("C8g", include_str!("../data/experiments/C8g.toml")),
    ("C9a", include_str!("../data/experiments/C9a.toml")),
    ("C9b", include_str!("../data/experiments/C9b.toml")),
    ("C10a", include_str!("../data/experiments/C10a.toml")),
    ("C10b", include_str!("../data/experiments/C10b.toml")),
    ("C11a", include_str!("../data/experiments/C11a.toml")),
    ("C11b", include_str!("../data/experiments/C11b.toml")),
    ("C12", include_str!("../data/experiments/C12.toml")),
    ("Z1", include_str!("../data/experiments/Z1.toml")),
    ("Z2", include_str!("../data/experiments/Z2.toml")),
    ("Z3", include_str!("../data/experiments/Z3.toml")),
    ("Z4", include_str!("../data/experiments/Z4.toml")),
    ("Z5", include_str!("../data/experiments/Z5.toml")),
    ("Z6", include_str!("../data/experiments/Z6.toml")),
    ("Z7", include_str!("../data/experiments/Z7.toml")),
    ("Z8", include_str!("../data/experiments/Z8.toml")),
    ("Z9", include_str!("../data/experiments/Z9.toml")),
    ("Z10a", include_str!("../data/experiments/Z10a.toml")),
    ("Z10b", include_str!("../data/experiments/Z10b.toml")),
    ("Z11", include_str!("../data/experiments/Z11.toml")),
    ("Z11s", include_str!("../data/experiments/Z11s.toml")),
    ("Z12", include_str!("../data/experiments/Z12.toml")),
    ("Z13", include_str!("../data/experiments/Z13.toml")),
    ("P2", include_str!("../data/experiments/P2.toml")),
    ("P6", include_str!("../data/experiments/P6.toml")),
    ("P7", include_str!("../data/experiments/P7.toml")),
    ("P8", include_str!("../data/experiments/P8.toml")),
    ("P9b", include_str!("../data/experiments/P9b.toml")),
    ("P10", include_str!("../data/experiments/P10.toml")),
    ("P11", include_str!("../data/experiments/P11.toml")),
    ("S3a", include_str!("../data/experiments/S3a.toml")),
    ("S3b", include_str!("../data/experiments/S3b.toml")),
    ("S3d", include_str!("../data/experiments/S3d.toml")),
    ("S4a", include_str!("../data/experiments/S4a.toml")),
    ("S4b", include_str!("../data/experiments/S4b.toml")),
    ("S4d", include_str!("../data/experiments/S4d.toml")),
    ("V1", include_str!("../data/experiments/V1.toml")),
    ("V2", include_str!("../data/experiments/V2.toml")),
    ("V4", include_str!("../data/experiments/V4.toml")),
    ("V5", include_str!("../data/experiments/V5.toml")),
    ("V6", include_str!("../data/experiments/V6.toml")),
    ("V7", include_str!("../data/experiments/V7.toml")),
    ("V8", include_str!("../data/experiments/V8.toml")),
    ("V9", include_str!("../data/experiments/V9.toml")),
    ("V10", include_str!("../data/experiments/V10.toml")),
    ("Vga", include_str!("../data/experiments/Vga.toml")),
    ("Vgb", include_str!("../data/experiments/Vgb.toml")),
    ("Vgc", include_str!("../data/experiments/Vgc.toml")),
    ("Vgd", include_str!("../data/experiments/Vgd.toml")),
];

/// Results that are panels of another experiment: of the same points.
const PANELS: &[(&str, &str)] = &[("S1", "S3b"), ("S3c", "S3b"), ("S4c", "S3b"), ("P9", "P8")];

/// Experiments that compare with nothing: something to look at, by id.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "finish-on-read",
        include_str!("../data/examples/finish-on-read.toml"),
    ),
    (
        "reset-under-reads",
        include_str!("../data/examples/reset-under-reads.toml"),
    ),
    (
        "reset-designs-confznspp",
        include_str!("../data/examples/reset-designs-confznspp.toml"),
    ),
    (
        "reset-designs-cosmos-plus",
        include_str!("../data/examples/reset-designs-cosmos-plus.toml"),
    ),
    (
        "reset-adaptive",
        include_str!("../data/examples/reset-adaptive.toml"),
    ),
    (
        "reset-split",
        include_str!("../data/examples/reset-split.toml"),
    ),
    (
        "interference-matrix",
        include_str!("../data/examples/interference-matrix.toml"),
    ),
    (
        "zinc-elsewhere-confznspp",
        include_str!("../data/examples/zinc-elsewhere-confznspp.toml"),
    ),
    (
        "zinc-elsewhere-small-zones",
        include_str!("../data/examples/zinc-elsewhere-small-zones.toml"),
    ),
    (
        "softfinish-elsewhere-confznspp",
        include_str!("../data/examples/softfinish-elsewhere-confznspp.toml"),
    ),
    (
        "softfinish-elsewhere-small-zones",
        include_str!("../data/examples/softfinish-elsewhere-small-zones.toml"),
    ),
];

/// The list of known misfits.
pub const MISFITS: &str = include_str!("../data/experiments/misfits.toml");

/// Name of [`MISFITS`] in messages.
pub const MISFITS_FILE: &str = "experiments/misfits.toml";

/// Ids of the built-in experiments, in order.
pub fn ids() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(id, _)| *id)
}

/// Results that are panels of another experiment, each with that experiment's id.
pub fn panels() -> impl Iterator<Item = (&'static str, &'static str)> {
    PANELS.iter().copied()
}

/// The text of a built-in experiment.
#[must_use]
pub fn text(id: &str) -> Option<&'static str> {
    BUILTIN
        .iter()
        .find(|(known, _)| *known == id)
        .map(|(_, text)| *text)
}

/// The text of a built-in example, which is no part of what is reproduced.
#[must_use]
pub fn example(id: &str) -> Option<&'static str> {
    let example = EXAMPLES.iter().find(|(known, _)| *known == id);
    example.map(|(_, text)| *text)
}

/// The built-in examples: id and text of each, in order.
pub fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.iter().copied()
}

/// Ids that a word on the command line stands for: one experiment (`C10a`),
/// the parts of one (`C10`), or a whole paper (`C`). Some results are panels of
/// another experiment (`S3c` of `S3b`). Empty if it stands for none.
#[must_use]
pub fn select(word: &str) -> Vec<&'static str> {
    if let Some((_, of)) = PANELS.iter().find(|(panel, _)| *panel == word) {
        return vec![of];
    }
    let is_part = |id: &str| {
        let rest = id.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_paper = word.len() == 1 && word.chars().all(|c| c.is_ascii_uppercase());
    let matches = |id: &&str| !word.is_empty() && (is_part(id) || is_paper && id.starts_with(word));
    ids().filter(matches).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_experiments() {
        assert_eq!(select("C10a"), ["C10a"]);
        assert_eq!(select("C10"), ["C10a", "C10b"]);
        let papers = ["C", "Z", "P", "S", "V"].map(|paper| select(paper).len());
        assert_eq!(papers.iter().sum::<usize>(), ids().count());
        assert_eq!(select("C2"), ["C2a", "C2b"]);
        assert_eq!(select("Z1"), ["Z1"]);
        assert_eq!(select("S3c"), ["S3b"]);
        assert_eq!(select("C1"), ["C1", "C1q"]);
        assert_eq!(select(""), [""; 0]);
        assert_eq!(select("K"), [""; 0]);
    }
}
