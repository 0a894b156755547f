//! Job files of fio.

use zonelab_config::{Errors, Place};
use zonelab_host::fio::{JobFile, Outside, Plan};
use zonelab_ssd::Drive;
use zonelab_ssd::profile::Profile;

use crate::draw::Draw;
use crate::text;

/// Job files to begin with.
const BASES: &[&str] = &[
    include_str!("../../../docs/examples/writers-and-finishes.fio"),
    include_str!("../../../docs/examples/spdk-zone-append.fio"),
    include_str!("../../cli/tests/fio/common.fio"),
    "[a]\nrw=randrw\nbssplit=4k/50:64k/50,8k\nsize=50%\noffset=10%\nrandom_distribution=pareto:0.3\n\
     thinktime=5ms\nrate=1m,2m\nrate_process=poisson\nstartdelay=1-5\n\
     [b]\nrw=randtrim\nsize=2z\nstonewall\n\
     [c]\nrw=write\nsoftfinish=1\nsoftfinish_granularity=8k\nsoftfinish_pause=50\nloops=2\n\
     include more.fio\njob_max_open_zones=3\nwrite_bw_log\nlog_avg_msec=5\n",
];

/// Operations of each job that is run.
const OPERATIONS: u64 = 20;

/// The target: a text is a job file or refused at a line that it has; what is
/// a plan runs on a drive, ends, and is reported.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let mut draw = Draw::new(data);
    let verbatim = text::verbatim(data);
    let runs = draw.flag() || verbatim.is_some();
    let name = draw.pick(&["small-zones", "confznspp", "qlc-large"]);
    let text = verbatim.unwrap_or_else(|| text::draw(&mut draw, BASES));
    let outside = Outside {
        variable: &|name| (name == "WRITERS").then(|| "3".to_owned()),
        include: &|name| match name {
            "more.fio" => Ok("bs=8k\n".to_owned()),
            "self.fio" => Ok("include self.fio\ninclude self.fio\n".to_owned()),
            _ => Err("there is no such file".to_owned()),
        },
    };
    let file = match JobFile::parse("fuzz.fio", &text, &outside) {
        Ok(file) => file,
        Err(errors) => return check(&errors, &text),
    };
    let profile = Profile::load(name, &[], |_| Err::<String, &str>("no files"))
        .expect("built-in profiles are right");
    let info = Drive::new(&profile.config).info().clone();
    match file.plan(&info, 1) {
        Ok(plan) if runs => execute(&file, plan, &profile),
        Ok(_) => {}
        Err(errors) => check(&errors, &text),
    }
}

/// Every problem has a reason, and a line of the file it names.
fn check(errors: &Errors, text: &str) {
    assert!(!errors.problems().is_empty());
    for problem in errors.problems() {
        assert!(!problem.what.is_empty(), "refused without a reason");
        if problem.file != "fuzz.fio" {
            continue;
        }
        if let Place::Line { line, .. } = problem.place {
            let lines = text.lines().count();
            assert!((1..=lines).contains(&line), "line {line} of {lines}");
        }
    }
}

/// Runs a plan, cut short.
fn execute(file: &JobFile, mut plan: Plan, profile: &Profile) {
    const THREADS: usize = 16;
    plan.jobs.truncate(THREADS);
    for job in &mut plan.jobs {
        job.spec.stop.operations = Some(OPERATIONS);
        // Softfinishes of large zones take many writes each.
        let zones = &mut job.spec.work.zones;
        zones.end = zones.end.min(zones.start + 2);
        if !matches!(
            job.spec.work.style,
            zonelab_host::workload::directed::WriteStyle::Write
                | zonelab_host::workload::directed::WriteStyle::Append
        ) {
            job.spec.stop.runtime = Some(zonelab_device::Nanos::from_ms(5));
            job.spec.ramp = zonelab_device::Nanos::ZERO;
        }
    }
    let settings = zonelab_lab::fio::RunSettings {
        conditions: Default::default(),
        trace: None,
        saves: false,
        seed: 1,
        costs: zonelab_sim::HostCosts::FREE,
        full_zones: Some(0..2),
        interrupt: std::sync::Arc::default(),
    };
    let run = zonelab_lab::fio::run(&plan, &profile.config, &settings).expect("it runs");
    let report = zonelab_lab::fio::Report::new(file, &plan, &run, "fuzz", 1);
    let failed = report.entries.iter().find_map(|entry| entry.first_error);
    assert_eq!(
        failed, None,
        "a plan does nothing that the drive refuses: {plan:#?}"
    );
    let json = zonelab_lab::fio::to_json(&report);
    assert!(json.contains("\"jobs\""), "{json}");
    assert!(!zonelab_lab::fio::to_text(&report).is_empty());
    drop(zonelab_lab::fio::log_files(&plan, &run));
}
