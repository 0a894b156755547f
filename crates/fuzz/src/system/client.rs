//! A program that uses zones under faults.

use std::collections::BTreeMap;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Lba, NamespaceId, Nanos, Op, QueuePair, Tag, ZonedInfo,
};
use zonelab_host::{Job, NextWake, Rng};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction, ZoneState};
use zonelab_ssd::config::{DataStore, DriveConfig};

use super::scenario::{Act, Habits, Scenario};
use super::zone::{Stamp, Suspect, Zone, stamp};

/// What a command in flight is for.
#[derive(Debug)]
pub(super) enum Flight {
    Write {
        zone: usize,
        offset: u64,
        /// Resets of the zone before it.
        resets: u32,
    },
    Append {
        zone: usize,
        resets: u32,
    },
    Read {
        zone: usize,
        offset: u64,
        /// None: a reset may come between.
        epoch: Option<u32>,
        then: Vec<Option<Stamp>>,
    },
    Send {
        zone: usize,
        action: ZoneSendAction,
    },
    Report {
        zone: usize,
    },
    Flush,
}

/// How a client talks to the drive: commands out, answers checked and noted.
/// What to do next is for others.
pub(super) struct Endpoint<'a> {
    pub(super) zones: Vec<Zone>,
    scenario: &'a Scenario,
    nsid: NamespaceId,
    zoned: ZonedInfo,
    lba_bytes: usize,
    max_transfer_lbas: u32,
    max_append_lbas: u32,
    flights: BTreeMap<u32, Flight>,
    next_tag: u32,
    /// Faults are no excuse any more.
    is_strict: bool,
}

impl<'a> Endpoint<'a> {
    pub(super) fn new(zones: Vec<Zone>, scenario: &'a Scenario, info: &DeviceInfo) -> Self {
        // Tags say who wrote a block: no two clients share one.
        let first = zones.first().map_or(0, |zone| zone.id);
        let (nsid, _) = namespace_of(first, &scenario.config);
        let namespace = &info.namespaces[nsid.0 as usize - 1];
        let lbas = |bytes: u32| bytes / namespace.lba_bytes;
        Self {
            zones,
            scenario,
            nsid,
            zoned: namespace.zoned.expect("it is a zoned namespace"),
            lba_bytes: namespace.lba_bytes as usize,
            max_transfer_lbas: lbas(info.max_transfer_bytes),
            max_append_lbas: lbas(info.max_append_bytes),
            flights: BTreeMap::new(),
            next_tag: (first << 20) + 1,
            is_strict: false,
        }
    }

    /// The same for the second phase: faults explain nothing, and tags differ
    /// from those of the first.
    pub(super) fn without_faults(mut self) -> Self {
        self.is_strict = true;
        self.next_tag += 1 << 19;
        self
    }

    fn explains(&self, status: Status) -> bool {
        !self.is_strict && self.scenario.explains(status)
    }

    /// The largest transfer up to `nlb` blocks.
    pub(super) fn transfer_lbas(&self, nlb: u32) -> u32 {
        nlb.min(self.max_transfer_lbas).max(1)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    fn submit(
        &mut self,
        queue: &mut dyn QueuePair,
        op: Op,
        data: Option<Buf>,
        flight: Flight,
    ) -> bool {
        let tag = self.next_tag;
        let nsid = self.nsid;
        if queue.submit(Command::on(nsid, op), Tag(tag), data).is_err() {
            return false;
        }
        self.next_tag += 1;
        let changes = !matches!(flight, Flight::Read { .. } | Flight::Flush);
        if let Flight::Write { zone, .. }
        | Flight::Append { zone, .. }
        | Flight::Read { zone, .. }
        | Flight::Send { zone, .. }
        | Flight::Report { zone } = flight
        {
            self.zones[zone].in_flight += 1;
            self.zones[zone].changing += u32::from(changes);
        }
        self.flights.insert(tag, flight);
        true
    }

    fn payload(&self, nlb: u32) -> Option<Buf> {
        if self.scenario.config.data == DataStore::None {
            return None;
        }
        let mut data = vec![0; nlb as usize * self.lba_bytes];
        for (block, index) in data.chunks_mut(self.lba_bytes).zip(0..) {
            let tag = self.next_tag;
            stamp(block, Stamp { tag, index });
        }
        Some(Buf::from(data))
    }

    /// Writes up to `nlb` blocks at the pointer of a zone that has room.
    pub(super) fn write(&mut self, queue: &mut dyn QueuePair, zone: usize, nlb: u32) -> bool {
        let known = &self.zones[zone];
        let room = u32::try_from(known.room()).unwrap_or(u32::MAX);
        let nlb = nlb.min(room).min(self.max_transfer_lbas).max(1);
        let (offset, start, resets) = (known.pointer, known.start, known.resets);
        let tag = self.next_tag;
        let slba = Lba(start + offset);
        let data = self.payload(nlb);
        let sent = self.submit(
            queue,
            Op::Write { slba, nlb },
            data,
            Flight::Write {
                zone,
                offset,
                resets,
            },
        );
        if sent {
            self.zones[zone].hand_over(Suspect {
                tag,
                offset: Some(offset),
                nlb,
            });
        }
        sent
    }

    /// Appends up to `nlb` blocks to a zone that has room.
    pub(super) fn append(&mut self, queue: &mut dyn QueuePair, zone: usize, nlb: u32) -> bool {
        let known = &self.zones[zone];
        let room = u32::try_from(known.room()).unwrap_or(u32::MAX);
        let nlb = nlb.min(room).min(self.max_append_lbas).max(1);
        let (zslba, resets) = (Lba(known.start), known.resets);
        let tag = self.next_tag;
        let data = self.payload(nlb);
        let sent = self.submit(
            queue,
            Op::Append { zslba, nlb },
            data,
            Flight::Append { zone, resets },
        );
        if sent {
            self.zones[zone].hand_over(Suspect {
                tag,
                offset: None,
                nlb,
            });
        }
        sent
    }

    /// Reads up to `nlb` blocks of a zone from `offset`.
    pub(super) fn read(
        &mut self,
        queue: &mut dyn QueuePair,
        zone: usize,
        offset: u64,
        nlb: u32,
    ) -> bool {
        let known = &self.zones[zone];
        let room = u32::try_from(known.capacity() - offset).unwrap_or(u32::MAX);
        let nlb = nlb.min(room).min(self.max_transfer_lbas).max(1);
        let slba = Lba(known.start + offset);
        let then = known.cells[offset as usize..][..nlb as usize].to_vec();
        // A reset in flight can come before or after the read.
        let is_resetting = known.maybe_reset || known.resets_in_flight > 0;
        let epoch = if is_resetting {
            None
        } else {
            Some(known.epoch)
        };
        let data = (self.scenario.config.data == DataStore::Memory)
            .then(|| Buf::from(vec![0xee; nlb as usize * self.lba_bytes]));
        let flight = Flight::Read {
            zone,
            offset,
            epoch,
            then,
        };
        self.submit(queue, Op::Read { slba, nlb }, data, flight)
    }

    /// Zone Management Send.
    pub(super) fn send(
        &mut self,
        queue: &mut dyn QueuePair,
        zone: usize,
        action: ZoneSendAction,
    ) -> bool {
        let slba = Lba(self.zones[zone].start);
        let op = Op::ZoneSend {
            slba,
            action,
            select_all: false,
        };
        let sent = self.submit(queue, op, None, Flight::Send { zone, action });
        if sent && action == ZoneSendAction::RESET {
            self.zones[zone].epoch += 1;
            self.zones[zone].resets += 1;
            self.zones[zone].resets_in_flight += 1;
        }
        sent
    }

    /// Asks for the state of a zone.
    pub(super) fn report(&mut self, queue: &mut dyn QueuePair, zone: usize) -> bool {
        let op = Op::ZoneReceive {
            slba: Lba(self.zones[zone].start),
            filter: ReportFilter::ALL,
            partial: true,
            extended: false,
        };
        self.submit(queue, op, Some(Buf::zeroed(128)), Flight::Report { zone })
    }

    /// Makes written data durable.
    pub(super) fn flush(&mut self, queue: &mut dyn QueuePair) -> bool {
        self.submit(queue, Op::Flush, None, Flight::Flush)
    }

    /// Whether all that is in flight for a zone, but for reads, is of a kind.
    fn all_are(&self, zone: usize, is_kind: fn(&Flight) -> bool) -> bool {
        self.flights.values().all(|flight| {
            is_kind(flight)
                || match flight {
                    Flight::Write { zone: of, .. }
                    | Flight::Append { zone: of, .. }
                    | Flight::Send { zone: of, .. }
                    | Flight::Report { zone: of } => *of != zone,
                    Flight::Read { .. } | Flight::Flush => true,
                }
        })
    }

    /// Takes an answer.
    ///
    /// # Panics
    /// It cannot be true.
    pub(super) fn completed(&mut self, completion: Completion) {
        let Completion {
            tag,
            status,
            result,
            data,
            ..
        } = completion;
        let Tag(tag) = tag;
        let flight = self.flights.remove(&tag);
        let flight = flight.unwrap_or_else(|| panic!("command {tag} completes twice"));
        match flight {
            Flight::Write {
                zone,
                offset,
                resets,
            } => self.wrote(zone, tag, status, Some(offset), offset, resets),
            Flight::Append { zone, resets } => {
                let offset = result.wrapping_sub(self.zones[zone].start);
                self.wrote(zone, tag, status, None, offset, resets);
            }
            Flight::Read {
                zone,
                offset,
                epoch,
                then,
            } => self.did_read(zone, status, offset, epoch, &then, data.as_deref()),
            Flight::Send { zone, action } => self.sent(zone, action, status),
            Flight::Report { zone } => self.reported(zone, status, data.as_deref()),
            Flight::Flush => assert!(
                status.is_success() || self.explains(status),
                "flush: {status}"
            ),
        }
    }

    /// A write or append has ended: `wanted` is where a write was to go, `offset`
    /// where it went.
    fn wrote(
        &mut self,
        index: usize,
        tag: u32,
        status: Status,
        wanted: Option<u64>,
        offset: u64,
        resets: u32,
    ) {
        let is_append = wanted.is_none();
        let explained = self.explains(status);
        let is_earlier = |(of, flight): (&u32, &Flight)| match flight {
            Flight::Write { zone, .. } | Flight::Append { zone, .. } => *of < tag && *zone == index,
            _ => false,
        };
        // The failure of an earlier one may be known only later.
        let behind_another = self.flights.iter().any(is_earlier);
        let zone = &mut self.zones[index];
        zone.in_flight -= 1;
        zone.changing -= 1;
        // It was on its way when its zone was reset: gone, or will be; if the reset
        // fails, it stays under suspicion.
        let is_stale = zone.resets != resets;
        if is_stale && status.is_success() {
            return;
        }
        if status.is_success() {
            return zone.acknowledge(tag, offset);
        }
        let limits = (self.zoned.max_active, self.zoned.max_open);
        // A reset that succeeds makes a client sure again, too early for a stale one.
        let is_unsure = zone.is_unsure || is_stale;
        let refused = match status {
            Status::TOO_MANY_ACTIVE_ZONES => limits.0.is_some(),
            Status::TOO_MANY_OPEN_ZONES => limits.1.is_some(),
            // Behind a command that failed, the pointer is not where it was thought to be.
            Status::ZONE_INVALID_WRITE => (is_unsure || behind_another) && !is_append,
            Status::ZONE_BOUNDARY_ERROR => is_unsure && is_append,
            Status::ZONE_IS_FULL => is_unsure,
            _ => false,
        };
        assert!(
            refused || explained,
            "zone {}: command {tag}: {status}, for no reason",
            zone.id
        );
        if is_stale {
            return;
        }
        zone.is_unsure = true;
        let dead = [Status::ZONE_IS_READ_ONLY, Status::ZONE_IS_OFFLINE].contains(&status);
        if refused || dead {
            // Nothing of it was written.
            zone.suspects.retain(|suspect| suspect.tag != tag);
        }
    }

    fn did_read(
        &mut self,
        index: usize,
        status: Status,
        offset: u64,
        epoch: Option<u32>,
        then: &[Option<Stamp>],
        data: Option<&[u8]>,
    ) {
        let explained = self.explains(status);
        let zone = &mut self.zones[index];
        zone.in_flight -= 1;
        if !status.is_success() {
            assert!(explained, "zone {}: read: {status}", zone.id);
            return;
        }
        let Some(data) = data else { return };
        for ((block, then), at) in data.chunks(self.lba_bytes).zip(then).zip(offset..) {
            if epoch == Some(zone.epoch) {
                zone.check(at, block, *then);
            } else {
                // A reset came between: old, new or nothing, but no mixture.
                super::zone::stamp_of(block);
            }
        }
    }

    fn sent(&mut self, index: usize, action: ZoneSendAction, status: Status) {
        let explained = self.explains(status);
        let zone = &mut self.zones[index];
        zone.in_flight -= 1;
        zone.changing -= 1;
        zone.resets_in_flight -= u32::from(action == ZoneSendAction::RESET);
        if status.is_success() {
            match action {
                ZoneSendAction::RESET => zone.emptied(),
                ZoneSendAction::FINISH => {
                    zone.is_full = true;
                    zone.pointer = zone.capacity();
                }
                _ => {}
            }
            return;
        }
        let limited = match status {
            Status::TOO_MANY_ACTIVE_ZONES => self.zoned.max_active.is_some(),
            Status::TOO_MANY_OPEN_ZONES => self.zoned.max_open.is_some(),
            _ => false,
        };
        assert!(
            limited && action == ZoneSendAction::OPEN || explained,
            "zone {}: {action:?}: {status}, for no reason",
            zone.id
        );
        zone.is_unsure = true;
        zone.maybe_reset |= action == ZoneSendAction::RESET;
        zone.maybe_full |= action == ZoneSendAction::FINISH;
    }

    fn reported(&mut self, index: usize, status: Status, data: Option<&[u8]>) {
        let may_die = self.scenario.kills_zones();
        let explained = self.explains(status);
        let zone = &mut self.zones[index];
        zone.in_flight -= 1;
        zone.changing -= 1;
        if !status.is_success() {
            assert!(explained, "zone {}: report: {status}", zone.id);
            return;
        }
        let data = data.expect("the buffer comes back");
        let word =
            |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("eight bytes"));
        assert!(word(0) >= 1, "a zone is reported");
        let descriptor = 64;
        assert_eq!(word(descriptor + 16), zone.start, "ZSLBA");
        let state = ZoneState(data[descriptor + 1] >> 4);
        zone.reported(
            state,
            word(descriptor + 24).wrapping_sub(zone.start),
            may_die,
        );
    }
}

/// The namespace of a zone of the drive, and the zone counted within it.
fn namespace_of(mut zone: u32, config: &DriveConfig) -> (NamespaceId, u32) {
    let mut nsid = 1;
    for namespace in config.namespaces() {
        if zone < namespace.zones {
            break;
        }
        zone -= namespace.zones;
        nsid += 1;
    }
    (NamespaceId(nsid), zone)
}

fn is_write(flight: &Flight) -> bool {
    matches!(flight, Flight::Write { .. })
}

fn is_append(flight: &Flight) -> bool {
    matches!(flight, Flight::Append { .. })
}

fn is_write_or_append(flight: &Flight) -> bool {
    is_write(flight) || is_append(flight)
}

/// A client in the first phase.
pub(super) struct Client<'a> {
    endpoint: Endpoint<'a>,
    habits: Habits,
    rng: Rng,
    left: u32,
    rests_until: Nanos,
}

impl<'a> Client<'a> {
    pub(super) fn new(habits: &Habits, scenario: &'a Scenario, info: &DeviceInfo) -> Self {
        let config = &scenario.config.zones;
        let zones = habits
            .zones
            .clone()
            .map(|id| {
                let (_, zone) = namespace_of(id, &scenario.config);
                Zone::new(id, u64::from(zone) * config.size_lbas, config.capacity_lbas)
            })
            .collect();
        Self {
            endpoint: Endpoint::new(zones, scenario, info),
            habits: habits.clone(),
            rng: Rng::new(habits.seed, 0),
            left: habits.operations,
            rests_until: Nanos::ZERO,
        }
    }

    pub(super) fn into_zones(self) -> Vec<Zone> {
        self.endpoint.zones
    }

    /// Does something; it may turn out to be impossible now. False: the queue is full.
    fn act(&mut self, now: Nanos, queue: &mut dyn QueuePair) -> bool {
        let zone = self.rng.below(self.endpoint.zones.len() as u64) as usize;
        let act = self.choose();
        let nlb = 1 + self.rng.below(u64::from(self.habits.nlb_max)) as u32;
        let endpoint = &mut self.endpoint;
        let known = &endpoint.zones[zone];
        let quiet = known.changing == 0;
        if known.is_unsure && quiet {
            return endpoint.report(queue, zone);
        }
        let usable = !known.is_unsure && !known.is_dead;
        // Writes wait for management, or would not know where to go. Management may come upon
        // writes and appends that are in flight.
        let hasty = usable && self.rng.below(4) == 0 && endpoint.all_are(zone, is_write_or_append);
        match act {
            Act::Write if usable && !known.is_full && endpoint.all_are(zone, is_write) => {
                endpoint.write(queue, zone, nlb)
            }
            Act::Append if usable && !known.is_full && endpoint.all_are(zone, is_append) => {
                endpoint.append(queue, zone, nlb)
            }
            Act::Read => {
                let offset = self.rng.below(known.capacity());
                endpoint.read(queue, zone, offset, nlb)
            }
            Act::Reset if usable && quiet || hasty => {
                endpoint.send(queue, zone, ZoneSendAction::RESET)
            }
            Act::Finish if usable && quiet || hasty => {
                endpoint.send(queue, zone, ZoneSendAction::FINISH)
            }
            Act::Open if usable && quiet && !known.is_full => {
                endpoint.send(queue, zone, ZoneSendAction::OPEN)
            }
            Act::Close if usable && quiet && !known.is_full && known.pointer > 0 => {
                endpoint.send(queue, zone, ZoneSendAction::CLOSE)
            }
            Act::Flush => endpoint.flush(queue),
            Act::Report if quiet => endpoint.report(queue, zone),
            Act::Rest => {
                self.rests_until = now + Nanos(self.rng.below(500_000));
                true
            }
            _ => true,
        }
    }

    fn choose(&mut self) -> Act {
        let total: u32 = self.habits.weights.iter().sum();
        let mut at = self.rng.below(u64::from(total.max(1))) as u32;
        for (act, weight) in Act::ALL.into_iter().zip(self.habits.weights) {
            if at < weight {
                return act;
            }
            at -= weight;
        }
        Act::Write
    }
}

impl Job for Client<'_> {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        for completion in done.drain(..) {
            self.endpoint.completed(completion);
        }
        while self.left > 0
            && self.endpoint.in_flight() < self.habits.depth as usize
            && now >= self.rests_until
        {
            if !self.act(now, queue) {
                break;
            }
            self.left -= 1;
        }
        queue.ring();
        if self.left == 0 && self.endpoint.in_flight() == 0 {
            NextWake::Finished
        } else if self.left > 0 && now < self.rests_until {
            NextWake::At(self.rests_until)
        } else {
            NextWake::Completion
        }
    }
}
