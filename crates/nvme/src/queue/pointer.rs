//! Where the data of a command lies.
//!
//! Source: NVMe base specification 2.0, section 4.1 (Data Layout).

use crate::Reserved;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

crate::open_enum! {
    /// PRP or SGL for data transfer (PSDT): 2 bits.
    pub enum PointerKind: u8 {
        /// Physical region pages. Not used on a fabric.
        PRP = 0x0,
        /// An SGL; the metadata pointer is the address of one buffer.
        SGL_MPTR_BUFFER = 0x1,
        /// An SGL; the metadata pointer is the address of an SGL descriptor.
        SGL_MPTR_SEGMENT = 0x2,
    }
}

crate::open_enum! {
    /// SGL descriptor type: 4 bits.
    pub enum SglType: u8 {
        /// A run of memory.
        DATA_BLOCK = 0x0,
        /// Data of a read that is thrown away.
        BIT_BUCKET = 0x1,
        /// The next segment of the list.
        SEGMENT = 0x2,
        /// The next and last segment of the list.
        LAST_SEGMENT = 0x3,
        /// A run of remote memory with a key. Its length is 3 bytes and its key 4.
        KEYED_DATA_BLOCK = 0x4,
        /// The transport moves the data.
        TRANSPORT_DATA_BLOCK = 0x5,
        /// Defined by the vendor.
        VENDOR_SPECIFIC = 0xf,
    }
}

enum_fields!(PointerKind: u8, SglType: u8);

bits! {
    /// SGL identifier: the last byte of a descriptor.
    pub struct SglId(u8: u8) {
        /// Sub type: 0h the address is an address, 1h it is an offset (into
        /// the capsule, on a fabric), Ah and up as the transport defines.
        [3:0] subtype / with_subtype: u8,
        /// Type.
        [7:4] sgl_type / with_sgl_type: SglType,
    }
}

/// An SGL descriptor of any type but the keyed one, which divides the bytes
/// from 8 on differently.
#[derive(
    Copy,
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct SglDescriptor {
    /// Address, or offset if the sub type says so.
    pub address: U64,
    /// Length in bytes.
    pub length: U32,
    /// Zero.
    pub reserved_12: Reserved<3>,
    /// Type and sub type.
    pub id: SglId,
}

const _: () = assert!(size_of::<SglDescriptor>() == 16);

impl SglId {
    /// Sub type of an address.
    pub const ADDRESS: u8 = 0x0;
    /// Sub type of an offset.
    pub const OFFSET: u8 = 0x1;
    /// Sub type of data that the transport moves as it sees fit.
    pub const TRANSPORT: u8 = 0xa;
}

impl SglDescriptor {
    /// `length` bytes at `offset` of the data of the capsule: an
    /// [`SglType::DATA_BLOCK`] with an offset.
    #[must_use]
    pub fn in_capsule(offset: u64, length: u32) -> Self {
        Self::block(SglType::DATA_BLOCK, SglId::OFFSET, offset, length)
    }

    /// `length` bytes of memory at `address`: an [`SglType::DATA_BLOCK`].
    #[must_use]
    pub fn data_block(address: u64, length: u32) -> Self {
        Self::block(SglType::DATA_BLOCK, SglId::ADDRESS, address, length)
    }

    /// The next segment of a list: `length` bytes of descriptors at `address`, after which
    /// no other segment comes if it is the last.
    #[must_use]
    pub fn segment(address: u64, length: u32, is_last: bool) -> Self {
        let sgl_type = match is_last {
            true => SglType::LAST_SEGMENT,
            false => SglType::SEGMENT,
        };
        Self::block(sgl_type, SglId::ADDRESS, address, length)
    }

    /// `length` bytes that the transport moves: on TCP by data PDUs.
    #[must_use]
    pub fn transport(length: u32) -> Self {
        Self::block(SglType::TRANSPORT_DATA_BLOCK, SglId::TRANSPORT, 0, length)
    }

    /// True if it is [`SglDescriptor::in_capsule`] of some offset.
    #[must_use]
    pub fn is_in_capsule(&self) -> bool {
        self.is(SglType::DATA_BLOCK, SglId::OFFSET)
    }

    /// True if it is [`SglDescriptor::transport`].
    #[must_use]
    pub fn is_transport(&self) -> bool {
        self.is(SglType::TRANSPORT_DATA_BLOCK, SglId::TRANSPORT)
    }

    fn block(sgl_type: SglType, subtype: u8, address: u64, length: u32) -> Self {
        Self {
            address: address.into(),
            length: length.into(),
            reserved_12: Reserved::ZERO,
            id: SglId::default()
                .with_sgl_type(sgl_type)
                .with_subtype(subtype),
        }
    }

    fn is(&self, sgl_type: SglType, subtype: u8) -> bool {
        (self.id.sgl_type(), self.id.subtype()) == (sgl_type, subtype)
    }
}

/// The data pointer (DPTR) of a command: two PRP entries, or one SGL descriptor.
#[derive(
    Copy,
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct DataPointer {
    /// PRP entry 1: where the data starts.
    pub prp1: U64,
    /// PRP entry 2: the second page, a list of pages, or zero.
    pub prp2: U64,
}

const _: () = assert!(size_of::<DataPointer>() == 16);

impl DataPointer {
    /// Two PRP entries.
    #[must_use]
    pub fn prps(prp1: u64, prp2: u64) -> Self {
        Self {
            prp1: prp1.into(),
            prp2: prp2.into(),
        }
    }

    /// One SGL descriptor.
    #[must_use]
    pub fn sgl(descriptor: SglDescriptor) -> Self {
        zerocopy::transmute!(descriptor)
    }

    /// The same bytes as an SGL descriptor: right if PSDT says so.
    #[must_use]
    pub fn as_sgl(self) -> SglDescriptor {
        zerocopy::transmute!(self)
    }
}
