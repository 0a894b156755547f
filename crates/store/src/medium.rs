//! Where the bytes of a store go.

use std::fmt::Debug;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

/// Bytes at offsets. What was never written is zero.
pub trait Medium: Debug + Send + Sync {
    /// Fills `out` from `at`; zeros behind the end.
    ///
    /// # Errors
    /// Of the system.
    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes` at `at`. If it fails, any part of them may be there.
    ///
    /// # Errors
    /// Of the system.
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes bytes zero, and gives their space back if it can. If it fails, any
    /// part of them may be zero.
    ///
    /// # Errors
    /// Of the system.
    fn zero(&mut self, at: u64, len: u64) -> io::Result<()>;

    /// Everything so far outlives a failure of the machine.
    ///
    /// # Errors
    /// Of the system.
    fn sync(&mut self) -> io::Result<()>;

    /// Writes `bytes` at `at`, so that they outlive a failure of the machine;
    /// others may not.
    ///
    /// # Errors
    /// Of the system.
    fn write_durably(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(at, bytes)?;
        self.sync()
    }

    /// Takes space for bytes, so that writing them does not fail for want of it.
    /// They stay as they are. A medium that cannot do that does nothing.
    ///
    /// # Errors
    /// There is no space.
    fn reserve(&mut self, at: u64, len: u64) -> io::Result<()> {
        let _ = (at, len);
        Ok(())
    }

    /// Names the time since the machine was started. What was written without
    /// being synchronised is there as long as it does not change. Zeros: it
    /// never does.
    fn boot(&self) -> [u8; 16] {
        [0; 16]
    }
}

/// Where Linux names the time since it was started.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Bytes of one step where holes cannot be punched.
const PIECE_BYTES: usize = 1 << 20;

/// A file that nobody else can use as a store.
#[derive(Debug)]
pub struct File {
    file: fs::File,
}

impl File {
    /// A file that was opened for reading and writing, and is locked from now on.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`]: another process has the lock.
    pub fn lock(file: fs::File) -> io::Result<Self> {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { file })
    }

    /// Gives the file its length. It takes no space for that.
    pub(crate) fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    /// The directory entry of the file outlives a failure of the machine.
    pub(crate) fn sync_entry(path: &Path) -> io::Result<()> {
        let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
        fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Writes zeros over what is not zero.
    fn overwrite_with_zeros(&self, at: u64, len: u64) -> io::Result<()> {
        let zeros = vec![0; PIECE_BYTES];
        let mut bytes = zeros.clone();
        let mut done = 0;
        while done < len {
            // Fits: no more than a piece.
            let piece = (len - done).min(PIECE_BYTES as u64) as usize;
            self.read(at + done, &mut bytes[..piece])?;
            if bytes[..piece] != zeros[..piece] {
                self.file.write_all_at(&zeros[..piece], at + done)?;
            }
            done += piece as u64;
        }
        Ok(())
    }
}

impl Medium for File {
    fn read(&self, at: u64, mut out: &mut [u8]) -> io::Result<()> {
        let mut at = at;
        while !out.is_empty() {
            match self.file.read_at(out, at) {
                Ok(0) => {
                    out.fill(0);
                    return Ok(());
                }
                Ok(bytes) => {
                    at += bytes as u64;
                    out = &mut out[bytes..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn zero(&mut self, at: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        loop {
            match fallocate(&self.file, flags, at, len) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                // A file system without holes, mostly.
                Err(_) => return self.overwrite_with_zeros(at, len),
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write_durably(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let slices = [io::IoSlice::new(bytes)];
        match pwritev2(&self.file, &slices, at, ReadWriteFlags::DSYNC) {
            Ok(written) if written == bytes.len() => Ok(()),
            // A file system that cannot do that, mostly.
            _ => {
                self.write(at, bytes)?;
                self.sync()
            }
        }
    }

    fn reserve(&mut self, at: u64, len: u64) -> io::Result<()> {
        loop {
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, at, len) {
                Err(Errno::INTR) => {}
                Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::IO)) => return Err(errno.into()),
                _ => return Ok(()),
            }
        }
    }

    fn boot(&self) -> [u8; 16] {
        let text = fs::read_to_string(BOOT_ID).unwrap_or_default();
        let digits = text.chars().filter_map(|digit| digit.to_digit(16));
        let number = digits.fold(0_u128, |number, digit| number << 4 | u128::from(digit));
        number.to_le_bytes()
    }
}
