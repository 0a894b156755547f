//! I/O schedulers: in which order a host's requests go to a device.
//!
//! A scheduler belongs to one device, all queue pairs of it together, as in
//! Linux. It is sans-I/O: it is told what came ([`Scheduler::insert`]) and what
//! a device is done with ([`Scheduler::completed`]), it says what may go next
//! ([`Scheduler::dispatch`]) and when it wants to be told the time
//! ([`Scheduler::next_timer`]). It neither submits nor waits, and so runs the
//! same over a drive in virtual time and over a real one.
//!
//! Requests are called by small numbers that their owner chooses densely
//! ([`RequestId`]): a scheduler keeps what it knows of them in flat arrays.
//!
//! What every scheduler guarantees, under completions in any order, with any
//! status:
//! * A request that was inserted is dispatched once.
//! * Writes of a zone are dispatched in the order of their addresses where they
//!   wait together, and so in the order of their insertion where they come as
//!   a zone takes them. Those that keep one write per zone in flight
//!   (mq-deadline, zinc) hand the next one out when the one before is done.
//! * As long as completions arrive and [`Scheduler::next_timer`] is heeded,
//!   nothing waits for ever.

mod mq_deadline;
mod none;
mod places;
mod settings;
mod tree;
mod zinc;

use zonelab_device::{Command, DeviceInfo, Nanos};

pub use settings::{MqDeadlineSettings, ZincSettings, ZincThrottle};

/// A request as its owner calls it: an index, as small as possible, that is
/// free again once the command that carried the request has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// Decides in which order requests go to a device.
pub trait Scheduler {
    /// Its name in configuration and output, `mq-deadline`.
    fn name(&self) -> &'static str;

    /// Takes a request.
    fn insert(&mut self, now: Nanos, id: RequestId, command: Command);

    /// The next command that may go to the device now, if there is one. Ask
    /// until there is none. The requests that it carries are added to
    /// `carried`: one, or several that were merged, in the order of their
    /// addresses.
    fn dispatch(&mut self, now: Nanos, carried: &mut Vec<RequestId>) -> Option<Command>;

    /// A command that was dispatched has completed, with whatever status.
    fn completed(&mut self, now: Nanos, command: &Command);

    /// When it wants to be told the time ([`Self::timer`]); `None`: not at all.
    /// Being late is allowed: kernels have coarse timers.
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// The time that [`Self::next_timer`] named has come, or has passed. Ask
    /// [`Self::dispatch`] afterwards. Nothing but this call ends a period:
    /// whoever keeps time coarsely keeps it so for the scheduler too.
    fn timer(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Requests that were inserted and not dispatched.
    fn waiting(&self) -> usize;

    /// Gives back everything that waits, in the order of insertion, and stays
    /// behind empty: another scheduler takes over. Call it only once all that
    /// was dispatched has completed.
    fn drain(&mut self, waiting: &mut Vec<(RequestId, Command)>);
}

/// What a scheduler of a device is made from: which, and its settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulerSpec {
    /// Every request goes at once, in the order of arrival.
    #[default]
    None,
    /// One write per zone in flight, merging, reads before writes, deadlines.
    MqDeadline(MqDeadlineSettings),
    /// The same for reads and writes; resets and finishes are held back while
    /// there are many writes.
    Zinc(ZincSettings),
}

impl SchedulerSpec {
    /// The scheduler for a device of `info`.
    ///
    /// # Errors
    /// A setting is out of its range ([`SettingError`]).
    pub fn build(&self, info: &DeviceInfo) -> Result<Box<dyn Scheduler>, SettingError> {
        match self {
            Self::None => Ok(Box::new(none::Noop::default())),
            Self::MqDeadline(settings) => {
                Ok(Box::new(mq_deadline::MqDeadline::new(settings, info)?))
            }
            Self::Zinc(settings) => Ok(Box::new(zinc::Zinc::new(settings, info)?)),
        }
    }
}

/// A setting that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value} is out of range: {valid}")]
pub struct SettingError {
    /// The setting, as it is called in files, `zinc.reset.epoch`.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What would be valid.
    pub valid: String,
}
