//! Whether a command had anything to do.

/// What a command found to do, as far as its device tells.
///
/// A read of blocks that hold nothing touches no media, and the reset of an empty zone erases
/// nothing: such commands succeed at once, and what they measure is not what a drive with data
/// takes. NVMe has no field for it, so that only emulated drives tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Found {
    /// The device does not tell.
    #[default]
    Unknown,
    /// The device does not tell; by what the host knows of its zones it was nothing, or not.
    Presumed {
        /// Nothing, in the sense of [`Self::Nothing`].
        nothing: bool,
    },
    /// What it is there for, with so many blocks: those that it transfers; those that a zone
    /// held which it reset; those that it filled of a zone which it finished.
    Work(u32),
    /// All that is written of what it read was in a buffer of the device: no media was read.
    Buffered,
    /// Nothing: it read blocks that hold nothing, reset zones without a written block, or asked
    /// of zones to be what they were.
    Nothing,
}

impl Found {
    /// Whether it was nothing, as far as device or host know.
    #[must_use]
    pub const fn is_nothing(self) -> bool {
        matches!(self, Self::Nothing | Self::Presumed { nothing: true })
    }

    /// What a command found that consists of this one and another: work if one of them did.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Presumed { nothing }, other) | (other, Self::Presumed { nothing }) => {
                let nothing = nothing && other.is_nothing();
                Self::Presumed { nothing }
            }
            (Self::Work(a), Self::Work(b)) => Self::Work(a.saturating_add(b)),
            (Self::Work(blocks), _) | (_, Self::Work(blocks)) => Self::Work(blocks),
            (Self::Buffered, _) | (_, Self::Buffered) => Self::Buffered,
            (Self::Nothing, Self::Nothing) => Self::Nothing,
        }
    }

    /// What a read of so many blocks found: whether it `reads_media`, and whether any of them
    /// `holds_data`.
    #[inline]
    #[must_use]
    pub const fn by_read(blocks: u32, reads_media: bool, holds_data: bool) -> Self {
        match (reads_media, holds_data) {
            (true, _) => Self::Work(blocks),
            (false, true) => Self::Buffered,
            (false, false) => Self::Nothing,
        }
    }

    /// The blocks of it; `asked` if the device does not tell.
    #[inline]
    #[must_use]
    pub const fn blocks_or(self, asked: u64) -> u64 {
        match self {
            Self::Unknown | Self::Presumed { nothing: false } => asked,
            Self::Work(blocks) => blocks as u64,
            Self::Buffered | Self::Nothing | Self::Presumed { nothing: true } => 0,
        }
    }

    /// So many blocks, or nothing.
    #[must_use]
    pub fn blocks(count: u64) -> Self {
        match u32::try_from(count) {
            Ok(0) => Self::Nothing,
            Ok(count) => Self::Work(count),
            Err(_) => Self::Work(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Found::{self, Buffered, Nothing, Presumed, Unknown, Work};

    #[test]
    fn a_command_of_parts_found_what_any_of_them_did() {
        for (a, b, both) in [
            (Work(3), Work(4), Work(7)),
            (Work(3), Nothing, Work(3)),
            (Buffered, Work(2), Work(2)),
            (Nothing, Buffered, Buffered),
            (Nothing, Nothing, Nothing),
            (Unknown, Nothing, Unknown),
            (Presumed { nothing: true }, Unknown, Unknown),
            (
                Presumed { nothing: true },
                Nothing,
                Presumed { nothing: true },
            ),
            (
                Presumed { nothing: true },
                Presumed { nothing: false },
                Presumed { nothing: false },
            ),
            (
                Presumed { nothing: true },
                Work(2),
                Presumed { nothing: false },
            ),
            (Work(u32::MAX), Work(1), Work(u32::MAX)),
        ] {
            assert_eq!((a.with(b), b.with(a)), (both, both), "{a:?} with {b:?}");
        }
        assert_eq!(Found::blocks(0), Nothing);
        assert_eq!(Found::blocks(1 << 40), Work(u32::MAX));
    }
}
