//! Which zones commands change, so that those of one zone stay in their order.

use zonelab_device::{Command, DeviceInfo, NamespaceId, Op};

/// Most blocks of one command (NLB has 16 bits, and counts from zero).
pub(super) const MAX_NLB: u32 = 1 << 16;

/// A zone of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneKey {
    pub(super) nsid: NamespaceId,
    /// Its index.
    pub(super) zone: u64,
}

/// The zones that a command changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// None, or it does not matter when.
    Nothing,
    /// One.
    Zone(ZoneKey),
    /// Any zone of a namespace.
    All(NamespaceId),
}

impl Changes {
    pub(super) fn meets_zone(self, zone: ZoneKey) -> bool {
        match self {
            Self::Nothing => false,
            Self::Zone(of) => of == zone,
            Self::All(nsid) => nsid == zone.nsid,
        }
    }

    pub(super) fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => false,
            (Self::Zone(zone), changes) | (changes, Self::Zone(zone)) => changes.meets_zone(zone),
            (Self::All(a), Self::All(b)) => a == b,
        }
    }
}

/// What a command changes.
pub(super) fn changes(info: &DeviceInfo, command: &Command) -> Changes {
    let nsid = command.nsid;
    let is_change = matches!(
        command.op,
        Op::Write { .. }
            | Op::Append { .. }
            | Op::WriteZeroes { .. }
            | Op::Copy { .. }
            | Op::ZoneSend { .. }
            | Op::ZrwaSend { .. }
    );
    let namespace = info.namespace(nsid).filter(|_| is_change);
    let zoned = namespace.and_then(|namespace| namespace.zoned);
    let size = zoned.map_or(0, |zoned| zoned.zone_size_lbas);
    if size == 0 {
        return Changes::Nothing;
    }
    match command.op {
        Op::ZoneSend {
            select_all: true, ..
        } => Changes::All(nsid),
        op => Changes::Zone(ZoneKey {
            nsid,
            zone: op.first_block() / size,
        }),
    }
}
