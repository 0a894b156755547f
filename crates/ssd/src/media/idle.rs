//! Who wants to know when a unit is idle.
//!
//! Of those who wait for a unit only the first is told, as it will probably use it. Whether the
//! unit is idle still is asked again when the first has had its turn, by an [`Event::Idle`] at
//! the same instant; then the next is told, or all others wait on. So thousands that wait for the
//! same unit cost no more than one event each for every time that they are told.

use zonelab_device::Nanos;

use crate::event::{Event, EventQueue};
use crate::slab::Slab;

const NONE: u32 = u32::MAX;

/// Tasks that wait for units to become idle: one list per unit, in the order
/// in which they asked.
#[derive(Clone, Debug)]
pub(super) struct IdleWaits {
    units: Vec<List>,
    waits: Slab<Wait>,
}

/// Those who wait for one unit.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
    /// Nobody has a deadline before that of one ahead of it.
    is_ordered: bool,
    /// Somebody has been told, and has not had its turn.
    is_telling: bool,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    task: u32,
    deadline: Nanos,
    next: u32,
}

impl IdleWaits {
    pub(super) fn new(units: usize) -> Self {
        let empty = List {
            first: NONE,
            last: NONE,
            is_ordered: true,
            is_telling: false,
        };
        Self {
            units: vec![empty; units],
            waits: Slab::default(),
        }
    }

    /// Adds a waiter, and an [`Event::Unit`] at its deadline.
    pub(super) fn add(
        &mut self,
        now: Nanos,
        unit: u32,
        task: u32,
        deadline: Option<Nanos>,
        events: &mut EventQueue,
    ) {
        let deadline = deadline.map_or(Nanos::MAX, |at| at.max(now));
        let next = NONE;
        let wait = self.waits.insert(Wait {
            task,
            deadline,
            next,
        });
        let list = &mut self.units[unit as usize];
        match self.waits.get_mut(list.last) {
            Some(last) => {
                list.is_ordered &= last.deadline <= deadline;
                last.next = wait;
            }
            None => {
                list.first = wait;
                list.is_ordered = true;
            }
        }
        list.last = wait;
        if deadline < Nanos::MAX {
            events.push(deadline, Event::Unit(unit));
        }
    }

    /// Whether anyone waits for `unit`.
    #[inline]
    pub(super) fn any(&self, unit: u32) -> bool {
        self.units[unit as usize].first != NONE
    }

    /// Who was told last has had its turn.
    pub(super) fn has_told(&mut self, unit: u32) {
        self.units[unit as usize].is_telling = false;
    }

    /// Tells those whose time has come: those whose deadline is here, and the first of the
    /// others if the unit is idle and nobody else has been told.
    pub(super) fn wake(&mut self, now: Nanos, unit: u32, idle: bool, events: &mut EventQueue) {
        self.wake_late(now, unit, events);
        let list = &mut self.units[unit as usize];
        if !idle || list.is_telling || list.first == NONE {
            return;
        }
        let Wait { task, next, .. } = self.waits.remove(list.first);
        events.push(now, Event::Task(task));
        list.first = next;
        if next == NONE {
            list.last = NONE;
        } else {
            list.is_telling = true;
            events.push(now, Event::Idle(unit));
        }
    }

    /// Tells those whose deadline is here.
    fn wake_late(&mut self, now: Nanos, unit: u32, events: &mut EventQueue) {
        let list = &mut self.units[unit as usize];
        let (mut previous, mut this) = (NONE, list.first);
        while this != NONE {
            let Wait {
                task,
                deadline,
                next,
            } = self.waits[this];
            if deadline <= now {
                events.push(now, Event::Task(task));
                self.waits.remove(this);
                match self.waits.get_mut(previous) {
                    Some(previous) => previous.next = next,
                    None => list.first = next,
                }
                if next == NONE {
                    list.last = previous;
                }
            } else if list.is_ordered {
                return;
            } else {
                previous = this;
            }
            this = next;
        }
    }
}
