//! One program by itself on a device: what comes before and between the jobs.

use std::sync::atomic::AtomicBool;

use zonelab_device::Nanos;
use zonelab_host::{Clock, CoreId, Job, Reactor, Rng, StopSignal};

use super::site::Site;
use super::watch::Watched;

/// Runs a job in this thread, with a queue that holds `depth` commands, from the
/// start of the device's time on. The job itself knows whether it came to its end.
/// In real time it is told to end when `interrupt` is set, or the device is gone.
///
/// # Errors
/// The device has no such queue: a text that says so.
pub fn run_alone<S: Site>(
    site: &mut S,
    depth: u32,
    job: &mut dyn Job,
    interrupt: &AtomicBool,
) -> Result<(), String> {
    let queue = site.open_queue(depth, Rng::new(0, 0))?;
    let clock = site.clock(Nanos::ZERO);
    let start = clock.now();
    let stop = StopSignal::default();
    let watched = Watched::new(site.device(), S::is_lost, interrupt, vec![stop.clone()]);
    let mut reactor = Reactor::new(clock, watched, stop);
    reactor.add(job, queue, CoreId(0), start);
    reactor.run();
    Ok(())
}
