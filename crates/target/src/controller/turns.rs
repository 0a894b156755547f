//! Commands beyond the rates of their hosts: they wait for their turn.
//!
//! A command waits as it came, with its data, and is looked at again when its turn comes:
//! by then the namespace may have been formatted, or the host may have other rules.

use std::collections::VecDeque;

use zonelab_device::{Buf, Lba, NamespaceId, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::command::CopyRange;
use zonelab_nvme::queue::{AdminOpcode, SubmissionEntry};
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::zones::table::Event as ZoneEvent;

use super::failure::Failure;
use super::plan::{Plan, Transfer};
use super::quality::Cost;
use super::reserve::is_reservation;
use super::{Layer, Subsystem};
use crate::reservations::HostId;

/// A command that waits for its host's turn.
#[derive(Debug)]
pub(super) struct Held {
    queue: u32,
    slot: u32,
    entry: SubmissionEntry,
    data: Option<Buf>,
    data_len: u32,
    came: Nanos,
    is_admin: bool,
}

impl<L: Layer> Subsystem<L> {
    /// Has a command wait, if its host had its share. Its data is taken then.
    #[inline]
    pub(super) fn hold(
        &mut self,
        (queue, slot): (u32, u32),
        (entry, plan): (&SubmissionEntry, &Plan),
        data: &mut Option<Buf>,
        data_len: u32,
    ) -> bool {
        if !self.has_rules() {
            return false;
        }
        let cost = self.cost(entry.nsid.get(), plan, data.as_deref());
        self.hold_at((queue, slot), (entry, false), (data, data_len), cost)
    }

    /// The same of an admin command that asks for something or changes something. It waits
    /// before commands of I/O: for the rate, and for no backlog.
    pub(super) fn hold_admin(
        &mut self,
        (queue, slot): (u32, u32),
        entry: &SubmissionEntry,
        data: &mut Option<Buf>,
        data_len: u32,
    ) -> bool {
        counts(entry) && self.hold_unplanned((queue, slot), (entry, true), data, data_len)
    }

    /// The same of a command that is none for the drive: of the admin queue, or one about
    /// reservations.
    pub(super) fn hold_unplanned(
        &mut self,
        (queue, slot): (u32, u32),
        (entry, is_admin): (&SubmissionEntry, bool),
        data: &mut Option<Buf>,
        data_len: u32,
    ) -> bool {
        if !self.has_rules() {
            return false;
        }
        let cost = admin_cost(data_len);
        self.hold_at((queue, slot), (entry, is_admin), (data, data_len), cost)
    }

    /// Has a command of this cost wait if its host had its share: behind those of its kind, and
    /// admin commands before all others.
    #[inline]
    fn hold_at(
        &mut self,
        (queue, slot): (u32, u32),
        (entry, is_admin): (&SubmissionEntry, bool),
        (data, data_len): (&mut Option<Buf>, u32),
        cost: Cost,
    ) -> bool {
        let now = self.now;
        let Some(host) = self.host_mut(slot) else {
            return false;
        };
        let ahead = match is_admin {
            true => host.held.iter().take_while(|held| held.is_admin).count(),
            false => host.held.len(),
        };
        if ahead == 0 && host.meter.ready_at() <= now {
            host.meter.take(now, cost);
            return false;
        }
        let held = Held {
            queue,
            slot,
            entry: *entry,
            data: data.take(),
            data_len,
            came: now,
            is_admin,
        };
        host.held.insert(ahead, held);
        true
    }

    /// When the next command that waits may go.
    pub(super) fn next_turn(&self) -> Option<Nanos> {
        let hosts = self.hosts.iter().flat_map(|hosts| &hosts.0);
        let waiting = hosts.filter(|host| !host.held.is_empty());
        let ready = waiting.map(|host| host.meter.ready_at().max(self.now));
        ready.min()
    }

    /// Hands over the commands whose hosts may go on.
    pub(super) fn take_turns(&mut self) {
        let hosts = self.hosts.as_ref().map_or(0, |hosts| hosts.0.len());
        for at in 0..hosts {
            while let Some(held) = self.next_held(at) {
                self.go_ahead(held);
            }
        }
    }

    fn next_held(&mut self, at: usize) -> Option<Held> {
        let now = self.now;
        let host = self.hosts.as_mut()?.0.get_mut(at)?;
        match host.meter.ready_at() <= now {
            true => host.held.pop_front(),
            false => None,
        }
    }

    /// A command that waited is looked at again: much may have changed since it came.
    fn go_ahead(&mut self, held: Held) {
        let Held {
            queue,
            slot,
            entry,
            mut data,
            data_len,
            came,
            is_admin,
        } = held;
        if is_admin {
            let now = self.now;
            if let Some(host) = self.host_mut(slot) {
                host.meter.take(now, admin_cost(data_len));
            }
            let answer = self.admin((queue, slot), &entry, data.as_deref(), data_len);
            return self.answer(queue, &entry, answer, data);
        }
        if is_reservation(&entry) {
            let now = self.now;
            if let Some(host) = self.host_mut(slot) {
                host.meter.take(now, admin_cost(data_len));
            }
            let answer = self.reserve((queue, slot), &entry, data.as_deref(), data_len);
            return self.answer(queue, &entry, answer, data);
        }
        let checked = self.checked(slot, &entry);
        let went = checked.and_then(|(plan, is_hint)| {
            let cost = self.cost(entry.nsid.get(), &plan, data.as_deref());
            let now = self.now;
            if let Some(host) = self.host_mut(slot) {
                host.meter.take(now, cost);
            }
            self.start((queue, came), (&entry, &plan, is_hint), &mut data, data_len)
        });
        if let Err(failure) = went {
            self.activity.refused(&entry);
            self.answer(queue, &entry, Err(failure), data);
        }
    }

    /// Commands that need not wait any more, since nobody has rules.
    pub(super) fn let_go(&mut self, held: VecDeque<Held>) {
        for held in held {
            self.go_ahead(held);
        }
    }

    /// Queues end: what of them waits ends unseen.
    pub(super) fn forget_turns(&mut self, ends: impl Fn(u32) -> bool) {
        let pool = &mut self.pool;
        for host in self.hosts.iter_mut().flat_map(|hosts| &mut hosts.0) {
            host.held.retain_mut(|held| {
                let stays = !ends(held.queue);
                if !stays && let Some(data) = held.data.take() {
                    pool.give(data);
                }
                stays
            });
        }
    }

    /// Ends the commands of preempted hosts in a namespace that wait for their turn.
    pub(super) fn abort_held(&mut self, nsid: u32, preempted: &[HostId]) {
        let mut aborted = Vec::new();
        for host in self.hosts.iter_mut().flat_map(|hosts| &mut hosts.0) {
            for held in core::mem::take(&mut host.held) {
                let of = self.controllers.get(held.slot);
                let by = of.and_then(|of| of.identifier);
                let is_its = by.is_some_and(|by| preempted.contains(&by));
                match is_its && !held.is_admin && held.entry.nsid.get() == nsid {
                    true => aborted.push(held),
                    false => host.held.push_back(held),
                }
            }
        }
        for held in aborted {
            self.activity.refused(&held.entry);
            let failure = Failure::from(Status::ABORTED_PREEMPT);
            self.answer(held.queue, &held.entry, Err(failure), held.data);
        }
    }

    pub(super) fn forget_held(&mut self, held: Held) {
        if let Some(data) = held.data {
            self.pool.give(data);
        }
    }

    /// What a command counts as. Those that have the drive write or erase without data
    /// count as what they make it do.
    fn cost(&self, nsid: u32, plan: &Plan, data: Option<&[u8]>) -> Cost {
        let lba_bytes = self.namespace(nsid).map_or(0, |of| u64::from(of.lba_bytes));
        let moved = match plan.transfer {
            Transfer::FromHost(bytes) | Transfer::ToHost(bytes) => bytes,
            Transfer::None | Transfer::AtLeastFromHost(_) => 0,
        };
        let (operations, bytes) = match plan.op {
            // Read and written.
            Op::Copy { .. } => (1, 2 * lba_bytes * copied_lbas(data.unwrap_or_default())),
            Op::ZoneSend {
                slba,
                action,
                select_all,
            } => {
                let named = (!select_all).then_some(slba);
                let (zones, lbas) = self.zones_concerned(NamespaceId(nsid), action, named);
                (zones, lbas * lba_bytes)
            }
            op => (1, moved.max(u64::from(op.nlb()) * lba_bytes)),
        };
        Cost { operations, bytes }
    }

    /// How many zones an action is about, at least 1, and how many blocks a finish has to
    /// fill of them. `named`: the start of the one zone; `None`: all zones that are in the
    /// states that the action selects.
    fn zones_concerned(
        &self,
        nsid: NamespaceId,
        action: ZoneSendAction,
        named: Option<Lba>,
    ) -> (u64, u64) {
        let drive = self.drive.drive();
        let (config, table) = (drive.config(), drive.zones());
        let of_namespace = config.zones_of(nsid).filter(|_| self.shows_zones());
        let mut zones = of_namespace.unwrap_or_default();
        if let Some(slba) = named {
            let index = usize::try_from(slba.0 / config.zones.size_lbas).unwrap_or(usize::MAX);
            let zone = zones.nth(index);
            zones = zone.map_or(0..0, |zone| zone..zone + 1);
        }
        let selected = ZoneEvent::of_action(action).map_or(&[][..], ZoneEvent::select_all);
        let (mut count, mut lbas) = (0, 0);
        for zone in zones {
            let state = table.state(ZoneId(zone));
            if named.is_none() && !selected.iter().any(|of| of.code() == state) {
                continue;
            }
            count += 1;
            let is_lost = matches!(state, ZoneState::READ_ONLY | ZoneState::OFFLINE);
            if action == ZoneSendAction::FINISH && !is_lost {
                lbas += config.zones.capacity_lbas - table.written_lbas(ZoneId(zone));
            }
        }
        (count.max(1), lbas)
    }
}

/// Whether an admin command counts: not one by which a host shows that it is there, waits for
/// events, or gives something up.
fn counts(entry: &SubmissionEntry) -> bool {
    matches!(
        AdminOpcode(entry.cdw0.opc()),
        AdminOpcode::IDENTIFY
            | AdminOpcode::GET_LOG_PAGE
            | AdminOpcode::GET_FEATURES
            | AdminOpcode::SET_FEATURES
            | AdminOpcode::FORMAT_NVM
    )
}

fn admin_cost(data_len: u32) -> Cost {
    Cost {
        operations: 1,
        bytes: data_len.into(),
    }
}

/// Blocks of the ranges of a Copy command.
fn copied_lbas(data: &[u8]) -> u64 {
    let (ranges, _) = data.as_chunks::<{ size_of::<CopyRange>() }>();
    let lengths = ranges.iter().filter_map(|range| {
        let range = CopyRange::ref_from_bytes(range).ok()?;
        Some(u64::from(range.nlb_z.get()) + 1)
    });
    lengths.sum()
}
