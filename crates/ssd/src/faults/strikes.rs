//! What happens when a fault strikes: on the way of a command to the drive, on the
//! way of its completion back, or at a time.

use zonelab_device::{
    Buf, Command, Completion, Found, Lba, Nanos, Op, QueueId, Rejected, Tag, ZoneId,
};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;

use super::applied::Faults;
use super::armed::on_drive;
use super::pending::{Marked, Waiting};
use super::{Effect, FaultyDrive, PowerCycle, Swallowed};
use crate::drive::ControlError;
use crate::interface::{DriveModel, FaultTarget};

impl<D: FaultTarget> FaultyDrive<D> {
    #[cold]
    pub(super) fn submit_faulty(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected> {
        if now < self.drive.ready_at() {
            if let Some(faults) = &mut self.faults {
                faults.pending.waiting.push_back(Waiting {
                    queue,
                    tag,
                    command,
                    data,
                });
            }
            return Ok(());
        }
        let Some(faults) = self.faults.as_deref_mut() else {
            return self.drive.submit(now, queue, tag, command, data);
        };
        let zones = self.drive.zones();
        let on_drive = on_drive(command, zones);
        let effect = faults.strike(now, &on_drive, zones);
        let effect = faults.strike_sources(effect, &on_drive, zones, data.as_deref());
        match effect {
            Some(Effect::Fail(status)) => {
                let completion = Completion {
                    queue,
                    tag,
                    status,
                    at: now,
                    result: 0,
                    found: Found::Unknown,
                    data,
                };
                faults.pending.hold(now, completion);
                return Ok(());
            }
            Some(effect) if !matches!(effect, Effect::PowerCut { .. }) => {
                faults.pending.mark(Marked {
                    queue,
                    tag,
                    command: on_drive,
                    submitted: now,
                    effect,
                });
            }
            _ => {}
        }
        let taken = self.drive.submit(now, queue, tag, command, data);
        if taken.is_err() {
            faults.pending.unmark(queue, tag);
        }
        if let Some(Effect::PowerCut { off }) = effect {
            self.power_cut(now, off);
        }
        taken
    }

    #[cold]
    pub(super) fn advance_faulty(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        let mut posted = Vec::new();
        while let Some(at) = self.next_event().filter(|at| *at <= to) {
            // A time that a plan names can have passed before the plan was there.
            let at = at.max(self.drive.now());
            // What is held for this instant came about before what happens at it.
            self.release(at, done);
            self.drive.advance(at, &mut posted);
            for completion in posted.drain(..) {
                self.posted(completion, done);
            }
            self.strike_at_times(at);
            self.hand_over_waiting(at);
            self.release(at, done);
        }
        self.drive.advance(to, &mut posted);
        debug_assert!(posted.is_empty(), "nothing completes without an event");
        done.append(&mut posted);
    }

    /// Hands out the completions that are held until `now`.
    fn release(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        if let Some(faults) = &mut self.faults {
            faults.pending.release(now, done);
        }
    }

    /// The drive has posted a completion: what becomes of it on its way.
    fn posted(&mut self, mut completion: Completion, done: &mut Vec<Completion>) {
        let Some(faults) = self.faults.as_deref_mut() else {
            return done.push(completion);
        };
        let Some(marked) = faults.pending.unmark(completion.queue, completion.tag) else {
            return done.push(completion);
        };
        // A command that the drive refused did not get as far as its fault.
        let success = completion.status.is_success();
        match marked.effect {
            Effect::MediaError if success => {
                completion.status = Status::UNRECOVERED_READ_ERROR;
                done.push(completion);
            }
            Effect::ReadOnly | Effect::Offline if success => {
                let assigned = Op::Write {
                    slba: Lba(completion.result),
                    nlb: marked.command.op.nlb(),
                };
                let written = match marked.command.op {
                    Op::Append { .. } => on_drive(
                        Command {
                            op: assigned,
                            ..marked.command
                        },
                        self.drive.zones(),
                    ),
                    Op::WriteZeroes { slba, nlb } => Command {
                        op: Op::Write { slba, nlb },
                        ..marked.command
                    },
                    _ => marked.command,
                };
                let Op::Write { slba, nlb } = written.op else {
                    return done.push(completion);
                };
                faults.unreadable.push(slba.0..=slba.0 + u64::from(nlb) - 1);
                completion.status = Status::WRITE_FAULT;
                completion.result = 0;
                // The addresses of a conventional namespace are not those of its zones.
                let zones = self.drive.zones();
                let is_zoned = zones
                    .namespace(written.nsid)
                    .is_none_or(|of| of.conventional().is_none());
                if let Some(zone) = zones.zone_of(slba).filter(|_| is_zoned) {
                    self.strike_zone(completion.at, zone, marked.effect);
                }
                done.push(completion);
            }
            Effect::Delay(delay) => {
                let at = completion.at.saturating_add(delay);
                faults.pending.hold(at, completion);
            }
            Effect::Lose { timeout } => {
                let Some(timeout) = timeout.filter(|_| !self.host_has_timeouts) else {
                    let swallowed = &mut faults.pending.swallowed;
                    return swallowed.push((marked, completion.data));
                };
                completion.status = Status::ABORTED_BY_HOST;
                completion.result = 0;
                let at = marked.submitted.saturating_add(timeout).max(completion.at);
                faults.pending.hold(at, completion);
            }
            _ => done.push(completion),
        }
    }

    pub(super) fn strike_zone(&mut self, now: Nanos, zone: ZoneId, effect: Effect) {
        let to = match effect {
            Effect::Offline => ZoneState::OFFLINE,
            _ => ZoneState::READ_ONLY,
        };
        match self.drive.fail_zone(now, zone, to) {
            // It was offline already.
            Ok(())
            | Err(
                ControlError::CannotFail { .. }
                | ControlError::NoSuchZone { .. }
                | ControlError::Conventional { .. },
            ) => {}
            Err(error) => unreachable!("failing a zone asks for nothing else: {error}"),
        }
    }

    /// Faults that a time sets off.
    fn strike_at_times(&mut self, now: Nanos) {
        while let Some(fault) = self.faults.as_deref_mut().and_then(|f| f.armed.due(now)) {
            match fault.effect {
                Effect::PowerCut { off } => {
                    self.power_cut(now, off);
                }
                Effect::ReadOnly | Effect::Offline => {
                    let last = self.drive.zones().count().saturating_sub(1);
                    let zones = fault.when.zones.unwrap_or(0..=last);
                    for zone in *zones.start()..=(*zones.end()).min(last) {
                        self.strike_zone(now, ZoneId(zone), fault.effect);
                    }
                }
                _ => {}
            }
        }
    }

    /// Power is lost at `now` and comes back: the drive takes commands after
    /// `off` at the earliest. Every command that the host waits for then ends as
    /// Command Aborted By Host, since a host resets the controller.
    ///
    /// # Panics
    /// If `now` goes back.
    pub fn power_cut(&mut self, now: Nanos, off: Nanos) -> PowerCycle {
        let Self { drive, faults, .. } = self;
        let faults = Faults::of(faults, drive.zones());
        let loss = drive.power_cut(now, off, faults.armed.seed());
        let mut aborted = faults.pending.take_swallowed();
        for lost in loss.lost {
            faults.pending.unmark(lost.queue, lost.tag);
            aborted.push(Swallowed {
                queue: lost.queue,
                tag: lost.tag,
                data: lost.data,
            });
        }
        faults.pending.abort_later(now, &mut aborted);
        let commands = aborted.len();
        for Swallowed { queue, tag, data } in aborted {
            let completion = Completion {
                queue,
                tag,
                status: Status::ABORTED_BY_HOST,
                at: loss.ready_at,
                result: 0,
                found: Found::Unknown,
                data,
            };
            faults.pending.hold(loss.ready_at, completion);
        }
        let cycle = PowerCycle {
            at: now,
            aborted: commands,
            changes: loss.changes,
            ready_at: loss.ready_at,
        };
        self.power_cycles += 1;
        self.last_power_cycle = Some(cycle.clone());
        cycle
    }

    /// Commands that came while the drive was not ready.
    fn hand_over_waiting(&mut self, now: Nanos) {
        while now >= self.drive.ready_at() {
            let next = self
                .faults
                .as_mut()
                .and_then(|f| f.pending.waiting.pop_front());
            let Some(Waiting {
                queue,
                tag,
                command,
                data,
            }) = next
            else {
                return;
            };
            self.submit_faulty(now, queue, tag, command, data)
                .expect("fewer commands wait than a drive can hold");
        }
    }
}
