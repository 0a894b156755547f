//! The rules of reservations against a small model of their own, written from the text of
//! the base specification 2.0, section 8.19.
//!
//! The model knows sets of keys and of holders by host, and looks everything up in the
//! tables of the specification; it shares nothing with the code but the numbers on the wire.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use zonelab_nvme::reservation::{
    AcquireAction, ChangePersistence, NotificationType, RegisterAction, ReleaseAction,
    ReservationType,
};
use zonelab_target::reservations::{
    self, Acquire, HostId, Refused, Register, Release, Reservations, Use,
};

/// Registrants that there is room for: one fewer than hosts.
const ROOM: usize = 3;
const HOSTS: u8 = 4;

/// "Command Behavior in the Presence of a Reservation": a row for each type; reads and
/// writes of a host that is not registered, reads and writes of one that is and does not hold
/// it. `A` is allowed, `C` a conflict.
const TABLE: [&str; 6] = ["AC AC", "CC CC", "AC AA", "CC AA", "AC AA", "CC AA"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Register(u8, bool, u8, u64, u64),
    Acquire(u8, bool, u8, u64, u64),
    Release(u8, bool, u8, u64),
    Persist(bool),
    PowerLoss,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    keys: BTreeMap<u8, u64>,
    /// Type and holders. Without holders there is no reservation.
    rtype: u8,
    holders: BTreeSet<u8>,
    generation: u32,
    ptpl: bool,
}

type Notices = BTreeSet<(u8, u8)>;

/// What the host of a command is told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Success {
        notices: Notices,
        aborts: BTreeSet<u8>,
    },
    Conflict,
    InvalidField,
    NoRoom,
}

const REGISTRATION_PREEMPTED: u8 = 1;
const RESERVATION_RELEASED: u8 = 2;
const RESERVATION_PREEMPTED: u8 = 3;

impl Model {
    fn done(notices: Notices) -> Outcome {
        let aborts = BTreeSet::new();
        Outcome::Success { notices, aborts }
    }

    fn others(&self, host: u8, what: u8) -> Notices {
        let others = self.keys.keys().filter(|other| **other != host);
        others.map(|other| (*other, what)).collect()
    }

    /// "All registrants are reservation holders."
    fn is_all_registrants(&self) -> bool {
        matches!(self.rtype, 5 | 6)
    }

    /// Every rule that follows from who is registered.
    fn settle(&mut self) {
        if self.rtype != 0 && self.is_all_registrants() {
            self.holders = self.keys.keys().copied().collect();
        }
        self.holders.retain(|host| self.keys.contains_key(host));
        if self.holders.is_empty() {
            self.rtype = 0;
        }
    }

    fn register(
        &mut self,
        host: u8,
        (action, iekey, cptpl): (u8, bool, u8),
        crkey: u64,
        nrkey: u64,
    ) -> Outcome {
        if cptpl == 1 {
            return Outcome::InvalidField;
        }
        let current = self.keys.get(&host).copied();
        let is_full = current.is_none() && self.keys.len() == ROOM;
        let mut notices = Notices::new();
        match action {
            0 | 2 if nrkey == 0 => return Outcome::InvalidField,
            // "It is an error for a host that is already registered to register with a
            // different key."
            0 if current.is_some_and(|key| key != nrkey) => return Outcome::Conflict,
            // "A host may replace its key without regard to its registration status by setting
            // IEKEY."
            2 if !iekey && current != Some(crkey) => return Outcome::Conflict,
            0 | 2 if is_full => return Outcome::NoRoom,
            0 | 2 => {
                self.keys.insert(host, nrkey);
            }
            1 if current.is_none() || (!iekey && current != Some(crkey)) => {
                return Outcome::Conflict;
            }
            1 => {
                let before = self.rtype;
                self.keys.remove(&host);
                self.settle();
                // "If the last remaining holder unregisters, the reservation is released", and
                // registrants are told if it was one of registrants only.
                if before != self.rtype && matches!(before, 3 | 4) {
                    notices = self.others(host, RESERVATION_RELEASED);
                }
            }
            _ => return Outcome::InvalidField,
        }
        match cptpl {
            2 => self.ptpl = false,
            3 => self.ptpl = true,
            _ => {}
        }
        self.generation = self.generation.wrapping_add(1);
        self.settle();
        Self::done(notices)
    }

    fn acquire(
        &mut self,
        host: u8,
        (action, iekey, rtype): (u8, bool, u8),
        crkey: u64,
        prkey: u64,
    ) -> Outcome {
        if iekey || action > 2 || !(1..=6).contains(&rtype) {
            return Outcome::InvalidField;
        }
        if self.keys.get(&host) != Some(&crkey) {
            return Outcome::Conflict;
        }
        if action == 0 {
            if self.rtype == 0 {
                self.take(host, rtype);
                return Self::done(Notices::new());
            }
            let is_its = self.holders.contains(&host) && self.rtype == rtype;
            return match is_its {
                true => Self::done(Notices::new()),
                false => Outcome::Conflict,
            };
        }
        self.preempt(host, rtype, prkey)
    }

    fn take(&mut self, host: u8, rtype: u8) {
        self.rtype = rtype;
        self.holders = BTreeSet::from([host]);
        self.settle();
    }

    fn preempt(&mut self, host: u8, rtype: u8, prkey: u64) -> Outcome {
        let with_key = |keys: &BTreeMap<u8, u64>| -> BTreeSet<u8> {
            let with = keys.iter().filter(|(_, key)| **key == prkey);
            with.map(|(host, _)| *host).collect()
        };
        let (before, is_all) = (self.rtype, self.is_all_registrants());
        let is_held = before != 0;
        let others: BTreeSet<u8> = self.keys.keys().copied().filter(|of| *of != host).collect();
        let is_holders = !is_all && self.holders.iter().any(|of| self.keys[of] == prkey);
        let mut gone = with_key(&self.keys);
        let mut takes = false;
        if is_held && is_all && prkey == 0 {
            gone = others;
            takes = true;
        } else if is_held && is_holders {
            // "other than the host that issued the command"
            gone.remove(&host);
            takes = true;
        } else if is_held && !is_all && prkey == 0 {
            return Outcome::InvalidField;
        } else if gone.is_empty() {
            return Outcome::Conflict;
        } else if is_all {
            // "The registration of the host is maintained": it is a holder.
            gone.remove(&host);
        }
        self.keys.retain(|of, _| !gone.contains(of));
        self.settle();
        if takes {
            self.take(host, rtype);
        }
        self.generation = self.generation.wrapping_add(1);
        gone.remove(&host);
        let mut notices: Notices = gone
            .iter()
            .map(|of| (*of, REGISTRATION_PREEMPTED))
            .collect();
        if takes && before != rtype {
            notices.extend(self.others(host, RESERVATION_RELEASED));
        }
        Outcome::Success {
            notices,
            aborts: gone,
        }
    }

    fn release(&mut self, host: u8, (action, iekey, rtype): (u8, bool, u8), crkey: u64) -> Outcome {
        if iekey || action > 1 {
            return Outcome::InvalidField;
        }
        if self.keys.get(&host) != Some(&crkey) {
            return Outcome::Conflict;
        }
        if action == 1 {
            let notices = self.others(host, RESERVATION_PREEMPTED);
            self.keys.clear();
            self.settle();
            self.generation = self.generation.wrapping_add(1);
            return Self::done(notices);
        }
        if !self.holders.contains(&host) {
            return Self::done(Notices::new());
        }
        if rtype != self.rtype {
            return Outcome::InvalidField;
        }
        // "If the type is Write Exclusive or Exclusive Access, no notification occurs."
        let notices = match self.rtype {
            1 | 2 => Notices::new(),
            _ => self.others(host, RESERVATION_RELEASED),
        };
        self.holders.clear();
        self.rtype = 0;
        Self::done(notices)
    }

    fn step(&mut self, step: Step) -> Outcome {
        match step {
            Step::Register(action, iekey, host_cptpl, crkey, nrkey) => {
                let (host, cptpl) = (host_cptpl % HOSTS, host_cptpl / HOSTS % 4);
                self.register(host, (action, iekey, cptpl), crkey, nrkey)
            }
            Step::Acquire(action, iekey, host_rtype, crkey, prkey) => {
                let (host, rtype) = (host_rtype % HOSTS, host_rtype / HOSTS % 8);
                self.acquire(host, (action, iekey, rtype), crkey, prkey)
            }
            Step::Release(action, iekey, host_rtype, crkey) => {
                let (host, rtype) = (host_rtype % HOSTS, host_rtype / HOSTS % 8);
                self.release(host, (action, iekey, rtype), crkey)
            }
            Step::Persist(ptpl) => {
                self.ptpl = ptpl;
                Self::done(Notices::new())
            }
            Step::PowerLoss => {
                if !self.ptpl {
                    *self = Self::default();
                }
                Self::done(Notices::new())
            }
        }
    }

    fn allows(&self, host: u8, is_write: bool) -> bool {
        if self.rtype == 0 || self.holders.contains(&host) {
            return true;
        }
        let row = TABLE[usize::from(self.rtype) - 1];
        let column = usize::from(is_write) + 3 * usize::from(self.keys.contains_key(&host));
        row.as_bytes()[column] == b'A'
    }
}

fn id(host: u8) -> HostId {
    HostId::Extended([host + 1; 16])
}

fn number(host: HostId) -> u8 {
    match host {
        HostId::Extended(id) => id[0] - 1,
        HostId::Short(_) => unreachable!("no such host is in the test"),
    }
}

fn run(of: &mut Reservations, step: Step) -> Outcome {
    let done = match step {
        Step::Register(action, ignores_key, host_cptpl, key, new_key) => of.register(
            id(host_cptpl % HOSTS),
            &Register {
                action: RegisterAction(action),
                ignores_key,
                persistence: ChangePersistence(host_cptpl / HOSTS % 4),
                key,
                new_key,
            },
        ),
        Step::Acquire(action, ignores_key, host_rtype, key, preempted_key) => of.acquire(
            id(host_rtype % HOSTS),
            &Acquire {
                action: AcquireAction(action),
                ignores_key,
                rtype: ReservationType(host_rtype / HOSTS % 8),
                key,
                preempted_key,
            },
        ),
        Step::Release(action, ignores_key, host_rtype, key) => of.release(
            id(host_rtype % HOSTS),
            &Release {
                action: ReleaseAction(action),
                ignores_key,
                rtype: ReservationType(host_rtype / HOSTS % 8),
                key,
            },
        ),
        Step::Persist(ptpl) => of.set_persistent(ptpl).map(|()| Default::default()),
        Step::PowerLoss => {
            of.lose_power();
            Ok(Default::default())
        }
    };
    match done {
        Ok(effects) => Outcome::Success {
            notices: effects
                .notices
                .iter()
                .map(|(host, what): &(HostId, NotificationType)| (number(*host), what.0))
                .collect(),
            aborts: effects.preempted.into_iter().map(number).collect(),
        },
        Err(Refused::Conflict) => Outcome::Conflict,
        Err(Refused::Full) => Outcome::NoRoom,
        Err(_) => Outcome::InvalidField,
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Mostly what makes sense: a state that nothing is refused in is rare otherwise.
    let flag = || proptest::bool::weighted(0.1);
    let key = || prop_oneof![1 => Just(0_u64), 12 => 1..4_u64];
    let register = (
        prop_oneof![6 => 0..3_u8, 1 => 3..8_u8],
        proptest::bool::weighted(0.3),
        0..16_u8,
        key(),
        key(),
    );
    let acquire = (
        prop_oneof![8 => 0..3_u8, 1 => 3..8_u8],
        flag(),
        0..32_u8,
        key(),
        key(),
    );
    let release = (
        prop_oneof![4 => Just(0_u8), 1 => 1..8_u8],
        flag(),
        0..32_u8,
        key(),
    );
    let step = prop_oneof![
        8 => register.prop_map(|(a, i, h, c, n)| Step::Register(a, i, h, c, n)),
        8 => acquire.prop_map(|(a, i, h, c, p)| Step::Acquire(a, i, h, c, p)),
        4 => release.prop_map(|(a, i, h, c)| Step::Release(a, i, h, c)),
        1 => any::<bool>().prop_map(Step::Persist),
        1 => Just(Step::PowerLoss),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// After any commands: the same outcome, the same registrants and holders, and the same
    /// accesses that are let through; and what is kept is what is read.
    #[test]
    fn reservations_are_as_the_text_has_them(steps in steps()) {
        let mut model = Model::default();
        let mut of = Reservations::new(ROOM, true);
        for step in steps {
            let before = of.clone();
            let expected = model.step(step);
            let outcome = run(&mut of, step);
            prop_assert_eq!(&outcome, &expected, "{:?}", step);
            if !matches!(outcome, Outcome::Success { .. }) {
                prop_assert_eq!(&of, &before, "a command that failed changed something");
            }
            let keys: BTreeMap<u8, u64> =
                of.registrants().map(|(of, _)| (number(of.host), of.key)).collect();
            let holders: BTreeSet<u8> = of
                .registrants()
                .filter(|(_, is_holder)| *is_holder)
                .map(|(of, _)| number(of.host))
                .collect();
            prop_assert_eq!(&keys, &model.keys);
            prop_assert_eq!(&holders, &model.holders);
            prop_assert_eq!(of.rtype().0, model.rtype);
            prop_assert_eq!(of.generation(), model.generation);
            prop_assert_eq!(of.is_persistent(), model.ptpl);
            for host in 0..HOSTS {
                for does in [Use::Read, Use::Write] {
                    let is_allowed = model.allows(host, does == Use::Write);
                    prop_assert_eq!(of.permits(Some(id(host)), does), is_allowed, "{} {:?}", host, does);
                }
            }
            let bytes = reservations::write([(7, &of)].into_iter());
            let read = reservations::read(&bytes).expect("it was written just now");
            prop_assert_eq!(read.is_empty(), !model.ptpl);
            for (nsid, read) in read {
                prop_assert_eq!(nsid, 7);
                prop_assert_eq!(read.rtype(), of.rtype());
                prop_assert_eq!(read.generation(), of.generation());
                let all = |of: &Reservations| of.registrants().collect::<Vec<_>>();
                prop_assert_eq!(all(&read), all(&of));
            }
        }
    }

    /// No bytes are a panic, and those that are understood mean the same when they are
    /// written again.
    #[test]
    fn any_record_is_read_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        version in proptest::bool::weighted(0.9),
    ) {
        let mut bytes = bytes;
        if let (true, Some(first)) = (version, bytes.first_mut()) {
            *first = 1;
        }
        if let Ok(all) = reservations::read(&bytes) {
            let written = reservations::write(all.iter().map(|(nsid, of)| (*nsid, of)));
            let again = reservations::read(&written).expect("it was written just now");
            prop_assert_eq!(again.len(), all.len());
        }
    }
}

/// A record of all that there may be fits where records are kept.
#[test]
fn a_full_drive_has_a_record_that_fits() {
    let most = reservations::registrants_max(reservations::NAMESPACES_MAX);
    assert_eq!(
        most * reservations::NAMESPACES_MAX,
        reservations::REGISTRANTS_OF_DRIVE
    );
    let mut of = Reservations::new(most, true);
    let register = |host: u8| Register {
        action: RegisterAction::REGISTER,
        ignores_key: false,
        persistence: ChangePersistence::SET,
        key: 0,
        new_key: u64::MAX - u64::from(host),
    };
    for host in 0..most as u8 {
        of.register(id(host), &register(host))
            .expect("there is room");
    }
    assert_eq!(
        of.register(id(most as u8), &register(0)),
        Err(Refused::Full)
    );
    let all = (1..).zip(std::iter::repeat_n(&of, reservations::NAMESPACES_MAX));
    let bytes = reservations::write(all);
    assert_eq!(bytes.len(), reservations::RECORD_BYTES_MAX);
    assert_eq!(
        reservations::read(&bytes).map(|all| all.len()),
        Ok(reservations::NAMESPACES_MAX)
    );
}

/// Where nothing keeps them, reservations do not claim to outlive a loss of power.
#[test]
fn nothing_outlives_power_where_nothing_is_kept() {
    let mut of = Reservations::new(ROOM, false);
    let register = |persistence| Register {
        action: RegisterAction::REGISTER,
        ignores_key: false,
        persistence,
        key: 0,
        new_key: 1,
    };
    let refused = of.register(id(0), &register(ChangePersistence::SET));
    assert_eq!(refused, Err(Refused::Persistence));
    assert_eq!(of.set_persistent(true), Err(Refused::Persistence));
    assert_eq!(of.registrants().len(), 0);
    of.register(id(0), &register(ChangePersistence::CLEAR))
        .expect("it may");
    of.lose_power();
    assert_eq!(of.registrants().len(), 0);
}
