//! Random commands: what is drawn, and what it means in a given state of the drive.

use proptest::prelude::*;
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction, ZoneState};
use zonelab_oracle::zones::Zones as Reference;
use zonelab_ssd::config::{StripeOrder, ZonesConfig, ZrwaConfig};

/// Anything that can be done to the zones.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Write { slba: u64, nlb: u32 },
    Append { zslba: u64, nlb: u32 },
    Read { slba: u64, nlb: u32 },
    Send { slba: u64, action: ZoneSendAction },
    SendAll { action: ZoneSendAction },
    SetExtension { slba: u64, bytes: Vec<u8> },
    OpenZrwa { slba: u64 },
    SetExtensionZrwa { slba: u64, bytes: Vec<u8> },
    Commit { last: u64 },
    Fail { zone: u32, to: ZoneState },
    Precondition { from: u32, to: u32 },
    Report(Report),
}

/// The arguments of a zone report.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) slba: u64,
    pub(crate) filter: ReportFilter,
    pub(crate) partial: bool,
    pub(crate) extended: bool,
    pub(crate) len: usize,
}

/// Kinds of commands. Each run weighs them differently.
const KINDS: [fn(&Draw, &Reference) -> Command; 23] = [
    |draw, drive| Command::Write {
        slba: draw.pointer(drive),
        nlb: draw.nlb(drive),
    },
    |draw, drive| Command::Write {
        slba: draw.lba(drive),
        nlb: draw.nlb(drive),
    },
    |draw, drive| Command::Append {
        zslba: draw.zone_start(drive),
        nlb: draw.nlb(drive),
    },
    |draw, drive| Command::Read {
        slba: draw.lba(drive),
        nlb: draw.nlb(drive),
    },
    |draw, drive| draw.send(drive, ZoneSendAction::OPEN),
    |draw, drive| draw.send(drive, ZoneSendAction::CLOSE),
    |draw, drive| draw.send(drive, ZoneSendAction::FINISH),
    |draw, drive| draw.send(drive, ZoneSendAction::RESET),
    |draw, drive| draw.send(drive, ZoneSendAction::OFFLINE),
    |draw, drive| draw.send(drive, ZoneSendAction(draw.b as u8)),
    |draw, _| draw.send_all(ZoneSendAction::OPEN),
    |draw, _| draw.send_all(ZoneSendAction::CLOSE),
    |draw, _| draw.send_all(ZoneSendAction::FINISH),
    |draw, _| draw.send_all(ZoneSendAction::RESET),
    |draw, _| draw.send_all(ZoneSendAction(draw.b as u8)),
    |draw, drive| Command::SetExtension {
        slba: draw.zone_start(drive),
        bytes: draw.extension_bytes(),
    },
    |draw, drive| Command::Fail {
        zone: (draw.a % (u64::from(drive.config().count) + 1)) as u32,
        to: [ZoneState::READ_ONLY, ZoneState::OFFLINE, ZoneState::FULL][(draw.b % 5 / 2) as usize],
    },
    |draw, drive| Command::Precondition {
        from: (draw.a % (u64::from(drive.config().count) + 1)) as u32,
        to: (draw.b % (u64::from(drive.config().count) + 2)) as u32,
    },
    |draw, drive| Command::Report(draw.report(drive)),
    |draw, drive| Command::OpenZrwa {
        slba: draw.zone_start(drive),
    },
    |draw, drive| Command::SetExtensionZrwa {
        slba: draw.zone_start(drive),
        bytes: draw.extension_bytes(),
    },
    |draw, drive| Command::Commit {
        last: draw.committed(drive),
    },
    |draw, drive| Command::Write {
        slba: draw.pointer(drive) + draw.b % (3 * drive.area_lbas() + 1),
        nlb: 1 + (draw.a % (drive.area_lbas() + 1)) as u32,
    },
];

/// Numbers from which one command is made. What they select depends on the
/// state of the drive, so that commands come near what the rules are about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    kind: u32,
    /// Selects zones.
    a: u64,
    /// Selects lengths and variants.
    b: u64,
    /// Selects rare cases.
    c: u8,
}

impl Draw {
    pub(crate) fn command(&self, weights: &[u32; KINDS.len()], drive: &Reference) -> Command {
        let total: u32 = weights.iter().sum();
        let mut ticket = self.kind % total.max(1);
        let chosen = weights.iter().position(|weight| {
            let hit = ticket < *weight;
            ticket = ticket.saturating_sub(*weight);
            hit
        });
        KINDS[chosen.unwrap_or(0)](self, drive)
    }

    fn zone(&self, drive: &Reference) -> usize {
        (self.a % u64::from(drive.config().count)) as usize
    }

    /// The write pointer of a zone.
    fn pointer(&self, drive: &Reference) -> u64 {
        let zone = self.zone(drive);
        drive.start(zone) + drive.all()[zone].pointer
    }

    /// The start of a zone, rarely something else.
    fn zone_start(&self, drive: &Reference) -> u64 {
        if self.c < 16 {
            self.lba(drive)
        } else {
            drive.start(self.zone(drive))
        }
    }

    /// An address: mostly on the drive, often where something begins or ends.
    fn lba(&self, drive: &Reference) -> u64 {
        let zone = self.zone(drive);
        let size = drive.config().size_lbas;
        match self.c % 8 {
            0 => drive.start(zone),
            1 => drive.end(zone),
            2 => drive.end(zone) - 1,
            3 => drive.start(zone) + size - 1,
            4 => u64::from(drive.config().count) * size,
            5 if self.c > 200 => u64::MAX - self.b % 3,
            _ => drive.start(zone) + self.b % size,
        }
    }

    /// A number of blocks: often what is left of the zone, or one more.
    fn nlb(&self, drive: &Reference) -> u32 {
        let zone = self.zone(drive);
        let left = (drive.config().capacity_lbas - drive.all()[zone].pointer) as u32;
        match self.b % 8 {
            0 => left,
            1 => left + 1,
            2 => (self.a % (3 * drive.config().size_lbas)) as u32,
            3 if self.c == 0 => u32::MAX,
            _ => 1 + (self.a % 4) as u32,
        }
    }

    /// A block to commit up to: mostly the end of a granularity or of the capacity.
    fn committed(&self, drive: &Reference) -> u64 {
        let granularity = drive
            .config()
            .zrwa
            .map_or(1, |zrwa| u64::from(zrwa.flush_granularity_lbas));
        let zone = self.zone(drive);
        match self.c % 8 {
            0 => self.lba(drive),
            1 => drive.end(zone) - 1,
            _ => self.pointer(drive) + granularity * (1 + self.b % 4) - 1,
        }
    }

    fn send(&self, drive: &Reference, action: ZoneSendAction) -> Command {
        Command::Send {
            slba: self.zone_start(drive),
            action,
        }
    }

    fn send_all(&self, action: ZoneSendAction) -> Command {
        Command::SendAll { action }
    }

    fn extension_bytes(&self) -> Vec<u8> {
        let len = [64, 64, 64, 64, 63, 65, 0, 128][(self.b % 8) as usize];
        (0..len).map(|i| (i + self.a) as u8).collect()
    }

    fn report(&self, drive: &Reference) -> Report {
        let entries = u64::from(drive.config().count) * 128 + 64;
        Report {
            slba: self.lba(drive),
            filter: ReportFilter((self.b % 9) as u8),
            partial: self.a & 8 != 0,
            extended: self.a & 16 != 0,
            len: (self.a / 32 % (entries + 64)) as usize,
        }
    }
}

/// One run: a configuration, how often each kind of command comes, and the commands.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) config: ZonesConfig,
    pub(crate) weights: [u32; KINDS.len()],
    pub(crate) draws: Vec<Draw>,
}

pub(crate) fn run() -> impl Strategy<Value = Run> {
    let weight = prop_oneof![Just(0), Just(1), Just(4), Just(20)];
    let draw = (any::<u32>(), any::<u64>(), any::<u64>(), any::<u8>())
        .prop_map(|(kind, a, b, c)| Draw { kind, a, b, c });
    (
        config(),
        proptest::array::uniform23(weight),
        proptest::collection::vec(draw, 1..200),
    )
        .prop_map(|(config, weights, draws)| Run {
            config,
            weights,
            draws,
        })
}

fn config() -> impl Strategy<Value = ZonesConfig> {
    let limit = || {
        prop_oneof![
            Just(Some(1)),
            Just(Some(2)),
            Just(Some(3)),
            Just(Some(14)),
            Just(None)
        ]
    };
    let size = prop_oneof![Just(1_u64), Just(8), Just(16), 2..40_u64];
    let size_and_capacity =
        size.prop_flat_map(|size| (Just(size), prop_oneof![Just(size), 1..=size]));
    (
        1..24_u32,
        size_and_capacity,
        limit(),
        limit(),
        any::<bool>(),
        prop_oneof![Just(0_u32), Just(64)],
        zrwa(),
    )
        .prop_map(
            |(count, (size, capacity), active, open, across, extension, zrwa)| ZonesConfig {
                count,
                size_lbas: size,
                capacity_lbas: capacity,
                max_active: active,
                max_open: match (active, open) {
                    (Some(active), Some(open)) => Some(open.min(active)),
                    (_, open) => open,
                },
                channels: 1,
                ways: 1,
                stripe: StripeOrder::ChannelFirst,
                stagger: 0,
                read_across: across,
                descriptor_extension_bytes: extension,
                zrwa: zrwa.and_then(|zrwa| fitting(zrwa, capacity)),
            },
        )
}

/// Areas of up to 4 granularities, or none.
fn zrwa() -> impl Strategy<Value = Option<ZrwaConfig>> {
    let limit = prop_oneof![Just(Some(1)), Just(Some(2)), Just(Some(5)), Just(None)];
    let some = (1..6_u32, 1..5_u32, limit, proptest::bool::weighted(0.8));
    let some = some.prop_map(
        |(flush_granularity_lbas, times, max_areas, explicit_flush)| {
            Some(ZrwaConfig {
                size_lbas: flush_granularity_lbas * times,
                flush_granularity_lbas,
                max_areas,
                explicit_flush,
            })
        },
    );
    prop_oneof![1 => Just(None), 3 => some]
}

/// The same with a granularity that divides the capacity, and areas that are not
/// larger, if that can be.
fn fitting(zrwa: ZrwaConfig, capacity_lbas: u64) -> Option<ZrwaConfig> {
    let granularity = if capacity_lbas.is_multiple_of(zrwa.flush_granularity_lbas.into()) {
        zrwa.flush_granularity_lbas
    } else {
        1
    };
    let times = zrwa.size_lbas / zrwa.flush_granularity_lbas;
    let size_lbas = granularity * times;
    (u64::from(size_lbas) <= capacity_lbas).then_some(ZrwaConfig {
        size_lbas,
        flush_granularity_lbas: granularity,
        ..zrwa
    })
}
