//! What is absent from a drive, and whose work is its own nevertheless.

use crate::background::Background;

use super::{Factor, Factors};
use crate::conventional::Role;
use crate::drive::{Core, Drive, Owner};

/// What is absent from a drive.
#[derive(Clone, Debug)]
pub(crate) struct Absence {
    /// The factors without which the drive does.
    pub(crate) factors: Factors,
    /// The next command is the one whose own work is spared.
    pub(crate) is_next: bool,
    /// That command, by the slot of its request.
    own: Option<u32>,
    /// It has completed.
    pub(crate) is_over: bool,
    /// Whose unit was on its way from the write buffer when this began.
    in_buffer: Option<Factor>,
}

impl Core {
    /// A program of the write buffer begins, with blocks of a zone from `first` to `end`.
    #[cold]
    pub(crate) fn mark_program(&mut self, slot: u32, physical: u32, (first, end): (u32, u32)) {
        let own = self.absence.as_ref().and_then(|absence| absence.own);
        let is_own = own.is_some_and(|own| {
            self.requests.iter().any(|(index, request)| {
                let range = request.target.range;
                let overlaps = range.first < end && first < range.first + range.count;
                let is_whose = index == own || matches!(request.role, Role::Part(of) if of == own);
                is_whose && overlaps && request.target.physical == physical
            })
        });
        self.mark(Owner::Program(slot), is_own);
    }

    /// Whether work of a factor takes no time, unless it is a request's that is spared.
    pub(crate) fn is_absent(&self, factor: Factor, request: Option<u32>) -> bool {
        self.absence.as_ref().is_some_and(|absence| {
            absence.factors.contains(factor) && (request.is_none() || absence.own != request)
        })
    }

    /// A command of a host has been given its slot.
    #[cold]
    pub(crate) fn mark_command(&mut self, request: u32) {
        let mut is_own = false;
        if let Some(absence) = &mut self.absence {
            is_own = std::mem::take(&mut absence.is_next);
            if is_own {
                absence.own = Some(request);
            }
        }
        self.mark(Owner::Request(request), is_own);
    }

    /// A request of the drive itself has been given its slot.
    #[cold]
    pub(crate) fn mark_internal(&mut self, request: u32, role: Role) {
        let is_own = match role {
            Role::Part(of) => self.is_own(Some(of)),
            _ => false,
        };
        self.mark(Owner::Request(request), is_own);
    }

    /// A command completes.
    #[cold]
    pub(crate) fn note_over(&mut self, request: u32) {
        if let Some(absence) = &mut self.absence
            && absence.own == Some(request)
        {
            absence.is_over = true;
        }
    }

    fn is_own(&self, request: Option<u32>) -> bool {
        let own = self.absence.as_ref().and_then(|absence| absence.own);
        own.is_some() && own == request
    }

    fn mark(&mut self, owner: Owner, is_own: bool) {
        if let Some(tracking) = self.flash.media_mut().tracking_mut() {
            tracking.mark(owner.token(), is_own);
        }
    }

    /// Whether it matters whose groups of flash operations are.
    #[inline]
    pub(crate) fn is_tracked(&self) -> bool {
        self.watch.is_some() || self.absence.is_some()
    }
}

impl Background {
    /// A background task begins.
    #[cold]
    pub(crate) fn mark_task(&mut self, core: &mut Core, task: u32) {
        let request = self.request_of_task(task);
        let is_own = core.is_own(request);
        core.mark(Owner::Task(task), is_own);
    }
}

impl Drive {
    /// Does without the work of some factors from now on, apart from that of the command that
    /// [`Absence::is_next`] announces.
    pub(crate) fn leave_out(&mut self, factors: Factors) {
        let now = self.core.now;
        let in_buffer = self.buffer.as_ref().and_then(|of| of.leaving_factor(now));
        self.core.absence = Some(Box::new(Absence {
            factors,
            is_next: false,
            own: None,
            is_over: false,
            in_buffer,
        }));
        self.core.front.leave_out(factors);
        let media = self.core.flash.media_mut();
        media.leave_out(now, factors, &mut self.core.events);
        if factors.contains(Factor::Bookkeeping) {
            self.back_end().end_bookkeeping();
        }
        if let Some((buffer, mut below)) = self.back_end().with_buffer()
            && !factors.is_empty()
        {
            buffer.leaves_out(&mut below, factors);
        }
        self.settle();
        self.plain
            .look(&self.core, &self.background, self.buffer.is_some());
    }

    /// Factors of which there is or was something to be left out.
    pub(crate) fn factors_seen(&mut self) -> Factors {
        let tracking = self.core.flash.media_mut().tracking_mut();
        let mut seen = tracking.map_or(Factors::NONE, |tracking| tracking.seen());
        let front = &self.core.config.front_end;
        let others = [
            (front.cores > 0, Factor::Firmware),
            (front.link_bytes_per_s.is_some(), Factor::Link),
            (self.background.updates_metadata(), Factor::Bookkeeping),
        ];
        for (_, factor) in others.into_iter().filter(|(is_there, _)| *is_there) {
            seen.insert(factor);
        }
        let in_buffer = self.core.absence.as_ref().and_then(|of| of.in_buffer);
        if let Some(factor) = in_buffer {
            seen.insert(factor);
        }
        seen
    }
}
