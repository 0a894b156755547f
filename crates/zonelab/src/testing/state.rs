//! The drive behind the handles, and what is under way on it.

use std::collections::BTreeMap;

use zonelab_device::{Buf, Command, Completion, Nanos, Op, QueueId, Tag};
use zonelab_host::Rng;
use zonelab_ssd::faults::{FaultPlan, FaultyDrive, Trigger};
use zonelab_ssd::{Drive, DriveModel as _};

use super::TestDriveError;
use super::met::Journal;

/// Events of the drive, at most, between the command at which power is lost and the loss.
const EVENTS_MAX: u64 = 12;

/// A command that was carried out.
#[derive(Debug)]
pub(super) struct Answer {
    /// Zone Append: the block that was assigned.
    pub(super) result: u64,
    pub(super) data: Option<Buf>,
}

/// What all handles of a drive share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) drive: FaultyDrive,
    pub(super) now: Nanos,
    /// Commands that were taken, since the drive was made.
    pub(super) commands: u64,
    /// Commands until the one at which power is lost.
    crash_in: Option<u64>,
    pub(super) is_on: bool,
    /// Losses of power that have been noticed, as the drive counts them.
    power_cycles: u64,
    /// Times that power was lost: a command that was under way before is gone.
    pub(super) losses: u32,
    next_tag: u32,
    done: BTreeMap<u32, Completion>,
    seed: u64,
    /// What is under way, for who asks what a loss of power met.
    pub(super) journal: Journal,
    /// What the next loss meets is noted already.
    is_noted: bool,
    /// Scratch.
    completions: Vec<Completion>,
}

impl State {
    pub(super) fn new(drive: Drive, seed: u64) -> Self {
        let plan = FaultPlan {
            seed,
            faults: Vec::new(),
        };
        Self {
            drive: FaultyDrive::new(drive, plan),
            now: Nanos::ZERO,
            commands: 0,
            crash_in: None,
            is_on: true,
            power_cycles: 0,
            losses: 0,
            next_tag: 0,
            done: BTreeMap::new(),
            seed,
            journal: Journal::default(),
            is_noted: false,
            completions: Vec::new(),
        }
    }

    /// Hands a command over. Returns what it is called.
    pub(super) fn start(&mut self, op: Op, data: Option<Buf>) -> Result<u32, TestDriveError> {
        if !self.is_on {
            return Err(TestDriveError::PowerLost);
        }
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        self.drive
            .submit(self.now, QueueId(0), Tag(tag), Command::new(op), data)
            .map_err(|rejected| TestDriveError::Rejected(rejected.reason))?;
        self.commands += 1;
        self.journal.begins(tag, Trigger::name_of(&op));
        self.notice_losses();
        if !self.is_on {
            return Err(TestDriveError::PowerLost);
        }
        match &mut self.crash_in {
            Some(0) => {
                self.lose_power_soon();
                return Err(TestDriveError::PowerLost);
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(tag)
    }

    /// Lets time pass until a command of this loss of power is over.
    pub(super) fn wait(&mut self, tag: u32, losses: u32) -> Result<Answer, TestDriveError> {
        loop {
            if losses != self.losses {
                return Err(TestDriveError::PowerLost);
            }
            if let Some(completion) = self.done.remove(&tag) {
                return match completion.status.is_success() {
                    true => Ok(Answer {
                        result: completion.result,
                        data: completion.data,
                    }),
                    false => Err(TestDriveError::Status(completion.status)),
                };
            }
            if !self.next_event() {
                let lost = self.drive.lost_completions();
                return Err(TestDriveError::NoAnswer { at: self.now, lost });
            }
        }
    }

    /// Goes on to the next event; false: there is none.
    fn next_event(&mut self) -> bool {
        let Some(at) = self.drive.next_event() else {
            return false;
        };
        self.advance(at);
        true
    }

    /// Goes on to a time, which has not passed yet.
    pub(super) fn advance(&mut self, to: Nanos) {
        self.now = to.max(self.now);
        self.drive.advance(self.now, &mut self.completions);
        for completion in self.completions.drain(..) {
            self.journal.ends(completion.tag.0);
            self.done.insert(completion.tag.0, completion);
        }
        self.notice_losses();
    }

    /// Power is off if a fault of a plan has cut it: what was under way never ends.
    fn notice_losses(&mut self) {
        let cycles = self.drive.power_cycles();
        if std::mem::replace(&mut self.power_cycles, cycles) != cycles {
            self.is_on = false;
            self.losses += 1;
            if !std::mem::take(&mut self.is_noted) {
                self.journal.loses();
            }
            self.crash_in = None;
            self.done.clear();
        }
    }

    /// Power is lost at the command after so many more.
    pub(super) fn crash_in(&mut self, commands: u64) {
        self.crash_in = Some(commands);
    }

    /// Power is lost somewhere in what comes next of the drive's work.
    fn lose_power_soon(&mut self) {
        // However far it gets, the program never hears of it: it is under way.
        self.journal.loses();
        self.is_noted = true;
        let mut rng = Rng::new(self.seed, self.commands);
        for _ in 0..rng.below(EVENTS_MAX) {
            if !self.next_event() {
                break;
            }
        }
        self.lose_power();
    }

    pub(super) fn lose_power(&mut self) {
        if self.is_on {
            self.drive.power_cut(self.now, Nanos::ZERO);
            self.notice_losses();
        }
    }

    /// Power is back: the drive starts.
    pub(super) fn restart(&mut self) {
        if !self.is_on {
            self.is_on = true;
            self.now = self.drive.ready_at().max(self.now);
            self.advance(self.now);
        }
    }
}
