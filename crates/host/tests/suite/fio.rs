//! Job files: what is read, what is refused at which line, and what is planned.

use std::collections::BTreeSet;

use zonelab_config::Errors;
use zonelab_device::Nanos;
use zonelab_host::fio::options::{self, Treatment};
use zonelab_host::fio::{CommandLine, ExitWhat, JobFile, JobText, Outside, Plan, Target};
use zonelab_host::softfinish::SoftFinish;
use zonelab_host::workload::directed::{Direction, Pattern, WriteStyle};

use super::support::tiny_info;

fn parse(text: &str) -> Result<JobFile, Errors> {
    let outside = Outside {
        variable: &|name| ["N", "$ncpus"].contains(&name).then(|| "3".to_owned()),
        include: &|name| match name {
            "part.fio" => Ok("bs=8k\nwrong=1\n".to_owned()),
            "good.fio" => Ok("bs=8k\n[from-include]\nrw=write\n".to_owned()),
            "self.fio" => Ok("include self.fio\n".to_owned()),
            _ => Err("not found".to_owned()),
        },
    };
    JobFile::parse("j.fio", text, &outside)
}

/// A plan for the tiny drive: 8 zones of 256 KiB, 240 KiB of which can be written.
fn plan(text: &str) -> Plan {
    parse(text)
        .and_then(|file| file.plan(&tiny_info(), 1))
        .expect("it is right")
}

fn refused(text: &str) -> String {
    parse(text)
        .and_then(|file| file.plan(&tiny_info(), 1))
        .expect_err("it is wrong")
        .to_string()
}

#[test]
fn globals_hold_for_the_jobs_that_follow() {
    let file = parse("[global]\nbs=8k\nrw=write\n[a]\n[global]\nbs=16k\n[b]\nrw=read\n").unwrap();
    let plan = file.plan(&tiny_info(), 1).unwrap();
    let size = |job: usize, direction: Direction| {
        let flow = plan.jobs[job].spec.work.flows[direction as usize].as_ref();
        flow.map(|flow| flow.sizes.min)
    };
    assert_eq!(
        (size(0, Direction::Write), size(0, Direction::Read)),
        (Some(2), None)
    );
    assert_eq!(
        (size(1, Direction::Write), size(1, Direction::Read)),
        (None, Some(4))
    );
    assert_eq!(file.global["bs"], "16k");
    assert_eq!(file.sections[1].echo["rw"], "read");
}

#[test]
fn comments_spaces_and_variables() {
    let plan = plan(
        "; one\n# two\n\n  [a] \n\trw = write  # three\nnumjobs=${N} ; four\nbs=${NONE}4k\nstonewall\n",
    );
    assert_eq!(plan.jobs.len(), 3);
    assert_eq!(plan.jobs[0].name, "a");
    let file = parse("[a]\nrw=write\nnumjobs=$ncpus\nbs=$pagesize\n").unwrap();
    assert_eq!(file.sections[0].echo["numjobs"], "3");
    assert_eq!(file.sections[0].echo["bs"], "4096");
}

#[test]
fn included_files_stand_where_they_are_named() {
    let file = parse("[a]\nrw=write\ninclude good.fio\nbs=4k\n").unwrap();
    assert_eq!(file.sections[0].echo["bs"], "8k");
    assert_eq!(file.sections[1].name, "from-include");
    assert_eq!(file.sections[1].echo["bs"], "4k");
    let text = refused("[a]\ninclude part.fio\n");
    assert!(
        text.starts_with("part.fio:2: unknown option `wrong`"),
        "{text}"
    );
    assert!(refused("[a]\ninclude self.fio\n").contains("include each other"));
    assert!(
        refused("[a]\n\ninclude none.fio\n").starts_with("j.fio:3: include: none.fio: not found")
    );
}

#[test]
fn mistakes_have_their_line_and_all_are_listed() {
    let text = refused("[a]\nrw=wirte\nbs=4q\nnumjobs=0\niodeph=4\nsize=1z\n");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    for (line, start) in lines.iter().zip([
        "j.fio:2: rw: ",
        "j.fio:3: bs: ",
        "j.fio:4: numjobs: ",
        "j.fio:5: unknown option `iodeph`; did you mean `iodepth`?",
    ]) {
        assert!(line.starts_with(start), "{line}");
    }
    for (text, says) in [
        ("rw=read\n", "j.fio:1: rw: stands before the first section"),
        ("[a\n", "j.fio:1: a section without its `]`"),
        ("", "j.fio: no job in it"),
        ("[a]\nbs\n", "j.fio:2: bs: needs a value"),
        ("[a]\nbs=${NONE}\n", "j.fio:2: bs: needs a value"),
        ("[a]\nrw=write:-4k\n", "j.fio:2: rw: -4k: going backwards"),
        ("[a]\nrw=write:1k\n", "j.fio:2: rw: 1024 bytes after `:`"),
        ("[a]\n\nsize=99999999999999999999z\n", "j.fio:3: size: "),
        ("[a]\nbs=4kib\n", "j.fio:2: bs: 4000 bytes are no multiple"),
        (
            "[a]\nrw=write\ntime_based\n",
            "j.fio:3: time_based: without runtime",
        ),
        ("[a]\nrw=write\noffset=8z\n", "j.fio:3: offset: "),
        ("[a]\nrw=write\nsize=4k\n", "j.fio:3: size: no whole zone"),
        ("[a]\nrw=write\nzonesize=1m\n", "j.fio:3: zonesize: "),
        (
            "[a]\nrw=write\nfinish=1\nreset=1\n",
            "j.fio:3: finish: and reset",
        ),
        (
            "[a]\nrw=rw\nfinish=1\n",
            "j.fio:3: finish: is for jobs that only write",
        ),
        (
            "[a]\nmax_open_zones=3\n[b]\nmax_open_zones=4\n",
            "j.fio:4: max_open_zones: ",
        ),
        (
            "[a]\nnumjobs=4096\n[b]\n",
            "j.fio:3: numjobs: more than 4096 threads",
        ),
    ] {
        is_refused(text, says);
    }
}

/// The job file is refused, and the message has `says` in it.
fn is_refused(text: &str, says: &str) {
    let message = refused(text);
    assert!(message.contains(says), "{says:?} is not in {message:?}");
}

#[test]
fn mistakes_in_verification_and_order_have_their_line() {
    for (text, says) in [
        (
            "[a]\nwait_for=b\n[b]\n",
            "j.fio:2: wait_for: no job before this one has the name b",
        ),
        (
            "[a]\nwait_for=a\n",
            "j.fio:2: wait_for: a: a job cannot wait for itself",
        ),
        (
            "[a]\n[a]\n[b]\nwait_for=a\n",
            "j.fio:4: wait_for: several jobs have the name a",
        ),
        (
            "[a]\ncontinue_on_error=some\n",
            "j.fio:2: continue_on_error: \"some\" is none of the values",
        ),
        ("[a]\nrw=randread:0\n", "j.fio:2: rw: 0 is out of range"),
        (
            "[a]\nverify=pattern\n",
            "j.fio:2: verify: pattern, but there is none",
        ),
        (
            "[a]\nverify=md5\nrw=trim\n",
            "j.fio:2: verify: is for jobs that read or write",
        ),
        (
            "[a]\nverify=md5\nrw=write\nverify_interval=3000\n",
            "j.fio:4: verify_interval: 3000 bytes do not divide the block size of 4096",
        ),
        (
            "[a]\nverify_only\nverify=md5\nrw=write\nbsrange=4k-16k\n",
            "j.fio:2: verify_only: nothing says how long blocks of several sizes are",
        ),
        (
            "[a]\nrw=write\nzone_append=1\nverify_pattern=%o\n",
            "j.fio:4: verify_pattern: %o is the offset of the block, which an append",
        ),
        (
            "[a]\nverify=crc99\n",
            "j.fio:2: verify: \"crc99\" is none of the values; crc32c, md5, sha256, sha512, pattern",
        ),
        (
            "[a]\nverify_pattern=5%x\n",
            "j.fio:2: verify_pattern: after % only o is known",
        ),
        (
            "[a]\nverify_state_load=1\n",
            "j.fio:2: verify_state_load: is not supported: a job reads back what it has written",
        ),
        (
            "[a]\nverify_state_save=1\n",
            "j.fio:2: verify_state_save: is not supported: a run that ends early cannot be",
        ),
    ] {
        is_refused(text, says);
    }
}

#[test]
fn mistakes_beside_others_have_their_line() {
    for (text, says) in [
        (
            "[a]\nrw_sequencer=random\n",
            "j.fio:2: rw_sequencer: \"random\" is none of the values; sequential, identical",
        ),
        (
            "[a]\nlatency_target=100\n",
            "j.fio:2: latency_target: nothing says how long each depth is tried",
        ),
        (
            "[a]\nrw=trim\nlatency_target=1\nlatency_window=1s\n",
            "j.fio:3: latency_target: is for jobs whose operations",
        ),
        (
            "[a]\nflow=1001\n",
            "j.fio:2: flow: 1001 is out of range; 0 to 1000",
        ),
        (
            "[a]\nflow_id=x\n",
            "j.fio:2: flow_id: \"x\" is not a number",
        ),
        (
            "[a]\ncpus_allowed=3-1\n",
            "j.fio:2: cpus_allowed: \"3-1\" is no list of numbers",
        ),
        (
            "[a]\ncpumask=0\n",
            "j.fio:2: cpumask: 0 allows no processor",
        ),
        (
            "[a]\nzoneskip=1m\n",
            "j.fio:2: zoneskip: is for zonemode=strided; 0 with zonemode=zbd",
        ),
        (
            "[a]\nrw=trimwrite\nzone_append=1\n",
            "j.fio:3: zone_append: is for jobs that write without trims",
        ),
    ] {
        is_refused(text, says);
    }
}

#[test]
fn what_has_no_meaning_is_named_with_its_line() {
    let file = parse("[global]\ndirect=1\n[a]\nrw=write\nsize=100z\ncpus_allowed=0\n").unwrap();
    let warnings: Vec<String> = file.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("j.fio:2: direct: has no meaning here"));
    let plan = file.plan(&tiny_info(), 1).unwrap();
    let warning = plan.in_virtual_time[0].to_string();
    let says = "j.fio:6: cpus_allowed: has no meaning in virtual time";
    assert!(warning.starts_with(says), "{warning}");
    let warning = plan.warnings[0].to_string();
    assert_eq!(
        warning,
        "j.fio:5: size: ends beyond the device: zones 0 to 7 are used"
    );
}

#[test]
fn zones_come_from_offsets_and_sizes() {
    let plan = plan(
        "[global]\nrw=write\n[a]\noffset=1z\nsize=2z\noffset_increment=2z\nnumjobs=3\n\
         [b]\nsize=50%\n[c]\noffset=25%\nsize=512k\n[d]\n[e]\noffset=100k\nsize=700k\n",
    );
    let zones: Vec<_> = plan
        .jobs
        .iter()
        .map(|job| job.spec.work.zones.clone())
        .collect();
    assert_eq!(zones, [1..3, 3..5, 5..7, 0..4, 2..4, 0..8, 1..3]);
}

#[test]
fn stonewalls_make_stages_and_groups() {
    let plan = plan(
        "[a]\nnumjobs=2\n[b]\nnew_group\n[c]\nstonewall\nnumjobs=2\nexitall\nexit_what=all\n\
         [d]\n[e]\nwait_for_previous\n",
    );
    let of = |get: fn(&zonelab_host::fio::PlannedJob) -> u32| -> Vec<u32> {
        plan.jobs.iter().map(get).collect()
    };
    assert_eq!(of(|job| job.group), [0, 0, 1, 2, 2, 2, 3]);
    assert_eq!(of(|job| job.stage), [0, 0, 0, 1, 1, 1, 2]);
    assert_eq!(plan.stages, 3);
    assert!(plan.exitall);
    assert_eq!(plan.jobs[3].exit_what, ExitWhat::All);
}

#[test]
fn jobs_end_as_in_fio() {
    let plan = plan(
        "[global]\nrw=write\nsize=2z\n[a]\n[b]\nio_size=1m\n[c]\nruntime=5\n\
         [d]\nruntime=5\ntime_based\n[e]\nloops=3\n[f]\nnumber_ios=7\n",
    );
    let zone = 256 << 10;
    let written = 240 << 10;
    let ends: Vec<_> = plan
        .jobs
        .iter()
        .map(|job| {
            let end = job.spec.stop;
            (
                end.runtime,
                end.bytes,
                end.operations,
                job.spec.work.repeats,
            )
        })
        .collect();
    let five = Some(Nanos::from_secs(5));
    assert_eq!(
        ends,
        [
            (None, Some(2 * zone), None, false),
            (None, Some(4 * zone), None, true),
            (five, Some(2 * zone), None, false),
            (five, None, None, true),
            (None, Some(6 * written), None, true),
            (None, Some(2 * zone), Some(7), false),
        ]
    );
}

#[test]
fn the_extensions_choose_what_writes_are() {
    let plan = plan(
        "[global]\nrw=write\n[a]\nzone_append=1\n[b]\nappend=1\n[c]\nfinish=1\n\
         [d]\nsoftfinish=1\nsoftfinish_granularity=8k\nsoftfinish_pause=50\n[e]\nreset=1\n\
         [f]\nrw=randtrim\nreset\n[g]\nrw=randread\nfinish=1\n",
    );
    let styles: Vec<WriteStyle> = plan.jobs.iter().map(|job| job.spec.work.style).collect();
    let how = SoftFinish::new(2, Nanos::from_us(50), 256).expect("within the ranges");
    let soft = WriteStyle::SoftFinish(how);
    use WriteStyle::{Append, Finish, Reset, Write};
    assert_eq!(styles, [Append, Append, Finish, soft, Reset, Write, Write]);
    assert!(plan.jobs[5].spec.work.flows[Direction::Trim as usize].is_some());
    assert!(matches!(
        plan.jobs[5].spec.work.pattern,
        Pattern::Random { .. }
    ));
}

#[test]
fn settings_of_a_softfinish_have_ranges() {
    let mut info = tiny_info();
    info.max_transfer_bytes = 64 << 10;
    let plan = |settings: &str| {
        let text = format!("[a]\nrw=write\nsoftfinish=1\n{settings}\n");
        parse(&text).and_then(|file| file.plan(&info, 1).map(|plan| plan.jobs[0].spec.work.style))
    };
    let ends = "softfinish_granularity=64k\nsoftfinish_pause=60s";
    let how = SoftFinish::new(16, SoftFinish::PAUSE_MAX, 16).expect("the ends of the ranges");
    assert_eq!(plan(ends), Ok(WriteStyle::SoftFinish(how)));
    for (setting, problem) in [
        ("softfinish_granularity=68k", "4096 to 65536"),
        ("softfinish_granularity=0", "1 to 1073741824"),
        (
            "softfinish_granularity=6k",
            "multiple of the logical block of 4096",
        ),
        ("softfinish_pause=61s", "61 s is out of range; 0 to 60 s"),
    ] {
        let error = plan(setting).expect_err(setting).to_string();
        assert!(error.starts_with("j.fio:4: softfinish_"), "{error}");
        assert!(error.contains(problem), "{error}");
    }
    // The default of 256 KiB is too much too; the line is that of the softfinish.
    let error = plan("").expect_err("64 KiB at a time").to_string();
    assert!(error.starts_with("j.fio:3: "), "{error}");
}

#[test]
fn engines_that_wait_have_a_depth_of_one() {
    let plan =
        plan("[a]\niodepth=8\n[b]\niodepth=8\nioengine=libaio\n[c]\niodepth=8\nioengine=spdk\n");
    let depths: Vec<u32> = plan.jobs.iter().map(|job| job.spec.queue_depth).collect();
    assert_eq!(depths, [1, 8, 8]);
}

/// A block layer sends in parts what is longer than one command; without one it is refused.
#[test]
fn long_commands_are_for_a_block_layer() {
    let mut info = tiny_info();
    info.max_transfer_bytes = 8 << 10;
    let plan = |options: &str| {
        let file = parse(&format!("[a]\nrw=randrw\n{options}\n")).unwrap();
        let plan = file.plan(&info, 1).map_err(|error| error.to_string())?;
        Ok::<_, String>(plan.jobs[0].parts)
    };
    for engine in ["libaio", "io_uring", "psync", "sync", "posixaio"] {
        let long = plan(&format!("bs=4k,16k\nioengine={engine}"));
        assert_eq!(long, Ok(2), "{engine}");
        assert_eq!(plan(&format!("bs=8k\nioengine={engine}")), Ok(1));
    }
    for engine in ["io_uring_cmd", "/usr/lib/spdk_nvme", "xnvme"] {
        assert_eq!(plan(&format!("bs=8k\nioengine={engine}")), Ok(1));
        let refused = plan(&format!("bs=16k\nioengine={engine}")).unwrap_err();
        let says = "16384 bytes are more than one command moves on this device; 4096 to 8192";
        assert!(refused.contains(says), "{refused}");
    }
    let refused = plan("bs=1g").unwrap_err();
    assert!(refused.contains("are more than a zone holds"), "{refused}");
}

#[test]
fn devices_are_named_in_three_ways() {
    let target = |name: &str| {
        let file = parse(&format!("[a]\nfilename={name}\n")).unwrap();
        file.sections[0].target().unwrap()
    };
    let spdk = "trtype=PCIe traddr=0000.c6.00.0 ns=2";
    assert_eq!(target(spdk), Target::Spdk(spdk.to_owned()));
    assert_eq!(
        target("/dev/nvme0n2"),
        Target::Device("/dev/nvme0n2".to_owned())
    );
    assert_eq!(target("my.toml"), Target::Profile("my.toml".to_owned()));
    assert_eq!(parse("[a]\n").unwrap().sections[0].target(), None);
}

#[test]
fn a_share_of_io_is_of_what_the_job_works_on() {
    let plan = plan(
        "[global]\nrw=write\n[a]\nsize=50%\nio_size=50%\n[b]\noffset=2z\nsize=4z\nio_size=25%\n\
         [c]\nio_size=3z\n[d]\noffset=4z\nsize=100%\nio_size=200k\n[e]\noffset_increment=25%\n\
         numjobs=2\nsize=1z\n",
    );
    let zone = 256 << 10;
    let bytes: Vec<_> = plan.jobs.iter().map(|job| job.spec.stop.bytes).collect();
    let expected = [
        Some(2 * zone),
        Some(zone),
        Some(3 * zone),
        Some(200 << 10),
        // The zones end it before.
        Some(zone),
        Some(zone),
    ];
    assert_eq!(bytes, expected);
    let zones: Vec<_> = plan
        .jobs
        .iter()
        .map(|job| job.spec.work.zones.clone())
        .collect();
    assert_eq!(zones, [0..4, 2..6, 0..8, 4..8, 0..1, 2..3]);
}

/// Found beside the real fio, on drives whose zones hold less than their size.
#[test]
fn passes_end_where_those_of_fio_end() {
    let (zone, capacity) = (256 << 10, 240 << 10);
    for (options, bytes, repeats) in [
        // Nothing is left of a zone: the zones end it before the size does.
        ("rw=write\nbs=16k", 4 * zone, false),
        ("rw=read\nbs=16k", 4 * capacity, false),
        // A trim counts as the size of a zone: four of them are a pass.
        ("rw=trim", 4 * zone, false),
        ("rw=randtrim", 4 * zone, false),
        // 240 KiB are no multiple of these: the job goes on from the first zone.
        ("rw=write\nbs=64k", 4 * zone, false),
        ("rw=write\nbs=28k\nloops=2", 8 * zone, true),
        ("rw=read\nbs=64k", 4 * capacity, false),
        ("rw=rw\nbs=64k", 4 * capacity, false),
        ("rw=write\nbsrange=16k-64k", 4 * zone, false),
    ] {
        let plan = plan(&format!("[a]\nsize=4z\n{options}\n"));
        let spec = &plan.jobs[0].spec;
        assert_eq!(
            (spec.stop.bytes, spec.work.repeats),
            (Some(bytes), repeats),
            "{options}"
        );
    }
}

#[test]
fn zones_are_what_the_mode_says() {
    assert_eq!(
        refused("[a]\nzonemode=none\nrw=write\n"),
        "j.fio:2: zonemode: none, but the namespace is zoned, and writes go to write pointers; \
         zonemode=zbd, or leave it out; without it jobs may read"
    );
    is_refused(
        "[a]\nzonemode=none\n",
        "j.fio:2: zonemode: and zones hold less than their size",
    );
    assert_eq!(plan("[a]\nzonemode=none\nzonemode=zbd\n").jobs.len(), 1);
    let mut info = tiny_info();
    info.namespaces[0].zoned = None;
    for (text, says) in [
        (
            "[a]\nzonemode=zbd\n",
            "j.fio:2: zonemode: zbd, but the namespace has no zones",
        ),
        (
            "[a]\nrw=write\nfinish=1\n",
            "j.fio:3: finish: is for zones, on which this job does not work; rw=write",
        ),
        (
            "[a]\nsize=2z\n",
            "j.fio:2: size: counts in zones, of which there are none",
        ),
        (
            "[a]\nverify=md5\n",
            "j.fio:2: verify: is supported on blocks without zones for jobs that write",
        ),
        (
            "[a]\nrw=write\nverify=md5\nverify_only=1\n",
            "j.fio:3: verify: is supported on blocks without zones for jobs that write",
        ),
        (
            "[a]\nrw=randwrite\nverify=md5\nnumjobs=2\n",
            "j.fio:3: verify: and numjobs",
        ),
        (
            "[a]\nrw=randwrite\nverify=md5\nloops=2\n",
            "j.fio:3: verify: and loops",
        ),
        (
            "[a]\nrw=randwrite\nverify=md5\nnorandommap=1\n",
            "j.fio:3: verify: on blocks without zones is for jobs that write each block once",
        ),
        (
            "[a]\nrw=randwrite\nsize=1m\nverify=md5\nio_size=2m\n",
            "j.fio:4: verify: on blocks without zones is for jobs that write each block once",
        ),
        (
            "[a]\noffset=1000\n",
            "j.fio:2: offset: 1000 bytes are no multiple",
        ),
        (
            "[a]\noffset=100%\n",
            "j.fio:2: offset: thread 1 begins at byte 2097152",
        ),
        ("[a]\nbs=64k\nsize=4k\n", "j.fio:3: size: 1 blocks"),
        (
            "[a]\nzonemode=strided\n",
            "j.fio:2: zonemode: strided, but nothing says how much",
        ),
        (
            "[a]\nzonemode=none\nzonesize=8k\n",
            "j.fio:3: zonesize: and zonemode=none",
        ),
        ("[a]\nzonesize=8k\n", "j.fio:2: zonesize: and zonemode=none"),
        (
            "[a]\nzonemode=strided\nzonesize=8k\nzonerange=8k\nbs=16k\n",
            "j.fio:4: zonerange: 8192 bytes are less than an operation",
        ),
    ] {
        let error = parse(text).and_then(|file| file.plan(&info, 1));
        let error = error.expect_err(text).to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

#[test]
fn appends_are_those_of_passthrough_too() {
    let text = "[a]\nioengine=io_uring_cmd\ncmd_type=nvme\nrw=write\nzone_append=1\niodepth=8\n";
    let file = parse(text).unwrap();
    assert!(file.warnings.is_empty(), "{:?}", file.warnings);
    let plan = file.plan(&tiny_info(), 1).unwrap();
    assert_eq!(plan.jobs[0].spec.work.style, WriteStyle::Append);
    assert_eq!(plan.jobs[0].spec.queue_depth, 8);
    assert_eq!(
        refused("[a]\ncmd_type=scsi\n"),
        "j.fio:2: cmd_type: \"scsi\" is none of the values; nvme"
    );
}

/// The jobs of a command line and of files `j0.fio`, `j1.fio`, ...
fn gathered(line: &str, texts: &[&str], only: &[&str]) -> Result<JobFile, Errors> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let line = CommandLine::parse(&words, &["device", "seed"])?;
    let outside = Outside {
        variable: &|_| None,
        include: &|_| Err("not found".to_owned()),
    };
    let names: Vec<String> = (0..texts.len()).map(|n| format!("j{n}.fio")).collect();
    let files = names.iter().zip(texts).map(|(file, text)| JobText {
        file,
        text,
        outside: &outside,
    });
    let files: Vec<JobText<'_>> = files.collect();
    let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
    JobFile::gather(&line, &files, &only)
}

/// What fio 3.33 does with the same words.
#[test]
fn jobs_on_the_command_line_are_those_of_fio() {
    let line =
        "--bs=16k --rw=write --name=a --size 1z --group_reporting -iodepth=2 --name b --bs=8k";
    let file = gathered(line, &["[c]\nstonewall\n"], &[]).unwrap();
    let names: Vec<_> = file.sections.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let echo = |job: usize| {
        let echo = file.sections[job].echo.iter();
        let texts: Vec<String> = echo.map(|(key, value)| format!("{key}={value}")).collect();
        texts.join(" ")
    };
    assert_eq!(echo(0), "iodepth=2 name=a size=1z");
    assert_eq!(echo(1), "bs=8k name=b");
    assert_eq!(echo(2), "");
    assert_eq!(file.global["bs"], "16k");
    let plan = file.plan(&tiny_info(), 1).unwrap();
    let sizes = plan.jobs.iter().map(|job| {
        let flow = job.spec.work.flows[Direction::Write as usize].as_ref();
        flow.map(|flow| flow.sizes.min)
    });
    let sizes: Vec<_> = sizes.collect();
    assert_eq!(sizes, [Some(4), Some(2), Some(4)]);
    let reporting: Vec<_> = plan.jobs.iter().map(|job| job.group_reporting).collect();
    assert_eq!(reporting, [true, false, false]);
    // `global` begins a global section here too.
    let file = gathered("--name=a --name=global --bs=8k --name=b", &[], &[]).unwrap();
    let bytes = |job: usize| file.sections[job].echo.get("bs");
    assert_eq!((bytes(0), bytes(1)), (None, None));
    let plan = file.plan(&tiny_info(), 1).unwrap();
    assert_eq!(
        plan.jobs[0].spec.work.flows[0].as_ref().unwrap().sizes.min,
        1
    );
    assert_eq!(
        plan.jobs[1].spec.work.flows[0].as_ref().unwrap().sizes.min,
        2
    );
}

#[test]
fn several_files_are_stages_with_globals_of_their_own() {
    let first = "[global]\nbs=8k\n[a]\n[b]\n";
    let file = gathered("--name=x", &[first, "[c]\n[d]\n"], &[]).unwrap();
    let plan = file.plan(&tiny_info(), 1).unwrap();
    let jobs: Vec<_> = plan
        .jobs
        .iter()
        .map(|job| (&*job.name, job.stage, job.group))
        .collect();
    let expected = [
        ("x", 0, 0),
        ("a", 0, 0),
        ("b", 0, 0),
        ("c", 1, 1),
        ("d", 1, 1),
    ];
    assert_eq!(jobs, expected);
    let read = |job: usize| {
        plan.jobs[job].spec.work.flows[0]
            .as_ref()
            .unwrap()
            .sizes
            .min
    };
    assert_eq!([0, 1, 3].map(read), [1, 2, 1]);
    let only = gathered("", &[first, "[c]\n[d]\n"], &["b", "d"]).unwrap();
    let names: Vec<_> = only.sections.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["b", "d"]);
}

/// A command line, job files, the names to be run of these, and what is said.
type Mistake = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

const MISTAKES: &[Mistake] = &[
    (
        "--name=a --bs=4q",
        &[],
        &[],
        "--bs of job a: \"4q\" is not a number; write a number, with k, m, g, t or p if it is large",
    ),
    (
        "--bs=4q --name=a",
        &[],
        &[],
        "--bs: \"4q\" is not a number; write a number, with k, m, g, t or p if it is large",
    ),
    (
        "--name=a --iodeph=4",
        &[],
        &[],
        "--iodeph: is unknown; did you mean `--iodepth`?",
    ),
    (
        "--name=a --devise=x",
        &[],
        &[],
        "--devise: is unknown; did you mean `--device`?",
    ),
    (
        "--name=a --bs",
        &[],
        &[],
        "--bs of job a: needs a value; --bs=...",
    ),
    (
        "--name=a --bs --rw=read",
        &[],
        &[],
        "--bs of job a: needs a value; --bs=...",
    ),
    ("--name", &[], &[], "--name: needs a value; --name=..."),
    (
        "--name=a --verify=crc8",
        &[],
        &[],
        "--verify of job a: \"crc8\" is none of the values; crc32c, md5, sha256, sha512, pattern, \
         pattern_hdr, meta, crc64, crc32, crc16, crc7, xxhash, sha1, sha3-224, sha3-256, \
         sha3-384, sha3-512, null",
    ),
    (
        "--name=a --size=101%",
        &[],
        &[],
        "--size of job a: \"101%\" is no percentage; 0% to 100%",
    ),
    (
        "--name=a --offset=1.5z",
        &[],
        &[],
        "--offset of job a: \"1.5z\" is no number of zones; as in 20z",
    ),
    (
        "--name=a --group_reporting=yes",
        &[],
        &[],
        "--group_reporting of job a: \"yes\" is neither 0 nor 1; the name alone switches it on",
    ),
    (
        "--bs=4k",
        &[],
        &[],
        "no job; name a job file, or begin a job with --name=...",
    ),
    (
        "",
        &[],
        &[],
        "no job; name a job file, or begin a job with --name=...",
    ),
    (
        "--bs=4k",
        &["[a]\n", "[b]\n"],
        &[],
        "--bs: is for all jobs, but there are several job files; put it into their [global] \
             sections, or behind --name=...: fio would give it to the first file only",
    ),
    (
        "",
        &["[a]\n[b]\n"],
        &["c"],
        "--section: no job of the files has the name c; a, b",
    ),
    // What follows an option that may lack its value is a file.
    (
        "--name=a --time_based 5",
        &[],
        &[],
        "--time_based of job a: without runtime, the job never ends; add for example runtime=60",
    ),
];

#[test]
fn mistakes_on_the_command_line_name_the_option() {
    for &(line, texts, only, says) in MISTAKES {
        let planned = gathered(line, texts, only).and_then(|file| file.plan(&tiny_info(), 1));
        assert_eq!(planned.expect_err(line).to_string(), says, "{line}");
    }
    let warned = gathered("--name=a --direct=1", &[], &[]).unwrap();
    assert_eq!(
        warned.warnings[0].to_string(),
        "--direct of job a: has no meaning here: there is one drive, and no file system on it"
    );
    let line = CommandLine::parse(&["--time_based".to_owned(), "5".to_owned()], &[]).unwrap();
    assert_eq!(line.files, ["5"]);
}

/// The options that `docs/fio.md` lists are those that are used.
#[test]
fn the_documents_list_is_true() {
    const DOCUMENT: &str = include_str!("../../../../docs/fio.md");
    let mut listed = BTreeSet::new();
    for heading in ["\n## Options that are used\n", "\n## Extensions\n"] {
        let (_, section) = DOCUMENT.split_once(heading).expect(heading);
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        for row in rows {
            let cell = row.split(" | ").next().unwrap_or_default();
            for name in cell.split(['`', ',', ' ']).filter(|name| !name.is_empty()) {
                let name = name.split('=').next().unwrap_or_default();
                let option = options::find(name).unwrap_or_else(|| panic!("{name}: no option"));
                assert_eq!(option.treatment, Treatment::Used, "{name}");
                listed.insert(option.name);
            }
        }
    }
    let used = options::all().filter(|option| option.treatment == Treatment::Used);
    let used: BTreeSet<&str> = used.map(|option| option.name).collect();
    assert_eq!(listed, used);
}

/// What a job that verifies only has to find: what the job that wrote has left, as far as
/// that follows from its options.
#[test]
fn what_is_to_be_verified_follows_from_the_job_that_wrote() {
    let jobs = [
        ("rw=write\nsize=2z", Some(30)),
        ("rw=write\nsize=2z\nio_size=100k", Some(7)),
        ("rw=write\nsize=2z\nnumber_ios=20", Some(20)),
        ("rw=write\nsize=2z\nloops=2", Some(30)),
        // Three zones' worth into two: 15 blocks in the first and 3 in the second.
        ("rw=write\nsize=2z\nio_size=3z", Some(18)),
        (
            "rw=write\nsize=1z\nnumjobs=2\noffset_increment=1z",
            Some(15),
        ),
        ("rw=write\nsize=2z\nnumjobs=2\nio_size=160k", Some(20)),
        ("rw=write\nsize=2z\nnumjobs=2", None),
        ("rw=randwrite\nsize=2z", None),
        ("rw=write\nsize=2z\nruntime=5", None),
        ("rw=write\nsize=2z\nbs=64k", None),
        ("rw=rw\nsize=2z", None),
    ];
    for (options, blocks) in jobs {
        let plan = plan(&format!(
            "[a]\nbs=16k\nverify=crc32c\nverify_only\n{options}\n"
        ));
        let verify = plan.jobs[0].spec.verify.as_deref().expect("it verifies");
        let bytes = blocks.map(|blocks: u64| blocks << 14);
        assert_eq!(verify.expected_bytes, bytes, "{options}");
        let warned = plan
            .warnings
            .iter()
            .any(|of| of.to_string().contains("verify_only"));
        assert_eq!(warned, bytes.is_none(), "{options}: {:?}", plan.warnings);
    }
}

#[test]
fn buffers_are_filled_as_their_options_say() {
    use zonelab_host::workload::contents::{Contents, Filler};
    let of = |options: &str| {
        plan(&format!("[a]\nrw=write\n{options}\n")).jobs[0]
            .spec
            .contents
            .clone()
    };
    assert_eq!(of(""), Some(Contents::default()));
    assert_eq!(of("zero_buffers=1").expect("data").fill, Filler::Zeros);
    assert_eq!(of("zero_buffers").expect("data").fill, Filler::Zeros);
    assert_eq!(
        of("zero_buffers=1\nzero_buffers=0").expect("data").fill,
        Filler::Random
    );
    let pattern = of("zero_buffers=1\nbuffer_pattern=0xab")
        .expect("data")
        .fill;
    assert!(matches!(pattern, Filler::Pattern(_)));
    let refilled = of("refill_buffers=1\nscramble_buffers=0").expect("data");
    assert!(refilled.refill && !refilled.scramble);
    assert!(refused("[a]\nrw=write\nbuffer_pattern=%x\n").contains("buffer_pattern"));
}
