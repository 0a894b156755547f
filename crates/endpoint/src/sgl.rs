//! The way along scatter gather lists, from the controller's side.
//!
//! Written from the text of the base specification 2.0, section 4.1.2, for a controller
//! that takes data blocks of any alignment, and neither bit buckets nor lists that are
//! longer than their data.

use zonelab_driver::pcie::HostMemory;
use zonelab_driver::pcie::memory::AccessFault;
use zonelab_nvme::Status;
use zonelab_nvme::queue::{SglDescriptor, SglId, SglType};
use zonelab_nvme::zerocopy::FromBytes;

use crate::prp::Piece;

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u32 = 16;

/// Descriptors that one command may have, so that a list that leads round and round ends.
pub const MAX_DESCRIPTORS: usize = 1024;

/// Why an SGL leads nowhere.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SglFault {
    /// A descriptor of a kind that this controller does not take.
    #[error("an SGL descriptor has type {0:?}, which this controller does not take")]
    Type(SglType),
    /// A segment of no descriptors, or of a part of one, or after the last.
    #[error("an SGL segment of {0} bytes is none, or comes after the last")]
    Segment(u32),
    /// A segment goes on before its end, or there are too many descriptors.
    #[error(
        "an SGL has a segment before the end of another, or more than {MAX_DESCRIPTORS} descriptors"
    )]
    Count,
    /// All blocks together are not as long as the data.
    #[error("an SGL describes {described} bytes, and the data has {bytes}")]
    Length {
        /// Bytes of the blocks, at least.
        described: u64,
        /// Bytes of the data.
        bytes: usize,
    },
    /// A segment is in memory that is not mapped.
    #[error(transparent)]
    Access(#[from] AccessFault),
}

impl SglFault {
    /// How the command completes.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Type(_) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
            Self::Segment(_) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
            Self::Count => Status::INVALID_SGL_DESCRIPTOR_COUNT,
            Self::Length { .. } => Status::DATA_SGL_LENGTH_INVALID,
            Self::Access(_) => Status::DATA_TRANSFER_ERROR,
        }
    }
}

/// What a descriptor is, for a controller that takes few.
enum Kind {
    Block,
    Segment { is_last: bool },
}

fn kind(descriptor: &SglDescriptor) -> Result<Kind, SglFault> {
    let sgl_type = descriptor.id.sgl_type();
    match (sgl_type, descriptor.id.subtype()) {
        (SglType::DATA_BLOCK, SglId::ADDRESS) => Ok(Kind::Block),
        (SglType::SEGMENT, SglId::ADDRESS) => Ok(Kind::Segment { is_last: false }),
        (SglType::LAST_SEGMENT, SglId::ADDRESS) => Ok(Kind::Segment { is_last: true }),
        _ => Err(SglFault::Type(sgl_type)),
    }
}

/// The pieces of `bytes` bytes of data that the descriptor of a command leads to.
///
/// # Errors
/// [`SglFault`].
pub fn pieces(
    memory: &HostMemory,
    first: SglDescriptor,
    bytes: usize,
) -> Result<Vec<Piece>, SglFault> {
    let mut pieces = Vec::new();
    let (mut described, mut seen) = (0, 0);
    let mut segment = vec![first];
    let mut is_last = false;
    while !segment.is_empty() {
        let mut next = None;
        for descriptor in core::mem::take(&mut segment) {
            seen += 1;
            if next.is_some() || seen > MAX_DESCRIPTORS {
                return Err(SglFault::Count);
            }
            let length = descriptor.length.get();
            match kind(&descriptor)? {
                Kind::Block if length > 0 => {
                    described += u64::from(length);
                    pieces.push((descriptor.address.get(), length as usize));
                }
                Kind::Block => {}
                Kind::Segment { .. } if is_last => return Err(SglFault::Segment(length)),
                Kind::Segment { is_last } => next = Some((descriptor, is_last)),
            }
        }
        if let Some((descriptor, ends)) = next {
            segment = load(memory, &descriptor)?;
            is_last = ends;
        }
    }
    if described != bytes as u64 {
        return Err(SglFault::Length { described, bytes });
    }
    Ok(pieces)
}

/// The descriptors of a segment.
fn load(memory: &HostMemory, segment: &SglDescriptor) -> Result<Vec<SglDescriptor>, SglFault> {
    let length = segment.length.get();
    if length == 0 || !length.is_multiple_of(DESCRIPTOR_BYTES) {
        return Err(SglFault::Segment(length));
    }
    if length as usize > MAX_DESCRIPTORS * DESCRIPTOR_BYTES as usize {
        return Err(SglFault::Count);
    }
    let mut bytes = vec![0; length as usize];
    memory.read(segment.address.get(), &mut bytes)?;
    let descriptors = bytes.chunks_exact(DESCRIPTOR_BYTES as usize);
    Ok(descriptors
        .filter_map(|bytes| SglDescriptor::read_from_bytes(bytes).ok())
        .collect())
}
