//! Reading blocks of metadata when a namespace is opened.

use std::ops::Range;

use futures_util::stream::{self, Stream, StreamExt as _};
use zonelab_nvme::Status;

use crate::error::FtlError;
use crate::media::Media;

/// Blocks that opening a namespace has read. All in all these are at most the image,
/// the journal zones as far as they are written, and the anchor zones; a healthy drive
/// needs two anchors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlocksRead {
    /// In anchor zones.
    pub anchors: u64,
    /// Of the image.
    pub image: u64,
    /// In journal zones.
    pub journal: u64,
}

/// Most bytes of a read.
const PIECE_BYTES: u32 = 256 << 10;
/// Reads under way at a time: an image of 1 GB is read in seconds, whatever a single read
/// takes, and at most 4 MiB are held.
const AHEAD: usize = 16;

/// Blocks of a zone, each of which is there or why it cannot be read.
pub(crate) type Blocks = Vec<Result<Vec<u8>, FtlError>>;

/// Reads blocks of a zone, several reads under way at a time, and gives them in order: the
/// offset of the first, and the blocks. `count` is of blocks that were asked for.
pub(crate) fn ahead(
    media: &Media,
    zone: u32,
    blocks: Range<u32>,
    count: &mut u64,
) -> impl Stream<Item = Result<(u32, Blocks), FtlError>> {
    let shape = media.shape();
    let piece = (PIECE_BYTES / shape.block_bytes).clamp(1, shape.max_transfer_blocks);
    let end = blocks.end;
    let reads = stream::iter(blocks.step_by(piece as usize)).map(move |offset| {
        let some = piece.min(end - offset);
        *count += u64::from(some);
        async move { Ok((offset, read_each(media, zone, offset, some).await?)) }
    });
    reads.buffered(AHEAD)
}

/// Reads blocks of a zone, each of which is there or why it cannot be read. A block
/// that the device calls unwritten is zeros.
pub(crate) async fn read_each(
    media: &Media,
    zone: u32,
    offset: u32,
    blocks: u32,
) -> Result<Blocks, FtlError> {
    let block_bytes = media.shape().bytes(1);
    match media.read(zone, offset, blocks).await {
        Ok(bytes) => {
            let each = bytes.chunks_exact(block_bytes);
            return Ok(each.map(|block| Ok(block.to_vec())).collect());
        }
        Err(FtlError::Command { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut each = Vec::with_capacity(blocks as usize);
    for at in offset..offset + blocks {
        each.push(match media.read(zone, at, 1).await {
            Err(FtlError::Command { status, .. })
                if status == Status::DEALLOCATED_OR_UNWRITTEN_BLOCK =>
            {
                Ok(vec![0; block_bytes])
            }
            Err(error @ FtlError::Command { .. }) => Err(error),
            Err(error) => return Err(error),
            Ok(bytes) => Ok(bytes),
        });
    }
    Ok(each)
}
