//! A store on a drive over NVMe/TCP, in real time.

use zonelab_device::{NamespaceId, Nanos, QueuePair};
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{DriverError, Options, TcpController, TcpQueue};
use zonelab_host::{Job, NextWake, StopSignal};
use zonelab_lab::kv::{KvJob, KvTemplate, Report, Surroundings};

use super::{Args, Progress, destination, finish};
use crate::exit::{Exit, Failure};
use crate::nvme::failure;
use crate::results;

/// Longest time without a look at the connection, and at the user.
const PATIENCE: Nanos = Nanos::from_ms(100);

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
    let mut controller = TcpController::connect(Options::new(address)).map_err(failure)?;
    let info = controller.info().as_ref().clone();
    let unfit = |what: String| Failure::input(anyhow::anyhow!("{}: {what}", args.device));
    template.check(&info, true).map_err(unfit)?;
    let to = destination(args, Report::configuration(&template, None));
    if let Some(to) = &to {
        results::prepare(to)?;
    }
    let mut queue = controller.open_queue().map_err(failure)?;
    let progress = Progress::new(args.quiet)?;
    let stop = StopSignal::default();
    let surroundings = Surroundings {
        info,
        drive: None,
        keeps_data: true,
        on_moment: progress.watch(&stop),
        stop,
        seed: args.seed,
    };
    let mut job = KvJob::new(&template, surroundings, false);
    let ran = run(&mut job, &mut controller, &mut queue);
    progress.clear();
    ran.map_err(failure)?;
    controller.disconnect().map_err(failure)?;
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

/// Runs a job to its end on one queue, in real time.
fn run(
    job: &mut KvJob,
    controller: &mut TcpController,
    queue: &mut TcpQueue,
) -> Result<(), DriverError> {
    let mut done = Vec::new();
    loop {
        controller.keep_alive()?;
        queue.poll(&mut done);
        let now = queue.now();
        let until = match job.step(now, &mut done, queue) {
            NextWake::Finished => return Ok(()),
            NextWake::Completion => now + PATIENCE,
            NextWake::At(at) => at.min(now + PATIENCE),
        };
        // What the job did took time, and its own time may have come.
        if until > queue.now() {
            queue.wait(until)?;
        }
    }
}
