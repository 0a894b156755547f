//! The log of what hosts write through the layer.

use std::io::{self, Seek, Write};

use zonelab_device::{Completion, Op, Tag};
use zonelab_ftl::WriteLog;
use zonelab_nvme::command::DatasetRange;
use zonelab_nvme::zerocopy::FromBytes as _;

/// Where a log can go.
pub trait Place: Write + Seek {}

impl<W: Write + Seek> Place for W {}

/// The log, and the commands that have not ended.
pub(super) struct Log {
    log: WriteLog<Box<dyn Place>>,
    /// By tag.
    under_way: Vec<Option<Op>>,
    /// The log cannot be written any more.
    failed: bool,
}

impl Log {
    /// # Errors
    /// It cannot be written.
    pub(super) fn new(to: Box<dyn Place>, block_bytes: u32) -> io::Result<Self> {
        Ok(Self {
            log: WriteLog::new(to, block_bytes)?,
            under_way: Vec::new(),
            failed: false,
        })
    }

    /// A command was submitted.
    pub(super) fn began(&mut self, tag: Tag, op: Op) {
        let index = tag.0 as usize;
        let len = self.under_way.len().max(index + 1);
        self.under_way.resize(len, None);
        self.under_way[index] = Some(op);
    }

    /// A command has ended.
    pub(super) fn ended(&mut self, completion: &Completion) {
        let op = self.under_way.get_mut(completion.tag.0 as usize);
        let Some(op) = op.and_then(Option::take) else {
            return;
        };
        if completion.status.is_success() {
            let data = completion.data.as_deref().unwrap_or_default();
            self.attempt(|log| put(log, op, data));
        }
    }

    /// Something happened to the drive.
    pub(super) fn mark(&mut self, name: &str) {
        self.attempt(|log| log.mark(name));
    }

    fn attempt(&mut self, put: impl FnOnce(&mut WriteLog<Box<dyn Place>>) -> io::Result<()>) {
        if self.failed {
            return;
        }
        if let Err(error) = put(&mut self.log) {
            tracing::error!(%error, entries = self.log.entries(), "the log of writes ends here");
            self.failed = true;
        }
    }
}

fn put(log: &mut WriteLog<Box<dyn Place>>, op: Op, data: &[u8]) -> io::Result<()> {
    match op {
        Op::Write { slba, .. } => log.write(slba.0, data),
        Op::WriteZeroes { slba, nlb } => log.discard(slba.0, nlb.into()),
        Op::Deallocate { ranges } => {
            let (list, _) = data.as_chunks::<{ size_of::<DatasetRange>() }>();
            let list = list.iter().take(ranges.into());
            for range in list.filter_map(|range| DatasetRange::read_from_bytes(range).ok()) {
                if range.nlb.get() > 0 {
                    log.discard(range.slba.get(), range.nlb.get().into())?;
                }
            }
            Ok(())
        }
        Op::Flush => log.flush(),
        _ => Ok(()),
    }
}
