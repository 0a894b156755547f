//! I/O virtual addresses: which are given out.

use std::collections::BTreeMap;

use super::dma::PAGE_BYTES;

/// Pages at the start of the address space that nothing is mapped to: a driver that
/// gives a device the address 0 by mistake is found out.
const NEVER_BYTES: u64 = 1 << 20;

/// The addresses that are free, in ranges that do not touch each other.
#[derive(Debug)]
pub(in crate::pcie) struct Iovas {
    /// Bytes by first address.
    free: BTreeMap<u64, u64>,
}

impl Iovas {
    /// `ranges` of usable addresses, first and last. They must not overlap.
    pub(in crate::pcie) fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let page = PAGE_BYTES as u64;
        let whole_pages = |(first, last): (u64, u64)| {
            let first = first.max(NEVER_BYTES).checked_next_multiple_of(page)?;
            // The very last page stays free: no end of a range is 2^64.
            let end = last.saturating_add(1) / page * page;
            (first < end).then(|| (first, end - first))
        };
        Self {
            free: ranges.into_iter().filter_map(whole_pages).collect(),
        }
    }

    /// The first `bytes` addresses in a row that are free. `bytes` are whole pages.
    pub(in crate::pcie) fn take(&mut self, bytes: u64) -> Option<u64> {
        debug_assert!(bytes > 0 && bytes.is_multiple_of(PAGE_BYTES as u64));
        let (&first, &length) = self.free.iter().find(|(_, length)| **length >= bytes)?;
        self.free.remove(&first);
        if length > bytes {
            self.free.insert(first + bytes, length - bytes);
        }
        Some(first)
    }

    /// Gives addresses back that [`Self::take`] gave out.
    pub(in crate::pcie) fn give_back(&mut self, first: u64, bytes: u64) {
        let (mut first, mut bytes) = (first, bytes);
        let before = self.free.range(..first).next_back();
        if let Some((&start, &length)) = before
            && start + length == first
        {
            self.free.remove(&start);
            (first, bytes) = (start, bytes + length);
        }
        if let Some(length) = self.free.remove(&(first + bytes)) {
            bytes += length;
        }
        self.free.insert(first, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = PAGE_BYTES as u64;

    #[test]
    fn ranges_are_cut_to_whole_pages_and_begin_behind_the_first() {
        let mut iovas = Iovas::new([(0, NEVER_BYTES + PAGE + 5), (u64::MAX - 2 * PAGE, u64::MAX)]);
        assert_eq!(iovas.take(PAGE), Some(NEVER_BYTES));
        let last = iovas.take(PAGE).expect("the second range has a whole page");
        assert!(last >= u64::MAX - 2 * PAGE && last.is_multiple_of(PAGE));
        assert_eq!(iovas.take(PAGE), None);
    }

    proptest! {
        /// Whatever is taken and given back: nothing that is out overlaps, and when all
        /// is back, all can be taken at once.
        #[test]
        fn addresses_are_given_out_once(
            steps in prop::collection::vec((any::<bool>(), 1..9_u64, any::<usize>()), 1..200),
        ) {
            let whole = 64 * PAGE;
            let mut iovas = Iovas::new([(NEVER_BYTES, NEVER_BYTES + whole - 1)]);
            let mut out: Vec<(u64, u64)> = Vec::new();
            for (takes, pages, which) in steps {
                if takes {
                    let bytes = pages * PAGE;
                    if let Some(first) = iovas.take(bytes) {
                        let end = first + bytes;
                        prop_assert!(first >= NEVER_BYTES && end <= NEVER_BYTES + whole);
                        prop_assert!(out.iter().all(|(at, len)| end <= *at || at + len <= first));
                        out.push((first, bytes));
                    }
                } else if !out.is_empty() {
                    let (first, bytes) = out.swap_remove(which % out.len());
                    iovas.give_back(first, bytes);
                }
            }
            for (first, bytes) in out {
                iovas.give_back(first, bytes);
            }
            prop_assert_eq!(iovas.take(whole), Some(NEVER_BYTES));
        }
    }
}
