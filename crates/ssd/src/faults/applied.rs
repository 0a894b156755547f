//! Plans that are being applied, and which of their faults strikes a command.

use core::ops::RangeInclusive;

use zonelab_device::{Command, Nanos, Op};
use zonelab_nvme::Status;

use super::armed::{Armed, blocks_of};
use super::pending::Pending;
use super::{Effect, FaultPlan};
use crate::ranges::{self, LbaRange};
use crate::zones::Zones;

/// Plans that are being applied.
#[derive(Debug)]
pub(super) struct Faults {
    pub(super) armed: Armed,
    pub(super) pending: Pending,
    /// Blocks that cannot be read: those of failed programs. Counted over the drive.
    pub(super) unreadable: Vec<RangeInclusive<u64>>,
}

impl Faults {
    /// Those there are, or none.
    pub(super) fn of<'a>(faults: &'a mut Option<Box<Self>>, zones: &Zones) -> &'a mut Self {
        faults.get_or_insert_with(|| Box::new(Self::new(FaultPlan::default(), zones)))
    }

    pub(super) fn new(plan: FaultPlan, zones: &Zones) -> Self {
        Self {
            armed: Armed::new(plan, zones),
            pending: Pending::default(),
            unreadable: Vec::new(),
        }
    }

    /// When a fault strikes or something that is pending goes on, if the drive
    /// takes commands from `ready_at` on.
    pub(super) fn next_event(&self, ready_at: Nanos) -> Option<Nanos> {
        [self.armed.next_time(), self.pending.next_event(ready_at)]
            .into_iter()
            .flatten()
            .min()
    }

    /// The effect of the first fault that strikes a command.
    pub(super) fn strike(
        &mut self,
        now: Nanos,
        command: &Command,
        zones: &Zones,
    ) -> Option<Effect> {
        let blocks = blocks_of(command, zones);
        let found = self.armed.strike(now, command, blocks, zones);
        let overlaps = |bad: &RangeInclusive<u64>| {
            blocks.is_some_and(|(first, last)| first <= *bad.end() && last >= *bad.start())
        };
        let is_read = matches!(
            command.op,
            Op::Read { .. } | Op::Compare { .. } | Op::Verify { .. }
        );
        if found.is_none() && is_read && self.unreadable.iter().any(overlaps) {
            return Some(Effect::MediaError);
        }
        found
    }

    /// A copy that meets a media error in one of its sources fails before
    /// anything is written.
    pub(super) fn strike_sources(
        &self,
        effect: Option<Effect>,
        command: &Command,
        zones: &Zones,
        data: Option<&[u8]>,
    ) -> Option<Effect> {
        let namespace = zones.namespace(command.nsid);
        let (Op::Copy { ranges, .. }, Some(namespace)) = (command.op, namespace) else {
            return effect;
        };
        let sources = data.and_then(|data| ranges::of_copy(data, ranges));
        let mut sources = sources.into_iter().flatten();
        let is_bad = sources.any(|LbaRange { slba, nlb }| {
            let first = namespace.lba_on_drive(slba, nlb);
            let last = first.saturating_add(u64::from(nlb) - 1);
            let overlaps = |bad: &RangeInclusive<u64>| first <= *bad.end() && last >= *bad.start();
            self.unreadable.iter().any(overlaps)
        });
        match effect {
            None if is_bad => Some(Effect::Fail(Status::UNRECOVERED_READ_ERROR)),
            Some(Effect::MediaError) => Some(Effect::Fail(Status::UNRECOVERED_READ_ERROR)),
            _ => effect,
        }
    }
}
