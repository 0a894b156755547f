//! Which blocks of a range have not been had yet.

/// A set of numbers below a bound, from which those that were had are taken. The
/// next one that is left is found in a few steps: above the bits of the numbers are
/// levels whose bits say that 64 of the level below are all taken.
#[derive(Clone, Debug)]
pub(super) struct FreeBlocks {
    count: u64,
    /// From the numbers up to a single word. A bit that is set is taken, and so are
    /// those behind the last number.
    levels: Vec<Vec<u64>>,
}

/// Bits of a word.
const WORD: u64 = 64;

impl FreeBlocks {
    /// All numbers below `count` are left.
    pub(super) fn new(count: u64) -> Self {
        let mut free = Self {
            count,
            levels: Vec::new(),
        };
        free.refill();
        free
    }

    /// All numbers are left again.
    pub(super) fn refill(&mut self) {
        let mut bits = self.count;
        let mut level = 0;
        loop {
            let words = bits.div_ceil(WORD).max(1);
            if self.levels.len() <= level {
                self.levels.push(Vec::new());
            }
            let of_level = &mut self.levels[level];
            of_level.clear();
            // A range of blocks that has a map fits into memory, or the allocation fails.
            of_level.resize(words as usize, 0);
            let over = words * WORD - bits;
            if let Some(last) = of_level.last_mut().filter(|_| over > 0) {
                *last = u64::MAX.checked_shl((WORD - over) as u32).unwrap_or(0);
                if over == WORD {
                    *last = u64::MAX;
                }
            }
            if words == 1 {
                return;
            }
            (bits, level) = (words, level + 1);
        }
    }

    /// The first number from `from` on that is left, or the first of all.
    pub(super) fn next(&self, from: u64) -> Option<u64> {
        self.next_from(from).or_else(|| self.next_from(0))
    }

    fn next_from(&self, from: u64) -> Option<u64> {
        let mut at = from;
        for (level, words) in self.levels.iter().enumerate() {
            let index = at / WORD;
            let word = *words.get(index as usize)?;
            let free = !word & (u64::MAX << (at % WORD));
            if free == 0 {
                at = index + 1;
                continue;
            }
            let mut found = index * WORD + u64::from(free.trailing_zeros());
            for below in self.levels[..level].iter().rev() {
                // Not all of them are taken: the bit above says so.
                let free = !below[found as usize];
                found = found * WORD + u64::from(free.trailing_zeros());
            }
            return Some(found);
        }
        None
    }

    /// How many numbers from `from` on are left in a row, at most `most`.
    pub(super) fn run(&self, from: u64, most: u64) -> u64 {
        let is_left = |at: &u64| self.next_from(*at) == Some(*at);
        (from..from.saturating_add(most))
            .take_while(is_left)
            .count() as u64
    }

    /// Takes numbers.
    pub(super) fn take(&mut self, from: u64, count: u64) {
        for number in from..from.saturating_add(count).min(self.count) {
            let mut at = number;
            for words in &mut self.levels {
                let word = &mut words[(at / WORD) as usize];
                *word |= 1 << (at % WORD);
                if *word != u64::MAX {
                    break;
                }
                at /= WORD;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn each_number_is_had_once() {
        for count in [1, 2, 63, 64, 65, 127, 4_096, 4_097, 300_000] {
            let mut free = FreeBlocks::new(count);
            let mut rng = Rng::new(count, 0);
            for pass in 0..2 {
                let mut had = vec![false; count as usize];
                for _ in 0..count {
                    let at = free.next(rng.below(count)).expect("one is left");
                    assert!(!std::mem::replace(&mut had[at as usize], true), "{at}");
                    free.take(at, 1);
                }
                assert_eq!(free.next(0), None, "pass {pass} of {count}");
                free.refill();
            }
        }
    }

    #[test]
    fn a_run_ends_at_what_is_taken_and_at_the_end() {
        let mut free = FreeBlocks::new(130);
        free.take(70, 2);
        assert_eq!(free.run(60, 100), 10);
        assert_eq!(free.run(60, 4), 4);
        assert_eq!(free.run(70, 4), 0);
        assert_eq!(free.run(128, 100), 2);
        assert_eq!(free.next(70), Some(72));
        free.take(100, 1000);
        assert_eq!(free.next(100), Some(0), "around");
    }
}
