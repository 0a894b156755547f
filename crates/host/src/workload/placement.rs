//! Where a drive with flexible data placement puts the writes of a job.

use zonelab_device::{Command, Op};

use crate::rng::Rng;

/// Placement identifiers of the writes of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placements {
    /// The identifiers; none: writes name none.
    pub identifiers: Vec<u16>,
    /// One is drawn for each write; otherwise they are taken in turn.
    pub at_random: bool,
}

/// The choice of a job, write by write.
#[derive(Debug)]
pub(super) struct Placing {
    placements: Placements,
    next: usize,
    rng: Rng,
}

impl Placing {
    /// `None`: writes name no identifier.
    pub(super) fn of(placements: &Placements, rng: &Rng) -> Option<Box<Self>> {
        let is_placed = !placements.identifiers.is_empty();
        is_placed.then(|| {
            let mut placing = Self {
                placements: placements.clone(),
                next: placements.identifiers.len() - 1,
                rng: Rng::new(rng.clone().next_u64(), 2),
            };
            placing.go_on();
            Box::new(placing)
        })
    }

    /// The command with the identifier that is next, if it writes.
    pub(super) fn place(&self, command: Command) -> Command {
        match command.op {
            Op::Write { .. } => command.placed(self.placements.identifiers[self.next]),
            _ => command,
        }
    }

    /// The device has taken this.
    pub(super) fn taken(&mut self, op: &Op) {
        if matches!(op, Op::Write { .. }) {
            self.go_on();
        }
    }

    fn go_on(&mut self) {
        let count = self.placements.identifiers.len();
        self.next = match self.placements.at_random {
            true => self.rng.below(count as u64) as usize,
            false => (self.next + 1) % count,
        };
    }
}
