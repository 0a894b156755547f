//! What the host does, as erasure by thresholds sees it: commands that are pending, that are
//! held back, and zones that need flash.

use crate::background::Background;
use std::ops::RangeInclusive;

use zonelab_device::Lba;
use zonelab_device::Nanos;
use zonelab_device::Op;
use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneSendAction;

use super::ResetState;
use crate::config::PlaneMode;
use crate::drive::{Core, Stage};
use crate::policy::ResetEvent;

impl Core {
    /// How long the erasure of a row takes.
    pub(crate) fn row_time(&self) -> Nanos {
        let config = &self.config;
        let erasures = match config.media.planes {
            PlaneMode::Single => config.geometry.planes,
            PlaneMode::Independent | PlaneMode::MultiPlane => 1,
        };
        Nanos(config.media.erase_ns.0.saturating_mul(u64::from(erasures)))
    }

    /// The groups whose zones an accepted command reads or writes.
    fn groups_of(&self, op: Op) -> impl Iterator<Item = u32> + use<> {
        let zones = self.zones_of(op);
        let groups = self.flash.layout().groups();
        // Neighbours are of different groups.
        let count = zones.map_or(0..0, |zones| {
            let (first, last) = (*zones.start(), *zones.end());
            first..last.min(first + groups - 1) + 1
        });
        count.map(move |zone| zone % groups)
    }

    fn zones_of(&self, op: Op) -> Option<RangeInclusive<u32>> {
        match op {
            Op::Read { slba, nlb } | Op::Compare { slba, nlb } | Op::Verify { slba, nlb } => {
                Some(self.zones_read(slba, nlb))
            }
            Op::Write { .. }
            | Op::Append { .. }
            | Op::WriteZeroes { .. }
            | Op::Copy { .. }
            | Op::ZoneSend {
                action: ZoneSendAction::ZRWA_FLUSH,
                ..
            } => {
                let zone = self.zones.zone_of(Lba(op.first_block()))?.0;
                Some(zone..=zone)
            }
            _ => None,
        }
    }
}

impl Background {
    /// The flash of a zone that is written at `at` and has none: a physical zone
    /// that it is given now.
    #[cold]
    pub(crate) fn allocate_by_thresholds(
        &mut self,
        core: &mut Core,
        zone: ZoneId,
        at: Nanos,
    ) -> u32 {
        let group = core.flash.layout().group_of(zone.0);
        self.after(core, ResetEvent::BeforeAllocation, group, at);
        if !core.flash.mapping().is_without_free(group) {
            core.choose_flash(zone);
        } else if let Some(physical) = self.victim(core, group) {
            core.flash.mapping_mut().prefer(physical);
        }
        let physical = core.flash.map(zone);
        if core.flash.stale_blocks(physical) > 0 {
            self.reserve(core, physical, at);
        }
        self.after(core, ResetEvent::Allocated, group, at);
        physical
    }

    /// A command of a host was accepted, and is through the front end at `at`.
    #[inline]
    pub(crate) fn host_begins(&mut self, core: &mut Core, op: Op, at: Nanos) {
        if self.preemptive.is_some() {
            self.command_begins(core, op, at);
        }
    }

    #[cold]
    fn command_begins(&mut self, core: &mut Core, op: Op, at: Nanos) {
        for group in core.groups_of(op) {
            if let Some(of) = self.reset_group(group) {
                of.pending += 1;
            }
            self.after(core, ResetEvent::CommandBegins, group, at);
        }
    }

    /// Whether S2 holds back a request whose event is due. It is stepped again
    /// when S2 ends.
    #[inline]
    pub(crate) fn is_held(&mut self, core: &mut Core, index: u32) -> bool {
        self.preemptive.is_some() && self.holds(core, index)
    }

    #[cold]
    fn holds(&mut self, core: &mut Core, index: u32) -> bool {
        let request = core.requests.at(index);
        if request.stage != Stage::Admission {
            return false;
        }
        let op = request.op;
        let in_s2 = |group: &u32| self.reset_state(*group) == Some(ResetState::Full);
        let Some(group) = core.groups_of(op).find(in_s2) else {
            return false;
        };
        if let Some(of) = self.reset_group(group) {
            of.held.push_back(index);
        }
        true
    }

    /// Whether S2 holds back a fill of a physical zone. It goes on when S2 ends.
    pub(in crate::background) fn is_fill_held(
        &mut self,
        core: &mut Core,
        task: u32,
        physical: u32,
    ) -> bool {
        let group = core.flash.layout().group_of(physical);
        match self.reset_group(group) {
            Some(of) if of.state == ResetState::Full => {
                of.held_fills.push_back(task);
                true
            }
            _ => false,
        }
    }

    /// A fill ends before it went on.
    pub(in crate::background) fn forget_fill(&mut self, task: u32) {
        let groups = self.preemptive.iter_mut();
        for of in groups.flat_map(|of| &mut of.groups) {
            of.held_fills.retain(|other| *other != task);
        }
    }
}

impl Background {
    /// A command that was accepted is complete.
    #[inline]
    pub(crate) fn host_ends(&mut self, core: &mut Core, op: Op) {
        if self.preemptive.is_some() {
            self.command_ends(core, op);
        }
    }

    #[cold]
    fn command_ends(&mut self, core: &mut Core, op: Op) {
        let now = core.now;
        for group in core.groups_of(op) {
            if let Some(of) = self.reset_group(group) {
                debug_assert!(of.pending > 0, "a command ends once");
                of.pending -= 1;
            }
            self.after(core, ResetEvent::CommandEnds, group, now);
            self.group_may_erase(core, group);
        }
    }
}
