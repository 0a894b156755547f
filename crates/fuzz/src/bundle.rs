//! Bundles: damaged, forged, foreign.

use std::collections::BTreeMap;

use zonelab_lab::bundle::{Bundle, Limits, Recipe};

use crate::draw::Draw;

/// No larger than a test has memory for.
const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    files: 64,
};

/// The target: bytes are refused with a reason, or are a bundle that packs and reads back; a
/// packed one without edits is itself. What is in it may be anything: a recipe is read, or
/// refused with a reason.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let mut draw = Draw::new(data);
    let original = draw_bundle(&mut draw);
    let packed = original.to_bytes().expect("all names are plain");
    let mut bytes = packed.clone();
    edit(&mut bytes, &mut draw);
    match Bundle::read(&bytes, LIMITS) {
        Err(error) => {
            assert_ne!(bytes, packed, "its own bundle was refused: {error}");
            assert!(!error.to_string().is_empty(), "refused without a reason");
        }
        Ok(read) => {
            // A checksum of 32 bytes is not met by chance.
            assert_eq!(read, original, "a changed bundle was taken for whole");
            let again = read.to_bytes().expect("it was read");
            assert_eq!(again, packed);
        }
    }
    let text = draw.int(0..=200_usize);
    let recipe: Vec<u8> = (0..text).map(|_| draw.int(0..=255_u8)).collect();
    for text in [recipe.as_slice(), data] {
        match Recipe::from_json(text) {
            Ok(recipe) => {
                let again = Recipe::from_json(recipe.to_json().as_bytes());
                assert_eq!(again.expect("it was written by us"), recipe);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    // Bytes that are no bundle at all.
    if let Err(error) = Bundle::read(data, LIMITS) {
        assert!(!error.to_string().is_empty());
    }
}

fn draw_bundle(draw: &mut Draw<'_>) -> Bundle {
    let mut results = BTreeMap::new();
    for number in 0..draw.int(0..=4_u8) {
        let size = draw.int(0..=700_usize);
        let fill = draw.int(0..=255_u8);
        let directory = draw.pick(&["", "traces/", "a/b/"]);
        results.insert(format!("{directory}{number}.csv"), vec![fill; size]);
    }
    Bundle {
        tool: "zonelab".to_owned(),
        results,
    }
}

/// Changes, removes or adds bytes, mostly not.
fn edit(bytes: &mut Vec<u8>, draw: &mut Draw<'_>) {
    for _ in 0..draw.int(0..=3_u8) {
        if bytes.is_empty() {
            return;
        }
        let at = draw.int(0..=bytes.len() - 1);
        match draw.int(0..=3_u8) {
            0 => bytes[at] ^= draw.int(0..=255_u8),
            1 => bytes.truncate(at),
            2 => bytes.insert(at, draw.int(0..=255_u8)),
            _ => drop(bytes.remove(at)),
        }
    }
}
