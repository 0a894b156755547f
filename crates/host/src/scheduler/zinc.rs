//! zinc: mq-deadline that holds resets and finishes back while there are writes.

use std::collections::VecDeque;

use zonelab_device::{Command, DeviceInfo, Nanos, Op};
use zonelab_nvme::zns::ZoneSendAction;

use super::mq_deadline::MqDeadline;
use super::{RequestId, Scheduler, SettingError, ZincSettings, ZincThrottle};

/// Reads and writes as mq-deadline, resets and finishes one at a time and only
/// every now and then: ZINC of the ConfZNS++ paper (section 3.2).
///
/// Resets (also of all zones) and finishes each have a queue, settings
/// ([`ZincThrottle`]), tokens and epochs of their own. One command is in flight
/// over both kinds.
///
/// * *At once.* A command that comes while none waits or is in flight, and while
///   less than [`ZincThrottle::min_concurrency`] of reads, writes and appends
///   waits or is in flight, goes through as under mq-deadline. Nothing looks at
///   the concurrency again before the end of an epoch: three writers that never
///   pause come below a threshold of three with each completion, and yet their
///   resets were measured to wait.
/// * *Epochs.* They follow each other without regard to what arrives. When one
///   ends, and none is in flight, the oldest command of its kind goes, if the
///   concurrency is below the threshold, or there are tokens enough, or it has
///   been held back [`ZincThrottle::max_epoch_holds`] times. Otherwise it is
///   held back once more. So it waits for at most that many epochs after the
///   end of the epoch in which it came, or in which the one before it completed.
///   Where an epoch of one kind ends while a command is in flight, its turn
///   comes at the next end of either kind, so that neither kind starves the
///   other; the older goes first.
/// * *Late timers.* An epoch begins when the end of the one before it is
///   handled. A kernel with ticks of 4 ms makes 68 ms of 64 that way, as was
///   measured. While no command of a kind waits, its timer sleeps; its epochs
///   are counted on from the last end that was handled, each at its full length.
/// * *Tokens.* Every write and append that is dispatched counts, whether a
///   command waits or not: their bytes in units of 8 KiB, rounded up. A command
///   takes [`ZincThrottle::write_tokens`] off. What is left over stays, up to
///   the price of one more. So the mean interval is what the writes pay for and
///   not a whole number of epochs: at seven writers intervals of one to three
///   epochs mix to a mean of 137 ms, close to the 144 ms in which they write
///   20,000 units, where starting from zero would make it three epochs, 204 ms.
///   The bound is there so that a quiet time does not open the gate for long.
///
/// The concurrency is the sum of the bytes in units of 8 KiB, rounded up: a
/// merged command comes back as one, so its requests cannot be rounded each.
pub(super) struct Zinc {
    inner: MqDeadline,
    reset: Gate,
    finish: Gate,
    /// A reset or finish has been let go and has not completed.
    in_flight: bool,
    /// Bytes of reads, writes and appends inserted and not completed.
    outstanding: u64,
}

/// The queue of one kind of management command.
#[derive(Debug)]
struct Gate {
    settings: ZincThrottle,
    waiting: VecDeque<Held>,
    epoch_end: Nanos,
    tokens: u64,
    /// Ends of epochs at which the oldest was held back.
    holds: u32,
    /// An epoch has ended, and the oldest has not been looked at since.
    due: bool,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    sequence: u64,
    id: RequestId,
    command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reset,
    Finish,
}

impl Kind {
    #[inline]
    fn of(command: &Command) -> Option<Self> {
        let Op::ZoneSend { action, .. } = command.op else {
            return None;
        };
        match action {
            ZoneSendAction::RESET => Some(Self::Reset),
            ZoneSendAction::FINISH => Some(Self::Finish),
            _ => None,
        }
    }
}

impl Zinc {
    pub(super) fn new(settings: &ZincSettings, info: &DeviceInfo) -> Result<Self, SettingError> {
        settings.check(info)?;
        Ok(Self {
            inner: MqDeadline::new(&settings.deadline, info)?,
            reset: Gate::new(settings.reset),
            finish: Gate::new(settings.finish),
            in_flight: false,
            outstanding: 0,
        })
    }

    fn gate(&mut self, kind: Kind) -> &mut Gate {
        match kind {
            Kind::Reset => &mut self.reset,
            Kind::Finish => &mut self.finish,
        }
    }

    /// Reads, writes and appends waiting or in flight, in units of 8 KiB.
    fn concurrency(&self) -> u64 {
        self.outstanding.div_ceil(ZincThrottle::UNIT_BYTES)
    }

    fn insert_management(&mut self, now: Nanos, kind: Kind, held: Held) {
        let concurrency = self.concurrency();
        let free =
            !self.in_flight && self.reset.waiting.is_empty() && self.finish.waiting.is_empty();
        let gate = self.gate(kind);
        if free && gate.is_quiet(concurrency) {
            gate.pay();
            self.let_go(now, held);
        } else {
            gate.hold(now, held);
        }
    }

    fn let_go(&mut self, now: Nanos, held: Held) {
        self.in_flight = true;
        self.inner
            .insert_at(held.sequence, now, held.id, held.command);
    }

    /// Looks at those whose time has come, the older first.
    fn release(&mut self, now: Nanos) {
        let mut kinds = [Kind::Reset, Kind::Finish];
        if self.finish.oldest() < self.reset.oldest() {
            kinds.reverse();
        }
        for kind in kinds {
            if self.in_flight {
                return;
            }
            let concurrency = self.concurrency();
            if let Some(held) = self.gate(kind).look(concurrency) {
                self.let_go(now, held);
            }
        }
    }
}

impl Gate {
    fn new(settings: ZincThrottle) -> Self {
        Self {
            settings,
            waiting: VecDeque::new(),
            epoch_end: settings.epoch,
            tokens: 0,
            holds: 0,
            due: false,
        }
    }

    fn is_quiet(&self, concurrency: u64) -> bool {
        concurrency < u64::from(self.settings.min_concurrency)
    }

    /// Place of the oldest in the order of insertion, behind all if there is none.
    fn oldest(&self) -> u64 {
        self.waiting.front().map_or(u64::MAX, |held| held.sequence)
    }

    /// Takes a command. If it is alone, its timer has slept: time goes on to the
    /// epoch that `now` is in.
    fn hold(&mut self, now: Nanos, held: Held) {
        if self.waiting.is_empty() && self.epoch_end <= now {
            let epoch = self.settings.epoch;
            let into_epoch = (now - self.epoch_end).0 % epoch.0;
            self.epoch_end = now.saturating_add(epoch).saturating_sub(Nanos(into_epoch));
        }
        self.waiting.push_back(held);
    }

    fn timer(&mut self, now: Nanos) {
        if !self.waiting.is_empty() && self.epoch_end <= now {
            self.epoch_end = now.saturating_add(self.settings.epoch);
            self.due = true;
        }
    }

    fn next_timer(&self) -> Option<Nanos> {
        (!self.waiting.is_empty()).then_some(self.epoch_end)
    }

    /// At the end of an epoch: the oldest goes, or is held back once more.
    fn look(&mut self, concurrency: u64) -> Option<Held> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        let goes = self.is_quiet(concurrency)
            || self.tokens >= u64::from(self.settings.write_tokens)
            || self.holds >= self.settings.max_epoch_holds;
        if !goes {
            self.holds += 1;
            return None;
        }
        self.holds = 0;
        self.pay();
        self.waiting.pop_front()
    }

    fn pay(&mut self) {
        let price = u64::from(self.settings.write_tokens);
        self.tokens = self.tokens.saturating_sub(price);
    }

    #[inline]
    fn earn(&mut self, tokens: u64) {
        let bound = 2 * u64::from(self.settings.write_tokens);
        self.tokens = self.tokens.saturating_add(tokens).min(bound);
    }
}

impl Scheduler for Zinc {
    fn name(&self) -> &'static str {
        "zinc"
    }

    #[inline]
    fn insert(&mut self, now: Nanos, id: RequestId, command: Command) {
        let sequence = self.inner.next_sequence();
        if let Some(kind) = Kind::of(&command) {
            let held = Held {
                sequence,
                id,
                command,
            };
            self.insert_management(now, kind, held);
        } else {
            let bytes = self.inner.places().bytes(&command);
            self.outstanding = self.outstanding.saturating_add(bytes);
            self.inner.insert_at(sequence, now, id, command);
        }
    }

    #[inline]
    fn dispatch(&mut self, now: Nanos, carried: &mut Vec<RequestId>) -> Option<Command> {
        let command = self.inner.dispatch(now, carried)?;
        if let Op::Write { .. } | Op::Append { .. } = command.op {
            let bytes = self.inner.places().bytes(&command);
            let tokens = bytes.div_ceil(ZincThrottle::UNIT_BYTES);
            self.reset.earn(tokens);
            self.finish.earn(tokens);
        }
        Some(command)
    }

    #[inline]
    fn completed(&mut self, now: Nanos, command: &Command) {
        if Kind::of(command).is_some() {
            self.in_flight = false;
        } else {
            let bytes = self.inner.places().bytes(command);
            self.outstanding = self.outstanding.saturating_sub(bytes);
            self.inner.completed(now, command);
        }
    }

    fn next_timer(&self) -> Option<Nanos> {
        let timers = [self.reset.next_timer(), self.finish.next_timer()];
        timers.into_iter().flatten().min()
    }

    fn timer(&mut self, now: Nanos) {
        self.reset.timer(now);
        self.finish.timer(now);
        self.release(now);
    }

    fn waiting(&self) -> usize {
        self.inner.waiting() + self.reset.waiting.len() + self.finish.waiting.len()
    }

    fn drain(&mut self, waiting: &mut Vec<(RequestId, Command)>) {
        let mut unordered = Vec::with_capacity(self.waiting());
        self.inner.drain_unordered(&mut unordered);
        for gate in [&mut self.reset, &mut self.finish] {
            let held = gate.waiting.drain(..);
            unordered.extend(held.map(|held| (held.sequence, held.id, held.command)));
            (gate.holds, gate.due) = (0, false);
        }
        (self.in_flight, self.outstanding) = (false, 0);
        unordered.sort_unstable_by_key(|&(sequence, ..)| sequence);
        waiting.extend(unordered.into_iter().map(|(_, id, command)| (id, command)));
    }
}
