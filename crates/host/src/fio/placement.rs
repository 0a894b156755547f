//! Where a drive is asked to put writes (`fdp`, `plids`).

use super::setting::{number, unknown};
use super::value::{self, Wrong, wrong};

/// Options of a job about data placement. Fields are named after the options.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PlacementOptions {
    /// `fdp=1` or `dataplacement=fdp`.
    pub(super) fdp: bool,
    /// Identifiers; none are given: all that the namespace has.
    pub(super) plids: Vec<u16>,
    pub(super) at_random: bool,
}

impl PlacementOptions {
    /// Applies one of these options; `None`: it is another.
    pub(super) fn apply(&mut self, name: &str, text: &str) -> Option<Result<(), Wrong>> {
        Some(match name {
            "fdp" => number(text, 0, 1).map(|on| self.fdp = on == 1),
            "dataplacement" => second_of(text, &["none", "fdp"]).map(|on| self.fdp = on),
            "plids" => identifiers(text).map(|plids| self.plids = plids),
            "plid_select" => {
                second_of(text, &["roundrobin", "random"]).map(|on| self.at_random = on)
            }
            _ => return None,
        })
    }
}

/// Whether it is the second of two words.
fn second_of(text: &str, words: &[&str; 2]) -> Result<bool, Wrong> {
    let at = words.iter().position(|word| *word == text);
    at.map(|at| at == 1).ok_or_else(|| unknown(text, words))
}

/// `0,2,5-7`.
fn identifiers(text: &str) -> Result<Vec<u16>, Wrong> {
    /// As many as fio takes.
    const MOST: usize = 128;
    let valid = "at most 128 numbers and ranges of them: 0,2,5-7";
    let number = |text: &str| text.trim().parse::<u16>();
    let mut all = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (Ok(low), Ok(high)) = (number(low), number(high)) else {
            let what = format!("\"{}\" is no identifier", value::shorten(part.trim()));
            return Err(wrong(what, valid));
        };
        all.extend((low..=high).take(MOST + 1));
        if low > high || all.len() > MOST {
            let what = format!("\"{}\" are none, or too many", value::shorten(part.trim()));
            return Err(wrong(what, valid));
        }
    }
    Ok(all)
}
