//! Drives that fail on demand.
//!
//! A fault is data: a [`Match`] (which commands, when, how often) and an
//! [`Effect`]. A [`FaultPlan`] is a list of them with a seed; [`FaultyDrive`]
//! applies it to the commands and completions of a drive that knows nothing of
//! it. The drive's own state stays pristine: a block that cannot be read holds
//! its data all the time, so [`FaultyDrive::clear_faults`] makes it readable
//! again. What a fault does to the state of the drive (a zone that went offline,
//! a loss of power) is the drive's, and stays, as it does on a real one.
//!
//! Plans come from TOML ([`FaultPlan::parse`]):
//!
//! ```
//! use zonelab_ssd::faults::FaultPlan;
//!
//! let text = r#"
//!     seed = 7
//!
//!     [[fault]]                  # a weak spot
//!     on = "read"
//!     lbas = "4096..=4351"
//!     effect = "media-error"
//!
//!     [[fault]]                  # the hundredth append kills its zone
//!     on = "append"
//!     skip = 99
//!     count = 1
//!     effect = "offline"
//!
//!     [[fault]]                  # one write in a thousand takes 5 ms longer
//!     on = "write"
//!     probability = "0.1%"
//!     effect = "delay"
//!     delay = "5ms"
//!
//!     [[fault]]                  # power fails after two seconds, for half a second
//!     on = "time"
//!     at = "2s"
//!     effect = "power-cut"
//!     off = "500ms"
//! "#;
//! let plan = FaultPlan::parse("faults.toml", text, &[]).expect("it is valid");
//! assert_eq!(plan.faults.len(), 4);
//! ```
//!
//! On a drive with several namespaces, `namespace = 2` restricts a fault to the
//! commands for that one, and its `zones` and `lbas` count from its start;
//! without the key they count over the drive.
//!
//! Of several faults that match a command, the first in the list acts.

mod applied;
mod armed;
mod drive;
mod outcome;
mod pending;
mod read;
mod strikes;
#[cfg(test)]
mod tests;
mod write;

use core::ops::RangeInclusive;

use zonelab_device::{NamespaceId, Nanos, Op};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

use crate::config::DriveConfig;
use crate::zones::{Namespace, Zones};

pub use drive::FaultyDrive;
pub use outcome::{CannotFail, LostCompletion, LostCompletions, PowerCycle, Swallowed};
pub use write::Value;

/// One million: always.
pub const ALWAYS_PPM: u32 = 1_000_000;

/// Faults, and the seed of everything drawn for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Seed of the draws of faults with a probability, and of what a loss of
    /// power leaves of unacknowledged writes.
    pub seed: u64,
    /// The faults. Of those that match a command, the first acts.
    pub faults: Vec<Fault>,
}

impl FaultPlan {
    /// Checks that every fault is about something that a drive of `config` has:
    /// a fault that can never strike is a mistake.
    ///
    /// # Errors
    /// The first that is not, in words.
    pub fn check(&self, config: &DriveConfig) -> Result<(), String> {
        for (index, Fault { when, .. }) in self.faults.iter().enumerate() {
            let (zones, of) = match when.namespace {
                None => (config.zones.count, "on the drive".to_owned()),
                Some(nsid) => {
                    let zones = config.zones_of(nsid).ok_or_else(|| {
                        let have = config.namespaces().len();
                        format!(
                            "fault {index}: there is no namespace {}: the drive has {have}",
                            nsid.0
                        )
                    })?;
                    let of = format!("in namespace {}", nsid.0);
                    (zones.end - zones.start, of)
                }
            };
            let lbas = u64::from(zones) * config.zones.size_lbas;
            let refuse = |what: &str, first: u64, last: u64, end: u64| {
                let known = end - 1;
                Err(format!(
                    "fault {index}: {what} {first} to {last} are not all {of}: its last is {known}"
                ))
            };
            if let Some(range) = when.zones.as_ref().filter(|range| *range.end() >= zones) {
                let (first, last) = (u64::from(*range.start()), u64::from(*range.end()));
                return refuse("zones", first, last, zones.into());
            }
            if let Some(range) = when.lbas.as_ref().filter(|range| *range.end() >= lbas) {
                return refuse("blocks", *range.start(), *range.end(), lbas);
            }
        }
        Ok(())
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When it strikes.
    pub when: Match,
    /// What it does.
    pub effect: Effect,
}

impl Fault {
    /// The fault with zones and blocks counted over the drive. What lies outside
    /// its namespace is on no drive.
    fn resolved(mut self, of_drive: &Zones) -> Self {
        let when = &mut self.when;
        let Some(nsid) = when.namespace else {
            return self;
        };
        let namespace = of_drive.namespace(nsid);
        let mine = namespace.map_or(0..0, Namespace::zones);
        let size_lbas = of_drive.size_lbas();
        if let Some(zones) = &mut when.zones {
            let count = mine.end - mine.start;
            *zones = if *zones.end() < count {
                mine.start + zones.start()..=mine.start + zones.end()
            } else {
                u32::MAX..=u32::MAX
            };
        }
        if let Some(lbas) = &mut when.lbas {
            let (first, end) = (
                u64::from(mine.start) * size_lbas,
                u64::from(mine.end) * size_lbas,
            );
            *lbas = if *lbas.end() < end - first {
                first + lbas.start()..=first + lbas.end()
            } else {
                u64::MAX..=u64::MAX
            };
        }
        self
    }

    /// The fault with all its times later.
    fn later_by(mut self, time: Nanos) -> Self {
        let when = &mut self.when;
        if let Trigger::Time(at) = &mut when.trigger {
            *at = at.saturating_add(time);
        }
        when.from = when.from.saturating_add(time);
        when.until = when.until.saturating_add(time);
        self
    }
}

/// What a fault of a running plan is called. Numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultId(pub u64);

/// A fault of a running plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What it is called.
    pub id: FaultId,
    /// The fault as it was given.
    pub fault: Fault,
    /// When it was loaded: its times count from then.
    pub loaded: Nanos,
    /// Commands that it matched, those that it spared included.
    pub matched: u64,
    /// How often it struck.
    pub struck: u64,
}

/// Which commands a fault strikes, or at what time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// What sets it off.
    pub trigger: Trigger,
    /// Only commands for this namespace; zones and blocks count from its start.
    /// `None`: commands for any, and zones and blocks count over the drive,
    /// whose namespaces lie side by side.
    pub namespace: Option<NamespaceId>,
    /// Only commands that touch one of these zones; for a [`Trigger::Time`]
    /// the zones that fail.
    pub zones: Option<RangeInclusive<u32>>,
    /// Only reads, writes and appends that touch one of these blocks. Of an
    /// append, the block that it gets counts.
    pub lbas: Option<RangeInclusive<u64>>,
    /// Only commands submitted in this span of time.
    pub from: Nanos,
    /// The end of the span, which is not in it.
    pub until: Nanos,
    /// So many commands that match are spared first.
    pub skip: u64,
    /// Then it strikes at most so many times.
    pub count: u64,
    /// And each time with this probability, in parts per million.
    pub probability_ppm: u32,
}

impl Match {
    /// Every command of a kind, at any time.
    #[must_use]
    pub const fn every(trigger: Trigger) -> Self {
        Self {
            trigger,
            namespace: None,
            zones: None,
            lbas: None,
            from: Nanos::ZERO,
            until: Nanos::MAX,
            skip: 0,
            count: u64::MAX,
            probability_ppm: ALWAYS_PPM,
        }
    }
}

/// What sets a fault off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Any command.
    Any,
    /// A read.
    Read,
    /// A write.
    Write,
    /// A zone append.
    Append,
    /// A Write Zeroes.
    WriteZeroes,
    /// A Compare.
    Compare,
    /// A Verify.
    Verify,
    /// A deallocation.
    Deallocate,
    /// A Copy.
    Copy,
    /// A flush.
    Flush,
    /// Zone Send with any action.
    ZoneSend,
    /// Zone Send Finish.
    Finish,
    /// Zone Send Reset.
    Reset,
    /// Zone Send Open.
    Open,
    /// Zone Send Close.
    Close,
    /// Zone Receive.
    Report,
    /// No command: this time.
    Time(Nanos),
}

impl Trigger {
    /// Triggers by commands, by their names in files.
    pub const BY_NAME: [(&'static str, Self); 16] = [
        ("any", Self::Any),
        ("read", Self::Read),
        ("write", Self::Write),
        ("append", Self::Append),
        ("write-zeroes", Self::WriteZeroes),
        ("compare", Self::Compare),
        ("verify", Self::Verify),
        ("deallocate", Self::Deallocate),
        ("copy", Self::Copy),
        ("flush", Self::Flush),
        ("zone-send", Self::ZoneSend),
        ("finish", Self::Finish),
        ("reset", Self::Reset),
        ("open", Self::Open),
        ("close", Self::Close),
        ("report", Self::Report),
    ];

    /// What a command is called: the name of the trigger that it sets off and few others do.
    #[must_use]
    pub fn name_of(op: &Op) -> &'static str {
        let mut narrow_last = Self::BY_NAME.iter().rev();
        let found = narrow_last.find(|(_, trigger)| trigger.is_set_off_by(op));
        found.map_or("command", |(name, _)| match *name {
            "any" => "command",
            name => name,
        })
    }

    /// Whether a command sets it off.
    #[must_use]
    pub fn is_set_off_by(self, op: &Op) -> bool {
        let sends = |wanted: ZoneSendAction| match op {
            Op::ZoneSend { action, .. } | Op::ZrwaSend { action, .. } => *action == wanted,
            _ => false,
        };
        match self {
            Self::Any => true,
            Self::Read => matches!(op, Op::Read { .. }),
            Self::Write => matches!(op, Op::Write { .. }),
            Self::Append => matches!(op, Op::Append { .. }),
            Self::WriteZeroes => matches!(op, Op::WriteZeroes { .. }),
            Self::Compare => matches!(op, Op::Compare { .. }),
            Self::Verify => matches!(op, Op::Verify { .. }),
            Self::Deallocate => matches!(op, Op::Deallocate { .. }),
            Self::Copy => matches!(op, Op::Copy { .. }),
            Self::Flush => matches!(op, Op::Flush),
            Self::ZoneSend => matches!(op, Op::ZoneSend { .. } | Op::ZrwaSend { .. }),
            Self::Finish => sends(ZoneSendAction::FINISH),
            Self::Reset => sends(ZoneSendAction::RESET),
            Self::Open => sends(ZoneSendAction::OPEN),
            Self::Close => sends(ZoneSendAction::CLOSE),
            Self::Report => matches!(op, Op::ZoneReceive { .. }),
            Self::Time(_) => false,
        }
    }
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The command is not carried out and completes with this status, after the
    /// drive has taken it.
    Fail(Status),
    /// A read, compare or verify takes its time and completes with Unrecovered
    /// Read Error. A copy is not carried out, and completes with it.
    MediaError,
    /// A program failure: a write or append takes its time and completes with
    /// Write Fault, its blocks cannot be read, and its zone is read-only. At a
    /// time, the zones become read-only.
    ReadOnly,
    /// The same, but the zone is offline.
    Offline,
    /// The completion comes so much later.
    Delay(Nanos),
    /// The command is carried out, but its completion is lost. After `timeout`
    /// the host gives up, and sees Command Aborted By Host; without, it waits
    /// for ever.
    Lose {
        /// From submission to abort.
        timeout: Option<Nanos>,
    },
    /// Power is lost when the drive has taken the command (or at the time), and
    /// comes back. Commands in flight end as Command Aborted By Host once the
    /// drive is ready again; what is submitted before waits for that.
    PowerCut {
        /// From the loss to when the drive takes commands.
        off: Nanos,
    },
}
