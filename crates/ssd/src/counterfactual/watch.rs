//! Watching commands: copies of the drive from before them, the commands since then, and what
//! comes of them without one factor or another.

use std::collections::VecDeque;

use zonelab_device::{Buf, Command, Nanos, Op, QueueId, Tag};
use zonelab_nvme::zns::ZoneSendAction;

use super::{Counterfactual, Factors, Unwatched, WatchPlan};
use crate::drive::{Core, Drive};
use crate::interface::DriveModel;

/// What became of the commands that were watched, by number.
pub type Watched = Vec<(u64, Result<Counterfactual, Unwatched>)>;

/// The watch of a drive.
#[derive(Debug)]
pub(crate) struct Watch {
    without: Factors,
    /// Commands to come, in the order of the times from which factors are left out.
    planned: VecDeque<Planned>,
    /// Commands whose drive has been copied.
    open: Vec<Open>,
    /// The number of the next command.
    next_number: u64,
    /// Commands since the oldest copy, ...
    log: VecDeque<Submission>,
    /// Those that have completed in this instant, and how long they took.
    ended: Vec<(Open, Nanos)>,
    done: Watched,
}

#[derive(Clone, Copy, Debug)]
struct Planned {
    from: Nanos,
    number: u64,
}

#[derive(Debug)]
struct Open {
    planned: Planned,
    copy: Box<Drive>,
    /// The first command after the copy was made.
    first: u64,
    /// The slot of its request, and when it came.
    command: Option<(u32, Nanos)>,
    disturbed: bool,
}

/// A command of a host.
#[derive(Clone, Debug)]
struct Submission {
    number: u64,
    at: Nanos,
    from: (QueueId, Tag),
    command: Command,
    data: Option<Buf>,
}

impl Watch {
    fn new(plan: &WatchPlan) -> Self {
        let planned = |&(number, at): &(u64, Nanos)| Planned {
            from: at.saturating_sub(plan.ahead),
            number,
        };
        let mut planned: Vec<Planned> = plan.commands.iter().map(planned).collect();
        planned.sort_by_key(|planned| (planned.from, planned.number));
        Self {
            without: plan.without,
            planned: planned.into(),
            open: Vec::new(),
            next_number: 0,
            log: VecDeque::new(),
            ended: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Says of commands that have just completed what they would have taken otherwise. Not while
    /// an event goes on: it repeats their lives on copies of the drive.
    pub(crate) fn judge(&mut self) {
        while let Some((open, latency)) = self.ended.pop() {
            let number = open.planned.number;
            let result = compare(open, &self.log, self.without, latency);
            self.done.push((number, result));
            self.trim();
        }
    }

    /// Forgets the commands before the oldest copy.
    fn trim(&mut self) {
        let ended = self.ended.iter().map(|(open, _)| open);
        let oldest = self.open.iter().chain(ended).map(|open| open.first).min();
        let oldest = oldest.unwrap_or(self.next_number);
        while self.log.front().is_some_and(|one| one.number < oldest) {
            self.log.pop_front();
        }
    }
}

/// The data of a command without which it cannot be understood. What it moves is left out.
fn needed(op: &Op, data: Option<&Buf>) -> Option<Buf> {
    let is_needed = match op {
        Op::Copy { .. }
        | Op::Deallocate { .. }
        | Op::ZoneReceive { .. }
        | Op::HandleUpdate { .. } => true,
        Op::ZoneSend { action, .. } => *action == ZoneSendAction::SET_DESCRIPTOR_EXTENSION,
        _ => false,
    };
    data.filter(|_| is_needed).cloned()
}

impl Core {
    /// A command has come, and will be given a slot.
    #[cold]
    pub(crate) fn watch_command(
        &mut self,
        at: Nanos,
        from: (QueueId, Tag),
        command: Command,
        data: Option<&Buf>,
    ) {
        if let Some(watch) = &mut self.watch {
            let number = watch.next_number;
            watch.next_number += 1;
            if !watch.open.is_empty() {
                watch.log.push_back(Submission {
                    number,
                    at,
                    from,
                    command,
                    data: needed(&command.op, data),
                });
            }
        }
    }

    /// The command that has come last has been given a slot.
    #[cold]
    pub(crate) fn watch_slot(&mut self, request: u32) {
        let now = self.now;
        if let Some(watch) = &mut self.watch {
            let number = watch.next_number.saturating_sub(1);
            let own = |open: &&mut Open| open.planned.number == number;
            if let Some(open) = watch.open.iter_mut().find(own) {
                open.command = Some((request, now));
            }
        }
    }

    /// A command completes now.
    #[cold]
    pub(crate) fn watch_completion(&mut self, request: u32) {
        let now = self.now;
        let Some(watch) = &mut self.watch else {
            return;
        };
        let own = |open: &Open| open.command.is_some_and(|(slot, _)| slot == request);
        let Some(found) = watch.open.iter().position(own) else {
            return;
        };
        let open = watch.open.remove(found);
        let number = open.planned.number;
        let latency = open.command.map(|(_, submitted)| now - submitted);
        let result = match latency {
            Some(_) if open.disturbed => Err(Unwatched::Disturbed),
            Some(latency) => return watch.ended.push((open, latency)),
            None => Err(Unwatched::NotCompleted),
        };
        watch.done.push((number, result));
        watch.trim();
    }

    /// Something that is no command has happened to the drive.
    pub(crate) fn watch_is_disturbed(&mut self) {
        if let Some(watch) = &mut self.watch {
            for open in &mut watch.open {
                open.disturbed = true;
            }
        }
    }
}

impl Drive {
    /// Watches commands of a run that is known: of each, [`Drive::take_watched`] says what it
    /// would have taken without one factor or another. Call it before the drive gets its first
    /// command.
    ///
    /// It costs a copy of the drive for each command, while it lives, and as many repetitions
    /// of its life as there are factors, and two more.
    pub fn watch(&mut self, plan: &WatchPlan) {
        self.core.flash.media_mut().track();
        self.core.watch = Some(Box::new(Watch::new(plan)));
        self.plain
            .look(&self.core, &self.background, self.buffer.is_some());
    }

    /// What became of the commands that were watched, and stops watching.
    #[must_use]
    pub fn take_watched(&mut self) -> Watched {
        let Some(watch) = self.core.watch.take() else {
            return Vec::new();
        };
        self.plain
            .look(&self.core, &self.background, self.buffer.is_some());
        let Watch {
            planned,
            open,
            mut done,
            ..
        } = *watch;
        let open = open.into_iter().map(|open| open.planned);
        let left = planned.into_iter().chain(open);
        done.extend(left.map(|planned| (planned.number, Err(Unwatched::NotCompleted))));
        done.sort_by_key(|(number, _)| *number);
        done
    }

    /// A command will come at `now`: copies the drive for those that are watched from then on,
    /// or from earlier on.
    #[cold]
    pub(crate) fn watch_time(&mut self, now: Nanos) {
        let Some(mut watch) = self.core.watch.take() else {
            return;
        };
        let has_policies = self.has_policies();
        while let Some(&planned) = watch.planned.front().filter(|next| next.from <= now) {
            watch.planned.pop_front();
            if has_policies {
                watch.done.push((planned.number, Err(Unwatched::Policies)));
                continue;
            }
            watch.open.push(Open {
                planned,
                copy: Box::new(self.fork()),
                first: watch.next_number,
                command: None,
                disturbed: false,
            });
        }
        self.core.watch = Some(watch);
    }
}

/// Repeats the life of a command that took `latency`, without one factor or another.
fn compare(
    mut open: Open,
    log: &VecDeque<Submission>,
    without: Factors,
    latency: Nanos,
) -> Result<Counterfactual, Unwatched> {
    let (same, seen) = repeat(&mut open, log, Factors::NONE);
    if same != Some(latency) {
        return Err(
            same.map_or(Unwatched::NotCompleted, |replayed| Unwatched::NotRepeated {
                latency,
                replayed,
            }),
        );
    }
    let mut alone = |factors| repeat(&mut open, log, factors).0;
    let mut each = Vec::new();
    for factor in without.and(seen).iter() {
        let took = alone([factor].into_iter().collect());
        each.push((factor, took.ok_or(Unwatched::NotCompleted)?));
    }
    let without_all = alone(without).ok_or(Unwatched::NotCompleted)?;
    Ok(Counterfactual {
        number: open.planned.number,
        latency,
        without: each,
        without_all,
    })
}

/// What a command takes without some factors, and of which factors there was any work.
fn repeat(
    open: &mut Open,
    log: &VecDeque<Submission>,
    without: Factors,
) -> (Option<Nanos>, Factors) {
    let mut drive = open.copy.fork();
    let mut done = Vec::new();
    let from = open.planned.from.max(drive.now());
    drive.advance(from, &mut done);
    drive.leave_out(without);
    let mut submitted = None;
    for one in log.iter().filter(|one| one.number >= open.first) {
        if drive.core.is_command_over() {
            break;
        }
        done.clear();
        // Its completion may come before the next command.
        while let Some(at) = drive.next_event().filter(|at| *at < one.at) {
            drive.advance(at, &mut done);
            if drive.core.is_command_over() {
                break;
            }
        }
        if drive.core.is_command_over() {
            break;
        }
        if one.number == open.planned.number {
            submitted = Some(one.at);
            drive.core.announce_command();
        }
        let (queue, tag) = one.from;
        let taken = drive.submit(one.at, queue, tag, one.command, one.data.clone());
        if taken.is_err() {
            return (None, Factors::NONE);
        }
    }
    while !drive.core.is_command_over() {
        let Some(at) = drive.next_event() else {
            return (None, Factors::NONE);
        };
        done.clear();
        drive.advance(at, &mut done);
    }
    let took = submitted.map(|submitted| drive.now() - submitted);
    (took, drive.factors_seen())
}

impl Core {
    fn announce_command(&mut self) {
        if let Some(absence) = &mut self.absence {
            absence.is_next = true;
        }
    }

    fn is_command_over(&self) -> bool {
        self.absence.as_ref().is_some_and(|absence| absence.is_over)
    }
}
