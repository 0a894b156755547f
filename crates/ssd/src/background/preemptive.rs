//! Erasure by thresholds: the zone mapping method and preemptive zone reset
//! (Jung et al., Electronics 12, 798 (2023), sections 2.2.2 and 3.2).
//!
//! A reset makes the physical zone of its zone *invalid*; an *allocation*, the
//! first write to a zone, takes a *free* one. Each group of zones that share
//! dies is in one of three states:
//!
//! | state | what it does |
//! | --- | --- |
//! | S0 | serves the host |
//! | S1 | erases a row of blocks of an invalid zone whenever nothing of the host is pending |
//! | S2 | holds the host back and erases invalid zones whole |
//!
//! | from | to | when |
//! | --- | --- | --- |
//! | S0 | S1 | `Z_invalid >= T_invalid` |
//! | S1 | S0 | `Z_invalid < T_invalid` |
//! | S0, S1 | S2 | `Z_free <= T_free`, and there is something to erase |
//! | S2 | S1, S0 | `Z_free > T_free`, or nothing is left to erase: as `Z_invalid` says |
//!
//! The paper also says that S2 erases what is necessary "to provide a free zone":
//! it can be limited to a number of zones, after which the host goes on until
//! `Z_free` is looked at again.
//!
//! The first two hold at every change, and so do the others by the paper's section
//! 3.2.2 ([`Evaluate::Change`]). When `Z_free` is looked at is a setting all the same:
//! the longest waits depend on it, and those that the paper measured do not follow
//! from that rule alone. Before an allocation, `Z_free` may stand at `T_free` until the
//! next zone is needed. A zone that needs flash when none is free brings about S2 in
//! any case. The paper's S2 lasts until a zone is free. Where nothing can be erased
//! that would be for ever, so the host is served then.
//!
//! What the paper calls the erasure of one block is one of a *row*: a block on
//! every plane of the zone's stripe. What is counted, and what a row is, where
//! zones are assembled from elements: see [`pool`].
//!
//! Whether something is pending is known from two numbers of a group, whatever
//! there is: commands that have been accepted and have not completed, and
//! operations on their way to the flash, which can be more with a write buffer.
//!
//! These rules are one implementation of [`ResetPolicy`](crate::policy::ResetPolicy)
//! (`thresholds`), which is asked through [`rules`]; the groups, what is erased and what
//! is held back are here, and the same whoever decides.
//!
//! Reads and writes held back in S2 go on in their order. Zones are allocated
//! when a write arrives, also during S2; one that finds none free gets an
//! invalid one, whose erasure S2 then includes. Where `Z_free` is looked at before
//! an allocation, the zone that it takes counts as free until S2 has ended.

mod erasures;
mod host;
mod pace;
mod pool;
mod rules;
mod thresholds;

use crate::background::Background;
use std::collections::VecDeque;
use std::ops::Range;

use zonelab_device::Nanos;

use super::{Task, Tasks};
use crate::config::{EraseWhen, ResetConfig, Thresholds};
use crate::drive::{Core, Drive};
use crate::policy::{ResetEvent, ResetEvents, ResetPolicy as _};
pub use pool::ZoneCounts;
use rules::Rules;
use thresholds::ThresholdPolicy;

/// State of a group of zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResetState {
    /// S0: only the host is served.
    Serving,
    /// S1: rows of invalid zones are erased while nothing of the host is pending.
    Partial,
    /// S2: invalid zones are erased whole while the host waits.
    Full,
}

/// The design, and the groups.
#[derive(Clone, Debug)]
pub(super) struct Preemptive {
    /// Thresholds of the profile.
    thresholds: Thresholds,
    /// Rules that decide the state of a group.
    rules: Rules,
    /// Events at which these rules are asked.
    events: ResetEvents,
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    state: ResetState,
    /// Commands that read or write its zones.
    pending: u32,
    /// Commands that S2 holds back, in order.
    held: VecDeque<u32>,
    /// Fills that S2 holds back, in order.
    held_fills: VecDeque<u32>,
    /// Erasures that have not ended.
    under_way: u32,
    /// Zones, or lines of elements, of which S2 has begun the erasure, or the rest
    /// of it, so far.
    begun_whole: u32,
    /// Physical zones that have been given to zones and are to be erased before
    /// S2 ends, and their blocks, or places of their elements.
    reserved: VecDeque<(u32, Range<u32>)>,
    /// A look at the group at this time is in the queue of events.
    look: Option<Nanos>,
}

/// One erasure: a row of a zone, or what is left of it.
#[derive(Clone, Debug)]
pub(super) struct ZoneErase {
    group: u32,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// A look at the group when the front end has let the cause through, then.
    Look(Nanos),
    /// Blocks of this physical zone, which are on the flash.
    Erasure { physical: u32 },
}

impl Group {
    const IDLE: Self = Self {
        state: ResetState::Serving,
        pending: 0,
        held: VecDeque::new(),
        held_fills: VecDeque::new(),
        under_way: 0,
        begun_whole: 0,
        reserved: VecDeque::new(),
        look: None,
    };
}

impl Preemptive {
    /// `None`: the design is another.
    pub(super) fn new(reset: &ResetConfig, groups: u32) -> Option<Self> {
        let EraseWhen::Thresholds(thresholds) = reset.erase else {
            return None;
        };
        let policy = ThresholdPolicy::new(thresholds, groups);
        Some(Self {
            thresholds,
            events: policy.events(),
            rules: Rules::Thresholds(policy),
            groups: vec![Group::IDLE; groups as usize],
        })
    }

    pub(super) fn groups(&self) -> u32 {
        self.groups.len() as u32
    }

    /// Checks what must hold between two events: for tests and fuzzing.
    pub(super) fn assert_invariants(&self, tasks: &Tasks) {
        for (index, group) in (0..).zip(&self.groups) {
            let is_of = |task: &Task| match task {
                Task::Zone(zone) => {
                    zone.group == index && matches!(zone.what, What::Erasure { .. })
                }
                _ => false,
            };
            let erasures = tasks.iter().filter(|(_, task)| is_of(task)).count();
            assert_eq!(
                group.under_way as usize, erasures,
                "erasures of group {index}"
            );
            let is_full = group.state == ResetState::Full;
            let holds = !group.held.is_empty() || !group.held_fills.is_empty();
            assert!(
                is_full || !holds,
                "group {index} holds back what it could serve"
            );
            let held = group.held.len();
            assert!(
                group.pending as usize >= held,
                "group {index} holds what is not there"
            );
            for task in &group.held_fills {
                let task = tasks.get(*task);
                assert!(matches!(task, Some(Task::Fill(_))), "{task:?} is no fill");
            }
        }
    }

    /// Goes on by the rules of another one, unless they are those of the profile.
    pub(super) fn keep_own_rules(&mut self, of: Self) {
        if !matches!(of.rules, Rules::Thresholds(_)) {
            self.rules = of.rules;
            self.events = of.events;
        }
    }
}

/// What a profile says of when blocks are erased.
const fn erase_at(erase: EraseWhen) -> &'static str {
    match erase {
        EraseWhen::Synchronous => "not given (resets are synchronous)",
        EraseWhen::FirstZoneWrite => "first-write",
        EraseWhen::FirstBlockWrite => "first-block-write",
        EraseWhen::Background => "background",
        EraseWhen::Thresholds(_) => "thresholds",
    }
}

impl Background {
    /// The state of a group of zones, if zones are erased by thresholds.
    pub(crate) fn reset_state(&self, group: u32) -> Option<ResetState> {
        let groups = &self.preemptive.as_ref()?.groups;
        groups.get(group as usize).map(|of| of.state)
    }

    /// Whether zones are erased by thresholds.
    #[inline]
    pub(crate) fn erases_by_thresholds(&self) -> bool {
        self.preemptive.is_some()
    }

    fn group_of_reset(&self, group: u32) -> Option<&Group> {
        let groups = &self.preemptive.as_ref()?.groups;
        groups.get(group as usize)
    }

    /// Commands of a host on a group of zones that have not completed.
    pub(crate) fn pending_of_group(&self, group: u32) -> u32 {
        self.group_of_reset(group).map_or(0, |of| of.pending)
    }

    /// Zones, or lines of elements, whose erasure S2 has begun.
    pub(crate) fn begun_whole(&self, group: u32) -> u32 {
        self.group_of_reset(group).map_or(0, |of| of.begun_whole)
    }

    /// Fills that have not ended.
    pub(crate) fn fills_running(&self) -> u32 {
        self.fills
    }

    fn reset_group(&mut self, group: u32) -> Option<&mut Group> {
        let groups = &mut self.preemptive.as_mut()?.groups;
        groups.get_mut(group as usize)
    }

    // ---- what the host does ----------------------------------------------

    /// A reset has taken the flash from a zone, and is through the front end at `at`.
    #[cold]
    pub(super) fn zone_was_released(&mut self, core: &mut Core, physical: u32, at: Nanos) {
        self.flash_was_given_back(core, core.flash.layout().group_of(physical), at);
    }

    /// Zones of a group have lost flash, by a command that is through the front end at `at`.
    #[cold]
    pub(super) fn flash_was_given_back(&mut self, core: &mut Core, group: u32, at: Nanos) {
        self.after(core, ResetEvent::Released, group, at);
        self.look_if_needed(core, group, at);
    }

    /// Goes on after a loss of power or from a snapshot, from `start` on.
    pub(super) fn resume_thresholds(&mut self, core: &mut Core, start: Nanos) {
        let groups = self.preemptive.as_ref();
        for group in 0..groups.map_or(0, |of| of.groups()) {
            self.after(core, ResetEvent::Resumed, group, start);
            self.look_if_needed(core, group, start);
        }
    }

    fn look_if_needed(&mut self, core: &mut Core, group: u32, at: Nanos) {
        if self.reset_state(group) == Some(ResetState::Partial) {
            self.look_at(core, group, at);
        }
    }

    // ---- states ----------------------------------------------------------

    /// Something happened: asks which state a group is in now. S2 begins at `at`.
    #[inline]
    fn after(&mut self, core: &mut Core, event: ResetEvent, group: u32, at: Nanos) {
        let events = self.preemptive.as_ref().map(|of| of.events);
        if events.is_some_and(|events| events.has(event)) {
            self.state_follows(core, event, group, at);
        } else if event.changes_counts() {
            self.record_reset_state(core);
        }
    }

    fn state_follows(&mut self, core: &mut Core, event: ResetEvent, group: u32, at: Nanos) {
        let state = self.ask_state(core, event, group);
        let Some(of) = self.reset_group(group) else {
            return;
        };
        let before = of.state;
        match state {
            Some(ResetState::Full) => self.enter_full(core, group, at),
            Some(state) if before != ResetState::Full => of.state = state,
            _ => {}
        }
        if event.changes_counts() || self.reset_state(group) != Some(before) {
            self.record_reset_state(core);
        }
        // Nothing else may come that a group waits for which has just got to S1.
        let is_partial = self.reset_state(group) == Some(ResetState::Partial);
        if is_partial && before != ResetState::Partial && !event.changes_counts() {
            self.look_at(core, group, at);
        }
    }

    /// What is to be erased of a physical zone is now S2's.
    fn reserve(&mut self, core: &mut Core, physical: u32, at: Nanos) {
        let group = core.flash.layout().group_of(physical);
        let places = core.flash.stale_places(physical);
        core.flash.erasure_begins(physical);
        if let Some(of) = self.reset_group(group) {
            of.reserved.push_back((physical, places));
        }
        self.enter_full(core, group, at);
    }

    fn enter_full(&mut self, core: &mut Core, group: u32, at: Nanos) {
        let Some(of) = self.reset_group(group) else {
            return;
        };
        if of.state == ResetState::Full {
            return;
        }
        of.state = ResetState::Full;
        self.record_reset_state(core);
        self.look_at(core, group, at);
    }

    /// Free and invalid zones, or a state, may have changed.
    pub(crate) fn record_reset_state(&mut self, core: &mut Core) {
        if core.recorder.is_none() {
            return;
        }
        let groups = self.preemptive.iter().flat_map(|of| &of.groups);
        let state = groups.map(|of| of.state).max();
        let groups = 0..core.flash.layout().groups();
        let pools = groups.map(|group| core.pool(group));
        let (free, invalid) = pools.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let state = state.unwrap_or(ResetState::Serving) as u64;
        self.record_pool(core, (u64::from(free), u64::from(invalid)), state);
    }

    /// Looks at a group at `at`: what it does then depends on its state then.
    fn look_at(&mut self, core: &mut Core, group: u32, at: Nanos) {
        let task = ZoneErase {
            group,
            what: What::Look(at),
        };
        let task = self.tasks.insert(Task::Zone(task));
        self.push_wake(core, at, task);
    }
}

impl Drive {
    // ---- erasures --------------------------------------------------------
}
