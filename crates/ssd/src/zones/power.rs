//! What a loss of power leaves of the zones.

use zonelab_device::ZoneId;

use super::table::{self, Event, Placement, State};
use super::{Change, Finished, Zones};

impl Zones {
    /// Power was lost, and has come back: open zones are closed, zones of which
    /// nothing is left are empty, and write pointers stand behind what is left
    /// (ZNS command set 1.1, section 2.1.1.3: a closed zone without written
    /// blocks and without descriptor extension is empty after a power cycle).
    ///
    /// `durable_lbas(zone, written)` says how many blocks of those that the
    /// host wrote are left. A zone that was full loses that state with its last
    /// blocks and is active again; if that would be one active zone too many,
    /// the drive finishes it (Zone Finished by Controller), so that its
    /// remaining blocks read as unwritten. A zone that the host finished stays
    /// full. Each change is added to `changes`, with the write pointer before
    /// the loss.
    ///
    /// Random write areas outlive the loss with what was written to them if
    /// `keeps_zrwa`, else zones have none any more.
    pub(crate) fn power_cycle(
        &mut self,
        mut durable_lbas: impl FnMut(ZoneId, u64) -> u64,
        keeps_zrwa: bool,
        changes: &mut Vec<Change>,
    ) {
        self.all_changed();
        // Those that need an active resource come last, when all others are settled.
        let mut full = Vec::new();
        for index in 0..self.zones.len() {
            let written = self.zones[index].written_lbas(self.capacity_lbas);
            let host_lbas = self.zones[index].host_lbas;
            let durable = durable_lbas(self.id(index), host_lbas);
            debug_assert!(durable <= host_lbas, "only what was written can be left");
            self.zones[index].host_lbas = durable;
            if !keeps_zrwa {
                self.take_zrwa(index);
            }
            match self.zones[index].state {
                State::Full if !self.zones[index].is_finished() && durable < self.capacity_lbas => {
                    full.push((index, written, host_lbas));
                }
                State::ImplicitlyOpened | State::ExplicitlyOpened | State::Closed => {
                    self.recover(index, (written, host_lbas), changes);
                }
                State::Empty | State::Full | State::ReadOnly | State::Offline => {}
            }
        }
        for (index, written, host_lbas) in full {
            self.recover(index, (written, host_lbas), changes);
        }
    }

    /// Settles the state of a zone whose written blocks are known. Before the
    /// loss its write pointer and the blocks of the host were `before`.
    fn recover(&mut self, index: usize, before: (u64, u64), changes: &mut Vec<Change>) {
        let (written_lbas, host_lbas) = before;
        let zone = &self.zones[index];
        let holds_nothing = self.areas.end_of(index).is_none_or(|end| end == 0);
        let event = if zone.host_lbas == 0 && !zone.has_extension && holds_nothing {
            Event::PowerCycleEmpty
        } else {
            Event::PowerCyclePartial
        };
        let from = zone.state;
        let outcome = table::outcome(from, event, self.condition(index, Placement::Within));
        if outcome.status.is_success() {
            self.enter(index, outcome);
        } else {
            self.zones[index].finished = Finished::ByController;
        }
        if self.zones[index].state == State::Empty {
            // Writes that were on their way belong to the past.
            self.zones[index].generation = self.zones[index].generation.wrapping_add(1);
        }
        changes.push(Change {
            zone: self.id(index),
            from: from.code(),
            to: self.zones[index].state.code(),
            written_lbas,
            host_lbas,
        });
    }
}
