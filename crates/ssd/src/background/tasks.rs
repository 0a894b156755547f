//! The tasks that run, and who is woken by what.

use super::Task;
use crate::slab::Slab;

/// Tasks by number. Numbers are used again; a wake-up is for the task that asked for
/// it, and for none that has its number later.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    tasks: Slab<Task>,
    /// How many tasks have had each number and ended.
    ended: Vec<u32>,
    wakeups: Slab<Wakeup>,
}

#[derive(Clone, Copy, Debug)]
struct Wakeup {
    task: u32,
    /// Of its number, when it asked.
    ended: u32,
}

impl Tasks {
    pub(super) fn insert(&mut self, task: Task) -> u32 {
        let task = self.tasks.insert(task);
        if self.ended.len() <= task as usize {
            self.ended.resize(task as usize + 1, 0);
        }
        task
    }

    /// Ends a task. Its wake-ups come to nothing.
    pub(super) fn remove(&mut self, task: u32) -> Task {
        let ended = &mut self.ended[task as usize];
        *ended = ended.wrapping_add(1);
        self.tasks.remove(task)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, task: u32) -> Option<&mut Task> {
        self.tasks.get_mut(task)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.tasks.values_mut()
    }

    pub(super) fn get(&self, task: u32) -> Option<&Task> {
        self.tasks.get(task)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Task)> {
        self.tasks.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// The number of a new wake-up of a task: exactly one event has to have it.
    pub(super) fn wakeup(&mut self, task: u32) -> u32 {
        let ended = self.ended[task as usize];
        self.wakeups.insert(Wakeup { task, ended })
    }

    /// The task that a wake-up was for, if it has not ended.
    pub(super) fn woken(&mut self, wakeup: u32) -> Option<u32> {
        let Wakeup { task, ended } = self.wakeups.remove(wakeup);
        (self.ended[task as usize] == ended).then_some(task)
    }
}
