//! How much the front end works on at a time.
//!
//! A controller has room for so many descriptors of host memory (entries of PRP lists, contexts of
//! its DMA engine), and what a command needs of it is in proportion to its data. When it is used
//! up, the controller turns to no further command, of whichever kind, until one has completed: a
//! read waits behind large writes although its die is idle. Commands that move no data need no
//! room, and wait for those before them.
//!
//! Of the appends of one zone it works on so many at a time: each needs to be told its address,
//! in turn. Others of that zone wait aside, in the room that they have, and hold back nobody
//! else.

use std::collections::VecDeque;

use zonelab_device::Op;

use crate::config::DriveConfig;
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
    /// Appends that have room, and whose turn has come.
    ready: VecDeque<u32>,
    /// Appends of each zone, if their number is limited.
    appends: Option<Appends>,
}

/// Appends by zone.
#[derive(Clone, Debug)]
struct Appends {
    /// Of one zone, that the front end works on at a time.
    most: u32,
    zone_lbas: u64,
    zones: Vec<OfZone>,
    /// The append of the same zone that waits behind that in a slot of requests.
    next: Vec<u32>,
    /// How many wait.
    waiting: usize,
}

/// Appends of a zone.
#[derive(Clone, Copy, Debug)]
struct OfZone {
    /// The front end works on so many of them.
    working: u32,
    /// Those that wait, by the slot of their request, from the first to the last.
    first: u32,
    last: u32,
}

impl OfZone {
    const IDLE: Self = Self {
        working: 0,
        first: NONE,
        last: NONE,
    };
}

/// "None" of a link.
const NONE: u32 = u32::MAX;

impl Appends {
    fn new(config: &DriveConfig, most: u32) -> Self {
        Self {
            most,
            zone_lbas: config.zones.size_lbas,
            zones: vec![OfZone::IDLE; config.zones.count as usize],
            next: Vec::new(),
            waiting: 0,
        }
    }

    /// The zone of an append, if it is for one.
    fn zone_of(&self, op: &Op) -> Option<usize> {
        let Op::Append { zslba, .. } = op else {
            return None;
        };
        let zone = usize::try_from(zslba.0 / self.zone_lbas).ok()?;
        (zone < self.zones.len()).then_some(zone)
    }

    /// Whether an append that arrives now need not wait.
    fn admits(&mut self, request: u32, op: &Op) -> bool {
        let Some(zone) = self.zone_of(op) else {
            return true;
        };
        let of = &mut self.zones[zone];
        if of.working < self.most {
            debug_assert_eq!(of.first, NONE, "an append waits because there are others");
            of.working += 1;
            return true;
        }
        let slot = request as usize;
        if self.next.len() <= slot {
            self.next.resize(slot + 1, NONE);
        }
        self.next[slot] = NONE;
        match of.last {
            NONE => of.first = request,
            last => self.next[last as usize] = request,
        }
        of.last = request;
        self.waiting += 1;
        false
    }

    /// A command has completed; the append that takes the place of an append.
    fn is_left_by(&mut self, op: &Op) -> Option<u32> {
        let zone = self.zone_of(op)?;
        let of = &mut self.zones[zone];
        assert!(of.working > 0, "an append that completes was worked on");
        if of.first == NONE {
            of.working -= 1;
            return None;
        }
        let first = of.first;
        of.first = self.next[first as usize];
        if of.first == NONE {
            of.last = NONE;
        }
        self.waiting -= 1;
        Some(first)
    }
}

impl Window {
    pub(crate) fn new(config: &DriveConfig) -> Self {
        let front_end = &config.front_end;
        let most = front_end.appends_per_zone;
        Self {
            most_bytes: front_end.max_in_flight_bytes.map_or(u64::MAX, u64::from),
            lba_bytes: u64::from(config.lba_bytes),
            used_bytes: 0,
            line: VecDeque::new(),
            ready: VecDeque::new(),
            appends: most.map(|most| Appends::new(config, most)),
        }
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.line.len() + self.ready.len() + self.appends.as_ref().map_or(0, |of| of.waiting)
    }

    /// Whether every command is admitted at once, of which no account is kept.
    pub(crate) const fn is_open(&self) -> bool {
        !self.is_limited() && self.appends.is_none()
    }

    const fn is_limited(&self) -> bool {
        self.most_bytes != u64::MAX
    }

    /// Whether the front end turns to a command that arrives now. If not, it waits.
    #[inline]
    pub(crate) fn admits(&mut self, request: u32, op: &Op) -> bool {
        if self.is_limited() && !(self.line.is_empty() && self.takes(op)) {
            self.line.push_back(request);
            return false;
        }
        self.is_next(request, op)
    }

    /// Whether it is the turn of a command that has room. If not, it waits aside.
    #[inline]
    fn is_next(&mut self, request: u32, op: &Op) -> bool {
        match &mut self.appends {
            Some(appends) => appends.admits(request, op),
            None => true,
        }
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
        if let Some(appends) = &mut self.appends
            && let Some(next) = appends.is_left_by(op)
        {
            self.ready.push_back(next);
        }
        if !self.is_limited() {
            return !self.ready.is_empty();
        }
        let bytes = self.bytes_of(op);
        assert!(
            bytes <= self.used_bytes,
            "a command gives back the room that it took"
        );
        self.used_bytes -= bytes;
        !(self.line.is_empty() && self.ready.is_empty())
    }

    /// All commands are gone.
    pub(crate) fn power_cut(&mut self) {
        self.used_bytes = 0;
        self.line.clear();
        self.ready.clear();
        if let Some(appends) = &mut self.appends {
            appends.zones.fill(OfZone::IDLE);
            appends.waiting = 0;
        }
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
    /// The next of those that wait to which the front end turns now: an append whose turn has
    /// come, or the first in line, if there is room for it.
    pub(crate) fn next_in_line(&mut self) -> Option<u32> {
        if let Some(request) = self.window.ready.pop_front() {
            return Some(request);
        }
        loop {
            let request = *self.window.line.front()?;
            let op = self.requests.at(request).op;
            if !self.window.takes(&op) {
                return None;
            }
            self.window.line.pop_front();
            if self.window.is_next(request, &op) {
                return Some(request);
            }
        }
    }
}
