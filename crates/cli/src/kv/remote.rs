//! A store on a real drive, in real time.

use zonelab_device::NamespaceId;
use zonelab_driver::url::Address;
use zonelab_fronts::kv::Report;
use zonelab_host::{Clock, CoreId, Reactor, RealClock, StopSignal};
use zonelab_lab::kv::{KvJob, KvTemplate, Surroundings};

use super::{Args, Progress, destination, finish};
use crate::devices;
use crate::exit::{Exit, Failure};
use crate::host_state::HostState;
use crate::results;

pub(super) fn kv(args: &Args, template: &KvTemplate, address: Address) -> Result<Exit, Failure> {
    let restore = "the store begins on empty zones";
    devices::refuse_making(&args.device, &args.set, &args.conditions, restore)?;
    if !args.overwrite {
        return Err(Failure::usage(format!(
            "{}: the zones are reset for the store, and what they hold is lost: say --overwrite",
            args.device
        )));
    }
    let mut template = template.clone();
    let mut device = devices::connect(args.host.options(address)?)?;
    template.setup.files.namespace = NamespaceId(device.controller().nsid());
    let info = device.info().as_ref().clone();
    let unfit = |what: String| Failure::input(anyhow::anyhow!("{}: {what}", args.device));
    template.check(&info, true).map_err(unfit)?;
    let to = destination(args, Report::configuration(&template, None), &args.device);
    if let Some(to) = &to {
        results::prepare(to)?;
    }
    let queue = device.open_queue().map_err(devices::gone)?;
    let progress = Progress::new(args.quiet)?;
    let stop = StopSignal::default();
    let surroundings = Surroundings {
        info,
        totals: None,
        keeps_data: true,
        on_moment: progress.watch(&stop),
        stop: stop.clone(),
        seed: args.seed,
    };
    let mut host = HostState::before(&args.device);
    let mut job = KvJob::new(&template, surroundings, false);
    let clock = RealClock::sharing(device.clock());
    let start = clock.now();
    let mut reactor = Reactor::new(clock, &mut device, stop);
    reactor.add(&mut job, queue, CoreId(0), start);
    reactor.run();
    progress.clear();
    host.after();
    device
        .close()
        .and_then(devices::leave)
        .map_err(devices::gone)?;
    let result = job.into_run();
    let lost = || {
        Failure::new(
            Exit::Device,
            anyhow::anyhow!("the store ended without a result"),
        )
    };
    let run = result
        .ok_or_else(lost)?
        .map_err(|error| Failure::new(Exit::Device, error))?;
    let report = Report {
        template: &template,
        run: &run,
        device: &args.device,
        drive: None,
        wear: None,
        seed: args.seed,
        interrupted: progress.is_interrupted(),
    };
    finish(args, (to.as_ref(), Some(&host)), &report)
}
