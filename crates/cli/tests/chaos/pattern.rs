//! What hosts write: blocks that say who wrote them, where, and with which command.

/// Bytes of a block.
pub(crate) const BLOCK: usize = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"ZLCHAOS\n");
/// Words of a block, of which the first ones say what it is.
const WORDS: usize = BLOCK / 8;
const HEADER_WORDS: usize = 5;
/// The offset of a block of an append, which its host does not know when it sends it.
pub(crate) const ANYWHERE: u32 = u32::MAX;

/// What a block says of itself. The rest of it follows from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) host: u32,
    /// The command of the host that wrote it, from 1 on.
    pub(crate) serial: u32,
    /// The zone, or 0 in a conventional namespace.
    pub(crate) zone: u32,
    /// How often the zone had been reset.
    pub(crate) generation: u32,
    /// Offset in the zone or in the namespace, or [`ANYWHERE`].
    pub(crate) offset: u32,
    /// Which block of its command it is.
    pub(crate) index: u32,
}

/// What a block turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Zeros.
    Nothing,
    /// A whole block that a host wrote.
    Written(Block),
    /// Neither: this is the first byte that is wrong.
    Torn(usize),
}

impl Block {
    fn words(&self) -> [u64; WORDS] {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let mut words = [0; WORDS];
        words[0] = MAGIC;
        words[1] = pair(self.host, self.serial);
        words[2] = pair(self.zone, self.generation);
        words[3] = pair(self.offset, self.index);
        let mut sum = words[1..4].iter().fold(0, |sum, word| mix(sum ^ word));
        words[4] = sum;
        for word in &mut words[HEADER_WORDS..] {
            sum = mix(sum);
            *word = sum;
        }
        words
    }

    /// Writes it to a buffer of [`BLOCK`] bytes.
    pub(crate) fn write(&self, to: &mut [u8]) {
        for (bytes, word) in to.chunks_exact_mut(8).zip(self.words()) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads a block, every byte of it.
    pub(crate) fn read(from: &[u8]) -> Found {
        if from.iter().all(|byte| *byte == 0) {
            return Found::Nothing;
        }
        let mut header = [0_u64; HEADER_WORDS];
        for (word, bytes) in header.iter_mut().zip(from.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let halves = |word: u64| ((word >> 32) as u32, word as u32);
        let ((host, serial), (zone, generation)) = (halves(header[1]), halves(header[2]));
        let (offset, index) = halves(header[3]);
        let block = Self {
            host,
            serial,
            zone,
            generation,
            offset,
            index,
        };
        let mut whole = [0; BLOCK];
        block.write(&mut whole);
        match whole.iter().zip(from).position(|(one, other)| one != other) {
            None => Found::Written(block),
            Some(at) => Found::Torn(at),
        }
    }
}

/// A step of SplitMix64.
fn mix(state: u64) -> u64 {
    let mut word = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[test]
fn a_block_says_what_it_is_and_a_torn_one_does_not() {
    let block = Block {
        host: 3,
        serial: 77,
        zone: 5,
        generation: 2,
        offset: ANYWHERE,
        index: 9,
    };
    let mut bytes = [0; BLOCK];
    assert_eq!(Block::read(&bytes), Found::Nothing);
    block.write(&mut bytes);
    assert_eq!(Block::read(&bytes), Found::Written(block));
    bytes[2048..].fill(0);
    // The first byte that is lost may have been zero itself.
    let torn = Block::read(&bytes);
    assert!(matches!(torn, Found::Torn(2048..2056)), "{torn:?}");
}
