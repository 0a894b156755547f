//! Many appends to one zone in flight.

use zonelab_device::{Buf, Completion, Lba, Op, QueuePair};

use super::engine::{Note, Owner};
use super::error::{Refused, ZoneError};
use super::zone::Core;

/// An append by the order in which the appends of an [`Appender`] were started: the first is 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendId(pub u64);

/// An append that succeeded.
#[derive(Debug)]
pub struct Appended {
    /// Which one.
    pub id: AppendId,
    /// The block where its data begins, which the drive chose.
    pub lba: Lba,
    /// The buffer.
    pub data: Buf,
}

/// An append that did not succeed, with its buffer.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct AppendFailed {
    /// Which one. `None`: none of those in flight has ended in time
    /// ([`ZoneError::TimedOut`]), and all of them were given up.
    pub id: Option<AppendId>,
    /// Why.
    pub error: ZoneError,
    /// The buffer, unless the device may still use it.
    pub data: Option<Buf>,
}

impl From<AppendFailed> for ZoneError {
    /// The buffer is dropped.
    fn from(failed: AppendFailed) -> Self {
        failed.error
    }
}

/// Appends to one zone, many at a time ([`Zone::appender`](super::Zone::appender)).
///
/// It keeps the handle borrowed, so that nothing else is done with the zone meanwhile. Room is
/// counted when an append is started: what is started fits. The drive may carry appends out in any
/// order, and they end in any order.
///
/// ```
/// use zonelab_device::{Buf, Lba, QueuePair};
/// use zonelab_driver::zones::{Open, Zone, ZoneError};
///
/// /// Appends records, eight at a time. Returns where they are.
/// fn log<Q: QueuePair>(
///     zone: &mut Zone<'_, Q, Open>,
///     records: Vec<Buf>,
/// ) -> Result<Vec<Lba>, ZoneError> {
///     let mut places = vec![Lba(0); records.len()];
///     let mut appender = zone.appender()?;
///     for record in records {
///         if appender.in_flight() == 8 && let Some(ended) = appender.next() {
///             let appended = ended?;
///             places[appended.id.0 as usize] = appended.lba;
///         }
///         appender.start(record)?;
///     }
///     while let Some(ended) = appender.next() {
///         let appended = ended?;
///         places[appended.id.0 as usize] = appended.lba;
///     }
///     Ok(places)
/// }
/// ```
///
/// After an append that failed no further one is started; those in flight end. An appender that
/// is dropped with appends in flight, and one of whose appends failed, leaves a handle that has to be
/// refreshed.
pub struct Appender<'z, 'ns, Q: QueuePair> {
    core: &'z mut Core<'ns, Q>,
    owner: Owner,
    next: u64,
    has_failed: bool,
}

impl<'z, 'ns, Q: QueuePair> Appender<'z, 'ns, Q> {
    pub(super) fn new(core: &'z mut Core<'ns, Q>) -> Self {
        let owner = core.namespace.engine().owner(Some(core.id));
        Self {
            core,
            owner,
            next: 0,
            has_failed: false,
        }
    }

    /// Appends in flight, or ended and not taken by [`Self::next`].
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.core.appends
    }

    /// Blocks that can still be appended.
    #[must_use]
    pub const fn room_lbas(&self) -> u64 {
        self.core.room()
    }

    /// Starts an append. The device hears of it with the next call of [`Self::next`] or
    /// [`Self::try_next`], together with all that were started before.
    ///
    /// # Errors
    /// As of [`Zone::write`](super::Zone::write), and [`ZoneError::TooManyInFlight`]. Nothing was
    /// sent, and the appends in flight go on.
    pub fn start(&mut self, data: Buf) -> Result<AppendId, Refused> {
        let core = &mut *self.core;
        if self.has_failed {
            return Err(Refused::new(ZoneError::NotKnown { zone: core.id }, data));
        }
        let most = core.namespace.facts().max_append_bytes;
        let blocks = match core.blocks_that_fit(&data, most) {
            Ok(blocks) => blocks,
            Err(error) => return Err(Refused::new(error, data)),
        };
        let number = self.next;
        let op = Op::Append {
            zslba: Lba(core.start),
            nlb: blocks,
        };
        let note = Note { number, blocks };
        let mut engine = core.namespace.engine();
        engine.submit(self.owner, note, op, Some(data))?;
        drop(engine);
        core.appends += 1;
        core.appended += u64::from(blocks);
        self.next += 1;
        Ok(AppendId(number))
    }

    /// Waits for the end of an append: whichever ends first. `None`: none is in flight.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would borrow the appender, and more appends are started in between"
    )]
    pub fn next(&mut self) -> Option<Result<Appended, AppendFailed>> {
        if self.core.appends == 0 {
            return None;
        }
        let ended = self.core.namespace.engine().wait(self.owner, "the append");
        Some(match ended {
            Ok((note, completion)) => self.end(note, completion),
            Err(error) => {
                self.fail();
                (self.core.appends, self.core.appended) = (0, 0);
                let (id, data) = (None, None);
                Err(AppendFailed { id, error, data })
            }
        })
    }

    /// An append that has ended, without waiting for one.
    pub fn try_next(&mut self) -> Option<Result<Appended, AppendFailed>> {
        let mut engine = self.core.namespace.engine();
        engine.pump();
        let (note, completion) = engine.take(self.owner)?;
        drop(engine);
        Some(self.end(note, completion))
    }

    /// What has become of an append.
    fn end(&mut self, note: Note, completion: Completion) -> Result<Appended, AppendFailed> {
        let core = &mut *self.core;
        let id = AppendId(note.number);
        let (status, lba) = (completion.status, completion.result);
        // All that was started since none was in flight lies behind the write pointer of then.
        let (start, end) = (core.wp, core.wp + core.appended);
        core.appends -= 1;
        let is_within = lba >= start
            && lba
                .checked_add(note.blocks.into())
                .is_some_and(|behind| behind <= end);
        let error = if !status.is_success() {
            let command = "the append";
            Some(ZoneError::Failed { command, status })
        } else if !is_within {
            Some(ZoneError::Misplaced {
                zone: core.id,
                lba: Lba(lba),
                start: Lba(start),
                end: Lba(end),
            })
        } else {
            None
        };
        if error.is_some() {
            self.fail();
        }
        if self.core.appends == 0 {
            self.core.wp += core::mem::take(&mut self.core.appended);
        }
        match error {
            Some(error) => Err(AppendFailed {
                id: Some(id),
                error,
                data: completion.data,
            }),
            None => Ok(Appended {
                id,
                lba: Lba(lba),
                data: completion.data.unwrap_or_else(|| Buf::zeroed(0)),
            }),
        }
    }

    /// Nobody knows now what is written.
    fn fail(&mut self) {
        self.has_failed = true;
        self.core.doubt();
    }
}

impl<Q: QueuePair> Drop for Appender<'_, '_, Q> {
    fn drop(&mut self) {
        if self.core.appends > 0 {
            self.core.namespace.engine().abandon(self.owner);
            self.core.doubt();
            (self.core.appends, self.core.appended) = (0, 0);
        }
    }
}
