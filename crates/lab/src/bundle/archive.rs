//! Gzipped tar archives, in memory.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use tar::{Archive, Builder, Entry, EntryType, Header};

use super::{BundleError, Limits, MANIFEST, Manifest, read_manifest};

/// Longest name of a file.
const NAME_MAX: usize = 1024;
/// Most bytes of the manifest for each file: its name, in which each byte may be escaped, and the
/// rest.
const LISTED_MAX: u64 = 6 * NAME_MAX as u64 + 512;

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

/// Reads the manifest of an archive, which comes first, and every other file: of these nothing is
/// taken into memory that the manifest does not list with this size.
pub(super) fn unpack(
    bytes: &[u8],
    limits: Limits,
) -> Result<(Manifest, BTreeMap<String, Vec<u8>>), BundleError> {
    let mut manifest: Option<Manifest> = None;
    let mut files = BTreeMap::new();
    // Headers and padding come to 1.5 KiB a file at most, long names to a little more.
    let overhead = (limits.files as u64 + 2).saturating_mul(4096);
    let unzipped = GzDecoder::new(bytes).take(limits.bytes.saturating_add(overhead));
    let mut archive = Archive::new(unzipped);
    let mut long_name = None;
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        if entry.header().entry_type() == EntryType::GNULongName {
            long_name = Some(read_long_name(&mut entry)?);
            continue;
        }
        let name = match long_name.take() {
            Some(name) => name,
            None => String::from_utf8_lossy(&entry.path_bytes()).into_owned(),
        };
        if entry.header().entry_type() != EntryType::Regular {
            return Err(BundleError::Kind { name });
        }
        check_name(&name)?;
        let Some(manifest) = &manifest else {
            manifest = Some(first(&name, &mut entry, limits)?);
            continue;
        };
        if files.contains_key(&name) || name == MANIFEST {
            return Err(BundleError::Twice { name });
        }
        let listed = manifest.listed(&name);
        let listed = listed.ok_or_else(|| BundleError::Unlisted { name: name.clone() })?;
        if entry.size() != listed.bytes {
            return Err(listed.changed("size"));
        }
        let contents = read_whole(&name, &mut entry)?;
        files.insert(name, contents);
    }
    finish(archive.into_inner())?;
    Ok((manifest.ok_or_else(no_manifest)?, files))
}

/// Reads the first file of an archive, the manifest.
fn first(
    name: &str,
    entry: &mut Entry<'_, impl Read>,
    limits: Limits,
) -> Result<Manifest, BundleError> {
    if name != MANIFEST {
        return Err(no_manifest());
    }
    let most = LISTED_MAX.saturating_mul(limits.files as u64 + 1);
    if entry.size() > most.min(limits.bytes) {
        return Err(BundleError::TooLarge(limits));
    }
    read_manifest(&read_whole(name, entry)?, limits)
}

fn no_manifest() -> BundleError {
    BundleError::Manifest {
        what: "there is none".to_owned(),
    }
}

/// Sets aside no more than there is: a header may lie about the size.
fn read_whole(name: &str, entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, BundleError> {
    let mut contents = Vec::new();
    entry.read_to_end(&mut contents)?;
    match contents.len() as u64 == entry.size() {
        true => Ok(contents),
        false => Err(ended(name).into()),
    }
}

/// The name of the entry behind this one.
fn read_long_name(entry: &mut Entry<'_, impl Read>) -> Result<String, BundleError> {
    let mut name = Vec::new();
    // More than a name may have is enough to refuse it.
    entry.take(NAME_MAX as u64 + 2).read_to_end(&mut name)?;
    if name.last() == Some(&0) {
        name.pop();
    }
    Ok(String::from_utf8_lossy(&name).into_owned())
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
