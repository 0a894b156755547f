//! What happens to a drive that no host asked for: faults at run time, loss of
//! power, a controller that gives up.

use core::ops::RangeInclusive;

use zonelab_device::{NamespaceId, Nanos};
use zonelab_nvme::property::ShutdownStatus;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::DriveModel;
use zonelab_ssd::faults::{CannotFail, FaultId, FaultPlan, PowerCycle, Standing, Swallowed};

use super::state::{Kind, Life};
use super::{ASSOCIATION_LINGERS, Layer, Subsystem};

/// What the SMART log says of losses of power.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Power {
    /// Losses that the subsystem has dealt with.
    pub(super) cycles: u64,
    /// Those of them without a shutdown before.
    pub(super) unsafe_shutdowns: u64,
    /// A host has enabled a controller since power came, and no shutdown of
    /// the last of them followed.
    is_in_use: bool,
}

/// Why controllers cannot be reset.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no I/O controller {0:#x}")]
pub struct NoSuchController(pub u16);

impl<L: Layer> Subsystem<L> {
    /// Loads a fault plan behind those there are: its times count from `now`.
    /// Returns what its faults are called.
    ///
    /// # Errors
    /// As [`FaultPlan::check`]; nothing is loaded then.
    pub fn add_faults(&mut self, now: Nanos, plan: FaultPlan) -> Result<Vec<FaultId>, String> {
        plan.check(self.drive.drive().config())?;
        let now = self.reach(now);
        Ok(self.drive.add_faults(now, plan))
    }

    /// The faults that are loaded, in the order in which they act.
    #[must_use]
    pub fn faults(&self) -> Vec<Standing> {
        self.drive.standing_faults()
    }

    /// Takes a fault away. False: there is no such.
    pub fn remove_fault(&mut self, id: FaultId) -> bool {
        self.drive.remove_fault(id)
    }

    /// Takes all faults away, and with them the blocks that could not be read.
    /// Returns how many there were.
    pub fn clear_faults(&mut self) -> usize {
        self.drive.clear_faults()
    }

    /// Zones of a namespace become read-only or offline: all of them, or none
    /// if one cannot. Hosts get Zone Descriptor Changed and, if they want it, the
    /// SMART event (ZNS command set 1.1, section 5.1; base specification 2.0,
    /// section 5.2.1).
    ///
    /// # Errors
    /// [`CannotFail`].
    pub fn fail_zones(
        &mut self,
        now: Nanos,
        nsid: NamespaceId,
        zones: &[RangeInclusive<u32>],
        to: ZoneState,
    ) -> Result<(), CannotFail> {
        let now = self.reach(now);
        self.drive.fail_zones(now, nsid, zones, to)?;
        self.tell_zone_changes();
        Ok(())
    }

    /// Power is lost, and comes back after `off` at the earliest: commands in
    /// flight get no answer, every association ends, and no connection can be
    /// made until the drive is ready.
    pub fn power_cut(&mut self, now: Nanos, off: Nanos) -> PowerCycle {
        let now = self.reach(now);
        let cycle = self.drive.power_cut(now, off);
        self.power_lost();
        cycle
    }

    /// When the drive has power again, if it has none at `now`.
    #[must_use]
    pub fn is_off_until(&self, now: Nanos) -> Option<Nanos> {
        let ready = self.drive.last_power_cycle()?.ready_at;
        (now < ready).then_some(ready)
    }

    /// Identifiers of the I/O controllers that hosts have.
    #[must_use]
    pub fn controller_ids(&self) -> Vec<u16> {
        let io = self
            .controllers
            .iter()
            .filter(|(_, of)| of.kind == Kind::Io);
        // Fits: there are fewer controllers than identifiers.
        io.map(|(slot, _)| (slot + 1) as u16).collect()
    }

    /// An I/O controller gives up, or all of them: Controller Fatal Status is set
    /// (base specification 2.0, section 9.5), commands in flight get no answer,
    /// and the connections of I/O queues end. The admin queue stays, so that the
    /// host can read CSTS and reset the controller, for as long as it does after a
    /// reset. Returns how many.
    ///
    /// # Errors
    /// There is no controller of that identifier.
    pub fn reset_controllers(
        &mut self,
        now: Nanos,
        only: Option<u16>,
    ) -> Result<usize, NoSuchController> {
        self.reach(now);
        let ids = self.controller_ids();
        let ids = match only {
            None => ids,
            Some(id) if ids.contains(&id) => vec![id],
            Some(id) => return Err(NoSuchController(id)),
        };
        for id in &ids {
            let slot = u32::from(*id) - 1;
            self.close_io_queues(slot);
            self.forget_shutdown(slot);
            let lingers_until = self.now.saturating_add(ASSOCIATION_LINGERS);
            let controller = self.controllers.at(slot);
            controller.csts = controller.csts.with_cfs(true);
            controller.shutdown_flushes = 0;
            controller.ends_at = Some(lingers_until);
        }
        self.find_alarm();
        Ok(ids.len())
    }

    /// Takes the drive on to `now`, where its owner may have been already.
    fn reach(&mut self, now: Nanos) -> Nanos {
        self.now = self.now.max(now).max(self.drive.drive().now());
        self.now
    }

    /// A host uses the drive.
    pub(super) const fn in_use(&mut self) {
        self.power.is_in_use = true;
    }

    /// A controller was shut down, or is disabled.
    pub(super) fn not_in_use(&mut self) {
        let uses = |of: &super::state::Controller| {
            let is_over = of.csts.shst() == ShutdownStatus::COMPLETE;
            of.kind == Kind::Io && of.cc.en() && !is_over
        };
        self.power.is_in_use = self.controllers.iter().any(|(_, of)| uses(of));
    }

    /// When the drive lost power since this was last dealt with.
    pub(super) fn untold_power_loss(&self) -> Option<Nanos> {
        let is_new = self.drive.power_cycles() != self.power.cycles;
        let last = self.drive.last_power_cycle().filter(|_| is_new);
        last.map(|cycle| cycle.at)
    }

    /// The drive has lost power: every association ends.
    pub(super) fn power_lost(&mut self) {
        self.power.cycles = self.drive.power_cycles();
        self.power.unsafe_shutdowns += u64::from(self.power.is_in_use);
        self.power.is_in_use = false;
        self.reservations_lose_power();
        if let Some(layer) = &mut self.layer {
            layer.power_lost(&self.drive, &mut self.turned_away);
        }
        if let Some(format) = self.format.take() {
            self.forget_format(&format);
        }
        let slots: Vec<u32> = self.controllers.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.drop_controller(slot);
        }
        for done in core::mem::take(&mut self.ready) {
            done.data
                .into_iter()
                .chain(done.spent)
                .for_each(|buf| self.pool.give(buf));
        }
    }

    /// Forgets commands whose completions were lost: the drive has carried them
    /// out, and nobody will hear of it. Their identifiers stay in flight until
    /// the queue ends.
    pub(super) fn forget_swallowed(&mut self) {
        let swallowed = self.drive.take_swallowed();
        let any = !swallowed.is_empty();
        for Swallowed { tag, data, .. } in swallowed {
            if let Some(buf) = data {
                self.pool.give(buf);
            }
            self.swallowed(tag.0);
        }
        if any && self.flights.is_empty() {
            self.apply_format();
        }
    }

    /// The drive is done with a command of a queue, and the host does not learn it.
    pub(super) fn leave(&mut self, queue: u32, bytes: u32) {
        let of = self.queues.at(queue);
        of.in_drive -= 1;
        of.drive_bytes -= u64::from(bytes);
        if of.life == Life::Closed {
            self.orphaned_bytes -= u64::from(bytes);
        }
        if of.life != Life::Open {
            self.free_if_over(queue);
        }
    }
}
