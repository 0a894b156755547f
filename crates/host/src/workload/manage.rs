//! Finishes, resets, opens and closes: what is done to one zone after another.

use zonelab_device::{Completion, Lba, NamespaceId, Nanos, Op, ZonedInfo};

use super::Fill;
use super::source::{Next, Offer, Role, send};
use crate::softfinish::{NoData, Progress, SoftFinish, Step, Zone, ZoneFinisher};
use crate::stats::OpKind;

/// Finishes, resets, opens or closes, one zone at a time, each after
/// preparing it.
pub(super) struct Manage {
    zones: Vec<u32>,
    fill: Fill,
    kind: OpKind,
    zoned: ZonedInfo,
    /// Position in `zones`.
    at: usize,
    /// What comes next for that zone.
    stage: Stage,
    /// Blocks of the current zone written so far.
    written: u64,
    in_flight: bool,
    /// In the place of finishes by the device.
    soft: Option<Soft>,
}

/// Softfinishes.
pub(super) struct Soft {
    how: SoftFinish,
    namespace: NamespaceId,
    lba_bytes: u32,
    /// Of the zone that is being finished.
    finisher: Option<ZoneFinisher<NoData>>,
}

/// What is done to a zone, in this order; what is not asked for is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Fill,
    Finish,
    Settle,
    Measure,
    /// Give back what an opened or closed zone holds.
    Clear,
}

impl Soft {
    pub(super) const fn new(how: SoftFinish, namespace: NamespaceId, lba_bytes: u32) -> Self {
        Self {
            how,
            namespace,
            lba_bytes,
            finisher: None,
        }
    }
}

impl Manage {
    pub(super) fn new(zones: Vec<u32>, fill: Fill, kind: OpKind, zoned: ZonedInfo) -> Self {
        let lbas = fill.lbas.min(zoned.zone_capacity_lbas);
        Self {
            zones,
            fill: Fill { lbas, ..fill },
            kind,
            zoned,
            at: 0,
            stage: Stage::Open,
            written: 0,
            in_flight: false,
            soft: None,
        }
    }

    /// The same with softfinishes in the place of finishes, if there are any.
    pub(super) fn softly(self, soft: Option<Soft>) -> Self {
        Self { soft, ..self }
    }

    /// Whether the next operation is the first for a zone.
    pub(super) fn is_between_zones(&self) -> bool {
        self.stage == Stage::Open && self.at < self.zones.len()
    }

    /// Whether a softfinish has begun and not ended.
    pub(super) fn is_under_way(&self) -> bool {
        self.soft
            .as_ref()
            .is_some_and(|soft| soft.finisher.is_some())
    }

    pub(super) fn offer(&mut self, now: Nanos) -> Offer {
        if self.in_flight {
            return Offer::Wait;
        }
        loop {
            let Some(&zone) = self.zones.get(self.at) else {
                return Offer::Exhausted;
            };
            let zslba = Lba(u64::from(zone) * self.zoned.zone_size_lbas);
            match self.stage {
                Stage::Open => {
                    self.stage = Stage::Fill;
                    self.written = 0;
                    if self.fill.open_first {
                        return self.issue(send(zslba, OpKind::Open), OpKind::Open);
                    }
                }
                Stage::Fill if self.written < self.fill.lbas => return self.write(zslba),
                Stage::Fill => self.stage = Stage::Finish,
                Stage::Finish => {
                    self.stage = Stage::Settle;
                    if self.fill.finish_first {
                        return self.issue(send(zslba, OpKind::Finish), OpKind::Finish);
                    }
                }
                Stage::Settle => {
                    self.stage = Stage::Measure;
                    if self.fill.settle > Nanos::ZERO {
                        return Offer::Pause(self.fill.settle);
                    }
                }
                Stage::Measure if self.soft.is_some() => match self.write_on(zslba, now) {
                    Some(offer) => return offer,
                    None => self.next_zone(),
                },
                Stage::Measure => return self.measure(zslba),
                Stage::Clear => {
                    self.next_zone();
                    return self.issue(send(zslba, OpKind::Reset), OpKind::Reset);
                }
            }
        }
    }

    fn next_zone(&mut self) {
        self.at += 1;
        self.stage = Stage::Open;
    }

    /// An operation that prepares the zone or clears it.
    fn issue(&mut self, op: Op, kind: OpKind) -> Offer {
        self.in_flight = true;
        Offer::Issue(Next {
            op,
            kind,
            lbas: 0,
            stream: 0,
            role: Role::Preparation,
        })
    }

    fn write(&mut self, zslba: Lba) -> Offer {
        let lbas = u64::from(self.fill.block_lbas.max(1)).min(self.fill.lbas - self.written);
        let op = Op::Write {
            slba: Lba(zslba.0 + self.written),
            // Fits: at most `block_lbas`.
            nlb: lbas as u32,
        };
        self.written += lbas;
        self.issue(op, OpKind::Write)
    }

    /// Blocks that a finish fills.
    fn unwritten(&self) -> u64 {
        self.zoned.zone_capacity_lbas - self.fill.lbas
    }

    /// Goes on with a softfinish; `None` if there is nothing to write.
    fn write_on(&mut self, zslba: Lba, now: Nanos) -> Option<Offer> {
        let lbas = self.unwritten();
        let soft = self.soft.as_mut()?;
        let role = match soft.finisher {
            None => Role::FirstPart,
            Some(_) => Role::Part,
        };
        let finisher = soft.finisher.get_or_insert_with(|| {
            let zone = Zone {
                namespace: soft.namespace,
                zslba,
                write_pointer: Lba(zslba.0 + self.fill.lbas),
                capacity_lbas: self.zoned.zone_capacity_lbas,
                lba_bytes: soft.lba_bytes,
            };
            ZoneFinisher::new(zone, soft.how, NoData)
        });
        match finisher.step(now) {
            Step::Write { command, data: _ } => {
                self.in_flight = true;
                Some(Offer::Issue(Next {
                    op: command.op,
                    kind: OpKind::Finish,
                    lbas,
                    stream: 0,
                    role,
                }))
            }
            Step::PauseUntil(at) => Some(Offer::Pause(at.saturating_sub(now))),
            Step::InFlight | Step::Failed { .. } => Some(Offer::Wait),
            Step::Done(_) => {
                soft.finisher = None;
                None
            }
        }
    }

    /// A command of it that is no part of a softfinish has completed.
    #[inline]
    pub(super) fn completed(&mut self) {
        self.in_flight = false;
    }

    /// A write of a softfinish has completed: what that came to, if it has
    /// ended with it.
    pub(super) fn part_completed(&mut self, completion: &Completion) -> Option<Progress> {
        self.in_flight = false;
        let soft = self.soft.as_mut()?;
        let finisher = soft.finisher.as_mut()?;
        finisher.completed(completion.at, completion.status, None);
        if finisher.left_lbas() > 0 && completion.status.is_success() {
            return None;
        }
        let progress = finisher.progress();
        soft.finisher = None;
        self.next_zone();
        Some(progress)
    }

    fn measure(&mut self, zslba: Lba) -> Offer {
        let lbas = match self.kind {
            OpKind::Finish => self.unwritten(),
            OpKind::Reset => self.zoned.zone_size_lbas,
            _ => 0,
        };
        if matches!(self.kind, OpKind::Open | OpKind::Close) {
            self.stage = Stage::Clear;
        } else {
            self.next_zone();
        }
        self.in_flight = true;
        Offer::Issue(Next {
            op: send(zslba, self.kind),
            kind: self.kind,
            lbas,
            stream: 0,
            role: Role::Measured,
        })
    }
}
