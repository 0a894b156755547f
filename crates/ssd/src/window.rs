//! How much the front end works on at a time.
//!
//! A controller has room for so many descriptors of host memory (entries of PRP lists, contexts of
//! its DMA engine), and what a command needs of it is in proportion to its data. When it is used
//! up, the controller turns to no further command, of whichever kind, until one has completed: a
//! read waits behind large writes although its die is idle. Commands that move no data need no
//! room, and wait for those before them.

use std::collections::VecDeque;

use zonelab_device::Op;

use crate::config::FrontEndConfig;
use crate::drive::Core;

/// The room for commands that the front end works on, and those that wait for some.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// `u64::MAX`: no limit.
    most_bytes: u64,
    lba_bytes: u64,
    /// Of commands that the front end has turned to and that have not completed.
    used_bytes: u64,
    /// Commands that wait, by the slot of their request, in order of arrival.
    line: VecDeque<u32>,
}

impl Window {
    pub(crate) fn new(config: &FrontEndConfig, lba_bytes: u32) -> Self {
        Self {
            most_bytes: config.max_in_flight_bytes.map_or(u64::MAX, u64::from),
            lba_bytes: u64::from(lba_bytes),
            used_bytes: 0,
            line: VecDeque::new(),
        }
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.line.len()
    }

    const fn is_limited(&self) -> bool {
        self.most_bytes != u64::MAX
    }

    /// Whether the front end turns to a command that arrives now. If not, it waits in line.
    #[inline]
    pub(crate) fn admits(&mut self, request: u32, op: &Op) -> bool {
        if !self.is_limited() {
            return true;
        }
        let is_admitted = self.line.is_empty() && self.takes(op);
        if !is_admitted {
            self.line.push_back(request);
        }
        is_admitted
    }

    /// Takes the room that a command needs, if there is. One that needs more than there is at all
    /// has it when it is alone.
    fn takes(&mut self, op: &Op) -> bool {
        let bytes = self.bytes_of(op);
        let fits = self.used_bytes.saturating_add(bytes) <= self.most_bytes;
        if bytes == 0 || fits || self.used_bytes == 0 {
            self.used_bytes += bytes;
            return true;
        }
        false
    }

    /// A command has completed. Whether others wait that may have room now.
    #[inline]
    pub(crate) fn is_left_by(&mut self, op: &Op) -> bool {
        if !self.is_limited() {
            return false;
        }
        let bytes = self.bytes_of(op);
        assert!(
            bytes <= self.used_bytes,
            "a command gives back the room that it took"
        );
        self.used_bytes -= bytes;
        !self.line.is_empty()
    }

    /// All commands are gone.
    pub(crate) fn power_cut(&mut self) {
        self.used_bytes = 0;
        self.line.clear();
    }

    /// What is moved between host and drive for a command.
    fn bytes_of(&self, op: &Op) -> u64 {
        match op {
            Op::Read { nlb, .. }
            | Op::Compare { nlb, .. }
            | Op::Write { nlb, .. }
            | Op::Append { nlb, .. } => u64::from(*nlb) * self.lba_bytes,
            _ => 0,
        }
    }
}

impl Core {
    /// The first in line, if there is room for it now.
    pub(crate) fn next_in_line(&mut self) -> Option<u32> {
        let request = *self.window.line.front()?;
        let op = self.requests.at(request).op;
        self.window.takes(&op).then(|| {
            self.window.line.pop_front();
            request
        })
    }
}
