//! Where the files of a measurement are, and how often they are synchronised.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use rustix::fs::{statfs, statvfs};
use zonelab_ssd::Drive;
use zonelab_ssd::config::DriveConfig;
use zonelab_store::{File, Medium, Options, Store};

/// Space that the largest run takes, with some to spare.
const SPACE_BYTES: u64 = 512 << 20;
/// What Linux calls file systems in memory (`f_type` of `statfs`): tmpfs, ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Why nothing can be measured in a directory.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    /// Nothing can be made in it.
    #[error(
        "--directory {path}: nothing can be made there: {error}. It needs a directory that \
         exists and can be written to"
    )]
    NotWritable {
        /// The directory.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// It has too little space.
    #[error("--directory {path}: {free_bytes} bytes are free there, and {SPACE_BYTES} are needed")]
    Full {
        /// The directory.
        path: String,
        /// What is free.
        free_bytes: u64,
    },
}

/// A directory of its own for the files of a measurement, removed at the end.
pub(crate) struct Place {
    path: PathBuf,
    /// Its file system is in memory, and synchronising it does nothing.
    pub(in crate::bench) is_in_memory: bool,
}

impl Place {
    /// Makes it in `directory`.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub(super) fn new(directory: &Path) -> Result<Self, PlaceError> {
        let not_writable = |error: io::Error| PlaceError::NotWritable {
            path: directory.display().to_string(),
            error,
        };
        let path = directory.join(format!("zonelab-bench-{}", std::process::id()));
        fs::create_dir(&path).map_err(not_writable)?;
        // From here on the directory goes when this does.
        let mut place = Self {
            path,
            is_in_memory: false,
        };
        let space = statvfs(&place.path).map_err(|errno| not_writable(errno.into()))?;
        let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
        if free_bytes < SPACE_BYTES {
            let path = directory.display().to_string();
            return Err(PlaceError::Full { path, free_bytes });
        }
        let system = statfs(&place.path).map_err(|errno| not_writable(errno.into()))?;
        let kind = u64::try_from(system.f_type).unwrap_or_default();
        place.is_in_memory = IN_MEMORY.contains(&kind);
        Ok(place)
    }

    /// An empty file of `bytes`, all of it a hole.
    pub(super) fn plain(&self, bytes: u64) -> Result<(Removed, fs::File)> {
        let removed = Removed(self.path.join("plain"));
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&removed.0)
            .context("making a plain file")?;
        file.set_len(bytes)?;
        file.sync_all()?;
        Ok((removed, file))
    }

    /// A drive with a new store, and how often that is synchronised.
    pub(super) fn drive(
        &self,
        config: &DriveConfig,
        has_checksums: bool,
    ) -> Result<(Removed, Drive, Syncs)> {
        let removed = Removed(self.path.join("drive"));
        // It is made as the server makes it, and then opened with a medium that counts.
        drop(Store::at(&removed.0, config, Options { has_checksums })?);
        let syncs = Syncs::default();
        let medium = Counted {
            file: zonelab_store::file(&removed.0, true)?,
            syncs: syncs.clone(),
        };
        let (store, found) = zonelab_store::open(medium, config)?;
        let mut drive = Drive::stored(config, &found.kept, Box::new(store))?;
        drive.keep()?;
        Ok((removed, drive, syncs))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Whether it can be removed changes nothing about what was measured.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A file that is removed at the end, with all that was not written to the disk
/// yet: a run leaves nothing behind that the disk would be busy with.
pub(super) struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// How often a medium was synchronised, which others may ask.
#[derive(Clone, Debug, Default)]
pub(super) struct Syncs(Arc<AtomicU64>);

impl Syncs {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A file that counts what makes it durable.
#[derive(Debug)]
struct Counted {
    file: File,
    syncs: Syncs,
}

impl Medium for Counted {
    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(at, out)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write(at, bytes)
    }

    fn zero(&mut self, at: u64, len: u64) -> io::Result<()> {
        self.file.zero(at, len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.syncs.one_more();
        self.file.sync()
    }

    fn write_durably(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.syncs.one_more();
        self.file.write_durably(at, bytes)
    }

    fn reserve(&mut self, at: u64, len: u64) -> io::Result<()> {
        self.file.reserve(at, len)
    }

    fn boot(&self) -> [u8; 16] {
        self.file.boot()
    }
}
