//! What was written to a conventional namespace, in the format of Linux's dm-log-writes.
//!
//! Tools that replay such a log (`replay-log` of xfstests) make the states that a namespace
//! can have had at any flush, and let a file system be checked in each of them.
//!
//! A log is a superblock and entries, each of a sector, those of writes with their data
//! behind them. A sector is a logical block. All numbers are little endian (`drivers/md/
//! dm-log-writes.c` of Linux):
//!
//! | superblock, from byte | entry, from byte |
//! | --- | --- |
//! | 0: magic, 0x6a736677736872 | 0: first sector |
//! | 8: version, 1 | 8: number of sectors |
//! | 16: number of entries | 16: flags |
//! | 24: bytes of a sector, 32 bits | 24: bytes of a mark, which follow the entry in its sector |
//!
//! Entries are in the order in which the commands ended. A flush makes durable what had
//! ended when it was submitted: what ended between that and its own end stands before it,
//! too, and may or may not have been durable.

use std::io::{self, Seek, SeekFrom, Write};

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const FLUSH: u64 = 1;
const DISCARD: u64 = 4;
const MARK: u64 = 8;
/// Bytes of an entry before what a mark says.
const ENTRY_BYTES: usize = 32;

/// A log that is being written.
#[derive(Debug)]
pub struct WriteLog<W> {
    out: W,
    block_bytes: u32,
    entries: u64,
    /// A sector to be filled.
    sector: Vec<u8>,
}

impl<W: Write + Seek> WriteLog<W> {
    /// Begins a log at the start of `out`, of a namespace with blocks of `block_bytes`, 512 or
    /// more.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(out: W, block_bytes: u32) -> io::Result<Self> {
        let mut log = Self {
            out,
            block_bytes,
            entries: 0,
            sector: vec![0; block_bytes as usize],
        };
        log.put_superblock()?;
        Ok(log)
    }

    /// Blocks were written from `first` on: as many as `data` has.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, first: u64, data: &[u8]) -> io::Result<()> {
        let count = data.len() as u64 / u64::from(self.block_bytes);
        self.entry(first, count, 0, &[])?;
        self.out.write_all(data)
    }

    /// Blocks were deallocated, or written with zeroes.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn discard(&mut self, first: u64, count: u64) -> io::Result<()> {
        self.entry(first, count, DISCARD, &[])
    }

    /// A flush has ended. The superblock counts the entries up to here.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.entry(0, 0, FLUSH, &[])?;
        self.put_superblock()
    }

    /// Something happened: a tool can replay up to here by this name, of which as much is
    /// kept as there is room for in a sector.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn mark(&mut self, name: &str) -> io::Result<()> {
        let room = self.sector.len() - ENTRY_BYTES - 1;
        let mut len = name.len().min(room);
        while !name.is_char_boundary(len) {
            len -= 1;
        }
        self.entry(0, 0, MARK, &name.as_bytes()[..len])?;
        self.put_superblock()
    }

    /// Entries so far.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// Ends the log.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.put_superblock()?;
        Ok(self.out)
    }

    fn entry(&mut self, first: u64, count: u64, flags: u64, data: &[u8]) -> io::Result<()> {
        self.sector.fill(0);
        for (at, value) in (0..).zip([first, count, flags, data.len() as u64]) {
            self.sector[8 * at..8 * at + 8].copy_from_slice(&value.to_le_bytes());
        }
        self.sector[ENTRY_BYTES..ENTRY_BYTES + data.len()].copy_from_slice(data);
        self.entries += 1;
        self.out.write_all(&self.sector)
    }

    /// Writes the superblock, and goes back to the end.
    fn put_superblock(&mut self) -> io::Result<()> {
        self.sector.fill(0);
        for (at, value) in (0..).zip([MAGIC, VERSION, self.entries]) {
            self.sector[8 * at..8 * at + 8].copy_from_slice(&value.to_le_bytes());
        }
        self.sector[24..28].copy_from_slice(&self.block_bytes.to_le_bytes());
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&self.sector)?;
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Byte by byte, as the kernel's header has it.
    #[test]
    fn a_log_is_what_the_kernel_would_write() {
        let mut log = WriteLog::new(Cursor::new(Vec::new()), 512).unwrap();
        log.write(5, &[0xaa; 1024]).unwrap();
        log.discard(9, 3).unwrap();
        log.flush().unwrap();
        log.mark("here").unwrap();
        assert_eq!(log.entries(), 4);
        let bytes = log.finish().unwrap().into_inner();
        assert_eq!(bytes.len(), 512 * (1 + 1 + 2 + 1 + 1 + 1));
        let words = |sector: usize| -> Vec<u64> {
            let at = 512 * sector;
            let (words, _) = bytes[at..at + 32].as_chunks::<8>();
            words.iter().map(|word| u64::from_le_bytes(*word)).collect()
        };
        assert_eq!(&bytes[..8], b"rhswfsj\0");
        assert_eq!(words(0), [0x6a_7366_7773_6872, 1, 4, 512]);
        assert_eq!(words(1), [5, 2, 0, 0]);
        assert!(bytes[1024..2048].iter().all(|byte| *byte == 0xaa));
        assert_eq!(words(4), [9, 3, 4, 0]);
        assert_eq!(words(5), [0, 0, 1, 0]);
        assert_eq!(words(6), [0, 0, 8, 4]);
        assert_eq!(&bytes[6 * 512 + 32..6 * 512 + 37], b"here\0");
    }

    #[test]
    fn a_mark_that_is_too_long_is_cut_between_characters() {
        let mut log = WriteLog::new(Cursor::new(Vec::new()), 512).unwrap();
        log.mark(&"ä".repeat(400)).unwrap();
        let bytes = log.finish().unwrap().into_inner();
        let len = u64::from_le_bytes(bytes[512 + 24..512 + 32].try_into().unwrap());
        assert_eq!(len, 478);
        let name = &bytes[512 + 32..512 + 32 + 478];
        assert_eq!(std::str::from_utf8(name), Ok(&*"ä".repeat(239)));
    }
}
