//! A store that is looked at: its file stays as it is.

use std::collections::BTreeMap;
use std::io;

use crate::medium::Medium;

/// Bytes that are kept together.
const PAGE_BYTES: u64 = 4096;

type Page = Box<[u8; PAGE_BYTES as usize]>;

/// A medium that is only read: what is written goes to memory, and is read back from there.
#[derive(Debug)]
pub struct Overlay<M> {
    below: M,
    /// Pages that were written, by their numbers. They count before `zeros`.
    pages: BTreeMap<u64, Page>,
    /// Pages that became zero: the first of a range, and the one behind its last. Ranges
    /// neither overlap nor touch.
    zeros: BTreeMap<u64, u64>,
}

impl<M: Medium> Overlay<M> {
    /// What is in `below`, so far.
    pub const fn new(below: M) -> Self {
        Self {
            below,
            pages: BTreeMap::new(),
            zeros: BTreeMap::new(),
        }
    }

    fn is_zero(&self, page: u64) -> bool {
        let range = self.zeros.range(..=page).next_back();
        range.is_some_and(|(_, end)| page < *end)
    }

    fn add_zeros(&mut self, mut first: u64, mut end: u64) {
        while let Some((start, stop)) = self.zeros.range(..=end).next_back()
            && *stop >= first
        {
            let start = *start;
            (first, end) = (first.min(start), end.max(*stop));
            self.zeros.remove(&start);
        }
        self.zeros.insert(first, end);
    }

    fn page(&mut self, number: u64) -> io::Result<&mut Page> {
        if !self.pages.contains_key(&number) {
            let mut page = Box::new([0; PAGE_BYTES as usize]);
            if !self.is_zero(number) {
                self.below.read(number * PAGE_BYTES, &mut page[..])?;
            }
            self.pages.insert(number, page);
        }
        let page = self.pages.get_mut(&number);
        page.ok_or_else(|| io::Error::other("a page was not kept"))
    }
}

/// The pages of so many bytes: number, offset of the first byte in it, number of bytes.
fn pieces(mut at: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = at.saturating_add(len);
    std::iter::from_fn(move || {
        let offset = at % PAGE_BYTES;
        let bytes = (PAGE_BYTES - offset).min(end - at);
        let piece = (at / PAGE_BYTES, offset as usize, bytes as usize);
        at += bytes;
        (bytes > 0).then_some(piece)
    })
}

impl<M: Medium> Medium for Overlay<M> {
    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        let mut rest = out;
        for (number, offset, bytes) in pieces(at, rest.len() as u64) {
            let (piece, behind) = rest.split_at_mut(bytes);
            match self.pages.get(&number) {
                Some(page) => piece.copy_from_slice(&page[offset..offset + bytes]),
                None if self.is_zero(number) => piece.fill(0),
                None => self
                    .below
                    .read(number * PAGE_BYTES + offset as u64, piece)?,
            }
            rest = behind;
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        for (number, offset, bytes) in pieces(at, rest.len() as u64) {
            let (piece, behind) = rest.split_at(bytes);
            self.page(number)?[offset..offset + bytes].copy_from_slice(piece);
            rest = behind;
        }
        Ok(())
    }

    fn zero(&mut self, at: u64, len: u64) -> io::Result<()> {
        let end = at.saturating_add(len);
        let (first, behind) = (at.div_ceil(PAGE_BYTES), end / PAGE_BYTES);
        if first >= behind {
            // Fits: less than two pages.
            return self.write(at, &vec![0; len as usize]);
        }
        self.write(at, &vec![0; (first * PAGE_BYTES - at) as usize])?;
        let tail = behind * PAGE_BYTES;
        self.write(tail, &vec![0; (end - tail) as usize])?;
        let mut kept = self.pages.split_off(&first);
        self.pages.append(&mut kept.split_off(&behind));
        self.add_zeros(first, behind);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn boot(&self) -> [u8; 16] {
        self.below.boot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that nobody may change.
    #[derive(Debug)]
    struct Fixed(Vec<u8>);

    impl Medium for Fixed {
        fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
            let there = self.0.iter().skip(at as usize).chain(std::iter::repeat(&0));
            out.iter_mut().zip(there).for_each(|(to, from)| *to = *from);
            Ok(())
        }

        fn write(&mut self, _at: u64, _bytes: &[u8]) -> io::Result<()> {
            panic!("the medium below was written")
        }

        fn zero(&mut self, _at: u64, _len: u64) -> io::Result<()> {
            panic!("the medium below was written")
        }

        fn sync(&mut self) -> io::Result<()> {
            panic!("the medium below was written")
        }
    }

    proptest::proptest! {
        #[test]
        fn it_reads_as_bytes_that_were_written(
            steps in proptest::collection::vec((0..3_u8, 0..50_000_u64, 0..20_000_usize, 1..=u8::MAX), 1..60),
        ) {
            let mut model: Vec<u8> = (0..60_000_u32).map(|at| (at % 251) as u8).collect();
            let mut overlay = Overlay::new(Fixed(model.clone()));
            model.resize(80_000, 0);
            for (kind, at, len, with) in steps {
                let place = at as usize..at as usize + len;
                match kind {
                    0 => {
                        overlay.write(at, &vec![with; len]).unwrap();
                        model[place].fill(with);
                    }
                    1 => {
                        overlay.zero(at, len as u64).unwrap();
                        model[place].fill(0);
                    }
                    _ => {
                        let mut read = vec![with; len];
                        overlay.read(at, &mut read).unwrap();
                        proptest::prop_assert_eq!(&read, &model[place]);
                    }
                }
            }
            let mut all = vec![1; model.len()];
            overlay.read(0, &mut all).unwrap();
            proptest::prop_assert!(all == model);
        }
    }
}
