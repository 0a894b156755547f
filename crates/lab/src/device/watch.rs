//! Ends waits in real time when there is nothing left to wait for.

use std::sync::atomic::{AtomicBool, Ordering};

use zonelab_device::{Device, Modelled, Nanos, QueueId};
use zonelab_host::StopSignal;

/// Longest wait without a look at whether somebody interrupted the run.
pub(crate) const LOOK_EVERY: Nanos = Nanos::from_ms(100);

/// The device of a run, which tells jobs to end when the run was interrupted or
/// the device is gone: those that pause for minutes would not notice before.
///
/// Only waits in real time notice; virtual time does not wait.
pub struct Watched<'a, D> {
    device: &'a mut D,
    interrupt: &'a AtomicBool,
    is_lost: fn(&D) -> bool,
    /// Who is told.
    jobs: Vec<StopSignal>,
    is_told: bool,
}

impl<'a, D> Watched<'a, D> {
    /// The `device` of a run that `interrupt` ends, as does `is_lost`; both are told to `jobs`.
    pub fn new(
        device: &'a mut D,
        is_lost: fn(&D) -> bool,
        interrupt: &'a AtomicBool,
        jobs: Vec<StopSignal>,
    ) -> Self {
        Self {
            device,
            interrupt,
            is_lost,
            jobs,
            is_told: false,
        }
    }
}

impl<D: Device> Device for Watched<'_, D> {
    type Queue = D::Queue;

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        self.device.next_event()
    }

    #[inline]
    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.device.advance(now, ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        let has_something = self.device.wait(span.min(LOOK_EVERY));
        let tell = match self.interrupt.load(Ordering::Relaxed) {
            true => StopSignal::stop,
            false if (self.is_lost)(self.device) => StopSignal::device_is_lost,
            false => return has_something,
        };
        if self.is_told {
            return has_something;
        }
        self.is_told = true;
        self.jobs.iter().for_each(tell);
        true
    }
}

impl<D: Modelled> Modelled for Watched<'_, D> {}
