//! Flash timing: channels, and units that do array operations.
//!
//! A *unit* is whatever does one array operation at a time: a plane if planes
//! are independent, else a die. Each unit sits on one *channel*, which carries
//! one page transfer at a time. The drive turns a command into a *group* of
//! [`FlashOp`]s, and the group ends with the slowest of them.
//!
//! A program moves a page over the channel and then holds the unit for the
//! array time; a read holds the unit and then moves the page; an erase needs
//! the unit alone. An operation whose transfer takes no time does not use the
//! channel at all and never waits for it.
//!
//! # What the keys of [`MediaConfig`] mean here
//!
//! * `page_register`
//!   * [`PageRegister::Overlap`]: a transfer needs only the channel. Pages wait
//!     in registers before the program and after the read, as many as it takes.
//!   * [`PageRegister::Hold`]: the unit has one register. A program takes unit
//!     and channel together and keeps the unit to the end; a read keeps the
//!     unit until its page has left, also while it waits for the channel.
//!   * [`PageRegister::Cache`]: a second register. The page of the next program
//!     arrives while the unit works, no further one before that program has
//!     started; a read keeps the unit as with `Hold`.
//! * `policy`: who is next on a unit. Programs and erases of a unit always end
//!   in the order of submission; only reads overtake.
//!   * [`DiePolicy::Fifo`]: strictly in order of submission. The unit waits for
//!     the page of the oldest program even if a younger operation could start.
//!   * [`DiePolicy::ReadFirst`]: no program or erase starts while a read waits.
//!   * [`DiePolicy::Weighted`]: while a program or erase could start, at most
//!     `reads` reads start before it.
//! * `arbitration`: who is next on a channel.
//!   * [`ChannelArbitration::Arrival`]: every transfer draws a ticket at
//!     submission, and the channel waits for the holder of the next ticket.
//!   * [`ChannelArbitration::Ready`]: first ready, first served; among equals
//!     the one whose event comes first. With `Hold`, a program is ready when
//!     its unit is free and would take it, and loses its place in the line if
//!     the unit takes a read meanwhile.
//! * `suspend`: a read that arrives while a suspendable array operation has the
//!   unit stops it, unless that operation ends before it could stop. Stopping
//!   takes `overhead_ns`; then waiting reads are served until there are none
//!   (`Weighted`: until its bound); resuming takes `overhead_ns` again, and the
//!   rest of the array time follows. A stop that is asked for during a resume
//!   begins when the resume is done. The operation that is stopped pays:
//!   overheads are booked to its cause. With an `interval`, an operation stops
//!   at the next multiple of it in its array time, and once resumed at the one
//!   after that, if reads wait by then or were left waiting.
//! * `details.transfer_unit_bytes`: a transfer gives way to others of its
//!   channel after so many bytes, and joins the end of the line.
//!
//! # How the peers do it
//!
//! None of the emulators has events in its flash model; each keeps a time at
//! which a resource is next free, so that service is in order of arrival.
//!
//! | | Keys that come closest | What differs |
//! |---|---|---|
//! | FEMU, ZNS mode | `overlap`, `fifo`, `arrival`, transfer 0 | Planes alone have timelines. Each 4 KiB of a read pays a whole array read, one after the other |
//! | NVMeVirt, ZN540 | `hold`, `fifo`, `ready` | A channel is a budget of bytes per 4 us slot, so transfers share slots and late ones fill holes; a read leaves its die only when its page has crossed the channel |
//! | ConfZNS | `overlap`, `fifo`, `arrival` | A page takes the same channel time both ways. Erasures run on timelines of their own that reads and programs never look at |
//! | ConfZNS++ (SYSTOR'24) | `overlap`, `fifo`, `arrival` | As ConfZNS, but erasures compete on the planes; this is the model behind its figures |
//!
//! # Two engines
//!
//! Where the order of service is fixed on arrival (`fifo`, `arrival`, no
//! suspend), the end of a group is computed when it is submitted, from one time
//! per resource (`closed_form`). Everything else needs decisions that depend on
//! the future and runs on events (`event_driven`). Where both apply they agree
//! to the nanosecond, which a property test checks.
//!
//! Not modelled: copy-back and other on-die moves, cache programming, limited
//! numbers of registers, command and status cycles on the channel. The caller
//! decides the time of each operation, and so how much it varies.

mod closed_form;
mod event_driven;
mod idle;
mod tracking;

use zonelab_device::Nanos;

use crate::account::{Cause, Ledger};
use crate::config::{ChannelArbitration, DiePolicy, MediaConfig, PageRegister, Suspend};
use crate::counterfactual::Factors;
use crate::event::{Event, EventQueue};

use closed_form::ClosedForm;
pub(crate) use closed_form::Group;
use event_driven::EventDriven;
pub(crate) use tracking::Tracking;

/// What a flash operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashKind {
    /// Array to register, then register to controller.
    Read,
    /// Controller to register, then register to array.
    Program,
    /// Array only.
    Erase,
}

/// One operation of one unit. The caller computes the times, so that parts of
/// pages and several planes at once are its business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOp {
    /// The unit, below the number of units.
    pub unit: u32,
    /// What it does.
    pub kind: FlashKind,
    /// Time of the array operation in nanoseconds.
    pub array_ns: u32,
    /// Time on the channel in nanoseconds; 0: the channel is not used. Must be
    /// 0 for an erase.
    pub transfer_ns: u32,
}

impl FlashOp {
    const fn array(&self) -> Nanos {
        Nanos(self.array_ns as u64)
    }

    const fn transfer(&self) -> Nanos {
        Nanos(self.transfer_ns as u64)
    }
}

/// The channels and units of a drive, and what they are doing.
///
/// `now` never decreases from call to call, and events that were due before
/// `now` have been handed to [`Media::handle`].
#[derive(Clone, Debug)]
pub struct Media {
    engine: Engine,
    /// Whose groups are, on a drive that is watched.
    tracking: Option<Box<Tracking>>,
}

#[derive(Clone, Debug)]
enum Engine {
    ClosedForm(ClosedForm),
    EventDriven(EventDriven),
}

/// Calls the same method of whichever engine there is.
macro_rules! on_engine {
    ($media:expr, $engine:ident => $call:expr) => {
        match $media {
            Engine::ClosedForm($engine) => $call,
            Engine::EventDriven($engine) => $call,
        }
    };
}

/// Operations that are not over, of all units together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnderWay {
    /// What is left of them.
    pub left: Nanos,
    /// The part of it that the ledger has booked already.
    pub booked: Nanos,
    /// What they have taken that it has not booked yet.
    pub unbooked: Nanos,
}

impl Media {
    /// Idle flash: unit `u` sits on channel `channel_of_unit[u]`.
    ///
    /// # Panics
    ///
    /// If a unit sits on no channel below `channels`, or if `config` combines
    /// [`ChannelArbitration::Arrival`] with a policy other than
    /// [`DiePolicy::Fifo`] or with suspend: such tickets could wait for each
    /// other for ever. [`crate::profile::check`] refuses both.
    #[must_use]
    pub fn new(channel_of_unit: &[u16], channels: u32, config: &MediaConfig) -> Self {
        if config.policy == DiePolicy::Fifo
            && config.arbitration == ChannelArbitration::Arrival
            && config.page_register != PageRegister::Cache
            && !suspends(config.suspend)
        {
            assert_channels(channel_of_unit, channels);
            let hold = config.page_register == PageRegister::Hold;
            let engine = ClosedForm::new(channel_of_unit, channels, hold);
            Self {
                engine: Engine::ClosedForm(engine),
                tracking: None,
            }
        } else {
            Self::event_driven(channel_of_unit, channels, config)
        }
    }

    /// As [`Media::new`], but on events even where the closed form applies:
    /// for the test that compares the two.
    #[doc(hidden)]
    #[must_use]
    pub fn event_driven(channel_of_unit: &[u16], channels: u32, config: &MediaConfig) -> Self {
        assert_channels(channel_of_unit, channels);
        assert!(
            config.arbitration == ChannelArbitration::Ready
                || (config.policy == DiePolicy::Fifo
                    && config.page_register != PageRegister::Cache
                    && !suspends(config.suspend)),
            "channel tickets need service in order of arrival"
        );
        let engine = EventDriven::new(channel_of_unit, channels, config);
        Self {
            engine: Engine::EventDriven(engine),
            tracking: None,
        }
    }

    /// Starts a group of operations at `now`, in their order.
    ///
    /// The group ends with one [`Event::GroupDone`]`(token)` at the time at
    /// which its last operation ends; an empty group ends at once. The event
    /// is queued as soon as that time is certain. Tokens need not be unique
    /// here: each group sends its own event.
    ///
    /// # Panics
    ///
    /// If an operation names a unit that does not exist.
    #[inline]
    pub fn submit(
        &mut self,
        now: Nanos,
        token: u32,
        cause: Cause,
        ops: &[FlashOp],
        events: &mut EventQueue,
    ) {
        if let Some(tracking) = &mut self.tracking
            && tracking.comes(token, cause)
        {
            events.push(now, Event::GroupDone(token));
            return;
        }
        let units = ops.iter().map(|op| op.unit);
        on_engine!(&mut self.engine, e => {
            e.ledger.count(cause, units);
            e.submit(now, token, cause, ops, events);
        });
    }

    /// A group of operations that starts at `now`, to be put together: where service is in order
    /// of arrival, and nobody keeps account of groups.
    #[inline]
    pub(crate) fn closed_form(
        &mut self,
        now: Nanos,
        token: u32,
        cause: Cause,
    ) -> Option<Group<'_>> {
        match &mut self.engine {
            Engine::ClosedForm(engine) => Some(Group::new(engine, now, token, cause)),
            Engine::EventDriven(_) => None,
        }
    }

    /// Whether somebody keeps account of groups, or of what is booked.
    pub(crate) fn is_watched(&self) -> bool {
        self.tracking.is_some() || on_engine!(&self.engine, e => e.ledger.is_recorded())
    }

    /// Keeps account from now on of the groups that have not ended, and of whose they are.
    /// Groups that are there already are not known.
    pub fn track(&mut self) {
        self.tracking.get_or_insert_default();
        on_engine!(&mut self.engine, e => e.track());
    }

    /// Whose groups are, if that is tracked.
    pub(crate) fn tracking_mut(&mut self) -> Option<&mut Tracking> {
        self.tracking.as_deref_mut()
    }

    /// Does without the work of some factors from `now` on: what runs ends, what waits is done,
    /// and what comes takes no time. Events due by `now` have been handled. Without
    /// [`Media::track`] nothing happens.
    pub fn leave_out(&mut self, now: Nanos, factors: Factors, events: &mut EventQueue) {
        let present = on_engine!(&self.engine, e => e.present(now));
        let Some(tracking) = &mut self.tracking else {
            return;
        };
        tracking.begin(factors, present.into_iter());
        let goes = |token, cause| tracking.is_absent(token, cause);
        on_engine!(&mut self.engine, e => e.remove(now, goes, events));
    }

    /// No transfer keeps its channel longer than `piece_ns`, if another waits.
    /// The closed form takes no notice.
    pub(crate) fn limit_pieces(&mut self, piece_ns: u32) {
        if let Engine::EventDriven(engine) = &mut self.engine {
            engine.limit_pieces(piece_ns);
        }
    }

    /// From now on, each piece of the page of a program that arrives in a
    /// register of its unit sends [`Event::Loaded`] with the token of its
    /// group; with [`PageRegister::Overlap`], each program that begins does.
    /// The closed form never does.
    pub(crate) fn report_loads(&mut self) {
        if let Engine::EventDriven(engine) = &mut self.engine {
            engine.report_loads();
        }
    }

    /// No further page of a program goes to a cache register, until
    /// [`Self::release_programs`]: what runs, and what is in the registers or on
    /// its way there, goes on. Returns whether none of that is left; if
    /// something is, [`Event::Quiet`] follows when it has ended. `None`: there
    /// are no cache registers, and nothing is held.
    pub(crate) fn hold_programs(&mut self, now: Nanos, events: &mut EventQueue) -> Option<bool> {
        match &mut self.engine {
            Engine::ClosedForm(_) => None,
            Engine::EventDriven(engine) => engine.hold_programs(now, events),
        }
    }

    /// Ends [`Self::hold_programs`].
    pub(crate) fn release_programs(&mut self, now: Nanos, events: &mut EventQueue) {
        if let Engine::EventDriven(engine) = &mut self.engine {
            engine.release_programs(now, events);
        }
    }

    /// Handles an [`Event::Unit`], [`Event::Ended`] or [`Event::Channel`] that is due: `now` is
    /// the time for which it was queued. Others are none of its business and
    /// are ignored.
    pub fn handle(&mut self, now: Nanos, event: Event, events: &mut EventQueue) {
        on_engine!(&mut self.engine, e => e.handle(now, event, events));
    }

    /// Asks for one [`Event::Task`]`(task)` as soon as `unit` has nothing to do
    /// and nothing waiting, at the latest at `deadline` if there is one.
    ///
    /// If the unit is idle now, returns true and sends nothing. Each call that
    /// returns false sends exactly one event, neither early nor late. Several
    /// waiters of a unit are told in the order in which they asked: the next at the
    /// same instant if the unit is idle still when the one before it has had its turn,
    /// else when it is idle again. By the time an event is handled, another of the same
    /// instant may have given the unit new work, or the deadline may have been the
    /// reason: check with [`Media::is_idle`].
    pub fn when_idle(
        &mut self,
        now: Nanos,
        unit: u32,
        task: u32,
        deadline: Option<Nanos>,
        events: &mut EventQueue,
    ) -> bool {
        if self.is_idle(now, unit) {
            return true;
        }
        on_engine!(&mut self.engine, e => e.wait_for_idle(now, unit, task, deadline, events));
        false
    }

    /// Whether `unit` has nothing to do at `now`, and nothing waiting. A page
    /// that still has to cross the channel after its read does not count under
    /// [`PageRegister::Overlap`]; one on its way to its program does.
    #[must_use]
    pub fn is_idle(&self, now: Nanos, unit: u32) -> bool {
        on_engine!(&self.engine, e => e.is_idle(now, unit))
    }

    /// Work ahead of an operation that would now join the end of the line of
    /// `unit`. The closed form knows it exactly. On events it is the sum of
    /// what is left to do: waiting for the channel, overheads of future
    /// suspends, and overtaking are not in it.
    #[must_use]
    pub fn backlog(&self, now: Nanos, unit: u32) -> Nanos {
        on_engine!(&self.engine, e => e.backlog(now, unit))
    }

    /// What is left at `now` of the operations that units were given. As [`Self::backlog`] has it.
    #[must_use]
    pub fn under_way(&self, now: Nanos) -> UnderWay {
        // Fits: units are counted in 32 bits.
        let units = 0..self.ledger().units.len() as u32;
        units.fold(UnderWay::default(), |all, unit| UnderWay {
            left: all.left.saturating_add(self.backlog(now, unit)),
            booked: all
                .booked
                .saturating_add(on_engine!(&self.engine, e => e.booked_ahead(now, unit))),
            unbooked: all
                .unbooked
                .saturating_add(on_engine!(&self.engine, e => e.booked_late(now, unit))),
        })
    }

    /// Busy time of each channel and unit.
    ///
    /// Work is booked when its time is certain, which is often before it has
    /// passed: the closed form books a whole group at submission. Only when
    /// nothing is in flight is every booking in the past. A unit that is held
    /// while its page waits for the channel is not booked for that wait.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        on_engine!(&self.engine, e => &e.ledger)
    }

    /// The ledger of flash that is no longer needed.
    pub(crate) fn into_ledger(self) -> Ledger {
        on_engine!(self.engine, e => e.ledger)
    }

    /// The ledger, to record what is booked in it.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        on_engine!(&mut self.engine, e => &mut e.ledger)
    }
}

/// Whether anything can be suspended at all.
const fn suspends(suspend: Suspend) -> bool {
    (suspend.program || suspend.erase) && suspend.max_per_operation > 0
}

fn assert_channels(channel_of_unit: &[u16], channels: u32) {
    assert!(
        channel_of_unit.iter().all(|c| u32::from(*c) < channels),
        "every unit sits on one of {channels} channels"
    );
}
