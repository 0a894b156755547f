//! The plain way of a command, which most take: a read of written blocks, or a write or append
//! within an open zone, on a drive where nothing else has a part in it.
//!
//! Which drives these are is known before a command comes ([`PlainWay`]): the front end
//! takes no time, no buffer, cache or erasure by thresholds is between zones and flash, no data is
//! kept, and nobody records or watches. A command that is anything out of the common, which a
//! look at its zone tells, takes the general way instead (`command`): nothing has changed by
//! then. Both ways do the same, and leave the same behind: a request that came one way can end
//! by the other.

use zonelab_device::{Command, Completion, Found, Lba, Nanos, Op, QueueId, Tag};
use zonelab_nvme::Status;

use super::{Core, Owner, Request, Stage};
use crate::background::Background;
use crate::conventional::Role;
use crate::flash::{BlockRange, Target};

/// Whether commands can take the plain way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlainWay {
    is_open: bool,
}

impl PlainWay {
    /// Whether they can. What this depends on says so when it changes ([`Self::look`]).
    #[inline]
    pub(super) const fn is_open(self) -> bool {
        self.is_open
    }

    /// Whether everything that it depends on has said so when it changed.
    pub(super) fn is_as(self, core: &Core, background: &Background, has_buffer: bool) -> bool {
        let mut looked = self;
        looked.look(core, background, has_buffer);
        looked.is_open == self.is_open
    }

    /// Something of a drive may have changed that the plain way depends on.
    pub(crate) fn look(&mut self, core: &Core, background: &Background, has_buffer: bool) {
        self.is_open = !has_buffer
            && !background.erases_by_thresholds()
            && !background.folds()
            && core.prepared.is_none()
            && core.data.is_none()
            && !core.zones.are_kept()
            && !core.front.delays()
            && core.zone_starts.is_empty()
            && core.window.is_open()
            && core.recorder.is_none()
            && !core.is_tracked()
            && core.flash.is_plain();
    }
}

impl Core {
    /// Takes a command if the plain way is open to it. If not, nothing has changed.
    pub(super) fn submit_plainly(
        &mut self,
        now: Nanos,
        (queue, tag): (QueueId, Tag),
        command: &Command,
    ) -> bool {
        let is_quiet = self.events.next_at().is_none_or(|at| at > now);
        if !is_quiet || now < self.now || now < self.ready_at {
            return false;
        }
        let Some(slot) = self.requests.vacant() else {
            return false;
        };
        let Some(piece) = self.start_plainly(now, command, slot) else {
            return false;
        };
        self.now = now;
        self.host_in_flight[piece.group as usize] += 1;
        self.requests.insert_with(|| Request {
            queue,
            tag,
            nsid: command.nsid,
            op: piece.op,
            role: Role::Zoned,
            placement: command.placement,
            status: Status::SUCCESS,
            result: piece.result,
            found: Found::Work(piece.nlb),
            data: None,
            stage: Stage::Flash,
            pending: 1,
            target: piece.target,
            generation: piece.generation,
        });
        true
    }

    /// Takes the end of flash work of a request, if that is all that it waited for and nothing
    /// comes after it. If not, nothing has changed.
    #[inline]
    pub(super) fn end_plainly(&mut self, index: u32, background: &Background) -> bool {
        let request = self.requests.at(index);
        let is_last = request.pending == 1 && request.stage == Stage::Flash;
        if !is_last || request.role != Role::Zoned || !request.status.is_success() {
            return false;
        }
        let (mut result, op) = (request.result, request.op);
        let zone = match op {
            Op::Read { slba, nlb } => match self.zones.only_zone_of(slba.0, nlb) {
                Some(zone) => zone.0,
                None => return false,
            },
            Op::Write { .. } | Op::Append { .. } => request.target.physical,
            _ => return false,
        };
        let group = self.flash.layout().group_of(zone);
        let in_flight = &mut self.host_in_flight[group as usize];
        // Fills that wait for the host may go on.
        if *in_flight <= 1 && background.has_yielding() {
            return false;
        }
        *in_flight -= 1;
        if let (Op::Append { .. }, Some(namespace)) = (op, self.zones.namespace(request.nsid)) {
            result -= namespace.first_lba().0;
        }
        self.backlog.push(Completion {
            queue: request.queue,
            tag: request.tag,
            status: request.status,
            at: self.now,
            result,
            found: request.found,
            data: request.data.take(),
        });
        self.requests.free(index);
        true
    }
}

/// What a request keeps of a command whose flash work has started.
struct Piece {
    /// With its address counted over the drive.
    op: Op,
    nlb: u32,
    /// Where a write goes.
    target: Target,
    /// The group of its zone.
    group: u32,
    generation: u32,
    result: u64,
}

impl Core {
    /// Starts the flash work of a command for the request in `slot`, unless the plain way is not
    /// open to it.
    #[inline]
    fn start_plainly(&mut self, now: Nanos, command: &Command, slot: u32) -> Option<Piece> {
        let (slba, nlb, most_bytes) = match command.op {
            Op::Read { slba, nlb } | Op::Write { slba, nlb } => {
                (slba.0, nlb, self.info.max_transfer_bytes)
            }
            Op::Append { zslba, nlb } => (zslba.0, nlb, self.info.max_append_bytes),
            _ => return None,
        };
        let namespace = self.zones.namespace(command.nsid)?;
        let bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
        let is_valid = nlb > 0 && bytes <= u64::from(most_bytes) && namespace.contains(slba, nlb);
        if !is_valid || namespace.conventional().is_some() {
            return None;
        }
        let on_drive = namespace.first_lba().0 + slba;
        let slba = Lba(on_drive);
        let (op, place) = match command.op {
            Op::Read { .. } => (
                Op::Read { slba, nlb },
                self.zones.read_within(on_drive, nlb)?,
            ),
            Op::Write { .. } => (
                Op::Write { slba, nlb },
                self.zones.write_within(on_drive, nlb)?,
            ),
            _ => (
                Op::Append { zslba: slba, nlb },
                self.zones.append_within(on_drive, nlb)?,
            ),
        };
        let physical = self.flash.mapping().physical(place.zone)?;
        // Fits: profiles keep the blocks of a zone below 2^32.
        let first = place.offset_lbas as u32;
        let range = BlockRange { first, count: nlb };
        let target = Target { physical, range };
        let (events, token) = (&mut self.events, Owner::Request(slot).token());
        let mut piece = Piece {
            op,
            nlb,
            target: Target::NONE,
            group: self.flash.layout().group_of(physical),
            generation: 0,
            result: 0,
        };
        if let Op::Read { .. } = op {
            self.flash.read_plainly(now, target, token, events);
            self.totals.host_read_bytes += bytes;
            return Some(piece);
        }
        if !self.flash.program_plainly(now, target, token, events) {
            return None;
        }
        self.zones.wrote_within(place.zone, nlb);
        self.totals.host_write_bytes += bytes;
        (piece.target, piece.generation) = (target, place.generation);
        if let Op::Append { .. } = op {
            piece.result = on_drive + place.offset_lbas;
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use crate::drive::Drive;
    use crate::profile;

    #[test]
    fn drives_are_plain_until_somebody_looks() {
        let config = profile::builtin("confznspp").expect("built in").config;
        let mut drive = Drive::new(&config);
        assert!(drive.plain.is_open());
        assert!(drive.fork().plain.is_open());
        drive.watch_blocks();
        assert!(!drive.plain.is_open());
        let behind_cores = profile::builtin("zn540").expect("built in").config;
        assert!(!Drive::new(&behind_cores).plain.is_open());
    }
}
