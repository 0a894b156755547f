//! Archives that Linux unpacks as its first file system: cpio, format `newc`
//! (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel).

use std::collections::BTreeSet;

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const FILE: u32 = 0o100_644;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;
/// Device numbers of `/dev/console`.
const CONSOLE: (u32, u32) = (5, 1);

/// An archive that grows.
pub(super) struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<String>,
    entries: u32,
}

impl Archive {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            directories: BTreeSet::new(),
            entries: 0,
        }
    }

    /// Adds a directory, and those around it.
    pub(super) fn directory(&mut self, name: &str) {
        if name.is_empty() || self.directories.contains(name) {
            return;
        }
        self.around(name);
        self.directories.insert(name.to_owned());
        self.entry(name, DIRECTORY, &[], (0, 0));
    }

    /// Adds a file, and the directories around it.
    pub(super) fn file(&mut self, name: &str, content: &[u8], is_program: bool) {
        self.around(name);
        let mode = if is_program { PROGRAM } else { FILE };
        self.entry(name, mode, content, (0, 0));
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, name: &str, to: &str) {
        self.around(name);
        self.entry(name, LINK, to.as_bytes(), (0, 0));
    }

    /// Adds the device that the kernel opens for its first program.
    pub(super) fn console(&mut self) {
        self.around("dev/console");
        self.entry("dev/console", CHARACTER_DEVICE, &[], CONSOLE);
    }

    /// The archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[], (0, 0));
        self.bytes
    }

    fn around(&mut self, name: &str) {
        if let Some((directory, _)) = name.rsplit_once('/') {
            self.directory(directory);
        }
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8], device: (u32, u32)) {
        self.entries += 1;
        let length = |bytes: usize| u32::try_from(bytes).expect("files are below 4 GiB");
        let fields = [
            self.entries, // inode
            mode,
            0, // owner
            0, // group
            1, // links
            0, // time
            length(content.len()),
            0, // device that holds it
            0,
            device.0,
            device.1,
            length(name.len() + 1),
            0, // checksum, which this format has not
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_once_before_what_is_in_them() {
        let mut archive = Archive::new();
        archive.file("a/b/c", b"12345", true);
        archive.file("a/b/d", b"", false);
        archive.link("a/e", "b/c");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8(bytes).unwrap();
        let places: Vec<usize> = [
            "a\0",
            "a/b\0",
            "a/b/c\0",
            "12345",
            "a/b/d\0",
            "a/e\0",
            "TRAILER!!!\0",
        ]
        .iter()
        .map(|name| {
            assert_eq!(text.matches(name).count(), 1, "{name:?}");
            text.find(name).unwrap()
        })
        .collect();
        assert!(places.is_sorted(), "{places:?}");
        // Each header begins at a multiple of four.
        assert!(text.match_indices("070701").all(|(at, _)| at % 4 == 0));
    }
}
