//! A store on a real drive, in real time.

use zonelab_driver::url::Address;
use zonelab_fronts::kv::Report;
use zonelab_host::{Clock, CoreId, Reactor, RealClock, StopSignal};
use zonelab_lab::device::Site as _;
use zonelab_lab::kv::{KvJob, KvTemplate, Surroundings};

use super::{Args, Progress, destination, finish};
use crate::devices;
use crate::exit::{Exit, Failure};
use crate::host_state::HostState;
use crate::namespace::{self, Loss, OpenNamespace};
use crate::results;

pub(super) fn kv(args: &Args, template: &KvTemplate, address: Address) -> Result<Exit, Failure> {
    let restore = "the store begins on empty zones";
    devices::refuse_making(&args.device, &args.set, &args.conditions, restore)?;
    let mut template = template.clone();
    let options = args.host.options(address)?;
    let mut opened = OpenNamespace::open(&args.device, &options)?;
    let nsid = opened.nsid;
    template.setup.files.namespace = nsid;
    let info = opened.drive.info().clone();
    let unfit = |what: String| Failure::input(anyhow::anyhow!("{}: {what}", args.device));
    template.check(&info, true).map_err(unfit)?;
    let (reported, namespace) = (opened.zones()?, opened.info());
    let zones = template.setup.files.zones.clone().unwrap_or(0..u32::MAX);
    let loss = Loss::of_zones(nsid, &namespace, &reported, zones);
    namespace::may_lose(&args.device, loss, args.overwrite)?;
    let mut device = opened.drive.0;
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
    host.after(None);
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
        debt: None,
        seed: args.seed,
        interrupted: progress.is_interrupted(),
    };
    finish(args, (to.as_ref(), Some(&host)), &report)
}
