//! Files that the command line names.

use std::io::{self, Read as _};
use std::path::Path;

use zeroize::Zeroizing;
use zonelab_config::Override;
use zonelab_lab::session;
pub(crate) use zonelab_lab::session::{
    Files, MAX_BYTES, ProfileFiles, open_ordinary, read_bounded,
};

use crate::exit::Failure;

/// Reads a text file of which results say nothing.
///
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub(crate) fn read(path: &str) -> Result<String, Failure> {
    of_path(path, read_bounded(Path::new(path)))
}

/// Reads a text file that results depend on.
///
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub(crate) fn read_from(files: &Files, path: &str) -> Result<String, Failure> {
    of_path(path, files.text(Path::new(path)))
}

/// Reads a file of any size and content of which results say nothing. Not a device, which
/// may have no end.
///
/// # Errors
/// It cannot be read, or is no ordinary file.
pub(crate) fn read_whole(path: &str) -> Result<Vec<u8>, Failure> {
    of_path(path, session::read_whole(Path::new(path)))
}

/// Reads a file as [`read_whole`] does that results depend on.
///
/// # Errors
/// It cannot be read, or is no ordinary file.
pub(crate) fn read_whole_from(files: &Files, path: &str) -> Result<Vec<u8>, Failure> {
    of_path(path, files.bytes(Path::new(path)))
}

/// Most bytes of a file of hosts or of their keys.
const MOST_OF_HOSTS_BYTES: usize = 4 << 20;
/// Most hosts that such a file may have.
pub(crate) const MOST_HOSTS: usize = 10_000;

/// Reads a file of hosts or of their keys, while a server runs: it waits for nobody, and a
/// pipe or a device without end is refused.
///
/// # Errors
/// It cannot be read, is no ordinary file, too large, or not UTF-8.
pub(crate) fn read_of_hosts(path: &Path) -> io::Result<Zeroizing<String>> {
    let file = open_ordinary(path)?;
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(MOST_OF_HOSTS_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > MOST_OF_HOSTS_BYTES {
        return Err(io::Error::other(format!(
            "too large for a file of hosts (more than {MOST_OF_HOSTS_BYTES} bytes)"
        )));
    }
    let text = std::str::from_utf8(&bytes);
    let text = text.map_err(|_| io::Error::other("this is no text (not UTF-8)"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

fn of_path<T>(path: &str, read: io::Result<T>) -> Result<T, Failure> {
    read.map_err(|error| Failure::input(anyhow::anyhow!("{path}: {error}")))
}

/// Reads `--set key=value` options.
///
/// # Errors
/// One is malformed.
pub(crate) fn overrides(texts: &[String]) -> Result<Vec<Override>, Failure> {
    texts
        .iter()
        .map(|text| Override::parse(text).map_err(|problem| Failure::usage(problem.to_string())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_hosts_are_bounded_and_wait_for_nobody() {
        let place = std::env::temp_dir().join(format!("zonelab-hosts-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let pipe = place.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let large = place.join("large");
        std::fs::write(&large, vec![b'a'; MOST_OF_HOSTS_BYTES + 1]).unwrap();
        let bytes = place.join("bytes");
        std::fs::write(&bytes, [0xff, 0xfe]).unwrap();
        let good = place.join("good");
        std::fs::write(&good, "nqn\n").unwrap();
        for (path, says) in [
            (Path::new("/dev/zero"), "no ordinary file"),
            (&place, "no ordinary file"),
            (&pipe, "no ordinary file"),
            (&large, "too large"),
            (&bytes, "not UTF-8"),
        ] {
            let error = read_of_hosts(path).unwrap_err().to_string();
            assert!(error.contains(says), "{}: {error}", path.display());
        }
        assert_eq!(read_of_hosts(&good).unwrap().as_str(), "nqn\n");
        let _ = std::fs::remove_dir_all(&place);
    }
}
