//! The same commands for somebody who compares their results: those of a bundle.

use std::path::Path;

use super::{Args, Common, RunArgs};
use crate::bundle::{self, Rerun};
use crate::exit::Failure;
use crate::files::Files;

/// Where a command's files are, and whether somebody reads what it says.
#[derive(Copy, Clone)]
pub(crate) struct Setting<'a> {
    /// Where files are read.
    pub(crate) files: &'a Files,
    /// Results are not shown: they are made to be compared.
    pub(crate) is_silent: bool,
}

impl<'a> Setting<'a> {
    /// A command that somebody gave.
    pub(crate) const fn of_machine(files: &'a Files) -> Self {
        Self {
            files,
            is_silent: false,
        }
    }

    /// A command of a bundle.
    pub(crate) const fn of_bundle(again: &Again<'a>) -> Self {
        Self {
            files: again.files,
            is_silent: true,
        }
    }
}

/// How results are made again that are to be compared.
pub(crate) struct Again<'a> {
    /// What their command reads.
    pub(crate) files: &'a Files,
    /// Where they go.
    pub(crate) out: &'a Path,
    /// Threads; `None`: one per core.
    pub(crate) threads: Option<u16>,
    /// Without a progress bar.
    pub(crate) quiet: bool,
}

impl Common {
    /// Nothing that a bundle says writes anywhere else.
    fn again(&mut self, again: &Again<'_>) -> Result<(), Failure> {
        if self.tracing.file().is_some() {
            return Err(not_allowed("--trace=FILE"));
        }
        self.out = Some(again.out.to_owned());
        self.force = false;
        self.work.set_threads(again.threads);
        self.quiet = again.quiet;
        self.json = false;
        Ok(())
    }
}

/// A bundle may come from anybody.
fn not_allowed(what: &str) -> Failure {
    Failure::input(anyhow::anyhow!(
        "the command in the bundle has {what}, which no bundle may have"
    ))
}

impl Args {
    /// Makes it write results to be compared.
    ///
    /// # Errors
    /// It writes elsewhere.
    pub(crate) fn again(&mut self, again: &Again<'_>) -> Result<(), Failure> {
        self.common.again(again)
    }

    /// The bundle that is to be reproduced, if it is one.
    pub(crate) fn bundle(&self) -> Option<Rerun<'_>> {
        let [file] = self.what.as_slice() else {
            return None;
        };
        bundle::is_bundle(file).then_some(Rerun {
            file,
            out: self.common.out.as_deref(),
            threads: self.common.work.threads_asked(),
            quiet: self.common.quiet,
            json: self.common.json,
        })
    }
}

impl RunArgs {
    /// Makes it write results to be compared.
    ///
    /// # Errors
    /// It writes elsewhere, or reaches for a device.
    pub(crate) fn again(&mut self, again: &Again<'_>) -> Result<(), Failure> {
        if !self.device.is_virtual() {
            return Err(not_allowed("a device in real time"));
        }
        self.common.again(again)
    }
}
