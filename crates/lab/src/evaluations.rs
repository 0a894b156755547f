//! A file of what was evaluated: a line of JSON for each, so that work that was
//! interrupted goes on from there.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

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
    pub(crate) fn read<H: DeserializeOwned, L: DeserializeOwned>(
        &mut self,
        is_ours: impl FnOnce(&H) -> bool,
        fits: impl Fn(&H, &L) -> bool,
    ) -> io::Result<Option<(H, Vec<L>)>> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut whole = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        let first = whole.next().unwrap_or_default();
        let Some(head) = serde_json::from_str(first).ok().filter(is_ours) else {
            return Ok(None);
        };
        let mut lines = Vec::new();
        let mut length = first.len() as u64;
        for text in whole {
            let line = serde_json::from_str(text).ok();
            let Some(line) = line.filter(|line: &L| fits(&head, line)) else {
                break;
            };
            length += text.len() as u64;
            lines.push(line);
        }
        let file = OpenOptions::new().append(true).open(&self.path)?;
        file.set_len(length)?;
        self.file = Some(file);
        Ok(Some((head, lines)))
    }

    /// Begins the file anew.
    pub(crate) fn begin(&mut self, head: &impl Serialize) -> io::Result<()> {
        self.file = Some(File::create(&self.path)?);
        self.append(head)
    }

    /// Adds a line.
    pub(crate) fn append(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(line).map_err(io::Error::other)?;
        text.push('\n');
        let file = self.file.as_mut();
        let file = file.ok_or_else(|| io::Error::other("neither read nor begun"))?;
        file.write_all(text.as_bytes())?;
        file.flush()
    }
}
