//! Processors by number, as fio lists them.

use super::value::{Wrong, shorten, wrong};

/// Numbers of processors or nodes are below this, as in Linux's sets.
const MAX: u32 = 1_024;

/// On which processors a job may run, in real time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// These (`cpus_allowed`, `cpumask`); empty: any.
    pub list: Vec<u32>,
    /// Those of these NUMA nodes (`numa_cpu_nodes`); empty: any.
    pub nodes: Vec<u32>,
    /// Of all nodes.
    pub all_nodes: bool,
    /// Each thread on one of them, in turn (`cpus_allowed_policy=split`).
    pub is_split: bool,
}

impl Cpus {
    /// Whether anything is asked for.
    #[must_use]
    pub const fn any(&self) -> bool {
        !self.list.is_empty() || !self.nodes.is_empty() || self.all_nodes
    }

    /// The numbers of a list as Linux writes it: `0-3,8`; `None`: it is none, or has
    /// a number above 1023. Without a number it is empty.
    #[must_use]
    pub fn parse_list(text: &str) -> Option<Vec<u32>> {
        if text.is_empty() {
            return Some(Vec::new());
        }
        list(text).ok()
    }
}

/// `0,5,8-15`, ascending and each once.
pub(super) fn list(text: &str) -> Result<Vec<u32>, Wrong> {
    let wrong = || {
        let what = format!("\"{}\" is no list of numbers", shorten(text));
        wrong(what, format!("numbers and ranges below {MAX}: 0,5,8-15"))
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n < MAX);
        let (low, high) = number(low).zip(number(high)).ok_or_else(wrong)?;
        if low > high {
            return Err(wrong());
        }
        all.extend(low..=high);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The processors whose bits are set.
pub(super) fn mask(bits: u64) -> Result<Vec<u32>, Wrong> {
    if bits == 0 {
        return Err(wrong(
            "0 allows no processor",
            "a bit for each that is allowed",
        ));
    }
    Ok((0..u64::BITS).filter(|bit| bits >> bit & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_numbers_and_ranges() {
        assert_eq!(list("0,5,8-11, 9").unwrap(), [0, 5, 8, 9, 10, 11]);
        assert_eq!(mask(34).unwrap(), [1, 5]);
        for text in ["", "a", "1-", "5-3", "1024", "0-99999999999", "-1", "1,,2"] {
            assert!(list(text).is_err(), "{text}");
        }
        assert!(mask(0).is_err());
    }
}
