//! Random calls of handles against a model of zones.
//!
//! The model is written from the zone state machine of the ZNS command set specification, and
//! knows neither the drive nor the handles. After each call the drive's report has to be what the
//! model says, and so has what the call returned.

use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};
use zonelab_device::{Lba, ZoneId};
use zonelab_driver::zones::{AnyZone, MoveFailed, Open, Zone, ZoneError};
use zonelab_endpoint::Endpoint;
use zonelab_endpoint::Fault;
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};

use crate::rig::{
    CAPACITY, LBA, MAX_ACTIVE, MAX_OPEN, Namespace, Queue, Rig, ZONE, ZONES, blocks, send,
};

/// What is done with a zone.
#[derive(Copy, Clone, Debug)]
enum Action {
    Open,
    Close,
    Finish,
    Reset,
    Write(u64),
    Append(u64),
    /// Appends of that many blocks, four at a time.
    Appends(u64),
    Refresh,
    /// The handle is dropped, and taken anew.
    Take,
    /// Another host does it.
    Elsewhere(ZoneSendAction),
    /// The next completion says that the command was aborted, whatever the drive did.
    Fault,
}

fn actions() -> impl Strategy<Value = Vec<(u32, Action)>> {
    let blocks = prop_oneof![4 => 1..20_u64, 1 => 100..CAPACITY + 3];
    let action = prop_oneof![
        6 => Just(Action::Open),
        2 => Just(Action::Close),
        1 => Just(Action::Finish),
        2 => Just(Action::Reset),
        8 => blocks.clone().prop_map(Action::Write),
        4 => blocks.prop_map(Action::Append),
        2 => (1..12_u64).prop_map(Action::Appends),
        1 => Just(Action::Refresh),
        1 => Just(Action::Take),
        1 => (1_u8..5).prop_map(|action| Action::Elsewhere(ZoneSendAction(action))),
        1 => Just(Action::Fault),
    ];
    proptest::collection::vec((0..ZONES, action), 1..80)
}

/// A zone of the model.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    state: ZoneState,
    /// The blocks written: each has one byte all over. Finished ones read as zeros.
    data: Vec<u8>,
}

/// The drive of the model.
struct Oracle(Vec<Model>);

impl Oracle {
    fn count(&self, states: &[ZoneState]) -> usize {
        let is_one = |zone: &&Model| states.contains(&zone.state);
        self.0.iter().filter(is_one).count()
    }

    fn open(&self) -> usize {
        self.count(&[ZoneState::EXPLICITLY_OPENED])
    }

    fn active(&self) -> usize {
        self.open() + self.count(&[ZoneState::CLOSED])
    }

    /// A Zone Management Send, as the tables of the specification have it. (All opens are
    /// explicit here, so the drive has none to close by itself.)
    fn send(&mut self, zone: u32, action: ZoneSendAction) -> Result<(), Status> {
        let (open, active) = (self.open(), self.active());
        let zone = &mut self.0[zone as usize];
        let next = match (action, zone.state) {
            (ZoneSendAction::OPEN, ZoneState::EXPLICITLY_OPENED) => ZoneState::EXPLICITLY_OPENED,
            (ZoneSendAction::OPEN, ZoneState::EMPTY) if active == MAX_ACTIVE => {
                return Err(Status::TOO_MANY_ACTIVE_ZONES);
            }
            (ZoneSendAction::OPEN, ZoneState::EMPTY | ZoneState::CLOSED) if open == MAX_OPEN => {
                return Err(Status::TOO_MANY_OPEN_ZONES);
            }
            (ZoneSendAction::OPEN, ZoneState::EMPTY | ZoneState::CLOSED) => {
                ZoneState::EXPLICITLY_OPENED
            }
            (ZoneSendAction::CLOSE, ZoneState::EXPLICITLY_OPENED | ZoneState::CLOSED) => {
                ZoneState::CLOSED
            }
            // A full zone takes no resources, so that none has to be free.
            (ZoneSendAction::FINISH, _) => ZoneState::FULL,
            (ZoneSendAction::RESET, _) => ZoneState::EMPTY,
            _ => return Err(Status::INVALID_ZONE_STATE_TRANSITION),
        };
        zone.state = next;
        match next {
            ZoneState::EMPTY => zone.data.clear(),
            ZoneState::FULL => zone.data.resize(CAPACITY as usize, 0),
            _ => {}
        }
        Ok(())
    }

    /// A write to an open zone. Returns its first block.
    fn write(&mut self, zone: u32, count: u64, byte: u8) -> u64 {
        let start = u64::from(zone) * ZONE;
        let zone = &mut self.0[zone as usize];
        let lba = start + zone.data.len() as u64;
        zone.data.resize(zone.data.len() + count as usize, byte);
        if zone.data.len() == CAPACITY as usize {
            zone.state = ZoneState::FULL;
        }
        lba
    }
}

type Handle<'ns> = AnyZone<'ns, Queue>;
type Moved<'ns> = Result<Handle<'ns>, MoveFailed<'ns, Queue>>;

/// Moves a handle if its state has that move. Else it comes back.
fn try_move<'ns>(handle: Handle<'ns>, action: Action) -> Result<Moved<'ns>, Handle<'ns>> {
    Ok(match (action, handle) {
        (Action::Open, AnyZone::Empty(zone)) => zone.open().map(AnyZone::Open),
        (Action::Open, AnyZone::Closed(zone)) => zone.open().map(AnyZone::Open),
        (Action::Close, AnyZone::Open(zone)) => zone.close().map(AnyZone::Closed),
        (Action::Finish, AnyZone::Empty(zone)) => zone.finish().map(AnyZone::Full),
        (Action::Finish, AnyZone::Open(zone)) => zone.finish().map(AnyZone::Full),
        (Action::Finish, AnyZone::Closed(zone)) => zone.finish().map(AnyZone::Full),
        (Action::Reset, AnyZone::Open(zone)) => zone.reset().map(AnyZone::Empty),
        (Action::Reset, AnyZone::Closed(zone)) => zone.reset().map(AnyZone::Empty),
        (Action::Reset, AnyZone::Full(zone)) => zone.reset().map(AnyZone::Empty),
        (_, handle) => return Err(handle),
    })
}

const fn sent_by(action: Action) -> ZoneSendAction {
    match action {
        Action::Open => ZoneSendAction::OPEN,
        Action::Close => ZoneSendAction::CLOSE,
        Action::Finish => ZoneSendAction::FINISH,
        _ => ZoneSendAction::RESET,
    }
}

/// Whether handle and model say the same.
fn agrees(handle: &Handle<'_>, model: &Model) {
    let written = model.data.len() as u64;
    let start = u64::from(handle.id().0) * ZONE;
    match handle {
        // Written full, it is full: `seal` is how the host says that it has noticed.
        AnyZone::Open(zone) if model.state == ZoneState::FULL => assert_eq!(zone.room_lbas(), 0),
        AnyZone::Open(zone) => {
            assert_eq!(model.state, ZoneState::EXPLICITLY_OPENED);
            assert_eq!(zone.write_pointer(), Lba(start + written));
        }
        other => assert_eq!(other.state(), model.state),
    }
}

/// Reads all that a handle lets be read.
fn reads(handle: &Handle<'_>, model: &Model) {
    let start = Lba(u64::from(handle.id().0) * ZONE);
    let count = model.data.len() as u64;
    let read = match handle {
        _ if count == 0 => return,
        AnyZone::Open(zone) => zone.read(start, blocks(count, 0xee)),
        AnyZone::Closed(zone) => zone.read(start, blocks(count, 0xee)),
        AnyZone::Full(zone) => zone.read(start, blocks(count, 0xee)),
        other => panic!("{other:?} cannot be read, and has {count} blocks"),
    };
    let read = read.unwrap();
    for (block, byte) in read.chunks(LBA).zip(&model.data) {
        assert!(block.iter().all(|of| of == byte), "{} not {byte}", block[0]);
    }
}

/// Writes to an open zone in one of three ways. Returns the error that ended it.
fn put(zone: &mut Zone<'_, Queue, Open>, action: Action, byte: u8) -> Result<(), ZoneError> {
    match action {
        Action::Write(count) => {
            let at = zone.write_pointer();
            assert_eq!(zone.write(blocks(count, byte))?.lba, at);
        }
        Action::Append(count) => drop(zone.append(blocks(count, byte))?),
        Action::Appends(count) => {
            let mut appender = zone.appender()?;
            for _ in 0..4 {
                appender.start(blocks(count, byte))?;
            }
            let mut error = None;
            while let Some(ended) = appender.next() {
                error = error.or(ended.err());
            }
            if let Some(failed) = error {
                return Err(failed.error);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Blocks of commands that an action sends, each.
const fn sizes(action: Action) -> (u64, u64) {
    match action {
        Action::Write(count) | Action::Append(count) => (1, count),
        Action::Appends(count) => (4, count),
        _ => (0, 1),
    }
}

/// Handles, the drive, and the model.
struct Run<'ns> {
    namespace: &'ns Namespace,
    endpoint: Endpoint,
    oracle: Oracle,
    handles: Vec<Option<Handle<'ns>>>,
    /// Another host has changed the zone, and ours has not heard of it.
    is_stale: Vec<bool>,
    /// The next completion has a fault.
    is_faulty: bool,
}

impl<'ns> Run<'ns> {
    fn step(&mut self, zone: u32, action: Action, byte: u8) {
        let index = zone as usize;
        let handle = self.handles[index].take().unwrap();
        let handle = match action {
            Action::Fault => {
                if !core::mem::replace(&mut self.is_faulty, true) {
                    let aborted = Fault::Status(Status::ABORT_REQUESTED);
                    self.endpoint.inject(0, aborted);
                }
                handle
            }
            Action::Take => {
                drop(handle);
                let taken = self.namespace.zone(ZoneId(zone));
                assert_eq!(taken.is_err(), core::mem::take(&mut self.is_faulty));
                let handle = taken.or_else(|_| self.namespace.zone(ZoneId(zone)));
                self.heard(handle.unwrap())
            }
            Action::Refresh => self.refreshed(handle),
            Action::Write(_) | Action::Append(_) | Action::Appends(_) => match handle {
                AnyZone::Open(open) => self.put(open, action, byte),
                other => other,
            },
            _ => self.moved(handle, action),
        };
        self.handles[index] = Some(handle);
    }

    /// The handle knows what the drive reports.
    fn heard(&mut self, handle: Handle<'ns>) -> Handle<'ns> {
        let index = handle.id().0 as usize;
        self.is_stale[index] = false;
        agrees(&handle, &self.oracle.0[index]);
        if !self.is_faulty {
            reads(&handle, &self.oracle.0[index]);
        }
        handle
    }

    fn refreshed(&mut self, handle: Handle<'ns>) -> Handle<'ns> {
        let refreshed = handle.refresh();
        assert_eq!(refreshed.is_err(), core::mem::take(&mut self.is_faulty));
        let handle = refreshed.or_else(|failed| failed.zone.refresh());
        self.heard(handle.unwrap())
    }

    fn moved(&mut self, handle: Handle<'ns>, action: Action) -> Handle<'ns> {
        let zone = handle.id().0;
        let is_written_full = matches!(&handle, AnyZone::Open(open) if open.room_lbas() == 0);
        let moved = match try_move(handle, action) {
            Ok(moved) => moved,
            Err(handle) => return handle,
        };
        if is_written_full && matches!(action, Action::Close) {
            // Nothing is sent.
            let failed = moved.unwrap_err();
            assert!(matches!(failed.error, ZoneError::WrongState { .. }));
            return self.after(failed);
        }
        let expected = self.oracle.send(zone, sent_by(action));
        let expected = match core::mem::take(&mut self.is_faulty) {
            true => Err(Status::ABORT_REQUESTED),
            false => expected,
        };
        match moved {
            Ok(handle) => {
                assert_eq!(expected, Ok(()), "{action:?} of zone {zone}");
                match self.is_stale[zone as usize] {
                    true => self.refreshed(handle),
                    false => self.heard(handle),
                }
            }
            Err(failed) => {
                let ZoneError::Failed { status, .. } = failed.error else {
                    panic!("{failed}");
                };
                assert_eq!(expected, Err(status), "{action:?} of zone {zone}");
                self.after(failed)
            }
        }
    }

    fn after(&mut self, failed: MoveFailed<'ns, Queue>) -> Handle<'ns> {
        let refreshed = failed.zone.refresh();
        assert_eq!(refreshed.is_err(), core::mem::take(&mut self.is_faulty));
        let handle = refreshed.or_else(|failed| failed.zone.refresh());
        self.heard(handle.unwrap())
    }

    fn put(&mut self, mut open: Zone<'ns, Queue, Open>, action: Action, byte: u8) -> Handle<'ns> {
        let zone = open.id().0;
        let index = zone as usize;
        if self.is_stale[index] {
            let model = &self.oracle.0[index];
            let end = u64::from(zone) * ZONE + model.data.len() as u64;
            let is_full = model.state == ZoneState::FULL;
            let is_append = !matches!(action, Action::Write(_));
            if !is_full && (is_append || open.write_pointer().0 == end) {
                // It would go well, or open the zone implicitly, which the model has not.
                return self.refreshed(AnyZone::Open(open));
            }
        }
        let room = open.room_lbas();
        let ended = put(&mut open, action, byte);
        let (commands, count) = sizes(action);
        // Each command is sent if there is room for it.
        let sent = commands.min(room / count);
        if sent == 0 {
            let error = ended.unwrap_err();
            assert!(
                matches!(error, ZoneError::NoRoom { room: of, .. } if of == room),
                "{error}"
            );
            assert!(!open.needs_refresh(), "nothing was sent");
            return AnyZone::Open(open);
        }
        let is_faulty = core::mem::take(&mut self.is_faulty);
        if self.is_stale[index] {
            // The zone is not what the handle takes it for, and the drive says so.
            let error = ended.unwrap_err();
            if sent == commands {
                assert!(matches!(error, ZoneError::Failed { .. }), "{error}");
            }
        } else {
            for _ in 0..sent {
                self.oracle.write(zone, count, byte);
            }
            assert_eq!(ended.is_err(), is_faulty || sent < commands, "{ended:?}");
        }
        if open.needs_refresh() {
            return match open.refresh() {
                Ok(handle) => self.heard(handle),
                Err(failed) => panic!("{failed}"),
            };
        }
        self.heard(AnyZone::Open(open))
    }

    /// The drive reports what the model says.
    fn check(&self) {
        let zones: Vec<_> = self.namespace.report().map(|info| info.unwrap()).collect();
        assert_eq!(zones.len(), self.oracle.0.len());
        for (info, model) in zones.iter().zip(&self.oracle.0) {
            assert_eq!(info.state, model.state, "{:?}", info.zone);
            if let Some(wp) = info.write_pointer {
                assert_eq!(
                    wp.0 - info.start.0,
                    model.data.len() as u64,
                    "{:?}",
                    info.zone
                );
            }
        }
    }
}

fn run(actions: &[(u32, Action)]) {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint.clone();
    let (namespace, mut elsewhere) = rig.split();
    let empty = Model {
        state: ZoneState::EMPTY,
        data: Vec::new(),
    };
    let take = |zone| Some(namespace.zone(ZoneId(zone)).unwrap());
    let mut run = Run {
        namespace,
        endpoint,
        oracle: Oracle(vec![empty; ZONES as usize]),
        handles: (0..ZONES).map(take).collect(),
        is_stale: vec![false; ZONES as usize],
        is_faulty: false,
    };
    for (byte, (zone, action)) in (1_u8..=250).cycle().zip(actions) {
        match action {
            Action::Elsewhere(_) if run.is_faulty => {}
            Action::Elsewhere(action) => {
                let expected = run.oracle.send(*zone, *action);
                let status = elsewhere(send(*zone, *action), None).status;
                assert_eq!(
                    status.is_success(),
                    expected.is_ok(),
                    "{action:?}: {status}"
                );
                run.is_stale[*zone as usize] |= expected.is_ok();
            }
            action => run.step(*zone, *action, byte),
        }
        if !run.is_faulty {
            run.check();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn handles_are_what_the_state_machine_says(actions in actions()) {
        run(&actions);
    }
}
