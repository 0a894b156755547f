//! `zonelab fault`: orders to a drive that is served.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zonelab_guest_tests::host;

use super::program;

/// A control socket, which goes with this value.
pub(crate) struct Control(PathBuf);

impl Control {
    /// A name that no other socket has. There is no socket until a server makes it.
    pub(crate) fn new() -> Self {
        Self(host::temporary("control"))
    }

    /// What a server is told after `--control`.
    pub(crate) fn name(&self) -> Result<&str> {
        self.0.to_str().context("a path that is text")
    }

    /// `zonelab fault ARGS...`.
    pub(crate) fn fault(&self, args: &[&str]) -> Result<Value> {
        let output = Command::new(program()?)
            .args(["fault", "--json", "--control"])
            .arg(&self.0)
            .args(args)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "zonelab fault {args:?}: {said}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // A server that is killed leaves it.
        let _ = std::fs::remove_file(&self.0);
    }
}
