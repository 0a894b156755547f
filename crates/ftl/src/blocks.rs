//! Blocks: as programs address them, and where they are.

/// A block of the conventional namespace that programs see: its LBA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalBlock(pub u32);

/// A block of a data zone: the zone's number among the data zones, times the
/// largest number of data blocks of a zone, plus the block's offset in it.
///
/// `u32::MAX` is none of them ([`crate::Shape`] sees to it), so that a map of four
/// bytes a block can say "nowhere".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysicalBlock(pub u32);

impl PhysicalBlock {
    /// The word of the map for a block that is nowhere.
    pub(crate) const NOWHERE: u32 = u32::MAX;

    /// From the word of the map.
    #[inline]
    pub(crate) const fn from_word(word: u32) -> Option<Self> {
        match word {
            Self::NOWHERE => None,
            at => Some(Self(at)),
        }
    }

    /// The word of the map.
    #[inline]
    pub(crate) const fn word(at: Option<Self>) -> u32 {
        match at {
            None => Self::NOWHERE,
            Some(Self(at)) => at,
        }
    }
}

/// A data zone, counted from the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataZone(pub u32);

/// A change of the map: what becomes of consecutive logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapChange {
    /// The first of them.
    pub first: LogicalBlock,
    /// How many, at least 1.
    pub count: u32,
    /// Where the first of them is now, with the others behind it in the same zone;
    /// `None`: they hold nothing any more.
    pub to: Option<PhysicalBlock>,
}
