//! Lists that a host reads to find namespaces and their command sets.

use crate::Reserved;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A namespace list: ascending identifiers, zero after the last.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct NamespaceList {
    /// Namespace identifiers (NSID).
    pub nsid: [U32; 1024],
}

const _: () = assert!(size_of::<NamespaceList>() == 4096);

impl NamespaceList {
    /// The identifiers up to the first zero.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.nsid
            .iter()
            .map(|nsid| nsid.get())
            .take_while(|nsid| *nsid != 0)
    }
}

/// A controller list: ascending identifiers.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ControllerList {
    /// Number of identifiers, 0 to 2047.
    pub numids: U16,
    /// Controller identifiers (CNTLID).
    pub cntlid: [U16; 2047],
}

const _: () = assert!(size_of::<ControllerList>() == 4096);

impl ControllerList {
    /// The identifiers; `None` if a peer counts more than there can be.
    #[must_use]
    pub fn controllers(&self) -> Option<&[U16]> {
        self.cntlid.get(..usize::from(self.numids.get()))
    }
}

crate::open_enum! {
    /// Namespace Identifier Type (NIDT).
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum NamespaceIdType: u8 {
        /// EUI-64, 8 bytes.
        EUI64 = 0x1,
        /// NGUID, 16 bytes.
        NGUID = 0x2,
        /// UUID, 16 bytes.
        UUID = 0x3,
        /// A [`CommandSet`](super::CommandSet), 1 byte.
        CSI = 0x4,
    }
}

const _: () = assert!(size_of::<NamespaceIdType>() == 1);

/// What an identifier in the Namespace Identification Descriptor list starts
/// with. `nidl` bytes follow it, then the next one; the list ends at `nidl` 0.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct NamespaceIdHeader {
    /// Type of the identifier (NIDT).
    pub nidt: NamespaceIdType,
    /// Length of the identifier in bytes (NIDL).
    pub nidl: u8,
    /// Zero.
    pub reserved_2: Reserved<2>,
}

const _: () = assert!(size_of::<NamespaceIdHeader>() == 4);

impl NamespaceIdHeader {
    /// What an identifier of type `nidt` and `nidl` bytes starts with.
    #[must_use]
    pub fn new(nidt: NamespaceIdType, nidl: u8) -> Self {
        Self {
            nidt,
            nidl,
            reserved_2: Reserved::ZERO,
        }
    }
}

/// The identifiers in a Namespace Identification Descriptor list, with their
/// types. They end at length 0, and where a peer sent one that is cut off.
pub fn namespace_ids(mut list: &[u8]) -> impl Iterator<Item = (NamespaceIdType, &[u8])> {
    core::iter::from_fn(move || {
        let (header, rest) = NamespaceIdHeader::ref_from_prefix(list).ok()?;
        if header.nidl == 0 {
            return None;
        }
        let (nid, rest) = rest.split_at_checked(header.nidl.into())?;
        list = rest;
        Some((header.nidt, nid))
    })
}

bits! {
    /// A set of command sets that a controller can enable together. All zero
    /// ends the list.
    pub struct CommandSetVector(U64: u64) {
        /// NVM command set.
        [0:0] nvm / with_nvm: bool,
        /// Key value command set.
        [1:1] key_value / with_key_value: bool,
        /// ZNS command set.
        [2:2] zns / with_zns: bool,
    }
}

/// Combinations of command sets; the I/O Command Set Profile feature selects
/// one by its position.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct CommandSetCombinations {
    /// The combinations.
    pub vectors: [CommandSetVector; 512],
}

const _: () = assert!(size_of::<CommandSetCombinations>() == 4096);
