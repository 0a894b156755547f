//! A controller that does wrong, and a driver that counts every command.

use zonelab_device::{Completion, Device, Nanos, QueuePair, RejectReason, Tag};
use zonelab_driver::DriverError;
use zonelab_driver::pcie::{
    Function, PcieDevice, PcieDeviceQueue, PcieError, PcieOptions, Violation,
};
use zonelab_endpoint::{Endpoint, EndpointSettings, Fault, Stuck};
use zonelab_nvme::Status;

use crate::drive::{LBA, connect, endpoint, pattern, read};

/// A device of one queue, whose commands may take a second.
struct Bench {
    endpoint: Endpoint,
    device: PcieDevice<Endpoint>,
    queue: PcieDeviceQueue<Endpoint>,
}

impl Bench {
    fn new() -> Self {
        Self::with(EndpointSettings::default())
    }

    fn with(settings: EndpointSettings) -> Self {
        let endpoint = endpoint(settings);
        let options = PcieOptions {
            command_timeout: Nanos::from_secs(1),
            queue_entries: 16,
            ..PcieOptions::default()
        };
        let mut device = PcieDevice::new(connect(&endpoint, options));
        let queue = device.open_queue().unwrap();
        Self {
            endpoint,
            device,
            queue,
        }
    }

    fn submit(&mut self, tags: core::ops::Range<u32>) {
        for tag in tags {
            let data = self.device.controller().buffer(LBA).unwrap();
            self.queue.submit(read(0, 1), Tag(tag), Some(data)).unwrap();
        }
        self.queue.ring();
    }

    /// Lets time pass until nothing is under way, and gives what has completed, by tag.
    fn drain(&mut self) -> Vec<Completion> {
        let (mut done, mut ready) = (Vec::new(), Vec::new());
        let end = self.endpoint.now() + Nanos::from_secs(60);
        while let Some(at) = self.device.next_event() {
            assert!(at <= end, "something is under way for ever");
            let now = at.max(self.endpoint.now());
            self.device.advance(now, &mut ready);
            self.queue.poll(&mut done);
        }
        self.queue.poll(&mut done);
        done.sort_by_key(|done| done.tag.0);
        done
    }

    /// Each tag once; the statuses.
    fn statuses(&mut self, tags: core::ops::Range<u32>) -> Vec<Status> {
        let done = self.drain();
        let found: Vec<u32> = done.iter().map(|done| done.tag.0).collect();
        assert_eq!(found, tags.collect::<Vec<u32>>(), "every command ends once");
        done.iter().map(|done| done.status).collect()
    }

    /// The queue works as if nothing had been.
    fn works(&mut self) {
        self.submit(100..110);
        assert_eq!(self.statuses(100..110), [Status::SUCCESS; 10]);
        assert_eq!(self.endpoint.memory().faults(), 0);
    }
}

#[test]
fn an_error_status_is_the_commands() {
    let mut bench = Bench::new();
    bench
        .endpoint
        .inject(1, Fault::Status(Status::UNRECOVERED_READ_ERROR));
    bench.submit(0..3);
    let statuses = bench.statuses(0..3);
    let failed = statuses.iter().filter(|status| !status.is_success());
    assert_eq!(
        failed.collect::<Vec<_>>(),
        [&Status::UNRECOVERED_READ_ERROR]
    );
    assert_eq!(bench.device.resets(), 0);
    bench.works();
}

/// A completion that is lost, or that never gets its phase: the command is aborted, which
/// does not help, and the controller reset. All others had ended by themselves.
#[test]
fn a_lost_completion_leads_to_a_reset() {
    for fault in [Fault::Lost, Fault::WrongPhase] {
        let mut bench = Bench::new();
        // The last, so that the ring does not end there for the others.
        bench.endpoint.inject(3, fault);
        let start = bench.endpoint.now();
        bench.submit(0..4);
        let statuses = bench.statuses(0..4);
        let by_host = statuses
            .iter()
            .filter(|status| **status == Status::ABORTED_BY_HOST);
        assert_eq!(by_host.count(), 1, "{fault:?}");
        let successes = statuses.iter().filter(|status| status.is_success());
        assert_eq!(successes.count(), 3, "{fault:?}");
        assert_eq!(bench.device.resets(), 1);
        let took = bench.endpoint.now().saturating_sub(start);
        assert!(
            took >= Nanos::from_secs(2),
            "a second, and as long for the Abort"
        );
        bench.works();
    }
}

#[test]
fn completions_of_no_command_end_none() {
    for fault in [Fault::Command(0x0fff), Fault::Command(0xffff)] {
        let mut bench = Bench::new();
        bench.endpoint.inject(0, fault);
        bench.submit(0..4);
        let statuses = bench.statuses(0..4);
        let successes = statuses.iter().filter(|status| status.is_success());
        assert_eq!(successes.count(), 3, "{fault:?}");
        assert!(statuses.contains(&Status::ABORTED_BY_HOST));
        bench.works();
    }
}

#[test]
fn a_completion_that_comes_twice_ends_one_command() {
    let mut bench = Bench::new();
    bench.endpoint.inject(0, Fault::Repeated);
    bench.submit(0..4);
    assert_eq!(bench.statuses(0..4), [Status::SUCCESS; 4]);
    assert_eq!(bench.device.resets(), 0);
    bench.works();
}

/// The rings are not in step any more: all that is in flight ends by a reset.
#[test]
fn a_ring_that_is_out_of_step_leads_to_a_reset() {
    for fault in [
        Fault::Head(16),
        Fault::Head(u16::MAX),
        Fault::Head(9),
        Fault::Queue(2),
    ] {
        let mut bench = Bench::new();
        bench.endpoint.inject(2, fault);
        bench.submit(0..6);
        let statuses = bench.statuses(0..6);
        let by_host = statuses
            .iter()
            .filter(|status| **status == Status::ABORTED_BY_HOST);
        assert_eq!(by_host.count(), 4, "{fault:?}");
        assert_eq!(bench.device.resets(), 1);
        bench.works();
    }
}

#[test]
fn a_fatal_error_leads_to_a_reset() {
    let mut bench = Bench::new();
    bench.endpoint.inject(1, Fault::Fatal);
    bench.submit(0..5);
    let statuses = bench.statuses(0..5);
    let by_host = statuses
        .iter()
        .filter(|status| **status == Status::ABORTED_BY_HOST);
    assert_eq!(by_host.count(), 4);
    bench.works();
}

/// Shadow doorbells are off after a reset, and have to be configured anew.
#[test]
fn shadow_doorbells_come_back_after_a_reset() {
    let mut bench = Bench::with(EndpointSettings {
        has_shadow_doorbells: true,
        ..EndpointSettings::default()
    });
    for round in 0..3 {
        bench.endpoint.inject(1, Fault::Fatal);
        bench.submit(0..5);
        assert_eq!(bench.statuses(0..5).len(), 5);
        assert_eq!(bench.device.resets(), round + 1);
        assert!(bench.device.controller().has_shadow_doorbells());
        bench.works();
    }
}

#[test]
fn a_device_that_is_pulled_out_is_an_error() {
    let mut bench = Bench::new();
    bench.endpoint.inject(2, Fault::Removed);
    bench.submit(0..6);
    let statuses = bench.statuses(0..6);
    let gone = statuses
        .iter()
        .filter(|status| **status == Status::HOST_PATHING_ERROR);
    assert_eq!(gone.count(), 4);
    assert!(bench.device.is_lost());
    let rejected = bench
        .queue
        .submit(read(0, 1), Tag(0), Some(pattern(3, 1)))
        .unwrap_err();
    assert_eq!(rejected.reason, RejectReason::Disconnected);
    assert!(rejected.data.unwrap() == pattern(3, 1));
    let Bench {
        endpoint,
        device,
        queue,
    } = bench;
    drop(queue);
    let error = device.close().unwrap_err();
    assert!(
        matches!(error, DriverError::Pcie(PcieError::Gone)),
        "{error}"
    );
    assert_eq!(endpoint.memory().regions(), 0);
}

/// A controller that does not stop may still write to buffers: they do not come back,
/// and their memory is not freed.
#[test]
fn buffers_of_a_controller_that_does_not_stop_are_kept() {
    let mut bench = Bench::new();
    bench.endpoint.inject(0, Fault::Fatal);
    bench.endpoint.stick(Some(Stuck::Ready));
    bench.submit(0..2);
    // One whose buffer the driver copies: that can come back.
    bench
        .queue
        .submit(read(0, 1), Tag(2), Some(pattern(0, 1)))
        .unwrap();
    bench.queue.ring();
    let done = bench.drain();
    let kept: Vec<bool> = done.iter().map(|done| done.data.is_none()).collect();
    assert_eq!(kept, [true, true, false]);
    let gone = [Status::HOST_PATHING_ERROR; 3];
    assert_eq!(
        done.iter().map(|done| done.status).collect::<Vec<_>>(),
        gone
    );
    assert!(bench.device.is_lost());
    let Bench {
        endpoint,
        device,
        queue,
    } = bench;
    drop((queue, done));
    let error = device.close().unwrap_err();
    assert!(
        matches!(error, DriverError::Pcie(PcieError::NotQuiet(_))),
        "{error}"
    );
    assert!(endpoint.memory().regions() > 0);
}

/// A controller that fails each time is given up in the end.
#[test]
fn resets_that_do_not_help_come_to_an_end() {
    let mut bench = Bench::new();
    for _ in 0..10 {
        if bench.device.is_lost() {
            break;
        }
        bench.endpoint.inject(0, Fault::Fatal);
        bench.submit(0..2);
        assert_eq!(bench.drain().len(), 2);
    }
    assert!(bench.device.is_lost());
    assert_eq!(bench.device.resets(), 3);
    assert!(matches!(
        bench.device.close(),
        Err(DriverError::ControllerFatal)
    ));
}

/// What the driver says of a violation names the value.
#[test]
fn violations_are_told_in_words() {
    let head = Violation::BadHead {
        head: 70,
        from: 3,
        to: 9,
        entries: 16,
    };
    assert_eq!(
        head.to_string(),
        "it reports submission queue head 70: only 3 to 9 of 16 are possible"
    );
}
