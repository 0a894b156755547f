//! What happened, for whoever has to find out why.

use std::fmt;
use std::ops::Range;

use zonelab_device::{Command, Nanos};
use zonelab_nvme::Status;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::profile::to_toml;

/// Entries that are printed.
const TAIL: usize = 60;

/// Something that happened.
#[derive(Debug)]
pub(super) enum Entry {
    Submit {
        now: Nanos,
        tag: u32,
        command: Command,
        buffer_bytes: Option<usize>,
    },
    Complete {
        at: Nanos,
        tag: u32,
        status: Status,
    },
    Advance {
        to: Nanos,
    },
    Precondition {
        now: Nanos,
        zones: Range<u32>,
    },
    Idle {
        now: Nanos,
    },
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submit {
                now,
                tag,
                command,
                buffer_bytes,
            } => {
                let nsid = command.nsid.0;
                write!(f, "{now}: #{tag} {:?} (namespace {nsid}", command.op)?;
                match buffer_bytes {
                    Some(bytes) => write!(f, ", buffer of {bytes} bytes)"),
                    None => f.write_str(", no buffer)"),
                }
            }
            Self::Complete { at, tag, status } => write!(f, "{at}: #{tag} completes: {status}"),
            Self::Advance { to } => write!(f, "{to}: asked for completions"),
            Self::Precondition { now, zones } => write!(f, "{now}: zones {zones:?} declared full"),
            Self::Idle { now } => write!(f, "{now}: idle"),
        }
    }
}

/// What happened so far. Prints itself if it is dropped by a panic.
#[derive(Debug)]
pub(super) struct Log {
    config: DriveConfig,
    entries: Vec<Entry>,
}

impl Log {
    pub(super) fn new(config: &DriveConfig) -> Self {
        Self {
            config: config.clone(),
            entries: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if !std::thread::panicking() || crate::harness::is_quiet() {
            return;
        }
        eprintln!("--- the drive\n{}", to_toml(&self.config));
        let left_out = self.entries.len().saturating_sub(TAIL);
        eprintln!("--- what happened, without the first {left_out} entries");
        for entry in &self.entries[left_out..] {
            eprintln!("{entry}");
        }
        eprintln!("---");
    }
}
