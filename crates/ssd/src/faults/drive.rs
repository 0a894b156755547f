//! A drive, and the faults between it and its host.

use core::ops::RangeInclusive;

use zonelab_device::{
    Buf, Command, Completion, NamespaceId, Nanos, QueueId, Rejected, Tag, ZoneId,
};
use zonelab_nvme::zns::ZoneState;

use super::applied::Faults;
use super::armed::{blocks_of, zones_of};
use super::{
    CannotFail, Effect, FaultId, FaultPlan, LostCompletion, LostCompletions, PowerCycle, Standing,
    Swallowed, Trigger,
};
use crate::config::DriveConfig;
use crate::drive::{ControlError, Drive};
use crate::interface::{DriveModel, FaultTarget};

/// A drive with a [`FaultPlan`] in front of it. Without one it costs a branch
/// per call.
///
/// It is run as the drive behind it is: both are a [`DriveModel`]. What is behind
/// it can be anything that faults can be injected into.
#[derive(Debug)]
pub struct FaultyDrive<D = Drive> {
    pub(super) drive: D,
    pub(super) faults: Option<Box<Faults>>,
    /// The host gives up lost commands by itself.
    pub(super) host_has_timeouts: bool,
    pub(super) power_cycles: u64,
    pub(super) last_power_cycle: Option<PowerCycle>,
}

impl<D> From<D> for FaultyDrive<D> {
    fn from(drive: D) -> Self {
        Self {
            drive,
            faults: None,
            host_has_timeouts: false,
            power_cycles: 0,
            last_power_cycle: None,
        }
    }
}

impl FaultyDrive {
    /// Formats the drive behind the faults, between commands, as
    /// [`Drive::format`]. Faults stay, and count its zones and blocks from then
    /// on; every block of it can be read.
    pub fn format(&mut self, config: &DriveConfig) {
        self.drive.format(config);
        if let Some(faults) = &mut self.faults {
            faults.armed.resolve(self.drive.zones());
            faults.unreadable.clear();
        }
    }
}

impl<D: FaultTarget> FaultyDrive<D> {
    /// A drive with faults. Those that name a namespace, zone or block which the
    /// drive does not have never strike: see [`FaultPlan::check`].
    #[must_use]
    pub fn new(drive: D, plan: FaultPlan) -> Self {
        // Nothing to look for with each command, until there is something.
        let faults =
            (plan != FaultPlan::default()).then(|| Box::new(Faults::new(plan, drive.zones())));
        Self {
            faults,
            ..Self::from(drive)
        }
    }

    /// The drive behind the faults.
    #[must_use]
    pub fn drive(&self) -> &D {
        &self.drive
    }

    /// The drive behind the faults, to do something to it.
    pub fn drive_mut(&mut self) -> &mut D {
        &mut self.drive
    }

    /// From now on a lost completion is lost for good, whatever timeout its
    /// fault names: the host has timeouts of its own.
    pub const fn leave_timeouts_to_host(&mut self) {
        self.host_has_timeouts = true;
    }

    /// How often faults have struck.
    #[must_use]
    pub fn faults_struck(&self) -> u64 {
        self.faults
            .as_ref()
            .map_or(0, |faults| faults.armed.struck())
    }

    /// How often each of the faults that stand has struck, in the order in which they act.
    #[must_use]
    pub fn struck_by_fault(&self) -> Vec<u64> {
        self.standing_faults().iter().map(|of| of.struck).collect()
    }

    /// Loads a plan behind those that are there: its faults act if none of the
    /// earlier ones does, draw from its own seed, and count times from `now`.
    /// Returns what they are called. As with [`FaultyDrive::new`], what cannot
    /// strike does not.
    pub fn add_faults(&mut self, now: Nanos, plan: FaultPlan) -> Vec<FaultId> {
        let Self { drive, faults, .. } = self;
        let faults = Faults::of(faults, drive.zones());
        faults.armed.load(now, plan, drive.zones())
    }

    /// The faults of all plans, in the order in which they act.
    #[must_use]
    pub fn standing_faults(&self) -> Vec<Standing> {
        let faults = self.faults.iter();
        faults.flat_map(|faults| faults.armed.standing()).collect()
    }

    /// Takes one fault away. What it has struck already takes its course. False:
    /// there is no such fault.
    pub fn remove_fault(&mut self, id: FaultId) -> bool {
        let faults = self.faults.as_mut();
        faults.is_some_and(|faults| faults.armed.remove(id))
    }

    /// No fault strikes any more, and blocks that could not be read can be.
    /// What has struck already takes its course: completions that were delayed
    /// come when they would have, lost ones never. Returns how many there were.
    pub fn clear_faults(&mut self) -> usize {
        let Some(faults) = &mut self.faults else {
            return 0;
        };
        faults.unreadable.clear();
        faults.armed.clear()
    }

    /// Zones of a namespace become read-only or offline, without a command: all
    /// of them, or none if one cannot. Those that are so already stay as they are.
    ///
    /// # Errors
    /// [`CannotFail`]; nothing has changed then.
    ///
    /// # Panics
    /// If `now` goes back.
    pub fn fail_zones(
        &mut self,
        now: Nanos,
        nsid: NamespaceId,
        zones: &[RangeInclusive<u32>],
        to: ZoneState,
    ) -> Result<(), CannotFail> {
        let of_drive = self.drive.zones();
        let namespace = of_drive.namespace(nsid);
        let namespace = namespace.ok_or(CannotFail::NoSuchNamespace {
            nsid: nsid.0,
            // Fits: a drive has few.
            namespaces: of_drive.namespaces().len() as u32,
        })?;
        let mine = namespace.zones();
        let count = mine.end - mine.start;
        let beyond = zones
            .iter()
            .map(|range| *range.end())
            .find(|end| *end >= count);
        if let Some(zone) = beyond {
            let last = count.saturating_sub(1);
            return Err(CannotFail::NoSuchZone {
                zone,
                nsid: nsid.0,
                last,
            });
        }
        let all = || zones.iter().flat_map(|range| range.clone());
        for zone in all() {
            let checked = self.drive.check_failure(ZoneId(mine.start + zone), to);
            checked.map_err(|error| match error {
                ControlError::Conventional { .. } => CannotFail::Conventional { nsid: nsid.0 },
                _ => CannotFail::State {
                    zone,
                    from: self.drive.zones().state(ZoneId(mine.start + zone)),
                    to,
                },
            })?;
        }
        let is_read_only = to != ZoneState::OFFLINE;
        let effect = if is_read_only {
            Effect::ReadOnly
        } else {
            Effect::Offline
        };
        for zone in all() {
            self.strike_zone(now, ZoneId(mine.start + zone), effect);
        }
        Ok(())
    }

    /// Commands whose completions were lost for good since this was last asked.
    /// Who takes them has them: [`FaultyDrive::power_cut`] ends only the others.
    pub fn take_swallowed(&mut self) -> Vec<Swallowed> {
        let faults = self.faults.as_mut();
        faults.map_or_else(Vec::new, |faults| faults.pending.take_swallowed())
    }

    /// Completions that were lost for good and that nobody has taken
    /// ([`Self::take_swallowed`]); `None`: there are none.
    #[must_use]
    pub fn lost_completions(&self) -> Option<LostCompletions> {
        let swallowed = &self.faults.as_ref()?.pending.swallowed;
        let (first, _) = swallowed.first()?;
        let (command, zones) = (&first.command, self.drive.zones());
        let is_zoned = zones.namespace(command.nsid)?.conventional().is_none();
        let touched = zones_of(command, blocks_of(command, zones), zones);
        let zone = touched.map(|(zone, _)| zones.in_namespace(ZoneId(zone)).1.0);
        Some(LostCompletions {
            count: swallowed.len(),
            first: LostCompletion {
                command: Trigger::name_of(&command.op),
                namespace: command.nsid,
                zone: zone.filter(|_| is_zoned),
                submitted: first.submitted,
            },
        })
    }

    /// How often power was lost.
    #[must_use]
    pub const fn power_cycles(&self) -> u64 {
        self.power_cycles
    }

    /// The last loss of power.
    #[must_use]
    pub const fn last_power_cycle(&self) -> Option<&PowerCycle> {
        self.last_power_cycle.as_ref()
    }
}

impl<D: FaultTarget> DriveModel for FaultyDrive<D> {
    #[inline]
    fn now(&self) -> Nanos {
        self.drive.now()
    }

    #[inline]
    fn ready_at(&self) -> Nanos {
        self.drive.ready_at()
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        let drive = self.drive.next_event();
        match &self.faults {
            None => drive,
            Some(faults) => [drive, faults.next_event(self.drive.ready_at())]
                .into_iter()
                .flatten()
                .min(),
        }
    }

    #[inline]
    fn submit(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected> {
        if self.faults.is_none() {
            return self.drive.submit(now, queue, tag, command, data);
        }
        self.submit_faulty(now, queue, tag, command, data)
    }

    #[inline]
    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        if self.faults.is_none() {
            return self.drive.advance(to, done);
        }
        self.advance_faulty(to, done);
    }
}
