//! What a command would have taken without something that it waited for.
//!
//! A drive can be told to watch commands of a run that is known already
//! ([`Drive::watch`](crate::Drive::watch)): the model is deterministic, so their numbers are the
//! same when the run is repeated. Just before each of them the drive copies itself. When the
//! command has completed, the copy is run again for each [`Factor`], from that moment on and with
//! the same commands at the same times, but without the factor.
//!
//! *Without a factor* means: from that moment on, its work takes no time on any die or channel
//! and holds nothing back. What of it is running ends at once, what waits is done at once, and
//! what comes later is done when it comes. The command's own work is never left out, and
//! neither are zone states, mapping or wear: everything but time is as it was. The hosts do not
//! react: they send what they sent, when they sent it.
//!
//! * `watch`: copies, the commands since then, and what comes of them.
//! * `absence`: how the parts of a drive other than the flash do without a factor. The flash is
//!   [`crate::media`].

mod absence;
mod watch;

use zonelab_device::Nanos;

use crate::account::Cause;

pub(crate) use absence::Absence;
pub(crate) use watch::Watch;
pub use watch::Watched;

/// Something that a command can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Factor {
    /// Reads of other commands.
    HostRead,
    /// Writes and appends of other commands, also on their way from the write buffer, and
    /// what they read to write a mapping unit whole.
    HostWrite,
    /// Device writes of zone finishes.
    FinishFill,
    /// Erasures by resets, at once or in the background.
    ResetErase,
    /// Erasures before writes to recycled flash.
    WriteErase,
    /// What moves data out of the SLC cache.
    Fold,
    /// What garbage collection reads, writes and erases.
    Collection,
    /// Work in the firmware's tables for zones that are reset, during which the write buffer
    /// starts no programs.
    Bookkeeping,
    /// Firmware cores that are busy with other commands.
    Firmware,
    /// The host link while it is busy with the data of other commands.
    Link,
}

impl Factor {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::HostRead,
        Self::HostWrite,
        Self::FinishFill,
        Self::ResetErase,
        Self::WriteErase,
        Self::Fold,
        Self::Collection,
        Self::Bookkeeping,
        Self::Firmware,
        Self::Link,
    ];

    /// Name in output. Those of flash work are the names of their causes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HostRead => Cause::HostRead.name(),
            Self::HostWrite => Cause::HostWrite.name(),
            Self::FinishFill => Cause::FinishFill.name(),
            Self::ResetErase => Cause::ResetErase.name(),
            Self::WriteErase => Cause::WriteErase.name(),
            Self::Fold => Cause::Fold.name(),
            Self::Collection => "collection",
            Self::Bookkeeping => "bookkeeping",
            Self::Firmware => "firmware",
            Self::Link => "link",
        }
    }

    /// The factor of that name, or of its first word (`finish`); `None`: there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let short = |factor: &Self| match factor {
            Self::HostRead => "read",
            Self::HostWrite => "write",
            Self::FinishFill => "finish",
            Self::ResetErase => "reset",
            other => other.name(),
        };
        let mut all = Self::ALL.into_iter();
        all.find(|factor| factor.name() == name || short(factor) == name)
    }

    /// The factor that flash work of a cause belongs to.
    #[must_use]
    pub const fn of(cause: Cause) -> Self {
        match cause {
            Cause::HostRead => Self::HostRead,
            Cause::HostWrite | Cause::ModifyRead => Self::HostWrite,
            Cause::FinishFill => Self::FinishFill,
            Cause::ResetErase => Self::ResetErase,
            Cause::WriteErase => Self::WriteErase,
            Cause::CollectRead | Cause::CollectWrite | Cause::CollectErase => Self::Collection,
            Cause::Fold => Self::Fold,
        }
    }
}

/// A set of factors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Factors(u16);

impl Factors {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self((1 << Factor::ALL.len()) - 1);

    /// Whether a factor is among them.
    #[inline]
    #[must_use]
    pub const fn contains(self, factor: Factor) -> bool {
        self.0 & 1 << factor as u16 != 0
    }

    /// Adds a factor.
    #[inline]
    pub const fn insert(&mut self, factor: Factor) {
        self.0 |= 1 << factor as u16;
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// They, in the order of [`Factor::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Factor> {
        let all = Factor::ALL.into_iter();
        all.filter(move |factor| self.contains(*factor))
    }
}

impl FromIterator<Factor> for Factors {
    fn from_iter<I: IntoIterator<Item = Factor>>(factors: I) -> Self {
        let mut set = Self::NONE;
        factors.into_iter().for_each(|factor| set.insert(factor));
        set
    }
}

/// Which commands a drive watches, and what it tries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchPlan {
    /// Their numbers, as [`CommandRecord::number`](crate::record::CommandRecord) counts them,
    /// and when each is submitted. In any order.
    pub commands: Vec<(u64, Nanos)>,
    /// How long before its submission the factors are gone; 0: at its submission.
    pub ahead: Nanos,
    /// The factors that are left out, each by itself, then all of them together.
    pub without: Factors,
}

/// What became of a command that was watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterfactual {
    /// The command.
    pub number: u64,
    /// What it took.
    pub latency: Nanos,
    /// What it would have taken without each factor of which there was any work from the moment
    /// at which factors are left out to the end of the command. Without any other it takes
    /// `latency`.
    pub without: Vec<(Factor, Nanos)>,
    /// What it would have taken without all factors that were asked for.
    pub without_all: Nanos,
}

/// Why there is nothing to be said about a command that was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwatched {
    /// It did not come, or did not complete.
    #[error("it has not completed")]
    NotCompleted,
    /// Something besides commands happened to the drive in its time.
    #[error("power was lost or a fault struck in its time, and commands alone do not repeat that")]
    Disturbed,
    /// A policy of somebody else decides for the drive, and cannot be copied with it.
    #[error("a policy of its own decides for the drive, and cannot be copied with it")]
    Policies,
    /// Its copy did something else with the same commands.
    #[error(
        "the drive took {replayed} when the same commands were repeated, and {latency} in the run"
    )]
    NotRepeated {
        /// What it took in the run.
        latency: Nanos,
        /// What it took then.
        replayed: Nanos,
    },
}
