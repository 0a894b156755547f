//! Job files of fio.

use zonelab_config::{Errors, Override, Place};
use zonelab_host::fio::{CommandLine, JobFile, JobText, Outside, Plan};
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
    "[a]\nrw=randtrimwrite\nsize=2z\nflow=3\nflow_id=1\nflow_sleep=20\n\
     [b]\nrw=write:64k\nbs=16k\nflow=1\nflow_id=1\nmax_latency=1s,2s\ncpus_allowed=0-1,3\n\
     [c]\nrw=randread:4\nrw_sequencer=identical\nioengine=libaio\niodepth=16\nstonewall\n\
     latency_target=500\nlatency_window=1ms\nlatency_percentile=99.5\nlatency_run=1\n\
     [d]\nrw=trimwrite\nbs=64k\ncpumask=3\ncpus_allowed_policy=split\nnuma_cpu_nodes=all\n",
    "[a]\nzonemode=none\nrw=randrw\nbsrange=4k-64k\nsize=25%\noffset=10%\nloops=2\n\
     [b]\nzonemode=strided\nzonesize=64k\nzonerange=128k\nzoneskip=32k\nrw=randread\n\
     [c]\nrw=read:8k\nnorandommap=1\nio_size=3m\n[d]\nrw=trimwrite\nbs=16k\nnumber_ios=9\n",
];

/// A drive with one namespace, which has no zones.
fn conventional() -> Profile {
    let set = "namespaces=[{kind=\"conventional\", zones=48, spare_zones=3}]";
    let set = Override::parse(set).expect("it is a setting");
    Profile::load("confznspp", &[set], |_| Err::<String, &str>("no files"))
        .expect("all its zones can be those of a log")
}

/// Fields of a line of the terse form.
const TERSE_FIELDS: usize = 121;

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
    let is_conventional = verbatim.is_none() && draw.one_in(4);
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
    let profile = match is_conventional {
        true => conventional(),
        false => Profile::load(name, &[], |_| Err::<String, &str>("no files"))
            .expect("built-in profiles are right"),
    };
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
    let mut settings = settings();
    let info = Drive::new(&profile.config).info().clone();
    if info.namespaces[0].zoned.is_none() {
        settings.full_zones = None;
    }
    let run = zonelab_fronts::fio::run(&plan, &profile.config, &settings).expect("it runs");
    let report = zonelab_fronts::fio::Report::new(file, &plan, &run, "fuzz", 1);
    let failed = report.entries.iter().find_map(|entry| entry.first_error);
    assert_eq!(
        failed, None,
        "a plan does nothing that the drive refuses: {plan:#?}"
    );
    let json = zonelab_fronts::fio::to_json(&report);
    assert!(json.contains("\"jobs\""), "{json}");
    assert!(!zonelab_fronts::fio::to_text(&report).is_empty());
    let plus = zonelab_fronts::fio::to_json_plus(&report);
    assert!(plus.len() >= json.len(), "{plus}");
    let terse = zonelab_fronts::fio::to_terse(&report);
    assert_eq!(terse.lines().count(), report.entries.len(), "{terse}");
    for line in terse.lines() {
        // A description may have more of the separators.
        assert!(line.split(';').count() >= TERSE_FIELDS, "{line}");
    }
    drop(zonelab_fronts::fio::log_files(&plan, &run));
}

/// How plans are run: on a drive of which two zones are full.
pub(crate) fn settings() -> zonelab_fronts::fio::RunSettings {
    zonelab_fronts::fio::RunSettings {
        conditions: Default::default(),
        trace: None,
        saves: false,
        seed: 1,
        costs: zonelab_sim::HostCosts::FREE,
        full_zones: Some(0..2),
        interrupt: std::sync::Arc::default(),
    }
}

/// Options of jobs on a command line, one in each line.
const LINES: &[&str] = &[
    "bs=4k\nname=a\nrw=randwrite\nsize=50%\niodepth=4\nioengine=libaio\nname=b\nrw=read\n\
     stonewall\noffset=1z\nsize=2z\nio_size=25%\ngroup_reporting\n",
    "name=append\nioengine=io_uring_cmd\ncmd_type=nvme\nzone_append=1\nrw=write\nbs=16k\n\
     numjobs=3\noffset_increment=10%\nsize=1z\nnumber_ios=9\n",
    "name=mix\nrw=randrw\nbssplit=4k/50:64k/50,8k\nrandom_distribution=zipf:1.2\ntime_based=1\n\
     runtime=10ms\nname=global\nrate=1m,2m\nname=t\nrw=randtrim\nzonemode=zbd\n",
];

/// The target `fio_words`: words of a command line are jobs or refused by the name
/// of an option, and plain ones mean what the same options mean in a job file.
///
/// # Panics
/// Something is wrong.
pub fn run_words(data: &[u8]) {
    let mut draw = Draw::new(data);
    let verbatim = text::verbatim(data);
    let runs = draw.one_in(4) || verbatim.is_some();
    let is_split = draw.flag() && verbatim.is_none();
    let text = verbatim.unwrap_or_else(|| text::draw(&mut draw, LINES));
    let mut words = Vec::new();
    for line in text.lines() {
        match line.split_once('=').filter(|_| is_split) {
            Some((key, value)) => words.extend([format!("--{key}"), value.to_owned()]),
            None if line.contains(' ') => words.extend(line.split(' ').map(str::to_owned)),
            None => words.push(format!("--{line}")),
        }
    }
    let outside = Outside {
        variable: &|_| None,
        include: &|_| Err("no files".to_owned()),
    };
    let none: &[JobText<'_>] = &[];
    let line = CommandLine::parse(&words, &["device", "seed"]);
    let jobs = line.and_then(|line| JobFile::gather(&line, none, &[]));
    let profile = Profile::load("small-zones", &[], |_| Err::<String, &str>("no files"))
        .expect("built-in profiles are right");
    let info = Drive::new(&profile.config).info().clone();
    let plan = |jobs: &Result<JobFile, Errors>| {
        let jobs = jobs.as_ref().map_err(Clone::clone);
        jobs.and_then(|jobs| jobs.plan(&info, 1))
    };
    let planned = plan(&jobs);
    if let Err(errors) = &planned {
        for problem in errors.problems() {
            assert!(!problem.what.is_empty(), "refused without a reason");
            assert!(problem.file.is_empty(), "there is no file: {problem}");
            if let Place::Override(option) = &problem.place {
                assert!(option.starts_with("--"), "no option: {problem}");
            }
        }
    }
    if let (Some(text), false) = (as_file(&text), is_split) {
        let file = JobFile::parse("fuzz.fio", &text, &outside);
        match (&planned, plan(&file)) {
            (Ok(ours), Ok(theirs)) => {
                let [ours, theirs] = [ours, &theirs].map(|plan| format!("{:?}", plan.jobs));
                assert_eq!(ours, theirs, "{text}");
            }
            (Err(_), Err(_)) => {}
            (ours, theirs) => panic!("{words:?}: {ours:?}\n{text}: {theirs:?}"),
        }
    }
    if let (Ok(jobs), Ok(plan), true) = (&jobs, planned, runs) {
        execute(jobs, plan, &profile);
    }
}

/// The job file that has the same jobs; `None`: characters mean something else in
/// files, or there is no job.
fn as_file(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._%:/,=-".contains(c);
    let mut lines = String::from("[global]\n");
    let mut has_jobs = false;
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if key.is_empty() || !line.chars().all(is_plain) || line.starts_with(['-', '=']) {
            return None;
        }
        if key != "name" {
            lines += &format!("{line}\n");
        } else if value.is_empty() {
            return None;
        } else {
            has_jobs |= !value.starts_with("global");
            lines += &format!("[{value}]\n");
        }
    }
    has_jobs.then_some(lines)
}
