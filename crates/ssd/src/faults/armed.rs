//! Faults of a plan that is being applied, and which commands they strike.

use zonelab_device::{Command, Lba, Nanos, Op};

use super::{ALWAYS_PPM, Effect, Fault, FaultId, FaultPlan, Standing, Trigger};
use crate::draw::Draw;
use crate::zones::Zones;

/// Plans that are being applied, in the order in which they were loaded.
#[derive(Debug)]
pub(super) struct Armed {
    plans: Vec<Plan>,
    /// What a loss of power leaves comes from the draws of the first plan.
    first: Draw,
    next_id: u64,
    struck: u64,
}

/// A plan, and the draws of its seed; those of the first plan are elsewhere.
#[derive(Debug)]
struct Plan {
    draw: Option<Draw>,
    faults: Vec<ArmedFault>,
}

/// A fault and how often it has matched.
#[derive(Debug)]
struct ArmedFault {
    id: FaultId,
    /// As it was written.
    given: Fault,
    loaded: Nanos,
    /// With zones and blocks counted over the drive, and times from its start.
    fault: Fault,
    matched: u64,
    struck: u64,
}

impl Armed {
    /// The plan that a drive starts with.
    pub(super) fn new(plan: FaultPlan, zones: &Zones) -> Self {
        let mut armed = Self {
            plans: Vec::new(),
            first: Draw::new(plan.seed),
            next_id: 1,
            struck: 0,
        };
        armed.load(Nanos::ZERO, plan, zones);
        if let Some(plan) = armed.plans.first_mut() {
            plan.draw = None;
        }
        armed
    }

    /// Adds the faults of a plan behind those there are.
    pub(super) fn load(&mut self, now: Nanos, plan: FaultPlan, zones: &Zones) -> Vec<FaultId> {
        let draw = Some(Draw::new(plan.seed));
        let faults: Vec<ArmedFault> = plan
            .faults
            .into_iter()
            .zip(self.next_id..)
            .map(|(given, id)| ArmedFault {
                id: FaultId(id),
                fault: given.clone().resolved(zones).later_by(now),
                given,
                loaded: now,
                matched: 0,
                struck: 0,
            })
            .collect();
        self.next_id += faults.len() as u64;
        let ids = faults.iter().map(|armed| armed.id).collect();
        if !faults.is_empty() {
            self.plans.push(Plan { draw, faults });
        }
        ids
    }

    /// The faults, in the order in which they act.
    pub(super) fn standing(&self) -> impl Iterator<Item = Standing> {
        self.all().map(|armed| Standing {
            id: armed.id,
            fault: armed.given.clone(),
            loaded: armed.loaded,
            matched: armed.matched,
            struck: armed.struck,
        })
    }

    fn all(&self) -> impl Iterator<Item = &ArmedFault> {
        self.plans.iter().flat_map(|plan| &plan.faults)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut ArmedFault> {
        self.plans.iter_mut().flat_map(|plan| &mut plan.faults)
    }

    /// Takes one away. False: there is no such.
    pub(super) fn remove(&mut self, id: FaultId) -> bool {
        let before = self.all().count();
        for plan in &mut self.plans {
            plan.faults.retain(|armed| armed.id != id);
        }
        self.plans.retain(|plan| !plan.faults.is_empty());
        self.all().count() < before
    }

    /// Takes all away; returns how many.
    pub(super) fn clear(&mut self) -> usize {
        let count = self.all().count();
        self.plans.clear();
        count
    }

    /// The drive is another: zones and blocks are counted anew.
    pub(super) fn resolve(&mut self, zones: &Zones) {
        for armed in self.all_mut() {
            armed.fault = armed.given.clone().resolved(zones).later_by(armed.loaded);
        }
    }

    /// How often faults have struck, those that are gone included.
    pub(super) const fn struck(&self) -> u64 {
        self.struck
    }

    /// A seed for a loss of power.
    pub(super) const fn seed(&mut self) -> u64 {
        self.first.next_u64()
    }

    /// When the next fault strikes that a time sets off.
    pub(super) fn next_time(&self) -> Option<Nanos> {
        let times = self
            .all()
            .filter_map(|armed| match armed.fault.when.trigger {
                Trigger::Time(at) if armed.struck == 0 => Some(at),
                _ => None,
            });
        times.min()
    }

    /// A fault that a time sets off, if one is due.
    pub(super) fn due(&mut self, now: Nanos) -> Option<Fault> {
        let armed = self.all_mut().find(|armed| {
            let is_due = matches!(armed.fault.when.trigger, Trigger::Time(at) if at <= now);
            is_due && armed.struck == 0
        })?;
        armed.matched = 1;
        armed.struck = 1;
        let fault = armed.fault.clone();
        self.struck += 1;
        Some(fault)
    }

    /// The effect of the first fault that strikes a command on these blocks.
    pub(super) fn strike(
        &mut self,
        now: Nanos,
        command: &Command,
        blocks: Option<(u64, u64)>,
        zones: &Zones,
    ) -> Option<Effect> {
        let first = &mut self.first;
        let found = self.plans.iter_mut().find_map(|Plan { draw, faults }| {
            let draw = draw.as_mut().unwrap_or(&mut *first);
            let mut faults = faults.iter_mut();
            faults.find_map(|armed| armed.strikes(now, command, blocks, zones, draw))
        });
        self.struck += u64::from(found.is_some());
        found
    }
}

impl ArmedFault {
    fn strikes(
        &mut self,
        now: Nanos,
        command: &Command,
        blocks: Option<(u64, u64)>,
        zones: &Zones,
        draw: &mut Draw,
    ) -> Option<Effect> {
        let when = &self.fault.when;
        let in_time = when.from <= now && now < when.until;
        let concerned = when.namespace.is_none_or(|nsid| nsid == command.nsid);
        let is_set_off = when.trigger.is_set_off_by(&command.op);
        if !in_time || !concerned || !is_set_off || self.struck >= when.count {
            return None;
        }
        if let Some(lbas) = &when.lbas {
            let (first, last) = blocks?;
            if first > *lbas.end() || last < *lbas.start() {
                return None;
            }
        }
        if let Some(range) = &when.zones {
            let (first, last) = zones_of(command, blocks, zones)?;
            if first > *range.end() || last < *range.start() {
                return None;
            }
        }
        self.matched += 1;
        if self.matched <= when.skip {
            return None;
        }
        let certain = when.probability_ppm >= ALWAYS_PPM;
        if !certain && draw.below(u64::from(ALWAYS_PPM)) >= u64::from(when.probability_ppm) {
            return None;
        }
        self.struck += 1;
        Some(self.fault.effect)
    }
}

/// A command with its address counted over the drive, if there is such a namespace.
pub(super) fn on_drive(command: Command, zones: &Zones) -> Command {
    let namespace = zones.namespace(command.nsid);
    Command {
        op: namespace.map_or(command.op, |namespace| namespace.on_drive(command.op)),
        ..command
    }
}

/// First and last block of an operation on one range of blocks of a namespace
/// that exists; of an append, where it goes now, and of a copy, where it begins.
pub(super) fn blocks_of(command: &Command, zones: &Zones) -> Option<(u64, u64)> {
    zones.namespace(command.nsid)?;
    let (slba, nlb) = match command.op {
        Op::Read { slba, nlb }
        | Op::Write { slba, nlb }
        | Op::WriteZeroes { slba, nlb }
        | Op::Compare { slba, nlb }
        | Op::Verify { slba, nlb } => (slba.0, nlb),
        Op::Copy { sdlba, .. } => (sdlba.0, 1),
        Op::Append { zslba, nlb } => {
            let zone = zones.zone_of(zslba)?;
            let pointer = zones.written_lbas(zone);
            (zslba.0.checked_add(pointer)?, nlb)
        }
        _ => return None,
    };
    let last = slba.checked_add(u64::from(nlb.max(1)) - 1)?;
    Some((slba, last))
}

/// First and last zone that a command touches, if its namespace exists.
pub(super) fn zones_of(
    command: &Command,
    blocks: Option<(u64, u64)>,
    zones: &Zones,
) -> Option<(u32, u32)> {
    let zone_of = |lba| zones.zone_of(Lba(lba)).map(|zone| zone.0);
    let mine = zones.namespace(command.nsid)?.zones();
    let last_zone = mine.end.saturating_sub(1);
    if let Some((first, last)) = blocks {
        let last = zone_of(last).unwrap_or(last_zone);
        return Some((zone_of(first)?, last));
    }
    match command.op {
        Op::ZoneSend {
            select_all: true, ..
        } => Some((mine.start, last_zone)),
        Op::ZoneSend { slba, .. } | Op::ZrwaSend { slba, .. } => {
            zone_of(slba.0).map(|zone| (zone, zone))
        }
        Op::ZoneReceive { slba, .. } => Some((zone_of(slba.0)?, last_zone)),
        _ => None,
    }
}
