//! One command in parts.

use zonelab_device::{Buf, Command, Completion, DeviceInfo, Found, Lba, Op, Tag};
use zonelab_nvme::Status;

use super::zones::{self, ZoneKey};

/// What becomes of a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    /// It goes to the device as it is, which may refuse it.
    Whole,
    /// It goes in parts.
    Parts(Limits),
    /// It cannot succeed.
    Fails(Status),
}

/// How a command is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    lba_bytes: usize,
    /// Blocks of a part at most, at least 1.
    most: u32,
    /// Parts end where zones of this size do.
    zone_size: Option<u64>,
    /// The zone whose write pointer the parts follow: one after the other.
    zone: Option<ZoneKey>,
}

/// Decides what becomes of a command.
pub(super) fn plan(info: &DeviceInfo, command: &Command, data: Option<&Buf>) -> Plan {
    let (slba, nlb, is_write) = match command.op {
        Op::Read { slba, nlb } | Op::Compare { slba, nlb } => (slba.0, nlb, false),
        Op::Write { slba, nlb } => (slba.0, nlb, true),
        _ => return Plan::Whole,
    };
    // Whoever is below says what is wrong with a namespace that is not there.
    let Some(namespace) = info.namespace(command.nsid) else {
        return Plan::Whole;
    };
    let lba_bytes = namespace.lba_bytes.max(1);
    let most = (info.max_transfer_bytes / lba_bytes).clamp(1, zones::MAX_NLB);
    let zoned = namespace.zoned.filter(|zoned| zoned.zone_size_lbas > 0);
    let zone_size = zoned.map(|zoned| zoned.zone_size_lbas);
    let crosses = zone_size.is_some_and(|size| slba % size + u64::from(nlb) > size);
    let must_not_cross = zoned.is_some_and(|zoned| is_write || !zoned.read_across_zones);
    if nlb <= most && !(crosses && must_not_cross && !is_write) {
        return Plan::Whole;
    }
    if is_write && crosses {
        return Plan::Fails(Status::ZONE_BOUNDARY_ERROR);
    }
    let lba_bytes = lba_bytes as usize;
    let is_wrong = match (data.map(|data| data.len()), nlb.try_into()) {
        (_, Err(_)) => true,
        (None, Ok(_)) => matches!(command.op, Op::Compare { .. }),
        (Some(given), Ok(nlb)) => lba_bytes.checked_mul(nlb) != Some(given),
    };
    if is_wrong || slba.checked_add(nlb.into()).is_none() {
        return Plan::Fails(Status::INVALID_FIELD);
    }
    let zone = zone_size.filter(|_| is_write);
    Plan::Parts(Limits {
        lba_bytes,
        most,
        zone_size: zone_size.filter(|_| must_not_cross),
        zone: zone.map(|size| ZoneKey {
            nsid: command.nsid,
            zone: slba / size,
        }),
    })
}

/// A part of a command: its first block, counted from that of the command, and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) from: u32,
    pub(super) nlb: u32,
}

/// A command whose parts are under way.
#[derive(Debug)]
pub(super) struct Job {
    command: Command,
    tag: Tag,
    limits: Limits,
    data: Option<Buf>,
    /// Blocks of parts that were sent.
    begun: u32,
    /// Parts under way.
    under_way: u32,
    /// The first block of the first part, by address, that failed, and how.
    failed: Option<(u32, Status)>,
    /// What its parts have found; `None`: none is over.
    found: Option<Found>,
}

/// How a command ends that was sent in parts.
pub(super) struct End {
    pub(super) tag: Tag,
    pub(super) status: Status,
    /// Blocks that were moved before the first part that failed.
    pub(super) moved: u64,
    pub(super) found: Found,
    pub(super) data: Option<Buf>,
}

impl Job {
    pub(super) const fn new(
        (command, tag): (Command, Tag),
        limits: Limits,
        data: Option<Buf>,
    ) -> Self {
        Self {
            command,
            tag,
            limits,
            data,
            begun: 0,
            under_way: 0,
            failed: None,
            found: None,
        }
    }

    /// The zone that it writes to in order.
    pub(super) const fn zone(&self) -> Option<ZoneKey> {
        self.limits.zone
    }

    const fn slba(&self) -> u64 {
        self.command.op.first_block()
    }

    /// The part to be sent next. `None`: there is no more, or not yet.
    pub(super) fn next_part(&self) -> Option<Part> {
        let left = self.command.op.nlb() - self.begun;
        let must_wait = self.limits.zone.is_some() && self.under_way > 0;
        if left == 0 || must_wait || self.failed.is_some() {
            return None;
        }
        let to_boundary = self.limits.zone_size.map_or(u64::MAX, |size| {
            size - (self.slba() + u64::from(self.begun)) % size
        });
        let nlb = u64::from(left.min(self.limits.most)).min(to_boundary);
        Some(Part {
            from: self.begun,
            // Not longer than what is left.
            nlb: nlb as u32,
        })
    }

    /// A part as a command of its own.
    pub(super) fn make(&self, part: Part) -> (Command, Option<Buf>) {
        let slba = Lba(self.slba() + u64::from(part.from));
        let Part { nlb, .. } = part;
        let is_read = matches!(self.command.op, Op::Read { .. });
        let op = match self.command.op {
            Op::Read { .. } => Op::Read { slba, nlb },
            Op::Compare { .. } => Op::Compare { slba, nlb },
            _ => Op::Write { slba, nlb },
        };
        let command = Command { op, ..self.command };
        let bytes = self.bytes_of((part.from, nlb));
        let data = self.data.as_ref().map(|data| match is_read {
            true => Buf::zeroed(bytes.len()),
            false => Buf::from(data.get(bytes).unwrap_or_default().to_vec()),
        });
        (command, data)
    }

    /// Where the data of a part is in that of the command.
    fn bytes_of(&self, (from, nlb): (u32, u32)) -> core::ops::Range<usize> {
        let first = from as usize * self.limits.lba_bytes;
        first..first + nlb as usize * self.limits.lba_bytes
    }

    /// A part was sent.
    pub(super) const fn sent(&mut self, part: Part) {
        self.begun += part.nlb;
        self.under_way += 1;
    }

    /// A part has failed, or could not be sent.
    pub(super) fn fail(&mut self, from: u32, status: Status) {
        if self.failed.is_none_or(|(first, _)| from < first) {
            self.failed = Some((from, status));
        }
    }

    /// A part is over.
    pub(super) fn arrived(&mut self, part: (u32, u32), completion: Completion) {
        let Completion {
            status,
            found,
            data,
            ..
        } = completion;
        self.under_way = self.under_way.saturating_sub(1);
        if !status.is_success() {
            return self.fail(part.0, status);
        }
        self.found = Some(self.found.map_or(found, |before| before.with(found)));
        if !matches!(self.command.op, Op::Read { .. }) {
            return;
        }
        let bytes = self.bytes_of(part);
        let room = self.data.as_mut().and_then(|data| data.get_mut(bytes));
        if let (Some(room), Some(data)) = (room, data)
            && room.len() == data.len()
        {
            room.copy_from_slice(&data);
        }
    }

    /// Whether nothing is under way, and nothing will be.
    pub(super) fn is_over(&self) -> bool {
        self.under_way == 0 && (self.failed.is_some() || self.begun == self.command.op.nlb())
    }

    pub(super) fn end(self) -> End {
        let (moved, status) = self.failed.unwrap_or((0, Status::SUCCESS));
        End {
            tag: self.tag,
            status,
            moved: moved.into(),
            found: self.found.unwrap_or_default(),
            data: self.data,
        }
    }
}
