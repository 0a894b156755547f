//! A file of what was evaluated: a line of JSON for each, with a checksum, so that work that was
//! interrupted goes on from there and never from anything that was not measured.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use zonelab_lab::session::read_whole;

/// Name of the file in a directory of results.
pub const FILE: &str = "evaluations.jsonl";

/// The file: a head that says what it is about, and a line for each evaluation.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: Option<File>,
}

impl Log {
    /// The file at `path`, which is neither read nor made yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file holds, to append to it. `None` if it is not there or has
    /// no head that `is_ours` accepts: then it is for [`Self::begin`]. Lines
    /// end at the first that is cut off or does not fit, which is removed with
    /// all after it.
    ///
    /// # Errors
    /// It cannot be read, or a line is damaged that is not at the end: only the end is what a
    /// loss of power leaves.
    pub(crate) fn read<H: DeserializeOwned, L: DeserializeOwned>(
        &mut self,
        is_ours: impl FnOnce(&H) -> bool,
        fits: impl Fn(&H, &L) -> bool,
    ) -> io::Result<Option<(H, Vec<L>)>> {
        // What a machine that lost power left at the end may be anything, half a letter too.
        let bytes = match read_whole(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let texts: Vec<Option<String>> = lines.iter().map(|line| unsealed(line)).collect();
        let whole = texts.iter().take_while(|text| text.is_some()).count();
        if texts[whole..].iter().any(Option::is_some) {
            return Err(damaged(whole + 1));
        }
        let mut texts = texts.iter().take(whole).flatten();
        let head = texts
            .next()
            .and_then(|text| serde_json::from_str(text).ok());
        let Some(head) = head.filter(is_ours) else {
            return Ok(None);
        };
        let mut read = Vec::new();
        for text in texts {
            let line = serde_json::from_str(text).ok();
            let Some(line) = line.filter(|line: &L| fits(&head, line)) else {
                break;
            };
            read.push(line);
        }
        let length: usize = lines[..=read.len()].iter().map(|line| line.len()).sum();
        let file = OpenOptions::new().append(true).open(&self.path)?;
        file.set_len(length as u64)?;
        self.file = Some(file);
        Ok(Some((head, read)))
    }

    /// Begins the file anew.
    pub(crate) fn begin(&mut self, head: &impl Serialize) -> io::Result<()> {
        self.file = Some(File::create(&self.path)?);
        self.append(head)
    }

    /// Adds a line.
    pub(crate) fn append(&mut self, line: &impl Serialize) -> io::Result<()> {
        let text = sealed(line).map_err(io::Error::other)?;
        let file = self.file.as_mut();
        let file = file.ok_or_else(|| io::Error::other("neither read nor begun"))?;
        file.write_all(text.as_bytes())?;
        file.flush()
    }
}

/// Between what a line says and its checksum, which is the last of its keys.
const SEAL: &str = ",\"crc32c\":\"";
/// After the checksum.
const END: &str = "\"}\n";

/// A line, which has to be an object, with the checksum of all before that.
pub(crate) fn sealed(line: &impl Serialize) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(line)?;
    debug_assert!(text.ends_with('}') && text.len() > 2, "{text} has keys");
    text.pop();
    let sum = crc32c::crc32c(text.as_bytes());
    text.push_str(&format!("{SEAL}{sum:08x}{END}"));
    Ok(text)
}

/// What a line says; `None`: it is cut off or damaged.
fn unsealed(line: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix(END)?;
    let (text, sum) = line.rsplit_once(SEAL)?;
    let is_right = sum == format!("{:08x}", crc32c::crc32c(text.as_bytes()));
    is_right.then(|| format!("{text}}}"))
}

fn damaged(number: usize) -> io::Error {
    let remedy = match number {
        1 => "remove the file, and everything is measured again".to_owned(),
        _ => format!(
            "take it and what follows away (the first {} are whole), and that is measured again",
            number - 1
        ),
    };
    let what = format!("line {number} is damaged: it is not what was written; {remedy}");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize, Serialize)]
    struct Entry {
        text: String,
    }

    fn entry(text: &str) -> Entry {
        Entry {
            text: text.to_owned(),
        }
    }

    /// A file with a head and two lines.
    fn written(path: &Path) -> Vec<u8> {
        let mut log = Log::new(path);
        log.begin(&entry("head")).unwrap();
        log.append(&entry("first")).unwrap();
        log.append(&entry("zw\u{f6}lf")).unwrap();
        std::fs::read(path).unwrap()
    }

    fn read(path: &Path) -> io::Result<Option<Vec<String>>> {
        let mut log = Log::new(path);
        let is_ours = |head: &Entry| head.text == "head";
        let read = log.read(is_ours, |_, _: &Entry| true)?;
        if read.is_some() {
            log.append(&entry("next")).unwrap();
        }
        Ok(read.map(|(_, lines)| lines.into_iter().map(|line| line.text).collect()))
    }

    /// Whatever stands at the end, what is whole before it is read, and the rest removed.
    #[test]
    fn anything_at_the_end_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let whole = written(&path);
        let head = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in head..=whole.len() {
            for junk in [&b""[..], b"\xff\xfe\n", b"\x00\x00\x00", b"{\n\"late\"\n"] {
                let bytes = [&whole[..cut], junk].concat();
                std::fs::write(&path, bytes).unwrap();
                let count = whole[..cut].iter().filter(|byte| **byte == b'\n').count() - 1;
                let found = read(&path).unwrap().unwrap();
                assert_eq!(
                    found,
                    ["first", "zw\u{f6}lf"][..count],
                    "cut at {cut}, {junk:?}"
                );
                // It can be gone on with at once.
                let again = read(&path).unwrap().unwrap();
                assert_eq!(again.last().map(String::as_str), Some("next"));
            }
        }
    }

    /// A bit that is not what was written never becomes a value: the last line is dropped, and
    /// another one is named.
    #[test]
    fn a_damaged_line_is_named_or_measured_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let whole = written(&path);
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let last = whole.len() - lines[2].len();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                std::fs::write(&path, &bytes).unwrap();
                let number = whole[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
                let is_joined = whole[at] == b'\n' && number == 2;
                match read(&path) {
                    Ok(Some(found)) if at >= last => assert_eq!(found, ["first"]),
                    // Without its end it takes the last line along.
                    Ok(Some(found)) if is_joined => assert_eq!(found, [""; 0]),
                    Err(error) if at < last => {
                        assert_eq!(std::fs::read(&path).unwrap(), bytes, "it is left as it is");
                        let error = error.to_string();
                        let named = format!("line {number} is damaged");
                        assert!(error.contains(&named), "{at}: {error}");
                        let kept = ["remove the file", "the first 1 are whole"][number - 1];
                        assert!(error.contains(kept), "{at}: {error}");
                    }
                    other => panic!("bit {bit} of byte {at}: {other:?}"),
                }
            }
        }
    }

    /// Of a version that wrote no checksums: it is begun anew.
    #[test]
    fn a_file_without_checksums_is_none_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        std::fs::write(&path, "{\"text\":\"head\"}\n{\"text\":\"first\"}\n").unwrap();
        assert_eq!(read(&path).unwrap(), None);
    }
}
