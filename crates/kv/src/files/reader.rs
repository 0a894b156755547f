//! Reading a file.

use std::rc::Rc;

use super::table::{Extent, File};
use super::{FileId, Files, FilesError};
use crate::Content;

/// A file to be read. Clones are the same. It does not keep the file: when that
/// is deleted, reads fail.
#[derive(Clone)]
pub struct Reader {
    files: Files,
    file: Rc<File>,
}

impl Reader {
    pub(super) fn new(files: Files, file: Rc<File>) -> Self {
        Self { files, file }
    }

    /// The file.
    #[must_use]
    pub fn id(&self) -> FileId {
        self.file.id
    }

    /// Bytes that can be read. Of a file being written, what is on the device.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.file.state.borrow().extents.len()
    }

    /// Whether there is nothing to be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads `len` bytes from `offset` on: in whole blocks, by commands that are
    /// all on their way at the same time.
    ///
    /// # Errors
    /// The file was deleted or does not have so many bytes, a command failed, or
    /// a zone has lost what it held.
    pub async fn read(&self, offset: u64, len: u64) -> Result<Content, FilesError> {
        let inner = &self.files.inner;
        let (device, shape) = (&inner.device, &inner.device.shape);
        let mut flights = Vec::new();
        for (skip, extent) in self.pieces(offset, len)? {
            let mut left = shape.lbas_of(extent.bytes);
            let mut block = extent.block;
            // Bytes of the blocks before and up to the end of what is wanted.
            let (mut skip, mut wanted) = (skip, extent.bytes);
            while left > 0 {
                let lbas = left.min(shape.io_lbas);
                let bytes = (lbas * shape.lba_bytes).min(wanted);
                let flight = device.begin_read(extent.zone, block, lbas);
                flights.push((flight, extent.zone, block, skip..bytes));
                wanted -= bytes;
                skip = 0;
                block += lbas;
                left -= lbas;
            }
        }
        let mut content = Vec::new();
        for (flight, zone, block, wanted) in flights {
            let answer = device.end(flight, "read", zone, block).await?;
            if let Some(data) = answer.data.filter(|_| inner.config.keeps_data) {
                let wanted = wanted.start as usize..wanted.end as usize;
                content.extend_from_slice(data.get(wanted).unwrap_or_default());
            }
        }
        self.check_is_there()?;
        Ok(match inner.config.keeps_data {
            true => Content::Bytes(content),
            false => Content::Sized(len),
        })
    }

    fn check_is_there(&self) -> Result<(), FilesError> {
        if self.file.state.borrow().is_deleted {
            let name = self.file.name();
            return Err(FilesError::Deleted { name });
        }
        Ok(())
    }

    /// Where the bytes are.
    fn pieces(&self, offset: u64, len: u64) -> Result<Vec<(u64, Extent)>, FilesError> {
        self.check_is_there()?;
        let state = self.file.state.borrow();
        let file_len = state.extents.len();
        if offset.checked_add(len).is_none_or(|end| end > file_len) {
            return Err(FilesError::BeyondEnd {
                name: state.name.clone(),
                offset,
                len,
                file_len,
            });
        }
        let shape = &self.files.inner.device.shape;
        let pieces = state.extents.between(offset, offset + len, shape.lba_bytes);
        let zones = self.files.inner.zones.borrow();
        for (_, extent) in &pieces {
            zones.check_readable(shape, &state.name, *extent)?;
        }
        Ok(pieces)
    }
}
