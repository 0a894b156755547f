//! Commands between their submission and their completion.

use zonelab_device::{Buf, Found, NamespaceId, Op, QueueId, Tag};
use zonelab_nvme::Status;

use crate::conventional::Role;
use crate::flash::Target;

/// A command between its submission and its completion.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) queue: QueueId,
    pub(crate) tag: Tag,
    pub(crate) nsid: NamespaceId,
    /// With its address counted over the drive, if there is such a namespace.
    pub(crate) op: Op,
    /// Whose work it is.
    pub(crate) role: Role,
    /// Placement identifier of a write.
    pub(crate) placement: u16,
    pub(crate) status: Status,
    pub(crate) result: u64,
    pub(crate) found: Found,
    pub(crate) data: Option<Buf>,
    pub(crate) stage: Stage,
    /// Groups of flash operations and background tasks that it waits for.
    pub(crate) pending: u32,
    /// Where a write goes.
    pub(crate) target: Target,
    /// Generation of the zone that a write goes to ([`Zones::generation`]).
    pub(crate) generation: u32,
}

impl Request {
    /// A request of the drive itself, on its way to the flash.
    pub(crate) fn internal(nsid: NamespaceId, op: Op, role: Role) -> Self {
        Self {
            queue: QueueId::default(),
            tag: Tag::default(),
            nsid,
            op,
            role,
            placement: 0,
            status: Status::SUCCESS,
            result: 0,
            found: Found::Work(op.nlb()),
            data: None,
            stage: Stage::Flash,
            pending: 0,
            target: Target::NONE,
            generation: 0,
        }
    }
}

/// What a request waits for when its own event is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The front end lets it through to the flash.
    Admission,
    /// Flash reads of the sources of a copy.
    Sources,
    /// Flash work, its own or that of background tasks.
    Flash,
    /// The link, or nothing more.
    Completion,
}

/// Who waits for a group of flash operations: the token of [`crate::media`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A request, by slot.
    Request(u32),
    /// A background task, by slot.
    Task(u32),
    /// A program of the write buffer, by slot.
    Program(u32),
}

impl Owner {
    #[inline]
    pub(crate) const fn token(self) -> u32 {
        match self {
            Self::Request(i) => i << 1,
            Self::Task(i) => i << 2 | 1,
            Self::Program(i) => i << 2 | 3,
        }
    }

    #[inline]
    pub(super) const fn of(token: u32) -> Self {
        if token & 1 == 0 {
            Self::Request(token >> 1)
        } else if token & 2 == 0 {
            Self::Task(token >> 2)
        } else {
            Self::Program(token >> 2)
        }
    }
}
