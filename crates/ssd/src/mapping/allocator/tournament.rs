//! The least of many keys that change one at a time.

/// Keys that meet in one match.
const FANOUT: usize = 4;

/// A number of tournaments of the same size in one flat array. In each, every
/// entry has a key, and a node above has the least key of the four below it.
/// A change is played again only as far up as it changes a winner.
///
/// The array is the same whatever the order of changes that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tournaments {
    nodes: Vec<u128>,
    /// Where each level starts in a tournament, entries first, top last.
    levels: Vec<usize>,
    /// Nodes of a tournament.
    span: usize,
}

/// The least of [`FANOUT`] keys, in two rounds of which the first plays at once.
#[inline]
fn winner(&[a, b, c, d]: &[u128; FANOUT]) -> u128 {
    a.min(b).min(c.min(d))
}

impl Tournaments {
    /// The key of an entry that takes no part.
    pub(super) const ABSENT: u128 = u128::MAX;

    /// `count` tournaments of `entries` entries, all absent.
    pub(super) fn new(count: usize, entries: usize) -> Self {
        let mut levels = vec![0];
        let mut span = 0;
        let mut width = entries.max(1);
        while width > 1 {
            span += width.next_multiple_of(FANOUT);
            levels.push(span);
            width = width.div_ceil(FANOUT);
        }
        span += 1;
        Self {
            nodes: vec![Self::ABSENT; count * span],
            levels,
            span,
        }
    }

    /// The least key of tournament `of`, or [`Self::ABSENT`].
    #[inline]
    pub(super) fn least(&self, of: usize) -> u128 {
        self.nodes[(of + 1) * self.span - 1]
    }

    /// The key of entry `entry` of tournament `of`.
    #[inline]
    pub(super) fn get(&self, of: usize, entry: usize) -> u128 {
        self.nodes[of * self.span + entry]
    }

    /// Gives entry `entry` of tournament `of` a key.
    #[inline]
    pub(super) fn set(&mut self, of: usize, entry: usize, key: u128) {
        let nodes = &mut self.nodes[of * self.span..][..self.span];
        nodes[entry] = key;
        let mut at = entry;
        for level in self.levels.windows(2) {
            let (matches, _) = nodes[level[0]..level[1]].as_chunks();
            at /= FANOUT;
            let winner = winner(&matches[at]);
            let node = &mut nodes[level[1] + at];
            if *node == winner {
                return;
            }
            *node = winner;
        }
    }

    /// Gives every entry of every tournament a key, in order.
    pub(super) fn set_all(&mut self, entries: usize, mut key: impl FnMut(usize, usize) -> u128) {
        for (of, nodes) in self.nodes.chunks_exact_mut(self.span).enumerate() {
            for (entry, node) in nodes[..entries].iter_mut().enumerate() {
                *node = key(of, entry);
            }
            for level in self.levels.windows(2) {
                let (below, above) = nodes.split_at_mut(level[1]);
                for (keys, node) in below[level[0]..].as_chunks().0.iter().zip(above) {
                    *node = winner(keys);
                }
            }
        }
    }
}
