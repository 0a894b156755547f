//! A real drive that jobs run on, over NVMe/TCP or of this machine, in threads of
//! their own.

use std::ops::RangeInclusive;
use std::task::Waker;

use zonelab_device::{DeviceInfo, Nanos};
use zonelab_driver::linux::LinuxOptions;
use zonelab_driver::url::Address;
use zonelab_driver::{
    AnyController, AnyOptions, AnyQueue, DetachedQueue, DriverDevice, DriverQueue, Lane, Options,
};
use zonelab_host::{RealClock, Rng};
use zonelab_lab::device::{Part, Site, runs_of};

use crate::devices::HostArgs;
use crate::exit::Failure;

/// A drive of any transport as a device.
pub(crate) type Drive = DriverDevice<AnyController>;

/// Threads at most, so queues; the drive grants as many as it likes.
const QUEUES: u16 = 4096;

/// Entries of a queue to ask for: 1,024 commands in flight. The limit of the
/// drive applies.
const QUEUE_ENTRIES: u32 = 1025;

/// Ranges of zones that a message names at most.
const MAX_RANGES: usize = 8;

/// How to connect to a drive that threads share.
///
/// # Errors
/// The file of keys cannot be read, is wrong, or has no key of this host.
pub(crate) fn options(host: &HostArgs, address: Address) -> Result<AnyOptions, Failure> {
    Ok(match host.options(address)? {
        AnyOptions::Tcp(options) => AnyOptions::Tcp(Box::new(Options {
            queues: QUEUES,
            queue_entries: QUEUE_ENTRIES,
            ..*options
        })),
        AnyOptions::Linux(options) => AnyOptions::Linux(LinuxOptions {
            depth: (QUEUE_ENTRIES - 1) as u16,
            ..options
        }),
        AnyOptions::Pcie(mut options) => {
            options.pcie.queues = QUEUES;
            options.pcie.queue_entries = QUEUE_ENTRIES;
            AnyOptions::Pcie(options)
        }
    })
}

/// Ascending numbers as ranges, as many as a message can have.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let runs = runs_of(numbers);
    let text = |run: &RangeInclusive<u32>| match run.start() == run.end() {
        true => run.start().to_string(),
        false => format!("{} to {}", run.start(), run.end()),
    };
    let mut texts: Vec<String> = runs.iter().take(MAX_RANGES).map(text).collect();
    if runs.len() > MAX_RANGES {
        texts.push("...".to_owned());
    }
    texts.join(", ")
}

/// A real drive that jobs run on.
pub(crate) struct RealDrive(pub(crate) Drive);

impl Site for RealDrive {
    type Device = Drive;
    type Clock = RealClock;

    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn clock(&self, _at: Nanos) -> RealClock {
        RealClock::sharing(self.0.clock())
    }

    /// As deep as the drive has them, which callers see to.
    fn open_queue(&mut self, _depth: u32, _rng: Rng) -> Result<DriverQueue<AnyQueue>, String> {
        self.0.open_queue().map_err(|error| error.to_string())
    }

    fn device(&mut self) -> &mut Drive {
        &mut self.0
    }

    fn is_lost(device: &Drive) -> bool {
        device.is_lost()
    }

    type Part = OneQueue;
    const HAS_THREADS: bool = true;

    fn part(&mut self, _depth: u32) -> Result<OneQueue, String> {
        let queue = self.0.open_queue_elsewhere();
        queue.map(OneQueue).map_err(|error| error.to_string())
    }

    fn take_back(&mut self, part: OneQueue) -> Result<(), String> {
        self.0.take_back(part.0).map_err(|error| error.to_string())
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }

    fn real_clock(&self) -> RealClock {
        RealClock::sharing(self.0.clock())
    }
}

/// A queue of such a drive, for a thread.
pub(crate) struct OneQueue(DetachedQueue<AnyQueue>);

impl Part for OneQueue {
    type Device = Lane<AnyQueue>;

    fn open(self) -> Result<(Lane<AnyQueue>, DriverQueue<AnyQueue>), String> {
        Lane::new(self.0).map_err(|error| error.to_string())
    }

    fn waker(device: &Lane<AnyQueue>) -> Waker {
        device.waker()
    }

    fn is_lost(device: &Lane<AnyQueue>) -> bool {
        device.is_lost()
    }

    fn close(device: Lane<AnyQueue>) -> Option<Self> {
        device.into_queue().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn numbers_are_shown_as_ranges() {
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0 to 2, 5, 7 to 8");
        let even: Vec<u32> = (0..9).map(|n| 2 * n).collect();
        assert_eq!(ranges(&even[..8]), "0, 2, 4, 6, 8, 10, 12, 14");
        assert_eq!(ranges(&even), "0, 2, 4, 6, 8, 10, 12, 14, ...");
        assert_eq!(ranges(&[u32::MAX]), u32::MAX.to_string());
    }
}
