//! The states of a zone as types.

use core::fmt;

use zonelab_device::{QueuePair, ZoneId};
use zonelab_nvme::zns::ZoneState;

use super::error::{MoveFailed, ZoneError};
use super::zone::{Core, Zone};

mod sealed {
    pub trait Sealed {}
}

/// A state of a [`Zone`]: one of the types of this module.
pub trait State: sealed::Sealed {}

/// States in which a zone can have data that can be read.
pub trait Readable: State {}

/// States from which a zone is reset.
pub trait Resettable: State {}

/// States from which a zone is finished.
pub trait Finishable: State {}

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident: $($trait:ident),*;)*) => {$(
        $(#[$doc])*
        #[derive(Copy, Clone, Debug)]
        pub enum $name {}
        impl sealed::Sealed for $name {}
        impl State for $name {}
        $(impl $trait for $name {})*
    )*};
}

states! {
    /// Nothing is written. It takes no resources of the drive.
    Empty: Finishable;
    /// It can be written, and takes an open resource. Whether it was opened explicitly or by a
    /// write makes no difference to what can be done.
    Open: Readable, Resettable, Finishable;
    /// It has data and room for more, and takes an active resource. It is opened before it is
    /// written.
    Closed: Readable, Resettable, Finishable;
    /// It can be written, and has a random write area: writes go anywhere in the area, and
    /// commits move the write pointer. It takes an open resource and one for areas.
    OpenRandom: Readable, Resettable, Finishable;
    /// It has a random write area, and takes an active resource and one for areas. It is opened
    /// before it is written.
    ClosedRandom: Readable, Resettable, Finishable;
    /// Nothing more can be written.
    Full: Readable, Resettable;
    /// The drive lets nobody write to it any more, nor reset it.
    ReadOnly: Readable;
    /// The drive has lost it.
    Offline: ;
    /// A command failed, and only [`Zone::refresh`] tells what the zone is like.
    Unknown: ;
}

/// A zone in a state that the program does not know yet.
pub enum AnyZone<'ns, Q: QueuePair> {
    /// Nothing is written.
    Empty(Zone<'ns, Q, Empty>),
    /// It can be written.
    Open(Zone<'ns, Q, Open>),
    /// It has data and room for more.
    Closed(Zone<'ns, Q, Closed>),
    /// It can be written in its random write area.
    OpenRandom(Zone<'ns, Q, OpenRandom>),
    /// It has a random write area, and room for more.
    ClosedRandom(Zone<'ns, Q, ClosedRandom>),
    /// Nothing more can be written.
    Full(Zone<'ns, Q, Full>),
    /// It can only be read.
    ReadOnly(Zone<'ns, Q, ReadOnly>),
    /// It can only be looked at.
    Offline(Zone<'ns, Q, Offline>),
}

impl<'ns, Q: QueuePair> AnyZone<'ns, Q> {
    /// Which zone.
    #[must_use]
    pub fn id(&self) -> ZoneId {
        match self {
            Self::Empty(zone) => zone.id(),
            Self::Open(zone) => zone.id(),
            Self::Closed(zone) => zone.id(),
            Self::OpenRandom(zone) => zone.id(),
            Self::ClosedRandom(zone) => zone.id(),
            Self::Full(zone) => zone.id(),
            Self::ReadOnly(zone) => zone.id(),
            Self::Offline(zone) => zone.id(),
        }
    }

    /// Its state, for messages. An open zone counts as opened explicitly.
    #[must_use]
    pub const fn state(&self) -> ZoneState {
        match self {
            Self::Empty(_) => ZoneState::EMPTY,
            Self::Open(_) | Self::OpenRandom(_) => ZoneState::EXPLICITLY_OPENED,
            Self::Closed(_) | Self::ClosedRandom(_) => ZoneState::CLOSED,
            Self::Full(_) => ZoneState::FULL,
            Self::ReadOnly(_) => ZoneState::READ_ONLY,
            Self::Offline(_) => ZoneState::OFFLINE,
        }
    }

    /// Makes it writable: opens it unless it is open.
    ///
    /// # Errors
    /// [`ZoneError::WrongState`]: it is full, read only or offline. [`ZoneError::HasArea`]: see
    /// [`Self::open_random`]. Else as [`Zone::refresh`].
    pub fn open(self) -> Result<Zone<'ns, Q, Open>, MoveFailed<'ns, Q>> {
        match self {
            Self::Empty(zone) => zone.open(),
            Self::Closed(zone) => zone.open(),
            Self::Open(zone) => Ok(zone),
            other @ (Self::OpenRandom(_) | Self::ClosedRandom(_)) => {
                let zone = other.id();
                Err(other.into_core().failed(ZoneError::HasArea { zone }))
            }
            other => Err(other.wrong_state()),
        }
    }

    /// Makes it writable with a random write area. One that has none has to be empty.
    ///
    /// # Errors
    /// [`ZoneError::WrongState`]: it is neither empty nor has an area.
    /// [`ZoneError::NoArea`]: zones of this namespace have none. Else as [`Zone::refresh`].
    pub fn open_random(self) -> Result<Zone<'ns, Q, OpenRandom>, MoveFailed<'ns, Q>> {
        match self {
            Self::Empty(zone) => zone.open_random(),
            Self::ClosedRandom(zone) => zone.open(),
            Self::OpenRandom(zone) => Ok(zone),
            other => Err(other.wrong_state()),
        }
    }

    /// Empties it, with all that it holds, unless it is empty.
    ///
    /// # Errors
    /// [`ZoneError::WrongState`]: it is read only or offline. Else as [`Zone::refresh`].
    pub fn reset(self) -> Result<Zone<'ns, Q, Empty>, MoveFailed<'ns, Q>> {
        match self {
            Self::Empty(zone) => Ok(zone),
            Self::Open(zone) => zone.reset(),
            Self::Closed(zone) => zone.reset(),
            Self::OpenRandom(zone) => zone.reset(),
            Self::ClosedRandom(zone) => zone.reset(),
            Self::Full(zone) => zone.reset(),
            other => Err(other.wrong_state()),
        }
    }

    /// Asks the drive again, as [`Zone::refresh`].
    ///
    /// # Errors
    /// As of [`Zone::refresh`].
    pub fn refresh(self) -> Result<Self, MoveFailed<'ns, Q>> {
        self.into_core().refresh()
    }

    fn wrong_state(self) -> MoveFailed<'ns, Q> {
        let (zone, state) = (self.id(), self.state());
        let error = ZoneError::WrongState { zone, state };
        self.into_core().failed(error)
    }

    fn into_core(self) -> Core<'ns, Q> {
        match self {
            Self::Empty(zone) => zone.core,
            Self::Open(zone) => zone.core,
            Self::Closed(zone) => zone.core,
            Self::OpenRandom(zone) => zone.core,
            Self::ClosedRandom(zone) => zone.core,
            Self::Full(zone) => zone.core,
            Self::ReadOnly(zone) => zone.core,
            Self::Offline(zone) => zone.core,
        }
    }
}

impl<Q: QueuePair> fmt::Debug for AnyZone<'_, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, zone): (_, &dyn fmt::Debug) = match self {
            Self::Empty(zone) => ("Empty", zone),
            Self::Open(zone) => ("Open", zone),
            Self::Closed(zone) => ("Closed", zone),
            Self::OpenRandom(zone) => ("OpenRandom", zone),
            Self::ClosedRandom(zone) => ("ClosedRandom", zone),
            Self::Full(zone) => ("Full", zone),
            Self::ReadOnly(zone) => ("ReadOnly", zone),
            Self::Offline(zone) => ("Offline", zone),
        };
        f.debug_tuple(name).field(zone).finish()
    }
}
