//! mq-deadline: one write per zone, merging, reads before writes, deadlines.

mod direction;
mod requests;

use std::collections::VecDeque;

use zonelab_device::{Command, DeviceInfo, Nanos, Op};

use super::places::Places;
use super::tree::NONE;
use super::{MqDeadlineSettings, RequestId, Scheduler, SettingError};
use direction::{Address, Direction};
use requests::{Kind, Requests};

/// Orders reads and writes as mq-deadline of Linux 5.19 to 6.3 does on a zoned
/// device.
///
/// * *Zones.* A write to a zone goes only while no other write to that zone is
///   in flight. Those that wait for a zone wait in the order of their
///   addresses, and only the first of them can be next. Appends take part in
///   none of that.
/// * *Merging.* A read or write that begins where one that waits ends, or ends
///   where it begins, joins it, within a zone and up to
///   [`MqDeadlineSettings::max_request_bytes`]. The command keeps the place in
///   line of the request that was there first. A request that closes a gap
///   joins the one in front of it; the two sides stay two commands.
/// * *Batches.* Commands of one direction go in ascending addresses, up to
///   [`MqDeadlineSettings::fifo_batch`]. Then it is the reads' turn, unless
///   [`MqDeadlineSettings::writes_starved`] batches of reads have gone since
///   writes could have. A batch begins with the oldest command if that has
///   expired or if there is nothing above the last address, otherwise where the
///   last one of that direction ended.
/// * *All else* (management, flush, reports, and commands for blocks that the
///   device does not have) goes at once, in the order of arrival, before
///   anything that waits. It is on the issuer of a reset or finish, as under
///   Linux, to have no writes of that zone under way: a reset overtakes writes
///   that wait for their zone, and takes no notice of one in flight.
///
/// It does not limit what is in flight: whatever may go goes when it is asked.
/// So if it is asked after every request, nothing waits but writes for zones.
///
/// Every operation takes a number of steps that is logarithmic in what waits and
/// independent of the number of zones; a write that comes in the order of its
/// zone takes a fixed number to find its place.
pub(super) struct MqDeadline {
    settings: MqDeadlineSettings,
    places: Places,
    requests: Requests,
    /// Goes before all else.
    at_once: VecDeque<RequestId>,
    reads: Direction,
    writes: Direction,
    zones: Vec<Zone>,
    /// Direction of the current batch, and commands of it that went.
    batch: Way,
    batched: u32,
    /// Batches of reads since writes that could go went.
    starved: u32,
    waiting: usize,
    sequence: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

/// Writes that wait for a zone, in the order of addresses, and whether one is
/// in flight.
#[derive(Clone, Copy, Debug)]
struct Zone {
    first: u32,
    last: u32,
    locked: bool,
}

impl Zone {
    const IDLE: Self = Self {
        first: NONE,
        last: NONE,
        locked: false,
    };
}

impl MqDeadline {
    pub(super) fn new(
        settings: &MqDeadlineSettings,
        info: &DeviceInfo,
    ) -> Result<Self, SettingError> {
        settings.check(info)?;
        let places = Places::new(info, settings.max_request_bytes);
        Ok(Self {
            settings: *settings,
            requests: Requests::new(),
            at_once: VecDeque::new(),
            reads: Direction::new(settings.read_expire),
            writes: Direction::new(settings.write_expire),
            zones: vec![Zone::IDLE; places.zones as usize],
            places,
            batch: Way::Read,
            batched: settings.fifo_batch,
            starved: 0,
            waiting: 0,
            sequence: 0,
        })
    }

    /// The device's namespaces and zones.
    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// The next place in the order of insertion.
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Takes a request that was inserted at that place.
    #[inline]
    pub(super) fn insert_at(&mut self, sequence: u64, now: Nanos, id: RequestId, command: Command) {
        let kind = self.kind(&command);
        self.requests.put(id.0, sequence, now, command, kind);
        self.waiting += 1;
        match kind {
            Kind::AtOnce => self.at_once.push_back(id),
            Kind::Read => self.insert_anywhere(Way::Read, id.0),
            Kind::Write { zone: NONE } => self.insert_anywhere(Way::Write, id.0),
            Kind::Append => self.make_ready(Way::Write, id.0),
            Kind::Write { zone } => self.insert_in_zone(zone, id.0),
        }
    }

    /// Gives back everything that waits with its place in the order of
    /// insertion, in no order, and stays behind empty.
    pub(super) fn drain_unordered(&mut self, waiting: &mut Vec<(u64, RequestId, Command)>) {
        self.requests.drain(waiting);
        self.at_once.clear();
        self.reads.clear();
        self.writes.clear();
        self.zones.fill(Zone::IDLE);
        self.batched = self.settings.fifo_batch;
        self.starved = 0;
        self.waiting = 0;
    }

    #[inline]
    fn kind(&self, command: &Command) -> Kind {
        let on_device = |lba| self.places.contains(command.nsid, lba);
        match command.op {
            Op::Read { slba, .. } if on_device(slba.0) => Kind::Read,
            Op::Append { zslba, .. } if on_device(zslba.0) => Kind::Append,
            Op::Write { slba, .. } if on_device(slba.0) => Kind::Write {
                zone: self.places.zone(command.nsid, slba.0).unwrap_or(NONE),
            },
            _ => Kind::AtOnce,
        }
    }

    /// Merges a request whose direction is in no order but that of the elevator,
    /// or lets it wait by itself.
    fn insert_anywhere(&mut self, way: Way, slot: u32) {
        let address = self.requests.address(slot);
        let end = Address {
            lba: self.requests.unit(slot).end(),
            sequence: 0,
            ..address
        };
        let ready = &self.direction(way).by_address;
        let (before, after) = (ready.before(address), ready.at_or_after(end));
        if !self.merge(way, before, slot, after) {
            self.make_ready(way, slot);
        }
    }

    /// The same among the writes of a zone, which keep their order.
    fn insert_in_zone(&mut self, zone: u32, slot: u32) {
        let start = self.requests.unit(slot).slba;
        let Zone {
            mut last,
            first,
            locked,
        } = self.zones[zone as usize];
        let mut after = NONE;
        while last != NONE && self.requests.unit(last).slba > start {
            after = last;
            last = self.requests.unit(last).previous;
        }
        let some = |slot| (slot != NONE).then_some(slot);
        if self.merge(Way::Write, some(last), slot, some(after)) {
            return;
        }
        let entry = &mut self.zones[zone as usize];
        match last {
            NONE => entry.first = slot,
            before => self.requests.unit_mut(before).next = slot,
        }
        match after {
            NONE => entry.last = slot,
            after => self.requests.unit_mut(after).previous = slot,
        }
        let unit = self.requests.unit_mut(slot);
        (unit.previous, unit.next) = (last, after);
        if last == NONE && !locked {
            if first != NONE {
                self.writes.remove(first);
            }
            self.make_ready(Way::Write, slot);
        }
    }

    /// Merges a request with the one in front of it or the one behind it, if it
    /// fits. In a zone nothing stands between them, so that the order stays.
    fn merge(&mut self, way: Way, before: Option<u32>, slot: u32, after: Option<u32>) -> bool {
        if let Some(before) = before
            && self.fits(before, slot)
        {
            self.requests.join_back(before, slot);
            return true;
        }
        if let Some(after) = after
            && self.settings.front_merges
            && self.fits(slot, after)
        {
            self.requests.join_front(slot, after);
            let address = self.requests.address(after);
            self.direction_mut(way).moved(after, address);
            return true;
        }
        false
    }

    /// Whether one command can carry both.
    fn fits(&self, front: u32, back: u32) -> bool {
        let kind = self.requests.kind(front);
        if kind != self.requests.kind(back) || kind == Kind::Append {
            return false;
        }
        // Writes that go to different reclaim units stay apart.
        if self.requests.placement(front) != self.requests.placement(back) {
            return false;
        }
        let (front, back) = (self.requests.unit(front), self.requests.unit(back));
        // Commands without blocks are an error, which stays that of its issuer.
        if front.nsid != back.nsid || front.end() != back.slba || front.nlb.min(back.nlb) == 0 {
            return false;
        }
        let bounds = self.places.bounds(front.nsid, front.slba);
        let nlb = u64::from(front.nlb) + u64::from(back.nlb);
        nlb <= u64::from(bounds.max_nlb) && back.end() <= bounds.end
    }

    fn make_ready(&mut self, way: Way, slot: u32) {
        let address = self.requests.address(slot);
        self.direction_mut(way).insert(slot, address);
    }

    fn direction(&self, way: Way) -> &Direction {
        match way {
            Way::Read => &self.reads,
            Way::Write => &self.writes,
        }
    }

    fn direction_mut(&mut self, way: Way) -> &mut Direction {
        match way {
            Way::Read => &mut self.reads,
            Way::Write => &mut self.writes,
        }
    }

    /// The command that is next among reads and writes.
    fn choose(&mut self, now: Nanos) -> Option<u32> {
        if self.batched < self.settings.fifo_batch
            && let Some(slot) = self.direction(self.batch).above()
        {
            self.batched += 1;
            return Some(slot);
        }
        let way = match (self.reads.is_empty(), self.writes.is_empty()) {
            (true, true) => return None,
            (false, true) => Way::Read,
            (true, false) => Way::Write,
            (false, false) if self.starved < self.settings.writes_starved => {
                self.starved += 1;
                Way::Read
            }
            (false, false) => Way::Write,
        };
        if way == Way::Write {
            self.starved = 0;
        }
        let direction = self.direction(way);
        let oldest = direction.oldest()?;
        let deadline = self
            .requests
            .inserted(oldest)
            .saturating_add(direction.expire);
        let slot = match direction.above() {
            Some(above) if deadline > now => above,
            _ => oldest,
        };
        (self.batch, self.batched) = (way, 1);
        Some(slot)
    }

    /// Takes a command out of all lists, and locks the zone that it writes to.
    fn take(&mut self, slot: u32) {
        let address = self.requests.address(slot);
        let way = match self.requests.kind(slot) {
            Kind::Read => Way::Read,
            _ => Way::Write,
        };
        let direction = self.direction_mut(way);
        direction.remove(slot);
        direction.passed(address);
        if let Kind::Write { zone } = self.requests.kind(slot)
            && let Some(zone) = self.zones.get_mut(zone as usize)
        {
            zone.locked = true;
            zone.first = self.requests.unit(slot).next;
            match zone.first {
                NONE => zone.last = NONE,
                first => self.requests.unit_mut(first).previous = NONE,
            }
        }
    }
}

impl Scheduler for MqDeadline {
    fn name(&self) -> &'static str {
        "mq-deadline"
    }

    #[inline]
    fn insert(&mut self, now: Nanos, id: RequestId, command: Command) {
        let sequence = self.next_sequence();
        self.insert_at(sequence, now, id, command);
    }

    fn dispatch(&mut self, now: Nanos, carried: &mut Vec<RequestId>) -> Option<Command> {
        let slot = match self.at_once.pop_front() {
            Some(id) => id.0,
            None => {
                let slot = self.choose(now)?;
                self.take(slot);
                slot
            }
        };
        let before = carried.len();
        let command = self.requests.release(slot, carried);
        self.waiting -= carried.len() - before;
        Some(command)
    }

    #[inline]
    fn completed(&mut self, _now: Nanos, command: &Command) {
        let Op::Write { slba, .. } = command.op else {
            return;
        };
        let Some(zone) = self.places.zone(command.nsid, slba.0) else {
            return;
        };
        let entry = &mut self.zones[zone as usize];
        if std::mem::take(&mut entry.locked) && entry.first != NONE {
            let first = entry.first;
            self.make_ready(Way::Write, first);
        }
    }

    fn waiting(&self) -> usize {
        self.waiting
    }

    fn drain(&mut self, waiting: &mut Vec<(RequestId, Command)>) {
        let mut unordered = Vec::with_capacity(self.waiting);
        self.drain_unordered(&mut unordered);
        unordered.sort_unstable_by_key(|&(sequence, ..)| sequence);
        waiting.extend(unordered.into_iter().map(|(_, id, command)| (id, command)));
    }
}
