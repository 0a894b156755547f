//! What whoever runs a store is told about it while it is used.

use std::{fmt, io};

/// Something about a store that its owner should know.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// Data of a host cannot be written. Commands fail from now on, of which no more is
    /// said until [`Notice::WritesAgain`].
    CannotWrite {
        /// Bytes of the command.
        bytes: u64,
        /// What the system said.
        error: &'a io::Error,
    },
    /// New data has been written again.
    WritesAgain {
        /// Commands that failed before.
        failed: u64,
    },
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotWrite { bytes, error } => {
                write!(f, "{bytes} bytes of a host cannot be written: {error}")
            }
            Self::WritesAgain { failed } => {
                write!(f, "data is written again; commands that failed: {failed}")
            }
        }
    }
}

/// Who is told.
type Told = Box<dyn FnMut(&Notice<'_>) + Send + Sync>;

/// Who is told, and what they know.
#[derive(Default)]
pub(crate) struct Notices {
    told: Option<Told>,
    /// Commands that have failed since new data was written.
    failed: u64,
    /// What is being attempted has taken space that the store did not have.
    has_taken_space: bool,
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices")
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Notices {
    pub(crate) fn to(who: impl FnMut(&Notice<'_>) + Send + Sync + 'static) -> Self {
        Self {
            told: Some(Box::new(who)),
            ..Self::default()
        }
    }

    /// New data was written: only that shows that there is space again.
    pub(crate) const fn has_taken_space(&mut self) {
        self.has_taken_space = true;
    }

    /// A command about so many bytes was carried out, or failed with `error`.
    pub(crate) fn attempted(&mut self, bytes: u64, error: Option<&io::Error>) {
        let has_taken_space = std::mem::take(&mut self.has_taken_space);
        let notice = match error {
            Some(error) => {
                self.failed += 1;
                (self.failed == 1).then_some(Notice::CannotWrite { bytes, error })
            }
            None if self.failed > 0 && has_taken_space => {
                let failed = std::mem::take(&mut self.failed);
                Some(Notice::WritesAgain { failed })
            }
            None => None,
        };
        if let (Some(notice), Some(told)) = (notice, &mut self.told) {
            told(&notice);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_full_disk_is_told_once_and_so_is_its_end() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&said);
        let mut notices = Notices::to(move |notice| {
            to.lock().expect("one thread").push(notice.to_string());
        });
        let full = io::Error::from_raw_os_error(28);
        notices.attempted(4096, None);
        notices.attempted(8192, Some(&full));
        notices.attempted(4096, Some(&full));
        // What takes no space says nothing about whether there is some.
        notices.attempted(4096, None);
        notices.has_taken_space();
        notices.attempted(4096, Some(&full));
        notices.has_taken_space();
        notices.attempted(4096, None);
        notices.attempted(4096, None);
        assert_eq!(
            *said.lock().expect("one thread"),
            [
                "8192 bytes of a host cannot be written: No space left on device (os error 28)",
                "data is written again; commands that failed: 3",
            ]
        );
    }
}
