//! Programs of `host` on a device over PCIe, in virtual and in real time.

use zonelab_device::{Device, Monotonic, Nanos};
use zonelab_driver::pcie::{Function, PcieController, PcieDevice, PcieOptions};
use zonelab_endpoint::{Endpoint, EndpointSettings};
use zonelab_host::workload::{JobSpec, Work, WorkloadJob, WriteWork};
use zonelab_host::{CoreId, Reactor, RealClock, Rng, StopSignal, VirtualClock, WaitsFor};
use zonelab_ssd::Drive;

use crate::drive::{config, endpoint};

/// Appends three zones full at depth 8, by blocks of 64 KiB. How long that took.
fn fill<C>(endpoint: &Endpoint, clock: impl FnOnce(Nanos) -> C) -> Nanos
where
    C: for<'a> WaitsFor<&'a mut PcieDevice<Endpoint>>,
{
    let controller = PcieController::connect(endpoint.clone(), PcieOptions::default()).unwrap();
    let mut device = PcieDevice::new(controller);
    let queue = device.open_queue().unwrap();
    let writes = Work::Write(WriteWork {
        zones: 0..3,
        block_lbas: 16,
        append: true,
        open_zones: 3,
        repeat: false,
        reset_first: false,
        open_first: false,
        command_lbas: None,
    });
    let spec = JobSpec {
        queue_depth: 8,
        ..JobSpec::new("writes", writes)
    };
    let info = device.info().as_ref().clone();
    let mut job = WorkloadJob::new(spec, &info, Rng::new(1, 0), StopSignal::default());
    let clock = clock(endpoint.now());
    let start = clock.now();
    let mut reactor = Reactor::new(clock, &mut device, StopSignal::default());
    reactor.add(&mut job, queue, CoreId(0), start);
    let end = reactor.run();
    assert_eq!(end.stuck_jobs, 0);
    let result = job.into_result();
    assert_eq!((result.operations, result.first_error), (3 * 8, None));
    assert!(device.next_event().is_none(), "nothing is left");
    device.close().unwrap();
    assert_eq!(endpoint.memory().regions(), 0);
    end.at - start
}

/// The same each time, and the drive's own time: rings take none.
#[test]
fn virtual_time_is_the_drives() {
    let took = || {
        fill(
            &endpoint(EndpointSettings::default()),
            VirtualClock::starting_at,
        )
    };
    let first = took();
    assert_eq!(took(), first);
    let slow = endpoint(EndpointSettings {
        ready_after: Nanos::from_ms(30),
        ..EndpointSettings::default()
    });
    assert_eq!(fill(&slow, VirtualClock::starting_at), first);
}

#[test]
fn real_time_takes_as_long_as_the_drive_does() {
    let modelled = fill(
        &endpoint(EndpointSettings::default()),
        VirtualClock::starting_at,
    );
    let clock = Monotonic::new();
    let drive = Drive::new(&config());
    let real = Endpoint::in_real_time(drive, EndpointSettings::default(), clock).unwrap();
    let took = fill(&real, |_| RealClock::sharing(clock));
    println!("{took} in real time, {modelled} modelled");
    assert!(took >= modelled);
}
