//! When servers ended and drives lost power, as far as hosts can know it.

use std::sync::{Mutex, MutexGuard};

/// How many events there were. Those of one server come one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Ends of the server and losses of power that may have happened.
    pub(crate) begun: u64,
    /// Those that have happened.
    pub(crate) ended: u64,
    /// Of these, losses of power of a drive whose write buffer is not protected.
    pub(crate) cuts_begun: u64,
    pub(crate) cuts_ended: u64,
}

/// The events of a server. Each ends every connection that was there when it began.
#[derive(Default)]
pub(crate) struct Events(Mutex<Marks>);

impl Events {
    fn get(&self) -> MutexGuard<'_, Marks> {
        self.0.lock().unwrap()
    }

    pub(crate) fn marks(&self) -> Marks {
        *self.get()
    }

    /// One is about to happen; with `is_cut`, one that may cost what was not flushed.
    pub(crate) fn begin(&self, is_cut: bool) {
        let mut marks = self.get();
        marks.begun += 1;
        marks.cuts_begun += u64::from(is_cut);
    }

    /// It has happened.
    pub(crate) fn end(&self, is_cut: bool) {
        let mut marks = self.get();
        marks.ended += 1;
        marks.cuts_ended += u64::from(is_cut);
    }
}

/// What may have happened between two connections of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Between {
    /// A cut that costs what was not flushed may have happened.
    pub(crate) may_be_cut: bool,
    /// The server may have ended, or the drive lost power.
    pub(crate) may_be_event: bool,
    /// One of the two certainly happened, and with it every command of the old connection ended.
    pub(crate) is_certain: bool,
}

/// What a host knows of a connection: the marks before it was begun, and once it was there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    pub(crate) before: Marks,
    pub(crate) established: Marks,
}

impl Known {
    /// What may have happened since the connection `self`, now that there is the connection `new`.
    pub(crate) fn between(self, new: Self) -> Between {
        Between {
            may_be_cut: new.established.cuts_begun > self.before.cuts_ended,
            may_be_event: new.established.begun > self.before.ended,
            is_certain: new.before.ended > self.established.begun,
        }
    }
}

#[test]
fn an_event_is_certain_only_if_it_lies_between_two_connections() {
    let events = Events::default();
    let known = |at: &Events| Known {
        before: at.marks(),
        established: at.marks(),
    };
    let first = known(&events);
    let second = known(&events);
    let nothing = first.between(second);
    assert!(!nothing.may_be_event && !nothing.may_be_cut && !nothing.is_certain);
    events.begin(true);
    let during = known(&events);
    let may_be = second.between(during);
    assert!(may_be.may_be_event && may_be.may_be_cut && !may_be.is_certain);
    events.end(true);
    let third = known(&events);
    let may_be = during.between(third);
    assert!(may_be.may_be_event && may_be.may_be_cut && !may_be.is_certain);
    assert!(second.between(third).is_certain);
    events.begin(false);
    events.end(false);
    let killed = third.between(known(&events));
    assert!(killed.is_certain && killed.may_be_event && !killed.may_be_cut);
}
