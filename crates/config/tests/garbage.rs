//! No input panics: every getter on mutated documents and overrides.

use proptest::prelude::*;
use zonelab_config::{Document, Item, Override, Reported, Table};

const SEED: &str = r#"
name = "x"
time = "3.5ms"
size = "16KiB"
range = "0..=9"
n = 48
[media]
flag = true
list = ["1KiB", "2KiB"]
[[job]]
id = 1
"#;

/// Uses every getter on every kind of value.
fn read_everything(root: &Table<'_>) -> Result<(), Reported> {
    for key in [
        "name", "time", "size", "range", "n", "media", "job", "x_bytes",
    ] {
        let _ = root.u32(key).within(1..=9).optional();
        let _ = root.u64(key).optional();
        let _ = root.bool(key).optional();
        let _ = root.string(key).optional();
        let _ = root.size_bytes(key).optional();
        let _ = root.duration_ns(key).optional();
        let _ = root.rate_bytes_per_s(key).optional();
        let _ = root.percent_ppm(key).optional();
        let _ = root.range(key).optional();
        let _ = root.choice(key, &[("x", 1), ("y", 2)]).optional();
        let _ = root.list(key, Item::size_bytes).optional();
        let _ = root.tables(key);
        let _ = root.table(key).u32("id").required();
        let _ = root.refuse(key, "why");
    }
    Ok(())
}

fn check(text: &str, sets: &[String]) {
    let overrides: Vec<_> = sets
        .iter()
        .filter_map(|set| Override::parse(set).ok())
        .collect();
    match Document::parse("x.toml", text, &overrides) {
        Ok(document) => {
            let value = read_everything(&document.root());
            let message = document
                .finish(value)
                .err()
                .map(|errors| errors.to_string());
            assert_ne!(message.as_deref(), Some(""));
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}

/// Replaces a piece of the seed document.
fn mutated() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "\\PC{0,8}",
        "[\\[\\]{}\"'=.,#\n0-9a-z_-]{0,6}",
        Just("\u{0}".to_owned()),
        Just("99999999999999999999999999999999999999999".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("\r".to_owned()),
    ];
    let edit = (0..SEED.len(), 0..12_usize, pieces);
    proptest::collection::vec(edit, 1..5).prop_map(|edits| {
        let mut text: Vec<char> = SEED.chars().collect();
        for (at, length, piece) in edits {
            let at = at.min(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, piece.chars());
        }
        text.into_iter().collect()
    })
}

/// What may follow `--set`: anything, or a path that exists with a value that nearly does.
fn override_text() -> impl Strategy<Value = String> {
    let paths = [
        "name",
        "n",
        "media",
        "media.list",
        "job",
        "job.0",
        "job.0.id",
        "media.flag",
    ];
    let near = (
        proptest::sample::select(paths.to_vec()),
        "[\\[\\]{}\"'=.,0-9a-z]{0,6}",
    );
    prop_oneof![
        "[a-z0-9_.]{0,12}=\\PC{0,12}",
        near.prop_map(|(path, value)| format!("{path}={value}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn mutated_documents(text in mutated()) {
        check(&text, &[]);
    }

    #[test]
    fn any_text(text in "\\PC*") {
        check(&text, &[]);
    }

    #[test]
    fn any_override(sets in proptest::collection::vec(override_text(), 0..4)) {
        check(SEED, &sets);
    }
}
