//! Loss of power: what is left of a drive when it comes back.
//!
//! A drive without write buffer acknowledges a write when its pages are
//! programmed, so everything acknowledged is left. Behind the last acknowledged
//! block, a zone keeps of the writes that were on their way what is contiguous:
//! whole writes, then at most one in part, in pages from its start. How much of
//! a write that was being programmed got to the flash is drawn from a seed,
//! since the model does not know the order of its pages. A write before an
//! acknowledged one that is torn in the same way leaves unwritten blocks below
//! the write pointer, which read as zeros: it was never acknowledged.
//!
//! Zone management that was accepted has happened, acknowledged or not: drives
//! log changes of zone state before they act on them. What a finish had not
//! programmed stays unprogrammed; what a reset had not erased is erased later:
//! in the background if that is the design, else before the next write.
//!
//! A drive with a write buffer acknowledges a write when it is in the buffer.
//! Without protection against power loss, a zone keeps what is on the flash and,
//! behind that, what is contiguous of the programs under way; what was
//! acknowledged and neither programmed nor flushed can be lost, from the end of
//! the zone. With protection it keeps everything that was in the buffer.
//!
//! A conventional namespace is a log of such zones. A block whose last write is lost holds
//! what it held before that: the place of it is kept until the write is on the flash.
//!
//! Random write areas are as volatile as the buffer: with protection a zone keeps
//! its area, what was written to it and what was being committed; without, it
//! loses the area with what was not committed.
//!
//! Not modelled: rewriting pages that were torn (they count as usable), or blocks
//! whose erasure for an unacknowledged write was interrupted while acknowledged data
//! lies behind that write (they count as erased), and the time that recovery takes,
//! which the caller states.

use zonelab_device::{Buf, Lba, NamespaceId, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::zns::ZoneState;

use crate::buffer::WriteBuffer;
use crate::conventional::{Conventional, Role, log_with};
use crate::copy::Copies;
use crate::draw::Draw;
use crate::drive::{BackEnd, Control, ControlError, Core, Drive, Request, Stage};
use crate::front::FrontEnd;
use crate::interface::FaultTarget;
use crate::mapping::prepared::Prepared;
use crate::zones::{Change, Zones};

/// A command that was in flight when power was lost: it never completes.
#[derive(Debug)]
pub struct Lost {
    /// Its queue.
    pub queue: QueueId,
    /// What the submitter called it.
    pub tag: Tag,
    /// The namespace it was for.
    pub nsid: NamespaceId,
    /// The operation.
    pub op: Op,
    /// Its buffer.
    pub data: Option<Buf>,
}

/// What a loss of power did.
#[derive(Debug)]
pub struct PowerLoss {
    /// Commands that were in flight, by queue and tag.
    pub lost: Vec<Lost>,
    /// Zones whose state changed, counted over the drive.
    pub changes: Vec<Change>,
    /// From when on the drive takes commands again.
    pub ready_at: Nanos,
}

/// A write that was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flying {
    zone: u32,
    /// Its first block, counted from the start of the zone.
    start: u64,
    /// The block behind its last.
    end: u64,
    progress: Progress,
    /// It is a part of a write to a conventional namespace, or was collected there.
    is_of_log: bool,
}

/// What is left of a zone that had unfinished writes in flight.
#[derive(Clone, Debug)]
struct Remains {
    zone: ZoneId,
    /// Blocks below the write pointer, if the zone still has one.
    durable_lbas: u64,
    /// Ranges of blocks below that were never written.
    holes: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// Not on the flash yet, or behind an erasure.
    Waiting,
    /// Being programmed.
    Programming,
    /// On the flash; the host has not been told.
    Programmed,
}

impl Core {
    /// Takes the data away that was not on the flash.
    fn forget_data(&mut self, remains: &[Remains]) {
        let lba_bytes = u64::from(self.config.lba_bytes);
        let Some(data) = &mut self.data else { return };
        if let Some(contents) = data.outside() {
            for Remains { zone, .. } in remains {
                contents.keep_zone(*zone, &self.zones.record_of(*zone));
                self.zones.was_kept(*zone);
            }
        }
        for Remains {
            zone,
            durable_lbas,
            holes,
        } in remains
        {
            for (start, end) in holes {
                data.discard(*zone, start * lba_bytes..end * lba_bytes);
            }
            data.discard(*zone, durable_lbas * lba_bytes..u64::MAX);
        }
    }

    /// What is left of a zone whose unfinished writes are these, in order.
    fn remains_of(&self, writes: &[Flying], draw: &mut Draw) -> Remains {
        let zone = ZoneId(writes[0].zone);
        // Unfinished writes at the end of the zone can vanish; the others have
        // something acknowledged behind them.
        let mut acknowledged_end = self.zones.host_lbas(zone);
        let mut tail = writes.len();
        while tail > 0 && writes[tail - 1].end == acknowledged_end {
            tail -= 1;
            acknowledged_end = writes[tail].start;
        }
        let (before, behind) = writes.split_at(tail);
        // Of a log they get there: its blocks are somewhere else, and not zeros.
        let holes = before
            .iter()
            .filter(|write| !write.is_of_log)
            .map(|write| (self.programmed_end(write, draw), write.end))
            .filter(|(start, end)| start < end)
            .collect();
        let mut durable_lbas = acknowledged_end;
        for write in behind {
            durable_lbas = self.programmed_end(write, draw);
            if durable_lbas < write.end {
                break;
            }
        }
        Remains {
            zone,
            durable_lbas,
            holes,
        }
    }

    /// How far into the zone a write that was in flight got.
    fn programmed_end(&self, write: &Flying, draw: &mut Draw) -> u64 {
        if write.progress == Progress::Waiting {
            return write.start;
        }
        let page_lbas = u64::from(self.flash.layout().page_lbas());
        let first_page = write.start / page_lbas;
        let pages = (write.end - 1) / page_lbas - first_page + 1;
        let programmed = draw.below(pages + 1);
        debug_assert!(write.start < write.end, "a write has blocks: {write:?}");
        ((first_page + programmed) * page_lbas).clamp(write.start, write.end)
    }

    /// Makes the flash agree with what is left of the zones.
    fn settle_flash(&mut self, remains: &[Remains]) {
        let zones = &self.zones;
        // Fits: a zone has fewer than 2^32 blocks.
        let host_lbas = |zone| zones.host_lbas(zone) as u32;
        self.flash.blocks_after_power_loss(host_lbas);
        // A zone that lost everything has pages that were begun: they are erased like
        // those of a zone that was reset.
        for &Remains { zone, .. } in remains {
            if self.zones.state(zone) == ZoneState::EMPTY {
                self.flash.release(zone);
            }
        }
        self.release_unwritten();
    }

    /// Zones that were opened and not written are empty now, and give back what
    /// they got when they were opened.
    pub(crate) fn release_unwritten(&mut self) {
        let allocation = self.config.allocation;
        if !(allocation.at_open || allocation.thin) {
            return;
        }
        for zone in (0..self.config.zones.count).map(ZoneId) {
            if self.zones.state(zone) == ZoneState::EMPTY {
                self.flash.release(zone);
            }
        }
    }
}

impl BackEnd<'_> {
    /// Blocks of a zone from its start that a loss of power leaves for certain.
    pub(crate) fn durable_lbas(&self, zone: ZoneId) -> u32 {
        if let Some(buffer) = &self.buffer {
            return buffer.durable_lbas(zone);
        }
        let start = self.core.zones.start(zone).0;
        let generation = self.core.zones.generation(zone);
        let is_under_way = |request: &Request| {
            !matches!(request.role, Role::Conventional(_))
                && request.stage != Stage::Completion
                && request.generation == generation
                && request.target.range.count > 0
        };
        let under_way = self.core.requests.iter().filter(|(_, of)| is_under_way(of));
        let first = under_way.filter_map(|(_, request)| match request.op {
            Op::Write { slba, .. } if self.core.zones.zone_of(slba) == Some(zone) => {
                Some(slba.0 - start)
            }
            _ => None,
        });
        let first = first.min().unwrap_or(self.core.zones.host_lbas(zone));
        // Fits: a zone of a log has fewer.
        first as u32
    }
}

impl FaultTarget for Drive {
    fn zones(&self) -> &Zones {
        &self.core.zones
    }

    fn check_failure(&self, zone: ZoneId, to: ZoneState) -> Result<(), ControlError> {
        let zones = self.core.config.zones.count;
        if zone.0 >= zones {
            let range = zone.0..zone.0.saturating_add(1);
            return Err(ControlError::NoSuchZone { range, zones });
        }
        let is_of_log = log_with(&self.conventional, zone).is_some();
        if is_of_log && to != ZoneState::READ_ONLY {
            return Err(ControlError::Conventional { zone });
        }
        let from = self.core.zones.state(zone);
        let can_fail = match to {
            ZoneState::OFFLINE => true,
            ZoneState::READ_ONLY => from != ZoneState::OFFLINE,
            _ => false,
        };
        match can_fail {
            true => Ok(()),
            false => Err(ControlError::CannotFail { zone, from, to }),
        }
    }

    fn fail_zone(&mut self, now: Nanos, zone: ZoneId, to: ZoneState) -> Result<(), ControlError> {
        self.control(now, &Control::FailZone { zone, to })
    }

    fn power_cut(&mut self, now: Nanos, off: Nanos, seed: u64) -> PowerLoss {
        self.catch_up(now);
        let mut unfinished: Vec<usize> = self.core.flash.blocks().unfinished().collect();
        unfinished.sort_unstable();
        let draw = &mut Draw::new(seed);
        let remains = match &self.buffer {
            Some(buffer) => {
                let of = (&self.core, &*self.conventional);
                let remains = remains_of_buffer(buffer, of, &unfinished, draw);
                save_buffer(buffer, &mut self.core, &self.conventional);
                remains
            }
            None => remains(&self.core, &self.copies, &unfinished, draw),
        };

        assert_possible(&remains, &self.core.zones);
        let mut changes = Vec::new();
        let durable_lbas = |zone: ZoneId, host_lbas: u64| {
            remains
                .binary_search_by_key(&zone, |remains| remains.zone)
                .map_or(host_lbas, |at| remains[at].durable_lbas)
        };
        let keeps_zrwa = self
            .buffer
            .as_ref()
            .is_some_and(|buffer| buffer.is_protected);
        self.core
            .zones
            .power_cycle(durable_lbas, keeps_zrwa, &mut changes);
        self.core.forget_data(&remains);
        self.core.changed.clear();

        let zones = &self.core.zones;
        let of_host = |nsid, op| zones.namespace(nsid).map_or(op, |of| of.of_host(op));
        let mut lost: Vec<Lost> = self
            .core
            .requests
            .drain()
            .filter(|request| !request.role.is_internal())
            .map(|request| Lost {
                queue: request.queue,
                tag: request.tag,
                nsid: request.nsid,
                op: of_host(request.nsid, request.op),
                data: request.data,
            })
            .collect();
        lost.sort_by_key(|lost| (lost.queue, lost.tag));
        self.core.events.clear();
        self.background.power_cut();
        self.copies.clear();
        self.core.internal_requests = 0;
        for of in &mut self.conventional {
            of.power_cut(&self.core.zones);
        }
        self.core.host_in_flight.fill(0);
        self.core.zone_starts.fill(Nanos::ZERO);
        self.core.front = FrontEnd::new(&self.core.config.front_end, self.core.config.lba_bytes);
        self.core.window.power_cut();
        let booked_until = self
            .core
            .flash
            .power_cut(self.core.config.geometry.channels);
        self.core.ready_at = now.saturating_add(off).max(booked_until);
        self.core.prepared = Prepared::new(&self.core.config.allocation, self.core.ready_at);

        self.core.record_power_cut();
        self.core.settle_flash(&remains);
        if let Some(buffer) = &mut self.buffer {
            buffer.settle(&self.core.zones);
        }
        debug_assert!(
            self.core.requests.iter().next().is_none() && self.copies.is_empty(),
            "no command outlives a loss of power"
        );
        let ready_at = self.core.ready_at;
        self.background.resume_erasures(&mut self.core, ready_at);
        self.background.resume_folding(&mut self.core, ready_at);
        self.plain
            .look(&self.core, &self.background, self.buffer.is_some());
        PowerLoss {
            lost,
            changes,
            ready_at: self.core.ready_at,
        }
    }
}

/// Panics, in a build that checks that, unless each zone has one entry, in order, of no more
/// blocks than were written.
fn assert_possible(remains: &[Remains], zones: &Zones) {
    debug_assert!(
        remains.is_sorted_by(|a, b| a.zone < b.zone),
        "what is left of a zone is said once, and in order"
    );
    debug_assert!(
        remains
            .iter()
            .all(|of| of.durable_lbas <= zones.host_lbas(of.zone)),
        "nothing is left of a zone that was not written"
    );
}

/// What is left of each zone that loses blocks, in order.
fn remains_of_buffer(
    buffer: &WriteBuffer,
    of: (&Core, &[Conventional]),
    unfinished: &[usize],
    draw: &mut Draw,
) -> Vec<Remains> {
    let remains = |(zone, durable_lbas)| Remains {
        zone,
        durable_lbas,
        holes: Vec::new(),
    };
    let buffered = buffer.remains(of, unfinished, draw);
    buffered.into_iter().map(remains).collect()
}

/// Stored energy brings what is in a protected buffer to the flash.
fn save_buffer(buffer: &WriteBuffer, core: &mut Core, logs: &[Conventional]) {
    if !buffer.is_protected {
        return;
    }
    let mut flash = core.flash.clone();
    buffer.settle_into((core, logs), &mut flash);
    core.flash = flash;
}

/// What is left of each zone with writes in flight, in order.
fn remains(core: &Core, copies: &Copies, unfinished: &[usize], draw: &mut Draw) -> Vec<Remains> {
    let mut flying: Vec<Flying> = Vec::new();
    for (index, request) in core.requests.iter() {
        let (slba, nlb) = match request.op {
            Op::Write { slba, nlb } => (slba, nlb),
            Op::WriteZeroes { slba, nlb } => (slba, nlb),
            Op::Copy { sdlba, .. } => (sdlba, request.target.range.count),
            Op::Append { nlb, .. } => (Lba(request.result), nlb),
            _ => continue,
        };
        let Some(zone) = core.zones.zone_of(slba) else {
            continue;
        };
        // Refused ones wait for their completion with no target.
        let accepted = request.target.range.count > 0;
        // The blocks that a command on a log names are not those of a zone: its parts are.
        if matches!(request.role, Role::Conventional(_))
            || !accepted
            || request.generation != core.zones.generation(zone)
        {
            continue;
        }
        let progress = match request.stage {
            Stage::Admission | Stage::Sources => Progress::Waiting,
            // Its blocks may still have to be erased.
            Stage::Flash if copies.holds_request(index) => Progress::Waiting,
            Stage::Flash if core.flash.waits_for_erasure(request.target, unfinished) => {
                Progress::Waiting
            }
            Stage::Flash => Progress::Programming,
            Stage::Completion => Progress::Programmed,
        };
        if progress != Progress::Programmed {
            let start = slba.0 - core.zones.start(zone).0;
            flying.push(Flying {
                zone: zone.0,
                start,
                end: start + u64::from(nlb),
                progress,
                is_of_log: request.role != Role::Zoned,
            });
        }
    }
    flying.sort_unstable();
    flying
        .chunk_by(|a, b| a.zone == b.zone)
        .map(|writes| core.remains_of(writes, draw))
        .collect()
}
