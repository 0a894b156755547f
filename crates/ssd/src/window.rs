//! How much the front end works on at a time.
//!
//! A controller has room for so many descriptors of host memory (entries of PRP lists, contexts of
//! its DMA engine), and what a command needs of it is in proportion to its data. When it is used
//! up, the controller turns to no further command, of whichever kind, until one has completed: a
//! read waits behind large writes although its die is idle. Commands that move no data need no
//! room, and wait for those before them.
//!
//! Of the appends of one zone it works on so many at a time: each needs to be told its address,
//! in turn. Others of that zone wait aside, in the room that they have, and so does what changes
//! the zone behind them: status codes and addresses follow the order of arrival. They hold back
//! nobody else.

use std::collections::VecDeque;

use zonelab_device::{Lba, Op};

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
    /// Commands that have room, and whose turn has come behind appends of their zone.
    ready: VecDeque<u32>,
    /// Appends of each zone, if their number is limited.
    appends: Option<Appends>,
}

/// Appends by zone, and what changes a zone behind appends that wait.
#[derive(Clone, Debug)]
struct Appends {
    /// Of one zone, that the front end works on at a time.
    most: u32,
    zone_lbas: u64,
    zones: Vec<OfZone>,
    /// By slot of requests, of one that waits.
    links: Vec<Link>,
    /// How many wait behind others of their zone.
    waiting: usize,
    /// A command for all zones that waits until none does so, and what came behind it.
    barred: VecDeque<(u32, Place)>,
}

/// Where a command has its place in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// An append to this zone.
    Append(usize),
    /// Something else that changes this zone.
    Zone(usize),
    /// Something that changes all zones.
    AllZones,
    /// It changes no zone.
    Elsewhere,
}

/// One that waits.
#[derive(Clone, Copy, Debug)]
struct Link {
    is_append: bool,
    /// The one of the same zone that waits behind it.
    next: u32,
}

/// Appends of a zone. The first of those that wait is an append.
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
            links: Vec::new(),
            waiting: 0,
            barred: VecDeque::new(),
        }
    }

    fn place_of(&self, op: &Op) -> Place {
        let place = |lba: Lba, in_zone: fn(usize) -> Place| {
            let zone = usize::try_from(lba.0 / self.zone_lbas).unwrap_or(usize::MAX);
            match zone < self.zones.len() {
                true => in_zone(zone),
                false => Place::Elsewhere,
            }
        };
        match *op {
            Op::Append { zslba, .. } => place(zslba, Place::Append),
            Op::Write { slba, .. } | Op::WriteZeroes { slba, .. } => place(slba, Place::Zone),
            Op::Copy { sdlba, .. } => place(sdlba, Place::Zone),
            Op::ZoneSend { select_all, .. } if select_all => Place::AllZones,
            Op::ZoneSend { slba, .. } | Op::ZrwaSend { slba, .. } => place(slba, Place::Zone),
            Op::Read { .. }
            | Op::Compare { .. }
            | Op::Verify { .. }
            | Op::Deallocate { .. }
            | Op::Flush
            | Op::ZoneReceive { .. }
            | Op::HandleStatus
            | Op::HandleUpdate { .. } => Place::Elsewhere,
        }
    }

    /// Whether a command that arrives now need not wait.
    fn admits(&mut self, request: u32, place: Place) -> bool {
        let is_barred = place != Place::Elsewhere && !self.barred.is_empty();
        if is_barred || place == Place::AllZones && self.waiting > 0 {
            self.barred.push_back((request, place));
            return false;
        }
        self.enters(request, place)
    }

    /// Whether a command that nothing bars need not wait in its zone.
    fn enters(&mut self, request: u32, place: Place) -> bool {
        let (zone, is_append) = match place {
            Place::Append(zone) => (zone, true),
            Place::Zone(zone) => (zone, false),
            Place::AllZones | Place::Elsewhere => return true,
        };
        let of = &mut self.zones[zone];
        if of.first == NONE && !(is_append && of.working == self.most) {
            of.working += u32::from(is_append);
            return true;
        }
        assert!(of.working == self.most, "who waits does so for an append");
        let slot = request as usize;
        let link = Link {
            is_append,
            next: NONE,
        };
        if self.links.len() <= slot {
            self.links.resize(slot + 1, link);
        }
        self.links[slot] = link;
        match of.last {
            NONE => of.first = request,
            last => self.links[last as usize].next = request,
        }
        of.last = request;
        self.waiting += 1;
        false
    }

    /// The first that waits in a zone, which waits no longer.
    fn first_of(&mut self, zone: usize) -> u32 {
        let of = &mut self.zones[zone];
        let first = of.first;
        of.first = self.links[first as usize].next;
        if of.first == NONE {
            of.last = NONE;
        }
        self.waiting -= 1;
        first
    }

    /// A command has completed; those whose turn has come go to the end of `ready`: the append
    /// that takes the place of an append, and what came behind it up to the next one.
    fn is_left_by(&mut self, op: &Op, ready: &mut VecDeque<u32>) {
        let Place::Append(zone) = self.place_of(op) else {
            return;
        };
        let of = &mut self.zones[zone];
        assert!(of.working > 0, "an append that completes was worked on");
        if of.first == NONE {
            of.working -= 1;
            return;
        }
        ready.push_back(self.first_of(zone));
        while let Some(link) = self.links.get(self.zones[zone].first as usize)
            && !link.is_append
        {
            ready.push_back(self.first_of(zone));
        }
        while let Some(&(request, place)) = self.barred.front()
            && !(place == Place::AllZones && self.waiting > 0)
        {
            self.barred.pop_front();
            if self.enters(request, place) {
                ready.push_back(request);
            }
        }
    }

    /// How many wait.
    fn waiting(&self) -> usize {
        self.waiting + self.barred.len()
    }

    /// All commands are gone.
    fn power_cut(&mut self) {
        self.zones.fill(OfZone::IDLE);
        self.waiting = 0;
        self.barred.clear();
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
        self.line.len() + self.ready.len() + self.appends.as_ref().map_or(0, Appends::waiting)
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
        let Some(appends) = &mut self.appends else {
            return true;
        };
        let place = appends.place_of(op);
        if !appends.admits(request, place) {
            return false;
        }
        // Those whose turn has come are before it.
        let is_first = place == Place::Elsewhere || self.ready.is_empty();
        if !is_first {
            self.ready.push_back(request);
        }
        is_first
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
        if let Some(appends) = &mut self.appends {
            appends.is_left_by(op, &mut self.ready);
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
            appends.power_cut();
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
    /// The next of those that wait to which the front end turns now: one whose turn in its zone
    /// has come, or the first in line, if there is room for it.
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
