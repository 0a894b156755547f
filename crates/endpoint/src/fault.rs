//! What an endpoint does wrong when it is asked to.

use zonelab_nvme::Status;

/// What happens instead of an ordinary completion of an I/O command.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has this status, whatever the drive did.
    Status(Status),
    /// It never comes.
    Lost,
    /// It has the phase tag of the round before.
    WrongPhase,
    /// It names a command that is not in flight.
    Command(u16),
    /// It comes twice.
    Repeated,
    /// It names this head of the submission queue.
    Head(u16),
    /// It names this submission queue.
    Queue(u16),
    /// Controller Fatal Status is set, and nothing completes any more until a reset.
    Fatal,
    /// The device is pulled out.
    Removed,
}

/// A bit that does not change when it should.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// CSTS.RDY stays 0 after enabling.
    NotReady,
    /// CSTS.RDY stays 1 after disabling.
    Ready,
}

/// Faults by the number of the I/O completion that they meet.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Completions of I/O commands so far.
    count: u64,
    planned: Vec<(u64, Fault)>,
}

impl Faults {
    /// The I/O completion after `after` more has the fault.
    pub(crate) fn plan(&mut self, after: u64, fault: Fault) {
        self.planned.push((self.count + after, fault));
    }

    /// The fault of the next completion.
    pub(crate) fn next(&mut self) -> Option<Fault> {
        let this = self.count;
        self.count += 1;
        let index = self.planned.iter().position(|(at, _)| *at == this)?;
        Some(self.planned.swap_remove(index).1)
    }
}
