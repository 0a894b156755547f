//! Options of replays.

use super::table::Columns;
use crate::fio::setting::{number, unknown};
use crate::fio::value::{self, Wrong, wrong};
use crate::workload::replay::Skips;

/// `read_iolog` and what belongs to it. Fields are named after the options.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::fio) struct ReplayOptions {
    /// Files: the first is for the first thread of the job, and so on.
    pub(in crate::fio) read_iolog: Vec<String>,
    pub(in crate::fio) write_iolog: Option<String>,
    pub(in crate::fio) no_stall: bool,
    pub(in crate::fio) time_scale: u32,
    pub(in crate::fio) align: u64,
    pub(in crate::fio) scale: u64,
    pub(in crate::fio) skip: Skips,
    /// `replay_redirect` is given: traces of several devices go to one.
    pub(in crate::fio) joins_devices: bool,
    /// Columns of a table without a header.
    pub(in crate::fio) columns: Option<Columns>,
    /// Places are folded into those of the job.
    pub(in crate::fio) wraps: bool,
    /// `replay_zones=append`.
    pub(in crate::fio) moves_writes: bool,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self {
            read_iolog: Vec::new(),
            write_iolog: None,
            no_stall: false,
            time_scale: 100,
            align: 0,
            scale: 1,
            skip: Skips::default(),
            joins_devices: false,
            columns: None,
            wraps: false,
            moves_writes: false,
        }
    }
}

impl ReplayOptions {
    /// Applies one of the options; `None`: it is none of them.
    pub(in crate::fio) fn apply(
        &mut self,
        name: &str,
        text: &str,
        kb_base: u32,
    ) -> Option<Result<(), Wrong>> {
        Some(match name {
            "read_iolog" => {
                self.read_iolog = files(text);
                Ok(())
            }
            "write_iolog" => {
                self.write_iolog = Some(text.to_owned());
                Ok(())
            }
            "replay_time_scale" => {
                number(text, 1, u64::from(u32::MAX)).map(|n| self.time_scale = n as u32)
            }
            "replay_align" => value::integer(text, kb_base).and_then(|n| match n {
                0 => Err(wrong("0 is no alignment", "a power of two")),
                n if n.is_power_of_two() => {
                    self.align = n;
                    Ok(())
                }
                n => Err(wrong(format!("{n} is no power of two"), "as in 4096")),
            }),
            "replay_scale" => number(text, 1, u64::from(u32::MAX)).map(|n| self.scale = n),
            "replay_skip" => skips(text).map(|skip| self.skip = skip),
            "replay_redirect" => {
                self.joins_devices = true;
                Ok(())
            }
            "replay_columns" => Columns::stated(text).map(|columns| self.columns = Some(columns)),
            "replay_wrap" => value::switch(Some(text)).map(|on| self.wraps = on),
            "replay_zones" => match text {
                "strict" | "append" => {
                    self.moves_writes = text == "append";
                    Ok(())
                }
                _ => Err(unknown(text, &["strict", "append"])),
            },
            _ => return None,
        })
    }
}

/// Names between colons; `\:` is a colon of a name.
fn files(text: &str) -> Vec<String> {
    let marked = text.replace("\\:", "\0");
    let names = marked.split(':').filter(|name| !name.is_empty());
    names.map(|name| name.replace('\0', ":")).collect()
}

fn skips(text: &str) -> Result<Skips, Wrong> {
    let mut skips = Skips::default();
    for name in text.split(',') {
        match name.trim() {
            "read" => skips.reads = true,
            "write" => skips.writes = true,
            "trim" => skips.trims = true,
            "sync" => skips.syncs = true,
            other => return Err(unknown(other, &["read", "write", "trim", "sync"])),
        }
    }
    Ok(skips)
}
