//! A store on a drive over NVMe/TCP, in real time.

use zonelab_device::NamespaceId;
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{Options, TcpController, TcpDevice};
use zonelab_host::{Clock, CoreId, Reactor, RealClock, StopSignal};
use zonelab_lab::kv::{KvJob, KvTemplate, Report, Surroundings};

use super::{Args, Progress, destination, finish};
use crate::exit::{Exit, Failure};
use crate::nvme::failure;
use crate::results;

pub(super) fn kv(args: &Args, template: &KvTemplate) -> Result<Exit, Failure> {
    if let Some(setting) = args.set.first() {
        return Err(Failure::usage(format!(
            "--set {setting}: settings are those of emulated drives; {} is as it is",
            args.device
        )));
    }
    if !args.overwrite {
        return Err(Failure::usage(format!(
            "{}: the zones are reset for the store, and what they hold is lost: say --overwrite",
            args.device
        )));
    }
    if args.conditions.load()?.configuration.is_some() {
        return Err(Failure::usage(
            "--faults and --restore are for emulated drives; `zonelab fault` is for those that \
             are served"
                .to_owned(),
        ));
    }
    let address = TcpAddress::parse(&args.device).map_err(|e| Failure::usage(e.to_string()))?;
    let mut template = template.clone();
    template.setup.files.namespace = NamespaceId(address.nsid);
    let controller = TcpController::connect(Options::new(address)).map_err(failure)?;
    let mut device = TcpDevice::new(controller).map_err(failure)?;
    let info = device.info().as_ref().clone();
    let unfit = |what: String| Failure::input(anyhow::anyhow!("{}: {what}", args.device));
    template.check(&info, true).map_err(unfit)?;
    let to = destination(args, Report::configuration(&template, None));
    if let Some(to) = &to {
        results::prepare(to)?;
    }
    let queue = device.open_queue().map_err(failure)?;
    let progress = Progress::new(args.quiet)?;
    let stop = StopSignal::default();
    let surroundings = Surroundings {
        info,
        drive: None,
        keeps_data: true,
        on_moment: progress.watch(&stop),
        stop: stop.clone(),
        seed: args.seed,
    };
    let mut job = KvJob::new(&template, surroundings, false);
    let clock = RealClock::sharing(device.clock());
    let start = clock.now();
    let mut reactor = Reactor::new(clock, &mut device, stop);
    reactor.add(&mut job, queue, CoreId(0), start);
    reactor.run();
    progress.clear();
    device
        .close()
        .and_then(TcpController::disconnect)
        .map_err(failure)?;
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
    finish(args, to.as_ref(), &report)
}
