//! Work on blocks without write pointers: those of a conventional namespace, or of
//! a zoned one that is only read (fio's `zonemode=none` and `zonemode=strided`).

/// The blocks that work in directions goes to, on a namespace whose zones, if it has
/// any, do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// The first block.
    pub first: u64,
    /// How many there are, at least 1.
    pub lbas: u64,
    /// Blocks of the namespace, within which the range lies. An operation in order
    /// of a size that does not divide the range ends behind it, as in fio; none goes
    /// beyond this.
    pub namespace_lbas: u64,
    /// Random places are drawn without repetition, until all of the range has been
    /// had (fio without `norandommap`). Places of a distribution other than the
    /// uniform one repeat anyway.
    pub has_map: bool,
    /// How often the job goes through the range, an amount of its size each time.
    /// `None`: over and over, for as long as it has time.
    pub passes: Option<u64>,
    /// Only parts of the range are used.
    pub stride: Option<Stride>,
}

/// Parts of a range of blocks, one after another (fio's `zonemode=strided`). They
/// go on to the end of the namespace, and then from the start of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    /// Blocks that are transferred in a part before the next one begins
    /// (`zonesize`), at least 1. In a part with fewer blocks, each is had several
    /// times.
    pub transfer_lbas: u64,
    /// Blocks of a part, at least 1 (`zonerange`).
    pub range_lbas: u64,
    /// Blocks that are left out behind a part (`zoneskip`).
    pub skip_lbas: u64,
}
