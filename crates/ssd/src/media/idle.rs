//! Who wants to know when a unit is idle.

use zonelab_device::Nanos;

use crate::event::{Event, EventQueue};
use crate::slab::Slab;

const NONE: u32 = u32::MAX;

/// Tasks that wait for units to become idle: one list per unit, in the order
/// in which they asked.
#[derive(Clone, Debug)]
pub(super) struct IdleWaits {
    /// First waiter of each unit.
    heads: Vec<u32>,
    waits: Slab<Wait>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    task: u32,
    deadline: Nanos,
    next: u32,
}

impl IdleWaits {
    pub(super) fn new(units: usize) -> Self {
        Self {
            heads: vec![NONE; units],
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
        let mut last = self.heads[unit as usize];
        if last == NONE {
            self.heads[unit as usize] = wait;
        } else {
            while self.waits[last].next != NONE {
                last = self.waits[last].next;
            }
            self.waits[last].next = wait;
        }
        if deadline < Nanos::MAX {
            events.push(deadline, Event::Unit(unit));
        }
    }

    /// Whether anyone waits for `unit`.
    #[inline]
    pub(super) fn any(&self, unit: u32) -> bool {
        self.heads[unit as usize] != NONE
    }

    /// Tells those whose time has come: everyone if the unit is idle, else
    /// those whose deadline is here.
    pub(super) fn wake(&mut self, now: Nanos, unit: u32, idle: bool, events: &mut EventQueue) {
        let mut previous = NONE;
        let mut this = self.heads[unit as usize];
        while this != NONE {
            let Wait {
                task,
                deadline,
                next,
            } = self.waits[this];
            if idle || deadline <= now {
                events.push(now, Event::Task(task));
                self.waits.remove(this);
                if previous == NONE {
                    self.heads[unit as usize] = next;
                } else {
                    self.waits[previous].next = next;
                }
            } else {
                previous = this;
            }
            this = next;
        }
    }
}
