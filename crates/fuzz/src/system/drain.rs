//! How a run ends: without faults, everything works.

use zonelab_device::{Completion, DeviceInfo, Nanos, QueuePair};
use zonelab_host::{Job, NextWake};
use zonelab_nvme::zns::ZoneSendAction;

use super::client::Endpoint;
use super::scenario::Scenario;
use super::zone::Zone;

/// Attempts at one thing before a client gives up: another client may hold all
/// open or active zones for a while, but not for ever.
const ATTEMPTS: u32 = 10_000;
/// Between attempts.
const PATIENCE: Nanos = Nanos::from_ms(1);

/// What is done with a zone. In the first pass every zone is read and emptied,
/// so that none holds resources that another client waits for; in the second,
/// every zone is filled, read and emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Report,
    Fill,
    Read { offset: u64 },
    Empty,
}

/// A client in the second phase: one command at a time.
pub(super) struct Drain<'a> {
    endpoint: Endpoint<'a>,
    zone: usize,
    stage: Stage,
    is_second_pass: bool,
    attempts: u32,
    /// After the command in flight, it waits for others.
    waits: bool,
}

impl<'a> Drain<'a> {
    pub(super) fn new(zones: Vec<Zone>, scenario: &'a Scenario, info: &DeviceInfo) -> Self {
        Self {
            endpoint: Endpoint::new(zones, scenario, info).without_faults(),
            zone: 0,
            stage: Stage::Report,
            is_second_pass: false,
            attempts: 0,
            waits: false,
        }
    }

    /// Submits the next command; false: all is done.
    fn go_on(&mut self, queue: &mut dyn QueuePair) -> bool {
        while let Some(zone) = self.endpoint.zones.get(self.zone) {
            let at = self.zone;
            match self.stage {
                Stage::Report => {
                    self.stage = Stage::Read { offset: 0 };
                    return self.endpoint.report(queue, at);
                }
                Stage::Fill if zone.is_unsure => return self.endpoint.report(queue, at),
                Stage::Fill if zone.pointer < zone.capacity() => {
                    return self.endpoint.write(queue, at, 16);
                }
                Stage::Fill => {
                    assert!(
                        zone.cells.iter().all(Option::is_some),
                        "zone {} has holes",
                        zone.id
                    );
                    self.stage = Stage::Read { offset: 0 };
                }
                Stage::Read { offset } if offset < zone.capacity() && !zone.is_offline => {
                    let nlb = self.endpoint.transfer_lbas(16);
                    self.stage = Stage::Read {
                        offset: offset + u64::from(nlb),
                    };
                    return self.endpoint.read(queue, at, offset, nlb);
                }
                Stage::Read { .. } if zone.is_dead => self.next_zone(),
                Stage::Read { .. } => {
                    self.stage = Stage::Empty;
                    return self.endpoint.send(queue, at, ZoneSendAction::RESET);
                }
                Stage::Empty => {
                    assert!(!zone.is_unsure, "zone {} cannot be reset", zone.id);
                    self.next_zone();
                }
            }
        }
        false
    }

    fn next_zone(&mut self) {
        self.zone += 1;
        self.attempts = 0;
        if self.zone == self.endpoint.zones.len() && !self.is_second_pass {
            self.is_second_pass = true;
            self.zone = 0;
        }
        self.stage = if self.is_second_pass {
            Stage::Fill
        } else {
            Stage::Report
        };
        if self.is_second_pass
            && self
                .endpoint
                .zones
                .get(self.zone)
                .is_some_and(|zone| zone.is_dead)
        {
            self.next_zone();
        }
    }
}

impl Job for Drain<'_> {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        let failed = done
            .iter()
            .any(|completion| !completion.status.is_success());
        for completion in done.drain(..) {
            self.endpoint.completed(completion);
        }
        if self.endpoint.in_flight() > 0 {
            return NextWake::Completion;
        }
        if failed && self.stage == Stage::Fill {
            // Somebody else has the resources: later.
            self.attempts += 1;
            assert!(
                self.attempts < ATTEMPTS,
                "zone {} gets no resources",
                self.zone
            );
        }
        // A failed write leaves the zone unsure: the next command is a report, and
        // the write after that waits for others to give their resources back.
        if self.waits {
            self.waits = false;
            return NextWake::At(now + PATIENCE);
        }
        self.waits = failed;
        if self.go_on(queue) {
            queue.ring();
            NextWake::Completion
        } else {
            NextWake::Finished
        }
    }
}
