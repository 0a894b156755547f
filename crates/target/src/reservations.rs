//! Reservations of one namespace: who is registered, who holds it, and what that
//! lets others do.
//!
//! [`Reservations`] is a state machine without a host, a queue or a clock. The
//! commands are methods; each gives the [`Effects`] that others have to be told of,
//! or [`Refused`] and then nothing has changed.
//!
//! Source: NVMe base specification 2.0, section 8.19, and sections 7.3 to 7.6 for the
//! commands; ZNS command set 1.1 for what its commands count as.
//!
//! # Who may do what
//!
//! [`permits`] is the table. The holder may do everything. For the others it depends on
//! the type of the reservation:
//!
//! | type | registrant reads | registrant writes | other reads | other writes |
//! | --- | --- | --- | --- | --- |
//! | Write Exclusive | yes | no | yes | no |
//! | Exclusive Access | no | no | no | no |
//! | Write Exclusive - Registrants Only, All Registrants | yes | yes | yes | no |
//! | Exclusive Access - Registrants Only, All Registrants | yes | yes | no | no |
//!
//! # Where the specification leaves a choice
//!
//! * A new key of 0 is refused: as a key to preempt, 0 means something else.
//! * A key to preempt that no registrant has is a conflict, whatever is reserved.
//! * A host that preempts by key keeps its own registration if it holds the reservation.
//! * The number of registrants is bounded ([`Reservations::new`]).

mod record;

use zonelab_nvme::reservation::{
    AcquireAction, ChangePersistence, NotificationType, RegisterAction, ReleaseAction,
    ReservationType,
};

pub use record::{Impossible, NAMESPACES_MAX, RECORD_BYTES_MAX, read, write};

/// Most registrants of all namespaces of a drive together.
pub const REGISTRANTS_OF_DRIVE: usize = 512;
/// Most registrants of one namespace.
const REGISTRANTS_OF_NAMESPACE: usize = 64;

/// Registrants that each of so many namespaces may have, so that none takes the
/// room of another.
#[must_use]
pub fn registrants_max(namespaces: usize) -> usize {
    (REGISTRANTS_OF_DRIVE / namespaces.max(1)).clamp(1, REGISTRANTS_OF_NAMESPACE)
}

/// A host, as its Host Identifier names it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostId {
    /// 64 bits.
    Short(u64),
    /// 128 bits: the only form on fabrics.
    Extended([u8; 16]),
}

/// A host that has a key.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Registrant {
    /// The host.
    pub host: HostId,
    /// Its key, never 0.
    pub key: u64,
}

/// A reservation that is held.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Held {
    rtype: ReservationType,
    /// The one host that holds it. Without meaning if all registrants do.
    by: HostId,
}

impl Held {
    const fn is_of_all(self) -> bool {
        matches!(
            self.rtype,
            ReservationType::WRITE_EXCLUSIVE_ALL_REGISTRANTS
                | ReservationType::EXCLUSIVE_ACCESS_ALL_REGISTRANTS
        )
    }

    /// Whether those that remain are told when it is released: they could not do more
    /// than before otherwise.
    const fn concerns_registrants(self) -> bool {
        !matches!(
            self.rtype,
            ReservationType::WRITE_EXCLUSIVE | ReservationType::EXCLUSIVE_ACCESS
        )
    }
}

/// What a host is to a reservation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It holds it.
    Holder,
    /// It is registered, and does not hold it.
    Registrant,
    /// It is not registered.
    Other,
}

/// What a command does as far as reservations are concerned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// Read, Compare, Verify, Zone Management Receive and the like.
    Read,
    /// Write, Zone Append, Zone Management Send, Copy, Dataset Management, Flush, Format NVM
    /// and the like.
    Write,
}

/// Whether a host of that role may do that under a reservation of that type.
#[must_use]
pub const fn permits(rtype: ReservationType, role: Role, does: Use) -> bool {
    use Role::{Holder, Other, Registrant};
    match rtype {
        ReservationType::WRITE_EXCLUSIVE => match (role, does) {
            (Holder, _) | (_, Use::Read) => true,
            (Registrant | Other, Use::Write) => false,
        },
        ReservationType::EXCLUSIVE_ACCESS => matches!(role, Holder),
        ReservationType::WRITE_EXCLUSIVE_REGISTRANTS_ONLY
        | ReservationType::WRITE_EXCLUSIVE_ALL_REGISTRANTS => match (role, does) {
            (Holder | Registrant, _) | (_, Use::Read) => true,
            (Other, Use::Write) => false,
        },
        ReservationType::EXCLUSIVE_ACCESS_REGISTRANTS_ONLY
        | ReservationType::EXCLUSIVE_ACCESS_ALL_REGISTRANTS => !matches!(role, Other),
        _ => true,
    }
}

/// Why a command is not carried out.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A key is not right, or another host holds the reservation.
    #[error("the key is not right, or another host holds the reservation")]
    Conflict,
    /// The action is none.
    #[error("the action is none of the command")]
    Action,
    /// The type is none, or not that of the reservation to be released.
    #[error("the type is none, or not that of the reservation")]
    Type,
    /// The existing key is to be ignored where it must not be.
    #[error("the existing key must not be ignored")]
    IgnoredKey,
    /// Reservations cannot outlive a loss of power, or the change is none.
    #[error("reservations cannot outlive a loss of power, or the change is none")]
    Persistence,
    /// A new key is 0, or a key to preempt is 0 where that means nothing.
    #[error("a key of 0 means nothing here")]
    Key,
    /// There are as many registrants as there may be.
    #[error("there are as many registrants as there may be")]
    Full,
}

/// Reservation Register.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// What to do.
    pub action: RegisterAction,
    /// The current key need not be right (IEKEY).
    pub ignores_key: bool,
    /// Change of what outlives a loss of power.
    pub persistence: ChangePersistence,
    /// Current key of the host.
    pub key: u64,
    /// Its new key.
    pub new_key: u64,
}

/// Reservation Acquire.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Acquire {
    /// What to do.
    pub action: AcquireAction,
    /// IEKEY, which is refused.
    pub ignores_key: bool,
    /// Type of the reservation.
    pub rtype: ReservationType,
    /// Current key of the host.
    pub key: u64,
    /// Key of those to preempt.
    pub preempted_key: u64,
}

/// Reservation Release.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// What to do.
    pub action: ReleaseAction,
    /// IEKEY, which is refused.
    pub ignores_key: bool,
    /// Type of the reservation.
    pub rtype: ReservationType,
    /// Current key of the host.
    pub key: u64,
}

/// What follows from a command for other hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Hosts to be notified, and of what. The host of the command is not among them.
    pub notices: Vec<(HostId, NotificationType)>,
    /// Other hosts whose reservation or registration was preempted.
    pub preempted: Vec<HostId>,
}

/// Registrants and reservation of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservations {
    /// In the order in which they registered. The holder is one of them.
    registrants: Vec<Registrant>,
    held: Option<Held>,
    generation: u32,
    is_persistent: bool,
    can_persist: bool,
    registrants_max: usize,
}

impl Reservations {
    /// Nobody is registered. `can_persist`: there is something that keeps reservations.
    #[must_use]
    pub const fn new(registrants_max: usize, can_persist: bool) -> Self {
        Self {
            registrants: Vec::new(),
            held: None,
            generation: 0,
            is_persistent: false,
            can_persist,
            registrants_max,
        }
    }

    /// The same with room for so many registrants from now on.
    #[must_use]
    pub const fn with_room(mut self, registrants_max: usize) -> Self {
        self.registrants_max = registrants_max;
        self
    }

    /// Reservation Register.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed.
    pub fn register(&mut self, host: HostId, command: &Register) -> Result<Effects, Refused> {
        let persistence = self.change(command.persistence)?;
        let own = self.place(host);
        let is_right = command.ignores_key || self.has_key(host, command.key);
        let mut effects = Effects::default();
        match (command.action, own) {
            (RegisterAction::REGISTER | RegisterAction::REPLACE, _) if command.new_key == 0 => {
                return Err(Refused::Key);
            }
            (RegisterAction::REGISTER, None) => self.add(host, command.new_key)?,
            // To register the same key again is no error.
            (RegisterAction::REGISTER, Some(at)) if self.registrants[at].key == command.new_key => {
            }
            (RegisterAction::REPLACE, Some(at)) if is_right => {
                self.registrants[at].key = command.new_key;
            }
            (RegisterAction::REPLACE, None) if command.ignores_key => {
                self.add(host, command.new_key)?;
            }
            (RegisterAction::UNREGISTER, Some(_)) if is_right => effects = self.remove(host),
            (
                RegisterAction::REGISTER | RegisterAction::REPLACE | RegisterAction::UNREGISTER,
                _,
            ) => return Err(Refused::Conflict),
            _ => return Err(Refused::Action),
        }
        self.is_persistent = persistence;
        self.count();
        Ok(effects)
    }

    /// Reservation Acquire.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed.
    pub fn acquire(&mut self, host: HostId, command: &Acquire) -> Result<Effects, Refused> {
        if command.ignores_key {
            return Err(Refused::IgnoredKey);
        }
        let is_type = command.rtype != ReservationType::NONE && command.rtype.name().is_some();
        let is_action = command.action.name().is_some();
        match (is_action, is_type) {
            (false, _) => return Err(Refused::Action),
            (_, false) => return Err(Refused::Type),
            _ if !self.has_key(host, command.key) => return Err(Refused::Conflict),
            _ => {}
        }
        if command.action != AcquireAction::ACQUIRE {
            return self.preempt(host, command.rtype, command.preempted_key);
        }
        match self.held {
            None => self.hold(host, command.rtype),
            // To take again what it has is no error.
            Some(held) if self.is_holder(host) && held.rtype == command.rtype => {}
            Some(_) => return Err(Refused::Conflict),
        }
        Ok(Effects::default())
    }

    /// Reservation Release.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed.
    pub fn release(&mut self, host: HostId, command: &Release) -> Result<Effects, Refused> {
        if command.ignores_key {
            return Err(Refused::IgnoredKey);
        }
        if command.action.name().is_none() {
            return Err(Refused::Action);
        }
        if !self.has_key(host, command.key) {
            return Err(Refused::Conflict);
        }
        if command.action == ReleaseAction::CLEAR {
            return Ok(self.clear(host));
        }
        let mut effects = Effects::default();
        // Who holds nothing has nothing to release, and that is no error.
        if let Some(held) = self.held.filter(|_| self.is_holder(host)) {
            if held.rtype != command.rtype {
                return Err(Refused::Type);
            }
            self.held = None;
            if held.concerns_registrants() {
                self.tell_others(host, NotificationType::RESERVATION_RELEASED, &mut effects);
            }
        }
        Ok(effects)
    }

    /// Sets whether it outlives a loss of power, as the feature Reservation Persistence does.
    ///
    /// # Errors
    /// It cannot.
    pub const fn set_persistent(&mut self, is_persistent: bool) -> Result<(), Refused> {
        if is_persistent && !self.can_persist {
            return Err(Refused::Persistence);
        }
        self.is_persistent = is_persistent;
        Ok(())
    }

    /// Power was lost: what does not outlive that is gone.
    pub fn lose_power(&mut self) {
        if !self.is_persistent {
            *self = Self::new(self.registrants_max, self.can_persist);
        }
    }

    /// Whether a host may do that. `None`: a host that has no identifier, and so is no
    /// registrant.
    #[must_use]
    pub fn permits(&self, host: Option<HostId>, does: Use) -> bool {
        let Some(held) = self.held else {
            return true;
        };
        let role = match host {
            Some(host) if self.is_holder(host) => Role::Holder,
            Some(host) if self.place(host).is_some() => Role::Registrant,
            _ => Role::Other,
        };
        permits(held.rtype, role, does)
    }

    /// Whether every host may do everything.
    #[inline]
    #[must_use]
    pub const fn is_free(&self) -> bool {
        self.held.is_none()
    }

    /// Type of the reservation; none if there is none.
    #[must_use]
    pub fn rtype(&self) -> ReservationType {
        self.held.map_or(ReservationType::NONE, |held| held.rtype)
    }

    /// Registrants, and whether they hold the reservation.
    pub fn registrants(&self) -> impl ExactSizeIterator<Item = (Registrant, bool)> {
        let with = |of: &Registrant| (*of, self.is_holder(of.host));
        self.registrants.iter().map(with)
    }

    /// How often registrations changed; wraps.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether it outlives a loss of power.
    #[must_use]
    pub const fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    /// Whether it could.
    #[must_use]
    pub const fn can_persist(&self) -> bool {
        self.can_persist
    }

    /// Preempt: by key, of those who hold the reservation or are registered.
    fn preempt(
        &mut self,
        host: HostId,
        rtype: ReservationType,
        key: u64,
    ) -> Result<Effects, Refused> {
        let Some(held) = self.held else {
            // The host may take its own registration, too.
            return self.unregister_key(host, key, true);
        };
        let is_all = held.is_of_all();
        let holders_key = self.key_of(held.by).filter(|_| !is_all);
        if !is_all && key == 0 {
            return Err(Refused::Key);
        }
        let takes_over = (is_all && key == 0) || holders_key == Some(key);
        if !takes_over {
            return self.unregister_key(host, key, !is_all);
        }
        let goes = |of: &Registrant| of.host != host && (is_all || of.key == key);
        let mut effects = self.unregister(goes);
        self.hold(host, rtype);
        if held.rtype != rtype {
            self.tell_others(host, NotificationType::RESERVATION_RELEASED, &mut effects);
        }
        self.count();
        Ok(effects)
    }

    /// Takes the registrations with that key, the host's own one only if `with_own`.
    fn unregister_key(
        &mut self,
        host: HostId,
        key: u64,
        with_own: bool,
    ) -> Result<Effects, Refused> {
        if self.registrants.iter().all(|of| of.key != key) {
            return Err(Refused::Conflict);
        }
        let goes = |of: &Registrant| of.key == key && (with_own || of.host != host);
        let mut effects = self.unregister(goes);
        effects.notices.retain(|(of, _)| *of != host);
        effects.preempted.retain(|of| *of != host);
        self.count();
        Ok(effects)
    }

    /// Takes registrations without a look at the reservation.
    fn unregister(&mut self, goes: impl Fn(&Registrant) -> bool) -> Effects {
        let mut effects = Effects::default();
        self.registrants.retain(|of| {
            let goes = goes(of);
            if goes {
                let what = NotificationType::REGISTRATION_PREEMPTED;
                effects.notices.push((of.host, what));
                effects.preempted.push(of.host);
            }
            !goes
        });
        effects
    }

    fn clear(&mut self, host: HostId) -> Effects {
        let mut effects = Effects::default();
        self.tell_others(host, NotificationType::RESERVATION_PREEMPTED, &mut effects);
        self.registrants.clear();
        self.held = None;
        self.count();
        effects
    }

    /// A host takes its registration back, and with it the reservation if it is the last to
    /// hold it.
    fn remove(&mut self, host: HostId) -> Effects {
        let was_holder = self.is_holder(host);
        self.registrants.retain(|of| of.host != host);
        let mut effects = Effects::default();
        let Some(held) = self.held.filter(|_| was_holder) else {
            return effects;
        };
        if held.is_of_all() && !self.registrants.is_empty() {
            return effects;
        }
        self.held = None;
        if held.concerns_registrants() {
            self.tell_others(host, NotificationType::RESERVATION_RELEASED, &mut effects);
        }
        effects
    }

    fn tell_others(&self, host: HostId, what: NotificationType, effects: &mut Effects) {
        let others = self.registrants.iter().filter(|of| of.host != host);
        effects.notices.extend(others.map(|of| (of.host, what)));
    }

    fn add(&mut self, host: HostId, key: u64) -> Result<(), Refused> {
        if self.registrants.len() >= self.registrants_max {
            return Err(Refused::Full);
        }
        self.registrants.push(Registrant { host, key });
        Ok(())
    }

    const fn hold(&mut self, host: HostId, rtype: ReservationType) {
        self.held = Some(Held { rtype, by: host });
    }

    const fn count(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// What outlives a loss of power after a change of that.
    const fn change(&self, change: ChangePersistence) -> Result<bool, Refused> {
        match change {
            ChangePersistence::NO_CHANGE => Ok(self.is_persistent),
            ChangePersistence::CLEAR => Ok(false),
            ChangePersistence::SET if self.can_persist => Ok(true),
            _ => Err(Refused::Persistence),
        }
    }

    fn is_holder(&self, host: HostId) -> bool {
        match self.held {
            Some(held) if held.is_of_all() => self.place(host).is_some(),
            Some(held) => held.by == host,
            None => false,
        }
    }

    fn has_key(&self, host: HostId, key: u64) -> bool {
        self.key_of(host) == Some(key)
    }

    fn key_of(&self, host: HostId) -> Option<u64> {
        Some(self.registrants[self.place(host)?].key)
    }

    fn place(&self, host: HostId) -> Option<usize> {
        self.registrants.iter().position(|of| of.host == host)
    }
}
