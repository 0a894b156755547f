//! Everything about a run, drawn.

use std::fmt;
use std::ops::Range;

use zonelab_device::{NamespaceId, Nanos};
use zonelab_nvme::Status;
use zonelab_sim::HostCosts;
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, Match, Trigger};
use zonelab_ssd::profile::to_toml;

use crate::draw::{Draw, Weights};
use crate::drive::{draw_cache, draw_config};

/// When power is cut in runs that lose completions for good: after everything
/// else, so that clients that still wait are woken.
const LAST_CUT: Nanos = Nanos::from_secs(100_000);

/// What a client can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Write,
    Append,
    Read,
    Reset,
    Finish,
    Open,
    Close,
    Flush,
    Report,
    Rest,
}

impl Act {
    pub(super) const ALL: [Self; 10] = [
        Self::Write,
        Self::Append,
        Self::Read,
        Self::Reset,
        Self::Finish,
        Self::Open,
        Self::Close,
        Self::Flush,
        Self::Report,
        Self::Rest,
    ];
}

/// What one client does.
#[derive(Clone, Debug)]
pub(super) struct Habits {
    /// Its zones, counted over the drive and of one namespace; no other client's.
    pub(super) zones: Range<u32>,
    pub(super) depth: u32,
    /// Operations before it stops.
    pub(super) operations: u32,
    /// How often it does what, in the order of [`Act::ALL`].
    pub(super) weights: [u32; Act::ALL.len()],
    /// Largest transfer in blocks.
    pub(super) nlb_max: u32,
    pub(super) seed: u64,
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) config: DriveConfig,
    pub(super) faults: FaultPlan,
    pub(super) host: HostCosts,
    pub(super) cores: u32,
    pub(super) queue_depth: u32,
    pub(super) clients: Vec<Habits>,
    /// Whether the drive is saved and restored between the phases.
    pub(super) restores: bool,
    pub(super) seed: u64,
}

impl Scenario {
    pub(super) fn draw(draw: &mut Draw<'_>) -> Self {
        let mut config = draw_config(draw, false);
        config.data = draw.pick(&[DataStore::Memory, DataStore::Memory, DataStore::None]);
        let restores = draw.flag();
        let seed = draw.int(0..=u64::MAX);
        let queue_depth = draw.int(1..=8);
        let cores = draw.int(1..=3);
        let host = host(draw);
        let faults = faults(draw);
        let cuts = |fault: &Fault| matches!(fault.effect, Effect::PowerCut { .. });
        if let Some(buffer) = &mut config.write_buffer
            && faults.faults.iter().any(cuts)
        {
            // Clients hold a drive to what it acknowledged; what an unprotected
            // buffer may lose is tested where losses of power can be seen.
            buffer.power_loss_protection = true;
        }
        let count = draw.int(1..=3_u32);
        let habits: Vec<_> = (0..count).map(|_| habits(draw, queue_depth)).collect();
        let clients = share(&habits, &config);
        if draw.one_in(3) {
            draw_cache(draw, &mut config);
        }
        Self {
            config,
            faults,
            host,
            cores,
            queue_depth,
            clients,
            restores,
            seed,
        }
    }

    /// Whether a fault of the plan can make a command end so.
    pub(super) fn explains(&self, status: Status) -> bool {
        let is_cause = |effect: &Effect| match *effect {
            Effect::Fail(with) => status == with,
            Effect::MediaError => status == Status::UNRECOVERED_READ_ERROR,
            Effect::ReadOnly | Effect::Offline => [
                Status::WRITE_FAULT,
                Status::UNRECOVERED_READ_ERROR,
                Status::ZONE_IS_READ_ONLY,
                Status::ZONE_IS_OFFLINE,
                Status::INVALID_ZONE_STATE_TRANSITION,
            ]
            .contains(&status),
            Effect::Lose { .. } | Effect::PowerCut { .. } => status == Status::ABORTED_BY_HOST,
            Effect::Delay(_) => false,
        };
        self.faults
            .faults
            .iter()
            .any(|fault| is_cause(&fault.effect))
    }

    /// Whether zones can die.
    pub(super) fn kills_zones(&self) -> bool {
        let kills = |fault: &Fault| matches!(fault.effect, Effect::ReadOnly | Effect::Offline);
        self.faults.faults.iter().any(kills)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", to_toml(&self.config))?;
        writeln!(f, "faults, seed {}:", self.faults.seed)?;
        for fault in &self.faults.faults {
            writeln!(f, "  {fault:?}")?;
        }
        writeln!(
            f,
            "{:?}, {} cores, queues of {}",
            self.host, self.cores, self.queue_depth
        )?;
        for habits in &self.clients {
            writeln!(f, "{habits:?}")?;
        }
        writeln!(f, "saved and restored: {}", self.restores)
    }
}

fn habits(draw: &mut Draw<'_>, queue_depth: u32) -> Habits {
    let weights = Weights::<{ Act::ALL.len() }>::draw(draw).values();
    Habits {
        zones: 0..0,
        depth: draw.int(1..=queue_depth),
        operations: draw.int(1..=150),
        weights,
        nlb_max: draw.pick(&[8, 1, 3, 16, 40]),
        seed: draw.int(0..=u64::MAX),
    }
}

/// Gives each client a part of a namespace: clients take turns at the
/// namespaces, and there are no more clients in one than it has zones.
fn share(habits: &[Habits], config: &DriveConfig) -> Vec<Habits> {
    let mut first = 0;
    let mut clients = Vec::new();
    let namespaces = config.namespaces();
    for (index, namespace) in namespaces.iter().enumerate() {
        let mine: Vec<&Habits> = habits
            .iter()
            .skip(index)
            .step_by(namespaces.len())
            .take(namespace.zones as usize)
            .collect();
        let count = u32::try_from(mine.len()).expect("there are few");
        for (at, habits) in (0..).zip(mine) {
            let bound = |part: u32| first + namespace.zones * part / count;
            clients.push(Habits {
                zones: bound(at)..bound(at + 1),
                ..habits.clone()
            });
        }
        first += namespace.zones;
    }
    clients
}

fn host(draw: &mut Draw<'_>) -> HostCosts {
    if draw.flag() {
        return HostCosts::FREE;
    }
    HostCosts {
        submit_ns: Nanos(draw.int(0..=20_000)),
        complete_ns: Nanos(draw.int(0..=20_000)),
        jitter_ns: Nanos(draw.pick(&[0, 0, 500, 20_000])),
        hiccup_one_in: draw.pick(&[0, 0, 50]),
        hiccup_ns: Nanos(200_000),
        path_ns: Nanos(draw.pick(&[0, 0, 3_000])),
        turn_ns: Nanos(draw.pick(&[0, 0, 700])),
    }
}

fn faults(draw: &mut Draw<'_>) -> FaultPlan {
    let count = draw.pick(&[0, 1, 2, 3, 5]);
    let mut faults: Vec<Fault> = (0..count).map(|_| fault(draw)).collect();
    let mut loses = false;
    for fault in &mut faults {
        if matches!(fault.effect, Effect::Lose { timeout: None }) {
            fault.when.until = LAST_CUT;
            loses = true;
        }
    }
    if loses {
        faults.push(Fault {
            when: Match::every(Trigger::Time(LAST_CUT)),
            effect: Effect::PowerCut { off: Nanos::ZERO },
        });
    }
    FaultPlan {
        seed: draw.int(0..=u64::MAX),
        faults,
    }
}

fn fault(draw: &mut Draw<'_>) -> Fault {
    let commands = [
        Trigger::Any,
        Trigger::Read,
        Trigger::Write,
        Trigger::Append,
        Trigger::ZoneSend,
        Trigger::Finish,
        Trigger::Reset,
        Trigger::Report,
        Trigger::Flush,
    ];
    let kills = [Trigger::Write, Trigger::Append, Trigger::Time(moment(draw))];
    let cuts = [
        Trigger::Any,
        Trigger::Write,
        Trigger::Reset,
        Trigger::Time(moment(draw)),
    ];
    let (trigger, effect) = match draw.int(0..=7_u8) {
        0 | 7 => (draw.pick(&cuts), Effect::PowerCut { off: moment(draw) }),
        1 => (Trigger::Read, Effect::MediaError),
        2 => (
            draw.pick(&kills),
            draw.pick(&[Effect::ReadOnly, Effect::Offline]),
        ),
        3 => (draw.pick(&commands), Effect::Delay(moment(draw))),
        4 => {
            let timeout = draw.maybe(moment);
            (draw.pick(&commands), Effect::Lose { timeout })
        }
        _ => {
            let statuses = [
                Status::INTERNAL_ERROR,
                Status::COMMAND_INTERRUPTED,
                Status::WRITE_FAULT,
                Status::UNRECOVERED_READ_ERROR,
            ];
            (draw.pick(&commands), Effect::Fail(draw.pick(&statuses)))
        }
    };
    if let Trigger::Time(_) = trigger {
        let first = draw.int(0..=3);
        return Fault {
            when: Match {
                zones: Some(first..=first + draw.int(0..=1)),
                ..Match::every(trigger)
            },
            effect,
        };
    }
    let skip_most = draw.pick(&[0, 9, 100]);
    let when = Match {
        trigger,
        namespace: draw
            .one_in(4)
            .then(|| NamespaceId(draw.pick(&[1, 2, 2, 3]))),
        zones: draw.one_in(3).then(|| {
            let first = draw.int(0..=9);
            first..=first + draw.int(0..=3)
        }),
        lbas: None,
        from: if draw.one_in(4) {
            moment(draw)
        } else {
            Nanos::ZERO
        },
        until: Nanos::MAX,
        skip: draw.int(0..=skip_most),
        // Bounded: a fault that always strikes leaves nothing to look at.
        count: draw.pick(&[1, 2, 5, 20]),
        probability_ppm: draw.pick(&[1_000_000, 500_000, 50_000]),
    };
    Fault { when, effect }
}

/// A time within a run, which lasts some milliseconds, or a little later.
fn moment(draw: &mut Draw<'_>) -> Nanos {
    Nanos(match draw.int(0..=2_u8) {
        0 => draw.int(0..=10_000),
        1 => draw.int(0..=1_000_000),
        _ => draw.int(0..=100_000_000),
    })
}
