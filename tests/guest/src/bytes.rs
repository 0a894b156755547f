//! What a file holds, to be compared with what it holds later.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};

/// Bytes of a piece.
const PIECE: usize = 1 << 18;

/// All bytes of a file. Of what is zero only the length is kept: most of a disk is.
#[derive(PartialEq, Eq)]
pub struct Bytes {
    length: u64,
    /// Pieces that are not zero, by their offset.
    pieces: BTreeMap<u64, Vec<u8>>,
}

impl Bytes {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| path.display().to_string())?;
        Self::of(file)
    }

    fn of(mut source: impl Read) -> Result<Self> {
        let zeros = vec![0; PIECE];
        let mut length = 0;
        let mut pieces = BTreeMap::new();
        let mut piece = Vec::new();
        loop {
            piece.clear();
            source.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
            if piece.is_empty() {
                return Ok(Self { length, pieces });
            }
            if piece != zeros[..piece.len()] {
                pieces.insert(length, piece.clone());
            }
            length += piece.len() as u64;
        }
    }

    /// Whether no byte is set.
    pub fn is_zero(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The offset of the first byte that is not the same in both, if there is one.
    pub fn first_difference(&self, other: &Self) -> Option<u64> {
        if self.length != other.length {
            return Some(self.length.min(other.length));
        }
        let offsets = self.pieces.keys().chain(other.pieces.keys());
        let differs = |offset: &&u64| self.pieces.get(offset) != other.pieces.get(offset);
        let offset = *offsets.filter(differs).min()?;
        let byte = |of: &Self, at: usize| of.pieces.get(&offset).map_or(0, |piece| piece[at]);
        let length = self.length.min(offset + PIECE as u64) - offset;
        let at = (0..usize::try_from(length).ok()?).find(|&at| byte(self, at) != byte(other, at));
        Some(offset + at? as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_makes_a_difference() {
        let mut bytes = vec![0; 3 * PIECE + 5];
        let zero = Bytes::of(&bytes[..]).unwrap();
        assert!(zero.is_zero() && zero.first_difference(&zero).is_none());
        for at in [0, PIECE - 1, PIECE, 2 * PIECE + 7, 3 * PIECE + 4] {
            bytes[at] = 1;
            let one = Bytes::of(&bytes[..]).unwrap();
            assert!(!one.is_zero() && one != zero);
            assert_eq!(one.first_difference(&zero), Some(at as u64));
            assert_eq!(zero.first_difference(&one), Some(at as u64));
            bytes[at] = 2;
            let two = Bytes::of(&bytes[..]).unwrap();
            assert_eq!(one.first_difference(&two), Some(at as u64));
            bytes[at] = 0;
        }
        let shorter = Bytes::of(&bytes[1..]).unwrap();
        assert_eq!(shorter.first_difference(&zero), Some(3 * PIECE as u64 + 4));
        bytes[0] = 1;
        bytes[PIECE] = 1;
        let two = Bytes::of(&bytes[..]).unwrap();
        assert_eq!(two.first_difference(&zero), Some(0));
    }
}
