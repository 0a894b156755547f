//! PRPs against a walk along them that is written from the specification's text (base
//! specification 2.0, section 4.1.1), entry by entry.

use std::sync::atomic::Ordering;

use proptest::prelude::{ProptestConfig, proptest};
use zonelab_driver::pcie::prp::{PageSize, PrpError, PrpList, describe};
use zonelab_driver::pcie::{DmaMemory, DmaRegion, HostMemory};

/// The addresses of all pages of data, by the text.
fn walk(region: &DmaRegion, page: u64, prps: (u64, u64), bytes: u64) -> Vec<u64> {
    let mut found = vec![prps.0];
    let in_first = page - prps.0 % page;
    let mut left = bytes.saturating_sub(in_first);
    if left == 0 {
        return found;
    }
    if left <= page {
        assert_eq!(prps.1 % page, 0, "the second entry begins a page");
        found.push(prps.1);
        return found;
    }
    let mut at = prps.1;
    loop {
        let word = usize::try_from((at - region.iova()) / 8).unwrap();
        let entry = u64::from_le(region.words()[word].load(Ordering::Relaxed));
        assert_eq!(entry % page, 0, "entries of a list begin pages");
        let ends_page = (at + 8).is_multiple_of(page);
        if ends_page && left > page {
            at = entry;
            assert!((region.iova()..region.iova() + region.bytes() as u64).contains(&at));
            continue;
        }
        found.push(entry);
        if left <= page {
            return found;
        }
        left -= page;
        at += 8;
    }
}

fn check(mps: u8, iova: u64, bytes: u64) {
    let page = PageSize::from_mps(mps);
    let size = page.bytes();
    let memory = HostMemory::new();
    // A page of the size more, to begin with one.
    let pages = page.list_pages(bytes).max(1) + 2;
    let region = memory.allocate((pages * size) as usize).unwrap();
    let skip = (region.iova().next_multiple_of(size) - region.iova()) as usize;
    let words = page.list_pages(bytes) * size / 8;
    let (first, guard) = (skip / 8, skip / 8 + words as usize);
    for word in region.words() {
        word.store(u64::MAX, Ordering::Relaxed);
    }
    let list = PrpList {
        words: &region.words()[first..guard],
        iova: region.iova() + skip as u64,
    };
    let prps = describe(page, iova, bytes, list).unwrap();
    let touched = page.touched(iova, bytes);
    let expected: Vec<u64> = (0..touched)
        .map(|index| {
            if index == 0 {
                iova
            } else {
                iova / size * size + index * size
            }
        })
        .collect();
    assert_eq!(walk(&region, size, prps, bytes), expected);
    // Nothing is written before or behind the list: that is another command's.
    let around = region.words()[..first]
        .iter()
        .chain(&region.words()[guard..]);
    assert!(
        around
            .clone()
            .all(|word| word.load(Ordering::Relaxed) == u64::MAX)
    );
}

/// The cases that drivers got wrong.
#[test]
fn lists_that_end_at_the_end_of_a_page_are_not_chained() {
    let page = 4096;
    for pages in [
        1, 2, 3, 511, 512, 513, 514, 1023, 1024, 1025, 1535, 1536, 1537,
    ] {
        if cfg!(miri) && pages > 514 {
            break;
        }
        for offset in [0, 4, 512, 4092] {
            for shorter in [0, 4, 512, 4092] {
                check(0, 0x10_0000_0000 + offset, pages * page - shorter);
            }
        }
    }
}

#[test]
fn what_cannot_be_described_is_refused() {
    let memory = HostMemory::new();
    let region = memory.allocate(4096).unwrap();
    let page = PageSize::from_mps(0);
    let list = |words: usize| PrpList {
        words: &region.words()[..words],
        iova: region.iova(),
    };
    let unaligned = describe(page, 0x1002, 4, list(512));
    assert_eq!(unaligned, Err(PrpError::Unaligned { iova: 0x1002 }));
    let bytes = 514 * 4096;
    assert_eq!(
        describe(page, 0, bytes, list(512)),
        Err(PrpError::TooLong { bytes })
    );
    assert_eq!(
        describe(page, 0, 3 * 4096, list(0)),
        Err(PrpError::TooLong { bytes: 3 * 4096 })
    );
    assert_eq!(describe(page, 0x1234, 0, list(0)), Ok((0, 0)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn the_way_along_prps_is_the_data(
        mps in 0_u8..3,
        page in 0_u64..1 << 30,
        offset in 0_u64..4096,
        bytes in 1_u64..3_000_000,
    ) {
        let bytes = if cfg!(miri) { bytes % 40_000 + 1 } else { bytes };
        check(mps, page * 4096 + offset / 4 * 4, bytes);
    }
}
