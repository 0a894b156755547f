//! Making a store.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::stored;

use crate::layout::{HEADER_BYTES, Layout, MAGIC, PREFIX_BYTES, State, VERSION};
use crate::medium::{File, Medium};
use crate::open::{Found, OpenError, open, read_layout};
use crate::overlay::Overlay;
use crate::store::Store;

/// How a new store is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Blocks get checksums, which are verified when they are read.
    pub has_checksums: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            has_checksums: true,
        }
    }
}

impl Store<File> {
    /// The store in a file, which is made if it is not there, for a drive of `config`.
    ///
    /// # Errors
    /// [`OpenError`]; nothing has changed then.
    pub fn at(
        path: &Path,
        config: &DriveConfig,
        options: Options,
    ) -> Result<(Self, Found), OpenError> {
        match Self::there(path, config) {
            Err(OpenError::System(error)) if error.kind() == io::ErrorKind::NotFound => {
                make(path, config, options)
            }
            other => other,
        }
    }

    /// The store in a file that is there, for a drive of `config`.
    ///
    /// # Errors
    /// [`OpenError`]; nothing has changed then.
    pub fn there(path: &Path, config: &DriveConfig) -> Result<(Self, Found), OpenError> {
        let bytes = Layout::new(config, true).file_bytes();
        if let Some(limit) = getrlimit(Resource::Fsize)
            .current
            .filter(|limit| *limit < bytes)
        {
            return Err(OpenError::Limit { bytes, limit });
        }
        open(file(path, true)?, config)
    }
}

impl Store<Overlay<File>> {
    /// The store in a file that is there, and that stays as it is: what the drive writes is
    /// in memory, and gone with it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn looked_at(path: &Path, config: &DriveConfig) -> Result<(Self, Found), OpenError> {
        open(Overlay::new(file(path, false)?), config)
    }
}

/// A file that is a store, for its use without a drive.
///
/// # Errors
/// [`OpenError`].
pub fn file(path: &Path, writes: bool) -> Result<File, OpenError> {
    let file = open_file(path, writes).map_err(OpenError::System)?;
    let (medium, bytes) = locked(file)?;
    check_length(&medium, bytes)?;
    Ok(medium)
}

/// Opens what is there, and does not wait for the other end of a pipe.
fn open_file(path: &Path, writes: bool) -> io::Result<fs::File> {
    fs::OpenOptions::new()
        .read(true)
        .write(writes)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
}

fn check_length(medium: &File, bytes: u64) -> Result<(), OpenError> {
    let (_, layout) = read_layout(medium)?;
    let expected = layout.file_bytes();
    if bytes == expected {
        return Ok(());
    }
    let what = format!("{bytes} bytes instead of {expected}");
    Err(OpenError::Damaged { what })
}

fn locked(file: fs::File) -> Result<(File, u64), OpenError> {
    let metadata = file.metadata().map_err(OpenError::System)?;
    if !metadata.is_file() {
        return Err(OpenError::NoOrdinaryFile);
    }
    let bytes = metadata.len();
    let file = File::lock(file).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::InUse,
        _ => OpenError::System(error),
    })?;
    Ok((file, bytes))
}

/// Makes a store beside `path` and moves it there when it is whole, if nothing
/// is there by then.
fn make(
    path: &Path,
    config: &DriveConfig,
    options: Options,
) -> Result<(Store<File>, Found), OpenError> {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let new: PathBuf = path.with_file_name(name);
    // Nothing that is there is followed or written over.
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(&new)
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenError::InTheWay {
                path: new.display().to_string(),
            },
            _ => OpenError::System(error),
        })?;
    let made = fill(file, &new, path, config, options);
    if made.is_err() {
        // Nothing of use is in it; that it cannot be removed is not what went wrong.
        let _ = fs::remove_file(&new);
    }
    let (store, found) = made?;
    let found = Found {
        is_new: true,
        ..found
    };
    Ok((store, found))
}

fn fill(
    file: fs::File,
    new: &Path,
    path: &Path,
    config: &DriveConfig,
    options: Options,
) -> Result<(Store<File>, Found), OpenError> {
    let (mut medium, _) = locked(file)?;
    let layout = Layout::new(config, options.has_checksums);
    medium
        .set_len(layout.file_bytes())
        .map_err(OpenError::System)?;
    create(&mut medium, config, options)?;
    move_to(new, path)?;
    File::sync_entry(path).map_err(OpenError::System)?;
    open(medium, config)
}

/// Gives a file its name, unless another has it.
fn move_to(new: &Path, path: &Path) -> Result<(), OpenError> {
    match renameat_with(CWD, new, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(OpenError::MadeByAnother),
        // A file system that cannot do that: by a second name, which none has yet.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(new, path).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => OpenError::MadeByAnother,
                _ => OpenError::System(error),
            })?;
            fs::remove_file(new).map_err(OpenError::System)
        }
        Err(errno) => Err(OpenError::System(errno.into())),
    }
}

/// Makes an empty store for a drive of `config` of what is all zeros.
///
/// # Errors
/// [`OpenError::System`]; [`OpenError::Description`].
pub fn create<M: Medium>(
    medium: &mut M,
    config: &DriveConfig,
    options: Options,
) -> Result<(), OpenError> {
    let layout = Layout::new(config, options.has_checksums);
    let description = (stored::shape(config), &layout);
    let body = postcard::to_stdvec(&description).expect("writing to memory never fails");
    let mut header = vec![0; PREFIX_BYTES];
    header.extend_from_slice(&body);
    if header.len() as u64 > HEADER_BYTES {
        let bytes = body.len();
        return Err(OpenError::Description { bytes });
    }
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    // Fits: it is below the length of the header.
    header[16..20].copy_from_slice(&(body.len() as u32).to_le_bytes());
    let checksum = crc32c::crc32c(&header[16..]);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
    let state = |sequence| State {
        sequence,
        epoch: 1,
        lba_bytes: config.lba_bytes,
        is_clean: true,
        boot: [0; 16],
    };
    let mut write = || {
        medium.reserve(0, layout.reserved_bytes())?;
        medium.write(Layout::state_at(1), &state(1).encode())?;
        medium.write(Layout::state_at(2), &state(2).encode())?;
        medium.write(0, &header)?;
        medium.sync()
    };
    write().map_err(OpenError::System)
}
