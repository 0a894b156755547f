//! Gzipped tar archives, in memory.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use tar::{Archive, Builder, EntryType, Header};

use super::{BundleError, Limits};

/// Longest name of a file.
const NAME_MAX: usize = 1024;

/// Packs files in the given order. Neither dates nor owners are in the archive.
pub(super) fn pack<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> io::Result<Vec<u8>> {
    // The system and the level, which some libraries write into the header, are fixed as well.
    let gzip = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::new(6));
    let mut tar = Builder::new(gzip);
    for (name, bytes) in files {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_entry_type(EntryType::Regular);
        tar.append_data(&mut header, name, bytes)?;
    }
    tar.into_inner()?.finish()
}

/// Reads every file of an archive.
pub(super) fn unpack(
    bytes: &[u8],
    limits: Limits,
) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    let mut files = BTreeMap::new();
    // Headers and padding come to 1.5 KiB a file at most, long names to a little more.
    let overhead = (limits.files as u64 + 2).saturating_mul(4096);
    let unzipped = GzDecoder::new(bytes).take(limits.bytes.saturating_add(overhead));
    let mut archive = Archive::new(unzipped);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type() != EntryType::Regular {
            return Err(BundleError::Kind { name });
        }
        check_name(&name)?;
        let used: u64 = files.values().map(|file: &Vec<u8>| file.len() as u64).sum();
        let left = limits.bytes.saturating_sub(used);
        if files.len() >= limits.files || entry.size() > left {
            return Err(BundleError::TooLarge(limits));
        }
        // No more is set aside than there is: a header may lie about the size.
        let mut contents = Vec::new();
        entry.read_to_end(&mut contents)?;
        if contents.len() as u64 != entry.size() {
            return Err(ended(&name).into());
        }
        if files.insert(name.clone(), contents).is_some() {
            return Err(BundleError::Twice { name });
        }
    }
    finish(archive.into_inner())?;
    Ok(files)
}

/// Reads up to the end, where the checksum is: an archive that was cut off is damaged.
fn finish(mut rest: io::Take<GzDecoder<&[u8]>>) -> Result<(), BundleError> {
    io::copy(&mut rest, &mut io::sink())?;
    if rest.limit() == 0 {
        return Err(io::Error::other("it goes on and on").into());
    }
    if rest.into_inner().into_inner().is_empty() {
        Ok(())
    } else {
        Err(io::Error::other("something follows its end").into())
    }
}

fn ended(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("it ends in `{name}`"))
}

/// Checks that `name` is relative, in its normal form, without hidden parts.
pub(super) fn check_name(name: &str) -> Result<(), BundleError> {
    let proper = |component: Component<'_>| match component {
        Component::Normal(part) => !part.to_string_lossy().starts_with('.'),
        _ => false,
    };
    let path = Path::new(name);
    let normal: std::path::PathBuf = path.components().collect();
    let is_proper = !name.is_empty()
        && name.len() <= NAME_MAX
        && normal.to_str() == Some(name)
        && !name.contains(['\0', '\\', ':'])
        && !name.chars().any(char::is_control)
        && path.components().all(proper);
    if is_proper {
        Ok(())
    } else {
        Err(BundleError::Name {
            name: name.chars().take(NAME_MAX).collect(),
        })
    }
}
