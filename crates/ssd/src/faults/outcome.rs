//! What faults and losses of power leave for whoever asks, and why zones cannot fail.

use std::fmt;

use zonelab_device::{Buf, NamespaceId, Nanos, QueueId, Tag};
use zonelab_nvme::zns::ZoneState;

use crate::zones::Change;

/// What a loss of power did, as the host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerCycle {
    /// When power was lost.
    pub at: Nanos,
    /// Commands that end as Command Aborted By Host.
    pub aborted: usize,
    /// Zones whose state changed.
    pub changes: Vec<Change>,
    /// From when on the drive takes commands again.
    pub ready_at: Nanos,
}

/// Why zones cannot become read-only or offline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotFail {
    /// There is no such namespace.
    #[error("there is no namespace {nsid}: the drive has {namespaces}")]
    NoSuchNamespace {
        /// The identifier.
        nsid: u32,
        /// Namespaces of the drive, from 1 on.
        namespaces: u32,
    },
    /// The namespace does not have the zone.
    #[error("there is no zone {zone} in namespace {nsid}: its last is {last}")]
    NoSuchZone {
        /// The first that is not there, counted from the start of the namespace.
        zone: u32,
        /// The namespace.
        nsid: u32,
        /// Its last zone.
        last: u32,
    },
    /// The namespace has no zones for hosts.
    #[error("namespace {nsid} is conventional: it has no zones")]
    Conventional {
        /// The namespace.
        nsid: u32,
    },
    /// There is no way from the state of the zone to the one asked for.
    #[error(
        "zone {zone} cannot go from {from} to {to}: a zone fails to read-only, or to offline for ever"
    )]
    State {
        /// The zone, counted from the start of the namespace.
        zone: u32,
        /// Its state.
        from: ZoneState,
        /// The state asked for.
        to: ZoneState,
    },
}

/// Completions that faults have lost for good: whoever waits for one waits for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostCompletions {
    /// How many.
    pub count: usize,
    /// The first of them.
    pub first: LostCompletion,
}

/// A completion that a fault has lost for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostCompletion {
    /// What its command was, as faults name it.
    pub command: &'static str,
    /// The namespace that it was for.
    pub namespace: NamespaceId,
    /// The first zone that it touched, counted from the start of the namespace; `None`:
    /// it touched none, or the namespace has none.
    pub zone: Option<u32>,
    /// When it was submitted.
    pub submitted: Nanos,
}

impl fmt::Display for LostCompletions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, first } = self;
        match count {
            1 => write!(f, "a fault lost the completion of {first}"),
            _ => write!(f, "faults lost {count} completions, the first of {first}"),
        }
    }
}

impl fmt::Display for LostCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let article = if self.command == "append" { "an" } else { "a" };
        write!(f, "{article} {}", self.command)?;
        if let Some(zone) = self.zone {
            write!(f, " in zone {zone}")?;
        }
        let Self {
            namespace: NamespaceId(nsid),
            submitted,
            ..
        } = self;
        write!(f, " of namespace {nsid}, submitted at {submitted}")
    }
}

/// A command that was carried out, and whose completion was lost for good.
#[derive(Debug)]
pub struct Swallowed {
    /// Its queue.
    pub queue: QueueId,
    /// What the submitter called it.
    pub tag: Tag,
    /// Its buffer.
    pub data: Option<Buf>,
}
