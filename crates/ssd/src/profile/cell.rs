//! Kinds of flash cells, and times that are typical of them.

use zonelab_device::Nanos;

/// How many bits a cell stores, which decides how long everything takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// One bit.
    Slc,
    /// Two bits.
    Mlc,
    /// Three bits.
    Tlc,
    /// Four bits.
    Qlc,
}

/// Array times of a kind of cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// Cells to page register (tR).
    pub(super) read: Nanos,
    /// Page register to cells (tPROG), averaged over the pages of a cell.
    pub(super) program: Nanos,
    /// Erasing a block (tBERS).
    pub(super) erase: Nanos,
}

impl Cell {
    /// Times for a profile that names only the cell: round figures within what
    /// data sheets of each kind state, not those of any one product. TLC is as
    /// in the ConfZNS++ paper (SYSTOR'24), so that it agrees with that profile.
    pub(super) const fn times(self) -> Times {
        let (read_us, program_us, erase_us) = match self {
            Self::Slc => (25, 200, 1_500),
            Self::Mlc => (50, 600, 3_000),
            Self::Tlc => (60, 700, 3_500),
            Self::Qlc => (140, 2_000, 10_000),
        };
        Times {
            read: Nanos::from_us(read_us),
            program: Nanos::from_us(program_us),
            erase: Nanos::from_us(erase_us),
        }
    }
}
