//! What must always hold of the background.

use super::{Background, Task};

impl Background {
    /// Checks everything that must hold between two events. Costs time proportional to the
    /// square of the tasks: for tests and fuzzing.
    ///
    /// # Panics
    /// Something does not hold, which is a defect of this crate.
    pub(crate) fn assert_invariants(&self) {
        let is_fill = |task: u32| matches!(self.tasks.get(task), Some(Task::Fill(_)));
        let is_update = |task: u32| matches!(self.tasks.get(task), Some(Task::Metadata(_)));
        let fills = self.tasks.iter().filter(|(task, _)| is_fill(*task)).count();
        assert_eq!(self.fills as usize, fills, "fills that have not ended");
        for &task in &self.yielding {
            assert!(is_fill(task), "only a fill yields, not task {task}");
        }
        for task in self.updating.iter().chain(&self.updates_waiting) {
            assert!(is_update(*task), "task {task} is no metadata update");
        }
        assert!(
            self.updating.is_some() || self.updates_waiting.is_empty(),
            "somebody waits for nobody"
        );
        for (erasure, erase) in self.erasures.iter() {
            let is_of = |task: &Task| matches!(task, Task::Step(step) if step.erasure == erasure);
            let steps = self.tasks.iter().filter(|(_, task)| is_of(task)).count();
            assert_eq!(erase.steps_running as usize, steps, "steps of an erasure");
            assert!(steps > 0, "an erasure that has ended");
        }
        self.assert_folding();
        if let Some(preemptive) = &self.preemptive {
            preemptive.assert_invariants(&self.tasks);
        }
    }
}
